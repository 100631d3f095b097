"""A service level instead of saturation: the load that a replica holds within it, found by simulation.

The table of offers is made as ever, by the capacity of replicas at saturation. On each accelerator the layouts that
are cheapest there are then simulated under the traffic that is asked, at ever nearer rates, for the highest one whose
percentiles keep the targets: that is a layout's capacity, from which replicas, bills and the order of the offers follow
anew. Over a day whose hours differ the percentiles are those of all its requests, and no hour is asked more than
replicas can do. A layout that could not be cheaper even at its full capacity is not simulated. Prompts may be read on
replicas of their own (`disaggregated`), from which the cache goes over the network to those that write.
"""

from collections.abc import Sequence
from math import ceil, exp, inf
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple, replace

from gpucost.answers.serving import KneePoint, LevelFigures, LevelHours, PoolFigures
from gpucost.catalog import Catalog
from gpucost.errors import NothingFitsError, UsageError
from gpucost.physics.columns import Floats
from gpucost.physics.serving.replica import WARMING, ReplicaEngine, Requests, engine_of, range_of, sampled, simulate
from gpucost.physics.serving.steps import cache_bytes_per_sequence
from gpucost.serving.costing import MonthlyLoad
from gpucost.serving.request import InferenceRequest
from gpucost.units import GIGA, MS_PER_S
from gpucost.workloads.arrivals import CHAT_VARIATION, SEED, gaps, lengths, trace_of, variation_by, variation_of, whole
from gpucost.workloads.service import REASONS, Plans

_REQUESTS = 1200  # of one simulation: the 99th percentile is the 11th longest that counts
_SEARCHED = 500  # of them that a rate is sought with; the rate that they find is then tried with all
_MOST_OF_TRACE = 3000  # requests that are simulated, from its start
_MOST_REPLICAS = 400  # kinds of them that one answer simulates
_LAYOUTS = 3  # of one accelerator that are tried, the cheapest at saturation
_ROUNDS = 5  # of halving: the rate is found to 1/32 of capacity
_TOO_DEAR = 4.0  # times what the cheapest holds: an accelerator whose tokens cost more even when full is not simulated
_ALIKE = 0.05  # by which the speeds of one layout on two nodes may differ at saturation, to be simulated once
_STEP_BACK = 0.92  # of a rate that all requests do not keep, though the first of them do
_LEAST_SHARE = 0.02  # of capacity at which a replica must keep the level, or it never does
_MOST_BUSY = 0.9  # of its capacity that a pool without a target of its own is asked
_HOUR_KINDS = 8  # of a day that are simulated, at most  # a day of 168 different hours would take as many simulations
_KNEE_SHARES = (0.1, 0.3, 0.5, 0.65, 0.8, 0.9, 1.0, 1.1)  # of the rate that is held, at which the knee is drawn
_PERCENTILES = (50, 95, 99)
_TIMES = {"ttft_s": "ttft", "tpot_s": "tpot", "e2e_s": "e2e"}


class HourKind(NamedTuple):
    """Hours of a day, or of a week, in which a replica is sent about the same."""

    rate: float  # against the busiest hour
    share: float  # of all requests, that arrive in them
    hours: float
    replicas: float  # that serve in them, on average


_FLAT = (HourKind(1.0, 1.0, 24.0, 1.0),)


def hours_of(load: MonthlyLoad, capacity_per_s: float) -> tuple[float, tuple[HourKind, ...]]:
    """Return the rate of a replica in the busiest hour, and the kinds of hours, the busiest first.

    `capacity_per_s` is what one replica keeps up with: by it replicas follow the load, where they do.
    """
    assert load.requests_per_s is not None
    hours, weights = (column[load.weights > 0] for column in (load.hours, load.weights))
    sent = float(load.requests_per_s[0]) * weights
    needing = weights if load.autoscale else np.full(len(weights), weights[-1])
    serving = np.array([float(load.serving(np.array([capacity_per_s]), float(weight))[0]) for weight in needing])
    rate = sent / np.maximum(serving, 1.0)
    most = float(rate.max())
    # hours of the same rate are one kind; of too many rates, those of one eighth of the busiest, taken at its top
    kind = np.round(rate / most, 6) if len(rate) <= _HOUR_KINDS else np.ceil(rate / most * _HOUR_KINDS - 1e-9)
    kinds = []
    for number in np.unique(kind)[::-1]:
        alike = kind == number
        many, requests = hours[alike], (sent * hours)[alike]
        busy = float((rate[alike] * many).sum() / many.sum() / most)
        share = float(requests.sum() / (sent * hours).sum())
        kinds.append(HourKind(busy, share, float(many.sum()), float((serving[alike] * many).sum() / many.sum())))
    return most, tuple(kinds)


