"""The table of offers of a service: its lines and their order, what each is best at, and what is read from it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, cast

import numpy as np

from gpucost.answers.common import finite
from gpucost.answers.serving import ServedBudget, ServedHighlight, ServedOffer, ServedRegion
from gpucost.catalog.names import options as option_names
from gpucost.market.budget import LIKELY, sure
from gpucost.market.facts import Market
from gpucost.market.supply import Providers
from gpucost.market.table import (
    LEFT_OUT,
    OfferLine,
    OfferTable,
    Ordering,
    Picked,
    first_of_each,
    front_of,
    in_order,
    leading,
    picked_offer,
    picks,
    standing,
)
from gpucost.options import OPTIONS
from gpucost.physics.columns import Floats, Integers
from gpucost.serving.costing import Pairs, goal_of
from gpucost.serving.request import InferenceRequest
from gpucost.units import MS_PER_S
from gpucost.workloads.service import Plans

# what is the same wherever it is sold
_product_of = attrgetter("provider", "instance_type", "gpu", "option", "term_months", "payment")


class Priced(NamedTuple):
    """What a request's offers come to: the market, the plans, and every pair of both."""

    request: InferenceRequest
    market: Market
    plans: Plans
    pairs: Pairs


def _in_order_of(priced: Priced, rows: Integers, goal: Floats) -> Integers:
    """Return pairs in the order of every answer, by a column of all pairs."""
    pairs, supply = priced.pairs, priced.market.supply
    offer = pairs.offer[rows]
    order = in_order(
        Ordering(
            _stands(priced, rows),
            goal=goal[rows],
            unsure=~sure(priced.market.terms, offer, pairs.costs.chance_available_fraction[rows]),
            cost=pairs.costs.expected_usd_per_mtok[rows],
            time=np.zeros(len(rows)),  # of equal cost the smaller one
            gpus=pairs.gpus[rows],
            age_days=np.zeros(len(rows)),
            id=supply.id_place[offer],
        )
    )
    ordered: Integers = rows[order]
    return ordered


def _stands(priced: Priced, rows: Integers) -> Integers:
    """Return where pairs stand: in either kind what is probably gone last where the order knows nothing of chances."""
    request, market, pairs = priced.request, priced.market, priced.pairs
    offers = pairs.offer[rows]
    blind = request.optimize != "cost" or request.rank_by == "time"
    unlikely = (pairs.costs.chance_available_fraction[rows] < LIKELY) & blind
    # Among those that one can order, what may be interrupted stands behind what stays. A service has no end that a term
    # or a booked window could be held against, so that neither leads unless asked for.
    families = {OPTIONS[name].family for name in option_names(request.option) or ()}
    options = (market.supply.offers[offer].option for offer in offers.tolist())
    booked = np.array([OPTIONS[option].family == "scheduled" for option in options], bool)
    bound = market.supply.bound[offers] & ("committed" not in families) | booked & ("scheduled" not in families)
    return np.asarray(standing(unlikely) + standing(False, market.terms.interruptible[offers], bound), np.int64)


def rank(priced: Priced, chosen: Integers) -> Integers:
    """Order the best pair of each offer by the goal of the request."""
    return _in_order_of(priced, chosen, goal_of(priced.pairs, priced.request, priced.plans))


def table_of(priced: Priced, order: Integers, left_out: Sequence[tuple[int, int, str]]) -> OfferTable:
    """Return the table of a service: every offer at its best plan, what is faster, and what serves nothing, and why."""
    request, market, plans, pairs = priced
    costs, of = pairs.costs, pairs.offer
    time, chance = plans.tpot_s[pairs.plan], costs.chance_available_fraction
    # what pairs are best at: every layout of every offer within the limits that were stated, those first that stay
    # until they are given back
    offers, sellers, chips = market.facts.offers, Providers(market.facts.providers), market.facts.accelerators
    is_major = np.array([sellers.kind(offer.provider) == "hyperscaler" for offer in offers], bool)
    sources = np.array([chips[offer.gpu].serving_sources for offer in offers])
    most_gpus, most_usd = request.max_gpus or np.inf, request.max_cost_usd or np.inf
    ways = np.flatnonzero((pairs.gpus <= most_gpus) & (costs.budget_usd <= most_usd))
    by_budget = _in_order_of(priced, ways, costs.budget_usd_per_mtok)
    first = by_budget[leading(_stands(priced, by_budget))]
    columns = Picked(costs.budget_usd_per_mtok, costs.usd_per_mtok, time, chance, is_major[of], sources[of])
    labels = picks(first, columns)
    ranks = {int(pairs.offer[row]): place for place, row in enumerate(order.tolist(), 1)}
    placed = set(order.tolist())
    others = np.array([row for row in labels if row not in placed], np.int64)
    # what no other pair beats in both the budget of tokens and the time of one
    candidates = np.concatenate([order, others])
    likely = candidates[leading(standing(chance[candidates] < LIKELY))]
    front = frozenset(front_of(likely, costs.budget_usd_per_mtok, time).tolist())
    codes = _stands(priced, order).tolist()
    lines = [
        OfferLine(row, int(pairs.offer[row]), place, code, "")
        for place, (row, code) in enumerate(zip(order.tolist(), codes, strict=True), 1)
    ]
    for row, code in zip(others.tolist(), _stands(priced, others).tolist(), strict=True):
        offer = int(pairs.offer[row])
        lines.append(OfferLine(row, offer, None, code, f"rank {ranks[offer]} in another layout"))
    lines += [OfferLine(pair, offer, None, LEFT_OUT, reason) for offer, pair, reason in left_out]
    return OfferTable(tuple(lines), labels, front)


