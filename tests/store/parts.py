"""Snapshots for tests: rows of offers in a part, published as a refresh does."""

import os
from contextlib import closing
from datetime import date

from gpucost.catalog.loader import engine, quoted
from gpucost.schemas import DUCKDB_TYPES, TABLES
from gpucost.store.folder import Folder, Part
from tests.catalog.world import offer


def write_part(file, rows):
    columns = [(column.name, DUCKDB_TYPES[column.kind]) for column in TABLES["offers"].columns] + [("gone", "BOOLEAN")]
    with closing(engine().connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE part ({', '.join(f'{name} {kind}' for name, kind in columns)})")
        marks = ", ".join("?" * len(columns))
        for row in rows:
            blank = {"gone": False, "gpu_assumed": False, **row}
            connection.execute(f"INSERT INTO part VALUES ({marks})", [blank.get(name) for name, _ in columns])
        connection.execute(f"COPY part TO {quoted(str(file))} (FORMAT parquet)")


def publish(folder: Folder, rows, on: str, source="s", **more):
    """Publish one snapshot with one part of the given rows, seen on a day."""
    day = date.fromisoformat(on)
    origin = {"source_id": f"{source}-at-{on}", "publisher": source, "title": source, "locator": "x"}
    with folder.workplace() as place:
        file = place / "part.parquet"
        write_part(file, rows)
        digest, size = folder.adopt(file)
        part = Part(source, "offers", day, len(rows), size, digest, origin)
        return folder.publish([part], place, **more)


def publish_bytes(folder: Folder, source):
    """Publish a part of a megabyte of anything: what the store keeps is no business of its."""
    with folder.workplace() as place:
        (place / "part").write_bytes(os.urandom(1000) * 1000)
        digest, size = folder.adopt(place / "part")
        return folder.publish([Part(source, "offers", date(2025, 6, 1), 1, size, digest, {})], place)


def row(usd, on, name="acme/one", **more):
    return offer(name, usd, on, source_id=f"s-at-{on}", **more)
