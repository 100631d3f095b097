"""The books of owning, as formulas: what is depreciated, owed and spent by month, and what the balance sheet holds.

Hardware is depreciated straight-line over its book life (ASC 360, IAS 16). A lease that ends in a purchase is a finance
lease: the hardware and the debt stand in the books. An operating lease is a right to use and a liability for the
payments of its term (ASC 842, IFRS 16); its cost is level under US GAAP, and depreciation beside interest under IFRS;
what goes on beyond the term runs from month to month and is rent. The owners pay in all cash; what they have put in
less what was spent is equity. Taxes that differ in time from the books are deferred (ASC 740, IAS 12).
"""

from typing import NamedTuple

from gpucost.formula.language import read_tables

SCALARS, MONTHLY, _ROWS = read_tables(__file__, "scalars", "monthly", "rows")


class Row(NamedTuple):
    """A row of the statements: lines with their signs, each summed, taken at the end, so far, or as it changed."""

    name: str
    description: str
    block: str
    terms: tuple[tuple[int, str, str], ...]


# `line + line - line@how`: each line is summed over the period unless it states otherwise
_rows = []
for _line in _ROWS:
    _terms = []
    for _part in _line.text.replace(" - ", " + -").split(" + "):
        _name, _, _how = _part.partition("@")
        _terms.append((-1 if _name.startswith("-") else 1, f"{_name.lstrip('-')}_usd", _how or "sum"))
    _rows.append(Row(_line.name, _line.description, _line.group, tuple(_terms)))
ROWS = tuple(_rows)
