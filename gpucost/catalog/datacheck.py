"""Checking data files: the shipped tables, one file of any table, or the user's book."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost.catalog.checks import Reference, check_rows, reference
from gpucost.catalog.core import Catalog
from gpucost.catalog.discounts import described, idle
from gpucost.catalog.drafts import is_large
from gpucost.catalog.neighbours import Placed, lacks
from gpucost.catalog.paths import table_files
from gpucost.catalog.records import OWN_SOURCE
from gpucost.errors import DataError, UsageError
from gpucost.schemas import TABLES, Table
from gpucost.schemas.validation import Fault, check_file, read_cells

if TYPE_CHECKING:
    from gpucost.catalog.books import PriceBook


@dataclass(slots=True)
class Report:
    """What was checked and what was found."""

    files: int = 0
    rows: int = 0
    faults: list[Fault] = field(default_factory=list)
    doubts: list[Fault] = field(default_factory=list)

    def add(self, fault: Fault, root: Path | None, doubt: bool = False) -> None:
        """Take a fault or a doubt in, its file named below the data root."""
        path = Path(fault.file)
        if root is not None and path.is_relative_to(root):
            fault = replace(fault, file=str(path.relative_to(root)))
        (self.doubts if doubt else self.faults).append(fault)


def check_shipped(catalog: Catalog) -> Report:
    """Check every file of every table of the data folder, each against the others."""
    report, root = Report(), catalog.store.root
    checked: dict[str, list[Placed]] = {}
    for table in TABLES.values():
        for path in table_files(root, table):
            rows, faults = check_file(table, path)
            report.files, report.rows = report.files + 1, report.rows + len(rows)
            for fault in (*faults, *order_faults(table, path)):
                report.add(fault, root)
            if not faults:
                numbered = zip(_line_numbers(path), rows, strict=True)
                checked.setdefault(table.name, []).extend(Placed(path, number, row) for number, row in numbered)
    known = reference(lambda name: [placed.row for placed in checked.get(name, ())], date.today())
    for name, placed in checked.items():
        for path, group in groupby(placed, key=lambda one: one.file):
            _judge(report, TABLES[name], path, [(one.number, one.row) for one in group], known, root)
    for lack in lacks(checked):
        report.add(Fault(str(lack.place.file), lack.place.number, lack.column, lack.reason), root, lack.doubt)
    return report


def idle_discounts(catalog: Catalog, books: "Sequence[PriceBook]") -> list[Fault]:
    """Return the discounts of books that match no price: whoever wrote one meant some."""
    if not any(book.discounts for book in books):
        return []
    catalog.prepare_prices(history=True)
    return [
        Fault(str(book.folder), None, None, f"discount {place} ({described(row)}) matches no price")
        for book in books
        for place, row in idle(catalog.store, book.discounts)
    ]


def check_one(catalog: Catalog, path: Path, table_name: str | None) -> Report:
    """Check one file against the shipped tables; its sources may stand in a sources.csv beside it or one folder up."""
    if path.suffix.lower() in (".toml", ".xlsx"):
        return _check_book_file(catalog, path)
    if path.suffix.lower() == ".parquet" or is_large(path):
        return _check_large(catalog, path)
    table = TABLES[table_name] if table_name else guess_table(path)
    if table.name == "offers" and path.stem == "offers" and "offer_id" not in read_cells(path)[0][1]:
        return _check_book_file(catalog, path)
    rows, faults = check_file(table, path)
    report = Report(1, len(rows), list(faults))
    if faults:
        return report
    known = reference(catalog.rows, date.today())
    own = {table.name: frozenset(str(row[table.key[0]]) for row in rows) | known.keys.get(table.name, frozenset())}
    sources = _sources_beside(path) | {OWN_SOURCE}
    keys = {**known.keys, **own}
    for name in ("price_sources", "model_sources"):
        keys[name] = keys.get(name, frozenset()) | sources
    numbered = list(zip(_line_numbers(path), rows, strict=True))
    _judge(report, table, path, numbered, known._replace(keys=keys), None)
    return report


def _check_large(catalog: Catalog, path: Path) -> Report:
    from gpucost.catalog.completion import Completion
    from gpucost.catalog.large import csv_part, parquet_part

    store = catalog.laid
    try:
        if path.suffix.lower() == ".parquet":
            part = parquet_part(store, "user", path)
        else:
            part = csv_part(store, "user", path, Completion(catalog, {}, {}))
    except DataError as error:
        return _unread(error)
    return Report(1, store.fetch(f"SELECT count(*) AS n FROM ({part})")[0]["n"])


def _check_book_file(catalog: Catalog, path: Path) -> Report:
    from gpucost.catalog.books import read_book

    if not path.is_file():
        raise UsageError(f"{path} cannot be read: no such file.")
    try:
        book = read_book(catalog, "user", path.parent, [path])
    except DataError as error:
        return _unread(error)
    report = Report(1, sum(map(len, book.rows.values())), idle_discounts(catalog, [book]))
    known = reference(catalog.rows, date.today())
    own = {name: book.ids(name) for name in book.rows}
    own["providers"] = frozenset(str(row["provider"]) for row in book.rows.get("offers", ()))
    known = known._replace(keys={name: ids | own.get(name, frozenset()) for name, ids in known.keys.items()})
    for name, rows in book.rows.items():
        _judge(report, TABLES[name], path, list(enumerate(rows, 1)), known, None)
    return report


def order_faults(table: Table, path: Path) -> list[Fault]:
    """Shipped files hold the schema's columns in the schema's order, so that they load without being sniffed."""
    header, names = read_cells(path)[0][1], list(table.names)
    if header == names:
        return []
    same = set(header) == set(names)
    what = "the columns of shipped files stand in the schema's order" if same else "shipped files hold every column"
    return [Fault(str(path), 1, None, f"{what} of {table.name}: {', '.join(names)}")]


def guess_table(path: Path) -> Table:
    """Find the table of a file by its place, its name or its header; the header decides between tables."""
    for table in TABLES.values():
        if re.search(re.escape(table.files).replace(r"\*", "[^/]*") + "$", path.resolve().as_posix()):
            return table
    try:
        header = set(read_cells(path)[0][1])
    except DataError as error:
        raise UsageError(str(error)) from None
    shared = {table.name: len(header & set(table.names)) for table in TABLES.values()}
    best = max(shared, key=lambda name: (name == path.stem, shared[name]))
    if shared[best] < len(header) / 2:
        raise UsageError(f"{path} fits no table. Name one: --table {' | '.join(TABLES)}.")
    return TABLES[best]


def _unread(error: DataError) -> Report:
    return Report(1, 0, [Fault(error.file, error.row, error.column, error.reason)])


def _judge(
    report: Report, table: Table, path: Path, rows: Sequence[tuple[int, Mapping[str, Any]]], known: Reference,
    root: Path | None,
) -> None:  # fmt: skip
    for row, column, reason, doubt in check_rows(table, rows, known):
        report.add(Fault(str(path), row, column, reason), root, doubt)


def _line_numbers(path: Path) -> list[int]:
    return [number for number, _ in read_cells(path)[1:]]


def _sources_beside(path: Path) -> frozenset[str]:
    found: set[str] = set()
    for folder in (path.parent, path.parent.parent):
        file = folder / "sources.csv"
        if file.is_file():
            rows, faults = check_file(TABLES["price_sources"], file)
            found |= {str(row["source_id"]) for row in rows} if not faults else set()
    return frozenset(found)
