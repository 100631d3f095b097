"""Claims about memory: the size of weights, of training states, and whether a model fits."""

import numpy as np

from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.claims.checks import IMPLAUSIBLE, IMPOSSIBLE, POSSIBLE, Check
from gpucost.physics.columns import VALUE_BYTES
from gpucost.physics.training.memory_recipe import FROZEN_BYTES, OPTIMIZERS
from gpucost.types import Accelerator
from gpucost.units import GB, GIB
from gpucost.workloads.speeds import key_of, search_layouts
from gpucost.workloads.training import Sizes, Workload

# Mixed-precision AdamW: 16-bit weights and gradients, 32-bit master and moments (arXiv:1910.02054, section 3.1).
ADAM_BYTES = sum(OPTIMIZERS["adamw"][:3])
LEANEST_BYTES = sum(OPTIMIZERS["adamw-8bit-bf16"][:3])  # 16-bit weights and gradients, 8-bit moments, no master copy
_TOLERANCE = 0.10
_COUNTS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096)


def check_weights(claimed_gb: float, sizes: Sizes, precision: str) -> Check:
    """Judge a claimed size of weights: parameters × bytes.

    70.6e9 parameters are 70.6 GB in FP8 and 282 GB in FP32.
    """
    true = sizes.parameters * VALUE_BYTES[precision] / GB
    words = f"{sizes.parameters:,.0f} parameters × {VALUE_BYTES[precision]:g} bytes in {precision} are {true:,.1f} GB."
    same = [
        name for name, size in VALUE_BYTES.items() if abs(sizes.parameters * size / GB / claimed_gb - 1) < _TOLERANCE
    ]
    ok = abs(claimed_gb / true - 1) <= _TOLERANCE
    if not ok and same:
        words += f" {claimed_gb:g} GB is their size in {same[0]}."
    return Check("weights", POSSIBLE if ok else IMPOSSIBLE, claimed_gb, true, true, true * 1.05, "GB", words)


def state_bytes(sizes: Sizes, method: str) -> float:
    """Return the bytes of weights, gradients and optimizer states of mixed-precision AdamW."""
    if method == "full":
        return sizes.parameters * ADAM_BYTES
    return sizes.parameters * FROZEN_BYTES[method] + sizes.trained_parameters * ADAM_BYTES


def check_training_memory(claimed_gb: float, sizes: Sizes, method: str) -> Check:
    """Judge a claimed total of training memory: states alone are 16 bytes per trained parameter, before activations."""
    true = state_bytes(sizes, method) / GB
    leanest = sizes.parameters * LEANEST_BYTES / GB if method == "full" else true
    words = (
        f"Weights, gradients and AdamW states take {true:,.0f} GB in mixed precision (16 bytes per trained parameter),"
        " before activations."
    )
    if claimed_gb < leanest:
        verdict = IMPOSSIBLE
    elif claimed_gb < true * (1 - _TOLERANCE):
        verdict = IMPLAUSIBLE
        words += f" Only pure 16-bit training with 8-bit states comes down to {leanest:,.0f} GB."
    else:
        verdict = POSSIBLE
    return Check("training memory", verdict, claimed_gb, true, true * 1.2, true * 2.0, "GB", words)


def check_fits_training(
    catalog: Catalog, workload: Workload, sizes: Sizes, accelerator: Accelerator, gpus: int
) -> Check:
    """Judge whether training fits on a number of accelerators, and find the smallest number that it does fit on."""
    key = key_of(catalog, accelerator.id)
    counts = np.array(sorted({*_COUNTS, gpus}), np.int64)
    speeds = search_layouts(workload, [key] * len(counts), counts, training_calibration(catalog))
    states = state_bytes(sizes, workload.method) / GB
    have = gpus * accelerator.memory_gib * GIB / GB
    fitting = counts[speeds.fits]
    fewest = float(fitting[0]) if len(fitting) else None
    words = (
        f"{workload.method} training of {workload.architecture.name} needs {states:,.0f} GB of states and {gpus} ×"
        f" {accelerator.id} hold {have:,.0f} GB."
    )
    if bool(speeds.fits[counts == gpus][0]):
        return Check("fits", POSSIBLE, float(gpus), fewest, fewest, None, "GPUs", f"{words} It fits.")
    if states <= have:
        words += " The states fit, activations beside them do not in any layout."
    if workload.offload == "none":
        words += " Without offloading states to the host it does not fit."
    if fewest is not None:
        words += f" The smallest of the usual counts that it fits on is {fewest:g}."
    return Check("fits", IMPOSSIBLE, float(gpus), fewest, fewest, None, "GPUs", words)


def check_fits_serving(sizes: Sizes, precision: str, accelerator: Accelerator, gpus: int) -> Check:
    """Judge whether the weights fit for serving; the KV cache needs room beside them."""
    need = sizes.parameters * VALUE_BYTES[precision] / GB
    have = gpus * accelerator.memory_gib * GIB / GB
    fewest = float(np.ceil(need / (accelerator.memory_gib * GIB / GB * 0.9)))
    words = f"Weights take {need:,.1f} GB in {precision} and {gpus} × {accelerator.id} hold {have:,.0f} GB."
    verdict = POSSIBLE if need < have * 0.9 else IMPLAUSIBLE if need < have else IMPOSSIBLE
    if verdict != POSSIBLE:
        words += f" With room for the KV cache it takes {fewest:g}."
    return Check("fits", verdict, float(gpus), fewest, fewest, None, "GPUs", words)
