"""The PDF writer: paragraphs, key figures, tables and charts of a document on paper, drawn without a browser.

ReportLab is pure Python with fonts of its own: text stays text, and charts stay lines and areas at any size.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpucost.errors import UsageError
from gpucost.render.document import (
    Block,
    Chart,
    Document,
    KeyFigures,
    Paragraph,
    Row,
    Table,
    amount,
    cell_text,
    fact_text,
    head_text,
    is_numeric,
    printable,
)
from gpucost.store.files import replacing

MISSING = (
    "a PDF needs the package ReportLab of the extra `pdf`, which is not installed. Run: pip install 'gpucost[pdf]',"
    " or write the page as .html and print it."
)
_SMALLEST, _USUAL, _LARGE = 8, 9, 17  # points
_MOST_ROWS = 60  # of a table on paper
_INK, _SOFT, _LINE = "#1B1F24", "#525A64", "#C9CED6"
_COLORS = {"end": "#6B7280", "more": "#D55E00", "less": "#0072B2"}
_SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A6D00", "#56B4E9", "#6B6B6B")
_CHART_HEIGHT = 170
_FAMILY, _BOLD = "Vera", "VeraBd"


def write_pdf(document: Document, path: str) -> None:
    """Write a document as a PDF; of one with a page for a board that page alone, else its sections without details."""
    try:
        from reportlab.lib.pagesizes import A4
        from reportlab.platypus import PageBreak, SimpleDocTemplate, Spacer
        from reportlab.platypus import Paragraph as Text
    except ImportError:
        raise UsageError(MISSING) from None
    document = printable(document)
    styles = _styles()
    sections = [part for part in document.sections if part.board] or [
        part for part in document.sections if not part.detail
    ]
    board = sections[0].board
    stamp = " · ".join(document.stamp)
    with replacing(path) as temporary:
        paper = SimpleDocTemplate(
            str(temporary),
            pagesize=A4,
            leftMargin=40,
            rightMargin=40,
            topMargin=36,
            bottomMargin=40,
            title=document.title,
            author="gpucost",
            subject=document.lead,
        )
        width = paper.width
        story: list[Any] = [Text(_safe(document.title), styles["title"])]
        if document.lead and not board:
            story.append(Text(_safe(document.lead), styles["lead"]))
        story.append(Text(_safe(stamp), styles["note"]))
        for number, section in enumerate(sections):
            if number and board:
                story.append(PageBreak())
            if section.title and not board:
                story.append(Text(_safe(section.title), styles["heading"]))
            for block in section.blocks:
                story += _block(block, width, styles)
        if document.warnings:
            story.append(Text("Warnings", styles["heading"]))
            story += [Text(f"• {_safe(warning)}", styles["note"]) for warning in document.warnings]
        story.append(Spacer(1, 2))

        def footer(canvas: Any, page: Any) -> None:
            canvas.setFont(_FAMILY, _SMALLEST)
            canvas.setFillColor(_SOFT)
            canvas.drawString(page.leftMargin, 22, document.title[:90])
            canvas.drawRightString(page.leftMargin + page.width, 22, f"Page {canvas.getPageNumber()}")

        paper.build(story, onFirstPage=footer, onLaterPages=footer)


def _styles() -> dict[str, Any]:
    """Register the fonts that ReportLab brings, and return the styles of text."""
    from reportlab.lib.colors import HexColor
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    for name in (_FAMILY, _BOLD):
        pdfmetrics.registerFont(TTFont(name, f"{name}.ttf"))
    pdfmetrics.registerFontFamily(_FAMILY, normal=_FAMILY, bold=_BOLD, italic=_FAMILY, boldItalic=_BOLD)
    usual = ParagraphStyle("usual", fontName=_FAMILY, fontSize=_USUAL, leading=_USUAL * 1.3, textColor=HexColor(_INK))

    def style(name: str, **changes: Any) -> ParagraphStyle:
        return ParagraphStyle(name, parent=usual, **changes)

    return {
        "usual": usual,
        "title": style("title", fontName=_BOLD, fontSize=_LARGE, leading=_LARGE * 1.2, spaceAfter=2),
        "lead": style("lead", fontSize=11, leading=14, spaceAfter=4),
        "heading": style(
            "heading", fontName=_BOLD, fontSize=10, leading=13, spaceBefore=7, spaceAfter=2, keepWithNext=1
        ),
        "question": style("question", fontName=_BOLD, textColor=HexColor("#0B57A4"), spaceBefore=4, keepWithNext=1),
        "decided": style("decided", fontName=_BOLD, fontSize=10.5, leading=13.5),
        "note": style("note", fontSize=_SMALLEST, leading=_SMALLEST * 1.25, textColor=HexColor(_SOFT)),
        "cell": style("cell", fontSize=_SMALLEST, leading=_SMALLEST * 1.2),
        "head": style("head", fontName=_BOLD, fontSize=_SMALLEST, leading=_SMALLEST * 1.2),
        "right": style("right", fontSize=_SMALLEST, leading=_SMALLEST * 1.2, alignment=2),
        "head right": style("head right", fontName=_BOLD, fontSize=_SMALLEST, leading=_SMALLEST * 1.2, alignment=2),
        "figure": style("figure", fontName=_BOLD, fontSize=11, leading=14),
    }


def _safe(text: object) -> str:
    """Keep text from being read as markup; a sign that the fonts lack is written another way."""
    from xml.sax.saxutils import escape

    return escape(str(text).translate(_LACKING))


_LACKING = str.maketrans({"→": "->", "₂": "2", "↔": "<->", "▪": "•"})


def _block(block: Block, width: float, styles: Mapping[str, Any]) -> list[Any]:
    from reportlab.platypus import Paragraph as Text

    if isinstance(block, Paragraph):
        style = {"lead": "lead", "note": "note", "code": "note"}.get(block.style, "usual")
        return [Text(_safe(line), styles[style]) for line in block.text.splitlines()]
    if isinstance(block, KeyFigures):
        return _answers(block, styles) if block.style == "answers" else _figures(block, width, styles)
    if isinstance(block, Table):
        return _table(block, width, styles)
    return _chart(block, width, styles)


def _answers(block: KeyFigures, styles: Mapping[str, Any]) -> list[Any]:
    from reportlab.platypus import Paragraph as Text

    found: list[Any] = []
    for number, fact in enumerate(block.items):
        found.append(Text(_safe(fact.label), styles["question"]))
        found.append(Text(_safe(fact_text(fact)), styles["usual" if number else "decided"]))
    return found


def _figures(block: KeyFigures, width: float, styles: Mapping[str, Any]) -> list[Any]:
    """Set key figures in a grid, each under its label."""
    from reportlab.lib.colors import HexColor
    from reportlab.platypus import Paragraph as Text
    from reportlab.platypus import Spacer
    from reportlab.platypus import Table as Grid

    across = 5 if len(block.items) >= 5 else max(len(block.items), 1)
    cells = [
        [Text(_safe(fact.label), styles["note"]), Text(_safe(fact_text(fact)), styles["figure"])]
        for fact in block.items
    ]
    cells += [[]] * (-len(cells) % across)
    rows = [cells[at : at + across] for at in range(0, len(cells), across)]
    grid = Grid(
        rows,
        colWidths=[width / across] * across,
        style=[
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("BOX", (0, 0), (-1, -1), 0.5, HexColor(_LINE)),
            ("INNERGRID", (0, 0), (-1, -1), 0.5, HexColor(_LINE)),
            ("LEFTPADDING", (0, 0), (-1, -1), 4),
            ("RIGHTPADDING", (0, 0), (-1, -1), 3),
            ("TOPPADDING", (0, 0), (-1, -1), 2),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 4),
        ],
    )
    title = [Text(_safe(block.title), styles["heading"])] if block.title else []
    return [*title, Spacer(1, 5), grid, Spacer(1, 3)]


def _table(block: Table, width: float, styles: Mapping[str, Any]) -> list[Any]:
    """Set a table: numbers on the right, columns as wide as what they hold; on paper no more rows than can be read."""
    from reportlab.lib.colors import HexColor
    from reportlab.pdfbase.pdfmetrics import stringWidth
    from reportlab.platypus import Paragraph as Text
    from reportlab.platypus import Table as Grid

    title = [Text(_safe(block.title), styles["heading"])] if block.title else []
    if not block.rows:
        return [*title, Text(_safe(block.note or "No rows."), styles["note"])]
    columns = [column for column in block.filled if column.priority < 2]
    rows = list(block.rows[:_MOST_ROWS])
    texts = [[cell_text(row, column) for column in columns] for row in rows]
    right = [
        is_numeric(column, rows) or all(map(_is_figure, (line[at] for line in texts)))
        for at, column in enumerate(columns)
    ]
    heads = [head_text(column) for column in columns]
    asked = [
        max(
            max(stringWidth(word, _BOLD, _SMALLEST) for word in heads[at].split() or [""]) + 8,
            *(min(stringWidth(line[at], _FAMILY, _SMALLEST), width * 0.45) + 9 for line in texts),
        )
        for at in range(len(columns))
    ]
    widths = (
        [share * width / sum(asked) for share in asked]
        if sum(asked) > width
        else [share + (width - sum(asked)) / len(asked) for share in asked]
    )
    body = [[Text(_safe(head), styles["head right" if right[at] else "head"]) for at, head in enumerate(heads)]]
    body += [
        [Text(_safe(text), styles["right" if right[at] else "cell"]) for at, text in enumerate(line)] for line in texts
    ]
    grid = Grid(
        body,
        colWidths=widths,
        repeatRows=1,
        style=[
            ("BACKGROUND", (0, 0), (-1, 0), HexColor("#EEF1F5")),
            ("LINEBELOW", (0, 0), (-1, -1), 0.4, HexColor(_LINE)),
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("LEFTPADDING", (0, 0), (-1, -1), 4),
            ("RIGHTPADDING", (0, 0), (-1, -1), 4),
            ("TOPPADDING", (0, 0), (-1, -1), 1.5),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 2.5),
        ],
    )
    cut = f"The first {len(rows)} of {len(block.rows)} rows." if len(block.rows) > len(rows) else ""
    notes = [Text(_safe(note), styles["note"]) for note in (block.note, cut) if note]
    return [*title, grid, *notes]


def _is_figure(text: str) -> bool:
    return bool(text) and text[0] in "-+$0123456789–" and not (len(text) == 10 and text[4] == "-")


# --- Charts: bars that hang, bars to both sides, and lines. What has no drawing here is set as a table.


def _chart(chart: Chart, width: float, styles: Mapping[str, Any]) -> list[Any]:
    from reportlab.platypus import KeepTogether
    from reportlab.platypus import Paragraph as Text

    draw: dict[str, Callable[[Chart, float], Any]] = {
        "bridge": _bridge,
        "tornado": _tornado,
        "line": _lines,
        "area": _lines,
        "bar": _bars,
        "stacked": _bars,
    }
    drawing = draw[chart.kind](chart, width) if chart.kind in draw and chart.data else None
    if drawing is None:
        return [Text(_safe(chart.title), styles["heading"]), Text(_safe(chart.description), styles["note"])]
    note = [Text(_safe(chart.note), styles["note"])] if chart.note else []
    return [KeepTogether([Text(_safe(chart.title), styles["heading"]), drawing, *note])]


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round values from below the lowest to above the highest.

    >>> ticks(0.0, 577_097.0)
    [0.0, 100000.0, 200000.0, 300000.0, 400000.0, 500000.0, 600000.0]
    """
    from math import ceil, floor, log10

    span = (high - low) or abs(high) or 1.0
    step = 10.0 ** floor(log10(span / most))
    step = next(step * factor for factor in (1, 2, 2.5, 5, 10, 20) if span / (step * factor) <= most)
    return [number * step for number in range(floor(low / step + 1e-9), ceil(high / step - 1e-9) + 1)]


