"""Speed of `gpucost estimate`: cold against the bare imports, warm over every shipped offer.

Run it by `python -m benchmarks.estimate [--pairs 15] [--json]`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from gpucost.ask.estimate import request_of
from gpucost.catalog import open_catalog
from gpucost.training.run import estimate

BARE = [sys.executable, "-c", "import click, numpy, duckdb; from pydantic import BaseModel; duckdb.connect()"]
COLD = [sys.executable, "-m", "gpucost", "estimate", "--model", "8b", "--tokens", "100b"]
COLD_BUDGET_RATIO = 1.4
WARM_BUDGET_MS = 50.0


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def cold_ratio(pairs: int = 15) -> tuple[float, float, float]:
    """Median of paired ratios: a cold estimate ÷ the bare imports, run side by side."""
    times = [(seconds(BARE), seconds(COLD)) for _ in range(pairs)]
    ratios = [own / base for base, own in times]
    return (
        statistics.median(ratios),
        statistics.median(base for base, _ in times),
        statistics.median(own for _, own in times),
    )


def cold_cpu_ratio(pairs: int = 9) -> float:
    """The same in processor time, which a busy machine disturbs less."""
    import resource

    def spent(command: list[str]) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds(command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return statistics.median(spent(COLD) / spent(BARE) for _ in range(pairs))


def warm_ms(clock: Callable[[], float] = time.perf_counter, runs: int = 30) -> float:
    """Median of warm estimates over every offer, another token count each time."""
    catalog = open_catalog()
    estimate(request_of({"model": "8b", "tokens": "100b"}), catalog)
    times = []
    for number in range(runs):
        request = request_of({"model": "8b", "tokens": 100e9 + number * 1e9})
        start = clock()
        estimate(request, catalog)
        times.append(clock() - start)
    return statistics.median(times) * 1e3


def sweep_ms(requests: int = 100) -> float:
    """Milliseconds per request of a sweep that leaves the size of the cluster open."""
    import gpucost

    tokens = [1e10 * (1 + number) for number in range(requests // 2)]
    gpucost.sweep(model="8b,70b", tokens=tokens[:1])
    start = time.perf_counter()
    gpucost.sweep(model="8b,70b", tokens=tokens)
    return (time.perf_counter() - start) * 1e3 / requests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    ratio, base, own = cold_ratio(asked.pairs)
    found = {
        "cold_ratio": round(ratio, 3),
        "cold_budget_ratio": COLD_BUDGET_RATIO,
        "bare_imports_s": round(base, 3),
        "cold_estimate_s": round(own, 3),
        "cold_cpu_ratio": round(cold_cpu_ratio(asked.pairs), 3),
        "warm_estimate_ms": round(warm_ms(), 1),
        "warm_cpu_ms": round(warm_ms(time.process_time), 1),
        "warm_budget_ms": WARM_BUDGET_MS,
        "sweep_ms_per_request": round(sweep_ms(), 1),
    }
    print(json.dumps(found) if asked.json else "\n".join(f"{name:22} {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
