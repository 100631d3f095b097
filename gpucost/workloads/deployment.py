"""The one deployment: what runs where, in which layout, how fast and in how much memory, made in one place.

Serving's fit, the audit of it and the speed of an owned cluster ask for it here: a question states what it knows, the
rest is filled in by one set of rules, and physics gives seconds and bytes. A deployment holds what was assumed for it,
too.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration
from gpucost.market.supply import Key
from gpucost.physics.serving import steps
from gpucost.physics.training.layouts import latest_year
from gpucost.types import Architecture
from gpucost.units import GB
from gpucost.words import OFFLOADS
from gpucost.workloads import service as serving
from gpucost.workloads.counts import Accelerators, Replicas
from gpucost.workloads.service import Plans, Service
from gpucost.workloads.speeds import Speeds, search_layouts
from gpucost.workloads.training import Workload, make_workload


class Taken(NamedTuple):
    """One thing that a deployment takes, and whether it was said or assumed."""

    name: str
    value: float | str | None
    stated: bool


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
    taken: tuple[Taken, ...]

    @property
    def accelerators(self) -> Accelerators:
        """All accelerators: those of every replica."""
        return self.replicas.of(self.replica)

    @property
    def assumed(self) -> tuple[Taken, ...]:
        """What nobody stated."""
        return tuple(one for one in self.taken if not one.stated)


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


# --- Serving.


def served(
    catalog: Catalog, architecture: Architecture, keys: Sequence[Key], service: Service, gpus: int | None = None
) -> Plans:
    """Return every layout of a replica on each key at its best batch, up to the most that one replica may have."""
    most = {index: serving.largest_replica(key) for index, key in enumerate(keys)}
    largest = {index: limit if gpus is None else min(limit, gpus) for index, limit in most.items()}
    calibration = serving_calibration(catalog)
    return serving.evaluate(architecture, keys, largest, service, calibration.values, calibration.ranges)


def best_plan(plans: Plans, index: int, total: Accelerators | None) -> tuple[int | None, Replicas]:
    """Return the plan of a key that a question is answered by, and its replicas; None where the key has no layout."""
    mine = np.flatnonzero(plans.key == index)
    if not len(mine):
        return None, Replicas(0)
    chosen = mine[plans.serves[mine]]
    if not len(chosen):
        nearest = mine[np.lexsort((-plans.gpus[mine], plans.reason[mine]))]
        return int(nearest[-1] if (plans.reason[mine] == 1).all() else nearest[0]), Replicas(0)
    if total is None:
        first = np.lexsort((-plans.output_tokens_per_s[chosen], plans.gpus[chosen]))[0]
        return int(chosen[first]), Replicas(1)
    held = np.floor(int(total) / plans.gpus[chosen])
    first = np.lexsort((plans.gpus[chosen], -plans.output_tokens_per_s[chosen] * held))[0]
    return int(chosen[first]), total.replicas_of(Accelerators(int(plans.gpus[chosen[first]])))


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
    taken: dict[str, tuple[float | str | None, bool]] = {
        "precision": (placed.format, service.precision != "auto"),
        "cache": (placed.cache, service.cache != "auto"),
        "server": (placed.server, service.server is not None),
        "engine": (placed.engine, True),
        "system": (key.system.id, False),
        "memory_share_fraction": (share, False),
    }
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
        taken=tuple(Taken(name, value, stated) for name, (value, stated) in taken.items()),
    )
