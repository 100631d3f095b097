"""Claims about serving speed: the bandwidth roof of decoding and the compute roof of batches."""

import numpy as np

from gpucost.claims.checks import IMPLAUSIBLE, IMPOSSIBLE, POSSIBLE, Check
from gpucost.physics.columns import VALUE_BYTES
from gpucost.physics.hardware import peak
from gpucost.types import Accelerator
from gpucost.units import GB
from gpucost.workloads.training import Sizes

_TERA = 1e12
_BEST_SHARE = 0.85  # of the roof, reached by the best engines
_USUAL_SHARE = 0.6


def check_decode(
    claimed_tokens_per_s: float, sizes: Sizes, precision: str, accelerator: Accelerator, gpus: int, batch: int
) -> Check:
    """Judge output tokens per second against the roof: batch × accelerators × bandwidth ÷ bytes of active weights.

    Every step reads the active weights once; more than the compute peak ÷ 2 FLOP per parameter is out of reach too.
    70.6 GB of FP8 weights on 8 cards of 960 GB/s: at most 8 × 960 ÷ 70.6 = 109 tokens/s for one sequence.
    """
    active_gb = sizes.active_parameters * VALUE_BYTES[precision] / GB
    bandwidth_roof = batch * gpus * accelerator.hbm_gb_per_s / active_gb
    compute_roof = gpus * peak(accelerator, precision).tflops * _TERA / (2 * sizes.active_parameters)
    roof = min(bandwidth_roof, np.nan_to_num(compute_roof, nan=bandwidth_roof))
    what = "compute" if roof < bandwidth_roof else "bandwidth"
    words = (
        f"{gpus} × {accelerator.id} can decode at most {roof:,.0f} tokens/s at batch {batch} ({what} roof,"
        f" {active_gb:,.1f} GB of weights per step)."
    )
    verdict = (
        IMPOSSIBLE
        if claimed_tokens_per_s > roof
        else IMPLAUSIBLE
        if claimed_tokens_per_s > roof * _BEST_SHARE
        else POSSIBLE
    )
    return Check(
        "decode speed", verdict, claimed_tokens_per_s, 0.0, roof * _USUAL_SHARE, roof, "tokens per second", words
    )
