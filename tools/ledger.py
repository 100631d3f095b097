"""The ledger of first predictions: what the model of the day before a source was entered predicted for it.

Only these figures say what somebody meets whose measurements no fit and no choice has seen. A source is predicted
first, its predictions and their errors are written down, and only then its rows join the measurements. A line that
stands in the ledger is never written again.

    python -m tools.ledger enter measured.csv --kind serving   # predict, write the lines, then add the rows
    python -m tools.ledger enter --kind rl                     # the steps of reinforcement learning without a line
    python -m tools.ledger show
"""

import argparse
import csv
import io
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from gpucost import clock
from gpucost.calibration import importer, load, memory, reinforcement, serving, training
from gpucost.calibration.measurements import Item, read_file, statistics
from gpucost.catalog import Catalog, open_catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration
from gpucost.catalog.loader import shipped_root
from gpucost.errors import GpuCostError, UsageError
from gpucost.gate import shown
from gpucost.schemas.dictionary import TABLES

# what decides a prediction: a ledger line names the commit that held it
_MODEL_PATHS = ("gpucost/physics", "models/calibration.csv", "models/serving_calibration.csv")
Entry = dict[str, Any]  # a row of a table, by its columns


def predicted(kind: str, rows: Sequence[Mapping[str, Any]], catalog: Catalog) -> tuple[list[Item], int]:
    """Return the predictions of rows by the catalog's calibration, and how many rows could be read."""
    if kind == "rl":
        items, _ = reinforcement.predict(rows, catalog)
        return items, len(items)
    if kind == "memory":
        items = memory.predicted_peaks(rows, catalog)
        return items, len(items)
    if kind == "training":
        measurements = training.gather(rows, catalog)
        return training.predict(measurements, training_calibration(catalog)), len(measurements.rows)
    if kind == "load":
        items, tests = load.predict(rows, catalog, serving_calibration(catalog))
        return items, len(tests.rows)
    measurements = serving.gather(rows, catalog)
    return serving.predict(measurements, serving_calibration(catalog))[0], len(measurements.rows)


def entries(
    kind: str, rows: Sequence[Mapping[str, Any]], catalog: Catalog, commit: str, day: date
) -> tuple[list[Entry], list[Entry]]:
    """Return the ledger's lines for the sources of some rows, and their first predictions one by one."""
    lines: list[Entry] = []
    singles: list[Entry] = []
    for source in dict.fromkeys(str(row["source_name"]) for row in rows):  # one line for each source, in their order
        rows_of_source = [row for row in rows if row["source_name"] == source]
        items, read = predicted(kind, rows_of_source, catalog)
        errors = statistics(items)
        lines.append(
            {
                "source": source,
                "kind": kind,
                "rows": len(rows_of_source),
                "predicted_rows": read,
                "figures": len(items),
                "median_abs_error_ratio": errors["median_abs_error_fraction"],
                "p90_abs_error_ratio": errors["p90_abs_error_fraction"],
                "bias_ratio": errors["bias_fraction"],
                "coverage_fraction": errors["interval_coverage_fraction"],
                "high_low_ratio": errors["median_high_low_ratio"],
                "commit": commit,
                "entered_on": day.isoformat(),
                "source_id": str(rows_of_source[0]["source_id"]),
            }
        )
        singles += [
            {
                "id": f"{item.id} {item.metric}",
                "kind": kind,
                "source": source,
                "measured": item.measured,
                "predicted": item.predicted,
                "low": item.low,
                "high": item.high,
                "source_id": str(rows_of_source[0]["source_id"]),
            }
            for item in items
        ]
    return lines, singles


def enter(
    kind: str, rows: Sequence[Mapping[str, Any]], catalog: Catalog, folder: Path, commit: str, day: date
) -> list[Entry]:
    """Predict sources that the model has not seen, write their lines, then their rows; return the lines.

    Refused are sources that the model has seen or may have seen, rows whose id stands in the table, and sources that
    sources.csv does not hold.
    """
    if not rows:
        raise UsageError("there is no row to enter.")
    for row in rows:
        if missing := [name for name in ("id", "source_name", "source_id") if not row.get(name)]:
            raise UsageError(f"a row to enter lacks {', '.join(missing)}.")
    measurements = f"{kind}_measurements"
    measured = catalog.rows(measurements)
    seen = {row["source_name"] for row in measured}
    seen |= {line["source"] for line in catalog.rows("ledger") if line["kind"] == kind}
    source_ids, ids = {row["source_id"] for row in catalog.rows("model_sources")}, {row["id"] for row in measured}
    for row in rows:
        if row["source_name"] in seen:
            raise UsageError(
                f"{shown(row['source_name'])} is a source that the model has seen: a first prediction is made once. "
                "Rows that a source publishes later are added to the measurements without one."
            )
        if row["id"] in ids:
            files = TABLES[measurements].files
            raise UsageError(f"the id {shown(row['id'])} is already used in {files}: choose another.")
        if row["source_id"] not in source_ids:
            raise UsageError(f"the source {shown(row['source_id'])} is not in models/sources.csv: add its line first.")
    # the tables above are of this kind alone: a source that lay among measurements of another one was at hand too
    for source in dict.fromkeys(str(row["source_name"]) for row in rows):
        search = ["git", "-C", str(folder), "grep", "-F", "-l", "-e", source, commit, "--", "models/measurements"]
        if files := subprocess.run(search, capture_output=True, text=True, check=False).stdout.split():
            raise UsageError(
                f"{shown(source)} lay in {files[0].partition(':')[2]} at {commit}, the version that would judge it: "
                "what a version had at hand it may have seen."
            )
    if kind != "load":  # whose words are read whenever a test is sent
        rows = [importer.entered(row, kind, catalog) for row in rows]
    lines, singles = entries(kind, rows, catalog, commit, day)
    # the rows last: if writing is cut short, the ledger holds predictions without rows, never rows without predictions
    for table, new in (("ledger", lines), ("first_predictions", singles), (measurements, rows)):
        append(folder / TABLES[table].files, TABLES[table].names, new)
    return lines


