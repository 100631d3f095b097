"""The shipped tables: as plain rows of text, read without the catalog, and as catalogs that the tests share."""

import csv
import gzip
import os
from datetime import date
from functools import cache
from hashlib import blake2b
from pathlib import Path

from gpucost.catalog import Catalog, open_catalog
from gpucost.schemas import TABLES, DataTable

CHECKOUT = Path(__file__).resolve().parents[2]
ROOT = Path(os.environ.get("DATA_UNDER_TEST", CHECKOUT))  # test_growth.py runs these tests over a copy with more rows
ORIGINAL = Path(__file__).with_name("original_rows.csv.gz")


@cache
def catalog(as_of: date | str | None = None, known_as_of: str | None = None) -> Catalog:
    """Return the one catalog of a day over the tables under test."""
    return open_catalog(as_of, known_as_of, root=ROOT)


def files(table: DataTable) -> list[Path]:
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


def identity(table: DataTable, item: dict[str, str]) -> str:
    """Return what a row is known by: a hash over its key and every amount of money in it."""
    told = [*table.key, *(name for name in item if "usd" in name and name not in table.key)]
    cells = "\0".join(f"{name}={item[name]}" for name in told if item[name])
    return blake2b(cells.encode(), digest_size=6).hexdigest()


@cache
def original() -> dict[str, frozenset[str]]:
    """Return the identities of the rows that the tables began with, by table: rows may join them, none may leave."""
    found: dict[str, set[str]] = {}
    with gzip.open(ORIGINAL, "rt", encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            found.setdefault(line["table"], set()).add(line["row"])
    return {name: frozenset(rows) for name, rows in found.items()}


def original_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table that it began with."""
    return [item for item in rows(name) if identity(TABLES[name], item) in original()[name]]
