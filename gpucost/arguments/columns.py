"""Columns of numbers that were given in Python: lists, arrays, series of a frame."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def numbers(value: Any) -> NDArray[np.float64]:
    """Return numbers as an array; True and False are none, in a column as alone.

    >>> numbers([1, 2.5]), numbers(8)
    (array([1. , 2.5]), array(8.))
    """
    if isinstance(value, (list, tuple)):
        types = set(map(type, value))
    else:
        value = np.asarray(value)
        types = set(map(type, value.flat)) if value.dtype == object else {value.dtype.type}
    if types & {bool, np.bool_}:
        raise TypeError("True and False are no numbers")
    return np.asarray(value, dtype=np.float64)
