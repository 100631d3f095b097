"""How much of anything is read, run or written: each bound with its reason, in one table; a setting raises it."""

import csv
import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from gpucost.errors import UsageError


class Limit(NamedTuple):
    """A bound: its usual value, the most that a setting may raise it to, its unit and why it stands."""

    value: float
    most: float
    unit: str
    reason: str


def _read() -> Iterator[tuple[str, Limit]]:
    """Yield the bounds of limits.csv; the gate, which reads every other table, is bounded by them."""
    with open(Path(__file__).with_suffix(".csv"), encoding="utf-8", newline="") as file:
        for name, value, most, *words in islice(csv.reader(file, strict=True), 1, None):
            yield name, Limit(_number(value), _number(most), *words)


def _number(text: str) -> float:
    return float(text) if "e" in text else int(text)


LIMITS = dict(_read())


def of_environment(name: str) -> object:
    """Return what a variable of the environment says of a limit: GPUCOST_LIMIT_…, or None."""
    return os.environ.get(f"GPUCOST_{name.upper()}")


raised: Callable[[str], object] = of_environment  # the settings put themselves here once they are imported


def limit(name: str, asked: object = None, flag: str = "") -> float:
    """Return a bound: what was asked for, else the setting, else the usual one; above zero and not beyond the most.

    An error names the `flag` that it was asked for with, else the setting.

    >>> limit("limit_query_seconds"), limit("limit_query_seconds", "60")
    (15, 60.0)
    """
    bound = LIMITS[name]
    asked = raised(name) if asked is None else asked
    if asked is None:
        return bound.value
    try:
        number = float(str(asked))
    except ValueError:
        number = 0.0
    if not 0 < number <= bound.most:
        raise UsageError(
            f"{flag or name}: {str(asked)[:40]!r} is no number above 0 and up to {bound.most:,.0f} {bound.unit};"
            f" the usual one is {bound.value:,.0f} ({bound.reason})."
        )
    return number
