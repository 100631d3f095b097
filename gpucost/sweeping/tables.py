"""Tables of cases: Parquet, CSV and data frames as columns of codes, and grid files."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpucost.arguments.kinds import FILE
from gpucost.catalog.loader import file_name, named, said_first
from gpucost.errors import DataError, UsageError

if TYPE_CHECKING:
    import duckdb

Coded = dict[str, tuple[NDArray[Any], list[Any]]]

_MOST_COLUMNS = 1000
READERS = {".parquet": "read_parquet", ".csv": "read_csv"}


def cases_of(given: Any) -> Coded:
    """Read a table of cases: a data frame, or the name of a Parquet or CSV file; each column in its distinct values."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("set enable_progress_bar = false; set threads = 2")
        if hasattr(given, "columns"):
            if not len(given.columns):
                raise UsageError("the table of cases has no columns. It needs one for each argument.")
            connection.register("given", given)
            return _coded(connection, "given", "the table of cases")
        path = Path(FILE.read(given, "--cases"))
        reader = READERS.get(path.suffix.lower())
        if reader is None:
            raise UsageError(f"--cases: {path.name} is neither .parquet nor .csv. Write the cases as one of them.")
        if not path.is_file():
            raise UsageError(f"--cases: there is no file {path}. Name one with a column for each argument.")
        try:
            return _coded(connection, f"{reader}({file_name(path)})", str(path))
        except duckdb.Error as error:
            raise DataError(f"cannot be read as cases: {said_first(error)}", file=str(path)) from None


def _coded(connection: "duckdb.DuckDBPyConnection", table: str, said: str) -> Coded:
    kinds = {row[0]: row[1] for row in connection.execute(f"describe select * from {table}").fetchall()}
    if not kinds:
        raise UsageError(f"{said} has no columns. It needs one for each argument.")
    if len(kinds) > _MOST_COLUMNS:
        raise UsageError(f"{said} has {len(kinds):,} columns; no question has {_MOST_COLUMNS:,} arguments.")
    found: Coded = {}
    for name, kind in kinds.items():
        cell = named(name)
        if kind.startswith(("VARCHAR", "ENUM", "DATE", "TIMESTAMP")):
            column = connection.execute(f"select {cell}::varchar as v from {table}").fetchnumpy()["v"]
            found[name] = _words(column)
        else:
            column = connection.execute(f"select {cell} as v from {table}").fetchnumpy()["v"]
            found[name] = _numbers(column)
    return found


def _words(column: Any) -> tuple[NDArray[Any], list[Any]]:
    import pandas

    codes, words = pandas.factorize(np.ma.getdata(column), use_na_sentinel=False)
    missing = np.ma.getmaskarray(column)
    values: list[Any] = [word if isinstance(word, str) else None for word in words]
    return _with_missing(codes, values, missing)


def _numbers(column: Any) -> tuple[NDArray[Any], list[Any]]:
    values, codes = np.unique(np.ma.getdata(column), return_inverse=True)
    return _with_missing(codes, values.tolist(), np.ma.getmaskarray(column))


def _with_missing(codes: NDArray[Any], values: list[Any], missing: NDArray[np.bool_]) -> tuple[NDArray[Any], list[Any]]:
    """Give cells without a value the value None."""
    if missing.any():
        codes = np.where(missing, len(values), codes)
        values = [*values, None]
    return codes.astype(np.int32), values


def grid_of(path: str) -> dict[str, Any]:
    """Read a grid file: a TOML table of arguments, each a value, a list or a range."""
    from gpucost.gate import read_toml

    found: Mapping[str, Any] = read_toml(path)
    if nested := [name for name, value in found.items() if isinstance(value, Mapping)]:
        raise DataError(f'{nested[0]} is a table; a grid file holds arguments, such as gpus = "8:64:x2"', file=path)
    return dict(found)
