"""Which builder turns a payload into a document: one module per kind, loaded when it is needed."""

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from gpucost.errors import UsageError
from gpucost.render.document import Document, Section, Table, columns, used_sources
from gpucost.render.numbers import heading_of

# kind of payload -> module with `document(payload)`
BUILDERS = {
    "estimate": "gpucost.render.estimate",
    "inference": "gpucost.render.inference",
    "tco": "gpucost.render.tco",
    "mix": "gpucost.render.mix",
    "sweep": "gpucost.render.sweep",
    "comparison": "gpucost.render.comparison",
    "audit": "gpucost.render.audit",
    "scenario": "gpucost.render.scenario",
    "validation": "gpucost.render.validation",
    "throughput": "gpucost.render.throughput",
    "fit": "gpucost.render.fit",
    "serving_fit": "gpucost.render.serving_fit",
    "roofline": "gpucost.render.roofline",
}
_NEVER_SHOWN = ("sources", "warnings", "request", "facts", "model")


def document(payload: Mapping[str, Any]) -> Document:
    """Return the document of any payload; kinds without a builder become one table per list of records."""
    kind = payload.get("kind")
    if not isinstance(kind, str):
        raise UsageError("this file is not a gpucost answer: it has no `kind`. Save one with --format json.")
    if kind in BUILDERS:
        made = import_module(BUILDERS[kind]).document(payload)
        assert isinstance(made, Document)
        return made
    return _generic(kind, payload)


def frame(payload: Mapping[str, Any], title: str, lead: str, sections: list[Section]) -> Document:
    """Put the parts that every document has around its sections; empty sections are left out."""
    return Document(
        title=title,
        lead=lead,
        kind=str(payload.get("kind", "")),
        as_of=str(payload.get("as_of") or ""),
        catalog_version=str(payload.get("catalog_version") or ""),
        request=payload.get("request") or {},
        warnings=tuple(
            str(item.get("message", item)) if isinstance(item, Mapping) else str(item)
            for item in payload.get("warnings") or ()
        ),
        sources=used_sources(payload),
        sections=tuple(section for section in sections if section.blocks),
    )


def leftovers(payload: Mapping[str, Any], known: set[str]) -> list[Section]:
    """Show every list of records that a builder does not show itself, so that nothing in a payload is hidden."""
    sections = []
    for key, value in payload.items():
        if key in known or key in _NEVER_SHOWN:
            continue
        if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            keys = [name for row in value for name, cell in row.items() if not isinstance(cell, (dict, list))]
            table = Table(columns(*dict.fromkeys(keys)), value)
            sections.append(Section(heading_of(key), (table,), detail=True))
    return sections


def _generic(kind: str, payload: Mapping[str, Any]) -> Document:
    sections = [replace(section, detail=False) for section in leftovers(payload, set())]
    return frame(payload, f"gpucost {kind}", str(payload.get("lead") or ""), sections)
