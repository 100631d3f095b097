"""The table of offers of a run: its lines and their order, what each is best at, and what is read from it.

Regions, ways to buy and the best of each kind are the first lines of a kind: nothing here ranks but `table_of`.
"""

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpucost.answers.common import Budgeted, figures, finite
from gpucost.answers.training import Alternative, Highlight, RegionBest, RunOffer
from gpucost.market.budget import LIKELY
from gpucost.market.facts import Market
from gpucost.market.supply import Providers
from gpucost.market.table import (
    LEFT_OUT,
    OfferLine,
    OfferTable,
    Picked,
    first_of_each,
    front_of,
    leading,
    picked_offer,
    picks,
    standing,
)
from gpucost.options import is_plain
from gpucost.training.cases import (
    Cases,
    Problem,
    can_be_option,
    exclusions,
    order_by,
    rank,
    rate_is_prior,
    stands,
)

Indices = NDArray[np.int64]

# what is the same wherever it is sold
_product_of = attrgetter("provider", "instance_type", "gpu", "option", "tier", "term_months", "payment")


def table_of(problem: Problem, market: Market, cases: Cases, chosen: Indices) -> OfferTable:
    """Return the table of a request: every offer at the size that it is judged by, and what leads at another size."""
    request = problem.requests[0]
    # a front may hold an offer at several sizes, any other order holds it once, at the size it is judged by
    every = np.arange(len(cases))
    ways = every[can_be_option(problem, cases, request, every)]  # all sizes
    order = rank(problem, cases, 0, every if request.optimize == "pareto" else chosen)
    budget = cases.costs.budget_usd
    by_budget = ways[order_by(problem, cases, ways, request, budget)]
    # what each case is best at, of every size of every offer, whatever the answer ranks by
    offers, sellers, chips = problem.supply.offers, Providers(market.facts.providers), market.facts.accelerators
    is_major = np.array([sellers.kind(offer.provider) == "hyperscaler" for offer in offers], bool)
    sources = np.array([chips[offer.gpu].training_sources for offer in offers])
    costs, of = cases.costs, cases.offer
    chance = costs.chance_available_fraction
    labels = picks(by_budget, Picked(budget, costs.cost_usd, costs.days, chance, is_major[of], sources[of]))
    likely = by_budget[leading(standing(chance[by_budget] < LIKELY))]
    front = frozenset(front_of(likely, budget, cases.costs.days).tolist())
    groups = fold(problem, cases, order)
    ranks = {case: place for place, group in enumerate(groups, 1) for case in group}
    of_offer = {int(cases.offer[case]): place for case, place in reversed(ranks.items())}
    # what the ranking does not hold: the chosen size of what is no option, and what is best at something
    others = [case for case in dict.fromkeys([*chosen.tolist(), *labels, *sorted(front)]) if case not in ranks]
    beside = np.array(others, np.int64)
    able = can_be_option(problem, cases, request, beside)
    # what ranks: the first of each group, and behind it what differs in its region alone
    lines = []
    leaders = {group[0] for group in groups}
    codes = stands(cases, order, request).tolist()
    for case, offer, code in zip(order.tolist(), cases.offer[order].tolist(), codes, strict=True):
        place = ranks[case]
        if case in leaders:
            lines.append(OfferLine(case, offer, place, code, ""))
        else:
            lines.append(OfferLine(case, offer, None, code, f"rank {place} in another region", place))
    # what could be ordered and does not rank: another size of its offer does, or (on a front) something beats it
    index = beside[able]
    codes = stands(cases, index, request).tolist()
    for case, offer, code in zip(index.tolist(), cases.offer[index].tolist(), codes, strict=True):
        reason = "another offer is both cheaper and faster"
        if offer in of_offer:
            reason = f"rank {of_offer[offer]} at another size"
        lines.append(OfferLine(case, offer, None, code, reason))
    out = beside[~able]
    reasons = exclusions(problem, cases, request, out)
    for case, offer, reason in zip(out.tolist(), cases.offer[out].tolist(), reasons, strict=True):
        lines.append(OfferLine(case, offer, None, LEFT_OUT, reason))
    return OfferTable(tuple(lines), labels, front)


def fold(problem: Problem, cases: Cases, order: Indices) -> list[list[int]]:
    """Put offers that differ in their region only behind the first of them, unless all are asked for."""
    groups: dict[Any, list[int]] = {}
    keys = order if problem.requests[0].all_regions else cases.gpus[order]  # a case is its own key: nothing folds
    for case, key, offer in zip(order.tolist(), keys.tolist(), cases.offer[order].tolist(), strict=True):
        groups.setdefault((key, _product_of(problem.supply.offers[offer])), []).append(case)
    return list(groups.values())


