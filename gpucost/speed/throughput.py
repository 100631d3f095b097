"""Explicit layouts, read into columns and timed: what `gpucost throughput` answers."""

from collections.abc import Mapping, Sequence
from math import exp
from os import PathLike, fspath
from typing import Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace
from numpy.typing import ArrayLike

from gpucost.answers import training as shape
from gpucost.answers.common import LayoutRow
from gpucost.arguments.kinds import numbers
from gpucost.arguments.reading import is_column
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.errors import NothingFitsError, UsageError
from gpucost.gate import shown
from gpucost.market.supply import Key
from gpucost.physics import roofline, transformer
from gpucost.physics.calibration import Calibration, interval
from gpucost.physics.columns import CHUNK, PRECISIONS, RECOMPUTES, Floats, Integers, LayoutColumns, code_of
from gpucost.physics.hardware import HardwareColumns, half_precision, hardware_columns
from gpucost.physics.training import calibration as cal
from gpucost.physics.training import grid
from gpucost.physics.training import layouts as search
from gpucost.physics.training import steps as training
from gpucost.physics.training.cases import LORA, PARTS, Step, TrainingCase, build_case, recipe_columns, software_codes
from gpucost.physics.training.defaults import default_batch, default_sequence
from gpucost.physics.training.efficiency import FUSED_YEAR, dispatcher_code
from gpucost.physics.training.memory import from_training, training_memory, usable_bytes
from gpucost.physics.training.own_runs import Alike, corrected, narrowing
from gpucost.types import Accelerator, Architecture, Layout
from gpucost.units import GB, GIB, TERA
from gpucost.workloads.speeds import LOADING_WIDTH, job_of, key_of, memory_gb, over_pcie, timed_layouts
from gpucost.workloads.training import (
    DEFAULT_RANK,
    TYPICAL,
    DataFlow,
    OwnSpeed,
    StepWork,
    check,
    class_of,
    ends,
    make_loading,
    make_workload,
    most_tokens_per_s,
    own_speed,
    token_bytes,
)
from gpucost.workloads.unsaid import ATTENTION, DISPATCHER, STACK, TRAINING, Unsaid, costliest

# --- Explicit layouts: a question about one or a million of them, read into columns and timed.
#
# One layout is an array of length one; columns take the same path, in chunks, and answer with arrays and a reason
# code per row.

DEGREES = ("tensor", "pipeline", "context", "expert", "data", "micro_batch", "virtual_stages", "sharding")
Names = str | PathLike[str] | Sequence[str | PathLike[str]]


class LayoutQuestion(Struct, frozen=True):
    """What is asked of explicit layouts: scalars or columns; None where nothing was said."""

    model: Names
    gpu: str | Sequence[str]
    gpus: ArrayLike
    system: str | None = None
    links: str = "own"
    tensor: ArrayLike | None = None
    pipeline: ArrayLike | None = None
    context: ArrayLike | None = None
    expert: ArrayLike | None = None
    data: ArrayLike | None = None
    sharding: ArrayLike | None = None
    micro_batch: ArrayLike | None = None
    virtual_stages: ArrayLike | None = None
    global_batch: ArrayLike | None = None
    sequence: ArrayLike | None = None
    document_tokens: float | None = None
    offload: str = "none"
    recompute: str | Sequence[str] | None = None
    precision: str | Sequence[str] | None = None
    method: str = "full"
    lora_rank: float = DEFAULT_RANK
    software: str = "typical"
    software_year: float | None = None
    flash: bool | None = None  # fused where nobody says
    dispatcher: str | None = None  # how tokens reach their experts
    mfu: float | None = None  # one's own speed, in one of three forms
    tokens_per_s_per_gpu: float | None = None
    step_time: float | None = None
    dataset: str | None = None
    loader_workers: int | None = None
    decode_rate: str | None = None
    storage_bandwidth: float | None = None  # GB per second

    @property
    def data_flow(self) -> DataFlow:
        """Return what was said of the data that feed the run."""
        return DataFlow(self.dataset, self.loader_workers, self.decode_rate, self.storage_bandwidth)

    @property
    def own_speed(self) -> OwnSpeed | None:
        """Return the speed that was measured, where one was given."""
        return own_speed(self.mfu, self.tokens_per_s_per_gpu, self.step_time)

    @property
    def scalar(self) -> bool:
        """Whether every argument is a single value: one question, answered with an error or a result."""
        return not any(is_column(getattr(self, name)) for name in self.__struct_fields__)

    @property
    def explicit(self) -> bool:
        """Whether any degree is given, so that the rest are taken as one instead of searched."""
        return any(getattr(self, name) is not None for name in (*DEGREES, "recompute"))


