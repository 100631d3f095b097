"""Charges for the tests: rows of FOCUS files, with what a row leaves out filled in."""

import csv
from typing import Any

USUAL: dict[str, Any] = {
    "BilledCost": 10, "EffectiveCost": 10, "ListCost": 10, "ContractedCost": 10, "BillingCurrency": "USD",
    "ChargeCategory": "Usage", "ChargePeriodStart": "2026-11-01T00:00:00Z", "ChargePeriodEnd": "2026-11-02T00:00:00Z",
    "SkuId": "p5", "PricingQuantity": 5, "PricingUnit": "Hours", "Tags": "{}",
}  # fmt: skip


def charge(**given: Any) -> dict[str, Any]:
    """Return one charge: 5 hours of p5 at 2 USD, unless told otherwise; both costs follow `cost`."""
    cost = given.pop("cost", None)
    costs = {} if cost is None else dict.fromkeys(("BilledCost", "EffectiveCost", "ListCost", "ContractedCost"), cost)
    return {**USUAL, **costs, **given}


def write(path: Any, *rows: dict[str, Any]) -> str:
    """Write charges as CSV; the columns are those of any of them."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with open(path, "w", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, names, lineterminator="\n")
        lines.writeheader()
        lines.writerows(rows)
    return str(path)
