"""Files of prices brought into the database: rows of a book, CSV and Parquet of any size, parts of a store.

Each is completed and judged by the SQL of `price_rows`. The first row at fault refuses its file, by file, row and
column. Parquet files that leave nothing to follow are read where they lie; the others are completed into a table or a
Parquet file of this process.
"""

import csv
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpucost.catalog import price_rows
from gpucost.catalog.book_files import Draft
from gpucost.catalog.loader import Store, engine, file_name, first_line, named, quoted, refuse_long
from gpucost.catalog.price_rows import every_column
from gpucost.errors import DataError, UsageError
from gpucost.gate import repeated, shown
from gpucost.limits import limit
from gpucost.schemas import DUCKDB_TYPES, TABLES
from gpucost.schemas.validation import cell_text, unknown_column
from gpucost.store.files import put_parquet

if TYPE_CHECKING:
    from gpucost.catalog.book_rows import Completion

_MOST_NAMES = 10_000  # different names of GPUs, systems or providers in one file
_SHOWN_TWICE = 100  # offers that stand twice among which the one to name is looked for
_ALIKE = (  # offers that are equal in these differ in name and price alone
    "provider",
    "gpu",
    "gpus",
    "system_id",
    "region",
    "region_scope",
    '"option"',
    "tier",
    "billing",
    "term_months",
    "payment",
    "interconnect",
    "minimum_units",
    "maximum_units",
    "valid_from",
    "valid_until",
    "observed_on",
)


Row = Mapping[str, Any]
_RowAt = Callable[[int], tuple[Row, Row]]


class Prices(NamedTuple):
    """Prices that were completed and judged: the SQL of them as a layer of the catalog, and with their row numbers."""

    layer: str
    numbered: str
    offers: int
    speaking_offers: int | None = None  # where they are not all


class _Rows(NamedTuple):
    """Rows as they were written: the SQL of their cells with a number `n` each, their types, and where each stands."""

    cells: str
    types: Mapping[str, str]  # column -> type in the database
    place: Callable[[int], tuple[str, int]]  # number -> file or sheet, row in it


def _rows_of_file(file: Path, cells: str, types: Mapping[str, str]) -> _Rows:
    return _Rows(cells, types, lambda number: (str(file), number))


def _row_at(store: Store, layer: str, rows: _Rows, complete: Callable[[str], str], file: Path) -> "_RowAt":
    """Return what finds a row of a file by its number, as it was written and completed: no other is completed again."""

    def row_at(number: int) -> tuple[Row, Row]:
        table = f"{layer}_row"
        row = f"SELECT * FROM ({rows.cells}) WHERE n = {number} LIMIT 1"
        _fetch(store, f"CREATE OR REPLACE TABLE {table} AS {row}", file)
        written = _fetch(store, f"SELECT * FROM {table}", file)[0]
        complete_row = _fetch(store, complete(f"SELECT * FROM {table}"), file)[0]
        store.execute(f"DROP TABLE {table}")
        return written, complete_row

    return row_at


# --- Where rows come from.


def prices_of_rows(store: Store, layer: str, drafts: Sequence[Draft], completion: "Completion") -> Prices:
    """Complete and judge the prices of a book's small files in the table `<layer>_offers`.

    A row that is like another of the book is completed after it.
    """
    columns_by_name = {column.name: column for column in every_column()}
    for draft in drafts:
        for name in draft.values:
            if name not in columns_by_name:
                raise draft.error(unknown_column(name, TABLES["offers"], columns_by_name), name or None)
    names = [name for name in columns_by_name if any(name in draft.values for draft in drafts)]
    texts: list[list[Any]] = [list(range(1, len(drafts) + 1))]
    for name in names:  # whatever a cell's type in its workbook or TOML, as a text that reads as the same value
        texts.append([])
        for draft in drafts:
            value = draft.values.get(name)
            try:
                texts[-1].append(None if value is None else cell_text(columns_by_name[name], value))
            except ValueError as error:
                raise draft.error(str(error), name) from None
    store.load(f"{layer}_written", {"n": "BIGINT", **dict.fromkeys(names, "VARCHAR")}, texts)
    rows = _Rows(
        f"SELECT * FROM {layer}_written",
        dict.fromkeys(names, "VARCHAR"),
        lambda number: (drafts[number - 1].place, drafts[number - 1].row),
    )
    _resolve(store, layer, rows, completion)
    table = f"{layer}_offers"
    store.execute(f"DROP TABLE IF EXISTS {table}")
    stages: list[str] = []
    for numbers in _rows_ready(store, layer, drafts):
        cells = rows.cells
        if len(numbers) < len(drafts):
            cells += f" WHERE n IN ({', '.join(map(str, numbers))})"
        stages.append(_completed(store, layer, rows._replace(cells=cells)))
        how = f"INSERT INTO {table}" if len(stages) > 1 else f"CREATE TABLE {table} AS"
        store.execute(f"{how} {price_rows.with_faults(stages[-1])}")
    relation = f"SELECT * FROM {table}"

    def row_at(number: int) -> tuple[Row, Row]:
        matches = (row for stage in stages for row in store.fetch(f"SELECT * FROM ({stage}) WHERE n = {number}"))
        return drafts[number - 1].values, next(matches)

    offers = _refuse_faults(store, relation, rows, row_at)
    _forget(store, layer)
    _refuse_twice(store, relation, rows.place)
    return Prices(_as_layer(relation, layer), relation, offers)


