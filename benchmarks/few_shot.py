"""What a few runs of an unseen source teach about its other runs: the table of docs/own-machine.md.

    python -m benchmarks.few_shot [--draws 4]

Each source is held out of the calibration (minutes); k of its runs, drawn at random, tune it; the others are predicted.
"""

import argparse

import numpy as np

from gpucost.catalog import open_catalog
from gpucost.physics.calibration import weighted_quantile
from gpucost.physics.training import calibration as cal
from gpucost.validation import fitted, training

RUNS = (0, 1, 2, 3, 5)
AT_LEAST = 7
OTHERS = 60  # runs of a source that are predicted after each draw


def errors(seen: cal.Observations, values: dict[str, float]) -> np.ndarray:
    """Return |log(predicted ÷ measured)|."""
    return np.abs(cal.log_predicted(seen, values) - seen.log_measured)


def tuned(seen: cal.Observations, values: dict[str, float]) -> dict[str, float]:
    """Return a calibration after some runs, as `gpucost calibrate` makes it."""
    return cal.fit(seen, values, fitted.OWN_SPREAD_RATIO, between=0.0, within=training.WITHIN_OWN)


def of_source(seen: cal.Observations, mine: np.ndarray, values: dict[str, float], draws: int) -> list[np.ndarray]:
    """Return the errors of one source's other runs, by how many of its runs were given."""
    random, found = np.random.default_rng(0), [errors(seen.take(mine), values)]
    for runs in RUNS[1:]:
        after = []
        for _ in range(draws):
            order = random.permutation(mine)
            own = tuned(seen.take(order[:runs]), values)
            after.append(errors(seen.take(order[runs:][:OTHERS]), own))
        found.append(np.concatenate(after))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4)
    draws = parser.parse_args().draws
    found = fitted.training_shipped(open_catalog())
    seen, usable = training.observe(found), training.fit_rows(found)
    sources = np.array([row.source for row in found.rows])
    table = []
    for name in np.unique(sources):
        mine = np.flatnonzero(sources == name)
        if len(mine) >= AT_LEAST:
            table.append(of_source(seen, mine, cal.fit(seen.take(np.flatnonzero(usable & (sources != name)))), draws))
            print(f"{name[:50]:50}", *(f"{np.median(np.expm1(e)):6.1%}" for e in table[-1]), flush=True)
    columns = list(zip(*table, strict=True))
    medians = [np.mean([np.median(np.expm1(e)) for e in column]) for column in columns]
    print(f"{'macro-average of medians':50}", *(f"{value:6.1%}" for value in medians))
    widths = [
        weighted_quantile(np.concatenate(c), np.concatenate([np.full(len(e), len(e) ** -0.5) for e in c]), 0.8)
        for c in columns
    ]
    print(f"{'half width that holds 80 %, against none':50}", *(f"{width / widths[0]:6.2f}" for width in widths))


if __name__ == "__main__":
    main()
