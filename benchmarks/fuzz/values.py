"""Values that break things, and ways to spoil a text, a table, a tree or the bytes of a file with them."""

import csv
import io
import json
import sys
from collections.abc import Iterator
from copy import deepcopy
from datetime import date, datetime, time
from random import Random
from typing import Any

_ESCAPE = "\x1b]0;owned\x07\x1b[2J"
TEXTS = [
    "", " ", "nan", "inf", "-inf", "-1", "0", "-0", "1e308", "1e-308", "9" * 400, "1e999", "1_000", "٣", "½", "1,5",
    "0x10", "5%", "-5%", "1e3%", "101%", "true", "none", "null", "[]", "{}", "{0}", "%s%n", "../../etc/passwd",
    "/dev/null", "/", ".", "=1+1", '=WEBSERVICE("http://x")', "+1", "@SUM(A1)", '"', "'", "\\", "`", ";", "--",
    "; drop table offers", "<script>alert(1)</script>", "a|b", "a\nb", "a\tb", "a\rb", "\x7f", "\x01", "\x85", _ESCAPE,
    "\u202eevil", "\ufeff", "\u2028", "😀", "ß", "İ", "漢字", "e\u0301", "x" * 5000, "1d", "1w", "9999-12-31",
    "0001-01-01", "2026-02-30", "2025-01-01", "1e9d", "1000y", "0.5", "1.5", "3", "7", "64", "100000", "1e6", "1e18",
    "1b", "1t", "$5", "€5", "8k", "a=b", "pue_ratio=0", "utilisation_fraction=2", "months=1e9", "on_demand,spot",
    "spot", "reserved", "h100", "h100-sxm,b200", "*", "8b,70b", "moe", "1x1x1", "8192x0x8192", "2x2", "1.0.0", "10/2",
    "9**9**9", "0001-01-01T00:00:00+99:99", "\ufffd",
    "𝟙𝟚", "１００", "1 000", "1\u00a0000", "0b1", "1e", "--help", "-", "~", "~nobody/x", "file:///etc/passwd", "con",
    "h100-sxm\u200b", "H100\u2011SXM", "aws,aws", ",", "a,,b", "==", "=", "1:2", "2026-W01-1", "20260101", "now",
    "1d2h", "-0.0", "+5", "5 %", "%", "1e-400", "0.1e1", "1e15", "1e16", "65536", "2147483648", "9223372036854775808",
    "a-" * 60, "h100" * 30, "1-" * 200 + "x",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 10**30, -(10**30), 1e308, -1e308, 5e-324, float("inf"), float("nan"), 0.5, "", "x",
    [], {}, [1], [None], {"a": 1}, {"value": 1, "low": 2, "high": 0}, {"value": "x"}, [[[[]]]], 10**400, "=1+1",
    _ESCAPE, "nan", "2026-01-01", "1e999", "5%", "x" * 3000,
]  # fmt: skip
_TOML_VALUES = [
    "0", "-1", "1e308", "inf", "-inf", "nan", "true", "[]", "[1, 2]", "{}", "{value = 1}", '"1e999"', '[[1], "a"]',
    "{value = 1, low = 2, high = 0}", "1e-300", "9" * 30, "0.5", "1", "3", "2026-01-01", "2026-01-01T00:00:00Z",
    "07:00:00", '{low = "x"}', "9223372036854775808", "100000000",
]  # fmt: skip


def any_value(random: Random) -> Any:
    """Draw a value of any type: a copy, for whoever gets it may change it."""
    return deepcopy(random.choice(VALUES))


def text(random: Random) -> str:
    """Draw any text, also one of random characters; without NUL, which no command line can carry."""
    if random.random() < 0.85:
        return random.choice(TEXTS)
    ranges = [(1, 128), (160, 0x2FFF), (0x200B, 0x2070), (0x10000, 0x1F700)]
    return "".join(chr(random.randrange(*random.choice(ranges))) for _ in range(random.randrange(40)))


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def spoilt_text(random: Random, good: bytes) -> bytes:
    """Spoil a text file: a value, a line, a byte, its end."""
    lines = good.decode().splitlines()
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        place = random.randrange(len(lines))
        line, how = lines[place], random.random()
        if how < 0.5 and "=" in line:
            lines[place] = f"{line.partition('=')[0]}= {toml_value(random)}"
        elif how < 0.75 and "," in line:
            cells = line.split(",")
            cells[random.randrange(len(cells))] = random.choice(TEXTS).replace("\n", " ")
            lines[place] = ",".join(cells)
        elif how < 0.8:
            lines.insert(place, random.choice([line, random.choice(TEXTS), "[" * 500, "a." * 300 + "b = 1"]))
        elif how < 0.85 and len(lines) > 1:
            del lines[place]
        elif how < 0.9:
            lines[place] = line[: random.randrange(len(line) + 1)]
        else:
            lines[place] = line + text(random)
    return _dressed(random, "\n".join(lines).encode("utf-8", "surrogatepass"))


