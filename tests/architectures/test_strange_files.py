"""Files from anybody: a sentence that names what is wrong, in bounded time and memory, or a sane architecture."""

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpucost.architectures.config import class_defaults
from gpucost.architectures.families import families
from gpucost.architectures.reader import architecture_of, read_config
from gpucost.errors import DataError
from gpucost.physics.blocks import cache_values, sums_of
from gpucost.physics.transformer import active_parameters, stack, total_parameters

PLAIN = {
    "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000,
    "intermediate_size": 1024, "head_dim": 64,
}  # fmt: skip
LATENT = {"kv_lora_rank": 64, "q_lora_rank": 96, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32}
KEYS = [
    *PLAIN, *LATENT, "layer_types", "mlp_layer_types", "num_experts", "num_experts_per_tok", "moe_intermediate_size",
    "n_shared_experts", "first_k_dense_replace", "moe_layer_freq", "sliding_window", "sliding_window_pattern",
    "hybrid_override_pattern", "layers_block_type", "block_configs", "compress_ratios", "indexer_types", "index_topk",
    "index_n_heads", "index_head_dim", "linear_attn_config", "quantization_config", "vision_config", "text_config",
    "tie_word_embeddings", "attention_bias", "torch_dtype", "ffn_multipliers", "num_query_heads", "num_kv_heads",
    "per_layer_config", "hybrid_layer_pattern", "attn_type_list", "no_rope_layers", "moe_num_experts", "architectures",
    "full_attention_interval", "attn_layer_period", "mamba_d_state", "mamba_n_heads", "word_embed_proj_dim",
    "num_kv_shared_layers", "cross_attention_layers", "attention_types", "expansion_ratio", "attn_config", "model_type",
    "hidden_size_per_layer_input", "altup_num_inputs", "o_lora_rank", "o_groups", "hc_mult", "expert_dtype",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats() | st.text(max_size=8)
    | st.sampled_from(["4096", "full_attention", "linear_attention", "M*-E", "fp8", "lm_head", "re:((("]),
    lambda inner: st.lists(inner, max_size=5)
    | st.dictionaries(st.text(max_size=6) | st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from([*families(), "unheard_of", ""]),
    st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5),
    st.booleans(),
)
def test_any_value_under_any_key_is_read_or_refused_with_a_sentence(kind, strange, latent):
    config = {**PLAIN, **(LATENT if latent else {}), "model_type": kind, **strange}
    try:
        made = architecture_of(config, "strange")
        shape = stack([made])
        counted, active = float(total_parameters(shape)[0]), float(active_parameters(shape)[0])
    except DataError as error:
        reason = str(error)
    else:
        assert sane(made, counted, active)
        return
    assert 10 < len(reason) < 1000


def sane(made, counted, active):
    sums = all(value >= 0 or name == "other_weights" for name, value in sums_of(made)._asdict().items())
    return math.isfinite(counted) and math.isfinite(active) and sums and cache_values(made, 4096) >= 0


@pytest.mark.parametrize("depth", [2_000, 200_000])
def test_deep_nesting_is_refused(tmp_path, depth):
    (tmp_path / "config.json").write_text('{"a":' + "[" * depth + "]" * depth + "}")
    with pytest.raises(DataError, match=r"nested too deeply|has no"):
        read_config(tmp_path)


def test_a_file_too_large_to_be_a_configuration_is_not_read(tmp_path):
    with (tmp_path / "config.json").open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(DataError, match="larger than 8 MB"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("hidden_size", "512", "whole number"),
        ("num_hidden_layers", -4, "num_hidden_layers must be a whole number of zero or more"),
        ("num_hidden_layers", 10**9, "layers"),
        ("vocab_size", 1e300, "whole number"),
        ("num_attention_heads", 7.5, "whole number"),
        ("tie_word_embeddings", "yes", "tie_word_embeddings"),
        ("num_attention_heads", {"a": 1}, "whole number"),
    ],
)
def test_a_wrong_value_is_named(key, value, reason):
    with pytest.raises(DataError, match=reason):
        architecture_of({**PLAIN, "model_type": "llama", key: value}, "strange")


KINDS = {
    "attention_chunk_size": 128, "attn_layer_period": 2, "full_attention_interval": 2, "layer_group_size": 2,
    "sliding_window": 64, "sliding_window_pattern": 2, "sliding_attention": 0, "chunked_attention": 0,
    "linear_attention": 0, "skip": 0,
}  # fmt: skip


@pytest.mark.parametrize("key", KINDS)
def test_kinds_of_layers_that_a_family_does_not_know_are_refused_in_a_sentence(key):
    refused = 0
    for kind, known in class_defaults().items():
        words = {"layer_types": [key] * 4 + ["full_attention"] * 200}
        for value in (KINDS[key], 0):
            config = {"model_type": kind, **known, **({key: value} if KINDS[key] else words), "num_hidden_layers": 4}
            try:
                architecture_of(config, "strange")
            except DataError as error:
                refused += "is known with" in str(error) or "must be 1 or more" in str(error)
    assert refused or key in ("sliding_window_pattern", "sliding_attention")


def test_a_rhythm_of_layers_may_be_written_as_a_decimal():
    config = {**PLAIN, "model_type": "gemma3_text", "sliding_window": 64, "num_hidden_layers": 8}
    whole, decimal = (architecture_of({**config, "sliding_window_pattern": step}, "strange") for step in (4, 4.0))
    assert decimal.blocks == whole.blocks
    assert whole.window_layers == 6


def test_a_key_that_was_not_used_is_named_however_its_number_is_written():
    warned = [
        architecture_of({**PLAIN, "model_type": "llama", "conv_layers": value}, "strange").warnings
        for value in (3, 3.0, 0.5)
    ]
    assert "conv_layers" in warned[0][0]
    assert warned == [warned[0], warned[0], ()]


def test_a_long_list_of_modules_is_read_in_bounded_time(tmp_path):
    names = [f"model.layers.{i % 60}.mlp.experts.{i}.down_proj" for i in range(30_000)]
    config = {**PLAIN, "model_type": "llama", "quantization_config": {"quant_method": "fp8", "ignore": names}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_config(tmp_path).native_precision == "fp8"
