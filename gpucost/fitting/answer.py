"""The answer of `gpucost fit`: verdict, layout, components with their formulas, changes, the table by model size."""

from dataclasses import replace
from os import fspath
from typing import Any, cast

from gpucost.answers.common import Source, cited, frame
from gpucost.answers.memory import Fit, FitLayout, SizeRow, Tried, Verdict
from gpucost.catalog import Catalog
from gpucost.errors import GpuCostError, NothingFitsError
from gpucost.fitting import explain
from gpucost.fitting.changes import LARGER, ranked_changes
from gpucost.fitting.job import ADAPTER_SOFTWARE, MemoryJob, read_job
from gpucost.fitting.search import LARGEST_GPUS, Plan, best_plan
from gpucost.physics.hardware import half_precision
from gpucost.physics.training.memory import CONTEXT_BYTES, FRAGMENTATION_RATIO, MOMENTS
from gpucost.physics.training.memory_recipe import RANGE_RATIOS
from gpucost.physics.transformer import stack, total_parameters
from gpucost.types import Architecture
from gpucost.units import GB
from gpucost.workloads.training import too_long

SIZES = ("7b", "13b", "34b", "70b", "180b", "405b", "671b", "1t")
MOMENT_WORDS = {
    "loss": "when the loss flows back into the logits",
    "backward": "when the backward pass of the layers begins",
    "end": "when the backward pass ends",
    "update": "during the optimizer's update",
    "forward": "when the forward pass ends",
}


def answer(catalog: Catalog, model: Any, gpu: str, *, sizes: bool = True, **wanted: Any) -> Fit:
    """Return the payload: does it fit, on how many, where the memory goes, and what would help."""
    job = read_job(catalog, model, gpu, **wanted)
    plan = best_plan(job)
    changes = ranked_changes(job, catalog, plan)
    if plan is None:
        raise NothingFitsError(
            f"{job.architecture.name} on {f'{job.gpus} × ' if job.gpus else ''}{job.accelerator.id}: the degrees given"
            f" do not multiply out{'' if job.gpus else ' to any number of them'}. Leave them out and the layout is"
            " searched."
        )
    if job.gpus is None and not plan.fits:
        raise NothingFitsError(nowhere(job, plan, changes))
    request = {"model": model.name if isinstance(model, Architecture) else fspath(model), "gpu": gpu} | {
        name: value for name, value in wanted.items() if value is not None
    }
    figures = verdict(job, plan)
    return {
        "kind": "fit",
        **frame(request, catalog.as_of, catalog.version),
        "lead": lead(figures, changes),
        **figures,
        "components": explain.components(job, plan),
        "changes": changes,
        "sizes": by_size(job, catalog) if sizes else [],
        "warnings": [*catalog.taken(gpu), *warnings(job)],
        "sources": sources(catalog, job),
    }


def lead(figures: Verdict, changes: list[Tried]) -> str:
    """Return the answer in one sentence."""
    gpus, gpu, spare = figures["gpus"], figures["gpu"], figures["headroom_gb"]
    where = f"on each of {gpus:,} {gpu}" if gpus > 1 else f"on one {gpu}"
    need = f"{figures['needed_gb']:.1f} GB needed of {figures['usable_gb']:.1f} GB usable {where}"
    if figures["fits"]:
        return f"Fits: {need}, {spare:.1f} GB to spare."
    helps = next((row for row in changes if row["helps"]), None)
    if helps is None:
        return f"Does not fit: {need}, {-spare:.1f} GB too much. No change that was tried helps."
    more = f", {helps['gpus']:,}" if helps["gpus"] > gpus else ""
    kept = (row["change"] for row in changes if row["helps"] and row["gpus"] <= gpus and row["cost"] != LARGER)
    here = f"; on {gpus:,}: {same}" if more and (same := next(kept, None)) else ""
    hint = f"The smallest change that makes it fit: {helps['change']}{more}{here}."
    return f"Does not fit: {need}, {-spare:.1f} GB too much. {hint}"


