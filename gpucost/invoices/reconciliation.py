"""An invoice held against a plan: charges matched, the difference split into parts that add up."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, time, timedelta
from math import fsum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gpucost.answers.common import Frame
from gpucost.answers.invoices import DifferencePart, Matched, Rates, Reconciliation, Showback, Totals, Unmatched
from gpucost.errors import AmbiguousNameError, DataError, PriceMissingError, UsageError
from gpucost.gate import read_table, shown
from gpucost.invoices.reading import Charges, charges_of, read_charges
from gpucost.invoices.rows import NAMES, UNITS, focus_rows
from gpucost.money.variance import LEAST, PARTS, Amount, in_cents, shared, split

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

# --- Which planned product a charge is for, and in which unit: by its names, words in them, or a map of one's own.

_WORD_BREAKS = re.compile(r"[\s:/,;()]+")
_SKU, _LINE = NAMES.index("SkuId"), NAMES.index("x_Line")
_GENERAL = NAMES.index("ServiceName")  # too wide to name a product
_HOURS = ("hour", "GPU-hour")


class Product(NamedTuple):
    """A planned product."""

    name: str
    unit: str
    gpus_per_unit: float


def unit_of(text: str) -> str:
    """Return a unit under its usual name.

    >>> unit_of("Hrs"), unit_of("GPU-Hours"), unit_of("Requests")
    ('hour', 'GPU-hour', 'Requests')
    """
    return UNITS.get(text.strip().lower(), text.strip())


def name_of(charge: Charges) -> str:
    """Return what a charge is for: its SKU, else the first name that it has."""
    return charge.names[_SKU] or next((name for name in charge.names if name), "") or charge.category


class Holding(NamedTuple):
    """The accelerators that names may mean, and how many of them one hour of what is named holds."""

    accelerators: frozenset[str]
    gpus: float | None  # None where machines of several sizes are meant


_NOTHING = Holding(frozenset(), None)
_NO_GPU = re.compile(r"\b(core|v?cpu|ram|memory|disk|storage|snapshot|licen[cs]e|data transfer)s?\b", re.IGNORECASE)
_INTERRUPTIBLE = re.compile(r"spot|preempt|interruptible|low.priority", re.IGNORECASE)
_LONGEST_RUN = 4  # words of a text that together name an accelerator: Nvidia H100 80GB GPU


class Hardware:
    """Which accelerators the names of a charge mean, as everywhere: machines by their names, chips by any spelling."""

    def __init__(self, catalog: "Catalog") -> None:
        self._catalog = catalog
        self._seen: dict[tuple[str, ...], Holding] = {}

    def of(self, names: tuple[str, ...]) -> Holding:
        """Return what the names of a charge hold; one for processors, memory or disks holds none."""
        if names not in self._seen:
            texts = [name for index, name in enumerate(names) if name and index not in (_GENERAL, _LINE)]
            has_gpus = not any(_NO_GPU.search(text) for text in texts)
            self._seen[names] = self._holding(texts) if has_gpus else _NOTHING
        return self._seen[names]

    def _holding(self, texts: Sequence[str]) -> Holding:
        # Whole names first, then runs of words from the longest to the shortest: "H100 80GB" says more than "H100".
        runs = [
            " ".join(words[start : start + length])
            for length in range(_LONGEST_RUN, 0, -1)
            for words in ([word for word in _WORD_BREAKS.split(text) if word] for text in texts)
            for start in range(len(words) - length + 1)
        ]
        for name in dict.fromkeys((*texts, *runs)):
            if not any(sign.isdigit() for sign in name):  # no accelerator has a name without a figure
                continue
            if ids := self._catalog.accelerator_names.matches(name):
                return Holding(frozenset(ids), 1.0)
            with suppress(AmbiguousNameError):
                if machine := self._catalog.machine(name):
                    return Holding(frozenset({machine.accelerator_id}), machine.gpus)
        return _NOTHING


class Book:
    """The planned products, and the names under which charges for them are found: their own, else their chip's."""

    def __init__(
        self,
        planned: Iterable[Charges],
        mapped: Mapping[str, str],
        hardware: Hardware | None = None,
        charged: Iterable[Charges] = (),
    ) -> None:
        planned = list(planned)
        self.products: dict[str, Product] = {}
        self._hardware = hardware
        self._names: dict[str, str] = {}
        self._holders: dict[str, dict[str, str]] = {}  # accelerator -> planned products of it, and how each is bought
        self._same: dict[str, str] = {}  # planned products that no charge can tell apart
        several: set[str] = set()  # names that mean more than one product, such as a region: they mean none
        for charge in sorted(planned, key=lambda charge: charge.category == "Purchase"):  # usage says the unit
            key = name_of(charge).lower()
            self.products.setdefault(key, Product(name_of(charge), unit_of(charge.unit), charge.gpus_per_unit))
            for name in (charge.names[index].lower() for index in range(len(NAMES)) if index not in (_GENERAL, _LINE)):
                if name and self._names.setdefault(name, key) != key:
                    several.add(name)
        for name in several:
            del self._names[name]
        for charge in planned:
            for id_ in self._holding(charge).accelerators:
                self._holders.setdefault(id_, {})[name_of(charge).lower()] = _purchase_way(charge)
        self._mapped: dict[str, str] = {}
        for name, target in mapped.items():
            key = self._names.get(target.lower(), target.lower())
            if key not in self.products:
                planned_names = ", ".join(product.name for product in self.products.values())
                reason = f"names {target[:60]!r}, which is not planned; planned are {planned_names[:300]}"
                raise DataError(reason, file="--map")
            self._mapped[name.lower()] = key
        self._seen: dict[tuple[tuple[str, ...], str, str], str | None] = {}
        for charge in charged:  # which of the planned products are the same must be known before the first is asked for
            self.product(charge)

    def product(self, charge: Charges) -> str | None:
        """Return the key of the planned product that a charge is for."""
        question = charge.names, _purchase_way(charge), unit_of(charge.unit)
        if question not in self._seen:
            # A name of the charge by one's own map, else by the plan's names, else a word of it that names a product.
            low = [name.lower() for name in charge.names]
            whole = [mapping[name] for mapping in (self._mapped, self._names) for name in low if mapping.get(name)]
            parts = [word for name in low[:_GENERAL] for word in _WORD_BREAKS.split(name) if word in self._names]
            key = None
            if whole or parts:
                key = whole[0] if whole else self._names[parts[0]]
            holding = self._holding(charge)
            of_key = {id_ for id_, ways in self._holders.items() if key in ways}
            if holding.accelerators and of_key and holding.accelerators.isdisjoint(of_key):
                key = None  # a word such as spot names a supply of the plan, the rest another chip
            if not key:
                # A product of these accelerators: one bought alike, else any; those alike become one.
                ways = {key: way for id_ in holding.accelerators for key, way in self._holders.get(id_, {}).items()}
                alike = sorted(key for key, way in ways.items() if way == question[1]) or sorted(ways)
                if alike:
                    key = alike[0]
                    self._same |= dict.fromkeys(alike[1:], key)
            self._seen[question] = key or None
        key = self._seen[question]
        return self._same.get(key, key) if key else None

    def _holding(self, charge: Charges) -> Holding:
        """Return the accelerators whose hours a charge counts."""
        return self._hardware.of(charge.names) if self._hardware and unit_of(charge.unit) in _HOURS else _NOTHING

    def factor(self, charge: Charges, key: str) -> float | None:
        """Return what turns a charge's quantity into the product's unit; None where nothing does."""
        product, unit = self.products[key], unit_of(charge.unit)
        if unit in (product.unit, ""):
            return 1.0
        # A machine named on the charge says how many GPUs an hour of it is; else the plan does.
        gpus = self._holding(charge).gpus or product.gpus_per_unit
        if (unit, product.unit) == ("hour", "GPU-hour") and gpus:
            return gpus
        if (unit, product.unit) == ("GPU-hour", "hour") and product.gpus_per_unit:
            return 1 / product.gpus_per_unit
        return None


