"""The document of models on accelerators side by side."""

from dataclasses import replace

from gpucost.answers.comparison import SideBySide
from gpucost.render.document import Axis, Block, Chart, Document, Paragraph, Section, Table, columns, document_of

_SCREEN = columns(
    "model", "gpu", "gpus=GPUs", "days", "cost_usd=run", "times_first=× first:2", "serving_gpus=serving GPUs:1",
    "usd_per_mtok=serving", "tpot_ms=TPOT:3",
)  # fmt: skip
_ALL = columns(
    "model", "gpu", "gpus", "days", "cost_usd", "tokens_per_s_per_gpu:2", "usd_per_gpu_hour:2", "provider:1",
    "option:1", "serving_gpus", "usd_per_mtok", "tpot_ms:1", "serving_provider:2",
)  # fmt: skip


def document(answer: SideBySide) -> Document:
    """Build the document of pairs of a model and an accelerator."""
    rows = answer["rows"]
    notes = "\n".join(f"{row['model']} on {row['gpu']}: {row['note']}" for row in rows if row["note"])
    pictures: list[Block] = []
    for key, title in (("cost_usd", "Cost of the run"), ("usd_per_mtok", "Cost of a million tokens served")):
        data = [{**row, "pair": f"{row['model']} on {row['gpu']}"} for row in rows if row[key] is not None]  # type: ignore[literal-required]
        pictures += [Chart("bar", title, title, data, Axis("pair"), Axis(key))] if len(data) > 1 else []
    made = document_of(
        answer,
        "Side by side",
        Section("The cheapest run and the cheapest tokens of each", [Table(_ALL, rows, note=notes, interactive=True)]),
        Section("Pictures", pictures),
    )
    words = "Next: --details (who sells it, bars), --tokens, --region, --option; --speed times one job on two."
    return replace(made, screen=(Table(_SCREEN, rows, note=notes), Paragraph(words)))
