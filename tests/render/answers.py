"""Answers for the tests: real ones from the shipped catalog, and a hand-made one that can be checked by eye."""

from functools import cache
from typing import Any

import gpucost


@cache
def training() -> dict[str, Any]:
    """64 H100 on demand for 8B on 100B tokens."""
    return gpucost.estimate(model="8b", tokens="100b", gpu="h100-sxm", gpus=64, top=8).to_dict()


@cache
def ownership() -> dict[str, Any]:
    """64 H100 over four years."""
    return gpucost.tco(gpu="h100-sxm", gpus=64, utilisation="70%", years=4, rent=2.35, draws=200).to_dict()


@cache
def serving() -> dict[str, Any]:
    """A 70B model in fp8 for 5 billion tokens a month on H100 on demand."""
    return gpucost.inference(**SERVING).to_dict()


SERVING: dict[str, Any] = {
    "model": "70b",
    "prompt": 1000,
    "output": 250,
    "tokens_per_month": "5b",
    "precision": "fp8",
    "gpu": "h100-sxm",
    "option": "on_demand",
    "top": 5,
}


def by_hand() -> dict[str, Any]:
    """Two offers in round figures: 1,000 GPU-hours at 2 and at 3 dollars, plus 50 GB of egress at 10 cents."""
    options = []
    for rank, (provider, price) in enumerate((("alpha", 2.0), ("beta", 3.0)), 1):
        lines = [
            {
                "name": "compute",
                "quantity": 1000.0,
                "unit": "GPU-hour",
                "unit_price_usd": price,
                "cost_usd": 1000 * price,
                "note": "",
            },
            {"name": "egress", "quantity": 50.0, "unit": "GB", "unit_price_usd": 0.1, "cost_usd": 5.0, "note": ""},
        ]
        cost = 1000 * price + 5
        options.append(
            {
                "rank": rank,
                "provider": provider,
                "instance_type": "8x",
                "region": "us",
                "option": "on_demand",
                "gpu": "h100-sxm5-80gb",
                "gpus": 8,
                "nodes": 1,
                "layout": {"data": 8},
                "tokens_per_s_per_gpu": 10_000.0,
                "mfu_fraction": 0.4125,
                "days": 5.25,
                "gpu_hours": 1000.0,
                "usd_per_gpu_hour": price,
                "cost_usd": cost,
                "cost_low_usd": cost * 0.8,
                "cost_high_usd": cost * 1.25,
                "usd_per_mtok": cost / 36_000,
                "energy_kwh": 1051.875,
                "kgco2e": 386.0,
                "price_observed_on": "2026-11-01",
                "age_days": 19,
                "source_ids": [f"{provider}-list"],
                "lines": lines,
                "notes": [],
            }
        )
    sources = {
        f"{name}-list": {
            "publisher": name.title(),
            "title": "Price list",
            "locator": f"https://{name}.example/prices",
            "published_on": "2026-11-01",
            "accessed_on": "2026-11-02",
        }
        for name in ("alpha", "beta")
    }
    return {
        "kind": "estimate",
        "schema_version": 1,
        "request": {"model": "8b", "tokens": 36e9},
        "as_of": "2026-11-20",
        "catalog_version": "test",
        "summary": "About 2,005 USD.",
        "options": options,
        "excluded": [{"provider": "gamma", "instance_type": "1x", "reason": "no named fabric"}],
        "warnings": ["Prices of beta are old."],
        "sources": sources,
        "scaling": [{"gpus": count, "days": 42 / count, "cost_usd": 2000.0 + count} for count in (4, 8, 16)],
        "alternatives": [],
        "drivers": [],
        "not_included": ["taxes"],
        "assumptions": [],
    }
