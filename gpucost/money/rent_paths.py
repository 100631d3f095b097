"""How rental prices move: paths of price ÷ price at the start, by month."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpucost.errors import DataError

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
    return np.exp(logs - np.log(anchor_usd[0]))


def read_curve(path: str | Path, months: int, what: str = "usd_per_gpu_hour") -> Array:
    """Read a forward curve from CSV: the columns `month` (1, 2, 3 … without a gap) and one of values.

    The last value holds for later months. A gap, a repeated month or a value that is not positive is refused.
    """
    rows = _rows(path, what)
    values = np.full(months, rows[-1][1])
    for position, (line, value) in enumerate(rows[:months]):
        month, price = line, value
        if month != position + 1:
            raise DataError(
                f"month {month:g} stands where month {position + 1} is expected: the curve has a gap. "
                "Write one row for each month, beginning with 1.",
                file=str(path),
                row=position + 2,
                column="month",
            )
        values[position] = price
    return values


def _rows(path: str | Path, what: str) -> list[tuple[float, float]]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as handle:
            reader = csv.DictReader(handle)
            names = [name.strip() for name in reader.fieldnames or ()]
            column = next((name for name in names if name != "month"), "")
            if "month" not in names or not column:
                raise DataError(f"columns {', '.join(names) or 'none'}; needed are month and {what}", file=str(path), row=1)
            return _numbers(path, list(reader), column)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=str(path)) from None


def _numbers(path: str | Path, rows: list[dict[str, str]], column: str) -> list[tuple[float, float]]:
    found = []
    for number, row in enumerate(rows, start=2):
        for name in ("month", column):
            text = (row.get(name) or "").strip()
            try:
                value = float(text)
            except ValueError:
                raise DataError(f"{text!r} is not a number; an empty month is a gap", file=str(path), row=number, column=name) from None
            if not np.isfinite(value) or value <= 0:
                raise DataError(f"{text!r} is not positive", file=str(path), row=number, column=name)
        found.append((float(row["month"]), float(row[column])))
    if not found:
        raise DataError("has no rows", file=str(path))
    return found
