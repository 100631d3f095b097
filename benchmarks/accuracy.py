"""Every held-out figure of training, memory and serving: docs/accuracy.csv, and its rows one by one.

    python -m docs.generate accuracy.csv accuracy-rows.csv
    python -m benchmarks.accuracy --check    # exit 5 if the table is not what the model gives

The figures can only be changed knowingly: a test recomputes some of them and compares.
"""

import argparse
import csv
import io
import sys
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from gpucost.calibration import fits, measurements, serving, training
from gpucost.calibration.measurements import Measurements
from gpucost.calibration.training_rows import TrainingRow
from gpucost.catalog import Catalog, open_catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration
from gpucost.physics.calibration import Calibration, width_of
from gpucost.physics.columns import Floats
from gpucost.physics.training import calibration as cal
from gpucost.workloads import training as own_speed
from tools import calibrate, choice, ledger, outside, serving_fit, training_fit

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, TABLE = DOCS / "accuracy.md", DOCS / "accuracy.csv"
ROWS = DOCS / "accuracy-rows.csv"
# columns of docs/accuracy.csv; the shares between rows and score are those of `measurements.statistics`
FIELDS = (
    "part",
    "held_out",
    "rows",
    "macro_median_abs_error_fraction",
    "median_abs_error_fraction",
    "p90_abs_error_fraction",
    "interval_coverage_fraction",
    "median_high_low_ratio",
    "source_bias_sd_fraction",
    "within_source_fraction",
    "interval_score",
)
_LEAST_ROWS = 10  # of a situation that is shown
MISSED = 2 / (1 - 0.80)  # what a miss costs in the score of an 80 % range, per logarithm beyond its end
TOLERANCE = 0.003  # solvers end at slightly different points on different machines


def unseen(
    measured: Measurements, logged: Floats, calibration: Calibration, hidden: str = ""
) -> list[measurements.Item]:
    """Return predictions without each row's source, in ranges that are fitted without it too.

    Sources are left out in the parts in which `logged` was predicted. `hidden` names the trait whose knowledge the rows
    were stripped of: they give its ratio themselves.
    """
    residual, source = logged - measured.log_measured, measured.row_sources
    doubts = training.row_traits(training.observe(measured), measured, calibration.values)
    keep = training.timed(measured)
    # a side of a range each: how much slower and how much faster than predicted
    below, above = np.empty_like(residual), np.empty_like(residual)
    for part in choice.folds(source.tolist(), outside.PARTS):
        mine = np.isin(source, list(part))
        others = keep & ~mine
        apart = {trait: applies[others] for trait, applies in doubts.items()}
        ranges = outside.ranges_of(cal.SCHEME, residual[others], apart, source[others])
        if hidden:  # a range that is fitted to rows which say it knows nothing of not saying it
            ranges |= training_fit.unsaid_ratio(hidden, residual[others], apart, source[others], ranges)
        sides = [width_of(doubts, ranges, side) for side in cal.SCHEME.sides]
        below[mine], above[mine] = (side[mine] for side in sides)
    return measured.items(np.exp(logged), below, above=above)


def figures(part: str, held_out: str, items: list[measurements.Item]) -> dict[str, Any]:
    """Return one row of the table."""
    errors = measurements.statistics(items)
    row: dict[str, Any] = {"part": part, "held_out": held_out, "rows": errors["predicted"]}
    return row | {name: errors[name] for name in FIELDS[3:-1]} | {"interval_score": interval_score(items)}


def interval_score(items: list[measurements.Item]) -> float | None:
    """Return the mean score of 80 % ranges in logarithms: their width and ten times what lies beyond an end.

    Less is better (Gneiting and Raftery 2007, equation 43).

    >>> miss = measurements.Item("a", "s", "m", measured=130.0, predicted=100.0, low=80.0, high=120.0)
    >>> round(interval_score([miss]), 2)
    1.21
    """
    if not items:
        return None
    low, high, true = (np.log([getattr(item, name) for item in items]) for name in ("low", "high", "measured"))
    return float(np.mean(high - low + MISSED * (np.maximum(low - true, 0) + np.maximum(true - high, 0))))


