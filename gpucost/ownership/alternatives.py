"""Every option of a comparison on one scope: own, rent as asked, other terms, the plan's blends, a hosted API.

A way to rent is a weighted sum of legs: renting evaluated with some inputs changed. A term as quoted is one leg, a
blend has one a part, and a term that ends early is followed by renting by use less the months before its end.
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple, cast

import numpy as np
from msgspec import Struct, field

from gpucost.answers.common import LayeredPrice
from gpucost.answers.ownership import ContractEnd, OwnershipOption, interruptible
from gpucost.arguments.kinds import DATE, USD
from gpucost.errors import UsageError
from gpucost.formula.arrays import evaluate_all
from gpucost.market.contract_ends import months_until
from gpucost.market.terms import credited_by_month
from gpucost.money.comparison import AT_DEBT_RATE, MOVING, evaluate_months
from gpucost.ownership.assemble import OwnershipCase
from gpucost.ownership.offers import RentChoice, check_upfront, layered
from gpucost.ownership.plan import special_value
from gpucost.types import Offer
from gpucost.units import DAYS_PER_MONTH, SECONDS_PER_HOUR, parse_fraction

_RESERVED_NAMES = ("own", "own_in_cash", "rent", "api")


class Leg(NamedTuple):
    """Renting with some inputs changed, and how often it counts."""

    weight: float
    changes: dict[str, Any]


class Way(Struct, frozen=True):
    """A way to rent the hours, and what an answer shows of it; its price is that of the first leg, if it has one."""

    name: str
    legs: tuple[Leg, ...]
    shown: dict[str, Any] = field(default_factory=dict)
    offer: Offer | None = None  # of the catalog, that the first leg rents


def ways(case: OwnershipCase) -> list[Way]:
    """Return every way to rent, as asked first."""
    entry = case.assumptions["rent_usd_per_gpu_hour"]
    shown = {
        "usd_per_gpu_hour": entry.value,
        "source_id": entry.source_id,
        "terms": _terms_text(case.values()),
        "note": entry.note,
    }
    if case.rented is not None:
        shown = {**_terms(case.rented), "terms": shown["terms"]}
    as_asked = Way("rent", (Leg(1.0, {}),), shown, case.rent_offer)
    of_plan = [_planned(case, dict(entry)) for entry in case.rent_options]
    plan_names = {way.name for way in of_plan}  # a plan's own goes before a list's
    offered = [
        Way(choice.name, (Leg(1.0, choice.changes()),), _terms(choice), choice.offer)
        for choice in case.choices
        if choice.name not in plan_names
    ]
    # where losses are carried forward the tax of a blend is no sum of its parts' taxes
    planned = [way for way in of_plan if len(way.legs) == 1 or not case.bent]
    rents = [as_asked, *offered, *planned]
    return [*rents, *(fallback for way in rents for fallback in _fallen_back(case, way))]


def options(case: OwnershipCase, base: Mapping[str, Any]) -> list[OwnershipOption]:
    """Return the options, cheapest present value first; spot last, since its capacity is not promised."""
    # Owning as it is financed and, beside it, paid in cash.
    price, end = scalar(base, "capex_usd"), f"resale after {case.months} months"
    kind = str(case.assumptions["financing"].value)
    if kind == "cash":
        rows = [_summary("own", base, "own_total_usd", price, f"purchase, cash, {end}")]
    else:
        # What a purchase on credit obliges to pay: its own money and the payments of the debt.
        owed, lent = scalar(base, "loan_payment_usd") * case.number("loan_term_months"), scalar(base, "loan_usd")
        if case.assumptions["loan_repayment"].value == "sculpted":
            owed, lent = float(monthly(base, "own_loan_payment_usd").sum()), float(monthly(base, "loan_lent_usd")[0])
        bound = price - lent + owed
        if kind != "loan":
            bound = scalar(base, "lease_payment_usd") * case.number("lease_term_months")
        terms = f"purchase, {kind}, {end}"
        if kind == "operating_lease":
            terms = "operating lease, the hardware goes back"
        rows = [
            _summary("own", base, "own_total_usd", bound, terms),
            _summary("own_in_cash", base, "own_in_cash_usd", price, f"the same purchase, cash, {end}"),
        ]
    rows += [_rented(case, way, base) for way in ways(case)]
    # the same tokens at a hosted API, where both its price and the tokens per second are known
    usd_per_mtok, speed = case.assumptions["api_usd_per_mtok"].value, case.assumptions["tokens_per_s_per_gpu"].value
    if usd_per_mtok is not None and speed is not None:
        mtok = scalar(base, "productive_gpu_hours_per_month") * float(speed) * SECONDS_PER_HOUR / 1e6
        monthly_usd = mtok * float(usd_per_mtok) * scalar(base, "after_tax_ratio")
        hosted = {**base, "api_usd": (monthly_usd * monthly(base, "in_use"))[None, :]}
        summary = _summary("api", hosted, "api_usd", 0.0, f"{usd_per_mtok:g} USD per million tokens")
        rows.append({**summary, "usd_per_mtok": float(usd_per_mtok)})
    return sorted(rows, key=lambda row: (interruptible(row), row["npv_usd"], row["name"]))


def _fallen_back(case: OwnershipCase, way: Way) -> list[Way]:
    """Let the last whole term of a commitment end within the comparison, and rent by use for the months after it."""
    values = {**case.values(), **way.legs[0].changes}
    term, months = int(values["rent_term_months"]), case.months
    # Only one commitment without an end of its own, whose terms do not fill the comparison, has a last whole term.
    if (
        case.bent
        or len(way.legs) > 1
        or values["rent_billing"] != "take_or_pay"
        or values["rent_until_months"]
        or not term
        or term >= months
        or not months % term
    ):
        return []
    # Rent that is by use as it is asked for goes on as it is; else it is followed by the market, if that is known.
    by_use, price = {}, "as asked"
    if case.assumptions["rent_billing"].value == "take_or_pay":
        if case.fallback is None:
            return []
        by_use, price = case.fallback.changes(), f"on demand at ${case.fallback.usd_per_gpu_hour:.2f}"
    # the commitment until then, rent by use over all months, less rent by use until then
    ended = float(months // term * term)
    legs = (
        Leg(1.0, {**way.legs[0].changes, "months": ended}),
        Leg(1.0, by_use),
        Leg(-1.0, {**by_use, "months": ended}),
    )
    terms = f"{_terms_text(values)}, then {price} from month {ended + 1:.0f}"
    return [Way(f"{way.name}_then_rent", legs, {**way.shown, "terms": terms}, way.offer)]


def rented(case: OwnershipCase, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate renting with some inputs changed, and what of it moves with its price."""
    values = evaluate_months({**case.columns(), **changes}, case.tables, case.months, _RENT_TARGETS)
    # Of a pair the break-even is one division: by how much either side moves with its price and its use.
    evaluate_all(_RENT_MOVES, values)
    return values


