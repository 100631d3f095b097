"""All legal layouts for given numbers of accelerators as arrays, evaluated at once; the best by time.

A grid of degrees (tensor, pipeline, context, expert, micro-batch, virtual stages, sharding) is laid over every key,
a key being an accelerator in a system and a number of them. Data parallelism takes what the others leave. Each
candidate recomputes as little as its memory allows, so that only the fastest recomputation is timed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.physics.columns import (
    CHUNK,
    PRECISIONS,
    RECOMPUTES,
    Columns,
    Flags,
    Floats,
    Integers,
    LayoutColumns,
    code_of,
)
from gpucost.physics.hardware import HardwareColumns, hardware_columns, peak_tflops
from gpucost.physics.software import CLASSES
from gpucost.physics.training import steps as training
from gpucost.physics.training.cases import recipe_columns
from gpucost.physics.training.efficiency import resolve
from gpucost.physics.training.memory import training_memory, usable_bytes
from gpucost.physics.training.steps import Case, Recipe
from gpucost.physics.transformer import Shape, compute_parameters, stack
from gpucost.types import Accelerator, Architecture, System

CONTEXT_TOKENS = 4096  # fewer to a rank of a context group than any published recipe leaves
SMALL_HIDDEN = 2048  # width up to which micro-batches beyond a few sequences are usual
LEVELS = 32  # powers of two that a data-parallel degree may reach
USUAL_AGE_YEARS = 2.5  # software against the chip's launch, where no date is given

# Reasons, as codes: why a key has no layout.
REASONS = ("ok", "does not fit in memory", "the chip lacks the precision", "more accelerators than the batch can use")
FITS, NO_MEMORY, NO_PRECISION, NO_BATCH = range(4)


@dataclass(frozen=True, slots=True)
class Grid(Columns):
    """Combinations of degrees, without data parallelism."""

    tensor: Floats
    pipeline: Floats
    context: Floats
    expert: Floats
    micro_batch: Floats
    virtual_stages: Floats
    sharding: Integers

    @property
    def model_parallel(self) -> Floats:
        """Accelerators that hold one copy of the model."""
        return self.tensor * self.pipeline * self.context


@dataclass(frozen=True, slots=True)
class Job:
    """What is trained: one architecture and recipe, the batch, and the software that runs it."""

    shape: Shape
    recipe: Recipe
    sequence_tokens: float
    global_batch: int
    precision: int
    software: int
    software_year: float | None
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Keys:
    """Distinct pairs of accelerator and system, and the key of each request: a pair and a number of accelerators."""

    hardware: HardwareColumns  # one element per pair
    pair: Integers  # per key, index into `hardware`
    gpus: Floats  # per key


@dataclass(frozen=True, slots=True)
class Candidates(Columns):
    """Layouts that were timed: the key each belongs to, the layout, its speed and its memory."""

    key: Integers
    layout: LayoutColumns
    tokens_per_s_per_gpu: Floats
    memory_bytes: Floats

    def take(self, indices: Any) -> "Candidates":
        """Return the candidates that `indices` names."""
        return Candidates(
            self.key[indices],
            self.layout.take(indices),
            self.tokens_per_s_per_gpu[indices],
            self.memory_bytes[indices],
        )


@dataclass(frozen=True, slots=True)
class BestLayouts:
    """The best layout of each key; rows without one have `reason` other than 0 and NaN figures."""

    reason: Integers  # code into REASONS
    layout: LayoutColumns
    step: training.Step
    memory_bytes: Floats
    candidates: Integers  # legal layouts that were timed for the key

    @property
    def fits(self) -> Flags:
        """Whether a key has a layout."""
        found: Flags = self.reason == FITS
        return found


def default_global_batch(architecture: Architecture, sequence_tokens: float) -> int:
    """Return a batch in sequences such as published runs of that size used, in powers of two tokens.

    0.5 M tokens for 125 M parameters, 4 M from 7 B (GPT-3, Llama 2, Llama 3), 16 M from 200 B (Llama 3.1).
    """
    parameters = float(compute_parameters(stack([architecture]))[0])
    tokens = 2**19 if parameters < 7e8 else 2**20 if parameters < 3e9 else 2**22 if parameters < 2e11 else 2**24
    return max(1, int(tokens // sequence_tokens))


# The grid ----------------------------------------------------------------------------------------------------------


def powers(limit: float) -> list[int]:
    """Return the powers of two up to a limit, at least 1."""
    return [2**k for k in range(int(np.log2(max(limit, 1))) + 1)]


def axis_values(architecture: Architecture, sequence_tokens: float, global_batch: int, *, wide: bool) -> dict[str, Any]:
    """Return the values that each degree may take.

    Tensor degrees divide the heads; stages are at most the layers; expert degrees divide the experts; context
    degrees leave 4,096 tokens to a rank. The wide grid takes every value, the narrow one those in common use: small
    models take larger micro-batches.
    """
    a = architecture
    divisors = [p for p in range(1, 65) if a.layers % p == 0]
    stages = sorted({*powers(64 if wide else 16), *(divisors if wide else [])})
    expert = [e for e in powers(256 if wide else 64) if e == 1 or (a.experts and a.experts % e == 0)]
    small = a.hidden <= SMALL_HIDDEN
    return {
        "tensor": [t for t in powers(64 if wide else 2 if small else 8) if a.heads % t == 0],
        "pipeline": [p for p in stages if p <= a.layers],
        "context": [c for c in powers(64 if wide else 8) if c == 1 or sequence_tokens / c >= CONTEXT_TOKENS],
        "expert": expert[3:] if not wide and a.experts >= 8 else expert,
        "micro_batch": [b for b in powers(64 if small else 16 if wide else 4) if b <= global_batch],
        "sharding": [1, 3],
    }


def make_grid(
    architecture: Architecture,
    sequence_tokens: float,
    global_batch: int,
    *,
    wide: bool,
    fixed: Mapping[str, Sequence[int]] | None = None,
) -> Grid:
    """Return the combinations of degrees that an architecture allows; `fixed` replaces the values of some."""
    a = architecture
    axis = axis_values(a, sequence_tokens, global_batch, wide=wide) | dict(fixed or {})
    order = [axis[name] for name in ("tensor", "pipeline", "context", "expert", "micro_batch")]
    axes = np.meshgrid(*order, [0, 1], axis["sharding"], indexing="ij")
    t, p, c, e, b, interleaved, sharding = (axis.ravel() for axis in axes)
    virtual = np.where(interleaved == 1, np.clip(a.layers // p, 1, 4), 1)
    legal = ((interleaved == 0) | ((p > 1) & (virtual > 1))) & ((sharding < 3) | (p == 1))
    if not wide:  # interleaving costs little and shortens the bubble: where it is possible, nothing else is tried
        legal &= (interleaved == 1) | (p == 1) | (a.layers // p < 2)
    names = ("tensor", "pipeline", "context", "expert", "micro_batch", "virtual_stages")
    columns: dict[str, Any] = {n: x.astype(np.float64) for n, x in zip(names, (t, p, c, e, b, virtual), strict=True)}
    return Grid(**columns, sharding=sharding.astype(np.int64)).take(legal)


def grid_layouts(grid: Grid, job: Job, data: Floats, recompute: Integers) -> LayoutColumns:
    """Turn combinations and their data-parallel degrees into layouts."""
    count = len(grid)
    return LayoutColumns(
        gpus=grid.model_parallel * data,
        tensor=grid.tensor,
        pipeline=grid.pipeline,
        context=grid.context,
        expert=grid.expert,
        data=data,
        sharding=grid.sharding,
        micro_batch=grid.micro_batch,
        global_batch=np.full(count, float(job.global_batch)),
        virtual_stages=grid.virtual_stages,
        recompute=recompute,
        precision=np.full(count, job.precision, dtype=np.int64),
        flash=np.ones(count, dtype=np.bool_),
        sequence_parallel=np.ones(count, dtype=np.bool_),
    )


# Memory ------------------------------------------------------------------------------------------------------------


def distinct(numbers: Integers, size: int) -> tuple[Integers, Integers]:
    """Return the distinct numbers below `size` in order, and each number's position among them, without sorting.

    >>> distinct(np.array([5, 2, 5]), 8)
    (array([2, 5]), array([1, 0, 1]))
    """
    present = np.zeros(size, dtype=np.bool_)
    present[numbers] = True
    found = np.flatnonzero(present)
    place = np.zeros(size, dtype=np.int64)
    place[found] = np.arange(len(found))
    return found, place[numbers]


def memory_bytes(job: Job, layout: LayoutColumns) -> Floats:
    """Return the peak memory of layouts, in chunks."""
    parts = [training_memory(job.shape, layout.take(rows), job.recipe).total_bytes for rows in layout.chunks(CHUNK)]
    joined: Floats = np.concatenate(parts) if parts else np.zeros(0)
    return joined


def least_recompute(
    grid: Grid, job: Job, combo: Integers, data: Floats, capacity_bytes: Floats
) -> tuple[Integers, Floats]:
    """Return the least recomputation that fits each candidate, and the memory with it; infinite where none fits.

    Memory falls with the data-parallel degree, so that it is counted once for each power of two, at its lower end.
    """
    level = np.log2(data).astype(np.int64)
    number, where = distinct(combo * LEVELS + level, len(grid) * LEVELS)
    own, ranks = grid.take(number // LEVELS), np.exp2(number % LEVELS)
    tightest = np.full(len(number), np.inf)
    np.minimum.at(tightest, where, capacity_bytes)
    need = np.full((len(RECOMPUTES), len(number)), np.inf)
    open_rows = np.arange(len(number))
    for code in range(len(RECOMPUTES)):
        rows = own.take(open_rows)
        layout = grid_layouts(rows, job, ranks[open_rows], np.full(len(open_rows), code, dtype=np.int64))
        need[code, open_rows] = memory_bytes(job, layout)
        open_rows = open_rows[need[code, open_rows] > tightest[open_rows]]
    fits = need[:, where] <= capacity_bytes
    chosen: Integers = np.argmax(fits, axis=0)
    return chosen, np.where(np.any(fits, axis=0), need[chosen, where], np.inf)


# The search --------------------------------------------------------------------------------------------------------


def expand(grid: Grid, keys: Keys, global_batch: float) -> tuple[Integers, Integers, Floats]:
    """Return every pair of key and combination that multiplies out: (key, combination, data-parallel degree).

    A tensor group stays within one node or scale-up domain; data × micro-batch is at most the global batch; experts
    divide what tensor, context and data leave.
    """
    domain = np.maximum(keys.hardware.scaleup_gpus, keys.hardware.node_gpus)[keys.pair]
    parallel = grid.model_parallel
    found = []
    for size in sorted(set(parallel.tolist())):  # np.unique alone would load numpy.ma
        combos = np.flatnonzero(parallel == size)
        rows = np.flatnonzero(keys.gpus % size == 0)
        data = (keys.gpus[rows] / size)[:, None]
        legal = (data * grid.micro_batch[combos] <= global_batch) & (grid.tensor[combos] <= domain[rows][:, None])
        if np.any(grid.expert[combos] > 1):
            legal &= (data * grid.tensor[combos] * grid.context[combos]) % grid.expert[combos] == 0
        row, column = np.nonzero(legal)
        found.append((rows[row], combos[column], data[row, 0]))
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    keys_found, combos_found, data_found = (np.concatenate(part) for part in zip(*found, strict=True))
    return keys_found, combos_found, data_found


def search(grid: Grid, job: Job, keys: Keys) -> Candidates:
    """Time every candidate that fits, for every key."""
    key, combo, data = expand(grid, keys, job.global_batch)
    able = ~np.isnan(pair_peaks(job, keys.hardware))[keys.pair][key]
    key, combo, data = key[able], combo[able], data[able]
    capacity = usable_bytes(keys.hardware.memory_gib)[keys.pair]
    recompute, need = least_recompute(grid, job, combo, data, capacity[key])
    fits = np.isfinite(need)
    key, combo, data, recompute, need = key[fits], combo[fits], data[fits], recompute[fits], need[fits]
    layout = grid_layouts(grid.take(combo), job, data, recompute)
    pair = keys.pair[key]
    micro, where = micro_steps(grid, job, keys.hardware, pair, combo, recompute)
    speed = np.empty(len(key))
    for start in range(0, len(key), CHUNK):
        rows = slice(start, start + CHUNK)
        case = make_case(job, keys.hardware, layout.take(rows), pair[rows])
        speed[rows] = training.assemble(case, micro.take(where[rows])).tokens_per_s_per_gpu
    return Candidates(key=key, layout=layout, tokens_per_s_per_gpu=speed, memory_bytes=need)


def steps_of(found: Candidates, job: Job, keys: Keys) -> training.Step:
    """Return the whole step of candidates, by part."""
    if not len(found.key):
        return training.Step(*(np.zeros(0) for _ in training.Step.names()))
    return training.step(make_case(job, keys.hardware, found.layout, keys.pair[found.key]))


def pair_peaks(job: Job, hardware: HardwareColumns) -> Floats:
    """Return the dense peak of each pair at the job's precision."""
    return peak_tflops(hardware, np.full(len(hardware), job.precision, dtype=np.int64))


