"""The answer of a serving request as a JSON-able payload; rendering needs nothing else."""

from typing import Any

import numpy as np

from gpucost.answers.common import FormulaLine
from gpucost.answers.serving import Batch, BillInput, BillModel, EngineSide, Factors, Fleet, MemoryParts, Option
from gpucost.market.facts import Market
from gpucost.money.bill import Line, line_cost_usd, total_usd
from gpucost.physics.columns import Floats
from gpucost.physics.serving import steps as serving
from gpucost.physics.serving.queue import prompt_wait_s, waiting_s
from gpucost.serving.costing import IDLE_POWER_FRACTION, Pairs
from gpucost.serving.plans import Plans, emulated
from gpucost.serving.request import InferenceRequest
from gpucost.types import Offer
from gpucost.units import MS_PER_S

SPLIT_RULE = (
    "Cost is split by time: prompt tokens carry the share of a replica's time that goes to prompts, output tokens the "
    "rest. The blended figure is the cost ÷ all tokens, prompts and outputs together."
)
QUEUE_CAVEAT = (
    "Time to the first token under load is a queueing estimate for Poisson arrivals; real traffic is burstier. "
    "Published comparisons put such estimates 40 to 650 % off: size for it with a load test."
)
NOT_INCLUDED = (
    "gateways, load balancers, storage of the weights and traffic",
    "staff, support plans and software licences",
    "warm-up of new replicas and time without requests beyond the stated profile",
    "taxes, and discounts that you negotiated (a price book holds those)",
)
PARTS = ("linear_s", "attention_s", "latency_s", "exchange_s", "host_s", "prompt_s")
WORDS = {
    "linear_s": "weights and products", "attention_s": "reading the cache", "latency_s": "fixed time of the kernels",
    "exchange_s": "links between accelerators", "host_s": "host", "prompt_s": "prompts of others",
}  # fmt: skip


def number(value: Any) -> float | None:
    """Return a number that JSON can hold; what is not known is None, never zero."""
    found = float(value)
    return found if np.isfinite(found) else None


def option(request: InferenceRequest, market: Market, plans: Plans, pairs: Pairs, row: int, rank: int) -> Option:
    """Return one option: who, where, how many, how fast, at what cost, with its bill."""
    offer, plan = market.facts.offers[int(pairs.offer[row])], int(pairs.plan[row])
    lines = bill(pairs, row, offer)
    total = float(total_usd(np.array([[line.cost_usd] for line in lines]))[0])
    per_mtok = total / float(pairs.tokens_per_month[row]) * 1e6
    ratio = per_mtok / float(pairs.usd_per_mtok[row])
    month_ratio = total / float(pairs.usd_per_month[row])
    return {
        "rank": rank,
        **seller(offer, market, pairs, row),
        **engine_side(plans, plan, pairs, row, request),
        "usd_per_gpu_hour": offer.usd_per_gpu_hour,
        "usd_per_mtok": per_mtok,
        "usd_per_mtok_low": min(float(pairs.usd_per_mtok_low[row]), per_mtok),
        "usd_per_mtok_high": max(float(pairs.usd_per_mtok_high[row]), per_mtok),
        "usd_per_mtok_input": float(pairs.usd_per_mtok_input[row]) * ratio,
        "usd_per_mtok_output": float(pairs.usd_per_mtok_output[row]) * ratio,
        "usd_per_month": total,
        "usd_per_month_low": min(float(pairs.low_usd[row]) * month_ratio, total),
        "usd_per_month_high": max(float(pairs.high_usd[row]) * month_ratio, total),
        "tokens_per_month": float(pairs.tokens_per_month[row]),
        "gpu_hours": float(pairs.gpu_hours[row]),
        "utilisation_fraction": float(pairs.load[row]),
        "energy_kwh": number(pairs.energy_kwh[row]),
        "kgco2e": number(pairs.kgco2e[row]),
        "source_ids": [offer.source_id],
        "lines": [line.as_dict() for line in lines],
        "notes": notes(market, plans, pairs, row, offer),
        "factors": factors(request, plans, pairs, row, offer, market),
    }