def short_usd(usd: float) -> str:
    """Write a tick of an axis.

    >>> short_usd(2.5e6), short_usd(-4e5), short_usd(0.0)
    ('$2.5M', '-$0.4M', '$0')
    """
    if not usd:
        return "$0"
    sign = "-" if usd < 0 else ""
    return f"{sign}${abs(usd) / 1e6:,.3g}M" if abs(usd) >= 1e5 else f"{sign}${abs(usd):,.0f}"


def _tick(value: float, unit: str) -> str:
    return short_usd(value) if unit == "USD" else amount(value, unit)


def _text(x: float, y: float, text: str, anchor: str = "start", bold: bool = False) -> Any:
    from reportlab.graphics.shapes import String
    from reportlab.lib.colors import HexColor

    return String(
        x,
        y,
        text.translate(_LACKING),
        fontName=_BOLD if bold else _FAMILY,
        fontSize=_SMALLEST,
        fillColor=HexColor(_INK),
        textAnchor=anchor,
    )


def _rect(x: float, y: float, width: float, height: float, color: str) -> Any:
    from reportlab.graphics.shapes import Rect
    from reportlab.lib.colors import HexColor

    return Rect(x, y, width, height, fillColor=HexColor(color), strokeColor=None)


def _rule(x: float, y: float, other_x: float, other_y: float, color: str = _LINE, thick: float = 0.5) -> Any:
    from reportlab.graphics.shapes import Line
    from reportlab.lib.colors import HexColor

    return Line(x, y, other_x, other_y, strokeColor=HexColor(color), strokeWidth=thick)


