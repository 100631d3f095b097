"""What a chip sustains of its peak: power and multiprocessors decide, not the clock of the data sheet."""

import pytest

from gpucost.catalog import open_catalog
from gpucost.physics.hardware import REFERENCE_CHIPS, sustained_ratio

CATALOG = open_catalog()


def rate(name: str) -> float:
    """Sustained TFLOP/s in units of the reference's share."""
    chip = CATALOG.accelerator(name)
    return chip.bf16_tflops * sustained_ratio(chip)


def test_the_reference_of_a_family_sustains_its_own_share():
    for name in ("a100-sxm4-80gb", "h100-sxm5-80gb", "b200-sxm", "mi300x", "mi350x"):
        assert sustained_ratio(CATALOG.accelerator(name)) == pytest.approx(1.0, abs=1e-3)


def test_a_gb200_is_hardly_faster_than_a_b200():
    """MLPerf Training v5.0, Llama 2 70B on 16 GPUs: 4,920 tokens/s per GPU against 5,025."""
    assert 0.97 < rate("gb200-nvl72-gpu") / rate("b200-sxm") < 1.09


def test_half_of_the_power_costs_a_fifth_of_the_speed():
    """2^(1/3) = 1.26: the clock falls with the third root of the power."""
    full = CATALOG.accelerator("h100-sxm5-80gb")
    half = type(full)(**{name: getattr(full, name) for name in full.__struct_fields__} | {"tdp_w": 350.0})
    assert sustained_ratio(half) == pytest.approx(0.5 ** (1 / 3), rel=1e-6)


def test_a_chip_with_disabled_units_is_not_clocked_higher():
    """An H20 has 78 multiprocessors whose matrix units are cut to a quarter: its peak is what it reaches."""
    assert sustained_ratio(CATALOG.accelerator("h20")) <= 1.4 ** (1 / 3)


def test_the_references_are_chips_of_the_tables():
    peaks = {(chip.family, chip.bf16_tflops or chip.fp16_tflops) for chip in CATALOG.accelerators()}
    assert all((family, reference.tflops) in peaks for family, reference in REFERENCE_CHIPS.items())
