"""The terminal writer: a document as aligned text that respects width, pipes, NO_COLOR and plain ASCII terminals."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import le

from gpucost.render.cells import cell_text, cell_writer, fact_text, head_text, is_numeric
from gpucost.render.document import Block, Chart, Column, Document, KeyFigures, Paragraph, Section, Table, printable
from gpucost.render.terminal import Terminal, detect, to_ascii
from gpucost.units import counted

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
    shown = () if brief else tuple(section for section in document.sections if all_sections or not section.detail)
    document = printable(replace(document, request={}, sections=shown, screen=document.screen if brief else ()))
    lines = _screenful(document, terminal) if brief else _all(document, terminal)
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    return text if terminal.unicode else to_ascii(text)


def _all(document: Document, terminal: Terminal) -> list[str]:
    """Return every section."""
    lines = _head(document, terminal)
    for section in document.sections:
        lines += _section(section, terminal)
    return [*lines, *_foot(document, terminal, document.warnings, brief=False)]


def _screenful(document: Document, terminal: Terminal) -> list[str]:
    """Return what one screen shows: blocks lose their last rows, then warnings are counted, until it fits."""
    said = document.warnings
    all_told = [(rows, len(said)) for rows in _FEWER[:-2]]
    for rows, warnings in (*all_told, *((rows, count) for rows in _FEWER[-3:] for count in (2, 1))):
        left = len(said) - warnings
        told = said if left <= 0 else (*said[:warnings], f"{counted(left, 'more warning')}: --details.")
        shown = [_cut(block, rows) for block in document.screen]
        lines = [*_head(document, terminal), *_section(Section("", shown), terminal)]
        lines += _foot(document, terminal, told, brief=True)[1:]
        if len(lines) <= _SCREEN_LINES:
            break
    return lines


def _cut(block: Block, rows: int) -> Block:
    """Return a block with its first rows, a chart with fewer than a table; what is cut of tables is counted."""
    if isinstance(block, Table):
        return replace(block, most=rows)
    if isinstance(block, Chart) and block.kind in ("bar", "tornado"):
        return replace(block, data=block.data[: max(rows - 3, 1)])
    return block


def _head(document: Document, terminal: Terminal) -> list[str]:
    return [*_title(document.title, terminal, "1"), *(_lead(document, terminal) if document.lead else [])]


def _section(section: Section, terminal: Terminal) -> list[str]:
    body = [line for block in section.blocks for line in [*_block(block, terminal), ""]]
    if not body:
        return []
    return ["", *_title(section.title, terminal, "1"), *body[:-1]] if section.title else ["", *body[:-1]]


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]


def _title(text: str, terminal: Terminal, style: str) -> list[str]:
    return [terminal.paint(line, style) for line in _wrap(text, terminal.width)]


def _lead(document: Document, terminal: Terminal) -> list[str]:
    """Return the lead; the answer itself, where the document tells it apart, comes first and in weight."""
    rest = document.lead.removeprefix(document.headline).lstrip()
    answer = _title(document.headline, terminal, "1")
    return [*(answer if document.headline else []), *(_wrap(rest, terminal.width) if rest else [])]


def _block(block: Block, terminal: Terminal) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield from block.text.splitlines() if block.style == "code" else _wrap(block.text, terminal.width)
    elif isinstance(block, KeyFigures):
        yield from _facts(block, terminal)
    elif isinstance(block, Table):
        yield from table_lines(block, terminal)
    else:
        from gpucost.render.plots import plot

        yield from plot(block, terminal)


def _facts(facts: KeyFigures, terminal: Terminal) -> Iterator[str]:
    if facts.title:
        yield from _title(facts.title, terminal, "2")
    if not facts.items:
        return
    pad = min(max(len(fact.label) for fact in facts.items), terminal.width // 2)
    for fact in facts.items:
        yield from _wrap(f"{fact.label:<{pad}}  {fact_text(fact)}", terminal.width, " " * (pad + 2))


def table_lines(table: Table, terminal: Terminal) -> Iterator[str]:
    """Lay a table out in columns; when they do not fit, the least important columns go, and a line says which."""
    if table.title:
        yield from _title(table.title, terminal, "4" if terminal.color else "0")
    if not table.rows:
        yield table.note or "(no rows)"
        return
    left = max(len(table.rows) - table.most, 0) if table.most else 0
    whole, table = table, replace(table, rows=table.rows[: table.most]) if left else table
    shown, dropped, grid = _fitting(table, terminal)
    if left == 1 and not dropped:  # to say that one row is left out takes a line as well
        left, table = 0, whole
        shown, dropped, grid = _fitting(table, terminal)
    widths = _shrunk(grid, [is_numeric(column, table.rows) for column in shown], terminal.width)
    if sum(widths) + 2 * (len(widths) - 1) > terminal.width:
        yield from _records(grid, terminal)
    else:
        yield from _lay_out(grid, widths, shown, table, terminal)
    if dropped or left:
        yield from _wrap(_not_shown([column.title for column in reversed(dropped)], left), terminal.width)
    for line in table.note.splitlines():
        yield from _wrap(line, terminal.width, "  ")


def _fitting(table: Table, terminal: Terminal) -> tuple[list[Column], list[Column], list[list[str]]]:
    """Return the columns that fit, those that had to go, and the cells of the former."""
    shown = list(table.filled)
    dropped: list[Column] = []
    grid = _grid(table, shown)
    while _width(grid) > terminal.width and any(column.priority for column in shown):
        least = max(range(len(shown)), key=lambda index: (shown[index].priority, index))
        dropped.append(shown.pop(least))
        grid = _grid(table, shown)
    for column in reversed(dropped):  # a narrow one may yet fit in the place of a wide one
        more = [one for one in table.filled if one in shown or one == column]
        if _width(wider := _grid(table, more)) <= terminal.width:
            shown, grid = more, wider
    return shown, [column for column in dropped if column not in shown], grid


def _not_shown(columns: Sequence[str], rows: int) -> str:
    """Say which columns are too wide for a terminal, and how many rows too many.

    >>> _not_shown(["range"], 2), _not_shown([], 1)
    ('Not shown for lack of room: range; 2 more rows (--details).', 'and 1 more: --details.')
    """
    if not columns:
        return f"and {rows} more: --details."
    if not rows:
        return f"Not shown for lack of width: {', '.join(columns)}."
    return f"Not shown for lack of room: {', '.join(columns)}; {counted(rows, 'more row')} (--details)."


def _grid(table: Table, shown: Sequence[Column]) -> list[list[str]]:
    writers = [cell_writer(column) for column in shown]
    body = [[write(row) for write in writers] for row in table.rows]
    if total := table.total:
        body.append(["" if total.get(column.key) is None else cell_text(total, column) for column in shown])
    return [[head_text(column) for column in shown], *body]


def _width(grid: list[list[str]]) -> int:
    return sum(max(len(row[index]) for row in grid) for index in range(len(grid[0]))) + 2 * (len(grid[0]) - 1)


def _shrunk(grid: list[list[str]], right: Sequence[bool], room: int) -> list[int]:
    """Return column widths; where they do not fit, the widest columns of text are narrowed and wrap."""
    widths = [max(len(row[index]) for row in grid) for index in range(len(grid[0]))]
    for index in sorted((index for index in range(len(widths)) if not right[index]), key=lambda index: -widths[index]):
        excess = sum(widths) + 2 * (len(widths) - 1) - room
        if excess > 0:
            widths[index] = max(widths[index] - excess, min(widths[index], _NARROWEST))
    return widths


def _records(grid: list[list[str]], terminal: Terminal) -> Iterator[str]:
    """Write each row as lines of heading and value, where not even the chief columns fit beside each other."""
    head, *rows = grid
    pad = min(max(map(len, head)), terminal.width // 2)
    for row in rows:
        for name, text in zip(head, row, strict=True):
            if text:
                yield from _wrap(f"{name[:pad]:<{pad}}  {text}", terminal.width, " " * (pad + 2))
        yield ""


def _row_lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[Sequence[str]]:
    """Wrap the cells of a row; most fit on one line, which is quicker seen than wrapped."""
    if all(map(le, map(len, row), widths)) and "".join(row).isprintable():
        yield row
        return
    cells = [textwrap.wrap(text, width) for text, width in zip(row, widths, strict=True)]
    for level in range(max(1, *map(len, cells))):
        yield [cell[level] if level < len(cell) else "" for cell in cells]


def _lay_out(
    grid: list[list[str]], widths: list[int], shown: Sequence[Column], table: Table, terminal: Terminal
) -> Iterator[str]:
    sides = (">" if is_numeric(column, table.rows) else "<" for column in shown)
    pattern = "  ".join(f"{{:{side}{width}}}" for side, width in zip(sides, widths, strict=True))
    for number, row in enumerate(grid):
        for cells in _row_lines(row, widths):
            line = pattern.format(*cells).rstrip()
            yield terminal.paint(line, "1") if number == 0 else line
        if number == 0 or (table.total and number == len(grid) - 2):
            yield "─" * min(sum(widths) + 2 * (len(widths) - 1), terminal.width)


def _foot(document: Document, terminal: Terminal, warnings: Sequence[str], *, brief: bool) -> list[str]:
    lines = [""]
    for warning in warnings:
        wrapped = _wrap(f"! {warning}", terminal.width, "  ")
        lines += [terminal.paint(line, "33") for line in wrapped]
    stamp = document.stamp
    if document.sources:
        where = "" if brief else " (all in --format json, md and reports)"
        stamp.append(f"sources: {len(document.sources)}{where}")
    if stamp:
        lines += [terminal.paint(line, "2") for line in _wrap(" · ".join(stamp), terminal.width)]
    return lines if len(lines) > 1 else []
