"""The facts that an answer leans on, from the catalog, a saved answer or the user's pools, and the market they make."""

import csv
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from operator import attrgetter
from threading import Lock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import ref

import numpy as np
from msgspec import Struct, field, to_builtins
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.catalog import Catalog
from gpucost.catalog.discounts import CREDIT
from gpucost.catalog.loader import read_column
from gpucost.catalog.names import admits
from gpucost.catalog.records import OWN_SOURCE, record, records
from gpucost.errors import DataError, PriceMissingError, UnknownNameError, UsageError
from gpucost.gate import lists_beside, read_toml, repeated, shown
from gpucost.market.exchange import usd_per_unit
from gpucost.market.expected_price import FAR_RATIO, expected_prices
from gpucost.market.interruptions import AssumptionBook, make_book
from gpucost.market.supply import Providers, Supply, build_supply, company, sold_nodes
from gpucost.market.terms import Terms, build_terms, on_demand, place_of
from gpucost.market.tiers import measured_chips, said, verified
from gpucost.options import EXPIRED, OPTIONS, counted_age_days
from gpucost.schemas import TABLES, TableColumn
from gpucost.schemas.validation import held, number, text
from gpucost.schemas.validation import record as typed_record
from gpucost.types import Accelerator, Architecture, Offer, System
from gpucost.units import HOURS_PER_MONTH, counted

if TYPE_CHECKING:
    from pydantic import BaseModel


# --- The facts that an answer leans on, read from the catalog, and the market that they make.

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
    spot_moves: tuple[Mapping[str, Any], ...] = ()
    credits: tuple[Mapping[str, Any], ...] = ()
    twins: tuple[Offer, ...] = ()  # offers on demand that only the ranges of spot prices lean on
    # of each offer today's price over its quote: low, expected, high; and the quote over the median of its peers
    expected: tuple[tuple[float, float, float, float], ...] = ()
    measured_chips: tuple[Mapping[str, Any], ...] = ()  # chips whose training or serving somebody measured


class Market(Struct, frozen=True):
    """Facts turned into columns: what can be bought and on which terms."""

    facts: Facts
    supply: Supply
    terms: Terms
    book: AssumptionBook
    measured: Mapping[str, NDArray[np.bool_]]  # training, serving -> offers whose chip somebody measured at it


def market_of(catalog: Catalog) -> Market:
    """Return the market that a catalog describes, made once per catalog."""
    if "market" not in catalog.derived:
        with catalog.making:
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
        expected=_expected(offers, catalog),
        measured_chips=tuple(catalog.rows("measured_chips")),
    )


def _expected(offers: Sequence[Offer], catalog: Catalog) -> tuple[tuple[float, float, float, float], ...]:
    """Return low, expected and high price of today over the quote of each offer, and the quote over its peers."""
    sellers = Providers(catalog.rows("providers"))
    ages = np.array([counted_age_days(offer.age_days, offer.price_kind) for offer in offers], np.float64)
    kinds = [sellers.kind(offer.provider) for offer in offers]
    expected = expected_prices(offers, ages, kinds, catalog.price_moves())
    ends = (expected.low_ratio, expected.ratio, expected.high_ratio, np.nan_to_num(expected.peers_ratio, nan=1.0))
    return tuple(zip(*(np.round(column, 9).tolist() for column in ends), strict=True))  # as a saved answer keeps them


def expected_list_price(catalog: Catalog, offer: Offer) -> float | None:
    """Return what an hour of an offer is expected to cost without a book of one's own; None where no list has it."""
    if offer.list_usd_per_gpu_hour is None:
        return None
    listed = replace(
        offer,
        book="shipped",
        price_kind="list",
        usd_per_gpu_hour=offer.list_usd_per_gpu_hour,
        usd_per_hour=offer.list_usd_per_gpu_hour * offer.gpus,
        list_usd_per_gpu_hour=None,
    )
    offers = [listed, *(other for other in market_of(catalog).facts.offers if other.offer_id != offer.offer_id)]
    _, ratio, _, _ = _expected(offers, catalog)[0]
    return float(listed.usd_per_gpu_hour * ratio)


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
    terms = build_terms(
        supply,
        book,
        Providers(facts.providers),
        services=facts.services,
        spot_rows=facts.spot,
        regions=facts.regions,
        moves=facts.spot_moves,
        twins=facts.twins,
        expected=facts.expected,
    )
    measured = {kind: measured_chips(supply, facts.measured_chips, kind) for kind in ("training", "serving")}
    return Market(facts, supply, terms, book, measured)


class Hire(NamedTuple):
    """So many accelerators of one offer: what they cost together, whole machines paid."""

    offer: Offer
    gpus: int
    usd_per_hour: float  # of all of them, expected today
    missing: tuple[str, ...]  # what stands between it and an order; empty where one can order it

    @property
    def usd_per_gpu_hour(self) -> float:
        """The price of each accelerator that works."""
        return self.usd_per_hour / self.gpus

    def usd(self, hours: float) -> float:
        """Return what so many hours of all of them cost."""
        return self.usd_per_hour * hours


