"""Validating training predictions: rows to observations, predictions with ranges, leave-one-out, baselines."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.answers.checks import Skipped, ValidationReport
from gpucost.calibration import measurements as measured_rows
from gpucost.calibration import wording
from gpucost.calibration.importer import entered
from gpucost.calibration.measurements import Item, Measured, Measurements
from gpucost.calibration.record import Row
from gpucost.calibration.training_rows import TrainingRow, read_row
from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.physics import calibration as core
from gpucost.physics import transformer
from gpucost.physics.calibration import Calibration, Values
from gpucost.physics.columns import Flags, Floats, layout_columns
from gpucost.physics.hardware import hardware_columns, peak_tflops
from gpucost.physics.training import calibration as cal
from gpucost.physics.training import own_runs
from gpucost.physics.training import steps as training
from gpucost.physics.training.cases import FULL, HALF_BYTES, TrainingCase, build_case, recipe_columns, software_codes
from gpucost.physics.training.efficiency import DEFAULTS, SPLIT_NORMS_YEAR, UNSAID
from gpucost.units import GB, SECONDS_PER_HOUR, TERA

METRIC = "tokens_per_s_per_gpu"
FLOP_BASES = ("tflops", "mfu")  # figures that are rates of FLOP: their convention may differ
_RULE_OF_THUMB_MFU = 0.40  # what planners take for granted
_HALF = 0.5  # of a peak, which calculators of roofs are told to expect
_OF_RECIPE = (
    "sequence_tokens",
    "method",
    "adapter_rank",
    "adapter_share",
    "state_bytes",
    "loss_repeated",
    "vocabulary_split",
    "document_tokens",
    "offload",
    "full_precision",
    "blocking",
    "library_scores",
)
Doubts = Mapping[str, Flags]
Sources = NDArray[Any]  # of each row, by code or by name
_CAST_BYTES = 6.0  # four read, two written


def gather(rows: Sequence[Row], facts: Catalog, *, as_written: bool = False) -> Measurements:
    """Read every row; what cannot be computed or compared is skipped with its reason.

    `as_written` says that the rows come from a person's file, whose words are read into columns first.
    """

    def read(row: Row, index: int) -> tuple[TrainingRow, list[Measured], list[Measured]]:
        mine = read_row(entered(row, "training", facts) if as_written else row, facts)
        value, basis = _measured_speed(row, mine)
        return mine, [Measured(index, METRIC, value, basis)], []

    measurements = measured_rows.gather(rows, "training_measurements", read)
    if not measurements.rows:
        return measurements
    # a row may read well and still describe no step, such as more stages than layers: its speed is then no number
    with np.errstate(all="ignore"):
        finite = np.isfinite(cal.log_predicted(observe(measurements), DEFAULTS))
    reason = "its numbers describe no possible step"
    pairs = zip(measurements.rows, finite, strict=True)
    odd: list[Skipped] = [{"id": row.id, "reason": reason} for row, good in pairs if not good]
    return replace(measurements.select(finite), skipped=[*measurements.skipped, *odd], total=measurements.total)


def _measured_speed(row: Row, read: TrainingRow) -> tuple[float, str]:
    """Return the measured tokens/s per accelerator and its basis: stated, time, GPU-hours, TFLOPS or MFU."""
    if value := wording.positive(row.get("measured_tokens_per_s_per_gpu")):
        return value, "tokens_per_s"
    batch, gpus = wording.positive(row.get("global_batch")), wording.positive(row.get("n_gpus"))
    if (time := wording.positive(row.get("measured_iter_time_s"))) and batch and gpus:
        return batch * read.sequence_tokens / time / gpus, "iteration_time"
    tokens = wording.positive(row.get("total_tokens"))
    if (hours := wording.positive(row.get("measured_total_gpu_hours"))) and tokens:
        return tokens / hours / SECONDS_PER_HOUR, "gpu_hours"
    # a rate of FLOP becomes a speed by the convention that it was counted by, as far as the row says which
    shape, notes = transformer.stack([read.architecture]), str(row.get("notes") or "").lower()
    if "hardware flop" in notes:
        code = {"none": 0, "selective": 1, "full": 2}[read.layout.recompute]
        flop = float(transformer.hardware_flop(shape, read.sequence_tokens, code, read.flash)[0])
    else:
        causal = "full attention" not in notes and "non-causal" not in notes
        flop = float(transformer.model_flop(shape, read.sequence_tokens, causal)[0])
    if tflops := wording.positive(row.get("measured_tflops_per_gpu")):
        return tflops * TERA / flop, "tflops"
    if mfu := wording.positive(row.get("measured_mfu_pct")):
        hardware = hardware_columns([read.accelerator], [read.system])
        peak = float(peak_tflops(hardware, layout_columns([read.layout]).precision)[0])
        return mfu / 100 * peak * TERA / flop, "mfu"
    raise UsageError("no measured speed, time, hours, TFLOPS or MFU")


def observe(measurements: Measurements) -> cal.Observations:
    """Turn read rows into arrays."""
    rows = measurements.rows
    names = sorted({row.source for row in rows})
    code = {name: index for index, name in enumerate(names)}
    software = software_codes([row.software for row in rows])
    year = np.array([row.software_year for row in rows])
    # norms and residuals are split over the tensor group: usual in Megatron since mid-2022
    splits_norms = [
        row.software in ("vendor", "compiler")
        or (
            row.software == "megatron"
            and (row.software_year >= SPLIT_NORMS_YEAR or row.layout.recompute == "selective")
        )
        for row in rows
    ]
    # Automatic mixed precision keeps fp32 weights: every micro-batch casts them forward, once more where the forward
    # pass is repeated, and the gradients back. Fully sharded stacks cast their shards alone.
    casts = [
        0
        if row.software not in ("eager", "sharded") or row.state_bytes < 16 or row.layout.sharding >= 3
        else (3 if row.layout.recompute == "full" else 2)
        for row in rows
    ]
    layout = layout_columns(
        [row.layout for row in rows],
        flash=np.array([row.flash for row in rows]),
        sequence_parallel=np.array(splits_norms),
        shard_ranks=np.array([row.shard_ranks for row in rows], dtype=np.float64),
    )
    recipe = recipe_columns(
        len(rows),
        cast_bytes=[_CAST_BYTES * count for count in casts],
        **{name: [getattr(row, name) for row in rows] for name in _OF_RECIPE},
    )
    hardware = hardware_columns([row.accelerator for row in rows], [row.system for row in rows])
    shape = transformer.stack([row.architecture for row in rows])
    case = build_case(shape, hardware, layout, recipe, DEFAULTS, software=software, software_year=year)
    return cal.Observations(
        case=case,
        software=software,
        software_year=year,
        whole_run=np.array([row.end_to_end for row in rows]),
        dispatcher=np.array([row.dispatcher for row in rows], dtype=np.int64),
        sinks=np.array([row.sinks for row in rows], dtype=np.int64),
        long_run_ratio=np.array([row.long_run_ratio for row in rows]),
        source=np.array([code[row.source] for row in rows], dtype=np.int64),
        log_measured=measurements.log_measured,
    )


def gather_own(rows: Sequence[Row], facts: Catalog) -> Measurements:
    """Read a user's rows, without those whose speed no accelerator can have."""
    measurements = gather(rows, facts, as_written=True)
    if not measurements.rows:
        return measurements
    seen = observe(measurements)
    case, frozen = seen.case, measurements.of_rows("method") != "full"
    flop = transformer.model_flop(case.shape, case.recipe.attended_tokens, case.recipe.causal, frozen)
    needed = np.exp(seen.log_measured) * flop
    return measured_rows.possible(measurements, needed / (peak_tflops(case.hardware, case.layout.precision) * TERA))


