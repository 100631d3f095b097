"""Choosing the terms of the model without looking: what one half of the sources proposes, the other half judges.

A term is a parameter, or all of one kind (those of every family, of every class). The sources are split in halves by a
seeded draw. The model is fitted to one half; then, around that fit, without a term, its parameters held at what was
believed before any fit; the other half says which of the two predicts it better. A term stays if sources that took no
part in fitting it err less by it, by at least a penalty for each of its parameters. Every class of use (a bare engine,
an engine's own benchmark, a server; one's own kind of training) has one voice in that, whatever its rows. What does not
pay is dropped together and asked again one by one, for terms may share their work. All of it can be repeated without
some sources, to judge the choosing itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpucost.physics.calibration import STEP, FitProblem, Parameter, Values
from gpucost.physics.columns import Flags, Floats, Integers

_PENALTY = 0.0003  # of the mean error's logarithm, by which each parameter must lessen it outside its proposal
_MOST_VOICE = 25  # rows of a source beyond which more of them add nothing to its say
SPLITS, SEED = 6, 20261124  # halvings, and what draws them: another seed is another choice


class Sources(Struct, frozen=True):
    """What is chosen from: observations by source, and how they are fitted and predicted."""

    parameters: Sequence[Parameter]
    source: NDArray[Any]
    usable: Flags  # rows that a fit may see
    judging: Flags  # rows by which a fit is judged
    problem: Callable[[Integers, Sequence[Parameter]], FitProblem]
    solve: Callable[[FitProblem], Values]
    residual: Callable[[Integers, Values], Floats]  # log(predicted ÷ measured) of rows
    use: NDArray[Any]  # of each row: what it is a measurement of; every class of use has one voice
    soft: bool = False  # outliers are weighed by the solver's loss, not in the residuals of the fit

    @property
    def terms(self) -> dict[str, list[str]]:
        """The fitted parameters by term: all of one kind together."""
        terms: dict[str, list[str]] = {}
        for parameter in self.parameters:
            if parameter.fitted:
                terms.setdefault(parameter.name.partition(".")[0], []).append(parameter.name)
        return terms


class Term(Struct, frozen=True):
    """What a term earns on sources outside its proposal."""

    name: str
    parameters: int
    gain: float  # by which it lessens the mean error's logarithm there
    kept: bool


def halves(sources: Iterable[str], seed: int, splits: int = SPLITS) -> list[tuple[set[str], set[str]]]:
    """Return seeded splits of sources into halves, each half once proposing and once judging.

    >>> [sorted(first | second) for first, second in halves("abcd", 1, splits=1)]
    [['a', 'b', 'c', 'd'], ['a', 'b', 'c', 'd']]
    """
    names, dice = sorted(set(sources)), np.random.default_rng(seed)
    pairs = []
    for _ in range(splits):
        order = dice.permutation(len(names))
        first = {names[place] for place in order[::2]}
        second = set(names) - first
        pairs += [(first, second), (second, first)]
    return pairs


def error(residual: Floats, source: NDArray[Any]) -> float:
    """Return the mean over sources of the mean |log(predicted ÷ measured)|, each by the root of its rows.

    >>> round(error(np.array([0.1, -0.1, 0.3]), np.array(["a", "a", "b"])), 3)  # (√2 · 0.1 + 0.3) ÷ (√2 + 1)
    0.183
    """
    _, inverse, counts = np.unique(source, return_inverse=True, return_counts=True)
    each = np.bincount(inverse, np.abs(residual)) / counts
    weight = np.sqrt(np.minimum(counts, _MOST_VOICE))
    return float(np.sum(each * weight) / np.sum(weight))


def error_by_use(residual: Floats, source: NDArray[Any], use: NDArray[Any]) -> float:
    """Return the mean of the errors of the classes of use: a server of a thousand rows cannot outvote bare engines.

    >>> source, use = np.array(["a", "a", "b"]), np.array(["bare", "bare", "served"])
    >>> round(error_by_use(np.array([0.1, -0.1, 0.3]), source, use), 3)
    0.2
    """
    return float(np.mean([error(residual[use == kind], source[use == kind]) for kind in np.unique(use)]))


def candidates(parameters: Sequence[Parameter]) -> list[Parameter]:
    """Return every parameter as one that may be fitted, those too that are constants at present."""
    return [parameter._replace(fitted=True) for parameter in parameters]


def pinned(parameters: Sequence[Parameter], names: Iterable[str]) -> list[Parameter]:
    """Return the parameters with some of them held at their priors."""
    fixed = set(names)
    return [parameter._replace(fitted=parameter.fitted and parameter.name not in fixed) for parameter in parameters]


class Split:
    """One split: a fit of the whole model to the proposing half, and how both halves move with its parameters.

    Without a term the model is not fitted anew, which would take hours for all of them: around the fit residuals are
    taken as linear in the parameters, so that a term costs one least-squares problem.
    """

    def __init__(self, of: Sources, among: Flags, proposing: set[str], judging: set[str]) -> None:
        fitted = np.flatnonzero(among & of.usable & np.isin(of.source, list(proposing)))
        judging_rows = np.flatnonzero(among & of.judging & np.isin(of.source, list(judging)))
        problem = of.problem(fitted, of.parameters)
        values = of.solve(problem)
        self.names = [problem.names[place] for place in problem.free]
        # parameters in units of their priors: 0 is the prior, where a term that goes is held
        self.z = np.array(
            [
                (np.log(values[problem.names[place]]) - problem.middle[place]) / problem.spread[place]
                for place in problem.free
            ]
        )
        cost, slopes = problem.cost(self.z), problem.slopes(self.z)
        # the root of the weight that the solver's loss (soft L1) gives a residual: outliers shall not pull this model
        robust = (1 + cost**2) ** -0.25 if of.soft else np.ones(len(cost))
        self.cost, self.slopes = cost * robust, slopes * robust[:, None]
        self.source, self.use = of.source[judging_rows], of.use[judging_rows]
        self.residual = of.residual(judging_rows, values)
        # how each residual of the judging half moves with each parameter, by a small step of one at a time
        self.moves = np.empty((len(judging_rows), len(self.z)))
        for column in range(len(self.z)):
            ahead = self.z.copy()
            ahead[column] += STEP
            self.moves[:, column] = (of.residual(judging_rows, problem.values(ahead)) - self.residual) / STEP

    def error(self, fixed: set[str]) -> float:
        """Return the error of the judging half where some parameters are held and the others fitted around them."""
        at_prior = np.array([name in fixed for name in self.names], dtype=np.bool_)
        moved = np.where(at_prior, -self.z, 0.0)
        left = self.cost + self.slopes @ moved
        if not at_prior.all():  # the others take over what the held ones explained
            moved[~at_prior] = np.linalg.lstsq(self.slopes[:, ~at_prior], -left, rcond=None)[0]
        return error_by_use(self.residual + self.moves @ moved, self.source, self.use)


def gains(
    splits: Sequence[Split], terms: Mapping[str, list[str]], fixed: set[str], names: Sequence[str], *, adding: bool
) -> dict[str, float]:
    """Return what each named term earns beside `fixed` parameters: added to the model, or left in it."""
    earned = dict.fromkeys(names, 0.0)
    for split in splits:
        base = split.error(fixed)
        for name in names:
            other = split.error(fixed - set(terms[name]) if adding else fixed | set(terms[name]))
            earned[name] += (base - other if adding else other - base) / len(splits)
    return earned


def choose(
    of: Sources, among: Flags | None = None, *, seed: int = SEED, splits: int = SPLITS, penalty: float = _PENALTY
) -> list[Term]:
    """Return every term with what it earns outside its proposal, and whether it stays.

    First each term is left out of the whole model; those that do not pay go together. Then each that went is added to
    what is left, and comes back where it pays there.
    """
    among = np.ones(len(of.source), dtype=np.bool_) if among is None else among
    split_fits = [Split(of, among, *half) for half in halves(of.source[among & of.usable].tolist(), seed, splits)]
    whole = of.problem(np.flatnonzero(among & of.usable), of.parameters)
    free = {whole.names[place] for place in whole.free}  # what no observation touches costs nothing
    terms = {term: [name for name in names if name in free] for term, names in of.terms.items()}
    terms = {term: names for term, names in terms.items() if names}
    # each alone in the whole model, then each that went in what is left: two terms that share their work both look
    # worthless at first, and one of them comes back
    alone = gains(split_fits, terms, set(), list(terms), adding=False)
    gone = [name for name, gain in alone.items() if gain < penalty * len(terms[name])]
    fixed = {name for term in gone for name in terms[term]}
    again = gains(split_fits, terms, fixed, gone, adding=True)
    back = {name for name, gain in again.items() if gain >= penalty * len(terms[name])}
    return [
        Term(name, len(names), again.get(name, alone[name]), name not in again or name in back)
        for name, names in terms.items()
    ]


def folds(sources: Iterable[str], count: int, seed: int = SEED) -> list[set[str]]:
    """Return the sources in a few parts, drawn by a seed."""
    names = sorted(set(sources))
    order = np.random.default_rng(seed).permutation(len(names))
    return [{names[place] for place in order[fold::count]} for fold in range(count)]


def unseen(of: Sources, without: set[str], *, seed: int = SEED, splits: int = SPLITS) -> tuple[Integers, Floats]:
    """Return the rows of some sources and their residuals, by terms chosen and a fit made without them."""
    among = ~np.isin(of.source, list(without))
    staying = {term.name for term in choose(of, among, seed=seed, splits=splits) if term.kept}
    fixed = {name for term, names in of.terms.items() if term not in staying for name in names}
    values = of.solve(of.problem(np.flatnonzero(among & of.usable), pinned(of.parameters, fixed)))
    rows = np.flatnonzero(~among)
    return rows, of.residual(rows, values)
