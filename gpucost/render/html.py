"""The HTML writer: one self-contained, accessible page without external references; and fragments of one."""

import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from gpucost.errors import UsageError
from gpucost.render.document import (
    Chart,
    Column,
    Document,
    Row,
    Section,
    Table,
    amount,
    cell_text,
    head_text,
    is_numeric,
    printable,
    visible,
)
from gpucost.render.vega import COLORS, specification
from gpucost.render.wording import for_readers
from gpucost.store.files import write_text

if TYPE_CHECKING:
    from jinja2 import Environment


# --- Pages and fragments.

_ROWS_SHOWN = 2000  # keeps a page far below 2 MB; the full list belongs into a workbook or CSV
ROWS_ON_PAPER = 10  # of each table of the answer, as page.css cuts it
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_SHORT, _LONG, _LONGER = 16, 28, 90  # characters up to which a name is whole; from which a cell gets room, and more
_IDENTIFIER, _PIECE = re.compile(r"[a-z0-9]+(_[a-z0-9]+)+"), re.compile(r"[^_]+_?")
_CHART_ROWS = 200  # of the table that stands behind a chart
_MISSING = (
    "an HTML report needs packages of the extra `report`, which are not installed. "
    "Run: pip install 'gpucost[report]', or write the report as .md, .json or .xlsx."
)


def write_page(document: Document, path: str) -> None:
    """Write the page to `path`; an existing file is replaced only by a complete one."""
    write_text(path, page(document))


def page(document: Document) -> str:
    """Return the whole page: charts drawn by an embedded Vega-Lite, no request to anywhere."""
    template = _templates().get_template("page.html")
    document = _picture_first(for_readers(document))
    charted = any(isinstance(block, Chart) for section in document.sections for block in section.blocks)
    return template.render(
        **_template_values(document, charts=True),
        colors=_json(COLORS),
        request=visible(json.dumps(dict(document.request), ensure_ascii=False, separators=(",", ":"), default=str)),
        # the library weighs more than all the rest of a page: one without charts goes without it
        library=_library() if charted else "window.vegaEmbed = () => {};",
    )


def _picture_first(document: Document) -> Document:
    """Return a document that begins with a picture: where its first part has none, the first one of the others."""
    drawn = [number for number, part in enumerate(document.sections) if any(isinstance(b, Chart) for b in part.blocks)]
    if not drawn or drawn[0] == 0:
        return document
    sections = list(document.sections)
    part = sections[drawn[0]]
    picture = next(block for block in part.blocks if isinstance(block, Chart))
    sections[drawn[0]] = replace(part, blocks=tuple(block for block in part.blocks if block is not picture))
    # paper shows only marked sections where there are any, and the picture belongs on it
    first = Section("", (picture,), paper=any(part.paper for part in sections))
    return replace(document, sections=(first, *(part for part in sections if part.blocks)))


def fragment(document: Document) -> str:
    """Return the document for a notebook cell: with the extra `report` its first chart, and its first table."""
    sections = ((part, [block for block in part.blocks if isinstance(block, Table)]) for part in document.sections)
    part, table = next(
        ((part, tables[0]) for part, tables in sections if tables and not part.detail), (Section("", ()), None)
    )
    blocks = () if table is None else (replace(table, rows=table.rows[:_CELL_ROWS], interactive=False),)
    more = "" if table is None or len(table.rows) <= _CELL_ROWS else f"{len(table.rows) - _CELL_ROWS:,} more rows"
    short = replace(document, sections=(replace(part, blocks=blocks),))
    template = _templates().get_template("fragment.html")
    charts = [block for part in document.sections for block in part.blocks if isinstance(block, Chart)]
    picture = _picture(charts[0]) if charts else None
    return template.render(**_template_values(short, charts=False), picture=picture, more=more)


_CELL_ROWS, _CELL_WIDTH, _CELL_POINTS = 10, 600, 60  # of a notebook's cell
_SPOKEN = re.compile(r' (?:aria-label|aria-roledescription|role)="[^"]*"')  # of each point; the chart has its own words


def _picture(chart: Chart) -> tuple[str, str] | None:
    """Return a chart as an image that needs no script, and what it says; None without the extra `report`."""
    try:
        import vl_convert
    except ImportError:
        return None
    from base64 import b64encode

    if chart.kind == "offers":  # the line of the best, and of the others those that rank first
        front = [row for number, row in enumerate(chart.data) if row.get(chart.low) or number < _CELL_POINTS]
        chart = replace(chart, data=front)
    drawn = vl_convert.vegalite_to_svg(json.dumps(specification(chart) | {"width": _CELL_WIDTH}, default=str))
    drawn = _SPOKEN.sub("", drawn)
    return f"data:image/svg+xml;base64,{b64encode(drawn.encode()).decode()}", chart.description


