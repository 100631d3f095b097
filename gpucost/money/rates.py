"""How a term is paid: what is due at its start and what recurs, where a price list leaves one of them out."""

import numpy as np
from numpy.typing import NDArray

from gpucost.units import HOURS_PER_MONTH

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


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
