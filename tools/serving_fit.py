"""Serving's efficiencies fitted to the shipped measurements, and what the fit says of sources it has not seen."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.calibration.measurements import Measured, Measurements
from gpucost.calibration.serving import (
    ServingObservations,
    as_unseen,
    fit,
    log_predicted,
    observe,
    printed,
    problem_of,
    solve,
    traits,
    traits_of,
)
from gpucost.calibration.serving_rows import ServingRow
from gpucost.physics import calibration as core
from gpucost.physics.calibration import Calibration, Parameter, Values
from gpucost.physics.columns import Flags, Floats
from gpucost.physics.serving.calibration import SCHEME, USUAL_ENGINES
from gpucost.physics.serving.efficiency import DEFAULTS, PARAMETERS
from tools import choice, outside
from tools.ranges import WIDEST_RATIO, one_voice

GROUPINGS = {
    "source": lambda row: row.source,
    "model": lambda row: row.deployment.architecture.name,
    "gpu": lambda row: row.deployment.accelerator.id,
}


def _fit(seen: ServingObservations, start: Values | None) -> Values:
    return fit(seen, DEFAULTS if start is None else start)


def _problem(seen: ServingObservations, parameters: Sequence[Parameter]) -> core.FitProblem:
    return problem_of(seen, parameters=parameters)


def _solve(problem: core.FitProblem) -> Values:
    return solve(problem, rounds=10)


MODEL = outside.Model(SCHEME, _fit, log_predicted, _problem, _solve, soft=True)


def observed(found: Measurements, usable: Flags | None = None) -> outside.Observed:
    """Return the figures as a fit and its judges see them: of each source so many, unless others are said."""
    seen = observe(found)
    return outside.Observed(MODEL, seen, seen.source, thinned(found) if usable is None else usable)


def leave_one_out(
    found: Measurements, grouping: str = "source", pool: Measurements | None = None, start: Values = DEFAULTS
) -> Floats:
    """Predict each group with a calibration fitted to the figures of `pool` outside it; return log predictions.

    Groups of which no figure is suited to validation teach little: one fit of all predicts them.
    """
    pool = pool or found
    asked, taught = (observed(some, np.ones(len(some.figures), dtype=np.bool_)) for some in (found, pool))
    groups, others = (
        np.array([GROUPINGS[grouping](some.rows[figure.row]) for figure in some.figures]) for some in (found, pool)
    )
    return outside.leave_one_out(asked, groups, taught, others, start, taught.seen.core)


def left_out(found: Measurements, start: Values) -> Floats:
    """Return log predictions of every figure by a fit that has not seen its part of the sources."""
    of = observed(found)
    return outside.left_out(of, outside.by_part(of, start))


def calibrate(found: Measurements, first: Mapping[str, float] | None = None) -> Calibration:
    """Fit the parameters to all figures, the ranges to sources that the fit has not seen.

    `first` holds the first predictions of the ledger, as log(predicted ÷ measured) by row and metric: four fifths of
    them must lie within the ranges too.
    """
    of = observed(found)
    values = fit(of.seen, rounds=30)
    residual = outside.left_out(of, outside.by_part(of, values)) - of.seen.log_measured
    before = np.array([(first or {}).get(key(found, figure), np.nan) for figure in found.figures])
    doubted = traits(as_unseen(found), values)
    ranges = outside.ranges_of(SCHEME, residual, doubted, of.source, before)
    return Calibration(values, ranges | {"unstated_server": unstated_server(found, values, ranges)})


def key(found: Measurements, figure: Measured) -> str:
    """Return how a figure is called among first predictions: by its row and what is measured of it."""
    return f"{found.rows[figure.row].id} {figure.metric}"


MOST_FIGURES = 120  # of a source that a fit sees while others judge: more of them only take longer


def thinned(found: Measurements) -> Flags:
    """Return the figures of each source up to a number, drawn by a seed."""
    names, dice = found.of_rows("source").astype(str), np.random.default_rng(choice.SEED)
    kept = np.zeros(len(names), dtype=np.bool_)
    for name in np.unique(names):
        mine = np.flatnonzero(names == name)
        kept[mine if len(mine) <= MOST_FIGURES else dice.choice(mine, MOST_FIGURES, replace=False)] = True
    return kept


def unstated_server(found: Measurements, values: Values, ranges: Values) -> float:
    """Return by how much a range grows where nobody says how a model is served: it is taken as served by default.

    Figures of tuned servers are predicted as if nobody had said so; four fifths of them must lie within.
    """
    rows = [
        replace(row, deployment=replace(row.deployment, server="default"))
        if row.deployment.server == "tuned" and row.deployment.engine in USUAL_ENGINES
        else None
        for row in found.rows
    ]
    figures = [figure for figure in found.figures if rows[figure.row] is not None]
    if not figures:
        return SCHEME.default_ranges["unstated_server"]
    asked = sorted({figure.row for figure in figures})
    place = {row: index for index, row in enumerate(asked)}
    few = replace(
        found,
        rows=[rows[row] for row in asked],
        figures=[replace(figure, row=place[figure.row]) for figure in figures],
    )
    seen = observe(few)
    width = core.width_of(traits_of(few, few.figures, printed(seen.loads, values)), ranges)
    gap = np.abs(log_predicted(seen, values) - seen.log_measured)
    ratio = core.weighted_quantile(gap / width, one_voice(seen.source), core.COVERAGE)
    return float(np.clip(ratio, 1.0, WIDEST_RATIO))


def uses(found: Measurements) -> NDArray[Any]:
    """Return what each figure is of: a bare engine, an engine's benchmark, a tuned server, one as it comes."""

    def use(row: ServingRow) -> str:
        d = row.deployment
        if d.server == "default":
            return "server as it comes"
        if d.engine in ("tuned", "wide"):
            return "tuned server"
        return "bare engine" if d.server == "offline" else "engine's benchmark"

    return np.array([use(found.rows[figure.row]) for figure in found.figures])


def sources(found: Measurements) -> choice.Sources:
    """Return what terms are chosen from."""
    of = observed(found)
    return outside.to_choose_from(of, PARAMETERS, of.usable, uses(found))
