"""How a purchase is financed, as formulas: a loan, a lease that ends in a purchase, or one that hands back.

Rates of loans and leases are charged as rate ÷ 12 a month, as contracts state them. Ending early settles the debt.
Financing is valued apart from the purchase, at the cost of debt after tax (adjusted present value, Myers 1974), so
that a loan at the cost of debt adds nothing. A lease with a buy-out is in substance a purchase on credit: the lessee
depreciates and deducts the interest. Under an operating lease the payments are the cost, and the hardware goes back.
"""

from gpucost.formula.language import read_tables

SCALARS, MONTHLY = read_tables(__file__, "scalars", "monthly")
