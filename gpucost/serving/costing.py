"""From plans to money: demand over a day, replicas and hours of every offer, its bill, hosted prices beside it."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple, replace
from numpy.typing import NDArray

from gpucost.answers.serving import Crossing, Hosted, Volume
from gpucost.errors import DataError, UsageError
from gpucost.formula.arrays import Columns
from gpucost.gate import may_look_at, read_rows, shown
from gpucost.market.budget import budgets, chances
from gpucost.market.supply import Supply
from gpucost.market.terms import Terms
from gpucost.money.serving_bill import INPUT_NAMES, price_months
from gpucost.options import OPTIONS
from gpucost.physics import transformer
from gpucost.physics.columns import Floats, Integers
from gpucost.physics.serving.steps import steady
from gpucost.serving.request import InferenceRequest
from gpucost.types import Architecture
from gpucost.units import HOURS_PER_MONTH, HOURS_PER_WEEK, SECONDS_PER_HOUR, as_number, format_count
from gpucost.workloads.counts import units_for
from gpucost.workloads.service import Plans, at_load, requests_in_flight

# --- Demand over a day, and how many replicas are on at each hour.

_HOURS = (24, 168)
# Assumed shapes; an own profile is a CSV file with 24 or 168 numbers. `consumer`: a service of one continent, its
# evening peak twice the mean; `office`: working hours of one time zone, a tenth of the load outside them.
PROFILES: dict[str, tuple[float, ...]] = {
    "flat": (1.0,) * 24,
    "office": (1.0,) * 8 + (5.0, 9.0, 10.0, 10.0, 8.0, 9.0, 10.0, 10.0, 9.0, 6.0) + (2.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "consumer": (3, 2, 1.5, 1, 1, 1.2, 2, 3, 4, 5, 5.5, 6, 6, 6, 6, 6, 6.5, 7, 8, 9, 9.5, 9, 7, 5),
}


def profile_of(name: str) -> Floats:
    """Return the hourly weights of a profile, with a mean of one: a known name, or a file of 24 or 168 numbers.

    >>> float(profile_of("flat").mean()), len(profile_of("office"))
    (1.0, 24)
    """
    weights = np.array(PROFILES[name] if name in PROFILES else read_profile(name), dtype=np.float64)
    shares: Floats = weights / weights.mean()
    return shares


def read_profile(path: str) -> list[float]:
    """Read the weights of a file: one number per cell, 24 for a day or 168 for a week."""
    if not (may_look_at(path) and os.path.exists(path)):
        raise UsageError(f"--profile: {shown(path)} is neither a file nor one of {', '.join(PROFILES)}.")
    cells = [(line, cell) for line, row in read_rows(path) for cell in row if cell]
    numbers = []
    for index, (line, cell) in enumerate(cells):
        try:
            numbers.append(as_number(cell))
        except ValueError:
            if index == 0:
                continue  # a heading
            raise DataError(f"{shown(cell)} is not a number", file=path, row=line) from None
    if len(numbers) not in _HOURS:
        raise DataError(f"holds {len(numbers)} numbers; a profile has 24 (a day) or 168 (a week)", file=path)
    if min(numbers) < 0 or max(numbers) <= 0 or not np.isfinite(numbers).all():
        raise DataError("weights must be zero or more, finite, and not all zero", file=path)
    return numbers


class MonthlyLoad(Struct, frozen=True):
    """What a month asks for: a row for each case, or one for all; hours of the profile with one weight are together."""

    prompt_tokens: Floats
    output_tokens: Floats
    requests_per_s: Floats | None  # on average; None where no load is given
    utilisation_fraction: Floats  # at the busiest hour; without a load, always
    redundancy: Floats
    replicas: int | None
    gpus: int | None  # in all, without a load: as many replicas as they hold
    autoscale: bool
    floor_replicas: int
    weights: Floats  # of hours against the mean one, rising
    hours: Floats  # that have each weight

    @property
    def tokens_per_request(self) -> Floats:
        """Prompt and output of one request."""
        return self.prompt_tokens + self.output_tokens

    @classmethod
    def of(cls, request: InferenceRequest) -> "MonthlyLoad":
        """Return the load of one request."""
        weights, hours = np.unique(profile_of(request.profile), return_counts=True)
        stated = request.has_demand or request.utilisation_given
        return cls(
            np.array([float(request.prompt_tokens)]),
            np.array([float(request.output_tokens)]),
            np.array([mean_rate(request)]) if request.has_demand else None,
            np.array([request.utilisation_fraction if stated else 1.0]),
            np.array([float(request.redundancy)]),
            request.replicas,
            request.gpus,
            request.autoscale,
            request.floor_replicas,
            weights,
            hours.astype(np.float64),
        )

    def serving(self, capacity: Floats, weight: float) -> Floats:
        """Return the replicas that serve in an hour of a weight: those that are fixed, else those that it needs."""
        if self.replicas is not None:
            return np.full(np.broadcast_shapes(capacity.shape, self.prompt_tokens.shape), float(self.replicas))
        return self.needed(capacity, weight)

    def busiest(self, capacity: Floats) -> Floats:
        """Return the requests per second that reach one serving replica in the busiest hour; replicas share them."""
        assert self.requests_per_s is not None
        weight = float(self.weights[-1])
        return self.requests_per_s * weight / np.maximum(self.serving(capacity, weight), 1.0)

    def needed(self, capacity: Floats, weight: float) -> Floats:
        """Return the replicas that an hour of a weight needs: ⌈rate · weight ÷ usable capacity⌉, at least the floor.

        `capacity` is in requests per second and replica. 10 requests/s on replicas of 4, used in full: 3.

        >>> one = np.ones(1)
        >>> MonthlyLoad(one, one, 10 * one, one, 0 * one, None, None, False, 1, one, one).needed(np.array([4.0]), 1.0)
        array([3.])
        """
        assert self.requests_per_s is not None
        needed = np.ceil(self.requests_per_s * weight / (capacity * self.utilisation_fraction) - 1e-9)
        return np.maximum(needed, max(self.floor_replicas, 0 if self.autoscale else 1))


# --- Beside the prices of hosted models: the same or a comparable one, and the volume at which self-hosting pays.

MTOK = 1e6
_SAME_SIZE = 0.03  # parameters within this share count as comparable
_CURVE_POINTS = 41  # of a curve that is drawn
_CURVE_SPAN = 100.0  # times smaller and larger than its middle
STALE_DAYS = OPTIONS["on_demand"].age_limit_days


def hosted_prices(
    rows: Iterable[Mapping[str, Any]],
    architecture: Architecture,
    comparable: Mapping[str, float],
    request: InferenceRequest,
    as_of: date,
    peaks: Iterable[Mapping[str, Any]] = (),
) -> list[Hosted]:
    """Return the newest price of each listing of the model, cheapest blend first; what has ended is not offered.

    A service runs around the clock: where some hours of the week cost more, the price is the mean of the week.
    """
    hours = list(peaks)
    listings: list[Hosted] = []
    for row in offered(rows, as_of):
        if row["model_id"] not in (architecture.name, *comparable):
            continue
        # its own prices, moved by those of its peak hours by their share of the week
        mean = dict(row)
        for peak in hours:
            same = (peak["provider"], peak["listing"]) == (row["provider"], row["listing"])
            if same and peak["valid_from"] <= as_of and row["observed_on"] >= peak["valid_from"]:
                days = peak["last_weekday"] - peak["first_weekday"] + 1
                share = days * (peak["to_hour_utc"] - peak["from_hour_utc"]) / HOURS_PER_WEEK
                for name in _TOKEN_PRICES:
                    if row[name] is not None and peak[name] is not None:
                        mean[name] += share * (peak[name] - row[name])
        # the blend at the request's mix; cached input at its own price where there is one
        prompt_usd, output_usd = mean["input_usd_per_mtok"], mean["output_usd_per_mtok"]
        cached, hit = mean["cached_input_usd_per_mtok"], request.prefix_hit_fraction or 0.0
        prompt = prompt_usd * (1 - hit) + (cached if cached is not None else prompt_usd) * hit
        blend = (prompt * request.prompt_tokens + output_usd * request.output_tokens) / request.tokens_per_request
        discount = mean.get("batch_discount_fraction")
        age_days = (as_of - mean["observed_on"]).days
        same_model = mean["model_id"] == architecture.name
        listings.append(
            {
                "provider": mean["provider"],
                "listing": mean["listing"],
                "model": mean["model_id"],
                "same_model": same_model,
                "usd_per_mtok_input": prompt_usd,
                "usd_per_mtok_output": output_usd,
                "usd_per_mtok_cached_input": cached,
                "usd_per_mtok": blend,
                "usd_per_mtok_batch": None if discount is None else blend * (1 - discount),
                "observed_on": mean["observed_on"].isoformat(),
                "age_days": age_days,
                "stale": age_days > STALE_DAYS,
                "source_id": mean["source_id"],
                "note": "" if same_model else "a comparable model, not the same",
            }
        )
    return sorted(listings, key=lambda entry: (not entry["same_model"], entry["usd_per_mtok"], entry["provider"]))


def offered(rows: Iterable[Mapping[str, Any]], as_of: date) -> list[Mapping[str, Any]]:
    """Return the newest row of each product that a seller of tokens has on offer on a day."""
    newest: dict[tuple[str, str], Mapping[str, Any]] = {}
    seen: dict[str, date] = {}
    for row in (row for row in rows if row["observed_on"] <= as_of):
        provider = str(row["provider"])
        name = (provider, str(row["listing"]).removeprefix(f"{provider}/"))  # lists of others put the seller before it
        if name not in newest or row["observed_on"] > newest[name]["observed_on"]:
            newest[name] = row
        seen[provider] = max(seen.get(provider, row["observed_on"]), row["observed_on"])
    # a product that its seller's newer lists no longer hold has ended
    return [
        row
        for row in newest.values()
        if not row["suspect"]
        and not (row["valid_until"] and row["valid_until"] < as_of)
        and (seen[row["provider"]] - row["observed_on"]).days <= STALE_DAYS
    ]


_TOKEN_PRICES = ("input_usd_per_mtok", "output_usd_per_mtok", "cached_input_usd_per_mtok")


def break_even(
    usd_per_hour: float, tokens_per_s: float, redundant_usd_per_hour: float, api_usd_per_mtok: float
) -> Crossing:
    """Return the volume at which own replicas cost what an API does, idle hours included.

    `usd_per_hour` and `tokens_per_s` are those of the smallest group that can be bought, `redundant_usd_per_hour` what
    stands beside it whatever the volume. With r groups the volume is (r·C + R)·730 ÷ p, and it must not exceed what
    they serve. Just above what r groups serve one more stands nearly idle: own replicas cost no more at any volume from
    there on only where r + 1 groups cost no more than the API for what r serve. A group of 10 USD/h that serves 10,000
    tokens/s against 1 USD per million: 7.3 thousand million a month; at 35 USD/h 25.55, and for good from 894.25 on.

    >>> found = break_even(10.0, 10_000.0, 0.0, 1.0)
    >>> round(found["tokens_per_month"] / 1e9, 3), round(found["utilisation_fraction"], 3)
    (7.3, 0.278)
    >>> round(break_even(35.0, 10_000.0, 0.0, 1.0)["always_tokens_per_month"] / 1e9, 2)
    894.25
    """
    price = api_usd_per_mtok / MTOK
    capacity = tokens_per_s * SECONDS_PER_HOUR  # tokens per hour of one group
    gain = price * capacity - usd_per_hour
    if gain <= 0:
        own_usd_per_mtok = usd_per_hour / capacity * MTOK
        note = (
            f"The API is always cheaper, at {api_usd_per_mtok:.3g} USD per million tokens:"
            f" replicas as busy as planned cost {own_usd_per_mtok:.3g}."
        )
        return {
            "tokens_per_month": None,
            "always_tokens_per_month": None,
            "utilisation_fraction": None,
            "groups": None,
            "note": note,
        }
    # with r groups the volume must fit: (r·C + R) ÷ p ≤ r·capacity, so r ≥ R ÷ gain; for good, the same of r + 1
    groups = max(1, math.ceil(redundant_usd_per_hour / gain - 1e-9))
    hourly = groups * usd_per_hour + redundant_usd_per_hour
    volume = hourly * HOURS_PER_MONTH / price
    share = volume / (groups * capacity * HOURS_PER_MONTH)
    lasting = max(math.ceil((redundant_usd_per_hour + price * capacity) / gain - 1e-9) - 1, groups)
    always = (lasting * usd_per_hour + redundant_usd_per_hour) * HOURS_PER_MONTH / price
    note = f"Below {format_count(volume)} tokens a month the API is cheaper: idle hours cost money too."
    if always > 1.005 * volume:  # nearer than the three digits that are printed, both are one
        note += f" From {format_count(always)} on it never is; between them it depends on how full the last replica is."
    return {
        "tokens_per_month": volume,
        "always_tokens_per_month": always,
        "utilisation_fraction": share,
        "groups": groups,
        "note": note,
    }


def curve(
    usd_per_hour: float, tokens_per_s: float, redundant_usd_per_hour: float, api_usd_per_mtok: float, middle: float
) -> list[Volume]:
    """Return the cost per month of both sides over volumes around `middle`: steps against a straight line."""
    capacity = tokens_per_s * SECONDS_PER_HOUR * HOURS_PER_MONTH
    points: list[Volume] = []
    for index in range(_CURVE_POINTS):
        volume = middle * _CURVE_SPAN ** (2 * index / (_CURVE_POINTS - 1) - 1)
        groups = max(1, math.ceil(volume / capacity - 1e-9))
        own_usd = (groups * usd_per_hour + redundant_usd_per_hour) * HOURS_PER_MONTH
        points.append(
            {"tokens_per_month": volume, "self_host_usd": own_usd, "api_usd": volume / MTOK * api_usd_per_mtok}
        )
    return points


def comparable_models(architecture: Architecture, kin: Sequence[Architecture]) -> dict[str, float]:
    """Return those of its family whose total and active parameters nearly equal the model's."""
    alike = [model for model in kin if model.name != architecture.name]
    if not alike:
        return {}
    shape = transformer.stack([architecture, *alike])
    total, active = transformer.total_parameters(shape), transformer.active_parameters(shape)
    pairs = zip(alike, total[1:] / total[0], active[1:] / active[0], strict=True)
    return {model.name: float(t) for model, t, a in pairs if abs(t - 1) <= _SAME_SIZE and abs(a - 1) <= _SAME_SIZE}


