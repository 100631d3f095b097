"""`gpucost prices`: what is sold, where and at what price; its past and future, the store, the user's book."""

import re
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
from click.core import ParameterSource

from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import FLAG, USD, named, one_of, whole
from gpucost.arguments.signature import PLACE, detail
from gpucost.cli.help import GroupedCommand, GroupedParent
from gpucost.cli.index import command as index
from gpucost.cli.messages import printable as shown
from gpucost.cli.messages import say, tell
from gpucost.cli.options import (
    ENDINGS,
    Output,
    envelope,
    is_setting,
    output_options,
    signature_options,
)

if TYPE_CHECKING:
    from gpucost.catalog import Catalog
    from gpucost.refresh.integrity import SourceOutcome
    from gpucost.store.folder import Folder


# --- Looking at prices: `stale`, `coverage`, `watch`, `decline`, and the plot of a history.

_SERIES = 7  # as many as there are colours


def _allowed(catalog: "Catalog", filters: dict[str, Any]) -> dict[str, set[str] | None]:
    """Return the filter that the options of a command mean: by column the values that may stand there."""
    return catalog.offer_filter(filters["gpu"], filters["provider"], filters["region"], filters.get("option"))


@click.command(name="stale", cls=GroupedCommand)
@signature_options
@output_options
def stale(catalog: "Catalog", out: Output, filters: v.OfferFilters) -> None:
    """Prices that are old for their kind, by provider and option, most first: what to refresh next."""
    from gpucost.catalog.prices import stale as stale_rows

    out.rows(stale_rows(catalog, _allowed(catalog, filters), filters["max_age"]), "prices stale", catalog)


@click.command(name="coverage", cls=GroupedCommand)
@signature_options
@output_options
def coverage(
    catalog: "Catalog",
    out: Output,
    *,
    machines: Annotated[bool, FLAG, "Show the newest price of each machine."] = False,
    filters: v.OfferFilters,
) -> None:
    """How many dated prices are on record, by provider; with --machines the newest of each machine, missing ones first.

    \b
    gpucost prices coverage
    gpucost prices coverage --machines --provider aws,azure,gcp
    """
    from gpucost.catalog import prices as views

    allowed, max_age_days = _allowed(catalog, filters), filters["max_age"]
    if machines:
        rows = views.machines(catalog, allowed, max_age_days)
        without = sum(row["age_days"] is None for row in rows)
        notes = [f"{without} of {len(rows)} machines have no current price.", *views.unseen(rows, max_age_days)]
        out.rows(rows, "prices coverage machines", catalog, notes)
        return
    rows = views.coverage(catalog, allowed, max_age_days)
    notes = [f"{sum(row['facts'] for row in rows):,} dated prices of {len(rows)} providers."]
    # of the large clouds it is known which machines they have, so also of which no price is young
    if large := views.LARGE_CLOUDS & (allowed["provider"] or views.LARGE_CLOUDS):
        machines_of_large = views.machines(catalog, {**allowed, "provider": set(large)}, max_age_days)
        notes += views.unseen(machines_of_large, max_age_days)
    if availability := catalog.availability.summary(catalog.as_of, allowed["provider"]):
        notes.append(availability)
    out.rows(rows, "prices coverage", catalog, notes)


@click.command(name="watch", cls=GroupedCommand)
@signature_options
def watch(
    catalog: "Catalog",
    *,
    budget: Annotated[float, USD, "Per GPU-hour."],
    gpus: Annotated[int, whole(), "Minimum number of GPUs in one instance."] = 1,
    filters: v.OfferFilters,
) -> None:
    """Whether an offer fits a budget: exit code 0 if so, 3 if the cheapest costs more, 4 if there is none.

    \b
    gpucost prices watch --gpu h100-sxm --budget 2.50 || echo "too dear"
    """
    from gpucost.catalog.prices import cheapest, refuse_over

    row = cheapest(catalog, _allowed(catalog, filters), filters["max_age"], gpus)
    # without an offer `cheapest` refuses; here a dear one is refused, each with its own exit code
    refuse_over(row, budget)
    place = f" in {row['region']}" if row["region"] else ""
    tell(
        f"{row['usd_per_gpu_hour']:.4g} USD per GPU-hour: {row['provider']} {row['instance_type']}{place},"
        f" {row['option']}, seen {row['observed_on']}; within the budget of {budget:g}."
    )


