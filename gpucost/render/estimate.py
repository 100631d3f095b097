"""The document of a training estimate: the answer, the ranked offers, and what a person asks next."""

from collections.abc import Sequence
from typing import Any

from gpucost.answers.training import Estimate, Highlight, RankedOption, RunPoint
from gpucost.render import roofline
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Document,
    Fact,
    KeyFigures,
    Paragraph,
    Row,
    Section,
    Table,
    amount,
    columns_of,
    document_of,
    format_named,
    format_value,
    present_figures,
    table_of,
)
from gpucost.render.offers import (
    bill_table,
    excluded_table,
    not_included,
    offer_bars,
    offers_picture,
    offers_table,
    option_text,
    range_text,
    training_causes,
)
from gpucost.units import format_count

_MOST_KINDS = 5  # of one screen
_ASK = "--gpu, --deadline."
_HEADINGS = {
    "cost": "Offers, cheapest run first",
    "time": "Offers, fastest run first",
    "carbon": "Offers, least carbon first",
    "pareto": "Offers with the best trade-offs between cost and time, cheapest first",
}


def document(answer: Estimate) -> Document:
    """Build the document of an estimate."""
    options = answer["options"]
    best = options[0]
    heading = _HEADINGS[answer["request"].get("optimize") or "cost"]
    panel = answer.get("roofline")
    bounds: list[Block] = (
        [] if panel is None else [Paragraph(panel["lead"]), *roofline.plot(panel), roofline.table(panel)]
    )
    return document_of(
        answer,
        _title(answer),
        Section("Every offer: cost against days", _picture(answer), detail=True, paper=True),
        Section("", _figures(best), detail=True, paper=True),
        Section(heading, offers_table(columns_of("estimate"), options, answer["excluded"]), paper=True),
        Section("The cheapest offer of each region", _regions(answer), detail=True),
        Section("Cost against time", _scaling(answer)),
        Section("What would change the cost", _changes(answer), paper=True),
        Section("Bill of the top offer", _bill(best)),
        Section("How the top offer runs", _layout(best), detail=True),
        Section("Pictures", _charts(options), detail=True),
        Section("Price history", _history(answer), detail=True),
        Section("What limits the speed", bounds, detail=True),
        Section("Offers left out, and why", excluded_table(answer["excluded"]), detail=True),
        headline=answer.get("headline", ""),
        screen=_screen(answer),
    )


def _span(low: float, high: float) -> str:
    """Return a range, or one figure where its ends read alike: a commitment costs what it costs."""
    return " to ".join(dict.fromkeys(format_value(end, "USD") for end in (low, high)))


def _screen(answer: Estimate) -> list[Block]:
    """Return what one screen shows: the best offers by kind, and what to ask next."""
    shown = [row for row in answer.get("highlights", ())[:_MOST_KINDS] if row["kind"] != "unverified"]
    rows = [
        {
            **row,
            "cluster": f"{row['gpus']:,} × {row['gpu']}",
            "option": option_text(row["option"], row["term_months"]),
            "range": _span(row["cost_low_usd"], row["cost_high_usd"]),
            "age": f"{row['age_days']} d",
        }
        for row in shown
    ]
    if not rows:
        return []
    excluded = answer["excluded"]
    out = f", {len(excluded):,} left out" if excluded else ""
    asked_first = [row["confirm"] for row in shown if row.get("confirm")]
    asked_first += [_unverified(row) for row in answer.get("highlights", ()) if row["kind"] == "unverified"]
    return [
        Table(columns_of("estimate kinds"), rows, note=range_text(training_causes(answer, answer["options"][0]))),
        *([Paragraph(" ".join(asked_first))] if asked_first else []),
        Paragraph(f"Next: --details (bill{out}), --explain, -o FILE, {_ASK}"),
    ]


def _unverified(row: Highlight) -> str:
    """Say what the lowest quote is that nobody verified, and what is missing."""
    quoted = row["cost_usd"] * row["quoted_usd_per_gpu_hour"] / row["usd_per_gpu_hour"]
    return (
        f"Lowest quoted, unverified: {format_value(quoted, 'USD')} USD on {row['gpus']:,} × {row['gpu']} at"
        f" {row['provider']}, {option_text(row['option'], row['term_months'])}; missing: {'; '.join(row['missing'])}."
    )


def _title(answer: Estimate) -> str:
    request = answer["request"]
    tokens = request["tokens"]
    spread = format_count(tokens) if isinstance(tokens, (int, float)) else tokens
    return f"Training {request['model']} on {spread} tokens"


def _figures(best: RankedOption) -> list[Block]:
    sources = tuple(best["source_ids"])
    facts = (
        Fact("Cost of the run", best["cost_usd"], "USD", best["cost_low_usd"], best["cost_high_usd"], sources),
        Fact("Time", best["days"], "days", best["days_low"], best["days_high"]),
        Fact("Cluster", f"{best['gpus']} × {best['gpu']}"),
        Fact("GPU-hours", best["gpu_hours"]),
        Fact("Per million tokens", best["usd_per_mtok"], "USD per million tokens"),
        Fact("MFU in training steps", best["mfu_fraction"], "fraction of one"),
        Fact("MFU over the paid hours", best.get("mfu_paid_fraction"), "fraction of one"),
        Fact("Energy", best["energy_kwh"], "kWh"),
        Fact("Carbon", best["kgco2e"], "kgCO2e"),
    )
    return [*present_figures(facts)]


