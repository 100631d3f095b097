"""Claims about serving speed: the bandwidth roof of decoding and the compute roof of batches."""

from gpucost.claims.checks import IMPLAUSIBLE, IMPOSSIBLE, POSSIBLE, Check
from gpucost.claims.memory import WEIGHT_BYTES
from gpucost.claims.training import peak_tflops
from gpucost.training.workload import Sizes
from gpucost.types import Accelerator
from gpucost.units import GB

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
    active_gb = sizes.active_parameters * WEIGHT_BYTES[precision] / GB
    bandwidth_roof = batch * gpus * accelerator.hbm_gb_per_s / active_gb
    peak = peak_tflops(accelerator, precision)
    compute_roof = gpus * peak * _TERA / (2 * sizes.active_parameters) if peak else bandwidth_roof
    roof = min(bandwidth_roof, compute_roof)
    what = "bandwidth" if bandwidth_roof <= compute_roof else "compute"
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
