"""Speed of `gpucost sweep`: cases per second and peak memory, with one process and with several.

Run it by `python -m benchmarks.sweep [--cases 10m] [--workers 1,2] [--open] [--services] [--json]`. Cases are training
runs on clusters of a given size: model × accelerator × size × tokens × deadline × overhead. With `--open` the size is
open and budgets refuse about half of the cases: model × accelerator × tokens × deadline × budget × overhead. With
`--services` they are services: model × accelerator × load × time per token × lengths of prompts and outputs.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gpucost.units import parse_count

FIXED = 2 * 4 * 8 * 10 * 10  # models × accelerators × sizes × deadlines × overheads
ASKED = [
    "--model", "8b,70b", "--gpu", "h100,h200,b200,mi300x", "--gpus", "8:1024:x2", "--deadline", "30d:300d:30d",
    "--overhead", "0%:18%:2%",
]  # fmt: skip
FIXED_OPEN = 4 * 5 * 10 * 10 * 10  # models × accelerators × deadlines × budgets × overheads
ASKED_OPEN = [
    "--model", "8b,70b,405b,mixtral-8x7b", "--gpu", "h100,h200,b200,mi300x,a100", "--deadline", "20d:200d:20d",
    "--budget", "10k,30k,100k,300k,1m,3m,10m,30m,100m,300m", "--overhead", "0%:18%:2%",
]  # fmt: skip
FIXED_SERVICES = 4 * 5 * 10 * 10 * 10  # models × accelerators × times per token × prompts × outputs
ASKED_SERVICES = [
    "--question", "inference", "--model", "8b,70b,qwen3-32b,mixtral-8x7b", "--gpu", "h100,h200,b200,l40s,mi300x",
    "--tpot", "10ms:100ms:10ms", "--prompt-tokens", "500:5000:500", "--output-tokens", "100:1000:100",
]  # fmt: skip
_PEAK = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6)
sys.exit(code)
"""


def measured(cases: int, workers: int, open_sizes: bool = False, services: bool = False) -> dict[str, float]:
    """Return seconds, cases per second and the peak memory of the largest process."""
    if services:
        asked = [*ASKED_SERVICES, "--tokens-per-month", f"1b:{max(1, cases // FIXED_SERVICES)}b:1b"]
    elif open_sizes:
        asked = [*ASKED_OPEN, "--tokens", f"100b:{max(1, cases // FIXED_OPEN)}00b:100b"]
    else:
        asked = [*ASKED, "--tokens", f"1b:{max(1, cases // FIXED)}b:1b"]
    folder = Path(tempfile.mkdtemp(prefix="sweep-"))
    command = [sys.executable, "-m", "gpucost", "sweep", *asked, "--workers", str(workers)]
    try:
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, *command, "--into", str(folder), "-o", str(folder / "x.json")],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        answer = json.loads((folder / "x.json").read_text())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    cpu_seconds, peak_gb = map(float, done.stdout.split()[-2:])
    count = answer["cases"]
    return {
        "workers": workers,
        "cases": count,
        "answered": answer["answered"],
        "seconds": round(seconds, 1),
        "cases_per_s": round(count / seconds),
        "cpu_seconds": round(cpu_seconds, 1),
        "peak_gb_of_a_process": round(peak_gb, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default="10m")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--services", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    cases = int(parse_count(given.cases))
    found = [measured(cases, int(number), given.open, given.services) for number in given.workers.split(",")]
    print(json.dumps(found) if given.json else "\n".join(str(row) for row in found))


if __name__ == "__main__":
    main()
