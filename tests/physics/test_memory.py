"""Training memory: hand-worked numbers, the papers' own tables, and properties that must always hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost.errors import UsageError
from gpucost.physics.columns import layout_columns
from gpucost.physics.training.memory import MemoryColumns, adapter_parameters, in_flight, training_memory, usable_bytes
from gpucost.physics.training.memory_activations import layer_bytes
from gpucost.physics.training.memory_recipe import OPTIMIZERS, STYLES, memory_recipe, optimizer_bytes
from gpucost.physics.transformer import stack, total_parameters
from gpucost.types import Architecture, Layout

LLAMA_8B = Architecture("llama-3-8b", "", 32, 4096, 32, 8, 128, 14336, True, 128256, False)
LLAMA_7B = Architecture("llama-2-7b", "", 32, 4096, 32, 32, 128, 11008, True, 32000, False)
# Table 3 of arXiv:2205.05198: 22B has 64 heads, hidden 6144, 48 layers, sequence 2048.
GPT_22B = Architecture("gpt-22b", "", 48, 6144, 64, 64, 96, 24576, False, 51200, True, attention="mha", norm="ln")
MIXTRAL = Architecture(
    "mixtral", "", 32, 4096, 32, 8, 128, 0, True, 32000, False, experts=8, experts_per_token=2, expert_ffn_hidden=14336
)


def memory(architecture: Architecture, layout: Layout, recipe=None, **switches) -> MemoryColumns:
    return training_memory(stack([architecture]), layout_columns([layout], **switches), recipe or memory_recipe(4096))


def total_gb(*arguments, **switches) -> float:
    return float(memory(*arguments, **switches).total_bytes[0]) / 1e9


def states_gb(found: MemoryColumns) -> float:
    return float((found.weights_bytes + found.gradients_bytes + found.optimizer_bytes)[0]) / 1e9


def sized(parameters: float) -> Architecture:
    """A model of exactly that many parameters."""
    counted = float(total_parameters(stack([LLAMA_7B]))[0])
    return Architecture(**{**as_fields(LLAMA_7B), "extra_parameters": int(parameters - counted)})


def as_fields(a: Architecture) -> dict:
    return {name: getattr(a, name) for name in a.__struct_fields__}


# Hand-worked and published numbers -------------------------------------------------------------------------------


def test_sixteen_bytes_per_parameter():
    assert states_gb(memory(sized(7e9), Layout(gpus=1))) == pytest.approx(112.0)


@pytest.mark.parametrize(("stage", "published_gb"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.88)])
def test_zero_stages_as_in_figure_1_of_the_paper(stage, published_gb):
    """arXiv:1910.02054, figure 1: 7.5 B parameters on 64 ranks with mixed-precision Adam."""
    layout = Layout(gpus=64, data=64, sharding=stage, global_batch=64)
    assert states_gb(memory(sized(7.5e9), layout)) == pytest.approx(published_gb, rel=0.005)


@pytest.mark.parametrize(
    ("sequence_parallel", "flash", "recompute", "published"),
    [
        # arXiv:2205.05198, table 2, per layer in units of s·b·h, with a = 64, s = 2048, h = 6144, t = 8
        (False, False, "none", 10 + 24 / 8 + 5 * 64 * 2048 / (6144 * 8)),
        (True, False, "none", 34 / 8 + 5 * 64 * 2048 / (6144 * 8)),
        (False, False, "selective", 10 + 24 / 8),
        (True, False, "selective", 34 / 8),
        (False, False, "full", 2.0),
    ],
)
def test_activations_as_in_table_2_of_korthikanti(sequence_parallel, flash, recompute, published):
    layout = Layout(gpus=8, tensor=8, micro_batch=4, recompute=recompute)
    columns = layout_columns([layout], flash=flash, sequence_parallel=sequence_parallel)
    found = layer_bytes(stack([GPT_22B]), columns, memory_recipe(2048, dropout=True))
    assert found.saved[0] / 6144 == pytest.approx(published)


def test_hybrid_sharding_holds_what_its_group_alone_would():
    """Eight nodes of eight with a copy in each: 16 bytes × 7.5 B ÷ 8 = 15 GB, as on one node."""
    many = Layout(gpus=64, data=64, sharding=3, global_batch=64)
    one = Layout(gpus=8, data=8, sharding=3, global_batch=8)
    hybrid = states_gb(memory(sized(7.5e9), many, shard_ranks=8.0))
    assert hybrid == pytest.approx(15.0) == states_gb(memory(sized(7.5e9), one))
    assert hybrid == pytest.approx(8 * states_gb(memory(sized(7.5e9), many)))


def test_the_first_stage_holds_as_many_micro_batches_as_there_are_stages():
    plain = layout_columns([Layout(gpus=8, pipeline=8, global_batch=64)])
    short = layout_columns([Layout(gpus=8, pipeline=8, global_batch=3)])
    interleaved = layout_columns([Layout(gpus=8, pipeline=8, global_batch=64, virtual_stages=3)])
    first, last = np.array([True]), np.array([False])
    assert in_flight(plain, first)[0] == 8
    assert in_flight(short, first)[0] == 3
    assert in_flight(plain, last)[0] == 1
    assert in_flight(interleaved, first)[0] == pytest.approx(8 * (1 + 7 / 24))  # arXiv:2205.05198, section 4.2.3


def test_logits_of_a_large_vocabulary_by_hand():
    """16,384 tokens × 151,936 words × 12 bytes are 29.9 GB: fp32 softmax, its gradient and a copy."""
    qwen = Architecture("qwen", "", 28, 1536, 12, 2, 128, 8960, True, 151936, False)
    recipe = memory_recipe(4096, style="eager", state_bytes_per_parameter=8)
    found = memory(qwen, Layout(gpus=1, micro_batch=4, recompute="full"), recipe)
    assert found.logits_bytes[0] / 1e9 == pytest.approx(29.87, abs=0.01)


def test_lora_trains_the_adapters_alone():
    found = memory(LLAMA_8B, Layout(gpus=1, recompute="full"), memory_recipe(1024, method="lora", style="library"))
    adapters = adapter_parameters(stack([LLAMA_8B]), 16)[0]
    assert adapters == 41_943_040
    assert found.optimizer_bytes[0] == 8 * adapters
    assert found.weights_bytes[0] == pytest.approx(2 * 8.030e9 + 4 * adapters, rel=1e-3)


def test_attention_adapters_keep_two_fp32_copies_per_layer():
    """Queries and values alone: 2 copies of 4 bytes of the hidden width, 5 + 1 + 1 of the widths where all carry."""
    shape, layout = stack([LLAMA_8B]), layout_columns([Layout(gpus=1)])
    few = layer_bytes(
        shape, layout, memory_recipe(1, method="lora", style="library", adapter_share=0.35, adapter_rank=8)
    )
    all_of_them = layer_bytes(shape, layout, memory_recipe(1, method="lora", style="library", adapter_rank=8))
    values = 4 * (5 * 4096 + 4096 + 14336) - 4 * 2 * 4096 + 4 * 8 * (7 - 2)
    assert all_of_them.saved[0] - few.saved[0] == values


@pytest.mark.parametrize(
    ("name", "bytes_per_parameter"), [("adamw", 16), ("adamw-8bit", 10), ("adamw-bf16", 8), ("sgd", 8)]
)
def test_optimizers_by_hand(name, bytes_per_parameter):
    kept = OPTIMIZERS[name]
    assert kept.weight_bytes + kept.gradient_bytes + kept.state_bytes == bytes_per_parameter
    found = memory(sized(1e10), Layout(gpus=1, recompute="full"), memory_recipe(128, optimizer=name))
    assert states_gb(found) == pytest.approx(10 * bytes_per_parameter)


def test_fp32_weights_are_their_own_master():
    assert optimizer_bytes("adamw", fp32_weights=True)[:3] == (4, 4, 8)
    assert optimizer_bytes("adamw", fp32_weights=True, state_bytes_per_parameter=12)[:3] == (4, 4, 4)


def test_experts_are_divided_by_the_expert_degree():
    """Mixtral 8x7B: 45.1 B of 46.7 B parameters are experts; 8 ways they leave 5.6 B."""
    whole = memory(MIXTRAL, Layout(gpus=8, data=8, global_batch=8)).weights_bytes[0] / 2e9
    split = memory(MIXTRAL, Layout(gpus=8, data=8, expert=8, global_batch=8)).weights_bytes[0] / 2e9
    assert whole == pytest.approx(46.7, abs=0.05)
    assert split == pytest.approx(46.7 - 45.1 + 45.1 / 8, abs=0.05)


def test_usable_memory_of_an_h100():
    """(79.65 GiB − 1.5 GB) ÷ 1.06 by hand: 85.52 − 1.5 = 84.02; ÷ 1.06 = 79.27 GB."""
    assert usable_bytes(np.array([79.65]))[0] / 1e9 == pytest.approx(79.27, abs=0.01)


# Structure -----------------------------------------------------------------------------------------------------------

layouts = st.builds(
    lambda tensor, pipeline, data, micro, sharding, recompute: Layout(
        gpus=tensor * pipeline * data, tensor=tensor, pipeline=pipeline, data=data, sharding=sharding,
        micro_batch=micro, recompute=recompute, global_batch=micro * data * pipeline * 4,
    ),
    st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 8, 64]),
    st.integers(1, 8), st.integers(0, 3), st.sampled_from(["none", "selective", "full"]),
)  # fmt: skip
recipes = st.builds(
    lambda sequence, style, method, chunk: memory_recipe(sequence, style=style, method=method, loss_chunk_tokens=chunk),
    st.sampled_from([512, 2048, 8192, 32768]), st.sampled_from(STYLES), st.sampled_from(["full", "lora", "qlora"]),
    st.sampled_from([0, 1024]),
)  # fmt: skip
models = st.sampled_from([LLAMA_8B, LLAMA_7B, GPT_22B, MIXTRAL])


def changed(layout: Layout, **changes) -> Layout:
    values = {name: getattr(layout, name) for name in layout.__struct_fields__} | changes
    values["gpus"] = values["tensor"] * values["pipeline"] * values["context"] * values["data"]
    values["global_batch"] = values["micro_batch"] * values["data"] * values["pipeline"] * 4
    return Layout(**values)


@settings(max_examples=60, deadline=None)
@given(models, layouts, recipes)
def test_the_components_sum_to_the_total_and_none_is_negative(model, layout, recipe):
    found = memory(model, layout, recipe)
    names = [name for name in MemoryColumns.names() if name.endswith("_bytes") and name != "total_bytes"]
    parts = [float(getattr(found, name)[0]) for name in names]
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(float(found.total_bytes[0]), rel=1e-12)


@settings(max_examples=80, deadline=None)
@given(models, layouts, recipes, st.sampled_from([2, 4]))
def test_memory_grows_with_the_batch_and_the_sequence(model, layout, recipe, factor):
    base = total_gb(model, layout, recipe)
    assert total_gb(model, changed(layout, micro_batch=layout.micro_batch * factor), recipe) >= base
    longer = memory_recipe(
        recipe.sequence_tokens * factor,
        style=STYLES[recipe.style[0]],
        method=("full", "lora", "qlora")[recipe.method[0]],
        loss_chunk_tokens=float(recipe.loss_chunk_tokens[0]),
    )
    assert total_gb(model, layout, longer) >= base


@settings(max_examples=80, deadline=None)
@given(models, layouts, recipes)
def test_memory_falls_with_each_parallel_degree(model, layout, recipe):
    base = total_gb(model, layout, recipe)
    assert total_gb(model, changed(layout, tensor=layout.tensor * 2), recipe) < base
    if layout.data > 1:  # the first all-reduce of all brings its buckets
        assert total_gb(model, changed(layout, context=2), recipe) < base
    if layout.sharding < 3 or layout.pipeline > 1:  # a stage of a first pipeline keeps what it gathered
        assert total_gb(model, changed(layout, pipeline=layout.pipeline * 2), recipe) < base
    if layout.data > 1 and layout.sharding >= 1:
        assert total_gb(model, changed(layout, data=layout.data * 2), recipe) < base


@settings(max_examples=60, deadline=None)
@given(models, layouts, recipes)
def test_sharding_and_offload_never_cost_memory(model, layout, recipe):
    stages = 4 if layout.data >= 8 and layout.pipeline == 1 else 3  # gathering a stage of few layers gains nothing
    by_stage = [total_gb(model, changed(layout, sharding=stage), recipe) for stage in range(stages)]
    assert by_stage == sorted(by_stage, reverse=True)
    style, method = STYLES[recipe.style[0]], ("full", "lora", "qlora")[recipe.method[0]]
    sequence = recipe.sequence_tokens
    moved = [
        total_gb(model, layout, memory_recipe(sequence, style=style, method=method, offload=o))
        for o in ("none", "states")
    ]
    assert moved[1] <= moved[0]


@settings(max_examples=40, deadline=None)
@given(models, layouts, recipes)
def test_recomputing_more_keeps_less(model, layout, recipe):
    kept = [
        float(layer_bytes(stack([model]), layout_columns([changed(layout, recompute=r)], flash=flash), recipe).saved[0])
        for flash in (True, False)
        for r in ("none", "selective", "full")
    ]
    assert kept[0] >= kept[1] >= kept[2]
    assert kept[3] >= kept[4] >= kept[5]
    assert kept[3] > kept[0]  # the scores without a fused kernel


def test_a_row_of_many_is_the_same_as_one_alone():
    plans = [
        Layout(gpus=8, tensor=t, pipeline=p, data=8 // (t * p), sharding=1, global_batch=32)
        for t in (1, 2)
        for p in (1, 2, 4)
    ]
    many = training_memory(stack([LLAMA_8B]), layout_columns(plans), memory_recipe(4096)).total_bytes
    alone = [training_memory(stack([LLAMA_8B]), layout_columns([p]), memory_recipe(4096)).total_bytes[0] for p in plans]
    assert many.tolist() == alone


def test_unknown_words_are_refused():
    for wrong in ({"optimizer": "adamax"}, {"style": "fast"}, {"method": "dpo"}, {"offload": "some"}):
        with pytest.raises(UsageError, match="unknown"):
            memory_recipe(1024, **wrong)
