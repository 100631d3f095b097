"""The seam to machines: a function that maps chunks to their bytes, in any order, on whatever computes."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from gpucost.errors import UsageError

Work = Callable[[Any], bytes]
Numbered = Iterable[tuple[int, Any]]  # chunks and their numbers
Mapper = Callable[[Work, Numbered], Iterator[tuple[int, bytes]]]

_WAITING_PER_WORKER = 2
_RETRIES = 3
_CONNECT_SECONDS = 10.0


def serial(work: Work, tasks: Numbered) -> Iterator[tuple[int, bytes]]:
    """Answer one chunk after the other in this process."""
    for number, task in tasks:
        yield number, work(task)


def over(executor: Executor, waiting: int = 64) -> Mapper:
    """Return the mapper over any executor of `concurrent.futures`; a bounded number of chunks waits in it."""

    def mapped(work: Work, tasks: Numbered) -> Iterator[tuple[int, bytes]]:
        rest = iter(tasks)
        open_: dict[Future[bytes], int] = {}
        try:
            for number, task in rest:
                open_[executor.submit(work, task)] = number
                if len(open_) >= waiting:
                    yield from _ended(open_)
            while open_:
                yield from _ended(open_)
        finally:
            for future in open_:
                future.cancel()

    return mapped


def _ended(open_: dict[Future[bytes], int]) -> Iterator[tuple[int, bytes]]:
    """Yield the chunks that have ended, once at least one has."""
    done, _ = wait(open_, return_when=FIRST_COMPLETED)
    for future in done:
        yield open_.pop(future), future.result()


def processes(count: int) -> Mapper:
    """Return the mapper over processes of this machine; those that die are replaced and their chunks done again."""

    def mapped(work: Work, tasks: Numbered) -> Iterator[tuple[int, bytes]]:
        from multiprocessing import get_context

        rest, open_ = iter(tasks), dict[int, Any]()

        def given() -> Iterator[tuple[int, Any]]:
            yield from list(open_.items())  # what a broken pool left
            for number, task in rest:
                open_[number] = task
                yield number, task

        for _ in range(1 + _RETRIES):
            with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
                try:
                    for number, data in over(pool, count * _WAITING_PER_WORKER)(work, given()):
                        del open_[number]
                        yield number, data
                    return
                except BrokenProcessPool:
                    continue
        raise UsageError(f"worker processes died {1 + _RETRIES} times; perhaps memory ran out. Take fewer --workers.")

    return mapped


@contextmanager
def cluster(address: str) -> Iterator[Mapper]:
    """Connect to the scheduler of a running Dask cluster; chunks of workers that die are done again by others."""
    try:
        import distributed
    except ImportError:
        raise UsageError(
            "--scheduler needs the extra cluster: pip install 'gpucost[cluster]', here and on the workers."
        ) from None
    made: Any = distributed.Client
    try:
        client = made(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(
            f"--scheduler: nothing answers at {address!r} ({type(error).__name__}). Start one with `dask scheduler`,"
            " and give the address that it prints, such as tcp://10.0.0.5:8786."
        ) from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise UsageError(f"--scheduler: {address} has no workers. Start some with `dask worker {address}`.")
        yield over(client.get_executor(retries=_RETRIES), _WAITING_PER_WORKER * _threads(client))


def _threads(client: Any) -> int:
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return max(4, sum(int(worker["nthreads"]) for worker in workers))


def mapper_of(workers: int, scheduler: str | None, executor: Executor | None) -> AbstractContextManager[Mapper]:
    """Return the mapper that was asked for: a cluster, an executor, processes, or none of them."""
    from contextlib import nullcontext

    if sum((scheduler is not None, executor is not None, workers > 1)) > 1:
        raise UsageError("--workers, --scheduler and an executor say the same. Give one of them.")
    if scheduler is not None:
        return cluster(scheduler)
    if executor is not None:
        return nullcontext(over(executor))
    return nullcontext(processes(workers) if workers > 1 else serial)
