"""What servers are worth by their age: the shipped curve or one's own, as far as a value is stated for an age."""

from collections.abc import Mapping
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.errors import UsageError
from gpucost.money import residual
from gpucost.ownership.plan import Assumption, Registry, changes_of

Array = NDArray[np.float64]


def resale_by_year(
    registry: Registry,
    assumptions: Mapping[str, Assumption],
    special: Mapping[str, Any],
    scenarios: Mapping[str, Mapping[str, Any]],
) -> Array:
    """Return resale values by age; where one is given for an age beyond the last, the last holds until then."""
    shipped = [registry.fact(f"residual_value.year_{year}")["typical"] for year in range(1, 7)]
    anchors = special.get("residual_by_year") or special.get("residual_curve") or shipped
    at, basis = assumptions["residual_at_years"], assumptions["residual_basis"]
    others = [changes_of(entries, f"scenario {name}") for name, entries in scenarios.items()]
    if "given" not in (basis.value, *(changes.get(basis.name) for changes in others)):
        return residual.curve(anchors[: residual.TABLE_YEARS])
    stated = [at.value, at.low, at.high, *(changes.get(at.name) for changes in others)]
    ages = [registry.number(at.name, age, "scenarios") for age in stated if age is not None]
    if basis.value == "given":
        anchors = [*anchors, *[anchors[-1]] * (ceil(max(ages)) - len(anchors))]
    table = residual.curve(anchors[: residual.TABLE_YEARS])
    if worthless := [age for age in ages if residual.value_at(table, age) <= 0]:
        raise UsageError(
            f"residual_fraction: the resale values by year are zero at {worthless[0]:g} years, and no factor turns zero"
            " into another value. Give residual_by_year with the value at that age, or leave residual_fraction out."
        )
    return table
