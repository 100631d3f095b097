"""Tables of cases: Parquet, CSV and data frames as columns of codes, and grid files."""

import codecs
import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.arguments.kinds import FILE
from gpucost.catalog.loader import file_name, named, said_first
from gpucost.errors import DataError, UsageError
from gpucost.gate import repeated

if TYPE_CHECKING:
    import duckdb

Coded = dict[str, tuple[NDArray[Any], list[Any]]]

_MOST_COLUMNS, _LONGEST_HEADER = 1000, 100_000
_MOMENTS = ("TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_S")  # whose day is meant, as a single question does
_MADE_UP = re.compile(r"column\d+|.*[,;|\t].*|.*_\d+")  # what the engine calls columns whose header it cannot use
_BARE = re.compile(r"column\d+")  # of them, those without a name
READERS = {".parquet": "read_parquet", ".csv": "read_csv"}


class Cases(NamedTuple):
    """A table of cases: each column in its distinct values, and how errors name the table and its rows."""

    columns: Coded
    said: str = "the table of cases"
    first: int = 1  # what the first case's row is called: 2 below the header of a CSV file


def cases_of(given: Any) -> Cases:
    """Read a table of cases: a data frame, or the name of a Parquet or CSV file."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("set enable_progress_bar = false; set threads = 2")
        if hasattr(given, "columns"):
            if not len(given.columns):
                raise UsageError("the table of cases has no columns. It needs one for each argument.")
            connection.register("given", given)
            return Cases(_coded(connection, "given", "the table of cases"))
        path = Path(FILE.read(given, "--cases"))
        reader = READERS.get(path.suffix.lower())
        if reader is None:
            raise UsageError(f"--cases: {path.name} is neither .parquet nor .csv. Write the cases as one of them.")
        if not path.is_file():
            raise UsageError(f"--cases: there is no file {path}. Name one with a column for each argument.")
        name = f"{file_name(path)}{_header(path) if reader == 'read_csv' else ''}"
        try:
            try:
                columns = _coded(connection, f"{reader}({name})", str(path))
            except duckdb.ConversionException:  # a column of numbers that goes on in words, below what was looked at
                columns = _coded(connection, f"{reader}({name}, sample_size = -1)", str(path))
        except duckdb.Error as error:
            if reader == "read_csv":
                _refuse_text(path)
            raise DataError(f"cannot be read as cases: {said_first(error)}", file=str(path)) from None
    if reader == "read_csv":
        made_up, columns = any(map(_MADE_UP.fullmatch, columns)), _trimmed(columns)
        if made_up:
            _refuse_header(path, columns)
    return Cases(columns, str(path), 2 if reader == "read_csv" else 1)


def _header(path: Path) -> str:
    """Return the option that a first line which ends in empty cells is a header: its reader would doubt that."""
    with path.open("rb") as file:
        first = file.readline(_LONGEST_HEADER).rstrip(b" \r\n")
    return ", header = true" if first.endswith((b",", b";", b"\t")) else ""


def _trimmed(columns: Coded) -> Coded:
    """Leave out what a spreadsheet adds: columns without a name or a value, and at the end rows without a value."""
    kept = {name: found for name, found in columns.items() if found[1] not in ([], [None]) or not _BARE.fullmatch(name)}
    empty = {name: len(values) - 1 if None in values else -1 for name, (_, values) in kept.items()}
    count = rows = len(next(iter(kept.values()))[0]) if kept else 0
    while len(kept) > 1 and count and all(codes[count - 1] == empty[name] for name, (codes, _) in kept.items()):
        count -= 1
    if count == rows:
        return kept
    cut = {name: (codes[:count], values) for name, (codes, values) in kept.items()}
    return {
        name: (codes, values if (codes == empty[name]).any() else values[: empty[name]])
        for name, (codes, values) in cut.items()
    }


def _refuse_text(path: Path) -> None:
    """Refuse a CSV file in UTF-16, or whose lines end in two ways, which its reader takes for one line."""
    with path.open("rb") as file:
        start = file.read(_LONGEST_HEADER)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError("is UTF-16. Save it as CSV in UTF-8.", file=str(path))
    if 0 < start.count(b"\r\n") < start.count(b"\n"):
        raise DataError("ends some lines with CRLF and others with LF. Save it with one of them.", file=str(path))


def _refuse_header(path: Path, names: Iterable[str]) -> None:
    """Refuse a CSV file whose header names no columns, or one twice, or whose rows are not as long as it."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        mark = max(",;\t|", key=file.readline(_LONGEST_HEADER).count)
        file.seek(0)
        rows = csv.reader(file, delimiter=mark)
        try:
            header = [cell.strip() for cell in next(rows, [])]
            wide = len(header)
            while header and not header[-1]:
                header.pop()
            unlike = next(
                ((rows.line_num, len(row)) for row in rows if 0 < len(row) < len(header) or any(row[wide:])), None
            )
        except csv.Error as error:
            raise DataError(f"is no readable CSV: {error}", file=str(path), row=rows.line_num) from None
    if unlike:
        reason = f"the row has {unlike[1]} cells, the header {wide}"
        raise DataError(f"{reason}. Leave a cell empty where nothing is known.", file=str(path), row=unlike[0])
    if twice := repeated(filter(None, header)):
        raise DataError("the column appears twice", file=str(path), row=1, column=twice[0])
    if not header or header != list(names):
        raise DataError("does not name the argument of each column, as model,gpu,tokens do", file=str(path), row=1)


def _coded(connection: "duckdb.DuckDBPyConnection", table: str, said: str) -> Coded:
    kinds = {row[0]: row[1] for row in connection.execute(f"describe select * from {table}").fetchall()}
    if not kinds:
        raise UsageError(f"{said} has no columns. It needs one for each argument.")
    if len(kinds) > _MOST_COLUMNS:
        raise UsageError(f"{said} has {len(kinds):,} columns; no question has {_MOST_COLUMNS:,} arguments.")
    found: Coded = {}
    for name, kind in kinds.items():
        words = kind.startswith(("VARCHAR", "ENUM", "DATE", "TIME", "INTERVAL", "BLOB", "UUID"))
        cell = f"{named(name)}{'::date' * (kind in _MOMENTS)}{'::varchar' * words}"
        cell = f"nullif(trim({cell}), '')" if kind == "VARCHAR" else cell
        found[name] = _distinct(connection.execute(f"select {cell} as v from {table}").fetchnumpy()["v"], words)
    return found


def _distinct(column: Any, words: bool) -> tuple[NDArray[Any], list[Any]]:
    """Return a column as codes and what they mean; cells without a value mean None."""
    import pandas

    data, missing = np.ma.getdata(column), np.ma.getmaskarray(column)
    if data.dtype.kind == "f":
        missing = missing | np.isnan(data)
    known = data[~missing]
    values, places = pandas.factorize(known)[::-1] if words else np.unique(known, return_inverse=True)
    codes = np.full(len(data), len(values), np.int32)
    codes[~missing] = places
    found = [value.strip() if isinstance(value, str) else value for value in values.tolist()]
    return codes, [*found, *([None] if missing.any() else [])]


def grid_of(path: str) -> dict[str, Any]:
    """Read a grid file: a TOML table of arguments, each a value, a list or a range."""
    from gpucost.gate import read_toml

    found: Mapping[str, Any] = read_toml(path)
    if nested := [name for name, value in found.items() if isinstance(value, Mapping)]:
        raise DataError(f'{nested[0]} is a table; a grid file holds arguments, such as gpus = "8:64:x2"', file=path)
    return dict(found)
