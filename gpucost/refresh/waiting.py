"""What a refresh held back: the doubtful rows of each source, and how somebody takes some of them after a look."""

from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gpucost.catalog.loader import engine, file_name
from gpucost.catalog.names import near
from gpucost.errors import UnknownNameError
from gpucost.refresh.changes import records_of
from gpucost.refresh.integrity import WAITING
from gpucost.store.files import put_parquet
from gpucost.store.folder import Folder, Part, Snapshot, hash_of

_SHOWN = {
    "offers": "provider, instance_type, gpu, gpus, region, option, usd_per_hour AS price",
    "tokens": "provider, listing AS instance_type, NULL AS gpu, NULL AS gpus, NULL AS region, NULL AS option,"
    " output_usd_per_mtok AS price",
}
_ROW_ID = {"offers": "offer_id", "tokens": "concat_ws('/', provider, listing)"}


def waiting_rows(folder: Folder) -> list[dict[str, Any]]:
    """Return every row that waits: what it is, its price before and now, why it is in doubt, and its id."""
    rows: list[dict[str, Any]] = []
    for kind, part, file in _waiting(folder):
        sql = f"SELECT row_id, {_SHOWN[kind]}, was, doubt FROM read_parquet({file_name(file)}) ORDER BY doubt, row_id"
        rows += [{"source": part.source, **row} for row in records_of(sql)]
    return rows


def take(folder: Folder, row_ids: Sequence[str]) -> Snapshot:
    """Publish the rows of these ids; the others go on waiting."""
    ids = set(row_ids)
    known = {str(row["row_id"]) for row in waiting_rows(folder)}
    if missing := sorted(ids - known):
        raise UnknownNameError(
            "row that waits", missing[0], near(missing[0], known), "`gpucost prices waiting` lists them."
        )
    published = {(part.kind, part.source): file for _, part, file in folder.newest()}
    parts: list[Part] = []
    with folder.workplace() as place:
        for kind, part, file in _waiting(folder):
            parts += _split(place, kind, part, file, published.get((kind, part.source)), ids)
        for part in parts:
            folder.adopt(place / part.sha256)
        return folder.publish(parts, place)


def _waiting(folder: Folder) -> list[tuple[str, Part, Path]]:
    return [
        (part.kind.removeprefix(WAITING), part, file)
        for _, part, file in folder.newest()
        if part.kind.startswith(WAITING)
    ]


def _split(
    place: Path, kind: str, part: Part, waiting: Path, published: Path | None, accepted_ids: Collection[str]
) -> list[Part]:
    """Write a source's prices with the rows that are accepted, and what still waits; nothing where none of it is."""
    with closing(engine().connect(":memory:")) as connection:
        connection.execute(
            "CREATE TABLE accepted AS SELECT unnest(CAST(? AS VARCHAR[])) AS row_id", [sorted(accepted_ids)]
        )
        is_accepted = "row_id IN (SELECT row_id FROM accepted)"
        rows = f"FROM read_parquet({file_name(waiting)})"
        (count,) = connection.execute(f"SELECT count(*) {rows} WHERE {is_accepted}").fetchone() or (0,)
        if not count:
            return []
        gone = ", false AS gone" if kind == "offers" else ""  # a column of the parts of offers alone
        # rows that are accepted take the place of what stood for them, such as their earlier price
        both = f"SELECT * EXCLUDE (row_id, doubt, was){gone} {rows} WHERE {is_accepted}"
        if published is not None:
            both += f" UNION ALL BY NAME SELECT * FROM read_parquet({file_name(published)}) AS p"
            both += f" WHERE {_ROW_ID[kind]} NOT IN (SELECT row_id FROM accepted)"
        written = {kind: both, WAITING + kind: f"SELECT * {rows} WHERE NOT {is_accepted}"}
        parts = []
        for name, sql in written.items():
            file = place / f"{part.source}-{name}.parquet"
            put_parquet(connection, f"({sql})", file, ", COMPRESSION zstd")
            listed = (connection.execute(f"SELECT count(*) FROM read_parquet({file_name(file)})").fetchone() or (0,))[0]
            digest, size = hash_of(file), file.stat().st_size
            file.replace(place / digest)
            changes = {"new": count} if name == kind else {}
            parts.append(replace(part, kind=name, rows=listed, size_bytes=size, sha256=digest, changes=changes))
    return parts
