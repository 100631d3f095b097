"""Charts as Vega-Lite specifications: plain mappings, which a browser, Altair or a converter can draw."""

import re
from collections.abc import Sequence
from typing import Any

from gpucost.errors import UnknownNameError, UsageError
from gpucost.gate import shown
from gpucost.render.document import Axis, Chart, Row, Slider, heading_of, measure_of, short_unit, with_heading
from gpucost.render.money import digits_between, is_money, money_expression

Spec = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_BAND_HEIGHT = 22
_PLAIN_HEIGHT = 300
_TICKS = 8
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
    fields = draw(chart)
    spec: Spec = {
        "$schema": SCHEMA,
        "description": chart.description,
        "data": {"values": [dict(row) for row in chart.data]},
        "width": "container",
        **fields,
    }
    if chart.sliders:
        lead = [{"name": "lead", "expr": chart.lead}] if chart.lead else []
        spec["params"] = [*(param for slider in chart.sliders for param in _slider(slider)), *lead]
        spec["transform"] = [{"calculate": _formula(chart), "as": chart.y.key}]
    if amounts := _amounts(chart):
        spec["transform"] = [*spec.get("transform", ()), *(_as_money(key) for key in amounts)]
    if chart.spoken:
        spec["title"] = {"text": {"expr": chart.spoken}, "anchor": "start", "fontSize": 12, "fontWeight": "normal"}
    return spec


def _slider(slider: Slider) -> list[Spec]:
    """Return the control, which stands on a whole step, and the exact value, which holds until it is moved."""
    bind = {"input": "range", "min": slider.low, "max": slider.high, "step": slider.step, "name": slider.label}
    control, start = f"{slider.name}_control", slider.start
    exact = f"{control} === {start!r} ? {slider.value!r} : {control}"
    return [{"name": control, "value": start, "bind": bind}, {"name": slider.name, "expr": exact}]


def _amounts(chart: Chart) -> list[str]:
    """Return the keys of the data that hold dollars."""
    axes = {axis.key for axis in (chart.x, chart.y) if is_money(axis.measure)}
    keys = dict.fromkeys(key for row in chart.data for key in row)
    return [key for key in keys if (key in axes or is_money(measure_of(key))) and _is_figure(_sample(chart, key))]


def _as_money(key: str) -> Spec:
    value = f"datum['{key}']"
    return {"calculate": f"isValid({value}) ? {money_expression(value)} : null", "as": _written(key)}


def _written(key: str) -> str:
    """Return the field that holds an amount as it is read."""
    return f"{key} as text"


def _sample(chart: Chart, key: str) -> Any:
    return next((row[key] for row in chart.data if row.get(key) is not None), None)


