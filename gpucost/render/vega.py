"""Charts as Vega-Lite specifications: plain mappings, which a browser, Altair or a converter can draw."""

import re
from collections.abc import Sequence
from typing import Any

from gpucost.errors import UnknownNameError, UsageError
from gpucost.gate import shown
from gpucost.render.document import Axis, Chart, heading_of, measure_of, short_unit, with_heading
from gpucost.render.money import digits_between, is_money, money_expression

Spec = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_BAND_HEIGHT = 22  # pixels of one bar with its gap
_PLAIN_HEIGHT = 300  # pixels of a chart without bars
_TICKS = 8  # about as many, and only on linear axes: powers of ten are given on a log scale
_LABEL_LIMIT = "containerSize()[0] < 420 ? 120 : 260"  # pixels
_LOG = {"type": "log", "nice": False, "padding": 14}  # as far as the data reach, not on to the next power of ten
# Okabe and Ito's colours, which people with any colour vision can tell apart; grey darkened for contrast.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#6b6b6b")


def altair_chart(charts: Sequence[Chart], title: str = "") -> Any:
    """Return one of the charts as an Altair object, for notebooks and files."""
    try:
        import altair
    except ImportError:
        raise UsageError(
            "charts need packages of the extra `report`, which are not installed. Run: pip install 'gpucost[report]'"
        ) from None
    if not isinstance(title, str):
        raise UsageError(f"title: found {shown(title)}; give part of a chart's title. `.charts()` lists them.")
    matches = [chart for chart in charts if title.lower() in chart.title.lower()]
    if not matches:
        raise UnknownNameError("chart", title, [chart.title for chart in charts], "`.charts()` lists them.")
    spec = specification(matches[0])
    spec["width"] = 600
    spec["title"] = matches[0].title
    return altair.Chart.from_dict(spec)


def specification(chart: Chart) -> Spec:
    """Return the Vega-Lite specification of a chart; its width follows the page."""
    draw = {
        "bar": _bar,
        "area": _area,
        "stacked": _stacked,
        "bridge": _bridge,
        "tornado": _tornado,
        "heat": _heat,
        "roofline": _roofline,
        "offers": _offers,
    }.get(chart.kind, _points)
    spec: Spec = {
        "$schema": SCHEMA,
        "description": chart.description,
        "data": {"values": [dict(row) for row in chart.data]},
        "width": "container",
        **draw(chart),
    }
    if chart.sliders:
        params = []
        for slider in chart.sliders:
            # The control stands on a whole step; the exact value holds until it is moved, so that a chart that nobody
            # touched shows what the answer says.
            bind = {"input": "range", "min": slider.low, "max": slider.high, "step": slider.step, "name": slider.label}
            control, start = f"{slider.name}_control", slider.start
            exact = f"{control} === {start!r} ? {slider.value!r} : {control}"
            params += [{"name": control, "value": start, "bind": bind}, {"name": slider.name, "expr": exact}]
        if chart.lead:
            params.append({"name": "lead", "expr": chart.lead})
        spec["params"] = params
        expression = f"datum['{chart.y.key}']"  # of a series without a formula
        for name, formula in chart.formulas.items():
            expression = f"datum['{chart.series}'] === '{name}' ? ({formula}) : ({expression})"
        spec["transform"] = [{"calculate": expression, "as": chart.y.key}]
    # Vega's own formats write 0.04 as 40m; amounts are written into a field of their own, after the sliders moved them.
    for key in _amounts(chart):
        amount = f"datum['{key}']"
        written = {"calculate": f"isValid({amount}) ? {money_expression(amount)} : null", "as": _written(key)}
        spec["transform"] = [*spec.get("transform", ()), written]
    if chart.spoken:
        spec["title"] = {"text": {"expr": chart.spoken}, "anchor": "start", "fontSize": 12, "fontWeight": "normal"}
    return spec


def _amounts(chart: Chart) -> list[str]:
    """Return the keys of the data that hold dollars."""
    axes = {axis.key for axis in (chart.x, chart.y) if is_money(axis.measure)}
    keys = dict.fromkeys(key for row in chart.data for key in row)
    return [key for key in keys if (key in axes or is_money(measure_of(key))) and _is_figure(_sample(chart, key))]


def _written(key: str) -> str:
    """Return the field that holds an amount as it is read."""
    return f"{key} as text"


