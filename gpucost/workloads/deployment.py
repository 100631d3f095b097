"""The one deployment: what runs where, in which layout, how fast and in how much memory, made in one place.

A question states what it knows, the rest is filled in by one set of rules, and physics gives seconds and bytes. A
search over thousands of layouts keeps them as columns: `Speeds` of training and `Plans` of serving, a row for each.
`training_deployment` and `serving_deployment` make the deployment of a row.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration
from gpucost.market.supply import Key
from gpucost.physics.columns import Floats
from gpucost.physics.serving import steps
from gpucost.physics.serving.cases import ServedReplica, build
from gpucost.physics.training.layouts import REASONS, latest_year
from gpucost.physics.training.memory import usable_bytes
from gpucost.types import Architecture, Layout
from gpucost.units import GB, SECONDS_PER_DAY, SECONDS_PER_HOUR
from gpucost.words import OFFLOADS
from gpucost.workloads import service as serving
from gpucost.workloads.counts import Accelerators, Replicas
from gpucost.workloads.service import Plans, Service
from gpucost.workloads.speeds import Speeds, search_layouts
from gpucost.workloads.training import Workload, make_workload


class ModelDeployment(Struct, frozen=True, kw_only=True):
    """A model that runs: where, how spread, by what, how fast, in how much memory."""

    purpose: Literal["training", "serving"]
    architecture: Architecture
    key: Key  # the accelerator in its system
    method: str  # full | lora | qlora; of serving: the engine's way to serve
    precision: str
    software: str
    layout: dict[str, int | str]
    replica: Accelerators  # of one copy of the model
    replicas: Replicas
    batch: int  # sequences of a step; of serving: requests at once in a replica
    sequence_tokens: float
    fits: bool
    reason: str  # why it does not run
    needed_gb: float  # on the fullest accelerator
    usable_gb: float
    tokens_per_s: float  # of all accelerators: trained, or written in serving
    tokens_per_s_low: float
    tokens_per_s_high: float

    @property
    def accelerators(self) -> Accelerators:
        """All accelerators: those of every replica."""
        return self.replicas.of(self.replica)

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """The speed of one of all accelerators."""
        return self.tokens_per_s / int(self.accelerators)

    def days(self, tokens: float) -> tuple[float, float, float]:
        """Return the days that so many tokens take without a pause: at the fast end of the range, typical, slow."""
        rates = (self.tokens_per_s_high, self.tokens_per_s, self.tokens_per_s_low)
        fast, typical, slow = (tokens / rate / SECONDS_PER_DAY for rate in rates)
        return fast, typical, slow


# --- Training.


def trained(
    catalog: Catalog, architecture: Architecture, keys: Sequence[Key], gpus: Sequence[int], **stated: object
) -> tuple[Workload, Speeds]:
    """Return the workload that a question means and the speed of its fastest layout on each key and count.

    `stated` holds what was said, by the names of `make_workload`; what is not said is filled in there, once.
    """
    known = {name: value for name, value in stated.items() if value is not None}
    known.setdefault("latest_year", latest_year(catalog.as_of))
    workload = make_workload(architecture, **known)  # type: ignore[arg-type] # read by the question
    return workload, timed(catalog, workload, keys, gpus)


def timed(catalog: Catalog, workload: Workload, keys: Sequence[Key], gpus: Sequence[int]) -> Speeds:
    """Return the speed of a workload's fastest layout on each key and count."""
    return search_layouts(workload, keys, np.asarray(gpus, dtype=np.int64), training_calibration(catalog))


def offloaded(catalog: Catalog, workload: Workload, key: Key, gpus: int) -> str:
    """Return how much must lie in the host's memory for a run that does not fit without; nothing where none helps."""
    for name in OFFLOADS[OFFLOADS.index(workload.offload) + 1 :]:
        if timed(catalog, replace(workload, offload=name), [key], [gpus]).fits[0]:
            return name
    return ""


