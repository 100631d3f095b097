"""`gpucost calibrate`: fit the efficiencies to measurements."""

import click

from gpucost.cli.options import emit_rows, emit_text, envelope, output_options

COLUMNS = ("name", "value", "prior:2", "unit:4", "kind:5", "rows_used:6", "meaning:3")


@click.command(name="calibrate")
@click.option(
    "--measurements",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Your own runs, in the columns of models/measurements/training.csv.",
)
@output_options
def command(measurements: str | None, format_: str, fields: str | None, output: str | None) -> None:
    """Fit the efficiencies of training to measurements, and the ranges to what held-out sources leave.

    Without FILE the shipped measurements are fitted again (about a minute). With FILE your own runs are fitted on top
    of the current calibration; write the result to calibration.csv in your own book, and every command uses it.

    \b
    gpucost calibrate --format csv -o models/calibration.csv
    gpucost calibrate --measurements runs.csv --format csv -o ~/.config/gpucost/book/calibration.csv
    """
    from gpucost.catalog import open_catalog
    from gpucost.validation import fitted
    from gpucost.validation.training import read_file

    catalog = open_catalog()
    if measurements is None:
        click.echo("gpucost: fitting the shipped measurements, each source held out in turn …", err=True)
        _, rows = fitted.fit_shipped(catalog)
    else:
        _, rows = fitted.fit_own(catalog, read_file(measurements))
    if format_ == "csv" and not fields:
        emit_text(fitted.as_csv(rows), output)
        return
    emit_rows(
        rows,
        columns=COLUMNS,
        format_=format_,
        fields=fields,
        output=output,
        envelope=envelope(catalog),
        title="Calibration",
    )
