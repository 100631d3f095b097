"""Depreciation schedules and income tax, as tables by year and formulas by month.

Deductions are spread evenly over the months of a tax year that begins with the purchase; tax falls due in the month;
losses are used at once against other income. What is not yet deducted when hardware leaves is deducted then, against
its proceeds. With `loss_basis = "carried_forward"` the costs stand against a stated income: the tax of a year falls due
at its end, and what exceeds the income is carried forward, of which later years use an allowance and a share of the
income above it (26 USC 172, Part 7ZA CTA 2010, § 10d EStG). The purchase is taxed as if it were paid in cash; what
financing changes is a line of its own.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpucost.errors import UsageError
from gpucost.formula.language import Line, read_tables

Array = NDArray[np.float64]


def straight_line(years: float) -> Array:
    """Return the yearly shares of straight-line depreciation: 1/n each year.

    >>> straight_line(4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if years < 1 or years != int(years):
        raise UsageError(f"depreciation_years: {years:g} is not a whole number of years. Write 3, 4, 5 …")
    return np.full(int(years), 1.0 / years)


def bonus(first_fraction: float, later_fractions: Sequence[float] | Array) -> Array:
    """Return shares with a bonus in the first year and the rest by another schedule.

    >>> bonus(0.4, [0.5, 0.5]).tolist()
    [0.7, 0.3]
    """
    shares = (1.0 - first_fraction) * np.asarray(later_fractions, dtype=np.float64)
    # The bonus comes off the basis first; what is left follows the schedule.
    shares[0] += first_fraction
    return shares


def depreciated_by_year(shares: Array) -> Array:
    """Return the share deducted by the end of each year, beginning with 0 at purchase.

    >>> depreciated_by_year(np.array([0.5, 0.5])).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.concatenate(([0.0], np.cumsum(shares)))


# The groups of tax.csv in the order of evaluation; the losses of each side are made between them.
SCALARS, _DEDUCTIONS, _TAXES, _INTEREST, _FINANCED = read_tables(
    __file__, "scalars", "deductions", "taxes", "interest", "financed"
)


def _losses(side: str, description: str, *deductible: str) -> tuple[Line, ...]:
    """Return the losses of a side by year.

    What a year absorbs is what losses it could use; what is left follows as in a queue (Lindley 1952): the highest of
    the sums so far less the sum so far.
    """
    # The lines of a side bear its name, so that both sides stand in one table.
    taxable, absorbed = f"{side}_taxable_usd", f"{side}_absorbed_usd"
    so_far, loss, before = f"{side}_absorbed_so_far_usd", f"{side}_loss_usd", f"{side}_loss_before_usd"
    deducted = " - ".join(f"within({name}, plan_year)" for name in deductible)
    return (
        Line(
            taxable,
            f"year_ends * (within(income_usd, plan_year) - {deducted})",
            f"{description}: taxable in the tax year that ends, before losses of earlier ones",
        ),
        Line(
            absorbed,
            f"min({taxable}, loss_allowance_usd) + loss_limit_fraction * max({taxable} - loss_allowance_usd, 0)",
            f"{description}: losses of earlier years that a year could use; negative: what it adds to them",
        ),
        Line(so_far, f"so_far({absorbed})", f"{description}: the same, so far"),
        Line(loss, f"highest_so_far({so_far}) - {so_far}", f"{description}: losses that are carried forward"),
        Line(before, f"before({loss})", f"{description}: the same a month before"),
        Line(
            f"{side}_tax_due_usd",
            f"tax_rate_fraction * (max({taxable}, 0) - max(min({absorbed}, {before}), 0)"
            " - year_ends * within(income_usd, plan_year))",
            f"{description}: income tax of the year, less that of the income alone",
        ),
    )


# of a purchase in cash and of renting; a loan that follows the cash available stands between these and what it changes
IN_CASH = (
    *_DEDUCTIONS,
    *_losses("in_cash", "owning in cash", "own_deductible_usd"),
    *_losses("rented", "renting", "rent_deductible_usd"),
    *_TAXES,
)
OF_FINANCING = (
    *_INTEREST,
    *_losses("financed", "owning as financed", "own_deductible_usd", "financing_deductible_usd"),
    *_FINANCED,
)
MONTHLY = (*IN_CASH, *OF_FINANCING)
