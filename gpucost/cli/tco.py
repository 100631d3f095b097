"""`gpucost tco`: rent, reserve or buy."""

from typing import Any

import click

from gpucost.cli.options import emit_text, output_options


@click.command(name="tco")
@click.option("--gpu", help="Accelerator to own, such as h100-sxm.")
@click.option("--gpus", type=click.IntRange(min=1), help="How many.")
@click.option(
    "--utilisation", "--utilization", metavar="SHARE", help="Share of the owned hours that are allocated, such as 70%."
)
@click.option("--years", type=float, help="Length of the comparison.  [default: 4]")
@click.option("--months", type=int, help="The same in months.")
@click.option("--rent", metavar="USD", help="Rental price per GPU-hour.")
@click.option("--provider", help="Take the rental price of this provider from the catalog.")
@click.option("--region", help="The provider's region.")
@click.option("--option", help="Its purchase option: on_demand, reserved, spot …")
@click.option(
    "--rent-path", type=click.Choice(["flat", "decline", "observed_v", "curve"]), help="How the rental price moves."
)
@click.option("--rent-curve", type=click.Path(), help="CSV of rental prices: month, usd_per_gpu_hour.")
@click.option("--wacc", metavar="SHARE", help="Cost of capital a year.  [default: 10%]")
@click.option("--tax", "tax_rate", metavar="SHARE", help="Income tax; cash flows are then after tax.")
@click.option("--financing", type=click.Choice(["cash", "loan", "lease"]), help="How the purchase is paid.")
@click.option("--lead-time", metavar="WEEKS", help="Wait for delivery, such as 36w; bridged by rent.")
@click.option(
    "--electricity",
    "electricity_region",
    metavar="REGION",
    help="Tariff of a region in the energy table, such as us_texas.",
)
@click.option("--grid", "grid_region", metavar="REGION", help="Carbon of a grid in the energy table, such as france.")
@click.option("--model", help="Model of the workload that sets utilisation and cost per token.")
@click.option("--tokens", help="Tokens of one training run.")
@click.option("--runs-per-year", type=float, help="Training runs a year.")
@click.option("--tokens-per-month", help="Tokens to serve a month, prompt and reply together.")
@click.option("--prompt-tokens", type=int, help="Prompt of a request, for a serving load.")
@click.option("--output-tokens", type=int, help="Reply of a request, for a serving load.")
@click.option(
    "--api", "api_price", metavar="USD", help="Price of a hosted API per million tokens, for the same tokens."
)
@click.option("--currency", help="Show the result in this currency as well (with usd_per_unit in the plan or --set).")
@click.option("--plan", type=click.Path(), help="TOML file with any input by name.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set any input; may be repeated.")
@click.option("--draws", type=click.IntRange(min=0), help="Monte Carlo draws; 0 leaves it out.  [default: 1000]")
@click.option("--seed", type=int, help="Seed of the draws.")
@click.option("--as-of", metavar="DATE", help="Prices as they held on this day.")
@click.option("--print-plan", is_flag=True, help="Print the effective inputs as a plan file.")
@click.option("--explain", is_flag=True, help="Show every formula with its numbers, and the inputs with their sources.")
@output_options
def command(
    format_: str, fields: str | None, output: str | None, print_plan: bool, explain: bool, **wanted: Any
) -> None:
    """Own a cluster or rent the same productive hours: cash flows, NPV, break-even, risk.

    \b
    gpucost tco --gpu h100-sxm --gpus 64 --utilisation 70% --years 4 --rent 2.35
    gpucost tco --gpu h100-sxm --gpus 64 --provider lambda --lead-time 36w --set pue_ratio=1.2
    gpucost tco --gpu h100-sxm --gpus 64 --print-plan -o plan.toml
    """
    from gpucost.api.tco import tco

    result = tco(**_asked(wanted))
    emit_text(_written(result, format_, fields, print_plan, explain), output)
    for warning in result.payload["warnings"] if print_plan or format_ == "csv" else ():  # the others carry them
        click.echo(f"gpucost: {warning}", err=True)


_RENAMED = {
    "lead_time": "lead_time_weeks",
    "tax_rate": "tax_rate_fraction",
    "api_price": "api_usd_per_mtok",
}


def _asked(wanted: dict[str, Any]) -> dict[str, Any]:
    """Turn flags into the library's arguments."""
    named = {_RENAMED.get(name, name): value for name, value in wanted.items() if name != "settings"}
    return {**{name: value for name, value in named.items() if value is not None}, **read_settings(wanted["settings"])}


def read_settings(settings: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=VALUE texts."""
    from gpucost.errors import UsageError

    found = {}
    for text in settings:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"--set {text!r}: write NAME=VALUE, such as --set pue_ratio=1.2.")
        found[name.strip()] = value.strip()
    return found


def _written(result: Any, format_: str, fields: str | None, print_plan: bool, explain: bool) -> str:
    if print_plan:
        return str(result.to_plan())
    if explain and format_ == "table":
        return str(result.explain())
    if explain and format_ == "md":
        from gpucost.render.markdown import write
        from gpucost.render.tco_explain import document

        return write(document(result.payload))
    from gpucost.api.saved import written

    return written(result.payload, format_, fields, "cash_flows")
