"""The budget of an order: what one must have so that nine of ten such orders end below it.

With some chance an offer can still be had at its quote; then it costs what its range says. Where it cannot, the money
must be there for what one would order instead: the cheapest fresh on-demand offer that answers the same question.

    chance         that a seller of that kind still sells what was quoted so many days ago (`quote_fates`), × that
                   capacity which may be reclaimed is there when it is asked for (probes of spot capacity), × that a
                   seller of whom no such order is known takes one of that size (`capacity`)
    budget         the 90th percentile of: with the chance the cost and its range, else the fallback's high end
    fallback       the offer with the lowest high end of those on demand that somebody saw within FRESH_DAYS and whose
                   chance is LIKELY or more; without any, that up to which one of the sellers still has it with LIKELY

A price of one's own, and a contract, are certain. So a fresh list price needs what its range says, and an old one of
the spot market sinks to the fallback by itself, however low it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.market.interruptions import median
from gpucost.options import OPTIONS, counted_age_days, quote_family
from gpucost.types import Accelerator, Offer

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]
Row = Mapping[str, Any]

_BUDGET_SHARE = 0.9  # of orders that end below their budget
LIKELY = 0.8  # the chance from which on one counts on an offer
FRESH_DAYS = 60  # within which somebody should have listed what one is about to order
USUAL_GPUS = 64  # up to so many in one order whoever sells machines with a network is taken to have them
LARGEST_SPOT_GPUS = 512  # beyond, the rates of a few nodes say nothing of how often a job is interrupted
_HOLDING_DAYS = 30  # what moves by the day moves while it is held, too
_Z90 = 1.2816  # standard deviations from the middle of a normal distribution to its 90th percentile
# how many standard deviations the end of an 80 % range lies out, and the ends beyond it: of a normal distribution
_SHARES = (0.9, 0.92, 0.94, 0.96, 0.98, 0.99, 0.995, 0.999)
_DEVIATIONS = (_Z90, 1.4051, 1.5548, 1.7507, 2.0537, 2.3263, 2.5758, 3.0902)
_SIZES = tuple(USUAL_GPUS * 2**step for step in range(1, 12))  # orders beyond the usual one, by doublings


class Quote(NamedTuple):
    """What is known of an offer beside its price: the ends of what it may cost by now, and whether one can have it."""

    low_ratio: float = 1.0  # price by now ÷ quote, 10th percentile of what is still sold
    high_ratio: float = 1.0  # 90th percentile
    chance: float = 1.0  # that a usual order can be had at about its quote
    known_gpus: float = np.inf  # accelerators that its seller is known to have sold or run at once
    most_gpus: float = np.inf  # beyond which it sells none by its own words
    notice: float = 0.0  # how so many are asked for, by its place in NOTICES


CERTAIN = Quote()
NOTICES = ("", "minutes", "sales", "weeks")


def quotes_of(
    offers: Sequence[Offer],
    kinds: Sequence[str],
    fates: Sequence[Row],
    probes: Sequence[Row],
    capacity: Sequence[Row],
    accelerators: Mapping[str, Accelerator],
) -> list[Quote]:
    """Return what is known of each offer; `kinds` are those of its seller."""
    # By kind and family what becomes of a quote with the days. An older one is never likelier to be had: of a span
    # whose chance is above that of one before it, both take their mean, weighed by the root of their pairs.
    groups: dict[_Group, list[Row]] = {}
    for row in fates:
        groups.setdefault((row["seller_kind"], row["option_family"]), []).append(row)
    curves: dict[_Group, _Curve] = {}
    for group, spans in groups.items():
        spans.sort(key=lambda span: span["from_days"])
        # each span stands at its middle; at day 0 the quote is the price, and certain
        middles = [0.0, *((span["from_days"] + span["to_days"]) / 2 for span in spans)]
        ratios = [
            [0.0, *(0.0 if span[name] is None else float(np.log(span[name])) for span in spans)]
            for name in ("p10_ratio", "p90_ratio")
        ]
        chances = falling([span["still_sold_fraction"] for span in spans], [span["pairs"] ** 0.5 for span in spans])
        curves[group] = np.sqrt(middles), np.array([*ratios, [1.0, *chances]])

    there = probed(probes)
    sizes: _Sizes = {}
    for row in capacity:
        chips = frozenset((row["gpu"] or "").split())
        notice_text = f"{row.get('notice') or ''} {row['basis']}"
        notice_place = next((place for place, word in enumerate(NOTICES) if word and word in notice_text), 0)
        entry = chips, row["option"] or "", float(row["largest_gpus"]), row["basis"], float(notice_place)
        sizes.setdefault(row["provider"], []).append(entry)

    @cache  # thousands of offers are of a few hundred days
    def fate(kind: str, family: str, days: float) -> tuple[float, float, float]:
        # the ends of price ÷ quote and the chance, linear in the root of the days; of a family that a kind of seller
        # has no record of, its prices on demand speak, then those of other clouds
        ways = ((kind, family), (kind, "on demand"), ("cloud", family), ("cloud", "on demand"))
        curve = next((curves[way] for way in ways if way in curves), None)
        if curve is None:
            return 1.0, 1.0, 1.0
        low, high, chance = (float(np.interp(np.sqrt(days), curve[0], row)) for row in curve[1])
        return min(float(np.exp(low)), 1.0), max(float(np.exp(high)), 1.0), chance

    rounded = cache(lambda *cells: Quote(*(round(float(cell), 9) for cell in cells)))  # as a saved answer keeps them
    quotes = []
    for offer, kind in zip(offers, kinds, strict=True):
        # how many its seller is known to have at once, beyond which it sells none, and the notice
        if offer.maximum_units is not None:
            known, most, notice = float(offer.maximum_units * offer.gpus), np.inf, 0.0  # the order says so itself
        else:
            # What is sold by self-service is a rule where nothing larger is known; a system that ran, was sold or is
            # offered is a floor. A row of one's own is both, whatever else is known.
            vendor = accelerators[offer.gpu].vendor.lower()
            records = [
                (count, basis, place)
                for chips, option, count, basis, place in sizes.get(offer.provider, ())
                if (not chips or offer.gpu in chips or vendor in chips) and option in ("", offer.option)
            ]
            records = [record for record in records if record[1] == _OWN] or records
            if records:
                count, basis, notice = max(records)
                known, most = max(count, float(offer.gpus)), count if basis in (_BY_ITSELF, _OWN) else np.inf
            else:
                known, most, notice = float(max(USUAL_GPUS, offer.gpus)), np.inf, 0.0
        if offer.book == "user" or offer.price_kind != "list":
            quotes.append(rounded(*CERTAIN._replace(most_gpus=most)))
            continue
        family = quote_family(offer.option)
        spot = family == "preemptible"
        # spot moves while it is held too, however fresh its quote
        days = max(counted_age_days(offer.age_days, offer.price_kind), _HOLDING_DAYS if spot else 0)
        if OPTIONS[offer.option].interruptible:
            most = min(most, LARGEST_SPOT_GPUS)
        low, high, chance = fate(kind_of(kind), family, days)
        quotes.append(rounded(low, high, chance * (there if spot else 1.0), known, most, notice))
    return quotes


def kind_of(seller: str | None) -> str:
    """Return the kind of seller that a quote belongs to: what is no hyperscaler and no market is a cloud."""
    return seller if seller in ("hyperscaler", "marketplace") else "cloud"


def probed(rows: Iterable[Row]) -> float:
    """Return the share of probes that found spot capacity: the median over products and zones; 1 where none is known.

    >>> probed([{"availability_fraction": 0.4}, {"availability_fraction": 0.9}, {"availability_fraction": None}])
    0.65
    """
    shares = [float(row["availability_fraction"]) for row in rows if row.get("availability_fraction") is not None]
    return median(shares) if shares else 1.0


_Curve = tuple[Floats, Floats]  # days, and by row: the logs of the low and high ratio, the chance
_Group = tuple[str, str]


def falling(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the nearest values, by weight, that never rise.

    >>> falling([0.9, 0.6, 1.0], [1, 1, 3])
    [0.9, 0.9, 0.9]
    """
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        block = (float(value), float(weight), 1)
        # pool adjacent violators (https://en.wikipedia.org/wiki/Isotonic_regression)
        while blocks and blocks[-1][0] < block[0]:
            before = blocks.pop()
            total = before[1] + block[1]
            block = (round((before[0] * before[1] + block[0] * block[1]) / total, 12), total, before[2] + block[2])
        blocks.append(block)
    return [value for value, _, count in blocks for _ in range(count)]