def cheapest(market: Market, gpu: str, gpus: int, allowed: NDArray[np.bool_] | None = None) -> Hire | None:
    """Return the lowest price, as expected today, of so many accelerators in one job; None where nobody hosts it.

    It has no term and is of `allowed`, else of those neither old nor interruptible; what one can order goes before
    what nobody verified. A price counts only where its seller hosts a job of that size; whole units are paid.
    """
    allowed = usual(market) if allowed is None else allowed
    hosts = allowed & (market.supply.largest_gpus >= gpus) & (market.terms.term_months == 0)
    of_gpu = np.array([key.accelerator.id == gpu for key in market.supply.keys], bool)
    places = np.flatnonzero(hosts & of_gpu[market.supply.key])
    if not len(places):
        return None
    first = in_order(market, places, gpus)[0]
    return Hire(first.offer, gpus, first.usd_per_gpu_hour * first.paid_ratio * gpus, first.missing)


def cheapest_named(market: Market, catalog: Catalog, named: Mapping[str, Any]) -> Callable[[str, int], Hire | None]:
    """Return the question for the cheapest of the offers that are named, as `cheapest`.

    What may be taken away counts only where its option is named, an old price where a name has no other.
    """
    wanted = catalog.offer_filter(**{name: named.get(name) for name in FILTERS})
    allowed = placed_in(market, catalog, {name: named.get(name) for name in FILTERS})
    if wanted["option"] is None:
        allowed &= ~market.terms.interruptible
    placed = any(wanted[name] is not None for name in ("provider", "region", "option"))
    tiers = [allowed & usual(market), allowed][: 1 + placed]

    def find(gpu: str, gpus: int) -> Hire | None:
        return next((hire for tier in tiers if (hire := cheapest(market, gpu, gpus, tier)) is not None), None)

    return find


class Rentable(NamedTuple):
    """An offer for so many accelerators at the price that one would expect to pay today."""

    offer: Offer
    usd_per_gpu_hour: float  # expected today
    low_usd_per_gpu_hour: float  # the ends of the range that holds 80 %
    high_usd_per_gpu_hour: float
    paid_ratio: float  # accelerators that are paid for ÷ those asked for: machines are sold whole
    missing: tuple[str, ...]  # what stands between it and an order; empty where one can order it
    is_far: bool  # whether the quote is so far below its peers that it is probably an error, or gone

    @property
    def quoted_usd_per_gpu_hour(self) -> float:
        """Return the price of an accelerator as it was seen."""
        return self.offer.usd_per_gpu_hour

    def told(self) -> str:
        """Say the price: expected today, and beside it the quote and its day."""
        text, seen = f"{self.usd_per_gpu_hour:.2f}", self.offer.observed_on
        quote = f"{self.quoted_usd_per_gpu_hour:.2f}"
        return f"{text} (seen {seen})" if text == quote else f"{text} expected today (quoted {quote} on {seen})"


def rentable(
    catalog: Catalog, gpu: str, gpus: int, accepts: Callable[[Offer], bool] = lambda offer: True, **filters: Any
) -> list[Rentable]:
    """Return what can be rented for so many accelerators, in the order of every question.

    `filters` are provider, region and option, as `Catalog.offers` takes them; `accepts` says which offers are meant.
    """
    market = market_of(catalog)
    offers, places = market.facts.offers, offered(catalog, gpu, **filters)
    meant = np.array([place for place in places.tolist() if accepts(offers[place])], np.int64)
    return in_order(market, meant, gpus)


def offered(catalog: Catalog, gpu: str, **filters: Any) -> NDArray[np.int64]:
    """Return the places of an accelerator's offers in the market, looked up once for each filter."""
    key = " ".join(("offered", gpu, *(repr(filters.get(name)) for name in ("provider", "region", "option"))))
    if key not in catalog.derived:
        wanted = {offer.offer_id for offer in catalog.offers(gpu=gpu, **filters)}
        listed = market_of(catalog).facts.offers
        catalog.derived[key] = np.array([i for i, offer in enumerate(listed) if offer.offer_id in wanted], np.int64)
    places: NDArray[np.int64] = catalog.derived[key]
    return places


