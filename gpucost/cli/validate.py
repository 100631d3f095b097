"""`gpucost validate` and `gpucost data check`: predictions against measurements, data files against their tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucost.cli.messages import say, working
from gpucost.cli.options import Output, output_options

if TYPE_CHECKING:
    from gpucost.schemas.validation import Fault


# --- `gpucost data check`: judge data files before they are used.


@click.group(name="data")
def data() -> None:
    """Check data files against their schemas and against known facts."""


@data.command(name="check")
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
        raise UsageError("--table says what FILE holds: also name the file, or leave --table out to check all data.")
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
    if file is None and (told := catalog.availability.told(catalog.as_of)):
        say(told)
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


# --- `gpucost validate`: hold predictions against measurements.


@click.command(name="validate")
@click.option(
    "--kind",
    type=click.Choice(["training", "memory", "serving"]),
    default="training",
    show_default=True,
    help="What is predicted.",
)
@click.option(
    "--measurements",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Rows in the columns of the shipped measurements; else the shipped ones.",
)
@click.option(
    "--calibration",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Predict with this table, as `gpucost calibrate --format csv` writes it.",
)
@click.option(
    "--leave-out",
    type=click.Choice(["source", "family", "software", "model"]),
    help="Predict each group with a calibration fitted to the others (takes minutes).",
)
@click.option(
    "--core/--all", "core", default=False, is_flag=True, help="Only rows marked as well suited to validation."
)
@click.option(
    "--ledger",
    is_flag=True,
    help="Show what was predicted for each source before any fit had seen it, as it was entered.",
)
@click.option("--max-error", metavar="SHARE", help="Exit 5 if the macro-median error is above this.")
@output_options
def validate(
    out: Output,
    kind: str,
    measurements: str | None,
    calibration: str | None,
    leave_out: str | None,
    core: bool,
    max_error: str | None,
    ledger: bool,
) -> None:
    """Predict every measured run from its description, and show the errors per source and in total.

    Predictions see no measured column. Unknown chips and models are taken as their nearest kin, with a note; what
    cannot be computed is skipped with its reason. Figures that a source states only as TFLOP/s or MFU are apart.

    \b
    gpucost validate
    gpucost validate --kind training --measurements runs.csv --format json
    gpucost validate --measurements runs.csv --calibration own.csv
    gpucost validate --leave-out source --core
    gpucost validate --ledger
    """
    from gpucost.arguments.kinds import share
    from gpucost.ask.result import Result
    from gpucost.calibration.fits import VALIDATIONS
    from gpucost.calibration.measurements import answer, read_file
    from gpucost.catalog import open_catalog
    from gpucost.catalog.calibrations import use
    from gpucost.errors import CheckFailedError

    limit = None if max_error is None else share(100.0).read(max_error, "--max-error")
    if leave_out and kind == "memory":
        raise click.UsageError("--leave-out needs --kind training or serving: memory has no fitted parameters.")
    catalog = open_catalog()
    if ledger:
        from gpucost.calibration.ledger import as_shares

        lines = as_shares(catalog.rows("ledger"))
        out.rows(lines, "ledger", catalog, title="First predictions of sources that no fit had seen")
        return
    if calibration:
        if leave_out or kind == "memory":
            raise click.UsageError("--calibration needs --kind training or serving, and excludes --leave-out.")
        use(catalog, kind, read_file(calibration, ("name", "kind", "value")))
    request = {"kind": kind, "measurements": measurements, "leave_out": leave_out, "core": core}
    request |= {"calibration": calibration} if calibration else {}
    with working("predicting the measured runs"):
        report = VALIDATIONS[kind](catalog, measurements, leave_out=leave_out, core=core)
    if calibration:
        report["method"] = f"predicted with the calibration of {calibration}"
    answered = answer(report, request, catalog.as_of, catalog.version)
    out.result(Result(answered))
    macro = answered["macro_median_abs_error_fraction"]
    if limit is not None and (macro is None or macro > limit):
        outcome = "nothing was predicted" if macro is None else f"the macro-median error is {macro:.1%}"
        raise CheckFailedError(f"{outcome}; the limit is {limit:.1%}.")
