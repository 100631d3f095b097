"""Oracle's public price list: the price of one GPU by type, the same in every region, times the GPUs of each shape."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpucost.refresh.machines import machines
from gpucost.refresh.source import NOT_READ, Desk, Source, content_of

ADDRESS = "https://apexapps.oracle.com/pls/apex/cetools/api/v1/products/"
_WORD = re.compile(r"[a-z0-9]+")
_PLAIN = frozenset(
    ("oci", "oracle", "cloud", "infrastructure", "compute", "gpu", "standard", "nvidia", "amd", "instinct")
)


def fetch(desk: Desk) -> None:
    """Ask for every product in US dollars."""
    answer = desk.client.json(f"{ADDRESS}?currencyCode=USD", most_bytes=64_000_000)
    items = [
        item for item in content_of(answer, "items", fault="the answer holds no products") if isinstance(item, dict)
    ]
    desk.add(row for item in items for row in rows_of(item))
    # GPUs by the hour of which no shape is known here: a new machine, until its shape joins machines.csv
    known = [frozenset(shape.accelerator_sku.split()) for shape in machines("oci")]
    unknown = []
    for item in items:
        tokens = _shape_tokens(item)
        if tokens is not None and tokens not in known:
            unknown.append(
                {
                    "provider": "oci",
                    "description": f"{item.get('partNumber')} {item.get('displayName')}",
                    "option": "on_demand",
                    "usd_per_hour": _pay_as_you_go(item),
                    "reason": NOT_READ,
                }
            )
    desk.add(unknown, "unknown")


def _shape_tokens(item: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the words that tell a product's shapes, or None of a product that is no GPU by the hour.

    >>> sorted(_shape_tokens({"displayName": "Compute - Bare Metal GPU Standard - X7", "metricName": "GPU Per Hour"}))
    ['bare', 'metal', 'x7']
    """
    name, metric = str(item.get("displayName", "")).lower(), str(item.get("metricName", "")).lower()
    if "gpu" not in metric or "hour" not in metric or "compute" not in name:
        return None
    return frozenset(_WORD.findall(name)) - _PLAIN


def rows_of(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the shapes that a product prices by the GPU and hour."""
    tokens = _shape_tokens(item)
    price = _pay_as_you_go(item)
    for shape in machines("oci") if tokens and price is not None else ():
        if frozenset(shape.accelerator_sku.split()) == tokens:
            yield {
                "provider": "oci",
                "instance_type": shape.name,
                "listed_as": shape.accelerator,
                "gpus": shape.gpus,
                "option": "on_demand",
                "usd_per_hour": (price or 0) * shape.gpus,
                "vcpus": shape.vcpus or None,
                "memory_gib": shape.memory_gib or None,
            }


def _pay_as_you_go(item: Mapping[str, Any]) -> float | None:
    for money in item.get("currencyCodeLocalizations") or ():
        if isinstance(money, dict) and money.get("currencyCode") == "USD":
            for price in money.get("prices") or ():
                if price.get("model") == "PAY_AS_YOU_GO" and isinstance(price.get("value"), int | float):
                    return float(price["value"])
    return None


SOURCES = (Source("oci", "Oracle", "OCI price list", ADDRESS, fetch, describes=True),)
