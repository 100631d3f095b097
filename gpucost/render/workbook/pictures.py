"""Native charts of answers without a live model: bridges, lines and bars, drawn from cells that stand beside them."""

import re
from typing import Any, NamedTuple

from gpucost.render.cells import with_heading
from gpucost.render.document import Chart
from gpucost.render.numbers import short_unit, visible
from gpucost.render.workbook.book import Cell, Formula, Sheet, Workbook, address

DRAWN = ("bridge", "line", "bar")
_DECIMALS_BELOW = 100
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A6D00", "#56B4E9", "#6B6B6B")
_OF_BRIDGE = {"end": "#6B7280", "more": "#D55E00", "less": "#0072B2"}
# a bar between two levels as parts of a stack: above and below zero, what carries it is not seen
_STACK = {
    "carries, above": "MAX(0,MIN({0},{1}))",
    "carries, below": "MIN(0,MAX({0},{1}))",
    "above zero": "MAX(0,MAX({0},{1}))-MAX(0,MIN({0},{1}))",
    "below zero": "MIN(0,MIN({0},{1}))-MIN(0,MAX({0},{1}))",
}


class Drawn(NamedTuple):
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


def draw(book: Workbook, sheet: Sheet, chart: Chart) -> Drawn:
    """Write the cells of a chart and make the native chart that reads them."""
    sheet.skip()
    sheet.row(Cell(f"{chart.title}: figures of the chart", "heading"))
    title = with_heading(chart.y.label, short_unit(chart.y.measure))
    number = axis_format(max((abs(row[chart.y.key] or 0.0) for row in chart.data), default=0.0))
    if chart.kind == "bridge":
        return Drawn(_bridge(book, sheet, chart), chart.title, "", title, _floor(chart), number)
    return Drawn(_plain(book, sheet, chart), chart.title, chart.x.label, title, None, number)


def _floor(chart: Chart) -> float | None:
    """Return where the axis of a bridge begins, where its ends do not begin at nothing."""
    lowest = min(min(row[chart.low], row[chart.high]) for row in chart.data)
    return float(lowest) if lowest > 0 else None


def _bridge(book: Workbook, sheet: Sheet, chart: Chart) -> Any:
    unit = chart.y.measure
    first = sheet.heading(chart.x.label, "amount", "from", "to", *_STACK) + 1
    for row in chart.data:
        low, high = sorted((float(row[chart.low]), float(row[chart.high])))
        ends = [address(sheet.next_row, column) for column in (2, 3)]
        found = (max(0.0, low), min(0.0, high), max(0.0, high) - max(0.0, low), min(0.0, low) - min(0.0, high))
        stack = (Formula(text.format(*ends), value) for text, value in zip(_STACK.values(), found, strict=True))
        figures = (row[chart.y.key], low, high, *stack)
        sheet.row(str(row[chart.x.key]), *(Cell(figure, "plain", unit) for figure in figures))
    points = [{"fill": {"color": _OF_BRIDGE[str(row[chart.series])]}} for row in chart.data]
    made = book.file.add_chart({"type": "column", "subtype": "stacked"})
    for column in range(4, 8):
        look = {"fill": {"none": True}, "border": {"none": True}} if column < 6 else {"points": points}
        made.add_series({**_series(sheet, first, column), **look, "gap": 40})
    made.set_legend({"none": True})
    return made


def words(text: str) -> str:
    """Return a name as a chart shows it: words, even where XlsxWriter would take them for the address of a cell.

    >>> words("='[x.xlsx]S'!$A$1: cost"), words("Hello!")
    ("='[x.xlsx]S'! $A$1: cost", 'Hello!')
    """
    return re.sub(r"!(?=\$?[A-Z]+\$?\d)", "! ", visible(text))


def _plain(book: Workbook, sheet: Sheet, chart: Chart) -> Any:
    """Draw lines or columns: a column of cells for each series."""
    names = list(dict.fromkeys(str(row[chart.series]) for row in chart.data)) if chart.series else [chart.y.label]
    table: dict[Any, dict[str, Any]] = {}
    for row in chart.data:
        name = str(row[chart.series]) if chart.series else chart.y.label
        table.setdefault(row[chart.x.key], {})[name] = row[chart.y.key]
    first = sheet.heading(chart.x.label, *names) + 1
    for place, found in table.items():
        sheet.row(place, *(Cell(found.get(name), "plain", chart.y.measure) for name in names))
    kind = "line" if chart.kind == "line" else "column"
    made = book.file.add_chart({"type": kind})
    for number, name in enumerate(names):
        color = {"color": _COLORS[number % len(_COLORS)]}
        look = {"line": {**color, "width": 1.75}} if kind == "line" else {"fill": color}
        made.add_series({"name": words(name), **_series(sheet, first, 1 + number), **look})
    made.set_legend({"position": "bottom"} if len(names) > 1 else {"none": True})
    return made


def _series(sheet: Sheet, first: int, column: int) -> dict[str, Any]:
    last = sheet.next_row - 1
    return {"categories": [sheet.name, first, 0, last, 0], "values": [sheet.name, first, column, last, column]}
