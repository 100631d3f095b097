"""The validations that the command and the library offer: one function per kind."""

from collections.abc import Sequence

import numpy as np

from gpucost.answers.checks import Baseline, Report
from gpucost.catalog import Catalog
from gpucost.physics.training import calibration as cal
from gpucost.validation import fitted, report, training
from gpucost.validation.training_rows import Row
from gpucost.workloads.speeds import calibration_of

METHODS = {
    None: "predicted with the shipped calibration, fitted to rows marked core (in-sample for those)",
    "source": "each source predicted with a calibration fitted to the other sources",
    "family": "each accelerator family predicted with a calibration fitted to the others",
    "software": "each class of software predicted with a calibration fitted to the others",
    "model": "each model predicted with a calibration fitted to the others",
}


def measurements_of(catalog: Catalog, path: str | None) -> training.Measurements:
    """Return the training rows of a file, or the shipped ones."""
    return training.gather(training.read_file(path), catalog) if path else fitted.shipped_measurements(catalog)


def rows_of(catalog: Catalog, path: str | None) -> Sequence[Row]:
    """Return the rows of a file, or the shipped ones."""
    return training.read_file(path) if path else catalog.rows("training_measurements")


def validate_training(
    catalog: Catalog, path: str | None = None, *, leave_out: str | None = None, core: bool = False
) -> Report:
    """Predict training runs; `leave_out` names what is held out of the fit, `core` keeps the rows well suited."""
    found = measurements_of(catalog, path)
    calibration = calibration_of(catalog)
    if leave_out is None:
        items = training.predict(found, calibration)
    else:
        logged, _ = training.leave_one_out(found, leave_out, fitted.shipped_measurements(catalog))
        seen = training.observe(found)
        width = cal.spread_of(training.row_traits(seen, found, calibration.values), calibration.ranges)
        items = training.items_of(found, logged, width)
    chosen = [item for item, row in zip(items, found.rows, strict=True) if row.core or not core]
    if core:
        found = only_core(found)
    return training.report_payload(
        found, chosen, kind="validation", validated="training", method=METHODS[leave_out], baselines=baselines(found)
    )


def only_core(found: training.Measurements) -> training.Measurements:
    """Keep the rows well suited to validation."""
    pairs = [(row, value) for row, value in zip(found.rows, found.measured, strict=True) if row.core]
    rows, measured = [row for row, _ in pairs], [value for _, value in pairs]
    return training.Measurements(rows, measured, found.skipped, found.sources, len(rows) + len(found.skipped))


def baselines(found: training.Measurements) -> dict[str, Baseline]:
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
        timed = [item for item in training.items_of(found, logged, width) if item.group not in training.FLOP_BASES]
        figures = report.statistics(timed)
        answer[name] = {
            "predicted": figures["predicted"],
            "median_abs_error_fraction": figures["median_abs_error_fraction"],
            "p90_abs_error_fraction": figures["p90_abs_error_fraction"],
            "macro_median_abs_error_fraction": figures["macro_median_abs_error_fraction"],
        }
    return answer


def validate_memory(
    catalog: Catalog, path: str | None = None, *, leave_out: str | None = None, core: bool = False
) -> Report:
    """Predict the peak memory of rows that carry one; there is no calibration to leave anything out of."""
    from gpucost.validation import memory

    rows = (
        rows_of(catalog, path)
        if path
        else [*catalog.rows("training_measurements"), *catalog.rows("memory_measurements")]
    )
    return memory.validate(rows, catalog, core=core)
