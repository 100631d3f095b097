"""The calibration of serving as a table: fitted to the shipped measurements, or to a user's own runs on top of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.physics.serving.efficiency import PARAMETERS
from gpucost.validation import serving, serving_fit
from gpucost.validation.fitted import OWN_RUNS_AT_LEAST, OWN_SOURCE_ID, rounded

SOURCE_ID = "gpucost-calibrate-serving"
RANGE_MEANINGS = {
    "base": "half width of the 80 % range, in logarithms, where no trait below applies",
    "saturation": "the batch is not stated",
    "unstated_layout": "the layout is not stated",
    "unstated_lengths": "prompt or output lengths are not stated",
    "mixture_of_experts": "the model is a mixture of experts",
    "unusual_family": "the accelerator is not of a family with many measurements",
    "unusual_engine": "the engine is not one with many measurements",
    "host_bound": "three tenths of the step or more wait for the host",
    "first_token": "the figure is a time to the first token, or prompts alone",
}


def measurements(catalog: Catalog) -> serving.Measurements:
    """Return what the shipped calibration is fitted to: published runs, and this project's own steps."""
    own = serving_fit.own_steps(catalog.rows("step_measurements"))
    return serving.gather([*catalog.rows("serving_measurements"), *own], catalog)


def fit_shipped(catalog: Catalog) -> tuple[serving.Calibration, list[dict[str, Any]]]:
    """Fit parameters and ranges to the shipped measurements; return them and their table."""
    found = measurements(catalog)
    calibration, _ = serving_fit.calibrate(found)
    return calibration, table(calibration, len(found.figures), SOURCE_ID)


def fit_own(catalog: Catalog, rows: Sequence[Mapping[str, Any]]) -> tuple[serving.Calibration, list[dict[str, Any]]]:
    """Fit a user's own runs on top of the current calibration: parameters that they say nothing about stay."""
    found = serving.gather(rows, catalog)
    if len(found.figures) < OWN_RUNS_AT_LEAST:
        reasons = "; ".join(f"{entry['id']}: {entry['reason']}" for entry in found.skipped[:3])
        said = f" Skipped: {reasons}." if reasons else ""
        raise UsageError(
            f"{len(found.figures)} usable figures are too few to fit: at least {OWN_RUNS_AT_LEAST} are needed.{said}"
        )
    base = serving.load(catalog.rows("serving_calibration"))
    seen = serving_fit.observe(found)
    values = serving_fit.fit(seen, np.ones(len(seen.figures), dtype=np.bool_), base.values, centre=base.values)
    fitted = serving.Calibration(values, base.ranges)
    return fitted, table(fitted, len(found.figures), OWN_SOURCE_ID, base.values)


def table(
    fitted: serving.Calibration, rows_used: int, source_id: str, start: Mapping[str, float] | None = None
) -> list[dict[str, Any]]:
    """Return the rows of the calibration table."""
    rows: list[dict[str, Any]] = [
        {
            "name": p.name, "kind": "parameter", "value": rounded(fitted.values[p.name]),
            "prior": rounded(start[p.name] if start else p.prior), "prior_spread_ratio": p.spread, "unit": p.unit,
            "meaning": p.meaning,
        }
        for p in PARAMETERS
    ]  # fmt: skip
    for name, value in fitted.ranges.items():
        unit = "logarithm" if name == "base" else "ratio"
        rows.append(
            {
                "name": name, "kind": "range", "value": rounded(value), "prior": None, "prior_spread_ratio": None,
                "unit": unit, "meaning": RANGE_MEANINGS[name],
            }
        )  # fmt: skip
    return [row | {"rows_used": rows_used, "source_id": source_id} for row in rows]
