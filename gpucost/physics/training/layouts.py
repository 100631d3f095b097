"""All legal layouts for given numbers of accelerators as arrays, evaluated at once; the best by time.

A grid of degrees (physics/training/grid.py) is laid over every key, a key being an accelerator in a system and a number
of them. Data parallelism takes what the others leave. Each candidate recomputes as little as its memory allows
(physics/training/recomputation.py), so that only the fastest recomputation is timed; what several candidates share is
evaluated once.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpucost.physics.columns import (
    CHUNK,
    PRECISIONS,
    RECOMPUTES,
    Flags,
    Floats,
    Integers,
    LayoutColumns,
    Packing,
    code_of,
    distinct,
)
from gpucost.physics.hardware import HardwareColumns, hardware_columns, peak_tflops
from gpucost.physics.software import CLASSES, decimal_year
from gpucost.physics.training import steps as training
from gpucost.physics.training.cases import MicroStep, Step, TrainingCase, recipe_columns
from gpucost.physics.training.defaults import default_batch
from gpucost.physics.training.efficiency import UNSAID, Efficiencies, resolve
from gpucost.physics.training.grid import USUAL_EXPERT, Grid, make_grid
from gpucost.physics.training.memory import from_training, usable_bytes
from gpucost.physics.training.recomputation import Job, grid_layouts, least_recompute
from gpucost.physics.transformer import stack
from gpucost.types import Accelerator, Architecture, System

USUAL_AGE_YEARS = 2.5  # software against the chip's launch, where no date is given
USUAL_YEAR = 2024.5  # before which nobody's software is who plans today
NEWEST_YEAR = 2026.9  # of the software that was measured: nobody plans with what comes later

# Reasons, as codes: why a key has no layout.
REASONS = (
    "ok",
    "does not fit in memory",
    "the chip lacks the precision",
    "more accelerators than the batch can use",
    "the chip is made for inference alone",
)
FITS, NO_MEMORY, NO_PRECISION, NO_BATCH, NO_TRAINING = range(5)


class Keys(Struct, frozen=True):
    """Distinct pairs of accelerator and system, and the key of each request: a pair and a number of accelerators."""

    hardware: HardwareColumns  # one element per pair
    precision: Integers  # of each pair's products, code into PRECISIONS
    pair: Integers  # per key, index into `hardware`
    gpus: Floats  # per key


class Candidates(Struct, frozen=True):
    """Layouts that were timed: the key each belongs to, the layout, its speed, memory and micro-batch."""

    key: Integers
    layout: LayoutColumns
    tokens_per_s_per_gpu: Floats
    memory_bytes: Floats
    micro: Integers  # index into `micro_steps`
    micro_steps: MicroStep  # the distinct micro-batches of the search
    setting: "SearchSetting"
    possible: Flags  # per key of the search: some layout multiplies out and has a batch for each copy

    def take(self, indices: Any) -> "Candidates":
        """Return the candidates that `indices` names."""
        return Candidates(
            self.key[indices],
            self.layout.take(indices),
            self.tokens_per_s_per_gpu[indices],
            self.memory_bytes[indices],
            self.micro[indices],
            self.micro_steps,
            self.setting,
            self.possible,
        )


class BestLayouts(Struct, frozen=True):
    """The best layout of each key; rows without one have `reason` other than 0 and NaN figures."""

    reason: Integers  # code into REASONS
    layout: LayoutColumns
    step: Step
    memory_bytes: Floats
    candidates: Integers  # legal layouts that were timed for the key

    @property
    def fits(self) -> Flags:
        """Whether a key has a layout."""
        fitting: Flags = self.reason == FITS
        return fitting


def _expand(grid: Grid, keys: Keys, able: Flags, global_batch: float) -> tuple[Integers, Integers, Floats]:
    """Return every pair of able key and combination that multiplies out: (key, combination, data-parallel degree).

    A tensor group stays within one node or scale-up domain; data × micro-batch is at most the global batch; experts
    divide what tensor, context and data leave.
    """
    domain = np.maximum(keys.hardware.scaleup_gpus, keys.hardware.node_gpus)[keys.pair]
    # Combinations of one size, and of one need of many accelerators, multiply out for the same keys: these are matched
    # by size, and each match spread over the combinations of it.
    code = 2 * grid.model_parallel + grid.few_expert
    codes = np.array(sorted(set(code.tolist())))  # np.unique alone would load numpy.ma
    sizes, few = codes[:, None] // 2, codes[:, None] % 2 > 0
    of_size = np.searchsorted(codes, code)
    by_size, many = np.argsort(of_size, kind="stable"), np.bincount(of_size, minlength=len(codes))
    size, row = np.nonzero(able & (keys.gpus % sizes == 0) & (~few | (keys.gpus % USUAL_EXPERT > 0)))
    pair = np.repeat(np.arange(len(size)), many[size])  # one element for each combination that a size and a key have
    first = (np.cumsum(many) - many)[size] - (np.cumsum(many[size]) - many[size])
    combo = by_size[np.arange(len(pair)) + first[pair]]
    key, data = row[pair], (keys.gpus[row] / sizes[size, 0])[pair]
    # tests that hold for the whole grid are spared
    legal = data * grid.micro_batch[combo] <= global_batch
    if float(np.min(domain, initial=np.inf)) < np.max(grid.tensor, initial=0.0):
        legal &= grid.tensor[combo] <= domain[key]
    if np.any(grid.expert > 1):
        legal &= (data * grid.tensor[combo] * grid.context[combo]) % grid.expert[combo] == 0
    pairs = np.flatnonzero(legal)
    return key.take(pairs), combo.take(pairs), data.take(pairs)


# The search --------------------------------------------------------------------------------------------------------


class SearchSetting(Struct, frozen=True):
    """A job on the pairs of the search: hardware, precision and efficiencies, one element per pair."""

    job: Job
    hardware: HardwareColumns
    precision: Integers
    efficiency: Efficiencies

    def case(self, layout: LayoutColumns, pair: Integers) -> TrainingCase:
        """Join layouts and their hardware with the job; a single pair is shared by all, not repeated."""
        hardware, efficiency = self.hardware, self.efficiency
        if len(hardware) > 1:
            hardware, efficiency = hardware.take(pair), efficiency.take(pair)
        return TrainingCase(self.job.shape, hardware, layout, self.job.recipe, efficiency)


def usual_year(hardware: HardwareColumns, latest_year: float = np.inf) -> Floats:
    """Return the age of the software where no date is given, never newer than the question's day."""
    usual = np.clip(hardware.year + USUAL_AGE_YEARS, USUAL_YEAR, np.maximum(NEWEST_YEAR, hardware.year))
    return np.minimum(usual, latest_year)


