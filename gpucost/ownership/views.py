"""Other views of a comparison: scope, financing, tax, sunk capacity, other price paths, carbon."""

from collections.abc import Mapping
from typing import Any, TypedDict, cast

import numpy as np

from gpucost.answers import ownership as shape
from gpucost.money import carbon, cashflow
from gpucost.money.comparison import evaluate_months
from gpucost.money.residual import value_at
from gpucost.ownership import analysis
from gpucost.ownership.alternatives import discounted_hours, monthly, own_worth, present, scalar
from gpucost.ownership.assemble import OwnershipCase
from gpucost.units import MONTHS_PER_YEAR

TAX_LINES = ("own_tax_usd", "rent_tax_usd", "depreciation_usd")


class Beside(TypedDict):
    """What stands beside the comparison."""

    tax: shape.TaxView
    scope: list[shape.ScopeRow]
    sunk: shape.Sunk
    carbon: shape.Carbon


def beside(case: OwnershipCase, values: Mapping[str, Any]) -> Beside:
    """Return the views that stand beside the comparison."""
    return {
        "tax": other_tax_view(case),
        "scope": scope(case, values),
        "sunk": sunk_views(case, values),
        "carbon": emissions(case, values),
    }


def scope(case: OwnershipCase, values: Mapping[str, Any]) -> list[shape.ScopeRow]:
    """Return what each side includes, and flag what only one of them pays for."""

    def paid(*names: str) -> float:
        return sum(abs(float(monthly(values, name).sum())) for name in names)

    rented_support = "hardware support is part of a rental price"
    all_in = case.assumptions["server_price_basis"].value == "all_in"
    rows = [
        ("storage", paid("own_storage_usd", "own_storage_rental_usd") > 0 or all_in, paid("rent_storage_usd") > 0, ""),
        ("hardware support", paid("own_support_usd") > 0, True, rented_support),
        ("data leaving", paid("own_egress_usd") > 0, paid("rent_egress_usd") > 0, ""),
        ("control plane", paid("own_control_plane_usd") > 0 or all_in, paid("rent_control_plane_usd") > 0, ""),
        ("operations staff", paid("own_staff_usd") > 0, paid("rent_staff_usd") > 0, ""),
        ("software licences", paid("own_licence_usd") > 0, paid("rent_licence_usd") > 0, ""),
    ]
    listed: list[shape.ScopeRow] = [
        {"item": item, "own": own, "rent": rent, "unequal": own != rent, "note": note} for item, own, rent, note in rows
    ]
    good, rented = scalar(values, "goodput_fraction"), scalar(values, "rent_goodput_used_fraction")
    same = "both sides give the same productive hours"
    return [*listed, {"item": "goodput", "own": good, "rent": rented, "unequal": False, "note": same}]


def sunk_views(case: OwnershipCase, values: Mapping[str, Any]) -> shape.Sunk:
    """Return what an allocated GPU-hour of capacity costs that is owned already: loaded, avoidable and incremental.

    Loaded: everything. Avoidable: what stops when the cluster is sold today (running costs, and resale forgone).
    Incremental: what one more allocated hour adds, the energy above idle.
    """
    hours, number = discounted_hours(values), case.number
    scale, fee = scalar(values, "residual_scale"), number("resale_fee_fraction")
    servers, age = scalar(values, "servers_usd"), number("sunk_age_months") / 12
    worth = [
        servers * min(1.0, scale * value_at(case.tables["residual_by_year"], years)) * (1 - fee)
        for years in (age, age + case.months / 12)
    ]
    last = monthly(values, "discount_ratio")[case.months]
    keep = present(values, "own_running_usd") + worth[0] - worth[1] * last
    draw = min(number("power_fraction_active"), number("power_cap_fraction")) - number("power_fraction_idle")
    rated_kw, metered = scalar(values, "rated_kw"), scalar(values, "metered_ratio")
    power = rated_kw / number("gpus") * draw * number("pue_ratio") * metered
    return {
        "age_months": number("sunk_age_months"),
        "sale_today_usd": worth[0],
        "loaded_usd_per_gpu_hour": own_worth(values) / hours if hours else None,
        "avoidable_usd_per_gpu_hour": float(keep) * scalar(values, "after_tax_ratio") / hours if hours else None,
        "incremental_usd_per_gpu_hour": power * number("electricity_usd_per_kwh"),
    }


