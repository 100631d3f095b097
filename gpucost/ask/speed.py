"""`gpucost.throughput(...)`, `gpucost.roofline(...)`: how fast layouts are, what bounds an operation or a step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from numpy.typing import ArrayLike

from gpucost.arguments import read
from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import BYTES, named, one_of, whole
from gpucost.arguments.signature import COLUMN, COLUMNS, detail, given, needs
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import framed, opened, question
from gpucost.ask.result import Result, copied
from gpucost.errors import UsageError
from gpucost.units import GB, GIB
from gpucost.words import RECOMPUTES

if TYPE_CHECKING:
    import pandas

    from gpucost.answers.training import Timed
    from gpucost.catalog import Catalog
    from gpucost.speed.throughput import Layouts, Timings, Wanted

_OPERATIONS = ("matmul", "attention", "norm", "gelu", "copy", "all_reduce", "flash")
_OF_A_LAYOUT = (  # any of these states a layout
    "tensor",
    "pipeline",
    "context",
    "expert",
    "data",
    "virtual_stages",
    "sharding",
    "micro_batch",
    "recompute",
)


@dataclass(frozen=True, slots=True, repr=False)
class ThroughputResult(Result):
    """One layout, timed: its speed with a range, the parts of its step and what bounds each."""

    @property
    def options(self) -> list[Mapping[str, Any]]:
        """The layouts with their speeds, the fastest first; where none was searched the one that was timed."""
        timed = {name: self.payload[name] for name in ("step_s", "tokens_per_s_per_gpu", "mfu_fraction", "memory_gib")}
        return [*map(copied, self.payload.get("alternatives") or [{**self.payload["layout"], **timed}])]

    @property
    def best(self) -> Mapping[str, Any]:
        """The layout that was timed: of a search the fastest."""
        return self.options[0]

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """Tokens per second on one accelerator."""
        return float(self.payload["tokens_per_s_per_gpu"])

    @property
    def layout(self) -> Mapping[str, Any]:
        """The layout that was timed."""
        layout_copy: Mapping[str, Any] = copied(self.payload["layout"])
        return layout_copy


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ThroughputTable:
    """Many layouts, timed: columns, with a reason where a layout cannot exist."""

    cases: "Layouts"
    speeds: "Timings"

    def __len__(self) -> int:
        return len(self.cases.layout)

    def __repr__(self) -> str:
        """Return one line: how many layouts there are, and how many of them cannot be."""
        return f"<ThroughputTable: {len(self):,} layouts, {sum(self.speeds.reason != 0):,} with a reason>"

    @property
    def reasons(self) -> tuple[str, ...]:
        """What the codes in `reason` mean."""
        from gpucost.physics.training.grid import REASONS

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


@question(
    exclusive=["mfu tokens_per_s_per_gpu step_time"],
    needs=[
        needs("lora_rank", given("method", "lora", "qlora")),
        needs("virtual_stages", given(COLUMNS), given("pipeline"), words="with --pipeline"),
        needs(
            "flash",
            given(COLUMNS),
            *map(given, _OF_A_LAYOUT),
            words="with a stated layout, such as --tensor 1: a search times fused attention alone",
        ),
    ],
)
def throughput(
    model: Annotated[v.TrainedModel | Sequence[str], COLUMN],
    gpu: Annotated[v.OneGpu | Sequence[str], COLUMN],
    gpus: Annotated[v.Count | ArrayLike, COLUMN] = 1,
    *,
    system: v.System | None = None,
    tensor: Annotated[v.TensorParallel | ArrayLike | None, COLUMN] = None,
    pipeline: Annotated[v.PipelineParallel | ArrayLike | None, COLUMN] = None,
    context: Annotated[v.ContextParallel | ArrayLike | None, COLUMN] = None,
    expert: Annotated[v.ExpertParallel | ArrayLike | None, COLUMN] = None,
    data: Annotated[
        str | int | None, whole(), "Data-parallel degree.", detail(usual="what the others leave", column=True)
    ] = None,
    virtual_stages: Annotated[str | int | ArrayLike | None, whole(), "Model chunks per pipeline stage.", COLUMN] = None,
    sharding: Annotated[v.Sharding | ArrayLike | None, COLUMN] = None,
    micro_batch: Annotated[v.MicroBatch | ArrayLike | None, COLUMN] = None,
    global_batch: Annotated[v.GlobalBatch | ArrayLike | None, COLUMN] = None,
    sequence: Annotated[v.SequenceTokens | ArrayLike | None, detail(field="", column=True)] = None,
    document_tokens: v.DocumentTokens | None = None,
    offload: v.Offload = "none",
    recompute: Annotated[str | Sequence[str] | None, one_of(*RECOMPUTES), "Activation recomputation.", COLUMN] = None,
    precision: Annotated[v.Precision | Sequence[str] | None, COLUMN] = None,
    method: v.Method = "full",
    lora_rank: v.LoraRank = 16,
    software: v.Software = "typical",
    software_year: v.SoftwareYear | None = None,
    flash: v.Flash = True,
    links: v.Links = "own",
    mfu: v.Mfu | None = None,
    tokens_per_s_per_gpu: v.TokensPerSPerGpu | None = None,
    step_time: v.StepTime | None = None,
    as_of: v.AsOf | None = None,
    known_as_of: v.KnownAsOf | None = None,
    dataset: v.Dataset | None = None,
    loader_workers: v.LoaderWorkers | None = None,
    decode_rate: v.DecodeRate | None = None,
    storage_bandwidth: v.StorageBandwidth | None = None,
    catalog: "Catalog | None" = None,
) -> ThroughputResult | ThroughputTable:
    """Return the speed of training `model`: one result, or columns with a reason per case where lists are given.

    Step time of training, by part, with what bounds each part, and a range.

    A layout is taken as given; degrees that are left out are one, and data parallelism takes the rest. Without any
    degree the layouts in common use are timed and the fastest is shown, with those behind it.

    $ gpucost throughput --model llama-3-70b --gpu h100-sxm --gpus 512
    $ gpucost throughput --model llama-3-8b --gpu h200-sxm --gpus 8 --sharding 3 --micro-batch 2 --recompute none
    """
    values = read(QUESTIONS["throughput"], locals())
    from gpucost.speed.throughput import columns_answer, single
    from gpucost.workloads.training import too_long

    facts, job = opened(values, catalog), wanted_of(values)
    if not job.scalar and job.own_speed is not None:
        raise UsageError(f"{job.own_speed.flag} applies to a single layout; columns are always timed by the model.")
    if not job.scalar and any(job.data_flow):
        raise UsageError("data arguments (--dataset, --storage-bandwidth …) apply to a single layout, not to columns.")
    if not job.scalar:
        return ThroughputTable(*columns_answer(facts, job))
    timed = single(facts, job)
    architecture = facts.architecture(values["model"])
    notes = [*facts.taken(values["gpu"]), *architecture.warnings, *too_long(architecture, timed["sequence_tokens"])]
    notes += warnings_of(timed)
    return ThroughputResult({"kind": "throughput", **framed(facts, values), **timed, "warnings": notes, "sources": {}})


@dataclass(frozen=True, slots=True, repr=False)
class RooflineResult(Result):
    """An operation or a step under its roofs."""


@question(
    exclusive=["matmul attention norm gelu copy all_reduce model"],
    needs=[
        needs("lora_rank", given("method", "lora", "qlora")),
        needs("virtual_stages", given("pipeline")),
        needs("gpus", given("model"), given("all_reduce")),
        needs(
            "tensor pipeline context expert data virtual_stages sharding micro_batch global_batch sequence"
            " document_tokens offload recompute method software software_year",
            given("model"),
        ),
        needs(
            "flash",
            given("attention"),
            *map(given, _OF_A_LAYOUT),
            words="with --attention or a stated layout, such as --model 8b --tensor 1",
        ),
    ],
)
def roofline(
    gpu: v.OneGpu,
    *,
    matmul: Annotated[str | None, named("MxNxK"), "A matrix product."] = None,
    attention: Annotated[
        str | None, named("TOKENSxHEADSxDIM"), "Causal attention over one sequence; naive with --no-flash."
    ] = None,
    norm: Annotated[str | None, named("TOKENSxWIDTH"), "A norm over each token."] = None,
    gelu: Annotated[str | None, named("TOKENSxWIDTH"), "An activation such as GELU over every value."] = None,
    copy: Annotated[
        str | float | None, BYTES, "An element-wise pass over so many bytes, such as 2GiB.", detail(example="2GiB")
    ] = None,
    all_reduce: Annotated[
        str | float | None, BYTES, "An all-reduce over the gpus, such as of 16gb.", detail(example="16gb")
    ] = None,
    model: Annotated[v.TrainedModel | None, "A whole training step of this model."] = None,
    gpus: v.Count = 1,
    system: v.System | None = None,
    tensor: v.TensorParallel | None = None,
    pipeline: v.PipelineParallel | None = None,
    context: v.ContextParallel | None = None,
    expert: v.ExpertParallel | None = None,
    data: Annotated[str | int | None, whole(), "Data-parallel degree.", detail(usual="what the others leave")] = None,
    virtual_stages: Annotated[str | int | None, whole(), "Model chunks per pipeline stage."] = None,
    sharding: v.Sharding | None = None,
    micro_batch: v.MicroBatch | None = None,
    global_batch: v.GlobalBatch | None = None,
    sequence: Annotated[v.SequenceTokens | None, detail(field="")] = None,
    document_tokens: v.DocumentTokens | None = None,
    offload: v.Offload = "none",
    recompute: Annotated[str | None, one_of(*RECOMPUTES), "Activation recomputation."] = None,
    precision: v.Precision | None = None,
    method: v.Method = "full",
    lora_rank: v.LoraRank = 16,
    software: v.Software = "typical",
    software_year: v.SoftwareYear | None = None,
    flash: v.Flash = True,
    as_of: v.AsOf | None = None,
    known_as_of: v.KnownAsOf | None = None,
    catalog: "Catalog | None" = None,
) -> RooflineResult:
    """Return what bounds one operation, the usual ones, or each part of a step of `model`, and what would help.

    What bounds an operation, or each part of a step: compute, memory bandwidth, network or host.

    The ridge is the intensity (FLOP per byte) above which compute bounds and below which bandwidth does.

    Without an operation or a model, the usual operations of a transformer stand side by side.

    $ gpucost roofline --gpu h100-sxm
    $ gpucost roofline --gpu h100-sxm --matmul 64x8192x8192
    $ gpucost roofline --gpu h100-sxm --model llama-3-8b --gpus 8 -o roofline.html
    """
    values = read(QUESTIONS["roofline"], locals())
    from gpucost.speed import roofline as roofs
    from gpucost.workloads.training import too_long

    facts = opened(values, catalog)
    if values["model"] is None:
        work = {name: values[name] for name in _OPERATIONS}
        payload = roofs.one_operation(
            facts, values["gpu"], values["system"], values["gpus"], values["precision"], **work
        )
    else:
        payload = roofs.whole_step(facts, wanted_of(values))
    notes = facts.taken(values["gpu"])
    if values["model"]:
        architecture = facts.architecture(values["model"])
        notes += [*architecture.warnings, *too_long(architecture, values["sequence"] or 0)]
    return RooflineResult({"kind": "roofline", **framed(facts, values), **payload, "warnings": notes, "sources": {}})


def wanted_of(values: Mapping[str, Any]) -> "Wanted":
    """Return the layout that read arguments ask for."""
    from gpucost.speed.throughput import Wanted

    return Wanted(**{name: values[name] for name in Wanted.__struct_fields__ if name in values})


def warnings_of(answer: "Timed") -> list[str]:
    """Return what a reader must be told: a layout that does not fit is timed all the same."""
    if answer["fits"]:
        return []
    need, usable = (answer[name] * GIB / GB for name in ("memory_gib", "usable_memory_gib"))
    return [f"this layout needs {need:,.1f} GB per GPU and {usable:,.1f} GB are usable: it would run out of memory."]
