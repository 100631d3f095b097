"""Kinds of arguments: how a value that a person wrote is read, and how it is typed in signatures and JSON schemas."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from math import floor, inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from gpucost.errors import UsageError, nearest
from gpucost.gate import repeated, shown
from gpucost.limits import limit
from gpucost.options import OPTIONS
from gpucost.units import (
    GB,
    SMALLEST,
    as_number,
    no_slip,
    parse_bytes,
    parse_count,
    parse_days,
    parse_fraction,
    parse_usd,
    share_in,
    without_commas,
)
from gpucost.words import CLASSES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Bounds that several kinds share. They stand here, not in limits.csv: no user needs to raise them.
OWN_NAME = re.compile(r"[a-z][a-z0-9.-]{0,39}")  # of a stack that a person measured
_QUOTE_FILES = (".csv", ".xlsx")
_SHORT = 256  # characters of a name that needs no look at its limit
_LARGEST_INTEGER = 10**300  # what a double holds, with room
LARGEST_NUMBER = 1e15  # USD, GPUs or hours: beyond it a sum loses its cents
LARGEST_LENGTH = 16_777_216  # tokens of a sequence
_RENT_SPAN = (0.001, 2000.0)  # USD per GPU-hour: below the cheapest card of a marketplace, and what any table may hold

Read = Callable[[Any, str], Any]  # a value and how the argument is called in a sentence


class Kind(NamedTuple):
    """How the values of an argument are read, annotated and completed."""

    read: Read
    json: tuple[str, ...]  # JSON types in a scenario file
    metavar: str = "TEXT"
    choices: tuple[str, ...] = ()
    names: str = ""  # table of the catalog whose names complete it
    open: bool = False  # names of one's own stand beside the choices
    file: Callable[[str], bool] | None = None  # tells whether a text names a file, from the text alone; none never does

    def __repr__(self) -> str:
        """Return how a command writes a value, such as TOKENS: what a signature shows."""
        return self.metavar or "FLAG"


_PLAIN_WORD = re.compile(r"[\w-]+")


def _any_text(text: str) -> bool:
    """Tell that a text names a file, whatever it says."""
    return True


def _no_plain_word(text: str) -> bool:
    """Tell whether a text, which may be a word or a number, is neither.

    >>> [_no_plain_word(text) for text in ("chat", "1.5k", "mine.csv", "a/b", "~me", ".")]
    [False, False, True, True, True, True]
    """
    number = text[:1].isdigit() or text[:1] in "+-"
    return not (number or _PLAIN_WORD.fullmatch(text))


def _configuration(text: str) -> bool:
    """Tell whether a model's name is a path: it ends in .json, or no name of a hub, OWNER/NAME, looks like it.

    >>> [_configuration(text) for text in ("8b", "meta-llama/Llama-3.1-8B", "../m", "/m", "my.json", "a/b/c", "C:m")]
    [False, False, True, True, True, True, True]
    """
    return (
        text.lower().endswith(".json")
        or text[:1] in (".", "~", "/")
        or text[1:2] == ":"
        or "\\" in text
        or text.count("/") > 1
        or text.endswith(("/", ".."))
    )


def _ending(*endings: str) -> Callable[[str], bool]:
    """Return what tells whether a text ends as a file does."""
    return lambda text: text.lower().endswith(endings)


_AMOUNT = ("string", "number")  # of kinds that are numbers, or written with a unit


def count(highest: float = 1e18, lowest: float = 0.0, hint: str = "", metavar: str = "N") -> Kind:
    """Positive numbers, written 100b or 1.5T, up to a bound."""

    def read(value: Any, label: str) -> float:
        number = parse_count(_number(value, label), label)
        if number > highest:
            raise UsageError(f"{label}: {shown(value)} is beyond {highest:,.0f}. {hint}".rstrip())
        if number < lowest:
            raise UsageError(f"{label}: {shown(value)} is less than {lowest:,.0f}. {hint}".rstrip())
        return number

    return Kind(read, _AMOUNT, metavar)


def whole(lowest: int = 1, highest: int = 1_000_000, metavar: str = "N") -> Kind:
    """Whole numbers within bounds, written 64 or 8k."""

    def read(value: Any, label: str) -> int:
        number_or_text = _number(value, label)
        # text that is no plain number may be a count with a unit, such as 8k
        try:
            number = as_number(number_or_text)
        except ValueError:
            number = parse_count(number_or_text, label)
        if not isfinite(number) or (number <= 0 < lowest):
            raise UsageError(f"{label}: {shown(value)} is not a positive, finite number.")
        if number != floor(number) or number < lowest:
            raise UsageError(f"{label}: {shown(value)} is not a whole number of {lowest} or more.")
        if number > highest:
            raise UsageError(f"{label}: {shown(value)} is beyond {highest:,}.")
        return int(number)

    return Kind(read, ("string", "integer"), metavar)


def share(highest: float = 1.0, lowest: float = 0.0) -> Kind:
    """Shares, written 70% or 0.7; some may exceed the whole."""

    def read(value: Any, label: str) -> float:
        number_or_text = _number(value, label)
        # the usual span has the reader that knows the slips of percent and share
        if (lowest, highest) == (0.0, 1.0):
            return parse_fraction(number_or_text, label)
        text = str(number_or_text).strip()
        try:
            number = share_in(text)
        except ValueError:
            raise UsageError(f"{label}: cannot read {shown(value)}. Write a share, such as 50% or 0.5.") from None
        if not lowest <= number <= highest:
            raise UsageError(f"{label}: {shown(value)} lies outside {lowest:.0%} to {highest:.0%}.")
        return no_slip(number, value, label)

    return Kind(read, _AMOUNT, "SHARE")


def positive_share(highest: float) -> Kind:
    """Shares above nothing."""
    read = share(highest).read

    def positive(value: Any, label: str) -> float:
        number = float(read(value, label))
        if number <= SMALLEST:
            raise UsageError(f"{label}: {shown(value)} is not a positive share. Write 35% or 0.35.")
        return number

    return Kind(positive, _AMOUNT, "SHARE")


def plain(lowest: float = 0.0, highest: float = 1e15, metavar: str = "N") -> Kind:
    """Numbers within bounds that may be zero, written 35k, $35k or 2,000."""

    def read(value: Any, label: str) -> float:
        entry = _number(value, label)
        if isinstance(entry, str):
            entry = without_commas(entry.strip().lstrip("$"), label)
        try:
            number = as_number(entry)
        except ValueError:
            number = parse_count(entry, label)
        if not lowest <= number <= highest:
            low = f"{lowest:,.0f}" if lowest == int(lowest) else f"{lowest:g}"
            raise UsageError(f"{label}: {shown(value)} lies outside {low} to {highest:,.0f}.")
        return no_slip(number, value, label)

    return Kind(read, _AMOUNT, metavar)


CLOSED_WORDS: set[str] = set()  # that some argument takes; sentences for Python put them in quotation marks


def one_of(*choices: str, old: Mapping[str, str] | None = None) -> Kind:
    """One word of a closed list; words of former versions are read as what they are called now."""

    def read(value: Any, label: str) -> str:
        word = _word(value)
        choice = (old or {}).get(word, word)
        if choice not in choices:
            near = nearest(choice, choices)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"{label}: unknown {shown(value)}.{hint} Choose one of {', '.join(choices)}.")
        return choice

    CLOSED_WORDS.update(choices)
    # a help line has room for four words; a longer list stands in the docs and in completion
    return Kind(read, ("string",), "|".join(choices) if len(choices) < 5 else "NAME", choices)


def _one_of_or_own(*choices: str, old: Mapping[str, str] | None = None) -> Kind:
    """One word of a list, or a name of one's own, which the engine resolves: small letters, digits, hyphens."""
    closed = one_of(*choices, old=old)

    def read(value: Any, label: str) -> str:
        word = _word(value)
        # a word of a former version has the form of a name, and means what it is called now
        return word if OWN_NAME.fullmatch(word) and word not in (old or {}) else str(closed.read(value, label))

    return closed._replace(read=read, open=True)


