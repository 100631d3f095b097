"""The ranges that are fitted to what a model says of sources that its fit has not seen."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.physics.calibration import FASTER, SLOWER, Values, weighted_quantile, width_of
from gpucost.physics.columns import Flags, Floats

CLASS_COVERAGE, CLASS_ROWS = 0.75, 10  # that the ranges of each class of so many rows hold at least
LEAST_COVERAGE = 0.68  # of the ledger's first predictions, made before their faults were mended, that ranges must hold
WIDEST_RATIO = 2.5  # by which a trait may widen a range
_SOURCE_SPREAD = 0.138  # standard deviation of what sources have of their own: software, tuning, network, reporting
_NARROWEST = 1.2816 * _SOURCE_SPREAD  # half a range, in logarithms, of what somebody else measures: 80 % of that alone
_OUTSIDE = 10.0  # what lies beyond an end of an 80 % range counts against its width: 2 ÷ (1 − 0.8)
_BLUNT = 0.02  # of a logarithm over which a range's end is rounded off while it is fitted


def one_voice(source: NDArray[Any]) -> Floats:
    """Return the weight of each observation in ranges: 1/√(observations of its source)."""
    _, inverse, counts = np.unique(source, return_inverse=True, return_counts=True)
    return 1 / np.sqrt(counts[inverse].astype(np.float64))


def fit_ranges(
    residual: Floats, traits: Mapping[str, Flags], weight: Floats, usual: float, sides: Sequence[str] = ("",)
) -> dict[str, float]:
    """Fit the widths to log(predicted ÷ measured) of sources that the fit had not seen, by their interval score.

    Score: width + 10 · what lies outside (Gneiting and Raftery 2007, Strictly Proper Scoring Rules, section 6.2). Each
    side has its base, never narrower than what a source's own effect asks for; a trait's ratio is one for all sides,
    between 1 and 2.5 by a prior around e^usual. Traits of ten rows or more grow until they hold three quarters of
    their own.
    """
    from scipy.optimize import minimize

    active, count = np.array([np.asarray(mine, dtype=np.float64) for mine in traits.values()]), len(sides)
    beyond = np.array([_beyond(residual, side) for side in sides])

    # x: the logarithm of each side's base, then of each trait's ratio, so that a width is a sum in the exponent
    def loss(x: Floats) -> float:
        scale = x[count:] @ active
        score = 0.0
        for side in range(count):
            width = np.exp(x[side] + scale)
            # max(beyond − width, 0), with its corner rounded off: the solver follows gradients
            past = _BLUNT * np.logaddexp(0.0, (beyond[side] - width) / _BLUNT)
            both = 2.0 if count == 1 else 1.0  # one width stands for both sides of a range
            score = score + both * width + _OUTSIDE * past
        # the prior of a ratio: a few rows of a trait shall not say more than 0.3 in logarithms against it
        return float(np.sum(weight * score) + 0.5 * np.sum(((x[count:] - usual) / 0.3) ** 2))

    bounds = [(float(np.log(_NARROWEST)), 1.0)] * count + [(0.0, float(np.log(WIDEST_RATIO)))] * len(traits)
    start = np.array([np.log(_NARROWEST) + 0.1] * count + [usual] * len(traits))
    x = minimize(loss, start, bounds=bounds, method="L-BFGS-B").x
    ratios = dict(zip(traits, np.exp(x[count:]).tolist(), strict=True))
    widths: dict[str, float] = {}
    for side, base in zip(sides, np.exp(x[:count]).tolist(), strict=True):
        widths |= {"base" + side: base, **{name + side: ratio for name, ratio in ratios.items()}}
    # the score is a mean over all rows: a small class may lie outside its range for the good of the others
    for name, applies in traits.items():
        mine = np.asarray(applies) > 0
        if mine.sum() < CLASS_ROWS:
            continue
        needed = np.max([_beyond(residual, side) / width_of(traits, widths, side) for side in sides], axis=0)[mine]
        grown = max(1.0, weighted_quantile(needed, weight[mine], CLASS_COVERAGE))
        widths |= {name + side: min(widths[name + side] * grown, WIDEST_RATIO) for side in sides}
    return widths


def _beyond(residual: Floats, side: str) -> Floats:
    """Return how far log(predicted ÷ measured) reaches to a side: below a prediction lies what is slower."""
    return {SLOWER: residual, FASTER: -residual}.get(side, np.abs(residual))


def levelled(
    ranges: Values, residual: Floats, traits: Mapping[str, Flags], weight: Floats, sides: Sequence[str] = ("",)
) -> dict[str, float]:
    """Return ranges widened until they hold the least share of first predictions; they are never narrowed by it."""
    beyond = [_beyond(residual, side) / width_of(traits, ranges, side) for side in sides]
    level = max(1.0, weighted_quantile(np.max(beyond, axis=0), weight, LEAST_COVERAGE))
    return {name: value * (level if name.startswith("base") else 1.0) for name, value in ranges.items()}
