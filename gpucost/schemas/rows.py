"""The pydantic model that judges one row of a table: each cell by its column's kind and bounds."""

import math
import re
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from gpucost.gate import shown
from gpucost.schemas.dictionary import Column, table_of
from gpucost.units import as_number, is_slip

if TYPE_CHECKING:
    from pydantic import BaseModel

FIRST_DAY = date(1990, 1, 1)  # nothing that is kept here is older
_BEYOND = 2.0**63  # of what a table holds as a whole number
TEXT_FORMULA = r"=[^=>\s]"  # of a text, where => and == are none
_FORMULA = re.compile(r"[=@]|[+-][^0-9.]")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}([,' \u00a0\u202f]\d{3})+(\.\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
FLAGS = {"1": True, "0": False, "true": True, "false": False}


@cache
def row_model(name: str) -> "type[BaseModel]":
    """Build the pydantic model that judges one row, of cells or of typed values, of the table called `name`."""
    from pydantic import ConfigDict, create_model

    table = table_of(name)
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
        raise ValueError(f"expected text, found {shown(cell)}")
    if column.choices and cell not in column.choices:
        raise ValueError(f"{shown(cell)} is none of: {', '.join(column.choices)}")
    if re.match(TEXT_FORMULA, cell):
        raise ValueError(f"{shown(cell)} is a spreadsheet formula; write its value")
    return cell


def _read_number(cell: Any, column: Column) -> float:
    if isinstance(cell, bool):
        raise ValueError(f"expected a number, found {shown(cell)}")
    if isinstance(cell, str):
        _refuse_disguises(cell)
    try:
        value = as_number(cell)
    except (TypeError, ValueError):
        raise ValueError(f"expected a number, found {shown(cell)}") from None
    if not math.isfinite(value):
        raise ValueError(f"{shown(cell)} is not a finite number; leave the cell empty if it is unknown")
    _check_range(value, cell, column)
    return value


def _refuse_disguises(cell: str) -> None:
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
    if "_" in cell:
        raise ValueError(f"expected a number, found {shown(cell)}")


def _check_range(value: float, cell: Any, column: Column) -> None:
    if column.positive and value == 0:
        raise ValueError("zero stands for a missing value; leave the cell empty")
    if (column.positive or column.low == 0) and value < 0:
        raise ValueError(f"{cell} is negative")
    if is_slip(value):
        raise ValueError(f"{cell} is too near to 0 to be a figure; leave the cell empty if it is unknown")
    if column.low is not None and value < column.low:
        raise ValueError(f"{cell} lies below {column.low:g}, the smallest value that makes sense in this unit")
    if column.high is not None and value > column.high:
        raise ValueError(f"{cell} lies above {column.high:g}, the largest value that makes sense in this unit")
    if column.name.endswith("_fraction") and not 0 <= value <= 1:
        raise ValueError(f"{cell} is no fraction of one; 70 % is written 0.7")


def _read_integer(cell: Any, column: Column) -> int:
    value = _read_number(cell, column)
    if value != int(value):
        raise ValueError(f"expected a whole number, found {shown(cell)}")
    if abs(value) >= _BEYOND:
        raise ValueError(f"{shown(cell)} is more than any count")
    return int(cell) if isinstance(cell, (int, str)) and str(cell).lstrip("+-").isdigit() else int(value)


def _read_flag(cell: Any, column: Column) -> bool:
    if isinstance(cell, bool):
        return cell
    if str(cell).lower() not in FLAGS:
        raise ValueError(f"expected 1 or 0, found {shown(cell)}")
    return FLAGS[str(cell).lower()]


def _read_date(cell: Any, column: Column) -> date:
    value = cell
    if isinstance(cell, str):
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", cell):
            raise ValueError(f"{shown(cell)} is no day; write YYYY-MM-DD")
        try:
            value = date.fromisoformat(cell)
        except ValueError as error:
            raise ValueError(f"{shown(cell)} is no day: {error}") from None
    if not isinstance(value, date) or isinstance(value, datetime):
        raise ValueError(f"{cell} is no day; write YYYY-MM-DD")
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
