"""`gpucost data check`: judge data files before they are used."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucost.cli.messages import say, working
from gpucost.cli.options import Output, output_options

if TYPE_CHECKING:
    from gpucost.schemas.validation import Fault


@click.group(name="data")
def command() -> None:
    """Check data files against their schemas and against known facts."""


@command.command(name="check")
@click.argument("file", type=click.Path(), required=False)
@click.option("--table", metavar="NAME", help="The table that FILE belongs to; found by name and header otherwise.")
@click.option("--doubts", is_flag=True, help="Also list rows that are odd but may be true (always with FILE).")
@output_options
def check(out: Output, file: str | None, table: str | None, doubts: bool) -> None:
    """Check FILE, or all shipped data and your own book; list each fault as file:row:column with its reason.

    Faults are malformed, duplicate, negative, zero, infinite, misdated or unsourced rows, wrong units, unknown
    references, and prices that are contradictory or impossible. The exit code is 5 when there is a fault.

    \b
    gpucost data check
    gpucost data check my-prices.csv --table offers
    """
    from gpucost.catalog import open_catalog
    from gpucost.catalog.checks import check_folder
    from gpucost.catalog.core import data_root
    from gpucost.catalog.datacheck import check_one, idle_discounts
    from gpucost.errors import CheckFailedError, UnknownNameError, UsageError
    from gpucost.schemas import TABLES

    if table is not None and table not in TABLES:
        raise UnknownNameError("table", table, [], f"Tables: {', '.join(TABLES)}.")
    if table is not None and file is None:
        raise UsageError("--table says what FILE holds: name the file, too, or leave --table out to check all data.")
    catalog = open_catalog(root=data_root(), checked=False)
    if file is None:
        with working("checking every row"):
            report = check_folder(catalog.store.root)
        report.faults += idle_discounts(catalog, catalog.books)  # reading a book judges it
    else:
        report = check_one(catalog, Path(file), table)
    doubts = doubts or file is not None  # who checks a file of their own wants to know
    summary = f"{report.files} files, {report.rows} rows: {len(report.faults)} faults, {len(report.doubts)} doubts"
    say(f"{summary}{'' if doubts or not report.doubts else ' (--doubts lists them)'}")
    rows = [*_rows("fault", report.faults), *(_rows("doubt", report.doubts) if doubts else [])]
    if rows or out.format != "table" or out.is_document:
        ok = not report.faults
        out.rows(rows, ("kind", "place", "reason"), catalog, files=report.files, rows_checked=report.rows, ok=ok)
    if report.faults:
        raise CheckFailedError(f"data check failed: {len(report.faults)} faults.")


def _rows(kind: str, faults: "Sequence[Fault]") -> list[dict[str, Any]]:
    return [
        {
            "kind": kind,
            "place": fault.place,
            "reason": fault.reason,
            "file": fault.file,
            "row": fault.row,
            "column": fault.column,
        }
        for fault in sorted(faults, key=lambda item: (item.file, item.row or 0, item.column or ""))
    ]
