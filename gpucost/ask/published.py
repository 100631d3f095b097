"""Whole training runs as their publishers state them, against what `gpucost estimate` says of them.

The estimate knows the model, the tokens, the sequence and the accelerator; the cluster where the publisher names it,
else the smallest one that meets the default deadline. Nothing of a run's own speed enters. A run's hours hold more than
its steps: restarts, evaluations, failures, and layouts that are good rather than best.
"""

from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np

from gpucost.answers.checks import Skipped, ValidationReport
from gpucost.ask.estimate import request_of
from gpucost.calibration import measurements, training_rows, wording
from gpucost.calibration.measurements import Item, read_file
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.errors import GpuCostError
from gpucost.market.facts import make_market, make_offer, market_of, with_offers
from gpucost.physics.software import CLASSES, software_class
from gpucost.physics.training.efficiency import FUSED_YEAR
from gpucost.training.run import answer_request

_METRIC = "gpu_hours"
# How far the hours of whole runs lie from an estimate, in logarithms: what four of five of the shipped runs hold
# (models/measurements/published_runs.csv; Llama 3 8B at half the speed of its sisters, StarCoder, Phi-3 and Pythia at
# two thirds). Clusters, layouts, restarts and what counts as a run differ from publisher to publisher.
RUN_WIDTH = 0.48
# Hours of whole runs of 2021 and 2022 against their steps as later stacks would take them: OPT's 105 restarts, BLOOM's
# shared queue, Pythia's layers that wait for each other. The median of the five shipped runs of those years.
_EARLY_RUN_RATIO = 1.23
_NUMBERS = ("tokens", "sequence_tokens", "gpus", "software_year", "published_gpu_hours")  # columns of a person's file


def compare_runs(catalog: Catalog, software: str = "typical") -> list[dict[str, Any]]:
    """Return per published run the accelerator-hours published and estimated, with the range."""
    return [compare_run(row, catalog, software) for row in catalog.rows("published_runs")]


def compare_run(row: Mapping[str, Any], catalog: Catalog, software: str) -> dict[str, Any]:
    """Estimate one published run on an offer of its accelerator at one USD an hour."""
    notes: list[str] = []
    accelerator = training_rows.find_accelerator(str(row["gpu"]), catalog, notes)
    architecture = training_rows.find_architecture(
        {"model": row["model"], "params_b": row.get("params_b")}, catalog, notes
    )
    # an offer of the accelerator's usual node at one USD an hour, so that its cost is its hours; it alone is ranked
    system = catalog.default_system(accelerator.id)
    offer = make_offer(
        {
            "offer_id": "published",
            "offer_kind": "offer",
            "provider": "published",
            "instance_type": system.id,
            "gpu": accelerator.id,
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
    facts = with_offers(market_of(catalog).facts, [offer], [system])
    mask = np.arange(len(facts.offers)) == len(facts.offers) - 1
    stack = _stack_of(row.get("software")) or software
    request = request_of(
        {
            "model": row["model"],
            "tokens": row["tokens"],
            "gpus": row["gpus"],
            "sequence": row["sequence_tokens"],
            "precision": row["precision"],
            "software": stack,
            "software_year": row["software_year"],
        }
    )
    answer = answer_request(request, architecture, make_market(facts), mask, training_calibration(catalog))
    best = answer["options"][0]
    # the first line of the bill holds the hours of its steps
    steps, slow, fast = best["lines"][0]["quantity"], best["days_high"] / best["days"], best["days_low"] / best["days"]
    # some publishers count the hours of the steps, others of all that the run took
    published, hours = row["published_gpu_hours"], steps if row["counts"] == "steps" else best["gpu_hours"]
    overhead = hours / steps - 1
    if row["software_year"] and row["software_year"] < FUSED_YEAR and stack != "compiler":
        hours = hours * _EARLY_RUN_RATIO
    # the wider of the model's own range and of how whole runs scatter
    low, high = hours * min(fast, np.exp(-RUN_WIDTH)), hours * max(slow, np.exp(RUN_WIDTH))
    return {
        "id": row["id"],
        "gpu": accelerator.id,
        "gpus": best["gpus"],
        "tokens": row["tokens"],
        "precision": row["precision"],
        "published_gpu_hours": published,
        "estimated_gpu_hours": hours,
        "low_gpu_hours": float(low),
        "high_gpu_hours": float(high),
        "estimated_ratio": hours / published,
        "mfu_fraction": best["mfu_fraction"],
        "overhead_fraction": overhead,
        "inside": bool(low <= published <= high),
        "source_id": row.get("source_id") or "",
        "notes": "; ".join(filter(None, (str(row.get("notes") or ""), *notes))),
    }


def _stack_of(framework: object) -> str:
    """Return the class of software that a cell names, or that a framework's name stands for; nothing where it is open.

    >>> _stack_of("megatron"), _stack_of("GPT-NeoX"), _stack_of("in-house"), _stack_of(None)
    ('megatron', 'deepspeed', '', '')
    """
    name = "" if wording.missing(framework) else str(framework).strip()
    if name in CLASSES:
        return name
    stack = software_class(name)
    return "" if stack == "unknown" else stack


def validate_runs(catalog: Catalog, path: str | None = None, *, core: bool = False) -> ValidationReport:
    """Hold the hours of whole runs against their estimates; nothing is fitted to them."""
    rows = [] if path else catalog.rows("published_runs")
    for row in read_file(path) if path else ():
        # of a person's file numbers as numbers, and what is empty as None
        cells: dict[str, Any] = {name: None if wording.missing(cell) else cell for name, cell in row.items()}
        cells |= {name: wording.number(row.get(name)) for name in _NUMBERS}
        cells["gpus"] = wording.count(row.get("gpus"))
        rows.append({"model": None, "gpu": None, "precision": None, "counts": "run"} | cells)
    items: list[Item] = []
    skipped: list[Skipped] = []
    for place, row in enumerate(rows):
        name = str(row.get("id") or f"row {place + 2}")  # a file begins with its header, and people count from one
        if missing := [column for column in ("tokens", "published_gpu_hours") if not row.get(column)]:
            skipped.append({"id": name, "reason": f"it does not state {' and '.join(missing)}"})
            continue
        try:
            run = compare_run({**row, "sequence_tokens": row.get("sequence_tokens")}, catalog, "typical")
        except GpuCostError as error:
            skipped.append({"id": name, "reason": str(error)})
            continue
        hours, published = float(run["estimated_gpu_hours"]), float(run["published_gpu_hours"])
        ends = run["low_gpu_hours"], run["high_gpu_hours"]
        items.append(Item(name, _source_of(row), _METRIC, published, hours, *ends, "runs", ()))
    sources = {str(row.get("id") or ""): _source_of(row) for row in rows}
    method = "hours from the model, the tokens and the accelerators; nothing is fitted to whole runs"
    return measurements.payload(len(rows), items, skipped, sources, kind="validation", validated="runs", method=method)


def _source_of(row: Mapping[str, Any]) -> str:
    """Return who published a run."""
    return str(row.get("source_name") or row.get("source_id") or row.get("id") or "")