def _wrapped(text: str, width: float) -> list[str]:
    """Break a label into lines of a width."""
    from reportlab.pdfbase.pdfmetrics import stringWidth

    lines: list[str] = []
    for word in text.split():
        if lines and stringWidth(f"{lines[-1]} {word}", _FAMILY, _SMALLEST) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _legend(drawing: Any, names: Sequence[str], left: float, width: float) -> None:
    """Name the colours at the foot of a chart; what finds no room on the line is counted."""
    from reportlab.pdfbase.pdfmetrics import stringWidth

    place = left
    for number, name in enumerate(names):
        rest = f"and {len(names) - number} more"
        room = 0.0 if number + 1 == len(names) else stringWidth(rest, _FAMILY, _SMALLEST)
        wide = 24 + stringWidth(name, _FAMILY, _SMALLEST)
        if place + wide + room > width:
            drawing.add(_text(place, 3, rest))
            return
        drawing.add(_rect(place, 2, 8, 8, _SERIES[number % len(_SERIES)]))
        drawing.add(_text(place + 11, 3, name))
        place += wide


def _bridge(chart: Chart, width: float) -> Any:
    """Draw bars that hang where the one before them ended; all levels are measured from nothing."""
    from reportlab.graphics.shapes import Drawing

    drawing = Drawing(width, _CHART_HEIGHT)
    left, bottom, top = 46.0, 42.0, _CHART_HEIGHT - 14.0
    values = [row[key] for row in chart.data for key in (chart.low, chart.high)]
    marks = ticks(min(0.0, *values), max(0.0, *values))
    scale = (top - bottom) / ((marks[-1] - marks[0]) or 1.0)

    def height(value: float) -> float:
        return bottom + (value - marks[0]) * scale

    for mark in marks:
        drawing.add(_rule(left, height(mark), width, height(mark)))
        drawing.add(_text(left - 4, height(mark) - 3, _tick(mark, chart.y.measure), "end"))
    room = (width - left) / len(chart.data)
    for number, row in enumerate(chart.data):
        x, low, high = left + room * number, height(row[chart.low]), height(row[chart.high])
        drawing.add(_rect(x + room * 0.14, low, room * 0.72, max(high - low, 0.6), _COLORS[row[chart.series]]))
        shown = row[chart.label] if chart.label else amount(row[chart.y.key], chart.y.measure)
        drawing.add(_text(x + room / 2, high + 3, str(shown), "middle", bold=row[chart.series] == "end"))
        for at, line in enumerate(_wrapped(str(row[chart.x.key]), room - 2)[:3]):
            drawing.add(_text(x + room / 2, bottom - 11 - 9.5 * at, line, "middle"))
    drawing.add(_rule(left, height(0.0), width, height(0.0), _INK, 0.8))
    return drawing


