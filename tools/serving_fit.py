"""Serving's efficiencies fitted to the shipped measurements, and what the fit says of sources it has not seen."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.calibration import serving
from gpucost.calibration.measurements import Measured, Measurements
from gpucost.calibration.serving_rows import ServingRow
from gpucost.physics import calibration as core
from gpucost.physics.calibration import Calibration, Values
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


MODEL = outside.Model(
    SCHEME,
    lambda seen, start: serving.fit(seen, DEFAULTS if start is None else start),
    serving.log_predicted,
    lambda seen, parameters: serving.problem_of(seen, parameters=parameters),
    lambda problem: serving.solve(problem, rounds=10),  # many fits choose terms; `calibrate` takes 30
    soft=True,
)


def observed(measured: Measurements, usable: Flags | None = None) -> outside.Observed:
    """Return the figures as a fit and its judges see them: of each source so many, unless others are said."""
    seen = serving.observe(measured)
    return outside.Observed(MODEL, seen, seen.source, thinned(measured) if usable is None else usable)


def leave_one_out(
    measured: Measurements, grouping: str = "source", pool: Measurements | None = None, start: Values = DEFAULTS
) -> Floats:
    """Predict each group with a calibration fitted to the figures of `pool` outside it; return log predictions.

    Groups of which no figure is suited to validation teach little: one fit of all predicts them.
    """
    pool = pool or measured
    held_out, taught = (
        observed(measurements, np.ones(len(measurements.figures), dtype=np.bool_)) for measurements in (measured, pool)
    )
    groups, others = (
        np.array([GROUPINGS[grouping](measurements.rows[figure.row]) for figure in measurements.figures])
        for measurements in (measured, pool)
    )
    return outside.leave_one_out(held_out, groups, taught, others, start, taught.seen.core)


def left_out(measured: Measurements, start: Values) -> Floats:
    """Return log predictions of every figure by a fit that has not seen its part of the sources."""
    seen = observed(measured)
    return outside.left_out(seen, outside.by_part(seen, start))


def calibrate(measured: Measurements, first: Mapping[str, float] | None = None) -> Calibration:
    """Fit the parameters to all figures, the ranges to sources that the fit has not seen.

    `first` holds the first predictions of the ledger, as log(predicted ÷ measured) by row and metric: four fifths of
    them must lie within the ranges too.
    """
    seen = observed(measured)
    values = serving.fit(seen.seen, rounds=30)
    residual = outside.left_out(seen, outside.by_part(seen, values)) - seen.seen.log_measured
    before = np.array([(first or {}).get(key(measured, figure), np.nan) for figure in measured.figures])
    # a row's own source must not make its chip a well-known one
    doubted = serving.traits(serving.as_unseen(measured), values)
    ranges = outside.ranges_of(SCHEME, residual, doubted, seen.source, before)
    return Calibration(values, ranges | {"unstated_server": unstated_server(measured, values, ranges)})


def key(measured: Measurements, figure: Measured) -> str:
    """Return how a figure is called among first predictions: by its row and what is measured of it."""
    return f"{measured.rows[figure.row].id} {figure.metric}"


_MOST_FIGURES = 120  # of a source that a fit sees while others judge: more of them only take longer


def thinned(measured: Measurements) -> Flags:
    """Return the figures of each source up to a number, drawn by a seed."""
    names, dice = measured.of_rows("source").astype(str), np.random.default_rng(choice.SEED)
    visible = np.zeros(len(names), dtype=np.bool_)
    for name in np.unique(names):
        figures = np.flatnonzero(names == name)
        visible[figures if len(figures) <= _MOST_FIGURES else dice.choice(figures, _MOST_FIGURES, replace=False)] = True
    return visible


def unstated_server(measured: Measurements, values: Values, ranges: Values) -> float:
    """Return by how much a range grows where nobody says how a model is served: it is taken as served by default.

    Figures of tuned servers are predicted as if nobody had said so; four fifths of them must lie within.
    """
    # None keeps the places of the other rows, which figures refer to by their number
    rows = [
        replace(row, deployment=replace(row.deployment, server="default"))
        if row.deployment.server == "tuned" and row.deployment.engine in USUAL_ENGINES
        else None
        for row in measured.rows
    ]
    figures = [figure for figure in measured.figures if rows[figure.row] is not None]
    if not figures:
        return SCHEME.default_ranges["unstated_server"]
    tuned = sorted({figure.row for figure in figures})
    place = {row: index for index, row in enumerate(tuned)}
    as_default = replace(
        measured,
        rows=[rows[row] for row in tuned],
        figures=[replace(figure, row=place[figure.row]) for figure in figures],
    )
    seen = serving.observe(as_default)
    doubts = serving.traits_of(as_default, as_default.figures, serving.printed(seen.loads, values))
    width = core.width_of(doubts, ranges)
    gap = np.abs(serving.log_predicted(seen, values) - seen.log_measured)
    ratio = core.weighted_quantile(gap / width, one_voice(seen.source), core.COVERAGE)
    return float(np.clip(ratio, 1.0, WIDEST_RATIO))


def uses(measured: Measurements) -> NDArray[Any]:
    """Return what each figure is of: a bare engine, an engine's benchmark, a tuned server, one as it comes."""

    def use(row: ServingRow) -> str:
        d = row.deployment
        if d.server == "default":
            return "server as it comes"
        if d.engine in ("tuned", "wide"):
            return "tuned server"
        return "bare engine" if d.server == "offline" else "engine's benchmark"

    return np.array([use(measured.rows[figure.row]) for figure in measured.figures])


def sources(measured: Measurements) -> choice.Sources:
    """Return what terms are chosen from."""
    seen = observed(measured)
    return outside.to_choose_from(seen, PARAMETERS, seen.usable, uses(measured))
