"""What a run, a month of serving and a purchase cost, from their factors: the causes of each, in their order."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from gpucost.answers.comparison import Change
from gpucost.bridges.core import Cause, Values, in_turn, side_by_side
from gpucost.errors import UsageError
from gpucost.formula.arrays import Columns
from gpucost.money.training_bill import INPUT_NAMES, price_runs
from gpucost.units import SECONDS_PER_HOUR

Ends = tuple[float, float]

_INTERRUPTED = (
    "preemptions_per_node_hour",
    "preemptions_per_node_hour_low",
    "preemptions_per_node_hour_high",
    "failures_per_gpu_year",
    "failures_per_gpu_year_low",
    "failures_per_gpu_year_high",
    "wait_hours",
    "restart_hours",
    "checkpoint_gb",
)
_TERMS = (
    "term_months",
    "take_or_pay",
    "charge_commitment",
    "minimum_hours",
    "billing_increment_hours",
    "upfront_usd",
    "recurring_usd_per_hour",
    "prepaid",
)
_SPEED = ("tokens_per_s_per_gpu", "tokens_per_s_per_gpu_low", "tokens_per_s_per_gpu_high")
# what is trained, how fast, on how many, where and on which terms, at which price
OF_A_RUN = (
    Cause("tokens", "tokens", ("tokens",)),
    Cause("throughput", _SPEED[0], _SPEED),
    Cause("cluster size", "gpus", ("gpus", "nodes", "gpus_per_unit", "checkpoint_write_gb_per_s")),
    Cause("interruptions", _INTERRUPTED[0], _INTERRUPTED),
    Cause(
        "overhead and experiments", "evaluation_fraction", ("evaluation_fraction", "ramp_hours", "experiments_fraction")
    ),
    Cause("terms", "term_months", _TERMS),
    Cause("price", "usd_per_gpu_hour", ("usd_per_gpu_hour", "price_low_ratio", "price_high_ratio")),
    Cause("storage", "storage_usd_per_gb_month", ("dataset_gb", "checkpoints_gb", "storage_usd_per_gb_month")),
    Cause("egress", "egress_usd_per_gb", ("egress_gb", "egress_usd_per_gb")),
)
OF_TOKENS = (
    Cause("tokens served", "tokens_per_month", ("tokens_per_month",)),
    Cause("speed", "tokens_per_s_per_gpu", ("tokens_per_s_per_gpu",)),
    Cause("time in use", "busy_fraction", ("busy_fraction",)),
    Cause("price", "usd_per_gpu_hour", ("usd_per_gpu_hour",)),
)
_GROUPS = ("scope", "workload", "purchase", "facility", "energy", "staff", "contracts", "finance", "tax", "residual")
PER_MTOK_DIGITS = 9  # of a price of a million tokens: a hundredth of a cent is much


def of_runs(before: Values, after: Values, ends: Ends) -> list[Change]:
    """Return why one run costs more than another."""
    return in_turn(before, after, OF_A_RUN, run_usd, ends)


def run_usd(factors: Values) -> float:
    """Return what a run costs, by the factors of its bill."""
    if missing := [name for name in INPUT_NAMES if name not in factors]:
        raise UsageError(f"the saved factors lack {missing[0]}: ask again and save the answer with --format json.")
    numbers = {name: np.nan if factors[name] is None else float(factors[name]) for name in INPUT_NAMES}
    return float(price_runs(Columns({name: np.array([value]) for name, value in numbers.items()})).cost_usd[0])


def of_tokens(first: Values, second: Values, ends: Ends, monthly: bool) -> list[Change]:
    """Return why tokens cost more: by the million, or those of a month where both answers have a load.

    usd_per_mtok = usd_per_gpu_hour ÷ (tokens_per_s_per_gpu × 3600 × busy_fraction) × 10⁶
    """
    before, after = _serving(first), _serving(second)

    def figure(values: Values) -> float:
        hourly = values["tokens_per_s_per_gpu"] * SECONDS_PER_HOUR * values["busy_fraction"]
        return float(values["usd_per_gpu_hour"] / hourly * (values["tokens_per_month"] if monthly else 1e6))

    return in_turn(before, after, OF_TOKENS[not monthly :], figure, ends, 2 if monthly else PER_MTOK_DIGITS)


def _serving(option: Values) -> dict[str, float]:
    """Return the factors of the price of tokens; tokens of a paid hour that is worked through are the speed."""
    carried, hours = option["tokens_per_month"], option["gpu_hours"]
    speed, price = option["tokens_per_s_per_gpu"], option["usd_per_gpu_hour"]
    if not (carried and hours and speed):
        raise UsageError("compare: an answer serves nothing; there is no price of tokens to compare.")
    busy = carried / (hours * speed * SECONDS_PER_HOUR)
    return {
        "tokens_per_month": carried,
        "tokens_per_s_per_gpu": speed,
        "busy_fraction": busy,
        "usd_per_gpu_hour": price,
    }


def of_owning(first: Values, second: Values, ends: Ends) -> list[Change]:
    """Return what each input of two plans does to what owning saves, and to either side."""
    from gpucost.money.comparison import outcome

    found: list[tuple[float, float]] = []

    def saving(values: Values) -> float:
        tables = {name: np.array(values[name]) for name in first["tables"]}
        try:
            worth = outcome({name: value for name, value in values.items() if name not in tables}, tables)
        except (LookupError, NameError, TypeError, ValueError) as error:
            raise UsageError(
                f"the inputs of one of the plans (model.inputs) are not those of this version: {error}."
            ) from None
        own_usd, rent_usd = float(worth.own_usd[0]), float(worth.rent_usd[0])
        if isfinite(rent_usd - own_usd):
            found.append((own_usd, rent_usd))
        return rent_usd - own_usd

    before, after = _plan(first), _plan(second)
    rows = in_turn(before, after, _inputs(first["inputs"], after), saving, ends)
    for row, (was, now) in zip(rows, pairwise(found), strict=False):
        row["own_effect_usd"], row["rent_effect_usd"] = now[0] - was[0], now[1] - was[1]
        if isinstance(row["before"], list):  # a curve has no value to show
            row["before"] = row["after"] = None
    return [row for row in rows if row["effect"] or row.get("own_effect_usd") or row.get("rent_effect_usd")]


def _plan(model: Values) -> dict[str, Any]:
    return {**{row["name"]: row["value"] for row in model["inputs"]}, **model["tables"]}


def _inputs(inputs: Iterable[Mapping[str, Any]], after: Values) -> list[Cause]:
    """Return every input as a cause of its own, in the order of its group; curves last."""
    order = sorted(inputs, key=lambda row: (*_GROUPS, row["group"]).index(row["group"]))
    names = [row["name"] for row in order if row["name"] in after]
    curves = sorted(set(after) - {row["name"] for row in order})
    return [Cause(name, name, (name,)) for name in (*names, *curves)]


def of_mixes(first: Values, second: Values, ends: Ends) -> list[Change]:
    """Return what each supply adds to what a mix costs."""
    sides: list[dict[str, float]] = []
    for answer in (first, second):
        costs: dict[str, float] = {}
        for row in answer["plan"]:
            costs[row["option"]] = costs.get(row["option"], 0.0) + row["cost_usd"]
        sides.append(costs)
    return side_by_side(sides[0], sides[1], ends)
