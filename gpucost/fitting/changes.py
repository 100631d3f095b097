"""What would make a job fit, or fit on fewer GPUs: each change is tried, and the smallest that works comes first."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product

from gpucost.answers import memory as answers
from gpucost.catalog import Catalog
from gpucost.fitting.job import ADAPTER_SOFTWARE, AUTO, MemoryJob
from gpucost.fitting.search import Plan, best_plan
from gpucost.physics.hardware import half_precision
from gpucost.physics.training.memory_recipe import OPTIMIZERS
from gpucost.physics.transformer import stack, total_parameters
from gpucost.types import Accelerator
from gpucost.units import GB

# From the least to the greatest intrusion.
COSTS = (
    "same result, about as fast",
    "same result, slower",
    "more or larger GPUs",
    "other numerics of the optimizer",
    "another training",
)
LARGER = COSTS[2]
CHUNK_TOKENS = 1024
SHORTEST_TOKENS = 512  # no shorter sequence is proposed
HOST_GB = 2000.0  # host memory that a node is taken to have: usual for 8-GPU nodes since 2023 (DGX H100: 2 TB)
LARGER_CHIPS = 4  # more GPUs or larger chips that are shown


@dataclass(frozen=True, slots=True)
class JobChange:
    """A change of a job, what it costs, and the job that it makes."""

    name: str
    cost: int  # index into COSTS
    job: MemoryJob


def single_changes(job: MemoryJob) -> Iterator[JobChange]:
    """Yield the changes of the recipe that are not made already."""
    if not job.loss_chunk_tokens and job.sequence_tokens * job.micro_batch > CHUNK_TOKENS:
        yield JobChange(f"loss in chunks of {CHUNK_TOKENS} tokens", 0, replace(job, loss_chunk_tokens=CHUNK_TOKENS))
    if not job.flash:
        yield JobChange("fused attention", 0, replace(job, flash=True))
    if "sharding" in job.degrees and job.degrees["sharding"] < 3 and (job.gpus or 2) > 1:
        yield JobChange("shard weights too (FSDP)", 0, replace(job, degrees=job.degrees | {"sharding": 3}))
    if any(name in job.degrees for name in ("tensor", "pipeline", "expert")):
        free = {name: value for name, value in job.degrees.items() if name == "context"}
        yield JobChange("let the layout be searched", 0, replace(job, degrees=free))
    if job.micro_batch > 1:
        yield JobChange("micro-batch 1", 1, replace(job, micro_batch=1))
    if job.recompute not in (AUTO, "full"):
        yield JobChange("recompute activations in full", 1, replace(job, recompute="full"))
    if job.method == "full":
        yield from offload_changes(job)
    yield from optimizer_changes(job)
    if job.sequence_tokens >= 1024:
        half = job.sequence_tokens // 2
        yield JobChange(f"sequence {half}", 4, replace(job, sequence_tokens=half))
    if job.method == "full":
        yield JobChange(f"LoRA, rank {job.lora_rank}", 4, replace(job, method="lora", software=ADAPTER_SOFTWARE))
    if job.method != "qlora":
        yield JobChange(f"QLoRA, rank {job.lora_rank}", 4, replace(job, method="qlora", software=ADAPTER_SOFTWARE))


def host_gb(job: MemoryJob) -> float:
    """Return the host memory that all nodes together need for what a job moves there."""
    kept, total = OPTIMIZERS[job.optimizer], float(total_parameters(stack([job.architecture]))[0])
    states = kept.gradient_bytes + kept.state_bytes
    each = {"none": 0.0, "states": states, "all": kept.weight_bytes + states}[job.offload]
    return each * total / GB


def offload_changes(job: MemoryJob) -> Iterator[JobChange]:
    """Yield what host memory can take, with how much of it all nodes together need."""
    for name, words in (("states", "optimizer states"), ("all", "weights and states")):
        if job.offload not in (name, "all"):
            moved = replace(job, offload=name)
            yield JobChange(f"{words} in host memory ({host_gb(moved):,.0f} GB of it)", 1, moved)


def optimizer_changes(job: MemoryJob) -> Iterator[JobChange]:
    """Yield the optimizers with smaller states."""
    for name, words in (
        ("adamw-8bit", "8-bit AdamW moments"),
        ("adamw-bf16", "bf16 states without a master copy"),
        ("adafactor", "Adafactor"),
    ):
        if job.optimizer != name and (job.method == "full" or name == "adamw-8bit"):
            yield JobChange(words, 3, replace(job, optimizer=name))


def pairs(job: MemoryJob) -> Iterator[JobChange]:
    """Yield pairs of changes that leave what is trained alone."""
    mild = [change for change in single_changes(job) if change.cost in (0, 1, 3)]
    for first, second in combinations(mild, 2):
        merged = merge(job, first.job, second.job)
        if merged is not None:
            yield JobChange(f"{first.name} + {second.name}", max(first.cost, second.cost), merged)


def shorter(job: MemoryJob, plan: Plan | None) -> list[answers.Tried]:
    """Return the longest sequence that helps with a chunked loss, in the coarsest chunks and widest moments."""
    lengths = [job.sequence_tokens >> k for k in range(12) if job.sequence_tokens >> k >= SHORTEST_TOKENS]
    moments = [(job.optimizer, "")] + ([("adamw-8bit", " + 8-bit AdamW moments")] if job.optimizer == "adamw" else [])
    for tokens, chunk, (optimizer, kept) in product(lengths, (CHUNK_TOKENS, CHUNK_TOKENS // 4), moments):
        if chunk < tokens and not job.loss_chunk_tokens:
            words = f"loss in chunks of {chunk} tokens" + (f" + sequence {tokens}" if tokens < lengths[0] else "")
            made = replace(job, loss_chunk_tokens=chunk, sequence_tokens=tokens, optimizer=optimizer)
            cost = 4 if tokens < lengths[0] else 3 if kept else 0
            row = tried(JobChange(words + kept, cost, made), plan)
            if row is not None and row["helps"]:
                return [row]
    return []


def merge(base: MemoryJob, one: MemoryJob, other: MemoryJob) -> MemoryJob | None:
    """Return the job with both changes, or None where they change the same thing."""
    fields = [name for name in MemoryJob.__dataclass_fields__ if name not in ("architecture", "accelerator", "system")]
    first = {name: getattr(one, name) for name in fields if getattr(one, name) != getattr(base, name)}
    second = {name: getattr(other, name) for name in fields if getattr(other, name) != getattr(base, name)}
    return None if set(first) & set(second) else replace(base, **first, **second)


def hardware_changes(job: MemoryJob, catalog: Catalog) -> Iterator[JobChange]:
    """Yield more GPUs of the same kind, and larger chips of the same vendor."""
    if job.gpus is not None:
        free = {name: value for name, value in job.degrees.items() if name in ("tensor", "context")}
        yield JobChange("more GPUs", 2, replace(job, gpus=None, degrees=free))
    sold, own = {offer.gpu for offer in catalog.offers()}, job.accelerator
    alike = (chip for chip in catalog.accelerators() if chip.vendor == own.vendor and chip.id in sold)
    larger = (chip for chip in alike if chip.memory_gib > own.memory_gib * 1.1 and chip.year >= 2020)
    sizes: dict[int, Accelerator] = {}  # one of each size of memory
    for chip in sorted(larger, key=lambda chip: (chip.memory_gib, chip.id)):
        if half_precision(chip) == "bf16":
            sizes.setdefault(round(chip.memory_gib), chip)
    for chip in sizes.values():
        yield JobChange(chip.id, 2, replace(job, accelerator=chip, system=catalog.default_system(chip.id)))


def tried(change: JobChange, before: Plan | None) -> answers.Tried | None:
    """Try a change; return its row, or None where it brings nothing."""
    plan = best_plan(change.job)
    if plan is None or host_gb(change.job) > HOST_GB * math.ceil(plan.layout.gpus / change.job.system.gpus):
        return None
    worth = plan.fits and (before is None or not before.fits or plan.layout.gpus < before.layout.gpus)
    return {
        "change": change.name,
        "cost": COSTS[change.cost],
        "fits": plan.fits,
        "helps": worth,
        "gpus": plan.layout.gpus,
        "needed_gb": plan.needed_bytes / GB,
        "usable_gb": plan.usable_bytes / GB,
        "headroom_gb": (plan.usable_bytes - plan.needed_bytes) / GB,
        "rank": change.cost,
    }


def first_of(rows: list[answers.Tried], cost: str, count: int) -> list[answers.Tried]:
    """Keep the first rows of a cost that help, and all others."""
    of_cost = [row for row in rows if row["cost"] == cost]
    dropped = [id(row) for row in [r for r in of_cost if r["helps"]][count:] + [r for r in of_cost if not r["helps"]]]
    return [row for row in rows if id(row) not in dropped]


def ranked_changes(job: MemoryJob, catalog: Catalog, plan: Plan | None) -> list[answers.Tried]:
    """Try the changes, singles first and pairs where no single mild one helps; what helps most gently comes first."""
    rows = [tried(change, plan) for change in (*single_changes(job), *hardware_changes(job, catalog))]
    found = [row for row in rows if row is not None]
    found = first_of(found, LARGER, LARGER_CHIPS)
    if not any(row["helps"] and row["rank"] in (0, 1, 3) for row in found):
        doubled = [tried(change, plan) for change in pairs(job)]
        found += [row for row in doubled if row is not None and row["helps"]]
    if not any(row["helps"] and row["cost"] != LARGER for row in found):
        found += shorter(job, plan)
    found.sort(key=lambda row: (not row["helps"], row["rank"]))  # stable: as they were proposed
    for place, row in enumerate(found, 1):
        row["rank"] = place
    return found
