"""A cluster of 64 accelerators over 48 months, calculated by hand, month by month, against the formulas."""

import random
from typing import Any

import pytest

from tests.money.plans import ASSESSED, REFERENCE, compare, flows

P = REFERENCE


def by_hand(p: dict[str, Any] = P) -> dict[str, list[float]]:
    """Every line of both sides over 48 months, written out as a finance team would in a spreadsheet."""
    gpus, nodes = p["gpus"], p["gpus"] / 8
    servers = nodes * p["server_usd"]
    network, storage = gpus * p["network_1tier_usd_per_gpu"], gpus * p["storage_usd_per_gpu"]
    spares, heads = p["hot_spares_fraction"] * servers, p["control_plane_fraction"] * servers
    hardware = servers + network + storage + spares + heads
    begin = {
        "servers": servers,
        "network": network,
        "storage": storage,
        "spares": spares,
        "control_plane": heads,
        "installation": (p["installation_fraction"] + p["shipping_fraction"]) * hardware,
        "purchase_tax": p["sales_tax_fraction"] * hardware,
    }
    lines = {f"own_{name}_usd": [usd] + [0.0] * 48 for name, usd in begin.items()}
    kw = nodes * p["server_max_kw"] * (1 + p["auxiliary_power_ratio"])
    used = p["utilisation_fraction"]
    draw = used * p["power_fraction_active"] + (1 - used) * p["power_fraction_idle"]
    used_hours = gpus * 730 * used
    people = max(p["staff_minimum_fte"], gpus * p["staff_fte_per_1000_gpus"] / 1000) * p["staff_usd_per_fte_year"] / 12
    licence = gpus * p["licence_usd_per_gpu_year"] / 12
    months = {
        name: [0.0]
        for name in (
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
    }
    rent = {name: [0.0] for name in ("compute", "storage", "support", "control_plane", "egress", "staff", "licence")}
    for month in range(1, 49):
        year = (month - 1) // 12
        site, power, pay = (1 + p[f"{name}_escalation_fraction"] for name in ("colocation", "electricity", "staff"))
        months["colocation"].append(kw * p["colocation_usd_per_kw_month"] * site**year)
        months["energy"].append(kw * draw * p["pue_ratio"] * 730 * p["electricity_usd_per_kwh"] * power**year)
        months["demand_charge"].append(kw * p["demand_usd_per_kw_month"])
        months["staff"].append(people * pay**year)
        months["support"].append(p["support_fraction"] / 12 * servers if month > 12 else 0.0)
        months["licence"].append(licence)
        months["insurance"].append(p["insurance_fraction"] / 12 * hardware)
        months["property_tax"].append(p["property_tax_fraction"] / 12 * hardware * ASSESSED[year])
        months["egress"].append(gpus * p["egress_gb_per_gpu_month"] * p["own_egress_usd_per_gb"])
        price = p["rent_usd_per_gpu_hour"] * (1 - p["rent_decline_fraction"]) ** ((month - 1) / 12)
        rent["compute"].append(used_hours * price)
        rent["storage"].append(gpus * p["storage_gib_per_gpu"] * p["storage_usd_per_gib_month"])
        rent["support"].append(p["rent_support_fraction"] * used_hours * price)
        rent["control_plane"].append(p["rent_control_plane_usd_per_month"])
        rent["egress"].append(gpus * p["egress_gb_per_gpu_month"] * p["rent_egress_usd_per_gb"])
        rent["staff"].append(p["rent_staff_ratio"] * people * pay**year)
        rent["licence"].append(licence)
    resale = -(servers + spares) * p["residual_fraction"] * (1 - p["resale_fee_fraction"])
    resale -= p["other_residual_fraction"] * (network + storage + heads)
    lines["own_resale_usd"] = [0.0] * 48 + [resale]
    lines["own_disposal_usd"] = [0.0] * 48 + [gpus * p["disposal_usd_per_gpu"]]
    lines |= {f"own_{name}_usd": values for name, values in months.items()}
    lines |= {f"rent_{name}_usd": values for name, values in rent.items()}
    return lines


# inputs that random plans move, each by up to a half either way; others stay as they are
_MOVED = sorted(name for name in P if name.endswith(("_usd", "_fraction", "_ratio", "_kw", "_per_kwh"))
                or "_usd_per_" in name or name in ("staff_minimum_fte", "egress_gb_per_gpu_month"))  # fmt: skip


@pytest.mark.slow
def test_a_hundred_random_plans_cost_to_the_cent_what_the_hand_calculation_says():
    """The calculation above shares no code with the formulas: each line's total and both present values."""
    dice = random.Random(50)
    for number in range(100):
        changes = {name: P[name] * dice.uniform(0.5, 1.5) for name in _MOVED if isinstance(P[name], float) or P[name]}
        changes["goodput_fraction"], changes["utilisation_fraction"] = 0.9, dice.uniform(0.2, 1.0)
        changes |= {"pue_ratio": dice.uniform(1.05, 1.6), "gpus": 8 * dice.randint(2, 20)}
        asked = {**P, **changes}
        found = compare(**changes)
        totals = {row["name"]: row["total_usd"] for row in found["lines"]}
        lines, rate = by_hand(asked), (1 + asked["wacc_fraction"]) ** (1 / 12) - 1
        for name, values in lines.items():
            assert totals.get(name, 0.0) == pytest.approx(sum(values), abs=0.01), (number, name)
        for side in ("own", "rent"):
            flows_of = [values for name, values in lines.items() if name.startswith(side)]
            worth = sum(sum(month) / (1 + rate) ** m for m, month in enumerate(zip(*flows_of, strict=True)))
            assert found["npv_usd"][side] == pytest.approx(worth, abs=0.01), (number, side)


@pytest.fixture(scope="module")
def payload():
    return compare()


def test_every_line_of_every_month_equals_the_hand_calculation(payload):
    expected = by_hand()
    for name, values in expected.items():
        assert flows(payload, name) == pytest.approx(values, rel=1e-12, abs=1e-9), name
    shown = {
        name
        for name in payload["cash_flows"][0]
        if name.endswith("_usd") and "total" not in name and "saving" not in name
    }
    assert shown == set(expected)


def test_present_values_equal_the_discounted_hand_calculation(payload):
    rate = 1.1 ** (1 / 12) - 1
    for side in ("own", "rent"):
        lines = [values for name, values in by_hand().items() if name.startswith(side)]
        worth = sum(sum(month) / (1 + rate) ** m for m, month in enumerate(zip(*lines, strict=True)))
        assert payload["npv_usd"][side] == pytest.approx(worth, rel=1e-12)


def test_levelised_prices_relate_as_utilisation_is_defined(payload):
    allocated = payload["levelised_usd_per_gpu_hour"]
    assert payload["levelised_usd_per_gpu_hour_owned"] == pytest.approx(allocated * 0.7)
    assert payload["levelised_usd_per_gpu_hour_productive"] == pytest.approx(allocated / 0.9)


def test_levelised_price_times_hours_discounts_back_to_the_npv(payload):
    rate = 1.1 ** (1 / 12) - 1
    hours = 64 * 730 * 0.7
    worth = sum(payload["levelised_usd_per_gpu_hour"] * hours / (1 + rate) ** m for m in range(1, 49))
    assert worth == pytest.approx(payload["npv_usd"]["own"], rel=1e-12)


def test_lines_years_and_months_add_up_to_the_same_totals(payload):
    for side in ("own", "rent"):
        by_month = sum(flows(payload, f"{side}_total_usd"))
        assert sum(row["total_usd"] for row in payload["lines"] if row["side"] == side) == pytest.approx(by_month)
        assert sum(row[f"{side}_total_usd"] for row in payload["by_year"]) == pytest.approx(by_month)
        assert sum(row["npv_usd"] for row in payload["lines"] if row["side"] == side) == pytest.approx(
            payload["npv_usd"][side]
        )


def test_zero_rate_makes_the_npv_the_plain_sum():
    payload = compare(wacc_fraction=0.0)
    assert payload["npv_usd"]["own"] == pytest.approx(sum(flows(payload, "own_total_usd")), rel=1e-12)
    assert payload["npv_usd"]["saving"] == pytest.approx(sum(flows(payload, "saving_usd")), rel=1e-12)


def test_nominal_and_effective_rates_are_counted_as_printed():
    effective, nominal = compare(), compare(wacc_convention="nominal")
    assert "(1+0.1)^(1/12)" in effective["conventions"]
    assert "0.1/12" in nominal["conventions"]
    worth = sum(flow / (1 + 0.1 / 12) ** m for m, flow in enumerate(flows(nominal, "own_total_usd")))
    assert nominal["npv_usd"]["own"] == pytest.approx(worth, rel=1e-12)


def test_irr_and_payback_are_those_of_the_saving():
    payload = compare(rent_usd_per_gpu_hour=4.0)
    saving = flows(payload, "saving_usd")
    monthly = (1 + payload["irr_fraction"]) ** (1 / 12) - 1
    assert sum(flow / (1 + monthly) ** m for m, flow in enumerate(saving)) == pytest.approx(0, abs=1e-4)
    whole, part = divmod(payload["payback_months"], 1)
    reached = sum(saving[: int(whole) + 1]) + part * saving[int(whole) + 1]
    assert reached == pytest.approx(0, abs=1e-6)
