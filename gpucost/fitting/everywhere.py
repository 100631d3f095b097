"""Which accelerators a training job fits: the fewest of each, the longest sequence, the largest batch, the price."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpucost.answers.common import frame
from gpucost.answers.memory import Everywhere, FitRow
from gpucost.catalog import Catalog
from gpucost.errors import GpuCostError, NothingFitsError
from gpucost.fitting.answer import sources, warnings
from gpucost.fitting.job import MemoryJob, read_job
from gpucost.fitting.search import Plan, best_plan
from gpucost.market.facts import Market, cheapest, market_of
from gpucost.physics.hardware import half_precision
from gpucost.physics.transformer import stack, total_parameters
from gpucost.types import Accelerator
from gpucost.units import GB

LARGEST_BATCH = 64
SHORTEST_TOKENS, LONGEST_TOKENS = 512, 1_048_576


def everywhere(catalog: Catalog, model: Any, **wanted: Any) -> Everywhere:
    """Return the payload: a row per accelerator that a training job fits, the cheapest per hour first."""
    market = market_of(catalog)
    known: dict[tuple[Any, ...], FitRow | None] = {}
    rows: list[FitRow] = []
    nowhere: list[str] = []
    job = None
    for chip in (one for one in catalog.accelerators() if half_precision(one)):
        try:
            job = read_job(catalog, model, chip.id, **wanted)
        except GpuCostError:
            if model_is_unknown(catalog, model):
                raise
            continue
        system = job.system
        same = (round(chip.memory_gib, 2), system.gpus, system.scaleup_gpus, system.scaleout_gb_per_s is None)
        if same not in known:
            known[same] = row_of(job)
        found = known[same]
        if found is None:
            nowhere.append(chip.id)
        else:
            rows.append(priced(found, chip, market))
    if job is None or not rows:
        raise NothingFitsError(f"{getattr(model, 'name', model)} fits on no accelerator on record. Try --method qlora.")
    rows.sort(key=lambda row: (row["usd_per_hour"] or float("inf"), not row["sold"], row["gpus"], row["gpu"]))
    asked = {"model": job.architecture.name} | {name: value for name, value in wanted.items() if value is not None}
    return {
        "kind": "fit_everywhere",
        **frame(asked, catalog.as_of, catalog.version),
        "lead": lead(job, rows),
        "model": job.architecture.name,
        "parameters": float(total_parameters(stack([job.architecture]))[0]),
        "method": job.method,
        "sequence_tokens": job.sequence_tokens,
        "rows": rows,
        "nowhere": nowhere,
        "warnings": [text for text in warnings(job) if job.accelerator.id not in text],
        "sources": sources(catalog, job),
    }


def model_is_unknown(catalog: Catalog, model: Any) -> bool:
    """Tell whether it is the model that nobody knows, not the chip that cannot take it."""
    try:
        _ = model if hasattr(model, "layers") else catalog.architecture(model)
    except GpuCostError:
        return True
    return False


def row_of(job: MemoryJob) -> FitRow | None:
    """Return the fewest accelerators that fit, and how far sequence and batch can grow on them; None where none do."""
    plan = best_plan(job)
    if plan is None or not plan.fits:
        return None
    fixed = replace(job, gpus=plan.layout.gpus)
    longest = min(job.architecture.max_sequence_tokens or LONGEST_TOKENS, LONGEST_TOKENS)
    doublings = [SHORTEST_TOKENS << k for k in range(12) if SHORTEST_TOKENS << k < longest]
    lengths = sorted({job.sequence_tokens, longest, *doublings})
    batches = [job.micro_batch << k for k in range(7) if job.micro_batch << k <= LARGEST_BATCH]
    return {
        "gpu": job.accelerator.id,
        "memory_gib": job.accelerator.memory_gib,
        "gpus": plan.layout.gpus,
        "needed_gb": plan.needed_bytes / GB,
        "headroom_gb": (plan.usable_bytes - plan.needed_bytes) / GB,
        "longest_tokens": most(lengths, lambda size: best_plan(replace(fixed, sequence_tokens=size))),
        "largest_batch": most(batches, lambda size: best_plan(replace(fixed, micro_batch=size))),
        "sold": "",
        "usd_per_gpu_hour": None,
        "usd_per_hour": None,
    }


def most(sizes: list[int], plan_of: Callable[[int], Plan | None]) -> int:
    """Return the largest of growing sizes that fits; the first is known to."""
    low, high = 0, len(sizes) - 1
    while low < high:
        middle = (low + high + 1) // 2
        plan = plan_of(sizes[middle])
        if plan is not None and plan.fits:
            low = middle
        else:
            high = middle - 1
    return sizes[low]


def priced(row: FitRow, chip: Accelerator, market: Market) -> FitRow:
    """Return the row of another chip of the same memory, with the price of so many where somebody hosts them."""
    hour, offer = cheapest(market, chip.id, row["gpus"])
    return {
        **row,
        "gpu": chip.id,
        "memory_gib": chip.memory_gib,
        "sold": smaller(market, chip.id, row["gpus"]) if offer is None else offer.provider,
        "usd_per_gpu_hour": None if hour is None else hour / row["gpus"],
        "usd_per_hour": hour,
    }


def smaller(market: Market, gpu: str, gpus: int) -> str:
    """Say how an accelerator is sold of which nobody hosts so many; empty where nobody sells it at a new price."""
    sizes = [gpus >> halving for halving in range(1, gpus.bit_length())]
    most = next((size for size in sizes if cheapest(market, gpu, size)[1] is not None), 0)
    return "" if not most else "as singles" if most == 1 else f"up to {most}"


def lead(job: MemoryJob, rows: list[FitRow]) -> str:
    """Say what fits with the least money, and what fits on one."""
    first, single = rows[0], [row["gpu"] for row in rows if row["gpus"] == 1]
    price = "" if first["usd_per_hour"] is None else f", from {first['usd_per_hour']:,.2f} USD an hour"
    alone = f"{len(single)} accelerators hold it alone" if single else "no accelerator holds it alone"
    return (
        f"{job.architecture.name} ({job.method}, sequences of {job.sequence_tokens:,}) fits {len(rows)} accelerators:"
        f" cheapest {first['gpus']} × {first['gpu']}{price}; {alone}."
    )
