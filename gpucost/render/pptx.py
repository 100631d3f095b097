"""The slides writer: the page that a board reads, with charts that PowerPoint and LibreOffice draw and can change."""

from collections.abc import Sequence
from typing import Any

from gpucost.errors import UsageError
from gpucost.render.document import (
    Chart,
    Document,
    KeyFigures,
    Paragraph,
    Table,
    cell_text,
    fact_text,
    head_text,
    printable,
)
from gpucost.store.files import replacing

MISSING = (
    "slides need the package python-pptx of the extra `pptx`, which is not installed. Run: pip install 'gpucost[pptx]',"
    " or write the page as .html or .xlsx."
)
_MOST_ROWS = 14  # of a table on a slide
_MOST_COLUMNS = 8
_MOST_CHARTS = 4  # beside that of the page
_COLORS = {"end": "6B7280", "more": "D55E00", "less": "0072B2"}
_SERIES = ("0072B2", "D55E00", "009E73", "CC79A7", "8A6D00", "56B4E9", "6B6B6B")
_USD = '$#,##0.0,,"M"'
_SHORT = 70  # characters of a title
_WIDE, _HIGH, _EDGE = 13.333, 7.5, 0.45  # inches


def write_pptx(document: Document, path: str) -> None:
    """Write a document as slides: of one with a page for a board that page, else its sections without details."""
    try:
        from pptx import Presentation
        from pptx.util import Inches
    except ImportError:
        raise UsageError(MISSING) from None
    document = printable(document)
    deck = Presentation()
    deck.slide_width, deck.slide_height = Inches(_WIDE), Inches(_HIGH)
    deck.core_properties.title, deck.core_properties.author = document.title, "gpucost"
    boards = [part for part in document.sections if part.board]
    for section in boards or [part for part in document.sections if not part.detail]:
        _section(deck, document, section.title, section.blocks, bool(boards))
    if boards:  # the pictures of the parts that a board may ask for
        parts = [part for part in document.sections if not part.board]
        asked = [block for part in parts for block in part.blocks if isinstance(block, Chart) and _drawable(block)]
        _pairs(deck, document, asked[:_MOST_CHARTS])
    with replacing(path) as temporary:
        deck.save(str(temporary))


def _section(deck: Any, document: Document, title: str, blocks: Sequence[Any], board: bool) -> None:
    """Put the answers, the key figures and the first chart on one slide, and two blocks on each that follows."""
    answers = [block for block in blocks if isinstance(block, KeyFigures) and block.style == "answers"]
    figures = [block for block in blocks if isinstance(block, KeyFigures) and block.style != "answers"]
    charts = [block for block in blocks if isinstance(block, Chart) and _drawable(block)]
    tables = [block for block in blocks if isinstance(block, Table) and block.rows]
    texts = [block for block in blocks if isinstance(block, Paragraph) and not board]
    first = _slide(deck, document, document.title if board or not title else f"{document.title}: {title}")
    top = 1.05
    if answers or texts or document.lead:
        said = [(fact.label, fact_text(fact)) for block in answers for fact in block.items]
        said = said or [("", document.lead)] + [("", block.text) for block in texts[:2]]
        height = _height(said)
        _words(first, said, top, height)
        top += height + 0.05
    if figures:
        top = _facts(first, figures[0], top)
    if charts:
        _chart(first, charts[0], _EDGE, top + 0.05, _WIDE - 2 * _EDGE, _HIGH - top - 0.5)
    rest: list[Table | Chart] = [*tables, *charts[1:]]
    if not charts and tables:
        rest = rest[1:]
        _table(first, tables[0], _EDGE, top + 0.05, _WIDE - 2 * _EDGE)
    _pairs(deck, document, rest)


def _pairs(deck: Any, document: Document, blocks: Sequence[Table | Chart]) -> None:
    """Put two blocks on each slide, side by side, under the names of both."""
    for at in range(0, len(blocks), 2):
        pair = blocks[at : at + 2]
        slide = _slide(deck, document, " · ".join(block.title or document.title for block in pair))
        wide = (_WIDE - 2 * _EDGE - 0.3) / len(pair) if len(pair) == 2 else _WIDE - 2 * _EDGE
        for place, block in enumerate(pair):
            left = _EDGE + place * (wide + 0.3)
            if isinstance(block, Chart):
                _chart(slide, block, left, 1.1, wide, 5.6)
            else:
                _table(slide, block, left, 1.1, wide)


