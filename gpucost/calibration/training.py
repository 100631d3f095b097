"""Validating training predictions: rows to observations, predictions with ranges, leave-one-out, baselines."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.answers.checks import Skipped, ValidationReport
from gpucost.calibration import measurements, wording
from gpucost.calibration import measurements as rows_of
from gpucost.calibration.importer import entered
from gpucost.calibration.measurements import Measured, Measurements
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
FLOP_BASES = ("tflops", "mfu")
_RULE_OF_THUMB_MFU = 0.40
HALF = 0.5  # of a peak, which calculators of roofs are told to expect
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


def gather(rows: Sequence[Row], facts: Catalog, *, words: bool = False) -> Measurements:
    """Read every row; what cannot be computed or compared is skipped with its reason.

    `words` says that the rows come from a person's file, whose words are read into columns first.
    """

    def read(row: Row, index: int) -> tuple[TrainingRow, list[Measured], list[Measured]]:
        mine = read_row(entered(row, "training", facts) if words else row, facts)
        value, basis = measured_speed(row, mine)
        return mine, [Measured(index, METRIC, value, basis)], []

    found = rows_of.gather(rows, "training_measurements", read)
    if not found.rows:
        return found
    with np.errstate(all="ignore"):
        finite = np.isfinite(cal.log_predicted(observe(found), DEFAULTS))
    reason = "its numbers describe no possible step"
    pairs = zip(found.rows, finite, strict=True)
    odd: list[Skipped] = [{"id": row.id, "reason": reason} for row, good in pairs if not good]
    return replace(found.select(finite), skipped=[*found.skipped, *odd], total=found.total)


def measured_speed(row: Row, read: TrainingRow) -> tuple[float, str]:
    """Return the measured tokens/s per accelerator and its basis: stated, time, GPU-hours, TFLOPS or MFU."""
    if value := wording.positive(row.get("measured_tokens_per_s_per_gpu")):
        return value, "tokens_per_s"
    batch, gpus = wording.positive(row.get("global_batch")), wording.positive(row.get("n_gpus"))
    if (time := wording.positive(row.get("measured_iter_time_s"))) and batch and gpus:
        return batch * read.sequence_tokens / time / gpus, "iteration_time"
    tokens = wording.positive(row.get("total_tokens"))
    if (hours := wording.positive(row.get("measured_total_gpu_hours"))) and tokens:
        return tokens / hours / SECONDS_PER_HOUR, "gpu_hours"
    flop = _flop_by_convention(row, read)
    if tflops := wording.positive(row.get("measured_tflops_per_gpu")):
        return tflops * TERA / flop, "tflops"
    if mfu := wording.positive(row.get("measured_mfu_pct")):
        hardware = hardware_columns([read.accelerator], [read.system])
        peak = float(peak_tflops(hardware, layout_columns([read.layout]).precision)[0])
        return mfu / 100 * peak * TERA / flop, "mfu"
    raise UsageError("no measured speed, time, hours, TFLOPS or MFU")


def _flop_by_convention(row: Row, read: TrainingRow) -> float:
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
        [row.layout for row in rows],
        flash=np.array([row.flash for row in rows]),
        sequence_parallel=modern,
        shard_ranks=np.array([row.shard_ranks for row in rows], dtype=np.float64),
    )
    recipe = recipe_columns(
        len(rows),
        cast_bytes=[_CAST_BYTES * _casts_weights(row) for row in rows],
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
        log_measured=found.log_measured,
    )


def gather_own(rows: Sequence[Row], facts: Catalog) -> Measurements:
    """Read a user's rows, without those whose speed no accelerator can have."""
    found = gather(rows, facts, words=True)
    if not found.rows:
        return found
    seen = observe(found)
    case, frozen = seen.case, found.of_rows("method") != "full"
    flop = transformer.model_flop(case.shape, case.recipe.attended_tokens, case.recipe.causal, frozen)
    needed = np.exp(seen.log_measured) * flop
    return rows_of.possible(found, needed / (peak_tflops(case.hardware, case.layout.precision) * TERA))


def splits_norms(row: TrainingRow) -> bool:
    """Return whether norms and residuals are split over the tensor group: usual in Megatron since mid-2022."""
    late = row.software == "megatron" and (row.software_year >= SPLIT_NORMS_YEAR or row.layout.recompute == "selective")
    return late or row.software in ("vendor", "compiler")


def _casts_weights(row: TrainingRow) -> int:
    """Return how often a micro-batch casts every weight or gradient between fp32 and 16 bits.

    Automatic mixed precision keeps fp32 weights: it casts them forward, once more where the forward pass is repeated,
    and the gradients back. Fully sharded stacks cast their shards alone.
    """
    if row.software not in ("eager", "sharded") or row.state_bytes < 16 or row.layout.sharding >= 3:
        return 0
    return 3 if row.layout.recompute == "full" else 2


