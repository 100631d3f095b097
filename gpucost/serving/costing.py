"""From plans to money: demand over a day, replicas and hours of every offer, its bill, hosted prices beside it."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple
from numpy.typing import NDArray

from gpucost.answers.serving import Crossing, Hosted, Volume
from gpucost.errors import DataError, UsageError
from gpucost.formula.arrays import Columns
from gpucost.gate import read_rows, shown
from gpucost.market.interruptions import stays_first
from gpucost.market.supply import Supply
from gpucost.market.terms import Terms
from gpucost.money.serving_bill import INPUT_NAMES, price_months
from gpucost.options import OPTIONS
from gpucost.physics import transformer
from gpucost.physics.columns import Floats as columns_Floats
from gpucost.physics.columns import Integers
from gpucost.serving.request import InferenceRequest
from gpucost.types import Architecture
from gpucost.units import HOURS_PER_MONTH, SECONDS_PER_HOUR, as_number, format_count
from gpucost.workloads.counts import units_for
from gpucost.workloads.service import Plans

# --- Demand over a day, and how many replicas are on at each hour.

Floats = NDArray[np.float64]

HOURS = (24, 168)
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
    if not os.path.exists(path):
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
    if len(numbers) not in HOURS:
        raise DataError(f"holds {len(numbers)} numbers; a profile has 24 (a day) or 168 (a week)", file=path)
    if min(numbers) < 0 or max(numbers) <= 0 or not np.isfinite(numbers).all():
        raise DataError("weights must be zero or more, finite, and not all zero", file=path)
    return numbers


def replicas_by_hour(mean_rate: Floats, capacity: Floats, profile: Floats, floor: int) -> Floats:
    """Return the replicas that each hour of the profile needs: ⌈rate · weight ÷ capacity⌉, at least `floor`.

    10 requests/s on replicas of 4: 3. The result has the hours as its last axis.

    >>> replicas_by_hour(np.array([10.0]), np.array([4.0]), np.array([1.0]), 1).tolist()
    [[3.0]]
    """
    needed = np.ceil(mean_rate[..., None] * profile / capacity[..., None] - 1e-9)
    return np.maximum(needed, floor)


# --- Beside the prices of hosted models: the same or a comparable one, and the volume at which self-hosting pays.

MTOK = 1e6
SAME_SIZE = 0.03  # parameters within this share count as comparable
CURVE_POINTS = 41
CURVE_SPAN = 100.0
STALE_DAYS = OPTIONS["on_demand"].age_limit_days


def hosted_prices(
    rows: Iterable[Mapping[str, Any]],
    architecture: Architecture,
    comparable: Mapping[str, float],
    request: InferenceRequest,
    as_of: date,
) -> list[Hosted]:
    """Return the newest price of each listing of the model, cheapest blend first; what has ended is not offered."""
    newest: dict[tuple[str, str], Mapping[str, Any]] = {}
    seen: dict[str, date] = {}
    for row in (row for row in rows if row["observed_on"] <= as_of):
        name = (str(row["provider"]), str(row["listing"]))
        if name not in newest or row["observed_on"] > newest[name]["observed_on"]:
            newest[name] = row
        seen[name[0]] = max(seen.get(name[0], row["observed_on"]), row["observed_on"])
    listings = [
        hosted_price(row, architecture, request, as_of)
        for row in newest.values()
        if row["model_id"] in (architecture.name, *comparable)
        and not row["suspect"]
        and not (row["valid_until"] and row["valid_until"] < as_of)
        and (seen[row["provider"]] - row["observed_on"]).days <= STALE_DAYS
    ]
    return sorted(listings, key=lambda entry: (not entry["same_model"], entry["usd_per_mtok"], entry["provider"]))


def hosted_price(row: Mapping[str, Any], architecture: Architecture, request: InferenceRequest, as_of: date) -> Hosted:
    """Return one hosted price with its blend at the request's mix; cached input at its own price where there is one."""
    discount = row.get("batch_discount_fraction")
    hit = request.prefix_hit_fraction
    cached = row["cached_input_usd_per_mtok"]
    prompt = row["input_usd_per_mtok"] * (1 - hit) + (cached if cached is not None else row["input_usd_per_mtok"]) * hit
    blend = (
        prompt * request.prompt_tokens + row["output_usd_per_mtok"] * request.output_tokens
    ) / request.tokens_per_request
    age = (as_of - row["observed_on"]).days
    same = row["model_id"] == architecture.name
    return {
        "provider": row["provider"],
        "listing": row["listing"],
        "model": row["model_id"],
        "same_model": same,
        "usd_per_mtok_input": row["input_usd_per_mtok"],
        "usd_per_mtok_output": row["output_usd_per_mtok"],
        "usd_per_mtok_cached_input": cached,
        "usd_per_mtok": blend,
        "usd_per_mtok_batch": None if discount is None else blend * (1 - discount),
        "observed_on": row["observed_on"].isoformat(),
        "age_days": age,
        "stale": age > STALE_DAYS,
        "source_id": row["source_id"],
        "note": "" if same else "a comparable model, not the same",
    }


