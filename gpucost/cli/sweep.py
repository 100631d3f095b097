"""`gpucost sweep`: one question over a grid of arguments, on this machine or a cluster."""

import os
from typing import Any

import click

from gpucost.arguments import giving_way
from gpucost.ask import QUESTIONS
from gpucost.cli.help import GroupedCommand
from gpucost.cli.messages import working
from gpucost.cli.options import Output, is_setting, option_of, output_parameters
from gpucost.cli.question import ways_of_writing
from gpucost.sweeping.grid import NOT_SWEPT, QUESTIONS_SWEPT

_HELP = """Ask one question of every combination of arguments: a row for each case, with its first option;
within a service level a row for each accelerator.

An argument takes a list (h100,b200), a range (8:512:x2 doubles, 10b:50b:10b steps) or one value; alternatives within
one case are joined with | (h100|b200). A grid file or a table of cases does the same for many.

\b
gpucost sweep --model 8b,70b --gpu h100,b200 --gpus 8:512:x2 --tokens 100b
gpucost sweep --grid grid.toml --workers 2 -o sweep.parquet
gpucost sweep --question inference --model 8b --gpu h100,l40s --tpot 20ms,50ms
gpucost sweep --cases cases.parquet \\
  --scheduler tcp://10.0.0.5:8786 --into chunks/
"""


_BEST = "Show the first N cases of each kind of work instead of the trade-offs, where N is not 1."
_JOINED = (".parquet", ".csv")  # files that hold every case, however many


def _parameters() -> list[click.Parameter]:
    # which cases there are, and where they are worked out
    parameters: list[click.Parameter] = [
        click.Option(
            ["--question"],
            type=click.Choice(QUESTIONS_SWEPT),
            default="estimate",
            show_default=True,
            help="Question to ask for each case.",
        ),
        click.Option(["--grid"], metavar="FILE", help="TOML file of arguments, each a value, a list or a range."),
        click.Option(["--cases"], metavar="FILE", help="Parquet or CSV: a column per argument, a row per case."),
        click.Option(
            ["--workers"], type=click.IntRange(1, 1024), default=1, show_default=True, help="Number of local processes."
        ),
        click.Option(["--scheduler"], metavar="ADDRESS", help="A running Dask cluster, such as tcp://10.0.0.5:8786."),
        click.Option(["--into"], metavar="FOLDER", help="Keep the chunks here; a stopped sweep resumes from them."),
        click.Option(["--best"], type=click.IntRange(1, 1000), default=1, metavar="N", help=_BEST),
        click.Option(
            ["--shared"], is_flag=True, help="All workers of the cluster reach the folder: each writes there."
        ),
    ]
    # then the arguments of every question that is swept, each once; none is required, for it may stand in a file
    names = {str(parameter.name) for parameter in parameters}
    for question in QUESTIONS_SWEPT:
        for argument in QUESTIONS[question].arguments:
            if argument.name not in names and argument.name not in NOT_SWEPT and not argument.library_only:
                names.add(argument.name)
                parameters.append(option_of(argument._replace(required=False, default=None, usual="")))
    parameters += ways_of_writing("sweep")
    return parameters + output_parameters(names)


def _ask(
    format_: str | None, fields: str | None, output_file: str | None, details: bool, quiet: bool, **arguments: Any
) -> None:
    import shutil

    from gpucost.library.sweep import sweep
    from gpucost.sweeping.chunks import join

    out = Output(format_, fields, output_file, (".parquet",))
    is_joined = out.ending in _JOINED and output_file is not None
    if is_joined and ((fields and not is_setting("fields")) or out.chosen not in (None, out.ending[1:])):
        raise click.UsageError(f"{output_file}: every case with all its columns. Leave --fields and --format out.")
    # chunks of one file lie beside it, so that a stopped sweep goes on; they go once the file is whole
    into = arguments.pop("into") or (f"{output_file}.chunks" if is_joined else None)
    is_new_folder = is_joined and not os.path.exists(str(into))
    values = {name: value for name, value in arguments.items() if value is not None and value != ()}
    if not values.get("shared"):
        values.pop("shared", None)
    with working("cases") as advance:
        result = giving_way(lambda chosen: sweep(**{**chosen, "into": into, "told": advance}), values, is_setting)
    if not is_joined:
        out.result(result, details=details, quiet=quiet)
        return
    join(list(result.files), str(output_file), out.ending)
    if is_new_folder:
        shutil.rmtree(str(into), ignore_errors=True)
    result = type(result)({**result.payload, "file": output_file}, files=result.files)
    Output(None, None, None).text(result.headline)  # the file holds the rows: the terminal has one line of them


command = GroupedCommand("sweep", params=_parameters(), callback=_ask, help=_HELP)
