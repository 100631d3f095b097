"""How fast the engines answer: warm questions over every offer, the search of layouts, a million explicit cases.

    python -m benchmarks.speed [--repeats 9] [--json]

Times are medians, after a call that warms up. `layouts_per_s` counts layouts that were timed by the search over powers
of two, memory included. A cold start is `benchmarks.startup`, cases of sweeps are `benchmarks.sweep`.
"""

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

import gpucost
from gpucost.catalog import Catalog, open_catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration
from gpucost.ownership import analysis
from gpucost.ownership.assemble import assemble
from gpucost.ownership.plan import PlanFile
from gpucost.physics.columns import CHUNK
from gpucost.physics.serving import steps
from gpucost.physics.serving.cases import ServedReplica, build
from gpucost.physics.training import layouts
from gpucost.speed.throughput import LayoutQuestion, columns_answer

MODEL, GPU = "llama-3-70b", "h100-sxm"
_SERVED_ON = ("a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm-141gb", "b200-sxm")
POWERS = [2.0**k for k in range(3, 15)]
_MULTIPLES = [8.0 * k for k in range(1, 2049)]
CASES = 1_000_000
# what a question may take, warm
_BUDGET_S = {"estimate": 0.050, "owning": 0.050, "monte_carlo_10k_x_60": 1.0, "mix_60_x_6": 5.0}
# six ways to have capacity, with the purchase: what the mix is sized by
_SUPPLIES = [
    {"name": "reserved_1y", "kind": "reserved", "usd_per_gpu_hour": 2.1, "term_months": 12, "unit_gpus": 8},
    {"name": "reserved_3y", "kind": "reserved", "usd_per_gpu_hour": 1.7, "term_months": 36, "unit_gpus": 8},
    {"name": "on_demand", "kind": "on_demand", "usd_per_gpu_hour": 2.99, "max_gpus": 200},
    {"name": "other_cloud", "kind": "on_demand", "usd_per_gpu_hour": 3.4},
    {"name": "spot", "kind": "spot", "usd_per_gpu_hour": 1.6, "stretch_ratio": 1.15, "max_share_fraction": 0.2},
]


def search(catalog: Catalog, gpus: list[float]) -> Callable[[], layouts.BestLayouts]:
    """Return the search over all legal layouts for each number of accelerators."""
    model, chip = catalog.architecture(MODEL), catalog.accelerator(GPU)
    node, values = catalog.default_system(chip.id), training_calibration(catalog).values
    chips, nodes = [chip] * len(gpus), [node] * len(gpus)
    return lambda: layouts.best_layouts(model, chips, nodes, gpus, values=values, wide=True)


def _training_cases(catalog: Catalog) -> Callable[[], Any]:
    """Return the timing of a million explicit cases of training."""
    rng = np.random.default_rng(0)
    # powers of two, as layouts are; sizes from one accelerator to thousands
    tensor, pipeline, data = (2.0 ** rng.integers(0, high, CASES) for high in (4, 4, 6))
    micro = 2.0 ** rng.integers(0, 2, CASES)
    cases = LayoutQuestion(
        model=MODEL, gpu=GPU, gpus=tensor * pipeline * data, tensor=tensor, pipeline=pipeline, micro_batch=micro,
        global_batch=data * micro * 8, sequence=8192.0, sharding=1,
    )  # fmt: skip
    return lambda: columns_answer(catalog, cases)


def _serving_cases(catalog: Catalog) -> Callable[[], None]:
    """Return the timing of a million explicit cases of serving, in chunks."""
    model, chips = catalog.architecture("llama-3.1-70b"), [catalog.accelerator(name) for name in _SERVED_ON]
    rows = [
        ServedReplica(model, chip, catalog.default_system(chip.id), format="fp8", tensor=tensor)
        for chip in chips
        for tensor in (1, 2, 4, 8)
    ]
    case, _ = build(rows, serving_calibration(catalog).values)
    dice = np.random.default_rng(0)
    replica, batch = dice.integers(0, len(rows), CASES), dice.integers(1, 512, CASES).astype(float)
    prompt, output = dice.integers(16, 8192, CASES).astype(float), dice.integers(16, 1024, CASES).astype(float)

    def timed() -> None:
        for first in range(0, CASES, CHUNK):  # as sweeps do: larger columns fall out of the caches
            part = slice(first, first + CHUNK)
            steps.steady(case.take(replica[part]), batch[part], prompt[part], output[part])

    return timed


def measure(repeats: int) -> dict[str, float]:
    """Return every figure."""
    catalog, numbers = open_catalog(), count(100)  # another number of tokens each time: no answer is remembered
    owned = assemble(
        catalog, PlanFile(), {"gpus": 64, "rent_usd_per_gpu_hour": 2.35, "months": 60}, {"gpu": "h100-sxm"}
    )
    request = {"precision": "fp8", "prompt_tokens": 2000, "output_tokens": 300, "catalog": catalog}
    mixed = {"constant": 64, "growth": "40%", "months": 60, "gpu": "h100-sxm", "lead_time_weeks": 20}
    questions: dict[str, Callable[[], Any]] = {
        "estimate": lambda: gpucost.estimate("8b", next(numbers) * 1e9, with_facts=False, catalog=catalog),
        "inference": lambda: gpucost.inference("llama-3.1-70b", **request),
        "owning": lambda: gpucost.tco("h100-sxm", 64, utilisation=0.7, years=4, rent=2.35, catalog=catalog),
        "monte_carlo_10k_x_60": lambda: analysis.monte_carlo(owned, 10_000, 1),
        "mix_60_x_6": lambda: gpucost.mix(plan={"supply": _SUPPLIES}, catalog=catalog, **mixed),
        "powers_of_two": search(catalog, POWERS),
        "multiples_of_eight": search(catalog, _MULTIPLES),
        "million_training_cases": _training_cases(catalog),
        "million_serving_cases": _serving_cases(catalog),
    }
    seconds = {}
    for name, call in questions.items():
        call()  # warms up: modules are imported, tables are loaded
        times_s = []
        for _ in range(repeats):
            start = time.perf_counter()
            call()
            times_s.append(time.perf_counter() - start)
        seconds[f"{name}_s"] = statistics.median(times_s)
    # layouts that were timed, not those that the rules of the search left out before
    candidates = int(search(catalog, POWERS)().candidates.sum())
    return seconds | {
        "layouts_per_s": candidates / seconds["powers_of_two_s"],
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def main() -> None:
    """Print the figures beside their budgets, or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    stated = parser.parse_args()
    figures = measure(stated.repeats)
    if stated.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        budget = _BUDGET_S.get(name.removesuffix("_s"))
        print(f"{name:28} {value:12,.4g}{f'   budget {budget:g}' if budget else ''}")


if __name__ == "__main__":
    main()