@click.command(name="hosted", cls=GroupedCommand)
@signature_options
@output_options
def hosted(
    catalog: "Catalog",
    out: Output,
    model: v.Model | None = None,
    provider: v.Provider | None = None,
) -> None:
    """What hosted models cost per million tokens, by seller: the newest price of each product, cheapest output first.

    \b
    gpucost prices hosted --model deepseek-v3
    gpucost prices hosted --provider together
    """
    from gpucost.errors import PriceMissingError
    from gpucost.serving.costing import offered

    model_id = None if model is None else catalog.architecture(model).name
    rows = [
        row
        for row in offered(catalog.rows("hosted_tokens"), catalog.as_of)
        if model_id in (None, row["model_id"]) and provider in (None, row["provider"])
    ]
    if not rows:
        raise PriceMissingError("no hosted price of that kind is on record. Name another --model or --provider.")
    # what sellers ask for one model stands together
    rows.sort(key=lambda row: (str(row["model_id"]), row["output_usd_per_mtok"], str(row["provider"])))
    out.rows([dict(row) for row in rows], "prices hosted", catalog)


@click.command(name="decline", cls=GroupedCommand)
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
    """How list prices fell per year, by chip: the move over the years that sellers were watched, and their range."""
    from gpucost.catalog.prices import list_declines, overall

    filters = {"gpu": gpu, "provider": provider, "region": region, "option": option}
    rows = list_declines(catalog, _allowed(catalog, filters))
    every = overall(rows)
    if out.is_plain:  # a person reads a word more easily than 0.0%
        ends = ("decline_fraction", "decline_low_fraction", "decline_high_fraction")
        rows = [{**row, **{end: row[end] or "unchanged" for end in ends}} for row in rows]
    notes = []
    if every["chips"]:
        # rates of decline: a rise is negative
        low, typical, high = (every[f"decline_{end}fraction"] for end in ("low_", "", "high_"))
        moved = f"{'fall' if typical >= 0 else 'rise'} by {abs(typical):.1%}"
        notes.append(
            f"over {every['chips']} chips with two or more sellers, list prices {moved} a year"
            f" (sellers from {-high:+.1%} to {-low:+.1%})."
        )
    out.rows(rows, "prices decline", catalog, notes)


@click.command(name="used")
@signature_options
@output_options
def used(catalog: "Catalog", out: Output, gpu: v.Gpu | None = None) -> None:
    """What used cards sell for: age, what is left of the launch price, and the years to come; youngest first.

    \b
    gpucost prices used
    gpucost prices used --gpu rtx-4090
    """
    from gpucost.errors import PriceMissingError
    from gpucost.market.forward import used_rows

    rows = used_rows(catalog, catalog.offer_filter(gpu, None, None, None)["gpu"])
    if not rows:
        raise PriceMissingError(_NOTHING.format("dated street price and launch price"))
    notes = ["Street: the middle of the listings seen in that year. Later years: what other cards did at that age."]
    out.rows(rows, "prices used", catalog, notes)


# --- `gpucost prices forward`: what a GPU-hour may cost in years to come, and how such forecasts did in the past.