def _picture(answer: Estimate) -> list[Block]:
    """Return all offers as points; of an answer that was saved without them, those that it lists."""
    options: Sequence[Row] = answer["options"]
    listed: Sequence[Any] = [
        {**{key: row[key] for key in _POINT}, "orderable": not row.get("missing"), "front": False} for row in options
    ]
    points: Sequence[RunPoint] = answer.get("points") or listed
    return offers_picture(points, Axis("days", log=True), Axis("cost_usd", log=True), "Cost against days")


_POINT = tuple(name for name in RunPoint.__annotations__ if name not in ("orderable", "front"))


def _regions(answer: Estimate) -> list[Block]:
    rows = [
        {
            **row,
            "region": row["region"] or "any region",
            "option": option_text(row["option"], row["term_months"]),
            "cluster": f"{row['gpus']:,} × {row['gpu']}",
            "order": "can be ordered" if row["orderable"] else "quoted, not verified",
        }
        for row in answer.get("by_region") or ()
    ]
    return [Table(columns_of("estimate regions"), rows, interactive=True)] if len(rows) > 1 else []


def _scaling(answer: Estimate) -> list[Block]:
    rows = answer["scaling"]
    if len(rows) < 2:
        return []
    description = (
        "Each point is one cluster size. A larger cluster finishes sooner, and costs more where communication slows it "
        "down."
    )
    title = "Cost against time by cluster size"
    days, cost = Axis("days", log=True), Axis("cost_usd", log=True)
    return [
        Table(columns_of("estimate sizes"), rows, "The top offer at other cluster sizes"),
        Chart("scatter", title, description, rows, days, cost, label="gpus", low="cost_low_usd", high="cost_high_usd"),
    ]


def _changes(answer: Estimate) -> list[Block]:
    blocks: list[Block] = []
    ways = [
        {
            **row,
            "option": option_text(row["option"], row["term_months"]),
            "against": _against(row["saving_fraction"]),
        }
        for row in answer["alternatives"]
    ]
    blocks += [Table(columns_of("estimate ways"), ways, "Other ways to buy")] if ways else []
    blocks += table_of("Largest parts of the cost", answer["drivers"], *columns_of("estimate drivers"))
    return [*blocks, *not_included(answer["not_included"])]


def _against(saving_fraction: float | None) -> str | None:
    """Word a saving against on demand; write several times the cost as a multiple.

    >>> _against(0.135), _against(-0.2), _against(-78.1), _against(0.0)
    ('14% less', '20% more', '79 × as much', 'the same')
    """
    if saving_fraction is None:
        return None
    share = round(100 * abs(saving_fraction))
    if share == 0:
        return "the same"
    if saving_fraction < -1:
        return (
            f"{1 - saving_fraction:,.3g} × as much" if saving_fraction > -9 else f"{1 - saving_fraction:,.0f} × as much"
        )
    return f"{share}% {'less' if saving_fraction > 0 else 'more'}"


def _bill(best: RankedOption) -> list[Block]:
    offer = f"{best['provider']} {best['gpu']}"
    parts = [{"offer": offer, "part": line["name"], "cost_usd": line["cost_usd"]} for line in best["lines"]]
    named = ", ".join(f"{line['name']} {format_named('cost_usd', line['cost_usd'])}" for line in best["lines"])
    description = f"Bill of the top offer: {named}."
    picture = Chart("stacked", "Cost breakdown", description, parts, Axis("offer"), Axis("cost_usd"), series="part")
    return [bill_table(best["lines"], best["cost_usd"]), picture] if parts else []


def _layout(best: RankedOption) -> list[Block]:
    facts = KeyFigures(tuple(Fact(key.replace("_", " "), value) for key, value in best["layout"].items()), "Layout")
    rows = [
        {"part": key.removesuffix("_s").replace("_", " "), "time_s": value} for key, value in best["components"].items()
    ]
    if not rows:
        return [facts]
    part, time_s = max(best["components"].items(), key=lambda item: item[1])
    longest = amount(time_s, "seconds")
    description = f"The longest part of a step is {part.removesuffix('_s').replace('_', ' ')}, {longest}."
    time = Axis("time_s", "time", "seconds")
    return [facts, Chart("bar", "Where the time of a step goes", description, rows, Axis("part"), time)]


def _charts(options: Sequence[RankedOption]) -> list[Block]:
    names = [
        f"{row['rank']} {row['provider']} {row['gpus']}×{row['gpu']} {option_text(row['option'], row['term_months'])}"
        for row in options
    ]
    keys = ("cost_usd", "cost_low_usd", "cost_high_usd", "provider", "gpu", "gpus", "days")
    return offer_bars(options, names, keys, "Cost by offer, with ranges", "{} Lines span 80 % of what may happen.")


def _history(answer: Estimate) -> list[Block]:
    rows = answer.get("price_history") or []
    if len(rows) < 2:
        return []
    description = (
        f"On-demand prices of {answer['options'][0]['gpu']} by month: the median, and a line from the lowest to the "
        "highest. The providers observed differ from month to month."
    )
    price = Axis("usd_per_gpu_hour", "median price", "USD per GPU-hour")
    low, high = "low_usd_per_gpu_hour", "high_usd_per_gpu_hour"
    return [Chart("line", "Price history", description, rows, Axis("month"), price, label="prices", low=low, high=high)]
