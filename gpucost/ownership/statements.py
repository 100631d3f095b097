"""The comparison as statements by fiscal year, in another currency, and as a live model of inputs and formulas."""

from collections.abc import Mapping
from datetime import date
from typing import Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from gpucost.answers import ownership as shape
from gpucost.answers.ownership import CashModel, Currency, DescribedLine, ModelInput, MoneyYear, MonthlyLine
from gpucost.errors import PriceMissingError, UsageError
from gpucost.formula.arrays import evaluate_all
from gpucost.formula.language import Line
from gpucost.money import price_paths
from gpucost.money.cashflow import discount, monthly_rate
from gpucost.money.comparison import ANSWERS, BY_MONTH, FORMULAS, SCALARS, TABLES, evaluate_months
from gpucost.money.statements import MONTHLY, ROWS
from gpucost.ownership.alternatives import monthly, own_worth, present
from gpucost.ownership.assemble import OwnershipCase
from gpucost.ownership.plan import same_profile_gpus

# --- Statements of owning by fiscal year, quarter and month: cash, profit and loss, and a balance sheet that
# balances.

Array = NDArray[np.float64]

_NOTHING_USD = 1e-6  # what is left of a debt that is repaid is rounding


def statements(case: OwnershipCase, values: Mapping[str, Any], days: list[date]) -> shape.Statements:
    """Return the statements; `days` are those of the months, and each month belongs to the period of its day."""
    lines_values = dict(values)
    evaluate_all(MONTHLY, lines_values)
    lines = {name: monthly(lines_values, name) for row in ROWS for _, name, _ in row.terms}
    last_month = int(case.special.get("fiscal_year_end_month") or 12)
    labels = [fiscal(day, last_month) for day in days]
    years, quarters, months = (_periods(lines, [label[length] for label in labels]) for length in range(3))
    return {
        "fiscal_year_end_month": last_month,
        "lease_standard": str(case.assumptions["lease_standard"].value),
        "years": years,
        "quarters": quarters,
        "months": months,
    }


def fiscal(day: date, last_month: int) -> tuple[str, str, str]:
    """Return the fiscal year, quarter and month of a day; a fiscal year is called after the year in which it ends.

    >>> fiscal(date(2026, 11, 22), 6)
    ('FY2027', 'FY2027 Q2', '2026-11')
    """
    year = day.year + (day.month > last_month)
    quarter = (day.month - last_month - 1) % 12 // 3 + 1
    return f"FY{year}", f"FY{year} Q{quarter}", f"{day.year}-{day.month:02d}"


def _periods(lines: Mapping[str, Array], labels: list[str]) -> list[shape.StatementPeriod]:
    """Return the rows of the statements for each label, which stands at every month of its period."""
    periods = []
    for label in dict.fromkeys(labels):
        first = labels.index(label)
        last = len(labels) - 1 - labels[::-1].index(label)
        amounts: dict[str, float] = {}
        for row in ROWS:
            amount = 0.0
            for sign, name, how in row.terms:
                line = lines[name]
                if how == "end":  # what the balance sheet holds
                    amount += sign * float(line[last])
                elif how == "change":  # of what it holds, since the period before
                    amount += sign * float(line[last] - (line[first - 1] if first else 0.0))
                else:
                    amount += sign * float(line[0 if how == "so_far" else first : last + 1].sum())
            amounts[row.name] = 0.0 if abs(amount) < _NOTHING_USD else amount
        periods.append(cast(shape.StatementPeriod, {"period": label, **amounts}))
    return periods


# --- The comparison in another currency: a dated spot rate for what is paid at the start, a forward curve for the
# rest.
#
# Cash of month m is divided by the rate of month m (USD per unit). It is discounted at the cost of capital of its own
# currency: the one given (`currency_wacc_fraction`), else the one that the exchange rates imply (covered interest
# parity): 1 + w = (1 + WACC) × spot ÷ forward a year, so that a present value is the same money in either currency.


def exchange_rates(case: OwnershipCase) -> Array | None:
    """Return USD for one unit of the currency asked for by month; None where that is USD."""
    code = str(case.special.get("currency") or "USD").upper()
    if code == "USD":
        return None
    rate = case.special.get("usd_per_unit")
    if rate is None and not case.special.get("currency_curve"):
        raise PriceMissingError(
            f"no exchange rate for {code}: give usd_per_unit (USD for one {code}) with usd_per_unit_on, "
            "or currency_curve."
        )
    if rate is not None and not 0 < float(rate) < np.inf:
        raise UsageError(f"usd_per_unit = {rate!r} must be positive.")
    # What is paid at the start is paid at the spot rate; without one the curve's first month stands for it.
    rates = np.full(case.months + 1, float(rate or 1.0))
    if case.special.get("currency_curve"):
        forward = price_paths.read_curve(str(case.special["currency_curve"]), case.months, "usd_per_unit")
        rates[1:] = forward
        rates[0] = float(rate) if rate is not None else forward[0]
    return rates


