"""Cases: requests on offers on accelerators, evaluated and ranked: how fast, at what cost, which are options."""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpucost.answers.common import BillLine
from gpucost.catalog.names import options
from gpucost.formula.arrays import Columns
from gpucost.market import interruptions as assume
from gpucost.market.budget import LIKELY, budgets, chances, sure
from gpucost.market.supply import Supply
from gpucost.market.table import Ordering, front_of, in_order, leading, standing
from gpucost.market.terms import Terms
from gpucost.money import bill
from gpucost.money.training_bill import BILL, INPUT_NAMES, price_runs
from gpucost.options import OPTIONS
from gpucost.physics.calibration import Calibration
from gpucost.physics.training.layouts import REASONS
from gpucost.training.request import TrainingRequest
from gpucost.units import DAYS_PER_MONTH, GB
from gpucost.workloads.speeds import Speeds, speeds_of
from gpucost.workloads.training import Sizes, Workload

# --- Cases: requests on offers on so many accelerators, evaluated: how fast, at what cost.

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]
_LONGEST_TERM_RATIO = 2.0  # a term of more than twice the run is no way to buy the run


class Problem(Struct, frozen=True):
    """Requests over one supply, with everything that cases are made from."""

    requests: tuple[TrainingRequest, ...]
    workloads: tuple[Workload, ...]  # one per request
    sizes: tuple[Sizes, ...]
    supply: Supply
    terms: Terms
    failures_per_gpu_year: tuple[float, float, float]
    masks: tuple[Flags, ...]  # offers that each request looks at
    calibration: Calibration

    def of_requests(self, value: Callable[[TrainingRequest], Any], request: Indices) -> NDArray[Any]:
        """Return a value of each of some requests, which are named by their numbers."""
        return np.array([value(ask) for ask in self.requests])[request]


class Cases(Struct, frozen=True):
    """Evaluated cases: which request, which offer, how many accelerators, how fast, at what cost."""

    request: Indices
    offer: Indices
    gpus: Indices
    speed: Speeds
    factors: Columns  # what the bill follows from
    costs: Columns  # what it comes to; once all of a question are known, also what one must have for it

    def __len__(self) -> int:
        return len(self.request)

    def take(self, rows: Indices) -> "Cases":
        """Return the cases that `rows` names."""
        parts = (self.request[rows], self.offer[rows], self.gpus[rows], self.speed.take(rows))
        return Cases(*parts, self.factors.take(rows), self.costs.take(rows))

    @classmethod
    def concatenate(cls, parts: Sequence["Cases"]) -> "Cases":
        """Join evaluated cases."""
        return cls(
            request=np.concatenate([part.request for part in parts]),
            offer=np.concatenate([part.offer for part in parts]),
            gpus=np.concatenate([part.gpus for part in parts]),
            speed=Speeds.concatenate([part.speed for part in parts]),
            factors=Columns.concatenate([part.factors for part in parts]),
            costs=Columns.concatenate([part.costs for part in parts]),
        )