def seller(offer: Offer, market: Market, pairs: Pairs, row: int) -> Fleet:
    """Return who sells it, on which terms, and how old the price is."""
    return {
        "offer_id": offer.offer_id, "provider": offer.provider, "instance_type": offer.instance_type,
        "region": offer.region or None, "region_scope": offer.region_scope, "option": offer.option,
        "tier": offer.tier or None,
        "term_months": offer.term_months, "payment": offer.payment, "gpu": offer.gpu, "gpus": int(pairs.gpus[row]),
        "units": int(pairs.units[row]), "replicas": int(pairs.replicas[row]),
        "price_observed_on": offer.observed_on.isoformat(), "age_days": offer.age_days,
        "price_stale": bool(market.terms.stale[pairs.offer[row]]), "price_book": offer.book,
        "price_kind": offer.price_kind,
        "price_confidence": offer.confidence,
    }  # fmt: skip


def engine_side(plans: Plans, plan: int, pairs: Pairs, row: int, request: InferenceRequest) -> EngineSide:
    """Return what the physics says of a plan: layout, latency, speed, memory, bottleneck."""
    d = plans.deployments[plan]
    speed = float(plans.output_tokens_per_s[plan])
    wide = float(np.exp(plans.width[plan]))
    load = np.array([float(pairs.peak_load[row])])
    service = np.array([plans.tpot_s[plan] * request.output_tokens])
    wait = waiting_s(load, np.array([plans.sequences[plan]]), service)
    behind = prompt_wait_s(load, np.array([plans.prompt_time_fraction[plan]]), np.array([plans.ttft_s[plan]]))
    overloaded = float(load[0]) >= 0.999
    return {
        "layout": {"tensor": d.tensor, "data": d.data, "pipeline": d.pipeline, "expert": d.expert, "gpus": d.gpus},
        "precision": d.format,
        "engine": d.engine,
        "batch": int(plans.sequences[plan]),
        "batch_that_fits": number(plans.capacity[plan]),
        "ttft_ms": float(plans.ttft_s[plan]) * MS_PER_S,
        "ttft_loaded_ms": None if overloaded else float(plans.ttft_s[plan] + wait[0] + behind[0]) * MS_PER_S,
        "tpot_ms": float(plans.tpot_s[plan]) * MS_PER_S,
        "tpot_ms_low": float(plans.tpot_s[plan]) * MS_PER_S / wide,
        "tpot_ms_high": float(plans.tpot_s[plan]) * MS_PER_S * wide,
        "output_tokens_per_s": speed,
        "tokens_per_s_per_gpu": speed * request.tokens_per_request / request.output_tokens / d.gpus,
        "output_tokens_per_s_per_gpu": speed / d.gpus,
        "prompt_time_fraction": float(plans.prompt_time_fraction[plan]),
        "bottleneck": bottleneck(plans, plan),
        "components": components(plans, plan),
        "memory": memory(plans, plan, request),
    }


def components(plans: Plans, plan: int) -> dict[str, float]:
    """Return the seconds of one decode step by part."""
    parts = {name: float(getattr(plans.step, name)[plan]) for name in PARTS}
    return {name: value for name, value in parts.items() if value > 0}


def bottleneck(plans: Plans, plan: int) -> str:
    """Return what most of a step's time goes to, in words; products say whether bandwidth or arithmetic binds them."""
    parts = components(plans, plan)
    name = max(parts, key=lambda key: parts[key])
    if name != "linear_s":
        return WORDS[name]
    case = plans.case.take([plan])
    one = serving.linear_s(case, np.ones(1), np.ones(1))[0]
    held = np.maximum(plans.sequences[[plan]] / case.placement.pipeline, 1.0)
    read = serving.linear_s(case, held, held)[0] < 2 * one
    return "memory bandwidth (weights)" if read else "arithmetic (products)"


def memory(plans: Plans, plan: int, request: InferenceRequest) -> MemoryParts:
    """Return what fills an accelerator's memory, in GB."""
    case = plans.case.take([plan])
    gpus = float(plans.gpus[plan])
    context = np.array([request.prompt_tokens + request.output_tokens / 2])
    weights = float(serving.weight_bytes(case)[0]) * (1 - request.offload_fraction) / gpus / 1e9
    cache = float(serving.cache_bytes_per_sequence(case, context)[0]) * float(plans.sequences[plan]) / gpus / 1e9
    usable = float(case.chip.memory_gb[0])
    return {
        "weights_gb": weights, "cache_gb": cache, "workspace_gb": serving.RESERVED_GB, "memory_gb": usable,
        "free_gb": usable - weights - cache - serving.RESERVED_GB,
    }  # fmt: skip


