"""A bill: lines of quantity × unit price, each rounded to cents, and their exact total.

Whole cents are added as integers, so that the total equals the sum of the printed lines to the last digit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpucost.answers.common import BillLine

Floats = NDArray[np.float64]

CENTS_PER_USD = 100.0
_GUARD = 1e-9  # binary noise below this share of a cent must not turn 0.5 cents into 0


def round_cents(amount_usd: Floats) -> Floats:
    """Round amounts to cents, halves away from zero as an invoice does.

    >>> round_cents(np.array([0.125, 2.675, -0.005])).tolist()
    [0.13, 2.68, -0.01]
    """
    cents = np.floor(np.abs(amount_usd) * CENTS_PER_USD + 0.5 + _GUARD)
    return np.sign(amount_usd) * cents / CENTS_PER_USD


def line_cost_usd(quantity: Floats, unit_price_usd: Floats) -> Floats:
    """Return the cost of lines: quantity × unit price, rounded to cents.

    >>> line_cost_usd(np.array([192.0]), np.array([6.88])).tolist()
    [1320.96]
    """
    return round_cents(quantity * unit_price_usd)


def total_usd(costs_usd: Floats) -> Floats:
    """Add rounded lines (one row per line, one column per bill) in whole cents.

    >>> total_usd(np.array([[0.1], [0.2]])).tolist()
    [0.3]
    """
    total: Floats = np.rint(costs_usd * CENTS_PER_USD).sum(axis=0) / CENTS_PER_USD
    return total


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a bill; `unit_price_usd` is per `unit`, `source_id` says where the price stands."""

    name: str
    quantity: float
    unit: str
    unit_price_usd: float
    cost_usd: float
    source_id: str = ""
    status: str = "derived"  # given | sourced | assumed | derived
    note: str = ""

    def as_dict(self) -> BillLine:
        """Return the line as JSON-able fields."""
        return {
            "name": self.name,
            "quantity": self.quantity,
            "unit": self.unit,
            "unit_price_usd": self.unit_price_usd,
            "cost_usd": self.cost_usd,
            "source_id": self.source_id,
            "status": self.status,
            "note": self.note,
        }


def make_line(
    name: str,
    quantity: float,
    unit: str,
    unit_price_usd: float,
    *,
    source_id: str = "",
    status: str = "derived",
    note: str = "",
) -> Line:
    """Make a line whose cost is quantity × unit price to the cent.

    >>> make_line("compute", 192.0, "GPU-hour", 6.88).cost_usd
    1320.96
    """
    cost = line_cost_usd(np.array([quantity]), np.array([unit_price_usd]))
    return Line(name, quantity, unit, unit_price_usd, float(cost[0]), source_id, status, note)


def bill_total_usd(lines: Sequence[Line]) -> float:
    """Return the total of a bill: the sum of its rounded lines."""
    return float(total_usd(np.array([[line.cost_usd] for line in lines], dtype=np.float64).reshape(len(lines), 1))[0])