_RENT_MOVES = tuple(line for line in MOVING if line.name.startswith("rent_"))
# What a row, its rival and its bill are made of; other lines of the comparison are not evaluated.
_RENT_TARGETS = (
    "rent_total_usd",
    "discount_ratio",
    "in_horizon",
    "rent_gpu_hours",
    "rent_price_ratio",
    "rent_tax_usd",
    "allocated_gpu_hours_per_month",
    "after_tax_ratio",
    "unexpired_months",
    "rent_hours",
    "rent_compute_usd",
    "rent_after_usd",
    "rent_upfront_usd",
    "rent_cancellation_usd",
    "rent_support_usd",
)


def monthly(values: Mapping[str, Any], name: str) -> np.ndarray:
    """Return a monthly line of the first case."""
    wide = np.broadcast_to(values[name], np.broadcast_shapes(np.shape(values[name]), values["m"].shape))
    return np.array(wide[0])


def scalar(values: Mapping[str, Any], name: str) -> float:
    """Return a number of the first case."""
    return float(np.ravel(values[name])[0])


def present(values: Mapping[str, Any], name: str) -> float:
    """Return the present value of a monthly line: of financing at the cost of debt, of all else at the WACC."""
    ratio = "debt_discount_ratio" if name in AT_DEBT_RATE else "discount_ratio"
    return float(np.sum(monthly(values, name) * monthly(values, ratio)))


