"""Choosing the terms of the model without looking: what one half of the sources proposes, the other half judges.

A term is a parameter, or all of one kind (those of every family, of every class). The sources are split in halves by a
seeded draw. On one half the model is fitted with a term and without it, its parameters then held at what was believed
before any fit; the other half says which of the two predicts it better. A term stays if sources that took no part in
fitting it err less by it, by at least a penalty for each of its parameters. Terms that share their work are dropped
together and asked again one by one. All of it may be repeated without some sources, to judge the choosing itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.physics.calibration import Parameter, Values
from gpucost.physics.columns import Flags, Floats, Integers

PENALTY = 0.0003  # of the mean error's logarithm, by which each parameter must lessen it outside its proposal
MOST_VOICE = 25  # rows of a source beyond which more of them add nothing to its say
SPLITS, SEED = 3, 20261124

Fit = Callable[[Integers, Sequence[Parameter], Values | None], Values]  # rows, parameters, start -> values
Predict = Callable[[Integers, Values], Floats]  # rows, values -> log(predicted ÷ measured)


@dataclass(frozen=True)
class Problem:
    """What is chosen from: observations by source, how they are fitted, and how they are predicted."""

    parameters: Sequence[Parameter]
    source: NDArray[Any]
    usable: Flags  # rows that a fit may see
    judging: Flags  # rows by which a fit is judged
    fit: Fit
    predict: Predict

    @property
    def terms(self) -> dict[str, list[str]]:
        """The parameters by term: all of one kind together."""
        found: dict[str, list[str]] = {}
        for one in self.parameters:
            if one.fitted:
                found.setdefault(one.name.partition(".")[0], []).append(one.name)
        return found


@dataclass(frozen=True)
class Term:
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
    found = []
    for _ in range(splits):
        order = dice.permutation(len(names))
        first = {names[place] for place in order[::2]}
        rest = set(names) - first
        found += [(first, rest), (rest, first)]
    return found


def error(residual: Floats, source: NDArray[Any]) -> float:
    """Return the mean over sources of the mean |log(predicted ÷ measured)|, each by the root of its rows."""
    _, inverse, counts = np.unique(source, return_inverse=True, return_counts=True)
    each = np.bincount(inverse, np.abs(residual)) / counts
    weight = np.sqrt(np.minimum(counts, MOST_VOICE))
    return float(np.sum(each * weight) / np.sum(weight))


def pinned(parameters: Sequence[Parameter], names: Iterable[str]) -> list[Parameter]:
    """Return the parameters with some of them held at what was believed of them."""
    held = set(names)
    return [one._replace(fitted=one.fitted and one.name not in held) for one in parameters]


class _Split:
    """One split: the rows of both halves, and the fit of the whole model to the proposing one."""

    def __init__(self, problem: Problem, among: Flags, proposing: set[str], judging: set[str]) -> None:
        self.problem = problem
        here = among & np.isin(problem.source, list(proposing))
        self.taught = np.flatnonzero(here & problem.usable)
        self.asked = np.flatnonzero(among & problem.judging & np.isin(problem.source, list(judging)))
        self.start: Values | None = None

    def error(self, held: Iterable[str]) -> float:
        """Return the error of the judging half by a fit to the proposing one, some parameters held."""
        parameters = pinned(self.problem.parameters, held)
        values = self.problem.fit(self.taught, parameters, self.start)
        self.start = self.start or values
        return error(self.problem.predict(self.asked, values), self.problem.source[self.asked])


def gains(
    splits: Sequence[_Split], terms: Mapping[str, list[str]], held: set[str], asked: Sequence[str], adding: bool
) -> dict[str, float]:
    """Return what each asked term earns: dropped from the model, or added to it, with `held` parameters held."""
    found = {name: 0.0 for name in asked}
    for split in splits:
        base = split.error(held)
        for name in asked:
            changed = split.error(held - set(terms[name]) if adding else held | set(terms[name]))
            found[name] += (base - changed if adding else changed - base) / len(splits)
    return found


def choose(
    problem: Problem, among: Flags | None = None, *, seed: int = SEED, splits: int = SPLITS, penalty: float = PENALTY
) -> list[Term]:
    """Return every term with what it earns outside its proposal, and whether it stays.

    First each term is left out of the whole model; those that do not pay go together. Then each that went is added to
    what is left, and comes back where it pays there.
    """
    among = np.ones(len(problem.source), dtype=np.bool_) if among is None else among
    names = problem.source[among & problem.usable]
    parts = [_Split(problem, among, *half) for half in halves(names.tolist(), seed, splits)]
    terms = problem.terms
    alone = gains(parts, terms, set(), list(terms), adding=False)
    gone = [name for name, gain in alone.items() if gain < penalty * len(terms[name])]
    held = {name for term in gone for name in terms[term]}
    again = gains(parts, terms, held, gone, adding=True)
    back = {name for name, gain in again.items() if gain >= penalty * len(terms[name])}
    return [
        Term(name, len(of), again.get(name, alone[name]), name not in again or name in back)
        for name, of in terms.items()
    ]


def held_by(terms: Sequence[Term], problem: Problem) -> set[str]:
    """Return the parameters that a choice holds at what was believed of them."""
    return {name for term in terms if not term.kept for name in problem.terms[term.name]}


def folds(sources: Iterable[str], count: int, seed: int = SEED) -> list[set[str]]:
    """Return the sources in a few parts, drawn by a seed."""
    names = sorted(set(sources))
    order = np.random.default_rng(seed).permutation(len(names))
    return [{names[place] for place in order[part::count]} for part in range(count)]


def unseen(problem: Problem, without: set[str], *, seed: int = SEED, splits: int = SPLITS) -> tuple[Integers, Floats]:
    """Return the rows of some sources and their residuals, by terms chosen and a fit made without them."""
    among = ~np.isin(problem.source, list(without))
    held = held_by(choose(problem, among, seed=seed, splits=splits), problem)
    values = problem.fit(np.flatnonzero(among & problem.usable), pinned(problem.parameters, held), None)
    rows = np.flatnonzero(~among)
    return rows, problem.predict(rows, values)
