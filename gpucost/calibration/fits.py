"""Calibrations as tables and the validations of them: fitted to shipped measurements or to one's own, and reported."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpucost.answers.checks import Baseline, ValidationReport
from gpucost.calibration import load, measurements, memory, reinforcement, serving, training
from gpucost.calibration.importer import entered
from gpucost.calibration.measurements import Measurements, read_file
from gpucost.calibration.record import Row
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration
from gpucost.errors import UsageError
from gpucost.gate import repeated, shown
from gpucost.physics.calibration import Calibration, Scheme, table
from gpucost.physics.serving.calibration import SCHEME as SERVING
from gpucost.physics.training import own_runs
from gpucost.physics.training.calibration import SCHEME as TRAINING

# --- Calibrations as tables: fitted to the shipped measurements, or to a user's own runs on top of the current one.

_OWN_SOURCE_ID = "own-runs"
_OWN_SPREAD_RATIO = 0.5  # a user's runs move parameters less easily than the first fit did
AGAIN = "printed again: "  # and the id of the first, in the column `sanity`  # two rows of one run would weigh twice
OWN_RUNS = "Runs of our own"  # one voice: the device benchmarks repeat and extend these rows


def published(catalog: Catalog) -> list[Row]:
    """Return the published training runs; one that its source prints again counts once."""
    rows = catalog.rows("training_measurements")
    return [row for row in rows if not str(row["sanity"] or "").startswith(AGAIN)]


def training_shipped(catalog: Catalog) -> Measurements:
    """Return the measurements that the shipped calibration is made from: published ones, and device benchmarks."""
    # variants try memory options (optimizers, offload, chunked losses) that the step time does not model; the steps
    # of H100s stay unseen, to be held against
    unseen = ("h200-variant", "h100-step", "h100-pair")
    steps = (row for row in catalog.rows("memory_measurements") if not row["id"].startswith(unseen))
    device = [{**row, "source_name": OWN_RUNS} for row in steps]
    return training.gather([*published(catalog), *device], catalog)


class FitKind(Struct, frozen=True):
    """What differs between the calibrations of training and serving."""

    scheme: Scheme
    counted: str  # what its fits count
    current: Callable[[Catalog], Calibration]
    gather_own: Callable[[Sequence[Mapping[str, Any]], Catalog], Measurements]
    tune: Callable[[Measurements, Calibration], Calibration]


_KINDS = {
    "training": FitKind(TRAINING, "runs", training_calibration, training.gather_own, training.tune),
    "serving": FitKind(SERVING, "figures", serving_calibration, serving.gather_own, serving.tune),
}


def read_own(catalog: Catalog, kind: str, rows: Sequence[Mapping[str, Any]], stack: str = "") -> Measurements:
    """Return a user's own runs, read: each of a name of its own, those that cannot be skipped with the reason."""
    names = [str(row.get("id") or f"row {place}") for place, row in enumerate(rows, 1)]
    twice = repeated(names) if kind == "training" else ()  # a fit of serving keeps no run by its name
    if twice:
        raise UsageError(
            f"two runs are called {shown(twice[0])}, of which one would count: give each an id of its own, and keep "
            "machines apart with --machine, one at a time."
        )
    called = (f"{name} [{stack}]" if stack else name for name in names)  # one run may be of several classes
    named_rows = [{**row, "id": name} for row, name in zip(rows, called, strict=True)]
    measured = _KINDS[kind].gather_own(named_rows, catalog)
    if not measured.figures:
        reasons = "; ".join(f"{entry['id']}: {entry['reason']}" for entry in measured.skipped[:3])
        raise UsageError(f"no usable {_KINDS[kind].counted} to fit." + (f" Skipped: {reasons}." if reasons else ""))
    return measured