# a situation has a line where enough rows are in it; a row may be in many
FAMILIES = ("volta", "ampere", "hopper", "blackwell", "cdna3", "gaudi", "tpu", "trainium")
_STACKS = ("vendor", "megatron", "deepspeed", "sharded", "eager", "compiler", "neuron", "unknown")
_SITUATIONS: dict[str, Callable[[TrainingRow], bool]] = (
    {
        "dense, bf16, NVIDIA since Ampere": lambda row: (
            not row.architecture.experts
            and row.layout.precision == "bf16"
            and row.accelerator.family in ("ampere", "hopper", "blackwell")
        ),
        "mixture of experts": lambda row: row.architecture.experts > 0,
        "fp8": lambda row: row.layout.precision == "fp8",
        "fp4": lambda row: row.layout.precision == "fp4",
        "32K tokens and more": lambda row: row.sequence_tokens >= 32_000,
        "LoRA, QLoRA and SFT": lambda row: row.tuning,
        "one node": lambda row: row.layout.gpus <= row.system.gpus,
        "256 GPUs and more": lambda row: row.layout.gpus >= 256,
        "Blackwell Ultra": lambda row: "b300" in row.accelerator.id,
        "whole runs": lambda row: row.end_to_end,
        "runs of our own": lambda row: row.source == fits.OWN_RUNS,
    }
    | {f"family {name}": lambda row, name=name: row.accelerator.family == name for name in FAMILIES}
    | {f"software {name}": lambda row, name=name: row.software == name for name in _STACKS}
)


class HeldOut(NamedTuple):
    """Rows, their predictions by what was held out, and the fits of the parts in which sources were."""

    measured: Measurements
    items: dict[str, list[measurements.Item]]
    parts: outside.Parts


@cache
def held_out() -> HeldOut:
    """Return the shipped rows and their predictions, in-sample and with each grouping held out; half a minute, once."""
    catalog = open_catalog()
    measured, calibration = fits.training_shipped(catalog), training_calibration(catalog)
    items = {"nothing (in-sample)": training.predict(measured, calibration)}
    # sources in parts, whose fits serve other tables too, and with ranges of their own; other groups one by one
    parts = outside.by_part(training_fit.observed(measured), calibration.values)
    items["source"] = unseen(measured, outside.left_out(training_fit.observed(measured), parts), calibration)
    for grouping in ("family", "software"):
        logged = training_fit.leave_one_out(measured, grouping, start=calibration.values)
        items[grouping] = training.with_ranges(measured, logged, calibration)
    for name, rule in (("6·N·D at 40 %", training.rule_of_thumb), ("constant MFU", training.constant_mfu)):
        items[name] = training.with_ranges(measured, rule(measured), calibration)
    return HeldOut(measured, items, parts)


def _situation_rows(measured: Measurements, items: list[measurements.Item]) -> list[dict[str, Any]]:
    """Return the table's rows by situation, each source held out: all rows with a speed or a time, then the core."""
    answer = []
    for name, applies in _SITUATIONS.items():
        mine = [
            (item, row.core)
            for item, row in zip(items, measured.rows, strict=True)
            if item.group not in training.FLOP_BASES and applies(row)
        ]
        core = [item for item, is_core in mine if is_core]
        for part, shown in (("situation", [item for item, _ in mine]), ("situation, core", core)):
            if len(shown) >= _LEAST_ROWS:
                answer.append(figures(f"{part}: {name}", "source", shown))
    return answer


