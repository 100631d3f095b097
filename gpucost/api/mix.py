"""`gpucost.mix(...)`: the cheapest mix of owned, reserved, on-demand and spot capacity."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpucost.api.result import Result
from gpucost.catalog import Catalog
from gpucost.errors import UsageError

_LIMITS = ("budget_usd", "max_owned_gpus", "max_on_demand", "spot_share", "own", "life_months", "gap", "time_limit_s")


@dataclass(frozen=True, slots=True, repr=False)
class MixResult(Result):
    """What to own, reserve and rent, and when."""


def answer(given: Mapping[str, Any], catalog: Catalog | None = None) -> MixResult:
    """Answer from arguments as they were given."""
    from gpucost.api.tco import asked, catalog_on, plan_of, requested
    from gpucost.ownership.mix import answer as planned
    from gpucost.ownership.mix import demand_of

    special, named = asked("mix", {"months": 36, **given})
    catalog = catalog or catalog_on(special.pop("as_of", None), special.pop("known_as_of", None))
    demand, constant, growth, months = (named.pop(name, None) for name in ("demand", "constant", "growth", "months"))
    listed = demand is not None and not isinstance(demand, str)
    curve = by_month(demand) if listed else demand_of(demand, constant, growth, months)
    limits = {name: {**named, **special}[name] for name in _LIMITS if name in named or name in special}
    flags, special = ({k: v for k, v in part.items() if k not in _LIMITS} for part in (named, special))
    request = requested("mix", given) | ({"months": months} if constant is not None else {})
    if listed:
        request["demand"] = curve.tolist()
    return MixResult(planned(catalog, plan_of(catalog, given.get("plan")), flags, special, curve, limits, request))


def by_month(demand: Sequence[float]) -> Any:
    """Return a demand that was given as GPUs by month."""
    import numpy as np

    from gpucost.arguments.columns import numbers

    try:
        curve = numbers(demand)
    except (TypeError, ValueError, OverflowError):
        curve = np.zeros(0)
    if curve.ndim != 1 or curve.size == 0 or not np.isfinite(curve).all() or curve.min() < 0 or curve.max() <= 0:
        raise UsageError("demand: GPUs by month are expected, none negative or missing, not all zero.")
    return curve