class Layouts(Struct, frozen=True):
    """Explicit layouts of models on accelerators, any number of them."""

    architectures: Sequence[Architecture]
    keys: Sequence[Key]
    model: Integers  # index into architectures
    key: Integers  # index into keys
    layout: LayoutColumns
    sequence_tokens: Floats
    question: LayoutQuestion
    latest_year: float  # of the question's day: no software is newer

    @property
    def hardware(self) -> HardwareColumns:
        """The accelerators in their systems as arrays, one element per key."""
        return hardware_columns([key.accelerator for key in self.keys], [key.system for key in self.keys])

    def software(self, calibration: Calibration) -> Integers:
        """Return the class of the training stack, of length one."""
        return software_codes([class_of(self.question.software, calibration.stacks)])


class Timings(Struct, frozen=True):
    """Answers as columns: seconds by part, speed with its range, and why a row has none."""

    reason: Integers  # code into legality.REASONS; figures of a row with a reason are NaN
    step: Step
    low_tokens_per_s_per_gpu: Floats
    high_tokens_per_s_per_gpu: Floats


def columns_answer(catalog: Catalog, question: LayoutQuestion) -> tuple[Layouts, Timings]:
    """Answer a column of questions: arrays, with a reason code where a layout cannot exist."""
    layouts, calibration = explicit_layouts(catalog, question), training_calibration(catalog)
    stacked, hardware = transformer.stack(layouts.architectures), layouts.hardware
    parts: list[Timings] = []
    for rows in layouts.layout.chunks(CHUNK):
        layout, sequence = layouts.layout.take(rows), layouts.sequence_tokens[rows]
        chip = hardware.take(layouts.key[rows])
        shape_of_rows = stacked if len(stacked) == 1 else stacked.take(layouts.model[rows])
        reason = grid.reason_codes(shape_of_rows, chip, layout, sequence)
        # What cannot exist is computed beside the rest, which is faster than leaving it out, and thrown away.
        with np.errstate(all="ignore"):
            case = _make_case(layouts, calibration, shape_of_rows, chip, layout, sequence)
            step = step_of(layouts, calibration, case)
            low, high = _interval_of(layouts, calibration, case, step)
        legal = reason == grid.OK
        columns = {name: np.where(legal, getattr(step, name), np.nan) for name in step.names()}
        parts.append(Timings(reason, Step(**columns), np.where(legal, low, np.nan), np.where(legal, high, np.nan)))
    return layouts, Timings(
        reason=np.concatenate([part.reason for part in parts]),
        step=Step.concatenate([part.step for part in parts]),
        low_tokens_per_s_per_gpu=np.concatenate([part.low_tokens_per_s_per_gpu for part in parts]),
        high_tokens_per_s_per_gpu=np.concatenate([part.high_tokens_per_s_per_gpu for part in parts]),
    )


def step_of(layouts: Layouts, calibration: Calibration, case: TrainingCase) -> Step:
    """Time cases, corrected by runs of one's own."""
    return corrected(
        training.step(case), calibration.runs_of(layouts.question.software), _alike_of(layouts, calibration, case)
    )


def _alike_of(layouts: Layouts, calibration: Calibration, case: TrainingCase) -> Alike:
    """Return what cases are compared with runs of one's own by."""
    return Alike(case.shape, case.hardware, case.layout, case.recipe, layouts.software(calibration))


