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
from gpucost.money import commitments
from gpucost.money.commitments import Agreement, Usage
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
_LOWEST, _HIGHEST = 1e-9, 1e12  # of any figure: beyond them stands a slip of the unit


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
    agreements: list[Agreement] = []
    for number, row in rows:
        kind = row.get("kind", "")
        if kind not in NEEDS:
            raise DataError(f"{shown(kind)} is not one of {', '.join(NEEDS)}", file=path, row=number, column="kind")
        # A figure that a kind does not know would be ignored without a word: it is refused.
        allowed = ("name", "kind", "start", "end", *NEEDS[kind], *(("usd_per_month",) if kind == "credit" else ()))
        if wrong := next((name for name in row if name not in allowed), None):
            raise DataError(
                f"a {kind} has no {wrong}; it has {', '.join(allowed)}", file=path, row=number, column=wrong
            )
        if lacking := next((name for name in ("name", "start", "end", *NEEDS[kind]) if name not in row), None):
            raise DataError("is missing", file=path, row=number, column=lacking)
        days = []
        for column in ("start", "end"):
            try:
                days.append(datetime.combine(date.fromisoformat(row[column]), time()))
            except ValueError:
                reason = f"{shown(row[column])} is not a day such as 2026-11-01"
                raise DataError(reason, file=path, row=number, column=column) from None
        if days[1] <= days[0]:
            raise DataError("ends before it starts", file=path, row=number, column="end")
        figures = {name: _number(path, number, name, cell) for name, cell in row.items() if name in NUMBERS}
        agreements.append(Agreement(row["name"], kind, days[0], days[1], **figures))
    if twice := repeated([agreement.name for agreement in agreements]):
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
    without_gpus: list[str] = []
    others: list[str] = []
    for number, row in rows:
        name = row[_FOCUS_SIGN]
        text = f"{row.get('ContractCommitmentType', '')} {row.get('ContractCommitmentDescription', '')}"
        start, end = (
            _moment(path, number, column, row.get(column, "")).utc
            for column in (_FOCUS["PeriodStart"], _FOCUS["PeriodEnd"])
        )
        if end <= start:
            raise DataError("ends before it starts", file=path, row=number, column=_FOCUS["PeriodEnd"])
        code = row.get("BillingCurrency") or "USD"
        rate = 1.0 if code == "USD" or facts is None else facts.usd_per_unit(code)
        usd = _number(path, number, _FOCUS["Cost"], row.get(_FOCUS["Cost"], "")) * rate
        hours = (end - start).total_seconds() / SECONDS_PER_HOUR  # cost and quantity are those of the whole period
        category = row.get(_FOCUS["Category"], "").lower()
        if _OTHER.search(text):
            others.append(name)
            continue
        # A spend that no discount is named for is a promise by the year, whatever it is spent on.
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
                without_gpus.append(name)
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
    if without_gpus:
        notes.append(
            f"{len(without_gpus):,} commitments in hours name no instance type of the catalog, such as"
            f" {without_gpus[0]}: each hour is taken as that of one GPU."
        )
    if others:
        notes.append(f"left out, as their text says that they are for something else: {', '.join(others)}.")
    return agreements, notes


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
    columns = []
    for names in (TIMES, AMOUNTS):
        matches = [name for name in names if name in header]
        if len(matches) > 1:
            reason = f"has the columns {matches[0]} and {matches[1]}, which may differ. Keep one."
            raise DataError(reason, file=path, row=1)
        columns.append(matches[0] if matches else "")
    times, amount = columns
    if not times or not amount or not rows:
        hint = in_small(header, () if times and amount else TIMES + AMOUNTS)
        needed = f"needs a column of {', '.join(TIMES)}, one of {' or '.join(AMOUNTS)}, and rows{hint}"
        raise DataError(needed, file=path, row=1)

    # Times are days where they are written so, or where all of them are midnights; days among hours are refused.
    moments = [_moment(path, number, times, row.get(times, "")) for number, row in rows]
    bare_days = [number for (number, _), moment in zip(rows, moments, strict=True) if moment.bare]
    daily = False
    if all(moment.local.time() == time.min for moment in moments):
        daily = bool(bare_days) or len(moments) > 1 or times in ("day", "date")
    elif bare_days:
        reason = "is a day among hours: write every row as a day or every row as an hour"
        raise DataError(reason, file=path, row=bare_days[0], column=times)

    gpus_by_time: dict[datetime, float] = {}
    exact: dict[datetime, datetime] = {}
    for (number, row), moment in zip(rows, moments, strict=True):
        # days are those of the writer's calendar; hours of several zones meet in UTC
        at = moment.local if daily else moment.utc.replace(minute=0, second=0, microsecond=0)
        if exact.setdefault(at, moment.utc) != moment.utc and not daily:
            of_hour = "mean of its GPUs" if amount == "gpus" else "sum of its GPU-hours"
            reason = f"is in an hour that has a row already: give each hour one row, the {of_hour}"
            raise DataError(reason, file=path, row=number, column=times)
        if at in gpus_by_time:
            raise DataError("appears twice: add up the rows of the same time", file=path, row=number, column=times)
        text = row.get(amount, "")
        try:
            value = as_number(text)
        except ValueError:
            value = -1.0
        if not 0 <= value <= _HIGHEST:
            reason = f"{shown(text)} is not a number from 0 to {_HIGHEST:,.0f}"
            raise DataError(reason, file=path, row=number, column=amount)
        gpus_by_time[at] = value
    hours = HOURS_PER_DAY if daily else 1.0
    starts = np.array(sorted(gpus_by_time), dtype="datetime64[s]")
    gpus = np.array([gpus_by_time[at] for at in sorted(gpus_by_time)]) / (hours if amount == "gpu_hours" else 1.0)
    if gpus.max() <= 0:
        raise DataError("is zero in every row: nothing to commit for", file=path, column=amount)
    # A time without a row is no time without use: it counts neither way.
    spanned = round((starts[-1] - starts[0]) / np.timedelta64(int(hours), "h")) + 1
    missing, unit = spanned - len(gpus_by_time), "days" if daily else "hours"
    notes = [f"{missing:,} of {spanned:,} {unit} are missing: left out."] if missing > 0 else []
    return Usage(starts, hours, gpus), notes


