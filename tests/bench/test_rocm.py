"""AMD GPUs by a stand-in for ROCm's PyTorch: which toolkit is told, and which 8-bit format is multiplied."""

import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from gpucost.bench.verdict import accelerator_of
from gpucost.catalog import open_catalog

PARTS = ("nn", "nn.functional", "distributed", "utils", "utils.data", "utils.checkpoint")


@pytest.fixture
def rocm(monkeypatch):
    """ROCm's PyTorch as a program sees it: `torch.cuda` speaks for AMD GPUs, and `torch.version.hip` says so."""
    torch = MagicMock(name="torch", __version__="2.9.1+rocm6.4")
    torch.version = SimpleNamespace(hip="6.4.43484", cuda=None)
    torch.cuda.is_available.return_value = True
    torch.cuda.get_device_properties.return_value = SimpleNamespace(
        name="AMD Instinct MI300X", total_memory=192 * 2**30, multi_processor_count=304,
        gcnArchName="gfx942:sramecc+:xnack-",
    )  # fmt: skip
    torch.cuda.device_count.return_value, torch.cuda.get_device_capability.return_value = 8, (9, 4)
    torch.cuda.mem_get_info.return_value = (190 * 2**30, 192 * 2**30)
    torch.cuda.nccl.version.return_value = (2, 22, 3)
    monkeypatch.setitem(sys.modules, "torch", torch)
    for name in PARTS:
        monkeypatch.setitem(sys.modules, f"torch.{name}", MagicMock())
    for name in [name for name in sys.modules if name.startswith("gpucost.bench.gpu")]:
        monkeypatch.delitem(sys.modules, name)
    yield torch
    for name in [name for name in sys.modules if name.startswith("gpucost.bench.gpu")]:
        del sys.modules[name]


def test_an_amd_gpu_is_told_with_its_toolkit_and_known_by_its_name(rocm):
    from gpucost.bench.gpu.worker import software

    found = software()
    assert found["toolkit"] == "ROCm 6.4.43484"
    assert found["gpus"] == 8
    chip = accelerator_of(open_catalog(), found["device"])
    assert chip is not None
    assert chip.id == "mi300x"


def test_cdna_3_multiplies_its_own_8_bit_format_and_others_the_common_one(rocm):
    from gpucost.bench.gpu import clock

    assert clock.FP8 is rocm.float8_e4m3fnuz
    rocm.cuda.get_device_properties.return_value.gcnArchName = "gfx950"  # CDNA 4
    del sys.modules["gpucost.bench.gpu.clock"]
    import importlib

    from gpucost.bench.gpu import worker  # noqa: F401

    assert importlib.import_module("gpucost.bench.gpu.clock").FP8 is rocm.float8_e4m3fn
