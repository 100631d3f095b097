"""The document of a capacity mix: what to own, reserve and rent, month by month, and what binds."""

from collections.abc import Iterable, Sequence

from gpucost.answers.ownership import Mix
from gpucost.options import OPTIONS
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
    columns_of,
    document_of,
    heading_of,
    table_of,
)
from gpucost.render.wording import chip_label

_NOT_SUPPLIES = ("demand_gpus", "idle_gpus")  # columns of GPUs that are no supply


def document(answer: Mix) -> Document:
    """Build the document of a mix."""
    payload: Row = answer
    gpu = answer["request"].get("gpu")
    chip = chip_label(gpu) if isinstance(gpu, str) else "capacity"
    # codes of options, limits and supplies become words
    plan, pure, binding, supplies = (
        [{**row, key: row[key].replace("_", " ")} for row in payload[part]]
        for part, key in (
            ("plan", "option"),
            ("pure", "option"),
            ("marginal_values", "constraint"),
            ("supplies", "name"),
        )
    )
    # month by month: what is in use as a picture and a table, and what is paid beside rent
    months: Sequence[Row] = answer["months"]
    keys = list(months[0])
    idle = [key for key in keys if key.endswith("_gpus") and not any(row[key] for row in months)]
    keys = [*(key for key in keys if key not in idle), *idle]  # what nobody uses stands last
    used = [key for key in _supply_keys(keys) if any(row[key] for row in months)]
    lines = [
        {"month": row["month"], "capacity": heading_of(key).removesuffix(" GPUs"), "gpus": row[key]}
        for row in months
        for key in ("demand_gpus", *used)
    ]
    description = "GPUs in use each month by purchase option, with the demand."
    gpus = Axis("gpus", "GPUs")
    chart = Chart(
        "area", "Capacity by month", description, lines, Axis("month"), gpus, series="capacity", label="demand"
    )
    headings = tuple(Column(key, priority=min(number, 3)) for number, key in enumerate(keys))
    cash: Sequence[Row] = answer.get("cash_by_month", [])
    paid = [row for row in cash if any(row[key] for key in row if key != "month")]
    by_month: list[Block] = [chart, Table(headings, months), *table_of("Paid beside rent, in cash", paid)]
    return document_of(
        answer,
        "The cheapest mix of capacity",
        Section("", [Paragraph(line) for line in answer["said"]], paper=True),
        Section("What to buy and rent", table_of("", plan, *columns_of("mix bought")), paper=True),
        Section("Against one option alone", table_of("", pure)),
        Section("Binding constraints", table_of("", binding), paper=True),
        Section("Month by month", by_month),
        Section("Supplies", table_of("", supplies, *columns_of("mix supplies"))),
        screen=_screen(answer),
        name=f"Cheapest mix of {chip} over {len(months)} months",
    )


_CENT = 0.01  # what differs by less is rounding
_SUPPLIES = (
    Column("supply", heading=" "),
    Column("most GPUs", right=True),
    Column("GPU-hours", "share", right=True),
    Column("price", "$/GPU-hour", right=True),
    Column("present value", right=True),
    Column("seller"),
)


def _screen(answer: Mix) -> list[Block]:
    """Return what one screen shows: how much of each supply, what it costs, and what one supply alone would cost."""
    months, sold = answer["months"], {row["name"]: row for row in answer["supplies"]}
    used: dict[str, list[float]] = {
        key.removesuffix("_gpus"): [row[key] for row in months]  # type: ignore[literal-required]
        for key in _supply_keys(months[0])
    }
    hours = sum(map(sum, used.values()))
    rows = [
        {
            "supply": name.replace("_", " "),
            "most GPUs": f"{max(gpus):,.0f}",
            "GPU-hours": f"{sum(gpus) / hours:.0%}",
            "price": f"${sold[name]['usd_per_gpu_hour']:,.2f}" if name in sold else "",
            "present value": about(_worth(answer, name)),
            "seller": (sold[name].get("seller") or sold[name]["note"].split(" ")[0]) if name in sold else "",
        }
        for name, gpus in used.items()
        if any(gpus)
    ]
    # what belongs to no supply is said too, so that the lines add up to the total
    beside_usd = answer["cost_usd"] - sum(_worth(answer, name) for name in used)
    if abs(beside_usd) > _CENT:
        rows.append({"supply": "staff and tax", "present value": about(beside_usd)})
    total = {"supply": "together", "GPU-hours": "100%", "present value": about(answer["cost_usd"])}
    return [
        Table(_SUPPLIES, rows, total=total),
        KeyFigures(_facts(answer)),
        Paragraph("What to order in which month, what binds: --details · also --budget, --max-owned"),
    ]


def _worth(answer: Mix, name: str) -> float:
    """Return the present value of a supply: what is bought of it, and its use."""
    return sum(row["cost_usd"] for row in answer["plan"] if row["option"] in (name, f"use of {name}"))


def _facts(answer: Mix) -> tuple[Fact, ...]:
    """Return the demand, what one supply alone would cost and which cannot carry it, and what is taken as given."""
    costs = [
        f"{row['option'].replace('_', ' ')} {about(row['cost_usd'])}"
        for row in sorted(answer["pure"], key=lambda row: row["cost_usd"] or 0.0)
        if row["cost_usd"] is not None
    ]
    unable = [row["option"].replace("_", " ") for row in answer["pure"] if row["cost_usd"] is None]
    cannot = f" {' and '.join(unable).capitalize()} alone cannot carry the demand." if unable else ""
    demand = [row["demand_gpus"] for row in answer["months"]]
    steady = f"{demand[0]:,.0f} GPUs in every month."
    moving = f"{demand[0]:,.0f} GPUs in the first month, {demand[-1]:,.0f} in the last, {max(demand):,.0f} at most."
    # each assumption with the option that changes it, and only those on which this plan rests
    inputs = {row["name"]: row["value"] for row in answer["assumptions"]}
    spot = next((row["max_share_fraction"] for row in answer["supplies"] if OPTIONS[row["kind"]].interruptible), None)
    owns = any(row.get("own_gpus") for row in answer["months"])
    assumptions = [f"capital at {inputs['wacc_fraction']:.0%} a year (--wacc)"] if "wacc_fraction" in inputs else []
    if spot is not None:
        assumptions.append(f"spot for at most {spot:.0%} of a month's GPUs (--spot-share)")
    if owns and inputs.get("server_usd"):
        assumptions.append(f"servers at ${inputs['server_usd']:,.0f} (--set server_usd)")
    return (
        Fact("Demand", steady if len(set(demand)) == 1 else moving),
        *([Fact("Alone", f"{', '.join(costs)}.{cannot}")] if costs or unable else []),
        Fact("Assumes", f"{', '.join(assumptions)}."),
    )


def _supply_keys(keys: Iterable[str]) -> list[str]:
    """Return the columns of a month that hold the GPUs of a supply."""
    return [key for key in keys if key.endswith("_gpus") and key not in _NOT_SUPPLIES]
