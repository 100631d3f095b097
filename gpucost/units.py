"""Constants, human quantities and the table of unit suffixes that every dimensional name ends in."""

import json
import math
import re
from calendar import monthrange
from collections.abc import Mapping
from datetime import MAXYEAR, date
from functools import cache
from typing import Any, TypeVar

from gpucost.errors import UsageError
from gpucost.gate import beside, shown

Day = TypeVar("Day", bound=date)

# A year has 365 days everywhere, and a month a twelfth of it, 730 hours: so do clouds turn hourly prices into monthly
# ones. Leap days are left out, as a day more in four years is less than any price is known to.
HOURS_PER_DAY = 24.0
HOURS_PER_WEEK = 168.0
DAYS_PER_YEAR = 365.0
HOURS_PER_YEAR = 8760.0
HOURS_PER_MONTH = 730.0
SECONDS_PER_HOUR = 3600.0
SECONDS_PER_DAY = 86400.0
MONTHS_PER_YEAR = 12
DAYS_PER_MONTH = DAYS_PER_YEAR / MONTHS_PER_YEAR
GB = 1e9  # what makers of memory, disks and networks sell
GIB = 2.0**30  # what drivers and operating systems report
MS_PER_S = 1e3
TERA, GIGA, MILLI, MICRO, NANO = 1e12, 1e9, 1e-3, 1e-6, 1e-9
BITS_PER_BYTE = 8.0

SUFFIX_UNITS = dict(beside(__file__, "units")[1:])
SMALLEST = 1e-9  # what lies below it, but for 0 itself, is a slip, and a division by it no figure
# Both ways of writing a thousand millions: b as in the names of models, g as in units. A quadrillion is 1e15.
_MULTIPLIERS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12, "q": 1e15}
_BYTES = re.compile(r"([0-9][0-9_,.]*(?:e[+-]?[0-9]+)?)\s*([kmgtp])(i?)b(?:ytes?)?", re.IGNORECASE)
_QUANTITY = re.compile(r"((?:[0-9][0-9_,]*(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?)\s*([a-z]*)", re.IGNORECASE)
# Groups of three digits behind one to three that do not begin with 0: 0,350 is a European decimal.
_THOUSANDS = re.compile(r"\s*[-+]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:[^0-9,][^,]*)?")
_DURATION_DAYS = {"": 1.0, "h": 1 / 24, "d": 1.0, "w": 7.0, "mo": DAYS_PER_MONTH, "y": DAYS_PER_YEAR}
_DURATION_DAYS |= {
    word + plural: _DURATION_DAYS[word[:letters]]
    for word, letters in (("hour", 1), ("day", 1), ("week", 1), ("month", 2), ("year", 1))
    for plural in ("", "s")
}


@cache
def unit_of(name: str) -> str:
    """Return the unit that a dimensional name states by its suffix, or an empty string.

    >>> unit_of("cost_usd_per_gpu_hour"), unit_of("layers")
    ('USD per GPU-hour', '')
    """
    return SUFFIX_UNITS.get(suffix_of(name), "")


def suffix_of(name: str) -> str:
    """Return the suffix by which a dimensional name states its unit, or an empty string.

    >>> suffix_of("cost_usd_per_gpu_hour"), suffix_of("layers")
    ('usd_per_gpu_hour', '')
    """
    longest = sorted(SUFFIX_UNITS, key=len, reverse=True)  # usd_per_gpu_hour ends in hour as well
    return next((suffix for suffix in longest if name == suffix or name.endswith("_" + suffix)), "")


def is_slip(value: float) -> bool:
    """Tell whether a number is so near to nothing that nobody meant it.

    >>> is_slip(5e-324), is_slip(0.0), is_slip(-1e-6)
    (True, False, False)
    """
    return 0 < abs(value) < SMALLEST


def no_slip(value: float, stated: object, label: str) -> float:
    """Return a number as it is read, unless nobody can have meant it."""
    if is_slip(value):
        raise UsageError(
            f"{label}: {shown(stated)} is so close to 0 that it must be a mistake. Write 0 or another number."
        )
    return value