@click.command(name="forward", cls=GroupedCommand)
@signature_options
@output_options
def forward(
    catalog: "Catalog",
    out: Output,
    backtest: Annotated[bool, FLAG, "Show how well past forecasts did."] = False,
    gpu: v.Gpu | None = None,
    option: v.Option | None = None,
) -> None:
    """What a GPU-hour may cost in 12, 24 and 36 months: P10 to P90, by kind of seller and option.

    From what the prices of other chips did at the age that this one has now, as far as it was known on the day of the
    question (--as-of). P50 is today's price: nothing came nearer in the backtest (--backtest). No plan leans on this
    unless you give it such a price.

    \b
    gpucost prices forward --gpu h100-sxm
    gpucost prices forward --gpu h100-sxm --option spot
    gpucost prices forward --backtest
    """
    from gpucost.catalog.price_months import COMMITTED, OF_OPTION
    from gpucost.errors import PriceMissingError
    from gpucost.market import forward as model
    from gpucost.options import OPTIONS

    allowed = catalog.offer_filter(gpu, None, None, option)
    gpus = allowed["gpu"]
    if backtest:
        if gpus is not None or option is not None:
            raise click.UsageError("--backtest covers every chip and option: leave --gpu and --option out.")
        out.rows(model.backtest_rows(catalog), "prices forward backtest", catalog)
        return
    # what the monthly prices call the options; commitments of every length where one is asked for
    months = None
    if allowed["option"] is not None:
        families = {OPTIONS[name].family for name in allowed["option"]}
        months = {OF_OPTION[family] for family in families & set(OF_OPTION)}
        months |= set(COMMITTED.values()) if "committed" in families else set()
    rows = [row for row in model.forward_prices(catalog, gpus) if months is None or row["option"] in months]
    if not rows:
        raise PriceMissingError(_NOTHING.format(f"price of the last {model.STALE_DAYS} days"))
    out.rows(rows, "prices forward", catalog)


_NOTHING = "no chip that you named has a {}. Name another, or leave --gpu and --option out."


# --- `gpucost prices book`: the user's contracts and discounts beside the lists.


@click.group(name="book", cls=GroupedParent)
def book() -> None:
    """Contracts and discounts of your own book."""


@book.command(name="check")
@click.argument("path", required=False, type=click.Path(exists=True))
@click.option("--as-of", metavar="DATE", help="The day to look from.  [default: today]")
@output_options
@click.pass_context
def check(ctx: click.Context, out: Output, path: str | None, as_of: str | None) -> None:
    """Check a price book: every contract and discount with its list, contracted and effective price.

    Errors name the file, row and column. Exit code 5 if a contract has ended or costs more than the list, or a discount
    matches no price.

    \b
    gpucost prices book check
    gpucost prices book check quotes.xlsx --as-of 2026-12-31
    """
    from gpucost.catalog import open_catalog
    from gpucost.catalog.datacheck import contract_terms
    from gpucost.errors import UsageError

    catalog = open_catalog(as_of, book=path)
    if not catalog.books:
        raise UsageError("there is not a price book. `gpucost config` says where it is looked for.")
    rows, remarks = contract_terms(catalog)
    out.rows(rows, "prices book", catalog, remarks)
    # these make a book wrong; other remarks are for information
    if any(word in text for text in remarks for word in ("ended on", "dearer than", "matches no")):
        ctx.exit(5)


# --- `gpucost prices refresh` and the upkeep of what it keeps: verify, prune, export, snapshots.

_CHANGES = ("new", "changed", "same", "gone", "held_back", "left_out", "unknown")
_CLEAR = "\r\x1b[2K"  # back to the first column, and erase the line
_store_option = click.option("--store", metavar="PATH", help="Folder or https:// address of refreshed prices.")


def folder_of(store: str | None, *, written: bool = False) -> "Folder":
    """Return the store that was named, else the setting's, else the user's own."""
    from gpucost.catalog.books import opened
    from gpucost.catalog.settings import store_place
    from gpucost.errors import UsageError
    from gpucost.store.client import place_of
    from gpucost.store.remote import is_remote

    location = store or store_place()
    if location is None:
        raise UsageError("there is no home folder for prices. Name one with --store.")
    if written and is_remote(str(location)):
        raise UsageError(
            f"{place_of(str(location))} is read-only: a published store is updated by exporting to it. Refresh"
            " a folder, then publish it with `gpucost prices export`."
        )
    return opened(location)


