"""Claims about payback: what buying saves each month against what it costs, and how busy the cluster would be."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpucost.claims.checks import IMPLAUSIBLE, IMPOSSIBLE, POSSIBLE, Check
from gpucost.units import HOURS_PER_MONTH

Floats = NDArray[np.float64]

_TOLERANCE = 0.10
_BUSY_FRACTION = 0.8


@dataclass(frozen=True, slots=True)
class PaybackClaim:
    """A claim that buying pays back: price, monthly costs, and optionally the hours that are needed."""

    buy_usd: float
    rent_usd_per_month: float
    own_usd_per_month: float = 0.0
    payback_months: float | None = None
    gpus: int | None = None
    gpu_hours_per_month: float | None = None
    discount_fraction: float = 0.10
    months: float = 60.0


def payback_months(buy_usd: float, rent_usd_per_month: float, own_usd_per_month: float) -> float:
    """Return the months after which buying is cheaper, undiscounted: price ÷ (rent − running cost); infinite if never.

    >>> round(payback_months(800_000, 20_000, 5_000), 1)
    53.3
    """
    saved = rent_usd_per_month - own_usd_per_month
    return buy_usd / saved if saved > 0 else float("inf")


def present_value_usd(usd_per_month: float, months: float, annual_fraction: float) -> float:
    """Return the present value of a monthly payment in arrears at an effective annual rate.

    >>> round(present_value_usd(20_000, 60, 0.10) / 1000)
    951
    """
    rate = (1 + annual_fraction) ** (1 / 12) - 1
    return usd_per_month * (months if rate == 0 else (1 - (1 + rate) ** -months) / rate)


def check_payback(claim: PaybackClaim) -> list[Check]:
    """Judge a payback claim: its arithmetic, how busy the cluster is, and what discounting does to it."""
    true = payback_months(claim.buy_usd, claim.rent_usd_per_month, claim.own_usd_per_month)
    checks = [_arithmetic(claim, true)]
    if claim.gpus and claim.gpu_hours_per_month:
        checks.append(_utilisation(claim))
    checks.append(_discounted(claim))
    return checks


def _arithmetic(claim: PaybackClaim, true: float) -> Check:
    saved = claim.rent_usd_per_month - claim.own_usd_per_month
    words = (
        f"{claim.buy_usd:,.0f} USD ÷ ({claim.rent_usd_per_month:,.0f} − {claim.own_usd_per_month:,.0f}) USD a month is"
        f" {true:,.1f} months."
    )
    if saved <= 0:
        words, verdict = "Owning costs as much each month as renting: it never pays back.", IMPOSSIBLE
    elif claim.payback_months is None:
        verdict = POSSIBLE
    else:
        verdict = POSSIBLE if abs(claim.payback_months / true - 1) <= _TOLERANCE else IMPOSSIBLE
    finite = true if np.isfinite(true) else None
    return Check("payback", verdict, claim.payback_months, finite, finite, finite, "months", words)


def _utilisation(claim: PaybackClaim) -> Check:
    """Judge how many of the owned hours the claim uses; a cluster that stands idle is the wrong size."""
    assert claim.gpus is not None
    assert claim.gpu_hours_per_month is not None
    used = claim.gpu_hours_per_month / (claim.gpus * HOURS_PER_MONTH)
    enough = int(np.ceil(claim.gpu_hours_per_month / (HOURS_PER_MONTH * _BUSY_FRACTION) - 0.5))
    words = (
        f"{claim.gpu_hours_per_month:,.0f} of {claim.gpus * HOURS_PER_MONTH:,.0f} hours a month is {used:.0%}; about"
        f" {max(enough, 1)} GPUs at 80 % do the same."
    )
    verdict = IMPOSSIBLE if used > 1 else POSSIBLE if used >= _BUSY_FRACTION / 2 else IMPLAUSIBLE
    return Check("utilisation", verdict, used, _BUSY_FRACTION / 2, _BUSY_FRACTION, 1.0, "fraction of one", words)


def _discounted(claim: PaybackClaim) -> Check:
    rent = present_value_usd(claim.rent_usd_per_month, claim.months, claim.discount_fraction)
    own = claim.buy_usd + present_value_usd(claim.own_usd_per_month, claim.months, claim.discount_fraction)
    better = "renting" if rent < own else "owning"
    words = (
        f"At {claim.discount_fraction:.0%} a year over {claim.months:g} months, without resale, renting costs"
        f" {rent:,.0f} USD and owning {own:,.0f} USD today: {better} is cheaper."
    )
    verdict = POSSIBLE if own <= rent else IMPLAUSIBLE
    return Check("present value", verdict, own, None, rent, None, "USD", words)
