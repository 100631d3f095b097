"""Tables of cases: Parquet, CSV and data frames as columns of codes, and grid files."""

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
        name = file_name(path)
        try:
            try:
                columns = _coded(connection, f"{reader}({name})", str(path))
            except duckdb.ConversionException:  # a column of numbers that goes on in words, below what was looked at
                columns = _coded(connection, f"{reader}({name}, sample_size = -1)", str(path))
        except duckdb.Error as error:
            raise DataError(f"cannot be read as cases: {said_first(error)}", file=str(path)) from None
    if reader == "read_csv" and any(map(_MADE_UP.fullmatch, columns)):
        _refuse_header(path, columns)
    return Cases(columns, str(path), 2 if reader == "read_csv" else 1)


def _refuse_header(path: Path, names: Iterable[str]) -> None:
    """Refuse a CSV file whose header names no columns, or one twice, or whose rows are not as long as it."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        mark = max(",;\t|", key=file.readline(_LONGEST_HEADER).count)
        file.seek(0)
        rows = csv.reader(file, delimiter=mark)
        try:
            header = [cell.strip() for cell in next(rows, [])]
            unlike = next(((rows.line_num, len(row)) for row in rows if row and len(row) != len(header)), None)
        except csv.Error as error:
            raise DataError(f"is no readable CSV: {error}", file=str(path), row=rows.line_num) from None
    if unlike:
        reason = f"the row has {unlike[1]} cells, the header {len(header)}"
        raise DataError(f"{reason}. Leave a cell empty where nothing is known.", file=str(path), row=unlike[0])
    if twice := repeated(filter(None, header)):
        raise DataError("the column appears twice", file=str(path), row=1, column=twice[0])
    if header != list(names):
        raise DataError("does not name the argument of each column, as model,gpu,tokens do", file=str(path), row=1)


def _coded(connection: "duckdb.DuckDBPyConnection", table: str, said: str) -> Coded:
    kinds = {row[0]: row[1] for row in connection.execute(f"describe select * from {table}").fetchall()}
    if not kinds:
        raise UsageError(f"{said} has no columns. It needs one for each argument.")
    if len(kinds) > _MOST_COLUMNS:
        raise UsageError(f"{said} has {len(kinds):,} columns; no question has {_MOST_COLUMNS:,} arguments.")
    found: Coded = {}
    for name, kind in kinds.items():
        words = kind.startswith(("VARCHAR", "ENUM", "DATE", "TIMESTAMP"))
        cell = f"{named(name)}{'::date' * (kind in _MOMENTS)}{'::varchar' * words}"
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
    return codes, [*values.tolist(), *([None] if missing.any() else [])]


def grid_of(path: str) -> dict[str, Any]:
    """Read a grid file: a TOML table of arguments, each a value, a list or a range."""
    from gpucost.gate import read_toml

    found: Mapping[str, Any] = read_toml(path)
    if nested := [name for name, value in found.items() if isinstance(value, Mapping)]:
        raise DataError(f'{nested[0]} is a table; a grid file holds arguments, such as gpus = "8:64:x2"', file=path)
    return dict(found)
