"""Energy and carbon: power at the wall, the building's overhead, the grid's intensity, the making of hardware."""

import numpy as np
from numpy.typing import NDArray

from gpucost.formula.language import read_inputs, read_tables

# --- Energy and carbon of a run: power at the wall of the server, the building's overhead, the grid's intensity.

Floats = NDArray[np.float64]


def server_power_per_gpu_w(tdp_w: Floats, server_to_chip_ratio: Floats, rated_node_power_per_gpu_w: Floats) -> Floats:
    """Return the rated power of a server per GPU: the node's rating where known, else TDP × ratio.

    The ratio is 10.2 kW ÷ 8 ÷ 0.7 kW = 1.82 for a DGX H100 (NVIDIA DGX H100 datasheet); NaN stands for not known.

    >>> nan = np.array([np.nan])
    >>> server_power_per_gpu_w(np.array([700.0]), np.array([1.82]), nan).tolist()
    [1274.0]
    """
    return np.where(np.isfinite(rated_node_power_per_gpu_w), rated_node_power_per_gpu_w, tdp_w * server_to_chip_ratio)


# Training draws about 0.75 of a server's rating (Cottier et al. 2024, "The rising costs of training frontier AI
# models", appendix on energy); emissions are location-based. `drawn_gpu_hours` are hours × the share of the rating.
(ENERGY,) = read_tables(__file__, "energy")
(INPUTS,) = read_inputs(__file__, "inputs")
CONSTANTS = {"w_per_kw": 1000.0}


# --- Carbon of owning: the energy's, by location and by market, and the making of the hardware.

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