# --- From plans to money: replicas, units and hours of every offer, its bill per month, and the price of tokens.

_IDLE_POWER_FRACTION = 0.30  # share of a server's rating that an idle one draws: an assumption


class ServingFleet(Struct, frozen=True):
    """What a month takes: replicas, units, paid hours, and what they serve."""

    replicas: Floats  # at the busiest hour, redundancy included
    units: Floats  # units of the offer at the busiest hour
    gpu_hours: Floats  # per month, paid
    serving: Floats  # replicas on average, redundant ones left out
    spare_gpu_hours: Floats  # redundant replicas
    tokens: Floats  # carried in the month
    peak_load: Floats  # load of the serving replicas at the busiest hour

    def take(self, rows: Integers) -> "ServingFleet":
        """Return the fleets that `rows` names."""
        return ServingFleet(*(column[rows] for column in astuple(self)))


class Pairs(Struct, frozen=True):
    """Offers × plans, the fleet of each, and what it costs per month."""

    offer: Integers
    plan: Integers
    fleet: ServingFleet
    gpus: Floats
    factors: Columns  # what the bill follows from
    costs: Columns  # what it comes to


def pair_up(
    supply: Supply, key: Integers, serves: NDArray[np.bool_], gpus: Floats, offers: Integers
) -> tuple[Integers, Integers]:
    """Return every offer with every plan of its key that serves and that it can host; plans are columns."""
    # plans that serve, by key: those of an offer's key stand together, and each pair counts up from their first
    serving = np.flatnonzero(serves)
    of_key = serving[np.argsort(key[serving], kind="stable")]
    first = np.searchsorted(key[of_key], supply.key[offers], "left")
    count = np.searchsorted(key[of_key], supply.key[offers], "right") - first
    pair_offer = np.repeat(offers, count)
    pair_plan = of_key[np.arange(len(pair_offer)) - np.repeat(np.cumsum(count) - count - first, count)]
    fits = gpus[pair_plan] <= supply.largest_gpus[pair_offer]
    return pair_offer[fits], pair_plan[fits]


