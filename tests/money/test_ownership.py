"""Financing, tax, refresh, lead time, exclusive groups: each by hand, and nothing counted twice."""

import numpy as np
import pytest
import pyxirr
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost.errors import UsageError
from gpucost.money.comparison import OWN_LINES, RENT_LINES, outcome
from gpucost.ownership.assemble import assemble, registry_of
from gpucost.ownership.plan import PlanFile
from tests.money.plans import REFERENCE, catalog, compare, flows

CAPEX_LINES = ("servers", "network", "storage", "spares", "control_plane", "installation", "purchase_tax")


def capex(payload):
    return sum(flows(payload, f"own_{name}_usd")[0] for name in CAPEX_LINES)


def test_a_loan_is_repaid_in_level_payments_and_settled_at_the_end():
    payload = compare(financing="loan", loan_fraction=0.75, loan_rate_fraction=0.12, loan_term_months=60)
    borrowed = 0.75 * capex(payload)
    level = -pyxirr.pmt(0.01, 60, borrowed)
    assert flows(payload, "own_loan_drawn_usd")[0] == pytest.approx(-borrowed)
    assert flows(payload, "own_loan_payment_usd")[1:] == pytest.approx([level] * 48, rel=1e-9)
    owed = borrowed * 1.01**48 - level * (1.01**48 - 1) / 0.01
    assert flows(payload, "own_loan_settled_usd")[48] == pytest.approx(owed, rel=1e-9)


def test_a_loan_at_the_cost_of_capital_is_worth_nothing():
    rate = 1.1 ** (1 / 12) - 1
    cash, loan = (
        compare(),
        compare(financing="loan", loan_rate_fraction=12 * rate, loan_term_months=36, loan_fraction=0.8),
    )
    assert loan["npv_usd"]["own"] == pytest.approx(cash["npv_usd"]["own"], rel=1e-10)


def test_a_lease_replaces_the_purchase_and_ends_with_its_buy_out():
    payload = compare(financing="lease", lease_rate_fraction=0.096, lease_term_months=36, lease_buyout_fraction=0.1)
    price = capex(payload)
    level = -pyxirr.pmt(0.008, 36, price, -0.1 * price)
    assert flows(payload, "own_total_usd")[0] == pytest.approx(0.0, abs=1e-6)
    assert flows(payload, "own_lease_payment_usd")[1:38] == pytest.approx([level] * 36 + [0.0], rel=1e-9)
    assert flows(payload, "own_lease_settled_usd")[36] == pytest.approx(0.1 * price, rel=1e-9)


def test_tax_by_hand_with_straight_line_depreciation():
    payload = compare(
        tax_basis="after", tax_rate_fraction=0.25, depreciation_method="straight_line", depreciation_years=5
    )
    before = compare()
    basis = capex(before)
    running = [
        name
        for name in before["cash_flows"][0]
        if name.startswith("own_")
        and name[4:-4]
        in (
            "colocation",
            "energy",
            "demand_charge",
            "staff",
            "support",
            "licence",
            "insurance",
            "property_tax",
            "egress",
        )
    ]
    month_30 = sum(flows(before, name)[30] for name in running) + basis / 60
    assert flows(payload, "own_tax_usd")[30] == pytest.approx(-0.25 * month_30)
    sale = -flows(before, "own_resale_usd")[48] - flows(before, "own_disposal_usd")[48]
    last = sum(flows(before, name)[48] for name in running) + basis / 60 + basis * 12 / 60 - sale
    assert flows(payload, "own_tax_usd")[48] == pytest.approx(-0.25 * last)
    assert flows(payload, "rent_tax_usd")[10] == pytest.approx(-0.25 * flows(before, "rent_total_usd")[10])


def test_tax_by_year_is_shown_beside_a_view_before_tax():
    before, after = compare(), compare(tax_basis="after")
    rows = before["tax"]["by_year"]
    assert [row["own_tax_usd"] for row in rows] == pytest.approx([row["own_tax_usd"] for row in after["by_year"]])
    assert [row["depreciation_usd"] for row in rows[1:]] == pytest.approx([capex(before) / 5] * 4)
    assert before["tax"]["own_usd"] == pytest.approx(after["npv_usd"]["own"])