def _interval_of(layouts: Layouts, calibration: Calibration, case: TrainingCase, step: Step) -> tuple[Floats, Floats]:
    """Return the 80 % range of the speed of stated layouts."""
    alike = _alike_of(layouts, calibration, case)
    traits = cal.traits(alike, step, stated_layout=True)
    # Runs of one's own that are alike narrow the range that strangers' measurements left.
    closer = narrowing(calibration.runs_of(layouts.question.software), alike)
    low, high = interval(step.tokens_per_s_per_gpu, traits, calibration.ranges, cal.ceiling(step), closer)
    # What the question leaves open widens the range to the side on which the other choice lies.
    if layouts.question.flash is None:
        low = cal.unsaid_attention_low(layouts.software(calibration), case, step, low, closer)
    if layouts.question.dispatcher is None:
        year = _years_of(layouts, case.hardware)
        high = cal.unsaid_dispatcher_high(case, year, step.tokens_per_s_per_gpu, high, closer)
    return low, high


def _years_of(layouts: Layouts, hardware: HardwareColumns) -> Floats:
    """Return the age of the software on each chip."""
    year = layouts.question.software_year
    return search.usual_year(hardware, layouts.latest_year) if year is None else np.full(len(hardware), year)


def _make_case(
    layouts: Layouts,
    calibration: Calibration,
    shape: transformer.Shape,
    hardware: HardwareColumns,
    layout: LayoutColumns,
    sequence: Floats,
) -> TrainingCase:
    """Join the parts of explicit layouts into what the kernels take."""
    question, count = layouts.question, len(layout)
    recipe = recipe_columns(
        count,
        sequence,
        method=question.method,
        adapter_rank=question.lora_rank,
        document_tokens=question.document_tokens or np.inf,
        offload=question.offload,
    )
    return build_case(
        shape,
        hardware,
        layout,
        recipe,
        calibration.values,
        software=np.broadcast_to(layouts.software(calibration), (count,)),
        software_year=_years_of(layouts, hardware),
        dispatcher=dispatcher_code(question.dispatcher),
    )


# --- Names and defaults of a question.


def _texts(value: Names, count: int) -> list[str]:
    """Return one text per row."""
    if isinstance(value, str | PathLike):
        return [fspath(value)] * count
    for item in value:
        if not isinstance(item, str | PathLike):
            raise UsageError(f"a column of names holds {shown(item)}; texts are expected.")
    return [fspath(item) for item in value]


def explicit_layouts(catalog: Catalog, question: LayoutQuestion) -> Layouts:
    """Turn a question into layouts: names resolved once each, numbers broadcast to one length."""
    columns: dict[str, Floats] = {}
    for name in ("gpus", *DEGREES, "global_batch", "sequence"):
        value = getattr(question, name)
        if value is None:
            continue
        try:
            columns[name] = np.atleast_1d(numbers(value))
        except (TypeError, ValueError):
            raise UsageError(f"{name}: cannot read {shown(value)} as a number.") from None
        if columns[name].ndim > 1:
            reason = f"it has {columns[name].ndim} dimensions"
            raise UsageError(f"{name}: {shown(value)} is not a column of numbers: {reason}.")
    lengths = {len(column) for column in columns.values()}
    for names in (question.model, question.gpu, question.recompute, question.precision):
        if names is not None and not isinstance(names, str | PathLike):
            lengths.add(len(names))
    count = max(lengths, default=1)
    if 0 in lengths:
        raise UsageError("a column is empty. Give at least one case.")
    if lengths - {1, count}:
        raise UsageError(
            f"columns of different lengths: {', '.join(map(str, sorted(lengths)))}. Give one length, or single values."
        )
    # Names are resolved once each: a column of a million cases names the same few.
    models, gpus = _texts(question.model, count), _texts(question.gpu, count)
    architectures = {name: catalog.architecture(name) for name in dict.fromkeys(models)}
    keys = {name: key_of(catalog, name, question.system) for name in dict.fromkeys(gpus)}
    # The same chips in a machine without their own links.
    if question.links == "pcie":
        keys = {name: over_pcie(key) for name, key in keys.items()}
    key = _positions(gpus, keys)
    first = architectures[models[0]]  # says the usual sequence and batch of a column
    sequence = columns.get("sequence", np.array([float(default_sequence(first))]))
    if not (np.isfinite(sequence) & (sequence >= 1)).all():
        raise UsageError("sequence: a column holds what is not a number of tokens. Give whole numbers of 1 and more.")
    half = np.array([PRECISIONS.index(half_precision(item.accelerator)) for item in keys.values()], dtype=np.int64)
    precision = half[key]
    if question.precision is not None:
        precision = _codes(_texts(question.precision, count), PRECISIONS, "precision")
    # On a day before fused kernels were common, attention that nobody speaks of was plain.
    latest = search.latest_year(catalog.as_of)
    if question.flash is None and question.software_year is None and latest < FUSED_YEAR:
        question = replace(question, flash=False)
    layout = _complete_layout(question, columns, count, first, float(sequence[0]), precision)
    return Layouts(
        list(architectures.values()),
        list(keys.values()),
        _positions(models, architectures),
        key,
        layout,
        np.broadcast_to(sequence, (count,)),
        question,
        latest,
    )


