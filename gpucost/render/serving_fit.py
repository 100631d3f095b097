"""The document of a fit for serving: which accelerators serve a model within the targets, with memory and speed."""

from collections.abc import Mapping
from typing import Any

from gpucost.render.build import frame
from gpucost.render.document import Document, Fact, Facts, Paragraph, Section, Table, columns

SHOWN = 15
WORDS = {"weights_gb": "weights", "cache_gb": "key-value cache", "workspace_gb": "workspace", "free_gb": "free"}


def document(payload: Mapping[str, Any]) -> Document:
    """Return the document of a serving_fit payload."""
    model = str(payload["request"].get("model", "model"))
    sections = [options(payload), memory(payload), excluded(payload)]
    return frame(payload, f"Serving {model}: what it fits", str(payload["lead"]), sections)


def options(payload: Mapping[str, Any]) -> Section:
    """Return the accelerators that serve it, the cheapest first."""
    rows = payload["options"]
    if not rows:
        return Section("What serves it", (Paragraph("Nothing serves it within the targets.", style="note"),))
    shown = columns(
        "gpu", "gpus", "precision:3", "batch:2", "ttft_ms=first token:1", "tpot_ms=per token:1",
        "output_tokens_per_s=tokens per second:1", "usd_per_hour=price", "bottleneck:4",
    )  # fmt: skip
    more = f" {len(rows) - SHOWN} more in --format json." if len(rows) > SHOWN else ""
    said = " ".join(str(text) for text in payload.get("said", ()))
    table = Table(
        shown, rows[:SHOWN], note=f"The cheapest first; speed at saturation within the targets.{more} {said}".strip()
    )
    return Section("What serves it", (table,))


def memory(payload: Mapping[str, Any]) -> Section:
    """Return the memory of the smallest and of the cheapest option, part by part."""
    blocks = []
    for key, words in (("smallest", "least memory"), ("cheapest", "cheapest")):
        row = payload.get(key)
        if row:
            parts = tuple(
                Fact(WORDS[name], value, "GB (1e9 bytes)") for name, value in row["memory"].items() if name in WORDS
            )
            blocks.append(Facts(parts, title=f"{words}: {row['gpus']} × {row['gpu']}, on each"))
    return Section("Memory", tuple(blocks))


def excluded(payload: Mapping[str, Any]) -> Section:
    """Return what does not serve it, and why."""
    rows = payload.get("excluded") or ()
    return Section("What does not", (Table(columns("gpu", "reason"), rows),) if rows else (), detail=True)
