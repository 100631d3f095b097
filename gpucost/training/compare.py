"""Explain the difference between two saved answers: price, throughput, hours and the other lines, one after the other.

The compute bill is price × hours × accelerators with hours = tokens ÷ (speed × accelerators); factors are replaced
one at a time in a fixed order, so that the effects add up to the whole difference.
"""

from collections.abc import Mapping, Sequence
from typing import cast, get_type_hints

from gpucost.answers import SCHEMA_VERSION
from gpucost.answers.common import Request
from gpucost.answers.training import Change, Comparison, Estimate, RankedOption, RequestChange, Side
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


def compare(first: Estimate, second: Estimate, rank: int = 1) -> Comparison:
    """Return what explains the difference between the leading options of two estimates."""
    before, after = _option(first, rank, "first"), _option(second, rank, "second")
    changes = explain_change(known(before), known(after))
    difference = after["cost_usd"] - before["cost_usd"]
    return {
        "kind": "comparison",
        "schema_version": SCHEMA_VERSION,
        "request": {"first": first["request"], "second": second["request"]},
        "as_of": second["as_of"],
        "catalog_version": second["catalog_version"],
        "lead": _sentence(before, after, changes),
        "before": _side(before),
        "after": _side(after),
        "difference_usd": difference,
        "changes": changes,
        "request_changes": _request_changes(first["request"], second["request"]),
        "warnings": _warnings(first, second),
        "sources": {**first["sources"], **second["sources"]},
    }


def _side(option: RankedOption) -> Side:
    return cast(Side, {name: option[name] for name in get_type_hints(Side)})  # type: ignore[literal-required]


def _option(payload: Estimate, rank: int, which: str) -> RankedOption:
    if payload["kind"] != "estimate":
        raise UsageError(
            f"the {which} file holds a {payload['kind']}, not an estimate; compare takes two saved estimates."
        )
    options = payload["options"]
    if len(options) < rank:
        raise UsageError(f"the {which} file has {len(options)} options; there is no option {rank}.")
    return options[rank - 1]


def known(option: RankedOption) -> Mapping[str, float]:
    """Return the factors of an option; what a grid or a rated power leaves open stays None."""
    return cast(Mapping[str, float], option["factors"])


def explain_change(before: Mapping[str, float], after: Mapping[str, float]) -> list[Change]:
    """Replace groups of factors one after the other and return the effect of each; effects add up to the difference."""
    current = dict(before)
    cost = recompute(current)["cost_usd"]
    rows: list[Change] = []
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


def _sentence(before: RankedOption, after: RankedOption, changes: Sequence[Change]) -> str:
    difference = after["cost_usd"] - before["cost_usd"]
    if not changes:
        return f"Both cost {before['cost_usd']:,.2f} USD; no factor of the bill differs."
    largest = max(changes, key=lambda row: abs(row["effect_usd"]))
    direction = "more" if difference > 0 else "less"
    return (
        f"The second costs {abs(difference):,.2f} USD {direction} ({after['cost_usd']:,.2f} against"
        f" {before['cost_usd']:,.2f}); the largest effect is {largest['factor']}, {largest['effect_usd']:+,.2f} USD."
    )


def _request_changes(first: Request, second: Request) -> list[RequestChange]:
    names = dict.fromkeys([*first, *second])
    return [
        {"name": name, "before": first.get(name), "after": second.get(name)}
        for name in names
        if first.get(name) != second.get(name)
    ]


def _warnings(first: Estimate, second: Estimate) -> list[str]:
    found = []
    if first["catalog_version"] != second["catalog_version"]:
        found.append(f"Different catalogs: {first['catalog_version']} and {second['catalog_version']}.")
    if first["gpucost_version"] != second["gpucost_version"]:
        found.append(f"Different versions of gpucost: {first['gpucost_version']} and {second['gpucost_version']}.")
    return found
