"""Counting a transformer: parameters, FLOP and bytes per token, exactly, from its dimensions.

Every function takes a `Shape` (arrays, one element per case) and returns arrays. FLOP are counted per token and
for the forward pass unless a name says otherwise; a multiply-add is two. Model FLOP are those that the mathematics
needs (PaLM, arXiv:2204.02311, appendix B); hardware FLOP add what recomputation repeats.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpucost.physics.columns import Columns, Flags, Floats, remembered
from gpucost.types import Architecture

NORM_VECTORS = {"rms": 1.0, "ln": 2.0, "ln_w": 1.0, "ln_np": 0.0}


@dataclass(frozen=True, slots=True)
class Shape(Columns):
    """Architectures as arrays: the numeric fields of `Architecture`, its words as flags and counts."""

    layers: Floats
    hidden: Floats
    heads: Floats
    kv_heads: Floats
    head_dim: Floats
    ffn_hidden: Floats
    vocab: Floats
    experts: Floats
    experts_per_token: Floats
    shared_experts: Floats
    expert_ffn_hidden: Floats
    shared_ffn_hidden: Floats
    first_dense_layers: Floats
    moe_layer_step: Floats
    q_lora_rank: Floats
    kv_lora_rank: Floats
    qk_nope_dim: Floats
    qk_rope_dim: Floats
    v_head_dim: Floats
    window_tokens: Floats
    window_layers: Floats
    linear_layers: Floats
    mtp_layers: Floats
    position_parameters: Floats
    extra_parameters: Floats
    gated: Flags
    tied_embeddings: Flags
    mla: Flags  # multi-head latent attention
    qkv_bias: Flags  # biases on queries, keys and values
    all_bias: Flags  # biases on every projection: the older style with full layer norm
    norm_vectors: Floats  # vectors of the hidden width in one norm: 1 (weight), 2 (and bias) or 0


def stack(architectures: Sequence[Architecture]) -> Shape:
    """Turn architecture records into arrays, one element per record."""
    flags = {
        "gated": [a.gated for a in architectures],
        "tied_embeddings": [a.tied_embeddings for a in architectures],
        "mla": [a.attention == "mla" for a in architectures],
        "qkv_bias": [a.qkv_bias for a in architectures],
        "all_bias": [a.qkv_bias and a.norm == "ln" for a in architectures],
    }
    columns: dict[str, Any] = {name: np.array(values, dtype=np.bool_) for name, values in flags.items()}
    columns["norm_vectors"] = np.array([NORM_VECTORS[a.norm] for a in architectures], dtype=np.float64)
    for name in Shape.names():
        if name not in columns:
            columns[name] = np.array([getattr(a, name) for a in architectures], dtype=np.float64)
    return Shape(**columns)


@dataclass(frozen=True, slots=True)
class Parts(Columns):
    """Parameters by part of the model; their sum is the total."""

    input_embedding: Floats
    output_embedding: Floats  # zero where it is shared with the input
    attention: Floats
    dense_ffn: Floats
    routed_experts: Floats
    shared_experts: Floats
    router: Floats
    norms: Floats
    extra: Floats


@remembered
def moe_layers(shape: Shape) -> Floats:
    """Return the layers that are a mixture of experts: every n-th after the leading dense ones.

    >>> from gpucost.types import Architecture
    >>> v3 = Architecture("v3", "", 61, 7168, 128, 128, 192, 18432, True, 129280, False, experts=256,
    ...                   first_dense_layers=3)
    >>> moe_layers(stack([v3]))
    array([58.])
    """
    after = np.floor((shape.layers - shape.first_dense_layers) / np.maximum(shape.moe_layer_step, 1))
    return np.where(shape.experts > 0, after, 0.0)


@remembered
def ffn_matrices(shape: Shape) -> Floats:
    """Return the matrices of one feed-forward block: three where it is gated, else two."""
    return np.where(shape.gated, 3.0, 2.0)


@remembered
def query_width(shape: Shape) -> Floats:
    """Return the joint width of all query heads."""
    return np.where(shape.mla, shape.heads * (shape.qk_nope_dim + shape.qk_rope_dim), shape.heads * shape.head_dim)


@remembered
def output_width(shape: Shape) -> Floats:
    """Return the joint width of all value heads, the input of the output projection."""
    return np.where(shape.mla, shape.heads * shape.v_head_dim, shape.heads * shape.head_dim)


@remembered
def attention_matrix_parameters(shape: Shape) -> Floats:
    """Return the weights of one layer's attention projections, without biases and norms.

    Q, K, V and O of widths heads·d, kv·d, kv·d, heads·d; for MLA the low-rank factors of queries and of the
    joint key-value latent (DeepSeek-V2, arXiv:2405.04434, eq. 9-19).
    """
    h, q = shape.hidden, query_width(shape)
    plain = h * (2 * q + 2 * shape.kv_heads * shape.head_dim)
    queries = np.where(shape.q_lora_rank > 0, shape.q_lora_rank * (h + q), h * q)
    latent = h * (shape.kv_lora_rank + shape.qk_rope_dim)
    expanded = shape.kv_lora_rank * shape.heads * (shape.qk_nope_dim + shape.v_head_dim)
    return np.where(shape.mla, queries + latent + expanded + output_width(shape) * h, plain)


@remembered
def parameter_parts(shape: Shape) -> Parts:
    """Count the parameters by part: exact integers, held in float64.

    Llama 2 7B by hand: 2·32000·4096 embeddings + 32·(4·4096² + 3·4096·11008) + 65·4096 norms = 6,738,415,616.

    >>> from gpucost.types import Architecture
    >>> llama = Architecture("llama-2-7b", "", 32, 4096, 32, 32, 128, 11008, True, 32000, False)
    >>> print(int(total_parameters(stack([llama]))[0]))
    6738415616
    """
    h, moe, matrices = shape.hidden, moe_layers(shape), ffn_matrices(shape)
    dense = shape.layers - moe
    qkv_bias = np.where(shape.qkv_bias & ~shape.mla, query_width(shape) + 2 * shape.kv_heads * shape.head_dim, 0.0)
    attention = attention_matrix_parameters(shape) + qkv_bias + np.where(shape.all_bias, h, 0.0)
    ffn_bias = np.where(shape.all_bias, shape.ffn_hidden * (matrices - 1) + h, 0.0)
    latent_norms = np.where(shape.mla, shape.q_lora_rank + shape.kv_lora_rank, 0.0)
    embedding = shape.vocab * h
    return Parts(
        input_embedding=embedding + shape.position_parameters,
        output_embedding=np.where(shape.tied_embeddings, 0.0, embedding),
        attention=shape.layers * attention,
        dense_ffn=dense * (matrices * h * shape.ffn_hidden + ffn_bias),
        routed_experts=moe * shape.experts * matrices * h * shape.expert_ffn_hidden,
        shared_experts=moe * shape.shared_experts * matrices * h * shape.shared_ffn_hidden,
        router=moe * shape.experts * h,
        norms=shape.norm_vectors * h * (2 * shape.layers + 1) + shape.layers * latent_norms,
        extra=shape.extra_parameters,
    )


@remembered
def total_parameters(shape: Shape) -> Floats:
    """Return all parameters of the model as published, without multi-token prediction modules."""
    parts = parameter_parts(shape)
    return sum((getattr(parts, name) for name in parts.names()), np.zeros(len(shape)))


def idle_expert_parameters(shape: Shape) -> Floats:
    """Return the parameters of the routed experts that a token does not visit."""
    share = 1 - shape.experts_per_token / np.maximum(shape.experts, 1)
    return parameter_parts(shape).routed_experts * np.where(shape.experts > 0, share, 0.0)


def active_parameters(shape: Shape) -> Floats:
    """Return the parameters that one token meets: all, less the routed experts that it does not visit."""
    return total_parameters(shape) - idle_expert_parameters(shape)


@remembered
def compute_parameters(shape: Shape) -> Floats:
    """Return the active parameters without the input embedding, whose look-up multiplies nothing.

    A tied embedding counts once, as the output projection. This is the N of 6·N in the MFU of this package.
    """
    lookup = np.where(shape.tied_embeddings, 0.0, shape.vocab * shape.hidden)
    return active_parameters(shape) - lookup - shape.position_parameters


@remembered
def mtp_parameters(shape: Shape) -> Floats:
    """Return the parameters of multi-token prediction: per module one layer and a 2h → h projection with its norms.

    DeepSeek-V3 (arXiv:2412.19437, section 2.2): about 11.5 B for its one module; embeddings are shared.
    """
    parts, h = parameter_parts(shape), shape.hidden
    moe = np.maximum(moe_layers(shape), 1)
    experts = (parts.routed_experts + parts.shared_experts + parts.router) / moe
    dense = ffn_matrices(shape) * h * shape.ffn_hidden
    layer = parts.attention / shape.layers + np.where(shape.experts > 0, experts, dense) + 2 * shape.norm_vectors * h
    return shape.mtp_layers * (layer + 2 * h * h + 3 * shape.norm_vectors * h)


# FLOP per token ------------------------------------------------------------------------------------------------


def attention_linear_flop(shape: Shape) -> Floats:
    """Return the FLOP per token of one layer's attention projections, forward: 2 per weight."""
    return 2 * attention_matrix_parameters(shape)


