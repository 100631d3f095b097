"""Owning against renting: the order of the formulas, and their evaluation for many cases at once."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpucost.formula.arrays import evaluate_again, evaluate_all
from gpucost.formula.language import Line, read_tables, version
from gpucost.money import financing, lender, ownership, renting, statements, tax

Array = NDArray[np.float64]

_CHUNK = 1024  # cases evaluated together: a month's column of them stays in the processor's cache


def _sum(name: str, description: str, lines: tuple[Line, ...]) -> Line:
    return Line(name, " + ".join(line.name for line in lines), description)


_TAX = {line.name: line for line in tax.MONTHLY}

_IN_CASH_LINES = (*ownership.CAPITAL, *ownership.RUNNING, _TAX["own_tax_usd"])
FINANCING_LINES = (
    # of the formulas of financing those are paid that begin with own_; the others lead to them
    *(line for line in financing.MONTHLY if line.name.startswith("own_") and line.name.endswith("_usd")),
    _TAX["own_financing_tax_usd"],
)
OWN_LINES = (*_IN_CASH_LINES, *FINANCING_LINES)
RENT_LINES = (*renting.COMPUTE, *renting.SERVICES, _TAX["rent_tax_usd"])
# lines that are valued at the cost of debt; a resale is no debt
AT_DEBT_RATE = frozenset(line.name for line in FINANCING_LINES) - {"own_lease_returned_usd"}

WORTH, ANSWERS, MOVING = read_tables(__file__, "worth", "answers", "moving")

SCALARS = (*tax.SCALARS, *ownership.SCALARS, *financing.SCALARS, *statements.SCALARS, *renting.SCALARS)
# Each line sees those before it: tax stands after what is deducted, a loan after the cash available that may size it,
# and the tax that financing changes after the loan.
MONTHLY = (
    *ownership.TIMING,
    *renting.PRICES,
    *renting.COMPUTE,
    *renting.SERVICES,
    _sum("rent_services_usd", "renting, everything beside compute", renting.SERVICES),
    *ownership.CAPITAL,
    *ownership.RUNNING,
    _sum("own_running_usd", "owning, running costs", ownership.RUNNING),
    *tax.IN_CASH,
    *lender.AVAILABLE,
    *financing.MONTHLY,
    *tax.OF_FINANCING,
    _sum("own_in_cash_usd", "owning, paid in cash", _IN_CASH_LINES),
    _sum("own_financing_usd", "what financing moves", FINANCING_LINES),
    _sum("rent_total_usd", "renting, all lines", RENT_LINES),
    *WORTH,
)

ALL = (*SCALARS, *MONTHLY)


# The saving is a straight line in the price and in the utilisation; these lines hold what moves with either.

_SIDES = {line.name: "own" for line in OWN_LINES} | {line.name: "rent" for line in RENT_LINES}
BY_MONTH = tuple(
    line._replace(side=_SIDES.get(line.name, "")) for line in (*MONTHLY, *statements.MONTHLY, *lender.MONTHLY, *MOVING)
)
FORMULAS = version((*SCALARS, *BY_MONTH, *ANSWERS))  # says which formulas a saved answer was computed by

TABLES = (
    "residual_by_year",
    "depreciated_by_year",
    "assessed_by_year",
    "rent_path_by_month",
    "rent_low_by_month",
    "rent_high_by_month",
    "observed_v_by_month",
    "use_by_month",
)


_WORTH = (
    "own_value_usd",
    "rent_total_usd",
    "in_horizon",
    "in_use",
    "discount_ratio",
    "allocated_gpu_hours_per_month",
    "owned_gpu_hours_per_month",
    "after_tax_ratio",
)


class Outcome(Struct, frozen=True):
    """Present values of some cases, in USD at the start; costs are positive."""

    own_usd: Array
    rent_usd: Array
    hours: Array  # discounted allocated GPU-hours × what is left of their price after tax
    owned_hours: Array  # discounted owned GPU-hours, likewise

    @property
    def saving_usd(self) -> Array:
        """Return what owning saves against renting."""
        return self.rent_usd - self.own_usd

    @property
    def own_usd_per_gpu_hour(self) -> Array:
        """Return the levelised price of an allocated GPU-hour when owning."""
        with np.errstate(divide="ignore", invalid="ignore"):  # nothing used has no price per hour of use
            return self.own_usd / np.where(self.hours > 0, self.hours, np.nan)


def columns(values: Mapping[str, Any]) -> dict[str, Any]:
    """Shape inputs for the formulas: numbers become columns over the cases, words stay."""
    shaped = {}
    for name, value in values.items():
        is_shaped = isinstance(value, str) or (isinstance(value, np.ndarray) and value.ndim == 2)
        shaped[name] = value if is_shaped else np.asarray(np.nan if value is None else value, np.float64).reshape(-1, 1)
    return shaped


def evaluate_months(
    inputs: Mapping[str, Any],
    tables: Mapping[str, Array],
    months: int | None = None,
    targets: tuple[str, ...] | None = None,
) -> dict[str, Any]:
    """Evaluate the formulas for the months 0 … `months`; the result holds inputs, scalars and monthly lines by name."""
    values = columns(inputs)
    last = int(np.max(values["months"])) if months is None else months
    values.update(tables)
    # Months stand along the second axis, cases along the first: every line broadcasts over both.
    values["m"] = np.arange(last + 1, dtype=np.float64).reshape(1, -1)
    evaluate_all(ALL, values, targets)
    return values


def outcome(inputs: Mapping[str, Any], tables: Mapping[str, Array]) -> Outcome:
    """Evaluate the cases in chunks and keep their present values only."""
    parts = []
    for chunk, cases, months in _chunks(inputs):
        values = evaluate_months(chunk, tables, months, _WORTH)
        discount, after_tax = values["discount_ratio"], np.ravel(values["after_tax_ratio"])
        hours, owned_hours = (
            values[f"{name}_gpu_hours_per_month"][:, 0] * np.sum(values[months_of] * discount, axis=1) * after_tax
            for name, months_of in (("allocated", "in_use"), ("owned", "in_horizon"))
        )
        own_usd, rent_usd = np.sum(values["own_value_usd"], axis=1), np.sum(values["rent_total_usd"] * discount, axis=1)
        # Lines that no varied input moves have one row: each of the four becomes as long as the chunk.
        parts.append([np.broadcast_to(worth, (cases,)) for worth in (own_usd, rent_usd, hours, owned_hours)])
    return Outcome(*(np.concatenate(worths) for worths in zip(*parts, strict=True)))


def rent_worth(inputs: Mapping[str, Any], tables: Mapping[str, Array]) -> Array:
    """Return the present value of renting of every case, without the side that owns."""
    worths = []
    for chunk, cases, months in _chunks(inputs):
        values = evaluate_months(chunk, tables, months, ("rent_total_usd", "discount_ratio"))
        worth = np.sum(values["rent_total_usd"] * values["discount_ratio"], axis=1)
        worths.append(np.broadcast_to(worth, (cases,)))
    return np.concatenate(worths)


def _chunks(inputs: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Yield the inputs of _CHUNK cases at a time, how many these are, and the months of the longest of all."""
    shaped = columns(inputs)
    cases = max(value.shape[0] for value in shaped.values() if not isinstance(value, str))
    months = int(np.max(shaped["months"]))
    for start in range(0, cases, _CHUNK):
        chunk = {
            name: value if isinstance(value, str) or value.shape[0] == 1 else value[start : start + _CHUNK]
            for name, value in shaped.items()
        }
        yield chunk, min(_CHUNK, cases - start), months


