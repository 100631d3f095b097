"""Published figures, from their own inputs: what a widely copied article says, and what its numbers make of it.

The cost of an owned H100 (USD 35,000 all-in, 4 years, 10 % nominal, 32 % resale, colocation 184 USD/kW-month, 5 %
support) is a worked example of a published article, recomputed by hand.
"""

import pytest

import gpucost
from tests.money.plans import catalog
from tests.money.published import (
    COLOCATION_USD_PER_KW_MONTH,
    epoch_chip_hour,
    owned_usd_per_gpu_month,
    running_usd_per_gpu_month,
)

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
    "colocation_usd_per_kw_month": COLOCATION_USD_PER_KW_MONTH,
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
    assert owned_usd_per_gpu_month(35_000, running, 4, 0.32, 0.10) == pytest.approx(1209, abs=0.5)


@pytest.mark.parametrize(("rent", "hours"), [(1.70, 711), (2.35, 514), (2.99, 404), (6.88, 176)])
def test_break_even_hours_of_an_owned_h100(rent, hours):
    """The rule counts the running costs of an allocated GPU; that energy falls when it stands idle is ignored."""
    point = anchor(rent_usd_per_gpu_hour=rent, power_fraction_idle=0.75)["breakeven"]
    assert point["hours_per_gpu_month"] == pytest.approx(hours, abs=0.6)


def test_half_an_engineer_on_one_server_never_breaks_even():
    payload = anchor(gpus=8, staff_minimum_fte=0.5, power_fraction_idle=0.75)
    assert payload["levelised_usd_per_gpu_hour_owned"] * 730 == pytest.approx(2038, abs=0.5)
    assert payload["breakeven"]["utilisation_fraction"] is None
    assert payload["levelised_usd_per_gpu_hour_owned"] * 730 / 2.35 == pytest.approx(867, abs=0.5)


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