def as_number(value: Any) -> float:
    """Read a number as every reader does: one at hand, or a text of digits, point, sign and exponent, or ValueError.

    >>> as_number(" 1e3 "), as_number("-.5"), as_number(2)
    (1000.0, -0.5, 2.0)
    >>> as_number("4_1")
    Traceback (most recent call last):
    ValueError: 4_1
    """
    if isinstance(value, str) and ("_" in value or not value.isascii()):  # 41 to Python, as in digits of other scripts
        raise ValueError(value)
    return float(value)


def share_in(text: str) -> float:
    """Read a share as every reader of a text does, written 70% or 0.7, or ValueError.

    >>> share_in("70%"), share_in("0.7")
    (0.7, 0.7)
    """
    return as_number(text[:-1]) / 100 if text.endswith("%") else as_number(text)


def without_commas(text: str, label: str) -> str:
    """Return a number's text without the commas, or underscores, between its thousands; any other is refused.

    >>> without_commas("1,234,567.8", "an amount"), without_commas("2_000", "an amount")
    ('1234567.8', '2000')
    """
    parted = text.replace("_", ",")
    if "," in parted and not _THOUSANDS.fullmatch(parted):
        mark = "a comma" if "," in text else "an underscore"
        raise UsageError(f"{label}: {shown(text)} has {mark} that does not separate thousands. Write 2.35 for 2,35.")
    return parted.replace(",", "")


def parse_count(text: str | float, label: str = "a count") -> float:
    """Read a positive human count such as "100b", "1.5T", "300M", "1e12" or 1000.

    >>> parse_count("100b"), parse_count("1.5T"), parse_count(42)
    (100000000000.0, 1500000000000.0, 42.0)
    """
    return _quantity(text, label, _MULTIPLIERS, "a positive number, such as 64, 100b or 1.5T", "number")


def _quantity(text: str | float, label: str, units: Mapping[str, float], examples: str, noun: str) -> float:
    """Read a positive number with one of some units behind it."""
    if isinstance(text, (int, float)):
        value = float(text)
    else:
        match = _QUANTITY.fullmatch(text.strip()) if isinstance(text, str) else None
        try:
            if match is None:
                raise ValueError
            value = float(without_commas(match[1], label)) * units[match[2].lower()]
        except (ValueError, KeyError):
            raise UsageError(f"{label}: cannot read {shown(text)}. Write {examples}.") from None
    # Zero and what is not finite are refused below: this sentence is for what somebody wrote as a number above zero.
    if 0 < value <= SMALLEST:
        raise UsageError(f"{label}: {shown(text)} is too small a {noun}: it must exceed {SMALLEST:g}.")
    if not 0 < value < math.inf:
        raise UsageError(f"{label}: {shown(text)} is not a positive, finite {noun}.")
    return value


def parse_bytes(text: str | float, label: str = "a size", examples: str = "bytes, such as 2TB, 500GB or 2GiB") -> float:
    """Read a number of bytes: "2GiB" counts in powers of 1,024, "16gb" in powers of 1,000, "1e9" as it is.

    >>> parse_bytes("2GiB") == 2 * 2**30, parse_bytes("16gb"), parse_bytes("1e9"), parse_bytes("1PB")
    (True, 16000000000.0, 1000000000.0, 1000000000000000.0)
    """
    match = _BYTES.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        return _quantity(text, label, _MULTIPLIERS, examples, "number")
    base = 1024.0 if match[3] else 1000.0  # the i of GiB (IEC 80000-13)
    number = _quantity(match[1], label, _MULTIPLIERS, examples, "number")
    return number * float(base ** (" kmgtp".index(match[2].lower()) if match[2] else 0))


def parse_days(text: str | float, label: str = "a duration") -> float:
    """Read a positive duration in days from "30d", "36h", "6w", "3mo", "1y" or a number of days.

    >>> parse_days("36h"), parse_days("2w")
    (1.5, 14.0)
    """
    examples = "days, hours, weeks, months or years, such as 30d, 36h, 6w, 3mo, 1y"
    return _quantity(text, label, _DURATION_DAYS, examples, "duration")


