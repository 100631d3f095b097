"""`gpucost compare A.json B.json`: explain the difference between two saved answers."""

import click

from gpucost.cli.options import emit_text, output_options


@click.command(name="compare")
@click.argument("first", type=click.Path())
@click.argument("second", type=click.Path())
@click.option("--rank", default=1, show_default=True, type=click.IntRange(min=1), help="Which option of each answer.")
@output_options
def command(first: str, second: str, rank: int, format_: str, fields: str | None, output: str | None) -> None:
    """Explain why two saved estimates differ: price, throughput, hours and the rest, with effects that add up."""
    from gpucost.answers.read import read_estimate
    from gpucost.api.saved import written
    from gpucost.training.compare import compare

    emit_text(written(compare(read_estimate(first), read_estimate(second), rank), format_, fields, "changes"), output)
