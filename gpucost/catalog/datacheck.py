"""Checking a data file of any table, or of a price book, and a book's contracts against the lists.

The checks of a row, whoever asks for them, are catalog/checks.py; those of a price catalog/price_checks.py.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost import clock
from gpucost.catalog.book_files import is_large, table_named
from gpucost.catalog.checks import Report, check_rows, line_numbers, reference
from gpucost.catalog.core import Catalog
from gpucost.catalog.discounts import covers, described, idle
from gpucost.catalog.price_checks import Finding, Reference, check_prices, load_prices
from gpucost.catalog.records import OWN_SOURCE
from gpucost.errors import DataError, UsageError
from gpucost.schemas import TABLES, DataTable
from gpucost.schemas.validation import Fault, check_file, read_cells, shared_faults

if TYPE_CHECKING:
    from gpucost.catalog.books import PriceBook


def idle_discounts(catalog: "Catalog", books: "Sequence[PriceBook]") -> list[Fault]:
    """Return the discounts of books that match no price: whoever wrote one meant some."""
    if not any(book.discounts for book in books):
        return []
    catalog.prepare_prices(history=True)
    return [
        Fault(str(book.folder), None, None, f"discount {number} ({described(row)}) matches no price")
        for book in books
        for number, row in idle(catalog.store, book.discounts)
    ]


def check_one(catalog: "Catalog", path: Path, table_name: str | None) -> Report:
    """Check one file against the shipped tables; its sources may stand in a sources.csv beside it or one folder up."""
    if path.suffix.lower() in (".toml", ".xlsx"):
        return _check_book_file(catalog, path)
    if path.suffix.lower() == ".parquet" or is_large(path):  # as a whole, by the database: it may have millions of rows
        from gpucost.catalog.book_rows import Completion
        from gpucost.catalog.price_files import prices_of_csv, prices_of_parquet

        prices_of = prices_of_parquet if path.suffix.lower() == ".parquet" else prices_of_csv
        try:
            prices = prices_of(catalog.laid, "checked", path, Completion(catalog, {}, {}))
        except DataError as error:
            return _report_of(error)
        known = reference(catalog.rows, max(clock.today(), catalog.dated))
        sources = known.keys["price_sources"] | _sources_beside(path)
        known = known._replace(keys={**_without_providers(known.keys), "price_sources": sources})
        report = Report(1, prices.offers)
        report.take(path, _price_findings(catalog, prices.numbered, known))
        return report
    table = TABLES[table_name] if table_name else _guess_table(path)
    # a file of prices without ids is one of a book, where ids follow from the other columns
    if table.name == "offers" and table_named(path.stem) == "offers" and "offer_id" not in read_cells(path)[0][1]:
        return _check_book_file(catalog, path)
    rows, faults = check_file(table, path)
    report = Report(1, len(rows), list(faults))
    if faults:
        return report
    known = reference(catalog.rows, clock.today())
    # the file's own keys count too: its rows may refer to each other
    keys_of_file = frozenset(str(row[table.key[0]]) for row in rows)
    sources = _sources_beside(path) | {OWN_SOURCE}
    keys = {**known.keys, table.name: keys_of_file | known.keys.get(table.name, frozenset())}
    for name in ("price_sources", "model_sources"):
        keys[name] = keys.get(name, frozenset()) | sources
    numbered = list(zip(line_numbers(path), rows, strict=True))
    known = known._replace(keys=keys)
    if table.name == "offers":
        report.take(path, _price_findings(catalog, load_prices(catalog.laid, "checked_prices", numbered), known))
    else:
        report.take(path, check_rows(table, numbered, known))
    return report


def _price_findings(catalog: "Catalog", prices: str, known: Reference) -> Iterator[Finding]:
    """Hold prices against the catalog and the prices in it."""
    catalog.laid.ensure("offers")
    return check_prices(catalog.store, prices, "SELECT * FROM offers", known)


def _without_providers(keys: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Return what prices of a book may name: providers are its own to name."""
    return {name: ids for name, ids in keys.items() if name != "providers"}


def _check_book_file(catalog: "Catalog", path: Path) -> Report:
    from gpucost.catalog.books import read_book

    if not path.is_file():
        raise UsageError(f"{path} cannot be read: no such file.")
    try:
        book = read_book(catalog, "checked", path.parent, [path])
    except DataError as error:
        return _report_of(error)
    # discounts and credits have no rows of a table, and were judged as they were read
    count = sum(map(len, book.rows.values())) + len(book.price_places)
    report = Report(1, count, idle_discounts(catalog, [book]))
    known = reference(catalog.rows, clock.today())
    # rows of a book may name one another, and overrule shipped ones of the same id
    book_rows = {name: {str(row[TABLES[name].key[0]]): row for row in rows} for name, rows in book.rows.items()}
    keys = {name: ids | frozenset(book_rows.get(name, ())) for name, ids in known.keys.items()}
    known = Reference(
        _without_providers(keys),
        {**known.accelerators, **book_rows.get("accelerators", {})},
        {**known.systems, **book_rows.get("systems", {})},
        known.today,
        known.availability,
        True,
    )
    for name, rows in book.rows.items():
        placed = zip(book.places[name], rows, strict=True)
        # a finding is named by the sheet or part that it stands in, and its row there
        for place, group in groupby(placed, key=lambda pair: pair[0][0]):
            numbered = [(number, row) for (_, number), row in group]
            report.take(Path(place), check_rows(TABLES[name], numbered, known))
    if book.prices:
        for finding in _price_findings(catalog, book.prices.numbered, known):
            place, row = book.price_places[finding.row - 1]
            report.take(Path(place), [finding._replace(row=row)])
    return report


