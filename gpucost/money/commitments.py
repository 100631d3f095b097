"""Commitments, discounts and credits: how much to commit, and how agreements apply to use, one over the other."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpucost.money.private_discount import paid_fraction
from gpucost.money.variance import in_cents

# --- How much to commit: the newsvendor's amount for a demand that is known by its distribution.
#
# A commitment of K costs c an hour, used or not; what is beyond it costs p. Committing one more pays while the demand
# exceeds K in more than c ÷ p of the hours, so that the best K is the demand's quantile at 1 − c ÷ p.

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
    # 1 − 0.7 is a little above 0.3: a share that rounding moved past an hour still ends at that hour
    return float(np.quantile(demand, max(share - 1e-12, 0.0), method="inverted_cdf"))


def level(demand: Array, gpus: float, price: float, committed_price: float) -> Level:
    """Return the cost of an average hour under a commitment, c K + p E[(D − K)+], and how well it is used.

    >>> level(np.array([10.0, 30.0]), 20.0, 3.0, 2.0).usd_per_hour
    55.0
    """
    beyond, used = np.maximum(demand - gpus, 0.0), np.minimum(demand, gpus)
    mean_gpus = float(demand.mean())
    return Level(
        gpus,
        committed_price * gpus + price * float(beyond.mean()),
        float(used.mean()) / mean_gpus if mean_gpus else 0.0,
        1 - float(used.mean()) / gpus if gpus else 0.0,
    )


def advised(
    demand: Array, price: float, committed_price: float, step: float = 1.0, committed_gpus: float = 0.0
) -> float:
    """Return what to commit beside what is committed, in whole steps, for the cheapest average hour; 0 if none saves.

    Reference: Arrow, Harris and Marschak (1951), Optimal inventory policy; the critical ratio is (p − c) ÷ p.

    >>> advised(np.array([10.0, 20.0, 30.0, 40.0]), price=4.0, committed_price=1.9)
    30.0
    >>> advised(np.array([10.0, 20.0, 30.0, 40.0]), price=4.0, committed_price=1.9, step=4.0, committed_gpus=25.0)
    4.0
    """
    if committed_price >= price:
        return 0.0
    best = max(quantile(demand, 1 - committed_price / price) - committed_gpus, 0.0)
    # The cost is convex in the commitment: the best in whole steps stands beside the best of all. At equal cost the
    # smaller one binds less.
    near = [np.floor(best / step) * step, np.ceil(best / step) * step]
    hourly_usd = {gpus: level(demand, committed_gpus + gpus, price, committed_price).usd_per_hour for gpus in near}
    return float(min(near, key=lambda gpus: (hourly_usd[gpus], gpus)))


def regret(gpus: float, demand: float, price: float, committed_price: float) -> float:
    """Return what a commitment costs an hour beyond the best one for a demand that stays as it is.

    >>> regret(30, 10, 4.0, 1.5), regret(30, 40, 4.0, 1.5)
    (30.0, 25.0)
    """
    best = min(committed_price, price)
    idle, used, missed = max(gpus - demand, 0.0), min(gpus, demand), max(demand - gpus, 0.0)
    return committed_price * idle + (committed_price - best) * used + (price - best) * missed


# --- What hours of GPUs cost under all of one's agreements, in the one order in which they apply.
#
# A contract's price replaces everything. Else: the list price; a reservation or a savings plan, never both on one
# hour, reservations first; a private percentage, the best that holds, on what is then charged; credits, the first to
# expire first, each up to its cap in a month and its whole amount. What an annual commitment lacks at the end of its
# year is a charge of its own. A price book follows the same order, and its credits are paid out by the same
# `credited`.

_HOUR = np.timedelta64(1, "h")


class Agreement(Struct, frozen=True):
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
        in_force = (self.starts >= np.datetime64(agreement.start)) & (self.starts < np.datetime64(agreement.end))
        return in_force.astype(np.float64)


def of_kind(agreements: Sequence[Agreement], *kinds: str) -> list[Agreement]:
    """Return the agreements of some kinds, those that end first first."""
    return sorted(
        (agreement for agreement in agreements if agreement.kind in kinds),
        key=lambda agreement: (agreement.end, agreement.name),
    )


def stacked(usage: Usage, list_usd_per_gpu_hour: float, agreements: Sequence[Agreement]) -> dict[str, float]:
    """Return the lines of the bill, in cents; they add up to `total`.

    >>> day = np.array(["2026-01-01"], dtype="datetime64[s]")
    >>> plan = Agreement("r", "reservation", datetime(2026, 1, 1), datetime(2027, 1, 1), gpus=2, usd_per_gpu_hour=1.0)
    >>> bill = stacked(Usage(day, 24.0, np.array([3.0])), 2.0, [plan])
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
        for plan in of_kind(agreements, kind):
            offered = plan.covered_gpus * usage.during(plan) * free
            used = np.minimum(left, offered)
            left = left - used
            lines[name] += (plan.usd_per_gpu_hour - list_usd_per_gpu_hour) * used * usage.hours
            lines[f"{name}, unused"] += plan.usd_per_gpu_hour * (offered - used) * usage.hours
    # Private percentages do not add up: in each period the best of those in force counts.
    share = np.ones_like(left)
    for private in of_kind(agreements, "private"):
        off = 1 - paid_fraction(private.fraction, None, list_usd_per_gpu_hour or 1.0)
        share = np.minimum(share, 1 - off * usage.during(private) * free)
    before = np.sum([*lines.values()], axis=0)
    lines["private discount"] = before * (share - 1)
    net = before + lines["private discount"]
    credits = (
        (agreement.usd, agreement.usd_per_month, usage.during(agreement)) for agreement in of_kind(agreements, "credit")
    )
    lines["credits"] = -credited(net * free, usage.starts.astype("datetime64[M]"), credits)
    totals_usd = {name: fsum(values.tolist()) for name, values in lines.items()}
    # An annual commitment counts what is charged before credits: they pay the bill, they are no spending of their own.
    shortfalls = []
    for annual in of_kind(agreements, "annual"):
        # The anniversaries of the start until one is beyond all periods; 29 February has its own on 28 February.
        years = int((usage.starts.max().astype("datetime64[Y]") - np.datetime64(annual.start, "Y")).astype(int))
        months = np.datetime64(annual.start, "M") + 12 * np.arange(max(years, 0) + 2)
        last_days = (months + 1).astype("datetime64[D]") - 1
        days = np.minimum(months.astype("datetime64[D]") + (annual.start.day - 1), last_days)
        time_of_day = np.datetime64(annual.start, "s") - np.datetime64(annual.start, "D")
        bounds = days.astype("datetime64[s]") + time_of_day
        in_force = usage.during(annual) > 0
        number = np.searchsorted(bounds, usage.starts, side="right") - 1
        lacking = 0.0
        for year in np.unique(number[in_force]):
            of_year = in_force & (number == year)
            year_hours = float((bounds[year + 1] - bounds[year]) / _HOUR)
            covered = min(float(of_year.sum()) * usage.hours / year_hours, 1.0)  # of a year in part, its share counts
            lacking += max(annual.usd * covered - float(net[of_year].sum()), 0.0)
        shortfalls.append(lacking)
    totals_usd["annual shortfall"] = fsum(shortfalls)
    total = round(fsum(totals_usd.values()), 2)
    return {**dict(zip(totals_usd, in_cents(list(totals_usd.values()), total), strict=True)), "total": total}


def credited(owed: Array, months: NDArray[Any], credits: Iterable[tuple[float, float, Array]]) -> Array:
    """Return what credits pay of each charge: of each its amount, its cap in a month, and where it holds (1 or 0).

    >>> credited(np.array([50.0, 50.0]), np.array([0, 1]), [(60.0, 40.0, np.array([1.0, 1.0]))]).tolist()
    [40.0, 20.0]
    """
    paid = np.zeros_like(owed)
    for usd, usd_per_month, in_force in credits:
        balance_usd = usd
        for month in np.unique(months):
            open_ = (owed - paid).clip(min=0) * in_force * (months == month)
            due_usd = float(open_.sum())
            drawn_usd = min(due_usd, balance_usd, usd_per_month)
            if drawn_usd > 0:
                paid += open_ * (drawn_usd / due_usd)
                balance_usd -= drawn_usd
    return paid
