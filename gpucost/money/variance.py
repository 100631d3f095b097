"""Why an invoice differs from what was planned: price, mix, quantity, efficiency, use of commitments, exchange rate.

Costs are split per product, a product into hours under a commitment and others. Formulas alone; no file, no currency.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

PARTS = ("price", "mix", "quantity", "efficiency", "commitment use", "exchange rate")


class Amount(NamedTuple):
    """How much of something, and what it cost."""

    quantity: float
    cost: float


# product -> committed or not -> amount; all products of one split are counted in one unit
Amounts = Mapping[str, Mapping[bool, Amount]]
LEAST = 1e-6  # of a quantity that a price can be told from, as a share of what it is compared with


def split(plan: Amounts, actual: Amounts, work_ratio: float | None = None) -> dict[str, float]:
    """Split the difference of cost between two sets of the same products; the parts add up to it.

    With Q the quantity in all, q of a product, p = cost ÷ quantity, 0 planned and 1 actual, w the work done ÷ planned
    (Q1 ÷ Q0 where it is not known): quantity (w − 1) C0; efficiency (Q1 ÷ Q0 − w) C0; mix Σ (q1 − Q1 q0 ÷ Q0) p0;
    commitment use Σ (q1c − q1 q0c ÷ q0) p0c over committed and other hours c of each product; price is what is left,
    Σ (C1c − q1c p0c).
    A kind of hours that was not planned takes its own price, so that a new commitment, or one that lapsed, is use.

    Reference: the price-volume-mix analysis of management accounting (Horngren et al., Cost Accounting, ch. 14).
    Valid where each product was planned with a quantity above 0.

    >>> plan = {"a": {False: Amount(100, 200.0)}}
    >>> split(plan, {"a": {False: Amount(120, 300.0)}}, work_ratio=1.1)
    {'price': 60.0, 'mix': 0.0, 'quantity': 20.0, 'efficiency': 20.0, 'commitment use': 0.0}
    """
    planned, used = (
        fsum(amount.quantity for row in rows.values() for amount in row.values()) for rows in (plan, actual)
    )
    cost = fsum(amount.cost for row in plan.values() for amount in row.values())
    grown = used / planned if planned else 0.0
    work = grown if work_ratio is None else work_ratio
    effects_usd = {"price": 0.0, "mix": 0.0, "quantity": (work - 1) * cost, "efficiency": (grown - work) * cost}
    # + 0.0 makes a plain zero of a negative one, that prints as -0
    effects_usd = {name: round(value, 9) + 0.0 for name, value in effects_usd.items()} | {"commitment use": 0.0}
    for product, before in plan.items():
        after = actual.get(product, {})
        quantity, now = (fsum(amount.quantity for amount in row.values()) for row in (before, after))
        mean = fsum(amount.cost for amount in before.values()) / quantity
        effects_usd["mix"] += (now - grown * quantity) * mean
        for kind in {*before, *after}:
            had, has = before.get(kind, Amount(0.0, 0.0)), after.get(kind, Amount(0.0, 0.0))
            priced = had if had.quantity > LEAST * quantity else has
            price = priced.cost / priced.quantity if abs(priced.quantity) > LEAST * quantity else 0.0
            effects_usd["commitment use"] += (has.quantity - now * had.quantity / quantity) * price
    # Price is what is left, so that the parts add up whatever was rounded.
    spent = fsum(amount.cost for row in actual.values() for amount in row.values())
    return effects_usd | {"price": round(fsum([spent, -cost, *(-value for value in effects_usd.values())]), 9) + 0.0}


def in_cents(values: Sequence[float], total: float) -> list[float]:
    """Round amounts to cents so that they add up to the rounded total; who loses most by rounding gains a cent first.

    >>> in_cents([1 / 3, 1 / 3, 1 / 3], 1.0)
    [0.34, 0.33, 0.33]
    """
    cents = [value * 100 for value in values]
    rounded_cents = [round(value) for value in cents]
    # Rounding each leaves some cents over or lacking: they go where rounding moved most, one each.
    missing = round(total * 100) - sum(rounded_cents)
    step = 1 if missing > 0 else -1
    order = sorted(range(len(rounded_cents)), key=lambda index: (step * (rounded_cents[index] - cents[index]), index))
    for number in range(abs(missing)):
        rounded_cents[order[number % len(order)]] += step
    return [value / 100 for value in rounded_cents]


def shared(amount: float, weights: Mapping[str, float]) -> dict[str, float]:
    """Share an amount by weights, in cents; where no weight is above 0 everybody gets the same.

    >>> shared(10.0, {"a": 2.0, "b": 1.0})
    {'a': 6.67, 'b': 3.33}
    """
    # A weight below nothing, as of a refund, bears no share.
    positive = {name: max(weight, 0.0) for name, weight in weights.items()}
    total_weight = fsum(positive.values())
    parts = [amount * (weight / total_weight if total_weight else 1 / len(positive)) for weight in positive.values()]
    return dict(zip(positive, in_cents(parts, amount), strict=True)) if positive else {}


def spread(total: float, shares: Iterable[float]) -> list[float]:
    """Spread an amount over periods by their shares, each in cents, so that every beginning is rounded alike.

    >>> spread(1.0, [0.25, 0.25, 0.5])
    [0.25, 0.25, 0.5]
    """
    amounts_usd, before, at = [], 0, 0.0
    for share in shares:
        at += share
        # The sum so far is rounded, not the part: cents never drift away from it.
        until = round(total * at * 100)
        amounts_usd.append((until - before) / 100)
        before = until
    return amounts_usd
