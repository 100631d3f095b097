"""Laying price books over the shipped tables: shipped < refreshed < the user's own; the nearest speaks and says so."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpucost.catalog import discounts
from gpucost.catalog.asof import offers_view
from gpucost.catalog.books import PriceBook, as_csv, read_book
from gpucost.catalog.completion import Completion
from gpucost.catalog.drafts import Row, large_files, parquet_files
from gpucost.catalog.large import csv_part, parquet_part
from gpucost.catalog.loader import Store, csv_reader
from gpucost.catalog.shipped import Shipped
from gpucost.schemas import TABLES, Column
from gpucost.store.files import SpareFolder

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


def price_views(shipped: Shipped, books: Sequence[PriceBook], below: Sequence[str]) -> None:
    """Make the view `book_offers` over every layer and the table `book_discounts`."""
    store, parts = shipped.store, [*below]
    for book in books:
        if rows := book.rows.get("offers"):
            _load(store, f"{book.layer}_offers", (*TABLES["offers"].columns, *_OF_BOOKS), rows)
            parts.append(f"SELECT *, '{book.layer}' AS book FROM {book.layer}_offers")
        packed, written = parquet_files(book.folder), large_files(book.folder)
        if packed or written:
            store.execute(f"SET threads = {os.cpu_count() or 1}")  # a large file is worth every core
            completion = Completion(shipped, book.rows, book.exchange_rates)
            parts += [parquet_part(store, book.layer, file, completion) for file in packed]
            parts += [csv_part(store, book.layer, file, completion) for file in written]
    store.execute(offers_view(parts))
    discounts.make_table(store, [row for book in books for row in book.discounts])


def _replace_rows(store: Store, name: str, rows: Sequence[Row]) -> None:
    store.ensure(name)
    store.laid_over = True
    own, key = f"own_{name}", TABLES[name].key
    _load(store, own, TABLES[name].columns, rows)
    same = " AND ".join(f'o."{column}" IS NOT DISTINCT FROM t."{column}"' for column in key)
    store.execute(f'DELETE FROM "{name}" AS t WHERE EXISTS (SELECT 1 FROM "{own}" AS o WHERE {same})')
    store.execute(f'INSERT INTO "{name}" SELECT * FROM "{own}"')
    store.execute(f'DROP TABLE "{own}"')


def _load(store: Store, name: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Read rows that were judged already, through the one loader."""
    with SpareFolder() as folder:
        file = Path(folder) / "rows.csv"
        file.write_text(as_csv([column.name for column in columns], rows), "utf-8")
        store.execute(f'CREATE OR REPLACE TABLE "{name}" AS {csv_reader(columns, [file])}')
