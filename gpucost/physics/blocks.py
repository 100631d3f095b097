"""The layers of an architecture as blocks, and what follows from them: parameters, cache, FLOP per key, state.

Every sum of a model is a sum over its blocks. Where an architecture says only its dimensions, its blocks follow from
those: all layers attend alike but for a window or a recurrence, and the mixtures come after the dense layers.
"""

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from gpucost.types import Architecture, Block, Reach

NORM_VECTORS = {"rms": 1, "ln": 2, "ln_w": 1, "ln_np": 0}


def blocks_of(a: Architecture) -> tuple[Block, ...]:
    """Return the blocks of an architecture: its own, else those that its dimensions imply.

    Layers that dimensions describe differ in two ways at most: how they attend, and their experts. Which are windowed
    and which are mixtures is not known together, so attention and feed-forward come in blocks of their own: only sums
    over all layers are meant.
    """
    if a.blocks:
        return a.blocks
    blocks: list[Block] = []
    matrices = 3 if a.gated else 2
    everywhere = a.qkv_bias and a.norm == "ln"  # the older style: biases on every projection
    norm = NORM_VECTORS[a.norm] * a.hidden
    mla = a.attention == "mla"
    bias = (a.heads + 2 * a.kv_heads) * a.head_dim if a.qkv_bias and not mla else 0
    norms = 2 * norm + (a.q_lora_rank + a.kv_lora_rank if mla else 0)  # low-rank queries and latents are normed too
    # Attention's projections: Q, K, V and O of widths heads·d, kv·d, kv·d, heads·d; what a layer keeps per token and
    # pays per key: 2·kv·d values and 4·heads·d FLOP. For MLA the low-rank factors of queries and of the joint key-value
    # latent (DeepSeek-V2, arXiv:2405.04434, eq. 9-19), and that latent.
    if mla:
        query = a.heads * (a.qk_nope_dim + a.qk_rope_dim)  # of each head a part that carries positions, and one without
        queries = a.q_lora_rank * (a.hidden + query) if a.q_lora_rank else a.hidden * query
        expanded = a.kv_lora_rank * a.heads * (a.qk_nope_dim + a.v_head_dim)
        # down to the latent and the one rotary key, up to keys and values of all heads, and out
        latent = a.kv_lora_rank + a.qk_rope_dim
        weights = queries + a.hidden * latent + expanded + a.heads * a.v_head_dim * a.hidden
        reach = Reach(
            latent,
            2 * a.heads * (a.qk_nope_dim + a.qk_rope_dim + a.v_head_dim),
            latent_flop=2 * a.heads * (2 * a.kv_lora_rank + a.qk_rope_dim),
        )
    else:
        weights = a.hidden * (2 * a.heads * a.head_dim + 2 * a.kv_heads * a.head_dim)
        reach = Reach(2 * a.kv_heads * a.head_dim, 4 * a.heads * a.head_dim)
    unclassified = bias + (a.hidden if everywhere else 0)
    full = max(a.layers - a.window_layers - a.linear_layers, 0)
    for count, window, linear in (
        (full, 0, False),
        (a.window_layers, a.window_tokens, False),
        (a.linear_layers, 0, True),  # its mixer is taken to weigh what attention does, which it is built to
    ):
        if count:
            reaches = () if linear else (replace(reach, window_tokens=window),)
            blocks.append(Block(count, weights, norms, reaches, others=unclassified, linear=linear))
    mixtures = (a.layers - a.first_dense_layers) // max(a.moe_layer_step, 1) if a.experts else 0
    ffn_bias = a.ffn_hidden * (matrices - 1) + a.hidden if everywhere else 0
    if a.layers > mixtures:
        feed_forward = matrices * a.hidden * a.ffn_hidden
        blocks.append(Block(a.layers - mixtures, 0, 0, dense=feed_forward, others=ffn_bias))
    if mixtures:
        blocks.append(
            Block(
                mixtures,
                0,
                0,
                experts=a.experts,
                experts_per_token=a.experts_per_token,
                expert=matrices * a.hidden * a.expert_ffn_hidden,
                shared=a.shared_experts * matrices * a.hidden * a.shared_ffn_hidden,
                router=a.experts * a.hidden,
            )
        )
    return tuple(blocks)


class Sums(NamedTuple):
    """Sums over all layers of one architecture. Names end in their unit or are counts of weights or values."""

    attention_weights: float
    dense_weights: float
    routed_weights: float
    visited_weights: float  # of the routed ones, those that a token meets
    shared_weights: float
    router_weights: float
    norm_weights: float
    other_weights: float
    reused_weights: float
    moe_layers: float
    # per kind of reach: everything, a window, a selection
    full_layers: float
    full_values: float  # cached per token
    full_pair_flop: float
    full_decode_flop: float
    window_layers: float
    window_tokens: float
    window_values: float
    window_pair_flop: float
    window_decode_flop: float
    selected_tokens: float
    selected_values: float  # kept for every token, read for the selected ones
    selected_pair_flop: float
    selected_decode_flop: float
    linear_layers: float
    state_values: float