def price_pairs(
    request: InferenceRequest, plans: Plans, supply: Supply, terms: Terms, offer: Integers, plan: Integers
) -> Pairs:
    """Return the bill of every pair: the point, and its range from the speed's and the price's."""
    load = MonthlyLoad.of(request)

    # many offers sell the same unit of the same plan: what a month takes of it is worked out once
    least, inverse = np.unique(supply.minimum_gpus[offer], return_inverse=True)
    code = (plan * (int(supply.unit_gpus[offer].max(initial=0)) + 1) + supply.unit_gpus[offer]) * len(least) + inverse
    _, first, same = np.unique(code, return_index=True, return_inverse=True)
    first_plan = plan[first]
    replica_gpus, speed = plans.gpus[first_plan], plans.output_tokens_per_s[first_plan]
    # what a month takes at the point, at the slow end of the speed's range and at its fast end
    unit = supply.unit_gpus[offer[first]].astype(np.float64)
    least_units = np.ceil(supply.minimum_gpus[offer[first]] / unit)
    fleet, slow, fast = (
        _fleet_of(load, unit, replica_gpus, least_units, speed * ratio).take(same)
        for ratio in (np.ones(len(first)), np.exp(-plans.width[first_plan]), np.exp(plans.width[first_plan]))
    )
    shape, per_token = fleet.gpu_hours.shape, fleet.gpu_hours / fleet.tokens
    cheap = fast.gpu_hours / fast.tokens * terms.price_low_ratio[offer]
    dear = slow.gpu_hours / slow.tokens * terms.price_high_ratio[offer]
    factors = Columns(
        {name: getattr(terms, name)[offer] for name in INPUT_NAMES if name in Terms._fields},
        demanded_tokens=fleet.tokens,
        prompt_tokens=np.broadcast_to(load.prompt_tokens, shape),
        output_tokens=np.broadcast_to(load.output_tokens, shape),
        replica_output_tokens_per_s=plans.output_tokens_per_s[plan],
        replica_gpus=plans.gpus[plan],
        serving_replicas=fleet.serving,
        gpu_hours=fleet.gpu_hours,
        spare_gpu_hours=fleet.spare_gpu_hours,
        idle_power_fraction=np.full(shape, _IDLE_POWER_FRACTION),
        prompt_time_fraction=plans.prompt_time_fraction[plan],
        low_ratio=np.minimum(cheap / per_token, 1.0),
        high_ratio=np.maximum(dear / per_token, 1.0),
    )
    gpus = fleet.units * supply.unit_gpus[offer]
    return Pairs(offer, plan, fleet, gpus, factors, price_months(factors))