def in_order(market: Market, places: NDArray[np.int64], gpus: int, most: int | None = None) -> list[Rentable]:
    """Return offers for so many accelerators: first what one can order, then what nobody verified, each by its price.

    The price is that expected today of the machines that must be taken. A chip counts as measured where its training
    or its serving was, since it is not known what it is rented for. Offers whose seller hosts no job of that size stand
    behind the others, and say so. `most` keeps the first ones alone.
    """
    supply, terms = market.supply, market.terms
    units = np.ceil(gpus / supply.unit_gpus[places]) * supply.unit_gpus[places]
    taken = np.maximum(units, supply.minimum_gpus[places]).astype(np.int64)
    measured = market.measured["training"] | market.measured["serving"]
    hosted = supply.largest_gpus[places] >= gpus
    first = verified(supply, terms, places, taken, measured) & hosted
    usd, paid = terms.usd_per_gpu_hour[places].tolist(), (taken / gpus).tolist()

    def rank(at: int) -> tuple[Any, ...]:
        offer = supply.offers[places[at]]  # of equal prices the larger machine
        return not first[at], not hosted[at], round(usd[at] * paid[at], 6), -offer.gpus, offer.offer_id

    def entry(at: int) -> Rentable:
        place = int(places[at])
        lacks = said(supply, terms, place, int(taken[at]), measured, "training or serving")
        return Rentable(
            supply.offers[place],
            usd[at],
            usd[at] * float(terms.price_low_ratio[place]),
            usd[at] * float(terms.price_high_ratio[place]),
            paid[at],
            (*lacks, *([] if hosted[at] else [supply.cap_reasons[place]])),
            bool(terms.peers_ratio[place] < FAR_RATIO),
        )

    return [entry(at) for at in sorted(range(len(places)), key=rank)[:most]]


def usual(market: Market) -> NDArray[np.bool_]:
    """Tell which offers are on demand, and neither old nor interruptible: no booked window, no term."""
    plain = np.array([OPTIONS[offer.option].family == "on demand" for offer in market.facts.offers], bool)
    usual_offers: NDArray[np.bool_] = plain & ~(market.terms.stale | market.terms.interruptible)
    return usual_offers


def placeless(market: Market, catalog: Catalog, request: Any) -> Market:
    """Return the market with the count of offers that a region leaves out because they name none."""
    if not request.region:
        return market
    offers = catalog.offers(request.gpu, request.provider, None, request.option)
    return replace(market, facts=replace(market.facts, placeless=sum(not offer.region for offer in offers)))


def asked_for(market: Market, catalog: Catalog, request: Any) -> NDArray[np.bool_]:
    """Tell which offers a request's filters let through."""
    if request.usd_per_gpu_hour is not None:  # one's own price alone answers
        return np.array([offer.provider == OWN_PRICE for offer in market.facts.offers], bool)
    named = {name: getattr(request, name) for name in FILTERS}
    return placed_in(market, catalog, named) & _left_in(market, catalog, request)


