"""Discounting, IRR and payback of monthly cash flows that begin at month 0, and roots of functions of many cases."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpucost.formula.arrays import internal_rate

# --- Where a function of many cases crosses zero, for all cases at once.

Array = NDArray[np.float64]

_NEGLIGIBLE = 1e-13  # of the larger value at the ends: double precision has no more to give
_NARROW, _LARGE = (
    1e-6,
    1e-4,
)  # a value above _LARGE on an interval below _NARROW (shares of those at the start) is a jump


def roots(
    function: Callable[[Array], Array],
    low: Array,
    high: Array,
    rounds: int = 80,
    some: Callable[[Array, NDArray[np.intp]], Array] | None = None,
) -> Array:
    """Return the root of each case between low and high; NaN where the function has one sign at both ends.

    Regula falsi with the Illinois weight (Dowell & Jarratt 1971), and a bisection where three steps did not halve the
    interval: exact after one step for a linear function, which most break-even questions are; for a function that
    jumps, the place of the jump. `some` evaluates the cases of some places alone, for the last that are unsolved.

    >>> roots(lambda x: x**2 - np.array([2.0, 9.0]), np.zeros(2), np.full(2, 10.0)).round(9).tolist()
    [1.414213562, 3.0]
    """
    a, b = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    fa, fb = function(a), function(b)
    bracketed = np.isfinite(fa) & np.isfinite(fb) & (fa * fb <= 0)
    scale = np.maximum(np.abs(fa), np.abs(fb))
    best, best_value = np.where(np.abs(fa) <= np.abs(fb), a, b), np.minimum(np.abs(fa), np.abs(fb))
    width = np.abs(b - a)
    before = width  # the interval three steps ago
    for step in range(rounds):
        jump = (np.abs(b - a) < _NARROW * width) & (best_value > _LARGE * scale)
        unsolved = bracketed & (best_value > _NEGLIGIBLE * scale) & ~jump
        if not unsolved.any():
            break
        # The secant: an end that stays has lost half its value, so that it moves in turn.
        with np.errstate(divide="ignore", invalid="ignore"):
            x = b - fb * (b - a) / (fb - fa)
        stalled = (step % 3 == 2) & (np.abs(b - a) > 0.5 * before)
        before = np.where(step % 3 == 2, np.abs(b - a), before)
        x = np.where(stalled | ~np.isfinite(x), (a + b) / 2, x)
        x = np.where(unsolved, x, best)
        rows = np.flatnonzero(unsolved)
        # An evaluation of all cases is cheap a case; one of a few pays once they are less than half.
        if some is not None and 2 * rows.size < unsolved.size:
            fx = np.array(fb)  # what is solved stays as it is
            fx[rows] = some(x[rows], rows)
        else:
            fx = function(x)
        better = np.abs(fx) < best_value
        best, best_value = np.where(better, x, best), np.where(better, np.abs(fx), best_value)
        crossed = (
            fx * fb <= 0
        )  # the root lies between x and b: b becomes the other end, else a stays with half its value
        a, fa = np.where(crossed, b, a), np.where(crossed, fb, fa * 0.5)
        b, fb = x, fx
    # At a jump neither end is small: its place is the answer, as that of a root.
    jump = (best_value > _LARGE * scale) & (np.abs(b - a) < _NARROW * width)
    return np.where(bracketed, np.where(jump, (a + b) / 2, best), np.nan)


# --- Discounting, IRR and payback of monthly cash flows that begin at month 0.


def monthly_rate(annual_fraction: Array, nominal: bool = False) -> Array:
    """Return the rate per month: (1+w)^(1/12) − 1 of an effective annual rate, w/12 of a nominal one.

    >>> monthly_rate(np.array(0.10)).round(6).item(), monthly_rate(np.array(0.12), nominal=True).item()
    (0.007974, 0.01)
    """
    annual_fraction = np.asarray(annual_fraction, dtype=np.float64)
    return annual_fraction / 12 if nominal else np.expm1(np.log1p(annual_fraction) / 12)


def discount(rate_per_month: Array, months: int) -> Array:
    """Return (1+i)^−m for m = 0 … months: one row per rate.

    >>> discount(np.array([0.0, 1.0]), 2).tolist()
    [[1.0, 1.0, 1.0], [1.0, 0.5, 0.25]]
    """
    # log1p keeps the digits of a small rate that 1 + i would lose
    exponent = -np.arange(months + 1, dtype=np.float64)
    rates = np.asarray(rate_per_month, dtype=np.float64).reshape(-1, 1)
    return np.asarray(np.exp(np.log1p(rates) * exponent))


def irr(flows: Array) -> float | None:
    """Return the effective annual rate at which the flows are worth nothing: (1 + monthly IRR)^12 − 1.

    None where no rate exists (flows of one sign), or where several do and none is the return.

    >>> round(irr(np.array([-100.0] + [0.0] * 11 + [121.0])), 9)
    0.21
    """
    rate = internal_rate(flows)
    return None if np.isnan(rate) else float((1 + rate) ** 12 - 1)


def several_rates(flows: Array) -> bool:
    """Tell whether the flows change sign more than once, so that an IRR need not be the only one."""
    steps = np.sign(flows[np.abs(flows) > 1e-9])  # a flow of nothing, or of rounding, has no sign
    return int(np.count_nonzero(np.diff(steps))) > 1


def payback_months(lines: Array) -> Array:
    """Return the month from which each row's running total never falls below zero again, within the month.

    NaN where it stays below, and where nothing is ever put in.

    >>> payback_months(np.array([[-100.0, 40.0, 40.0, 40.0], [-100.0, 10.0, 0.0, 0.0], [5.0, 5.0, 5.0, 5.0]])).tolist()
    [2.5, nan, nan]
    """
    total = np.cumsum(lines, axis=1)
    below, months = total < 0, total.shape[1]
    last = months - 1 - np.argmax(below[:, ::-1], axis=1)  # the last month in which the total is below zero
    paid = below.any(axis=1) & (last < months - 1)
    # Within the month, the total is taken to move in a straight line.
    row, at = np.arange(len(total)), np.minimum(last, months - 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossed = at + total[row, at] / (total[row, at] - total[row, at + 1])
    return np.where(paid, crossed, np.nan)


def simple_payback_months(buy_usd: float, rent_usd_per_month: float, own_usd_per_month: float) -> float:
    """Return the months after which buying is cheaper, undiscounted: price ÷ (rent − running cost); infinite if never.

    >>> round(simple_payback_months(800_000, 20_000, 5_000), 1)
    53.3
    """
    saved = rent_usd_per_month - own_usd_per_month
    return buy_usd / saved if saved > 0 else float("inf")


def annuity_usd(usd_per_month: float, months: float, annual_fraction: float) -> float:
    """Return the present value of a monthly payment in arrears at an effective annual rate.

    >>> round(annuity_usd(20_000, 60, 0.10) / 1000)
    951
    """
    rate = (1 + annual_fraction) ** (1 / 12) - 1
    return usd_per_month * (months if rate == 0 else (1 - (1 + rate) ** -months) / rate)
