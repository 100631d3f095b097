"""Speed of `gpucost sweep`: cases per second and peak memory, with one process and with several.

Run it by `python -m benchmarks.sweep [--cases 10m] [--workers 1,2] [--json]`. Cases are training runs on clusters of a
given size: model × accelerator × size × tokens × deadline × overhead.
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
_PEAK = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6)
sys.exit(code)
"""


def measured(cases: int, workers: int) -> dict[str, float]:
    """Return seconds, cases per second and the peak memory of the largest process."""
    tokens = f"1b:{max(1, cases // FIXED)}b:1b"
    folder = Path(tempfile.mkdtemp(prefix="sweep-"))
    command = [sys.executable, "-m", "gpucost", "sweep", *ASKED, "--tokens", tokens, "--workers", str(workers)]
    try:
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, *command, "--into", str(folder), "-o", str(folder / "x.json")],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        count = json.loads((folder / "x.json").read_text())["cases"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "workers": workers,
        "cases": count,
        "seconds": round(seconds, 1),
        "cases_per_s": round(count / seconds),
        "peak_gb_of_a_process": round(float(done.stdout.split()[-1]), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default="10m")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = [measured(int(parse_count(given.cases)), int(number)) for number in given.workers.split(",")]
    print(json.dumps(found) if given.json else "\n".join(str(row) for row in found))


if __name__ == "__main__":
    main()