def _unsaid_rows(catalog: Catalog, known: HeldOut) -> list[dict[str, Any]]:
    """Return the table's rows of what a question says: core rows with their software, and with it hidden."""
    # one situation, so that the lines differ in what is said alone
    applies = _SITUATIONS["dense, bf16, NVIDIA since Ampere"]
    rows = [{**row, "framework": "", "dispatcher": "", "sinks": ""} for row in fits.published(catalog)]
    hidden = training.gather(rows, catalog)
    calibration = training_calibration(catalog)
    logged = outside.left_out(training_fit.observed(hidden), known.parts)  # fits that knew the software
    unsaid = unseen(hidden, logged, calibration, "unknown_software")
    answer = []
    for part, rows_measured, predicted in (
        ("software said", known.measured, known.items["source"]),
        ("nothing said", hidden, unsaid),
    ):
        shown = [
            item
            for item, row in zip(predicted, rows_measured.rows, strict=True)
            if row.core and row.stated_layout and item.group not in training.FLOP_BASES and applies(row)
        ]
        answer.append(figures(f"question: {part}", "source", shown))
    return [
        *answer,
        figures("question: own speed given, all rows at another size", "pairs", _another_size(known.measured)),
    ]


def _another_size(measured: Measurements) -> list[measurements.Item]:
    """Return runs predicted by the measured speed of the same run on the next smaller number of accelerators.

    The same source, software, model, accelerator, precision and layout: accelerators and batch alone differ.
    """
    alike: dict[Any, list[tuple[int, int, measurements.Item]]] = {}
    # as `estimate` does with a speed that a person states
    width = np.full(len(measured.rows), own_speed.WIDTH)
    for item, row in zip(measured.items(np.exp(measured.log_measured), width), measured.rows, strict=True):
        if item.group not in (*training.FLOP_BASES, "gpu_hours"):
            # what may differ is set to one, so that what is alike is equal
            layout = replace(row.layout, gpus=1, data=1, global_batch=1)
            same = (row.source, row.software, row.software_year, row.architecture.name, row.accelerator.id)
            run = (*same, row.sequence_tokens, row.method, row.document_tokens, layout)
            alike.setdefault(run, []).append((row.layout.gpus, row.layout.global_batch, item))
    answer = []
    for sizes in alike.values():
        items = [item for _, _, item in sorted(sizes, key=lambda size: size[:2])]
        # the next smaller number alone: a speed carries over less the further it is carried
        answer += [replace(smaller, measured=larger.measured) for smaller, larger in pairwise(items)]
    return answer


def training_rows(measured: Measurements, answers: dict[str, list[measurements.Item]]) -> list[dict[str, Any]]:
    """Return the table's rows for training: core rows with a stated layout, then all rows, then each source."""
    rows = []
    # core: marked as suited to validation, when the row was entered
    stated = [row.core and row.stated_layout for row in measured.rows]
    for held_out, items in answers.items():
        # a speed that was derived from FLOP/s holds the convention by which FLOP are counted: shown apart
        timed = [item.group not in training.FLOP_BASES for item in items]
        core = [item for item, keep, time in zip(items, stated, timed, strict=True) if keep and time]
        rows.append(figures("training: core rows with a stated layout", held_out, core))
        rows.append(figures("training: all rows", held_out, [i for i, time in zip(items, timed, strict=True) if time]))
    left_out = answers["source"]
    rated = [item for item in left_out if item.group in training.FLOP_BASES]
    rows.append(figures("training: rows that state only TFLOP/s or MFU", "source", rated))
    for source in sorted({item.source for item in left_out}):  # for whoever asks of a stack of their own
        rows.append(
            figures(f"training source: {source}", "source", [item for item in left_out if item.source == source])
        )
    return rows


def other_rows(catalog: Catalog) -> list[dict[str, Any]]:
    """Return the table's rows for memory and serving in the fit."""
    rows: list[dict[str, Any]] = []
    for part, answer in (("memory", fits.validate_memory(catalog)), ("serving", fits.validate_serving(catalog))):
        rows.append({"part": part, "held_out": "nothing (in-sample)"} | answer | {"rows": answer["predicted"]})
    return [{name: row.get(name) for name in FIELDS} for row in rows]