class Traffic(Struct, frozen=True):
    """Requests as columns, to be sent at any rate: gaps have a mean of one."""

    gaps: Floats
    prompt_tokens: Floats
    output_tokens: Floats
    cached_tokens: Floats  # of each prompt, that the prefix cache holds
    day: tuple[HourKind, ...] = _FLAT

    def at(self, rate: float) -> Requests:
        """Return the requests at a rate per second."""
        arrived = np.cumsum(self.gaps) / rate
        return Requests(arrived, self.prompt_tokens, self.output_tokens, self.cached_tokens)

    def first(self, count: int) -> "Traffic":
        """Return the first requests."""
        columns = (self.gaps, self.prompt_tokens, self.output_tokens, self.cached_tokens)
        gaps, prompt, output, cached = (column[:count] for column in columns)
        return Traffic(gaps, prompt, output, cached, self.day)


def traffic_of(request: InferenceRequest, catalog: Catalog) -> Traffic:
    """Return the traffic that is asked, drawn by a fixed seed; of a trace its own gaps, in its order.

    Lengths are those of the trace too, unless means are stated; of means without a spread that of conversations. What
    the prefix cache holds of each prompt goes with what a trace had seen of it, in sum the share that is asked.
    """
    draw = np.random.default_rng(SEED)
    trace, hit = trace_of(request.arrivals, catalog), request.prefix_hit_fraction or 0.0
    if trace is None:
        between = gaps(draw, 1.0, _REQUESTS, variation_of(request.arrivals))
        spread = (request.prompt_p95_tokens, request.output_p95_tokens)
        means = (request.prompt_tokens, request.output_tokens)
        prompt, output = (
            lengths(draw, mean, _REQUESTS, usual if p95 is None else variation_by(mean, p95))
            for mean, p95, usual in zip(means, spread, CHAT_VARIATION, strict=True)
        )
        return Traffic(between, prompt, output, hit * prompt)
    # of a trace its start: what follows is of another hour or day
    few = trace.take(np.arange(min(len(trace), _MOST_OF_TRACE)))
    between = np.diff(few.arrived_s, prepend=few.arrived_s[0])
    prompt, output = whole(few.prompt_tokens, request.prompt_tokens), whole(few.output_tokens, request.output_tokens)
    # a smaller share than the trace's scales what is cached; a larger one scales what is not, so that none exceeds 1
    seen = few.cached_tokens / few.prompt_tokens
    mean = float((seen * prompt).sum() / prompt.sum())
    cached = seen * (hit / mean) if hit < mean else 1 - (1 - seen) * (1 - hit) / max(1 - mean, 1e-9)
    return Traffic(between / max(float(between.mean()), 1e-9), prompt, output, cached * prompt)


class ServiceLevel(NamedTuple):
    """What is asked of percentiles, in seconds."""

    ttft_s: float
    tpot_s: float
    percentile: float

    @classmethod
    def of(cls, request: InferenceRequest) -> "ServiceLevel":
        """Return the level of a request; what is not asked for has no limit."""
        ttft, tpot = request.slo_ttft_ms or inf, request.slo_tpot_ms or inf
        return cls(ttft / MS_PER_S, tpot / MS_PER_S, request.percentile)