@click.command(name="refresh", cls=GroupedCommand)
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="SOURCE",
    help="Only this source, file or published store; may be repeated.",
)
@click.option("--accept", is_flag=True, help="Also publish rows that were held back.")
@click.option("--region", "regions", multiple=True, metavar="REGION", help="AWS: the regions to ask.")
@click.option("--map", "columns", multiple=True, metavar="OURS=THEIRS", help="For a file: our column and its column.")
@click.option("--mirror", metavar="URL", help="Ask URL/<host>/<path> in place of every host.")
@click.option("--publish", metavar="PLACE", help="Then write the store to a folder for others to read.")
@click.option("--timeout", type=click.FloatRange(1, 14400), metavar="SECONDS", help="Time limit of the whole refresh.")
@_store_option
@output_options
@click.pass_context
def refresh(
    ctx: click.Context,
    out: Output,
    sources: tuple[str, ...],
    accept: bool,
    regions: tuple[str, ...],
    columns: tuple[str, ...],
    mirror: str | None,
    timeout: float | None,
    publish: str | None,
    store: str | None,
) -> None:
    """Fetch today's prices from their sources, judge them, and keep what passes as a snapshot.

    Every later answer takes a refreshed price where it is newer than a shipped one. Without --from every source is
    asked that is light and needs no key, or whose key stands in the environment. What moved by more than 40 %, is new
    and far from its kind, or looks like a known fault, is held back until --accept. What a source names and nobody can
    read is kept apart: `gpucost prices unknown`. Exit code 5 if a source that you named failed, or every one.

    \b
    gpucost prices refresh
    gpucost prices refresh --from azure --from skypilot
    gpucost prices refresh --from aws --region eu-central-1
    gpucost prices refresh --from https://prices.example.org/gpu
    gpucost prices refresh --publish /srv/prices
    gpucost prices refresh --from quotes.csv \\
      --map usd_per_hour="Hourly USD" --map provider==acme
    """
    from gpucost.arguments.kinds import once
    from gpucost.catalog import open_catalog
    from gpucost.errors import UsageError
    from gpucost.refresh.changes import changes_of
    from gpucost.refresh.run import Progress, RefreshOptions
    from gpucost.refresh.run import refresh as refreshed

    folder = folder_of(store, written=True)
    # which column of a file is which of ours
    pairs = [text.partition("=") for text in columns]
    for ours, sign, theirs in pairs:
        if not sign or not theirs:
            raise UsageError(f"--map {ours}: write it as ours=theirs, or ours==value for one value.")
    columns_by_ours = once([(ours.strip(), theirs) for ours, _, theirs in pairs], "--map")

    def draw(text: str) -> None:
        from shutil import get_terminal_size

        # one line that is written over; a longer one would wrap, and stay
        click.echo(_CLEAR + shown(text[: get_terminal_size().columns - 1]), err=True, nl=False)

    # in a pipe or a log nobody looks at a line that changes
    progress = Progress(draw) if sys.stderr.isatty() else None
    options = RefreshOptions(accept, mirror, timeout, regions, columns_by_ours, progress)
    outcomes, snapshot = refreshed(open_catalog(store=folder.path), folder, sources, options)
    if progress is not None:
        click.echo(_CLEAR, err=True, nl=False)
    remarks = [remark for outcome in outcomes for remark in _remarks(outcome)]
    remarks.append(
        f"Snapshot {snapshot.id} in {folder.path}." if snapshot else "Nothing was published; what was there still is."
    )
    if publish is not None:
        count = _published(folder, publish, changes_of(outcomes, folder))
        remarks.append(f"{count} snapshots in {publish}.")
    rows = []
    for outcome in outcomes:
        verdict, is_judged = outcome.verdict, outcome.state in ("published", "waiting")
        # the two reasons that hold back most say enough on a screen; JSON has them all
        largest = sorted(verdict.held.items(), key=lambda pair: -pair[1])[:2]
        rows.append(
            {
                "source": outcome.source,
                "state": outcome.state,
                "rows": verdict.rows if is_judged else None,
                **(verdict.counts if is_judged else dict.fromkeys(verdict.counts)),
                "reason": outcome.reason or "; ".join(f"{count:,} {reason}" for reason, count in largest),
                "held": verdict.held,
                "left": verdict.left_out,
                "examples": verdict.examples,
                "fetched_bytes": outcome.fetched_bytes,
            }
        )
    out.rows(rows, "prices refresh", None, remarks)
    # one of many sources may fail by the day; those that were named, or all, should not
    if any(outcome.state == "failed" for outcome in outcomes) and (sources or snapshot is None):
        ctx.exit(5)


