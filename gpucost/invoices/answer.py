"""The answer: an invoice held against a plan, or only shown back by a tag; every charge ends in one line of it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import fsum
from typing import Any, NamedTuple

from gpucost.answers.common import Frame
from gpucost.answers.invoices import DifferencePart, Reconciliation, Showback, Totals
from gpucost.errors import UsageError
from gpucost.gate import shown
from gpucost.invoices import differences as d
from gpucost.invoices.matching import Book
from gpucost.invoices.reading import Charges, charges_of, read_charges
from gpucost.invoices.rows import focus_rows
from gpucost.money.variance import in_cents, shared

UNTAGGED = "(untagged)"
SAID = ("--budget-rate", "--rate")


class Asked(NamedTuple):
    """What is asked of an invoice."""

    tag: str | None
    idle_by: str
    work_ratio: float | None
    mapped: Mapping[str, str]
    budget: Mapping[str, float]  # USD per unit of each currency, as planned and as paid
    paid: Mapping[str, float]


def planned(
    plan: str | Mapping[str, Any] | None,
    invoice: Sequence[Charges],
    start: datetime | None,
    rank: int,
    side: str | None,
) -> list[Charges]:
    """Return the planned charges: a FOCUS file as it is, a saved answer from `start`, else from the invoice's start."""
    if plan is None:
        return []
    if isinstance(plan, str):
        if told := [flag for flag, value in (("--start", start), ("--rank", rank > 1), ("--side", side)) if value]:
            reason = "is of a saved answer" if len(told) == 1 else "are of a saved answer"
            raise UsageError(f"{' and '.join(told)} {reason}; {shown(plan)} is read as FOCUS, and stands as it is.")
        return read_charges(plan)
    return charges_of(focus_rows(plan, start or d.period_of(invoice)[0], rank, side))


def reconciled(frame: Frame, invoice: list[Charges], plan: list[Charges], asked: Asked) -> Reconciliation:
    """Return the answer."""
    if not plan and not asked.tag:
        raise UsageError("say what to hold the invoice against (--estimate saved.json), or --showback TAG, or both.")
    rates = d.rates_of([*invoice, *plan], asked.budget, asked.paid, SAID)
    budget = {row["currency"]: row["budget_usd_per_unit"] for row in rates}
    paid = {row["currency"]: row["paid_usd_per_unit"] for row in rates}
    window = d.overlap(d.planned_period(plan), d.period_of(invoice)) if plan else d.period_of(invoice)
    cut = d.within(plan, window)
    totals = d.totals_of(cut, invoice, budget, paid)
    book = Book(cut, asked.mapped)
    sides = [d.sort(charges, book, window, budget) for charges in (cut, invoice)]
    exchange = [
        fsum(getattr(one, name) * (paid[one.currency] - budget[one.currency]) for one in invoice)
        for name in ("billed", "effective")
    ]
    total = totals["billed_difference_usd"], totals["effective_difference_usd"]
    parts, compared = d.parts_of(sides[0], sides[1], book, exchange, asked.work_ratio, total) if plan else ([], set())
    head = _headline(totals, parts, window) if plan else _shown_back(totals, window)
    return {
        "kind": "reconciliation",
        **frame,
        "headline": head,
        "lead": f"{head} {_basis(totals, bool(plan))}",
        "rows_read": sum(charge.rows for charge in invoice),
        "period_from": f"{window[0]:%Y-%m-%d}",
        "period_until": f"{window[1]:%Y-%m-%d %H:%M}",
        "totals": totals,
        "parts": parts,
        "products": d.products_of(sides[0], sides[1], book, compared),
        "unmatched": d.unmatched_of(sides[0], sides[1], book, compared) if plan else [],
        "currencies": [row for row in rates if row["currency"] != "USD"],
        "showback": showback(invoice, asked.idle_by, paid) if asked.tag else [],
        "idle_by": asked.idle_by if asked.tag else "",
        "warnings": _warnings(invoice, plan, window, sides),
        "sources": {},
    }


