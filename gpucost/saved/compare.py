"""Explain the difference between two saved answers: price, throughput, hours and the other lines, one after the other.

The compute bill is price × hours × accelerators with hours = tokens ÷ (speed × accelerators); factors are replaced
one at a time in a fixed order, so that the effects add up to the whole difference.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.errors import UsageError
from gpucost.training.costing import recompute

# Groups of factors, replaced in this order: what is trained, how fast, where and on which terms, at which price.
STEPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("tokens", "tokens", ("tokens",)),
    (
        "throughput",
        "tokens_per_s_per_gpu",
        ("tokens_per_s_per_gpu", "tokens_per_s_per_gpu_low", "tokens_per_s_per_gpu_high"),
    ),
    ("cluster size", "gpus", ("gpus", "nodes", "gpus_per_unit", "checkpoint_write_gb_per_s")),
    (
        "interruptions",
        "preemptions_per_node_hour",
        (
            "preemptions_per_node_hour",
            "preemptions_per_node_hour_low",
            "preemptions_per_node_hour_high",
            "failures_per_gpu_year",
            "failures_per_gpu_year_low",
            "failures_per_gpu_year_high",
            "wait_hours",
            "restart_hours",
            "checkpoint_gb",
        ),
    ),
    (
        "evaluation, ramp, experiments",
        "evaluation_fraction",
        ("evaluation_fraction", "ramp_hours", "experiments_fraction"),
    ),
    (
        "terms",
        "term_months",
        (
            "term_months",
            "take_or_pay",
            "charge_commitment",
            "minimum_hours",
            "billing_increment_hours",
            "upfront_usd",
            "recurring_usd_per_hour",
            "prepaid",
        ),
    ),
    ("price", "usd_per_gpu_hour", ("usd_per_gpu_hour", "price_low_ratio", "price_high_ratio")),
    ("storage", "storage_usd_per_gb_month", ("dataset_gb", "checkpoints_gb", "storage_usd_per_gb_month")),
    ("egress", "egress_usd_per_gb", ("egress_gb", "egress_usd_per_gb")),
    ("energy and grid", "grid_kgco2e_per_kwh", ("rated_power_w", "power_fraction", "pue_ratio", "grid_kgco2e_per_kwh")),
)

_SHOWN = (
    "provider",
    "instance_type",
    "region",
    "option",
    "gpu",
    "gpus",
    "tokens_per_s_per_gpu",
    "mfu_fraction",
    "days",
    "gpu_hours",
    "usd_per_gpu_hour",
    "cost_usd",
    "cost_low_usd",
    "cost_high_usd",
    "usd_per_mtok",
    "energy_kwh",
    "kgco2e",
    "price_observed_on",
)


def compare(first: Mapping[str, Any], second: Mapping[str, Any], rank: int = 1) -> dict[str, Any]:
    """Return what explains the difference between the leading options of two estimates."""
    before, after = _option(first, rank, "first"), _option(second, rank, "second")
    changes = explain_change(before["factors"], after["factors"])
    difference = after["cost_usd"] - before["cost_usd"]
    return {
        "kind": "comparison",
        "schema_version": first.get("schema_version"),
        "request": {"first": first.get("request"), "second": second.get("request")},
        "as_of": second.get("as_of"),
        "catalog_version": second.get("catalog_version"),
        "summary": _sentence(before, after, changes),
        "before": {name: before.get(name) for name in _SHOWN},
        "after": {name: after.get(name) for name in _SHOWN},
        "difference_usd": difference,
        "changes": changes,
        "request_changes": _request_changes(first.get("request") or {}, second.get("request") or {}),
        "warnings": _warnings(first, second),
        "sources": {**(first.get("sources") or {}), **(second.get("sources") or {})},
    }


def _option(payload: Mapping[str, Any], rank: int, which: str) -> Mapping[str, Any]:
    if payload.get("kind") != "estimate":
        raise UsageError(
            f"the {which} file holds a {payload.get('kind')}, not an estimate; compare takes two saved estimates."
        )
    options: Sequence[Mapping[str, Any]] = payload.get("options") or []
    if len(options) < rank:
        raise UsageError(f"the {which} file has {len(options)} options; there is no option {rank}.")
    return options[rank - 1]


def explain_change(before: Mapping[str, float], after: Mapping[str, float]) -> list[dict[str, Any]]:
    """Replace groups of factors one after the other and return the effect of each; effects add up to the difference."""
    current = dict(before)
    cost = recompute(current)["cost_usd"]
    rows = []
    for factor, shown, names in STEPS:
        if all(current.get(name) == after.get(name) for name in names):
            continue
        shown = shown if current.get(shown) != after.get(shown) else _changed(current, after, names)
        current |= {name: after[name] for name in names}
        outcome = recompute(current)
        rows.append(
            {
                "factor": factor,
                "name": shown,
                "before": before[shown],
                "after": after[shown],
                "effect_usd": outcome["cost_usd"] - cost,
                "days_after": outcome["days"],
                "note": "",
            }
        )
        cost = outcome["cost_usd"]
    return rows


def _changed(before: Mapping[str, float], after: Mapping[str, float], names: Sequence[str]) -> str:
    """Return the first of some factors that differs."""
    return next(name for name in names if before.get(name) != after.get(name))


def _sentence(before: Mapping[str, Any], after: Mapping[str, Any], changes: Sequence[Mapping[str, Any]]) -> str:
    difference = after["cost_usd"] - before["cost_usd"]
    if not changes:
        return f"Both cost {before['cost_usd']:,.2f} USD; no factor of the bill differs."
    largest = max(changes, key=lambda row: abs(row["effect_usd"]))
    direction = "more" if difference > 0 else "less"
    return (
        f"The second costs {abs(difference):,.2f} USD {direction} ({after['cost_usd']:,.2f} against"
        f" {before['cost_usd']:,.2f}); the largest effect is {largest['factor']}, {largest['effect_usd']:+,.2f} USD."
    )


def _request_changes(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = dict.fromkeys([*first, *second])
    return [
        {"name": name, "before": first.get(name), "after": second.get(name)}
        for name in names
        if first.get(name) != second.get(name)
    ]


def _warnings(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    found = []
    if first.get("catalog_version") != second.get("catalog_version"):
        found.append(f"Different catalogs: {first.get('catalog_version')} and {second.get('catalog_version')}.")
    if first.get("gpucost_version") != second.get("gpucost_version"):
        found.append(
            f"Different versions of gpucost: {first.get('gpucost_version')} and {second.get('gpucost_version')}."
        )
    return found
