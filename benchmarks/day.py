"""The day on which tests ask and pictures and pages are made: none of them changes by waiting.

python -m benchmarks.day    prints it, for a program that shall ask on it too: GPUCOST_TODAY=$(python -m benchmarks.day)
"""

import csv
import os
from datetime import date
from functools import cache
from pathlib import Path

from gpucost import clock

ROOT = Path(__file__).resolve().parent.parent
DAY = date(2026, 11, 28)  # later facts move it on; else it is raised when everything is made anew
# columns that say when somebody saw a fact; others, such as when a price begins, may lie ahead
_SEEN = ("observed_on", "recorded_on", "accessed_on")


@cache
def fixed_day() -> date:
    """Return the day, or that of the newest fact where facts came after it: none of them lies in the future then."""
    days: set[str] = set()
    for folder in ("pricing", "models"):
        for path in (ROOT / folder).rglob("*.csv"):
            with path.open(encoding="utf-8", newline="") as file:
                rows = csv.reader(file)
                places = [place for place, name in enumerate(next(rows, ())) if name in _SEEN]
                days.update(row[place] for row in rows for place in places if row[place])
    return max(DAY, *map(date.fromisoformat, days))


def stand_still() -> None:
    """Set that day for this process and those it starts."""
    os.environ[clock.VARIABLE] = fixed_day().isoformat()


if __name__ == "__main__":
    print(fixed_day())
