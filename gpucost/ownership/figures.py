"""What comparisons of owning with renting come to: the figures of one answer, and of the many of a sweep.

Cases whose words are the same share their formulas: the months of all of them are evaluated together, and each has
its own row of a table where the tables differ.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.errors import UsageError
from gpucost.formula.arrays import evaluate_again, internal_rates
from gpucost.formula.language import Line
from gpucost.money import cashflow
from gpucost.money.comparison import ALL, TABLES, evaluate_months, has_lengths, outcome, savings_by_length
from gpucost.ownership.assemble import OwnershipCase
from gpucost.units import SECONDS_PER_HOUR

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

_AT_ONCE = 512  # cases, each with a row of months for every formula
_UTILISATION_SEARCH = 5.0  # beyond 1 the root says how many times the hours would be needed
RENT_SEARCH_USD = 1000.0
_WORTH = ("own_value_usd", "rent_total_usd")


def figures(values: Mapping[str, Any], count: int) -> dict[str, Array]:
    """Return the figures of cases whose months were evaluated; NaN where there is none."""
    own_usd = _worth(values, "own_value_usd", None)
    rent_usd = _worth(values, "rent_total_usd", "discount_ratio")
    saving = np.broadcast_to(values["saving_in_cash_usd"], (count, values["m"].shape[1]))
    discount = cashflow.discount(np.ravel(values["monthly_rate_fraction"]), saving.shape[1] - 1)
    needed = np.full(count, np.nan)
    if values["rent_billing"] != "take_or_pay":  # whose cost no hour in use changes
        needed = _even_at(values, "utilisation_fraction", _UTILISATION_SEARCH, count)
    # The levelised prices before tax of either side: of allocated, owned and productive hours, and of tokens. A cost
    # after tax is met by a price of which 1 − tax rate is left: divided by hours × that share it is before tax.
    hours = np.ravel(values["allocated_gpu_hours_per_month"]) * _worth(values, "in_use", "discount_ratio")
    hours = hours * np.ravel(values["after_tax_ratio"])
    owned = np.ravel(values["owned_gpu_hours_per_month"]) * _worth(values, "in_horizon", "discount_ratio")
    good, speed = np.ravel(values["goodput_fraction"]), np.ravel(values["tokens_per_s_per_gpu"])
    levels: dict[str, Array] = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        used = hours / (owned * np.ravel(values["after_tax_ratio"]))
        mtok_per_hour = np.where(speed > 0, speed, np.nan) * SECONDS_PER_HOUR / 1e6
        for side, worth in (("levelised", own_usd), ("levelised_rent", rent_usd)):
            per_hour = np.where(hours != 0, worth / hours, np.nan)
            prices = {
                "gpu_hour": per_hour,
                "gpu_hour_owned": per_hour * used,
                "gpu_hour_productive": per_hour / good,
                "mtok": per_hour / good / mtok_per_hour,
            }
            levels |= {f"{side}_usd_per_{unit}": price for unit, price in prices.items()}
    # The shortest comparison over which owning, with resale at its end, costs no more. Nothing is owned before the
    # servers arrive, and no comparison is longer than its own months.
    lengths = np.ravel(values["m"])
    first, last = np.floor(np.ravel(values["lead_time_months"])) + 1, np.ravel(values["months"])
    possible = (lengths >= first[:, None]) & (lengths <= last[:, None])
    if has_lengths(values):
        saving_of_length = savings_by_length(values)
    else:
        # a loan that follows the cash, or a later order: each case is evaluated once for each length
        savings = []
        for row in range(count):
            known = {
                name: _rows_of(value, np.array([row]), count) for name, value in values.items() if name not in _LINES
            }
            tables = {name: np.ravel(known.pop(name)) for name in TABLES}
            months = np.ravel(known.pop("m"))
            savings.append(outcome({**known, "months": months}, tables).saving_usd)
        saving_of_length = np.stack(savings)
    wins = possible & (saving_of_length >= 0)
    columns = {
        "own_npv_usd": own_usd,
        "rent_npv_usd": rent_usd,
        "saving_usd": rent_usd - own_usd,
        **{name: np.where(np.isfinite(level), level, np.nan) for name, level in levels.items()},
        # owning instead of renting as an investment, paid in cash, on what it saves each month
        "irr_fraction": (1 + internal_rates(saving)) ** 12 - 1,
        "payback_months": cashflow.payback_months(saving),
        "discounted_payback_months": cashflow.payback_months(saving * discount),
        # where both sides cost the same; the hours needed may be more than exist
        "hours_needed_fraction": needed,
        "breakeven_utilisation_fraction": np.where(needed > 1, np.nan, needed),
        "breakeven_usd_per_gpu_hour": _even_at(values, "rent_usd_per_gpu_hour", RENT_SEARCH_USD, count),
        "breakeven_months": np.where(wins.any(axis=1), lengths[np.argmax(wins, axis=1)], np.nan),
    }
    return {name: np.broadcast_to(column, (count,)) for name, column in columns.items()}


def figures_of(case: OwnershipCase, values: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the figures of one case, None where there is none; one with an endless formula is refused."""
    endless = int(_endless(values, 1)[0])
    if endless >= 0:
        raise _refusal(ALL[endless])
    return {name: None if np.isnan(column[0]) else float(column[0]) for name, column in figures(values, 1).items()}


