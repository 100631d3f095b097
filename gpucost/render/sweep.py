"""The document of a sweep: one row per case."""

from collections.abc import Mapping
from typing import Any

from gpucost.render.build import frame, leftovers
from gpucost.render.document import Axis, Chart, Document, Section, Table, columns
from gpucost.render.table_csv import flatten


def document(payload: Mapping[str, Any]) -> Document:
    """Build the document of a sweep."""
    rows = [flatten(row) for row in payload.get("rows") or ()]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(columns(*(f"{key}:{min(number // 4, 9)}" for number, key in enumerate(keys))), rows, interactive=True)
    sections = [
        Section("Cases", (table,) if rows else ()),
        Section("Pictures", _picture(rows, keys), detail=True),
        *leftovers(payload, {"rows"}),
    ]
    return frame(payload, "Sweep", str(payload.get("lead") or f"{len(rows):,} cases."), sections)


def _picture(rows: list[dict[str, Any]], keys: list[str]) -> tuple[Any, ...]:
    if not {"days", "cost_usd"} <= set(keys):
        return ()
    data = [row for row in rows if row.get("days") and row.get("cost_usd")]
    series = next((key for key in ("model", "gpu", "provider") if key in keys), "")
    words = "Each point is one case: its time across, its cost up."
    return (
        (
            Chart(
                "scatter",
                "Cost against time",
                words,
                data,
                Axis("days", log=True),
                Axis("cost_usd", log=True),
                series=series,
            ),
        )
        if data
        else ()
    )
