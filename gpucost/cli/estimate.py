"""`gpucost estimate`: what a training run costs, on every offer, with a range."""

from typing import Any

import click

from gpucost.cli.options import catalog_options, emit_text, output_options, price_filters

_GOALS = ("cost", "time", "pareto", "carbon")


@click.command(name="estimate")
@click.option("--model", required=True, help="Preset, size such as 8b, or path to a config.json.")
@click.option("--tokens", required=True, help="Tokens of one epoch, such as 100b or 15t.")
@click.option("--epochs", default="1", show_default=True, help="Passes over the tokens.")
@click.option("--gpus", help="Take exactly this many accelerators.")
@price_filters
@click.option("--deadline", help="Longest run: a duration, a day, or none.  [default: 30d]")
@click.option("--max-cost", metavar="USD", help="Budget; exit code 3 if no option keeps it.")
@click.option("--sequence", metavar="TOKENS", help="Tokens per sequence.")
@click.option("--global-batch", metavar="N", help="Sequences per step.")
@click.option("--precision", default="bf16", show_default=True, help="bf16, fp16, fp8 …")
@click.option("--method", default="full", show_default=True, help="full, lora or qlora.")
@click.option("--rank", "lora_rank", default=16, show_default=True, help="Rank of the adapters.")
@click.option(
    "--targets",
    "lora_targets",
    default="all",
    show_default=True,
    help="Matrices with adapters: all, attention or feed_forward.",
)
@click.option(
    "--software", default="typical", show_default=True, help="Training stack: typical, vendor, sharded, deepspeed …"
)
@click.option("--optimize", type=click.Choice(_GOALS), default="cost", show_default=True, help="What to rank by.")
@click.option("--top", default=10, show_default=True, help="Options to show; 0 shows all.")
@click.option("--all-regions", is_flag=True, help="A row for every region, not for the cheapest only.")
@click.option("--strict-prices", is_flag=True, help="Leave out prices that are old for their kind.")
@click.option(
    "--commitment", default="full", show_default=True, help="full: a run pays for its whole term; used: for its hours."
)
@click.option(
    "--overhead",
    "--evaluation",
    "evaluation",
    default="20%",
    show_default=True,
    help="Hours beside the steps (evaluations, stalls, slower phases), as a share of them.",
)
@click.option("--experiments", default="0", show_default=True, help="Trial runs before the run, as a share of it.")
@click.option("--pool", metavar="FILE", help="TOML with your own accelerators; they enter as offers.")
@click.option("--pool-cost", "pool_view", default="both", show_default=True, help="loaded, incremental or both.")
@click.option("--explain", is_flag=True, help="Show how the first option's figures come about.")
@click.option("--lines", is_flag=True, help="CSV: one row per line of each bill.")
@catalog_options
@output_options
def command(explain: bool, lines: bool, format_: str, fields: str | None, output: str | None, **wanted: Any) -> None:
    """Rank real offers by the cost of a whole training run, with days, accelerators, layout, range and price age.

    \b
    gpucost estimate --model 8b --tokens 100b
    gpucost estimate --model llama-3-70b --tokens 2t --gpu h100 --option on_demand --deadline 60d
    gpucost estimate --model 8b --tokens 100b --gpu a100-80gb --gpus 8 --explain
    """
    from gpucost.api.estimate import estimate

    result = estimate(**wanted, with_facts=format_ == "json")
    emit_text(_written(result, format_, fields, explain, lines), output)
    for warning in result.payload["warnings"]:
        click.echo(f"gpucost: {warning}", err=True)


def _written(result: Any, format_: str, fields: str | None, explain: bool, lines: bool) -> str:
    """Write the answer in the format asked for."""
    if explain and format_ in ("table", "md"):
        from gpucost.render.explain import explanation
        from gpucost.render.markdown import write as write_markdown

        return result.explain() if format_ == "table" else write_markdown(explanation(result.payload, 1))
    if format_ == "json":
        return str(result.to_json())
    if format_ == "csv":
        from gpucost.render.table_csv import rows_csv

        return rows_csv(result.payload, lines=lines)
    if fields:
        from gpucost.render.rows import render_rows

        keys = [name.strip() for name in fields.split(",")]
        return render_rows(result.options, columns=keys, format_=format_, fields=fields, envelope={})
    return result.to_markdown() if format_ == "md" else str(result.to_text())
