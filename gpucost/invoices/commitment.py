"""How much to commit for a demand: the agreements that hold, the regret of each level, and what expires."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import NamedTuple

import numpy as np

from gpucost.answers.common import CitedSource, Frame
from gpucost.answers.invoices import CommitLevel, Commitment, CommittedMonth, Rung
from gpucost.arguments.kinds import numbers
from gpucost.errors import DataError, UsageError
from gpucost.gate import in_small, read_table, repeated, shown
from gpucost.money.commitments import (
    Agreement,
    Usage,
    advised,
    level,
    of_kind,
    quantile,
    regret,
    stacked,
)
from gpucost.money.private_discount import paid_fraction
from gpucost.schemas import typed
from gpucost.units import (
    HOURS_PER_DAY,
    HOURS_PER_MONTH,
    HOURS_PER_YEAR,
    SECONDS_PER_HOUR,
    SMALLEST,
    as_number,
    months_after,
    share_in,
)

# --- Files of a finance desk: the agreements that hold (commitments, discounts, credits), and a history of use.

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


class OpenTerms(NamedTuple):
    """What a file of FOCUS commitments leaves open: a price under a plan, exchange rates, the GPUs of an instance."""

    committed_usd_per_gpu_hour: float
    usd_per_unit: Callable[[str], float]
    gpus_of: Callable[[str], int]  # the GPUs of an instance type that a text names; 0 where it names none


def read_agreements(path: str | None, facts: OpenTerms | None = None) -> tuple[list[Agreement], list[str]]:
    """Read one agreement a row, and what is to be said of them; what a kind needs must be there, and nothing else.

    A file of FOCUS 1.3's Contract Commitment dataset is read, too.
    """
    if path is None:
        return [], []
    header, rows = read_table(path)
    if _FOCUS_SIGN in header:
        return _focus_agreements(path, header, rows, facts)
    if unknown := [name for name in header if name not in COLUMNS]:
        raise DataError(f"is not a column of agreements: {', '.join(COLUMNS)}", file=path, row=1, column=unknown[0])
    typed.refuse_incomplete(path, header, rows, COLUMNS[:4])
    agreements = [_agreement(path, number, row) for number, row in rows]
    names = [agreement.name for agreement in agreements]
    if twice := repeated(names):
        raise DataError(f"names {shown(twice[0])} twice", file=path)
    return agreements, []


# --- The Contract Commitment dataset of FOCUS 1.3 (focus.finops.org/focus-specification/v1-3).

_FOCUS_SIGN = "ContractCommitmentId"
_FOCUS = {name: f"ContractCommitment{name}" for name in ("Category", "Cost", "PeriodStart", "PeriodEnd")}
_FOCUS_HOURS = ("hour", "hours", "hrs", "gpu-hours", "gpu hours")
_OTHER = re.compile(r"\b(storage|database|network|egress|support)\b", re.IGNORECASE)
_DISCOUNTED = re.compile(r"savings\s*plan|committed\s*use", re.IGNORECASE)


def _focus_agreements(
    path: str, header: Sequence[str], rows: Sequence[tuple[int, Mapping[str, str]]], facts: OpenTerms | None
) -> tuple[list[Agreement], list[str]]:
    """Turn commitments into agreements.

    A savings plan or a spend-based discount is a spend an hour, a spend beside it what is owed in a year; a use in
    hours is a reservation of so many instances, with as many GPUs as the instance that its text names.
    """
    typed.refuse_incomplete(path, header, rows, (_FOCUS_SIGN, *_FOCUS.values()))
    agreements: list[Agreement] = []
    alone: list[str] = []
    others: list[str] = []
    for number, row in rows:
        name, text = (
            row[_FOCUS_SIGN],
            f"{row.get('ContractCommitmentType', '')} {row.get('ContractCommitmentDescription', '')}",
        )
        start, end = (_focus_time(path, number, _FOCUS[key], row) for key in ("PeriodStart", "PeriodEnd"))
        if end <= start:
            raise DataError("ends before it starts", file=path, row=number, column=_FOCUS["PeriodEnd"])
        code = row.get("BillingCurrency") or "USD"
        rate = 1.0 if code == "USD" or facts is None else facts.usd_per_unit(code)
        usd = _number(path, number, _FOCUS["Cost"], row.get(_FOCUS["Cost"], "")) * rate
        hours = (end - start).total_seconds() / SECONDS_PER_HOUR
        category = row.get(_FOCUS["Category"], "").lower()
        if _OTHER.search(text):
            others.append(name)
            continue
        if category == "spend" and _DISCOUNTED.search(text):
            price = facts.committed_usd_per_gpu_hour if facts else 0.0
            agreements.append(
                Agreement(name, "savings_plan", start, end, usd_per_hour=usd / hours, usd_per_gpu_hour=price)
            )
        elif category == "spend":
            agreements.append(Agreement(name, "annual", start, end, usd=usd * HOURS_PER_YEAR / hours))
        elif category == "usage":
            column = "ContractCommitmentQuantity"
            if row.get("ContractCommitmentUnit", "").lower() not in _FOCUS_HOURS:
                reason = f"{shown(row.get('ContractCommitmentUnit', ''))} is not a use in hours. Leave the row out."
                raise DataError(reason, file=path, row=number, column="ContractCommitmentUnit")
            quantity = _number(path, number, column, row.get(column, ""))
            per_instance = facts.gpus_of(text) if facts else 0
            if not per_instance:
                alone.append(name)
            gpus = quantity / hours * (per_instance or 1)
            agreements.append(
                Agreement(name, "reservation", start, end, gpus=gpus, usd_per_gpu_hour=usd / (gpus * hours))
            )
        else:
            reason = f"{shown(row.get(_FOCUS['Category'], ''))} is neither Spend nor Usage"
            raise DataError(reason, file=path, row=number, column=_FOCUS["Category"])
    if twice := repeated(agreement.name for agreement in agreements):
        raise DataError(f"names {shown(twice[0])} twice", file=path)
    notes = []
    if alone:
        notes.append(
            f"{len(alone):,} commitments in hours name no instance type of the catalog, such as {alone[0]}: each hour"
            " is taken as that of one GPU."
        )
    if others:
        notes.append(f"left out, as their text says that they are for something else: {', '.join(others)}.")
    return agreements, notes


def _focus_time(path: str, number: int, column: str, row: Mapping[str, str]) -> datetime:
    return _moment(path, number, column, row.get(column, "")).utc


def _agreement(path: str, number: int, row: Mapping[str, str]) -> Agreement:
    kind = row.get("kind", "")
    if kind not in NEEDS:
        raise DataError(f"{shown(kind)} is not one of {', '.join(NEEDS)}", file=path, row=number, column="kind")
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
        raise DataError(
            f"{shown(text)} is not a day such as 2026-11-01", file=path, row=number, column=column
        ) from None
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
            f"usage: expected GPUs by hour, each a number up to {_HIGHEST:,.0f}, none negative or missing, not all"
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
    gpus_by_time: dict[datetime, float] = {}
    exact: dict[datetime, datetime] = {}
    for (number, row), moment in zip(rows, moments, strict=True):
        at = moment.local if daily else moment.utc.replace(minute=0, second=0, microsecond=0)
        if exact.setdefault(at, moment.utc) != moment.utc and not daily:
            of_hour = "mean of its GPUs" if amount == "gpus" else "sum of its GPU-hours"
            reason = f"is in an hour that has a row already: give each hour one row, the {of_hour}"
            raise DataError(reason, file=path, row=number, column=times)
        if at in gpus_by_time:
            raise DataError("appears twice: add up the rows of the same time", file=path, row=number, column=times)
        gpus_by_time[at] = _amount(path, number, amount, row.get(amount, ""))
    hours = HOURS_PER_DAY if daily else 1.0
    starts = np.array(sorted(gpus_by_time), dtype="datetime64[s]")
    gpus = np.array([gpus_by_time[at] for at in sorted(gpus_by_time)]) / (hours if amount == "gpu_hours" else 1.0)
    if gpus.max() <= 0:
        raise DataError("is zero in every row: nothing to commit for", file=path, column=amount)
    spanned = round((starts[-1] - starts[0]) / np.timedelta64(int(hours), "h")) + 1
    unit = "days" if daily else "hours"
    notes = (
        [f"{spanned - len(gpus_by_time):,} of {spanned:,} {unit} are missing: left out."]
        if spanned > len(gpus_by_time)
        else []
    )
    return Usage(starts, hours, gpus), notes


def _only(path: str, header: Sequence[str], names: Sequence[str]) -> str:
    """Return the column of a header that bears one of the names, empty where none does; two are refused."""
    columns = [name for name in names if name in header]
    if len(columns) > 1:
        raise DataError(f"has the columns {columns[0]} and {columns[1]}, which may differ. Keep one.", file=path, row=1)
    return columns[0] if columns else ""


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
        raise DataError(f"{shown(text)} is not a day or hour", file=path, row=number, column=column) from None
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
        raise DataError(
            f"{shown(text)} is not a number from 0 to {_HIGHEST:,.0f}", file=path, row=number, column=column
        )
    return value


# --- The answer: how much to commit for a demand, its regret, what the agreements make of it, and when they end.

_MOST_RUNGS = 24
MOST_MONTHS = 240  # of the table by month: twice the longest term


class CommitTerms(NamedTuple):
    """What is asked: prices, the term of what is bought, its unit, in how many purchases."""

    price: float
    committed_price: float
    term_months: int
    step_gpus: float
    rungs: int
    prices: list[str]  # where the prices come from
    sources: dict[str, CitedSource]


def committed(
    frame: Frame, usage: Usage, notes: list[str], held: Sequence[Agreement], terms: CommitTerms
) -> Commitment:
    """Return the advice for a history of use."""
    today, listed = datetime.fromisoformat(frame["as_of"]), terms.price
    active = [
        agreement
        for agreement in of_kind(held, "reservation", "savings_plan")
        if agreement.start <= today < agreement.end
    ]
    terms, price = _stacked_prices(today, held, terms)
    ratio = max(1 - terms.committed_price / price, 0.0)
    has = sum(agreement.covered_gpus for agreement in active)
    alone, buy = (advised(usage.gpus, price, terms.committed_price, terms.step_gpus, held) for held in (0.0, has))
    best = has + buy if buy else min(alone, has)
    low, high = quantile(usage.gpus, 0.1), quantile(usage.gpus, 0.9)
    marks = {
        "nothing": 0.0,
        "10 % of hours": low,
        "half of hours": quantile(usage.gpus, 0.5),
        "advised": best,
        "90 % of hours": high,
        "peak": float(usage.gpus.max()),
        "held": has,
    }
    levels = [_level(name, gpus, usage, price, terms.committed_price, low, high) for name, gpus in marks.items()]
    costs = {row["level"]: row for row in levels}
    rungs = _rungs(today, buy, alone, active, terms)
    saving = costs["nothing"]["usd_per_month"] - costs["advised"]["usd_per_month"]
    headline = _headline(best, buy, has, ratio, saving, terms)
    return {
        "kind": "commitment",
        **frame,
        "headline": headline,
        "lead": f"{headline} {_reason(ratio, price, costs, terms)}",
        "usage": {
            "hours": usage.gpus.size * usage.hours,
            "mean_gpus": float(usage.gpus.mean()),
            "p10_gpus": low,
            "p50_gpus": marks["half of hours"],
            "p90_gpus": high,
            "peak_gpus": marks["peak"],
        },
        "usd_per_gpu_hour": price,
        "committed_usd_per_gpu_hour": terms.committed_price,
        "critical_fraction": ratio,
        "term_months": terms.term_months,
        "advised_gpus": best,
        "held_gpus": has,
        "saving_usd_per_month": saving,
        "levels": sorted(levels if has else levels[:-1], key=lambda row: row["gpus"]),
        "bill": [
            {"line": name, "cost_usd": cost}
            for name, cost in stacked(usage, listed, held).items()
            if cost or name in ("at list", "total")
        ],
        "rungs": rungs,
        "by_month": _by_month(today, rungs, terms.term_months),
        "prices": terms.prices,
        "warnings": [*notes, *_warnings(usage, today, held)],
        "sources": terms.sources,
    }


def _stacked_prices(today: datetime, held: Sequence[Agreement], terms: CommitTerms) -> tuple[CommitTerms, float]:
    """Return what is wanted at the prices of today's agreements, and the price without a commitment.

    A contract's price replaces all; else the best private percentage comes off, also of what a commitment costs.
    """

    def now(kind: str) -> list[Agreement]:
        return [agreement for agreement in of_kind(held, kind) if agreement.start <= today < agreement.end]

    share = min((paid_fraction(agreement.fraction, None, terms.price) for agreement in now("private")), default=1.0)
    if share * terms.price < SMALLEST or share * terms.committed_price < SMALLEST:
        raise UsageError("a private discount covers the whole price, so there is nothing to commit to.")
    notes = terms.prices
    if share < 1:
        notes = [*notes, f"a private discount of {1 - share:.1%} comes off the price and off the committed one"]
    contract = next((agreement.usd_per_gpu_hour for agreement in now("contract")), None)
    price = terms._replace(price=terms.price * share, committed_price=terms.committed_price * share, prices=notes)
    return price, price.price if contract is None else contract


def _level(
    name: str, gpus: float, usage: Usage, price: float, committed_price: float, low: float, high: float
) -> CommitLevel:
    cost_level = level(usage.gpus, gpus, price, committed_price)
    return {
        "level": name,
        "gpus": gpus,
        "usd_per_month": cost_level.usd_per_hour * HOURS_PER_MONTH,
        "covered_fraction": cost_level.covered_fraction,
        "unused_fraction": cost_level.unused_fraction,
        "regret_low_usd_per_month": regret(gpus, low, price, committed_price) * HOURS_PER_MONTH,
        "regret_high_usd_per_month": regret(gpus, high, price, committed_price) * HOURS_PER_MONTH,
    }


def _rungs(today: datetime, buy: float, alone: float, active: Sequence[Agreement], terms: CommitTerms) -> list[Rung]:
    """Return what is held and what to buy: what lacks now, in so many purchases over the term, and what ends anew.

    What ends is renewed up to what one would commit with nothing held, `alone`.
    """
    rungs: list[Rung] = [
        _rung(agreement.name, True, agreement.covered_gpus, agreement.start, agreement.end, agreement.usd_per_gpu_hour)
        for agreement in active
    ]
    units = round(buy / terms.step_gpus)
    for number in range(terms.rungs):
        steps = units * (number + 1) // terms.rungs - units * number // terms.rungs
        start = months_after(today, number * terms.term_months // terms.rungs)
        if steps:
            end = months_after(start, terms.term_months)
            rungs.append(_rung(f"buy {number + 1}", False, steps * terms.step_gpus, start, end, terms.committed_price))
    until = months_after(today, terms.term_months)
    room = alone - buy - sum(agreement.covered_gpus for agreement in active if agreement.end >= until)
    for agreement in active:
        if agreement.end < until and (gpus := min(agreement.covered_gpus, room)) > 0:
            room -= gpus
            end = months_after(agreement.end, terms.term_months)
            rungs.append(_rung(f"renew {agreement.name}", False, gpus, agreement.end, end, terms.committed_price))
    return rungs


def _rung(name: str, held: bool, gpus: float, start: datetime, end: datetime, price: float) -> Rung:
    return {
        "name": name,
        "held": held,
        "gpus": gpus,
        "from_day": f"{start:%Y-%m-%d}",
        "until_day": f"{end:%Y-%m-%d}",
        "usd_per_month": gpus * price * HOURS_PER_MONTH,
    }


def _by_month(today: datetime, rungs: Sequence[Rung], term_months: int) -> list[CommittedMonth]:
    """Return what is committed at the start of each month, and what ends in it, until the last one has ended.

    What is bound without an end in sight is shown for twenty years.
    """
    last = max((rung["until_day"] for rung in rungs), default=f"{months_after(today, term_months):%Y-%m-%d}")
    months: list[CommittedMonth] = []
    month, until = today.replace(day=1), months_after(today, MOST_MONTHS)
    while f"{month:%Y-%m-%d}" <= last and month <= until:
        day, after = (f"{max(month_start, today):%Y-%m-%d}" for month_start in (month, months_after(month, 1)))
        running = [rung for rung in rungs if rung["from_day"] <= day < rung["until_day"]]
        ending = [rung for rung in rungs if day <= rung["until_day"] < after]
        months.append(
            {
                "month": f"{month:%Y-%m-%d}",
                "held_gpus": sum(rung["gpus"] for rung in running if rung["held"]),
                "committed_gpus": sum(rung["gpus"] for rung in running),
                "ending_gpus": sum(rung["gpus"] for rung in ending),
                "ending_usd_per_month": sum(rung["usd_per_month"] for rung in ending),
            }
        )
        month = months_after(month, 1)
    return months


def _headline(best: float, buy: float, has: float, ratio: float, saving: float, terms: CommitTerms) -> str:
    term = f"{terms.term_months} months"
    if not best:
        why = "it is no cheaper than on demand" if not ratio else "the demand is too seldom there"
        return f"Commit nothing for {term}: {why}."
    held_text = f", {_count(buy)} beside the {_count(has)} held" if has else ""
    return f"Commit {_count(best)} GPUs for {term}{held_text}: {saving:,.0f} USD a month less than on demand alone."


def _count(gpus: float) -> str:
    return f"{gpus:,.1f}".removesuffix(".0")


def _reason(ratio: float, price: float, costs: dict[str, CommitLevel], terms: CommitTerms) -> str:
    row = costs["advised"]
    pays = f"pays once it is used in {1 - ratio:.0%} of the hours" if ratio else "never pays"
    return (
        f"At {terms.committed_price:,.2f} against {price:,.2f} USD per GPU-hour a committed GPU {pays}."
        f" Had the demand stayed at its 10 % (90 %) level, it would cost"
        f" {row['regret_low_usd_per_month']:,.0f} ({row['regret_high_usd_per_month']:,.0f}) USD a month more than the"
        " best amount for that. The next term is taken to be like the history."
    )


def _warnings(usage: Usage, today: datetime, held: Sequence[Agreement]) -> list[str]:
    warnings = []
    if usage.gpus.size * usage.hours < HOURS_PER_MONTH:
        warnings.append(
            f"The history covers {usage.gpus.size * usage.hours / 24:,.0f} days: less than a month says little."
        )
    warnings += [f"{agreement.name} ended on {agreement.end:%Y-%m-%d}." for agreement in held if agreement.end <= today]
    return warnings


def refuse(terms: CommitTerms) -> None:
    """Refuse more purchases than a term has room for."""
    if terms.rungs > min(_MOST_RUNGS, terms.term_months):
        raise UsageError(f"--rungs {terms.rungs}: at most one purchase a month of the term, and {_MOST_RUNGS} in all.")
