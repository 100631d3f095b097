"""From a serving request to its answer: offers, plans, prices, payload; which accelerators serve a model at all."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
from msgspec.structs import replace

from gpucost.answers.common import FormulaLine, StatedFact, cited, figures, finite, frame
from gpucost.answers.serving import (
    Batch,
    BillInput,
    BillModel,
    EngineSide,
    Factors,
    Hosted,
    HostedBeside,
    Inference,
    LevelFigures,
    LevelRow,
    MemoryParts,
    ServedBudget,
    Serves,
    ServesNot,
    ServingFit,
    ServingOption,
)
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import serving_calibration
from gpucost.errors import GpuCostError, NothingFitsError, OverBudgetError, PriceMissingError
from gpucost.formula.arrays import Columns
from gpucost.formula.language import Input
from gpucost.market import filters
from gpucost.market.facts import CHOOSING, Market, market_of
from gpucost.market.hires import cheapest
from gpucost.market.supply import Key
from gpucost.market.table import OfferTable
from gpucost.market.terms import (
    ASSUMED_FORM,
    cluster,
    credited,
    doubted_price,
    large_order,
    old_price,
    seen,
    seller,
    unlisted,
)
from gpucost.market.terms import said as credits_said
from gpucost.money import bill
from gpucost.money.serving_bill import BILL, DEMANDED, INPUT_NAMES, INPUTS, LINES, price_months
from gpucost.options import OPTIONS, OptionRule
from gpucost.physics import transformer
from gpucost.physics.columns import Integers
from gpucost.physics.serving import steps as serving
from gpucost.physics.serving.calibration import PREFIX_CACHING, USUAL_FAMILIES, doubts
from gpucost.serving import costing, load
from gpucost.serving.costing import MTOK, Pairs, replicas_for
from gpucost.serving.offers import NO_PAIR, Priced, by_region, highlights, offer_rows, rank, table_of
from gpucost.serving.request import Distributions, InferenceRequest, spread_of
from gpucost.types import Accelerator, Architecture, Offer, System
from gpucost.units import GB, GIB, GIGA, HOURS_PER_MONTH, MS_PER_S, SECONDS_PER_HOUR, counted, format_count, unit_of
from gpucost.workloads.counts import Accelerators, Replicas
from gpucost.workloads.deployment import ModelDeployment, best_plan, served, serving_deployment
from gpucost.workloads.service import (
    LADDER,
    REASONS,
    USUAL_TPOT_MS,
    USUAL_TTFT_MS,
    WIDEST,
    Plans,
    emulated,
    evaluate,
    format_note,
    layouts,
)
from gpucost.workloads.speeds import key_of
from gpucost.workloads.unsaid import PREFIX, SERVER, SERVING, Doubt, costliest

# --- The answer of a serving request as a JSON-able payload; rendering needs nothing else.

_SPLIT_RULE = (
    "Cost is split by time: prompt tokens carry the share of a replica's time that goes to prompts, output tokens the "
    "rest. The blended figure is the cost ÷ all tokens, prompts and outputs together."
)
_QUEUE_CAVEAT = "TTFT under load is a queueing estimate, 40 to 650 % off in public tests."
_NOT_INCLUDED = (
    "gateways, load balancers, storage of the weights and traffic",
    "staff, support plans and software licences",
    "warm-up of new replicas and time without requests beyond the stated profile",
    "taxes, and discounts that you negotiated (a price book holds those)",
)
# of a step, as `serving.steps` names them
_PARTS = ("linear_s", "attention_s", "latency_s", "exchange_s", "host_s", "prompt_s")
_PRICES = (  # of the costs, what an option shows by these names
    "usd_per_mtok",
    "usd_per_mtok_low",
    "usd_per_mtok_high",
    "usd_per_mtok_input",
    "usd_per_mtok_output",
    "usd_per_month",
    "usd_per_month_low",
    "usd_per_month_high",
)
_WORDS = {
    "linear_s": "weights and products",
    "attention_s": "reading the cache",
    "latency_s": "fixed time of the kernels",
    "exchange_s": "links between accelerators",
    "host_s": "host",
    "prompt_s": "prompts of others",
}


class _Inside(NamedTuple):
    """What a plan says of itself, whoever sells its machine."""

    bottleneck: str
    components: dict[str, float]
    memory: MemoryParts


def _inside(plans: Plans, plan: int, request: InferenceRequest) -> _Inside:
    """Return what binds a plan, the parts of its step and what fills its memory."""
    return _Inside(bottleneck(plans, plan), components(plans, plan), memory(plans, plan, request))


def option(
    request: InferenceRequest,
    market: Market,
    plans: Plans,
    pairs: Pairs,
    row: int,
    rank: int,
    insides: Callable[[int], _Inside],
) -> ServingOption:
    """Return one option: who, where, how many, how fast, at what cost, with its bill."""
    number, plan = int(pairs.offer[row]), int(pairs.plan[row])
    offer, units = market.facts.offers[number], int(pairs.fleet.units[row])
    inputs, costs = factors(plans, pairs, row, market), pairs.costs.row(row)
    lines = bill.printed(BILL, {**pairs.factors.row(row), **costs})
    answer: ServingOption = {
        "rank": rank,
        **seller(offer),
        "gpus": int(pairs.gpus[row]),
        "units": units,  # as the seller counts them, which are its machines
        "instances": units,
        "replicas": int(pairs.fleet.replicas[row]),
        **seen(offer, market.terms, number, _credits_of(market, offer, pairs, row)),
        **_engine_side(plans, plan, pairs, row, request, insides(plan)),
        "usd_per_gpu_hour": float(market.terms.usd_per_gpu_hour[number]),
        **{name: costs[name] for name in _PRICES},  # type: ignore[typeddict-item] # all of them are its keys
        **figures(ServedBudget, pairs.costs, row),
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
    if plans.level is None:
        return answer
    # within a service level the simulation speaks: its means replace those of a steady state
    level: LevelFigures = plans.level.figures(request, plan, plans)
    first_ms, each_ms = level["figures"]["ttft_mean_ms"], level["figures"]["tpot_mean_ms"]
    answer["level"] = level
    answer["ttft_ms"], answer["ttft_loaded_ms"] = first_ms, first_ms if request.has_demand else None
    if each_ms is not None:
        slower = each_ms / answer["tpot_ms"]  # the range of the steps goes with the mean of the simulated load
        answer["tpot_ms"] = each_ms
        answer["tpot_ms_low"], answer["tpot_ms_high"] = answer["tpot_ms_low"] * slower, answer["tpot_ms_high"] * slower
    answer["usd_per_1000_requests"] = 1000 * answer["usd_per_mtok"] * request.tokens_per_request / MTOK
    # What a million prompt tokens cost that are read, and that the prefix cache holds: a cached token is not read; it
    # costs the attention that later tokens of its prompt pay to it.
    share, cached = level["prompt_time_fraction"], level["cached_time_fraction"]
    all_usd, hit = answer["usd_per_mtok_input"], request.prefix_hit_fraction or 0.0
    of_cached = cached / share if share else 0.0
    answer["usd_per_mtok_fresh"] = all_usd * (1 - of_cached) / (1 - hit) if hit < 1 else None
    answer["usd_per_mtok_cached"] = all_usd * of_cached / hit if hit else None
    return answer


def _credits_of(market: Market, offer: Offer, pairs: Pairs, row: int) -> float:
    """Return what credits of the book pay of the first month."""
    month = float(pairs.costs.usd_per_month[row])
    return round(credited(market.facts.credits, offer, month, 1.0, market.facts.as_of), 2)


def _engine_side(
    plans: Plans, plan: int, pairs: Pairs, row: int, request: InferenceRequest, inside: _Inside
) -> EngineSide:
    """Return what the physics says of a plan: layout, latency, speed, memory, bottleneck."""
    d = plans.deployments[plan]
    speed = float(plans.output_tokens_per_s[plan])
    wide = float(np.exp(plans.width[plan]))  # the range of a time is that of the speed
    ttft_ms = finite(float(plans.ttft_s[plan] + plans.queue_s[plan]) * MS_PER_S)
    return {
        "layout": {"tensor": d.tensor, "data": d.data, "pipeline": d.pipeline, "expert": d.expert, "gpus": d.gpus},
        "precision": d.format,
        "engine": d.engine,
        "batch": int(plans.sequences[plan]),
        "batch_that_fits": finite(plans.capacity[plan]),
        "requests_in_flight": float(plans.in_flight[plan]),
        "ttft_ms": ttft_ms,
        "ttft_unloaded_ms": float(plans.ttft_s[plan]) * MS_PER_S,  # of an idle replica
        "ttft_loaded_ms": ttft_ms if request.has_demand else None,
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
    parts = {name: float(getattr(plans.step, name)[plan]) for name in _PARTS}
    return {name: value for name, value in parts.items() if value > 0}


def bottleneck(plans: Plans, plan: int) -> str:
    """Return what most of a step's time goes to, in words; products say whether bandwidth or arithmetic binds them."""
    parts = components(plans, plan)
    name = max(parts, key=lambda key: parts[key])
    if name != "linear_s":
        return _WORDS[name]
    case = plans.case.take([plan])
    # products that take less than twice the time of one sequence's wait for the weights, which all share
    single = serving.linear_s(case, np.ones(1), np.ones(1))[0]
    at_once = np.maximum(plans.in_flight[[plan]] / case.placement.pipeline, 1.0)
    read = serving.linear_s(case, at_once, at_once)[0] < 2 * single
    return "memory bandwidth (weights)" if read else "arithmetic (products)"


