"""Prices of a few offers, read again from their sellers before an order; nothing is stored.

Renewing the stored prices is refresh/run.py.
"""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from gpucost.clock import today
from gpucost.errors import GpuCostError
from gpucost.limits import Deadline
from gpucost.refresh.complete import complete
from gpucost.refresh.known import Known, known_of
from gpucost.refresh.registry import SOURCES
from gpucost.refresh.source import Desk
from gpucost.store.client import Client

if TYPE_CHECKING:
    from gpucost.catalog.core import Catalog

# whose price of one machine can be read in seconds, without hundreds of megabytes
SELLERS = frozenset(("azure", "oci", "vast", "lambda", "runpod"))  # each has a source of its own name
FIRST_OFFERS = 5  # of an answer: those that one would order
_WAIT_S = 60.0  # for all sellers together
_SAME = 0.0005  # of a price: below it two are equal


class CheckedPrice(Struct, frozen=True):
    """The price of an offer as it was quoted and as its seller states it now, or why that cannot be read."""

    offer: Mapping[str, Any]
    quoted_usd_per_hour: float
    usd_per_hour: float | None
    failure: str = ""

    @property
    def sentence(self) -> str:
        """Return the price now against the one quoted, in a sentence."""
        offer = self.offer
        place = f" in {offer['region']}" if offer["region"] else ""
        name = f"{offer['provider']} {offer['instance_type']}{place}, {str(offer['option']).replace('_', ' ')}"
        if self.failure:
            return f"{name}: not read again: {self.failure}"
        if self.usd_per_hour is None:
            return f"{name}: its seller does not list it today. It was {self.quoted_usd_per_hour:,.2f} USD per hour."
        if abs(self.usd_per_hour / self.quoted_usd_per_hour - 1) < _SAME:
            return f"{name}: {self.usd_per_hour:,.2f} USD per hour today, as quoted."
        move = f"{self.usd_per_hour / self.quoted_usd_per_hour - 1:+.0%}"
        return (
            f"{name}: {self.usd_per_hour:,.2f} USD per hour today, quoted {self.quoted_usd_per_hour:,.2f} ({move})."
            f" `gpucost prices refresh --from {offer['provider']}` takes it over."
        )


def checked(catalog: "Catalog", offers: Iterable[Mapping[str, Any]], mirror: str | None = None) -> list[CheckedPrice]:
    """Read the prices of some offers again; `offers` have an offer_id, provider, instance_type, gpus and a price."""
    by_seller: dict[str, list[Mapping[str, Any]]] = {}
    for offer in {offer["offer_id"]: offer for offer in offers}.values():  # each once
        by_seller.setdefault(str(offer["provider"]), []).append(offer)
    deadline, known = Deadline(_WAIT_S), cache(lambda: known_of(catalog))  # gathered once, where a seller can be read
    results = []
    for seller, offers_of_seller in by_seller.items():
        prices, failure = _prices(known, seller, offers_of_seller, mirror, deadline)
        for offer in offers_of_seller:
            if offer.get("usd_per_hour") is not None:
                quoted_usd_per_hour = float(offer["usd_per_hour"])
            else:  # a row of an answer, whose gpus are those of all its machines
                gpus = float(offer["gpus"]) / float(offer.get("instances") or 1)
                quoted_usd_per_hour = float(offer["usd_per_gpu_hour"]) * gpus
            price = prices.get(str(offer["offer_id"]))
            results.append(CheckedPrice(offer, quoted_usd_per_hour, price, failure))
    return results


def _prices(
    known: Callable[[], Known],
    seller: str,
    offers: Sequence[Mapping[str, Any]],
    mirror: str | None,
    deadline: Deadline,
) -> tuple[dict[str, float], str]:
    """Return what a seller asks now, by offer, or why that cannot be read."""
    # one seller that cannot be read leaves the others, each with its reason
    if seller not in SELLERS:
        return {}, "it has no public interface that is read here. Look at its price page."
    source = SOURCES[seller]
    if not source.has_key:
        return {}, f"its interface needs {' or '.join(source.keys)} in the environment."
    try:
        with tempfile.TemporaryDirectory() as folder, Client(mirror=mirror, deadline=deadline) as client:
            machines = sorted({str(offer["instance_type"]) for offer in offers})
            reference = known()
            desk = Desk(client, Path(folder), today(), {"machines": machines})
            try:
                source.fetch(desk)
                complete(desk, reference)
                sql = """SELECT offer_id, min(usd_per_hour) FROM candidate
                    WHERE fault IS NULL AND offer_id IN (SELECT unnest(?)) GROUP BY offer_id"""
                ids = [str(offer["offer_id"]) for offer in offers]
                return dict(desk.connection.execute(sql, [ids]).fetchall()), ""
            finally:
                desk.close()
    except GpuCostError as error:
        from gpucost.refresh.run import without_secrets

        return {}, without_secrets(str(error))
