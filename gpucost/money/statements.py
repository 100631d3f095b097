"""The books of owning, as formulas: what is depreciated, owed and spent by month, and what the balance sheet holds.

Hardware is depreciated straight-line over its book life (ASC 360, IAS 16). A lease that ends in a purchase is a finance
lease: the hardware and the debt stand in the books. An operating lease is a right to use and a liability for the
payments of its term (ASC 842, IFRS 16); its cost is level under US GAAP, and depreciation beside interest under IFRS;
what goes on beyond the term runs from month to month and is rent. The owners pay in all cash; what they have put in
less what was spent is equity. Taxes that differ in time from the books are deferred (ASC 740, IAS 12).
"""

from typing import NamedTuple

from gpucost.formula.language import read_lines

SCALARS = read_lines("""
book_life_months: life in the books
    book_life_years * months_per_year
owned_ratio: 0 where the hardware stands in the lessor's books
    where(financing == 'operating_lease', 0, 1)
lease_left_fraction: share of an operating lease that is not for use but for what is left
    lease_buyout_fraction * (1 + lease_rate_fraction / months_per_year) ** -lease_term_months
lease_right_usd: right to use at the start of an operating lease, worth its payments
    where(financing == 'operating_lease', lease_usd * (1 - lease_left_fraction), 0)
""")

MONTHLY = read_lines("""
standing: 1 while the hardware stands in the books
    where(m >= arrival_month and m < months, 1, 0)
book_first_fraction: depreciated so far of the first purchase
    min(age_months / book_life_months, 1) * (1 - book_residual_fraction)
book_refresh_fraction: depreciated so far of the replacement
    min(max(m - refresh_month, 0) / book_life_months, 1) * (1 - book_residual_fraction)
book_depreciation_usd: depreciation in the books
    in_horizon * owned_ratio * (1 - book_residual_fraction) * (first_basis_usd * (min(age_months /
        book_life_months, 1) - min(max(age_months - 1, 0) / book_life_months, 1)) + refresh_usd * (min(max(m -
        refresh_month, 0) / book_life_months, 1) - min(max(m - 1 - refresh_month, 0) / book_life_months, 1)))
book_written_off_usd: book value of hardware that leaves
    owned_ratio * (refreshing * (capex_usd - kept_basis_usd) * (1 - book_first_fraction) + ends *
        (first_basis_usd * (1 - book_first_fraction) + refresh_usd * (1 - book_refresh_fraction)))
facility_depreciation_usd: depreciation of an own data centre
    in_horizon * facility_usd * (min(age_months / months_per_year / facility_life_years, 1) - min(max(age_months -
        1, 0) / months_per_year / facility_life_years, 1))
lease_interest_usd: interest within the payments of an operating lease, during its term
    where(m > arrival_month and m <= arrival_month + lease_term_months, in_horizon, 0) * where(financing ==
        'operating_lease', lease_payment_usd * (1 - (1 + lease_rate_fraction / months_per_year) **
        (lease_paid_months - 1 - lease_term_months)), 0)
lease_cost_usd: what an operating lease costs in the books
    where(financing == 'operating_lease', where(lease_standard == 'us_gaap', own_lease_payment_usd +
        own_lease_settled_usd, lease_interest_usd + where(m > arrival_month + lease_term_months,
        own_lease_payment_usd, where(m > arrival_month, in_horizon, 0) * lease_right_usd / lease_term_months) +
        ends * lease_right_usd * max(1 - lease_paid_months / lease_term_months, 0)), 0)
own_expense_usd: what owning costs in the books, before deferred tax
    own_running_usd + own_disposal_usd + own_trade_in_usd + own_resale_usd + own_lease_returned_usd +
        book_depreciation_usd + book_written_off_usd + facility_depreciation_usd + interest_usd + lease_cost_usd +
        own_tax_usd + own_financing_tax_usd
book_hardware_usd: hardware, at the end of the month
    owned_ratio * standing * (where(refreshes > 0 and m >= refresh_month, kept_basis_usd, capex_usd) * (1 -
        book_first_fraction) + where(m >= refresh_month, refresh_usd, 0) * (1 - book_refresh_fraction))
tax_hardware_usd: hardware, as the tax return has it
    standing * owned_ratio * (where(refreshes > 0 and m >= refresh_month, kept_basis_usd, capex_usd) * (1 -
        booked_first_fraction) + where(m >= refresh_month, refresh_usd, 0) * (1 - booked_refresh_fraction))
book_facility_usd: own data centre
    standing * facility_usd * max(1 - age_months / months_per_year / facility_life_years, 0)
loan_owed_usd: owed on the loan
    standing * balance(loan_rate_fraction / months_per_year, loan_paid_months, loan_usd, loan_payment_usd)
finance_lease_owed_usd: owed on a lease that ends in a purchase
    where(financing == 'lease', standing * where(m < arrival_month + lease_term_months, lease_owed_usd, 0), 0)
lease_liability_usd: payments of an operating lease that are still to come, at the lease's rate
    standing * where(m < arrival_month + lease_term_months, 1 - owned_ratio, 0) * (lease_owed_usd -
        lease_buyout_fraction * lease_usd * (1 + lease_rate_fraction / months_per_year) ** (lease_paid_months -
        lease_term_months))
right_of_use_usd: right to use what is leased
    where(lease_standard == 'us_gaap', lease_liability_usd, standing * lease_right_usd * max(1 - lease_paid_months /
        lease_term_months, 0))
prepaid_usd: paid for what has not arrived
    where(m < arrival_month and arrival_month < months, deposit_fraction * capex_usd, 0)
payable_usd: retained of the purchase, and owed
    standing * where(m < arrival_month + retention_months, retention_fraction * capex_usd, 0)
deferred_tax_usd: tax that falls due later than the books say, less what losses carried forward will save
    (1 - after_tax_ratio) * (book_hardware_usd - tax_hardware_usd + right_of_use_usd - lease_liability_usd -
        where(loss_basis == 'at_once', 0, where(m < months, financed_loss_usd, 0)))
assets_usd: assets
    prepaid_usd + book_hardware_usd + book_facility_usd + right_of_use_usd
debts_usd: debts and deferred tax
    payable_usd + loan_owed_usd + finance_lease_owed_usd + lease_liability_usd + deferred_tax_usd
""")