def _sample(chart: Chart, key: str) -> Any:
    """Return the first value of a key that is one: by it a column is text, a day or a figure."""
    return next((row[key] for row in chart.data if row.get(key) is not None), None)


def _is_figure(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _axis(axis: Axis, chart: Chart, *, zero: bool = False) -> Spec:
    """Return the channel of an axis; with `zero` one of figures begins there, as bars must."""
    sample = _sample(chart, axis.key)
    dated = isinstance(sample, str) and _DATE.match(sample)
    kind = "temporal" if dated else "nominal" if isinstance(sample, str) else "quantitative"
    channel: Spec = {
        "field": axis.key,
        "type": kind,
        "title": with_heading(axis.label, short_unit(axis.measure)),
    }
    if kind == "temporal":
        channel["axis"] = {"format": "%b %Y"}
    if kind == "quantitative":
        channel["scale"] = dict(_LOG) if axis.log else {"zero": zero, "nice": True}
        channel["axis"] = _ticks(axis.measure, chart, axis.key, zero=zero)
        if not axis.log:
            channel["axis"]["tickCount"] = _TICKS
    return channel


def _ticks(unit: str, chart: Chart, *keys: str, zero: bool = False) -> Spec:
    """Return how ticks are written: k and M where figures are large, never m, which a reader takes for minutes."""
    keys = (*keys, chart.low, chart.high)
    figures = [row[key] for row in chart.data for key in keys if _is_figure(row.get(key))]
    if is_money(unit):
        written = money_expression("datum.value", digits_between([0, *figures] if zero else figures))
        return {"labelExpr": f"datum.label === '' ? '' : {written}"}  # a log scale leaves ticks without a label
    if unit == "fraction of one":
        return {"format": "~%"}
    if any(abs(figure) >= 10_000 for figure in figures):
        return {"format": "~s", "labelExpr": "abs(datum.value) < 1000 ? format(datum.value, ',~r') : datum.label"}
    return {"format": ",~r"}


def _tooltip(chart: Chart, *keys: str) -> list[Spec]:
    """Return what a point says of itself: each key once, under its heading with its unit."""
    amounts = _amounts(chart)
    channels = []
    for key in (key for key in dict.fromkeys(keys) if key):
        title = with_heading(heading_of(key), short_unit(measure_of(key)))
        if key in amounts:
            channel = {"field": _written(key), "type": "nominal"}
        elif _is_figure(_sample(chart, key)):
            channel = {"field": key, "type": "quantitative", "format": ",.4~g"}
        else:
            channel = {"field": key, "type": "nominal"}
        channels.append({**channel, "title": title})
    return channels


def _names(chart: Chart) -> Spec:
    """Return the channel of the names beside bars, in the order of the rows."""
    axis = {"labelLimit": {"expr": _LABEL_LIMIT}}
    return {"field": chart.x.key, "type": "nominal", "sort": None, "title": None, "axis": axis}


def _bands(chart: Chart) -> Spec:
    """Return the height of so many bars, with room for the legend or the axis."""
    return {"height": _BAND_HEIGHT * (len({row.get(chart.x.key) for row in chart.data}) + 1)}


def _bar(chart: Chart) -> Spec:
    length = _axis(chart.y, chart, zero=True)
    tooltip = _tooltip(chart, chart.x.key, chart.y.key, chart.low, chart.high)
    layers: list[Spec] = [{"mark": "bar", "encoding": {"y": _names(chart), "x": length, "tooltip": tooltip}}]
    if chart.low and chart.high:
        ends = {"x": {"field": chart.low, "type": "quantitative"}, "x2": {"field": chart.high}}
        layers.append(
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {"y": _names(chart), **ends, "tooltip": tooltip}}
        )
    return {"layer": layers, **_bands(chart)}


def _stacked(chart: Chart) -> Spec:
    color = {"field": chart.series, "type": "nominal", "title": None, "sort": None}
    tooltip = _tooltip(chart, chart.x.key, chart.series, chart.y.key)
    encoding = {"y": _names(chart), "x": _axis(chart.y, chart, zero=True), "color": color, "tooltip": tooltip}
    return {"mark": "bar", "encoding": encoding, **_bands(chart)}


_BRIDGE = {"end": ("#6b7280", "a total"), "more": ("#d55e00", "adds"), "less": ("#0072b2", "takes away")}


