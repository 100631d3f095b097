"""`gpucost sql`: ask the catalog in SQL, read-only."""

import sys

import click

from gpucost.cli.options import catalog_options, emit_rows, emit_text, envelope, output_options

_PLAN = ["explain_key", "explain_value"]  # the answer to EXPLAIN is a drawing, not a table


@click.command(name="sql")
@click.argument("query", required=False)
@click.option("--file", "file", type=click.Path(exists=True, dir_okay=False), help="Read the query from FILE.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=20.0,
    show_default=True,
    help="Seconds after which the query is stopped.",
)
@catalog_options
@output_options
def command(
    query: str | None, file: str | None, time_limit: float, as_of: str | None, known_as_of: str | None,
    format_: str, fields: str | None, output: str | None,
) -> None:  # fmt: skip
    """One SELECT in DuckDB's SQL over the catalog: no writing, no files, no network. `-` reads the query from stdin.

    \b
    gpucost sql "show tables"
    gpucost sql "describe offers"
    gpucost sql "select provider, min(usd_per_gpu_hour) from prices where gpu = 'l40s' group by all order by 2"
    gpucost sql "select * from prices_on('2025-09-01', '2025-12-31') where provider = 'aws'"
    gpucost sql "select * from facts where entity = 'h100-sxm5-80gb'"
    """
    from gpucost.catalog import open_catalog
    from gpucost.catalog.sandbox import run

    catalog = open_catalog(as_of, known_as_of)
    answer = run(catalog, _text(query, file), time_limit_s=time_limit)
    if format_ == "table" and answer.columns == _PLAN:
        emit_text("\n".join(str(row["explain_value"]) for row in answer.rows), output)
        return
    emit_rows(
        answer.rows, columns=answer.columns, format_=format_, fields=fields, output=output, envelope=envelope(catalog)
    )


def _text(query: str | None, file: str | None) -> str:
    if (query is None) == (file is None):
        raise click.UsageError('give one query, such as gpucost sql "show tables", or --file FILE.')
    if file is not None:
        with click.open_file(file, encoding="utf-8") as stream:
            return str(stream.read())
    return sys.stdin.read() if query == "-" else str(query)