def price_paths(case: OwnershipCase) -> list[shape.ScenarioRow]:
    """Return the comparison under other futures of the rental price."""
    decline = case.registry.fact("rental_price_decline")["typical"]
    paths = (
        ("rent flat", "the rental price stays", "flat", 0.0),
        ("rent declines", f"the rental price falls by {decline:.0%} a year", "flat", decline),
        ("rent V", "the fall and rise of H100 rent from 2023 to 2026 comes again", "observed_v", 0.0),
    )
    return [
        analysis.scenario(case, name, text, {"rent_path_basis": basis, "rent_decline_fraction": fall})
        for name, text, basis, fall in paths
    ]


def emissions(case: OwnershipCase, values: Mapping[str, Any]) -> shape.Carbon:
    """Return the carbon of owning over the comparison, and of renting the same hours on the same grid."""
    by_month = monthly(values, "energy_kwh")
    energy = float(by_month.sum())
    grid, free = case.number("grid_kgco2e_per_kwh"), case.number("carbon_free_fraction")
    located, market = carbon.operational_kgco2e(np.array(energy), np.array(grid), np.array(free))
    nodes = np.array(case.number("gpus") / case.number("gpus_per_node"))
    years, life = np.array(scalar(values, "service_years")), np.array(case.number("embodied_life_years"))
    made = carbon.embodied_kgco2e(nodes, np.array(case.number("embodied_kgco2e_per_node")), years, life)
    idle = (1 - case.number("utilisation_fraction") * monthly(values, "use_ratio")) * case.number("power_fraction_idle")
    return {
        "energy_kwh": energy,
        "operational_location_kgco2e": located.item(),
        "operational_market_kgco2e": market.item(),
        "embodied_kgco2e": made.item(),
        "total_location_kgco2e": located.item() + made.item(),
        "rented_energy_kwh": float(np.sum(by_month * (1 - idle / np.maximum(monthly(values, "power_fraction"), 1e-9)))),
    }


def other_tax_view(case: OwnershipCase) -> shape.TaxView:
    """Return the comparison on the other side of income tax."""
    after = case.assumptions["tax_basis"].value == "after"
    result = analysis.outcomes(case, {"tax_basis": "before" if after else "after"})
    return {
        "view": "before income tax" if after else "after income tax",
        "tax_rate_fraction": case.number("tax_rate_fraction"),
        "depreciation": str(case.assumptions["depreciation_method"].value),
        "own_usd": float(result.own_usd[0]),
        "rent_usd": float(result.rent_usd[0]),
        "saving_usd": float(result.saving_usd[0]),
        "by_year": tax_by_year(case),
    }


def tax_by_year(case: OwnershipCase) -> list[shape.TaxYear]:
    """Return income tax (negative: saved) and depreciation by year, whichever view the headline takes."""
    values = evaluate_months({**case.columns(), "tax_basis": "after"}, case.tables, case.months, TAX_LINES)
    year = np.ceil(values["m"][0] / 12).astype(int)
    sums = {name: np.bincount(year, weights=monthly(values, name)).tolist() for name in TAX_LINES}
    return [
        cast(shape.TaxYear, {"year": index, **{name: flows[index] for name, flows in sums.items()}})
        for index in range(int(year.max()) + 1)
    ]


def financed(case: OwnershipCase, values: Mapping[str, Any], saving_usd: float) -> shape.Financing | None:
    """Part the saving into that of the purchase in cash and what financing adds, at the cost of debt after tax."""
    kind = str(case.assumptions["financing"].value)
    if kind == "cash":
        return None
    in_cash = present(values, "own_in_cash_usd")
    return {
        "kind": kind.replace("_", " "),
        "own_in_cash_usd": in_cash,
        "saving_in_cash_usd": present(values, "rent_total_usd") - in_cash,
        "adds_usd": saving_usd - (present(values, "rent_total_usd") - in_cash),
        "debt_rate_fraction": scalar(values, "monthly_debt_rate_fraction") * MONTHS_PER_YEAR,
        "equity_irr_fraction": cashflow.irr(monthly(values, "saving_usd")),
    }
