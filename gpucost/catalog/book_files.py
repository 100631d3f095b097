"""The CSV, TOML and .xlsx files of a price book as rows, each with its table and the place where it stands.

What the rows mean is catalog/book_rows.py; files of many prices are read as a whole by catalog/price_files.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from gpucost.catalog.sheets import read_sheets
from gpucost.errors import DataError, UsageError
from gpucost.gate import read_toml, shown
from gpucost.schemas import TABLES
from gpucost.units import as_number, is_slip

Row = dict[str, Any]

LARGE_BYTES = 4_000_000  # of a CSV file of prices; below it each row is read by itself, which tells more of a fault
DISCOUNTS, CREDITS, RATES = "discount", "credit", "exchange_rate"  # what a book holds beside the rows of tables
_TABLE_OF = {  # what a file, sheet or TOML part may be named after, in the singular
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
_NAMES = ("offers", "accelerators", "systems", "models", "sources", "discounts", "credits", "capacity",
    "exchange_rates")  # of files and sheets, as errors list them  # fmt: skip
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
        return value if isinstance(value, date) else date.fromisoformat(value.strip())  # a workbook has days of its own
    except ValueError:
        text = value if isinstance(value, datetime) else shown(value)
        raise UsageError(f"{text} is not a day; write it as YYYY-MM-DD") from None


def is_large(file: Path) -> bool:
    """Tell whether a CSV file is one of prices that is too large to be read row by row."""
    of_prices = file.parent.name == "offers" or file.stem.lower() in ("offers", "offer")
    return file.suffix.lower() == ".csv" and of_prices and file.is_file() and file.stat().st_size > LARGE_BYTES


def _files(book: Path) -> list[Path]:
    """Return the files that a book may consist of, in a fixed order; a book may be one file."""
    if book.is_file():
        return [book]
    paths = [*book.glob("*"), *book.glob("offers/*")]
    # Excel keeps a file that begins with ~$ beside each workbook that is open
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
    # Model, models and MODELS are one; a table's own name, such as llms, is taken too
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
        draft = Draft(table, file, str(file), number, _cells_by_column(header, line))
        if len(line) != len(header):
            raise draft.error(f"{len(line)} cells where the header has {len(header)}; quote cells that hold commas")
        yield draft


def _cells_by_column(header: Sequence[str], cells: Sequence[Any]) -> Row:
    """Return the cells that are filled, by column; columns that begin with x_ are the user's own remarks."""
    pairs = ((name, cell.strip() if isinstance(cell, str) else cell) for name, cell in zip(header, cells, strict=False))
    return {name: cell for name, cell in pairs if cell not in ("", None) and not name.startswith("x_")}


def _workbook(file: Path) -> Iterator[Draft]:
    sheets = read_sheets(file)
    for sheet in sheets:
        table = table_named(sheet.title)
        if table is None and len(sheets) == 1:  # a workbook of one sheet is that table, whatever Excel calls the sheet
            table = "offers" if file.parent.name == "offers" else table_named(file.stem) or "offers"
        if table is None:
            sheet_names = f"{', '.join(_NAMES)}; a sheet of your own begins with x_"
            raise DataError(f"has a sheet called {sheet.title!r}. Sheets are called {sheet_names}.", file=str(file))
        for number, cells in sheet.rows:
            yield Draft(table, file, f"{file}[{sheet.title}]", number, _cells_by_column(sheet.header, cells))


def _toml(file: Path) -> Iterator[Draft]:
    for name, content in read_toml(file).items():
        table = table_named(name)
        if table == RATES and isinstance(content, Mapping):  # the one part that is a table: EUR = 1.08
            content = [{"currency": currency, "usd_per_unit": rate} for currency, rate in content.items()]
        if table is None or not isinstance(content, list):
            parts = ", ".join(f"[[{part.removesuffix('s')}]]" for part in _NAMES[:-1]) + ", [exchange_rates]"
            raise DataError(f"has no part called {name!r}. Parts: {parts}.", file=str(file))
        for number, item in enumerate(content, 1):
            if not isinstance(item, Mapping):
                raise DataError(f"{name}[{number}] is {shown(item)}, no table such as [[{name}]]", file=str(file))
            values = {column: cell for column, cell in item.items() if not column.startswith("x_")}
            draft = Draft(table, file, f"{file}[{name}]", number, values)
            for column, cell in draft.values.items():
                if isinstance(cell, (list, Mapping)):  # CSV and workbooks have no nested cells: TOML gets none either
                    raise draft.error(f"expected one value, found {shown(cell)}", column)
            yield draft
