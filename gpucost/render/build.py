"""From an answer to its document: the writer of each kind, loaded when it is needed."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, cast

from msgspec.structs import replace

from gpucost.answers import KINDS
from gpucost.answers.combined import ScenarioAnswer
from gpucost.answers.common import CitedSource
from gpucost.answers.ownership import Tco
from gpucost.errors import UsageError
from gpucost.render.document import Block, Document, Paragraph, Section, Table, columns, document_of

# kinds whose document shares a module with another one; every other kind has a module of its name with `document`
_WRITERS = {
    "serving_fit": ("fit", "serving_document"),
    "serving_speed": ("throughput", "serving_document"),
    "fit_everywhere": ("fit", "everywhere_document"),
    "side_by_side": ("comparison", "side_by_side_document"),
    "commitment": ("reconciliation", "commitment_document"),
}


def document(answer: Mapping[str, Any]) -> Document:
    """Return the document of any answer."""
    kind = answer.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise UsageError(f"this is not a gpucost answer: its `kind` is {kind!r}. Save one with --format json.")
    if kind != "scenario":
        return writer_of(kind)(answer)
    # a scenario holds other answers, so its document is theirs, one after the other
    scenario = cast(ScenarioAnswer, answer)
    sections: list[Section] = []
    overview, sources = [], dict[str, CitedSource]()
    warnings, remarks = list(scenario["warnings"]), list[str]()
    for part in scenario["parts"]:
        # sections, warnings and remarks say which part they are of; sources are the same for all
        part_document = document(part["payload"])
        overview.append({"part": part["name"], "answer": part_document.lead or part_document.title})
        sources |= dict(part_document.sources)
        warnings += [f"{part['name']}: {warning}" for warning in part_document.warnings]
        remarks += [f"{part['name']}: {remark}" for remark in part_document.remarks]
        sections += [
            _titled(section, part["name"], number == 0) for number, section in enumerate(part_document.sections)
        ]
    head: list[Block] = [Paragraph(scenario["description"])] if scenario["description"] else []
    first = Section("Answers", [*head, Table(columns("part", "answer"), overview)])
    joined = document_of(scenario, scenario["name"] or "Scenario", first, *sections)
    return replace(
        joined, sources=sources, warnings=tuple(dict.fromkeys(warnings)), remarks=tuple(dict.fromkeys(remarks))
    )


def boarded(answer: Mapping[str, Any]) -> Document:
    """Return the document of an answer with the pages that a board reads before everything else."""
    from gpucost.render import evidence
    from gpucost.render.decision import section

    whole = document(answer)
    parts = [("", answer)]
    if answer.get("kind") == "scenario":
        parts = [(str(part["name"]), part["payload"]) for part in answer["parts"]]
    pages = []
    for name, part in parts:
        page = section(part)
        if page is not None:
            pages.append(_titled(page, name, False) if name else page)
            if part.get("kind") == "tco":
                audited = evidence.section(cast(Tco, part), board=True)
                pages.append(_titled(audited, name, False) if name else audited)
    titles = {page.title for page in pages}  # the document may have such a page as one of its sections
    return replace(whole, sections=(*pages, *(part for part in whole.sections if part.title not in titles)))


def writer_of(kind: str) -> Callable[[Mapping[str, Any]], Document]:
    """Return the function that makes the document of a kind of answer."""
    module, name = _WRITERS.get(kind, (kind, "document"))
    writer: Callable[[Mapping[str, Any]], Document] = getattr(import_module(f"gpucost.render.{module}"), name)
    return writer


def _titled(section: Section, part: str, first: bool) -> Section:
    """Return a section under the name of its part; of several without a title the first bears the name alone."""
    if section.title:
        return replace(section, title=f"{part}: {section.title[0].lower()}{section.title[1:]}")
    return replace(section, title=part if first else "")
