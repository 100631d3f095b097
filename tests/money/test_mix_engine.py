"""A mix on the cash flows of the comparison: one supply costs what `tco` says, and neither side is a straw man."""

import pytest

import gpucost
from tests.money.plans import ASSESSED, REFERENCE, catalog

# 64 GPUs in use all the time, from one way alone: the plan of the comparison, by the formulas of the comparison
PLAN = {
    name: value
    for name, value in {**REFERENCE, "assessed_by_year": ASSESSED, "utilisation_fraction": 1.0}.items()
    if name not in ("gpus", "months")
}
TERMS = {
    "as it is": {},
    "after tax": {"tax_basis": "after", "tax_rate_fraction": 0.25},
    "losses carried forward": {
        "tax_basis": "after",
        "tax_rate_fraction": 0.3,
        "loss_basis": "carried_forward",
        "other_income_usd_per_year": 400_000,
        "loss_limit_fraction": 0.8,
    },
    "lease": {"financing": "lease"},
    "operating lease after tax": {"financing": "operating_lease", "tax_basis": "after"},
    "loan after tax": {"financing": "loan", "loan_fraction": 0.7, "tax_basis": "after"},
    "lead time": {"lead_time_months": 9},
    "half a month of lead time, after tax": {"lead_time_months": 8.25, "tax_basis": "after"},
    "lead time and a bridge": {"lead_time_months": 6, "bridge_usd_per_gpu_hour": 3.1},
    "rises": {
        "colocation_escalation_fraction": 0.08,
        "electricity_escalation_fraction": 0.1,
        "staff_escalation_fraction": 0.09,
    },
    "staff in steps": {"staff_minimum_fte": 0.6, "staff_step_fte": 0.25, "staff_fte_per_1000_gpus": 11},
    "refresh": {"refresh_month": 24, "refresh_price_ratio": 0.8, "refresh_power_ratio": 1.3},
    "deposit": {"deposit_fraction": 0.3, "retention_fraction": 0.1, "lead_time_months": 4},
    "nominal WACC": {"wacc_convention": "nominal"},
    "goodput of rent": {"rent_goodput_fraction": 0.8, "rent_stretch_ratio": 1.2},
    "a price that ends": {"rent_until_months": 9.5, "rent_after_usd_per_gpu_hour": 2.9},
    "a price that ends, a lead time and a bridge": {
        "rent_until_months": 4.25,
        "rent_after_usd_per_gpu_hour": 2.9,
        "lead_time_months": 6.5,
        "bridge_usd_per_gpu_hour": 3.1,
    },
    "a price that ends while waiting": {
        "rent_until_months": 4.25,
        "rent_after_usd_per_gpu_hour": 2.9,
        "lead_time_months": 6.5,
    },
    "euros": {"currency": "EUR", "usd_per_unit": 1.1},
    "euros at their own rate": {"currency": "EUR", "usd_per_unit": 1.1, "currency_wacc_fraction": 0.07},
    "everything": {
        "tax_basis": "after",
        "financing": "loan",
        "lead_time_months": 5.5,
        "refresh_month": 30,
        "staff_step_fte": 0.25,
        "colocation_escalation_fraction": 0.05,
        "rent_goodput_fraction": 0.85,
    },
}


def both(changes, months=48, gpus=64, **limits):
    plan = {**PLAN, **changes}
    mixed = gpucost.mix([gpus] * months, plan=plan, catalog=catalog(), **limits).payload
    compared = gpucost.tco(plan={**plan, "gpus": gpus, "months": months, "draws": 0}, catalog=catalog()).payload
    return mixed, compared


@pytest.mark.parametrize("terms", TERMS)
def test_a_mix_of_one_supply_costs_what_the_comparison_says(terms):
    mixed, compared = both(TERMS[terms])
    alone = {row["option"]: row["cost_usd"] for row in mixed["pure"]}
    assert alone["on_demand"] == pytest.approx(compared["npv_usd"]["rent"], abs=0.005)
    assert alone["own"] == pytest.approx(compared["npv_usd"]["own"], abs=0.005)


@pytest.mark.parametrize("terms", TERMS)
def test_a_mix_adds_up_month_by_month(terms):
    """The plan's rows add up to its cost, and so does its cash where nothing is financed at another rate."""
    mixed, _ = both(TERMS[terms], months=36)
    assert sum(row["cost_usd"] for row in mixed["plan"]) == pytest.approx(mixed["cost_usd"], abs=0.01)
    assert mixed["cost_usd"] <= mixed["best_pure_usd"] + 0.01
    if "financing" not in TERMS[terms]:
        rate = 1 + (0.1 / 12 if terms == "nominal WACC" else 1.1 ** (1 / 12) - 1)
        worth = sum(row["total_usd"] / rate ** row["month"] for row in mixed["cash_by_month"])
        assert worth == pytest.approx(mixed["cost_usd"], abs=0.01)


def test_a_mix_in_euros_is_that_of_the_comparison():
    for terms in ("euros", "euros at their own rate"):
        mixed, compared = both({**TERMS[terms], "max_owned_gpus": 0})
        assert mixed["currency"]["cost"] == pytest.approx(compared["currency"]["npv_rent"], abs=0.005)
        mixed, compared = both({**TERMS[terms], "rent_usd_per_gpu_hour": 90})
        assert mixed["currency"]["cost"] == pytest.approx(compared["currency"]["npv_own"], abs=0.005)