def training_deployment(workload: Workload, speeds: Speeds, row: int, key: Key, gpus: int) -> ModelDeployment:
    """Return one row of the speeds of a workload as a deployment; where nothing fits its figures are NaN."""
    layout = speeds.layout.layout(row) if speeds.fits[row] else Layout(gpus)
    group = layout.gpus // layout.data  # that holds one copy of the model
    each = (speeds.tokens_per_s_per_gpu, speeds.tokens_per_s_per_gpu_low, speeds.tokens_per_s_per_gpu_high)
    typical, low, high = (float(rate[row]) * gpus for rate in each)
    return ModelDeployment(
        purpose="training",
        architecture=workload.architecture,
        key=key,
        method=workload.method,
        precision=workload.precision_on(key.accelerator),
        software=workload.software,
        layout={name: getattr(layout, name) for name in layout.__struct_fields__ if name != "gpus"},
        replica=Accelerators(group),
        replicas=Replicas(layout.data),
        batch=layout.global_batch,
        sequence_tokens=float(workload.sequence_tokens),
        fits=bool(speeds.fits[row]),
        reason="" if speeds.fits[row] else REASONS[int(speeds.reason[row])],
        needed_gb=float(speeds.memory_gb[row]),
        usable_gb=float(usable_bytes(key.accelerator.memory_gib)) / GB,
        tokens_per_s=typical,
        tokens_per_s_low=low,
        tokens_per_s_high=high,
    )


def deployed(catalog: Catalog, workload: Workload, key: Key, gpus: int) -> ModelDeployment:
    """Return a workload's fastest deployment on so many accelerators of one kind."""
    return training_deployment(workload, timed(catalog, workload, [key], [gpus]), 0, key, gpus)


def busy_gpus(tokens: float, hours: float, tokens_per_s_per_gpu: Floats, goodput_fraction: float) -> Floats:
    """Return how many accelerators work all the time to do so many tokens in so many hours.

    Tokens ÷ (hours × 3,600 × tokens per second of one × goodput): 730 hours at 1,000 tokens/s are 2.628e9.

    >>> float(busy_gpus(2.628e9, 730.0, np.array(1000.0), 1.0))
    1.0
    """
    busy: Floats = tokens / (tokens_per_s_per_gpu * SECONDS_PER_HOUR * hours * goodput_fraction)
    return busy


# --- Serving.


def served(
    catalog: Catalog, architecture: Architecture, keys: Sequence[Key], service: Service, gpus: int | None = None
) -> Plans:
    """Return every layout of a replica on each key at its best batch, up to the most that one replica may have."""
    most = {index: serving.largest_replica(key) for index, key in enumerate(keys)}
    largest = {index: limit if gpus is None else min(limit, gpus) for index, limit in most.items()}
    calibration = serving_calibration(catalog)
    return serving.evaluate(architecture, keys, largest, service, calibration.values, calibration.ranges)


def served_weights_gb(catalog: Catalog, architecture: Architecture, form: str) -> float:
    """Return the GB of the weights of one copy in a format: scales, and embeddings and head in 16 bits, included."""
    chip = catalog.accelerators()[0]  # weights are the same on any
    replica = ServedReplica(architecture, chip, catalog.default_system(chip.id), format=form)
    return float(steps.weight_bytes(build([replica], serving_calibration(catalog).values)[0])[0]) / GB


def best_plan(plans: Plans, index: int, total: Accelerators | None) -> tuple[int | None, Replicas]:
    """Return the plan of a key that a question is answered by, and its replicas; None where the key has no layout."""
    mine = np.flatnonzero(plans.key == index)
    if not len(mine):
        return None, Replicas(0)
    chosen = mine[plans.serves[mine]]
    if not len(chosen):
        # None serves: the smallest replica where all lack memory, else the largest of those with the first reason.
        nearest = mine[np.lexsort((-plans.gpus[mine], plans.reason[mine]))]
        return int(nearest[-1] if (plans.reason[mine] == 1).all() else nearest[0]), Replicas(0)
    if total is None:  # the smallest replica that serves, of equals the fastest
        first = np.lexsort((-plans.output_tokens_per_s[chosen], plans.gpus[chosen]))[0]
        return int(chosen[first]), Replicas(1)
    # what most tokens come from on all accelerators together, of equals the smallest replica
    copies = np.floor(int(total) / plans.gpus[chosen])
    first = np.lexsort((plans.gpus[chosen], -plans.output_tokens_per_s[chosen] * copies))[0]
    return int(chosen[first]), total.replicas_of(Accelerators(int(plans.gpus[chosen[first]])))


