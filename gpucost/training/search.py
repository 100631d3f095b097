"""Which clusters are tried on which offers, and which one each offer is judged by.

The sizes of an offer are the multiples of a whole node; parts of a node are sold in doublings. Every doubling of the
unit is tried, and between the two where the deadline is first met every multiple in order: three machines of eight are
as legal as four. Of all these the cheapest that meets the deadline counts, so that more time costs no more (but for
what a size between two doublings may save that was tried for a shorter deadline alone). Where every size is looked at,
one size halves the way between two doublings.
"""

from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.market.budget import LIKELY, chances
from gpucost.physics.hardware import peak, peaks
from gpucost.training.cases import (
    Cases,
    Problem,
    can_be_option,
    evaluate,
    goal_of,
    too_old,
    with_budgets,
    within_order,
)
from gpucost.types import Accelerator
from gpucost.units import SECONDS_PER_DAY, SECONDS_PER_HOUR, TERA
from gpucost.workloads.speeds import speeds_of
from gpucost.workloads.training import Workload

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

_FASTEST_MFU = 0.85  # no cluster is tried that could not meet the deadline even at this share of its peak
_MULTIPLES_AT_FIRST = 96  # tried at once: nearly always all that lie between; then twice as many
_FASTER_RATIO = 1.05  # by how much, at most, more accelerators make each of them faster, as more memory may
_HALF_FASTER_RATIO = 1.3  # by how much, at most, half as many make each of them faster
_HALF_FED_RATIO = 2.0  # the same, where they share what storage delivers
_PROMISING = 16  # offers of a request that are evaluated before the others
_SLACK = 1e-9  # of a time, beyond the rounding of floats
_ROUNDING_USD = 0.1  # more than the cents that rounding the lines of a bill can take away


class Lines(NamedTuple):
    """Pairs of a request and an offer that it looks at: each is judged by one size of cluster."""

    request: Indices
    offer: Indices
    fewest_gpus: Floats  # sizes below cannot meet the deadline, or are no order

    def take(self, rows: Indices) -> "Lines":
        """Return the pairs that `rows` names."""
        return Lines(self.request[rows], self.offer[rows], self.fewest_gpus[rows])


def search(problem: Problem, *, leading_only: bool = False) -> tuple[Cases, Indices]:
    """Evaluate what is needed and return the cases with, per request and offer looked at, the one it is judged by.

    The second array names one case per (request, offer): of those that meet the deadline and can be ordered the best
    by the goal, the smallest of equals; where nothing meets it, the largest cluster tried, which tells why. Of the
    sizes between two doublings, which may be hundreds of thousands, only those that a round is judged by are kept.
    With `leading_only` the offers that cannot lead their request are left out.
    """
    lines = _may_lead(problem, _lines(problem)) if leading_only else _lines(problem)
    doubled, line = _double(problem, lines)
    evaluated = [(doubled, line)]
    # Half as much again as each doubling, where every size is looked at.
    wants_all = _wants_all(problem, doubled.request)
    if wants_all.any():
        unit, largest = problem.supply.unit_gpus[doubled.offer], problem.supply.largest_gpus[doubled.offer]
        gpus = doubled.gpus // 2 * 3
        keep = (
            (wants_all & (_pinned(problem, doubled.request) == 0))
            & (gpus % unit == 0)
            & (gpus > doubled.gpus)
            & (gpus <= largest)
            & _sells_whole_nodes(problem, doubled.offer)
        )
        if keep.any():
            halfway = evaluate(problem, doubled.request[keep], doubled.offer[keep], gpus[keep])
            evaluated.append((halfway, line[keep]))
    evaluated += _between(problem, lines, doubled, line)
    cases = with_budgets(problem, Cases.concatenate([cases for cases, _ in evaluated]))
    return cases, _best_of_each_line(problem, cases, np.concatenate([line for _, line in evaluated]))


