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

from gpucost.physics import training
from gpucost.physics.cases import recipe_columns
from gpucost.physics.columns import (
    CHUNK, METHODS, PRECISIONS, RECOMPUTES, Columns, Flags, Floats, Integers, LayoutColumns, code_of,
)  # fmt: skip
from gpucost.physics.efficiency import resolve
from gpucost.physics.hardware import HardwareColumns, hardware_columns, peak_tflops
from gpucost.physics.software import CLASSES
from gpucost.physics.training import Case, Recipe
from gpucost.physics.transformer import Shape, compute_parameters, parameter_parts, stack, total_parameters
from gpucost.types import Accelerator, Architecture, System

GIB = 2.0**30
USABLE_FRACTION = 0.94  # of the device memory: context, communication buffers and fragmentation take the rest
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
    """Layouts that were timed: the key each belongs to, the layout, its step and its memory."""

    key: Integers
    layout: LayoutColumns
    step: training.Step
    memory_bytes: Floats

    def take(self, indices: Any) -> "Candidates":
        """Return the candidates that `indices` names."""
        return Candidates(
            self.key[indices], self.layout.take(indices), self.step.take(indices), self.memory_bytes[indices]
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


def make_grid(architecture: Architecture, sequence_tokens: float, global_batch: int, *, wide: bool) -> Grid:
    """Return the degrees that an architecture allows.

    Tensor degrees divide the heads; stages are at most the layers; expert degrees divide the experts; context
    degrees leave 2,048 tokens to a rank. The wide grid takes every value, the narrow one those in common use.
    """
    a = architecture
    tensor = [t for t in powers(64 if wide else 16) if a.heads % t == 0]
    divisors = [p for p in range(1, 65) if a.layers % p == 0]
    stages = sorted({*powers(64), *(divisors if wide else [])})
    pipeline = [p for p in stages if p <= a.layers]
    context = [c for c in powers(64 if wide else 8) if c == 1 or sequence_tokens / c >= 2048]
    expert = [e for e in powers(256 if wide else 64) if e == 1 or (a.experts and a.experts % e == 0)]
    if not wide and a.experts >= 8:
        expert = expert[3:]
    micro = [b for b in powers(16 if wide else 4) if b <= global_batch]
    axes = np.meshgrid(tensor, pipeline, context, expert, micro, [0, 1], [1, 3], indexing="ij")
    t, p, c, e, b, interleaved, sharding = (axis.ravel() for axis in axes)
    virtual = np.where(interleaved == 1, np.clip(a.layers // p, 1, 4), 1)
    legal = ((interleaved == 0) | ((p > 1) & (virtual > 1))) & ((sharding == 1) | (p == 1))
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


@dataclass(frozen=True, slots=True)
class Footprint:
    """Memory of each combination and recomputation as fixed + shared ÷ data: only sharded states fall with data."""

    fixed_bytes: NDArray[np.float64]  # recompute codes × combinations
    shared_bytes: NDArray[np.float64]


def footprint(grid: Grid, job: Job) -> Footprint:
    """Return the memory of a grid as a line in 1/data, from two evaluations."""
    count, codes = len(grid), len(RECOMPUTES)
    repeated = grid.take(np.tile(np.arange(count), codes))
    recompute = np.repeat(np.arange(codes), count)
    ranks = np.maximum(repeated.expert / (repeated.tensor * repeated.context), 1.0)
    at = []
    for factor in (1.0, 64.0):
        layout = grid_layouts(repeated, job, ranks * factor, recompute)
        at.append(memory_bytes(job, layout))
    shared = (at[0] - at[1]) / (1 - 1 / 64.0) * ranks
    fixed = at[0] - shared / ranks
    return Footprint(fixed.reshape(codes, count), shared.reshape(codes, count))


def memory_bytes(job: Job, layout: LayoutColumns) -> Floats:
    """Return the peak memory of layouts, in chunks."""
    parts = []
    for rows in layout.chunks(CHUNK):
        piece = layout.take(rows)
        parts.append(rough_bytes(job.shape, piece, job.recipe))
    joined: Floats = np.concatenate(parts)
    return joined


def rough_bytes(shape: Shape, layout: LayoutColumns, recipe: Recipe) -> Floats:
    """Return weights, gradients, optimizer states and activations of one accelerator (arXiv:2205.05198, section 4)."""
    split = layout.tensor * layout.pipeline
    routed = parameter_parts(shape).routed_experts
    dense = (total_parameters(shape) - routed) / split
    expert = routed / (np.where(layout.expert > 1, layout.expert, layout.tensor) * layout.pipeline)
    ranks = layout.data * layout.context
    spread = np.where(layout.expert > 1, np.maximum(ranks * layout.tensor / layout.expert, 1.0), ranks)
    tuned = recipe.method >= 1
    whole = np.where(tuned, np.where(recipe.method == 2, 0.6, 2.0), 6.0)
    part = np.where(tuned, 0.0, 12.0)
    held = np.where(layout.sharding >= 3, 0.0, whole)
    states = dense * held + expert * held
    shared = np.where(layout.sharding >= 3, whole + part, part)
    states = states + dense * shared / ranks + expert * shared / spread
    tokens = layout.micro_batch * recipe.sequence_tokens / layout.context
    ffn = np.where(shape.experts > 0, shape.experts_per_token * shape.expert_ffn_hidden, shape.ffn_hidden)
    each = np.where(
        layout.recompute == 2, 2 * shape.hidden,
        (16 * shape.hidden + 4 * shape.kv_heads * shape.head_dim + 8 * ffn * np.where(layout.recompute == 1, 0.6, 1.0))
        / layout.tensor,
    )  # fmt: skip
    stages = np.minimum(layout.pipeline, layout.micro_batches) * (1 + (layout.virtual_stages > 1) * 0.5)
    activations = tokens * each * np.ceil(shape.layers / layout.pipeline) * stages
    logits = tokens * shape.vocab / layout.tensor * 6
    return states + activations + logits + 1.5e9


# The search --------------------------------------------------------------------------------------------------------


def expand(grid: Grid, keys: Keys, global_batch: float) -> tuple[Integers, Integers, Floats]:
    """Return every pair of key and combination that multiplies out: (key, combination, data-parallel degree).

    A tensor group stays within one node or scale-up domain; data × micro-batch is at most the global batch; experts
    divide what tensor, context and data leave.
    """
    domain = np.maximum(keys.hardware.scaleup_gpus, keys.hardware.node_gpus)[keys.pair]
    parallel = grid.model_parallel
    found = []
    for size in np.unique(parallel):
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


def least_recompute(
    memory: Footprint, combo: Integers, data: Floats, capacity_bytes: Floats
) -> tuple[Integers, Floats, Flags]:
    """Return the least recomputation that fits, the memory with it, and whether any fits."""
    need = memory.fixed_bytes[:, combo] + memory.shared_bytes[:, combo] / data
    fits = need <= capacity_bytes
    code: Integers = np.argmax(fits, axis=0)
    least: Floats = np.take_along_axis(need, code[None, :], axis=0)[0]
    some: Flags = np.any(fits, axis=0)
    return code, least, some


def search(grid: Grid, job: Job, keys: Keys) -> Candidates:
    """Time every candidate that fits, for every key."""
    key, combo, data = expand(grid, keys, job.global_batch)
    memory = footprint(grid, job)
    capacity = keys.hardware.memory_gib[keys.pair] * GIB * USABLE_FRACTION
    recompute, need, fits = least_recompute(memory, combo, data, capacity[key])
    fits &= ~np.isnan(pair_peaks(job, keys.hardware))[keys.pair][key]
    key, combo, data, recompute, need = key[fits], combo[fits], data[fits], recompute[fits], need[fits]
    layout = grid_layouts(grid.take(combo), job, data, recompute)
    pair = keys.pair[key]
    micro, where = micro_steps(grid, job, keys.hardware, pair, combo, recompute)
    steps = []
    for start in range(0, len(key), CHUNK):
        rows = slice(start, start + CHUNK)
        hardware = keys.hardware.take(pair[rows])
        case = make_case(job, hardware, layout.take(rows))
        steps.append(training.assemble(case, micro.take(where[rows])))
    step = training.Step.concatenate(steps) if steps else empty_step()
    return Candidates(key=key, layout=layout, step=step, memory_bytes=need)


def pair_peaks(job: Job, hardware: HardwareColumns) -> Floats:
    """Return the dense peak of each pair at the job's precision."""
    return peak_tflops(hardware, np.full(len(hardware), job.precision, dtype=np.int64))


def make_case(job: Job, hardware: HardwareColumns, layout: LayoutColumns) -> Case:
    """Join layouts and their hardware with the job."""
    count = len(hardware)
    year = hardware.year + USUAL_AGE_YEARS if job.software_year is None else np.full(count, job.software_year)
    software = np.full(count, job.software, dtype=np.int64)
    efficiency = resolve(job.values, hardware.family, software, year, hardware.year)
    return Case(job.shape, hardware, layout, job.recipe, efficiency)


def micro_steps(
    grid: Grid, job: Job, hardware: HardwareColumns, pair: Integers, combo: Integers, recompute: Integers
) -> tuple[training.MicroStep, Integers]:
    """Time each distinct micro-batch once: it does not depend on how many copies of the model there are."""
    number = (pair * len(RECOMPUTES) + recompute) * len(grid) + combo
    distinct, where = np.unique(number, return_inverse=True)
    rest, own_combo = np.divmod(distinct, len(grid))
    own_pair, own_recompute = np.divmod(rest, len(RECOMPUTES))
    own = grid.take(own_combo)
    layout = grid_layouts(own, job, np.ones(len(own)), own_recompute)
    pieces = []
    for rows in layout.chunks(CHUNK):
        case = make_case(job, hardware.take(own_pair[rows]), layout.take(rows))
        pieces.append(training.micro_step(case))
    micro = training.MicroStep.concatenate(pieces) if pieces else empty_micro()
    return micro, where


def empty_step() -> training.Step:
    """Return a step of no rows."""
    return training.Step(*(np.zeros(0) for _ in training.Step.names()))


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
) -> Job:
    """Describe a training job for the search."""
    batch = global_batch or default_global_batch(architecture, sequence_tokens)
    return Job(
        shape=stack([architecture]),
        recipe=recipe_columns(1, sequence_tokens, method=method, adapter_rank=float(lora_rank)),
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
    pairs: list[tuple[Accelerator, System]] = []
    order = []
    for accelerator, system in zip(accelerators, systems, strict=True):
        network = (system.scaleup_gb_per_s, system.scaleup_gpus, system.scaleout_gb_per_s, system.gpus)
        name = (accelerator.id, *network)
        if name not in index:
            index[name] = len(pairs)
            pairs.append((accelerator, system))
        order.append(index[name])
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
        lora_rank=lora_rank, software=software, software_year=software_year, values=values,
    )  # fmt: skip
    grid = make_grid(architecture, sequence_tokens, job.global_batch, wide=wide)
    keys = make_keys(accelerators, systems, list(gpus))
    return reduce_best(search(grid, job, keys), job, keys)


def reduce_best(found: Candidates, job: Job, keys: Keys) -> BestLayouts:
    """Keep the fastest candidate of each key; say why a key has none."""
    count = len(keys.gpus)
    order = np.lexsort((np.arange(len(found.key)), -found.step.tokens_per_s_per_gpu, found.key))
    names, first = np.unique(found.key[order], return_index=True)
    chosen = found.take(order[first])
    candidates = np.bincount(found.key, minlength=count)
    lacking = np.isnan(pair_peaks(job, keys.hardware))[keys.pair]
    reason = np.where(lacking, NO_PRECISION, np.where(keys.gpus > job.global_batch * 64, NO_BATCH, NO_MEMORY))
    reason[names] = FITS
    where = np.full(count, -1)
    where[names] = np.arange(len(names))
    return BestLayouts(
        reason=reason,
        layout=spread(chosen.layout, where),
        step=spread(chosen.step, where),
        memory_bytes=np.where(where >= 0, np.append(chosen.memory_bytes, np.nan)[where], np.nan),
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
