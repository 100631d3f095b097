"""Demand over a day, and how many replicas are on at each hour."""

import os

import numpy as np
from numpy.typing import NDArray

from gpucost.errors import DataError, UsageError
from gpucost.gate import read_rows, shown
from gpucost.units import as_number

Floats = NDArray[np.float64]

HOURS = (24, 168)
# Assumed shapes; an own profile is a CSV file with 24 or 168 numbers. `consumer`: a service of one continent, its
# evening peak twice the mean; `office`: working hours of one time zone, a tenth of the load outside them.
PROFILES: dict[str, tuple[float, ...]] = {
    "flat": (1.0,) * 24,
    "office": (1.0,) * 8 + (5.0, 9.0, 10.0, 10.0, 8.0, 9.0, 10.0, 10.0, 9.0, 6.0) + (2.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "consumer": (3, 2, 1.5, 1, 1, 1.2, 2, 3, 4, 5, 5.5, 6, 6, 6, 6, 6, 6.5, 7, 8, 9, 9.5, 9, 7, 5),
}


def profile_of(name: str) -> Floats:
    """Return the hourly weights of a profile, with a mean of one: a known name, or a file of 24 or 168 numbers.

    >>> float(profile_of("flat").mean()), len(profile_of("office"))
    (1.0, 24)
    """
    weights = np.array(PROFILES[name] if name in PROFILES else read_profile(name), dtype=np.float64)
    shares: Floats = weights / weights.mean()
    return shares


def read_profile(path: str) -> list[float]:
    """Read the weights of a file: one number per cell, 24 for a day or 168 for a week."""
    if not os.path.exists(path):
        raise UsageError(f"--profile: {shown(path)} is neither a file nor one of {', '.join(PROFILES)}.")
    cells = [(line, cell) for line, row in read_rows(path) for cell in row if cell]
    numbers = []
    for index, (line, cell) in enumerate(cells):
        try:
            numbers.append(as_number(cell))
        except ValueError:
            if index == 0:
                continue  # a heading
            raise DataError(f"{shown(cell)} is not a number", file=path, row=line) from None
    if len(numbers) not in HOURS:
        raise DataError(f"holds {len(numbers)} numbers; a profile has 24 (a day) or 168 (a week)", file=path)
    if min(numbers) < 0 or max(numbers) <= 0 or not np.isfinite(numbers).all():
        raise DataError("weights must be zero or more, finite, and not all zero", file=path)
    return numbers


def replicas_by_hour(mean_rate: Floats, capacity: Floats, profile: Floats, floor: int) -> Floats:
    """Return the replicas that each hour of the profile needs: ⌈rate · weight ÷ capacity⌉, at least `floor`.

    10 requests/s on replicas of 4: 3. The result has the hours as its last axis.

    >>> replicas_by_hour(np.array([10.0]), np.array([4.0]), np.array([1.0]), 1).tolist()
    [[3.0]]
    """
    needed = np.ceil(mean_rate[..., None] * profile / capacity[..., None] - 1e-9)
    return np.maximum(needed, floor)
