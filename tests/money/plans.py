"""Plans that the tests share. Numbers are made up for the tests unless a test says where they are from."""

from functools import cache
from typing import Any

import gpucost
from gpucost.catalog import Catalog, open_catalog


@cache
def catalog() -> Catalog:
    """The shipped catalog, on one day."""
    return open_catalog("2026-11-20")


# Every input that counts is stated, so that no shipped default enters.
REFERENCE: dict[str, Any] = {
    "gpus": 64,
    "gpus_per_node": 8,
    "months": 48,
    "utilisation_fraction": 0.7,
    "goodput_fraction": 0.9,
    "server_usd": 280_000,
    "network_1tier_usd_per_gpu": 2_000,
    "storage_usd_per_gpu": 700,
    "hot_spares_fraction": 0.025,
    "control_plane_fraction": 0.015,
    "installation_fraction": 0.04,
    "shipping_fraction": 0.01,
    "sales_tax_fraction": 0.05,
    "import_tariff_fraction": 0.0,
    "server_max_kw": 10.2,
    "auxiliary_power_ratio": 0.06,
    "colocation_usd_per_kw_month": 180,
    "colocation_escalation_fraction": 0.03,
    "power_fraction_active": 0.76,
    "power_fraction_idle": 0.2,
    "pue_ratio": 1.3,
    "electricity_usd_per_kwh": 0.085,
    "electricity_escalation_fraction": 0.02,
    "demand_usd_per_kw_month": 4,
    "staff_minimum_fte": 0.5,
    "staff_fte_per_1000_gpus": 4,
    "staff_usd_per_fte_year": 168_000,
    "staff_escalation_fraction": 0.04,
    "support_fraction": 0.05,
    "support_free_months": 12,
    "licence_usd_per_gpu_year": 300,
    "insurance_fraction": 0.006,
    "property_tax_fraction": 0.012,
    "egress_gb_per_gpu_month": 40,
    "own_egress_usd_per_gb": 0.01,
    "residual_fraction": 0.3,
    "residual_at_years": 4,
    "other_residual_fraction": 0.1,
    "resale_fee_fraction": 0.06,
    "disposal_usd_per_gpu": 50,
    "wacc_fraction": 0.1,
    "rent_usd_per_gpu_hour": 2.35,
    "rent_decline_fraction": 0.1,
    "storage_gib_per_gpu": 800,
    "storage_usd_per_gib_month": 0.1,
    "rent_support_fraction": 0.03,
    "rent_control_plane_usd_per_month": 73,
    "rent_egress_usd_per_gb": 0.05,
    "rent_staff_ratio": 0.25,
}
ASSESSED = [0.5, 0.4, 0.3, 0.2, 0.1]


def compare(**changes: Any) -> dict[str, Any]:
    """The reference plan with some inputs changed, without Monte Carlo unless asked for."""
    plan = {**REFERENCE, "assessed_by_year": ASSESSED, "draws": 0, **changes}
    plan = {name: value for name, value in plan.items() if value is not None}
    return dict(gpucost.tco(plan=plan, catalog=catalog()).payload)


def flows(payload: dict[str, Any], name: str) -> list[float]:
    """A column of the cash flows; a line that is nothing in every month is not there."""
    return [row.get(name, 0.0) for row in payload["cash_flows"]]
