"""Money in charts: one rule for every axis, label, tooltip and slider, in whatever draws them.

At most three significant digits, plain below a thousand, then k, M, B and T: $0.04, $600, $12.6k, $3.4M. A prefix below
one (m, µ) is never written, because a reader takes $600m for millions. `gpucost/page/assets/page.js` has the rule too.
"""

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

DIGITS = 3
_PREFIXES = ("", "k", "M", "B", "T")


def is_money(unit: str) -> bool:
    """Return whether a unit counts dollars, whatever they are paid for."""
    return unit.startswith("USD")


def money_text(value: float, digits: int = DIGITS) -> str:
    """Write an amount of dollars as a chart shows it.

    >>> [money_text(usd) for usd in (0.04, 600, 12_580, 3.4e6, -0.384130893, 999.9, 0, 1e-6)]
    ['$0.04', '$600', '$12.6k', '$3.4M', '-$0.384', '$1k', '$0', '$0.000001']
    """
    # rounded before the prefix is chosen: $999.9 is $1k, not $1000
    rounded = abs(float(f"{value:.{digits}g}"))
    power = min(int(math.log10(rounded)) // 3, len(_PREFIXES) - 1) if rounded >= 1000 else 0
    plain = format(Decimal(f"{rounded / 1000**power:.{digits}g}"), "f")
    return f"{'-' if value < 0 < rounded else ''}${plain}{_PREFIXES[power]}"


def money_expression(value: str, digits: int = DIGITS) -> str:
    """Return the expression of Vega that writes the value of another one by the same rule."""
    turn = 1000 - 0.5 * 10.0 ** (3 - digits)  # from here on it is written as a thousand
    # d3's SI prefix for 1e9 is G; money is counted in billions
    large = f"replace(format({value}, '$.{digits}~s'), 'G', 'B')"
    return f"(abs({value}) < {turn!r} ? format({value}, '$,.{digits}~r') : {large})"


def digits_between(values: Iterable[Any]) -> int:
    """Return how many digits tell the ticks of an axis apart: three, unless all it shows lies close together.

    >>> digits_between([0, 1_234_567]), digits_between([1_230_000, 1_235_000])
    (3, 5)
    """
    figures = [abs(value) for value in values if isinstance(value, (int, float)) and math.isfinite(value)]
    span = max(figures, default=0.0) - min(figures, default=0.0)
    # the digits that all values have in common, and two in which they differ
    return max(DIGITS, math.ceil(math.log10(max(figures) / span)) + 2) if span > 0 else DIGITS
