"""A folder of price snapshots: append-only, named by their content, written and read by any number of processes.

    snapshots/<moment>-<hash>.json    what one refresh published: its parts, each with rows, bytes and SHA-256
    parts/<sha256>.parquet            the prices of one source
    tmp/<process>-<random>/           what is being written

A snapshot is there once its manifest is: parts come first, each file is complete and on the disk before it gets its
name, and no file is ever written again. So readers need no lock, and whatever is killed leaves the old state or the
new. A manifest's name carries the hash of its content and its content those of its parts: damage shows, and the rest
serves.
"""

import hmac
import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date, datetime
from functools import cached_property
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from gpucost import clock
from gpucost.errors import DataError, UsageError
from gpucost.gate import faults, read_bytes, regular_file, shown
from gpucost.store.files import disk_trouble, replacing, write_bytes

FORMAT = 1
SEAL, SEAL_KEY = "seal.json", "GPUCOST_STORE_KEY"
_NAME = re.compile(r"\d{8}T\d{12}Z-[0-9a-f]{16}")
_HASH = re.compile(r"[0-9a-f]{64}")
# of what a manifest says of a part: JSON from outside, which a record does not check
_TYPES = {"source": str, "kind": str, "rows": int, "size_bytes": int, "sha256": str, "origin": dict, "changes": dict}
_UNFINISHED_S = 86_400  # what lies in tmp/ for longer belongs to a process that is no more
_YOUNG_S = 3_600  # a part without a manifest may still get one


class Part(Struct, frozen=True):
    """The prices of one source in a snapshot: what they are, how they changed, and the file that holds them."""

    source: str
    kind: str  # offers | tokens | availability | unknown
    observed_on: date
    rows: int
    size_bytes: int
    sha256: str
    origin: Mapping[str, str]  # a row of the table of sources
    changes: Mapping[str, int] = field(default_factory=dict)  # new, changed, gone, held back, left out


