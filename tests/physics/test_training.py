"""Step time: what must hold for any step, and numbers worked by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gpucost.physics import transformer as tf
from gpucost.physics.columns import layout_columns
from gpucost.physics.training import steps as training
from gpucost.physics.training.cases import PARTS, software_codes
from gpucost.physics.training.efficiency import DEFAULTS, FUSED, UNSAID, resolve
from gpucost.physics.training.layer import (
    MERGED_BYTES,
    cast_bytes,
    layer_adapter_s,
    layer_attention_s,
    layer_scan_s,
    layer_sinks_s,
    rates,
)
from gpucost.physics.training.memory_recipe import FROZEN_BYTES
from gpucost.physics.transformer import stack
from gpucost.types import Architecture, Layout
from gpucost.units import GB

from .cases import GPT3, H100, LLAMA_8B, LLAMA_405B, MIXTRAL, NODE, changed, column_names, make_case, time_of

IDEAL = DEFAULTS | {name: 1e-9 for name in DEFAULTS if name.startswith(("host_us", "step_overhead", "straggler"))}


def test_the_parts_add_up_to_the_step():
    step = time_of(Layout(gpus=64, tensor=4, pipeline=4, data=4, micro_batch=1, global_batch=64, virtual_stages=2))
    assert sum(getattr(step, name)[0] for name in PARTS) == pytest.approx(step.total_s[0])


def test_mfu_follows_from_tokens_by_hand():
    step = time_of(Layout(gpus=8, data=8, sharding=3, micro_batch=2, global_batch=16))
    flop = tf.model_flop(stack([LLAMA_8B]), 8192.0)[0]
    assert step.mfu_fraction[0] == pytest.approx(step.tokens_per_s_per_gpu[0] * flop / 989.4e12)
    assert step.tokens_per_s_per_gpu[0] == pytest.approx(16 * 8192 / step.total_s[0] / 8)


def test_no_step_is_faster_than_its_model_flop_at_the_peak():
    layouts = [Layout(gpus=8, data=8, sharding=s, micro_batch=b, global_batch=8 * b) for s in (0, 1, 3) for b in (1, 4)]
    assert (time_of(layouts).mfu_fraction < 1).all()


def test_one_gpu_has_no_communication():
    step = time_of(Layout(gpus=1, micro_batch=1, global_batch=4))
    for name in ("tensor_s", "context_s", "expert_s", "pipeline_s", "bubble_s", "data_s", "straggler_s"):
        assert getattr(step, name)[0] == 0, name


def test_the_bubble_is_that_of_1f1b_and_shrinks_with_interleaving():
    # arXiv:2104.04473, section 2.2: bubble ÷ ideal = (p − 1)/m, and ÷ v when interleaved.
    plain, woven = time_of(
        [Layout(gpus=8, pipeline=8, micro_batch=1, global_batch=32, virtual_stages=v) for v in (1, 4)], values=IDEAL
    ).bubble_s
    case = make_case(Layout(gpus=8, pipeline=8, micro_batch=1, global_batch=32), values=IDEAL)
    stage = training.micro_step(case).total_s + training.hand_over_s(case)
    assert plain == pytest.approx(7 * stage[0])
    assert woven < plain / 3


def test_layers_that_do_not_divide_by_the_stages_cost_the_slowest_stage():
    # 126 layers on 16 stages: eight layers count, as on 128.
    inner, ends = training.stage_layers(stack([LLAMA_405B]), layout_columns([Layout(gpus=16, pipeline=16)]), np.ones(1))
    assert (inner[0], ends[0]) == (8, 0)
    even, logits = training.stage_layers(stack([GPT3]), layout_columns([Layout(gpus=8, pipeline=8)]), np.ones(1))
    assert (even[0], logits[0]) == (12, 1)


def test_full_recomputation_costs_about_a_third_more_products():
    none, full = time_of(
        [Layout(gpus=8, data=8, sharding=1, micro_batch=1, global_batch=8, recompute=r) for r in ("none", "full")]
    ).matrix_s
    assert full / none == pytest.approx(4 / 3)


def test_frozen_weights_need_two_passes_of_three():
    layout = Layout(gpus=8, data=8, sharding=1, micro_batch=1, global_batch=8)
    assert time_of(layout, method="lora").matrix_s[0] / time_of(layout).matrix_s[0] == pytest.approx(2 / 3)
    assert time_of(layout, method="qlora").adapter_s[0] > time_of(layout, method="lora").adapter_s[0] > 0


def test_low_precision_speeds_up_products_only():
    bf16, fp8 = (time_of(Layout(gpus=8, data=8, global_batch=8, precision=p)) for p in ("bf16", "fp8"))
    assert fp8.matrix_s[0] < 0.7 * bf16.matrix_s[0]
    assert fp8.elementwise_s[0] > bf16.elementwise_s[0], "operands are cast"
    for name in ("attention_s", "logits_s"):
        assert getattr(fp8, name)[0] == getattr(bf16, name)[0], name


def test_casts_move_what_both_sides_of_each_product_hold():
    # A layer of Llama 3 8B: q, k, v take 4,096 values and give 6,144; o 4,096 and 4,096; gate and up 4,096 and 28,672;
    # down 14,336 and 4,096.
    case = make_case(Layout(gpus=1, global_batch=1, precision="fp8"))
    values = (4096 + 6144) + (4096 + 4096) + (4096 + 28672) + (14336 + 4096)
    assert cast_bytes(case, np.ones(1), np.zeros(1))[0] == pytest.approx(DEFAULTS["cast_bytes.fused"] * values)


def test_gathers_of_experts_hide_under_compute_in_every_stack():
    layout = Layout(gpus=64, data=64, sharding=3, micro_batch=1, global_batch=64)
    vendor, compiler = (
        time_of(layout, model=MIXTRAL, software=name, values=DEFAULTS | {"sharding_bytes": 1e-9})
        for name in ("vendor", "compiler")
    )
    assert vendor.data_s[0] < 1.2 * compiler.data_s[0]


def test_a_loss_that_is_computed_again_costs_a_third_more():
    again, once = (time_of(ONE, loss_repeated=repeated).logits_s[0] for repeated in (True, False))
    assert again / once == pytest.approx(4 / 3)


def test_sharded_weights_are_gathered_in_every_micro_batch():
    once, each = time_of(
        [Layout(gpus=64, data=64, sharding=s, micro_batch=1, global_batch=512) for s in (1, 3)], sequence=512.0
    ).data_s
    assert each > 4 * once


def test_a_stage_that_keeps_what_it_gathered_exchanges_once_a_step():
    def exchange(software, batch):
        layout = Layout(gpus=64, pipeline=8, data=8, sharding=3, micro_batch=1, global_batch=batch)
        return time_of(layout, sequence=512.0, software=software).data_s[0]

    assert exchange("sharded", 512) == pytest.approx(exchange("sharded", 64), rel=0.05)
    assert exchange("compiler", 512) > 4 * exchange("compiler", 64), "compiled graphs gather in every micro-batch"


def hybrid_and_whole(**node):
    """Return a job on eight nodes whose ranks shard within a node, then one where all of them share the shards."""
    layout = Layout(gpus=64, data=64, sharding=3, micro_batch=1, global_batch=64)
    whole = make_case(layout, sequence=1024.0, node=replace(NODE, **node))
    return changed(whole, "layout", shard_ranks=np.full(1, 8.0)), whole


def test_shards_within_a_node_are_gathered_without_the_network():
    hybrid, whole = (
        training.data_s(case, np.zeros(1), *training.gpu_parameters(case))[0]
        for case in hybrid_and_whole(scaleout_gb_per_s=1.0)
    )
    assert hybrid < whole
    near, far = (hybrid_and_whole(scaleup_gb_per_s=speed)[0] for speed in (450.0, 45.0))
    exposed = [training.data_s(case, np.zeros(1), *training.gpu_parameters(case))[0] for case in (near, far)]
    assert exposed[1] > exposed[0]


def test_groups_that_shard_sum_what_each_rank_is_left_with_by_hand():
    """8 groups of 8: an all-reduce of 2 bytes for an eighth of the parameters, over the rank's own card at 10 GB/s."""
    values = DEFAULTS | {"scaleout_latency_us": 1e-9, "sharding_bytes": 1e-9}
    layout = Layout(gpus=64, data=64, sharding=3, micro_batch=1, global_batch=64)
    case = make_case(layout, values=values, node=replace(NODE, scaleout_gb_per_s=10.0))
    case = changed(case, "layout", shard_ranks=np.full(1, 8.0))
    parameters = tf.total_parameters(stack([LLAMA_8B]))[0]
    summed = 2 * 7 / 8 * 2 * parameters / 8 / (DEFAULTS["scaleout_fraction"] * 10e9)
    dense, expert = training.gpu_parameters(case)
    assert training.data_s(case, np.zeros(1), dense, expert)[0] == pytest.approx(summed * (1 + 1 / 32), rel=1e-4)