def _tornado(chart: Chart, width: float) -> Any:
    """Draw what each input does to the answer, around the base."""
    from reportlab.graphics.shapes import Drawing

    rows = chart.data
    drawing = Drawing(width, 18.0 * len(rows) + 22)
    left, base = 150.0, chart.base or 0.0
    values = [row[key] for row in rows for key in (chart.low, chart.high)]
    marks = ticks(min(*values, base, 0.0), max(*values, base, 0.0), 5)
    scale = (width - left - 20) / ((marks[-1] - marks[0]) or 1.0)

    def across(value: float) -> float:
        return left + (value - marks[0]) * scale

    top = 18.0 * len(rows) + 18
    for mark in marks:
        drawing.add(_rule(across(mark), 16, across(mark), top))
        drawing.add(_text(across(mark), 4, _tick(mark, chart.y.measure), "middle"))
    for number, row in enumerate(rows):
        y = top - 18.0 * (number + 1) + 3
        drawing.add(_text(left - 6, y + 3, str(row[chart.x.key])[:34], "end"))
        for key, color in ((chart.low, _COLORS["less"]), (chart.high, _COLORS["more"])):
            one, other = sorted((across(base), across(row[key])))
            drawing.add(_rect(one, y, max(other - one, 0.4), 12, color))
    drawing.add(_rule(across(base), 16, across(base), top, _INK, 0.8))
    return drawing


