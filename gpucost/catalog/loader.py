"""Loading tables into DuckDB: where the files are, explicit column types, CSV or the Parquet twin made from it."""

import csv
import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import date
from functools import cache
from hashlib import blake2b
from importlib import import_module
from io import StringIO
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from gpucost.errors import DataError, UsageError
from gpucost.gate import in_utf8
from gpucost.limits import limit
from gpucost.schemas import DUCKDB_TYPES, HISTORY, TABLES, DataTable, TableColumn, table_of
from gpucost.store.files import is_of_disk

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


# --- Where the data files are: inside the installed package, else in the checkout around it.


@cache
def shipped_root() -> Path:
    """Return the folder that holds pricing/, models/ and reports/."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_data"
    return inside if inside.is_dir() else package.parent


def ready_questions() -> dict[str, Path]:
    """Return the shipped queries by name."""
    return {file.stem: file for file in sorted((shipped_root() / "reports" / "questions").glob("*.sql"))}


def table_files(root: Path, table: DataTable) -> list[Path]:
    """Return the CSV files of a table below a data root, in a fixed order."""
    if "*" in table.files:
        return sorted(root.glob(table.files))
    file = root / table.files
    return [file] if file.is_file() else []


def parquet_file(root: Path, table: DataTable) -> Path:
    """Return where the build hook writes a table's Parquet twin: beside its CSV file or its folder of CSV files.

    >>> from gpucost.schemas import TABLES
    >>> parquet_file(Path("data"), TABLES["offers"]).as_posix()
    'data/pricing/offers.parquet'
    """
    pattern = root / table.files
    return pattern.parent.with_suffix(".parquet") if "*" in pattern.name else pattern.with_suffix(".parquet")


class Contents(Struct, frozen=True):
    """The CSV files of one table as found on disk: their paths, headers and the hash over their bytes."""

    files: tuple[Path, ...]
    headers: Mapping[Path, tuple[str, ...]]
    digest: str
    joined: bytes  # all files under one header: one reading of a table of several files is far faster than many


def read_contents(root: Path, table: DataTable) -> Contents:
    """Hash a table's files and read their headers, each file once."""
    digest = blake2b(table.name.encode(), digest_size=16)
    headers: dict[Path, tuple[str, ...]] = {}
    bodies: list[bytes] = []
    files = table_files(root, table)
    for file in files:
        try:
            data = file.read_bytes()
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", file=str(file)) from None
        # names count too: a row that moves to another file is another version of the facts
        digest.update(file.relative_to(root).as_posix().encode() + b"\0")
        digest.update(data)
        data = data.removeprefix(BOM_UTF8)
        # from the second file on, the header goes
        end = data.find(b"\n") + 1 or len(data)
        header = data[:end].strip().decode("utf-8", "replace")
        try:
            headers[file] = tuple(next(csv.reader([header]), ()))
        except csv.Error as error:
            raise DataError(f"is not readable as CSV: {error}", file=str(file), row=1) from None
        bodies.append(data[end if bodies else 0 :])
        bodies += [] if data.endswith(b"\n") else [b"\n"]
    joined = b"".join(bodies)
    if b"\r" in joined:  # a file that a spreadsheet of Windows has saved
        joined = joined.replace(b"\r\n", b"\n")
    return Contents(tuple(files), headers, digest.hexdigest(), joined)


# --- A small table straight from its CSV file: for some hundred rows Python's own reader is quicker than a database.

_FLAGS = {"1": True, "0": False, "true": True, "false": False, "True": True, "False": False}
_CELLS: dict[str, Callable[[str], Any] | None] = {
    "text": None,
    "integer": int,
    "number": float,
    "date": date.fromisoformat,
    "flag": _FLAGS.__getitem__,
}


