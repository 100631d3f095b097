"""What day it is. Everything that depends on the day asks here, so that one variable sets the day of a whole process
and of those it starts: `GPUCOST_TODAY=2026-11-28`.
"""

import os
from datetime import UTC, date, datetime

from gpucost.errors import UsageError

VARIABLE = "GPUCOST_TODAY"


def today() -> date:
    """Return the day that the variable sets, else the computer's."""
    if not (text := os.environ.get(VARIABLE, "").strip()):
        return date.today()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"environment variable {VARIABLE}: {text!r} is not a day. Write YYYY-MM-DD, or unset it."
        ) from None


def now() -> datetime:
    """Return the computer's time of day, in UTC, on the day that the variable sets: when something was made."""
    time = instant()  # in UTC: `timetz` below keeps the zone, which a date has none of
    return datetime.combine(today(), time.timetz()) if os.environ.get(VARIABLE, "").strip() else time


def instant() -> datetime:
    """Return the computer's own time, whatever day is set: for what a server compares with its clock."""
    return datetime.now(UTC)
