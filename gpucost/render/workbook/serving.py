"""The live model of serving: from tokens or utilisation, speed and price to the month's bill and the price of tokens.

Replicas, their layout and the paid GPU-hours are pinned: another load may need another fleet, which Python sizes.
"""

from collections.abc import Mapping
from typing import Any

from gpucost.render.workbook.live import LiveInput, LiveModel, lines_of
from gpucost.units import HOURS_PER_MONTH, SECONDS_PER_HOUR, unit_of

SHOWN = (
    "usd_per_mtok", "usd_per_mtok_low", "usd_per_mtok_high", "usd_per_mtok_input", "usd_per_mtok_output",
    "usd_per_month", "carried_tokens",
    "utilisation_of_paid_fraction", "api_usd_per_month", "saving_usd_per_month", "breakeven_tokens", "energy_kwh",
    "kgco2e",
)  # fmt: skip

# name -> (group, description)
_INPUTS = {
    "demand_basis": ("demand", "tokens: the load is given; utilisation: the replicas are used to a stated share"),
    "tokens_per_month": ("demand", "input and output tokens of a month"),
    "utilisation_fraction": ("demand", "share of the serving replicas' time that is used (demand_basis = utilisation)"),
    "prompt_tokens": ("demand", "input tokens per request"),
    "output_tokens": ("demand", "output tokens per request"),
    "usd_per_gpu_hour": ("price", "price of one GPU for an hour"),
    "api_usd_per_mtok": ("price", "blended price of the hosted API that it is compared with"),
    "replica_output_tokens_per_s": ("speed", "output tokens per second of one replica, prompts served beside them"),
    "prompt_time_fraction": ("speed", "share of a replica's time that goes to prompts"),
    "low_ratio": ("speed", "low end of the price per token ÷ typical"),
    "high_ratio": ("speed", "high end of the price per token ÷ typical"),
    "replica_gpus": ("pinned: fleet and layout", "GPUs of one replica"),
    "serving_replicas": ("pinned: fleet and layout", "replicas, redundant ones left out"),
    "gpu_hours": ("pinned: fleet and layout", "GPU-hours paid in a month"),
    "spare_gpu_hours": ("pinned: fleet and layout", "GPU-hours of redundant replicas in a month"),
    "rated_power_w": ("energy", "rated power of a server per GPU"),
    "power_fraction": ("energy", "mean draw ÷ rated power while busy"),
    "idle_power_fraction": ("energy", "mean draw ÷ rated power while idle"),
    "pue_ratio": ("energy", "power of the building ÷ power of the equipment"),
    "grid_kgco2e_per_kwh": ("energy", "intensity of the grid, location-based"),
    "seconds_per_hour": ("constants", ""),
    "hours_per_month": ("constants", ""),
    "tokens_per_mtok": ("constants", ""),
    "w_per_kw": ("constants", ""),
}
_UNITS = {"tokens_per_month": "tokens", "replica_output_tokens_per_s": "tokens per second", "gpu_hours": "GPU-hours"}
_PINNED = ("replica_gpus", "serving_replicas", "gpu_hours", "spare_gpu_hours")

_LINES = {
    "load": """
output_share_fraction: share of the tokens that is output
    output_tokens / (prompt_tokens + output_tokens)
capacity_tokens: what the replicas serve in a month at most
    replica_output_tokens_per_s / output_share_fraction * serving_replicas * seconds_per_hour *
        hours_per_month
demanded_tokens: what is asked for
    where(demand_basis == 'tokens', tokens_per_month, utilisation_fraction * capacity_tokens)
carried_tokens: what is served in a month
    min(demanded_tokens, capacity_tokens)
busy_gpu_hours: hours at work
    carried_tokens * output_share_fraction / (replica_output_tokens_per_s * seconds_per_hour) * replica_gpus
idle_gpu_hours: hours paid and not used
    max(gpu_hours - busy_gpu_hours - spare_gpu_hours, 0)
utilisation_of_paid_fraction: busy share of the paid hours
    busy_gpu_hours / gpu_hours
""",
    "bill of a month": """
serving_usd: serving requests
    round_cents(busy_gpu_hours * usd_per_gpu_hour)
idle_usd: idle capacity
    round_cents(idle_gpu_hours * usd_per_gpu_hour)
redundant_usd: redundant replicas
    round_cents(spare_gpu_hours * usd_per_gpu_hour)
usd_per_month: the whole bill
    serving_usd + idle_usd + redundant_usd
""",
    "answers": """
usd_per_mtok: blended
    usd_per_month / carried_tokens * tokens_per_mtok
usd_per_mtok_low: low end of the 80 % range
    usd_per_mtok * low_ratio
usd_per_mtok_high: high end of the 80 % range
    usd_per_mtok * high_ratio
usd_per_mtok_input: input tokens, by the time that prompts take
    usd_per_mtok * prompt_time_fraction / (1 - output_share_fraction)
usd_per_mtok_output: output tokens, by the time that they take
    usd_per_mtok * (1 - prompt_time_fraction) / output_share_fraction
api_usd_per_month: the same tokens from the API
    carried_tokens / tokens_per_mtok * api_usd_per_mtok
saving_usd_per_month: what self-hosting saves in a month
    api_usd_per_month - usd_per_month
breakeven_tokens: tokens of a month at which this fleet costs what the API costs
    usd_per_month / api_usd_per_mtok * tokens_per_mtok
breakeven_fraction: the same as a share of the capacity; above 1 is never
    breakeven_tokens / capacity_tokens
energy_kwh: of a month, at the meter of the building
    (busy_gpu_hours * power_fraction + (gpu_hours - busy_gpu_hours) * idle_power_fraction) * rated_power_w *
        pue_ratio / w_per_kw
kgco2e: of a month, location-based
    energy_kwh * grid_kgco2e_per_kwh
""",
}
_PER_MTOK = dict.fromkeys(
    ("usd_per_mtok_low", "usd_per_mtok_high", "usd_per_mtok_input", "usd_per_mtok_output"), "USD per million tokens"
)
_PER_MONTH = dict.fromkeys(("usd_per_month", "api_usd_per_month", "saving_usd_per_month"), "USD per month")