def _remarks(outcome: "SourceOutcome") -> list[str]:
    source, verdict, remarks = outcome.source, outcome.verdict, []
    for reason, count in verdict.held.items():
        examples = ", ".join(verdict.examples.get(reason, ()))
        remarks.append(f"{source}: {count:,} wait, {reason}: {examples}. `gpucost prices waiting` lists them.")
    if outcome.failures:
        names = ", ".join(text.partition(": ")[0] for text in outcome.failures)
        remarks.append(
            f"{source}: {len(outcome.failures)} of its parts could not be read, the others were: {names}."
            f" The first: {outcome.failures[0]}"
        )
    if outcome.state == "failed":
        remarks.append(f"{source}: failed, and costs no other source anything: {outcome.reason}")
    for reason, count in verdict.unknown.items():
        examples = ", ".join(verdict.examples.get(reason, ()))
        remarks.append(f"{source}: {count:,} kept apart, {reason}: {examples}. `gpucost prices unknown` lists them.")
    if verdict.kept:
        remarks.append(f"{source}: {verdict.kept:,} offers are not listed, but may be what is kept apart.")
    left_out = {reason: count for reason, count in verdict.left_out.items() if reason not in verdict.unknown}
    if left_out:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        remarks.append(f"{source}: left out: {counts}.")
    return remarks


def _published(folder: "Folder", target: str, note: str = "") -> int:
    """Write a folder's snapshots to where others read them, with the words of what changed; return how many."""
    from gpucost.errors import UsageError

    try:
        return folder.export(Path(target), note)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}.") from None


@click.command(name="unknown", cls=GroupedCommand)
@_store_option
@output_options
def unknown(out: Output, store: str | None) -> None:
    """What the sources named in their last refresh and nobody could read: kept apart, and no reason to end an offer."""
    from gpucost.refresh.changes import unknown_rows

    folder = folder_of(store)
    out.rows(unknown_rows(folder), "prices unknown", None, folder.faults)


@click.command(name="waiting", cls=GroupedCommand)
@_store_option
@output_options
def waiting(out: Output, store: str | None) -> None:
    """List the doubtful prices of the last refreshes: each waits until `gpucost prices accept ID` takes it."""
    from gpucost.refresh.waiting import waiting_rows

    folder = folder_of(store)
    rows = waiting_rows(folder)
    remarks = [f"Take one after a look at its seller's page: gpucost prices accept {rows[0]['row_id']}"] if rows else []
    out.rows(rows, "prices waiting", None, [*folder.faults, *remarks])


@click.command(name="accept", cls=GroupedCommand)
@click.argument("row_ids", nargs=-1, required=True, metavar="ID...")
@_store_option
def accept(row_ids: tuple[str, ...], store: str | None) -> None:
    """Publish prices that wait, by their IDs from `gpucost prices waiting`; the others go on waiting."""
    from gpucost.refresh.waiting import take

    folder = folder_of(store, written=True)
    snapshot = take(folder, row_ids)
    tell(f"{len(set(row_ids))} prices taken. Snapshot {snapshot.id} in {folder.path}.")


@click.command(name="verify", cls=GroupedCommand)
@_store_option
@click.pass_context
def verify(ctx: click.Context, store: str | None) -> None:
    """Check every snapshot against its hashes; exit code 5 if something is damaged. What is whole still serves."""
    folder = folder_of(store)
    # each fault is said, and what is whole goes on serving
    faults = folder.verify()
    for fault in faults:
        say(fault)
    parts = sum(len(snapshot.parts) for snapshot in folder.snapshots)
    tell(f"{len(folder.snapshots)} snapshots with {parts} parts in {folder.path}: {len(faults)} damaged.")
    if faults:
        ctx.exit(5)


