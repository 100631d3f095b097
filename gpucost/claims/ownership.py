"""Claims about payback: what buying saves each month against what it costs, and how busy the cluster would be."""

import numpy as np

from gpucost.claims.checks import IMPLAUSIBLE, IMPOSSIBLE, POSSIBLE, Check, Claim
from gpucost.errors import UsageError
from gpucost.units import HOURS_PER_MONTH

_TOLERANCE = 0.10
_BUSY_FRACTION = 0.8
_MONTHS = 60  # over which owning and renting are compared


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


def check_payback(claim: Claim) -> list[Check]:
    """Judge what a claim says of payback: its arithmetic, how busy the cluster is, and what discounting does to it."""
    buy, rent, own = claim.buy_usd, claim.rent_usd_per_month, claim.own_usd_per_month or 0.0
    if buy is None and rent is None:
        return []
    if buy is None or rent is None:
        raise UsageError("a payback claim needs both --buy and --rent-monthly.")
    checks = [_arithmetic(buy, rent, own, claim.payback_months)]
    if claim.gpus and claim.gpu_hours_per_month:
        checks.append(_utilisation(claim.gpus, claim.gpu_hours_per_month))
    return [*checks, _discounted(buy, rent, own, claim.discount_fraction)]


def _arithmetic(buy: float, rent: float, own: float, claimed: float | None) -> Check:
    true = payback_months(buy, rent, own)
    words = f"{buy:,.0f} USD ÷ ({rent:,.0f} − {own:,.0f}) USD a month is {true:,.1f} months."
    if rent <= own:
        words, verdict = "Owning costs as much each month as renting: it never pays back.", IMPOSSIBLE
    else:
        verdict = POSSIBLE if claimed is None or abs(claimed / true - 1) <= _TOLERANCE else IMPOSSIBLE
    finite = true if np.isfinite(true) else None
    return Check("payback", verdict, claimed, finite, finite, finite, "months", words)


def _utilisation(gpus: int, hours_per_month: float) -> Check:
    """Judge how many of the owned hours the claim uses; a cluster that stands idle is the wrong size."""
    used = hours_per_month / (gpus * HOURS_PER_MONTH)
    enough = int(np.ceil(hours_per_month / (HOURS_PER_MONTH * _BUSY_FRACTION) - 0.5))
    words = (
        f"{hours_per_month:,.0f} of {gpus * HOURS_PER_MONTH:,.0f} hours a month is {used:.0%}; about"
        f" {max(enough, 1)} GPUs at 80 % do the same."
    )
    verdict = IMPOSSIBLE if used > 1 else POSSIBLE if used >= _BUSY_FRACTION / 2 else IMPLAUSIBLE
    return Check("utilisation", verdict, used, _BUSY_FRACTION / 2, _BUSY_FRACTION, 1.0, "fraction of one", words)


def _discounted(buy: float, rent: float, own: float, fraction: float) -> Check:
    renting, owning = (present_value_usd(monthly, _MONTHS, fraction) for monthly in (rent, own))
    owning += buy
    words = (
        f"At {fraction:.0%} a year over {_MONTHS} months, without resale, renting costs {renting:,.0f} USD and owning"
        f" {owning:,.0f} USD today: {'renting' if renting < owning else 'owning'} is cheaper."
    )
    verdict = POSSIBLE if owning <= renting else IMPLAUSIBLE
    return Check("present value", verdict, owning, None, renting, None, "USD", words)
