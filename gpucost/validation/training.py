"""Validating training predictions: rows to observations, predictions with ranges, leave-one-out, baselines.

A prediction is made from what a row says about the run; measured columns are read afterwards, for comparison only.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.answers.checks import Report, Skipped
from gpucost.errors import DataError, UsageError
from gpucost.physics import transformer
from gpucost.physics.columns import Flags, Floats, layout_columns
from gpucost.physics.hardware import hardware_columns, peak_tflops
from gpucost.physics.training import calibration as cal
from gpucost.physics.training import steps as training
from gpucost.physics.training.cases import build_case, recipe_columns, software_codes
from gpucost.physics.training.efficiency import DEFAULTS
from gpucost.validation import report, wording
from gpucost.validation.training_rows import Facts, Row, TrainingRow, read_row

METRIC = "tokens_per_s_per_gpu"
FLOP_BASES = ("tflops", "mfu")
RULE_OF_THUMB_MFU = 0.40
CAST_BYTES = 6.0  # four read, two written


@dataclass(frozen=True)
class Measured:
    """A measured speed in tokens/s per accelerator, and what it was derived from."""

    value: float
    basis: str  # tokens_per_s | iteration_time | gpu_hours | tflops | mfu


@dataclass(frozen=True)
class Measurements:
    """Rows that could be read, with their measurements; and those that could not, with the reason."""

    rows: list[TrainingRow]
    measured: list[Measured]
    skipped: list[Skipped]
    sources: dict[str, str]  # id -> source
    total: int


def read_file(path: str | Path) -> list[dict[str, str]]:
    """Read a CSV file of measurements; only `model`, `gpu` and one measured column are indispensable."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as handle:
            rows = list(csv.DictReader(handle))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}. Give the path of a CSV file.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"not a readable CSV file: {error}", file=str(path)) from None
    columns = set(rows[0]) if rows else set()
    if missing := {"model", "gpu"} - columns:
        raise DataError(f"lacks the column {' and '.join(sorted(missing))}", file=str(path), row=1)
    return rows


def gather(rows: Sequence[Row], facts: Facts) -> Measurements:
    """Read every row; what cannot be computed or compared is skipped with its reason."""
    kept: list[TrainingRow] = []
    values: list[Measured] = []
    skipped: list[Skipped] = []
    sources: dict[str, str] = {}
    for index, row in enumerate(rows):
        name = str(row.get("id") or f"row {index + 2}")
        sources[name] = str(row.get("source_name") or "")
        try:
            read = read_row(row, facts)
            value = measured_speed(row, read)
        except UsageError as error:
            skipped.append({"id": name, "reason": str(error)})
            continue
        except (ValueError, TypeError, ArithmeticError) as error:
            skipped.append({"id": name, "reason": f"its numbers contradict each other: {error}"})
            continue
        kept.append(read)
        values.append(value)
    return computable(Measurements(kept, values, skipped, sources, len(rows)))


def computable(found: Measurements) -> Measurements:
    """Keep the rows whose step has a finite time; the others' numbers say something impossible."""
    if not found.rows:
        return found
    with np.errstate(all="ignore"):
        finite = np.isfinite(cal.log_predicted(observe(found), DEFAULTS)).tolist()
    pairs = list(zip(found.rows, finite, strict=True))
    odd: list[Skipped] = [
        {"id": row.id, "reason": "its numbers describe no possible step"} for row, good in pairs if not good
    ]
    rows = [row for row, good in pairs if good]
    measured = [value for value, good in zip(found.measured, finite, strict=True) if good]
    return Measurements(rows, measured, [*found.skipped, *odd], found.sources, found.total)


def measured_speed(row: Row, read: TrainingRow) -> Measured:
    """Return the measured tokens/s per accelerator: stated, else derived from time, GPU-hours, TFLOPS or MFU."""
    if value := wording.positive(row.get("measured_tokens_per_s_per_gpu")):
        return Measured(value, "tokens_per_s")
    batch, gpus = wording.positive(row.get("global_batch")), wording.positive(row.get("n_gpus"))
    if (time := wording.positive(row.get("measured_iter_time_s"))) and batch and gpus:
        return Measured(batch * read.sequence_tokens / time / gpus, "iteration_time")
    tokens = wording.positive(row.get("total_tokens"))
    if (hours := wording.positive(row.get("measured_total_gpu_hours"))) and tokens:
        return Measured(tokens / hours / 3600, "gpu_hours")
    flop = flop_by_convention(row, read)
    if tflops := wording.positive(row.get("measured_tflops_per_gpu")):
        return Measured(tflops * 1e12 / flop, "tflops")
    if mfu := wording.positive(row.get("measured_mfu_pct")):
        hardware = hardware_columns([read.accelerator], [read.system])
        peak = float(peak_tflops(hardware, layout_columns([read.layout]).precision)[0])
        return Measured(mfu / 100 * peak * 1e12 / flop, "mfu")
    raise UsageError("no measured speed, time, hours, TFLOPS or MFU")


