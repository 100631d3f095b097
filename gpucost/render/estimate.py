"""The document of a training estimate: the answer, the ranked offers, and what a person asks next."""

from collections.abc import Sequence

from gpucost.answers.training import Estimate, RankedOption
from gpucost.render import offers, roofline
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Column,
    Document,
    Fact,
    KeyFigures,
    Paragraph,
    Row,
    Section,
    Table,
    about,
    amount,
    columns_of,
    document_of,
    format_named,
    format_value,
    present_figures,
    table_of,
)
from gpucost.render.wording import option_text
from gpucost.units import counted, format_count

_MOST_KINDS = 5  # of one screen
_HEADINGS = {
    "cost": "Offers, lowest budget first",
    "time": "Offers, fastest run first",
    "carbon": "Offers, least carbon first",
    "pareto": "Offers with the best trade-offs between cost and time, lowest budget first",
}


def document(answer: Estimate) -> Document:
    """Build the document of an estimate."""
    options = answer["options"]
    best = options[0]  # the order of the answer is the ranking that was asked for
    heading = _HEADINGS[answer["request"].get("optimize") or "cost"]
    panel = answer.get("roofline")
    bounds: list[Block] = (
        [] if panel is None else [Paragraph(panel["lead"]), *roofline.plot(panel), roofline.table(panel)]
    )
    # of an answer that was saved without its points, those offers that it lists
    listed: Sequence[Row] = options
    points = offers.ways(answer) or [
        {**{name: row[name] for name in _OF_A_POINT}, "orderable": offers.is_orderable(row), "front": False}
        for row in listed
    ]
    days, cost = Axis("days", log=True), Axis("cost_usd", log=True)
    # the bill of the top offer, and its lines as the parts of one bar
    bill: list[Block] = []
    if lines := best["lines"]:
        offer = f"{best['provider']} {best['gpu']}"
        parts = [{"offer": offer, "part": line["name"], "cost_usd": line["cost_usd"]} for line in lines]
        amounts = ", ".join(f"{line['name']} {format_named('cost_usd', line['cost_usd'])}" for line in lines)
        description = f"Bill of the top offer: {amounts}."
        picture = Chart("stacked", "Cost breakdown", description, parts, Axis("offer"), Axis("cost_usd"), series="part")
        bill = [offers.bill_table(lines, best["cost_usd"]), picture]
    # the first offer of each region; a single one is in the table of all offers already
    by_region = [
        {
            **row,
            "region": row["region"] or "any region",
            "option": option_text(row["option"], row["term_months"]),
            "cluster": f"{row['gpus']:,} × {row['gpu']}",
            "order": "can be ordered" if offers.is_orderable(row) else "may be gone",
        }
        for row in answer.get("regions") or ()
    ]
    regions = [Table(columns_of("estimate regions"), by_region, interactive=True)] if len(by_region) > 1 else []
    # the prices of the top offer's chip by month; of a single month there is no line
    history: list[Block] = []
    months = answer.get("price_history") or []
    if len(months) > 1:
        description = (
            f"On-demand prices of {best['gpu']} by month: the median, and a line from the lowest to the highest. The"
            " providers observed differ from month to month."
        )
        price = Axis("usd_per_gpu_hour", "median price", "USD per GPU-hour")
        low, high = "low_usd_per_gpu_hour", "high_usd_per_gpu_hour"
        history = [
            Chart(
                "line", "Price history", description, months, Axis("month"), price, label="prices", low=low, high=high
            )
        ]
    names = [
        f"{row['rank']} {row['provider']} {row['gpus']}×{row['gpu']} {option_text(row['option'], row['term_months'])}"
        for row in options
    ]
    keys = ("cost_usd", "cost_low_usd", "cost_high_usd", "provider", "gpu", "gpus", "days")
    bars_title = "Cost by offer, with ranges"
    # each other way to buy is the first offer of its option and term with the same chip, against plain on demand
    changes: list[Block] = []
    alternatives = [
        {
            **row,
            "option": option_text(row["option"], row["term_months"]),
            "against": _against(row["saving_fraction"]),
        }
        for row in answer["alternatives"]
    ]
    if alternatives:
        changes.append(Table(columns_of("estimate ways"), alternatives, "Other ways to buy"))
    changes += table_of("Largest parts of the cost", answer["drivers"], *columns_of("estimate drivers"))
    changes += offers.not_included(answer["not_included"])
    return document_of(
        answer,
        _title(answer),
        Section(
            "Every offer: cost against days",
            offers.offers_picture(points, days, cost, "Cost against days"),
            detail=True,
            paper=True,
        ),
        Section("", _figures(answer, best), detail=True, paper=True),
        Section(heading, offers.offers_table(columns_of("estimate"), options, offers.left_out(answer)), paper=True),
        Section("The first offer of each region", regions, detail=True),
        Section("Cost against time", _scaling(answer)),
        Section("What would change the cost", changes, paper=True),
        Section("What makes the range", [Paragraph(offers.range_text(offers.training_causes(answer, best)))]),
        Section("Bill of the top offer", bill),
        Section("How the top offer runs", _layout(best), detail=True),
        Section(
            "Pictures",
            offers.offer_bars(options, names, keys, bars_title, "{} Lines span 80 % of what may happen."),
            detail=True,
        ),
        Section("Price history", history, detail=True),
        Section("What limits the speed", bounds, detail=True),
        Section("Offers left out, and why", offers.excluded_table(offers.left_out(answer)), detail=True),
        headline=answer.get("headline", ""),
        screen=_screen(answer),
        name=_title(answer, "Train"),
    )


