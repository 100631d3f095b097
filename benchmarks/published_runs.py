"""Estimates of published training runs from model and tokens alone: `python -m benchmarks.published_runs [--check]`.

The estimate knows the model, the tokens, the sequence and the accelerator; the cluster where the publisher names
it, else the smallest one that meets the default deadline. Software is `typical` unless a publisher describes it, of
the year of the run, and the end-to-end overhead
is the engine's own: evaluations, interruptions, start-up.
This writes docs/published-runs.md.
"""

import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from gpucost.ask.estimate import request_of
from gpucost.catalog import Catalog, open_catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.market.facts import make_market, make_offer, market_of, with_offers
from gpucost.training.run import answer_request
from gpucost.types import Offer, System

PAGE = Path(__file__).parent.parent / "docs" / "published-runs.md"


def published_runs(catalog: Catalog, software: str = "typical") -> list[dict[str, Any]]:
    """Return per published run the accelerator-hours published and estimated, with the range."""
    return [compare_run(row, catalog, software) for row in catalog.rows("published_runs")]


def compare_run(row: Mapping[str, Any], catalog: Catalog, software: str) -> dict[str, Any]:
    """Estimate one published run on an offer of its accelerator at one USD an hour."""
    offer, system = _offer(row["gpu"], catalog)
    market = market_of(catalog)
    facts = with_offers(market.facts, [offer], [system])
    mask = np.arange(len(facts.offers)) == len(facts.offers) - 1
    request = request_of(
        {
            "model": row["model"],
            "tokens": row["tokens"],
            "gpus": row["gpus"],
            "sequence": row["sequence_tokens"],
            "precision": row["precision"],
            "software": row["software"] or software,
            "software_year": row["software_year"],
        }
    )
    answer = answer_request(
        request, catalog.architecture(row["model"]), make_market(facts), mask, training_calibration(catalog)
    )
    best = answer["options"][0]
    steps, slow, fast = best["lines"][0]["quantity"], best["days_high"] / best["days"], best["days_low"] / best["days"]
    published, hours = row["published_gpu_hours"], steps if row["counts"] == "steps" else best["gpu_hours"]
    return {
        "id": row["id"],
        "gpu": row["gpu"],
        "gpus": best["gpus"],
        "tokens": row["tokens"],
        "precision": row["precision"],
        "published_gpu_hours": published,
        "estimated_gpu_hours": hours,
        "low_gpu_hours": hours * fast,
        "high_gpu_hours": hours * slow,
        "estimated_ratio": hours / published,
        "mfu_fraction": best["mfu_fraction"],
        "overhead_fraction": hours / steps - 1,
        "inside": bool(hours * fast <= published <= hours * slow),
        "source_id": row["source_id"],
        "notes": row["notes"],
    }


def _offer(gpu: str, catalog: Catalog) -> tuple[Offer, System]:
    """Return an offer of the accelerator's usual node at one USD an hour."""
    system = catalog.default_system(gpu)
    offer = make_offer(
        {
            "offer_id": "published",
            "offer_kind": "offer",
            "provider": "published",
            "instance_type": system.id,
            "gpu": gpu,
            "gpu_assumed": False,
            "gpus": system.gpus,
            "region_scope": "unknown",
            "option": "on_demand",
            "billing": "per_use",
            "term_months": 0,
            "payment": "none",
            "usd_per_hour": float(system.gpus),
            "usd_per_gpu_hour": 1.0,
            "observed_on": date(2020, 1, 1),
            "confidence": "high",
        }
    )
    return offer, system


INTRODUCTION = """# Published runs against estimates

Accelerator-hours of whole training runs as their publishers state them, beside what `gpucost estimate` says from the
model, the tokens, the sequence and the accelerator alone. Nothing of a run's own speed enters its estimate: software is
`typical` or as the publisher describes it, of the year of the run, the cluster the published one or else the cheapest that ends within 30 days. The overhead over the bare
training steps (evaluations, interruptions, restarts, checkpoints, start-up) is the engine's and stands in a column; none is added where the published hours are those of steps at their steady speed.
This page is written by `python -m benchmarks.published_runs`.

| run | accelerator | precision | published hours | estimated | 80 % range | estimated ÷ published | MFU | overhead | inside |
|---|---|---|--:|--:|--:|--:|--:|--:|---|
"""  # noqa: E501


def as_markdown(rows: list[dict[str, Any]], native: Mapping[str, Any]) -> str:
    """Write the page of the documentation."""
    inside = sum(row["inside"] for row in rows)
    lines = [
        f"| {row['id']} | {row['gpus']:,} × {row['gpu']} | {row['precision']} | {_hours(row['published_gpu_hours'])} |"
        f" {_hours(row['estimated_gpu_hours'])} | {_hours(row['low_gpu_hours'])} to {_hours(row['high_gpu_hours'])} |"
        f" {row['estimated_ratio']:.2f} | {row['mfu_fraction']:.0%} | {row['overhead_fraction']:.1%} |"
        f" {'yes' if row['inside'] else '**no**'} |"
        for row in rows
    ]
    lines += ["", f"{inside} of {len(rows)} published figures lie inside the range.", "", "Findings:", ""]
    lines += [f"- **{row['id']}**: {row['notes']}." for row in rows if not row["inside"]]
    steps = native["estimated_gpu_hours"] / (1 + native["overhead_fraction"])
    lines += [
        "",
        f"With `--software native` the estimate of {native['id']} is {_hours(native['estimated_gpu_hours'])} hours,"
        f" of which {_hours(steps)} are steps and the rest is start-up and evaluation of a run of 90 minutes.",
        "",
    ]
    return INTRODUCTION + "\n".join(lines)


def _hours(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def page() -> str:
    catalog = open_catalog()
    rows = published_runs(catalog)
    native = next(row for row in catalog.rows("published_runs") if row["id"] == "gpt-2-124m-llm.c")
    return as_markdown(rows, compare_run(native, catalog, "native"))


def main() -> int:
    text = page()
    if "--check" in sys.argv:
        same = PAGE.is_file() and PAGE.read_text("utf-8") == text
        print(
            "docs/published-runs.md is current"
            if same
            else "docs/published-runs.md is stale: run python -m benchmarks.published_runs"
        )
        return 0 if same else 1
    PAGE.write_text(text, "utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