def _positions(names: Sequence[str], index: Mapping[str, Any]) -> Integers:
    """Return each word's position among the distinct ones."""
    number_of = {name: number for number, name in enumerate(index)}
    return np.fromiter((number_of[word] for word in names), dtype=np.int64, count=len(names))


def _complete_layout(
    question: LayoutQuestion,
    columns: Mapping[str, Floats],
    count: int,
    architecture: Architecture,
    sequence_tokens: float,
    precision: Integers,
) -> LayoutColumns:
    """Fill in what a layout leaves open: degrees of one, data parallelism by division, the usual batch rounded up."""

    def column(name: str, default: ArrayLike = 1.0) -> Floats:
        return np.broadcast_to(columns.get(name, np.asarray(default, dtype=np.float64)), (count,))

    tensor, pipeline, context = column("tensor"), column("pipeline"), column("context")
    with np.errstate(divide="ignore", invalid="ignore"):
        replicas = np.floor(column("gpus") / (tensor * pipeline * context))
    data, micro = column("data", replicas), column("micro_batch")
    # the usual batch, rounded up to whole micro-batches of each replica; what has no replica is refused by its reason
    usual = default_batch(architecture, sequence_tokens, question.method)
    with np.errstate(invalid="ignore"):
        batch = np.ceil(usual / np.maximum(data * micro, 1)) * data * micro
    sharding = column("sharding")
    recompute = _texts("none" if question.recompute is None else question.recompute, count)
    return LayoutColumns(
        gpus=column("gpus"),
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        expert=column("expert"),
        data=data,
        sharding=np.where(np.isfinite(sharding), sharding, 0).astype(np.int64),  # an integer has no NaN
        micro_batch=micro,
        global_batch=column("global_batch", batch),
        virtual_stages=column("virtual_stages"),
        recompute=_codes(recompute, RECOMPUTES, "recompute"),
        precision=precision,
        flash=np.full(count, question.flash is not False),
        sequence_parallel=np.ones(count, dtype=np.bool_),
        shard_ranks=np.zeros(count),
    )


def _codes(names_of_rows: Sequence[str], names: Sequence[str], label: str) -> Integers:
    """Return the codes of words of a closed list."""
    table = {word: code_of(word, names, label) for word in dict.fromkeys(names_of_rows)}
    return np.fromiter((table[word] for word in names_of_rows), dtype=np.int64, count=len(names_of_rows))


# --- Answers about one layout or the fastest one, as payloads: what `gpucost throughput` shows.

_MOST_ALTERNATIVES = 20  # layouts behind the best in an answer