class AnsweredTimes(NamedTuple):
    """The times of every request in their order, NaN where it has none, and what the replica did."""

    ttft_s: Floats
    tpot_s: Floats
    e2e_s: Floats
    complete: bool  # every request was served
    preempted: float
    prompt_time_fraction: float
    cached_time_fraction: float
    busy_s: float
    warming: float = WARMING  # the share of the first requests, which met an empty replica

    def counted(self, name: str) -> Floats:
        """Return the times of the requests that count: those after the first."""
        times: Floats = getattr(self, name)
        times = times[np.isfinite(times)]
        return times[int(self.warming * len(times)) :]

    def late(self, level: ServiceLevel) -> Floats:
        """Return the shares of requests whose first token, and whose others, come later than the level."""
        both = (self.counted("ttft_s") > level.ttft_s, self.counted("tpot_s") > level.tpot_s)
        return np.array([float(late.mean()) if len(late) else 0.0 for late in both])

    def within(self, level: ServiceLevel) -> float:
        """Return the share of requests that keep every target."""
        each = np.nan_to_num(self.tpot_s, nan=0.0)
        return float(np.mean((self.ttft_s <= level.ttft_s) & (each <= level.tpot_s) & np.isfinite(self.e2e_s)))

    def keep(self, level: ServiceLevel) -> bool:
        """Tell whether the percentile of every time keeps its target, and all were served."""
        targets = (("ttft_s", level.ttft_s), ("tpot_s", level.tpot_s))
        if not self.complete:
            return False
        for name, target in targets:
            times = self.counted(name)
            if len(times) and float(np.percentile(times, level.percentile)) > target:
                return False
        return True


class Replica(Struct, frozen=True):
    """A replica as it is simulated: for whole requests, or for one of their phases."""

    engine: ReplicaEngine
    phase: str = ""  # prompts or tokens, where phases have replicas of their own
    transfer_s_per_token: float = 0.0  # of a prompt's cache, from the one that reads to the one that writes

    def answers(self, traffic: Traffic, rate: float, level: ServiceLevel | None = None) -> AnsweredTimes:
        """Return what becomes of traffic over its day, at a rate in the busiest hour.

        An hour is long against an answer: each kind is simulated as if it lasted (the pointwise stationary
        approximation, Green and Kolesar 1991). With a level a simulation ends where it is surely broken.
        """
        every = []
        for hours in traffic.day:
            every.append(self.steady(traffic, rate * hours.rate, level, hours.share))
            if level is not None and not every[-1].complete:
                break
        if len(every) == 1:
            return every[0]
        # the times of a day's requests: of every kind of hours its share, evenly mixed
        count = len(every[0].e2e_s)
        rows, places = [], []
        for times, hours in zip(every, traffic.day, strict=False):
            first = int(times.warming * count)
            many = max(round(hours.share * count), 1)
            place = (np.arange(many) + 0.5) / many
            places.append(place)
            rows.append((first + place * (count - first)).astype(np.int64))
        order = np.argsort(np.concatenate(places), kind="stable")

        def mixed(name: str) -> Floats:
            columns = [getattr(times, name)[row] for times, row in zip(every, rows, strict=True)]
            day_times: Floats = np.concatenate(columns)[order]
            return day_times

        busy = np.array([times.busy_s * hours.share for times, hours in zip(every, traffic.day, strict=False)])
        shares = [hours.share for hours in traffic.day[: len(every)]]
        return AnsweredTimes(
            mixed("ttft_s"),
            mixed("tpot_s"),
            mixed("e2e_s"),
            all(times.complete for times in every),
            float(np.dot(shares, [times.preempted for times in every])),
            float(np.average([times.prompt_time_fraction for times in every], weights=busy)),
            float(np.average([times.cached_time_fraction for times in every], weights=busy)),
            float(busy.sum()),
            0.0,
        )

    def keeps(self, traffic: Traffic, rate: float, level: ServiceLevel) -> bool:
        """Tell whether a rate in the busiest hour keeps a level over the day; quieter hours do no worse than others."""
        if len(traffic.day) == 1:
            return self.answers(traffic, rate, level).keep(level)
        allowed, late, unseen_fraction = 1 - level.percentile / 100, np.zeros(2), 1.0
        for hours in traffic.day:
            times = self.steady(traffic, rate * hours.rate, level, hours.share)
            unseen_fraction -= hours.share
            late = late + hours.share * times.late(level)
            # broken already, or kept even if all hours that are left were as late as this busier one
            if not times.complete or (late > allowed).any():
                return False
            if (late + unseen_fraction * times.late(level) <= allowed).all():
                return True
        return True

    def steady(self, traffic: Traffic, rate: float, level: ServiceLevel | None, share: float = 1.0) -> AnsweredTimes:
        """Return what becomes of traffic at a rate that lasts; `share` of all requests are sent at it.

        A replica for prompts gives the first token, once the cache is sent; one for tokens is met with the cache of the
        whole prompt, and what it lets wait is part of the time per token.
        """
        requests = traffic.at(rate)
        sent_s = self.transfer_s_per_token * requests.prompt_tokens
        if self.phase == "prompts":
            requests = replace(requests, output_tokens=np.ones(len(requests)))
        elif self.phase == "tokens":
            requests = replace(requests, cached_tokens=requests.prompt_tokens)
        # once more are late than the percentile allows of a day's requests, the rest of the simulation is spared
        counted = (1 - WARMING) * len(requests) / share
        most = None if level is None else int((1 - level.percentile / 100) * counted) + 1
        late_s = inf if level is None else level.ttft_s
        done = simulate(self.engine, requests, late_s=late_s, most_late=most)
        begun = done.sent_s if self.phase == "tokens" else done.first_s
        more = np.where(requests.output_tokens > 1, requests.output_tokens - 1, np.nan)
        busy = max(done.busy_s, 1e-12)
        return AnsweredTimes(
            done.first_s - done.sent_s + (sent_s if self.phase == "prompts" else 0.0),
            (done.done_s - begun) / more,
            done.done_s - done.sent_s,
            not done.refused and bool(done.served.all()),
            done.preempted,
            done.prompt_s / busy,
            done.cached_s / busy,
            busy,
        )

    def most_per_s(self, traffic: Traffic) -> float:
        """Return the rate that a replica of one phase cannot exceed: full passes of prompts, or a full batch."""
        engine, times = self.engine, self.engine.times
        prompt, output = float(traffic.prompt_tokens.mean()), float(traffic.output_tokens.mean())
        fresh = max(prompt - float(traffic.cached_tokens.mean()), 1.0)
        if self.phase == "prompts":
            budget = max(engine.budget_tokens, 1.0)
            return budget / (times.prompts_s(0, budget) + times.attention_s(budget, prompt / 2)) / fresh
        context = prompt + output / 2
        running = max(int(min(engine.seats, engine.cache_tokens / context)), 1)
        return running * engine.tokens_per_step / times.decode_s(running, running * context) / output


