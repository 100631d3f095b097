"""Energy and carbon of a run: power at the wall of the server, the building's overhead, the grid's intensity."""

import numpy as np
from numpy.typing import NDArray

from gpucost.formula.language import read_inputs, read_tables

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
