"""Where an offer runs: from a provider's region to the grid that feeds it and the kind of building it stands in."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from gpucost.options import age_limit_days
from gpucost.types import Offer

WORLD = "grid_carbon.world"
_ANY = "any"
_COMPASS = "(?:north|south|east|west|central)+"  # Azure puts them before and after a place: westus2, australiaeast
_BEFORE, _END = re.compile(f"^{_COMPASS}"), re.compile(rf"$|[^a-z]|{_COMPASS}")


def grid_items(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Return the carbon item of every (provider, region) that the tables map."""
    return {
        (str(row["provider"]), str(row["region"]).lower()): str(row["carbon_item"])
        for row in rows
        if row["carbon_item"]
    }


def grid_of(items: Mapping[tuple[str, str], str], provider: str, region: str) -> str:
    """Return the carbon item of a region: the provider's own, else by the longest place it begins with, else the world.

    >>> items = {("any", "us"): "grid_carbon.us", ("any", "no"): "grid_carbon.norway"}
    >>> [grid_of(items, "lambda", region) for region in ("us-east-1", "northcentralus", "northeurope")]
    ['grid_carbon.us', 'grid_carbon.us', 'grid_carbon.world']
    """
    name = (region or "").strip().lower()
    if (provider, name) in items:
        return items[provider, name]
    for place in (name, _BEFORE.sub("", name, count=1)):
        for length in range(len(place), 1, -1):
            if (_ANY, place[:length]) in items and _END.match(place, length):
                return items[_ANY, place[:length]]
    return WORLD


def company(provider: str) -> str:
    """Return who owns a provider's storage and regions: a service of a cloud is that cloud."""
    return provider.removesuffix("-sagemaker")


class Providers:
    """What kind of seller each provider is, and how it bills."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows = {str(row["provider"]): row for row in rows}
        self._limit_days = cache(age_limit_days)  # a market asks the same few again and again

    def kind(self, provider: str) -> str:
        """Return hyperscaler, cloud, marketplace or serverless; a provider that is not listed is a cloud."""
        return str(self._rows[provider]["kind"]) if provider in self._rows else "cloud"

    def age_limit_days(self, offer: Offer) -> int:
        """Return the age beyond which the price of an offer is old."""
        return self._limit_days(offer.option, (offer.tier, self.kind(offer.provider)))

    def increment_hours(self, provider: str) -> float:
        """Return what the provider rounds purchases up to; 0 where it is not known."""
        return float(self._rows.get(provider, {}).get("billing_increment_hours") or 0.0)