def row_traits(seen: cal.Observations, measurements: Measurements, values: Values) -> dict[str, Flags]:
    """Return what makes each row's prediction less certain."""
    case = cal.with_values(seen, values)
    stated = measurements.of_rows("stated_layout")
    traits = cal.traits(_alike_of(seen, case), training.step(case), stated_layout=stated, whole_run=seen.whole_run)
    return traits | {"unknown_software": ~measurements.of_rows("software_named")}


def as_unseen(measurements: Measurements) -> Measurements:
    """Return rows whose chips are known by the other sources alone: what is known of them before they are entered."""
    pairs = list(zip(measurements.row_sources, measurements.rows, strict=True))
    sources: dict[str, dict[str, int]] = {}  # of each chip: the largest cluster of each source
    for source, row in pairs:
        largest = sources.setdefault(row.accelerator.id, {})
        largest[source] = max(largest.get(source, 0), row.layout.gpus)

    def unseen(source: str, row: TrainingRow) -> TrainingRow:
        others = [gpus for name, gpus in sources[row.accelerator.id].items() if name != source]
        known = {"training_sources": len(others), "training_largest_gpus": max(others, default=0)}
        return replace(row, accelerator=replace(row.accelerator, **known))

    return replace(measurements, rows=[unseen(source, row) for source, row in pairs])


