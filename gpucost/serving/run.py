"""From a request to its answer: offers, plans, prices, hosted models, payload."""

from collections.abc import Sequence
from functools import cache
from os import PathLike
from typing import Any

import numpy as np

from gpucost.answers.common import Excluded, cited, frame
from gpucost.answers.serving import Beside, Hosted, Inference, ServingOption
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import serving_calibration
from gpucost.errors import GpuCostError, NothingFitsError, OverBudgetError, PriceMissingError
from gpucost.market.facts import OLD_PRICE, Market, asked_for, market_of, no_price, not_offered, placeless
from gpucost.market.supply import left_out
from gpucost.options import OPTIONS, OptionRule
from gpucost.physics.calibration import Calibration
from gpucost.physics.columns import Integers
from gpucost.serving import answer, costing, hosted
from gpucost.serving.costing import Pairs
from gpucost.serving.plans import LADDER, REASONS, Plans, evaluate, format_note
from gpucost.serving.request import InferenceRequest, Known, make_request, spread_of
from gpucost.types import Architecture
from gpucost.units import HOURS_PER_MONTH, MS_PER_S, SECONDS_PER_HOUR, counted, format_count

EXCLUDED_SHOWN = 400


def lengths_of(catalog: Catalog) -> Known:
    """Return the named length distributions: mean prompt and output, and how far running requests are longer."""
    names = ("prompt_mean_tokens", "output_mean_tokens", "output_median_tokens")
    return {str(row["name"]): spread_of(*(row[name] for name in names)) for row in catalog.rows("length_distributions")}


def request_of(catalog: Catalog, model: str | PathLike[str], **wanted: Any) -> InferenceRequest:
    """Read human quantities into a request, with the catalog's length distributions."""
    return make_request(model, known=lengths_of(catalog), **wanted)


def infer(request: InferenceRequest, catalog: Catalog) -> Inference:
    """Answer a serving request from a catalog."""
    architecture = catalog.architecture(request.model)
    market = placeless(market_of(catalog), catalog, request)
    offers = select(request, catalog, market)
    plans = plan_for(request, architecture, market, lasting(market, offers), serving_calibration(catalog))
    offer, plan = costing.pair_up(market.supply, plans, lasting(market, offers))
    if not len(offer):
        raise nothing(request, architecture, market, plans, offers)
    pairs = costing.price_pairs(request, plans, market.supply, market.terms, offer, plan)
    chosen = costing.best_per_offer(pairs, request.optimize, plans, within_budget(request, market, pairs))
    ids = [item.offer_id for item in market.facts.offers]
    order = costing.rank(pairs, chosen, request.optimize, plans, ids, market.terms.interruptible)
    return payload(request, architecture, catalog, market, plans, pairs, order, offers)


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
    supply = market.supply
    largest: dict[int, int] = {}
    for offer in offers:
        key = int(supply.key[offer])
        largest[key] = max(largest.get(key, 0), int(supply.largest_gpus[offer]))
    return evaluate(architecture, supply.keys, largest, request, calibration.values, calibration.ranges)


def within_budget(request: InferenceRequest, market: Market, pairs: Pairs) -> Integers:
    """Return the pairs whose month keeps the budget; raise where none does."""
    months = pairs.costs.usd_per_month
    if request.max_cost_usd is None:
        return np.arange(len(months))
    within = np.flatnonzero(months <= request.max_cost_usd)
    if len(within):
        return within
    cheapest = int(np.argmin(months))
    offer = market.facts.offers[int(pairs.offer[cheapest])]
    raise OverBudgetError(
        f"the cheapest of {counted(len(np.unique(pairs.offer)), 'offer')} costs {months[cheapest]:,.2f} USD a month"
        f" ({offer.provider} {offer.instance_type}, {int(pairs.gpus[cheapest])} × {offer.gpu}),"
        f" over the budget of {request.max_cost_usd:,.2f} USD."
    )