@pytest.mark.parametrize("method", ["straight_line", "macrs5", "bonus"])
@pytest.mark.parametrize("refresh", [0, 24])
def test_whatever_the_schedule_the_whole_purchase_is_deducted_once(method, refresh):
    """At zero discount, tax saved over the years is the rate times everything paid less everything received."""
    changes = {
        "depreciation_method": method,
        "refresh_month": refresh,
        "refresh_price_ratio": 0.8,
        "wacc_fraction": 0.0,
    }
    before, after = compare(**changes), compare(tax_basis="after", tax_rate_fraction=0.25, **changes)
    assert after["npv_usd"]["own"] == pytest.approx(0.75 * before["npv_usd"]["own"], rel=1e-9)
    assert after["npv_usd"]["rent"] == pytest.approx(0.75 * before["npv_usd"]["rent"], rel=1e-9)


@pytest.mark.parametrize("financing", ["loan", "lease", "operating_lease"])
def test_interest_and_lease_payments_are_deducted_once(financing):
    changes = {"financing": financing, "loan_rate_fraction": 0.12, "lease_rate_fraction": 0.12}
    before, after = compare(**changes), compare(tax_basis="after", tax_rate_fraction=0.25, **changes)
    paid = [sum(flows(payload, "own_total_usd")) for payload in (before, after)]
    assert paid[1] == pytest.approx(0.75 * paid[0], rel=1e-9)


def test_a_refresh_trades_in_the_old_servers_and_sells_the_new_ones():
    payload = compare(
        refresh_month=24,
        refresh_price_ratio=0.8,
        residual_basis="curve",
        residual_fraction=None,
        residual_at_years=None,
        residual_scale_ratio=1.0,
        residual_by_year=[0.7, 0.5, 0.4, 0.3],
    )
    servers = 8 * 280_000 * 1.025
    assert flows(payload, "own_refresh_usd")[24] == pytest.approx(servers * 0.8 * (1 + 0.05 + 0.05))
    assert flows(payload, "own_trade_in_usd")[24] == pytest.approx(-servers * 0.5 * 0.94)
    other = 0.1 * (64 * 2_000 + 64 * 700 + 0.015 * 8 * 280_000)
    assert flows(payload, "own_resale_usd")[48] == pytest.approx(-servers * 0.8 * 0.5 * 0.94 - other)


def test_a_refresh_renews_what_tax_support_insurance_and_repairs_are_reckoned_on():
    changes = {"refresh_month": 24, "refresh_price_ratio": 0.8, "spares_basis": "maintenance",
               "maintenance_fraction": 0.03, "hot_spares_fraction": None}  # fmt: skip
    payload = compare(**changes)
    servers, rest = 8 * 280_000.0, 64 * 2_000 + 64 * 700 + 0.015 * 8 * 280_000
    for name, month, expected in (
        ("insurance", 24, 0.006 / 12 * (servers + rest)),
        ("insurance", 25, 0.006 / 12 * (0.8 * servers + rest)),
        ("property_tax", 24, 0.012 / 12 * (servers + rest) * 0.4),
        ("property_tax", 25, 0.012 / 12 * (0.8 * servers * 0.5 + rest * 0.3)),
        ("property_tax", 37, 0.012 / 12 * (0.8 * servers * 0.4 + rest * 0.2)),
        ("support", 24, 0.05 / 12 * servers),
        ("support", 36, 0.0),  # the new servers bring a year of their own
        ("support", 37, 0.05 / 12 * 0.8 * servers),
        ("repairs", 25, 0.03 / 12 * 0.8 * servers),
    ):
        assert flows(payload, f"own_{name}_usd")[month] == pytest.approx(expected, rel=1e-12), (name, month)


