"""What a question leaves unsaid: which of it widens a range of speed most, and how to say it."""

from collections.abc import Sequence
from math import log, prod
from typing import NamedTuple

from gpucost.physics.calibration import FASTER, SLOWER, Values

_LEAST_RATIO = 1.02  # assumed: by which saying something must narrow a range to be worth a sentence
TRAINING, SERVING = (SLOWER, FASTER), ("", "")  # the calibration's names of what lies below and above a point


class Unsaid(NamedTuple):
    """Something that a question leaves open, how to say it, and the ends of the range once it is said."""

    subject: str
    say: str
    low: float
    high: float


class Doubt(NamedTuple):
    """Something whose being unsaid widens a range by the ratios of traits."""

    subject: str
    say: str
    traits: tuple[str, ...]

    def unsaid(self, ranges: Values, speed: float, low: float, high: float, sides: tuple[str, str]) -> Unsaid:
        """Return what is left of a range once it is said: widths, in logarithms, are products over traits.

        >>> STACK.unsaid({"unknown_software.slower": 2.0}, 100.0, 64.0, 120.0, TRAINING)[2:]
        (80.0, 120.0)
        """
        # a range is speed · e^(∓ base · Π ratios): without a trait its logarithm is smaller by the trait's ratio
        below, above = (prod(ranges.get(trait + side, 1.0) for trait in self.traits) for side in sides)
        return Unsaid(
            self.subject, self.say, speed * (low / speed) ** (1 / below), speed * (high / speed) ** (1 / above)
        )


STACK = Doubt("the training stack", "--software NAME", ("unknown_software",))
SERVER = Doubt("how the server is set up", "--server tuned", ("served", "unstated_server"))
PREFIX = Doubt("whether prompts begin alike", "--prefix-hit 0", ("unstated_prefix",))
ATTENTION = ("that attention is fused", "--flash")
DISPATCHER = ("that tokens reach experts by all-to-all", "--dispatcher alltoall")


def costliest(unsaid: Sequence[Unsaid], speed: float, low: float, high: float) -> str:
    """Say which unsaid thing widens the range of a speed most, and what is left of it once it is said.

    Empty where nothing matters.

    >>> stack = Unsaid("the training stack", "--software NAME", 80.0, 120.0)
    >>> costliest([stack, Unsaid(*ATTENTION, 70.0, 120.0)], 100.0, 64.0, 120.0).partition("about ")[2]
    '-20% to +20%, from -36% to +20%.'
    >>> costliest([Unsaid(*ATTENTION, 64.0, 120.0)], 100.0, 64.0, 120.0)
    ''
    """
    widest = min(unsaid, key=lambda item: item.high / item.low, default=None)
    if widest is None or log(high / low) < _LEAST_RATIO * log(widest.high / widest.low):
        return ""
    left = f"{widest.low / speed - 1:+.0%} to {widest.high / speed - 1:+.0%}"
    return (
        f"Saying {widest.subject} ({widest.say}) narrows it most: speed to about {left},"
        f" from {low / speed - 1:+.0%} to {high / speed - 1:+.0%}."
    )
