"""`gpucost inference`: what serving a model costs per million tokens, and self-host against API."""

from typing import Any

import click

from gpucost.cli.options import catalog_options, emit_text, format_option, price_filters


@click.command(name="inference")
@click.option("--model", required=True, help="Preset, size such as 8b, or path to a config.json.")
@click.option("--prompt", metavar="TOKENS", help="Mean prompt, or a length distribution.  [default: 1024]")
@click.option(
    "--output", metavar="TOKENS", help="Mean output, or a length distribution; files go to -o.  [default: 256]"
)
@click.option(
    "--lengths", "distribution", metavar="NAME|FILE", help="Named length distribution, or a CSV of prompt,output."
)
@click.option("--requests-per-s", metavar="N", help="Mean load in requests per second.")
@click.option("--tokens-per-month", metavar="N", help="Load in tokens, prompt and output together.")
@click.option("--ttft", metavar="MS", help="Longest time to the first token without a queue: 300ms, 1s.")
@click.option("--tpot", metavar="MS", help="Longest time per output token: 50ms.")
@click.option(
    "--precision",
    default="auto",
    show_default=True,
    help="Weights: auto (as published), bf16, fp8, int8, int4, nvfp4, mxfp4, gguf.",
)
@click.option("--cache", default="auto", show_default=True, help="Key-value cache: auto, bf16, fp8, int8, int4.")
@click.option("--engine", default="vllm", show_default=True, help="vllm, sglang, trtllm, llama.cpp …")
@click.option(
    "--utilisation",
    metavar="SHARE",
    help="Load at the busiest hour against capacity.  [default: 70%; 100% at saturation]",
)
@click.option(
    "--profile",
    default="flat",
    show_default=True,
    help="Load over the day: flat, office, consumer, or a file of 24 or 168 numbers.",
)
@click.option("--autoscale", is_flag=True, help="Switch replicas by the hour.")
@click.option("--floor", default=1, show_default=True, help="Replicas that stay on when scaling.")
@click.option("--replicas", type=int, help="Run exactly this many serving replicas.")
@click.option("--redundancy", default=0, show_default=True, help="Replicas beside those that serve.")
@click.option("--prefix-hit", default="0", show_default=True, help="Share of prompt tokens found in the prefix cache.")
@click.option("--draft-tokens", default=0, show_default=True, help="Tokens proposed per step by speculation.")
@click.option("--acceptance", default="0", show_default=True, help="Probability that a proposed token is kept.")
@click.option("--offload", default="0", show_default=True, help="Share of the weights left in host memory.")
@click.option(
    "--optimize",
    type=click.Choice(("cost", "latency", "carbon")),
    default="cost",
    show_default=True,
    help="What to rank by.",
)
@click.option("--max-cost", metavar="USD", help="Budget of a month; exit code 3 if no offer keeps it.")
@click.option("--top", default=10, show_default=True, help="Options to show; 0 shows all.")
@click.option("--strict-prices", is_flag=True, help="Leave out prices that are old for their kind.")
@click.option("--explain", is_flag=True, help="Show how the first option's figures come about.")
@click.option("--lines", is_flag=True, help="CSV: one row per line of each bill.")
@price_filters
@catalog_options
@format_option
@click.option("--fields", help="Comma-separated columns to show, in this order.")
@click.option(
    "-o", "--output-file", "file", type=click.Path(dir_okay=False), help="Write to FILE instead of the terminal."
)
def command(explain: bool, lines: bool, format_: str, fields: str | None, file: str | None, **wanted: Any) -> None:
    """Rank real offers by the cost of a million tokens, with replicas, latency and range; beside hosted prices.

    \b
    gpucost inference --model llama-3.1-70b --precision fp8 --prompt 2000 --output 300
    gpucost inference --model 8b --requests-per-s 20 --profile office --autoscale --tpot 50ms
    gpucost inference --model gpt-oss-120b --lengths azure-conversation --tokens-per-month 20b --gpu h100
    """
    from gpucost.api.inference import inference

    result = inference(**wanted)
    emit_text(_written(result, format_, fields, explain, lines), file)
    for warning in result.payload["warnings"]:
        click.echo(f"gpucost: {warning}", err=True)


def _written(result: Any, format_: str, fields: str | None, explain: bool, lines: bool) -> str:
    """Write the answer in the format asked for."""
    if explain and format_ in ("table", "md"):
        from gpucost.api.inference import explanation
        from gpucost.render.markdown import write

        return str(result.explain()) if format_ == "table" else write(explanation(result.payload))
    if format_ == "json":
        return str(result.to_json())
    if format_ == "csv":
        from gpucost.render.table_csv import rows_csv

        return rows_csv(result.payload, lines=lines)
    if fields:
        from gpucost.render.rows import render_rows

        keys = [name.strip() for name in fields.split(",")]
        return render_rows(result.options, columns=keys, format_=format_, fields=fields, envelope={})
    return str(result.to_markdown() if format_ == "md" else result.to_text())
