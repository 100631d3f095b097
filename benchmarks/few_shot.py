"""What a few runs of an unseen source teach about its other runs, by source: docs/few-shot.csv.

    python -m benchmarks.few_shot [--draws 40]

Each source is held out of the calibration (minutes); k of its runs, drawn at random, correct the predictions as
`gpucost calibrate` corrects them; the others are predicted.
"""

import argparse
import csv
import io
from pathlib import Path

import numpy as np

from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.physics.calibration import weighted_quantile
from gpucost.physics.columns import Floats
from gpucost.physics.training.own_runs import OwnRuns, closeness, correction
from gpucost.validation import fitted, training

TABLE = Path(__file__).parents[1] / "docs" / "few-shot.csv"
RUNS = (0, 1, 2, 3, 5)
AT_LEAST = 7
MEAN, WIDTH = "macro-average", "half width that holds 80 %"
PROMISED = "the same, of widths narrowed by closeness"
HEADING = ["source", "runs", *(f"after_{runs}_fraction" for runs in RUNS), "worse_after"]
INTRODUCTION = """# What a few runs of one's own teach

Each of {sources} sources of seven or more measured training runs is held out of the calibration in turn; k of its
runs, drawn at random, correct the predictions of its others as `gpucost calibrate` corrects them
([own machine](own-machine.md)).
Figures are median errors of the other runs, means over draws; the first table averages over sources.
`python -m docs.generate docs/few-shot.csv docs/few-shot.md` computes it again (minutes).
"""
READING = """
A star marks where the others came out worse than they were. That happens where a source mixes the runs of many
submitters or kinds of models, or is predicted within its own noise already: there one run says little of the next.
The correction is therefore timid away from what was run; how timid was chosen on these sources. Ranges narrow by how
close a configuration is to those that were run.
"""


Entry = tuple[float, float, Floats, Floats]  # median error after and before, sizes of residuals, and in narrowed widths


def of_source(features: Floats, residual: Floats, draws: int) -> list[Entry]:
    """Return, by how many runs were given, the mean over draws of the other runs' median error, and of what it was."""
    random, found = np.random.default_rng(0), []
    for runs in RUNS:
        medians, before, sizes, widths = [], [], [], []
        for _ in range(draws if runs else 1):
            order = random.permutation(len(residual))
            own, other = order[:runs], order[runs:]
            left, narrower = residual[other], np.ones(len(other))
            if runs:
                given = OwnRuns(features[own], residual[own])
                left = left - correction(given, features[other])
                narrower = closeness(given, features[other])
            medians.append(np.median(np.abs(np.expm1(left))))
            before.append(np.median(np.abs(np.expm1(residual[other]))))
            sizes.append(np.abs(left))
            widths.append(np.abs(left) / narrower)
        found.append((float(np.mean(medians)), float(np.mean(before)), np.concatenate(sizes), np.concatenate(widths)))
    return found


def figures(name: str, entries: list[Entry]) -> dict[str, str]:
    """Return the row of one source."""
    worse = [str(runs) for runs, (after, before, *_) in zip(RUNS, entries, strict=True) if after > before + 5e-4]
    cells = [name, str(len(entries[0][2])), *(f"{after:.4f}" for after, *_ in entries), " ".join(worse)]
    return dict(zip(HEADING, cells, strict=True))


def table(draws: int = 40) -> str:
    """Hold each source out in turn (minutes) and return the table as CSV."""
    catalog = open_catalog()
    found = fitted.training_shipped(catalog)
    seen = training.observe(found)
    residual = training.leave_one_out(found, start=training_calibration(catalog).values) - seen.log_measured
    features, sources = training.configurations(seen), np.array([row.source for row in found.rows])
    known = {str(name): np.flatnonzero(sources == name) for name in np.unique(sources)}
    made = {n: of_source(features[i], residual[i], draws) for n, i in known.items() if len(i) >= AT_LEAST}
    columns = list(zip(*made.values(), strict=True))
    means = [f"{np.mean([after for after, *_ in column]):.4f}" for column in columns]
    voices = [np.concatenate([np.full(len(entry[2]), len(entry[2]) ** -0.5) for entry in column]) for column in columns]

    def against_none(which: int) -> list[str]:
        held = [np.concatenate([entry[which] for entry in column]) for column in columns]
        widths = [weighted_quantile(sizes, weight, 0.8) for sizes, weight in zip(held, voices, strict=True)]
        return [f"{width / widths[0]:.4f}" for width in widths]

    rows = [figures(name, entries) for name, entries in made.items()]
    for name, cells in ((MEAN, means), (WIDTH, against_none(2)), (PROMISED, against_none(3))):
        rows.append(dict(zip(HEADING, [name, "", *cells, ""], strict=True)))
    text = io.StringIO()
    writer = csv.DictWriter(text, HEADING, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def page(text: str) -> str:
    """Write the page from the table."""
    rows = {row["source"]: row for row in csv.DictReader(io.StringIO(text))}
    sources = [row for name, row in rows.items() if name not in (MEAN, WIDTH, PROMISED)]
    worse = [sum(str(runs) in row["worse_after"].split() for row in sources) for runs in RUNS]
    lines = [INTRODUCTION.format(sources=len(sources)), "| runs of one's own | " + " | ".join(map(str, RUNS)) + " |"]
    lines.append("|---|" + "--:|" * len(RUNS))
    lines.append("| median error of the other runs | " + " | ".join(map(percent, cells_of(rows[MEAN]))) + " |")
    for name, said in ((WIDTH, "against none"), (PROMISED, "in units of the narrowed range (1 is honest)")):
        cells = " | ".join(f"{cell:.2f}" for cell in cells_of(rows[name]))
        lines.append(f"| half width that holds 80 %, {said} | {cells} |")
    lines.append(
        f"| sources, of {len(sources)}, whose other runs came out worse | " + " | ".join(map(str, worse)) + " |"
    )
    heading = " | ".join(["source", "runs", *map(str, RUNS)])
    lines += ["\n## By source\n", f"| {heading} |", "|---|--:|" + "--:|" * len(RUNS)]
    for row in sources:
        marks = ["*" if str(runs) in row["worse_after"].split() else "" for runs in RUNS]
        cells = [percent(value) + mark for value, mark in zip(cells_of(row), marks, strict=True)]
        lines.append(f"| {row['source']} | {row['runs']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n" + READING


def cells_of(row: dict[str, str]) -> list[float]:
    """Return the figures of a row."""
    return [float(row[f"after_{runs}_fraction"]) for runs in RUNS]


def percent(value: float) -> str:
    """Write a share.

    >>> percent(0.1234)
    '12.3 %'
    """
    return f"{100 * value:.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40)
    TABLE.write_text(table(parser.parse_args().draws), "utf-8")
    print(page(TABLE.read_text("utf-8")))


if __name__ == "__main__":
    main()
