"""The money side of offers as columns: price and age, terms, interruptions, services; who sells; what credits pay."""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from math import ceil
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from gpucost.answers.common import Seen, Seller, listed
from gpucost.catalog.discounts import covers
from gpucost.market.budget import CERTAIN, FRESH_DAYS, NOTICES, USUAL_GPUS, Quote, kind_of
from gpucost.market.interruptions import AssumptionBook, InterruptionRates, typical_wait_hours
from gpucost.market.supply import WORLD, Providers, Supply, company, grid_items, grid_of
from gpucost.money import commitments
from gpucost.money.bill import payment_split
from gpucost.money.energy import server_power_per_gpu_w
from gpucost.options import OPTIONS, counted_age_days, is_plain
from gpucost.types import Offer
from gpucost.units import DAYS_PER_MONTH, GB, GIB

# --- The money side of offers as columns: price and its age, terms, interruptions, services, power and grid.

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

Row = Mapping[str, Any]


class Terms(NamedTuple):
    """Money columns, one element per offer of a supply."""

    usd_per_gpu_hour: Floats  # as quoted
    price_low_ratio: Floats  # what it may have become by now ÷ quote
    price_high_ratio: Floats
    fresh: Flags  # on demand, and seen by somebody lately
    quote_chance: Floats  # that a usual order can be had at about its quote
    known_gpus: Floats  # accelerators that the seller is known to have at once
    notice: Floats  # how they are asked for, by its place in NOTICES
    size_shares: Floats  # a row for each offer: the chance that its kind of seller takes larger orders, by size
    age_days: Floats  # 0 for a contract, which holds until it ends
    age_limit_days: Floats
    stale: Flags
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
    quotes: Sequence[Quote] = (),
    size_shares: Mapping[str, Sequence[float]] | None = None,
) -> Terms:
    """Turn the offers of a supply into money columns."""
    offers = supply.offers

    # prices as quoted, with what may have become of them, and the terms of their contracts
    age = _column([counted_age_days(offer.age_days, offer.price_kind) for offer in offers])
    limit = _column([providers.age_limit_days(offer) for offer in offers])
    known = quotes or [CERTAIN] * len(offers)
    columns: dict[str, Any] = {
        "usd_per_gpu_hour": _column([offer.usd_per_gpu_hour for offer in offers]),
        "price_low_ratio": _column([quote.low_ratio for quote in known]),
        "price_high_ratio": _column([quote.high_ratio for quote in known]),
        "quote_chance": _column([quote.chance for quote in known]),
        "known_gpus": _column([quote.known_gpus for quote in known]),
        "notice": _column([quote.notice for quote in known]),
        "fresh": np.array([is_plain(offer.option) for offer in offers], bool) & (age <= FRESH_DAYS),
        "age_days": age,
        "age_limit_days": limit,
        "stale": age > limit,
        **_contracts(offers, providers),
    }

    # the row of each offer's kind of seller; of a kind of which nothing is known any size is taken
    shares = size_shares or {}
    width = max((len(row) for row in shares.values()), default=1)
    share_rows = [shares.get(kind_of(providers.kind(offer.provider)), [1.0] * width) for offer in offers]
    columns["size_shares"] = np.array(share_rows, np.float64).reshape(len(offers), width)

    # the power of a node, and the grid that it hangs on
    hosts = [supply.keys[key] for key in supply.key]
    tdp = _column([host.accelerator.tdp_w for host in hosts])
    # of an H100 server, for every node of which no power is on record
    ratio = np.full(len(offers), book.typical("server_to_chip_power_ratio.h100"))
    items, typical = grid_items(regions), cache(book.typical)

    @cache
    def grid(provider: str, region: str) -> str:
        item = grid_of(items, provider, region)
        return item if book.has(item) else WORLD

    grids = tuple(grid(offer.provider, offer.region) for offer in offers)
    large = [providers.kind(offer.provider) == "hyperscaler" for offer in offers]
    columns |= {
        "rated_power_w": server_power_per_gpu_w(tdp, ratio, supply.node_w_per_gpu),
        "power_fraction": np.full(len(offers), book.typical("tdp_fraction_gpu_server_training")),
        "pue_ratio": _column(
            [typical("pue.hyperscaler" if is_large else "pue.neocloud_or_colo") for is_large in large]
        ),
        "grid_kgco2e_per_kwh": _column([typical(name) for name in grids]),
        "grids": grids,
    }

    # how often each is interrupted
    rates, wait = InterruptionRates(spot_rows), typical_wait_hours(spot_rows)
    offer_rates = [rates.of_offer(offer) for offer in offers]
    three = np.array([rate.three for rate in offer_rates], np.float64).reshape(len(offer_rates), 3)
    interruptible = np.array([OPTIONS[offer.option].interruptible for offer in offers], bool)
    columns |= {
        "interruptible": interruptible,
        "measured": np.array([rate.measured for rate in offer_rates], bool),
        "preemptions_per_node_hour_low": three[:, 0],
        "preemptions_per_node_hour": three[:, 1],
        "preemptions_per_node_hour_high": three[:, 2],
        "wait_hours": np.where(interruptible, wait, 0.0),
    }

    # storage and egress by provider; one that states no price gets the market's typical one
    shared = _by_provider(services, "shared_file_system", "usd_per_gb_month")
    # object storage speaks where a provider has it, a shared file system else
    storage = {**shared, **_by_provider(services, "object_storage", "usd_per_gb_month")}
    egress = _by_provider(services, "egress_internet", "usd_per_gb")
    item, egress_item = "storage_rental_parallel_fs", "bandwidth_egress_cloud"
    fallback = (book.typical(item) * GB / GIB, book.source(item))  # the item is per GiB
    elsewhere = (book.typical(egress_item), book.source(egress_item))
    companies = [company(offer.provider) for offer in offers]
    prices = [storage.get(name, fallback) for name in companies]
    out = [egress.get(name, elsewhere) for name in companies]
    columns |= {
        "storage_usd_per_gb_month": _column([price for price, _ in prices]),
        "storage_stated": np.array([name in storage for name in companies], bool),
        "egress_stated": np.array([name in egress for name in companies], bool),
        "storage_source_ids": tuple(source for _, source in prices),
        "egress_usd_per_gb": _column([price for price, _ in out]),
        "egress_source_ids": tuple(source for _, source in out),
    }
    return Terms(**columns)


