"""`gpucost prices`: what a GPU-hour costs on a day, its history, and what changed between two days."""

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import click
from click.core import ParameterSource

from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import DATE, FLAG, whole
from gpucost.arguments.signature import PLACE
from gpucost.cli import price_book, price_forward, price_store, price_views
from gpucost.cli.options import Output, output_options, signature_options
from gpucost.cli.price_views import wanted_of

if TYPE_CHECKING:
    from gpucost.catalog import Catalog


@click.group(name="prices", invoke_without_command=True)
@signature_options
@output_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    catalog: "Catalog",
    out: Output,
    filters: v.OfferFilters,
    limit: Annotated[int | None, whole(), "Show only the cheapest N."] = None,
    details: Annotated[
        bool, FLAG, "Whether lists have the machine in that region, and why a price is not ranked."
    ] = False,
) -> None:
    """Prices that can be ordered on a day, one per offer, cheapest GPU-hour first.

    A price holds from the day its provider stated, else from the day it was seen, until a newer one is known. For a
    day before the newest shipped price, the daily price history is used too; it may know more regions.

    \b
    gpucost prices --gpu h100-sxm
    gpucost prices --gpu h100 --option spot --as-of 2025-09-01 \\
      --known-as-of 2025-12-31
    gpucost prices history --gpu h100-sxm --provider aws
    gpucost prices diff 2025-03-01 2025-09-01 --provider aws
    """
    if ctx.invoked_subcommand is not None:
        _refuse_before(ctx, ctx.invoked_subcommand)
        return
    from gpucost.catalog.names import listed
    from gpucost.catalog.prices import current

    region = filters["region"]
    grouped = region is not None and catalog.regions.grouped(listed(region))  # a continent asks what is sold there
    rows, warnings = current(catalog, wanted_of(catalog, filters), filters["max_age"], ended=not grouped)
    out.rows(rows[:limit], "prices details" if details else "prices", catalog, warnings)


def _refuse_before(ctx: click.Context, view: str) -> None:
    """Refuse options that stand before a view's name: they are those of the list that is not shown."""
    for option in ctx.command.params:
        if ctx.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE:
            complaint = f"{max(option.opts, key=len)} before {view} has no effect."
            raise click.UsageError(
                f"{complaint} Put options of {view} after its name; see gpucost prices {view} --help."
            )


@command.command(name="history")
@signature_options
@output_options
def history(
    catalog: "Catalog",
    out: Output,
    filters: v.OfferFilters,
    plot: Annotated[bool, FLAG, "Draw lines and events; a page with -o FILE.html."] = False,
) -> None:
    """Every recorded price, offer by offer, by the day from which it holds."""
    from gpucost.catalog.prices import history as price_history

    rows = price_history(catalog, wanted_of(catalog, filters), filters["max_age"])
    if plot:
        price_views.plot(rows, catalog, out)
        return
    out.rows(rows, "prices history", catalog)


@command.command(name="diff")
@signature_options
@output_options
def diff(
    out: Output,
    *,
    first: Annotated[str, DATE, PLACE],
    second: Annotated[str, DATE, PLACE],
    all: Annotated[bool, FLAG, "Also the prices that did not change."] = False,
    filters: v.OfferFilters,
    known_as_of: v.KnownAsOf | None = None,
) -> None:
    """What changed between two days, as known today (or on --known-as-of): old and new price of each offer.

    An offer is new or gone where it could be ordered on one of the days alone.
    """
    from gpucost.catalog import open_catalog
    from gpucost.catalog.prices import difference

    catalog = open_catalog(second, known_as_of)
    rows, unknown = difference(catalog, date.fromisoformat(first), wanted_of(catalog, filters), all)
    said = [f"{unknown} prices of {first} are left out: it is unknown whether they hold on {second}."] * (unknown > 0)
    out.rows(_recent(rows, catalog, filters["max_age"]), "prices diff", catalog, said, first=first, second=second)


def _recent(rows: list[dict[str, Any]], catalog: "Catalog", days: float | None) -> list[dict[str, Any]]:
    """Leave out what was seen longer ago than --max-age allows, of what is gone the last sight."""
    seen = [(catalog.as_of - (row["new_observed_on"] or row["old_observed_on"])).days for row in rows]
    return [row for row, age in zip(rows, seen, strict=True) if days is None or age <= days]


for _more in (*price_store.COMMANDS, *price_book.COMMANDS, *price_views.COMMANDS, *price_forward.COMMANDS):
    command.add_command(_more)
