"""What renting costs, month by month, as formulas: compute by price path and terms, and services of equal scope.

The rented hours do the same productive work as the owned cluster. Per use pays the hours used; take-or-pay pays every
hour of the committed GPUs, and what is still due when the comparison ends inside a term. A price holds for its term.
"""

from gpucost.formula.language import read_tables

# A missing input is not above zero, so that the alternative stands in for it.
SCALARS, PRICES, COMPUTE, SERVICES = read_tables(__file__, "scalars", "prices", "compute", "services")
