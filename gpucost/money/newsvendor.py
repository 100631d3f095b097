"""How much to commit: the newsvendor's amount for a demand that is known by its distribution.

A commitment of K costs c an hour, used or not; what is beyond it costs p. Committing one more pays while the demand
exceeds K in more than c ÷ p of the hours, so that the best K is the demand's quantile at 1 − c ÷ p.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Level(NamedTuple):
    """What a commitment of so many GPUs means for an average hour."""

    gpus: float
    usd_per_hour: float
    covered_fraction: float  # of the demand
    unused_fraction: float  # of the commitment


def quantile(demand: Array, share: float) -> float:
    """Return the smallest demand that is not exceeded in at least a share of the hours.

    >>> quantile(np.array([10.0, 20.0, 30.0, 40.0]), 0.5)
    20.0
    """
    ordered = np.sort(demand)
    place = int(np.ceil(share * ordered.size - 1e-9)) - 1
    return float(ordered[min(max(place, 0), ordered.size - 1)])


def level(demand: Array, gpus: float, price: float, committed_price: float) -> Level:
    """Return the cost of an average hour under a commitment, c K + p E[(D − K)+], and how well it is used.

    >>> level(np.array([10.0, 30.0]), 20.0, 3.0, 2.0).usd_per_hour
    55.0
    """
    beyond, used = np.maximum(demand - gpus, 0.0), np.minimum(demand, gpus)
    whole = float(demand.mean())
    return Level(
        gpus,
        committed_price * gpus + price * float(beyond.mean()),
        float(used.mean()) / whole if whole else 0.0,
        1 - float(used.mean()) / gpus if gpus else 0.0,
    )


def advised(demand: Array, price: float, committed_price: float, step: float = 1.0, held: float = 0.0) -> float:
    """Return what to commit beside what is held, in whole steps, for the cheapest average hour; 0 where nothing saves.

    Reference: Arrow, Harris and Marschak (1951), Optimal inventory policy; the critical ratio is (p − c) ÷ p.

    >>> advised(np.array([10.0, 20.0, 30.0, 40.0]), price=4.0, committed_price=1.9)
    30.0
    >>> advised(np.array([10.0, 20.0, 30.0, 40.0]), price=4.0, committed_price=1.9, step=4.0, held=25.0)
    4.0
    """
    if committed_price >= price:
        return 0.0
    best = max(quantile(demand, 1 - committed_price / price) - held, 0.0)
    near = [np.floor(best / step) * step, np.ceil(best / step) * step]
    return float(min(near, key=lambda gpus: (level(demand, held + gpus, price, committed_price).usd_per_hour, gpus)))


def regret(gpus: float, demand: float, price: float, committed_price: float) -> float:
    """Return what a commitment costs an hour beyond the best one for a demand that stays as it is.

    >>> regret(30, 10, 4.0, 1.5), regret(30, 40, 4.0, 1.5)
    (30.0, 25.0)
    """
    best = min(committed_price, price)
    idle, used, missed = max(gpus - demand, 0.0), min(gpus, demand), max(demand - gpus, 0.0)
    return committed_price * idle + (committed_price - best) * used + (price - best) * missed
