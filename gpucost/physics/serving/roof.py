"""The most that decoding allows on nominal peaks, whatever the software: the bandwidth roof and the compute roof."""

from typing import NamedTuple

from gpucost.physics import transformer
from gpucost.physics.columns import VALUE_BYTES
from gpucost.physics.hardware import peak
from gpucost.physics.serving.cases import FORMATS, matrix_peak
from gpucost.physics.serving.efficiency import ENGINES
from gpucost.types import Accelerator, Architecture
from gpucost.units import GB, TERA

_FASTEST = {group: engine for engine, group in ENGINES.items()}.values()  # an engine of each group


class DecodeRoof(NamedTuple):
    """What bounds decoding on so many of one accelerator, for any number of sequences at once."""

    weights_gb: float  # active ones, which every step reads once
    bandwidth_tokens_per_s: float  # of one sequence
    compute_tokens_per_s: float  # of all sequences together
    flop_per_token: float

    def at(self, sequences: float) -> tuple[float, str]:
        """Return the most output tokens per second of so many sequences, and what binds them."""
        reading = sequences * self.bandwidth_tokens_per_s
        if self.compute_tokens_per_s < reading:
            return self.compute_tokens_per_s, "compute"
        return reading, "bandwidth"


def decode_roof(
    architecture: Architecture, accelerator: Accelerator, precision: str, gpus: float, engine: str | None = None
) -> DecodeRoof:
    """Return the roof of decoding: every step reads the active weights once, each token takes 2 FLOP per weight.

    Bandwidth: accelerators × bandwidth ÷ (active parameters × bytes); compute: accelerators × dense peak ÷ (2 × active
    parameters), at the peak at which the format multiplies on the chip; without an engine the fastest of any. Llama 2
    70B (69.0e9) in FP8 on 8 cards of 960 GB/s: 111 tokens/s for one sequence.
    """
    active = float(transformer.active_parameters(transformer.stack([architecture]))[0])
    if precision in FORMATS:
        form = FORMATS[precision]
        wide = form.weight_bytes
        # local engines accumulate in 16 bits on some cards, at twice the peak of the others
        dense = max(matrix_peak(accelerator, name, form)[0] for name in ([engine] if engine else _FASTEST))
    else:  # what engines do not serve: fp32, tf32, and 4 bits without a format
        wide, dense = VALUE_BYTES[precision], peak(accelerator, precision).tflops
    weights_gb = active * wide / GB
    reading, flop = gpus * accelerator.hbm_gb_per_s / weights_gb, 2 * active
    return DecodeRoof(weights_gb, reading, gpus * dense * TERA / flop, flop)
