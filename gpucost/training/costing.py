"""From the factors of a run to its money, once more: what a what-if, a comparison and a rerun recompute."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpucost.answers.common import BillLine
from gpucost.formula.arrays import Columns
from gpucost.money import bill
from gpucost.money.training_bill import BILL, INPUT_NAMES, price_runs


def recompute(factors: Mapping[str, float], **changes: float) -> dict[str, Any]:
    """Recompute the money of one answer from its factors, some of them changed by name."""
    given = {name: float(factors[name]) for name in INPUT_NAMES}
    moved = changes.get("tokens_per_s_per_gpu", given["tokens_per_s_per_gpu"]) / given["tokens_per_s_per_gpu"]
    for end in ("tokens_per_s_per_gpu_low", "tokens_per_s_per_gpu_high"):
        given[end] *= moved
    case = Columns({name: np.array([float(value)]) for name, value in {**given, **changes}.items()})
    costs = price_runs(case)
    return {**costs.row(0), "lines": lines_of(case, costs, 0)}


def lines_of(factors: Columns, costs: Columns, case: int) -> list[BillLine]:
    """Return the lines of one case; lines of nothing are left out."""
    return bill.printed(BILL, {**factors.row(case), **costs.row(case)})