def savings_by_length(values: Mapping[str, Any]) -> Array:
    """Return what owning saves in comparisons of 0, 1, 2 … months, of cases that were evaluated by month.

    A month is the same in every comparison that lasts longer; only in the last one is there resale, a debt to settle,
    a term to pay for. So the last months of all comparisons come from one evaluation, in which each month is the last.
    """
    # Each month is taken as the end of a comparison of its own, in one evaluation.
    last = evaluate_again(ALL, values, {"months": values["m"]}, _OF_LENGTHS)
    if values["tax_basis"] == "after" and values["loss_basis"] == "carried_forward":
        # The tax of the year that ends with the comparison, of each length: what is left of earlier losses counts. A
        # year's months before the last one are those of a longer comparison; earlier years are, too.
        year = np.ravel(values["plan_year"])
        # of each month, the first month of its tax year
        begins = np.maximum.accumulate(np.where(np.diff(year, prepend=-1) > 0, np.arange(year.size), 0))

        def of_year(month: Array, at_end: Array) -> Array:
            earlier = np.cumsum(month, axis=-1) - month
            return np.asarray(earlier - earlier[..., begins] + at_end)

        income = of_year(values["income_usd"], last["income_usd"])
        allowance, limit, due = values["loss_allowance_usd"], values["loss_limit_fraction"], {}
        for side, deducted in _TAXED.items():
            taxable = income - sum(of_year(values[name], last[name]) for name in deducted)
            absorbed = np.minimum(taxable, allowance) + limit * np.maximum(taxable - allowance, 0)
            used = np.maximum(np.minimum(absorbed, values[f"{side}_loss_before_usd"]), 0)
            due[f"{side}_tax_due_usd"] = values["tax_rate_fraction"] * (np.maximum(taxable, 0) - used - income)
        last = evaluate_again(ALL, last, due, _OF_LENGTHS)
    before, at_end = (
        lines["rent_total_usd"] * lines["discount_ratio"] - lines["own_value_usd"] for lines in (values, last)
    )
    return np.asarray(np.cumsum(before, axis=1) - before + at_end)


_OF_LENGTHS = ("own_value_usd", "rent_total_usd", "own_deductible_usd", "financing_deductible_usd", "income_usd")
_TAXED = {
    "in_cash": ("own_deductible_usd",),
    "rented": ("rent_deductible_usd",),
    "financed": ("own_deductible_usd", "financing_deductible_usd"),
}


def has_lengths(values: Mapping[str, Any]) -> bool:
    """Tell whether `savings_by_length` holds: not for a loan that follows the cash available, nor for a later order."""
    sculpted = values["financing"] == "loan" and values["loan_repayment"] == "sculpted"
    return not sculpted and not np.any(np.asarray(values["order_month"], np.float64))
