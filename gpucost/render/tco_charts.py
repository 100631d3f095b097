"""The pictures of owning against renting: what moves the answer, where the money goes, cash so far."""

from collections.abc import Sequence

from gpucost.answers.ownership import CashMonth, CostLine, Tco, TwoWay, promised
from gpucost.render.document import Axis, Block, Chart, Paragraph, Row, columns_of, table_of
from gpucost.render.numbers import amount, format_value, heading_of
from gpucost.units import unit_of

# lines that are one thing to a reader: what servers cost is net of what they are sold for, a loan net of its payments
_JOINED = (
    ("servers, less their resale", ("own_servers_usd", "own_resale_usd", "own_trade_in_usd", "own_refresh_usd")),
    ("what financing moves", ("own_loan_", "own_lease_", "own_financing_")),
)
_DRAWN = 6  # lines of the breakdown that have their own colour
_NOTHING_USD = 0.005
_BRIEF = 8  # inputs of the short sensitivity
_TOTALS = ("month", "on", "own_total_usd", "rent_total_usd")  # what stands first in a month


def tornado(answer: Tco) -> list[Block]:
    """Draw the inputs that move the answer most, and say which of them flip the decision alone."""
    rows = answer["sensitivity"]
    if not rows:
        return []
    named = [{**row, "name": heading_of(row["name"])} for row in rows[:_BRIEF]]
    words = (
        f"Present value of what owning saves with one input at its low and high end; {named[0]['name']} moves it most."
    )
    saving = Axis("saving_at_low_usd", "saving of owning, present value", "USD")
    low, high, base = "saving_at_low_usd", "saving_at_high_usd", answer["npv_usd"]["saving"]
    sides = {row["name"] for row in promised(answer["options"])[:2]} == {"own", "rent"}
    title = "What moves the answer" if sides else "What moves what owning saves against renting"
    flips = [f"{heading_of(row['name'])} at {amount(row['flip_value'], row['unit'])}" for row in rows if row["flips"]]
    said = [Paragraph(f"Alone within its range, these flip the decision: {'; '.join(flips)}.")] if flips else []
    return [Chart("tornado", title, words, named, Axis("name"), saving, low=low, high=high, base=base), *said]


def grid_of_two(grid: TwoWay) -> Chart:
    """Draw what owning saves over two inputs."""
    x, y = grid["x"], grid["y"]
    data = [
        {x: format_value(across, unit_of(x)), y: format_value(up, unit_of(y)), "saving_usd": saving}
        for up, row in reversed(list(zip(grid["y_values"], grid["saving_usd"], strict=True)))
        for across, saving in zip(grid["x_values"], row, strict=True)
    ]
    words = f"Present value of what owning saves, by {heading_of(x)} and {heading_of(y)}; above zero buying wins."
    return Chart("heat", "What owning saves", words, data, Axis(x), Axis(y), value="saving_usd")


def breakdown(rows: Sequence[CostLine]) -> list[Block]:
    """Draw and list the lines of both sides."""
    parts = _largest(rows)
    words = "Present value of what each side pays, by line; the bars add up to the present values above."
    title = "Cost breakdown of owning and renting"
    picture = Chart("stacked", title, words, parts, Axis("side"), Axis("npv_usd"), series="line")
    return [*([picture] if parts else []), *table_of("", rows, *columns_of("tco lines"), interactive=bool(parts))]


def _joined(rows: Sequence[CostLine]) -> list[CostLine]:
    """Net what belongs together."""
    kept = [row for row in rows if not any(row["name"].startswith(names) for _, names in _JOINED)]
    for words, names in _JOINED:
        parts = [row for row in rows if row["name"].startswith(names)]
        if parts:
            net = sum(row["npv_usd"] for row in parts)
            kept.append({**parts[0], "name": words, "description": words, "npv_usd": net})
    return kept


def _largest(rows: Sequence[CostLine]) -> list[Row]:
    """Keep the lines that a picture can tell apart; the others become one, so that all of it adds up."""
    costs = [row for row in _joined(rows) if abs(row["npv_usd"]) > _NOTHING_USD]
    kept = {row["name"] for row in sorted(costs, key=lambda row: -abs(row["npv_usd"]))[:_DRAWN]}
    parts: list[Row] = [
        {"side": row["side"], "line": row["description"], "npv_usd": row["npv_usd"]}
        for row in costs
        if row["name"] in kept
    ]
    for side in dict.fromkeys(row["side"] for row in costs):
        rest = sum(row["npv_usd"] for row in costs if row["side"] == side and row["name"] not in kept)
        parts += [{"side": side, "line": "other", "npv_usd": rest}] if rest else []
    return parts


def cash_so_far(rows: Sequence[CashMonth]) -> list[Block]:
    """Draw what each side has paid since the start, and list every month."""
    lines, own, rent = [], 0.0, 0.0
    for row in rows:
        own, rent = own + row["own_total_usd"], rent + row["rent_total_usd"]
        lines += [
            {"month": row["month"], "side": "own", "paid_usd": own},
            {"month": row["month"], "side": "rent", "paid_usd": rent},
        ]
    words = (
        "What has been paid since the start: owning begins with the purchase and ends with the resale, renting grows "
        "month by month."
    )
    chart = Chart("line", "Cash paid so far", words, lines, Axis("month"), Axis("paid_usd"), series="side")
    keys = dict.fromkeys((*_TOTALS, *(key for row in rows for key in row)))
    return [chart, *table_of("", rows, *keys)]