@click.command(name="prune", cls=GroupedCommand)
@click.option("--keep", type=click.IntRange(1), default=100, show_default=True, help="Snapshots to keep.")
@_store_option
def prune(keep: int, store: str | None) -> None:
    """Remove old snapshots, except those that still speak for a source, and what no snapshot refers to."""
    removed, freed = folder_of(store, written=True).prune(keep)
    tell(f"{removed} snapshots and {freed / 1e6:.1f} MB removed.")


@click.command(name="export", cls=GroupedCommand)
@click.argument("folder", type=click.Path(file_okay=False))
@_store_option
def export(folder: str, store: str | None) -> None:
    """Write the whole snapshots to a FOLDER that any web server can hand out.

    Others read it with the setting `store` or --store set to its address: read-only, every file checked by its hash.
    """
    from gpucost.errors import UsageError

    snapshots = folder_of(store)
    # others would fetch an empty store and take it for no prices
    if not snapshots:
        raise UsageError(f"{snapshots.path} holds no snapshots. `gpucost prices refresh` makes one.")
    count = _published(snapshots, folder)
    for fault in snapshots.faults:
        say(fault)
    tell(f"{count} snapshots in {folder}.")


@click.command(name="snapshots", cls=GroupedCommand)
@_store_option
@output_options
def snapshots(out: Output, store: str | None) -> None:
    """Versions that one can ask for with --catalog: what the package ships, then every snapshot, source by source."""
    from gpucost.catalog import open_catalog

    folder = folder_of(store)
    # what the package ships is a version too, and the one that every store begins with
    shipped = open_catalog(store=folder.path, version="shipped")
    listed = shipped.query("SELECT count(*) AS n FROM offers", "offers")[0]["n"]
    first = {"id": shipped.shipped_version, "source": "shipped", "kind": "offers", "rows": listed}
    rows = [{**first, "observed_on": shipped.dated.isoformat()}]
    rows += [
        {
            "id": snapshot.id,
            "made_at": f"{snapshot.made_at:%Y-%m-%d %H:%M}",
            "source": part.source,
            "kind": part.kind,
            "rows": part.rows,
            **{name: part.changes.get(name) for name in _CHANGES},
            "size_bytes": part.size_bytes,
            "sha256": part.sha256,
            "observed_on": part.observed_on.isoformat(),
        }
        for snapshot in folder.snapshots
        for part in snapshot.parts
    ]
    out.rows(rows, "prices snapshots", None, folder.faults)


# --- `gpucost prices`: what a GPU-hour costs on a day, its history, and what changed between two days.


