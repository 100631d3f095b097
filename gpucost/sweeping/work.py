"""One chunk of a sweep: what a worker is told, how it answers, and the bytes that it hands back."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpucost.errors import UsageError
from gpucost.store.files import SpareFolder
from gpucost.sweeping.grid import DATES, Grid

if TYPE_CHECKING:
    import pandas

    from gpucost.catalog import Catalog

Columns = dict[str, Any]  # numbers as arrays, words as (codes, what they mean); the code −1 is missing


class Task(NamedTuple):
    """A chunk: which cases of a grid, and the facts and versions that its answer must come from."""

    grid: Grid  # every combination, or the rows of this chunk alone
    start: int
    stop: int
    versions: Mapping[str, str]

    @property
    def key(self) -> str:
        """Return the hash of all that the answer follows from."""
        import json

        grid = self.grid
        span = [self.start, self.stop] if grid.listed is None else None  # rows are known by what they hold
        told = json.dumps([grid.question, grid.values, span, dict(self.versions)], sort_keys=True, default=str)
        digest = sha256(told.encode())
        for name, codes in (grid.listed or {}).items():
            digest.update(name.encode() + b"\0" + np.ascontiguousarray(codes, "<i4").tobytes())
        return digest.hexdigest()


def versions_of(catalog: "Catalog") -> dict[str, str]:
    """Return what the bytes of an answer depend on beside the cases: code, facts, calibrations, the writer of files."""
    import duckdb

    from gpucost import __version__
    from gpucost.catalog.calibrations import serving_calibration, training_calibration
    from gpucost.training.run import calibration_digest

    return {
        "gpucost": __version__,
        "catalog": catalog.version,
        "as_of": catalog.as_of.isoformat(),
        "training": calibration_digest(training_calibration(catalog)),
        "serving": calibration_digest(serving_calibration(catalog)),
        "duckdb": duckdb.__version__,
    }


def work(task: Task) -> bytes:
    """Answer a chunk on whatever machine this is; one whose facts or versions differ from the asker's refuses."""
    dates = tuple(task.grid.values[name][0] if name in task.grid.values else None for name in DATES)
    asker = _asker(task.grid.question, *dates, tuple(sorted(task.versions.items())), get_ident())
    return parquet_of(answered(asker, task))


def answered(asker: Any, task: Task) -> Columns:
    """Return the columns of a chunk: what was asked, then what was found."""
    values = {name: values for name, values in task.grid.values.items() if name not in DATES}
    part = task.grid.part(task.start, task.stop)
    codes = {name: part[name].astype(np.int64) for name in values}
    found: Columns = asker.rows(values, codes)
    asked = {name: _asked(values[name], codes[name]) for name in values}
    return {**{f"asked_{name}" if name in found else name: column for name, column in asked.items()}, **found}


@lru_cache(maxsize=16)
def _asker(question: str, as_of: Any, known_as_of: Any, wanted: tuple[tuple[str, str], ...], thread: int) -> Any:
    """Return what answers a question's chunks in this thread, kept for its next chunk."""
    from gpucost.catalog import open_catalog

    catalog = open_catalog(as_of or dict(wanted)["as_of"], known_as_of)
    own = versions_of(catalog)
    for name, value in wanted:
        if own[name] != value:
            raise UsageError(
                f"this worker has another {name}, {own[name]}, than the machine that asks, {value}. Install the same"
                " version of gpucost and use the same price books on both."
            )
    return asker_of(question, catalog)


def asker_of(question: str, catalog: "Catalog") -> Any:
    """Return what answers columns of one question's requests from a catalog."""
    if question == "estimate":
        from gpucost.training.sweep import Sweeper

        return Sweeper(catalog)
    from gpucost.sweeping.singles import Singles

    return Singles(question, catalog)


def _asked(values: Sequence[Any], codes: Any) -> Any:
    """Return what was asked as a column: numbers where all values are, else words; None is missing."""
    said = [value for value in values if value is not None]
    if said and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in said):
        return np.array([np.nan if value is None else value for value in values])[codes]
    words = sorted({str(value) for value in values if value is not None})
    place = np.array([-1 if value is None else words.index(str(value)) for value in values], np.int64)
    return place[codes], words


def frame_of(columns: Columns) -> "pandas.DataFrame":
    """Return columns as a data frame; words become categories."""
    import pandas

    made = {}
    for name, column in columns.items():
        if not isinstance(column, tuple):
            made[name] = column
            continue
        codes, words = column
        made[name] = pandas.Categorical.from_codes(codes, categories=words)
    return pandas.DataFrame(made)


def parquet_of(columns: Columns) -> bytes:
    """Return columns as the bytes of a Parquet file; the same columns give the same bytes on every machine."""
    import duckdb

    frame = frame_of(columns)
    with SpareFolder() as folder, duckdb.connect() as connection:
        connection.execute("set threads = 1; set enable_progress_bar = false")
        connection.register("chunk", frame)
        file = Path(folder, "chunk.parquet")
        connection.execute(f"copy (select * from chunk) to '{file}' (format parquet, compression zstd)")
        return file.read_bytes()
