"""The document of a serving answer: cost per million tokens by offer, latency, and self-host against API."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.render.build import frame, leftovers
from gpucost.render.document import Axis, Chart, Column, Document, Fact, Facts, Paragraph, Section, Table, columns
from gpucost.render.numbers import format_named
from gpucost.render.offers import bill_table, excluded_table, notes_of

_KNOWN = {"options", "excluded", "api", "breakeven_curve", "not_included", "assumptions", "tradeoff"}
_BARS = 15
_OFFER_COLUMNS = columns(
    "rank",
    "provider",
    "instance_type=instance:6",
    "region:7",
    "option:3",
    "gpu",
    "gpus",
    "replicas:4",
    "ttft_ms:3",
    "tpot_ms:2",
    "tokens_per_s_per_gpu:5",
    Column("usd_per_mtok_input", "input", "USD per million tokens", 2),
    Column("usd_per_mtok_output", "output", "USD per million tokens", 2),
    Column("usd_per_mtok", "blended", "USD per million tokens"),
    Column("usd_per_mtok_low", "low", "USD per million tokens", 1),
    Column("usd_per_mtok_high", "high", "USD per million tokens", 1),
    Column("usd_per_month", "per month", "USD", 1),
    "price_observed_on:5",
    "age_days:5",
)


def document(payload: Mapping[str, Any]) -> Document:
    """Build the document of a serving answer."""
    options: Sequence[Mapping[str, Any]] = payload.get("options") or []
    said = tuple(Paragraph(str(line)) for line in payload.get("said") or ())
    sections = [
        Section("", said),
        Section("", _answer(payload, options), detail=True),
        Section("Offers, cheapest tokens first", _offers(payload, options)),
        Section("Self-host or API", _api(payload)),
        Section("The bill of the first offer", _bill(options)),
        Section("Speed against cost", _tradeoff(payload)),
        Section("Pictures", _charts(options), detail=True),
        Section("Not possible, and why", excluded_table(payload), detail=True),
        *leftovers(payload, _KNOWN),
    ]
    request = payload.get("request") or {}
    return frame(
        payload, f"Serving {request.get('model', 'a model')}", str(payload.get("lead") or _lead(options)), sections
    )


def _lead(options: Sequence[Mapping[str, Any]]) -> str:
    if not options:
        return "No offer serves this within the targets; the reasons stand below."
    best = options[0]
    return (
        f"{format_named('usd_per_mtok', best.get('usd_per_mtok'))} blended "
        f"on {best.get('gpus')} × {best.get('gpu')} at {best.get('provider')}, "
        f"price of {best.get('price_observed_on') or 'unknown date'}."
    )


def _answer(payload: Mapping[str, Any], options: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    if not options:
        return ()
    best = options[0]
    sources = tuple(best.get("source_ids") or ())
    unit = "USD per million tokens"
    facts = [
        Fact(
            "Per million tokens, blended",
            best.get("usd_per_mtok"),
            unit,
            best.get("usd_per_mtok_low"),
            best.get("usd_per_mtok_high"),
            sources,
        ),
        Fact("Per million input tokens", best.get("usd_per_mtok_input"), unit),
        Fact("Per million output tokens", best.get("usd_per_mtok_output"), unit),
        Fact(
            "Per month", best.get("usd_per_month"), "USD", best.get("usd_per_month_low"), best.get("usd_per_month_high")
        ),
        Fact("Time to first token, unloaded", best.get("ttft_ms"), "milliseconds"),
        Fact("Time per output token", best.get("tpot_ms"), "milliseconds"),
        Fact("GPUs", best.get("gpus"), note=f"{best['replicas']} replicas" if best.get("replicas") else ""),
    ]
    rule = payload.get("split_rule")
    blocks: list[Any] = [Facts(tuple(fact for fact in facts if fact.value is not None))]
    return (*blocks, Paragraph(str(rule), "note")) if rule else tuple(blocks)


def _offers(payload: Mapping[str, Any], options: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    if not options:
        return excluded_table(payload)
    note = notes_of(options, payload.get("excluded") or [])
    return (Table(_OFFER_COLUMNS, options, note=note, interactive=True),)


def _api(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    blocks: list[Any] = []
    if payload.get("api"):
        shown = columns(
            "provider",
            "model",
            Column("usd_per_mtok_input", "input", "USD per million tokens"),
            Column("usd_per_mtok_output", "output", "USD per million tokens"),
            Column("usd_per_mtok", "blended", "USD per million tokens"),
            "observed_on=price of:1",
        )
        blocks.append(Table(shown, payload["api"], title="Hosted prices"))
    point = payload.get("breakeven")
    if isinstance(point, Mapping):
        names = {
            "tokens_per_month": ("Break-even volume per month", "tokens"),
            "utilisation_fraction": ("Break-even utilisation", "fraction of one"),
        }
        facts = tuple(
            Fact(label, point[key], unit) for key, (label, unit) in names.items() if point.get(key) is not None
        )
        blocks += [Facts(facts)] if facts else []
        if point.get("note"):
            blocks.append(Paragraph(str(point["note"])))
    curve = payload.get("breakeven_curve") or []
    if curve:
        lines = [
            {"tokens_per_month": row["tokens_per_month"], "side": side, "usd_per_month": row[key]}
            for row in curve
            for key, side in _sides(row)
        ]
        words = (
            "Self-hosting costs nearly the same at any volume until another replica is needed; an "
            "API costs in proportion to the volume."
        )
        blocks.append(
            Chart(
                "line",
                "Self-host or API by volume",
                words,
                lines,
                Axis("tokens_per_month", log=True, unit="tokens"),
                Axis("usd_per_month", "cost per month", "USD", log=True),
                series="side",
            )
        )
    return tuple(blocks)


def _sides(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, key.removesuffix("_usd").replace("_", " ")) for key in row if key.endswith("_usd")]


def _tradeoff(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    rows = payload.get("tradeoff") or []
    if len(rows) < 2:
        return ()
    words = "The first offer at other batch sizes: a larger batch makes tokens cheaper and each of them slower."
    chart = Chart(
        "line",
        "Cost against time per token",
        words,
        rows,
        Axis("tpot_ms"),
        Axis("usd_per_mtok", log=True),
        label="batch",
    )
    return chart, *_left_out(payload)


def _left_out(payload: Mapping[str, Any]) -> tuple[Paragraph, ...]:
    items = payload.get("not_included")
    return (Paragraph("Not included: " + "; ".join(str(item).rstrip(".") for item in items) + "."),) if items else ()


def _bill(options: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    if not options or not options[0].get("lines"):
        return ()
    best = options[0]
    return (bill_table(best, best.get("usd_per_month"), "Per month"),)


def _charts(options: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    if not options:
        return ()
    rows = [
        {**row, "offer": f"{row.get('rank')} {row.get('provider')} {row.get('gpus')}×{row.get('gpu')}"}
        for row in options
    ]
    keys = ("offer", "provider", "gpu", "usd_per_mtok", "usd_per_mtok_low", "usd_per_mtok_high", "tpot_ms")
    data = [{key: row.get(key) for key in keys} for row in rows]
    ranged = data[0].get("usd_per_mtok_low") is not None
    words = f"The cheapest is {data[0]['offer']}, {format_named('usd_per_mtok', data[0]['usd_per_mtok'])}."
    charts = [
        Chart(
            "bar",
            "Cost per million tokens by offer",
            words,
            data[:_BARS],
            Axis("offer"),
            Axis("usd_per_mtok"),
            low="usd_per_mtok_low" if ranged else "",
            high="usd_per_mtok_high" if ranged else "",
        )
    ]
    if any(row.get("tpot_ms") for row in data):
        charts.append(
            Chart(
                "scatter",
                "Cost against speed",
                "Each point is an offer: time per output token across, cost per million tokens up.",
                data,
                Axis("tpot_ms"),
                Axis("usd_per_mtok", log=True),
                series="gpu",
                label="provider",
            )
        )
    return tuple(charts)