def test_a_group_as_large_as_the_job_is_plain_sharding():
    hybrid, whole = hybrid_and_whole()
    same = changed(whole, "layout", shard_ranks=np.full(1, 64.0))
    assert training.step(same).total_s[0] == training.step(whole).total_s[0]
    assert training.optimizer_s(hybrid, *training.gpu_parameters(hybrid))[0] == pytest.approx(
        8 * training.optimizer_s(whole, *training.gpu_parameters(whole))[0]
    )


def test_documents_that_share_a_sequence_attend_to_themselves():
    packed, whole = (time_of(ONE, document_tokens=tokens) for tokens in (256.0, np.inf))
    assert packed.attention_s[0] < whole.attention_s[0] / 4
    assert packed.matrix_s[0] == whole.matrix_s[0]
    alone = time_of(ONE, document_tokens=1e9)
    assert alone.attention_s[0] == whole.attention_s[0], "none is longer than its sequence"


def test_a_vocabulary_that_is_not_split_costs_every_rank_all_logits():
    split, whole = (
        time_of(Layout(gpus=8, tensor=8, global_batch=1), vocabulary_split=one, values=IDEAL).logits_s[0]
        for one in (True, False)
    )
    assert whole == pytest.approx(8 * split, rel=0.05)


def test_a_mixture_exchanges_tokens_only_when_experts_are_spread():
    alone, spread = time_of(
        [Layout(gpus=8, data=8, expert=e, sharding=1, micro_batch=1, global_batch=8) for e in (1, 8)], model=MIXTRAL
    ).expert_s
    assert alone == 0
    assert spread > 0