# --- What is read from the table.


def offer_rows(problem: Problem, cases: Cases, table: OfferTable) -> list[RunOffer]:
    """Return the table as rows of the answer: what differs in its region alone is one row."""
    return [_row(problem, cases, table, line, regions) for line, regions in table.folded(problem.supply.offers)]


def _row(problem: Problem, cases: Cases, table: OfferTable, line: OfferLine, regions: Sequence[str] = ()) -> RunOffer:
    row = table.row(line, problem.supply.offers[line.offer], problem.terms, int(cases.gpus[line.case]), regions)
    fits = bool(cases.speed.fits[line.case])  # what does not fit, or would never end, comes to nothing
    cells = {name: finite(cases.costs[name][line.case]) if fits else None for name in _FIGURES}
    return cast(RunOffer, {**row, **cells})


# that a row of the table shows beside its price
_FIGURES = ("days", "cost_usd", "cost_low_usd", "cost_high_usd", *Budgeted.__annotations__)


def highlights(problem: Problem, cases: Cases, table: OfferTable, sellers: Providers) -> list[Highlight]:
    """Return the best of each kind; what is best in several ways stands there once, under the first."""
    best: list[Highlight] = []
    for case, kinds in table.labels.items():
        offer, costs = problem.supply.offers[int(cases.offer[case])], cases.costs
        best.append(
            {
                **picked_offer(offer, kinds, sellers.name(offer.provider)),
                "gpus": int(cases.gpus[case]),
                "instances": int(cases.gpus[case]) // max(offer.gpus, 1),
                "days": float(costs.days[case]),
                "gpu_hours": float(costs.gpu_hours[case]),
                "usd_per_gpu_hour": float(problem.terms.usd_per_gpu_hour[int(cases.offer[case])]),
                "mfu_fraction": float(cases.speed.mfu_fraction[case]),
                "cost_usd": float(costs.cost_usd[case]),
                "cost_low_usd": float(costs.cost_low_usd[case]),
                "cost_high_usd": float(costs.cost_high_usd[case]),
                **figures(Budgeted, costs, case),
                "price_observed_on": offer.observed_on.isoformat(),
                "age_days": offer.age_days,
            }
        )
    return best


def by_region(problem: Problem, cases: Cases, table: OfferTable) -> list[RegionBest]:
    """Return the first line of each region, in the order of the table, with how many there are."""
    places = [(problem.supply.offers[line.offer].region, line) for line in table.options]
    counts = Counter(region for region, _ in places)
    first = first_of_each(places)
    return [{**_row(problem, cases, table, line), "offers": counts[region]} for region, line in first.items()]


def alternatives(problem: Problem, cases: Cases, table: OfferTable) -> list[Alternative]:
    """Return the first line of each way to buy the accelerator of the first line, and what it saves."""
    best = table.lines[0]
    gpu = problem.supply.offers[best.offer].gpu
    ways = [
        (problem.supply.offers[line.offer], line)
        for line in table.options
        if problem.supply.offers[line.offer].gpu == gpu
    ]
    first = first_of_each(((offer.option, offer.term_months, offer.payment), line) for offer, line in ways)
    # savings are against the plain way to buy, where it is among them
    plain = (float(cases.costs.cost_usd[line.case]) for (option, *_), line in first.items() if is_plain(option))
    base = next(plain, None)
    rows: list[Alternative] = []
    for line in first.values():
        case = line.case
        offer, costs = problem.supply.offers[int(cases.offer[case])], cases.costs
        cost, amortised = float(costs.cost_usd[case]), float(costs.amortised_usd[case])
        note = ""
        if rate_is_prior(problem, int(cases.offer[case])):
            note = "interruption rate assumed"
        elif offer.term_months:
            note = f"pays for {offer.term_months} months; the hours used cost {costs.amortised_usd[case]:,.0f} USD"
        rows.append(
            {
                "option": offer.option,
                "term_months": offer.term_months,
                "payment": offer.payment,
                "provider": offer.provider,
                "instance_type": offer.instance_type,
                "region": offer.region or None,
                "gpu": offer.gpu,
                "gpus": int(cases.gpus[case]),
                "days": float(costs.days[case]),
                "cost_usd": cost,
                "cost_low_usd": float(costs.cost_low_usd[case]),
                "cost_high_usd": float(costs.cost_high_usd[case]),
                "saving_usd": None if base is None else base - cost,
                "saving_fraction": 1 - cost / base if base else None,
                "amortised_usd": amortised,
                "exposure_usd": float(costs.exposure_usd[case]),
                "note": note,
            }
        )
    return rows
