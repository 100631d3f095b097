"""The document of models on accelerators side by side."""

from collections.abc import Sequence

from gpucost.answers.comparison import SideBySide
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Document,
    Paragraph,
    Row,
    Section,
    Table,
    columns_of,
    document_of,
)


def document(answer: SideBySide) -> Document:
    """Build the document of pairs of a model and an accelerator."""
    rows: Sequence[Row] = answer["rows"]
    notes = "\n".join(f"{row['model']} on {row['gpu']}: {row['note']}" for row in rows if row["note"])
    pictures: list[Block] = []
    for key, title in (("cost_usd", "Cost of the run"), ("usd_per_mtok", "Cost of a million tokens served")):
        data = [{**row, "pair": f"{row['model']} on {row['gpu']}"} for row in rows if row[key] is not None]
        if len(data) > 1:
            words = f"The least is that of {min(data, key=lambda row: row[key])['pair']}."
            pictures.append(Chart("bar", title, words, data, Axis("pair"), Axis(key)))
    whole = [Table(columns_of("side by side"), rows, note=notes, interactive=True)]
    words = "Next: --details (who sells it, bars), --tokens, --region, --option; --speed times one job on two."
    return document_of(
        answer,
        "Side by side",
        Section("The cheapest run and the cheapest tokens of each", whole),
        Section("Pictures", pictures),
        screen=(Table(columns_of("side by side screen"), rows, note=notes), Paragraph(words)),
    )
