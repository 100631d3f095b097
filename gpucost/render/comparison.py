"""The document of a comparison between two results: which factor explains how much of the difference."""

from gpucost.answers.training import Comparison
from gpucost.render.document import Axis, Block, Chart, Document, Section, document_of, table_of
from gpucost.render.numbers import format_named


def document(answer: Comparison) -> Document:
    """Build the document of a comparison."""
    blocks: list[Block] = [*table_of("", answer["changes"])]
    if answer["changes"]:
        largest = max(answer["changes"], key=lambda row: abs(row["effect_usd"]))
        words = f"The largest part is {largest['factor']}, {format_named('effect_usd', largest['effect_usd'])}."
        effect = Axis("effect_usd", "effect", "USD")
        title = "What explains the difference"
        blocks.append(Chart("bar", title, words, answer["changes"], Axis("factor"), effect))
    return document_of(
        answer,
        "Two results compared",
        Section("What changed", blocks),
        Section("request changes", table_of("", answer["request_changes"]), detail=True),
    )
