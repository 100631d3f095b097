"""Which of many lines another one beats whatever the run: equal but for prices, and none of them higher."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

PRICES = ("usd_per_gpu_hour", "storage_usd_per_gb_month", "egress_usd_per_gb")  # all else equal, lower is cheaper
CHEAPER = 1e-4  # share of a price by which one beats another surely,
SMALL_USD = 500.0  # unless the cost is so small that cents decide
ROUNDING_USD = 0.1  # more than the cents that rounding the lines of a bill can take away
_DISTINCT_AT_ONCE = 1 << 22
_PAIRS_AT_ONCE = 1 << 18


def unbeaten(same: Sequence[NDArray[Any]], prices: Sequence[NDArray[np.float64]]) -> NDArray[np.bool_]:
    """Tell which lines no other one beats: equal in all of `same`, and of the `prices` none higher.

    Of equals the first stays. A later line beats an earlier one only by a price of the hour, the first of `prices`,
    that no rounding to cents makes equal.

    >>> unbeaten([np.array([0, 0, 1])], [np.array([2.0, 1.0, 3.0])]).tolist()
    [False, True, True]
    """
    _, group = combined([np.unique(column, return_inverse=True)[1] for column in same], len(prices[0]))
    beaten = np.zeros(len(group), bool)
    hour = prices[0]
    for line, rival in rivals(group):
        better = (rival < line) | (hour[rival] <= hour[line] * (1 - CHEAPER))
        better &= rival != line
        for price in prices:
            better &= price[rival] <= price[line]
        beaten[line[better]] = True
    return ~beaten


def rivals(group: Indices) -> Iterator[tuple[Indices, Indices]]:
    """Yield all pairs of lines of one group, some at a time.

    >>> [(line.tolist(), rival.tolist()) for line, rival in rivals(np.array([0, 1, 0]))]
    [([0, 0, 1, 2, 2], [0, 2, 1, 0, 2])]
    """
    members, size = np.argsort(group, kind="stable"), np.bincount(group)
    first, many = (np.cumsum(size) - size)[group], size[group]
    for part in np.split(np.arange(len(group)), np.flatnonzero(np.diff(np.cumsum(many) // _PAIRS_AT_ONCE)) + 1):
        line = np.repeat(part, many[part])
        offset = np.arange(len(line)) - np.repeat(np.cumsum(many[part]) - many[part], many[part])
        yield line, members[first[line] + offset]


def combined(columns: Sequence[Indices], count: int) -> tuple[Indices, Indices]:
    """Return the distinct rows of columns of numbers, and which of them each row is.

    >>> distinct, place = combined([np.array([1, 0, 1]), np.array([2, 2, 2])], 3)
    >>> distinct.tolist(), place.tolist()
    ([[0, 2], [1, 2]], [1, 0, 1])
    """
    if not columns:
        return np.zeros((1, 0), np.int64), np.zeros(count, np.int64)
    row_number, size = np.zeros(count, np.int64), 1
    for column in columns:
        wide = int(column.max(initial=0)) + 1
        if size * wide >= _DISTINCT_AT_ONCE:
            row_number = np.unique(row_number, return_inverse=True)[1].astype(np.int64)
            size = int(row_number.max(initial=0)) + 1
        row_number, size = row_number * wide + column, size * wide
    if size < _DISTINCT_AT_ONCE:  # few enough to be counted rather than sorted
        first = np.full(size, count, np.int64)
        first[row_number[::-1]] = np.arange(count)[::-1]
        seen = np.flatnonzero(first < count)
        number = np.zeros(size, np.int64)
        number[seen] = np.arange(len(seen))
        first, row_number = first[seen], number[row_number]
    else:
        _, first, row_number = np.unique(row_number, return_index=True, return_inverse=True)
    return np.stack([column[first] for column in columns], axis=1), row_number.astype(np.int64)
