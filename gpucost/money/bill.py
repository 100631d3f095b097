"""A bill: lines of quantity × unit price, each rounded to cents, and their exact total, as formulas.

A total of rounded lines is rounded again, so that it equals the sum of the printed lines to the last digit.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpucost.answers.common import BillLine
from gpucost.formula.language import Line
from gpucost.gate import beside

_NOTHING = 1e-9  # hours below this are binary noise


class BillItem(NamedTuple):
    """One line of a bill as it is computed: what is counted, by which formula, at whose price."""

    name: str  # as printed; its columns are <name>_quantity and <name>_usd
    quantity: str  # a formula
    unit: str
    unit_price: str  # an input
    note: str = ""
    origin: str = "offer"  # who states the price

    @property
    def key(self) -> str:
        """The name that the columns of the line begin with."""
        return self.name.replace(" ", "_")


def items(of: str) -> tuple[BillItem, ...]:
    """Return the lines of a bill, or of a part of one, as bills.csv lists them."""
    return tuple(BillItem(*cells) for bill, *cells in beside(__file__, "bills")[1:] if bill == of)


def formulas(lines: Sequence[BillItem]) -> tuple[Line, ...]:
    """Return the quantity and the cost of each line as formulas: cost = quantity × unit price, to the cent."""
    found = []
    for line in lines:
        cost = f"round_cents({line.key}_quantity * {line.unit_price})"
        found.append(Line(f"{line.key}_quantity", line.quantity, f"{line.name}: quantity", unit=line.unit))
        found.append(Line(f"{line.key}_usd", cost, f"{line.name}: cost, to the cent"))
    return tuple(line._replace(group="bill") for line in found)


def total(lines: Sequence[BillItem]) -> str:
    """Return the formula of the sum of some lines, in whole cents."""
    return f"round_cents({' + '.join(f'{line.key}_usd' for line in lines)})"


def printed(lines: Sequence[BillItem], values: Mapping[str, Any]) -> list[BillLine]:
    """Return the lines of one bill as plain rows; lines of nothing are left out."""
    return [
        {
            "name": line.name,
            "quantity": values[f"{line.key}_quantity"],
            "unit": line.unit,
            "unit_price_usd": values[line.unit_price],
            "cost_usd": values[f"{line.key}_usd"],
            "source_id": "",
            "status": "derived",
            "note": line.note,
        }
        for line in lines
        if values[f"{line.key}_quantity"] > _NOTHING
    ]
