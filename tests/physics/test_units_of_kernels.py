"""Rescale the base units under every kernel: each output must scale as its name's suffix says.

Time is counted in a unit λ times smaller: whatever ends in `_s`, `_us` or `_ms` grows by λ, whatever is per second
falls by λ, and ratios, fractions, bytes and counts stay.
"""

import numpy as np
import pytest
from msgspec.structs import replace

from gpucost.physics import collectives as net
from gpucost.physics import roofline
from gpucost.physics.columns import ColumnStruct
from gpucost.physics.training import layer, layouts
from gpucost.physics.training import steps as training
from gpucost.physics.training.efficiency import DEFAULTS
from gpucost.types import Layout

from .cases import H100, LLAMA_8B, MIXTRAL, NODE, column_names, make_case

SCALE = 1024.0  # a power of two: rescaling is exact in floating point
TIMES = ("_s", "_us", "_ms")
RATES = ("_per_s", "_tflops", "_tokens_per_s_per_gpu", "_flop_per_s")


def power_of_time(name):
    """Return the power of time that a name's suffix states."""
    if name.endswith(RATES) or name in ("tokens_per_s_per_gpu", "tflops"):
        return -1
    return 1 if name.endswith(TIMES) else 0


def rescaled(struct: ColumnStruct) -> ColumnStruct:
    """Return a struct in the other unit of time."""
    values = {name: getattr(struct, name) for name in column_names(struct)}
    return replace(struct, **{n: v * SCALE ** power_of_time(n) for n, v in values.items() if power_of_time(n)})


def assert_scales(before: ColumnStruct, after: ColumnStruct) -> None:
    for name in column_names(before):
        expected = getattr(before, name) * SCALE ** power_of_time(name)
        np.testing.assert_allclose(getattr(after, name), expected, rtol=1e-12, err_msg=name)


def cases():
    layouts_ = [
        Layout(gpus=64, tensor=4, pipeline=4, context=2, data=2, sharding=1, global_batch=32, virtual_stages=2),
        Layout(gpus=64, expert=8, data=64, sharding=3, global_batch=128, recompute="full"),
        Layout(gpus=16, tensor=8, data=2, sharding=0, global_batch=32, precision="fp8"),
    ]
    for method in ("full", "qlora"):
        for model in (LLAMA_8B, MIXTRAL):
            yield make_case(layouts_, model=model, method=method, software="eager", year=2021.0)


def other_unit(case):
    return replace(case, hardware=rescaled(case.hardware), efficiency=rescaled(case.efficiency))


@pytest.mark.parametrize("kernel", [training.micro_step, training.step, layer.rates, layer.case_links])
def test_a_kernel_of_a_case_scales(kernel):
    for case in cases():
        assert_scales(kernel(case), kernel(other_unit(case)))


@pytest.mark.parametrize("name", ["data_s", "optimizer_s"])
def test_a_part_of_the_schedule_scales(name):
    for case in cases():
        slow = other_unit(case)
        parts = [training.gpu_parameters(c) for c in (case, slow)]
        busy = [training.micro_step(c).total_s for c in (case, slow)]
        if name == "data_s":
            before, after = (training.data_s(c, b, *p) for c, b, p in zip((case, slow), busy, parts, strict=True))
        else:
            before, after = (training.optimizer_s(c, *p) for c, p in zip((case, slow), parts, strict=True))
        np.testing.assert_allclose(after, before * SCALE, rtol=1e-12)


def test_collectives_scale_in_time_and_are_unchanged_in_bytes():
    case = next(cases())
    for link_case, factor in ((other_unit(case), SCALE),):
        before, after = layer.case_links(case), layer.case_links(link_case)
        group, slow = (net.tier(link, case.layout.data, case.layout.tensor) for link in (before, after))
        assert_scales(group, slow)
        size = np.full(3, 1e9)
        for function in (net.ring_s, net.all_reduce_s, net.point_to_point_s):
            np.testing.assert_allclose(function(slow, size), function(group, size) * factor, rtol=1e-12)
        experts = (
            net.expert_exchange_s(g, size, np.full(3, 8.0), link) for g, link in ((group, before), (slow, after))
        )
        first, second = experts
        np.testing.assert_allclose(second, first * factor, rtol=1e-12)


def test_twice_the_bytes_over_twice_the_bandwidth_take_the_same_time():
    group = net.Tier(np.full(1, 8.0), np.full(1, 100.0), np.full(1, 100.0), np.zeros(1))
    twice = replace(group, gb_per_s=group.gb_per_s * 2, ring_gb_per_s=group.ring_gb_per_s * 2)
    for function in (net.ring_s, net.all_reduce_s, net.point_to_point_s):
        assert function(twice, np.full(1, 2e9))[0] == function(group, np.full(1, 1e9))[0]


def test_the_roofline_scales():
    case = next(cases())
    slow = other_unit(case)
    steps = [training.step(c) for c in (case, slow)]
    works = [roofline.step_work(c, s) for c, s in zip((case, slow), steps, strict=True)]
    for name in works[0]:
        verdicts = [
            roofline.judge(
                w[name], c.hardware.half_tflops, c.hardware.hbm_gb_per_s, c.hardware.scaleup_gb_per_s, np.zeros(3)
            )
            for w, c in zip(works, (case, slow), strict=True)
        ]
        assert_scales(works[0][name], works[1][name])
        assert_scales(*verdicts)


def test_the_search_finds_the_same_layouts_in_either_unit():
    slow_values = {name: value * SCALE ** power_of_time(name.partition(".")[0]) for name, value in DEFAULTS.items()}
    slow_chip = replace(
        H100, hbm_gb_per_s=H100.hbm_gb_per_s / SCALE, pcie_gb_per_s=63.0 / SCALE, bf16_tflops=989.4 / SCALE,
        fp16_tflops=989.4 / SCALE, fp8_tflops=None, tf32_tflops=None,
    )  # fmt: skip
    slow_node = replace(NODE, scaleup_gb_per_s=450.0 / SCALE, scaleout_gb_per_s=50.0 / SCALE)
    gpus = [8, 16, 64]
    before = layouts.best_layouts(LLAMA_8B, [H100] * 3, [NODE] * 3, gpus, values=DEFAULTS)
    after = layouts.best_layouts(LLAMA_8B, [slow_chip] * 3, [slow_node] * 3, gpus, values=slow_values)
    for name in column_names(before.layout):
        assert getattr(before.layout, name).tolist() == getattr(after.layout, name).tolist(), name
    assert_scales(before.step, after.step)
