"""`gpucost watch`: a running job's log against its estimate."""

import time
from typing import TYPE_CHECKING

import click

from gpucost.cli.options import Output, catalog_options, output_options

if TYPE_CHECKING:
    from gpucost.catalog import Catalog


@click.command(name="watch")
@click.argument("log", type=click.Path(exists=True, dir_okay=False), required=True)
@click.option("--estimate", type=click.Path(exists=True, dir_okay=False), required=True, help="A saved estimate.")
@click.option(
    "--rank", type=click.IntRange(1), default=1, show_default=True, help="Rank of the option that is running."
)
@click.option("--tokens-done", metavar="COUNT", help="Tokens trained so far, where the log does not count steps.")
@click.option("--every", type=click.FloatRange(1, 86400), metavar="SECONDS", help="Repeat at this interval.")
@output_options
@catalog_options
def command(
    out: Output, catalog: "Catalog", log: str, estimate: str, rank: int, tokens_done: str | None, every: float | None
) -> None:
    """Show the progress and cost of a job so far, and when and at what cost it will end, against its saved estimate.

    Reads logs of Megatron-LM, NeMo, torchtitan, MaxText, DeepSpeed, llm-foundry, nanoGPT, the Hugging Face Trainer
    and MLPerf. The range narrows as the job goes on.

    \b
    gpucost estimate --model 8b --tokens 100b --format json -o saved.json
    gpucost watch train.log --estimate saved.json
    """
    from gpucost.answers.saved import read_estimate, reading
    from gpucost.arguments.kinds import count
    from gpucost.bench.logs import lines_of, read_log
    from gpucost.bench.progress import forecast

    saved = read_estimate(estimate)
    tokens = None if tokens_done is None else count(1e17).read(tokens_done, "tokens_done")
    while True:
        progress = read_log(lines_of(log), log)
        with reading(estimate):
            rows = forecast(progress, saved, rank, tokens_done=tokens)
        out.rows(rows, "watch", catalog, title=f"{log} against {estimate}")
        if every is None:
            return
        time.sleep(every)
