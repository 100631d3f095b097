"""`gpucost roofline`: what bounds one operation or a whole step."""

from typing import Any

import click

from gpucost.cli.options import format_option
from gpucost.cli.throughput import show
from gpucost.cli.training_options import OPTIONS

STEP_OPTIONS = OPTIONS[2:]  # all but --model and --gpu, which differ here


def step_options(function: Any) -> Any:
    """Add the options of a layout, none of them required."""
    for option in reversed(STEP_OPTIONS):
        function = option(function)
    return function


@click.command(name="roofline")
@click.option("--gpu", required=True, metavar="NAME", help="One accelerator, such as h100-sxm.")
@click.option("--matmul", metavar="MxNxK", help="A matrix product.")
@click.option("--attention", metavar="TOKENSxHEADSxDIM", help="Causal attention over one sequence, fused.")
@click.option("--copy", metavar="BYTES", help="An element-wise pass.")
@click.option("--all-reduce", metavar="BYTES", help="An all-reduce over --gpus.")
@click.option("--model", metavar="NAME", help="A whole training step of this model.")
@step_options
@click.option("--as-of", metavar="DATE", help="The day that the catalog is seen from.")
@format_option
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    help="Write to FILE (.html draws the plot) instead of the terminal.",
)
def command(as_of: str | None, format_: str, output: str | None, **wanted: Any) -> None:
    """What bounds an operation, or each part of a step: compute, memory bandwidth, network or host.

    The ridge is the intensity (FLOP per byte) above which compute bounds and below which bandwidth does.

    \b
    gpucost roofline --gpu h100-sxm --matmul 8192x8192x8192
    gpucost roofline --gpu h100-sxm --model llama-3-8b --gpus 8 -o roofline.html
    """
    from gpucost.api.throughput import roofline

    show(roofline(**{name: value for name, value in wanted.items() if value is not None}, as_of=as_of), format_, output)