def _guess_table(path: Path) -> DataTable:
    """Find the table of a file by its place, its name or its header; the header decides between tables."""
    for table in TABLES.values():
        # where it lies tells most: pricing/offers/aws.csv
        if re.search(re.escape(table.files).replace(r"\*", "[^/]*") + "$", path.resolve().as_posix()):
            return table
    try:
        header = set(read_cells(path)[0][1])
        if len(header) == 1:
            for fault in shared_faults(str(path), [*header]):
                raise fault.error()
    except DataError as error:
        raise UsageError(str(error)) from None
    # the table that shares most columns, the one of the file's name before all; half of the header must be its own
    shared = {table.name: len(header & set(table.names)) for table in TABLES.values()}
    best = max(shared, key=lambda name: (name == path.stem.lower(), shared[name]))
    if shared[best] < len(header) / 2:
        raise UsageError(f"{path} does not fit any table. Name one: --table {' | '.join(TABLES)}.")
    return TABLES[best]


def _report_of(error: DataError) -> Report:
    return Report(1, 0, [Fault(error.file, error.row, error.column, error.reason)])


def _sources_beside(path: Path) -> frozenset[str]:
    source_ids: set[str] = set()
    for folder in (path.parent, path.parent.parent):
        file = folder / "sources.csv"
        if file.is_file():
            rows, faults = check_file(TABLES["price_sources"], file)
            source_ids |= {str(row["source_id"]) for row in rows} if not faults else set()
    return frozenset(source_ids)


# --- The terms of price books against the lists: each contract and discount with list, contracted and effective price.

_SOON_DAYS = 90  # before its end a contract is worth a remark


def contract_terms(catalog: Catalog) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row per contract, discount and credit, with its prices and what to look at."""
    catalog.prepare_prices()
    rows = []
    current = {row["offer_id"]: row for row in catalog.price_rows if row["book"] == "user"}
    # of the book itself: also contracts that have ended or are still to come
    query = "SELECT * FROM book_offers WHERE book = 'user' ORDER BY offer_id, coalesce(valid_from, observed_on)"
    for row in catalog.store.fetch(query):
        now = current.get(row["offer_id"])
        listed = now["list_usd_per_gpu_hour"] if now else None
        price, start = row["usd_per_gpu_hour"], row["valid_from"] or row["observed_on"]
        dearer = f"it is dearer than the list, {listed:g} USD" if listed is not None and price > listed else ""
        remark = _term_remark(start, row["valid_until"], catalog.as_of) or dearer
        rows.append(_row("contract", row["offer_id"], listed, price, price, start, row["valid_until"], remark))

    discounts = [row for book in catalog.books for row in book.discounts]
    matchless = {number for number, _ in idle(catalog.store, discounts)}
    for number, row in enumerate(discounts, 1):
        covered = [
            (price["list_usd_per_gpu_hour"], price["usd_per_gpu_hour"])
            for price in catalog.price_rows
            if price["price_kind"] == "effective" and covers(row, price)
        ]
        # of hundreds of prices that it covers, the cheapest stands for all
        lowest = min(covered, key=lambda pair: pair[1], default=(None, None))
        name = f"{row['fraction']:.0%} on {described(row) or 'everything'} ({len(covered)} prices)"
        start, end = row["valid_from"], row["valid_until"]
        remark = "it matches no price" if number in matchless else _term_remark(start, end, catalog.as_of)
        rows.append(_row("discount", name, lowest[0], None, lowest[1], start, end, remark))

    for row in catalog.credits:
        matched = sum(covers(row, price) for price in catalog.price_rows if not price["ended"])
        cap = f", at most {row['usd_per_month']:,.0f} a month" if row["usd_per_month"] else ""
        name = f"{row['usd']:,.0f} USD on {described(row) or 'everything'}{cap} ({matched} prices)"
        start, end = row["valid_from"], row["valid_until"]
        remark = _term_remark(start, end, catalog.as_of) if matched else "it matches no price"
        rows.append(_row("credit", name, None, None, None, start, end, remark))
    return rows, [f"{row['what']}: {row['remark']}" for row in rows if row["remark"]]


def _row(
    layer: str,
    name: str,
    listed: float | None,
    contracted: float | None,
    effective: float | None,
    start: date | None,
    end: date | None,
    remark: str,
) -> dict[str, Any]:
    return {
        "layer": layer,
        "what": name,
        "list_usd_per_gpu_hour": listed,
        "contracted_usd_per_gpu_hour": contracted,
        "effective_usd_per_gpu_hour": effective,
        "saved_fraction": 1 - effective / listed if effective is not None and listed else None,
        "valid_from": start,
        "valid_until": end,
        "remark": remark,
    }


def _term_remark(start: date | None, end: date | None, day: date) -> str:
    if end is not None and end < day:
        return f"it ended on {end}; the list speaks again"
    if start is not None and start > day:
        return f"it holds from {start} on"
    if end is not None and end - day <= timedelta(days=_SOON_DAYS):
        return f"it ends on {end}, in {(end - day).days} days"
    return ""