def dense_ffn_flop(shape: Shape) -> Floats:
    """Return the FLOP per token of one dense feed-forward block, forward."""
    return 2 * ffn_matrices(shape) * shape.hidden * shape.ffn_hidden


def expert_ffn_flop(shape: Shape) -> Floats:
    """Return the FLOP per token of one mixture of experts, forward: routed, shared and the router."""
    routed = shape.experts_per_token * shape.expert_ffn_hidden
    shared = shape.shared_experts * shape.shared_ffn_hidden
    return 2 * shape.hidden * (ffn_matrices(shape) * (routed + shared) + shape.experts)


@remembered
def layers_linear_flop(shape: Shape) -> Floats:
    """Return the FLOP per token of all layers' matrices, forward, without logits."""
    moe = moe_layers(shape)
    ffn = (shape.layers - moe) * dense_ffn_flop(shape) + moe * expert_ffn_flop(shape)
    return shape.layers * attention_linear_flop(shape) + ffn


def logits_flop(shape: Shape) -> Floats:
    """Return the FLOP per token of the output projection, forward: 2·h·V."""
    return 2 * shape.hidden * shape.vocab


def mtp_flop(shape: Shape) -> Floats:
    """Return the FLOP per token of multi-token prediction in training, forward: a layer, a projection, logits."""
    h = shape.hidden
    ffn = np.where(shape.experts > 0, expert_ffn_flop(shape), dense_ffn_flop(shape))
    return shape.mtp_layers * (attention_linear_flop(shape) + ffn + 4 * h * h + logits_flop(shape))


