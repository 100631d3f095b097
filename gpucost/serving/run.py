"""From a serving request to its answer: offers, plans, prices, payload; which accelerators serve a model at all."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.answers.common import Excluded, FormulaLine, cited, finite, frame
from gpucost.answers.serving import (
    Batch,
    BillInput,
    BillModel,
    EngineSide,
    Factors,
    Hosted,
    HostedBeside,
    Inference,
    MemoryParts,
    Serves,
    ServesNot,
    ServingFit,
    ServingOption,
    ServingPoint,
    SoldFleet,
)
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import serving_calibration
from gpucost.catalog.names import options as option_names
from gpucost.errors import GpuCostError, NothingFitsError, OverBudgetError, PriceMissingError
from gpucost.formula.arrays import Columns
from gpucost.formula.language import Input
from gpucost.market import tiers
from gpucost.market.facts import (
    FILTERS,
    OLD_PRICE,
    Market,
    asked_for,
    at_most,
    at_own_price,
    cheapest,
    market_of,
    no_price,
    outside_region,
    placeless,
    prices_not_used,
)
from gpucost.market.supply import Key, left_out
from gpucost.market.terms import (
    ASSUMED_FORM,
    cluster,
    credited,
    doubted_price,
    old_price,
    quoted,
    seen,
    seller,
    unlisted,
)
from gpucost.market.terms import said as credits_said
from gpucost.money import bill
from gpucost.money.serving_bill import BILL, DEMANDED, INPUT_NAMES, INPUTS, LINES, price_months
from gpucost.options import OPTIONS, OptionRule
from gpucost.physics import transformer
from gpucost.physics.calibration import Calibration
from gpucost.physics.columns import Floats, Integers
from gpucost.physics.serving import steps as serving
from gpucost.physics.serving.calibration import USUAL_FAMILIES, doubts
from gpucost.physics.serving.cases import ServedReplica
from gpucost.physics.serving.steps import prompt_wait_s, waiting_s
from gpucost.serving import costing
from gpucost.serving.costing import MTOK, Pairs, replicas_for
from gpucost.serving.request import Distributions, InferenceRequest, spread_of
from gpucost.types import Accelerator, Architecture, Offer, System
from gpucost.units import GB, GIB, GIGA, HOURS_PER_MONTH, MS_PER_S, SECONDS_PER_HOUR, counted, format_count, unit_of
from gpucost.workloads.counts import Accelerators, Replicas
from gpucost.workloads.deployment import ModelDeployment, best_plan, served, serving_deployment
from gpucost.workloads.service import LADDER, REASONS, Plans, emulated, evaluate, format_note

# --- The answer of a serving request as a JSON-able payload; rendering needs nothing else.

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
    inputs, costs = factors(plans, pairs, row, market), pairs.costs.row(row)
    lines = bill.printed(BILL, {**pairs.factors.row(row), **costs})
    return {
        "rank": rank,
        **fleet(offer, market, pairs, row, lacking(request, market, pairs, row)),
        **engine_side(plans, plan, pairs, row, request, insides(plan)),
        "usd_per_gpu_hour": float(market.terms.usd_per_gpu_hour[int(pairs.offer[row])]),
        **{name: costs[name] for name in PRICES},  # type: ignore[typeddict-item] # all of them are its keys
        "tokens_per_month": costs["carried_tokens"],
        "gpu_hours": float(pairs.fleet.gpu_hours[row]),
        "utilisation_fraction": costs["utilisation_of_paid_fraction"],
        "energy_kwh": finite(costs["energy_kwh"]),
        "kgco2e": finite(costs["kgco2e"]),
        "source_ids": [offer.source_id],
        "lines": [{**line, "source_id": offer.source_id} for line in lines],
        "notes": notes(market, plans, pairs, row, offer),
        "factors": inputs,
    }


def fleet(offer: Offer, market: Market, pairs: Pairs, row: int, lacks: list[str]) -> SoldFleet:
    """Return who sells it, on which terms, how many are needed, and how old the price is."""
    return {
        **seller(offer),
        "gpus": int(pairs.gpus[row]),
        "units": int(pairs.fleet.units[row]),
        "instances": int(pairs.fleet.units[row]),
        "replicas": int(pairs.fleet.replicas[row]),
        **seen(offer, market.terms, int(pairs.offer[row]), credits_of(market, offer, pairs, row), lacks),
    }


def credits_of(market: Market, offer: Offer, pairs: Pairs, row: int) -> float:
    """Return what credits of the book pay of the first month."""
    month = float(pairs.costs.usd_per_month[row])
    return round(credited(market.facts.credits, offer, month, 1.0, market.facts.as_of), 2)


def engine_side(
    plans: Plans, plan: int, pairs: Pairs, row: int, request: InferenceRequest, inside: Inside
) -> EngineSide:
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
        "bottleneck": inside.bottleneck,
        "components": {**inside.components},
        "memory": {**inside.memory},
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
    single = serving.linear_s(case, np.ones(1), np.ones(1))[0]
    held = np.maximum(plans.sequences[[plan]] / case.placement.pipeline, 1.0)
    read = serving.linear_s(case, held, held)[0] < 2 * single
    return "memory bandwidth (weights)" if read else "arithmetic (products)"


def memory(plans: Plans, plan: int, request: InferenceRequest) -> MemoryParts:
    """Return what fills an accelerator's memory, in GB."""
    case = plans.case.take([plan])
    gpus = float(plans.gpus[plan])
    context = np.array([request.prompt_tokens + request.output_tokens / 2])
    weights = float(serving.weight_bytes(case)[0]) * (1 - request.offload_fraction) / gpus / GB
    cache = float(serving.cache_bytes_per_sequence(case, context)[0]) * float(plans.sequences[plan]) / gpus / GB
    whole = float(case.chip.memory_gb[0])
    workspace = float(serving.workspace_bytes(case, tight=bool(plans.tight[plan]))[0]) / GB
    return {
        "weights_gb": weights,
        "cache_gb": cache,
        "workspace_gb": workspace,
        "memory_gb": whole,
        "free_gb": whole - weights - cache - workspace,
    }