def row_traits(seen: cal.Observations, found: Measurements, values: Values) -> dict[str, Flags]:
    """Return what makes each row's prediction less certain."""
    case = cal.with_values(seen, values)
    stated = found.of_rows("stated_layout")
    found_traits = cal.traits(
        alike_of(seen, case),
        training.step(case),
        stated_layout=stated,
        whole_run=seen.whole_run,
    )
    return found_traits | {"unknown_software": ~found.of_rows("software_named")}


def as_unseen(found: Measurements) -> Measurements:
    """Return rows whose chips are known by the other sources alone: what is known of them before they are entered."""
    own = list(zip(found.row_sources, found.rows, strict=True))
    sources: dict[str, dict[str, int]] = {}  # of each chip: the largest cluster of each source
    for source, row in own:
        largest = sources.setdefault(row.accelerator.id, {})
        largest[source] = max(largest.get(source, 0), row.layout.gpus)

    def unseen(source: str, row: TrainingRow) -> TrainingRow:
        others = [gpus for name, gpus in sources[row.accelerator.id].items() if name != source]
        known = {"training_sources": len(others), "training_largest_gpus": max(others, default=0)}
        return replace(row, accelerator=replace(row.accelerator, **known))

    return replace(found, rows=[unseen(source, row) for source, row in own])


def predict(found: Measurements, calibration: Calibration) -> list[measurements.Item]:
    """Predict every row with a calibration."""
    return with_ranges(found, None, calibration) if found.rows else []


def with_ranges(found: Measurements, logged: Floats | None, calibration: Calibration) -> list[measurements.Item]:
    """Return predictions (those of the calibration where none are given) with the calibration's ranges."""
    seen = observe(found)
    logged = _predicted_with(seen, calibration) if logged is None else logged
    doubts = row_traits(seen, found, calibration.values)
    runs = calibration.runs
    closer = own_runs.closeness(own_runs.runs_of(runs), configurations(seen)) if runs else 1.0
    slower, faster = (core.width_of(doubts, calibration.ranges, side) * closer for side in cal.SCHEME.sides)
    slower = _with_unsaid_attention(seen, found, calibration.values, slower, closer)
    faster = _with_unsaid_dispatcher(seen, calibration.values, faster, closer)
    return found.items(np.exp(logged), slower, above=faster)


def _with_unsaid_attention(
    seen: cal.Observations, found: Measurements, values: Values, slower: Floats, closer: Floats | float = 1.0
) -> Floats:
    """Return the logarithmic widths below predictions, wider where a general stack's attention may not be fused."""
    case, unsaid = cal.with_values(seen, values), ~found.of_rows("stated_attention")
    step = training.step(case)
    speed = step.tokens_per_s_per_gpu
    low = cal.unsaid_attention_low(seen.software, case, step, speed * np.exp(-slower), closer * unsaid)
    wider: Floats = np.log(speed / low)
    return wider


def _with_unsaid_dispatcher(
    seen: cal.Observations, values: Values, faster: Floats, closer: Floats | float = 1.0
) -> Floats:
    """Return the logarithmic widths above predictions, wider where tokens may reach their experts by a fused kernel."""
    case, one = cal.with_values(seen, values), np.ones(len(seen))
    unsaid = seen.dispatcher == UNSAID
    wider: Floats = np.log(cal.unsaid_dispatcher_high(case, seen.software_year, one, np.exp(faster), closer, unsaid))
    return wider


def _predicted_with(seen: cal.Observations, calibration: Calibration) -> Floats:
    """Return log speeds by a calibration, corrected by the runs of one's own that it holds."""
    logged = cal.log_predicted(seen, calibration.values)
    runs = calibration.runs
    return (
        logged - own_runs.correction(own_runs.runs_of(runs), configurations(seen, calibration.values))
        if runs
        else logged
    )


def configurations(seen: cal.Observations, values: Values | None = None) -> Floats:
    """Return the sizes and traits by which runs are compared; under a calibration's values also the shares of parts."""
    case, step = seen.case, None if values is None else training.step(cal.with_values(seen, values))
    return own_runs.features_of(alike_of(seen, case), step)


def alike_of(seen: cal.Observations, case: TrainingCase) -> own_runs.Alike:
    """Return what observed runs are compared by."""
    return own_runs.Alike(case.shape, case.hardware, case.layout, case.recipe, seen.software)


# Leave-one-out -------------------------------------------------------------------------------------------------------