def _bridge(chart: Chart) -> Spec:
    """Draw bars that hang between their ends; ends, more and less differ in colour and in the sign of their figure."""
    # 48 pixels at both sides hold the figure beside the longest bar
    length = {**_axis(chart.y, chart), "field": chart.low, "scale": {"zero": False, "nice": False, "padding": 48}}
    if min(row[chart.low] for row in chart.data) == 0:  # drawn from nothing: no room for less, some for the figures
        length["scale"] = {"domain": [0, 1.3 * max(row[chart.high] for row in chart.data)], "nice": False}
    used = [name for name in _BRIDGE if any(row[chart.series] == name for row in chart.data)]
    scale = {"domain": used, "range": [_BRIDGE[name][0] for name in used]}
    labels = " : ".join(f"datum.label === '{name}' ? '{label}'" for name, (_, label) in _BRIDGE.items())
    legend = {"labelExpr": f"{labels} : datum.label"}
    color = {"field": chart.series, "type": "nominal", "title": None, "scale": scale, "legend": legend}
    tooltip = _tooltip(chart, chart.x.key, chart.y.key)
    figure = _text(chart, chart.y.key)
    bars = {
        "mark": "bar",
        "encoding": {"y": _names(chart), "x": length, "x2": {"field": chart.high}, "color": color, "tooltip": tooltip},
    }
    text = {
        "mark": {"type": "text", "align": "left", "dx": 4},
        "encoding": {
            "y": _names(chart),
            "x": {"field": chart.high, "type": "quantitative"},
            "text": {"field": chart.label, "type": "nominal"} if chart.label else figure,
        },
    }
    return {"layer": [bars, text], **_bands(chart)}


def _tornado(chart: Chart) -> Spec:
    """Draw bars from the result at the low end of an assumption to that at its high end, and the base as a line."""
    length = {**_axis(chart.y, chart), "field": chart.low}
    length["scale"] = {"zero": False, "nice": True}
    tooltip = _tooltip(chart, chart.x.key, chart.low, chart.high, chart.label)
    bars = {
        "mark": "bar",
        "encoding": {"y": _names(chart), "x": length, "x2": {"field": chart.high}, "tooltip": tooltip},
    }
    layers: list[Spec] = [bars]
    if chart.base is not None:
        layers.append({"mark": {"type": "rule", "strokeDash": [4, 3]}, "encoding": {"x": {"datum": chart.base}}})
    return {"layer": layers, **_bands(chart)}


def _heat(chart: Chart) -> Spec:
    """Colour the cells around zero, write their numbers, and draw the line where the sign changes."""
    channels = []
    for axis in (chart.x, chart.y):
        # figures that name rows and columns are written in as few digits as tell them apart
        labels: Spec = {}
        if figures := [row[axis.key] for row in chart.data if _is_figure(row.get(axis.key))]:
            digits = digits_between(figures)
            written = f"datum.value === floor(datum.value) ? datum.label : format(datum.value, ',.{digits}~r')"
            if is_money(axis.measure):
                written = money_expression("datum.value", digits)
            elif axis.measure == "fraction of one":
                written = f"format(datum.value, '.{digits - 2}~%')"
            labels = {"labelExpr": written}
        title = with_heading(axis.label, short_unit(axis.measure))
        channels.append({"field": axis.key, "type": "ordinal", "title": title, "sort": None, "axis": labels})
    across, up = channels
    title = heading_of(chart.value)
    values = [row[chart.value] for row in chart.data]
    apart = min(values) < 0 < max(values)  # else there is no middle to turn around
    scale = (
        {"scheme": "blueorange", "domainMid": 0} if apart else {"scheme": "blues" if min(values) >= 0 else "oranges"}
    )
    legend = _ticks(measure_of(chart.value), chart, chart.value)
    color = {"field": chart.value, "type": "quantitative", "scale": scale, "title": title, "legend": legend}
    tooltip = _tooltip(chart, chart.x.key, chart.y.key, chart.value)
    text = _text(chart, chart.value)
    # beyond 60 % of the way to either end the colour is too dark for black figures
    cell = f"datum['{chart.value}']"
    is_dark = f"{cell} > {0.6 * max(0.0, *values)!r} || {cell} < {0.6 * min(0.0, *values)!r}"
    ink = {"condition": {"test": is_dark, "value": "white"}, "value": "black"}
    layers: list[Spec] = [
        {"mark": "rect", "encoding": {"x": across, "y": up, "color": color, "tooltip": tooltip}},
        {
            "mark": {"type": "text", "fontSize": {"expr": "width < 420 ? 6.5 : 10"}},
            "encoding": {"x": across, "y": up, "text": text, "color": ink},
        },
    ]
    # The line where the sign changes is made of the left and upper edges of cells.
    columns, rows = (list(dict.fromkeys(row[axis.key] for row in chart.data)) for axis in (chart.x, chart.y))
    positive = {(row[chart.x.key], row[chart.y.key]): row[chart.value] > 0 for row in chart.data}
    edges: dict[str, list[Spec]] = {"before": [], "above": []}
    for i, x in enumerate(columns):
        for j, y in enumerate(rows):
            is_positive = positive.get((x, y))
            if i and is_positive != positive.get((columns[i - 1], y)):
                edges["before"].append({chart.x.key: x, chart.y.key: y, "edge": "before"})
            if j and is_positive != positive.get((x, rows[j - 1])):
                edges["above"].append({chart.x.key: x, chart.y.key: y, "edge": "above"})
    # 0 and 1 are the ends of a band
    for key, ends in (("before", {"x": 0, "y": 0, "y2": 1}), ("above", {"x": 0, "x2": 1, "y": 0})):
        encoding = {
            name: {
                "field": (chart.x if name[0] == "x" else chart.y).key,
                "bandPosition": position,
                **({"type": "ordinal", "sort": None} if len(name) == 1 else {}),
            }
            for name, position in ends.items()
        }
        mark = {"type": "rule", "color": "black", "strokeWidth": 2.5}
        layers.append({"data": {"values": edges[key]}, "mark": mark, "encoding": encoding})
    return {"height": _PLAIN_HEIGHT, "layer": layers}


