"""Energy and carbon of a run: power at the wall of the server, the building's overhead, the grid's intensity."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

W_PER_KW = 1000.0


def server_power_per_gpu_w(tdp_w: Floats, server_to_chip_ratio: Floats, rated_node_power_per_gpu_w: Floats) -> Floats:
    """Return the rated power of a server per GPU: the node's rating where known, else TDP × ratio.

    The ratio is 10.2 kW ÷ 8 ÷ 0.7 kW = 1.82 for a DGX H100 (NVIDIA DGX H100 datasheet); NaN stands for not known.

    >>> nan = np.array([np.nan])
    >>> server_power_per_gpu_w(np.array([700.0]), np.array([1.82]), nan).tolist()
    [1274.0]
    """
    return np.where(np.isfinite(rated_node_power_per_gpu_w), rated_node_power_per_gpu_w, tdp_w * server_to_chip_ratio)


def energy_kwh(gpu_hours: Floats, rated_power_w: Floats, power_fraction: Floats, pue_ratio: Floats) -> Floats:
    """Return the energy of GPU-hours: rated power × mean fraction drawn × PUE × hours ÷ 1,000.

    Training draws about 0.75 of a server's rating (Cottier et al. 2024, "The rising costs of training frontier AI
    models", appendix on energy). 1,000 GPU-hours of an H100 server at PUE 1.1:

    >>> energy_kwh(np.array([1000.0]), np.array([1275.0]), np.array([0.75]), np.array([1.1])).round(3).tolist()
    [1051.875]
    """
    return gpu_hours * rated_power_w * power_fraction * pue_ratio / W_PER_KW


def carbon_kgco2e(energy_used_kwh: Floats, grid_kgco2e_per_kwh: Floats) -> Floats:
    """Return location-based emissions: energy × intensity of the grid.

    >>> carbon_kgco2e(np.array([1000.0]), np.array([0.367])).tolist()
    [367.0]
    """
    return energy_used_kwh * grid_kgco2e_per_kwh
