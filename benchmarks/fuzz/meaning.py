"""What no answer may hold: figures that are not finite, costs below zero, ranges out of order, faulty sums."""

import math
from collections.abc import Iterator
from typing import Any

# prices, costs and amounts of an offer, wherever they stand: none of them is a difference
_NEVER_NEGATIVE = {
    *("cost_usd", "cost_low_usd", "cost_high_usd", "usd_per_hour", "usd_per_gpu_hour", "list_usd_per_gpu_hour"),
    *("usd_per_mtok", "usd_per_month", "unit_price_usd", "cash_usd", "exposure_usd", "gpus", "nodes", "gpu_hours"),
    *("days", "days_low", "days_high", "tokens_per_s_per_gpu", "memory_gb", "needed_gb", "energy_kwh", "kgco2e"),
}
_SIGNED = ("bill",)  # lists whose lines may take away: discounts and credits
# what repeats the question or says where its facts come from
_ECHOES = ("request", "asked", "settings", "facts", "claim", "assumptions", "sources", "catalog_version", "file")


def faults_of(answer: Any, path: str = "") -> Iterator[str]:
    """Yield what an answer says that cannot be: a price or cost below zero, a range out of order."""
    if isinstance(answer, float) and not math.isfinite(answer):
        yield f"{path} = {answer} is not finite"
    elif isinstance(answer, dict):
        for key, value in answer.items():
            if key in ("facts", "request", "model", "plan", "checks", *_SIGNED):  # given or claimed, not answered
                continue
            if key in _NEVER_NEGATIVE and isinstance(value, (int, float)) and value < 0:
                yield f"{path}.{key} = {value} below zero"
            yield from faults_of(value, f"{path}.{key}")
        yield from _ranges(answer, path)
        request = answer.get("request")
        most = request.get("max_cost") or request.get("max_cost_usd") if isinstance(request, dict) else None
        for option in answer.get("options", ()) if isinstance(most, (int, float)) else ():
            cost = option.get("cost_usd", option.get("usd_per_month"))
            if isinstance(cost, (int, float)) and cost > most:
                yield f"an option of {cost} is beyond the budget of {most}"
        if (lines := _unsummed(answer)) is not None:
            yield f"{path}.lines add up to {lines}, not to cost_usd {answer['cost_usd']}"
    elif isinstance(answer, list):
        for value in answer:
            yield from faults_of(value, f"{path}[]")


def flat(part: Any, way: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the figures and texts of an answer by their ways, without what repeats the question."""
    if isinstance(part, (dict, list)):
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            if key not in _ECHOES:
                yield from flat(value, f"{way}/{key}")
    else:
        yield way, part


def _unsummed(record: dict[str, Any]) -> float | None:
    """Return what the lines of a bill add up to, where that is not its total."""
    total, lines = record.get("cost_usd"), record.get("lines")
    if not isinstance(total, (int, float)) or not isinstance(lines, list) or not lines:
        return None
    costs = [line.get("cost_usd") for line in lines if isinstance(line, dict)]
    if not all(isinstance(cost, (int, float)) for cost in costs):
        return None
    bill = math.fsum(costs)
    # each line is rounded to a cent, so that each may be half of one off
    return None if math.isclose(bill, total, rel_tol=1e-9, abs_tol=0.005 * len(costs)) else bill


def _ranges(answer: dict[str, Any], path: str) -> Iterator[str]:
    """Yield ranges in which low, typical and high are not in this order."""
    for key, low in answer.items():
        if (not key.startswith("low") and "_low" in key) or key == "low":
            if "_at_" in key or "regret" in key:  # what comes of an end of an input
                continue
            middle = answer.get(key.replace("_low", "") if key != "low" else "value", low)
            high = answer.get(key.replace("low", "high"), middle)
            if all(isinstance(figure, (int, float)) for figure in (low, middle, high)):
                slack = 1e-9 * max(abs(low), abs(high), 1e-12)
                if not low - slack <= middle <= high + slack:
                    yield f"{path}.{key}: {low}, {middle}, {high} are out of order"
