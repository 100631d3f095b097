"""Many requests at once: every combination of given values, one physics call, one pricing call, one row each.

Row i equals the single estimate of request i exactly: both run the same code over arrays, of which no row depends
on another.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, cast

from gpucost import __version__
from gpucost.answers.common import frame
from gpucost.answers.training import Sweep, SweepRow
from gpucost.catalog.calibrations import training_calibration
from gpucost.errors import UsageError
from gpucost.training import answer
from gpucost.training.rank import rank
from gpucost.training.request import TrainingRequest, make_request
from gpucost.training.run import make_problem, nothing, select
from gpucost.training.search import search

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

COLUMNS = (
    "provider",
    "instance_type",
    "region",
    "option",
    "gpu",
    "gpus",
    "nodes",
    "tokens_per_s_per_gpu",
    "mfu_fraction",
    "days",
    "days_low",
    "days_high",
    "gpu_hours",
    "usd_per_gpu_hour",
    "cost_usd",
    "cost_low_usd",
    "cost_high_usd",
    "usd_per_mtok",
    "energy_kwh",
    "kgco2e",
    "price_observed_on",
    "age_days",
)


def grid(**axes: Any) -> list[TrainingRequest]:
    """Return a request for every combination; a list is an axis, anything else holds for all.

    >>> [request.tokens for request in grid(model="8b", tokens=["1b", "2b"])]
    [1000000000.0, 2000000000.0]
    """
    lists = {name: list(value) if isinstance(value, (list, tuple)) else [value] for name, value in axes.items()}
    return [make_request(**dict(zip(lists, values, strict=True))) for values in product(*lists.values())]


def sweep(requests: Sequence[TrainingRequest], catalog: "Catalog") -> Sweep:
    """Return the first option of every request, or the reason why there is none."""
    if not requests:
        raise UsageError("a sweep needs at least one request.")
    if any(request.pool != requests[0].pool for request in requests):
        raise UsageError("a sweep takes one --pool file for all of its requests.")
    chosen = [select(request, catalog) for request in requests]
    market = chosen[0][0]
    architectures = tuple(catalog.architecture(request.model) for request in requests)
    problem = make_problem(
        tuple(requests), architectures, market, tuple(mask for _, mask in chosen), training_calibration(catalog)
    )
    cases, judged = search(problem)
    rows: list[SweepRow] = []
    for number, request in enumerate(requests):
        own = judged[cases.request[judged] == number]
        order = rank(problem, cases, number, own)
        found: Mapping[str, Any]
        if len(order):
            best = answer.option(problem, market.facts, cases, int(order[0]), 1)
            found = {**{name: value for name, value in best.items() if name in COLUMNS}, "reason": None}
        else:
            found = {**dict.fromkeys(COLUMNS), "reason": str(nothing(problem, cases, request, own))}
        asked = {"model": request.model, "tokens": request.tokens, **_asked(request)}
        rows.append(cast(SweepRow, {**asked, **found}))
    return {
        "kind": "sweep",
        "gpucost_version": __version__,
        **frame({"requests": len(requests)}, market.facts.as_of, market.facts.catalog_version),
        "lead": f"{len(rows):,} cases.",
        "rows": rows,
        "warnings": [],
        "sources": {},
    }


def _asked(request: TrainingRequest) -> dict[str, Any]:
    """Return what tells the requests of a sweep apart."""
    return {
        "asked_gpu": request.gpu,
        "asked_gpus": request.gpus,
        "deadline_days": request.deadline_days,
        "precision": request.precision,
        "method": request.method,
    }
