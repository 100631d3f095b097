"""Refreshing: the sources side by side, each succeeding or failing alone; what passes its checks becomes a snapshot.

What a source says is read in its importer, completed in refresh/complete.py and judged in refresh/integrity.py and its
like; here stands only who is asked, in how much time, and what of it is published.
"""

import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from gpucost import clock
from gpucost.errors import DiskError, GpuCostError, UsageError
from gpucost.limits import Deadline, limit
from gpucost.refresh.complete import complete
from gpucost.refresh.integrity import UNKNOWN_KIND, WAITING, CandidateVerdict, SourceOutcome, judge
from gpucost.refresh.known import Known, known_of
from gpucost.refresh.registry import SOURCES, source_of
from gpucost.refresh.sales import judge_sales
from gpucost.refresh.source import Desk, Source
from gpucost.refresh.tokens import judge_tokens
from gpucost.store.client import Client, place_of
from gpucost.store.files import disk_trouble, is_of_disk, put_parquet
from gpucost.store.folder import Folder, Part, Snapshot, hash_of
from gpucost.store.remote import is_remote

if TYPE_CHECKING:
    from gpucost.catalog.core import Catalog

SIDE_BY_SIDE = 8  # sources: each waits for its server most of the time
_ASKING_SHARE = 0.8  # of the time: the rest judges and writes what was fetched
_SHORTEST_SECRET = 6  # characters: a shorter value would blank out common words


class RefreshOptions(Struct, frozen=True):
    """How a refresh goes about its sources: how to judge, where to ask, for how long, to whom it reports progress."""

    accept: bool = False
    mirror: str | None = None
    seconds: float | None = None
    regions: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)  # our column -> theirs, for files of one's own
    progress: Callable[[str, str], None] | None = None  # source, what it is doing
    pause: Callable[[float], object] | None = None


def chosen(names: Sequence[str]) -> tuple[list[Source], list[SourceOutcome]]:
    """Return the sources asked for; without names every one that is light and whose key is there."""
    if names:
        by_name: dict[str, tuple[str, Source]] = {}  # as it was written, the source
        for name in dict.fromkeys(names):
            source = source_of(name)
            if source.name in by_name:
                first = by_name[source.name][0]
                raise UsageError(
                    f"{first} and {name} are both the source {source.name}, for which one list speaks."
                    " Give one of them another name, or put both into one file."
                )
            by_name[source.name] = name, source
        return [source for _, source in by_name.values()], []
    ready, skipped = [], []
    for source in SOURCES.values():
        if not source.heavy and source.has_key:
            ready.append(source)
            continue
        reason = f"hundreds of megabytes: name it, --from {source.name}"
        if not source.has_key:
            reason = f"needs {' or '.join(source.keys)} in the environment"
        skipped.append(SourceOutcome(source.name, "skipped", reason))
    return ready, skipped


_HEEDED = {  # options that only some sources heed: without one of them they would be ignored without a word
    "mirror": "--mirror stands in for the host of a source that is fetched",
    "regions": "--region is asked of the sources of AWS alone",
    "columns": "--map names the columns of a file",
}


def refresh(
    catalog: "Catalog", folder: Folder, names: Sequence[str], options: RefreshOptions
) -> tuple[list[SourceOutcome], Snapshot | None]:
    """Ask the sources, judge what they say and publish one snapshot of all that passed."""
    stores = [name for name in names if is_remote(name)]
    importers = [name for name in names if name not in stores]
    sources, skipped = chosen(importers) if importers or not names else ([], [])
    for name, role in _HEEDED.items():
        if getattr(options, name) and not any(name in source.heeds for source in sources):
            raise UsageError(f"{role}, and none is asked. Leave it out, or name one with --from.")
    known = known_of(catalog)
    earlier = {(part.kind, part.source): file for _, part, file in folder.newest()}
    today = clock.today()
    deadline = Deadline(options.seconds or limit("limit_refresh_seconds"))
    asking = Deadline(deadline.left_s * _ASKING_SHARE, within=deadline)
    with folder.workplace() as place:

        def ask(source: Source, number: int) -> list[SourceOutcome]:
            return [refresh_one(source, known, earlier, place / f"{number}", options, today, asking)]

        jobs: list[Callable[[], list[SourceOutcome]]] = [
            *(partial(ask, source, number) for number, source in enumerate(sources)),
            *(partial(_of_store, url, folder, place, asking) for url in stores),
        ]
        names_of_jobs = [*(source.name for source in sources), *map(place_of, stores)]
        outcomes: list[SourceOutcome] = []
        for name, done in zip(names_of_jobs, deadline.all_of(jobs, SIDE_BY_SIDE), strict=True):
            outcomes += [SourceOutcome(name, "failed", "the time for this refresh is over.")] if done is None else done
        # one snapshot of all: what came of a refresh is there as a whole or not at all
        parts = [part for outcome in outcomes for part in outcome.parts]
        for digest in dict.fromkeys(part.sha256 for part in parts):
            folder.adopt(place / digest)
        snapshot = folder.publish(parts, place) if parts else None
    return [*outcomes, *skipped], snapshot


