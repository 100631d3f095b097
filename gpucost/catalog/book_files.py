"""The CSV, TOML and .xlsx files of a price book as rows, each with its table and the place where it stands."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from gpucost.errors import DataError, UsageError
from gpucost.gate import read_bytes, read_toml, repeated, shown
from gpucost.limits import limit
from gpucost.schemas import TABLES
from gpucost.units import as_number, is_slip

Row = dict[str, Any]

LARGE_BYTES = 4_000_000  # of a CSV file of prices; below it each row is read by itself, which tells more of a fault
DISCOUNTS, CREDITS, RATES = "discount", "credit", "exchange_rate"  # what a book holds beside the rows of tables
_TABLE_OF = {  # of one or several
    "offer": "offers",
    "accelerator": "accelerators",
    "gpu": "accelerators",
    "system": "systems",
    "model": "llms",
    "source": "price_sources",
    "discount": DISCOUNTS,
    "credit": CREDITS,
    "exchange_rate": RATES,
    "capacity": "capacity",
}
_NAMES = (
    "offers",
    "accelerators",
    "systems",
    "models",
    "sources",
    "discounts",
    "credits",
    "capacity",
    "exchange_rates",
)
_KINDS = (".csv", ".toml", ".xlsx", ".parquet")


class Draft(Struct, frozen=True):
    """A row as the user wrote it, and where: the file, its sheet if it has any, the row."""

    table: str
    file: Path
    place: str
    row: int
    values: Row

    def error(self, reason: str, column: str | None = None) -> DataError:
        """Return what is wrong with the row as an error that names its place."""
        return DataError(reason, file=self.place, row=self.row, column=column)

    def number(self, column: str, requirement: str) -> float:
        """Return a cell as a number, or say what it must be."""
        value = self.values.get(column)
        try:
            if value is None or isinstance(value, bool):
                raise ValueError
            number = as_number(value)
        except (TypeError, ValueError, OverflowError):
            raise self.error(f"{requirement}, found {shown(value)}", column) from None
        if is_slip(number):
            raise self.error(f"{shown(value)} is too near to 0 to be a figure", column)
        return number


def day(value: Any) -> date:
    """Return a day as a cell of a book holds it."""
    try:
        if isinstance(value, datetime) or not isinstance(value, (date, str)):
            raise ValueError
        return value if isinstance(value, date) else date.fromisoformat(value.strip())
    except ValueError:
        text = value if isinstance(value, datetime) else shown(value)
        raise UsageError(f"{text} is not a day; write it as YYYY-MM-DD") from None


def is_large(file: Path) -> bool:
    """Tell whether a CSV file is one of prices that is too large to be read row by row."""
    named = file.parent.name == "offers" or file.stem.lower() in ("offers", "offer")
    return file.suffix.lower() == ".csv" and named and file.is_file() and file.stat().st_size > LARGE_BYTES


def _files(book: Path) -> list[Path]:
    """Return the files that a book may consist of, in a fixed order; a book may be one file."""
    if book.is_file():
        return [book]
    paths = [*book.glob("*"), *book.glob("offers/*")]
    return sorted(path for path in paths if path.suffix.lower() in _KINDS and not path.name.startswith(("~$", ".")))


def book_files(book: Path) -> list[Path]:
    """Return the CSV, TOML and .xlsx files of a book."""
    for path in parquet_files(book):
        if path != book and path.parent.name != "offers" and table_named(path.stem) != "offers":
            raise DataError("a book's Parquet files hold prices and are called offers.parquet", file=str(path))
    return [path for path in _files(book) if path.suffix.lower() != ".parquet" and not is_large(path)]


def large_files(book: Path) -> list[Path]:
    """Return a book's CSV files of prices that are too large to be read row by row."""
    return [path for path in _files(book) if is_large(path)]


def parquet_files(book: Path) -> list[Path]:
    """Return a book's price files in Parquet, with the columns of the table `offers`: they are read where they lie."""
    return [path for path in _files(book) if path.suffix.lower() == ".parquet"]


