"""What a run pays for a purchase, when, and what it binds to.

Four views of one purchase, which must not be mixed:
- amortised: hours used × effective hourly price, what the run consumes;
- exposure: everything the contract obliges to pay, used or not;
- unused: exposure − amortised, the commitment that the run leaves idle;
- cash: what has left the account when the run ends (upfront parts and the instalments due by then).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.units import HOURS_PER_MONTH

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_SLACK = 1e-9  # a run of 24.000000001 hours is one day, not two


class Purchase(NamedTuple):
    """What units bought for a run cost, in the four views; arrays of one element per case."""

    billed_hours: Floats  # hours per unit that are paid at the effective price
    amortised_usd: Floats
    exposure_usd: Floats
    unused_usd: Floats
    cash_usd: Floats
    terms: Floats  # consecutive contracts


def billed_hours(hours: Floats, minimum_hours: Floats, increment_hours: Floats) -> Floats:
    """Round the hours of a purchase up to its minimum and its increment.

    >>> billed_hours(np.array([30.0, 2.0]), np.array([24.0, 24.0]), np.array([24.0, 24.0])).tolist()
    [48.0, 24.0]
    """
    step = np.where(increment_hours > 0, increment_hours, 1.0)
    rounded = np.where(increment_hours > 0, np.ceil(hours / step - _SLACK) * step, hours)
    return np.maximum(rounded, minimum_hours)


def contract_terms(hours: Floats, term_hours: Floats) -> Floats:
    """Return how many consecutive contracts of a term cover a run; 0 where there is no term.

    >>> contract_terms(np.array([9000.0, 100.0, 100.0]), np.array([8760.0, 8760.0, 0.0])).tolist()
    [2.0, 1.0, 0.0]
    """
    safe = np.where(term_hours > 0, term_hours, 1.0)
    return np.where(term_hours > 0, np.ceil(hours / safe - _SLACK), 0.0)


def purchase(
    hours: Floats,
    units: Floats,
    usd_per_unit_hour: Floats,
    *,
    term_months: Floats,
    take_or_pay: Flags,
    minimum_hours: Floats,
    increment_hours: Floats,
    upfront_usd: Floats,
    recurring_usd_per_hour: Floats,
    prepaid: Flags,
) -> Purchase:
    """Return what units used for some hours cost: amortised, exposure, unused and cash.

    `upfront_usd` and `recurring_usd_per_hour` are per unit and term; the effective price is upfront ÷ term hours +
    recurring. Per use: exposure = units × billed hours × price. Take-or-pay with a term: contracts × term × price.
    Instalments of a term are due monthly in arrears, so that a run owes at its end those of each started month.

    A year of one unit at 4 USD an hour, used for 1,000 hours, with 8,760 USD upfront and 3 USD an hour:

    >>> one = np.array([1.0])
    >>> bought = purchase(1000 * one, one, 4 * one, term_months=12 * one, take_or_pay=one > 0, minimum_hours=0 * one,
    ...     increment_hours=0 * one, upfront_usd=8760 * one, recurring_usd_per_hour=3 * one, prepaid=one < 0)
    >>> [float(value[0]) for value in (bought.amortised_usd, bought.exposure_usd, bought.unused_usd, bought.cash_usd)]
    [4000.0, 35040.0, 31040.0, 13140.0]
    """
    term_hours = term_months * HOURS_PER_MONTH
    terms = contract_terms(hours, term_hours)
    bound = take_or_pay & (terms > 0)
    paid_hours = np.where(bound, terms * term_hours, billed_hours(hours, minimum_hours, increment_hours))
    exposure = units * paid_hours * usd_per_unit_hour
    amortised = units * hours * usd_per_unit_hour
    months_due = np.minimum(np.ceil(hours / HOURS_PER_MONTH - _SLACK), terms * term_months)
    instalments = months_due * HOURS_PER_MONTH * recurring_usd_per_hour
    cash_bound = np.where(prepaid, exposure, units * (terms * upfront_usd + instalments))
    return Purchase(
        billed_hours=paid_hours,
        amortised_usd=amortised,
        exposure_usd=exposure,
        unused_usd=exposure - amortised,
        cash_usd=np.where(bound, cash_bound, exposure),
        terms=terms,
    )


def payment_split(
    usd_per_hour: Floats,
    term_months: Floats,
    upfront_usd: Floats,
    recurring_usd_per_hour: Floats,
    all_upfront: Flags,
    partial: Flags,
) -> tuple[Floats, Floats]:
    """Fill in upfront and recurring parts that a price list leaves out; NaN stands for not stated.

    The effective price binds them: price = upfront ÷ (term × 730 h) + recurring. All upfront leaves nothing
    recurring; partial upfront is taken as half (the usual convention of reserved instances), none as zero.

    >>> one = np.array([1.0])
    >>> gap = np.array([np.nan])
    >>> [float(part[0]) for part in payment_split(2 * one, 12 * one, gap, gap, one > 0, one < 0)]
    [17520.0, 0.0]
    """
    term_hours = term_months * HOURS_PER_MONTH
    share = np.where(all_upfront, 1.0, np.where(partial, 0.5, 0.0))
    known_recurring = np.isfinite(recurring_usd_per_hour)
    from_recurring = (
        np.where(known_recurring, np.maximum(usd_per_hour - recurring_usd_per_hour, 0.0), usd_per_hour * share)
        * term_hours
    )
    upfront = np.where(np.isfinite(upfront_usd), upfront_usd, from_recurring)
    safe = np.where(term_hours > 0, term_hours, 1.0)
    recurring = np.where(known_recurring, recurring_usd_per_hour, np.maximum(usd_per_hour - upfront / safe, 0.0))
    return upfront, recurring
