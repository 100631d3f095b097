"""`gpucost.throughput(...)`: step time, tokens per second and MFU of layouts, one or a million."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpucost.answers.speed import Timed
from gpucost.api.asking import framed, opened
from gpucost.api.result import Result
from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.physics.training.legality import REASONS
from gpucost.speed.throughput import Layouts, Timings, Wanted, columns_answer, single
from gpucost.workloads.training import too_long

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True, repr=False)
class ThroughputResult(Result):
    """One layout, timed: its speed with a range, the parts of its step and what bounds each."""

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """Tokens per second on one accelerator."""
        return float(self.payload["tokens_per_s_per_gpu"])

    @property
    def layout(self) -> Mapping[str, Any]:
        """The layout that was timed."""
        return dict(self.payload["layout"])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ThroughputTable:
    """Many layouts, timed: columns, with a reason where a layout cannot exist."""

    cases: Layouts
    speeds: Timings

    def __len__(self) -> int:
        return len(self.cases.layout)

    def __repr__(self) -> str:
        """Return one line: how many layouts there are, and how many of them cannot be."""
        return f"<ThroughputTable: {len(self):,} layouts, {sum(self.speeds.reason != 0):,} with a reason>"

    @property
    def reasons(self) -> tuple[str, ...]:
        """What the codes in `reason` mean."""
        return REASONS

    def columns(self) -> dict[str, Any]:
        """Return every column as an array; figures of rows with a reason are NaN."""
        layout, step = self.cases.layout, self.speeds.step
        return {
            **{name: getattr(layout, name) for name in layout.names()},
            "sequence_tokens": self.cases.sequence_tokens,
            "reason": self.speeds.reason,
            **{name: getattr(step, name) for name in step.names()},
            "tokens_per_s_per_gpu_low": self.speeds.low_tokens_per_s_per_gpu,
            "tokens_per_s_per_gpu_high": self.speeds.high_tokens_per_s_per_gpu,
        }

    def __getitem__(self, name: str) -> Any:
        return self.columns()[name]

    def to_frame(self) -> "pandas.DataFrame":
        """Return the columns as a data frame, the reason in words."""
        import pandas

        frame = pandas.DataFrame(self.columns())
        frame["reason"] = [self.reasons[code] for code in self.speeds.reason]
        return frame


def answer(given: Mapping[str, Any], catalog: Catalog | None = None) -> ThroughputResult | ThroughputTable:
    """Answer from arguments as they were given: one result, or columns where any argument is a column."""
    values, catalog = opened("throughput", given, catalog)
    wanted = wanted_of(values)
    if not wanted.scalar and wanted.own_speed is not None:
        raise UsageError(f"{wanted.own_speed.flag} belongs to one layout; columns are timed by the physics.")
    if not wanted.scalar and any(wanted.data_flow):
        raise UsageError("the data of a run (--dataset, --storage-bandwidth …) belong to one layout, not to columns.")
    if not wanted.scalar:
        return ThroughputTable(*columns_answer(catalog, wanted))
    timed = single(catalog, wanted)
    architecture = catalog.architecture(values["model"])
    told = [*catalog.taken(values["gpu"]), *architecture.warnings, *too_long(architecture, timed["sequence_tokens"])]
    told += warnings_of(timed)
    return ThroughputResult({"kind": "throughput", **framed(catalog, values), **timed, "warnings": told, "sources": {}})


def wanted_of(values: Mapping[str, Any]) -> Wanted:
    """Return the layout that read arguments ask for."""
    return Wanted(**{name: values[name] for name in Wanted.__dataclass_fields__ if name in values})


def warnings_of(answer: Timed) -> list[str]:
    """Return what a reader must be told: a layout that does not fit is timed all the same."""
    if answer["fits"]:
        return []
    need, usable = answer["memory_gib"], answer["usable_memory_gib"]
    return [f"this layout needs {need:,.1f} GiB per GPU and {usable:,.1f} GiB are usable: it would run out of memory."]