def _rows_ready(store: Store, layer: str, drafts: Sequence[Draft]) -> Iterator[list[int]]:
    """Yield the numbers of the rows that can be completed next: those like none, or like one that is complete.

    Of rows that are like one shipped offer the first is completed from it, the others from the first.
    """
    targets = {}
    for number, draft in enumerate(drafts, 1):
        if target := draft.values.get("like", draft.values.get("offer_id")):
            targets[number] = str(target).strip()
    if not targets:
        yield list(range(1, len(drafts) + 1))
        return
    ids = ", ".join(map(quoted, set(targets.values())))
    store.ensure("offers")
    shipped = {row["offer_id"] for row in store.fetch(f"SELECT offer_id FROM offers WHERE offer_id IN ({ids})")}
    ids_of_book: set[str] = set()
    waiting = list(range(1, len(drafts) + 1))
    while waiting:
        ready, awaited = [], set()
        for number in waiting:
            target = targets.get(number)
            may_wait = "like" in drafts[number - 1].values and target not in shipped
            if target is None or target in ids_of_book or (target not in awaited and not may_wait):
                ready.append(number)
            awaited.add(str(target))
        ready = ready or waiting  # rows that are like one another in a circle: judged as they are, and refused
        yield ready
        ids_of_book = {row["offer_id"] for row in store.fetch(f"SELECT offer_id FROM {layer}_offers")}
        waiting = sorted({*waiting} - {*ready})


def prices_of_csv(store: Store, layer: str, file: Path, completion: "Completion") -> Prices:
    """Complete and judge a large CSV file of prices."""
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        # the first line alone: the database is told every column, and guesses at none
        header = next(csv.reader([text.readline(int(limit("limit_text_characters")))]), [])
    _refuse_columns(file, header, 1)
    names = [name for name in header if name[:2] != "x_"]
    texts = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in header)
    how = (
        "auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', nullstr = '', strict_mode = true"
    )
    # a character takes up to four bytes; without a bound of its own the database refuses lines beyond 2 MB
    wide = f", max_line_size = {int(limit('limit_text_characters')) * 4}"
    source = f"read_csv({file_name(file)}, {how}{wide}, columns = {{{texts}}})"
    cells = ", ".join(_trimmed(name, "VARCHAR") for name in names)
    numbered = f"SELECT row_number() OVER () + 1 AS n, {cells} FROM {source}"
    rows = _rows_of_file(file, numbered, dict.fromkeys(names, "VARCHAR"))

    store.outside = True
    return _with_warning(file, _packed(store, layer, file, rows, completion))


