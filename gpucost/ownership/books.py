"""Statements of owning by fiscal year, quarter and month: cash, profit and loss, and a balance sheet that balances."""

from collections.abc import Mapping
from datetime import date
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpucost.answers import statements as shape
from gpucost.formula.arrays import evaluate_all
from gpucost.money.statements import MONTHLY, ROWS
from gpucost.ownership.alternatives import monthly
from gpucost.ownership.assemble import OwnershipCase

Array = NDArray[np.float64]

_NOTHING_USD = 1e-6  # what is left of a debt that is repaid is rounding


def statements(case: OwnershipCase, values: Mapping[str, Any], days: list[date]) -> shape.Statements:
    """Return the statements; `days` are those of the months, and each month belongs to the period of its day."""
    found = dict(values)
    evaluate_all(MONTHLY, found)
    lines = {name: monthly(found, name) for row in ROWS for _, name, _ in row.terms}
    last_month = int(case.special.get("fiscal_year_end_month") or 12)
    labels = [fiscal(day, last_month) for day in days]
    by = [_rows(lines, [label[length] for label in labels]) for length in range(3)]
    return {
        "fiscal_year_end_month": last_month,
        "lease_standard": str(case.assumptions["lease_standard"].value),
        "years": by[0],
        "quarters": by[1],
        "months": by[2],
    }


def fiscal(day: date, last_month: int) -> tuple[str, str, str]:
    """Return the fiscal year, quarter and month of a day; a fiscal year is called after the year in which it ends.

    >>> fiscal(date(2026, 11, 22), 6)
    ('FY2027', 'FY2027 Q2', '2026-11')
    """
    year = day.year + (day.month > last_month)
    quarter = (day.month - last_month - 1) % 12 // 3 + 1
    return f"FY{year}", f"FY{year} Q{quarter}", f"{day.year}-{day.month:02d}"


def _rows(lines: Mapping[str, Array], labels: list[str]) -> list[shape.Period]:
    rows = []
    for label in dict.fromkeys(labels):
        first = labels.index(label)
        last = len(labels) - 1 - labels[::-1].index(label)
        sums = {
            row.name: sum(sign * _taken(lines[name], how, first, last) for sign, name, how in row.terms) for row in ROWS
        }
        clean = {name: 0.0 if abs(value) < _NOTHING_USD else value for name, value in sums.items()}
        rows.append(cast(shape.Period, {"period": label, **clean}))
    return rows


def _taken(line: Array, how: str, first: int, last: int) -> float:
    if how == "end":
        return float(line[last])
    if how == "change":
        return float(line[last] - (line[first - 1] if first else 0.0))
    return float(line[0 if how == "so_far" else first : last + 1].sum())
