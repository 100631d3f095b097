"""`gpucost compare A.json B.json`: explain the difference between two saved answers."""

import click

from gpucost.cli.options import Output, list_options, output_options


@click.command(name="compare")
@list_options("compare")
@output_options
def command(out: Output, first: str, second: str, rank: int) -> None:
    """Explain why two saved estimates differ: price, throughput, hours and the rest, with effects that add up."""
    from gpucost.answers.read import read_estimate
    from gpucost.api.result import Result
    from gpucost.training.compare import compare

    out.result(Result(compare(read_estimate(first), read_estimate(second), rank)))
