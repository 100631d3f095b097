"""The documents of invoices and commitments."""

from collections.abc import Sequence

from gpucost.answers.invoices import Commitment, DifferencePart, Reconciliation
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Document,
    Paragraph,
    Row,
    Section,
    Table,
    bridge,
    columns,
    columns_of,
    document_of,
    facts_of,
    table_of,
)

# --- Invoices against a plan.

_ENDS = (("plan", "planned_effective_usd"), ("invoice", "charged_effective_usd"))
_NEXT = "Next: --details (products, unmatched charges, totals), -o FILE.xlsx or FILE.html, --format json."


def document(answer: Reconciliation) -> Document:
    """Build the document of a reconciliation."""
    moving = [row for row in answer["parts"] if row["billed_usd"] or row["effective_usd"]]
    # on a screen the parts that move anything; an invoice without a plan has none, and is shown by its tag
    first = _parts(answer, moving)[:1] or _showback(answer)
    unmatched = answer["unmatched"]
    note = f"{answer['rows_read']:,} charges read, none dropped." if unmatched else ""
    tag = answer["request"].get("showback", "tag")
    idle_key = {"cost": "direct cost", "quantity": "quantity", "even": "equal shares"}.get(answer["idle_by"], "")
    totals: Row = {
        "from": answer["period_from"],
        "until": answer["period_until"].removesuffix(" 00:00"),  # whole days need no hour
        **{name: value for name, value in answer["totals"].items() if value is not None},
    }
    return document_of(
        answer,
        "An invoice against its plan" if answer["parts"] else "An invoice by tag",
        Section("Why it differs", _parts(answer)),
        Section("What stands out", _remarks(answer)),
        Section("The rest of the year", _year_outlook(answer)),
        Section("Products", table_of("", answer["products"], *columns_of("reconciliation"))),
        Section("Unmatched", table_of("", unmatched, *columns_of("reconciliation unmatched"), note=note)),
        Section(f"By {tag}, unused commitments shared by {idle_key}", _showback(answer)),
        Section("Totals", [facts_of("", totals), *table_of("", answer["currencies"])], detail=True),
        screen=(*first, *_remarks(answer)[:3], *_year_outlook(answer), Paragraph(_NEXT)),
    )


def _remarks(answer: Reconciliation) -> list[Block]:
    """Return what stands out against the plan, a sentence each."""
    return [Paragraph(row["sentence"]) for row in answer.get("anomalies") or ()]


def _year_outlook(answer: Reconciliation) -> list[Block]:
    """Return what the year will cost at the pace of the last weeks."""
    outlook = answer.get("forecast")
    return [Paragraph(outlook["sentence"])] if outlook else []


def _parts(answer: Reconciliation, rows: Sequence[DifferencePart] = ()) -> list[Block]:
    """Return the parts and the bridge that they make; of chosen rows, without their notes."""
    if not answer["parts"]:
        return []
    totals: Row = answer["totals"]
    total = {
        "part": "difference",
        "billed_usd": totals["billed_difference_usd"],
        "effective_usd": totals["effective_difference_usd"],
        "note": "",
    }
    headings = columns_of("reconciliation parts")[: 3 if rows else 4]  # the fourth is the note
    table = Table(headings, rows or answer["parts"], total=total)
    bars = [row for row in answer["parts"] if row["effective_usd"]]
    ends = [{"part": name, "effective_usd": totals[key]} for name, key in _ENDS]
    picture = bridge("From the plan to the invoice", (ends[0], ends[1]), bars, "part", "effective_usd", "USD")
    return [table, picture] if bars else [table]


def _showback(answer: Reconciliation) -> list[Block]:
    return list(table_of("", answer["showback"], *columns_of("reconciliation showback")))


# --- Commitments.

_NEXT_OF_COMMITMENT = (
    "Next: --details (bill under current agreements, ladder and expiry by month), -o FILE.html, --format json."
)


def commitment_document(answer: Commitment) -> Document:
    """Build the document of a commitment."""
    *lines, total = answer["bill"]
    use = answer["usage"]
    # the newsvendor's rule: the amount that costs least is the quantile of use at (saving) ÷ (saving + waste)
    note = (
        f"Regret low and high: at {use['p10_gpus']:,.0f} and {use['p90_gpus']:,.0f} GPUs, the 10th and 90th percentile"
        f" of the {use['hours']:,.0f} hours. Best: their {answer['critical_fraction']:.0%} quantile."
    )
    levels = Table(columns_of("commitment levels"), answer["levels"], note=note)
    # the advised purchases, what is committed by month, and when it ends
    ladder: list[Block] = []
    if answer["rungs"]:
        committed = [
            {"month": row["month"], "gpus": gpus, "commitments": name}
            for row in answer["by_month"]
            for gpus, name in ((row["committed_gpus"], "held and advised"), (row["held_gpus"], "held"))
        ]
        description = "GPUs under commitment at the start of each month: held now, and with the advised purchases."
        month, gpus_axis = Axis("month"), Axis("gpus", "GPUs")
        wall = [row for row in answer["by_month"] if row["ending_gpus"]]
        ends = "GPUs whose commitment ends in each month: a wall is a month in which many end at once."
        ladder = [
            Table(columns_of("commitment rungs"), answer["rungs"]),
            Chart(
                "line",
                "Commitments by month",
                description,
                committed,
                month,
                gpus_axis,
                series="commitments",
                steps=True,
            ),
            Chart("bar", "Expiry wall", ends, wall, month, Axis("ending_gpus", "GPUs")),
            Table(columns_of("commitment wall"), wall),
        ]
    return document_of(
        answer,
        "How much to commit",
        Section("Cost of each amount", [levels]),
        Section(
            "Cost of the history under current agreements", [Table(columns("line", "cost_usd"), lines, total=total)]
        ),
        Section("Ladder of commitments", ladder),
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
        screen=(levels, Paragraph(_NEXT_OF_COMMITMENT)),
    )