def _lines(chart: Chart, width: float) -> Any:
    """Draw one line for each series; areas are drawn as the lines of their series."""
    from reportlab.graphics.shapes import Drawing, PolyLine
    from reportlab.lib.colors import HexColor

    points = [row for row in chart.data if isinstance(row.get(chart.y.key), (int, float))]
    named = list(dict.fromkeys(str(row.get(chart.series, "")) for row in points))
    order = list(dict.fromkeys(row[chart.x.key] for row in points))
    if not points or len(order) < 2:
        return None
    numeric = all(isinstance(value, (int, float)) for value in order)
    places: dict[Any, float] = {value: float(value) if numeric else float(at) for at, value in enumerate(order)}
    drawing = Drawing(width, _CHART_HEIGHT)
    left, bottom, top = 46.0, 34.0, _CHART_HEIGHT - 10.0
    marks = ticks(min(0.0, *(row[chart.y.key] for row in points)), max(row[chart.y.key] for row in points))
    scale = (top - bottom) / ((marks[-1] - marks[0]) or 1.0)
    first, last = min(places.values()), max(places.values())

    def at(row: Row) -> tuple[float, float]:
        x = left + 4 + (places[row[chart.x.key]] - first) / ((last - first) or 1.0) * (width - left - 12)
        return x, bottom + (row[chart.y.key] - marks[0]) * scale

    for mark in marks:
        y = bottom + (mark - marks[0]) * scale
        drawing.add(_rule(left, y, width, y))
        drawing.add(_text(left - 4, y - 3, _tick(mark, chart.y.measure), "end"))
    step = max(1, len(order) // 6)
    for value in order[::step]:
        x = left + 4 + (places[value] - first) / ((last - first) or 1.0) * (width - left - 12)
        drawing.add(_text(x, bottom - 11, str(value) if not isinstance(value, float) else f"{value:g}", "middle"))
    for number, name in enumerate(named):
        color = _SERIES[number % len(_SERIES)]
        line = [coordinate for row in points if str(row.get(chart.series, "")) == name for coordinate in at(row)]
        if len(line) >= 4:
            drawing.add(PolyLine(line, strokeColor=HexColor(color), strokeWidth=1.5))
    _legend(drawing, [name for name in named if name], left, width)
    return drawing


def _bars(chart: Chart, width: float) -> Any:
    """Draw bars that lie, from nothing; with series one after the other in a bar."""
    from reportlab.graphics.shapes import Drawing

    named = list(dict.fromkeys(str(row[chart.x.key]) for row in chart.data))[:12]
    rows = {name: [row for row in chart.data if str(row[chart.x.key]) == name] for name in named}
    series = list(dict.fromkeys(str(row.get(chart.series, "")) for row in chart.data)) if chart.series else [""]
    key = chart.y.key
    totals = [
        end
        for bars in rows.values()
        for end in (
            sum(max(float(row[key] or 0), 0.0) for row in bars),
            sum(min(float(row[key] or 0), 0.0) for row in bars),
        )
    ]
    marks = ticks(min(0.0, *totals), max(0.0, *totals), 5)
    legend = 14.0 if chart.series else 0.0
    drawing = Drawing(width, 18.0 * len(named) + 22 + legend)
    left = 150.0
    scale = (width - left - 20) / ((marks[-1] - marks[0]) or 1.0)
    top = 18.0 * len(named) + 18 + legend

    def across(value: float) -> float:
        return left + (value - marks[0]) * scale

    for mark in marks:
        drawing.add(_rule(across(mark), 16 + legend, across(mark), top))
        drawing.add(_text(across(mark), 4 + legend, _tick(mark, chart.y.measure), "middle"))
    for number, name in enumerate(named):
        y, reached = top - 18.0 * (number + 1) + 3, {True: 0.0, False: 0.0}
        drawing.add(_text(left - 6, y + 3, name[:34], "end"))
        for row in rows[name]:
            value = float(row[key] or 0)
            begin, end = reached[value >= 0], reached[value >= 0] + value
            reached[value >= 0] = end
            color = _SERIES[series.index(str(row.get(chart.series, ""))) % len(_SERIES)] if chart.series else _SERIES[0]
            one, other = sorted((across(begin), across(end)))
            drawing.add(_rect(one, y, max(other - one, 0.4), 12, color))
    _legend(drawing, series if chart.series else [], 4.0, width)
    return drawing