def _purchase_way(charge: Charges) -> str:
    """Return how capacity is bought, as a bill tells it: under a commitment, interruptible, or neither."""
    if charge.committed:
        return "committed"
    return "interruptible" if any(map(_INTERRUPTIBLE.search, charge.names)) else ""


def read_map(path: str | None) -> dict[str, str]:
    """Read a CSV with the columns invoice and estimate: what a charge is called on either side."""
    if path is None:
        return {}
    head, rows = read_table(path)
    if head[:2] != ["invoice", "estimate"]:
        raise DataError("needs the columns invoice,estimate", file=path, row=1)
    mapping: dict[str, str] = {}
    for number, row in rows:
        if not row.keys() >= {"invoice", "estimate"}:
            raise DataError("needs two names", file=path, row=number)
        name, target = row["invoice"].lower(), row["estimate"]
        if mapping.setdefault(name, target).lower() != target.lower():
            reason = f"maps {shown(row['invoice'])} to {shown(target)}, and a row above to {shown(mapping[name])}"
            raise DataError(f"{reason}. Keep one.", file=path, row=number, column="invoice")
    return mapping


# --- An invoice against a plan: charges matched, the difference split into parts that add up, what is left shown.

Window = tuple[datetime, datetime]
_BASES = ("billed", "effective")
_LONGEST_MONTH_DAYS = 31
# reasons that have a line of their own beside the six parts
CREDIT, TAX, SIGN = "credits and refunds", "taxes", "negative without a reason"
UNPLANNED, UNBILLED, OUTSIDE = "not in the plan", "not on the invoice", "outside the period of the plan"
_COMMITMENT = "commitment"


