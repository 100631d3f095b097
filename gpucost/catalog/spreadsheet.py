"""Tables in an .xlsx workbook: one per sheet, its columns named by the first row that is not empty."""

from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, NamedTuple

from gpucost.errors import DataError

_OWN = "x_"  # sheets that begin so are the user's own remarks


class Sheet(NamedTuple):
    """The header of a sheet and its rows, each with its number in the sheet; an empty cell is an empty text."""

    title: str
    header: list[str]
    rows: list[tuple[int, list[Any]]]


def read_sheets(path: Path) -> list[Sheet]:
    """Read every sheet that holds something; a cell is a text, a number, a truth value or a day."""
    import zipfile
    from xml.etree.ElementTree import ParseError

    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    try:  # once for the values that were saved, once to tell a formula without a saved value from an empty cell
        values = openpyxl.load_workbook(path, read_only=True, data_only=True)
        formulas = openpyxl.load_workbook(path, read_only=True)
        titles = [sheet.title for sheet in values.worksheets if not sheet.title.lower().startswith(_OWN)]
        found = [_sheet(path, values[title], formulas[title]) for title in titles]
    except (zipfile.BadZipFile, InvalidFileException, KeyError, ParseError):
        raise DataError("is no .xlsx workbook. Save it again as .xlsx, or as CSV in UTF-8.", file=str(path)) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=str(path)) from None
    return [sheet for sheet in found if sheet is not None]


def _sheet(path: Path, values: Any, formulas: Any) -> Sheet | None:
    place = f"{path}[{values.title}]"
    rows = _filled(values, formulas, place)
    number, first = next(rows, (0, []))
    if not number:
        return None
    header = [str(cell).strip() for cell in first]
    while header and not header[-1]:
        header.pop()
    repeated = next((name for name in header if name and header.count(name) > 1), None)
    if repeated:
        raise DataError("the column appears twice", file=place, row=number, column=repeated)
    found = []
    for number, cells in rows:
        for i, cell in enumerate(cells):
            if cell != "" and (i >= len(header) or not header[i]):
                raise DataError("the column has no name in the first row", file=place, row=number, column=_letter(i))
        found.append((number, cells))
    return Sheet(values.title, header, found)


def _filled(values: Any, formulas: Any, place: str) -> Iterator[tuple[int, list[Any]]]:
    """Yield the rows that are not empty, with their numbers."""
    for number, (cells, written) in enumerate(zip(values.iter_rows(), formulas.iter_rows(), strict=True), 1):
        row = [_cell(cell, other, place, number, i) for i, (cell, other) in enumerate(zip(cells, written, strict=True))]
        if any(cell != "" for cell in row):
            yield number, row


def _cell(cell: Any, written: Any, place: str, row: int, index: int) -> Any:
    value = cell.value
    if value is None:
        if written.data_type == "f":
            reason = "the formula has no saved value; open the file in a spreadsheet program and save it"
            raise DataError(reason, file=place, row=row, column=_letter(index))
        return ""
    if cell.data_type == "e":
        raise DataError(f"the cell holds the error {value}", file=place, row=row, column=_letter(index))
    if isinstance(value, datetime):
        if value.time() != time():
            raise DataError(f"{value} is no day", file=place, row=row, column=_letter(index))
        return value.date()
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (bool, int, float, date)):
        return value
    raise DataError(f"{value!r} is neither text, number nor day", file=place, row=row, column=_letter(index))


def _letter(index: int) -> str:
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(index + 1))