# --- How many accelerators a seller sells at once.

_BY_ITSELF, _OWN = "self-service", "own"
# by seller: chips or vendor, option, count, basis, notice
_Sizes = dict[str, list[tuple[frozenset[str], str, float, str, float]]]


def shares_by_kind(offers: Sequence[Offer], kinds: Sequence[str], capacity: Sequence[Row]) -> dict[str, list[float]]:
    """Return by kind of seller the share of those that sell machines of which so large an order is known.

    It is the chance that a seller takes an order of which nothing is known; for each of `_SIZES`.
    """
    sellers = {offer.provider: kind_of(kind) for offer, kind in zip(offers, kinds, strict=True) if offer.gpus > 1}
    largest: dict[str, float] = {}
    for row in capacity:
        largest[row["provider"]] = max(largest.get(row["provider"], 0.0), float(row["largest_gpus"]))
    shares = {}
    for kind in sorted(set(sellers.values())):
        counts = [largest.get(seller, 0.0) for seller, of in sellers.items() if of == kind]
        shares[kind] = [round(sum(count >= size for count in counts) / len(counts), 6) for size in _SIZES]
    return shares


def chances(terms: Any, offer: Indices, gpus: Indices) -> Floats:
    """Return the chance that offers can be had at their quotes in such numbers."""
    shares = terms.size_shares[offer]  # a row for each order, by `_SIZES`
    place = np.searchsorted(np.array(_SIZES), gpus).clip(0, shares.shape[1] - 1)
    size_chance = np.where(gpus <= terms.known_gpus[offer], 1.0, shares[np.arange(len(gpus)), place])
    chance: Floats = terms.quote_chance[offer] * size_chance
    return chance


