"""Effects that add up: causes change one after the other, or parts stand side by side; the last digit is kept."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Context, Decimal
from math import isfinite
from typing import Any, NamedTuple

from gpucost.answers.comparison import Change

Values = Mapping[str, Any]
_EVERY_DIGIT = Context(prec=400)  # of any double, to the last that is told
REST = "the rest"  # what the factors leave: rounding, and what another version computed otherwise


class Cause(NamedTuple):
    """Factors that change together: what a reader calls them, and the one whose values are shown."""

    name: str
    shown: str
    factors: tuple[str, ...]


def in_turn(
    before: Values,
    after: Values,
    causes: Iterable[Cause],
    figure: Callable[[Values], float],
    ends: tuple[float, float],
    digits: int = 2,
) -> list[Change]:
    """Change one cause after the other, in their order, and return what each does to the figure.

    effectᵢ = figure after causes 1 … i − figure after causes 1 … i−1. Each figure is rounded first, so that the effects
    add up to the difference of `ends` to the last digit; what the figure cannot explain of it stands as the rest. A
    cause that alone leaves no figure waits until others have changed.

    >>> cost = lambda run: run["hours"] * run["price"]
    >>> causes = [Cause("time", "hours", ("hours",)), Cause("price", "price", ("price",))]
    >>> rows = in_turn({"hours": 10, "price": 2}, {"hours": 8, "price": 3}, causes, cost, (20, 24))
    >>> [(row["factor"], row["effect"]) for row in rows]
    [('time', -4.0), ('price', 8.0)]
    """
    current, rows, waiting = dict(before), list[Change](), list[Cause]()
    start = last = _rounded(figure(current), digits)

    def moved(cause: Cause) -> list[str]:
        return [name for name in cause.factors if current.get(name) != after.get(name)]

    def taken(cause: Cause, names: Sequence[str]) -> bool:
        nonlocal current, last
        tried = current | {name: after.get(name) for name in names}
        if not isfinite(value := figure(tried)):
            return False
        current, now, shown = tried, _rounded(value, digits), cause.shown if cause.shown in names else names[0]
        rows.append(change(cause.name, shown, before.get(shown), after.get(shown), now - last))
        last = now
        return True

    for cause in causes:
        if not (names := moved(cause)):
            continue
        if not taken(cause, names):  # a price by another rule waits for what the rule reads
            waiting.append(cause)
            continue
        while ready := next((one for one in waiting if taken(one, moved(one))), None):
            waiting.remove(ready)
    if waiting and not taken(waiting[0], [name for one in waiting for name in moved(one)]):
        raise ArithmeticError("no finite figure")
    return [*rows, *_rest(ends, last - start, digits)]


def side_by_side(before: Values, after: Values, ends: tuple[float, float], digits: int = 2) -> list[Change]:
    """Return what each part of a sum adds to the difference; a part that only one side has counts from nothing.

    >>> rows = side_by_side({"a": 1.0, "b": 2.0}, {"a": 1.5, "c": 1.0}, (3.0, 2.5))
    >>> [(row["factor"], row["effect"]) for row in rows]
    [('a', 0.5), ('b', -2.0), ('c', 1.0)]
    """
    rows, told = list[Change](), Decimal(0)
    for name in dict.fromkeys([*before, *after]):
        effect = _rounded(after.get(name) or 0.0, digits) - _rounded(before.get(name) or 0.0, digits)
        told += effect
        if effect:
            rows.append(change(name, name, before.get(name), after.get(name), effect))
    return [*rows, *_rest(ends, told, digits)]


def difference(ends: tuple[float, float], digits: int = 2) -> float:
    """Return the difference of two figures as the effects add up to it."""
    return float(_rounded(ends[1], digits) - _rounded(ends[0], digits))


def change(factor: str, name: str, before: Any, after: Any, effect: Decimal, note: str = "") -> Change:
    """Return one effect."""
    return {
        "factor": factor,
        "name": name,
        "before": before,
        "after": after,
        "effect": float(effect),
        "note": note,
    }


def _rest(ends: tuple[float, float], told: Decimal, digits: int) -> Sequence[Change]:
    left = Decimal(str(difference(ends, digits))) - told
    words = "rounding, or another version of the formulas"
    return [change(REST, "", None, None, left, words)] if left else []


def _rounded(value: float, digits: int) -> Decimal:
    if not isfinite(value):
        raise ArithmeticError("no finite figure")
    return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), context=_EVERY_DIGIT)
