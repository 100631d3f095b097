"""`gpucost validate`: hold predictions against measurements."""

import click

from gpucost.cli.options import Output, output_options, own_options
from gpucost.cli.progress import working


@click.command(name="validate")
@own_options("validate")
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
    from gpucost.api.result import Result
    from gpucost.arguments.kinds import share
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