class SizedReplica(Struct, frozen=True):
    """A replica with the highest rate at which it keeps the level."""

    replica: Replica
    requests_per_s: float  # 0 where it never does
    answered: AnsweredTimes | None = None  # at that rate, all requests
    traffic: Traffic | None = None  # by which it was tried

    @property
    def prompt_time_fraction(self) -> float:
        """The share of its busy time that prompts take, at the rate that it holds."""
        return self.answered.prompt_time_fraction if self.answered else 0.0

    @property
    def cached_time_fraction(self) -> float:
        """The share of its busy time that attention to cached tokens takes."""
        return self.answered.cached_time_fraction if self.answered else 0.0

    def answers(self, traffic: Traffic, rate: float) -> AnsweredTimes:
        """Return what becomes of traffic at a rate of its own."""
        if self.answered and rate == self.requests_per_s and traffic is self.traffic:
            return self.answered
        return self.replica.answers(traffic, rate)

    def pools(self, traffic: Traffic) -> PoolFigures | None:
        """Return the pools of the phases: none, both are on one replica."""
        return None


class _SizedPools(Struct, frozen=True):
    """Replicas for prompts and for tokens, in the ratio in which both are as full as the level allows."""

    prompts: SizedReplica
    tokens: SizedReplica
    prompt_replicas: float  # whole where a load is asked, else the share of all
    token_replicas: float
    requests_per_s: float  # for each replica of either kind

    @property
    def prompt_time_fraction(self) -> float:
        """The share of the replicas that read prompts: they are paid for by the hour, whatever they do."""
        return self.prompt_replicas / (self.prompt_replicas + self.token_replicas)

    @property
    def cached_time_fraction(self) -> float:
        """The share of all replicas' time that attention to cached tokens takes."""
        cached, reading = self.prompts.cached_time_fraction, self.prompts.prompt_time_fraction
        return self.prompt_time_fraction * cached / max(reading, 1e-12)

    def answers(self, traffic: Traffic, rate: float) -> AnsweredTimes:
        """Return what becomes of traffic at a rate for each replica of either kind."""
        share = self.prompt_time_fraction
        read = self.prompts.answers(traffic, rate / share)
        written = self.tokens.answers(traffic, rate / (1 - share))
        return AnsweredTimes(
            read.ttft_s,
            written.tpot_s,
            read.ttft_s + written.e2e_s,
            read.complete and written.complete,
            read.preempted + written.preempted,
            share,
            self.cached_time_fraction,
            read.busy_s + written.busy_s,
            read.warming,
        )

    def pools(self, traffic: Traffic) -> PoolFigures | None:
        """Return how many replicas each phase has, what each holds, and how long a prompt's cache is on its way."""
        each = self.prompts.replica.transfer_s_per_token * MS_PER_S
        return {
            "prompt_replicas": self.prompt_replicas,
            "token_replicas": self.token_replicas,
            "prompt_replica_requests_per_s": self.prompts.requests_per_s,
            "token_replica_requests_per_s": self.tokens.requests_per_s,
            "transfer_mean_ms": each * float(traffic.prompt_tokens.mean()),
        }


