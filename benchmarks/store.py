"""What the store of refreshed prices withstands: `python -m benchmarks.store import | kills | crowd`.

import  a catalogue of a million rows: seconds and the most memory
kills   the command `prices refresh`, killed at random moments; after each the store must be whole, nothing lost
crowd   processes that refresh and read at once: no error, no snapshot lost
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from gpucost.store.folder import Folder

HEAD = "provider,instance_type,gpu,gpus,region,option,usd_per_hour\n"


def catalogue(path: Path, rows: int, seed: int = 0) -> Path:
    """Write a catalogue of machines with one to eight GPUs in a thousand regions."""
    chance = random.Random(seed)
    with path.open("w") as file:
        file.write(HEAD)
        for n in range(rows):
            gpus = (1, 2, 4, 8)[n % 4]
            usd = gpus * 2.5 * chance.uniform(0.97, 1.03)
            option = ("on_demand", "spot")[n // 4 % 2]
            file.write(f"seller-{n % 7},type-{n // 8},H100 SXM,{gpus},r-{n % 1000},{option},{usd:.4f}\n")
    return path


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "gpucost", "prices", *words]


def bench_import(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = catalogue(Path(folder) / "list.csv", rows)
        began = time.perf_counter()
        subprocess.run(command("refresh", "--from", str(file), "--store", f"{folder}/store"), check=True)
        seconds = time.perf_counter() - began
        most_gb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
        print(f"{rows:,} rows in {seconds:.1f} s and {most_gb:.2f} GB")


def refresh(file: Path, store: str) -> None:
    """Do what the command does, in a process that was forked with everything imported; errors end it with 1."""
    from gpucost.catalog import open_catalog
    from gpucost.refresh.run import Wish
    from gpucost.refresh.run import refresh as refreshed

    _, snapshot = refreshed(open_catalog(store=store), Folder(Path(store)), [str(file)], Wish(accept=True))
    sys.exit(0 if snapshot else 1)


def read(store: str) -> None:
    """Answer from the store: every price that holds, with warnings as errors."""
    import warnings

    from gpucost.catalog import open_catalog

    warnings.simplefilter("error")
    sys.exit(0 if open_catalog(store=store).offers() else 1)


def started(function: Callable[..., None], *given: object) -> BaseProcess:
    process = get_context("fork").Process(target=function, args=given)
    process.start()
    return process


def bench_kills(times: int) -> None:
    """Kill refreshes at random moments from their start to their end."""
    with tempfile.TemporaryDirectory() as folder:
        store, chance = f"{folder}/store", random.Random(1)
        file = catalogue(Path(folder) / "list.csv", 2_000)
        began = time.perf_counter()
        started(refresh, file, store).join()
        usual_s = time.perf_counter() - began
        seen, killed, damaged = set(Folder(Path(store)).names()), 0, 0
        for number in range(times):
            process = started(refresh, catalogue(file, 2_000, number), store)
            process.join(usual_s * chance.uniform(0, 1.3))
            if process.exitcode is None:
                process.kill()
                killed += 1
            process.join()
            found = Folder(Path(store))
            damaged += len(found.verify())
            now = set(found.names())
            assert seen <= now, "a snapshot is lost"
            seen = now
        print(f"{times} refreshes, {killed} killed: {len(seen)} snapshots, none lost, {damaged} damaged")


def bench_crowd(seconds: float, processes: int) -> None:
    """Refresh and read in processes of their own, half of each, until the time is over."""
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/store"
        files = [catalogue(Path(folder) / f"list{i}.csv", 500, i) for i in range(processes)]
        started(refresh, files[0], store).join()
        ends_at, done, failed, running = time.monotonic() + seconds, {refresh: 1, read: 0}, 0, []
        while running or time.monotonic() < ends_at:
            while len(running) < processes and time.monotonic() < ends_at:
                act = refresh if sum(done.values()) + len(running) & 1 else read
                given = (files[len(running)], store) if act is refresh else (store,)
                running.append((act, started(act, *given)))
            for act, process in [item for item in running if item[1].exitcode is not None]:
                running.remove((act, process))
                done[act] += 1
                failed += process.exitcode != 0
            time.sleep(0.01)
        found = Folder(Path(store))
        damaged, kept = found.verify(), len(found.names())
        print(f"{done[refresh]} refreshes, {done[read]} readings by {processes} processes in {seconds:g} s:")
        print(f"{failed} failed, {kept} snapshots, {done[refresh] - kept} lost, {len(damaged)} damaged")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("import", "kills", "crowd"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--processes", type=int, default=8)
    given = parser.parse_args()
    if given.what == "import":
        bench_import(given.rows)
    elif given.what == "kills":
        bench_kills(given.times)
    else:
        bench_crowd(given.seconds, given.processes)


if __name__ == "__main__":
    main()