def make_case(job: Job, hardware: HardwareColumns, layout: LayoutColumns, pair: Integers) -> Case:
    """Join layouts and their hardware with the job; a single pair is shared by all, not repeated."""
    count = len(hardware)
    year = hardware.year + USUAL_AGE_YEARS if job.software_year is None else np.full(count, job.software_year)
    software = np.full(count, job.software, dtype=np.int64)
    efficiency = resolve(job.values, hardware.family, software, year, hardware.year)
    if count > 1:
        hardware, efficiency = hardware.take(pair), efficiency.take(pair)
    return Case(job.shape, hardware, layout, job.recipe, efficiency)


def micro_steps(
    grid: Grid, job: Job, hardware: HardwareColumns, pair: Integers, combo: Integers, recompute: Integers
) -> tuple[training.MicroStep, Integers]:
    """Time each distinct micro-batch once: it does not depend on how many copies of the model there are."""
    number = (pair * len(RECOMPUTES) + recompute) * len(grid) + combo
    own_number, where = distinct(number, len(hardware) * len(RECOMPUTES) * len(grid))
    rest, own_combo = np.divmod(own_number, len(grid))
    own_pair, own_recompute = np.divmod(rest, len(RECOMPUTES))
    own = grid.take(own_combo)
    layout = grid_layouts(own, job, np.ones(len(own)), own_recompute)
    pieces = []
    for rows in layout.chunks(CHUNK):
        case = make_case(job, hardware, layout.take(rows), own_pair[rows])
        pieces.append(training.micro_step(case))
    micro = training.MicroStep.concatenate(pieces) if pieces else empty_micro()
    return micro, where


