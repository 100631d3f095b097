"""Explicit layouts and searches of one model on one kind of accelerator: the engine behind `gpucost throughput`.

It joins names from the catalog with the physics. One case is an array of length one; columns of cases take the same
path, in chunks, and answer with arrays and a reason code per case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.physics import transformer
from gpucost.physics.columns import CHUNK, PRECISIONS, RECOMPUTES, Floats, Integers, LayoutColumns, code_of
from gpucost.physics.hardware import HardwareColumns, hardware_columns
from gpucost.physics.training import calibration as cal
from gpucost.physics.training import layouts as search
from gpucost.physics.training import legality
from gpucost.physics.training import steps as training
from gpucost.physics.training.cases import build_case, recipe_columns, software_codes
from gpucost.physics.training.grid import default_global_batch
from gpucost.types import Accelerator, Architecture, System
from gpucost.validation.fitted import current

PLAN_SOFTWARE = "unknown"  # the mean of typical stacks; the range says what others reach


@dataclass(frozen=True, slots=True)
class Cases:
    """Explicit cases: layouts on accelerators, any number of them."""

    architectures: Sequence[Architecture]
    pairs: Sequence[tuple[Accelerator, System]]
    model: Integers  # index into architectures
    pair: Integers  # index into pairs
    layout: LayoutColumns
    sequence_tokens: Floats
    method: str
    lora_rank: float
    software: str
    software_year: float | None


@dataclass(frozen=True, slots=True)
class Speeds:
    """Answers as columns: seconds by part, speed with its range, and why a row has none."""

    reason: Integers  # code into legality.REASONS; figures of a row with a reason are NaN
    step: training.Step
    low_tokens_per_s_per_gpu: Floats
    high_tokens_per_s_per_gpu: Floats


def evaluate(cases: Cases, calibration: cal.Calibration) -> Speeds:
    """Time explicit cases in chunks."""
    shape = transformer.stack(cases.architectures)
    hardware = hardware_columns([a for a, _ in cases.pairs], [s for _, s in cases.pairs])
    parts = [piece(cases, calibration, shape, hardware, rows) for rows in cases.layout.chunks(CHUNK)]
    return Speeds(
        reason=np.concatenate([part.reason for part in parts]),
        step=training.Step.concatenate([part.step for part in parts]),
        low_tokens_per_s_per_gpu=np.concatenate([part.low_tokens_per_s_per_gpu for part in parts]),
        high_tokens_per_s_per_gpu=np.concatenate([part.high_tokens_per_s_per_gpu for part in parts]),
    )


def piece(
    cases: Cases, calibration: cal.Calibration, shape: transformer.Shape, hardware: HardwareColumns, rows: slice
) -> Speeds:
    """Time one chunk of cases."""
    layout = cases.layout.take(rows)
    chip = hardware.take(cases.pair[rows])
    own = shape if len(shape) == 1 else shape.take(cases.model[rows])
    sequence = cases.sequence_tokens[rows]
    reason = legality.reason_codes(own, chip, layout, sequence)
    with np.errstate(all="ignore"):
        case = make_case(cases, calibration, own, chip, layout, sequence)
        step = training.step(case)
        traits = cal.traits(case, software_of(cases, len(layout)), step, stated_layout=True)
        low, high = cal.interval(step.tokens_per_s_per_gpu, traits, calibration.ranges)
    legal = reason == legality.OK
    columns = {name: np.where(legal, getattr(step, name), np.nan) for name in step.names()}
    return Speeds(reason, training.Step(**columns), np.where(legal, low, np.nan), np.where(legal, high, np.nan))


def software_of(cases: Cases, count: int) -> Integers:
    """Return the software class of each case."""
    return np.broadcast_to(software_codes([cases.software]), (count,))


def make_case(
    cases: Cases,
    calibration: cal.Calibration,
    shape: transformer.Shape,
    hardware: HardwareColumns,
    layout: LayoutColumns,
    sequence: Floats,
) -> training.Case:
    """Join the parts of explicit cases."""
    count = len(layout)
    recipe = recipe_columns(count, sequence, method=cases.method, adapter_rank=cases.lora_rank)
    year = (
        hardware.year + search.USUAL_AGE_YEARS if cases.software_year is None else np.full(count, cases.software_year)
    )
    software = software_of(cases, count)
    return build_case(shape, hardware, layout, recipe, calibration.values, software=software, software_year=year)


# Names and defaults --------------------------------------------------------------------------------------------------

DEGREES = ("tensor", "pipeline", "context", "expert", "data", "micro_batch", "virtual_stages", "sharding")


def resolve_system(catalog: Catalog, gpu: str, system: str | None) -> tuple[Accelerator, System]:
    """Return the accelerator that a name means and its node: the one named, else its default."""
    if system is None:
        accelerator = catalog.accelerator(gpu)
        return accelerator, catalog.default_system(accelerator.id)
    node = catalog.system(system)
    accelerator = catalog.accelerator(gpu or node.accelerator_id)
    if node.accelerator_id != accelerator.id:
        raise UsageError(f"system {node.id} has {node.accelerator_id}, not {accelerator.id}. Leave one of them out.")
    return accelerator, node


def default_precision(accelerator: Accelerator, precision: str | None) -> str:
    """Return the precision asked for, else bf16, or fp16 on chips without it."""
    return precision or ("bf16" if accelerator.bf16_tflops else "fp16")


def array_of(value: Any, name: str) -> NDArray[np.float64]:
    """Return numbers as an array, or say which argument is none."""
    try:
        return np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise UsageError(f"{name}: cannot read {value!r} as a number.") from None


def texts(value: str | Sequence[str], count: int) -> list[str]:
    """Return one text per case."""
    return [value] * count if isinstance(value, str) else list(value)


@dataclass(frozen=True, slots=True)
class Wanted:
    """An explicit question as given: scalars or columns; None where nothing was said."""

    model: str | Sequence[str]
    gpu: str | Sequence[str]
    gpus: ArrayLike
    system: str | None = None
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
    recompute: str | Sequence[str] | None = None
    precision: str | Sequence[str] | None = None
    method: str = "full"
    lora_rank: float = 16.0
    software: str = PLAN_SOFTWARE
    software_year: float | None = None
    flash: bool = True

    @property
    def scalar(self) -> bool:
        """Whether every argument is a single value: one question, answered with an error or a result."""
        return all(
            isinstance(value, str) or value is None or np.ndim(value) == 0
            for value in (getattr(self, field.name) for field in fields(self))
        )

    @property
    def explicit(self) -> bool:
        """Whether any degree is given, so that the rest are taken as one instead of searched."""
        return any(getattr(self, name) is not None for name in (*DEGREES, "recompute"))


def explicit_cases(catalog: Catalog, wanted: Wanted) -> Cases:
    """Turn a question into cases: names resolved once each, numbers broadcast to one length."""
    numbers = {name: getattr(wanted, name) for name in ("gpus", *DEGREES, "global_batch", "sequence")}
    given = {name: array_of(value, name) for name, value in numbers.items() if value is not None}
    words = [wanted.model, wanted.gpu, wanted.recompute or "none", wanted.precision or ""]
    lengths = {len(value) for value in given.values()} | {len(w) for w in words if not isinstance(w, str)}
    count = max(lengths, default=1)
    if 0 in lengths:
        raise UsageError("a column is empty. Give at least one case.")
    if lengths - {1, count}:
        raise UsageError(
            f"columns of different lengths: {', '.join(map(str, sorted(lengths)))}. Give one length, or single values."
        )
    models, gpus = texts(wanted.model, count), texts(wanted.gpu, count)
    names = {name: catalog.architecture(name) for name in dict.fromkeys(models)}
    chips = {name: resolve_system(catalog, name, wanted.system) for name in dict.fromkeys(gpus)}
    model = np.array([list(names).index(name) for name in names], dtype=np.int64)[positions(models, names)]
    pair = positions(gpus, chips)
    first = next(iter(names.values()))
    sequence = given.get("sequence", np.array([float(default_sequence(first))]))
    layout = complete_layout(wanted, given, count, first, chips[gpus[0]][0], float(sequence[0]))
    return Cases(
        architectures=list(names.values()), pairs=list(chips.values()), model=model, pair=pair, layout=layout,
        sequence_tokens=np.broadcast_to(sequence, (count,)), method=wanted.method, lora_rank=wanted.lora_rank,
        software=wanted.software, software_year=wanted.software_year,
    )  # fmt: skip


def positions(words: Sequence[str], index: Mapping[str, Any]) -> Integers:
    """Return each word's position among the distinct ones."""
    place = {name: number for number, name in enumerate(index)}
    return np.fromiter((place[word] for word in words), dtype=np.int64, count=len(words))


