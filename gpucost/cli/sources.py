"""`gpucost sources`: where every number comes from."""

import click

from gpucost.cli.options import catalog_options, emit_rows, envelope, output_options

COLUMNS = (
    "source_id",
    "publisher",
    "title:1",
    "locator:2",
    "published_on=published:3",
    "accessed_on=accessed:3",
    "rows",
)


@click.command(name="sources")
@click.argument("source_id", required=False)
@click.option("--table", metavar="NAME", help="Only the sources of one table, such as offers.")
@catalog_options
@output_options
def command(
    source_id: str | None, table: str | None, as_of: str | None, known_as_of: str | None,
    format_: str, fields: str | None, output: str | None,
) -> None:  # fmt: skip
    """Sources of the facts: who published what, where and when, and how many rows lean on each.

    \b
    gpucost sources --table accelerators
    gpucost sources --format csv -o sources.csv
    """
    from gpucost.catalog import open_catalog
    from gpucost.catalog.provenance import source_rows

    catalog = open_catalog(as_of, known_as_of)
    rows = source_rows(catalog.laid, table)
    if source_id:
        catalog.source(source_id)
        rows = [row for row in rows if row["source_id"] == source_id]
    emit_rows(rows, columns=COLUMNS, format_=format_, fields=fields, output=output, envelope=envelope(catalog))