def nothing(
    request: InferenceRequest, architecture: Architecture, market: Market, plans: Plans, offers: Integers
) -> GpuCostError:
    """Return the error that says why no offer serves this and what would."""
    if not len(plans) and request.replica_gpus is not None and len(lasting(market, offers)):
        return NothingFitsError(
            f"no replica of {architecture.name} has {request.replica_gpus} of these accelerators. Try --replica-gpus 1,"
            " 2, 4 or 8."
        )
    if not len(plans):
        rule = OPTIONS[market.facts.offers[int(offers[0])].option]
        raise NothingFitsError(f"{too_short(rule)}. Widen --option.")
    fits = plans.reason != REASONS.index("memory")
    if not fits.any():
        need = min((float(d.gpus) for d in plans.deployments), default=0.0)
        return NothingFitsError(
            f"{architecture.name} in {plans.deployments[0].format} fits no replica of these offers "
            f"(largest tried: {max((d.gpus for d in plans.deployments), default=0)} accelerators, smallest {need:g}). "
            "Try a narrower --precision, larger accelerators, or --offload."
        )
    best_tpot, best_ttft = float(plans.tpot_s[fits].min()) * MS_PER_S, float(plans.ttft_s[fits].min()) * MS_PER_S
    return NothingFitsError(
        f"no offer meets the latency targets: the fastest gives its first token in {best_ttft:.0f} ms "
        f"and a token every {best_tpot:.1f} ms or more. Loosen --ttft or --tpot, or allow faster accelerators."
    )


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
    of_kind = np.where(risky, np.cumsum(risky), np.cumsum(~risky))
    shown = np.flatnonzero((of_kind <= request.top) | (request.top == 0))  # so many that stay, so many that may not
    insides = cache(lambda plan: answer.inside(plans, plan, request))  # many offers are of one plan
    options = [
        answer.option(request, market, plans, pairs, int(order[place]), int(place) + 1, insides) for place in shown
    ]
    best = int(order[0])
    beside = beside_apis(request, architecture, catalog, market, plans, pairs, best)
    sources = {entry["source_id"] for entry in beside["api"]} | {name for row in options for name in row["source_ids"]}
    return {
        "kind": "inference",
        **frame(request.to_dict(), market.facts.as_of, market.facts.catalog_version),
        "lead": f"{lead(request, architecture, options)}{_hosted(architecture, beside['api'])}",
        "said": said(request, architecture),
        "options": options,
        "offers_ranked": len(order),
        "split_rule": answer.SPLIT_RULE,
        **beside,
        "tradeoff": []
        if request.own_speed is not None  # other batches would be predictions still
        else answer.at_batches(plans, int(pairs.plan[best]), request, options[0]["usd_per_gpu_hour"], LADDER),
        "excluded": excluded(request, market, plans, offers, order, pairs),
        "not_included": list(answer.NOT_INCLUDED),
        "warnings": warnings(request, architecture, market, options, beside),
        "model": answer.model_block(options[0]),
        "sources": cited(market.facts.sources, sorted(sources)),
    }


def lead(request: InferenceRequest, architecture: Architecture, options: list[ServingOption]) -> str:
    """Return the answer in one sentence."""
    best = options[0]
    where = f"{best['gpus']} × {best['gpu']} at {best['provider']} ({best['instance_type']})"
    load = f"{format_count(best['tokens_per_month'])} tokens a month" + ("" if request.has_demand else " at saturation")
    cost, low, high = (_digits(best[name]) for name in ("usd_per_mtok", "usd_per_mtok_low", "usd_per_mtok_high"))
    span = f" ({low} to {high})" if low != high else ""
    return (
        f"{architecture.name}: {cost} USD per million tokens{span} on {where},"
        f" {best['usd_per_month']:,.0f} USD a month for {load}."
    )


def _hosted(architecture: Architecture, api: Sequence[Hosted]) -> str:
    """Say what the cheapest hosted price is; of which model, where it is a comparable one."""
    if not api:
        return ""
    best = min(api, key=lambda row: row["usd_per_mtok"])
    model = "" if best["model"] == architecture.name else f" for {best['model']}"
    return f" Hosted APIs start at {_digits(best['usd_per_mtok'])} USD{model} ({best['provider']})."


