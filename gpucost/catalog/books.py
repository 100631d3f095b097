"""What lies over the shipped tables: refreshed snapshots and the user's own price books; the nearest speaks."""

import os
import warnings
from collections.abc import Mapping, Sequence
from datetime import date
from hashlib import blake2b
from os import fsencode
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from gpucost import gate
from gpucost.catalog import book_files as files_of_books
from gpucost.catalog import discounts
from gpucost.catalog.asof import offers_view
from gpucost.catalog.book_files import Row, large_files, parquet_files
from gpucost.catalog.book_rows import Completion
from gpucost.catalog.discounts import credit, discount
from gpucost.catalog.loader import Store, engine, file_name, first_line, quoted, refuse_long
from gpucost.catalog.shipped import Shipped
from gpucost.errors import DataError
from gpucost.gate import read_parts, shown
from gpucost.schemas import DUCKDB_TYPES, TABLES
from gpucost.store.folder import Folder, Part, Snapshot

if TYPE_CHECKING:
    from gpucost.catalog.price_files import Prices

# --- The user's own book: hardware, models, prices, discounts, credits and exchange rates beside the shipped facts.
#
# A book is a folder, or one file. CSV files carry a table's name (offers.csv or offers/*.csv, accelerators.csv,
# systems.csv, models.csv, sources.csv) and need only the columns that cannot be derived. The sheets of an .xlsx
# workbook carry the same names. TOML files hold the same as arrays of tables: [[offer]], [[accelerator]], [[system]],
# [[model]], [[source]], [[discount]], [[credit]] and [exchange_rates]. A row may say `like = "<id>"` and then states
# only what differs. Every row is judged like a shipped one; a bad file loads nothing.

_ORDER = ("price_sources", "accelerators", "systems", "llms")  # what later rows may name comes first


class PriceBook(Struct):
    """What a folder or file adds: validated rows by table, discounts, credits, and a digest of its files."""

    layer: str
    folder: Path
    digest: str
    prices: "Prices | None" = None  # those of its small files
    price_places: list[tuple[str, int]] = field(default_factory=list)  # of each of them: its file or sheet, its row
    rows: dict[str, list[Row]] = field(default_factory=dict)  # of the other tables
    places: dict[str, list[tuple[str, int]]] = field(default_factory=dict)  # of each row: its file or sheet, its number
    discounts: list[Row] = field(default_factory=list)
    credits: list[Row] = field(default_factory=list)
    exchange_rates: dict[str, float] = field(default_factory=dict)

    @property
    def all_ids(self) -> frozenset[str]:
        """Return the ids of the book's accelerators, systems and models."""
        return self.ids("accelerators") | self.ids("systems") | self.ids("llms")

    def ids(self, table: str) -> frozenset[str]:
        """Return the keys of the rows that the book has of a table."""
        return frozenset(str(row[TABLES[table].key[0]]) for row in self.rows.get(table, ()))


