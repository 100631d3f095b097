"""`gpucost data check`: judge data files before they are used."""

from pathlib import Path

import click

from gpucost.cli.options import emit_rows, output_options


@click.group(name="data")
def command() -> None:
    """Check data files against their schemas and against what is known."""


@command.command(name="check")
@click.argument("file", required=False, type=click.Path())
@click.option("--table", metavar="NAME", help="The table that FILE belongs to; found by name and header otherwise.")
@click.option("--doubts", is_flag=True, help="Also list rows that are odd but may be true.")
@output_options
def check(
    file: str | None, table: str | None, doubts: bool, format_: str, fields: str | None, output: str | None
) -> None:
    """Check FILE, or all shipped data and your own book: each fault is named as file:row:column with its reason.

    Faults are malformed, duplicated, negative, zero, infinite, mis-united, misdated or unsourced rows, unknown
    references, and prices that contradict each other or cannot be. The exit code is 5 when there is a fault.

    \b
    gpucost data check
    gpucost data check my-prices.csv --table offers
    """
    from gpucost.catalog import open_catalog
    from gpucost.catalog.datacheck import check_one, check_shipped
    from gpucost.errors import CheckFailedError, UnknownNameError
    from gpucost.schemas import SCHEMA_VERSION, TABLES

    if table is not None and table not in TABLES:
        raise UnknownNameError("table", table, [], f"Tables: {', '.join(TABLES)}.")
    catalog = open_catalog()
    if file is None:
        report = check_shipped(catalog)
        _ = catalog.books  # reading a book judges it
    else:
        report = check_one(catalog, Path(file), table)
    found = [("fault", fault) for fault in sorted(report.faults)] + [
        ("doubt", doubt) for doubt in sorted(report.doubts) if doubts
    ]
    rows = [
        {
            "kind": kind,
            "place": _place(fault),
            "reason": fault.reason,
            "file": fault.file,
            "row": fault.row,
            "column": fault.column,
        }
        for kind, fault in found
    ]
    summary = f"{report.files} files, {report.rows} rows: {len(report.faults)} faults, {len(report.doubts)} doubts"
    click.echo(f"gpucost: {summary}{'' if doubts or not report.doubts else ' (--doubts lists them)'}", err=True)
    if rows or format_ != "table":
        envelope = {
            "schema_version": SCHEMA_VERSION,
            "files": report.files,
            "rows_checked": report.rows,
            "ok": not report.faults,
            "warnings": [],
        }
        emit_rows(
            rows, columns=("kind", "place", "reason"), format_=format_, fields=fields, output=output, envelope=envelope
        )
    if report.faults:
        raise CheckFailedError(f"data check failed: {len(report.faults)} faults.")


def _place(fault: object) -> str:
    return ":".join(
        str(part)
        for part in (getattr(fault, "file", None), getattr(fault, "row", None), getattr(fault, "column", None))
        if part is not None
    )