def named(metavar: str = "NAME", names: str = "", example: str = "") -> Kind:
    """Names that the catalog resolves later, or paths of files."""

    def read(value: Any, label: str) -> str:
        text = os.fspath(value) if isinstance(value, os.PathLike) else value
        if not isinstance(text, str) or not text.strip():
            received = "is empty" if isinstance(text, str) else f"found {shown(value)}"
            raise UsageError(f"{label}: {received}; a name is needed{f', such as {example}' if example else ''}.")
        return _bounded(text, label).strip()

    return Kind(read, ("string",), metavar, names=names)


def _bounded(text: str, label: str) -> str:
    """Return a name or a path that is not longer than any can be, and holds no NUL."""
    if "\0" in text:
        raise UsageError(f"{label}: {shown(text)} contains a NUL character, which names and paths cannot.")
    # the limit, which may be set in the environment, is looked up only where a name may exceed it
    if len(text) > _SHORT and len(text) > (most := limit("limit_name_characters")):
        raise UsageError(f"{label}: {shown(text)}; a name or a path has at most {most:,.0f} characters.")
    return text


def _word(value: Any) -> str:
    """Return a value as a word in small letters; of what has no text of its own, how an error shows it."""
    try:
        # a subclass of str, such as a member of an enumeration, may print itself otherwise than it reads
        return (str.__str__(value) if isinstance(value, str) else str(value)).strip().lower()
    except Exception:  # a stranger's object, whose own text may fail in any way
        return shown(value)