def own_worth(values: Mapping[str, Any]) -> float:
    """Return the present value of owning as it is financed."""
    return float(monthly(values, "own_value_usd").sum())


def discounted_hours(values: Mapping[str, Any]) -> float:
    """Return the discounted allocated GPU-hours, × what is left after tax of the price that they are sold at.

    A cost after tax is met by a price of which 1 − tax rate is left: divided by these hours it is one before tax.
    """
    hours = scalar(values, "allocated_gpu_hours_per_month") * present(values, "in_use")
    return hours * scalar(values, "after_tax_ratio")


def _summary(name: str, values: Mapping[str, Any], total: str, exposure: float, terms: str) -> OwnershipOption:
    flows = monthly(values, total)
    worth = own_worth(values) if total == "own_total_usd" else present(values, total)
    hours = discounted_hours(values)
    return {
        "name": name,
        "npv_usd": worth,
        "levelised_usd_per_gpu_hour": worth / hours if hours else None,
        "cash_usd": float(flows.sum()),
        "peak_month_usd": float(flows.max()),
        "contract_exposure_usd": exposure,
        "terms": terms,
    }


def _terms(choice: RentChoice) -> dict[str, Any]:
    return {
        "option": choice.option,
        "usd_per_gpu_hour": choice.usd_per_gpu_hour,
        "provider": choice.provider,
        "offer_id": choice.offer_id,
        "price_observed_on": choice.observed_on,
        "age_days": choice.age_days,
        "source_id": choice.source_id,
        "terms": _terms_text(choice.changes()),
        "note": choice.note,
    }


def _terms_text(values: Mapping[str, Any]) -> str:
    term = values["rent_term_months"]
    billing = "take-or-pay" if values["rent_billing"] == "take_or_pay" else "per use"
    upfront = f", {values['rent_upfront_fraction']:.0%} upfront" if values["rent_upfront_fraction"] else ""
    text = f"{billing}, {f'{term:g}-month term' if term else 'no term'}{upfront}"
    price = values.get("rent_usd_per_gpu_hour")
    bounds = [
        f"{label} ${values[name] * price:.2f}"
        for label, name in (("at least", "rent_floor_ratio"), ("at most", "rent_cap_ratio"))
        if values.get(name) and price
    ]
    text += f", follows the market, {' and '.join(bounds)}" if bounds else ""
    until, after = values.get("rent_until_months"), values.get("rent_after_usd_per_gpu_hour")
    if until:
        then = "renewed" if values.get("rent_after_basis") == "renewed" else "by use"
        then_price = f"at ${after:.2f}" if after else "at the same price"
        text += f", ends in month {until:.4g}, then {then} {then_price}"
    return text


