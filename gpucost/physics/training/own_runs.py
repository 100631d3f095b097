"""Runs of one's own as a correction of predicted speeds: what a few measured steps say of others.

A Gaussian process over log(predicted ÷ measured): runs of one stack share a common part that fades slowly with the
distance of their configurations, and each kind of configuration has a part of its own that fades fast
(Rasmussen and Williams 2006, equation 2.25). How large the common part is follows from the runs: few small residuals
leave the prediction where it is, since the likelier scale counts for more than its probability (the mean of what may
be is wrong more often than right where most stacks need no correction). Steps that one script timed on one machine say
more: where they are off by different ratios, the parts of a step are (its products, element-wise passes, loss, update
…), each by its share of the time: log(measured ÷ predicted) = Σ share · δ (op. cit., section 2.7, a linear model beside
the process).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from gpucost.physics import transformer
from gpucost.physics.calibration import Run
from gpucost.physics.columns import Floats, Integers, LayoutColumns
from gpucost.physics.hardware import HardwareColumns
from gpucost.physics.training.cases import LORA, PARTS, Recipe, Step
from gpucost.physics.transformer import Shape

# Found on the residuals of published sources, each held out of the calibration in turn (benchmarks/few_shot.py).
_COMMON, _OWN, _NOISE = 0.20, 0.20, 0.11  # standard deviations in logarithms
_COMMON_LENGTH, _OWN_LENGTH = 3.0, 0.3  # distances in logarithms of sizes over which the parts fade
_COMMON_FADES, _OWN_FADES = 0.4, 1.7  # exponents per trait that differs
_PART = 0.5  # of δ, the logarithm by which one part's time is off: fades as what is common does
ONE_SCRIPT = "this machine's bench"  # the source of such steps
_SCALES = (0.05, 1.0, 2.0, 4.0)  # of the common part, with what is believed of each
_BELIEF = (0.95, 0.025, 0.015, 0.01)
_SHARPNESS = 2.0  # exponent of a scale's probability: runs off by no more than noise move no others, those far off do
_BEFORE = _COMMON**2 * float(np.square(_SCALES) @ _BELIEF) + _OWN**2 + _NOISE**2  # variance without any run
_NARROWEST_RATIO = 0.3  # steps of one stack differ from week to week, and node to node
MOST_RUNS = 200  # kept, the newest: more would slow every answer and say little more
_CHUNK_CASES = 4096  # corrected at a time
_SIZES = {  # by how much a difference in each counts
    "parameters": 1.0,
    "gpus": 1.0,
    "sequence_tokens": 1.0,
    "micro_batch_tokens": 1.0,
    "tensor": 1.0,
    "pipeline": 1.0,
}
_TRAITS = ("precision", "recompute", "family", "chip", "software", "sharded", "mixture", "adapters")


_COLUMNS = (*_SIZES, *_TRAITS, *PARTS)
PLAIN = len(_SIZES) + len(_TRAITS)  # of them ahead of the shares of a step's parts


class Alike(NamedTuple):
    """What configurations are compared by."""

    shape: Shape
    hardware: HardwareColumns
    layout: LayoutColumns
    recipe: Recipe
    software: Integers | int


class OwnRuns(Struct, frozen=True):
    """Configurations of one's own runs, and how far predictions were off: log(predicted ÷ measured)."""

    features: Floats  # runs × (_SIZES, _TRAITS, PARTS); no shares where a run is not of one script with others
    residual: Floats

    def __len__(self) -> int:
        return len(self.residual)


def features_of(alike: Alike, step: Step | None = None) -> Floats:
    """Return the sizes (in logarithms) and traits by which configurations are compared, and the shares of parts."""
    shape, hardware, layout, recipe, software = alike
    chip = np.round(hardware.half_tflops) + hardware.hbm_gb_per_s / 1e5  # one number that no two chips share
    sequence = recipe.sequence_tokens
    columns = (
        np.log(transformer.total_parameters(shape)),
        np.log(layout.gpus),
        np.log(sequence),
        np.log(layout.micro_batch * sequence),
        np.log(layout.tensor),
        np.log(layout.pipeline),
        layout.precision,
        layout.recompute,
        hardware.family,
        chip,
        software,
        layout.sharding > 0,
        shape.experts > 0,
        recipe.method >= LORA,
        *(getattr(step, name) / step.total_s if step else 0.0 for name in PARTS),
    )
    features: Floats = np.stack(np.broadcast_arrays(*(np.asarray(column, np.float64) for column in columns)), axis=1)
    return features


