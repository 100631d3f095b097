"""Judging data that is not trusted: each bad cell is refused as file:row:column, and a bad file loads nothing."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpucost.errors import DataError
from gpucost.gate import read_bytes, repeated
from gpucost.schemas.dictionary import Table
from gpucost.schemas.rows import row_model

_OWN_COLUMN = "x_"  # columns that begin so are the user's own remarks


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing wrong with a file: where and why."""

    file: str
    row: int | None
    column: str | None
    reason: str

    def error(self) -> DataError:
        """Return the fault as an error."""
        return DataError(self.reason, file=self.file, row=self.row, column=self.column)

    @property
    def place(self) -> str:
        """Return file:row:column as far as it is known."""
        return ":".join(str(part) for part in (self.file, self.row, self.column) if part is not None)

    def __str__(self) -> str:
        return str(self.error())


def read_valid(table: Table, path: Path) -> list[dict[str, Any]]:
    """Return the typed rows of a file, or raise its first fault; nothing of a bad file is returned."""
    rows, faults = check_file(table, path)
    if faults:
        more = f" (and {len(faults) - 1} more; `gpucost data check {path}` lists them)" if len(faults) > 1 else ""
        first = faults[0]
        raise DataError(first.reason + more, file=first.file, row=first.row, column=first.column)
    return rows


def check_file(table: Table, path: Path) -> tuple[list[dict[str, Any]], list[Fault]]:
    """Return a file's typed rows and everything wrong with it, row by row and then between its rows."""
    name = str(path)
    try:
        cells = read_cells(path)
    except DataError as error:
        return [], [Fault(name, error.row, error.column, error.reason)]
    faults = _header_faults(table, name, cells)
    if faults:
        return [], faults
    header, rows = cells[0][1], []
    for number, line in cells[1:]:
        if len(line) != len(header):
            reason = f"{len(line)} cells where the header has {len(header)}; quote cells that hold commas"
            faults.append(Fault(name, number, None, reason))
            continue
        row = {column: cell for column, cell in zip(header, line, strict=True) if not column.startswith(_OWN_COLUMN)}
        typed, found = check_row(table, row, name, number)
        faults += found
        rows.append((number, typed))
    if not faults:
        faults = duplicate_faults(table, name, rows)
    return [row for _, row in rows], faults


def check_row(
    table: Table, row: Mapping[str, Any], name: str, number: int | None
) -> tuple[dict[str, Any], list[Fault]]:
    """Return one row typed, and what is wrong with its cells."""
    from pydantic import ValidationError

    try:
        return row_model(table.name).model_validate(dict(row)).model_dump(), []
    except ValidationError as error:
        found = error.errors(include_url=False)
        places = (str(item["loc"][0]) if item["loc"] else None for item in found)
        return {}, [Fault(name, number, at, _reason(table, item, row)) for at, item in zip(places, found, strict=True)]


def _reason(table: Table, item: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    column = str(item["loc"][0]) if item["loc"] else ""
    if item["type"] == "extra_forbidden":
        return unknown_column(column, table)
    if item["type"] == "value_error":
        return str(item["ctx"]["error"])
    if item["type"] == "missing":
        return "a value is required"
    return f"{item['msg']}; found {row.get(column)!r}"


def duplicate_faults(table: Table, name: str, rows: Sequence[tuple[int, Mapping[str, Any]]]) -> list[Fault]:
    """Return the rows whose key another row of the file has already."""
    seen: dict[tuple[Any, ...], int] = {}
    faults = []
    for number, row in rows:
        key = tuple(row.get(column) for column in table.key)
        if key in seen:
            reason = f"the same {', '.join(table.key)} as in row {seen[key]}; drop one of them"
            faults.append(Fault(name, number, table.key[0], reason))
        seen.setdefault(key, number)
    return faults


def read_cells(path: Path) -> list[tuple[int, list[str]]]:
    """Read a CSV file into numbered lines of cells; refuse what is not plain UTF-8 CSV."""
    name = str(path)
    text = _decoded(read_bytes(path, "limit_table_file_bytes"), name)
    if "\0" in text:
        raise DataError("holds NUL bytes, so it is no text file. Save it as CSV in UTF-8.", file=name)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines: list[tuple[int, list[str]]] = []
    start = 1  # a quoted cell may span lines: a row is named by its first
    try:
        for line in reader:
            if line:
                lines.append((start, line))
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"is not CSV: {error}", file=name, row=start) from None
    if not lines:
        raise DataError("is empty; the first row must name the columns", file=name)
    return lines


def _decoded(data: bytes, name: str) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError("is UTF-16. Save it as CSV in UTF-8.", file=name, row=1)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"is not UTF-8 (byte 0x{data[error.start]:02x}). Save it as CSV in UTF-8.", file=name, row=row
        ) from None


def _header_faults(table: Table, name: str, cells: list[tuple[int, list[str]]]) -> list[Fault]:
    header = cells[0][1]
    shared = shared_faults(name, header)
    if len(header) == 1 and shared:
        return shared
    faults = [
        Fault(name, 1, column.name, f"the column is missing; it holds: {column.description}")
        for column in table.columns
        if column.required and column.name not in header
    ]
    unknown = (column for column in header if column not in table.names and not column.startswith(_OWN_COLUMN))
    faults += [Fault(name, 1, column or None, unknown_column(column, table)) for column in unknown]
    return faults + shared


def shared_faults(name: str, header: Sequence[str]) -> list[Fault]:
    """Return what is wrong with the first row of a CSV file, whatever its table."""
    if len(header) == 1 and any(sign in header[0] for sign in ";\t"):
        reason = "the columns are separated by something else than commas. Save it as comma-separated CSV."
        return [Fault(name, 1, None, reason)]
    return [
        Fault(name, 1, column, "the column appears twice")
        for column in sorted(repeated(filter(None, header)))
        if not column.startswith(_OWN_COLUMN)
    ]


def unknown_column(column: str, table: Table) -> str:
    """Say that a table has no such column, and what may be meant."""
    import difflib

    if not column:
        return "a column has no name: give it one, or take it out"
    near = difflib.get_close_matches(column.strip().lower(), table.names, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"a column of your own must begin with {_OWN_COLUMN}"
    return f"table {table.name} has no such column; {hint}"