class ChargePart(NamedTuple):
    """Charges that are compared: what they are for, how much, and both costs in USD."""

    product: str
    committed: bool
    rows: int
    quantity: float
    billed: float
    effective: float


class Sorted(NamedTuple):
    """One side of the comparison."""

    parts: list[ChargePart]
    commitments: list[float]  # billed, effective: purchases, and what nobody used
    uncompared: dict[tuple[str, str], list[float]]  # (name, reason) -> rows, billed, effective


def period_of(charges: Sequence[Charges]) -> Window:
    """Return the first moment and the end of charges; a day that began counts whole on an invoice."""
    first = datetime.combine(min(charge.day for charge in charges), time())
    last = datetime.combine(max(charge.day for charge in charges), time()) + timedelta(days=1)
    return first, max(last, *(charge.end for charge in charges))


def used_period(charges: Sequence[Charges]) -> Window:
    """Return the time of use and of recurring fees; what was bought for a year says nothing of an invoice's reach."""
    month = timedelta(days=_LONGEST_MONTH_DAYS)  # a fee of at most a month is an instalment of a commitment
    timed = [
        charge
        for charge in charges
        if charge.category == "Usage"
        or (charge.category == "Purchase" and charge.end - datetime.combine(charge.day, time()) <= month)
    ]
    return period_of(timed or charges)


def planned_period(charges: Sequence[Charges]) -> Window:
    """Return the first moment and the end of a plan."""
    return period_of(charges)[0], max(charge.end for charge in charges)


def overlap(plan: Window, invoice: Window) -> Window:
    """Return the time that both cover."""
    shared = max(plan[0], invoice[0]), min(plan[1], invoice[1])
    if shared[0] >= shared[1]:
        spans = [f"{start:%Y-%m-%d} to {end:%Y-%m-%d}" for start, end in (plan, invoice)]
        raise UsageError(f"the plan is for {spans[0]}, the invoice for {spans[1]}: they share no day. Say --start.")
    return shared


def within(charges: Iterable[Charges], window: Window) -> list[Charges]:
    """Cut planned charges to a window, in proportion to time."""
    cut_charges = []
    for charge in charges:
        start = datetime.combine(charge.day, time())
        length = max(charge.end - start, timedelta(seconds=1))  # what is bought at a moment has no length
        inside = min(charge.end, window[1]) - max(start, window[0])
        share = max(inside / length, 0.0)
        if share >= 1:
            cut_charges.append(charge)
        elif share > 0:
            amounts = {name: getattr(charge, name) * share for name in ("billed", "effective", "quantity", "listed")}
            cut_charges.append(charge._replace(day=max(start, window[0]).date(), **amounts))
    return cut_charges


