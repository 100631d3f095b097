"""The live model of serving: the engine's own bill, from tokens or utilisation on; fleet and layout are pinned."""

from collections.abc import Mapping
from typing import Any

from gpucost.formula.language import Input
from gpucost.money import serving_bill as bill
from gpucost.render.workbook.live import LiveInput, LiveModel, constants, numbers
from gpucost.units import HOURS_PER_MONTH, unit_of

SHOWN = (
    "usd_per_mtok",
    "usd_per_mtok_low",
    "usd_per_mtok_high",
    "usd_per_mtok_input",
    "usd_per_mtok_output",
    "usd_per_month",
    "carried_tokens",
    "utilisation_of_paid_fraction",
    "api_usd_per_month",
    "saving_usd_per_month",
    "breakeven_tokens",
    "energy_kwh",
    "kgco2e",
)
_UNITS = {"tokens_per_month": "tokens", "replica_output_tokens_per_s": "tokens per second", "gpu_hours": "GPU-hours"}
_PINNED = ("replica_gpus", "serving_replicas", "gpu_hours", "spare_gpu_hours")
_TOKENS, _UTILISATION = "tokens", "utilisation"
_LOAD_SWING, _PRICE_SWING = (0.7, 1.3), (0.8, 1.2)  # ends of an input for which nobody stated any


def serving_model(payload: Mapping[str, Any], key: str, title: str) -> LiveModel | None:
    """Return the live model of the best offer, or None where the answer carries no factors."""
    options = payload.get("options") or []
    if not options or not set(bill.INPUT_NAMES) <= set(options[0].get("factors") or ()):
        return None
    option = options[0]
    values = {**option["factors"], **_asked(payload, option["factors"])}
    given = (*bill.DEMAND_INPUTS, *bill.INPUTS, *bill.HOSTED_INPUTS)
    lines = (*bill.WITH_DEMAND, *(bill.HOSTED if values["api_usd_per_mtok"] else ()))
    return LiveModel(
        key=key,
        title=title,
        inputs=(*(_input(entry, values, payload, option) for entry in given), *constants(bill.CONSTANTS, {})),
        derived=lines,
        answer="usd_per_mtok",
        shown=SHOWN,
        expected=numbers(lines, option),
    )


def _asked(payload: Mapping[str, Any], factors: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a workbook asks beside the factors: how the load is given, and the hosted price."""
    request = payload.get("request") or {}
    demanded = request.get("tokens_per_month") is not None or request.get("requests_per_s") is not None
    there = factors["serving_replicas"] * factors["replica_gpus"] * HOURS_PER_MONTH
    return {
        "demand_basis": _TOKENS if demanded else _UTILISATION,
        "utilisation_fraction": factors["busy_gpu_hours"] / there,
        "api_usd_per_mtok": (payload.get("breakeven") or {}).get("against_usd_per_mtok"),
    }


def _input(entry: Input, values: Mapping[str, Any], payload: Mapping[str, Any], option: Mapping[str, Any]) -> LiveInput:
    name = entry.name
    source = _source(name, payload, option)
    low, high = _ends(name, values)
    return LiveInput(
        name,
        values[name],
        _UNITS.get(name) or unit_of(name),
        low,
        high,
        source,
        status="pinned" if name in _PINNED else "sourced" if source else "",
        group=entry.group,
        description=entry.description,
        choices=(_TOKENS, _UTILISATION) if name == "demand_basis" else (),
    )


def _ends(name: str, values: Mapping[str, Any]) -> tuple[float | None, float | None]:
    value = values[name]
    if name == "usd_per_gpu_hour":
        cheap, dear = _PRICE_SWING
        return value * min(values["price_low_ratio"], cheap), value * max(values["price_high_ratio"], dear)
    if name == "tokens_per_month" and values["demand_basis"] == _TOKENS:
        return value * _LOAD_SWING[0], value * _LOAD_SWING[1]
    if name == "replica_output_tokens_per_s":
        return value * values["speed_low_ratio"], value * values["speed_high_ratio"]
    return None, None


def _source(name: str, payload: Mapping[str, Any], option: Mapping[str, Any]) -> str:
    if name == "usd_per_gpu_hour":
        return str((option.get("source_ids") or [""])[0])
    if name != "api_usd_per_mtok":
        return ""
    provider = (payload.get("breakeven") or {}).get("against_provider")
    return next((str(row.get("source_id")) for row in payload.get("api") or () if row.get("provider") == provider), "")
