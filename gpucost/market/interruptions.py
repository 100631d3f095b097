"""How often an offer is interrupted, what that costs, where it may stand; what is assumed outside training steps."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpucost.errors import DataError
from gpucost.money import spot
from gpucost.money.training_bill import RAMP_ENDS
from gpucost.options import OPTIONS
from gpucost.types import Offer
from gpucost.units import DAYS_PER_YEAR, GB, HOURS_PER_YEAR, SECONDS_PER_HOUR

# --- What the engine assumes about a run beside its training steps; each value is marked and has a range.

_GPUS_PER_NODE = 8.0


class Assumed(NamedTuple):
    """One assumption: its value, its range, its unit, and why."""

    value: float
    low: float
    high: float
    unit: str
    reason: str

    def stated(self, value: float) -> "Assumed":
        """Return the assumption at a value that someone states: one other than the usual is its own range.

        >>> RESTART_HOURS.stated(2.0)[:3], RESTART_HOURS.stated(0.25)[:3]
        ((2.0, 2.0, 2.0), (0.25, 0.08, 0.5))
        """
        return self if value == self.value else self._replace(value=value, low=value, high=value)


RAMP_HOURS = Assumed(
    0.5, 0.5 * RAMP_ENDS[0], 0.5 * RAMP_ENDS[1], "hours", "boot, staging of data and compilation before the first step"
)
RESTART_HOURS = Assumed(0.25, 0.08, 0.5, "hours", "detection, replacement, reading the checkpoint")
WRITE_GB_PER_S_PER_NODE = Assumed(2.0, 0.5, 10.0, "GB per second", "checkpoint writes of one node to shared storage")
CHECKPOINTS_KEPT = Assumed(5.0, 2.0, 20.0, "checkpoints", "kept while the run lasts")
STATE_BYTES_PER_PARAMETER = Assumed(
    14.0, 12.0, 18.0, "bytes", "16-bit weights, 32-bit master weights and two AdamW moments"
)
WEIGHT_BYTES_PER_PARAMETER = Assumed(2.0, 2.0, 4.0, "bytes", "the final weights in 16 bits")
EVALUATION_FRACTION = Assumed(
    0.20, 0.02, 0.40, "fraction", "hours of whole runs beside their steps: evaluations, data stalls, slower phases"
)

# Monthly share of interrupted instances where the offer has no measurement: the lowest bucket that a provider
# publishes, and a loss in ten available hours, as the calmest zone of the published traces shows.
_UNMEASURED_MONTHLY_LOW = 0.05
_UNMEASURED_HIGH_PER_HOUR = 0.1
_OPEN_BUCKET_MONTHLY_HIGH = 0.5  # upper end of a bucket published as "more than 20 %"


class AssumptionBook(Struct, frozen=True):
    """Assumptions from the tables, by item: low, typical, high, unit, source."""

    rows: Mapping[str, Mapping[str, Any]]

    def typical(self, item: str) -> float:
        """Return the typical value of an item."""
        return self.three(item)[1]

    def three(self, item: str) -> tuple[float, float, float]:
        """Return low, typical and high of an item; a missing end is the typical value."""
        if item not in self.rows or self.rows[item]["typical"] is None:
            raise DataError(f"no typical value for {item!r}; the engine needs it", file="pricing/ownership.csv")
        row = self.rows[item]
        middle = float(row["typical"])
        low, high = row.get("low"), row.get("high")
        return (middle if low is None else float(low)), middle, (middle if high is None else float(high))

    def has(self, item: str) -> bool:
        """Tell whether the tables hold an item."""
        return item in self.rows and self.rows[item]["typical"] is not None

    def source(self, item: str) -> str:
        """Return the source of an item."""
        return str(self.rows[item]["source_id"] or "")


def make_book(*tables: Sequence[Mapping[str, Any]]) -> AssumptionBook:
    """Gather the rows of several tables by item."""
    return AssumptionBook({str(row["item"]): row for table in tables for row in table if row.get("item")})


def failures_per_gpu_year(book: AssumptionBook) -> tuple[float, float, float]:
    """Return low, typical and high interruptions by hardware and software faults, per GPU-year.

    Typical: Llama 3 405B (arXiv:2407.21783, table 5); the ends: node failures of two research clusters
    (arXiv:2410.21680), per 1,000 node-days × 365 ÷ 8 GPUs.
    """
    calm, _, rough = book.three("node_failure_rate_a100")
    typical = book.typical("job_interruptions_llama3")
    per_year = DAYS_PER_YEAR / 1000 / _GPUS_PER_NODE
    return min(calm * per_year, typical), typical, max(rough * per_year, typical)


# --- How often an offer is interrupted, what that costs, and where such an offer may stand: one rule for every
# question.
#
# How often, for every interruptible offer, so that all of them compete at their expected cost:
#
# 1. what was measured or published for this provider, instance and region; 2. else the spread over the products of
# the same provider in the same region class (the first part of a region's name: us, eu, ap …), else over all its
# regions: 10th, 50th and 90th percentile, which hold 80 % of products; 3. else, where nobody measured the provider:
# from the lowest bucket that a provider publishes to a loss in ten hours, as the calmest of the published traces
# shows; the typical rate is the geometric middle.
#
# Work that saves its state is done again: it takes the hours of `held_ratio`, and the cheapest stands first, whether
# it may be interrupted or not. Requests in flight are lost: of services those that stay stand apart, first
# (`gpucost.market.table.standing`).

Row = Mapping[str, Any]
_Triple = tuple[float, float, float]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

_LOW, _MIDDLE, _HIGH = 0.1, 0.5, 0.9
_FEWEST = 3  # products from which a spread is read


class Rate(NamedTuple):
    """Preemptions per node-hour: low, typical and high, and whether they are of this product."""

    three: _Triple
    measured: bool


class InterruptionRates:
    """The rates of interruption of a market."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._measured = _measured(rows)
        self._priors: dict[tuple[str, str], Rate] = {}  # by provider and region class, "" over all its regions
        products = [(name[0], _region_class(name[2]), _of_product(rows)) for name, rows in self._measured.items()]
        for provider, area in {(seller, of) for seller, class_, _ in products for of in (class_, "")}:
            rates = [rate for seller, class_, rate in products if seller == provider and class_.startswith(area)]
            if len(rates) >= _FEWEST:
                low, typical, high = (
                    float(np.quantile(column, share, method="nearest"))  # a rate that a product has, none between two
                    for column, share in zip(zip(*rates, strict=True), (_LOW, _MIDDLE, _HIGH), strict=True)
                )
                self._priors[provider, area] = Rate((low, typical, high), False)

    def of_offer(self, offer: Offer) -> Rate:
        """Return the rate of an offer: none where it stays; what is held for so long only is lost at that age too."""
        rule = OPTIONS[offer.option]
        if not rule.interruptible:
            return Rate((0.0, 0.0, 0.0), True)
        rate = self.of(offer.provider, offer.instance_type, offer.region)
        low, typical, high = (value + 1 / rule.longest_hours for value in rate.three)
        return Rate((low, typical, high), rate.measured)

    def of(self, provider: str, instance_type: str, region: str) -> Rate:
        """Return the rate of one product in one region."""
        measured = self._measured.get((provider, instance_type, region))
        if measured:
            return Rate(_of_product(measured), True)
        for area in (_region_class(region), ""):
            if (provider, area) in self._priors:
                return self._priors[provider, area]
        prior = unmeasured()
        return Rate((prior.low, prior.value, prior.high), False)


