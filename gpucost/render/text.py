"""The terminal writer: aligned text and small plots that respect width, pipes, NO_COLOR and plain ASCII terminals."""

import math
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from operator import le

from msgspec import Struct
from msgspec.structs import replace

from gpucost.render.document import (
    Block,
    Chart,
    Column,
    Document,
    KeyFigures,
    Paragraph,
    Row,
    Section,
    Table,
    cell_text,
    cell_writer,
    fact_text,
    figure,
    head_text,
    is_numeric,
    printable,
    short_unit,
    with_heading,
)
from gpucost.render.money import is_money, money_text
from gpucost.units import counted

# --- The terminal.

_WIDE = 150  # a pipe or a file has no width of its own
_PLAIN = str.maketrans(
    {
        "–": "-",
        "—": "-",
        "×": "x",
        "µ": "u",
        "∞": "inf",
        "█": "#",
        "─": "-",
        "·": ".",
        "≤": "<=",
        "≥": ">=",
        "•": "*",
        "┼": "+",
        "│": "|",
        "→": "->",
        "…": "...",
    }
)


class Terminal(Struct, frozen=True):
    """What the receiving end can show."""

    width: int
    color: bool
    unicode: bool

    def paint(self, text: str, code: str) -> str:
        """Colour the text where that is welcome."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.color else text


def detect(width: int | None = None, color: bool | None = None, unicode: bool | None = None) -> Terminal:
    """Find out what standard output can show; arguments overrule."""
    interactive = sys.stdout.isatty()
    if width is None:
        width = shutil.get_terminal_size().columns if interactive or "COLUMNS" in os.environ else _WIDE
    if color is None:
        color = interactive and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if unicode is None:
        unicode = "utf" in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    return Terminal(max(width, 20), color, unicode)


def to_ascii(text: str) -> str:
    """Replace the few signs beyond ASCII that documents use."""
    return text.translate(_PLAIN).encode("ascii", "replace").decode("ascii")


# --- Plots: bars with ranges, and scatter or line plots on a character grid.

_MARKS = "ox+*#@%&"
_ROWS = 12
_BARS = 20  # a longer list of bars is cut, and says so


def plot(chart: Chart, terminal: Terminal) -> Iterator[str]:
    """Draw a chart as lines of text; charts that text cannot carry give their description."""
    yield terminal.paint(chart.title, "1")
    rows = [row for row in chart.data if _finite(row.get(chart.y.key)) or chart.kind == "tornado"]
    if not rows:
        yield "(nothing to draw)"
    elif chart.kind in ("bar", "tornado"):
        yield from _tornado(chart, terminal) if chart.kind == "tornado" else _bars(chart, rows, terminal)
    elif chart.kind in ("line", "area", "scatter", "offers", "roofline") and all(
        _across(row.get(chart.x.key)) is not None for row in rows
    ):
        yield from _plot_grid(chart, rows, terminal)
    elif chart.kind == "bridge":
        yield from _bridge(chart, rows, terminal)
    elif chart.kind == "stacked":
        # text cannot split a bar: each part becomes one of its own, largest first within the bar that it was part of
        order = list(dict.fromkeys(row[chart.x.key] for row in rows))
        largest_first = sorted(rows, key=lambda row: (order.index(row[chart.x.key]), -row[chart.y.key]))
        parts: list[Row] = []
        for row in largest_first:
            name = f"{row[chart.x.key]}: {row[chart.series]}" if len(order) > 1 else row[chart.series]
            parts.append({**row, chart.x.key: name})
        yield from _bars(chart, parts, terminal)
    else:
        yield from textwrap.wrap(chart.description, terminal.width)


def _finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _across(value: object) -> float | None:
    """Return where a number or a day stands from left to right; None for anything else."""
    if isinstance(value, str):
        try:
            return float(date.fromisoformat(value).toordinal())
        except ValueError:
            return None
    return float(value) if isinstance(value, (int, float)) and _finite(value) else None


def _scaler(values: Sequence[float], steps: int, log: bool) -> tuple[Callable[[float], int], float, float]:
    """Return what places a value on so many steps between the least and the most, and these two."""
    low, high = min(values), max(values)
    log = log and low > 0  # of zero there is no logarithm
    bend: Callable[[float], float] = math.log if log else float
    span = bend(high) - bend(low) or 1.0  # a single value stands at the beginning

    def position(value: float) -> int:
        return round((bend(value) - bend(low)) / span * (steps - 1))

    return position, low, high


def _drawn(value: float, unit: str) -> str:
    """Write a figure of a plot."""
    return money_text(value) if is_money(unit) and _finite(value) else figure(value, unit)


def _bars(chart: Chart, rows: Sequence[Row], terminal: Terminal) -> Iterator[str]:
    """Draw horizontal bars; a thin line goes on to the high end of a range."""
    drawn = rows[:_BARS]
    names = [str(row[chart.x.key]) for row in drawn]
    values = [_drawn(row[chart.y.key], chart.y.measure) for row in drawn]
    pad, tail = min(max(map(len, names)), terminal.width // 3), max(map(len, values))
    room = max(min(terminal.width, 100) - pad - tail - 4, 8)
    # What lies below zero goes to the left of an axis, which takes one character where there is such a bar.
    lengths = [float(row[chart.y.key]) for row in drawn]
    reach = [float(row.get(chart.high) or 0.0) if chart.high else 0.0 for row in drawn]
    below, above = max(0.0, -min(lengths)), max(0.0, *lengths, *reach)
    scale = (room - bool(below)) / ((below + above) or 1.0)
    block, line, axis = ("█", "─", "│") if terminal.unicode else ("#", "-", "|")
    for name, value, length, end in zip(names, values, lengths, reach, strict=True):
        bar = block * round(max(length, 0.0) * scale)
        bar += line * max(round(end * scale) - len(bar), 0)
        left = f"{block * round(max(-length, 0.0) * scale):>{round(below * scale)}}{axis}" if below else ""
        yield f"{name[:pad]:<{pad}}  {value:>{tail}}  {left}{bar}"
    if len(rows) > len(drawn):
        yield f"(and {len(rows) - len(drawn)} more)"


def _bridge(chart: Chart, rows: Sequence[Row], terminal: Terminal) -> Iterator[str]:
    """Draw bars that hang between their ends, on one scale."""
    names = [str(row[chart.x.key]) for row in rows]
    values = [_drawn(row[chart.y.key], chart.y.measure) for row in rows]
    pad, tail = min(max(map(len, names)), terminal.width // 3), max(map(len, values))
    room = max(min(terminal.width, 100) - pad - tail - 4, 8)
    position, *_ = _scaler([row[key] for row in rows for key in (chart.low, chart.high)], room, log=False)
    signs = ("█", "▒") if terminal.unicode else ("#", "-")
    for row, name, value in zip(rows, names, values, strict=True):
        left, right = position(row[chart.low]), position(row[chart.high])
        bar = " " * left + signs[row[chart.series] == "less"] * max(right - left, 1)
        yield f"{name[:pad]:<{pad}}  {value:>{tail}}  {bar}"
    yield from textwrap.wrap(chart.note, terminal.width)


def _tornado(chart: Chart, terminal: Terminal) -> Iterator[str]:
    """Draw bars to both sides of the base, with the results at both ends."""
    rows = [row for row in chart.data if _finite(row.get(chart.low)) and _finite(row.get(chart.high))][:_BARS]
    if not rows:
        yield "(nothing to draw)"
        return
    base = chart.base if chart.base is not None else 0.0
    names = [str(row[chart.x.key]) for row in rows]
    pad = min(max(map(len, names)), terminal.width // 3)
    room = max((min(terminal.width, 100) - pad - 30) // 2, 6)
    reach = max(max(abs(row[chart.low] - base), abs(row[chart.high] - base)) for row in rows) or 1.0
    block = "█" if terminal.unicode else "#"
    for row, name in zip(rows, names, strict=True):
        # the low value of an assumption may give the high result; an end beyond the base draws nothing on its side
        ends = sorted((float(row[chart.low]), float(row[chart.high])))
        left = round(max(base - ends[0], 0) / reach * room)
        right = round(max(ends[1] - base, 0) / reach * room)
        text = f"{_drawn(ends[0], chart.y.measure)} to {_drawn(ends[1], chart.y.measure)}"
        line = f"{name[:pad]:<{pad}}  {block * left:>{room}}|{block * right:<{room}}  {text}"
        # where figures have no room, the bars stand without them: 3 for the two blanks and the base
        yield line if len(line) <= terminal.width else line[: pad + 3 + 2 * room].rstrip()


def _plot_grid(chart: Chart, rows: Sequence[Row], terminal: Terminal) -> Iterator[str]:
    """Draw points on a grid of characters, each series with its own mark, and the ends of both axes."""
    width = max(min(terminal.width, 90) - 12, 16)  # less the edge with its figures
    positions = [_across(row[chart.x.key]) or 0.0 for row in rows]
    across, x_low, x_high = _scaler(positions, width, chart.x.log)
    dated = isinstance(rows[0][chart.x.key], str)
    up, y_low, y_high = _scaler([float(row[chart.y.key]) for row in rows], _ROWS, chart.y.log)
    series = list(dict.fromkeys(str(row.get(chart.series, "")) for row in rows)) if chart.series else [""]
    canvas = [[" "] * width for _ in range(_ROWS)]
    for row, position in zip(rows, positions, strict=True):
        mark = _MARKS[series.index(str(row.get(chart.series, "")) if chart.series else "") % len(_MARKS)]
        canvas[_ROWS - 1 - up(float(row[chart.y.key]))][across(position)] = mark  # the first line is the top
    yield with_heading(chart.y.label, short_unit(chart.y.measure))
    edges = {0: y_high, _ROWS - 1: y_low}  # lines that say what they stand for
    for index, line in enumerate(canvas):
        edge = _drawn(edges[index], chart.y.measure) if index in edges else ""
        yield f"{edge:>9} │{''.join(line)}"
    yield f"{'':>9} ┼{'─' * width}"
    # Below the axis stand both ends and, between them, what the axis shows, as far as there is room.
    if dated:
        left, right = (date.fromordinal(int(end)).isoformat() for end in (x_low, x_high))
        middle = chart.x.label
    else:
        left, right = _drawn(x_low, chart.x.measure), _drawn(x_high, chart.x.measure)
        middle = with_heading(chart.x.label, short_unit(chart.x.measure)) + (", log" if chart.x.log else "")
    room = max(width - len(left) - len(right) - 2, 0)
    middle = middle if len(middle) <= room else middle[:room].rstrip()
    gap = max(width - len(left) - len(right) - len(middle), 2)
    yield f"{'':>10} {left}{' ' * (gap // 2)}{middle}{' ' * (gap - gap // 2)}{right}"
    if chart.series:
        yield "   ".join(f"{_MARKS[index % len(_MARKS)]} {name}" for index, name in enumerate(series))


# --- The writer.

_NARROWEST = 8  # of a column whose text wraps
_SCREEN_LINES = 23  # of a screen of 24: one is left for the prompt
_FEWER = (1000, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1)  # rows of each block, until a screen holds them


def write(
    document: Document,
    *,
    width: int | None = None,
    color: bool | None = None,
    unicode: bool | None = None,
    all_sections: bool = False,
    one_screen: bool = False,
) -> str:
    """Return the document as text. Sections marked as detail are shown with `all_sections` only."""
    terminal = detect(width, color, unicode)
    brief = bool(one_screen and document.screen)
    sections = () if brief else tuple(section for section in document.sections if all_sections or not section.detail)
    # what is not shown need not be cleaned either: a request or a detail may hold thousands of rows
    document = printable(replace(document, request={}, sections=sections, screen=document.screen if brief else ()))
    if brief:
        lines = _screenful(document, terminal)
    else:
        lines = _head(document, terminal)
        for section in document.sections:
            lines += _section(section, terminal)
        lines += _foot(document, terminal, (*document.warnings, *document.remarks), brief=False)
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    return text if terminal.unicode else to_ascii(text)


def _screenful(document: Document, terminal: Terminal) -> list[str]:
    """Return what one screen shows: blocks lose their last rows, then warnings are counted, until it fits."""
    all_warnings = document.warnings
    # So many rows of each block with so many warnings, from the most that one would like to see to the least: all
    # warnings as long as three rows are left, then two, one or none beside three rows or two, last beside a single row.
    attempts = [(rows, len(all_warnings)) for rows in _FEWER[:-2]]
    for fewer in (_FEWER[-3:-1], _FEWER[-1:]):
        attempts += [(rows, count) for rows in fewer for count in (2, 1)]
        attempts += [(rows, 0) for rows in fewer]
    for rows, warnings in attempts:
        shown_warnings, left = all_warnings, len(all_warnings) - warnings
        if left > 0:
            more = f"{counted(left, 'more warning' if warnings else 'warning')} with --details."
            shown_warnings = (*all_warnings[:warnings], more)
        for short in (False, True):
            # a block keeps its first rows, a chart fewer than a table; what is cut of tables is counted below them
            blocks: list[Block] = []
            for block in document.screen:
                if isinstance(block, KeyFigures) and short:
                    facts = (
                        fact if fact.shorter is None else replace(fact, value=fact.shorter) for fact in block.items
                    )
                    block = replace(block, items=tuple(fact for fact in facts if fact.value != ""))
                elif isinstance(block, Table):
                    block = replace(block, most=rows)
                elif isinstance(block, Chart) and block.kind == "bar":  # others are as high whatever they show
                    block = replace(block, data=block.data[: max(rows - 3, 1)])
                blocks.append(block)
            lines = [*_head(document, terminal, brief=True), *_section(Section("", blocks), terminal)]
            lines += _foot(document, terminal, shown_warnings, brief=True)[1:]
            if len(lines) <= _SCREEN_LINES:
                return lines
    return lines  # of a narrow terminal: the shortest that there is


def _head(document: Document, terminal: Terminal, *, brief: bool = False) -> list[str]:
    lines = _title(document.notice, terminal, "33") if document.notice else []
    if brief and document.name:
        # the name, and the day of the prices at the end of the line where there is room
        name, day = document.name, f"prices of {document.day}" if document.is_priced else ""
        room = min(terminal.width, 100) - len(name) - len(day)
        if not day or room < 2:
            return [*lines, *_title(name, terminal, "1"), *([day] if day else [])]
        return [*lines, terminal.paint(f"{name}{' ' * room}{day}", "1")]
    lines += _title(document.title, terminal, "1")
    # of the lead the answer itself, where the document tells it apart, comes first and in weight
    if document.headline and document.lead:
        lines += _title(document.headline, terminal, "1")
    if remainder := document.lead.removeprefix(document.headline).lstrip():
        lines += _wrap(remainder, terminal.width)
    return lines


def _section(section: Section, terminal: Terminal) -> list[str]:
    body: list[str] = []
    for block in section.blocks:
        if isinstance(block, Paragraph):
            body += block.text.splitlines() if block.style == "code" else _wrap(block.text, terminal.width)
        elif isinstance(block, KeyFigures):
            body += _facts(block, terminal)
        elif isinstance(block, Table):
            body += table_lines(block, terminal)
        else:
            body += plot(block, terminal)
        body.append("")
    if not body:
        return []
    return ["", *_title(section.title, terminal, "1"), *body[:-1]] if section.title else ["", *body[:-1]]


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]


def _title(text: str, terminal: Terminal, style: str) -> list[str]:
    return [terminal.paint(line, style) for line in _wrap(text, terminal.width)]


def _facts(facts: KeyFigures, terminal: Terminal) -> Iterator[str]:
    """Write each label beside its figure, or where labels are questions, above it."""
    if facts.title:
        yield from _title(facts.title, terminal, "2")
    if not facts.items:
        return
    if facts.style != "plain":
        for fact in facts.items:
            yield from _title(fact.label, terminal, "1")
            yield from _wrap(f"  {fact_text(fact)}", terminal.width, "  ")
        return
    pad = min(max(len(fact.label) for fact in facts.items), terminal.width // 2)
    for fact in facts.items:
        yield from _wrap(f"{fact.label:<{pad}}  {fact_text(fact)}", terminal.width, " " * (pad + 2))


def table_lines(table: Table, terminal: Terminal) -> Iterator[str]:
    """Lay a table out in columns; when they do not fit, hide the least important ones and say which."""
    if table.title:
        yield from _title(table.title, terminal, "4" if terminal.color else "0")
    if not table.rows:
        yield table.note or "(no rows)"
        return
    left = max(len(table.rows) - table.most, 0) if table.most else 0
    full_table, table = table, replace(table, rows=table.rows[: table.most]) if left else table
    columns, dropped, grid = _fitting(table, terminal)
    if left == 1 and not dropped:  # to say that one row is left out takes a line as well
        left, table = 0, full_table
        columns, dropped, grid = _fitting(table, terminal)
    # Where even the chief columns do not fit, the widest columns of text are narrowed and wrap.
    right = [is_numeric(column, table.rows) for column in columns]
    widths = [max(len(row[index]) for row in grid) for index in range(len(grid[0]))]
    for index in sorted((index for index in range(len(widths)) if not right[index]), key=lambda index: -widths[index]):
        excess = sum(widths) + 2 * (len(widths) - 1) - terminal.width
        if excess > 0:
            widths[index] = max(widths[index] - excess, min(widths[index], _NARROWEST))
    if sum(widths) + 2 * (len(widths) - 1) > terminal.width:
        # still too wide: each row becomes lines of heading and value
        head, *body = grid
        pad = min(max(map(len, head)), terminal.width // 2)
        for cells in body:
            for name, text in zip(head, cells, strict=True):
                if text:
                    yield from _wrap(f"{name[:pad]:<{pad}}  {text}", terminal.width, " " * (pad + 2))
            yield ""
    else:
        pattern = "  ".join(
            f"{{:{'>' if is_right else '<'}{width}}}" for is_right, width in zip(right, widths, strict=True)
        )
        for number, cells in enumerate(grid):
            for line_cells in _row_lines(cells, widths):
                line = pattern.format(*line_cells).rstrip()
                yield terminal.paint(line, "1") if number == 0 else line
            if number == 0 or (table.total and number == len(grid) - 2):  # below the head, and above the total
                yield "─" * min(sum(widths) + 2 * (len(widths) - 1), terminal.width)
    if dropped or left:
        yield from _wrap(_hidden_note([column.title for column in reversed(dropped)], left), terminal.width)
    for line in table.note.splitlines():
        yield from _wrap(line, terminal.width, "  ")


def _fitting(table: Table, terminal: Terminal) -> tuple[list[Column], list[Column], list[list[str]]]:
    """Return the columns that fit, those that are hidden, and the cells of the former."""
    columns = list(table.filled)
    dropped: list[Column] = []
    grid = _table_grid(table, columns)
    while _width(grid) > terminal.width and any(column.priority for column in columns):
        least = max(range(len(columns)), key=lambda index: (columns[index].priority, index))
        dropped.append(columns.pop(least))
        grid = _table_grid(table, columns)
    for column in reversed(dropped):  # a narrow one may yet fit in the place of a wide one
        candidates = [candidate for candidate in table.filled if candidate in columns or candidate == column]
        wider = _table_grid(table, candidates)
        if _width(wider) <= terminal.width:
            columns, grid = candidates, wider
    return columns, [column for column in dropped if column not in columns], grid


def _hidden_note(columns: Sequence[str], rows: int) -> str:
    """Say which columns are too wide for the terminal, and how many rows one screen leaves out.

    >>> _hidden_note(["range"], 0)
    'A wider terminal also shows: range.'
    >>> _hidden_note(["range"], 2)
    'A wider terminal also shows: range. 2 more rows with --details.'
    """
    notes = [f"A wider terminal also shows: {', '.join(columns)}."] if columns else []
    notes += [f"{counted(rows, 'more row')} with --details."] if rows else []
    return " ".join(notes)


def _table_grid(table: Table, columns: Sequence[Column]) -> list[list[str]]:
    """Return the texts of a table: its head, its rows, and last its total."""
    writers = [cell_writer(column) for column in columns]
    body = [[write(row) for write in writers] for row in table.rows]
    if total := table.total:
        body.append(["" if total.get(column.key) is None else cell_text(total, column) for column in columns])
    return [[head_text(column) for column in columns], *body]


def _width(grid: list[list[str]]) -> int:
    return sum(max(len(row[index]) for row in grid) for index in range(len(grid[0]))) + 2 * (len(grid[0]) - 1)


def _row_lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[Sequence[str]]:
    """Wrap the cells of a row; most fit on one line, which is quicker seen than wrapped."""
    if all(map(le, map(len, row), widths)) and "".join(row).isprintable():
        yield row
        return
    cells = [textwrap.wrap(text, width) for text, width in zip(row, widths, strict=True)]
    for level in range(max(1, *map(len, cells))):
        yield [cell[level] if level < len(cell) else "" for cell in cells]


def _foot(document: Document, terminal: Terminal, warnings: Sequence[str], *, brief: bool) -> list[str]:
    """Return the warnings, and who issued the answer for which day."""
    lines = [""]
    for warning in warnings:
        wrapped = _wrap(f"! {warning}", terminal.width, "  ")
        lines += [terminal.paint(line, "33") for line in wrapped]
    stamp = [] if brief and document.name else document.stamp  # a screen has the day beside its name
    if document.sources and stamp:
        where = "" if brief else " (all in --format json, md and reports)"
        stamp.append(f"sources: {len(document.sources)}{where}")
    if stamp:
        lines += [terminal.paint(line, "2") for line in _wrap(" · ".join(stamp), terminal.width)]
    return lines if len(lines) > 1 else []
