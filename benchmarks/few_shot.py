"""What a few runs of an unseen source teach about its other runs, by source: docs/few-shot.csv.

    python -m benchmarks.few_shot [--draws 40]

Each source is held out of the calibration (minutes); k of its runs, drawn at random, correct the predictions as
`gpucost calibrate` corrects them; the others are predicted.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.physics.calibration import weighted_quantile
from gpucost.physics.columns import Floats
from gpucost.physics.training.own_runs import OwnRuns, correction
from gpucost.validation import fitted, training

TABLE = Path(__file__).parents[1] / "docs" / "few-shot.csv"
RUNS = (0, 1, 2, 3, 5)
AT_LEAST = 7


def of_source(features: Floats, residual: Floats, draws: int) -> list[tuple[float, float, Floats]]:
    """Return, by how many runs were given, the mean over draws of the other runs' median error, and of what it was."""
    random, found = np.random.default_rng(0), []
    for runs in RUNS:
        medians, before, sizes = [], [], []
        for _ in range(draws if runs else 1):
            order = random.permutation(len(residual))
            own, other = order[:runs], order[runs:]
            left = residual[other]
            if runs:
                left = left - correction(OwnRuns(features[own], residual[own]), features[other])
            medians.append(np.median(np.abs(np.expm1(left))))
            before.append(np.median(np.abs(np.expm1(residual[other]))))
            sizes.append(np.abs(left))
        found.append((float(np.mean(medians)), float(np.mean(before)), np.concatenate(sizes)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40)
    draws, catalog = parser.parse_args().draws, open_catalog()
    found = fitted.training_shipped(catalog)
    seen = training.observe(found)
    residual = training.leave_one_out(found, start=training_calibration(catalog).values) - seen.log_measured
    features, sources = training.configurations(seen), np.array([row.source for row in found.rows])
    table = {}
    for name in np.unique(sources):
        mine = np.flatnonzero(sources == name)
        if len(mine) >= AT_LEAST:
            table[str(name)] = of_source(features[mine], residual[mine], draws)
            print(f"{name[:50]:50}", *(f"{after:6.1%}" for after, _, _ in table[str(name)]), flush=True)
    heading = ["source", "runs", *(f"after_{runs}_fraction" for runs in RUNS), "worse_after"]
    rows = []
    for name, entries in table.items():
        worse = [str(runs) for runs, (after, before, _) in zip(RUNS, entries, strict=True) if after > before + 5e-4]
        counts = [int((sources == name).sum()), *(f"{after:.4f}" for after, _, _ in entries), " ".join(worse)]
        rows.append(dict(zip(heading, [name, *counts], strict=True)))
    columns = list(zip(*table.values(), strict=True))
    means = [f"{np.mean([after for after, _, _ in column]):.4f}" for column in columns]
    widths = [
        weighted_quantile(
            np.concatenate([sizes for _, _, sizes in column]),
            np.concatenate([np.full(len(sizes), len(sizes) ** -0.5) for _, _, sizes in column]),
            0.8,
        )
        for column in columns
    ]
    narrow = [f"{width / widths[0]:.4f}" for width in widths]
    rows.append(dict(zip(heading, ["macro-average", len(residual), *means, ""], strict=True)))
    rows.append(dict(zip(heading, ["half width that holds 80 %", len(residual), *narrow, ""], strict=True)))
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, heading, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