LAYOUTS = st.sampled_from(
    [
        Layout(gpus=8, data=8, sharding=3, micro_batch=2, global_batch=32),
        Layout(gpus=64, tensor=8, data=8, sharding=1, global_batch=64),
        Layout(gpus=64, tensor=2, pipeline=4, data=8, sharding=1, global_batch=64, virtual_stages=2),
        Layout(gpus=64, tensor=2, context=4, data=8, sharding=1, global_batch=64, recompute="full"),
        Layout(gpus=16, expert=8, data=16, sharding=1, global_batch=32),
    ]
)


@given(LAYOUTS, st.floats(1.0, 8.0), st.sampled_from(["scaleup_gb_per_s", "scaleout_gb_per_s", "hbm_gb_per_s"]))
@settings(max_examples=60, deadline=None)
def test_faster_hardware_is_never_slower(layout, factor, name):
    case = make_case(layout, model=MIXTRAL)
    faster = changed(case, "hardware", **{name: getattr(case.hardware, name) * factor})
    assert training.step(faster).total_s[0] <= training.step(case).total_s[0] * (1 + 1e-12)


@given(LAYOUTS, st.floats(1.0, 4.0))
@settings(max_examples=30, deadline=None)
def test_a_higher_peak_is_never_slower(layout, factor):
    case = make_case(layout)
    h = case.hardware
    faster = changed(case, "hardware", peaks_tflops=h.peaks_tflops * factor, half_tflops=h.half_tflops * factor)
    assert training.step(faster).total_s[0] <= training.step(case).total_s[0] * (1 + 1e-12)


@given(st.integers(1, 6))
@settings(deadline=None)
def test_longer_steps_for_larger_batches(power):
    small, large = (
        time_of(Layout(gpus=8, data=8, sharding=1, micro_batch=1, global_batch=8 * 2**k)).total_s[0]
        for k in (power - 1, power)
    )
    assert large > small