def _lines(problem: Problem) -> Lines:
    """Return every pair of a request and an offer that it looks at."""
    request = np.concatenate([np.full(int(mask.sum()), number) for number, mask in enumerate(problem.masks)])
    offer = np.concatenate([np.flatnonzero(mask) for mask in problem.masks])
    request, offer = request.astype(np.int64), offer.astype(np.int64)
    # The accelerators without which even a run near the dense peak misses the deadline.
    chips = [key.accelerator for key in problem.supply.keys]
    of_chip = {id(chip): chip for chip in chips}  # far fewer than the nodes that hold them
    of_run: dict[int, list[float]] = {}
    for run in problem.workloads:
        if id(run) not in of_run:
            peak_of = {name: peak_flop_per_s(chip, run) for name, chip in of_chip.items()}
            of_run[id(run)] = [peak_of[id(chip)] for chip in chips]
    peaks = np.array([of_run[id(run)] for run in problem.workloads])
    rows = zip(problem.sizes, problem.requests, strict=True)
    work = np.array([size.model_flop_per_token * ask.trained_tokens for size, ask in rows], np.float64)
    full = np.array([1.0 if ask.method == "full" else 0.6 for ask in problem.requests])  # frozen weights need 4N of 6N
    seconds = np.array([(ask.deadline_days or np.inf) * SECONDS_PER_DAY for ask in problem.requests])
    timely = (work * full / seconds)[request] / (peaks[request, problem.supply.key[offer]] * _FASTEST_MFU)
    fewest = np.maximum(timely, problem.supply.minimum_gpus[offer])
    return Lines(request, offer, np.maximum(fewest, problem.supply.unit_gpus[offer]))


def _may_lead(problem: Problem, lines: Lines) -> Lines:
    """Leave out the offers that cannot lead their request, where the least cost leads.

    A run of N tokens with overhead e costs at least N × (1 + e) × USD per GPU-hour ÷ (3,600 × the most tokens per
    second and accelerator). A few promising offers are evaluated first. One whose least is above the high end of a
    fresh on-demand option does not lead, and none falls back on it.
    """
    requests, supply = problem.requests, problem.supply
    line, gpus = _doubled_counts(problem, lines)
    request, offer = lines.request[line], lines.offer[line]
    speed = speeds_of(problem.workloads, supply.keys, problem.calibration, request, supply.key[offer], gpus)
    at_doublings = np.where(speed.fits, speed.tokens_per_s_per_gpu, 0.0)
    faster = np.array([most_faster(run) for run in problem.workloads])
    work = np.array([ask.trained_tokens * (1 + ask.evaluation_fraction) for ask in requests])
    # of sizes up to a doubling none is faster per accelerator than the faster of its ends × `faster`; is any in time?
    start = np.diff(line, prepend=-1) > 0  # the first of a line, whose lower end was not timed
    below = np.where(start, 0.0, np.roll(at_doublings, 1))
    at_start = np.where(start, _HALF_FASTER_RATIO, 1.0)
    most = np.maximum(at_doublings, below) * np.maximum(faster[request], at_start)
    limit_s = np.array([(ask.deadline_days or np.inf) * SECONDS_PER_DAY for ask in requests])
    in_time = most * gpus >= (work / limit_s)[request] * (1 - _SLACK)
    odd = faster[request] > _FASTER_RATIO  # of a batch that splits well over a size between, any doubling speaks
    fastest = np.zeros(len(lines.request))
    np.maximum.at(fastest, line, np.where(in_time | odd, most, 0.0))
    with np.errstate(divide="ignore"):
        hours = work[lines.request] / (fastest * SECONDS_PER_HOUR)
    # the least that each offer can cost; those whose least is smallest, the likely ones first, are evaluated whole
    least = hours * problem.terms.usd_per_gpu_hour[lines.offer]
    smallest = lines.fewest_gpus.astype(np.int64)
    likely = problem.terms.fresh[lines.offer] & (chances(problem.terms, lines.offer, smallest) >= LIKELY)
    order = np.lexsort((least, ~likely, lines.request))
    place = np.arange(len(order)) - np.searchsorted(lines.request[order], lines.request[order])
    promising = lines.take(np.sort(order[place < _PROMISING]))
    cases, _ = _double(problem, promising)
    # what is dearer than the high end of a likely and fresh option cannot lead; other goals are not of cost
    limit = np.full(len(requests), np.inf)
    for number, ask in enumerate(requests):
        of_request = np.flatnonzero(cases.request == number)
        if ask.optimize == "cost" and ask.rank_by != "time" and len(of_request):
            of_request = of_request[can_be_option(problem, cases, ask, of_request)]
            likely = chances(problem.terms, cases.offer[of_request], cases.gpus[of_request]) >= LIKELY
            of_request = of_request[likely & problem.terms.fresh[cases.offer[of_request]]]
            limit[number] = cases.costs.cost_high_usd[of_request].min(initial=np.inf)
    return lines.take(np.flatnonzero(least <= limit[lines.request] + _ROUNDING_USD))


def most_faster(run: Workload) -> float:
    """Return by how much, at most, a size is faster per accelerator than the faster of the doublings around it.

    A batch of a power of two splits best over the doublings; another one may split well over a size between them.
    """
    if run.loading:
        return _HALF_FED_RATIO
    return _FASTER_RATIO if run.global_batch & (run.global_batch - 1) == 0 else _HALF_FASTER_RATIO