def empty_micro() -> training.MicroStep:
    """Return a micro-step of no rows."""
    return training.MicroStep(*(np.zeros(0) for _ in training.MicroStep.names()))


# Public ------------------------------------------------------------------------------------------------------------


def make_job(
    architecture: Architecture,
    *,
    sequence_tokens: float,
    global_batch: int | None,
    precision: str,
    method: str,
    lora_rank: int,
    software: str,
    software_year: float | None,
    values: Mapping[str, float],
    adapter_share: float = 1.0,
) -> Job:
    """Describe a training job for the search."""
    batch = global_batch or default_global_batch(architecture, sequence_tokens)
    return Job(
        shape=stack([architecture]),
        recipe=recipe_columns(
            1, sequence_tokens, method=method, adapter_rank=float(lora_rank), adapter_share=adapter_share
        ),
        sequence_tokens=sequence_tokens,
        global_batch=batch,
        precision=code_of(precision, PRECISIONS, "precision"),
        software=code_of(software, CLASSES, "software class"),
        software_year=software_year,
        values=values,
    )


def make_keys(accelerators: Sequence[Accelerator], systems: Sequence[System], gpus: Sequence[float]) -> Keys:
    """Group requests into distinct pairs of accelerator and system."""
    index: dict[tuple[Any, ...], int] = {}
    seen: dict[tuple[int, int], int] = {}
    pairs: list[tuple[Accelerator, System]] = []
    order = []
    for accelerator, system in zip(accelerators, systems, strict=True):
        same = (id(accelerator), id(system))
        if same not in seen:
            network = (system.scaleup_gb_per_s, system.scaleup_gpus, system.scaleout_gb_per_s, system.gpus)
            seen[same] = index.setdefault((accelerator.id, *network), len(pairs))
            if seen[same] == len(pairs):
                pairs.append((accelerator, system))
        order.append(seen[same])
    hardware = hardware_columns([a for a, _ in pairs], [s for _, s in pairs])
    return Keys(hardware, np.array(order, dtype=np.int64), np.asarray(gpus, dtype=np.float64))


