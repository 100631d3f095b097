"""Counting a transformer: parameters, FLOP and bytes per token, exactly, from its dimensions.

Every function takes a `Shape` (arrays, one element per case) and returns arrays. FLOP are counted per token and
for the forward pass unless a name says otherwise; a multiply-add is two. Model FLOP are those that the mathematics
needs (PaLM, arXiv:2204.02311, appendix B); hardware FLOP add what recomputation repeats.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpucost.physics.blocks import NORM_VECTORS, Sums, sums_of
from gpucost.physics.columns import RECOMPUTES, ColumnStruct, Flags, Floats, remembered
from gpucost.types import Architecture

_SINKS = ("gpt-oss", "gpt_oss")  # families whose attention has a learned sink in every head


class Attending(ColumnStruct, frozen=True):
    """How layers attend: to everything, within a window, to a selection; values and FLOP are summed over the layers."""

    full_layers: Floats
    full_values: Floats
    full_pair_flop: Floats
    full_decode_flop: Floats
    window_layers: Floats
    window_tokens: Floats
    window_values: Floats
    window_pair_flop: Floats
    window_decode_flop: Floats
    selected_tokens: Floats
    selected_values: Floats
    selected_pair_flop: Floats
    selected_decode_flop: Floats
    linear_layers: Floats
    state_values: Floats  # recurrent state of one sequence


class Shape(Attending, frozen=True):
    """Architectures as arrays: the dimensions that most layers share, and sums over the blocks of all layers."""

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
    exchanged_width: Floats  # of a token on its way to its experts
    shared_ffn_hidden: Floats
    q_lora_rank: Floats
    kv_lora_rank: Floats
    qk_nope_dim: Floats
    qk_rope_dim: Floats
    v_head_dim: Floats
    mtp_layers: Floats
    position_parameters: Floats
    tower_parameters: Floats
    extra_parameters: Floats
    embedding_weights: Floats  # of the token embedding
    final_norm: Floats  # parameters of the last norm where no block or extra holds it
    # sums over the layers
    attention_weights: Floats
    dense_weights: Floats
    routed_weights: Floats
    visited_weights: Floats
    shared_weights: Floats
    router_weights: Floats
    norm_weights: Floats
    other_weights: Floats
    reused_weights: Floats
    moe_layers: Floats
    sink_layers: Floats  # of the windowed ones, those whose heads have learned sinks
    gated: Flags
    tied_embeddings: Flags
    mla: Flags  # multi-head latent attention
    norm_vectors: Floats  # vectors of the hidden width in one norm: 1 (weight), 2 (and bias) or 0


def stack(architectures: Sequence[Architecture]) -> Shape:
    """Turn architecture records into arrays, one element per record; one that is asked for again is remembered."""
    return _alone(architectures[0]) if len(architectures) == 1 else _stacked(architectures)


@remembered
def _alone(architecture: Architecture) -> Shape:
    """Return the shape of one architecture; a record can be remembered where a list of them cannot."""
    return _stacked([architecture])


def _stacked(architectures: Sequence[Architecture]) -> Shape:
    flags = {
        "gated": [a.gated for a in architectures],
        "tied_embeddings": [a.tied_embeddings for a in architectures],
        "mla": [a.attention == "mla" for a in architectures],
    }
    columns: dict[str, Any] = {name: np.array(values, dtype=np.bool_) for name, values in flags.items()}
    # calibration stacks hundreds of rows of a few models: the blocks of each are summed once
    sums_by_id = {key: sums_of(a) for key, a in {id(a): a for a in architectures}.items()}
    sums = [sums_by_id[id(a)] for a in architectures]
    numbers: dict[str, list[float]] = {
        "norm_vectors": [NORM_VECTORS[a.norm] for a in architectures],
        "embedding_weights": [a.vocab * (a.embedding_width or a.hidden) for a in architectures],
        "sink_layers": [
            model_sums.window_layers * (a.family in _SINKS) for model_sums, a in zip(sums, architectures, strict=True)
        ],
        "exchanged_width": [a.expert_hidden or a.hidden for a in architectures],
        # an architecture with blocks was read from a configuration, whose last norm is among its extra parameters
        "final_norm": [0 if a.blocks else NORM_VECTORS[a.norm] * a.hidden for a in architectures],
    }
    for name in Shape.names():
        if name not in columns:
            # every other column is a field of the sums, or else of the record itself
            values = numbers.get(name) or [
                getattr(sums_of_a if name in Sums._fields else a, name)
                for sums_of_a, a in zip(sums, architectures, strict=True)
            ]
            columns[name] = np.array(values, dtype=np.float64)
    return Shape(**columns)


class Parts(ColumnStruct, frozen=True):
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
    """Return the weights of one layer's mixer, averaged over the layers, without biases and norms."""
    return shape.attention_weights / shape.layers


