"""What so many accelerators cost to hire: the cheapest of the offers that are asked for, and those behind it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.catalog import Catalog
from gpucost.market.budget import budgets, chances, sure
from gpucost.market.facts import FILTERS, Market, market_of
from gpucost.market.filters import placed_in, usual
from gpucost.market.table import Ordering, standing
from gpucost.market.table import in_order as in_order_of_answers
from gpucost.types import Offer


class Hire(NamedTuple):
    """So many accelerators of one offer: what they cost together, whole machines paid."""

    offer: Offer
    gpus: int
    usd_per_hour: float  # of all of them
    budget_ratio: float  # what nine of ten such orders need ÷ that price

    @property
    def usd_per_gpu_hour(self) -> float:
        """The price of each accelerator that works."""
        return self.usd_per_hour / self.gpus

    def usd(self, hours: float) -> float:
        """Return what so many hours of all of them cost."""
        return self.usd_per_hour * hours


def cheapest(market: Market, gpu: str, gpus: int, allowed: NDArray[np.bool_] | None = None) -> Hire | None:
    """Return the offer of so many accelerators in one job that needs the lowest budget; None where nobody hosts it.

    It has no term and is of `allowed`, else of those on demand. A price counts only where its seller hosts a job of
    that size; whole units are paid.
    """
    allowed = usual(market) if allowed is None else allowed
    hosts = allowed & (market.supply.largest_gpus >= gpus) & (market.terms.term_months == 0)
    # keys are few, offers many: the chip is looked for in keys
    of_gpu = np.array([key.accelerator.id == gpu for key in market.supply.keys], bool)
    places = np.flatnonzero(hosts & of_gpu[market.supply.key])
    if not len(places):
        return None
    first = in_order(market, places, gpus)[0]
    return Hire(first.offer, gpus, first.usd_per_gpu_hour * first.paid_ratio * gpus, first.budget_ratio)


def cheapest_named(market: Market, catalog: Catalog, named: Mapping[str, Any]) -> Callable[[str, int], Hire | None]:
    """Return the question for the cheapest of the offers that are named, as `cheapest`.

    What may be taken away counts only where its option is named.
    """
    filters = catalog.offer_filter(**{name: named.get(name) for name in FILTERS})
    allowed = placed_in(market, catalog, {name: named.get(name) for name in FILTERS})
    if filters["option"] is None:
        allowed &= ~market.terms.interruptible
    # who names a seller, a place or an option takes what there is of it where nothing is on demand
    is_narrow = any(filters[name] is not None for name in ("provider", "region", "option"))
    on_demand = allowed & usual(market)

    def find(gpu: str, gpus: int) -> Hire | None:
        hire = cheapest(market, gpu, gpus, on_demand)
        return cheapest(market, gpu, gpus, allowed) if hire is None and is_narrow else hire

    return find


class Rentable(NamedTuple):
    """An offer for so many accelerators at its quote, and what one must have for it."""

    offer: Offer
    usd_per_gpu_hour: float
    low_usd_per_gpu_hour: float  # the ends of what it may have become by now, which hold 80 %
    high_usd_per_gpu_hour: float
    paid_ratio: float  # accelerators that are paid for ÷ those asked for: machines are sold whole
    budget_ratio: float  # what nine of ten such orders need ÷ the price of what is paid for
    chance: float  # that it can be had at about its quote
    refusal: str  # why its seller hosts no job of that size; empty where it does

    def price_text(self) -> str:
        """Say the price and its day."""
        return f"{self.usd_per_gpu_hour:.2f} (seen {self.offer.observed_on})"


def rentable(
    catalog: Catalog, gpu: str, gpus: int, accepts: Callable[[Offer], bool] = lambda offer: True, **filters: Any
) -> list[Rentable]:
    """Return what can be rented for so many accelerators, in the order of every question.

    `filters` are provider, region and option, as `Catalog.offers` takes them; `accepts` says which offers are meant.
    """
    market = market_of(catalog)
    offers, places = market.facts.offers, offered(catalog, gpu, **filters)
    accepted = np.array([place for place in places.tolist() if accepts(offers[place])], np.int64)
    return in_order(market, accepted, gpus)


def offered(catalog: Catalog, gpu: str, **filters: Any) -> NDArray[np.int64]:
    """Return the places of an accelerator's offers in the market, looked up once for each filter."""
    key = " ".join(("offered", gpu, *(repr(filters.get(name)) for name in ("provider", "region", "option"))))
    if key not in catalog.derived:
        ids = {offer.offer_id for offer in catalog.offers(gpu=gpu, **filters)}
        listed = market_of(catalog).facts.offers
        catalog.derived[key] = np.array([i for i, offer in enumerate(listed) if offer.offer_id in ids], np.int64)
    places: NDArray[np.int64] = catalog.derived[key]
    return places


def in_order(market: Market, places: NDArray[np.int64], gpus: int, most: int | None = None) -> list[Rentable]:
    """Return offers for so many accelerators by the budget that each needs: of the machines that must be taken.

    Offers whose seller hosts no job of that size stand behind the others, and say so. `most` keeps the first ones.
    """
    supply, terms = market.supply, market.terms
    units = np.ceil(gpus / supply.unit_gpus[places]) * supply.unit_gpus[places]
    ordered_gpus = np.maximum(units, supply.minimum_gpus[places]).astype(np.int64)
    hosted = (supply.largest_gpus[places] >= gpus) & ~supply.is_part[places]
    paid = ordered_gpus / gpus
    # rounded, so that equal prices stay equal through the division and the columns after it decide
    usd, chance = np.round(terms.usd_per_gpu_hour[places] * paid, 6), chances(terms, places, ordered_gpus)
    parts = budgets(
        usd, usd * terms.price_high_ratio[places], chance, hosted, terms.fresh[places], supply.seller[places]
    )
    budget = parts.budget
    order = in_order_of_answers(
        Ordering(
            standing(False, left_out=~hosted),
            goal=budget,
            unsure=~sure(terms, places, chance),
            cost=parts.expected,
            time=np.zeros(len(places)),
            gpus=-supply.unit_gpus[places],  # of equal prices the larger machine
            age_days=np.zeros(len(places)),
            id=supply.id_place[places],
        )
    )[:most]
    rows = []
    for at in order.tolist():
        place = int(places[at])
        price = float(terms.usd_per_gpu_hour[place])
        rows.append(
            Rentable(
                offer=supply.offers[place],
                usd_per_gpu_hour=price,
                low_usd_per_gpu_hour=price * float(terms.price_low_ratio[place]),
                high_usd_per_gpu_hour=price * float(terms.price_high_ratio[place]),
                paid_ratio=float(paid[at]),
                budget_ratio=float(budget[at] / usd[at]),
                chance=float(chance[at]),
                refusal="" if hosted[at] else supply.cap_reasons[place],
            )
        )
    return rows
