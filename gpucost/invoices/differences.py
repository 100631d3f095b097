"""An invoice against a plan: charges matched, the difference split into parts that add up, what is left shown."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, time, timedelta
from math import fsum
from typing import NamedTuple

from gpucost.answers.invoices import DifferencePart, Matched, Rates, Totals, Unmatched
from gpucost.errors import PriceMissingError, UsageError
from gpucost.invoices.matching import Book, name_of
from gpucost.invoices.reading import Charges
from gpucost.money.variance import LEAST, PARTS, Amount, in_cents, split

Window = tuple[datetime, datetime]
_BASES = ("billed", "effective")
# reasons that have a line of their own beside the six parts
CREDIT, TAX, SIGN = "credits and refunds", "taxes", "negative without a reason"
UNPLANNED, UNBILLED, OUTSIDE = "not in the plan", "not on the invoice", "outside the period of the plan"
_COMMITMENT = "commitment"


class Part(NamedTuple):
    """Charges that are compared: what they are for, how much, and both costs in USD."""

    product: str
    committed: bool
    rows: int
    quantity: float
    billed: float
    effective: float


class Sorted(NamedTuple):
    """One side of the comparison."""

    parts: list[Part]
    commitments: list[float]  # billed, effective: purchases, and what nobody used
    rest: dict[tuple[str, str], list[float]]  # (what, why) -> rows, billed, effective


def period_of(charges: Sequence[Charges]) -> Window:
    """Return the first moment and the end of charges; a day that began counts whole on an invoice."""
    first = datetime.combine(min(charge.day for charge in charges), time())
    last = datetime.combine(max(charge.day for charge in charges), time()) + timedelta(days=1)
    return first, max(last, *(charge.end for charge in charges))


def planned_period(charges: Sequence[Charges]) -> Window:
    """Return the first moment and the end of a plan."""
    return period_of(charges)[0], max(charge.end for charge in charges)


def overlap(plan: Window, invoice: Window) -> Window:
    """Return the time that both cover."""
    found = max(plan[0], invoice[0]), min(plan[1], invoice[1])
    if found[0] >= found[1]:
        said = [f"{start:%Y-%m-%d} to {end:%Y-%m-%d}" for start, end in (plan, invoice)]
        raise UsageError(f"the plan is for {said[0]}, the invoice for {said[1]}: they share no day. Say --start.")
    return found


def within(charges: Iterable[Charges], window: Window) -> list[Charges]:
    """Cut planned charges to a window, in proportion to time."""
    found = []
    for charge in charges:
        start = datetime.combine(charge.day, time())
        length = max(charge.end - start, timedelta(seconds=1))
        inside = min(charge.end, window[1]) - max(start, window[0])
        share = max(inside / length, 0.0)
        if share >= 1:
            found.append(charge)
        elif share > 0:
            amounts = {name: getattr(charge, name) * share for name in ("billed", "effective", "quantity", "listed")}
            found.append(charge._replace(day=max(start, window[0]).date(), **amounts))
    return found


def sort(charges: Iterable[Charges], book: Book, window: Window, rates: Mapping[str, float]) -> Sorted:
    """Sort the charges of one side: what is compared, what belongs to commitments, and what is left, with reasons."""
    sides = Sorted([], [0.0, 0.0], defaultdict(lambda: [0.0, 0.0, 0.0]))
    for charge in charges:
        rate = rates[charge.currency]
        costs = charge.billed * rate, charge.effective * rate
        key = book.product(charge)
        factor = book.factor(charge, key) if key else None
        if reason := _apart(charge, window):
            if reason == _COMMITMENT:
                sides.commitments[:] = [old + new for old, new in zip(sides.commitments, costs, strict=True)]
                continue
        elif key and factor is not None:
            sides.parts.append(Part(key, charge.committed, charge.rows, charge.quantity * factor, *costs))
            continue
        elif key:
            reason = f"{UNPLANNED}: counted in {charge.unit or 'nothing'}, planned in {book.products[key].unit}"
        left = sides.rest[name_of(charge), reason or UNPLANNED]
        left[:] = [old + new for old, new in zip(left, (charge.rows, *costs), strict=True)]
    return sides


def _apart(charge: Charges, window: Window) -> str:
    """Return why a charge is not compared by its product; nothing where it is."""
    bought = charge.category == "Purchase"
    if not window[0].date() <= charge.day or datetime.combine(charge.day, time()) >= window[1]:
        return OUTSIDE
    if charge.category == "Tax":
        return TAX
    if charge.category in ("Credit", "Adjustment") or (bought and charge.negative):
        return CREDIT
    if charge.status == "Unused" or (bought and charge.committed):
        return _COMMITMENT
    return SIGN if charge.negative and not charge.corrected else ""


def parts_of(
    plan: Sorted,
    actual: Sorted,
    book: Book,
    exchange: Sequence[float],
    work_ratio: float | None,
    total: Sequence[float],
) -> tuple[list[DifferencePart], set[str]]:
    """Split the difference, billed and effective, into parts that add up to the cent; and name what could be split."""
    had, has = _quantities(plan), _quantities(actual)
    compared = {name for name in has if had.get(name, 0.0) > LEAST * max(abs(has[name]), 1.0)}
    columns = [
        _column(place, plan, actual, book, compared, exchange[place], work_ratio, total[place]) for place in (0, 1)
    ]
    names = dict.fromkeys([*columns[0], *columns[1]])
    notes = {
        "efficiency": "" if work_ratio is not None else "part of quantity: say the work done with --done",
        "commitment use": "hours covered, purchases and what nobody used",
    }
    found: list[DifferencePart] = [
        {
            "part": name,
            "billed_usd": columns[0].get(name, 0.0),
            "effective_usd": columns[1].get(name, 0.0),
            "note": notes.get(name, ""),
        }
        for name in names
        if name in PARTS or columns[0].get(name) or columns[1].get(name)
    ]
    return found, compared


def _quantities(side: Sorted) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for part in side.parts:
        found[part.product] += part.quantity
    return found


def _column(
    place: int,
    plan: Sorted,
    actual: Sorted,
    book: Book,
    compared: set[str],
    exchange: float,
    work: float | None,
    total: float,
) -> dict[str, float]:
    """Return the parts of the difference on one basis, in cents."""
    found = dict.fromkeys(PARTS, 0.0)
    for unit in {book.products[name].unit for name in compared}:
        sides = [
            _amounts(side.parts, place, {name for name in compared if book.products[name].unit == unit})
            for side in (plan, actual)
        ]
        for name, value in split(sides[0], sides[1], work if unit == "GPU-hour" else None).items():
            found[name] += value
    found["commitment use"] += actual.commitments[place] - plan.commitments[place]
    found["exchange rate"] = exchange
    for sign, side, missing in ((1, actual, UNPLANNED), (-1, plan, UNBILLED)):
        for part in side.parts:
            if part.product not in compared:
                found[missing] = found.get(missing, 0.0) + sign * (part.billed, part.effective)[place]
        for (_, why), amounts in side.rest.items():
            name = why.partition(":")[0]
            found[name] = found.get(name, 0.0) + sign * amounts[1 + place]
    return dict(zip(found, in_cents(list(found.values()), total), strict=True))


def _amounts(parts: Iterable[Part], place: int, names: set[str]) -> dict[str, dict[bool, Amount]]:
    found: dict[str, dict[bool, Amount]] = {}
    for part in parts:
        if part.product in names:
            row = found.setdefault(part.product, {})
            had = row.get(part.committed, Amount(0.0, 0.0))
            cost = (part.billed, part.effective)[place]
            row[part.committed] = Amount(had.quantity + part.quantity, had.cost + cost)
    return found


def products_of(plan: Sorted, actual: Sorted, book: Book, compared: set[str]) -> list[Matched]:
    """Return what was planned and charged for each product, the largest difference first."""
    rows: list[Matched] = []
    for name in compared:
        sides = [[part for part in side.parts if part.product == name] for side in (plan, actual)]
        had, has = ([fsum(column) for column in zip(*(part[3:] for part in side), strict=True)] for side in sides)
        rows.append(
            {
                "product": book.products[name].name,
                "unit": book.products[name].unit,
                "planned_quantity": had[0],
                "charged_quantity": has[0],
                "planned_effective_usd": round(had[2], 2),
                "charged_effective_usd": round(has[2], 2),
                "planned_billed_usd": round(had[1], 2),
                "charged_billed_usd": round(has[1], 2),
                "difference_usd": round(round(has[2], 2) - round(had[2], 2), 2),
            }
        )
    return sorted(rows, key=lambda row: (-abs(row["difference_usd"]), row["product"]))


def unmatched_of(plan: Sorted, actual: Sorted, book: Book, compared: set[str]) -> list[Unmatched]:
    """Return every charge that is compared with nothing, the largest first; planned ones are negative."""
    found: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])

    def add(what: str, why: str, amounts: Sequence[float]) -> None:
        found[what, why] = [old + new for old, new in zip(found[what, why], amounts, strict=True)]

    for sign, side, missing in ((1, actual, UNPLANNED), (-1, plan, UNBILLED)):
        for part in side.parts:
            if part.product not in compared:
                add(book.products[part.product].name, missing, (part.rows, sign * part.billed, sign * part.effective))
        for (what, why), (rows, billed, effective) in side.rest.items():
            add(what, why if side is actual else f"planned: {why}", (rows, sign * billed, sign * effective))
    rows_: list[Unmatched] = [
        {
            "charged_for": what,
            "why": why,
            "rows": int(rows),
            "billed_usd": round(billed, 2),
            "effective_usd": round(effective, 2),
        }
        for (what, why), (rows, billed, effective) in found.items()
    ]
    rows_.sort(key=lambda row: (-abs(row["effective_usd"]), -abs(row["billed_usd"]), row["charged_for"], row["why"]))
    return rows_


def rates_of(
    charges: Iterable[Charges], budget: Mapping[str, float], paid: Mapping[str, float], said: tuple[str, str]
) -> list[Rates]:
    """Return the budgeted and the paid rate of each currency of an invoice."""
    found: list[Rates] = []
    for code in sorted({charge.currency for charge in charges}):
        for rates, flag in zip((budget, paid), said, strict=True):
            if code != "USD" and code not in rates:
                raise PriceMissingError(f"no exchange rate for {code}: give {flag} {code}=USD for one {code}.")
        found.append(
            {
                "currency": code,
                "budget_usd_per_unit": 1.0 if code == "USD" else budget[code],
                "paid_usd_per_unit": 1.0 if code == "USD" else paid[code],
            }
        )
    return found


def totals_of(
    plan: Sequence[Charges], actual: Sequence[Charges], budget: Mapping[str, float], paid: Mapping[str, float]
) -> Totals:
    """Return what was planned and what was charged, in cents."""
    had = {basis: _summed(plan, basis, budget) for basis in _BASES}
    has = {basis: _summed(actual, basis, paid) for basis in _BASES}
    return {
        "planned_billed_usd": had["billed"],
        "planned_effective_usd": had["effective"],
        "charged_billed_usd": has["billed"],
        "charged_effective_usd": has["effective"],
        "list_usd": _summed(actual, "listed", paid) or None,
        "contracted_usd": _summed(actual, "contracted", paid) or None,
        "billed_difference_usd": round(has["billed"] - had["billed"], 2),
        "effective_difference_usd": round(has["effective"] - had["effective"], 2),
    }


def _summed(charges: Iterable[Charges], name: str, rates: Mapping[str, float]) -> float:
    return round(fsum(getattr(charge, name) * rates[charge.currency] for charge in charges), 2)
