"""Speed of cases: physics once per distinct workload, physical key and count, spread over all cases that share them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.engine.supply import Key
from gpucost.engine.workload import Workload
from gpucost.physics.columns import LayoutColumns
from gpucost.physics.layouts import best_layouts
from gpucost.physics.training import PARTS
from gpucost.types import Accelerator
from gpucost.units import GB

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

_COUNT_BITS = 1 << 21  # counts stay below this, so that a key and a count share one integer


@dataclass(frozen=True, slots=True)
class Speeds:
    """Speed and layout of cases; `low` and `high` bound an 80 % range. NaN where nothing fits."""

    fits: Flags
    reason: Indices  # code into REASONS: why there is no layout
    tokens_per_s_per_gpu: Floats
    tokens_per_s_per_gpu_low: Floats
    tokens_per_s_per_gpu_high: Floats
    mfu_fraction: Floats
    peak_tflops: Floats
    memory_gb: Floats
    confidence: NDArray[np.object_]  # of the physics: high | medium | low
    parts_s: Floats  # cases × PARTS: seconds of one step
    layout: LayoutColumns

    def take(self, index: Any) -> "Speeds":
        """Return the cases at `index`."""
        return Speeds(*(_taken(getattr(self, field.name), index) for field in fields(self)))

    @classmethod
    def concatenate(cls, parts: Sequence["Speeds"]) -> "Speeds":
        """Join cases end to end."""
        columns = {field.name: [getattr(part, field.name) for part in parts] for field in fields(cls)}
        layout = LayoutColumns.concatenate(columns.pop("layout"))
        return cls(layout=layout, **{name: np.concatenate(values) for name, values in columns.items()})


def _taken(column: Any, index: Any) -> Any:
    return column.take(index) if isinstance(column, LayoutColumns) else column[index]


def speeds_of(
    workloads: Sequence[Workload],
    keys: Sequence[Key],
    values: Mapping[str, float],
    request: Indices,
    key: Indices,
    gpus: Indices,
) -> Speeds:
    """Return the speed of every case; equal (workload, key, count) are computed once."""
    numbers: dict[Workload, int] = {}
    of_request = np.array([numbers.setdefault(workload, len(numbers)) for workload in workloads], np.int64)
    code = (of_request[request] * len(keys) + key) * _COUNT_BITS + gpus
    distinct, inverse = np.unique(code, return_inverse=True)
    pair, count = distinct // _COUNT_BITS, distinct % _COUNT_BITS
    own = pair // max(len(keys), 1)
    parts = [
        search_layouts(
            workload, [keys[index] for index in pair[own == number] % len(keys)], count[own == number], values
        )
        for workload, number in numbers.items()
    ]
    return Speeds.concatenate(parts).take(inverse)  # `distinct` is sorted by workload first, as the parts are


def search_layouts(workload: Workload, keys: Sequence[Key], gpus: Indices, values: Mapping[str, float]) -> Speeds:
    """Return the best layout's speed per distinct case of one workload."""
    accelerators = [key.accelerator for key in keys]
    best = best_layouts(
        workload.architecture,
        accelerators,
        [key.system for key in keys],
        gpus,
        values=values,
        sequence_tokens=float(workload.sequence_tokens),
        global_batch=workload.global_batch,
        precision=workload.precision,
        method=workload.method,
        lora_rank=workload.lora_rank,
    )
    step = best.step
    peak = np.array(
        [getattr(accelerator, f"{workload.precision}_tflops", None) or np.nan for accelerator in accelerators]
    )
    low, high = speed_range(accelerators)
    return Speeds(
        fits=best.fits,
        reason=best.reason,
        tokens_per_s_per_gpu=step.tokens_per_s_per_gpu,
        tokens_per_s_per_gpu_low=step.tokens_per_s_per_gpu * low,
        tokens_per_s_per_gpu_high=step.tokens_per_s_per_gpu * high,
        mfu_fraction=step.mfu_fraction,
        peak_tflops=peak,
        memory_gb=best.memory_bytes / GB,
        confidence=np.array([confidence_of(accelerator) for accelerator in accelerators], dtype=object),
        parts_s=np.stack([getattr(step, name) for name in PARTS], axis=1),
        layout=best.layout,
    )


# How well the physics is held by measurements, by family; the others rest on priors.
_CONFIDENCE = {
    "ampere": "high",
    "hopper": "high",
    "blackwell": "medium",
    "ada": "medium",
    "volta": "medium",
    "cdna3": "medium",
    "gaudi": "medium",
}
_SPREAD = {"high": 1.3, "medium": 1.45, "low": 1.8}


def confidence_of(accelerator: Accelerator) -> str:
    """Return how far the physics of an accelerator's family is held by measurements."""
    return _CONFIDENCE.get(accelerator.family, "low")


def speed_range(accelerators: Sequence[Accelerator]) -> tuple[Floats, Floats]:
    """Return low and high of an 80 % range, as ratios to the typical speed."""
    spread = np.array([_SPREAD[confidence_of(accelerator)] for accelerator in accelerators])
    return 1 / spread, spread
