"""Whether the figures of an answer follow from what it was worked out from: its own formulas, evaluated once more."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import fsum, isclose, isfinite
from typing import Any

import numpy as np

from gpucost.formula.arrays import Columns
from gpucost.gate import shown
from gpucost.money import serving_bill, training_bill

Answer = Mapping[str, Any]
_NEAR = 1e-6  # numbers that JSON has shortened
_CENTS_USD = 0.05  # by which the rounded lines of a bill may differ in all


def contradiction(answer: Answer) -> str | None:
    """Return the first figure of an answer that does not follow from its factors or inputs, in words; None is none."""
    found = _RECOUNTED.get(str(answer["kind"]))
    return None if found is None else next(found(answer), None)


def _of_runs(answer: Answer) -> Iterator[str]:
    """Yield what the options of an estimate contradict."""
    options = answer["options"]
    counted = training_bill.price_runs(_columns(options, training_bill.INPUT_NAMES))
    for place, option in enumerate(options):
        same = {name: value for name, value in option["factors"].items() if name in option}
        yield from _of_option(f"options[{place}]", option, same, counted.row(place), "cost_usd")


def _of_months(answer: Answer) -> Iterator[str]:
    """Yield what the options of serving contradict."""
    options = answer["options"]
    columns = _columns(options, serving_bill.INPUT_NAMES)
    columns[serving_bill.DEMANDED] = _columns(options, ("tokens_per_month",)).tokens_per_month
    counted = serving_bill.price_months(columns)
    counted["tokens_per_month"] = counted.carried_tokens
    counted["utilisation_fraction"] = counted.utilisation_of_paid_fraction
    for place, option in enumerate(options):
        same = {name: option["factors"][name] for name in ("usd_per_gpu_hour", "gpus", "replicas", "gpu_hours")}
        yield from _of_option(f"options[{place}]", option, same, counted.row(place), "usd_per_month")


def _of_plans(answer: Answer) -> Iterator[str]:
    """Yield what the present values of owning and renting contradict."""
    from gpucost.money.comparison import FORMULAS, outcome

    model, worth = answer["model"], answer["npv_usd"]
    if model["formulas"] == FORMULAS:
        tables = {name: np.array(table, np.float64) for name, table in model["tables"].items()}
        try:
            found = outcome({row["name"]: row["value"] for row in model["inputs"]}, tables)
        except (LookupError, NameError, TypeError, ValueError) as error:
            yield f"the inputs of its plan (model.inputs) are not those of its formulas: {shown(str(error))}"
            return
        for side, usd in (("own", found.own_usd), ("rent", found.rent_usd)):
            yield from _unlike(f"npv_usd.{side}", worth[side], float(usd[0]), _NEAR)
    for row in answer["options"]:
        if row["name"] in worth:
            yield from _unlike(f"options: npv_usd of {row['name']}", row["npv_usd"], worth[row["name"]], _NEAR)
    slack = _NEAR * max(map(abs, worth.values()))  # of what may be a small difference of large sums
    if abs(worth["rent"] - worth["own"] - worth["saving"]) > slack:
        yield "npv_usd.saving is not what owning saves against renting"


def _columns(options: Sequence[Answer], names: Sequence[str]) -> Columns:
    """Return factors as columns with an element per option; what is not known is no number."""
    given = {name: [one["factors"].get(name) for one in options] for name in names}
    return Columns({name: np.array(column, np.float64) for name, column in given.items()})


def _of_option(where: str, option: Answer, same: Answer, counted: Answer, total: str) -> Iterator[str]:
    """Yield the figures of an option that its factors contradict: what both hold, what follows, and the bill."""
    bill_usd = max(abs(counted[total]), _CENTS_USD) if isfinite(counted[total]) else _CENTS_USD
    cents, noise = _NEAR + _CENTS_USD / bill_usd, _NEAR * max(1.0, bill_usd)
    found = {**same, **{name: value for name, value in counted.items() if name in option}}
    for name, value in found.items():
        slack = (cents, noise) if name.endswith("usd") else (cents if "usd" in name else _NEAR, _NEAR)
        yield from _unlike(f"{where}.{name}", option[name], value, *slack)
    hours = _NEAR * max(1.0, *(line["quantity"] for line in option["lines"]))
    for line in option["lines"]:
        name = line["name"].replace(" ", "_")
        yield from _unlike(f"{where}.lines: {name}", line["quantity"], counted.get(f"{name}_quantity"), _NEAR, hours)
        yield from _unlike(f"{where}.lines: {name}_usd", line["cost_usd"], counted.get(f"{name}_usd"), cents, noise)
    lines = fsum(line["cost_usd"] for line in option["lines"])
    yield from _unlike(f"{where}.{total}", option[total], lines, cents)


def _unlike(where: str, said: Any, found: Any, near: float, noise: float = _NEAR) -> Iterator[str]:
    """Yield a figure that is not what was found, beyond a share of it and beyond a noise."""
    known = all(isinstance(one, (int, float)) and isfinite(one) for one in (said, found))
    if known and not isclose(said, found, rel_tol=near, abs_tol=noise):
        yield f"{where} is {said:.6g}, and {found:.6g} follows from what it was worked out from"


_RECOUNTED: dict[str, Callable[[Answer], Iterator[str]]] = {
    "estimate": _of_runs,
    "inference": _of_months,
    "tco": _of_plans,
}
