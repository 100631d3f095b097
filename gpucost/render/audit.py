"""The document of an audit: the verdict, the checks, and what would be true."""

from collections.abc import Mapping
from typing import Any

from gpucost.render.build import frame
from gpucost.render.document import Column, Document, Paragraph, Section, Table

_COLUMNS = (
    Column("name", "check"),
    Column("verdict"),
    Column("value", "claimed or implied", unit_key="unit"),
    Column("low", "true: low", unit_key="unit", priority=2),
    Column("typical", "typical", unit_key="unit", priority=1),
    Column("high", "high", unit_key="unit", priority=2),
    Column("unit", "unit", priority=1),
)


def document(payload: Mapping[str, Any]) -> Document:
    """Build the document of an audit."""
    checks = payload.get("checks") or []
    words = tuple(Paragraph(f"{row['name']}: {row['explanation']}") for row in checks)
    notes = tuple(Paragraph(str(note), "note") for note in payload.get("notes") or ())
    sections = [Section("Checks", (Table(_COLUMNS, checks), *words)), Section("Read as", notes)]
    return frame(payload, "Is the claim possible?", str(payload.get("lead") or ""), sections)
