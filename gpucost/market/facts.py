"""The facts that an answer leans on, read from the catalog, and the market that they make."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from gpucost.catalog import Catalog
from gpucost.catalog.records import record
from gpucost.errors import UnknownNameError
from gpucost.market.budget import CERTAIN, Quote, quotes_of, shares_by_kind
from gpucost.market.interruptions import AssumptionBook, make_book
from gpucost.market.supply import Providers, Supply, build_supply, sold_nodes, within_sales
from gpucost.market.terms import Terms, build_terms
from gpucost.types import Accelerator, Offer, System

FILTERS = ("gpu", "provider", "region", "option")
CHOOSING = (  # what of a request decides which offers it looks at, whatever the question
    *FILTERS,
    "exclude_provider",
    "provider_class",
    "fabric",
    "min_confidence",
    "max_gpus",
    "usd_per_gpu_hour",
)
SERVICES = ("object_storage", "shared_file_system", "egress_internet")
_ITEMS = (  # of the tables ownership and energy, beside the grids; the engine needs each
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


class Facts(Struct, frozen=True, eq=False, weakref=True):
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
    credits: tuple[Mapping[str, Any], ...] = ()
    quotes: tuple[Quote, ...] = ()  # what is known of each offer beside its price; empty where all is certain
    size_shares: Mapping[str, Sequence[float]] = field(default_factory=dict)  # kind of seller -> chance of large orders
    measured_chips: tuple[Mapping[str, Any], ...] = ()  # chips whose training or serving somebody measured


class Market(Struct, frozen=True):
    """Facts turned into columns: what can be bought and on which terms."""

    facts: Facts
    supply: Supply
    terms: Terms
    book: AssumptionBook


def market_of(catalog: Catalog) -> Market:
    """Return the market that a catalog describes, made once per catalog."""
    # looked for again within the lock: another thread may have made it while this one waited
    if "market" not in catalog.derived:
        with catalog.making:
            if "market" not in catalog.derived:
                catalog.derived["market"] = make_market(_read_facts(catalog))
    market: Market = catalog.derived["market"]
    return market


def _read_facts(catalog: Catalog) -> Facts:
    """Read from the catalog what a costing leans on."""
    offers = tuple(catalog.offers())
    accelerators = {item.id: item for item in catalog.accelerators()}
    used = dict.fromkeys(offer.gpu for offer in offers)
    assumptions = [row for table in ("ownership", "energy") for row in catalog.rows(table)]
    sellers, spot, capacity = Providers(catalog.rows("providers")), catalog.rows("spot"), catalog.rows("capacity")
    kinds = [sellers.kind(offer.provider) for offer in offers]
    return Facts(
        as_of=catalog.as_of,
        catalog_version=catalog.version,
        offers=offers,
        accelerators=accelerators,
        systems=tuple(catalog.system_for(offer) for offer in offers),
        nodes={name: catalog.default_system(name) for name in used},
        sold=sold_nodes(offers),
        assumptions=tuple(
            row for row in assumptions if row["item"] in _ITEMS or row["item"].startswith("grid_carbon.")
        ),
        services=tuple(row for row in catalog.rows("services") if row["service"] in SERVICES and row["typical"]),
        spot=tuple(spot),
        regions=tuple(catalog.rows("cloud_regions")),
        providers=tuple(catalog.rows("providers")),
        sources=_Sources(catalog),
        ended=dict(sorted(catalog.ended.items())),
        credits=tuple(catalog.credits),
        quotes=tuple(quotes_of(offers, kinds, catalog.quote_fates(), spot, capacity, accelerators)),
        size_shares=shares_by_kind(offers, kinds, capacity),
        measured_chips=tuple(catalog.rows("measured_chips")),
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
    most = [quote.most_gpus for quote in facts.quotes]
    # nodes say how large a job can be; then what sellers say of the size of an order
    supply = within_sales(build_supply(facts.offers, facts.systems, nodes, accelerators, facts.sold), most)
    terms = build_terms(
        supply,
        book,
        Providers(facts.providers),
        services=facts.services,
        spot_rows=facts.spot,
        regions=facts.regions,
        quotes=facts.quotes,
        size_shares=facts.size_shares,
    )
    return Market(facts, supply, terms, book)


# --- Offers that no list holds: the user's own.

AS_OWNED = {
    "offer_kind": "offer",
    "provider": "own",
    "gpu_assumed": False,
    "region_scope": "unknown",
    "option": "on_demand",
    "billing": "per_use",
    "term_months": 0,
    "payment": "none",
    "confidence": "high",
    "book": "user",
    "price_kind": "effective",
}


def make_offer(fields: Mapping[str, Any]) -> Offer:
    """Make an offer from the fields that are known; the others are empty, and it was learned when it was seen."""
    return record(Offer, {"recorded_on": fields["observed_on"], **fields})


def with_offers(facts: Facts, offers: Sequence[Offer], systems: Sequence[System]) -> Facts:
    """Return facts with more offers, such as the pools of the user; each names the node that it is."""
    # where the market has a node of the chip already, a single listing grows into that one
    pool_nodes = {offer.gpu: system for offer, system in zip(offers, systems, strict=True)}
    return replace(
        facts,
        offers=(*facts.offers, *offers),
        systems=(*facts.systems, *systems),
        nodes={**pool_nodes, **facts.nodes},
        sold={**facts.sold, **sold_nodes(offers)},
        quotes=(*facts.quotes, *(CERTAIN for _ in offers)) if facts.quotes else (),
    )
