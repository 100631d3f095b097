"""Bills: lines of quantity × unit price, each rounded to cents, and their exact total; how a term is paid."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.answers.common import BillLine
from gpucost.formula.language import Line
from gpucost.gate import beside
from gpucost.units import HOURS_PER_MONTH

# --- A bill: lines of quantity × unit price, each rounded to cents, and their exact total, as formulas.
#
# A total of rounded lines is rounded again, so that it equals the sum of the printed lines to the last digit.

_NOTHING = 1e-9  # hours below this are binary noise: a line of them is not printed


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


def items(bill: str, part: str) -> tuple[BillItem, ...]:
    """Return the lines of a part of a bill as bills.csv lists them."""
    rows = beside(__file__, "bills")[1:]
    return tuple(BillItem(*cells) for of_bill, of_part, *cells in rows if (of_bill, of_part) == (bill, part))


def formulas(lines: Sequence[BillItem]) -> tuple[Line, ...]:
    """Return the quantity and the cost of each line as formulas: cost = quantity × unit price, to the cent."""
    formula_lines = []
    for line in lines:
        # Each line is rounded, not only the total: who adds up the printed lines must get the printed total.
        cost = f"round_cents({line.key}_quantity * {line.unit_price})"
        formula_lines.append(Line(f"{line.key}_quantity", line.quantity, f"{line.name}: quantity", unit=line.unit))
        formula_lines.append(Line(f"{line.key}_usd", cost, f"{line.name}: cost, to the cent"))
    return tuple(line._replace(group="bill") for line in formula_lines)


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


# --- How a term is paid: what is due at its start and what recurs, where a price list leaves one of them out.

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def payment_split(
    usd_per_hour: Floats,
    term_months: Floats,
    upfront_usd: Floats,
    recurring_usd_per_hour: Floats,
    all_upfront: Flags,
    partial: Flags,
) -> tuple[Floats, Floats]:
    """Fill in upfront and recurring parts that a price list leaves out; NaN stands for not stated.

    The effective price binds them: price = upfront ÷ (term × 730 h) + recurring. All upfront leaves nothing
    recurring; partial upfront is taken as half (the usual convention of reserved instances), none as zero.

    >>> one = np.array([1.0])
    >>> gap = np.array([np.nan])
    >>> [float(part[0]) for part in payment_split(2 * one, 12 * one, gap, gap, one > 0, one < 0)]
    [17520.0, 0.0]
    """
    term_hours = term_months * HOURS_PER_MONTH
    share = np.where(all_upfront, 1.0, np.where(partial, 0.5, 0.0))
    known_recurring = np.isfinite(recurring_usd_per_hour)
    from_recurring = (
        np.where(known_recurring, np.maximum(usd_per_hour - recurring_usd_per_hour, 0.0), usd_per_hour * share)
        * term_hours
    )
    upfront = np.where(np.isfinite(upfront_usd), upfront_usd, from_recurring)
    safe = np.where(term_hours > 0, term_hours, 1.0)  # by use there is no term; its upfront part is 0 all the same
    recurring = np.where(known_recurring, recurring_usd_per_hour, np.maximum(usd_per_hour - upfront / safe, 0.0))
    return upfront, recurring
