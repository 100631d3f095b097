"""Pictures of held-out predictions: predicted against measured, and the coverage that ranges promise against theirs.

Drawn by Vega from docs/accuracy-rows.csv.
"""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks import gallery
from gpucost.render.vega import SCHEMA

_SIZE = 340
LEVELS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
PROMISED = 0.80
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
    # a side holds half of what the range promises, whatever the other side's width
    stretch = math.log(1 - level) / math.log(1 - PROMISED)
    inside = 0
    for row in rows:
        off = math.log(row.measured / row.predicted)
        side = math.log(row.high / row.predicted) if off > 0 else math.log(row.predicted / row.low)
        inside += abs(off) <= side * stretch
    return inside / len(rows)


def speeds(table: str) -> str:
    """Draw predicted against measured tokens/s per accelerator, on logarithmic axes."""
    rows = read(table)
    values = [value for row in rows for value in (row.measured, row.predicted)]
    # whole powers of ten around all values, the same on both axes
    ends = [10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values)))]
    points = [row._asdict() for row in rows]
    scale = {"type": "log", "domain": ends}
    mark = {"type": "circle", "size": 14, "opacity": 0.45}
    axes = ("measured", "measured, tokens/s per accelerator"), ("predicted", "predicted")
    return _drawn("Training speed, each source held out", points, axes, mark, scale, "~s")


def levels(table: str) -> str:
    """Draw the share of rows inside ranges against the share promised."""
    rows = read(table)
    points = [
        {"group": name, "promised": level, "inside": coverage([row for row in rows if row.group == name], level)}
        for name in GROUPS
        for level in LEVELS
    ]
    axes = ("promised", "promised"), ("inside", "measured rows inside")
    mark = {"type": "line", "point": True}
    return _drawn("Coverage of ranges, each source held out", points, axes, mark, {"domain": [0, 1]}, "%")


def _drawn(
    title: str,
    points: Sequence[Mapping[str, Any]],
    axes: Sequence[tuple[str, str]],
    mark: Mapping[str, Any],
    scale: Mapping[str, Any],
    form: str,
) -> str:
    """Draw points by group, and the line on which they would all lie."""
    (x, x_title), (y, y_title) = axes
    encoding = {
        channel: {"field": field, "type": "quantitative", "title": text, "scale": scale, "axis": {"format": form}}
        for channel, field, text in (("x", x, x_title), ("y", y, y_title))
    }
    colours = {"domain": list(GROUPS), "range": list(GROUPS.values())}
    ends = [{x: end, y: end} for end in scale["domain"]]
    return gallery.svg(
        {
            "$schema": SCHEMA,
            "title": title,
            "config": {"aria": False},  # else a sentence for each point
            "width": _SIZE,
            "height": _SIZE,
            "encoding": encoding,
            "layer": [
                {"data": {"values": ends}, "mark": {"type": "line", "color": "#999", "strokeDash": [4, 3]}},
                {
                    "data": {"values": points},
                    "mark": mark,
                    "encoding": {"color": {"field": "group", "scale": colours, "title": None}},
                },
            ],
        }
    )
