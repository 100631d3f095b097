"""`gpucost fit`: does a model fit a GPU, on how many, and what is the smallest change that helps."""

from typing import Any

import click

from gpucost.cli.options import emit_text, format_option
from gpucost.cli.training_options import read_count

METHODS = click.Choice(("full", "lora", "qlora"))
RECOMPUTES = click.Choice(("auto", "none", "selective", "full"))
OFFLOADS = click.Choice(("none", "states", "all"))
SOFTWARE = "fused (default), compiled, eager, autocast, library (adapters' default), library_autocast."

OPTIONS = (
    click.option("--model", required=True, metavar="NAME", help="Preset, alias, size such as 11b, or a config.json."),
    click.option("--gpu", metavar="NAME", help="One accelerator, such as h100-sxm; with --serving all of them else."),
    click.option("--gpus", callback=read_count, metavar="N", help="How many; else the fewest that fit."),
    click.option("--system", metavar="NAME", help="Node and network; else the usual one of the accelerator."),
    click.option("--method", type=METHODS, help="What is trained (default full)."),
    click.option("--optimizer", metavar="NAME", help="adamw (default), adamw-bf16, adamw-8bit, adafactor, sgd, muon …"),
    click.option(
        "--sequence", callback=read_count, metavar="TOKENS", help="Sequence; else the model's, at most 4,096."
    ),
    click.option(
        "--micro-batch", callback=read_count, metavar="N", help="Sequences per GPU and micro-step (default 1)."
    ),
    click.option("--recompute", type=RECOMPUTES, help="Activations to recompute (default auto: the least that fits)."),
    click.option(
        "--loss-chunk", callback=read_count, metavar="TOKENS", help="Tokens whose logits exist at a time; else all."
    ),
    click.option("--offload", type=OFFLOADS, help="What host memory takes (default none)."),
    click.option("--lora-rank", callback=read_count, metavar="N", help="Rank of the adapters (default 16)."),
    click.option("--tensor", callback=read_count, metavar="N", help="Tensor-parallel degree; else searched."),
    click.option("--pipeline", callback=read_count, metavar="N", help="Pipeline stages; else searched."),
    click.option(
        "--context", callback=read_count, metavar="N", help="Context-parallel degree; else searched for long sequences."
    ),
    click.option("--expert", callback=read_count, metavar="N", help="Expert-parallel degree; else searched."),
    click.option("--sharding", type=click.IntRange(0, 3), help="0 none, 1 states, 2 gradients too, 3 weights too."),
    click.option("--software", metavar="STYLE", help=SOFTWARE),
    click.option("--flash/--no-flash", default=None, help="Fused attention (default), or the scores in memory."),
    click.option("--as-of", metavar="DATE", help="The day that the catalog is seen from."),
)


SERVING_OPTIONS = (
    click.option("--serving", is_flag=True, help="Serve the model instead of training it."),
    click.option("--prompt", metavar="TOKENS", help="Serving: mean prompt, or a length distribution."),
    click.option("--output-tokens", metavar="TOKENS", help="Serving: mean output, or a length distribution."),
    click.option("--ttft", metavar="MS", help="Serving: longest time to the first token without a queue."),
    click.option("--tpot", metavar="MS", help="Serving: longest time per output token."),
    click.option("--precision", metavar="NAME", help="Serving: precision of the weights."),
    click.option("--cache", metavar="NAME", help="Serving: precision of the key-value cache."),
    click.option("--engine", metavar="NAME", help="Serving: vllm, sglang, trtllm, llama.cpp …"),
)
COMMON_NAMES = ("model", "gpu", "as_of")
SERVING_NAMES = ("prompt", "output_tokens", "ttft", "tpot", "precision", "cache", "engine")


def fit_options(function: Any) -> Any:
    """Add the options that describe what is to fit."""
    for option in reversed((*OPTIONS, *SERVING_OPTIONS)):
        function = option(function)
    return function


@click.command(name="fit")
@fit_options
@click.option("--explain", is_flag=True, help="Show each term with its formula, its numbers and its reference.")
@format_option
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="Write to FILE (also .html) instead of the terminal."
)
@click.pass_context
def command(ctx: click.Context, /, explain: bool, format_: str, output: str | None, **wanted: Any) -> None:
    """Memory of training on the fullest GPU, by component: does it fit, on how many, and what would help.

    Without --gpus the fewest GPUs that fit are found. Every change shown was tried, the gentlest that works first.
    The exit code is 6 where it does not fit.

    \b
    gpucost fit --model llama-3-70b --gpu h100-sxm
    gpucost fit --model 8b --gpu rtx-4090 --gpus 1 --method qlora --sequence 2048 --explain
    gpucost fit --model 70b --serving --prompt 2k --output-tokens 256 --tpot 50ms
    """
    from gpucost.api.fit import fit
    from gpucost.errors import UsageError

    given = {name: value for name, value in wanted.items() if value is not None}
    serving = given.pop("serving")
    foreign = sorted(name for name in given if (name in SERVING_NAMES) != serving and name not in COMMON_NAMES)
    if foreign:
        flags = ", ".join("--" + name.replace("_", "-") for name in foreign)
        raise UsageError(f"{flags}: only {'without' if serving else 'with'} --serving.")
    if "output_tokens" in given:
        given["output"] = given.pop("output_tokens")
    result = fit(given.pop("model"), given.pop("gpu", None), given.pop("gpus", None), serving=serving, **given)
    show(result, format_, output, explain)
    if not result.fits:
        ctx.exit(6)


def show(result: Any, format_: str, output: str | None, explain: bool) -> None:
    """Write the result in a format; a file that ends in .html becomes a page."""
    if output and output.endswith((".html", ".htm")):
        result.to_html(output)
    elif format_ == "json":
        emit_text(result.to_json(), output)
    elif format_ == "csv":
        from gpucost.render.rows import render_rows

        rows = result.payload[result.rows_key]
        emit_text(render_rows(rows, columns=list(rows[0]), format_="csv", fields=None, envelope={}, title=""), output)
    elif format_ == "md":
        emit_text(result.to_markdown(), output)
    else:
        from gpucost.render.text import write

        emit_text(write(result.document(), all_sections=explain), output)
