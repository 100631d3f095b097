"""Sheets that are not live: offers, assumptions, sources, the tables and native charts of other answers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from gpucost.render.document import (
    Chart,
    Document,
    Table,
    columns_of,
    heading_of,
    in_words,
    short_unit,
    visible,
    with_heading,
)
from gpucost.render.json import dumps
from gpucost.render.table_csv import flatten, is_nested
from gpucost.render.workbook.book import Cell, Formula, Sheet, Workbook, address, number_format
from gpucost.render.workbook.book import cell_text as book_text
from gpucost.render.workbook.live import LiveModel
from gpucost.units import unit_of

# --- Native charts of answers without a live model, drawn from cells beside them.

_DRAWN = ("bridge", "area", "line", "bar")
_DECIMALS_BELOW = 100  # whole numbers would make ticks alike
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A6D00", "#56B4E9", "#6B6B6B")
# grey for ends, vermilion and blue for more and less, as everywhere
_OF_BRIDGE = {"end": "#6B7280", "more": "#D55E00", "less": "#0072B2"}
# a bar between two levels as parts of a stack: above and below zero, what carries it is not seen
_STACK = {
    "carries, above": "MAX(0,MIN({0},{1}))",
    "carries, below": "MIN(0,MAX({0},{1}))",
    "above zero": "MAX(0,MAX({0},{1}))-MAX(0,MIN({0},{1}))",
    "below zero": "MIN(0,MIN({0},{1}))-MIN(0,MAX({0},{1}))",
}


class NativeChart(NamedTuple):
    """A native chart and what stands around it."""

    chart: Any
    title: str
    across: str
    up: str
    lowest: float | None = None
    number: str = "#,##0"


def axis_format(largest: float) -> str:
    """Return how an axis up to a value shows its numbers: small ones keep their decimals."""
    return "#,##0" if abs(largest) >= _DECIMALS_BELOW else "General"


def draw(book: Workbook, sheet: Sheet, chart: Chart) -> NativeChart:
    """Write the cells of a chart and make the native chart that reads them."""
    sheet.skip()
    sheet.row(Cell(f"{chart.title}: figures of the chart", "heading"))
    title = with_heading(chart.y.label, short_unit(chart.y.measure))
    number = axis_format(max((abs(row[chart.y.key] or 0.0) for row in chart.data), default=0.0))
    if chart.kind == "bridge":
        # the axis begins where the lowest bar does, unless that is nothing
        lowest = float(min(min(row[chart.low], row[chart.high]) for row in chart.data))
        floor = lowest if lowest > 0 else None
        # bars that hang between two levels are parts of a stack of which the first two are not seen
        first = sheet.heading(chart.x.label, "amount", "from", "to", *_STACK) + 1
        for row in chart.data:
            low, high = sorted((float(row[chart.low]), float(row[chart.high])))
            ends = [address(sheet.next_row, column) for column in (2, 3)]
            amounts = (max(0.0, low), min(0.0, high), max(0.0, high) - max(0.0, low), min(0.0, low) - min(0.0, high))
            stack = (Formula(text.format(*ends), value) for text, value in zip(_STACK.values(), amounts, strict=True))
            figures = (row[chart.y.key], low, high, *stack)
            sheet.row(str(row[chart.x.key]), *(Cell(figure, "plain", chart.y.measure) for figure in figures))
        points = [{"fill": {"color": _OF_BRIDGE[str(row[chart.series])]}} for row in chart.data]
        bars = book.file.add_chart({"type": "column", "subtype": "stacked"})
        for column in range(4, 8):
            look = {"fill": {"none": True}, "border": {"none": True}} if column < 6 else {"points": points}
            bars.add_series({**_series(sheet, first, column), **look, "gap": 40})
        bars.set_legend({"none": True})
        return NativeChart(bars, chart.title, "", title, floor, number)
    return NativeChart(_plain(book, sheet, chart), chart.title, chart.x.label, title, None, number)


def series_name(text: str) -> str:
    """Return a name as a chart shows it: words, even where XlsxWriter would take them for the address of a cell.

    >>> series_name("='[x.xlsx]S'!$A$1: cost"), series_name("Hello!")
    ("='[x.xlsx]S'! $A$1: cost", 'Hello!')
    """
    return re.sub(r"!(?=\$?[A-Z]+\$?\d)", "! ", visible(text))


def _plain(book: Workbook, sheet: Sheet, chart: Chart) -> Any:
    """Draw lines or columns: a column of cells for each series."""
    # the data have a row a point; the cells need a row for each x, with a column for each series
    names = list(dict.fromkeys(str(row[chart.series]) for row in chart.data)) if chart.series else [chart.y.label]
    table: dict[Any, dict[str, Any]] = {}
    for row in chart.data:
        name = str(row[chart.series]) if chart.series else chart.y.label
        table.setdefault(row[chart.x.key], {})[name] = row[chart.y.key]
    first = sheet.heading(chart.x.label, *names) + 1
    for x_value, y_values in table.items():
        sheet.row(x_value, *(Cell(y_values.get(name), "plain", chart.y.measure) for name in names))
    kind = chart.kind if chart.kind in ("line", "area") else "column"
    chart_object = book.file.add_chart({"type": kind, **({"subtype": "stacked"} if kind == "area" else {})})
    # the total over stacked areas is a line chart of its own, laid over them
    over = book.file.add_chart({"type": "line"}) if kind == "area" and chart.label in names else None
    for number, name in enumerate(names):
        color = {"color": _COLORS[number % len(_COLORS)]}
        look = {"line": {**color, "width": 1.75}} if kind == "line" else {"fill": color}
        target = chart_object
        if over is not None and name == chart.label:
            target, look = over, {"line": {"color": "#000000", "width": 1.75, "dash_type": "dash"}}
        target.add_series({"name": series_name(name), **_series(sheet, first, 1 + number), **look})
    if over is not None:
        chart_object.combine(over)
    chart_object.set_legend({"position": "bottom"} if len(names) > 1 else {"none": True})
    return chart_object


def _series(sheet: Sheet, first: int, column: int) -> dict[str, Any]:
    last = sheet.next_row - 1
    return {"categories": [sheet.name, first, 0, last, 0], "values": [sheet.name, first, column, last, column]}


# --- Sheets.

_SCENARIO_NOTE = (
    "Each scenario is a column of the sheet Inputs. The one chosen there is computed live in all sheets, and in the"
    " first row."
)
# column of a scenario -> the formula of the one in use, with names of lines in braces
_IN_USE = {
    "npv_own_usd": "{npv_own_usd}",
    "npv_rent_usd": "{npv_rent_usd}",
    "saving_usd": "{npv_saving_usd}",
    "levelised_usd_per_gpu_hour": "{levelised_usd_per_gpu_hour}",
    "buy_wins": 'IF({npv_saving_usd}>0,"yes","no")',
}
OFFERS, OPTIONS, ASSUMPTIONS, SOURCES, SCENARIOS = "Offers", "Options", "Assumptions", "Sources", "Scenarios"
SIZES, LEVELS = "Sizes", "Service level"
_LOOKED_AT = 1000  # rows that decide which columns are filled
_SIDE_BY_SIDE = 6  # offers, which fit across a sheet of paper
# of an offer what is no single figure: lists, records, and what other sheets have
_HIDDEN = {"factors", "lines", "notes", "source_ids", "layout", "components", "model"}
Parts = Sequence[tuple[str, Mapping[str, Any]]]  # (title, payload)


def write_offers(book: Workbook, sheet: Sheet, parts: Parts) -> tuple[int, int, list[str]]:
    """Write every offer as one filterable table; return its first and last row and its columns."""
    rows = [(title, row) for title, payload in parts for row in payload.get("options") or ()]
    # columns that any offer fills, those that only the screen has last; JSON and CSV hold every figure
    present = {key for _, row in rows[:_LOOKED_AT] for key, value in row.items() if value is not None}
    lists = ("sheet offers", *(str(payload.get("kind")) for _, payload in parts))
    listed = dict.fromkeys(column.key for name in lists for column in columns_of(name))
    columns = [key for key in listed if key in present or key == "part"]
    sheet.title("Offers")
    sheet.static_banner()
    head = sheet.heading(*(_head(key) for key in columns))
    sheet.page.freeze_panes(head + 1, 0)
    sheet.page.repeat_rows(head)
    sheet.refuse_beyond(sheet.next_row + len(rows), len(columns))  # before a hundred thousand rows are written
    # the format of a column is chosen once, by its unit and its first number
    formats = []
    for key in columns:
        sample = next((row[key] for _, row in rows[:200] if isinstance(row.get(key), float)), None)
        formats.append(book.format("plain", number_format(unit_of(key), sample)))
    # the public methods look at their arguments again for every cell, a third of the time of 100,000 rows
    write_number = getattr(sheet.page, "_write_number", sheet.page.write_number)
    write_string = getattr(sheet.page, "_write_string", sheet.page.write_string)
    for at, (title, row) in enumerate(rows, sheet.next_row):
        for column, key in enumerate(columns):
            value = title if key == "part" else row.get(key)
            if value is None or value != value:  # an empty cell, which a filter can find
                continue
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                write_number(at, column, value, formats[column])
            else:
                text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(in_words(key, value))
                write_string(at, column, book_text(text))
    sheet.next_row += len(rows)
    last = max(sheet.next_row - 1, head + 1)
    sheet.page.autofilter(head, 0, last, len(columns) - 1)
    for column, key in enumerate(columns):
        if key in ("provider", "instance_type", "region", "gpu", "part"):
            width = 24
        else:  # no figure may become a row of hashes
            figures = (row.get(key) for _, row in rows)
            texts = (f"{value:,.2f}" for value in figures if isinstance(value, (int, float)))
            width = max(13, 2 + max(map(len, texts), default=0))
        sheet.page.set_column(column, column, width)
    sheet.red_when_stale(head + 1, len(columns) - 1)
    return head + 1, last, columns


def write_levels(sheet: Sheet, parts: Parts) -> None:
    """Write what keeps the service level on each accelerator, over the day, and how percentiles rise with the load."""
    sheet.title("Within the service level")
    sheet.static_banner()
    for title, payload in parts:
        for name in ("levels", "hours", "knee"):
            listed = payload.get(name)
            if not listed:
                continue
            columns = [column.key for column in columns_of(f"inference {name}")]
            sheet.skip()
            sheet.row(Cell(title, "heading"))
            sheet.heading(*(_head(key) for key in columns))
            for row in listed:
                cells = ((key, row.get(key)) for key in columns)
                sheet.row(*("" if value is None else Cell(value, "plain", unit_of(key)) for key, value in cells))


def write_sizes(sheet: Sheet, parts: Parts) -> list[tuple[str, int, int]]:
    """Write the sizes of cluster of each first offer; return of each part its title, first and last row."""
    sheet.title("Cost against time by size of cluster")
    sheet.static_banner()
    # a chart reads these rows
    columns, places = columns_of("sheet sizes"), []
    for title, rows in ((title, payload.get("scaling") or ()) for title, payload in parts):
        if len(rows) > 1:
            sheet.skip()
            sheet.row(Cell(title, "heading"))
            first = sheet.heading(*(_head(column.key) for column in columns)) + 1
            for row in rows:
                sheet.row(*(Cell(row[column.key], "plain", unit_of(column.key)) for column in columns))
            places.append((title, first, sheet.next_row - 1))
    return places


def _head(key: str) -> str:
    """Return the heading of a column with its unit: of money as the data has it, of all else short."""
    unit, heading = unit_of(key), heading_of(key)
    unit = unit if unit.startswith("USD") else short_unit(unit)
    return heading if not unit or heading.split()[-1] == unit or unit in heading else f"{heading} ({unit})"


def write_options(book: Workbook, sheet: Sheet, parts: Parts) -> None:
    """Write the best offers of each part side by side, one attribute a row: term, exposure, cash and the rest."""
    order = {column.key: place for place, column in enumerate(columns_of("sheet options"))}
    sheet.title("Options side by side")
    sheet.static_banner()
    for title, payload in parts:
        best = list(payload.get("options") or ())[:_SIDE_BY_SIDE]
        if not best:
            continue
        # a nested figure, such as a degree of the layout, becomes a row of its own under its dotted key
        flat = [flatten({key: value for key, value in row.items() if key not in _HIDDEN - {"layout"}}) for row in best]
        sheet.skip()
        sheet.row(Cell(title, "heading"))
        names = []
        for row in best:  # an option of owning has a name, an offer is known by its seller and terms
            seller = " ".join(in_words(key, row[key]) for key in ("provider", "option") if row.get(key))
            names.append(str(in_words("name", row.get("name")) or seller))
        first = sheet.heading("option", "unit", *names) + 1
        present = dict.fromkeys(name for row in flat for name in row if name != "name")
        for key in sorted(present, key=lambda name: order.get(name, len(order))):
            if any(row.get(key) not in (None, "") for row in flat):
                unit = unit_of(key.rsplit(".", 1)[-1])
                sheet.row(
                    heading_of(key.replace(".", " ")),
                    unit,
                    *(Cell(in_words(key, row.get(key)), "plain", unit) for row in flat),
                )
        # the lines of their bills, of which each may have others
        for line in dict.fromkeys(entry["name"] for row in best for entry in row.get("lines") or ()):
            costs = [
                next((entry["cost_usd"] for entry in row.get("lines") or () if entry["name"] == line), None)
                for row in best
            ]
            sheet.row(f"line: {line}", "USD", *(Cell(cost, "plain", "USD") for cost in costs))
        sheet.red_when_stale(first, len(best) + 1)


def write_scenarios(book: Workbook, sheet: Sheet, parts: Parts, models: Iterable[LiveModel]) -> None:
    """Write what each named scenario comes to, as delivered, under the one that is chosen, live."""
    sheet.title("Scenarios")
    sheet.static_banner()
    by_title = {model.title: model for model in models}
    for title, payload in parts:
        rows = list(payload.get("scenarios") or ())
        if not rows:
            continue
        keys = [key for key, value in rows[0].items() if not isinstance(value, (dict, list))]
        sheet.skip()
        sheet.row(Cell(title, "heading"))
        sheet.row(Cell(_SCENARIO_NOTE, "note"))
        sheet.heading(*map(_head, keys))
        if title in by_title:
            # what the scenario that is chosen comes to now; as delivered that is the base, the first row
            model, base = by_title[title], rows[0]
            cells = []
            for key in keys:
                if key in _IN_USE:
                    value = base[key] if key != "buy_wins" else "yes" if base[key] else "no"
                    text = _IN_USE[key].format_map({line.name: model.cell_name(line.name) for line in model.scalars})
                    cells.append(Cell(Formula(text, value), "answer", unit_of(key)))
                else:
                    label = Formula("scenario", "Base") if key == "name" else "in use, live"
                    cells.append(Cell(label, "answer", unit_of(key)))
            sheet.row(*cells)
        first = sheet.next_row
        for row in rows:
            cells = [
                Cell(in_words(key, row.get(key)), "wrap" if key == "description" else "plain", unit_of(key))
                for key in keys
            ]
            sheet.row(*cells)
        sheet.red_when_stale(first, len(keys) - 1)


def write_assumptions(
    book: Workbook, sheet: Sheet, parts: Parts, models: Iterable[LiveModel], sources: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write every value an answer rests on: its status, source and date; unsourced values say so."""
    sheet.title("Assumptions log")
    sheet.page.freeze_panes(
        sheet.heading("part", "name", "value", "unit", "low", "high", "status", "source", "dated", "note") + 1, 0
    )
    written = set()
    for title, payload in parts:
        for row in payload.get("assumptions") or ():
            _assumption(sheet, title, row, sources)
            written.add((title, row.get("name")))
    # the inputs of a live model that the answer does not list among its assumptions, such as constants of formulas
    for model in models:
        for entry in model.inputs:
            if (model.title, entry.name) in written:
                continue
            row = {"name": entry.name, "value": entry.value, "unit": entry.unit, "low": entry.low, "high": entry.high}
            row |= {
                "status": entry.status or "derived",
                "source_id": entry.source_id,
                "note": entry.description,
                "observed": entry.observed,
            }
            _assumption(sheet, model.title, row, sources)