Sized = SizedReplica | _SizedPools


def _within_level(
    replica: Replica, traffic: Traffic, level: ServiceLevel, capacity: float, least: float = 0.0
) -> SizedReplica:
    """Return the highest rate at which a replica keeps a level, at most its capacity at saturation.

    Below `least` it is of no use. The rate is sought with the first requests and tried with all of them.
    """
    few = traffic.first(_SEARCHED)  # a search takes seven simulations; one with all requests follows

    def keeps(rate: float) -> bool:
        return replica.keeps(few, rate, level)

    low, high = max(least, _LEAST_SHARE * capacity), capacity
    if keeps(capacity):
        low = capacity
    elif not keeps(low):
        return SizedReplica(replica, 0.0)
    while high - low > capacity / 2**_ROUNDS:  # percentiles rise with the rate: halving finds where they break
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    while low >= max(least, _LEAST_SHARE * capacity) * _STEP_BACK:
        tried = replica.answers(traffic, low, level)
        if tried.keep(level):
            return SizedReplica(replica, low, tried, traffic)
        low *= _STEP_BACK
    return SizedReplica(replica, 0.0)


def _pools_of(
    engine: ReplicaEngine, traffic: Traffic, level: ServiceLevel, transfer_s_per_token: float, load: MonthlyLoad | None
) -> Sized:
    """Return the pools that keep a level: each phase by its own target, replicas whole where a load is asked.

    A phase without a target of its own is asked nine tenths of what it can do. 10 requests a second on replicas that
    read 4 and write 3 of them: 3 and 4 replicas.
    """
    both = []
    for phase in ("prompts", "tokens"):
        target = level._replace(**{"tpot_s" if phase == "prompts" else "ttft_s": inf})
        # the way of a request to the server is in the first token, which the other pool gives
        part = engine if phase == "prompts" else replace(engine, times=replace(engine.times, way_s=0.0))
        replica = Replica(part, phase, transfer_s_per_token)
        most = replica.most_per_s(traffic) * _MOST_BUSY
        both.append(_within_level(replica, traffic, target, most))
    reads, writes = both
    if not reads.requests_per_s or not writes.requests_per_s:
        return reads if not reads.requests_per_s else writes  # the one that never keeps it stands for both
    needed = 1 / reads.requests_per_s, 1 / writes.requests_per_s
    if load is None or load.requests_per_s is None or load.autoscale:
        share = needed[0] / sum(needed)
        return _SizedPools(reads, writes, share, 1 - share, 1 / sum(needed))
    busiest = float(load.requests_per_s[0] * load.weights[-1] / load.utilisation_fraction[0])
    p, d = (ceil(busiest * each - 1e-9) for each in needed)
    return _SizedPools(reads, writes, float(p), float(d), busiest / (p + d))