def prices_of_parquet(store: Store, layer: str, file: Path, completion: "Completion | None" = None) -> Prices:
    """Judge a Parquet file of prices where it lies; without a completion it is a part of a store.

    One of a book whose rows leave something to follow, or name something by another name, is completed first.
    """
    # more rows or bytes than it may hold, by what its footer says, before anything is unpacked
    refuse_long(store.connection.cursor(), file, "limit_book_rows")
    most_bytes = limit("limit_book_unpacked_bytes")
    size = "coalesce(total_uncompressed_size, 0)"
    query = f"SELECT max({size}) AS largest, sum({size}) AS whole, arg_max(path_in_schema, {size}) AS name"
    sizes = _fetch(store, f"{query} FROM parquet_metadata({file_name(file)})", file)[0]
    largest_bytes, whole_bytes = sizes["largest"] or 0, sizes["whole"] or 0
    if largest_bytes > most_bytes / 8 or whole_bytes > most_bytes:
        raise DataError(
            f"unpacks to {whole_bytes / 1e6:,.0f} MB, column {sizes['name']} to {largest_bytes / 1e6:,.0f} MB at once;"
            f" at most {most_bytes / 1e6:,.0f} and {most_bytes / 8e6:,.0f} MB. The setting limit_book_unpacked_bytes"
            " raises that.",
            file=str(file),
        )

    # cells that hold no single value, or truth where a number belongs
    types_in_file = {
        row["column_name"]: row["column_type"]
        for row in _fetch(store, f"DESCRIBE SELECT * FROM read_parquet({file_name(file)})", file)
    }
    numbers = {column.name for column in every_column() if column.kind in ("number", "integer")}
    for name, kind in types_in_file.items():
        if kind.endswith((")", "]")) and "DECIMAL" not in kind and not name.startswith("x_"):
            raise DataError(f"{name} holds {kind[:60]}, not a single value per cell", file=str(file))
        if kind == "BOOLEAN" and name in numbers:
            raise DataError("holds true and false, not numbers", file=str(file), column=name)
    types = {name: kind for name, kind in types_in_file.items() if name in {column.name for column in every_column()}}
    missing = [
        column.name for column in TABLES["offers"].columns if column.required and column.name not in types_in_file
    ]
    if completion is None and missing:
        raise DataError(f"columns missing: {', '.join(missing)}", file=str(file))
    if completion is not None:
        _refuse_columns(file, [name for name in types_in_file if name != "gone"], None)
    gone = "gone" in types_in_file
    try:
        return _with_warning(file, _judge_where_it_lies(store, layer, file, types, gone, bool(missing), completion))
    finally:
        store.outside = True
        store.lying.append(file)


def _judge_where_it_lies(
    store: Store,
    layer: str,
    file: Path,
    types: Mapping[str, str],
    gone: bool,
    is_short: bool,
    completion: "Completion | None",
) -> Prices:
    source = f"read_parquet({file_name(file)}, file_row_number = true)"
    usual_kind = "list" if completion is None else "contracted"
    store.execute("SET disabled_optimizers = 'statistics_propagation'")  # a file may lie of where it holds nothing
    try:
        cells = ", ".join(_trimmed(name, kind) for name, kind in types.items())
        untrimmed = ", ".join(map(named, types))
        rows = _rows_of_file(file, f"SELECT {untrimmed}, file_row_number + 1 AS n FROM {source}", types)
        if completion is not None:
            _resolve(store, layer, rows, completion, file)
        if completion is not None and not is_short:
            # does it leave something to follow or to be resolved, though it has every column that is needed?
            is_short = not {"like", "system", "currency", "per_hour", "per_gpu_hour"}.isdisjoint(types)
            is_short = is_short or bool(store.fetch(f"SELECT 1 FROM {layer}_names WHERE name <> id"))
            if not is_short:
                empty = " OR ".join(f"{name} IS NULL" for name in ("gpus", "usd_per_hour", "usd_per_gpu_hour"))
                query = f"SELECT bool_or({empty}) AS short FROM read_parquet({file_name(file)})"
                is_short = bool(_fetch(store, query, file)[0]["short"])
        if completion is not None and is_short:
            trimmed = f"SELECT {cells}, file_row_number + 1 AS n FROM {source}"
            return _packed(store, layer, file, _rows_of_file(file, trimmed, types), completion)
        meanings = None if completion is None else f"{layer}_names"

        def complete(cells: str) -> str:
            return price_rows.complete_already(price_rows.read(cells, types), meanings, usual_kind)

        row_at = _row_at(store, layer, rows, complete, file)
        faults = price_rows.with_faults(complete(rows.cells))
        offers = _refuse_faults(store, faults, rows, row_at, file)
        # read where it lies, a file names accelerators by their ids: no other name was looked up
        accelerators = (store if completion is None else completion.shipped.store).rows("accelerators")
        ids = ", ".join(quoted(row["id"]) for row in accelerators)
        query = f"SELECT CAST(gpu AS VARCHAR) AS gpu, min(n) AS n FROM ({rows.cells}) GROUP BY 1"
        unknown = f"NOT list_has_all([{ids}], string_split(gpu, '|'))"
        for row in _fetch(store, f"SELECT * FROM ({query}) WHERE {unknown} ORDER BY n LIMIT 1", file):
            reason = "is the id of no accelerator. `gpucost gpus` lists them; one of your own goes into"
            reason = f"{shown(row['gpu'])} {reason} accelerators.csv"
            raise DataError(reason, file=str(file), row=row["n"], column="gpu")
    finally:
        with suppress(DataError):  # a file may break the database, which then answers nothing more
            store.execute("RESET disabled_optimizers")
    # what was judged, and from now on read where it lies: the columns of the table, each of its type
    columns = []
    for column in (*TABLES["offers"].columns, *price_rows.BOOK_COLUMNS):
        cell = named(column.name)
        if column.name not in types:
            columns.append(f"CAST(NULL AS {DUCKDB_TYPES[column.kind]}) AS {cell}")
        elif types[column.name] == DUCKDB_TYPES[column.kind]:
            columns.append(cell)
        else:
            columns.append(f"{price_rows.reading(column, cell)} AS {cell}")
    kind = f"coalesce(price_kind, {quoted(usual_kind)}) AS price_kind"
    columns += ["gone"] * gone + ["file_row_number + 1 AS n"]
    where_it_lies = f"SELECT * REPLACE ({kind}) FROM (SELECT {', '.join(columns)} FROM {source})"
    if completion is not None:
        _refuse_twice(store, where_it_lies, rows.place, file)
    part = _as_layer(where_it_lies, layer, ", gone" * gone)
    return _few(store, file, Prices(part, where_it_lies, offers))


