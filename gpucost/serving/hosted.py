"""Beside the prices of hosted models: the same or a comparable one, and the volume at which self-hosting pays."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from gpucost.answers.serving import Crossing, Hosted, Volume
from gpucost.options import OPTIONS
from gpucost.physics import transformer
from gpucost.serving.request import InferenceRequest
from gpucost.types import Architecture
from gpucost.units import HOURS_PER_MONTH, SECONDS_PER_HOUR, format_count

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
    found = [
        hosted_price(row, architecture, request, as_of)
        for row in newest.values()
        if row["model_id"] in (architecture.name, *comparable)
        and not row["suspect"]
        and not (row["valid_until"] and row["valid_until"] < as_of)
        and (seen[row["provider"]] - row["observed_on"]).days <= STALE_DAYS
    ]
    return sorted(found, key=lambda entry: (not entry["same_model"], entry["usd_per_mtok"], entry["provider"]))


def hosted_price(row: Mapping[str, Any], architecture: Architecture, request: InferenceRequest, as_of: date) -> Hosted:
    """Return one hosted price with its blend at the request's mix; cached input at its own price where there is one."""
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
        note = f"Never: even full groups cost {own:.3g} USD per million tokens, the API {api_usd_per_mtok:.3g}."
        return {"tokens_per_month": None, "utilisation_fraction": None, "groups": None, "note": note}
    groups = max(1, math.ceil(redundant_usd_per_hour / gain - 1e-9))
    hourly = groups * usd_per_hour + redundant_usd_per_hour
    volume = hourly * HOURS_PER_MONTH / price
    share = volume / (groups * capacity * HOURS_PER_MONTH)
    note = f"Below {format_count(volume)} tokens a month the API is cheaper; idle hours are paid for."
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
        own = (groups * usd_per_hour + redundant_usd_per_hour) * HOURS_PER_MONTH
        points.append({"tokens_per_month": volume, "self_host_usd": own, "api_usd": volume / MTOK * api_usd_per_mtok})
    return points


def comparable_models(architecture: Architecture, kin: Sequence[Architecture]) -> dict[str, float]:
    """Return those of its family whose total and active parameters nearly equal the model's."""
    alike = [other for other in kin if other.name != architecture.name]
    if not alike:
        return {}
    shape = transformer.stack([architecture, *alike])
    total, active = transformer.total_parameters(shape), transformer.active_parameters(shape)
    pairs = zip(alike, total[1:] / total[0], active[1:] / active[0], strict=True)
    return {other.name: float(t) for other, t, a in pairs if abs(t - 1) <= SAME_SIZE and abs(a - 1) <= SAME_SIZE}