def single(catalog: Catalog, question: LayoutQuestion) -> shape.Timed:
    """Answer one question: the layout given, else the fastest found, with the step by part and what bounds each."""
    timed = _explicit_answer(catalog, question) if question.explicit else _searched_answer(catalog, question)
    own_speed = question.own_speed
    if own_speed is not None:
        timed = _with_own(timed, own_speed, catalog.accelerator(timed["gpu"]))
    if question.data_flow != DataFlow():
        return _with_data(timed, question, catalog.architecture(_texts(question.model, 1)[0]))
    if own_speed is not None:  # a measured speed is certain: nothing that is left open would narrow it
        return timed
    # What would narrow the range most: what the question leaves open is asked again with a choice stated.
    calibration, unsaid = training_calibration(catalog), []
    point = timed["tokens_per_s_per_gpu"]
    low, high = timed["tokens_per_s_per_gpu_low"], timed["tokens_per_s_per_gpu_high"]
    fused, plain = low, high
    if question.flash is None:
        with_flash = _explicit_answer(catalog, replace(question, **_stated_layout(timed), flash=True))
        fused = with_flash["tokens_per_s_per_gpu_low"]
        unsaid.append(Unsaid(*ATTENTION, fused, high))
    if question.dispatcher is None and catalog.architecture(_texts(question.model, 1)[0]).experts:
        all_to_all = _explicit_answer(catalog, replace(question, **_stated_layout(timed), dispatcher="alltoall"))
        plain = all_to_all["tokens_per_s_per_gpu_high"]
        unsaid.append(Unsaid(*DISPATCHER, low, plain))
    if class_of(question.software, calibration.stacks) == TYPICAL:
        unsaid.append(STACK.unsaid(calibration.ranges, point, fused, plain, TRAINING))
    sentence = costliest(unsaid, point, low, high)
    return {**timed, "lead": f"{timed['lead']} {sentence}".strip()}


def _stated_layout(timed: shape.Timed) -> dict[str, Any]:
    """Return the layout of an answer as a question states it."""
    return {name: value for name, value in timed["layout"].items() if name in LayoutQuestion.__struct_fields__}


def _with_data(timed: shape.Timed, question: LayoutQuestion, architecture: Architecture) -> shape.Timed:
    """Return a timed layout that is fed by a loader: it waits for what comes later than a step ends."""
    loading = make_loading(question.data_flow, int(timed["sequence_tokens"]), token_bytes(architecture))
    assert loading is not None
    gpus = timed["layout"]["gpus"]
    feeding = loading.feeding(timed["tokens_per_s"], gpus)
    # What a loader feeds has a range of its own: neither end of the speed is beyond it.
    most = float(loading.tokens_per_s(gpus)) / gpus
    timed = {
        **timed,
        "tokens_per_s_per_gpu_low": min(timed["tokens_per_s_per_gpu_low"], most * exp(-LOADING_WIDTH)),
        "tokens_per_s_per_gpu_high": min(timed["tokens_per_s_per_gpu_high"], most * exp(LOADING_WIDTH)),
    }
    if stall := feeding["stall_fraction"]:  # the step's own parts become a smaller share of a longer step
        share = 1 - stall
        step_s = timed["step_s"] / share
        steps = [
            cast(shape.StepPart, {**part, "share_fraction": part["share_fraction"] * share}) for part in timed["parts"]
        ]
        wait: shape.StepPart = {"part": "loading", "time_s": step_s * stall, "share_fraction": stall, "bound": "loader"}
        timed = {
            **timed,
            "tokens_per_s_per_gpu": timed["tokens_per_s_per_gpu"] * share,
            "tokens_per_s": timed["tokens_per_s"] * share,
            "step_s": step_s,
            "mfu_fraction": timed["mfu_fraction"] * share,
            "hfu_fraction": timed["hfu_fraction"] * share,
            "model_tflops": timed["model_tflops"] * share,
            "parts": [*steps, wait],
        }
        timed.pop("alternatives", None)  # their speeds are those without waiting
        timed["lead"] = _lead(timed, "as fast as its data come")
    return {**timed, "lead": f"{timed['lead']} {feeding['said']}", "loading": feeding}


