"""The process of one query: it loads the catalog, locks it, bounds itself, and hands rows over as they come."""

import math
import os
import pickle
import re
import signal
import sys
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from json.encoder import encode_basestring
from typing import Any, BinaryIO

from gpucost.catalog.core import Catalog
from gpucost.catalog.loader import file_name, quoted
from gpucost.catalog.relations import QUESTIONED, Relation
from gpucost.catalog.sandbox import LENGTH, Bounds, too_much_memory
from gpucost.catalog.settings import present_folder
from gpucost.errors import UsageError, shortened
from gpucost.schemas import TABLES

_ALLOWED = ("SELECT", "EXPLAIN")
_EXPLAIN = re.compile(r"\s*explain\s+(analyze\s+)?(\([^)]*\)\s*)?", re.IGNORECASE)
# statements that list tables or read what the database keeps of itself: every table must be there
_READS_METADATA = re.compile(
    r"\b(show|desc\w*|summarize)\b|duckdb_|information_schema|pg_|sqlite_|query", re.IGNORECASE
)
_READS_HISTORY = re.compile(r"history|prices_on", re.IGNORECASE)  # what days of the past are asked about by
_NO_TABLE = re.compile(r"Catalog Error: Table with name (\w+) does not exist", re.IGNORECASE)
_COMMENT = re.compile(r"\s*(--[^\n]*\n|/\*.*?\*/)", re.DOTALL)
_SIGNS_PER_CELL = 8  # signs around a cell and its name, once it is written as JSON
_ROWS_AT_ONCE = 64  # a row may hold megabytes
_OWN_MEMORY_GB = 0.7  # the process itself and the rows on their way out


def serve() -> None:
    """Answer the one query that comes in on stdin, on stdout; then end at once."""
    import gc

    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else writes among the messages
    world, query, allowed, filled = pickle.load(sys.stdin.buffer)
    gc.disable()  # the process ends with its query: what it leaves is not worth looking for
    if not present_folder():  # the database breaks without one
        os.chdir(os.sep)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _answer(world, query, Bounds(*allowed), out, filled)
    except UsageError as error:
        _send(out, str(error))
    except MemoryError:
        _send(out, str(too_much_memory(Bounds(*allowed))))
    except OSError as error:  # a book that vanished, a folder that cannot be: the user's to mend
        _send(out, shortened(f"cannot read {error.filename or 'the catalog'}: {error.strerror or error}."))
    except Exception as error:
        _send(out, RuntimeError(f"the query process failed: {type(error).__name__}: {error}"))
    out.flush()
    os._exit(0)


def _end_with_parent() -> None:
    """End this process once nobody holds the other end of stdin any more."""
    os.read(0, 1)
    os._exit(1)