def serving_model(payload: Mapping[str, Any], key: str, title: str) -> LiveModel | None:
    """Return the live model of the best offer, or None where the answer carries no factors."""
    options = payload.get("options") or []
    if not options or not options[0].get("factors"):
        return None
    option = options[0]
    values = _values(payload, option, option["factors"])
    lines = [line for group, text in _LINES.items() for line in lines_of(group, text, {**_PER_MTOK, **_PER_MONTH})]
    known = {line.name: option.get(line.name) for line in lines}
    if not values["api_usd_per_mtok"]:
        api = {"api_usd_per_month", "saving_usd_per_month", "breakeven_tokens", "breakeven_fraction"}
        lines = [line for line in lines if line.name not in api]
    return LiveModel(
        key=key,
        title=title,
        inputs=tuple(_input(name, values, payload, option) for name in _INPUTS),
        derived=tuple(lines),
        answer="usd_per_mtok",
        shown=SHOWN,
        expected={name: value for name, value in known.items() if isinstance(value, (int, float))},
    )


def _values(payload: Mapping[str, Any], option: Mapping[str, Any], factors: Mapping[str, Any]) -> dict[str, Any]:
    request = payload.get("request") or {}
    demanded = request.get("tokens_per_month") is not None or request.get("requests_per_s") is not None
    spare = factors["spare_gpu_hours"] / (factors["replica_gpus"] * HOURS_PER_MONTH)
    serving = max(factors["replicas"] - spare, 1.0)
    hosted = payload.get("breakeven") or {}
    return {
        **factors,
        "demand_basis": "tokens" if demanded else "utilisation",
        "utilisation_fraction": factors["busy_gpu_hours"] / (serving * factors["replica_gpus"] * HOURS_PER_MONTH),
        "serving_replicas": serving,
        "low_ratio": option["usd_per_mtok_low"] / option["usd_per_mtok"],
        "high_ratio": option["usd_per_mtok_high"] / option["usd_per_mtok"],
        "api_usd_per_mtok": hosted.get("against_usd_per_mtok"),
        "seconds_per_hour": SECONDS_PER_HOUR,
        "hours_per_month": HOURS_PER_MONTH,
        "tokens_per_mtok": 1e6,
        "w_per_kw": 1000.0,
    }


def _input(name: str, values: Mapping[str, Any], payload: Mapping[str, Any], option: Mapping[str, Any]) -> LiveInput:
    group, description = _INPUTS[name]
    value = values[name]
    low, high, source = None, None, ""
    if name == "usd_per_gpu_hour":
        low, high = value * min(values["price_low_ratio"], 0.8), value * max(values["price_high_ratio"], 1.2)
        source = str((option.get("source_ids") or [""])[0])
    elif name == "tokens_per_month" and values["demand_basis"] == "tokens":
        low, high = value * 0.7, value * 1.3
    elif name == "replica_output_tokens_per_s":
        low, high = value * values["speed_low_ratio"], value * values["speed_high_ratio"]
    elif name == "api_usd_per_mtok":
        provider = (payload.get("breakeven") or {}).get("against_provider")
        source = next(
            (str(row.get("source_id")) for row in payload.get("api") or () if row.get("provider") == provider), ""
        )
    status = "pinned" if name in _PINNED else "constant" if group == "constants" else "sourced" if source else ""
    choices = ("tokens", "utilisation") if name == "demand_basis" else ()
    return LiveInput(
        name, value, _UNITS.get(name) or unit_of(name), low, high, source, status, group, description, choices
    )
