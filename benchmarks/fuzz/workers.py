"""Many cases in processes that may die: each is forked from one that has loaded the world, and judges what it gets."""

import os
import resource
import shlex
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.fuzz import good
from benchmarks.fuzz.cases import Case
from benchmarks.fuzz.judge import BAD, HANG_S, MEMORY_BYTES, SLOW_S, Verdict, folder, peak_bytes, verdict_of
from benchmarks.fuzz.sharing import answer_queries_here, share_catalog, share_commands, share_drawing
from benchmarks.fuzz.surfaces import case

_CASES_PER_PROCESS = 2000  # a fresh process now and then, so that memory is that of a case and not of all before it
Task = tuple[str, int]  # surface and number


class Done(NamedTuple):
    """A case that was judged: its verdict, its seconds and the most memory that its process had held by then."""

    surface: str
    number: int
    verdict: Verdict
    seconds: float
    peak_bytes: int


class _Worker:
    """A process that judges the cases that it is given, and is replaced when it hangs or dies."""

    def __init__(self) -> None:
        self.task: Task = ("", 0)
        self._start()

    def _start(self) -> None:
        context = get_context("fork")  # the world is loaded once
        self.pipe, theirs = context.Pipe()
        self.left = _CASES_PER_PROCESS
        self.process: Any = context.Process(target=_work, args=(theirs,))
        self.process.start()
        theirs.close()

    def give(self, task: Task) -> None:
        """Hand over the next case."""
        if not self.left:
            self.end()
            self._start()
        self.task, self.left, self.since = task, self.left - 1, time.monotonic()
        self.spent_s = self._state()[1]
        self.pipe.send(task)

    def done(self) -> Done | None:
        """Return the verdict if there is one; a process that hangs, grows or died gives its own."""
        if self.pipe.poll():
            try:
                done: Done = self.pipe.recv()
            except (EOFError, ConnectionResetError):
                return self._ended(Verdict("memory", f"the process died: {self._line()}"))
            return done
        if time.monotonic() - self.since > HANG_S:
            # it waits for something, or has long had more of the processor than any case may; else others hold it up
            state, spent_s = self._state()
            if state != "R" or spent_s - self.spent_s > 3 * SLOW_S:
                return self._ended(Verdict("hang", self._line()))
        # twice the bound at once is ended before the machine is; less is judged when the case is over
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        if pages * resource.getpagesize() > 2 * MEMORY_BYTES:
            return self._ended(Verdict("memory", self._line()))
        return None

    def _state(self) -> tuple[str, float]:
        """Return whether the process runs (R) or waits, and its seconds of the processor, from /proc."""
        state, *figures = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return state, sum(map(int, figures[10:12])) / os.sysconf("SC_CLK_TCK")

    def _line(self) -> str:
        return shlex.join(case(*self.task).arguments)[:100]

    def _ended(self, verdict: Verdict) -> Done:
        self.end()
        self._start()
        return Done(*self.task, verdict, time.monotonic() - self.since, 0)

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run(shares: Mapping[str, float], first: int, seconds: float, workers: int = 1, most: int = 10**9) -> Iterator[Done]:
    """Yield cases as they are judged, each surface by its share, for some seconds or until so many were."""
    load(warm=most > _CASES_PER_PROCESS)
    counts = dict.fromkeys(shares, 0)

    def next_task() -> Task:
        # the surface that is furthest behind its share
        surface = min(shares, key=lambda name: (counts[name] + 1) / shares[name])
        counts[surface] += 1
        return surface, first + counts[surface] - 1

    # each worker has one case at a time, so that what hangs or dies is known by its number
    team, until = [_Worker() for _ in range(workers)], time.monotonic() + seconds
    try:
        for worker in team:
            worker.give(next_task())
        while time.monotonic() < until and most > 0:
            wait([worker.pipe for worker in team], timeout=0.25)
            for worker in team:
                if most > 0 and (done := worker.done()):
                    most -= 1
                    worker.give(next_task())
                    yield done
    finally:
        for worker in team:
            worker.end()


@cache
def load(warm: bool = True) -> None:
    """Load what the cases need: modules, the good files, and one catalog that all cases without a book share.

    A long run asks what reads most once beforehand, so that no process need read it anew.
    """
    shm = Path("/dev/shm")
    if os.access(shm, os.W_OK):  # thousands of folders are made and removed
        tempfile.tempdir = str(shm)
    import duckdb

    duckdb.set_default_connection(duckdb.connect(config={"threads": 1}))  # a fork has no threads but its own
    share_commands()
    share_catalog()
    share_drawing()
    answer_queries_here()
    good.answers(), good.plan(), good.bench(), good.configurations(), good.estimate_with_facts(), good.parquet()
    commands = (
        *([name, *arguments] for name, arguments in good.START.items()),
        *(["report", "answer.json", "-o", f"out.{ending}"] for ending in ("xlsx", "html", "md")),
        *(["estimate", *good.START["estimate"], "--as-of", day] for day in ("2026-11-20", "2026-06-15")),
        ["data", "check"],
        ["prices", "history", "--gpu", "h100-sxm"],
        ["validate"],
        ["mcp"],
    )
    # what these write past Python's streams goes nowhere
    streams = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    for arguments in commands if warm else ():
        with folder():
            verdict_of(Case(arguments, {"answer.json": good.answers()[0]}))
    for place, descriptor in enumerate(streams):
        os.dup2(descriptor, place + 1)
        os.close(descriptor)
    import gc

    gc.collect()
    gc.freeze()  # else each fork copies what the collector touches


def _work(pipe: Connection) -> None:
    """Judge cases in folders of their own."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # crashes are what is looked for: no file of gigabytes for each
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    sink = tempfile.TemporaryFile()  # noqa: SIM115
    os.dup2(sink.fileno(), 1)
    os.dup2(sink.fileno(), 2)
    while True:
        surface, number = pipe.recv()
        with folder() as _:
            before, start = peak_bytes(), time.process_time()
            verdict = verdict_of(case(surface, number))
            peak, seconds = peak_bytes(), time.process_time() - start
            # the peak of a process only grows: this case made it
            if peak > before and peak > MEMORY_BYTES:
                verdict = Verdict("memory", f"{peak / 1e9:.1f} GB; {verdict.place}")
            if os.fstat(1).st_size and verdict.kind not in BAD:
                sink.seek(0)
                verdict = Verdict("nonsense", f"written past Python's streams: {sink.read(80)!r}")
            os.ftruncate(1, 0)
            sink.seek(0)
        pipe.send(Done(surface, number, verdict, seconds, peak))
