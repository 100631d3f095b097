"""What a person asks next: other cluster sizes, other ways to buy, what dominates the cost."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.answers.common import finite
from gpucost.answers.speed import Feeding
from gpucost.answers.training import Alternative, Driver, Highlight, Size
from gpucost.gate import beside
from gpucost.options import OPTIONS, is_plain
from gpucost.physics.training.structs import PARTS
from gpucost.training.cases import Cases, Problem, evaluate
from gpucost.training.costing import lines_of
from gpucost.training.rank import rate_is_prior

Indices = NDArray[np.int64]

_SIZES_BELOW, _SIZES_ABOVE = 4, 16  # how many times smaller and larger than the chosen size
_SMALLEST_SHARE = 0.01

# What each part of a training step is, for a reader of the bill.
PART_NOTES = dict(beside(__file__, "parts")[1:])


def scaling(problem: Problem, cases: Cases, best: int) -> list[Size]:
    """Return how cost and time trade off with the size of the cluster, on the offer of one case.

    Sizes are doublings of the unit, and halfway between where whole nodes are sold, from a quarter of the chosen one
    to sixteen times it; what has no layout is left out.
    """
    request, offer, chosen = int(cases.request[best]), int(cases.offer[best]), int(cases.gpus[best])
    supply = problem.supply
    unit, largest = int(supply.unit_gpus[offer]), int(supply.largest_gpus[offer])
    low = max(int(supply.minimum_gpus[offer]), unit)
    low, largest = max(low, chosen // _SIZES_BELOW), min(largest, chosen * _SIZES_ABOVE)
    doubled = {unit * 2**j for j in range(32)}
    whole = unit >= supply.keys[int(supply.key[offer])].system.gpus
    halfway = {count // 2 * 3 for count in doubled if count > unit} if whole else set()
    counts = np.array(sorted(count for count in doubled | halfway | {chosen} if low <= count <= largest), np.int64)
    tried = evaluate(problem, np.full(len(counts), request), np.full(len(counts), offer), counts)
    rows = [_size(tried, row, int(count) == chosen) for row, count in enumerate(counts)]
    return [row for row in rows if row["cost_usd"] is not None]


def _size(cases: Cases, case: int, chosen: bool) -> Size:
    """Return one size of cluster: what it costs, how long it takes, how well it runs."""
    costs, speed, fits = cases.costs, cases.speed, bool(cases.speed.fits[case])
    return {
        "gpus": int(cases.gpus[case]),
        "nodes": int(cases.factors.nodes[case]),
        "days": finite(costs.days[case]),
        "cost_usd": finite(costs.cost_usd[case]) if fits else None,
        "cost_low_usd": finite(costs.cost_low_usd[case]),
        "cost_high_usd": finite(costs.cost_high_usd[case]),
        "mfu_fraction": finite(speed.mfu_fraction[case]),
        "tokens_per_s_per_gpu": finite(speed.tokens_per_s_per_gpu[case]),
        "chosen": chosen,
    }


def alternatives(problem: Problem, cases: Cases, order: Indices) -> list[Alternative]:
    """Return the cheapest option of each way to buy the accelerator of the first option, and what it saves."""
    gpu = problem.supply.offers[int(cases.offer[order[0]])].gpu
    found: dict[tuple[Any, ...], int] = {}
    for case in order:
        offer = problem.supply.offers[int(cases.offer[case])]
        if offer.gpu == gpu:
            name = (offer.option, offer.term_months, offer.payment)
            if name not in found or cases.costs.cost_usd[case] < cases.costs.cost_usd[found[name]]:
                found[name] = int(case)
    plain = [case for name, case in found.items() if is_plain(name[0])]
    base = min((float(cases.costs.cost_usd[case]) for case in plain), default=None)
    rows = [_alternative(problem, cases, case, base) for case in found.values()]
    return sorted(rows, key=lambda row: row["cost_usd"])


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
        return "interruption rate not measured: a prior"
    if offer.term_months:
        return f"owes {offer.term_months} months; {cases.costs.amortised_usd[case]:,.0f} USD for the hours used"
    return ""


def highlights(problem: Problem, cases: Cases, order: Indices) -> list[Highlight]:
    """Return the best option of each kind; an option that is best in several ways stands there once, under the first.

    Kinds: the cheapest; the cheapest that stays until it is given back; the cheapest whose price is not old; the
    cheapest that is both; the fastest; the cheapest for a term and in a booked window.
    """
    terms, costs = problem.terms, cases.costs
    by_cost = order[np.lexsort((np.arange(len(order)), costs.cost_usd[order]))]
    options = [problem.supply.offers[int(offer)].option for offer in cases.offer[by_cost]]
    stays = np.array([is_plain(option) for option in options], bool)
    family = np.array([OPTIONS[option].family for option in options])
    stale = terms.stale[cases.offer[by_cost]]
    kinds = {
        "cheapest": by_cost,
        "on demand": by_cost[stays],
        "new price": by_cost[~stale],
        "both": by_cost[stays & ~stale],
        "fastest": by_cost[np.argsort(costs.days[by_cost], kind="stable")],
        "committed": by_cost[family == "committed"],
        "booked": by_cost[family == "scheduled"],
    }
    chosen: dict[int, str] = {}
    for kind, found in kinds.items():
        if len(found):
            chosen.setdefault(int(found[0]), kind)
    return [_highlight(problem, cases, case, kind) for case, kind in chosen.items()]


def _highlight(problem: Problem, cases: Cases, case: int, kind: str) -> Highlight:
    offer, costs = problem.supply.offers[int(cases.offer[case])], cases.costs
    return {
        "kind": kind,
        "provider": offer.provider,
        "region": offer.region or None,
        "option": offer.option,
        "term_months": offer.term_months,
        "gpu": offer.gpu,
        "gpus": int(cases.gpus[case]),
        "days": float(costs.days[case]),
        "cost_usd": float(costs.cost_usd[case]),
        "cost_low_usd": float(costs.cost_low_usd[case]),
        "cost_high_usd": float(costs.cost_high_usd[case]),
        "age_days": offer.age_days,
    }


def drivers(cases: Cases, best: int, loading: Feeding | None) -> list[Driver]:
    """Return what dominates the cost: the lines of the bill, the steps' hours split by the parts of a step."""
    total = float(cases.costs.cost_usd[best])
    stall = loading["stall_fraction"] if loading else 0.0
    seconds = (1 - stall) * cases.speed.parts_s[best] / cases.speed.parts_s[best].sum()
    rows: list[Driver] = []
    for line in lines_of(cases.factors, cases.costs, best):
        share = line["cost_usd"] / total if total else 0.0
        if line["name"] != "compute":
            rows.append({"name": line["name"], "share_fraction": share, "note": line["note"]})
            continue
        for name, part in zip((*PARTS, "loading_s"), (*seconds, stall), strict=True):
            if part > 0:
                what = name.removesuffix("_s").replace("_", " ")
                rows.append(
                    {"name": f"steps: {what}", "share_fraction": share * float(part), "note": PART_NOTES.get(what, "")}
                )
    rows.sort(key=lambda row: -row["share_fraction"])
    return [row for row in rows if row["share_fraction"] >= _SMALLEST_SHARE]