def served(catalog: Catalog) -> dict[str, measurements.Item]:
    """Return serving figures with sources left out in parts, by row and metric."""
    measured, calibration = calibrate.serving_shipped(catalog), serving_calibration(catalog)
    logged = serving_fit.left_out(measured, calibration.values)
    width = width_of(serving.traits(measured, calibration.values), calibration.ranges)
    items = measured.items(np.exp(logged), width)
    return {serving_fit.key(measured, figure): item for figure, item in zip(measured.figures, items, strict=True)}


def _served_rows(catalog: Catalog, items: Mapping[str, measurements.Item]) -> list[dict[str, Any]]:
    """Return the table's rows for serving, by how it was served; rows suited to validation."""
    measured = calibrate.serving_shipped(catalog)
    parts: dict[str, list[measurements.Item]] = {"serving": []}
    for figure in measured.figures:
        row = measured.rows[figure.row]
        if row.core:
            for part in ("serving", f"serving: {SERVED[row.deployment.server]}"):
                parts.setdefault(part, []).append(items[serving_fit.key(measured, figure)])
    return [figures(part, "source", figures_of_part) for part, figures_of_part in parts.items()]


SERVED = {
    "offline": "in batches without a server",
    "tuned": "by servers set up for it",
    "default": "by servers as they come",
}


def table() -> str:
    """Compute the whole table."""
    catalog, known = open_catalog(), held_out()
    rows = training_rows(known.measured, known.items) + _situation_rows(known.measured, known.items["source"])
    items = served(catalog)
    rows += _unsaid_rows(catalog, known) + other_rows(catalog) + _served_rows(catalog, items)
    return as_csv(rows + again(catalog, known, items))


def as_csv(rows: list[dict[str, Any]]) -> str:
    """Write the table as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        # None becomes an empty cell: a figure that does not exist is no zero
        writer.writerow({name: f"{value:.4f}" if isinstance(value, float) else value for name, value in row.items()})
    return text.getvalue()


# kinds of the ledger, in the order of the page; the class of use where a kind has but one
_LEDGERS = {
    "training": "training",
    "serving": "serving",
    "load": "load tests",
    "memory": "peak memory of other people's runs",
    "rl": "steps of reinforcement learning",
}


def by_class(catalog: Catalog) -> dict[tuple[str, str, str], list[Mapping[str, Any]]]:
    """Return first predictions by kind, class of use and version of the model, the newest version first."""
    version = {(row["kind"], row["source"]): row["commit"] for row in catalog.rows("ledger")}
    # the class of use of each figure, by the id that first predictions have
    trained, served = fits.training_shipped(catalog), calibrate.serving_shipped(catalog)
    names = [f"{row.id} {training.METRIC}" for row in trained.rows]
    names += [serving_fit.key(served, figure) for figure in served.figures]
    uses = dict(zip(names, [*training_fit.uses(trained), *serving_fit.uses(served)], strict=True))
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in catalog.rows("first_predictions"):
        use = uses.get(row["id"], "") if row["kind"] in ("training", "serving") else _LEDGERS[row["kind"]]
        groups.setdefault((row["kind"], use, version[keyed(row)]), []).append(row)
    # the ledger grows at its end: a later line is of a newer version
    kinds, versions = list(_LEDGERS), list(dict.fromkeys(version.values()))
    order = sorted(groups, key=lambda group: (kinds.index(group[0]), group[1], -versions.index(group[2])))
    return {group: groups[group] for group in order}


def by_source(catalog: Catalog) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Return first predictions by kind and source."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {keyed(row): [] for row in catalog.rows("ledger")}
    for row in catalog.rows("first_predictions"):
        groups[keyed(row)].append(row)
    return groups


def again(catalog: Catalog, known: HeldOut, served: Mapping[str, measurements.Item]) -> list[dict[str, Any]]:
    """Return the table's rows of first predictions made again by today's model, their sources left out of its fit.

    Nothing is fitted to load tests, peaks of other people's memory and steps of reinforcement learning.
    """
    # training and serving by fits without the source; of the other kinds nothing was fitted, so that it is left in
    today = {("training", f"{item.id} {item.metric}"): item for item in known.items["source"]}
    today |= {("serving", name): item for name, item in served.items()}
    for kind, table in (("load", "load"), ("rl", "rl"), ("memory", "training")):
        rows = catalog.rows(f"{table}_measurements")
        if kind == "memory":
            rows = ledger.of_others(rows)
        today |= {(kind, f"{item.id} {item.metric}"): item for item in ledger.predicted(kind, rows, catalog)[0]}
    answer = []
    for name, singles in (by_class(catalog) | by_source(catalog)).items():
        # not every figure has a prediction by today's model
        ids = [(single["kind"], single["id"]) for single in singles]
        items = [today[id_] for id_ in ids if id_ in today]
        if items:
            answer.append(figures(f"first predictions: {': '.join(name)}", "source", items))
    return answer


def keyed(prediction: Mapping[str, Any]) -> tuple[str, str]:
    """Return the line of the ledger that a first prediction belongs to."""
    return prediction["kind"], prediction["source"]


def renewed_table() -> str:
    """Recompute every held-out figure; a table that differs within the solvers' tolerance stays."""
    stored, fresh = TABLE.read_text("utf-8"), table()
    return fresh if differences(stored, fresh) else stored