def bill(pairs: Pairs, row: int, offer: Offer) -> list[Line]:
    """Return the month's lines: hours that serve, hours that wait, hours that stand by. They add up exactly."""
    total, busy = float(pairs.gpu_hours[row]), float(pairs.busy_gpu_hours[row])
    spare = min(float(pairs.spare_gpu_hours[row]), total - busy)
    hours = {"serving requests": busy, "idle capacity": max(total - busy - spare, 0.0), "redundant replicas": spare}
    lines = []
    for name, quantity in hours.items():
        if quantity > 0:
            cost = float(line_cost_usd(np.array([quantity]), np.array([offer.usd_per_gpu_hour]))[0])
            lines.append(Line(name, quantity, "GPU-hour", offer.usd_per_gpu_hour, cost, offer.source_id))
    return lines


def notes(market: Market, plans: Plans, pairs: Pairs, row: int, offer: Offer) -> list[str]:
    """Return what a reader must know of one option."""
    d = plans.deployments[int(pairs.plan[row])]
    terms, number_ = market.terms, int(pairs.offer[row])
    found = []
    if terms.stale[number_]:
        found.append(f"price is {offer.age_days} days old (limit {terms.age_limit_days[number_]:g}): range widened")
    if terms.interruptible[number_]:
        found.append("can be interrupted: requests in flight are lost and capacity may not return; keep redundancy")
    if offer.term_months:
        found.append(f"commitment of {offer.term_months} months, paid whether used or not")
    if emulated(d):
        found.append(f"{d.accelerator.id} has no arithmetic for {d.format}: weights are widened in the kernel")
    if offer.gpu_assumed:
        found.append("the form factor of the accelerator is assumed, the source does not state it")
    if d.accelerator.family not in ("ampere", "ada", "hopper", "blackwell"):
        found.append("few serving measurements of this family: wide range")
    if float(pairs.peak_load[row]) > 1.0:
        found.append("the replicas are too few for the busiest hours: requests wait or are turned away")
    return found


def factors(request: InferenceRequest, plans: Plans, pairs: Pairs, row: int, offer: Offer, market: Market) -> Factors:
    """Return every number from which replicas, hours, cost and carbon of the option follow."""
    index, plan = int(pairs.offer[row]), int(pairs.plan[row])
    terms = market.terms
    return {
        "usd_per_gpu_hour": offer.usd_per_gpu_hour,
        "replica_output_tokens_per_s": float(plans.output_tokens_per_s[plan]),
        "replica_gpus": float(plans.gpus[plan]),
        "replicas": float(pairs.replicas[row]),
        "gpus": float(pairs.gpus[row]),
        "gpu_hours": float(pairs.gpu_hours[row]),
        "busy_gpu_hours": float(pairs.busy_gpu_hours[row]),
        "spare_gpu_hours": float(pairs.spare_gpu_hours[row]),
        "tokens_per_month": float(pairs.tokens_per_month[row]),
        "prompt_tokens": request.prompt_tokens,
        "output_tokens": request.output_tokens,
        "prompt_time_fraction": float(plans.prompt_time_fraction[plan]),
        "speed_low_ratio": float(np.exp(-plans.width[plan])),
        "speed_high_ratio": float(np.exp(plans.width[plan])),
        "price_low_ratio": float(terms.price_low_ratio[index]),
        "price_high_ratio": float(terms.price_high_ratio[index]),
        "rated_power_w": number(terms.rated_power_w[index]),
        "power_fraction": float(terms.power_fraction[index]),
        "idle_power_fraction": IDLE_POWER_FRACTION,
        "pue_ratio": float(terms.pue_ratio[index]),
        "grid_kgco2e_per_kwh": number(terms.grid_kgco2e_per_kwh[index]),
    }


