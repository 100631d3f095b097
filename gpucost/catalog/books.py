"""The user's own book: hardware, models, prices, discounts, credits and exchange rates beside the shipped facts.

A book is a folder, or one file. CSV files carry a table's name (offers.csv or offers/*.csv, accelerators.csv,
systems.csv, models.csv, sources.csv) and need only the columns that cannot be derived. The sheets of an .xlsx workbook
carry the same names. TOML files hold the same as arrays of tables: [[offer]], [[accelerator]], [[system]], [[model]],
[[source]], [[discount]], [[credit]] and [exchange_rates]. A row may say `like = "<id>"` and then states only what
differs. Every row is judged like a shipped one; a bad file loads nothing.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from os import fsencode
from pathlib import Path
from typing import Any

from gpucost.catalog.completion import Completion
from gpucost.catalog.discounts import credit, discount
from gpucost.catalog.drafts import (
    CREDITS,
    DISCOUNTS,
    RATES,
    Draft,
    Row,
    book_files,
    drafts_of,
    large_files,
    parquet_files,
)
from gpucost.catalog.shipped import Shipped
from gpucost.errors import DataError
from gpucost.gate import read_parts, shown
from gpucost.schemas import TABLES

_ORDER = ("price_sources", "accelerators", "systems", "llms", "offers")  # what later rows may name comes first


@dataclass(slots=True)
class PriceBook:
    """What a folder or file adds: validated rows by table, discounts, credits, and a digest of its files."""

    layer: str
    folder: Path
    digest: str
    rows: dict[str, list[Row]] = field(default_factory=dict)
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
    files = book_files(folder) if files is None else files
    book = PriceBook(layer, folder, _digest([*files, *large_files(folder), *parquet_files(folder)]))
    drafts = [draft for file in files for draft in drafts_of(file)]
    book.exchange_rates = _rates([draft for draft in drafts if draft.table == RATES])
    completion = Completion(shipped, book.rows, book.exchange_rates)
    for table in (*_ORDER, *(name for name in TABLES if name not in _ORDER)):
        for draft in drafts:
            if draft.table == table:
                book.rows.setdefault(table, []).append(completion.row(draft))
                book.places.setdefault(table, []).append((draft.place, draft.row))
    book.discounts = [discount(draft, completion) for draft in drafts if draft.table == DISCOUNTS]
    book.credits = [credit(draft, completion) for draft in drafts if draft.table == CREDITS]
    _refuse_duplicates(book)
    return book


def _digest(files: Sequence[Path]) -> str:
    """Return the hash over the names and contents of files."""
    found = blake2b(digest_size=16)
    for file in files:
        found.update(fsencode(file.name) + b"\0")
        for part in read_parts(file, "limit_book_file_bytes"):
            found.update(part)
    return found.hexdigest()


def _rates(drafts: Sequence[Draft]) -> dict[str, float]:
    """Return the USD per unit of each currency; one has one rate, and a USD is a USD."""
    found = {"USD": 1.0}
    for draft in drafts:
        currency = str(draft.values.get("currency", "")).strip().upper()
        if not currency:
            raise draft.error("an exchange rate needs a currency, such as EUR", "currency")
        rate = draft.number("usd_per_unit", f"usd_per_unit of {shown(currency)} must be a number")
        if not 0 < rate < float("inf"):
            reason = f"the exchange rate of {shown(currency)} must be above 0, found"
            raise draft.error(f"{reason} {shown(draft.values['usd_per_unit'])}", "usd_per_unit")
        if found.setdefault(currency, rate) != rate:
            reason = f"{shown(currency)} would be both {found[currency]:g} and {rate:g} USD; give it one rate"
            raise draft.error(reason, "usd_per_unit")
    return found


def _refuse_duplicates(book: PriceBook) -> None:
    for name, rows in book.rows.items():
        key, seen = TABLES[name].key, set()
        for row in rows:
            values = tuple(row[column] for column in key)
            if values in seen:
                reason = f"two rows of {name} have the same {', '.join(key)}: {row[key[0]]}"
                raise DataError(reason, file=str(book.folder))
            seen.add(values)


def as_csv(names: Sequence[str], rows: Iterable[Row]) -> str:
    """Write validated rows as CSV with the named columns, for the loader to read."""
    import io

    out = io.StringIO()
    writer = csv.writer(out)  # which quotes either sign that ends a line
    writer.writerow(names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    return "" if value is None else int(value) if isinstance(value, bool) else value
