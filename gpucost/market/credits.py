"""What the credits of one's book pay of a bill: the first to expire first, each up to its cap and its whole amount."""

from collections.abc import Mapping, Sequence
from datetime import date
from math import ceil
from typing import Any

from gpucost.catalog.discounts import covers
from gpucost.types import Offer
from gpucost.units import DAYS_PER_YEAR, MONTHS_PER_YEAR

_FIELDS = "provider", "gpu", "region", "option", "instance_type", "term_months"


def credited(credits: Sequence[Mapping[str, Any]], offer: Offer, usd: float, months: float, on: date) -> float:
    """Return how much of a bill over so many months from a day is paid by credits that hold on that day.

    A credit pays in each month that begins before it expires, at most its cap.
    """
    if not credits:
        return 0.0
    price, left = {name: getattr(offer, name) for name in _FIELDS}, usd
    for credit in sorted(credits, key=lambda row: str(row["valid_until"] or "9")):
        start, end = (row if isinstance(row, date) or row is None else date.fromisoformat(row)
                      for row in (credit["valid_from"], credit["valid_until"]))  # fmt: skip
        if not covers(credit, price) or (start and start > on) or (end and end < on):
            continue
        held = months if end is None else min(months, (end - on).days / DAYS_PER_YEAR * MONTHS_PER_YEAR)
        cap = credit["usd_per_month"]
        left -= min(left, credit["usd"], usd * held / months, *(() if cap is None else (cap * max(ceil(held), 1),)))
    return usd - left


def said(usd: float, whole: float) -> str:
    """Say what credits pay."""
    return f"credits of your book pay {usd:,.2f} USD of it; {whole - usd:,.2f} USD remain to be paid"
