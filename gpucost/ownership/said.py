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

HOURS = "the GPU-hours of each option"
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


def lead(case: OwnershipCase, saving: float, point: shape.BreakEven, options: list[shape.OwnershipOption]) -> str:
    """Say the verdict in a few sentences, the last of them on the option that comes closest."""
    years = f"{case.months / 12:g} years"
    verdict = "Buying" if saving > 0 else "Renting"
    size = f"{case.number('gpus'):g} GPUs, {case.number('utilisation_fraction'):.0%} allocated"
    text = f"{verdict} costs ${abs(saving):,.0f} less over {years} (present value, {size})."
    if point["utilisation_fraction"] is not None:
        text += f" Buying wins above {point['utilisation_fraction']:.0%} utilisation"
        text += (
            f", or above ${point['usd_per_gpu_hour']:.2f} per rented GPU-hour." if point["usd_per_gpu_hour"] else "."
        )
    elif point["usd_per_gpu_hour"]:
        text += f" Buying wins above ${point['usd_per_gpu_hour']:.2f} per rented GPU-hour."
    return text + _closest("own" if saving > 0 else "rent", options)


def _closest(winner: str, options: list[shape.OwnershipOption]) -> str:
    """Say which option comes closest to the winner, or beats it, where that is not the other side of the verdict."""
    rival = next(row.get("rival") for row in options if row["name"] == winner)
    if rival is None or rival["name"] in ("own", "rent"):
        return ""
    wins = rival.get("probability_wins_fraction")
    name, by = rival["name"].replace("_", " "), f"${abs(rival['saving_usd']):,.0f}"
    odds = "" if wins is None else f"; {'buying' if winner == 'own' else 'renting'} wins in {wins:.0%} of the draws"
    return f" Its closest rival, {name}, costs {by} {'more' if rival['saving_usd'] > 0 else 'less'}{odds}."


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
    if judged["irr_fraction"] is not None and cashflow.several_rates(monthly(values, "saving_in_cash_usd")):
        found.append("the saving changes its sign more than once: the IRR may not be the only one, judge by NPV")
    found += _financing_said(paid)
    decline = case.assumptions["rent_decline_fraction"]
    if decline.status in ("assumed", "derived") and np.all(case.tables["rent_path_by_month"] == 1):
        moved = "held flat" if not decline.value else f"taken to fall by {decline.value:.0%} a year"
        why = f": {decline.note}" if decline.status == "derived" else ""
        found.append(f"the rental price is {moved}{why}; see the scenarios for a decline and for the observed V")
    return found
