"""The shipped tables as plain rows of text, read without the catalog that is under test elsewhere."""

import csv
from functools import cache
from pathlib import Path

from gpucost.schemas import TABLES, Table

ROOT = Path(__file__).resolve().parents[2]


def files(table: Table) -> list[Path]:
    """Return the CSV files of a table."""
    return sorted(ROOT.glob(table.files))


@cache
def lines(path: Path) -> tuple[dict[str, str], ...]:
    """Return the rows of one CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


@cache
def rows(name: str) -> tuple[dict[str, str], ...]:
    """Return all rows of a table."""
    return tuple(row for path in files(TABLES[name]) for row in lines(path))


def row(name: str, key: str) -> dict[str, str]:
    """Return the row whose first key column holds `key`."""
    column = TABLES[name].key[0]
    return next(item for item in rows(name) if item[column] == key)


def number(cell: str) -> float | None:
    """Read a cell; an empty one is unknown."""
    return float(cell) if cell else None
