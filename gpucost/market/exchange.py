"""Exchange rates as the catalog has them: the newest shipped one on or before its day."""

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from gpucost.errors import PriceMissingError

if TYPE_CHECKING:
    from gpucost.catalog import Catalog


def newest_rate(catalog: "Catalog", currency: str, day: date | None = None) -> Mapping[str, Any] | None:
    """Return the newest shipped exchange rate of a currency on or before a day, at most the catalog's."""
    # a day after the catalog's would be answered by what was not known then
    last = min(day or catalog.as_of, catalog.as_of)
    rows = [row for row in catalog.rows("exchange_rates") if row["currency"] == currency and row["on"] <= last]
    return max(rows, key=lambda row: row["on"], default=None)


def usd_per_unit(catalog: "Catalog", currency: str) -> float:
    """Return the newest shipped exchange rate of a currency, in USD for one unit."""
    if currency == "USD":
        return 1.0
    row = newest_rate(catalog, currency)
    if row is None:
        raise PriceMissingError(f"no exchange rate for {currency} on {catalog.as_of}.")
    return float(row["usd_per_unit"])