def _dressed(random: Random, data: bytes) -> bytes:
    """Now and then change what lies around a text: its encoding, the ends of its lines, a mark, its end."""
    if random.random() > 0.07:
        return data
    return random.choice([
        b"", b"\n", b"\xff\xfe" + data, data.decode("utf-8", "replace").encode("utf-16"), data[: len(data) // 2],
        b"\0" * 50, data + b"\0", data.replace(b"\n", b"\r"), data.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + data,
        data * 2, data.replace(b"a", b"\xe9"), b"\x1f\x8b" + data, b"PK\x03\x04" + data,
    ])  # fmt: skip


def toml_value(random: Random) -> str:
    """Draw a value as TOML writes it."""
    return random.choice([*_TOML_VALUES, json.dumps(random.choice(TEXTS))])


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def spoilt_rows(random: Random, good: bytes) -> bytes:
    """Spoil a CSV file: its rows, and the signs between them."""
    out = io.StringIO()
    quoting: Any = random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    rows = other_rows(random, good)
    csv.writer(out, delimiter=random.choice(",,,,,,;\t"), quoting=quoting, lineterminator="\n").writerows(rows)
    return _dressed(random, out.getvalue().encode("utf-8", "surrogatepass"))


def other_rows(random: Random, good: bytes) -> list[list[str]]:
    """Return the rows of a CSV file, a cell, a column, the header or a row spoilt."""
    rows = list(csv.reader(io.StringIO(good.decode())))
    for _ in range(random.choice([1, 1, 2, 3])):
        how, row = random.randrange(9), random.randrange(len(rows))
        column = random.randrange(len(rows[0]))
        if how < 4 and len(rows[row]) > column:
            rows[row][column] = text(random) if random.random() < 0.9 else "x" * 150_000
        elif how == 4:
            rows = [[*line[:column], *line[column + 1 :]] for line in rows] if len(rows[0]) > 1 else rows
        elif how == 5:
            rows = [[*line, *line[column : column + 1]] for line in rows]
        elif how == 6 and len(rows) > 1:
            del rows[row]
        elif how == 7:
            rows += [rows[row]] * random.choice([1, 3, 200])
        elif random.random() < 0.9:
            rows = [[*line, random.choice(TEXTS) if line is rows[0] else "1"] for line in rows]
        else:
            rows = [[*line, *(f"x_{number}" if line is rows[0] else "1" for number in range(10_000))] for line in rows]
    return rows


# ── trees ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def spoilt_json(random: Random, good: bytes) -> bytes:
    """Spoil a JSON file: replace, drop, add, rename or swap values along random paths."""
    if random.random() < 0.04:
        return _dressed(random, good)
    data = dump(spoilt_tree(random, json.loads(good)))
    if random.random() < 0.03:  # a key twice
        data = data.replace(b"{", b'{"kind": 3, ' if random.random() < 0.5 else b'{"kind": "tco", ', 1)
    return data


def spoilt_toml(random: Random, good: bytes) -> bytes:
    """Spoil the values of a TOML file, of whatever type and however deep."""
    import tomllib

    return "\n".join(_toml_lines(spoilt_tree(random, tomllib.loads(good.decode())))).encode("utf-8", "replace")


def spoilt_tree(random: Random, value: Any) -> Any:
    """Return a tree of which one to four places are others."""
    for _ in range(random.choice([1, 1, 2, 4])):
        inner: Any = value
        while isinstance(inner, (dict, list)) and inner:  # down a random path, mostly to a leaf
            key = random.choice(list(inner) if isinstance(inner, dict) else list(range(len(inner))))
            if isinstance(inner[key], (dict, list)) and inner[key] and random.random() < 0.75:
                inner = inner[key]
                continue
            _spoil(random, inner, key)
            break
    return value


def _spoil(random: Random, inner: Any, key: Any) -> None:
    how, old = random.random(), inner[key]
    if how < 0.12 and isinstance(old, (int, float)) and not isinstance(old, bool) and abs(old) < 1e15:
        inner[key] = random.choice([-old, old * 1e6, old / 1e6, old + 1, str(old), float(old), [old], old * 1e300])
    elif how < 0.65:
        inner[key] = any_value(random)
    elif how < 0.78:
        del inner[key]
    elif how < 0.86:
        other = random.choice(list(inner) if isinstance(inner, dict) else list(range(len(inner))))
        inner[key], inner[other] = inner[other], inner[key]
    elif isinstance(inner, dict):
        inner[random.choice(TEXTS)] = old if random.random() < 0.5 else inner.pop(key)
    else:
        inner += random.choice([[any_value(random)], [old] * 50])


def dump(value: Any) -> bytes:
    """Write JSON, integers of any length included."""
    before = sys.get_int_max_str_digits()  # Python writes no longer ones unless it is told to
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(value).encode()
    finally:
        sys.set_int_max_str_digits(before)


def _toml_lines(table: dict[str, Any]) -> Iterator[str]:
    """Write a tree as TOML, each table in its braces; what TOML has no word for is left out."""
    for key, value in table.items():
        if (written := as_toml(value)) is not None:
            yield f"{json.dumps(key)} = {written}"


def as_toml(value: Any) -> str | None:
    """Write a value as TOML; None of what it has no word for."""
    if isinstance(value, bool):  # before int, of which it is one
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(_toml_lines(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(item for item in map(as_toml, value) if item is not None) + "]"
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, int):
        return dump(value).decode()
    if isinstance(value, float):
        return repr(value)
    return None if value is None else json.dumps(value)


def spoilt_bytes(random: Random, good: bytes) -> bytes:
    """Spoil the bytes of a packed file: some of them, its end, its beginning."""
    data = bytearray(good)
    for _ in range(random.choice([1, 1, 5, 50])):
        data[random.randrange(len(data))] = random.randrange(256)
    return bytes(random.choice([data, data, data, data[: random.randrange(len(data))], data[5:], b"", data + data]))