def _trimmed(name: str, kind: str) -> str:
    return f"nullif(trim({named(name)}), '') AS {named(name)}" if kind == "VARCHAR" else named(name)


def _as_layer(rows: str, layer: str, gone: str = "") -> str:
    """Return the SQL of prices with the columns of a layer of the catalog."""
    columns = ", ".join(named(column.name) for column in TABLES["offers"].columns)
    return f"SELECT {columns}, '{layer}' AS book, price_kind, valid_until{gone} FROM ({rows})"


# --- Completing and judging them.


def _packed(store: Store, layer: str, file: Path, rows: _Rows, completion: "Completion") -> Prices:
    """Complete and judge a large file in a Parquet file made of it."""
    _resolve(store, layer, rows, completion, file)

    def complete(cells: str) -> str:
        return _completed(store, layer, rows._replace(cells=cells))

    # the file lives as long as the store: each question reads it, and nothing of it stays in memory
    parquet = store.folder() / f"{layer}-{'offers-' * (file.parent.name == 'offers')}{file.name}.parquet"
    store.lying.append(parquet)
    try:
        put_parquet(store, price_rows.with_faults(complete(rows.cells)), parquet)
    except engine().OutOfMemoryException:  # the machine's fault, not the file's
        raise
    except engine().Error as error:
        raise DataError(f"cannot be read: {first_line(error)}", file=str(file)) from None
    numbered = f"SELECT * FROM read_parquet({file_name(parquet)})"
    offers = _refuse_faults(store, numbered, rows, _row_at(store, layer, rows, complete, file), file)
    _forget(store, layer)
    _refuse_twice(store, numbered, rows.place, file)
    return _few(store, file, Prices(_as_layer(numbered, layer), numbered, offers))


