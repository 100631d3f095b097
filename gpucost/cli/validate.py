"""`gpucost validate`: hold predictions against measurements."""

import click

from gpucost.cli.messages import working
from gpucost.cli.options import Output, output_options


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
def command(
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
        raise click.UsageError("--leave-out goes with --kind training or serving: of memory nothing is fitted.")
    catalog = open_catalog()
    if ledger:
        out.rows(catalog.rows("ledger"), "ledger", catalog, title="First predictions of sources that no fit had seen")
        return
    if calibration:
        if leave_out or kind == "memory":
            raise click.UsageError("--calibration goes with --kind training or serving, and without --leave-out.")
        use(catalog, kind, read_file(calibration, ("name", "kind", "value")))
    request = {"kind": kind, "measurements": measurements, "leave_out": leave_out, "core": core}
    request |= {"calibration": calibration} if calibration else {}
    with working("predicting the measured runs"):
        report = VALIDATIONS[kind](catalog, measurements, leave_out=leave_out, core=core)
    if calibration:
        report["method"] = f"predicted with the calibration of {calibration}"
    found = answer(report, request, catalog.as_of, catalog.version)
    out.result(Result(found))
    macro = found["macro_median_abs_error_fraction"]
    if limit is not None and (macro is None or macro > limit):
        said = "nothing was predicted" if macro is None else f"the macro-median error is {macro:.1%}"
        raise CheckFailedError(f"{said}; {limit:.1%} was asked for.")