def replicas_for(request: InferenceRequest, speed: Floats) -> Floats:
    """Return the replicas that carry the load at the busiest hour, by the output tokens per second of one."""
    load = MonthlyLoad.of(request)
    return load.needed(speed / load.output_tokens, float(load.weights[-1]))


def loaded(request: InferenceRequest, plans: Plans) -> Plans:
    """Return plans with the latency of the load in its busiest hour; without a load, as they are at the full batch."""
    if not request.has_demand or not len(plans):
        return plans
    prompt, output = (np.full(len(plans), tokens) for tokens in (request.prompt_tokens, request.output_tokens))
    # replicas share the load of the busiest hour; a measured speed moves the whole curve
    load, full, slower = MonthlyLoad.of(request), plans.sequences, np.ones(len(plans))
    if request.own_speed is not None:
        slower = plans.tpot_s / steady(plans.case, full, prompt, output, ttft_s=plans.ttft_s).tpot_s
    capacity = plans.output_tokens_per_s / output
    rate = load.busiest(capacity)
    tpot_s = plans.ladder.tpot_s * slower[:, None]
    in_flight = requests_in_flight(plans.ladder.sequences, tpot_s, rate * output, full)
    at = at_load(plans.case, prompt, output, plans.ttft_s, in_flight, rate / capacity, full, slower)
    return replace(
        plans,
        in_flight=at.in_flight,
        tpot_s=np.where(plans.serves, at.tpot_s, plans.tpot_s),  # what carries no load keeps its reason
        queue_s=at.queue_s,
        prompt_time_fraction=at.prompt_time_fraction,
        step=at.step,
    )