def table_named(name: str) -> str | None:
    """Return the table that a file, a sheet or a TOML part is named after; None where there is none.

    >>> table_named("Models"), table_named("offers"), table_named("Sheet1")
    ('llms', 'offers', None)
    """
    name_of_rows = name.strip().lower().replace(" ", "_")
    return _TABLE_OF.get(name_of_rows.removesuffix("s"), name_of_rows if name_of_rows in TABLES else None)


def drafts_of(file: Path) -> Iterator[Draft]:
    """Yield the rows that a file of a book holds."""
    kind = {".toml": _toml, ".xlsx": _workbook}.get(file.suffix.lower(), _csv)
    yield from kind(file)


def _csv(file: Path) -> Iterator[Draft]:
    from gpucost.schemas.validation import read_cells, shared_faults

    table = "offers" if file.parent.name == "offers" else table_named(file.stem)
    if table is None:
        file_names = ", ".join(f"{name}.csv" for name in _NAMES)
        raise DataError(f"a book's CSV files are called {file_names}", file=str(file))
    (_, header), *lines = read_cells(file)
    header = [name.strip() for name in header]
    for fault in shared_faults(str(file), header):
        raise fault.error()
    for number, line in lines:
        if not any(map(str.strip, line)):  # below its rows a spreadsheet leaves empty ones
            continue
        draft = Draft(table, file, str(file), number, _own_left_out(header, line))
        if len(line) != len(header):
            raise draft.error(f"{len(line)} cells where the header has {len(header)}; quote cells that hold commas")
        yield draft


def _own_left_out(header: Sequence[str], cells: Sequence[Any]) -> Row:
    pairs = ((name, cell.strip() if isinstance(cell, str) else cell) for name, cell in zip(header, cells, strict=False))
    return {name: cell for name, cell in pairs if cell not in ("", None) and not name.startswith("x_")}


def _workbook(file: Path) -> Iterator[Draft]:

    sheets = read_sheets(file)
    for sheet in sheets:
        table = table_named(sheet.title)
        if table is None and len(sheets) == 1:
            table = "offers" if file.parent.name == "offers" else table_named(file.stem) or "offers"
        if table is None:
            sheet_names = f"{', '.join(_NAMES)}; a sheet of your own begins with x_"
            raise DataError(f"has a sheet called {sheet.title!r}. Sheets are called {sheet_names}.", file=str(file))
        for number, cells in sheet.rows:
            yield Draft(table, file, f"{file}[{sheet.title}]", number, _own_left_out(sheet.header, cells))


def _toml(file: Path) -> Iterator[Draft]:
    for name, content in read_toml(file).items():
        table = table_named(name)
        if table == RATES and isinstance(content, Mapping):
            content = [{"currency": currency, "usd_per_unit": rate} for currency, rate in content.items()]
        if table is None or not isinstance(content, list):
            parts = ", ".join(f"[[{part.removesuffix('s')}]]" for part in _NAMES[:-1]) + ", [exchange_rates]"
            raise DataError(f"has no part called {name!r}. Parts: {parts}.", file=str(file))
        for number, item in enumerate(content, 1):
            if not isinstance(item, Mapping):
                raise DataError(f"{name}[{number}] is {shown(item)}, no table such as [[{name}]]", file=str(file))
            draft = Draft(table, file, f"{file}[{name}]", number, {k: v for k, v in item.items() if k[:2] != "x_"})
            for column, cell in draft.values.items():
                if isinstance(cell, (list, Mapping)):
                    raise draft.error(f"expected one value, found {shown(cell)}", column)
            yield draft


# --- Tables in an .xlsx workbook: one per sheet, its columns named by the first row that is not empty.

_REMARK_PREFIX = "x_"  # sheets that begin so are the user's own remarks


