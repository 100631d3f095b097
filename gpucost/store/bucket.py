"""A store in a bucket: s3:// addresses, read and published through DuckDB's extension httpfs where it is there.

Keys come from the environment (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`,
`AWS_ENDPOINT_URL`) and are never repeated: an error says the address and what kind of failure it was.
"""

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gpucost.errors import UsageError
from gpucost.limits import Deadline, limit
from gpucost.store.client import FetchError
from gpucost.store.folder import SEAL, hash_of, index_of, seal

if TYPE_CHECKING:
    from gpucost.store.folder import Folder

_SECRET = {
    "KEY_ID": "AWS_ACCESS_KEY_ID",
    "SECRET": "AWS_SECRET_ACCESS_KEY",
    "SESSION_TOKEN": "AWS_SESSION_TOKEN",
    "REGION": "AWS_REGION",
}


class Bucket:
    """Objects by address, each bounded in size."""

    def __init__(self, deadline: Deadline | None = None) -> None:
        from duckdb import connect

        self._connection = connect(":memory:")
        self._deadline = deadline or Deadline(limit("limit_refresh_seconds"))
        self.most_bytes = int(limit("limit_refresh_bytes") / 4)  # an object is held in memory while it is read

    def __enter__(self) -> "Bucket":
        _load(self._connection)
        self._connection.execute("SET memory_limit = '1GB'")
        self._connection.execute(_credentials(os.environ))
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @property
    def is_late(self) -> bool:
        """Tell whether the time for its requests is over."""
        return self._deadline.over

    def _asked(self, statement: str, given: list[Any]) -> Any:
        """Run a statement and return its first row; it ends with the deadline."""
        with self._deadline.ending(self._connection.interrupt):
            return self._connection.execute(statement, given).fetchone()

    def size(self, url: str) -> int | None:
        """Return the bytes of an object, or None where there is none."""
        from duckdb import Error

        try:
            row: tuple[int] | None = self._asked("SELECT size FROM read_blob(?)", [url])
        except Error:
            return None
        return row[0] if row else None

    def put(self, url: str, body: bytes) -> None:
        """Write an object whole: readers see the one before or this one."""
        from duckdb import Error

        try:
            self._asked(f"COPY (SELECT CAST(? AS BLOB)) TO {_quoted(url)} (FORMAT blob)", [body])
        except Error as error:  # its text may repeat headers
            raise FetchError(f"{url}: cannot be written to its bucket ({type(error).__name__}).") from None

    def json(self, url: str, most_bytes: int) -> Any:
        """Read an object that is JSON."""
        try:
            return json.loads(self.body(url, most_bytes))
        except (ValueError, RecursionError):
            raise FetchError(f"{url}: the answer is not JSON.") from None

    def body(self, url: str, most_bytes: int) -> bytes:
        """Read an object whole; one larger than its bound is refused before it is read."""
        from duckdb import Error

        try:
            size = self._asked("SELECT size FROM read_blob(?)", [url])
            if size is None or size[0] > min(most_bytes, self.most_bytes):
                raise FetchError(f"{url}: is not there, or larger than {most_bytes / 1e6:,.0f} MB.")
            content: tuple[bytes] | None = self._asked("SELECT content FROM read_blob(?)", [url])
        except Error as error:  # its text may repeat headers
            raise FetchError(f"{url}: cannot be read from its bucket ({type(error).__name__}).") from None
        return content[0] if content else b""

    def file(self, url: str, target: Path, *, digest: str, most_bytes: int) -> Path:
        """Read an object into a file; one that is not what its SHA-256 says is refused."""
        data = self.body(url, most_bytes)
        if sha256(data).hexdigest() != digest:
            raise FetchError(f"{url}: is damaged: its content has a different SHA-256.")
        target.write_bytes(data)
        return target


def published(folder: "Folder", url: str) -> int:
    """Write a folder's whole snapshots into a bucket, their parts first and the index last; return how many."""
    base = url.rstrip("/")
    with Bucket() as bucket:
        names, hashes = [], {}
        for name, files in folder.whole():
            for kind, file in files:
                target = f"{base}/{kind}/{file.name}"
                hashes[f"{kind}/{file.name}"] = hash_of(file)
                if bucket.size(target) != file.stat().st_size:
                    bucket.put(target, file.read_bytes())
            names.append(name)
        index = index_of(names)
        bucket.put(f"{base}/{SEAL}", seal({**hashes, "index.json": sha256(index).hexdigest()}))
        bucket.put(f"{base}/index.json", index)
    return len(names)


def _load(connection: Any) -> None:
    """Load httpfs: installed in DuckDB's own folder, or by the package duckdb-extension-httpfs."""
    import importlib.util

    import duckdb

    package = importlib.util.find_spec("duckdb_extension_httpfs")
    folder = Path(package.origin or "").parent / f"extensions/v{duckdb.__version__}" if package else Path()
    for name in ("httpfs", str(folder / "httpfs.duckdb_extension")):
        try:
            connection.execute(f"LOAD '{name}'")
            return
        except duckdb.Error:
            continue
    raise UsageError(
        "a store in a bucket (s3://…) needs DuckDB's extension httpfs, which is not installed: run `INSTALL httpfs` in"
        " DuckDB once, or install duckdb-extension-httpfs. A folder or an https:// address needs neither."
    )


def _credentials(environment: "os._Environ[str] | dict[str, str]") -> str:
    """Return the SQL of the keys that the environment holds; without any the bucket must be public."""
    values = {name: environment[key] for name, key in _SECRET.items() if environment.get(key)}
    if (region := environment.get("AWS_DEFAULT_REGION")) and "REGION" not in values:
        values["REGION"] = region
    if endpoint := environment.get("AWS_ENDPOINT_URL"):
        parts = urlsplit(endpoint)
        values |= {"ENDPOINT": parts.netloc, "URL_STYLE": "path", "USE_SSL": str(parts.scheme == "https").lower()}
    options = "".join(f", {key} {_quoted(value)}" for key, value in values.items())
    return f"CREATE OR REPLACE SECRET store (TYPE s3{options})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