def sort(charges: Iterable[Charges], book: Book, window: Window, rates: Mapping[str, float]) -> Sorted:
    """Sort the charges of one side: what is compared, what belongs to commitments, and what is left, with reasons."""
    side = Sorted([], [0.0, 0.0], defaultdict(lambda: [0.0, 0.0, 0.0]))
    for charge in charges:
        rate = rates[charge.money]
        costs = charge.billed * rate, charge.effective * rate
        key = book.product(charge)
        factor = book.factor(charge, key) if key else None
        # Why it is not compared by its product. The order is that of the reader: what lies outside is said to, whatever
        # else it is; a purchase that is taken back is a refund before it is a commitment.
        bought, reason = charge.category == "Purchase", ""
        if not window[0].date() <= charge.day or datetime.combine(charge.day, time()) >= window[1]:
            reason = OUTSIDE
        elif charge.category == "Tax":
            reason = TAX
        elif charge.category in ("Credit", "Adjustment") or (bought and charge.negative):
            reason = CREDIT
        elif charge.status == "Unused" or (bought and charge.committed):
            side.commitments[:] = [old + new for old, new in zip(side.commitments, costs, strict=True)]
            continue
        elif charge.negative and not charge.corrected:
            reason = SIGN
        if not reason and key and factor is not None:
            side.parts.append(ChargePart(key, charge.committed, charge.rows, charge.quantity * factor, *costs))
            continue
        if not reason and key:
            reason = f"{UNPLANNED}: counted in {charge.unit or 'nothing'}, planned in {book.products[key].unit}"
        left = side.uncompared[name_of(charge), reason or UNPLANNED]
        left[:] = [old + new for old, new in zip(left, (charge.rows, *costs), strict=True)]
    return side


def parts_of(
    plan: Sorted,
    actual: Sorted,
    book: Book,
    exchange: Sequence[float],
    work_ratio: float | None,
    total: Sequence[float],
) -> tuple[list[DifferencePart], set[str]]:
    """Split the difference, billed and effective, into parts that add up to the cent; and name what could be split."""
    quantities: list[dict[str, float]] = []
    for side in (plan, actual):
        by_product: dict[str, float] = defaultdict(float)
        for part in side.parts:
            by_product[part.product] += part.quantity
        quantities.append(by_product)
    had, has = quantities
    # a product is compared where enough of it was planned to tell a price from
    compared = {name for name in has if had.get(name, 0.0) > LEAST * max(abs(has[name]), 1.0)}
    columns = [
        _column(basis, plan, actual, book, compared, exchange[basis], work_ratio, total[basis]) for basis in (0, 1)
    ]
    names = dict.fromkeys([*columns[0], *columns[1]])
    notes = {
        "efficiency": "" if work_ratio is not None else "part of quantity, as the work done is not given",
        "commitment use": "hours covered, purchases and what nobody used",
    }
    parts: list[DifferencePart] = [
        {
            "part": name,
            "billed_usd": columns[0].get(name, 0.0),
            "effective_usd": columns[1].get(name, 0.0),
            "note": notes.get(name, ""),
        }
        for name in names
        if name in PARTS or columns[0].get(name) or columns[1].get(name)
    ]
    return parts, compared


def _column(
    basis: int,
    plan: Sorted,
    actual: Sorted,
    book: Book,
    compared: set[str],
    exchange: float,
    work: float | None,
    total: float,
) -> dict[str, float]:
    """Return the parts of the difference on one basis, in cents."""
    # Products of one unit are split together: hours and GB-months make no sum. The work that was done explains hours of
    # GPUs alone.
    differences = dict.fromkeys(PARTS, 0.0)
    for unit in {book.products[name].unit for name in compared}:
        sides: list[dict[str, dict[bool, Amount]]] = []
        for side in (plan, actual):
            amounts: dict[str, dict[bool, Amount]] = {}
            for part in side.parts:
                if part.product in compared and book.products[part.product].unit == unit:
                    row = amounts.setdefault(part.product, {})
                    had = row.get(part.committed, Amount(0.0, 0.0))
                    cost = (part.billed, part.effective)[basis]
                    row[part.committed] = Amount(had.quantity + part.quantity, had.cost + cost)
            sides.append(amounts)
        for name, value in split(sides[0], sides[1], work if unit == "GPU-hour" else None).items():
            differences[name] += value
    differences["commitment use"] += actual.commitments[basis] - plan.commitments[basis]
    differences["exchange rate"] = exchange
    for sign, side, missing in ((1, actual, UNPLANNED), (-1, plan, UNBILLED)):
        for part in side.parts:
            if part.product not in compared:
                differences[missing] = differences.get(missing, 0.0) + sign * (part.billed, part.effective)[basis]
        for (_, why), sums in side.uncompared.items():
            name = why.partition(":")[0]
            differences[name] = differences.get(name, 0.0) + sign * sums[1 + basis]
    return dict(zip(differences, in_cents(list(differences.values()), total), strict=True))


