"""Kinds of what feeds a training run: what a token or a sample weighs, and who delivers how much."""

import re
from typing import Any

from gpucost.arguments.kinds import Kind, count
from gpucost.errors import UsageError
from gpucost.gate import shown
from gpucost.units import GB, parse_bytes

_NUMBER = ("string", "number")
_SAMPLES = re.compile(r"(.*\S)\s*samples?", re.IGNORECASE)
_LARGEST_BYTES, _MB = 1e18, 1e6


def _bytes(value: Any, what: str, unit: float = 1.0, words: str = "bytes, such as 2TB, 500GB or 2GiB") -> float:
    """Read a positive number of bytes; a number without a unit counts in `unit`."""
    most = count(_LARGEST_BYTES).read
    if not isinstance(value, str) or not re.search("[a-df-z]", value, re.IGNORECASE):
        return float(most(count().read(value, what) * unit, what))
    plain = re.fullmatch(r"([0-9][0-9.,_]*)\s*b(?:ytes?)?", value.strip(), re.IGNORECASE)  # not a billion
    return float(most(plain[1] if plain else parse_bytes(value, what, words), what))


def _per_s(value: Any) -> Any:
    """Return a rate without its "/s"."""
    return re.sub(r"(?<!\s)\s*/\s*s$", "", value.strip(), flags=re.IGNORECASE) if isinstance(value, str) else value


def dataset_of(value: Any, what: str = "--dataset") -> tuple[float, str]:
    """Read the bytes of a dataset and of what: a token, a sample, or "" for all of it.

    >>> dataset_of("2TB"), dataset_of("4B/token"), dataset_of("150kb/sample")
    ((2000000000000.0, ''), (4.0, 'token'), (150000.0, 'sample'))
    """
    size, _, of = value.partition("/") if isinstance(value, str) else (value, "", "")
    if (word := of.strip().lower()) not in ("", "token", "sample"):
        raise UsageError(f"{what}: cannot read {shown(value)}. Write 2TB, 4/token or 150kb/sample.")
    return _bytes(size, what), word


def decode_of(value: Any, what: str = "--decode-rate") -> tuple[float, bool]:
    """Read what a worker prepares in a second: bytes, or samples where the second value is true.

    >>> decode_of("50MB/s"), decode_of(50), decode_of("200 samples/s")
    ((50000000.0, False), (50000000.0, False), (200.0, True))
    """
    rate = _per_s(value)
    if isinstance(rate, str) and (match := _SAMPLES.fullmatch(rate)):
        return count().read(match[1], what), True
    return _bytes(rate, what, _MB, "50MB/s or 200 samples/s"), False


def _checked(value: Any, what: str, read: Any) -> str:
    """Check what answers name as it was written."""
    read(value, what)
    return str(value).strip()


def _gb_per_s(value: Any, what: str) -> float:
    """Read GB/s, or a rate in another unit of bytes.

    >>> _gb_per_s(5, "--storage-bandwidth"), _gb_per_s("500MB/s", "--storage-bandwidth")
    (5.0, 0.5)
    """
    return _bytes(_per_s(value), what, GB, "bytes per second, such as 5GB/s or 500MB/s; 8 bits are a byte") / GB


DATASET = Kind(lambda value, what: _checked(value, what, dataset_of), "str | float", _NUMBER, "BYTES[/token|/sample]")
DECODE = Kind(lambda value, what: _checked(value, what, decode_of), "str | float", _NUMBER, "MB/s|SAMPLES")
GB_PER_S = Kind(_gb_per_s, "str | float", _NUMBER, "GB/s")