_MISSING = ("NAType", "NaTType", "MaskedConstant")  # types of which pandas and NumPy have one value each


def is_missing(value: Any) -> bool:
    """Tell whether nothing was said: None, or what pandas and NumPy put where a value is missing.

    >>> import numpy, pandas
    >>> [is_missing(value) for value in (None, pandas.NA, pandas.NaT, numpy.ma.masked, 0, "", [])]
    [True, True, True, True, False, False, False]
    """
    # by the type's name: to compare with their values would import pandas
    return value is None or type(value).__name__ in _MISSING


def unpacked(value: Any) -> Any:
    """Return a single value of NumPy as Python has it, a moment as its day, and a member of an enumeration as text."""
    if isinstance(value, str):
        return str.__str__(value)
    if not hasattr(value, "item") or getattr(value, "ndim", False):
        return value
    # a moment of NumPy counts in any unit, and .item() of nanoseconds would be an integer
    is_day = getattr(getattr(value, "dtype", None), "kind", "") == "M"
    return (value.astype("datetime64[D]") if is_day else value).item()


def _number(value: Any, label: str) -> str | float:
    """Return what may be a number: text, or a number of Python or NumPy; nothing else is one."""
    number = unpacked(value)
    if not isinstance(number, (str, int, float)) and hasattr(number, "as_integer_ratio"):  # a Decimal, a Fraction
        with suppress(ArithmeticError, TypeError, ValueError):  # a class has its numbers' methods, and is none
            number = float(number)
    # float() reads digits of other scripts too; here they are more likely a slip of the keyboard
    strange = isinstance(number, str) and any(sign.isdigit() and not sign.isascii() for sign in number)
    if isinstance(number, bool) or not isinstance(number, (str, int, float)) or strange:
        raise UsageError(f"{label}: cannot read {shown(value)}. Write a number.")
    if isinstance(number, int) and abs(number) > _LARGEST_INTEGER:
        raise UsageError(f"{label}: an integer of hundreds of digits is too large.")
    return number


def _usd(value: Any, label: str) -> float:
    """Read an amount: positive, and no more than everybody has."""
    amount = parse_usd(_number(value, label), label)
    if amount > LARGEST_NUMBER:
        raise UsageError(f"{label}: {shown(value)} is beyond {LARGEST_NUMBER:,.0f} USD.")
    return amount


