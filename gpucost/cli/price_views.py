"""Looking at prices: `stale`, `coverage`, `watch`, `report`, and the plot of a history."""

from typing import TYPE_CHECKING, Annotated, Any

import click

from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import FLAG, USD, share, whole
from gpucost.arguments.signature import detail
from gpucost.cli.messages import tell
from gpucost.cli.options import ENDINGS, Output, envelope, is_setting, output_options, signature_options

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

_SERIES = 7  # as many as there are colours


def wanted_of(catalog: "Catalog", filters: dict[str, Any]) -> dict[str, set[str] | None]:
    """Return the filter that the options of a command mean."""
    return catalog.offer_filter(filters["gpu"], filters["provider"], filters["region"], filters.get("option"))


@click.command(name="stale")
@signature_options
@output_options
def stale(catalog: "Catalog", out: Output, filters: v.OfferFilters) -> None:
    """Prices that are old for their kind, by provider and option, most first: what to refresh next."""
    from gpucost.catalog.prices import stale as found

    rows = found(catalog, wanted_of(catalog, filters), filters["max_age"])
    out.rows(rows, "prices stale", catalog)


@click.command(name="coverage")
@signature_options
@output_options
def coverage(
    catalog: "Catalog",
    out: Output,
    *,
    machines: Annotated[bool, FLAG, "By machine: its newest price."] = False,
    filters: v.OfferFilters,
) -> None:
    """How many dated prices are on record, by provider; with --machines the newest of each machine, missing ones first.

    \b
    gpucost prices coverage
    gpucost prices coverage --machines --provider aws,azure,gcp
    """
    from gpucost.catalog import prices as views

    chosen, most = wanted_of(catalog, filters), filters["max_age"]
    if machines:
        rows = views.machines(catalog, chosen, most)
        without = sum(row["age_days"] is None for row in rows)
        notes = [f"{without} of {len(rows)} machines have no current price.", *views.unseen(rows, most)]
        out.rows(rows, "prices coverage machines", catalog, notes)
        return
    rows = views.coverage(catalog, chosen, most)
    large = views.LARGE_CLOUDS & (chosen["provider"] or views.LARGE_CLOUDS)
    old = views.unseen(views.machines(catalog, {**chosen, "provider": set(large)}, most), most) if large else []
    notes = [f"{sum(row['facts'] for row in rows):,} dated prices of {len(rows)} providers.", *old]
    out.rows(rows, "prices coverage", catalog, notes)


@click.command(name="watch")
@signature_options
def watch(
    catalog: "Catalog",
    *,
    budget: Annotated[float, USD, "Per GPU-hour."],
    gpus: Annotated[int, whole(), "At least so many in one unit."] = 1,
    filters: v.OfferFilters,
) -> None:
    """Whether an offer fits a budget: exit code 0 if so, 3 if the cheapest costs more, 4 if there is none.

    \b
    gpucost prices watch --gpu h100-sxm --budget 2.50 || echo "too dear"
    """
    from gpucost.catalog.prices import cheapest, refuse_over

    row = cheapest(catalog, wanted_of(catalog, filters), filters["max_age"], gpus)
    refuse_over(row, budget)
    where = f" in {row['region']}" if row["region"] else ""
    tell(
        f"{row['usd_per_gpu_hour']:.4g} USD per GPU-hour: {row['provider']} {row['instance_type']}{where},"
        f" {row['option']}, seen {row['observed_on']}; within the budget of {budget:g}."
    )


@click.command(name="report")
@signature_options
@click.option("-o", "--output", "output_file", required=True, metavar="FILE", help="The page, such as prices.html.")
def report(catalog: "Catalog", output_file: str, filters: v.OfferFilters) -> None:
    """Write a page of prices: today's offers, a map of regions by price, and their history with a slider.

    The page is one file that contacts no server; writing it needs the extra `report`.
    """
    from gpucost.catalog.prices import page_data
    from gpucost.errors import UsageError
    from gpucost.render.html import write_price_page

    if not output_file.lower().endswith((".html", ".htm")):
        raise UsageError(f"{output_file}: the page is written as .html.")
    data = page_data(catalog, wanted_of(catalog, filters), filters["max_age"])
    write_price_page(output_file, data, catalog.as_of.isoformat(), catalog.version)


@click.command(name="risk")
@signature_options
@output_options
def risk(
    out: Output,
    above: Annotated[float | None, share(), "Count days above this share of on demand.", detail(usual="50%")] = None,
    gpu: v.Gpu | None = None,
    provider: v.Provider | None = None,
    region: v.Region | None = None,
    as_of: v.AsOf | None = None,
) -> None:
    """How spot prices moved by machine and region: volatility per year, and days above a share of on demand.

    From the daily series of the history; a price holds until its next change point.
    """
    from gpucost.catalog import open_catalog
    from gpucost.catalog.prices import spot_risk

    catalog = open_catalog(as_of)
    filters = {"gpu": gpu, "provider": provider, "region": region}
    out.rows(spot_risk(catalog, wanted_of(catalog, filters), 0.5 if above is None else above), "prices risk", catalog)


@click.command(name="decline")
@signature_options
@output_options
def decline(
    catalog: "Catalog",
    out: Output,
    gpu: v.Gpu | None = None,
    provider: v.Provider | None = None,
    region: v.Region | None = None,
    option: v.Option | None = None,
) -> None:
    """How list prices fell per year, by chip: the median over sellers of their machines, and the range of sellers."""
    from gpucost.catalog.prices import list_declines, overall

    filters = {"gpu": gpu, "provider": provider, "region": region, "option": option}
    rows = list_declines(catalog, wanted_of(catalog, filters))
    every = overall(rows)
    notes = []
    if every["chips"]:
        low, typical, high = (every[f"decline_{end}fraction"] for end in ("low_", "", "high_"))
        notes.append(
            f"over {every['chips']} chips with two or more sellers, list prices fall by {typical:.1%} a year"
            f" ({low:.1%} to {high:.1%})."
        )
    out.rows(rows, "prices decline", catalog, notes)


def plot(rows: list[dict[str, Any]], catalog: "Catalog", out: Output) -> None:
    """Draw histories: as text, or as a page where -o names one."""
    from gpucost.catalog.prices import series
    from gpucost.render.rows import history_document

    if out.ending == ".xlsx" or out.ending in ENDINGS:
        raise click.UsageError(f"--plot draws text or a page: {out.file} should end in .txt or .html.")
    if (out.fields and not is_setting("fields")) or (out.format != "table" and not is_setting("format_")):
        raise click.UsageError("--plot draws text or a page: leave --format and --fields out.")
    points, events, left_out = series(rows, _SERIES)
    if out.is_document:
        from gpucost.render.html import write_page

        write_page(history_document(points, events, left_out, envelope(catalog)), str(out.file))
        return
    from gpucost.render.text import write

    out.text(write(history_document(points, events, left_out, envelope(catalog))), written=True)


COMMANDS = (stale, coverage, watch, report, risk, decline)