def fit_read(
    catalog: Catalog, kind: str, measured: Measurements, stack: str = ""
) -> tuple[Calibration, list[dict[str, Any]]]:
    """Fit a user's own runs on top of the current calibration: the parameters they say nothing about stay.

    With `stack` they are of a class of one's own, which has the physics of the class that most of them are of.
    """
    base = _KINDS[kind].current(catalog)
    fitted = _KINDS[kind].tune(measured, base)
    if stack:
        # a class of one's own has no parameters: it borrows those of the class that most of its runs look like
        like = Counter(row.software for row in measured.rows).most_common(1)[0][0]
        fitted = replace(fitted, stacks={**base.stacks, stack: like})
    return fitted, table(
        _KINDS[kind].scheme, fitted, len(measured.figures), _OWN_SOURCE_ID, base.values, _OWN_SPREAD_RATIO
    )


def without(catalog: Catalog, machine: str) -> list[dict[str, Any]]:
    """Return the current calibration of training without the runs of a named machine."""
    base = training_calibration(catalog)
    runs = tuple(run for run in base.runs if not run.name.startswith(f"{machine}: "))
    if len(runs) == len(base.runs):
        known = sorted({run.name.partition(": ")[0] for run in base.runs if ": " in run.name})
        raise UsageError(f"no run of {machine!r} is kept. " + (f"Machines: {', '.join(known)}." if known else ""))
    left = replace(base, runs=runs)
    return table(TRAINING, left, len(runs), _OWN_SOURCE_ID, base.values, _OWN_SPREAD_RATIO)


def without_stack(catalog: Catalog, stack: str) -> list[dict[str, Any]]:
    """Return the current calibration of training without a class of one's own and its runs."""
    base = training_calibration(catalog)
    if stack not in base.stacks:
        known = f" Yours: {', '.join(base.stacks)}." if base.stacks else ""
        raise UsageError(f"there is no class of your own called {stack!r}.{known}")
    runs = tuple(run for run in base.runs if run.stack != stack)
    left = replace(base, runs=runs, stacks={name: like for name, like in base.stacks.items() if name != stack})
    return table(TRAINING, left, len(runs), _OWN_SOURCE_ID, base.values, _OWN_SPREAD_RATIO)


def stacks_of(catalog: Catalog) -> list[dict[str, Any]]:
    """Return the classes of one's own: what each is like, its runs, and the median of predicted ÷ measured speed."""
    base = training_calibration(catalog)
    classes = []
    for name, like in base.stacks.items():
        ratios = [run.ratio for run in base.runs if run.stack == name]
        classes.append(
            {
                "name": name,
                "like": "typical" if like == "unknown" else like,
                "runs": len(ratios),
                "median_ratio": float(np.median(ratios)) if ratios else None,
            }
        )
    return classes


def changes(catalog: Catalog, kind: str, rows: Sequence[Mapping[str, Any]], smallest: float) -> list[dict[str, Any]]:
    """Return what a calibration changes against the current one: runs, parameters and widths that moved."""
    base = _KINDS[kind].current(catalog)
    entries: list[dict[str, Any]] = []
    # runs of one's own: predicted ÷ measured before and after, and by how much the range near each is narrower
    runs = TRAINING.load([row for row in rows if row["kind"] == "run"]).runs
    if runs:
        run_set = own_runs.runs_of(runs)
        after = np.exp(run_set.residual - own_runs.correction(run_set, run_set.features))
        closer = own_runs.closeness(run_set, run_set.features)
        entries = [
            {
                "name": run.name,
                "before": run.ratio,
                "after": float(ratio),
                "change_fraction": float(ratio) / run.ratio - 1,
                "narrower_fraction": 1 - float(width),
                "meaning": "predicted speed ÷ measured",
            }
            for run, ratio, width in zip(runs, after, closer, strict=True)
        ]
    for row in rows:
        if row["kind"] in ("run", "stack"):  # a class is a name, and changes no number
            continue
        before = (base.ranges if row["kind"] == "range" else base.values)[str(row["name"])]
        change = float(row["value"]) / before - 1
        if abs(change) >= smallest:
            entry = {"name": row["name"], "before": before, "after": row["value"], "change_fraction": change}
            narrower = -change if row["kind"] == "range" else None
            entries.append({**entry, "narrower_fraction": narrower, "meaning": row["meaning"]})
    return sorted(entries, key=lambda entry: -abs(entry["change_fraction"]))


