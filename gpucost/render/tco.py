"""The document of a comparison between owning and renting: the verdict, break-even, cash, and what could flip it."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.render.build import frame, leftovers
from gpucost.render.document import (
    Axis,
    Chart,
    Column,
    Document,
    Fact,
    Facts,
    Paragraph,
    Section,
    Slider,
    Table,
    columns,
)
from gpucost.render.numbers import format_named, format_value, heading_of, with_unit
from gpucost.units import HOURS_PER_MONTH, unit_of

_KNOWN = {"cash_flows", "sensitivity", "assumptions", "by_year", "options", "scenarios", "lines", "scope", "two_way"}
_STEPS = 20  # points of the break-even line
_DRAWN = 6  # lines of the breakdown that have their own colour
_BRIEF = 8  # inputs of the short sensitivity


def document(payload: Mapping[str, Any]) -> Document:
    """Build the document of a rent-or-buy answer."""
    sections = [
        Section("The answer", _answer(payload)),
        Section("Options on one scope", _options(payload)),
        Section("Break-even", _breakeven(payload)),
        Section("What moves the answer most", _sensitivity(payload, _BRIEF)),
        Section("Every input moved to its ends", _sensitivity(payload, None), detail=True),
        Section("Use against price", _two_way(payload), detail=True),
        Section("Where the money goes", _lines(payload), detail=True),
        Section("Cash by year", _years(payload), detail=True),
        Section("Cash by month", _months(payload), detail=True),
        Section("Scenarios", _scenarios(payload), detail=True),
        Section("More figures", _more(payload), detail=True),
        Section("Assumptions", _assumptions(payload), detail=True),
        *leftovers(payload, _KNOWN),
    ]
    request = {"gpus": _gpus(payload), **(payload.get("request") or {})}
    title = " ".join(f"Rent or buy {request.get('gpus') or ''} × {request.get('gpu') or 'GPUs'}".split())
    return frame(payload, title, str(payload.get("lead") or payload.get("summary") or ""), sections)


def _gpus(payload: Mapping[str, Any]) -> int | None:
    """Return how many GPUs were compared, where the request leaves it to the default."""
    found = (row["value"] for row in payload.get("assumptions") or () if row["name"] == "gpus")
    return int(value) if (value := next(found, None)) else None


def _facts(mapping: Mapping[str, Any], title: str, unit: str = "") -> Facts:
    items = []
    for key, value in mapping.items():
        if isinstance(value, (int, float, str)) or value is None:
            items.append(Fact(heading_of(key), value if value is not None else "none", unit or unit_of(key)))
    return Facts(tuple(items), title)


def _answer(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    npv, drawn = payload.get("npv_usd") or {}, payload.get("monte_carlo") or {}
    per_hour = "USD per GPU-hour"
    facts = [
        Fact("Owning, present value", npv.get("own"), "USD", drawn.get("own_p5_usd"), drawn.get("own_p95_usd")),
        Fact("Renting, present value", npv.get("rent"), "USD", drawn.get("rent_p5_usd"), drawn.get("rent_p95_usd")),
        Fact("Owning saves", npv.get("saving"), "USD", drawn.get("saving_p5_usd"), drawn.get("saving_p95_usd")),
        Fact("Probability that buying wins", payload.get("probability_buy_wins_fraction"), "fraction of one"),
        Fact("Owning, per allocated GPU-hour", payload.get("levelised_usd_per_gpu_hour"), per_hour),
        Fact("Renting, per allocated GPU-hour", payload.get("levelised_rent_usd_per_gpu_hour"), per_hour),
        Fact("IRR of buying", payload.get("irr_fraction"), "fraction of one"),
        Fact("Payback", payload.get("payback_months"), "months"),
    ]
    shown = tuple(fact for fact in facts if fact.value is not None)
    ranged = [Paragraph("Ranges hold 90 % of the draws of the Monte Carlo simulation.", "note")] if drawn else []
    blocks: list[Any] = [Facts(shown), *ranged] if shown else []
    if payload.get("conventions"):
        blocks.append(Paragraph(str(payload["conventions"]), "note"))
    uneven = [row["item"] for row in payload.get("scope") or () if row.get("unequal")]
    if uneven:
        blocks.append(Paragraph(f"The two sides differ in scope: {', '.join(uneven)}."))
    return tuple(blocks)


def _options(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    rows = payload.get("options") or []
    if not rows:
        return ()
    keys = dict.fromkeys(key for row in rows for key, value in row.items() if not isinstance(value, (dict, list)))
    ordered = [key for key in ("name", "option", "provider") if key in keys]
    rest = [key for key in keys if key not in ordered and key not in ("source_id", "offer_id")]
    shown = [*ordered, *(f"{key}:{1 + number // 3}" for number, key in enumerate(rest))]
    return (Table(columns(*shown), rows, interactive=True),)


def _more(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    names = {
        "monte_carlo": "Monte Carlo",
        "peak_cash_usd": "Peak cash",
        "tax": "Tax",
        "carbon": "Carbon",
        "sunk": "Capacity that is paid for",
    }
    blocks: list[Any] = [
        _facts(payload[key], title, unit_of(key))
        for key, title in names.items()
        if isinstance(payload.get(key), Mapping)
    ]
    if payload.get("scope"):
        blocks.append(Table(columns("item", "own", "rent", "unequal", "note"), payload["scope"], title="Scope"))
    return tuple(blocks)


def _lines(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    rows = payload.get("lines") or []
    if not rows:
        return ()
    shown = columns("side", "name", "description=what it is:2", "total_usd", "npv_usd", "levelised_usd_per_gpu_hour:1")
    parts = _largest(rows)
    words = "Present value of what each side pays, by line; proceeds of a resale are not drawn."
    picture = Chart(
        "stacked", "Cost breakdown of owning and renting", words, parts, Axis("side"), Axis("npv_usd"), series="line"
    )
    return (picture, Table(shown, rows, interactive=True)) if parts else (Table(shown, rows),)


def _largest(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Keep the lines that a picture can tell apart; the others become one."""
    costs = [row for row in rows if (row.get("npv_usd") or 0) > 0]
    kept = {row["name"] for row in sorted(costs, key=lambda row: -float(row["npv_usd"]))[:_DRAWN]}
    parts = [
        {"side": row["side"], "line": row["description"], "npv_usd": row["npv_usd"]}
        for row in costs
        if row["name"] in kept
    ]
    for side in dict.fromkeys(row["side"] for row in costs):
        rest = sum(float(row["npv_usd"]) for row in costs if row["side"] == side and row["name"] not in kept)
        parts += [{"side": side, "line": "other", "npv_usd": rest}] if rest else []
    return parts