def _plain_rows(table: DataTable, contents: Contents) -> list[dict[str, Any]] | None:
    """Return a table's rows, an empty cell as None; None where anything is unusual, for the database to judge."""
    if len(contents.files) != 1:
        return None
    names = table.names
    try:
        lines = csv.reader(StringIO(contents.joined.decode("utf-8"), newline=""), strict=True)
        if tuple(next(lines)) != names:
            return None
        columns = list(zip(*lines, strict=True))
        if not columns or len(columns) != len(names):
            return None
        read = [read_column(column.kind, cells) for column, cells in zip(table.columns, columns, strict=True)]
    except (ValueError, KeyError, StopIteration, csv.Error):
        return None
    return [dict(zip(names, row, strict=True)) for row in zip(*read, strict=True)]


def read_column(kind: str, cells: Sequence[str]) -> list[Any]:
    """Read the cells of one column by its kind; an empty cell is None."""
    make = _CELLS[kind]
    return [cell or None for cell in cells] if make is None else [make(cell) if cell else None for cell in cells]


# --- Loading tables into DuckDB: one loader with explicit column types, two readers (CSV, and Parquet made from it).

_MANIFEST = "parquet.json"  # table -> digest of the CSV files that its Parquet twin was made from


def quoted(text: str) -> str:
    """Quote a string literal for SQL."""
    return "'" + in_utf8(text).replace("'", "''") + "'"


def named(text: str) -> str:
    """Quote the name of a column for SQL."""
    return '"' + text.replace('"', '""') + '"'


def first_line(error: Exception) -> str:
    """Return the first line of what the database says of a failure."""
    return (str(error).splitlines() or ["no reason is given"])[0][:300]


def file_name(file: str | Path) -> str:
    """Quote the name of a file for SQL that reads it: a sign of its own is no pattern for others.

    >>> file_name("bill[1].csv")
    "'bill[[]1].csv'"
    """
    from glob import escape

    name = str(file)
    return quoted(name if "\\" in name else escape(name))  # a pattern ends at a \; without one a file's name is its own


def refuse_long(connection: "DuckDBPyConnection", file: str | Path, bound: str) -> int:
    """Refuse a Parquet file of more rows than a bound by what its footer says, before any of them is unpacked.

    Millions of equal rows take no more bytes than one. A footer that contradicts itself is taken at its highest word.
    How many it says is returned.
    """
    groups = f"SELECT DISTINCT row_group_id, row_group_num_rows AS n FROM parquet_metadata({file_name(file)})"
    whole = f"SELECT num_rows AS n FROM parquet_file_metadata({file_name(file)})"
    try:
        counts = connection.execute(
            f"SELECT (SELECT max(n) FROM ({whole})), (SELECT sum(n) FROM ({groups}))"
        ).fetchone()
    except engine().Error as error:
        raise DataError(f"cannot be read: {first_line(error)}", file=str(file)) from None
    # a footer may say less than its row groups, or more: the larger figure is the one to fear
    rows = max(int(count or 0) for count in counts or ())
    if rows > (most := limit(bound)):
        raise DataError(f"holds {rows:,} rows, at most {most:,.0f}; the setting {bound} raises that", file=str(file))
    return rows


def _csv_reader(columns: Sequence[TableColumn], files: Sequence[Path]) -> str:
    """Return the SQL that reads CSV files with the schema's types; nothing is sniffed."""
    names = ", ".join(map(file_name, files))
    types = ", ".join(f"{quoted(column.name)}: '{DUCKDB_TYPES[column.kind]}'" for column in columns)
    options = "auto_detect=false, header=true, delim=',', quote='\"', escape='\"', nullstr=''"
    return f"SELECT * FROM read_csv([{names}], {options}, columns={{{types}}})"


def empty_reader(table: DataTable) -> str:
    """Return the SQL of the table without rows."""
    columns = ", ".join(f'NULL::{DUCKDB_TYPES[column.kind]} AS "{column.name}"' for column in table.columns)
    return f"SELECT {columns} WHERE false"


def engine() -> Any:
    """Return DuckDB's compiled module: the package around it takes several times as long to import."""
    try:
        return import_module("_duckdb")
    except ImportError:
        return import_module("duckdb")