def memory(plans: Plans, plan: int, request: InferenceRequest) -> MemoryParts:
    """Return what fills an accelerator's memory, in GB."""
    case = plans.case.take([plan])
    gpus = float(plans.gpus[plan])
    context = np.array([request.prompt_tokens + request.output_tokens / 2])  # a running request is half written
    weights = float(serving.weight_bytes(case)[0]) * (1 - request.offload_fraction) / gpus / GB
    cache = float(serving.cache_bytes_per_sequence(case, context)[0]) * float(plans.sequences[plan]) / gpus / GB
    whole = float(case.chip.memory_gb[0])  # as sold; what engines leave free is part of what is free here
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
    paid = _credits_of(market, offer, pairs, row)
    if paid:
        remarks.append(f"in the first month {credits_said(paid, float(pairs.costs.usd_per_month[row]))}")
    if terms.interruptible[number]:
        remarks.append("interruptible: requests in flight are lost and capacity may not return; keep redundancy")
    if offer.term_months:
        remarks.append(f"{offer.term_months}-month commitment, paid whether used or not")
    if emulated(d):
        remarks.append(f"{d.accelerator.id} has no arithmetic for {d.format}: the kernel widens the weights")
    if offer.gpu_assumed:
        remarks.append(ASSUMED_FORM)
    # How far the speed lies beyond the fastest measurement of the chip; speeds of models of different sizes are
    # compared as 2 × active parameters × output tokens per second.
    active = float(transformer.active_parameters(transformer.stack([d.architecture]))[0])
    rate = 2 * active * float(plans.output_tokens_per_s[int(pairs.plan[row])]) / d.gpus / GIGA
    measured_rates = [
        chip["highest_gflop_per_s_per_gpu"]
        for chip in market.facts.measured_chips
        if chip["kind"] == "serving"
        and chip["accelerator_id"] == d.accelerator.id
        and chip["highest_gflop_per_s_per_gpu"]
    ]
    if measured_rates and rate / measured_rates[0] > _EXTRAPOLATED:
        ratio = rate / measured_rates[0]
        remarks.append(f"speed extrapolated {ratio:.1f}× beyond the measurements of this chip")
    if d.accelerator.family not in USUAL_FAMILIES:
        remarks.append("few serving measurements of this accelerator family: wide range")
    if doubts(d)["unmeasured_engine"]:
        remarks.append(f"{_UNMEASURED} {d.engine} on {d.accelerator.vendor}: its range is assumed, the widest there is")
    load_ratio = float(pairs.fleet.peak_load[row])
    if load_ratio > 1.0:
        each = float(pairs.factors.replica_output_tokens_per_s[row] / pairs.factors.output_tokens[row])
        carried = each * float(pairs.factors.serving_replicas[row])
        remarks.append(
            f"too few replicas for the busiest hours, which bring {_digits(load_ratio * carried)} requests/s: beyond"
            f" {_digits(carried)} requests wait or are rejected; one more replica carries {_digits(each)} more"
        )
    return [*remarks, *doubted_price(offer)]


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