def _resolve(store: Store, layer: str, rows: _Rows, completion: "Completion", file: Path | None = None) -> None:
    """Make the tables of what names and currencies mean that `price_rows.completed` joins.

    The first name of an accelerator, a system or a provider that nobody knows is refused.
    """
    system_columns = [name for name in ("system", "system_id") if name in rows.types]
    cells = {name: f"CAST({name} AS VARCHAR)" for name in ("gpu", "provider") if name in rows.types}
    if system_columns:
        cells["system"] = f"coalesce({', '.join(f'CAST({name} AS VARCHAR)' for name in system_columns)})"
    cells_with_names: list[dict[str, Any]] = []
    if cells:  # each name once, with the first row that has it: a file of millions has few names
        columns = ", ".join(f"{cell} AS {kind}" for kind, cell in cells.items())
        sets = ", ".join(f"({kind})" for kind in cells)
        query = f"""SELECT {", ".join(cells)}, min(n) AS n FROM (SELECT n, {columns} FROM ({rows.cells}))
            GROUP BY GROUPING SETS ({sets}) ORDER BY n LIMIT {4 * _MOST_NAMES}"""
        cells_with_names = _fetch(store, query, file)
    meanings: list[tuple[str, str, str, str | None]] = []
    spellings: dict[str, str] = {}  # of a provider that nobody knows the first in the file counts
    for cell in cells_with_names:
        for kind in cells:
            if not cell[kind]:
                continue
            name, accelerator = str(cell[kind]), None
            try:
                if kind == "provider":
                    id_ = completion.provider(name.strip())
                    id_ = spellings.setdefault(id_.lower(), id_)
                elif kind == "gpu":
                    id_ = completion.accelerator(name.strip())
                else:
                    id_ = completion.system(name.strip())
                    accelerator = completion.holds(id_)
            except UsageError as error:
                place, row = rows.place(cell["n"])
                column = system_columns[0] if kind == "system" else kind
                raise DataError(str(error), file=place, row=row, column=column) from None
            meanings.append((kind, name, id_, accelerator))
    counts = Counter(kind for kind, *_ in meanings)
    for kind in cells:
        if counts[kind] > _MOST_NAMES:
            reason = f"names more than {_MOST_NAMES:,} different values"
            raise DataError(reason, file=rows.place(1)[0], column=kind)
    kinds = dict.fromkeys(("kind", "name", "id", "holds"), "VARCHAR")
    store.load(f"{layer}_names", kinds, [list(column) for column in zip(*meanings, strict=True)])
    rates = {"USD": 1.0, **completion.rates}
    rate_columns: list[list[Any]] = [[*rates], [*rates.values()], [f"{rate:g}" for rate in rates.values()]]
    store.load(f"{layer}_rates", {"currency": "VARCHAR", "rate": "DOUBLE", "rate_text": "VARCHAR"}, rate_columns)


def _completed(store: Store, layer: str, rows: _Rows) -> str:
    """Return the SQL of completed rows; those of the book that are complete come before the shipped ones as models."""
    models = None
    if not {"like", "offer_id"}.isdisjoint(rows.types):
        store.ensure("offers")
        names = ", ".join(map(named, TABLES["offers"].names))
        models = f"SELECT {names}, CAST(NULL AS VARCHAR) AS price_kind, 1 AS nearness, 0 AS n FROM offers"
        if store.fetch(f"SELECT 1 FROM duckdb_tables() WHERE table_name = '{layer}_offers'"):
            models += f" UNION ALL SELECT {names}, price_kind, 0, n FROM {layer}_offers"
        # of an offer with several prices the book's own speaks, then the first
        models = f"SELECT DISTINCT ON (offer_id) * FROM ({models}) ORDER BY offer_id, nearness, n, {names}"
    cells = price_rows.read(rows.cells, rows.types)
    return price_rows.completed(cells, f"{layer}_names", f"{layer}_rates", models)


def _forget(store: Store, layer: str) -> None:
    for table in ("written", "names", "rates"):
        store.execute(f"DROP TABLE IF EXISTS {layer}_{table}")


def _refuse_faults(store: Store, rows_with_faults: str, rows: _Rows, row_at: _RowAt, file: Path | None = None) -> int:
    """Refuse the first row at fault, and more rows than a book may hold; return how many offers there are."""
    query = "SELECT min(n) FILTER (fault IS NOT NULL) AS first, count(DISTINCT offer_id) AS offers, count(*) AS rows"
    summary = _fetch(store, f"{query} FROM ({rows_with_faults})", file)[0]
    if (first := summary["first"]) is not None:
        file_or_sheet, row = rows.place(first)
        # how many rows are wrong in the same way tells a slip from a wrong column
        query = f"""SELECT first(fault) AS fault, count(*) AS rows FROM ({rows_with_faults})
            WHERE fault = (SELECT fault FROM ({rows_with_faults}) WHERE n = {first})"""
        fault = _fetch(store, query, file)[0]
        column, reason = price_rows.fault_text(fault["fault"], *row_at(first))
        if fault["rows"] > 1:
            reason = f"{reason.removesuffix('.')} ({fault['rows']:,} rows; this is the first)"
        raise DataError(reason, file=file_or_sheet, row=row, column=column)
    if summary["rows"] > (most := limit("limit_book_rows")):
        reason = f"holds {summary['rows']:,} rows, at most {most:,.0f}; the setting limit_book_rows raises that"
        raise DataError(reason, file=rows.place(1)[0])
    return int(summary["offers"])


