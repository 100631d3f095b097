"""The calibration as a table: read from the catalog, written after a fit, laid over it by a user's own runs."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.physics.training import calibration as cal
from gpucost.physics.training.efficiency import PARAMETERS
from gpucost.validation import training
from gpucost.workloads.speeds import calibration_of

SOURCE_ID = "gpucost-calibrate-training"
OWN_SOURCE_ID = "own-runs"
OWN_SPREAD_RATIO = 0.7  # a user's runs move parameters less easily than the first fit did
OWN_RUNS_AT_LEAST = 3

RANGE_MEANINGS = {
    "base": "half width of the 80 % range, in logarithms, where no trait below applies",
    "unstated_layout": "the layout is not stated",
    "unknown_software": "the training stack is not known",
    "mixture_of_experts": "the model is a mixture of experts",
    "fine_tuning": "adapters are trained on frozen weights",
    "unusual_family": "the accelerator is not of a family with many measurements",
    "whole_run": "the figure covers a whole run with restarts and evaluation",
    "host_bound": "a tenth of the step or more waits for the host or fixed overheads",
}


OWN_RUNS = "H200 runs of our own"  # one voice: the device benchmarks repeat and extend these rows


def shipped_measurements(catalog: Catalog) -> training.Measurements:
    """Return the measurements that the shipped calibration is made from: published ones, and device benchmarks."""
    # variants try memory options (optimizers, offload, chunked losses) that the step time does not model
    steps = (row for row in catalog.rows("memory_measurements") if not row["id"].startswith("h200-variant"))
    device = [{**row, "source_name": OWN_RUNS} for row in steps]
    return training.gather([*catalog.rows("training_measurements"), *device], catalog)


def fit_shipped(catalog: Catalog) -> tuple[cal.Calibration, list[dict[str, Any]]]:
    """Fit parameters and ranges to the shipped measurements; return them and their table."""
    found = shipped_measurements(catalog)
    fitted, _ = training.calibrate(found)
    fitted = training.widen_for_the_unstated(catalog.rows("training_measurements"), catalog, fitted)
    used = int(training.fit_rows(found).sum())
    return fitted, table(fitted, used, SOURCE_ID)


def fit_own(catalog: Catalog, rows: Sequence[Mapping[str, Any]]) -> tuple[cal.Calibration, list[dict[str, Any]]]:
    """Fit a user's own runs on top of the current calibration: the parameters they say nothing about stay."""
    found = training.gather(rows, catalog)
    if len(found.rows) < OWN_RUNS_AT_LEAST:
        reasons = "; ".join(f"{entry['id']}: {entry['reason']}" for entry in found.skipped[:3])
        raise UsageError(
            f"{len(found.rows)} usable runs are too few to fit: at least {OWN_RUNS_AT_LEAST} are needed."
            + (f" Skipped: {reasons}." if reasons else "")
        )
    base = calibration_of(catalog)
    values = cal.fit(training.observe(found), base.values, OWN_SPREAD_RATIO, between=0.0)
    fitted = cal.Calibration(values, base.ranges)
    return fitted, table(fitted, len(found.rows), OWN_SOURCE_ID, base.values)


def table(
    fitted: cal.Calibration, rows_used: int, source_id: str, start: Mapping[str, float] | None = None
) -> list[dict[str, Any]]:
    """Return the rows of the calibration table."""
    rows: list[dict[str, Any]] = []
    for parameter in PARAMETERS:
        rows.append(
            {
                "name": parameter.name,
                "kind": "parameter",
                "value": rounded(fitted.values[parameter.name]),
                "prior": rounded(start[parameter.name] if start else parameter.prior),
                "prior_spread_ratio": parameter.spread * (OWN_SPREAD_RATIO if start else 1.0),
                "unit": parameter.unit,
                "meaning": parameter.meaning,
            }
        )
    for name, value in fitted.ranges.items():
        unit = "logarithm" if name == "base" else "ratio"
        meaning = RANGE_MEANINGS[name]
        empty = {"prior": None, "prior_spread_ratio": None}
        row = {"name": name, "kind": "range", "value": rounded(value), **empty, "unit": unit, "meaning": meaning}
        rows.append(row)
    return [row | {"rows_used": rows_used, "source_id": source_id} for row in rows]


def rounded(value: float) -> float:
    """Return a value at six significant digits: more would be noise of the fit.

    >>> rounded(0.123456789)
    0.123457
    """
    return float(f"{value:.6g}")


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the rows as the CSV file that the catalog reads."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value is None else value for key, value in row.items()} for row in rows)
    return text.getvalue()
