"""What a few runs of an unseen source teach about its other runs, by source: docs/few-shot.csv.

    python -m benchmarks.few_shot [--draws 1000] [--sources 2]

Each source is held out of the calibration; k of its runs, drawn at random, correct the predictions as
`gpucost calibrate` corrects them; the others are predicted. Column 0 is the median error of all runs of a source; those
of k add by how much that of its other runs changed, in the mean over the draws; "all others" predicts each run after
all others of its source. `worse_after` names the k after which the others came out worse, `beyond_noise_after` those
where by more than the source's own noise. A run that is off by no more than noise moves no other run.
"""

import argparse
import csv
import io
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpucost.calibration import fits, training
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.physics.calibration import weighted_quantile
from gpucost.physics.columns import Floats
from gpucost.physics.training.own_runs import PLAIN, believed, covariances
from tools import training_fit

TABLE = Path(__file__).parents[1] / "docs" / "few-shot.csv"
_RUNS = (0, 1, 2, 3, 5)
AT_LEAST, AT_MOST = 7, 60  # runs of a source; of them, those that all others are tried on
MEAN, WIDTH = "macro-average", "half width that holds 80 %"
PROMISED = "the same, of widths narrowed by closeness"
_AFTER = [*(f"after_{runs}_fraction" for runs in _RUNS), "after_all_others_fraction"]
HEADING = ["source", "runs", *_AFTER, "worse_after", "beyond_noise_after"]
_ROUNDING = 5e-4  # of an error: less is no difference


class Entry(NamedTuple):
    """What some runs of a source teach about its others."""

    after: float  # `before`, and the mean over draws of by how much the others' median error changed
    before: float  # median error of all runs
    sizes: Floats  # of residuals
    widths: Floats  # the same in units of the narrowed range
    noise: float  # standard error, over rows, of how much their errors change


def _of_source(features: Floats, residual: Floats, draws: int) -> list[Entry]:
    """Return what each number of runs, drawn at random, teaches about the other runs."""
    random, entries, count = np.random.default_rng(0), [], len(residual)
    common, specific = covariances(features, features)
    plain = covariances(features[:, :PLAIN], features[:, :PLAIN])[1]
    usual = float(np.median(np.abs(np.expm1(residual))))
    for runs in _RUNS:
        # draws at once, as the rows of a matrix: the first of a draw are known, the others are predicted
        order = np.array([random.permutation(count) for _ in range(draws if runs else 1)])
        known, other = order[:, :runs], order[:, runs:]
        left, narrower = residual[other], np.ones(other.shape)
        if runs:
            inside, across = (known[:, :, None], known[:, None]), (other[:, :, None], known[:, None])
            left = left - believed(common[inside], specific[inside], residual[known]).mean(
                common[across], specific[across]
            )
            narrower = believed(common[inside], plain[inside], residual[known]).narrower(common[across], plain[across])
        errors, before = (np.abs(np.expm1(values)) for values in (left, residual[other]))
        # by row: draws repeat rows, so that the spread over draws would be too small a noise
        change = np.bincount(other.ravel(), (errors - before).ravel(), count)
        seen = np.bincount(other.ravel(), minlength=count)
        noise = float(np.std(change / np.maximum(seen, 1)) / count**0.5)
        now = usual + float(np.mean(np.median(errors, axis=1) - np.median(before, axis=1)))
        entries.append(Entry(now, usual, np.abs(left).ravel(), (np.abs(left) / narrower).ravel(), noise))
    return entries


def _of_all_others(features: Floats, residual: Floats) -> float:
    """Return the median error of runs, each corrected by all others of its source: what it could ever learn."""
    order, left = np.random.default_rng(0).permutation(len(residual)), []
    common, specific = covariances(features, features)
    for run in order[:AT_MOST]:
        others = np.delete(np.arange(len(residual)), run)
        inside, across = np.ix_(others, others), np.ix_([run], others)
        belief = believed(common[inside], specific[inside], residual[others])
        left.append(residual[run] - belief.mean(common[across], specific[across])[0])
    return float(np.median(np.abs(np.expm1(left))))


def figures(name: str, entries: list[Entry], after_all: float) -> dict[str, str]:
    """Return the row of one source."""
    pairs = list(zip(_RUNS, entries, strict=True))
    worse = " ".join(str(runs) for runs, e in pairs if e.after > e.before + _ROUNDING)
    beyond = " ".join(str(runs) for runs, e in pairs if e.after > e.before + max(_ROUNDING, 2 * e.noise))
    errors = [f"{error:.4f}" for error in (*(entry.after for entry in entries), after_all)]
    cells = [name, str(len(entries[0].sizes)), *errors, worse, beyond]
    return dict(zip(HEADING, cells, strict=True))


def table(draws: int = 1000, most: int | None = None) -> str:
    """Hold each source out in turn, or the `most` largest alone, and return the table as CSV."""
    catalog = open_catalog()
    every = fits.training_shipped(catalog)
    counted = Counter(row.source for row in every.rows).most_common(most)
    names = [name for name, runs in counted if runs >= AT_LEAST]
    measured = every.select(np.isin(every.row_sources, names))
    seen = training.observe(measured)
    predicted = training_fit.leave_one_out(measured, pool=every, start=training_calibration(catalog).values)
    residual = predicted - seen.log_measured
    features, sources = training.configurations(seen), np.array([row.source for row in measured.rows])
    known = {str(name): np.flatnonzero(sources == name) for name in np.unique(sources)}
    taught = {name: _of_source(features[rows], residual[rows], draws) for name, rows in known.items()}
    whole = {name: _of_all_others(features[rows], residual[rows]) for name, rows in known.items()}
    columns = list(zip(*taught.values(), strict=True))
    means = [f"{np.mean([entry.after for entry in column]):.4f}" for column in columns]
    means.append(f"{np.mean(list(whole.values())):.4f}")
    # each source has one voice, by the root of its residuals
    voices = [
        np.concatenate([np.full(len(entry.sizes), len(entry.sizes) ** -0.5) for entry in column]) for column in columns
    ]

    def against_none(attribute: str) -> list[str]:
        """Return the half widths that hold 80 % as shares of that without any run."""
        columns_of = [np.concatenate([getattr(entry, attribute) for entry in column]) for column in columns]
        widths = [weighted_quantile(sizes, weight, 0.8) for sizes, weight in zip(columns_of, voices, strict=True)]
        return [*(f"{width / widths[0]:.4f}" for width in widths), ""]

    # a line for each source, then what holds over all of them
    rows = [figures(name, entries, whole[name]) for name, entries in taught.items()]
    for name, cells in ((MEAN, means), (WIDTH, against_none("sizes")), (PROMISED, against_none("widths"))):
        rows.append(dict(zip(HEADING, [name, "", *cells, "", ""], strict=True)))
    text = io.StringIO()
    writer = csv.DictWriter(text, HEADING, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--sources", type=int, help="hold out the largest alone, and write nothing")
    options = parser.parse_args()
    text = table(options.draws, options.sources)
    if not options.sources:
        TABLE.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
