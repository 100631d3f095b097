"""`gpucost.inference(...)`: what serving a model costs per million tokens, on every offer."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from gpucost.api.result import OptionsResult

if TYPE_CHECKING:
    from os import PathLike

    from gpucost.answers.serving import Inference
    from gpucost.catalog import Catalog
    from gpucost.render.document import Document


@dataclass(frozen=True, slots=True)
class InferenceResult(OptionsResult):
    """Ranked options of a deployment, with latency, cost per token and bills."""

    kind: ClassVar[str] = "inference"

    def explain(self) -> str:
        """Return how the first option's figures come about: formulas, numbers, sources."""
        from gpucost.render.text import write

        return write(explanation(cast("Inference", self.payload)), all_sections=True)


def explanation(payload: "Inference") -> "Document":
    """Return the document that explains the first option: its formulas, its step by part, its memory."""
    from gpucost.render.document import Paragraph, Section, Table, columns, document_of

    best, block = payload["options"][0], payload["model"]
    parts = [{"part": name.removesuffix("_s"), "time_ms": 1e3 * value} for name, value in best["components"].items()]
    memory = [{"part": name, "value": value} for name, value in best["memory"].items()]
    return document_of(
        payload,
        f"How {best['provider']} {best['instance_type']} comes to its price",
        Section("What was assumed", [Paragraph(text) for text in payload["said"]]),
        Section("One decode step, by part", [Table(columns("part", "time_ms"), parts)]),
        Section("Memory of one accelerator, GB", [Table(columns("part", "value"), memory)]),
        Section("Numbers", [Table(columns("name", "value", "unit", "source_id:2"), block["inputs"])]),
        Section(
            "Formulas",
            [Table(columns("name", "formula", "value", "unit"), block["derived"]), Paragraph(payload["split_rule"])],
        ),
    )


def inference(model: "str | PathLike[str]", *, catalog: "Catalog | None" = None, **wanted: Any) -> InferenceResult:
    """Return what it costs to serve `model`, on every offer that can, cheapest tokens first.

    Takes what the command takes, with underscores: prompt, output, distribution, requests_per_s, tokens_per_month,
    ttft, tpot, precision, cache, engine, gpu, provider, region, option, as_of, known_as_of, utilisation, profile,
    autoscale, floor, replicas, redundancy, prefix_hit, draft_tokens, acceptance, draft_cost, offload, optimize, top,
    max_age, strict_prices, max_cost. A catalog that is already open is reused.
    """
    from gpucost.serving.run import infer, request_of

    if catalog is None:
        from gpucost.catalog import open_catalog
        from gpucost.serving.request import make_request

        early = make_request(model, as_of=wanted.get("as_of"), known_as_of=wanted.get("known_as_of"))
        catalog = open_catalog(early.as_of, early.known_as_of)
    return InferenceResult(infer(request_of(catalog, model, **wanted), catalog))
