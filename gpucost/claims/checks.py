"""One check of a claim: what was claimed, what it implies, what would be true, and the verdict."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import cast

from gpucost.answers.checks import CheckRow

POSSIBLE, IMPLAUSIBLE, IMPOSSIBLE, UNKNOWN = "possible", "implausible", "impossible", "unknown"
_ORDER = (POSSIBLE, UNKNOWN, IMPLAUSIBLE, IMPOSSIBLE)


@dataclass(frozen=True, slots=True)
class Check:
    """One check; `value` is what the claim says or implies, `low`, `typical` and `high` are what would be true."""

    name: str
    verdict: str
    value: float | None
    low: float | None
    typical: float | None
    high: float | None
    unit: str
    explanation: str

    def as_dict(self) -> CheckRow:
        """Return the check as JSON-able fields."""
        return cast(CheckRow, asdict(self))


def worst(verdicts: Sequence[str]) -> str:
    """Return the worst of several verdicts.

    >>> worst(["possible", "impossible", "implausible"])
    'impossible'
    """
    return max(verdicts, key=_ORDER.index) if verdicts else UNKNOWN
