"""Judging data that is not trusted: each bad cell is refused as file:row:column, and a bad file loads nothing.

Rows are the lines of the file: the header is row 1.
"""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from gpucost.errors import DataError
from gpucost.schemas import Column, Table, row_model

if TYPE_CHECKING:
    from pydantic import BaseModel

FIRST_DAY = date(1990, 1, 1)  # nothing that is kept here is older
_OWN_COLUMN = "x_"  # columns that begin so are the user's own remarks
_FORMULA = re.compile(r"[=@]|[+-][^0-9.]")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}([,' \u00a0\u202f]\d{3})+(\.\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_FLAGS = {"1": True, "0": False, "true": True, "false": False}


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
            faults.append(
                Fault(
                    name,
                    number,
                    None,
                    f"{len(line)} cells where the header has {len(header)}; quote cells that hold commas",
                )
            )
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
        faults = []
        for item in error.errors(include_url=False):
            column = str(item["loc"][0]) if item["loc"] else None
            faults.append(Fault(name, number, column, _reason(item, row.get(column) if column else None)))
        return {}, faults


def _reason(item: Mapping[str, Any], cell: Any) -> str:
    if item["type"] == "value_error":
        return str(item["ctx"]["error"])
    if item["type"] == "missing":
        return "a value is required"
    return f"{item['msg']}; found {cell!r}"


def duplicate_faults(table: Table, name: str, rows: Sequence[tuple[int, Mapping[str, Any]]]) -> list[Fault]:
    """Return the rows whose key another row of the file has already."""
    seen: dict[tuple[Any, ...], int] = {}
    faults = []
    for number, row in rows:
        key = tuple(row.get(column) for column in table.key)
        if key in seen:
            faults.append(
                Fault(
                    name,
                    number,
                    table.key[0],
                    f"the same {', '.join(table.key)} as in row {seen[key]}; drop one of them",
                )
            )
        seen.setdefault(key, number)
    return faults


def read_cells(path: Path) -> list[tuple[int, list[str]]]:
    """Read a CSV file into numbered lines of cells; refuse what is not plain UTF-8 CSV."""
    name = str(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=name) from None
    text = _decoded(data, name)
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
    known = list(table.names)
    if len(header) == 1 and any(sign in header[0] for sign in ";\t"):
        return [
            Fault(
                name,
                1,
                None,
                "the columns are separated by something else than commas. Save it as comma-separated CSV.",
            )
        ]
    faults = [
        Fault(name, 1, column.name, f"the column is missing; it holds: {column.description}")
        for column in table.columns
        if column.required and column.name not in header
    ]
    for column in header:
        if column not in known and not column.startswith(_OWN_COLUMN):
            faults.append(Fault(name, 1, column or None, _unknown_column(column, table, known)))
    repeated = {column for column in header if header.count(column) > 1}
    return faults + [Fault(name, 1, column, "the column appears twice") for column in sorted(repeated)]


def _unknown_column(column: str, table: Table, known: Sequence[str]) -> str:
    import difflib

    near = difflib.get_close_matches(column.strip().lower(), known, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"a column of your own must begin with {_OWN_COLUMN}"
    return f"table {table.name} has no such column; {hint}"


# --- the pydantic model of a row


def build_row_model(table: Table) -> "type[BaseModel]":
    """Build the pydantic model that judges a row of cells or of typed values."""
    from pydantic import ConfigDict, create_model

    fields: dict[str, Any] = {}
    for column in table.columns:
        fields[column.name] = (_judged(column), ... if column.required else None)
    return create_model(f"{table.name}_row", __config__=ConfigDict(extra="forbid"), **fields)


def _judged(column: Column) -> Any:
    from pydantic import BeforeValidator

    return Annotated[_python_type(column), BeforeValidator(_reader(column))]


def _python_type(column: Column) -> Any:
    kind = {"text": str, "integer": int, "number": float, "date": date, "flag": bool}[column.kind]
    return kind if column.required else kind | None


def _reader(column: Column) -> Any:
    def read(cell: Any) -> Any:
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            if column.required:
                raise ValueError("a value is required" + (": name its source" if column.name == "source_id" else ""))
            return None
        return _READERS[column.kind](cell.strip() if isinstance(cell, str) else cell, column)

    return read


def _read_text(cell: Any, column: Column) -> str:
    if not isinstance(cell, str):
        raise ValueError(f"expected text, found {cell!r}")
    if column.choices and cell not in column.choices:
        raise ValueError(f"{cell!r} is none of: {', '.join(column.choices)}")
    if re.match(r"=[A-Za-z(\"+-]", cell):
        raise ValueError(f"{cell!r} is a spreadsheet formula; write its value")
    return cell


def _read_number(cell: Any, column: Column) -> float:
    if isinstance(cell, bool):
        raise ValueError(f"expected a number, found {cell!r}")
    if isinstance(cell, str):
        _refuse_disguises(cell)
    try:
        value = float(cell)
    except (TypeError, ValueError):
        raise ValueError(f"expected a number, found {cell!r}") from None
    if not math.isfinite(value):
        raise ValueError(f"{cell!r} is not a finite number; leave the cell empty if it is unknown")
    _check_range(value, cell, column)
    return value


def _refuse_disguises(cell: str) -> None:
    if _FORMULA.match(cell):
        raise ValueError(f"{cell!r} is a spreadsheet formula; write its value")
    if _THOUSANDS.fullmatch(cell):
        raise ValueError(f"{cell!r} has thousands separators; write {re.sub(r'[^0-9.+-]', '', cell)}")
    if _DECIMAL_COMMA.fullmatch(cell):
        raise ValueError(f"{cell!r} has a decimal comma; write {cell.replace(',', '.')}")
    if cell[:1] in "$€£":
        raise ValueError(f"{cell!r} has a currency sign; write the number in the unit that the column names")
    if cell.endswith("%"):
        raise ValueError(f"{cell!r} is a percentage; write a fraction of one")
    if "_" in cell:
        raise ValueError(f"expected a number, found {cell!r}")


def _check_range(value: float, cell: Any, column: Column) -> None:
    if column.positive and value == 0:
        raise ValueError("zero stands for a missing value; leave the cell empty")
    if (column.positive or column.low == 0) and value < 0:
        raise ValueError(f"{cell} is negative")
    if column.low is not None and value < column.low:
        raise ValueError(f"{cell} lies below {column.low:g}, the smallest value that makes sense in this unit")
    if column.high is not None and value > column.high:
        raise ValueError(f"{cell} lies above {column.high:g}, the largest value that makes sense in this unit")
    if column.name.endswith("_fraction") and not 0 <= value <= 1:
        raise ValueError(f"{cell} is no fraction of one; 70 % is written 0.7")


def _read_integer(cell: Any, column: Column) -> int:
    value = _read_number(cell, column)
    if value != int(value):
        raise ValueError(f"expected a whole number, found {cell!r}")
    return int(cell) if isinstance(cell, (int, str)) and str(cell).lstrip("+-").isdigit() else int(value)


def _read_flag(cell: Any, column: Column) -> bool:
    if isinstance(cell, bool):
        return cell
    if str(cell).lower() not in _FLAGS:
        raise ValueError(f"expected 1 or 0, found {cell!r}")
    return _FLAGS[str(cell).lower()]


def _read_date(cell: Any, column: Column) -> date:
    value = cell
    if isinstance(cell, str):
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", cell):
            raise ValueError(f"{cell!r} is no day; write YYYY-MM-DD")
        try:
            value = date.fromisoformat(cell)
        except ValueError as error:
            raise ValueError(f"{cell!r} is no day: {error}") from None
    if not isinstance(value, date):
        raise ValueError(f"{cell!r} is no day; write YYYY-MM-DD")
    if value < FIRST_DAY:
        raise ValueError(f"{cell} lies before {FIRST_DAY}; is the year right?")
    return value


_READERS = {
    "text": _read_text,
    "number": _read_number,
    "integer": _read_integer,
    "flag": _read_flag,
    "date": _read_date,
}
