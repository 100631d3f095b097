"""Calibrations as tables and the validations of them: fitted to shipped measurements or to one's own, and reported."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpucost.answers.checks import Baseline, ValidationReport
from gpucost.calibration import choice, measurements, memory, serving, training
from gpucost.calibration.importer import entered
from gpucost.calibration.measurements import Measurements, read_file
from gpucost.calibration.record import Row
from gpucost.calibration.serving import loads_of, printed
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration
from gpucost.errors import UsageError
from gpucost.gate import repeated, shown
from gpucost.physics.calibration import Calibration, Scheme, table, width_of
from gpucost.physics.serving.calibration import SCHEME as SERVING
from gpucost.physics.training import own_runs
from gpucost.physics.training.calibration import SCHEME as TRAINING

# --- Calibrations as tables: fitted to the shipped measurements, or to a user's own runs on top of the current one.

OWN_SOURCE_ID = "own-runs"
OWN_SPREAD_RATIO = 0.5  # a user's runs move parameters less easily than the first fit did
AGAIN = "printed again: "  # and the id of the first, in the column `sanity`
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


def serving_shipped(catalog: Catalog) -> Measurements:
    """Return the same for serving: published runs, and this project's own steps."""
    own = serving.own_steps(catalog.rows("step_measurements"))
    return serving.gather([*catalog.rows("serving_measurements"), *own], catalog)


def fit_training(catalog: Catalog) -> Calibration:
    """Fit training to the shipped measurements, with ranges for what users leave unsaid."""
    fitted = training.calibrate(training_shipped(catalog), first_of(catalog, "training"))
    return training.widen_for_the_unstated(published(catalog), catalog, fitted)


BEFORE_SERVERS = ("3586665",)  # commits of the ledger whose model did not know a server as it comes


def first_of(catalog: Catalog, kind: str) -> dict[str, float]:
    """Return log(predicted ÷ measured) of first predictions: by row for training, by row and metric for serving.

    Servers as they come are left out where the model of that day took them for tuned ones: that error is mended.
    """
    rows = [row for row in catalog.rows("first_predictions") if row["kind"] == kind]
    gaps = {str(row["id"]): float(np.log(row["predicted"] / row["measured"])) for row in rows}
    if kind == "training":
        return {name.rpartition(" ")[0]: gap for name, gap in gaps.items()}
    early = {line["source"] for line in catalog.rows("ledger") if line["commit"] in BEFORE_SERVERS}
    served = {row["id"] for row in catalog.rows("serving_measurements") if row["served_by"] == "default"}
    mistaken = {row["id"] for row in rows if row["source"] in early and row["id"].rpartition(" ")[0] in served}
    return {name: gap for name, gap in gaps.items() if name not in mistaken}


def choose(catalog: Catalog, kind: str) -> list[dict[str, Any]]:
    """Return every term of a model: what it earns on sources outside its proposal, and whether it stays."""
    k = KINDS[kind]
    shipped = {one.name.partition(".")[0] for one in k.scheme.parameters if one.fitted}
    return [
        {
            "name": term.name,
            "parameters": term.parameters,
            "gain": term.gain,
            "kept": term.kept,
            "fitted": term.name in shipped,
        }
        for term in sorted(choice.choose(k.sources(k.shipped(catalog))), key=lambda term: term.gain / term.parameters)
    ]


class FitKind(Struct, frozen=True):
    """What differs between the calibrations of training and serving."""

    scheme: Scheme
    source_id: str
    what: str  # is counted
    current: Callable[[Catalog], Calibration]
    gather_own: Callable[[Sequence[Mapping[str, Any]], Catalog], Measurements]
    shipped: Callable[[Catalog], Measurements]
    fit: Callable[[Catalog], Calibration]
    tune: Callable[[Measurements, Calibration], Calibration]
    sources: Callable[[Measurements], choice.Sources]


KINDS = {
    "training": FitKind(
        TRAINING,
        "gpucost-calibrate-training",
        "runs",
        training_calibration,
        training.gather_own,
        training_shipped,
        fit_training,
        training.tune,
        training.sources,
    ),
    "serving": FitKind(
        SERVING,
        "gpucost-calibrate-serving",
        "figures",
        serving_calibration,
        serving.gather_own,
        serving_shipped,
        lambda catalog: serving.calibrate(serving_shipped(catalog), first_of(catalog, "serving")),
        serving.tune,
        serving.sources,
    ),
}


def fit_shipped(catalog: Catalog, kind: str) -> tuple[Calibration, list[dict[str, Any]]]:
    """Fit parameters and ranges to the shipped measurements; return them and their table."""
    k, found = KINDS[kind], KINDS[kind].shipped(catalog)
    used = int(training.fit_rows(found).sum()) if kind == "training" else len(found.figures)
    fitted = k.fit(catalog)
    return fitted, table(k.scheme, fitted, used, k.source_id, k.scheme.defaults)


