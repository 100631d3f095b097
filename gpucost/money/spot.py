"""Interruptions: how much longer a job runs that may be stopped at any time, how often to save, how long to wait.

A gang of nodes stops when any of its nodes stops, so that rates add up over nodes. Interruptions are memoryless
(exponential); work since the last checkpoint is lost and redone. Spot preemptions and hardware failures enter
alike. The three kernels are functions of the formula language; spot.csv has the rows that a spreadsheet
writes in the place of each. Reference for the run time: J. T. Daly, "A higher order estimate of the
optimum checkpoint interval for restart dumps", Future Generation Computer Systems 22 (2006), eq. 13.
"""

import numpy as np
from numpy.typing import NDArray

from gpucost.formula.language import Line, add_kernel, read_tables
from gpucost.units import HOURS_PER_MONTH

Floats = NDArray[np.float64]

_NEWTON_STEPS = 12
_TINY = 1e-12  # below this exponent the limits without interruptions are exact in double precision


def rate_from_monthly_fraction(interrupted_fraction: Floats) -> Floats:
    """Return the hourly rate of one instance of which a share is interrupted within a month: −ln(1 − p) ÷ 730.

    >>> round(float(rate_from_monthly_fraction(np.array([0.20]))[0] * 730), 4)
    0.2231
    """
    return -np.log1p(-interrupted_fraction) / HOURS_PER_MONTH


def optimal_interval_hours(rate_per_hour: Floats, checkpoint_hours: Floats) -> Floats:
    """Return the work between two checkpoints that makes the run shortest.

    τ* = (1 + W(−e^{−λC−1})) ÷ λ, with Lambert's W (principal branch); x = λτ* solves ln(1 − x) + x + λC = 0, here by
    Newton's method from the right of the root, where it converges monotonically. For λC → 0 it tends to Young's
    √(2C/λ) (1974). Infinite where nothing interrupts. Reference: Daly 2006, the exact minimum of his eq. 13.

    >>> tau = optimal_interval_hours(np.array([0.01]), np.array([1 / 60]))
    >>> bool(tau[0] < (2 / 60 / 0.01) ** 0.5), round(float(tau[0]), 3)
    (True, 1.815)
    """
    # A rate of nothing, or a checkpoint that takes none, is a case like any other.
    rate, save = np.broadcast_arrays(np.asarray(rate_per_hour, np.float64), np.asarray(checkpoint_hours, np.float64))
    a = rate * save
    x = np.minimum(np.sqrt(2 * a), -np.expm1(-1 - a))
    for _ in range(_NEWTON_STEPS):
        safe = np.clip(x, _TINY, 1 - _TINY)
        x = np.where(x > _TINY, x + (np.log1p(-safe) + safe + a) * (1 - safe) / safe, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rate > 0, x / rate, np.inf)


def stretch_ratio(
    rate_per_hour: Floats, interval_hours: Floats, checkpoint_hours: Floats, restart_hours: Floats
) -> Floats:
    """Return hours paid ÷ hours of useful work.

    e^{λR} (e^{λ(τ+C)} − 1) ÷ (λτ): rate λ, work between checkpoints τ, checkpoint C, restart R (Daly 2006, eq. 13).
    Without interruptions it is (τ + C) ÷ τ, and 1 where the interval is infinite.

    >>> round(float(stretch_ratio(np.array([0.1]), np.array([1.0]), np.array([0.05]), np.array([0.25]))[0]), 4)
    1.1351
    """
    rate, tau, save, restart = (
        np.asarray(value, np.float64) for value in (rate_per_hour, interval_hours, checkpoint_hours, restart_hours)
    )
    # Runs that never end are infinite, not an error: a comparison of offers goes on.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        exponent = rate * (tau + save)
        stopped = np.exp(rate * restart) * np.expm1(exponent) / (rate * tau)
        calm = np.where(np.isinf(tau), 1.0, (tau + save) / tau)
    return np.where(rate > _TINY, stopped, calm)


