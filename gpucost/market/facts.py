"""The facts that an answer leans on, read from the catalog, and the market that they make."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.catalog import Catalog
from gpucost.catalog.records import record
from gpucost.errors import PriceMissingError, UnknownNameError
from gpucost.frozen import Frozen
from gpucost.market.assumptions import AssumptionBook, make_book
from gpucost.market.places import Providers
from gpucost.market.supply import Supply, build_supply, sold_nodes
from gpucost.market.terms import Terms, build_terms
from gpucost.types import Accelerator, Offer, System

FILTERS = ("gpu", "provider", "region", "option")
SERVICES = ("object_storage", "shared_file_system", "egress_internet")
ITEMS = (
    "job_interruptions_llama3",
    "node_failure_rate_a100",
    "tdp_fraction_gpu_server_training",
    "server_to_chip_power_ratio.h100",
    "pue.hyperscaler",
    "pue.neocloud_or_colo",
    "rental_price_decline",
    "storage_rental_parallel_fs",
    "bandwidth_egress_cloud",
)


class Facts(Frozen, eq=False):
    """Everything from outside that a costing leans on, for one day."""

    as_of: date
    catalog_version: str
    offers: tuple[Offer, ...]
    accelerators: Mapping[str, Accelerator]
    systems: tuple[System, ...]  # what the unit of each offer is
    nodes: Mapping[str, System]  # accelerator -> the full node that a single listing may grow into
    sold: Mapping[tuple[str, str], int]
    assumptions: tuple[Mapping[str, Any], ...]
    services: tuple[Mapping[str, Any], ...]
    spot: tuple[Mapping[str, Any], ...]
    regions: tuple[Mapping[str, Any], ...]
    providers: tuple[Mapping[str, Any], ...]
    sources: Mapping[str, Mapping[str, Any]]
    ended: Mapping[str, int] = field(default_factory=dict)  # reason -> offers that are no more
    placeless: int = 0  # offers that name no region, of those asked for but for their region
    spot_moves: tuple[Mapping[str, Any], ...] = ()
    credits: tuple[Mapping[str, Any], ...] = ()
    twins: tuple[Offer, ...] = ()  # offers on demand that only the ranges of spot prices lean on


class Market(Frozen):
    """Facts turned into columns: what can be bought and on which terms."""

    facts: Facts
    supply: Supply
    terms: Terms
    book: AssumptionBook


def market_of(catalog: Catalog) -> Market:
    """Return the market that a catalog describes, made once per catalog."""
    if "market" not in catalog.derived:
        catalog.derived["market"] = make_market(read_facts(catalog))
    market: Market = catalog.derived["market"]
    return market


def read_facts(catalog: Catalog) -> Facts:
    """Read from the catalog what a costing leans on."""
    offers = tuple(catalog.offers())
    accelerators = {item.id: item for item in catalog.accelerators()}
    used = dict.fromkeys(offer.gpu for offer in offers)
    assumptions = [row for table in ("ownership", "energy") for row in catalog.rows(table)]
    return Facts(
        as_of=catalog.as_of,
        catalog_version=catalog.version,
        offers=offers,
        accelerators=accelerators,
        systems=tuple(catalog.system_for(offer) for offer in offers),
        nodes={name: catalog.default_system(name) for name in used},
        sold=sold_nodes(offers),
        assumptions=tuple(row for row in assumptions if row["item"] in ITEMS or row["item"].startswith("grid_carbon.")),
        services=tuple(row for row in catalog.rows("services") if row["service"] in SERVICES and row["typical"]),
        spot=tuple(catalog.rows("spot")),
        regions=tuple(catalog.rows("cloud_regions")),
        providers=tuple(catalog.rows("providers")),
        sources=_Sources(catalog),
        ended=dict(sorted(catalog.ended.items())),
        spot_moves=tuple(catalog.rows("spot_moves")),
        credits=tuple(catalog.credits),
    )


class _Sources(Mapping[str, Mapping[str, Any]]):
    """Sources of the catalog, looked up when they are asked for."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __getitem__(self, key: str) -> Mapping[str, Any]:
        try:
            return self._catalog.source(key)
        except UnknownNameError:
            raise KeyError(key) from None

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


def make_market(facts: Facts) -> Market:
    """Turn facts into columns."""
    book = make_book(facts.assumptions)
    nodes = [facts.nodes[offer.gpu] for offer in facts.offers]
    accelerators = [facts.accelerators[offer.gpu] for offer in facts.offers]
    supply = build_supply(facts.offers, facts.systems, nodes, accelerators, facts.sold)
    columns = {"services": facts.services, "spot_rows": facts.spot, "regions": facts.regions, "moves": facts.spot_moves}
    terms = build_terms(supply, book, Providers(facts.providers), **columns, twins=facts.twins)
    return Market(facts, supply, terms, book)