def _two_way(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    grid = payload.get("two_way")
    if not isinstance(grid, Mapping) or not grid.get("saving_usd"):
        return ()
    x, y = str(grid["x"]), str(grid["y"])
    data = [
        {x: format_value(across, unit_of(x)), y: format_value(up, unit_of(y)), "saving_usd": saving}
        for up, row in reversed(list(zip(grid["y_values"], grid["saving_usd"], strict=True)))
        for across, saving in zip(grid["x_values"], row, strict=True)
    ]
    words = f"Present value of what owning saves, by {heading_of(x)} and {heading_of(y)}; above zero buying wins."
    return (Chart("heat", "What owning saves", words, data, Axis(x), Axis(y), value="saving_usd"),)


def _breakeven(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    point = payload.get("breakeven")
    if not isinstance(point, Mapping):
        return ()
    blocks: list[Any] = [_facts(point, "")]
    notes = [str(value) for key, value in point.items() if key.endswith(("note", "reason")) and value]
    blocks += [Paragraph(note, "note") for note in notes]
    chart = _breakeven_chart(payload)
    return (*blocks, chart) if chart else tuple(blocks)


def _breakeven_chart(payload: Mapping[str, Any]) -> Chart | None:
    """Draw what a GPU costs a month against utilisation: owned level, rented in proportion, with two sliders."""
    values = {
        row["name"]: row["value"]
        for row in (payload.get("model") or {}).get("inputs") or payload.get("assumptions") or ()
    }
    levelised = payload.get("levelised_usd_per_gpu_hour")
    owned = (
        levelised.get("owned") if isinstance(levelised, Mapping) else payload.get("levelised_usd_per_gpu_hour_owned")
    )
    rent = values.get("rent_usd_per_gpu_hour")
    if not isinstance(owned, (int, float)) or not isinstance(rent, (int, float)):
        return None
    data = []
    for step in range(_STEPS + 1):
        share = step / _STEPS
        data.append({"side": "own", "utilisation_fraction": share, "usd_per_gpu_month": owned * HOURS_PER_MONTH})
        data.append(
            {"side": "rent", "utilisation_fraction": share, "usd_per_gpu_month": rent * HOURS_PER_MONTH * share}
        )
    words = (
        f"Owning costs {with_unit(format_value(owned * HOURS_PER_MONTH, 'USD'), 'USD')} per GPU and month "
        f"whatever the use; renting at {format_named('usd_per_gpu_hour', rent)} rises with it. "
        "The lines cross at break-even."
    )
    return Chart(
        "line",
        "Owning against renting by utilisation",
        words,
        data,
        Axis("utilisation_fraction", "allocated share of the owned hours"),
        Axis("usd_per_gpu_month", "cost of a GPU per month", "USD"),
        series="side",
        sliders=(
            Slider("rent_price", "Rent, $ per GPU-hour", 0.2, max(8.0, round(rent * 2, 1)), 0.01, round(rent, 2)),
            Slider("own_price", "Own, $ per owned GPU-hour", 0.2, max(6.0, round(owned * 2, 1)), 0.01, round(owned, 2)),
        ),
        formulas={
            "own": f"own_price * {HOURS_PER_MONTH:g}",
            "rent": (f"rent_price * {HOURS_PER_MONTH:g} * datum.utilisation_fraction"),
        },
        note=(
            f"{words} Per-use rent; running costs that follow the use are held at the plan's "
            f"utilisation. Move the sliders."
        ),
    )


def _sensitivity(payload: Mapping[str, Any], limit: int | None) -> tuple[Any, ...]:
    rows = [row for row in payload.get("sensitivity") or [] if isinstance(row.get("name"), str)]
    if not rows:
        return ()
    low, high = _ends(list(rows[0]))
    result = Axis(low, "saving of owning, present value", "USD")
    named = [{**row, "name": heading_of(row["name"]), "input": row["name"]} for row in rows]
    if limit is None:
        united = [Column(key, unit_key="unit") for key in ("low", "value", "high")]
        shown = (
            *columns("input=name"),
            *united,
            *columns(f"{low}=saving at low", f"{high}=saving at high", "flips:1", "flip_value:2"),
        )
        return (Table(shown, named, interactive=True),)
    words = (
        f"Present value of what owning saves with one input at its low and high end; {named[0]['name']} moves it most."
    )
    chart = Chart(
        "tornado",
        "What moves the answer",
        words,
        named[:limit],
        Axis("name"),
        result,
        low=low,
        high=high,
        base=_base(payload),
    )
    flips = [
        f"{heading_of(row['name'])} at {format_value(row['flip_value'], str(row.get('unit') or ''))}"
        for row in rows
        if row.get("flips")
    ]
    said = [Paragraph(f"Alone within its range, these flip the decision: {'; '.join(flips)}.")] if flips else []
    return (chart, *said) if low else ()


def _ends(keys: Sequence[str]) -> tuple[str, str]:
    """Find the two results in a sensitivity row."""
    for low, high in (
        ("npv_at_low_usd", "npv_at_high_usd"),
        ("saving_at_low_usd", "saving_at_high_usd"),
        ("low_usd", "high_usd"),
        ("npv_low_usd", "npv_high_usd"),
    ):
        if low in keys and high in keys:
            return low, high
    return "", ""


def _base(payload: Mapping[str, Any]) -> float | None:
    npv = payload.get("npv_usd") or {}
    if "saving" in npv:
        return float(npv["saving"])
    if npv.get("own") is not None and npv.get("rent") is not None:
        return float(npv["rent"] - npv["own"])
    return None


def _years(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    rows = payload.get("by_year") or _by_year(payload.get("cash_flows") or [])
    if not rows:
        return ()
    return (Table(columns(*rows[0]), rows),)


def _by_year(months: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Add monthly lines up by year; month 0 is the start."""
    years: dict[int, dict[str, Any]] = {}
    for row in months:
        if not isinstance(row.get("month"), (int, float)):
            return []
        year = 0 if row["month"] == 0 else (int(row["month"]) - 1) // 12 + 1
        total = years.setdefault(year, {"year": year})
        for key in ("own_total_usd", "rent_total_usd", "own_usd", "rent_usd", "saving_usd"):
            if isinstance(row.get(key), (int, float)):
                total[key] = total.get(key, 0.0) + row[key]
    return list(years.values())


def _months(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    rows = payload.get("cash_flows") or []
    if not rows or not isinstance(rows[0].get("month"), (int, float)):
        return (Table(columns(*rows[0]), rows),) if rows else ()
    keys = list(rows[0])
    totals = [key for key in ("own_total_usd", "rent_total_usd", "own_usd", "rent_usd") if key in keys][:2]
    lines: list[dict[str, Any]] = []
    running = dict.fromkeys(totals, 0.0)
    for row in rows:
        for key in totals:
            running[key] += row[key] or 0.0
            lines.append(
                {"month": row["month"], "side": heading_of(key).removesuffix(" total"), "paid_usd": running[key]}
            )
    table = Table(columns(*keys), rows)
    if not lines:
        return (table,)
    words = (
        "What has been paid since the start: owning begins with the purchase and ends with the "
        "resale, renting grows month by month."
    )
    return Chart("line", "Cash paid so far", words, lines, Axis("month"), Axis("paid_usd"), series="side"), table


def _scenarios(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    rows = payload.get("scenarios") or []
    return (Table(columns(*rows[0]), rows),) if rows and isinstance(rows[0], Mapping) else ()


def _assumptions(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    rows = payload.get("assumptions") or []
    shown = columns(
        "name",
        Column("value", unit_key="unit"),
        Column("low", unit_key="unit", priority=2),
        Column("high", unit_key="unit", priority=2),
        "status",
        "source_id=source:1",
    )
    return (
        (
            Table(
                shown,
                rows,
                interactive=True,
                note="Status: given by you, sourced, assumed (no source), or derived from the others.",
            ),
        )
        if rows
        else ()
    )
