"""The document of a comparison between two results: which factor explains how much of the difference."""

from collections.abc import Mapping
from typing import Any

from gpucost.render.build import frame, leftovers
from gpucost.render.document import Axis, Chart, Document, Section, Table, columns
from gpucost.render.numbers import format_named


def document(payload: Mapping[str, Any]) -> Document:
    """Build the document of a comparison."""
    rows = payload.get("changes") or []
    keys = list(dict.fromkeys(key for row in rows for key, value in row.items() if not isinstance(value, (dict, list))))
    blocks: tuple[Any, ...] = (Table(columns(*keys), rows),) if rows else ()
    named = [row for row in rows if isinstance(row.get("effect_usd"), (int, float))]
    if named:
        largest = max(named, key=lambda row: abs(row["effect_usd"]))
        words = (
            f"The largest part is {largest.get('factor') or largest.get('name')}, "
            f"{format_named('effect_usd', largest['effect_usd'])}."
        )
        name = "factor" if "factor" in named[0] else "name"
        blocks += (
            Chart("bar", "What explains the difference", words, named, Axis(name), Axis("effect_usd", "effect", "USD")),
        )
    sections = [Section("What changed", blocks), *leftovers(payload, {"changes"})]
    return frame(payload, "Two results compared", str(payload.get("lead") or ""), sections)
