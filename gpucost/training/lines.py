"""Clusters and the offers on them as lines that runs meet: which lines can win, and which one does."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.formula.arrays import Columns, evaluate_columns, inputs_of, untouched
from gpucost.money.training_bill import CONSTANTS, INPUT_NAMES, LINES
from gpucost.training.request import TrainingRequest
from gpucost.units import GB, SECONDS_PER_HOUR

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

PRICED = (
    "days",
    "days_low",
    "days_high",
    "gpu_hours",
    "cost_usd",
    "cost_low_usd",
    "cost_high_usd",
    "usd_per_mtok",
    "energy_kwh",
    "kgco2e",
)
NUMBERS = ("gpus", "nodes", "tokens_per_s_per_gpu", "mfu_fraction", *PRICED)
MISSED = (
    "every run is longer than what is sold at a stretch",
    "no offer meets the deadline",
    "no offer keeps the budget",
)
PROMISING = 4  # lines that every run meets first
_GOALS = {"cost": "cost_usd", "time": "days", "carbon": "kgco2e"}
_OF_RUNS = ("tokens", "evaluation_fraction", "experiments_fraction", "dataset_gb")
OF_CLUSTERS = untouched(LINES, _OF_RUNS)
_BY_RUN = tuple(line for line in LINES if line not in OF_CLUSTERS)
_PRICES = ("usd_per_gpu_hour", "storage_usd_per_gb_month", "egress_usd_per_gb")  # all else equal, lower is cheaper
_CHEAPER = 1e-4  # share of a price by which one beats another surely,
SMALL_USD = 500.0  # unless the cost is so small that cents decide
ROUNDING_USD = 0.1  # more than the cents that rounding the lines of a bill can take away
_DISTINCT_AT_ONCE = 1 << 22
_PAIRS_AT_ONCE = 1 << 18


class Cluster(NamedTuple):
    """The lines of one cluster: every offer on which it can be an option, oldest prices last; none, and the reason."""

    request: TrainingRequest
    offer: Indices  # into the sweeper's offers
    factors: Columns
    longest_hours: Floats
    mfu_fraction: Floats
    bytes_per_token: float  # of the dataset
    fewest_tokens: float  # runs of fewer are searched one by one: their batch shrinks, or their size is free
    reason: int  # into the sweeper's reasons
    contenders: Indices  # lines that another one does not beat whatever the run, the most promising first

    def bound(self, tried: Indices) -> float:
        """Return the least USD per token that a contender beyond those tried may cost; else infinity."""
        rest = self.contenders[len(tried) :] if len(tried) < len(self.contenders) else self.contenders[:0]
        if not len(rest) or self.request.optimize != "cost":
            return -np.inf if len(rest) else np.inf
        usd_per_hour, tokens_per_s = self.factors.usd_per_gpu_hour, self.factors.tokens_per_s_per_gpu
        return float(usd_per_hour[rest[0]] / tokens_per_s[rest[0]] / SECONDS_PER_HOUR)  # the bill is never less


class Found(NamedTuple):
    """The first option of each run: its offer (−1 for none), its numbers, and the reason where there is none."""

    offer: Indices
    numbers: Columns
    reason: Indices  # into the sweeper's reasons; 0 is none

    @classmethod
    def of(cls, count: int) -> "Found":
        """Return as many runs without an option."""
        numbers = Columns({name: np.full(count, np.nan) for name in NUMBERS})
        return cls(np.full(count, -1, np.int64), numbers, np.zeros(count, np.int64))

    def put_numbers(self, index: Indices, lines: "Lines", chosen: Indices, runs: Columns) -> None:
        """Work out the whole answer of the lines chosen for the runs at `index`."""
        factors = lines.factors_of(chosen, runs, (*INPUT_NAMES, *(line.name for line in OF_CLUSTERS)))
        priced = evaluate_columns(_BY_RUN, factors, CONSTANTS, tuple(name for name in PRICED if name not in factors))
        given = {**factors, **priced, "mfu_fraction": lines.mfu_fraction[chosen], "gpus": factors.gpus}
        self.offer[index] = lines.offer[chosen]
        for name, column in self.numbers.items():
            column[index] = given[name]

    def put(self, index: Indices, other: "Found") -> None:
        """Take over the runs at `index`."""
        self.offer[index], self.reason[index] = other.offer, other.reason
        for name, column in self.numbers.items():
            column[index] = other.numbers[name]


class Lines(NamedTuple):
    """The lines of several clusters end to end; those of cluster i begin at `start[i]`."""

    start: Indices
    counts: Indices
    order: Indices  # of a line in its cluster, which decides between equals
    offer: Indices
    factors: Columns
    longest_hours: Floats
    mfu_fraction: Floats
    bytes_per_token: Floats

    @classmethod
    def of(cls, clusters: Sequence[Cluster], kept: Sequence[Indices]) -> "Lines":
        """Join the lines of clusters that are to be kept."""
        count = np.array([len(lines) for lines in kept], np.int64)

        def joined(columns: Iterable[NDArray[Any]]) -> NDArray[Any]:
            return np.concatenate([column[lines] for column, lines in zip(columns, kept, strict=True)])

        return cls(
            np.cumsum(count) - count,
            count,
            np.concatenate(kept),
            joined(one.offer for one in clusters),
            Columns({name: joined(one.factors[name] for one in clusters) for name in clusters[0].factors}),
            joined(one.longest_hours for one in clusters),
            joined(one.mfu_fraction for one in clusters),
            np.repeat([one.bytes_per_token for one in clusters], count),
        )

    def factors_of(self, line: Indices, runs: Columns, names: Iterable[str]) -> Columns:
        """Return what the bills of these lines follow from, each for its run."""
        own = {name: self.factors[name][line] for name in names if name not in _OF_RUNS and name in self.factors}
        return Columns(
            **own,
            tokens=runs.tokens * runs.epochs,
            evaluation_fraction=runs.evaluation_fraction,
            experiments_fraction=runs.experiments_fraction,
            dataset_gb=self.bytes_per_token[line] * runs.tokens / GB,
        )


def meet(lines: Lines, clusters: Sequence[Cluster], own: Indices, runs: Columns, index: Indices, found: Found) -> None:
    """Have runs meet lines of their clusters, and put the first option of each into `found` at `index`."""
    count = lines.counts[own]
    start = np.cumsum(count) - count
    run = np.repeat(np.arange(len(own)), count)
    line = np.arange(len(run)) + np.repeat(lines.start[own] - start, count)
    goal = np.array([one.request.optimize for one in clusters], object)[own]
    first, missed = _first(lines, line, run, start, runs, goal)
    found.reason[index] = missed
    met = missed == 0
    if met.any():
        found.put_numbers(index[met], lines, line[first[met]], Columns({k: v[met] for k, v in runs.items()}))


def _first(
    lines: Lines, line: Indices, run: Indices, start: Indices, runs: Columns, goal: NDArray[np.object_]
) -> tuple[Indices, Indices]:
    """Return the first option of every run and why there is none: 0 there is, else 1 + the place in `MISSED`.

    `line` and `run` name the lines and runs that meet, run by run from `start` on.
    """
    wanted = _wanted(set(goal))
    met = Columns({name: column[run] for name, column in runs.items()})
    factors = lines.factors_of(line, met, inputs_of(_BY_RUN, wanted))
    priced = evaluate_columns(_BY_RUN, factors, CONSTANTS, wanted)
    checks = (
        np.isfinite(priced.cost_usd) & (priced.paid_hours <= lines.longest_hours[line]),
        priced.days <= met.deadline_days,
        priced.cost_usd <= met.max_cost_usd,
    )
    ok = np.ones(len(line), bool)
    missed = np.zeros(len(start), np.int64)
    for number, check in enumerate(checks, 1):
        ok &= check
        missed = np.where((missed == 0) & ~np.logical_or.reduceat(ok, start), number, missed)
    size = np.diff(start, append=len(line))
    for key in (_by_goal(goal, run, priced), priced.cost_usd, priced.days, lines.order[line]):
        best = np.minimum.reduceat(np.where(ok, key, np.inf), start)
        ok &= key == np.repeat(best, size)
    place = np.where(ok, np.arange(len(line)), len(line))
    return np.minimum.reduceat(place, start), missed


def _wanted(goals: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({"paid_hours", "days", "cost_usd", *(_GOALS[word] for word in goals)}))


def _by_goal(goal: NDArray[np.object_], run: Indices, priced: Columns) -> Floats:
    """Return what each run is ranked by; a carbon that is not known comes last."""
    words = set(goal)
    if len(words) == 1:
        return np.nan_to_num(priced[_GOALS[words.pop()]], nan=np.inf, posinf=np.inf)
    asked = goal[run]
    ranked = np.select([asked == word for word in words], [priced[_GOALS[word]] for word in words])
    return np.nan_to_num(ranked, nan=np.inf, posinf=np.inf)


def contenders_of(factors: Columns, longest_hours: Floats, goal: str) -> Indices:
    """Return the lines that no other one beats whatever the run: equal but for its prices, and none of them higher.

    Of equals the first stays. A later line beats an earlier one only by a price that no rounding to cents makes equal.
    """
    same = [name for name in inputs_of(LINES, _wanted({goal})) if name not in _PRICES and name in factors]
    _, group = combined(
        [np.unique(factors[name], return_inverse=True)[1] for name in same]
        + [np.unique(longest_hours, return_inverse=True)[1]],
        len(longest_hours),
    )
    beaten = np.zeros(len(group), bool)
    hour = factors[_PRICES[0]]
    for line, rival in _rivals(group):
        better = (rival < line) | (hour[rival] <= hour[line] * (1 - _CHEAPER))
        for name in _PRICES:
            better &= factors[name][rival] <= factors[name][line]
        beaten[line[better]] = True
    kept = np.flatnonzero(~beaten)
    ahead = factors.usd_per_gpu_hour[kept] / factors.tokens_per_s_per_gpu[kept]
    return kept[np.argsort(ahead, kind="stable")]


def _rivals(group: Indices) -> Iterator[tuple[Indices, Indices]]:
    """Yield all pairs of lines of one group, some at a time.

    >>> [(line.tolist(), rival.tolist()) for line, rival in _rivals(np.array([0, 1, 0]))]
    [([0, 0, 1, 2, 2], [0, 2, 1, 0, 2])]
    """
    members, size = np.argsort(group, kind="stable"), np.bincount(group)
    first, many = (np.cumsum(size) - size)[group], size[group]
    for part in np.split(np.arange(len(group)), np.flatnonzero(np.diff(np.cumsum(many) // _PAIRS_AT_ONCE)) + 1):
        line = np.repeat(part, many[part])
        place = np.arange(len(line)) - np.repeat(np.cumsum(many[part]) - many[part], many[part])
        yield line, members[first[line] + place]


def combined(columns: Sequence[Indices], count: int) -> tuple[Indices, Indices]:
    """Return the distinct rows of columns of numbers, and which of them each row is.

    >>> distinct, place = combined([np.array([1, 0, 1]), np.array([2, 2, 2])], 3)
    >>> distinct.tolist(), place.tolist()
    ([[0, 2], [1, 2]], [1, 0, 1])
    """
    if not columns:
        return np.zeros((1, 0), np.int64), np.zeros(count, np.int64)
    place, size = np.zeros(count, np.int64), 1
    for column in columns:
        wide = int(column.max(initial=0)) + 1
        if size * wide >= _DISTINCT_AT_ONCE:
            place = np.unique(place, return_inverse=True)[1].astype(np.int64)
            size = int(place.max(initial=0)) + 1
        place, size = place * wide + column, size * wide
    if size < _DISTINCT_AT_ONCE:  # few enough to be counted rather than sorted
        first = np.full(size, count, np.int64)
        first[place[::-1]] = np.arange(count)[::-1]
        seen = np.flatnonzero(first < count)
        number = np.zeros(size, np.int64)
        number[seen] = np.arange(len(seen))
        first, place = first[seen], number[place]
    else:
        _, first, place = np.unique(place, return_index=True, return_inverse=True)
    return np.stack([column[first] for column in columns], axis=1), place.astype(np.int64)


def no_lines(request: TrainingRequest, reason: int, fewest_tokens: float = 0.0) -> Cluster:
    """Return a cluster without an offer: with the reason, or because it is not searched once for all runs."""
    nothing_yet = np.zeros(0)
    factors = Columns(dict.fromkeys((*INPUT_NAMES, *(line.name for line in OF_CLUSTERS)), nothing_yet))
    none = np.zeros(0, np.int64)
    return Cluster(request, none, factors, nothing_yet, nothing_yet, 0.0, fewest_tokens, reason, none)
