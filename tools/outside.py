"""What a model says of sources that its fit has not seen, and the ranges that follow: one way for every model.

Training and serving differ in what a row holds and in the physics that predicts it. How sources are left out, how
terms are asked and how ranges are fitted and levelled is the same for both.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpucost.physics.calibration import FitProblem, Parameter, Scheme, Values
from gpucost.physics.columns import Flags, Floats, Integers
from tools import choice
from tools.ranges import fit_ranges, levelled, one_voice

PARTS = 5  # in which sources are left out for the ranges


class Model(Struct, frozen=True):
    """How the observations of one kind are fitted and predicted."""

    scheme: Scheme
    fit: Callable[[Any, Values | None], Values]  # to observations, the search begun at values
    log_predicted: Callable[[Any, Values], Floats]
    problem: Callable[[Any, Sequence[Parameter]], FitProblem]
    solve: Callable[[FitProblem], Values]
    soft: bool = False  # outliers are weighed by the solver's loss, not in the residuals of the fit


class Observed(Struct, frozen=True):
    """Observations with who made them, and which of them a fit may see."""

    model: Model
    seen: Any  # observations with `take` and `log_measured`
    source: NDArray[Any]
    usable: Flags

    def fitted(self, among: Flags, start: Values | None) -> Values:
        """Return a fit to the usable observations among some."""
        return self.model.fit(self.seen.take(np.flatnonzero(self.usable & among)), start)

    def logged(self, of: Integers, values: Values) -> Floats:
        """Return the logarithms of the predictions of some observations."""
        return self.model.log_predicted(self.seen.take(of), values)


Parts = Sequence[tuple[list[str], Values]]  # some of the sources, and a fit that has not seen them


def by_part(taught: Observed, start: Values | None = None) -> Parts:
    """Return the parts in which sources are left out, each with a fit to all others."""
    parts = [list(part) for part in choice.folds(taught.source.tolist(), PARTS)]
    return [(part, taught.fitted(~np.isin(taught.source, part), start)) for part in parts]


def left_out(observed: Observed, parts: Parts) -> Floats:
    """Return log predictions of all observations, by fits that have not seen their part of the sources."""
    logged = np.empty(len(observed.source))
    for part, values in parts:
        in_part = np.isin(observed.source, part)
        logged[in_part] = observed.logged(np.flatnonzero(in_part), values)
    return logged


def leave_one_out(
    observed: Observed,
    groups: NDArray[Any],
    taught: Observed,
    others: NDArray[Any],
    start: Values | None = None,
    speaks: Flags | None = None,
) -> Floats:
    """Predict each group with a fit to what of `taught` is of other groups; return log predictions.

    A group none of whose observations `speaks` (is usable, unless said otherwise) is predicted by one fit of all.
    """
    speaks = taught.usable if speaks is None else speaks
    logged = np.full(len(groups), np.nan)
    everything: Values | None = None  # the one fit of all, made when a group needs it
    for name in np.unique(groups):
        members = np.flatnonzero(groups == name)
        if speaks[others == name].any():
            values = taught.fitted(others != name, start)
        else:
            values = everything = everything or taught.fitted(np.ones(len(others), dtype=np.bool_), start)
        logged[members] = observed.logged(members, values)
    return logged


def to_choose_from(of: Observed, parameters: Sequence[Parameter], judging: Flags, use: NDArray[Any]) -> choice.Sources:
    """Return what terms are chosen from: the observations by source, and how they are fitted and predicted."""

    def residual(rows: Integers, values: Values) -> Floats:
        gap: Floats = of.logged(rows, values) - of.seen.log_measured[rows]
        return gap

    def problem(rows: Integers, subset: Sequence[Parameter]) -> FitProblem:
        return of.model.problem(of.seen.take(rows), subset)

    return choice.Sources(
        choice.candidates(parameters),
        of.source,
        of.usable,
        judging,
        problem,
        of.model.solve,
        residual,
        use,
        of.model.soft,
    )


def ranges_of(
    scheme: Scheme,
    residual: Floats,
    doubts: Mapping[str, Flags],
    source: NDArray[Any],
    first: Floats | None = None,
) -> dict[str, float]:
    """Fit the ranges to log(predicted ÷ measured) of sources not seen, and level them by first predictions.

    `first` holds the same of the ledger, NaN where it has none. What no row speaks of stays as it is believed.
    """
    present = {trait: mine for trait, mine in doubts.items() if mine.any() and trait not in scheme.assumed}
    fitted = fit_ranges(residual, present, one_voice(source), scheme.usual, scheme.sides)
    ranges = {**scheme.default_ranges, **fitted}
    has_first = np.zeros(len(residual), dtype=np.bool_) if first is None else np.isfinite(first)
    if first is None or not has_first.any():
        return ranges
    # sources left out by ourselves are kinder than strangers: the terms of the model were chosen in their view
    doubts_there = {trait: mine[has_first] for trait, mine in doubts.items()}
    return levelled(ranges, first[has_first], doubts_there, one_voice(source[has_first]), scheme.sides)
