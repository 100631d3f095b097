"""`gpucost audit`: whether a claim about time, cost, memory, serving speed or payback is possible."""

from typing import Any

import click

from gpucost.cli.options import emit_text, output_options
from gpucost.errors import CheckFailedError


@click.command(name="audit")
@click.option("--model", help="Preset, size such as 8b, or path to a config.json.")
@click.option("--tokens", help="Tokens trained on.")
@click.option("--gpu", help="Accelerator; a family is judged by its most favourable variant.")
@click.option("--gpus", help="How many.")
@click.option("--days", help="Claimed duration.")
@click.option("--hours", help="Claimed duration in hours.")
@click.option("--gpu-hours", help="Claimed accelerator-hours.")
@click.option("--cost", metavar="USD", help="Claimed cost of the run.")
@click.option("--precision", help="Precision claimed: bf16, fp8 …")
@click.option("--method", default="full", show_default=True, help="full, lora or qlora.")
@click.option("--sequence", metavar="TOKENS", help="Tokens per sequence.")
@click.option("--fits", type=click.Choice(["training", "serving"]), help="Claim: it fits on these accelerators.")
@click.option("--weights-gb", help="Claimed size of the weights.")
@click.option("--training-gb", help="Claimed memory of training in all.")
@click.option("--tokens-per-s", help="Claimed output tokens per second in serving, over all accelerators.")
@click.option("--batch", default="1", show_default=True, help="Sequences decoded at once, for --tokens-per-s.")
@click.option("--buy", metavar="USD", help="Claimed price of buying.")
@click.option("--rent-monthly", metavar="USD", help="Claimed rent per month.")
@click.option("--own-monthly", metavar="USD", help="Claimed running cost of owning per month.")
@click.option("--payback-months", help="Claimed months until buying pays back.")
@click.option("--hours-per-month", help="Accelerator-hours needed per month, for how busy the --gpus would be.")
@click.option("--discount", default="10%", show_default=True, help="Annual rate for the present value.")
@click.option("--as-of", metavar="DATE", help="The day that prices are asked for.")
@output_options
def command(format_: str, fields: str | None, output: str | None, **claim: Any) -> None:
    """Say whether a claim is possible, what it implies and what would be true; exit code 5 if it is impossible.

    \b
    gpucost audit --model 8b --tokens 100b --gpu a100-80gb --gpus 8 --days 8 --cost 6291
    gpucost audit --model 70b --gpu h100-sxm --gpus 8 --fits training
    gpucost audit --buy 800k --rent-monthly 20k --own-monthly 5k --gpus 80 --hours-per-month 10000
    """
    from gpucost.api.audit import audit
    from gpucost.api.saved import written

    result = audit(**claim)
    emit_text(written(result.payload, format_, fields, "checks"), output)
    if not result.possible:
        raise CheckFailedError("the claim is impossible.")
