"""The Google Cloud billing catalogue: accelerators, processors, memory and local disks, joined into machines.

    machine = gpus x accelerator + vCPUs x core + GiB x RAM + GiB x local SSD / 730

Each for on demand, spot and commitments of one and three years. A machine of which a part has no price in a region has
none there: a host without its accelerators is no offer.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from gpucost.errors import UsageError
from gpucost.importers.machines import Machine, machines
from gpucost.importers.source import Desk, Source, held
from gpucost.units import HOURS_PER_MONTH

ADDRESS = "https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus"
KEYS = ("GCP_BILLING_API_KEY", "GOOGLE_API_KEY")
_MOST_PAGES = 100
# usage type -> option, months
_USAGES = {
    "OnDemand": ("on_demand", 0), "Preemptible": ("spot", 0), "Commit1Yr": ("commitment", 12),
    "Commit3Yr": ("commitment", 36),
}  # fmt: skip
_NOISE = re.compile(
    r"^(commitment v\d+: |spot preemptible )"
    r"|\b(attached to spot preemptible vms|for [13] years?|running|attached to vms)\b"
)
_PLACE = re.compile(r"(?<!\s)\s+in\s+.*$")
_SSD = "ssd backed local storage"
Prices = dict[tuple[str, str, str], float]  # part, region, usage type -> USD per unit and hour


def fetch(desk: Desk) -> None:
    """Read every page of SKUs, then join what belongs together."""
    prices: Prices = {}
    for sku in _skus(desk):
        prices.update(parts_of(sku))
    desk.add(joined(prices))


def _skus(desk: Desk) -> Iterator[Mapping[str, Any]]:
    token, key = "", desk.key(*KEYS)
    for _ in range(_MOST_PAGES):
        more = f"&pageToken={quote(token)}" if token else ""
        page = desk.client.json(
            f"{ADDRESS}?pageSize=5000{more}", headers={"x-goog-api-key": key}, most_bytes=64_000_000
        )
        skus = held(page, "skus", what="a page holds no list of SKUs")
        yield from (sku for sku in skus if isinstance(sku, dict))
        if not (token := str(page.get("nextPageToken") or "")):
            return
    raise UsageError(f"there are more than {_MOST_PAGES} pages, which cannot be.")


def part_named(description: str) -> str:
    """Return the part that a SKU's description means, without how and where it runs.

    >>> part_named("Nvidia H100 80GB GPU attached to Spot Preemptible VMs running in Iowa")
    'nvidia h100 80gb gpu'
    >>> part_named("Commitment v1: A3 Cpu in Iowa for 1 Year"), part_named("Spot Preemptible A3 Instance Core running")
    ('a3 core', 'a3 core')
    """
    text = _PLACE.sub("", _NOISE.sub("", description.lower()).strip())
    text = " ".join(_NOISE.sub("", text).split())
    text = text.replace(" instance ", " ").replace(" cpu", " core")
    return _SSD if text in (_SSD, "local ssd") else text


def parts_of(sku: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, str], float]]:
    """Yield the price of a part by region; what is reserved, custom or suspended is another thing."""
    category, description = sku.get("category") or {}, str(sku.get("description", ""))
    usage = str(category.get("usageType"))
    other = ("sole tenancy", "reserved", "custom", "suspended", "premium", "dws", "calendar", "windows")
    if usage not in _USAGES or any(word in description.lower() for word in other):
        return
    try:
        expression = sku["pricingInfo"][-1]["pricingExpression"]
        unit = expression["tieredRates"][-1]["unitPrice"]
        price = int(unit.get("units", 0)) + int(unit.get("nanos", 0)) / 1e9
    except (KeyError, IndexError, TypeError, ValueError):
        return
    monthly = str(expression.get("usageUnit", "h")).endswith("mo")
    for region in sku.get("serviceRegions") or ():
        yield (part_named(description), str(region), usage), price / HOURS_PER_MONTH if monthly else price


def joined(prices: Prices) -> Iterable[dict[str, Any]]:
    """Yield the machines whose every part has a price in a region."""
    places = {(region, usage) for part, region, usage in prices}
    for machine in machines("gcp"):
        for region, usage in sorted(places):
            total = _sum(machine, region, usage, prices)
            if total is not None:
                option, months = _USAGES[usage]
                yield {
                    "provider": "gcp", "instance_type": machine.name, "listed_as": machine.accelerator,
                    "gpus": machine.gpus, "region": region, "option": option, "term_months": months,
                    "payment": "monthly" if months else "none", "usd_per_hour": total, "vcpus": machine.vcpus,
                    "memory_gib": machine.memory_gib,
                }  # fmt: skip


def _sum(machine: Machine, region: str, usage: str, prices: Prices) -> float | None:
    needed = [(machine.accelerator_sku, float(machine.gpus))]
    if machine.host_sku:
        needed += [(f"{machine.host_sku} core", machine.vcpus), (f"{machine.host_sku} ram", machine.memory_gib)]
        needed += [(_SSD, machine.local_ssd_gib)] if machine.local_ssd_gib else []
    found = [(prices.get((part, region, usage)), count) for part, count in needed]
    return None if any(price is None for price, _ in found) else sum((price or 0) * count for price, count in found)


SOURCES = (Source("gcp", "Google Cloud", "Compute Engine billing catalogue", ADDRESS, fetch, keys=KEYS, own_list=True),)
