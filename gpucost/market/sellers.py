"""How an answer tells of an offer: who sells it, how old its price is, what a reader must know of both."""

from typing import cast

from gpucost.answers.common import Seen, Seller, listed
from gpucost.market.terms import Terms
from gpucost.types import Offer

ASSUMED_FORM = "the form factor of the accelerator is assumed, the source does not state it"


def seller(offer: Offer) -> Seller:
    """Return who sells an offer, where, on which terms."""
    told = {name: getattr(offer, name) for name in Seller.__annotations__}
    return cast(Seller, told | {"region": offer.region or None, "tier": offer.tier or None})


def seen(offer: Offer, terms: Terms, number: int, credits_usd: float) -> Seen:
    """Return how old a price is and how far to trust it."""
    return {
        "price_observed_on": offer.observed_on.isoformat(),
        "age_days": offer.age_days,
        "price_stale": bool(terms.stale[number]),
        "price_book": offer.book,
        "price_kind": offer.price_kind,
        "price_confidence": offer.confidence,
        **listed(offer.list_usd_per_gpu_hour, credits_usd),
    }


def old_price(offer: Offer, terms: Terms, number: int) -> list[str]:
    """Say that a price is old, where it is."""
    limit = f"limit {terms.age_limit_days[number]:g}"
    return [f"price is {offer.age_days} days old ({limit}): range widened"] if terms.stale[number] else []


def doubted_price(offer: Offer) -> list[str]:
    """Say that little is known of a price, where it is so."""
    return ["low confidence in the price: see its source"] if offer.confidence == "low" else []
