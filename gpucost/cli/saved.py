"""Commands over saved answers: `gpucost rerun`, `report`, `export` and `watch`."""

import json
import time
from typing import TYPE_CHECKING, Annotated, cast

import click

from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import FILE, FLAG, named
from gpucost.arguments.signature import PLACE
from gpucost.cli.diff import command as diff
from gpucost.cli.help import GroupedCommand, GroupedParent
from gpucost.cli.messages import say, working
from gpucost.cli.options import Output, catalog_options, output_options, signature_options

if TYPE_CHECKING:
    from gpucost.catalog import Catalog


# --- Rerun: reproduce a saved answer from the facts it embeds.


@click.group(name="saved", cls=GroupedParent)
def saved() -> None:
    """Work with saved answers (--format json -o FILE): compute one again, compare two, write FOCUS charges."""


@saved.command(name="rerun")
@signature_options
@output_options
def rerun(
    out: Output,
    path: Annotated[str, FILE, PLACE],
    explain: Annotated[
        bool, FLAG, "Say whether the figures are unchanged, and if not why, instead of writing the answer."
    ] = False,
    accept_changed: v.AcceptChanged = False,
) -> None:
    """Compute a saved estimate again from the facts it embeds; --format json gives equal bytes in the same version.

    \b
    gpucost estimate --model 8b --tokens 100b --format json -o run.json
    gpucost saved rerun run.json --format json | cmp - run.json
    gpucost saved rerun run.json --explain
    """
    from gpucost.answers.saved import read_estimate, reading, with_change_warnings
    from gpucost.answers.training import Estimate
    from gpucost.ask.estimate import rerun
    from gpucost.ask.result import Result
    from gpucost.catalog.calibrations import training_calibration
    from gpucost.catalog.shared import shared_catalog
    from gpucost.render.json import dumps
    from gpucost.training.rerun import verdict

    saved = read_estimate(path, accept_changed)
    # today's: the facts are in the answer, the efficiencies may have been fitted since
    calibration = training_calibration(shared_catalog())
    with reading(path):
        fresh = json.loads(dumps(rerun(saved, calibration)))  # with the digits that JSON carries
        fresh = cast(Estimate, with_change_warnings(fresh, saved))
        verdict_row = verdict(saved, fresh)
        say(f"{verdict_row['lead']}")
        out.result(Result(with_change_warnings(verdict_row, saved) if explain else fresh))


# --- Report: a workbook, page or text from a scenario file or a saved answer.


@click.command(name="report", cls=GroupedCommand)
@signature_options
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    help="File to write: .xlsx, .html, .pdf, .md, .json or .txt.",
)
def report(
    output: str | None,
    source: Annotated[str, named("SCENARIO.toml|ANSWER.json"), PLACE],
    status: v.Status | None = None,
    by: v.StampedBy | None = None,
    date: v.StampedOn | None = None,
    share_safe: v.ShareSafe = False,
    accept_changed: v.AcceptChanged = False,
) -> None:
    """Answer a scenario and write a report in the format of the output's suffix.

    A saved answer (--format json of any command) is rendered without computing it again.

    \b
    gpucost init scenario.toml
    gpucost report scenario.toml -o report.xlsx
    gpucost estimate --model 8b --tokens 100b --format json -o run.json
    gpucost report run.json -o run.html
    gpucost report run.json --status approved --by "Finance" -o run.xlsx
    """
    from gpucost.library.report import check_suffix, report

    if output is not None:  # before anything is asked: a wrong suffix should not cost a minute
        check_suffix(output)
    with working("answering the scenario"):
        result = report(source, status=status, by=by, date=date, share_safe=share_safe, accept_changed=accept_changed)
    # a saved answer shows its warnings itself; those of a scenario are of all parts
    for warning in result.payload["warnings"] if result.payload["kind"] == "scenario" else ():
        say(warning)
    if output is None:
        click.echo(result.to_text().rstrip("\n"))
        return
    # a workbook of many formulas takes seconds
    with working(f"writing {output}"):
        result.write(output)
    say(f"wrote {output}")


# --- Export: a saved answer as the rows of an invoice.


