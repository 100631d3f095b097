"""Oracle's public price list: the price of one GPU by type, the same in every region, times the GPUs of each shape."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpucost.importers.machines import machines
from gpucost.importers.source import Desk, Source, held

ADDRESS = "https://apexapps.oracle.com/pls/apex/cetools/api/v1/products/"
_WORD = re.compile(r"[a-z0-9]+")


def fetch(desk: Desk) -> None:
    """Ask for every product in US dollars."""
    answer = desk.client.json(f"{ADDRESS}?currencyCode=USD", most_bytes=64_000_000)
    items = held(answer, "items", what="the answer holds no products")
    desk.add(row for item in items if isinstance(item, dict) for row in rows_of(item))


def rows_of(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the shapes that a product prices by the GPU and hour."""
    name, metric = str(item.get("displayName", "")), str(item.get("metricName", ""))
    if "gpu" not in metric.lower() or "hour" not in metric.lower() or "compute" not in name.lower():
        return
    price = _pay_as_you_go(item)
    if price is None:
        return
    words = set(_WORD.findall(name.lower()))
    for shape in machines("oci"):
        wanted = set(shape.accelerator_sku.split())
        if wanted <= words and ("v2" in words) == ("v2" in wanted):
            yield {
                "provider": "oci", "instance_type": shape.name, "listed_as": shape.accelerator, "gpus": shape.gpus,
                "option": "on_demand", "usd_per_hour": price * shape.gpus, "vcpus": shape.vcpus,
                "memory_gib": shape.memory_gib,
            }  # fmt: skip


def _pay_as_you_go(item: Mapping[str, Any]) -> float | None:
    for money in item.get("currencyCodeLocalizations") or ():
        if isinstance(money, dict) and money.get("currencyCode") == "USD":
            for price in money.get("prices") or ():
                if price.get("model") == "PAY_AS_YOU_GO" and isinstance(price.get("value"), int | float):
                    return float(price["value"])
    return None


SOURCES = (Source("oci", "Oracle", "OCI price list", ADDRESS, fetch),)
