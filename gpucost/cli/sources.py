"""`gpucost sources`: where every number comes from."""

from typing import TYPE_CHECKING

import click

from gpucost.cli.options import Output, list_options, output_options

if TYPE_CHECKING:
    from gpucost.catalog import Catalog


@click.command(name="sources")
@list_options("sources")
@output_options
def command(catalog: "Catalog", out: Output, source_id: str | None, table: str | None) -> None:
    """Sources of the facts: who published what, where and when, and how many rows lean on each.

    \b
    gpucost sources --table accelerators
    gpucost sources --format csv -o sources.csv
    """
    from gpucost.catalog.shipped import source_rows

    rows = source_rows(catalog.laid, table)
    if source_id:
        catalog.source(source_id)
        rows = [row for row in rows if row["source_id"] == source_id]
    out.rows(rows, "sources", catalog)
