"""The document of owning against renting: verdict, break-even, cash, its pictures and its explanation."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.answers.ownership import CashMonth, CostLine, Tco, interruptible, leading, promised
from gpucost.money.statements import ROWS
from gpucost.render import evidence
from gpucost.render.decision import TITLE, decision_of
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
    Slider,
    Table,
    amount,
    columns,
    columns_of,
    day_text,
    document_of,
    facts_of,
    format_named,
    format_value,
    heading_of,
    in_words,
    present_figures,
    table_of,
)
from gpucost.render.wording import chip_label
from gpucost.units import HOURS_PER_MONTH, about, counted, percent, spanned, unit_of

# --- Charts.

# lines that are one thing to a reader: what servers cost is net of what they are sold for, a loan net of its payments
_JOINED = (
    ("servers, less their resale", ("own_servers_usd", "own_resale_usd", "own_trade_in_usd", "own_refresh_usd")),
    ("what financing moves", ("own_loan_", "own_lease_", "own_financing_")),
)
_DRAWN = 6  # lines of the breakdown that have their own colour
_NOTHING_USD = 0.005
_LEAST_SHARE = 0.008  # of a side, below which the first screen leaves a line out
_ENERGY = "own_energy_usd"
_BRIEF = 8  # inputs of the short sensitivity
_TOTALS = ("month", "on", "own_total_usd", "rent_total_usd")  # what stands first in a month


def tornado(answer: Tco) -> list[Block]:
    """Draw the inputs that move the answer most, and say which of them flip the decision alone."""
    rows = answer["sensitivity"]
    if not rows:
        return []
    bars = [{**row, "name": heading_of(row["name"])} for row in rows[:_BRIEF]]
    description = (
        f"Present value of what owning saves, with one input at its low and high end; {bars[0]['name']} matters most."
    )
    saving = Axis("saving_at_low_usd", "saving of owning, present value", "USD")
    low, high, base = "saving_at_low_usd", "saving_at_high_usd", answer["npv_usd"]["saving"]
    # where a third option leads, these inputs move the saving of owning, but not what to do
    sides = {row["name"] for row in leading(answer["options"])} == {"own", "rent"}
    title = "What changes the answer" if sides else "What changes the saving of owning against renting"
    # an input may flip the decision outside the range that was moved: only those within are named
    flips = [f"{heading_of(row['name'])} at {amount(row['flip_value'], row['unit'])}" for row in rows if row["flips"]]
    flip_note = (
        [Paragraph(f"Any one of these, within its range, flips the decision: {'; '.join(flips)}.")] if flips else []
    )
    return [
        Chart("tornado", title, description, bars, Axis("name"), saving, low=low, high=high, base=base),
        *flip_note,
    ]


def breakdown(rows: Sequence[CostLine]) -> list[Block]:
    """Draw and list the lines of both sides."""
    parts = _largest(rows)
    description = "Present value of what each side pays, by line; the bars add up to the present values above."
    title = "Cost breakdown of owning and renting"
    picture = Chart("stacked", title, description, parts, Axis("side"), Axis("npv_usd"), series="line")
    return [
        *([picture] if parts else []),
        *table_of("", _with_words(rows), *columns_of("tco lines"), interactive=bool(parts)),
    ]


def _largest(rows: Sequence[CostLine]) -> list[Row]:
    """Return the lines that a picture can tell apart; the others become one, so that all of it adds up."""
    lines = [row for row in rows if not any(row["name"].startswith(names) for _, names in _JOINED)]
    for label, names in _JOINED:
        if members := [row for row in rows if row["name"].startswith(names)]:
            net = sum(row["npv_usd"] for row in members)
            lines.append({**members[0], "name": label, "description": label, "npv_usd": net})
    costs = [row for row in lines if abs(row["npv_usd"]) > _NOTHING_USD]
    drawn = {row["name"] for row in sorted(costs, key=lambda row: -abs(row["npv_usd"]))[:_DRAWN]}
    parts: list[Row] = [
        {"side": row["side"], "line": row["description"], "npv_usd": row["npv_usd"]}
        for row in costs
        if row["name"] in drawn
    ]
    for side in dict.fromkeys(row["side"] for row in costs):
        remainder_usd = sum(row["npv_usd"] for row in costs if row["side"] == side and row["name"] not in drawn)
        parts += [{"side": side, "line": "other", "npv_usd": remainder_usd}] if remainder_usd else []
    return parts


def cash_so_far(rows: Sequence[CashMonth]) -> list[Block]:
    """Draw what each side has paid since the start, and list every month."""
    lines, own_usd, rent_usd = [], 0.0, 0.0
    # from month 0 on, in which the purchase is paid
    for row in rows:
        own_usd, rent_usd = own_usd + row["own_total_usd"], rent_usd + row["rent_total_usd"]
        lines += [
            {"month": row["month"], "side": "own", "paid_usd": own_usd},
            {"month": row["month"], "side": "rent", "paid_usd": rent_usd},
        ]
    description = (
        "Cash paid since the start: owning starts with the purchase and ends with the resale; renting grows month by "
        "month."
    )
    chart = Chart("line", "Cash paid so far", description, lines, Axis("month"), Axis("paid_usd"), series="side")
    # the totals lead, lines follow in the order of the answer
    keys = dict.fromkeys((*_TOTALS, *(key for row in rows for key in row)))
    return [chart, *table_of("", rows, *keys)]


# --- The answer.

_HOUR = "USD per GPU-hour"
_SIDES = {"own": "owning", "rent": "renting"}
_OPTIONS = ("name", "option")
_HIDDEN = ("source_id", "offer_id", "legs", "rival")
_RIVALRY = (
    "Each option against the cheapest of the others. The break-even price is the rental price of the two; spot is not a"
    " rival."
)
_LIVES = (
    "Used, depreciated and sold after so many years. Impairment: the most by which book value exceeds resale value at a"
    " year's end, at the middle and at the low end of resale."
)
_STATUS = "Status: given (by you), sourced, assumed (no source), or derived from other inputs."


def document(answer: Tco) -> Document:
    """Build the document of a rent-or-buy answer."""
    request = answer["request"]
    values = {row["name"]: row["value"] for row in answer["assumptions"]}
    # the request may leave both to the defaults
    gpus, gpu = request.get("gpus") or int(float(values["gpus"] or 0)), request.get("gpu") or "GPUs"
    # what owning saves over two inputs; the largest of the upright one on top, as on a map
    grid = answer["two_way"]
    x, y = grid["x"], grid["y"]
    cells = [
        {x: format_value(across, unit_of(x)), y: format_value(up, unit_of(y)), "saving_usd": saving}
        for up, row in reversed(list(zip(grid["y_values"], grid["saving_usd"], strict=True)))
        for across, saving in zip(grid["x_values"], row, strict=True)
    ]
    description = f"Present value of what owning saves, by {heading_of(x)} and {heading_of(y)}; above zero buying wins."
    two_inputs = Chart("heat", "What owning saves", description, cells, Axis(x), Axis(y), value="saving_usd")
    # what a board asks, with the answers; answers of older formulas have none
    decision = decision_of(answer)
    board = tuple(Fact(question, text) for question, text in decision.answers.items()) if decision else ()
    money = answer["currency"]
    foreign_years: Sequence[Row] = [] if money is None else money.get("by_year") or []
    foreign = _across(f"In {money['currency']}", foreign_years, "") if money is not None and foreign_years else []
    last = answer["cash_flows"][-1]
    span = f"{spanned(last['month'])} to {day_text(last['on'])}"
    descriptions = {row["name"]: row["description"] for row in answer["assumptions"]}
    rows = _with_words([{**row, "description": descriptions.get(row["name"], "")} for row in answer["sensitivity"]])
    sensitivity = table_of("", rows, *columns_of("tco moved"), interactive=True)
    assumptions = table_of(
        "", _with_words(answer["assumptions"]), *columns_of("tco assumed"), note=_STATUS, interactive=True
    )
    # where both sides cost the same, or why nowhere, and both by utilisation
    point: Row = answer["breakeven"]
    breakeven = tuple(
        Fact(
            heading_of(key),
            "none" if value is None else value,
            unit_of(key) if value is not None else "",
            note=point.get(f"{key}_reason", ""),
        )
        for key, value in point.items()
        if not key.endswith("_reason")
    )
    chart = _breakeven_chart(answer)
    # an option is known by its name or its kind; a narrow terminal hides what stands further right, three at a time
    options = _with_words(answer["options"])
    keys = list(dict.fromkeys(key for row in options for key in row))
    first = [key for key in _OPTIONS if key in keys]
    details = [key for key in keys if key not in (*first, *_HIDDEN)]
    detail_columns = (Column(key, priority=1 + index // 3) for index, key in enumerate(details))
    # each option against the cheapest of the others
    rivals = [
        {"option": row["name"], **row["rival"], "name": in_words("name", row["rival"]["name"])}
        for row in options
        if "rival" in row
    ]
    rival_columns = [column for column in columns_of("tco rivals") if rivals and column.key in rivals[0]]
    # which lines stand in which statement is a table of gpucost/money, the same for the workbook
    by_fiscal_year: list[Block] = []
    if statements := answer.get("statements"):
        lines_by_statement: dict[str, dict[str, str]] = {}
        for line in ROWS:
            lines_by_statement.setdefault(line.block, {})[line.name] = line.description
        for statement, lines in lines_by_statement.items():
            by_fiscal_year += _across(statement, statements["years"], "USD", lines)
        standard = "IFRS" if statements["lease_standard"] == "ifrs" else "US GAAP"
        note = f"Fiscal years end in month {statements['fiscal_year_end_month']}; operating leases as in {standard}."
        by_fiscal_year.append(Paragraph(note, "note"))
    return document_of(
        answer,
        f"Rent or buy {gpus} × {gpu}",
        Section(TITLE, [KeyFigures(board, style="answers")] if board else []),
        Section("The answer", _answer(answer)),
        Section(
            "Options compared",
            [
                *table_of("", options, *first, *detail_columns, interactive=True),
                *table_of("Each option against its closest rival", rivals, *rival_columns, note=_RIVALRY),
            ],
        ),
        Section("Break-even", [KeyFigures(breakeven), *([chart] if chart else [])]),
        Section("Lender's view", _lender(answer)),
        Section("What changes the answer most", tornado(answer), paper=True),
        Section(
            "Each input at its low and high end",
            sensitivity,
            detail=True,
        ),
        Section("Utilisation against rental price", [two_inputs], detail=True),
        Section("Where the money goes", [*_pays(answer), *breakdown(answer["lines"])]),
        Section("Cash by year", [*_across("", answer["by_year"], "USD"), *foreign]),
        Section("Statements by fiscal year", by_fiscal_year, detail=True),
        Section("Cash by month", cash_so_far(answer["cash_flows"]), detail=True),
        Section("Scenarios", table_of("", _with_words(answer["scenarios"]), *columns_of("tco scenarios")), detail=True),
        Section("More figures", _more(answer), detail=True),
        evidence.section(answer),
        Section("Assumptions", assumptions, detail=True),
        headline=answer.get("headline", ""),
        screen=(
            Table(_SHOWN, _ways(answer)),
            KeyFigures(tuple(fact for fact in _facts(answer) if fact.value)),
            Paragraph("All ways and years: --details · workbook: -o FILE.xlsx · also --rent, --plan."),
        ),
        name=f"Rent or buy {gpus:,} × {chip_label(str(gpu))}, {span}",
    )


_SHOWN = (
    Column("side", heading=" "),
    *(Column(name, right=True) for name in ("cost", "low", "high")),
    Column("hour", "per hour", right=True),
    Column("seller", "price"),
)


def _ways(answer: Tco) -> list[Row]:
    """Return the cells of owning, of the ways to rent, and of contracts that were signed."""
    # The two sides as asked, the two cheapest ways, and spot. What may be taken away stands last, whatever it costs.
    simulation: Row = answer["monte_carlo"] or {}
    best, runner_up = leading(answer["options"])
    ways = {row["name"]: row for row in answer["options"] if row["name"] != "own_in_cash"}
    shown = ("own", best["name"], runner_up["name"], "rent", "spot")
    steady: list[Row] = []
    fragile: list[Row] = []
    for name in dict.fromkeys(shown):
        if name not in ways:
            continue
        row: Row = ways[name]
        # at which price it is bought, and from whom
        if name == "own":
            priced, server_usd = _server(answer)
            seller = f"{about(server_usd)} {_PRICE_OF[priced]}" if server_usd else ""
        else:
            price = row.get("usd_per_gpu_hour")
            parts = [f"${price:.2f}" if price else "", row.get("seller") or row.get("provider") or ""]
            seller = ", ".join(filter(None, parts))
        low, high, usd = (
            simulation.get(f"{name}_p10_usd"),
            simulation.get(f"{name}_p90_usd"),
            row["levelised_usd_per_gpu_hour"],
        )
        cells = {
            "side": {"own": "buy", "rent": "rent"}.get(name) or in_words("name", name),  # as a buyer calls it
            "cost": about(row["npv_usd"]),
            "low": None if low is None else about(low),
            "high": None if high is None else about(high),
            "hour": None if usd is None else f"${format_value(usd, _HOUR)}",
            "seller": seller,
        }
        (fragile if interruptible(row) else steady).append(cells)
    # what renting costs on contracts as others signed them, of which only present value and price are known
    signed: list[Row] = [
        {
            **dict.fromkeys(("low", "high", "hour"), ""),
            "side": scenario["name"].replace("of ", "", 1),
            "cost": about(scenario["npv_rent_usd"]),
            "seller": f"${scenario['changes']['rent_usd_per_gpu_hour']:.2f}, index",
        }
        for scenario in answer["scenarios"]
        if scenario["name"].startswith("contract of ")
    ]
    return [*steady, *signed, *fragile]


def _server(answer: Tco) -> tuple[str, float]:
    """Return the input that prices a server, and its value."""
    values = {row["name"]: row["value"] for row in answer["assumptions"]}
    priced = _PRICED.get(str(values["server_price_basis"]), "server_usd")
    return priced, _number(values.get(priced))


def _facts(answer: Tco) -> list[Fact]:
    """Return the facts of one screen, each with a shorter text where there is less room."""
    stated = {fact["label"]: fact["text"] for fact in answer.get("stated") or ()}
    # where both sides cost the same: at no use, or at no price, where one of them wins in any case
    point: Row = answer["breakeven"]
    use, usd = point["utilisation_fraction"], point["usd_per_gpu_hour"]
    even = [*([] if use is None else [f"{use:.0%} utilisation"]), *([f"${usd:.2f} per rented GPU-hour"] if usd else [])]
    decision = decision_of(answer)
    # power and its cooling are what engineers ask first, and no other line of the screen has them
    energy = [row for row in _apart(answer) if row["name"] == _ENERGY]
    power = ", ".join(f"{part['description']} {about(part['npv_usd'])}" for part in energy)
    # when the offer that is compared was last seen
    offer = next((row for row in leading(answer["options"]) if row.get("price_observed_on")), None)
    check = ""
    if offer is not None and "Check" in stated:
        seller = offer.get("seller") or offer["provider"]
        check = f"{seller} last showed this price on {day_text(offer['price_observed_on'])}: check it."
    # within what the rental price moves in a year, where its direction is open: its note has it in these words
    outlook = next(row for row in answer["assumptions"] if row["name"] == "rent_outlook_ratio")
    moved = outlook["note"].partition("after 12 months ")[2].partition(",")[0] if outlook["counts"] else ""
    money = answer["currency"]
    return [
        Fact("Answer", stated.get("Answer") or answer["lead"]),
        Fact("Check", stated.get("Check", ""), shorter=check),
        Fact("Sure", stated.get("Sure", "")),
        *([Fact(label, full, shorter=short) for label, full, short in decision.brief] if decision else []),
        Fact("Turns", stated.get("Turns", ""), shorter=f"Buying wins above {' or '.join(even)}." if even else ""),
        Fact(
            "Outlook",
            stated.get("Outlook", ""),
            shorter=f"Rent may move {moved} in a year: its direction is open." if moved else "",
        ),
        Fact("Power", f"Of what buying costs {power}." if power else "", shorter=""),
        *([Fact(f"In {money['currency']}", _in_short(answer), shorter=_in_short(answer, False))] if money else []),
        Fact("Assumes", _premises(answer, False), shorter=_premises(answer, True)),
    ]


def _premises(answer: Tco, brief: bool) -> str:
    """Say what is taken as given, each with the option that changes it; prices stand above."""
    values = {row["name"]: row["value"] for row in answer["assumptions"]}
    use, wacc = (percent(_number(values[name])) for name in ("utilisation_fraction", "wacc_fraction"))
    paid = _PAID[str(values["financing"])]
    if brief:
        return f"{use} used (--utilisation), {wacc} a year (--wacc), {paid} (--financing)."
    return (
        f"{use} of hours used (--utilisation), capital at {wacc} a year (--wacc), {paid} (--financing), prices as above"
        f" (--rent, --set {_server(answer)[0]})."
    )


def _number(value: Any) -> float:
    """Return an input as a number; one that nobody gave counts nothing."""
    return float(value or 0)


# basis of the price of servers -> the input that holds it -> what it is the price of
_PRICED = {"quote": "server_usd", "gpu_share": "gpu_usd", "all_in": "all_in_usd_per_gpu"}
_PRICE_OF = {"server_usd": "a server", "gpu_usd": "a GPU", "all_in_usd_per_gpu": "a GPU, all in"}
_PAID = {"cash": "cash", "loan": "a loan", "lease": "a lease", "operating_lease": "an operating lease"}


def _pays(answer: Tco) -> list[Block]:
    """Say what each side pays most for, in USD and per cent, and what owning pays for power and for cooling."""
    sentences: list[str] = []
    energy_parts = [row for row in _apart(answer) if row["name"] == _ENERGY]
    for side, name in _SIDES.items():
        # shares are of the net: what resale brings back counts against it, so that they may add up above 100 %
        whole = answer["npv_usd"][side]  # type: ignore[literal-required]
        lines = sorted((row for row in answer["lines"] if row["side"] == side), key=lambda row: -abs(row["npv_usd"]))
        items = []
        for row in lines:
            share = row["npv_usd"] / whole if whole else 0.0
            # small lines are only counted, but everybody looks for energy
            if abs(share) <= (0 if row["name"] == _ENERGY else _LEAST_SHARE):
                continue
            text = f"{row['description']} {row['npv_usd']:,.0f}"
            if row["name"] == _ENERGY and len(energy_parts) > 1:
                parts = ", ".join(f"{part['description']} {part['npv_usd']:,.0f}" for part in energy_parts)
                text = f"{parts}, in all {row['npv_usd']:,.0f}"
            items.append(f"{text} ({share:.0%})")
        left = sum(abs(row["npv_usd"]) > _NOTHING_USD for row in lines) - len(items)
        if items:
            unit = "" if sentences else " (USD today)"
            more = f", {left} more" if left > 0 else ""
            sentences.append(f"{name.capitalize()} pays{unit}: {', '.join(items)}{more}.")
    return [Paragraph(" ".join(sentences))] if sentences else []


def _apart(answer: Tco) -> list[CostLine]:
    """Return the lines of owning with energy in two: what the equipment draws, and what cooling and losses add."""
    # PUE is what a site draws ÷ what the equipment draws: the equipment's part of the bill is 1 ÷ PUE
    pue = next((float(row["value"] or 0) for row in answer["assumptions"] if row["name"] == "pue_ratio"), 1.0)
    lines: list[CostLine] = []
    for row in answer["lines"]:
        if row["side"] != "own":
            continue
        if row["name"] != _ENERGY or pue <= 1:
            lines.append(row)
            continue
        for name, share in (("power", 1 / pue), (f"cooling and losses (PUE {pue:g})", 1 - 1 / pue)):
            total, present = row["total_usd"] * share, row["npv_usd"] * share
            lines.append({**row, "total_usd": total, "npv_usd": present, "description": name})
    return lines


def _with_words(rows: Sequence[Row]) -> list[Row]:
    """Return rows whose names, and values that are codes, are words."""
    return [{**row, **{key: in_words("name", row[key]) for key in ("name", "value") if key in row}} for row in rows]


def _option_name(row: Row) -> str:
    """Name an option in the middle of a sentence."""
    return _SIDES.get(row["name"]) or str(row["name"]).replace("_", " ")


def _answer(answer: Tco) -> list[Block]:
    """Return the present values with their ranges, who wins, and what each hour costs."""
    npv = answer["npv_usd"]
    simulation: Row | None = answer["monte_carlo"]
    ends = {
        side: (simulation.get(f"{side}_p10_usd"), simulation.get(f"{side}_p90_usd"))
        for side in ("own", "rent", "saving")
        if simulation is not None
    }
    # what the cheapest option saves against the next, where they are not the two sides
    saving_of_best: list[Fact] = []
    best, runner_up = leading(answer["options"])
    if not {best["name"], runner_up["name"]} <= _SIDES.keys():
        rival: Row = best.get("rival", {})
        label = f"{_option_name(best)} saves against {_option_name(runner_up)}"
        if best["name"] in _SIDES:  # other options are written as they are typed
            label = label[0].upper() + label[1:]
        saving_usd = runner_up["npv_usd"] - best["npv_usd"]
        saving_of_best.append(Fact(label, saving_usd, "USD", rival.get("saving_p10_usd"), rival.get("saving_p90_usd")))
    # the purchase in cash, what financing adds to what it saves, and the return on the equity
    paid: list[Fact] = []
    if financing := answer.get("financing"):
        rate = format_named("debt_rate_fraction", financing["debt_rate_fraction"])
        note = f"at {rate} a year, the cost of debt after tax"
        paid = [
            Fact("Owning, paid in cash", financing["own_in_cash_usd"], "USD"),
            Fact("Owning saves, paid in cash", financing["saving_in_cash_usd"], "USD"),
            Fact(f"The {financing['kind']} adds", financing["adds_usd"], "USD", note=note),
            Fact("IRR of the equity, after financing", financing["equity_irr_fraction"], "fraction of one"),
        ]
    # the present values in the currency asked for, with the rate behind them
    foreign: list[Fact] = []
    if money := answer["currency"]:
        stated = money["usd_per_unit_on"]
        dated = "a rate without a date" if stated == "not stated" else f"rate of {stated}"
        notes = {
            "owning": f"{money['usd_per_unit']:g} USD each, {dated}; {money['forward']}",
            "renting": _discounted(money) and f"{_discounted(money)}, {money.get('discounting')}",
        }
        foreign = [
            Fact(f"{side.capitalize()}, in {money['currency']}", text, note=notes.get(side, ""))
            for side, text in _in_currency(money).items()
        ]
    facts = (
        *paid,
        Fact("Owning, present value", npv["own"], "USD", *ends.get("own", ())),
        Fact("Renting, present value", npv["rent"], "USD", *ends.get("rent", ())),
        *saving_of_best,
        Fact("Owning saves against renting", npv["saving"], "USD", *ends.get("saving", ())),
        Fact("Probability that owning beats renting", answer["probability_buy_wins_fraction"], "fraction of one"),
        Fact("Owning, per allocated GPU-hour", answer["levelised_usd_per_gpu_hour"], _HOUR),
        Fact("Renting, per allocated GPU-hour", answer["levelised_rent_usd_per_gpu_hour"], _HOUR),
        Fact(
            f"IRR of buying{', paid in cash' if answer.get('financing') else ''}",
            answer["irr_fraction"],
            "fraction of one",
        ),
        Fact("Payback", answer["payback_months"], "months"),
        *foreign,
    )
    range_note: list[Block] = []
    if simulation is not None:
        range_note.append(Paragraph("Ranges hold 80 % of the draws: from the 10th to the 90th percentile.", "note"))
    # a comparison is only fair where both sides pay for the same things: what one of them lacks is said
    unequal_items = [row["item"] for row in answer["scope"] if row["unequal"]]
    return [
        *present_figures(facts),
        *range_note,
        Paragraph(answer["conventions"], "note"),
        *([Paragraph(f"Only one side pays for: {', '.join(unequal_items)}.")] if unequal_items else []),
    ]


def _in_currency(money: Row) -> dict[str, str]:
    """Return what owning costs, what renting costs and what owning saves, in the currency asked for."""
    own_npv, rent_npv, code = money["npv_own"], money["npv_rent"], money["currency"]
    amounts = {"owning": own_npv, "renting": rent_npv, "owning saves": rent_npv - own_npv}
    return {side: f"{amount:,.0f} {code}" for side, amount in amounts.items()}


def _discounted(money: Row) -> str:
    """Say at which rate amounts of the currency are discounted; older answers do not say it."""
    wacc = money.get("wacc_fraction")
    return "" if wacc is None else f"discounted at {wacc:.2%} a year"


def _in_short(answer: Tco, discounted: bool = True) -> str:
    """Say the present values in the currency asked for in one sentence."""
    money = answer["currency"]
    if money is None:
        return ""
    rate = f"at {money['usd_per_unit']:g} USD ({money['usd_per_unit_on']})"
    # both sides, without the saving that follows from them: one line of a screen
    sides = [f"{side} {text}" for side, text in _in_currency(money).items() if side in _SIDES.values()]
    sentence = ", ".join(filter(None, (*sides, rate, _discounted(money) if discounted else "")))
    return f"{sentence[0].upper()}{sentence[1:]}."


def _across(title: str, rows: Sequence[Row], unit: str, labels: Mapping[str, str] | None = None) -> list[Table]:
    """Turn a table of years around: a line a row, a year a column; given words, only the lines that they name."""
    # a narrow terminal hides the later years first, three at a time
    years = [
        Column(f"year_{number}", str(row["period"] if "period" in row else f"year {row['year']}"), unit, number // 3)
        for number, row in enumerate(rows)
    ]
    lines = []
    for key in labels or [key for key in rows[0] if key != "year"]:
        values = [row[key] for row in rows]
        if any(values) or not labels:  # statements have many lines that most companies leave empty
            label = (labels or {}).get(key) or heading_of(key)
            lines.append({"line": label, **{year.key: value for year, value in zip(years, values, strict=True)}})
    return [Table((*columns("line"), *years), lines, title)]


def _lender(answer: Tco) -> list[Block]:
    """Return coverage and debt to value by year, the covenants, and both under worse news."""
    lent = answer.get("lender")
    if not lent:
        return []
    repaid = "payments that follow the cash available" if lent["repayment"] == "sculpted" else "level payments"
    terms = (
        f"{lent['lent_of_purchase_fraction']:.0%} of the purchase at {lent['rate_fraction']:.2%} a year,"
        f" {counted(lent['term_months'], 'month')} of {repaid}"
    )
    facts = (
        Fact(f"The {lent['financing']}", lent["lent_usd"], "USD", note=terms),
        Fact(
            "Lowest debt service coverage (DSCR)",
            lent["lowest_dscr_ratio"],
            "ratio",
            note=f"over twelve months, in month {lent['lowest_dscr_month']}",
        ),
        Fact("Coverage over the whole term (LLCR)", lent["llcr_ratio"], "ratio"),
        Fact(
            "Highest debt to resale value (LTV)",
            lent["highest_ltv_fraction"],
            "fraction of one",
            note=f"in month {lent['highest_ltv_month']}",
        ),
        Fact("Settled from resale at the end", lent["settled_by_sale_usd"], "USD"),
    )
    note = (
        f"What pays the debt: {lent['income']}, less running costs, replacements, and income tax before interest."
        " Coverage is tested each month over the last twelve."
    )
    covenants: list[Row] = []
    for row in lent["covenants"]:
        # the unit of a covenant's figures differs by row, so they are written here
        unit = "ratio" if row["name"] == "min_dscr_ratio" else "fraction of one"
        broken = f"broken from month {row['breached_month']} ({row['breached_on']})"
        covenants.append(
            {
                **row,
                "name": "DSCR at least" if row["name"] == "min_dscr_ratio" else "LTV at most",
                "limit": format_value(row["limit"], unit),
                "worst": format_value(row["worst"], unit),
                "verdict": "kept" if row["breached_month"] is None else broken,
            }
        )
    stated: Sequence[Block] = table_of("Covenants", covenants, *columns_of("tco covenants"))
    missing = Paragraph("No covenant is stated: give min_dscr_ratio or max_ltv_fraction in the plan.", "note")
    return [
        *present_figures(facts),
        *table_of("By year", lent["years"], *columns_of("tco lender"), note=note),
        *(stated or [missing]),
        *table_of("Under worse news, the debt as signed", lent["strains"], *columns_of("tco strains")),
    ]


def _breakeven_chart(answer: Tco) -> Chart | None:
    """Draw what a GPU costs a month against utilisation, by the formulas of the answer, with a slider for the rent."""
    # Cost is a straight line in the rental price: each row says how much more it costs for each dollar of rent, so the
    # slider needs no model, only a factor.
    rent = next((row["value"] for row in answer["assumptions"] if row["name"] == "rent_usd_per_gpu_hour"), None)
    if not isinstance(rent, (int, float)):
        return None
    crossing = answer["breakeven"]["utilisation_fraction"]
    description = f"Renting is drawn at {format_named('usd_per_gpu_hour', rent)}. "
    description += "The lines do not cross." if crossing is None else f"The lines cross at break-even, {crossing:.1%}."
    # what the chart says of where the lines cross at the slider's price
    crosses, at, full = _crossing(answer, rent)
    nowhere = f"({full} > 0 ? ' owning is cheaper at any use' : ' renting is cheaper at any use')"
    where_they_cross = f"' the lines cross at ' + format({at}, '.1%')"
    spoken = f"'At ' + {_RENT} + ' per GPU-hour' + ({crosses} ? {where_they_cross} : {nowhere})"
    return Chart(
        "line",
        "Owning against renting by utilisation",
        description,
        [dict(row) for row in answer["by_utilisation"]],
        Axis("utilisation_fraction", "allocated share of the owned hours"),
        Axis("usd_per_gpu_month", "cost of a GPU per month", "USD"),
        series="side",
        sliders=(_rent_slider(float(rent)),),
        formulas=dict.fromkeys(
            ("own", "rent"), f"datum.usd_per_gpu_month + (rent_price - {rent!r}) * datum.more_per_rent_usd"
        ),
        note="Present value of all lines per owned GPU-month, with tax and terms. Move the slider to change the rent.",
        spoken=spoken,
        lead=_lead(answer, rent),
    )


_RENT = "format(rent_price, '$,.2f')"  # as the sentences beside the slider say it


def _rent_slider(rent: float) -> Slider:
    """Return the control of the rent, in steps of three digits of its upper end, which is at least twice the rent."""
    # GPUs of data centres cost up to $8 an hour; a card below half a dollar would be lost on that scale
    high = float(f"{max(2 * rent, 8.0 if rent >= 0.5 or not rent else 0.0):.2g}")
    step = float(f"{10.0 ** (math.floor(math.log10(high)) - 2):.1g}")
    return Slider("rent_price", "Rent, $ per GPU-hour", min(0.2, float(f"{high / 20:.1g}")), high, step, rent)


def _gap(rows: Sequence[Row], rent: float) -> str:
    """Return what owning saves in a GPU-month, on two rows of one utilisation, at the slider's price."""
    owning, renting = ({row["side"]: row for row in rows}[side] for side in ("own", "rent"))
    gap_usd = renting["usd_per_gpu_month"] - owning["usd_per_gpu_month"]
    return f"({gap_usd!r} + (rent_price - {rent!r}) * {renting['more_per_rent_usd'] - owning['more_per_rent_usd']!r})"