def _slide(deck: Any, document: Document, title: str) -> Any:
    slide = deck.slides.add_slide(deck.slide_layouts[5])  # a title and nothing else
    from pptx.util import Inches

    frame = slide.shapes.title
    frame.left, frame.top, frame.width, frame.height = (Inches(size) for size in (_EDGE, 0.25, _WIDE - 2 * _EDGE, 0.7))
    _write(frame.text_frame, title, 26 if len(title) < _SHORT else 20, bold=True)
    foot = slide.shapes.add_textbox(Inches(_EDGE), Inches(_HIGH - 0.42), Inches(_WIDE - 2 * _EDGE), Inches(0.3))
    _write(foot.text_frame, " · ".join(document.stamp), 10, color="525A64")
    return slide


def _write(
    frame: Any, text: str, points: float, *, bold: bool = False, color: str = "1B1F24", new: bool = False
) -> None:
    """Write a paragraph into a frame."""
    from pptx.dml.color import RGBColor
    from pptx.enum.text import PP_ALIGN
    from pptx.util import Pt

    frame.word_wrap = True
    paragraph = frame.add_paragraph() if new else frame.paragraphs[0]
    paragraph.alignment = PP_ALIGN.LEFT
    run = paragraph.add_run()
    run.text = text
    run.font.size, run.font.bold, run.font.color.rgb = Pt(points), bold, RGBColor.from_string(color)


_CHARACTERS_AN_INCH = 11.5  # of text of 12 points


