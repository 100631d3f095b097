"""Where the data files are: inside the installed package, else in the checkout around it."""

import csv
from codecs import BOM_UTF8
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path

from gpucost.errors import DataError
from gpucost.frozen import Frozen
from gpucost.schemas import Table


@cache
def shipped_root() -> Path:
    """Return the folder that holds pricing/, models/ and reports/."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_data"
    return inside if inside.is_dir() else package.parent


def ready_questions() -> dict[str, Path]:
    """Return the shipped queries by name."""
    return {file.stem: file for file in sorted((shipped_root() / "reports" / "questions").glob("*.sql"))}


def table_files(root: Path, table: Table) -> list[Path]:
    """Return the CSV files of a table below a data root, in a fixed order."""
    if "*" in table.files:
        return sorted(root.glob(table.files))
    file = root / table.files
    return [file] if file.is_file() else []


def parquet_file(root: Path, table: Table) -> Path:
    """Return where the build hook writes a table's Parquet twin: beside its CSV file or its folder of CSV files.

    >>> from gpucost.schemas import TABLES
    >>> parquet_file(Path("data"), TABLES["offers"]).as_posix()
    'data/pricing/offers.parquet'
    """
    pattern = root / table.files
    return pattern.parent.with_suffix(".parquet") if "*" in pattern.name else pattern.with_suffix(".parquet")


class Contents(Frozen):
    """The CSV files of one table as found on disk: their paths, headers and the hash over their bytes."""

    files: tuple[Path, ...]
    headers: Mapping[Path, tuple[str, ...]]
    digest: str
    joined: bytes  # all files under one header: one reading of a table of several files is far faster than many


def read_contents(root: Path, table: Table) -> Contents:
    """Hash a table's files and read their headers, each file once."""
    digest = blake2b(table.name.encode(), digest_size=16)
    headers: dict[Path, tuple[str, ...]] = {}
    bodies: list[bytes] = []
    files = table_files(root, table)
    for file in files:
        try:
            data = file.read_bytes()
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", file=str(file)) from None
        digest.update(file.relative_to(root).as_posix().encode() + b"\0")
        digest.update(data)
        data = data.removeprefix(BOM_UTF8)
        end = data.find(b"\n") + 1 or len(data)
        header = data[:end].strip().decode("utf-8", "replace")
        try:
            headers[file] = tuple(next(csv.reader([header]), ()))
        except csv.Error as error:
            raise DataError(f"is no readable CSV: {error}", file=str(file), row=1) from None
        bodies.append(data[end if bodies else 0 :])
        bodies += [] if data.endswith(b"\n") else [b"\n"]
    joined = b"".join(bodies)
    if b"\r" in joined:
        joined = joined.replace(b"\r\n", b"\n")
    return Contents(tuple(files), headers, digest.hexdigest(), joined)
