"""Published ways to compute the cost of ownership, from their own formulas, to hold ours against."""

from typing import NamedTuple

import numpy as np

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
