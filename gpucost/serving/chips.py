"""Does a model fit an accelerator for serving, on how many, how fast; and which accelerators serve it at all."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpucost.answers.common import frame
from gpucost.answers.serving import Serves, ServesNot, ServingFit
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import serving_calibration
from gpucost.errors import NothingFitsError
from gpucost.market.facts import Market, cheapest, market_of
from gpucost.market.supply import Key
from gpucost.serving import answer
from gpucost.serving.plans import REASONS, Plans, evaluate, format_note
from gpucost.serving.request import InferenceRequest
from gpucost.serving.run import request_of
from gpucost.types import Accelerator, System
from gpucost.units import GB, GIB, MS_PER_S

# MIG instances: compute slices of seven, memory slices of eight (NVIDIA MIG user guide, supported profiles).
MIG_PROFILES = ((1, 1), (2, 2), (3, 4), (4, 4))
SLICED = ("bf16", "fp16", "fp8", "int8", "fp4", "fp32")  # peaks that an instance has its share of
COMPUTE_SLICES, MEMORY_SLICES = 7, 8
SMALLEST_MIG_GPU = 7  # instances of the chips that have these profiles


def serving_fit_payload(catalog: Catalog, model: str, gpu: str | None = None, **wanted: Any) -> ServingFit:
    """Return which accelerators serve a model within the targets, with memory, latency, speed and price."""
    request = request_of(catalog, model, gpu=gpu, **wanted)
    architecture = catalog.architecture(request.model)
    market = market_of(catalog)
    keys = keys_of(catalog, gpu)
    calibration = serving_calibration(catalog)
    largest = {index: max(key.system.gpus, key.system.scaleup_gpus) for index, key in enumerate(keys)}
    plans = evaluate(architecture, keys, largest, request, calibration.values, calibration.ranges)
    found = [entry(request, market, plans, index, key) for index, key in enumerate(keys)]
    excluded = [row[1] for row in found if row[1] is not None]
    options = sorted(
        (row[0] for row in found if row[0] is not None),
        key=lambda row: (row["usd_per_hour"] is None, row["usd_per_hour"] or 0.0, row["gpus"], row["gpu"]),
    )
    if gpu is not None and not options:
        raise NothingFitsError(
            f"{architecture.name}: {excluded[0]['gpu']}: {excluded[0]['reason']}. "
            "Try a narrower --precision, more accelerators, or looser targets."
        )
    fewest = min(options, key=lambda row: (row["memory_gb"] * row["gpus"], row["gpus"], row["gpu"]), default=None)
    return {
        "kind": "serving_fit",
        **frame(request.to_dict(), catalog.as_of, catalog.version),
        "fits": bool(options),
        "lead": lead(architecture.name, options, fewest),
        "said": [f"{architecture.name}, {format_note(architecture, request)}; engine {request.engine}."],
        "smallest": fewest,
        "cheapest": next((row for row in options if row["usd_per_hour"] is not None), None),
        "options": options,
        "excluded": excluded,
        "warnings": list(architecture.warnings),
        "sources": {},
    }


def lead(model: str, options: Sequence[Serves], fewest: Serves | None) -> str:
    """Return the answer in one sentence."""
    if not options or fewest is None:
        return f"{model}: nothing serves this; the reasons stand below."
    cheap = options[0]
    price = "" if cheap["usd_per_hour"] is None else f" for {cheap['usd_per_hour']:.2f} USD an hour"
    small = f"the least memory is {fewest['gpus']} × {fewest['gpu']}"
    return f"{model}: {small}; the cheapest is {cheap['gpus']} × {cheap['gpu']}{price}."


def keys_of(catalog: Catalog, gpu: str | None) -> list[Key]:
    """Return the accelerators to try, each in its usual node, and the MIG instances of those that have them."""
    found = catalog.accelerators(gpu) if gpu else catalog.accelerators()
    slices = {str(row["id"]): row["mig_slices"] or 0 for row in catalog.rows("accelerators")}
    keys = []
    for accelerator in found:
        keys.append(Key(accelerator, catalog.default_system(accelerator.id)))
        if slices.get(accelerator.id, 0) >= SMALLEST_MIG_GPU:
            keys += [mig_key(accelerator, compute, memory) for compute, memory in MIG_PROFILES]
    return keys


def mig_key(a: Accelerator, compute: int, memory: int) -> Key:
    """Return a MIG instance as an accelerator of its own: its share of arithmetic, memory and bandwidth, no links."""

    def share(value: float | None) -> float | None:
        return None if value is None else value * compute / COMPUTE_SLICES

    part = memory / MEMORY_SLICES
    name = f"{a.id}-mig-{compute}g.{round(a.memory_gib * part)}gb"
    peaks: dict[str, Any] = {f"{kind}_tflops": share(getattr(a, f"{kind}_tflops")) for kind in SLICED}
    instance = replace(
        a,
        id=name,
        memory_gib=a.memory_gib * part,
        hbm_gb_per_s=a.hbm_gb_per_s * part,
        scaleup_gb_per_s=0.0,
        scaleup_gpus=1,
        **peaks,
    )
    return Key(instance, System(f"{name}-alone", name, "synthesised", name, 1, 0.0, 1, None, status="synthesised"))


def entry(
    request: InferenceRequest, market: Market, plans: Plans, index: int, key: Key
) -> tuple[Serves, None] | tuple[None, ServesNot]:
    """Return what one accelerator can do: its smallest replica that serves, or why none does."""
    mine = np.flatnonzero(plans.key == index)
    serving = mine[plans.serves[mine]]
    if not len(serving):
        codes = sorted({int(code) for code in plans.reason[mine]}, reverse=True)
        return None, ServesNot(gpu=key.accelerator.id, reason=WORDS[REASONS[codes[0]] if codes else "memory"])
    plan = int(serving[np.lexsort((-plans.output_tokens_per_s[serving], plans.gpus[serving]))[0]])
    d = plans.deployments[plan]
    price, offer = cheapest(market, key.accelerator.id, d.gpus)
    speed = float(plans.output_tokens_per_s[plan])
    row: Serves = {
        "gpu": key.accelerator.id,
        "memory_gb": key.accelerator.memory_gib * (GIB / GB),
        "fits": True,
        "gpus": d.gpus,
        "layout": {"tensor": d.tensor, "data": d.data, "pipeline": d.pipeline},
        "precision": d.format,
        "batch": int(plans.sequences[plan]),
        "batch_that_fits": int(plans.capacity[plan]),
        "ttft_ms": float(plans.ttft_s[plan]) * MS_PER_S,
        "tpot_ms": float(plans.tpot_s[plan]) * MS_PER_S,
        "output_tokens_per_s": speed,
        "output_tokens_per_s_low": speed * float(np.exp(-plans.width[plan])),
        "output_tokens_per_s_high": speed * float(np.exp(plans.width[plan])),
        "bottleneck": answer.bottleneck(plans, plan),
        "memory": answer.memory(plans, plan, request),
        "usd_per_hour": price,
        "offer": ""
        if offer is None
        else f"{offer.provider} {offer.instance_type} ({offer.region or offer.region_scope})",
    }
    return row, None


WORDS = {
    "": "serves",
    "memory": "the weights and one sequence do not fit its node",
    "ttft": "the first token comes later than asked for",
    "tpot": "tokens come slower than asked for",
}