def default_sequence(architecture: Architecture) -> int:
    """Return the sequence that is assumed where none is given: the model's own, at most 8,192."""
    return min(architecture.max_sequence_tokens or 8192, 8192)


def complete_layout(
    wanted: Wanted,
    given: Mapping[str, Floats],
    count: int,
    architecture: Architecture,
    chip: Accelerator,
    sequence: float,
) -> LayoutColumns:
    """Fill in what a layout leaves open: degrees of one, data parallelism by division, a batch usual for the model."""

    def column(name: str, default: ArrayLike = 1.0) -> Floats:
        return np.broadcast_to(given.get(name, np.asarray(default, dtype=np.float64)), (count,))

    tensor, pipeline, context = column("tensor"), column("pipeline"), column("context")
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.floor(column("gpus") / (tensor * pipeline * context))
    data, micro = column("data", rest), column("micro_batch")
    usual = default_global_batch(architecture, sequence)
    with np.errstate(invalid="ignore"):
        batch = np.ceil(usual / np.maximum(data * micro, 1)) * data * micro
    recompute = texts(wanted.recompute or "none", count)
    precision = texts(wanted.precision or default_precision(chip, None), count)
    sharding = column("sharding", 1.0)
    return LayoutColumns(
        gpus=column("gpus"), tensor=tensor, pipeline=pipeline, context=context, expert=column("expert"), data=data,
        sharding=np.where(np.isfinite(sharding), sharding, 0).astype(np.int64), micro_batch=micro,
        global_batch=column("global_batch", batch), virtual_stages=column("virtual_stages"),
        recompute=codes(recompute, RECOMPUTES, "recompute"), precision=codes(precision, PRECISIONS, "precision"),
        flash=np.full(count, wanted.flash), sequence_parallel=np.ones(count, dtype=np.bool_),
    )  # fmt: skip


def codes(words: Sequence[str], names: Sequence[str], what: str) -> Integers:
    """Return the codes of words of a closed list."""
    table = {word: code_of(word, names, what) for word in dict.fromkeys(words)}
    return np.fromiter((table[word] for word in words), dtype=np.int64, count=len(words))


def columns_answer(catalog: Catalog, wanted: Wanted) -> tuple[Cases, Speeds]:
    """Answer a column of questions: arrays, with a reason code where a case cannot exist."""
    cases = explicit_cases(catalog, wanted)
    return cases, evaluate(cases, current(catalog))
