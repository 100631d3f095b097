"""Parquet twins of the CSV tables: made when a wheel is built, read in place of CSV files of the same content."""

import json
from pathlib import Path

from gpucost.catalog.loader import MANIFEST, Store, quoted
from gpucost.catalog.paths import parquet_file
from gpucost.schemas import HISTORY, TABLES


def write_twins(root: Path, target: Path) -> dict[str, Path]:
    """Write a Parquet file per table and the manifest; return where each belongs below a data root."""
    store = Store(root)
    made: dict[str, Path] = {}
    digests: dict[str, str] = {}
    for name, table in {**TABLES, HISTORY.name: HISTORY}.items():
        contents = store.contents(name)
        if not contents.files:
            continue
        store.ensure(name)
        place = parquet_file(root, table).relative_to(root)
        file = target / place
        file.parent.mkdir(parents=True, exist_ok=True)
        store.execute(f"""COPY "{name}" TO {quoted(str(file))} (FORMAT parquet, COMPRESSION zstd)""")
        made[place.as_posix()] = file
        digests[name] = contents.digest
    manifest = target / MANIFEST
    manifest.write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n", "utf-8")
    return {**made, MANIFEST: manifest}