def _rented(case: OwnershipCase, way: Way, base: Mapping[str, Any]) -> OwnershipOption:
    """Summarise a way to rent; the exposure is what its first terms oblige to pay, used or not."""
    legs_values = [rented(case, leg.changes) for leg in way.legs]
    flows = sum(
        leg.weight * monthly(values, "rent_total_usd") for leg, values in zip(way.legs, legs_values, strict=True)
    )
    # A term that ends early binds by its first leg alone; of a blend, which has no one price, every part binds.
    first = legs_values if way.shown.get("usd_per_gpu_hour") is None else legs_values[:1]
    exposure = 0.0
    for leg, values in zip(way.legs, first, strict=False):
        if values["rent_billing"] == "take_or_pay":
            hourly = scalar(values, "rent_gpu_hours") * scalar(values, "rent_usd_per_gpu_hour")
            exposure += leg.weight * (hourly * (scalar(values, "rent_term_months") or 1.0))
    row = _summary(way.name, {**base, "way_usd": np.asarray(flows)[None, :]}, "way_usd", exposure, "")
    legs = [leg._asdict() for leg in way.legs]
    # The layers behind the price, and what credits pay of its GPU-hours: they change no ranking. Once a term has ended,
    # the same credits pay what is left of them for the hours that follow without one.
    layers: LayeredPrice = {}
    if way.offer is not None:
        bills = []  # what is paid for rented GPU-hours by month
        for leg, values in zip(way.legs, legs_values, strict=True):
            lines = [monthly(values, f"rent_{name}_usd") for name in ("compute", "after", "cancellation")]
            bill = np.sum(lines, axis=0)[1:] + monthly(values, "rent_upfront_usd")[:-1]  # at a month's start
            bills.append(leg.weight * bill)
        offers, owed = [way.offer], bills[:1]
        bound = case.assumptions["rent_billing"].value == "take_or_pay"
        after = (case.fallback.offer if case.fallback else None) if bound else case.rent_offer
        if len(bills) > 1 and after is not None:
            offers, owed = [way.offer, after], [bills[0], np.sum(bills[1:], axis=0)]
        paid = sum(credited_by_month(case.credits, offers, np.array(owed), case.as_of)) if case.credits else 0.0
        layers = layered(way.offer, float(np.sum(owed)), paid, way.shown.get("usd_per_gpu_hour"))
    row = cast(OwnershipOption, {**row, **way.shown, **layers, "legs": legs})
    # The last term may be longer than what is left of the comparison, and is paid for all the same.
    unused = scalar(legs_values[0], "unexpired_months") if legs_values[0]["rent_billing"] == "take_or_pay" else 0.0
    if unused and len(legs_values) == 1:
        row["terms"] += f"; the last term runs {unused:g} months beyond the comparison, paid for"
    return row


def _planned(case: OwnershipCase, entry: dict[str, Any]) -> Way:
    """Read a rent option of the plan: inputs of its own, or parts with shares that make up a blend."""
    name = str(entry.pop("name", "rent option"))
    if name in _RESERVED_NAMES:
        raise UsageError(f"a rent option cannot be called {name!r}: an option of every comparison is. Choose another.")
    parts = special_value("parts", entry.pop("parts", None) or [{"share": 1.0}], f"rent option {name!r}")
    # An end that is stated beside the parts holds for all of them.
    entry |= _ending(case, entry, f"rent option {name!r}")
    shares = [parse_fraction(part.get("share", 0), f"rent option {name!r}: share") for part in parts]
    # Thirds add up to 1 but for rounding.
    if abs(sum(shares) - 1) > 1e-9:
        raise UsageError(f"rent option {name!r}: the shares of its parts add up to {sum(shares):g}, not to 1.")
    legs = []
    for part, share in zip(parts, shares, strict=True):
        changes = {**entry, **{key: value for key, value in part.items() if key != "share"}}
        unknown = sorted(set(changes) - set(case.registry.inputs))
        if unknown:
            raise UsageError(f"rent option {name!r}: {unknown[0]} is not an input. See gpucost tco --print-plan.")
        read = {key: case.registry.number(key, value, f"rent option {name}") for key, value in changes.items()}
        check_upfront({**case.values(), **read}, f"rent option {name!r}")
        legs.append(Leg(share, read))
    if len(legs) > 1:
        texts = []
        for leg in legs:
            price = leg.changes.get("rent_usd_per_gpu_hour")
            fixed = leg.changes.get("rent_path_basis") == "flat" and not case.rent_path_is_flat
            text = "as asked" if price is None else f"at ${price:.2f}{', fixed' if fixed else ''}"
            texts.append(f"{leg.weight:.0%} {text}")
        return Way(name, tuple(legs), {"terms": " + ".join(texts)})
    changes = legs[0].changes
    price = changes.get("rent_usd_per_gpu_hour", case.number("rent_usd_per_gpu_hour"))
    return Way(name, tuple(legs), {"usd_per_gpu_hour": price, "terms": _terms_text({**case.values(), **changes})})


