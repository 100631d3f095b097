"""What used hardware is worth: curves by age, from anchors or from the fall of the price of performance."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TABLE_YEARS = 20  # formulas look values up by whole years; older hardware keeps the last value


def curve(fractions: Sequence[float]) -> Array:
    """Return value ÷ purchase price at 0, 1, 2 … years from the anchors of years 1, 2 …, and 0 after the last.

    >>> curve([0.75, 0.5])[:4].tolist()
    [1.0, 0.75, 0.5, 0.0]
    """
    values = np.zeros(TABLE_YEARS + 1)
    values[0] = 1.0
    values[1 : len(fractions) + 1] = fractions
    return values


def value_at(values: Array, age_years: float) -> float:
    """Return the value at an age, linear between whole years.

    >>> round(value_at(curve([0.75, 0.5]), 1.5), 6)
    0.625
    """
    return float(np.interp(age_years, np.arange(values.size), values))