def quiet(connection: "DuckDBPyConnection") -> "DuckDBPyConnection":
    """Return a connection that draws no bar; in a notebook without widgets the database has none, and refuses."""
    with suppress(engine().Error):
        connection.execute("SET enable_progress_bar = false")
    return connection


_at_work: "set[DuckDBPyConnection]" = set()  # connections whose statement runs


def interrupt() -> None:
    """End every statement that runs: the database itself heeds no signal."""
    for connection in tuple(_at_work):
        connection.interrupt()


class Store:
    """An in-memory DuckDB whose tables are read from a data root when they are first asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock = RLock()  # whoever makes a table or a view holds it: threads may share a catalog
        self._connection: DuckDBPyConnection | None = None
        self._contents: dict[str, Contents] = {}
        self._loaded: set[str] = set()
        self._plain: dict[str, list[dict[str, Any]] | None] = {}
        self._digests: dict[str, str] = {}  # of the CSV files that Parquet twins were made from; a checkout has none
        with suppress(OSError):
            self._digests = json.loads((root / _MANIFEST).read_text("utf-8"))
        self.laid_over = False  # some table holds rows beside the shipped ones
        self.outside = False  # some view reads files of a book where they lie
        self.lying: list[Path] = []  # files that views read where they lie
        self._spare_folder: Any = None

    @property
    def connection(self) -> "DuckDBPyConnection":
        """Return the database, which starts when something is first asked of it."""
        if self._connection is None:
            with self.lock:
                if self._connection is None:
                    duckdb = engine()
                    # small tables: threads cost more than they bring
                    self._connection = quiet(duckdb.connect(":memory:", config={"threads": 1}))
        return self._connection

    def folder(self) -> Path:
        """Return a folder for files that live as long as the store."""
        if self._spare_folder is None:
            from gpucost.store.files import SpareFolder

            self._spare_folder = SpareFolder()
        return Path(self._spare_folder.name)

    def close(self) -> None:
        """End the database and remove the folder."""
        if self._connection is not None:
            self._connection.close()
        if self._spare_folder is not None:
            self._spare_folder.cleanup()

    def contents(self, name: str) -> Contents:
        """Return the files, headers and digest of a table, read once."""
        if name not in self._contents:
            self._contents[name] = read_contents(self.root, table_of(name))
        return self._contents[name]

    def ensure(self, *names: str) -> None:
        """Load the named tables that are not loaded yet."""
        for name in names:
            self._require(name)
            if name not in self._loaded:
                with self.lock:
                    if name not in self._loaded:
                        self._make(name)
                        self._loaded.add(name)

    def _require(self, name: str) -> None:
        if name not in TABLES and name != HISTORY.name:
            raise UsageError(f"no table {name!r}. Tables: {', '.join(TABLES)}.")

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return every row of a table; the database is spared a table that nothing has yet asked it for."""
        self._require(name)
        if name not in self._loaded:
            if name not in self._plain:
                self._plain[name] = _plain_rows(table_of(name), self.contents(name))
            if (rows := self._plain[name]) is not None:
                return [row.copy() for row in rows]
        self.ensure(name)
        return self.fetch(f'SELECT * FROM "{name}"')

    def digest(self) -> str:
        """Return the hash over the contents of every table."""
        joined = "".join(self.contents(name).digest for name in TABLES)
        return blake2b(joined.encode(), digest_size=16).hexdigest()

    def table_digest(self, name: str) -> str:
        """Return the hash over a table's CSV files, or the one on record where only their Parquet file was shipped."""
        contents = self.contents(name)
        return contents.digest if contents.files else self._digests.get(name, contents.digest)

    def execute(self, sql: str, parameters: Any = None) -> "DuckDBPyConnection":
        """Run a statement on a cursor of its own and return the cursor."""
        # threads share the connection, and each has its own cursor
        cursor = self.connection.cursor()
        _at_work.add(cursor)
        try:
            cursor.execute(sql, parameters)
        except engine().Error as error:
            of_file = isinstance(error, engine().InvalidInputException)  # what it holds, not how it is asked for
            if not self.outside or is_of_disk(error) or (isinstance(error, engine().ProgrammingError) and not of_file):
                raise
            # below its sentence the database names the file that it could not read, mostly
            file_names = re.findall(r"^  file = (.+)$", str(error), re.MULTILINE)
            file = Path(file_names[-1]).name if file_names else "a file of the price book"
            raise DataError(f"cannot be read: {first_line(error)}", file=file) from None
        finally:
            _at_work.discard(cursor)
        return cursor

    def load(self, name: str, types: Mapping[str, str], columns: Sequence[Sequence[Any]]) -> None:
        """Make a table of columns of values."""
        self.execute(f"CREATE OR REPLACE TABLE {name} ({', '.join(f'{named(k)} {v}' for k, v in types.items())})")
        if columns:
            # a list for each column: one statement, however many rows
            lists = ", ".join(f"unnest(CAST(? AS {kind}[]))" for kind in types.values())
            self.execute(f"INSERT INTO {name} SELECT {lists}", list(columns))

    def fetch(self, sql: str, parameters: Any = None) -> list[dict[str, Any]]:
        """Run a query and return its rows as dictionaries."""
        cursor = self.execute(sql, parameters)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def _reader(self, name: str) -> str:
        table, contents = table_of(name), self.contents(name)
        parquet = parquet_file(self.root, table)
        if parquet.is_file() and self.table_digest(name) == self._digests.get(name):
            return f"SELECT * FROM read_parquet({file_name(parquet)})"
        if not contents.files:
            return empty_reader(table)
        for file, header in contents.headers.items():
            missing = [name for name in table.names if name not in header]
            unknown = [name for name in header if name not in table.names]
            if missing or unknown:
                reason = f"columns missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}"
                raise DataError(reason, file=str(file), row=1)
            if header != table.names:
                raise DataError("the columns are in another order than the schema's", file=str(file), row=1)
        return _csv_reader(table.columns, contents.files)

    def _make(self, name: str) -> None:
        """Make the table; a cell that cannot be read is reported as file:row:column."""
        from gpucost.store.files import SpareFolder

        query, contents = self._reader(name), self.contents(name)
        try:
            with ExitStack() as stack:
                # a table of many CSV files is read from one, far sooner, where a temporary file can be written
                if len(contents.files) > 1 and "read_csv" in query:
                    with suppress(OSError):
                        folder = stack.enter_context(SpareFolder())
                        file = Path(folder) / "joined.csv"
                        file.write_bytes(contents.joined)
                        query = _csv_reader(table_of(name).columns, [file])
                self.execute(f'CREATE TABLE "{name}" AS {query}')
        except engine().Error as error:
            from gpucost.schemas.validation import read_valid

            for file in contents.files:
                read_valid(table_of(name), file)
            raise DataError(first_line(error), file=str(contents.files[0])) from None


# --- Parquet twins of the CSV tables: made when a wheel is built, read in place of CSV files of the same content.


def write_twins(root: Path, target: Path) -> dict[str, Path]:
    """Write a Parquet file per table and the manifest; return where each belongs below a data root."""
    store = Store(root)
    twins: dict[str, Path] = {}
    digests: dict[str, str] = {}
    for name, table in {**TABLES, HISTORY.name: HISTORY}.items():
        contents = store.contents(name)
        if not contents.files:
            continue
        # through the database, so that a twin holds what its readers would have read from the CSV files
        store.ensure(name)
        path = parquet_file(root, table).relative_to(root)
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        how = "FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false"
        store.execute(f'COPY "{name}" TO {quoted(str(file))} ({how})')
        twins[path.as_posix()] = file
        digests[name] = contents.digest
    manifest = target / _MANIFEST
    manifest.write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n", "utf-8")
    return {**twins, _MANIFEST: manifest}
