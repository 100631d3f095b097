"""Accelerators and the networks between them, as arrays: dense peaks, bandwidths, the sizes of the tiers."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.physics.columns import PRECISIONS, ColumnStruct, Flags, Floats, Integers
from gpucost.types import Accelerator, System
from gpucost.units import TERA

# Families that share efficiencies; an unknown one falls back to the last entry.
FAMILIES = (
    *("pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell", "rubin"),
    *("cdna", "cdna2", "cdna3", "cdna4", "cdna5", "rdna3"),
    *("gaudi", "tpu", "trainium", "ascend", "other"),
)

PCIE_DEFAULT_GB_PER_S = 12.0  # host link of an accelerator for which none is stated: PCIe 3.0 x16 as measured
SCALEOUT_DEFAULT_GB_PER_S = 1.25  # 10 Gbit/s Ethernet per accelerator where no network is named


class HardwareColumns(ColumnStruct, frozen=True):
    """What the kernels need to know of an accelerator in its system."""

    peaks_tflops: NDArray[np.float64]  # rows × PRECISIONS, NaN where the chip lacks the precision
    half_tflops: Floats  # dense 16-bit peak
    hbm_gb_per_s: Floats
    memory_gib: Floats
    scaleup_gb_per_s: Floats  # per accelerator, one direction
    scaleup_gpus: Floats
    pcie_gb_per_s: Floats
    scaleout_gb_per_s: Floats
    node_gpus: Floats
    family: Integers  # code into FAMILIES
    year: Floats  # of launch
    trains: Flags
    refreshed: Flags  # a second issue of a generation: its 4-bit units outgrew the others
    sources: Floats  # how many published ones measured training on it
    largest_gpus: Floats  # of the clusters of those sources
    sustained_ratio: Floats  # share of the peak that power sustains, against the family's reference; 1 where unknown


def family_code(family: str, families: Sequence[str] = FAMILIES) -> int:
    """Return the code of a family; an unknown one is "other", the last."""
    return families.index(family) if family in families else len(families) - 1


class Peak(NamedTuple):
    """A dense peak: NaN where the chip cannot multiply at the precision; stated by its maker, or taken from a twin."""

    tflops: float
    native: bool


# The other 16-bit format runs at the same rate, except on these families, which lack the format itself.
_TWIN = {"bf16": "fp16", "fp16": "bf16"}
_LACKING = {"bf16": ("pascal", "volta", "turing"), "fp16": ("tpu",)}


def peak(accelerator: Accelerator, precision: str) -> Peak:
    """Return the dense peak of a chip at a precision; bf16 and fp16 stand in for each other, fp4 is nvfp4 and mxfp4."""
    stated = getattr(accelerator, f"{precision}_tflops", None)
    if stated:
        return Peak(float(stated), True)
    twin = None
    if precision in _TWIN and accelerator.family not in _LACKING[precision]:
        twin = getattr(accelerator, f"{_TWIN[precision]}_tflops")
    return Peak(float(twin or np.nan), False)


def peak_share(accelerator: Accelerator, precision: str, flop_per_s: float) -> float:
    """Return the share of the dense peak that so many FLOP per second of one chip need; NaN without the precision."""
    return flop_per_s / (peak(accelerator, precision).tflops * TERA)


def peaks(accelerator: Accelerator) -> list[float]:
    """Return the dense peaks in the order of PRECISIONS."""
    return [peak(accelerator, name).tflops for name in PRECISIONS]


def half_precision(accelerator: Accelerator) -> str:
    """Return the 16-bit format that a chip trains in where none is named: bf16, else fp16."""
    return "fp16" if np.isnan(peak(accelerator, "bf16").tflops) else "bf16"


# Scalar lanes of a multiprocessor: GP100 64, Volta and Turing 64, GA100 64, GA102 and later 128 (CUDA C++ Programming
# Guide, table of arithmetic throughput, 32-bit floating point).
_LANES = {"pascal": 64, "volta": 64, "turing": 64, "ampere": 128, "ada": 128, "hopper": 128, "blackwell": 128}
_DATA_CENTRE_AMPERE = ("a100", "a800", "a30")


def cores_of(chip: Accelerator) -> int | None:
    """Return the FP32 lanes ("CUDA cores") of a chip: multiprocessors × lanes of each; None where not known."""
    if chip.vendor != "NVIDIA" or not chip.multiprocessors:
        return None
    lanes = 64 if chip.id.startswith(_DATA_CENTRE_AMPERE) else _LANES.get(chip.family)
    return chip.multiprocessors * lanes if lanes else None


class ReferenceChip(NamedTuple):
    """The chip that a family's share of the peak is stated for."""

    tflops: float  # dense, 16 bits
    power_w: float
    multiprocessors: int


# as their data sheets rate V100 SXM2, A100 SXM, H100 SXM, B200, MI300X and MI350X
REFERENCE_CHIPS = {
    "volta": ReferenceChip(125.0, 300.0, 80),
    "ampere": ReferenceChip(312.0, 400.0, 108),
    "hopper": ReferenceChip(989.4, 700.0, 132),
    "blackwell": ReferenceChip(2250.0, 1000.0, 148),
    "cdna3": ReferenceChip(1307.4, 750.0, 304),
    "cdna4": ReferenceChip(2306.9, 1000.0, 256),
}
# 4-bit peak ÷ 16-bit peak beyond which a chip is a second issue of its generation: Blackwell has 4, Blackwell Ultra 6.
_REFRESHED_RATIO = 5.0
_MOST_POWER_RATIO = 1.4  # beyond which more power raises no clock
_CUT_DOWN_RATIO = 0.5  # peak of a multiprocessor ÷ the reference's below which units are disabled, not clocked lower
_CLOCK_EXPONENT = 1 / 3  # dynamic power grows as clock · voltage², and voltage with the clock