def flop_by_convention(row: Row, read: TrainingRow) -> float:
    """Return the FLOP per token by which a row counts: hardware FLOP where it says so, full attention where it does."""
    shape, words = transformer.stack([read.architecture]), str(row.get("notes") or "").lower()
    if "hardware flop" in words:
        code = {"none": 0, "selective": 1, "full": 2}[read.layout.recompute]
        return float(transformer.hardware_flop(shape, read.sequence_tokens, code, read.flash)[0])
    causal = "full attention" not in words and "non-causal" not in words
    return float(transformer.model_flop(shape, read.sequence_tokens, causal)[0])


def observe(found: Measurements) -> cal.Observations:
    """Turn read rows into arrays."""
    rows = found.rows
    names = sorted({row.source for row in rows})
    code = {name: index for index, name in enumerate(names)}
    software = software_codes([row.software for row in rows])
    year = np.array([row.software_year for row in rows])
    modern = np.array([splits_norms(row) for row in rows])
    layout = layout_columns(
        [row.layout for row in rows], flash=np.array([row.flash for row in rows]), sequence_parallel=modern
    )
    recipe = recipe_columns(
        len(rows),
        [row.sequence_tokens for row in rows],
        method=[row.method for row in rows],
        adapter_rank=[row.adapter_rank for row in rows],
        adapter_share=[row.adapter_share for row in rows],
        state_bytes=[row.state_bytes for row in rows],
        cast_bytes=[CAST_BYTES if casts_weights(row) else 0.0 for row in rows],
    )
    hardware = hardware_columns([row.accelerator for row in rows], [row.system for row in rows])
    shape = transformer.stack([row.architecture for row in rows])
    case = build_case(shape, hardware, layout, recipe, DEFAULTS, software=software, software_year=year)
    return cal.Observations(
        case=case,
        software=software,
        software_year=year,
        whole_run=np.array([row.end_to_end for row in rows]),
        source=np.array([code[row.source] for row in rows], dtype=np.int64),
        log_measured=np.log([value.value for value in found.measured]),
    )


def splits_norms(row: TrainingRow) -> bool:
    """Return whether norms and residuals are split over the tensor group: usual in Megatron since mid-2022."""
    late = row.software == "megatron" and (row.software_year >= 2022.5 or row.layout.recompute == "selective")
    return late or row.software in ("vendor", "compiler")


def casts_weights(row: TrainingRow) -> bool:
    """Return whether a run keeps fp32 weights and casts them in each micro-batch, as automatic mixed precision does."""
    return row.software in ("eager", "sharded") and row.state_bytes >= 16 and row.layout.sharding < 3


def row_traits(seen: cal.Observations, found: Measurements, values: Mapping[str, float]) -> cal.Traits:
    """Return what makes each row's prediction less certain."""
    case = cal.with_values(seen, values)
    stated = np.array([row.stated_layout for row in found.rows])
    found_traits = cal.traits(case, seen.software, training.step(case), stated_layout=stated, whole_run=seen.whole_run)
    return replace(found_traits, unknown_software=np.array([not row.software_named for row in found.rows]))


def items_of(found: Measurements, log_speed: Floats, width: Floats) -> list[report.Item]:
    """Return the predictions beside the measurements."""
    items = []
    for row, value, logged, wide in zip(found.rows, found.measured, log_speed, width, strict=True):
        low, middle, high = np.exp([logged - wide, logged, logged + wide]).tolist()
        items.append(report.Item(row.id, row.source, METRIC, value.value, middle, low, high, value.basis, row.notes))
    return items


def predict(found: Measurements, calibration: cal.Calibration) -> list[report.Item]:
    """Predict every row with a calibration."""
    if not found.rows:
        return []
    seen = observe(found)
    logged = cal.log_predicted(seen, calibration.values)
    width = cal.spread_of(row_traits(seen, found, calibration.values), calibration.ranges)
    return items_of(found, logged, width)


# Leave-one-out -------------------------------------------------------------------------------------------------------

Grouping = Callable[[TrainingRow], str]
GROUPINGS: dict[str, Grouping] = {
    "source": lambda row: row.source,
    "family": lambda row: row.accelerator.family,
    "software": lambda row: row.software,
    "model": lambda row: row.architecture.name,
}


def fit_rows(found: Measurements) -> Flags:
    """Return the rows that a fit may use: those marked as suited to it, without GPU-hours of whole runs.

    Hours on model cards carry restarts, evaluation and idle time that no step explains.
    """
    pairs = zip(found.rows, found.measured, strict=True)
    return np.array([row.core and value.basis != "gpu_hours" for row, value in pairs])