def read_own(catalog: Catalog, kind: str, rows: Sequence[Mapping[str, Any]], stack: str = "") -> Measurements:
    """Return a user's own runs, read: each of a name of its own, those that cannot be skipped with the reason."""
    names = [str(row.get("id") or f"row {place}") for place, row in enumerate(rows, 1)]
    if kind == "training" and (twice := repeated(names)):
        raise UsageError(
            f"two runs are called {shown(twice[0])}, of which one would count: give each an id of its own, and keep "
            "machines apart with --machine, one at a time."
        )
    called = (f"{name} [{stack}]" if stack else name for name in names)
    own = [{**row, "id": name} for row, name in zip(rows, called, strict=True)]
    found = KINDS[kind].gather_own(own, catalog)
    if not found.figures:
        reasons = "; ".join(f"{entry['id']}: {entry['reason']}" for entry in found.skipped[:3])
        raise UsageError(f"no usable {KINDS[kind].what} to fit." + (f" Skipped: {reasons}." if reasons else ""))
    return found


def fit_own(
    catalog: Catalog, kind: str, rows: Sequence[Mapping[str, Any]], stack: str = ""
) -> tuple[Calibration, list[dict[str, Any]]]:
    """Fit a user's own runs on top of the current calibration: the parameters they say nothing about stay.

    With `stack` they are of a class of one's own, which has the physics of the class that most of them are of.
    """
    return fit_read(catalog, kind, read_own(catalog, kind, rows, stack), stack)


def fit_read(
    catalog: Catalog, kind: str, found: Measurements, stack: str = ""
) -> tuple[Calibration, list[dict[str, Any]]]:
    """Fit runs that were read, as `fit_own` does."""
    k = KINDS[kind]
    base = k.current(catalog)
    fitted = k.tune(found, base)
    if stack:
        like = Counter(row.software for row in found.rows).most_common(1)[0][0]
        fitted = replace(fitted, stacks={**base.stacks, stack: like})
    return fitted, table(k.scheme, fitted, len(found.figures), OWN_SOURCE_ID, base.values, OWN_SPREAD_RATIO)


def without(catalog: Catalog, machine: str) -> list[dict[str, Any]]:
    """Return the current calibration of training without the runs of a named machine."""
    base = training_calibration(catalog)
    kept = tuple(run for run in base.runs if not run.name.startswith(f"{machine}: "))
    if len(kept) == len(base.runs):
        known = sorted({run.name.partition(": ")[0] for run in base.runs if ": " in run.name})
        raise UsageError(f"no run of {machine!r} is kept. " + (f"Machines: {', '.join(known)}." if known else ""))
    left = replace(base, runs=kept)
    return table(TRAINING, left, len(kept), OWN_SOURCE_ID, base.values, OWN_SPREAD_RATIO)


def without_stack(catalog: Catalog, stack: str) -> list[dict[str, Any]]:
    """Return the current calibration of training without a class of one's own and its runs."""
    base = training_calibration(catalog)
    if stack not in base.stacks:
        known = f" Yours: {', '.join(base.stacks)}." if base.stacks else ""
        raise UsageError(f"there is no class of your own called {stack!r}.{known}")
    kept = tuple(run for run in base.runs if run.stack != stack)
    left = replace(base, runs=kept, stacks={name: like for name, like in base.stacks.items() if name != stack})
    return table(TRAINING, left, len(kept), OWN_SOURCE_ID, base.values, OWN_SPREAD_RATIO)


def stacks_of(catalog: Catalog) -> list[dict[str, Any]]:
    """Return the classes of one's own: what each is like, its runs, and the median of predicted ÷ measured speed."""
    base = training_calibration(catalog)
    found = []
    for name, like in base.stacks.items():
        ratios = [run.ratio for run in base.runs if run.stack == name]
        found.append(
            {
                "name": name,
                "like": "typical" if like == "unknown" else like,
                "runs": len(ratios),
                "median_ratio": float(np.median(ratios)) if ratios else None,
            }
        )
    return found


