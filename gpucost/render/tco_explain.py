"""The explanation of a rent-or-buy answer: conventions, inputs with their sources, every formula with its numbers."""

from collections.abc import Mapping
from typing import Any

from gpucost.render.document import Document, Paragraph, Section, Table, columns
from gpucost.render.numbers import format_value


def document(payload: Mapping[str, Any]) -> Document:
    """Build the explanation from the payload's model."""
    model = payload["model"]
    sections = (
        Section("Conventions", (Paragraph(payload["conventions"]),)),
        Section("Inputs", (_inputs(payload),)),
        Section("Scalars, in order", tuple(_scalars(model["derived"], model))),
        Section("Monthly lines (m = 0 is the start)", tuple(_monthly(model))),
        Section("Answers", tuple(_scalars(model["answers"], model))),
    )
    return Document(
        "How the comparison comes about",
        sections=sections,
        lead=payload["lead"],
        kind="explanation",
        as_of=payload["as_of"],
        catalog_version=payload["catalog_version"],
        sources=payload["sources"],
    )


def _inputs(payload: Mapping[str, Any]) -> Table:
    rows = []
    for entry in payload["assumptions"]:
        if entry["counts"] and entry["value"] is not None:
            origin = entry["source_id"] or entry["note"]
            rows.append(
                {
                    "name": entry["name"],
                    "value": _shown(entry["value"]),
                    "unit": entry["unit"],
                    "status": entry["status"],
                    "source": origin,
                }
            )
    return Table(columns("name", "value", "unit:1", "status", "source:1"), rows)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.10g}"


def _scalars(lines: list[Mapping[str, Any]], model: Mapping[str, Any]) -> list[Paragraph]:
    """Write each formula as text, then with its names replaced by their values."""
    from gpucost.formula.language import names

    values = {row["name"]: row["value"] for row in (*model["inputs"], *model["derived"], *model["answers"])}
    paragraphs = []
    for line in lines:
        inner = {name: values[name] for name in names(line["formula"]) if values.get(name) is not None}
        given = ", ".join(f"{name} {_shown(value)}" for name, value in inner.items())
        shown = "none" if line["value"] is None else format_value(line["value"], line["unit"]) or _shown(line["value"])
        text = f"{line['name']} = {line['formula']}\n  = {shown} {line['unit']}".rstrip()
        paragraphs.append(Paragraph(f"{text}\n  with {given}" if given else text, "code"))
    return paragraphs


def _monthly(model: Mapping[str, Any]) -> list[Paragraph]:
    """Write each monthly formula with its values at the start, in the first month, and in total."""
    paragraphs = []
    for line in model["monthly"]:
        values = line["values"]
        shown = f"m=0: {_shown(values[0])}, m=1: {_shown(values[1])}"
        if line["name"].endswith("_usd"):
            shown += f", total: {_shown(sum(values))}"
        paragraphs.append(Paragraph(f"{line['name']} = {line['formula']}\n  {shown}", "code"))
    return paragraphs
