"""`gpucost.throughput(...)`, `gpucost.roofline(...)`: how fast layouts are, what bounds an operation or a step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from numpy.typing import ArrayLike

from gpucost.arguments import flag_of, read
from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import BYTES, FLAG, named, one_of, several, whole
from gpucost.arguments.signature import COLUMN, COLUMNS, detail, given, needs
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import framed, opened, question
from gpucost.ask.result import Result, copied
from gpucost.errors import ContradictionError, UsageError
from gpucost.units import GB, GIB
from gpucost.words import RECOMPUTES

if TYPE_CHECKING:
    import pandas

    from gpucost.catalog import Catalog
    from gpucost.speed.throughput import LayoutQuestion, Layouts, Timings

_OPERATIONS = ("matmul", "attention", "norm", "gelu", "copy", "all_reduce", "flash")
_ONE_OR_A_MACHINE = "1, or what the machine named holds"
_OF_A_LAYOUT = (  # any of these states a layout, which is then timed as it is instead of the usual ones
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


# compared by identity: whether two arrays are equal has no single answer
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
        # in words for a person; code 0 is a layout that can be
        frame["reason"] = [self.reasons[code] for code in self.speeds.reason]
        return frame


@question(
    exclusive=["mfu tokens_per_s_per_gpu step_time"],
    needs=[
        needs("lora_rank", given("method", "lora", "qlora")),
        needs("virtual_stages", given(COLUMNS), given("pipeline"), words="with --pipeline"),
        needs("batch prompt_tokens output_tokens weights cache engine", given("serving"), words="with --serving"),
    ],
)
def throughput(
    # the model and the accelerators; most arguments may be columns, a case each
    model: Annotated[v.TrainedModel | Sequence[str], COLUMN],
    gpu: Annotated[v.OneGpu | Sequence[str], COLUMN],
    gpus: Annotated[v.Count | ArrayLike | None, COLUMN, detail(usual=_ONE_OR_A_MACHINE)] = None,
    *,
    system: v.System | None = None,
    # the layout, searched where nothing is said
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
    # the work of a step
    global_batch: Annotated[v.GlobalBatch | ArrayLike | None, COLUMN] = None,
    sequence: Annotated[v.SequenceTokens | ArrayLike | None, detail(field="", column=True)] = None,
    document_tokens: v.DocumentTokens | None = None,
    offload: v.Offload = "none",
    recompute: Annotated[str | Sequence[str] | None, one_of(*RECOMPUTES), "Activation recomputation.", COLUMN] = None,
    # how it is trained
    precision: Annotated[v.Precision | Sequence[str] | None, COLUMN] = None,
    method: v.Method = "full",
    lora_rank: v.LoraRank = 16,
    software: v.Software = "typical",
    software_year: v.SoftwareYear | None = None,
    flash: v.UsuallyFlash | None = None,
    dispatcher: v.Dispatcher | None = None,
    links: v.Links = "own",
    # a speed that was measured in place of the predicted one
    mfu: v.Mfu | None = None,
    tokens_per_s_per_gpu: v.TokensPerSPerGpu | None = None,
    step_time: v.StepTime | None = None,
    # the day of the facts
    as_of: v.AsOf | None = None,
    known_as_of: v.KnownAsOf | None = None,
    # how data reach the accelerators
    dataset: v.Dataset | None = None,
    loader_workers: v.LoaderWorkers | None = None,
    decode_rate: v.DecodeRate | None = None,
    storage_bandwidth: v.StorageBandwidth | None = None,
    # serving instead of training
    serving: Annotated[
        bool, FLAG, "Output tokens per second of serving, at each --batch; --gpu takes several."
    ] = False,
    batch: Annotated[
        str | int | Sequence[int] | None,
        several(whole()),
        "Serving: sequences at once, with commas.",
        detail(usual="1,8,64", example="1,8,64"),
    ] = None,
    prompt_tokens: v.PromptTokens | None = None,
    output_tokens: v.OutputTokens | None = None,
    weights: Annotated[
        v.WeightFormat | None, "Serving: precision of the weights.", detail(usual="as published")
    ] = None,
    cache: Annotated[v.CacheFormat | None, "Serving: precision of the key-value cache.", detail(usual="auto")] = None,
    engine: Annotated[v.Engine | None, "Serving: engine.", detail(usual="vllm")] = None,
    catalog: "Catalog | None" = None,
) -> "ThroughputResult | ThroughputTable | ServingSpeedResult":
    """Return the speed of training `model`: one result, or columns with a reason per case where lists are given.

    Step time of training, by part, with what bounds each part, and a range.

    A layout is taken as given; degrees that are left out are one, and data parallelism takes the rest. Without any
    degree the layouts in common use are timed and the fastest is shown, with those behind it. With --serving: output
    tokens per second at each batch, as in `inference`, `fit --serving` and `audit`.

    $ gpucost throughput --model llama-3-70b --gpu h100-sxm --gpus 512
    $ gpucost throughput --model llama-3-8b --gpu h200-sxm --gpus 8 --sharding 3 --micro-batch 2 --recompute none
    $ gpucost throughput --serving --model 8b --gpu h100-sxm,l40s --batch 1,8,64
    """
    values = read(
        QUESTIONS["throughput"],
        model=model,
        gpu=gpu,
        gpus=gpus,
        system=system,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        expert=expert,
        data=data,
        virtual_stages=virtual_stages,
        sharding=sharding,
        micro_batch=micro_batch,
        global_batch=global_batch,
        sequence=sequence,
        document_tokens=document_tokens,
        offload=offload,
        recompute=recompute,
        precision=precision,
        method=method,
        lora_rank=lora_rank,
        software=software,
        software_year=software_year,
        flash=flash,
        dispatcher=dispatcher,
        links=links,
        mfu=mfu,
        tokens_per_s_per_gpu=tokens_per_s_per_gpu,
        step_time=step_time,
        as_of=as_of,
        known_as_of=known_as_of,
        dataset=dataset,
        loader_workers=loader_workers,
        decode_rate=decode_rate,
        storage_bandwidth=storage_bandwidth,
        serving=serving,
        batch=batch,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        weights=weights,
        cache=cache,
        engine=engine,
    )
    if values["serving"]:
        return _serving_speeds(values, catalog)
    from gpucost.speed.throughput import columns_answer, single
    from gpucost.workloads.training import too_long

    facts = opened(values, catalog)
    values["gpus"] = _counts(facts, values)
    job = _layout_asked_for(values)
    if not job.scalar:
        # columns are for many layouts at once: what holds for a single one is refused
        if job.own_speed is not None:
            raise UsageError(f"{job.own_speed.flag} applies to a single layout; columns are always timed by the model.")
        if any(job.data_flow):
            raise UsageError(
                "data arguments (--dataset, --storage-bandwidth …) apply to a single layout, not to columns."
            )
        return ThroughputTable(*columns_answer(facts, job))
    timed = single(facts, job)
    architecture = facts.architecture(values["model"])
    notes = [*facts.taken(values["gpu"]), *architecture.warnings, *too_long(architecture, timed["sequence_tokens"])]
    if not timed["fits"]:  # timed all the same: a reader may know a way to save memory
        need, usable = (timed[name] * GIB / GB for name in ("memory_gib", "usable_memory_gib"))
        notes.append(
            f"this layout needs {need:,.1f} GB per GPU and {usable:,.1f} GB are usable: it would run out of memory."
        )
    return ThroughputResult({"kind": "throughput", **framed(facts, values), **timed, "warnings": notes, "sources": {}})


# What of its arguments means something to serving; any other that is said is refused.
_OF_SERVING = (
    "model",
    "gpu",
    "gpus",
    "serving",
    "batch",
    "prompt_tokens",
    "output_tokens",
    "weights",
    "cache",
    "engine",
)


def _serving_speeds(values: Mapping[str, Any], catalog: "Catalog | None") -> "ServingSpeedResult":
    """Answer for serving: what belongs to a step of training is refused."""
    from gpucost.ask.inference import request_of
    from gpucost.catalog.names import listed
    from gpucost.serving.speeds import USUAL_BATCHES, speeds_payload

    defaults = {argument.name: argument.default for argument in QUESTIONS["throughput"].arguments}
    foreign = [
        name
        for name, value in values.items()
        if name not in _OF_SERVING and value is not None and value != defaults.get(name)
    ]
    if foreign:
        raise ContradictionError(f"{', '.join(map(flag_of, foreign))}: only without --serving.", foreign[:1])
    facts = opened(values, catalog)
    stated = {name: values[name] for name in ("prompt_tokens", "output_tokens", "cache", "engine") if values[name]}
    at_any_latency = {"ttft": "none", "tpot": "none"}  # the batch is stated, and the time of a token follows
    request = request_of(
        facts, model=values["model"], precision=values["weights"] or "auto", **at_any_latency, **stated
    )
    names = listed(values["gpu"]) if isinstance(values["gpu"], str) else [*values["gpu"]]
    # without a number those of the machine that is named, else the fewest that serve the model
    count = None if values["gpus"] is None else int(values["gpus"])
    return ServingSpeedResult(speeds_payload(facts, request, names, count, values["batch"] or USUAL_BATCHES))


@dataclass(frozen=True, slots=True, repr=False)
class ServingSpeedResult(Result):
    """Output tokens per second of accelerators at batches, each with its range and its price."""


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
    # one operation
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
    # or a whole step of a model
    model: Annotated[v.TrainedModel | None, "A whole training step of this model."] = None,
    gpus: Annotated[v.Count | None, detail(usual=_ONE_OR_A_MACHINE)] = None,
    system: v.System | None = None,
    # its layout
    tensor: v.TensorParallel | None = None,
    pipeline: v.PipelineParallel | None = None,
    context: v.ContextParallel | None = None,
    expert: v.ExpertParallel | None = None,
    data: Annotated[str | int | None, whole(), "Data-parallel degree.", detail(usual="what the others leave")] = None,
    virtual_stages: Annotated[str | int | None, whole(), "Model chunks per pipeline stage."] = None,
    sharding: v.Sharding | None = None,
    micro_batch: v.MicroBatch | None = None,
    # its work
    global_batch: v.GlobalBatch | None = None,
    sequence: Annotated[v.SequenceTokens | None, detail(field="")] = None,
    document_tokens: v.DocumentTokens | None = None,
    offload: v.Offload = "none",
    recompute: Annotated[str | None, one_of(*RECOMPUTES), "Activation recomputation."] = None,
    precision: v.Precision | None = None,
    # how it is trained
    method: v.Method = "full",
    lora_rank: v.LoraRank = 16,
    software: v.Software = "typical",
    software_year: v.SoftwareYear | None = None,
    flash: v.UsuallyFlash | None = None,
    # the day of the facts
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
    values = read(
        QUESTIONS["roofline"],
        gpu=gpu,
        matmul=matmul,
        attention=attention,
        norm=norm,
        gelu=gelu,
        copy=copy,
        all_reduce=all_reduce,
        model=model,
        gpus=gpus,
        system=system,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        expert=expert,
        data=data,
        virtual_stages=virtual_stages,
        sharding=sharding,
        micro_batch=micro_batch,
        global_batch=global_batch,
        sequence=sequence,
        document_tokens=document_tokens,
        offload=offload,
        recompute=recompute,
        precision=precision,
        method=method,
        lora_rank=lora_rank,
        software=software,
        software_year=software_year,
        flash=flash,
        as_of=as_of,
        known_as_of=known_as_of,
    )
    from gpucost.speed import roofline as roofs
    from gpucost.workloads.training import too_long

    facts = opened(values, catalog)
    values["gpus"] = _counts(facts, values)
    # one operation, or without any the usual ones side by side
    if values["model"] is None:
        work = {name: values[name] for name in _OPERATIONS}
        payload = roofs.one_operation(
            facts, values["gpu"], values["system"], values["gpus"], values["precision"], **work
        )
    else:
        payload = roofs.whole_step(facts, _layout_asked_for(values))
    # taken: which of several accelerators a name was read as
    notes = facts.taken(values["gpu"])
    if values["model"]:
        architecture = facts.architecture(values["model"])
        notes += [*architecture.warnings, *too_long(architecture, values["sequence"] or 0)]
    return RooflineResult({"kind": "roofline", **framed(facts, values), **payload, "warnings": notes, "sources": {}})


def _counts(facts: "Catalog", values: Mapping[str, Any]) -> Any:
    """Return the number of accelerators asked for, else as many as a machine that is named holds, else one."""
    if values["gpus"] is not None:
        return values["gpus"]
    machine = values["gpu"]
    if machine is None:
        return 1
    if isinstance(machine, str):
        return facts.gpus_in(machine) or 1
    return [facts.gpus_in(str(name)) or 1 for name in machine]


def _layout_asked_for(values: Mapping[str, Any]) -> "LayoutQuestion":
    """Return the layout that read arguments ask for."""
    from gpucost.speed.throughput import LayoutQuestion

    return LayoutQuestion(**{name: values[name] for name in LayoutQuestion.__struct_fields__ if name in values})
