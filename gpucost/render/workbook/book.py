"""A thin layer over XlsxWriter: rows from top to bottom (constant memory), one format per unit, names for cells."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from gpucost.errors import UsageError
from gpucost.formula.spreadsheet import PART
from gpucost.render.document import MISSING, visible
from gpucost.render.wording import without_commands

_LIKELY = "Static: computed for the inputs as delivered."
_STALE = "Static and out of date: inputs have changed since this was computed."
_BANNER = f'IF(inputs_changed>0,"{_STALE}","{_LIKELY}")'


THOUSANDS = "USD thousands"  # a figure in USD, shown in thousands
MILLIONS = "USD millions, decimals "  # a figure in USD, shown in millions with so many decimals
_MANY_USD = 1e6  # from which statements are read in thousands
POSSIBLE = "share that exists"  # a fraction that means nothing above one: shown as none
_LINE_HEIGHT = 15  # points
_HUGE_USD = 1e6  # from which nobody looks for cents
_LARGE_USD = 1000  # from which a price is shown in cents
_WORDS_RATIO = 0.75  # of a row's width that whole words fill at least
_MOST_ROWS, _MOST_COLUMNS, _LONGEST_TEXT = 1 << 20, 1 << 14, 32_000  # of a sheet; characters of a cell
_FAR_COLUMN = 1 << 12  # in which nothing is written
_USUAL_WIDTH = 13  # characters of a column for which no width is stated
_PAGE_PIXELS = 988  # between the margins of A4 across, at 96 to the inch
_UPRIGHT_PIXELS = 660  # of A4 upright
_LEAST_SCALE = 73  # percent: 11 points become 8


class Formula(Struct, frozen=True):
    """A live cell: its text without "=", and the value that Python found for it."""

    text: str
    value: Any = 0.0


class Cell(Struct, frozen=True):
    """A value or formula with the style and unit that decide its format."""

    value: Any
    style: str = "plain"
    unit: str = ""


_STYLES: dict[str, dict[str, Any]] = {
    "plain": {"valign": "top"},
    "title": {"bold": True, "font_size": 18},
    "heading": {"bold": True, "font_size": 12, "bottom": 1},
    "head": {"bold": True, "bg_color": "#E7ECF2", "bottom": 1, "text_wrap": True, "valign": "top"},
    "head words": {"bold": True, "bg_color": "#E7ECF2", "bottom": 1, "valign": "top", "align": "left", "indent": 1},
    "head line": {"bold": True, "bg_color": "#E7ECF2", "bottom": 1, "valign": "top"},
    "head right": {
        "bold": True,
        "bg_color": "#E7ECF2",
        "bottom": 1,
        "text_wrap": True,
        "valign": "top",
        "align": "right",
    },
    "input": {"valign": "top", "font_color": "#0000FF", "bg_color": "#FFFBD6", "border": 1, "border_color": "#C9C9C9"},
    "shade": {"valign": "top", "font_color": "#666666"},
    "answer": {"valign": "top", "bold": True, "top": 1, "bottom": 1},
    "wrap": {"text_wrap": True, "valign": "top"},
    "words": {"valign": "top", "align": "left", "indent": 1},  # beside a figure
    "unit": {"valign": "top", "align": "left", "font_color": "#666666", "indent": 1},
    "source": {"font_color": "#666666", "text_wrap": True, "valign": "top"},
    "note": {"italic": True, "font_color": "#666666"},
    "question": {"bold": True, "font_color": "#0B57A4"},
    "said": {"text_wrap": True, "valign": "top", "font_size": 11},
    "decided": {"text_wrap": True, "valign": "top", "bold": True, "font_size": 12},
    "key": {"font_color": "#525A64", "bottom": 4, "bottom_color": "#C9C9C9"},
    "figure": {"bold": True, "align": "right", "bottom": 4, "bottom_color": "#C9C9C9"},
    "cell": {"valign": "top", "text_wrap": True, "align": "left"},
    "right": {"valign": "top", "align": "right"},
}


def number_format(unit: str, value: Any) -> str:
    """Choose how a number is shown; the cell keeps the whole number."""
    if unit == POSSIBLE:
        return '[>1]"none";[<0]"none";0.0%'
    if unit == "fraction of one":
        return "0.0%"
    if unit == PART:  # of any size
        return "0.000E+00"
    if unit == "year":
        return '"year "0'
    if unit == "USD in whole":
        return "#,##0"
    if unit == THOUSANDS:
        return "#,##0.0,"
    if unit.startswith(MILLIONS):
        decimals = int(unit.removeprefix(MILLIONS) or 0)
        shown = f'"$"#,##0.{"0" * decimals},,"M"'
        return f"{shown};-{shown}"
    if unit == "USD per hour, cents":
        return '"$"#,##0.00'
    if unit == "dollars":
        return '"$"#,##0;-"$"#,##0'
    if unit == "USD":
        huge = isinstance(value, (int, float)) and abs(value) >= _HUGE_USD
        return "#,##0" if huge else "#,##0.00"
    if unit.startswith("USD per"):
        large = isinstance(value, (int, float)) and abs(value) >= _LARGE_USD
        return "#,##0.00" if large else "#,##0.0000"
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return "General"
    if value == int(value):
        return "#,##0" if abs(value) < 1e15 else "0.000E+00"
    return "#,##0.00" if abs(value) >= 1 else "0.0000" if abs(value) >= 1e-3 else "0.00E+00"


@contextmanager
def new_workbook(path: str) -> Iterator["Workbook"]:
    """Hand out a workbook that replaces a file once it is closed; what it lays aside meanwhile goes in any case."""
    from gpucost.store.files import SpareFolder, replacing

    with replacing(path) as temporary, SpareFolder() as aside:
        yield Workbook(str(temporary), aside)


class Workbook:
    """One workbook under construction."""

    def __init__(self, path: str, aside: str | None = None) -> None:
        import xlsxwriter

        options = {
            "tmpdir": aside,
            "constant_memory": True,
            "strings_to_formulas": False,  # imported text never becomes a formula or a link
            "strings_to_urls": False,
            "strings_to_numbers": False,
        }
        self.file = xlsxwriter.Workbook(path, options)
        self.file.set_calc_mode("auto")
        self._formats: dict[tuple[str, str], Any] = {}
        self.live = True  # whether it has inputs that other cells follow
        self.sheets: dict[str, Sheet] = {}

    def sheet(self, name: str, widths: Sequence[float] = ()) -> "Sheet":
        """Add a sheet; sheets appear in the order in which they are added."""
        sheet = Sheet(self, name, widths)
        self.sheets[name] = sheet
        return sheet

    def define(self, name: str, sheet: str, row: int, column: int, last_row: int | None = None) -> None:
        """Name a cell, or a range within one column."""
        address = f"${column_letters(column)}${row + 1}"
        if last_row is not None:
            address += f":${column_letters(column)}${last_row + 1}"
        self.file.define_name(name, f"='{sheet}'!{address}")

    def format(self, style: str, number: str) -> Any:
        """Return the format of a style and a number format; each is made once."""
        key = (style, number)
        if key not in self._formats:
            properties = dict(_STYLES[style])
            if number:
                properties["num_format"] = number
            self._formats[key] = self.file.add_format(properties)
        return self._formats[key]

    def close(self) -> None:
        """Write the file; what a sheet prints is what was written on it, but for what it decided itself."""
        for sheet in self.sheets.values():
            sheet.print_legibly()
            if not sheet.page.print_area_range and sheet.widest:
                sheet.page.print_area(0, 0, max(sheet.next_row - 1, 0), sheet.widest)
        from xlsxwriter.exceptions import FileCreateError

        try:
            self.file.close()
        except FileCreateError as error:  # what the system refused stands in it
            raise error.args[0] from None


class Sheet:
    """One sheet, written row by row."""

    def __init__(self, book: Workbook, name: str, widths: Sequence[float]) -> None:
        self.book, self.name = book, name
        self.page = book.file.add_worksheet(name)
        # XlsxWriter looks for newer Excel functions in every formula with two dozen patterns, 90 % of the time of a
        # book with 100,000 formulas. Ours use none of them.
        self.page._prepare_formula = _bare
        self.next_row, self.widest, self.widths = 0, 0, tuple(widths)
        for column, width in enumerate(widths):
            self.page.set_column(column, column, width)
        self.page.set_landscape()
        self.page.set_paper(9)
        self.page.fit_to_pages(1, 0)
        self.page.set_footer("&L&A&RPage &P of &N")
        self.page.hide_gridlines(2)

    def row(self, *cells: Any) -> int:
        """Write the next row, high enough for what wraps in it, and return its index; a cell is a value or a Cell."""
        row = self.next_row
        self.refuse_beyond(row + 1, len(cells))
        wrapped = [
            -(-len(str(cell.value)) // max(int(self.widths[column]) - 1, 1))
            for column, cell in enumerate(cells[: len(self.widths)])
            if isinstance(cell, Cell) and _STYLES[cell.style].get("text_wrap") and isinstance(cell.value, str)
        ]
        if max(wrapped, default=1) > 1:
            self.page.set_row(row, _LINE_HEIGHT * max(wrapped))
        self.widest = max(self.widest, len(cells) - 1)
        for column, cell in enumerate(cells):
            if cell is not None:
                self._cell(row, column, cell if isinstance(cell, Cell) else Cell(cell))
        self.next_row += 1
        return row

    def stand_upright(self) -> None:
        """Print on paper upright where all columns fit across it with letters of 8 points."""
        if self._shown_pixels() * _LEAST_SCALE / 100 <= _UPRIGHT_PIXELS:
            self.page.set_portrait()

    def leave_unprinted(self) -> None:
        """Print nothing of this sheet: what decides stands on others."""
        self.page.print_area(0, _FAR_COLUMN, 0, _FAR_COLUMN)

    def hide(self) -> None:
        """Fold away a sheet that only other sheets read; a click on a tab shows it again."""
        self.leave_unprinted()
        self.page.hide()

    def fold_names(self) -> None:
        """Fold away the second column: names that formulas use, beside what they mean."""
        self.page.set_column(1, 1, self.widths[1], None, {"level": 1, "hidden": True})

    def print_legibly(self) -> None:
        """Print on as many pages across as it takes for letters of 8 points; the first column stands on each."""
        if self._shown_pixels() * _LEAST_SCALE / 100 > _PAGE_PIXELS:
            self.page.set_print_scale(_LEAST_SCALE)
            if not self.page.repeat_col_range:
                self.page.repeat_columns(0, 0)

    def _shown_pixels(self) -> float:
        """Return how wide the columns are that are not folded away."""
        pixels = 0.0
        for column in range(self.widest + 1):
            stated = self.page.col_info.get(column)
            if isinstance(stated, (list, tuple)):  # of older versions, in characters
                pixels += 0 if stated[2] else (stated[0] or 8.43) * 7 + 5
            else:
                pixels += 64 if stated is None else 0 if stated.hidden else stated.width or 64
        return pixels

    def refuse_beyond(self, rows: int, columns: int) -> None:
        """Refuse what a sheet has no room for."""
        if rows > _MOST_ROWS or columns > _MOST_COLUMNS:
            raise UsageError(
                f"a sheet has {_MOST_ROWS:,} rows and {_MOST_COLUMNS:,} columns, fewer than asked for. Narrow what is"
                " asked, leave columns out (--fields), or write .csv."
            )

    def title(self, text: str) -> None:
        """Write the sheet's title and an empty row."""
        self.row(Cell(text, "title"))
        self.next_row += 1

    def heading(self, *texts: str, figures_from: int = 99) -> int:
        """Write a table's heading row, high enough for its longest word over its column."""
        widths = [*self.widths, *(_USUAL_WIDTH,) * len(texts)]
        lines = max(
            (-(-len(text) // max(int(width) - 1, 1)) for text, width in zip(texts, widths, strict=False)), default=1
        )
        if lines > 1:
            self.page.set_row(self.next_row, _LINE_HEIGHT * min(lines, 4))
        styles = ("head right" if column >= figures_from else "head" for column in range(len(texts)))
        return self.row(*map(Cell, texts, styles))

    def paragraph(self, text: str, last_column: int, style: str = "wrap") -> None:
        """Write running text over several columns, in a row that is high enough for it."""
        text = cell_text(text)
        characters = int(sum(self.widths[: last_column + 1]) * _WORDS_RATIO)
        lines = sum(max(1, -(-len(line) // characters)) for line in text.splitlines() or [""])
        self.page.set_row(self.next_row, _LINE_HEIGHT * lines)
        self.page.merge_range(self.next_row, 0, self.next_row, last_column, text, self.book.format(style, ""))
        self.next_row += 1

    def sentence(self, cell: "Cell", last_column: int, least_lines: int = 1) -> None:
        """Write a live sentence over several columns, in a row that is high enough for it."""
        text = str(cell.value.value if isinstance(cell.value, Formula) else cell.value)
        lines = max(least_lines, -(-len(text) // int(sum(self.widths[: last_column + 1]) * 0.95)))
        self.page.set_row(self.next_row, (_LINE_HEIGHT + 1) * lines)
        format_ = self.book.format(cell.style, "")
        self.page.merge_range(self.next_row, 0, self.next_row, last_column, "", format_)
        self._cell(self.next_row, 0, cell)
        self.widest = max(self.widest, last_column)
        self.next_row += 1

    def skip(self, rows: int = 1) -> None:
        """Leave rows empty."""
        self.next_row += rows

    def static_banner(self) -> None:
        """Say that what follows is static; the words change when an input does. A book without inputs is all static."""
        if self.book.live:
            self.row(Cell(Formula(_BANNER, _LIKELY), "note"))
        else:
            self.skip()

    def red_when_stale(self, first_row: int, last_column: int) -> None:
        """Turn static figures red once an input was changed."""
        if not self.book.live:
            return
        red = self.book.file.add_format({"font_color": "#C00000"})
        rule = {"type": "formula", "criteria": "=inputs_changed>0", "format": red}
        self.page.conditional_format(first_row, 0, max(self.next_row - 1, first_row), last_column, rule)

    def _cell(self, row: int, column: int, cell: Cell) -> None:
        value, page = cell.value, self.page
        style = "words" if cell.style == "plain" and column else cell.style
        if isinstance(value, Formula):
            if isinstance(value.value, str) and cell.style == "plain":
                cell = Cell(value, style, cell.unit)
            number = number_format(cell.unit, value.value)
            stored = value.value if not isinstance(value.value, float) or math.isfinite(value.value) else "#NUM!"
            page.write_formula(row, column, "=" + value.text, self.book.format(cell.style, number), stored)
        elif isinstance(value, bool):
            page.write_string(row, column, "yes" if value else "no", self.book.format(style, ""))
        elif isinstance(value, (int, float)):
            if math.isfinite(value):
                page.write_number(row, column, value, self.book.format(cell.style, number_format(cell.unit, value)))
            else:
                page.write_string(row, column, MISSING, self.book.format(cell.style, ""))
        else:
            text = "" if value is None else cell_text(str(value))
            page.write_string(row, column, text, self.book.format(style, ""))


def cell_text(text: str) -> str:
    """Return a text as a cell shows it; of one that is longer than a cell its beginning, and that it goes on."""
    text = without_commands(visible(text))  # whoever opens a book has no command line
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… (cut: {len(text):,} characters)"


def _bare(formula: str, expand_future_functions: bool = False) -> str:
    return formula.lstrip("=")


def shown_usd(largest: float) -> str:
    """Return the unit that statements are shown in: thousands of USD from a million on."""
    return THOUSANDS if abs(largest) >= _MANY_USD else "USD in whole"


def column_letters(column: int) -> str:
    """Return the letters of a column counted from 0.

    >>> column_letters(0), column_letters(27)
    ('A', 'AB')
    """
    letters = ""
    column += 1
    while column:
        column, digit = divmod(column - 1, 26)
        letters = chr(65 + digit) + letters
    return letters


def address(row: int, column: int, *, fixed: bool = False) -> str:
    """Return a cell's address from indices counted from 0.

    >>> address(6, 3), address(6, 3, fixed=True)
    ('D7', '$D$7')
    """
    return f"${column_letters(column)}${row + 1}" if fixed else f"{column_letters(column)}{row + 1}"
