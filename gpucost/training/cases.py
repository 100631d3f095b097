"""Cases: which clusters are tried on which offers, what they cost, and which one each offer is judged by.

Requests × offers × accelerator counts are expanded into arrays; physics runs once per distinct (workload, physical
key, count); prices follow for all cases at once. A single estimate is a batch of one request.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpucost.formula.arrays import Columns
from gpucost.market import assumptions as assume
from gpucost.market.supply import Supply
from gpucost.market.terms import Terms
from gpucost.money.training_bill import INPUT_NAMES, price_runs
from gpucost.physics.calibration import Calibration
from gpucost.physics.hardware import peak, peaks
from gpucost.training.request import TrainingRequest
from gpucost.types import Accelerator
from gpucost.units import GB, SECONDS_PER_DAY
from gpucost.workloads.speeds import Speeds, speeds_of
from gpucost.workloads.training import Sizes, Workload

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

_FASTEST_MFU = 0.85  # no cluster is tried that could not meet the deadline even at this share of its peak
_COUNTS_PER_ROUND = 3
TERA = 1e12
_FREE_DOUBLINGS = 6  # without a deadline: sizes tried beyond the smallest


@dataclass(frozen=True, slots=True)
class Problem:
    """Requests over one supply, with everything that cases are made from."""

    requests: tuple[TrainingRequest, ...]
    workloads: tuple[Workload, ...]  # one per request
    sizes: tuple[Sizes, ...]
    supply: Supply
    terms: Terms
    failures_per_gpu_year: tuple[float, float, float]
    masks: tuple[Flags, ...]  # offers that each request looks at
    calibration: Calibration


@dataclass(frozen=True, slots=True)
class Cases:
    """Evaluated cases: which request, which offer, how many accelerators, how fast, at what cost."""

    request: Indices
    offer: Indices
    gpus: Indices
    speed: Speeds
    factors: Columns  # what the bill follows from
    costs: Columns  # what it comes to

    def __len__(self) -> int:
        return len(self.request)


def evaluate(problem: Problem, request: Indices, offer: Indices, gpus: Indices) -> Cases:
    """Evaluate cases: physics on the distinct keys, then prices on all."""
    speed = speeds_of(
        problem.workloads, problem.supply.keys, problem.calibration, request, problem.supply.key[offer], gpus
    )
    factors = make_factors(problem, request, offer, gpus, speed)
    return Cases(request, offer, gpus, speed, factors, price_runs(factors))


def make_factors(problem: Problem, request: Indices, offer: Indices, gpus: Indices, speed: Speeds) -> Columns:
    """Gather what the bill of each case follows from."""
    terms, sizes, requests = problem.terms, problem.sizes, problem.requests
    count = len(request)
    nodes = np.maximum(
        1.0,
        np.ceil(
            gpus / np.array([key.system.gpus for key in problem.supply.keys], np.float64)[problem.supply.key[offer]]
        ),
    )

    def of_request(values: Sequence[float]) -> Floats:
        return np.array(values, np.float64)[request]

    failures = problem.failures_per_gpu_year
    dataset = [size.dataset_bytes_per_token * ask.tokens / GB for size, ask in zip(sizes, requests, strict=True)]
    own = {name: getattr(terms, name)[offer] for name in INPUT_NAMES if name in Terms._fields}
    return Columns(
        **own,
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
        egress_gb=of_request([size.weights_gb for size in sizes]),
    )


def search(problem: Problem) -> tuple[Cases, Indices]:
    """Evaluate what is needed and return all cases with, per request and offer looked at, the one it is judged by.

    The second array names one case per (request, offer): the smallest cluster that meets the deadline, or, where
    there is none, the best by the goal; where nothing meets it, the largest cluster tried, which tells why.
    """
    request = np.concatenate([np.full(int(mask.sum()), number) for number, mask in enumerate(problem.masks)])
    offer = np.concatenate([np.flatnonzero(mask) for mask in problem.masks])
    request, offer = request.astype(np.int64), offer.astype(np.int64)
    start, stop = _doublings(problem, request, offer)
    parts: list[Cases] = []
    lines: list[Indices] = []
    open_line = np.arange(len(request))
    while len(open_line):
        line, gpus = _next_counts(problem, request, offer, open_line, start, stop)
        cases = evaluate(problem, request[line], offer[line], gpus)
        parts.append(cases)
        lines.append(line)
        done = np.zeros(len(request), bool)
        done[line[_meets(problem, cases) & ~_wants_all(problem, cases.request)]] = True
        start = start + _COUNTS_PER_ROUND
        open_line = open_line[~done[open_line] & (start[open_line] <= stop[open_line])]
    cases = concatenate(parts)
    return cases, _judged(problem, cases, np.concatenate(lines) if lines else np.zeros(0, np.int64), len(request))


def _doublings(problem: Problem, request: Indices, offer: Indices) -> tuple[Indices, Indices]:
    """Return the first and last exponent j of the counts unit × 2^j that are worth trying."""
    supply = problem.supply
    unit, largest = supply.unit_gpus[offer], supply.largest_gpus[offer]
    pinned = np.array([ask.gpus or 0 for ask in problem.requests])[request]
    needed = np.maximum(_fewest_gpus(problem, request, offer), supply.minimum_gpus[offer])
    start = np.ceil(np.log2(np.maximum(needed, unit) / unit) - 1e-9).astype(np.int64)
    stop = np.floor(np.log2(np.maximum(largest, unit) / unit) + 1e-9).astype(np.int64)
    free = np.array([ask.deadline_days is None for ask in problem.requests])[request]
    stop = np.where(free, np.minimum(stop, start + _FREE_DOUBLINGS), stop)
    start = np.minimum(start, stop)  # too small an offer is tried at its largest, to say how long it takes
    return np.where(pinned > 0, 0, start), np.where(pinned > 0, 0, stop)


def _fewest_gpus(problem: Problem, request: Indices, offer: Indices) -> Floats:
    """Return the accelerators without which even a run near the dense peak misses the deadline."""
    peaks = np.array(
        [[_peak_flop_per_s(key.accelerator, run) for key in problem.supply.keys] for run in problem.workloads]
    )
    rows = zip(problem.sizes, problem.requests, strict=True)
    work = np.array([size.model_flop_per_token * ask.trained_tokens for size, ask in rows], np.float64)
    full = np.array([1.0 if ask.method == "full" else 0.6 for ask in problem.requests])  # frozen weights need 4N of 6N
    seconds = np.array([(ask.deadline_days or np.inf) * SECONDS_PER_DAY for ask in problem.requests])
    fewest: Floats = (work * full / seconds)[request] / (peaks[request, problem.supply.key[offer]] * _FASTEST_MFU)
    return fewest


def _peak_flop_per_s(accelerator: Accelerator, workload: Workload) -> float:
    """Return the dense peak of a workload, else the highest of the chip, so that no cluster is skipped wrongly."""
    own = peak(accelerator, workload.precision_on(accelerator)).tflops
    return (max(peaks(accelerator), key=np.nan_to_num) if np.isnan(own) else own) * TERA


def _next_counts(
    problem: Problem, request: Indices, offer: Indices, open_line: Indices, start: Indices, stop: Indices
) -> tuple[Indices, Indices]:
    """Expand open lines into their next counts; a pinned count is the only one."""
    exponent = start[open_line][:, None] + np.arange(_COUNTS_PER_ROUND)[None, :]
    keep = exponent <= stop[open_line][:, None]
    line = np.broadcast_to(open_line[:, None], keep.shape)[keep]
    pinned = np.array([ask.gpus or 0 for ask in problem.requests], np.int64)[request[line]]
    doubled = problem.supply.unit_gpus[offer[line]] * 2 ** exponent[keep]
    return line, np.where(pinned > 0, pinned, doubled)


def _meets(problem: Problem, cases: Cases) -> Flags:
    limit = np.array([np.inf if ask.deadline_days is None else ask.deadline_days for ask in problem.requests])[
        cases.request
    ]
    met: Flags = cases.speed.fits & (cases.costs.days <= limit) & np.isfinite(cases.costs.cost_usd)
    met &= ~(cases.costs.paid_hours > problem.terms.longest_hours[cases.offer])
    return met


def _wants_all(problem: Problem, request: Indices) -> Flags:
    """Tell which requests look at every size: those without a deadline, and those that trade time for money."""
    return np.array([ask.deadline_days is None or ask.optimize in ("time", "pareto") for ask in problem.requests])[
        request
    ]


def _judged(problem: Problem, cases: Cases, line: Indices, count: int) -> Indices:
    """Pick one case per line: met before missed, then by the goal, then fewer accelerators."""
    if not count:
        return np.zeros(0, np.int64)
    met = _meets(problem, cases)
    budget = np.array([np.inf if ask.max_cost_usd is None else ask.max_cost_usd for ask in problem.requests])[
        cases.request
    ]
    goal = np.select(
        [
            ~met,
            _goal_is(problem, cases, "time"),
            _goal_is(problem, cases, "carbon"),
            _wants_all(problem, cases.request),
        ],
        [
            np.where(cases.speed.fits, cases.costs.days, 1e300),
            np.where(cases.costs.cost_usd <= budget, cases.costs.days, 1e100 + cases.costs.cost_usd),
            np.nan_to_num(cases.costs.kgco2e, nan=1e200),
            cases.costs.cost_usd,
        ],
        default=0.0,
    )
    smallest_last = np.where(met, cases.gpus, -cases.gpus)
    order = np.lexsort((smallest_last, goal, ~met, line))
    _, first = np.unique(line[order], return_index=True)
    return order[first]


def _goal_is(problem: Problem, cases: Cases, goal: str) -> Flags:
    return np.array([ask.optimize == goal for ask in problem.requests])[cases.request]


def concatenate(parts: Sequence[Cases]) -> Cases:
    """Join evaluated cases."""
    return Cases(
        request=np.concatenate([part.request for part in parts]),
        offer=np.concatenate([part.offer for part in parts]),
        gpus=np.concatenate([part.gpus for part in parts]),
        speed=Speeds.concatenate([part.speed for part in parts]),
        factors=Columns.concatenate([part.factors for part in parts]),
        costs=Columns.concatenate([part.costs for part in parts]),
    )
