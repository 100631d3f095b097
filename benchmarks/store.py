"""What the store of refreshed prices withstands: `python -m benchmarks.store import | kills | crowd`.

import  a catalogue of a million rows: seconds and the most memory
kills   the command `prices refresh`, killed at random moments; after each the store must be whole, nothing lost
crowd   processes that refresh and read at once: no error, no snapshot lost
"""

import argparse
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
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


def bench_kills(times: int) -> None:
    """Kill refreshes, each at a moment of its last half, where it writes."""
    with tempfile.TemporaryDirectory() as folder:
        store, chance = Path(folder) / "store", random.Random(1)
        began = time.perf_counter()
        first = catalogue(Path(folder) / "list.csv", 2_000)
        subprocess.run(command("refresh", "--from", str(first), "--store", str(store)), check=True, capture_output=True)
        usual_s = time.perf_counter() - began
        seen, killed, half = set(Folder(store).names()), 0, 0
        for number in range(times):
            file = catalogue(first, 2_000, number)
            process = subprocess.Popen(
                command("refresh", "--accept", "--from", str(file), "--store", str(store)),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            time.sleep(usual_s * chance.uniform(0.4, 1.1))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                killed += 1
            process.wait()
            found = Folder(store)
            half += len(found.verify())
            now = set(found.names())
            assert seen <= now, "a snapshot is lost"
            seen = now
        print(f"{times} refreshes, {killed} killed: {len(seen)} snapshots, none lost, {half} damaged")


def bench_crowd(seconds: float, processes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/store"
        files = [catalogue(Path(folder) / f"list{i}.csv", 500, i) for i in range(processes // 2)]
        ends_at, done, errors = time.monotonic() + seconds, {"refresh": 0, "read": 0}, []
        subprocess.run(command("refresh", "--from", str(files[0]), "--store", store), check=True, capture_output=True)
        done["refresh"] += 1
        running: list[tuple[str, subprocess.Popen[bytes], list[str]]] = []
        number = 0
        while running or time.monotonic() < ends_at:
            while len(running) < processes and time.monotonic() < ends_at:
                kind, number = ("refresh", "read")[number % 2], number + 1
                words = (
                    ("refresh", "--accept", "--from", str(files[number // 2 % len(files)]))
                    if kind == "refresh"
                    else ("snapshots",)
                )
                asked = command(*words, "--store", store)
                running.append((kind, subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT), asked))
            for item in [item for item in running if item[1].poll() is not None]:
                running.remove(item)
                done[item[0]] += 1
                if item[1].returncode:
                    errors.append((item[1].communicate()[0] or b"").decode()[-300:])
            time.sleep(0.01)
        found = Folder(Path(store))
        damaged, kept = found.verify(), len(found.names())
        print(f"{done['refresh']} refreshes and {done['read']} readings by {processes} processes in {seconds:g} s:")
        print(f"{len(errors)} errors, {kept} snapshots, {done['refresh'] - kept} lost, {len(damaged)} damaged")
        if errors:
            print(errors[0])


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