@remembered
def parameter_parts(shape: Shape) -> Parts:
    """Count the parameters by part: exact integers, held in float64.

    Llama 2 7B by hand: 2·32000·4096 embeddings + 32·(4·4096² + 3·4096·11008) + 65·4096 norms = 6,738,415,616.

    >>> from gpucost.types import Architecture
    >>> llama = Architecture("llama-2-7b", "", 32, 4096, 32, 32, 128, 11008, True, 32000, False)
    >>> print(int(total_parameters(stack([llama]))[0]))
    6738415616
    """
    return Parts(
        input_embedding=shape.embedding_weights + shape.position_parameters,
        output_embedding=np.where(shape.tied_embeddings, 0.0, shape.embedding_weights),
        attention=shape.attention_weights,
        dense_ffn=shape.dense_weights,
        routed_experts=shape.routed_weights,
        shared_experts=shape.shared_weights,
        router=shape.router_weights,
        norms=shape.norm_weights + shape.final_norm,
        extra=shape.other_weights + shape.extra_parameters,
    )


@remembered
def total_parameters(shape: Shape) -> Floats:
    """Return all parameters of the model as published, without multi-token prediction modules."""
    parts = parameter_parts(shape)
    return sum((getattr(parts, name) for name in parts.names()), np.zeros(len(shape)))


def active_parameters(shape: Shape) -> Floats:
    """Return the parameters that one token meets: all, less the routed experts that it does not visit."""
    return total_parameters(shape) - (shape.routed_weights - shape.visited_weights)


@remembered
def compute_parameters(shape: Shape) -> Floats:
    """Return the active parameters without the input embedding, whose look-up multiplies nothing.

    A tied embedding counts once, as the output projection; weights that several layers share count as often as they
    are applied. This is the N of 6·N in the MFU of this package.
    """
    # a tied table is read as the input and multiplied by as the output: it stays
    lookup = np.where(shape.tied_embeddings, 0.0, shape.embedding_weights)
    return active_parameters(shape) - lookup - shape.position_parameters + shape.reused_weights


@remembered
def mtp_parameters(shape: Shape) -> Floats:
    """Return the parameters of multi-token prediction: per module one layer and a 2h → h projection with its norms.

    DeepSeek-V3 (arXiv:2412.19437, section 2.2): about 11.5 B for its one module; embeddings are shared.
    """
    parts, h = parameter_parts(shape), shape.hidden
    # the module's layer is one of the model's last, a mixture where the model has any
    moe = np.maximum(shape.moe_layers, 1)
    experts = (parts.routed_experts + parts.shared_experts + parts.router) / moe
    dense = ffn_matrices(shape) * h * shape.ffn_hidden
    layer = parts.attention / shape.layers + np.where(shape.experts > 0, experts, dense) + 2 * shape.norm_vectors * h
    # three norms: of the stream, of the next token's embedding, and before the head
    return shape.mtp_layers * (layer + 2 * h * h + 3 * shape.norm_vectors * h)


# FLOP per token ------------------------------------------------------------------------------------------------


def expert_ffn_flop(shape: Shape) -> Floats:
    """Return the FLOP per token of one mixture of experts, forward: routed, shared and the router."""
    routed = shape.experts_per_token * shape.expert_ffn_hidden
    shared = shape.shared_experts * shape.shared_ffn_hidden
    return 2 * shape.hidden * (ffn_matrices(shape) * (routed + shared) + shape.experts)


@remembered
def layers_linear_flop(shape: Shape) -> Floats:
    """Return the FLOP per token of all layers' matrices, forward, without logits: 2 per weight that it meets."""
    weights = shape.attention_weights + shape.dense_weights + shape.visited_weights + shape.shared_weights
    return 2 * (weights + shape.router_weights + shape.reused_weights)


def logits_flop(shape: Shape) -> Floats:
    """Return the FLOP per token of the output projection, forward: 2·h·V."""
    return 2 * shape.hidden * shape.vocab


def mtp_flop(shape: Shape) -> Floats:
    """Return the FLOP per token of multi-token prediction in training, forward: a layer, a projection, logits."""
    h = shape.hidden
    dense = 2 * ffn_matrices(shape) * h * shape.ffn_hidden
    ffn = np.where(shape.experts > 0, expert_ffn_flop(shape), dense)
    return shape.mtp_layers * (2 * attention_matrix_parameters(shape) + ffn + 4 * h * h + logits_flop(shape))