@saved.command(name="export")
@signature_options
@click.option(
    "-o",
    "--output",
    "path",
    required=True,
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write to FILE: .csv or .parquet.",
)
def export(
    path: str,
    saved: Annotated[str, FILE, PLACE],
    focus: Annotated[bool, FLAG, "Write FOCUS rows, the format of invoices."] = False,
    start: v.FirstDay | None = None,
    rank: v.Rank = 1,
    side: v.Side | None = None,
    tag: v.Tags | None = None,
) -> None:
    """Write a saved estimate, serving bill, tco or mix as FOCUS 1.x charges, by day or month.

    \b
    gpucost estimate --model 8b --tokens 100b --format json -o saved.json
    gpucost saved export --focus saved.json -o plan.csv --start 2026-11-01
    gpucost reconcile plan.csv --estimate saved.json
    """
    from gpucost.ask.invoices import export

    count = export(saved, path, start=start, rank=rank, side=side, tag=tag)
    say(f"{path}: {count:,} charges.")


# --- Watch: a running job's log against its estimate.


@click.command(name="watch", cls=GroupedCommand)
@click.argument("log", type=click.Path(exists=True, dir_okay=False), required=True)
@click.option(
    "--estimate", type=click.Path(exists=True, dir_okay=False), help="Saved estimate. Required with a training log."
)
@click.option(
    "--rank", type=click.IntRange(1), default=1, show_default=True, help="Rank of the option that is running."
)
@click.option("--tokens-done", metavar="COUNT", help="Tokens trained so far, where the log does not count steps.")
@click.option(
    "--pattern",
    "patterns",
    multiple=True,
    metavar="NAME=PATTERN",
    help="How a log of your own says a number: a regular expression with one group; repeat it for others.",
)
@click.option("--every", type=click.FloatRange(1, 86400), metavar="SECONDS", help="Repeat at this interval.")
@output_options
@catalog_options
def watch(
    out: Output,
    catalog: "Catalog",
    log: str,
    estimate: str | None,
    rank: int,
    tokens_done: str | None,
    patterns: tuple[str, ...],
    every: float | None,
) -> None:
    """Show the progress and cost of a job so far, and when and at what cost it will end, against its saved estimate.

    What `nvidia-smi --query-gpu=timestamp,index,utilization.gpu,power.draw,memory.used --format=csv -l 10` writes is
    read, too: GPU utilisation, power and memory, and with --estimate what the hours cost.

    Reads logs of Megatron-LM, NeMo, torchtitan, MaxText, DeepSpeed, llm-foundry, nanoGPT, nanochat, modded-nanogpt,
    llm.c, nanotron, torchtune, OLMo-core, LitGPT, DLLogger, the Hugging Face Trainer, TRL and MLPerf; of any other
    with --pattern. The range narrows as the job goes on.

    \b
    gpucost estimate --model 8b --tokens 100b --format json -o saved.json
    gpucost watch train.log --estimate saved.json
    gpucost watch train.log --estimate saved.json \\
      --pattern 'step=it (\\d+)' --pattern 'step_ms=took ([0-9.]+) ms'
    gpucost watch smi.csv
    """
    from gpucost.answers.saved import read_estimate, reading
    from gpucost.arguments.kinds import count
    from gpucost.bench.logs import lines_of, own_format, read_log
    from gpucost.bench.progress import forecast
    from gpucost.bench.smi import is_smi, summed

    # a log of nvidia-smi has figures without one, that of a job needs something to be held against
    saved = None if estimate is None else read_estimate(estimate)
    if saved is None and not is_smi(log):
        raise click.UsageError("--estimate is missing: a log of training is held against a saved estimate.")
    tokens = None if tokens_done is None else count(1e17).read(tokens_done, "tokens_done")
    log_format = own_format(patterns)
    # read again each time: the job goes on writing
    while True:
        if is_smi(log):
            rows = summed(log, saved, rank)
        else:
            assert saved is not None
            assert estimate is not None
            progress = read_log(lines_of(log), log, log_format)
            with reading(estimate):
                rows = forecast(progress, saved, rank, tokens_done=tokens)
        out.rows(rows, "watch", catalog, title=f"{log} against {estimate}" if estimate else log)
        if every is None:
            return
        time.sleep(every)


saved.add_command(diff)
