"""The Calculations and Cash flows sheets: one live formula per row, every input by name, no figure inside a formula."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from gpucost.formula.language import Line
from gpucost.formula.spreadsheet import ALL_MONTHS, to_excel
from gpucost.render.workbook.book import POSSIBLE, Cell, Formula, Sheet, Workbook, address, column_letters, shown_usd
from gpucost.render.workbook.live import LiveModel

NAME, FLOWS, TABLES = "Calculations", "Cash flows", "Tables"
_VALUE = 3
COLUMN = "\x01"  # stands for the column of the month until the row is copied across
_MONTHS_ON_A_PAGE = 13  # a sheet of months is printed in parts that can be read
_NARROW = 11
FIRST_MONTH = 5  # column of month 0 on the Cash flows sheet
# lines of neither side that a reader of the cash flows looks for
_TOTALS = frozenset(
    f"{name}_usd"
    for name in (
        "own_running",
        "own_in_cash",
        "own_financing",
        "own_total",
        "rent_services",
        "rent_total",
        "saving_in_cash",
        "saving",
    )
)
Rows = dict[tuple[str, str], int]  # (model, monthly line) -> row on the Cash flows sheet


def write(
    book: Workbook, sheet: Sheet, models: list[LiveModel], values: Mapping[str, Mapping[str, Any]], flows: Rows
) -> None:
    """Write the lines with one value, in the order in which they follow from each other."""
    sheet.title("Calculations")
    sheet.page.freeze_panes(sheet.heading("name", "what it is", "unit", "value", "in words") + 1, 1)
    for model in models:
        sheet.skip()
        sheet.row(Cell(model.title, "heading"))
        group = ""
        for line in model.scalars:
            if line.group != group:
                group = line.group
                sheet.row(Cell(group, "note"))
            text, value = solved(
                to_excel(line.text, partial(scalar_reference, model, flows)), values[model.key][line.name]
            )
            style = "answer" if line.name in model.shown else "plain"
            live = Cell(Formula(text, value), style, shown_unit(line))
            words, formula = Cell(line.description, "wrap"), Cell(line.text, "wrap")
            row = sheet.row(line.name, words, line.measure, live, formula)
            book.define(model.cell_name(line.name), NAME, row, _VALUE)


def shown_unit(line: Line) -> str:
    """Return the unit that a line is shown in: a break-even beyond all hours is none."""
    return POSSIBLE if line.name == "breakeven_utilisation_fraction" else line.measure


def scalar_reference(model: LiveModel, flows: Rows, name: str) -> str:
    """Return how a formula outside the timeline names a quantity: a monthly line is its whole row."""
    name = name.removesuffix(ALL_MONTHS)
    if (model.key, name) in flows:
        row = flows[model.key, name]
        first, last = address(row, FIRST_MONTH, fixed=True), address(row, FIRST_MONTH + model.months, fixed=True)
        return f"'{FLOWS}'!{first}:{last}"
    return model.cell_name(name)


def solved(text: str, value: Any) -> tuple[str, Any]:
    """Let a figure that does not exist (the IRR of cash flows of one sign) read "none" in the workbook."""
    found = plain(value)
    if "IRR(" not in text and "NA(" not in text:
        return text, found
    return f'IFERROR({text},"none")', "none" if isinstance(found, float) and found != found else found


def plain(value: Any) -> Any:
    """Turn a NumPy scalar into what a cell stores."""
    return value if isinstance(value, str) else float(value)


def plan_rows(models: list[LiveModel]) -> Rows:
    """Decide on which row of the Cash flows sheet every monthly line stands."""
    rows: Rows = {}
    row = 3
    for model in models:
        if not model.monthly:
            continue
        row += 2  # an empty row and the model's title
        rows[model.key, "m"] = row
        for line in model.monthly:
            row += 1
            rows[model.key, line.name] = row
        row += 1
    return rows


def write_flows(
    book: Workbook, sheet: Sheet, models: list[LiveModel], values: Mapping[str, Mapping[str, Any]], flows: Rows
) -> None:
    """Write one row per line and one column per month; each row holds one formula, copied across."""
    unit = shown_usd(_largest(models, values))
    sheet.title(f"Cash flows by month, in {unit.removesuffix(' in whole')}")
    sheet.row(Cell("Folded: lines that others are worked out from, and what is nothing as delivered.", "note"))
    sheet.page.freeze_panes(0, FIRST_MONTH)
    sheet.page.repeat_columns(0, 1)
    compared, longest = (max(getattr(model, name) for model in models) for name in ("compared_months", "months"))
    sheet.page.fit_to_pages(max(1, -(-(compared or longest) // _MONTHS_ON_A_PAGE)), 0)
    sheet.page.set_column(FIRST_MONTH, FIRST_MONTH + longest, month_width(models, values))
    if 0 < compared < longest:  # the months beyond the plan are folded away and not printed
        sheet.page.set_column(
            FIRST_MONTH + compared + 1,
            FIRST_MONTH + longest,
            month_width(models, values),
            None,
            {"level": 1, "hidden": True},
        )
    for model in models:
        if not model.monthly:
            continue
        sheet.next_row = flows[model.key, "m"] - 1
        sheet.row(Cell(model.title, "heading"))
        months = [Cell(month, "head") for month in range(model.months + 1)]
        sheet.row(*(Cell(text, "head") for text in ("name", "what it is", "unit", "side", "total")), *months)
        for line in model.monthly:
            read = line.name in _TOTALS or (line.side and abs(values[model.key][line.name]).max() > 0)
            if not read:
                sheet.page.set_row(sheet.next_row, None, None, {"level": 1, "hidden": True})
            _flow(sheet, model, line, values[model.key][line.name], flows, unit)
    rows = max(flows.values())
    sheet.page.print_area(0, 0, rows, FIRST_MONTH + (compared or longest))


def month_width(models: list[LiveModel], values: Mapping[str, Mapping[str, Any]]) -> float:
    """Return a width at which no figure of a month becomes a row of hashes, with room for ten times as much."""
    return max(_NARROW, len(f"-{10 * _largest(models, values):,.0f}") + 1)


def _largest(models: list[LiveModel], values: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the largest amount of a month, whatever its sign."""
    lines = ((values[model.key][line.name], line.measure) for model in models for line in model.monthly)
    return max(float(abs(series).max()) for series, unit in lines if unit == "USD")


