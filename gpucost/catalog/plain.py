"""A small table straight from its CSV file: for some hundred rows Python's own reader is quicker than a database."""

import csv
from collections.abc import Callable, Sequence
from datetime import date
from io import StringIO
from typing import Any

from gpucost.catalog.paths import Contents
from gpucost.schemas import Table

_FLAGS = {"1": True, "0": False, "true": True, "false": False, "True": True, "False": False}
_CELLS: dict[str, Callable[[str], Any] | None] = {
    "text": None,
    "integer": int,
    "number": float,
    "date": date.fromisoformat,
    "flag": _FLAGS.__getitem__,
}


def plain_rows(table: Table, contents: Contents) -> list[dict[str, Any]] | None:
    """Return a table's rows, an empty cell as None; None where anything is unusual, for the database to judge."""
    if len(contents.files) != 1:
        return None
    names = table.names
    try:
        lines = csv.reader(StringIO(contents.joined.decode("utf-8"), newline=""), strict=True)
        if tuple(next(lines)) != names:
            return None
        columns = list(zip(*lines, strict=True))
        if not columns or len(columns) != len(names):
            return None
        read = [read_column(column.kind, cells) for column, cells in zip(table.columns, columns, strict=True)]
    except (ValueError, KeyError, StopIteration, csv.Error):
        return None
    return [dict(zip(names, row, strict=True)) for row in zip(*read, strict=True)]


def read_column(kind: str, cells: Sequence[str]) -> list[Any]:
    """Read the cells of one column by its kind; an empty cell is None."""
    make = _CELLS[kind]
    return [cell or None for cell in cells] if make is None else [make(cell) if cell else None for cell in cells]
