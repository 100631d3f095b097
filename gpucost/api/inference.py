"""`gpucost.inference(...)`: what serving a model costs per million tokens, on every offer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from gpucost.answers.serving import Inference
from gpucost.api.asking import opened
from gpucost.api.result import OptionsResult, Unabridged
from gpucost.catalog import Catalog
from gpucost.render.document import Document, Paragraph, Section, Table, columns, document_of
from gpucost.render.offers import CAUSES, serving_causes


@dataclass(frozen=True, slots=True, repr=False)
class InferenceResult(OptionsResult):
    """Ranked options of a deployment, with latency, cost per token and bills."""

    def explanation(self) -> Document:
        """Return the document that explains the first option."""
        return explanation(cast(Inference, self.payload))


def explanation(payload: Inference) -> Document:
    """Return the document that explains the first option: its range by cause, formulas, step by part, memory."""
    best, block = payload["options"][0], payload["model"]
    parts = [{"part": name.removesuffix("_s"), "time_ms": 1e3 * value} for name, value in best["components"].items()]
    memory = [{"part": name, "value": value} for name, value in best["memory"].items()]
    return document_of(
        payload,
        f"How {best['provider']} {best['instance_type']} comes to its price",
        Section("What was assumed", [Paragraph(text) for text in payload["said"]]),
        Section("Where the range of a month comes from", [Table(CAUSES, serving_causes(best))]),
        Section("One decode step, by part", [Table(columns("part", "time_ms"), parts)]),
        Section("Memory of one accelerator, GB", [Table(columns("part", "value"), memory)]),
        Section("Numbers", [Table(columns("name", "value", "unit", "source_id:2"), block["inputs"])]),
        Section(
            "Formulas",
            [Table(columns("name", "formula", "value", "unit"), block["derived"]), Paragraph(payload["split_rule"])],
        ),
    )


def answer(given: Mapping[str, Any], catalog: Catalog | None = None) -> InferenceResult:
    """Answer from arguments as they were given."""
    from gpucost.serving.run import infer, request_of

    _, facts = opened("inference", given, catalog)
    found = infer(request_of(facts, **given), facts)
    return InferenceResult(
        found, all_of_it=Unabridged(lambda: infer(request_of(facts, **{**given, "top": 0}), facts), found)
    )