def _products_of(plan: Sorted, actual: Sorted, book: Book, compared: set[str]) -> list[Matched]:
    """Return what was planned and charged for each product, the largest difference first."""
    rows: list[Matched] = []
    # Of every product that both sides have; the others stand as unmatched.
    for name in compared:
        sides = [[part for part in side.parts if part.product == name] for side in (plan, actual)]
        # sums of quantity, billed and effective
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


def _unmatched_of(plan: Sorted, actual: Sorted, book: Book, compared: set[str]) -> list[Unmatched]:
    """Return every charge that is compared with nothing, the largest first; planned ones are negative."""
    unmatched: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])

    def add(charged_for: str, why: str, amounts: Sequence[float]) -> None:
        unmatched[charged_for, why] = [old + new for old, new in zip(unmatched[charged_for, why], amounts, strict=True)]

    for sign, side, missing in ((1, actual, UNPLANNED), (-1, plan, UNBILLED)):
        for part in side.parts:
            if part.product not in compared:
                add(book.products[part.product].name, missing, (part.rows, sign * part.billed, sign * part.effective))
        for (charged_for, why), (rows, billed, effective) in side.uncompared.items():
            add(charged_for, why if side is actual else f"planned: {why}", (rows, sign * billed, sign * effective))
    rows_: list[Unmatched] = [
        {
            "charged_for": charged_for,
            "why": why,
            "rows": int(rows),
            "billed_usd": round(billed, 2),
            "effective_usd": round(effective, 2),
        }
        for (charged_for, why), (rows, billed, effective) in unmatched.items()
    ]
    rows_.sort(key=lambda row: (-abs(row["effective_usd"]), -abs(row["billed_usd"]), row["charged_for"], row["why"]))
    return rows_


def rates_of(
    charges: Iterable[Charges], budget: Mapping[str, float], paid: Mapping[str, float], flags: tuple[str, str]
) -> list[Rates]:
    """Return the budgeted and the paid rate of each currency of an invoice, by month."""
    # A rate of the month goes before one of the currency; USD is its own.
    rates_by_money: list[Rates] = []
    for money in sorted({charge.money for charge in charges}):
        code, _, month = money.partition(" ")
        usd: list[float] = []
        for rates, flag in zip((budget, paid), flags, strict=True):
            rate = 1.0 if code == "USD" else rates.get(money, rates.get(code))
            if rate is None:
                raise PriceMissingError(f"no exchange rate for {code}: give {flag} {code}=USD for one {code}.")
            usd.append(rate)
        row: Rates = {"currency": code, "month": month, "budget_usd_per_unit": usd[0], "paid_usd_per_unit": usd[1]}
        rates_by_money.append(row)
    return rates_by_money


def by_money(rates: Iterable[Rates], name: Literal["budget_usd_per_unit", "paid_usd_per_unit"]) -> dict[str, float]:
    """Return the rates of one kind by what charges are in."""
    return {f"{row['currency']} {row['month']}".strip(): row[name] for row in rates}


def _summed(charges: Iterable[Charges], name: str, rates: Mapping[str, float]) -> float:
    return round(fsum(getattr(charge, name) * rates[charge.money] for charge in charges), 2)


# --- The answer: an invoice held against a plan, or only shown back by a tag; every charge ends in one line of it.

_UNTAGGED = "(untagged)"
RATE_FLAGS = ("--budget-rate", "--rate")


class InvoiceQuestion(NamedTuple):
    """What is asked of an invoice: against what it is held, by which names and rates, and what is shown back."""

    tag: str | None
    idle_by: str
    work_ratio: float | None
    mapped: Mapping[str, str]
    budget: Mapping[str, float]  # USD per unit of each currency (and month, as EUR 2026-10), as planned and as paid
    paid: Mapping[str, float]
    paid_on: Mapping[str, str] = {}  # the day of each rate that the catalog has
    hardware: Hardware | None = None


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
        if flags := [flag for flag, value in (("--start", start), ("--rank", rank > 1), ("--side", side)) if value]:
            reason = "is of a saved answer" if len(flags) == 1 else "are of a saved answer"
            raise UsageError(f"{' and '.join(flags)} {reason}; {shown(plan)} is a FOCUS file and is used as it is.")
        return read_charges(plan)
    return charges_of(focus_rows(plan, start or used_period(invoice)[0], rank, side))


