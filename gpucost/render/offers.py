"""What the answers about training and serving share: offers, the bill, what was left out, the causes of a range."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.answers.common import BillLine
from gpucost.answers.serving import ServingOption
from gpucost.answers.training import TrainingOption
from gpucost.market.budget import LIKELY
from gpucost.market.terms import unlisted
from gpucost.options import OPTIONS, is_plain
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Column,
    Paragraph,
    Row,
    Table,
    about,
    amount,
    columns_of,
    day_text,
    format_named,
    format_value,
)
from gpucost.render.vega import CAN_BE_ORDERED, QUOTED
from gpucost.render.wording import chip_label, option_text
from gpucost.units import counted

# --- The table of an answer's offers, and the picture of them.

LEFT_OUT = "left out"


def ways(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of an answer's table that do the work, each with whether one can order it."""
    saved = answer.get("points") or ()  # of an answer that was saved before it had the table
    rows = answer.get("offers") or [{"standing": "", **row} for row in saved]
    return [{**row, "orderable": is_orderable(row)} for row in rows if row["standing"] != LEFT_OUT]


def is_orderable(row: Row) -> bool:
    """Tell whether one can probably still have the offer of a row at its quote."""
    chance = row.get("chance_available_fraction")
    return bool(row.get("orderable", True)) if chance is None else chance >= LIKELY


def left_out(answer: Mapping[str, Any]) -> Sequence[Row]:
    """Return the rows of an answer's table that do not do the work, each with the reason."""
    rows: Sequence[Row] = answer.get("excluded") or ()
    return [row for row in answer.get("offers") or rows if row.get("standing", LEFT_OUT) == LEFT_OUT]


def offers_picture(points: Sequence[Row], across: Axis, up: Axis, title: str) -> list[Block]:
    """Return every offer as a point of cost against time, those that one can order apart, with the front drawn."""
    if not points:
        return []
    # Quotes that nobody verified may be many times dearer or slower than anything one can order, and would press all
    # that matters into a corner: they are counted, not drawn.
    orderable = [point for point in points if point["orderable"]]
    limits = {}
    if orderable:
        limits = {key: _FAR * max(point[key] or 0 for point in orderable) for key in (across.key, up.key)}
    near = [point for point in points if not any((point[key] or 0) > limit for key, limit in limits.items())]
    front = [point for point in points if point["front"]]
    ends = []  # of the front: the cheapest offer and the fastest
    if front:
        ends = [min(front, key=lambda point: point[up.key]), min(front, key=lambda point: point[across.key])]
    rows = []
    for point in near:
        cluster = f"{point['gpus']:,} × {point['gpu']}"
        is_end = any(point is end for end in ends)
        rows.append(
            {
                "offer": cluster,
                across.key: point[across.key],
                up.key: point[up.key],
                "provider": point["provider"],
                "option": option_text(point["option"], point["term_months"]),
                **({"region": point["region"]} if point["region"] else {}),
                "age_days": point["age_days"],
                "state": CAN_BE_ORDERED if point["orderable"] else QUOTED,
                "front": point["front"],
                "name": f"{cluster}, {point['provider']}" if is_end else "",
            }
        )
    sentences = [f"{counted(len(points), 'point')}: {len(orderable):,} can be ordered."]
    if ends:
        cheap, fast = (
            f"{name} {end['gpus']:,} × {end['gpu']} at {end['provider']},"
            f" {format_named(up.key, end[up.key])}, {amount(end[across.key], across.measure)}"
            for name, end in zip(("the cheapest", "the fastest"), ends, strict=True)
        )
        sentences.append(
            f"The line joins offers that no other one beats in both: from {cheap}"
            + ("." if ends[0] is ends[1] else f", to {fast}.")
        )
    if off := len(points) - len(near):
        quotes = f"{counted(off, 'quote')} that nobody verified"
        sentences.append(f"{quotes}, far beyond the others, {'is' if off == 1 else 'are'} not drawn.")
    return [Chart("offers", title, " ".join(sentences), rows, across, up, series="state", label="name", low="front")]


# --- The picks of one screen.


def picks(rows: Sequence[Row], budget: str) -> list[dict[str, Any]]:
    """Return the cells of an answer's picks: what each is best at, its machine and seller, and what it needs."""
    cells: list[dict[str, Any]] = []
    for row in rows:
        label, needed = chip_label(row["gpu"]), row.get(budget)
        cells.append(
            {
                **row,
                "kind": str(_KINDS.get(row["kind"], row["kind"])).format(gpu=label),
                "budget": None if needed is None else about(needed),
                "machine": f"{row['gpus']:,} × {label}",
                "seller": seller_text(row),
            }
        )
    return cells


