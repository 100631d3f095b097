"""A speed of one's own in place of the predicted one: read, held against the peak, and laid over what physics finds."""

from collections.abc import Iterable, Sequence
from math import exp, isnan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.arguments import flag_of
from gpucost.errors import UsageError
from gpucost.frozen import Frozen
from gpucost.physics.hardware import half_precision, peak
from gpucost.types import Accelerator
from gpucost.units import GB, TERA

Floats = NDArray[np.float64]

# How far the same run at another size lies from its measured speed, as half the logarithmic width of an 80 % range: of
# pairs of published runs that differ in accelerators and batch alone, each source one voice (docs/accuracy.md).
WIDTH = 0.065
FROZEN_SHARE = 2 / 3  # of a step's products are needed where only adapters are trained
SLOWEST = 1e-9  # share of the peak below which a speed is a slip
BEYOND_PEAK = "More than the peak is impossible."


class StepWork(NamedTuple):
    """What turns one form of a speed into another."""

    precision: str | None  # None: the 16-bit format that each chip trains in
    step_tokens: float
    flop_per_token: float  # model FLOP: those of training all weights, whatever the method
    frozen: bool  # only adapters are trained


class OwnSpeed(Frozen):
    """What was measured, in one of three forms; counted over training steps, without what a run loses beside them."""

    mfu_fraction: float | None = None
    tokens_per_s_per_gpu: float | None = None
    step_s: float | None = None  # on the accelerators that are asked for, at the batch that is asked for

    @property
    def flag(self) -> str:
        """The option that it was given by."""
        forms = {"mfu": self.mfu_fraction, "tokens_per_s_per_gpu": self.tokens_per_s_per_gpu}
        return flag_of(next((name for name, value in forms.items() if value is not None), "step_time"))

    def tokens_per_s(self, accelerator: Accelerator, gpus: float, work: StepWork) -> float:
        """Return tokens per second and accelerator: MFU × peak ÷ FLOP per token, or step tokens ÷ time ÷ accelerators.

        >>> OwnSpeed(step_s=2.0).tokens_per_s(None, 8, StepWork("bf16", 1.6e6, 5e10, False))
        100000.0
        """
        if self.tokens_per_s_per_gpu is not None:
            return self.tokens_per_s_per_gpu
        if self.step_s is not None:
            return work.step_tokens / self.step_s / gpus
        assert self.mfu_fraction is not None
        dense = peak(accelerator, work.precision or half_precision(accelerator)).tflops
        return self.mfu_fraction * dense * TERA / work.flop_per_token


def own_speed(mfu: float | None, tokens_per_s_per_gpu: float | None, step_s: float | None) -> OwnSpeed | None:
    """Return the speed that was given; None where nothing was."""
    given = OwnSpeed(mfu, tokens_per_s_per_gpu, step_s)
    return None if given == OwnSpeed() else given


def needs_gpus(own: OwnSpeed | None, gpus: float | None) -> None:
    """Refuse a step time that nobody says the accelerators of."""
    if own is not None and own.step_s is not None and not gpus:
        raise UsageError("--step-time needs --gpus: how many accelerators it was measured on.")


def one_chip(flag: str, accelerators: Iterable[Accelerator], instead: str = "") -> Accelerator:
    """Return the accelerator that a speed was measured on; it holds for no other."""
    chips = {chip.id: chip for chip in accelerators}
    if len(chips) > 1:
        names = sorted(chips)
        some = ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
        raise UsageError(
            f"{flag} holds for the accelerator that it was measured on; these offers have {some}. Name one by --gpu"
            f"{instead}."
        )
    return next(iter(chips.values()))


def check(own: OwnSpeed, accelerators: Sequence[Accelerator], gpus: float, work: StepWork) -> None:
    """Refuse a speed that no accelerator can have: what it needs of the dense peak is more than all of it."""
    if own.mfu_fraction is None:
        accelerators = [one_chip(own.flag, accelerators, ", or give --mfu")]
    for chip in accelerators:
        speed, precision = own.tokens_per_s(chip, gpus, work), work.precision or half_precision(chip)
        whole = speed * work.flop_per_token / (peak(chip, precision).tflops * TERA)
        if isnan(whole) or whole * (FROZEN_SHARE if work.frozen else 1.0) <= 1:
            return
        if own.mfu_fraction is not None:
            raise UsageError(f"--mfu: {whole:.0%} of the dense {precision} peak. {BEYOND_PEAK} Write 35% or 0.35.")
        raise UsageError(
            f"{own.flag}: {speed:,.0f} tokens/s on each {chip.id} need {whole:.0%} of the dense {precision} peak."
            f" {BEYOND_PEAK}"
        )


def most_tokens_per_s(accelerator: Accelerator, work: StepWork) -> float:
    """Return the speed that takes all of the dense peak."""
    dense = peak(accelerator, work.precision or half_precision(accelerator)).tflops
    return dense * TERA / work.flop_per_token / (FROZEN_SHARE if work.frozen else 1.0)


def ends(speed: Floats, most: Floats | float) -> tuple[Floats, Floats]:
    """Return the 80 % range of a measured speed; it ends at the most that the peak allows.

    >>> [round(float(end), 3) for end in ends(np.array(1.0), 1.05)]
    [0.937, 1.05]
    """
    return speed * exp(-WIDTH), np.maximum(speed, np.fmin(speed * exp(WIDTH), most))


def decode_roof(
    active_parameters: float, weight_bytes: float, peak_tflops: float, hbm_gb_per_s: float, gpus: float, batch: float
) -> tuple[float, str]:
    """Return the most output tokens per second that decoding allows, and what binds it.

    Every step reads the active weights once: batch × accelerators × bandwidth ÷ their bytes; each token needs 2 FLOP
    per active parameter. 70.6 GB on 8 cards of 960 GB/s: 109 tokens/s for one sequence.

    >>> decode_roof(70.6e9, 1.0, 728.0, 960.0, 8, 1)
    (108.78186968838527, 'bandwidth')
    """
    memory = batch * gpus * hbm_gb_per_s / (active_parameters * weight_bytes / GB)
    compute = gpus * peak_tflops * TERA / (2 * active_parameters)
    return (compute, "compute") if compute < memory else (memory, "bandwidth")
