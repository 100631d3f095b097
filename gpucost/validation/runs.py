"""The validations that the command and the library offer: one function per kind."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from gpucost.answers.checks import Baseline, ValidationReport
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration
from gpucost.errors import UsageError
from gpucost.physics.calibration import width_of
from gpucost.validation import fitted, memory, report, serving, training
from gpucost.validation.measurements import Measurements, read_file
from gpucost.validation.serving_model import loads_of, printed

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
    pool = fitted.training_shipped(catalog)
    found = training.gather(read_file(path), catalog) if path else pool
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
    found = serving.gather(read_file(path) if path else catalog.rows("serving_measurements"), catalog)
    found = found.core() if core else found
    calibration = serving_calibration(catalog)
    if leave_out is None:
        return serving.in_sample_payload(
            found, calibration, kind="validation", validated="serving", method=SERVING_IN_SAMPLE
        )
    if leave_out not in serving.GROUPINGS:
        raise UsageError(f"serving cannot leave out {leave_out!r}. Choose one of {', '.join(serving.GROUPINGS)}.")
    pool = fitted.serving_shipped(catalog)  # own steps teach the fit, as in the shipped calibration
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
        known: Mapping[str, Any] = report.statistics(timed)
        answer[name] = cast(Baseline, {key: known[key] for key in Baseline.__annotations__})
    return answer


def validate_memory(
    catalog: Catalog, path: str | None = None, *, leave_out: str | None = None, core: bool = False
) -> ValidationReport:
    """Predict the peak memory of rows that carry one; there is no calibration to leave anything out of."""
    shipped = ("training_measurements", "memory_measurements")
    rows = read_file(path) if path else [row for name in shipped for row in catalog.rows(name)]
    return memory.validate(rows, catalog, core=core)


VALIDATIONS = {"training": validate_training, "memory": validate_memory, "serving": validate_serving}