def _with_own(timed: shape.Timed, own_speed: OwnSpeed, chip: Accelerator) -> shape.Timed:
    """Return a timed layout at a measured speed; the parts of the step keep their shares."""
    layout, sequence = timed["layout"], timed["sequence_tokens"]
    flop = timed["model_flop_per_token_flop"]
    work = StepWork(layout["precision"], layout["global_batch"] * sequence, flop)
    check(own_speed, [chip], layout["gpus"], work)
    speed = own_speed.tokens_per_s(chip, layout["gpus"], work)
    # A measurement has a width, too, and no speed is beyond the peak.
    low, high = (float(end) for end in ends(np.array(speed), most_tokens_per_s(chip, work)))
    # One measured figure corrects all of the step alike: nothing says which part was slower.
    ratio = speed / timed["tokens_per_s_per_gpu"]
    answer: shape.Timed = {
        **timed,
        "tokens_per_s_per_gpu": speed,
        "tokens_per_s_per_gpu_low": low,
        "tokens_per_s_per_gpu_high": high,
        "tokens_per_s": speed * layout["gpus"],
        "step_s": timed["step_s"] / ratio,
        "mfu_fraction": timed["mfu_fraction"] * ratio,
        "hfu_fraction": timed["hfu_fraction"] * ratio,
        "model_tflops": timed["model_tflops"] * ratio,
        "parts": [{**part, "time_s": part["time_s"] / ratio} for part in timed["parts"]],
    }
    answer.pop("alternatives", None)  # speeds of other layouts would be predictions still
    expected = f"{timed['tokens_per_s_per_gpu_low']:,.0f} to {timed['tokens_per_s_per_gpu_high']:,.0f}"
    answer["lead"] = _lead(answer, f"your own speed ({own_speed.flag}); {ratio:.2f} of the predicted one ({expected})")
    return answer


def case_of(layouts: Layouts, calibration: Calibration) -> TrainingCase:
    """Return the case of one layout, as the kernels take it."""
    stacked = transformer.stack(layouts.architectures)
    return _make_case(layouts, calibration, stacked, layouts.hardware, layouts.layout, layouts.sequence_tokens)


def _explicit_answer(catalog: Catalog, question: LayoutQuestion) -> shape.Timed:
    """Answer for the layout as given, or raise with the reason why it cannot exist."""
    # One row: the path of a column of one.
    layouts, calibration = explicit_layouts(catalog, question), training_calibration(catalog)
    case = case_of(layouts, calibration)
    code = int(grid.reason_codes(case.shape, case.hardware, layouts.layout, layouts.sequence_tokens)[0])
    if code != grid.OK:
        raise UsageError(grid.sentence(code, case.shape, layouts.layout, layouts.keys[0].accelerator.id))
    return _described(layouts, case, calibration)


def _searched_answer(catalog: Catalog, question: LayoutQuestion) -> shape.Timed:
    """Answer with the fastest layout in common use, and the candidates behind it."""
    layouts, calibration = explicit_layouts(catalog, question), training_calibration(catalog)
    architecture, chip = layouts.architectures[0], layouts.keys[0].accelerator
    precision = PRECISIONS[int(layouts.layout.precision[0])]
    workload = make_workload(
        architecture,
        sequence_tokens=int(layouts.sequence_tokens[0]),
        # none is the usual one of the model; that of `layouts` is made for degrees of one
        global_batch=None if question.global_batch is None else int(layouts.layout.global_batch[0]),
        precision=precision,
        method=question.method,
        lora_rank=int(question.lora_rank),
        software=question.software,
        software_year=question.software_year,
        latest_year=layouts.latest_year,
        document_tokens=question.document_tokens,
        offload=question.offload,
        flash=question.flash,
        dispatcher=question.dispatcher,
    )
    job = job_of(workload, calibration)
    candidates, keys = timed_layouts(workload, job, layouts.keys, layouts.layout.gpus)
    reason, gpus = int(search.reduce_best(candidates, job, keys).reason[0]), int(layouts.layout.gpus[0])
    if reason == search.NO_TRAINING:
        raise NothingFitsError(f"{chip.id} {grid.FOR_INFERENCE}")
    if reason == search.NO_PRECISION:
        raise NothingFitsError(f"{chip.id} has no known {precision} peak. Try --precision bf16 or fp16.")
    if reason == search.NO_BATCH:
        raise NothingFitsError(
            f"{gpus} GPUs are more than a batch of {job.global_batch} sequences can use. Raise --global-batch."
        )
    if reason != search.FITS:
        raise NothingFitsError(
            f"no layout of {architecture.name} fits the memory of {gpus} × {chip.id}. "
            f"Use more GPUs, or name a layout: `gpucost fit --model {architecture.name} --gpu {chip.id}` has both."
        )
    fastest = candidates.take(np.argsort(-candidates.tokens_per_s_per_gpu, kind="stable")[:_MOST_ALTERNATIVES])
    chips = keys.hardware.take(keys.pair[fastest.key])
    memory = memory_gb(job, fastest.layout)
    steps = corrected(
        search.steps_of(fastest, keys),
        calibration.runs_of(question.software),
        Alike(job.shape, chips, fastest.layout, job.recipe, job.software),
    )
    best = replace(layouts, layout=fastest.layout.take(slice(0, 1)))
    answer = _described(best, case_of(best, calibration), calibration)
    answer["layouts_timed"] = len(candidates.key)
    answer["lead"] = _lead(answer, f"the fastest of {len(candidates.key):,} layouts that fit")
    answer["alternatives"] = [
        {
            **_layout_row(fastest.layout.layout(row)),
            "step_s": float(steps.total_s[row]),
            "tokens_per_s_per_gpu": float(steps.tokens_per_s_per_gpu[row]),
            "mfu_fraction": float(steps.mfu_fraction[row]),
            "memory_gib": float(memory[row]) * GB / GIB,
        }
        for row in range(len(fastest.key))
    ]
    return answer


