"""Rebuild docs/accuracy.md and docs/accuracy.csv: every held-out figure of training, memory and serving.

    python -m benchmarks.accuracy            # write both files
    python -m benchmarks.accuracy --check    # exit 5 if they are not what the model gives

The figures can only be changed knowingly: a test recomputes some of them and compares.
"""

import argparse
import csv
import io
import sys
from pathlib import Path
from typing import Any

from gpucost.catalog import Catalog, open_catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.validation import fitted, report, runs, training
from gpucost.validation.measurements import Measurements

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, TABLE = DOCS / "accuracy.md", DOCS / "accuracy.csv"
FIELDS = (
    "part", "held_out", "rows", "macro_median_abs_error_fraction", "median_abs_error_fraction",
    "p90_abs_error_fraction", "interval_coverage_fraction", "median_high_low_ratio", "source_bias_sd_fraction",
    "within_source_fraction",
)  # fmt: skip
SERVING_GROUPINGS: tuple[str, ...] = ()  # minutes each: `gpucost validate --kind serving --leave-out source` shows them
TOLERANCE = 0.003  # solvers end at slightly different points on different machines


def figures(part: str, held_out: str, items: list[report.Item]) -> dict[str, Any]:
    """Return one row of the table."""
    found = report.statistics(items)
    row: dict[str, Any] = {"part": part, "held_out": held_out, "rows": found["predicted"]}
    return row | {name: found[name] for name in FIELDS[3:]}


def training_items(catalog: Catalog) -> tuple[Measurements, dict[str, list[report.Item]]]:
    """Return the rows and their predictions, in-sample and with each grouping held out."""
    found, calibration = fitted.training_shipped(catalog), training_calibration(catalog)
    answers = {"nothing (in-sample)": training.predict(found, calibration)}
    for grouping in ("source", "family", "software"):
        logged = training.leave_one_out(found, grouping, start=calibration.values)
        answers[grouping] = training.with_ranges(found, logged, calibration)
    for name, rule in (("6·N·D at 40 %", training.rule_of_thumb), ("constant MFU", training.constant_mfu)):
        answers[name] = training.with_ranges(found, rule(found), calibration)
    return found, answers


def training_rows(found: Measurements, answers: dict[str, list[report.Item]]) -> list[dict[str, Any]]:
    """Return the table's rows for training: core rows with a stated layout, then all rows, then each source."""
    rows = []
    stated = [row.core and row.stated_layout for row in found.rows]
    for held_out, items in answers.items():
        timed = [item.group not in training.FLOP_BASES for item in items]
        core = [item for item, keep, time in zip(items, stated, timed, strict=True) if keep and time]
        rows.append(figures("training: core rows with a stated layout", held_out, core))
        rows.append(figures("training: all rows", held_out, [i for i, time in zip(items, timed, strict=True) if time]))
    held = answers["source"]
    rated = [item for item in held if item.group in training.FLOP_BASES]
    rows.append(figures("training: rows that state only TFLOP/s or MFU", "source", rated))
    for source in sorted({item.source for item in held}):
        rows.append(figures(f"training source: {source}", "source", [item for item in held if item.source == source]))
    return rows


def other_rows(catalog: Catalog) -> list[dict[str, Any]]:
    """Return the table's rows for memory and serving."""
    rows = []
    for part, answer in (("memory", runs.validate_memory(catalog)), ("serving", runs.validate_serving(catalog))):
        rows.append({"part": part, "held_out": "nothing (in-sample)"} | answer)
    for grouping in SERVING_GROUPINGS:
        rows.append({"part": "serving", "held_out": grouping} | runs.validate_serving(catalog, leave_out=grouping))
    for row in rows:
        row["rows"] = row["predicted"]
    return [{name: row.get(name) for name in FIELDS} for row in rows]


def as_csv(rows: list[dict[str, Any]]) -> str:
    """Write the table as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: f"{v:.4f}" if isinstance(v, float) else "" if v is None else v for k, v in row.items()})
    return text.getvalue()


INTRODUCTION = """# How accurate it is

Every figure on this page comes from rows that the prediction had not seen, unless it says in-sample. `python -m
benchmarks.accuracy` rebuilds the page, and a test recomputes a part of it.

An error is |predicted ÷ measured − 1|. The macro-median is the mean over sources of each source's median error, with
sources of fewer than five rows pooled as one; "bias" is the standard deviation of the sources' median errors, "within"
the median deviation inside a source. Coverage is the share of rows inside the 80 % range; high ÷ low is its width.
"""
READING = """
**How to read it.** The error lives between sources more than within them: what a laboratory's software does, and what
it leaves unsaid, weighs more than any kernel. Rows whose source states only TFLOP/s or MFU are derived by the row's own
convention and kept apart. Torchao's rows ran on power-limited chips and Meta's 8B GPU-hours imply 14-16 % MFU: both
are shown, neither is fitted. Published tables say nothing about failures, so ranges of whole runs carry an overhead.
"""


def percent(value: str) -> str:
    """Write a fraction as a percentage."""
    return f"{float(value):.1%}" if value else ""


def page(table: str) -> str:
    """Write the page from the table."""
    rows = list(csv.DictReader(io.StringIO(table)))
    lines = [INTRODUCTION]
    for title, keep in (
        ("Training speed", lambda part: part.startswith("training:")),
        ("Training speed by source, each held out", lambda part: part.startswith("training source:")),
        ("Peak memory", lambda part: part == "memory"),
        ("Serving", lambda part: part == "serving"),
    ):
        lines += [f"\n## {title}\n", *markdown([row for row in rows if keep(row["part"])])]
    return "\n".join(lines) + "\n" + READING


def markdown(rows: list[dict[str, str]]) -> list[str]:
    """Write rows as a Markdown table."""
    heading = (
        "",
        "held out",
        "rows",
        "macro-median",
        "median",
        "90th percentile",
        "coverage",
        "high ÷ low",
        "bias",
        "within",
    )
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    for row in rows:
        name = row["part"].split(": ", 1)[-1]
        ratio = f"{float(row['median_high_low_ratio']):.2f}" if row["median_high_low_ratio"] else ""
        cells = [name, row["held_out"], row["rows"], *(percent(row[field]) for field in FIELDS[3:7]), ratio]
        cells += [percent(row[field]) for field in FIELDS[8:]]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def differences(old: str, new: str) -> list[str]:
    """Return what differs between two tables by more than the tolerance."""
    before, after = (list(csv.DictReader(io.StringIO(text))) for text in (old, new))
    if [row["part"] + row["held_out"] for row in before] != [row["part"] + row["held_out"] for row in after]:
        return ["the rows of the table are not the same"]
    found = []
    for first, second in zip(before, after, strict=True):
        for name in FIELDS[2:]:
            apart = abs(float(first[name] or 0) - float(second[name] or 0))
            if apart > (TOLERANCE if name.endswith("fraction") else 0.05):
                found.append(
                    f"{first['part']}, held out {first['held_out']}: {name} {first[name]} is now {second[name]}"
                )
    return found


def main() -> int:
    """Rebuild or check the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    catalog = open_catalog()
    table = as_csv(training_rows(*training_items(catalog)) + other_rows(catalog))
    if not check:
        TABLE.write_text(table, "utf-8")
        PAGE.write_text(page(table), "utf-8")
        return 0
    found = differences(TABLE.read_text("utf-8"), table)
    print("\n".join(found) or "docs/accuracy.csv is what the model gives")
    return 5 if found else 0


if __name__ == "__main__":
    sys.exit(main())