def predict(measurements: Measurements, calibration: Calibration) -> list[Item]:
    """Predict every row with a calibration."""
    return with_ranges(measurements, None, calibration) if measurements.rows else []


def with_ranges(measurements: Measurements, logged: Floats | None, calibration: Calibration) -> list[Item]:
    """Return predictions (those of the calibration where none are given) with the calibration's ranges."""
    seen = observe(measurements)
    runs = calibration.runs
    if logged is None:
        logged = cal.log_predicted(seen, calibration.values)
        if runs:  # runs of one's own correct what is like them
            alike = configurations(seen, calibration.values)
            logged = logged - own_runs.correction(own_runs.runs_of(runs), alike)
    doubts = row_traits(seen, measurements, calibration.values)
    closer = own_runs.closeness(own_runs.runs_of(runs), configurations(seen)) if runs else 1.0
    slower, faster = (core.width_of(doubts, calibration.ranges, side) * closer for side in cal.SCHEME.sides)
    # a general stack's attention may not be fused: the low end is that of a run without
    case, unsaid = cal.with_values(seen, calibration.values), ~measurements.of_rows("stated_attention")
    step = training.step(case)
    speed = step.tokens_per_s_per_gpu
    low = cal.unsaid_attention_low(seen.software, case, step, speed * np.exp(-slower), closer * unsaid)
    # tokens may reach their experts by a fused kernel: the high end is that of a run with it
    unsaid, point = seen.dispatcher == UNSAID, np.ones(len(seen))
    high = cal.unsaid_dispatcher_high(case, seen.software_year, point, np.exp(faster), closer, unsaid)
    return measurements.items(np.exp(logged), np.log(speed / low), above=np.log(high))


def configurations(seen: cal.Observations, values: Values | None = None) -> Floats:
    """Return the sizes and traits by which runs are compared; under a calibration's values also the shares of parts."""
    case, step = seen.case, None if values is None else training.step(cal.with_values(seen, values))
    return own_runs.features_of(_alike_of(seen, case), step)


def _alike_of(seen: cal.Observations, case: TrainingCase) -> own_runs.Alike:
    """Return what observed runs are compared by."""
    return own_runs.Alike(case.shape, case.hardware, case.layout, case.recipe, seen.software)


# Leave-one-out -------------------------------------------------------------------------------------------------------


def fit_rows(measurements: Measurements) -> Flags:
    """Return the rows that a fit may use: those marked as suited to it, without GPU-hours of whole runs.

    Hours on model cards carry restarts, evaluation and idle time that no step explains.
    """
    pairs = zip(measurements.rows, measurements.figures, strict=True)
    return np.array([row.core and figure.group != "gpu_hours" for row, figure in pairs])


def timed(measurements: Measurements) -> Flags:
    """Return the rows that state a speed, a time or hours, by which ranges are fitted."""
    return np.array([figure.group not in FLOP_BASES for figure in measurements.figures], dtype=np.bool_)


