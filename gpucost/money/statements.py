"""The books of owning, as formulas: what is depreciated, owed and spent by month, and what the balance sheet holds.

Hardware is depreciated straight-line over its book life (ASC 360, IAS 16). A lease that ends in a purchase is a finance
lease: the hardware and the debt stand in the books. An operating lease is a right to use and a liability for the
payments of its term (ASC 842, IFRS 16); its cost is level under US GAAP, and depreciation beside interest under IFRS;
what goes on beyond the term runs from month to month and is rent. The owners pay in all cash; what they have put in
less what was spent is equity. Taxes that differ in time from the books are deferred (ASC 740, IAS 12).
"""

from typing import NamedTuple

from gpucost.formula.language import Line, read_tables

SCALARS, MONTHLY, _ROWS = read_tables(__file__, "scalars", "monthly", "rows")


class Row(NamedTuple):
    """A row of the statements: lines with their signs, each summed, taken at the end, so far, or as it changed."""

    name: str
    description: str
    block: str
    terms: tuple[tuple[int, str, str], ...]


def _row(line: Line) -> Row:
    """Read `line + line - line@how`; each line is summed over the period unless it says otherwise."""
    terms = []
    for part in line.text.replace(" - ", " + -").split(" + "):
        name, _, how = part.partition("@")
        terms.append((-1 if name.startswith("-") else 1, f"{name.lstrip('-')}_usd", how or "sum"))
    return Row(line.name, line.description, line.group, tuple(terms))


ROWS = tuple(_row(line) for line in _ROWS)