def _is_figure(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _formula(chart: Chart) -> str:
    expression = f"datum['{chart.y.key}']"
    for name, formula in chart.formulas.items():
        expression = f"datum['{chart.series}'] === '{name}' ? ({formula}) : ({expression})"
    return expression


def _axis(axis: Axis, chart: Chart, *, zero: bool = False) -> Spec:
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
        channel["axis"] = _scale_of(axis, chart, zero=zero)
    return channel


def _scale_of(axis: Axis, chart: Chart, *, zero: bool = False) -> Spec:
    """Return how the ticks of an axis of figures are written and how many there are."""
    written = _ticks(axis.measure, chart, axis.key, zero=zero)
    if not axis.log:
        written["tickCount"] = _TICKS
    return written


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


def _bands_of(axis: Axis, chart: Chart) -> Spec:
    """Return how the figures that name rows and columns of cells are written: in as few digits as tell them apart."""
    figures = [row[axis.key] for row in chart.data if _is_figure(row.get(axis.key))]
    if not figures:
        return {}
    digits = digits_between(figures)
    if is_money(axis.measure):
        return {"labelExpr": money_expression("datum.value", digits)}
    if axis.measure == "fraction of one":
        return {"labelExpr": f"format(datum.value, '.{digits - 2}~%')"}
    whole = "datum.value === floor(datum.value)"
    return {"labelExpr": f"{whole} ? datum.label : format(datum.value, ',.{digits}~r')"}


def _tooltip(chart: Chart, *keys: str) -> list[Spec]:
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
    axis = {"labelLimit": {"expr": _LABEL_LIMIT}}
    return {"field": chart.x.key, "type": "nominal", "sort": None, "title": None, "axis": axis}


def _bands(chart: Chart) -> Spec:
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
    length = {**_axis(chart.y, chart), "field": chart.low, "scale": {"zero": False, "nice": False, "padding": 48}}
    if min(row[chart.low] for row in chart.data) == 0:  # drawn from nothing: no room for less, some for the figures
        length["scale"] = {"domain": [0, 1.3 * max(row[chart.high] for row in chart.data)], "nice": False}
    used = [name for name in _BRIDGE if any(row[chart.series] == name for row in chart.data)]
    scale = {"domain": used, "range": [_BRIDGE[name][0] for name in used]}
    said = " : ".join(f"datum.label === '{name}' ? '{words}'" for name, (_, words) in _BRIDGE.items())
    legend = {"labelExpr": f"{said} : datum.label"}
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
    length = {**_axis(chart.y, chart), "field": chart.low}
    if length["type"] != "quantitative":
        length |= {"type": "quantitative", "axis": _ticks(chart.y.measure, chart)}
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
    across, up = (
        {
            "field": axis.key,
            "type": "ordinal",
            "title": with_heading(axis.label, short_unit(axis.measure)),
            "sort": None,
            "axis": _bands_of(axis, chart),
        }
        for axis in (chart.x, chart.y)
    )
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
    deep = {"condition": {"test": _deep(chart), "value": "white"}, "value": "black"}
    layers: list[Spec] = [
        {"mark": "rect", "encoding": {"x": across, "y": up, "color": color, "tooltip": tooltip}},
        {
            "mark": {"type": "text", "fontSize": {"expr": "width < 420 ? 6.5 : 10"}},
            "encoding": {"x": across, "y": up, "text": text, "color": deep},
        },
    ]
    for key, ends in (("before", {"x": 0, "y": 0, "y2": 1}), ("above", {"x": 0, "x2": 1, "y": 0})):
        edges = [row for row in _edges(chart) if row["edge"] == key]
        channels = {
            name: {
                "field": (chart.x if name[0] == "x" else chart.y).key,
                "bandPosition": position,
                **({"type": "ordinal", "sort": None} if len(name) == 1 else {}),
            }
            for name, position in ends.items()
        }
        mark = {"type": "rule", "color": "black", "strokeWidth": 2.5}
        layers.append({"data": {"values": edges}, "mark": mark, "encoding": channels})
    return {"height": _PLAIN_HEIGHT, "layer": layers}


def _text(chart: Chart, key: str) -> Spec:
    """Return the channel of a figure that is written into the picture."""
    if key in _amounts(chart):
        return {"field": _written(key), "type": "nominal"}
    return {"field": key, "type": "quantitative", "format": ",.3~g"}


def _deep(chart: Chart) -> str:
    """Return the test for a cell whose colour is too dark for black figures."""
    values = [0.0, *(row[chart.value] for row in chart.data)]
    cell = f"datum['{chart.value}']"
    return f"{cell} > {0.6 * max(values)!r} || {cell} < {0.6 * min(values)!r}"


def _edges(chart: Chart) -> list[dict[str, Any]]:
    """Return the cells at whose left or upper side the value changes its sign."""
    across, up = (list(dict.fromkeys(row[axis.key] for row in chart.data)) for axis in (chart.x, chart.y))
    positive = {(row[chart.x.key], row[chart.y.key]): row[chart.value] > 0 for row in chart.data}
    cells = []
    for i, x in enumerate(across):
        for j, y in enumerate(up):
            cell = {chart.x.key: x, chart.y.key: y}
            for edge, neighbour in (("before", i and (across[i - 1], y)), ("above", j and (x, up[j - 1]))):
                if neighbour and positive.get((x, y)) != positive.get(neighbour):
                    cells.append({**cell, "edge": edge})
    return cells


def _color(chart: Chart) -> Spec:
    return {"color": {"field": chart.series, "type": "nominal", "title": None, "sort": None}} if chart.series else {}


def _area(chart: Chart) -> Spec:
    """Stack areas of each series, and draw the total that is asked for (`label`) as a line over them."""
    across, up = _axis(chart.x, chart), _axis(chart.y, chart, zero=True)
    across["scale"] = {**across.get("scale", {}), "nice": False}
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
    tooltip = _tooltip(chart, chart.x.key, chart.y.key, chart.series, chart.label, chart.low, chart.high)
    across, up = _axis(chart.x, chart), _axis(chart.y, chart, zero=chart.kind == "line" and not chart.y.log)
    if chart.kind == "line":
        across["scale"] = {**across.get("scale", {}), "nice": False}  # it ends with what is drawn
    encoding = {"x": across, "y": up, **_color(chart), "tooltip": tooltip}
    if chart.kind != "line" and len({row.get(chart.series) for row in chart.data}) > len(COLORS):
        encoding["shape"] = encoding["color"]  # colours come again: what has the same one differs in its sign
    mark: Spec = (
        {"type": "line", "point": len(chart.data) <= 60, **({"interpolate": "step-after"} if chart.steps else {})}
        if chart.kind == "line"
        else {"type": "point", "filled": True, "size": 60}
    )
    layers: list[Spec] = [{"mark": mark, "encoding": encoding}]
    if chart.low and chart.high:
        span = {"y": {"field": chart.low, "type": "quantitative"}, "y2": {"field": chart.high}}
        layers.insert(0, {"mark": {"type": "rule", "opacity": 0.5}, "encoding": {"x": across, **span, **_color(chart)}})
    layers += [_vertical(label, x, across["type"]) for label, x in chart.marks]
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
    lines, fills = ({CAN_BE_ORDERED: COLORS[0], QUOTED: rest} for rest in (COLORS[6], "transparent"))
    stroke, fill = (
        {**shown, "scale": {"domain": states, "range": [colors[name] for name in states]}} for colors in (lines, fills)
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
    ends = sorted((row for row in chart.data if row[chart.label]), key=lambda row: float(row[chart.x.key]))
    names = [_name(chart, shared, row, above=number == 0 and len(ends) > 1) for number, row in enumerate(ends)]
    drawn = [line] if any(row[chart.low] for row in chart.data) else []
    return {"layer": [*drawn, points, *names], "height": 380}


def _name(chart: Chart, shared: Spec, row: Row, *, above: bool) -> Spec:
    """Name an end of the front: the fast one above its point, the cheap one below, turned to where there is room."""
    values = sorted(float(other[chart.x.key]) for other in chart.data)
    at = sum(value <= float(row[chart.x.key]) for value in values) / len(values)
    align = "left" if above or at < 0.1 else "right" if at > 0.9 else "center"
    place = {"dy": -10, "baseline": "bottom"} if above else {"dy": 12, "baseline": "top"}
    return {
        "data": {"values": [dict(row)]},
        "mark": {"type": "text", "fontWeight": "bold", "limit": 230, "align": align, **place},
        "encoding": {**shared, "text": {"field": chart.label}},
    }


def _vertical(label: str, x: float, kind: str) -> Spec:
    """Draw a labelled line at a number, or at a moment in milliseconds since 1970."""
    mark = {"type": "rule", "strokeDash": [4, 3], "opacity": 0.6, "tooltip": label}
    return {"mark": mark, "encoding": {"x": {"datum": x, "type": kind}}}


def _roofline(chart: Chart) -> Spec:
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
