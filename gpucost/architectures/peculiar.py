"""Families with parts that no other has: Zaya, Doge, HRM, Inkling, Muse Spark, Laguna, ModernBERT's decoder, Bamba."""

from dataclasses import replace

from gpucost.architectures.attention import FULL, LINEAR, WINDOW, Heads, Mixer, attention
from gpucost.architectures.decoder import Decoder
from gpucost.architectures.feedforward import dense, dense_width, expert_layers, experts
from gpucost.architectures.fields import MOST_LAYERS
from gpucost.architectures.layers import block_of, heads_for, kinds, mixers, usual
from gpucost.types import Block


def zaya(d: Decoder) -> list[Block]:
    """Read Zaya: attention in a compressed space with convolutions, and a router that is a small network."""
    f, h, r = d.fields, d.hidden, d.fields.number("router_hidden_size", default=256)
    query, kept = d.heads * d.head_dim, d.kv_heads * d.head_dim
    first, second = f.number("cca_time0", default=2), f.number("cca_time1", default=2)
    convolved = query + kept
    mixture = experts(d)
    if mixture is None:
        raise f.fail("Zaya needs num_experts and moe_intermediate_size")
    routing = h * r + 2 * r * r + (mixture.experts + 1) * r
    mixture = mixture._replace(router=routing, others=5 * r)
    layers = []
    for i, kind in enumerate(kinds(d)):
        own = attention(d, kind)
        others = convolved * (first + 2 + d.head_dim * second) + d.kv_heads
        states = convolved * (first + second - 2) + kept // 2
        mixer = Mixer(own.weights, others, own.reaches, states)
        block = block_of(d, mixer, mixture)
        layers.append(replace(block, others=block.others + 8 * h - (0 if i else r)))
    return layers


def doge(d: Decoder) -> list[Block]:
    """Read Doge: a dynamic mask from the values, scaled residuals, and in its mixtures experts of one vector each."""
    f, h, kept = d.fields, d.hidden, d.kv_heads * d.head_dim
    own = attention(d, FULL)
    mixer = own._replace(weights=own.weights + kept * d.kv_heads, others=own.others + d.kv_heads)
    feed = dense(d, d.ffn)
    if f.flag("is_moe"):
        count, visited = f.number("num_experts", default=16384), f.number("num_experts_per_tok", default=64)
        feed = feed._replace(experts=count, per_token=visited, expert=2 * h, router=2 * h * int(count**0.5))
    else:
        f.raw("num_experts", "num_experts_per_tok")
    block = block_of(d, mixer, feed)
    return [replace(block, others=block.others + 2 * h)] * d.layers


def hrm(d: Decoder) -> list[Block]:
    """Read HRM: two stacks of layers gone through in cycles; every passage keeps a cache of its own."""
    f = d.fields
    f.taken.add("num_hidden_layers")
    high, low = f.number("H_cycles", default=2), f.number("L_cycles", default=3)
    stack = f.number("num_layers_per_stack")
    passages, each = high * (low + 1), stack or d.layers
    if each * passages > MOST_LAYERS:
        raise f.fail(f"{each} layers gone through {passages} times make more than {MOST_LAYERS} layers")
    own = block_of(d, attention(d, FULL), dense(d, d.ffn), norms=0)
    again = replace(own, mixer=0, dense=0, others=0, reused=own.mixer + own.dense)
    return [own] * (2 * each) + [again] * (each * (passages - 2))


def inkling(d: Decoder) -> list[Block]:
    """Read Inkling: relative positions from a projection, short convolutions after keys, values and each half."""
    f, h = d.fields, d.hidden
    kernel, second = f.number("conv_kernel_size", default=4), d.kind == "inkling2_text"
    f.raw("unpadded_vocab_size", "number_of_conv_states", "n_layers_per_attn_res_block", "shared_expert_sink")
    mixture = experts(d)
    if mixture and not second:
        shared = f.number("n_shared_experts", default=2)
        mixture = mixture._replace(router=mixture.router + shared * h, others=mixture.others + 1)
    plain = dense(d, dense_width(d))
    made = {kind: _related(d, kind, kernel, second) for kind in (FULL, WINDOW)}
    layers = []
    mixed = expert_layers(d) if "mlp_layer_types" in f else [mixture is not None] * d.layers
    for i, (kind, sparse) in enumerate(zip(_inkling_kinds(d), mixed, strict=True)):
        block = block_of(d, made[kind], mixture if sparse else plain)
        queries = (4 if kind == FULL else 2) + (2 if kind == FULL else 0) if second else 0
        if second and i == 0:
            queries -= 1
        layers.append(replace(block, others=block.others + (2 * kernel + queries) * h))
    return layers