class _SimulatedReplicas(Struct, frozen=True):
    """The replicas that were simulated within a level, and under which traffic."""

    replicas: dict[int, Sized]  # by plan
    traffic: Traffic
    seen: dict[tuple[int, float], LevelFigures] = {}

    def figures(self, request: InferenceRequest, plan: int, plans: Plans) -> LevelFigures:
        """Return the percentiles of an option's replica at its share of the load, or at what it holds."""
        replica, (rate, traffic) = self.replicas[plan], self.sent(request, plan)
        name = (id(replica), rate)  # plans of one kind share their replica
        if name not in self.seen:
            self.seen[name] = _figures_of(request, replica, traffic, rate, float(plans.width[plan]))
        return self.seen[name]

    def sent(self, request: InferenceRequest, plan: int) -> tuple[float, Traffic]:
        """Return what a replica is sent in the busiest hour, and in others; without a load what it holds."""
        held_per_s = self.replicas[plan].requests_per_s
        if not request.has_demand:
            return held_per_s, self.traffic
        rate, day = hours_of(MonthlyLoad.of(request), held_per_s)
        return rate, replace(self.traffic, day=day)

    def hours(self, request: InferenceRequest, plan: int) -> list[LevelHours]:
        """Return the percentiles of a plan's replica by kinds of hours, the busiest first; nothing of a flat load."""
        rate, traffic = self.sent(request, plan)
        level, kinds = ServiceLevel.of(request), []
        for hours in traffic.day if len(traffic.day) > 1 else ():
            each = rate * hours.rate
            answered = self.replicas[plan].answers(replace(traffic, day=_FLAT), each)
            kinds.append(
                LevelHours(
                    hours=hours.hours,
                    requests_per_s=each * hours.replicas,
                    replicas=hours.replicas,
                    replica_requests_per_s=each,
                    ttft_ms=_percentile_ms(answered, "ttft_s", request.percentile),
                    tpot_ms=_percentile_ms(answered, "tpot_s", request.percentile),
                    goodput_fraction=answered.within(level),
                )
            )
        return kinds

    def knee(self, request: InferenceRequest, plan: int) -> list[KneePoint]:
        """Return how the percentiles of a plan's replica rise with a load that lasts, up to beyond what it holds."""
        replica, traffic = self.replicas[plan], replace(self.traffic, day=_FLAT).first(_SEARCHED)
        points: list[KneePoint] = []
        for share in _KNEE_SHARES:
            rate = share * replica.requests_per_s
            answered = replica.answers(traffic, rate)
            ttft, tpot = (_percentile_ms(answered, name, request.percentile) for name in ("ttft_s", "tpot_s"))
            points.append({"requests_per_s": rate, "ttft_ms": ttft, "tpot_ms": tpot})
        return points

    def by_phase(self, plans: Plans) -> Plans:
        """Return plans whose cost is split by the phases as they were simulated."""
        share = plans.prompt_time_fraction.copy()
        for plan, replica in self.replicas.items():
            share[plan] = replica.prompt_time_fraction
        return replace(plans, prompt_time_fraction=share)

    def statements(self, request: InferenceRequest) -> list[str]:
        """Say what was simulated."""
        targets = [
            f"{name} within {value:g} ms"
            for name, value in (("TTFT", request.slo_ttft_ms), ("TPOT", request.slo_tpot_ms))
            if value is not None
        ]
        spread = (self.traffic.prompt_tokens, self.traffic.output_tokens)
        p95 = [f"{float(np.percentile(tokens, 95)):,.0f}" for tokens in spread]
        users = ""
        if request.users is not None:
            users = (
                f" {request.users:,.0f} users who think {request.think_s:g} s between requests send at most"
                f" {request.requests_per_s:,.3g} requests/s."
            )
        cached = float(self.traffic.cached_tokens.sum() / self.traffic.prompt_tokens.sum())
        reuse = f" The prefix cache holds {cached:.0%} of prompt tokens (--prefix-hit)." if cached else ""
        over = f", over a day of profile {request.profile}" if len(self.traffic.day) > 1 else ""
        apart = " Prompts are read on replicas of their own." if request.disaggregated else ""
        return [
            f"Replicas are sized so that {request.percentile:g} % of requests keep {' and '.join(targets)}{over}: on"
            f" each accelerator the {_LAYOUTS} cheapest layouts were simulated under {len(self.traffic.gaps):,}"
            f" requests, arrivals {request.arrivals}, 95th percentiles of {p95[0]} prompt and {p95[1]} output tokens;"
            f" accelerators whose tokens would cost over {_TOO_DEAR:g} times the cheapest are left out.{apart}{reuse}"
            f"{users}"
        ]


def rate_of_users(request: InferenceRequest, plans: Plans) -> float:
    """Return the most requests per second that users send: users ÷ (think time + the fastest answer of all plans).

    The interactive response time law; slower replicas are asked less.
    """
    assert request.users is not None
    if not plans.serves.any():
        return request.users / max(request.think_s, 1.0)
    alone_s = plans.ttft_s + plans.ladder.tpot_s[:, 0] * request.output_tokens
    return request.users / (request.think_s + float(alone_s[plans.serves].min()))