def _ending(case: OwnershipCase, entry: dict[str, Any], origin: str) -> dict[str, Any]:
    """Take the last day and the renewal out of a rent option, and return the inputs that they are.

    What is not stated to be renewed is followed by rent by use: as asked for, else at the price by use of the market.
    """
    until, renewal = entry.pop("valid_until", None), entry.pop("renewal_usd_per_gpu_hour", None)
    # an end without a day is that of the first term
    term = float(entry.get("rent_term_months") or 0)
    if until is None and (renewal is None or not term):
        if renewal is not None:
            raise UsageError(f"{origin}: a price is stated for later, and neither an end nor a term. Give one.")
        return {}
    months = term
    if until is not None:
        day = date.fromisoformat(str(DATE.read(until, f"{origin}: valid_until")))
        if day < case.start:
            raise UsageError(f"{origin}: it ends on {day}, before the comparison begins on {case.start}. Leave it out.")
        months = months_until(day, case.start)
    if renewal is not None:
        return {
            "rent_until_months": months,
            "rent_after_basis": "renewed",
            "rent_after_usd_per_gpu_hour": USD.read(renewal, f"{origin}: renewal"),
        }
    by_use = price_by_use(case)
    return {"rent_until_months": months, "rent_after_basis": "per_use", "rent_after_usd_per_gpu_hour": by_use}


def price_by_use(case: OwnershipCase) -> float:
    """Return what an hour costs once a contract without a renewal has ended: rent as asked, by use, else the market's.

    Where the rent that is asked for ends itself, the hours that follow cost what follows it.
    """
    if case.assumptions["rent_billing"].value == "take_or_pay" and case.fallback:
        return case.fallback.usd_per_gpu_hour
    after = case.assumptions["rent_after_usd_per_gpu_hour"].value
    if case.number("rent_until_months") and isinstance(after, (int, float)):
        return float(after)
    return case.number("rent_usd_per_gpu_hour")


def contract_ends(case: OwnershipCase, rows: Sequence[OwnershipOption]) -> list[ContractEnd]:
    """Return what ends within the comparison, the first end of each way to rent, and what follows it."""
    ends: list[ContractEnd] = []
    for row in rows:
        legs = row.get("legs")
        # Owning and an API have no contract; a blend, or a term that is followed by rent, has no one end.
        if not legs or len(legs) > 1:
            continue
        values = {**case.values(), **legs[0]["changes"]}
        until = float(values["rent_until_months"] or 0)
        price, after = float(values["rent_usd_per_gpu_hour"]), values["rent_after_usd_per_gpu_hour"]
        then, then_usd = "renewed at its price, on the path of the rental price", price
        if until:
            then = "renewed" if values["rent_after_basis"] == "renewed" else "rent by use"
            then_usd = float(after) if after else price
        nothing_after = until and values["rent_after_basis"] == "none"
        month = until or float(values["rent_term_months"] or 0)
        end = contract_end(
            case,
            row["name"],
            month,
            price,
            "nothing" if nothing_after else then,
            None if nothing_after else then_usd,
        )
        if end is not None:
            ends.append(end)
    return ends


def contract_end(
    case: OwnershipCase, name: str, month: float | None, price: float, then: str, then_usd: float | None
) -> ContractEnd | None:
    """Return the end of a price at a month of the comparison, and what follows; None where it ends later, or never."""
    if not month or month >= case.months:
        return None
    last_day = case.start + timedelta(days=round(month * DAYS_PER_MONTH) - 1)
    return {
        "option": name,
        "ends_on": str(last_day),
        "month": month,
        "usd_per_gpu_hour": price,
        "then": then,
        "then_usd_per_gpu_hour": then_usd,
    }