# The bill in the language that the workbook and --explain read.
FORMULAS = (
    ("idle_gpu_hours", "GPU-hours", "max(gpu_hours - busy_gpu_hours - spare_gpu_hours, 0)"),
    ("serving_usd", "USD", "round_cents(busy_gpu_hours * usd_per_gpu_hour)"),
    ("idle_usd", "USD", "round_cents(idle_gpu_hours * usd_per_gpu_hour)"),
    ("redundant_usd", "USD", "round_cents(spare_gpu_hours * usd_per_gpu_hour)"),
    ("usd_per_month", "USD", "serving_usd + idle_usd + redundant_usd"),
    ("usd_per_mtok", "USD per million tokens", "usd_per_month / tokens_per_month * 1000000"),
    ("prompt_share", "fraction of one", "prompt_tokens / (prompt_tokens + output_tokens)"),
    ("usd_per_mtok_input", "USD per million tokens", "usd_per_mtok * prompt_time_fraction / prompt_share"),
    ("usd_per_mtok_output", "USD per million tokens", "usd_per_mtok * (1 - prompt_time_fraction) / (1 - prompt_share)"),
    ("idle_power_gpu_hours", "GPU-hours", "max(gpu_hours - busy_gpu_hours, 0) * idle_power_fraction"),
    ("power_gpu_hours", "GPU-hours", "busy_gpu_hours * power_fraction + idle_power_gpu_hours"),
    ("energy_kwh", "kWh", "power_gpu_hours * rated_power_w * pue_ratio / 1000"),
    ("kgco2e", "kgCO2e", "energy_kwh * grid_kgco2e_per_kwh"),
)  # fmt: skip
_INPUTS = {
    "usd_per_gpu_hour": ("USD per GPU-hour", "price"), "gpu_hours": ("GPU-hours", "capacity"),
    "busy_gpu_hours": ("GPU-hours", "capacity"), "spare_gpu_hours": ("GPU-hours", "capacity"),
    "tokens_per_month": ("tokens", "load"), "prompt_tokens": ("tokens", "load"), "output_tokens": ("tokens", "load"),
    "prompt_time_fraction": ("fraction of one", "speed"), "rated_power_w": ("W", "energy"),
    "power_fraction": ("fraction of one", "energy"), "idle_power_fraction": ("fraction of one", "energy"),
    "pue_ratio": ("ratio", "energy"), "grid_kgco2e_per_kwh": ("kgCO2e per kWh", "energy"),
}  # fmt: skip


def model_block(row: Option) -> BillModel:
    """Return the bill of an option as inputs and formulas, for live workbooks; values are those of the payload."""
    values = recompute(row["factors"])
    known = row["factors"]
    inputs: list[BillInput] = [
        {
            "name": name, "value": known[name], "unit": unit, "low": None, "high": None, "group": group,
            "source_id": row["source_ids"][0] if group == "price" else "",
            "status": "sourced" if group == "price" else "derived",
            "description": name.replace("_", " "),
        }
        for name, (unit, group) in _INPUTS.items()
    ]  # fmt: skip
    derived: list[FormulaLine] = [
        {"name": name, "unit": unit, "formula": text, "value": values[name]} for name, unit, text in FORMULAS
    ]
    return {
        "option_rank": row["rank"],
        "inputs": inputs,
        "tables": {},
        "derived": derived,
        "monthly": [],
        "answers": [],
    }


def recompute(known: Factors, **changes: float) -> Factors:
    """Return the money side of an option again from its factors, some of them changed; layout and speed stay."""
    from gpucost.money.evaluate import evaluate

    values: dict[str, Any] = {name: np.nan if value is None else value for name, value in {**known, **changes}.items()}
    for name, _, text in FORMULAS:
        values[name] = evaluate(text, values)
    return {name: number(values[name]) for name, _, _ in FORMULAS}


def at_batches(
    plans: Plans, plan: int, request: InferenceRequest, usd_per_gpu_hour: float, ladder: Floats
) -> list[Batch]:
    """Return how time per token and cost trade off with the batch on one plan."""
    most = float(min(plans.capacity[plan], plans.case.rates.batch_limit[plan] * plans.case.placement.data[plan]))
    batches = np.unique(np.minimum(ladder, max(most, 1.0)))
    case = plans.case.take(np.full(len(batches), plan))
    prompt, output = np.full(len(batches), request.prompt_tokens), np.full(len(batches), request.output_tokens)
    at = serving.steady(case, batches, prompt, output)
    per_s = at.output_tokens_per_s * request.tokens_per_request / request.output_tokens
    cost = plans.gpus[plan] * usd_per_gpu_hour / 3600 / per_s * 1e6
    return [
        {
            "batch": int(b), "tpot_ms": float(t) * MS_PER_S, "tokens_per_s_per_gpu": float(s / plans.gpus[plan]),
            "usd_per_mtok": float(c),
        }
        for b, t, s, c in zip(batches, at.tpot_s, per_s, cost, strict=True)
    ]  # fmt: skip
