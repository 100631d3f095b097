"""What no answer may hold: figures that are not finite, costs below zero, ranges out of order."""

import math
from collections.abc import Iterator
from typing import Any

from gpucost.answers.read import never_negative, unsummed


def faults_of(answer: Any, path: str = "") -> Iterator[str]:
    """Yield what an answer says that cannot be: a price or cost below zero, a range out of order."""
    if isinstance(answer, float) and not math.isfinite(answer):
        yield f"{path} = {answer} is not finite"
    elif isinstance(answer, dict):
        for key, value in answer.items():
            if key in ("facts", "request", "model", "plan", "checks"):  # given or claimed, not answered
                continue
            if isinstance(value, (int, float)) and value < 0 and never_negative(path, answer, key):
                yield f"{path}.{key} = {value} below zero"
            yield from faults_of(value, f"{path}.{key}")
        yield from _ranges(answer, path)
        if (lines := unsummed(answer)) is not None:
            yield f"{path}.lines add up to {lines}, not to cost_usd {answer['cost_usd']}"
    elif isinstance(answer, list):
        for value in answer:
            yield from faults_of(value, f"{path}[]")


def _ranges(answer: dict[str, Any], path: str) -> Iterator[str]:
    """Yield ranges in which low, typical and high are not in this order."""
    for key, low in answer.items():
        if (not key.startswith("low") and "_low" in key) or key == "low":
            if "_at_" in key or "regret" in key:  # what comes of an end of an input
                continue
            middle = answer.get(key.replace("_low", "") if key != "low" else "value", low)
            high = answer.get(key.replace("low", "high"), middle)
            if all(isinstance(one, (int, float)) for one in (low, middle, high)):
                slack = 1e-9 * max(abs(low), abs(high), 1e-12)
                if not low - slack <= middle <= high + slack:
                    yield f"{path}.{key}: {low}, {middle}, {high} are out of order"
