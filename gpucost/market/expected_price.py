"""The price one would pay today for what was quoted some time ago, with its range.

A quote is the price of the day on which it was seen. The table `price_moves` says what became of such quotes until
they were looked at again, by kind of seller, family of options, age, and how far the quote stood from its peers: the
median over sellers and regions of the same chip and family. Between the rows of the table the logs are linear in the
root of the age and in the log of that distance. Contracts and the user's own prices hold, and what a commitment costs
is what its list says.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.catalog.price_moves import (
    AGES_DAYS,
    FEWEST_PEERS,
    PEER_RATIOS,
    family_of,
    kind_of,
    moves_by_group,
)
from gpucost.types import Offer

Floats = NDArray[np.float64]

HELD_DAYS = 30
FAR_RATIO = 1 / 3  # of its peers: below, a quote is probably an error, or gone


class ExpectedPrices(NamedTuple):
    """What is expected of each offer: today's price over the quote, and the ends that hold 80 %."""

    ratio: Floats
    low_ratio: Floats
    high_ratio: Floats
    peers_ratio: Floats  # the quote over the median of its peers; NaN where too few are known, and for one's own


def expected_prices(
    offers: Sequence[Offer], ages_days: Floats, kinds: Sequence[str], moves: Sequence[Mapping[str, Any]]
) -> ExpectedPrices:
    """Return what is expected of offers of some age, sold by sellers of some kinds.

    Where the table has no row of a group, as for commitments, the quote is expected to hold. What may be reclaimed
    moves while it is held, too: its range is that of HELD_DAYS at least. A quote below FAR_RATIO of its peers is
    expected half of the way to them, and may cost what they do.
    """
    peers = peer_ratios(offers)
    spot = np.array([family_of(offer.option) == "preemptible" for offer in offers], bool)
    held_days = np.where(spot, np.maximum(ages_days, HELD_DAYS), ages_days)
    logs = np.zeros((3, len(offers)))
    groups: dict[tuple[str, str], list[int]] = {}
    for number, (offer, kind) in enumerate(zip(offers, kinds, strict=True)):
        if offer.book != "user" and offer.price_kind == "list":
            groups.setdefault((kind_of(kind), family_of(offer.option)), []).append(number)
    for group, grid in moves_by_group([*moves]).items():
        if group in groups:
            numbers = np.array(groups[group])
            distance = np.log(np.where(np.isnan(peers[numbers]), 1.0, peers[numbers]))
            logs[:, numbers] = _between(grid, held_days[numbers], distance)
            logs[1, numbers] = _between(grid, ages_days[numbers], distance)[1]
    peers[[offer.book == "user" for offer in offers]] = np.nan  # whoever has a price of one's own knows it
    gap = np.log(np.where(peers < FAR_RATIO, peers, 1.0))  # an assumption: half of the way to the peers, by its log
    gap *= [offer.price_kind == "list" for offer in offers]
    logs[1], logs[2] = np.maximum(logs[1], -gap / 2), np.maximum(logs[2], -gap)
    low, typical, high = np.exp(logs)
    return ExpectedPrices(typical, np.minimum(low, typical), np.maximum(high, typical), peers)


def peer_ratios(offers: Sequence[Offer]) -> Floats:
    """Return each quote over the median of its peers; a seller counts once in each region."""
    cells: dict[tuple[str, str], dict[tuple[str, str], list[float]]] = {}
    for offer in offers:
        market = cells.setdefault((offer.gpu, family_of(offer.option)), {})
        market.setdefault((offer.provider, offer.region), []).append(offer.usd_per_gpu_hour)
    levels = {
        market: _median([_median(prices) for prices in cell.values()]) if len(cell) >= FEWEST_PEERS else np.nan
        for market, cell in cells.items()
    }
    return np.array([offer.usd_per_gpu_hour / levels[offer.gpu, family_of(offer.option)] for offer in offers])


def _median(values: list[float]) -> float:
    """Return the middle of values; `statistics` would cost a start its import."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _between(grid: Floats, ages_days: Floats, distances: Floats) -> Floats:
    """Return the logs of a group between the rows of its table; beyond its ends those of the end."""
    ages, ratios = np.sqrt(np.array(AGES_DAYS, float)), np.log(np.array(PEER_RATIOS))
    old = np.interp(np.sqrt(ages_days), ages, np.arange(len(ages)))
    far = np.interp(distances, ratios, np.arange(len(ratios)))
    row, column = np.minimum(old.astype(int), len(ages) - 2), np.minimum(far.astype(int), len(ratios) - 2)
    down, right = old - row, far - column
    logs: Floats = (
        grid[:, row, column] * (1 - down) * (1 - right)
        + grid[:, row + 1, column] * down * (1 - right)
        + grid[:, row, column + 1] * (1 - down) * right
        + grid[:, row + 1, column + 1] * down * right
    )
    return logs
