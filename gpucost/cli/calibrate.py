"""`gpucost calibrate`: fit the efficiencies to measurements."""

import click

from gpucost.cli.options import Output, envelope, output_options

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
def command(out: Output, kind: str, measurements: str | None) -> None:
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
    if out.format == "csv" and not out.fields:
        out.text(as_csv(rows))
        return
    out.rows(rows, COLUMNS, envelope(catalog), "Calibration")
