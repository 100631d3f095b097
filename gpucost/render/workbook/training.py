"""The live model of a training run: the engine's own bill, from the MFU of the best offer on; the fleet is pinned."""

from collections.abc import Mapping
from typing import Any

from gpucost.formula.language import Input, expand
from gpucost.money import training_bill as bill
from gpucost.render.workbook.live import LiveInput, LiveModel, constants, numbers
from gpucost.units import unit_of

_PINNED = ("gpus", "nodes", "gpus_per_unit")
_SWING = (0.8, 1.2)  # ends of an input for which nobody stated any
SHOWN = (
    "cost_usd",
    "cost_low_usd",
    "cost_high_usd",
    "days",
    "gpu_hours",
    "usd_per_mtok",
    "exposure_usd",
    "cash_usd",
    "energy_kwh",
    "kgco2e",
)
_WORDS = {
    "ramp_low_ratio": "shortest start ÷ usual one",
    "ramp_high_ratio": "longest start ÷ usual one",
    "z90_ratio": "standard deviations from the middle to the end of an 80 % range",
    "slack_ratio": "24.000000001 hours are one day, not two",
    "tiny_ratio": "below this exponent nothing interrupts",
    "series_limit_ratio": "below it the spread is taken from its series",
}


def training_model(payload: Mapping[str, Any], key: str, title: str) -> LiveModel | None:
    """Return the live model of the best offer, or None where the answer carries no factors."""
    options = payload.get("options") or []
    if not options or not set(bill.INPUT_NAMES) <= set(options[0].get("factors") or ()):
        return None
    option = options[0]
    values = {**option["factors"], **_speed(option["factors"])}
    follows = {line.name for line in bill.SPEED}
    given = [*bill.SPEED_INPUTS, *(entry for entry in bill.INPUTS if entry.name not in follows)]
    lines = (*bill.SPEED, *expand(bill.LINES))
    fixed = {**bill.CONSTANTS, **bill.SPEED_CONSTANTS}
    return LiveModel(
        key=key,
        title=title,
        inputs=(*(_input(entry, values, option) for entry in given), *constants(fixed, _WORDS)),
        derived=lines,
        answer="cost_usd",
        shown=SHOWN,
        expected=numbers(lines, {**option["factors"], **option}),
    )


def _speed(factors: Mapping[str, float]) -> dict[str, float]:
    """Return what the speed follows from: MFU, and the ends of its range as ratios."""
    typical = factors["tokens_per_s_per_gpu"]
    peak_flop = factors["peak_tflops"] * bill.SPEED_CONSTANTS["flop_per_tflop"]
    return {
        "mfu_fraction": typical * factors["model_flop_per_token"] / peak_flop,
        "speed_low_ratio": factors["tokens_per_s_per_gpu_low"] / typical,
        "speed_high_ratio": factors["tokens_per_s_per_gpu_high"] / typical,
    }


def _input(entry: Input, values: Mapping[str, float], option: Mapping[str, Any]) -> LiveInput:
    name, value, priced = entry.name, values[entry.name], entry.name == "usd_per_gpu_hour"
    low, high = _ends(name, values)
    return LiveInput(
        name,
        value,
        unit_of(name),
        low,
        high,
        group=entry.group,
        description=entry.description,
        source_id=str((option.get("source_ids") or [""])[0]) if priced else "",
        status="pinned" if name in _PINNED else "sourced" if priced else "",
    )


def _ends(name: str, values: Mapping[str, float]) -> tuple[float | None, float | None]:
    """Return the low and high end of an input: stated where there are any, a swing where the answer turns on it."""
    value = values[name]
    if name == "mfu_fraction":
        return value * values["speed_low_ratio"], value * values["speed_high_ratio"]
    if name in ("preemptions_per_node_hour", "failures_per_gpu_year"):
        return values[f"{name}_low"], values[f"{name}_high"]
    if name == "usd_per_gpu_hour" and (values["price_low_ratio"], values["price_high_ratio"]) != (1.0, 1.0):
        return value * values["price_low_ratio"], value * values["price_high_ratio"]
    return (value * _SWING[0], value * _SWING[1]) if name in ("usd_per_gpu_hour", "tokens") else (None, None)