def stretch_spread_ratio(
    rate_per_hour: Floats, interval_hours: Floats, checkpoint_hours: Floats, restart_hours: Floats, work_hours: Floats
) -> Floats:
    """Return the standard deviation of hours paid ÷ hours of useful work, from chance alone.

    A segment of length w = τ + C succeeds with p = e^{−λw}; else it costs A (the lost time, exponential below w) and
    D (a restart that may itself be stopped). E[T²] = w² + (1−p)/p · (E[(A+D)²] + 2 E[A+D] E[T]); segments are
    independent, so that the variance of the run is (work ÷ τ) × that of a segment.

    >>> args = [np.array([value]) for value in (0.1, 1.0, 0.05, 0.25, 100.0)]
    >>> round(float(stretch_spread_ratio(*args)[0]), 3)
    0.029
    """
    rate, tau, save, restart, work = (
        np.asarray(value, np.float64)
        for value in (rate_per_hour, interval_hours, checkpoint_hours, restart_hours, work_hours)
    )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        w = tau + save
        odds = np.expm1(rate * w)  # (1 − p) ÷ p
        # a time lost is below w: the moments of an exponential that is cut off there
        lost = 1 / rate - w / odds  # mean of the exponential below w
        lost_square = 2 / rate**2 - (w**2 + 2 * w / rate) / odds
        again = np.expm1(rate * restart) / rate
        again_square = (
            np.exp(2 * rate * restart) - 1 - 2 * rate * restart * np.exp(rate * restart)
        ) / rate**2 + again**2
        mean = w + odds * (lost + again)
        square = w**2 + odds * (lost_square + 2 * lost * again + again_square + 2 * (lost + again) * mean)
        variance = np.maximum(square - mean**2, 0.0) * work / tau
        spread = np.sqrt(variance) / work
    return np.where((rate > _TINY) & np.isfinite(tau), spread, 0.0)


def wait_hours_per_interruption(available_fraction: Floats, hours_between_losses: Floats) -> Floats:
    """Return the mean wait until capacity is back: available hours per loss × (1 − A) ÷ A.

    A renewal of up and down times with availability A and mean up time m has mean down time m (1 − A) ÷ A.

    >>> wait_hours_per_interruption(np.array([0.8]), np.array([4.0])).round(6).tolist()
    [1.0]
    """
    return hours_between_losses * (1 - available_fraction) / available_fraction


# Read by the rows below; below the second, a spreadsheet writes a power series for what cancels in double precision.
CONSTANTS = {"tiny_ratio": _TINY, "series_limit_ratio": 0.03}
_STEPS_SHOWN = 6  # Newton's steps from the right of the root; each doubles the correct digits

_FIRST, _STRETCH, _SPREAD = read_tables(__file__, "best_interval_hours", "stretch_ratio", "stretch_spread_ratio")


# The same steps as in `optimal_interval_hours`, one row each: a spreadsheet has no loop.
_NEWTON = []
for _step in range(1, _STEPS_SHOWN + 1):
    _old = f"x{_step - 1}"
    _value = f"log(1 - max({_old}, tiny_ratio)) + max({_old}, tiny_ratio) + stops_ratio"
    _stepped = f"{_old} + ({_value}) * (1 - max({_old}, tiny_ratio)) / max({_old}, tiny_ratio)"
    _text = f"where({_old} > tiny_ratio, {_stepped}, {_old})"
    _NEWTON.append(Line(f"x{_step}", _text, f"Newton's step {_step} on ln(1 - x) + x + rate * save = 0"))
_BEST_INTERVAL = Line(
    "result",
    f"where(rate > 0, min(x{_STEPS_SHOWN} / max(rate, tiny_ratio * tiny_ratio), longest), longest)",
    "work between two checkpoints",
)
add_kernel(
    "best_interval_hours",
    lambda rate, save, longest: np.minimum(optimal_interval_hours(rate, save), longest),
    "rate save longest",
    (*_FIRST, *_NEWTON, _BEST_INTERVAL),
)

add_kernel("stretch_ratio", stretch_ratio, "rate interval save restart", _STRETCH)
add_kernel("stretch_spread_ratio", stretch_spread_ratio, "rate interval save restart work", _SPREAD)
