"""The document of a sweep: one row per case."""

from gpucost.answers.training import Sweep
from gpucost.render.document import Axis, Block, Chart, Document, Section, Table, columns, document_of


def document(answer: Sweep) -> Document:
    """Build the document of a sweep."""
    rows = answer["rows"]
    shown = columns(*(f"{key}:{min(number // 4, 9)}" for number, key in enumerate(rows[0])))
    return document_of(
        answer,
        "Sweep",
        Section("Cases", [Table(shown, rows, interactive=True)]),
        Section("Pictures", _picture(answer), detail=True),
    )


def _picture(answer: Sweep) -> list[Block]:
    data = [row for row in answer["rows"] if row["days"] and row["cost_usd"]]
    words = "Each point is one case: its time across, its cost up."
    days, cost = Axis("days", log=True), Axis("cost_usd", log=True)
    return [Chart("scatter", "Cost against time", words, data, days, cost, series="model")] if data else []