def held_ratio(rate: Rate, nodes: float, memory_gb_per_node: float) -> float:
    """Return the hours paid ÷ hours of work of a job over so many nodes that saves as often as is best.

    A job stops when any of its nodes stops. Its state is at most what the accelerators hold, written by all nodes at
    once. Nobody needs more hours for an offer that stays:

    >>> held_ratio(Rate((0.0, 0.0, 0.0), True), 8, 640)
    1.0
    """
    stops = np.array([rate.three[1] * nodes])
    save = np.array([memory_gb_per_node / WRITE_GB_PER_S_PER_NODE.value / SECONDS_PER_HOUR])
    # a job over very many nodes never ends: its stretch is infinite, and no warning
    with np.errstate(over="ignore"):
        interval = spot.optimal_interval_hours(stops, save)
        return float(spot.stretch_ratio(stops, interval, save, np.array([RESTART_HOURS.value]))[0])


def long_run_ratio(gpus: float, node_gpus: float, parameters: float, failures_per_gpu_year: float) -> float:
    """Return the hours of a long run ÷ the hours of its steps: what stands beside them, and what failures cost.

    (1 + 0.2) · stretch, as in the bill of a plan. Failures grow with the accelerators: a job stops when one of them
    does, saves as often as is best, and does again what it lost. At 0.173 per accelerator and year, as of Llama 3 405B
    (arXiv:2407.21783, table 5), one node runs 82,000 hours between stops and 2,048 nodes three:

    >>> round(long_run_ratio(8, 8, 8e9, 0.173), 3), round(long_run_ratio(16_384, 8, 405e9, 0.173), 3)
    (1.203, 1.322)
    """
    nodes, rate = max(gpus / node_gpus, 1.0), failures_per_gpu_year * min(node_gpus, gpus) / HOURS_PER_YEAR
    state_gb = parameters * STATE_BYTES_PER_PARAMETER.value / GB
    return (1 + EVALUATION_FRACTION.value) * held_ratio(Rate((rate,) * 3, True), nodes, state_gb / nodes)


