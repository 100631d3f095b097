"""The money side of offers as columns: price and age, terms, interruptions, services; who sells; what credits pay."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from math import ceil, sqrt
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from gpucost.answers.common import Seen, Seller, listed
from gpucost.catalog.discounts import covers
from gpucost.gate import beside
from gpucost.market.interruptions import AssumptionBook, InterruptionRates, typical_wait_hours
from gpucost.market.supply import WORLD, Providers, Supply, company, grid_items, grid_of
from gpucost.money import commitments
from gpucost.money.bill import payment_split
from gpucost.money.energy import server_power_per_gpu_w
from gpucost.options import MOVE_DAYS, OPTIONS, counted_age_days, is_plain
from gpucost.types import Offer
from gpucost.units import DAYS_PER_MONTH, DAYS_PER_YEAR, GB, GIB

# --- The money side of offers as columns: price and its age, terms, interruptions, services, power and grid.

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

Row = Mapping[str, Any]
# kind of seller -> accelerators that it sells at once without a talk: assumptions, each with its reason
ORDER_GPUS = {seller: int(gpus) for seller, gpus, *_ in beside(__file__, "order_sizes")[1:]}
RACK = "rack"  # what is started from a scale-up domain of several instances, whoever sells it
HELD_DAYS = 30  # a spot price moves while capacity is held, too
_OFTEN = 0.1  # the share of days beyond the end of an 80 % range


class Terms(NamedTuple):
    """Money columns, one element per offer of a supply."""

    usd_per_gpu_hour: Floats  # expected today
    quoted_usd_per_gpu_hour: Floats  # when it was seen
    peers_ratio: Floats  # the quote over the median of its peers; 1 where too few are known
    price_low_ratio: Floats  # of the expected price
    price_high_ratio: Floats
    age_days: Floats  # 0 for a contract, which holds until it ends
    age_limit_days: Floats
    stale: Flags
    order_gpus: Floats  # accelerators that such a seller sells at once without a talk: an assumption
    interruptible: Flags
    measured: Flags  # the preemption rate was measured for this accelerator, region and size
    preemptions_per_node_hour: Floats
    preemptions_per_node_hour_low: Floats
    preemptions_per_node_hour_high: Floats
    wait_hours: Floats
    term_months: Floats
    take_or_pay: Floats
    prepaid: Floats
    minimum_hours: Floats
    billing_increment_hours: Floats
    longest_hours: Floats  # within which a run must end; infinite where it may be interrupted anyway
    upfront_usd: Floats
    recurring_usd_per_hour: Floats
    storage_usd_per_gb_month: Floats
    egress_usd_per_gb: Floats
    rated_power_w: Floats
    power_fraction: Floats
    pue_ratio: Floats
    grid_kgco2e_per_kwh: Floats
    storage_stated: Flags  # the provider states a price; else it is the market's typical one
    egress_stated: Flags
    storage_source_ids: tuple[str, ...]
    egress_source_ids: tuple[str, ...]
    grids: tuple[str, ...]


def build_terms(
    supply: Supply,
    book: AssumptionBook,
    providers: Providers,
    *,
    services: Sequence[Row],
    spot_rows: Sequence[Row],
    regions: Sequence[Row],
    moves: Sequence[Row] = (),
    twins: Sequence[Offer] = (),
    expected: Sequence[Sequence[float]] = (),
) -> Terms:
    """Turn the offers of a supply into money columns."""
    offers = supply.offers
    columns = {**_prices(offers, book, providers, moves, twins), **_contracts(offers, providers)}
    columns["order_gpus"] = _order_sizes(supply, providers)
    columns |= _expected(columns, expected)
    columns |= _power(supply, book, providers, regions)
    columns |= _interruptions(offers, spot_rows)
    columns |= _services(offers, services, book)
    return Terms(**columns)


def _column(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _prices(
    offers: Sequence[Offer], book: AssumptionBook, providers: Providers, moves: Sequence[Row], twins: Sequence[Offer]
) -> dict[str, Any]:
    """Widen the range of old prices by the yearly drift of rental prices over the age beyond the limit.

    A spot price moves from day to day: its range is that of the moves on record over its age.
    """
    age = _column([counted_age_days(offer.age_days, offer.price_kind) for offer in offers])
    limit = _column([providers.age_limit_days(offer) for offer in offers])
    rise, _, fall = book.three("rental_price_decline")  # a negative decline is a rise
    years = np.maximum(age - limit, 0.0) / DAYS_PER_YEAR
    low, high = (1 - fall) ** years, (1 - rise) ** years
    for number, ends in _spot_ends(offers, moves, twins):
        low[number], high[number] = ends
    return {
        "quoted_usd_per_gpu_hour": _column([offer.usd_per_gpu_hour for offer in offers]),
        "usd_per_gpu_hour": _column([offer.usd_per_gpu_hour for offer in offers]),
        "peers_ratio": np.ones(len(offers)),
        "price_low_ratio": low,
        "price_high_ratio": high,
        "age_days": age,
        "age_limit_days": limit,
        "stale": age > limit,
    }


def _order_sizes(supply: Supply, providers: Providers) -> Floats:
    """Return how many accelerators each offer is assumed to be sold of at once."""
    usual = _column([ORDER_GPUS[providers.kind(offer.provider)] for offer in supply.offers])
    racks = np.array([key.system.scaleup_gpus > key.system.gpus for key in supply.keys], bool)
    is_rack = racks[supply.key] if len(racks) else np.zeros(len(usual), bool)
    return np.where(is_rack, np.minimum(usual, ORDER_GPUS[RACK]), usual)


def _expected(columns: Mapping[str, Any], expected: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return price and range as expected today, where expectations are known.

    The range of an expected price is that of the moves behind it. Contracts and commitments, of which no moves are
    known, keep theirs.
    """
    if not len(expected):
        return {}
    low, ratio, high, peers = np.array(expected, np.float64).reshape(-1, 4).T
    own_low, own_high = columns["price_low_ratio"], columns["price_high_ratio"]
    moves = (low < 1) | (high > 1) | (ratio != 1)
    return {
        "usd_per_gpu_hour": columns["quoted_usd_per_gpu_hour"] * ratio,
        "peers_ratio": peers,
        "price_low_ratio": np.where(moves, low / ratio, own_low),
        "price_high_ratio": np.where(moves, high / ratio, own_high),
    }