def test_demand_is_bridged_by_rent_until_the_cluster_arrives():
    payload = compare(lead_time_months=2.5, bridge_usd_per_gpu_hour=3.0)
    hours = 64 * 730 * 0.7
    prices = [3.0 * 0.9 ** ((month - 1) / 12) for month in (1, 2, 3)]
    bridge = flows(payload, "own_bridge_rent_usd")
    assert bridge[1:5] == pytest.approx([hours * prices[0], hours * prices[1], 0.5 * hours * prices[2], 0.0])
    assert flows(payload, "own_servers_usd")[:4] == [0.0, 0.0, 8 * 280_000.0, 0.0]
    full = flows(compare(), "own_energy_usd")
    assert flows(payload, "own_energy_usd")[1:5] == pytest.approx([0.0, 0.0, 0.5 * full[3], full[4]])


def test_cash_flows_are_dated_from_the_start():
    rows = compare(start_on="2026-12-31", lead_time_months=2)["cash_flows"]
    assert [row["on"] for row in rows[:4]] == ["2026-12-31", "2027-01-31", "2027-02-28", "2027-03-31"]


def test_take_or_pay_pays_every_hour_whole_terms_and_its_upfront_share():
    payload = compare(
        rent_billing="take_or_pay", rent_term_months=36, rent_upfront_fraction=0.5, rent_decline_fraction=0.0
    )
    month = 64 * 730 * 2.35
    assert flows(payload, "rent_compute_usd")[1:] == pytest.approx([0.5 * month] * 48)
    upfront = flows(payload, "rent_upfront_usd")
    assert (upfront[0], upfront[36], sum(upfront)) == pytest.approx((18 * month, 18 * month, 36 * month))
    assert flows(payload, "rent_cancellation_usd")[48] == pytest.approx(24 * month * 0.5)
    rent = next(row for row in payload["options"] if row["name"] == "rent")
    assert rent["contract_exposure_usd"] == pytest.approx(36 * month)


def test_a_term_holds_its_price():
    payload = compare(rent_term_months=12, rent_decline_fraction=0.2)
    compute = flows(payload, "rent_compute_usd")
    assert compute[1] == compute[12]
    assert compute[13] == pytest.approx(0.8 * compute[12])


def test_goodput_sets_how_many_hours_must_be_rented():
    base, better = (
        flows(compare(), "rent_compute_usd")[1],
        flows(compare(rent_goodput_fraction=0.96), "rent_compute_usd")[1],
    )
    assert better == pytest.approx(base * 0.9 / 0.96)


def _case(**changes):
    plan = PlanFile(inputs={}, special={})
    flags = {
        **REFERENCE,
        "network_fraction": 0.2,
        "maintenance_fraction": 0.03,
        "retail_usd_per_kw_month": 250.0,
        "gpu_usd": 30_000.0,
        "all_in_usd_per_gpu": 45_000.0,
        "facility_usd_per_mw": 1.2e7,
        "gpu_failures_per_gpu_year": 0.05,
        "residual_scale_ratio": 1.0,
        **changes,
    }
    for choice in (
        "server_price_basis",
        "network_basis",
        "spares_basis",
        "facility_basis",
        "storage_basis",
        "residual_basis",
        "financing",
    ):
        flags.setdefault(choice, registry_of(catalog()).choices[choice][0])
    return assemble(catalog(), plan, flags, {})


GROUPS = {
    "server_price_basis": {
        "quote": ("server_usd",),
        "gpu_share": ("gpu_usd", "server_overhead_ratio"),
        "all_in": ("all_in_usd_per_gpu",),
    },
    "network_basis": {"per_gpu": ("network_1tier_usd_per_gpu",), "fraction": ("network_fraction",), "none": ()},
    "spares_basis": {
        "hot_spares": ("hot_spares_fraction",),
        "maintenance": ("maintenance_fraction",),
        "failures": ("gpu_failures_per_gpu_year",),
        "none": (),
    },
    "facility_basis": {
        "colocation": ("colocation_usd_per_kw_month",),
        "retail": ("retail_usd_per_kw_month",),
        "own": ("facility_usd_per_mw",),
        "none": (),
    },
}