def sums_of(a: Architecture) -> Sums:
    """Return the sums over the blocks of an architecture.

    >>> llama = Architecture("llama-3-8b", "", 32, 4096, 32, 8, 128, 14336, True, 128256, False)
    >>> sums_of(llama).full_values, sums_of(llama).dense_weights == 32 * 3 * 4096 * 14336
    (65536.0, True)
    """
    blocks = blocks_of(a)
    attending = [block for block in blocks if block.reaches]
    # a layer that sees everything beside a window counts as one that sees everything
    windowed = sum(block.count for block in attending if all(reach.window_tokens for reach in block.reaches))
    # what is cached and what a key costs, by kind of reach: everything, a window, a selection
    reaches = [(block.count, reach) for block in blocks for reach in block.reaches]
    kinds = {
        "full": [pair for pair in reaches if not pair[1].window_tokens and not pair[1].looks_at_most],
        "window": [pair for pair in reaches if pair[1].window_tokens],
        "selected": [pair for pair in reaches if pair[1].looks_at_most and not pair[1].window_tokens],
    }
    reach_sums = {
        "window_tokens": _mean(kinds["window"], "window_tokens"),
        "selected_tokens": _mean(kinds["selected"], "looks_at_most"),
    }
    # Decoding multiplies latent attention out in the compressed space, prompts and training do not.
    for name, pairs in kinds.items():
        reach_sums[f"{name}_values"] = _sum_of(pairs, lambda reach: reach.cached_values)
        reach_sums[f"{name}_pair_flop"] = _sum_of(pairs, lambda reach: reach.pair_flop)
        reach_sums[f"{name}_decode_flop"] = _sum_of(pairs, lambda reach: reach.latent_flop or reach.pair_flop)
    return Sums(
        attention_weights=_total(blocks, "mixer"),
        dense_weights=_total(blocks, "dense"),
        routed_weights=float(sum(block.count * block.experts * block.expert for block in blocks)),
        visited_weights=float(sum(block.count * block.experts_per_token * block.expert for block in blocks)),
        shared_weights=_total(blocks, "shared"),
        router_weights=_total(blocks, "router"),
        norm_weights=_total(blocks, "norms"),
        other_weights=_total(blocks, "others"),
        reused_weights=_total(blocks, "reused"),
        moe_layers=float(sum(block.count for block in blocks if block.experts)),
        full_layers=float(sum(block.count for block in attending) - windowed),
        window_layers=float(windowed),
        linear_layers=float(sum(block.count for block in blocks if block.linear)),
        state_values=_total(blocks, "state_values"),
        **reach_sums,
    )


def _sum_of(pairs: list[tuple[int, Reach]], measure: Callable[[Reach], int]) -> float:
    return float(sum(count * measure(reach) / reach.tokens_per_entry for count, reach in pairs))


def _total(blocks: tuple[Block, ...], name: str) -> float:
    return float(sum(block.count * getattr(block, name) for block in blocks))


def _mean(pairs: list[tuple[int, Reach]], name: str) -> float:
    """Return the usual bound of reaches, weighted by what they keep; nearly every model has one."""
    weight = sum(count * max(reach.cached_values, 1) for count, reach in pairs)
    total = sum(
        # looks_at_most counts entries, each of several tokens; a window counts tokens
        count * max(reach.cached_values, 1) * getattr(reach, name) * (reach.tokens_per_entry if name[0] == "l" else 1)
        for count, reach in pairs
    )
    return total / weight if weight else 0.0


def cache_values(a: Architecture, context_tokens: int) -> int:
    """Return the values that one sequence keeps of its tokens, without recurrent state: exact, block by block.

    A window keeps the last tokens, a compressed cache an entry for every so many.

    >>> gemma = Architecture("g", "", 42, 3584, 16, 8, 256, 14336, True, 256000, True, window_tokens=4096,
    ...                      window_layers=21)
    >>> cache_values(gemma, 8192) == 21 * 2 * 8 * 256 * (8192 + 4096)
    True
    """
    return sum(
        block.count
        * reach.cached_values
        * (min(context_tokens, reach.window_tokens or context_tokens) // reach.tokens_per_entry)
        for block in blocks_of(a)
        for reach in block.reaches
    )


def state_values(a: Architecture) -> int:
    """Return the values of the recurrent state of one sequence, which does not grow with the context."""
    return sum(block.count * block.state_values for block in blocks_of(a))
