"""How a purchase is financed, as formulas: a loan repaid in level payments, or a lease with a buy-out.

Rates of loans and leases are charged as rate ÷ 12 a month, as contracts state them. Ending early settles the debt.
"""

from gpucost.formula.language import read_lines

SCALARS = read_lines("""
loan_usd: borrowed at purchase
    where(financing == 'loan', loan_fraction * capex_usd, 0)
loan_payment_usd: level payment on the loan, a month
    payment(loan_rate_fraction / months_per_year, loan_term_months, loan_usd, 0)
lease_usd: purchase that the lessor pays
    where(financing == 'lease', capex_usd, 0)
lease_payment_usd: level lease payment, a month
    payment(lease_rate_fraction / months_per_year, lease_term_months, lease_usd, lease_buyout_fraction *
        lease_usd)
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
own_lease_payment_usd: lease payments
    in_horizon * where(m > arrival_month and m <= arrival_month + lease_term_months, lease_payment_usd, 0)
own_lease_settled_usd: buy-out at the end of the lease, or what is owed if it is ended early
    where(m == min(months, arrival_month + lease_term_months), where(arrival_month < months, 1, 0), 0) *
        balance(lease_rate_fraction / months_per_year, min(max(months - arrival_month, 0), lease_term_months),
        lease_usd, lease_payment_usd)
""")