def _digits(usd: float) -> str:
    """Write a price to three digits, whole dollars where it is large.

    >>> _digits(0.00865), _digits(1394.3), _digits(12.345)
    ('0.00865', '1,394', '12.3')
    """
    return f"{usd:,.0f}" if usd >= 1000 else f"{usd:.3g}"


def said(request: InferenceRequest, architecture: Architecture) -> list[str]:
    """Say what the answer takes for granted."""
    lines = [
        f"{architecture.name}, {format_note(architecture, request)}; engine {request.engine}."
        + (f" Your own speed ({request.own_flag})." if request.own_speed is not None else ""),
        f"{request.prompt_tokens:,.0f} prompt and {request.output_tokens:,.0f} output tokens per request"
        + (f", the means of {request.distribution}." if request.distribution else "."),
    ]
    if request.has_demand:
        rate = costing.mean_rate(request)
        lines.append(
            f"{rate:,.3g} requests/s on average, profile {request.profile}; replicas are loaded to "
            f"{request.utilisation_fraction:.0%} at the busiest hour"
            + (", scaled by the hour." if request.autoscale else ".")
        )
    else:
        share = request.utilisation_fraction if request.utilisation_given else 1.0
        lines.append(f"No load given: cost with replicas busy {share:.0%} of the time.")
    return lines


def warnings(
    request: InferenceRequest,
    architecture: Architecture,
    market: Market,
    options: list[ServingOption],
    beside: Beside,
) -> list[str]:
    """Return what a reader must know of the whole answer."""
    found = [
        *([answer.QUEUE_CAVEAT] if request.has_demand else []),
        *architecture.warnings,
        *not_offered(market.facts.ended, market.facts.placeless),
    ]
    if architecture.status == "synthesised":
        found.append(
            f"{architecture.name} is synthesised from its size alone; give a config.json for its true dimensions."
        )
    if options[0]["price_stale"]:
        found.append(OLD_PRICE)
    limit = architecture.max_sequence_tokens
    if limit and request.tokens_per_request > limit:
        found.append(f"{request.tokens_per_request:,.0f} tokens per request exceed the {limit:,} that the model takes.")
    if any(entry["stale"] for entry in beside["api"]):
        found.append(f"Some hosted prices are more than {hosted.STALE_DAYS} days old.")
    return found


def beside_apis(
    request: InferenceRequest,
    architecture: Architecture,
    catalog: Catalog,
    market: Market,
    plans: Plans,
    pairs: Pairs,
    best: int,
) -> Beside:
    """Return hosted prices of the model and the break-even against the cheapest of them."""
    comparable = hosted.comparable_models(architecture, catalog.relatives(architecture))
    api = hosted.hosted_prices(catalog.rows("hosted_tokens"), architecture, comparable, request, market.facts.as_of)
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
    point = hosted.break_even(hourly, speed, spare, against["usd_per_mtok"])
    middle = point["tokens_per_month"] or speed * SECONDS_PER_HOUR * HOURS_PER_MONTH
    line = hosted.curve(hourly, speed, spare, against["usd_per_mtok"], middle)
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
    found = (int(number) for number in offers if int(number) not in served)
    return left_out((market.facts.offers[number], reason_of(number)) for number in found)[:EXCLUDED_SHOWN]


EXPLAIN = {
    "": "a replica needs more than the {gpus} accelerators that one order hosts ({why})",
    "memory": "the weights and one sequence do not fit {gpus} accelerators ({why})",
    "ttft": "the first token comes later than asked for, even without a queue",
    "tpot": "tokens come slower than asked for, even at a batch of one",
}


def key_reasons(plans: Plans) -> dict[int, str]:
    """Return, per key, the most telling reason why its plans fail: latency before memory, nothing if one serves."""
    found: dict[int, str] = {}
    rank = {"": 0, "tpot": 1, "ttft": 2, "memory": 3}
    for key, code in zip(plans.key, plans.reason, strict=True):
        name = REASONS[int(code)]
        if int(key) not in found or rank[name] < rank[found[int(key)]]:
            found[int(key)] = name
    return found
