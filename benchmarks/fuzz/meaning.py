"""What no answer may hold: figures that are not finite, costs below zero, ranges out of order."""

import math
from collections.abc import Iterator
from typing import Any

from gpucost.answers.read import SIGNED


def faults_of(answer: Any, path: str = "") -> Iterator[str]:
    """Yield what an answer says that cannot be: a price or cost below zero, a range out of order."""
    if isinstance(answer, float) and not math.isfinite(answer):
        yield f"{path} = {answer} is not finite"
    elif isinstance(answer, dict):
        for key, value in answer.items():
            if key in ("facts", "request", "model", "plan", "checks"):  # given or claimed, not answered
                continue
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                is_cost = key.endswith(("_usd", "_usd_per_gpu_hour", "usd_per_mtok")) or key.startswith("usd_per_")
                if (
                    is_cost
                    and value < 0
                    and not SIGNED.search(f"{path}.{key} {answer.get('name')} {answer.get('line')}")
                ):
                    yield f"{path}.{key} = {value} below zero"
            yield from faults_of(value, f"{path}.{key}")
        yield from _ranges(answer, path)
        yield from _sums(answer, path)
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


def _sums(answer: dict[str, Any], path: str) -> Iterator[str]:
    """Yield a total that its lines do not add up to."""
    lines, total = answer.get("lines"), answer.get("cost_usd")
    if isinstance(total, (int, float)) and isinstance(lines, list) and lines:
        costs: list[Any] = [line.get("cost_usd") for line in lines if isinstance(line, dict)]
        if all(isinstance(cost, (int, float)) for cost in costs) and not math.isclose(
            math.fsum(costs), total, rel_tol=1e-9, abs_tol=0.005 * len(costs)
        ):
            yield f"{path}.lines add up to {math.fsum(costs)}, not to cost_usd {total}"
