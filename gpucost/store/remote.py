"""The copy in the cache of a store that somebody publishes as static files at an address: fetched, checked, read-only.

What a store's folder holds is told in store/folder.py, how an address is asked in store/client.py.
"""

import json
import os
from hashlib import sha256
from pathlib import Path

from gpucost.errors import DataError, DiskError
from gpucost.limits import Deadline, limit
from gpucost.store.client import Client, FetchError, place_of
from gpucost.store.files import replacing, write_bytes
from gpucost.store.folder import FORMAT, SEAL, SEAL_KEY, Folder, parsed, sealed

_MOST_SNAPSHOTS = 10_000  # of an index: more than a snapshot an hour makes in a year
_SMALL_BYTES = 8_000_000  # of a seal, an index or a manifest; a part states its own size


def is_remote(location: str) -> bool:
    """Tell whether a store's place is an address."""
    return location.lower().startswith(("https://", "http://"))


def fetched(url: str, cache: Path, client: Client | None = None, deadline: Deadline | None = None) -> Folder:
    """Bring the copy of a published store up to date and return it; without a connection the copy serves, and says so.

    Only what is missing is fetched, the newest first, until the time is over: manifests and parts bear their hash in
    their names and never change.
    """
    deadline = deadline or Deadline(limit("limit_store_seconds"))
    folder = Folder(cache / sha256(url.rstrip("/").encode()).hexdigest()[:16])
    most_bytes = limit("limit_refresh_bytes") / 4  # of one file; a client takes four times that in all
    with client or Client(deadline=deadline, most_bytes=most_bytes) as connection:
        if deadline.all_of([lambda: _update(folder, url, connection)]) == [None]:  # not done in time
            if not folder:
                raise FetchError(f"{place_of(url)}: its time is over. The setting limit_store_seconds gives it more.")
            folder.faults.append(f"{place_of(url)}: its time is over. Its copy of the last time serves.")
    return folder


def _update(folder: Folder, url: str, client: Client) -> bool:
    """Fetch what a copy lacks; what cannot be had is a fault of the folder."""
    base = url.rstrip("/")
    try:
        hashes = None
        try:
            hashes = sealed(client.json(f"{base}/{SEAL}", most_bytes=_SMALL_BYTES), place_of(url))
        except FetchError:  # a store of before seals; whoever sets a key trusts only what is signed
            if os.environ.get(SEAL_KEY):
                raise FetchError(f"{place_of(url)}: has no {SEAL}, and {SEAL_KEY} asks for a signed one.") from None
        body = client.body(f"{base}/index.json", most_bytes=_SMALL_BYTES)
        if hashes is not None and hashes.get("index.json") != sha256(body).hexdigest():
            # fetched while it was being published: the index is written after its seal
            raise FetchError(f"{place_of(url)}: its index.json does not match its {SEAL}. Try again in a minute.")
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            content = None
        names = content.get("snapshots") if isinstance(content, dict) and content.get("format") == FORMAT else None
        if (
            not isinstance(names, list)
            or len(names) > _MOST_SNAPSHOTS
            or not all(isinstance(name, str) for name in names)
        ):
            raise FetchError(f"{place_of(url)}: has no store (index.json). Publish one with `gpucost prices export`.")
    except FetchError as error:
        if not folder:
            raise
        folder.faults.append(f"{error} Its copy of the last time serves.")
        return True
    known = set(folder.names())
    missing = [name for name in sorted(names, reverse=True) if name not in known]
    for turn, name in enumerate(missing):
        if client.is_late:
            left = len(missing) - turn
            folder.faults.append(f"{place_of(url)}: its time is over with {left:,} snapshots not fetched.")
            break
        # its manifest and the parts that are missing; what is not what its name says is left out
        try:
            # a name with a slash could lead out of the folder: it is never asked for, and empty bytes match no hash
            safe_name = name.replace("/", "_").replace("\\", "_")
            body = b"" if safe_name != name else client.body(f"{base}/snapshots/{name}.json", most_bytes=_SMALL_BYTES)
            for part in parsed(safe_name, body).parts:
                target = folder.path / "parts" / f"{part.sha256}.parquet"
                if target.exists():
                    continue
                _make_folder(target.parent)
                part_url = f"{base}/parts/{part.sha256}.parquet"
                with replacing(target) as draft:
                    client.file(part_url, draft, digest=part.sha256, most_bytes=part.size_bytes)
            manifest = folder.path / "snapshots" / f"{name}.json"  # after its parts: what it names is then there
            _make_folder(manifest.parent)
            write_bytes(manifest, body)
        except DiskError:  # every snapshot would meet it
            raise
        except (DataError, FetchError) as error:
            folder.faults.append(str(error))
    return True


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DiskError(f"the cache {folder} cannot be written: {error.strerror}.") from None
