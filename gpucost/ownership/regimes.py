"""Tax law and place as defaults: what a country deducts and carries forward, what a region charges."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpucost.errors import PriceMissingError, UnknownNameError
from gpucost.ownership.plan import OWN_ESTIMATE, Assumption, Registry

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

# input -> items of the ownership table that a site may name, such as sales_tax.us_texas
SITE = {
    "colocation_usd_per_kw_month": "colocation",
    "sales_tax_fraction": "sales_tax",
    "property_tax_fraction": "property_tax",
}


def apply_regime(catalog: "Catalog", defaults: dict[str, Assumption], asked: str | None) -> list[float] | None:
    """Put a country's tax law in place of the defaults; return its depreciation by year."""
    if asked is None:
        return None
    rows = catalog.rows("tax_regimes")
    known = sorted({row["regime"] for row in rows})
    if asked.lower() not in known:
        raise UnknownNameError("tax regime", asked, known, f"There are {', '.join(known)}.")
    shares = None
    for row in rows:
        if row["regime"] != asked.lower():
            continue
        if row["name"] == "depreciation_by_year":
            shares = [float(share) for share in row["value"].split()]
            continue
        usd = _usd(catalog, row["unit"].partition(" ")[0]) if row["name"] == "loss_allowance" else 1.0
        name = "loss_allowance_usd" if row["name"] == "loss_allowance" else row["name"]
        defaults[name] = _stated(defaults[name], row, float(row["value"]) * usd)
    said: dict[str, Any] = {"status": "given", "note": f"tax regime {asked.lower()}"}
    defaults["tax_basis"] = replace(defaults["tax_basis"], value="after", **said)
    return shares


def _stated(entry: Assumption, row: Mapping[str, Any], value: float) -> Assumption:
    sourced = not row["source_id"].startswith(OWN_ESTIMATE)
    return replace(
        entry,
        value=value,
        low=None,
        high=None,
        status="sourced" if sourced else "assumed",
        source_id=row["source_id"],
        observed=row["observed"],
        note=row["notes"] or "",
    )


def newest_rate(catalog: "Catalog", currency: str) -> Mapping[str, Any] | None:
    """Return the newest shipped exchange rate of a currency on or before the catalog's day."""
    rows = [row for row in catalog.rows("exchange_rates") if row["currency"] == currency and row["on"] <= catalog.as_of]
    return max(rows, key=lambda row: row["on"], default=None)


def _usd(catalog: "Catalog", currency: str) -> float:
    row = newest_rate(catalog, currency)
    if row is None:
        raise PriceMissingError(f"no exchange rate for {currency} on {catalog.as_of}.")
    return float(row["usd_per_unit"])


def apply_site(registry: Registry, defaults: dict[str, Assumption], asked: str | None) -> list[str]:
    """Put what a site charges in place of the defaults; return in words what is not known of it."""
    if asked is None:
        return []
    found = {name: f"{item}.{asked}" for name, item in SITE.items() if f"{item}.{asked}" in registry.facts}
    if not found:
        raise UnknownNameError("site", asked, sites(registry.facts), f"There are {', '.join(sites(registry.facts))}.")
    for name, item in found.items():
        defaults[name] = registry.sourced(name, item)
    missing = [SITE[name].replace("_", " ") for name in SITE if name not in found]
    return [f"site {asked}: no {' and no '.join(missing)} on record, so the usual one counts"] if missing else []


def sites(items: Iterable[str]) -> list[str]:
    """Return the sites of which colocation or taxes are on record."""
    usual = ("global_average", "hyperscale_ai_lease", "retail_cabinet", "us_wholesale_250_500kw")
    parted = (item.partition(".") for item in items)
    return sorted({place for item, _, place in parted if item in SITE.values() and place and place not in usual})