def _text(chart: Chart, key: str) -> Spec:
    """Return the channel of a figure that is written into the picture."""
    if key in _amounts(chart):
        return {"field": _written(key), "type": "nominal"}
    return {"field": key, "type": "quantitative", "format": ",.3~g"}


def _color(chart: Chart) -> Spec:
    return {"color": {"field": chart.series, "type": "nominal", "title": None, "sort": None}} if chart.series else {}


def _area(chart: Chart) -> Spec:
    """Stack areas of each series, and draw the total that is asked for (`label`) as a line over them."""
    across, up = _axis(chart.x, chart), _axis(chart.y, chart, zero=True)
    across["scale"] = {**across.get("scale", {}), "nice": False}  # areas end with the last month
    tooltip = _tooltip(chart, chart.x.key, chart.series, chart.y.key)
    field = f"datum['{chart.series}']"
    stacked: Spec = {
        "transform": [{"filter": f"{field} !== '{chart.label}'"}],
        "mark": {"type": "area", "interpolate": "step-after"},
        "encoding": {"x": across, "y": {**up, "stack": "zero"}, **_color(chart), "tooltip": tooltip},
    }
    total: Spec = {
        "transform": [{"filter": f"{field} === '{chart.label}'"}],
        "mark": {"type": "line", "interpolate": "step-after", "color": "black", "strokeDash": [4, 3]},
        "encoding": {"x": across, "y": up, "tooltip": tooltip},
    }
    return {"layer": [stacked, total], "height": _PLAIN_HEIGHT}


def _points(chart: Chart) -> Spec:
    """Draw a line or points, their ranges behind them, and labelled vertical lines over them."""
    tooltip = _tooltip(chart, chart.x.key, chart.y.key, chart.series, chart.label, chart.low, chart.high)
    across, up = _axis(chart.x, chart), _axis(chart.y, chart, zero=chart.kind == "line" and not chart.y.log)
    if chart.kind == "line":
        across["scale"] = {**across.get("scale", {}), "nice": False}  # it ends with what is drawn
    encoding = {"x": across, "y": up, **_color(chart), "tooltip": tooltip}
    if chart.kind != "line" and len({row.get(chart.series) for row in chart.data}) > len(COLORS):
        encoding["shape"] = encoding["color"]  # colours come again: what has the same one differs in its sign
    mark: Spec = {"type": "point", "filled": True, "size": 60}
    if chart.kind == "line":
        mark = {"type": "line", "point": len(chart.data) <= 60}  # more points would run into each other
        mark |= {"interpolate": "step-after"} if chart.steps else {}
    layers: list[Spec] = [{"mark": mark, "encoding": encoding}]
    if chart.low and chart.high:
        span = {"y": {"field": chart.low, "type": "quantitative"}, "y2": {"field": chart.high}}
        layers.insert(0, {"mark": {"type": "rule", "opacity": 0.5}, "encoding": {"x": across, **span, **_color(chart)}})
    for label, x in chart.marks:
        rule = {"type": "rule", "strokeDash": [4, 3], "opacity": 0.6, "tooltip": label}
        layers.append({"mark": rule, "encoding": {"x": {"datum": x, "type": across["type"]}}})
    return {"layer": layers, "height": _PLAIN_HEIGHT}


