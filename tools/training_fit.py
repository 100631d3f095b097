"""Training's efficiencies fitted to the shipped measurements, and what the fit says of sources it has not seen."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.calibration import training
from gpucost.calibration.measurements import Measurements
from gpucost.calibration.record import Row
from gpucost.calibration.training import Doubts, Sources
from gpucost.calibration.training_rows import TrainingRow
from gpucost.catalog import Catalog
from gpucost.physics import calibration as core
from gpucost.physics.calibration import COVERAGE, Calibration, Values
from gpucost.physics.columns import Floats
from gpucost.physics.training import calibration as cal
from gpucost.physics.training.efficiency import PARAMETERS
from tools import choice, outside
from tools.ranges import WIDEST_RATIO, one_voice

GROUPINGS: dict[str, Callable[[TrainingRow], str]] = {
    "source": lambda row: row.source,
    "family": lambda row: row.accelerator.family,
    "software": lambda row: row.software,
    "model": lambda row: row.architecture.name,
}


MODEL = outside.Model(
    cal.SCHEME,
    lambda seen, start: cal.fit(seen, start=start),
    cal.log_predicted,
    lambda seen, parameters: cal.problem(seen, parameters=parameters),
    core.fit,
)


def observed(measured: Measurements) -> outside.Observed:
    """Return the rows as a fit and its judges see them."""
    return outside.Observed(MODEL, training.observe(measured), measured.row_sources, training.fit_rows(measured))


def leave_one_out(
    measured: Measurements, grouping: str = "source", pool: Measurements | None = None, start: Values | None = None
) -> Floats:
    """Predict each group with a calibration fitted to the rows of `pool` outside it; return log speeds."""
    pool = pool or measured
    groups, others = (
        np.array([GROUPINGS[grouping](row) for row in measurements.rows]) for measurements in (measured, pool)
    )
    return outside.leave_one_out(observed(measured), groups, observed(pool), others, start)


def calibrate(measured: Measurements, first: Mapping[str, float] | None = None) -> Calibration:
    """Fit the parameters to all usable rows, the ranges to sources that the fit has not seen.

    Sources are left out in parts drawn by a seed, as `tools.calibrate choose` draws them. `first` holds the first
    predictions of the ledger, as log(predicted ÷ measured) by row: four fifths of them must lie within the ranges too.
    """
    seen, keep = observed(measured), training.timed(measured)
    values = seen.fitted(np.ones(len(seen.seen), dtype=np.bool_), None)
    # a row's own source must not make its chip a well-known one; rows that state only FLOP/s teach no range, for their
    # speed was derived from it
    apart = training.as_unseen(measured)
    doubts = {trait: mine[keep] for trait, mine in training.row_traits(training.observe(apart), apart, values).items()}
    residual = outside.left_out(seen, outside.by_part(seen, values)) - seen.seen.log_measured
    before = np.array([(first or {}).get(row.id, np.nan) for row in measured.rows])
    return Calibration(values, outside.ranges_of(cal.SCHEME, residual[keep], doubts, seen.source[keep], before[keep]))


def uses(measured: Measurements) -> NDArray[Any]:
    """Return what each row is a measurement of: other makers' chips, tuning, mixtures, or the usual training."""

    def use(row: TrainingRow) -> str:
        if row.accelerator.vendor != "NVIDIA":
            return "other makers"
        if row.method != "full" or row.tuning:
            return "tuning"
        return "mixtures" if row.architecture.experts else "dense"

    return np.array([use(row) for row in measured.rows])


def sources(measured: Measurements) -> choice.Sources:
    """Return what terms are chosen from."""
    return outside.to_choose_from(observed(measured), PARAMETERS, training.timed(measured), uses(measured))


# Cells that hide a trait's knowledge when they are blank.
_HIDDEN_CELLS = {
    "unstated_layout": (
        *("tp", "pp", "cp", "ep", "dp", "vp", "zero_stage", "micro_batch", "activation_recompute", "flash_attention"),
        *("interconnect", "node_gpus", "scaleout_gb_per_s", "local_batch"),
    ),
    "unknown_software": ("framework", "dispatcher", "sinks"),
}


def widen_for_the_unstated(rows: Sequence[Row], facts: Catalog, calibration: Calibration) -> Calibration:
    """Set the ratios of what rows leave unsaid by hiding it: few published rows lack a layout, users' mostly do.

    The ratio of a side is the weighted 90 % quantile of held-out residual ÷ width without the trait, rows weighted by
    1/√(rows of their source), kept between 1 and 2.5.
    """
    ranges = dict(calibration.ranges)
    # fitted to the rows as they are: what is hidden below is unknown to whoever asks, not to the model
    parts = outside.by_part(observed(training.gather(rows, facts)), calibration.values)
    for trait, cells in _HIDDEN_CELLS.items():
        hidden = training.gather([{**row, **dict.fromkeys(cells, "")} for row in rows], facts)
        hidden = hidden.select(training.timed(hidden))
        seen = training.observe(training.as_unseen(hidden))
        residual = outside.left_out(observed(hidden), parts) - seen.log_measured
        doubts = training.row_traits(seen, hidden, calibration.values)
        ranges |= unsaid_ratio(trait, residual, doubts, seen.source, ranges)
    return Calibration(calibration.values, ranges)


def unsaid_ratio(trait: str, residual: Floats, doubts: Doubts, source: Sources, ranges: Values) -> dict[str, float]:
    """Return by how much a trait widens each side, from the residuals of rows whose knowledge of it is hidden."""
    ratios = {}
    for side, sign in zip(cal.SCHEME.sides, (1, -1), strict=True):
        # of the range without the trait: how much wider it would have to be
        size = sign * residual / core.width_of(doubts, {**ranges, trait + side: 1.0}, side)
        quantile = core.weighted_quantile(size, one_voice(source), (1 + COVERAGE) / 2)
        ratios[trait + side] = float(np.clip(quantile, max(ranges[trait + side], 1.0), WIDEST_RATIO))
    return ratios
