"""How fast the search is: all legal layouts for powers of two and multiples of 8 GPUs; a million explicit cases.

    python -m benchmarks.layouts [--json]

Times are medians. `layouts_per_s` counts layouts that were timed by the search over the powers of two, memory included.
"""

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gpucost.catalog import Catalog, open_catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.physics.training import layouts
from gpucost.speed.throughput import Wanted, columns_answer

MODEL, GPU = "llama-3-70b", "h100-sxm"
POWERS = [2.0**k for k in range(3, 15)]
MULTIPLES = [8.0 * k for k in range(1, 2049)]
CASES = 1_000_000


def median_s(function: Callable[[], Any], times: int) -> float:
    """Return the median time of a call, after one that warms up."""
    function()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def search(catalog: Catalog, gpus: list[float]) -> Callable[[], layouts.BestLayouts]:
    """Return the search over all legal layouts for each number of accelerators."""
    model, chip = catalog.architecture(MODEL), catalog.accelerator(GPU)
    node, values = catalog.default_system(chip.id), training_calibration(catalog).values
    chips, nodes = [chip] * len(gpus), [node] * len(gpus)
    return lambda: layouts.best_layouts(model, chips, nodes, gpus, values=values, wide=True)


def million(catalog: Catalog) -> Callable[[], Any]:
    """Return the timing of a million explicit cases."""
    rng = np.random.default_rng(0)
    tensor, pipeline, data = (2.0 ** rng.integers(0, high, CASES) for high in (4, 4, 6))
    micro = 2.0 ** rng.integers(0, 2, CASES)
    wanted = Wanted(
        model=MODEL, gpu=GPU, gpus=tensor * pipeline * data, tensor=tensor, pipeline=pipeline, micro_batch=micro,
        global_batch=data * micro * 8, sequence=8192.0, sharding=1,
    )  # fmt: skip
    return lambda: columns_answer(catalog, wanted)


def measure() -> dict[str, float]:
    """Return every figure."""
    catalog = open_catalog()
    powers, multiples = search(catalog, POWERS), search(catalog, MULTIPLES)
    candidates = int(powers().candidates.sum())
    powers_s, multiples_s = median_s(powers, 15), median_s(multiples, 7)
    million_s = median_s(million(catalog), 3)
    return {
        "layouts_per_s": candidates / powers_s,
        "layouts": candidates,
        "powers_of_two_s": powers_s,
        "multiples_of_eight_s": multiples_s,
        "multiples_of_eight_layouts": int(multiples().candidates.sum()),
        "million_cases_s": million_s,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def main() -> None:
    """Print the figures, as JSON if asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    found = measure()
    if parser.parse_args().json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:28} {value:,.4g}")


if __name__ == "__main__":
    main()