CAN_BE_ORDERED, QUOTED = "can be ordered", "may be gone"


def _offers(chart: Chart) -> Spec:
    """Draw every offer as a point, those that one can order filled, and the front as a line with its ends named."""
    across, up = _axis(chart.x, chart), _axis(chart.y, chart)
    keys = ("offer", chart.x.key, chart.y.key, "provider", "region", "option", chart.series, "age_days")
    tooltip = _tooltip(chart, *(key for key in keys if any(key in row for row in chart.data)))
    # a series without a point has no place in the legend
    states = [name for name in (CAN_BE_ORDERED, QUOTED) if any(row[chart.series] == name for row in chart.data)]
    shown = {"field": chart.series, "type": "nominal", "title": None}
    strokes = {CAN_BE_ORDERED: COLORS[0], QUOTED: COLORS[6]}
    fills = {CAN_BE_ORDERED: COLORS[0], QUOTED: "transparent"}
    stroke, fill = (
        {**shown, "scale": {"domain": states, "range": [colors[name] for name in states]}}
        for colors in (strokes, fills)
    )
    shared = {"x": across, "y": up}
    points = {
        "mark": {"type": "point", "size": 64, "strokeWidth": 1.5},
        "encoding": {
            **shared,
            "stroke": stroke,
            "fill": fill,
            "fillOpacity": {"value": 0.75},
            "tooltip": tooltip,
        },
    }
    on_front = [{"filter": f"datum['{chart.low}']"}]
    line = {
        "transform": on_front,
        "mark": {"type": "line", "color": COLORS[1], "strokeWidth": 2, "interpolate": "step-before"},
        "encoding": {**shared, "order": {"field": chart.x.key, "type": "quantitative"}},
    }
    # The ends of the front are named: the fast one above its point, the cheap one below, each turned to where there
    # is room, which the share of points to its left tells.
    ends = sorted((row for row in chart.data if row[chart.label]), key=lambda row: float(row[chart.x.key]))
    names = []
    for number, row in enumerate(ends):
        above = number == 0 and len(ends) > 1
        at = sum(float(other[chart.x.key]) <= float(row[chart.x.key]) for other in chart.data) / len(chart.data)
        align = "center" if 0.1 <= at <= 0.9 else "left" if at < 0.1 else "right"
        align = "left" if above else align
        place = {"dy": -10, "baseline": "bottom"} if above else {"dy": 12, "baseline": "top"}
        name = {
            "data": {"values": [dict(row)]},
            "mark": {"type": "text", "fontWeight": "bold", "limit": 230, "align": align, **place},
            "encoding": {**shared, "text": {"field": chart.label}},
        }
        names.append(name)
    drawn = [line] if any(row[chart.low] for row in chart.data) else []
    return {"layer": [*drawn, points, *names], "height": 380}


def _roofline(chart: Chart) -> Spec:
    """Draw roofs as lines and, named, the points under them: rows with a label are points."""
    across, up = _axis(chart.x, chart), _axis(chart.y, chart)
    shared = {"x": across, "y": up}
    roof = {
        "transform": [{"filter": f"!datum['{chart.label}']"}],
        "mark": {"type": "line"},
        "encoding": {**shared, **_color(chart)},
    }
    points = {
        "transform": [{"filter": f"datum['{chart.label}']"}],
        "mark": {"type": "point", "filled": True, "size": 70},
        "encoding": {**shared, "tooltip": _tooltip(chart, chart.label, chart.x.key, chart.y.key)},
    }
    names = {
        "transform": [{"filter": f"datum['{chart.label}']"}],
        "mark": {"type": "text", "dy": -10},
        "encoding": {**shared, "text": {"field": chart.label}},
    }
    return {"layer": [roof, points, names], "height": _PLAIN_HEIGHT}
