"""The document of a fit for serving: which accelerators serve a model within the targets, with memory and speed."""

from dataclasses import replace

from gpucost.answers.serving import Serves, ServingFit
from gpucost.render.document import (
    Block,
    Document,
    Fact,
    KeyFigures,
    Paragraph,
    Section,
    Table,
    columns,
    document_of,
    table_of,
)

SHOWN = 15
WORDS = {"weights_gb": "weights", "cache_gb": "key-value cache", "workspace_gb": "workspace", "free_gb": "free"}
_OPTIONS = columns(
    "gpu", "gpus", "precision:3", "batch:2", "ttft_ms=first token:1", "tpot_ms=per token:1",
    "output_tokens_per_s=tokens per second:1", "usd_per_hour=price", "bottleneck:4",
)  # fmt: skip


def document(answer: ServingFit) -> Document:
    """Return the document of a fit for serving."""
    model = answer["request"]["model"]
    chosen = ((answer["smallest"], "least memory"), (answer["cheapest"], "cheapest"))
    made = document_of(
        answer,
        f"Serving {model}: what it fits",
        Section("What serves it", [_options(answer)]),
        Section("Memory", [_memory(row, words) for row, words in chosen if row is not None]),
        Section("What does not", table_of("", answer["excluded"], "gpu", "reason"), detail=True),
    )
    rows, ask = (
        answer["options"],
        "--details (all, memory by part), --tpot, --ttft, --precision, --prompt-tokens",
    )
    said = Paragraph(" ".join(answer["said"]))
    table = Table(_OPTIONS, rows, note="The cheapest first; speed at saturation within the targets.")
    return replace(made, screen=(table, said, Paragraph(f"Next: {ask}."))) if rows else made


def _options(answer: ServingFit) -> Block:
    """Return the accelerators that serve it, the cheapest first."""
    rows = answer["options"]
    if not rows:
        return Paragraph("Nothing serves it within the targets.", style="note")
    more = f" {len(rows) - SHOWN} more in --format json." if len(rows) > SHOWN else ""
    note = f"The cheapest first; speed at saturation within the targets.{more} {' '.join(answer['said'])}"
    return Table(_OPTIONS, rows[:SHOWN], note=note.strip())


def _memory(row: Serves, words: str) -> KeyFigures:
    """Return the memory of an option, part by part."""
    parts = (Fact(WORDS[name], value, "GB (1e9 bytes)") for name, value in row["memory"].items() if name in WORDS)
    return KeyFigures(tuple(parts), title=f"{words}: {row['gpus']} × {row['gpu']}, on each")