def _assumption(sheet: Sheet, title: str, row: Mapping[str, Any], sources: Mapping[str, Mapping[str, Any]]) -> None:
    """Write a value with its ends, status, source and day; one without a source says so."""
    unit = str(row.get("unit") or unit_of(str(row.get("name", ""))))
    source = sources.get(str(row.get("source_id") or "")) or {}
    status = str(row.get("status") or "assumed")  # what does not say where it comes from has no source
    origin = ", ".join(str(source[key]) for key in ("publisher", "title") if source.get(key)) or str(
        row.get("source_id") or "assumed, no source" if status == "assumed" else ""
    )
    numbers = [Cell(row.get(key), "plain", unit) for key in ("value", "low", "high")]
    dated = str(row.get("observed") or source.get("published_on") or source.get("accessed_on") or "")
    sheet.row(
        title,
        in_words("name", str(row.get("name", ""))),
        numbers[0],
        unit,
        numbers[1],
        numbers[2],
        status,
        Cell(origin, "wrap"),
        dated,
        Cell(str(row.get("note") or ""), "wrap"),
    )


def write_sources(book: Workbook, sheet: Sheet, sources: Mapping[str, Mapping[str, Any]]) -> None:
    """Write where every number comes from."""
    keys = ("publisher", "title", "locator", "published_on", "accessed_on", "note")
    sheet.title("Sources")
    head = sheet.heading("source", "publisher", "title", "where", "published", "accessed", "note")
    sheet.page.freeze_panes(head + 1, 0)
    for source_id, row in sorted(sources.items()):
        sheet.row(Cell(source_id, "wrap"), *(Cell(str(row.get(key) or ""), "wrap") for key in keys))
    sheet.page.autofilter(head, 0, max(sheet.next_row - 1, head + 1), len(keys))