class Snapshot(Struct, frozen=True):
    """What one refresh published."""

    name: str
    made_at: datetime
    parts: tuple[Part, ...]

    @property
    def id(self) -> str:
        """Return the short id that answers carry: the start of the content's hash."""
        return self.name.rpartition("-")[2][:8]


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a regular file, read in pieces."""
    with regular_file(path) as file:
        return file_digest(file, "sha256").hexdigest()


class Folder:
    """A store's folder; nothing is made before something is published."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[str] = []

    def __bool__(self) -> bool:
        """Tell whether there is a store; a folder that cannot be looked at is an error, which `is_dir` may hide."""
        try:
            return stat.S_ISDIR((self.path / "snapshots").stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    # --- reading

    def names(self) -> list[str]:
        """Return the names of the manifests, the oldest first."""
        try:
            file_names = os.listdir(self.path / "snapshots")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UsageError(f"the store {self.path} cannot be read: {error.strerror}.") from None
        return sorted(name[:-5] for name in file_names if name.endswith(".json") and _NAME.fullmatch(name[:-5]))

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots whose manifests are whole, the oldest first; others are named in `faults`."""
        readable = []
        for name in self.names():
            file = self.path / "snapshots" / f"{name}.json"
            try:
                readable.append(parsed(name, read_bytes(file)))
            except UsageError as error:  # damaged, or no file at all: what is whole still serves
                if os.path.lexists(file):  # else it was pruned meanwhile
                    self._fault(f"{file.name}: {error}")
        return readable

    def part_file(self, part: Part) -> Path | None:
        """Return the file of a part after checking its hash; None, and a fault, where it is damaged or missing."""
        file = self.path / "parts" / f"{part.sha256}.parquet"
        try:
            # the size is looked at first: it tells most damage without reading the file
            intact = file.stat().st_size == part.size_bytes and hash_of(file) == part.sha256
        except FileNotFoundError:
            self._fault(f"{file} is missing")
            return None
        except UsageError as error:
            self._fault(str(error))
            return None
        except OSError as error:
            self._fault(f"{file} cannot be read: {error.strerror}")
            return None
        if not intact:
            self._fault(f"{file} is damaged: its content has a different SHA-256")
            return None
        return file

    def _fault(self, text: str) -> None:
        if text not in self.faults:
            self.faults.append(text)

    def newest(
        self, until: date | None = None, every: bool = False, last: str | None = None
    ) -> list[tuple[Snapshot, Part, Path]]:
        """Return the newest whole part of each source that was seen by a day; `every` returns one of each day.

        What was published after the snapshot with the id `last` is left out.
        """
        parts: list[tuple[Snapshot, Part, Path]] = []
        keys: set[tuple[str, str, date | None]] = set()
        snapshots = self.snapshots
        if last is not None:
            ids = [snapshot.id for snapshot in snapshots]
            # up to the last with that id; a store that has it not knows nothing of that time
            snapshots = snapshots[: len(ids) - ids[::-1].index(last)] if last in ids else []
        for snapshot in reversed(snapshots):
            for part in snapshot.parts:
                key = (part.kind, part.source, part.observed_on if every else None)
                if (until is not None and part.observed_on > until) or key in keys:
                    continue
                # of a damaged part the one before serves: its key stays open
                if (file := self.part_file(part)) is not None:
                    keys.add(key)
                    parts.append((snapshot, part, file))
        return parts

    # --- writing

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """Offer a folder for what is being written, on the store's own disk."""
        folder = self.path / "tmp" / f"{os.getpid()}-{secrets.token_hex(6)}"
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise UsageError(f"the store {self.path} cannot be written: {error.strerror}. Name another.") from None
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def adopt(self, file: Path) -> tuple[str, int]:
        """Take a finished file in as a part: on the disk first, then under the name of its hash."""
        digest, size = hash_of(file), file.stat().st_size
        target = self.path / "parts" / f"{digest}.parquet"
        with self._writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            _sync(file)
            os.replace(file, target)
            _sync(target.parent)
        return digest, size

    @contextmanager
    def _writing(self, target: Path) -> Iterator[None]:
        """Say what keeps a file from being written."""
        try:
            yield
        except OSError as error:
            raise disk_trouble(target, error) from None

    def publish(self, parts: Iterable[Part], workplace: Path, now: datetime | None = None) -> Snapshot:
        """Write the manifest of parts that were adopted; from then on the snapshot exists."""
        made_at = now or clock.now()
        rows = [{**asdict(part), "observed_on": part.observed_on.isoformat()} for part in parts]
        content = {"format": FORMAT, "made_at": made_at.isoformat(), "parts": rows}
        body = json.dumps(content, indent=1, sort_keys=True).encode()
        name = f"{made_at:%Y%m%dT%H%M%S%f}Z-{sha256(body).hexdigest()[:16]}"
        draft = workplace / f"{name}.json"
        target = self.path / "snapshots" / draft.name
        with self._writing(target):
            draft.write_bytes(body)
            _sync(draft)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(draft, target)
            _sync(target.parent)
        self.__dict__.pop("snapshots", None)
        return parsed(name, body)

    # --- upkeep

    def verify(self) -> list[str]:
        """Check every manifest and every part; return what is wrong."""
        self.__dict__.pop("snapshots", None)
        self.faults.clear()
        # snapshots share most parts: each is read once
        for part in {part.sha256: part for snapshot in self.snapshots for part in snapshot.parts}.values():
            self.part_file(part)
        return list(self.faults)

    def prune(self, keep: int, now_s: float | None = None) -> tuple[int, int]:
        """Remove all but the newest `keep` snapshots and those that still speak; return snapshots and bytes removed."""
        now_s = time.time() if now_s is None else now_s
        speaking = {snapshot.name for snapshot, _, _ in self.newest()}
        # the last word of a source that was not asked lately lies in an old snapshot
        old = [item for item in self.snapshots[: max(0, len(self.snapshots) - keep)] if item.name not in speaking]
        for snapshot in old:
            with suppress(FileNotFoundError):
                (self.path / "snapshots" / f"{snapshot.name}.json").unlink()
        self.__dict__.pop("snapshots", None)
        used = {part.sha256 for snapshot in self.snapshots for part in snapshot.parts}
        freed = 0
        # parts that no snapshot names any more, but for those that a refresh has just written
        for file in (self.path / "parts").glob("*.parquet"):
            with suppress(FileNotFoundError):
                status = file.stat()
                if file.stem not in used and now_s - status.st_mtime > _YOUNG_S:
                    file.unlink()
                    freed += status.st_size
        for leftover in (self.path / "tmp").glob("*"):
            with suppress(FileNotFoundError):
                if now_s - leftover.stat().st_mtime > _UNFINISHED_S:
                    shutil.rmtree(leftover, ignore_errors=True)
        return len(old), freed

    def whole(self) -> Iterator[tuple[str, list[tuple[str, Path]]]]:
        """Yield the snapshots that are whole, each with its files and where they belong: the manifest comes last."""
        for snapshot in self.snapshots:
            files = [self.part_file(part) for part in snapshot.parts]
            # a snapshot with a damaged part is not handed on: its readers could not tell
            if None not in files:
                manifest = self.path / "snapshots" / f"{snapshot.name}.json"
                yield snapshot.name, [*(("parts", file) for file in files if file), ("snapshots", manifest)]

    def export(self, target: Path, changes: str = "") -> int:
        """Write the whole snapshots to a folder that any web server can hand out; its index comes last.

        Beside it stand what changed in words, and the seal: the SHA-256 of every file.
        """
        for kind in ("snapshots", "parts"):
            (target / kind).mkdir(parents=True, exist_ok=True)
        names, hashes = [], {}
        for name, files in self.whole():
            for kind, file in files:
                copy = target / kind / file.name
                # its name is its hash: a copy of that size is the same, and stays as it is for those who mirror it
                if not copy.exists() or copy.stat().st_size != file.stat().st_size:
                    with replacing(copy) as draft:
                        shutil.copyfile(file, draft)
                hashes[f"{kind}/{file.name}"] = hash_of(file)
            names.append(name)
        if changes:
            write_bytes(target / "CHANGES.md", changes.encode())
        index = json.dumps({"format": FORMAT, "snapshots": names}, indent=1).encode()
        write_bytes(target / SEAL, seal({**hashes, "index.json": sha256(index).hexdigest()}))
        write_bytes(target / "index.json", index)
        return len(names)


def seal(hashes: Mapping[str, str]) -> bytes:
    """Return the seal of a published store: the SHA-256 of every file, and who signed it where there is a key.

    The key (`GPUCOST_STORE_KEY`, shared by publisher and readers) signs by HMAC-SHA-256; without one the seal proves
    that nothing changed on the way from the one who published it, not who that was.
    """
    listing = _listing(hashes)
    content = {"format": FORMAT, "files": dict(sorted(hashes.items())), "sha256": sha256(listing).hexdigest()}
    if key := os.environ.get(SEAL_KEY, ""):
        content["hmac_sha256"] = hmac.new(key.encode(), listing, sha256).hexdigest()
    return json.dumps(content, indent=1).encode()


def _listing(hashes: Mapping[str, str]) -> bytes:
    """Return the bytes that a seal's own hash and signature are of: publisher and reader write them alike."""
    return json.dumps({"format": FORMAT, "files": dict(sorted(hashes.items()))}, indent=1, sort_keys=True).encode()


def sealed(content: Any, location: str) -> Mapping[str, str]:
    """Return the SHA-256 of each file by a seal, after checking it: against itself, and the key where one is set."""
    try:
        files, stated = dict(content["files"]), str(content["sha256"])
        valid = all(isinstance(name, str) and _HASH.fullmatch(value) for name, value in files.items())
    except (KeyError, TypeError, ValueError):
        raise DataError("is not the seal of a store", file=f"{location}/{SEAL}") from None
    listing = _listing(files) if valid else b""
    if not valid or sha256(listing).hexdigest() != stated:
        raise DataError("is damaged: its content has a different SHA-256", file=f"{location}/{SEAL}")
    if key := os.environ.get(SEAL_KEY, ""):
        signature = hmac.new(key.encode(), listing, sha256).hexdigest()
        if not hmac.compare_digest(signature, str(content.get("hmac_sha256", ""))):
            raise DataError(f"is not signed with the key in {SEAL_KEY}", file=f"{location}/{SEAL}")
    return files


def parsed(name: str, body: bytes) -> Snapshot:
    """Read a manifest whose name promises its content; what differs, or is none, is a sentence."""
    # the name carries the first 64 bits of the hash: enough against chance, and the parts have theirs whole
    if not _NAME.fullmatch(name) or sha256(body).hexdigest()[:16] != name.rpartition("-")[2]:
        raise DataError("is damaged: its content does not match its name", file=f"{name}.json")
    try:
        content = json.loads(body)
        if content["format"] != FORMAT:
            reason = f"has the format {shown(content['format'])}, which a newer gpucost writes"
            raise DataError(reason, file=f"{name}.json")
        parts = []
        for item in content["parts"]:
            values = {**item["origin"], **item.get("changes", {})}.values()
            typed = all(type(item.get(name, kind())) is kind for name, kind in _TYPES.items())
            plain = all(value is None or type(value) in (int, str) for value in values)
            if not (typed and plain and _HASH.fullmatch(item["sha256"])) or any(True for _ in faults(item)):
                raise ValueError("a value of another type")
            parts.append(Part(**{**item, "observed_on": date.fromisoformat(item["observed_on"])}))
        return Snapshot(name, datetime.fromisoformat(content["made_at"]), tuple(parts))
    except (KeyError, TypeError, ValueError, RecursionError):
        raise DataError("is not the manifest of a snapshot", file=f"{name}.json") from None


def _sync(path: Path) -> None:
    """Have a file or folder on the disk before anything points at it; a system that cannot says nothing."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