def break_even(
    usd_per_hour: float, tokens_per_s: float, redundant_usd_per_hour: float, api_usd_per_mtok: float
) -> Crossing:
    """Return the volume at which own replicas cost what an API does, idle hours included.

    `usd_per_hour` and `tokens_per_s` are those of the smallest group that can be bought, `redundant_usd_per_hour` what
    stands beside it whatever the volume. With r groups the volume is (r·C + R)·730 ÷ p, and it must not exceed what
    they serve. A group of 10 USD/h that serves 10,000 tokens/s against 1 USD per million: 7.3 thousand million a month.

    >>> found = break_even(10.0, 10_000.0, 0.0, 1.0)
    >>> round(found["tokens_per_month"] / 1e9, 3), round(found["utilisation_fraction"], 3)
    (7.3, 0.278)
    """
    price = api_usd_per_mtok / MTOK
    capacity = tokens_per_s * SECONDS_PER_HOUR  # tokens per hour of one group
    gain = price * capacity - usd_per_hour
    if gain <= 0:
        own = usd_per_hour / capacity * MTOK
        note = (
            f"The API is always cheaper, at {api_usd_per_mtok:.3g} USD per million tokens:"
            f" full replicas cost {own:.3g}."
        )
        return {"tokens_per_month": None, "utilisation_fraction": None, "groups": None, "note": note}
    groups = max(1, math.ceil(redundant_usd_per_hour / gain - 1e-9))
    hourly = groups * usd_per_hour + redundant_usd_per_hour
    volume = hourly * HOURS_PER_MONTH / price
    share = volume / (groups * capacity * HOURS_PER_MONTH)
    note = f"Below {format_count(volume)} tokens a month the API is cheaper: idle hours cost money too."
    return {"tokens_per_month": volume, "utilisation_fraction": share, "groups": groups, "note": note}


def curve(
    usd_per_hour: float, tokens_per_s: float, redundant_usd_per_hour: float, api_usd_per_mtok: float, middle: float
) -> list[Volume]:
    """Return the cost per month of both sides over volumes around `middle`: steps against a straight line."""
    capacity = tokens_per_s * SECONDS_PER_HOUR * HOURS_PER_MONTH
    points: list[Volume] = []
    for index in range(CURVE_POINTS):
        volume = middle * CURVE_SPAN ** (2 * index / (CURVE_POINTS - 1) - 1)
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
    return {model.name: float(t) for model, t, a in pairs if abs(t - 1) <= SAME_SIZE and abs(a - 1) <= SAME_SIZE}


# --- From plans to money: replicas, units and hours of every offer, its bill per month, and the price of tokens.

IDLE_POWER_FRACTION = 0.30  # share of a server's rating that an idle one draws: an assumption


class ServingFleet(Struct, frozen=True):
    """What a month takes: replicas, units, paid hours, and what they serve."""

    replicas: columns_Floats  # at the busiest hour, redundancy included
    units: columns_Floats  # units of the offer at the busiest hour
    gpu_hours: columns_Floats  # per month, paid
    serving: columns_Floats  # replicas on average, redundant ones left out
    spare_gpu_hours: columns_Floats  # redundant replicas
    tokens: columns_Floats  # carried in the month
    peak_load: columns_Floats  # load of the serving replicas at the busiest hour

    def take(self, rows: Integers) -> "ServingFleet":
        """Return the fleets that `rows` names."""
        return ServingFleet(*(column[rows] for column in astuple(self)))


