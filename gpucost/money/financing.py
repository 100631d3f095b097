"""How a purchase is financed, as formulas: a loan, a lease that ends in a purchase, or one that hands back.

Rates of loans and leases are charged as rate ÷ 12 a month, as contracts state them. Ending early settles the debt.
Financing is valued apart from the purchase, at the cost of debt after tax (adjusted present value, Myers 1974), so
that a loan at the cost of debt adds nothing. A lease with a buy-out is in substance a purchase on credit: the lessee
depreciates and deducts the interest. Under an operating lease the payments are the cost, and the hardware goes back.
"""

from gpucost.formula.language import read_lines

SCALARS = read_lines("""
loan_usd: borrowed at purchase
    where(financing == 'loan', loan_fraction * capex_usd, 0)
loan_payment_usd: level payment on the loan, a month
    payment(loan_rate_fraction / months_per_year, loan_term_months, loan_usd, 0)
lease_usd: purchase that the lessor pays
    where(financing == 'lease' or financing == 'operating_lease', capex_usd, 0)
lease_payment_usd: level lease payment, a month
    payment(lease_rate_fraction / months_per_year, lease_term_months, lease_usd, lease_buyout_fraction *
        lease_usd)
debt_rate_used_fraction: cost of debt, a year, before tax
    where(debt_rate_fraction > 0, debt_rate_fraction, loan_rate_fraction)
monthly_debt_rate_fraction: cost of debt after tax, a month, at which financing is valued
    debt_rate_used_fraction / months_per_year * after_tax_ratio
""")

MONTHLY = read_lines("""
own_loan_drawn_usd: loan paid out
    -arrives * loan_usd
loan_paid_months: payments made so far
    min(max(min(m, months) - arrival_month, 0), loan_term_months)
own_loan_payment_usd: loan payments
    in_horizon * where(m > arrival_month and m <= arrival_month + loan_term_months, loan_payment_usd, 0)
own_loan_settled_usd: what is still owed at the end
    ends * balance(loan_rate_fraction / months_per_year, loan_paid_months, loan_usd, loan_payment_usd)
own_lease_drawn_usd: purchase paid by the lessor
    -arrives * lease_usd
lease_paid_months: payments made so far of the first term
    min(max(min(m, months) - arrival_month, 0), lease_term_months)
lease_owed_usd: what is still owed on the lease
    balance(lease_rate_fraction / months_per_year, lease_paid_months, lease_usd, lease_payment_usd)
own_lease_payment_usd: lease payments; an operating lease goes on at the same payment beyond its term
    in_horizon * where(m > arrival_month and (m <= arrival_month + lease_term_months or financing ==
        'operating_lease'), lease_payment_usd, 0)
own_lease_settled_usd: buy-out at the end of the lease, or what is owed if it is ended early
    where(m == min(months, arrival_month + lease_term_months), where(arrival_month < months, 1, 0), 0) *
        (lease_owed_usd - where(financing == 'operating_lease', lease_buyout_fraction * lease_usd * (1 +
        lease_rate_fraction / months_per_year) ** (lease_paid_months - lease_term_months), 0))
own_lease_returned_usd: resale that goes to the lessor
    where(financing == 'operating_lease', -own_resale_usd, 0)
""")
