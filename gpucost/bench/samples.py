"""One GPU at one moment, as the tools of its maker say."""

from collections.abc import Mapping
from typing import NamedTuple

POWER_CAP, SLOWDOWN, THERMAL = 0x4, 0x8, 0x40
# Bits of NVIDIA's clock event reasons that slow a GPU down (NVML API reference, nvmlClocksEventReasons).
REASONS: Mapping[int, str] = {
    POWER_CAP: "power cap",
    SLOWDOWN: "hardware slowdown",
    0x20: "software thermal limit",
    THERMAL: "hardware thermal limit",
    0x80: "power brake",
}


class Sample(NamedTuple):
    """One GPU at one moment; None where the tool does not say."""

    gpu: int
    name: str
    driver: str
    power_limit_w: float | None
    clock_max_mhz: float | None
    memory_used_mib: float | None
    utilisation_percent: float | None
    clock_mhz: float | None
    power_w: float | None
    temperature_c: float | None
    reasons: int


def number(text: object) -> float | None:
    """Return the first number of a cell; None where it says none.

    >>> number("(1090Mhz)"), number("N/A"), number(71.2), number(True)
    (1090.0, None, 71.2, None)
    """
    if isinstance(text, bool):
        return None
    kept = "".join(c if c in "0123456789.-" else " " for c in str(text)).split()
    try:
        return float(kept[0]) if kept else None
    except ValueError:
        return None
