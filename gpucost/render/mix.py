"""The document of a capacity mix: what to own, reserve and rent, month by month, and what binds."""

from collections.abc import Mapping
from typing import Any

from gpucost.render.build import frame, leftovers
from gpucost.render.document import Axis, Chart, Document, Paragraph, Section, Table, columns
from gpucost.render.numbers import heading_of

_KNOWN = {"months", "plan", "marginal_values", "pure", "assumptions"}


def document(payload: Mapping[str, Any]) -> Document:
    """Build the document of a mix."""
    sections = [
        Section("", tuple(Paragraph(str(line)) for line in payload.get("said") or ())),
        Section("What to buy and rent", _table(payload, "plan")),
        Section("Against one option alone", _table(payload, "pure")),
        Section("What binds", _table(payload, "marginal_values")),
        Section("Month by month", _months(payload)),
        *leftovers(payload, _KNOWN),
    ]
    return frame(payload, "The cheapest mix of capacity", str(payload.get("lead") or ""), sections)


def _table(payload: Mapping[str, Any], key: str) -> tuple[Any, ...]:
    rows = payload.get(key) or []
    if not rows or not isinstance(rows[0], Mapping):
        return ()
    keys = dict.fromkeys(name for row in rows for name, value in row.items() if not isinstance(value, (dict, list)))
    return (Table(columns(*keys), rows),)


def _months(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    rows = payload.get("months") or []
    if not rows:
        return ()
    keys = [key for key in rows[0] if not isinstance(rows[0][key], (dict, list))]
    used = {key for key in keys if any(row.get(key) for row in rows)}
    parts = [
        key for key in keys if key in used and key.endswith("_gpus") and not key.startswith(("demand", "unmet", "idle"))
    ]
    lines = [
        {"month": row["month"], "capacity": heading_of(key).removesuffix(" GPUs"), "gpus": row[key] or 0}
        for row in rows
        for key in ("demand_gpus", *parts)
        if key in row
    ]
    table = Table(columns(*(f"{key}:{min(number, 3)}" for number, key in enumerate(keys))), rows)
    if not lines:
        return (table,)
    words = "GPUs in use each month by the way they are paid for, with the demand that they meet."
    return Chart(
        "line", "Capacity by month", words, lines, Axis("month"), Axis("gpus", "GPUs"), series="capacity"
    ), table
