"""`gpucost.throughput(...)`: step time, tokens per second and MFU of layouts, one or a million."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, ClassVar

from gpucost.api.result import Result

if TYPE_CHECKING:
    import pandas

    from gpucost.answers.common import Frame
    from gpucost.answers.speed import Throughput, Timed
    from gpucost.catalog import Catalog
    from gpucost.speed.workload import Layouts, Timings


@dataclass(frozen=True, slots=True)
class ThroughputResult(Result):
    """One layout, timed: its speed with a range, the parts of its step and what bounds each."""

    kind: ClassVar[str] = "throughput"
    rows_key: ClassVar[str] = "parts"

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """Tokens per second on one accelerator."""
        return float(self.payload["tokens_per_s_per_gpu"])

    @property
    def layout(self) -> Mapping[str, Any]:
        """The layout that was timed."""
        return dict(self.payload["layout"])


@dataclass(frozen=True, slots=True)
class ThroughputTable:
    """Many layouts, timed: columns, with a reason where a layout cannot exist."""

    cases: "Layouts"
    speeds: "Timings"

    def __len__(self) -> int:
        return len(self.cases.layout)

    @property
    def reasons(self) -> tuple[str, ...]:
        """What the codes in `reason` mean."""
        from gpucost.physics.training.legality import REASONS

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


def throughput(
    model: Any, gpu: Any, gpus: Any, *, catalog: "Catalog | None" = None, as_of: str | None = None, **layout: Any
) -> "ThroughputResult | ThroughputTable":
    """Return the speed of training `model` on `gpus` accelerators of a kind.

    Single values give one result: the layout as given, or the fastest one where no degree is given; a layout that
    cannot exist raises. Any argument may be a column (a list or an array) instead: the answer then has a row per
    case, and a reason code where a case cannot exist.

    Takes what the command takes: tensor, pipeline, context, expert, data, sharding, micro_batch, virtual_stages,
    global_batch, sequence, recompute, precision, method, lora_rank, software, software_year, system, flash.
    """
    from gpucost.speed import workload as speed

    if catalog is None:
        from gpucost.catalog import open_catalog

        catalog = open_catalog(as_of)
    wanted = speed.Wanted(model=model, gpu=gpu, gpus=gpus, **layout)
    if wanted.scalar:
        return ThroughputResult(payload(catalog, wanted))
    return ThroughputTable(*speed.columns_answer(catalog, wanted))


@dataclass(frozen=True, slots=True)
class RooflineResult(Result):
    """An operation or a step under its roofs."""

    kind: ClassVar[str] = "roofline"
    rows_key: ClassVar[str] = "points"


def roofline(
    gpu: str, *, model: str | None = None, gpus: float = 1.0, system: str | None = None, precision: str | None = None,
    matmul: str | None = None, attention: str | None = None, copy: str | None = None, all_reduce: str | None = None,
    catalog: "Catalog | None" = None, as_of: str | None = None, **layout: Any,
) -> RooflineResult:  # fmt: skip
    """Return what bounds one operation (matmul, attention, copy, all_reduce) or each part of a step of `model`."""
    from gpucost.speed import roofline as roofs
    from gpucost.speed import workload as speed

    if catalog is None:
        from gpucost.catalog import open_catalog

        catalog = open_catalog(as_of)
    work = {"matmul": matmul, "attention": attention, "copy": copy, "all_reduce": all_reduce}
    request = {"gpu": gpu, "model": model, "gpus": gpus, "system": system, "precision": precision, **work, **layout}
    if model is None:
        answer = roofs.one_operation(catalog, gpu, system, gpus, precision, **work)
    else:
        wanted = speed.Wanted(model=model, gpu=gpu, gpus=gpus, system=system, precision=precision, **layout)
        answer = roofs.whole_step(catalog, wanted)
    frame = framed(catalog, request)
    return RooflineResult({"kind": "roofline", **frame, **answer, "warnings": [], "sources": {}})


def payload(catalog: "Catalog", wanted: Any) -> "Throughput":
    """Return the answer to one question with what every answer carries."""
    from dataclasses import asdict

    from gpucost.speed.answer import single

    answer = single(catalog, wanted)
    frame = framed(catalog, asdict(wanted))
    return {"kind": "throughput", **frame, **answer, "warnings": warnings_of(answer), "sources": {}}


def warnings_of(answer: "Timed") -> list[str]:
    """Return what a reader must be told: a layout that does not fit is timed all the same."""
    if answer["fits"]:
        return []
    need, usable = answer["memory_gib"], answer["usable_memory_gib"]
    return [f"this layout needs {need:,.1f} GiB per GPU and {usable:,.1f} GiB are usable: it would run out of memory."]


def framed(catalog: "Catalog", request: Mapping[str, Any]) -> "Frame":
    """Return the keys that every answer starts with."""
    from gpucost.answers.common import frame

    request = {key: fspath(value) if isinstance(value, PathLike) else value for key, value in request.items()}
    return frame({key: value for key, value in request.items() if value is not None}, catalog.as_of, catalog.version)