def linear_flop(shape: Shape) -> Floats:
    """Return the FLOP per token of all matrices, forward, logits included."""
    return layers_linear_flop(shape) + logits_flop(shape) + mtp_flop(shape)


def mean_context(sequence_tokens: ArrayLike, window_tokens: ArrayLike = 0.0, causal: bool | Flags = True) -> Floats:
    """Return the keys that a token attends to, averaged over the sequence.

    Causal: s/2. Within a window of w < s: w·(1 − w/2s). Without the mask: s, or w. A window of 0 is none.

    >>> mean_context(np.array([8192.0]), np.array([4096.0]))
    array([3072.])
    """
    s = np.asarray(sequence_tokens, dtype=np.float64)
    w = np.asarray(window_tokens, dtype=np.float64)
    w = np.where(w > 0, np.minimum(w, s), s)
    return np.where(causal, w * (1 - w / (2 * s)), w)


def attended_keys(shape: Shape, sequence_tokens: ArrayLike, causal: bool | Flags = True) -> Floats:
    """Return the keys that a token attends to, summed over the layers; linear mixers attend to none."""
    full = np.maximum(shape.layers - shape.window_layers - shape.linear_layers, 0) + shape.mtp_layers
    s = np.asarray(sequence_tokens, dtype=np.float64)
    return full * mean_context(s, 0.0, causal) + shape.window_layers * mean_context(s, shape.window_tokens, causal)