@click.group(name="prices", cls=GroupedParent, invoke_without_command=True)
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
    by: Annotated[
        str | None,
        one_of("provider", "gpu", "region", "option"),
        "One row for each instead: its cheapest price by option, with the day it was seen.",
        detail(example="provider"),
    ] = None,
    details: Annotated[
        bool, FLAG, "Whether published lists have the machine in that region, and why a price is not ranked."
    ] = False,
    all: Annotated[bool, FLAG, "Every offer in every region, ended and contradictory ones too."] = False,
    check: Annotated[bool, FLAG, "Then read the five cheapest again from their sellers, over the network."] = False,
) -> None:
    """Prices that can be ordered on a day, cheapest GPU-hour first.

    One row for each seller, GPU and option: its cheapest region and machine; what is old for its kind stands last.
    --all, --details, CSV and JSON have a row for every offer. A price holds from the day its provider stated, else
    from the day it was seen, until a newer one is known. For a day before the newest shipped price, the daily price
    history is used too; it may know more regions.

    \b
    gpucost prices --gpu h100-sxm
    gpucost prices --gpu h100 --option spot --as-of 2025-09-01 \\
      --known-as-of 2025-12-31
    gpucost prices --gpu h100-sxm --by provider
    gpucost prices history --gpu h100-sxm --provider aws
    gpucost prices diff 2025-03-01 2025-09-01 --provider aws
    """
    if ctx.invoked_subcommand is not None:
        # options before a view's name are those of the list that is not shown
        for option in ctx.command.params:
            if ctx.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE:
                view = ctx.invoked_subcommand
                raise click.UsageError(
                    f"{max(option.opts, key=len)} before {view} has no effect. Put options of {view} after its name;"
                    f" see gpucost prices {view} --help."
                )
        return
    from gpucost.catalog.names import listed
    from gpucost.catalog.prices import current

    region = filters["region"]
    # a group of regions asks what is sold there: offers that ended, and might be in any region, would only be noise
    grouped = region is not None and catalog.regions.grouped(listed(region))
    rows, warnings = current(catalog, _allowed(catalog, filters), filters["max_age"], ended=not grouped)
    warnings = [*catalog.holding(filters["gpu"]), *warnings]
    # a row for each provider, chip, region or option
    if by is not None:
        if details:
            raise click.UsageError("--details is of single prices: leave it or --by out.")
        from gpucost.catalog.prices import by_column
        from gpucost.render.document import columns, columns_of
        from gpucost.render.prices import machine_label

        lines = by_column(rows, by)
        if out.is_plain:
            most = limit or _SCREEN
            unseen = len(lines) - most
            warnings = [f"{unseen} more rows: --limit {len(lines)}."] if unseen > 0 and not limit else []
            if old := sum(line["old"] for line in lines):
                warnings.append(f"{old} of {len(lines)} have no price that is young for its kind: they stand last.")
            warnings += [*catalog.holding(filters["gpu"]), "USD per GPU-hour, each the cheapest offer of its kind."]
            lines = [{**line, "machine": machine_label(line["machine"])} for line in lines[:most]]
        out.rows(lines[:limit], [*columns(by), *columns_of("prices by")], catalog, warnings)
        return
    checks: list[str] = []
    if check:
        from gpucost.refresh.check import FIRST_OFFERS, checked

        # what does not rank is not asked for again
        cheapest = [row for row in rows if row["rankable"]][:FIRST_OFFERS]
        checks = [price.sentence for price in checked(catalog, cheapest)]
        warnings = [*warnings, *checks]
    # every offer, for who asked for all or reads by program
    if all or details or out.format in ("csv", "json"):
        out.rows(rows[:limit], "prices details" if details else "prices", catalog, warnings)
        return
    from gpucost.catalog.prices import cheapest_of_sellers
    from gpucost.render.document import columns_of

    # a row for each seller
    sellers = cheapest_of_sellers(rows)
    if out.is_plain:
        from gpucost.render.prices import offers_screen
        from gpucost.render.text import write

        gpu, names = filters["gpu"], {row["provider"]: row["name"] for row in catalog.rows("providers")}
        first = [
            {**row, "seller": names.get(row["provider"]) or row["provider"]}
            for row in sellers[: limit or _SCREEN_OFFERS]
        ]
        old, notes = sum(bool(row["stale"]) for row in sellers), [*catalog.holding(gpu), *checks]
        screen = offers_screen(first, len(sellers), old, gpu, catalog.as_of.isoformat(), catalog.version, notes)
        out.text(write(screen, one_screen=limit is None), written=True)
        return
    # a column that says the same on every row is left out
    one_chip = len({row["gpu"] for row in sellers}) == 1
    columns_shown = [column for column in columns_of("prices by seller") if not (one_chip and column.key == "gpu")]
    if hidden := len(rows) - len(sellers):
        warnings = [*warnings, f"{hidden} more offers, of other regions and sizes or not ranked: --all."]
    out.rows(sellers[:limit], columns_shown, catalog, warnings)


_SCREEN, _SCREEN_OFFERS = 16, 12  # rows of one screen


