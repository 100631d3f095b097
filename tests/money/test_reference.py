"""A cluster of 64 accelerators over 48 months, calculated by hand, month by month, against the formulas."""

import pytest

from tests.money.plans import ASSESSED, REFERENCE, compare, flows

P = REFERENCE


def by_hand() -> dict[str, list[float]]:
    """Every line of both sides, written out as a finance team would in a spreadsheet."""
    servers = 64 / 8 * P["server_usd"]
    network, storage = 64 * 2_000, 64 * 700
    spares, heads = 0.025 * servers, 0.015 * servers
    hardware = servers + network + storage + spares + heads
    lines: dict[str, list[float]] = {
        "own_servers_usd": [servers] + [0.0] * 48,
        "own_network_usd": [network] + [0.0] * 48,
        "own_storage_usd": [storage] + [0.0] * 48,
        "own_spares_usd": [spares] + [0.0] * 48,
        "own_control_plane_usd": [heads] + [0.0] * 48,
        "own_installation_usd": [0.05 * hardware] + [0.0] * 48,
        "own_purchase_tax_usd": [0.05 * hardware] + [0.0] * 48,
    }
    kw = 8 * 10.2 * 1.06
    draw = 0.7 * 0.76 + 0.3 * 0.2
    used_hours = 64 * 730 * 0.7
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
        months["colocation"].append(kw * 180 * 1.03**year)
        months["energy"].append(kw * draw * 1.3 * 730 * 0.085 * 1.02**year)
        months["demand_charge"].append(kw * 4)
        months["staff"].append(0.5 * 168_000 / 12 * 1.04**year)
        months["support"].append(0.05 / 12 * servers if month > 12 else 0.0)
        months["licence"].append(64 * 300 / 12)
        months["insurance"].append(0.006 / 12 * hardware)
        months["property_tax"].append(0.012 / 12 * hardware * ASSESSED[year])
        months["egress"].append(64 * 40 * 0.01)
        price = 2.35 * 0.9 ** ((month - 1) / 12)
        rent["compute"].append(used_hours * price)
        rent["storage"].append(64 * 800 * 0.1)
        rent["support"].append(0.03 * used_hours * price)
        rent["control_plane"].append(73.0)
        rent["egress"].append(64 * 40 * 0.05)
        rent["staff"].append(0.25 * 0.5 * 168_000 / 12 * 1.04**year)
        rent["licence"].append(64 * 300 / 12)
    resale = -(servers + spares) * 0.3 * 0.94 - 0.1 * (network + storage + heads)
    lines["own_resale_usd"] = [0.0] * 48 + [resale]
    lines["own_disposal_usd"] = [0.0] * 48 + [64 * 50.0]
    lines |= {f"own_{name}_usd": values for name, values in months.items()}
    lines |= {f"rent_{name}_usd": values for name, values in rent.items()}
    return lines


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
