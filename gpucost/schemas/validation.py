"""Judging rows of the data dictionary's tables that are not trusted: each bad cell is refused as file:row:column.

Values of TOML, JSON and other small files are schemas/typed.py.
"""

import csv
import io
import math
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from gpucost.errors import DataError, nearest
from gpucost.gate import read_bytes, repeated, shown
from gpucost.schemas.dictionary import LONGEST_NAME, NAME, DataTable, TableColumn, table_of
from gpucost.units import as_number, is_slip

if TYPE_CHECKING:
    from pydantic import BaseModel


FIRST_DAY = date(1990, 1, 1)  # no price, datasheet or measurement here is older
_BEYOND = 2.0**63  # the first whole number that DuckDB's BIGINT cannot hold
TEXT_FORMULA = r"=[^=>\s]"  # of a text, where => and == are none
# of a number: = and @ begin a formula, + and - one unless a digit follows
_FORMULA = re.compile(r"[=@]|[+-][^0-9.]")
# 1,234.5 and its like, with the marks of several countries; 1,5 alone is a decimal comma
_THOUSANDS = re.compile(r"[+-]?\d{1,3}([,' \u00a0\u202f]\d{3})+(\.\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
FLAGS = {"1": True, "0": False, "true": True, "false": False}


@cache
def row_model(name: str) -> "type[BaseModel]":
    """Build the pydantic model that judges one row, of cells or of typed values, of the table called `name`."""
    from pydantic import BeforeValidator, ConfigDict, create_model

    table = table_of(name)
    fields: dict[str, Any] = {}
    for column in table.columns:
        kind: Any = {"text": str, "integer": int, "number": float, "date": date, "flag": bool}[column.kind]
        reader = BeforeValidator(_reader(column))
        if column.required:
            fields[column.name] = (Annotated[kind, reader], ...)
        else:
            fields[column.name] = (Annotated[kind | None, reader], None)
    return create_model(f"{table.name}_row", __config__=ConfigDict(extra="forbid"), **fields)


def _reader(column: TableColumn) -> Any:
    def read(cell: Any) -> Any:
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            if column.required:
                raise ValueError("a value is required" + (": name its source" if column.name == "source_id" else ""))
            return None
        return _READERS[column.kind](cell.strip() if isinstance(cell, str) else cell, column)

    return read


def cell_fault(column: TableColumn, cell: Any) -> str:
    """Say what is wrong with a cell of a column; nothing of a good one."""
    try:
        _reader(column)(cell)
    except ValueError as error:
        return str(error)
    return ""


def cell_text(column: TableColumn, value: Any) -> str | None:
    """Return a cell of any type as a text that reads as the same value; one of another type is a ValueError."""
    if isinstance(value, str):
        return value.strip() or None
    # a truth value is a number to Python: it is looked at first
    if isinstance(value, bool):
        if column.kind == "flag":
            return str(int(value))
    elif isinstance(value, (int, float)):
        if column.kind in ("number", "integer", "flag"):
            return repr(value)
    elif isinstance(value, date) and not isinstance(value, datetime) and column.kind == "date":
        return value.isoformat()
    _READERS[column.kind](value, column)  # its refusal says more than the one below
    raise ValueError(f"{shown(value)} is not a value of this column")


def _read_text(cell: Any, column: TableColumn) -> str:
    if not isinstance(cell, str):
        raise ValueError(f"expected text, found {shown(cell)}")
    if column.choices and cell not in column.choices:
        raise ValueError(f"{shown(cell)} is none of: {', '.join(column.choices)}")
    if re.match(TEXT_FORMULA, cell):
        raise ValueError(f"{shown(cell)} is a spreadsheet formula; write its value")
    if column.is_name and cell and (len(cell) > LONGEST_NAME or not re.fullmatch(NAME, cell)):
        raise ValueError(
            f"{shown(cell)} is not a name: write at most {LONGEST_NAME} characters and ten words, of letters, digits"
            " and - . _ + / ( )"
        )
    return cell


def _read_number(cell: Any, column: TableColumn) -> float:
    if isinstance(cell, bool):
        raise ValueError(f"expected a number, found {shown(cell)}")
    if isinstance(cell, str):
        # what a spreadsheet or a person writes for people: none is guessed at, each is told how to be written
        if _FORMULA.match(cell):
            raise ValueError(f"{shown(cell)} is a spreadsheet formula; write its value")
        if _THOUSANDS.fullmatch(cell):
            raise ValueError(f"{shown(cell)} has thousands separators; write {re.sub(r'[^0-9.+-]', '', cell)}")
        if _DECIMAL_COMMA.fullmatch(cell):
            raise ValueError(f"{shown(cell)} has a decimal comma; write {cell.replace(',', '.')}")
        if cell[:1] in "$€£":
            raise ValueError(f"{shown(cell)} has a currency sign; write the number in the unit that the column names")
        if cell.endswith("%"):
            raise ValueError(f"{shown(cell)} is a percentage; write a fraction of one")
        if "_" in cell:  # Python reads 1_000 as a number, no other reader of the file does
            raise ValueError(f"expected a number, found {shown(cell)}")
    try:
        value = as_number(cell)
    except (TypeError, ValueError):
        raise ValueError(f"expected a number, found {shown(cell)}") from None
    if not math.isfinite(value):
        raise ValueError(f"{shown(cell)} is not a finite number; leave the cell empty if it is unknown")
    if column.positive and value == 0:
        raise ValueError("zero stands for a missing value; leave the cell empty")
    if (column.positive or column.low == 0) and value < 0:
        raise ValueError(f"{cell} is negative")
    if is_slip(value):
        raise ValueError(f"{cell} is too close to 0 to be plausible; leave the cell empty if it is unknown")
    if column.low is not None and value < column.low:
        raise ValueError(f"{cell} lies below {column.low:g}, the smallest value that makes sense in this unit")
    if column.high is not None and value > column.high:
        raise ValueError(f"{cell} lies above {column.high:g}, the largest value that makes sense in this unit")
    if column.name.endswith("_fraction") and not 0 <= value <= 1:
        raise ValueError(f"{cell} is not a fraction of one; write 70 % as 0.7")
    return value


def _read_integer(cell: Any, column: TableColumn) -> int:
    value = _read_number(cell, column)
    if value != int(value):
        raise ValueError(f"expected a whole number, found {shown(cell)}")
    if abs(value) >= _BEYOND:
        raise ValueError(f"{shown(cell)} is more than any count")
    # a float has 53 bits: digits are read again as they stand, or large counts would change their last ones
    return int(cell) if isinstance(cell, (int, str)) and str(cell).lstrip("+-").isdigit() else int(value)


def _read_flag(cell: Any, column: TableColumn) -> bool:
    if isinstance(cell, bool):
        return cell
    if str(cell).lower() not in FLAGS:
        raise ValueError(f"expected 1 or 0, found {shown(cell)}")
    return FLAGS[str(cell).lower()]


def _read_date(cell: Any, column: TableColumn) -> date:
    value = cell
    if isinstance(cell, str):
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", cell):
            raise ValueError(f"{shown(cell)} is not a day; write YYYY-MM-DD")
        try:
            value = date.fromisoformat(cell)
        except ValueError as error:
            raise ValueError(f"{shown(cell)} is not a day: {error}") from None
    if not isinstance(value, date) or isinstance(value, datetime):
        raise ValueError(f"{cell} is not a day; write YYYY-MM-DD")
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


# --- Files of a table: a bad one loads nothing.

_OWN_COLUMN = "x_"  # columns that begin so are the user's own remarks


class Fault(Struct, frozen=True, order=True):
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


def read_valid(table: DataTable, path: Path) -> list[dict[str, Any]]:
    """Return the typed rows of a file, or raise its first fault; nothing of a bad file is returned."""
    rows, faults = check_file(table, path)
    if faults:
        more_faults = (
            f" (and {len(faults) - 1} more; `gpucost data check {path}` lists them)" if len(faults) > 1 else ""
        )
        first = faults[0]
        raise DataError(first.reason + more_faults, file=first.file, row=first.row, column=first.column)
    return rows


def check_file(table: DataTable, path: Path) -> tuple[list[dict[str, Any]], list[Fault]]:
    """Return a file's typed rows and everything wrong with it, row by row and then between its rows."""
    name = str(path)
    try:
        cells = read_cells(path)
    except DataError as error:
        return [], [Fault(name, error.row, error.column, error.reason)]
    header = cells[0][1]
    faults = shared_faults(name, header)
    if len(header) == 1 and faults:  # other separators: every column would be missing too, which says nothing
        return [], faults
    missing = [column for column in table.columns if column.required and column.name not in header]
    unknown = [column for column in header if column not in table.names and not column.startswith(_OWN_COLUMN)]
    faults = [
        *(Fault(name, 1, column.name, f"the column is missing; it holds: {column.description}") for column in missing),
        *(Fault(name, 1, column or None, unknown_column(column, table)) for column in unknown),
        *faults,
    ]
    if faults:
        return [], faults
    rows: list[dict[str, Any]] = []
    line_of_key: dict[tuple[Any, ...], int] = {}
    repetitions = []
    for number, line in cells[1:]:
        if len(line) != len(header):
            reason = f"{len(line)} cells where the header has {len(header)}; quote cells that hold commas"
            faults.append(Fault(name, number, None, reason))
            continue
        row = {column: cell for column, cell in zip(header, line, strict=True) if not column.startswith(_OWN_COLUMN)}
        typed, row_faults = check_row(table, row, name, number)
        faults += row_faults
        rows.append(typed)
        key = tuple(typed.get(column) for column in table.key)
        if key in line_of_key:
            reason = f"the same {', '.join(table.key)} as in row {line_of_key[key]}; drop one of them"
            repetitions.append(Fault(name, number, table.key[0], reason))
        line_of_key.setdefault(key, number)
    # keys of rows with bad cells are empty, and would all be the same
    return rows, faults or repetitions


def check_row(
    table: DataTable, row: Mapping[str, Any], name: str, number: int | None
) -> tuple[dict[str, Any], list[Fault]]:
    """Return one row typed, and what is wrong with its cells."""
    from pydantic import ValidationError

    try:
        return row_model(table.name).model_validate(dict(row)).model_dump(), []
    except ValidationError as error:
        errors = error.errors(include_url=False)
    faults = []
    for item in errors:
        column = str(item["loc"][0]) if item["loc"] else ""
        if item["type"] == "extra_forbidden":
            reason = unknown_column(column, table)
        elif item["type"] == "value_error":
            reason = str(item["ctx"]["error"])
        elif item["type"] == "missing":
            reason = "a value is required"
        else:
            reason = f"{item['msg']}; found {row.get(column)!r}"
        faults.append(Fault(name, number, column if item["loc"] else None, reason))
    return {}, faults


def read_cells(path: Path) -> list[tuple[int, list[str]]]:
    """Read a CSV file into numbered lines of cells; refuse what is not plain UTF-8 CSV."""
    name = str(path)
    data = read_bytes(path, "limit_table_file_bytes")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):  # what Excel calls Unicode text
        raise DataError("is UTF-16. Save it as CSV in UTF-8.", file=name, row=1)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 (byte 0x{data[error.start]:02x}). Save it as CSV in UTF-8."
        raise DataError(reason, file=name, row=data.count(b"\n", 0, error.start) + 1) from None
    if "\0" in text:
        raise DataError("contains NUL bytes, so it is not a text file. Save it as CSV in UTF-8.", file=name)
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


def unknown_column(column: str, table: DataTable, names: Collection[str] = ()) -> str:
    """Say that a table has no such column, and which of its names, or of those given, may be meant."""
    if not column:
        return "a column has no name: give it one, or take it out"
    near = nearest(column.strip().lower(), names or table.names, 2, 0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"a column of your own must begin with {_OWN_COLUMN}"
    return f"table {table.name} has no such column; {hint}"