def evaluate(problem: Problem, request: Indices, offer: Indices, gpus: Indices) -> Cases:
    """Evaluate cases: physics on the distinct keys, then prices on all."""
    speed = speeds_of(
        problem.workloads, problem.supply.keys, problem.calibration, request, problem.supply.key[offer], gpus
    )
    # what the bill of each case follows from: the terms of its offer, the sizes of its request, and assumptions
    terms, sizes, requests = problem.terms, problem.sizes, problem.requests
    count = len(request)
    node_gpus = np.array([key.system.gpus for key in problem.supply.keys], np.float64)
    nodes = np.maximum(1.0, np.ceil(gpus / node_gpus[problem.supply.key[offer]]))

    def of_request(values: Sequence[float]) -> Floats:
        return np.array(values, np.float64)[request]

    failures = problem.failures_per_gpu_year
    dataset = [size.dataset_bytes_per_token * ask.tokens / GB for size, ask in zip(sizes, requests, strict=True)]
    of_offer = {name: getattr(terms, name)[offer] for name in INPUT_NAMES if name in Terms._fields}
    factors = Columns(
        **of_offer,
        tokens=of_request([ask.trained_tokens for ask in requests]),
        gpus=gpus.astype(np.float64),
        nodes=nodes,
        gpus_per_unit=problem.supply.unit_gpus[offer].astype(np.float64),
        tokens_per_s_per_gpu=speed.tokens_per_s_per_gpu,
        tokens_per_s_per_gpu_low=speed.tokens_per_s_per_gpu_low,
        tokens_per_s_per_gpu_high=speed.tokens_per_s_per_gpu_high,
        evaluation_fraction=of_request([ask.evaluation_fraction for ask in requests]),
        experiments_fraction=of_request([ask.experiments_fraction for ask in requests]),
        ramp_hours=np.full(count, assume.RAMP_HOURS.value),
        restart_hours=np.full(count, assume.RESTART_HOURS.value),
        checkpoint_gb=of_request([size.checkpoint_gb for size in sizes]),
        checkpoint_write_gb_per_s=nodes * assume.WRITE_GB_PER_S_PER_NODE.value,
        failures_per_gpu_year_low=np.full(count, failures[0]),
        failures_per_gpu_year=np.full(count, failures[1]),
        failures_per_gpu_year_high=np.full(count, failures[2]),
        charge_commitment=of_request([float(ask.commitment == "full") for ask in requests]),
        dataset_gb=of_request(dataset),
        checkpoints_gb=of_request([size.checkpoint_gb * assume.CHECKPOINTS_KEPT.value for size in sizes]),
        egress_gb=of_request([size.weights_gb for size in sizes]),  # what leaves at the end: the weights alone
    )
    return Cases(request, offer, gpus, speed, factors, price_runs(factors))


# --- From cases to answers: which cases are options and in what order, which offers are excluded and why.


def rank(problem: Problem, cases: Cases, number: int, chosen: Indices) -> Indices:
    """Order the chosen cases of one request that can be options by its goal, as every answer orders offers.

    A Pareto list is ordered by budget and holds no option that another one beats in both budget and days.
    """
    request = problem.requests[number]
    usable = chosen[can_be_option(problem, cases, request, chosen)]
    order = usable[order_by(problem, cases, usable, request)]
    if request.optimize != "pareto":
        return order
    # what is probably gone beats nothing: the front is of what leads
    return front_of(order[leading(stands(cases, order, request))], cases.costs.budget_usd, cases.costs.days)


_RANK_COLUMNS = {"budget": "budget_usd", "expected": "expected_usd", "quoted": "cost_usd", "time": "days"}


def with_budgets(problem: Problem, cases: Cases) -> Cases:
    """Return all cases of some questions with what one must have for each, and the chance that it can be had."""
    costs, every = cases.costs, np.arange(len(cases))
    chance = chances(problem.terms, cases.offer, cases.gpus)
    fresh, sellers = problem.terms.fresh[cases.offer], problem.supply.seller[cases.offer]
    # a budget of one offer depends on the others: where it is gone, the cheapest that is left is hired
    added = {name: np.full(len(cases), np.nan) for name in ("budget_usd", "expected_usd", "fallback_usd")}
    for number, request in enumerate(problem.requests):
        of = every[cases.request == number]
        able = _can_do(problem, cases, request, of)
        parts = budgets(costs.cost_usd[of], costs.cost_high_usd[of], chance[of], able, fresh[of], sellers[of])
        columns = (parts.budget, parts.expected, np.full(len(of), parts.fallback))
        for column, values in zip(added.values(), columns, strict=True):
            column[of] = values
    budgeted = Columns({**costs, **added, "chance_available_fraction": chance})
    return Cases(cases.request, cases.offer, cases.gpus, cases.speed, cases.factors, budgeted)


def goal_of(cases: Cases, request: TrainingRequest) -> Floats:
    """Return what is to be small in each case: USD, days or carbon."""
    if request.optimize == "carbon":  # of a grid that nobody knows, last
        return np.nan_to_num(cases.costs.kgco2e, nan=np.inf)
    return cases.costs["days" if request.optimize == "time" else _RANK_COLUMNS[request.rank_by]]


