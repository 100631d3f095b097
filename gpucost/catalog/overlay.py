"""Laying price books over the shipped tables: shipped < refreshed < the user's own; the nearest speaks and says so."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpucost.catalog.asof import SHIPPED
from gpucost.catalog.books import DISCOUNT_COLUMNS, Book, as_csv, read_book
from gpucost.catalog.drafts import Row, parquet_files
from gpucost.catalog.loader import Store, csv_reader, quoted
from gpucost.catalog.shipped import Shipped
from gpucost.errors import DataError
from gpucost.schemas import DUCKDB_TYPES, TABLES, Column

_OF_BOOKS = (  # columns that only prices of a book have
    Column("price_kind", "text", "list, contracted or effective"),
    Column("valid_until", "date", "last day on which the price holds"),
)


def lay_over(shipped: Shipped, folders: Mapping[str, Path]) -> list[Book]:
    """Read each layer's folder or file, put its rows over the shipped tables, and return the books."""
    books = []
    for layer, folder in folders.items():
        book = read_book(shipped, layer, folder)
        for name, rows in book.rows.items():
            if name != "offers":
                _replace_rows(shipped.store, name, rows)
        books.append(book)
    return books


def price_views(store: Store, books: Sequence[Book]) -> bool:
    """Make the view `book_offers` over every layer and the table `book_discounts`; tell whether that holds any."""
    parts = [SHIPPED]
    for book in books:
        if rows := book.rows.get("offers"):
            _load(store, f"{book.layer}_offers", (*TABLES["offers"].columns, *_OF_BOOKS), rows)
            parts.append(f"SELECT *, '{book.layer}' AS book FROM {book.layer}_offers")
        if files := parquet_files(book.folder):
            store.execute(f"SET threads = {os.cpu_count() or 1}")  # a large file is worth every core
            parts += [_parquet_part(store, book.layer, file) for file in files]
    store.execute("CREATE OR REPLACE VIEW book_offers AS " + " UNION ALL BY NAME ".join(parts))
    discounts = [row for book in books for row in book.discounts]
    if discounts:
        _make_discounts(store, discounts)
    return bool(discounts)


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


def _parquet_part(store: Store, layer: str, file: Path) -> str:
    """Return the SQL over a large price file, which stays where it lies; its columns and prices are checked at once."""
    import duckdb

    source = f"read_parquet({quoted(str(file))})"
    try:
        present = {row["column_name"] for row in store.fetch(f"DESCRIBE SELECT * FROM {source}")}
    except duckdb.Error as error:
        raise DataError(str(error).splitlines()[0], file=str(file)) from None
    missing = [column.name for column in TABLES["offers"].columns if column.required and column.name not in present]
    if missing:
        raise DataError(f"columns missing: {', '.join(missing)}", file=str(file))
    bad = store.fetch(
        f"""SELECT count(*) AS rows_found, min(file_row_number) AS first_row
        FROM read_parquet({quoted(str(file))}, file_row_number = true)
        WHERE usd_per_hour IS NULL OR NOT isfinite(usd_per_hour) OR usd_per_hour <= 0 OR usd_per_gpu_hour IS NULL
            OR NOT isfinite(usd_per_gpu_hour) OR usd_per_gpu_hour <= 0 OR offer_id IS NULL OR source_id IS NULL
            OR observed_on IS NULL OR recorded_on IS NULL"""
    )[0]
    if bad["rows_found"]:
        reason = f"{bad['rows_found']} rows lack an id, a source, a date or a positive, finite price; the first, from 0"
        raise DataError(reason, file=str(file), row=bad["first_row"])
    columns = ", ".join(
        f'CAST({column.name if column.name in present else "NULL"} AS {DUCKDB_TYPES[column.kind]}) AS "{column.name}"'
        for column in TABLES["offers"].columns
    )
    kind = "coalesce(price_kind, 'contracted')" if "price_kind" in present else "'contracted'"
    end = f"CAST({'valid_until' if 'valid_until' in present else 'NULL'} AS DATE)"
    return f"SELECT {columns}, '{layer}' AS book, {kind} AS price_kind, {end} AS valid_until FROM {source}"


def _make_discounts(store: Store, discounts: Sequence[Row]) -> None:
    kinds = {"valid_from": "DATE", "valid_until": "DATE", "fraction": "DOUBLE"}
    columns = ", ".join(f"{name} {kinds.get(name, 'VARCHAR')}" for name in DISCOUNT_COLUMNS)
    store.execute(f"CREATE OR REPLACE TABLE book_discounts ({columns})")
    marks = ", ".join("?" * len(DISCOUNT_COLUMNS))
    for row in discounts:
        store.execute(f"INSERT INTO book_discounts VALUES ({marks})", [row.get(name) for name in DISCOUNT_COLUMNS])