class Pairs(Struct, frozen=True):
    """Offers × plans, the fleet of each, and what it costs per month."""

    offer: Integers
    plan: Integers
    fleet: ServingFleet
    gpus: columns_Floats
    factors: Columns  # what the bill follows from
    costs: Columns  # what it comes to


def pair_up(supply: Supply, plans: Plans, offers: Integers) -> tuple[Integers, Integers]:
    """Return every offer with every plan of its key that it can host."""
    by_key: dict[int, NDArray[np.int64]] = {}
    for index in np.unique(plans.key):
        by_key[int(index)] = np.flatnonzero((plans.key == index) & plans.serves)
    nothing = np.array([], dtype=np.int64)
    plans_of_offers = [by_key.get(int(supply.key[offer]), nothing) for offer in offers]
    pair_offer = np.repeat(offers, [len(plan) for plan in plans_of_offers])
    pair_plan = np.concatenate([nothing, *plans_of_offers])
    fits = plans.gpus[pair_plan] <= supply.largest_gpus[pair_offer]
    return pair_offer[fits], pair_plan[fits]


def price_pairs(
    request: InferenceRequest, plans: Plans, supply: Supply, terms: Terms, offer: Integers, plan: Integers
) -> Pairs:
    """Return the bill of every pair: the point, and its range from the speed's and the price's."""
    speed, width = plans.output_tokens_per_s[plan], plans.width[plan]
    # many offers sell the same unit of the same plan: what a month takes of it is worked out once
    least, inverse = np.unique(supply.minimum_gpus[offer], return_inverse=True)
    code = (plan * (int(supply.unit_gpus[offer].max(initial=0)) + 1) + supply.unit_gpus[offer]) * len(least) + inverse
    _, first, same = np.unique(code, return_index=True, return_inverse=True)
    fleet, slow, fast = (
        fleet_of(request, plans, supply, offer[first], plan[first], (speed * ratio)[first]).take(same)
        for ratio in (np.ones(len(offer)), np.exp(-width), np.exp(width))
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


def replicas_for(request: InferenceRequest, speed: columns_Floats) -> columns_Floats:
    """Return the replicas that carry the load at each hour, by the output tokens per second of one; hours come last."""
    usable = speed / request.output_tokens * request.utilisation_fraction
    floor = max(request.floor_replicas, 0 if request.autoscale else 1)
    return replicas_by_hour(np.full(len(speed), mean_rate(request)), usable, profile_of(request.profile), floor)


def fleet_of(
    request: InferenceRequest, plans: Plans, supply: Supply, offer: Integers, plan: Integers, speed: columns_Floats
) -> ServingFleet:
    """Return what a month of the demand takes; without a demand, one unit (or the given replicas) at a utilisation."""
    unit, replica = supply.unit_gpus[offer].astype(np.float64), plans.gpus[plan]
    least = np.ceil(supply.minimum_gpus[offer] / unit)
    requests = speed / request.output_tokens  # per second and replica, at saturation
    if not request.has_demand:
        return saturated(request, unit, replica, least, requests)
    profile = profile_of(request.profile)
    mean = np.full(len(offer), mean_rate(request))
    serving = replicas_for(request, speed)
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
    return ServingFleet(on.max(axis=-1), units.max(axis=-1), gpu_hours, serving.mean(axis=-1), spare, tokens, peak)


def saturated(
    request: InferenceRequest,
    unit: columns_Floats,
    replica: columns_Floats,
    least: columns_Floats,
    requests: columns_Floats,
) -> ServingFleet:
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
    return ServingFleet(on, units, gpu_hours, working, spare, tokens, np.full_like(unit, share))


def mean_rate(request: InferenceRequest) -> float:
    """Return the mean requests per second of the load."""
    if request.requests_per_s is not None:
        return request.requests_per_s
    assert request.tokens_per_month is not None
    return request.tokens_per_month / request.tokens_per_request / (HOURS_PER_MONTH * SECONDS_PER_HOUR)


def goal_of(pairs: Pairs, goal: str, plans: Plans) -> columns_Floats:
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
    by_goal = goal_of(pairs, goal, plans)[chosen]
    _, by_id = np.unique(np.array([ids[offer] for offer in pairs.offer[chosen]]), return_inverse=True)
    order = chosen[np.lexsort((by_id, pairs.gpus[chosen], pairs.costs.usd_per_mtok[chosen], by_goal))]
    return stays_first(order, interruptible[pairs.offer[order]])
