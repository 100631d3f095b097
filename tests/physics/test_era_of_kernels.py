"""How old software is: attention written for a chip, experts before mid-2026, and what no kernel exceeds."""

import numpy as np
import pytest
from msgspec.structs import replace

import gpucost
from gpucost.calibration import training
from gpucost.calibration.training_rows import read_row
from gpucost.catalog import open_catalog
from gpucost.physics.hardware import hardware_columns
from gpucost.physics.software import CLASSES, software_class
from gpucost.physics.training.efficiency import DEFAULTS, MOST_OF_PEAK, resolve


@pytest.fixture(scope="module")
def catalog():
    return open_catalog()


def efficiency(catalog, chip, software="vendor", year=2026.5):
    hardware = hardware_columns([catalog.accelerator(chip)], [catalog.default_system(chip)])
    return resolve(DEFAULTS, hardware, np.array([CLASSES.index(software)]), np.array([year]))


def test_attention_of_tuned_stacks_on_hopper_is_half_way_before_spring_2024(catalog):
    early, late = (efficiency(catalog, "h100-sxm5-80gb", year=year).flash[0] for year in (2024.3, 2024.45))
    plain = efficiency(catalog, "h100-sxm5-80gb", "sharded", 2024.3).flash[0]
    assert early == pytest.approx((plain * late) ** 0.5)
    first, second, today = (
        efficiency(catalog, "a100-sxm4-80gb", year=year).flash[0] for year in (2023.5, 2024.1, 2026)
    )
    assert first < second == today  # FlashAttention-2 of July 2023, whose paper has twice the first one's rate on A100


def test_no_chip_reaches_more_than_its_peak_however_much_power_it_has(catalog):
    for chip in catalog.accelerators():
        found = efficiency(catalog, chip.id)
        assert max(found.matrix[0], found.flash[0]) <= MOST_OF_PEAK, chip.id
    assert efficiency(catalog, "h20").flash[0] > 0.9  # more than half the power of an H100 for a seventh of its peak


ROW = {"gpu": "h100-sxm5-80gb", "n_gpus": 8, "tp": 1, "pp": 1, "seq_len": 4096, "micro_batch": 1, "global_batch": 64,
       "framework": "Megatron-Bridge", "measured_tokens_per_s_per_gpu": 1000}  # fmt: skip


def seconds(catalog, **more):
    found = training.gather([{**ROW, **more}], catalog, as_written=True)
    return float(np.exp(-training.cal.log_predicted(training.observe(found), DEFAULTS))[0])


def test_the_dispatcher_decides_and_not_the_day(catalog):
    experts = {"model": "qwen3-30b-a3b", "ep": 8, "micro_batch": 8}
    before, after = (seconds(catalog, **experts, as_of=day) for day in ("2026-05", "2026-07"))
    assert before == pytest.approx(after, rel=0.02)
    assert 1.03 < before / seconds(catalog, **experts, as_of="2026-05", dispatcher="fused") < DEFAULTS["alltoall_ratio"]


def test_hours_of_a_published_run_count_its_failures_and_those_of_steps_do_not(catalog):
    card = {"model": "llama-3.1-405b", "gpu": "h100-sxm5-80gb", "n_gpus": 16384, "measured_total_gpu_hours": 3e7,
            "total_tokens": 1.5e13}  # fmt: skip
    small = {**card, "model": "llama-3-8b", "n_gpus": 64}
    ratio = {n: read_row({**row, "value_basis": "gpu_hours"}, catalog).long_run_ratio for n, row in
             (("large", card), ("small", small))}  # fmt: skip
    assert 1.2 < ratio["small"] < 1.21 < 1.3 < ratio["large"] < 1.4
    assert read_row({**card, "value_basis": "step_hours"}, catalog).long_run_ratio == 1
    row = training.gather([{**card, "value_basis": "gpu_hours"}], catalog, as_written=True)
    seen = training.observe(row)
    steps = replace(row, rows=[replace(row.rows[0], long_run_ratio=1.0, end_to_end=False)])
    lost = training.cal.log_predicted(training.observe(steps), DEFAULTS) - training.cal.log_predicted(seen, DEFAULTS)
    assert lost[0] == pytest.approx(np.log(ratio["large"]))


def test_no_long_row_asks_more_of_attention_than_the_best_kernels_attain(catalog):
    rows = [row for row in catalog.rows("training_measurements") if "nemolong" in row["id"]]
    found = training.gather(rows, catalog, as_written=True)
    for row, figure in zip(found.rows, found.figures, strict=True):
        a = row.architecture
        flop = 3.5 * 2 * a.layers * a.hidden * row.sequence_tokens  # half the square, forward and backward
        assert flop * figure.value < 0.75 * row.accelerator.bf16_tflops * 1e12, row.id


@pytest.mark.parametrize(("name", "expected"), [
    ("NxD Training", "neuron"), ("ROCm Megatron-LM", "vendor"), ("Megatron-LM", "megatron"), ("nanochat", "sharded"),
    ("Hugging Face Trainer", "eager"), ("HF Accelerate FSDP", "sharded"), ("ms-swift", "eager"), ("EasyLM", "compiler"),
])  # fmt: skip
def test_names_of_stacks_resolve_to_their_class(name, expected):
    assert software_class(name) == expected


def test_attention_runs_at_the_peak_of_its_own_format(catalog):
    found = gpucost.throughput("llama-3.1-8b", "gaudi3", 4, precision="fp16", software="native", sequence=65536).payload
    most = found["mfu_fraction"] * found["tokens_per_s_per_gpu_high"] / found["tokens_per_s_per_gpu"]
    assert most <= MOST_OF_PEAK  # Gaudi 3 has 1,677 TFLOP/s in bf16 and 459 in fp16