def _refuse_twice(
    store: Store, rows: str, place_of: Callable[[int], tuple[str, int]], file: Path | None = None
) -> None:
    """Refuse two rows of one key: its hash is counted, a number for each row, then those that it meets are compared."""
    offer, *columns = TABLES["offers"].key
    key = ", ".join((offer, *columns))
    # a table of the hashes of ten million rows fits in memory, one of their keys might not
    hashes = f"SELECT hash({key}) AS key FROM ({rows}) GROUP BY 1 HAVING count(*) > 1"
    _fetch(store, f"CREATE OR REPLACE TABLE met AS {hashes}", file)
    if count := store.fetch("SELECT count(*) AS count FROM met")[0]["count"]:
        query = f"""SELECT {offer} AS offer, min(usd_per_hour) < max(usd_per_hour) AS apart, min(n) AS n, max(n) AS last
            FROM ({rows}) WHERE hash({key}) IN (SELECT key FROM met ORDER BY key LIMIT {_SHOWN_TWICE})
            GROUP BY {key} HAVING count(*) > 1 ORDER BY last LIMIT 1"""
        for row in _fetch(store, query, file):
            (first_place, first), (place, last) = place_of(row["n"]), place_of(row["last"])
            both = f"row {first:,}" if first_place == place else f"row {first:,} of {first_place}"
            more = f"; {count - 1:,} more offers like this" if count > 1 else ""
            reason = "has two prices on one day: neither would rank" if row["apart"] else "stands twice: keep one row"
            raise DataError(
                f"{shown(row['offer'])} {reason} (the other is {both}{more})", file=place, row=last, column=offer
            )
    store.execute("DROP TABLE met")


def _few(store: Store, file: Path, prices: Prices) -> Prices:
    """Leave no more offers than an answer ranks: beyond, the cheapest of those alike on a day speaks."""
    # an answer ranks every offer in columns in memory: millions that differ in name alone help nobody
    most = limit("limit_book_offers")
    if prices.offers <= most:
        return prices
    cheapest = named(f"cheapest {file}")
    alike = ", ".join(_ALIKE)
    _fetch(
        store,
        f"CREATE OR REPLACE TABLE {cheapest} AS SELECT DISTINCT arg_min(offer_id, usd_per_gpu_hour) AS offer_id"
        f" FROM ({prices.layer}) GROUP BY {alike}",
        file,
    )
    count = store.fetch(f"SELECT count(*) AS count FROM {cheapest}")[0]["count"]
    if count > most:
        raise DataError(
            f"holds {count:,} offers that differ, at most {most:,.0f}; the setting limit_book_offers raises that",
            file=str(file),
        )
    speaks = f" WHERE offer_id IN (SELECT offer_id FROM {cheapest})"
    return prices._replace(layer=prices.layer + speaks, speaking_offers=count)


def _with_warning(file: Path, prices: Prices) -> Prices:
    """Say it where not every offer of a file speaks."""
    if prices.speaking_offers is not None:
        warnings.warn(
            f"{file}: of {prices.offers:,} offers {prices.speaking_offers:,} speak: of those alike in provider, GPU,"
            " place and terms the cheapest of a day. The setting limit_book_offers"
            f" ({limit('limit_book_offers'):,.0f}) keeps more.",
            stacklevel=3,
        )
    return prices


def _refuse_columns(file: Path, header: Sequence[str], row: int | None) -> None:
    """Refuse a header with a column that prices have not, or twice."""
    names = {column.name for column in every_column()}
    for name in repeated(header):
        raise DataError("the column appears twice", file=str(file), row=row, column=name)
    for name in header:
        if name not in names and not name.startswith("x_"):
            reason = unknown_column(name, TABLES["offers"], names)
            raise DataError(reason, file=str(file), row=row, column=name or None)


def _fetch(store: Store, query: str, file: Path | None) -> list[dict[str, Any]]:
    """Run a query over a file; what the database cannot read of it is a sentence."""
    try:
        return store.fetch(query)
    except engine().OutOfMemoryException:
        raise
    except engine().Error as error:
        if file is None:
            raise
        raise DataError(f"cannot be read: {first_line(error)}", file=str(file)) from None
