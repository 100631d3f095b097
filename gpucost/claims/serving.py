"""Claims about serving speed: the bandwidth roof of decoding and the compute roof of batches."""

from gpucost.claims.checks import IMPLAUSIBLE, IMPOSSIBLE, POSSIBLE, Check
from gpucost.physics.columns import VALUE_BYTES
from gpucost.physics.hardware import peak
from gpucost.types import Accelerator
from gpucost.units import GB
from gpucost.workloads.own_speed import decode_roof
from gpucost.workloads.training import Sizes

_BEST_SHARE = 0.85  # of the roof, reached by the best engines
_USUAL_SHARE = 0.6


def check_decode(
    claimed_tokens_per_s: float, sizes: Sizes, precision: str, accelerator: Accelerator, gpus: int, batch: int
) -> Check:
    """Judge output tokens per second against the roof: batch × accelerators × bandwidth ÷ bytes of active weights.

    Every step reads the active weights once; more than the compute peak ÷ 2 FLOP per parameter is out of reach too.
    70.6 GB of FP8 weights on 8 cards of 960 GB/s: at most 8 × 960 ÷ 70.6 = 109 tokens/s for one sequence.
    """
    wide = VALUE_BYTES[precision]
    active_gb, dense = sizes.active_parameters * wide / GB, peak(accelerator, precision).tflops
    roof, what = decode_roof(sizes.active_parameters, wide, dense, accelerator.hbm_gb_per_s, gpus, batch)
    words = (
        f"{gpus} × {accelerator.id} can decode at most {roof:,.0f} tokens/s at batch {batch} ({what} roof,"
        f" {active_gb:,.1f} GB of weights per step)."
    )
    verdict = IMPLAUSIBLE if claimed_tokens_per_s > roof * _BEST_SHARE else POSSIBLE
    if claimed_tokens_per_s > roof:
        verdict = IMPOSSIBLE
    return Check(
        "decode speed", verdict, claimed_tokens_per_s, 0.0, roof * _USUAL_SHARE, roof, "tokens per second", words
    )