def _fleet_of(load: MonthlyLoad, unit: Floats, replica: Floats, least: Floats, speed: Floats) -> ServingFleet:
    """Return what a month of the demand takes; without a load, one unit (or the given replicas) at a utilisation.

    `unit` and `replica` are accelerators, `least` the fewest units of an order. All columns broadcast.
    """
    requests = speed / load.output_tokens  # per second and replica, at saturation
    if load.requests_per_s is None:
        # Saturated, at the stated utilisation (always by default). The replicas at work: stated, as many as the stated
        # accelerators hold, else those of the smallest order.
        share = load.utilisation_fraction
        if load.replicas:
            working = np.full(np.broadcast_shapes(unit.shape, replica.shape), float(load.replicas))
        elif load.gpus:
            working = np.maximum(np.floor(load.gpus / replica), 1.0) * np.ones(unit.shape)
        else:
            working = np.maximum(np.floor(unit / replica), 1.0) * least
        on = working + load.redundancy
        units = units_for(on, replica, unit, least)
        gpu_hours = units * unit * HOURS_PER_MONTH
        tokens = working * requests * load.tokens_per_request * share * SECONDS_PER_HOUR * HOURS_PER_MONTH
        spare = load.redundancy * replica * HOURS_PER_MONTH
        return ServingFleet(*np.broadcast_arrays(on, units, gpu_hours, working, spare, tokens, share))
    rate, hours = load.requests_per_s, float(load.hours.sum())
    shape = np.broadcast_shapes(requests.shape, rate.shape, unit.shape)
    most_on, most_units, peak_load, units_hours, serving_hours, spare_hours, carried = (
        np.zeros(shape) for _ in range(7)
    )
    busiest = float(load.weights[-1])
    for weight, count in zip(load.weights.tolist(), load.hours.tolist(), strict=True):
        # replicas that do not follow the load are those of the busiest hour: once is enough
        if load.autoscale or weight == load.weights[0]:
            serving = np.broadcast_to(load.serving(requests, weight if load.autoscale else busiest), shape)
            spare = np.where(serving > 0, load.redundancy, 0.0)
            units = units_for(serving + spare, replica, unit, least)
            able = serving * requests
        most_on, most_units = np.maximum(most_on, serving + spare), np.maximum(most_units, units)
        units_hours = units_hours + count * units
        serving_hours = serving_hours + count * serving
        spare_hours = spare_hours + count * spare
        carried = carried + count * np.minimum(rate * weight, able)  # fixed replicas may be too few
        peak_load = np.maximum(peak_load, rate * weight / np.maximum(able, 1e-12))
    return ServingFleet(
        most_on,
        most_units,
        units_hours / hours * unit * HOURS_PER_MONTH,
        serving_hours / hours,
        spare_hours / hours * replica * HOURS_PER_MONTH,
        carried / hours * load.tokens_per_request * SECONDS_PER_HOUR * HOURS_PER_MONTH,
        peak_load,
    )


