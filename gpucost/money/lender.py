"""What a lender looks at, as formulas by month: cash available for debt service, its coverage, and debt to value.

DSCR = cash available for debt service ÷ (interest + principal), over the last twelve months. Owning has no income of
its own: the cash available is the rent that it saves, or what the plan says an hour or a million tokens earns, less
running costs, replacements and income tax before interest, which is the careful side. LTV = debt outstanding ÷ resale
value of the hardware. A loan may be sculpted: each payment is the cash available ÷ the target DSCR, and the loan is the
sum of the payments at its own rate, Σ cash_m ÷ DSCR · (1+i)^−m, which needs no iteration (Explicit Solutions for Debt
Sizing with Sculpted Repayment, Yuanta Securities Cambodia, 2025-08-04); where the share that may be borrowed is the
tighter limit, the payments shrink in one proportion.
"""

from gpucost.formula.language import read_tables

AVAILABLE, MONTHLY = read_tables(__file__, "available", "monthly")
