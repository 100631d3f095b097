"""`gpucost sources`: where every number comes from."""

from typing import TYPE_CHECKING, Annotated

import click

from gpucost.arguments.kinds import named
from gpucost.arguments.signature import PLACE
from gpucost.cli.options import Output, output_options, signature_options

if TYPE_CHECKING:
    from gpucost.catalog import Catalog


@click.command(name="sources")
@signature_options
@output_options
def command(
    catalog: "Catalog",
    out: Output,
    source_id: Annotated[str | None, named("NAME", "sources"), PLACE] = None,
    table: Annotated[str | None, named("NAME", "tables"), "Only the sources of one table, such as offers."] = None,
) -> None:
    """Sources of the facts: who published what, where and when, and how many rows use each.

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
