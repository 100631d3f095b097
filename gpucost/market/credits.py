"""What the credits of one's book pay of bills, in the order that `gpucost.money.stacking` has for all agreements."""

from collections.abc import Mapping, Sequence
from datetime import date
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.catalog.discounts import covers
from gpucost.money import stacking
from gpucost.types import Offer
from gpucost.units import DAYS_PER_MONTH

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
    return np.asarray(stacking.credited(owed, month, pays).sum(axis=1), dtype=np.float64)


def said(usd: float, whole: float) -> str:
    """Say what credits pay."""
    return f"credits of your book pay {usd:,.2f} USD of it; {whole - usd:,.2f} USD remain to be paid"