def read_book(shipped: Shipped, layer: str, folder: Path, files: Sequence[Path] | None = None) -> PriceBook:
    """Read and judge every file of a book, or the given ones."""
    files = files_of_books.book_files(folder) if files is None else files
    digest = blake2b(digest_size=16)
    for file in (*files, *large_files(folder), *parquet_files(folder)):
        digest.update(fsencode(file.name) + b"\0")
        for part in read_parts(file, "limit_book_file_bytes"):
            digest.update(part)
    book = PriceBook(layer, folder, digest.hexdigest())
    drafts = [draft for file in files for draft in files_of_books.drafts_of(file)]

    # the USD per unit of each currency; one has one rate, and a USD is a USD
    book.exchange_rates = rates = {"USD": 1.0}
    for draft in drafts:
        if draft.table != files_of_books.RATES:
            continue
        currency = str(draft.values.get("currency", "")).strip().upper()
        if not currency:
            raise draft.error("an exchange rate needs a currency, such as EUR", "currency")
        rate = draft.number("usd_per_unit", f"usd_per_unit of {shown(currency)} must be a number")
        if not 0 < rate < float("inf"):
            reason = f"the exchange rate of {shown(currency)} must be above 0, found"
            raise draft.error(f"{reason} {shown(draft.values['usd_per_unit'])}", "usd_per_unit")
        if rates.setdefault(currency, rate) != rate:
            reason = f"{shown(currency)} would be both {rates[currency]:g} and {rate:g} USD; give it one rate"
            raise draft.error(reason, "usd_per_unit")

    # hardware and models, which prices name, then the prices, which discounts cover
    completion = Completion(shipped, book.rows, book.exchange_rates)
    for table in (*_ORDER, *(name for name in TABLES if name not in (*_ORDER, "offers"))):
        for draft in drafts:
            if draft.table == table:
                book.rows.setdefault(table, []).append(completion.row(draft))
                book.places.setdefault(table, []).append((draft.place, draft.row))
    if offers := [draft for draft in drafts if draft.table == "offers"]:
        from gpucost.catalog.price_files import prices_of_rows

        # the database numbers the prices from 1, in this order
        book.price_places = [(draft.place, draft.row) for draft in offers]
        book.prices = prices_of_rows(shipped.store, layer, offers, completion)
        completion.prices = book.prices.numbered
        # a price whose network is not that of its machine would buy another machine
        if any(draft.values.get("interconnect") for draft in offers):
            from gpucost.catalog.price_checks import contradicted

            shipped.store.ensure("systems")
            systems = {str(row["id"]): row for row in (*shipped.store.rows("systems"), *book.rows.get("systems", ()))}
            for finding in contradicted(shipped.store, book.prices.numbered, systems):
                place, number = book.price_places[finding.row - 1]
                raise DataError(finding.reason, file=place, row=number, column="interconnect")
    book.discounts = [discount(draft, completion) for draft in drafts if draft.table == files_of_books.DISCOUNTS]
    book.credits = [credit(draft, completion) for draft in drafts if draft.table == files_of_books.CREDITS]

    for name, rows in book.rows.items():
        key, keys = TABLES[name].key, set()
        for row in rows:
            values = tuple(row[column] for column in key)
            if values in keys:
                reason = f"two rows of {name} have the same {', '.join(key)}: {row[key[0]]}"
                raise DataError(reason, file=str(book.folder))
            keys.add(values)
    return book


# --- Laying books over the shipped tables: shipped < refreshed < the user's own; the nearest speaks and says so.


def lay_over(shipped: Shipped, folders: Mapping[str, Path]) -> list[PriceBook]:
    """Read each layer's folder or file, put its rows over the shipped tables, and return the books."""
    books, store = [], shipped.store
    for layer, folder in folders.items():
        book = read_book(shipped, layer, folder)
        for name, rows in book.rows.items():
            store.ensure(name)
            store.laid_over = True  # nothing that follows from these tables is kept between starts any more
            rows_of_book, columns = f"own_{name}", TABLES[name].columns
            types = {column.name: DUCKDB_TYPES[column.kind] for column in columns}
            store.load(rows_of_book, types, [[row.get(column.name) for row in rows] for column in columns])
            same = " AND ".join(f'o."{column}" IS NOT DISTINCT FROM t."{column}"' for column in TABLES[name].key)
            store.execute(f'DELETE FROM "{name}" AS t WHERE EXISTS (SELECT 1 FROM "{rows_of_book}" AS o WHERE {same})')
            store.execute(f'INSERT INTO "{name}" SELECT * FROM "{rows_of_book}"')
            store.execute(f'DROP TABLE "{rows_of_book}"')
        books.append(book)
    return books


def price_views(shipped: Shipped, books: Sequence[PriceBook], below: Sequence[str]) -> None:
    """Make the view `book_offers` over every layer and the table `book_discounts`."""
    store, parts = shipped.store, [*below]
    for book in books:
        if book.prices:
            parts.append(book.prices.layer)
        packed, written = parquet_files(book.folder), large_files(book.folder)
        if packed or written:
            from gpucost.catalog.price_files import prices_of_csv, prices_of_parquet

            completion = Completion(shipped, book.rows, book.exchange_rates)
            parts += [prices_of_parquet(store, book.layer, file, completion).layer for file in packed]
            parts += [prices_of_csv(store, book.layer, file, completion).layer for file in written]
            store.execute(f"SET threads = {os.cpu_count() or 1}")  # a large file is worth every core
    store.execute(offers_view(parts))
    discounts.make_table(store, [row for book in books for row in book.discounts])


# --- Refreshed prices over the shipped ones: the newest whole snapshot part of each source speaks, and says so.