def refresh_one(
    source: Source,
    known: Known,
    earlier: Mapping[tuple[str, str], Path],
    place: Path,
    options: RefreshOptions,
    today: date,
    asking: Deadline | None = None,
) -> SourceOutcome:
    """Fetch, complete and judge one source; whatever goes wrong is its own, but for a full disk."""
    desk = None
    progress = options.progress or (lambda *_: None)
    before, before_unknown = earlier.get((source.kind, source.name)), earlier.get((UNKNOWN_KIND, source.name))
    try:
        with Client(mirror=options.mirror, deadline=asking, pause=options.pause) as client:
            desk = Desk(
                client, place, today, {"regions": options.regions, "columns": options.columns, "progress": progress}
            )
            progress(source.name, "fetching")
            desk.source_id, desk.copied = source.id_on(today), source.copied
            source.fetch(desk)
            progress(source.name, "checking")
            if source.kind == "tokens":
                verdict = judge_tokens(desk, known, before, before_unknown, options.accept, source.id_on(today))
            elif source.kind == "availability":
                verdict = judge_sales(desk, known, before, before_unknown, options.accept)
            else:
                complete(desk, known)
                verdict = judge(desk, known, source, before, before_unknown, options.accept)
            parts = [_write_part(desk, source, source.kind, verdict.rows, verdict.counts, today)]
            # likewise what nobody could read: an empty part says that all of it can be read by now
            if verdict.unknown or before_unknown:
                parts.append(_write_part(desk, source, UNKNOWN_KIND, sum(verdict.unknown.values()), {}, today))
            # written anew, empty too, where rows waited before: else the old ones would go on waiting
            waits = WAITING + source.kind
            if source.kind != "availability" and (verdict.held or (waits, source.name) in earlier):
                parts.append(_write_part(desk, source, waits, sum(verdict.held.values()), {}, today))
            progress(source.name, "done")
            failures = tuple(without_secrets(text) for text in desk.failures)
            state = "published" if verdict.rows or not verdict.held else "waiting"
            return SourceOutcome(source.name, state, "", verdict, tuple(parts), client.fetched_bytes, failures)
    except DiskError:
        raise
    except GpuCostError as error:
        reason = without_secrets(str(error))
    except Exception as error:  # an importer that trips over its source must not take the others along
        if is_of_disk(error):
            raise disk_trouble(place, error) from None
        reason = f"cannot be read ({type(error).__name__}): its format may have changed."
    finally:
        if desk is not None:
            desk.close()
    progress(source.name, "failed")
    return SourceOutcome(source.name, "failed", reason)


def _of_store(url: str, folder: Folder, place: Path, asking: Deadline) -> list[SourceOutcome]:
    """Take over from a published store what each of its sources said last, where it is newer than what is here.

    Its publisher has judged the prices; what is checked here is that they are those that were published.
    """
    from gpucost.catalog.settings import cache_folder
    from gpucost.store.remote import fetched

    try:
        store = fetched(url, cache_folder() / "stores", deadline=Deadline(asking.left_s, within=asking))
    except DiskError:
        raise
    except GpuCostError as error:
        return [SourceOutcome(place_of(url), "failed", without_secrets(str(error)))]
    present_parts = {(part.kind, part.source): part for _, part, _ in folder.newest()}
    outcomes: dict[str, SourceOutcome] = {}
    for _, part, file in store.newest():
        present = present_parts.get((part.kind, part.source))
        if present is not None and (present.sha256 == part.sha256 or present.observed_on > part.observed_on):
            outcomes.setdefault(
                part.source, SourceOutcome(part.source, "unchanged", f"{place_of(url)} has nothing newer.")
            )
            continue
        shutil.copyfile(file, place / part.sha256)
        earlier = outcomes.get(part.source)  # of another kind of its rows
        parts = (*(earlier.parts if earlier is not None else ()), part)
        if part.kind == UNKNOWN_KIND or part.kind.startswith(WAITING):
            verdict = earlier.verdict if earlier is not None else CandidateVerdict()
        else:
            new, changed, same, gone = (part.changes.get(name, 0) for name in ("new", "changed", "same", "gone"))
            verdict = CandidateVerdict(part.rows, new, changed, same, gone)
        outcomes[part.source] = SourceOutcome(part.source, "published", f"from {place_of(url)}", verdict, parts)
    return [*outcomes.values(), *(SourceOutcome(place_of(url), "failed", text) for text in store.faults)]


def _write_part(desk: Desk, source: Source, kind: str, rows: int, changes: Mapping[str, int], today: date) -> Part:
    """Write a table of a source (its rows, those nobody could read or those that wait), named by its hash."""
    file = desk.path(f"{kind}.parquet")
    table = "waiting" if kind.startswith(WAITING) else "part"
    if kind == UNKNOWN_KIND:
        table = "apart"
    desk.connection.execute("SET preserve_insertion_order = true")  # the table is in order: equal prices, equal bytes
    put_parquet(desk.connection, f"FROM {table}", file, ", COMPRESSION zstd")
    digest, size = hash_of(file), file.stat().st_size
    file.replace(desk.folder.parent / digest)
    origin = {
        "source_id": source.id_on(today),
        "publisher": source.publisher,
        "title": f"{source.title}, as refreshed on {today}",
        "locator": source.locator,
        "note": "read by gpucost prices refresh",
    }
    return Part(source.name, kind, today, rows, size, digest, origin, changes)


def without_secrets(text: str) -> str:
    """Return a text without the values of keys that the environment holds, whoever wrote them into it."""
    for name in {name for source in SOURCES.values() for name in source.keys}:
        value = os.environ.get(name, "")
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "…")
    return text


class Progress:
    """What each source is doing, as one line for a terminal; threads tell it."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write, self._lock = write, threading.Lock()
        self._doing: dict[str, str] = {}

    def __call__(self, source: str, doing: str) -> None:
        """Take note of what a source is doing and show it."""
        with self._lock:
            self._doing[source] = doing
            over = sum(item in ("done", "failed") for item in self._doing.values())
            busy = [f"{name} {item}" for name, item in self._doing.items() if item not in ("done", "failed")]
            total = len(self._doing)
            bar = "█" * round(20 * over / total) + "░" * (20 - round(20 * over / total))
            self._write(f"{bar} {over} of {total} sources  {', '.join(busy)}")
