"""`gpucost prices refresh` and the upkeep of what it keeps: verify, prune, export, snapshots."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucost.cli.messages import printable as shown
from gpucost.cli.messages import say, tell
from gpucost.cli.options import Output, output_options

if TYPE_CHECKING:
    from gpucost.refresh.integrity import Outcome
    from gpucost.store.folder import Folder

CHANGES = ("new", "changed", "same", "gone", "held_back", "left_out", "unknown")
_CLEAR = "\r\x1b[2K"


def store_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --store."""
    text = "Folder, https:// or s3:// address of refreshed prices."
    return click.option("--store", metavar="PATH", help=text)(function)


def folder_of(store: str | None, *, written: bool = False) -> "Folder":
    """Return the store that was named, else the setting's, else the user's own."""
    from gpucost.catalog.books import opened
    from gpucost.catalog.settings import store_place
    from gpucost.errors import UsageError
    from gpucost.store.remote import is_remote

    place = store or store_place()
    if place is None:
        raise UsageError("there is no home folder for prices. Name one with --store.")
    if written and is_remote(str(place)):
        raise UsageError(
            f"{place} is read-only: a published store is written where it was exported from. Refresh a folder, then"
            " publish it with `gpucost prices export`, to a folder or to s3://…"
        )
    return opened(place)


@click.command(name="refresh")
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
@click.option("--publish", metavar="PLACE", help="Then write the store to a folder or s3://… for others to read.")
@click.option("--timeout", type=click.FloatRange(1, 14400), metavar="SECONDS", help="Time limit for each source.")
@store_option
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
    from gpucost.catalog import open_catalog
    from gpucost.refresh.changes import words_of
    from gpucost.refresh.run import Wish
    from gpucost.refresh.run import refresh as refreshed

    folder = folder_of(store, written=True)
    told, wiped = _progress()
    wish = Wish(accept, mirror, timeout, regions, _mapped(columns), told)
    outcomes, snapshot = refreshed(open_catalog(store=folder.path), folder, sources, wish)
    wiped()
    kept = (
        f"Snapshot {snapshot.id} in {folder.path}." if snapshot else "Nothing was published; what was there still is."
    )
    remarks = [*_remarks(outcomes), kept]
    if publish is not None:
        count = published_to(folder, publish, words_of(outcomes, folder))
        remarks.append(f"{count} snapshots in {publish}.")
    out.rows([_row(item) for item in outcomes], "prices refresh", None, remarks)
    failed = any(item.state == "failed" for item in outcomes)
    if failed and (sources or snapshot is None):
        ctx.exit(5)


def _mapped(columns: tuple[str, ...]) -> dict[str, str]:
    from gpucost.arguments.kinds import once
    from gpucost.errors import UsageError

    pairs = [text.partition("=") for text in columns]
    if wrong := next((ours for ours, sign, theirs in pairs if not sign or not theirs), None):
        raise UsageError(f"--map {wrong}: write it as ours=theirs, or ours==value for one value.")
    return once([(ours.strip(), theirs) for ours, _, theirs in pairs], "--map")


def _progress() -> tuple[Callable[[str, str], None] | None, Callable[[], None]]:
    """Return who tells of progress on a terminal's stderr, and who wipes the line in the end."""
    if not sys.stderr.isatty():
        return None, lambda: None
    from shutil import get_terminal_size

    from gpucost.refresh.run import Progress

    width = get_terminal_size().columns - 1

    def write(text: str) -> None:
        click.echo(_CLEAR + shown(text[:width]), err=True, nl=False)

    return Progress(write), lambda: click.echo(_CLEAR, err=True, nl=False)


def _row(item: "Outcome") -> dict[str, Any]:
    found = item.verdict
    why = item.reason or "; ".join(f"{count:,} {reason}" for reason, count in _largest(found.held))
    counts = found.counts if item.state == "published" else dict.fromkeys(found.counts)
    rows = found.rows if item.state == "published" else None
    more = {"held": found.held, "left": found.left_out, "examples": found.examples, "fetched_bytes": item.fetched_bytes}
    return {"source": item.source, "state": item.state, "rows": rows, **counts, "reason": why, **more}


def said_of_parts(failures: Sequence[str]) -> str:
    """Say which parts of a source could not be read, in one line."""
    names = ", ".join(text.partition(": ")[0] for text in failures)
    return f"{len(failures)} of its parts could not be read, the others were: {names}. The first: {failures[0]}"