def _answer(
    world: Mapping[str, Any], query: str, allowed: Bounds, out: BinaryIO, filled: Mapping[str, Relation] | None = None
) -> None:
    """Send that the catalog is loaded, the names of the columns, then the rows; an empty chunk ends them.

    `world` is what opens the same catalog as the asker's; `filled` are relations that a question has filled.
    """
    import duckdb

    only_select(query)
    catalog, filled = Catalog(**world), filled or {}
    try:
        store = catalog.copied(tables_of(query, filled), bool(_READS_HISTORY.search(query)))  # whose files go with it
        for name, relation in filled.items():
            store.load(name, relation.types, relation.columns)
        # Its database is locked for good: no files but those its views read, no network, no settings, no writing.
        _days_without_pytz()
        files = ", ".join(f"{quoted(str(file))}, {file_name(file)}" for file in store.lying)
        connection = store.connection.cursor()
        connection.execute("SET TimeZone = 'UTC'")  # of this cursor: it takes over no setting of its session
        for statement in (
            "SET temp_directory = ''",  # before the limit, which would write into the present folder
            f"SET memory_limit = '{allowed.memory_gb:g}GB'",
            f"SET allowed_paths = [{files}]",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            store.execute(statement)
        connection.execute("BEGIN TRANSACTION READ ONLY")
    except duckdb.OutOfMemoryException:  # the facts alone are more
        raise too_much_memory(allowed) from None
    _bound_process(allowed)
    _send(out, True)
    try:
        connection.execute(query)
        # repeated names get a number, so that no column is lost
        stated = [column[0] for column in connection.description or ()]
        names: list[str] = []
        counts: dict[str, int] = {}
        used = set(stated)
        for name in stated:
            counts[name] = counts.get(name, 0) + 1
            unique = name if counts[name] == 1 else f"{name}_{counts[name]}"
            while counts[name] > 1 and unique in used:  # a column may be called name_2 already
                counts[name] += 1
                unique = f"{name}_{counts[name]}"
            used.add(unique)
            names.append(unique)
        _send(out, names)
        # a row of JSON repeats the names
        names_bytes = sum(map(len, names)) + _SIGNS_PER_CELL * len(names)
        while chunk := connection.fetchmany(_ROWS_AT_ONCE):
            written_bytes = sum(map(_cells_bytes, chunk)) + names_bytes * len(chunk)
            _send(out, (written_bytes, chunk), allowed.row_bytes * len(chunk))
        _send(out, (0, []))
    except duckdb.OutOfMemoryException:
        raise too_much_memory(allowed) from None
    except MemoryError:  # of this process: `serve` says so
        raise
    except Exception as error:  # whatever a stranger's query brings about is an answer to it
        hint = ""
        missing_table = _NO_TABLE.match(str(error))
        if missing_table and (name := missing_table[1].lower()) in QUESTIONED and name not in filled:
            hint = f" {name} belongs to a question: add --model, such as --model 8b --tokens 100b."
        raise UsageError(f"SQL: {_first_lines(error)}{hint}") from None


def _cells_bytes(row: tuple[Any, ...]) -> int:
    """Return about how many bytes the cells of a row take as JSON, the longest form that they are written in.

    >>> _cells_bytes(("a", chr(1), None, 2.5))
    18
    """
    return sum(len(encode_basestring(cell)) if type(cell) is str else len(str(cell)) for cell in row)


def _send(out: BinaryIO, message: Any, most_bytes: float = math.inf) -> None:
    """Write a message below its length, which `sandbox` reads first."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    if len(data) > most_bytes:
        raise ValueError(f"its rows take {len(data) / 1e6:,.0f} MB; the setting limit_query_row_bytes bounds each one.")
    out.write(len(data).to_bytes(LENGTH, "big") + data)
    out.flush()


def _bound_process(allowed: Bounds) -> None:
    """Bound what this process may take by the system's own means; a system without them has the database's alone."""
    try:
        import resource
    except ImportError:
        return
    try:  # what libraries have mapped already is in use, much of it never touched
        with open("/proc/self/statm", encoding="ascii") as file:
            in_use_bytes = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # a system without /proc: more than this process maps
        in_use_bytes = 4_000_000_000
    most_bytes = int(in_use_bytes + (allowed.memory_gb + _OWN_MEMORY_GB) * 1e9)
    signal.setitimer(signal.ITIMER_REAL, allowed.seconds + 2)  # for an asker that is stopped or gone
    # The asker's own clock ends a query in time; these limits come after it, and the hard ones of the system stay.
    cpu_s = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) + allowed.seconds) + 2
    for kind, value in ((resource.RLIMIT_AS, most_bytes), (resource.RLIMIT_CPU, cpu_s), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        top = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (top, hard))


def only_select(query: str) -> str:
    """Return the one statement of a query if it reads only, else refuse it."""
    import duckdb

    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        raise UsageError(f"SQL: {_first_lines(error)}") from None
    if len(statements) != 1:
        raise UsageError(f"SQL: give one statement at a time, found {len(statements)}.")
    kind = statements[0].type.name
    if kind not in _ALLOWED:
        raise UsageError(f"SQL: {kind} is refused; the catalog is read-only. Write a SELECT.")
    if kind == "EXPLAIN":  # EXPLAIN ANALYZE runs what it explains: that is judged too
        text = query
        while match := _COMMENT.match(text):
            text = text[match.end() :]
        explained, count = _EXPLAIN.subn("", text, count=1)
        if not count or _EXPLAIN.match(explained):
            raise UsageError("SQL: EXPLAIN works for SELECT only.")
        only_select(explained)
    return query


def tables_of(query: str, filled: Iterable[str] = ()) -> frozenset[str]:
    """Return the tables that suffice to answer a query beside those filled: all, but where it plainly names few.

    >>> sorted(tables_of("FROM llms JOIN aliases ON kind = 'model'")), len(tables_of("SHOW TABLES")) == len(TABLES)
    (['aliases', 'llms'], True)
    """
    import duckdb

    every = frozenset(TABLES)
    if _READS_METADATA.search(query):
        return every
    try:
        with duckdb.connect(config={"enable_external_access": False}) as empty:
            names = frozenset(empty.get_table_names(query)) - frozenset(filled)
    except duckdb.Error:  # a join by USING asks for the columns of tables that are not there
        return every
    return names if names <= every else every  # a view, such as prices, reads several


def _days_without_pytz() -> None:
    """Give the database the one zone that it asks pytz for, in this process alone; the package is no need of ours."""
    from types import ModuleType

    zones = ModuleType("pytz")
    vars(zones)["timezone"] = _Utc
    sys.modules.setdefault("pytz", zones)


class _Utc(tzinfo):
    """UTC as the database calls it: by name, then `localize`; what it hands out are moments of Python's own UTC."""

    def __init__(self, name: str = "UTC") -> None:
        super().__init__()

    def localize(self, moment: datetime) -> datetime:
        """Return a moment without a zone as one of UTC."""
        return moment.replace(tzinfo=UTC)

    fromutc = localize

    def utcoffset(self, moment: datetime | None) -> timedelta:
        """Return no difference."""
        return timedelta(0)


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).split("\n\n")[0].split())[:500]
