"""`gpucost export --focus saved.json -o plan.csv`: a saved answer as the rows of an invoice."""

import click

from gpucost.cli.options import list_options
from gpucost.cli.said import say


@click.command(name="export")
@list_options("export")
@click.option(
    "-o",
    "--output",
    "path",
    required=True,
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write to FILE: .csv or .parquet.",
)
def command(
    saved: str, focus: bool, start: str | None, rank: int, side: str | None, tag: dict[str, str] | None, path: str
) -> None:
    """Write a saved estimate, serving bill, tco or mix as FOCUS 1.x charges, by day or month.

    \b
    gpucost estimate --model 8b --tokens 100b --format json -o saved.json
    gpucost export --focus saved.json -o plan.csv --start 2026-11-01
    gpucost reconcile plan.csv --estimate saved.json
    """
    from gpucost.api.reconcile import export

    count = export(saved, path, start=start, rank=rank, side=side, tag=tag)
    say(f"{path}: {count:,} charges.")
