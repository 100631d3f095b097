"""The document of a fit for serving: which accelerators serve a model within the targets, with memory and speed."""

from gpucost.answers.serving import Serves, ServingFit
from gpucost.render.document import (
    Block,
    Document,
    Fact,
    KeyFigures,
    Paragraph,
    Section,
    Table,
    columns_of,
    document_of,
    table_of,
)

SHOWN = 15
WORDS = {"weights_gb": "weights", "cache_gb": "key-value cache", "workspace_gb": "workspace", "free_gb": "free"}


def document(answer: ServingFit) -> Document:
    """Return the document of a fit for serving."""
    model = answer["request"]["model"]
    chosen = ((answer["smallest"], "least memory"), (answer["cheapest"], "cheapest"))
    rows, ask = answer["options"], "--details (all, memory by part), --tpot, --ttft, --precision, --prompt-tokens"
    said = Paragraph(" ".join(answer["said"]))
    table = Table(columns_of("serving fit"), rows, note="The cheapest first; speed at saturation within the targets.")
    return document_of(
        answer,
        f"Serving {model}: what it fits",
        Section("What serves it", [_options(answer)]),
        Section("Memory", [_memory(row, words) for row, words in chosen if row is not None]),
        Section("What does not", table_of("", answer["excluded"], "gpu", "reason"), detail=True),
        screen=(table, said, Paragraph(f"Next: {ask}.")) if rows else (),
    )


def _options(answer: ServingFit) -> Block:
    """Return the accelerators that serve it, the cheapest first."""
    rows = answer["options"]
    if not rows:
        return Paragraph("Nothing serves it within the targets.", style="note")
    more = f" {len(rows) - SHOWN} more in --format json." if len(rows) > SHOWN else ""
    note = f"The cheapest first; speed at saturation within the targets.{more} {' '.join(answer['said'])}"
    return Table(columns_of("serving fit"), rows[:SHOWN], note=note.strip())


def _memory(row: Serves, words: str) -> KeyFigures:
    """Return the memory of an option, part by part."""
    parts = (Fact(WORDS[name], value, "GB (1e9 bytes)") for name, value in row["memory"].items() if name in WORDS)
    return KeyFigures(tuple(parts), title=f"{words}: {row['gpus']} × {row['gpu']}, on each")
