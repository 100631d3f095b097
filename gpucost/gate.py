"""The gate for files from outside: only regular files of bounded size come in, as text, TOML, JSON or rows of CSV.

What has passed holds finite numbers of bounded length, texts of bounded length, and is nested no deeper than allowed.
What a file's keys mean is judged where its kind is known.
"""

import csv
import io
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from datetime import date, datetime, time
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from gpucost.errors import DataError, UsageError
from gpucost.limits import limit

Path_ = str | os.PathLike[str]
_PART_BYTES = 1_000_000
_REPEATED_CHARACTERS = 40  # characters of a value that an error repeats


def shown(value: object) -> str:
    """Return a value as an error repeats it: shortened, on one line.

    >>> shown("x" * 99_999)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (99,999 characters)"
    >>> import pandas
    >>> shown(pandas.Series([1, 2]))
    '0 1 1 2 dtype: int64'
    """
    try:
        text = repr(value)
        text = " ".join(text.split()) if "\n" in text else text
    except Exception:  # a long integer, a list that holds itself, an object whose own text breaks
        return "an integer of thousands of digits" if isinstance(value, int) else f"a {type(value).__name__}"
    if len(text) <= 2 * _REPEATED_CHARACTERS:
        return text
    size = len(value) if isinstance(value, str) else len(text)
    return f"{text[: _REPEATED_CHARACTERS + 1]}… ({size:,} characters)"


def in_utf8(text: str) -> str:
    """Return a text as it is; one with bytes that are no UTF-8, as a file's name may have them, no database reads."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{shown(text)} is not valid UTF-8. Write it, or name the file, in UTF-8.") from None
    return text


class Stranger:
    """Who asks through the page or as an agent: files are read for them in one folder alone, or in none."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = None if folder is None else folder.resolve()
        self.files: list[str] = []  # that were named and lie there


STRANGERS: ContextVar[Stranger | None] = ContextVar("STRANGERS", default=None)  # none: whose machine it is


def may_look_at(path: Path_) -> bool:
    """Tell whether a word may be looked for among files: for a stranger only what lies in the folder for it."""
    stranger = STRANGERS.get()
    if stranger is None:
        return True
    return stranger.folder is not None and os.path.isabs(path) and Path(path).resolve().is_relative_to(stranger.folder)