def _inkling_kinds(d: Decoder) -> list[str]:
    listed, local = d.fields.words("layer_types"), d.fields.numbers("local_layer_ids")
    if listed:
        return kinds(d, FULL, WINDOW)
    if local is not None:
        return [WINDOW if i in set(local) else FULL for i in range(d.layers)]
    return [WINDOW if (i + 1) % 6 else FULL for i in range(d.layers)]


def _related(d: Decoder, kind: str, kernel: int, second: bool) -> Mixer:
    """Count one attention of Inkling, whose second generation also has gates, sinks and convolutions that move."""
    f, h, heads = d.fields, d.hidden, heads_for(d, kind)
    wide, extent = f.number("d_rel", default=16), d.window if kind == WINDOW else f.number("rel_extent", default=1024)
    own = attention(d, kind, heads)
    kept = heads.keys * (heads.key_dim + heads.value_dim)
    weights, others = own.weights + h * heads.queries * wide, own.others + wide * extent + kernel * kept
    if second:
        weights += h * heads.queries
        others += heads.queries * (heads.key_dim + wide)
        weights += 2 * h * kernel * heads.keys if kind == FULL else 0
    return Mixer(weights, others, own.reaches, (kernel - 1) * (kept + 2 * h))


def muse_spark(d: Decoder) -> list[Block]:
    """Read Muse Spark: gated attention, experts in a narrower space between two projections, gated residuals."""
    f, h = d.fields, d.hidden
    narrow, width = f.number("moe_hidden_size") or h, f.number("moe_intermediate_size")
    mixture = experts(d)
    if mixture:
        mixture = mixture._replace(
            expert=3 * narrow * width, dense=2 * h * narrow, others=mixture.others + 2 * narrow, shared=0
        )
    listed = kinds(d) if f.words("layer_types") else _from_the_last(d)
    made, plain = mixers(d, listed), dense(d, d.ffn)
    mixed = expert_layers(d) if "mlp_layer_types" in f else [True] * d.layers
    layers = zip(listed, mixed, strict=True)
    return [block_of(d, made[kind], mixture if mixture and sparse else plain) for kind, sparse in layers]


def _from_the_last(d: Decoder) -> list[str]:
    return [FULL if (d.layers - 1 - i) % 4 == 0 else WINDOW for i in range(d.layers)]


def laguna(d: Decoder) -> list[Block]:
    """Read Laguna: query heads of each layer, and a gate for each head or for each of its values."""
    f, listed = d.fields, kinds(d)
    by_head = f.raw("gating") in (None, True) or f.word("gating") == "per-head"
    gated = replace(d, family=replace(d.family, gate="head" if by_head else "full"))
    queries = f.numbers("num_attention_heads_per_layer") or [d.heads] * d.layers
    if len(queries) < d.layers:
        raise f.fail(f"num_attention_heads_per_layer names {len(queries)} layers, but there are {d.layers}")
    mixture, plain = experts(d), dense(d, dense_width(d))
    mixed = expert_layers(d) if "mlp_layer_types" in f else [i > 0 for i in range(d.layers)]
    layers = zip(listed, queries, mixed, strict=False)
    return [
        block_of(
            d,
            attention(gated, kind, Heads(count, d.kv_heads, d.head_dim, d.head_dim)),
            mixture if mixture and sparse else plain,
        )
        for kind, count, sparse in layers
    ]


def modernbert_decoder(d: Decoder) -> list[Block]:
    """Read ModernBERT's decoder: windows of half the stated width, no norm before the first attention."""
    f = d.fields
    step = f.number("global_attn_every_n_layers", default=3) or 3
    listed = (
        kinds(d, FULL, WINDOW) if f.words("layer_types") else [WINDOW if i % step else FULL for i in range(d.layers)]
    )
    window = f.number("local_attention", default=128) // 2
    made = {kind: attention(d, kind, window=window) for kind in (FULL, WINDOW)}
    feed = dense(d, d.ffn)
    return [block_of(d, made[kind], feed, norms=2 if i else 1) for i, kind in enumerate(listed)]


def modernbert_extra(d: Decoder) -> int:
    """Count the dense head with its norm, and the bias of the output."""
    f = d.fields
    return d.hidden * d.hidden + d.norm + (d.vocab if f.flag("decoder_bias", default=True) else 0)


def bamba(d: Decoder) -> list[Block]:
    """Read Bamba: Mamba-2 everywhere but in the layers that attn_layer_indices names."""
    if d.fields.raw("attn_layer_indices") or d.fields.words("layer_types"):
        return usual(d)
    mixer = mixers(d, [LINEAR])[LINEAR]
    return [block_of(d, mixer, dense(d, d.ffn))] * d.layers


def molmo_2_extra(d: Decoder) -> int:
    """Count the further rows of the input embedding."""
    d.lookup += d.fields.number("additional_vocab_size") * d.hidden
    return 0
