"""Published figures, from their own inputs: what a widely copied article says, and what its numbers make of it.

The cost of an owned H100 (USD 35,000 all-in, 4 years, 10 % nominal, 32 % resale, colocation 184 USD/kW-month, 5 %
support) and the two break-even stories are worked examples of published articles, recomputed by hand.
"""

import pytest

import gpucost
from gpucost.money.published import epoch_chip_hour
from gpucost.ownership.claims import (
    break_even_hours_per_month,
    check_break_even_claim,
    owned_usd_per_gpu_month,
    running_usd_per_gpu_month,
)
from tests.money.plans import catalog

# The convention of the anchor: one figure per GPU, 730 h, running costs flat, people at scale, no other item.
ANCHOR = {
    "gpu": "h100-sxm",
    "gpus": 1000,
    "months": 48,
    "utilisation_fraction": 1.0,
    "server_price_basis": "all_in",
    "all_in_usd_per_gpu": 35_000,
    "residual_fraction": 0.32,
    "residual_at_years": 4,
    "resale_fee_fraction": 0,
    "wacc_fraction": 0.10,
    "wacc_convention": "nominal",
    "spares_basis": "none",
    "storage_basis": "none",
    "insurance_fraction": 0,
    "property_tax_fraction": 0,
    "colocation_escalation_fraction": 0,
    "electricity_escalation_fraction": 0,
    "staff_escalation_fraction": 0,
    "auxiliary_power_ratio": 0,
    "rent_usd_per_gpu_hour": 2.35,
    "rent_staff_ratio": 0,
    "rent_control_plane_usd_per_month": 0,
    "draws": 0,
}


def anchor(**changes):
    return gpucost.tco(plan={**ANCHOR, **changes}, catalog=catalog()).payload


def test_an_owned_h100_costs_about_1209_a_month_at_scale():
    payload = anchor()
    assert payload["levelised_usd_per_gpu_hour_owned"] * 730 == pytest.approx(1209, abs=0.5)
    running = running_usd_per_gpu_month(catalog(), 1000, 35_000)
    assert owned_usd_per_gpu_month(35_000, running, 4, 0.32, 0.10, nominal=True) == pytest.approx(1209, abs=0.5)


@pytest.mark.parametrize(("rent", "hours"), [(1.70, 711), (2.35, 514), (2.99, 404), (6.88, 176)])
def test_break_even_hours_of_an_owned_h100(rent, hours):
    """The rule counts the running costs of an allocated GPU; that energy falls when it stands idle is ignored."""
    assert break_even_hours_per_month(1209.02, rent) == pytest.approx(hours, abs=0.6)
    point = anchor(rent_usd_per_gpu_hour=rent, power_fraction_idle=0.75)["breakeven"]
    assert point["hours_per_gpu_month"] == pytest.approx(hours, abs=0.6)


def test_half_an_engineer_on_one_server_never_breaks_even():
    payload = anchor(gpus=8, power_fraction_idle=0.75)
    assert payload["levelised_usd_per_gpu_hour_owned"] * 730 == pytest.approx(2038, abs=0.5)
    assert payload["breakeven"]["utilisation_fraction"] is None
    assert break_even_hours_per_month(2037.8, 2.35) == pytest.approx(867, abs=0.5)


ENTERPRISE = {
    "buy_usd": 800_000,
    "rent_usd_per_month": 20_000,
    "own_usd_per_month": 5_000,
    "gpus": 80,
    "gpu_hours_per_month": 10_000,
}


def test_the_enterprise_story():
    """80 GPUs for USD 800k against 20k a month of rent: 53.3 months; 17 % used; renting wins at 10 %."""
    found = check_break_even_claim(**ENTERPRISE, payback_months=60, nominal=True, catalog=catalog())
    assert found["payback_months"] == pytest.approx(53.33, abs=0.01)
    assert found["utilisation_fraction"] == pytest.approx(0.171, abs=1e-3)
    assert found["gpus_at_80_percent"] == 17
    assert found["total_own_usd"] == 1_100_000
    assert found["total_rent_usd"] == 1_200_000
    assert found["npv_rent_usd"] == pytest.approx(941e3, abs=0.5e3)
    assert found["npv_own_usd"] == pytest.approx(1035e3, abs=0.5e3)
    assert found["verdict"] == "wrong"
    verdicts = {finding.name: finding.verdict for finding in found["findings"]}
    assert verdicts == {
        "payback": "wrong",
        "present value": "wrong",
        "utilisation": "doubtful",
        "running costs": "wrong",
    }


