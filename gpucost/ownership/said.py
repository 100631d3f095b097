"""What a comparison says in words: the verdict, its conventions, and what a reader must know."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpucost.answers import ownership as shape
from gpucost.money import cashflow
from gpucost.ownership import analysis
from gpucost.ownership.alternatives import monthly
from gpucost.ownership.assemble import OwnershipCase
from gpucost.ownership.plan import WEEKS_PER_MONTH
from gpucost.ownership.views import scope
from gpucost.units import counted, percent, spanned

HOURS = "the GPU-hours of each option"
SIDES = {"own": "buying", "rent": "renting"}
RENTED_OUT_ONLY = frozenset({"Google", "AWS"})  # makers whose accelerators are used in their own cloud


def conventions(case: OwnershipCase) -> str:
    """Say how time, capital and utilisation are counted."""
    wacc = case.number("wacc_fraction")
    effective = case.assumptions["wacc_convention"].value == "effective"
    rate = f"effective, i = (1+{wacc:g})^(1/12)−1 a month" if effective else f"nominal, i = {wacc:g}/12 a month"
    return (
        f"Costs are positive, in nominal USD, {case.assumptions['tax_basis'].value} income tax. "
        f"WACC {wacc:.2%} a year, {rate}; "
        "capital is paid at the start of a month, everything else in arrears; a month has 730 hours. "
        "Owned hours × utilisation = allocated hours; × goodput = productive hours. MFU never enters. "
        "Levelised: constant price per hour, before tax, whose discounted payments equal the present value of the "
        "costs. Financing is valued at the cost of debt after tax, apart from the purchase. "
        "Break-even months: the shortest comparison, with resale at its end, that owning wins; payback is later, when "
        f"running savings alone have repaid the purchase. Profile: {case.profile}."
    )


def lead(case: OwnershipCase, point: shape.BreakEven, options: list[shape.OwnershipOption]) -> str:
    """Say the decision: the cheapest option, by how much against the next, and from where on buying wins."""
    best, other = shape.promised(options)[:2]
    size = f"{counted(case.number('gpus'), 'GPU')}, {percent(case.number('utilisation_fraction'))} allocated"
    by, span = other["npv_usd"] - best["npv_usd"], spanned(case.months)
    against = f"${by:,.0f} less over {span} than" if round(by) else f"as much over {span} as"
    named = _called(best)
    text = f"{named[0].upper() if best['name'] in SIDES else named[0]}{named[1:]} is cheapest: {against} "
    text += f"{_called(other)} (present value, {size})."
    use, price = point["utilisation_fraction"], point["usd_per_gpu_hour"]
    above = [f"above {use:.0%} utilisation"] if use is not None else []
    above += [f"above ${price:.2f} per rented GPU-hour"] if price else []
    sides = {best["name"], other["name"]} <= SIDES.keys()
    wins = "Buying wins" if sides else "Against renting, buying wins"
    text += f" {wins} {', or '.join(above)}." if above else ""
    least = min(options, key=lambda row: row["npv_usd"])
    less = best["npv_usd"] - least["npv_usd"]
    if round(less) and shape.interruptible(least):
        text += f" Beside them {_called(least)} would cost ${less:,.0f} less, but may be taken away."
    return text


def _called(row: shape.OwnershipOption) -> str:
    """Name an option in a sentence, with its seller and price.

    >>> _called({"name": "reserved_3y", "provider": "aws", "usd_per_gpu_hour": 2.972})
    'reserved 3y from aws at $2.97 per GPU-hour'
    """
    name = SIDES.get(row["name"], row["name"].replace("_", " "))
    seller, price = row.get("provider"), row.get("usd_per_gpu_hour")
    said = f"{name} from {seller}" if seller else name
    return said if price is None else f"{said} at ${price:.2f} per GPU-hour"


def waiting(case: OwnershipCase, saving_usd: float) -> list[str]:
    """Say what the usual wait for delivery would change, where none was given."""
    if case.number("lead_time_months") or case.assumptions["lead_time_months"].status == "given":
        return []
    blackwell = case.accelerator is not None and case.accelerator.family == "blackwell"
    row = case.registry.fact("lead_time.b200_dgx" if blackwell else "lead_time.h100_reseller")
    later = analysis.outcomes(case, {"lead_time_months": row["typical"] / WEEKS_PER_MONTH}).saving_usd[0]
    moved = later - saving_usd
    return [
        f"the cluster is taken to work from the start; orders have waited {row['low']:g} to {row['high']:g} weeks: "
        f"--lead-time {row['typical']:g}w, bridged by rent, makes owning ${abs(moved):,.0f} "
        f"{'better' if moved > 0 else 'worse'} against renting"
    ]


def not_sold(case: OwnershipCase) -> list[str]:
    """Say where an accelerator is only rented out by its maker."""
    chip = case.accelerator
    if chip is None or chip.vendor not in RENTED_OUT_ONLY:
        return []
    return [f"{chip.vendor} rents {chip.id} out and does not sell it: what owning it costs is hypothetical"]


def _financing_said(paid: shape.Financing | None) -> list[str]:
    if paid is None:
        return []
    adds = paid["adds_usd"]
    return [
        f"paid in cash, owning would save ${paid['saving_in_cash_usd']:,.0f}; the {paid['kind']} "
        f"{'adds' if adds >= 0 else 'costs'} ${abs(adds):,.0f} beside it, valued at "
        f"{paid['debt_rate_fraction']:.2%} a year, the cost of debt after tax"
    ]


def credits_said(rows: Sequence[Mapping[str, Any]], of: str) -> list[str]:
    """Say what the credits of one's book pay; figures and ranks stay before credits."""
    paid = [f"{row['credits_usd']:,.0f} USD of {row['name'].replace('_', ' ')}" for row in rows if "credits_usd" in row]
    return [f"credits of your book would pay, of {of}, {', '.join(paid)}; all figures are before them"] if paid else []


def warnings(
    case: OwnershipCase,
    values: Mapping[str, Any],
    saving_usd: float,
    judged: analysis.Investment,
    paid: shape.Financing | None,
) -> list[str]:
    """Collect what a reader must know."""
    found = [*case.warnings, *not_sold(case), *waiting(case, saving_usd)]
    spares = str(case.assumptions["spares_basis"].value)
    if spares != "none" and case.number("support_fraction") > 0:
        found.append(f"vendor support and spares ({spares.replace('_', ' ')}) both count: repairs may be paid twice")
    found += [f"unequal scope: only one side pays for {row['item']}" for row in scope(case, values) if row["unequal"]]
    if judged["irr_fraction"] is None and cashflow.several_rates(monthly(values, "saving_in_cash_usd")):
        found.append("the saving changes its sign more than once and has no one IRR: judge by NPV")
    found += _financing_said(paid)
    decline = case.assumptions["rent_decline_fraction"]
    if decline.status in ("assumed", "derived") and np.all(case.rent_path() == 1):
        moved = "held flat" if not decline.value else f"taken to fall by {decline.value:.0%} a year"
        why = f": {decline.note}" if decline.status == "derived" else ""
        found.append(f"the rental price is {moved}{why}; see the scenarios for a decline and for the observed V")
    return found