def notes(market: Market, plans: Plans, pairs: Pairs, row: int, offer: Offer) -> list[str]:
    """Return what a reader must know of one option."""
    d = plans.deployments[int(pairs.plan[row])]
    terms, number = market.terms, int(pairs.offer[row])
    remarks = old_price(offer, terms, number)
    if paid := credits_of(market, offer, pairs, row):
        remarks.append(f"in the first month {credits_said(paid, float(pairs.costs.usd_per_month[row]))}")
    if terms.interruptible[number]:
        remarks.append("interruptible: requests in flight are lost and capacity may not return; keep redundancy")
    if offer.term_months:
        remarks.append(f"{offer.term_months}-month commitment, paid whether used or not")
    if emulated(d):
        remarks.append(f"{d.accelerator.id} has no arithmetic for {d.format}: the kernel widens the weights")
    if offer.gpu_assumed:
        remarks.append(ASSUMED_FORM)
    if (beyond := extrapolated_ratio(market, plans, int(pairs.plan[row]))) > EXTRAPOLATED:
        remarks.append(f"speed extrapolated {beyond:.1f}× beyond the measurements of this chip")
    if d.accelerator.family not in USUAL_FAMILIES:
        remarks.append("few serving measurements of this accelerator family: wide range")
    if doubts(d)["unmeasured_engine"]:
        remarks.append(f"{UNMEASURED} {d.engine} on {d.accelerator.vendor}: its range is assumed, the widest there is")
    if float(pairs.fleet.peak_load[row]) > 1.0:
        remarks.append("too few replicas for the busiest hours: requests wait or are rejected")
    return [*remarks, *doubted_price(offer)]


def extrapolated_ratio(market: Market, plans: Plans, plan: int) -> float:
    """Return how far a plan's speed lies beyond the fastest measurement of its chip; 1 within, or where none is known.

    Speeds of models of different sizes are compared as 2 × active parameters × output tokens per second.
    """
    d = plans.deployments[plan]
    active = float(transformer.active_parameters(transformer.stack([d.architecture]))[0])
    rate = 2 * active * float(plans.output_tokens_per_s[plan]) / d.gpus / GIGA
    measured_rates = [
        row["highest_gflop_per_s_per_gpu"]
        for row in market.facts.measured_chips
        if row["kind"] == "serving" and row["accelerator_id"] == d.accelerator.id and row["highest_gflop_per_s_per_gpu"]
    ]
    return max(rate / measured_rates[0], 1.0) if measured_rates else 1.0


