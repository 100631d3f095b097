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

_TAKEN = ("own", "own_in_cash", "rent", "api")


class Leg(NamedTuple):
    """Renting with some inputs changed, and how often it counts."""

    weight: float
    changes: dict[str, Any]


class Way(Struct, frozen=True):
    """A way to rent the hours, and what is said of it; its price is that of the first leg, where it has one."""

    name: str
    legs: tuple[Leg, ...]
    said: dict[str, Any] = field(default_factory=dict)
    offer: Offer | None = None  # of the catalog, that the first leg rents


def ways(case: OwnershipCase) -> list[Way]:
    """Return every way to rent, as asked first."""
    as_asked = Way("rent", (Leg(1.0, {}),), _base_terms(case), case.rent_offer)
    read = [_planned(case, dict(entry)) for entry in case.rent_options]
    named = {way.name for way in read}
    listed = [choice for choice in case.choices if choice.name not in named]  # a plan's own goes before a list's
    offered = [Way(choice.name, (Leg(1.0, choice.changes()),), _terms(choice), choice.offer) for choice in listed]
    planned = [way for way in read if len(way.legs) == 1 or not case.bent]
    rents = [as_asked, *offered, *planned]
    return [*rents, *(fallback for way in rents for fallback in _fallen_back(case, way))]


def options(case: OwnershipCase, base: Mapping[str, Any]) -> list[OwnershipOption]:
    """Return the options, cheapest present value first; spot last, since its capacity is not promised."""
    rows = [*_owned(case, base), *(_rented(case, way, base) for way in ways(case))]
    hosted = _hosted(case, base)
    if hosted:
        rows.append(hosted)
    return sorted(rows, key=lambda row: (interruptible(row), row["npv_usd"], row["name"]))


