"""The document of a capacity mix: what to own, reserve and rent, month by month, and what binds."""

from collections.abc import Sequence

from gpucost.answers.ownership import Mix
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Column,
    Document,
    Paragraph,
    Row,
    Section,
    Table,
    columns_of,
    document_of,
    heading_of,
    table_of,
)

_NOT_SUPPLIES = ("demand_gpus", "idle_gpus")  # columns of GPUs that are no supply


def document(answer: Mix) -> Document:
    """Build the document of a mix."""
    payload: Row = answer
    plan, pure, binding, supplies = (
        [{**row, key: row[key].replace("_", " ")} for row in payload[part]]
        for part, key in (
            ("plan", "option"),
            ("pure", "option"),
            ("marginal_values", "constraint"),
            ("supplies", "name"),
        )
    )
    next_step = (
        "--details (binding constraints, month by month, supplies), --budget, --max-owned, --spot-share, -o FILE.xlsx"
    )
    return document_of(
        answer,
        "The cheapest mix of capacity",
        Section("", [Paragraph(line) for line in answer["said"]], paper=True),
        Section("What to buy and rent", table_of("", plan, *columns_of("mix bought")), paper=True),
        Section("Against one option alone", table_of("", pure)),
        Section("Binding constraints", table_of("", binding), paper=True),
        Section("Month by month", _months(answer)),
        Section("Supplies", table_of("", supplies, *columns_of("mix supplies"))),
        screen=(
            *table_of("What to buy and rent", plan, *columns_of("mix plan")),
            *table_of("Against one option alone", pure, *columns_of("mix alone")),
            Paragraph(f"Next: {next_step}."),
        ),
    )


def _months(answer: Mix) -> list[Block]:
    rows: Sequence[Row] = answer["months"]
    cash: Sequence[Row] = answer.get("cash_by_month", [])
    keys = list(rows[0])
    idle = [key for key in keys if key.endswith("_gpus") and not any(row[key] for row in rows)]
    keys = [*(key for key in keys if key not in idle), *idle]  # what nobody uses stands last
    supplies = [key for key in keys if key.endswith("_gpus") and key not in _NOT_SUPPLIES]
    lines = [
        {"month": row["month"], "capacity": heading_of(key).removesuffix(" GPUs"), "gpus": row[key]}
        for row in rows
        for key in ("demand_gpus", *(key for key in supplies if any(row[key] for row in rows)))
    ]
    description = "GPUs in use each month by purchase option, with the demand."
    gpus = Axis("gpus", "GPUs")
    chart = Chart(
        "area", "Capacity by month", description, lines, Axis("month"), gpus, series="capacity", label="demand"
    )
    headings = tuple(Column(key, priority=min(number, 3)) for number, key in enumerate(keys))
    gpus_by_month = Table(headings, rows)
    paid = [row for row in cash if any(row[key] for key in row if key != "month")]
    return [chart, gpus_by_month, *table_of("Paid beside rent, in cash", paid)]