def leave_one_out(
    found: Measurements, grouping: str = "source", pool: Measurements | None = None
) -> tuple[Floats, NDArray[Any]]:
    """Predict each group with a calibration fitted to the rows of `pool` outside it; return log speeds and the groups.

    `pool` is what fits may use; without one, the rows themselves.
    """
    pool = pool or found
    seen, taught = observe(found), observe(pool)
    groups, others = (np.array([GROUPINGS[grouping](row) for row in rows]) for rows in (found.rows, pool.rows))
    usable = fit_rows(pool)
    logged = np.full(len(groups), np.nan)
    everything: dict[str, float] | None = None
    for name in np.unique(groups):
        mine = np.flatnonzero(groups == name)
        if usable[others == name].any():
            values = cal.fit(taught.take(np.flatnonzero(usable & (others != name))))
        else:
            everything = everything or cal.fit(taught.take(np.flatnonzero(usable)))
            values = everything
        logged[mine] = cal.log_predicted(seen.take(mine), values)
    return logged, groups


def calibrate(found: Measurements) -> tuple[cal.Calibration, Floats]:
    """Fit the parameters to all usable rows, the ranges to held-out residuals; return also the held-out log speeds."""
    seen = observe(found)
    values = cal.fit(seen.take(np.flatnonzero(fit_rows(found))))
    held_out, _ = leave_one_out(found)
    ranges = cal.fit_ranges(held_out - seen.log_measured, row_traits(seen, found, values), seen.source)
    return cal.Calibration(values, ranges), held_out


# What is not stated ---------------------------------------------------------------------------------------------------

# Cells that hide a trait's knowledge when they are blank.
HIDDEN_CELLS = {
    "unstated_layout": (
        "tp", "pp", "cp", "ep", "dp", "vp", "zero_stage", "micro_batch", "activation_recompute", "flash_attention",
        "interconnect",
    ),
    "unknown_software": ("framework",),
}  # fmt: skip
WIDEST_RATIO = 2.5


def widen_for_the_unstated(rows: Sequence[Row], facts: Facts, calibration: cal.Calibration) -> cal.Calibration:
    """Set the ratios of what rows leave unsaid by hiding it: few published rows lack a layout, users' mostly do.

    The ratio is the weighted 80 % quantile of |residual| ÷ width without the trait, rows weighted by
    1/√(rows of their source), kept between 1 and 2.5.
    """
    ranges = dict(calibration.ranges)
    for trait, cells in HIDDEN_CELLS.items():
        found = gather([{**row, **dict.fromkeys(cells, "")} for row in rows], facts)
        found = select(found, fit_rows(found))
        seen = observe(found)
        width = cal.spread_of(row_traits(seen, found, calibration.values), {**ranges, trait: 1.0})
        size = np.abs(cal.log_predicted(seen, calibration.values) - seen.log_measured) / width
        weight = 1 / np.sqrt(np.bincount(seen.source)[seen.source])
        ranges[trait] = float(np.clip(cal.weighted_quantile(size, weight, cal.COVERAGE), 1.0, WIDEST_RATIO))
    return cal.Calibration(calibration.values, ranges)


def select(found: Measurements, chosen: Flags) -> Measurements:
    """Return the rows that are chosen."""
    kept = np.flatnonzero(chosen).tolist()
    rows, values = [found.rows[index] for index in kept], [found.measured[index] for index in kept]
    return Measurements(rows, values, found.skipped, found.sources, found.total)


# Baselines -----------------------------------------------------------------------------------------------------------


def rule_of_thumb(found: Measurements) -> Floats:
    """Return log tokens/s of 6·N·D at 40 % of the dense peak, N the active parameters."""
    seen = observe(found)
    peak = peak_tflops(seen.case.hardware, seen.case.layout.precision) * 1e12
    logged: Floats = np.log(RULE_OF_THUMB_MFU * peak / (6 * transformer.active_parameters(seen.case.shape)))
    return logged


def constant_mfu(found: Measurements) -> Floats:
    """Return log tokens/s at the median MFU of the other sources, by accelerator family and precision."""
    seen = observe(found)
    case = seen.case
    flop = transformer.model_flop(case.shape, case.recipe.sequence_tokens)
    ideal = np.log(peak_tflops(case.hardware, case.layout.precision) * 1e12 / flop)
    mfu = seen.log_measured - ideal
    logged = np.empty(len(mfu))
    for row in range(len(mfu)):
        others = seen.source != seen.source[row]
        alike = others & (case.hardware.family == case.hardware.family[row])
        same = alike & (case.layout.precision == case.layout.precision[row])
        chosen = same if same.any() else alike if alike.any() else others
        logged[row] = ideal[row] + (np.median(mfu[chosen]) if chosen.any() else np.log(RULE_OF_THUMB_MFU))
    return logged


def report_payload(found: Measurements, items: Sequence[report.Item], **more: Any) -> Report:
    """Return the report: figures over rows with a stated speed, time or hours; those from FLOP rates apart."""
    timed = [item for item in items if item.group not in FLOP_BASES]
    rated = [item for item in items if item.group in FLOP_BASES]
    answer = report.payload(found.total, timed, found.skipped, found.sources, **more)
    answer["items"] += [report.as_row(item) for item in rated]
    answer["predicted"] = len(items)
    answer["from_flop_rates"] = report.statistics(rated)
    return answer