def place_of(offer: Offer) -> tuple[str, str, str]:
    """Return what a spot price shares with its price on demand: the seller, the instance and the region."""
    return offer.provider, offer.instance_type, offer.region


def on_demand(offers: Iterable[Offer]) -> dict[tuple[str, str, str], Offer]:
    """Return the offer on demand of every place: of several the first, which is the cheapest."""
    offers_by_place: dict[tuple[str, str, str], Offer] = {}
    for offer in offers:
        if is_plain(offer.option):
            offers_by_place.setdefault(place_of(offer), offer)
    return offers_by_place


def _spot_ends(
    offers: Sequence[Offer], moves: Sequence[Row], twins: Sequence[Offer]
) -> Iterator[tuple[int, tuple[float, float]]]:
    """Yield the range of each spot price: 80 % of the moves on record, which grow with the root of time.

        low, high = move_low, move_high ** sqrt(max(age, HELD_DAYS) / MOVE_DAYS)

    The moves are those of the seller, accelerator and region, else of a wider group. Where more than a tenth of days
    stood above half of on demand, the high end reaches half of on demand (`twins`: offers on demand beside the others).
    """
    if not moves:
        return
    moves_by_group = {(row["provider"], row["gpu"], row["region"]): row for row in moves}
    plain = on_demand((*twins, *offers))
    for number, offer in enumerate(offers):
        if OPTIONS[offer.option].family == "preemptible" and offer.price_kind != "contracted":
            groups = (
                (offer.provider, offer.gpu, offer.region),
                (offer.provider, offer.gpu, None),
                (offer.provider, None, None),
                (None, None, None),
            )
            if (row := next((moves_by_group[group] for group in groups if group in moves_by_group), None)) is None:
                continue
            root = sqrt(max(offer.age_days, HELD_DAYS) / MOVE_DAYS)
            high = row["high_ratio"] ** root
            dear = plain.get(place_of(offer))
            if dear and (row["above_fraction"] or 0) > _OFTEN:
                high = max(high, dear.usd_per_gpu_hour / 2 / offer.usd_per_gpu_hour)
            yield number, (row["low_ratio"] ** root, high)


