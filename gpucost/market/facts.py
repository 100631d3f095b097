"""The facts that an answer leans on: read from the catalog, embedded in the answer, read back for a rerun."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from datetime import date
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from gpucost.market.assumptions import Book, make_book
from gpucost.market.places import Providers
from gpucost.market.supply import Supply, build_supply, sold_nodes
from gpucost.market.terms import Terms, build_terms
from gpucost.types import Accelerator, Architecture, Offer, System

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

Flags = NDArray[np.bool_]
Record = TypeVar("Record", System, Accelerator)

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
_SERVICE_COLUMNS = ("provider", "service", "usd_per_gb_month", "usd_per_gb", "typical", "source_id")
_SPOT_COLUMNS = (
    "provider",
    "instance_type",
    "region",
    "kind",
    "interruptions_per_instance_hour_low",
    "interruptions_per_instance_hour",
    "interruptions_per_instance_hour_high",
    "availability_fraction",
    "observed_on",
    "source_id",
)
_PROVIDER_COLUMNS = ("provider", "kind", "billing_increment_hours")
_REGION_COLUMNS = ("provider", "region", "carbon_item")
_ITEM_COLUMNS = ("item", "low", "typical", "high", "unit", "source_id")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Facts:
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


@dataclass(frozen=True, slots=True)
class Market:
    """Facts turned into columns: what can be bought and on which terms."""

    facts: Facts
    supply: Supply
    terms: Terms
    book: Book


_MARKETS: "WeakKeyDictionary[Any, Market]" = WeakKeyDictionary()


def market_of(catalog: "Catalog") -> Market:
    """Return the market that a catalog describes, made once per catalog."""
    if catalog not in _MARKETS:
        _MARKETS[catalog] = make_market(read_facts(catalog))
    return _MARKETS[catalog]


def read_facts(catalog: "Catalog") -> Facts:
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
        assumptions=tuple(row for row in assumptions if _needed(str(row["item"]))),
        services=tuple(row for row in catalog.rows("services") if row["service"] in SERVICES and row["typical"]),
        spot=tuple(catalog.rows("spot")),
        regions=tuple(catalog.rows("cloud_regions")),
        providers=tuple(catalog.rows("providers")),
        sources=_Sources(catalog),
    )


def _needed(item: str) -> bool:
    return item in ITEMS or item.startswith("grid_carbon.")


class _Sources(Mapping[str, Mapping[str, Any]]):
    """Sources of the catalog, looked up when they are asked for."""

    def __init__(self, catalog: "Catalog") -> None:
        self._catalog = catalog

    def __getitem__(self, key: str) -> Mapping[str, Any]:
        from gpucost.errors import UnknownNameError

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
    return Market(facts, supply, _terms(facts, supply, book), book)


def _terms(facts: Facts, supply: Supply, book: Book) -> Terms:
    providers = Providers(facts.providers)
    return build_terms(supply, book, providers, services=facts.services, spot_rows=facts.spot, regions=facts.regions)


# Embedding -------------------------------------------------------------------------------------------------------

# Fields of an offer and of a system that a costing reads; the others are not embedded.
_OFFER_FIELDS = (
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
)
_ACCELERATOR_FIELDS = tuple(field.name for field in fields(Accelerator))
_SYSTEM_FIELDS = ("accelerator_id", "gpus", "scaleup_gb_per_s", "scaleup_gpus", "scaleout_gb_per_s", "max_power_kw")


def embed(facts: Facts, mask: Flags, architecture: Architecture) -> dict[str, Any]:
    """Return the facts behind the offers that a request looked at, compact and readable: one line per record."""
    index = np.flatnonzero(mask)
    offers = [facts.offers[number] for number in index]
    systems: dict[System, int] = {}
    places = [systems.setdefault(_bare(facts.systems[number]), len(systems)) for number in index]
    gpus = list(dict.fromkeys(offer.gpu for offer in offers))
    sellers = {offer.provider for offer in offers}
    providers = {provider.removesuffix("-sagemaker") for provider in sellers}
    instances = {(offer.provider, offer.instance_type) for offer in offers}
    pairs = dict.fromkeys((offer.provider, offer.gpu) for offer in offers)
    return {
        "architecture": asdict(architecture),
        "accelerators": _table((facts.accelerators[name] for name in gpus), _ACCELERATOR_FIELDS),
        "nodes": _table((facts.nodes[name] for name in gpus), _SYSTEM_FIELDS),
        "systems": _table(systems, _SYSTEM_FIELDS),
        "sold": [[provider, gpu, facts.sold[provider, gpu]] for provider, gpu in pairs],
        "assumptions": [_kept(row, _ITEM_COLUMNS) for row in facts.assumptions],
        "services": [_kept(row, _SERVICE_COLUMNS) for row in facts.services if row["provider"] in providers],
        "spot": [_kept(row, _SPOT_COLUMNS) for row in facts.spot if _relevant(row, instances)],
        "regions": [_kept(row, _REGION_COLUMNS) for row in facts.regions if row["provider"] in (*providers, "any")],
        "providers": [_kept(row, _PROVIDER_COLUMNS) for row in facts.providers if row["provider"] in sellers],
        "offers": _table(offers, _OFFER_FIELDS),
        "offer_systems": places,
    }


def _bare(system: System) -> System:
    """Return a system with what a costing reads of it only, so that equal nodes are one."""
    values = {name: getattr(system, name) for name in _SYSTEM_FIELDS}
    return System(id="", name="", kind="", **values)


def _relevant(row: Mapping[str, Any], instances: set[tuple[str, str]]) -> bool:
    return row["kind"] != "bucket" or (row["provider"], row["instance_type"]) in instances


def _kept(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    values = {name: row.get(name) for name in names}
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in values.items()}


def _table(records: Iterable[Any], names: Sequence[str]) -> list[str]:
    """Write records as lines of CSV, the first one naming the columns; None is an empty cell."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")  # writes None as an empty cell
    writer.writerow(names)
    writer.writerows(map(attrgetter(*names), records))
    return buffer.getvalue().splitlines()


