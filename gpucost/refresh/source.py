"""What an importer is, and the desk at which it works: a client, a scratch database, and the listing that it fills.

An importer writes what its source says, row by row or by one SELECT, into the table `listing` (prices of capacity),
`tokens` (prices of hosted models) or `sales` (where machines are sold). It resolves no names and judges nothing:
`complete`, `integrity` and `sales` do, for all.
"""

import csv
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from msgspec import Struct

from gpucost.catalog.loader import engine, file_name, first_line, quoted
from gpucost.errors import DiskError, GpuCostError, UsageError
from gpucost.gate import beside
from gpucost.store.client import Client
from gpucost.store.files import disk_trouble, is_of_disk

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_COLUMNS = beside(__file__, "columns")[1:]
LISTING, TOKENS, SALES, UNKNOWN = (
    {row[1]: row[2] for row in _COLUMNS if row[0] == name} for name in ("listing", "tokens", "sales", "unknown")
)
ALSO_CALLED = {row[1]: row[3].split() for row in _COLUMNS if row[0] == "listing"}  # in lower case with underscores
ONE_LIST = ("lambda",)  # whose price is the same in every region
MARKETS = ("vast", "tensordock")
COMMITS = "https://api.github.com/repos/{owner}/{repository}/commits"
NOT_READ = "description not known"  # it may stand for any offer of its seller
_MEMORY_LIMIT = "600MB"  # of each source, of which several are read side by side
_START_BYTES, _LINE_BYTES, _MOST_COLUMNS = 1_000_000, 200_000, 2_000


class Desk:
    """Where one importer works: what it may ask, a folder of its own, and the tables that it fills."""

    def __init__(self, client: Client, folder: Path, today: date, options: Mapping[str, Any] | None = None) -> None:
        self.client, self.folder, self.today = client, folder, today
        self.source_id = ""  # by which what is fetched is cited
        self.copied = False  # see Source: a row that says no day was not seen today
        self.options = dict(options or {})
        folder.mkdir(parents=True, exist_ok=True)
        self.connection: DuckDBPyConnection = engine().connect(":memory:", config={"threads": 2})
        self.connection.execute(f"SET memory_limit = '{_MEMORY_LIMIT}'")
        self.connection.execute(f"SET temp_directory = {quoted(str(folder))}")
        self.connection.execute("SET preserve_insertion_order = false")
        with suppress(engine().Error):  # DuckDB 2.0 has the reader itself cast where TRY_CAST is asked for, and fail
            self.connection.execute("SET disabled_optimizers = 'type_pushdown'")
        self.failures: list[str] = []  # of parts of the source that could not be read
        for name, columns in _TABLES.items():
            self.connection.execute(f"CREATE TABLE {name} ({', '.join(f'{k} {v}' for k, v in columns.items())})")

    def close(self) -> None:
        """Let the scratch database go."""
        self.connection.close()

    def key(self, *names: str) -> str:
        """Return the key that the first of some variables of the environment holds; it is never shown."""
        for name in names:
            if value := os.environ.get(name, "").strip():
                return value
        raise UsageError(f"needs a key in the environment: {' or '.join(names)}.")

    def path(self, name: str) -> Path:
        """Return a path in the importer's own folder."""
        return self.folder / name

    def add(self, rows: Iterable[Mapping[str, Any]], table: str = "listing") -> None:
        """Take in rows as the source states them; a value that a column cannot hold becomes none."""
        columns = _TABLES[table]
        file = self.path(f"{table}-{len(os.listdir(self.folder))}.csv")
        with file.open("w", newline="", encoding="utf-8", errors="replace") as out:
            writer = csv.writer(out, lineterminator="\n")
            for row in rows:
                if foreign := row.keys() - columns.keys():
                    raise KeyError(f"{table} has no column {', '.join(sorted(foreign))}; gpucost/refresh/columns.csv")
                cells = [row.get(name) for name in columns]
                for place, cell in enumerate(cells):
                    if isinstance(cell, str):  # on one line, and of a length that a cell may have
                        cells[place] = " ".join(cell.replace("\0", " ").split())[:400]
                writer.writerow(cells)
        texts = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in columns)
        # written as text and cast by the database: a cell that is no number becomes none, and the row stays
        typed = ", ".join(f"{cell_sql(name, kind)} AS {name}" for name, kind in columns.items())
        how = "auto_detect=false, header=false, delim=',', quote='\"', escape='\"', nullstr='', max_line_size=1000000"
        source = f"read_csv({file_name(file)}, {how}, columns={{{texts}}})"
        self.connection.execute(f"INSERT INTO {table} SELECT {typed} FROM {source}")
        file.unlink()

    def each(self, parts: Mapping[str, Callable[[], None]]) -> None:
        """Read the parts of a source one by one: one that fails is named and costs the others nothing."""
        for name, read in parts.items():
            try:
                read()
            except DiskError:
                raise
            except GpuCostError as error:
                self.failures.append(f"{name}: {error}")
        if len(self.failures) == len(parts):
            raise UsageError(f"no part of it can be read: {self.failures[0]}")

    def select(self, sql: str, table: str = "listing") -> None:
        """Take in what one SELECT over fetched files says, by the names of its columns."""
        self.run(f"INSERT INTO {table} BY NAME {sql}")

    def run(self, sql: str) -> None:
        """Run a statement over fetched files; what they hold wrongly is a sentence."""
        try:
            self.connection.execute(sql)
        except engine().Error as error:
            if is_of_disk(error):
                raise disk_trouble(self.folder, error) from None
            raise UsageError(f"the source cannot be read: {first_line(error)}") from None


