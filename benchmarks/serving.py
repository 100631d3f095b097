"""How fast serving is answered: one estimate over all offers, and a million explicit cases in chunks.

python -m benchmarks.serving [--json]
"""

import argparse
import json
import statistics
import time

import numpy as np

import gpucost
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import serving_calibration
from gpucost.physics.columns import CHUNK
from gpucost.physics.serving import steps as serving
from gpucost.physics.serving.cases import ServedReplica, build

CASES = 1_000_000


def warm_estimate_ms(repeats: int = 9) -> float:
    catalog = open_catalog()
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        gpucost.inference("llama-3.1-70b", catalog=catalog, precision="fp8", prompt_tokens=2000, output_tokens=300)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[1:])


def million_cases_s() -> float:
    catalog = open_catalog()
    chips = [catalog.accelerator(name) for name in ("a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm-141gb", "b200-sxm")]
    model = catalog.architecture("llama-3.1-70b")
    rows = [
        ServedReplica(model, a, catalog.default_system(a.id), format="fp8", tensor=t)
        for a in chips
        for t in (1, 2, 4, 8)
    ]
    case, _ = build(rows, serving_calibration(catalog).values)
    dice = np.random.default_rng(0)
    which, batch = dice.integers(0, len(rows), CASES), dice.integers(1, 512, CASES).astype(float)
    prompt, output = dice.integers(16, 8192, CASES).astype(float), dice.integers(16, 1024, CASES).astype(float)
    start = time.perf_counter()
    for first in range(0, CASES, CHUNK):
        part = slice(first, first + CHUNK)
        serving.steady(case.take(which[part]), batch[part], prompt[part], output[part])
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = {"warm_estimate_ms": round(warm_estimate_ms(), 1), "million_cases_s": round(million_cases_s(), 2)}
    print(json.dumps(found) if asked.json else "\n".join(f"{name}: {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
