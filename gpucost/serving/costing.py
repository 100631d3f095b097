"""From plans to money: replicas, units and hours of every offer, its bill per month, and the price of tokens."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpucost.formula.arrays import Columns
from gpucost.market.interruptions import stays_first
from gpucost.market.supply import Supply
from gpucost.market.terms import Terms
from gpucost.money.serving_bill import INPUT_NAMES, price_months
from gpucost.physics.columns import Floats, Integers
from gpucost.serving.demand import profile_of, replicas_by_hour
from gpucost.serving.plans import Plans
from gpucost.serving.request import InferenceRequest
from gpucost.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

IDLE_POWER_FRACTION = 0.30  # share of a server's rating that an idle one draws: an assumption


@dataclass(frozen=True)
class Fleet:
    """What a month takes: replicas, units, paid hours, and what they serve."""

    replicas: Floats  # at the busiest hour, redundancy included
    units: Floats  # units of the offer at the busiest hour
    gpu_hours: Floats  # per month, paid
    serving: Floats  # replicas on average, redundant ones left out
    spare_gpu_hours: Floats  # redundant replicas
    tokens: Floats  # carried in the month
    peak_load: Floats  # load of the serving replicas at the busiest hour


@dataclass(frozen=True)
class Pairs:
    """Offers × plans, the fleet of each, and what it costs per month."""

    offer: Integers
    plan: Integers
    fleet: Fleet
    gpus: Floats
    factors: Columns  # what the bill follows from
    costs: Columns  # what it comes to


def pair_up(supply: Supply, plans: Plans, offers: Integers) -> tuple[Integers, Integers]:
    """Return every offer with every plan of its key that it can host."""
    by_key: dict[int, NDArray[np.int64]] = {}
    for index in np.unique(plans.key):
        by_key[int(index)] = np.flatnonzero((plans.key == index) & plans.serves)
    nothing = np.array([], dtype=np.int64)
    found = [by_key.get(int(supply.key[offer]), nothing) for offer in offers]
    pair_offer = np.repeat(offers, [len(plan) for plan in found])
    pair_plan = np.concatenate([nothing, *found])
    fits = plans.gpus[pair_plan] <= supply.largest_gpus[pair_offer]
    return pair_offer[fits], pair_plan[fits]


def units_for(replicas: Floats, replica_gpus: Floats, unit_gpus: Floats, minimum_units: Floats) -> Floats:
    """Return the units that hold so many replicas: several replicas share a unit, or several units hold one.

    Three replicas of 2 in units of 8 take one unit; two of 16 take four.

    >>> one = np.array([1.0, 1.0])
    >>> units_for(np.array([3.0, 2.0]), np.array([2.0, 16.0]), np.array([8.0, 8.0]), one)
    array([1., 4.])
    """
    in_unit = np.floor(unit_gpus / replica_gpus)
    shared = np.ceil(replicas / np.maximum(in_unit, 1.0))
    spanning = replicas * np.ceil(replica_gpus / unit_gpus)
    return np.maximum(np.where(in_unit >= 1, shared, spanning), np.where(replicas > 0, minimum_units, 0.0))


def price_pairs(
    request: InferenceRequest, plans: Plans, supply: Supply, terms: Terms, offer: Integers, plan: Integers
) -> Pairs:
    """Return the bill of every pair: the point, and its range from the speed's and the price's."""
    speed, width = plans.output_tokens_per_s[plan], plans.width[plan]
    fleet = fleet_of(request, plans, supply, offer, plan, speed)
    slow, fast = (
        fleet_of(request, plans, supply, offer, plan, speed * ratio) for ratio in (np.exp(-width), np.exp(width))
    )
    per_token = fleet.gpu_hours / fleet.tokens
    cheap = fast.gpu_hours / fast.tokens * terms.price_low_ratio[offer]
    dear = slow.gpu_hours / slow.tokens * terms.price_high_ratio[offer]
    count = len(offer)
    factors = Columns(
        {name: getattr(terms, name)[offer] for name in INPUT_NAMES if name in Terms._fields},
        demanded_tokens=fleet.tokens,
        prompt_tokens=np.full(count, float(request.prompt_tokens)),
        output_tokens=np.full(count, float(request.output_tokens)),
        replica_output_tokens_per_s=speed,
        prompt_time_fraction=plans.prompt_time_fraction[plan],
        low_ratio=np.minimum(cheap / per_token, 1.0),
        high_ratio=np.maximum(dear / per_token, 1.0),
        replica_gpus=plans.gpus[plan],
        serving_replicas=fleet.serving,
        gpu_hours=fleet.gpu_hours,
        spare_gpu_hours=fleet.spare_gpu_hours,
        idle_power_fraction=np.full(count, IDLE_POWER_FRACTION),
    )
    return Pairs(offer, plan, fleet, fleet.units * supply.unit_gpus[offer], factors, price_months(factors))


def fleet_of(
    request: InferenceRequest, plans: Plans, supply: Supply, offer: Integers, plan: Integers, speed: Floats
) -> Fleet:
    """Return what a month of the demand takes; without a demand, one unit (or the given replicas) at a utilisation."""
    unit, replica = supply.unit_gpus[offer].astype(np.float64), plans.gpus[plan]
    least = np.ceil(supply.minimum_gpus[offer] / unit)
    requests = speed / request.output_tokens  # per second and replica, at saturation
    if not request.has_demand:
        return saturated(request, unit, replica, least, requests)
    profile = profile_of(request.profile)
    mean = np.full(len(offer), mean_rate(request))
    usable = requests * request.utilisation_fraction
    serving = replicas_by_hour(mean, usable, profile, max(request.floor_replicas, 0 if request.autoscale else 1))
    if request.replicas is not None:
        serving = np.full_like(serving, float(request.replicas))
    elif not request.autoscale:
        serving = np.broadcast_to(serving.max(axis=-1, keepdims=True), serving.shape)
    on = serving + np.where(serving > 0, request.redundancy, 0)
    units = units_for(on, replica[:, None], unit[:, None], least[:, None])
    per_hour = units * unit[:, None]
    gpu_hours = per_hour.mean(axis=-1) * HOURS_PER_MONTH
    demand = mean[:, None] * profile
    carried = np.minimum(demand, serving * requests[:, None])  # fixed replicas may be too few for the busiest hours
    spare = np.where(serving > 0, request.redundancy, 0).mean(axis=-1) * replica * HOURS_PER_MONTH
    peak = (demand / np.maximum(serving * requests[:, None], 1e-12)).max(axis=-1)
    tokens = carried.mean(axis=-1) * request.tokens_per_request * SECONDS_PER_HOUR * HOURS_PER_MONTH
    return Fleet(on.max(axis=-1), units.max(axis=-1), gpu_hours, serving.mean(axis=-1), spare, tokens, peak)


def saturated(request: InferenceRequest, unit: Floats, replica: Floats, least: Floats, requests: Floats) -> Fleet:
    """Return a month of a full unit, or of the given replicas, at the stated utilisation (always by default)."""
    share = request.utilisation_fraction if request.utilisation_given else 1.0
    working = (
        np.full_like(unit, float(request.replicas)) if request.replicas else np.maximum(np.floor(unit / replica), 1.0)
    )
    working = working * np.where(request.replicas is None, least, 1.0)
    on = working + request.redundancy
    units = units_for(on, replica, unit, least)
    gpu_hours = units * unit * HOURS_PER_MONTH
    tokens = working * requests * request.tokens_per_request * share * SECONDS_PER_HOUR * HOURS_PER_MONTH
    spare = request.redundancy * replica * HOURS_PER_MONTH
    return Fleet(on, units, gpu_hours, working, spare, tokens, np.full_like(unit, share))


def mean_rate(request: InferenceRequest) -> float:
    """Return the mean requests per second of the load."""
    if request.requests_per_s is not None:
        return request.requests_per_s
    assert request.tokens_per_month is not None
    return request.tokens_per_month / request.tokens_per_request / (HOURS_PER_MONTH * SECONDS_PER_HOUR)


def goal_of(pairs: Pairs, goal: str, plans: Plans) -> Floats:
    """Return what is to be small: the price of tokens, the time per token, or the carbon of a token."""
    if goal == "latency":
        return plans.tpot_s[pairs.plan]
    return pairs.costs.usd_per_mtok if goal == "cost" else pairs.costs.kgco2e / pairs.costs.carried_tokens


def best_per_offer(pairs: Pairs, goal: str, plans: Plans, allowed: Integers) -> Integers:
    """Return the best allowed pair of each offer: by the goal, cost, accelerators, then the smaller layout."""
    keys = (pairs.plan, pairs.gpus, pairs.costs.usd_per_mtok, goal_of(pairs, goal, plans), pairs.offer)
    order = allowed[np.lexsort(tuple(key[allowed] for key in keys))]
    _, first = np.unique(pairs.offer[order], return_index=True)
    chosen: Integers = order[first]
    return chosen


def rank(
    pairs: Pairs, chosen: Integers, goal: str, plans: Plans, ids: list[str], interruptible: NDArray[np.bool_]
) -> Integers:
    """Order the chosen pairs by the goal, then cost, accelerators and the offer's id; first those that stay."""
    wanted = goal_of(pairs, goal, plans)[chosen]
    _, by_id = np.unique(np.array([ids[offer] for offer in pairs.offer[chosen]]), return_inverse=True)
    order = chosen[np.lexsort((by_id, pairs.gpus[chosen], pairs.costs.usd_per_mtok[chosen], wanted))]
    return stays_first(order, interruptible[pairs.offer[order]])
