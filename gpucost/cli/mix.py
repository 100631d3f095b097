"""`gpucost mix`: the cheapest mix of owned, reserved, on-demand and spot capacity for a demand curve."""

from typing import Any

import click

from gpucost.cli.options import emit_text, output_options


@click.command(name="mix")
@click.argument("demand", required=False, type=click.Path())
@click.option("--constant", type=float, metavar="GPUS", help="Instead of a file: this many GPUs in every month.")
@click.option("--growth", metavar="SHARE", help="Yearly growth of the constant, such as 20%.")
@click.option("--months", type=click.IntRange(1, 120), default=36, show_default=True, help="Length, with --constant.")
@click.option("--gpu", help="Accelerator, such as h100-sxm.")
@click.option("--rent", metavar="USD", help="On-demand price per GPU-hour.")
@click.option("--provider", help="Take prices and terms of this provider from the catalog.")
@click.option("--budget", "budget_usd", type=float, metavar="USD", help="Most capital to spend on owned servers.")
@click.option("--max-owned", "max_owned_gpus", type=float, metavar="GPUS", help="Most GPUs to own.")
@click.option("--max-on-demand", type=float, metavar="GPUS", help="Most GPUs that on demand can give.")
@click.option("--spot-share", metavar="SHARE", help="Share of each month's demand that spot may carry.  [default: 30%]")
@click.option("--no-own", "own", flag_value=False, default=None, help="Rent only.")
@click.option("--life-months", type=click.IntRange(min=1), help="Life of owned servers.  [default: 60]")
@click.option("--lead-time", "lead_time_weeks", metavar="WEEKS", help="From order to use, such as 36w.")
@click.option("--wacc", metavar="SHARE", help="Cost of capital a year.  [default: 10%]")
@click.option("--plan", type=click.Path(), help="TOML file with any input by name, and [[supply]] entries.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set any input; may be repeated.")
@click.option("--as-of", metavar="DATE", help="Prices as they held on this day.")
@output_options
def command(format_: str, fields: str | None, output: str | None, settings: tuple[str, ...], **wanted: Any) -> None:
    """Find the cheapest combination of capacity for a demand by month (a CSV with the columns month and gpus).

    \b
    gpucost mix demand.csv --gpu h100-sxm --lead-time 36w
    gpucost mix --constant 64 --growth 50% --months 36 --gpu h100-sxm --budget 2000000
    """
    from gpucost.api.mix import mix
    from gpucost.api.saved import written
    from gpucost.cli.tco import read_settings

    asked: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    result = mix(**asked, **dict[str, Any](read_settings(settings)))
    emit_text(written(result.payload, format_, fields, "months"), output)
    for warning in result.payload["warnings"] if format_ == "csv" else ():
        click.echo(f"gpucost: {warning}", err=True)
