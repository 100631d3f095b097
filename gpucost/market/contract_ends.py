"""When a price of one's own books ends: a contract by its last day, a discount by that of the best that covers it."""

from datetime import date, timedelta
from typing import TYPE_CHECKING

from gpucost.catalog.discounts import covers
from gpucost.money.private_discount import paid_fraction
from gpucost.types import Offer
from gpucost.units import DAYS_PER_MONTH

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

_COVERED = "provider", "gpu", "region", "option", "instance_type", "term_months"
_CONTRACT = """
SELECT valid_until FROM book_offers
WHERE book = 'user' AND offer_id = $offer AND coalesce(valid_from, observed_on) <= $day
  AND coalesce(valid_until >= $day, true)
ORDER BY recorded_on DESC, observed_on DESC LIMIT 1"""


def last_day(catalog: "Catalog", offer: Offer) -> date | None:
    """Return the last day on which an offer has its price; None where no end is stated."""
    if offer.price_kind == "contracted":
        catalog.prepare_prices()
        rows = catalog.store.fetch(_CONTRACT, {"offer": offer.offer_id, "day": catalog.as_of})
        return rows[0]["valid_until"] if rows else None
    if offer.price_kind != "effective":
        return None
    # a floor is held against the price before the discount
    listed = offer.list_usd_per_gpu_hour or offer.usd_per_gpu_hour
    price = {name: getattr(offer, name) for name in _COVERED}
    best: tuple[float, date] | None = None
    for row in (row for book in catalog.books for row in book.discounts):
        start, end = row["valid_from"], row["valid_until"]
        if not covers(row, price) or (start and start > catalog.as_of) or (end and end < catalog.as_of):
            continue
        paid = paid_fraction(row["fraction"], row.get("floor_usd_per_gpu_hour"), listed)
        # of equal discounts the one that lasts longest: when it ends, the price does
        if best is None or (paid, -(end or date.max).toordinal()) < (best[0], -best[1].toordinal()):
            best = (paid, end or date.max)
    return None if best is None or best[1] == date.max else best[1]


def months_until(day: date, start: date) -> float:
    """Return the months from a start to the end of a day, at least a hair more than nothing.

    >>> months_until(date(2026, 12, 31), date(2026, 12, 1))
    1.019
    """
    return max(round((day + timedelta(days=1) - start).days / DAYS_PER_MONTH, 3), 0.001)
