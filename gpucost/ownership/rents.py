"""What the catalog knows of GPU-hours to rent, and how each price was chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from gpucost.answers.common import Layered, listed
from gpucost.catalog import Catalog
from gpucost.errors import NothingFitsError, PriceMissingError, UsageError
from gpucost.market.interruptions import InterruptionRates, held_ratio
from gpucost.market.places import Providers
from gpucost.options import OPTIONS, counted_age_days, is_plain
from gpucost.types import Accelerator, Offer, Status
from gpucost.units import GB, GIB, HOURS_PER_MONTH

FEWEST_PROVIDERS = 5


@dataclass(frozen=True, slots=True)
class RentChoice:
    """A rental price and its terms, with where it comes from."""

    name: str
    usd_per_gpu_hour: float
    billing: str = "per_use"
    term_months: int = 0
    upfront_fraction: float = 0.0
    stretch_ratio: float = 1.0  # hours paid ÷ hours needed
    low: float | None = None
    high: float | None = None
    status: Status = "sourced"
    source_id: str = ""
    note: str = ""
    provider: str = ""
    option: str = "on_demand"
    offer_id: str = ""
    observed_on: str = ""
    age_days: int | None = None
    stale: bool = False  # older than its kind of price allows
    offer: Offer | None = None  # that the catalog holds

    def changes(self) -> dict[str, Any]:
        """Return the inputs that this choice sets."""
        return {
            "rent_usd_per_gpu_hour": self.usd_per_gpu_hour,
            "rent_billing": self.billing,
            "rent_term_months": float(self.term_months),
            "rent_upfront_fraction": self.upfront_fraction,
            "rent_stretch_ratio": self.stretch_ratio,
        }


@dataclass(frozen=True)
class Renter:
    """Who looks for GPU-hours: the catalog that is asked, the accelerator, how many, and how many a node holds."""

    catalog: Catalog
    gpu: Accelerator
    gpus: int
    node: int

    @cached_property
    def rates(self) -> InterruptionRates:
        """How often offers are interrupted."""
        return InterruptionRates(self.catalog.rows("spot"))

    def choice(self, offer: Offer, name: str = "") -> RentChoice:
        """Return an offer as a choice to rent; work on all GPUs together is done again after an interruption."""
        rate = self.rates.of_offer(offer)
        memory_gb = self.gpu.memory_gib * GIB / GB * self.node
        stretch = held_ratio(rate, max(1.0, self.gpus / self.node), memory_gb)
        return from_offer(offer, name, stretch, rate.measured)


def from_offer(offer: Offer, name: str = "", stretch_ratio: float = 1.0, measured: bool = True) -> RentChoice:
    """Return an offer of the catalog as a choice to rent."""
    upfront = 0.0
    if offer.upfront_usd and offer.term_months:
        upfront = min(1.0, offer.upfront_usd / (offer.usd_per_hour * HOURS_PER_MONTH * offer.term_months))
    place = f" in {offer.region}" if offer.region else ""
    note = f"{offer.provider} {offer.instance_type}{place}, {OPTIONS[offer.option].label}, seen {offer.observed_on}"
    if OPTIONS[offer.option].interruptible:
        known = "as measured" if measured else "a prior"
        note += f"; hours × {stretch_ratio:.3g} for preemptions ({known}), and it may not be there when needed"
    return RentChoice(
        name or f"{offer.option}_{offer.provider}",
        offer.usd_per_gpu_hour,
        offer.billing,
        offer.term_months,
        upfront,
        stretch_ratio,
        source_id=offer.source_id,
        note=note,
        provider=offer.provider,
        option=offer.option,
        offer_id=offer.offer_id,
        observed_on=str(offer.observed_on),
        age_days=offer.age_days,
        offer=offer,
    )


def layered(offer: Offer | None, usd: float = 0.0, credits_usd: float = 0.0) -> Layered:
    """Return the layers behind an offer's price: list, contracted, and what of a bill in USD is left after credits."""
    if offer is None:
        return {}
    price = offer.usd_per_gpu_hour
    found = listed(price if offer.book != "user" else offer.list_usd_per_gpu_hour, credits_usd)
    made = Layered(price_book=offer.book, price_kind=offer.price_kind)
    made.update(cast(Layered, found))
    made["effective_usd_per_gpu_hour"] = price * (1 - credits_usd / usd) if usd > 0 else price
    if offer.price_kind == "contracted":
        made["contracted_usd_per_gpu_hour"] = price
    return made


def is_old(offer: Offer, sellers: Providers) -> bool:
    """Tell whether a price is older than its kind allows."""
    return counted_age_days(offer.age_days, offer.price_kind) > sellers.age_limit_days(offer)


