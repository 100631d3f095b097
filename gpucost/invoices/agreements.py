"""Files of a finance desk: the agreements that hold (commitments, discounts, credits), and a history of use."""

from calendar import monthrange
from collections.abc import Mapping, Sequence
from datetime import MAXYEAR, UTC, date, datetime, time
from typing import NamedTuple

import numpy as np

from gpucost.arguments.columns import numbers
from gpucost.errors import DataError, UsageError
from gpucost.gate import in_small, read_table, repeated, shown
from gpucost.money.stacking import Agreement, Usage
from gpucost.schemas.typed import filled
from gpucost.units import HOURS_PER_DAY, as_number, share_in

# kind -> the columns that it needs beside name, kind, start and end; the cap of a credit may be left out
NEEDS = {
    "contract": ("usd_per_gpu_hour",),
    "reservation": ("gpus", "usd_per_gpu_hour"),
    "savings_plan": ("usd_per_hour", "usd_per_gpu_hour"),
    "private": ("fraction",),
    "credit": ("usd",),
    "annual": ("usd",),
}
NUMBERS = ("gpus", "usd_per_gpu_hour", "usd_per_hour", "usd", "usd_per_month", "fraction")
COLUMNS = ("name", "kind", "start", "end", *NUMBERS)
TIMES, AMOUNTS = ("time", "hour", "day", "date", "on"), ("gpus", "gpu_hours")
_LOWEST, _HIGHEST = 1e-9, 1e12


def read_agreements(path: str | None) -> list[Agreement]:
    """Read one agreement a row; what a kind needs must be there, and nothing that it does not know."""
    if path is None:
        return []
    header, rows = read_table(path)
    if unknown := [name for name in header if name not in COLUMNS]:
        raise DataError(f"is no column of agreements: {', '.join(COLUMNS)}", file=path, row=1, column=unknown[0])
    filled(path, header, rows, COLUMNS[:4])
    found = [_agreement(path, number, row) for number, row in rows]
    names = [one.name for one in found]
    if twice := repeated(names):
        raise DataError(f"names {shown(twice[0])} twice", file=path)
    return found


def _agreement(path: str, number: int, row: Mapping[str, str]) -> Agreement:
    kind = row.get("kind", "")
    if kind not in NEEDS:
        raise DataError(f"{shown(kind)} is none of {', '.join(NEEDS)}", file=path, row=number, column="kind")
    allowed = ("name", "kind", "start", "end", *NEEDS[kind], *(("usd_per_month",) if kind == "credit" else ()))
    if wrong := next((name for name in row if name not in allowed), None):
        raise DataError(f"a {kind} has no {wrong}; it has {', '.join(allowed)}", file=path, row=number, column=wrong)
    if lacking := next((name for name in ("name", "start", "end", *NEEDS[kind]) if name not in row), None):
        raise DataError("is missing", file=path, row=number, column=lacking)
    start, end = (_day(path, number, name, row[name]) for name in ("start", "end"))
    if end <= start:
        raise DataError("ends before it starts", file=path, row=number, column="end")
    return Agreement(
        row["name"],
        kind,
        start,
        end,
        **{name: _number(path, number, name, cell) for name, cell in row.items() if name in NUMBERS},
    )


def _day(path: str, number: int, column: str, text: str) -> datetime:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise DataError(f"{shown(text)} is no day such as 2026-11-01", file=path, row=number, column=column) from None
    return datetime(day.year, day.month, day.day)


def _number(path: str, number: int, column: str, text: str) -> float:
    try:
        value = share_in(text) if column == "fraction" else as_number(text)
    except ValueError:
        value = -1.0
    if not _LOWEST <= value <= (1 if column == "fraction" else _HIGHEST):
        bound = "a share up to 100%" if column == "fraction" else "a number above 0"
        raise DataError(f"{shown(text)} is not {bound}", file=path, row=number, column=column)
    return value


def usage_of(source: str | Sequence[float], today: date) -> tuple[Usage, list[str]]:
    """Read a history of use, and what is to be said of it; GPUs by hour end today."""
    if isinstance(source, str):
        return _read_usage(source)
    try:
        gpus = numbers(source)
    except (TypeError, ValueError, OverflowError):
        gpus = np.zeros(0)
    if gpus.ndim != 1 or not gpus.size or not ((gpus >= 0) & (gpus <= _HIGHEST)).all() or gpus.max() <= 0:
        raise UsageError(
            f"usage: GPUs by hour are expected, each a number up to {_HIGHEST:,.0f}, none negative or missing, not all"
            " zero."
        )
    end = np.datetime64(today, "s")
    return Usage(end - np.arange(gpus.size, 0, -1) * np.timedelta64(1, "h"), 1.0, gpus), []


