"""How rental prices move: paths of price ÷ price at the start, by month."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpucost.errors import DataError
from gpucost.gate import read_rows, shown

Array = NDArray[np.float64]


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


def read_curve(path: str | Path, months: int, what: str = "usd_per_gpu_hour") -> Array:
    """Read a forward curve from CSV, as `read_months`; the last value holds for later months."""
    values = read_months(path, what)
    return np.concatenate((values, np.full(max(0, months - values.size), values[-1])))[:months]


def read_months(path: str | Path, what: str, zero_allowed: bool = False) -> Array:
    """Read one value per month from CSV: the columns `month` (1, 2, 3 … without a gap) and one of values.

    A gap, a repeated month, a cell that is no number, or a negative value is refused with its place.
    """
    rows = _rows(path, what)
    values = []
    for position, (month_text, text) in enumerate(rows):
        month, value = (_number(path, position + 2, *cell) for cell in (("month", month_text), (what, text)))
        if month != position + 1:
            reason = (
                f"month {month:g} stands where month {position + 1} is expected: no gap, no repeat, beginning with 1"
            )
            raise DataError(reason, file=str(path), row=position + 2, column="month")
        if value < 0 or (value == 0 and not zero_allowed):
            raise DataError(f"{shown(text)} is not positive", file=str(path), row=position + 2, column=what)
        values.append(value)
    return np.array(values)


def _rows(path: str | Path, what: str) -> list[tuple[str, str]]:
    rows = read_rows(path)
    header = rows[0] if rows else []
    column = next((index for index, name in enumerate(header) if name != "month"), None)
    if "month" not in header or column is None:
        raise DataError(
            f"the columns are {', '.join(header) or 'none'}; needed are month and {what}", file=str(path), row=1
        )
    if len(rows) == 1:
        raise DataError("has no rows below its header", file=str(path))
    month = header.index("month")
    return [(_cell(row, month), _cell(row, column)) for row in rows[1:]]


def _cell(row: list[str], index: int) -> str:
    return row[index] if index < len(row) else ""


def _number(path: str | Path, row: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        reason = "the cell is empty: a gap" if not text else f"{shown(text)} is not a number"
        raise DataError(reason, file=str(path), row=row, column=column)
    return value