def _contracts(offers: Sequence[Offer], providers: Providers) -> dict[str, Any]:
    rules = [OPTIONS[offer.option] for offer in offers]

    def stated(values: Sequence[float | None], rule_values: Sequence[float]) -> Floats:
        return _column([rule if value is None else value for value, rule in zip(values, rule_values, strict=True)])

    price = _column([offer.usd_per_hour for offer in offers])
    term = _column([offer.term_months for offer in offers])
    upfront, recurring = payment_split(
        price,
        term,
        _column([offer.upfront_usd for offer in offers]),
        _column([offer.recurring_usd_per_hour for offer in offers]),
        np.array([offer.payment == "all_upfront" for offer in offers], bool),
        np.array([offer.payment == "partial_upfront" for offer in offers], bool),
    )
    return {
        "term_months": term,
        "take_or_pay": _column([float(offer.billing == "take_or_pay") for offer in offers]),
        "prepaid": _column([float(rule.prepaid) for rule in rules]),
        "minimum_hours": stated([offer.minimum_hours for offer in offers], [rule.minimum_hours for rule in rules]),
        "billing_increment_hours": stated(
            [offer.billing_increment_hours for offer in offers],
            [
                rule.increment_hours or providers.increment_hours(offer.provider)
                for offer, rule in zip(offers, rules, strict=True)
            ],
        ),
        "longest_hours": _column([np.inf if rule.interruptible else rule.longest_hours for rule in rules]),
        "upfront_usd": upfront,
        "recurring_usd_per_hour": recurring,
    }


def _power(supply: Supply, book: AssumptionBook, providers: Providers, regions: Sequence[Row]) -> dict[str, Any]:
    offers = supply.offers
    hosts = [supply.keys[key] for key in supply.key]
    tdp = _column([host.accelerator.tdp_w for host in hosts])
    ratio = np.full(len(offers), book.typical("server_to_chip_power_ratio.h100"))
    items, typical = grid_items(regions), cache(book.typical)

    @cache
    def grid(provider: str, region: str) -> str:
        item = grid_of(items, provider, region)
        return item if book.has(item) else WORLD

    grids = tuple(grid(offer.provider, offer.region) for offer in offers)
    large = [providers.kind(offer.provider) == "hyperscaler" for offer in offers]
    return {
        "rated_power_w": server_power_per_gpu_w(tdp, ratio, supply.node_w_per_gpu),
        "power_fraction": np.full(len(offers), book.typical("tdp_fraction_gpu_server_training")),
        "pue_ratio": _column(
            [typical("pue.hyperscaler" if is_large else "pue.neocloud_or_colo") for is_large in large]
        ),
        "grid_kgco2e_per_kwh": _column([typical(grid) for grid in grids]),
        "grids": grids,
    }


def _interruptions(offers: Sequence[Offer], rows: Sequence[Row]) -> dict[str, Any]:
    """Return how often each offer is interrupted."""
    rates, wait = InterruptionRates(rows), typical_wait_hours(rows)
    offer_rates = [rates.of_offer(offer) for offer in offers]
    three = np.array([rate.three for rate in offer_rates], np.float64).reshape(len(offer_rates), 3)
    interruptible = np.array([OPTIONS[offer.option].interruptible for offer in offers], bool)
    return {
        "interruptible": interruptible,
        "measured": np.array([rate.measured for rate in offer_rates], bool),
        "preemptions_per_node_hour_low": three[:, 0],
        "preemptions_per_node_hour": three[:, 1],
        "preemptions_per_node_hour_high": three[:, 2],
        "wait_hours": np.where(interruptible, wait, 0.0),
    }


