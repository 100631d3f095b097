"""The document of an invoice against a plan: a bridge of parts, products, what is unmatched, and who bears what."""

from collections.abc import Sequence

from gpucost.answers.invoices import DifferencePart, Reconciliation
from gpucost.render.document import (
    Block,
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

_ENDS = (("plan", "planned_effective_usd"), ("invoice", "charged_effective_usd"))
_NEXT = "Next: --details (products, unmatched charges, totals), -o FILE.xlsx or FILE.html, --format json."


def document(answer: Reconciliation) -> Document:
    """Build the document of a reconciliation."""
    moving = [row for row in answer["parts"] if row["billed_usd"] or row["effective_usd"]]
    first = _parts(answer, moving)[:1] or _showback(answer)
    return document_of(
        answer,
        "An invoice against its plan" if answer["parts"] else "An invoice by tag",
        Section("Why it differs", _parts(answer)),
        Section("Products", table_of("", answer["products"], *columns_of("reconciliation"))),
        Section("Unmatched", _unmatched(answer)),
        Section(_shown_back(answer), _showback(answer)),
        Section("Totals", [facts_of("", _totals(answer)), *table_of("", answer["currencies"])], detail=True),
        screen=(*first, Paragraph(_NEXT)),
    )


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
    shown = columns("part", "billed_usd=billed", "effective_usd=effective", *(() if rows else ("note",)))
    table = Table(shown, rows or answer["parts"], total=total)
    bars = [row for row in answer["parts"] if row["effective_usd"]]
    ends = [{"part": name, "effective_usd": totals[key]} for name, key in _ENDS]
    picture = bridge("From the plan to the invoice", (ends[0], ends[1]), bars, "part", "effective_usd", "USD")
    return [table, picture] if bars else [table]


def _unmatched(answer: Reconciliation) -> list[Block]:
    rows = answer["unmatched"]
    note = f"{answer['rows_read']:,} charges read; none is dropped." if rows else ""
    return list(
        table_of("", rows, "charged_for=for", "why", "rows", "billed_usd=billed", "effective_usd=effective", note=note)
    )


def _shown_back(answer: Reconciliation) -> str:
    key = {"cost": "direct cost", "quantity": "quantity", "even": "equal shares"}.get(answer["idle_by"], "")
    return f"By {answer['request'].get('showback', 'tag')}, unused commitments shared by {key}"


def _showback(answer: Reconciliation) -> list[Block]:
    specs = (
        "tag_value=value",
        "rows:2",
        "quantity:3",
        "direct_usd=direct",
        "idle_usd=idle",
        "total_usd=total",
        "share_fraction:1",
    )
    return list(table_of("", answer["showback"], *specs))


def _totals(answer: Reconciliation) -> Row:
    known = {name: value for name, value in answer["totals"].items() if value is not None}
    return {"from": answer["period_from"], "until": answer["period_until"].removesuffix(" 00:00"), **known}