def _usd_per_gpu_hour(value: Any, label: str) -> float:
    """Read a price of an hour, as no accelerator's has ever been beyond it.

    >>> _usd_per_gpu_hour("$2.35", "--rent")
    2.35
    """
    price = _usd(value, label)
    low, high = _RENT_SPAN
    if not low <= price <= high:
        slip = " A size such as 8b is a model's: --model." if price > 1e6 else ""
        raise UsageError(
            f"{label}: {shown(value)} is {price:,.6g} USD per GPU-hour; a price lies between {low:g} and {high:,.0f}."
            f"{slip} Write a price such as 2.35."
        )
    return price


def _timed(units: Mapping[str, float], forms: str, noun: str, least: float, most: float) -> Read:
    """Return the reader of a time in the unit of 1.

    >>> MILLISECONDS.read("1.5s", "--ttft"), MILLISECONDS.read(50, "--tpot")
    (1500.0, 50.0)
    >>> SECONDS.read("900ms", "--step-time"), SECONDS.read(2.5, "--step-time"), SECONDS.read("1.5min", "--step-time")
    (0.9, 2.5, 90.0)
    """

    def read(value: Any, label: str) -> float:
        text = str(_number(value, label)).strip().lower()
        # the first unit that fits: those that end like another, as ms and min do like s, stand before it
        ending = next((end for end in units if text.endswith(end)), "")
        try:
            number = as_number(text.removesuffix(ending)) * units.get(ending, 1.0)
        except ValueError:
            raise UsageError(f"{label}: cannot read {shown(value)}. Write {forms}.") from None
        if not least < number < most:
            raise UsageError(f"{label}: {shown(value)} is not a positive {noun}.")
        return number

    return read


def _latency(value: Any, label: str) -> float:
    """Read the most that a token may take, in milliseconds; none is no limit.

    >>> LATENCY.read("none", "--tpot"), LATENCY.read("50ms", "--tpot")
    (inf, 50.0)
    """
    is_none = value == inf or (isinstance(value, str) and value.strip().lower() == "none")
    return inf if is_none else float(MILLISECONDS.read(value, label))


_YEARS = (1900, 2199)  # that a day may lie in: months and quarters are counted from it, and no calendar ends


def _date(value: Any, label: str) -> str:
    moment = unpacked(value)
    try:
        # a date's text is cut so that a moment of pandas or Python counts by its day
        text = moment.isoformat()[:10] if isinstance(moment, date) else moment.strip()
        day = date.fromisoformat(text)
    except (AttributeError, TypeError, ValueError):
        raise UsageError(f"{label}: cannot read {shown(value)} as a day. Write YYYY-MM-DD.") from None
    if not _YEARS[0] <= day.year <= _YEARS[1]:
        raise UsageError(f"{label}: {day} lies outside the years {_YEARS[0]} to {_YEARS[1]}.")
    return day.isoformat()


def _deadline(value: Any, label: str) -> float | date | None:
    """Read a duration in days, a day, or none; the day is counted from the day of the prices."""
    if isinstance(value, str) and value.strip().lower() == "none":
        return None  # an engine takes it for no limit; a value left out would mean the default
    value = unpacked(value)
    # 2026-11-20 is a day; 20260 or 30d is a duration
    is_day = isinstance(value, str) and value.strip()[4:5] == "-" and value.strip()[:4].isdigit()
    if is_day or isinstance(value, date):
        return date.fromisoformat(_date(value, label))
    return parse_days(_number(value, label), label)


def _weeks(value: Any, label: str) -> float:
    """Read a wait in weeks, or a duration such as 36w or 8mo; zero is no wait.

    >>> _weeks("36w", "--lead-time"), _weeks("14d", "--lead-time"), _weeks("0w", "--lead-time")
    (36.0, 2.0, 0.0)
    """
    text = str(_number(value, label)).strip()
    # zero weeks are no wait, while a duration elsewhere must be positive
    if re.fullmatch(r"0+(\.0*)?\s*(h|d|w|mo|y)", text.lower()):
        return 0.0
    if text[-1:].isalpha():
        return parse_days(text, label) / 7
    return float(plain(0.0, 5200.0).read(value, label))


