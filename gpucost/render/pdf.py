"""The PDF writer: paragraphs, key figures, tables and charts of a document on paper, without a browser.

ReportLab is pure Python with fonts of its own: text stays text. Charts are the pictures of their specifications.
"""

from collections.abc import Mapping
from typing import Any

from gpucost.errors import UsageError
from gpucost.render.document import (
    Block,
    Chart,
    Column,
    Document,
    KeyFigures,
    Paragraph,
    Table,
    cell_text,
    columns,
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
_MISSING_CHARTS = (
    "the charts of a PDF need the package vl-convert-python of the extra `pdf`, which is not installed. Run: pip"
    " install 'gpucost[pdf]', or write the page as .html and print it."
)
_SMALLEST, _USUAL, _LARGE = 8, 9, 17  # points
_MOST_ROWS, _TALL = 60, 20  # rows of a table on paper, and of one that stands whole below its title
_SOURCES = columns("publisher", "title", Column("locator", "where"), Column("published_on", "published"))
_INK, _SOFT, _LINE = "#1B1F24", "#525A64", "#C9CED6"
_CHART_HEIGHT = 170  # of a chart whose specification has none, before it is scaled to the paper
_FAMILY, _BOLD = "Vera", "VeraBd"  # fonts that ReportLab brings, with the signs of European languages


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
    # A board gets its pages alone; everybody else all but the details.
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
        if document.notice:
            story.append(Text(_safe(document.notice), styles["note"]))
        if document.lead and not board:
            story.append(Text(_safe(document.lead), styles["lead"]))
        story.append(Text(_safe(stamp), styles["note"]))
        for number, section in enumerate(sections):
            if number and board:
                story.append(PageBreak())
            if section.title and (number or not board):
                story.append(Text(_safe(section.title), styles["heading"]))
            for block in section.blocks:
                story += _block(block, width, styles)
        if board and len(sections) > 1 and document.sources:  # for whom a page was made that asks for them
            rows = [dict(source) for _, source in sorted(document.sources.items())]
            story += _block(Table(_SOURCES, rows, "Sources"), width, styles)
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

    # sizes in points: nothing below 8, which is what people read without effort
    def style(name: str, **changes: Any) -> ParagraphStyle:
        return ParagraphStyle(name, parent=usual, **changes)

    return {
        "usual": usual,
        "title": style("title", fontName=_BOLD, fontSize=_LARGE, leading=_LARGE * 1.2, spaceAfter=2),
        "lead": style("lead", fontSize=11, leading=14, spaceAfter=4),
        "heading": style(
            "heading", fontName=_BOLD, fontSize=10, leading=13, spaceBefore=7, spaceAfter=2, keepWithNext=1
        ),
        "heading of many": style(
            "heading of many", fontName=_BOLD, fontSize=10, leading=13, spaceBefore=7, spaceAfter=2
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
        if block.style == "plain":
            return _figures(block, width, styles)
        questions: list[Any] = []
        for number, fact in enumerate(block.items):
            decided = not number and block.style == "answers"  # the first answer in weight
            questions.append(Text(_safe(fact.label), styles["question"]))
            questions.append(Text(_safe(fact_text(fact)), styles["decided" if decided else "usual"]))
        return questions
    if isinstance(block, Table):
        return _table(block, width, styles)
    return _chart(block, width, styles)


def _figures(block: KeyFigures, width: float, styles: Mapping[str, Any]) -> list[Any]:
    """Set key figures in a grid, each under its label."""
    from reportlab.lib.colors import HexColor
    from reportlab.platypus import Paragraph as Text
    from reportlab.platypus import Spacer
    from reportlab.platypus import Table as Grid

    across = 5 if len(block.items) >= 5 else max(len(block.items), 1)  # a sixth of A4 is too narrow for an amount
    cells = [
        [Text(_safe(fact.label), styles["note"]), Text(_safe(fact_text(fact)), styles["figure"])]
        for fact in block.items
    ]
    cells += [[]] * (-len(cells) % across)  # the last row is filled up: ReportLab wants rows of one length
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

    # a title that keeps with a long table would push all of it onto the next page
    heading = styles["heading" if len(block.rows) <= _TALL else "heading of many"]
    title = [Text(_safe(block.title), heading)] if block.title else []
    if not block.rows:
        return [*title, Text(_safe(block.note or "No rows."), styles["note"])]
    shown = [column for column in block.filled if column.priority < 2]  # paper is as narrow as a narrow terminal
    rows = list(block.rows[:_MOST_ROWS])
    texts = [[cell_text(row, column) for column in shown] for row in rows]
    heads = [head_text(column) for column in shown]
    # A column asks for the room of its longest cell, at most 45 % of the paper, and needs that of its longest word, at
    # most a quarter: it wraps between words. Where all that is asked for fits, the paper is filled evenly; else
    # each column gets what it needs and, of what is left, its part of what it asked for beyond.
    right, full_widths, least_widths = [], [], []
    for at, column in enumerate(shown):
        cells = [line[at] for line in texts]
        # a day begins with a digit too, but reads as text
        reads_as_figure = all(
            cell and cell[0] in "-+$0123456789–" and not (len(cell) == 10 and cell[4] == "-") for cell in cells
        )
        right.append(is_numeric(column, rows) or reads_as_figure)
        head_width = max(stringWidth(word, _BOLD, _SMALLEST) for word in heads[at].split() or [""])
        cell_widths = (min(stringWidth(cell, _FAMILY, _SMALLEST), width * 0.45) for cell in cells)
        full_widths.append(max(head_width + 8, *(cell_width + 9 for cell_width in cell_widths)))
        words = {word for text in (heads[at], *cells) for word in text.split()} or {""}
        least_widths.append(min(max(stringWidth(word, _BOLD, _SMALLEST) for word in words), width / 4) + 9)
    spare, over = width - sum(least_widths), sum(full_widths) - sum(least_widths)
    if sum(full_widths) <= width:
        widths = [full + (width - sum(full_widths)) / len(full_widths) for full in full_widths]
    elif spare > 0 and over > 0:
        widths = [least + (full - least) * spare / over for least, full in zip(least_widths, full_widths, strict=True)]
    else:  # not even the words fit: they break
        widths = [full * width / sum(full_widths) for full in full_widths]
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


# --- Charts: the pictures that vl-convert draws of the specifications that the page shows.

_PICTURE, _FINER = 3, 1.2  # pixels for each point on paper, and by how much letters are smaller there


def _chart(chart: Chart, width: float, styles: Mapping[str, Any]) -> list[Any]:
    """Set a chart as wide as the paper; its height is that of its specification, else a third of that."""
    import json
    from io import BytesIO

    from reportlab.platypus import Image, KeepTogether
    from reportlab.platypus import Paragraph as Text

    from gpucost.render.vega import specification

    title = Text(_safe(chart.title), styles["heading"])
    if not chart.data:
        return [title, Text(_safe(chart.description), styles["note"])]
    try:
        import vl_convert
    except ImportError:
        raise UsageError(_MISSING_CHARTS) from None
    drawn_width = width * _FINER
    fitted = {"width": drawn_width, "height": _CHART_HEIGHT, "autosize": {"type": "fit-x", "contains": "padding"}}
    spec = {**fitted, **specification(chart), "width": drawn_width}
    picture = Image(BytesIO(vl_convert.vegalite_to_png(json.dumps(spec, default=str), scale=_PICTURE)))
    shrunk = width / picture.drawWidth
    picture.drawWidth, picture.drawHeight = width, picture.drawHeight * shrunk
    note = [Text(_safe(chart.note), styles["note"])] if chart.note else []
    return [KeepTogether([title, picture, *note])]
