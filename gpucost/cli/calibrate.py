"""`gpucost calibrate`: fit the efficiencies to measurements."""

import click

from gpucost.cli.options import emit_rows, emit_text, envelope, output_options

COLUMNS = ("name", "value", "prior:2", "unit:4", "kind:5", "rows_used:6", "meaning:3")


@click.command(name="calibrate")
@click.option(
    "--kind", type=click.Choice(("training", "serving")), default="training", show_default=True, help="What is fitted."
)
@click.option(
    "--measurements",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Your own runs, in the columns of models/measurements/training.csv or serving.csv.",
)
@output_options
def command(kind: str, measurements: str | None, format_: str, fields: str | None, output: str | None) -> None:
    """Fit the efficiencies of training or serving to measurements, and the ranges to what held-out sources leave.

    Without FILE the shipped measurements are fitted again (minutes). With FILE your own runs are fitted on top
    of the current calibration; write the result to calibration.csv in your own book, and every command uses it.

    \b
    gpucost calibrate --format csv -o models/calibration.csv
    gpucost calibrate --kind serving --format csv -o models/serving_calibration.csv
    gpucost calibrate --measurements runs.csv --format csv -o ~/.config/gpucost/book/calibration.csv
    """
    from gpucost.catalog import open_catalog
    from gpucost.physics.calibration import as_csv
    from gpucost.validation import fitted
    from gpucost.validation.measurements import read_file

    catalog = open_catalog()
    if measurements is None:
        click.echo("gpucost: fitting the shipped measurements, each source held out in turn …", err=True)
        _, rows = fitted.fit_shipped(catalog, kind)
    else:
        _, rows = fitted.fit_own(catalog, kind, read_file(measurements))
    if format_ == "csv" and not fields:
        emit_text(as_csv(rows), output)
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