def _purchase_options(value: Any, label: str) -> str:
    """Read purchase options: one, several in a text with commas, or a list."""
    option = one_of(*OPTIONS)
    text = ",".join(map(_word, value)) if isinstance(value, (list, tuple)) else _word(value)
    words = text.replace("-", "_").split(",")  # on-demand, on demand and on_demand are one
    return ",".join(str(option.read(word.strip().replace(" ", "_"), label)) for word in words)


def _flag(value: Any, label: str) -> bool:
    word = _word(value)
    if word not in ("true", "false", "1", "0", "yes", "no"):
        raise UsageError(f"{label}: cannot read {shown(value)}. Write true or false.")
    return word in ("true", "1", "yes")


def _table(value: Any, label: str) -> dict[str, Any]:
    """Read values by name, each name once: a table, or texts NAME=VALUE."""
    if isinstance(value, Mapping):
        pairs = [(str(key), entry) for key, entry in value.items()]
    else:
        pairs = []
        for text in _texts(value, label):
            key, sign, entry = text.partition("=")
            if not sign:
                raise UsageError(f"{label}: {shown(text)} is not NAME=VALUE. Write NAME=VALUE.")
            pairs.append((key.strip(), entry.strip()))
    if nameless := [entry for key, entry in pairs if not key.strip()]:
        raise UsageError(f"{label}: the value {shown(nameless[0])} has no name. Write NAME=VALUE.")
    return once(pairs, label)


def once(pairs: Sequence[tuple[str, Any]], label: str) -> dict[str, Any]:
    """Return values by name; a name that is given twice is refused."""
    if twice := repeated(name for name, _ in pairs):
        values = " and as ".join(shown(entry) for name, entry in pairs if name == twice[0])
        raise UsageError(f"{label}: {shown(twice[0])} is given twice, as {values}. Keep one.")
    return dict(pairs)


def _texts(value: Any, label: str) -> list[str]:
    """Return one text or several as a list."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"{label}: cannot read {shown(value)}. Write NAME=VALUE, or a table of them.")
    return list(texts)


def _quotes(value: Any, label: str) -> dict[str, Any]:
    """Read quotes by name, or texts NAME=TERMS; the name of a file of quotes stands alone."""
    if isinstance(value, str) or not isinstance(value, Mapping):
        texts = _texts(value, label)
        files = [text for text in texts if text.lower().endswith(_QUOTE_FILES)]
        terms = [text for text in texts if text not in files]
        return {**dict.fromkeys(files, ""), **_table(terms, label)}
    return {str(key): entry for key, entry in value.items()}


def _rents(value: Any, label: str) -> dict[str, Any]:
    """Read a price, quotes by name, and files of quotes; the price stands under no name.

    >>> _rents(["2.35", "acme=2.46/h, 12 months, take-or-pay"], "--rent")
    {'': 2.35, 'acme': '2.46/h, 12 months, take-or-pay'}
    """
    if isinstance(value, Mapping):
        return _quotes(value, label)
    rents: dict[str, Any] = {}
    for entry in value if isinstance(value, (list, tuple)) else [value]:
        is_quote = isinstance(entry, Mapping) or (
            isinstance(entry, str) and ("=" in entry or entry.lower().endswith(_QUOTE_FILES))
        )
        read = _quotes(entry, label) if is_quote else {"": _usd_per_gpu_hour(entry, label)}
        for name in read:
            if name in rents:
                raise UsageError(f"{label}: {name or 'a price without a name'} is given twice. Name each quote once.")
        rents |= read
    return rents


def _model(value: Any, label: str) -> Any:
    """Read a model's name; an Architecture that was built in Python stays what it is."""
    return value if hasattr(value, "layers") else MODEL.read(value, label)