def covariances(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the common covariance of each pair of configurations, and the rest: own, and of parts by their shares."""
    # (configurations of a, of b): squared distance of their sizes, and how many traits differ
    distance, unlike = np.zeros((len(a), len(b))), np.zeros((len(a), len(b)))
    weights = list(_SIZES.values())
    columns = zip(a.T[:PLAIN], b.T[:PLAIN], strict=True)
    for column, (mine, theirs) in enumerate(columns):  # one at a time: runs may be many
        if column < len(_SIZES):
            distance += weights[column] * (mine[:, None] - theirs[None, :]) ** 2
        else:
            unlike += mine[:, None] != theirs[None, :]
    fading = np.exp(-_COMMON_FADES * unlike - distance / 2 / _COMMON_LENGTH**2)
    specific = _OWN**2 * np.exp(-_OWN_FADES * unlike - distance / 2 / _OWN_LENGTH**2)
    return _COMMON**2 * fading, specific + _PART**2 * fading * (a[:, PLAIN:] @ b[:, PLAIN:].T)


class Belief(NamedTuple):
    """What runs say: the weights of each in the two parts, and their covariance at the likely scale.

    Sets of runs may stand side by side, along the axes ahead of the last.
    """

    of_common: Floats
    of_own: Floats
    square: Floats  # mean square of the scale of the common part
    covariance: Floats

    def mean(self, common: Floats, specific: Floats) -> Floats:
        """Return the posterior mean where configurations have these covariances with the runs."""
        mean: Floats = (common @ self.of_common[..., None] + specific @ self.of_own[..., None])[..., 0]
        return mean

    def narrower(self, common: Floats, specific: Floats) -> Floats:
        """Return the standard deviation there ÷ that before the runs, at most 1."""
        square = self.square[..., None, None]
        across = square * common + specific
        explained = (across * np.linalg.solve(self.covariance, np.swapaxes(across, -1, -2)).swapaxes(-1, -2)).sum(-1)
        left = square[..., 0] * _COMMON**2 + _OWN**2 + _NOISE**2 - explained
        ratio: Floats = np.sqrt(np.clip(left / _BEFORE, _NARROWEST_RATIO**2, 1.0))
        return ratio


def believed(common: Floats, specific: Floats, residual: Floats) -> Belief:
    """Weigh the scales of the common part by how well each explains the runs, whose covariances are given."""
    # (…, scales, runs, runs): the covariance of the runs under each scale of the common part, as its Cholesky factor
    squares, noise = np.square(_SCALES), _NOISE**2 * np.eye(residual.shape[-1])
    root = np.linalg.cholesky(squares[:, None, None] * common[..., None, :, :] + (specific + noise)[..., None, :, :])
    off = residual[..., None, :, None]
    weights = np.linalg.solve(np.swapaxes(root, -1, -2), np.linalg.solve(root, off))
    explained = (off * weights).sum((-2, -1)) / 2
    # log of belief × likelihood (equation 2.30, less what all scales share); the determinant is that of the factor,
    # squared
    evidence = np.log(_BELIEF) - explained - np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(-1)
    odds = np.exp(evidence - evidence.max(-1, keepdims=True))
    shares = (odds**_SHARPNESS / (odds**_SHARPNESS).sum(-1, keepdims=True))[..., None, :]
    # the width of a range takes the plain mean over the scales
    square = odds @ squares / odds.sum(-1)
    covariance = square[..., None, None] * common + specific + noise
    each = weights[..., 0]
    return Belief(((shares * squares) @ each)[..., 0, :], (shares @ each)[..., 0, :], square, covariance)


def correction(runs: OwnRuns, features: Floats) -> Floats:
    """Return what is to be taken from log speeds: the posterior mean, over the scales of the common part.

    One run that was predicted a third too fast, seen again: most of it is believed; a run predicted within the noise
    moves nothing much.

    >>> here = np.zeros((1, PLAIN))
    >>> [round(float(correction(OwnRuns(here, np.array([off])), here)[0]), 2) for off in (0.3, 0.02)]
    [0.23, 0.02]

    Two steps of one script, one all products, one half of them element-wise and that half a fifth too fast: of a third
    step, all element-wise and of another size, more than half of the fifth is foreseen.

    >>> shares = np.zeros((3, PLAIN + 2))
    >>> shares[:, PLAIN:], shares[:, 0] = [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], [0.0, 0.0, 2.0]
    >>> bool(0.1 < correction(OwnRuns(shares[:2], np.array([0.0, 0.1])), shares[2:])[0] < 0.2)
    True
    """
    belief = believed(*covariances(runs.features, runs.features), runs.residual)
    starts = range(0, max(len(features), 1), _CHUNK_CASES)
    across = (covariances(features[start : start + _CHUNK_CASES], runs.features) for start in starts)
    return np.concatenate([belief.mean(common, specific) for common, specific in across])


def closeness(runs: OwnRuns, features: Floats) -> Floats:
    """Return the ratio by which runs narrow ranges: standard deviation after them ÷ before (equation 2.26), at most 1.

    What is known of parts is left out. A configuration that was run is known nearly to its noise; far from all runs
    little is gained.

    >>> here = np.zeros((1, PLAIN))
    >>> far = here + 20.0
    >>> runs = OwnRuns(here, np.array([0.02]))
    >>> [round(float(closeness(runs, there)[0]), 2) for there in (here, far)]
    [0.59, 0.95]
    """
    plain = runs.features[:, :PLAIN]  # without the shares, what is known of a step's parts adds nothing
    belief = believed(*covariances(plain, plain), runs.residual)
    starts = range(0, max(len(features), 1), _CHUNK_CASES)
    across = (covariances(features[start : start + _CHUNK_CASES, :PLAIN], plain) for start in starts)
    return np.concatenate([belief.narrower(common, specific) for common, specific in across])


# As rows of a calibration table ---------------------------------------------------------------------------------------


def write(features: Floats) -> str:
    """Write one run's configuration as the text that `_read` takes.

    >>> _read([write(np.arange(15.0)), "gpus 2"])[:, [1, 13, 14]].tolist()
    [[1.0, 13.0, 14.0], [2.0, 0.0, 0.0]]
    """
    pairs = enumerate(zip(_COLUMNS, features, strict=False))
    return "; ".join(f"{name} {value:.9g}" for index, (name, value) in pairs if value or index < PLAIN)


def _read(texts: Sequence[str]) -> Floats:
    """Read configurations back; what one does not name is 0."""
    rows = [
        {name: float(value) for name, _, value in (part.strip().rpartition(" ") for part in text.split(";"))}
        for text in texts
    ]
    values = [[row.get(name, 0.0) for name in _COLUMNS] for row in rows]
    return np.array(values, np.float64).reshape(len(rows), len(_COLUMNS))


@lru_cache(maxsize=8)
def runs_of(runs: tuple[Run, ...]) -> OwnRuns:
    """Return the runs of a calibration as arrays."""
    return OwnRuns(_read([run.configuration for run in runs]), np.log([run.ratio for run in runs]))


def corrected(step: Step, runs: tuple[Run, ...], alike: Alike) -> Step:
    """Return steps as runs of one's own correct them: every part takes longer by the same ratio."""
    if not runs:
        return step
    with np.errstate(all="ignore"):  # rows without a layout
        longer = np.exp(correction(runs_of(runs), features_of(alike, step)))
    slower = (*PARTS, "total_s")
    scaled = {
        name: getattr(step, name) * longer if name in slower else getattr(step, name) / longer for name in step.names()
    }
    return Step(**scaled)


def narrowing(runs: tuple[Run, ...], alike: Alike) -> Floats:
    """Return the ratio by which runs of one's own narrow the range of each case; 1 without any."""
    if not runs:
        return np.ones(1)
    with np.errstate(all="ignore"):  # rows without a layout
        return closeness(runs_of(runs), features_of(alike))