def _services(offers: Sequence[Offer], rows: Sequence[Row], book: AssumptionBook) -> dict[str, Any]:
    """Return storage and egress prices by provider; a provider that states none gets the market's typical price."""
    shared = _by_provider(rows, "shared_file_system", "usd_per_gb_month")
    storage = {**shared, **_by_provider(rows, "object_storage", "usd_per_gb_month")}
    egress = _by_provider(rows, "egress_internet", "usd_per_gb")
    item, egress_item = "storage_rental_parallel_fs", "bandwidth_egress_cloud"
    fallback = (book.typical(item) * GB / GIB, book.source(item))  # the item is per GiB
    elsewhere = (book.typical(egress_item), book.source(egress_item))
    companies = [company(offer.provider) for offer in offers]
    prices = [storage.get(name, fallback) for name in companies]
    out = [egress.get(name, elsewhere) for name in companies]
    return {
        "storage_usd_per_gb_month": _column([price for price, _ in prices]),
        "storage_stated": np.array([name in storage for name in companies], bool),
        "egress_stated": np.array([name in egress for name in companies], bool),
        "storage_source_ids": tuple(source for _, source in prices),
        "egress_usd_per_gb": _column([price for price, _ in out]),
        "egress_source_ids": tuple(source for _, source in out),
    }


def _by_provider(rows: Sequence[Row], service: str, price: str) -> dict[str, tuple[float, str]]:
    """Return the typical price of a service per provider, with its source."""
    return {
        str(row["provider"]): (float(row[price]), str(row["source_id"]))
        for row in rows
        if row["service"] == service and row["typical"] and row[price] is not None
    }


# --- How an answer tells of an offer: who sells it, how old its price is, what a reader must know of both.

ASSUMED_FORM = "form factor assumed: the source does not state it"


def seller(offer: Offer) -> Seller:
    """Return who sells an offer, where, on which terms."""
    fields = {name: getattr(offer, name) for name in Seller.__annotations__}
    return cast(Seller, fields | {"region": offer.region or None, "tier": offer.tier or None})


def seen(offer: Offer, terms: Terms, number: int, credits_usd: float, lacks: list[str]) -> Seen:
    """Return how old a price is and how far to trust it; `lacks` is what stands between it and an order."""
    return {
        "price_observed_on": offer.observed_on.isoformat(),
        "quoted_usd_per_gpu_hour": offer.usd_per_gpu_hour,
        "sale": offer.sale,
        "missing": lacks,
        "age_days": offer.age_days,
        "price_stale": bool(terms.stale[number]),
        "price_book": offer.book,
        "price_kind": offer.price_kind,
        "price_confidence": offer.confidence,
        **listed(offer.list_usd_per_gpu_hour, credits_usd),
    }


def cluster(best: Mapping[str, Any]) -> str:
    """Write what is ordered: instances, and the accelerators in them.

    >>> cluster({"instances": 2, "instance_type": "p5.48xlarge", "gpus": 16, "gpu": "h100-sxm5-80gb"})
    '2 × p5.48xlarge (16 × h100-sxm5-80gb)'
    >>> cluster({"instances": 1, "instance_type": "8x H100 SXM", "gpus": 8, "gpu": "h100-sxm5-80gb"})
    '8 × h100-sxm5-80gb'
    """
    chips = f"{best['gpus']:,} × {best['gpu']}"
    named, count = best["instance_type"], best["instances"]
    if not named or named.partition("x ")[0].isdigit():  # a listing that names its accelerators alone
        return chips if count == 1 else f"{chips} ({count:,} × {named})"
    return f"{count:,} × {named} ({chips})"