def _bytes(value: Any, label: str) -> str:
    """Check a number of bytes; answers name it as it was written."""
    parse_bytes(_number(value, label), label)
    return str(value)


def _length(value: Any, label: str) -> str | float:
    """Read a number of tokens; a word is the name of a length distribution, which the catalog knows."""
    word = value.strip() if isinstance(value, str) else ""
    if word and not (word[0].isdigit() or word[0] in ".+-"):
        return _bounded(word, label)
    return float(count(LARGEST_LENGTH, 1, "", "TOKENS").read(value, label))


def _plan(value: Any, label: str) -> Any:
    return {str(key): entry for key, entry in value.items()} if isinstance(value, Mapping) else FILE.read(value, label)


def _demand(value: Any, label: str) -> Any:
    """Read the name of a file; GPUs by month stay as they are until the plan reads them."""
    several = hasattr(value, "__len__") and not isinstance(value, (str, bytes, set, Mapping))
    # a generator is used up by the first reader, and a plan reads its demand more than once
    if hasattr(value, "__next__"):
        raise UsageError(f"{label}: found {shown(value)}; give a list of numbers, or the name of a file.")
    return value if several else FILE.read(value, label)


def _answer(value: Any, label: str) -> Any:
    """Read the name of a saved answer or a scenario; an answer at hand stays what it is."""
    return value if isinstance(value, Mapping) or hasattr(value, "payload") else FILE.read(value, label)


def several(kind: Kind) -> Kind:
    """Several names: a list, or a text with commas."""

    def read(value: Any, label: str) -> list[str]:
        entries = value if isinstance(value, (list, tuple)) else [value]
        parts = [part for text in entries for part in (text.split(",") if isinstance(text, str) else [text])]
        return [kind.read(part, label) for part in parts]

    return kind._replace(read=read, json=("string", "array"))


def any_of(kind: Kind) -> Kind:
    """Names of which any will do: one, a text with commas, or a list; they are kept as a text with commas.

    >>> any_of(GPU).read(["h100", "b200"], "--gpu"), any_of(GPU).read("h100,b200", "--gpu")
    ('h100,b200', 'h100,b200')
    """

    def read(value: Any, label: str) -> str:
        return ",".join(
            kind.read(entry, label) for entry in (value if isinstance(value, (list, tuple)) and value else [value])
        )

    return kind._replace(read=read, json=("string", "array"))


class Span(NamedTuple):
    """A figure that is said as a range."""

    low: float
    high: float

    @property
    def points(self) -> tuple[float, float, float]:
        """Its middle, by ratio where it can be, and its ends."""
        middle = (self.low * self.high) ** 0.5 if self.low > 0 else (self.low + self.high) / 2
        return middle, self.low, self.high


# A low end with the unit that may stand between, a dash or "to", and a high end with its unit.
_SPAN = re.compile(
    r"(?P<low>[\d.,]*\d)\s*(?P<unit>[a-zA-Z%/]*)\s*(?:-|–|\.\.|\bto\b)\s*(?P<high>[\d.,]*\d\s*(?P<last>[a-zA-Z%/]*))"
)


def ranged(kind: Kind) -> Kind:
    """Let a figure be said as a range: 7-10 days, 7 to 10 days, 20k–30k; a unit that is said once holds for both.

    >>> ranged(count()).read("7-10k", "--n"), ranged(count()).read("1e-3", "--n")
    (Span(low=7000.0, high=10000.0), 0.001)
    """

    def read(value: Any, label: str) -> Any:
        match = _SPAN.fullmatch(value.strip()) if isinstance(value, str) else None
        if match is None or match["unit"].lower() == "e":  # 1e-3 is a number
            return kind.read(value, label)
        low = kind.read(match["low"] + (match["unit"] or match["last"]), label)
        high = kind.read(match["high"], label)
        if not low < high:
            raise UsageError(f"{label}: {shown(value)} does not rise. Write the lower end first, such as 7-10.")
        return Span(low, high)

    return kind._replace(read=read)