def expanded(name: str | Path) -> Path:
    """Return a path with ~ as its home folder; where there is no such home, as it stands."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def read_bytes(path: Path_, bound: str = "limit_text_file_bytes") -> bytes:
    """Read a regular file of bounded size; a folder, a pipe, a device or more than the limit is a sentence."""
    return b"".join(read_parts(path, bound))


def regular_file(path: Path_) -> io.BufferedReader:
    """Open a regular file to be read; what is none is a sentence, and nobody waits for the other end of a pipe."""
    name = os.fspath(path)
    try:
        # O_NONBLOCK, since opening a pipe waits for its writer; O_BINARY, since Windows else changes ends of lines.
        descriptor = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode):  # asked of what was opened: a path may come to name something else meanwhile
            return open(descriptor, "rb")
        os.close(descriptor)
        kind = "a folder" if stat.S_ISDIR(mode) else "a device or a pipe"
        raise UsageError(f"cannot read {shown(name)}: it is {kind}. Name a file.")
    except FileNotFoundError:
        raise UsageError(f"cannot read {shown(name)}: there is no such file. Check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this is not a name of a file"
        raise UsageError(f"cannot read {shown(name)}: {reason}. Name a file that you may read.") from None


def read_parts(path: Path_, bound: str = "limit_text_file_bytes") -> Iterator[bytes]:
    """Yield the bytes of a regular file of bounded size, part by part."""
    name = os.fspath(path)
    left = most = int(limit(bound))
    with regular_file(path) as file:
        try:
            while left >= 0 and (part := file.read(_PART_BYTES)):
                left -= len(part)
                yield part
        except OSError as error:
            raise UsageError(f"cannot read {shown(name)}: {error.strerror}. Name a file that you may read.") from None
    if left < 0:  # counted as it is read: the size that a system states may be wrong, and files grow
        raise DataError(f"is larger than {most / 1e6:,.0f} MB. The setting {bound} raises that.", file=name)


def read_text(path: Path_, bound: str = "limit_text_file_bytes") -> str:
    """Read a regular file of bounded size as UTF-8, with or without a mark at its start."""
    raw = read_bytes(path, bound)
    if raw.startswith(b"\x1f\x8b"):  # RFC 1952, section 2.3.1
        raise DataError("is compressed with gzip. Unpack it first.", file=os.fspath(path))
    try:
        text = raw.decode("utf-8-sig")  # Excel puts a mark at the start of a CSV file
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 text (byte {error.start}). Save it as UTF-8.", file=os.fspath(path)) from None
    if "\0" in text:
        raise DataError("contains NUL bytes, so it is not a text file", file=os.fspath(path))
    return text


def read_toml(path: Path_) -> dict[str, Any]:
    """Read a TOML file whose values are finite and of bounded size and depth."""
    import tomllib

    content: dict[str, Any] = parsed(path, "TOML", tomllib.loads, read_text(path))
    return content


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


def read_json(path: Path_, bound: str = "limit_text_file_bytes", constant: Callable[[str], Any] = _no_number) -> Any:
    """Read a JSON file whose values are finite and of bounded size and depth; NaN and Infinity as `constant` says."""
    import json

    def parse(text: str) -> Any:
        return json.loads(text, parse_constant=constant, object_pairs_hook=once)

    return parsed(path, "JSON", parse, read_text(path, bound))


def read_rows(path: Path_, bound: str = "limit_text_file_bytes") -> list[tuple[int, list[str]]]:
    """Read a small CSV file: its rows of stripped cells by the line each begins on, those without any text left out."""
    lines = csv.reader(io.StringIO(read_text(path, bound), newline=""))
    rows, start = [], 1
    try:
        for line in lines:
            rows.append((start, [cell.strip() for cell in line]))
            start = lines.line_num + 1
    except csv.Error as error:
        raise DataError(f"is not readable as CSV: {error}", file=os.fspath(path), row=lines.line_num) from None
    return [(number, row) for number, row in rows if any(row)]


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that stand more than once, each once, in the order of their first places.

    >>> repeated(["b", "a", "c", "a", "b", "b"])
    ['b', 'a']
    """
    return [name for name, times in Counter(names).items() if times > 1]


