"""`gpucost.estimate(...)`: what a training run costs, on every offer."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from gpucost.api.result import OptionsResult

if TYPE_CHECKING:
    from os import PathLike

    from gpucost.answers.training import Estimate
    from gpucost.catalog import Catalog


@dataclass(frozen=True, slots=True)
class EstimateResult(OptionsResult):
    """Ranked options of a training run, with their bills."""

    kind: ClassVar[str] = "estimate"

    def explain(self, rank: int = 1) -> str:
        """Return how an option's figures come about, step by step, with formulas, numbers and sources."""
        from gpucost.render.explain import explanation
        from gpucost.render.text import write

        return write(explanation(cast("Estimate", self.payload), rank), all_sections=True)


def estimate(
    model: "str | PathLike[str]",
    tokens: str | float,
    *,
    catalog: "Catalog | None" = None,
    with_facts: bool = True,
    **wanted: Any,
) -> EstimateResult:
    """Return what it costs to train `model` on `tokens`, on every offer that can do it, best first.

    Takes what the command takes, with underscores: gpus, gpu, provider, region, option, deadline, max_cost, sequence,
    global_batch, precision, method, lora_rank, lora_targets, epochs, as_of, known_as_of, optimize, top, max_age,
    strict_prices, commitment, evaluation, experiments, pool, pool_view. A catalog that is already open is reused.
    `with_facts` embeds the facts that `gpucost rerun` needs.
    """
    from gpucost.training.request import make_request
    from gpucost.training.run import estimate as run

    request = make_request(model, tokens, **wanted)
    if catalog is None:
        from gpucost.catalog import open_catalog

        catalog = open_catalog(request.as_of, request.known_as_of)
    return EstimateResult(run(request, catalog, with_facts=with_facts))
