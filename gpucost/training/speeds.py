"""Speed of cases: physics once per distinct workload, physical key and count, spread over all cases that share them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.market.supply import Key
from gpucost.physics.columns import LayoutColumns
from gpucost.physics.training.calibration import USUAL_FAMILIES, Calibration, Traits, interval
from gpucost.physics.training.layouts import BestLayouts, best_layouts
from gpucost.physics.training.steps import PARTS
from gpucost.training.workload import TYPICAL, Workload, adapted_share
from gpucost.types import Accelerator
from gpucost.units import GB

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

MEASURED_FAMILIES = ("ampere", "hopper")
SOME_FAMILIES = ("blackwell", "ada", "volta", "cdna3", "gaudi", "tpu")
_HOST_BOUND_SHARE = 0.1
_COUNT_BITS = 1 << 21  # counts stay below this, so that a key and a count share one integer


class Speeds(NamedTuple):
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
        return Speeds(*(_taken(column, index) for column in self))

    @classmethod
    def concatenate(cls, parts: Sequence["Speeds"]) -> "Speeds":
        """Join cases end to end."""
        columns = dict(zip(cls._fields, zip(*parts, strict=True), strict=True))
        layout = LayoutColumns.concatenate(columns.pop("layout"))
        return cls(layout=layout, **{name: np.concatenate(values) for name, values in columns.items()})


def _taken(column: Any, index: Any) -> Any:
    return column.take(index) if isinstance(column, LayoutColumns) else column[index]


def speeds_of(
    workloads: Sequence[Workload],
    keys: Sequence[Key],
    calibration: Calibration,
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
            workload, [keys[index] for index in pair[own == number] % len(keys)], count[own == number], calibration
        )
        for workload, number in numbers.items()
    ]
    return Speeds.concatenate(parts).take(inverse)  # `distinct` is sorted by workload first, as the parts are


def search_layouts(workload: Workload, keys: Sequence[Key], gpus: Indices, calibration: Calibration) -> Speeds:
    """Return the best layout's speed per distinct case of one workload."""
    accelerators = [key.accelerator for key in keys]
    best = best_layouts(
        workload.architecture,
        accelerators,
        [key.system for key in keys],
        gpus,
        values=calibration.values,
        sequence_tokens=float(workload.sequence_tokens),
        global_batch=workload.global_batch,
        precision=workload.precision,
        method=workload.method,
        lora_rank=workload.lora_rank,
        adapter_share=adapted_share(workload),
        software=workload.software,
    )
    step = best.step
    peak = np.array([peak_of(accelerator, workload.precision) for accelerator in accelerators], np.float64)
    low, high = interval(step.tokens_per_s_per_gpu, traits_of(workload, accelerators, best), calibration.ranges)
    return Speeds(
        fits=best.fits,
        reason=best.reason,
        tokens_per_s_per_gpu=step.tokens_per_s_per_gpu,
        tokens_per_s_per_gpu_low=low,
        tokens_per_s_per_gpu_high=high,
        mfu_fraction=step.mfu_fraction,
        peak_tflops=peak,
        memory_gb=best.memory_bytes / GB,
        confidence=np.array([confidence_of(accelerator) for accelerator in accelerators], dtype=object),
        parts_s=np.stack([getattr(step, name) for name in PARTS], axis=1),
        layout=best.layout,
    )


def confidence_of(accelerator: Accelerator) -> str:
    """Return how far the physics of an accelerator's family is held by measurements."""
    return (
        "high"
        if accelerator.family in MEASURED_FAMILIES
        else "medium"
        if accelerator.family in SOME_FAMILIES
        else "low"
    )


def traits_of(workload: Workload, accelerators: Sequence[Accelerator], best: BestLayouts) -> Traits:
    """Return what makes the speeds less certain: nobody stated the layout, and the figure covers a whole run."""
    count, step = len(accelerators), best.step

    def all_of(value: bool) -> Flags:
        return np.full(count, value)

    return Traits(
        unstated_layout=all_of(True),
        unknown_software=all_of(workload.software == TYPICAL),
        mixture_of_experts=all_of(workload.architecture.experts > 0),
        fine_tuning=all_of(workload.method != "full"),
        unusual_family=np.array([accelerator.family not in USUAL_FAMILIES for accelerator in accelerators], bool),
        whole_run=all_of(True),
        host_bound=(step.host_s + step.overhead_s) / step.total_s > _HOST_BOUND_SHARE,
    )


def peak_of(accelerator: Accelerator, precision: str) -> float:
    """Return the dense peak at a precision as the physics takes it; bf16 and fp16 stand in for each other."""
    other = {"bf16": "fp16", "fp16": "bf16"}.get(precision, precision)
    return float(
        getattr(accelerator, f"{precision}_tflops", None) or getattr(accelerator, f"{other}_tflops", None) or np.nan
    )
