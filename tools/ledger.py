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
from collections.abc import Iterable, Mapping, Sequence
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

MODEL_PATHS = ("gpucost/physics", "models/calibration.csv", "models/serving_calibration.csv")
Entry = dict[str, Any]


def predicted(kind: str, rows: Sequence[Mapping[str, Any]], catalog: Catalog) -> tuple[list[Item], int]:
    """Return the predictions of rows by the catalog's calibration, and how many rows could be read."""
    if kind == "rl":
        items, _ = reinforcement.predict(rows, catalog)
        return items, len(items)
    if kind == "memory":
        items = memory.predicted_peaks(rows, catalog)
        return items, len(items)
    if kind == "training":
        found = training.gather(rows, catalog)
        return training.predict(found, training_calibration(catalog)), len(found.rows)
    if kind == "load":
        items, tests = load.predict(rows, catalog, serving_calibration(catalog))
        return items, len(tests.rows)
    found = serving.gather(rows, catalog)
    return serving.predict(found, serving_calibration(catalog))[0], len(found.rows)


def entries(
    kind: str, rows: Sequence[Mapping[str, Any]], catalog: Catalog, commit: str, day: date
) -> tuple[list[Entry], list[Entry]]:
    """Return the ledger's lines for the sources of some rows, and their first predictions one by one."""
    lines: list[Entry] = []
    singles: list[Entry] = []
    for source in dict.fromkeys(str(row["source_name"]) for row in rows):
        mine = [row for row in rows if row["source_name"] == source]
        items, read = predicted(kind, mine, catalog)
        found = statistics(items)
        lines.append(
            {
                "source": source,
                "kind": kind,
                "rows": len(mine),
                "predicted_rows": read,
                "figures": len(items),
                "median_abs_error_ratio": found["median_abs_error_fraction"],
                "p90_abs_error_ratio": found["p90_abs_error_fraction"],
                "bias_ratio": found["bias_fraction"],
                "coverage_fraction": found["interval_coverage_fraction"],
                "high_low_ratio": found["median_high_low_ratio"],
                "commit": commit,
                "entered_on": day.isoformat(),
                "source_id": str(mine[0]["source_id"]),
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
                "source_id": str(mine[0]["source_id"]),
            }
            for item in items
        ]
    return lines, singles


def refuse_seen(kind: str, rows: Sequence[Mapping[str, Any]], catalog: Catalog) -> None:
    """Refuse sources that the model has seen, rows whose key is taken, and sources that sources.csv does not hold."""
    table = f"{kind}_measurements"
    measured = catalog.rows(table)
    seen = {row["source_name"] for row in measured}
    seen |= {line["source"] for line in catalog.rows("ledger") if line["kind"] == kind}
    known, taken = {row["source_id"] for row in catalog.rows("model_sources")}, {row["id"] for row in measured}
    for row in rows:
        if row["source_name"] in seen:
            raise UsageError(
                f"{shown(row['source_name'])} is a source that the model has seen: a first prediction is made once. "
                "Rows that a source publishes later are added to the measurements without one."
            )
        if row["id"] in taken:
            raise UsageError(f"the id {shown(row['id'])} is already used in {TABLES[table].files}: choose another.")
        if row["source_id"] not in known:
            raise UsageError(f"the source {shown(row['source_id'])} is not in models/sources.csv: add its line first.")


def enter(
    kind: str, rows: Sequence[Mapping[str, Any]], catalog: Catalog, folder: Path, commit: str, day: date
) -> list[Entry]:
    """Predict sources that the model has not seen, write their lines, then their rows; return the lines."""
    if not rows:
        raise UsageError("there is no row to enter.")
    for row in rows:
        if missing := [name for name in ("id", "source_name", "source_id") if not row.get(name)]:
            raise UsageError(f"a row to enter lacks {', '.join(missing)}.")
    refuse_seen(kind, rows, catalog)
    refuse_known(folder, commit, dict.fromkeys(str(row["source_name"]) for row in rows))
    if kind != "load":  # whose words are read whenever a test is sent
        rows = [importer.entered(row, kind, catalog) for row in rows]
    lines, singles = entries(kind, rows, catalog, commit, day)
    for table, new in (("ledger", lines), ("first_predictions", singles), (f"{kind}_measurements", rows)):
        append(folder / TABLES[table].files, TABLES[table].names, new)
    return lines


def refuse_known(folder: Path, commit: str, sources: Iterable[str]) -> None:
    """Refuse sources whose rows lay in the repository at the version that predicts them: it may have seen them."""
    for source in sources:
        asked = ["git", "-C", str(folder), "grep", "-F", "-l", "-e", source, commit, "--", "models/measurements"]
        found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
        if found:
            raise UsageError(
                f"{shown(source)} lay in {found[0].partition(':')[2]} at {commit}, the version that would judge it: "
                "what a version had at hand it may have seen."
            )


UNFITTED = {"rl": "rl_measurements", "memory": "training_measurements"}  # kinds to whose rows nothing is fitted


def enter_unfitted(kind: str, catalog: Catalog, folder: Path, commit: str, day: date) -> list[Entry]:
    """Predict steps of reinforcement learning, or peaks of memory, whose sources have no line yet; write their lines.

    Nothing is fitted to their rows, which stand in their table already. A source of which nothing can be predicted
    gets no line.
    """
    have = {line["source"] for line in catalog.rows("ledger") if line["kind"] == kind}
    rows = [row for row in catalog.rows(UNFITTED[kind]) if row["source_name"] not in have]
    if kind == "memory":
        rows = of_others(rows)
    able = {item.source for item in predicted(kind, rows, catalog)[0]}
    lines, singles = entries(kind, [row for row in rows if row["source_name"] in able], catalog, commit, day)
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
    header = next(csv.reader(path.open(newline="", encoding="utf-8"))) if path.exists() else list(columns)
    writer.writerows([written(row.get(name)) for name in header] for row in rows)
    with path.open("a", newline="", encoding="utf-8") as file:
        file.write(text.getvalue())


def written(value: Any) -> Any:
    """Return a cell: figures at six digits, nothing where nothing is known."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value


def model_commit(folder: Path) -> str:
    """Return the commit whose model predicts; refuse a checkout whose model has changes that no commit holds."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise UsageError(f"measurements are entered in a checkout of the project; git says: {done.stderr.strip()}")
        return done.stdout.strip()

    if git("status", "--porcelain", "--untracked-files=no", "--", *MODEL_PATHS):
        raise UsageError("the model has uncommitted changes: commit them, so that the ledger can name the version.")
    return git("rev-parse", "--short=7", "HEAD")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("enter", "show"))
    parser.add_argument("file", nargs="?", help="Rows in the columns of models/measurements/.")
    parser.add_argument("--kind", choices=("training", "serving", "load", "memory", "rl"), default="training")
    asked = parser.parse_args()
    catalog, root = open_catalog(), shipped_root()
    if asked.what == "show":
        lines: Sequence[Mapping[str, Any]] = catalog.rows("ledger")
    elif asked.kind in UNFITTED:
        lines = enter_unfitted(asked.kind, catalog, root, model_commit(root), clock.today())
    elif asked.file:
        lines = enter(asked.kind, read_file(asked.file), catalog, root, model_commit(root), clock.today())
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
