"""Vast.ai's open market: what hosts ask for whole machines, on demand, and the least bid for interruptible ones."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from gpucost.refresh.source import NOT_READ, Desk, Source, content_of

ADDRESS = "https://console.vast.ai/api/v0/bundles/"
_QUERY = {
    "verified": {"eq": True},
    "rentable": {"eq": True},
    "rented": {"eq": False},
    "reliability2": {"gte": 0.95},
    "type": "on-demand",
    "order": [["dph_total", "asc"]],
    "limit": 5000,
}
_MIB_PER_GIB = 1024
_LEAST_BID_FRACTION = 0.3  # of the price on demand: hosts ask for half to three quarters; below it a field is another


def fetch(desk: Desk) -> None:
    """Ask for every verified machine that is free; of equal ones in a place the cheapest speaks."""
    answer = desk.client.json(f"{ADDRESS}?q={quote(json.dumps(_QUERY))}", most_bytes=128_000_000)
    offers = content_of(answer, "offers", fault="the answer holds no offers")
    desk.add(row for item in offers if isinstance(item, dict) for row in rows_of(item))
    unread = [item for item in offers if not isinstance(item, dict) or not _is_readable(item)]
    desk.add(({"provider": "vast", "description": str(item)[:200], "reason": NOT_READ} for item in unread), "unknown")


def _is_readable(item: dict[str, Any]) -> bool:
    """Whether a machine says where it stands, and bids for it are in proportion to its price."""
    if place_of(item.get("geolocation")) is None:
        return False
    try:
        price, bid = float(item.get("dph_total") or 0), float(item.get("min_bid") or 0)
    except (TypeError, ValueError):
        return True  # a price that is no number is the checks' to name
    return not price or not bid or bid >= _LEAST_BID_FRACTION * price


def place_of(geolocation: object) -> str | None:
    """Return a place as `country-region` of what a host says: `Texas, US` is us-texas.

    >>> place_of("Texas, US"), place_of("Norway, NO"), place_of("US"), place_of(""), place_of(0.127)
    ('us-texas', 'no', 'us', None, None)
    """
    if not isinstance(geolocation, str):
        return None
    name, _, country = (part.strip().lower() for part in geolocation.rpartition(","))
    if len(country) != 2 or not country.isalpha():
        return None
    return f"us-{name}" if country == "us" and name else country


def rows_of(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the asking price of a machine and its least bid."""
    try:
        gpus, memory = int(item["num_gpus"]), float(item.get("gpu_ram") or 0) / _MIB_PER_GIB
    except (KeyError, TypeError, ValueError):
        return
    if item.get("rentable") is False or item.get("rented") is True or not _is_readable(item):
        return
    name = str(item.get("gpu_name", "")).replace("_", " ")
    row = {
        "provider": "vast",
        "instance_type": f"{gpus}x {name}",
        "listed_as": name,
        "gpus": gpus,
        "gpu_memory_gib": round(memory) or None,
        "region": place_of(item.get("geolocation")),
        "tier": "marketplace",
    }
    # a bid that is lower than every other loses its machine to the next: that is an interruptible offer
    for option, field in (("on_demand", "dph_total"), ("interruptible", "min_bid")):
        if item.get(field):
            yield {**row, "option": option, "usd_per_hour": item[field]}


SOURCES = (Source("vast", "Vast.ai", "Vast.ai offers", ADDRESS, fetch, describes=True),)
