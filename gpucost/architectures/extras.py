"""Parameters of a configuration that an architecture's dimensions do not count: small norms, biases, gates, mixers.

The count of `physics.transformer` holds matrices, biases of the older style, two norms a layer and a final one, the
norms of latent attention and the router. What a family has beyond that, or lacks, is added here; it may be negative.
"""

from collections.abc import Mapping
from typing import Any

from gpucost.architectures.mixers import mixer_parameters
from gpucost.types import Architecture

Config = Mapping[str, Any]

_HEAD_NORMS = (
    "qwen3",
    "gemma3",
    "apertus",
    "smollm3_qk",
    "glm4_moe_qk",
    "exaone4",
    "hunyuan_v1",
    "bailing_moe_v2",
    "ernie_qk",
    "lfm2",
)
_WIDE_NORMS = ("olmo2", "olmo3", "olmoe", "minimax_m2")  # norms over all heads together
_SANDWICHED = ("gemma2", "gemma3", "glm4", "gemma3n")  # four norms a layer
_ONE_NORM = ("gptj", "phi", "cohere", "codegen", "mpt_parallel")  # attention and feed-forward share one
_CORRECTED = (
    "deepseek_v3",
    "deepseek_v32",
    "kimi_k2",
    "glm4_moe",
    "glm_moe_dsa",
    "minimax_m2",
    "bailing_moe_v2",
    "dots1",
    "ernie4_5_moe",
    "longcat",
    "mimo_v2",
)


def extra_parameters(made: Architecture, text: Config, kind: str) -> int:
    """Return the parameters beyond those that the dimensions explain."""
    return (
        _query_key_norms(made, text, kind)
        + _layer_norms(made, text, kind)
        + _biases(made, text, kind)
        + _expert_extras(made, text, kind)
        + _attention_extras(made, text, kind)
        + mixer_parameters(made, text, kind)
        + _layer_embeddings(made, text)
    )


def moe_layers(made: Architecture) -> int:
    """Return the layers that are a mixture of experts."""
    return (made.layers - made.first_dense_layers) // made.moe_layer_step if made.experts else 0


def _is(kind: str, families: tuple[str, ...]) -> bool:
    return any(kind == family or kind.startswith(family + "_") for family in families)


def _query_key_norms(made: Architecture, text: Config, kind: str) -> int:
    attending = made.layers - made.linear_layers
    if _is(kind, _WIDE_NORMS) or text.get("qk_norm_type") == "per_layer":
        return attending * (made.heads + made.kv_heads) * made.head_dim
    if kind.startswith("cohere"):
        return attending * (made.heads + made.kv_heads) * made.head_dim if text.get("use_qk_norm") else 0
    if kind.startswith("stablelm") and text.get("qk_layernorm"):
        return attending * (made.heads + made.kv_heads) * made.head_dim
    normed = _is(kind, _HEAD_NORMS) or text.get("use_qk_norm") or text.get("qk_norm") or text.get("qk_layernorm")
    if kind.startswith("llama4") or not normed or made.attention == "mla":  # Llama 4 normalises without weights
        return 0
    return attending * 2 * made.head_dim * (2 if made.norm == "ln" else 1)


def _layer_norms(made: Architecture, text: Config, kind: str) -> int:
    width = {"rms": 1, "ln": 2, "ln_w": 1, "ln_np": 0}[made.norm] * made.hidden
    if _is(kind, _SANDWICHED) and kind not in ("glm4_moe", "glm4_moe_lite"):
        return 2 * made.layers * width
    one = _is(kind, _ONE_NORM) or (kind in ("falcon", "refinedweb", "refinedwebmodel") and _shares_norm(text))
    further = 2 * made.hidden if kind in ("bloom", "bert", "roberta") else 0  # after the embeddings
    return further - (made.layers * width if one else 0) - (width if kind in ("bert", "roberta") else 0)


def _shares_norm(text: Config) -> bool:
    """Tell Falcon's small models, with one norm a layer, from the larger ones, with two."""
    return bool(text.get("parallel_attn", True)) and not text.get("new_decoder_architecture", False)


def _biases(made: Architecture, text: Config, kind: str) -> int:
    """Add biases beyond those of queries, keys and values, and of the older style with full layer norm."""
    if kind == "gptj" or kind == "codegen":  # feed-forward and output layer only
        return made.layers * (made.ffn_hidden + made.hidden) + made.vocab
    output = made.layers * made.hidden
    if made.norm == "ln":
        head = made.vocab if kind in ("phi", "phimoe") else 0
        if kind in ("gpt_neo",):  # output and feed-forward, no query, key and value
            return output + made.layers * (made.ffn_hidden + made.hidden)
        if kind in ("phimoe",) and made.experts:
            return head - 0
        return head - (0 if made.qkv_bias or not text.get("use_bias") else output)
    if text.get("attention_out_bias") or (
        text.get("attention_bias")
        and kind in ("llama", "mistral", "gpt_oss", "ernie4_5", "smollm3", "granite", "seed_oss", "deepseek")
    ):
        extra = output if text.get("attention_out_bias", True) else 0
        return extra + (made.layers * (2 * made.ffn_hidden + made.hidden) if text.get("mlp_bias") else 0)
    return made.layers * (2 * made.ffn_hidden + made.hidden) if text.get("mlp_bias") else 0


def _expert_extras(made: Architecture, text: Config, kind: str) -> int:
    layers = moe_layers(made)
    if not layers:
        return 0
    total = 0
    if _is(kind, _CORRECTED) or text.get("topk_method") == "noaux_tc" or text.get("use_routing_bias"):
        total += layers * made.experts  # a correction bias for each expert
    if kind.startswith(("qwen2_moe", "qwen3_next", "qwen3_5_moe")) and made.shared_experts:
        total += layers * made.hidden  # the gate of the shared expert
    if kind == "gpt_oss":
        total += layers * (made.experts + made.experts * (2 * made.expert_ffn_hidden + made.hidden))
    return total


def _attention_extras(made: Architecture, text: Config, kind: str) -> int:
    attending = made.layers - made.linear_layers
    total = 0
    if kind == "gpt_oss":
        total += made.layers * made.heads  # attention sinks
    if text.get("attn_output_gate"):
        total += attending * made.hidden * made.heads * made.head_dim
    if text.get("index_n_heads") and text.get("index_head_dim"):  # the indexer of sparse attention
        heads, width = int(text["index_n_heads"]), int(text["index_head_dim"])
        queries = (made.q_lora_rank or made.hidden) * heads * width
        total += made.layers * (queries + made.hidden * (width + heads) + 2 * width)
    return total


def _layer_embeddings(made: Architecture, text: Config) -> int:
    """Count embeddings that every layer looks up for itself, and the projection that feeds them (Gemma 3n)."""
    width = int(text.get("hidden_size_per_layer_input") or 0)
    if not width:
        return 0
    vocab = int(text.get("vocab_size_per_layer_input") or made.vocab)
    return made.layers * width * (vocab + made.hidden + 2 * made.hidden)
