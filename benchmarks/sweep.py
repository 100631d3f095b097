"""Speed of `gpucost sweep`: cases per second, processor time and peak memory, with one process and with several.

Run it by `python -m benchmarks.sweep [--cases-of sizes] [--cases 20k] [--workers 1,2] [--json]`. Cases of

sizes     training runs on clusters of a given size: model × accelerator × size × tokens × deadline × overhead
open      the size is open, and budgets refuse about half: model × accelerator × tokens × deadline × budget × overhead
tco       own or rent: accelerator × size × use × years × rent × discount rate × tax × financing × PUE × electricity
services  model × accelerator × load × time per token × lengths of prompts and outputs
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

# what is asked -> what stays, the number of cases that it makes, and the axis that is as long as it takes
ASKED = {
    "sizes": (
        [
            "--model", "8b,70b", "--gpu", "h100,h200,b200,mi300x", "--gpus", "8:1024:x2", "--deadline", "30d:300d:30d",
            "--overhead", "0%:18%:2%",
        ],
        2 * 4 * 8 * 10 * 10,
        lambda steps: ["--tokens", f"1b:{steps}b:1b"],
    ),
    "open": (
        [
            "--model", "8b,70b,405b,mixtral-8x7b", "--gpu", "h100,h200,b200,mi300x,a100", "--deadline", "20d:200d:20d",
            "--budget", "10k,30k,100k,300k,1m,3m,10m,30m,100m,300m", "--overhead", "0%:18%:2%",
        ],
        4 * 5 * 10 * 10 * 10,
        lambda steps: ["--tokens", f"100b:{steps}00b:100b"],
    ),
    "tco": (
        [
            "--question", "tco", "--gpu", "h100-sxm,b200,a100-80gb,mi300x,h200", "--gpus", "8:1024:x2",
            "--years", "2:6:1", "--wacc", "6%,10%", "--tax-regime", "us,de", "--utilisation", "40%,80%",
            "--financing", "cash,loan,lease,operating_lease",
            "--set", "pue_ratio=1.1,1.4", "--set", "electricity_usd_per_kwh=0.06,0.12",
        ],
        5 * 8 * 5 * 2 * 2 * 4 * 2 * 2 * 2,
        lambda steps: ["--rent", f"1.5:{1.5 + 0.01 * (steps - 1):.2f}:0.01"],
    ),
    "services": (
        [
            "--question", "inference", "--model", "8b,70b,qwen3-32b,mixtral-8x7b",
            "--gpu", "h100,h200,b200,l40s,mi300x",
            "--tpot", "10ms:100ms:10ms", "--prompt-tokens", "500:5000:500", "--output-tokens", "100:1000:100",
        ],
        4 * 5 * 10 * 10 * 10,
        lambda steps: ["--tokens-per-month", f"1b:{steps}b:1b"],
    ),
}  # fmt: skip
# the usage of children counts those that have ended, and the peak is of the largest: a process between sees to both
_PEAK = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6)
sys.exit(code)
"""


def measured(kind: str, cases: int, workers: int) -> dict[str, float]:
    """Return seconds, cases per second, processor time and the peak memory of the largest process."""
    fixed, count_of_fixed, axis = ASKED[kind]
    folder = Path(tempfile.mkdtemp(prefix="sweep-"))
    # at least one step of the last axis: fewer cases than the others make cannot be asked for
    varied = axis(max(1, cases // count_of_fixed))
    command = [sys.executable, "-m", "gpucost", "sweep", *fixed, *varied, "--workers", str(workers)]
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
    processor_s, peak_gb = map(float, done.stdout.split()[-2:])
    return {
        "workers": workers,
        "cases": answer["cases"],
        "answered": answer["answered"],
        "seconds": round(seconds, 1),
        "cases_per_s": round(answer["cases"] / seconds),
        "processor_ms_per_case": round(1000 * processor_s / answer["cases"], 4),
        "peak_gb_of_a_process": round(peak_gb, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases-of", choices=list(ASKED), default="sizes")
    parser.add_argument("--cases", default="20k")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cases = int(parse_count(options.cases))
    figures = [measured(options.cases_of, cases, int(number)) for number in options.workers.split(",")]
    print(json.dumps(figures) if options.json else "\n".join(str(row) for row in figures))


if __name__ == "__main__":
    main()
