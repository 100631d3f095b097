"""The Azure retail prices: pages of meters, on demand, spot, low priority, reservations and savings plans.

Meters of Windows, of other software and of secondary regions are left out. A reservation's price is that of its whole
term, though its unit says an hour.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from gpucost.errors import UsageError
from gpucost.refresh.source import NOT_READ, Desk, Source, content_of
from gpucost.units import HOURS_PER_MONTH

ADDRESS = "https://prices.azure.com/api/retail/prices"
_QUERY = {
    "api-version": "2023-01-01-preview",
    "$filter": "serviceName eq 'Virtual Machines' and contains(armSkuName, 'Standard_N')",
}
_MOST_PAGES = 3_000  # of a hundred meters each; the machines with accelerators fill some dozens
# without which a meter is not understood: that of Windows could pass for that of Linux
_NEEDED = ("armSkuName", "armRegionName", "productName", "skuName", "meterName", "type", "unitOfMeasure")
_MONTHS = {"1 Year": 12, "3 Years": 36, "5 Years": 60}


def fetch(desk: Desk) -> None:
    """Follow the pages from the first to the last."""
    query = dict(_QUERY)  # every machine with accelerators, or some of them by name
    machines = desk.options.get("machines") or ()
    if names := [f"armSkuName eq '{name}'" for name in machines if name.replace("_", "").isalnum()]:
        query["$filter"] = f"serviceName eq 'Virtual Machines' and ({' or '.join(names)})"
    nameless: list[dict[str, Any]] = []

    def rows() -> Iterator[dict[str, Any]]:
        url, seen = f"{ADDRESS}?{urlencode(query)}", set()
        for number in range(_MOST_PAGES):
            if url in seen:
                raise UsageError("the pages refer to one another in a circle.")
            seen.add(url)
            page = desk.client.json(url, most_bytes=16_000_000)
            for item in content_of(page, "Items", fault="a page holds no list of items"):
                if not isinstance(item, dict):
                    continue
                if all(isinstance(item.get(name), str) for name in _NEEDED):
                    yield from rows_of(item, desk.today.isoformat())
                else:
                    description = f"{item.get('armSkuName')} {item.get('meterName')} {item.get('armRegionName')}"
                    nameless.append({"provider": "azure", "description": description, "reason": NOT_READ})
            if not (url := page.get("NextPageLink") or ""):
                return
            if desk.options.get("progress"):
                desk.options["progress"]("azure", f"page {number + 2}")
        raise UsageError(f"there are more than {_MOST_PAGES} pages, which is not plausible.")

    desk.add(rows())
    desk.add(nameless, "unknown")


def rows_of(item: Mapping[str, Any], today: str = "") -> Iterable[dict[str, Any]]:
    """Yield the prices that one meter states."""
    meter = f"{item.get('productName')} {item.get('skuName')} {item.get('meterName')}"
    if "windows" in meter.lower() or "cloud services" in meter.lower() or item.get("type") == "DevTestConsumption":
        return
    # a meter of several regions stands once in each: the first of them speaks; tiers above the first ask for volume
    if item.get("isPrimaryMeterRegion") is False or item.get("currencyCode") != "USD" or item.get("tierMinimumUnits"):
        return
    if str(item.get("effectiveEndDate") or "9")[:10] < today:
        return
    row = {
        "provider": "azure",
        "instance_type": item.get("armSkuName"),
        "region": item.get("armRegionName"),
        "valid_from": str(item.get("effectiveStartDate", ""))[:10],
        "meter": meter,
    }
    price = item.get("retailPrice")
    if item.get("type") == "Reservation":  # its price is that of the whole term, though its unit says an hour
        months = _MONTHS.get(str(item.get("reservationTerm")))
        if months and isinstance(price, int | float):
            hourly = price / (months * HOURS_PER_MONTH)
            yield {**row, "option": "reserved", "term_months": months, "payment": "monthly", "usd_per_hour": hourly}
        return
    if item.get("unitOfMeasure") != "1 Hour":  # of another unit than the machine's hour
        return
    low = "low priority" in meter.lower()  # the older spot, of scale sets and Batch alone
    option = "spot" if low or str(item.get("skuName", "")).endswith("Spot") else "on_demand"
    yield {**row, "option": option, "tier": "low_priority" if low else None, "usd_per_hour": price}
    for plan in item.get("savingsPlan") or () if option == "on_demand" else ():
        months = _MONTHS.get(str(plan.get("term")))
        if months:
            terms = {"option": "savings_plan", "term_months": months, "payment": "monthly"}
            yield {**row, **terms, "usd_per_hour": plan.get("retailPrice")}


SOURCES = (Source("azure", "Microsoft Azure", "Azure retail prices", ADDRESS, fetch, own_list=True),)
