"""Training's efficiencies fitted to the shipped measurements, and what the fit says of sources it has not seen."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.calibration.measurements import Measurements
from gpucost.calibration.record import Row
from gpucost.calibration.training import Doubts, Sources, as_unseen, fit_rows, gather, observe, row_traits, timed
from gpucost.calibration.training_rows import TrainingRow
from gpucost.catalog import Catalog
from gpucost.physics import calibration as core
from gpucost.physics.calibration import COVERAGE, Calibration, Parameter, Values
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


def _fit(seen: cal.Observations, start: Values | None) -> Values:
    return cal.fit(seen, start=start)


def _problem(seen: cal.Observations, parameters: Sequence[Parameter]) -> core.FitProblem:
    return cal.problem(seen, parameters=parameters)


MODEL = outside.Model(cal.SCHEME, _fit, cal.log_predicted, _problem, core.fit)


def observed(found: Measurements) -> outside.Observed:
    """Return the rows as a fit and its judges see them."""
    return outside.Observed(MODEL, observe(found), found.row_sources, fit_rows(found))


def leave_one_out(
    found: Measurements, grouping: str = "source", pool: Measurements | None = None, start: Values | None = None
) -> Floats:
    """Predict each group with a calibration fitted to the rows of `pool` outside it; return log speeds."""
    pool = pool or found
    groups, others = (np.array([GROUPINGS[grouping](row) for row in some.rows]) for some in (found, pool))
    return outside.leave_one_out(observed(found), groups, observed(pool), others, start)


def calibrate(found: Measurements, first: Mapping[str, float] | None = None) -> Calibration:
    """Fit the parameters to all usable rows, the ranges to sources that the fit has not seen.

    Sources are left out in parts drawn by a seed, as `tools.calibrate choose` draws them. `first` holds the first
    predictions of the ledger, as log(predicted ÷ measured) by row: four fifths of them must lie within the ranges too.
    """
    of, keep = observed(found), timed(found)
    values = of.fitted(np.ones(len(of.seen), dtype=np.bool_), None)
    apart = as_unseen(found)
    doubts = {trait: mine[keep] for trait, mine in row_traits(observe(apart), apart, values).items()}
    residual = outside.left_out(of, outside.by_part(of, values)) - of.seen.log_measured
    before = np.array([(first or {}).get(row.id, np.nan) for row in found.rows])
    return Calibration(values, outside.ranges_of(cal.SCHEME, residual[keep], doubts, of.source[keep], before[keep]))


def uses(found: Measurements) -> NDArray[Any]:
    """Return what each row is a measurement of: other makers' chips, tuning, mixtures, or the usual training."""

    def use(row: TrainingRow) -> str:
        if row.accelerator.vendor != "NVIDIA":
            return "other makers"
        if row.method != "full" or row.tuning:
            return "tuning"
        return "mixtures" if row.architecture.experts else "dense"

    return np.array([use(row) for row in found.rows])


def sources(found: Measurements) -> choice.Sources:
    """Return what terms are chosen from."""
    return outside.to_choose_from(observed(found), PARAMETERS, timed(found), uses(found))


# Cells that hide a trait's knowledge when they are blank.
HIDDEN_CELLS = {
    "unstated_layout": (
        "tp",
        "pp",
        "cp",
        "ep",
        "dp",
        "vp",
        "zero_stage",
        "micro_batch",
        "activation_recompute",
        "flash_attention",
        "interconnect",
        "node_gpus",
        "scaleout_gb_per_s",
        "local_batch",
    ),
    "unknown_software": ("framework", "dispatcher", "sinks"),
}


def widen_for_the_unstated(rows: Sequence[Row], facts: Catalog, calibration: Calibration) -> Calibration:
    """Set the ratios of what rows leave unsaid by hiding it: few published rows lack a layout, users' mostly do.

    The ratio of a side is the weighted 90 % quantile of held-out residual ÷ width without the trait, rows weighted by
    1/√(rows of their source), kept between 1 and 2.5.
    """
    ranges = dict(calibration.ranges)
    parts = outside.by_part(observed(gather(rows, facts)), calibration.values)
    for trait, cells in HIDDEN_CELLS.items():
        found = gather([{**row, **dict.fromkeys(cells, "")} for row in rows], facts)
        found = found.select(timed(found))
        seen = observe(as_unseen(found))
        residual = outside.left_out(observed(found), parts) - seen.log_measured
        doubts = row_traits(seen, found, calibration.values)
        ranges |= unsaid_ratio(trait, residual, doubts, seen.source, ranges)
    return Calibration(calibration.values, ranges)


def unsaid_ratio(trait: str, residual: Floats, doubts: Doubts, source: Sources, ranges: Values) -> dict[str, float]:
    """Return by how much a trait widens each side, from the residuals of rows whose knowledge of it is hidden."""
    found = {}
    for side, sign in zip(cal.SCHEME.sides, (1, -1), strict=True):
        size = sign * residual / core.width_of(doubts, {**ranges, trait + side: 1.0}, side)
        quantile = core.weighted_quantile(size, one_voice(source), (1 + COVERAGE) / 2)
        found[trait + side] = float(np.clip(quantile, max(ranges[trait + side], 1.0), WIDEST_RATIO))
    return found