def _model_block(row: ServingOption) -> BillModel:
    """Return the bill of an option as inputs and formulas, with their values."""
    known, values = row["factors"], recompute(row["factors"])
    # what the month asks for stands ahead of the bill's inputs
    demand = Input(DEMANDED, "demand", "tokens of the month")
    inputs: list[BillInput] = [
        {
            "name": item.name,
            "value": known["tokens_per_month" if item is demand else item.name],
            "unit": unit_of(item.name),
            "low": None,
            "high": None,
            "group": item.group,
            "source_id": row["source_ids"][0] if item.group == "price" else "",
            "status": "sourced" if item.group == "price" else "derived",
            "description": item.description,
        }
        for item in (demand, *INPUTS)
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


_EXTRAPOLATED = 1.25  # beyond the fastest measurement from which a speed is said to be extrapolated

# --- From a request to its answer: offers, plans, prices, hosted models, payload.


def lengths_of(catalog: Catalog) -> Distributions:
    """Return the named length distributions: mean prompt and output, and how far running requests are longer."""
    names = ("prompt_mean_tokens", "output_mean_tokens", "output_median_tokens")
    return {
        str(row["name"]): spread_of(*(row[name] for name in names))._replace(seen_fraction=row["prompt_seen_fraction"])
        for row in catalog.rows("length_distributions")
    }


class RankedOffers(NamedTuple):
    """What the offers of a request come to, and the order of the best pair of each offer."""

    architecture: Architecture
    priced: Priced
    order: Integers
    offers: Integers  # that the request looks at

    def table(self) -> OfferTable:
        """Return the table that an answer reads: what ranks, and what serves nothing, with the reason."""
        return table_of(self.priced, self.order, _left_out(self.priced, self.offers, self.order))


def infer(request: InferenceRequest, catalog: Catalog) -> Inference:
    """Answer a serving request from a catalog."""
    offers = _priced_offers(request, catalog)
    return payload(offers.architecture, catalog, offers.priced, offers.table())


def _priced_offers(request: InferenceRequest, catalog: Catalog) -> RankedOffers:
    """Return the offers of a serving request in their order; where nobody sells it the error says its speed."""
    try:
        return offers_of(request, catalog)
    except PriceMissingError as error:
        if request.gpu is None:
            raise
        keys = _keys_of(catalog, request.gpu)
        plans = served(catalog, catalog.architecture(request.model), keys, request)
        plan, _ = best_plan(plans, 0, None)
        if plan is None or not plans.serves[plan]:
            raise error from None
        speed, d = float(plans.output_tokens_per_s[plan]), plans.deployments[plan]
        raise PriceMissingError(
            f"{error} It serves all the same: {d.gpus} × {d.accelerator.id} write about {speed:,.0f} tokens a second"
            f" in {d.format}. --usd-per-gpu-hour prices them."
        ).reaching(gpus=d.gpus) from None


def first_option(request: InferenceRequest, catalog: Catalog) -> ServingOption:
    """Return the first option of an answer, without what stands beside it: a row of a sweep."""
    offers = _priced_offers(request, catalog)
    _, market, plans, pairs = offers.priced
    insides = cache(lambda plan: _inside(plans, plan, request))
    return option(request, market, plans, pairs, int(offers.order[0]), 1, insides)


def level_options(request: InferenceRequest, catalog: Catalog) -> list[dict[str, Any]]:
    """Return what keeps a service level on each accelerator, whole options with the cells of the table of levels."""
    offers = _priced_offers(request, catalog)
    return _each_level(offers.priced, offers.order)


def offers_of(request: InferenceRequest, catalog: Catalog) -> RankedOffers:
    """Return the offers of a serving request in their order; an assumed target that none meets is no target."""
    for question in request.relaxed():  # as asked, then without one assumed target, then without any
        try:
            return _offers_of(question, catalog)
        except NothingFitsError as error:
            last = error
    raise last


def _offers_of(request: InferenceRequest, catalog: Catalog) -> RankedOffers:
    architecture = catalog.architecture(request.model)
    market, offers = looked_at(request, catalog)
    # the plans of every key that the offers use, each up to the largest job that one of them can host
    calibration, largest = serving_calibration(catalog), largest_jobs(market, lasting(market, offers))
    keys = market.supply.keys
    plans = evaluate(architecture, keys, largest, request, calibration.values, calibration.ranges)
    if request.users is not None:  # how often they ask depends on how fast they are answered
        request = replace(request, requests_per_s=load.rate_of_users(request, plans))
    if request.has_level and not request.utilisation_given:  # the level, not a usual share, says how full they are
        request = replace(request, utilisation_fraction=1.0)
    if request.has_level:
        chip_layouts = _level_layouts(market, plans, offers)
        if not chip_layouts:
            raise _nothing(request, architecture, market, plans, offers)
        plans = costing.loaded(request, load.at_level(request, plans, chip_layouts, catalog))
        plans = plans.level.by_phase(plans)
    else:
        plans = costing.loaded(request, plans)
    pairs, order = _ranked(request, architecture, market, plans, offers)
    return RankedOffers(architecture, Priced(request, market, plans, pairs), order, offers)


def table_rows(request: InferenceRequest, catalog: Catalog) -> list[dict[str, Any]]:
    """Return the table of a request, a row for each offer: its rank and figures, or why it has no rank."""
    try:
        offers = offers_of(request, catalog)
    except (NothingFitsError, PriceMissingError):  # nothing is on offer, or serves
        return []
    table = offers.table()
    _, market, plans, pairs = offers.priced
    insides = cache(lambda plan: _inside(plans, plan, request))
    rows = []
    for line in table.lines:
        offer = market.facts.offers[line.offer]
        if line.case == NO_PAIR:
            row = {**table.row(line, offer, market.terms, offer.gpus), **seller(offer)}
        else:
            row = {
                **table.row(line, offer, market.terms, int(pairs.gpus[line.case])),
                **option(request, market, plans, pairs, line.case, line.rank or 0, insides),
                "rank": line.rank,
            }
        rows.append(row)
    return rows


def _level_layouts(market: Market, plans: Plans, offers: Integers) -> list[list[load.LevelLayout]]:
    """Return the layouts of each accelerator by what a token costs at saturation, each with the plans that have it.

    Quotes of what may be taken back count only where nothing else is sold.
    """
    offer, plan = _paired(market, plans, offers)
    price = market.terms.usd_per_gpu_hour[offer] * plans.gpus[plan]
    # the lowest price of each plan, and the lowest of those that stay
    lasting_usd, usd_per_h = np.full(len(plans), np.inf), np.full(len(plans), np.inf)
    np.fmin.at(usd_per_h, plan, price)
    np.fmin.at(lasting_usd, plan, np.where(market.terms.interruptible[offer], np.inf, price))
    usd_per_h = np.where(np.isfinite(lasting_usd), lasting_usd, usd_per_h)
    by_chip: dict[str, dict[tuple[int, int, int], list[int]]] = {}
    for number in np.flatnonzero(np.isfinite(usd_per_h)).tolist():
        d = plans.deployments[number]
        by_chip.setdefault(d.accelerator.id, {}).setdefault((d.tensor, d.data, d.pipeline), []).append(number)

    def per_token(number: int) -> float:
        return float(usd_per_h[number] / plans.output_tokens_per_s[number])

    ranked_layouts = []
    for of_chip in by_chip.values():
        groups = [sorted(group, key=per_token) for group in of_chip.values()]
        groups.sort(key=lambda group: per_token(group[0]))
        ranked_layouts.append([load.LevelLayout(group, float(usd_per_h[group[0]])) for group in groups])
    return ranked_layouts


_MOST_MARKETS = 256  # that one catalog holds; a sweep asks of a few


def looked_at(request: InferenceRequest, catalog: Catalog) -> tuple[Market, Integers]:
    """Return the market of a request and the offers in it that it looks at, kept with the catalog."""
    markets: dict[tuple[Any, ...], tuple[Market, Integers]] = catalog.derived.setdefault("served_markets", {})
    name = tuple(getattr(request, field) for field in _OF_MARKET)
    if name not in markets:
        market = filters.placeless(market_of(catalog), catalog, request)
        market = filters.at_most(filters.at_own_price(market, catalog, request), request.max_gpus)
        looked_at_offers = select(request, catalog, market)
        if len(markets) >= _MOST_MARKETS:
            markets.clear()
        markets[name] = market, looked_at_offers
    return markets[name]


def _paired(market: Market, plans: Plans, offers: Integers) -> tuple[Integers, Integers]:
    """Return every offer that lasts with every plan that it can host."""
    return costing.pair_up(market.supply, plans.key, plans.serves, plans.gpus, lasting(market, offers))


def _ranked(
    request: InferenceRequest,
    architecture: Architecture,
    market: Market,
    plans: Plans,
    offers: Integers,
) -> tuple[Pairs, Integers]:
    """Price every pair of an offer and a plan, and order the best of each offer."""
    offer, plan = _paired(market, plans, offers)
    if request.gpus is not None:  # a replica may have no more than all of them
        small = plans.gpus[plan] <= request.gpus
        offer, plan = offer[small], plan[small]
    if not len(offer):
        raise _nothing(request, architecture, market, plans, offers)
    pairs = costing.price_pairs(request, plans, market.supply, market.terms, offer, plan)
    allowed = np.flatnonzero(pairs.gpus <= (request.max_gpus or np.inf))
    if not len(allowed):
        fewest = int(pairs.gpus.min())
        raise NothingFitsError(
            f"no offer can serve this load on {request.max_gpus} accelerators; the smallest takes"
            f" {fewest}. Try --max-gpus {fewest}."
        ).offering(max_gpus=fewest)
    pairs = costing.with_budgets(pairs, market.supply, market.terms, allowed)
    if request.max_cost_usd is not None:
        months = pairs.costs.budget_usd[allowed]
        cheapest = int(allowed[np.argmin(months)])
        allowed = allowed[months <= request.max_cost_usd]
        if not len(allowed):
            sold, offers_priced = market.facts.offers[int(pairs.offer[cheapest])], len(np.unique(pairs.offer))
            raise OverBudgetError(
                f"the lowest budget of {counted(offers_priced, 'offer')} is {months.min():,.2f} USD a month"
                f" ({sold.provider} {sold.instance_type}, {int(pairs.gpus[cheapest])} × {sold.gpu}), over the budget of"
                f" {request.max_cost_usd:,.2f} USD."
            ).offering(budget=int(np.ceil(months.min())))
    chosen = costing.best_per_offer(pairs, request, plans, allowed)
    return pairs, rank(Priced(request, market, plans, pairs), chosen)


_OF_MARKET = (*CHOOSING, "max_age_days", "strict_prices")


def select(request: InferenceRequest, catalog: Catalog, market: Market) -> Integers:
    """Return the offers that a request looks at, as indices; too old ones are left out where that was asked for."""
    mask = filters.asked_for(market, catalog, request)
    if not mask.any():
        raise filters.no_price(market, catalog, request)
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


def _too_short(rule: OptionRule) -> str:
    """Say why an option cannot carry a service."""
    return f"a service does not end; {rule.limit_sentence}"


def largest_jobs(market: Market, offers: Integers) -> dict[int, int]:
    """Return the keys that offers use, each with the largest job that one of them can host."""
    key, gpus = market.supply.key[offers], market.supply.largest_gpus[offers]
    # by node and chip: offers of one kind share their plans
    largest = np.zeros(len(market.supply.keys), np.int64)
    np.maximum.at(largest, key, gpus)
    first = np.sort(np.unique(key, return_index=True)[1])  # keys in the order of the offers that name them first
    return {index: int(largest[index]) for index in key[first].tolist()}


def _nothing(
    request: InferenceRequest,
    architecture: Architecture,
    market: Market,
    plans: Plans,
    offers: Integers,
) -> GpuCostError:
    """Return the error that says why no offer serves this and what would."""
    if not len(plans.deployments) and request.replica_gpus is not None and len(lasting(market, offers)):
        # no plan has the stated size: name those that the offers allow, and the nearest
        supply, replica_gpus = market.supply, request.replica_gpus
        sizes = {
            tensor * data * pipeline
            for key, most in largest_jobs(market, lasting(market, offers)).items()
            for tensor, data, pipeline in layouts(architecture, supply.keys[key], most)
        }
        nearest_size = min(sizes, key=lambda size: (abs(np.log(size / replica_gpus)), size))
        return NothingFitsError(
            f"no replica of {architecture.name} has {replica_gpus} of these accelerators. Its sizes are"
            f" {', '.join(map(str, sorted(sizes)))}."
        ).offering(replica_gpus=nearest_size)
    if not len(plans.deployments):  # nothing that lasts is on offer
        rule = OPTIONS[market.facts.offers[int(offers[0])].option]
        return NothingFitsError(f"{_too_short(rule)}. Widen --option.")
    fits = plans.reason != REASONS.index("memory")
    if not fits.any():
        need = min((float(d.gpus) for d in plans.deployments), default=0.0)
        return NothingFitsError(
            f"{architecture.name} in {plans.deployments[0].format} fits no replica of these offers "
            f"(largest tried: {max((d.gpus for d in plans.deployments), default=0)} accelerators, smallest {need:g}). "
            "Try a narrower --precision, larger accelerators, or --offload."
        )
    # nearest is the plan whose worse time misses its target least
    ttft_ms, tpot_ms = plans.ttft_s[fits] * MS_PER_S, plans.tpot_s[fits] * MS_PER_S
    nearest = int(np.argmin(np.maximum(ttft_ms / (request.ttft_ms or np.inf), tpot_ms / (request.tpot_ms or np.inf))))
    reached = {"ttft": (request.ttft_ms, ttft_ms[nearest]), "tpot": (request.tpot_ms, tpot_ms[nearest])}
    return NothingFitsError(
        f"no offer meets the latency targets: the fastest gives its first token in {ttft_ms.min():.0f} ms "
        f"and a token every {tpot_ms.min():.1f} ms or more. Loosen --ttft or --tpot, or allow faster accelerators."
    ).offering(**{name: f"{int(np.ceil(ms))}ms" for name, (target, ms) in reached.items() if target is not None})


_GENEROUS_RATIO = 4.0  # of the mean length of requests, that a server must take where nobody says how long they get
_CONTEXT_STEP = 1024  # engines take any length; people write round ones


def payload(architecture: Architecture, catalog: Catalog, priced: Priced, table: OfferTable) -> Inference:
    """Build the answer's payload."""
    request, market, plans, pairs = priced
    # so many of each kind are shown as were asked for: else those that stay would hide every commitment
    order = np.array([line.case for line in table.options], np.int64)
    risky = market.terms.interruptible[pairs.offer[order]]
    bound = market.supply.bound[pairs.offer[order]] & ~risky
    of_kind = np.zeros(len(order), np.int64)
    for kind in (risky, bound, ~risky & ~bound):  # so many that stay, so many that bind, so many that may not stay
        of_kind[kind] = np.arange(1, kind.sum() + 1)
    listed = np.flatnonzero((of_kind <= request.top) | (request.top == 0))
    insides = cache(lambda plan: _inside(plans, plan, request))  # many offers are of one plan
    options = [
        option(request, market, plans, pairs, int(order[position]), int(position) + 1, insides) for position in listed
    ]
    best = int(order[0])  # what stands beside the options is of the first
    hosted = _beside_apis(request, architecture, catalog, market, plans, pairs, best)
    sources = {price["source_id"] for price in hosted["api"]} | {name for row in options for name in row["source_ids"]}
    sources |= {served_format.source_id for served_format in architecture.served_as}
    # where an engine loads the model from: a repository's name or a folder as typed, else what is on record
    repository: str | None = str(request.model)
    if "/" not in str(request.model):
        listed_models = (row["repository"] for row in catalog.rows("llms") if row["id"] == architecture.name)
        repository = next(listed_models, None)
    tradeoff: list[Batch] = []
    if request.own_speed is None:  # other batches would be predictions still
        # How time per token and cost trade off with the batch on the first one's plan: the ladder, up to what fits and
        # what the engine runs on each rank.
        plan = int(pairs.plan[best])
        most = float(min(plans.capacity[plan], plans.case.rates.batch_limit[plan] * plans.case.placement.data[plan]))
        batches = np.unique(np.minimum(LADDER, max(most, 1.0)))
        case = plans.case.take(np.full(len(batches), plan))
        prompt, output = np.full(len(batches), request.prompt_tokens), np.full(len(batches), request.output_tokens)
        at = serving.steady(case, batches, prompt, output)
        # all tokens of a request count, prompts too
        per_s = at.output_tokens_per_s * request.tokens_per_request / request.output_tokens
        cost = plans.gpus[plan] * options[0]["usd_per_gpu_hour"] / SECONDS_PER_HOUR / per_s * MTOK
        tradeoff = [
            {
                "batch": int(b),
                "tpot_ms": float(t) * MS_PER_S,
                "tokens_per_s_per_gpu": float(s / plans.gpus[plan]),
                "usd_per_mtok": float(c),
            }
            for b, t, s, c in zip(batches, at.tpot_s, per_s, cost, strict=True)
        ]
    # What would narrow the range of speed most, by speeds at both ends of the range against the point. A range that is
    # cut, since doubts beyond these fill the widest one, says nothing of its parts.
    first, unsaid = options[0], ""
    slow, fast = first["tpot_ms"] / first["tpot_ms_high"], first["tpot_ms"] / first["tpot_ms_low"]
    if request.own_speed is None and np.log(fast) <= WIDEST - 1e-9:
        ranges, open_doubts = serving_calibration(catalog).ranges, list[Doubt]()
        if request.server is None:
            open_doubts.append(SERVER)
        if request.prefix_hit_fraction is None and request.engine in PREFIX_CACHING:
            open_doubts.append(PREFIX)
        unsaid = costliest([doubt.unsaid(ranges, 1.0, slow, fast, SERVING) for doubt in open_doubts], 1.0, slow, fast)
    number = int(pairs.offer[best])
    # The longest request that a server is set up for: of the stated 95th percentiles twice, else generous.
    means = _GENEROUS_RATIO * request.tokens_per_request
    tails = 2 * ((request.prompt_p95_tokens or 0.0) + (request.output_p95_tokens or 0.0))
    longest = int(np.ceil(max(means, tails) / _CONTEXT_STEP)) * _CONTEXT_STEP
    answer: Inference = {
        "kind": "inference",
        **frame(load.as_asked(request), market.facts.as_of, market.facts.catalog_version),
        "lead": " ".join([lead(request, architecture, options, hosted["api"]), *_target_sentences(request)]),
        "said": [
            *statements(request, architecture),
            *([] if plans.level is None else plans.level.statements(request)),
            *([unsaid] if unsaid else []),
        ],
        "stated": stated(request, architecture, options, hosted["api"]),
        "repository": repository,
        "longest_tokens": min(longest, architecture.max_sequence_tokens or longest),
        "options": options,
        "offers_ranked": len(order),
        "offers": offer_rows(priced, table),
        "regions": by_region(priced, table),
        "highlights": highlights(priced, table),
        "split_rule": _SPLIT_RULE,
        **hosted,  # type: ignore[typeddict-item] # the level's keys follow below
        "tradeoff": tradeoff,
        "not_included": list(_NOT_INCLUDED),
        "warnings": [
            *catalog.holding(request.gpu),
            *large_order(market.facts.offers[number], market.terms, number, int(pairs.gpus[best])),
            *_warnings(request, architecture, market, options, hosted),
        ],
        "remarks": filters.prices_not_used(market.facts.ended),
        "model": _model_block(options[0]),
        "sources": cited(market.facts.sources, sorted(sources)),
    }
    if plans.level is not None:
        # the cheapest ways to keep the level on each accelerator, how its times rise, and those of the day's hours
        levels = [{name: row[name] for name in LevelRow.__annotations__} for row in _each_level(priced, order)]
        answer["levels"] = cast(list[LevelRow], levels)
        answer["knee"] = plans.level.knee(request, int(pairs.plan[best]))
        hours = plans.level.hours(request, int(pairs.plan[best]))
        if hours:
            answer["hours"] = hours
    return answer


def _each_level(priced: Priced, order: Integers) -> list[dict[str, Any]]:
    """Return the cheapest way to keep a service level on each accelerator, in their order."""
    request, market, plans, pairs = priced
    insides = cache(lambda plan: _inside(plans, plan, request))
    first: dict[str, int] = {}  # by accelerator: the order is that of the answer
    for row in order.tolist():
        first.setdefault(market.facts.offers[int(pairs.offer[row])].gpu, row)
    rows = []
    for row in first.values():
        way = option(request, market, plans, pairs, row, 0, insides)
        degrees = {name: way["layout"][name] for name in ("tensor", "data", "pipeline")}
        layout = ", ".join(f"{name} {degree}" for name, degree in degrees.items() if degree > 1)
        level: Mapping[str, Any] = way["level"]
        pools: Mapping[str, Any] = level["pools"] or {"prompt_replicas": None}
        rows.append({**level["figures"], **level, **pools, **way, "layout": layout or "one GPU"})
    return rows


def lead(
    request: InferenceRequest, architecture: Architecture, options: list[ServingOption], api: Sequence[Hosted]
) -> str:
    """Return the answer in a few sentences; at a load so small that an API costs less, that first."""
    best = options[0]
    machine = f"{cluster(best)} at {best['provider']}"
    term = f" of {best['term_months']} months" if best["term_months"] else ""
    machine += f", {OPTIONS[best['option']].label}{term}"
    load = f"{format_count(best['tokens_per_month'])} tokens" + _of_which_load(request)
    cost, low, high = (_digits(best[name]) for name in ("usd_per_mtok", "usd_per_mtok_low", "usd_per_mtok_high"))
    span = f" ({low} to {high})" if low != high else ""  # alike to three digits, a range says nothing
    sentences = (
        f"{architecture.name} in {best['precision']}: budget {best['budget_usd']:,.0f} USD a month; {cost} USD per"
        f" million tokens{span} on {machine}, {best['usd_per_month']:,.0f} USD a month for {load};"
        f" {_latency(request, best)}; {best['usd_per_gpu_hour']:.2f} USD per GPU-hour"
        f" (seen {best['price_observed_on']}).{unlisted(best['age_days'], best['price_book'])}"
    )
    hosted = _cheaper_hosted(request, architecture, best, api)
    if hosted is not None:
        month = hosted["usd_per_mtok"] * best["tokens_per_month"] / MTOK
        return (
            f"Use an API: {_digits(month)} USD a month at {hosted['provider']} ({_digits(hosted['usd_per_mtok'])} per"
            f" million tokens), less than any machine. {sentences}"
        )
    committed = _cheaper_term(options)
    if committed is None:
        return sentences
    same = (cluster(committed), committed["provider"]) == (cluster(best), best["provider"])
    place = "" if same else f" on {committed['gpus']:,} × {committed['gpu']} at {committed['provider']}"
    months, usd = committed["term_months"], _digits(committed["usd_per_mtok"])
    return f"{sentences} With a {months}-month commitment: {usd} USD{place}."


def stated(
    request: InferenceRequest, architecture: Architecture, options: list[ServingOption], api: Sequence[Hosted]
) -> list[StatedFact]:
    """Return what one screen says of the first offer, and of what is taken as given."""
    best, assumed = options[0], " ".join(_target_sentences(request)).removeprefix("Assumes ")
    hosted, bound = _cheaper_hosted(request, architecture, best, api), _cheaper_term(options)
    load = "" if request.has_demand else ", when always busy (--utilisation)"
    if request.has_level and not request.has_demand:
        load = _of_which_load(request)
    lengths = f"{request.prompt_tokens:,.0f} prompt and {request.output_tokens:,.0f} output tokens a request"
    facts = {
        "Month": f"${_three(best['usd_per_month'])} expected, ${_three(best['budget_usd'])} budget{load}.",
        "Latency": "" if request.has_level else f"{_latency(request, best)}.",
        "Model": f"{architecture.name} in {best['precision']}; {lengths}.",
        "Assumes": assumed,
    }
    if hosted is not None:
        month = hosted["usd_per_mtok"] * best["tokens_per_month"] / MTOK
        facts["API"] = f"${_three(month)} a month at {hosted['provider']}, less than any machine."
    elif bound is not None:
        machine = f"{bound['gpus']:,} × {bound['gpu']} at {bound['provider']}"
        usd = _digits(bound["usd_per_mtok"])
        facts[f"{bound['term_months']} months"] = f"${usd} per million tokens when committed: {machine}."
    return [{"label": label, "text": text} for label, text in facts.items() if text]


def _target_sentences(request: InferenceRequest) -> list[str]:
    """Say which latency was assumed for the users of a service, or that nothing keeps it."""
    usual = {"tpot": f"{USUAL_TPOT_MS:g} ms a token", "ttft": f"{USUAL_TTFT_MS / MS_PER_S:g} s to the first"}
    sentences = []
    for names, form in (
        (request.assumed_targets, "Assumes at most {limits} ({flags})."),
        (request.lifted_targets, "Nothing keeps {limits}, so that none is assumed ({flags})."),
    ):
        statements = {name: text for name, text in usual.items() if f"{name}_ms" in names}
        if statements:
            flags = ", ".join(f"--{name}" for name in statements)
            sentences.append(form.format(limits=" and ".join(statements.values()), flags=flags))
    return sentences


def _of_which_load(request: InferenceRequest) -> str:
    """Say under which load tokens are counted where none is given."""
    if request.has_demand:
        return ""
    return " at the most that keeps the service level" if request.has_level else " at saturation"


def _latency(request: InferenceRequest, best: ServingOption) -> str:
    """Say how long the first token and the next ones take, and at which load."""
    if "level" in best:  # simulated: percentiles instead of means
        figures, at = best["level"]["figures"], best["level"]["requests_per_s"]
        times = {"TTFT": figures["ttft_p95_ms"], "TPOT": figures["tpot_p95_ms"]}
        percentiles = " and ".join(f"{name} {ms:,.3g} ms" for name, ms in times.items() if ms is not None)
        return f"95th percentiles of {percentiles} at {at:.3g} requests/s a replica"
    tpot = f"TPOT {best['tpot_ms']:.3g} ms"
    if not request.has_demand:
        return f"TTFT {best['ttft_unloaded_ms']:,.0f} ms without a queue, {tpot} at the full batch of {best['batch']:,}"
    if best["ttft_ms"] is None:
        return f"TTFT grows without end, since the load exceeds the replicas; {tpot} at the full batch"
    return f"TTFT {best['ttft_ms']:,.0f} ms, {tpot} with {best['requests_in_flight']:.3g} requests in flight"


def _cheaper_term(options: list[ServingOption]) -> ServingOption | None:
    """Return the cheapest commitment beside an answer without one, where it costs less."""
    best = options[0]
    bound = [row for row in options if OPTIONS[row["option"]].family == "committed"]
    least = min(bound, key=lambda row: row["usd_per_mtok"], default=best)
    # a saving of 1 % is none, against a term of months
    stays = OPTIONS[best["option"]].family == "committed" or least["usd_per_mtok"] > 0.99 * best["usd_per_mtok"]
    return None if stays else least


def _cheaper_hosted(
    request: InferenceRequest, architecture: Architecture, best: ServingOption, api: Sequence[Hosted]
) -> Hosted | None:
    """Return the cheapest API of the same model, where a load is so small that it costs less than any machine."""
    same = [row for row in api if row["model"] == architecture.name]
    if not request.has_demand or not same:
        return None
    # the cheapest listing of the same model, whoever runs it
    hosted = min(same, key=lambda row: row["usd_per_mtok"])
    return hosted if hosted["usd_per_mtok"] * best["tokens_per_month"] / MTOK < best["usd_per_month"] else None


def _digits(usd: float) -> str:
    """Write a price to three digits, whole dollars where it is large.

    >>> _digits(0.00865), _digits(1394.3), _digits(12.345), _digits(999.7)
    ('0.00865', '1,394', '12.3', '1,000')
    """
    return f"{usd:,.0f}" if usd >= 999.5 else f"{usd:.3g}"


def _three(usd: float) -> str:
    """Write three digits of a sum, as many as are known of an estimate.

    >>> _three(50_224.3), _three(7.512)
    ('50,200', '7.51')
    """
    return _digits(float(f"{usd:.3g}"))


_SERVED_BY = {
    "default": "served with default settings",
    "tuned": "served with settings chosen for it",
    "offline": "run in batches without a server",
}


def served_by(request: InferenceRequest) -> str:
    """Say how a model is served, and where nobody said, what would narrow the range."""
    if request.server:
        return _SERVED_BY[request.server]
    return "taken as served with default settings (--server says otherwise)"


def statements(request: InferenceRequest, architecture: Architecture) -> list[str]:
    """Say what the answer takes for granted."""
    lines = [
        f"{architecture.name}, {format_note(architecture, request)}; engine {request.engine}, {served_by(request)}."
        + (" Uses your own speed." if request.own_speed is not None else ""),
        f"{request.prompt_tokens:,.0f} prompt and {request.output_tokens:,.0f} output tokens per request"
        + (f", the means of {request.distribution}." if request.distribution else "."),
    ]
    if request.has_level:
        if request.has_demand:
            lines.append(f"{_digits(costing.mean_rate(request))} requests/s on average, profile {request.profile}.")
    elif request.has_demand:
        rate = costing.mean_rate(request)
        lines.append(
            f"{_digits(rate)} requests/s on average, profile {request.profile}; replicas are "
            f"{request.utilisation_fraction:.0%} busy at the peak hour"
            + (", scaled every hour." if request.autoscale else ".")
        )
        lines.append(
            "TTFT, TPOT and the split of the cost hold at the load of the busiest hour, shared by the replicas."
        )
    else:
        share = request.utilisation_fraction if request.utilisation_given else 1.0
        lines.append(
            f"No load given: assumes that replicas are busy {share:.0%} of the time. TPOT is that of the full batch,"
            " TTFT that of an idle replica."
        )
    return lines


_UNMEASURED = "nobody measured"


def _warnings(
    request: InferenceRequest,
    architecture: Architecture,
    market: Market,
    options: list[ServingOption],
    hosted: HostedBeside,
) -> list[str]:
    """Return what a reader must know of the whole answer."""
    notices = [_QUEUE_CAVEAT] if request.has_demand and not request.has_level else []
    best = options[0]
    if "level" in best:
        sent, holds = best["level"]["requests_per_s"], best["level"]["held_requests_per_s"]
        if sent > holds * (1 + 1e-9):  # stated replicas may be too few
            replicas = np.ceil(sent * best["replicas"] / holds - 1e-9)
            notices.append(
                f"A replica is sent {sent:.3g} requests/s in the busiest hour and keeps the service level up to"
                f" {holds:.3g}: {replicas:,.0f} replicas would keep it. Beyond capacity times grow as long as the hour"
                " lasts."
            )
    notices += [*architecture.warnings, *filters.outside_region(market.facts.placeless)]
    if architecture.status == "synthesised":
        notices.append(
            f"{architecture.name} is synthesised from its size; give a config.json for its exact dimensions."
        )
    doubted = ("speed extrapolated", _UNMEASURED)  # of an option, what makes the whole answer doubtful: it comes first
    beyond = [f"The first offer: {note}." for note in options[0]["notes"] if note.startswith(doubted)]
    notices[:0] = beyond
    limit = architecture.max_sequence_tokens
    if limit and request.tokens_per_request > limit:
        notices.append(f"Requests of {request.tokens_per_request:,.0f} tokens exceed the model's limit of {limit:,}.")
    if any(price["stale"] for price in hosted["api"]):
        notices.append(f"Some hosted prices are more than {costing.STALE_DAYS} days old.")
    return notices


def _beside_apis(
    request: InferenceRequest,
    architecture: Architecture,
    catalog: Catalog,
    market: Market,
    plans: Plans,
    pairs: Pairs,
    best: int,
) -> HostedBeside:
    """Return hosted prices of the model and the break-even against the cheapest of them."""
    # the model's own listings lead; those of a like size say so in their note
    comparable = costing.comparable_models(architecture, catalog.relatives(architecture))
    tokens, peaks = catalog.rows("hosted_tokens"), catalog.rows("hosted_peaks")
    api = costing.hosted_prices(tokens, architecture, comparable, request, market.facts.as_of, peaks)
    if not api:
        return {"api": [], "api_note": f"No hosted price of {architecture.name} or a comparable model is on record."}
    offer = market.facts.offers[int(pairs.offer[best])]
    plan = int(pairs.plan[best])
    # the smallest group that can be bought: a unit with the replicas that it holds, or the units of one replica
    unit, replica = float(offer.gpus), float(plans.gpus[plan])
    per_unit = max(float(unit // replica), 1.0)
    gpus = unit if unit >= replica else float(np.ceil(replica / unit)) * unit
    of_all = request.tokens_per_request / request.output_tokens * request.utilisation_fraction  # as a month is sized
    speed = float(plans.output_tokens_per_s[plan]) * per_unit * of_all
    hourly = gpus * float(market.terms.usd_per_gpu_hour[int(pairs.offer[best])])
    spare = float(np.ceil(request.redundancy / per_unit)) * hourly
    against = api[0]
    point = costing.break_even(hourly, speed, spare, against["usd_per_mtok"])
    middle = point["tokens_per_month"] or speed * SECONDS_PER_HOUR * HOURS_PER_MONTH
    # around the volume at which both cost the same, else around what the group serves
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


def _left_out(priced: Priced, offers: Integers, order: Integers) -> list[tuple[int, int, str]]:
    """Return the offers that serve nothing, each with its cheapest pair, where there is one, and the reason."""
    request, market, plans, pairs = priced
    ranked_offers = {int(pairs.offer[row]) for row in order}
    # per key the most telling reason why its plans fail: latency before memory, nothing if one serves
    reasons: dict[int, str] = {}
    telling = {"": 0, "level": 1, "tpot": 2, "ttft": 3, "memory": 4}
    for key, code in zip(plans.key.tolist(), plans.reason.tolist(), strict=True):
        name = REASONS[code]
        if key not in reasons or telling[name] < telling[reasons[key]]:
            reasons[key] = name
    dear_first = np.argsort(-pairs.costs.budget_usd)
    cheapest = dict(zip(pairs.offer[dear_first].tolist(), dear_first.tolist(), strict=True))  # the last of a key stays
    stay = set(lasting(market, offers).tolist())

    def reason_of(number: int) -> str:
        if number not in stay:
            return _too_short(OPTIONS[market.facts.offers[number].option])
        if number in cheapest and request.max_cost_usd is not None:
            month = float(pairs.costs.budget_usd[cheapest[number]])
            return f"a month needs {month:,.2f} USD or more, over the budget of {request.max_cost_usd:,.2f} USD"
        supply = market.supply
        text = _EXPLAIN[reasons.get(int(supply.key[number]), "memory")]
        return text.format(gpus=int(supply.largest_gpus[number]), why=supply.cap_reasons[number])

    unserved = (number for number in offers.tolist() if number not in ranked_offers)
    return [(number, cheapest.get(number, NO_PAIR), reason_of(number)) for number in unserved]


_EXPLAIN = {
    "": "a replica needs more than the {gpus} accelerators that one order hosts ({why})",
    "memory": "the weights and one sequence do not fit {gpus} accelerators ({why})",
    "ttft": "the first token is too slow even without a queue",
    "tpot": "tokens are too slow even at a batch of one",
    "level": "a replica does not keep the service level, costs far more within it, or has a cheaper layout",
}


# --- Does a model fit an accelerator for serving, on how many, how fast; and which accelerators serve it at all.

# MIG instances: compute slices of seven, memory slices of eight (NVIDIA MIG user guide, supported profiles).
_MIG_PROFILES = ((1, 1), (2, 2), (3, 4), (4, 4))
_SLICED = ("bf16", "fp16", "fp8", "int8", "fp4", "fp32")  # peaks that an instance has its share of
COMPUTE_SLICES, MEMORY_SLICES = 7, 8
_SMALLEST_MIG_GPU = 7  # instances of the chips that have these profiles


def serving_fit_payload(
    catalog: Catalog, request: InferenceRequest, gpu: str | None = None, gpus: int | None = None
) -> ServingFit:
    """Return which accelerators serve a model within the targets, with memory, latency, speed and price.

    With `gpus`, what so many of each serve: as many replicas as they hold, in the layout that is fastest in all.
    """
    architecture = catalog.architecture(request.model)
    market = market_of(catalog)
    keys = _keys_of(catalog, gpu)
    gpus = gpus or catalog.gpus_in(gpu)
    for question in request.relaxed():
        request, plans = question, served(catalog, architecture, keys, question, gpus)
        if plans.serves.any():
            break
    entries = [_entry(request, market, plans, index, key, gpus) for index, key in enumerate(keys)]
    excluded = [reason for _, reason in entries if reason is not None]
    options = [row for row, _ in entries if row is not None]
    options.sort(key=lambda row: (row["usd_per_hour"] is None, row["usd_per_hour"] or 0.0, row["gpus"], row["gpu"]))
    if gpu is not None and not options:
        on = "" if gpus is None else f"{gpus} × "
        raise NothingFitsError(
            f"{architecture.name}: {on}{excluded[0]['gpu']}: {excluded[0]['reason']}. "
            "Try a narrower --precision, more accelerators, or looser targets."
        )
    fewest = min(options, key=lambda row: (row["memory_gb"] * row["gpus"], row["gpus"], row["gpu"]), default=None)
    lead = f"{architecture.name}: no accelerator serves this; the reasons are below."
    if fewest is not None:
        cheap = options[0]
        price = "" if cheap["usd_per_hour"] is None else f" for {cheap['usd_per_hour']:.2f} USD an hour"
        small = f"the least memory is {fewest['gpus']} × {fewest['gpu']}"
        lead = f"{architecture.name}: {small}; the cheapest is {cheap['gpus']} × {cheap['gpu']}{price}."
    # which hold the model only with more of their memory than engines take by default
    tight, remarks = [f"{row['gpus']} × {row['gpu']}" for row in options if row.get("tight")], []
    if tight:
        names = ", ".join(tight[:4]) + (f" and {len(tight) - 4} more" if len(tight) > 4 else "")
        remarks.append(
            f"On {names} it runs only with {serving.TIGHT_MEMORY:.0%} of the memory (--gpu-memory-utilization"
            f" {serving.TIGHT_MEMORY:g}), short passes and {serving.TIGHT_SCORED:g} requests at once or fewer."
        )
    return {
        "kind": "serving_fit",
        **frame(request.to_dict(), catalog.as_of, catalog.version),
        "fits": bool(options),
        "lead": lead,
        "said": [
            f"{architecture.name}, {format_note(architecture, request)}; engine {request.engine},"
            f" {served_by(request)}.",
            *_target_sentences(request),
        ],
        "smallest": fewest,
        "cheapest": next((row for row in options if row["usd_per_hour"] is not None), None),
        "options": options,
        "excluded": excluded,
        "warnings": [*catalog.taken(gpu), *architecture.warnings, *remarks],
        "sources": {},
    }


def fewest_for_load(catalog: Catalog, request: InferenceRequest, key: Key, most: int) -> ModelDeployment | None:
    """Return the fewest of an accelerator in one's own machines, at most so many, that carry a load."""
    for question in request.relaxed():
        plans = served(catalog, catalog.architecture(request.model), [key], question, most)
        if plans.serves.any():
            break
    if not len(plans):
        return None
    replicas = replicas_for(request, plans.output_tokens_per_s) + request.redundancy
    gpus = np.where(plans.serves, replicas * plans.gpus, np.inf)
    # the fewest accelerators; of equals the fastest replica
    first = int(np.lexsort((-plans.output_tokens_per_s, gpus))[0])
    if gpus[first] > most:
        return None
    return serving_deployment(plans, first, key, request, Replicas(int(replicas[first])))


def _keys_of(catalog: Catalog, gpu: str | None) -> list[Key]:
    """Return the accelerators to try, each in its usual node, and the MIG instances of those that have them.

    A family is its flagship, as in every question about one accelerator.
    """
    accelerators = [key_of(catalog, gpu).accelerator] if gpu else catalog.accelerators()
    slices = {str(row["id"]): row["mig_slices"] or 0 for row in catalog.rows("accelerators")}
    keys = []
    for accelerator in accelerators:
        keys.append(Key(accelerator, catalog.default_system(accelerator.id)))
        if slices.get(accelerator.id, 0) >= _SMALLEST_MIG_GPU:
            keys += [mig_key(accelerator, compute, memory) for compute, memory in _MIG_PROFILES]
    return keys


def mig_key(a: Accelerator, compute: int, memory: int) -> Key:
    """Return a MIG instance as an accelerator of its own: its share of arithmetic, memory and bandwidth, no links."""

    def share(value: float | None) -> float | None:
        return None if value is None else value * compute / COMPUTE_SLICES

    part = memory / MEMORY_SLICES
    # as nvidia-smi names an instance: compute slices, then its memory
    name = f"{a.id}-mig-{compute}g.{round(a.memory_gib * part)}gb"
    peaks: dict[str, Any] = {f"{kind}_tflops": share(getattr(a, f"{kind}_tflops")) for kind in _SLICED}
    instance = replace(
        a,
        id=name,
        memory_gib=a.memory_gib * part,
        hbm_gb_per_s=a.hbm_gb_per_s * part,
        scaleup_gb_per_s=0.0,  # instances have no NVLink between them
        scaleup_gpus=1,
        **peaks,
    )
    return Key(instance, System(f"{name}-alone", name, "synthesised", name, 1, 0.0, 1, None, status="synthesised"))


def _entry(
    request: InferenceRequest, market: Market, plans: Plans, index: int, key: Key, gpus: int | None = None
) -> tuple[Serves, None] | tuple[None, ServesNot]:
    """Return what one accelerator can do: its smallest replica that serves, or why none does.

    With `gpus`, the replicas that so many hold, in the layout with the most tokens per second in all.
    """
    plan, replicas = best_plan(plans, index, None if gpus is None else Accelerators(gpus))
    if plan is None or not plans.serves[plan]:
        # the last reason of the list is the one that came nearest: latency is only tried of what fits
        codes = sorted({int(code) for code in plans.reason[plans.key == index]}, reverse=True)
        name = REASONS[codes[0]] if codes else "memory"
        few = "the weights and one sequence do not fit so few"
        reason = few if gpus is not None and name == "memory" else REASONS_IN_WORDS[name]
        return None, ServesNot(gpu=key.accelerator.id, reason=reason)
    d, deployment = plans.deployments[plan], serving_deployment(plans, plan, key, request, replicas)
    count = int(deployment.accelerators) if gpus is None else gpus
    hire = cheapest(market, key.accelerator.id, count)
    offer_text = ""
    if hire is not None:
        sold = hire.offer
        offer_text = f"{sold.provider} {sold.instance_type} ({sold.region or sold.region_scope})"
    row: Serves = {
        "gpu": key.accelerator.id,
        "memory_gb": key.accelerator.memory_gib * (GIB / GB),
        "fits": True,
        "gpus": count,
        "replicas": int(replicas),
        "tight": bool(plans.tight[plan]),
        "layout": {"tensor": d.tensor, "data": d.data, "pipeline": d.pipeline},
        "precision": d.format,
        "batch": int(plans.sequences[plan]),
        "batch_that_fits": int(plans.capacity[plan]),
        "ttft_ms": float(plans.ttft_s[plan]) * MS_PER_S,
        "tpot_ms": float(plans.tpot_s[plan]) * MS_PER_S,
        "output_tokens_per_s": deployment.tokens_per_s,
        "output_tokens_per_s_low": deployment.tokens_per_s_low,
        "output_tokens_per_s_high": deployment.tokens_per_s_high,
        "bottleneck": bottleneck(plans, plan),
        "memory": memory(plans, plan, request),
        "usd_per_hour": None if hire is None else hire.usd_per_hour,
        "offer": offer_text,
    }
    return row, None


REASONS_IN_WORDS = {
    "": "serves",
    "memory": "the weights and one sequence fit neither its node nor the nodes that its network joins",
    "ttft": "the first token is too slow",
    "tpot": "tokens are too slow",
    "level": "it does not keep the service level",
}
