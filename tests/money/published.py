"""Published ways to compute the cost of ownership, from their own formulas, to hold ours against."""

from typing import NamedTuple

import numpy as np

from gpucost.units import HOURS_PER_MONTH

HOURS_PER_YEAR_EPOCH = 8766.0  # the source counts 365.25 days


class AmortisedCost(NamedTuple):
    """Cost of a chip-hour, split as Cottier et al. do."""

    server_usd: float
    interconnect_usd: float
    energy_usd: float

    @property
    def hardware_usd(self) -> float:
        """Return servers and interconnect."""
        return self.server_usd + self.interconnect_usd

    @property
    def total_usd(self) -> float:
        """Return hardware and energy."""
        return self.hardware_usd + self.energy_usd


def epoch_chip_hour(
    server_usd_per_chip: float,
    chip_tdp_kw: float,
    electricity_usd_per_kwh: float,
    *,
    orders_of_magnitude_per_year: float = 0.14,
    interconnect_fraction: float = 0.19,
    server_to_chip_power_ratio: float = 1.82,
    power_fraction: float = 0.75,
    pue_ratio: float = 1.1,
) -> AmortisedCost:
    """Return the amortised cost of a chip-hour after Cottier et al. 2024 (arXiv:2405.21015), appendix on amortisation.

    Server: price · k·ln10 ÷ 8,766 h, k = 0.14 orders of magnitude a year. Interconnect: share ÷ (1 − share) of it.
    Energy: TDP · server ratio · mean draw · PUE · tariff.

    >>> cost = epoch_chip_hour(30_000, 0.7, 0.08)
    >>> round(cost.server_usd, 3), round(cost.interconnect_usd, 3), round(cost.energy_usd, 3)
    (1.103, 0.259, 0.084)
    """
    server = server_usd_per_chip * orders_of_magnitude_per_year * float(np.log(10)) / HOURS_PER_YEAR_EPOCH
    energy = chip_tdp_kw * server_to_chip_power_ratio * power_fraction * pue_ratio * electricity_usd_per_kwh
    return AmortisedCost(server, server * interconnect_fraction / (1 - interconnect_fraction), energy)


def owned_usd_per_gpu_month(price_usd, running_usd_per_month, years, resale_fraction, wacc_fraction):
    """Return what an owned GPU costs a month at a nominal rate: level payments on price less resale, plus running.

    (P − R·(1+i)^−n) · i ÷ (1 − (1+i)^−n) + running, the capital recovery factor of engineering economics.

    >>> round(owned_usd_per_gpu_month(35_000, 512.06, 4, 0.32, 0.10))
    1209
    """
    rate, months = wacc_fraction / 12, years * 12
    left = (1 + rate) ** -months
    return price_usd * (1 - resale_fraction * left) * rate / (1 - left) + running_usd_per_month


COLOCATION_USD_PER_KW_MONTH = 184  # of H2 2024, as the article took it


def running_usd_per_gpu_month(catalog, gpus: float, price_usd: float, server_kw_per_gpu: float = 10.2 / 8) -> float:
    """Return the running costs of an owned GPU a month from the sourced inputs: colocation, energy, support, people."""
    facts = {row["item"]: row["typical"] for row in (*catalog.rows("ownership"), *catalog.rows("energy"))}
    people = max(facts["sysadmin_fte.small_cluster_8_64gpu"], facts["sysadmin_fte.per_1000_gpu"] * gpus / 1000)
    energy = (
        server_kw_per_gpu * facts["tdp_fraction_gpu_server_training"] * facts["pue.neocloud_or_colo"] * HOURS_PER_MONTH
    )
    return float(
        server_kw_per_gpu * COLOCATION_USD_PER_KW_MONTH
        + energy * facts["electricity.us_average"]
        + facts["support_contract_fraction"] * price_usd / 12
        + people * facts["sysadmin_fte_cost"] / 12 / gpus
    )