def test_the_enterprise_story_with_resale_is_a_tie():
    """20 % resale: 1,035.3k − 160k ÷ (1+0.1/12)^60 = 938.1k against 941.3k."""
    found = check_break_even_claim(**ENTERPRISE, resale_fraction=0.2, nominal=True)
    assert found["npv_own_usd"] == pytest.approx(800e3 + 5e3 * 47.0654 - 160e3 / (1 + 0.1 / 12) ** 60, abs=1)
    assert found["npv_own_usd"] / found["npv_rent_usd"] == pytest.approx(1.0, abs=0.005)


def test_right_sized_the_enterprise_story_pays_back_in_ten_months():
    small = check_break_even_claim(buy_usd=180_000, rent_usd_per_month=20_000, own_usd_per_month=5_000 * 18 / 80)
    assert small["payback_months"] == pytest.approx(9.5, abs=0.05)
    real = check_break_even_claim(buy_usd=18 * 35_000, rent_usd_per_month=20_000, own_usd_per_month=18 * 512.06)
    assert real["payback_months"] == pytest.approx(58.4, abs=0.1)


def test_the_start_up_story():
    """Two RTX 4090 for 4,000 with 60 a month of power against 0.40 an hour, always on: 7 to 8 months."""
    rent = 2 * 730 * 0.40
    found = check_break_even_claim(
        buy_usd=4_000, rent_usd_per_month=rent, own_usd_per_month=60, gpus=2, gpu_hours_per_month=2 * 730
    )
    assert 7 < found["payback_months"] < 8
    assert found["utilisation_fraction"] == 1.0


def test_a_claim_that_never_pays_back_says_so():
    found = check_break_even_claim(buy_usd=10_000, rent_usd_per_month=400, own_usd_per_month=500)
    assert found["payback_months"] is None
    assert found["verdict"] == "wrong"


def test_epochs_amortised_cost_split():
    """Cottier et al. 2024: staff 29-49 %, servers without chips 15-22 %, interconnect 9-13 %, energy 2-6 %.

    A100 and H100 class: price of a chip 12-30k USD, server 1.64 times the chip, TDP 0.4-0.7 kW, 0.07-0.09 USD/kWh.
    """
    for chip_usd, tdp_kw, tariff in ((12_000, 0.4, 0.07), (30_000, 0.7, 0.0826)):
        cost = epoch_chip_hour(chip_usd * 1.64, tdp_kw, tariff)
        assert cost.interconnect_usd / cost.hardware_usd == pytest.approx(0.19)
        for staff in (0.29, 0.49):
            share = (1 - staff) / cost.total_usd
            others = cost.server_usd * (1 - 1 / 1.64) * share
            assert 0.14 < others < 0.225
            assert 0.085 < cost.interconnect_usd * share < 0.135
            assert 0.015 < cost.energy_usd * share < 0.065
            assert 0.47 - 0.03 < cost.hardware_usd * share < 0.67 + 0.04


OWNERS = [row for row in catalog().rows("ownership_anchors") if row["measure"].startswith("owner")]


def test_the_h100_anchors_are_there():
    assert {row["usd_per_gpu_hour"] for row in OWNERS if row["gpu"] == "h100-sxm5-80gb"} == {1.30, 1.69}


@pytest.mark.parametrize("row", OWNERS, ids=lambda row: f"{row['gpu']}-{row['measure']}")
def test_published_owner_costs_lie_within_the_range(row):
    """SemiAnalysis's owner cost per GPU-hour of hyperscalers and neoclouds; a large cluster, every hour counted."""
    published = row["usd_per_gpu_hour"]
    gpus = 1024 if "nvl72" not in row["gpu"] else 1008
    payload = gpucost.tco(row["gpu"], gpus, utilisation=1.0, rent=2.35, catalog=catalog(), draws=0).payload
    base, low, high = (row["levelised_usd_per_gpu_hour"] for row in payload["scenarios"][:3])
    assert low < published < high
    assert low < base < high
