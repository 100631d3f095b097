"""The document of a training estimate: the answer, the ranked offers, and what a person asks next."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.render.build import document as build
from gpucost.render.build import frame, leftovers
from gpucost.render.document import Axis, Chart, Column, Document, Fact, Facts, Paragraph, Section, Table, columns
from gpucost.render.numbers import format_named, format_value, with_unit
from gpucost.render.offers import bill_table, excluded_table, notes_of
from gpucost.units import format_count

_KNOWN = {"options", "excluded", "scaling", "alternatives", "drivers", "not_included", "assumptions", "price_history"}
_BARS = 15

_OFFER_COLUMNS = columns(
    "rank",
    "provider",
    "instance_type=instance:5",
    "region:6",
    "option:2",
    "gpu",
    "gpus",
    "days",
    "mfu_fraction:3",
    "tokens_per_s_per_gpu:7",
    "cost_usd",
    Column("cost_low_usd", "low", priority=1),
    Column("cost_high_usd", "high", priority=1),
    "usd_per_mtok:5",
    "kgco2e:8",
    "price_observed_on:4",
    "age_days=age:4",
)


def document(payload: Mapping[str, Any]) -> Document:
    """Build the document of an estimate."""
    options: Sequence[Mapping[str, Any]] = payload.get("options") or []
    sections = [
        Section("", _answer(options), detail=True),
        Section("Offers, cheapest run first", _offers(payload, options)),
        Section("Cost against time", _scaling(payload)),
        Section("What would change it", _changes(payload, options)),
        Section("The bill of the first offer", _bill(options)),
        Section("How the first offer runs", _layout(options), detail=True),
        Section("Pictures", _charts(options), detail=True),
        Section("How the price came about", _history(payload, options), detail=True),
        Section("What bounds the speed", _roofline(payload), detail=True),
        Section("Not possible, and why", excluded_table(payload), detail=True),
        *leftovers(payload, _KNOWN),
    ]
    return frame(
        payload,
        _title(payload),
        str(payload.get("lead") or "No offer can do this run; the reasons stand below."),
        sections,
    )


def _title(payload: Mapping[str, Any]) -> str:
    request = payload.get("request") or {}
    tokens = request.get("tokens")
    spread = (
        f" on {format_count(tokens)} tokens"
        if isinstance(tokens, (int, float))
        else f" on {tokens} tokens"
        if tokens
        else ""
    )
    return f"Training {request.get('model', 'a model')}{spread}"


def _answer(options: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    if not options:
        return ()
    best = options[0]
    sources = tuple(best.get("source_ids") or ())
    facts = [
        Fact(
            "Cost of the run", best.get("cost_usd"), "USD", best.get("cost_low_usd"), best.get("cost_high_usd"), sources
        ),
        Fact("Time", best.get("days"), "days", best.get("days_low"), best.get("days_high")),
        Fact("Cluster", f"{best.get('gpus')} × {best.get('gpu')}"),
        Fact("GPU-hours", best.get("gpu_hours")),
        Fact("Per million tokens", best.get("usd_per_mtok"), "USD per million tokens"),
        Fact("MFU", best.get("mfu_fraction"), "fraction of one"),
        Fact("Energy", best.get("energy_kwh"), "kWh"),
        Fact("Carbon", best.get("kgco2e"), "kgCO2e"),
    ]
    return (Facts(tuple(fact for fact in facts if fact.value is not None)),)


def _offers(payload: Mapping[str, Any], options: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    if not options:
        return excluded_table(payload)
    note = notes_of(options, payload.get("excluded") or [])
    return (Table(_OFFER_COLUMNS, options, note=note, interactive=True),)


def _scaling(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    rows = payload.get("scaling") or []
    if len(rows) < 2:
        return ()
    shown = columns(
        "gpus",
        "days",
        "cost_usd",
        Column("cost_low_usd", "low", priority=1),
        Column("cost_high_usd", "high", priority=1),
        "mfu_fraction:2",
    )
    return (
        Table(shown, rows, title="The first offer at other cluster sizes"),
        Chart(
            "scatter",
            "Cost against time by cluster size",
            (
                "Each point is one cluster size: a larger cluster ends sooner and costs more where "
                "communication eats into its speed."
            ),
            rows,
            Axis("days", log=True),
            Axis("cost_usd"),
            label="gpus",
            low="cost_low_usd" if "cost_low_usd" in rows[0] else "",
            high="cost_high_usd" if "cost_high_usd" in rows[0] else "",
        ),
    )


def _changes(payload: Mapping[str, Any], options: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    blocks: list[Any] = []
    if payload.get("alternatives"):
        shown = columns("option", "provider", "gpu", "gpus:2", "days:1", "cost_usd", "saving_fraction", "note:3")
        blocks.append(Table(shown, payload["alternatives"], title="Other ways to buy"))
    if payload.get("drivers"):
        title = "What dominates the cost"
        blocks.append(Table(columns("name", "share_fraction", "note:1"), payload["drivers"], title=title))
    if payload.get("not_included"):
        blocks.append(
            Paragraph("Not included: " + "; ".join(str(item).rstrip(".") for item in payload["not_included"]) + ".")
        )
    return tuple(blocks)


def _bill(options: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    if not options or not options[0].get("lines"):
        return ()
    best = options[0]
    bill = bill_table(best, best["cost_usd"])
    parts = [
        {"offer": f"{best['provider']} {best['gpu']}", "part": line["name"], "cost_usd": line["cost_usd"]}
        for line in best["lines"]
    ]
    words = ", ".join(f"{line['name']} {format_named('cost_usd', line['cost_usd'])}" for line in best["lines"])
    return bill, Chart(
        "stacked",
        "Cost breakdown",
        f"The bill of the first offer: {words}.",
        parts,
        Axis("offer"),
        Axis("cost_usd"),
        series="part",
    )


def _layout(options: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    if not options:
        return ()
    best = options[0]
    blocks: list[Any] = []
    if best.get("layout"):
        blocks.append(
            Facts(tuple(Fact(str(key).replace("_", " "), value) for key, value in best["layout"].items()), "Layout")
        )
    components = best.get("components") or {}
    rows = [
        {"part": key.removesuffix("_s").replace("_", " "), "time_s": value}
        for key, value in components.items()
        if isinstance(value, (int, float))
    ]
    if rows:
        slowest = max(rows, key=lambda row: float(row["time_s"]))
        words = (
            f"The longest part of a step is {slowest['part']}, "
            f"{with_unit(format_value(slowest['time_s'], 'seconds'), 'seconds')}."
        )
        blocks.append(
            Chart("bar", "Where the time of a step goes", words, rows, Axis("part"), Axis("time_s", "time", "seconds"))
        )
    return tuple(blocks)


def _charts(options: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    if not options:
        return ()
    rows = [
        {**row, "offer": f"{row['rank']} {row['provider']} {row['gpus']}×{row['gpu']} {row.get('option', '')}"}
        for row in options[:_BARS]
    ]
    keys = ("offer", "provider", "gpu", "gpus", "days", "cost_usd", "cost_low_usd", "cost_high_usd")
    bars = [{key: row.get(key) for key in keys} for row in rows]
    dots = [{key: row.get(key) for key in keys} for row in options]
    cheapest = f"The cheapest is {rows[0]['offer']}, {format_named('cost_usd', rows[0]['cost_usd'])}."
    return (
        Chart(
            "bar",
            "Cost by offer, with ranges",
            (f"{cheapest} Lines show the range that holds 80 % of outcomes."),
            bars,
            Axis("offer"),
            Axis("cost_usd"),
            low="cost_low_usd",
            high="cost_high_usd",
        ),
        Chart(
            "scatter",
            "Cost against time, all offers",
            (f"Each point is an offer, coloured by its GPU. {cheapest}"),
            dots,
            Axis("days", log=True),
            Axis("cost_usd", log=True),
            series="gpu",
            label="provider",
        ),
    )


def _history(payload: Mapping[str, Any], options: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    rows = payload.get("price_history") or []
    if len(rows) < 2:
        return ()
    words = (
        f"On-demand prices of {options[0]['gpu']} by the month in which they were seen: the median, and a line from "
        "the lowest to the highest. Which providers were seen differs from month to month."
    )
    price = Axis("usd_per_gpu_hour", "median price", "USD per GPU-hour")
    low, high = "low_usd_per_gpu_hour", "high_usd_per_gpu_hour"
    return (Chart("line", "Price history", words, rows, Axis("month"), price, label="prices", low=low, high=high),)


def _roofline(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    if not payload.get("roofline"):
        return ()
    made = build(payload["roofline"])
    kept = [block for section in made.sections for block in section.blocks if isinstance(block, (Chart, Table))]
    return (*((Paragraph(made.lead),) if made.lead else ()), *kept)
