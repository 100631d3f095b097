"""The columns of a FOCUS 1.x file (FinOps Open Cost and Usage Specification) that gpucost writes and reads."""

from gpucost.gate import beside

# written, in this order; names beginning with x_ are ours, as the specification has it
_COLUMNS = beside(__file__, "columns")[1:]
WRITTEN = tuple(row[0] for row in _COLUMNS)
NUMBERS, TIMES = (tuple(row[0] for row in _COLUMNS if row[1] == kind) for kind in ("number", "time"))
# what a file must have, and what may name a product in the order in which it is looked for
NEEDED, NAMES = (
    tuple(row[0] for row in sorted(_COLUMNS, key=lambda row: row[place]) if row[place]) for place in (2, 3)
)
UNITS = dict(beside(__file__, "units")[1:])  # that mean the same; a unit that is not here stands for itself
