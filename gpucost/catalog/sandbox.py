"""A stranger's SQL on a copy of the catalog: one SELECT, no files, no network, limited memory, time, rows and bytes."""

import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from gpucost.catalog.relations import Relation
from gpucost.errors import UsageError
from gpucost.gate import in_utf8
from gpucost.limits import limit

LENGTH = 8  # bytes that say how long a message is
# the paths of this process: the other one finds the package where this one did
_START = "import sys; sys.path[:] = {path!r}; from gpucost.catalog.query import serve; serve()"


class Answer(NamedTuple):
    """Columns and rows of a query."""

    columns: list[str]
    rows: list[dict[str, Any]]


class Bounds(NamedTuple):
    """What one query may take."""

    seconds: float
    memory_gb: float
    rows: float
    bytes: float
    row_bytes: float
    cells: float


def bounds(*, time_limit_s: object = None, memory_limit_gb: object = None) -> Bounds:
    """Return the limits of one query: those asked for, else those of the settings, else the usual ones."""
    stated_limits = {"limit_query_seconds": time_limit_s, "limit_query_memory_gb": memory_limit_gb}
    sizes = ("limit_query_rows", "limit_query_result_bytes", "limit_query_row_bytes", "limit_query_cells")
    names = ("limit_query_seconds", "limit_query_memory_gb", *sizes)
    return Bounds(*(limit(name, stated_limits.get(name)) for name in names))


def run(world: Mapping[str, Any], query: str, allowed: Bounds, filled: Mapping[str, Relation] | None = None) -> Answer:
    """Run one SELECT or EXPLAIN over the catalog that `world` describes, in a process that is ended at its limits.

    `filled` are relations that a question filled; they lie beside the tables of the catalog.
    """
    import signal

    in_utf8(query)
    command = [sys.executable, "-c", _START.format(path=sys.path)]
    child: Any = subprocess.Popen(
        command, start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    late = threading.Event()

    def end() -> None:
        late.set()
        child.kill()

    timer = threading.Timer(allowed.seconds, end)
    timer.daemon = True
    try:
        pickle.dump((dict(world), query, tuple(allowed), dict(filled or {})), child.stdin)
        child.stdin.flush()  # it stays open: the process ends with the one who asked
        _message(child.stdout)  # the catalog is loaded: from here on the query's time runs
        timer.start()
        _, columns = _message(child.stdout)
        rows: list[dict[str, Any]] = []
        bytes_read = 0
        while True:
            size, (written_bytes, chunk) = _message(child.stdout)
            if not chunk:
                return Answer(columns, rows)
            rows += [dict(zip(columns, row, strict=True)) for row in chunk]
            bytes_read += max(size, written_bytes)
            if len(rows) > allowed.rows:
                raise UsageError(f"the query gives more than {allowed.rows:,.0f} rows. Add a LIMIT or an aggregate.")
            if len(rows) * len(columns) > allowed.cells:
                raise UsageError(
                    f"the query gives more than {allowed.cells:,.0f} cells. Ask for fewer columns or rows; the setting"
                    " limit_query_cells raises that."
                )
            if bytes_read > allowed.bytes:
                raise UsageError(f"the query gives more than {allowed.bytes / 1e6:,.0f} MB. Ask for less of it.")
    except (EOFError, BrokenPipeError):
        # ended by the timer here, or by the limits that the process set itself, for when nobody is left to end it
        stopped = (-getattr(signal, "SIGXCPU", 24), -getattr(signal, "SIGALRM", 14))
        if late.is_set() or child.wait() in stopped:
            reason = f"the query was stopped after {allowed.seconds:g} s. Narrow it, or raise --time-limit."
            raise UsageError(reason) from None
        raise UsageError(
            f"the database ended at this query: it needs more than {allowed.memory_gb:g} GB of memory, or lies too deep"
            " in itself. Narrow it."
        ) from None
    finally:
        timer.cancel()
        child.kill()
        child.wait()
        with suppress(BrokenPipeError):
            child.stdin.close()
        child.stdout.close()


def _message(stream: Any) -> tuple[int, Any]:
    """Read a message and its size; a text is a refusal, an exception is raised, and a process that ended sends none."""
    size = int.from_bytes(stream.read(LENGTH), "big")
    data = stream.read(size)
    if not size or len(data) < size:
        raise EOFError
    message = pickle.loads(data)
    if isinstance(message, str):
        raise UsageError(message)
    if isinstance(message, Exception):
        raise message
    return size, message


def too_much_memory(allowed: Bounds) -> UsageError:
    """Return the refusal of a query that needs more memory than it may have."""
    return UsageError(f"the query needs more than {allowed.memory_gb:g} GB of memory. Narrow it.")
