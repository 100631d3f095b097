"""From cases to answers: which cases are options and in what order, which offers are excluded and why."""

import numpy as np
from numpy.typing import NDArray

from gpucost.options import OPTIONS
from gpucost.physics.training.layouts import REASONS
from gpucost.training.cases import Cases, Problem
from gpucost.training.request import TrainingRequest

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]


def rank(problem: Problem, cases: Cases, number: int, judged: Indices) -> Indices:
    """Order the judged cases of one request that can be options: by the goal, then cost, days, accelerators and id.

    Interruptible offers compete at their expected cost, whether their rate was measured or is a prior; a Pareto list
    is ordered by cost and holds no option that another one beats in both cost and days.
    """
    request = problem.requests[number]
    usable = judged[can_be_option(problem, cases, request, judged)]
    order = usable[np.lexsort(_keys(problem, cases, request, usable))]
    return _front(cases, order) if request.optimize == "pareto" else order


def _keys(problem: Problem, cases: Cases, request: TrainingRequest, index: Indices) -> tuple[NDArray[np.generic], ...]:
    """Return the sort keys, last one first."""
    costs = cases.costs
    goals = {"time": costs.days, "carbon": np.nan_to_num(costs.kgco2e, nan=np.inf)}
    goal = goals.get(request.optimize, costs.cost_usd)
    ids = np.array([problem.supply.offers[offer].offer_id for offer in cases.offer[index]], dtype=object)
    _, by_id = np.unique(ids.astype(str), return_inverse=True)
    age = problem.terms.age_days[cases.offer[index]]  # of equals, the newest observation
    return by_id, age, cases.gpus[index], costs.days[index], costs.cost_usd[index], goal[index]


def _front(cases: Cases, order: Indices) -> Indices:
    """Keep the options that no other one beats in both cost and days; `order` is by cost, then days."""
    days = cases.costs.days[order]
    best_before = np.concatenate([[np.inf], np.minimum.accumulate(days)[:-1]])
    return order[days < best_before]


def rate_is_prior(problem: Problem, case_offer: int) -> bool:
    """Tell whether an offer may be interrupted at a rate that nobody measured for it."""
    return bool(problem.terms.interruptible[case_offer] & ~problem.terms.measured[case_offer])


def can_be_option(problem: Problem, cases: Cases, request: TrainingRequest, index: Indices) -> Flags:
    """Tell which cases fit, can be ordered, meet the deadline and have a price that may be used."""
    ok = cases.speed.fits[index] & np.isfinite(cases.costs.cost_usd[index])
    ok &= orderable(problem, cases, index)
    ok &= ~too_old(problem, cases, request, index)
    if request.deadline_days is not None:
        ok &= cases.costs.days[index] <= request.deadline_days
    if request.max_cost_usd is not None:
        ok &= cases.costs.cost_usd[index] <= request.max_cost_usd
    return ok


def orderable(problem: Problem, cases: Cases, index: Indices) -> Flags:
    """Tell which counts can be ordered: whole units, within the smallest and largest order and the longest purchase."""
    short_enough = ~(cases.costs.paid_hours[index] > problem.terms.longest_hours[cases.offer[index]])
    allowed: Flags = within_order(problem, cases, index) & short_enough
    return allowed


def within_order(problem: Problem, cases: Cases, index: Indices) -> Flags:
    """Tell which counts are whole units within the smallest and largest order, however long the run."""
    supply, offer, gpus = problem.supply, cases.offer[index], cases.gpus[index]
    whole = gpus % supply.unit_gpus[offer] == 0
    within: Flags = whole & (gpus >= supply.minimum_gpus[offer]) & (gpus <= supply.largest_gpus[offer])
    return within


def too_old(problem: Problem, cases: Cases, request: TrainingRequest, index: Indices) -> Flags:
    """Tell which prices are older than the request allows."""
    offer = cases.offer[index]
    old = np.zeros(len(index), bool)
    if request.max_age_days is not None:
        old |= problem.terms.age_days[offer] > request.max_age_days
    if request.strict_prices:
        old |= problem.terms.stale[offer]
    return old


def exclusion(problem: Problem, cases: Cases, request: TrainingRequest, case: int) -> str:
    """Say why a case is no option, in one sentence that names what would change it."""
    index = np.array([case])
    offer = int(cases.offer[case])
    row, gpus, unit = problem.supply.offers[offer], int(cases.gpus[case]), int(problem.supply.unit_gpus[offer])
    cap = problem.supply.cap_reasons[offer]
    limited = request.max_age_days is not None or request.strict_prices
    if limited and too_old(problem, cases, request, index)[0]:
        return f"price is {row.age_days} days old, over the limit of {_age_limit(problem, request, offer):g} days"
    if gpus % unit:
        return f"sold in units of {unit} accelerators; {gpus} is no multiple"
    if gpus < problem.supply.minimum_gpus[offer]:
        return f"the smallest order is {problem.supply.minimum_gpus[offer]} accelerators"
    if gpus > problem.supply.largest_gpus[offer]:
        return f"{gpus} accelerators are more than this offer can host: {cap}"
    if not cases.speed.fits[case]:
        return f"{REASONS[cases.speed.reason[case]]} on {gpus} ({cap})"
    days = float(cases.costs.days[case])
    if not np.isfinite(cases.costs.cost_usd[case]) or not np.isfinite(days):
        return f"interrupted so often on {gpus} accelerators that the run would never end"
    if request.deadline_days is not None and days > request.deadline_days:
        return f"{days:,.0f} days on {gpus} accelerators, over the deadline of {request.deadline_days:g} days; {cap}"
    if not orderable(problem, cases, index)[0]:
        return f"the run takes {days:,.1f} days on {gpus} accelerators; {OPTIONS[row.option].limit_said}; {cap}"
    return f"{cases.costs.cost_usd[case]:,.2f} USD, over the budget of {request.max_cost_usd or 0:,.2f} USD"


def _age_limit(problem: Problem, request: TrainingRequest, offer: int) -> float:
    limits = [] if request.max_age_days is None else [request.max_age_days]
    if request.strict_prices:
        limits.append(float(problem.terms.age_limit_days[offer]))
    return min(limits)
