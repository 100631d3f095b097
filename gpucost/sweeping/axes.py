"""Axes: what one argument takes over a sweep, as a list or a range, each value read as a single question reads it."""

import re
from collections.abc import Sequence
from typing import Any

from gpucost.arguments import Argument, flag_of
from gpucost.arguments.kinds import FLAG
from gpucost.arguments.reading import value_of
from gpucost.errors import UsageError
from gpucost.limits import limit
from gpucost.units import as_number, parse_count

_RANGE = re.compile(
    r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)([a-z%]*)\s*:\s*([0-9.]+(?:e[+-]?[0-9]+)?)([a-z%]*)\s*:\s*(?:(x)\s*)?"
    r"([0-9.]+(?:e[+-]?[0-9]+)?)([a-z%]*)\s*",
    re.IGNORECASE,
)
_SLACK = 1e-9


def values_of(argument: Argument, given: Any) -> list[Any]:
    """Return the values of one axis, each checked; a value that is a list itself is joined with |.

    >>> from gpucost.arguments import QUESTIONS
    >>> find = {argument.name: argument for argument in QUESTIONS["estimate"].arguments}
    >>> values_of(find["gpus"], "8:64:x2,100"), values_of(find["gpu"], "h100,a100|b200")
    ([8, 16, 32, 64, 100], ['h100', 'a100,b200'])
    >>> values_of(find["overhead"], "10%:20%:5%"), values_of(find["tokens"], "1b:1t:x10")
    ([0.1, 0.15, 0.2], [1000000000.0, 10000000000.0, 100000000000.0, 1000000000000.0])
    >>> values_of(find["tokens"], "1e9:3e9:1e9")
    [1000000000.0, 2000000000.0, 3000000000.0]
    """
    found: list[Any] = []
    for value in _listed(argument, given):
        spread = _spread(value, flag_of(argument.name)) if isinstance(value, str) else None
        found.extend([value] if spread is None else spread)
    if not found:
        raise UsageError(f"{flag_of(argument.name)}: the list is empty. Give at least one value.")
    return list(dict.fromkeys(checked(argument, found)))


def checked(argument: Argument, values: Sequence[Any]) -> list[Any]:
    """Return values once each was read: numbers as they are meant, the rest as written; None is not said."""
    read = [None if value is None else value_of(argument, value) for value in values]
    return [
        meant if isinstance(meant, (int, float)) and not isinstance(meant, bool) else value
        for value, meant in zip(values, read, strict=True)
    ]


def _listed(argument: Argument, given: Any) -> Sequence[Any]:
    if argument.kind is FLAG and isinstance(given, bool):
        return [given]
    if isinstance(given, str):
        return [word.strip().replace("|", ",") for word in given.split(",") if word.strip()]
    if hasattr(given, "tolist"):
        given = given.tolist()
    return list(given) if isinstance(given, (list, tuple, range, set)) else [given]


def _spread(text: str, what: str) -> list[Any] | None:
    """Return the values of a range START:STOP:STEP or START:STOP:xFACTOR; None where the text is none."""
    match = _RANGE.fullmatch(text)
    if not match:
        return None
    start, first, stop, last, times, step, ending = match.groups()
    if first == last == "%" or (first == last and first.lower() in ("h", "d", "w", "mo", "y", "ms", "s", "%")):
        unit = first
        low, high, by = _number(start, text, what), _number(stop, text, what), _number(step, text, what)
        if ending not in ("" if times else unit, unit):
            raise UsageError(
                f"{what}: the step of {text!r} has another unit. Write it as {start}{unit}:…:{step}{unit}."
            )
    else:
        unit = ""
        low, high = parse_count(start + first, what), parse_count(stop + last, what)
        by = _number(step, text, what) if times else parse_count(step + ending, what)
    numbers = _steps(low, high, by, bool(times), text, what)
    return [f"{number:.12g}{unit}" for number in numbers] if unit else [_plain(number) for number in numbers]


def _steps(low: float, high: float, by: float, times: bool, text: str, what: str) -> list[float]:
    if high < low or by <= (1.0 if times else 0.0) or (times and low <= 0):
        raise UsageError(f"{what}: {text!r} is no range that ends. Write START:STOP:STEP, or START:STOP:x2 to double.")
    most = limit("limit_sweep_values")
    found = [low]
    while len(found) <= most:
        following = low * by ** len(found) if times else low + by * len(found)
        if following > high * (1 + _SLACK):
            return found
        found.append(following)
    raise UsageError(f"{what}: {text!r} has more than {most:,.0f} values. Take a larger step.")


def _number(text: str, whole: str, what: str) -> float:
    try:
        return as_number(text)
    except ValueError:
        raise UsageError(f"{what}: cannot read {text!r} in {whole!r} as a number.") from None


def _plain(number: float) -> int | float:
    near = round(number)
    return near if abs(number - near) <= _SLACK * max(1.0, abs(number)) else float(f"{number:.12g}")