def year_of(job: Job, hardware: HardwareColumns) -> Floats:
    """Return the age of a job's software on each chip."""
    usual = usual_year(hardware, job.latest_year)
    return usual if job.software_year is None else np.full(len(hardware), job.software_year)


def latest_year(day: date) -> float:
    """Return the year that software of a day can be of at most; without end from the newest that was measured on.

    >>> latest_year(date(2022, 7, 1)), latest_year(date(2030, 1, 1))
    (2022.5, inf)
    """
    year = decimal_year(day, np.inf)
    return year if round(year, 1) < NEWEST_YEAR else np.inf


def search(grid: Grid, job: Job, keys: Keys) -> Candidates:
    """Time every candidate that fits, for every key."""
    software = np.full(len(keys.hardware), job.software, dtype=np.int64)
    efficiency = resolve(job.values, keys.hardware, software, year_of(job, keys.hardware), job.dispatcher)
    setting = SearchSetting(job, keys.hardware, keys.precision, efficiency)
    # candidates: (key, combination of degrees, data-parallel degree), less those that fit with no recomputation
    able = ~np.isnan(peak_tflops(keys.hardware, keys.precision))[keys.pair]
    key, combo, data = _expand(grid, keys, able, job.global_batch)
    possible = np.bincount(key, minlength=len(keys.gpus)) > 0
    capacity = usable_bytes(keys.hardware.memory_gib)[keys.pair]
    recompute, need = least_recompute(grid, job, combo, data, capacity[key])
    fits = np.flatnonzero(np.isfinite(need))
    key, combo, data, recompute, need = key[fits], combo[fits], data[fits], recompute[fits], need[fits]
    pair = keys.pair[key]
    layout = grid_layouts(grid.take(combo), job, data, recompute, keys.precision[pair])

    # Each distinct micro-batch is timed once: it does not depend on how many copies of the model there are.
    packing = Packing(pair=len(setting.hardware), recompute=len(RECOMPUTES), combo=len(grid))
    number, place = distinct(packing.pack(pair=pair, recompute=recompute, combo=combo), packing.size)
    indices = packing.unpack(number)
    ones, precision = np.ones(len(number)), setting.precision[indices["pair"]]
    micro_layout = grid_layouts(grid.take(indices["combo"]), job, ones, indices["recompute"], precision)
    pieces = [MicroStep(*(np.zeros(0) for _ in MicroStep.names()))]
    for rows in micro_layout.chunks(CHUNK):
        pieces.append(training.micro_step(setting.case(micro_layout.take(rows), indices["pair"][rows])))
    micro = MicroStep.concatenate(pieces)

    speed, busy = np.empty(len(key)), micro.total_s.take(place)
    for rows in layout.chunks(CHUNK):
        case = setting.case(layout.take(rows), pair[rows])
        speed[rows] = training.speed_of(case, training.scheduled(case, busy[rows])["total_s"])
    return Candidates(key, layout, speed, need, place, micro, setting, possible)


def steps_of(candidates: Candidates, keys: Keys) -> Step:
    """Return the whole step of candidates, by part."""
    case = candidates.setting.case(candidates.layout, keys.pair[candidates.key])
    return training.assemble(case, candidates.micro_steps.take(candidates.micro))


# Public ------------------------------------------------------------------------------------------------------------


