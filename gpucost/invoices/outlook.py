"""What an invoice says of the rest of the year, and which days of which products stand out against the plan.

The rest of the year is what the last four weeks of use cost a day, times the days that are left; the ends are those of
the cheapest and the dearest of these weeks. A day stands out where it is further from its plan than three robust
standard deviations of such distances (1.4826 times their median; Rousseeuw and Croux 1993), than a fifth of the plan,
and than a dollar; days in a row are one remark.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from gpucost.answers.invoices import Anomaly, Forecast
from gpucost.invoices import reconciliation
from gpucost.invoices.reading import Charges
from gpucost.invoices.reconciliation import Book, InvoiceQuestion, Window

Array = NDArray[np.float64]

RECENT_DAYS, WEEK_DAYS = 28, 7  # four whole weeks: use of weekends differs
FAR, LEAST_SHARE, LEAST_USD = 3.0, 0.2, 1.0
_TO_SIGMA = 1.4826  # a median of distances as a standard deviation
MOST = 12  # remarks


class InvoiceOutlook(TypedDict):
    """What stands beside a reconciliation."""

    anomalies: list[Anomaly]
    forecast: Forecast | None


def beside(invoice: Sequence[Charges], plan: Sequence[Charges], question: InvoiceQuestion) -> InvoiceOutlook:
    """Return what stands out against the plan, and what the year will cost."""
    rates = reconciliation.rates_of([*invoice, *plan], question.budget, question.paid, reconciliation.RATE_FLAGS)
    budget, paid = (
        reconciliation.by_money(rates, "budget_usd_per_unit"),
        reconciliation.by_money(rates, "paid_usd_per_unit"),
    )
    if not plan:
        return {"anomalies": [], "forecast": forecast(invoice, plan, reconciliation.used_period(invoice), paid, budget)}
    # Days are compared where plan and invoice both have them; the forecast looks at all of the plan.
    window = reconciliation.overlap(reconciliation.planned_period(plan), reconciliation.used_period(invoice))
    cut = reconciliation.within(plan, window)
    return {
        "anomalies": anomalies(
            invoice, cut, Book(cut, question.mapped, question.hardware, invoice), window, paid, budget
        ),
        "forecast": forecast(invoice, plan, window, paid, budget),
    }


def forecast(
    invoice: Sequence[Charges],
    plan: Sequence[Charges],
    window: Window,
    paid: Mapping[str, float],
    budget: Mapping[str, float],
) -> Forecast | None:
    """Return what the year will cost, from its use so far; None where nothing is left of it, or too little is known."""
    # Use goes on, and what comes back with it: discounts, fees and unused commitments over more than a week.
    times: dict[tuple[str, ...], list[Charges]] = {}
    for charge in invoice:
        if charge.category in ("Purchase", "Credit", "Adjustment"):
            times.setdefault((charge.category, *charge.names), []).append(charge)
    used = [charge for charge in invoice if charge.category == "Usage"]
    for charges in times.values():
        begin = datetime.combine(min(charge.day for charge in charges), time())
        if max(charge.end for charge in charges) - begin > timedelta(days=WEEK_DAYS):
            used += charges
    if not any(charge.category == "Usage" for charge in used):
        return None
    first, last = min(charge.day for charge in used), _last_day(window)
    # A plan that ends within the year ends the forecast: beyond it nothing is known to go on.
    end = date(last.year, 12, 31)
    if plan:
        end = min(end, (max(charge.end for charge in plan) - timedelta(seconds=1)).date())
    left = (end - last).days
    by_day = _by_day(used, first, last, paid)[1]
    recent = by_day[-RECENT_DAYS:]
    if left <= 0 or recent.size < WEEK_DAYS:
        return None
    # whole weeks, counted back from the last day
    weeks = [recent[at : at + WEEK_DAYS].mean() for at in range(recent.size % WEEK_DAYS, recent.size, WEEK_DAYS)]
    so_far, to_come = float(by_day.sum()), float(recent.mean()) * left
    planned = None
    if plan:
        spread: Window = (datetime.combine(first, time()), datetime.combine(end, time()) + timedelta(days=1))
        inside = [charge for charge in reconciliation.within(plan, spread) if charge.category == "Usage"]
        planned = round(sum(charge.effective * budget[charge.money] for charge in inside), 2)
    total = round(so_far + to_come, 2)
    low, high = (round(so_far + left * float(week), 2) for week in (min(weeks), max(weeks)))
    sentence = (
        f"At the pace of the last {recent.size} days, {float(recent.mean()):,.2f} USD a day, use from {first} to {end}"
        f" costs {total:,.0f} USD ({low:,.0f} to {high:,.0f} by the cheapest and the dearest week)"
    )
    if planned:
        apart = total - planned
        sentence += f", {abs(apart):,.0f} USD {'over' if apart > 0 else 'under'} the {planned:,.0f} planned"
    return {
        "from_day": str(first),
        "until_day": str(end),
        "days_left": left,
        "so_far_usd": round(so_far, 2),
        "rest_usd": round(to_come, 2),
        "total_usd": total,
        "total_low_usd": low,
        "total_high_usd": high,
        "planned_usd": planned,
        "sentence": f"{sentence}.",
    }


def _last_day(window: Window) -> date:
    return (window[1] - timedelta(microseconds=1)).date()


def _by_day(charges: Iterable[Charges], first: date, last: date, rates: Mapping[str, float]) -> tuple[Array, Array]:
    """Return quantity and effective cost in USD by day; what lasts longer than a day is spread over its time."""
    days = (last - first).days + 1
    quantity, cost = np.zeros(days), np.zeros(days)
    for charge in charges:
        begin = (charge.day - first).days
        # in days; a charge of a moment counts on its day
        length = max((charge.end - datetime.combine(charge.day, time())) / timedelta(days=1), 1e-9)
        spanned = max(1, int(np.ceil(length - 1e-9)))
        for at in range(max(begin, 0), min(begin + spanned, days)):
            # Its last day may be a part of one.
            share = min(1.0, length - (at - begin)) / length
            quantity[at] += charge.quantity * share
            cost[at] += charge.effective * rates[charge.money] * share
    return quantity, cost


def anomalies(
    invoice: Sequence[Charges],
    cut: Sequence[Charges],
    book: Book,
    window: Window,
    paid: Mapping[str, float],
    budget: Mapping[str, float],
) -> list[Anomaly]:
    """Return what stands out against the plan, the largest difference first, a sentence each."""
    first, last = window[0].date(), _last_day(window)
    sides: dict[str, tuple[list[Charges], list[Charges]]] = {}
    unplanned: dict[str, list[Charges]] = {}
    for number, charges in enumerate((cut, invoice)):
        for charge in charges:
            # What nobody used is no use of a product, and commitments have a line of the reconciliation.
            if charge.category != "Usage" or charge.status == "Unused" or not first <= charge.day <= last:
                continue
            key = book.product(charge)
            if key is None:
                unplanned.setdefault(reconciliation.name_of(charge), []).append(charge)
            else:
                sides.setdefault(key, ([], []))[number].append(charge)
    remarks: list[Anomaly] = []
    for key, (planned, charged) in sides.items():
        remarks += _days_apart(
            book.products[key].name, _by_day(planned, first, last, budget), charged, first, last, paid
        )
    for name, charges in unplanned.items():
        cost = sum(charge.effective * paid[charge.money] for charge in charges)
        if abs(cost) > LEAST_USD:
            days = sorted(charge.day for charge in charges)
            sentence = f"{name} cost {cost:,.2f} USD from {days[0]} to {days[-1]} and is not in the plan."
            remarks.append(_anomaly(name, days[0], days[-1], cost, 0.0, sentence))
    return sorted(remarks, key=lambda row: (-abs(row["difference_usd"]), row["from_day"], row["product"]))[:MOST]


def _days_apart(
    name: str,
    planned: tuple[Array, Array],
    charges: Sequence[Charges],
    first: date,
    last: date,
    paid: Mapping[str, float],
) -> list[Anomaly]:
    """Return the days in a row on which a product is far from its plan."""
    had, plan = planned
    has, cost = _by_day(charges, first, last, paid)
    gap = cost - plan
    sigma = _TO_SIGMA * float(np.median(np.abs(gap - np.median(gap))))
    # All three bounds must be passed: what chance explains, a fifth of the plan, and a dollar.
    far = np.abs(gap) > np.maximum(np.maximum(FAR * sigma, LEAST_SHARE * plan), LEAST_USD)
    # Days in a row that are off to the same side are one remark.
    rows, at = [], 0
    while at < far.size:
        if not far[at]:
            at += 1
            continue
        end = at
        while end + 1 < far.size and far[end + 1] and np.sign(gap[end + 1]) == np.sign(gap[at]):
            end += 1
        span = slice(at, end + 1)
        days = first + timedelta(days=at), first + timedelta(days=end)
        spent, planned_usd, used, planned_used = (float(series[span].sum()) for series in (cost, plan, has, had))
        when = f"on {days[0]}" if days[0] == days[1] else f"from {days[0]} to {days[1]}"
        apart = f"{abs(spent - planned_usd):,.2f} USD {'over' if spent > planned_usd else 'under'}"
        sentence = f"{name} cost {spent:,.2f} USD {when}, {apart} the {planned_usd:,.2f} planned"
        if spent == 0 and used == 0:
            sentence = f"{name}: nothing was charged {when}, {planned_usd:,.2f} USD were planned."
        elif planned_used <= 0 or used <= 0 or planned_usd <= 0:
            sentence += "."
        else:
            # quantity and price multiply: the larger logarithm is what moved the cost more
            price, planned_price = spent / used, planned_usd / planned_used
            more, dearer = used / planned_used, price / planned_price
            if abs(np.log(more)) >= abs(np.log(max(dearer, 1e-9))):
                sentence += f": {used:,.5g} were used where {planned_used:,.5g} were planned."
            else:
                sentence += f": each cost {price:,.4f} USD where {planned_price:,.4f} was planned."
        rows.append(_anomaly(name, *days, spent, planned_usd, sentence))
        at = end + 1
    return rows


def _anomaly(name: str, since: date, until: date, cost: float, plan: float, sentence: str) -> Anomaly:
    return {
        "product": name,
        "from_day": str(since),
        "until_day": str(until),
        "charged_usd": round(cost, 2),
        "planned_usd": round(plan, 2),
        "difference_usd": round(cost - plan, 2),
        "sentence": sentence,
    }
