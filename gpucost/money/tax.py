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
from gpucost.formula.language import read_lines

Array = NDArray[np.float64]


def straight_line(years: float) -> Array:
    """Return the yearly shares of straight-line depreciation: 1/n each year.

    >>> straight_line(4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if years < 1 or years != int(years):
        raise UsageError(f"depreciation_years: {years:g} is not a whole number of years. Write 3, 4, 5 …")
    return np.full(int(years), 1.0 / years)


def bonus(first_fraction: float, rest: Sequence[float] | Array) -> Array:
    """Return shares with a bonus in the first year and the rest by another schedule.

    >>> bonus(0.4, [0.5, 0.5]).tolist()
    [0.7, 0.3]
    """
    shares = (1.0 - first_fraction) * np.asarray(rest, dtype=np.float64)
    shares[0] += first_fraction
    return shares


def depreciated_by_year(shares: Array) -> Array:
    """Return the share deducted by the end of each year, beginning with 0 at purchase.

    >>> depreciated_by_year(np.array([0.5, 0.5])).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.concatenate(([0.0], np.cumsum(shares)))


SCALARS = read_lines("""
after_tax_ratio: what is left of a dollar after income tax
    where(tax_basis == 'after', 1 - tax_rate_fraction, 1)
""")

# Losses of a side by year. What a year absorbs is what losses it could use; what is left follows as in a queue
# (Lindley 1952): the highest of the sums so far less the sum so far.
_LOSSES = """
{0}_taxable_usd: {1}: taxable in the tax year that ends, before losses of earlier ones
    year_ends * (within(income_usd, plan_year) - {2})
{0}_absorbed_usd: {1}: losses of earlier years that a year could use; negative: what it adds to them
    min({0}_taxable_usd, loss_allowance_usd) + loss_limit_fraction * max({0}_taxable_usd - loss_allowance_usd, 0)
{0}_absorbed_so_far_usd: {1}: the same, so far
    so_far({0}_absorbed_usd)
{0}_loss_usd: {1}: losses that are carried forward
    highest_so_far({0}_absorbed_so_far_usd) - {0}_absorbed_so_far_usd
{0}_loss_before_usd: {1}: the same a month before
    before({0}_loss_usd)
{0}_tax_due_usd: {1}: income tax of the year, less that of the income alone
    tax_rate_fraction * (max({0}_taxable_usd, 0) - max(min({0}_absorbed_usd, {0}_loss_before_usd), 0) - year_ends *
        within(income_usd, plan_year))
"""


def _losses(side: str, words: str, *deductible: str) -> str:
    return _LOSSES.format(side, words, " - ".join(f"within({name}, plan_year)" for name in deductible))


MONTHLY = read_lines(
    """
kept_basis_usd: part of the purchase that a replacement of the servers leaves in place
    capex_usd * (network_usd + storage_usd + control_plane_usd) / hardware_usd
first_basis_usd: tax value at purchase of what still stands of it
    where(refreshes > 0 and m > refresh_month, kept_basis_usd, capex_usd)
booked_first_fraction: deducted so far of the first purchase
    interpolate(depreciated_by_year, age_months / months_per_year)
booked_refresh_fraction: deducted so far of the replacement
    interpolate(depreciated_by_year, max(m - refresh_month, 0) / months_per_year)
depreciation_usd: depreciation for tax
    in_horizon * (first_basis_usd * (booked_first_fraction - interpolate(depreciated_by_year, max(age_months - 1,
        0) / months_per_year)) + refresh_usd * (booked_refresh_fraction - interpolate(depreciated_by_year, max(m
        - 1 - refresh_month, 0) / months_per_year)))
written_off_usd: tax value that remains when hardware leaves
    refreshing * (capex_usd - kept_basis_usd) * (1 - booked_first_fraction) + ends * (first_basis_usd * (1 -
        booked_first_fraction) + refresh_usd * (1 - booked_refresh_fraction))
interest_usd: interest within the payments of a loan or of a lease that ends in a purchase
    where(own_loan_payment_usd > 0, own_loan_payment_usd - balance(loan_rate_fraction / months_per_year,
        max(loan_paid_months - 1, 0), loan_usd, loan_payment_usd) + balance(loan_rate_fraction /
        months_per_year, loan_paid_months, loan_usd, loan_payment_usd), 0) + where(financing == 'lease' and
        own_lease_payment_usd > 0, own_lease_payment_usd - balance(lease_rate_fraction / months_per_year,
        max(lease_paid_months - 1, 0), lease_usd, lease_payment_usd) + lease_owed_usd, 0)
own_deductible_usd: what the tax return deducts of a purchase in cash, less what it adds
    own_running_usd + own_disposal_usd + own_trade_in_usd + own_resale_usd + depreciation_usd + written_off_usd +
        in_service * facility_usd / facility_life_years / months_per_year
financing_deductible_usd: what financing deducts beside it: interest, or lease payments in place of depreciation
    where(financing == 'operating_lease', own_lease_payment_usd + own_lease_settled_usd + own_lease_returned_usd -
        depreciation_usd - written_off_usd, interest_usd)
rent_deductible_usd: what the tax return deducts of renting
    rent_compute_usd + rent_upfront_usd + rent_cancellation_usd + rent_services_usd
year_ends: 1 in the last month of a tax year
    in_horizon * where(m == months or floor(m / months_per_year) * months_per_year == m, 1, 0)
income_usd: income that the costs stand against
    in_horizon * other_income_usd_per_year / months_per_year
"""
    + _losses("in_cash", "owning in cash", "own_deductible_usd")
    + _losses("financed", "owning as financed", "own_deductible_usd", "financing_deductible_usd")
    + _losses("rented", "renting", "rent_deductible_usd")
    + """
own_tax_usd: income tax saved (negative) or due, paid in cash
    where(tax_basis == 'after', where(loss_basis == 'at_once', -tax_rate_fraction * own_deductible_usd,
        in_cash_tax_due_usd), 0)
own_financing_tax_usd: income tax that financing saves (negative) or adds
    where(tax_basis == 'after', where(loss_basis == 'at_once', -tax_rate_fraction * financing_deductible_usd,
        financed_tax_due_usd - in_cash_tax_due_usd), 0)
rent_tax_usd: income tax saved by renting
    where(tax_basis == 'after', where(loss_basis == 'at_once', -tax_rate_fraction * rent_deductible_usd,
        rented_tax_due_usd), 0)
"""
)
