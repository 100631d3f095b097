"""The answer of a serving request as a JSON-able payload; rendering needs nothing else."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpucost.answers.common import FormulaLine, finite
from gpucost.answers.serving import Batch, BillInput, BillModel, EngineSide, Factors, Fleet, MemoryParts, ServingOption
from gpucost.formula.arrays import Columns
from gpucost.formula.language import Input
from gpucost.market.credits import credited, said
from gpucost.market.facts import Market
from gpucost.market.sellers import ASSUMED_FORM, doubted_price, old_price, seen, seller
from gpucost.money import bill
from gpucost.money.serving_bill import BILL, DEMANDED, INPUT_NAMES, INPUTS, LINES, price_months
from gpucost.physics.columns import Floats
from gpucost.physics.serving import steps as serving
from gpucost.physics.serving.calibration import USUAL_FAMILIES
from gpucost.physics.serving.queue import prompt_wait_s, waiting_s
from gpucost.serving.costing import Pairs
from gpucost.serving.hosted import MTOK
from gpucost.serving.plans import Plans, emulated
from gpucost.serving.request import InferenceRequest
from gpucost.types import Offer
from gpucost.units import GB, MS_PER_S, SECONDS_PER_HOUR, unit_of

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
PRICES = (
    "usd_per_mtok",
    "usd_per_mtok_low",
    "usd_per_mtok_high",
    "usd_per_mtok_input",
    "usd_per_mtok_output",
    "usd_per_month",
    "usd_per_month_low",
    "usd_per_month_high",
)
WORDS = {
    "linear_s": "weights and products",
    "attention_s": "reading the cache",
    "latency_s": "fixed time of the kernels",
    "exchange_s": "links between accelerators",
    "host_s": "host",
    "prompt_s": "prompts of others",
}


class Inside(NamedTuple):
    """What a plan says of itself, whoever sells its machine."""

    bottleneck: str
    components: dict[str, float]
    memory: MemoryParts


def inside(plans: Plans, plan: int, request: InferenceRequest) -> Inside:
    """Return what binds a plan, the parts of its step and what fills its memory."""
    return Inside(bottleneck(plans, plan), components(plans, plan), memory(plans, plan, request))


def option(
    request: InferenceRequest,
    market: Market,
    plans: Plans,
    pairs: Pairs,
    row: int,
    rank: int,
    insides: Callable[[int], Inside],
) -> ServingOption:
    """Return one option: who, where, how many, how fast, at what cost, with its bill."""
    offer, plan = market.facts.offers[int(pairs.offer[row])], int(pairs.plan[row])
    known, costs = factors(plans, pairs, row, market), pairs.costs.row(row)
    lines = bill.printed(BILL, {**pairs.factors.row(row), **costs})
    return {
        "rank": rank,
        **fleet(offer, market, pairs, row),
        **engine_side(plans, plan, pairs, row, request, insides(plan)),
        "usd_per_gpu_hour": offer.usd_per_gpu_hour,
        **{name: costs[name] for name in PRICES},  # type: ignore[typeddict-item] # all of them are its keys
        "tokens_per_month": costs["carried_tokens"],
        "gpu_hours": float(pairs.fleet.gpu_hours[row]),
        "utilisation_fraction": costs["utilisation_of_paid_fraction"],
        "energy_kwh": finite(costs["energy_kwh"]),
        "kgco2e": finite(costs["kgco2e"]),
        "source_ids": [offer.source_id],
        "lines": [{**line, "source_id": offer.source_id} for line in lines],
        "notes": notes(market, plans, pairs, row, offer),
        "factors": known,
    }


def fleet(offer: Offer, market: Market, pairs: Pairs, row: int) -> Fleet:
    """Return who sells it, on which terms, how many are needed, and how old the price is."""
    return {
        **seller(offer),
        "gpus": int(pairs.gpus[row]),
        "units": int(pairs.fleet.units[row]),
        "replicas": int(pairs.fleet.replicas[row]),
        **seen(offer, market.terms, int(pairs.offer[row]), credits_of(market, offer, pairs, row)),
    }


def credits_of(market: Market, offer: Offer, pairs: Pairs, row: int) -> float:
    """Return what credits of the book pay of the first month."""
    month = float(pairs.costs.usd_per_month[row])
    return round(credited(market.facts.credits, offer, month, 1.0, market.facts.as_of), 2)


def engine_side(plans: Plans, plan: int, pairs: Pairs, row: int, request: InferenceRequest, own: Inside) -> EngineSide:
    """Return what the physics says of a plan: layout, latency, speed, memory, bottleneck."""
    d = plans.deployments[plan]
    speed = float(plans.output_tokens_per_s[plan])
    wide = float(np.exp(plans.width[plan]))
    load = np.array([float(pairs.fleet.peak_load[row])])
    service = np.array([plans.tpot_s[plan] * request.output_tokens])
    wait = waiting_s(load, np.array([plans.sequences[plan]]), service)
    behind = prompt_wait_s(load, np.array([plans.prompt_time_fraction[plan]]), np.array([plans.ttft_s[plan]]))
    overloaded = float(load[0]) >= 0.999
    return {
        "layout": {"tensor": d.tensor, "data": d.data, "pipeline": d.pipeline, "expert": d.expert, "gpus": d.gpus},
        "precision": d.format,
        "engine": d.engine,
        "batch": int(plans.sequences[plan]),
        "batch_that_fits": finite(plans.capacity[plan]),
        "ttft_ms": float(plans.ttft_s[plan]) * MS_PER_S,
        "ttft_loaded_ms": None if overloaded else float(plans.ttft_s[plan] + wait[0] + behind[0]) * MS_PER_S,
        "tpot_ms": float(plans.tpot_s[plan]) * MS_PER_S,
        "tpot_ms_low": float(plans.tpot_s[plan]) * MS_PER_S / wide,
        "tpot_ms_high": float(plans.tpot_s[plan]) * MS_PER_S * wide,
        "output_tokens_per_s": speed,
        "tokens_per_s_per_gpu": speed * request.tokens_per_request / request.output_tokens / d.gpus,
        "output_tokens_per_s_per_gpu": speed / d.gpus,
        "prompt_time_fraction": float(plans.prompt_time_fraction[plan]),
        "bottleneck": own.bottleneck,
        "components": {**own.components},
        "memory": {**own.memory},
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
    weights = float(serving.weight_bytes(case)[0]) * (1 - request.offload_fraction) / gpus / GB
    cache = float(serving.cache_bytes_per_sequence(case, context)[0]) * float(plans.sequences[plan]) / gpus / GB
    usable = float(case.chip.memory_gb[0])
    return {
        "weights_gb": weights,
        "cache_gb": cache,
        "workspace_gb": serving.RESERVED_GB,
        "memory_gb": usable,
        "free_gb": usable - weights - cache - serving.RESERVED_GB,
    }


def notes(market: Market, plans: Plans, pairs: Pairs, row: int, offer: Offer) -> list[str]:
    """Return what a reader must know of one option."""
    d = plans.deployments[int(pairs.plan[row])]
    terms, number = market.terms, int(pairs.offer[row])
    found = old_price(offer, terms, number)
    if paid := credits_of(market, offer, pairs, row):
        found.append(f"in the first month {said(paid, float(pairs.costs.usd_per_month[row]))}")
    if terms.interruptible[number]:
        found.append("can be interrupted: requests in flight are lost and capacity may not return; keep redundancy")
    if offer.term_months:
        found.append(f"commitment of {offer.term_months} months, paid whether used or not")
    if emulated(d):
        found.append(f"{d.accelerator.id} has no arithmetic for {d.format}: weights are widened in the kernel")
    if offer.gpu_assumed:
        found.append(ASSUMED_FORM)
    if d.accelerator.family not in USUAL_FAMILIES:
        found.append("few serving measurements of this family: wide range")
    if float(pairs.fleet.peak_load[row]) > 1.0:
        found.append("the replicas are too few for the busiest hours: requests wait or are turned away")
    return [*found, *doubted_price(offer)]


def factors(plans: Plans, pairs: Pairs, row: int, market: Market) -> Factors:
    """Return every number from which replicas, hours, cost and carbon of the option follow."""
    terms, index, width = market.terms, int(pairs.offer[row]), float(plans.width[int(pairs.plan[row])])
    given = {name: finite(column[row]) for name, column in pairs.factors.items()}
    tokens = given.pop(DEMANDED)
    return {
        **given,
        "tokens_per_month": tokens,
        "busy_gpu_hours": float(pairs.costs.busy_gpu_hours[row]),
        "replicas": float(pairs.fleet.replicas[row]),
        "gpus": float(pairs.gpus[row]),
        "speed_low_ratio": float(np.exp(-width)),
        "speed_high_ratio": float(np.exp(width)),
        "price_low_ratio": float(terms.price_low_ratio[index]),
        "price_high_ratio": float(terms.price_high_ratio[index]),
    }


def model_block(row: ServingOption) -> BillModel:
    """Return the bill of an option as inputs and formulas, with their values."""
    known, values = row["factors"], recompute(row["factors"])
    asked = Input(DEMANDED, "demand", "tokens of the month")
    inputs: list[BillInput] = [
        {
            "name": entry.name,
            "value": known["tokens_per_month" if entry is asked else entry.name],
            "unit": unit_of(entry.name),
            "low": None,
            "high": None,
            "group": entry.group,
            "source_id": row["source_ids"][0] if entry.group == "price" else "",
            "status": "sourced" if entry.group == "price" else "derived",
            "description": entry.description,
        }
        for entry in (asked, *INPUTS)
    ]
    derived: list[FormulaLine] = [
        {"name": line.name, "unit": line.measure, "formula": line.text, "value": values[line.name]} for line in LINES
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
    values = {**known, **changes}
    given = {name: values[name] for name in INPUT_NAMES} | {DEMANDED: values["tokens_per_month"]}
    columns = Columns({name: np.array([np.nan if value is None else float(value)]) for name, value in given.items()})
    return {name: finite(value) for name, value in price_months(columns).row(0).items()}


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
    cost = plans.gpus[plan] * usd_per_gpu_hour / SECONDS_PER_HOUR / per_s * MTOK
    return [
        {
            "batch": int(b),
            "tpot_ms": float(t) * MS_PER_S,
            "tokens_per_s_per_gpu": float(s / plans.gpus[plan]),
            "usd_per_mtok": float(c),
        }
        for b, t, s, c in zip(batches, at.tpot_s, per_s, cost, strict=True)
    ]
