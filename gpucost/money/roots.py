"""Where a function of many cases crosses zero, for all cases at once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NEGLIGIBLE = 1e-13  # of the larger value at the ends: double precision has no more to give
NARROW, LARGE = 1e-6, 1e-4  # a value above LARGE on an interval below NARROW (shares of those at the start) is a jump


def find(function: Callable[[Array], Array], low: Array, high: Array, rounds: int = 80) -> Array:
    """Return the root of each case between low and high; NaN where the function has one sign at both ends.

    Regula falsi with the Illinois weight (Dowell & Jarratt 1971), and a bisection where three steps did not halve the
    interval: exact after one step for a linear function, which most break-even questions are; for a function that
    jumps, the place of the jump.

    >>> find(lambda x: x**2 - np.array([2.0, 9.0]), np.zeros(2), np.full(2, 10.0)).round(9).tolist()
    [1.414213562, 3.0]
    """
    a, b = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    fa, fb = function(a), function(b)
    bracketed = np.isfinite(fa) & np.isfinite(fb) & (fa * fb <= 0)
    scale = np.maximum(np.abs(fa), np.abs(fb))
    best, best_value = np.where(np.abs(fa) <= np.abs(fb), a, b), np.minimum(np.abs(fa), np.abs(fb))
    width = np.abs(b - a)
    before = width
    for step in range(rounds):
        jump = (np.abs(b - a) < NARROW * width) & (best_value > LARGE * scale)
        unsolved = bracketed & (best_value > NEGLIGIBLE * scale) & ~jump
        if not unsolved.any():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            x = b - fb * (b - a) / (fb - fa)
        stalled = (step % 3 == 2) & (np.abs(b - a) > 0.5 * before)
        before = np.where(step % 3 == 2, np.abs(b - a), before)
        x = np.where(stalled | ~np.isfinite(x), (a + b) / 2, x)
        x = np.where(unsolved, x, best)
        fx = function(x)
        better = np.abs(fx) < best_value
        best, best_value = np.where(better, x, best), np.where(better, np.abs(fx), best_value)
        crossed = fx * fb <= 0
        a, fa = np.where(crossed, b, a), np.where(crossed, fb, fa * 0.5)
        b, fb = x, fx
    jump = (best_value > LARGE * scale) & (np.abs(b - a) < NARROW * width)
    return np.where(bracketed, np.where(jump, (a + b) / 2, best), np.nan)