def _layout_row(layout: Layout) -> LayoutRow:
    """Return a layout as a mapping."""
    return cast(LayoutRow, asdict(layout))


def _described(layouts: Layouts, case: TrainingCase, calibration: Calibration) -> shape.Timed:
    """Describe one timed case: speed with its range, MFU and HFU, the parts of the step and their bounds."""
    step = step_of(layouts, calibration, case)
    low, high = _interval_of(layouts, calibration, case, step)
    bounds, total_s = roofline.part_bounds(case, step), float(step.total_s[0])
    parts: list[shape.StepPart] = [
        {
            "part": name.removesuffix("_s"),
            "time_s": float(getattr(step, name)[0]),
            "share_fraction": float(getattr(step, name)[0]) / total_s,
            "bound": roofline.BOUNDS[int(bounds[name][0])] if name in bounds else "schedule",
        }
        for name in PARTS
    ]
    memory_recipe = from_training(case.recipe, class_of(layouts.question.software, calibration.stacks))
    needed_gib = float(training_memory(case.shape, case.layout, memory_recipe).total_bytes[0]) / GIB
    usable_gib = float(usable_bytes(case.hardware.memory_gib)[0]) / GIB
    architecture, key = layouts.architectures[0], layouts.keys[0]
    sequence, layout = case.recipe.sequence_tokens, case.layout
    # HFU counts what recomputation does again; MFU what the model needs.
    hardware_flop = float(transformer.hardware_flop(case.shape, sequence, layout.recompute, layout.flash)[0])
    speed, peak = float(step.tokens_per_s_per_gpu[0]), float(step.model_tflops[0] / step.mfu_fraction[0])
    answer: shape.Timed = {
        "lead": "",
        "model": architecture.name,
        "gpu": key.accelerator.id,
        "system": key.system.id,
        "layout": _layout_row(layout.layout(0)),
        "sequence_tokens": float(sequence[0]),
        "software": layouts.question.software,
        "tokens_per_s_per_gpu": speed,
        "tokens_per_s_per_gpu_low": float(low[0]),
        "tokens_per_s_per_gpu_high": float(high[0]),
        "tokens_per_s": speed * float(layout.gpus[0]),
        "step_s": total_s,
        "mfu_fraction": float(step.mfu_fraction[0]),
        "hfu_fraction": hardware_flop * speed / TERA / peak,
        "model_tflops": float(step.model_tflops[0]),
        "peak_tflops": peak,
        "model_flop_per_token_flop": float(
            transformer.model_flop(case.shape, sequence, frozen=case.recipe.method >= LORA)[0]
        ),
        "hardware_flop_per_token_flop": hardware_flop,
        "memory_gib": needed_gib,
        "usable_memory_gib": usable_gib,
        "fits": needed_gib <= usable_gib,
        "parts": parts,
    }
    answer["lead"] = _lead(answer, "the given layout")
    return answer


def _lead(answer: shape.Timed, how: str) -> str:
    """Return the answer in one sentence."""
    return (
        f"{answer['tokens_per_s_per_gpu']:,.0f} tokens/s per GPU (80 % range "
        f"{answer['tokens_per_s_per_gpu_low']:,.0f} to {answer['tokens_per_s_per_gpu_high']:,.0f}), "
        f"{answer['mfu_fraction']:.1%} MFU: {how}."
    )
