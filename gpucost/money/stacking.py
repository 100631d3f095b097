"""What hours of GPUs cost under all of one's agreements, in the one order in which they apply.

A contract's price replaces everything. Else: the list price; a reservation or a savings plan, never both on one hour,
reservations first; a private percentage, the best that holds, on what is then charged; credits, the first to expire
first, each up to its cap in a month and its whole amount. What an annual commitment lacks at the end of its year is a
charge of its own. A price book follows the same order, and its credits are paid out by the same `credited`.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.frozen import Frozen
from gpucost.money.private import kept
from gpucost.money.variance import in_cents

Array = NDArray[np.float64]
_HOUR = np.timedelta64(1, "h")


class Agreement(Frozen):
    """One agreement: what it is, how much, and from when until when it holds."""

    name: str
    kind: str  # contract | reservation | savings_plan | private | credit | annual
    start: datetime
    end: datetime
    gpus: float = 0.0  # of a reservation
    usd_per_gpu_hour: float = 0.0  # of a contract, a reservation or a savings plan
    usd: float = 0.0  # of a credit in all, of an annual commitment a year
    usd_per_month: float = float("inf")  # cap of a credit
    usd_per_hour: float = 0.0  # of a savings plan, used or not
    fraction: float = 0.0  # private discount

    @property
    def covered_gpus(self) -> float:
        """The GPUs that a reservation or a savings plan pays for in each hour."""
        return self.gpus if self.kind == "reservation" else self.usd_per_hour / (self.usd_per_gpu_hour or 1.0)


class Usage(NamedTuple):
    """GPUs in use by period: when each period starts, its hours, its month."""

    starts: NDArray[np.datetime64]
    hours: float
    gpus: Array

    def during(self, agreement: Agreement) -> Array:
        """Return 1 for each period that starts while an agreement holds, else 0."""
        held = (self.starts >= np.datetime64(agreement.start)) & (self.starts < np.datetime64(agreement.end))
        return held.astype(np.float64)


def of_kind(agreements: Sequence[Agreement], *kinds: str) -> list[Agreement]:
    """Return the agreements of some kinds, those that end first first."""
    return sorted((one for one in agreements if one.kind in kinds), key=lambda one: (one.end, one.name))


def stacked(usage: Usage, list_usd_per_gpu_hour: float, agreements: Sequence[Agreement]) -> dict[str, float]:
    """Return the lines of the bill, in cents; they add up to `total`.

    >>> day = np.array(["2026-01-01"], dtype="datetime64[s]")
    >>> held = Agreement("r", "reservation", datetime(2026, 1, 1), datetime(2027, 1, 1), gpus=2, usd_per_gpu_hour=1.0)
    >>> bill = stacked(Usage(day, 24.0, np.array([3.0])), 2.0, [held])
    >>> bill["at list"], bill["reservations"], bill["total"]
    (144.0, -48.0, 96.0)
    """
    free = np.ones_like(usage.gpus)  # periods that no contract prices
    lines = {"at list": list_usd_per_gpu_hour * usage.gpus * usage.hours}
    charged = np.zeros_like(usage.gpus)
    for contract in of_kind(agreements, "contract"):
        price = contract.usd_per_gpu_hour * usage.during(contract) * free
        charged += price * usage.gpus * usage.hours
        free *= 1 - usage.during(contract)
    lines["contracts"] = charged - lines["at list"] * (1 - free)
    left = usage.gpus * free
    for kind, name in (("reservation", "reservations"), ("savings_plan", "savings plans")):
        lines[name], lines[f"{name}, unused"] = np.zeros_like(left), np.zeros_like(left)
        for held in of_kind(agreements, kind):
            offered = held.covered_gpus * usage.during(held) * free
            used = np.minimum(left, offered)
            left = left - used
            lines[name] += (held.usd_per_gpu_hour - list_usd_per_gpu_hour) * used * usage.hours
            lines[f"{name}, unused"] += held.usd_per_gpu_hour * (offered - used) * usage.hours
    share = np.ones_like(left)
    for private in of_kind(agreements, "private"):
        off = 1 - kept(private.fraction, None, list_usd_per_gpu_hour or 1.0)
        share = np.minimum(share, 1 - off * usage.during(private) * free)
    before = np.sum([*lines.values()], axis=0)
    lines["private discount"] = before * (share - 1)
    net = before + lines["private discount"]
    credits = ((one.usd, one.usd_per_month, usage.during(one)) for one in of_kind(agreements, "credit"))
    lines["credits"] = -credited(net * free, usage.starts.astype("datetime64[M]"), credits)
    found = {name: fsum(values.tolist()) for name, values in lines.items()}
    found["annual shortfall"] = fsum(_short(usage, net, one) for one in of_kind(agreements, "annual"))
    total = round(fsum(found.values()), 2)
    return {**dict(zip(found, in_cents(list(found.values()), total), strict=True)), "total": total}


def credited(owed: Array, months: NDArray[Any], credits: Iterable[tuple[float, float, Array]]) -> Array:
    """Return what credits pay of each charge: of each its amount, its cap in a month, and where it holds (1 or 0).

    >>> credited(np.array([50.0, 50.0]), np.array([0, 1]), [(60.0, 40.0, np.array([1.0, 1.0]))]).tolist()
    [40.0, 20.0]
    """
    paid = np.zeros_like(owed)
    for usd, usd_per_month, held in credits:
        rest = usd
        for month in np.unique(months):
            open_ = (owed - paid).clip(min=0) * held * (months == month)
            asked = float(open_.sum())
            taken = min(asked, rest, usd_per_month)
            if taken > 0:
                paid += open_ * (taken / asked)
                rest -= taken
    return paid


def _short(usage: Usage, net: Array, annual: Agreement) -> float:
    """Return what the years of an annual commitment lack; of a year in part, its share of the commitment counts."""
    held = usage.during(annual) > 0
    bounds = _anniversaries(annual.start, usage.starts)
    number = np.searchsorted(bounds, usage.starts, side="right") - 1
    lacking = 0.0
    for one in np.unique(number[held]):
        of_year = held & (number == one)
        share = min(float(of_year.sum()) * usage.hours / float((bounds[one + 1] - bounds[one]) / _HOUR), 1.0)
        lacking += max(annual.usd * share - float(net[of_year].sum()), 0.0)
    return lacking


def _anniversaries(start: datetime, times: NDArray[Any]) -> NDArray[np.datetime64]:
    """Return a start and its anniversaries until one is beyond all times; 29 February has its own on 28 February."""
    years = int((times.max().astype("datetime64[Y]") - np.datetime64(start, "Y")).astype(int))
    months = np.datetime64(start, "M") + 12 * np.arange(max(years, 0) + 2)
    days = np.minimum(months.astype("datetime64[D]") + (start.day - 1), (months + 1).astype("datetime64[D]") - 1)
    found: NDArray[np.datetime64] = days.astype("datetime64[s]") + (
        np.datetime64(start, "s") - np.datetime64(start, "D")
    )
    return found
