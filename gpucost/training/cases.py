"""Cases: requests on offers on so many accelerators, evaluated: how fast, at what cost."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.formula.arrays import Columns
from gpucost.frozen import Frozen
from gpucost.market import assumptions as assume
from gpucost.market.supply import Supply
from gpucost.market.terms import Terms
from gpucost.money.training_bill import INPUT_NAMES, price_runs
from gpucost.physics.calibration import Calibration
from gpucost.training.request import TrainingRequest
from gpucost.units import GB
from gpucost.workloads.speeds import Speeds, speeds_of
from gpucost.workloads.training import Sizes, Workload

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Problem(Frozen):
    """Requests over one supply, with everything that cases are made from."""

    requests: tuple[TrainingRequest, ...]
    workloads: tuple[Workload, ...]  # one per request
    sizes: tuple[Sizes, ...]
    supply: Supply
    terms: Terms
    failures_per_gpu_year: tuple[float, float, float]
    masks: tuple[Flags, ...]  # offers that each request looks at
    calibration: Calibration

    def asked(self, of: Callable[[TrainingRequest], Any], request: Indices) -> NDArray[Any]:
        """Return what each of some requests, named by their numbers, asks for."""
        return np.array([of(ask) for ask in self.requests])[request]


class Cases(Frozen):
    """Evaluated cases: which request, which offer, how many accelerators, how fast, at what cost."""

    request: Indices
    offer: Indices
    gpus: Indices
    speed: Speeds
    factors: Columns  # what the bill follows from
    costs: Columns  # what it comes to

    def __len__(self) -> int:
        return len(self.request)

    def take(self, rows: Indices) -> "Cases":
        """Return the cases that `rows` names."""
        parts = (self.request[rows], self.offer[rows], self.gpus[rows], self.speed.take(rows))
        return Cases(*parts, self.factors.take(rows), self.costs.take(rows))


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
    node_gpus = np.array([key.system.gpus for key in problem.supply.keys], np.float64)
    nodes = np.maximum(1.0, np.ceil(gpus / node_gpus[problem.supply.key[offer]]))

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