_SAMPLES = re.compile(r"(.*\S)\s*samples?", re.IGNORECASE)
_LARGEST_BYTES, _MB = 1e18, 1e6


def _amount_of_bytes(
    value: Any, label: str, unit: float = 1.0, forms: str = "bytes, such as 2TB, 500GB or 2GiB"
) -> float:
    """Read a positive number of bytes; a number without a unit counts in `unit`."""
    most = count(_LARGEST_BYTES).read
    # without a letter, but for the e of 1e12, it is a number of `unit`
    if not isinstance(value, str) or not re.search("[a-df-z]", value, re.IGNORECASE):
        return float(most(count().read(value, label) * unit, label))
    plain = re.fullmatch(r"([0-9][0-9.,_]*)\s*b(?:ytes?)?", value.strip(), re.IGNORECASE)  # b: bytes, not billions
    return float(most(plain[1] if plain else parse_bytes(value, label, forms), label))


def _per_s(value: Any) -> Any:
    """Return a rate without its "/s"."""
    return re.sub(r"(?<!\s)\s*/\s*s$", "", value.strip(), flags=re.IGNORECASE) if isinstance(value, str) else value


def dataset_of(value: Any, label: str = "--dataset") -> tuple[float, str]:
    """Read the bytes of a dataset and of what: a token, a sample, or "" for all of it.

    >>> dataset_of("2TB"), dataset_of("4B/token"), dataset_of("150kb/sample")
    ((2000000000000.0, ''), (4.0, 'token'), (150000.0, 'sample'))
    """
    size, _, of = value.partition("/") if isinstance(value, str) else (value, "", "")
    if (word := of.strip().lower()) not in ("", "token", "sample"):
        raise UsageError(f"{label}: cannot read {shown(value)}. Write 2TB, 4/token or 150kb/sample.")
    return _amount_of_bytes(size, label), word


def decode_of(value: Any, label: str = "--decode-rate") -> tuple[float, bool]:
    """Read what a worker prepares in a second: bytes, or samples where the second value is true.

    >>> decode_of("50MB/s"), decode_of(50), decode_of("200 samples/s")
    ((50000000.0, False), (50000000.0, False), (200.0, True))
    """
    rate = _per_s(value)
    if isinstance(rate, str) and (match := _SAMPLES.fullmatch(rate)):
        return count().read(match[1], label), True
    return _amount_of_bytes(rate, label, _MB, "50MB/s or 200 samples/s"), False


def _checked(value: Any, label: str, read: Any) -> str:
    """Check what answers name as it was written."""
    read(value, label)
    return str(value).strip()


def _gb_per_s(value: Any, label: str) -> float:
    """Read GB/s, or a rate in another unit of bytes.

    >>> _gb_per_s(5, "--storage-bandwidth"), _gb_per_s("500MB/s", "--storage-bandwidth")
    (5.0, 0.5)
    """
    return (
        _amount_of_bytes(_per_s(value), label, GB, "bytes per second, such as 5GB/s or 500MB/s; 8 bits are a byte") / GB
    )


def numbers(value: Any) -> "NDArray[np.float64]":
    """Return numbers as an array; True and False are none, in a column as alone.

    >>> numbers([1, 2.5]), numbers(8)
    (array([1. , 2.5]), array(8.))
    """
    import numpy as np

    if isinstance(value, np.ma.MaskedArray):  # what is masked is not known, whatever stands below
        value = np.ma.filled(value.astype(np.float64), np.nan)
    # a list is looked at entry by entry: NumPy would make True a 1 before it could be seen
    if isinstance(value, (list, tuple)):
        value = [np.nan if is_missing(entry) else entry for entry in value]
        types = set(map(type, value))
    else:
        value = np.asarray(value)
        types = set(map(type, value.flat)) if value.dtype == object else {value.dtype.type}
    if types & {bool, np.bool_}:
        raise TypeError("True and False are not numbers")
    return np.asarray(value, dtype=np.float64)


