"""Estimates of published training runs from model and tokens alone: `python -m benchmarks.published_runs [--check]`.

The estimate knows the model, the tokens, the sequence and the accelerator; the cluster where the publisher names
it, else the smallest one that meets the default deadline. Software is `typical` unless a publisher describes it, of
the year of the run, and the end-to-end overhead
is the engine's own: evaluations, interruptions, start-up.
This writes docs/published-runs.md.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpucost.ask.published import RUN_WIDTH, compare_run, compare_runs
from gpucost.catalog import open_catalog

PAGE = Path(__file__).parent.parent / "docs" / "published-runs.md"


INTRODUCTION = f"""# Published runs against estimates

Accelerator-hours of whole training runs as their publishers state them, beside what `gpucost estimate` says from the
model, the tokens, the sequence and the accelerator alone. Nothing of a run's own speed enters its estimate: software is
`typical` or as the publisher describes it, of the year of the run, the cluster the published one or else the cheapest that ends within 30 days. The overhead over the bare
training steps (evaluations, interruptions, restarts, checkpoints, start-up) is the engine's and stands in a column; none is added where the published hours are those of steps at their steady speed. The range of a whole run is at least a
factor of {np.exp(RUN_WIDTH):.2f} on either side: what runs turned out to be.
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
    # what of the hours is steps: the rest of so short a run is start-up, which no overhead of long runs says
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


def page(rows: list[dict[str, Any]] | None = None) -> str:
    """Return the page of the runs as they are compared, here unless they were already."""
    catalog = open_catalog()
    rows = rows or compare_runs(catalog)
    # the one run of software written for it alone, which no typical software is like
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
