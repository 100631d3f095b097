"""Laying price books over the shipped tables: shipped < refreshed < the user's own; the nearest speaks and says so."""

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from gpucost.catalog import discounts
from gpucost.catalog.asof import offers_view
from gpucost.catalog.books import PriceBook, as_csv, read_book
from gpucost.catalog.drafts import Row, parquet_files
from gpucost.catalog.loader import Store, csv_reader, engine, quoted
from gpucost.catalog.shipped import Shipped
from gpucost.errors import DataError
from gpucost.schemas import DUCKDB_TYPES, TABLES, Column

_OF_BOOKS = (  # columns that only prices of a book have
    Column("price_kind", "text", "list, contracted or effective"),
    Column("valid_until", "date", "last day on which the price holds"),
)


def lay_over(shipped: Shipped, folders: Mapping[str, Path]) -> list[PriceBook]:
    """Read each layer's folder or file, put its rows over the shipped tables, and return the books."""
    books = []
    for layer, folder in folders.items():
        book = read_book(shipped, layer, folder)
        for name, rows in book.rows.items():
            if name != "offers":
                _replace_rows(shipped.store, name, rows)
        books.append(book)
    return books


def price_views(store: Store, books: Sequence[PriceBook], below: Sequence[str]) -> None:
    """Make the view `book_offers` over every layer and the table `book_discounts`."""
    parts = [*below]
    for book in books:
        if rows := book.rows.get("offers"):
            _load(store, f"{book.layer}_offers", (*TABLES["offers"].columns, *_OF_BOOKS), rows)
            parts.append(f"SELECT *, '{book.layer}' AS book FROM {book.layer}_offers")
        if files := parquet_files(book.folder):
            store.execute(f"SET threads = {os.cpu_count() or 1}")  # a large file is worth every core
            parts += [parquet_part(store, book.layer, file) for file in files]
    store.execute(offers_view(parts))
    discounts.make_table(store, [row for book in books for row in book.discounts])


def _replace_rows(store: Store, name: str, rows: Sequence[Row]) -> None:
    store.ensure(name)
    own, key = f"own_{name}", TABLES[name].key
    _load(store, own, TABLES[name].columns, rows)
    same = " AND ".join(f'o."{column}" IS NOT DISTINCT FROM t."{column}"' for column in key)
    store.execute(f'DELETE FROM "{name}" AS t WHERE EXISTS (SELECT 1 FROM "{own}" AS o WHERE {same})')
    store.execute(f'INSERT INTO "{name}" SELECT * FROM "{own}"')
    store.execute(f'DROP TABLE "{own}"')


def _load(store: Store, name: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Read rows that were judged already, through the one loader."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        file.write_text(as_csv([column.name for column in columns], rows), "utf-8")
        store.execute(f'CREATE OR REPLACE TABLE "{name}" AS {csv_reader(columns, [file])}')


def parquet_part(store: Store, layer: str, file: Path, usual_kind: str = "contracted") -> str:
    """Return the SQL over a large price file, which stays where it lies; its columns and prices are checked at once."""
    source = f"read_parquet({quoted(str(file))})"
    try:
        present = {row["column_name"] for row in store.fetch(f"DESCRIBE SELECT * FROM {source}")}
    except engine().Error as error:
        raise DataError(str(error).splitlines()[0], file=str(file)) from None
    missing = [column.name for column in TABLES["offers"].columns if column.required and column.name not in present]
    if missing:
        raise DataError(f"columns missing: {', '.join(missing)}", file=str(file))
    _refuse_bad_rows(store, file, present)
    columns = ", ".join(
        f'CAST({column.name if column.name in present else "NULL"} AS {DUCKDB_TYPES[column.kind]}) AS "{column.name}"'
        for column in TABLES["offers"].columns
    )
    kind = f"coalesce(price_kind, '{usual_kind}')" if "price_kind" in present else f"'{usual_kind}'"
    end = f"CAST({'valid_until' if 'valid_until' in present else 'NULL'} AS DATE)"
    gone = ", gone" if "gone" in present else ""
    return f"SELECT {columns}, '{layer}' AS book, {kind} AS price_kind, {end} AS valid_until{gone} FROM {source}"


def _refuse_bad_rows(store: Store, file: Path, present: Collection[str]) -> None:
    """Judge every row by the bounds of its columns; the first bad row, counted from 1, is named with its column."""
    rules = {}
    for column in TABLES["offers"].columns:
        if column.name in present:
            rules[f"{column.name} is not {_expected(column)}"] = _fault(column)
    number = "TRY_CAST({} AS DOUBLE)".format
    unit, one = number("usd_per_hour"), f"{number('usd_per_gpu_hour')} * {number('gpus')}"
    rules["usd_per_hour and usd_per_gpu_hour contradict each other"] = f"abs({unit} - {one}) > 0.01 * {unit}"
    counted = ", ".join(f"count_if({rule}), min(CASE WHEN {rule} THEN n END)" for rule in rules.values())
    numbered = f"read_parquet({quoted(str(file))}, file_row_number = true)"
    query = f"SELECT {counted} FROM (SELECT *, file_row_number + 1 AS n FROM {numbered})"
    try:
        found = store.execute(query).fetchone() or ()
    except engine().Error as error:
        raise DataError(str(error).splitlines()[0][:300], file=str(file)) from None
    for reason, count, first in zip(rules, found[::2], found[1::2], strict=True):
        if count:
            raise DataError(f"{reason} ({count:,} rows, the first is named)", file=str(file), row=first)


def _fault(column: Column) -> str:
    """Return the SQL that is true of a cell which its column forbids."""
    cell, read = f'"{column.name}"', f'TRY_CAST("{column.name}" AS {DUCKDB_TYPES[column.kind]})'
    faults = [f"({cell} IS NOT NULL AND {read} IS NULL)"]
    if column.required and column.kind == "text" and column.name in ("offer_id", "source_id"):
        faults.append(f"coalesce({read}, '') = ''")
    if column.required and column.kind in ("number", "integer", "date") and column.name != "term_months":
        faults.append(f"{cell} IS NULL")
    if column.kind in ("number", "integer"):
        faults += [f"NOT isfinite(CAST({read} AS DOUBLE))"]
        faults += [f"{read} <= 0"] if column.positive else []
        faults += [f"{read} < {column.low}"] if column.low is not None else []
        faults += [f"{read} > {column.high}"] if column.high is not None else []
    return f"coalesce({' OR '.join(faults)}, false)"


def _expected(column: Column) -> str:
    if column.kind in ("number", "integer"):
        kind = "a count" if column.kind == "integer" else "a finite number"
        return f"{kind} {'above 0' if column.positive else 'of 0 or more'}" + (
            f", at most {column.high:g}" if column.high is not None else ""
        )
    return {"date": "a day", "flag": "0 or 1"}.get(column.kind, "a text")
