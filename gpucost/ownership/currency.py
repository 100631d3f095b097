"""The comparison in another currency: a dated spot rate for what is paid at the start, a forward curve for the rest.

Cash of month m is divided by the rate of month m (USD per unit). It is discounted at the cost of capital of its own
currency: the one given (`currency_wacc_fraction`), else the one that the exchange rates imply (covered interest
parity): 1 + w = (1 + WACC) × spot ÷ forward a year, so that a present value is the same money in either currency.
"""

from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from gpucost.answers.ownership import Currency, MoneyYear
from gpucost.errors import PriceMissingError, UsageError
from gpucost.money import rent_paths
from gpucost.money.cashflow import discount, monthly_rate
from gpucost.ownership.alternatives import monthly, own_worth, present
from gpucost.ownership.assemble import OwnershipCase

Array = NDArray[np.float64]


def converted(case: OwnershipCase, values: Mapping[str, Any]) -> Currency | None:
    """Return cash and present values in the currency asked for; None where USD is."""
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
    rates = np.full(case.months + 1, float(rate or 1.0))
    if case.special.get("currency_curve"):
        forward = rent_paths.read_curve(str(case.special["currency_curve"]), case.months, "usd_per_unit")
        rates[1:] = forward
        rates[0] = float(rate) if rate is not None else forward[0]
    own, rent = (monthly(values, name) / rates for name in ("own_total_usd", "rent_total_usd"))
    curved = bool(case.special.get("currency_curve"))
    return {
        "currency": code,
        "usd_per_unit": float(rates[0]),
        "usd_per_unit_on": str(case.special.get("usd_per_unit_on") or "not stated"),
        "forward": "the given curve" if curved else "the spot rate held",
        **_worth(case, values, rates, code),
        "cash_own": own.tolist(),
        "cash_rent": rent.tolist(),
        "by_year": _by_year(own, rent),
        "rates": rates.tolist(),
    }


class _Worth(TypedDict):
    npv_own: float
    npv_rent: float
    wacc_fraction: float
    discounting: str


def _worth(case: OwnershipCase, values: Mapping[str, Any], rates: Array, code: str) -> _Worth:
    """Return present values at the cost of capital of the currency; financing keeps its own rate."""
    said, wacc = case.special.get("currency_wacc_fraction"), case.number("wacc_fraction")
    if said is None:
        moved = float(rates[0] / rates[-1]) ** (12 / case.months)
        words = f"what {wacc:.2%} in USD comes to in {code} at these exchange rates"
        rate, ratio = (1 + wacc) * moved - 1, monthly(values, "discount_ratio") * rates / rates[0]
    else:
        rate, words = float(said), f"given for {code}"
        nominal = case.assumptions["wacc_convention"].value == "nominal"
        ratio = discount(monthly_rate(np.array([rate]), nominal), case.months)[0]
    financing = own_worth(values) - present(values, "own_in_cash_usd")
    own, rent = (float(np.sum(monthly(values, name) / rates * ratio)) for name in ("own_in_cash_usd", "rent_total_usd"))
    return {"npv_own": own + financing / rates[0], "npv_rent": rent, "wacc_fraction": rate, "discounting": words}


def _by_year(own: Array, rent: Array) -> list[MoneyYear]:
    year = np.ceil(np.arange(own.size) / 12).astype(int)
    sums = [np.bincount(year, weights=flows).tolist() for flows in (own, rent)]
    return [{"year": i, "own": a, "rent": b, "saving": b - a} for i, (a, b) in enumerate(zip(*sums, strict=True))]