def _crossing(answer: Tco, rent: float) -> tuple[str, str, str]:
    """Return whether the lines cross at the slider's price, where, and the gap at full use: all lines are straight."""
    # the first two rows are both sides at no use, the last two at full use; the gap is nothing at
    # gap(0) ÷ (gap(0) − gap(1)), and the lines cross in between where the gaps differ in sign
    rows = answer["by_utilisation"]
    idle, full = _gap(rows[:2], rent), _gap(rows[-2:], rent)
    return f"{idle} * {full} <= 0", f"{idle} / ({idle} - {full})", full


def _lead(answer: Tco, rent: float) -> str:
    """Say which side wins at the slider's price, and what beats both; nothing while the answer stands as delivered."""
    inputs: Row = {row["name"]: row["value"] for row in answer["assumptions"]}
    utilisation = inputs.get("utilisation_fraction")
    rows = [row for row in answer["by_utilisation"] if row["utilisation_fraction"] == utilisation]
    if len(rows) != 2:
        return ""
    # the chart draws a GPU-month; the answer is about so many of them
    month_usd = next(row["usd_per_gpu_month"] for row in rows if row["side"] == "own")
    if not month_usd:
        return ""
    gpu_months = answer["npv_usd"]["own"] / month_usd
    saving = f"({gpu_months!r} * {_gap(rows, rent)})"
    crosses, crossing, _ = _crossing(answer, rent)
    price = answer["breakeven"]["usd_per_gpu_hour"]
    above = f"above ${price:.2f} per rented GPU-hour." if price else ""
    size = f"{counted(inputs['gpus'], 'GPU')}, {percent(utilisation or 0)} allocated"
    scope = f"over {spanned(inputs['months'])} (present value, {size})."
    winner = f"{saving} > 0 ? 'buying' : 'renting'"
    difference_text = f"' costs ' + {_about(f'abs({saving})')} + ' less {scope}'"
    hours = f"' (' + format({crossing} * {inputs.get('hours_per_month') or HOURS_PER_MONTH!r}, ',.0f') + ' hours"
    used_more = f"' Buying wins above ' + format({crossing}, '.0%') + ' utilisation' + {hours} a month of each GPU)"
    used_more += f"{f', or {above}' if above else '.'}'"
    at_any = f"'{f' Buying wins {above}' if above else ''}'"
    # an option whose terms set a price of their own does not move with the slider, nor does a hosted API without terms
    fixed_price = [
        row
        for row in promised(answer["options"])
        if row["name"] not in _SIDES and all("rent_usd_per_gpu_hour" in leg["changes"] for leg in row.get("legs", ()))
    ]
    # where one of them costs less than both sides at the slider's price, the sentence ends with it
    cheaper = "''"
    if fixed_price:
        both = [
            f"{row['usd_per_gpu_month']!r} + (rent_price - {rent!r}) * {row['more_per_rent_usd']!r}" for row in rows
        ]
        least = f"{gpu_months!r} * min({', '.join(both)}) - {fixed_price[0]['npv_usd']!r}"
        fixed_text = json.dumps(f" {_option_name(fixed_price[0])}, whose price is fixed, costs ")
        cheaper = f"({least} > 0 ? {fixed_text} + {_about(least)} + ' less still.' : '')"
    moved = f"'At ' + {_RENT} + ' per rented GPU-hour ' + ({winner}) + {difference_text}"
    moved += f" + ({crosses} ? {used_more} : {at_any}) + {cheaper}"
    return f"rent_price === {rent!r} ? '' : {moved}"


