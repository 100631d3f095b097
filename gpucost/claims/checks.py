"""A claim, and one check of it: what was claimed, what it implies, what would be true, and the verdict."""

from collections.abc import Sequence
from typing import NamedTuple

POSSIBLE, IMPLAUSIBLE, IMPOSSIBLE, UNKNOWN = "possible", "implausible", "impossible", "unknown"
_ORDER = (POSSIBLE, UNKNOWN, IMPLAUSIBLE, IMPOSSIBLE)


class Claim(NamedTuple):
    """What someone says; None is not said."""

    model: str | None = None
    tokens: float | None = None
    gpu: str | None = None
    gpus: int | None = None
    days: float | None = None
    gpu_hours: float | None = None
    cost_usd: float | None = None
    precision: str | None = None
    method: str = "full"
    sequence_tokens: int | None = None
    fits: str | None = None
    weights_gb: float | None = None
    training_gb: float | None = None
    decode_tokens_per_s: float | None = None
    batch: int = 1
    buy_usd: float | None = None
    rent_usd_per_month: float | None = None
    own_usd_per_month: float | None = None
    payback_months: float | None = None
    gpu_hours_per_month: float | None = None
    discount_fraction: float = 0.10


class Check(NamedTuple):
    """One check; `value` is what the claim says or implies, `low`, `typical` and `high` are what would be true."""

    name: str
    verdict: str
    value: float | None
    low: float | None
    typical: float | None
    high: float | None
    unit: str
    explanation: str


def amount(value: float, digits: int = 2) -> str:
    """Write an amount in words: whole where it has enough digits before the point, else to so many digits.

    >>> amount(1_285_000), amount(57.2), amount(4.73), amount(0.1234), amount(1.953125, 4)
    ('1,285,000', '57', '4.7', '0.12', '1.953')
    """
    return f"{value:,.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def worst(verdicts: Sequence[str]) -> str:
    """Return the worst of several verdicts.

    >>> worst(["possible", "impossible", "implausible"])
    'impossible'
    """
    return max(verdicts, key=_ORDER.index) if verdicts else UNKNOWN
