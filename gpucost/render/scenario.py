"""The document of a scenario: the documents of its parts, one after the other."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpucost.render.build import document as build
from gpucost.render.build import frame
from gpucost.render.document import Document, Paragraph, Section, Table, columns


def document(payload: Mapping[str, Any]) -> Document:
    """Build the document of a scenario from the answers in it."""
    sections: list[Section] = []
    overview = []
    sources: dict[str, Mapping[str, Any]] = {}
    warnings = [str(warning) for warning in payload.get("warnings") or ()]
    for part in payload["parts"]:
        made = build(part["payload"])
        overview.append({"part": part["name"], "answer": made.lead or made.title})
        sources |= dict(made.sources)
        warnings += [f"{part['name']}: {warning}" for warning in made.warnings]
        sections += [_titled(section, part["name"], number == 0) for number, section in enumerate(made.sections)]
    text = payload.get("description")
    head: tuple[Any, ...] = (Paragraph(str(text)),) if text else ()
    first = Section("Answers", (*head, Table(columns("part", "answer"), overview)))
    whole = frame(payload, str(payload.get("name") or "Scenario"), "", [first, *sections])
    return replace(whole, sources=sources, warnings=tuple(dict.fromkeys(warnings)))


def _titled(section: Section, part: str, first: bool) -> Section:
    if section.title:
        return replace(section, title=f"{part}: {section.title[0].lower()}{section.title[1:]}")
    return replace(section, title=part if first else "")