def write_document(book: Workbook, sheet: Sheet, document: Document) -> list[NativeChart]:
    """Write the tables of an answer that has no live model, as they stand; return the charts beside them."""
    drawn = []
    sheet.title(document.title)
    if document.notice:
        sheet.paragraph(document.notice, 7)
    if document.lead:
        sheet.paragraph(document.lead, 7)
    for section in document.sections:
        tables = [block for block in section.blocks if isinstance(block, Table) and block.rows]
        for table in tables:
            sheet.skip()
            if head := table.title or section.title:
                sheet.row(Cell(head, "heading"))
            sheet.heading(
                *(f"{column.title} ({column.measure})" if column.measure else column.title for column in table.columns)
            )
            for row in (*table.rows, *([table.total] if table.total else [])):
                cells = []
                for column in table.columns:
                    value = row.get(column.key)
                    value = value if column.verbatim else in_words(column.key, value)
                    if is_nested(value):  # a cell holds one value: records stand as JSON
                        value = dumps(value, indent=None)
                    elif isinstance(value, (list, tuple)):
                        value = ", ".join(map(str, value))
                    elif isinstance(value, Decimal):  # of SQL, which XlsxWriter does not know
                        value = float(value)
                    cells.append(Cell(value, "plain", column.unit_in(row)))
                sheet.row(*cells)
        for block in section.blocks:
            if not isinstance(block, Chart) or not block.data:
                continue
            if block.kind in _DRAWN:
                drawn.append(draw(book, sheet, block))
            elif block.kind == "heat":
                # Excel has no such chart: a table of two arguments whose cells are coloured by their figures
                across, up = (
                    sorted(
                        {row[axis.key] for row in block.data},
                        key=lambda value: (float(value), "") if isinstance(value, (int, float)) else (0.0, str(value)),
                    )
                    for axis in (block.x, block.y)
                )
                values = {(row[block.x.key], row[block.y.key]): row[block.value] for row in block.data}
                sheet.skip()
                sheet.row(Cell(block.title, "heading"))
                first = sheet.heading(f"{block.y.label} \\ {block.x.label}", *map(str, across)) + 1
                for y in up:
                    sheet.row(y, *(Cell(values.get((x, y)), "plain", unit_of(block.value)) for x in across))
                scale = {"type": "2_color_scale", "min_color": "#FFFFFF", "max_color": "#E8A33D"}
                sheet.page.conditional_format(first, 1, sheet.next_row - 1, len(across), scale)
    return drawn