@pytest.mark.parametrize("group", GROUPS)
def test_of_an_exclusive_group_one_alternative_counts(group):
    """Changing an input of an alternative that was not chosen moves nothing; of the chosen one it does."""
    for chosen, active in GROUPS[group].items():
        case = _case(**{group: chosen})
        base = outcome(case.values(), case.tables).own_usd[0]
        for names in GROUPS[group].values():
            for name in names:
                moved = outcome({**case.values(), name: case.number(name) * 1.1}, case.tables).own_usd[0]
                assert (moved != base) == (name in active), (chosen, name)


def test_retail_colocation_includes_its_power():
    retail = compare(facility_basis="retail", retail_usd_per_kw_month=250)
    assert sum(flows(retail, "own_energy_usd")) == 0
    assert sum(flows(retail, "own_demand_charge_usd")) == 0
    assert flows(retail, "own_colocation_usd")[1] == pytest.approx(8 * 10.2 * 1.06 * 250)


def test_one_figure_per_gpu_holds_every_one_time_item():
    payload = compare(server_price_basis="all_in", all_in_usd_per_gpu=45_000, server_usd=None)
    assert capex(payload) == pytest.approx(64 * 45_000)


def test_network_as_a_share_is_a_share_of_servers_and_network():
    payload = compare(network_basis="fraction", network_fraction=0.19)
    network, servers = flows(payload, "own_network_usd")[0], flows(payload, "own_servers_usd")[0]
    assert network / (network + servers) == pytest.approx(0.19)


def test_two_alternatives_without_a_choice_are_refused():
    with pytest.raises(UsageError, match="network_fraction"):
        compare(network_fraction=0.2)


def test_totals_hold_every_line_once():
    """A line that is in neither total, or in one twice, would be seen here."""
    case = _case(lead_time_months=3.0, financing="loan", tax_basis="after", refresh_month=24.0)
    from gpucost.money.comparison import evaluate_months

    values = evaluate_months(case.values(), case.tables)
    for side, lines in (("own", OWN_LINES), ("rent", RENT_LINES)):
        assert len({line.name for line in lines}) == len(lines)
        total = sum(np.broadcast_to(values[line.name], (1, 49)) for line in lines)
        np.testing.assert_allclose(values[f"{side}_total_usd"], total)


@settings(max_examples=25, deadline=None)
@given(st.floats(1.01, 3.0))
def test_all_prices_times_a_factor_is_all_costs_times_it(factor):
    """Scaling every amount of money scales both present values alike: no line mixes money with something else."""
    case = _case()
    money = {
        name: entry.value * factor
        for name, entry in case.assumptions.items()
        if "usd" in name and isinstance(entry.value, float)
    }
    base, scaled = outcome(case.values(), case.tables), outcome({**case.values(), **money}, case.tables)
    assert scaled.own_usd[0] == pytest.approx(factor * base.own_usd[0], rel=1e-9)
    assert scaled.rent_usd[0] == pytest.approx(factor * base.rent_usd[0], rel=1e-9)


def test_many_cases_at_once_equal_one_by_one():
    case = _case(lead_time_months=2.0)
    used = np.linspace(0.1, 1.0, 7)
    together = outcome({**case.values(), "utilisation_fraction": used}, case.tables)
    for position, share in enumerate(used):
        alone = outcome({**case.values(), "utilisation_fraction": float(share)}, case.tables)
        assert together.own_usd[position] == pytest.approx(alone.own_usd[0], rel=1e-12)
        assert together.rent_usd[position] == pytest.approx(alone.rent_usd[0], rel=1e-12)


def test_a_purchase_option_without_its_provider_is_refused():
    with pytest.raises(UsageError, match=r"(--provider|provider=)"):
        assemble(catalog(), PlanFile(), {}, {"gpu": "h100-sxm", "option": "spot"})