def _read_usage(path: str) -> tuple[Usage, list[str]]:
    header, rows = read_table(path)
    times, amount = (_only(path, header, names) for names in (TIMES, AMOUNTS))
    if not times or not amount or not rows:
        hint = in_small(header, () if times and amount else TIMES + AMOUNTS)
        needed = f"needs a column of {', '.join(TIMES)}, one of {' or '.join(AMOUNTS)}, and rows{hint}"
        raise DataError(needed, file=path, row=1)
    moments = [_moment(path, number, times, row.get(times, "")) for number, row in rows]
    daily = _are_days(path, times, [number for number, _ in rows], moments)
    found: dict[datetime, float] = {}
    exact: dict[datetime, datetime] = {}
    for (number, row), moment in zip(rows, moments, strict=True):
        at = moment.local if daily else moment.utc.replace(minute=0, second=0, microsecond=0)
        if exact.setdefault(at, moment.utc) != moment.utc and not daily:
            of_hour = "mean of its GPUs" if amount == "gpus" else "sum of its GPU-hours"
            reason = f"is in an hour that has a row already: give each hour one row, the {of_hour}"
            raise DataError(reason, file=path, row=number, column=times)
        if at in found:
            raise DataError("is there twice: sum the rows of one time", file=path, row=number, column=times)
        found[at] = _amount(path, number, amount, row.get(amount, ""))
    hours = HOURS_PER_DAY if daily else 1.0
    starts = np.array(sorted(found), dtype="datetime64[s]")
    gpus = np.array([found[at] for at in sorted(found)]) / (hours if amount == "gpu_hours" else 1.0)
    if gpus.max() <= 0:
        raise DataError("is zero in every row: nothing to commit for", file=path, column=amount)
    spanned = round((starts[-1] - starts[0]) / np.timedelta64(int(hours), "h")) + 1
    unit = "days" if daily else "hours"
    said = [f"{spanned - len(found):,} of {spanned:,} {unit} are missing: left out."] if spanned > len(found) else []
    return Usage(starts, hours, gpus), said


def _only(path: str, header: Sequence[str], names: Sequence[str]) -> str:
    """Return the column of a header that bears one of the names, empty where none does; two are refused."""
    found = [name for name in names if name in header]
    if len(found) > 1:
        raise DataError(f"has the columns {found[0]} and {found[1]}, which may differ. Keep one.", file=path, row=1)
    return found[0] if found else ""


class _Moment(NamedTuple):
    """A time as it is written and in UTC, and whether it is written as a day alone."""

    local: datetime
    utc: datetime
    bare: bool


def _moment(path: str, number: int, column: str, text: str) -> _Moment:
    try:
        at = datetime.fromisoformat(text.replace("Z", "+00:00"))
        zoned = at.astimezone(UTC) if at.tzinfo else at
    except (ValueError, OverflowError):
        raise DataError(f"{shown(text)} is no day or hour", file=path, row=number, column=column) from None
    return _Moment(at.replace(tzinfo=None), zoned.replace(tzinfo=None), len(text) <= len("2026-01-01"))


def _are_days(path: str, column: str, lines: Sequence[int], moments: Sequence[_Moment]) -> bool:
    """Return whether times are days: written so, or all of them midnights; days among hours are refused."""
    days = [number for number, moment in zip(lines, moments, strict=True) if moment.bare]
    if all(moment.local.time() == time.min for moment in moments):
        return bool(days) or len(moments) > 1 or column in ("day", "date")
    if days:
        reason = "is a day among hours: write every row as a day or every row as an hour"
        raise DataError(reason, file=path, row=days[0], column=column)
    return False


def _amount(path: str, number: int, column: str, text: str) -> float:
    try:
        value = as_number(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _HIGHEST:
        raise DataError(f"{shown(text)} is no number from 0 to {_HIGHEST:,.0f}", file=path, row=number, column=column)
    return value


def months_after(day: datetime, months: int) -> datetime:
    """Return the day that lies a number of months later; the last of a month where it has fewer days, and of time.

    >>> months_after(datetime(2026, 1, 31), 1)
    datetime.datetime(2026, 2, 28, 0, 0)
    """
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if year > MAXYEAR:
        return datetime(MAXYEAR, 12, 31)
    return datetime(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
