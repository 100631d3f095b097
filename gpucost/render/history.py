"""Histories of prices as a document: a line per offer, and the events in them."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from gpucost.render.document import Axis, Block, Chart, Document, Paragraph, Row, Section, table_of

_MARKS = 12  # vertical lines that a chart carries legibly
_DAY_MS = 86_400_000


def history_document(points: Sequence[Row], events: Sequence[Row], left_out: int, about: Mapping[str, Any]) -> Document:
    """Return a chart of prices by day with its largest events marked, and a table of all events."""
    data = [{**row, "day": row["day"].isoformat()} for row in points]
    largest = sorted(events, key=lambda event: -abs(event["change_fraction"]))[:_MARKS]
    chart = Chart(
        "line",
        "Price of a GPU-hour",
        f"Prices of {len({row['offer'] for row in points})} offers over time.",
        data,
        Axis("day"),
        Axis("usd_per_gpu_hour"),
        series="offer",
        steps=True,
        marks=tuple((_said(event), float((event["day"] - date(1970, 1, 1)).days * _DAY_MS)) for event in largest),
    )
    rows = [{**event, "day": event["day"].isoformat()} for event in events]
    specs = ("day", "offer", "usd_per_gpu_hour", "change_fraction=change", "source_id:1")
    blocks: list[Block] = [chart, *table_of("Events: changes of 5 % and more", rows, *specs)]
    if left_out:
        blocks.append(Paragraph(f"{left_out} more offers match; filters choose others."))
    return Document(
        "History of prices",
        (Section("", tuple(blocks)),),
        as_of=str(about["as_of"]),
        catalog_version=str(about["catalog_version"]),
    )


def _said(event: Row) -> str:
    return f"{event['day']} {event['offer']}: {event['change_fraction']:+.0%}"