def tune(measurements: Measurements, base: Calibration) -> Calibration:
    """Lay a user's own runs over a calibration: parameters stay, predictions are corrected near the runs."""
    seen = observe(measurements)
    ratios = np.exp(cal.log_predicted(seen, base.values) - seen.log_measured)
    known = {run.name: run for run in base.runs}
    for row, configuration, ratio in zip(measurements.rows, configurations(seen, base.values), ratios, strict=True):
        if row.source != own_runs.ONE_SCRIPT:  # the shares of its step's parts are known of the one script alone
            configuration[own_runs.PLAIN :] = 0.0
        known[row.id] = core.Run(row.id, own_runs.write(configuration), float(ratio))
    newest = tuple(known.values())[-own_runs.MOST_RUNS :]
    return Calibration(base.values, base.ranges, newest, base.stacks)


# Baselines -----------------------------------------------------------------------------------------------------------


def rule_of_thumb(measurements: Measurements) -> Floats:
    """Return log tokens/s of 6·N·D at 40 % of the dense peak, N the active parameters."""
    seen = observe(measurements)
    peak = peak_tflops(seen.case.hardware, seen.case.layout.precision) * TERA
    logged: Floats = np.log(_RULE_OF_THUMB_MFU * peak / (6 * transformer.active_parameters(seen.case.shape)))
    return logged


def by_roofs(measurements: Measurements) -> Floats:
    """Return log tokens/s as calculators of roofs count them (llm-analysis among them), at half of every peak.

    A token takes its FLOP, what is recomputed and attention's among them, or the reading of the weights if that is
    longer; then come the all-reduces of its tensor group: two a layer forward, two backward, two where the forward
    pass is repeated.
    """
    case = observe(measurements).case
    shape, layout, chip = case.shape, case.layout, case.hardware
    flop = transformer.hardware_flop(shape, case.recipe.sequence_tokens, layout.recompute, layout.flash)
    compute_s = flop / (_HALF * peak_tflops(chip, layout.precision) * TERA)
    passes = np.where(layout.recompute == FULL, 4.0, 3.0)  # forward, two backward, and a second forward
    tokens = layout.micro_batch * case.recipe.sequence_tokens
    weights_s = passes * HALF_BYTES * transformer.total_parameters(shape) / tokens / (_HALF * chip.hbm_gb_per_s * GB)
    # a ring moves (n−1)/n of a message twice
    reduces = 2 * (passes - 1) * shape.layers * 2 * (layout.tensor - 1) / layout.tensor
    moved_s = reduces * shape.hidden * HALF_BYTES / (_HALF * chip.scaleup_gb_per_s * GB)
    logged: Floats = -np.log(np.maximum(compute_s, weights_s) + layout.tensor * moved_s)
    return logged


def constant_mfu(measurements: Measurements) -> Floats:
    """Return log tokens/s at the median MFU of the other sources, by accelerator family and precision."""
    seen = observe(measurements)
    case = seen.case
    flop = transformer.model_flop(case.shape, case.recipe.sequence_tokens)
    ideal = np.log(peak_tflops(case.hardware, case.layout.precision) * TERA / flop)
    mfu = seen.log_measured - ideal
    logged = np.empty(len(mfu))
    for row in range(len(mfu)):
        others = seen.source != seen.source[row]
        alike = others & (case.hardware.family == case.hardware.family[row])
        same = alike & (case.layout.precision == case.layout.precision[row])
        # the narrowest group that has a row at all
        chosen = next((group for group in (same, alike) if group.any()), others)
        logged[row] = ideal[row] + (np.median(mfu[chosen]) if chosen.any() else np.log(_RULE_OF_THUMB_MFU))
    return logged


def report_payload(measurements: Measurements, items: Sequence[Item], **more: Any) -> ValidationReport:
    """Return the report: figures over rows with a stated speed, time or hours; those from FLOP rates apart."""
    stated = [item for item in items if item.group not in FLOP_BASES]
    rated = [item for item in items if item.group in FLOP_BASES]
    answer = measured_rows.payload(measurements.total, stated, measurements.skipped, measurements.sources, **more)
    answer["items"] += [measured_rows.as_row(item) for item in rated]
    answer["predicted"] = len(items)
    answer["from_flop_rates"] = measured_rows.statistics(rated)
    return answer