def _about(usd: str) -> str:
    """Return what writes an amount as `about` does, from what computes it."""
    # three digits, and M from a million on; `~` drops zeros behind the point, as `about` does below a hundred
    return f"({usd} >= 1e6 ? format({usd} / 1e6, '$,.3r') + 'M' : format({usd}, '$,.3~r'))"


def _more(answer: Tco) -> list[Block]:
    """Return what few ask for: the draws, cash, levelised prices, useful life, tax, carbon, and the scope."""
    simulation, mtok = answer["monte_carlo"], "USD per million tokens"
    levels = (
        Fact("Owning, per owned GPU-hour", answer["levelised_usd_per_gpu_hour_owned"], _HOUR),
        Fact("Owning, per productive GPU-hour", answer["levelised_usd_per_gpu_hour_productive"], _HOUR),
        Fact("Owning, per million tokens", answer["levelised_usd_per_mtok"], mtok),
        Fact("Renting, per owned GPU-hour", answer["levelised_rent_usd_per_gpu_hour_owned"], _HOUR),
        Fact("Renting, per productive GPU-hour", answer["levelised_rent_usd_per_gpu_hour_productive"], _HOUR),
        Fact("Renting, per million tokens", answer["levelised_rent_usd_per_mtok"], mtok),
        Fact("Payback of discounted savings", answer["discounted_payback_months"], "months"),
    )
    return [
        *([] if simulation is None else [facts_of("Monte Carlo", simulation)]),
        facts_of("Peak cash", answer["peak_cash_usd"], "USD"),
        *present_figures(levels, "Levelised"),
        *table_of("Useful life and impairment", answer.get("lives") or (), *columns_of("tco lives"), note=_LIVES),
        facts_of("Tax", answer["tax"]),
        *table_of("Tax by year", answer["tax"]["by_year"]),
        facts_of("Carbon", answer["carbon"]),
        facts_of("Paid capacity", answer["sunk"]),
        Table(columns("item", "own", "rent", "unequal", "note"), answer["scope"], "Scope"),
    ]


