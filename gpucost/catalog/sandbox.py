"""A stranger's SQL on a copy of the catalog: one SELECT, no files, no network, limited memory, time and rows."""

import re
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from gpucost.catalog.loader import Store
from gpucost.errors import UsageError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TIME_LIMIT_S = 20.0
MEMORY_LIMIT_GB = 2.0
ROW_LIMIT = 1_000_000
_ALLOWED = ("SELECT", "EXPLAIN")
_EXPLAIN = re.compile(r"\s*explain\s+(analyze\s+)?(\([^)]*\)\s*)?", re.IGNORECASE)
_COMMENT = re.compile(r"\s*(--[^\n]*\n|/\*.*?\*/)", re.DOTALL)


class Answer(NamedTuple):
    """Columns and rows of a query."""

    columns: list[str]
    rows: list[dict[str, Any]]


def run(
    store: Store, query: str, *, time_limit_s: float = TIME_LIMIT_S, memory_limit_gb: float = MEMORY_LIMIT_GB
) -> Answer:
    """Lock a store and run one SELECT or EXPLAIN over it; anything else is refused, anything endless is stopped."""
    import duckdb

    statement = only_select(query)
    connection = _locked(store, memory_limit_gb)
    timer = threading.Timer(time_limit_s, connection.interrupt)
    timer.start()
    try:
        connection.execute(statement)
        columns = _unique([column[0] for column in connection.description or ()])
        rows = _fetch(connection)
    except duckdb.InterruptException:
        raise UsageError(f"the query was stopped after {time_limit_s:g} s. Narrow it, or raise --time-limit.") from None
    except duckdb.OutOfMemoryException:
        raise UsageError(f"the query needs more than {memory_limit_gb:g} GB of memory. Narrow it.") from None
    except duckdb.Error as error:
        raise UsageError(f"SQL: {_first_lines(error)}") from None
    finally:
        timer.cancel()
        connection.close()
    return Answer(columns, [dict(zip(columns, row, strict=True)) for row in rows])


def only_select(query: str) -> str:
    """Return the one statement of a query if it reads only, else refuse it."""
    import duckdb

    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        raise UsageError(f"SQL: {_first_lines(error)}") from None
    if len(statements) != 1:
        raise UsageError(f"SQL: one statement is run at a time, found {len(statements)}.")
    kind = statements[0].type.name
    if kind not in _ALLOWED:
        raise UsageError(f"SQL: {kind} is refused; the catalog is read-only. Write a SELECT.")
    if kind == "EXPLAIN":
        only_select(_explained(query))
    return query


def _explained(query: str) -> str:
    text = query
    while match := _COMMENT.match(text):
        text = text[match.end() :]
    inner, found = _EXPLAIN.subn("", text, count=1)
    if not found or _EXPLAIN.match(inner):
        raise UsageError("SQL: EXPLAIN is run for a SELECT only.")
    return inner


def _locked(store: Store, memory_limit_gb: float) -> "DuckDBPyConnection":
    """Lock a store's database for good: no files, no network, no settings, no writing."""
    for statement in (
        f"SET memory_limit = '{memory_limit_gb:g}GB'",
        "SET temp_directory = ''",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        store.execute(statement)
    connection = store.connection.cursor()
    connection.execute("BEGIN TRANSACTION READ ONLY")
    return connection


def _fetch(connection: "DuckDBPyConnection") -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    while chunk := connection.fetchmany(10_000):
        rows += chunk
        if len(rows) > ROW_LIMIT:
            raise UsageError(f"the query gives more than {ROW_LIMIT:,} rows. Add a LIMIT or an aggregate.")
    return rows


def _unique(names: list[str]) -> list[str]:
    """Give repeated column names a number, so that no column is lost."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).split("\n\n")[0].split())