class BookSheet(NamedTuple):
    """The header of a sheet and its rows, each with its number in the sheet; an empty cell is an empty text."""

    title: str
    header: list[str]
    rows: list[tuple[int, list[Any]]]


def read_sheets(path: Path) -> list[BookSheet]:
    """Read every sheet that holds something; a cell is a text, a number, a truth value or a day."""
    import openpyxl

    data = read_bytes(path, "limit_workbook_bytes")
    with_formulas = looked_into(data, str(path))
    try:  # once for the values that were saved, once to tell a formula without a saved value from an empty cell
        values = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True)
        formulas = openpyxl.load_workbook(BytesIO(data), read_only=True) if with_formulas else values
        titles = [sheet.title for sheet in values.worksheets if not sheet.title.lower().startswith(_REMARK_PREFIX)]
        sheets = [_sheet(path, values[title], formulas[title]) for title in titles]
    except UsageError:
        raise
    except Exception:  # openpyxl fails in many ways over a file that is none of a spreadsheet program
        raise _no_workbook(str(path)) from None
    return [sheet for sheet in sheets if sheet is not None]


def _no_workbook(name: str) -> DataError:
    return DataError("is not an .xlsx workbook. Save it again as .xlsx, or as CSV in UTF-8.", file=name)


def _too_many(sheet: str) -> DataError:
    most = limit("limit_workbook_cells")
    return DataError(f"has more than {most:,.0f} cells; the setting limit_workbook_cells raises that", file=sheet)


def looked_into(data: bytes, name: str) -> bool:
    """Refuse what unpacks to more than it may, or holds more cells; tell whether any sheet holds a formula."""
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
                    with_formulas |= b"<f" in sheet
                    cells += sheet.count(b"<c ")
            if cells > limit("limit_workbook_cells"):
                raise _too_many(name)
            return with_formulas
    except UsageError:
        raise
    except Exception:  # as above
        raise _no_workbook(name) from None


def _sheet(path: Path, values: Any, formulas: Any) -> BookSheet | None:
    sheet = f"{path}[{values.title}]"
    rows = _filled(values, formulas, sheet)
    number, first = next(rows, (0, []))
    if not number:
        return None
    header = [str(cell).strip() for cell in first]
    while header and not header[-1]:
        header.pop()
    if twice := repeated(filter(None, header)):
        raise DataError("the column appears twice", file=sheet, row=number, column=twice[0])
    numbered = []
    for number, cells in rows:
        for i, cell in enumerate(cells):
            if cell != "" and (i >= len(header) or not header[i]):
                raise DataError("the column has no name in the first row", file=sheet, row=number, column=_letter(i))
        numbered.append((number, cells))
    return BookSheet(values.title, header, numbered)


def _filled(values: Any, formulas: Any, sheet: str) -> Iterator[tuple[int, list[Any]]]:
    """Yield the rows that are not empty, with their numbers."""
    cells_read, most = 0, limit("limit_workbook_cells")
    same = formulas is values  # there is no formula
    both: Any = ((row, row) for row in values.iter_rows())
    if not same:
        both = zip(values.iter_rows(), formulas.iter_rows(), strict=True)
    for number, (cells, written) in enumerate(both, 1):
        cells_read += len(cells) + 1
        if cells_read > most:
            raise _too_many(sheet)
        row = [
            _cell(cell, formula, sheet, number, i) for i, (cell, formula) in enumerate(zip(cells, written, strict=True))
        ]
        if any(cell != "" for cell in row):
            yield number, row


def _cell(cell: Any, written: Any, sheet: str, row: int, index: int) -> Any:
    value = cell.value
    if value is None:
        if written.data_type == "f":
            reason = "the formula has no saved value; open the file in a spreadsheet program and save it"
            raise DataError(reason, file=sheet, row=row, column=_letter(index))
        return ""
    if cell.data_type == "e":
        raise DataError(f"the cell holds the error {value}", file=sheet, row=row, column=_letter(index))
    if isinstance(value, datetime):
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