def _fallen_back(case: OwnershipCase, way: Way) -> list[Way]:
    """Let the last whole term of a commitment end within the comparison, and rent by use for the months after it."""
    values = {**case.values(), **way.legs[0].changes}
    term, months = int(values["rent_term_months"]), case.months
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
    by_use, price = {}, "as asked"
    if case.assumptions["rent_billing"].value == "take_or_pay":
        if case.fallback is None:
            return []
        by_use, price = case.fallback.changes(), f"on demand at ${case.fallback.usd_per_gpu_hour:.2f}"
    ended = float(months // term * term)
    legs = (
        Leg(1.0, {**way.legs[0].changes, "months": ended}),
        Leg(1.0, by_use),
        Leg(-1.0, {**by_use, "months": ended}),
    )
    terms = f"{_terms_text(values)}, then {price} from month {ended + 1:.0f}"
    return [Way(f"{way.name}_then_rent", legs, {**way.said, "terms": terms}, way.offer)]


def rented(case: OwnershipCase, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate renting with some inputs changed, and what of it moves with its price."""
    values = evaluate_months({**case.columns(), **changes}, case.tables, case.months, _RENT_TARGETS)
    evaluate_all(_RENT_MOVES, values)
    return values


_RENT_MOVES = tuple(line for line in MOVING if line.name.startswith("rent_"))
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


def _owned(case: OwnershipCase, values: Mapping[str, Any]) -> list[OwnershipOption]:
    """Summarise owning as it is financed and, beside it, paid in cash."""
    paid = scalar(values, "capex_usd")
    end = f"resale after {case.months} months"
    kind = str(case.assumptions["financing"].value)
    if kind == "cash":
        return [_summary("own", values, "own_total_usd", paid, f"purchase, cash, {end}")]
    owed, lent = scalar(values, "loan_payment_usd") * case.number("loan_term_months"), scalar(values, "loan_usd")
    if case.assumptions["loan_repayment"].value == "sculpted":
        owed, lent = float(monthly(values, "own_loan_payment_usd").sum()), float(monthly(values, "loan_lent_usd")[0])
    leased = scalar(values, "lease_payment_usd") * case.number("lease_term_months")
    bound = paid - lent + owed if kind == "loan" else leased
    terms = f"purchase, {kind}, {end}" if kind != "operating_lease" else "operating lease, the hardware goes back"
    return [
        _summary("own", values, "own_total_usd", bound, terms),
        _summary("own_in_cash", values, "own_in_cash_usd", paid, f"the same purchase, cash, {end}"),
    ]


def _base_terms(case: OwnershipCase) -> dict[str, Any]:
    entry = case.assumptions["rent_usd_per_gpu_hour"]
    if case.rented is not None:
        return {**_terms(case.rented), "terms": _terms_text(case.values())}
    return {
        "usd_per_gpu_hour": entry.value,
        "source_id": entry.source_id,
        "terms": _terms_text(case.values()),
        "note": entry.note,
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
    bounds = [(word, values.get(f"rent_{name}_ratio")) for word, name in (("at least", "floor"), ("at most", "cap"))]
    follows = [f"{word} ${ratio * price:.2f}" for word, ratio in bounds if ratio and price]
    text += f", follows the market, {' and '.join(follows)}" if follows else ""
    if not (until := values.get("rent_until_months")):
        return text
    after = values.get("rent_after_usd_per_gpu_hour")
    then = "renewed" if values.get("rent_after_basis") == "renewed" else "by use"
    return f"{text}, ends in month {until:.4g}, then {then}{f' at ${after:.2f}' if after else ' at the same price'}"


def _rented(case: OwnershipCase, way: Way, base: Mapping[str, Any]) -> OwnershipOption:
    """Summarise a way to rent; the exposure is what its first terms oblige to pay, used or not."""
    legs_values = [rented(case, leg.changes) for leg in way.legs]
    flows = sum(
        leg.weight * monthly(values, "rent_total_usd") for leg, values in zip(way.legs, legs_values, strict=True)
    )
    first = legs_values if way.said.get("usd_per_gpu_hour") is None else legs_values[:1]
    exposure = sum(leg.weight * _exposure(values) for leg, values in zip(way.legs, first, strict=False))
    row = _summary(way.name, {**base, "way_usd": np.asarray(flows)[None, :]}, "way_usd", exposure, "")
    legs = [leg._asdict() for leg in way.legs]
    row = cast(OwnershipOption, {**row, **way.said, **_layers(case, way, legs_values), "legs": legs})
    unused = scalar(legs_values[0], "unexpired_months") if legs_values[0]["rent_billing"] == "take_or_pay" else 0.0
    if unused and len(legs_values) == 1:
        row["terms"] += f"; the last term runs {unused:g} months beyond the comparison, paid for"
    return row


def _layers(case: OwnershipCase, way: Way, legs_values: Sequence[Mapping[str, Any]]) -> LayeredPrice:
    """Return the layers behind a way's price, and what credits pay of its GPU-hours; they change no ranking.

    Once a term has ended, the same credits pay what is left of them for the hours that follow without one.
    """
    if way.offer is None:
        return {}
    bills = [leg.weight * _bill(values) for leg, values in zip(way.legs, legs_values, strict=True)]
    offers, owed = [way.offer], bills[:1]
    bound = case.assumptions["rent_billing"].value == "take_or_pay"
    after = (case.fallback.offer if case.fallback else None) if bound else case.rent_offer
    if len(bills) > 1 and after is not None:
        offers, owed = [way.offer, after], [bills[0], np.sum(bills[1:], axis=0)]
    paid = sum(credited_by_month(case.credits, offers, np.array(owed), case.as_of)) if case.credits else 0.0
    return layered(way.offer, float(np.sum(owed)), paid, way.said.get("usd_per_gpu_hour"))


def _bill(values: Mapping[str, Any]) -> np.ndarray:
    """Return what is paid for rented GPU-hours by month."""
    at_end = np.sum([monthly(values, f"rent_{name}_usd") for name in ("compute", "after", "cancellation")], axis=0)
    return np.asarray(at_end[1:] + monthly(values, "rent_upfront_usd")[:-1])  # upfront is paid at a month's start


def _exposure(values: Mapping[str, Any]) -> float:
    if values["rent_billing"] != "take_or_pay":
        return 0.0
    term = scalar(values, "rent_term_months") or 1.0
    return scalar(values, "rent_gpu_hours") * scalar(values, "rent_usd_per_gpu_hour") * term


def _planned(case: OwnershipCase, entry: dict[str, Any]) -> Way:
    """Read a rent option of the plan: inputs of its own, or parts with shares that make up a blend."""
    name = str(entry.pop("name", "rent option"))
    if name in _TAKEN:
        raise UsageError(f"a rent option cannot be called {name!r}: an option of every comparison is. Choose another.")
    parts = special_value("parts", entry.pop("parts", None) or [{"share": 1.0}], f"rent option {name!r}")
    entry |= _ending(case, entry, f"rent option {name!r}")
    shares = [parse_fraction(part.get("share", 0), f"rent option {name!r}: share") for part in parts]
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
        return Way(name, tuple(legs), {"terms": " + ".join(_share_text(case, leg) for leg in legs)})
    changes = legs[0].changes
    price = changes.get("rent_usd_per_gpu_hour", case.number("rent_usd_per_gpu_hour"))
    return Way(name, tuple(legs), {"usd_per_gpu_hour": price, "terms": _terms_text({**case.values(), **changes})})


def _share_text(case: OwnershipCase, leg: Leg) -> str:
    """Say the share of a part of a blend and its price."""
    price = leg.changes.get("rent_usd_per_gpu_hour")
    if price is None:
        return f"{leg.weight:.0%} as asked"
    fixed = ", fixed" if leg.changes.get("rent_path_basis") == "flat" and not case.rent_path_is_flat else ""
    return f"{leg.weight:.0%} at ${price:.2f}{fixed}"


def _ending(case: OwnershipCase, entry: dict[str, Any], where: str) -> dict[str, Any]:
    """Take the last day and the renewal out of a rent option, and return the inputs that they are.

    What is not said to be renewed is followed by rent by use: as asked for, else at the price by use of the market.
    """
    until, renewal = entry.pop("valid_until", None), entry.pop("renewal_usd_per_gpu_hour", None)
    term = float(entry.get("rent_term_months") or 0)
    if until is None and (renewal is None or not term):
        if renewal is not None:
            raise UsageError(f"{where}: a price is stated for later, and neither an end nor a term. Give one.")
        return {}
    months = term
    if until is not None:
        day = date.fromisoformat(str(DATE.read(until, f"{where}: valid_until")))
        if day < case.start:
            raise UsageError(f"{where}: it ends on {day}, before the comparison begins on {case.start}. Leave it out.")
        months = months_until(day, case.start)
    if renewal is not None:
        return {
            "rent_until_months": months,
            "rent_after_basis": "renewed",
            "rent_after_usd_per_gpu_hour": USD.read(renewal, f"{where}: renewal"),
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
        if not legs or len(legs) > 1:
            continue
        values = {**case.values(), **legs[0]["changes"]}
        until, term = float(values["rent_until_months"] or 0), float(values["rent_term_months"] or 0)
        month = until or term
        if not month or month >= case.months:
            continue
        after = values["rent_after_usd_per_gpu_hour"] if until else None
        then_usd: float | None = float(after) if after else float(values["rent_usd_per_gpu_hour"])
        if not until:
            then = "renewed at its price, on the path of the rental price"
        elif values["rent_after_basis"] == "none":
            then, then_usd = "nothing", None
        else:
            then = "renewed" if values["rent_after_basis"] == "renewed" else "rent by use"
        day = case.start + timedelta(days=round(month * DAYS_PER_MONTH) - 1)
        ends.append(
            {
                "option": row["name"],
                "ends_on": str(day),
                "month": month,
                "usd_per_gpu_hour": float(values["rent_usd_per_gpu_hour"]),
                "then": then,
                "then_usd_per_gpu_hour": then_usd,
            }
        )
    return ends


def _hosted(case: OwnershipCase, values: Mapping[str, Any]) -> OwnershipOption | None:
    """Price the same tokens at a hosted API, where both the price and the tokens per second are known."""
    price, speed = case.assumptions["api_usd_per_mtok"].value, case.assumptions["tokens_per_s_per_gpu"].value
    if price is None or speed is None:
        return None
    mtok = scalar(values, "productive_gpu_hours_per_month") * float(speed) * SECONDS_PER_HOUR / 1e6
    active = monthly(values, "in_use")
    done = {**values, "api_usd": (mtok * float(price) * scalar(values, "after_tax_ratio") * active)[None, :]}
    return {
        **_summary("api", done, "api_usd", 0.0, f"{price:g} USD per million tokens"),
        "usd_per_mtok": float(price),
    }