def attention_flop(shape: Shape, sequence_tokens: ArrayLike, causal: bool | Flags = True) -> Floats:
    """Return the FLOP per token of scores and weighted values over all layers, forward: 2·(d_qk + d_v)·heads per key.

    GPT-3 175B at 2,048 tokens by hand: 4 · 96 layers · 12288 · 1024 keys.

    >>> from gpucost.types import Architecture
    >>> gpt3 = Architecture("gpt-3", "", 96, 12288, 96, 96, 128, 49152, False, 50257, True, attention="mha")
    >>> attention_flop(stack([gpt3]), [2048.0]) == 4 * 96 * 12288 * 1024
    array([ True])
    """
    per_key = 2 * (query_width(shape) + output_width(shape))
    return per_key * attended_keys(shape, sequence_tokens, causal)


def model_flop(shape: Shape, sequence_tokens: ArrayLike, causal: bool | Flags = True) -> Floats:
    """Return the model FLOP per trained token: 6·N without the input embedding + 3 × causal attention.

    Forward once, backward twice (arXiv:2204.02311, appendix B, with the causal half). Recomputation and
    multi-token prediction are work of the recipe, not of the model.
    """
    per_key = 2 * (query_width(shape) + output_width(shape))
    prediction = shape.mtp_layers * per_key * mean_context(sequence_tokens, 0.0, causal)
    return 6 * compute_parameters(shape) + 3 * (attention_flop(shape, sequence_tokens, causal) - prediction)


def hardware_flop(
    shape: Shape, sequence_tokens: ArrayLike, recompute: ArrayLike = 0, flash: bool | Flags = True
) -> Floats:
    """Return the FLOP per trained token that the hardware performs: model FLOP, what is repeated, and the mask's waste.

    Full recomputation repeats the forward pass of the layers; selective repeats the attention core, which a fused
    kernel repeats anyway in its backward pass (5 products instead of 4: arXiv:2307.08691, section 3.1.2).
    """
    code = np.asarray(recompute)
    core = attention_flop(shape, sequence_tokens, flash)
    repeats = np.where(code == 2, 1.0, 0.0)
    core_repeats = np.where(flash, 0.5 + repeats, np.where(code >= 1, 1.0, 0.0))
    linear = 3 * linear_flop(shape) + repeats * layers_linear_flop(shape)
    return linear + (3 + core_repeats) * core


# Bytes -----------------------------------------------------------------------------------------------------------


@remembered
def kv_values_per_token(shape: Shape) -> Floats:
    """Return the cached values per token and attending layer: 2·kv·d, or the MLA latent with its rotary key."""
    return np.where(shape.mla, shape.kv_lora_rank + shape.qk_rope_dim, 2 * shape.kv_heads * shape.head_dim)


def kv_bytes_per_token(shape: Shape, bytes_per_value: ArrayLike = 2.0) -> Floats:
    """Return the bytes of cache that one more token adds while it is within every window.

    Llama 3 8B in bf16 by hand: 2 · 8 · 128 · 32 layers · 2 bytes = 131,072.
    """
    caching = np.maximum(shape.layers - shape.linear_layers, 0)
    return caching * kv_values_per_token(shape) * np.asarray(bytes_per_value, dtype=np.float64)


def kv_bytes_per_sequence(shape: Shape, context_tokens: ArrayLike, bytes_per_value: ArrayLike = 2.0) -> Floats:
    """Return the bytes of cache of one sequence: full layers keep all tokens, windowed layers the last ones."""
    tokens = np.asarray(context_tokens, dtype=np.float64)
    full = np.maximum(shape.layers - shape.window_layers - shape.linear_layers, 0)
    windowed = np.where(shape.window_tokens > 0, np.minimum(tokens, shape.window_tokens), tokens)
    kept = full * tokens + shape.window_layers * windowed
    return kept * kv_values_per_token(shape) * np.asarray(bytes_per_value, dtype=np.float64)


def weight_bytes(shape: Shape, bytes_per_parameter: ArrayLike = 2.0) -> Floats:
    """Return the bytes of all weights, without multi-token prediction modules."""
    return total_parameters(shape) * np.asarray(bytes_per_parameter, dtype=np.float64)
