"""Validating serving predictions: rows to items, fits, leave-one-out, ranges.

A prediction is made from what a row says about the deployment; measured columns are read afterwards, for comparison
only. Rows whose batch is stated and rows at saturation are reported apart, and so is the time to the first token under
load, which is a queue and no physics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.answers.checks import Report, Skipped
from gpucost.errors import UsageError
from gpucost.physics.columns import Floats
from gpucost.physics.serving.efficiency import DEFAULTS
from gpucost.physics.training import calibration as training_calibration
from gpucost.validation import report, wording
from gpucost.validation.serving_model import Printed, loads_of, printed
from gpucost.validation.serving_rows import Facts, Row, ServingRow, read_row

METRICS = ("output_tokens_per_s", "total_tokens_per_s", "tpot_ms", "ttft_ms")
_COLUMNS = {
    "output_tokens_per_s": "measured_output_tokens_per_s",
    "total_tokens_per_s": "measured_total_tokens_per_s",
    "tpot_ms": "tpot_ms",
    "ttft_ms": "ttft_ms",
}
MS_PER_S = 1e3
OWN_SOURCE = "own device runs"
TRAITS = (
    "saturation",
    "unstated_layout",
    "unstated_lengths",
    "mixture_of_experts",
    "unusual_family",
    "unusual_engine",
    "host_bound",
    "first_token",
)
DEFAULT_RANGES: dict[str, float] = {"base": 0.22, **dict.fromkeys(TRAITS, 1.2)}
USUAL_FAMILIES = ("ampere", "ada", "hopper", "blackwell")
USUAL_ENGINES = ("vllm", "sglang", "trtllm", "llama.cpp")


@dataclass(frozen=True)
class Measured:
    """One measured figure of a row."""

    row: int
    metric: str
    value: float


@dataclass(frozen=True)
class Measurements:
    """Rows that could be read, their figures, figures under load, and what was skipped with the reason."""

    rows: list[ServingRow]
    figures: list[Measured]
    loaded: list[Measured]  # time to the first token under load
    skipped: list[Skipped]
    sources: dict[str, str]
    total: int


@dataclass(frozen=True)
class Calibration:
    """The parameters and the widths of the ranges."""

    values: Mapping[str, float]
    ranges: Mapping[str, float]


def gather(rows: Sequence[Row], facts: Facts) -> Measurements:
    """Read every row; what cannot be computed or states nothing measured is skipped with its reason."""
    found = Measurements([], [], [], [], {}, len(rows))
    for number, row in enumerate(rows):
        name = str(row.get("id") or f"row {number + 2}")
        found.sources[name] = str(row.get("source_name") or "")
        try:
            read = read_row(row, facts)
            figures, loaded = measured(row, read, len(found.rows))
            if not figures and not loaded:
                raise UsageError("no measured throughput, time per token or time to the first token")
        except UsageError as error:
            found.skipped.append({"id": name, "reason": str(error)})
            continue
        found.rows.append(read)
        found.figures.extend(figures)
        found.loaded.extend(loaded)
    return found


def measured(row: Row, read: ServingRow, index: int) -> tuple[list[Measured], list[Measured]]:
    """Return the figures that a row states and the physics predicts, and its times under load."""
    figures, loaded = [], []
    for metric, column in _COLUMNS.items():
        value = wording.number(row.get(column))
        if value is None or value <= 0:
            continue
        if read.scenario == "prompt" and metric in ("output_tokens_per_s", "tpot_ms"):
            continue
        if metric == "ttft_ms" and not (read.scenario in ("single", "prompt") and (read.batch or 1) == 1):
            loaded.append(Measured(index, metric, value))
        elif metric != "ttft_ms" or read.prompt_tokens > 0:
            figures.append(Measured(index, metric, value))
    return figures, loaded


def predicted(figures: Sequence[Measured], shown: Printed) -> Floats:
    """Return the predictions of figures, in their units."""
    by_metric = {
        "output_tokens_per_s": shown.output_tokens_per_s,
        "total_tokens_per_s": shown.total_tokens_per_s,
        "tpot_ms": shown.tpot_s * MS_PER_S,
        "ttft_ms": shown.ttft_s * MS_PER_S,
    }
    return np.array([by_metric[figure.metric][figure.row] for figure in figures], dtype=np.float64)


# Ranges --------------------------------------------------------------------------------------------------------------


def traits_of(found: Measurements, figures: Sequence[Measured], shown: Printed) -> NDArray[np.bool_]:
    """Return what makes each prediction less certain: rows × TRAITS."""
    table = []
    for figure in figures:
        row = found.rows[figure.row]
        d = row.deployment
        table.append(
            (
                row.group == "saturation",
                not row.stated_layout and d.gpus > 1,
                not row.stated_lengths,
                d.architecture.experts > 0,
                d.accelerator.family not in USUAL_FAMILIES,
                d.engine not in USUAL_ENGINES,
                bool(shown.host_share[figure.row] > 0.3),
                figure.metric == "ttft_ms" or row.scenario == "prompt",
            )
        )
    return np.array(table, dtype=np.bool_).reshape(len(figures), len(TRAITS))


def width_of(traits: NDArray[np.bool_], ranges: Mapping[str, float]) -> Floats:
    """Return half the logarithmic width of the 80 % range: base · Π ratio of the traits that apply."""
    ratios = np.array([ranges[name] for name in TRAITS])
    width: Floats = ranges["base"] * np.exp(traits.astype(np.float64) @ np.log(ratios))
    return width


def fit_ranges(residual: Floats, traits: NDArray[np.bool_], voices: Floats) -> dict[str, float]:
    """Fit the widths to residuals of held-out sources so that 80 % lie within; ratios stay between 1 and 2.5.

    The scale of a Laplace distribution by maximum likelihood, each row weighted by `voices`; the base is then the
    weighted 80 % quantile.
    """
    from scipy.optimize import minimize

    size, active = np.abs(residual), traits.T.astype(np.float64)

    def loss(x: Floats) -> float:
        scale = x[0] + x[1:] @ active
        return float(np.sum(voices * (scale + size * np.exp(-scale))) + 0.5 * np.sum(((x[1:] - 0.15) / 0.3) ** 2))

    bounds = [(-5.0, 1.0)] + [(0.0, np.log(2.5))] * len(TRAITS)
    x = minimize(loss, np.array([np.log(0.15)] + [0.15] * len(TRAITS)), bounds=bounds, method="L-BFGS-B").x
    scaled = size / np.exp(x[1:] @ active)
    base = training_calibration.weighted_quantile(scaled, voices, training_calibration.COVERAGE)
    return {"base": base, **{name: float(np.exp(value)) for name, value in zip(TRAITS, x[1:], strict=True)}}


# Report --------------------------------------------------------------------------------------------------------------


def items_of(found: Measurements, figures: Sequence[Measured], middle: Floats, width: Floats) -> list[report.Item]:
    """Return the predictions beside the measurements."""
    items = []
    for figure, value, wide in zip(figures, middle.tolist(), width.tolist(), strict=True):
        row = found.rows[figure.row]
        low, high = value * np.exp(-wide), value * np.exp(wide)
        items.append(
            report.Item(
                row.id, row.source, figure.metric, figure.value, value, float(low), float(high), row.group, row.notes
            )
        )
    return items


def predict(found: Measurements, calibration: Calibration) -> tuple[list[report.Item], list[report.Item]]:
    """Predict every figure with a calibration; the second list holds times to the first token under load."""
    if not found.rows:
        return [], []
    shown = printed(loads_of(found.rows, calibration.values), calibration.values)
    answers = []
    for figures in (found.figures, found.loaded):
        width = width_of(traits_of(found, figures, shown), calibration.ranges)
        answers.append(items_of(found, figures, predicted(figures, shown), width))
    return answers[0], answers[1]


def load(rows: Sequence[Mapping[str, Any]]) -> Calibration:
    """Read the rows of the serving calibration; later rows override earlier ones."""
    values, ranges = dict(DEFAULTS), dict(DEFAULT_RANGES)
    for row in rows:
        target = ranges if row["kind"] == "range" else values
        target[str(row["name"])] = float(row["value"])
    return Calibration(values, ranges)


def report_payload(found: Measurements, calibration: Calibration, **more: Any) -> Report:
    """Return the report: all items, the two groups apart, and times under load apart from both."""
    items, loaded = predict(found, calibration)
    answer = report.payload(found.total, items, found.skipped, found.sources, **more)
    answer["stated"] = report.statistics([item for item in items if item.group == "stated"])
    answer["saturation"] = report.statistics([item for item in items if item.group == "saturation"])
    answer["predicted"], answer["figures"] = len({figure.row for figure in found.figures}), len(items)
    answer["by_metric"] = {name: report.statistics([item for item in items if item.metric == name]) for name in METRICS}
    answer["loaded_ttft"] = [report.as_row(item) for item in loaded]
    answer["caveat"] = (
        "Time to the first token under load is a queue, not physics: no accuracy is claimed for loaded_ttft."
    )
    return answer


def validate(catalog: Any, path: str | None = None, *, leave_out: str | None = None, core: bool = False) -> Report:
    """Predict serving runs; `leave_out` names what is held out of the fit, `core` keeps the rows well suited."""
    from gpucost.validation.training import read_file

    rows = read_file(path) if path else catalog.rows("serving_measurements")
    found = gather(rows, catalog)
    calibration = load(catalog.rows("serving_calibration"))
    if leave_out is None:
        found = only_core(found) if core else found
        return report_payload(found, calibration, kind="validation", validated="serving", method=IN_SAMPLE)
    from gpucost.validation.serving_fit import GROUPINGS, own_steps

    if leave_out not in GROUPINGS:
        raise UsageError(f"serving cannot leave out {leave_out!r}. Choose one of {', '.join(GROUPINGS)}.")
    if path is None:  # this project's own steps teach the fit, as in the shipped calibration; they are not reported
        found = gather([*rows, *own_steps(catalog.rows("step_measurements"))], catalog)
    return held_out_payload(found, calibration, leave_out, core)


IN_SAMPLE = (
    "predicted with the shipped calibration, which was fitted to the shipped rows "
    "(in-sample where they are among these)"
)


def only_core(found: Measurements) -> Measurements:
    """Keep the rows well suited to validation."""
    kept = [index for index, row in enumerate(found.rows) if row.core]
    new = {old: index for index, old in enumerate(kept)}

    def moved(figures: Sequence[Measured]) -> list[Measured]:
        return [Measured(new[f.row], f.metric, f.value) for f in figures if f.row in new]

    rows = [found.rows[index] for index in kept]
    return Measurements(
        rows, moved(found.figures), moved(found.loaded), found.skipped, found.sources, len(kept) + len(found.skipped)
    )


def held_out_payload(found: Measurements, calibration: Calibration, grouping: str, core: bool) -> Report:
    """Return the report of predictions, each made with a calibration fitted to the other groups."""
    from gpucost.validation.serving_fit import leave_one_out, observe

    seen = observe(found)
    logged = leave_one_out(found, seen, grouping, calibration.values)
    shown = printed(seen.loads, calibration.values)
    width = width_of(traits_of(found, found.figures, shown), calibration.ranges)
    items = items_of(found, found.figures, np.exp(logged), width)
    chosen = [found.rows[figure.row].core or not core for figure in found.figures]
    items = [item for item, keep in zip(items, chosen, strict=True) if keep and item.source != OWN_SOURCE]
    method = f"each {grouping} predicted with a calibration fitted to the others"
    rows = found.total - sum(row.source == OWN_SOURCE for row in found.rows)
    more = {"kind": "validation", "validated": "serving", "method": method}
    answer = report.payload(rows, items, found.skipped, found.sources, **more)
    answer["stated"] = report.statistics([item for item in items if item.group == "stated"])
    answer["saturation"] = report.statistics([item for item in items if item.group == "saturation"])
    return answer
