"""Start-up, side by side: each of our commands and the bare imports that it rests on, as medians of paired ratios.

python -m benchmarks.startup [--pairs 15] [--json]
"""

import argparse
import json
import os
import subprocess
import sys
import time
from statistics import median

# ours, the bare program beside it, and the ratio that is allowed
_BARE_CLICK = ["-c", "import click"]
_BARE_ENGINE = ["-c", "import click, numpy, duckdb; from pydantic import BaseModel; duckdb.connect()"]
_PAIRS = {
    "help": (["-m", "gpucost", "--help"], _BARE_CLICK, 1.2),
    "estimate": (["-m", "gpucost", "estimate", "--model", "8b", "--tokens", "100b"], _BARE_ENGINE, 1.25),
    "prices": (["-m", "gpucost", "prices", "--gpu", "h100-sxm"], _BARE_ENGINE, 1.25),
}


# Installed packages are compiled; a checkout must be allowed to keep its bytecode, or compiling is timed instead.
_NOT_PASSED_ON = ("GPUCOST_", "PYTHONDONTWRITEBYTECODE")


def seconds(arguments: list[str]) -> float:
    """Return the wall time of one Python process."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_PASSED_ON)}
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env=environment
    )
    return time.perf_counter() - start


def measure(ours: list[str], bare: list[str], pairs: int) -> dict[str, float]:
    """Run both in turn; the ratio of each pair cancels what the machine was doing at the time."""
    seconds(ours), seconds(bare)  # files come into the cache of the system, bytecode is written
    timed = [(seconds(ours), seconds(bare)) for _ in range(pairs)]
    return {
        "ours_s": median(ours_s for ours_s, _ in timed),
        "bare_s": median(bare_s for _, bare_s in timed),
        "ratio": median(ours_s / bare_s for ours_s, bare_s in timed),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    answers = {
        name: {**measure(ours, bare, arguments.pairs), "allowed_ratio": allowed}
        for name, (ours, bare, allowed) in _PAIRS.items()
    }
    if arguments.json:
        print(json.dumps(answers))
        return
    for name, answer in answers.items():
        print(
            f"{name:10} {1000 * answer['ours_s']:6.0f} ms  bare {1000 * answer['bare_s']:6.0f} ms  "
            f"ratio {answer['ratio']:.2f} (budget {answer['allowed_ratio']})"
        )


if __name__ == "__main__":
    main()
