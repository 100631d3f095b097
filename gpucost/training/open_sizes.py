"""Many training runs whose cluster size is open, as columns: offers that cannot win are left out, the rest searched.

The search over sizes is that of a single estimate (`gpucost.training.search`), and so is the order of its options. What
differs is how much of it is looked at. A run of N tokens with overhead e costs on an offer at least

    N × (1 + e) × USD per GPU-hour ÷ (3,600 × the most tokens per second and accelerator of a size that may be tried)

so that an offer whose least is above what another one costs, or above the budget, is not searched for that run. Speeds
and the part of the bill that hangs on the cluster alone are worked out once for each offer and size.

A budget changes which answers are refused, hardly ever which one is first: runs that differ in it alone are searched
once without one, and again only where that answer is too dear or nobody verified it.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.errors import GpuCostError
from gpucost.formula.arrays import Columns, evaluate_columns, inputs_of, untouched
from gpucost.market import tiers
from gpucost.market.facts import Market
from gpucost.market.terms import Terms
from gpucost.money.training_bill import CONSTANTS, LINES
from gpucost.physics.calibration import Calibration
from gpucost.training.cases import (
    Cases,
    Problem,
    evaluate,
    far_longer,
    make_factors,
    owed_days,
    verified,
    within_order,
)
from gpucost.training.contenders import PRICES, ROUNDING_USD, SMALL_USD, unbeaten
from gpucost.training.request import TrainingRequest
from gpucost.training.run import make_problem, nothing
from gpucost.training.search import FASTER_RATIO, FASTEST_MFU, HALF_FASTER_RATIO, meets, peak_flop_per_s, search
from gpucost.types import Architecture
from gpucost.units import GB, SECONDS_PER_DAY, SECONDS_PER_HOUR
from gpucost.workloads.speeds import speeds_of

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

OF_RUNS = ("tokens", "evaluation_fraction", "experiments_fraction", "dataset_gb")
OF_CLUSTERS = untouched(LINES, OF_RUNS)
BY_RUN = tuple(line for line in LINES if line not in OF_CLUSTERS)
_BARE = ("tokens", "epochs", "deadline_days", "evaluation_fraction", "experiments_fraction")  # all but the budget
_RANKED_BY = {"cost": "cost_usd", "cheapest": "cost_usd", "time": "days", "fastest": "days", "carbon": "kgco2e"}
SLOW, DEAR = range(2)  # what a run without an option misses
_MORE_AT_A_TIME = (3, 6, 12, 24)  # offers that a run is searched on, the most promising first
_SLACK = 1e-9  # of a time, beyond the rounding of floats
_RUNS_AT_ONCE = 256
_RUNS_REMEMBERED = 1 << 16  # without their budgets, at some 250 bytes
_LINES_AT_ONCE = 1 << 11  # pairs of a run and an offer, each with some ten sizes or more
_LINES_KEPT = 1 << 18  # offers in a size, at some 300 bytes


class SpeedSide(NamedTuple):
    """What a search asks of the speed of cases."""

    fits: Flags
    reason: Indices

    def take(self, index: Indices) -> "SpeedSide":
        """Return the cases at `index`."""
        return SpeedSide(self.fits[index], self.reason[index])


class SizedCases(Struct, frozen=True):
    """Cases with no more than a search and an order need."""

    request: Indices
    offer: Indices
    gpus: Indices
    speed: SpeedSide
    costs: Columns

    def __len__(self) -> int:
        return len(self.request)

    def take(self, rows: Indices) -> "SizedCases":
        """Return the cases that `rows` names."""
        parts = (self.request[rows], self.offer[rows], self.gpus[rows])
        return SizedCases(*parts, self.speed.take(rows), self.costs.take(rows))

    @classmethod
    def concatenate(cls, parts: Sequence["SizedCases"]) -> "SizedCases":
        """Join cases end to end."""
        return cls(
            np.concatenate([part.request for part in parts]),
            np.concatenate([part.offer for part in parts]),
            np.concatenate([part.gpus for part in parts]),
            SpeedSide(*(np.concatenate(column) for column in zip(*(part.speed for part in parts), strict=True))),
            Columns.concatenate([part.costs for part in parts]),
        )


class FleetBounds(NamedTuple):
    """Of each offer that is looked at, by the exponent of its doublings, the most that a size from there on reaches."""

    offer: Indices  # into the market's offers
    unit: Floats
    fewest: Floats  # accelerators of the smallest order
    stop: Indices  # the last exponent
    tokens_per_s_per_gpu: Floats  # offers × exponents
    tokens_per_s: Floats  # of the whole cluster, the same
    up_to_tokens_per_s: Floats  # of the whole cluster, offers × exponents: the most of sizes up to there
    sure_tokens_per_s: Floats  # of the whole cluster, in a size that one can order for all that is known
    usd_per_gpu_hour: Floats
    flop_per_s: Floats  # beyond which no accelerator is taken to be
    maybe_sure: Flags  # whether one can order it in some size, for all that is known
    contends: Flags  # no other offer beats it whatever the run


class BestSoFar:
    """The first option of each run among those searched so far: its offer and size, and what orders it."""

    def __init__(self, count: int) -> None:
        self.offer, self.gpus = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        self.keys = np.full((7, count), np.inf)  # unsure, goal, cost, days, accelerators, age, id
        self.met = np.zeros(count, bool)  # whether any offer meets the deadline, one that cannot be ordered among them

    @property
    def sure(self) -> Flags:
        """Tell which runs have an option that one can order."""
        return np.asarray((self.offer >= 0) & (self.keys[0] == 0))

    def take_over(self, run: Indices, cases: SizedCases, keys: Floats) -> None:
        """Take over options, one for each of some runs, where they stand before what they have."""
        better, equal = np.zeros(len(run), bool), np.ones(len(run), bool)
        for new, old in zip(keys, self.keys[:, run], strict=True):
            better |= equal & (new < old)
            equal &= new == old
        run = run[better]
        self.offer[run], self.gpus[run], self.keys[:, run] = cases.offer[better], cases.gpus[better], keys[:, better]

    def take_all(self, run: Indices, other: "BestSoFar", place: Indices) -> None:
        """Take over what others have: run `run[i]` that of their run `place[i]`."""
        self.offer[run], self.gpus[run], self.met[run] = other.offer[place], other.gpus[place], other.met[place]
        self.keys[:, run] = other.keys[:, place]

    def take(self, run: Indices) -> "BestSoFar":
        """Return some of the runs."""
        part = BestSoFar(len(run))
        part.take_all(np.arange(len(run)), self, run)
        return part

    @classmethod
    def concatenate(cls, first: "BestSoFar", second: "BestSoFar") -> "BestSoFar":
        """Join runs end to end."""
        count = len(first.offer)
        joined = cls(count + len(second.offer))
        joined.take_all(np.arange(count), first, np.arange(count))
        joined.take_all(count + np.arange(len(second.offer)), second, np.arange(len(second.offer)))
        return joined


class Nearest(NamedTuple):
    """Of runs without an option, why they have none and the option that is nearest to what they ask."""

    missed: Indices  # SLOW or DEAR; −1 where an error says it, or there is an option
    gpus: Floats
    days: Floats
    cost_usd: Floats
    errors: dict[int, GpuCostError]  # by the number of the run

    @classmethod
    def of(cls, count: int) -> "Nearest":
        """Return as many runs of which nothing is known."""
        gpus, days, cost_usd = np.full((3, count), np.nan)
        return cls(np.full(count, -1, np.int64), gpus, days, cost_usd, {})

    def put(self, index: Indices, best: BestSoFar, place: Indices, missed: int) -> None:
        """Take over what is nearest to the runs at `index`, where there is anything."""
        there = best.offer[place] >= 0
        index, place = index[there], place[there]
        self.missed[index], self.gpus[index] = missed, best.gpus[place]
        self.cost_usd[index], self.days[index] = best.keys[2, place], best.keys[3, place]


class OpenAnswers(NamedTuple):
    """The answers to runs: cases, which of them is the first option of each run (−1: none), and why there is none."""

    cases: Cases | None
    first: Indices
    nearest: Nearest


class OpenFleet:
    """Runs of one model on one set of offers, whose number of accelerators is open."""

    def __init__(
        self,
        request: TrainingRequest,
        architecture: Architecture,
        market: Market,
        mask: Flags,
        calibration: Calibration,
    ) -> None:
        self.request, self.market, self.mask = request, market, mask
        self.problem = make_problem((request,), (architecture,), market, (mask,), calibration)
        workload = self.problem.workloads[0]
        self.fewest_tokens = float(workload.global_batch * workload.sequence_tokens)
        self._targets = ("paid_hours", "days", "cost_usd", *(["kgco2e"] if request.optimize == "carbon" else []))
        read = inputs_of(BY_RUN, self._targets)
        self._names = tuple(sorted(name for name in read if name not in OF_RUNS and name not in CONSTANTS))
        units = np.maximum(market.supply.largest_gpus // market.supply.unit_gpus, 1)
        self._first = np.cumsum(units) - units  # of an offer's sizes, which are multiples of its unit
        self._place = np.full(int(units.sum()), -1, np.int32)  # of an offer in a size among those that are known
        self.known = 0
        self._remembered: dict[bytes | None, int] = {}  # runs but for their budgets -> the place in the memory
        self._memory = BestSoFar(0)
        self._speed = SpeedSide(np.zeros(0, bool), np.zeros(0, np.int64))
        self._factors = Columns({name: np.zeros(0) for name in self._names})
        ids = np.array([offer.offer_id for offer in market.facts.offers], str)
        self._by_id = np.unique(ids, return_inverse=True)[1].astype(np.float64)
        self._bounds = self._bounded() if workload.loading is None and request.optimize in ("cost", "time") else None

    @property
    def kept(self) -> int:
        """Return how much is kept, in offers in a size."""
        return self.known + len(self._remembered)

    def answers(self, runs: Columns) -> "OpenAnswers":
        """Answer runs: `runs` holds, under the names of a request's fields, what changes a bill and not its cluster."""
        count = len(runs.tokens)
        free, run = self._free(runs)
        offer, gpus = free.offer[run], free.gpus[run]
        over = free.keys[2, run] > runs.max_cost_usd
        left_over = np.isfinite(runs.max_cost_usd) & (over | ~free.sure[run]) & free.met[run]
        offer[left_over | over] = -1
        for part in _parts(np.flatnonzero(left_over), _RUNS_AT_ONCE):
            best = self._searched(runs.take(part))
            offer[part], gpus[part] = best.offer, best.gpus
        nearest = Nearest.of(count)
        refused = np.flatnonzero(offer < 0)
        if len(refused):
            self._refuse(runs, free, run, refused, nearest)
        found = np.flatnonzero(offer >= 0)
        first = np.full(count, -1, np.int64)
        if not len(found):
            return OpenAnswers(None, first, nearest)
        keys = np.stack([run[found], offer[found], gpus[found]])  # runs that differ in their budget share a case
        distinct, row, case = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        first[found] = np.ravel(case)
        problem = self._problem_of(runs.take(found[row]), np.zeros((len(row), 1), bool))
        return OpenAnswers(evaluate(problem, np.arange(len(row)), distinct[1], distinct[2]), first, nearest)

    def _free(self, runs: Columns) -> tuple["BestSoFar", Indices]:
        """Return the first options without a budget of the distinct runs, and which of these each run is.

        Those of runs with a budget are remembered: the next chunk may hold the same ones with another budget.
        """
        bare = np.stack([runs[name] for name in _BARE], axis=1)
        bare, first, place = np.unique(bare, axis=0, return_index=True, return_inverse=True)
        best = BestSoFar(len(bare))
        limited = np.isfinite(runs.max_cost_usd[first])
        names = [row.tobytes() if flag else None for row, flag in zip(bare, limited.tolist(), strict=True)]
        known = np.array([self._remembered.get(name, -1) if name else -1 for name in names], np.int64)
        best.take_all(np.flatnonzero(known >= 0), self._memory, known[known >= 0])
        for part in _parts(np.flatnonzero(known < 0), _RUNS_AT_ONCE):
            columns = runs.take(first[part])
            searched = self._searched(Columns(columns, max_cost_usd=np.full(len(part), np.inf)))
            best.take_all(part, searched, np.arange(len(part)))
        new = np.flatnonzero((known < 0) & limited)
        if len(new):
            if len(self._remembered) + len(new) > _RUNS_REMEMBERED:
                self._remembered, self._memory = {}, BestSoFar(0)
            self._remembered.update((names[number], len(self._remembered)) for number in new.tolist())
            self._memory = BestSoFar.concatenate(self._memory, best.take(new))
        return best, np.ravel(place)

    def _refuse(self, runs: Columns, free: "BestSoFar", run: Indices, refused: Indices, nearest: "Nearest") -> None:
        """Say why runs have no option, and which one is nearest to what they ask.

        Beyond a budget that is the cheapest one in time, beyond a deadline the fastest. All else is said as a single
        estimate says it.
        """
        dear = refused[free.offer[run[refused]] >= 0]
        late = refused[~free.met[run[refused]]]
        for index, goal, number in ((dear, "cheapest", DEAR), (late, "fastest", SLOW)):
            distinct, first, place = np.unique(run[index], return_index=True, return_inverse=True)
            best = BestSoFar(len(distinct))
            for part in _parts(np.arange(len(distinct)), _RUNS_AT_ONCE):
                searched = self._searched(runs.take(index[first[part]]), goal)
                best.take_all(part, searched, np.arange(len(part)))
            nearest.put(index, best, np.ravel(place), number)
        rest = refused[nearest.missed[refused] < 0]
        alone = rest[np.isfinite(runs.max_cost_usd[rest]) & free.met[run[rest]]]
        shared = rest[~np.isin(rest, alone)]
        _, first, place = np.unique(run[shared], return_index=True, return_inverse=True)
        errors = self._errors(runs.take(np.concatenate([alone, shared[first]])))
        for number, index in enumerate(alone.tolist()):
            nearest.errors[index] = errors[number]
        for index, number in zip(shared.tolist(), np.ravel(place).tolist(), strict=True):
            nearest.errors[index] = errors[len(alone) + number]

    def _errors(self, runs: Columns) -> list[GpuCostError]:
        """Return for runs without an option the errors of their single estimates."""
        errors: list[GpuCostError] = []
        for part in _parts(np.arange(len(runs.tokens)), max(1, _LINES_AT_ONCE // max(int(self.mask.sum()), 1))):
            masks = np.broadcast_to(self.mask, (len(part), len(self.mask)))
            problem = self._problem_of(runs.take(part), masks)
            cases, judged = search(problem, self._priced(runs.take(part)))
            for number, request in enumerate(problem.requests):
                of_run = judged[cases.request[judged] == number]
                errors.append(nothing(problem, cases, request, of_run))
        return errors

    # --- which offers each run is searched on

    def _searched(self, runs: Columns, goal: str | None = None) -> BestSoFar:
        """Return the first option of each run, or the cheapest or the fastest whatever the budget or the deadline.

        First every run is searched on a few promising offers, then on those that may cost less than what they gave; on
        offers that others beat only where cents decide, and on those that nobody verified only where nothing else will
        do.
        """
        count = len(runs.tokens)
        best, every = BestSoFar(count), np.arange(count)
        if self._bounds is None:
            self._meet(runs, every, np.broadcast_to(self.mask, (count, len(self.mask))), best, goal)
            return best
        bounds, least = self._bounds, self._least(runs, self._bounds, goal)
        looked_at = np.zeros(least.shape, bool)

        def meet(offers: Flags) -> None:
            offers = offers & ~looked_at & np.isfinite(least)
            looked_at[offers] = True
            masks = np.zeros((count, len(self.mask)), bool)
            masks[:, bounds.offer] = offers
            open_ = np.flatnonzero(offers.any(axis=1))
            self._meet(runs, open_, masks[open_], best, goal)

        def may_win(beside_unsure: bool) -> Flags:
            """Tell which offers may stand before what a run has; what is unsure stands behind all that is not."""
            stands = best.offer >= 0 if beside_unsure else best.sure
            limit = np.where(stands, best.keys[1], np.inf)
            return least <= (limit * (1 + _SLACK) + ROUNDING_USD)[:, None]

        sure = self._may_be_sure(runs, bounds) if goal is None else np.ones(least.shape, bool)
        for many in (*_MORE_AT_A_TIME, least.shape[1]):
            open_ = may_win(False) & bounds.contends & sure & ~looked_at
            if not open_.any():
                break
            meet(_first_of(least, open_, many))
        in_doubt = ~best.sure | (best.keys[2] < SMALL_USD)
        meet(may_win(False) & sure & in_doubt[:, None])
        for many in (*_MORE_AT_A_TIME, least.shape[1]) if goal is None else ():
            open_ = may_win(True) & ~best.sure[:, None] & ~looked_at
            if not open_.any():
                break
            meet(_first_of(least, open_, many))
        return best

    def _may_be_sure(self, runs: Columns, bounds: FleetBounds) -> Flags:
        """Tell which offers one may order, for all that is known, in a size that is large enough for a run."""
        work = runs.tokens * runs.epochs * (1 + runs.evaluation_fraction)
        per_s = (work / (runs.deadline_days * SECONDS_PER_DAY))[:, None]
        return np.asarray(bounds.maybe_sure & (bounds.sure_tokens_per_s * (1 + _SLACK) >= per_s))

    def _least(self, runs: Columns, bounds: FleetBounds, goal: str | None = None) -> Floats:
        """Return, for each run and offer, the least it can be ranked by, USD or days; infinite where it cannot be."""
        request, size = self.request, self.problem.sizes[0]
        tokens = runs.tokens * runs.epochs
        share = 1.0 if request.method == "full" else 0.6  # as the search says
        per_s = size.model_flop_per_token * tokens * share / (runs.deadline_days * SECONDS_PER_DAY)
        fewest = np.maximum(per_s[:, None] / bounds.flop_per_s, bounds.fewest)
        start = np.ceil(np.log2(fewest / bounds.unit) - 1e-9).astype(np.int64)
        work = (tokens * (1 + runs.evaluation_fraction))[:, None]
        timely_per_s = work / (runs.deadline_days * SECONDS_PER_DAY)[:, None] / (1 + _SLACK)
        too_slow = np.zeros(start.shape, np.int64)
        for column in bounds.up_to_tokens_per_s.T:  # exponents up to which no size meets the deadline
            too_slow += column < timely_per_s
        place = np.arange(len(bounds.offer))
        with np.errstate(divide="ignore"):
            if goal == "fastest":
                fastest = bounds.tokens_per_s[place, np.clip(start, 0, bounds.stop)]
                return np.asarray(work / (fastest * SECONDS_PER_DAY))
            start = np.clip(np.maximum(start, too_slow), 0, bounds.stop)
            speed = bounds.tokens_per_s_per_gpu[place, start]
            usd = work * bounds.usd_per_gpu_hour / (speed * SECONDS_PER_HOUR)
            least = usd
            if request.optimize == "time" and goal is None:
                least = work / (bounds.tokens_per_s[place, start] * SECONDS_PER_DAY)
        too_dear = usd > (runs.max_cost_usd * (1 + _SLACK) + ROUNDING_USD)[:, None] if goal is None else False
        return np.where((too_slow > bounds.stop) | too_dear, np.inf, least)

    def _bounded(self) -> FleetBounds:
        """Return what the offers reach at most, from their doublings and by how much a size between may be faster."""
        problem, supply, terms, request = self.problem, self.market.supply, self.market.terms, self.request
        usable = self.mask.copy()
        if request.max_age_days is not None:
            usable &= ~(terms.age_days > request.max_age_days)
        if request.strict_prices:
            usable &= ~terms.stale
        offer = np.flatnonzero(usable)
        offer = offer[np.lexsort((self._by_id[offer], terms.age_days[offer]))]
        unit, largest = supply.unit_gpus[offer], np.maximum(supply.largest_gpus[offer] // supply.unit_gpus[offer], 1)
        stop = np.ceil(np.log2(largest) - 1e-9).astype(np.int64)
        exponent = np.arange(int(stop.max(initial=0)) + 1)
        gpus = np.minimum(unit[:, None] * 2 ** np.minimum(exponent, stop[:, None]), (largest * unit)[:, None])
        key = np.broadcast_to(supply.key[offer][:, None], gpus.shape)
        none = np.zeros(gpus.size, np.int64)
        speed = speeds_of(problem.workloads, supply.keys, problem.calibration, none, key.ravel(), gpus.ravel())
        fitting = np.where(speed.fits, speed.tokens_per_s_per_gpu, 0.0).reshape(gpus.shape)
        below = np.concatenate([np.zeros((len(offer), 1)), fitting[:, :-1]], axis=1)
        between = np.maximum(fitting, below) * between_ratio(problem.workloads[0].global_batch)
        if between_ratio(problem.workloads[0].global_batch) > FASTER_RATIO:  # any size may be the one that splits it
            between = np.where(between > 0, between, fitting.max(axis=1, initial=0.0)[:, None] * HALF_FASTER_RATIO)
        most = np.maximum(fitting, between)
        up_to = np.maximum.accumulate(most * gpus, axis=1)
        certain = self._certain_gpus(offer)
        last = np.ceil(np.log2(np.maximum(certain // unit, 1)) - 1e-9).astype(np.int64) if len(offer) else stop
        last = np.minimum(last, stop)
        owed = owed_days(problem, request, offer)
        flop_per_s = np.array([peak_flop_per_s(key.accelerator, problem.workloads[0]) for key in supply.keys])
        sure = tiers.verified(supply, terms, offer, np.zeros(len(offer), np.int64), problem.measured)
        return FleetBounds(
            offer,
            unit.astype(np.float64),
            np.maximum(supply.minimum_gpus[offer], unit).astype(np.float64),
            stop,
            _from_there_on(most),
            _from_there_on(most * gpus),
            up_to,
            up_to[np.arange(len(offer)), last],
            terms.usd_per_gpu_hour[offer],
            flop_per_s[supply.key[offer]] * FASTEST_MFU,
            sure | request.include_unverified,
            self._contending(offer, owed),
        )

    def _certain_gpus(self, offer: Indices) -> Indices:
        """Return the largest size of each offer that one can order, for all that is known, where any is."""
        supply, terms = self.market.supply, self.market.terms
        largest = supply.largest_gpus[offer]
        if self.request.include_unverified:
            return largest
        rated = ~(terms.interruptible[offer] & ~terms.measured[offer])
        usual = np.maximum(terms.order_gpus[offer], supply.unit_gpus[offer])
        free = supply.largest_stated[offer] | terms.interruptible[offer]
        certain = np.minimum(largest, np.where(rated, largest, tiers.MEASURED_SPOT_GPUS))
        return np.minimum(certain, np.where(free, largest, usual)).astype(np.int64)

    def _contending(self, offer: Indices, owed: Floats) -> Flags:
        """Tell which offers no other one beats whatever the run; those that a size may make no option always stay."""
        supply, terms = self.market.supply, self.market.terms
        alone = (terms.interruptible[offer] & (supply.largest_gpus[offer] > tiers.LARGEST_SPOT_GPUS)) | (owed > 0)
        read = (*inputs_of(LINES, self._targets), *_BESIDE)
        of_terms = [name for name in read if name in Terms._fields and name not in PRICES]
        same = [getattr(terms, name)[offer] for name in of_terms]
        same += [getattr(supply, name)[offer] for name in _OF_SUPPLY]
        same += [self.problem.measured[offer], np.where(alone, np.arange(len(offer)), -1)]
        numbers = [np.nan_to_num(column.astype(np.float64), nan=-1.0) for column in same]
        return unbeaten(numbers, [getattr(terms, name)[offer] for name in PRICES])

    # --- the search itself, on the cases that are left

    def _meet(self, runs: Columns, open_: Indices, masks: Flags, best: BestSoFar, goal: str | None) -> None:
        """Search runs on the offers of their masks, some at a time."""
        lines = np.cumsum(masks.sum(axis=1)) // _LINES_AT_ONCE
        for part in np.split(np.arange(len(open_)), np.flatnonzero(np.diff(lines)) + 1) if len(open_) else ():
            self._search(runs.take(open_[part]), open_[part], masks[part], best, goal)

    def _search(self, runs: Columns, number: Indices, masks: Flags, best: BestSoFar, goal: str | None) -> None:
        if goal is not None:  # of every offer the size that its own estimate refuses
            runs = Columns(runs, max_cost_usd=np.full(len(number), -1.0))
        problem = self._problem_of(runs, masks)
        cases, judged = search(problem, self._priced(runs))
        best.met[number[cases.request[judged[meets(problem, cases)[judged]]]]] = True
        index = judged[self._can_be_options(problem, runs, cases, judged, goal)]
        if not len(index):
            return
        request, costs = cases.request[index], cases.costs
        ranked_by = _RANKED_BY[goal or self.request.optimize]
        sure = self.request.include_unverified | verified(problem, cases, index) | (goal is not None)
        keys = np.stack(
            [
                ~np.broadcast_to(sure, len(index)),
                np.nan_to_num(costs[ranked_by][index], nan=np.inf),
                costs.cost_usd[index],
                costs.days[index],
                cases.gpus[index],
                problem.terms.age_days[cases.offer[index]],
                self._by_id[cases.offer[index]],
            ]
        ).astype(np.float64)
        order = np.lexsort((*keys[::-1], request))
        _, first = np.unique(request[order], return_index=True)
        chosen = order[first]
        best.take_over(number[request[chosen]], cases.take(index[chosen]), keys[:, chosen])

    def _can_be_options(self, problem: Problem, runs: Columns, cases: Any, index: Indices, goal: str | None) -> Flags:
        """Tell which cases can be an option of their run, as a single estimate does; or but for what it asks."""
        request, offer, costs, terms = cases.request[index], cases.offer[index], cases.costs, problem.terms
        days, cost_usd = costs.days[index], costs.cost_usd[index]
        ok = cases.speed.fits[index] & np.isfinite(cost_usd) & within_order(problem, cases, index)
        ok &= ~(costs.paid_hours[index] > terms.longest_hours[offer])
        ok &= ~tiers.refused(terms, offer, cases.gpus[index])
        if self.request.max_age_days is not None:
            ok &= ~(terms.age_days[offer] > self.request.max_age_days)
        if self.request.strict_prices:
            ok &= ~terms.stale[offer]
        ok &= ~far_longer(owed_days(problem, self.request, offer), days)
        if goal != "fastest":
            ok &= days <= runs.deadline_days[request]
        if goal is None:
            ok &= cost_usd <= runs.max_cost_usd[request]
        return np.asarray(ok)

    def _problem_of(self, runs: Columns, masks: Flags) -> Problem:
        """Return the problem of runs, each on the offers of its mask."""
        fields = {name: column.tolist() for name, column in runs.items()}
        requests = []
        for number in range(len(runs.tokens)):
            values = {name: column[number] for name, column in fields.items()}
            for name in ("deadline_days", "max_cost_usd"):
                values[name] = None if values[name] == inf else values[name]
            requests.append(replace(self.request, **values))
        many = len(requests)
        return replace(
            self.problem,
            requests=tuple(requests),
            workloads=self.problem.workloads * many,
            sizes=self.problem.sizes * many,
            masks=tuple(masks),
        )

    def _priced(self, runs: Columns) -> Callable[[Problem, Indices, Indices, Indices], SizedCases]:
        """Return the maker of cases for these runs: what hangs on the cluster alone is looked up."""
        tokens, bytes_per_token = runs.tokens * runs.epochs, self.problem.sizes[0].dataset_bytes_per_token

        def evaluated(problem: Problem, request: Indices, offer: Indices, gpus: Indices) -> SizedCases:
            row, speed = self._rows(offer, gpus)
            factors = Columns({name: self._factors[name][row] for name in self._names})
            factors["tokens"] = tokens[request]
            factors["evaluation_fraction"] = runs.evaluation_fraction[request]
            factors["experiments_fraction"] = runs.experiments_fraction[request]
            factors["dataset_gb"] = bytes_per_token * runs.tokens[request] / GB
            costs = evaluate_columns(BY_RUN, factors, CONSTANTS, self._targets)
            return SizedCases(request, offer, gpus, speed.take(row), costs)

        return evaluated

    def _rows(self, offer: Indices, gpus: Indices) -> tuple[Indices, SpeedSide]:
        """Return where offers in a size stand among those that are known; new ones are timed together."""
        cell = self._first[offer] + gpus // self.market.supply.unit_gpus[offer] - 1
        row = self._place[cell]
        unknown = row < 0
        if unknown.any():
            if self.known > _LINES_KEPT:
                self._place[:] = -1
                self.known, unknown = 0, np.ones(len(cell), bool)
            cells, first = np.unique(cell[unknown], return_index=True)
            self._learn(cells, offer[unknown][first], gpus[unknown][first])
            row = self._place[cell]
        return row, self._speed

    def _learn(self, cells: Indices, offer: Indices, gpus: Indices) -> None:
        """Work out what hangs on the cluster alone of more offers in a size."""
        problem, supply, none = self.problem, self.market.supply, np.zeros(len(cells), np.int64)
        speed = speeds_of(problem.workloads, supply.keys, problem.calibration, none, supply.key[offer], gpus)
        inputs = make_factors(problem, none, offer, gpus, speed)
        made = tuple(line.name for line in OF_CLUSTERS if line.name in self._names)
        factors = {**inputs, **evaluate_columns(OF_CLUSTERS, inputs, CONSTANTS, made)}
        end = self.known + len(cells)
        if end > len(self._speed.fits):  # room for twice as many
            more = 2 * end - len(self._speed.fits)
            self._speed = SpeedSide(*(np.concatenate([column, np.zeros(more, column.dtype)]) for column in self._speed))
            grown = {name: np.concatenate([column, np.zeros(more)]) for name, column in self._factors.items()}
            self._factors = Columns(grown)
        rows = slice(self.known, end)
        self._speed.fits[rows], self._speed.reason[rows] = speed.fits, speed.reason
        for name, column in self._factors.items():
            column[rows] = factors[name]
        self._place[cells] = np.arange(self.known, end, dtype=np.int32)
        self.known = end


_BESIDE = ("stale", "peers_ratio", "order_gpus", "interruptible", "measured", "longest_hours")
_OF_SUPPLY = ("key", "unit_gpus", "minimum_gpus", "largest_gpus", "is_part", "largest_stated")


def between_ratio(global_batch: int) -> float:
    """Return by how much, at most, a size is faster per accelerator than the faster of the doublings around it.

    A batch of a power of two splits best over the doublings; another one may split well over a size between them.
    """
    return FASTER_RATIO if global_batch & (global_batch - 1) == 0 else HALF_FASTER_RATIO


def _parts(index: Indices, many: int) -> Iterator[Indices]:
    """Yield an index some at a time."""
    for start in range(0, len(index), many):
        yield index[start : start + many]


def _first_of(values: Floats, open_: Flags, many: int) -> Flags:
    """Tell which of the finite values that are open are among the smallest of their row.

    >>> _first_of(np.array([[0.0, 3.0, 1.0, 2.0, np.inf]]), np.array([[False, True, True, True, True]]), 2).tolist()
    [[False, False, True, True, False]]
    """
    rows = np.flatnonzero(open_.any(axis=1))  # often few
    flags = np.zeros(values.shape, bool)
    part = np.where(open_[rows], values[rows], np.inf)
    first = np.isfinite(part)
    if many < values.shape[1]:
        smallest = np.zeros(part.shape, bool)
        np.put_along_axis(smallest, np.argpartition(part, many - 1, axis=1)[:, :many], True, axis=1)
        first &= smallest
    flags[rows] = first
    return flags


def _from_there_on(columns: Floats) -> Floats:
    """Return the largest of each row from a column on.

    >>> _from_there_on(np.array([[1.0, 3.0, 2.0]])).tolist()
    [[3.0, 3.0, 2.0]]
    """
    return np.maximum.accumulate(columns[:, ::-1], axis=1)[:, ::-1]