def _region_class(region: str | None) -> str:
    """Return the class of a region: the first part of its name.

    >>> _region_class("us-east-1"), _region_class("eu-west-1"), _region_class(None)
    ('us', 'eu', '')
    """
    return (region or "").lower().partition("-")[0]


@cache
def unmeasured() -> Assumed:
    """Return the prior of a provider that nobody measured."""
    low, high = _from_monthly(_UNMEASURED_MONTHLY_LOW), _UNMEASURED_HIGH_PER_HOUR
    reason = "interruptible offers of providers that nobody measured"
    return Assumed((low * high) ** 0.5, low, high, "per node-hour", reason)


def _of_product(rows: Iterable[Row]) -> _Triple:
    """Return low, typical and high preemptions per node-hour; the typical one is the geometric middle."""
    lows, highs = [], []
    for row in rows:
        if row["kind"] != "bucket":
            low = high = float(row["interruptions_per_instance_hour"])
        else:  # a bucket from zero starts at a tenth of its end: the geometric middle needs a start above 0
            end = row["interruptions_per_instance_hour_high"]
            high = _from_monthly(_OPEN_BUCKET_MONTHLY_HIGH) if end is None else float(end)
            low = float(row["interruptions_per_instance_hour_low"] or 0.0) or high / 10
        lows.append(low)
        highs.append(high)
    low, high = min(lows), max(highs)
    return low, (low * high) ** 0.5, high


def _from_monthly(fraction: float) -> float:
    return float(spot.rate_from_monthly_fraction(np.array([fraction]))[0])


def _measured(rows: Sequence[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Return per provider, instance and region the newest published bucket, then the traces of held instances."""
    rows_by_product: dict[tuple[str, str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["kind"] != "bucket", row["observed_on"]), reverse=True):
        name = (row["provider"], row["instance_type"], row["region"])
        if row["kind"] == "bucket" and all(earlier["kind"] != "bucket" for earlier in rows_by_product.get(name, [])):
            rows_by_product.setdefault(name, []).insert(0, row)
        elif row["kind"] == "trace":
            rows_by_product.setdefault(name, []).append(row)
    return rows_by_product


def typical_wait_hours(rows: Sequence[Row]) -> float:
    """Return the median wait for capacity over the published traces; an hour where there is none."""
    # a bucket says how often, and nothing of how long
    both = [
        row
        for row in rows
        if row["kind"] != "bucket" and row["availability_fraction"] and row["interruptions_per_instance_hour"]
    ]
    if not both:
        return 1.0
    rate = np.array([row["interruptions_per_instance_hour"] for row in both], np.float64)
    open_fraction = np.array([row["availability_fraction"] for row in both], np.float64)
    return median(spot.wait_hours_per_interruption(open_fraction, 1 / rate).tolist())


def median(values: Iterable[float]) -> float:
    """Return the median of one value or more; that of numpy would load numpy.ma.

    >>> median([3.0, 1.0, 2.0]), median([4.0, 1.0])
    (2.0, 2.5)
    """
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
