"""What the engine assumes about a run beside its training steps; each value is marked and has a range."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpucost.errors import DataError
from gpucost.frozen import Frozen
from gpucost.money.training_bill import RAMP_ENDS
from gpucost.units import DAYS_PER_YEAR

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
UNMEASURED_MONTHLY_LOW = 0.05
UNMEASURED_HIGH_PER_HOUR = 0.1
OPEN_BUCKET_MONTHLY_HIGH = 0.5  # upper end of a bucket published as "more than 20 %"


class AssumptionBook(Frozen):
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
