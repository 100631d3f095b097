"""Many cases in processes that may die: each loads its world once, and judges its cases in it."""

import math
import os
import resource
import shlex
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.fuzz import good
from benchmarks.fuzz.cases import Case, case
from benchmarks.fuzz.judge import BAD, HANG_S, MEMORY_BYTES, Verdict, folder, judged, peak_bytes

CASES_PER_PROCESS = 1000  # a fresh process now and then, so that memory is that of a case and not of all before it


class Done(NamedTuple):
    """A case that was judged: its verdict, its seconds and the most memory that its process had held by then."""

    number: int
    verdict: Verdict
    seconds: float
    peak_bytes: int


class Worker:
    """A process that judges every so-manieth case of a surface, and is replaced when it hangs or dies."""

    def __init__(self, surface: str, first: int, step: int) -> None:
        self.surface, self.number, self.step = surface, first, step
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")  # a forked database may not survive
        self.pipe, theirs = context.Pipe()
        self.left, self.since = CASES_PER_PROCESS, time.monotonic()
        asked = (self.surface, self.number, self.step, theirs)
        self.process: Any = context.Process(target=_work, args=asked)
        self.process.start()
        theirs.close()

    def taken(self) -> Done | None:
        """Return the next verdict if there is one; a process that hangs, grows or died gives its own."""
        if self.pipe.poll():
            try:
                done: Done = self.pipe.recv()
            except EOFError:
                return self._ended(Verdict("memory", f"the process died: {self._line()}"))
            self._next()
            return done
        if time.monotonic() - self.since > HANG_S:
            return self._ended(Verdict("hang", self._line()))
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        if pages * resource.getpagesize() > 2 * MEMORY_BYTES:
            return self._ended(Verdict("memory", self._line()))
        return None

    def _line(self) -> str:
        return shlex.join(case(self.surface, self.number).arguments)[:100]

    def _next(self) -> None:
        self.number, self.left, self.since = self.number + self.step, self.left - 1, time.monotonic()
        if not self.left:
            self.end()
            self._start()

    def _ended(self, verdict: Verdict) -> Done:
        done = Done(self.number, verdict, time.monotonic() - self.since, 0)
        self.left = 1
        self._next()
        return done

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run(surface: str, first: int, seconds: float, workers: int = 1, most: int = 10**9) -> Iterator[Done]:
    """Yield cases as they are judged, for some seconds from the first one on, or until so many were."""
    team = [Worker(surface, first + place, workers) for place in range(workers)]
    until = math.inf
    try:
        while time.monotonic() < until and most > 0:
            wait([worker.pipe for worker in team], timeout=0.25)
            for worker in team:
                if most > 0 and (done := worker.taken()):
                    most, until = most - 1, min(until, time.monotonic() + seconds)
                    yield done
    finally:
        for worker in team:
            worker.end()


@cache
def load() -> None:
    """Load what the cases need: modules, the good files, and one catalog that all cases without a book share."""
    shm = Path("/dev/shm")
    if os.access(shm, os.W_OK):  # thousands of folders are made and removed
        tempfile.tempdir = str(shm)
    share_catalog()
    good.answers(), good.plan(), good.bench(), good.configurations(), good.estimate_with_facts(), good.parquet()
    with folder():
        for arguments in (["data", "check"], ["report", "answer.json", "-o", "out.xlsx"], ["validate"], ["prices"]):
            judged(Case(arguments, {"answer.json": good.answers()[0]}))


def share_catalog() -> None:
    """Let every case without a book or other data ask the same open catalog, and check the shipped data once."""
    from gpucost.catalog import core, datacheck
    from gpucost.catalog import loader as module

    loader: Any = module
    opened: dict[Any, core.Catalog] = {}
    create, check, read = core.Catalog.__new__, cache(datacheck.check_shipped), cache(loader.read_contents)

    def new(kind: type[core.Catalog], *key: Any) -> core.Catalog:
        if kind is not core.Catalog or key[-1]:
            return create(kind)
        named = key[:3]
        if named not in opened:
            opened[named] = create(kind)
            original(opened[named], *key)
        return opened[named]

    original = core.Catalog.__init__

    def begin(self: core.Catalog, *key: Any) -> None:
        if self not in opened.values():
            original(self, *key)

    shared: Any = core.Catalog
    shared.__new__, shared.__init__ = new, begin
    loader.read_contents = read
    datacheck.check_shipped = check


def _work(surface: str, first: int, step: int, pipe: Connection) -> None:
    """Judge cases in folders of their own."""
    load()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 0)
    sink = tempfile.TemporaryFile()  # noqa: SIM115
    os.dup2(sink.fileno(), 1)
    os.dup2(sink.fileno(), 2)
    for number in range(first, first + CASES_PER_PROCESS * step, step):
        with folder() as _:
            before, start = peak_bytes(), time.process_time()
            verdict = judged(case(surface, number))
            peak, seconds = peak_bytes(), time.process_time() - start
            if peak > before and peak > MEMORY_BYTES:
                verdict = Verdict("memory", f"{peak / 1e9:.1f} GB; {verdict.place}")
            if os.fstat(1).st_size and verdict.kind not in BAD:
                sink.seek(0)
                verdict = Verdict("nonsense", f"written past Python's streams: {sink.read(80)!r}")
            os.ftruncate(1, 0)
            sink.seek(0)
        pipe.send(Done(number, verdict, seconds, peak))
    time.sleep(3600)  # until it is ended: whoever ends by itself looks like one that died