def as_asked(request: InferenceRequest) -> dict[str, Any]:
    """Return a request as it was asked: the rate of users and the utilisation within a level follow from it."""
    return (request if request.users is None else replace(request, requests_per_s=None)).to_dict()


class LevelLayout(NamedTuple):
    """One layout of an accelerator, on every kind of node that has it."""

    plans: Sequence[int]  # the cheapest first
    usd_per_h: float  # of the cheapest replica, or what is in proportion to it


def at_level(
    request: InferenceRequest, plans: Plans, layouts: Sequence[Sequence[LevelLayout]], catalog: Catalog
) -> Plans:
    """Return plans whose capacity is what they hold within the level.

    `layouts` are those of each accelerator, by what a token costs at saturation; what is not simulated does not serve.
    """
    traffic, level = traffic_of(request, catalog), ServiceLevel.of(request)
    longest = float((traffic.prompt_tokens + traffic.output_tokens).max()) + 1
    load = MonthlyLoad.of(request) if request.has_demand else None
    if load is not None and not load.autoscale:  # replicas that follow the load are as busy in every hour
        traffic = replace(traffic, day=hours_of(load, 1.0)[1])
    alike: dict[tuple[object, ...], Sized] = {}  # by what a simulation depends on
    tried: dict[int, Sized] = {}  # by plan

    def tried_at(plan: int, least: float) -> Sized:
        case, deployment = plans.case.take([plan]), plans.deployments[plan]
        name: tuple[object, ...] = deployment.accelerator.id, float(plans.sequences[plan]), least
        if plans.gpus[plan] > 1 or request.disaggregated:  # which links slow down
            name += tuple(float(column[0]) for part in astuple(case) for column in astuple(part))
            name += (deployment.system.scaleout_gb_per_s,)
        if name not in alike:
            if len(alike) >= _MOST_REPLICAS:
                raise UsageError(
                    f"more than {_MOST_REPLICAS} kinds of replicas would be simulated. Name accelerators with --gpu."
                )
            engine = engine_of(case, float(traffic.prompt_tokens.mean()), float(traffic.output_tokens.mean()), longest)
            engine = replace(engine, seats=max(min(engine.seats, int(plans.sequences[plan])), 1))
            if request.disaggregated:
                # the cache of a prompt goes over the network of the nodes, each accelerator by its own card; where
                # there is none, over the links in a node
                size = float(cache_bytes_per_sequence(case, np.array([request.prompt_tokens]))[0])
                size /= request.prompt_tokens
                chip, network_gb_per_s = case.chip, deployment.system.scaleout_gb_per_s
                link = network_gb_per_s or float(chip.link_gb_per_s[0]) or float(chip.host_gb_per_s[0])
                transfer_s_per_token = size / (link * GIGA * float(plans.gpus[plan]))
                alike[name] = _pools_of(engine, traffic, level, transfer_s_per_token, load)
            else:
                alike[name] = _within_level(Replica(engine), traffic, level, capacity_of(plan), least)
        return alike[name]

    def capacity_of(plan: int) -> float:
        return float(plans.output_tokens_per_s[plan]) / request.output_tokens

    replicas: dict[int, Sized] = {}
    # accelerators by what a token costs at saturation, the cheapest first: those behind may be spared
    lowest = inf
    for ranked in sorted(layouts, key=lambda some: some[0].usd_per_h / capacity_of(some[0].plans[0])):
        best, cheapest = None, inf
        if ranked[0].usd_per_h / capacity_of(ranked[0].plans[0]) > _TOO_DEAR * lowest:
            break
        for layout in ranked[:_LAYOUTS]:
            first = layout.plans[0]
            least = layout.usd_per_h / min(cheapest, _TOO_DEAR * lowest)  # requests/s from which on it is of use
            if not request.disaggregated and capacity_of(first) <= least:
                continue
            tried[first] = tried_at(first, least)
            rate = tried[first].requests_per_s
            if rate and layout.usd_per_h / rate < cheapest:
                best, cheapest = layout, layout.usd_per_h / rate
        if best is None:
            continue
        lowest = min(lowest, cheapest)
        for plan in best.plans:  # the same layout on other nodes, whose links may be slower
            near = abs(capacity_of(plan) / capacity_of(best.plans[0]) - 1) <= _ALIKE
            replicas[plan] = tried[best.plans[0]] if near else tried_at(plan, 0.0)
    rates = np.zeros(len(plans))
    rates[list(replicas)] = [replica.requests_per_s for replica in replicas.values()]
    if not (rates > 0).any():
        # No replica keeps the level, however little it is asked: the best percentiles that any reaches.
        fastest: dict[str, float] = {"ttft_s": inf, "tpot_s": inf}
        for plan, replica in tried.items():
            requests_per_s = _LEAST_SHARE * float(plans.output_tokens_per_s[plan]) / request.output_tokens
            if isinstance(replica, SizedReplica):
                times = Replica(replica.replica.engine).answers(traffic.first(_SEARCHED), requests_per_s)
                for name in fastest:
                    counted = times.counted(name)
                    if len(counted):
                        percentile = float(np.percentile(counted, request.percentile))
                        fastest[name] = min(fastest[name], percentile * MS_PER_S)
        ttft_ms, tpot_ms = fastest.values()
        reached = {"slo_ttft": (request.slo_ttft_ms, ttft_ms), "slo_tpot": (request.slo_tpot_ms, tpot_ms)}
        raise NothingFitsError(
            "no replica keeps this service level, however little it is asked: at the"
            f" {request.percentile:g}th percentile the fastest reaches {ttft_ms:,.0f} ms to the first token and"
            f" {tpot_ms:.3g} ms a token. Loosen --slo-ttft or --slo-tpot, or allow faster accelerators."
        ).offering(**{name: f"{int(np.ceil(ms))}ms" for name, (target, ms) in reached.items() if target and ms < inf})
    # what was not simulated is left out with what does not keep the level
    reason = np.where(plans.serves & (rates <= 0), REASONS.index("level"), plans.reason)
    speed = np.where(rates > 0, rates * request.output_tokens, plans.output_tokens_per_s)
    return replace(plans, reason=reason, output_tokens_per_s=speed, level=_SimulatedReplicas(replicas, traffic))