def _flow(sheet: Sheet, model: LiveModel, line: Line, series: Any, flows: Rows, shown: str) -> None:
    row = flows[model.key, line.name]
    assert row == sheet.next_row
    first, last = address(row, FIRST_MONTH), address(row, FIRST_MONTH + model.months)
    unit = shown if line.measure == "USD" else line.measure
    added = line.measure == "USD"
    total = Cell(Formula(f"SUM({first}:{last})", float(series.sum())), "plain", unit) if added else None
    template = to_excel(line.text, partial(_month_reference, model, flows))
    cells = []
    for month in range(model.months + 1):
        text = template.replace(COLUMN, column_letters(FIRST_MONTH + month))
        cells.append(Cell(Formula(text, float(series[month])), "plain", unit))
    sheet.row(line.name, line.description, line.measure, line.side, total, *cells)


def _month_reference(model: LiveModel, flows: Rows, name: str) -> str:
    if name.endswith(ALL_MONTHS):
        return scalar_reference(model, flows, name)
    if (model.key, name) in flows:
        row = flows[model.key, name] + 1
        return f"{COLUMN}${row}" if name == "m" else f"{COLUMN}{row}"
    return model.cell_name(name)


def write_tables(book: Workbook, sheet: Sheet, models: list[LiveModel]) -> None:
    """Write the lookup tables, one column each, as named ranges."""
    sheet.title("Lookup tables")
    sheet.page.set_portrait()
    sheet.page.fit_to_pages(1, 1)
    tables = [(model, name, list(table)) for model in models for name, table in model.tables.items()]
    head = sheet.heading(*(name for _, name, _ in tables))
    for index in range(max(len(table) for _, _, table in tables)):
        sheet.row(*(Cell(table[index], "input") if index < len(table) else None for _, _, table in tables))
    for column, (model, name, table) in enumerate(tables):
        book.define(model.cell_name(name), TABLES, head + 1, column, head + len(table))
