"""The comparison in another currency: a dated spot rate for what is paid at the start, a forward curve for the rest."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpucost.answers.ownership import Currency
from gpucost.errors import PriceMissingError, UsageError
from gpucost.money import rent_paths
from gpucost.ownership.alternatives import monthly
from gpucost.ownership.assemble import OwnershipCase


def converted(case: OwnershipCase, values: Mapping[str, Any]) -> Currency | None:
    """Return cash and present values in the currency asked for; None where USD is.

    Cash of month m is divided by the rate of month m (USD per unit) and discounted at the same WACC. Without a curve
    the spot rate is held, which assumes equal inflation in both currencies, and is said.
    """
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
        forward = rent_paths.read_curve(Path(str(case.special["currency_curve"])), case.months, "usd_per_unit")
        rates[1:] = forward
        rates[0] = float(rate) if rate is not None else forward[0]
    discount = monthly(values, "discount_ratio")
    own, rent = (monthly(values, name) / rates for name in ("own_total_usd", "rent_total_usd"))
    return {
        "currency": code,
        "usd_per_unit": float(rates[0]),
        "usd_per_unit_on": str(case.special.get("usd_per_unit_on") or "not stated"),
        "forward": "the given curve" if case.special.get("currency_curve") else "the spot rate held",
        "npv_own": float(np.sum(own * discount)),
        "npv_rent": float(np.sum(rent * discount)),
        "cash_own": own.tolist(),
        "cash_rent": rent.tolist(),
    }