class ServingSpeed(NamedTuple):
    """Output tokens per second of all replicas on so many accelerators: typical, with its 80 % range."""

    low: float
    typical: float
    high: float
    deployment: ServedReplica
    replicas: int


def serving_speed(
    catalog: Catalog,
    architecture: Architecture,
    key: Key,
    service: Service,
    gpus: int,
    sequences: float | None = None,
) -> ServingSpeed | None:
    """Return how fast so many accelerators serve a model, saturated or with so many sequences at once in all.

    None where they do not hold the model, or not so many sequences of it.
    """
    plans = served(catalog, architecture, [key], service, gpus)
    if not plans.serves.any():
        return None
    if sequences is None:
        plan, replicas = best_plan(plans, 0, Accelerators(gpus))
        assert plan is not None
        total = float(plans.output_tokens_per_s[plan]) * replicas.number
    else:
        # as many replicas as there are accelerators for, and sequences; these are shared evenly and read off the ladder
        counts = np.maximum(np.minimum(np.floor(gpus / plans.gpus), sequences), 1.0)
        each, ladder = sequences / counts, plans.ladder
        holds = plans.serves & (each <= np.maximum(ladder.capacity, 1.0)) & (each <= ladder.sequences.max(axis=-1))
        if not holds.any():
            return None
        rates = [
            np.interp(at, steps, speeds)
            for at, steps, speeds in zip(each, ladder.sequences, ladder.output_tokens_per_s, strict=True)
        ]
        totals = np.where(holds, np.array(rates) * counts, -np.inf)
        plan = int(np.argmax(totals))
        total, replicas = float(totals[plan]), Replicas(int(counts[plan]))
    wide = float(np.exp(plans.width[plan]))
    return ServingSpeed(total / wide, total, total * wide, plans.deployments[plan], replicas.number)


def serving_deployment(plans: Plans, plan: int, key: Key, service: Service, replicas: Replicas) -> ModelDeployment:
    """Return one plan of serving as a deployment of so many replicas."""
    placed = plans.deployments[plan]
    speed, wide = float(plans.output_tokens_per_s[plan]) * replicas.number, float(np.exp(plans.width[plan]))
    case = plans.case.take([plan])
    tight, gpus = bool(plans.tight[plan]), float(plans.gpus[plan])
    weights = float(steps.weight_bytes(case)[0]) * (1 - service.offload_fraction) / gpus
    context = np.array([service.prompt_tokens + service.output_tokens / 2])
    cache = float(steps.cache_bytes_per_sequence(case, context)[0]) * float(plans.sequences[plan]) / gpus
    share = steps.TIGHT_MEMORY if tight or case.rates.frugal[0] else steps.USABLE_MEMORY
    return ModelDeployment(
        purpose="serving",
        architecture=placed.architecture,
        key=key,
        method="serving",
        precision=placed.format,
        software=placed.engine,
        layout={"tensor": placed.tensor, "data": placed.data, "pipeline": placed.pipeline, "expert": placed.expert},
        replica=Accelerators(placed.gpus),
        replicas=replicas,
        batch=int(plans.sequences[plan]),
        sequence_tokens=service.prompt_tokens + service.output_tokens,
        fits=bool(plans.serves[plan]),
        reason=serving.REASONS[int(plans.reason[plan])],
        needed_gb=(weights + cache + float(steps.workspace_bytes(case, tight=tight)[0])) / GB,
        usable_gb=float(case.chip.memory_gb[0]) * share,
        tokens_per_s=speed,
        tokens_per_s_low=speed / wide,
        tokens_per_s_high=speed * wide,
    )