def compared(cases: Sequence[OwnershipCase]) -> list[dict[str, Any] | UsageError]:
    """Return the figures of each case, and which side costs less; the error of one with an endless formula."""
    rows: list[dict[str, Any] | UsageError] = [{}] * len(cases)
    for places in _places_alike(cases):
        # They share their words; of numbers and tables, what all share stays one.
        alike = [cases[place] for place in places]
        inputs: dict[str, Any] = {}
        for name, first in alike[0].assumptions.items():
            if isinstance(first.value, str):
                inputs[name] = first.value
                continue
            numbers = [case.assumptions[name].value for case in alike]
            if name != "months" and numbers.count(numbers[0]) == len(numbers):
                numbers = numbers[:1]
            inputs[name] = np.array([np.nan if x is None else x for x in numbers], np.float64).reshape(-1, 1)
        tables: dict[str, Array] = {}
        for name in TABLES:
            listed = [case.tables[name] for case in alike]
            tables[name] = listed[0]
            if not all(table is listed[0] or np.array_equal(table, listed[0]) for table in listed):
                # a row for each, as long as the longest; the last value of a shorter one holds
                most = max(len(table) for table in listed)
                tables[name] = np.stack(
                    [np.concatenate((table, np.full(most - len(table), table[-1]))) for table in listed]
                )
        values = evaluate_months(inputs, tables)
        endless = _endless(values, len(places))
        columns = {name: column.tolist() for name, column in figures(values, len(places)).items()}
        for row, place in enumerate(places):
            if endless[row] >= 0:
                rows[place] = _refusal(ALL[endless[row]])
                continue
            # NaN, which alone is not equal to itself, is no figure
            row_figures = {
                name: None if column[row] != column[row] else column[row] for name, column in columns.items()
            }
            rows[place] = {**row_figures, "cheaper": "own" if columns["saving_usd"][row] > 0 else "rent"}
    return rows


def _refusal(line: Line) -> UsageError:
    """Return the error of inputs of which a formula makes no finite number."""
    return UsageError(
        f"{line.name} is not a finite number with these inputs: it is {line.text}. Change one of its inputs."
    )


def _endless(values: Mapping[str, Any], count: int) -> Rows:
    """Return the place of the first formula of each case that is not finite; −1 where all are."""
    first = np.full(count, -1)
    for place, line in enumerate(ALL):
        finite = np.isfinite(values[line.name]).all(axis=-1)
        if not finite.all():
            first = np.where((first < 0) & ~finite, place, first)
    return first


# --- Cases whose words are the same, as columns.


def _places_alike(cases: Sequence[OwnershipCase]) -> Iterator[list[int]]:
    """Yield the places of cases that share their words, and whether one evaluation holds every length."""
    groups: dict[Any, list[int]] = {}
    for place, case in enumerate(cases):
        values = case.values()
        choices = tuple(value for value in values.values() if isinstance(value, str))
        groups.setdefault((choices, has_lengths(values)), []).append(place)
    # Cases of a chunk are evaluated over the months of its longest: those of like lengths stand together.
    for places in groups.values():
        places.sort(key=lambda place: cases[place].months)
        for start in range(0, len(places), _AT_ONCE):
            yield places[start : start + _AT_ONCE]


# --- The figures.


def _worth(values: Mapping[str, Any], name: str, ratio: str | None) -> Array:
    """Return the present value of a monthly line of every case."""
    return np.asarray(np.sum(values[name] if ratio is None else values[name] * values[ratio], axis=-1))


def _even_at(values: Mapping[str, Any], name: str, high: float, count: int) -> Array:
    def saving(x: Array, known: Mapping[str, Any] = values) -> Array:
        again = evaluate_again(ALL, known, {name: x.reshape(-1, 1)}, _WORTH)
        return _worth(again, "rent_total_usd", "discount_ratio") - _worth(again, "own_value_usd", None)

    # the last cases that are unsolved, alone
    def of_some(x: Array, rows: Rows) -> Array:
        return saving(x, {key: _rows_of(value, rows, count) for key, value in values.items()})

    return cashflow.roots(saving, np.zeros(count), np.full(count, high), some=of_some)


def _rows_of(value: Any, rows: Rows, count: int) -> Any:
    """Return the rows of some cases of an input, a table or a line; what is one for all cases stays."""
    return value[rows] if np.ndim(value) == 2 and value.shape[0] == count else value


_LINES = frozenset(line.name for line in ALL)
