"""Configurations in the Hugging Face format against the parameter counts of the published weight files."""

import json
from pathlib import Path

import pytest

from gpucost.architectures.reader import read_config
from gpucost.errors import DataError, UsageError
from gpucost.physics.transformer import active_parameters, stack, total_parameters
from tests.rules import for_each

# name -> the shape of a published configuration, and the parameters that transformers builds from it or, where it
# cannot, those of the weight files or a stated round figure; benchmarks/architectures.py rebuilds the counts
PUBLISHED = json.loads((Path(__file__).parent / "published.json").read_text("utf-8"))
CONFIG = {name: entry["config"] for name, entry in PUBLISHED.items()}
LLAMA = CONFIG["llama-3.1-8b"]


def read(tmp_path, config, name="model"):
    path = tmp_path / name
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    return read_config(path)


@for_each("name", PUBLISHED)
def test_the_recount_equals_the_published_weights(tmp_path, name):
    entry = PUBLISHED[name]
    counted = total_parameters(stack([read(tmp_path, entry["config"])]))[0]
    assert counted == pytest.approx(entry["parameters"], rel=max(entry["tolerance"], 1e-9), abs=0.5)


def test_active_parameters_of_a_mixture_follow_from_the_experts_visited(tmp_path):
    found = read(tmp_path, CONFIG["mixtral-8x7b"])
    assert active_parameters(stack([found]))[0] == 12_879_925_248  # Mistral AI: "12.9B active parameters"
    assert (found.experts, found.experts_per_token, found.expert_ffn_hidden, found.ffn_hidden) == (8, 2, 14336, 0)


def test_sliding_windows_are_counted_by_layer(tmp_path):
    gemma2, gemma3 = (read(tmp_path, CONFIG[name]) for name in ("gemma-2-9b", "gemma-3-27b"))
    assert (gemma2.window_tokens, gemma2.window_layers) == (4096, 21)
    assert (gemma3.window_tokens, gemma3.window_layers) == (1024, 52)  # 5 local layers to each global one, 62 layers
    listed = {**LLAMA, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 16}
    assert (read(tmp_path, listed).window_layers, read(tmp_path, listed).window_tokens) == (16, 128)
    assert read(tmp_path, CONFIG["qwen2.5-7b"]).window_layers == 0  # names a window, and does not use it


def test_hybrids_keep_their_linear_layers_apart(tmp_path):
    assert read(tmp_path, CONFIG["qwen3-next-80b-a3b"]).linear_layers == 36
    jamba = {**LLAMA, "model_type": "jamba", "attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16}
    assert read(tmp_path, jamba).linear_layers == 28
    with pytest.raises(DataError, match="no key"):
        read(tmp_path, {**LLAMA, "layer_types": ["linear_attention"] * 24 + ["full_attention"] * 8})


def test_latent_attention_and_multi_token_prediction(tmp_path):
    config = {**CONFIG["deepseek-v2-lite"], "num_nextn_predict_layers": 1}
    found = read(tmp_path, config)
    assert (found.attention, found.kv_lora_rank, found.q_lora_rank, found.mtp_layers) == ("mla", 512, 0, 1)
    assert (found.first_dense_layers, found.shared_experts, found.shared_ffn_hidden) == (1, 2, 1408)


def test_a_file_is_named_after_itself_its_folder_or_its_own_word(tmp_path):
    assert read(tmp_path, LLAMA, "my-llama").name == "my-llama"
    file = tmp_path / "meta-llama--Llama-3.1-8B.config.json"
    file.write_text(json.dumps(LLAMA), "utf-8-sig")
    assert read_config(file).name == "Llama-3.1-8B"


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        # as published: the nested part says only what differs from the defaults of its class
        (
            {
                "model_type": "gemma3",
                "text_config": {
                    "model_type": "gemma3_text",
                    "hidden_size": 2560,
                    "intermediate_size": 10240,
                    "num_hidden_layers": 34,
                    "sliding_window": 1024,
                },
            },
            4_300_079_472 - 416_866_032 - (1152 * 2560 + 1152),  # Gemma 3 4B less its vision tower and projector
        ),
        (
            {
                "model_type": "llava",
                "text_config": {"model_type": "llama", "vocab_size": 32064, "max_position_embeddings": 4096},
            },
            6_738_415_616 + 2 * 64 * 4096,  # Vicuna 7B's weights, and 64 further rows of both embeddings
        ),
    ],
)
def test_what_a_wrapped_configuration_leaves_unsaid_is_the_default_of_its_class(tmp_path, config, parameters):
    assert total_parameters(stack([read(tmp_path, config)]))[0] == pytest.approx(parameters, rel=1e-9)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"model_type": "llama"}, "num_hidden_layers"),
        ({**LLAMA, "hidden_size": "4096"}, "whole number"),
        ({**LLAMA, "num_attention_heads": 0}, "num_attention_heads"),
        ({**LLAMA, "num_key_value_heads": 5}, "share"),
        ({**LLAMA, "num_local_experts": 8, "num_experts_per_tok": 9}, "9 experts"),
        ({"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24, "vocab_size": 50280}, "no attention"),
        ({"model_type": "t5", "d_model": 512}, "decoder-only"),
        ({**LLAMA, "kv_lora_rank": 512}, "qk_nope_head_dim"),
        ({**LLAMA, "block_configs": [{"ffn": {}}]}, "1 layers"),
        ({**LLAMA, "layer_types": ["full_attention"] * 3}, "3 layers"),
        ([1, 2], "JSON object"),
    ],
)
def test_a_config_that_cannot_be_is_refused_with_the_reason(tmp_path, config, reason):
    with pytest.raises(DataError, match=reason):
        read(tmp_path, config)


def test_files_that_are_no_configuration_are_refused(tmp_path):
    for data in (b"", b"{", b"\xff\xfe{}", b"not json"):
        (tmp_path / "config.json").write_bytes(data)
        with pytest.raises(DataError, match=r"config\.json"):
            read_config(tmp_path / "config.json")
    with pytest.raises(UsageError, match="cannot read"):
        read_config(tmp_path / "missing.json")


def test_layers_with_keys_of_their_own_are_read_with_those(tmp_path):
    plain = total_parameters(stack([read(tmp_path, LLAMA)]))[0]
    own = {"3": {"intermediate_size": 4096, "num_key_value_heads": 2}, "5": {"skip": ["mlp"]}}
    found = read(tmp_path, {**LLAMA, "per_layer_config": own})
    narrower = 3 * 4096 * (14336 - 4096) + 2 * 4096 * 128 * (8 - 2)
    skipped = 3 * 4096 * 14336 + 4096
    assert total_parameters(stack([found]))[0] == plain - narrower - skipped
    assert not found.warnings
    for wrong in ({"40": {"intermediate_size": 1}}, {"x": {}}, {"1": 7}):
        with pytest.raises(DataError, match="per_layer_config"):
            read(tmp_path, {**LLAMA, "per_layer_config": wrong})


def test_tables_of_token_n_grams_are_counted(tmp_path):
    config = {**CONFIG["longcat-flash"], "ngram_vocab_size_ratio": 78, "emb_neighbor_num": 4, "emb_split_num": 4}
    plain = total_parameters(stack([read(tmp_path, CONFIG["longcat-flash"])]))[0]
    tables = (78 * 131_072 + 12) * 6144 + 6144 * 6144  # twelve tables, and a projection of each to the stream
    assert total_parameters(stack([read(tmp_path, config)]))[0] == plain + tables