class _Moment(NamedTuple):
    """A time as it is written and in UTC, and whether it is written as a day alone."""

    local: datetime
    utc: datetime
    bare: bool


def _moment(path: str, number: int, column: str, text: str) -> _Moment:
    try:
        # A time without a zone is taken as UTC.
        at = datetime.fromisoformat(text.replace("Z", "+00:00"))
        zoned = at.astimezone(UTC) if at.tzinfo else at
    except (ValueError, OverflowError):
        raise DataError(f"{shown(text)} is not a day or hour", file=path, row=number, column=column) from None
    return _Moment(at.replace(tzinfo=None), zoned.replace(tzinfo=None), len(text) <= len("2026-01-01"))


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
    frame: Frame, usage: Usage, notes: list[str], agreements: Sequence[Agreement], terms: CommitTerms
) -> Commitment:
    """Return the advice for a history of use."""
    today, listed = datetime.fromisoformat(frame["as_of"]), terms.price
    active = [
        agreement
        for agreement in commitments.of_kind(agreements, "reservation", "savings_plan")
        if agreement.start <= today < agreement.end
    ]
    terms, price = _stacked_prices(today, agreements, terms)
    # The critical ratio of the newsvendor: what is used in fewer of the hours than 1 less this does not pay.
    ratio = max(1 - terms.committed_price / price, 0.0)
    has = sum(agreement.covered_gpus for agreement in active)
    alone, buy = (
        commitments.advised(usage.gpus, price, terms.committed_price, terms.step_gpus, committed_gpus)
        for committed_gpus in (0.0, has)
    )
    # Where more is committed than one would commit anew, the advice is that smaller amount: what ends is let go.
    best = has + buy if buy else min(alone, has)
    low, high = commitments.quantile(usage.gpus, 0.1), commitments.quantile(usage.gpus, 0.9)
    # What a reader may choose instead, and what each costs.
    marks = {
        "nothing": 0.0,
        "10 % of hours": low,
        "half of hours": commitments.quantile(usage.gpus, 0.5),
        "advised": best,
        "90 % of hours": high,
        "peak": float(usage.gpus.max()),
        "held": has,
    }
    levels: list[CommitLevel] = []
    for name, gpus in marks.items():
        cost_level = commitments.level(usage.gpus, gpus, price, terms.committed_price)
        # regret: had the demand stayed at its 10 % or its 90 % level
        low_usd, high_usd = (commitments.regret(gpus, demand, price, terms.committed_price) for demand in (low, high))
        levels.append(
            {
                "level": name,
                "gpus": gpus,
                "usd_per_month": cost_level.usd_per_hour * HOURS_PER_MONTH,
                "covered_fraction": cost_level.covered_fraction,
                "unused_fraction": cost_level.unused_fraction,
                "regret_low_usd_per_month": low_usd * HOURS_PER_MONTH,
                "regret_high_usd_per_month": high_usd * HOURS_PER_MONTH,
            }
        )
    costs = {row["level"]: row for row in levels}
    rungs = _rungs(today, buy, alone, active, terms)
    saving = costs["nothing"]["usd_per_month"] - costs["advised"]["usd_per_month"]

    if best:
        beside = f", {_count(buy)} beside the {_count(has)} held" if has else ""
        headline = (
            f"Commit {_count(best)} GPUs for {terms.term_months} months{beside}: {saving:,.0f} USD a month less than on"
            " demand alone."
        )
    else:
        why = "the demand is too seldom there" if ratio else "it is no cheaper than on demand"
        headline = f"Commit nothing for {terms.term_months} months: {why}."
    pays = f"pays once it is used in {1 - ratio:.0%} of the hours" if ratio else "never pays"
    reason = (
        f"At {terms.committed_price:,.2f} against {price:,.2f} USD per GPU-hour a committed GPU {pays}."
        f" Had the demand stayed at its 10 % (90 %) level, it would cost"
        f" {costs['advised']['regret_low_usd_per_month']:,.0f}"
        f" ({costs['advised']['regret_high_usd_per_month']:,.0f}) USD a month more than the"
        " best amount for that. The next term is taken to be like the history."
    )
    warnings = list(notes)
    hours = usage.gpus.size * usage.hours
    if hours < HOURS_PER_MONTH:
        warnings.append(f"The history covers {hours / 24:,.0f} days: less than a month says little.")
    warnings += [
        f"{agreement.name} ended on {agreement.end:%Y-%m-%d}." for agreement in agreements if agreement.end <= today
    ]
    return {
        "kind": "commitment",
        **frame,
        "headline": headline,
        "lead": f"{headline} {reason}",
        "usage": {
            "hours": hours,
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
            for name, cost in commitments.stacked(usage, listed, agreements).items()
            if cost or name in ("at list", "total")
        ],
        "rungs": rungs,
        "by_month": _by_month(today, rungs, terms.term_months),
        "prices": terms.prices,
        "warnings": warnings,
        "sources": terms.sources,
    }