def parse_fraction(text: str | float, label: str = "a fraction") -> float:
    """Read a fraction from "70%", "0.7" or 0.7; anything outside 0 to 1 is refused.

    >>> parse_fraction("70%")
    0.7
    """
    try:
        value = share_in(text.strip()) if isinstance(text, str) else float(text)
    except ValueError:
        raise UsageError(f"{label}: cannot read {shown(text)}. Write 70% or 0.7.") from None
    if not 0 <= value <= 1:
        raise UsageError(f"{label}: {shown(text)} lies outside 0 to 100 %. Write 70% or 0.7.")
    return no_slip(value, text, label)


def parse_usd(text: str | float, label: str = "an amount") -> float:
    """Read a positive amount of USD from "2.35", "$6,291", "10k" or a number.

    >>> parse_usd("$6,291"), parse_usd("10k")
    (6291.0, 10000.0)
    """
    number = text.strip().lstrip("$") if isinstance(text, str) else text
    return _quantity(number, label, _MULTIPLIERS, "US dollars as a bare number, such as 2.35, 500k or 1.5m", "number")


def format_count(value: float) -> str:
    """Write a count in short form.

    >>> format_count(8.03e9), format_count(1e11), format_count(950), format_count(999.9e6), format_count(1e18)
    ('8.03B', '100B', '950', '1B', '1,000Q')
    """
    if abs(value) >= 0.9995e18:
        return f"{value / 1e15:,.0f}Q"
    for limit, letter in ((1e15, "Q"), (1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * limit:  # three digits round it up
            return f"{value / limit:.3g}{letter}"
    return f"{value:.3g}"


def months_after(day: Day, months: int) -> Day:
    """Return the day so many months later; the last of a month where it has fewer days, and of all time.

    >>> months_after(date(2026, 1, 31), 1)
    datetime.date(2026, 2, 28)
    """
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)  # months counted from 0
    if year > MAXYEAR:  # what holds without end is written as a very late day
        return day.replace(year=MAXYEAR, month=12, day=31)
    return day.replace(year=year, month=month + 1, day=min(day.day, monthrange(year, month + 1)[1]))


def counted(count: float, noun: str) -> str:
    """Write a count with its noun.

    >>> counted(1, "offer"), counted(2, "offer"), counted(1e6, "GPU"), counted(1.5, "year")
    ('1 offer', '2 offers', '1,000,000 GPUs', '1.5 years')
    """
    # 15 digits are what a float holds of a decimal: whole counts are written whole, 0.1 + 0.2 as 0.3
    return f"{count:,.15g} {noun}{'' if count == 1 else 's'}"


def spanned(months: float) -> str:
    """Write a number of months, in years where they are halves of years.

    >>> spanned(48), spanned(12), spanned(18), spanned(1), spanned(14)
    ('4 years', '1 year', '1.5 years', '1 month', '14 months')
    """
    return counted(months / 12, "year") if months >= 12 and months % 6 == 0 else counted(months, "month")


def about(usd: float) -> str:
    """Write an amount with as many digits as are known of an estimate.

    >>> about(12443.3), about(1_101_270_290), about(0.4093), about(-63.4)
    ('$12,400', '$1,100M', '$0.409', '-$63.4')
    """
    if usd < 0:
        return f"-{about(-usd)}"
    rounded = float(f"{usd:.3g}")  # before it is compared: 999,999 is $1M, not $1,000,000
    if rounded >= 1e6:
        return f"${rounded / 1e6:,.4g}M" if rounded >= 1e9 else f"${rounded / 1e6:#.3g}M".replace(".M", "M")
    return f"${rounded:,.0f}" if rounded >= 100 else f"${rounded:g}"


def percent(share: float) -> str:
    """Write a share as a whole percentage, one below half a percent by its first digit.

    >>> percent(0.7), percent(0.0001), percent(0.0)
    ('70%', '0.01%', '0%')
    """
    return f"{100 * share:.1g}%" if 0 < share < 0.005 else f"{share:.0%}"


def as_toml(value: Any) -> str:
    """Write a value as TOML does; a text is one of JSON, without the one control character that JSON takes.

    >>> print(as_toml({"usd": 2.0, "share": 0.7, "name": "the best", "on": [True, 8]}))
    {usd = 2, share = 0.7, name = "the best", on = [true, 8]}
    """
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key} = {as_toml(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):  # before numbers, of which it is one in Python
        return str(value).lower()
    number = float(value)
    # whole numbers without a point as people write them, as far as a float holds each of them
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)