def best_layouts(
    architecture: Architecture,
    accelerators: Sequence[Accelerator],
    systems: Sequence[System],
    gpus: Sequence[float] | NDArray[Any],
    *,
    values: Mapping[str, float],
    sequence_tokens: float = 8192,
    global_batch: int | None = None,
    precision: str = "bf16",
    method: str = "full",
    lora_rank: int = 16,
    adapter_share: float = 1.0,
    software: str = "vendor",
    software_year: float | None = None,
    wide: bool = False,
) -> BestLayouts:
    """Return the fastest layout for each key i = (accelerators[i], systems[i], gpus[i]).

    Row i does not depend on the others. Ties go to the earlier combination of the grid: less tensor, then less
    pipeline, then less context parallelism.
    """
    job = make_job(
        architecture, sequence_tokens=sequence_tokens, global_batch=global_batch, precision=precision, method=method,
        lora_rank=lora_rank, software=software, software_year=software_year, values=values, adapter_share=adapter_share,
    )  # fmt: skip
    grid = make_grid(architecture, sequence_tokens, job.global_batch, wide=wide)
    keys = make_keys(accelerators, systems, list(gpus))
    return reduce_best(search(grid, job, keys), job, keys)


def reduce_best(found: Candidates, job: Job, keys: Keys) -> BestLayouts:
    """Keep the fastest candidate of each key; say why a key has none."""
    count = len(keys.gpus)
    speed = found.tokens_per_s_per_gpu
    fastest = np.full(count, -np.inf)
    np.maximum.at(fastest, found.key, speed)
    winners = np.flatnonzero(speed == fastest[found.key])
    where = np.full(count, -1)
    where[found.key[winners][::-1]] = winners[::-1]  # of equals, the earliest
    names = np.flatnonzero(where >= 0)
    chosen = found.take(where[names])
    candidates = np.bincount(found.key, minlength=count)
    lacking = np.isnan(pair_peaks(job, keys.hardware))[keys.pair]
    reason = np.where(lacking, NO_PRECISION, np.where(keys.gpus > job.global_batch * 64, NO_BATCH, NO_MEMORY))
    reason[names] = FITS
    place = np.full(count, -1)
    place[names] = np.arange(len(names))
    return BestLayouts(
        reason=reason,
        layout=spread(chosen.layout, place),
        step=spread(steps_of(chosen, job, keys), place),
        memory_bytes=np.append(chosen.memory_bytes, np.nan)[place],
        candidates=candidates,
    )


def spread(columns: Any, where: Integers) -> Any:
    """Place rows at their keys; keys without a row get NaN, or zero in integer columns."""
    filled = {}
    for name in columns.names():
        values = getattr(columns, name)
        empty = np.nan if values.dtype.kind == "f" else 0
        filled[name] = np.append(values, np.array([empty], dtype=values.dtype))[where]
    return type(columns)(**filled)
