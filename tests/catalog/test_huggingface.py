"""Configurations in the Hugging Face format against the parameter counts of the published weight files."""

import json

import pytest

from gpucost.catalog.huggingface import read_config
from gpucost.errors import DataError
from gpucost.physics.transformer import active_parameters, stack, total_parameters

LLAMA = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False, "max_position_embeddings": 131072, "hidden_act": "silu",
}  # fmt: skip
GEMMA3 = {
    "model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27},
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 5376, "intermediate_size": 21504, "num_hidden_layers": 62, "num_attention_heads": 32,
        "num_key_value_heads": 16, "head_dim": 128, "vocab_size": 262208, "sliding_window": 1024, "hidden_activation": "gelu_pytorch_tanh",
    },
}  # fmt: skip
# name -> (configuration as published, parameters in the published weight files, relative tolerance)
PUBLISHED = {
    "llama-3.1-8b": (LLAMA, 8_030_261_248, 0),
    "gpt2": ({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257, "n_positions": 1024, "n_ctx": 1024, "activation_function": "gelu_new"}, 124_439_808, 0),
    "gpt-neox-20b": ({"model_type": "gpt_neox", "hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64, "intermediate_size": 24576, "vocab_size": 50432, "max_position_embeddings": 2048, "hidden_act": "gelu_fast", "tie_word_embeddings": False}, 20_554_567_680, 0),
    "gpt-j-6b": ({"model_type": "gptj", "n_layer": 28, "n_embd": 4096, "n_head": 16, "n_inner": None, "n_positions": 2048, "vocab_size": 50400, "tie_word_embeddings": False, "activation_function": "gelu_new"}, 6_050_882_784, 0),
    "falcon-7b": ({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71, "multi_query": True, "parallel_attn": True, "bias": False, "new_decoder_architecture": False, "vocab_size": 65024}, 6_921_720_704, 0),
    "falcon-40b": ({"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128, "num_kv_heads": 8, "bias": False, "new_decoder_architecture": True, "parallel_attn": True, "vocab_size": 65024}, 41_303_293_952, 0),
    "opt-6.7b": ({"model_type": "opt", "hidden_size": 4096, "ffn_dim": 16384, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 50272, "max_position_embeddings": 2048, "activation_function": "relu"}, 6_658_473_984, 0),
    "bloom-7b1": ({"model_type": "bloom", "n_embd": 4096, "n_layer": 30, "n_head": 32, "vocab_size": 250880}, 7_069_016_064, 0),
    "mpt-7b": ({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "expansion_ratio": 4, "vocab_size": 50432, "max_seq_len": 2048, "no_bias": True}, 6_649_286_656, 0),
    "phi-2": ({"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 51200, "tie_word_embeddings": False}, 2_779_683_840, 0),
    "mistral-7b": ({**LLAMA, "model_type": "mistral", "vocab_size": 32000, "sliding_window": 4096}, 7_241_732_096, 0),
    "mixtral-8x7b": ({**LLAMA, "model_type": "mixtral", "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": None}, 46_702_792_704, 0),
    "qwen2.5-0.5b": ({"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True, "use_sliding_window": False, "sliding_window": 32768, "max_window_layers": 24}, 494_032_768, 0),
    "qwen2.5-7b": ({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": False, "use_sliding_window": False, "sliding_window": 131072, "max_window_layers": 28}, 7_615_616_512, 0),
    "qwen3-30b-a3b": ({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 151936, "tie_word_embeddings": False}, 30_532_122_624, 0),
    "gemma-2-9b": ({"model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "vocab_size": 256000, "sliding_window": 4096, "hidden_activation": "gelu_pytorch_tanh"}, 9_241_705_984, 0),
    "gemma-3-27b": (GEMMA3, 27_009_346_304, 1e-4),  # the text part: 27.43 B less the vision tower of 0.42 B
    "olmo-2-7b": ({"model_type": "olmo2", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 100352, "tie_word_embeddings": False}, 7_298_617_344, 0),
    "deepseek-v2-lite": ({"model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 102400, "tie_word_embeddings": False}, 15_706_484_224, 0),
    "dbrx": ({"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "max_seq_len": 32768, "vocab_size": 100352, "tie_word_embeddings": False, "attn_config": {"kv_n_heads": 8, "clip_qkv": 8}, "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}}, 131_596_523_520, 0),
    "command-r-plus": ({"model_type": "cohere", "hidden_size": 12288, "intermediate_size": 33792, "num_hidden_layers": 64, "num_attention_heads": 96, "num_key_value_heads": 8, "vocab_size": 256000, "use_qk_norm": True}, 103_810_674_688, 0),
    "llama-4-scout": ({"model_type": "llama4", "text_config": {"model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 16, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "attention_chunk_size": 8192, "vocab_size": 202048, "tie_word_embeddings": False}}, 107_769_861_120, 0),
    "phi-3.5-moe": ({"model_type": "phimoe", "hidden_size": 4096, "intermediate_size": 6400, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 16, "num_experts_per_tok": 2, "vocab_size": 32064, "attention_bias": True, "lm_head_bias": True, "tie_word_embeddings": False, "rms_norm_eps": 1e-5}, 41_873_153_344, 1e-4),
    "qwen3-next-80b-a3b": ({"model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 5120, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts": 512, "num_experts_per_tok": 10, "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 151936, "tie_word_embeddings": False, "full_attention_interval": 4, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "attn_output_gate": True}, 80_000_000_000, 0.01),  # as stated by its publisher
}  # fmt: skip


def read(tmp_path, config, name="model"):
    path = tmp_path / name
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    return read_config(path)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_recount_equals_the_published_weights(tmp_path, name):
    config, parameters, tolerance = PUBLISHED[name]
    assert total_parameters(stack([read(tmp_path, config)]))[0] == pytest.approx(parameters, rel=tolerance, abs=0.5)


def test_active_parameters_of_a_mixture_follow_from_the_experts_visited(tmp_path):
    found = read(tmp_path, PUBLISHED["mixtral-8x7b"][0])
    assert active_parameters(stack([found]))[0] == 12_879_925_248  # Mistral AI: "12.9B active parameters"
    assert (found.experts, found.experts_per_token, found.expert_ffn_hidden, found.ffn_hidden) == (8, 2, 14336, 0)


def test_sliding_windows_are_counted_by_layer(tmp_path):
    gemma2, gemma3 = (read(tmp_path, PUBLISHED[name][0]) for name in ("gemma-2-9b", "gemma-3-27b"))
    assert (gemma2.window_tokens, gemma2.window_layers) == (4096, 21)
    assert (gemma3.window_tokens, gemma3.window_layers) == (1024, 52)  # 5 local layers to each global one, 62 layers
    listed = {**LLAMA, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 16}
    assert (read(tmp_path, listed).window_layers, read(tmp_path, listed).window_tokens) == (16, 128)
    assert read(tmp_path, PUBLISHED["qwen2.5-7b"][0]).window_layers == 0  # names a window, and does not use it


def test_hybrids_keep_their_linear_layers_apart(tmp_path):
    assert read(tmp_path, PUBLISHED["qwen3-next-80b-a3b"][0]).linear_layers == 36
    assert read(tmp_path, {**LLAMA, "layer_types": ["linear_attention"] * 24 + ["full_attention"] * 8}).linear_layers == 24
    assert read(tmp_path, {**LLAMA, "attn_layer_period": 8, "attn_layer_offset": 4}).linear_layers == 28


def test_latent_attention_and_multi_token_prediction(tmp_path):
    config = {**PUBLISHED["deepseek-v2-lite"][0], "num_nextn_predict_layers": 1}
    found = read(tmp_path, config)
    assert (found.attention, found.kv_lora_rank, found.q_lora_rank, found.mtp_layers) == ("mla", 512, 0, 1)
    assert (found.first_dense_layers, found.shared_experts, found.shared_ffn_hidden) == (1, 2, 1408)


def test_a_file_is_named_after_itself_its_folder_or_its_own_word(tmp_path):
    assert read(tmp_path, LLAMA, "my-llama").name == "my-llama"
    file = tmp_path / "meta-llama--Llama-3.1-8B.config.json"
    file.write_text(json.dumps(LLAMA), "utf-8-sig")
    assert read_config(file).name == "Llama-3.1-8B"


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"model_type": "llama"}, "num_hidden_layers"),
        ({**LLAMA, "hidden_size": "4096"}, "whole number"),
        ({**LLAMA, "num_attention_heads": 0}, "num_attention_heads"),
        ({**LLAMA, "num_key_value_heads": 5}, "share"),
        ({**LLAMA, "num_local_experts": 8, "num_experts_per_tok": 9}, "experts per token"),
        ({"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24, "vocab_size": 50280}, "no attention"),
        ({"model_type": "t5", "d_model": 512}, "decoder-only"),
        ({**LLAMA, "kv_lora_rank": 512}, "qk_nope_head_dim"),
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
    with pytest.raises(DataError, match="cannot be read"):
        read_config(tmp_path / "missing.json")