def _height(said: Sequence[tuple[str, str]]) -> float:
    """Return the inches that questions and answers take: the first answer is larger."""
    lines = 0.0
    for number, (question, text) in enumerate(said):
        size = 14 / 12 if number == 0 else 1.0
        across = (_WIDE - 2 * _EDGE - 0.2) * _CHARACTERS_AN_INCH / size
        lines += size * -(-len(text) // int(across)) + bool(question)
    return 0.2 * lines + 0.15


def _words(slide: Any, said: Sequence[tuple[str, str]], top: float, height: float) -> None:
    from pptx.util import Inches

    frame = slide.shapes.add_textbox(Inches(_EDGE), Inches(top), Inches(_WIDE - 2 * _EDGE), Inches(height)).text_frame
    new = False
    for number, (question, text) in enumerate(said):
        if question:
            _write(frame, question, 12, bold=True, color="0B57A4", new=new)
            new = True
        _write(frame, text, 14 if number == 0 else 12, bold=number == 0, new=new)
        new = True


def _facts(slide: Any, block: KeyFigures, top: float) -> float:
    """Set key figures side by side; return where they end."""
    from pptx.util import Inches

    items = block.items[:10]
    across = 5 if len(items) > 4 else max(len(items), 1)
    wide = (_WIDE - 2 * _EDGE) / across
    for number, fact in enumerate(items):
        down, place = divmod(number, across)
        box = slide.shapes.add_textbox(
            Inches(_EDGE + place * wide), Inches(top + 0.52 * down), Inches(wide), Inches(0.52)
        ).text_frame
        box.margin_top = box.margin_bottom = 0
        _write(box, fact.label, 10, color="525A64")
        _write(box, fact_text(fact), 14, bold=True, new=True)
    return top + 0.52 * -(-len(items) // across)


def _table(slide: Any, table: Table, left: float, top: float, wide: float) -> None:
    from pptx.util import Inches, Pt

    columns = [column for column in table.filled if column.priority < 2][:_MOST_COLUMNS]
    rows = table.rows[:_MOST_ROWS]
    if table.title:
        head = slide.shapes.add_textbox(Inches(left), Inches(top), Inches(wide), Inches(0.35)).text_frame
        _write(head, table.title, 14, bold=True)
        top += 0.4
    shape = slide.shapes.add_table(
        len(rows) + 1, len(columns), Inches(left), Inches(top), Inches(wide), Inches(0.28 * (len(rows) + 1))
    )
    grid = shape.table
    texts = [
        [head_text(column) for column in columns],
        *([cell_text(row, column) for column in columns] for row in rows),
    ]
    asked = [max(len(line[at]) for line in texts) + 2 for at in range(len(columns))]
    asked = [min(max(size, 8), 40) for size in asked]
    for at, size in enumerate(asked):
        grid.columns[at].width = Inches(wide * size / sum(asked))
    for number, line in enumerate(texts):
        for at, text in enumerate(line):
            cell = grid.cell(number, at)
            cell.margin_left = cell.margin_right = Pt(4)
            cell.margin_top = cell.margin_bottom = Pt(1.5)
            _write(cell.text_frame, text, 10, bold=number == 0, color="FFFFFF" if number == 0 else "1B1F24")


# --- Native charts: the figures stand in the sheet behind each.


def _drawable(chart: Chart) -> bool:
    return chart.kind in ("bridge", "tornado", "bar", "stacked", "line", "area") and bool(chart.data)


def _chart(slide: Any, chart: Chart, left: float, top: float, wide: float, high: float) -> None:
    """Draw a chart whose figures can be changed in PowerPoint."""
    from pptx.chart.data import CategoryChartData
    from pptx.dml.color import RGBColor
    from pptx.enum.chart import XL_CHART_TYPE, XL_LEGEND_POSITION, XL_TICK_LABEL_POSITION
    from pptx.util import Inches, Pt

    data = CategoryChartData()
    names, series = _series(chart)
    data.categories = names
    for name, values in series:
        data.add_series(name, values)
    kind = {
        "bridge": XL_CHART_TYPE.COLUMN_STACKED,
        "tornado": XL_CHART_TYPE.BAR_STACKED,
        "bar": XL_CHART_TYPE.BAR_CLUSTERED,
        "stacked": XL_CHART_TYPE.BAR_STACKED,
        "line": XL_CHART_TYPE.LINE,
        "area": XL_CHART_TYPE.AREA_STACKED,
    }[chart.kind]
    native = slide.shapes.add_chart(kind, Inches(left), Inches(top), Inches(wide), Inches(high), data).chart
    native.has_title = True
    _write(native.chart_title.text_frame, chart.title, 12, bold=True)
    native.font.size = Pt(10)
    native.has_legend = chart.kind not in ("bridge", "bar")
    if native.has_legend:
        native.legend.position, native.legend.include_in_layout = XL_LEGEND_POSITION.BOTTOM, False
    native.category_axis.tick_label_position = XL_TICK_LABEL_POSITION.LOW
    if chart.y.measure == "USD":
        native.value_axis.tick_labels.number_format = _USD
        native.value_axis.tick_labels.number_format_is_linked = False
    native.value_axis.major_gridlines.format.line.color.rgb = RGBColor.from_string("E0E0E0")
    if chart.kind in ("tornado", "bar", "stacked"):
        native.category_axis.reverse_order = True
    for number, drawn in enumerate(native.plots[0].series):
        if chart.kind == "bridge" and drawn.name == HIDDEN:
            drawn.format.fill.background()
            continue
        color = _COLORS.get(drawn.name.split(",")[0]) if chart.kind == "bridge" else _SERIES[number % len(_SERIES)]
        if color is not None and chart.kind != "line":
            drawn.format.fill.solid()
            drawn.format.fill.fore_color.rgb = RGBColor.from_string(color)
    if chart.kind not in ("line", "area"):
        native.plots[0].gap_width = 40


HIDDEN = "begins at"


def _series(chart: Chart) -> tuple[list[str], list[tuple[str, list[Any]]]]:
    """Return the categories and the series of a native chart."""
    rows = chart.data
    if chart.kind == "bridge":
        names = [f"{row[chart.x.key]}\n{row[chart.label]}" if chart.label else str(row[chart.x.key]) for row in rows]
        spans = [(float(row[chart.low]), float(row[chart.high]), row[chart.series]) for row in rows]
        hidden = [max(low, 0.0) + min(high, 0.0) for low, high, _ in spans]
        series: list[tuple[str, list[Any]]] = [(HIDDEN, hidden)]
        for kind in _COLORS:
            above = [max(high, 0.0) - max(low, 0.0) if of == kind else 0.0 for low, high, of in spans]
            below = [min(low, 0.0) - min(high, 0.0) if of == kind else 0.0 for low, high, of in spans]
            series.append((kind, above))
            if any(below):
                series.append((f"{kind}, below 0", below))
        return names, series
    if chart.kind == "tornado":
        base = chart.base or 0.0
        return [str(row[chart.x.key]) for row in rows], [
            ("at the low end", [row[chart.low] - base for row in rows]),
            ("at the high end", [row[chart.high] - base for row in rows]),
        ]
    order = list(dict.fromkeys(str(row[chart.x.key]) for row in rows))
    named = list(dict.fromkeys(str(row.get(chart.series, "")) for row in rows)) if chart.series else [chart.y.label]
    found = []
    for name in named:
        own = {
            str(row[chart.x.key]): row.get(chart.y.key)
            for row in rows
            if not chart.series or str(row.get(chart.series, "")) == name
        }
        found.append((name, [own.get(at) for at in order]))
    return order, found