def _column(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _contracts(offers: Sequence[Offer], providers: Providers) -> dict[str, Any]:
    rules = [OPTIONS[offer.option] for offer in offers]

    def stated(values: Sequence[float | None], rule_values: Sequence[float]) -> Floats:
        return _column([rule if value is None else value for value, rule in zip(values, rule_values, strict=True)])

    price = _column([offer.usd_per_hour for offer in offers])
    term = _column([offer.term_months for offer in offers])
    # what is paid at the start and what by the hour, whichever of the two a source states
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


def seen(offer: Offer, terms: Terms, number: int, credits_usd: float) -> Seen:
    """Return how old a price is and how far to trust it."""
    return {
        "price_observed_on": offer.observed_on.isoformat(),
        "sale": offer.sale,
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
    machine, count = best["instance_type"], best["instances"]
    if not machine or machine.partition("x ")[0].isdigit():  # a listing that names its accelerators alone
        return chips if count == 1 else f"{chips} ({count:,} × {machine})"
    return f"{count:,} × {machine} ({chips})"


def old_price(offer: Offer, terms: Terms, number: int) -> list[str]:
    """Say that a price is old, where it is."""
    limit = f"limit {terms.age_limit_days[number]:g}"
    return [f"price is {offer.age_days} days old ({limit}): wider range"] if terms.stale[number] else []


LISTED_DAYS = FRESH_DAYS


def unlisted(age_days: int | None, book: str) -> str:
    """Say behind an answer that nobody listed its first offer lately, where it is so; one's own price needs no list.

    >>> unlisted(66, "shipped"), unlisted(66, "user"), unlisted(3, "shipped")
    (' We have not seen this offer listed in the last 60 days: check that it is still sold.', '', '')
    """
    if not is_unlisted(age_days, book):
        return ""
    return f" We have not seen this offer listed in the last {LISTED_DAYS} days: check that it is still sold."


def is_unlisted(age_days: int | None, book: str) -> bool:
    """Tell whether nobody listed an offer lately; one's own price needs no list."""
    return age_days is not None and age_days > LISTED_DAYS and book != "user"


def large_order(offer: Offer, terms: Terms, number: int, gpus: int) -> list[str]:
    """Say that nobody is known to have had so many of a seller at once, or how so many are asked for."""
    known, notice = terms.known_gpus[number], NOTICES[int(terms.notice[number])]
    if gpus <= known:
        remarks = {
            "sales": f"{offer.provider} sells {gpus:,} × {offer.gpu} at once by its sales team: ask before you plan.",
            "weeks": f"{offer.provider} takes orders of {gpus:,} × {offer.gpu} weeks ahead: book before you plan.",
        }
        return [remarks[notice]] if gpus > USUAL_GPUS and notice in remarks else []
    return [f"No order of {gpus:,} × {offer.gpu} at {offer.provider} is known: ask for them before you plan on them."]


def doubted_price(offer: Offer) -> list[str]:
    """Say that little is known of a price, where it is so."""
    return ["low confidence in the price: see its source"] if offer.confidence == "low" else []


# --- What the credits of one's book pay of bills, in the order that `gpucost.money.commitments` has for all agreements.

_FIELDS = "provider", "gpu", "region", "option", "instance_type", "term_months"


def credited(credits: Sequence[Mapping[str, Any]], offer: Offer, usd: float, months: float, on: date) -> float:
    """Return how much of a bill, spread evenly over so many months from a day, is paid by credits."""
    # by days, for credits begin and expire within months
    days = max(ceil(months * DAYS_PER_MONTH), 1)
    return float(_paid(credits, [offer], np.full((1, days), usd / days), on)[0]) if credits else 0.0


def credited_by_month(
    credits: Sequence[Mapping[str, Any]], offers: Sequence[Offer], usd: NDArray[np.float64], on: date
) -> list[float]:
    """Return how much of the bills of several offers (rows), given by month from a day, is paid by the same credits."""
    days = round(usd.shape[1] * DAYS_PER_MONTH)
    month = (np.arange(days) / DAYS_PER_MONTH).astype(int)
    # a month's bill falls evenly on its days
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
    for credit in sorted(credits, key=lambda row: str(row["valid_until"] or "9")):  # one without an end comes last
        start, end = (  # days of a book, or their texts of a saved answer
            row if isinstance(row, date) or row is None else date.fromisoformat(row)
            for row in (credit["valid_from"], credit["valid_until"])
        )
        if (start and start > on) or (end and end < on):
            continue
        days = np.arange(owed.shape[1]) <= (np.inf if end is None else (end - on).days)
        covered = [
            covers(credit, price) and offer.price_kind != "contracted"
            for offer, price in zip(offers, prices, strict=True)
        ]
        cap = credit["usd_per_month"]
        pays.append((credit["usd"], np.inf if cap is None else cap, np.outer(covered, days).astype(np.float64)))
    return np.asarray(commitments.credited(owed, month, pays).sum(axis=1), dtype=np.float64)


def said(usd: float, total: float) -> str:
    """Say what credits pay."""
    return f"your price book's credits pay {usd:,.2f} USD of it; {total - usd:,.2f} USD remain"