_KINDS = {"major cloud": "on a major cloud", "most measured chip": "on {gpu}"}


def budget_note(rows: Sequence[Row], budget: str) -> str:
    """Say what a budget is, and where several picks need the same, why."""
    needed = [row[budget] for row in rows if row.get(budget) is not None]
    if len(set(needed)) < len(needed):
        return "Nine of ten orders end below the budget; equal ones fall back on the same offer."
    return "Nine of ten such orders end below the budget."


def seller_text(row: Row) -> str:
    """Say who sells it, on which terms where they are not on demand, and how old a quote is that may be gone."""
    if row["option"] is None:  # nobody rents it out
        return str(row["provider"])
    option = option_text(row["option"], row.get("term_months") or 0).removeprefix("capacity ")
    option = "spot" if OPTIONS[row["option"]].interruptible else option  # however its seller calls it
    terms = "" if is_plain(row["option"]) else f", {option}"
    old = "" if is_orderable(row) else f", {row['age_days']} d old"
    return f"{row.get('seller') or row['provider']}{terms}{old}"


def time_text(days: float | None) -> str | None:
    """Write how long a run takes.

    >>> time_text(8.93), time_text(0.152), time_text(None)
    ('8.9 days', '3.6 hours', None)
    """
    if days is None:
        return None
    if days < 1:
        return f"{days * 24:.1f} hours"
    return f"{days:,.0f} days" if days >= 99.95 else f"{days:.1f} days"  # 99.95 would be written as 100.0


def price_text(row: Row, hours: str = "") -> str:
    """Say at which price an offer is counted, of which day it is, and whether it may be gone."""
    place = f" in {row['region']}" if row.get("region") else ""
    known = "your own price of" if row.get("price_book") == "user" else "seen on"
    seen = f", {known} {day_text(row['price_observed_on'])}" if row.get("price_observed_on") else ""
    seller = row.get("seller") or row["provider"]
    doubt = unlisted(row.get("age_days"), row.get("price_book") or "")
    terms = option_text(row["option"], row.get("term_months") or 0)
    return f"${row['usd_per_gpu_hour']:,.2f} per GPU-hour ({terms}) at {seller}{place}{seen}{hours}.{doubt}"


# --- Causes of a range: what each alone does to the cost, and what would narrow it.

OVERHEAD = "overhead (not in the range)"
IDLE = "idle and spare hours (not in the range)"
LOST = "a spare replica (not in the range)"
_WORTH_SAYING = 0.05  # of the hours that are bought
_LEAST_SAID = 0.01  # a cause that moves the cost by less stands in the details alone
_BEYOND = {OVERHEAD: "overhead", IDLE: "idle hours", LOST: "a spare replica"}


