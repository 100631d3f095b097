"""What owning costs, month by month, as formulas: purchase, facility, energy, people, contracts, resale.

Months: m = 0 is the start. Capital is paid at the start of a month (m = 0, or when the cluster arrives, but for a
deposit and what is retained), everything else in arrears at m = 1 … months. Costs are positive, proceeds negative.
A cluster that arrives during a month works for the rest of it; until then the demand is bridged by rent. A faster
replacement is bought in fewer servers, and hours go on being those of the first ones. In the
formulas of ownership.csv `m` is the month. Inputs are described in pricing/plan_inputs.csv.
"""

from gpucost.formula.language import read_tables

SCALARS, TIMING, CAPITAL, RUNNING = read_tables(__file__, "scalars", "timing", "capital", "running")