_UNFITTED = {"rl": "rl_measurements", "memory": "training_measurements"}  # kinds to whose rows nothing is fitted


def _enter_unfitted(kind: str, catalog: Catalog, folder: Path, commit: str, day: date) -> list[Entry]:
    """Predict steps of reinforcement learning, or peaks of memory, whose sources have no line yet; write their lines.

    Nothing is fitted to their rows, which stand in their table already. A source of which nothing can be predicted
    gets no line.
    """
    entered = {line["source"] for line in catalog.rows("ledger") if line["kind"] == kind}
    rows = [row for row in catalog.rows(_UNFITTED[kind]) if row["source_name"] not in entered]
    if kind == "memory":
        rows = of_others(rows)
    predictable = {item.source for item in predicted(kind, rows, catalog)[0]}
    lines, singles = entries(kind, [row for row in rows if row["source_name"] in predictable], catalog, commit, day)
    for table, new in (("ledger", lines), ("first_predictions", singles)):
        append(folder / TABLES[table].files, TABLES[table].names, new)
    return lines


def of_others(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows of training that state a peak of memory and are not of the project's own machines."""
    return [row for row in rows if row["peak_memory_gb"] and not row["source_id"].startswith(memory.OWN_SOURCES)]


def append(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows below those of a table; what stands there is left as it is, byte for byte."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if not path.exists():
        writer.writerow(columns)
    # the columns as the file has them: one that was written by an older version may lack the newest
    header = next(csv.reader(path.open(newline="", encoding="utf-8"))) if path.exists() else list(columns)

    def cell(value: Any) -> Any:
        if value is None or (isinstance(value, float) and np.isnan(value)):
            return ""  # not known, which is no zero
        return f"{value:.6g}" if isinstance(value, float) else value

    writer.writerows([cell(row.get(name)) for name in header] for row in rows)
    # written when every cell is made: what breaks before leaves the table as it was
    with path.open("a", newline="", encoding="utf-8") as file:
        file.write(text.getvalue())


def _model_commit(folder: Path) -> str:
    """Return the commit whose model predicts; refuse a checkout whose model has changes that no commit holds."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise UsageError(f"measurements are entered in a checkout of the project; git says: {done.stderr.strip()}")
        return done.stdout.strip()

    # an untracked file beside the model changes nothing that it predicts
    if git("status", "--porcelain", "--untracked-files=no", "--", *_MODEL_PATHS):
        raise UsageError("the model has uncommitted changes: commit them, so that the ledger can name the version.")
    return git("rev-parse", "--short=7", "HEAD")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("enter", "show"))
    parser.add_argument("file", nargs="?", help="Rows in the columns of models/measurements/.")
    parser.add_argument("--kind", choices=("training", "serving", "load", "memory", "rl"), default="training")
    options = parser.parse_args()
    catalog, root = open_catalog(), shipped_root()
    if options.what == "show":
        lines: Sequence[Mapping[str, Any]] = catalog.rows("ledger")
    elif options.kind in _UNFITTED:
        lines = _enter_unfitted(options.kind, catalog, root, _model_commit(root), clock.today())
    elif options.file:
        lines = enter(options.kind, read_file(options.file), catalog, root, _model_commit(root), clock.today())
    else:
        parser.error("name the file whose rows are entered.")
    for line in lines:
        errors = (f"{line[name]:+.1%}" for name in ("median_abs_error_ratio", "p90_abs_error_ratio", "bias_ratio"))
        print(line["entered_on"], line["kind"], line["source"], f"{line['figures']} figures", *errors, sep="  ")


if __name__ == "__main__":
    try:
        main()
    except GpuCostError as error:
        sys.exit(str(error))