def reconciled(frame: Frame, invoice: list[Charges], plan: list[Charges], question: InvoiceQuestion) -> Reconciliation:
    """Return the answer."""
    if not plan and not question.tag:
        raise UsageError(
            "name what to compare the invoice with (--estimate saved.json), or give --showback TAG, or both."
        )
    rates = rates_of([*invoice, *plan], question.budget, question.paid, RATE_FLAGS)
    budget, paid = by_money(rates, "budget_usd_per_unit"), by_money(rates, "paid_usd_per_unit")
    window = overlap(planned_period(plan), used_period(invoice)) if plan else used_period(invoice)
    # Both sides are sorted at the budgeted rates; what the paid ones add is a part of its own.
    cut = within(plan, window)
    # What was planned and what was charged, in cents.
    had = {basis: _summed(cut, basis, budget) for basis in _BASES}
    has = {basis: _summed(invoice, basis, paid) for basis in _BASES}
    totals: Totals = {
        "planned_billed_usd": had["billed"],
        "planned_effective_usd": had["effective"],
        "charged_billed_usd": has["billed"],
        "charged_effective_usd": has["effective"],
        "list_usd": _summed(invoice, "listed", paid) or None,
        "contracted_usd": _summed(invoice, "contracted", paid) or None,
        "billed_difference_usd": round(has["billed"] - had["billed"], 2),
        "effective_difference_usd": round(has["effective"] - had["effective"], 2),
    }
    book = Book(cut, question.mapped, question.hardware, invoice)
    sides = [sort(charges, book, window, budget) for charges in (cut, invoice)]
    exchange = [
        fsum(getattr(charge, name) * (paid[charge.money] - budget[charge.money]) for charge in invoice)
        for name in ("billed", "effective")
    ]
    total = totals["billed_difference_usd"], totals["effective_difference_usd"]
    parts, compared = parts_of(sides[0], sides[1], book, exchange, question.work_ratio, total) if plan else ([], set())
    difference, planned_usd = totals["effective_difference_usd"], totals["planned_effective_usd"]
    if plan and any(part["effective_usd"] or part["billed_usd"] for part in parts):
        gap = f"comes to the plan of {planned_usd:,.2f} USD"
        if difference:
            share = f" ({abs(difference) / planned_usd:.1%})" if planned_usd > 0 else ""
            side = "over" if difference > 0 else "under"
            gap = f"is {abs(difference):,.2f} USD{share} {side} the plan of {planned_usd:,.2f}"
        largest = max(parts, key=lambda part: (abs(part["effective_usd"]), abs(part["billed_usd"])))
        headline = (
            f"The invoice {gap} for {_days(window)};"
            f" the largest part is {largest['part']}, {largest['effective_usd']:+,.2f} USD."
        )
    elif plan:
        headline = f"The invoice is what was planned for {_days(window)}, {planned_usd:,.2f} USD."
    else:
        headline = f"{totals['charged_effective_usd']:,.2f} USD from {_days(window)}, by tag."
    # how the two bases differ, and what discounts took off the list
    against = f" against {totals['planned_billed_usd']:,.2f} planned" if plan else " USD"
    lead = (
        f"{headline} Effective spreads commitments over their use; billed is what the invoice asks:"
        f" {totals['charged_billed_usd']:,.2f}{against}."
    )
    listed, contracted, effective = totals["list_usd"], totals["contracted_usd"], totals["charged_effective_usd"]
    if listed and contracted and listed != effective:
        lead += f" List {listed:,.2f}, contracted {contracted:,.2f}, effective {effective:,.2f} USD."
    currencies: list[Rates] = []
    for row in rates:
        if row["currency"] != "USD":
            day = question.paid_on.get(f"{row['currency']} {row['month']}")
            currencies.append({**row, "paid_rate_on": day} if day else row)
    warnings = []
    if zoneless := sum(charge.zoneless for charge in invoice):
        warnings.append(f"{zoneless:,} charges name no time zone: taken as UTC.")
    if plan:
        plan_period = planned_period(plan)
        if plan_period[1] > window[1] or plan_period[0] < window[0]:
            part_of_plan = (window[1] - window[0]) / (plan_period[1] - plan_period[0])
            warnings.append(
                f"The invoice covers {part_of_plan:.0%} of the plan's time: only that part of the plan is compared."
            )
        if any(why == OUTSIDE for _, why in sides[1].uncompared):
            warnings.append("Charges outside the plan's period have a line of their own.")
    if signs := sum(int(rows[0]) for (_, why), rows in sides[1].uncompared.items() if why == SIGN):
        warnings.append(f"{signs:,} charges are negative and no credit, adjustment, refund or correction.")
    return {
        "kind": "reconciliation",
        **frame,
        "headline": headline,
        "lead": lead,
        "rows_read": sum(charge.rows for charge in invoice),
        "period_from": f"{window[0]:%Y-%m-%d}",
        "period_until": f"{window[1]:%Y-%m-%d %H:%M}",
        "totals": totals,
        "parts": parts,
        "products": _products_of(sides[0], sides[1], book, compared),
        "unmatched": _unmatched_of(sides[0], sides[1], book, compared) if plan else [],
        "anomalies": [],
        "forecast": None,
        "currencies": currencies,
        "showback": showback(invoice, question.idle_by, paid) if question.tag else [],
        "idle_by": question.idle_by if question.tag else "",
        "warnings": warnings,
        "sources": {},
    }


