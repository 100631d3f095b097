"""`gpucost.estimate(...)`: what a training run costs, on every offer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from gpucost.answers.training import Estimate
from gpucost.api.asking import opened
from gpucost.api.result import OptionsResult, Unabridged
from gpucost.catalog import Catalog
from gpucost.render.document import Document


@dataclass(frozen=True, slots=True, repr=False)
class EstimateResult(OptionsResult):
    """Ranked options of a training run, with their bills."""

    def explanation(self, rank: int = 1) -> Document:
        """Return the document that explains an option, step by step, with formulas, numbers and sources."""
        from gpucost.render.explain import explanation

        return explanation(cast(Estimate, self.payload), rank)

    def explain(self, rank: int = 1) -> str:
        """Return how an option's figures come about."""
        from gpucost.render.text import write

        return write(self.explanation(rank), all_sections=True)


def answer(given: Mapping[str, Any], catalog: Catalog | None = None) -> EstimateResult:
    """Answer from arguments as they were given."""
    from gpucost.training.request import make_request
    from gpucost.training.run import estimate as run

    values, facts = opened("estimate", given, catalog)
    found = run(make_request(**given), facts, with_facts=values["with_facts"])
    if len(found["options"]) == found["options_found"]:
        return EstimateResult(found)
    return EstimateResult(
        found, all_of_it=Unabridged(lambda: run(make_request(**{**given, "top": 0}), facts, with_facts=False), found)
    )
