"""JSON of answers: numbers are numbers with 12 significant digits, dates are ISO, what is not a number is null.

What an answer holds is gpucost/answers; reading it back and its seal are answers/saved.py.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from json.encoder import encode_basestring as _quoted
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

SIGNIFICANT_DIGITS = 12  # of a float's 15 to 17: sums in another order differ only in the rest
_LITERALS = {None: "null", True: "true", False: "false"}
_LONG = 1000  # rows of a list, beyond which it is written row by row
# signs that steer a terminal or reorder text, beside those that JSON escapes anyway
_STEERING = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def plain(value: Any) -> Any:
    """Turn a value into what JSON can hold; NaN and infinity become null, and whole floats stay floats.

    >>> plain({"a": 0.1 + 0.2, "b": float("nan"), "c": date(2026, 1, 2)})
    {'a': 0.3, 'b': None, 'c': '2026-01-02'}
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [plain(item) for item in value]
    # what is no JSON by itself: sets, records, arrays, and what a query may hand over
    if isinstance(value, Set):
        return sorted(plain(item) for item in value)  # sets have no order of their own, a saved answer needs one
    if isinstance(value, Struct):
        return plain(asdict(value))
    if hasattr(value, "tolist"):  # NumPy arrays and scalars, without importing NumPy
        return plain(value.tolist())
    if isinstance(value, Decimal):
        return plain(float(value))
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    from uuid import UUID

    if isinstance(value, (Path, time, timedelta, UUID)):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def dumps(value: Any, *, indent: int | None = 2) -> str:
    """Write a value as JSON text; signs that could steer a terminal are written by JSON's own escapes."""
    # in one piece json.dumps holds ten times the text of a long list in memory
    text = "".join(_pieces(value, indent or 0))
    return text if text.isprintable() else _STEERING.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def _pieces(value: Any, indent: int) -> Iterator[str]:
    """Yield the text of a value, of an answer's long lists row by row, in the form that `json.dumps` gives it."""
    if not indent or not isinstance(value, Mapping) or not any(map(_is_long, value.values())):
        yield _encoded(value, indent)
        return
    outer, inner = "\n" + " " * indent, "\n" + " " * 2 * indent
    for number, (key, item) in enumerate(value.items()):
        yield f"{',' if number else '{'}{outer}{_encoded(str(key), indent)}: "
        if _is_long(item):
            # inner text is indented as if it stood alone: each of its lines moves to where it stands
            for index, row in enumerate(item):
                written = _flat(row, inner + " " * indent, inner) or _encoded(row, indent).replace("\n", inner)
                yield f"{',' if index else '['}{inner}{written}"
            yield f"{outer}]"
        else:
            yield _encoded(item, indent).replace("\n", outer)
    yield "\n}"


def _flat(row: Any, before: str, end: str) -> str | None:
    """Write a row of single values as `json.dumps` does, in a third of its time; None where it holds others."""
    if not isinstance(row, dict) or not row:
        return None
    cells = []
    for key, value in row.items():
        kind = type(value)  # exact types: a subclass of str or int may write itself in another way
        if kind is str:
            text = _quoted(value)
        elif kind is float:
            text = repr(float(f"{value:.{SIGNIFICANT_DIGITS}g}")) if math.isfinite(value) else "null"
        elif kind is int:
            text = str(value)
        elif value is None or kind is bool:
            text = _LITERALS[value]
        elif kind is date or kind is Decimal:
            text = json.dumps(plain(value))
        else:
            return None
        cells.append(f"{before}{_quoted(str(key))}: {text}")
    return f"{{{','.join(cells)}{end}}}"


def _is_long(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) > _LONG


def _encoded(value: Any, indent: int) -> str:
    return json.dumps(plain(value), indent=indent or None, ensure_ascii=False, allow_nan=False)
