"""The table of offers behind an answer, and the one order in which every face shows them.

A line is an offer at a size: where it stands, its rank and labels, or why it has no rank. The table is made before the
payload of an answer: options, pictures, regions, ways to buy, JSON, SQL and what other commands take from an answer are
read from it, in its order. `in_order` is the rule. Another rule of what leads changes the column `goal`, nothing else.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpucost.answers.common import OfferRow
from gpucost.market.budget import LIKELY
from gpucost.market.terms import Terms
from gpucost.types import Offer

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

# where an offer stands: a sum of these, the lower the better
ORDERABLE, COMMITTED, INTERRUPTIBLE, UNLIKELY, LEFT_OUT = 0, 1, 2, 4, 8
# what an offer is best at, in the order in which a screen names them
LOWEST, MAJOR_CLOUD, MOST_MEASURED, FASTEST = "lowest budget", "major cloud", "most measured chip", "fastest"
_IF_THERE = "if still there"  # a quote that may be gone and would save much
_FAST_BUDGETS = 2.0  # the fastest is looked for within so many of the lowest budget
_MUCH = 0.1  # of the lowest budget's cost: what a quote that may be gone must save to be named


def standing(unlikely: Any, interruptible: Any = False, committed: Any = False, left_out: Any = False) -> Indices:
    """Return where offers stand: what one can order, then what is probably gone, then what does not do the work.

    By budget what is probably gone sinks by itself; the other orders know nothing of chances.

    Of a service what stays goes before what may be interrupted, and what is free before what is committed. A run ends:
    a term and interruptions are part of what it costs.
    """
    parts = ((COMMITTED, committed), (INTERRUPTIBLE, interruptible), (UNLIKELY, unlikely), (LEFT_OUT, left_out))
    return np.asarray(sum(weight * np.asarray(flags, np.int64) for weight, flags in parts), np.int64)


def _standing_name(code: int) -> str:
    """Name where an offer stands.

    >>> [_standing_name(code) for code in (0, 1, 2, 3, 6, 8)]
    ['orderable', 'committed', 'interruptible', 'interruptible', 'unlikely', 'left out']
    """
    names = ((LEFT_OUT, "left out"), (UNLIKELY, "unlikely"), (INTERRUPTIBLE, "interruptible"))
    return next((name for least, name in names if code >= least), "committed" if code else "orderable")


class Ordering(NamedTuple):
    """The columns that order offers, the first difference deciding; the smallest comes first in each."""

    standing: Indices
    goal: NDArray[Any]  # what is to be small
    unsure: NDArray[Any]  # of equals, such as those that fall back on one, what one can count on comes first
    cost: NDArray[Any]  # then the cost expected
    time: NDArray[Any]
    gpus: NDArray[Any]
    age_days: NDArray[Any]  # of equals the newest observation
    id: NDArray[Any]


def in_order(columns: Ordering) -> Indices:
    """Return the rows of columns in the order of every answer.

    >>> usd, same = np.array([1.0, 3.0, 2.0]), np.zeros(3)
    >>> in_order(Ordering(standing([True, False, False]), usd, same, usd, same, same, same, np.arange(3))).tolist()
    [2, 1, 0]
    """
    return np.lexsort(columns[::-1])


def leading(stands: Indices) -> Flags:
    """Tell which rows one can order; where one can order none, all of them."""
    likely: Flags = stands < UNLIKELY
    return likely if likely.any() else np.ones(len(stands), bool)


def front_of(order: Indices, cost: Floats, time: Floats) -> Indices:
    """Keep the rows that no other one beats in both cost and time; columns are of all rows.

    >>> front_of(np.arange(3), np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0, 4.0])).tolist()
    [0, 2]
    """
    # by cost, then by time: a row is in front where nothing cheaper is as fast
    order = order[np.lexsort((time[order], cost[order]))]
    best_before = np.concatenate([[np.inf], np.minimum.accumulate(time[order])[:-1]])
    return order[time[order] < best_before]


class Picked(NamedTuple):
    """What picks are made by, a column each over all rows."""

    budget: Floats
    cost: Floats
    time: Floats
    chance: Floats
    is_major: Flags  # sold by a hyperscaler
    sources: NDArray[Any]  # that measured such work on its accelerator


def picks(order: Indices, columns: Picked) -> dict[int, list[str]]:
    """Return what rows are best at, of rows in the order of their budgets.

    >>> usd, no, chance = np.array([1.0, 5.0, 6.0]), np.zeros(3, bool), np.array([0.2, 1, 1])
    >>> picks(np.array([1, 2, 0]), Picked(6 - usd / 9, usd, 1 / usd, chance, no, np.array([0, 1, 9])))
    {1: ['lowest budget'], 2: ['most measured chip', 'fastest'], 0: ['if still there']}
    """
    if not len(order):
        return {}
    budget, cost, time, chance, is_major, sources = columns
    first = order[0]
    likely = order[chance[order] >= LIKELY]
    # the fastest of all would be the dearest of all
    soon = likely[budget[likely] <= _FAST_BUDGETS * budget[first]]
    gone = order[(chance[order] < LIKELY) & (cost[order] < (1 - _MUCH) * cost[first])]
    gone = gone[budget[gone] <= _FAST_BUDGETS * budget[first]]
    kinds = {
        LOWEST: order[:1],
        MAJOR_CLOUD: likely[is_major[likely]],
        MOST_MEASURED: likely[sources[likely] == sources[likely].max(initial=0)],
        FASTEST: soon[np.argsort(time[soon], kind="stable")],
        _IF_THERE: gone[np.argsort(cost[gone], kind="stable")],
    }
    labels: dict[int, list[str]] = {}
    for kind, rows in kinds.items():
        if len(rows):
            labels.setdefault(int(rows[0]), []).append(kind)
    return labels


class PickedOffer(TypedDict):
    """What an answer says first of an offer that is best at something."""

    kind: str
    provider: str
    seller: str  # the provider's name
    region: str | None
    instance_type: str
    option: str
    term_months: int
    gpu: str


def picked_offer(offer: Offer, kinds: Sequence[str], seller: str) -> PickedOffer:
    """Return who sells an offer that was picked, and on which terms, under the first of its kinds."""
    return {
        "kind": kinds[0],
        "provider": offer.provider,
        "seller": seller,
        "region": offer.region or None,
        "instance_type": offer.instance_type,
        "option": offer.option,
        "term_months": offer.term_months,
        "gpu": offer.gpu,
    }


def ordered(rows: Sequence[Any], cost: str) -> list[Any]:
    """Return the first rows of several answers in the order of every answer; what has no cost comes last.

    >>> [row["usd"] for row in ordered([{"usd": None}, {"usd": 3.0}, {"usd": 2.0}], "usd")]
    [2.0, 3.0, None]
    """
    costs = np.array([row[cost] or 0.0 for row in rows])
    same = np.zeros(len(rows))
    stands = standing(False, left_out=[row[cost] is None for row in rows])
    order = in_order(Ordering(stands, costs, same, costs, same, same, same, np.arange(len(rows))))
    return [rows[at] for at in order.tolist()]


Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


def first_of_each(keyed: Iterable[tuple[Key, Item]]) -> dict[Key, Item]:
    """Return the first item of each key, in the order of the items.

    >>> first_of_each([("us", 3), ("eu", 5), ("us", 1)])
    {'us': 3, 'eu': 5}
    """
    first: dict[Key, Item] = {}
    for key, item in keyed:
        first.setdefault(key, item)
    return first


class OfferLine(NamedTuple):
    """A line of the table: the case that it tells of, its rank, where it stands, and what speaks against it."""

    case: int
    offer: int  # in the supply
    rank: int | None
    standing: int
    reason: str  # why it has no rank; empty where it has one
    beside: int | None = None  # the rank that it is sold under, where it differs from a ranked line in its region alone


class OfferTable(Struct, frozen=True):
    """The offers of an answer in its order: lines that rank, then those that do not, with the reason."""

    lines: tuple[OfferLine, ...]
    labels: Mapping[int, Sequence[str]]  # of a case: what it is best at
    front: frozenset[int]  # cases that no other one beats in both cost and time

    @property
    def options(self) -> list[OfferLine]:
        """The lines that rank, and between them those that differ from one before in their region alone."""
        return [line for line in self.lines if line.rank is not None or line.beside is not None]

    def groups(self) -> list[list[int]]:
        """Return the cases that rank, each before those that stand beside it."""
        groups: dict[int, list[int]] = {}
        for line in self.options:
            groups.setdefault(line.rank or line.beside or 0, []).append(line.case)
        return list(groups.values())

    def folded(self, offers: Sequence[Offer]) -> list[tuple[OfferLine, list[str]]]:
        """Return the lines that differ in more than a region, each with the regions of all that are like it.

        What is left out of one product for one reason is one line.
        """
        regions: dict[Any, dict[str, None]] = {}
        lines: dict[Any, OfferLine] = {}
        for line in self.lines:
            # what ranks is one with what it is sold under; what does not, with its like of one product and one reason
            offer, key = offers[line.offer], line.rank or line.beside
            product = offer.provider, offer.instance_type, offer.option, offer.gpu
            like: Any = key or (*product, line.standing, line.reason)
            if like in lines and line.case in self.labels:
                like = ("best at something", line.case)
            lines.setdefault(like, line)
            regions.setdefault(like, {})[offer.region] = None
        return [(line, [*filter(None, regions[like])]) for like, line in lines.items()]

    def row(self, line: OfferLine, offer: Offer, terms: Terms, gpus: int, regions: Sequence[str] = ()) -> OfferRow:
        """Return what a line tells of an offer, whatever it is for."""
        return {
            "rank": line.rank,
            "labels": [*self.labels.get(line.case, ())],
            "standing": _standing_name(line.standing),
            "reason": line.reason,
            "offer_id": offer.offer_id,
            "provider": offer.provider,
            "instance_type": offer.instance_type,
            "region": offer.region or None,
            "regions": [*regions],
            "option": offer.option,
            "term_months": offer.term_months,
            "gpu": offer.gpu,
            "gpus": gpus,
            "usd_per_gpu_hour": float(terms.usd_per_gpu_hour[line.offer]),
            "price_observed_on": offer.observed_on.isoformat(),
            "age_days": offer.age_days,
            "front": line.case in self.front,
        }