def cheapest(
    market: Market, gpu: str, gpus: int, allowed: NDArray[np.bool_] | None = None
) -> tuple[float | None, Offer | None]:
    """Return the lowest price an hour of so many accelerators in one job, and its offer: without a term, of `allowed`.

    Else of those neither old nor interruptible. A price counts only where its seller hosts a job of that size; whole
    units are paid.
    """
    if allowed is None:
        allowed = usual(market)
    found: list[tuple[float, int]] = []
    for index, offer in enumerate(market.facts.offers):
        if offer.gpu != gpu or offer.term_months or not allowed[index]:
            continue
        if market.supply.largest_gpus[index] >= gpus:
            taken = max(-(-gpus // offer.gpus) * offer.gpus, int(market.supply.minimum_gpus[index]))
            found.append((taken * offer.usd_per_gpu_hour, index))
    return (min(found)[0], market.facts.offers[min(found)[1]]) if found else (None, None)


def usual(market: Market) -> NDArray[np.bool_]:
    """Tell which offers are neither old nor interruptible."""
    found: NDArray[np.bool_] = ~(market.terms.stale | market.terms.interruptible)
    return found


def placeless(market: Market, catalog: Catalog, request: Any) -> Market:
    """Return the market with the count of offers that a region leaves out because they name none."""
    if not request.region:
        return market
    others = catalog.offers(request.gpu, request.provider, None, request.option)
    return replace(market, facts=replace(market.facts, placeless=sum(not offer.region for offer in others)))


def asked_for(market: Market, catalog: Catalog, request: Any) -> NDArray[np.bool_]:
    """Tell which offers a request's filters let through."""
    if not any(getattr(request, name) for name in FILTERS):
        return np.ones(len(market.facts.offers), bool)
    wanted = {id(offer) for offer in catalog.offers(*(getattr(request, name) for name in FILTERS))}
    return np.array([id(offer) in wanted for offer in market.facts.offers], bool)


def no_price(market: Market, catalog: Catalog, request: Any) -> PriceMissingError:
    """Return the error that says which filters let nothing through, and where offers are."""
    named = {name: getattr(request, name) for name in FILTERS}
    asked = ", ".join(f"--{name} {value}" for name, value in named.items() if value) or "the catalog"
    sold = [offer.region for offer in catalog.offers(request.gpu, request.provider, None, request.option)]
    around = catalog.regions.around(request.region, sold) if request.region else None
    hint = f" Try --region {around[0]!r}, with {around[1]} of them." if around else " Widen one of the filters."
    return PriceMissingError(
        f"no price can be ordered for {asked} as of {market.facts.as_of}. `gpucost prices` lists what is known.{hint}"
    )


OLD_PRICE = "The first price is old, its range widened: --strict-prices leaves such out."


def not_offered(ended: Mapping[str, int], placeless: int) -> list[str]:
    """Say which prices of the catalog are no offers: those that a region leaves out; by reason, those that ended.

    >>> not_offered({"replaced": 3, "too old": 20}, 0)
    ['23 prices ended: 3 replaced, 20 too old.']
    >>> not_offered({}, 1)
    ['--region leaves out 1 offer that names no region: it may stand there.']
    """
    which = "offer that names no region: it" if placeless == 1 else "offers that name no region: they"
    nameless = [f"--region leaves out {placeless:,} {which} may stand there."] if placeless else []
    reasons = ", ".join(f"{count} {reason}" for reason, count in ended.items())
    return [*nameless, *([f"{sum(ended.values())} prices ended: {reasons}."] if ended else [])]


def make_offer(known: Mapping[str, Any]) -> Offer:
    """Make an offer from the fields that are known; the others are empty, and it was learned when it was seen."""
    return record(Offer, {"recorded_on": known["observed_on"], **known})


def with_offers(facts: Facts, offers: Sequence[Offer], systems: Sequence[System]) -> Facts:
    """Return facts with more offers, such as the pools of the user; each names the node that it is."""
    own = {offer.gpu: system for offer, system in zip(offers, systems, strict=True)}
    return replace(
        facts,
        offers=(*facts.offers, *offers),
        systems=(*facts.systems, *systems),
        nodes={**own, **facts.nodes},
        sold={**facts.sold, **sold_nodes(offers)},
    )