def make_job(
    architecture: Architecture,
    *,
    sequence_tokens: float,
    global_batch: int | None,
    method: str,
    lora_rank: int,
    software: str,
    software_year: float | None,
    values: Mapping[str, float],
    adapter_share: float = 1.0,
    latest_year: float = np.inf,
    document_tokens: float = np.inf,
    offload: str = "none",
    flash: bool | None = None,
    dispatcher: int = UNSAID,
) -> Job:
    """Describe a training job for the search."""
    batch = global_batch or default_batch(architecture, sequence_tokens, method)
    recipe = recipe_columns(
        1,
        sequence_tokens,
        method=method,
        adapter_rank=float(lora_rank),
        adapter_share=adapter_share,
        document_tokens=document_tokens,
        offload=offload,
    )
    return Job(
        shape=stack([architecture]),
        recipe=recipe,
        memory=from_training(recipe, software),
        global_batch=batch,
        software=code_of(software, CLASSES, "software class"),
        software_year=software_year,
        latest_year=latest_year,
        values=values,
        fused=flash,
        dispatcher=dispatcher,
    )


def make_keys(
    accelerators: Sequence[Accelerator],
    systems: Sequence[System],
    gpus: Sequence[float],
    precision_on: Callable[[Accelerator], str],
) -> Keys:
    """Group requests into distinct pairs of accelerator and system; each accelerator has one precision."""
    index: dict[tuple[Any, ...], int] = {}
    seen: dict[tuple[int, int], int] = {}
    pairs: list[tuple[Accelerator, System]] = []
    order = []
    for accelerator, system in zip(accelerators, systems, strict=True):
        # instances of many sellers are alike to physics: what tells pairs apart is the chip and what joins it to others
        same = (id(accelerator), id(system))
        if same not in seen:
            network = (system.scaleup_gb_per_s, system.scaleup_gpus, system.scaleout_gb_per_s, system.gpus)
            seen[same] = index.setdefault((accelerator.id, *network), len(pairs))
            if seen[same] == len(pairs):
                pairs.append((accelerator, system))
        order.append(seen[same])
    hardware = hardware_columns([a for a, _ in pairs], [s for _, s in pairs])
    precisions = [code_of(precision_on(accelerator), PRECISIONS, "precision") for accelerator, _ in pairs]
    order_of_keys = np.array(order, dtype=np.int64)
    return Keys(hardware, np.array(precisions, dtype=np.int64), order_of_keys, np.asarray(gpus, dtype=np.float64))


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
    """Return the fastest layout for each key i = (accelerators[i], systems[i], gpus[i])."""
    job = make_job(
        architecture,
        sequence_tokens=sequence_tokens,
        global_batch=global_batch,
        method=method,
        lora_rank=lora_rank,
        software=software,
        software_year=software_year,
        values=values,
        adapter_share=adapter_share,
    )
    grid = make_grid(architecture, sequence_tokens, job.global_batch, wide=wide)
    keys = make_keys(accelerators, systems, list(gpus), lambda _: precision)
    return reduce_best(search(grid, job, keys), job, keys)


def reduce_best(options: Candidates, job: Job, keys: Keys) -> BestLayouts:
    """Keep the fastest candidate of each key; say why a key has none."""
    count = len(keys.gpus)
    speed = options.tokens_per_s_per_gpu
    serving_only = ~keys.hardware.trains[keys.pair]
    if serving_only.any():
        options = options.take(np.flatnonzero(~serving_only[options.key]))
        speed = options.tokens_per_s_per_gpu
    fastest = np.full(count, -np.inf)
    with np.errstate(invalid="ignore"):  # a chip without the precision has no speed
        np.maximum.at(fastest, options.key, speed)
    winners = np.flatnonzero(speed == fastest[options.key])
    winner = np.full(count, -1)
    winner[options.key[winners][::-1]] = winners[::-1]  # of equals, the earliest
    served = np.flatnonzero(winner >= 0)
    chosen = options.take(winner[served])
    candidates = np.bincount(options.key, minlength=count)
    lacking = np.isnan(peak_tflops(keys.hardware, keys.precision))[keys.pair]
    too_many = ~options.possible & (keys.gpus > job.global_batch)
    reason = np.where(lacking, NO_PRECISION, np.where(too_many, NO_BATCH, NO_MEMORY))
    reason = np.where(keys.hardware.trains[keys.pair], reason, NO_TRAINING)
    reason[served] = FITS
    candidate = np.full(count, -1)
    candidate[served] = np.arange(len(served))
    return BestLayouts(
        reason=reason,
        layout=_spread(chosen.layout, candidate),
        step=_spread(steps_of(chosen, keys), candidate),
        memory_bytes=np.append(chosen.memory_bytes, np.nan)[candidate],
        candidates=candidates,
    )


def _spread(columns: Any, place: Integers) -> Any:
    """Place rows at their keys; keys without a row get NaN, or zero in integer columns."""
    filled_keys, filled = np.flatnonzero(place >= 0), {}
    if len(filled_keys) == len(place):
        return columns.take(place)
    for name in columns.names():
        values = getattr(columns, name)
        filled[name] = np.full(len(place), np.nan if values.dtype.kind == "f" else 0, dtype=values.dtype)
        filled[name][filled_keys] = values.take(place[filled_keys])
    return type(columns)(**filled)
