"""Where an offer runs: from a provider's region to the grid that feeds it and the kind of building it stands in."""

from collections.abc import Iterable, Mapping
from typing import Any

HYPERSCALERS = frozenset({"aws", "aws-sagemaker", "azure", "gcp", "oci"})

# Hosts of third parties, sold through a market: their prices move within weeks.
MARKETPLACES = frozenset({"akash", "primeintellect", "sfcompute", "spheron", "tensordock", "vast", "yottalabs"})

WORLD = "grid_carbon.world"
_ANY = "any"


def grid_items(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Return the carbon item of every (provider, region) that the tables map."""
    return {
        (str(row["provider"]), str(row["region"]).lower()): str(row["carbon_item"])
        for row in rows
        if row["carbon_item"]
    }


def grid_of(items: Mapping[tuple[str, str], str], provider: str, region: str) -> str:
    """Return the carbon item of a region: the provider's own, else by the longest common beginning, else the world.

    >>> grid_of({("any", "us"): "grid_carbon.us"}, "lambda", "us-east-1")
    'grid_carbon.us'
    """
    name = (region or "").strip().lower()
    if (provider, name) in items:
        return items[provider, name]
    for length in range(len(name), 1, -1):
        if (_ANY, name[:length]) in items:
            return items[_ANY, name[:length]]
    return WORLD


def pue_item(provider: str) -> str:
    """Return the name of the assumption on the overhead of the provider's buildings."""
    return "pue.hyperscaler" if provider in HYPERSCALERS else "pue.neocloud_or_colo"


def is_market(provider: str, option: str) -> bool:
    """Tell whether an offer is sold on a market of third-party hosts."""
    return provider in MARKETPLACES or option == "community"
