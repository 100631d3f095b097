"""The layouts that a GPU count allows, their memory, and the simplest one that fits."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod
from typing import Any

import numpy as np

from gpucost.fitting.job import AUTO, MemoryJob
from gpucost.physics.columns import RECOMPUTES, Flags, LayoutColumns
from gpucost.physics.training.defaults import default_batch
from gpucost.physics.training.memory import MemoryColumns, training_memory, usable_bytes
from gpucost.physics.transformer import stack
from gpucost.types import Layout

LARGEST_GPUS = 16_384
STEPS = (1, 2, 3, 4, 6)  # nodes, then these times powers of two
CONTEXT_TOKENS = 16_384  # context parallelism is tried where it leaves each GPU at least so many tokens
BF16 = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """One layout with its memory, and whether it fits."""

    layout: Layout
    memory: MemoryColumns  # of length one
    usable_bytes: float

    @property
    def needed_bytes(self) -> float:
        """The allocator's peak on the fullest GPU."""
        return float(self.memory.total_bytes[0])

    @property
    def fits(self) -> bool:
        """Whether the peak stays within what is usable."""
        return self.needed_bytes <= self.usable_bytes


def gpu_counts(job: MemoryJob) -> list[int]:
    """Return the counts to try: the one given, else powers of two within a node and growing numbers of nodes.

    Degrees that are given take multiples of their product. Without a named network between nodes one scale-up domain
    is the end.
    """
    if job.gpus is not None:
        return [job.gpus]
    node = max(job.system.gpus, 1)
    counts = [1 << k for k in range(node.bit_length()) if 1 << k < node] + [node]
    domain = max(job.system.scaleup_gpus, node)
    limit = LARGEST_GPUS if job.system.scaleout_gb_per_s else domain
    nodes = {step << k for step in STEPS for k in range(12)}
    group = prod(job.degrees.get(name, 1) for name in ("tensor", "pipeline", "context"))
    counts += [group * times for times in powers(node // group)]
    counts += [node * n * least for n in nodes for least in {1, group // gcd(group, node)}]
    return sorted({count for count in counts if count % group == 0 and count <= limit})


def powers(limit: float) -> list[int]:
    """Return the powers of two up to a limit.

    >>> powers(9)
    [1, 2, 4, 8]
    """
    return [1 << k for k in range(int(limit).bit_length()) if 1 << k <= limit]


def combinations(job: MemoryJob, gpus: int) -> list[dict[str, int]]:
    """Return the combinations of degrees that multiply out on a count: those given, else powers of two."""
    a, fixed = job.architecture, job.degrees
    domain = max(job.system.scaleup_gpus, job.system.gpus)
    tensors = [t for t in powers(min(domain, gpus, a.heads)) if a.heads % t == 0]
    pipelines = powers(min(gpus, a.layers, 64))
    experts = [e for e in powers(min(gpus, a.experts)) if a.experts % e == 0] if a.experts else [1]
    long = job.sequence_tokens // CONTEXT_TOKENS
    contexts = [fixed["context"]] if "context" in fixed else powers(min(gpus, long)) if long > 1 else [1]
    found = []
    for tensor, pipeline, expert, context in product(
        [fixed["tensor"]] if "tensor" in fixed else tensors,
        [fixed["pipeline"]] if "pipeline" in fixed else pipelines,
        [fixed["expert"]] if "expert" in fixed else experts,
        contexts,
    ):
        if gpus % (tensor * pipeline * context) or (gpus // pipeline) % expert:
            continue
        data = gpus // (tensor * pipeline * context)
        alone = data * context == 1
        stages = [fixed["sharding"]] if "sharding" in fixed else [0] if alone else [1] if pipeline > 1 else [1, 3]
        found += [
            {"tensor": tensor, "pipeline": pipeline, "context": context, "expert": expert, "data": data, "sharding": s}
            for s in stages
        ]
    return found


def candidates(job: MemoryJob, counts: Sequence[int]) -> LayoutColumns:
    """Return every layout of every count, with every recomputation that is allowed, as arrays."""
    codes = range(len(RECOMPUTES)) if job.recompute == AUTO else [RECOMPUTES.index(job.recompute)]
    rows = [
        {"gpus": gpus, **degrees, "recompute": code}
        for gpus in counts
        for degrees in combinations(job, gpus)
        for code in codes
    ]
    columns: dict[str, Any] = {
        name: np.array([row[name] for row in rows], dtype=np.float64)
        for name in ("gpus", "tensor", "pipeline", "context", "expert", "data")
    }
    count = len(rows)
    micro = np.full(count, float(job.micro_batch))
    usual = default_batch(job.architecture, job.sequence_tokens, job.method)
    return LayoutColumns(
        **columns,
        sharding=np.array([row["sharding"] for row in rows], dtype=np.int64),
        recompute=np.array([row["recompute"] for row in rows], dtype=np.int64),
        micro_batch=micro,
        global_batch=np.maximum(usual, micro * columns["data"] * columns["pipeline"]),
        virtual_stages=np.ones(count),
        precision=np.full(count, BF16, dtype=np.int64),
        flash=np.full(count, job.flash),
        sequence_parallel=np.ones(count, dtype=np.bool_),
    )


def best_plan(job: MemoryJob) -> Plan | None:
    """Return the simplest layout that fits on the fewest GPUs; where none fits, the one that needs least.

    Simplest: fewest pipeline stages and context ranks, then least recomputation, then fewest tensor and expert ranks,
    then least sharding. None where no combination multiplies out.
    """
    layout = candidates(job, gpu_counts(job))
    if len(layout) == 0:
        return None
    memory = training_memory(stack([job.architecture]), layout, job.recipe())
    usable = float(usable_bytes(job.accelerator.memory_gib))
    fits: Flags = memory.total_bytes <= usable
    if fits.any():
        keys = ("sharding", "expert", "tensor", "recompute", "context", "pipeline", "gpus")  # the last one rules
        order = np.lexsort((*(getattr(layout, name) for name in keys), ~fits))
        row = int(order[0])
    else:
        row = int(np.argmin(memory.total_bytes))
    return Plan(layout.layout(row), memory.take(slice(row, row + 1)), usable)