@command.command(name="history")
@signature_options
@output_options
def history(
    catalog: "Catalog",
    out: Output,
    filters: v.OfferFilters,
    plot: Annotated[bool, FLAG, "Draw lines and events; -o FILE.html writes a page."] = False,
) -> None:
    """Every recorded price, offer by offer, by the day from which it holds."""
    from gpucost.catalog.prices import history as price_history
    from gpucost.catalog.prices import series

    rows = price_history(catalog, _allowed(catalog, filters), filters["max_age"])
    if not plot:
        out.rows(rows, "prices history", catalog)
        return
    # lines and events, as text or as a page where -o names one
    from gpucost.render.rows import history_document

    if out.ending == ".xlsx" or out.ending in ENDINGS:
        raise click.UsageError(f"--plot draws text or a page: {out.file} should end in .txt or .html.")
    if (out.fields and not is_setting("fields")) or (out.format != "table" and not is_setting("format_")):
        raise click.UsageError("--plot draws text or a page: leave --format and --fields out.")
    # of many offers those whose price moved most often, as many as there are colours to tell apart
    points, events, left_out = series(rows, _SERIES)
    document = history_document(points, events, left_out, envelope(catalog))
    if out.is_document:
        from gpucost.render.html import write_page

        write_page(document, str(out.file))
    else:
        from gpucost.render.text import write

        out.text(write(document), written=True)


@command.command(name="diff")
@signature_options
@output_options
def diff(
    out: Output,
    *,
    first: Annotated[str, named("DAY|VERSION"), PLACE],
    second: Annotated[str, named("DAY|VERSION"), PLACE],
    all: Annotated[bool, FLAG, "Also the prices that did not change."] = False,
    filters: v.OfferFilters,
    known_as_of: v.KnownAsOf | None = None,
) -> None:
    """What changed between two days, or between two versions of the facts: old and new price of each offer.

    FIRST and SECOND are days, as known today (or on --known-as-of), or versions as `prices snapshots` lists them. An
    offer is new or gone where it could be ordered on one side alone.
    """
    from gpucost.catalog import open_catalog
    from gpucost.catalog.prices import difference, difference_of_versions

    if not (_is_day(first, "first") and _is_day(second, "second")):
        # versions have their own days, so prices on both sides are those of one day each
        then, now = (open_catalog(known_as_of=known_as_of, version=version) for version in (first, second))
        rows = difference_of_versions(then, now, _allowed(now, filters), all)
        out.rows(_recent(rows, now, filters["max_age"]), "prices diff", now, first=first, second=second)
        return
    # the later day knows what was asked on the earlier one
    catalog = open_catalog(second, known_as_of)
    rows, unknown = difference(catalog, date.fromisoformat(first), _allowed(catalog, filters), all)
    notes = [f"{unknown} prices of {first} are left out: it is unknown whether they hold on {second}."] * (unknown > 0)
    out.rows(_recent(rows, catalog, filters["max_age"]), "prices diff", catalog, notes, first=first, second=second)


def _is_day(text: str, called: str) -> bool:
    """Tell a day from a version of the facts; what is written as a day must be one of the calendar."""
    from gpucost.arguments.kinds import DATE

    # "20260301" is a day too, as Python reads it
    return re.fullmatch(r"\d+-\d+-\d+|\d{8}", text) is not None and DATE.read(text, called) is not None


def _recent(rows: list[dict[str, Any]], catalog: "Catalog", days: float | None) -> list[dict[str, Any]]:
    """Leave out what was seen longer ago than --max-age allows, of what is gone the last sight."""
    seen = [(catalog.as_of - (row["new_observed_on"] or row["old_observed_on"])).days for row in rows]
    return [row for row, age in zip(rows, seen, strict=True) if days is None or age <= days]


_OF_THE_STORE = (refresh, waiting, accept, unknown, verify, prune, export, snapshots)
for _more in (index, *_OF_THE_STORE, book, stale, coverage, watch, decline, hosted, used, forward):
    command.add_command(_more)
