"""Prices of tomorrow: paths of rent, and what used hardware is worth by its age."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpucost.errors import DataError
from gpucost.gate import read_table
from gpucost.schemas import typed

# --- How rental prices move: paths of price ÷ price at the start, by month.

Array = NDArray[np.float64]

MOST_MONTHS = 1200  # of a century
MOST = 1e9  # GPUs in use, or USD


def flat(months: int) -> Array:
    """Return a price that stays.

    >>> flat(2).tolist()
    [1.0, 1.0]
    """
    return np.ones(months)


def through(anchor_months: Sequence[float], anchor_usd: Sequence[float], months: int) -> Array:
    """Return the path through dated prices, exponential between them and flat after the last, from 1 at the first.

    >>> through([0, 2], [8.0, 2.0], 4).round(9).tolist()
    [1.0, 0.5, 0.25, 0.25]
    """
    logs = np.interp(np.arange(months), np.asarray(anchor_months, float), np.log(np.asarray(anchor_usd, float)))
    return np.asarray(np.exp(logs - np.log(anchor_usd[0])), dtype=np.float64)


def read_curve(path: str | Path, months: int, column: str = "usd_per_gpu_hour") -> Array:
    """Read a forward curve from CSV, as `read_months`; the last value holds for later months."""
    values = read_months(path, column)
    return np.concatenate((values, np.full(max(0, months - values.size), values[-1])))[:months]


def read_resale(path: str | Path) -> list[float] | None:
    """Read resale values by year from a bought curve: the column resale_fraction at months 12, 24 …; None without it.

    A file that is shorter than a year says nothing of resale.
    """
    if "resale_fraction" not in read_table(path)[0]:
        return None
    values = read_months(path, "resale_fraction", zero_allowed=True)
    if values.size < 12:
        raise DataError("resale_fraction needs twelve months at least", file=str(path), column="resale_fraction")
    return [float(value) for value in values[11::12]]


def read_months(path: str | Path, column: str, zero_allowed: bool = False) -> Array:
    """Read one value per month from CSV: the columns `month` (1, 2, 3 … without a gap) and one of values.

    A gap, a repeated month, a cell that is no number, or a negative value is refused with its place.
    """
    rows = typed.table(
        path,
        {"month": typed.number(1, MOST_MONTHS), column: typed.number(high=MOST, above=not zero_allowed)},
        renamed_column=column,
    )
    for month, (line, row) in enumerate(rows, 1):
        if row["month"] != month:
            reason = f"month {row['month']:g} stands where {month} is expected: no gap, no repeat, beginning with 1"
            raise DataError(reason, file=str(path), row=line, column="month")
    return np.array([row[column] for _, row in rows])


# --- What used hardware is worth: curves by age, from anchors or from the fall of the price of performance.

TABLE_YEARS = 20  # formulas look values up by whole years; older hardware keeps the last value


def curve(fractions: Sequence[float]) -> Array:
    """Return value ÷ purchase price at 0, 1, 2 … years from the anchors of years 1, 2 …, and 0 after the last.

    >>> curve([0.75, 0.5])[:4].tolist()
    [1.0, 0.75, 0.5, 0.0]
    """
    values = np.zeros(TABLE_YEARS + 1)
    values[0] = 1.0
    values[1 : len(fractions) + 1] = fractions
    return values


def value_at(values: Array, age_years: float) -> float:
    """Return the value at an age, linear between whole years.

    >>> round(value_at(curve([0.75, 0.5]), 1.5), 6)
    0.625
    """
    return float(np.interp(age_years, np.arange(values.size), values))
