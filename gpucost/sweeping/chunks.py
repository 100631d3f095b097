"""Chunks on disk: each a Parquet file named by the hash of what it follows from, written whole or not at all."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpucost.catalog.loader import file_name, named, quoted
from gpucost.errors import UsageError
from gpucost.render.table_csv import cell
from gpucost.store.files import replacing, write_bytes
from gpucost.sweeping.grid import Grid
from gpucost.sweeping.mapping import Mapper
from gpucost.sweeping.work import Task, work

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

CASES = {"estimate": 1 << 17, "inference": 1 << 6, "tco": 1 << 6}  # per chunk: some seconds of work
_LENGTH = 32  # signs of a hash in a file's name


class Plan(NamedTuple):
    """A sweep cut into chunks, and the folder that keeps them."""

    grid: Grid
    versions: dict[str, str]
    folder: Path
    cases: int  # per chunk

    @property
    def chunks(self) -> int:
        """Return the number of chunks."""
        return ceil(self.grid.count / self.cases)

    def task(self, number: int) -> Task:
        """Return a chunk as a worker is told of it."""
        start, stop = number * self.cases, min((number + 1) * self.cases, self.grid.count)
        if self.grid.listed is None:
            return Task(self.grid, start, stop, self.versions)
        own = replace(self.grid, count=stop - start, listed=self.grid.part(start, stop))
        return Task(own, 0, stop - start, self.versions)

    def file(self, task: Task) -> Path:
        """Return the file of a chunk."""
        return self.folder / f"{task.key[:_LENGTH]}.parquet"


def answer(plan: Plan, mapper: Mapper, told: Callable[[int], None]) -> list[Path]:
    """Answer the chunks that the folder does not hold yet and return all of their files, in the order of the cases."""
    ours = not plan.folder.exists()
    try:
        plan.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot keep chunks in {plan.folder}: {error.strerror}. Name another folder.") from None
    files: list[Path] = []

    def missing() -> Iterator[tuple[int, Task]]:
        for number in range(plan.chunks):
            task = plan.task(number)
            files.append(plan.file(task))
            if files[-1].exists():
                told(task.stop - task.start)
            else:
                yield number, task

    try:
        for number, data in mapper(work, missing()):
            write_bytes(files[number], data)
            told(min(plan.cases, plan.grid.count - number * plan.cases))
    finally:
        with suppress(OSError):  # chunks stay for the next try; a folder made for them does not without any
            if ours:
                plan.folder.rmdir()
    return files


def table_of(files: Iterable[Path]) -> str:
    """Return the rows of all chunks, in the order of the cases, as a table for SQL."""
    return f"read_parquet([{', '.join(map(file_name, files))}])"


def join(files: list[Path], target: str, ending: str) -> None:
    """Write all chunks into one file, Parquet or CSV, in the order of the cases, in bounded memory."""
    import duckdb

    how = "format parquet, compression zstd" if ending == ".parquet" else "format csv, header"
    with replacing(target) as temporary, duckdb.connect() as connection:
        connection.execute("set threads = 1; set enable_progress_bar = false; set memory_limit = '1GB'")
        table = table_of(files)
        shown = _shown(connection, table) if ending == ".csv" else "*"
        connection.execute(f"copy (select {shown} from {table}) to {quoted(str(temporary))} ({how})")


def _shown(connection: "DuckDBPyConnection", table: str) -> str:
    """Return the columns as cells of a CSV file; only texts that could steer a reader's program are rewritten."""
    connection.create_function("cell", cell, ["VARCHAR"], "VARCHAR")
    columns = []
    for name, kind, *_ in connection.execute(f"describe select * from {table}").fetchall():
        column = named(name)
        text = f"{column}::varchar"
        plain = f"regexp_full_match({text}, '[ !-*,.-<>?A-~][ -~]*')"
        is_text = kind.startswith(("VARCHAR", "ENUM"))
        columns.append(f"if({plain}, {text}, cell({text})) as {column}" if is_text else column)
    return ", ".join(columns)