def quoted(best: Mapping[str, Any]) -> str:
    """Say what was quoted and when; nothing more where it is expected to hold."""
    seen_on, price = best["price_observed_on"], best["quoted_usd_per_gpu_hour"]
    same = f"{price:.2f}" == f"{best['usd_per_gpu_hour']:.2f}"
    return f" (seen {seen_on})" if same else f" expected today (quoted {price:.2f} on {seen_on})"


def old_price(offer: Offer, terms: Terms, number: int) -> list[str]:
    """Say that a price is old, where it is."""
    limit = f"limit {terms.age_limit_days[number]:g}"
    return [f"price is {offer.age_days} days old ({limit}): wider range"] if terms.stale[number] else []


LISTED_DAYS = 60  # within which somebody should have listed what one is about to order


def unlisted(age_days: int | None, book: str) -> str:
    """Say behind an answer that nobody listed its first offer lately, where it is so; one's own price needs no list.

    >>> unlisted(66, "shipped"), unlisted(66, "user"), unlisted(3, "shipped")
    (' No list had this offer within 60 days: look it up before you order.', '', '')
    """
    late = age_days is not None and age_days > LISTED_DAYS and book != "user"
    return f" No list had this offer within {LISTED_DAYS} days: look it up before you order." if late else ""


def doubted_price(offer: Offer) -> list[str]:
    """Say that little is known of a price, where it is so."""
    return ["low confidence in the price: see its source"] if offer.confidence == "low" else []


# --- What the credits of one's book pay of bills, in the order that `gpucost.money.commitments` has for all agreements.

_FIELDS = "provider", "gpu", "region", "option", "instance_type", "term_months"


def credited(credits: Sequence[Mapping[str, Any]], offer: Offer, usd: float, months: float, on: date) -> float:
    """Return how much of a bill, spread evenly over so many months from a day, is paid by credits."""
    days = max(ceil(months * DAYS_PER_MONTH), 1)
    return float(_paid(credits, [offer], np.full((1, days), usd / days), on)[0]) if credits else 0.0


def credited_by_month(
    credits: Sequence[Mapping[str, Any]], offers: Sequence[Offer], usd: NDArray[np.float64], on: date
) -> list[float]:
    """Return how much of the bills of several offers (rows), given by month from a day, is paid by the same credits."""
    days = round(usd.shape[1] * DAYS_PER_MONTH)
    month = (np.arange(days) / DAYS_PER_MONTH).astype(int)
    owed = (usd / np.bincount(month))[:, month]
    return [round(paid, 2) for paid in _paid(credits, offers, owed, on).tolist()]


def _paid(
    credits: Sequence[Mapping[str, Any]], offers: Sequence[Offer], owed: NDArray[np.float64], on: date
) -> NDArray[np.float64]:
    """Return what is paid of the bills by day of each offer; a contract's price replaces credits too.

    A credit pays of what falls on the days until it expires, if it holds on the first, and up to its cap a month.
    """
    prices = [{name: getattr(offer, name) for name in _FIELDS} for offer in offers]
    month, pays = (np.arange(owed.shape[1]) / DAYS_PER_MONTH).astype(int), []
    for credit in sorted(credits, key=lambda row: str(row["valid_until"] or "9")):
        start, end = (
            row if isinstance(row, date) or row is None else date.fromisoformat(row)
            for row in (credit["valid_from"], credit["valid_until"])
        )
        if (start and start > on) or (end and end < on):
            continue
        days = np.arange(owed.shape[1]) <= (np.inf if end is None else (end - on).days)
        meant = [
            covers(credit, price) and offer.price_kind != "contracted"
            for offer, price in zip(offers, prices, strict=True)
        ]
        cap = credit["usd_per_month"]
        pays.append((credit["usd"], np.inf if cap is None else cap, np.outer(meant, days).astype(np.float64)))
    return np.asarray(commitments.credited(owed, month, pays).sum(axis=1), dtype=np.float64)


def said(usd: float, total: float) -> str:
    """Say what credits pay."""
    return f"your price book's credits pay {usd:,.2f} USD of it; {total - usd:,.2f} USD remain"