def large_enough(offers: Sequence[Offer], gpus: int, node_gpus: int) -> list[Offer]:
    """Keep the offers of whole nodes where more than a node is needed; all of them where none is sold so."""
    if gpus < node_gpus:
        return list(offers)
    whole = [offer for offer in offers if offer.gpus >= min(8, node_gpus)]
    return whole or list(offers)


def rent_of_provider(renter: Renter, provider: str, region: str | None, option: str | None) -> RentChoice:
    """Return a provider's price: on demand unless an option is named, the cheapest of its regions and tiers."""
    catalog, gpu = renter.catalog, renter.gpu.id
    offers = catalog.offers(gpu=gpu, provider=provider, region=region, option=option)
    if option is None:
        offers = [offer for offer in offers if is_plain(offer.option)] or offers
    offers = large_enough(offers, renter.gpus, renter.node)
    if not offers:
        raise PriceMissingError(
            f"{provider} has no price of {gpu}{f' as {option}' if option else ''} in the catalog. "
            "Give one with --rent 2.35, or list what there is: gpucost prices --gpu " + gpu
        )
    cheapest = offers[0]
    choice = renter.choice(cheapest, "rent")
    if not np.isfinite(choice.stretch_ratio):
        raise NothingFitsError(
            f"{provider}'s {gpu} as {OPTIONS[cheapest.option].label} is interrupted so often that work on"
            f" {renter.gpus:,} of them would never end. Name another --option, or fewer --gpus."
        )
    return replace(choice, stale=is_old(cheapest, Providers(catalog.rows("providers"))))


def market_rent(catalog: Catalog, gpu: str) -> RentChoice:
    """Return the median over providers of each one's cheapest on-demand price, with the 10th and 90th percentile.

    A statistic of the market, not an offer: whether a provider can deliver a whole cluster is not looked at. Prices
    that are old for their kind are left out while five providers remain.
    """
    offers = [offer for offer in catalog.offers(gpu=gpu) if is_plain(offer.option) and offer.billing == "per_use"]
    sellers = Providers(catalog.rows("providers"))
    fresh = [offer for offer in offers if not is_old(offer, sellers)]
    used = fresh if len({offer.provider for offer in fresh}) >= FEWEST_PROVIDERS else offers
    cheapest: dict[str, Offer] = {}
    for offer in used:  # the cheapest come first
        cheapest.setdefault(offer.provider, offer)
    if not cheapest:
        raise PriceMissingError(f"no rental price of {gpu} in the catalog. Give one with --rent 2.35.")
    prices = np.array([offer.usd_per_gpu_hour for offer in cheapest.values()])
    low, middle, high = np.percentile(prices, (10, 50, 90))
    oldest = max(offer.age_days for offer in cheapest.values())
    note = (
        f"median of {len(cheapest)} providers' cheapest on-demand price, none older than {oldest} days; "
        "range: 10th to 90th percentile; name an offer with --provider"
    )
    return RentChoice(
        "rent",
        float(middle),
        low=float(low),
        high=float(high),
        status="derived",
        age_days=oldest,
        stale=len(used) > len(fresh),
        note=note,
    )


def by_use(renter: Renter, provider: str | None) -> RentChoice | None:
    """Return what an hour costs without a commitment: of the provider, else of the market; None where nobody says."""
    try:
        if provider:
            choice = rent_of_provider(renter, provider, None, None)
            if choice.billing == "per_use":
                return choice
        return market_rent(renter.catalog, renter.gpu.id)
    except PriceMissingError:
        return None


def other_choices(renter: Renter, provider: str | None) -> list[RentChoice]:
    """Return the cheapest offer for one year, for three years and as spot, of one provider or of all."""
    listed = renter.catalog.offers(gpu=renter.gpu.id, provider=provider)
    offers = large_enough(listed, renter.gpus, renter.node)
    found = []
    for name, wanted in (
        ("reserved_1y", lambda o: OPTIONS[o.option].family == "committed" and o.term_months == 12),
        ("reserved_3y", lambda o: OPTIONS[o.option].family == "committed" and o.term_months == 36),
        ("spot", lambda o: OPTIONS[o.option].interruptible),
    ):
        if (first := next(filter(wanted, offers), None)) is not None:
            found.append(renter.choice(first, name))
    return [choice for choice in found if np.isfinite(choice.stretch_ratio)]


def check_upfront(values: Mapping[str, Any], where: str) -> None:
    """Refuse a share that is paid at the start of each term where there is no term: nothing would ever bill it."""
    share = values["rent_upfront_fraction"]
    if share and not values["rent_term_months"]:
        raise UsageError(
            f"{where}: {100 * share:.3g}% is paid upfront, at the start of a term, and there is no term. Give one, such"
            " as 12 months (rent_term_months), or leave the upfront share out (rent_upfront_fraction)."
        )