def mean_rate(request: InferenceRequest) -> float:
    """Return the mean requests per second of the load."""
    if request.requests_per_s is not None:
        return request.requests_per_s
    assert request.tokens_per_month is not None
    return request.tokens_per_month / request.tokens_per_request / (HOURS_PER_MONTH * SECONDS_PER_HOUR)


def with_budgets(pairs: Pairs, supply: Supply, terms: Terms, allowed: Integers) -> Pairs:
    """Return pairs with what one must have for each, and the chance that it can be had."""
    costs, may_be = pairs.costs, np.zeros(len(pairs.offer), bool)
    may_be[allowed] = True
    chance = chances(terms, pairs.offer, pairs.gpus.astype(np.int64))
    fresh, sellers = terms.fresh[pairs.offer], supply.seller[pairs.offer]
    parts = budgets(costs.usd_per_mtok, costs.usd_per_mtok_high, chance, may_be, fresh, sellers)
    added = {
        "budget_usd": costs.usd_per_month * parts.budget / costs.usd_per_mtok,
        "budget_usd_per_mtok": parts.budget,
        "expected_usd_per_mtok": parts.expected,
        "chance_available_fraction": chance,
        "fallback_usd_per_mtok": np.full(len(chance), parts.fallback),
    }
    return replace(pairs, costs=Columns({**costs, **added}))


_RANKED_BY = {"budget": "budget_usd_per_mtok", "expected": "expected_usd_per_mtok", "quoted": "usd_per_mtok"}


def goal_of(pairs: Pairs, request: InferenceRequest, plans: Plans) -> Floats:
    """Return what is to be small: what tokens need, the time per token, or the carbon of a token."""
    if request.optimize == "carbon":
        return pairs.costs.kgco2e / pairs.costs.carried_tokens
    if request.optimize == "latency" or request.rank_by == "time":
        return plans.tpot_s[pairs.plan]
    return pairs.costs[_RANKED_BY[request.rank_by]]


def best_per_offer(pairs: Pairs, request: InferenceRequest, plans: Plans, allowed: Integers) -> Integers:
    """Return the best allowed pair of each offer: by the goal, cost, accelerators, then the smaller layout."""
    keys = (pairs.plan, pairs.gpus, pairs.costs.usd_per_mtok, goal_of(pairs, request, plans), pairs.offer)
    order = allowed[np.lexsort(tuple(key[allowed] for key in keys))]
    _, first = np.unique(pairs.offer[order], return_index=True)  # the first of each offer, which is its best
    chosen: Integers = order[first]
    return chosen