def showback(charges: Sequence[Charges], idle_by: str, rates: Mapping[str, float]) -> list[Showback]:
    """Return the effective cost under each value of a tag; what nobody used is shared among the tagged by the key.

    The cents add up to the whole invoice. Key `cost` shares by direct cost, `quantity` by hours and other quantities,
    `even` alike.
    """
    groups: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])  # rows, quantity, cost
    idle = 0.0
    for charge in charges:
        cost = charge.effective * rates[charge.currency]
        if charge.status == "Unused":
            idle += cost
            continue
        group = groups[charge.tag or UNTAGGED]
        group[:] = [group[0] + charge.rows, group[1] + charge.quantity, group[2] + cost]
    names = sorted(groups, key=lambda name: (name == UNTAGGED, -groups[name][2], name))
    whole = round(fsum([idle, *(group[2] for group in groups.values())]), 2)
    direct = dict(
        zip(names, in_cents([groups[name][2] for name in names], round(whole - round(idle, 2), 2)), strict=True)
    )
    bearers = [name for name in names if name != UNTAGGED] or names
    weight = {"cost": 2, "quantity": 1}.get(idle_by)
    share = shared(round(idle, 2), {name: groups[name][weight] if weight else 1.0 for name in bearers})
    return [
        {
            "tag_value": name,
            "rows": int(groups[name][0]),
            "quantity": groups[name][1],
            "direct_usd": direct[name],
            "idle_usd": share.get(name, 0.0),
            "total_usd": round(direct[name] + share.get(name, 0.0), 2),
            "share_fraction": (direct[name] + share.get(name, 0.0)) / whole if whole else 0.0,
        }
        for name in names
    ]


def _headline(totals: Totals, parts: Sequence[DifferencePart], window: d.Window) -> str:
    difference, plan = totals["effective_difference_usd"], totals["planned_effective_usd"]
    days = _days(window)
    if not any(part["effective_usd"] or part["billed_usd"] for part in parts):
        return f"The invoice is what was planned for {days}, {plan:,.2f} USD."
    share = f" ({abs(difference) / plan:.1%})" if plan > 0 else ""
    apart = f"is {abs(difference):,.2f} USD{share} {'over' if difference > 0 else 'under'} the plan of {plan:,.2f}"
    even = f"comes to the plan of {plan:,.2f} USD"
    largest = max(parts, key=lambda part: (abs(part["effective_usd"]), abs(part["billed_usd"])))
    return (
        f"The invoice {apart if difference else even} for {days};"
        f" the largest part is {largest['part']}, {largest['effective_usd']:+,.2f} USD."
    )


def _days(window: d.Window) -> str:
    """Return the first and the last day of a time, whose end is the first moment after it."""
    return f"{window[0]:%Y-%m-%d} to {window[1] - timedelta(microseconds=1):%Y-%m-%d}"


def _shown_back(totals: Totals, window: d.Window) -> str:
    return f"{totals['charged_effective_usd']:,.2f} USD from {_days(window)}, by tag."


def _basis(totals: Totals, planned: bool) -> str:
    """Say how the two bases differ, and what discounts took off the list."""
    against = f" against {totals['planned_billed_usd']:,.2f} planned" if planned else " USD"
    said = (
        f"Effective spreads commitments over their use; billed is what the invoice asks:"
        f" {totals['charged_billed_usd']:,.2f}{against}."
    )
    listed, contracted = totals["list_usd"], totals["contracted_usd"]
    if listed and contracted and listed != totals["charged_effective_usd"]:
        said += (
            f" List {listed:,.2f}, contracted {contracted:,.2f}, effective {totals['charged_effective_usd']:,.2f} USD."
        )
    return said


def _warnings(
    invoice: Sequence[Charges], plan: Sequence[Charges], window: d.Window, sides: Sequence[d.Sorted]
) -> list[str]:
    found = []
    if zoneless := sum(charge.zoneless for charge in invoice):
        found.append(f"{zoneless:,} charges name no time zone: taken as UTC.")
    if plan:
        whole = d.planned_period(plan)
        if whole[1] > window[1] or whole[0] < window[0]:
            share = (window[1] - window[0]) / (whole[1] - whole[0])
            found.append(f"The invoice covers {share:.0%} of the plan's time: only that part of the plan is compared.")
        if any(why == d.OUTSIDE for _, why in sides[1].rest):
            found.append("Charges outside the plan's period have a line of their own.")
    if signs := sum(int(rows[0]) for (_, why), rows in sides[1].rest.items() if why == d.SIGN):
        found.append(f"{signs:,} charges are negative and no credit, adjustment, refund or correction.")
    return found