# --- The validations that the command and the library offer: one function per kind.


def validate_training(catalog: Catalog, path: str | None = None, *, core: bool = False) -> ValidationReport:
    """Predict training runs; `core` keeps the rows well suited."""
    measured = training.gather(read_file(path), catalog, as_written=True) if path else training_shipped(catalog)
    items = training.predict(measured, training_calibration(catalog)) if measured.rows else []
    items = [item for item, row in zip(items, measured.rows, strict=True) if row.core or not core]
    measured = measured.core() if core else measured
    # the command says so itself: an error over rows that a fit has seen is no promise for others
    method = "predicted with the shipped calibration, fitted to rows marked core (in-sample for those)"
    return training.report_payload(
        measured, items, kind="validation", validated="training", method=method, baselines=baselines(measured)
    )


def validate_serving(catalog: Catalog, path: str | None = None, *, core: bool = False) -> ValidationReport:
    """Predict serving runs; `core` keeps the rows well suited."""
    rows = read_file(path) if path else catalog.rows("serving_measurements")
    measured = serving.gather(rows, catalog, as_written=path is not None)
    method = (
        "predicted with the shipped calibration, which was fitted to the shipped rows "
        "(in-sample where they are among these)"
    )
    return serving.in_sample_payload(
        measured.core() if core else measured,
        serving_calibration(catalog),
        kind="validation",
        validated="serving",
        method=method,
    )


def baselines(measured: Measurements) -> dict[str, Baseline]:
    """Return the figures of two rules that a model must beat, on the same rows."""
    if not measured.rows:
        return {}
    width = np.zeros(len(measured.rows))  # a rule claims no range
    rules = {
        "constant_mfu": training.constant_mfu(measured),
        "six_n_d_at_40_percent": training.rule_of_thumb(measured),
    }
    answer: dict[str, Baseline] = {}
    for name, logged in rules.items():
        timed = [item for item in measured.items(np.exp(logged), width) if item.group not in training.FLOP_BASES]
        known: Mapping[str, Any] = measurements.statistics(timed)
        answer[name] = cast(Baseline, {key: known[key] for key in Baseline.__annotations__})
    return answer


def validate_memory(catalog: Catalog, path: str | None = None, *, core: bool = False) -> ValidationReport:
    """Predict the peak memory of rows that carry one."""
    shipped = ("training_measurements", "memory_measurements")
    if path:
        rows = [entered(row, "training", catalog) for row in read_file(path)]
    else:
        rows = [row for name in shipped for row in catalog.rows(name)]
    return memory.validate(rows, catalog, core=core)


def _validate_load(
    catalog: Catalog, path: str | None = None, *, core: bool = False, rows: Sequence[Row] | None = None
) -> ValidationReport:
    """Predict the percentiles of load tests by the simulated replica; nothing was fitted to them.

    `rows` are those of a result that was read.
    """
    if rows is None:
        rows = read_file(path) if path else catalog.rows("load_measurements")
    method = "each test simulated with the shipped calibration of step times, which was fitted to other measurements"
    return load.report(rows, catalog, serving_calibration(catalog), kind="validation", validated="load", method=method)


def _validate_rl(catalog: Catalog, path: str | None = None, *, core: bool = False) -> ValidationReport:
    """Predict steps of reinforcement learning; nothing is fitted to them, and none is better suited than another."""
    rows = [reinforcement.typed(row) for row in read_file(path)] if path else catalog.rows("rl_measurements")
    items, skipped = reinforcement.predict(rows, catalog)
    sources = {str(row["id"]): str(row["source_name"]) for row in rows}
    method = "the time of a step from its answers, its model and its accelerators; nothing is fitted to such steps"
    return measurements.payload(len(rows), items, skipped, sources, kind="validation", validated="rl", method=method)


VALIDATIONS = {
    "training": validate_training,
    "memory": validate_memory,
    "serving": validate_serving,
    "load": _validate_load,
    "rl": _validate_rl,
}