def order_by(
    problem: Problem, cases: Cases, index: Indices, request: TrainingRequest, goal: Floats | None = None
) -> Indices:
    """Return places in `index` in the order of every answer, by a column of all cases, else by what was asked."""
    costs, offer = cases.costs, cases.offer[index]
    return in_order(
        Ordering(
            np.zeros(len(index), np.int64) if goal is not None else stands(cases, index, request),
            goal=(goal_of(cases, request) if goal is None else goal)[index],
            unsure=~sure(problem.terms, offer, costs.chance_available_fraction[index]),
            cost=costs.expected_usd[index],
            time=costs.days[index],
            gpus=cases.gpus[index],
            age_days=problem.terms.age_days[offer],
            id=problem.supply.id_place[offer],
        )
    )


def stands(cases: Cases, index: Indices, request: TrainingRequest) -> Indices:
    """Return where cases stand: what is probably gone behind the others, where the order knows nothing of chances."""
    # a budget holds the chance already; days and carbon know nothing of it
    if request.optimize not in ("time", "carbon") and request.rank_by != "time":
        return np.zeros(len(index), np.int64)
    return standing(cases.costs.chance_available_fraction[index] < LIKELY)


def rate_is_prior(problem: Problem, case_offer: int) -> bool:
    """Tell whether an offer may be interrupted at a rate that nobody measured for it."""
    return bool(problem.terms.interruptible[case_offer] & ~problem.terms.measured[case_offer])


def can_be_option(problem: Problem, cases: Cases, request: TrainingRequest, index: Indices) -> Flags:
    """Tell which cases do the work, and need no more than the budget that was stated."""
    needed = cases.costs["budget_usd" if "budget_usd" in cases.costs else "cost_usd"]  # before budgets are known, costs
    within: Flags = needed[index] <= (np.inf if request.max_cost_usd is None else request.max_cost_usd)
    return _can_do(problem, cases, request, index) & within


def _can_do(problem: Problem, cases: Cases, request: TrainingRequest, index: Indices) -> Flags:
    """Tell which cases fit, can be ordered, meet the deadline and have a price that may be used."""
    ok = cases.speed.fits[index] & np.isfinite(cases.costs.cost_usd[index])
    ok &= orderable(problem, cases, index)
    ok &= ~too_old(problem, cases, request, index)
    ok &= ~too_bound(problem, cases, request, index)
    if request.deadline_days is not None:
        ok &= cases.costs.days[index] <= request.deadline_days
    return ok


def orderable(problem: Problem, cases: Cases, index: Indices) -> Flags:
    """Tell which counts can be ordered: whole units, within the smallest and largest order and the longest purchase."""
    short_enough = ~(cases.costs.paid_hours[index] > problem.terms.longest_hours[cases.offer[index]])
    allowed: Flags = within_order(problem, cases, index) & short_enough & ~problem.supply.is_part[cases.offer[index]]
    return allowed


def too_bound(problem: Problem, cases: Cases, request: TrainingRequest, index: Indices) -> Flags:
    """Tell which commitments last far longer than the run, unless such an option or the hours alone were asked for."""
    offer = cases.offer[index]
    chosen = any(OPTIONS[name].family == "committed" for name in options(request.option) or ())
    if chosen or request.commitment == "used" or request.provider == "own":
        return np.zeros(len(index), bool)
    owed = problem.terms.term_months[offer] * DAYS_PER_MONTH * problem.terms.take_or_pay[offer]
    owed = np.where(problem.supply.bound[offer], owed, 0.0)
    bound: Flags = owed > _LONGEST_TERM_RATIO * np.maximum(cases.costs.days[index], 1.0)
    return bound


def within_order(problem: Problem, cases: Cases, index: Indices) -> Flags:
    """Tell which counts are whole units within the smallest and largest order, however long the run."""
    supply, offer, gpus = problem.supply, cases.offer[index], cases.gpus[index]
    whole_units = gpus % supply.unit_gpus[offer] == 0
    within: Flags = whole_units & (gpus >= supply.minimum_gpus[offer]) & (gpus <= supply.largest_gpus[offer])
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
    return exclusions(problem, cases, request, np.array([case]))[0]


