"""`gpucost.mix(...)`: the cheapest mix of owned, reserved, on-demand and spot capacity."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gpucost.api.result import Result

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

_LIMITS = ("budget_usd", "max_owned_gpus", "max_on_demand", "spot_share", "own", "life_months")


@dataclass(frozen=True, slots=True)
class MixResult(Result):
    """What to own, reserve and rent, and when."""

    kind: ClassVar[str] = "mix"
    rows_key: ClassVar[str] = "months"


def mix(
    demand: str | Sequence[float] | None = None,
    *,
    constant: float | None = None,
    growth: float | str | None = None,
    months: int = 36,
    gpu: str | None = None,
    plan: str | Mapping[str, Any] | None = None,
    as_of: str | None = None,
    catalog: "Catalog | None" = None,
    **inputs: Any,
) -> MixResult:
    """Return the cheapest mix for a demand: a CSV (month, gpus), a sequence by month, or a constant that grows.

    Takes the limits budget_usd, max_owned_gpus, max_on_demand, spot_share, own (False rents only) and life_months, and
    any input of `gpucost.tco` by name.
    """
    import numpy as np

    from gpucost.api.tco import asked, catalog_on, read
    from gpucost.errors import UsageError
    from gpucost.ownership.mixing import answer, demand_of

    catalog = catalog or catalog_on(as_of)
    if demand is None or isinstance(demand, str):
        curve = demand_of(demand, constant, growth, months)
    else:
        curve = np.asarray(demand, dtype=np.float64)
        if curve.size == 0 or not np.isfinite(curve).all() or curve.min() < 0 or curve.max() <= 0:
            raise UsageError("demand: GPUs by month are expected, none negative or missing, not all zero.")
    limits = {name: value for name, value in inputs.items() if name in _LIMITS and value is not None}
    special, flags, request = asked(gpu=gpu, **{name: value for name, value in inputs.items() if name not in _LIMITS})
    shown = demand if demand is None or isinstance(demand, str) else [float(value) for value in demand]
    request = {"demand": shown, "constant": constant, "growth": growth, "months": int(curve.size), **request, **limits}
    request = {name: value for name, value in request.items() if value is not None}
    return MixResult(answer(catalog, read(catalog, plan), flags, special, curve, limits, request))