def mean_context(sequence_tokens: ArrayLike, window_tokens: ArrayLike = 0.0, causal: bool | Flags = True) -> Floats:
    """Return the keys that a token attends to, averaged over the sequence.

    Causal: s/2. Within a window of w < s: w·(1 − w/2s). Without the mask: s, or w. A window of 0 is none.

    >>> mean_context(np.array([8192.0]), np.array([4096.0]))
    array([3072.])
    """
    s = np.asarray(sequence_tokens, dtype=np.float64)
    w = np.asarray(window_tokens, dtype=np.float64)
    # the first w tokens see w/2 on average, the s − w others all w: (w²/2 + (s − w)·w) ÷ s
    w = np.where(w > 0, np.minimum(w, s), s)
    return np.where(causal, w * (1 - w / (2 * s)), w)


def attention_flop(shape: Shape, sequence_tokens: ArrayLike, causal: bool | Flags = True) -> Floats:
    """Return the FLOP per token of scores and weighted values over all layers, forward: 2·(d_qk + d_v)·heads per key.

    GPT-3 175B at 2,048 tokens by hand: 4 · 96 layers · 12288 · 1024 keys.

    >>> from gpucost.types import Architecture
    >>> gpt3 = Architecture("gpt-3", "", 96, 12288, 96, 96, 128, 49152, False, 50257, True, attention="mha")
    >>> attention_flop(stack([gpt3]), [2048.0]) == 4 * 96 * 12288 * 1024
    array([ True])
    """
    s = np.asarray(sequence_tokens, dtype=np.float64)
    # a selection is causal too: the first tokens have fewer keys than may be selected
    full = (shape.full_pair_flop + _prediction_flop(shape)) * mean_context(s, 0.0, causal)
    window = shape.window_pair_flop * mean_context(s, shape.window_tokens, causal)
    return full + window + shape.selected_pair_flop * mean_context(s, shape.selected_tokens, causal)


def _prediction_flop(shape: Shape) -> Floats:
    """Return the FLOP per key of the attention of multi-token prediction, whose layers attend to everything."""
    return shape.mtp_layers * 2 * (query_width(shape) + output_width(shape))


def model_flop(
    shape: Shape, sequence_tokens: ArrayLike, causal: bool | Flags = True, frozen: bool | Flags = False
) -> Floats:
    """Return the model FLOP per trained token: 6·N without the input embedding + 3 × causal attention.

    Forward once, backward twice (arXiv:2204.02311, appendix B, with the causal half). Frozen weights, beside which
    adapters are trained, need no gradients of their own: 4·N; attention is what it was. Recomputation and
    multi-token prediction are work of the recipe, not of the model.
    """
    # `attention_flop` counts the attention of prediction modules as well, for the hardware does it
    prediction = _prediction_flop(shape) * mean_context(sequence_tokens, 0.0, causal)
    attention = attention_flop(shape, sequence_tokens, causal) - prediction
    return np.where(frozen, 4.0, 6.0) * compute_parameters(shape) + 3 * attention


def hardware_flop(
    shape: Shape, sequence_tokens: ArrayLike, recompute: ArrayLike = 0, flash: bool | Flags = True
) -> Floats:
    """Return the FLOP per trained token that the hardware performs: model FLOP, what is repeated, and the mask's waste.

    Full recomputation repeats the forward pass of the layers; selective repeats the attention core, which a fused
    kernel repeats anyway in its backward pass (5 products instead of 4: arXiv:2307.08691, section 3.1.2).
    """
    code = np.asarray(recompute)  # into RECOMPUTES: none, selective, full
    core = attention_flop(shape, sequence_tokens, flash)  # a kernel that is not fused computes what the mask drops
    repeats = np.where(code == RECOMPUTES.index("full"), 1.0, 0.0)
    # backward passes of fused kernels make the scores again, one product more than the two forward: half a pass
    core_repeats = np.where(flash, 0.5 + repeats, np.where(code == RECOMPUTES.index("none"), 0.0, 1.0))
    layers = layers_linear_flop(shape)
    linear = 3 * (layers + logits_flop(shape) + mtp_flop(shape)) + repeats * layers
    return linear + (3 + core_repeats) * core


# Bytes -----------------------------------------------------------------------------------------------------------


@remembered
def kv_values_per_token(shape: Shape) -> Floats:
    """Return the cached values per token of an attending layer, averaged over them: 2·kv·d, or the MLA latent."""
    attending = np.maximum(shape.full_layers + shape.window_layers, 1)
    return (shape.full_values + shape.window_values + shape.selected_values) / attending