def sustained_ratio(accelerator: Accelerator) -> float:
    """Return the share of its peak that a chip sustains against the share that its family's reference sustains.

    Products run into the power limit, not into the boost clock of the data sheet. Power grows as clock · voltage² and
    voltage with the clock, so that the clock of a multiprocessor grows as (its watts)^⅓; the rate is multiprocessors ·
    clock, and the share of the peak that rate ÷ peak:

        (units ÷ units₀) · (peak₀ ÷ peak) · (watts per unit ÷ watts per unit₀)^⅓

    A GB200 is rated 11 % above a B200 and trains 1 % faster (MLPerf Training v5.0, Llama 2 70B on 8 and 16 GPUs). Known
    for chips with stacked memory; cards have peaks of another kind. A 500 W H100 against its 700 W:

    >>> h100 = {"bf16_tflops": 989.4, "memory_type": "HBM2e", "tdp_w": 500.0, "multiprocessors": 132}
    >>> round(sustained_ratio(Accelerator("h100", "NVIDIA", "H100", "hopper", "SXM5", 2022, 80.0, 3350.0, **h100)), 3)
    0.894
    """
    reference = REFERENCE_CHIPS.get(accelerator.family)
    if reference is None or not accelerator.tdp_w or not accelerator.memory_type.upper().startswith("HBM"):
        return 1.0
    # Where multiprocessors are not known, or some of their units are disabled, the peak says how many there are: chips
    # for export have nearly the multiprocessors of their sisters and a fraction of their peak.
    units = (accelerator.multiprocessors or 0) / reference.multiprocessors
    peaks_ratio = peak(accelerator, half_precision(accelerator)).tflops / reference.tflops
    if not units or peaks_ratio / units < _CUT_DOWN_RATIO:
        units = peaks_ratio
    watts = accelerator.tdp_w / reference.power_w / units
    return float(units / peaks_ratio * min(watts, _MOST_POWER_RATIO) ** _CLOCK_EXPONENT)


def capped_ratio(cap_fraction: float, draw_fraction: float) -> float:
    """Return the speed under a cap of the power against that at the usual draw: (cap ÷ draw)^⅓, at most 1.

    Clocks follow the power as in `sustained_ratio`. A server that draws 75 % of its rating, capped at 60 %:

    >>> round(capped_ratio(0.60, 0.75), 3), capped_ratio(1.0, 0.75)
    (0.928, 1.0)
    """
    return float(min(1.0, cap_fraction / draw_fraction) ** _CLOCK_EXPONENT)


def hardware_columns(accelerators: Sequence[Accelerator], systems: Sequence[System]) -> HardwareColumns:
    """Turn pairs of accelerator and system into arrays."""
    table = np.array([peaks(a) for a in accelerators], dtype=np.float64).reshape(len(accelerators), len(PRECISIONS))
    pairs = list(zip(accelerators, systems, strict=True))

    def column(values: Sequence[float]) -> Floats:
        return np.array(values, dtype=np.float64)

    return HardwareColumns(
        peaks_tflops=table,
        half_tflops=np.where(np.isnan(table[:, 0]), table[:, 1], table[:, 0]),  # bf16, else fp16
        hbm_gb_per_s=column([a.hbm_gb_per_s for a in accelerators]),
        memory_gib=column([a.memory_gib for a in accelerators]),
        scaleup_gb_per_s=column([s.scaleup_gb_per_s or a.pcie_gb_per_s or PCIE_DEFAULT_GB_PER_S for a, s in pairs]),
        # without a common link the cards of a node exchange over PCIe, and the node is the domain
        scaleup_gpus=column([s.scaleup_gpus if s.scaleup_gb_per_s else s.gpus for s in systems]),
        pcie_gb_per_s=column([a.pcie_gb_per_s or PCIE_DEFAULT_GB_PER_S for a in accelerators]),
        scaleout_gb_per_s=column([s.scaleout_gb_per_s or SCALEOUT_DEFAULT_GB_PER_S for s in systems]),
        node_gpus=column([s.gpus for s in systems]),
        family=np.array([family_code(a.family) for a in accelerators], dtype=np.int64),
        year=column([a.year for a in accelerators]),
        trains=np.array([a.trains for a in accelerators], dtype=np.bool_),
        refreshed=np.array([(peak(a, "fp4").tflops / peak(a, "bf16").tflops) > _REFRESHED_RATIO for a in accelerators]),
        sources=column([a.training_sources for a in accelerators]),
        largest_gpus=column([a.training_largest_gpus for a in accelerators]),
        sustained_ratio=column([sustained_ratio(a) for a in accelerators]),
    )


def peak_tflops(hardware: HardwareColumns, precision: Integers) -> Floats:
    """Return the dense peak at a precision per row; NaN where the chip lacks it."""
    tflops: Floats = np.take_along_axis(hardware.peaks_tflops, precision[:, None], axis=1)[:, 0]
    return tflops


def half_peak_tflops(hardware: HardwareColumns, precision: Integers) -> Floats:
    """Return the dense peak of what takes 16 bits or more: that of 16 bits, or the format's own where it is lower."""
    is_half = np.isin(precision, [PRECISIONS.index(name) for name in ("bf16", "fp16")])
    format_peak = peak_tflops(hardware, precision)
    return np.where(is_half, format_peak, np.fmin(format_peak, hardware.half_tflops))