def sure(terms: Any, offer: Indices, chance: Floats) -> Flags:
    """Tell which orders one can count on: on demand, seen lately, and probably to be had."""
    counted: Flags = terms.fresh[offer] & (chance >= LIKELY)
    return counted


# --- The budget.


class Budgets(NamedTuple):
    """What one must have for each of some orders, and the parts of it."""

    budget: Floats
    expected: Floats  # the mean of the cost, and of what one pays where it cannot be had
    chance: Floats
    fallback: float  # the high end of what one would order instead


def budgets(cost: Floats, high: Floats, chance: Floats, may_be: Flags, fresh: Flags, seller: Indices) -> Budgets:
    """Return the budget of each order of one question.

    `may_be` are orders that answer the question, `fresh` those on demand that somebody saw lately.
    """
    back = _fallback(high, chance, may_be, fresh, seller)
    if back is None:
        return Budgets(high.copy(), cost.copy(), chance, np.nan)
    # an offer that is likelier to be gone than one in ten is budgeted as its fallback; the others never above it
    otherwise = np.maximum(high, high[back])
    spread = np.divide(high, cost, out=np.ones_like(cost), where=cost > 0)  # what costs nothing has no range
    alone = cost * spread ** deviations(chance)
    budget = np.where(chance < _BUDGET_SHARE, otherwise, np.minimum(alone, otherwise))
    expected = chance * cost + (1 - chance) * np.maximum(cost, cost[back])
    return Budgets(budget, expected, chance, float(high[back]))


def deviations(chance: Floats) -> Floats:
    """Return how far out the end of a range must lie so that nine of ten orders end below, by the chance of the offer.

    >>> deviations(np.array([1.0, 0.95])).round(2).tolist()
    [1.0, 1.27]
    """
    # of the orders that get the offer so many must end below, that with those that do not nine of ten do
    share = _BUDGET_SHARE / np.maximum(chance, _BUDGET_SHARE)
    ratio: Floats = np.interp(share, _SHARES, _DEVIATIONS) / _Z90
    return ratio


def _fallback(high: Floats, chance: Floats, may_be: Flags, fresh: Flags, seller: Indices) -> int | None:
    """Return the order that one falls back on: the lowest high end of those that one can count on.

    Without any, sellers are asked in turn, each with its own chance, until one of them probably still has it; where all
    of them together may not, it is the likeliest. So more time, which brings more orders, never needs more.
    """
    among = np.flatnonzero(may_be & fresh & (chance >= LIKELY))
    if not len(among):
        among = np.flatnonzero(may_be)
        chance_of_seller: dict[int, float] = {}  # several offers of one seller are gone together
        for at in among[np.argsort(high[among], kind="stable")].tolist():
            number = int(seller[at])
            chance_of_seller[number] = max(chance_of_seller.get(number, 0.0), float(chance[at]))
            if 1 - np.prod([1 - share for share in chance_of_seller.values()]) >= LIKELY:
                return int(at)
        among = among[chance[among] >= chance[among].max(initial=0.0)]
    return int(among[np.argmin(high[among])]) if len(among) else None
