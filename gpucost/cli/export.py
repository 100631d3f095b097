"""`gpucost export --focus saved.json -o plan.csv`: a saved answer as the rows of an invoice."""

from typing import Annotated

import click

from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import FILE, FLAG
from gpucost.arguments.signature import PLACE
from gpucost.cli.options import signature_options
from gpucost.cli.said import say


@click.command(name="export")
@signature_options
@click.option("-o", "--output", "path", required=True, type=click.Path(dir_okay=False), metavar="FILE",
              help="Write to FILE: .csv or .parquet.")  # fmt: skip
def command(
    path: str,
    saved: Annotated[str, FILE, PLACE],
    focus: Annotated[bool, FLAG, "As FOCUS rows, the form of invoices."] = False,
    start: v.FirstDay | None = None,
    rank: v.Rank = 1,
    side: v.Side | None = None,
    tag: v.Tags | None = None,
) -> None:
    """Write a saved estimate, serving bill, tco or mix as FOCUS 1.x charges, by day or month.

    \b
    gpucost estimate --model 8b --tokens 100b --format json -o saved.json
    gpucost export --focus saved.json -o plan.csv --start 2026-11-01
    gpucost reconcile plan.csv --estimate saved.json
    """
    from gpucost.ask.invoices import export

    count = export(saved, path, start=start, rank=rank, side=side, tag=tag)
    say(f"{path}: {count:,} charges.")