def nowhere(job: MemoryJob, plan: Plan, changes: list[Tried]) -> str:
    """Say that no count fits, and the change that would help."""
    limit = LARGEST_GPUS if job.system.scaleout_gb_per_s else plan.layout.gpus
    helps = next((row for row in changes if row["helps"]), None)
    hint = f" Try: {helps['change']} ({helps['gpus']} GPUs)." if helps else ""
    return (
        f"{job.architecture.name} ({job.method}, {job.optimizer}, sequence {job.sequence_tokens}, micro-batch "
        f"{job.micro_batch}) fits on no count up to {limit} × {job.accelerator.id}: the least is "
        f"{plan.needed_bytes / GB:.1f} GB of {plan.usable_bytes / GB:.1f} GB usable.{hint}"
    )


def verdict(job: MemoryJob, plan: Plan) -> Verdict:
    """Return the main figures."""
    layout = plan.layout
    return {
        "model": job.architecture.name,
        "parameters": float(total_parameters(stack([job.architecture]))[0]),
        "gpu": job.accelerator.id,
        "gpus": layout.gpus,
        "method": job.method,
        "optimizer": job.optimizer,
        "software": job.software,
        "sequence_tokens": job.sequence_tokens,
        "fits": plan.fits,
        "needed_gb": plan.needed_bytes / GB,
        "needed_low_gb": plan.needed_bytes / GB / RANGE_RATIOS[job.software],
        "needed_high_gb": plan.needed_bytes / GB * RANGE_RATIOS[job.software],
        "usable_gb": plan.usable_bytes / GB,
        "headroom_gb": (plan.usable_bytes - plan.needed_bytes) / GB,
        "device_memory_gib": job.accelerator.memory_gib,
        "context_gb": CONTEXT_BYTES / GB,
        "fragmentation_ratio": FRAGMENTATION_RATIO,
        "layout": cast(FitLayout, {name: getattr(layout, name) for name in FitLayout.__annotations__}),
        "peak": MOMENT_WORDS[MOMENTS[int(plan.memory.moment[0])]],
        "stage": "first" if bool(plan.memory.first_stage[0]) else "last",
    }


def by_size(job: MemoryJob, catalog: Catalog) -> list[SizeRow]:
    """Return the fewest GPUs of this kind for models of the usual sizes: full training, LoRA and QLoRA."""
    rows: list[SizeRow] = []
    for size in SIZES:
        try:
            architecture = catalog.architecture(size)
        except GpuCostError:
            continue
        sequence = min(job.sequence_tokens, architecture.max_sequence_tokens or job.sequence_tokens)
        base = replace(
            job,
            architecture=architecture,
            gpus=None,
            degrees={},
            micro_batch=1,
            sequence_tokens=sequence,
            recompute="auto",
        )
        total = float(total_parameters(stack([architecture]))[0])
        row = {"size": size, "model": architecture.name, "parameters": total, "weights_gb": 2 * total / GB}
        for method in ("full", "lora", "qlora"):
            row[f"{method}_gpus"], row[f"{method}_gb"] = _fewest(base, method)
        rows.append(cast(SizeRow, row))
    return rows


def _fewest(base: MemoryJob, method: str) -> tuple[int | None, float | None]:
    """Return the fewest GPUs on which a method fits, and what each of them needs."""
    plan = best_plan(replace(base, method=method, software=base.software if method == "full" else ADAPTER_SOFTWARE))
    return (plan.layout.gpus, plan.needed_bytes / GB) if plan is not None and plan.fits else (None, None)


def warnings(job: MemoryJob) -> list[str]:
    """Return what a reader must know about the answer."""
    found = [*job.architecture.warnings, *too_long(job.architecture, job.sequence_tokens)]
    if job.architecture.status == "synthesised":
        found.append(f"{job.architecture.name} is synthesised from its size: a model of that size may differ.")
    if job.accelerator.vendor != "NVIDIA":
        found.append(
            f"The counts were held against runs on NVIDIA H200 only; {job.accelerator.id} is an extrapolation."
        )
    if half_precision(job.accelerator) != "bf16":
        found.append(f"{job.accelerator.id} has no bf16 peak: 16-bit training there means fp16.")
    return found


def sources(catalog: Catalog, job: MemoryJob) -> dict[str, Source]:
    """Return the rows of sources.csv that the answer leans on."""
    ids = {job.architecture.source_id, job.accelerator.source_id, job.system.source_id} - {""}
    return cited({key: catalog.source(key) for key in ids}, sorted(ids))
