"""The least recomputation with which each candidate of a search fits: what is recomputed least is the fastest.

A job is what is trained and by which software. Candidates of one combination of degrees differ in the data-parallel
degree alone, so that memory is counted once per combination and power of two, and only until something fits.
"""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from gpucost.physics.columns import (
    CHUNK,
    RECOMPUTES,
    Floats,
    Integers,
    LayoutColumns,
    Packing,
    constant,
    distinct,
)
from gpucost.physics.training.cases import BF16, SELECTIVE, Recipe
from gpucost.physics.training.efficiency import FUSED_YEAR, SPLIT_NORMS_YEAR, UNSAID
from gpucost.physics.training.grid import Grid
from gpucost.physics.training.memory import stages_of
from gpucost.physics.training.memory_activations import LayerBytes, layer_bytes
from gpucost.physics.training.memory_recipe import MemoryRecipe
from gpucost.physics.transformer import Shape

_LEVELS = 32  # powers of two that a data-parallel degree may reach
_WORTH_TAKING = 0.8  # copying so many of the rows costs more than counting them all again


class Job(Struct, frozen=True):
    """What is trained: one architecture and recipe, the batch, and the software that runs it."""

    shape: Shape
    recipe: Recipe
    memory: MemoryRecipe  # what the recipe keeps there
    global_batch: int
    software: int
    software_year: float | None  # None: as old as software usually is, at most `latest_year`
    latest_year: float  # of the question's day, where it is one of the past
    values: Mapping[str, float]
    fused: bool | None = None  # attention, where it is stated
    dispatcher: int = UNSAID  # how tokens reach their experts: unsaid (-1), all-to-all (0), fused (1)

    @property
    def flash(self) -> bool:
        """Whether attention is fused: as stated, else since 2023."""
        return self.year >= FUSED_YEAR if self.fused is None else self.fused

    @property
    def splits_norms(self) -> bool:
        """Whether norms are split over the tensor group, and selective recomputation is known (arXiv:2205.05198)."""
        return self.year >= SPLIT_NORMS_YEAR

    @property
    def year(self) -> float:
        """The age of the software where it is given, else at most that of the question's day."""
        return self.software_year or self.latest_year


def grid_layouts(
    grid: Grid, job: Job, data: Floats, recompute: Integers, precision: Integers | int = BF16
) -> LayoutColumns:
    """Turn combinations and their data-parallel degrees into layouts; their memory is the same in every precision."""
    count = len(grid)
    split, flash = (constant(value, count, np.bool_) for value in (job.splits_norms, job.flash))
    return LayoutColumns(
        gpus=grid.model_parallel * data,
        tensor=grid.tensor,
        pipeline=grid.pipeline,
        context=grid.context,
        expert=grid.expert,
        data=data,
        sharding=grid.sharding,
        micro_batch=grid.micro_batch,
        global_batch=constant(job.global_batch, count),
        virtual_stages=grid.virtual_stages,
        recompute=recompute,
        precision=constant(precision, count, np.int64),
        flash=flash,
        sequence_parallel=split,
        shard_ranks=np.zeros(count),
    )


def least_recompute(
    grid: Grid, job: Job, combo: Integers, data: Floats, capacity_bytes: Floats
) -> tuple[Integers, Floats]:
    """Return the least recomputation that fits each candidate, and the memory with it; infinite where none fits.

    Memory shrinks as the data-parallel degree grows, so that what fits at the power of two below fits. Only where
    nothing does is the degree itself counted: 96 GPUs hold what 64 do not.
    """
    level = np.log2(data).astype(np.int64)  # rounded down
    powers = np.exp2(np.arange(_LEVELS))
    chosen, least = _least_recompute_at(grid, job, combo, level, powers, capacity_bytes)
    if len(unfitted := np.flatnonzero(np.isinf(least) & (data > powers[level]))):
        degrees = np.array(sorted(set(data[unfitted].tolist())))  # np.unique would load numpy.ma
        level = np.searchsorted(degrees, data[unfitted])
        chosen[unfitted], least[unfitted] = _least_recompute_at(
            grid, job, combo[unfitted], level, degrees, capacity_bytes[unfitted]
        )
    return chosen, least


def _least_recompute_at(
    grid: Grid, job: Job, combo: Integers, level: Integers, degrees: Floats, capacity_bytes: Floats
) -> tuple[Integers, Floats]:
    """Count each distinct combination and data-parallel degree, `degrees[level]`, once."""
    packing = Packing(combo=len(grid), level=len(degrees))
    number, place = distinct(packing.pack(combo=combo, level=level), packing.size)
    part = packing.unpack(number)
    # The capacities that share a combination differ by chip: what fits the tightest needs no more recomputation, what
    # does not fit the roomiest none at all.
    tightest, roomiest = np.full(len(number), np.inf), np.zeros(len(number))
    np.minimum.at(tightest, place, capacity_bytes)
    np.maximum.at(roomiest, place, capacity_bytes)
    layout = grid_layouts(
        grid.take(part["combo"]), job, degrees.take(part["level"]), np.zeros(len(number), dtype=np.int64)
    )
    # What a layer keeps under each recomputation, in the order of their time, per power of two of tensor degrees: once
    # for the whole grid. One that saves nothing against no recomputation is of no use.
    tensors = np.exp2(np.arange(1 + int(np.log2(np.max(grid.tensor, initial=1.0)))))
    count, codes = len(tensors), [c for c in range(len(RECOMPUTES)) if c != SELECTIVE or job.splits_norms]
    ones = np.ones(count * len(codes))
    cells = Grid(**{**dict.fromkeys(Grid.names(), ones), "tensor": np.tile(tensors, len(codes))})
    every = layer_bytes(job.shape, grid_layouts(cells, job, ones, np.repeat(codes, count)), job.memory)
    layers: dict[int, LayerBytes] = {}
    for index, code in enumerate(codes):
        layer = every.take(slice(index * count, (index + 1) * count))
        if not layers or np.any(layer.saved < layers[codes[0]].saved):
            layers[code] = layer

    need, every_place = np.full((len(RECOMPUTES), len(number)), np.inf), np.arange(len(number))
    for rows in layout.chunks(CHUNK):
        # the peak with each recomputation stays infinite where it is not counted: one before fits, or none can
        stages = stages_of(job.shape, layout.take(rows), job.memory)
        places = every_place[rows]
        still = np.flatnonzero(stages.least_bytes <= roomiest[rows])  # those that may yet fit
        for code, layer in layers.items():
            if len(still) < _WORTH_TAKING * len(places):
                places, stages = places[still], stages.take(still)
            stages.layout.recompute[:] = code  # in place: nothing else reads this layout
            layer_part = layer.take(np.log2(stages.layout.tensor).astype(np.int64))
            peak = stages.peak_bytes(job.shape, job.memory, layer_part)
            need[code, places] = peak
            still = np.flatnonzero(peak > tightest[places])
    chosen, least = np.zeros(len(place), dtype=np.int64), np.full(len(place), np.inf)
    for code in reversed(layers):  # the least recomputation last, so that it stays where it fits
        needed = need[code].take(place)
        fits = needed <= capacity_bytes
        chosen[fits] = code
        np.copyto(least, needed, where=fits)
    return chosen, least