def exclusions(problem: Problem, cases: Cases, request: TrainingRequest, index: Indices) -> list[str]:
    """Say of each of some cases why it is no option, in one sentence that names what would change it."""
    offers = cases.offer[index]
    flags = zip(
        (problem.supply.bound[offers] & too_bound(problem, cases, request, index)).tolist(),
        too_old(problem, cases, request, index).tolist(),
        problem.supply.is_part[offers].tolist(),
        orderable(problem, cases, index).tolist(),
        strict=True,
    )
    columns = zip(
        offers.tolist(),
        cases.gpus[index].tolist(),
        problem.supply.unit_gpus[offers].tolist(),
        cases.speed.fits[index].tolist(),
        cases.costs.days[index].tolist(),
        cases.costs.cost_usd[index].tolist(),
        cases.costs.budget_usd[index].tolist(),
        strict=True,
    )
    # the first reason that holds is told: what one chose comes before what the offer allows, money comes last
    supply, reasons, sentences = problem.supply, cases.speed.reason[index], []
    for place, ((offer, gpus, unit, fits, days, cost_usd, budget_usd), (bound, old, part, sold)) in enumerate(
        zip(columns, flags, strict=True)
    ):
        row, cap = supply.offers[offer], supply.cap_reasons[offer]
        if bound:
            sentence = f"owes {row.term_months} months for a run of {days:,.3g} days; --option {row.option} shows it"
        elif old:
            limits = [] if request.max_age_days is None else [request.max_age_days]
            limits += [float(problem.terms.age_limit_days[offer])] if request.strict_prices else []
            limit = min(limits)
            sentence = f"price is {row.age_days} days old, over the limit of {limit:g} days"
        elif part:
            sentence = "price of a part of a machine that is sold whole"
        elif gpus % unit:
            sentence = f"sold in units of {unit} accelerators; {gpus} is not a multiple"
        elif gpus < supply.minimum_gpus[offer]:
            sentence = f"the smallest order is {supply.minimum_gpus[offer]} accelerators"
        elif gpus > supply.largest_gpus[offer]:
            sentence = f"{gpus} accelerators are more than this offer can host: {cap}"
        elif not fits:
            sentence = f"{REASONS[reasons[place]]} on {gpus} ({cap})"
        elif not (isfinite(cost_usd) and isfinite(days)):
            sentence = f"interrupted so often on {gpus} accelerators that the run would never end"
        elif request.deadline_days is not None and days > request.deadline_days:
            sentence = (
                f"{days:,.0f} days on {gpus} accelerators, over the deadline of {request.deadline_days:g} days; {cap}"
            )
        elif not sold:
            rule = OPTIONS[row.option].limit_sentence
            sentence = f"the run takes {days:,.1f} days on {gpus} accelerators; {rule}; {cap}"
        else:
            sentence = f"needs {budget_usd:,.2f} USD, over the budget of {request.max_cost_usd or 0:,.2f} USD"
        sentences.append(sentence)
    return sentences


# --- From the factors of a run to its money, once more: what a what-if, a comparison and a rerun recompute.


def recompute(factors: Mapping[str, float], **changes: float) -> dict[str, Any]:
    """Recompute the money of one answer from its factors, some of them changed by name."""
    inputs = {name: float(factors[name]) for name in INPUT_NAMES}
    # the ends of the range move with the speed
    moved = changes.get("tokens_per_s_per_gpu", inputs["tokens_per_s_per_gpu"]) / inputs["tokens_per_s_per_gpu"]
    for end in ("tokens_per_s_per_gpu_low", "tokens_per_s_per_gpu_high"):
        inputs[end] *= moved
    case = Columns({name: np.array([float(value)]) for name, value in {**inputs, **changes}.items()})
    costs = price_runs(case)
    return {**costs.row(0), "lines": lines_of(case, costs, 0)}


def lines_of(factors: Columns, costs: Columns, case: int) -> list[BillLine]:
    """Return the lines of one case; lines of nothing are left out."""
    return bill.printed(BILL, {**factors.row(case), **costs.row(case)})
