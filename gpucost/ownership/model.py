"""The comparison as inputs and formulas, for a workbook that stays alive and for an explanation."""

from typing import Any, TypedDict

import numpy as np

from gpucost.answers.ownership import CashModel, DescribedLine, ModelInput
from gpucost.money.comparison import MONTHLY, OWN_LINES, RENT_LINES, SCALARS, TABLES, evaluate_months
from gpucost.money.evaluate import Line, evaluate_all, read_lines
from gpucost.ownership.assemble import Case
from gpucost.ownership.plan import Assumption
from gpucost.units import unit_of

WORKBOOK_MONTHS = 120  # a longer life in the workbook still adds up

ANSWERS = read_lines("""
npv_own_usd: present value of owning
    sum_product(own_total_usd, discount_ratio)
npv_rent_usd: present value of renting
    sum_product(rent_total_usd, discount_ratio)
npv_saving_usd: what owning saves, present value
    npv_rent_usd - npv_own_usd
irr_fraction: return of owning instead of renting, a year
    (1 + internal_rate(saving_usd)) ** months_per_year - 1
discounted_gpu_hours: discounted allocated hours
    allocated_gpu_hours_per_month * sum_product(in_horizon, discount_ratio)
levelised_usd_per_gpu_hour: levelised price of owning, per allocated hour
    npv_own_usd / discounted_gpu_hours
levelised_usd_per_gpu_hour_owned: the same per owned hour
    levelised_usd_per_gpu_hour * utilisation_fraction
levelised_usd_per_gpu_hour_productive: the same per productive hour
    levelised_usd_per_gpu_hour / goodput_fraction
levelised_rent_usd_per_gpu_hour: levelised price of renting, per allocated hour
    npv_rent_usd / discounted_gpu_hours
breakeven_usd_per_gpu_hour: rental price at which both cost the same
    rent_usd_per_gpu_hour * (1 - npv_saving_usd / sum_product(moves_with_price_usd, discount_ratio))
breakeven_utilisation_fraction: utilisation at which both cost the same; 0 under take-or-pay, which use does not move
    where(rent_billing == 'take_or_pay', 0, utilisation_fraction * (1 - npv_saving_usd /
        sum_product(moves_with_use_usd, discount_ratio)))
""")

# The saving is a straight line in the price and in the utilisation; these lines hold what moves with either.
MOVING = read_lines("""
moves_with_price_usd: part of the saving that is proportional to the rental price
    where(tax_basis == 'after', 1 - tax_rate_fraction, 1) * (rent_compute_usd + rent_upfront_usd +
        rent_cancellation_usd + rent_support_usd - (in_horizon - in_service) * rent_support_usd -
        where(bridge_usd_per_gpu_hour > 0, 0, 1) * own_bridge_rent_usd)
moves_with_use_usd: part of the saving that is proportional to the utilisation
    where(tax_basis == 'after', 1 - tax_rate_fraction, 1) * (rent_compute_usd + rent_upfront_usd +
        rent_support_usd - (in_horizon - in_service) * rent_support_usd - own_bridge_rent_usd - own_energy_usd *
        utilisation_fraction * (min(power_fraction_active, power_cap_fraction) - power_fraction_idle) /
        mean_power_fraction)
""")


def block(case: Case) -> CashModel:
    """Return the inputs, tables, formulas and values of a case."""
    months = max(WORKBOOK_MONTHS, case.months)
    values = evaluate_months(case.values(), case.tables, months)
    evaluate_all((*MOVING, *ANSWERS), values)
    sides: dict[str, str] = {line.name: "own" for line in OWN_LINES} | {line.name: "rent" for line in RENT_LINES}
    return {
        "months": months,
        "inputs": [_input(case, entry) for entry in case.assumptions.values()],
        "tables": {name: case.tables[name][: months + 2].tolist() for name in TABLES},
        "derived": [_scalar(line, values) for line in SCALARS],
        "monthly": [
            {**_text(line), "side": sides.get(line.name, ""), "values": _row(values, line.name, months)}
            for line in (*MONTHLY, *MOVING)
        ],
        "answers": [_scalar(line, values) for line in ANSWERS],
    }


def _input(case: Case, entry: Assumption) -> ModelInput:
    row = case.registry.inputs[entry.name]
    choices = (row["choices"] or "").split("|")
    return {**entry.as_dict(), "choices": choices, "minimum": row["minimum"], "maximum": row["maximum"]}


class LineText(TypedDict):
    """A formula in words."""

    name: str
    unit: str
    formula: str
    description: str


def _text(line: Line) -> LineText:
    return {"name": line.name, "unit": unit_of(line.name), "formula": line.text, "description": line.description}


def _scalar(line: Line, values: dict[str, Any]) -> DescribedLine:
    number = float(np.ravel(values[line.name])[0])
    return {**_text(line), "value": number if np.isfinite(number) else None}


def _row(values: dict[str, Any], name: str, months: int) -> list[float]:
    wide = np.broadcast_to(values[name], (1, months + 1))
    row: list[float] = wide[0].astype(np.float64).tolist()
    return row
