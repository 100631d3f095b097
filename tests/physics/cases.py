"""Small cases that the physics tests share: one model, one node, and ways to vary them."""

import numpy as np
from msgspec.structs import replace

from gpucost.physics.columns import layout_columns
from gpucost.physics.hardware import hardware_columns
from gpucost.physics.training import steps as training
from gpucost.physics.training.cases import build_case, recipe_columns, software_codes
from gpucost.physics.training.efficiency import DEFAULTS
from gpucost.physics.transformer import stack
from gpucost.types import Accelerator, Architecture, Layout, System

LLAMA_8B = Architecture("llama-3-8b", "", 32, 4096, 32, 8, 128, 14336, True, 128256, False)
LLAMA_405B = Architecture("llama-3.1-405b", "", 126, 16384, 128, 8, 128, 53248, True, 128256, False)
GPT3 = Architecture(
    "gpt-3", "", 96, 12288, 96, 96, 128, 49152, False, 50257, True, attention="mha", norm="ln", qkv_bias=True
)
MIXTRAL = Architecture(
    "mixtral", "", 32, 4096, 32, 8, 128, 0, True, 32000, False,
    experts=8, experts_per_token=2, expert_ffn_hidden=14336,
)  # fmt: skip
H100 = Accelerator(
    "h100", "NVIDIA", "H100", "hopper", "SXM5", 2022, 79.65, 3350.0,
    bf16_tflops=989.4, fp16_tflops=989.4, fp8_tflops=1978.9, tf32_tflops=494.7, pcie_gb_per_s=63.0,
    scaleup_gb_per_s=450.0, scaleup_gpus=8,
)  # fmt: skip
NODE = System("node", "node", "node", "h100", 8, 450.0, 8, 50.0)


def make_case(
    layouts, *, model=LLAMA_8B, chip=H100, node=NODE, sequence=8192.0, method="full", software="vendor", year=2025.0,
    values=DEFAULTS, **recipe,
):  # fmt: skip
    """Return the case of one or several layouts."""
    layouts = [layouts] if isinstance(layouts, Layout) else list(layouts)
    count = len(layouts)
    return build_case(
        stack([model] * count), hardware_columns([chip] * count, [node] * count), layout_columns(layouts),
        recipe_columns(count, sequence, method=method, **recipe), values,
        software=np.repeat(software_codes([software]), count), software_year=np.full(count, year),
    )  # fmt: skip


def time_of(layouts, **case):
    """Return the step of one or several layouts."""
    return training.step(make_case(layouts, **case))


def changed(case, part, **columns):
    """Return a case with some columns of one of its parts replaced."""
    struct = replace(getattr(case, part), **columns)
    return replace(case, **{part: struct})


def column_names(struct):
    """Return the names of a struct's columns."""
    return struct.names()
