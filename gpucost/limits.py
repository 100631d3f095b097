"""How much of anything is read, run or written: each bound with its reason, in one table; a setting raises it.

A bound in time is a Deadline: one for a whole call, from which every wait takes what is left.
"""

import csv
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from gpucost.errors import UsageError


class Limit(NamedTuple):
    """A bound: its usual value, the most that a setting may raise it to, its unit and why it stands."""

    value: float
    most: float
    unit: str
    reason: str


def _number(text: str) -> float:
    return float(text) if "e" in text else int(text)


# Read without the gate, which reads every other table: these bounds are its own.
with open(Path(__file__).with_suffix(".csv"), encoding="utf-8", newline="") as _file:
    LIMITS = {
        name: Limit(_number(value), _number(most), *texts)
        for name, value, most, *texts in islice(csv.reader(_file, strict=True), 1, None)
    }


def of_environment(name: str) -> object:
    """Return what a variable of the environment says of a limit: GPUCOST_LIMIT_…, or None."""
    return os.environ.get(f"GPUCOST_{name.upper()}")


raised: Callable[[str], object] = of_environment  # the settings put themselves here once they are imported


def limit(name: str, stated: object = None, flag: str = "") -> float:
    """Return a bound: what was asked for, else the setting, else the usual one; above zero and not beyond the most.

    An error names the `flag` that it was asked for with, else the setting.

    >>> limit("limit_query_seconds"), limit("limit_query_seconds", "60")
    (15, 60.0)
    """
    bound = LIMITS[name]
    stated = raised(name) if stated is None else stated
    if stated is None:
        return bound.value
    try:
        number = float(str(stated))
    except ValueError:
        number = 0.0  # refused below, with the same sentence
    if not 0 < number <= bound.most:
        raise UsageError(
            f"{flag or name}: {str(stated)[:40]!r} is not a number above 0 and up to {bound.most:,.0f} {bound.unit};"
            f" the usual one is {bound.value:,.0f} ({bound.reason})."
        )
    return number


_NOTICE_S = 0.4  # that work has to end once its time is over


class Deadline:
    """The end of a call in wall time; a part of it ends no later. What waits is told, and woken, when it comes."""

    def __init__(self, seconds: float, within: "Deadline | None" = None) -> None:
        self._ends_at = time.monotonic() + seconds
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._ends: dict[int, Callable[[], object]] = {}
        self._within = within

    @property
    def left_s(self) -> float:
        """Return the seconds that are left; none once it was ended."""
        if self._ended.is_set():
            return 0.0
        left_s = max(0.0, self._ends_at - time.monotonic())
        return left_s if self._within is None else min(left_s, self._within.left_s)

    @property
    def over(self) -> bool:
        """Tell whether no time is left.

        >>> Deadline(60).over, Deadline(0).over, Deadline(60, within=Deadline(0)).over
        (False, True, True)
        """
        return self.left_s <= 0

    def wait(self, seconds: float) -> None:
        """Wait, but not beyond the end."""
        until = time.monotonic() + min(seconds, self.left_s)
        while (remaining_s := min(until - time.monotonic(), self.left_s)) > 0:
            # the end of an outer deadline sets only its own event: it is looked for five times a second
            self._ended.wait(min(remaining_s, 0.2) if self._within else remaining_s)

    def end(self) -> None:
        """End it now: nobody waits any longer, and what `ending` was told of is ended."""
        self._ended.set()
        with self._lock:  # no act is called under it: one that waits for a thread to leave `ending` would never end
            acts = list(self._ends.values())
        for act in acts:
            with suppress(Exception):  # what is closed already
                act()

    @contextmanager
    def ending(self, act: Callable[[], object]) -> Iterator[None]:
        """Have something ended within the block when the time is over: a connection, a query."""
        timer = threading.Timer(self.left_s, act)
        timer.daemon = True
        chain: list[Deadline] = [self]  # whichever of them ends first ends the act
        while (outer := chain[-1]._within) is not None:
            chain.append(outer)
        key = id(timer)
        for deadline in chain:
            with deadline._lock:
                deadline._ends[key] = act
        try:
            timer.start()
            yield
        finally:
            timer.cancel()
            for deadline in chain:
                with deadline._lock:
                    deadline._ends.pop(key, None)

    def all_of(self, jobs: Sequence[Callable[[], Any]], side_by_side: int = 1) -> list[Any]:
        """Return what jobs return, each in its order; None of one that was not done in time.

        An error of a job is raised; on an interrupt, or at the end, what still runs is told and not waited for: it
        stands in a server's answer or a query that nothing wakes.
        """
        results: list[Any] = [None] * len(jobs)
        errors: list[BaseException] = []
        waiting = deque(enumerate(jobs))
        done = threading.Semaphore(0)

        def work() -> None:
            while not self._ended.is_set():
                try:
                    number, job = waiting.popleft()
                except IndexError:
                    return
                try:
                    results[number] = job()
                except BaseException as error:  # raised again by the thread that waits
                    errors.append(error)
                done.release()

        for _ in range(min(side_by_side, len(jobs))):
            threading.Thread(target=work, daemon=True).start()
        finished = 0
        try:
            while finished < len(jobs) and not errors and done.acquire(timeout=self.left_s):
                finished += 1
        finally:
            self.end()  # also on an interrupt
            # Threads that have begun a job are given a moment to notice; they are daemons, so none holds the program.
            until = time.monotonic() + _NOTICE_S
            for _ in range(len(jobs) - len(waiting) - finished):
                if not done.acquire(timeout=max(0.0, until - time.monotonic())):
                    break
        if errors:
            raise errors[0]
        return results