def test_tax_is_on_every_line():
    """Where renting wins after tax, the mix rents: owning was after tax while its rival was not."""
    changes = {"tax_basis": "after", "tax_rate_fraction": 0.25}
    for price in (1.6, 1.9, 2.35, 2.8):
        mixed, compared = both({**changes, "rent_usd_per_gpu_hour": price, "rent_decline_fraction": 0})
        buys = compared["npv_usd"]["saving"] > 0
        owns = any(row["option"] == "own" for row in mixed["plan"])
        assert owns == buys
        assert mixed["cost_usd"] == pytest.approx(min(compared["npv_usd"][side] for side in ("own", "rent")), abs=0.01)


def test_a_lease_takes_no_capital():
    """What a lessor pays is no capital of the budget; of a loan the owner's part is."""
    for financing, capital in (("lease", 0.0), ("operating_lease", 0.0), ("loan", 0.2), ("cash", 1.0)):
        dear = {"financing": financing, "loan_fraction": 0.8, "rent_usd_per_gpu_hour": 9}
        mixed, compared = both(dear)
        purchase = next(row["value"] for row in compared["model"]["derived"] if row["name"] == "capex_usd")
        paid = sum(row["capital_usd"] for row in mixed["plan"] if row["option"] == "own")
        assert paid == pytest.approx(capital * purchase, abs=0.01)


def test_later_purchases_rise_with_the_calendar_of_the_plan():
    """Colocation of a server that is ordered in month 13 costs a year's rise more, as everything in year two does."""
    rises = {"colocation_escalation_fraction": 0.1, "electricity_usd_per_kwh": 0, "demand_usd_per_kw_month": 0}
    demand = [64] * 12 + [128] * 24
    plan = {**PLAN, **rises, "rent_usd_per_gpu_hour": 9, "rent_decline_fraction": 0, "support_fraction": 0}
    plan |= {"insurance_fraction": 0, "property_tax_fraction": 0, "licence_usd_per_gpu_year": 0}
    plan |= {"own_egress_usd_per_gb": 0, "egress_gb_per_gpu_month": 0}
    mixed = gpucost.mix(demand, plan=plan, catalog=catalog()).payload
    assert [row["from_month"] for row in mixed["plan"] if row["option"] == "own"] == [1, 13]
    by_month = {row["month"]: row["servers_usd"] for row in mixed["cash_by_month"]}
    fee = 64 / 8 * 10.2 * 1.06 * 180
    assert by_month[5] == pytest.approx(fee)
    assert by_month[20] == pytest.approx(2 * fee * 1.1)
    assert by_month[30] == pytest.approx(2 * fee * 1.1**2)


def test_servers_that_are_ordered_later_follow_their_price():
    demand = [64] * 12 + [128] * 24
    plan = {**PLAN, "rent_usd_per_gpu_hour": 9, "rent_decline_fraction": 0}
    first = {}
    for fall in (0.0, 0.25):
        mixed = gpucost.mix(demand, plan={**plan, "server_decline_fraction": fall}, catalog=catalog()).payload
        first[fall] = {row["from_month"]: row["capital_usd"] for row in mixed["plan"] if row["option"] == "own"}
    assert first[0.25][1] == first[0.0][1] == pytest.approx(first[0.0][13])
    servers = 64 / 8 * 280_000
    apart = 64 * (2_000 + 700) * 1.1  # network and storage keep their price
    assert first[0.0][13] == pytest.approx(servers * (1 + 0.025 + 0.015) * 1.1 + apart, rel=0.03)
    assert first[0.25][13] < 0.8 * first[0.0][13]


def test_servers_follow_the_rental_price_where_nothing_else_is_stated():
    plan = {**PLAN, "rent_decline_fraction": 0.2}
    mixed = gpucost.mix([64] * 12, plan=plan, catalog=catalog()).payload
    values = {row["name"]: row["value"] for row in mixed["assumptions"]}
    assert values["server_decline_fraction"] == 0.2


def test_the_people_of_rent_have_a_smallest_team_too():
    """A few rented GPUs take as many people as the smallest cluster, by the share that renting needs."""
    plan = {**PLAN, "staff_minimum_fte": 2.0, "staff_fte_per_1000_gpus": 1, "rent_control_plane_usd_per_month": 0}
    payloads = [
        gpucost.mix([4.0] * 12, plan={**plan, "rent_staff_ratio": share}, own=False, catalog=catalog()).payload
        for share in (0.0, 0.25)
    ]
    monthly = [payload["cash_by_month"][6]["services_usd"] for payload in payloads]
    assert monthly[1] - monthly[0] == pytest.approx(0.25 * 2.0 * 168_000 / 12)


def test_several_orders_are_what_each_of_them_is():
    """Two orders add up to two comparisons of their own time, shifted: the engine knows no other sum."""
    plan = {**PLAN, "rent_usd_per_gpu_hour": 9, "rent_decline_fraction": 0}
    for name in ("colocation_escalation_fraction", "electricity_escalation_fraction", "staff_escalation_fraction"):
        plan[name] = 0
    plan |= {"staff_minimum_fte": 0, "rent_staff_ratio": 0}
    demand = [64] * 12 + [128] * 24
    mixed = gpucost.mix(demand, plan=plan, catalog=catalog()).payload
    alone = [
        gpucost.tco(plan={**plan, "gpus": 64, "months": months, "draws": 0}, catalog=catalog()).payload["npv_usd"][
            "own"
        ]
        for months in (36, 24)
    ]
    assert mixed["cost_usd"] == pytest.approx(alone[0] + alone[1] / 1.1, abs=0.01)