def factors(plans: Plans, pairs: Pairs, row: int, market: Market) -> Factors:
    """Return every number from which replicas, hours, cost and carbon of the option follow."""
    terms, index, width = market.terms, int(pairs.offer[row]), float(plans.width[int(pairs.plan[row])])
    columns = {name: finite(column[row]) for name, column in pairs.factors.items()}
    tokens = columns.pop(DEMANDED)
    return {
        **columns,
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
    demand = Input(DEMANDED, "demand", "tokens of the month")
    inputs: list[BillInput] = [
        {
            "name": entry.name,
            "value": known["tokens_per_month" if entry is demand else entry.name],
            "unit": unit_of(entry.name),
            "low": None,
            "high": None,
            "group": entry.group,
            "source_id": row["source_ids"][0] if entry.group == "price" else "",
            "status": "sourced" if entry.group == "price" else "derived",
            "description": entry.description,
        }
        for entry in (demand, *INPUTS)
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


def recompute(known_factors: Factors, **changes: float) -> Factors:
    """Return the money side of an option again from its factors, some of them changed; layout and speed stay."""
    values = {**known_factors, **changes}
    inputs = {name: values[name] for name in INPUT_NAMES} | {DEMANDED: values["tokens_per_month"]}
    columns = Columns({name: np.array([np.nan if value is None else float(value)]) for name, value in inputs.items()})
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


EXTRAPOLATED = 1.25  # beyond the fastest measurement from which a speed is said to be extrapolated

# --- From a request to its answer: offers, plans, prices, hosted models, payload.

EXCLUDED_SHOWN = 400


def lengths_of(catalog: Catalog) -> Distributions:
    """Return the named length distributions: mean prompt and output, and how far running requests are longer."""
    names = ("prompt_mean_tokens", "output_mean_tokens", "output_median_tokens")
    return {str(row["name"]): spread_of(*(row[name] for name in names)) for row in catalog.rows("length_distributions")}


def infer(request: InferenceRequest, catalog: Catalog) -> Inference:
    """Answer a serving request from a catalog."""
    architecture = catalog.architecture(request.model)
    market, offers = looked_at(request, catalog)
    plans = plan_for(request, architecture, market, lasting(market, offers), serving_calibration(catalog))
    pairs, order = ranked(request, architecture, market, plans, offers)
    return payload(request, architecture, catalog, market, plans, pairs, order, offers)


def looked_at(request: InferenceRequest, catalog: Catalog) -> tuple[Market, Integers]:
    """Return the market of a request and the offers in it that it looks at."""
    market = at_own_price(placeless(market_of(catalog), catalog, request), catalog, request)
    market = at_most(market, request.max_gpus)
    return market, select(request, catalog, market)


def paired(market: Market, plans: Plans, offers: Integers) -> tuple[Integers, Integers]:
    """Return every offer that lasts with every plan that it can host."""
    return costing.pair_up(market.supply, plans.key, plans.serves, plans.gpus, lasting(market, offers))


def ranked(
    request: InferenceRequest,
    architecture: Architecture,
    market: Market,
    plans: Plans,
    offers: Integers,
) -> tuple[Pairs, Integers]:
    """Price every pair of an offer and a plan, and order the best of each offer."""
    offer, plan = paired(market, plans, offers)
    if not len(offer):
        raise nothing(request, architecture, market, plans, offers)
    pairs = costing.price_pairs(request, plans, market.supply, market.terms, offer, plan)
    chosen = costing.best_per_offer(pairs, request.optimize, plans, within_budget(request, market, pairs))
    ids = [item.offer_id for item in market.facts.offers]
    order = costing.rank(pairs, chosen, request.optimize, plans, ids, market.terms.interruptible)
    return pairs, order[np.argsort(_stand(request, market, pairs, order), kind="stable")]


# what of a request decides which offers it looks at
OF_MARKET = (
    *FILTERS,
    "max_age_days",
    "strict_prices",
    "exclude_provider",
    "provider_class",
    "fabric",
    "min_confidence",
    "max_gpus",
    "usd_per_gpu_hour",
)


def _stand(request: InferenceRequest, market: Market, pairs: Pairs, order: Integers) -> Integers:
    """Return where pairs stand: what one can order first, the rest in either kind as `standing` says."""
    unsure = np.zeros(len(order), bool) if request.include_unverified else ~verified(request, market, pairs, order)
    return np.asarray(UNSURE * unsure + standing(request, market)[pairs.offer[order]], np.int64)


UNSURE = 4  # places behind all that one can order


def standing(request: InferenceRequest, market: Market) -> Integers:
    """Return where offers stand among those that one can order: what may be interrupted behind what stays.

    A service has no end that a term or a booked window could be held against, so that neither leads unless asked for.
    """
    asked = {OPTIONS[name].family for name in option_names(request.option) or ()}
    booked = np.array([OPTIONS[offer.option].family == "scheduled" for offer in market.supply.offers], bool)
    bound = market.supply.bound & ("committed" not in asked) | booked & ("scheduled" not in asked)
    return np.asarray(2 * market.terms.interruptible + bound, np.int64)


def verified(request: InferenceRequest, market: Market, pairs: Pairs, rows: Integers) -> NDArray[np.bool_]:
    """Tell which pairs one can order, for all that is known."""
    measured = market.measured["serving"] | (request.own_speed is not None)
    gpus = pairs.gpus[rows].astype(np.int64)
    return tiers.verified(market.supply, market.terms, pairs.offer[rows], gpus, measured)


def lacking(request: InferenceRequest, market: Market, pairs: Pairs, row: int) -> list[str]:
    """Say what a pair lacks of what one can order."""
    measured = market.measured["serving"] | (request.own_speed is not None)
    offer, gpus = int(pairs.offer[row]), int(pairs.gpus[row])
    return tiers.said(market.supply, market.terms, offer, gpus, measured, "serving")


def select(request: InferenceRequest, catalog: Catalog, market: Market) -> Integers:
    """Return the offers that a request looks at, as indices; too old ones are left out where that was asked for."""
    mask = asked_for(market, catalog, request)
    if not mask.any():
        raise no_price(market, catalog, request)
    if request.strict_prices:
        mask &= ~market.terms.stale
    if request.max_age_days is not None:
        mask &= market.terms.age_days <= request.max_age_days
    if not mask.any():
        raise PriceMissingError(
            "every price is older than allowed. Try a larger --max-age, or leave --strict-prices out."
        )
    return np.flatnonzero(mask)


def lasting(market: Market, offers: Integers) -> Integers:
    """Keep the offers that can be held for a month at least: a service does not end."""
    return offers[market.terms.longest_hours[offers] >= HOURS_PER_MONTH]


def too_short(rule: OptionRule) -> str:
    """Say why an option cannot carry a service."""
    return f"a service does not end; {rule.limit_said}"


def plan_for(
    request: InferenceRequest, architecture: Architecture, market: Market, offers: Integers, calibration: Calibration
) -> Plans:
    """Evaluate the plans of every key that the offers use, each up to the largest job that one of them can host."""
    largest = largest_jobs(market, offers)
    return evaluate(architecture, market.supply.keys, largest, request, calibration.values, calibration.ranges)


def largest_jobs(market: Market, offers: Integers) -> dict[int, int]:
    """Return the keys that offers use, each with the largest job that one of them can host."""
    key, gpus = market.supply.key[offers], market.supply.largest_gpus[offers]
    largest = np.zeros(len(market.supply.keys), np.int64)
    np.maximum.at(largest, key, gpus)
    first = np.sort(np.unique(key, return_index=True)[1])
    return {index: int(largest[index]) for index in key[first].tolist()}


def within_budget(request: InferenceRequest, market: Market, pairs: Pairs) -> Integers:
    """Return the pairs whose month keeps the budget; raise where none does."""
    months = pairs.costs.usd_per_month
    fits = pairs.gpus <= (request.max_gpus or np.inf)
    if not fits.any():
        raise too_large(request, int(pairs.gpus.min()))
    if request.max_cost_usd is None:
        return np.flatnonzero(fits)
    within = np.flatnonzero(fits & (months <= request.max_cost_usd))
    if len(within):
        return within
    cheapest = int(np.argmin(months))
    offer, count = market.facts.offers[int(pairs.offer[cheapest])], len(np.unique(pairs.offer))
    raise over_budget(request.max_cost_usd, count, float(months[cheapest]), offer, int(pairs.gpus[cheapest]))


def too_large(request: InferenceRequest, fewest: int) -> NothingFitsError:
    """Return the error that a load takes more accelerators than are allowed; `fewest` are the least that carry it."""
    return NothingFitsError(
        f"no offer can serve this load on {request.max_gpus} accelerators; the smallest takes"
        f" {fewest}. Try --max-gpus {fewest}."
    ).offering(max_gpus=fewest)


def over_budget(budget_usd: float, offers: int, month_usd: float, offer: Offer, gpus: int) -> OverBudgetError:
    """Return the error that the cheapest of so many offers costs more than the budget of a month."""
    return OverBudgetError(
        f"the cheapest of {counted(offers, 'offer')} costs {month_usd:,.2f} USD a month"
        f" ({offer.provider} {offer.instance_type}, {gpus} × {offer.gpu}),"
        f" over the budget of {budget_usd:,.2f} USD."
    ).offering(budget=int(np.ceil(month_usd)))


class UnservedPlans(NamedTuple):
    """What is said of plans of which none serves."""

    deployments: Sequence[ServedReplica]
    reason: Integers
    ttft_s: Floats
    tpot_s: Floats


def nothing(
    request: InferenceRequest,
    architecture: Architecture,
    market: Market,
    plans: Plans | UnservedPlans,
    offers: Integers,
) -> GpuCostError:
    """Return the error that says why no offer serves this and what would."""
    if not len(plans.deployments) and request.replica_gpus is not None and len(lasting(market, offers)):
        return NothingFitsError(
            f"no replica of {architecture.name} has {request.replica_gpus} of these accelerators. Try --replica-gpus 1,"
            " 2, 4 or 8."
        )
    if not len(plans.deployments):
        rule = OPTIONS[market.facts.offers[int(offers[0])].option]
        return NothingFitsError(f"{too_short(rule)}. Widen --option.")
    fits = plans.reason != REASONS.index("memory")
    if not fits.any():
        need = min((float(d.gpus) for d in plans.deployments), default=0.0)
        return NothingFitsError(
            f"{architecture.name} in {plans.deployments[0].format} fits no replica of these offers "
            f"(largest tried: {max((d.gpus for d in plans.deployments), default=0)} accelerators, smallest {need:g}). "
            "Try a narrower --precision, larger accelerators, or --offload."
        )
    ttft_ms, tpot_ms = plans.ttft_s[fits] * MS_PER_S, plans.tpot_s[fits] * MS_PER_S
    nearest = int(np.argmin(np.maximum(ttft_ms / (request.ttft_ms or np.inf), tpot_ms / (request.tpot_ms or np.inf))))
    reached = {"ttft": (request.ttft_ms, ttft_ms[nearest]), "tpot": (request.tpot_ms, tpot_ms[nearest])}
    return NothingFitsError(
        f"no offer meets the latency targets: the fastest gives its first token in {ttft_ms.min():.0f} ms "
        f"and a token every {tpot_ms.min():.1f} ms or more. Loosen --ttft or --tpot, or allow faster accelerators."
    ).offering(**{name: f"{int(np.ceil(had))}ms" for name, (wanted, had) in reached.items() if wanted is not None})


def payload(
    request: InferenceRequest,
    architecture: Architecture,
    catalog: Catalog,
    market: Market,
    plans: Plans,
    pairs: Pairs,
    order: Integers,
    offers: Integers,
) -> Inference:
    """Build the answer's payload."""
    risky = market.terms.interruptible[pairs.offer[order]]
    bound = market.supply.bound[pairs.offer[order]] & ~risky
    of_kind = np.zeros(len(order), np.int64)
    for kind in (risky, bound, ~risky & ~bound):  # so many that stay, so many that bind, so many that may not stay
        of_kind[kind] = np.arange(1, kind.sum() + 1)
    listed = np.flatnonzero((of_kind <= request.top) | (request.top == 0))
    insides = cache(lambda plan: inside(plans, plan, request))  # many offers are of one plan
    options = [
        option(request, market, plans, pairs, int(order[position]), int(position) + 1, insides) for position in listed
    ]
    best = int(order[0])
    hosted = beside_apis(request, architecture, catalog, market, plans, pairs, best)
    sources = {entry["source_id"] for entry in hosted["api"]} | {name for row in options for name in row["source_ids"]}
    return {
        "kind": "inference",
        **frame(request.to_dict(), market.facts.as_of, market.facts.catalog_version),
        "lead": lead(request, architecture, options, hosted["api"]),
        "said": said(request, architecture),
        "options": options,
        "offers_ranked": len(order),
        "points": points(request, market, plans, pairs, order),
        "split_rule": SPLIT_RULE,
        **hosted,
        "tradeoff": []
        if request.own_speed is not None  # other batches would be predictions still
        else at_batches(plans, int(pairs.plan[best]), request, options[0]["usd_per_gpu_hour"], LADDER),
        "excluded": excluded(request, market, plans, offers, order, pairs),
        "not_included": list(NOT_INCLUDED),
        "warnings": warnings(request, architecture, market, options, hosted),
        "remarks": prices_not_used(market.facts.ended),
        "model": model_block(options[0]),
        "sources": cited(market.facts.sources, sorted(sources)),
    }


_MOST_POINTS = 2000


def points(
    request: InferenceRequest, market: Market, plans: Plans, pairs: Pairs, order: Integers
) -> list[ServingPoint]:
    """Return each product once, where it is cheapest, as a point of the cost of tokens against the time of one.

    The front is of those that one can order: none of them is both cheaper and faster than one on it.
    """
    complete = verified(request, market, pairs, order).tolist()
    leading = any(complete)
    rows: dict[tuple[object, ...], ServingPoint] = {}
    for row, ok in zip(order.tolist(), complete, strict=True):
        offer, costs = market.facts.offers[int(pairs.offer[row])], pairs.costs
        point: ServingPoint = {
            "provider": offer.provider,
            "instance_type": offer.instance_type,
            "region": offer.region or None,
            "option": offer.option,
            "term_months": offer.term_months,
            "gpu": offer.gpu,
            "gpus": int(pairs.gpus[row]),
            "age_days": offer.age_days,
            "orderable": ok,
            "front": False,
            "tpot_ms": float(plans.tpot_s[int(pairs.plan[row])]) * MS_PER_S,
            "usd_per_mtok": float(costs.usd_per_mtok[row]),
            "usd_per_mtok_low": float(costs.usd_per_mtok_low[row]),
            "usd_per_mtok_high": float(costs.usd_per_mtok_high[row]),
            "usd_per_month": float(costs.usd_per_month[row]),
        }
        name = (offer.provider, offer.instance_type, offer.option, offer.term_months, offer.payment, point["gpus"])
        if name not in rows or point["usd_per_mtok"] < rows[name]["usd_per_mtok"]:
            rows[name] = point
    shown = list(rows.values())[:_MOST_POINTS]
    fastest = float("inf")
    for point in sorted(shown, key=lambda point: (point["usd_per_mtok"], point["tpot_ms"])):
        if (point["orderable"] or not leading) and point["tpot_ms"] < fastest:
            point["front"], fastest = True, point["tpot_ms"]
    return shown


def lead(
    request: InferenceRequest, architecture: Architecture, options: list[ServingOption], api: Sequence[Hosted]
) -> str:
    """Return the answer in a few sentences; at a load so small that an API costs less, that first."""
    best = options[0]
    where = f"{cluster(best)} at {best['provider']}"
    term = f" of {best['term_months']} months" if best["term_months"] else ""
    where += f", {OPTIONS[best['option']].label}{term}"
    load = f"{format_count(best['tokens_per_month'])} tokens" + ("" if request.has_demand else " at saturation")
    cost, low, high = (_digits(best[name]) for name in ("usd_per_mtok", "usd_per_mtok_low", "usd_per_mtok_high"))
    span = f" ({low} to {high})" if low != high else ""
    unsure = "; ".join(best["missing"])
    sentences = (
        f"{architecture.name}: {'lowest quoted, unverified, ' if unsure else ''}{cost} USD per million tokens{span} on"
        f" {where}, {best['usd_per_month']:,.0f} USD a month for {load}; TTFT {best['ttft_ms']:,.0f} ms, TPOT"
        f" {best['tpot_ms']:.3g} ms; {best['usd_per_gpu_hour']:.2f} USD per GPU-hour{quoted(best)}."
        f"{f' Missing: {unsure}.' if unsure else ''}{unlisted(best['age_days'], best['price_book'])}"
    )
    use_api = _cheaper_api(request, architecture, best, api)
    return f"{use_api}{sentences}{_committed(options)}{'' if use_api else _hosted(architecture, api)}"


def _committed(options: list[ServingOption]) -> str:
    """Say what the cheapest commitment costs beside an answer without one, where it costs less."""
    best = options[0]
    bound = [row for row in options if OPTIONS[row["option"]].family == "committed" and not row["missing"]]
    least = min(bound, key=lambda row: row["usd_per_mtok"], default=best)
    if OPTIONS[best["option"]].family == "committed" or least["usd_per_mtok"] > 0.99 * best["usd_per_mtok"]:
        return ""
    return (
        f" Bound for {least['term_months']} months it is {_digits(least['usd_per_mtok'])} USD, {cluster(least)} at"
        f" {least['provider']} for {least['usd_per_month']:,.0f} USD a month."
    )


def _cheaper_api(
    request: InferenceRequest, architecture: Architecture, best: ServingOption, api: Sequence[Hosted]
) -> str:
    """Say that an API is the way to go, where the load is so small that it costs less than the smallest machine."""
    same = [row for row in api if row["model"] == architecture.name]
    if not request.has_demand or not same:
        return ""
    hosted = min(same, key=lambda row: row["usd_per_mtok"])
    month = hosted["usd_per_mtok"] * best["tokens_per_month"] / MTOK
    if month >= best["usd_per_month"]:
        return ""
    return (
        f"Use an API: {_digits(month)} USD a month at {hosted['provider']} ({_digits(hosted['usd_per_mtok'])} per"
        f" million tokens on {hosted['observed_on']}), below the cheapest machine. "
    )


def _hosted(architecture: Architecture, api: Sequence[Hosted]) -> str:
    """Say what the cheapest hosted price of the model is; of a comparable one, with its name, where no host has it."""
    if not api:
        return ""
    best = min(api, key=lambda row: (not row["same_model"], row["usd_per_mtok"]))
    model = "" if best["model"] == architecture.name else f" for {best['model']}"
    return f" Hosted APIs start at {_digits(best['usd_per_mtok'])} USD{model} ({best['provider']})."


def _digits(usd: float) -> str:
    """Write a price to three digits, whole dollars where it is large.

    >>> _digits(0.00865), _digits(1394.3), _digits(12.345)
    ('0.00865', '1,394', '12.3')
    """
    return f"{usd:,.0f}" if usd >= 1000 else f"{usd:.3g}"


SERVED_BY = {
    "default": "served with default settings",
    "tuned": "served with settings chosen for it",
    "offline": "run in batches without a server",
}


def served_by(request: InferenceRequest) -> str:
    """Say how a model is served, and where nobody said, what would narrow the range."""
    if request.server:
        return SERVED_BY[request.server]
    return "taken as served with default settings (--server says otherwise)"


def said(request: InferenceRequest, architecture: Architecture) -> list[str]:
    """Say what the answer takes for granted."""
    lines = [
        f"{architecture.name}, {format_note(architecture, request)}; engine {request.engine}, {served_by(request)}."
        + (" Uses your own speed." if request.own_speed is not None else ""),
        f"{request.prompt_tokens:,.0f} prompt and {request.output_tokens:,.0f} output tokens per request"
        + (f", the means of {request.distribution}." if request.distribution else "."),
    ]
    if request.has_demand:
        rate = costing.mean_rate(request)
        lines.append(
            f"{rate:,.3g} requests/s on average, profile {request.profile}; replicas are "
            f"{request.utilisation_fraction:.0%} busy at the peak hour"
            + (", scaled every hour." if request.autoscale else ".")
        )
    else:
        share = request.utilisation_fraction if request.utilisation_given else 1.0
        lines.append(f"No load given: assumes that replicas are busy {share:.0%} of the time.")
    return lines


UNMEASURED = "nobody measured"


def warnings(
    request: InferenceRequest,
    architecture: Architecture,
    market: Market,
    options: list[ServingOption],
    hosted: HostedBeside,
) -> list[str]:
    """Return what a reader must know of the whole answer."""
    notices = [
        *([QUEUE_CAVEAT] if request.has_demand else []),
        *architecture.warnings,
        *outside_region(market.facts.placeless),
    ]
    if architecture.status == "synthesised":
        notices.append(
            f"{architecture.name} is synthesised from its size; give a config.json for its exact dimensions."
        )
    if options[0]["price_stale"]:
        notices.append(OLD_PRICE)
    doubted = ("speed extrapolated", UNMEASURED)
    beyond = [f"The first offer: {note}." for note in options[0]["notes"] if note.startswith(doubted)]
    notices[:0] = beyond
    limit = architecture.max_sequence_tokens
    if limit and request.tokens_per_request > limit:
        notices.append(f"Requests of {request.tokens_per_request:,.0f} tokens exceed the model's limit of {limit:,}.")
    if any(entry["stale"] for entry in hosted["api"]):
        notices.append(f"Some hosted prices are more than {costing.STALE_DAYS} days old.")
    return notices


def beside_apis(
    request: InferenceRequest,
    architecture: Architecture,
    catalog: Catalog,
    market: Market,
    plans: Plans,
    pairs: Pairs,
    best: int,
) -> HostedBeside:
    """Return hosted prices of the model and the break-even against the cheapest of them."""
    comparable = costing.comparable_models(architecture, catalog.relatives(architecture))
    api = costing.hosted_prices(catalog.rows("hosted_tokens"), architecture, comparable, request, market.facts.as_of)
    if not api:
        return {"api": [], "api_note": f"No hosted price of {architecture.name} or a comparable model is on record."}
    offer = market.facts.offers[int(pairs.offer[best])]
    plan = int(pairs.plan[best])
    unit, replica = float(offer.gpus), float(plans.gpus[plan])
    per_unit = max(float(unit // replica), 1.0)
    gpus = unit if unit >= replica else float(np.ceil(replica / unit)) * unit
    share = request.utilisation_fraction if request.has_demand or request.utilisation_given else 1.0
    speed = (
        float(plans.output_tokens_per_s[plan]) * per_unit * request.tokens_per_request / request.output_tokens * share
    )
    hourly = gpus * offer.usd_per_gpu_hour
    spare = float(np.ceil(request.redundancy / per_unit)) * hourly
    against = api[0]
    point = costing.break_even(hourly, speed, spare, against["usd_per_mtok"])
    middle = point["tokens_per_month"] or speed * SECONDS_PER_HOUR * HOURS_PER_MONTH
    line = costing.curve(hourly, speed, spare, against["usd_per_mtok"], middle)
    return {
        "api": api,
        "breakeven": {
            **point,
            "against_provider": against["provider"],
            "against_model": against["model"],
            "against_usd_per_mtok": against["usd_per_mtok"],
        },
        "breakeven_curve": line,
    }


def excluded(
    request: InferenceRequest, market: Market, plans: Plans, offers: Integers, order: Integers, pairs: Pairs
) -> list[Excluded]:
    """Return the offers that serve nothing, each with the reason; equal reasons of one product are one entry."""
    served, reasons = {int(pairs.offer[row]) for row in order}, key_reasons(plans)

    def reason_of(number: int) -> str:
        if number not in stay:
            return too_short(OPTIONS[market.facts.offers[number].option])
        if number in months:
            return (
                f"a month costs {months[number]:,.2f} USD or more, over the budget of {request.max_cost_usd:,.2f} USD"
            )
        supply = market.supply
        text = EXPLAIN[reasons.get(int(supply.key[number]), "memory")]
        return text.format(gpus=int(supply.largest_gpus[number]), why=supply.cap_reasons[number])

    months: dict[int, float] = {}  # of the offers that could serve, the cheapest
    if request.max_cost_usd is not None:
        dear_first = np.argsort(-pairs.costs.usd_per_month)
        months = dict(
            zip(pairs.offer[dear_first].tolist(), pairs.costs.usd_per_month[dear_first].tolist(), strict=True)
        )
    stay = set(lasting(market, offers).tolist())
    unserved = (int(number) for number in offers if int(number) not in served)
    return left_out((market.facts.offers[number], reason_of(number)) for number in unserved)[:EXCLUDED_SHOWN]


EXPLAIN = {
    "": "a replica needs more than the {gpus} accelerators that one order hosts ({why})",
    "memory": "the weights and one sequence do not fit {gpus} accelerators ({why})",
    "ttft": "the first token is too slow even without a queue",
    "tpot": "tokens are too slow even at a batch of one",
}


def key_reasons(plans: Plans) -> dict[int, str]:
    """Return, per key, the most telling reason why its plans fail: latency before memory, nothing if one serves."""
    reasons: dict[int, str] = {}
    rank = {"": 0, "tpot": 1, "ttft": 2, "memory": 3}
    for key, code in zip(plans.key, plans.reason, strict=True):
        name = REASONS[int(code)]
        if int(key) not in reasons or rank[name] < rank[reasons[int(key)]]:
            reasons[int(key)] = name
    return reasons


# --- Does a model fit an accelerator for serving, on how many, how fast; and which accelerators serve it at all.

# MIG instances: compute slices of seven, memory slices of eight (NVIDIA MIG user guide, supported profiles).
MIG_PROFILES = ((1, 1), (2, 2), (3, 4), (4, 4))
SLICED = ("bf16", "fp16", "fp8", "int8", "fp4", "fp32")  # peaks that an instance has its share of
COMPUTE_SLICES, MEMORY_SLICES = 7, 8
SMALLEST_MIG_GPU = 7  # instances of the chips that have these profiles


def serving_fit_payload(
    catalog: Catalog, request: InferenceRequest, gpu: str | None = None, gpus: int | None = None
) -> ServingFit:
    """Return which accelerators serve a model within the targets, with memory, latency, speed and price.

    With `gpus`, what so many of each serve: as many replicas as they hold, in the layout that is fastest in all.
    """
    architecture = catalog.architecture(request.model)
    market = market_of(catalog)
    keys = keys_of(catalog, gpu)
    plans = served(catalog, architecture, keys, request, gpus)
    entries = [entry(request, market, plans, index, key, gpus) for index, key in enumerate(keys)]
    excluded = [row[1] for row in entries if row[1] is not None]
    options = sorted(
        (row[0] for row in entries if row[0] is not None),
        key=lambda row: (row["usd_per_hour"] is None, row["usd_per_hour"] or 0.0, row["gpus"], row["gpu"]),
    )
    if gpu is not None and not options:
        on = "" if gpus is None else f"{gpus} × "
        raise NothingFitsError(
            f"{architecture.name}: {on}{excluded[0]['gpu']}: {excluded[0]['reason']}. "
            "Try a narrower --precision, more accelerators, or looser targets."
        )
    fewest = min(options, key=lambda row: (row["memory_gb"] * row["gpus"], row["gpus"], row["gpu"]), default=None)
    return {
        "kind": "serving_fit",
        **frame(request.to_dict(), catalog.as_of, catalog.version),
        "fits": bool(options),
        "lead": lead_of_fit(architecture.name, options, fewest),
        "said": [
            f"{architecture.name}, {format_note(architecture, request)}; engine {request.engine}, {served_by(request)}."
        ],
        "smallest": fewest,
        "cheapest": next((row for row in options if row["usd_per_hour"] is not None), None),
        "options": options,
        "excluded": excluded,
        "warnings": [*architecture.warnings, *tight_notes(options)],
        "sources": {},
    }


def fewest_for_load(catalog: Catalog, request: InferenceRequest, key: Key, most: int) -> ModelDeployment | None:
    """Return the fewest of an accelerator in one's own machines, at most so many, that carry a load."""
    plans = served(catalog, catalog.architecture(request.model), [key], request, most)
    if not len(plans):
        return None
    replicas = replicas_for(request, plans.output_tokens_per_s) + request.redundancy
    gpus = np.where(plans.serves, replicas * plans.gpus, np.inf)
    first = int(np.lexsort((-plans.output_tokens_per_s, gpus))[0])
    if gpus[first] > most:
        return None
    return serving_deployment(plans, first, key, request, Replicas(int(replicas[first])))


def tight_notes(options: Sequence[Serves]) -> list[str]:
    """Say which accelerators hold the model only with more of their memory than engines take by default."""
    names = [f"{row['gpus']} × {row['gpu']}" for row in options if row.get("tight")]
    if not names:
        return []
    some = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return [
        f"On {some} it runs only with {serving.TIGHT_MEMORY:.0%} of the memory (--gpu-memory-utilization"
        f" {serving.TIGHT_MEMORY:g}), short passes and {serving.TIGHT_SCORED:g} requests at once or fewer."
    ]


def lead_of_fit(model: str, options: Sequence[Serves], fewest: Serves | None) -> str:
    """Return the answer in one sentence."""
    if not options or fewest is None:
        return f"{model}: no accelerator serves this; the reasons are below."
    cheap = options[0]
    price = "" if cheap["usd_per_hour"] is None else f" for {cheap['usd_per_hour']:.2f} USD an hour"
    small = f"the least memory is {fewest['gpus']} × {fewest['gpu']}"
    return f"{model}: {small}; the cheapest is {cheap['gpus']} × {cheap['gpu']}{price}."


def keys_of(catalog: Catalog, gpu: str | None) -> list[Key]:
    """Return the accelerators to try, each in its usual node, and the MIG instances of those that have them."""
    accelerators = catalog.accelerators(gpu) if gpu else catalog.accelerators()
    slices = {str(row["id"]): row["mig_slices"] or 0 for row in catalog.rows("accelerators")}
    keys = []
    for accelerator in accelerators:
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
    request: InferenceRequest, market: Market, plans: Plans, index: int, key: Key, gpus: int | None = None
) -> tuple[Serves, None] | tuple[None, ServesNot]:
    """Return what one accelerator can do: its smallest replica that serves, or why none does.

    With `gpus`, the replicas that so many hold, in the layout with the most tokens per second in all.
    """
    plan, replicas = best_plan(plans, index, None if gpus is None else Accelerators(gpus))
    if plan is None or not plans.serves[plan]:
        codes = sorted({int(code) for code in plans.reason[plans.key == index]}, reverse=True)
        name = REASONS[codes[0]] if codes else "memory"
        few = "the weights and one sequence do not fit so few"
        reason = few if gpus is not None and name == "memory" else REASONS_IN_WORDS[name]
        return None, ServesNot(gpu=key.accelerator.id, reason=reason)
    d, one = plans.deployments[plan], serving_deployment(plans, plan, key, request, replicas)
    taken = int(one.accelerators) if gpus is None else gpus
    hire = cheapest(market, key.accelerator.id, taken)
    row: Serves = {
        "gpu": key.accelerator.id,
        "memory_gb": key.accelerator.memory_gib * (GIB / GB),
        "fits": True,
        "gpus": taken,
        "replicas": int(replicas),
        "tight": bool(plans.tight[plan]),
        "layout": {"tensor": d.tensor, "data": d.data, "pipeline": d.pipeline},
        "precision": d.format,
        "batch": int(plans.sequences[plan]),
        "batch_that_fits": int(plans.capacity[plan]),
        "ttft_ms": float(plans.ttft_s[plan]) * MS_PER_S,
        "tpot_ms": float(plans.tpot_s[plan]) * MS_PER_S,
        "output_tokens_per_s": one.tokens_per_s,
        "output_tokens_per_s_low": one.tokens_per_s_low,
        "output_tokens_per_s_high": one.tokens_per_s_high,
        "bottleneck": bottleneck(plans, plan),
        "memory": memory(plans, plan, request),
        "usd_per_hour": None if hire is None else hire.usd_per_hour,
        "offer": "" if hire is None else sold_as(hire.offer),
    }
    return row, None


def sold_as(offer: Offer) -> str:
    """Say who sells what where."""
    return f"{offer.provider} {offer.instance_type} ({offer.region or offer.region_scope})"


REASONS_IN_WORDS = {
    "": "serves",
    "memory": "the weights and one sequence fit neither its node nor the nodes that its network joins",
    "ttft": "the first token is too slow",
    "tpot": "tokens are too slow",
}
