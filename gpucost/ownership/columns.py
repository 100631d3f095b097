"""Many comparisons of owning with renting at once, as columns: what a row of a sweep holds, and nothing beside it.

Cases that differ in plain numbers alone share their formulas: the months of all of them are evaluated together. Each
row equals what the single answer says.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.money import cashflow
from gpucost.money.comparison import ALL, evaluate_months, outcome
from gpucost.ownership.alternatives import monthly, own_worth, present, scalar
from gpucost.ownership.analysis import RENT_SEARCH_USD, UTILISATION_SEARCH, investment
from gpucost.ownership.answer import levels
from gpucost.ownership.assemble import OwnershipCase

Array = NDArray[np.float64]

VARIED = {"utilisation": "utilisation_fraction", "wacc": "wacc_fraction", "rent": "rent_usd_per_gpu_hour"}
AT_ONCE = 256  # cases, each with a row of months for every formula
_READ = (
    "own_value_usd",
    "rent_total_usd",
    "in_use",
    "in_horizon",
    "discount_ratio",
    "debt_discount_ratio",
    "saving_in_cash_usd",
    "monthly_rate_fraction",
    "allocated_gpu_hours_per_month",
    "owned_gpu_hours_per_month",
    "after_tax_ratio",
    "goodput_fraction",
)


def alike(first: OwnershipCase, second: OwnershipCase, names: Sequence[str]) -> bool:
    """Tell whether two cases differ in the values of some inputs alone."""
    values = zip(first.values().items(), second.values().items(), strict=True)
    same_values = all(name in names or one == other for (name, one), (_, other) in values)
    same_tables = first.tables.keys() == second.tables.keys() and all(
        np.array_equal(table, second.tables[name]) for name, table in first.tables.items()
    )
    return same_values and same_tables


def rows(case: OwnershipCase, moved: Mapping[str, Array]) -> list[dict[str, Any] | None]:
    """Return the figures of cases that differ from one in some inputs; None where a formula gives no finite number."""
    count = len(next(iter(moved.values())))
    inputs = {**case.columns(), **{name: column.reshape(-1, 1) for name, column in moved.items()}}
    values = evaluate_months(inputs, case.tables, case.months)
    finite = np.ones(count, bool)
    for line in ALL:
        finite &= np.broadcast_to(np.isfinite(values[line.name]).all(axis=-1), (count,))
    used, price = _even(case, inputs, moved, count)
    months = _even_months(case, inputs, moved, count)
    found: list[dict[str, Any] | None] = []
    for place in range(count):
        if not finite[place]:
            found.append(None)
            continue
        of_case = {name: _row(values[name], place) for name in _READ} | {"m": values["m"]}
        own, rent = own_worth(of_case), present(of_case, "rent_total_usd")
        saving = rent - own
        rate = scalar(of_case, "monthly_rate_fraction")
        found.append(
            {
                "cheaper": "own" if saving > 0 else "rent",
                "own_npv_usd": own,
                "rent_npv_usd": rent,
                "saving_usd": saving,
                **levels(case, of_case),
                **investment(monthly(of_case, "saving_in_cash_usd"), rate),
                "breakeven_utilisation_fraction": used[place],
                "breakeven_usd_per_gpu_hour": price[place],
                "breakeven_months": months[place],
            }
        )
    return found


def _row(value: Any, place: int) -> Any:
    """Return the case at a place of a formula's value; one value may be that of all."""
    return value if np.ndim(value) < 2 or value.shape[0] == 1 else value[place : place + 1]


def _even(
    case: OwnershipCase, inputs: Mapping[str, Any], moved: Mapping[str, Array], count: int
) -> tuple[list[float | None], list[float | None]]:
    """Return the utilisation and the price at which both sides cost the same, of every case; None without any."""
    names = ("utilisation_fraction", "rent_usd_per_gpu_hour")
    twice = {**inputs, **{name: np.tile(column, 2).reshape(-1, 1) for name, column in moved.items()}}
    now = [np.broadcast_to(np.ravel(inputs[name]), (count,)) for name in names]

    def saving(x: Array) -> Array:
        use, price = np.concatenate([x[:count], now[0]]), np.concatenate([now[1], x[count:]])
        return outcome({**twice, names[0]: use, names[1]: price}, case.tables).saving_usd

    high = np.repeat([UTILISATION_SEARCH, RENT_SEARCH_USD], count)
    used, price = np.split(cashflow.roots(saving, np.zeros(2 * count), high), 2)
    if case.assumptions["rent_billing"].value == "take_or_pay":
        used = np.full(count, np.nan)
    used = np.where(used > 1, np.nan, used)
    return [_number(x) for x in used.tolist()], [_number(x) for x in price.tolist()]


def _even_months(
    case: OwnershipCase, inputs: Mapping[str, Any], moved: Mapping[str, Array], count: int
) -> list[int | None]:
    """Return the shortest comparison over which owning costs no more, of every case."""
    months = np.arange(np.floor(case.number("lead_time_months")) + 1, case.months + 1)
    if not months.size:
        return [None] * count
    many = {**inputs, **{name: np.repeat(column, months.size).reshape(-1, 1) for name, column in moved.items()}}
    saving = outcome({**many, "months": np.tile(months, count)}, case.tables).saving_usd
    wins = np.broadcast_to(saving, (count * months.size,)).reshape(count, -1) >= 0
    return [int(months[np.argmax(row)]) if row.any() else None for row in wins]


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None