# --- The explanation: conventions, inputs with their sources, every formula with its numbers.


def explanation_document(payload: Mapping[str, Any]) -> Document:
    """Build the explanation from the payload's model."""
    model = payload["model"]
    inputs = [
        {
            "name": entry["name"],
            "value": _figure_text(entry["value"]),
            "unit": entry["unit"],
            "status": entry["status"],
            "source": entry["source_id"] or entry["note"],
        }
        for entry in payload["assumptions"]
        if entry["counts"] and entry["value"] is not None
    ]
    # each monthly formula with its values at the start and in the first month, and of what is paid in total
    monthly = []
    for line in model["monthly"]:
        values = line["values"]
        sample = f"m=0: {_figure_text(values[0])}, m=1: {_figure_text(values[1])}"
        if line["name"].endswith("_usd"):
            sample += f", total: {_figure_text(sum(values))}"
        monthly.append(Paragraph(f"{line['name']} = {line['formula']}\n  {sample}", "code"))
    sections = (
        Section("Conventions", (Paragraph(payload["conventions"]),)),
        Section("Inputs", (Table(columns_of("explain plan"), inputs),)),
        Section("Scalars, in order", tuple(_scalars(model["derived"], model))),
        Section("Monthly lines (m = 0 is the start)", tuple(monthly)),
        Section("Answers", tuple(_scalars(model["answers"], model))),
    )
    return Document(
        "How the comparison is calculated",
        sections=sections,
        lead=payload["lead"],
        kind="explanation",
        as_of=payload["as_of"],
        catalog_version=payload["catalog_version"],
        sources=payload["sources"],
    )


def _figure_text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.10g}"


def _scalars(lines: list[Mapping[str, Any]], model: Mapping[str, Any]) -> list[Paragraph]:
    """Write each formula as text, then with its names replaced by their values."""
    from gpucost.formula.language import names

    values = {row["name"]: row["value"] for row in (*model["inputs"], *model["derived"], *model["answers"])}
    paragraphs = []
    for line in lines:
        inner = {name: values[name] for name in names(line["formula"]) if values.get(name) is not None}
        operands = ", ".join(f"{name} {_figure_text(value)}" for name, value in inner.items())
        result = "none" if line["value"] is None else format_value(line["value"], line["unit"])
        text = f"{line['name']} = {line['formula']}\n  = {result} {line['unit']}".rstrip()
        paragraphs.append(Paragraph(f"{text}\n  with {operands}" if operands else text, "code"))
    return paragraphs
