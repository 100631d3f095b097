"""Pictures of held-out predictions: predicted against measured, and the coverage that ranges promise against theirs.

Drawn from docs/accuracy-rows.csv by hand-written SVG, so that the same rows always give the same bytes.
"""

import csv
import io
import math
from collections.abc import Sequence
from typing import NamedTuple

SIZE, MARGIN = 420, 56
LEVELS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
PROMISED = 0.80
_STYLE = "font-family:system-ui,sans-serif;font-size:12px;fill:#333"
GROUPS = {"dense": "#1f77b4", "mixture of experts": "#d62728"}


class Row(NamedTuple):
    """One held-out prediction."""

    group: str
    measured: float
    predicted: float
    low: float
    high: float


def read(table: str) -> list[Row]:
    """Read the rows of docs/accuracy-rows.csv."""
    return [
        Row(row["group"], *(float(row[name]) for name in Row._fields[1:])) for row in csv.DictReader(io.StringIO(table))
    ]


def coverage(rows: Sequence[Row], level: float) -> float:
    """Return the share of rows inside ranges of a level: sides of Laplace's law, which grow as log(1 − level).

    >>> row = Row("dense", 100.0, 100.0, 90.0, 110.0)
    >>> coverage([row, row._replace(measured=85.0)], 0.8), coverage([row, row._replace(measured=85.0)], 0.95)
    (0.5, 1.0)
    """
    stretch = math.log(1 - level) / math.log(1 - PROMISED)
    inside = 0
    for row in rows:
        off = math.log(row.measured / row.predicted)
        side = math.log(row.high / row.predicted) if off > 0 else math.log(row.predicted / row.low)
        inside += abs(off) <= side * stretch
    return inside / len(rows)


def _frame(title: str, across: str, up: str, body: Sequence[str]) -> str:
    end = SIZE - MARGIN / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" width="{SIZE}" height="{SIZE}">',
        f"<title>{title}</title>",
        f'<rect width="{SIZE}" height="{SIZE}" fill="#fff"/>',
        f'<rect x="{MARGIN}" y="{MARGIN / 2}" width="{end - MARGIN}" height="{end - MARGIN}" fill="none" '
        'stroke="#999"/>',
        f'<line x1="{MARGIN}" y1="{SIZE - MARGIN}" x2="{end}" y2="{MARGIN / 2}" stroke="#999" stroke-dasharray="4 3"/>',
        *body,
        f'<text x="{SIZE / 2}" y="{SIZE - 12}" text-anchor="middle" style="{_STYLE}">{across}</text>',
        f'<text x="14" y="{SIZE / 2}" text-anchor="middle" style="{_STYLE}" '
        f'transform="rotate(-90 14 {SIZE / 2})">{up}</text>',
        f'<text x="{SIZE / 2}" y="18" text-anchor="middle" style="{_STYLE};font-weight:600">{title}</text>',
        "</svg>",
    ]
    return "\n".join(parts)


def _at(share_x: float, share_y: float) -> tuple[float, float]:
    """Place a point given as shares of the axes."""
    length = SIZE - 1.5 * MARGIN
    return round(MARGIN + share_x * length, 1), round(SIZE - MARGIN - share_y * length, 1)


def _ticks(marks: Sequence[tuple[float, str]]) -> list[str]:
    drawn = []
    for share, text in marks:
        x, y = _at(share, share)
        drawn.append(f'<text x="{x}" y="{SIZE - MARGIN + 16}" text-anchor="middle" style="{_STYLE}">{text}</text>')
        drawn.append(f'<text x="{MARGIN - 6}" y="{y + 4}" text-anchor="end" style="{_STYLE}">{text}</text>')
    return drawn


def _short(value: float) -> str:
    """Write a power of ten in few letters.

    >>> _short(10.0), _short(1e5), _short(1e6)
    ('10', '100k', '1M')
    """
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"


def _legend() -> list[str]:
    drawn = []
    for line, (name, colour) in enumerate(GROUPS.items()):
        x, y = MARGIN + 12, MARGIN / 2 + 18 + 18 * line
        drawn.append(f'<circle cx="{x}" cy="{y - 4}" r="4" fill="{colour}"/>')
        drawn.append(f'<text x="{x + 10}" y="{y}" style="{_STYLE}">{name}</text>')
    return drawn


def speeds(rows: Sequence[Row]) -> str:
    """Draw predicted against measured tokens/s per accelerator, on logarithmic axes."""
    values = [value for row in rows for value in (row.measured, row.predicted)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def share(value: float) -> float:
        return (math.log10(value) - low) / (high - low)

    body = _ticks([(share(10.0**power), _short(10.0**power)) for power in range(low, high + 1)])
    for row in sorted(rows, key=lambda row: row.group):
        x, y = _at(share(row.measured), share(row.predicted))
        body.append(f'<circle cx="{x}" cy="{y}" r="2" fill="{GROUPS[row.group]}" fill-opacity="0.45"/>')
    body += _legend()
    title = "Training speed, each source held out"
    return _frame(title, "measured, tokens/s per accelerator", "predicted", body)


def levels(rows: Sequence[Row]) -> str:
    """Draw the share of rows inside ranges against the share promised."""
    body = _ticks([(share, f"{share:.0%}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)])
    for name, colour in GROUPS.items():
        mine = [row for row in rows if row.group == name]
        points = [_at(level, coverage(mine, level)) for level in LEVELS]
        path = " ".join(f"{x},{y}" for x, y in points)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points]
    body += _legend()
    return _frame("Coverage of ranges, each source held out", "promised", "measured rows inside", body)