def _figures_of(request: InferenceRequest, replica: Sized, traffic: Traffic, rate: float, width: float) -> LevelFigures:
    """Return the percentiles of a replica at a rate, each with its range, and the share of requests within the level.

    The range is that of the step times (a replica whose steps take twice as long meets arrivals twice as dense) and
    that of the sampling, in squares of their logarithms.
    """
    level = ServiceLevel.of(request)
    usual = replica.answers(traffic, rate)
    ends = {ratio: replica.answers(traffic.first(_SEARCHED), rate * ratio) for ratio in (exp(-width), exp(width))}
    figures: dict[str, float | None] = {}
    for name, short in _TIMES.items():
        scale, unit = (MS_PER_S, "ms") if name != "e2e_s" else (1.0, "s")
        counted = usual.counted(name)
        if not len(counted):
            continue
        figures[f"{short}_mean_{unit}"] = float(counted.mean()) * scale
        for percentile in _PERCENTILES:
            point, noise = sampled(counted, percentile)
            slower = [  # the clock of an end runs slower by its ratio
                float(np.percentile(end.counted(name), percentile)) * ratio
                for ratio, end in ends.items()
                if len(end.counted(name))
            ]
            low, high = range_of(point, (min(point, *slower), max(point, *slower)), noise)
            label = f"{short}_p{percentile}_{unit}"
            figures |= {label: point * scale, f"{label}_low": low * scale, f"{label}_high": high * scale}
    return {
        "requests_per_s": rate,
        "held_requests_per_s": replica.requests_per_s,
        "goodput_fraction": usual.within(level),
        "preempted_fraction": usual.preempted / len(traffic.gaps),
        "prompt_time_fraction": replica.prompt_time_fraction,
        "cached_time_fraction": replica.cached_time_fraction,
        "pools": replica.pools(traffic),
        "figures": figures,
    }


def _percentile_ms(answered: AnsweredTimes, name: str, percentile: float) -> float | None:
    """Return a percentile of one time of the requests that count; None where none has it."""
    times = answered.counted(name)
    return float(np.percentile(times, percentile)) * MS_PER_S if len(times) else None
