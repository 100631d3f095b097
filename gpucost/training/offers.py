"""The table of offers of a run: its lines and their order, what each is best at, and what is read from it.

Regions, ways to buy and the best of each kind are the first lines of a kind: nothing here ranks but `table_of`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
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


def table_of(problem: Problem, market: Market, cases: Cases, judged: Indices) -> OfferTable:
    """Return the table of a request: every offer at the size that it is judged by, and what leads at another size."""
    request = problem.requests[0]
    every = np.arange(len(cases))
    ways = every[can_be_option(problem, cases, request, every)]  # all sizes
    order = rank(problem, cases, 0, every if request.optimize == "pareto" else judged)
    budget = cases.costs.budget_usd
    by_budget = ways[order_by(problem, cases, ways, request, budget)]
    labels = _labels(problem, market, cases, by_budget)
    likely = by_budget[leading(standing(cases.costs.chance_available_fraction[by_budget] < LIKELY))]
    front = frozenset(front_of(likely, budget, cases.costs.days).tolist())
    groups = fold(problem, cases, order)
    ranks = {case: place for place, group in enumerate(groups, 1) for case in group}
    of_offer = {int(cases.offer[case]): place for case, place in reversed(ranks.items())}
    others = [case for case in dict.fromkeys([*judged.tolist(), *labels, *sorted(front)]) if case not in ranks]
    beside = np.array(others, np.int64)
    able = can_be_option(problem, cases, request, beside)
    lines = _options(problem, cases, order, ranks, {group[0] for group in groups})
    lines += _other_sizes(problem, cases, beside[able], of_offer)
    return OfferTable((*lines, *_left_out(problem, cases, beside[~able])), labels, front)


def _options(
    problem: Problem, cases: Cases, order: Indices, ranks: Mapping[int, int], first: set[int]
) -> list[OfferLine]:
    """Return the lines that rank, and those that differ from one before in their region alone."""
    codes = stands(cases, order, problem.requests[0]).tolist()
    lines = []
    for case, offer, code in zip(order.tolist(), cases.offer[order].tolist(), codes, strict=True):
        place = ranks[case]
        if case in first:
            lines.append(OfferLine(case, offer, place, code, ""))
        else:
            lines.append(OfferLine(case, offer, None, code, f"rank {place} in another region", place))
    return lines


_BEATEN = "another offer is both cheaper and faster"


def _other_sizes(problem: Problem, cases: Cases, index: Indices, of_offer: Mapping[int, int]) -> list[OfferLine]:
    """Return what could be ordered and does not rank: another size of a line does, or an offer that beats it."""
    codes = stands(cases, index, problem.requests[0]).tolist()
    return [
        OfferLine(case, offer, None, code, f"rank {of_offer[offer]} at another size" if offer in of_offer else _BEATEN)
        for case, offer, code in zip(index.tolist(), cases.offer[index].tolist(), codes, strict=True)
    ]


def _left_out(problem: Problem, cases: Cases, out: Indices) -> list[OfferLine]:
    reasons = exclusions(problem, cases, problem.requests[0], out)
    return [
        OfferLine(case, offer, None, LEFT_OUT, reason)
        for case, offer, reason in zip(out.tolist(), cases.offer[out].tolist(), reasons, strict=True)
    ]


def fold(problem: Problem, cases: Cases, order: Indices) -> list[list[int]]:
    """Put offers that differ in their region only behind the first of them, unless all are asked for."""
    groups: dict[Any, list[int]] = {}
    keys = order if problem.requests[0].all_regions else cases.gpus[order]
    for case, key, offer in zip(order.tolist(), keys.tolist(), cases.offer[order].tolist(), strict=True):
        groups.setdefault((key, _product_of(problem.supply.offers[offer])), []).append(case)
    return list(groups.values())


def _labels(problem: Problem, market: Market, cases: Cases, by_budget: Indices) -> dict[int, list[str]]:
    """Return what each case is best at, of every size of every offer, regardless of the ranking."""
    offers, sellers, chips = problem.supply.offers, Providers(market.facts.providers), market.facts.accelerators
    is_major = np.array([sellers.kind(offer.provider) == "hyperscaler" for offer in offers], bool)
    sources = np.array([chips[offer.gpu].training_sources for offer in offers])
    costs, of = cases.costs, cases.offer
    chance = costs.chance_available_fraction
    columns = Picked(costs.budget_usd, costs.cost_usd, costs.days, chance, is_major[of], sources[of])
    return picks(by_budget, columns)


# --- What is read from the table.


def offer_rows(problem: Problem, cases: Cases, table: OfferTable) -> list[RunOffer]:
    """Return the table as rows of the answer: what differs in its region alone is one row."""
    return [_row(problem, cases, table, line, regions) for line, regions in table.folded(problem.supply.offers)]


def _row(problem: Problem, cases: Cases, table: OfferTable, line: OfferLine, regions: Sequence[str] = ()) -> RunOffer:
    row = table.row(line, problem.supply.offers[line.offer], problem.terms, int(cases.gpus[line.case]), regions)
    return cast(RunOffer, {**row, **_run_cells(cases, line.case)})


_FIGURES = ("days", "cost_usd", "cost_low_usd", "cost_high_usd", *Budgeted.__annotations__)


def _run_cells(cases: Cases, case: int) -> dict[str, float | None]:
    """Return what a run comes to; None where it does not fit, or would never end."""
    fits = bool(cases.speed.fits[case])
    return {name: finite(cases.costs[name][case]) if fits else None for name in _FIGURES}


def highlights(problem: Problem, cases: Cases, table: OfferTable, sellers: Providers) -> list[Highlight]:
    """Return the best of each kind; what is best in several ways stands there once, under the first."""
    return [_highlight(problem, cases, case, kinds[0], sellers) for case, kinds in table.labels.items()]


def _highlight(problem: Problem, cases: Cases, case: int, kind: str, sellers: Providers) -> Highlight:
    offer, costs = problem.supply.offers[int(cases.offer[case])], cases.costs
    return {
        "kind": kind,
        "provider": offer.provider,
        "seller": sellers.name(offer.provider),
        "region": offer.region or None,
        "instance_type": offer.instance_type,
        "option": offer.option,
        "term_months": offer.term_months,
        "gpu": offer.gpu,
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
    plain = (float(cases.costs.cost_usd[line.case]) for (option, *_), line in first.items() if is_plain(option))
    base = next(plain, None)
    return [_alternative(problem, cases, line.case, base) for line in first.values()]


def _alternative(problem: Problem, cases: Cases, case: int, base: float | None) -> Alternative:
    offer, costs = problem.supply.offers[int(cases.offer[case])], cases.costs
    cost, amortised = float(costs.cost_usd[case]), float(costs.amortised_usd[case])
    return {
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
        "note": _alternative_note(problem, cases, case),
    }


def _alternative_note(problem: Problem, cases: Cases, case: int) -> str:
    offer = problem.supply.offers[int(cases.offer[case])]
    if rate_is_prior(problem, int(cases.offer[case])):
        return "interruption rate assumed"
    if offer.term_months:
        return f"pays for {offer.term_months} months; the hours used cost {cases.costs.amortised_usd[case]:,.0f} USD"
    return ""