def fit_rows(found: Measurements) -> Flags:
    """Return the rows that a fit may use: those marked as suited to it, without GPU-hours of whole runs.

    Hours on model cards carry restarts, evaluation and idle time that no step explains.
    """
    pairs = zip(found.rows, found.figures, strict=True)
    return np.array([row.core and figure.group != "gpu_hours" for row, figure in pairs])


def timed(found: Measurements) -> Flags:
    """Return the rows that state a speed, a time or hours, by which ranges are fitted."""
    return np.array([figure.group not in FLOP_BASES for figure in found.figures], dtype=np.bool_)


def tune(found: Measurements, base: Calibration) -> Calibration:
    """Lay a user's own runs over a calibration: parameters stay, predictions are corrected near the runs."""
    seen = observe(found)
    ratios = np.exp(cal.log_predicted(seen, base.values) - seen.log_measured)
    known = {run.name: run for run in base.runs}
    for row, configuration, ratio in zip(found.rows, configurations(seen, base.values), ratios, strict=True):
        if row.source != own_runs.ONE_SCRIPT:
            configuration[own_runs.PLAIN :] = 0.0
        known[row.id] = core.Run(row.id, own_runs.write(configuration), float(ratio))
    kept = tuple(known.values())[-own_runs.MOST_RUNS :]
    return Calibration(base.values, base.ranges, kept, base.stacks)


# Baselines -----------------------------------------------------------------------------------------------------------


def rule_of_thumb(found: Measurements) -> Floats:
    """Return log tokens/s of 6·N·D at 40 % of the dense peak, N the active parameters."""
    seen = observe(found)
    peak = peak_tflops(seen.case.hardware, seen.case.layout.precision) * TERA
    logged: Floats = np.log(_RULE_OF_THUMB_MFU * peak / (6 * transformer.active_parameters(seen.case.shape)))
    return logged


def by_roofs(found: Measurements) -> Floats:
    """Return log tokens/s as calculators of roofs count them (llm-analysis among them), at half of every peak.

    A token takes its FLOP, what is recomputed and attention's among them, or the reading of the weights if that is
    longer; then come the all-reduces of its tensor group: two a layer forward, two backward, two where the forward
    pass is repeated.
    """
    case = observe(found).case
    shape, layout, chip = case.shape, case.layout, case.hardware
    flop = transformer.hardware_flop(shape, case.recipe.sequence_tokens, layout.recompute, layout.flash)
    compute_s = flop / (HALF * peak_tflops(chip, layout.precision) * TERA)
    passes = np.where(layout.recompute == FULL, 4.0, 3.0)
    tokens = layout.micro_batch * case.recipe.sequence_tokens
    weights_s = passes * HALF_BYTES * transformer.total_parameters(shape) / tokens / (HALF * chip.hbm_gb_per_s * GB)
    reduces = 2 * (passes - 1) * shape.layers * 2 * (layout.tensor - 1) / layout.tensor
    moved_s = reduces * shape.hidden * HALF_BYTES / (HALF * chip.scaleup_gb_per_s * GB)
    logged: Floats = -np.log(np.maximum(compute_s, weights_s) + layout.tensor * moved_s)
    return logged


def constant_mfu(found: Measurements) -> Floats:
    """Return log tokens/s at the median MFU of the other sources, by accelerator family and precision."""
    seen = observe(found)
    case = seen.case
    flop = transformer.model_flop(case.shape, case.recipe.sequence_tokens)
    ideal = np.log(peak_tflops(case.hardware, case.layout.precision) * TERA / flop)
    mfu = seen.log_measured - ideal
    logged = np.empty(len(mfu))
    for row in range(len(mfu)):
        others = seen.source != seen.source[row]
        alike = others & (case.hardware.family == case.hardware.family[row])
        same = alike & (case.layout.precision == case.layout.precision[row])
        chosen = same if same.any() else alike if alike.any() else others
        logged[row] = ideal[row] + (np.median(mfu[chosen]) if chosen.any() else np.log(_RULE_OF_THUMB_MFU))
    return logged


def report_payload(found: Measurements, items: Sequence[measurements.Item], **more: Any) -> ValidationReport:
    """Return the report: figures over rows with a stated speed, time or hours; those from FLOP rates apart."""
    timed = [item for item in items if item.group not in FLOP_BASES]
    rated = [item for item in items if item.group in FLOP_BASES]
    answer = measurements.payload(found.total, timed, found.skipped, found.sources, **more)
    answer["items"] += [measurements.as_row(item) for item in rated]
    answer["predicted"] = len(items)
    answer["from_flop_rates"] = measurements.statistics(rated)
    return answer
