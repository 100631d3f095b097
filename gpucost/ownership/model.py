"""The comparison as inputs and formulas, for a workbook that stays alive and for an explanation."""

from typing import Any, TypedDict

import numpy as np

from gpucost.answers.ownership import CashModel, DescribedLine, ModelInput
from gpucost.formula.arrays import evaluate_all
from gpucost.formula.language import Line
from gpucost.money.comparison import ANSWERS, BY_MONTH, FORMULAS, SCALARS, TABLES, evaluate_months
from gpucost.ownership.assemble import OwnershipCase
from gpucost.ownership.plan import Assumption

WORKBOOK_MONTHS = 120  # a longer life in the workbook still adds up


def block(case: OwnershipCase) -> CashModel:
    """Return the inputs, tables, formulas and values of a case."""
    months = max(WORKBOOK_MONTHS, case.months)
    values = evaluate_months(case.values(), case.tables, months)
    evaluate_all((*BY_MONTH, *ANSWERS), values)
    return {
        "formulas": FORMULAS,
        "months": months,
        "inputs": [_input(case, entry) for entry in case.assumptions.values()],
        "tables": {name: case.tables[name][: months + 2].tolist() for name in TABLES},
        "derived": [_scalar(line, values) for line in SCALARS],
        "monthly": [{**_text(line), "side": line.side, "values": _row(values, line.name, months)} for line in BY_MONTH],
        "answers": [_scalar(line, values) for line in ANSWERS],
    }


def _input(case: OwnershipCase, entry: Assumption) -> ModelInput:
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
    return {"name": line.name, "unit": line.measure, "formula": line.text, "description": line.description}


def _scalar(line: Line, values: dict[str, Any]) -> DescribedLine:
    number = float(np.ravel(values[line.name])[0])
    return {**_text(line), "value": number if np.isfinite(number) else None}


def _row(values: dict[str, Any], name: str, months: int) -> list[float]:
    wide = np.broadcast_to(values[name], (1, months + 1))
    row: list[float] = wide[0].astype(np.float64).tolist()
    return row