def _stacked_prices(today: datetime, agreements: Sequence[Agreement], terms: CommitTerms) -> tuple[CommitTerms, float]:
    """Return the terms at the prices of today's agreements, and the price without a commitment.

    A contract's price replaces all; else the best private percentage comes off, also of what a commitment costs.
    """

    def now(kind: str) -> list[Agreement]:
        return [
            agreement for agreement in commitments.of_kind(agreements, kind) if agreement.start <= today < agreement.end
        ]

    # The best percentage in force comes off a commitment's price as off the list's.
    share = min((paid_fraction(agreement.fraction, None, terms.price) for agreement in now("private")), default=1.0)
    if share * terms.price < SMALLEST or share * terms.committed_price < SMALLEST:
        raise UsageError("a private discount covers the whole price, so there is nothing to commit to.")
    notes = terms.prices
    if share < 1:
        notes = [*notes, f"a private discount of {1 - share:.1%} comes off the price and off the committed one"]
    contract = next((agreement.usd_per_gpu_hour for agreement in now("contract")), None)
    terms = terms._replace(price=terms.price * share, committed_price=terms.committed_price * share, prices=notes)
    return terms, terms.price if contract is None else contract


def _rungs(today: datetime, buy: float, alone: float, active: Sequence[Agreement], terms: CommitTerms) -> list[Rung]:
    """Return what is held and what to buy: what lacks now, in so many purchases over the term, and what ends anew.

    What ends is renewed up to what one would commit with nothing held, `alone`.
    """
    rungs: list[Rung] = [
        _rung(agreement.name, True, agreement.covered_gpus, agreement.start, agreement.end, agreement.usd_per_gpu_hour)
        for agreement in active
    ]
    # Whole units are spread over the purchases as evenly as they go.
    units = round(buy / terms.step_gpus)
    for number in range(terms.rungs):
        steps = units * (number + 1) // terms.rungs - units * number // terms.rungs
        start = months_after(today, number * terms.term_months // terms.rungs)
        if steps:
            end = months_after(start, terms.term_months)
            rungs.append(_rung(f"buy {number + 1}", False, steps * terms.step_gpus, start, end, terms.committed_price))
    # What outlasts the term and what is bought now take their part of what one would commit; what ends in between is
    # renewed in the order in which it ends, up to what is left.
    until = months_after(today, terms.term_months)
    room = alone - buy - sum(agreement.covered_gpus for agreement in active if agreement.end >= until)
    for agreement in active:
        if agreement.end < until and (gpus := min(agreement.covered_gpus, room)) > 0:
            room -= gpus
            end = months_after(agreement.end, terms.term_months)
            rungs.append(_rung(f"renew {agreement.name}", False, gpus, agreement.end, end, terms.committed_price))
    return rungs


def _rung(name: str, is_held: bool, gpus: float, start: datetime, end: datetime, price: float) -> Rung:
    return {
        "name": name,
        "held": is_held,
        "gpus": gpus,
        "from_day": f"{start:%Y-%m-%d}",
        "until_day": f"{end:%Y-%m-%d}",
        "usd_per_month": gpus * price * HOURS_PER_MONTH,
    }


def _by_month(today: datetime, rungs: Sequence[Rung], term_months: int) -> list[CommittedMonth]:
    """Return what is committed at the start of each month, and what ends in it, until the last one has ended.

    What is bound without an end in sight is shown for twenty years.
    """
    # Until the last one has ended; with none, over the term that was asked for.
    last = max((rung["until_day"] for rung in rungs), default=f"{months_after(today, term_months):%Y-%m-%d}")
    months: list[CommittedMonth] = []
    month, until = today.replace(day=1), months_after(today, MOST_MONTHS)
    while f"{month:%Y-%m-%d}" <= last and month <= until:
        # of the running month the first day is today; days as texts compare as the dates that they are
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


def _count(gpus: float) -> str:
    return f"{gpus:,.1f}".removesuffix(".0")


def refuse(terms: CommitTerms) -> None:
    """Refuse more purchases than a term has room for."""
    if terms.rungs > min(_MOST_RUNGS, terms.term_months):
        raise UsageError(f"--rungs {terms.rungs}: at most one purchase a month of the term, and {_MOST_RUNGS} in all.")
