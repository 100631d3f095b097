"""The tables of an .xlsx workbook from outside: one per sheet, its columns named by the first row that is not empty.

Which table of the catalog a sheet is, and what its rows mean, is said by whoever reads it.
"""

from datetime import date, datetime, time
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from gpucost.errors import DataError, UsageError
from gpucost.gate import read_bytes, repeated, shown
from gpucost.limits import limit

_REMARK_PREFIX = "x_"  # sheets that begin so are the user's own remarks


class TableSheet(NamedTuple):
    """The header of a sheet and its rows, each with its number in the sheet; an empty cell is an empty text."""

    title: str
    header: list[str]
    rows: list[tuple[int, list[Any]]]


def read_sheets(path: Path) -> list[TableSheet]:
    """Read every sheet that holds something; a cell is a text, a number, a truth value or a day."""
    import openpyxl

    data = read_bytes(path, "limit_workbook_bytes")
    has_formulas = _has_formulas(data, str(path))
    try:  # once for the values that were saved, once to tell a formula without a saved value from an empty cell
        values = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True)
        formulas = openpyxl.load_workbook(BytesIO(data), read_only=True) if has_formulas else values
        titles = [sheet.title for sheet in values.worksheets if not sheet.title.lower().startswith(_REMARK_PREFIX)]
        sheets = [_sheet(path, values[title], formulas[title]) for title in titles]
    except UsageError:
        raise
    except Exception:  # openpyxl fails in many ways over a file that is none of a spreadsheet program
        raise _not_a_workbook(str(path)) from None
    return [sheet for sheet in sheets if sheet is not None]


def _not_a_workbook(name: str) -> DataError:
    return DataError("is not an .xlsx workbook. Save it again as .xlsx, or as CSV in UTF-8.", file=name)


def _too_many(sheet: str) -> DataError:
    most = limit("limit_workbook_cells")
    return DataError(f"has more than {most:,.0f} cells; the setting limit_workbook_cells raises that", file=sheet)


def _has_formulas(data: bytes, name: str) -> bool:
    """Tell whether any sheet holds a formula; refuse what unpacks to more than it may or holds too many cells.

    The XML is searched as bytes, before openpyxl builds an object for each cell.
    """
    import zipfile

    most = limit("limit_workbook_bytes")
    try:
        with zipfile.ZipFile(BytesIO(data)) as packed:
            unpacked = sum(part.file_size for part in packed.infolist())
            if unpacked > most:
                raise DataError(
                    f"unpacks to {unpacked / 1e6:,.0f} MB, at most {most / 1e6:,.0f}; the setting limit_workbook_bytes"
                    " raises that",
                    file=name,
                )
            with_formulas, cells = False, 0
            for part in packed.namelist():
                if part.startswith("xl/worksheets/"):
                    sheet = packed.read(part)
                    with_formulas |= b"<f" in sheet  # <f> or <f t="shared" …>
                    cells += sheet.count(b"<c ")
            if cells > limit("limit_workbook_cells"):
                raise _too_many(name)
            return with_formulas
    except UsageError:
        raise
    except Exception:  # zipfile fails in as many ways as openpyxl
        raise _not_a_workbook(name) from None


def _sheet(path: Path, values: Any, formulas: Any) -> TableSheet | None:
    """Return the table of a sheet: its first row that is not empty names the columns, empty rows are left out."""
    sheet = f"{path}[{values.title}]"
    header: list[str] | None = None
    rows = []
    cells_read, most = 0, limit("limit_workbook_cells")
    if formulas is values:  # no sheet holds a formula: the workbook was opened once
        both: Any = ((row, row) for row in values.iter_rows())
    else:
        both = zip(values.iter_rows(), formulas.iter_rows(), strict=True)
    for number, (cells, written) in enumerate(both, 1):
        cells_read += len(cells) + 1  # one for the row itself: empty rows cost time too
        if cells_read > most:
            raise _too_many(sheet)
        pairs = enumerate(zip(cells, written, strict=True))
        row = [_cell(cell, formula, sheet, number, i) for i, (cell, formula) in pairs]
        if not any(cell != "" for cell in row):
            continue
        if header is None:
            header = [str(cell).strip() for cell in row]
            while header and not header[-1]:  # formatted cells beside the table
                header.pop()
            if twice := repeated(filter(None, header)):
                raise DataError("the column appears twice", file=sheet, row=number, column=twice[0])
            continue
        for i, cell in enumerate(row):
            if cell != "" and (i >= len(header) or not header[i]):
                raise DataError("the column has no name in the first row", file=sheet, row=number, column=_letter(i))
        rows.append((number, row))
    return None if header is None else TableSheet(values.title, header, rows)


def _cell(cell: Any, written: Any, sheet: str, row: int, index: int) -> Any:
    value = cell.value
    if value is None:
        # written by a program that does not calculate: the file holds the formula and no value
        if written.data_type == "f":
            reason = "the formula has no saved value; open the file in a spreadsheet program and save it"
            raise DataError(reason, file=sheet, row=row, column=_letter(index))
        return ""
    if cell.data_type == "e":
        raise DataError(f"the cell holds the error {value}", file=sheet, row=row, column=_letter(index))
    if isinstance(value, datetime):
        # a workbook keeps a day as the moment of its midnight
        if value.time() != time():
            raise DataError(f"{value} is not a day", file=sheet, row=row, column=_letter(index))
        return value.date()
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (bool, int, float, date)):
        return value
    raise DataError(f"{shown(value)} is neither text, number nor day", file=sheet, row=row, column=_letter(index))


def _letter(index: int) -> str:
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(index + 1))