def training_causes(payload: Mapping[str, Any], option: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what each cause alone would make of the cost of a run; the widest first."""
    from gpucost.money.training_bill import RAMP_ENDS

    factors, cost = option["factors"], option["cost_usd"]
    hours = sum(line["cost_usd"] for line in option["lines"] if line["unit"] == "GPU-hour")
    speed, stretch = factors["tokens_per_s_per_gpu"], factors["stretch_paid_ratio"]
    # which argument narrows the range of a speed, and how; a step that also writes has no MFU that one could state
    flag, advice = (
        "--mfu",
        "name your software (--software), give your own speed (--mfu, --step-time), or run gpucost calibrate",
    )
    if (payload.get("request") or {}).get("method") == "grpo":
        flag, advice = "--software", "name your software (--software), or run gpucost calibrate"
    causes = [
        (
            "speed",
            *_bought(option, speed / factors["tokens_per_s_per_gpu_high"], speed / factors["tokens_per_s_per_gpu_low"]),
            flag,
            advice,
        ),
        _price_cause(option),
        (
            "interruptions",
            *_bought(option, factors["stretch_low_ratio"] / stretch, factors["stretch_high_ratio"] / stretch),
            "--option",
            "choose an option without interruptions, or an offer with a measured rate",
        ),
    ]
    start = _bought(option, *RAMP_ENDS, of_start=True)
    if start[1] > 1 + _WORTH_SAYING:  # a long run hardly notices its start
        causes.append(("start-up", *start, "--gpus", "use fewer accelerators, which wait during start-up"))
    # an overhead that was given has no range; only the assumed one does
    overhead = {row["name"]: row for row in payload.get("assumptions") or ()}.get("evaluation_fraction")
    if overhead and overhead["value"] == factors["evaluation_fraction"] and overhead["low"] is not None:
        ends = [(1 + overhead[end]) / (1 + factors["evaluation_fraction"]) for end in ("low", "high")]
        causes.append((OVERHEAD, *_bought(option, *ends), "--overhead", "give your own share (--overhead)"))
    return _widest_first(cost, hours, causes)


def serving_causes(option: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what each cause alone would make of the cost of a month of serving; the widest first."""
    factors, cost = option["factors"], option["usd_per_month"]
    price = _price_cause(option)
    how = (
        "name the engine (--engine), give your own speed (--own-tpot, --own-output-tokens-per-s),"
        " or run gpucost calibrate"
    )
    # the ends of the cost hold both speed and price; what the price makes of it is divided out
    causes = [("speed", factors["low_ratio"] / price[1], factors["high_ratio"] / price[2], "--own-tpot", how), price]
    if option["utilisation_fraction"] < 1:
        causes.append(
            (IDLE, option["utilisation_fraction"], 1.0, "--utilisation", "give --utilisation, or use --autoscale")
        )
    if OPTIONS[option["option"]].interruptible and not factors["spare_gpu_hours"] and factors["replicas"]:
        causes.append(
            (
                LOST,
                1.0,
                1 + 1 / factors["replicas"],
                "--redundancy",
                "choose an option without interruptions, or give --redundancy",
            )
        )
    return _widest_first(cost, cost, causes)


def range_text(rows: Sequence[Mapping[str, Any]], title: str = "Range") -> str:
    """Say in a sentence what each cause alone makes of a cost, and which argument narrows it."""
    # causes that one argument narrows stand together; what no range holds stands behind them
    by_flag: dict[str, list[str]] = {}
    outside = []
    for row in rows:
        ends = "–".join(dict.fromkeys(format_value(row[end], "USD") for end in ("low_usd", "high_usd")))
        if row["share"] in _BEYOND:
            outside.append(f"{_BEYOND[row['share']]} {ends} ({row['flag']})")
        elif "–" in ends and row["high_usd"] > row["low_usd"] * (1 + _LEAST_SAID):
            by_flag.setdefault(row["flag"], []).append(f"{row['share']} {ends}")
    parts_text = ", ".join(f"{' and '.join(parts)} ({flag})" for flag, parts in by_flag.items())
    return f"{title}: {parts_text or 'none'}{'; not in the range: ' if outside else ''}{', '.join(outside)}."


def widest_cause(rows: Sequence[Mapping[str, Any]]) -> str:
    """Name what makes most of a range, and the option that narrows it; nothing where the range is narrow."""
    within = [
        row for row in rows if row["share"] not in _BEYOND and row["high_usd"] > row["low_usd"] * (1 + _LEAST_SAID)
    ]
    return f", mostly by {within[0]['share']} ({within[0]['flag']})" if within else ""


Cause = tuple[str, float, float, str, str]  # cause, both ends ÷ the point, the flag that narrows it, and how


def _widest_first(cost: float, varying_usd: float, causes: Sequence[Cause]) -> list[dict[str, Any]]:
    """Return the causes as rows: `varying_usd` is the part of the cost that they act on."""
    rows = [
        {
            "share": name,
            "low_usd": cost + varying_usd * (low - 1),
            "high_usd": cost + varying_usd * (high - 1),
            "flag": flag,
            "narrower": how,
        }
        for name, low, high, flag, how in causes
    ]
    return sorted(rows, key=lambda row: row["low_usd"] - row["high_usd"])


def _bought(option: Mapping[str, Any], low: float, high: float, *, of_start: bool = False) -> tuple[float, float]:
    """Return the hours that are bought, as the bill rounds them, of a run that is as much shorter and longer.

    What follows the start is, or the start alone.
    """
    import numpy as np

    from gpucost.formula.arrays import Columns, evaluate_columns
    from gpucost.money.training_bill import CONSTANTS, LINES, PURCHASE

    # three runs at once: as estimated, shorter and longer
    factors = Columns(
        {name: np.full(3, np.nan if value is None else value) for name, value in option["factors"].items()}
    )
    paid = evaluate_columns(LINES, factors, CONSTANTS, ("paid_hours",)).paid_hours
    start, ends = factors["ramp_hours"], np.array([1.0, low, high])
    factors["paid_hours"] = start * ends + (paid - start) if of_start else start + (paid - start) * ends
    bill = evaluate_columns(PURCHASE, factors, CONSTANTS, ("rounded_hours", "owed", "bound"))
    if bill.bound[0]:
        # a contract that is owed in full costs the same however long the run is; else its share of the term counts
        if bill.owed[0]:
            return 1.0, 1.0
        return float(factors.paid_hours[1] / paid[0]), float(factors.paid_hours[2] / paid[0])
    shorter, longer = bill.rounded_hours[1:] / bill.rounded_hours[0]
    return float(shorter), float(longer)


def _price_cause(option: Mapping[str, Any]) -> Cause:
    """Return what the price may do: a spot price moves from day to day, a list price ages."""
    low, high = option["factors"]["price_low_ratio"], option["factors"]["price_high_ratio"]
    if OPTIONS[option["option"]].family == "preemptible":
        how = "choose on demand or a commitment, or a fresher price"
        return "spot price", low, high, "--option", how
    return "price age", low, high, "--strict-prices", "get a fresh quote, or use --strict-prices"


# --- Offers with their notes, the bill, and what the figures leave out.

_BARS = 15
_FAR = 4  # times the most of what one can order: quotes beyond would press all others together
_RANKS = 4  # offers that a note names one by one
_NOTES = 5  # different notes below a table; the others stand in JSON


def offers_table(
    headings: tuple[Column, ...],
    options: Sequence[TrainingOption | ServingOption],
    excluded: Sequence[Row],
) -> list[Table]:
    """Return the offers; below them each note once, with the ranks that it belongs to, and how many were left out."""
    ranks: dict[str, list[str]] = {}
    old = [row for row in options if any(_OLD.match(note) for note in row["notes"])]
    for row in options:
        for note in row["notes"]:
            if not _OLD.match(note):
                ranks.setdefault(note, []).append(str(row["rank"]))
    lines = []
    if old:  # all old prices at once: how old they are and what follows
        ages = sorted({row["age_days"] for row in old})
        days = f"{ages[0]} to {ages[-1]}" if len(ages) > 1 else f"{ages[0]}"
        singular, plural = ("its price was", "its range is"), ("their prices were", "their ranges are")
        prices, spans = plural if len(old) > 1 else singular
        lines.append(
            f"{_rank_list([str(row['rank']) for row in old])}: {prices} seen {days} days ago, longer than a price of"
            f" that kind usually holds, so {spans} wider."
        )
    lines += [f"{_rank_list(note_ranks)}: {note}." for note, note_ranks in list(ranks.items())[: _NOTES - len(lines)]]
    if (more := len(ranks) + bool(old) - _NOTES) > 0:
        lines.append(f"{counted(more, 'more note')} in the JSON output.")
    if excluded:
        lines.append(f"{counted(len(excluded), 'offer')} left out; reports and the JSON output give each reason.")
    return [Table(headings, options, note="\n".join(lines), interactive=True)]


def offer_bars(
    options: Sequence[TrainingOption | ServingOption],
    names: Sequence[str],
    keys: Sequence[str],
    title: str,
    described: str,
) -> list[Block]:
    """Return the offers as bars of their cost with its range.

    `keys` are what a bar knows, the cost and the ends of its range first; {} in the description is the cheapest.
    """
    cost, low, high, *_ = keys
    rows: Sequence[Row] = options
    bars = [
        {"offer": name, **{key: value for key, value in row.items() if key in keys}}
        for name, row in zip(names, rows, strict=True)
    ]
    cheapest = f"The cheapest is {names[0]}, {format_named(cost, rows[0][cost])}."
    return [
        Chart("bar", title, described.format(cheapest), bars[:_BARS], Axis("offer"), Axis(cost), low=low, high=high)
    ]


_OLD = re.compile(r"price is \d+ days old")  # how the note of an old price begins (`gpucost.market.terms`)


def _rank_list(ranks: Sequence[str]) -> str:
    """Name offers by their ranks.

    >>> _rank_list(["2"]), _rank_list(["1", "3"]), _rank_list(["1", "3", "4", "6", "7"])
    ('Offer 2', 'Offers 1 and 3', 'Offers 1, 3, 4 and 2 more')
    """
    if len(ranks) == 1:
        return f"Offer {ranks[0]}"
    last = ranks[-1] if len(ranks) <= _RANKS else f"{len(ranks) - _RANKS + 1} more"
    return f"Offers {', '.join(ranks[: min(len(ranks), _RANKS) - 1])} and {last}"


def excluded_table(rows: Sequence[Row]) -> list[Table]:
    """Return what is not possible with the reason, or nothing; paper counts it only."""
    paper = f"{counted(len(rows), 'offer')} left out; the page on screen gives each reason."
    return [Table(columns_of("excluded"), rows, interactive=True, paper=paper)] if rows else []


def bill_table(lines: Sequence[BillLine], total_usd: float, title: str = "") -> Table:
    """Return a bill with its total."""
    total: Row = {"name": "total", "cost_usd": total_usd}
    return Table(columns_of("bill"), lines, title, total=total)


def not_included(items: Sequence[str]) -> list[Block]:
    """Say what the figures do not include."""
    return [Paragraph(f"Not included: {'; '.join(item.rstrip('.') for item in items)}.")] if items else []