NO_PAIR = -1  # of an offer that no plan could be tried on


# --- What is read from the table.


def offer_rows(priced: Priced, table: OfferTable) -> list[ServedOffer]:
    """Return the table as rows of the answer: each product once at a size, where it stands first, with its regions."""
    offers, gpus = priced.market.facts.offers, priced.pairs.gpus
    lines: dict[object, OfferLine] = {}
    regions: dict[object, dict[str, None]] = {}
    for line in table.lines:
        offer = offers[line.offer]
        # what is left out for one reason is one row; else products are told apart by their size, and by their rank
        size = line.reason if line.standing == LEFT_OUT else (int(gpus[line.case]), line.rank is None)
        like: object = (*_product_of(offer), size)
        if like in lines and line.case in table.labels:
            like = line.case  # what is best at something stands by itself
        lines.setdefault(like, line)
        regions.setdefault(like, {})[offer.region] = None
    return [_row(priced, table, line, [*filter(None, regions[like])]) for like, line in lines.items()]


_CELLS = ("usd_per_mtok", "usd_per_mtok_low", "usd_per_mtok_high", "usd_per_month", *ServedBudget.__annotations__)


def _served_cells(priced: Priced, row: int) -> Mapping[str, float | None]:
    """Return what a pair comes to; None where no plan could be tried."""
    if row == NO_PAIR:
        return dict.fromkeys(("tpot_ms", *_CELLS))
    costs = priced.pairs.costs
    return {
        "tpot_ms": float(priced.plans.tpot_s[int(priced.pairs.plan[row])]) * MS_PER_S,
        **{name: finite(costs[name][row]) for name in _CELLS},
    }


def _row(priced: Priced, table: OfferTable, line: OfferLine, regions: Sequence[str] = ()) -> ServedOffer:
    offer = priced.market.facts.offers[line.offer]
    gpus = offer.gpus if line.case == NO_PAIR else int(priced.pairs.gpus[line.case])
    row = table.row(line, offer, priced.market.terms, gpus, regions)
    return cast(ServedOffer, {**row, **_served_cells(priced, line.case)})


def highlights(priced: Priced, table: OfferTable) -> list[ServedHighlight]:
    """Return the best of each kind; what is best in several ways stands there once, under the first."""
    _, market, plans, pairs = priced
    sellers = Providers(market.facts.providers)
    best = []
    for row, kinds in table.labels.items():
        number, plan = int(pairs.offer[row]), int(pairs.plan[row])
        offer = market.facts.offers[number]
        highlight = {
            **picked_offer(offer, kinds, sellers.name(offer.provider)),
            "gpus": int(pairs.gpus[row]),
            "instances": int(pairs.fleet.units[row]),
            "replicas": int(pairs.fleet.replicas[row]),
            "precision": plans.deployments[plan].format,
            "ttft_ms": finite(float(plans.ttft_s[plan] + plans.queue_s[plan]) * MS_PER_S),  # while others are served
            "usd_per_gpu_hour": float(market.terms.usd_per_gpu_hour[number]),
            **_served_cells(priced, row),
            "price_observed_on": offer.observed_on.isoformat(),
            "age_days": offer.age_days,
        }
        best.append(cast(ServedHighlight, highlight))
    return best


def by_region(priced: Priced, table: OfferTable) -> list[ServedRegion]:
    """Return the first line of each region, in the order of the table, with how many there are."""
    places = [(priced.market.facts.offers[line.offer].region, line) for line in table.options]
    counts = Counter(region for region, _ in places)
    first = first_of_each(places)
    return [{**_row(priced, table, line), "offers": counts[region]} for region, line in first.items()]
