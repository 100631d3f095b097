"""What is kept of a large file of prices in the user's cache folder: read and judged once, then asked by the day.

An index is a folder of three files. `kinds.parquet` holds what many prices share (seller, product, place, terms), each
combination once; `facts.parquet` the days and amounts of every price, by the day on which it is superseded, so that a
question reads only the groups of rows that may speak on its day; `verdict.json` how many rows and offers there are and
the SHA-256 of the other two.

What an index holds follows from the bytes of the file, the SQL that completes and judges it, and what its names mean;
its folder is named by a hash of these. Under another name nothing is found, and one whose bytes have changed is made
anew. The folder of an index gets its name in one step, so that several processes may make the same one.

The SHA-256 of a gigabyte takes seconds, so a digest is kept with the looks of its file (size, node, days of its last
change) and read again once these differ. Whoever can change a file and hide that in its looks can also write to the
cache folder, and is the user: accidents are guarded against here, not the owner of the book.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from gpucost import gate
from gpucost.catalog import cached
from gpucost.catalog.asof import NEVER, PRICE_ON, USERS_PREFERENCE
from gpucost.catalog.loader import Store, engine, file_name, named
from gpucost.catalog.price_rows import BOOK_COLUMNS
from gpucost.catalog.settings import cache_folder
from gpucost.errors import DataError, UsageError
from gpucost.limits import limit
from gpucost.schemas import TABLES
from gpucost.store.files import put_parquet, write_bytes

FEWEST_ROWS = 200_000  # of a Parquet file that is worth an index; below it is read where it lies
_SETTLED_NS = 2_000_000_000  # after which a change of a file shows in its looks, on the coarsest file systems
_GROUP_ROWS = 61_440  # of a file, which are read or left out together
_THREADS, _MEMORY_MB = 4, 800  # that reading a file takes at most
_MOST_KEPT, _UNUSED_S = 4, 3_600  # indexes that are kept, and how long another process may still read one beyond
_FORGOTTEN_S = 90 * 86_400  # after which the digest of a file is read anew
_FOLDER, _SEEN = "books", "seen-"

_OWN = (  # columns that differ from price to price; the others make a kind
    "valid_from",
    "observed_on",
    "recorded_on",
    "valid_until",
    "usd_per_hour",
    "usd_per_gpu_hour",
    "recurring_usd_per_hour",
    "upfront_usd",
    "date_precision",
    "source_id",
    "confidence",
    "notes",
)
_COLUMNS = tuple(column.name for column in (*TABLES["offers"].columns, *BOOK_COLUMNS))
_KINDS = tuple(name for name in _COLUMNS if name not in _OWN)
_ORDER = ("gpu", "provider", "region", "option")  # of kinds, so that prices of a day that are asked for lie together


class Index(NamedTuple):
    """The prices of a large file that speak: where they are, and how many rows and offers the file has."""

    folder: Path
    rows: int
    offers: int
    kept: int | None  # offers that speak where the file has more than an answer ranks

    @property
    def files(self) -> tuple[Path, Path]:
        """Return the files that its SQL reads."""
        return self.folder / "kinds.parquet", self.folder / "facts.parquet"

    def prices(self, *more: str) -> str:
        """Return the SQL of its prices, with further columns of the facts."""
        kinds, facts = (f"read_parquet({file_name(file)})" for file in self.files)
        columns = ", ".join(f"{'f' if name in _OWN else 'k'}.{named(name)}" for name in _COLUMNS)
        columns = ", ".join((columns, *(f"f.{name}" for name in more)))
        return f"SELECT {columns} FROM {facts} AS f JOIN {kinds} AS k USING (kind)"


# --- Digests of large files.


def refuse_large(file: Path) -> None:
    """Refuse a file of more bytes than one of a book may have."""
    if _looks(file)[0] > (most := limit("limit_book_file_bytes")):
        reason = f"is larger than {most / 1e6:,.0f} MB. The setting limit_book_file_bytes raises that."
        raise DataError(reason, file=str(file))


def digest_of(file: Path) -> str:
    """Return the SHA-256 of a file; its bytes are read again only where its looks have changed."""
    looks = _looks(file)
    note = place() / f"{_SEEN}{hashlib.sha256(os.fsencode(os.path.abspath(file))).hexdigest()}.json"
    with suppress(*cached.UNREADABLE):
        saved = json.loads(cached.unsealed(note))
        if saved["looks"] == looks:
            return str(saved["digest"])
    began = time.time_ns()
    with gate.regular_file(file) as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if began - max(looks[1:3]) > _SETTLED_NS and _looks(file) == looks:
        cached.seal(note, json.dumps({"looks": looks, "digest": digest}).encode())
    return digest


def _looks(file: Path) -> list[int]:
    try:
        found = file.stat()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}. Name a file that you may read.") from None
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev]


# --- Finding an index, and making it.


def place() -> Path:
    """Return the folder of indexes."""
    return cache_folder() / _FOLDER


def key_of(digest: str, *follows: str) -> str:
    """Return the name of the index of a file: a hash of its bytes' digest and of all else that its prices follow from.

    The database's version is part of it: hashes and formats are its own.
    """
    return hashlib.sha256("\0".join((digest, engine().__version__, *_SQL, *follows)).encode()).hexdigest()[:32]


def find(key: str) -> Index | None:
    """Return the index of a name, where there is one and every byte is what it was."""
    folder = place() / key
    with suppress(*cached.UNREADABLE):
        index = _opened(folder)
        os.utime(folder)  # the one that was not used for longest goes first
        return index
    return None


def _opened(folder: Path) -> Index:
    """Open an index; whatever is not as it was written raises one of `cached.UNREADABLE`."""
    verdict = json.loads(cached.unsealed(folder / "verdict.json"))
    index = Index(folder, int(verdict["rows"]), int(verdict["offers"]), verdict["kept"])
    if verdict["sha256"] != [digest_of(file) for file in index.files]:
        raise ValueError
    return index


@contextmanager
def workshop(store: Store, bounded: bool = True) -> Iterator[Store]:
    """Hand out a database of its own over the same tables, bounded in memory, in which a file is read and sorted.

    What is sorted goes to files beside; a step that needs more than the bound at once is for an unbounded one.
    """
    import tempfile

    with tempfile.TemporaryDirectory(dir=store.folder(), ignore_cleanup_errors=True) as spare:
        work = Store(store.root)
        for name, value in {
            "threads": min(_THREADS, os.cpu_count() or 1),
            **({"memory_limit": f"'{_MEMORY_MB}MB'"} if bounded else {}),
            "temp_directory": f"'{spare}'",
        }.items():
            work.execute(f"SET {name} = {value}")
        try:
            yield work
        finally:
            work.close()


def make(store: Store, key: str, numbered: str, counts: Mapping[str, Any], spare: Path) -> tuple[Index, str]:
    """Make the index of judged rows in the cache folder; where it takes none, in a spare folder, with the reason."""
    reason = ""
    for parent in (place(), spare):
        folder = parent / f"{key}.part-{os.getpid()}-{os.urandom(4).hex()}"
        try:
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.mkdir(mode=0o700)
            with suppress(OSError):
                _forget_old(parent, key)
            return _placed(_written(store, folder, numbered, counts), parent / key), reason
        except (OSError, UsageError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            if parent == spare:
                raise
            reason = getattr(error, "strerror", None) or str(error)
    raise AssertionError


def _written(store: Store, folder: Path, numbered: str, counts: Mapping[str, Any]) -> Index:
    """Write the files of an index from the SQL of judged rows."""
    index = Index(folder, counts["rows"], counts["offers"], counts["kept"])
    kinds, facts = index.files
    try:
        store.execute(f"CREATE TABLE judged_kinds AS {_SQL[0].format(rows=numbered)}")
        put_parquet(store, "FROM judged_kinds ORDER BY kind", kinds)
        store.execute(f"CREATE TABLE judged_facts AS {_SQL[1].format(rows=numbered)}")
        put_parquet(store, _SQL[2], facts, f", ROW_GROUP_SIZE {_GROUP_ROWS}")
    finally:
        for table in ("judged_kinds", "judged_facts"):
            store.execute(f"DROP TABLE IF EXISTS {table}")
    sha256 = []
    for file in index.files:
        with file.open("rb") as content:
            sha256.append(hashlib.file_digest(content, "sha256").hexdigest())
    write_bytes(folder / "verdict.json", cached.sealed(json.dumps({**counts, "sha256": sha256}).encode()))
    return index


def _placed(index: Index, target: Path) -> Index:
    """Give a new index its name: one that stands there already is used if it is whole, else it makes room."""
    with suppress(OSError):
        index.folder.rename(target)
        return index._replace(folder=target)
    with suppress(*cached.UNREADABLE):
        whole = _opened(target)
        shutil.rmtree(index.folder, ignore_errors=True)
        return whole
    broken = index.folder.with_name(f"{index.folder.name}-broken")
    target.rename(broken)
    shutil.rmtree(broken, ignore_errors=True) if broken.is_dir() else broken.unlink(missing_ok=True)
    index.folder.rename(target)
    return index._replace(folder=target)


def _forget_old(parent: Path, key: str) -> None:
    """Remove indexes that were not used lately beyond the few that are kept, and what ended processes left."""
    entries = [entry for entry in os.scandir(parent) if entry.is_dir(follow_symlinks=False) and key not in entry.name]
    entries.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
    long_ago = time.time() - _UNUSED_S
    for note in parent.glob(f"{_SEEN}*"):
        if note.stat().st_mtime < time.time() - _FORGOTTEN_S:
            note.unlink(missing_ok=True)
    for number, entry in enumerate(entries):
        if entry.stat().st_mtime < long_ago and (number >= _MOST_KEPT or ".part-" in entry.name):
            shutil.rmtree(entry.path, ignore_errors=True)


def _listed(names: Sequence[str], of: str = "") -> str:
    return ", ".join(f"{of}{named(name)}" for name in names)


# The SQL that makes the files of judged `rows`. A price is superseded on the first day on which another of its offer
# that `prices_on` prefers is known and holds: from then on it can speak on no day that is seen from later than that.
# What ends is left out: when it has ended, the earlier price speaks again.
_SQL = (
    f"""SELECT row_number() OVER (ORDER BY {_listed(_ORDER)}, offer_id) AS kind,
        dense_rank() OVER (ORDER BY offer_id) AS offer, * FROM (SELECT DISTINCT {_listed(_KINDS)} FROM ({{rows}}))""",
    f"""SELECT k.kind, k.offer, k.offer_kind, r.n, {_listed(_OWN, "r.")} FROM ({{rows}}) AS r JOIN judged_kinds AS k
        ON {" AND ".join(f"r.{named(name)} IS NOT DISTINCT FROM k.{named(name)}" for name in _KINDS)}""",
    f"""SELECT kind, n, {_listed(_OWN)}, {PRICE_ON} AS speaks_from, coalesce(min(CASE
        WHEN valid_until IS NULL AND offer_kind = 'offer' THEN greatest({PRICE_ON}, recorded_on) END) OVER (
        PARTITION BY offer ORDER BY {USERS_PREFERENCE} DESC
        RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP), {NEVER}) AS superseded_on
    FROM judged_facts ORDER BY superseded_on, kind""",
)
