"""The document of a commitment: levels and their regret, the bill of the history, the ladder and its expiry wall."""

from gpucost.answers.invoices import Commitment
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Column,
    Document,
    Paragraph,
    Section,
    Table,
    columns,
    document_of,
    facts_of,
)

_A_MONTH = Column("usd_per_month", "a month", "USD", 1)
_NEXT = "Next: --details (bill under the agreements, ladder and expiry by month), -o FILE.html, --format json."
_LEVELS = (
    *columns("level=commit", "gpus"),
    Column("usd_per_month", "a month", "USD"),
    *columns("covered_fraction=covered:1", "unused_fraction=unused:2"),
    Column("regret_low_usd_per_month", "regret low", "USD"),
    Column("regret_high_usd_per_month", "regret high", "USD"),
)


def document(answer: Commitment) -> Document:
    """Build the document of a commitment."""
    *lines, total = answer["bill"]
    first = Table(_LEVELS, answer["levels"], note=_note(answer))
    return document_of(
        answer,
        "How much to commit",
        Section("What each amount costs", [Table(_LEVELS, answer["levels"], note=_note(answer))]),
        Section("The history under the agreements that hold", [Table(columns("line", "cost_usd"), lines, total=total)]),
        Section("The ladder", _ladder(answer)),
        Section(
            "Use and prices",
            [
                facts_of(
                    "",
                    {
                        **answer["usage"],
                        "on_demand_usd_per_gpu_hour": answer["usd_per_gpu_hour"],
                        "committed_usd_per_gpu_hour": answer["committed_usd_per_gpu_hour"],
                    },
                ),
                *(Paragraph(text) for text in answer["prices"]),
            ],
            detail=True,
        ),
        screen=(first, Paragraph(_NEXT)),
    )


def _note(answer: Commitment) -> str:
    use = answer["usage"]
    return (
        f"Regret low and high: at {use['p10_gpus']:,.0f} and {use['p90_gpus']:,.0f} GPUs, which 10 % and 90 % of the"
        f" {use['hours']:,.0f} hours do not exceed. Best: what {answer['critical_fraction']:.0%} do not exceed."
    )


def _ladder(answer: Commitment) -> list[Block]:
    if not answer["rungs"]:
        return []
    lines = [
        {"month": row["month"], "gpus": gpus, "commitments": name}
        for row in answer["by_month"]
        for gpus, name in ((row["committed_gpus"], "held and advised"), (row["held_gpus"], "held"))
    ]
    words = "GPUs under commitment at the start of each month: what is held, and with what is advised."
    gpus = Axis("gpus", "GPUs")
    wall = [row for row in answer["by_month"] if row["ending_gpus"]]
    ends = "GPUs whose commitment ends in each month: a wall is a month in which much ends at once."
    return [
        Table((*columns("name", "gpus", "from_day=from", "until_day=until"), _A_MONTH), answer["rungs"]),
        Chart("line", "Commitments by month", words, lines, Axis("month"), gpus, series="commitments", steps=True),
        Chart("bar", "Expiry wall", ends, wall, Axis("month"), Axis("ending_gpus", "GPUs")),
        Table(
            (*columns("month", "ending_gpus=GPUs that end"), Column("ending_usd_per_month", "paid a month", "USD")),
            wall,
        ),
    ]
