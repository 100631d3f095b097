"""Figures stated one by one, each held against what is on record."""

import pytest

import gpucost
from gpucost.errors import UsageError


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog(as_of="2026-11-20")


@pytest.mark.parametrize(
    ("stated", "found"),
    [
        ({"tflops": 1979, "precision": "fp8"}, "possible"),
        ({"tflops": 1979, "precision": "bf16"}, "impossible"),  # the fp8 peak, and the sparse one of bf16
        ({"tflops": 1979, "precision": "bf16", "sparse": True}, "possible"),
        ({"bandwidth": "3.35TB/s"}, "possible"),
        ({"bandwidth": 900}, "impossible"),
        ({"link": 900}, "possible"),
        ({"link": 1000}, "impossible"),  # above what the datasheet has
        ({"link": 900, "one_way": True}, "impossible"),
        ({"memory": 141}, "impossible"),
        ({"power": 700}, "possible"),
        ({"gpus": 8, "power": 10200}, "possible"),  # DGX H100's data sheet
        ({"gpus": 8, "power": 5600}, "implausible"),  # its eight boards alone
        ({"purchase": 30000}, "possible"),
        ({"rent": 0.02}, "impossible"),
        ({"all_reduce": 0.01, "payload": 28, "gpus": 8}, "impossible"),  # 2·7/8·28 ÷ 450 = 0.109 s
        ({"model": "8b", "gpus": 8, "train_tokens_per_s": 1e6}, "impossible"),
        ({"model": "8b", "gpus": 8, "train_tokens_per_s": 65000}, "possible"),
        ({"energy": 10000, "gpu_hours": 10000}, "possible"),  # 0.7 kW a board, about 1 with its server
        ({"energy": 100, "gpu_hours": 10000}, "impossible"),
    ],
)
def test_a_figure_stated_alone(catalog, stated, found):
    assert gpucost.audit(gpu="h100-sxm", **stated, catalog=catalog).verdict == found


@pytest.mark.parametrize(
    ("stated", "asked"),
    [
        ({"tflops": 989, "gpu": "h100"}, r"\bprecision="),
        ({"tflops": 989, "precision": "bf16"}, r"\bgpu="),
        ({"all_reduce": 1, "gpu": "h100"}, r"\bpayload="),
        ({"energy": 1, "gpu": "h100"}, r"\bhours="),
        ({"carbon": 1}, r"\benergy="),
        ({"sparse": True, "gpu": "h100", "memory": 80}, r"\bsparse="),
    ],
)
def test_what_a_figure_needs_is_asked_back(catalog, stated, asked):
    with pytest.raises(UsageError, match=asked):
        gpucost.audit(**stated, catalog=catalog)