_TABLES = {"listing": LISTING, "tokens": TOKENS, "sales": SALES, "unknown": UNKNOWN}


def cell_sql(text: str, kind: str) -> str:
    """Return the SQL of a cell as a column holds it, NULL where it cannot; of 2.5 or 1yr in place of a count -1."""
    if kind != "INTEGER":
        return f"TRY_CAST({text} AS {kind})"
    number = f"TRY_CAST({text} AS DOUBLE)"
    whole = f"CASE WHEN {number} % 1 = 0 THEN TRY_CAST({number} AS INTEGER) END"
    return f"coalesce({whole}, CASE WHEN {has_digit(text)} THEN -1 END)"


def has_digit(text: str) -> str:
    """Return the SQL that is true of a cell that says a number, in whatever form."""
    return f"regexp_matches(CAST({text} AS VARCHAR), '[0-9]')"


def last_change(desk: Desk, address: str) -> date | None:
    """Return the day on which a file of a GitHub repository was last changed, or None where that cannot be read.

    The prices in a file without a day are at least as old as its last change.
    """
    # /owner/repository/branch/path, as raw.githubusercontent.com has it
    _, owner, repository, branch, path = urlsplit(address).path.split("/", 4)
    query = urlencode({"path": path, "sha": branch, "per_page": 1})
    try:
        commits = desk.client.json(
            f"{COMMITS.format(owner=owner, repository=repository)}?{query}", most_bytes=4_000_000
        )
        changed_on = date.fromisoformat(commits[0]["commit"]["committer"]["date"][:10])
    except (GpuCostError, LookupError, TypeError, ValueError):
        return None
    return min(changed_on, desk.today)  # a clock elsewhere may be ahead


def day_sql(day: date | None) -> str:
    """Return the SQL of a day that may not be known."""
    return "CAST(NULL AS DATE)" if day is None else f"DATE '{day}'"


class Source(Struct, frozen=True):
    """A source of prices: who publishes what where, and the function that reads it."""

    name: str
    publisher: str
    title: str
    locator: str
    fetch: Callable[[Desk], None]
    kind: str = "offers"
    keys: tuple[str, ...] = ()  # variables of the environment, any of which it needs
    heavy: bool = False  # hundreds of megabytes: asked for by name only
    heeds: tuple[str, ...] = ("mirror",)  # of what a refresh may ask of some sources alone
    own_list: bool = False  # the provider's whole list: what it leaves out is sold no more
    is_own_word: bool = False  # a file of the user's: what is new in it is no surprise
    copied: bool = False  # a file that others keep: its prices are as old as it says, or as its last change
    describes: bool = False  # it names parts or chips in words: a new word may mean an offer that it named before

    def id_on(self, day: date) -> str:
        """Return the id by which what was fetched on a day is cited."""
        return f"{self.name}-at-{day}"

    @property
    def has_key(self) -> bool:
        """Tell whether nothing is missing to ask the source."""
        return not self.keys or any(os.environ.get(name, "").strip() for name in self.keys)


def csv_text(file: Path, skip: int = 0) -> str:
    """Return the SQL that reads a CSV file with every cell as text.

    A file whose first lines have no end, or thousands of columns, would be guessed at for minutes: it is refused.
    """
    with file.open("rb") as start:
        lines = start.read(_START_BYTES).split(b"\n")
    if any(len(line) > _LINE_BYTES or line.count(b",") > _MOST_COLUMNS for line in lines):
        raise UsageError(
            f"the source cannot be read: a line has more than {_LINE_BYTES:,} bytes or {_MOST_COLUMNS:,} cells."
        )
    how = f"all_varchar=true, header=true, delim=',', quote='\"', escape='\"', skip={skip}, max_line_size=2000000"
    return f"read_csv({file_name(file)}, {how})"


def columns_of(desk: Desk, source: str) -> set[str]:
    """Return the columns that a reader finds."""
    try:
        return {row[0] for row in desk.connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
    except engine().Error as error:
        raise UsageError(f"the source cannot be read: {first_line(error)}") from None


def providers(source: str) -> dict[str, str]:
    """Return what a source calls providers, and what they are called here."""
    return {theirs: ours for name, theirs, ours in beside(__file__, "providers") if name == source}


def content_of(answer: Any, *keys: str, kind: type = list, fault: str) -> Any:
    """Return what an answer holds below some keys; one of another form is refused: its format has changed."""
    for key in keys:
        answer = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(answer, kind):
        raise UsageError(f"{fault}: its format has changed.")
    return answer


def require(columns: set[str], needed: Iterable[str]) -> None:
    """Refuse a source that lacks a column: its format changed."""
    if missing := sorted(set(needed) - columns):
        raise UsageError(f"the source has no column {', '.join(missing)}: its format has changed.")
