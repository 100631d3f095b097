"""Chunks on disk, the seam to machines that compute them, and what a sweep comes to."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, suppress
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from gpucost.answers.combined import Heat, Reason, Row
from gpucost.catalog.loader import file_name, named, quiet, quoted
from gpucost.errors import UsageError
from gpucost.render.table_csv import cell
from gpucost.store.files import replacing, write_bytes
from gpucost.sweeping.grid import SweepGrid
from gpucost.sweeping.work import SweepTask, work

if TYPE_CHECKING:
    pass


# --- The seam to machines: a function that maps chunks to their bytes, in any order, on whatever computes.

_Work = Callable[[Any], bytes]
_Numbered = Iterable[tuple[int, Any]]  # chunks and their numbers
_Mapper = Callable[[_Work, _Numbered], Iterator[tuple[int, bytes]]]

_WAITING_PER_WORKER = 2  # so that none is idle while its next chunk is cut, and few are lost when it dies
_RETRIES = 3  # of a chunk whose worker died; one that always dies is too large for its machine
_CONNECT_SECONDS = 10.0
_LEAST_THREADS = 4  # of a cluster that grows as work comes


def serial(work: _Work, tasks: _Numbered) -> Iterator[tuple[int, bytes]]:
    """Answer one chunk after the other in this process."""
    for number, task in tasks:
        yield number, work(task)


def over(executor: Executor, waiting: int = 64) -> _Mapper:
    """Return the mapper over any executor of `concurrent.futures`; a bounded number of chunks waits in it."""

    def mapped(work: _Work, tasks: _Numbered) -> Iterator[tuple[int, bytes]]:
        numbered_tasks = iter(tasks)
        open_: dict[Future[bytes], int] = {}
        try:
            for number, task in numbered_tasks:
                open_[executor.submit(work, task)] = number
                if len(open_) >= waiting:
                    yield from _ended(open_)
            while open_:
                yield from _ended(open_)
        finally:  # who stops listening wants no more answers
            for future in open_:
                future.cancel()

    return mapped


def _ended(open_: dict[Future[bytes], int]) -> Iterator[tuple[int, bytes]]:
    """Yield the chunks that have ended, once at least one has."""
    done, _ = wait(open_, return_when=FIRST_COMPLETED)
    for future in done:
        yield open_.pop(future), future.result()


def processes(count: int) -> _Mapper:
    """Return the mapper over processes of this machine; those that die are replaced and their chunks done again."""

    def mapped(work: _Work, tasks: _Numbered) -> Iterator[tuple[int, bytes]]:
        from multiprocessing import get_context

        numbered_tasks, open_ = iter(tasks), dict[int, Any]()

        def waiting_tasks() -> Iterator[tuple[int, Any]]:
            yield from list(open_.items())  # what a broken pool left
            for number, task in numbered_tasks:
                open_[number] = task
                yield number, task

        # spawned, not forked: the database's threads of this process do not survive a fork
        for _ in range(1 + _RETRIES):
            with ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_end_with_the_parent) as pool:
                try:
                    for number, data in over(pool, count * _WAITING_PER_WORKER)(work, waiting_tasks()):
                        del open_[number]
                        yield number, data
                    return
                except BrokenProcessPool:
                    continue
        raise UsageError(f"worker processes died {1 + _RETRIES} times; perhaps memory ran out. Take fewer --workers.")

    return mapped


def _end_with_the_parent() -> None:
    """Have this worker end once the process that started it is no more, however that ended."""
    import os
    from multiprocessing import parent_process
    from multiprocessing.connection import wait as wait_for
    from threading import Thread

    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            wait_for([parent.sentinel])
            os._exit(1)

    Thread(target=watch, daemon=True).start()


@contextmanager
def cluster(address: str) -> Iterator[_Mapper]:
    """Connect to the scheduler of a running Dask cluster; chunks of workers that die are done again by others."""
    try:
        import distributed
    except ImportError:
        raise UsageError(
            "--scheduler needs the extra cluster: pip install 'gpucost[cluster]', here and on the workers."
        ) from None
    connect: Any = distributed.Client  # typed as it is called: distributed has no types
    try:
        client = connect(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(
            f"--scheduler: nothing answers at {address!r} ({type(error).__name__}). Start one with `dask scheduler`,"
            " and give the address that it prints, such as tcp://10.0.0.5:8786."
        ) from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise UsageError(f"--scheduler: {address} has no workers. Start some with `dask worker {address}`.")
        # of all workers: the client's own view stops at a few
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        threads = max(_LEAST_THREADS, sum(int(worker["nthreads"]) for worker in workers))
        yield over(client.get_executor(retries=_RETRIES), _WAITING_PER_WORKER * threads)


def mapper_of(workers: int, scheduler: str | None, executor: Executor | None) -> AbstractContextManager[_Mapper]:
    """Return the mapper that was asked for: a cluster, an executor, processes, or none of them."""
    from contextlib import nullcontext

    if sum((scheduler is not None, executor is not None, workers > 1)) > 1:
        raise UsageError("--workers, --scheduler and an executor exclude each other. Give one of them.")
    if scheduler is not None:
        return cluster(scheduler)
    if executor is not None:
        return nullcontext(over(executor))
    return nullcontext(processes(workers) if workers > 1 else serial)


# --- Chunks on disk: each a Parquet file named by the hash of what it follows from, written whole or not at all.

CASES = 250  # per chunk: some seconds of work at most, so that few cases give several workers something to do
_MOST_CHUNKS = 4096  # so that a sweep of millions is not as many files
_LENGTH = 32  # signs of a hash in a file's name


def cases_of_chunk(grid: SweepGrid) -> int:
    """Return how many cases make a chunk of a sweep."""
    return max(CASES, ceil(grid.count / _MOST_CHUNKS))


class SweepPlan(NamedTuple):
    """A sweep cut into chunks, and the folder that keeps them."""

    grid: SweepGrid
    versions: dict[str, str]
    folder: Path
    cases: int  # per chunk
    shared: bool = False  # whether every worker reaches the folder, and writes its chunks itself

    @property
    def chunks(self) -> int:
        """Return the number of chunks."""
        return ceil(self.grid.count / self.cases)

    def task(self, number: int) -> SweepTask:
        """Return a chunk as a worker is told of it."""
        start, stop = number * self.cases, min((number + 1) * self.cases, self.grid.count)
        # a chunk of a grid is a span of its numbering; a chunk of a table carries its own rows
        if self.grid.listed is None:
            return self._placed(SweepTask(self.grid, start, stop, self.versions))
        grid_of_chunk = replace(self.grid, count=stop - start, listed=self.grid.part(start, stop))
        return self._placed(SweepTask(grid_of_chunk, 0, stop - start, self.versions))

    def _placed(self, task: SweepTask) -> SweepTask:
        return task._replace(file=str(self.file(task))) if self.shared else task

    def file(self, task: SweepTask) -> Path:
        """Return the file of a chunk."""
        return self.folder / f"{task.key[:_LENGTH]}.parquet"


def answer(plan: SweepPlan, mapper: _Mapper, report_progress: Callable[[int], None]) -> list[Path]:
    """Answer the chunks that the folder does not hold yet and return all of their files, in the order of the cases."""
    is_new = not plan.folder.exists()
    try:
        plan.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot keep chunks in {plan.folder}: {error.strerror}. Name another folder.") from None
    files: list[Path] = []

    # only what is missing goes to the workers, as they ask for it: a grid of millions is never listed
    def missing() -> Iterator[tuple[int, SweepTask]]:
        for number in range(plan.chunks):
            task = plan.task(number)
            files.append(plan.file(task))
            if files[-1].exists():
                report_progress(task.stop - task.start)
            else:
                yield number, task

    try:
        for number, data in mapper(work, missing()):
            if data:
                write_bytes(files[number], data)
            elif not files[number].exists():  # the worker put it there, as far as it knows
                raise UsageError(
                    f"a worker wrote {files[number].name}, but {plan.folder} of this machine does not hold it. Name a"
                    " folder that all machines share, or leave --shared out."
                )
            report_progress(min(plan.cases, plan.grid.count - number * plan.cases))  # the last chunk is shorter
    finally:
        with suppress(OSError):  # chunks stay for the next try; a folder made for them does not without any
            if is_new:
                plan.folder.rmdir()
    return files


def table_of(files: Iterable[Path]) -> str:
    """Return the rows of all chunks, in the order of the cases, as a table for SQL."""
    return f"read_parquet([{', '.join(map(file_name, files))}])"


def join(files: list[Path], target: str, ending: str) -> None:
    """Write all chunks into one file, Parquet or CSV, in the order of the cases, in bounded memory."""
    import duckdb

    how = "format parquet, compression zstd" if ending == ".parquet" else "format csv, header"
    how += ", use_tmp_file false"  # a plain copy: `replacing` has the temporary name already
    with replacing(target) as temporary, duckdb.connect() as connection:
        quiet(connection).execute("set threads = 1; set memory_limit = '1GB'")
        table, columns = table_of(files), "*"
        if ending == ".csv":
            # as cells of a CSV file: only texts that could steer a reader's program are rewritten
            connection.create_function("cell", cell, ["VARCHAR"], "VARCHAR")
            cells = []
            for name, kind, *_ in connection.execute(f"describe select * from {table}").fetchall():
                column = named(name)
                text = f"{column}::varchar"
                plain = f"regexp_full_match({text}, '[ !-*,.-<>?A-~][ -~]*')"  # the engine is quicker than the function
                is_text = kind.startswith(("VARCHAR", "ENUM"))
                cells.append(f"if({plain}, {text}, cell({text})) as {column}" if is_text else column)
            columns = ", ".join(cells)
        connection.execute(f"copy (select {columns} from {table}) to {quoted(str(temporary))} ({how})")


# --- What a sweep comes to: counts, the best case, the front of cost and days, a map over two arguments.

# Of a question what is to be low, and what the front weighs against it.
_GOALS = {
    "estimate": ("cost_usd", "days"),
    "inference": ("usd_per_mtok", "tpot_ms"),
    "tco": ("own_npv_usd", "rent_npv_usd"),
}
ROWS_KEPT = 1000  # in the answer itself; the files hold all
_FRONT_ROWS = 40  # of one kind of work: more points would cover each other
_HEAT_VALUES = 40  # on a side of the map
_FRONT_CASES = 2_000_000  # a window over more of them would cost more time than the front is worth


# Arguments that say what is to be done; the others say how, where and by when.
_TRAINING = ("model", "tokens", "epochs", "method", "sequence", "document_tokens", "overhead", "experiments", "dataset")
_LOAD = ("requests_per_s", "tokens_per_month", "prompt_tokens", "output_tokens", "lengths", "distribution", "profile")
_OWNED = ("gpus", "years", "months", "utilisation", "hours_per_month", "use_path", "runs_per_year")
_WORK = {
    "estimate": (*_TRAINING, "rollouts", "prompt_tokens", "output_tokens", "reference_model"),
    "inference": ("model", *_LOAD, "prefix_hit", "images", "image_size", "steps"),
    "tco": (*_OWNED, *_TRAINING, *_LOAD),
}


class SweepTable:
    """The chunks of a sweep as one table that can be asked."""

    def __init__(self, files: Sequence[Path], question: str) -> None:
        import duckdb

        self.connection = quiet(duckdb.connect())
        self.connection.execute("set memory_limit = '1GB'")  # of a machine that may be a laptop; the rest goes to disk
        self.connection.execute(f"create view sweep_rows as select * from {table_of(files)}")
        self.columns = {row["column_name"] for row in self.rows("describe sweep_rows")}
        # within a service level a case has a row for each accelerator: the first stands for it
        first = " where coalesce(place, 1) = 1 or isnan(place)" if "place" in self.columns else ""
        self.connection.execute(f"create view cases as select * from sweep_rows{first}")
        self.goal, self.other = _GOALS[question]
        self.work = _WORK[question]

    def rows(self, query: str) -> list[Row]:
        """Return the rows of a query; what is missing is None."""
        answer = self.connection.execute(query)
        names = [column[0] for column in answer.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
        # NaN is not equal to itself
        return [{name: None if value != value else value for name, value in row.items()} for row in rows]

    def reasons(self) -> list[Reason]:
        """Return why cases have no answer, the most frequent first."""
        query = "select reason, count(*) as cases from cases where reason is not null group by 1 order by 2 desc, 1"
        return [{"reason": str(row["reason"]), "cases": int(row["cases"])} for row in self.rows(f"{query} limit 20")]

    def _columns_of_arguments(self, names: Iterable[str]) -> list[str]:
        """Return the columns that hold arguments; one that shares its name with a figure has another."""
        columns = (f"asked_{name}" if f"asked_{name}" in self.columns else name for name in names)
        return [column for column in columns if column in self.columns]

    def _ordered(self, axes: Mapping[str, int]) -> str:
        """Return what orders cases: the goals, and where these are equal what was asked, so that no chance decides."""
        columns = self._columns_of_arguments(name for name, count in axes.items() if count > 1)
        return ", ".join([self.goal, self.other, *(f'"{column}"' for column in columns)])

    def best_of_each(self, works: Sequence[str], count: int, axes: Mapping[str, int]) -> list[Row]:
        """Return the first cases of each kind of work, in their order: cases compete for the same work alone."""
        kinds = ", ".join(f'"{name}"' for name in works)
        goals = self._ordered(axes)
        part = f"partition by {kinds} " if works else ""
        query = f"select *, row_number() over ({part}order by {goals}) as nth from cases where reason is null"
        order = f"{kinds}, {goals}" if works else goals
        first = f"select * exclude (nth) from ({query}) where nth <= {count} order by {order} limit {ROWS_KEPT}"
        return self.rows(first)

    def works(self, axes: Mapping[str, int]) -> list[str]:
        """Return the columns that say what is to be done, where they vary: cases compete for the same work alone."""
        return self._columns_of_arguments(name for name, count in axes.items() if count > 1 and name in self.work)

    def front(self, cases: int, axes: Mapping[str, int]) -> list[Row]:
        """Return the cases that no other one of the same work beats in both goals; of very many, none is looked for."""
        if cases > _FRONT_CASES:
            return []
        works = ", ".join(f'"{name}"' for name in self.works(axes))
        # a case is on the front where no cheaper one, that stands before it, is as good in the other goal
        before = "rows between unbounded preceding and 1 preceding"
        part = f"partition by {works} " if works else ""
        window = f"min({self.other}) over ({part}order by {self._ordered(axes)} {before})"
        inner = f"select *, {window} as least from sweep_rows where reason is null"
        query = f"select * exclude (least) from ({inner}) where least is null or {self.other} < least"
        order = f"{works}, {self.goal}" if works else self.goal
        return self.rows(f"{query} order by {order} limit {ROWS_KEPT if works else _FRONT_ROWS}")

    def heat(self, axes: Mapping[str, int]) -> Heat | None:
        """Return the best value over two arguments that a map can show: those that say the work, then the widest."""
        works = [name.removeprefix("asked_") for name in self.works(axes)]
        shown = (name for name, count in axes.items() if 1 < count <= _HEAT_VALUES)
        wide = sorted(shown, key=lambda name: (name not in works, -axes[name]))
        if len(wide) < 2 or not set(works) <= set(wide[:2]):  # a cell holds one kind of work
            return None
        x, y = self._columns_of_arguments(wide[:2])
        query = f'select "{x}" as x, "{y}" as y, min({self.goal}) as value, count(*) as cases from cases group by 1, 2'
        cells: Any = self.rows(f"{query} order by 1, 2")
        return {"x": x, "y": y, "value": self.goal, "cells": cells}
