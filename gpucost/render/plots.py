"""Small plots in text: bars with ranges, and scatter or line plots on a character grid."""

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from datetime import date

from gpucost.render.cells import with_heading
from gpucost.render.document import Axis, Chart, Row
from gpucost.render.numbers import figure, format_value, short_unit
from gpucost.render.terminal import Terminal

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
    elif chart.kind in ("line", "scatter", "roofline") and all(
        _across(row.get(chart.x.key)) is not None for row in rows
    ):
        yield from _grid(chart, rows, terminal)
    elif chart.kind == "bridge":
        yield from _bridge(chart, rows, terminal)
    elif chart.kind == "stacked":
        yield from _bars(chart, _parts(chart, rows), terminal)
    else:
        yield from textwrap.wrap(chart.description, terminal.width)


def _parts(chart: Chart, rows: Sequence[Row]) -> list[Row]:
    """Name the parts of stacked bars one by one, largest first within each bar."""
    several = len({row[chart.x.key] for row in rows}) > 1
    named: list[Row] = [
        {**row, chart.x.key: f"{row[chart.x.key]}: {row[chart.series]}" if several else row[chart.series]}
        for row in rows
    ]
    order = list(dict.fromkeys(row[chart.x.key] for row in rows))
    pairs = sorted(
        zip(rows, named, strict=True), key=lambda pair: (order.index(pair[0][chart.x.key]), -pair[0][chart.y.key])
    )
    return [row for _, row in pairs]


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
    low, high = min(values), max(values)
    log = log and low > 0
    bend: Callable[[float], float] = math.log if log else float
    span = bend(high) - bend(low) or 1.0

    def position(value: float) -> int:
        return round((bend(value) - bend(low)) / span * (steps - 1))

    return position, low, high


def _bars(chart: Chart, rows: Sequence[Row], terminal: Terminal) -> Iterator[str]:
    kept = rows[:_BARS]
    names = [str(row[chart.x.key]) for row in kept]
    values = [figure(row[chart.y.key], chart.y.measure) for row in kept]
    pad, tail = min(max(map(len, names)), terminal.width // 3), max(map(len, values))
    room = max(min(terminal.width, 100) - pad - tail - 4, 8)
    lengths = [float(row[chart.y.key]) for row in kept]
    reach = [float(row.get(chart.high) or 0.0) if chart.high else 0.0 for row in kept]
    below, above = max(0.0, -min(lengths)), max(0.0, *lengths, *reach)
    scale = (room - bool(below)) / ((below + above) or 1.0)
    block, line, axis = ("█", "─", "│") if terminal.unicode else ("#", "-", "|")
    for name, value, length, end in zip(names, values, lengths, reach, strict=True):
        bar = block * round(max(length, 0.0) * scale)
        bar += line * max(round(end * scale) - len(bar), 0)
        left = f"{block * round(max(-length, 0.0) * scale):>{round(below * scale)}}{axis}" if below else ""
        yield f"{name[:pad]:<{pad}}  {value:>{tail}}  {left}{bar}"
    if len(rows) > len(kept):
        yield f"(and {len(rows) - len(kept)} more)"


def _bridge(chart: Chart, rows: Sequence[Row], terminal: Terminal) -> Iterator[str]:
    """Draw bars that hang between their ends, on one scale."""
    names = [str(row[chart.x.key]) for row in rows]
    values = [figure(row[chart.y.key], chart.y.measure) for row in rows]
    pad, tail = min(max(map(len, names)), terminal.width // 3), max(map(len, values))
    room = max(min(terminal.width, 100) - pad - tail - 4, 8)
    place, *_ = _scaler([row[key] for row in rows for key in (chart.low, chart.high)], room, log=False)
    signs = ("█", "▒") if terminal.unicode else ("#", "-")
    for row, name, value in zip(rows, names, values, strict=True):
        left, right = place(row[chart.low]), place(row[chart.high])
        bar = " " * left + signs[row[chart.series] == "less"] * max(right - left, 1)
        yield f"{name[:pad]:<{pad}}  {value:>{tail}}  {bar}"
    yield from textwrap.wrap(chart.note, terminal.width)


def _tornado(chart: Chart, terminal: Terminal) -> Iterator[str]:
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
        ends = sorted((float(row[chart.low]), float(row[chart.high])))
        left = round(max(base - ends[0], 0) / reach * room)
        right = round(max(ends[1] - base, 0) / reach * room)
        text = f"{format_value(ends[0], chart.y.measure)} to {format_value(ends[1], chart.y.measure)}"
        line = f"{name[:pad]:<{pad}}  {block * left:>{room}}|{block * right:<{room}}  {text}"
        yield line if len(line) <= terminal.width else line[: pad + 3 + 2 * room].rstrip()


def _grid(chart: Chart, rows: Sequence[Row], terminal: Terminal) -> Iterator[str]:
    width = max(min(terminal.width, 90) - 12, 16)
    places = [_across(row[chart.x.key]) or 0.0 for row in rows]
    across, x_low, x_high = _scaler(places, width, chart.x.log)
    dated = isinstance(rows[0][chart.x.key], str)
    up, y_low, y_high = _scaler([float(row[chart.y.key]) for row in rows], _ROWS, chart.y.log)
    series = list(dict.fromkeys(str(row.get(chart.series, "")) for row in rows)) if chart.series else [""]
    canvas = [[" "] * width for _ in range(_ROWS)]
    for row, place in zip(rows, places, strict=True):
        mark = _MARKS[series.index(str(row.get(chart.series, "")) if chart.series else "") % len(_MARKS)]
        canvas[_ROWS - 1 - up(float(row[chart.y.key]))][across(place)] = mark
    yield with_heading(chart.y.label, short_unit(chart.y.measure))
    for index, line in enumerate(canvas):
        edge = (
            format_value(y_high, chart.y.measure)
            if index == 0
            else format_value(y_low, chart.y.measure)
            if index == _ROWS - 1
            else ""
        )
        yield f"{edge:>9} │{''.join(line)}"
    yield f"{'':>9} ┼{'─' * width}"
    yield f"{'':>10} {_ends(chart.x, x_low, x_high, width, dated)}"
    if chart.series:
        yield "   ".join(f"{_MARKS[index % len(_MARKS)]} {name}" for index, name in enumerate(series))


def _ends(axis: Axis, low: float, high: float, width: int, dated: bool) -> str:
    left, right = format_value(low, axis.measure), format_value(high, axis.measure)
    middle = with_heading(axis.label, short_unit(axis.measure)) + (", log" if axis.log else "")
    if dated:
        left, right = (date.fromordinal(int(end)).isoformat() for end in (low, high))
        middle = axis.label
    room = max(width - len(left) - len(right) - 2, 0)
    middle = middle if len(middle) <= room else middle[:room].rstrip()
    gap = max(width - len(left) - len(right) - len(middle), 2)
    return f"{left}{' ' * (gap // 2)}{middle}{' ' * (gap - gap // 2)}{right}"
