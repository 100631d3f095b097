"""The answer: how much to commit for a demand, its regret, what the agreements make of it, and when they end."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from gpucost.answers.common import Frame, Source
from gpucost.answers.invoices import CommitLevel, Commitment, CommittedMonth, Rung
from gpucost.errors import UsageError
from gpucost.invoices.agreements import months_after
from gpucost.money.newsvendor import advised, level, quantile, regret
from gpucost.money.private import kept
from gpucost.money.stacking import Agreement, Usage, of_kind, stacked
from gpucost.units import HOURS_PER_MONTH, SMALLEST

MOST_RUNGS = 24
MOST_MONTHS = 240  # of the table by month: twice the longest term


class Wanted(NamedTuple):
    """What is asked: prices, the term of what is bought, its unit, in how many purchases."""

    price: float
    committed_price: float
    term_months: int
    step_gpus: float
    rungs: int
    prices: list[str]  # where the prices come from
    sources: dict[str, Source]


def committed(frame: Frame, usage: Usage, said: list[str], held: Sequence[Agreement], wanted: Wanted) -> Commitment:
    """Return the advice for a history of use."""
    today, listed = datetime.fromisoformat(frame["as_of"]), wanted.price
    active = [one for one in of_kind(held, "reservation", "savings_plan") if one.start <= today < one.end]
    wanted, price = _stacked_prices(today, held, wanted)
    ratio = max(1 - wanted.committed_price / price, 0.0)
    has = sum(one.covered_gpus for one in active)
    alone, buy = (advised(usage.gpus, price, wanted.committed_price, wanted.step_gpus, held) for held in (0.0, has))
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
    levels = [_level(name, gpus, usage, price, wanted.committed_price, low, high) for name, gpus in marks.items()]
    costs = {row["level"]: row for row in levels}
    rungs = _rungs(today, buy, alone, active, wanted)
    saving = costs["nothing"]["usd_per_month"] - costs["advised"]["usd_per_month"]
    headline = _headline(best, buy, has, ratio, saving, wanted)
    return {
        "kind": "commitment",
        **frame,
        "headline": headline,
        "lead": f"{headline} {_reason(ratio, price, costs, wanted)}",
        "usage": {
            "hours": usage.gpus.size * usage.hours,
            "mean_gpus": float(usage.gpus.mean()),
            "p10_gpus": low,
            "p50_gpus": marks["half of hours"],
            "p90_gpus": high,
            "peak_gpus": marks["peak"],
        },
        "usd_per_gpu_hour": price,
        "committed_usd_per_gpu_hour": wanted.committed_price,
        "critical_fraction": ratio,
        "term_months": wanted.term_months,
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
        "by_month": _by_month(today, rungs, wanted.term_months),
        "prices": wanted.prices,
        "warnings": [*said, *_warnings(usage, today, held)],
        "sources": wanted.sources,
    }


def _stacked_prices(today: datetime, held: Sequence[Agreement], wanted: Wanted) -> tuple[Wanted, float]:
    """Return what is wanted at the prices of today's agreements, and the price without a commitment.

    A contract's price replaces all; else the best private percentage comes off, also of what a commitment costs.
    """

    def now(kind: str) -> list[Agreement]:
        return [one for one in of_kind(held, kind) if one.start <= today < one.end]

    share = min((kept(one.fraction, None, wanted.price) for one in now("private")), default=1.0)
    if share * wanted.price < SMALLEST or share * wanted.committed_price < SMALLEST:
        raise UsageError("a private discount leaves nothing to be paid: there is nothing to commit to.")
    said = wanted.prices
    if share < 1:
        said = [*said, f"a private discount of {1 - share:.1%} comes off the price and off the committed one"]
    contract = next((one.usd_per_gpu_hour for one in now("contract")), None)
    found = wanted._replace(price=wanted.price * share, committed_price=wanted.committed_price * share, prices=said)
    return found, found.price if contract is None else contract


def _level(
    name: str, gpus: float, usage: Usage, price: float, committed_price: float, low: float, high: float
) -> CommitLevel:
    found = level(usage.gpus, gpus, price, committed_price)
    return {
        "level": name,
        "gpus": gpus,
        "usd_per_month": found.usd_per_hour * HOURS_PER_MONTH,
        "covered_fraction": found.covered_fraction,
        "unused_fraction": found.unused_fraction,
        "regret_low_usd_per_month": regret(gpus, low, price, committed_price) * HOURS_PER_MONTH,
        "regret_high_usd_per_month": regret(gpus, high, price, committed_price) * HOURS_PER_MONTH,
    }


def _rungs(today: datetime, buy: float, alone: float, active: Sequence[Agreement], wanted: Wanted) -> list[Rung]:
    """Return what is held and what to buy: what lacks now, in so many purchases over the term, and what ends anew.

    What ends is renewed up to what one would commit with nothing held, `alone`.
    """
    found: list[Rung] = [
        _rung(one.name, True, one.covered_gpus, one.start, one.end, one.usd_per_gpu_hour) for one in active
    ]
    whole = round(buy / wanted.step_gpus)
    for number in range(wanted.rungs):
        steps = whole * (number + 1) // wanted.rungs - whole * number // wanted.rungs
        start = months_after(today, number * wanted.term_months // wanted.rungs)
        if steps:
            end = months_after(start, wanted.term_months)
            found.append(
                _rung(f"buy {number + 1}", False, steps * wanted.step_gpus, start, end, wanted.committed_price)
            )
    until = months_after(today, wanted.term_months)
    room = alone - buy - sum(one.covered_gpus for one in active if one.end >= until)
    for one in active:
        if one.end < until and (gpus := min(one.covered_gpus, room)) > 0:
            room -= gpus
            end = months_after(one.end, wanted.term_months)
            found.append(_rung(f"renew {one.name}", False, gpus, one.end, end, wanted.committed_price))
    return found


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
    found: list[CommittedMonth] = []
    month, until = today.replace(day=1), months_after(today, MOST_MONTHS)
    while f"{month:%Y-%m-%d}" <= last and month <= until:
        day, after = (f"{max(one, today):%Y-%m-%d}" for one in (month, months_after(month, 1)))
        running = [rung for rung in rungs if rung["from_day"] <= day < rung["until_day"]]
        ending = [rung for rung in rungs if day <= rung["until_day"] < after]
        found.append(
            {
                "month": f"{month:%Y-%m-%d}",
                "held_gpus": sum(rung["gpus"] for rung in running if rung["held"]),
                "committed_gpus": sum(rung["gpus"] for rung in running),
                "ending_gpus": sum(rung["gpus"] for rung in ending),
                "ending_usd_per_month": sum(rung["usd_per_month"] for rung in ending),
            }
        )
        month = months_after(month, 1)
    return found


def _headline(best: float, buy: float, has: float, ratio: float, saving: float, wanted: Wanted) -> str:
    term = f"{wanted.term_months} months"
    if not best:
        why = "it is no cheaper than on demand" if not ratio else "the demand is too seldom there"
        return f"Commit nothing for {term}: {why}."
    beside = f", {_count(buy)} beside the {_count(has)} held" if has else ""
    return f"Commit {_count(best)} GPUs for {term}{beside}: {saving:,.0f} USD a month less than on demand alone."


def _count(gpus: float) -> str:
    return f"{gpus:,.1f}".removesuffix(".0")


def _reason(ratio: float, price: float, costs: dict[str, CommitLevel], wanted: Wanted) -> str:
    row = costs["advised"]
    pays = f"pays once it is used in {1 - ratio:.0%} of the hours" if ratio else "never pays"
    return (
        f"At {wanted.committed_price:,.2f} against {price:,.2f} USD per GPU-hour a committed GPU {pays}."
        f" Had the demand stayed at its 10 % (90 %) level, it would cost"
        f" {row['regret_low_usd_per_month']:,.0f} ({row['regret_high_usd_per_month']:,.0f}) USD a month more than the"
        " best amount for that. The next term is taken to be like the history."
    )


def _warnings(usage: Usage, today: datetime, held: Sequence[Agreement]) -> list[str]:
    found = []
    if usage.gpus.size * usage.hours < HOURS_PER_MONTH:
        found.append(
            f"The history covers {usage.gpus.size * usage.hours / 24:,.0f} days: less than a month says little."
        )
    found += [f"{one.name} ended on {one.end:%Y-%m-%d}." for one in held if one.end <= today]
    return found


def refuse(wanted: Wanted) -> None:
    """Refuse more purchases than a term has room for."""
    if wanted.rungs > min(MOST_RUNGS, wanted.term_months):
        raise UsageError(f"--rungs {wanted.rungs}: at most one purchase a month of the term, and {MOST_RUNGS} in all.")
