"""Carbon of owning: the energy's, by location and by market, and the making of the hardware."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def operational_kgco2e(
    energy_kwh: Array, grid_kgco2e_per_kwh: Array, carbon_free_fraction: Array
) -> tuple[Array, Array]:
    """Return location-based and market-based emissions of energy (GHG Protocol Scope 2 Guidance, 2015).

    Location: energy × intensity of the grid. Market: what contracts for carbon-free power do not cover.

    >>> located, market = operational_kgco2e(np.array(1000.0), np.array(0.367), np.array(0.5))
    >>> located.item(), market.item()
    (367.0, 183.5)
    """
    located = np.asarray(energy_kwh * grid_kgco2e_per_kwh)
    return located, np.asarray(located * (1 - carbon_free_fraction))


def embodied_kgco2e(nodes: Array, kgco2e_per_node: Array, used_years: Array, life_years: Array) -> Array:
    """Return the share of the making that falls on the years of use: nodes × kg × min(years ÷ life, 1).

    >>> embodied_kgco2e(np.array(8.0), np.array(4000.0), np.array(3.0), np.array(6.0)).item()
    16000.0
    """
    return np.asarray(nodes * kgco2e_per_node * np.minimum(used_years / life_years, 1.0))
