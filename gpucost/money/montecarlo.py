"""Draws of uncertain inputs: stratified, between low and high with typical as the median, some correlated."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BEYOND_TENTHS = 1 / (1 - 0.2**0.5)  # the ends of `quantile` ÷ its 10th and 90th percentile
_FULL = 1 - 1e-12  # a correlation of 1, or −1, of which there is a square root


def quantile(share: Array, low: float, typical: float, high: float) -> Array:
    """Return the quantile of two triangles that meet at `typical`, with half of the probability on each side.

    `typical` is the median, however lopsided the range, so that a sum of many inputs does not drift away from the sum
    of their typical values, as it does when `typical` is the mode of one triangle.

    >>> quantile(np.array([0.0, 0.125, 0.5, 0.875, 1.0]), 0.0, 2.0, 10.0).tolist()
    [0.0, 1.0, 2.0, 6.0, 10.0]
    """
    below = typical - (typical - low) * (1 - np.sqrt(2 * np.minimum(share, 0.5)))
    above = typical + (high - typical) * (1 - np.sqrt(2 * np.minimum(1 - share, 0.5)))
    return np.asarray(np.where(share <= 0.5, below, above), dtype=np.float64)


def draw(
    ranges: Mapping[str, tuple[float, float, float]],
    draws: int,
    seed: int,
    correlations: Mapping[tuple[str, str], float],
) -> dict[str, Array]:
    """Return draws of every input of `ranges` (low, typical, high) by name, with the rank correlations asked for.

    A Latin hypercube: of each input exactly one draw lies in each of `draws` equal strata of its distribution (McKay,
    Beckman & Conover 1979); the ranks come from correlated normals, so that a pair of inputs moves together as stated.

    >>> sample = draw({"x": (0.0, 1.0, 4.0)}, 1000, 1, {})["x"]
    >>> bool(abs(np.median(sample) - 1.0) < 0.01), bool(sample.min() >= 0.0)
    (True, True)
    """
    names = list(ranges)
    if not names:
        return {}
    generator = np.random.default_rng(seed)
    matrix = np.eye(len(names))
    for (first, second), value in correlations.items():
        if first in names and second in names:
            i, j = names.index(first), names.index(second)
            matrix[i, j] = matrix[j, i] = min(max(value, -_FULL), _FULL)
    # The ranks of correlated normals are correlated as asked, but for a little (Iman & Conover 1982); a share within
    # its stratum is drawn apart, which hardly moves the ranks' correlation.
    normal = np.linalg.cholesky(matrix) @ generator.standard_normal((len(names), draws))
    ranks = np.argsort(np.argsort(normal, axis=1), axis=1)
    shares = (ranks + generator.random((len(names), draws))) / draws
    return {name: quantile(row, *ranges[name]) for name, row in zip(names, shares, strict=True)}


def percentiles(values: Array) -> dict[str, float]:
    """Return p10, p50 and p90: the ends of a range that holds 80 %.

    >>> percentiles(np.arange(101.0))
    {'p10': 10.0, 'p50': 50.0, 'p90': 90.0}
    """
    low, middle, high = np.percentile(values, (10, 50, 90))
    return {"p10": float(low), "p50": float(middle), "p90": float(high)}
