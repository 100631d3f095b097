"""Many training runs at once, as columns: which lines can win and which one does; the bill once per run and offer."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.catalog.calibrations import training_calibration
from gpucost.errors import GpuCostError, changed
from gpucost.formula.arrays import Columns, evaluate_columns, inputs_of
from gpucost.market import tiers
from gpucost.market.facts import Market
from gpucost.money.training_bill import CONSTANTS, INPUT_NAMES, LINES
from gpucost.training.cases import (
    Cases,
    Problem,
    evaluate,
    far_longer,
    owed_days,
    rank,
    too_old,
    verified,
    within_order,
)
from gpucost.training.contenders import PRICES, ROUNDING_USD, SMALL_USD, combined, unbeaten
from gpucost.training.open_sizes import BY_RUN, DEAR, OF_CLUSTERS, OF_RUNS, SLOW, OpenFleet
from gpucost.training.request import TrainingRequest
from gpucost.training.run import make_problem, nothing, refusal, select
from gpucost.training.search import other_counts, search
from gpucost.types import Architecture, Offer
from gpucost.units import GB, SECONDS_PER_HOUR

if TYPE_CHECKING:
    from gpucost.catalog import Catalog


# --- Clusters and the offers on them as lines that runs meet: which lines can win, and which one does.

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
NUMBERS = ("usd_per_gpu_hour", "gpus", "nodes", "tokens_per_s_per_gpu", "mfu_fraction", *PRICED)
NEAREST = ("gpus", "days", "cost_usd")  # of the answer that is nearest to what a run without one asks
MISSED = (
    "every run is longer than what is sold at a stretch",
    "every offer owes far longer than the run",
    "no offer meets the deadline",
    "no offer keeps the budget",
)
TOO_SLOW, OVER_BUDGET = 3, 4  # places in the sweeper's reasons
PROMISING = 4  # lines that every run meets first
_GOALS = {"cost": "cost_usd", "time": "days", "carbon": "kgco2e"}


class Cluster(NamedTuple):
    """The lines of one cluster: every offer on which it can be an option, oldest prices last; none, and the reason."""

    request: TrainingRequest
    offer: Indices  # into the sweeper's offers
    factors: Columns
    longest_hours: Floats
    owed_days: Floats
    unsure: Flags  # lowest quotes that nobody verified: they win where nothing else can
    mfu_fraction: Floats
    bytes_per_token: float  # of the dataset
    fewest_tokens: float  # runs of fewer are searched one by one: their batch shrinks, or their size is free
    reason: int  # into the sweeper's reasons
    counts: tuple[int, ...]  # where no line is left: other numbers of accelerators that hold the run, nearest first
    change: int  # into the sweeper's changes: what else brings an answer
    contenders: Indices  # lines that another one does not beat whatever the run, the most promising first

    def bound(self, tried: Indices) -> tuple[float, float]:
        """Return the least USD per token that a contender beyond those tried may cost; else infinity.

        The first is for runs that have a verified line already, the second for all others.
        """
        untried = self.contenders[len(tried) :] if len(tried) < len(self.contenders) else self.contenders[:0]
        sure = untried[~self.unsure[untried]]  # they come first
        return self._least(sure), -np.inf if len(sure) else self._least(untried)

    def _least(self, lines: Indices) -> float:
        if not len(lines) or self.request.optimize != "cost":
            return -np.inf if len(lines) else np.inf
        usd_per_hour, tokens_per_s = self.factors.usd_per_gpu_hour, self.factors.tokens_per_s_per_gpu
        return float(usd_per_hour[lines[0]] / tokens_per_s[lines[0]] / SECONDS_PER_HOUR)  # the bill is never less


class FirstOptions(NamedTuple):
    """The first option of each run: its offer (−1 for none), its numbers; the reason and the nearest where none is."""

    offer: Indices
    numbers: Columns
    reason: Indices  # into the sweeper's reasons; 0 is none
    sure: Flags  # whether the option is verified
    change: Indices  # into the sweeper's changes: what brings an answer to a run that has none; 0 is nothing known
    nearest: Columns  # what that answer comes to

    @classmethod
    def of(cls, count: int) -> "FirstOptions":
        """Return as many runs without an option."""
        numbers, nearest = (Columns({name: np.full(count, np.nan) for name in names}) for names in (NUMBERS, NEAREST))
        none, reason, change = np.full(count, -1, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
        return cls(none, numbers, reason, np.zeros(count, bool), change, nearest)

    def put_numbers(self, index: Indices, lines: "ClusterLines", chosen: Indices, runs: Columns) -> None:
        """Work out the whole answer of the lines chosen for the runs at `index`."""
        factors = lines.factors_of(chosen, runs, (*INPUT_NAMES, *(line.name for line in OF_CLUSTERS)))
        priced = evaluate_columns(BY_RUN, factors, CONSTANTS, tuple(name for name in PRICED if name not in factors))
        columns = {**factors, **priced, "mfu_fraction": lines.mfu_fraction[chosen], "gpus": factors.gpus}
        self.offer[index], self.sure[index] = lines.offer[chosen], ~lines.unsure[chosen]
        for name, column in self.numbers.items():
            column[index] = columns[name]

    def put(self, index: Indices, results: "FirstOptions") -> None:
        """Take over the runs at `index`."""
        self.offer[index], self.reason[index], self.sure[index] = results.offer, results.reason, results.sure
        self.change[index] = results.change
        for mine, others in ((self.numbers, results.numbers), (self.nearest, results.nearest)):
            for name, column in mine.items():
                column[index] = others[name]

    def put_nearest(self, index: Indices, change: Indices | int, **nearest: Any) -> None:
        """Put what brings an answer to runs without one, and what that answer comes to."""
        self.change[index] = change
        for name, column in nearest.items():
            self.nearest[name][index] = column


class ClusterLines(NamedTuple):
    """The lines of several clusters end to end; those of cluster i begin at `start[i]`."""

    start: Indices
    counts: Indices
    order: Indices  # of a line in its cluster, which decides between equals
    offer: Indices
    factors: Columns
    longest_hours: Floats
    owed_days: Floats
    unsure: Flags
    mfu_fraction: Floats
    bytes_per_token: Floats

    @classmethod
    def of(cls, clusters: Sequence[Cluster], lines_of_clusters: Sequence[Indices]) -> "ClusterLines":
        """Join the lines of clusters that are to be kept."""
        count = np.array([len(lines) for lines in lines_of_clusters], np.int64)

        def joined(columns: Iterable[NDArray[Any]]) -> NDArray[Any]:
            return np.concatenate([column[lines] for column, lines in zip(columns, lines_of_clusters, strict=True)])

        return cls(
            np.cumsum(count) - count,
            count,
            np.concatenate(lines_of_clusters),
            joined(cluster.offer for cluster in clusters),
            Columns({name: joined(cluster.factors[name] for cluster in clusters) for name in clusters[0].factors}),
            joined(cluster.longest_hours for cluster in clusters),
            joined(cluster.owed_days for cluster in clusters),
            joined(cluster.unsure for cluster in clusters),
            joined(cluster.mfu_fraction for cluster in clusters),
            np.repeat([cluster.bytes_per_token for cluster in clusters], count),
        )

    def factors_of(self, line: Indices, runs: Columns, names: Iterable[str]) -> Columns:
        """Return what the bills of these lines follow from, each for its run."""
        run_factors = {name: self.factors[name][line] for name in names if name not in OF_RUNS and name in self.factors}
        return Columns(
            **run_factors,
            tokens=runs.tokens * runs.epochs,
            evaluation_fraction=runs.evaluation_fraction,
            experiments_fraction=runs.experiments_fraction,
            dataset_gb=self.bytes_per_token[line] * runs.tokens / GB,
        )


def meet(
    lines: ClusterLines,
    clusters: Sequence[Cluster],
    cluster_of_run: Indices,
    runs: Columns,
    index: Indices,
    results: FirstOptions,
) -> None:
    """Have runs meet lines of their clusters, and put the first option of each into `found` at `index`."""
    count = lines.counts[cluster_of_run]
    start = np.cumsum(count) - count
    run = np.repeat(np.arange(len(cluster_of_run)), count)
    line = np.arange(len(run)) + np.repeat(lines.start[cluster_of_run] - start, count)
    goal = np.array([cluster.request.optimize for cluster in clusters], object)[cluster_of_run]
    first, missed, priced = _first(lines, line, run, start, runs, goal)
    results.reason[index] = missed
    results.put_nearest(index, 0, gpus=np.nan, days=np.nan, cost_usd=np.nan)  # of fewer lines, met before
    for number, change in ((TOO_SLOW, DEADLINE), (OVER_BUDGET, BUDGET)):
        short = missed == number  # there, `first` names the nearest line
        near = first[short]
        numbers = {"days": priced.days[near], "cost_usd": priced.cost_usd[near]}
        results.put_nearest(index[short], change, gpus=lines.factors.gpus[line[near]], **numbers)
    met = missed == 0
    if met.any():
        results.put_numbers(index[met], lines, line[first[met]], Columns({k: v[met] for k, v in runs.items()}))


def _first(
    lines: ClusterLines, line: Indices, run: Indices, start: Indices, runs: Columns, goal: NDArray[np.object_]
) -> tuple[Indices, Indices, Columns]:
    """Return the first option of every run, why there is none, and the prices of all lines that meet.

    Why is 0 where there is one, else 1 + the place in `MISSED`. Of runs without an option that nearest to what they ask
    stands in its place: the fastest of those that can be ordered, or the cheapest of those in time. `line` and `run`
    name the lines and runs that meet, run by run from `start` on.
    """
    formulas = _formulas_for(set(goal))
    met = Columns({name: column[run] for name, column in runs.items()})
    factors = lines.factors_of(line, met, inputs_of(BY_RUN, formulas))
    priced = evaluate_columns(BY_RUN, factors, CONSTANTS, formulas)
    checks = (
        np.isfinite(priced.cost_usd) & (priced.paid_hours <= lines.longest_hours[line]),
        ~far_longer(lines.owed_days[line], priced.days),
        priced.days <= met.deadline_days,
        priced.cost_usd <= met.max_cost_usd,
    )
    ok = np.ones(len(line), bool)
    missed = np.zeros(len(start), np.int64)
    size = np.diff(start, append=len(line))
    nearest: list[tuple[Flags, Flags, Floats]] = []  # of the runs that miss a check, the lines that met those before
    for number, check in enumerate(checks, 1):
        before = ok.copy() if number in (TOO_SLOW, OVER_BUDGET) else ok
        ok &= check
        short = (missed == 0) & ~np.logical_or.reduceat(ok, start)
        missed = np.where(short, number, missed)
        if before is not ok and short.any():
            nearest.append((np.repeat(short, size), before, priced.days if number == TOO_SLOW else priced.cost_usd))
    by_goal = _by_goal(goal, run, priced)
    for short, before, near in nearest:
        ok = np.where(short, before, ok)
        by_goal = np.where(short, near, by_goal)
    unsure = lines.unsure[line] & (missed == 0)[run] if nearest else lines.unsure[line]
    for key in (unsure, by_goal, priced.cost_usd, priced.days, lines.order[line]):
        best = np.minimum.reduceat(np.where(ok, key, np.inf), start)
        ok &= key == np.repeat(best, size)
    position = np.where(ok, np.arange(len(line)), len(line))
    return np.minimum.reduceat(position, start), missed, priced


def _formulas_for(goals: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({"paid_hours", "days", "cost_usd", *(_GOALS[word] for word in goals)}))


def _by_goal(goal: NDArray[np.object_], run: Indices, priced: Columns) -> Floats:
    """Return what each run is ranked by; a carbon that is not known comes last."""
    goals = set(goal)
    if len(goals) == 1:
        return np.nan_to_num(priced[_GOALS[goals.pop()]], nan=np.inf, posinf=np.inf)
    run_goal = goal[run]
    ranked = np.select([run_goal == word for word in goals], [priced[_GOALS[word]] for word in goals])
    return np.nan_to_num(ranked, nan=np.inf, posinf=np.inf)


def contenders_of(factors: Columns, terms: Sequence[NDArray[Any]], unsure: Flags, goal: str) -> Indices:
    """Return the lines that no other one beats whatever the run: equal but for its prices, and none of them higher.

    Of equals the first stays. A later line beats an earlier one only by a price that no rounding to cents makes equal.
    `terms` are what else must be equal. What is unsure comes last, else the most promising first.
    """
    same = [name for name in inputs_of(LINES, _formulas_for({goal})) if name not in PRICES and name in factors]
    remains = unbeaten([*(factors[name] for name in same), *terms, unsure], [factors[name] for name in PRICES])
    contenders = np.flatnonzero(remains)
    ahead = factors.usd_per_gpu_hour[contenders] / factors.tokens_per_s_per_gpu[contenders]
    return contenders[np.lexsort((ahead, unsure[contenders]))]


def no_lines(request: TrainingRequest, reason: int, fewest_tokens: float = 0.0, change: int = 0) -> Cluster:
    """Return a cluster without an offer: with the reason, or because it is not searched once for all runs."""
    nothing_yet = np.zeros(0)
    factors = Columns(dict.fromkeys((*INPUT_NAMES, *(line.name for line in OF_CLUSTERS)), nothing_yet))
    none = np.zeros(0, np.int64)
    sure = np.zeros(0, bool)
    return Cluster(
        request,
        none,
        factors,
        nothing_yet,
        nothing_yet,
        sure,
        nothing_yet,
        0.0,
        fewest_tokens,
        reason,
        (),
        change,
        none,
    )


# --- Many training runs at once, as columns: clusters are timed once, the bill is worked out once per run and offer.
#
# What is asked falls into two: the cluster's side (model, accelerator, count, batch, filters …), of which a grid
# holds few distinct ones, and the run's side (`RUN`), which changes the bill and not the speed. Clusters are kept;
# runs meet their offers as flat arrays. Row i equals the first option of the single estimate of request i exactly:
# the same search, the same bill and the same order.

Coded = tuple[Indices, list[str]]  # a column of words: a number for each row, and what the numbers mean

RUN = {  # argument -> field of the request: what changes the bill of a run and not its cluster
    "tokens": "tokens",
    "epochs": "epochs",
    "deadline": "deadline_days",
    "budget": "max_cost_usd",
    "overhead": "evaluation_fraction",
    "experiments": "experiments_fraction",
}
_TEXT_COLUMNS = {name: name for name in ("provider", "instance_type", "region", "option", "gpu")} | {
    "price_observed_on": "observed_on"
}
_OF_MARKET = (
    "gpu",
    "provider",
    "region",
    "option",
    "pool",
    "pool_view",
    "exclude_provider",
    "provider_class",
    "fabric",
    "min_confidence",
    "max_gpus",
    "usd_per_gpu_hour",
)
_RUNS_AT_ONCE = 1 << 11  # with their lines as many as a cache takes, and small enough to be memory used again
_READ_AT_ONCE = 256  # requests that leave the size open
_LINES_SEARCHED_AT_ONCE = 1 << 10  # with some ten sizes each, at about a kilobyte
_CLUSTERS_AT_ONCE = 128  # with every offer of a market about 2 MB each while they are timed
_LINES_KEPT = 1 << 20  # of all clusters, at about 300 bytes
_MARKETS_KEPT = 256
FEW_RUNS = 8  # that are searched one by one before it pays to look at a fleet as a whole
DEADLINE, BUDGET, GPUS = 1, 2, 3  # what brings an answer; from 4 on in words
_SIZES_KEPT = 1 << 20  # offers in a size, of all fleets, at some 200 bytes


class Sweeper:
    """Answers columns of requests from one catalog; markets and clusters that it has met are kept."""

    def __init__(self, catalog: "Catalog", request_of: Callable[[Mapping[str, Any], date], TrainingRequest]) -> None:
        self.catalog, self.request_of = catalog, request_of
        self.calibration = training_calibration(catalog)
        self.offers: list[Offer] = []
        self.reasons = ["", *MISSED]
        self._reason = {text: number for number, text in enumerate(self.reasons)}
        self.changes = ["", "deadline", "budget", "gpus"]
        self._number: dict[int, int] = {}
        self._clusters: dict[tuple[Any, ...], Cluster] = {}
        self._fleets: OrderedDict[tuple[Any, ...], OpenFleet | None] = OrderedDict()
        self._markets: dict[tuple[Any, ...], tuple[Market, Flags]] = {}

    def rows(self, values: Mapping[str, Sequence[Any]], codes: Mapping[str, Indices]) -> dict[str, Any]:
        """Return the columns of the answer; argument `name` of row i is `values[name][codes[name][i]]`."""
        count = len(next(iter(codes.values())))
        runs = Columns({field: self._run(name, values, codes, count) for name, field in RUN.items()})
        timed = np.array([value is not None for value in values.get("deadline", [None])])
        open_runs = Columns(runs, deadline_days=np.where(timed[codes.get("deadline", 0)], runs.deadline_days, np.nan))
        fleet = [name for name in values if name not in RUN]
        distinct, shape = combined([codes[name] for name in fleet], count)
        requests = [{name: values[name][code] for name, code in zip(fleet, row, strict=True)} for row in distinct]
        results, order = FirstOptions.of(count), np.argsort(shape, kind="stable")
        for first in range(0, len(requests), _CLUSTERS_AT_ONCE):
            begin, end = np.searchsorted(shape[order], (first, first + _CLUSTERS_AT_ONCE))
            runs_here, cluster_number = order[begin:end], shape[order[begin:end]] - first
            clusters = self._hosted(requests[first : first + _CLUSTERS_AT_ONCE])
            few = (
                runs.tokens[runs_here] * runs.epochs[runs_here]
                < np.array([cluster.fewest_tokens for cluster in clusters])[cluster_number]
            )
            fast, cluster_number, slow = runs_here[~few], cluster_number[~few], np.sort(runs_here[few])
            for part in np.split(np.arange(len(fast)), range(_RUNS_AT_ONCE, len(fast), _RUNS_AT_ONCE)):
                run_columns = Columns({name: column[fast[part]] for name, column in runs.items()})
                priced = self._priced(clusters, cluster_number[part], run_columns)
                self._try_other_counts(
                    requests[first : first + _CLUSTERS_AT_ONCE], clusters, cluster_number[part], run_columns, priced
                )
                results.put(fast[part], priced)
            slow = self._open_sizes(
                requests[first : first + _CLUSTERS_AT_ONCE], slow, shape - first, open_runs, results
            )
            for part in np.split(slow, range(_READ_AT_ONCE, len(slow), _READ_AT_ONCE)):
                rows = [{name: values[name][codes[name][row]] for name in values} for row in part]
                results.put(part, self._searched(rows))
        return self._columns(results)

    def _open_sizes(
        self,
        requests: Sequence[Mapping[str, Any]],
        index: Indices,
        shape: Indices,
        runs: Columns,
        results: FirstOptions,
    ) -> Indices:
        """Answer the runs at `index` whose size is open, fleet by fleet; return those that are left."""
        remaining = [index[:0]]
        for number in np.unique(shape[index], return_index=True)[0]:
            part = index[shape[index] == number]
            new = tuple(requests[number].items()) not in self._fleets
            fleet = None if new and len(part) < FEW_RUNS else self._fleet(requests[number])
            if fleet is None:
                remaining.append(part)
                continue
            few = runs.tokens[part] * runs.epochs[part] < fleet.fewest_tokens  # their batch shrinks
            remaining.append(part[few])
            part = part[~few]
            if not len(part):
                continue
            runs_here = runs.take(part)
            usual = fleet.request.deadline_days or np.inf  # where none is said, and the size is open
            runs_here["deadline_days"] = np.nan_to_num(runs_here.deadline_days, nan=usual, posinf=np.inf)
            cases, place, nearest = fleet.answers(runs_here)
            for number, missed, change in ((SLOW, TOO_SLOW, DEADLINE), (DEAR, OVER_BUDGET, BUDGET)):
                short = np.flatnonzero(nearest.missed == number)
                results.reason[part[short]] = missed
                numbers = {"days": nearest.days[short], "cost_usd": nearest.cost_usd[short]}
                results.put_nearest(part[short], change, gpus=nearest.gpus[short], **numbers)
            for number, error in nearest.errors.items():
                self._refuse(part[number], error, results)
            if cases is not None:
                self._put(part[place >= 0], fleet.market, cases, place[place >= 0], results)
        return np.sort(np.concatenate(remaining))

    def _fleet(self, arguments: Mapping[str, Any]) -> OpenFleet | None:
        """Return what searches the runs of these arguments; None where each is searched alone."""
        name = tuple(arguments.items())
        if name not in self._fleets:
            request = self.request_of({"tokens": 1e15, **arguments}, self.catalog.as_of)
            fleet = None
            if request.gpus is None and not request.data_flow.whole and request.optimize != "pareto":
                with suppress(GpuCostError):  # the single search says what is wrong
                    market, mask = self._market(request)
                    architecture = self.catalog.architecture(request.model)
                    fleet = OpenFleet(request, architecture, market, mask, self.calibration)
            self._fleets[name] = fleet
            while len(self._fleets) > 1 and sum(fleet.kept for fleet in self._fleets.values() if fleet) > _SIZES_KEPT:
                self._fleets.popitem(last=False)
        return self._fleets[name]

    def _put(self, index: Indices, market: Market, cases: Cases, case: Indices, results: FirstOptions) -> None:
        """Take over evaluated cases as the first options of the runs at `index`."""
        offers = market.facts.offers
        numbers = np.array([self._numbered(offers[number]) for number in cases.offer.tolist()], np.int64)
        results.offer[index] = numbers[case]
        columns = {**cases.factors, **cases.costs, "gpus": cases.gpus, "mfu_fraction": cases.speed.mfu_fraction}
        for name in NUMBERS:
            results.numbers[name][index] = columns[name][case]

    def _refuse(self, index: Any, error: GpuCostError, results: FirstOptions) -> None:
        """Put the reason of an error, what brings an answer, and what that comes to."""
        of_change = {"deadline": TOO_SLOW, "budget": OVER_BUDGET}
        results.reason[index] = of_change.get(",".join(error.change)) or self._said(str(error))
        results.put_nearest(index, self._change(error), **error.nearest)

    def _change(self, error: GpuCostError) -> int:
        """Return the number of what brings an answer where an error stands."""
        name = ",".join(error.change)
        if error.nearest and name in self.changes[DEADLINE : GPUS + 1]:
            return self.changes.index(name)
        text = changed(error)
        if text not in self.changes:
            self.changes.append(text)
        return self.changes.index(text)

    def _try_other_counts(
        self,
        requests: Sequence[Mapping[str, Any]],
        clusters: Sequence[Cluster],
        cluster_number: Indices,
        runs: Columns,
        results: FirstOptions,
    ) -> None:
        """Find the nearest number of accelerators that answers runs whose own number holds none of them.

        Where none keeps the deadline and the budget, it is the nearest number that can run it at all.
        """
        for number in np.unique(cluster_number[results.offer < 0]).tolist():
            if not clusters[number].counts:
                continue
            left_over = np.flatnonzero((cluster_number == number) & (results.offer < 0))
            unlimited = np.full(len(cluster_number), np.inf)
            free = Columns(runs, deadline_days=unlimited, max_cost_usd=unlimited)
            for columns, count in [(columns, count) for columns in (runs, free) for count in clusters[number].counts]:
                cluster = self._hosted([{**requests[number], "gpus": count}])
                other = self._priced(cluster, np.zeros(len(left_over), np.int64), columns.take(left_over))
                there = other.offer >= 0
                numbers = {name: other.numbers[name][there] for name in NEAREST}
                results.put_nearest(left_over[there], GPUS, **numbers)
                left_over = left_over[~there]
                if not len(left_over):
                    break

    def _run(self, name: str, values: Mapping[str, Sequence[Any]], codes: Mapping[str, Indices], count: int) -> Floats:
        """Return one argument of the run's side as numbers, each value read as a single request reads it."""
        plain: dict[str, Any] = {"model": "any", "tokens": 1e15, "gpus": 1}
        arguments = [{} if value is None else {name: value} for value in values.get(name, [None])]
        read = [
            getattr(self.request_of({**plain, **argument}, self.catalog.as_of), RUN[name]) for argument in arguments
        ]
        numbers = np.array([np.inf if value is None else value for value in read], np.float64)
        return numbers[codes[name]] if name in codes else np.full(count, numbers[0])

    def _hosted(self, requests: Sequence[Mapping[str, Any]]) -> list[Cluster]:
        """Return the cluster of each set of arguments; those not met before are timed together."""
        names = [tuple(arguments.items()) for arguments in requests]
        if sum(len(cluster.offer) for cluster in self._clusters.values()) > _LINES_KEPT:
            self._clusters.clear()
        new = [(name, arguments) for name, arguments in zip(names, requests, strict=True) if name not in self._clusters]
        by_market: dict[int, list[tuple[Any, TrainingRequest, Architecture, Market, Flags]]] = {}
        for name, arguments in new:
            request = self.request_of({"tokens": 1e15, **arguments}, self.catalog.as_of)
            if request.gpus is None or request.data_flow.whole:
                self._clusters[name] = no_lines(request, 0, fewest_tokens=np.inf)
                continue
            try:
                market, mask = self._market(request)
                row = (name, request, self.catalog.architecture(request.model), market, mask)
                by_market.setdefault(id(market), []).append(row)
            except GpuCostError as error:
                self._clusters[name] = no_lines(request, self._said(str(error)), change=self._change(error))
        for rows in by_market.values():
            self._time_each(rows)
        return [self._clusters[name] for name in names]

    def _market(self, request: TrainingRequest) -> tuple[Market, Flags]:
        filters = tuple(getattr(request, name) for name in _OF_MARKET)
        if filters not in self._markets:
            if len(self._markets) >= _MARKETS_KEPT:
                self._markets.clear()
            self._markets[filters] = select(request, self.catalog)
        return self._markets[filters]

    def _time_each(self, rows: Sequence[tuple[Any, TrainingRequest, Architecture, Market, Flags]]) -> None:
        """Time clusters together; where one of them cannot be, each alone, and that one says why."""
        try:
            self._time(rows)
        except GpuCostError as error:
            if len(rows) > 1:
                for row in rows:
                    self._time_each([row])
            else:
                change = self._change(error)
                self._clusters[rows[0][0]] = no_lines(rows[0][1], self._said(str(error)), change=change)

    def _time(self, rows: Sequence[tuple[Any, TrainingRequest, Architecture, Market, Flags]]) -> None:
        """Time clusters of one market, all of their offers at once, and keep the lines that can be options."""
        names, requests, architectures, _, masks = zip(*rows, strict=True)
        market = rows[0][3]
        problem = make_problem(requests, architectures, market, masks, self.calibration)
        count = [int(mask.sum()) for mask in masks]
        owner = np.repeat(np.arange(len(rows)), count)
        offer = np.concatenate([np.flatnonzero(mask) for mask in masks])
        cases = evaluate(problem, owner, offer, np.array([request.gpus for request in requests])[owner])
        for number, (name, end) in enumerate(zip(names, np.cumsum(count), strict=True)):
            lines = np.arange(end - count[number], end)
            self._clusters[name] = self._cluster(problem, market, cases, number, lines)

    def _cluster(self, problem: Problem, market: Market, cases: Cases, number: int, lines: Indices) -> Cluster:
        """Keep the lines of one request that can be options whatever the run, best known prices first."""
        request, workload, size = problem.requests[number], problem.workloads[number], problem.sizes[number]
        usable = cases.speed.fits[lines] & ~too_old(problem, cases, request, lines)
        usable &= within_order(problem, cases, lines)
        usable &= ~tiers.refused(problem.terms, cases.offer[lines], cases.gpus[lines])
        reason, counts, change = 0, list[int](), 0
        if not usable.any():
            error = refusal(problem, cases, request, lines)
            reason, change = self._said(str(error)), self._change(error)
            counts = [] if error.change else other_counts(problem, number)
        usable_lines = lines[usable]
        ids = np.array([market.facts.offers[number].offer_id for number in cases.offer[usable_lines]], str)
        usable_lines = usable_lines[np.lexsort((ids, problem.terms.age_days[cases.offer[usable_lines]]))]
        factors = Columns({name: cases.factors[name][usable_lines] for name in INPUT_NAMES})
        names = tuple(line.name for line in OF_CLUSTERS)
        longest = problem.terms.longest_hours[cases.offer[usable_lines]]
        owed = owed_days(problem, request, cases.offer[usable_lines])
        unsure = ~(verified(problem, cases, usable_lines) | request.include_unverified)
        return Cluster(
            request,
            np.array([self._numbered(market.facts.offers[number]) for number in cases.offer[usable_lines]], np.int64),
            Columns(factors | evaluate_columns(OF_CLUSTERS, factors, CONSTANTS, names)),
            longest,
            owed,
            unsure,
            cases.speed.mfu_fraction[usable_lines],
            size.dataset_bytes_per_token,
            float(workload.global_batch * workload.sequence_tokens),
            reason,
            tuple(counts),
            change,
            contenders_of(factors, (longest, owed), unsure, request.optimize),
        )

    def _said(self, reason: str) -> int:
        """Return the number of a reason why there is no option."""
        if reason not in self._reason:
            self._reason[reason] = len(self.reasons)
            self.reasons.append(reason)
        return self._reason[reason]

    def _numbered(self, offer: Offer) -> int:
        if id(offer) not in self._number:
            self._number[id(offer)] = len(self.offers)
            self.offers.append(offer)
        return self._number[id(offer)]

    def _priced(self, clusters: Sequence[Cluster], shape: Indices, runs: Columns) -> FirstOptions:
        """Return the first option of runs on pinned clusters.

        Every run meets the most promising lines of its cluster, the rest only where they may still win, and all lines
        where cents decide.
        """
        results = FirstOptions.of(len(shape))
        used, cluster_of_run = np.unique(shape, return_inverse=True)
        used_clusters = [clusters[number] for number in used]
        results.reason[:] = np.array([cluster.reason for cluster in used_clusters])[cluster_of_run]
        results.change[:] = np.array([cluster.change for cluster in used_clusters])[cluster_of_run]
        every = [np.arange(len(cluster.offer)) for cluster in used_clusters]
        part = np.flatnonzero(np.array([len(cluster.offer) for cluster in used_clusters])[cluster_of_run])
        for lines in (
            [cluster.contenders[:PROMISING] for cluster in used_clusters],
            [cluster.contenders for cluster in used_clusters],
            every,
        ):
            if not len(part):
                break
            run_columns = Columns({name: column[part] for name, column in runs.items()})
            meet(ClusterLines.of(used_clusters, lines), used_clusters, cluster_of_run[part], run_columns, part, results)
            part = part[self._open(used_clusters, lines, cluster_of_run[part], run_columns, results, part)]
        return results

    @staticmethod
    def _open(
        clusters: Sequence[Cluster],
        tried: Sequence[Indices],
        cluster_of_run: Indices,
        run_columns: Columns,
        results: FirstOptions,
        part: Indices,
    ) -> Flags:
        """Tell which runs a line that was not tried may still win."""
        bounds = np.array([cluster.bound(lines) for cluster, lines in zip(clusters, tried, strict=True)])[
            cluster_of_run
        ]
        bound = np.where(results.sure[part], bounds[:, 0], bounds[:, 1])
        least = run_columns.tokens * run_columns.epochs * (1 + run_columns.evaluation_fraction) * bound
        none = results.offer[part] < 0
        best = np.where(none, np.inf, results.numbers.cost_usd[part])
        cents = np.where(none, results.nearest.cost_usd[part], best) < SMALL_USD
        small = np.array([len(lines) < len(cluster.offer) for cluster, lines in zip(clusters, tried, strict=True)])[
            cluster_of_run
        ]
        open_: Flags = (least < best + ROUNDING_USD) | (small & cents)
        return open_

    def _searched(self, requests: Sequence[Mapping[str, Any]]) -> FirstOptions:
        """Return the first option of requests that leave the size open, or whose batch their few tokens bound."""
        results = FirstOptions.of(len(requests))
        rows = []
        for number, arguments in enumerate(requests):
            try:
                request = self.request_of(arguments, self.catalog.as_of)
                rows.append((number, request, self.catalog.architecture(request.model), *self._market(request)))
            except GpuCostError as error:
                self._refuse(number, error, results)
        for market in {id(row[3]): row[3] for row in rows}.values():
            market_rows = [row for row in rows if row[3] is market]
            part = np.cumsum([row[4].sum() for row in market_rows]) // _LINES_SEARCHED_AT_ONCE
            for chunk in np.split(np.arange(len(market_rows)), np.flatnonzero(np.diff(part)) + 1):
                self._search([market_rows[number] for number in chunk], market, results)
        return results

    def _search(self, rows: Sequence[tuple[Any, ...]], market: Market, results: FirstOptions) -> None:
        """Search the sizes of requests of one market together; where one of them cannot be, each alone."""
        try:
            self._search_all(rows, market, results)
        except GpuCostError as error:
            if len(rows) > 1:
                for row in rows:
                    self._search([row], market, results)
            else:
                self._refuse(rows[0][0], error, results)

    def _search_all(self, rows: Sequence[tuple[Any, ...]], market: Market, results: FirstOptions) -> None:
        places, requests, architectures, _, masks = zip(*rows, strict=True)
        problem = make_problem(requests, architectures, market, masks, self.calibration)
        cases, judged = search(problem)
        for number, run_index in enumerate(places):
            request_cases = judged[cases.request[judged] == number]
            order = rank(problem, cases, number, request_cases)
            if not len(order):
                self._refuse(run_index, nothing(problem, cases, requests[number], request_cases), results)
                continue
            case = int(order[0])
            results.offer[run_index] = self._numbered(market.facts.offers[int(cases.offer[case])])
            columns = {**cases.factors.row(case), **cases.costs.row(case), "gpus": cases.gpus[case]}
            columns["mfu_fraction"] = cases.speed.mfu_fraction[case]
            for name in NUMBERS:
                results.numbers[name][run_index] = columns[name]

    def _columns(self, results: FirstOptions) -> dict[str, Any]:
        """Return what is found as columns: numbers as they are, words as codes and what they mean."""
        seller = np.where(results.offer < 0, len(self.offers), results.offer)
        columns: dict[str, Any] = {}
        for name, field in _TEXT_COLUMNS.items():
            texts = [getattr(offer, field) for offer in self.offers]
            columns[name] = _coded(["" if word is None else str(word) for word in texts], seller)
        columns["usd_per_gpu_hour"] = results.numbers.usd_per_gpu_hour  # as expected today, before its age
        columns["age_days"] = np.array([*(offer.age_days for offer in self.offers), np.nan], np.float64)[seller]
        reason = _coded(self.reasons, results.reason)
        nearest = {f"nearest_{name}": column for name, column in results.nearest.items()}
        return {**columns, **results.numbers, "reason": reason, "nearest_change": self._changed(results), **nearest}

    def _changed(self, results: FirstOptions) -> Coded:
        """Return what brings an answer to each run without one, in words."""
        short = np.flatnonzero(results.change)
        change, values = results.change[short], np.zeros(len(short))
        for number, name in ((DEADLINE, "days"), (BUDGET, "cost_usd"), (GPUS, "gpus")):
            values = np.where(change == number, np.ceil(results.nearest[name][short]), values)
        of_values, code = np.unique(values, return_inverse=True)
        distinct, place = combined([change, code.astype(np.int64)], len(short))
        texts = [
            f"{self.changes[change]}={of_values[code]:.0f}{'d' if change == DEADLINE else ''}"
            if DEADLINE <= change <= GPUS
            else self.changes[change]
            for change, code in distinct.tolist()
        ]
        column = np.full(len(results.change), len(texts))
        column[short] = place
        return _coded(texts, column)


def _coded(words: Sequence[str], number: Indices) -> Coded:
    """Return a column of words: those that occur, in order, and the number of each row's; beyond `words` is none.

    >>> column, words = _coded(["b", "a", "b", "c"], np.array([0, 1, 2, 4]))
    >>> column.tolist(), words
    ([1, 0, 1, -1], ['a', 'b'])
    """
    used = np.zeros(len(words) + 1, bool)
    used[number] = True
    distinct = sorted({word for word, seen in zip(words, used, strict=False) if seen and word})
    code_of = {word: code for code, word in enumerate(distinct)}
    return np.array([*(code_of.get(word, -1) for word in words), -1], np.int64)[number], distinct