def showback(charges: Sequence[Charges], idle_by: str, rates: Mapping[str, float]) -> list[Showback]:
    """Return the effective cost under each value of a tag; what nobody used is shared among the tagged by the key.

    The cents add up to the whole invoice. Key `cost` shares by direct cost, `quantity` by quantities, `even` alike.
    Quantities are those of one unit, as hours and GB-months make no sum: that of what nobody used, else of most of the
    cost.
    """
    # the unit of what nobody used, else of most of the cost
    costs: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])  # by unit: of what nobody used, of what was used
    for charge in charges:
        if charge.category == "Usage":
            costs[unit_of(charge.unit)][charge.status != "Unused"] += charge.effective * rates[charge.money]
    unit = max(sorted(costs), key=lambda unit: costs[unit], default="")

    groups: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])  # rows, quantity, cost
    idle = 0.0
    for charge in charges:
        cost = charge.effective * rates[charge.money]
        if charge.status == "Unused":
            idle += cost
            continue
        quantity = charge.quantity if unit_of(charge.unit) == unit else 0.0
        group = groups[charge.tag or _UNTAGGED]
        group[:] = [group[0] + charge.rows, group[1] + quantity, group[2] + cost]
    names = sorted(groups, key=lambda name: (name == _UNTAGGED, -groups[name][2], name))
    # Rounded once, in all: the parts are fitted to it.
    total_usd = round(fsum([idle, *(group[2] for group in groups.values())]), 2)
    direct = dict(
        zip(names, in_cents([groups[name][2] for name in names], round(total_usd - round(idle, 2), 2)), strict=True)
    )
    # Who has no tag bears nothing of what nobody used, while others have one.
    bearers = [name for name in names if name != _UNTAGGED] or names
    weight = {"cost": 2, "quantity": 1}.get(idle_by)
    share = shared(round(idle, 2), {name: groups[name][weight] if weight else 1.0 for name in bearers})
    return [
        {
            "tag_value": name,
            "rows": int(groups[name][0]),
            "quantity": groups[name][1],
            "unit": unit,
            "direct_usd": direct[name],
            "idle_usd": share.get(name, 0.0),
            "total_usd": round(direct[name] + share.get(name, 0.0), 2),
            "share_fraction": (direct[name] + share.get(name, 0.0)) / total_usd if total_usd else 0.0,
        }
        for name in names
    ]


def _days(window: Window) -> str:
    """Return the first and the last day of a time, whose end is the first moment after it."""
    return f"{window[0]:%Y-%m-%d} to {window[1] - timedelta(microseconds=1):%Y-%m-%d}"