def _screen(answer: Estimate) -> list[Block]:
    """Return what one screen shows: the best offers by kind, what they rest on, and what to ask next."""
    shown = answer.get("highlights", ())[:_MOST_KINDS]
    # each is the best of its kind: cheapest, fastest, on a major cloud …; best in several ways it stands once
    rows = [
        {**row, "expect": about(row["cost_usd"]), "time": offers.time_text(row["days"])}
        for row in offers.picks(shown, "budget_usd")
    ]
    if not rows:
        return []
    every = counted(answer["options_found"] + len(offers.left_out(answer)), "offer")
    best = answer["options"][0]
    seller = answer["highlights"][0].get("seller")
    price = offers.price_text({**best, "seller": seller}, f"; {format_value(best['gpu_hours'])} GPU-hours")
    # what the answer takes as given, its range last: the ends first, then what the engine says of them
    stated = [Fact(fact["label"], fact["text"]) for fact in answer.get("stated") or ()]
    cause = offers.widest_cause(offers.training_causes(answer, best))
    ends = f"{about(best['cost_low_usd'])} to {about(best['cost_high_usd'])} for the first line{cause}."
    span = Fact("Range", " ".join([ends, *(fact.value for fact in stated if fact.label == "Range")]))
    others = [fact for fact in stated if fact.label != "Range"]
    return [
        Table(_PICKED, rows, note=offers.budget_note(shown, "budget_usd") if _is_known(answer) else ""),
        KeyFigures((Fact("Price", price), *others, span)),
        Paragraph(
            f"{answer['options_found']:,} of {every} qualify: --details · formulas: --explain · one GPU: --gpu NAME"
        ),
    ]


def _is_known(answer: Estimate) -> bool:
    """Tell whether nine of ten orders end below a budget; of reinforcement learning nobody knows."""
    return answer["workload"]["method"] != "grpo"


_PICKED = (
    Column("kind", heading=" "),
    *(Column(name, right=True) for name in ("expect", "budget", "time", "machine")),
    Column("seller"),
)


def _title(answer: Estimate, verb: str = "Training") -> str:
    # a saved request may hold the tokens as they were typed
    request = answer["request"]
    tokens = request["tokens"]
    size = format_count(tokens) if isinstance(tokens, (int, float)) else tokens
    return f"{verb} {request['model']} on {size} tokens"


def _figures(answer: Estimate, best: RankedOption) -> list[Block]:
    """Return the figures of the top offer; what an older answer lacks is left out."""
    sources = tuple(best["source_ids"])
    facts = (
        Fact(
            "Budget",
            best.get("budget_usd"),
            "USD",
            note="nine of ten such orders end below it" if _is_known(answer) else "",
        ),
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


# of an offer, what its point in the picture needs
_OF_A_POINT = ("gpus", "gpu", "days", "cost_usd", "provider", "option", "term_months", "region", "age_days")


def _scaling(answer: Estimate) -> list[Block]:
    """Return the top offer at other sizes of its cluster."""
    rows = answer["scaling"]
    if len(rows) < 2:
        return []
    description = (
        "Each point is one cluster size. A larger cluster finishes sooner, and costs more where communication slows it "
        "down."
    )
    # both axes are logarithmic: on them perfect scaling is a flat line of cost
    title = "Cost against time by cluster size"
    days, cost = Axis("days", log=True), Axis("cost_usd", log=True)
    return [
        Table(columns_of("estimate sizes"), rows, "The top offer at other cluster sizes"),
        Chart("scatter", title, description, rows, days, cost, label="gpus", low="cost_low_usd", high="cost_high_usd"),
    ]


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
    if saving_fraction < -1:  # "310% more" makes one think twice; three digits up to ten times, then whole ones
        multiple = 1 - saving_fraction
        return f"{multiple:,.3g} × as much" if multiple < 10 else f"{multiple:,.0f} × as much"
    return f"{share}% {'less' if saving_fraction > 0 else 'more'}"


def _layout(best: RankedOption) -> list[Block]:
    """Return the layout of the top offer, and where the time of its step goes."""
    # a speed that was given has no parts: then the layout stands alone
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
