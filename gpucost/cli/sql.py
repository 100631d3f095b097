"""`gpucost sql`: ask the catalog in SQL, read-only."""

import sys
from typing import TYPE_CHECKING, Annotated

import click

from gpucost.arguments.kinds import FILE, named
from gpucost.arguments.signature import PLACE
from gpucost.arguments.vocabulary import RelationArguments
from gpucost.cli.help import GroupedCommand
from gpucost.cli.options import Output, output_options, signature_options

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

_PLAN = ["explain_key", "explain_value"]  # the answer to EXPLAIN is a drawing, not a table


@click.command(name="sql", cls=GroupedCommand)
@signature_options
@output_options
def command(
    catalog: "Catalog",
    out: Output,
    relations: RelationArguments,
    query: Annotated[str | None, named("QUERY"), PLACE] = None,
    file: Annotated[str | None, FILE, "Read the query from FILE."] = None,
    question: Annotated[
        str | None, named("NAME", "questions"), "Ask a ready-made question; `--question list` names them."
    ] = None,
    time_limit: Annotated[
        str | None, named("SECONDS"), "Seconds after which the query is stopped; 15 by default, at most 3600."
    ] = None,
) -> None:
    """One SELECT in DuckDB's SQL over the catalog: no writing, no files, no network. `-` reads the query from stdin.

    --model fills relations beside the catalog's tables: `speeds` (training: accelerator × size) and, with --tokens,
    `estimates`; `deployments` (replicas of serving) and `served`. docs/sql.md has ten questions that only a join
    answers.

    \b
    gpucost sql --question cheapest-on-demand
    gpucost sql "show tables"
    gpucost sql "describe offers"
    gpucost sql "select provider, min(usd_per_gpu_hour) from prices
      where gpu = 'l40s' group by all order by 2"
    gpucost sql "select * from prices_on('2025-09-01', '2025-12-31')
      where provider = 'aws'"
    gpucost sql "select * from facts where entity = 'h100-sxm5-80gb'"
    gpucost sql --model 8b --tokens 100b "select rank, provider, gpu, gpus,
      cost_usd, days from estimates where rank is not null order by rank limit 10"
    gpucost sql --model 8b --tokens 100b "select provider, gpu, gpus, days,
      usd_per_gpu_hour * gpu_hours as usd from speeds join prices
      using (gpu, gpus) where ranks and not stale order by usd limit 10"
    """
    from gpucost.ask.catalog import filled
    from gpucost.catalog.loader import ready_questions
    from gpucost.catalog.names import near
    from gpucost.errors import UnknownNameError
    from gpucost.gate import read_text
    from gpucost.limits import limit
    from gpucost.render.document import Column

    seconds = time_limit and limit("limit_query_seconds", time_limit, "--time-limit")
    if sum(source is not None for source in (query, file, question)) != 1:
        raise click.UsageError('give one query, such as gpucost sql "show tables", or --file FILE, or --question NAME.')
    if question == "list":
        text = "SELECT unnest([" + ", ".join(f"'{name}'" for name in ready_questions()) + "]) AS question"
    elif question is not None:
        files = ready_questions()
        if question not in files:
            raise UnknownNameError("question", question, near(question, files), f"Questions: {', '.join(files)}.")
        text = files[question].read_text("utf-8")
    elif file is not None:
        text = read_text(file)
    elif query == "-":
        most = int(limit("limit_text_characters"))
        text = sys.stdin.read(most + 1)  # one more than is allowed: then there are too many
        if len(text) > most:
            raise click.UsageError(f"the query on stdin has more than {most:,} characters. Name a file with --file.")
    else:
        text = str(query)
    stated = {name: value for name, value in relations.items() if value is not None}
    catalog.fill = filled  # so that a query may name `speeds` and the like
    answer = catalog.ask(text, stated, time_limit_s=seconds)
    # the drawing of a plan in a table would lose its lines
    if out.format == "table" and answer.columns == _PLAN and not out.is_document:
        out.text("\n".join(str(row["explain_value"]) for row in answer.rows))
        return
    # the columns are named by the query, so no heading of ours is put over them
    out.rows(answer.rows, [Column(name, verbatim=True) for name in answer.columns], catalog)