def run_changes(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return predicted ÷ measured of each run of one's own before and after the calibration, and its narrower range."""
    runs = TRAINING.load([row for row in rows if row["kind"] == "run"]).runs
    if not runs:
        return []
    own = own_runs.runs_of(runs)
    after = np.exp(own.residual - own_runs.correction(own, own.features))
    closer = own_runs.closeness(own, own.features)
    return [
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


def changes(catalog: Catalog, kind: str, rows: Sequence[Mapping[str, Any]], smallest: float) -> list[dict[str, Any]]:
    """Return what a calibration changes against the current one: runs, parameters and widths that moved."""
    base = KINDS[kind].current(catalog)
    found = run_changes(rows)
    for row in rows:
        if row["kind"] in ("run", "stack"):
            continue
        before = (base.ranges if row["kind"] == "range" else base.values)[str(row["name"])]
        change = float(row["value"]) / before - 1
        if abs(change) >= smallest:
            entry = {"name": row["name"], "before": before, "after": row["value"], "change_fraction": change}
            narrower = -change if row["kind"] == "range" else None
            found.append({**entry, "narrower_fraction": narrower, "meaning": row["meaning"]})
    return sorted(found, key=lambda entry: -abs(entry["change_fraction"]))


# --- The validations that the command and the library offer: one function per kind.

METHODS = {
    None: "predicted with the shipped calibration, fitted to rows marked core (in-sample for those)",
    "source": "each source predicted with a calibration fitted to the other sources",
    "family": "each accelerator family predicted with a calibration fitted to the others",
    "software": "each class of software predicted with a calibration fitted to the others",
    "model": "each model predicted with a calibration fitted to the others",
}
SERVING_IN_SAMPLE = (
    "predicted with the shipped calibration, which was fitted to the shipped rows "
    "(in-sample where they are among these)"
)


def validate_training(
    catalog: Catalog, path: str | None = None, *, leave_out: str | None = None, core: bool = False
) -> ValidationReport:
    """Predict training runs; `leave_out` names what is held out of the fit, `core` keeps the rows well suited."""
    pool = training_shipped(catalog)
    found = training.gather(read_file(path), catalog, words=True) if path else pool
    logged = training.leave_one_out(found, leave_out, pool, training_calibration(catalog).values) if leave_out else None
    items = training.with_ranges(found, logged, training_calibration(catalog)) if found.rows else []
    items = [item for item, row in zip(items, found.rows, strict=True) if row.core or not core]
    found = found.core() if core else found
    return training.report_payload(
        found, items, kind="validation", validated="training", method=METHODS[leave_out], baselines=baselines(found)
    )


def validate_serving(
    catalog: Catalog, path: str | None = None, *, leave_out: str | None = None, core: bool = False
) -> ValidationReport:
    """Predict serving runs; `leave_out` names what is held out of the fit, `core` keeps the rows well suited."""
    rows = read_file(path) if path else catalog.rows("serving_measurements")
    found = serving.gather(rows, catalog, words=path is not None)
    found = found.core() if core else found
    calibration = serving_calibration(catalog)
    if leave_out is None:
        return serving.in_sample_payload(
            found, calibration, kind="validation", validated="serving", method=SERVING_IN_SAMPLE
        )
    if leave_out not in serving.GROUPINGS:
        raise UsageError(f"serving cannot leave out {leave_out!r}. Choose one of {', '.join(serving.GROUPINGS)}.")
    pool = serving_shipped(catalog)  # own steps teach the fit, as in the shipped calibration
    logged = serving.leave_one_out(found, leave_out, pool, calibration.values)
    shown = printed(loads_of(found.rows, calibration.values), calibration.values)
    traits = serving.traits_of(found, found.figures, shown)
    items = found.items(np.exp(logged), width_of(traits, calibration.ranges))
    method = f"each {leave_out} predicted with a calibration fitted to the others"
    return serving.report_payload(found, items, kind="validation", validated="serving", method=method)


def baselines(found: Measurements) -> dict[str, Baseline]:
    """Return the figures of two rules that a model must beat, on the same rows."""
    if not found.rows:
        return {}
    width = np.zeros(len(found.rows))
    rules = {
        "constant_mfu": training.constant_mfu(found),
        "six_n_d_at_40_percent": training.rule_of_thumb(found),
    }
    answer: dict[str, Baseline] = {}
    for name, logged in rules.items():
        timed = [item for item in found.items(np.exp(logged), width) if item.group not in training.FLOP_BASES]
        known: Mapping[str, Any] = measurements.statistics(timed)
        answer[name] = cast(Baseline, {key: known[key] for key in Baseline.__annotations__})
    return answer


def validate_memory(
    catalog: Catalog, path: str | None = None, *, leave_out: str | None = None, core: bool = False
) -> ValidationReport:
    """Predict the peak memory of rows that carry one; there is no calibration to leave anything out of."""
    shipped = ("training_measurements", "memory_measurements")
    if path:
        rows = [entered(row, "training", catalog) for row in read_file(path)]
    else:
        rows = [row for name in shipped for row in catalog.rows(name)]
    return memory.validate(rows, catalog, core=core)


VALIDATIONS = {"training": validate_training, "memory": validate_memory, "serving": validate_serving}
