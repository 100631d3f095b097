"""What stands between a quote and an order: the reasons for which an offer does not lead, however cheap.

A minimum over many quotes finds the largest error. So what one can order stands first, and the others apart, as lowest
quotes that nobody verified, each with what is missing:

    an old price              beyond the age at which a price of its kind is old
    a chip never measured     whose training, or serving, nobody published or measured
    a quote far below others   an offer at a quarter of all others is probably an error, or gone
    a part of a machine       the price of one accelerator of a machine that is sold whole
    a large interruptible job more accelerators than interruptions were ever measured on
    a large order             more accelerators than anyone sells without a talk

Beyond LARGEST_SPOT_GPUS an interruptible job is no option at all: the rate of a few nodes says nothing of it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.market.expected_price import FAR_RATIO
from gpucost.market.supply import Supply
from gpucost.market.terms import Terms

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

MEASURED_SPOT_GPUS = 64  # published traces and our own tests interrupted at most eight nodes
LARGEST_SPOT_GPUS = 512


def most_gpus(supply: Supply, terms: Terms, offer: Indices, measured: Flags) -> dict[str, Floats]:
    """Return by reason the most accelerators in which an offer does not lack it; −1 where it does in any number.

    `measured` tells per offer whether its chip was measured at such work.
    """
    unit, stays = supply.unit_gpus[offer], ~terms.interruptible[offer]
    rated, free = stays | terms.measured[offer], supply.largest_stated[offer] | ~stays

    def never(lacks: Flags) -> Floats:
        return np.where(lacks, -1.0, np.inf)

    return {
        "old": never(terms.stale[offer]),
        "unmeasured": never(~measured[offer]),
        "part": never(supply.is_part[offer]),
        "far": never(terms.peers_ratio[offer] < FAR_RATIO),
        "interruptions": np.where(rated, np.inf, MEASURED_SPOT_GPUS),
        "size": np.where(free, np.inf, np.maximum(terms.order_gpus[offer], unit)),
    }


def missing(supply: Supply, terms: Terms, offer: Indices, gpus: Indices, measured: Flags) -> dict[str, Flags]:
    """Return by reason which cases lack it; `measured` tells per offer whether its chip was measured at such work."""
    return {name: gpus > most for name, most in most_gpus(supply, terms, offer, measured).items()}


def verified(supply: Supply, terms: Terms, offer: Indices, gpus: Indices, measured: Flags) -> Flags:
    """Tell which cases lack nothing."""
    complete = np.ones(len(offer), bool)
    for lacks in missing(supply, terms, offer, gpus, measured).values():
        complete &= ~lacks
    return complete


def refused(terms: Terms, offer: Indices, gpus: Indices) -> Flags:
    """Tell which cases are larger than an interruptible job may be."""
    too_large: Flags = terms.interruptible[offer] & (gpus > LARGEST_SPOT_GPUS)
    return too_large


REFUSED = (
    f"interruptions were measured on at most {MEASURED_SPOT_GPUS} accelerators; beyond {LARGEST_SPOT_GPUS} an"
    " interruptible job has no price that can be told"
)


def said(supply: Supply, terms: Terms, offer: int, gpus: int, measured: Flags, work: str) -> list[str]:
    """Say what one case lacks; `work` is training or serving."""
    offers = np.array([offer])
    lacks = missing(supply, terms, offers, np.array([gpus]), measured)
    row = supply.offers[offer]
    sentences = {
        "old": f"price of {row.age_days} days (limit {terms.age_limit_days[offer]:g})",
        "unmeasured": f"{work} on it never measured",
        "part": "price of a part of a machine that is sold whole",
        "far": f"price at {terms.peers_ratio[offer]:.0%} of what others ask",
        "interruptions": f"interruptions never measured beyond {MEASURED_SPOT_GPUS}",
        "size": f"capacity to confirm (assumed to sell {terms.order_gpus[offer]:g} at once)",
    }
    return [sentences[name] for name, flags in lacks.items() if flags[0]]


LARGE_GPUS = 64  # beyond, whoever orders asks first whether so many can be had


def confirm(supply: Supply, terms: Terms, offer: int, gpus: int) -> str:
    """Say that the capacity of a large order is to be confirmed, where nobody states how much is sold at once."""
    if gpus <= LARGE_GPUS or supply.largest_stated[offer]:
        return ""
    row = supply.offers[offer]
    return (
        f"Confirm the capacity of {gpus:,} × {row.gpu} at {row.provider}: it is assumed to sell"
        f" {terms.order_gpus[offer]:g} at once."
    )


def measured_chips(supply: Supply, rows: Sequence[Any], kind: str) -> Flags:
    """Tell per offer whether its chip was measured at a kind of work; all of them where nothing is known of any."""
    chips = {row["accelerator_id"] for row in rows if row["kind"] == kind}
    return np.array([not rows or offer.gpu in chips for offer in supply.offers], bool)