def unembed(saved: Mapping[str, Any], as_of: str, version: str, sources: Mapping[str, Any]) -> Facts:
    """Read embedded facts back."""
    systems = [_record(System, row, {"id": "", "name": "", "kind": ""}) for row in csv.DictReader(saved["systems"])]
    rows = list(csv.DictReader(saved["offers"]))
    accelerators = [_record(Accelerator, row, {}) for row in csv.DictReader(saved["accelerators"])]
    nodes = [_record(System, row, {"id": "", "name": "", "kind": ""}) for row in csv.DictReader(saved["nodes"])]
    return Facts(
        as_of=date.fromisoformat(as_of),
        catalog_version=version,
        offers=tuple(_offer(row) for row in rows),
        accelerators={item.id: item for item in accelerators},
        systems=tuple(systems[place] for place in saved["offer_systems"]),
        nodes={system.accelerator_id: system for system in nodes},
        sold={(provider, gpu): gpus for provider, gpu, gpus in saved["sold"]},
        assumptions=tuple(saved["assumptions"]),
        services=tuple(saved["services"]),
        spot=tuple(saved["spot"]),
        regions=tuple(saved["regions"]),
        providers=tuple(saved["providers"]),
        sources=sources,
    )


def _offer(row: Mapping[str, str]) -> Offer:
    """Read one line of an embedded offer."""
    names = {field.name: str(field.type) for field in fields(Offer)}
    return make_offer({name: _cell(names[name], text) for name, text in row.items() if name in names})


def make_offer(known: Mapping[str, Any]) -> Offer:
    """Make an offer from the fields that are known; the others are empty, dates those of the observation."""
    blank: dict[str, Any] = {}
    for field in fields(Offer):
        if field.name not in known and field.default is MISSING:
            kind = str(field.type)
            blank[field.name] = None if "None" in kind else known["observed_on"] if "date" in kind else ""
    return Offer(**blank, **known)


def _record(kind: type[Record], row: Mapping[str, str], unread: Mapping[str, Any]) -> Record:
    names = {field.name: str(field.type) for field in fields(kind)}
    return kind(**unread, **{name: _cell(names[name], text) for name, text in row.items() if name in names})


def _cell(kind: str, text: str) -> Any:
    """Read a cell by the type of its field; an empty cell of what may be missing is None."""
    if text == "" and "None" in kind:
        return None
    if "date" in kind:
        return date.fromisoformat(text)
    if "float" in kind:
        return float(text)
    if "int" in kind:
        return int(text)
    return text == "True" if "bool" in kind else text


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
