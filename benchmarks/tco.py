"""Time of a comparison, of 10,000 Monte Carlo draws over 60 months, and of a 60-month mix with six options.

python -m benchmarks.tco [--json]
"""

import argparse
import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import gpucost
from gpucost.catalog import open_catalog
from gpucost.ownership import analysis
from gpucost.ownership.assemble import assemble
from gpucost.ownership.plan import PlanFile

BUDGET_S = {"comparison": 0.050, "monte_carlo_10k_x_60": 1.0, "mix_60_x_6": 5.0}
SUPPLIES = [
    {"name": "reserved_1y", "kind": "reserved", "usd_per_gpu_hour": 2.1, "term_months": 12, "unit_gpus": 8},
    {"name": "reserved_3y", "kind": "reserved", "usd_per_gpu_hour": 1.7, "term_months": 36, "unit_gpus": 8},
    {"name": "on_demand", "kind": "on_demand", "usd_per_gpu_hour": 2.99, "max_gpus": 200},
    {"name": "other_cloud", "kind": "on_demand", "usd_per_gpu_hour": 3.4},
    {"name": "spot", "kind": "spot", "usd_per_gpu_hour": 1.6, "stretch_ratio": 1.15, "max_share_fraction": 0.2},
]


def seconds(call: Callable[[], Any], times: int) -> float:
    """Return the median time of a call, the first one left out."""
    call()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return median(taken)


def measure() -> dict[str, float]:
    """Return seconds by task."""
    catalog = open_catalog()
    asked = {"gpus": 64, "rent_usd_per_gpu_hour": 2.35, "months": 60}
    case = assemble(catalog, PlanFile(), asked, {"gpu": "h100-sxm"})

    def mix() -> Any:
        plan = {"supply": SUPPLIES}
        return gpucost.mix(
            constant=64, growth="40%", months=60, gpu="h100-sxm", lead_time_weeks=20, plan=plan, catalog=catalog
        )

    def compare() -> Any:
        return gpucost.tco("h100-sxm", 64, utilisation=0.7, years=4, rent=2.35, catalog=catalog)

    return {
        "comparison": seconds(compare, 15),
        "monte_carlo_10k_x_60": seconds(lambda: analysis.monte_carlo(case, 10_000, 1), 5),
        "mix_60_x_6": seconds(mix, 3),
    }


def main() -> None:
    """Print the times beside their budgets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    found = measure()
    if parser.parse_args().json:
        print(json.dumps({f"{name}_s": value for name, value in found.items()}))
        return
    for name, value in found.items():
        print(f"{name:24} {value * 1000:9.1f} ms   budget {BUDGET_S[name] * 1000:7.0f} ms")


if __name__ == "__main__":
    main()
