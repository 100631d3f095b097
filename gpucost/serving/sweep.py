"""Many services of one model on one set of offers, as columns: lengths, targets, loads and budgets differ.

Replicas are timed once for all batches of each pair of lengths; a target for the time per token leaves out batches, so
that it needs no new timing. What a month takes is worked out once for each size of unit and layout, whoever sells it;
bills are made of offers that may win alone. Of offers that differ in their price alone the dearer ones never do. Row i
equals the first option of the single answer exactly: the same kernels, the same bill and the same order.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import astuple, replace
from numpy.typing import NDArray

from gpucost.errors import GpuCostError
from gpucost.formula.arrays import Columns, evaluate_columns, inputs_of, untouched
from gpucost.market import tiers
from gpucost.market.facts import Market
from gpucost.market.terms import Terms
from gpucost.money.serving_bill import CONSTANTS, INPUT_NAMES, LINES, price_months
from gpucost.physics.calibration import Calibration
from gpucost.physics.columns import ColumnStruct
from gpucost.physics.serving.cases import ServingCase
from gpucost.serving import costing
from gpucost.serving.costing import MonthlyLoad, ReplicaSpeeds
from gpucost.serving.request import InferenceRequest
from gpucost.serving.run import UNSURE, UnservedPlans, largest_jobs, lasting, nothing, over_budget, standing, too_large
from gpucost.types import Architecture
from gpucost.units import HOURS_PER_MONTH, MS_PER_S
from gpucost.workloads.service import (
    LADDER,
    OWN_WIDTH,
    AtBatches,
    climb,
    fastest,
    late,
    own_tpot_s,
    reasons,
    refuse_own,
    replica_layouts,
    widths,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

VARIED = (  # fields of a request that cases may differ in
    "prompt_tokens",
    "output_tokens",
    "requests_per_s",
    "tokens_per_month",
    "ttft_ms",
    "tpot_ms",
    "utilisation_fraction",
    "redundancy",
    "max_cost_usd",
)
UNSAID = {"ttft_ms": np.inf, "tpot_ms": np.inf, "redundancy": 0.0, "max_cost_usd": np.inf}  # what it means
NUMBERS = (
    "gpus",
    "replicas",
    "ttft_ms",
    "tpot_ms",
    "usd_per_gpu_hour",
    "usd_per_mtok",
    "usd_per_mtok_low",
    "usd_per_mtok_high",
    "usd_per_month",
    "usd_per_month_low",
    "usd_per_month_high",
    "energy_kwh",
    "kgco2e",
)
_OF_OFFERS = tuple(name for name in INPUT_NAMES if name in Terms._fields)
_OF_FLEETS = untouched(LINES, _OF_OFFERS)
_BY_OFFER = tuple(line for line in LINES if line not in _OF_FLEETS)
_ROUNDING_USD = 0.05  # more than the cents by which rounding the lines of two bills can bring them together
_BATCHES_AT_ONCE = 1 << 15  # replicas × batches that are timed together: as many as a cache takes
_TARGETS_AT_ONCE = 1 << 20  # cases × replicas × batches
_BILLS_AT_ONCE = 1 << 16  # cases × pairs of an offer and a layout


class FirstServices(NamedTuple):
    """The first option of each case: its offer (−1 for none), its numbers, or why there is none."""

    offer: Indices  # into the market's offers
    numbers: Columns
    reason: Indices  # into `reasons`; −1 where there is an option
    reasons: list[GpuCostError]
    odd: Flags  # of which nothing is said here: they are to be asked one by one

    @classmethod
    def of(cls, count: int) -> "FirstServices":
        """Return as many cases of which nothing is said."""
        numbers = Columns({name: np.full(count, np.nan) for name in NUMBERS})
        return cls(np.full(count, -1, np.int64), numbers, np.full(count, -1, np.int64), [], np.zeros(count, bool))

    def put_reason(self, row: int, reason: GpuCostError) -> None:
        """Say why a case has no option."""
        self.reason[row] = len(self.reasons)
        self.reasons.append(reason)


class OfferPairs(NamedTuple):
    """Offers with the layouts that they can host, offer by offer, each pair with the fleet that it takes."""

    offer: Indices  # into the market's offers
    start: Indices  # of an offer's pairs
    size: Indices
    of: Indices  # of a pair: its offer's place in `offer`
    plan: Indices  # of a pair
    fleet: Indices  # of a pair: offers of equal units take equal fleets
    fleet_plan: Indices
    unit: Floats  # of a fleet: accelerators in a unit of the offer
    least: Floats  # of a fleet: the fewest units of an order


class AtTargets(NamedTuple):
    """Layouts at their best batch: lengths and targets × layouts."""

    tpot_s: Floats
    ttft_s: Floats
    output_tokens_per_s: Floats
    prompt_time_fraction: Floats
    host_bound: Flags
    reason: Indices  # into REASONS

    @property
    def serves(self) -> Flags:
        """Whether the model fits and meets the targets."""
        return np.asarray(self.reason == 0)


class Winners(ColumnStruct, frozen=True):
    """Of each case the offer and the layout of its first option; where none is, what comes nearest."""

    offer: Indices  # into the market's offers; −1 where none is
    plan: Indices
    fewest_gpus: Floats  # of all fleets that serve the case; infinite where none does
    cheapest: Indices  # the offer with the least month of all that serve it
    month_usd: Floats  # that month
    month_gpus: Floats  # and its accelerators
    in_doubt: Flags  # an offer that was left out may lead
    odd: Flags  # a bill has no price per token

    @classmethod
    def of(cls, count: int) -> "Winners":
        """Return as many cases without an option."""
        none, nothing_yet = np.full(count, -1, np.int64), np.full(count, np.inf)
        flags = np.zeros(count, bool)
        return cls(
            none, none.copy(), nothing_yet, none.copy(), nothing_yet.copy(), nothing_yet.copy(), flags, flags.copy()
        )

    def put(self, rows: Indices | slice, others: "Winners") -> None:
        """Take over others at `rows`."""
        for name in self.names():
            getattr(self, name)[rows] = getattr(others, name)


class ServedOffers:
    """One model on one set of offers: its layouts, and which offers can win with them whatever the load and lengths."""

    def __init__(
        self,
        request: InferenceRequest,
        architecture: Architecture,
        market: Market,
        offers: Indices,
        calibration: Calibration,
    ) -> None:
        self.request, self.architecture, self.market = request, architecture, market
        self.offers, self.ranges = offers, calibration.ranges
        self._hosts = lasting(market, offers)
        largest = largest_jobs(market, self._hosts)
        plans = replica_layouts(architecture, market.supply.keys, largest, request, calibration.values)
        self.deployments = plans.deployments
        if request.own_speed is not None and len(plans):
            refuse_own(plans.deployments, request, request.own_speed)
        # nodes of many names are one node to physics: what is equal is one layout
        rows = np.stack([*_columns_of(plans.case), *plans.traits.values()], axis=1).astype(np.float64)
        unlike, layout = _distinct(rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0])
        self._case = plans.case.take(unlike)
        self._traits = {name: column[unlike] for name, column in plans.traits.items()}
        self._gpus = self._case.placement.gpus
        alive = np.ones(len(plans), bool)
        pairs = costing.pair_up(market.supply, plans.key, alive, plans.case.placement.gpus, self._hosts)
        self._pair_offer, self._pair_plan = pairs[0], layout[pairs[1]]
        every = np.arange(len(market.facts.offers))
        measured = market.measured["serving"] | (request.own_speed is not None)
        most = tiers.most_gpus(market.supply, market.terms, every, measured)
        self._sure_gpus = np.min(np.stack(list(most.values())), axis=0)  # beyond, nobody verified the offer
        if request.include_unverified:
            self._sure_gpus = np.full(len(every), np.inf)
        self._standing = standing(request, market)
        ids = np.array([market.facts.offers[offer].offer_id for offer in self._hosts.tolist()], str)
        self._by_id = np.zeros(len(every), np.int64)
        self._by_id[self._hosts] = np.unique(ids, return_inverse=True)[1]
        self._goals = ("kgco2e",) if request.optimize == "carbon" else ()
        self._targets = ("usd_per_month", "usd_per_mtok", *self._goals)
        self._read = inputs_of(_BY_OFFER, self._targets)
        self._contenders = self._contending()

    def first_options(self, cases: Columns) -> FirstServices:
        """Return the first options of cases, whose columns bear the names of `VARIED`; infinite is not asked for."""
        results = FirstServices.of(len(cases.prompt_tokens))
        if not len(self.deployments):
            none = np.zeros(0)
            results.reasons.append(self._unserved(UnservedPlans((), _NONE, none, none), np.inf, np.inf))
            results.reason[:] = 0
            return results
        for rows, ladder, place in self._timed(cases):
            for part in _parts(len(rows), _TARGETS_AT_ONCE // (len(self._gpus) * len(LADDER))):
                self._answer(cases.take(rows[part]), rows[part], ladder, place[part], results)
        return results

    def _answer(self, cases: Columns, rows: Indices, ladder: AtBatches, place: Indices, results: FirstServices) -> None:
        """Put the first options of cases into results at `rows`; `place` says where in the ladder their lengths are."""
        plans, at = self._at_targets(cases, ladder, place)
        alive = np.any(plans.serves, axis=0)
        winners = self._winners(cases, plans, at, self._pairs(alive, self._contenders))
        doubtful = np.flatnonzero(winners.in_doubt)
        if len(doubtful):
            every = self._pairs(alive, np.ones(len(self._contenders), bool))
            winners.put(doubtful, self._winners(cases.take(doubtful), plans, at[doubtful], every))
        results.odd[rows] = winners.odd
        found = np.flatnonzero((winners.offer >= 0) & ~winners.odd)
        if len(found):
            self._bill(
                cases.take(found), rows[found], plans, at[found], winners.offer[found], winners.plan[found], results
            )
        missed = np.flatnonzero((winners.offer < 0) & ~winners.odd)
        self._say(cases.take(missed), rows[missed], plans, at[missed], winners.take(missed), results)

    # --- speed: every batch of the ladder for each pair of lengths, the best one for each pair of targets

    def _timed(self, cases: Columns) -> Iterator[tuple[Indices, AtBatches, Indices]]:
        """Yield cases with what their replicas do at every batch, and where among the lengths each case stands."""
        first, place = _distinct(cases.prompt_tokens, cases.output_tokens)
        prompt, output = cases.prompt_tokens[first], cases.output_tokens[first]
        many = len(self._gpus)
        at_once = max(1, _BATCHES_AT_ONCE // max(many * len(LADDER), 1))
        order = np.argsort(place, kind="stable")
        for start in range(0, len(first), at_once):
            length = np.arange(start, min(start + at_once, len(first)))
            begin, end = np.searchsorted(place[order], (length[0], length[-1] + 1))
            rows = order[begin:end]
            case = self._case.take(np.tile(np.arange(many), len(length)))
            flat = climb(case, np.repeat(prompt[length], many), np.repeat(output[length], many))
            shape = len(length), many
            columns = {name: getattr(flat, name) for name in flat.names()}
            ladder = AtBatches(**{name: column.reshape(*shape, *column.shape[1:]) for name, column in columns.items()})
            yield rows, ladder, place[rows] - start

    def _at_targets(self, cases: Columns, ladder: AtBatches, place: Indices) -> tuple[AtTargets, Indices]:
        """Return layouts at the best batch within each pair of targets, and which of these each case has."""
        first, at = _distinct(place, cases.tpot_ms, cases.ttft_ms)
        length, tpot_ms, ttft_ms = place[first], cases.tpot_ms[first][:, None], cases.ttft_ms[first][:, None]
        best, meets = fastest(ladder.tpot_s[length], ladder.output_tokens_per_s[length], tpot_ms)
        reason = reasons(ladder.capacity[length], ladder.ttft_s[length], meets, ttft_ms)
        cell = length[:, None], np.arange(len(self._gpus)), best
        tpot, speed = ladder.tpot_s[cell], ladder.output_tokens_per_s[cell] * self._case.rates.saturation
        if (own := self.request.own_speed) is not None:
            tpot = own_tpot_s(self.request, tpot, speed / own)
            speed, reason = np.full(speed.shape, own), late(reason, tpot, tpot_ms)
        fraction, bound = ladder.prompt_time_fraction[cell], ladder.host_bound[cell]
        return AtTargets(tpot, ladder.ttft_s[length], speed, fraction, bound, reason), at

    # --- which offers can win, and which one does

    def _contending(self) -> Flags:
        """Tell which offers no other one beats whatever the case: alike but for its price, and that surely lower.

        Of offers at one price the first by its name stays, and the first by its place, which the reason names where no
        offer keeps a budget.
        """
        request, supply, terms = self.request, self.market.supply, self.market.terms
        contending = np.zeros(len(self.market.facts.offers), bool)
        offer = self._hosts
        contending[offer] = True
        if not len(offer) or (request.autoscale and request.floor_replicas == 0):  # hours may be as few as none
            return contending
        unit, least = costing.units_of(supply, offer)
        hosted = self._hosted(offer)
        of_energy = [getattr(terms, name)[offer] for name in _OF_OFFERS if name in self._read and name not in _PRICE]
        alike = [hosted, unit, least, self._standing[offer], self._sure_gpus[offer], *of_energy]
        _, kind = _distinct(*alike)
        price = terms.usd_per_gpu_hour[offer]
        cheapest = np.full(int(kind.max()) + 1, np.inf)
        np.minimum.at(cheapest, kind, price)
        close = price <= cheapest[kind] + _ROUNDING_USD / (unit * least * HOURS_PER_MONTH)
        _, one_price = _distinct(kind, price)
        by_name, by_place = np.zeros(len(offer), bool), np.zeros(len(offer), bool)
        named = np.lexsort((self._by_id[offer], one_price))
        by_name[named[np.unique(one_price[named], return_index=True)[1]]] = True
        by_place[np.unique(one_price, return_index=True)[1]] = True
        contending[offer] = close & (by_name | by_place)
        return contending

    def _hosted(self, offer: Indices) -> Indices:
        """Return a number for each offer, the same for those that can host the same layouts."""
        sets: dict[bytes, int] = {}
        start, end = (np.searchsorted(self._pair_offer, offer, side=side) for side in ("left", "right"))
        plans = (self._pair_plan[first:last].tobytes() for first, last in zip(start, end, strict=True))
        return np.array([sets.setdefault(layouts, len(sets)) for layouts in plans], np.int64)

    def _pairs(self, alive: Flags, among: Flags) -> OfferPairs:
        """Return some of the offers with every layout that serves in some case and that they can host."""
        wanted = alive[self._pair_plan] & among[self._pair_offer]
        of_offer, plan = self._pair_offer[wanted], self._pair_plan[wanted]
        offer, start, of = np.unique(of_offer, return_index=True, return_inverse=True)
        unit, least = costing.units_of(self.market.supply, of_offer)
        first, fleet = _distinct(plan, unit, least)
        size = np.diff(start, append=len(of))
        return OfferPairs(offer, start, size, of, plan, fleet, plan[first], unit[first], least[first])

    def _winners(self, cases: Columns, plans: AtTargets, at: Indices, pairs: OfferPairs) -> Winners:
        """Return the first option of each case among pairs, some cases at a time."""
        winners = Winners.of(len(at))
        if len(pairs.plan):
            for part in _parts(len(at), _BILLS_AT_ONCE // len(pairs.plan)):
                rows = np.arange(part.start, part.stop)
                winners.put(part, self._first(cases.take(rows), plans, at[part], pairs))
        return winners

    def _first(self, cases: Columns, plans: AtTargets, at: Indices, pairs: OfferPairs) -> Winners:
        """Return the first option of each case: of each offer its best layout, of offers the first in their order."""
        serves = plans.serves[at][:, pairs.plan]
        priced, gpus = self._priced(cases, plans, at, pairs)
        month, token = priced.usd_per_month, priced.usd_per_mtok
        within = serves & (month <= cases.max_cost_usd[:, None])
        if self.request.max_gpus:
            within &= gpus <= self.request.max_gpus
        goal = token
        if self.request.optimize == "latency":
            goal = plans.tpot_s[at][:, pairs.plan]
        elif self.request.optimize == "carbon":
            goal = np.nan_to_num(priced.kgco2e / priced.carried_tokens, nan=np.inf, posinf=np.inf)

        def least(key: Floats, among: Flags) -> Floats:
            return np.asarray(np.minimum.reduceat(np.where(among, key, np.inf), pairs.start, axis=1))

        best = least(goal, within)
        among = within & (goal == best.take(pairs.of, axis=1))
        cost = best
        if goal is not token:
            cost = least(token, among)
            among &= token == cost.take(pairs.of, axis=1)
        size = least(gpus, among)
        can = np.logical_or.reduceat(within, pairs.start, axis=1)
        stand = self._standing[pairs.offer] + UNSURE * (size > self._sure_gpus[pairs.offer])
        leads = can.copy()
        for key in (stand, best, cost, size, np.broadcast_to(self._by_id[pairs.offer], can.shape)):
            leads &= key == np.where(leads, key, np.inf).min(axis=1, keepdims=True)
        first, row = np.argmax(leads, axis=1), np.arange(len(at))
        pair = pairs.start[first][:, None] + np.minimum(np.arange(pairs.size.max()), pairs.size[first][:, None] - 1)
        of_first = among[row[:, None], pair] & (gpus[row[:, None], pair] == size[row, first][:, None])
        plan = pairs.plan[pair[row, np.argmax(of_first, axis=1)]]

        winners = Winners.of(len(at))
        has = can.any(axis=1)
        winners.offer[has], winners.plan[has] = pairs.offer[first[has]], plan[has]
        winners.odd[:] = (serves & ~np.isfinite(token)).any(axis=1)
        beyond = gpus > self._sure_gpus[pairs.offer][pairs.of]
        if beyond.any() and not self._contenders[self._hosts].all():  # the layouts of one offer may stand apart
            apart = np.logical_or.reduceat(within & beyond, pairs.start, axis=1)
            apart &= np.logical_or.reduceat(within & ~beyond, pairs.start, axis=1)
            winners.in_doubt[:] = apart.any(axis=1)
        lost = np.flatnonzero(~has & serves.any(axis=1))
        if len(lost):
            months = np.where(serves[lost], month[lost], np.inf)
            pair_of = np.argmin(months, axis=1)
            winners.fewest_gpus[lost] = np.where(serves[lost], gpus[lost], np.inf).min(axis=1)
            winners.cheapest[lost] = pairs.offer[pairs.of[pair_of]]
            winners.month_usd[lost], winners.month_gpus[lost] = month[lost, pair_of], gpus[lost, pair_of]
        return winners

    def _priced(self, cases: Columns, plans: AtTargets, at: Indices, pairs: OfferPairs) -> tuple[Columns, Floats]:
        """Return what orders pairs, and the accelerators of each: cases × pairs."""
        load, terms = self._load(cases, wide=True), self.market.terms
        speed, replica = plans.output_tokens_per_s[at][:, pairs.fleet_plan], self._gpus[pairs.fleet_plan]
        fleet = costing.fleet_of(load, pairs.unit, replica, pairs.least, speed)
        factors = costing.fleet_factors(load, replica, speed, fleet)
        made = tuple(line.name for line in _OF_FLEETS if line.name in self._read)
        of_fleets = {**factors, **evaluate_columns(_OF_FLEETS, factors, CONSTANTS, made)}
        inputs = Columns({name: of_fleets[name].take(pairs.fleet, axis=-1) for name in self._read if name in of_fleets})
        for name in _OF_OFFERS:
            if name in self._read:
                inputs[name] = getattr(terms, name)[pairs.offer][pairs.of]
        priced = evaluate_columns(_BY_OFFER, inputs, CONSTANTS, self._targets)
        gpus = (fleet.units * pairs.unit).take(pairs.fleet, axis=1)
        return Columns(priced, carried_tokens=inputs.carried_tokens), gpus

    def _load(self, cases: Columns, *, wide: bool = False) -> MonthlyLoad:
        """Return the load of cases; `wide`: each a row that meets many fleets."""
        usual = MonthlyLoad.of(self.request)

        def column(values: Floats) -> Floats:
            return values[:, None] if wide else values

        rate = None
        if self.request.requests_per_s is not None:
            rate = column(cases.requests_per_s)
        elif self.request.tokens_per_month is not None:
            tokens = cases.prompt_tokens + cases.output_tokens
            rate = column(costing.rate_of(cases.tokens_per_month, tokens))
        share = cases.utilisation_fraction
        if not self.request.has_demand and not self.request.utilisation_given:
            share = np.broadcast_to(usual.utilisation_fraction, share.shape)
        return replace(
            usual,
            prompt_tokens=column(cases.prompt_tokens),
            output_tokens=column(cases.output_tokens),
            requests_per_s=rate,
            utilisation_fraction=column(share),
            redundancy=column(cases.redundancy),
        )

    # --- the answer: the whole bill of first options, reasons of cases without one

    def _bill(
        self,
        cases: Columns,
        rows: Indices,
        plans: AtTargets,
        at: Indices,
        offer: Indices,
        plan: Indices,
        results: FirstServices,
    ) -> None:
        """Put the whole answer of offers and layouts into results at `rows`."""
        supply, terms = self.market.supply, self.market.terms
        width = np.full(len(at), OWN_WIDTH)
        if self.request.own_speed is None:
            traits = {name: column[plan] for name, column in self._traits.items()}
            stated = self.request.server is not None
            width = widths(traits, plans.host_bound[at, plan], self.ranges, stated_server=stated)
        speed, fraction = plans.output_tokens_per_s[at, plan], plans.prompt_time_fraction[at, plan]
        speeds = ReplicaSpeeds(self._gpus[plan], speed, width, fraction)
        load = self._load(cases)
        fleets = costing.fleets_of(load, supply, offer, speeds)
        costs = price_months(costing.factors_of(load, terms, offer, speeds, fleets))
        columns = {
            **costs,
            "gpus": fleets[0].units * supply.unit_gpus[offer],
            "replicas": fleets[0].replicas,
            "ttft_ms": plans.ttft_s[at, plan] * MS_PER_S,
            "tpot_ms": plans.tpot_s[at, plan] * MS_PER_S,
            "usd_per_gpu_hour": terms.usd_per_gpu_hour[offer],
        }
        results.offer[rows] = offer
        for name, column in results.numbers.items():
            column[rows] = np.where(np.isfinite(columns[name]), columns[name], np.nan)

    def _say(
        self, cases: Columns, rows: Indices, plans: AtTargets, at: Indices, nearest: Winners, results: FirstServices
    ) -> None:
        """Put into results at `rows` why these cases have no option, as a single answer says it."""
        request, offers = self.request, self.market.facts.offers
        said: dict[int, int] = {}
        serving: dict[int, int] = {}
        for place, (row, key) in enumerate(zip(rows.tolist(), at.tolist(), strict=True)):
            if nearest.cheapest[place] < 0:
                if key not in said:
                    tried = UnservedPlans(self.deployments, plans.reason[key], plans.ttft_s[key], plans.tpot_s[key])
                    results.put_reason(
                        row, self._unserved(tried, float(cases.ttft_ms[place]), float(cases.tpot_ms[place]))
                    )
                    said[key] = int(results.reason[row])
                results.reason[row] = said[key]
            elif nearest.fewest_gpus[place] > (request.max_gpus or np.inf):
                results.put_reason(row, too_large(request, int(nearest.fewest_gpus[place])))
            else:
                if key not in serving:
                    pairs = self._pairs(plans.serves[key], np.ones(len(self._contenders), bool))
                    serving[key] = len(pairs.offer)
                offer, month = offers[int(nearest.cheapest[place])], float(nearest.month_usd[place])
                budget, gpus = float(cases.max_cost_usd[place]), int(nearest.month_gpus[place])
                results.put_reason(row, over_budget(budget, serving[key], month, offer, gpus))

    def _unserved(self, tried: UnservedPlans, ttft_ms: float, tpot_ms: float) -> GpuCostError:
        """Return why no layout serves a case with these targets."""
        targets = {"ttft_ms": ttft_ms, "tpot_ms": tpot_ms}
        stated = {name: None if value == np.inf else value for name, value in targets.items()}
        return nothing(replace(self.request, **stated), self.architecture, self.market, tried, self.offers)


_PRICE = ("usd_per_gpu_hour",)


def _parts(count: int, at_once: int) -> Iterator[slice]:
    for start in range(0, count, max(at_once, 1)):
        yield slice(start, min(start + max(at_once, 1), count))


_NONE = np.zeros(0, np.int64)


def _columns_of(case: ServingCase) -> Iterator[NDArray[Any]]:
    for part in astuple(case):
        yield from astuple(part)


def _distinct(*columns: NDArray[np.generic]) -> tuple[Indices, Indices]:
    """Return the first row of each distinct one of columns, in their order, and which of them each row is.

    >>> first, place = _distinct(np.array([1.0, 0.0, 1.0]), np.array([2.0, 2.0, 2.0]))
    >>> first.tolist(), place.tolist()
    ([0, 1], [0, 1, 0])
    """
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code = np.unique(column, return_inverse=True)[1]
        number = np.unique(number * (int(code.max(initial=0)) + 1) + code, return_inverse=True)[1]
    _, first, place = np.unique(number, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[place]
