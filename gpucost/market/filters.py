"""Which offers of a market a question asks for, and what is said of those that it leaves out."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.answers.common import old_prices
from gpucost.catalog import Catalog
from gpucost.catalog.names import admits
from gpucost.catalog.records import OWN_SOURCE
from gpucost.errors import PriceMissingError, UsageError
from gpucost.market.facts import AS_OWNED, FILTERS, Market, make_market, make_offer, with_offers
from gpucost.market.supply import Providers
from gpucost.options import EXPIRED, OPTIONS
from gpucost.units import counted

_OWN_PRICE = "own-price"  # who sells at the price that a request names
_CONFIDENCES = ("low", "medium", "high")
# why a price is no longer an offer -> how a reader is told
_ENDED = {EXPIRED: "expired", "replaced": "superseded", "stated": "ended by the provider"}


def usual(market: Market) -> NDArray[np.bool_]:
    """Tell which offers are on demand and not interruptible: no booked window, no term."""
    plain = np.array([OPTIONS[offer.option].family == "on demand" for offer in market.facts.offers], bool)
    usual_offers: NDArray[np.bool_] = plain & ~market.terms.interruptible
    return usual_offers


def placeless(market: Market, catalog: Catalog, request: Any) -> Market:
    """Return the market with the count of offers that a region leaves out because they name none.

    They are counted for a warning: such an offer may well be in the region.
    """
    if not request.region:
        return market
    offers = catalog.offers(request.gpu, request.provider, None, request.option)
    return replace(market, facts=replace(market.facts, placeless=sum(not offer.region for offer in offers)))


def asked_for(market: Market, catalog: Catalog, request: Any) -> NDArray[np.bool_]:
    """Tell which offers a request's filters let through."""
    if request.usd_per_gpu_hour is not None:  # one's own price alone answers
        return np.array([offer.provider == _OWN_PRICE for offer in market.facts.offers], bool)
    facts = market.facts
    placed = placed_in(market, catalog, {name: getattr(request, name) for name in FILTERS})
    # each further filter that the request names narrows what remains
    remaining = np.ones(len(facts.offers), bool)
    if request.exclude_provider:
        excluded_ids = {offer.offer_id for offer in catalog.offers(provider=request.exclude_provider)}
        remaining &= np.array([offer.offer_id not in excluded_ids for offer in facts.offers], bool)
    if request.provider_class:
        sellers = Providers(facts.providers)
        remaining &= np.array([sellers.kind(offer.provider) == request.provider_class for offer in facts.offers], bool)
    if request.min_confidence:
        least = _CONFIDENCES.index(request.min_confidence)
        remaining &= np.array([_CONFIDENCES.index(offer.confidence) >= least for offer in facts.offers], bool)
    if request.fabric:  # what joins accelerators, between machines or inside one
        has_fabric = []
        for offer, system in zip(facts.offers, facts.systems, strict=True):
            link = facts.accelerators[offer.gpu].scaleup_link if system.scaleup_gb_per_s else ""
            joined_by = f"{system.fabric} {offer.interconnect} {link}".lower()
            has_fabric.append(request.fabric.lower() in joined_by)
        remaining &= np.array(has_fabric, bool)
        if not remaining.any():
            fabrics = sorted({system.fabric for system in facts.systems if system.fabric})
            raise UsageError(
                f"--fabric {request.fabric}: no machine on offer has it. Known: {', '.join(fabrics[:12])} …"
            )
    return placed & remaining


def placed_in(market: Market, catalog: Catalog, named: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Tell which offers are of the accelerator, provider, region and option named; None lets all through."""
    if not any(named.values()):
        return np.ones(len(market.facts.offers), bool)
    # the catalog knows what names mean, aliases and groups of regions too
    ids = {offer.offer_id for offer in catalog.offers(*(named[name] for name in FILTERS))}
    return np.array([offer.offer_id in ids for offer in market.facts.offers], bool)


def at_most(market: Market, max_gpus: int | None) -> Market:
    """Return the market in which no order takes more accelerators."""
    if max_gpus is None:
        return market
    supply = market.supply
    capped = supply.largest_gpus > max_gpus
    reasons = [f"--max-gpus {max_gpus}" if over else why for over, why in zip(capped, supply.cap_reasons, strict=True)]
    largest = np.minimum(supply.largest_gpus, max_gpus)
    return replace(market, supply=replace(supply, largest_gpus=largest, cap_reasons=tuple(reasons)))


def at_own_price(market: Market, catalog: Catalog, request: Any) -> Market:
    """Return the market with a node of the accelerator at the request's own price; unchanged where there is none."""
    if request.usd_per_gpu_hour is None:
        return market
    chip = catalog.accelerator(request.gpu)
    system = catalog.default_system(chip.id)
    # sold as a node without a term, by a seller of its own name: it stands among the offers of the market
    offer = make_offer(
        {
            **AS_OWNED,
            "offer_id": f"{_OWN_PRICE}/{chip.id}",
            "provider": _OWN_PRICE,
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
    values = {name: getattr(request, name) for name in FILTERS}
    filters = ", ".join(f"--{name} {value}" for name, value in values.items() if value) or "the catalog"
    regions = [offer.region for offer in catalog.offers(request.gpu, request.provider, None, request.option)]
    # the narrowest wider region in which there is something, such as europe for germany
    around = catalog.regions.around(request.region, regions) if request.region else None
    hint = f" Try --region {around[0]!r}, with {around[1]} of them." if around else " Widen one of the filters."
    notice = old_prices(catalog.as_of.isoformat(), catalog.version)
    # prices that are too old to be offers say when there last was one
    allowed, expired = catalog.offer_filter(**values), ""
    old = [row for row in catalog.price_rows if row["ended"] == EXPIRED and admits(allowed, row)]
    if old:
        newest = max(row["observed_on"] for row in old)
        expired = f" {counted(len(old), 'price')} of that kind expired, as too old: the newest was seen on {newest}."
    return PriceMissingError(
        f"no price can be ordered for {filters} as of {market.facts.as_of}.{expired} `gpucost prices` lists what is"
        f" known.{hint}{notice and f' {notice}'}"
    )


def history_of_larger(catalog: Catalog, gpu: str, gpus: int, provider: str | None) -> str:
    """Say of machines of so many accelerators that none is on record, or when one was last on sale.

    Where one is on sale now there is nothing to say.
    """
    ids = {chip.id for chip in catalog.accelerators(gpu)}
    sellers = catalog.offer_filter(gpu, provider, None, None)["provider"]
    # offers that ended count too: they say whether such a machine was ever on sale
    large = [
        row
        for row in catalog.price_rows
        if row["gpu"] in ids and (row["gpus"] or 0) >= gpus and (sellers is None or row["provider"] in sellers)
    ]
    place, machine = f" at {provider}" if provider else "", f"machine of {gpus} or more × {gpu}"
    if not large:
        return f" No {machine} is on record{place}: it was never sold so."
    if any(not row["ended"] for row in large):
        return ""
    newest = max(large, key=lambda row: str(row["observed_on"]))
    why = _ENDED.get(newest["ended"], newest["ended"])
    return (
        f" A {machine} was on sale{place}: that price {why}, last seen on {newest['observed_on']} at"
        f" {newest['usd_per_gpu_hour']:.2f} USD per GPU-hour."
    )


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
