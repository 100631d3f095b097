"""`gpucost throughput`: step time, tokens per second and MFU of a layout, or the best layouts."""

from typing import Any

import click

from gpucost.cli.options import emit_text, format_option


def layout_options(function: Any) -> Any:
    """Add the options that describe a training job and its layout."""
    from gpucost.cli.training_options import OPTIONS

    for option in reversed(OPTIONS):
        function = option(function)
    return function


@click.command(name="throughput")
@layout_options
@click.option("--as-of", metavar="DATE", help="The day that the catalog is seen from.")
@format_option
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="Write to FILE (also .html) instead of the terminal."
)
def command(as_of: str | None, format_: str, output: str | None, **wanted: Any) -> None:
    """Step time of training, by part, with what bounds each part, and a range.

    A layout is taken as given; degrees that are left out are one, and data parallelism takes the rest. Without any
    degree the layouts in common use are timed and the fastest is shown, with those behind it.

    \b
    gpucost throughput --model llama-3-70b --gpu h100-sxm --gpus 512
    gpucost throughput --model llama-3-8b --gpu h200-sxm --gpus 8 --sharding 3 --micro-batch 2 --recompute none
    """
    from gpucost.api.throughput import ThroughputResult, throughput

    given = {name: value for name, value in wanted.items() if value is not None}
    result = throughput(given.pop("model"), given.pop("gpu"), given.pop("gpus"), as_of=as_of, **given)
    assert isinstance(result, ThroughputResult)
    show(result, format_, output)


def show(result: Any, format_: str, output: str | None) -> None:
    """Write a result in a format; a file that ends in .html becomes a page."""
    if output and output.endswith((".html", ".htm")):
        result.to_html(output)
    elif format_ == "json":
        emit_text(result.to_json(), output)
    elif format_ == "csv":
        from gpucost.render.rows import render_rows

        rows = result.payload[result.rows_key]
        emit_text(render_rows(rows, columns=list(rows[0]), format_="csv", fields=None, envelope={}, title=""), output)
    else:
        emit_text(result.to_text() if format_ == "table" else result.to_markdown(), output)