def _largest(counts: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: -pair[1])[:2]


def _remarks(outcomes: "list[Outcome]") -> list[str]:
    found = []
    for item in outcomes:
        for reason, count in item.verdict.held.items():
            shown = ", ".join(item.verdict.examples.get(reason, ()))
            found.append(f"{item.source}: {count:,} held back, {reason}: {shown}. --accept publishes them.")
        if item.failures:
            found.append(f"{item.source}: {said_of_parts(item.failures)}")
        if item.state == "failed":
            found.append(f"{item.source}: failed, and costs no other source anything: {item.reason}")
        for reason, count in item.verdict.unknown.items():
            shown = ", ".join(item.verdict.examples.get(reason, ()))
            found.append(
                f"{item.source}: {count:,} kept apart, {reason}: {shown}. `gpucost prices unknown` lists them."
            )
        if item.verdict.kept:
            found.append(f"{item.source}: {item.verdict.kept:,} offers are not listed, but may be what is kept apart.")
        plain = {reason: count for reason, count in item.verdict.left_out.items() if reason not in item.verdict.unknown}
        if plain:
            said = ", ".join(f"{count:,} {reason}" for reason, count in plain.items())
            found.append(f"{item.source}: left out: {said}.")
    return found


def published_to(folder: "Folder", target: str, words: str = "") -> int:
    """Write a folder's snapshots to where others read them, with the words of what changed; return how many."""
    from gpucost.errors import UsageError
    from gpucost.store.bucket import published
    from gpucost.store.remote import is_bucket

    try:
        return published(folder, target) if is_bucket(target) else folder.export(Path(target), words)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}.") from None


@click.command(name="unknown")
@store_option
@output_options
def unknown(out: Output, store: str | None) -> None:
    """What the sources named in their last refresh and nobody could read: kept apart, and no reason to end an offer."""
    from gpucost.refresh.changes import unknown_rows

    folder = folder_of(store)
    out.rows(unknown_rows(folder), "prices unknown", None, folder.faults)


@click.command(name="verify")
@store_option
@click.pass_context
def verify(ctx: click.Context, store: str | None) -> None:
    """Check every snapshot against its hashes; exit code 5 if something is damaged. What is whole still serves."""
    folder = folder_of(store)
    faults = folder.verify()
    for fault in faults:
        say(fault)
    parts = sum(len(snapshot.parts) for snapshot in folder.snapshots)
    tell(f"{len(folder.snapshots)} snapshots with {parts} parts in {folder.path}: {len(faults)} damaged.")
    if faults:
        ctx.exit(5)


@click.command(name="prune")
@click.option("--keep", type=click.IntRange(1), default=100, show_default=True, help="Snapshots to keep.")
@store_option
def prune(keep: int, store: str | None) -> None:
    """Remove old snapshots, except those that still speak for a source, and what no snapshot refers to."""
    removed, freed = folder_of(store, written=True).prune(keep)
    tell(f"{removed} snapshots and {freed / 1e6:.1f} MB removed.")


@click.command(name="export")
@click.argument("folder", type=click.Path(file_okay=False))
@store_option
def export(folder: str, store: str | None) -> None:
    """Write the whole snapshots to a FOLDER that any web server can hand out, or to a bucket: s3://bucket/path.

    Others read it with the setting `store` or --store set to its address: read-only, every file checked by its hash.
    """
    from gpucost.errors import UsageError

    found = folder_of(store)
    if not found:
        raise UsageError(f"{found.path} holds no snapshots. `gpucost prices refresh` makes one.")
    count = published_to(found, folder)
    for fault in found.faults:
        say(fault)
    tell(f"{count} snapshots in {folder}.")


@click.command(name="snapshots")
@store_option
@output_options
def snapshots(out: Output, store: str | None) -> None:
    """What was refreshed when: every snapshot, source by source, and how its prices changed."""
    folder = folder_of(store)
    rows = [
        {
            "id": item.id,
            "made_at": f"{item.made_at:%Y-%m-%d %H:%M}",
            "source": part.source,
            "kind": part.kind,
            "rows": part.rows,
            **{name: part.changes.get(name) for name in CHANGES},
            "size_bytes": part.size_bytes,
            "sha256": part.sha256,
            "observed_on": part.observed_on.isoformat(),
        }
        for item in folder.snapshots
        for part in item.parts
    ]
    out.rows(rows, "prices snapshots", None, folder.faults)


COMMANDS = (refresh, unknown, verify, prune, export, snapshots)
