"""The ledger of first predictions: what the model of the day before a source was entered predicted for it.

Only these figures say what somebody meets whose measurements no fit and no choice has seen. A source is predicted
first, its predictions and their errors are written down, and only then its rows join the measurements. A line that
stands in the ledger is never written again.
"""

import csv
import io
import subprocess
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from gpucost.calibration import importer, reinforcement, serving, training
from gpucost.calibration.measurements import Item, statistics
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration
from gpucost.errors import UsageError
from gpucost.gate import shown
from gpucost.schemas.dictionary import TABLES

MODEL_PATHS = ("gpucost/physics", "models/calibration.csv", "models/serving_calibration.csv")
Entry = dict[str, Any]


def predicted(kind: str, rows: Sequence[Mapping[str, Any]], catalog: Catalog) -> tuple[list[Item], int]:
    """Return the predictions of rows by the catalog's calibration, and how many rows could be read."""
    if kind == "rl":
        items, _ = reinforcement.predict(rows, catalog)
        return items, len(items)
    if kind == "training":
        found = training.gather(rows, catalog)
        return training.predict(found, training_calibration(catalog)), len(found.rows)
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
    rows = [importer.entered(row, kind, catalog) for row in rows]
    lines, singles = entries(kind, rows, catalog, commit, day)
    for table, new in (("ledger", lines), ("first_predictions", singles), (f"{kind}_measurements", rows)):
        append(folder / TABLES[table].files, TABLES[table].names, new)
    return lines


def enter_steps(catalog: Catalog, folder: Path, commit: str, day: date) -> list[Entry]:
    """Predict the steps of reinforcement learning whose sources have no line yet, and write their lines.

    Their rows stand in a table of their own, to which nothing is fitted. A source of which nothing can be predicted
    gets no line.
    """
    have = {line["source"] for line in catalog.rows("ledger") if line["kind"] == "rl"}
    rows = [row for row in catalog.rows("rl_measurements") if row["source_name"] not in have]
    able = {item.source for item in reinforcement.predict(rows, catalog)[0]}
    lines, singles = entries("rl", [row for row in rows if row["source_name"] in able], catalog, commit, day)
    for table, new in (("ledger", lines), ("first_predictions", singles)):
        append(folder / TABLES[table].files, TABLES[table].names, new)
    return lines


def as_shares(lines: Sequence[Mapping[str, Any]]) -> list[Entry]:
    """Return lines of the ledger as a person reads them: errors in per cent of what was measured, not as ratios.

    >>> as_shares([{"source": "a", "bias_ratio": -0.25}])
    [{'source': 'a', 'bias_fraction': -0.25}]
    """
    errors = ("median_abs_error_ratio", "p90_abs_error_ratio", "bias_ratio")
    return [
        {(name.replace("_ratio", "_fraction") if name in errors else name): value for name, value in line.items()}
        for line in lines
    ]


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
