"""Many comparisons of owning with renting at once, as columns: what a row of a sweep holds, and nothing beside it.

Cases whose words are the same share their formulas: the months of all of them are evaluated together, and each has
its own row of a table where the tables differ. A row equals what the single answer says.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.formula.arrays import evaluate_again, internal_rates
from gpucost.money import cashflow
from gpucost.money.comparison import ALL, TABLES, evaluate_months, has_lengths, outcome, savings_by_length
from gpucost.ownership.analysis import RENT_SEARCH_USD, UTILISATION_SEARCH
from gpucost.units import SECONDS_PER_HOUR

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

AT_ONCE = 512  # cases, each with a row of months for every formula
_WORTH = ("own_value_usd", "rent_total_usd")


def figures(inputs: Mapping[str, Any], tables: Mapping[str, Array]) -> tuple[dict[str, Array], NDArray[np.bool_]]:
    """Return the figures of cases, NaN where there is none, and which cases have an answer: all formulas are finite.

    Inputs are words, numbers, or columns of numbers; a table is one for all cases, or has a row for each.
    """
    values = evaluate_months(inputs, tables)
    count = max(value.shape[0] for value in values.values() if np.ndim(value) == 2)
    finite = np.ones(count, bool)
    for line in ALL:
        finite &= np.isfinite(values[line.name]).all(axis=-1)
    own, rent = _worth(values, "own_value_usd", None), _worth(values, "rent_total_usd", "discount_ratio")
    used, price = _even(values, count)
    found = {
        "own_npv_usd": own,
        "rent_npv_usd": rent,
        "saving_usd": rent - own,
        **_levels(values, own, rent),
        **_investment(values, count),
        "breakeven_utilisation_fraction": used,
        "breakeven_usd_per_gpu_hour": price,
        "breakeven_months": _even_months(values, count),
    }
    return {name: np.broadcast_to(column, (count,)) for name, column in found.items()}, finite


def _worth(values: Mapping[str, Any], name: str, ratio: str | None) -> Array:
    """Return the present value of a monthly line of every case."""
    return np.asarray(np.sum(values[name] if ratio is None else values[name] * values[ratio], axis=-1))


def _levels(values: Mapping[str, Any], own: Array, rent: Array) -> dict[str, Array]:
    """Return the levelised prices before tax: of an allocated hour of either side, and of tokens that are owned."""
    hours = np.ravel(values["allocated_gpu_hours_per_month"]) * _worth(values, "in_use", "discount_ratio")
    hours = hours * np.ravel(values["after_tax_ratio"])
    with np.errstate(divide="ignore", invalid="ignore"):
        owned, rented = (np.where(hours != 0, worth / hours, np.nan) for worth in (own, rent))
        mtok_per_hour = np.ravel(values["tokens_per_s_per_gpu"]) * SECONDS_PER_HOUR / 1e6
        of_mtok = owned / np.ravel(values["goodput_fraction"]) / np.where(mtok_per_hour > 0, mtok_per_hour, np.nan)
    levels = {"gpu_hour": owned, "mtok": of_mtok}
    found = {f"levelised_usd_per_{unit}": level for unit, level in levels.items()}
    return {
        name: np.where(np.isfinite(level), level, np.nan)
        for name, level in {**found, "levelised_rent_usd_per_gpu_hour": rented}.items()
    }


def _investment(values: Mapping[str, Any], count: int) -> dict[str, Array]:
    """Judge owning instead of renting as an investment, paid in cash, on what it saves each month."""
    months = values["m"].shape[1]
    saving = np.broadcast_to(values["saving_in_cash_usd"], (count, months))
    rate = internal_rates(saving)
    total = np.cumsum(saving, axis=1)
    below = total < 0
    last = months - 1 - np.argmax(below[:, ::-1], axis=1)  # the last month in which the total is below zero
    paid = below.any(axis=1) & (last < months - 1)
    row, at = np.arange(count), np.minimum(last, months - 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossed = at + total[row, at] / (total[row, at] - total[row, at + 1])
    return {"irr_fraction": (1 + rate) ** 12 - 1, "payback_months": np.where(paid, crossed, np.nan)}


def _even(values: Mapping[str, Any], count: int) -> tuple[Array, Array]:
    """Return the utilisation and the price at which both sides cost the same, of every case; NaN without any."""
    used = np.full(count, np.nan)
    if values["rent_billing"] != "take_or_pay":
        used = _even_at(values, "utilisation_fraction", UTILISATION_SEARCH, count)
    return np.where(used > 1, np.nan, used), _even_at(values, "rent_usd_per_gpu_hour", RENT_SEARCH_USD, count)


def _even_at(values: Mapping[str, Any], name: str, high: float, count: int) -> Array:
    def saving(x: Array, known: Mapping[str, Any] = values) -> Array:
        again = evaluate_again(ALL, known, {name: x.reshape(-1, 1)}, _WORTH)
        return _worth(again, "rent_total_usd", "discount_ratio") - _worth(again, "own_value_usd", None)

    def of_some(x: Array, rows: Rows) -> Array:
        return saving(x, {key: _taken(value, rows, count) for key, value in values.items()})

    return cashflow.roots(saving, np.zeros(count), np.full(count, high), some=of_some)


def _taken(value: Any, rows: Rows, count: int) -> Any:
    """Return the rows of some cases of an input, a table or a line; what is one for all cases stays."""
    return value[rows] if np.ndim(value) == 2 and value.shape[0] == count else value


def _even_months(values: Mapping[str, Any], count: int) -> Array:
    """Return the shortest comparison over which owning costs no more, of every case; NaN without any."""
    lengths = np.ravel(values["m"])
    first, last = np.floor(np.ravel(values["lead_time_months"])) + 1, np.ravel(values["months"])
    asked = (lengths >= first[:, None]) & (lengths <= last[:, None])
    if has_lengths(values):
        saving = savings_by_length(values)
    else:
        saving = np.stack([_saving_of_lengths(values, np.array([row]), count) for row in range(count)])
    wins = asked & (saving >= 0)
    return np.where(wins.any(axis=1), lengths[np.argmax(wins, axis=1)], np.nan)


def _saving_of_lengths(values: Mapping[str, Any], row: Rows, count: int) -> Array:
    """Evaluate a case once for each length."""
    known = {name: _taken(value, row, count) for name, value in values.items() if name not in _LINES}
    tables = {name: np.ravel(known.pop(name)) for name in TABLES}
    lengths = np.ravel(known.pop("m"))
    return outcome({**known, "months": lengths}, tables).saving_usd


_LINES = frozenset(line.name for line in ALL)