def read_table(path: Path_, bound: str = "limit_text_file_bytes") -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Read a small CSV file with a header: its columns, and by line the cells of each row that hold something."""
    file = os.fspath(path)
    (first, header), *rows = read_rows(path, bound) or [(1, [])]
    while header and not header[-1]:  # spreadsheets write a comma for each column that was ever used
        header.pop()
    if len(header) == 1 and (sign := re.search("[;\t]", header[0])):
        kind = "semicolons" if sign[0] == ";" else "tabs"
        raise DataError(
            f"its columns are separated by {kind}. Save it with commas, and numbers as 2.35.", file=file, row=first
        )
    if twice := repeated(filter(None, header)):
        raise DataError("the column appears twice. Keep one.", file=file, row=first, column=twice[0])
    table = []
    for number, cells in rows:
        if any(cells[len(header) :]):  # nearly always a number with a comma in it
            reason = f"holds {len(cells)} cells, and the header {len(header)}. Write 1000 for 1,000 and 2.35 for 2,35."
            raise DataError(reason, file=file, row=number)
        table.append((number, {name: cell for name, cell in zip(header, cells, strict=False) if cell}))
    return header, table


def in_small(header: Iterable[str], columns: Iterable[str]) -> str:
    """Return the hint for a header that has a wanted column in another case; nothing for any other.

    >>> in_small(["Month", "gpus"], ["month"]), in_small(["month", "gpus"], ["gpus"])
    ('. Write month for Month.', '')
    """
    low = {name.lower(): name for name in header}
    column = next((name for name in columns if low.get(name, name) != name), None)
    return f". Write {column} for {shown(low[column])[1:-1]}." if column else ""


@cache
def beside(module: str, name: str) -> list[list[str]]:
    """Return the rows of the table NAME.csv that lies beside a module of ours, its header first."""
    with open(Path(module).with_name(f"{name}.csv"), encoding="utf-8", newline="") as file:
        return list(csv.reader(file, strict=True))


@cache
def lists_beside(module: str, name: str) -> dict[str, tuple[str, ...]]:
    """Return the lists of a table NAME.csv beside a module of ours: each row names a list and holds one value of it."""
    lists: dict[str, tuple[str, ...]] = {}
    for list_, value in beside(module, name)[1:]:
        lists[list_] = (*lists.get(list_, ()), value)
    return lists


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these keys and values; a key that is there twice is refused, as TOML does."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError(f"the key {shown(repeated(key for key, _ in pairs)[0])} appears twice; keep one")
    return mapping


def parsed(path: Path_, kind: str, parse: Callable[[str], Any], text: str) -> Any:
    """Return what a text of a file says, where it is finite and of bounded size and depth."""
    name = os.fspath(path)
    try:
        value = parse(text)
    except RecursionError:
        raise DataError(f"is nested too deeply: more than {limit('limit_nesting'):.0f} levels", file=name) from None
    except ValueError as error:
        row = getattr(error, "lineno", None)
        # Python itself converts no text of more than 4,300 digits (sys.int_info), and says so in its own words.
        reason = f"holds a number of more than {limit('limit_digits'):.0f} digits" if "4300" in str(error) else error
        raise DataError(f"is not valid {kind}: {reason}", file=name, row=row) from None
    fault = next(faults(value), None)
    if fault:
        raise DataError(fault[1], file=name, column=fault[0] or None)
    return value


def faults(value: Any) -> Iterator[tuple[str, str]]:
    """Yield what a value holds that nothing may hold, as key path and reason.

    >>> list(faults({"a": [1, float("inf")], "b": "fine"}))
    [('a[1]', 'inf is not a finite number')]
    """
    deepest, longest, digits = (int(limit(f"limit_{name}")) for name in ("nesting", "text_characters", "digits"))
    highest = 10**digits

    def wrong(item: Any) -> str:
        """Say what is wrong with an item that holds no others, or nothing."""
        if isinstance(item, str):
            if len(item) > longest:
                return f"a text of {len(item):,} characters; at most {longest:,}"
            return "a text with a NUL character, which no name or path holds" if "\0" in item else ""
        if isinstance(item, float):
            return "" if -inf < item < inf else f"{item} is not a finite number"
        if isinstance(item, int):
            return "" if -highest < item < highest else f"an integer of more than {digits} digits"
        readable = item is None or isinstance(item, (date, datetime, time))  # TOML has days and times
        return "" if readable else f"{shown(item)} is not a value of a file"

    # Levels are kept in a list, not on Python's stack: a value that was built elsewhere may be nested deeper than that.
    keys: list[Any] = [""]  # that lead to the item at hand, one a level
    levels: list[Iterator[tuple[Any, Any]]] = [iter([("", value)])]
    while levels:
        for key, item in levels[-1]:
            keys[-1] = key
            # only long keys: any other an error can repeat whole, and nearly all are short
            if type(key) is str and len(key) > _REPEATED_CHARACTERS and (reason := wrong(key)):
                yield _place([*keys[1:-1], key[:_REPEATED_CHARACTERS]]), reason
            if isinstance(item, (dict, list, tuple)):
                if item and len(levels) > deepest:
                    yield _place(keys[1:])[:200], f"is nested too deeply: more than {deepest} levels"
                    continue
                levels.append(iter(item.items()) if isinstance(item, dict) else enumerate(item))
                keys.append("")
                break
            if reason := wrong(item):
                yield _place(keys[1:]), reason
        else:
            levels.pop()
            keys.pop()


def _place(keys: Iterable[Any]) -> str:
    """Return the path of keys and numbers to an item.

    >>> _place(["a", 1, "b"])
    'a[1].b'
    """
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")