def test_a_row_does_not_depend_on_its_neighbours():
    layouts = [Layout(gpus=8 * 2**k, data=8 * 2**k, sharding=k % 4, global_batch=1024) for k in range(6)]
    together = training.step(make_case(layouts))
    for row, layout in enumerate(layouts):
        alone = training.step(make_case(layout))
        for name in column_names(alone):
            assert getattr(alone, name)[0] == getattr(together, name)[row], (name, row)


def test_shared_parts_may_have_length_one():
    layouts = [Layout(gpus=8, data=8, sharding=s, global_batch=64) for s in (0, 1, 3)]
    case = make_case(layouts, model=MIXTRAL)
    shared = replace(case, shape=case.shape.take([0]), hardware=case.hardware.take([0]), recipe=case.recipe.take([0]))
    assert training.step(shared).total_s.tolist() == training.step(case).total_s.tolist()


def test_stragglers_grow_with_the_nodes():
    few, many = (
        time_of(Layout(gpus=g, tensor=8, pipeline=16, data=g // 128, sharding=1, global_batch=2048), model=LLAMA_405B)
        for g in (1024, 16384)
    )
    assert many.straggler_s[0] / many.total_s[0] > few.straggler_s[0] / few.total_s[0] > 0


def test_a_network_between_gpus_without_links_is_the_host_bus():
    card = replace(H100, scaleup_gb_per_s=0.0, scaleup_gpus=1)
    node = replace(NODE, scaleup_gb_per_s=0.0, scaleup_gpus=1)
    layout = Layout(gpus=8, tensor=8, global_batch=8)
    assert time_of(layout, chip=card, node=node).tensor_s[0] > 5 * time_of(layout).tensor_s[0]


@pytest.mark.parametrize(("recompute", "exchanges"), [("none", 4), ("full", 6)])
def test_frozen_layers_expose_the_reduction_of_their_inputs_gradients(recompute, exchanges):
    layout = Layout(gpus=8, tensor=8, global_batch=8, recompute=recompute)
    full, lora = (time_of(layout, method=method, software="vendor").tensor_s[0] for method in ("full", "lora"))
    hidden = 1 - DEFAULTS["tensor_exposed.modern"]
    assert lora / full == pytest.approx(1 + hidden / (exchanges * (1 - hidden)))


def test_unpacking_reads_the_bytes_that_memory_counts():
    plain, packed = (make_case(Layout(gpus=1), method=method) for method in ("lora", "qlora"))
    rate, tokens = rates(plain), np.array([8192.0])
    moved_gb = (layer_adapter_s(packed, rate, tokens) - layer_adapter_s(plain, rate, tokens)) * rate.bytes_per_s / GB
    weights = 2 * 4096 * (4096 + 1024) + 3 * 4096 * 14336  # of a layer: query and output, key and value, feed-forward
    assert moved_gb == pytest.approx(weights * (FROZEN_BYTES["qlora"] + 4) * 2 / GB)


ONE = Layout(gpus=1, micro_batch=4, global_batch=4)


def test_products_follow_the_power_limit_within_a_family_and_traffic_does_not():
    # 500 of 700 W on as many multiprocessors: the rate of products falls by (5/7)^(1/3) = 0.894
    chips = [replace(H100, memory_type="HBM3", tdp_w=watts) for watts in (700.0, 500.0)]
    full, capped = (time_of(ONE, chip=chip, values=IDEAL | {"matrix_width": 1e-9}) for chip in chips)
    assert full.matrix_s[0] / capped.matrix_s[0] == pytest.approx((5 / 7) ** (1 / 3), rel=0.001)
    assert full.attention_s[0] / capped.attention_s[0] == pytest.approx((5 / 7) ** (1 / 3), rel=1e-9)
    assert full.optimizer_s[0] == capped.optimizer_s[0]


def test_cards_and_chips_of_unknown_power_run_as_their_family_does():
    card = replace(H100, memory_type="GDDR7", tdp_w=2000.0)
    assert time_of(ONE, chip=card).total_s[0] == time_of(ONE, chip=H100).total_s[0]


def test_selective_recomputation_repeats_a_third_of_the_products_where_the_policy_goes_by_operation():
    def repeated(software):
        none, some = (
            time_of(replace(ONE, recompute=name), software=software).matrix_s[0] for name in ("none", "selective")
        )
        return some / none

    assert repeated("sharded") == pytest.approx((3 + 0.33) / 3)
    assert repeated("vendor") == 1.0


def test_experts_wait_for_the_host_and_were_slower_in_older_stacks():
    layout = Layout(gpus=8, data=8, expert=8, micro_batch=1, global_batch=8, sharding=1)
    small = {"model": MIXTRAL, "sequence": 512.0}
    waits = time_of(layout, **small).host_s[0]
    assert waits > time_of(layout, **small, software="compiler").host_s[0]
    years = [time_of(layout, model=MIXTRAL, year=year).matrix_s[0] for year in (2024.0, 2025.0, 2026.0, 2027.0)]
    assert years == sorted(years, reverse=True)


def test_state_space_layers_scan_as_long_as_attention_over_2048_keys():
    # arXiv:2405.21060, section 9.3: a scan meets fused attention at 2,048 tokens, so that it grows with them, not s².
    hybrid = replace(LLAMA_8B, linear_layers=24)
    plain, short, long = (
        time_of(Layout(gpus=1, micro_batch=1, global_batch=1), model=model, sequence=sequence).attention_s[0] / sequence
        for model, sequence in ((LLAMA_8B, 65536.0), (hybrid, 65536.0), (hybrid, 131072.0))
    )
    assert short < plain / 2
    assert long < 1.9 * short
    eight = layer_scan_s(make_case(Layout(gpus=1), model=hybrid), rates(make_case(Layout(gpus=1))), np.full(1, 1e4))
    sixteen = layer_scan_s(make_case(Layout(gpus=1), model=hybrid), rates(make_case(Layout(gpus=1))), np.full(1, 2e4))
    assert sixteen == pytest.approx(2 * eight)
    assert layer_scan_s(make_case(Layout(gpus=1)), rates(make_case(Layout(gpus=1))), np.full(1, 1e4))[0] == 0


def test_experts_exchange_beside_other_micro_batches_of_a_pipeline():
    layouts = [Layout(gpus=64, pipeline=p, data=64 // p, expert=8, micro_batch=1, global_batch=512) for p in (1, 2)]
    alone, beside = time_of(layouts, model=MIXTRAL).expert_s / [8, 8]  # as many layers and tokens per accelerator
    assert beside / alone == pytest.approx(DEFAULTS["alltoall_pipelined"] / DEFAULTS["alltoall_exposed"])


def test_an_unknown_stack_of_early_years_is_one_of_those_years():
    layout = Layout(gpus=8, data=8, micro_batch=1, global_batch=8)
    late, early, old = (
        time_of(layout, software=name, year=year).total_s[0]
        for name, year in (("unknown", 2025.0), ("unknown", 2022.5), ("deepspeed", 2022.5))
    )
    assert late < early < old


def test_cards_without_a_link_exchange_over_pcie_partly_through_the_host():
    node = replace(NODE, scaleup_gb_per_s=None)
    layout = Layout(gpus=8, tensor=8, micro_batch=1, global_batch=8)
    slow, fast = (
        time_of(layout, node=node, values=DEFAULTS | {"pcie_fraction": share}).tensor_s[0] for share in (0.4, 0.8)
    )
    assert slow > 1.8 * fast
    assert time_of(layout, values=DEFAULTS | {"pcie_fraction": 0.1}).tensor_s[0] == time_of(layout).tensor_s[0]


def test_a_second_issue_of_a_chip_is_faster_than_its_peak_says():
    first, second = (replace(H100, family="blackwell", fp4_tflops=ratio * 989.4) for ratio in (4, 6))
    layout = Layout(gpus=1, micro_batch=1, global_batch=1)
    slow, fast = (time_of(layout, chip=chip).matrix_s[0] for chip in (first, second))
    assert slow / fast == pytest.approx(DEFAULTS["ultra_ratio"], rel=0.02)


def test_general_stacks_lag_on_new_chips_and_on_those_few_of_them_are_tuned_for():
    layout = Layout(gpus=1, micro_batch=1, global_batch=1)
    chips = {name: replace(H100, family=name, year=2023) for name in ("hopper", "cdna3")}
    plain, tuned = (
        [time_of(layout, chip=chip, software=name, year=2025.9).attention_s[0] for chip in chips.values()]
        for name in ("sharded", "vendor")
    )
    assert plain[1] > 2 * plain[0]  # attention kernels written for the chip come later
    assert tuned[1] == pytest.approx(tuned[0])


def test_a_ring_attends_to_the_keys_of_one_rank_at_a_time_and_adds_up_its_steps():
    """8,192 tokens over 8 ranks, by hand: blocks of 1,024 keys, and 7 further steps that add 4,096 values a token."""
    alone, ring = Layout(gpus=1), Layout(gpus=8, context=8)
    once, shared = (layer_attention_s(case, rates(case), np.full(1, 8192.0 / case.layout.context))
                    for case in (make_case(layout) for layout in (alone, ring)))  # fmt: skip
    half = DEFAULTS["flash_tokens"]
    slower = (8192 / (8192 + half)) / (1024 / (1024 + half))
    merged = 7 * 1024 * 4096 * MERGED_BYTES / rates(make_case(ring)).bytes_per_s
    assert shared == pytest.approx(once / 8 * slower + merged)


def test_windows_with_learned_sinks_move_whole_squares_of_scores_unless_the_software_is_said_to_fuse_them():
    """18 of 36 layers of 64 heads over 4,096 keys, by hand: three passes of products, and the scores' traffic."""
    oss = Architecture(
        "gpt-oss-120b", "gpt-oss", 36, 2880, 64, 8, 64, 0, True, 201088, False, experts=128, experts_per_token=4,
        expert_ffn_hidden=2880, window_tokens=128, window_layers=18,
    )  # fmt: skip
    early, late, other = (
        make_case(Layout(gpus=1), model=model, sequence=4096.0, year=year)
        for model, year in ((oss, 2026.3), (oss, 2026.6), (replace(oss, family="another"), 2026.3))
    )

    def said(code):
        software, year = software_codes(["vendor"]), np.full(1, 2026.3)
        return replace(early, efficiency=resolve(DEFAULTS, early.hardware, software, year, sinks=np.array([code])))

    unsaid, fused = said(UNSAID), said(FUSED)
    tokens, rate = np.full(1, 4096.0), rates(early)
    pairs = 0.5 * 64 * 4096.0 * 4096
    by_hand = 12 * 64 * pairs / rate.half_flop_per_s + 2 * DEFAULTS["softmax_passes"] * pairs / rate.bytes_per_s
    assert layer_sinks_s(early, rate, tokens) == layer_sinks_s(unsaid, rate, tokens) == pytest.approx(by_hand)
    assert layer_sinks_s(late, rate, tokens) == layer_sinks_s(early, rate, tokens), "no date tells"
    assert layer_sinks_s(fused, rate, tokens) == layer_sinks_s(other, rate, tokens) == 0
    assert training.micro_step(early).attention_s > 3 * training.micro_step(other).attention_s


@pytest.mark.parametrize("flash", [True, False])
def test_heads_that_matrix_units_cannot_read_multiply_their_scores_without_them(flash):
    # The prequel of BLOOM's chronicles: 78 layers of 13,824 took 1.30 times as long with 128 heads as with 96.
    a100 = replace(H100, family="ampere", year=2020, bf16_tflops=312.0, fp16_tflops=312.0, fp32_tflops=19.5)
    layout = Layout(gpus=384, tensor=8, pipeline=6, data=8, micro_batch=4, global_batch=2048, recompute="full")

    def total_s(heads):
        model = replace(
            GPT3, layers=78, hidden=13824, heads=heads, kv_heads=heads, ffn_hidden=55296, head_dim=13824 // heads
        )
        case = make_case(layout, model=model, chip=a100, sequence=2048.0, software="deepspeed", year=2022.0)
        return training.step(changed(case, "layout", flash=np.array([flash]))).total_s[0]

    ratio = total_s(128) / total_s(96)
    assert ratio == pytest.approx(1.02, abs=0.02) if flash else ratio == pytest.approx(1.30, abs=0.03)