def placed_in(market: Market, catalog: Catalog, named: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Tell which offers are of the accelerator, provider, region and option named; None lets all through."""
    if not any(named.values()):
        return np.ones(len(market.facts.offers), bool)
    ids = {offer.offer_id for offer in catalog.offers(*(named[name] for name in FILTERS))}
    return np.array([offer.offer_id in ids for offer in market.facts.offers], bool)


def _left_in(market: Market, catalog: Catalog, request: Any) -> NDArray[np.bool_]:
    """Tell which offers are not left out by seller, kind of seller, confidence or network."""
    offers, remaining = market.facts.offers, np.ones(len(market.facts.offers), bool)
    if request.exclude_provider:
        out = {offer.offer_id for offer in catalog.offers(provider=request.exclude_provider)}
        remaining &= np.array([offer.offer_id not in out for offer in offers], bool)
    if request.provider_class:
        sellers = Providers(market.facts.providers)
        remaining &= np.array([sellers.kind(offer.provider) == request.provider_class for offer in offers], bool)
    if request.min_confidence:
        least = CONFIDENCES.index(request.min_confidence)
        remaining &= np.array([CONFIDENCES.index(offer.confidence) >= least for offer in offers], bool)
    if request.fabric:
        remaining &= np.array(
            [request.fabric.lower() in joined_by(market, index) for index in range(len(offers))], bool
        )
        if not remaining.any():
            fabrics = sorted({system.fabric for system in market.facts.systems if system.fabric})
            raise UsageError(
                f"--fabric {request.fabric}: no machine on offer has it. Known: {', '.join(fabrics[:12])} …"
            )
    return remaining


def at_most(market: Market, max_gpus: int | None) -> Market:
    """Return the market in which no order takes more accelerators."""
    if max_gpus is None:
        return market
    supply = market.supply
    capped = supply.largest_gpus > max_gpus
    reasons = [f"--max-gpus {max_gpus}" if over else why for over, why in zip(capped, supply.cap_reasons, strict=True)]
    largest = np.minimum(supply.largest_gpus, max_gpus)
    return replace(market, supply=replace(supply, largest_gpus=largest, cap_reasons=tuple(reasons)))


def joined_by(market: Market, index: int) -> str:
    """Return what joins the accelerators of an offer, inside a machine and between machines, in lower case."""
    offer, system = market.facts.offers[index], market.facts.systems[index]
    chip = market.facts.accelerators[offer.gpu]
    link = chip.scaleup_link if system.scaleup_gb_per_s else ""
    return f"{system.fabric} {offer.interconnect} {link}".lower()


def at_own_price(market: Market, catalog: Catalog, request: Any) -> Market:
    """Return the market with a node of the accelerator at the request's own price; unchanged where there is none."""
    if request.usd_per_gpu_hour is None:
        return market
    chip = catalog.accelerator(request.gpu)
    system = catalog.default_system(chip.id)
    offer = make_offer(
        {
            **_AS_OWNED,
            "offer_id": f"{OWN_PRICE}/{chip.id}",
            "provider": OWN_PRICE,
            "instance_type": system.instance_type or system.name,
            "gpu": chip.id,
            "gpus": system.gpus,
            "system_id": system.id,
            "usd_per_hour": request.usd_per_gpu_hour * system.gpus,
            "usd_per_gpu_hour": request.usd_per_gpu_hour,
            "price_kind": "contracted",
            "observed_on": market.facts.as_of,
            "source_id": OWN_SOURCE,
        }
    )
    return make_market(with_offers(market.facts, [offer], [system]))


def no_price(market: Market, catalog: Catalog, request: Any) -> PriceMissingError:
    """Return the error that says which filters let nothing through, and where offers are."""
    named = {name: getattr(request, name) for name in FILTERS}
    filters = ", ".join(f"--{name} {value}" for name, value in named.items() if value) or "the catalog"
    sold = [offer.region for offer in catalog.offers(request.gpu, request.provider, None, request.option)]
    around = catalog.regions.around(request.region, sold) if request.region else None
    hint = f" Try --region {around[0]!r}, with {around[1]} of them." if around else " Widen one of the filters."
    return PriceMissingError(
        f"no price can be ordered for {filters} as of {market.facts.as_of}.{_expired(catalog, named)} `gpucost prices`"
        f" lists what is known.{hint}"
    )


def _expired(catalog: Catalog, named: Mapping[str, Any]) -> str:
    """Say that prices were asked for which are too old to be offers, and when the newest of them was seen."""
    filters = catalog.offer_filter(**named)
    old = [row for row in catalog.price_rows if row["ended"] == EXPIRED and admits(filters, row)]
    if not old:
        return ""
    newest = max(row["observed_on"] for row in old)
    return f" {counted(len(old), 'price')} of that kind expired, as too old: the newest was seen on {newest}."


def said_of_larger(catalog: Catalog, gpu: str, gpus: int, provider: str | None) -> str:
    """Say whether a machine of so many accelerators was once on sale, or never on record."""
    ids = {chip.id for chip in catalog.accelerators(gpu)}
    sellers = catalog.offer_filter(gpu, provider, None, None)["provider"]
    large = [
        row
        for row in catalog.price_rows
        if row["gpu"] in ids and (row["gpus"] or 0) >= gpus and (sellers is None or row["provider"] in sellers)
    ]
    where, what = f" at {provider}" if provider else "", f"machine of {gpus} or more × {gpu}"
    if not large:
        return f" No {what} is on record{where}: it was never sold so."
    if any(not row["ended"] for row in large):
        return ""
    newest = max(large, key=lambda row: str(row["observed_on"]))
    why = _ENDED.get(newest["ended"], newest["ended"])
    return (
        f" A {what} was on sale{where}: that price {why}, last seen on {newest['observed_on']} at"
        f" {newest['usd_per_gpu_hour']:.2f} USD per GPU-hour."
    )


OLD_PRICE = "The top offer's price is old; its range is wider for that."
OWN_PRICE = "own-price"  # who sells at the price that a request names
CONFIDENCES = ("low", "medium", "high")


# why a price is no longer an offer -> how a reader is told
_ENDED = {EXPIRED: "expired", "replaced": "superseded", "stated": "ended by the provider"}


def outside_region(placeless: int) -> list[str]:
    """Warn of offers that a filter by region leaves out because they name none.

    >>> outside_region(1), outside_region(0)
    (['1 offer is left out because it names no region; it may be in this one.'], [])
    """
    if not placeless:
        return []
    if placeless == 1:
        return ["1 offer is left out because it names no region; it may be in this one."]
    return [f"{placeless:,} offers are left out because they name no region; they may be in this one."]


def prices_not_used(ended: Mapping[str, int]) -> list[str]:
    """Say how many prices of the catalog are no longer offers, by reason, the most frequent first.

    >>> prices_not_used({"replaced": 3, "too old": 20})
    ['23 prices not used: 20 expired, 3 superseded.']
    """
    if not ended:
        return []
    largest_first = sorted(ended.items(), key=lambda item: -item[1])
    reasons = ", ".join(f"{count:,} {_ENDED.get(reason, reason)}" for reason, count in largest_first)
    return [f"{sum(ended.values()):,} prices not used: {reasons}."]


def make_offer(fields: Mapping[str, Any]) -> Offer:
    """Make an offer from the fields that are known; the others are empty, and it was learned when it was seen."""
    return record(Offer, {"recorded_on": fields["observed_on"], **fields})


def with_offers(facts: Facts, offers: Sequence[Offer], systems: Sequence[System]) -> Facts:
    """Return facts with more offers, such as the pools of the user; each names the node that it is."""
    pool_nodes = {offer.gpu: system for offer, system in zip(offers, systems, strict=True)}
    return replace(
        facts,
        offers=(*facts.offers, *offers),
        systems=(*facts.systems, *systems),
        nodes={**pool_nodes, **facts.nodes},
        sold={**facts.sold, **sold_nodes(offers)},
        expected=(*facts.expected, *((1.0, 1.0, 1.0, 1.0) for _ in offers)) if facts.expected else (),
    )


# --- Facts inside an answer: the records that a costing reads, packed as lines of CSV, and unpacked for a rerun.

Flags = NDArray[np.bool_]
Record = TypeVar("Record", System, Accelerator, Offer)

# What a costing reads of each record; the other fields are not embedded.
OFFER = (
    "offer_id",
    "provider",
    "instance_type",
    "gpu",
    "gpu_assumed",
    "gpus",
    "region",
    "region_scope",
    "option",
    "tier",
    "billing",
    "term_months",
    "payment",
    "upfront_usd",
    "usd_per_hour",
    "usd_per_gpu_hour",
    "recurring_usd_per_hour",
    "minimum_hours",
    "billing_increment_hours",
    "minimum_units",
    "maximum_units",
    "observed_on",
    "source_id",
    "confidence",
    "age_days",
    "book",
    "price_kind",
    "list_usd_per_gpu_hour",
    "sale",
)
TWIN = ("provider", "instance_type", "region", "option", "usd_per_gpu_hour")
SYSTEM = ("accelerator_id", "gpus", "scaleup_gb_per_s", "scaleup_gpus", "scaleout_gb_per_s", "max_power_kw")
ACCELERATOR = Accelerator.__struct_fields__
# columns of the rows that stay rows
ROWS = {"credits": CREDIT, **lists_beside(__file__, "embedding")}
_alike = attrgetter(*SYSTEM)  # nodes that a costing cannot tell apart are one
_TABLE_OF: dict[type, str] = {Offer: "offers", System: "systems", Accelerator: "accelerators"}
# what the as-of view adds; all else that no table has is text
_KIND_BESIDE = {"age_days": "integer", "list_usd_per_gpu_hour": "number"}


def pack(items: Iterable[Any], names: Sequence[str]) -> list[str]:
    """Write records as lines of CSV, the first one naming the columns; None is an empty cell."""
    lines: list[str] = []
    collecting: Any = SimpleNamespace(write=lines.append)
    writer = csv.writer(collecting)
    writer.writerow(names)
    writer.writerows(map(attrgetter(*names), items))
    return [line.removesuffix("\r\n") for line in lines]  # a name may hold what ends a line


def unpack(kind: type[Record], lines: Sequence[str]) -> list[Record]:
    """Read packed records back; fields that were not packed are empty."""
    names, *rows = _cells(lines)
    kinds = {**_KIND_BESIDE, **{column.name: column.kind for column in TABLES[_TABLE_OF[kind]].columns}}
    columns = [
        read_column(kinds.get(name, "text"), cells) for name, cells in zip(names, zip(*rows, strict=True), strict=False)
    ]
    bounds = {column.name: column for column in TABLES[_TABLE_OF[kind]].columns}
    for name, cells in zip(names, columns, strict=False):
        if name in bounds:
            _refuse_beyond(bounds[name], cells)
    return records(kind, names, zip(*columns, strict=True))


def _cells(lines: Sequence[str]) -> list[list[str]]:
    """Return the cells of packed lines; those of a changed file may be anything."""
    try:
        rows = list(csv.reader(lines))
    except csv.Error:
        rows = []
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise UsageError("the rows of the saved facts differ in length: the file was changed.")
    return rows


def _refuse_beyond(column: TableColumn, cells: Sequence[Any]) -> None:
    """Refuse numbers that the table of such rows would not take: a saved file is as much a stranger's as a book."""
    if column.kind not in ("number", "integer"):
        return
    low, high = -math.inf if column.low is None else column.low, math.inf if column.high is None else column.high
    for cell in cells:
        if cell is not None and not (low <= cell <= high and math.isfinite(cell) and (cell > 0 or not column.positive)):
            raise UsageError(
                f"the saved facts hold {column.name} = {cell!r}, which is impossible: the file was changed."
            )


def _refuse_impossible(rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        for name, value in row.items():
            lowest = 0 if name.startswith(("usd_", "interruptions_", "availability_", "billing_")) else -math.inf
            if isinstance(value, (int, float)) and not (lowest <= value and math.isfinite(value)):
                raise UsageError(f"the saved facts hold {name} = {value!r}, which is impossible: the file was changed.")


def embed(facts: Facts, mask: Flags, architecture: Architecture) -> dict[str, Any]:
    """Return the facts behind the offers that a request looked at, compact and readable: one line per record."""
    packed = _embedded(facts, mask)
    copies = {name: _copied(rows) for name, rows in packed.items()}  # whoever changes an answer changes no other one
    return {"architecture": to_builtins(architecture), **copies}


def _copied(rows: Any) -> Any:
    if isinstance(rows, dict):
        return dict(rows)
    return [row.copy() if isinstance(row, (dict, list)) else row for row in rows] if isinstance(rows, list) else rows


_PACKED_KEPT = 8
_packed: "OrderedDict[tuple[int, bytes], tuple[ref[Facts], dict[str, Any]]]" = OrderedDict()
_packed_lock = Lock()


def _embedded(facts: Facts, mask: Flags) -> dict[str, Any]:
    """Return the facts behind some offers; those of the last few questions are kept, as most look at the same."""
    name = (id(facts), mask.tobytes())
    with _packed_lock:
        kept = _packed.pop(name, None)
        if kept is None or kept[0]() is not facts:
            kept = (ref(facts), _packed_facts(facts, mask))
        _packed[name] = kept
        if len(_packed) > _PACKED_KEPT:
            _packed.popitem(last=False)
        return kept[1]


def _packed_facts(facts: Facts, mask: Flags) -> dict[str, Any]:
    index = np.flatnonzero(mask)
    offers = [facts.offers[number] for number in index]
    systems = {_alike(facts.systems[number]): facts.systems[number] for number in index}
    position = {key: number for number, key in enumerate(systems)}
    gpus = list(dict.fromkeys(offer.gpu for offer in offers))
    sellers = {offer.provider for offer in offers}
    companies = {company(provider) for provider in sellers}
    looked_at = {
        "assumptions": facts.assumptions,
        "services": [row for row in facts.services if row["provider"] in companies],
        "spot": [row for row in facts.spot if row["kind"] != "bucket" or row["provider"] in sellers],
        "regions": [row for row in facts.regions if row["provider"] in {*companies, *sellers, "any"}],
        "providers": [row for row in facts.providers if row["provider"] in sellers],
        "credits": facts.credits,
        "measured_chips": facts.measured_chips,
        "spot_moves": [row for row in facts.spot_moves if row["provider"] in (None, *sellers)],
    }
    return {
        "accelerators": pack((facts.accelerators[name] for name in gpus), ACCELERATOR),
        "nodes": pack((facts.nodes[name] for name in gpus), SYSTEM),
        "systems": pack(systems.values(), SYSTEM),
        "sold": [[*pair, facts.sold[pair]] for pair in dict.fromkeys((offer.provider, offer.gpu) for offer in offers)],
        **{name: [_kept(row, ROWS[name]) for row in rows] for name, rows in looked_at.items()},
        "offers": pack(offers, OFFER),
        "ended": dict(facts.ended),
        **({"placeless": facts.placeless} if facts.placeless else {}),
        **({"expected": [[*facts.expected[number]] for number in index]} if facts.expected else {}),
        **({"twins": pack(twins, TWIN)} if (twins := _twins(facts, offers)) else {}),
        "offer_systems": [position[_alike(facts.systems[number])] for number in index],
    }


def _twins(facts: Facts, offers: Sequence[Offer]) -> list[Offer]:
    """Return the offers on demand behind the ranges of spot prices that are not among the offers."""
    spot = dict.fromkeys(place_of(offer) for offer in offers if OPTIONS[offer.option].family == "preemptible")
    if not spot:
        return []
    listed, kept = on_demand((*facts.twins, *facts.offers)), on_demand(offers)
    return [listed[key] for key in spot if key in listed and kept.get(key) is not listed[key]]


def _kept(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    values = {name: row.get(name) for name in names}
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in values.items()}


def unembed(saved: Mapping[str, Any], as_of: str, version: str, sources: Mapping[str, Any]) -> Facts:
    """Read embedded facts back."""
    systems = unpack(System, saved["systems"])
    for name in ROWS:
        _refuse_impossible(saved.get(name, ()))
    return Facts(
        as_of=date.fromisoformat(as_of),
        catalog_version=version,
        offers=tuple(unpack(Offer, saved["offers"])),
        accelerators={chip.id: chip for chip in unpack(Accelerator, saved["accelerators"])},
        systems=tuple(systems[index] for index in saved["offer_systems"]),
        nodes={system.accelerator_id: system for system in unpack(System, saved["nodes"])},
        sold={(provider, gpu): gpus for provider, gpu, gpus in saved["sold"]},
        **{name: tuple(saved.get(name, ())) for name in ROWS},
        sources=sources,
        ended=saved.get("ended", {}),
        placeless=saved.get("placeless", 0),
        twins=tuple(unpack(Offer, saved["twins"]) if "twins" in saved else ()),
        expected=_ratios(saved.get("expected", ()), len(saved["offer_systems"])),
    )


def _ratios(rows: Any, offers: int) -> tuple[tuple[float, float, float, float], ...]:
    """Read the expected prices of a saved answer back; those of a changed file may be anything."""
    right = isinstance(rows, (list, tuple)) and len(rows) in (0, offers)
    if not right or not all(
        isinstance(row, (list, tuple)) and len(row) == 4 and all(_is_ratio(cell) for cell in row) for row in rows
    ):
        raise UsageError("the saved facts hold impossible expected prices: the file was changed.")
    return tuple((float(low), float(ratio), float(high), float(peers)) for low, ratio, high, peers in rows)


def _is_ratio(cell: Any) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool) and 0 < cell < math.inf


# --- The user's own accelerators as offers: owned or committed pools, incremental or fully loaded.

VIEWS = ("incremental", "loaded")
_PRICE_KEYS = tuple(f"{view}_usd_per_gpu_hour" for view in VIEWS)
# how a price may be written: in USD or in the currency of the pool, of an hour or of a month
_WAYS = ("usd_per_gpu_hour", "usd_per_gpu_month", "price_per_gpu_hour", "price_per_gpu_month")

_AS_OWNED = {
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


@cache
def pool_model() -> "type[BaseModel]":
    """Return the model of one [[pool]]."""
    price, monthly = number(high=2000, above=True), number(high=1.5e6, above=True)
    model: type[BaseModel] = typed_record(
        "Pool",
        name=text(200),
        gpu=text(200, 1),
        gpus=number(1, 1e6, whole_number=True),
        system=text(200, 1),
        available_gpus=number(1, 1e9, whole_number=True),
        **{f"{view}_{way}": price if way.endswith("hour") else monthly for view in VIEWS for way in _WAYS},
        currency=text(3, 3),
        upfront_per_gpu=number(high=1e7, above=True),
        term_months=number(1, 1200, whole_number=True),
        until=(Any, None),
        valid_until=(Any, None),
        region=text(200),
        observed_on=(Any, None),
    )
    return model


def read_pool(path: str, catalog: Catalog, as_of: date, view: str) -> tuple[list[Offer], list[System]]:
    """Read pools from a TOML file with [[pool]] tables.

    Each names a gpu, the gpus per node, available_gpus, and what a GPU-hour costs: incremental_usd_per_gpu_hour (power
    and upkeep of capacity that is paid for anyway) and loaded_usd_per_gpu_hour (with capital, space and staff), also as
    ..._usd_per_gpu_month, or as incremental_price_per_gpu_hour and the like in a `currency`. What was paid upfront for
    a term (upfront_per_gpu, term_months) is part of the loaded cost; `until` is the last day.
    """
    content = read_toml(path)
    if strange := next((name for name in content if name != "pool"), None):
        raise DataError("this key is unknown; write each pool as a table [[pool]]", file=path, column=strange[:120])
    tables = content.get("pool", [])
    if not isinstance(tables, list) or not tables:
        raise DataError(
            "no [[pool]] table; each pool needs gpu, gpus, available_gpus and a price per GPU-hour", file=path
        )
    pairs = []
    for position, table in enumerate(tables, 1):
        if not isinstance(table, dict):
            raise DataError(f"{shown(table)} is not a table [[pool]]", file=path, row=position)
        held(pool_model(), table, path, position)
        views = [name for name in VIEWS if view in ("both", name) and any(f"{name}_{way}" in table for way in _WAYS)]
        if not views:
            raise DataError(f"no price: give {' or '.join(_PRICE_KEYS)}", file=path, row=position)
        pairs += [_offer(table, position, path, catalog, as_of, name) for name in views]
    if twice := repeated(offer.offer_id for offer, _ in pairs):
        reason = f"two pools are called {shown(twice[0].split('/')[1])}. Give each a name of its own."
        raise DataError(reason, file=path, column="name")
    return [offer for offer, _ in pairs], [system for _, system in pairs]


def _offer(
    table: dict[str, Any], number: int, path: str, catalog: Catalog, as_of: date, view: str
) -> tuple[Offer, System]:
    system = _system(table, number, path, catalog)
    gpus = int(table.get("gpus", system.gpus))
    available = int(table.get("available_gpus", gpus))
    if available < gpus:
        reason = f"{available} are fewer than the {gpus} of one node: give gpus = {available}, or more of them"
        raise DataError(reason, file=path, row=number, column="available_gpus")
    price, end = _pool_price(table, number, path, catalog, view), pool_end(table, number, path)
    if end is not None and end < as_of:
        reason = f"it ended on {end}, before {as_of}, the day that prices are taken from. Leave the pool out."
        raise DataError(reason, file=path, row=number, column="until")
    name, seen = pool_name(table, number), _seen(table, number, path, as_of)
    fields = _AS_OWNED | {
        "offer_id": f"own/{name}/{view}",
        "instance_type": f"{name} ({view})",
        "tier": view,
        "gpu": system.accelerator_id,
        "gpus": gpus,
        "system_id": system.id,
        "region": str(table.get("region", "")),
        "usd_per_hour": price * gpus,
        "usd_per_gpu_hour": price,
        "maximum_units": max(1, available // gpus),
        "availability": f"{available} accelerators{f' until {end}' if end else ''}",
        "observed_on": seen,
        "age_days": max(0, (as_of - seen).days),
        "notes": f"{view} cost of capacity of your own",
    }
    return make_offer(fields), system


def pool_name(table: Mapping[str, Any], number: int) -> str:
    """Return what a pool is called."""
    return str(table.get("name") or f"pool-{number}")


def _pool_price(table: dict[str, Any], number: int, path: str, catalog: Catalog, view: str) -> float:
    """Return what a GPU-hour of a pool costs in USD; what was paid upfront is spread over its term, loaded."""
    stated = [way for way in _WAYS if f"{view}_{way}" in table]
    if len(stated) > 1:
        reason = f"the {view} cost is given twice, as {view}_{stated[0]} and {view}_{stated[1]}. Keep one."
        raise DataError(reason, file=path, row=number, column=f"{view}_{stated[1]}")
    code = str(table.get("currency") or "USD").upper()
    try:
        rate = usd_per_unit(catalog, code)
    except PriceMissingError as error:
        raise DataError(str(error), file=path, row=number, column="currency") from None
    usd = float(table[f"{view}_{stated[0]}"]) * (1.0 if stated[0].startswith("usd") else rate)
    usd /= HOURS_PER_MONTH if stated[0].endswith("month") else 1.0
    upfront, term = table.get("upfront_per_gpu"), table.get("term_months")
    if (upfront is None) != (term is None):
        reason = "what was paid upfront needs its term, and a term what was paid: give both, or neither"
        raise DataError(reason, file=path, row=number, column="term_months" if term is None else "upfront_per_gpu")
    if upfront is not None and term is not None and view == "loaded":
        usd += float(upfront) * rate / (float(term) * HOURS_PER_MONTH)
    return usd


def pool_end(table: Mapping[str, Any], number: int, path: str) -> date | None:
    """Return the last day of a pool; None where it has no end."""
    stated = [name for name in ("until", "valid_until") if table.get(name) is not None]
    if not stated:
        return None
    try:
        end = date.fromisoformat(str(table[stated[0]]).strip())
    except ValueError:
        reason = f"{shown(table[stated[0]])} is not a day such as 2027-06-30"
        raise DataError(reason, file=path, row=number, column=stated[0]) from None
    return end


def pool_ends(path: str) -> dict[str, date]:
    """Return the last day of each pool in a file that has one, by name."""
    tables = enumerate(read_toml(path)["pool"], 1)
    ends = {pool_name(table, number): pool_end(table, number, path) for number, table in tables}
    return {name: end for name, end in ends.items() if end is not None}


def _seen(table: dict[str, Any], number: int, path: str, as_of: date) -> date:
    """Return the day when a pool's cost was seen, written as a day or as its text; no day of the future."""
    day = table.get("observed_on", as_of)
    try:
        seen = date.fromisoformat(day.strip()) if isinstance(day, str) else day
    except ValueError:
        seen = None
    if type(seen) is not date:
        raise DataError(f"{shown(day)} is not a day such as 2026-06-15", file=path, row=number, column="observed_on")
    if seen > as_of:
        reason = f"{seen} lies after {as_of}, the day that prices are taken from. Ask with --as-of {seen} or later."
        raise DataError(reason, file=path, row=number, column="observed_on")
    return seen


def _system(table: dict[str, Any], number: int, path: str, catalog: Catalog) -> System:
    """Return the node that a pool names, else the usual one of its accelerator; where it names both, they agree."""
    named, gpu = table.get("system"), table.get("gpu")
    if gpu is None and named is None:
        raise DataError("the name of a gpu or a system is needed", file=path, row=number, column="gpu")
    if named is None:
        return catalog.default_system(catalog.accelerator(str(gpu)).id)
    system = catalog.system(named)
    meant = [system.accelerator_id] if gpu is None else catalog.accelerator_names.matches(gpu)
    if system.accelerator_id not in (meant or [catalog.accelerator(str(gpu)).id]):
        reason = f"{system.id} has {system.accelerator_id}, not {shown(gpu)}: leave one of the two out"
        raise DataError(reason, file=path, row=number, column="gpu")
    return system