def renewed_rows() -> str:
    """Write the held-out prediction of every row; a file whose rows barely moved stays."""
    known, text = held_out(), io.StringIO()
    figures_of_row = ("measured", "predicted", "low", "high")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("id", "source", "group", *figures_of_row))
    for item, row in zip(known.items["source"], known.measured.rows, strict=True):
        if item.group not in training.FLOP_BASES:
            group = "mixture of experts" if row.architecture.experts else "dense"
            numbers = (f"{getattr(item, name):.5g}" for name in figures_of_row)
            writer.writerow((item.id, item.source, group, *numbers))
    fresh, stored = text.getvalue(), ROWS.read_text("utf-8") if ROWS.is_file() else ""
    before, after = (list(csv.DictReader(io.StringIO(table))) for table in (stored, fresh))
    if [row["id"] for row in before] != [row["id"] for row in after]:
        return fresh
    pairs = [(a[name], b[name]) for a, b in zip(before, after, strict=True) for name in figures_of_row]
    # a single row hangs more on where a solver ends than the means of the table do
    return fresh if any(abs(float(a) / float(b) - 1) > 0.02 for a, b in pairs) else stored


def differences(old: str, new: str) -> list[str]:
    """Return what differs between two tables by more than the tolerance."""
    before, after = (list(csv.DictReader(io.StringIO(text))) for text in (old, new))
    if [row["part"] + row["held_out"] for row in before] != [row["part"] + row["held_out"] for row in after]:
        return ["the rows of the table are not the same"]
    changes = []
    for first, second in zip(before, after, strict=True):
        for name in FIELDS[2:]:
            apart = abs(float(first[name] or 0) - float(second[name] or 0))
            # ratios and scores are of the size of one and more, shares below it
            if apart > (TOLERANCE if name.endswith("fraction") else 0.05):
                changes.append(
                    f"{first['part']}, held out {first['held_out']}: {name} {first[name]} is now {second[name]}"
                )
    return changes


def main() -> int:
    """Print or check the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    fresh = table()
    if not check:
        print(fresh)
        return 0
    changes = differences(TABLE.read_text("utf-8"), fresh)
    print("\n".join(changes) or "docs/accuracy.csv is what the model gives")
    return 5 if changes else 0


if __name__ == "__main__":
    sys.exit(main())
