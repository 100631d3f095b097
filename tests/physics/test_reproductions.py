"""Published runs from their papers' own layouts. These rows are part of the calibration's field: in-sample checks.

Tolerances are what a reader may expect of a single published configuration, not what the model was tuned to.
"""

import pytest

from gpucost.calibration import training
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import training_calibration

KORTHIKANTI_TABLE_5_S = {  # arXiv:2205.05198, Table 5: seconds per iteration, full recomputation and present work
    "korthikanti-001": 1.42, "korthikanti-002": 1.10, "korthikanti-003": 18.13, "korthikanti-004": 13.75,
    "korthikanti-005": 49.05, "korthikanti-006": 37.83, "korthikanti-007": 94.42, "korthikanti-008": 71.49,
}  # fmt: skip
NARAYANAN_TABLE_1_TFLOPS = (137, 138, 142, 135, 138, 140, 148, 155, 163, 163)  # arXiv:2104.04473, Table 1


@pytest.fixture(scope="module")
def predicted():
    catalog = open_catalog()
    found = training.gather(catalog.rows("training_measurements"), catalog)
    items = training.predict(found, training_calibration(catalog))
    return {item.id: (item, row) for item, row in zip(items, found.rows, strict=True)}


@pytest.mark.slow
def test_korthikanti_table_5(predicted):
    for name, seconds in KORTHIKANTI_TABLE_5_S.items():
        item, row = predicted[name]
        step = row.layout.global_batch * row.sequence_tokens / item.predicted / row.layout.gpus
        assert step == pytest.approx(seconds, rel=0.20), name


def test_narayanan_table_1(predicted):
    ratios = []
    for index, tflops in enumerate(NARAYANAN_TABLE_1_TFLOPS):
        item, _ = predicted[f"megatron-a100-{index + 1:03d}"]
        ratios.append(item.predicted / item.measured)
        assert item.predicted / item.measured * tflops == pytest.approx(tflops, rel=0.30)
    assert sum(ratios) / len(ratios) == pytest.approx(1.0, abs=0.20)


def test_llama_3_405b(predicted):
    # arXiv:2407.21783, Table 4: 430, 400 and 380 TFLOP/s per GPU on 8,192 and 16,384 GPUs, the last at 131,072 tokens.
    for name in ("llama3paper-001", "llama3paper-002", "llama3paper-003"):
        item, _ = predicted[name]
        assert item.predicted == pytest.approx(item.measured, rel=0.20), name


def test_deepseek_v3(predicted):
    # arXiv:2412.19437, Table 1: 2.664 M H800-hours for 14.8 T tokens = 1,543 tokens/s per GPU.
    item, _ = predicted["dsv3-001"]
    assert item.measured == pytest.approx(14.8e12 / 2.664e6 / 3600, rel=1e-3)
    # exchanges under two directions of a pipeline are not modelled: its steps come out 1.2 times too slow
    assert 0.77 <= item.predicted / item.measured <= 1.0
