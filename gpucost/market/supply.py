"""What can be bought and where it runs: offers as columns, the node each one is, its grid and building."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.options import OPTIONS, age_limit_days
from gpucost.types import Accelerator, Offer, System

# --- Where an offer runs: from a provider's region to the grid that feeds it and the kind of building it stands in.

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
    # as it stands, then without the points of the compass before it: northcentralus is us
    for region_name in (name, _BEFORE.sub("", name, count=1)):
        for length in range(len(region_name), 1, -1):
            if (_ANY, region_name[:length]) in items and _END.match(region_name, length):
                return items[_ANY, region_name[:length]]
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

    def name(self, provider: str) -> str:
        """Return the name under which people know a provider."""
        return str(self._rows.get(provider, {}).get("name") or provider)

    def age_limit_days(self, offer: Offer) -> int:
        """Return the age beyond which the price of an offer is old."""
        return self._limit_days(offer.option, (offer.tier, self.kind(offer.provider)))

    def increment_hours(self, provider: str) -> float:
        """Return what the provider rounds purchases up to; 0 where it is not known."""
        return float(self._rows.get(provider, {}).get("billing_increment_hours") or 0.0)


# --- What can be bought: offers as columns, the node each one is, and how many accelerators of it make one job.
#
# Capacity is part of the answer. Several nodes make a cluster only where the node's system names a scale-out network;
# instances of one accelerator have no link, so that eight of them are no node, and the node is billed at its own
# price; an order is never larger than the provider takes. Otherwise a thousand single-GPU listings would win every
# ranking.

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_LARGEST_CLUSTER = 16_384
_SMALLEST_CLUSTER_NODE = 2  # nodes of one accelerator with a network are pods, not a cluster


class Key(Struct, frozen=True):
    """What the speed of a job depends on beside the model: the accelerator and how its node and network connect it."""

    accelerator: Accelerator
    system: System


class Supply(Struct, frozen=True):
    """Offers as columns, one element per offer, and the distinct physical keys that they point to."""

    offers: tuple[Offer, ...]
    keys: tuple[Key, ...]
    key: Indices  # index into `keys`
    unit_gpus: Indices  # accelerators in one unit
    minimum_gpus: Indices  # smallest order
    largest_gpus: Indices  # largest job that the offer can host
    cap_reasons: tuple[str, ...]  # why it can host no more
    node_w_per_gpu: Floats  # the host's stated power; NaN where it states none. Nodes of one speed may differ in it
    is_part: NDArray[np.bool_]  # whether the price is of a part of a machine that is sold whole
    bound: NDArray[np.bool_]  # whether it is a listed commitment
    id_place: Indices  # place among all offers by their ids
    seller: Indices  # a number for each provider


def sold_nodes(offers: Sequence[Offer]) -> dict[tuple[str, str], int]:
    """Return the largest unit that each provider sells of each accelerator."""
    largest: dict[tuple[str, str], int] = {}
    for offer in offers:
        name = (offer.provider, offer.gpu)
        largest[name] = max(largest.get(name, 0), offer.gpus)
    return largest


def build_supply(
    offers: Sequence[Offer],
    systems: Sequence[System],
    nodes: Sequence[System],
    accelerators: Sequence[Accelerator],
    sold: Mapping[tuple[str, str], int],
) -> Supply:
    """Turn offers into columns.

    `systems`, `nodes` and `accelerators` go with the offers: what the unit is, the full node that a single listing
    may grow into, and the accelerator.
    """
    keys: dict[tuple[object, ...], int] = {}
    key_list: list[Key] = []
    rows = []
    for offer, system, node, accelerator in zip(offers, systems, nodes, accelerators, strict=True):
        # host, largest job and reason, before the provider's own limit on orders
        host, largest, most_sold = system, offer.gpus, sold.get((offer.provider, offer.gpu), offer.gpus)
        domain = max(system.gpus, system.scaleup_gpus)
        if offer.gpus >= system.gpus and system.scaleout_gb_per_s is not None and offer.gpus >= _SMALLEST_CLUSTER_NODE:
            largest, reason = _LARGEST_CLUSTER, f"searched up to {_LARGEST_CLUSTER:,} accelerators"
        elif domain > offer.gpus and system.scaleup_gpus > system.gpus:
            # a rack or pod whose scale-up domain spans instances
            largest, reason = domain, f"one scale-up domain of {domain} accelerators; no scale-out network is named"
        elif offer.gpus > 1 and offer.gpus >= system.gpus:
            reason = "no scale-out network is named for this node"
        elif most_sold > offer.gpus:  # a listing of part of a node
            host = system if offer.gpus < system.gpus else node
            reason = f"no link joins single instances; the provider sells up to {most_sold} in one"
        else:
            reason = "a single listing; no machine with several of them is on sale here"
        if offer.maximum_units is not None and offer.maximum_units * offer.gpus < largest:
            largest = offer.maximum_units * offer.gpus
            reason = f"the largest order is {offer.maximum_units} × {offer.gpus} accelerators"
        # nodes of one speed are one key, for which each layout is timed once
        name = (accelerator.id, host.gpus, host.scaleup_gb_per_s, host.scaleup_gpus, host.scaleout_gb_per_s)
        if name not in keys:
            keys[name] = len(key_list)
            key_list.append(Key(accelerator, host))
        minimum = offer.gpus * (offer.minimum_units or 1)
        power = host.max_power_kw * 1000 / host.gpus if host.max_power_kw else np.nan
        # a slice of a4-highgpu-8g cannot be ordered; told by its name, as a saved answer keeps no name of a system
        is_part = " (" in offer.instance_type and offer.gpus < system.gpus
        rows.append((keys[name], offer.gpus, minimum, largest, reason, power, is_part))
    columns = list(zip(*rows, strict=True)) if rows else [()] * 7
    return Supply(
        offers=tuple(offers),
        keys=tuple(key_list),
        key=np.array(columns[0], np.int64),
        unit_gpus=np.array(columns[1], np.int64),
        minimum_gpus=np.array(columns[2], np.int64),
        largest_gpus=np.array(columns[3], np.int64),
        cap_reasons=tuple(columns[4]),
        node_w_per_gpu=np.array(columns[5], np.float64),
        is_part=np.array(columns[6], bool),
        bound=np.array(
            [offer.price_kind != "contracted" and OPTIONS[offer.option].family == "committed" for offer in offers], bool
        ),
        seller=np.unique([offer.provider for offer in offers], return_inverse=True)[1]
        if offers
        else np.zeros(0, np.int64),
        # sorting twice turns an order into places
        id_place=np.argsort(np.argsort(np.array([offer.offer_id for offer in offers], str), kind="stable")),
    )


def within_sales(supply: Supply, most: Sequence[float]) -> Supply:
    """Return the supply in which no order is larger than its seller takes by its own words."""
    if not any(np.isfinite(most)):
        return supply
    capped = supply.largest_gpus > np.array(most)
    reasons = list(supply.cap_reasons)
    for place in np.flatnonzero(capped).tolist():
        offer = supply.offers[place]
        if OPTIONS[offer.option].interruptible:
            reasons[place] = f"beyond {most[place]:,.0f} accelerators nobody knows how often a job is interrupted"
        else:
            reasons[place] = f"{offer.provider} sells up to {most[place]:,.0f} at once"
    # whole machines within what the seller takes
    whole = np.minimum(supply.largest_gpus, most) // supply.unit_gpus * supply.unit_gpus
    largest = np.where(capped, whole, supply.largest_gpus).astype(np.int64)
    return replace(supply, largest_gpus=largest, cap_reasons=tuple(reasons))
