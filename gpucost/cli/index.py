"""`gpucost prices index`: what three standard jobs cost in each month since 2022."""

from typing import TYPE_CHECKING, Annotated, Any

import click

from gpucost.arguments.kinds import FLAG
from gpucost.cli.help import GroupedCommand
from gpucost.cli.options import ENDINGS, Output, envelope, output_options, signature_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpucost.catalog import Catalog
    from gpucost.render.document import Chart


@click.command(name="index", cls=GroupedCommand)
@signature_options
@output_options
def command(
    catalog: "Catalog",
    out: Output,
    monthly: Annotated[bool, FLAG, "Show every month."] = False,
) -> None:
    """What three standard jobs cost in each month since 2022, by kind of seller, on demand and spot.

    An 8B model on 100B tokens, LoRA of a 70B, and a million tokens of a 70B served, each on the cheapest chip of the
    month, with the speeds of today. The terminal shows the ends of years; --monthly, CSV and JSON hold every month, and
    a page charts them.

    \b
    gpucost prices index
    gpucost prices index --format csv -o index.csv
    gpucost prices index -o index.html
    """
    from gpucost.library.price_index import FAULTS, index_rows, yearly

    rows = index_rows(catalog)
    if out.ending in (".html", ".htm"):
        from gpucost.render.document import Column, Document, Paragraph, Section, table_of
        from gpucost.render.html import write_page

        lines, about = yearly(rows), envelope(catalog)
        years = (Column(name, name[4:]) for name in lines[0] if name.startswith("usd_2"))  # of usd_2024 the year
        headings = Column("job"), Column("seller_kind", "seller"), Column("option"), *years, Column("usd_last", "last")
        table = table_of("At the ends of years, USD", lines, *headings)
        faults = tuple(Paragraph(text) for text in FAULTS)
        page = Document(
            "What three standard jobs cost since 2022",
            (Section("", (*charts(rows), *table)), Section("What to know before use", faults)),
            as_of=str(about["as_of"]),
            catalog_version=str(about["catalog_version"]),
        )
        write_page(page, str(out.file))
        return
    # the ends of years are for a screen; every other form holds every month
    if monthly or out.format != "table" or out.ending in ENDINGS or out.is_document or out.fields:
        out.rows(rows, "index monthly", catalog, FAULTS)
        return
    out.rows(yearly(rows), "index", catalog, FAULTS)


def charts(rows: "Sequence[dict[str, Any]]") -> "list[Chart]":
    """Return a chart for each job."""
    from gpucost.library.price_index import JOBS, points
    from gpucost.render.document import Axis, Chart

    return [
        Chart(
            "line",
            f"What it cost: {job.title}",
            f"USD by month, by kind of seller, on demand and spot: {job.title}.",
            list(points(rows, job)),
            Axis("day"),
            # on a logarithmic axis lines that fall by equal shares are parallel
            Axis("usd", title="cost", unit="USD", log=True),
            series="line",
        )
        for job in JOBS
    ]