@cache
def _templates() -> "Environment":
    """Return the templates with auto-escaping; the style and the script of the page are the project's own text."""
    try:
        from jinja2 import Environment, FunctionLoader
    except ImportError:
        raise UsageError(_MISSING) from None
    environment = Environment(loader=FunctionLoader(_asset), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.globals |= {"asset": _asset}
    return environment


def _asset(name: str) -> str:
    return files("gpucost.render").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """Return the script that draws charts, from the cache of the machine where it was bundled before."""
    try:
        import vl_convert
    except ImportError:
        raise UsageError(_MISSING) from None
    from importlib.metadata import version
    from zlib import crc32

    from gpucost.catalog.cached import text

    program = "window.vegaEmbed = vegaEmbed;"  # to bundle it takes longer than all the rest of a page
    # the name follows the version and the program: a newer converter bundles anew
    name = f"charts/{version('vl-convert-python')}-{crc32(program.encode()):x}.js"
    return text(name, lambda: str(vl_convert.javascript_bundle(program)).replace("</script", "<\\/script"))


def _json(value: object) -> str:
    """Write JSON that may stand inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).replace("<", "\\u003c")


def _template_values(document: Document, *, charts: bool) -> dict[str, Any]:
    """Return what the templates need: the document, its sources in order, and how to look at a block."""
    document = printable(document)
    numbers = {name: number for number, name in enumerate(sorted(document.sources), 1)}
    brief = any(part.paper for part in document.sections)
    remainder = document.lead.removeprefix(document.headline)  # what the lead says behind its headline
    has_remainder = bool(document.headline) and remainder != document.lead
    left = [part for part in document.sections if brief and not part.board and not part.paper]
    return {
        "document": document,
        "charts": charts,
        "numbers": numbers,
        "brief": brief,
        "left_on_paper": left,
        "rest_of_lead": remainder.lstrip() if has_remainder else "",
        "kind_of": lambda block: type(block).__name__,
        "amount": amount,
        "look": lambda table: _table(table, live=table.interactive and charts),
        "figures_of": _chart_table,
        "specification": lambda chart: _json(specification(chart)),
    }


def _table(table: Table, *, live: bool) -> dict[str, Any]:
    """Return a table as texts: heads, cells, and the totals."""
    rows, columns, total = table.rows[:_ROWS_SHOWN], table.filled, table.total
    right = {column.key: is_numeric(column, rows) for column in columns}
    cut = f"The first {len(rows):,} of {len(table.rows):,} rows; the workbook and the CSV output have all."
    # a row has several sources, or one, or none: a list in any case
    sources = [row.get("source_ids") or ([row["source_id"]] if row.get("source_id") else []) for row in rows]
    return {
        "live": live,
        "heads": [(head_text(column), right[column.key], column.priority) for column in columns],
        "rows": [[_cell(row, column, right[column.key]) for column in columns] for row in rows],
        "ids": [ids if isinstance(ids, (list, tuple)) else [str(ids)] for ids in sources],
        "totals": [
            ("" if total.get(column.key) is None else cell_text(total, column), right[column.key]) for column in columns
        ]
        if total
        else [],
        "more_on_paper": max(0, len(rows) - ROWS_ON_PAPER),
        "notes": [*table.note.splitlines(), *([cut] if len(table.rows) > len(rows) else [])],
    }


def _cell(row: Row, column: Column, right: bool) -> dict[str, Any]:
    """Return what the template needs of a cell: its text, what sorting compares, how much room it asks for."""
    value, text = row.get(column.key), cell_text(row, column)
    raw = "" if value is None else repr(value)
    breaks = not right and len(text) > _SHORT and _IDENTIFIER.fullmatch(text)
    pieces = _PIECE.findall(text) if breaks else ()  # it may break after these
    # classes of page.css: days and short names never wrap, long texts get a wider column
    if right:
        room = ""
    elif _DAY.fullmatch(text):
        room = "day"
    elif len(text) <= _SHORT:
        room = "short"
    elif len(text) <= _LONG:
        room = ""
    else:
        room = "long" if len(text) <= _LONGER else "longer"
    return {"text": text, "number": right, "value": raw, "room": room, "pieces": pieces}


def _chart_table(chart: Chart) -> Table:
    """Return the figures of a chart as a table, for those who cannot see the picture."""
    keys = [chart.x.key, chart.y.key, chart.series, chart.label, chart.low, chart.high, chart.value]
    # a chart may give its axes a unit that their keys do not name; the ends of a range are in that of y
    units = {chart.x.key: chart.x.measure} | dict.fromkeys((chart.y.key, chart.low, chart.high), chart.y.measure)
    present = [key for key in dict.fromkeys(keys) if key and any(key in row for row in chart.data)]
    columns = tuple(Column(key, unit=units.get(key, "")) for key in present)
    note = f"The first {_CHART_ROWS} points." if len(chart.data) > _CHART_ROWS else ""
    return Table(columns, list(chart.data)[:_CHART_ROWS], note=note)