def converted(case: OwnershipCase, values: Mapping[str, Any]) -> Currency | None:
    """Return cash and present values in the currency asked for; None where USD is."""
    rates = exchange_rates(case)
    if rates is None:
        return None
    own, rent = (monthly(values, name) / rates for name in ("own_total_usd", "rent_total_usd"))
    year = np.ceil(np.arange(own.size) / 12).astype(int)
    own_by_year, rent_by_year = (np.bincount(year, weights=flows).tolist() for flows in (own, rent))
    by_year: list[MoneyYear] = [
        {"year": i, "own": a, "rent": b, "saving": b - a}
        for i, (a, b) in enumerate(zip(own_by_year, rent_by_year, strict=True))
    ]
    curved = bool(case.special.get("currency_curve"))
    discount_ratio = monthly(values, "discount_ratio")
    financing = own_worth(values) - present(values, "own_in_cash_usd")
    own_value, wacc, basis = worth_in_currency(
        case, rates, monthly(values, "own_in_cash_usd"), discount_ratio, financing
    )
    rent_value, _, _ = worth_in_currency(case, rates, monthly(values, "rent_total_usd"), discount_ratio)
    return {
        "currency": str(case.special["currency"]).upper(),
        "usd_per_unit": float(rates[0]),
        "usd_per_unit_on": str(case.special.get("usd_per_unit_on") or "not stated"),
        "forward": "the given curve" if curved else "the spot rate held",
        "npv_own": own_value,
        "npv_rent": rent_value,
        "wacc_fraction": wacc,
        "discounting": basis,
        "cash_own": own.tolist(),
        "cash_rent": rent.tolist(),
        "by_year": by_year,
        "rates": rates.tolist(),
    }


def worth_in_currency(
    case: OwnershipCase, rates: Array, flows_usd: Array, discount_ratio: Array, financing_usd: float = 0.0
) -> tuple[float, float, str]:
    """Return a present value at the cost of capital of the currency, that cost, and where it is from.

    What financing is worth keeps its own rate, that of debt.
    """
    code = str(case.special["currency"]).upper()
    stated_wacc, wacc = case.special.get("currency_wacc_fraction"), case.number("wacc_fraction")
    if stated_wacc is None:
        moved = float(rates[0] / rates[-1]) ** (12 / case.months)
        basis = f"what {wacc:.2%} in USD comes to in {code} at these exchange rates"
        rate, ratio = (1 + wacc) * moved - 1, discount_ratio * rates / rates[0]
    else:
        rate, basis = float(stated_wacc), f"given for {code}"
        nominal = case.assumptions["wacc_convention"].value == "nominal"
        ratio = discount(monthly_rate(np.array([rate]), nominal), case.months)[0]
    return float(np.sum(flows_usd / rates * ratio) + financing_usd / rates[0]), rate, basis


# --- The comparison as inputs and formulas, for a workbook that stays alive and for an explanation.

_WORKBOOK_MONTHS = 120  # a longer life in the workbook still adds up


def block(case: OwnershipCase) -> CashModel:
    """Return the inputs, tables, formulas and values of a case."""
    months = max(_WORKBOOK_MONTHS, case.months)
    values = evaluate_months(case.values(), case.tables, months)
    evaluate_all((*BY_MONTH, *ANSWERS), values)
    inputs: list[ModelInput] = []
    for entry in case.assumptions.values():
        row, choices = case.registry.inputs[entry.name], case.registry.choices.get(entry.name, ())
        low, high = row["minimum"], row["maximum"]
        if entry.name == "gpus" and case.accelerator is not None and not case.special.get("profile"):
            # another size has another profile, which only a new run looks up
            low, high = same_profile_gpus(case.accelerator, case.number("gpus"), case.number("gpus_per_node"))
        inputs.append({**entry.as_dict(), "choices": list(choices), "minimum": low, "maximum": high})
    lines: list[MonthlyLine] = []
    for line in BY_MONTH:
        by_month: list[float] = np.broadcast_to(values[line.name], (1, months + 1))[0].astype(np.float64).tolist()
        lines.append({**_text(line), "side": line.side, "values": by_month})
    return {
        "formulas": FORMULAS,
        "months": months,
        "inputs": inputs,
        "tables": {name: case.tables[name][: months + 2].tolist() for name in TABLES},
        "derived": [_scalar(line, values) for line in SCALARS],
        "monthly": lines,
        "answers": [_scalar(line, values) for line in ANSWERS],
    }


class LineText(TypedDict):
    """A formula in words."""

    name: str
    unit: str
    formula: str
    description: str


def _text(line: Line) -> LineText:
    return {"name": line.name, "unit": line.measure, "formula": line.text, "description": line.description}


def _scalar(line: Line, values: dict[str, Any]) -> DescribedLine:
    number = float(np.ravel(values[line.name])[0])
    return {**_text(line), "value": number if np.isfinite(number) else None}
