"""How the use of a cluster moves: a ramp, seasons and steps, as shares of the stated utilisation by month."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpucost.arguments.kinds import whole
from gpucost.errors import UsageError
from gpucost.money import rent_paths
from gpucost.units import parse_fraction, share_in

Array = NDArray[np.float64]

_MONTHS = whole(1, 1200)

HOW = (
    "Write parts as ramp 20% over 6 months; from month 25: 120%; seasons 80% 90% … (12 shares, from the first month); "
    "or name a CSV with the columns month and use."
)


def use_by_month(text: str | None, months: int, folder: Path = Path()) -> Array:
    """Return the path: parts multiply, and what nothing is said of is the stated utilisation.

    >>> use_by_month("ramp 50% over 2 months; from month 4: 120%", 5).tolist()
    [0.5, 0.75, 1.0, 1.2, 1.2]
    """
    path = np.ones(months)
    if text is None:
        return path
    if Path(text).suffix.lower() == ".csv":
        return rent_paths.read_curve(folder / text, months, "use")
    month = np.arange(months)
    parts = [part.strip().lower() for part in text.split(";") if part.strip()]
    for part in parts or [text]:
        if ramp := re.fullmatch(r"ramp (?:from )?(\S+) over (\d+) months?", part):
            start, length = _share(ramp[1]), _MONTHS.read(ramp[2], "use_path")
            path *= start + (1 - start) * np.minimum(month / length, 1)
        elif step := re.fullmatch(r"from month (\d+):? (\S+)", part):
            path[_MONTHS.read(step[1], "use_path") - 1 :] *= _share(step[2])
        elif seasons := re.fullmatch(r"seasons((?: \S+){12})", part):
            path *= np.array([_share(share) for share in seasons[1].split()])[month % 12]
        else:
            raise UsageError(f"use_path: cannot read {part[:60]!r}. {HOW}")
    return path


def _share(text: str) -> float:
    """Read a share of the stated utilisation, which may be beyond it."""
    number = share_in(text) if re.fullmatch(r"\d+(\.\d+)?%", text) else parse_fraction(text, "use_path")
    if not 0 <= number <= 100:
        raise UsageError(f"use_path: {text[:20]!r} is not a share of the stated utilisation.")
    return number