class Row(NamedTuple):
    """A row of the statements: lines with their signs, each summed, taken at the end, so far, or as it changed."""

    name: str
    description: str
    block: str
    terms: tuple[tuple[int, str, str], ...]


def _row(text: str, block: str) -> Row:
    """Read `name: words = line + line - line [how]`; each line is summed over the period unless it says otherwise."""
    name, rest = text.split(":", 1)
    words, formula = rest.rsplit("=", 1)
    terms = []
    for part in formula.replace(" - ", " + -").split(" + "):
        line, _, how = part.strip().partition("@")
        terms.append((-1 if line.startswith("-") else 1, f"{line.lstrip('-')}_usd", how or "sum"))
    return Row(f"{name.strip()}_usd", words.strip(), block, tuple(terms))


_CASH = """
cash_purchase: purchases = own_servers + own_network + own_storage + own_spares + own_control_plane + own_installation \
+ own_purchase_tax + own_facility + own_refresh
cash_proceeds: resale, trade-in and disposal = own_resale + own_trade_in + own_disposal
cash_running: running costs = own_running
cash_financing: loans and leases = own_financing - own_financing_tax
cash_tax: income tax = own_tax + own_financing_tax
cash_own: cash paid for owning = own_total
cash_rent: cash paid for renting instead = rent_total
"""
_BOOKS = """
book_running: running costs = own_running
book_depreciation: depreciation = book_depreciation + facility_depreciation
book_lease: operating lease = lease_cost
book_interest: interest = interest
book_disposal: loss on disposal (negative: a gain) = book_written_off + own_disposal + own_trade_in + own_resale \
+ own_lease_returned
book_tax: income tax, paid and deferred = own_tax + own_financing_tax + deferred_tax@change
book_own: cost of owning in the books = own_expense + deferred_tax@change
book_rent: cost of renting instead = rent_total
tax_depreciation: depreciation in the tax return = depreciation + written_off
"""
_BALANCE = """
end_prepaid: paid for what has not arrived = prepaid@end
end_hardware: hardware = book_hardware@end
end_facility: own data centre = book_facility@end
end_right_of_use: right to use what is leased = right_of_use@end
end_assets: assets = assets@end
end_payable: retained of the purchase, and owed = payable@end
end_loan: loan = loan_owed@end
end_finance_lease: lease that ends in a purchase = finance_lease_owed@end
end_lease_liability: operating lease = lease_liability@end
end_deferred_tax: deferred tax = deferred_tax@end
end_debts: debts and deferred tax = debts@end
end_equity: equity, what the owners paid in less what was spent = own_total@so_far - own_expense@so_far \
- deferred_tax@end
"""
ROWS = tuple(
    _row(text, block)
    for block, rows in (("Cash", _CASH), ("Profit and loss", _BOOKS), ("Balance sheet", _BALANCE))
    for text in rows.strip().splitlines()
)