RUN_TOKENS = count(1e17, 1, "Write a count such as 100b or 15t.", "TOKENS")
USD = Kind(_usd, _AMOUNT, "USD")
USD_PER_GPU_HOUR = Kind(_usd_per_gpu_hour, _AMOUNT, "USD")
DAYS = Kind(lambda value, label: parse_days(_number(value, label), label), _AMOUNT, "DURATION")
_TIME = _timed({"ms": 1e-3, "min": 60.0, "s": 1.0}, "seconds, such as 2.5 or 900ms", "time", SMALLEST, 1e7)
SECONDS = Kind(_TIME, _AMOUNT, "SECONDS")
MILLISECONDS = Kind(
    _timed({"ms": 1.0, "s": 1e3}, "milliseconds or seconds, such as 200ms or 1.5s", "latency", SMALLEST, 1e9),
    _AMOUNT,
    "MS",
)
LATENCY = Kind(_latency, _AMOUNT, "MS|none")
WEEKS = Kind(_weeks, _AMOUNT, "WEEKS")
BYTES = Kind(_bytes, _AMOUNT, "BYTES")
DATE = Kind(_date, ("string",), "DATE")
DEADLINE = Kind(_deadline, _AMOUNT, "DURATION|DATE")
OPTION = Kind(_purchase_options, ("string", "array"), "NAME", names="options")
FLAG = Kind(_flag, ("boolean",), "")
QUOTES = Kind(_quotes, ("object",), "NAME=TERMS|FILE", file=_ending(*_QUOTE_FILES))
RENTS = Kind(
    _rents, ("string", "number", "array", "object"), "USD|NAME=TERMS|FILE", file=_ending(*_QUOTE_FILES)
)  # a price, quotes, or both
TABLE = Kind(_table, ("object",), "NAME=VALUE")
INPUTS = Kind(lambda value, label: _table(value, label), ("object",), "NAME=VALUE")  # of a plan, files among them
PLAN = Kind(_plan, ("string", "object"), "FILE", file=_any_text)
LENGTH = Kind(_length, _AMOUNT, "TOKENS", file=_no_plain_word)
DEMAND = Kind(_demand, ("string", "array"), "FILE", file=_any_text)
MODEL = named(names="llms", example="8b, llama-3-70b or a path to config.json")._replace(file=_configuration)
BUILT_MODEL = MODEL._replace(read=_model)
GPU = named(names="accelerators", example="h100-sxm or h100")
SYSTEM = named(names="systems", example="p5.48xlarge")
PROVIDER = named(names="providers", example="lambda")
REGION = named(names="regions", example="us-east-1")
STACK = _one_of_or_own("typical", *CLASSES[:-1], old={"unknown": "typical"})
FILE = named("FILE")._replace(file=_any_text)
WORD_OR_FILE = named("NAME|FILE")._replace(file=_no_plain_word)
USE_PATH = named("PATH")._replace(file=_ending(".csv"))  # a table of months
SAVED_PLAN = PLAN._replace(  # or the name of a part
    file=_ending(".json", ".toml", ".csv", ".xlsx", ".txt", ".parquet", ".jsonl", ".ndjson", ".gz")
)
ANSWER = Kind(_answer, ("string", "object"), "FILE", file=_any_text)
MODELS, GPUS = several(MODEL), several(GPU)
ANY_GPU, ANY_PROVIDER, ANY_REGION = any_of(GPU), any_of(PROVIDER), any_of(REGION)
DATASET = Kind(lambda value, label: _checked(value, label, dataset_of), _AMOUNT, "BYTES[/token|/sample]")
DECODE = Kind(lambda value, label: _checked(value, label, decode_of), _AMOUNT, "MB/s|SAMPLES")
GB_PER_S = Kind(_gb_per_s, _AMOUNT, "GB/s")