_LAYER = "refreshed"
_TABLES_OF = {"tokens": "hosted_tokens", "availability": "availability"}  # kind of a part -> the table that it joins
_MANY = 4  # snapshots that an answer's version names one by one


class StoreWarning(UserWarning):
    """Something in the store of refreshed prices cannot be used."""


class Refreshed(Struct, frozen=True):
    """Parts of snapshots that speak on a day, each with its file."""

    parts: Sequence[tuple[Snapshot, Part, Path]]

    @property
    def version(self) -> str:
        """Return the ids of the snapshots as an answer's version carries them, the newest first."""
        ids = list(dict.fromkeys(snapshot.id for snapshot, _, _ in self.parts))
        others = f".and-{len(ids) - _MANY}-more" if len(ids) > _MANY else ""
        return f"+{_LAYER}-{'.'.join(ids[:_MANY])}{others}" if ids else ""

    @property
    def days_of_prices(self) -> list[date]:
        """Return the days on which its prices were seen."""
        return [part.observed_on for _, part, _ in self.parts if part.kind == "offers"]

    def offers(self, store: Store) -> list[str]:
        """Return the SQL of the prices of each part that can be read."""
        from gpucost.catalog.price_files import prices_of_parquet

        parts = []
        for _, part, file in self.parts:
            if part.kind == "offers":
                try:
                    parts.append(prices_of_parquet(store, _LAYER, file).layer)
                except DataError as error:
                    _warn(str(error))
        return parts

    def lay_over(self, store: Store) -> None:
        """Put the parts' sources, prices of tokens and lists of what is sold where beside the shipped rows."""
        store.laid_over = store.laid_over or bool(self.parts)
        for _, part, file in self.parts:
            cells = dict.fromkeys(TABLES["price_sources"].names, "NULL")
            cells |= {name: quoted(str(text)) for name, text in part.origin.items() if name in cells}
            cells["accessed_on"] = f"DATE '{part.observed_on}'"
            source = ", ".join(f"{value} AS {name}" for name, value in cells.items())
            _insert(store, "price_sources", f"SELECT {source}")
            # prices of capacity stay where they lie, in a view; these kinds have tables of their own
            if table := _TABLES_OF.get(part.kind):
                try:
                    refuse_long(store.connection.cursor(), file, "limit_book_rows")
                except DataError as error:
                    _warn(str(error))
                    continue
                names = ", ".join(TABLES[table].names)
                _insert(store, table, f"SELECT {names} FROM read_parquet({file_name(file)})")


def refreshed(store: Path | str | None, until: date, every: bool, last: str | None = None) -> Refreshed:
    """Return what a store says until a day: the newest part of each source, or every one where the past is asked.

    What was published after the snapshot `last` is left out.
    """
    if store is None:
        return Refreshed(())
    folder = opened(store)
    parts = folder.newest(until, every, last) if folder else []
    from gpucost.store.client import place_of
    from gpucost.store.remote import is_remote

    if not folder and isinstance(store, str):  # the user's own folder need not be there; one that is named should
        place = place_of(store) if is_remote(store) else store
        _warn(f"the store {place} holds no snapshots; the shipped prices speak")
    for fault in folder.faults:
        _warn(fault)
    return Refreshed(parts)


def opened(store: Path | str) -> Folder:
    """Open a store: a folder, or the copy of one that is published at an address."""
    from gpucost.store.remote import fetched, is_remote

    if isinstance(store, str) and is_remote(store):
        from gpucost.catalog.settings import cache_folder

        return fetched(store, cache_folder() / "stores")
    return Folder(gate.expanded(store))


def _insert(store: Store, table: str, rows: str) -> None:
    store.ensure(table)
    # a shipped row of the same key stays: it was checked by hand
    same = " AND ".join(f't."{name}" IS NOT DISTINCT FROM r."{name}"' for name in TABLES[table].key)
    names = ", ".join(TABLES[table].names)
    missing = f'SELECT {names} FROM ({rows}) AS r WHERE NOT EXISTS (SELECT 1 FROM "{table}" AS t WHERE {same})'
    try:
        store.execute(f'INSERT INTO "{table}" {missing}')
    except engine().Error as error:
        _warn(f"refreshed rows of {table} are left out: {first_line(error)}")


def _warn(text: str) -> None:
    warnings.warn(text, StoreWarning, stacklevel=3)