def _double(problem: Problem, lines: Lines) -> tuple[Cases, Indices]:
    """Evaluate every doubling of the unit from the fewest on, else the one size asked for; return each with its line.

    None may be left out for being dearer than a smaller one: a cluster that holds the model in fewer parts, or without
    computing activations twice, may cost less than one of a quarter of its size.
    """
    line, gpus = _doubled_counts(problem, lines)
    return evaluate(problem, lines.request[line], lines.offer[line], gpus), line


def _doubled_counts(problem: Problem, lines: Lines) -> tuple[Indices, Indices]:
    """Return the line of each doubling, and the accelerators in it."""
    # the first and last exponent j of the counts unit × 2^j that are worth trying; the last may be cut at the largest
    unit, largest = problem.supply.unit_gpus[lines.offer], problem.supply.largest_gpus[lines.offer]
    pinned = _pinned(problem, lines.request)
    first = np.ceil(np.log2(lines.fewest_gpus / unit) - 1e-9).astype(np.int64)  # 1e-9: a rounded whole number stays
    stop = np.ceil(np.log2(np.maximum(largest // unit, 1)) - 1e-9).astype(np.int64)
    first = np.minimum(first, stop)  # too small an offer is tried at its largest, to say how long it takes
    first, stop = np.where(pinned > 0, 0, first), np.where(pinned > 0, 0, stop)
    # the exponents of all lines behind each other: each counts up from its first
    many = stop - first + 1
    line = np.repeat(np.arange(len(many)), many)
    exponent = np.arange(len(line)) - np.repeat(np.cumsum(many) - many - first, many)
    unit, largest, pinned = unit[line], largest[line], pinned[line]
    return line, np.where(pinned > 0, pinned, np.minimum(unit * 2**exponent, np.maximum(largest // unit, 1) * unit))


def other_counts(problem: Problem, number: int) -> list[int]:
    """Return the doublings on which some offer can hold a request, the nearest to the number that it asks for first."""
    request = problem.requests[number]
    free = replace(
        problem,
        requests=(replace(request, gpus=None, deadline_days=None),),
        workloads=(problem.workloads[number],),
        sizes=(problem.sizes[number],),
        masks=(problem.masks[number],),
    )
    cases, _ = _double(free, _lines(free))
    every = np.arange(len(cases))
    possible = cases.speed.fits & within_order(free, cases, every) & ~too_old(free, cases, request, every)
    counts = np.unique(cases.gpus[possible])
    stated = request.gpus or 1
    order = np.lexsort((-counts, np.abs(np.log2(counts / stated))))  # of equally near ones the larger
    return [count for count in counts[order].tolist() if count != stated]


def _pinned(problem: Problem, request: Indices) -> Indices:
    """Return the number of accelerators that each line is asked for; 0 where it is free."""
    return problem.of_requests(lambda ask: ask.gpus or 0, request)


def peak_flop_per_s(accelerator: Accelerator, workload: Workload) -> float:
    """Return the dense peak of a workload, else the highest of the chip, so that no cluster is skipped wrongly.

    A chip of which no peak is known could be of any speed.
    """
    native_peak = peak(accelerator, workload.precision_on(accelerator)).tflops
    known_peaks = [tflops for tflops in peaks(accelerator) if not np.isnan(tflops)]
    return (max(known_peaks, default=np.inf) if np.isnan(native_peak) else native_peak) * TERA


def _sells_whole_nodes(problem: Problem, offer: Indices) -> Flags:
    """Tell which offers sell whole nodes, of which any number makes a cluster."""
    node_gpus = np.array([key.system.gpus for key in problem.supply.keys], np.int64)
    flags: Flags = problem.supply.unit_gpus[offer] >= node_gpus[problem.supply.key[offer]]
    return flags


def _between(problem: Problem, lines: Lines, doubled: Cases, line: Indices) -> list[tuple[Cases, Indices]]:
    """Evaluate, in order, the multiples of the unit below the doubling that met the deadline, until some meet it.

    The first that meets it may split the batch badly: those tried at once with it count, too.
    """
    # A window in units: the first multiple that may meet the deadline, and the doubling that does; equal where none
    # may. What a run needs in GPU-days hardly falls as a cluster grows, so that a size which missed the deadline says
    # below which size every other one misses it too.
    unit = problem.supply.unit_gpus[lines.offer]
    met = _meets(problem, doubled)
    limit = np.array([ask.deadline_days or np.inf for ask in problem.requests])[doubled.request]
    stop_gpus = np.full(len(lines.request), np.inf)
    np.minimum.at(stop_gpus, line[met], doubled.gpus[met])
    # a larger one may wait for what these do not
    below, first_met = doubled.gpus < stop_gpus[line], doubled.gpus == stop_gpus[line]
    half = np.array([_HALF_FED_RATIO if run.loading else _HALF_FASTER_RATIO for run in problem.workloads])
    faster = np.where(first_met, half[doubled.request], _FASTER_RATIO)
    timed = (below | first_met) & doubled.speed.fits & np.isfinite(doubled.costs.days)
    needed = np.where(timed, doubled.gpus * doubled.costs.days / limit / faster, 0.0)
    first_gpus = lines.fewest_gpus.copy()
    np.maximum.at(first_gpus, line, np.where(below, np.maximum(needed, doubled.gpus + 1.0), needed))
    idle = np.isinf(stop_gpus) | (_pinned(problem, lines.request) > 0) | _wants_all(problem, lines.request)
    idle |= ~_sells_whole_nodes(problem, lines.offer)
    first = np.ceil(first_gpus / unit - 1e-9).astype(np.int64)
    stop = (np.where(idle, 0, stop_gpus) // unit).astype(np.int64)
    evaluated: list[tuple[Cases, Indices]] = []
    open_line, many = np.flatnonzero(first < stop), _MULTIPLES_AT_FIRST
    while len(open_line):
        units = first[open_line][:, None] + np.arange(many)[None, :]
        keep = units < stop[open_line][:, None]
        open_lines = np.broadcast_to(open_line[:, None], keep.shape)[keep]
        cases = evaluate(problem, lines.request[open_lines], lines.offer[open_lines], unit[open_lines] * units[keep])
        done = np.zeros(len(first), bool)
        done[open_lines[_meets(problem, cases)]] = True
        best = _best_of_each_line(problem, cases, open_lines)
        evaluated.append((cases.take(best), open_lines[best]))
        first, many = first + many, 2 * many
        open_line = open_line[~done[open_line] & (first[open_line] < stop[open_line])]
    return evaluated


def _meets(problem: Problem, cases: Cases) -> Flags:
    """Tell which cases meet the deadline, at a price, on what is sold for that long."""
    limit = problem.of_requests(lambda ask: np.inf if ask.deadline_days is None else ask.deadline_days, cases.request)
    met: Flags = cases.speed.fits & (cases.costs.days <= limit) & np.isfinite(cases.costs.cost_usd)
    met &= ~(cases.costs.paid_hours > problem.terms.longest_hours[cases.offer])
    return met


def _wants_all(problem: Problem, request: Indices) -> Flags:
    """Tell which requests look at every size: those without a deadline, and those that trade time for money."""
    return problem.of_requests(lambda ask: ask.deadline_days is None or ask.optimize in ("time", "pareto"), request)


def _best_of_each_line(problem: Problem, cases: Cases, line: Indices) -> Indices:
    """Pick one case per line: met before missed, by the goal; of equals what is likely, then the cheapest, then fewer.

    Before all sizes of all offers are known there are no budgets: the cost stands for them.
    """
    if not len(line):
        return np.zeros(0, np.int64)
    met = _meets(problem, cases)
    budget = problem.of_requests(lambda ask: np.inf if ask.max_cost_usd is None else ask.max_cost_usd, cases.request)
    over = cases.costs["budget_usd" if "budget_usd" in cases.costs else "cost_usd"] > budget
    # What one wants small, by request; for the shortest time a likely case within the budget goes before a faster one.
    goal, unlikely = cases.costs.cost_usd.copy(), np.zeros(len(cases), bool)
    chance = chances(problem.terms, cases.offer, cases.gpus)
    for number, ask in enumerate(problem.requests):
        of = cases.request == number
        if "budget_usd" in cases.costs or ask.optimize in ("time", "carbon"):
            goal[of] = goal_of(cases, ask)[of]
        if ask.optimize == "time":
            unlikely |= of & (chance < LIKELY)
            goal[of & over] = 1e100 + cases.costs.cost_usd[of & over]  # beyond any number of days
    # where nothing meets the deadline the fastest counts, and what does not fit comes last
    goal = np.where(met, goal, np.where(cases.speed.fits, cases.costs.days, 1e300))
    smallest_last = np.where(met, cases.gpus, -cases.gpus)
    expected = cases.costs["expected_usd" if "expected_usd" in cases.costs else "cost_usd"]
    order = np.lexsort((smallest_last, expected, ~(chance >= LIKELY), goal, met & unlikely, met & over, ~met, line))
    _, first = np.unique(line[order], return_index=True)
    return order[first]
