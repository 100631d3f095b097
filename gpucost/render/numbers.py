"""How a value is written for a person: one rule per unit, shared by every medium, so that figures never differ."""

import math
from functools import lru_cache
from typing import Any

from gpucost.errors import visible as visible
from gpucost.gate import beside
from gpucost.render.json import SIGNIFICANT_DIGITS
from gpucost.units import SUFFIX_UNITS, format_count, unit_of

MISSING = "–"
_ACRONYMS, _HEADINGS, _SHORT_UNITS = (
    {key: shown for kind, key, shown in beside(__file__, "words")[1:] if kind == of}
    for of in ("word", "heading", "unit")
)  # of the words of a key, of a whole key, of a unit


_ENDS = ("_low", "_high", "_input", "_output")  # which end of a range or side of a price a figure is


@lru_cache(maxsize=4096)
def measure_of(key: str) -> str:
    """Return the unit of a key, by its suffix before the end of a range or the side of a price.

    >>> measure_of("tpot_ms_high"), measure_of("usd_per_mtok_input"), measure_of("gpus")
    ('milliseconds', 'USD per million tokens', '')
    """
    found = unit_of(key)
    for end in _ENDS:
        found = found or (unit_of(key.removesuffix(end)) if key.endswith(end) else "")
    return found


def heading_of(key: str) -> str:
    """Turn a key into a heading without its unit.

    >>> heading_of("npv_usd"), heading_of("gpu_hours"), heading_of("cost_usd")
    ('NPV', 'GPU hours', 'cost')
    """
    if key in _HEADINGS:
        return _HEADINGS[key]
    if key in SUFFIX_UNITS and key.startswith("usd"):
        return "cost"
    words = key
    for suffix in sorted(SUFFIX_UNITS, key=len, reverse=True):
        if key.endswith("_" + suffix) and suffix not in ("hours", "days", "months", "years", "tokens", "on", "from"):
            words = key[: -len(suffix) - 1]
            break
    return " ".join(_ACRONYMS.get(word, word) for word in words.split("_") if word)


def short_unit(unit: str) -> str:
    """Return the unit as a heading shows it."""
    return _SHORT_UNITS.get(unit, unit)


def format_value(value: Any, unit: str = "") -> str:
    """Write one value for a person, by its unit; a missing value is a dash, never a zero.

    >>> format_value(38214.4, "USD"), format_value(0.4123, "fraction of one"), format_value(None, "USD")
    ('38,214', '41.2%', '–')
    >>> format_value(-0.0001, "fraction of one"), format_value(0.1081, "USD per million tokens")
    ('0.0%', '0.108')
    >>> format_value(1.6449999999999998, "USD per GPU-hour")  # as a saved answer holds it: 1.645
    '1.65'
    """
    if type(value) is str:
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(format_value(item) for item in value)
    if isinstance(value, dict):
        return " ".join(f"{key}={format_value(item)}" for key, item in value.items())
    if not isinstance(value, (int, float)):
        return str(value)
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if isinstance(value, float):
        value = float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    return _format_number(value, unit)


def _format_number(value: float, unit: str) -> str:
    if unit == "fraction of one":
        return f"{round(100 * value, 1) + 0.0:.1f}%"  # what rounds to nothing has no sign
    if unit == "USD":
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
    if unit.startswith("USD per"):
        cents = 1 if unit == "USD per million tokens" else 0.1  # tokens cost cents: three digits tell them apart
        return f"{value:,.2f}" if abs(value) >= cents or value == 0 else f"{value:.3g}"
    if unit in ("tokens", "FLOP") and abs(value) >= 10_000:
        return format_count(value)
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if abs(value) >= 1000 or (value == int(value) and abs(value) >= 100):
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:,.1f}"
    if abs(value) >= 0.01 or value == 0:
        return f"{value:.3g}"
    return f"{value:.2e}"


def format_named(key: str, value: Any) -> str:
    """Write the value of a named quantity with its unit.

    >>> format_named("cost_usd", 1234.5), format_named("mfu_fraction", 0.4), format_named("days", 12.34)
    ('$1,234', '40.0%', '12.3 days')
    """
    return amount(value, unit_of(key))


def amount(value: Any, unit: str) -> str:
    """Write a value with its unit; a short time in milliseconds or microseconds.

    >>> amount(0.177, "seconds"), amount(0.00913, "seconds"), amount(2.4e-6, "seconds")
    ('0.177 s', '9.13 ms', '2.4 µs')
    """
    text = figure(value, unit)
    return text if text.endswith("s") and unit == "seconds" else with_unit(text, unit)


def figure(value: Any, unit: str) -> str:
    """Write a value whose unit is said elsewhere; a time too short to be read in seconds says its own.

    >>> figure(0.177, "seconds"), figure(0.00913, "seconds"), figure(38214.4, "USD")
    ('0.177', '9.13 ms', '38,214')
    """
    if unit == "seconds" and isinstance(value, float) and 0 < value < 0.1:
        return f"{format_value(value * 1e3)} ms" if value >= 1e-4 else f"{format_value(value * 1e6)} µs"
    return format_value(value, unit)


def with_unit(text: str, unit: str) -> str:
    """Put the unit beside a formatted number."""
    short = short_unit(unit)
    if text == MISSING or not short or short == "%":
        return text
    if short.startswith("$"):
        sign = "-" if text.startswith("-") else ""
        return f"{sign}${text.lstrip('-')}{short[1:]}"
    return f"{text} {short}"
