"""Families of latent, compressed, indexed or shared caches: DeepSeek 3.2 and 4, GLM 5, LongCat, Gemma 3n, 4, MiMo."""

from dataclasses import replace

from gpucost.architectures.attention import FULL, WINDOW, Heads, Mixer, attention, heads_of, latent, latent_of
from gpucost.architectures.decoder import Decoder
from gpucost.architectures.feedforward import dense, dense_width, expert_layers, experts, feeds
from gpucost.architectures.layers import block_of, kinds
from gpucost.types import Block, Reach

_COMPRESSED = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128, "sliding_attention": 0}


def deepseek_v32(d: Decoder) -> list[Block]:
    """Read DeepSeek sparse attention; layers that share an earlier layer's selection have no indexer (GLM 5.2)."""
    d.fields.taken.add("layer_types")  # all alike
    own, shared = latent(d, latent_of(d)), latent(d, latent_of(d), indexer=False)
    layers = zip(indexed_layers(d), feeds(d), strict=True)
    return [block_of(d, own if indexed else shared, feed) for indexed, feed in layers]


def indexed_layers(d: Decoder) -> list[bool]:
    """Return for every layer whether it runs an indexer of its own, or shares the selection of an earlier one."""
    f = d.fields
    words = f.words("indexer_types")
    pattern = f.word("index_topk_pattern")
    if words is None and pattern:
        words = ["full" if sign == "f" else "shared" for sign in pattern]
    if words is not None:
        if len(words) < d.layers:
            raise f.fail(f"indexer_types names {len(words)} layers, but there are {d.layers}")
        return [word == "full" for word in words[: d.layers]]
    step, offset = max(1, f.number("index_topk_freq", default=1)), f.number("index_skip_topk_offset", default=2)
    return [max(i - offset + 1, 0) % step == 0 for i in range(d.layers)]


def deepseek_v4(d: Decoder) -> list[Block]:
    """Read DeepSeek V4: one shared key-value head, a window everywhere, compressed entries beside it."""
    d.fields.taken.add("mlp_layer_types")  # mixtures all; some choose their experts by a hash
    mixture = experts(d)
    streams = d.fields.number("hc_mult", default=4)
    mixing = (2 + streams) * streams
    hyper = 2 * (mixing * streams * d.hidden + mixing + 3)
    layers = []
    for ratio in _ratios(d):
        block = block_of(d, _compressed(d, ratio), mixture)
        layers.append(replace(block, others=block.others + hyper))
    return layers


def streams_extra(d: Decoder) -> int:
    """Count the head that joins the hyper-connected streams."""
    streams = d.fields.number("hc_mult", default=4)
    return streams * streams * d.hidden + streams + 1


def _ratios(d: Decoder) -> list[int]:
    f, count = d.fields, d.layers
    given = f.numbers("compress_ratios")
    words = f.words("layer_types")
    if given is None and words is not None:
        rates = f.part("compress_rates")
        known = {**_COMPRESSED, **{word: rates.number(word) for word in _COMPRESSED if rates and word in rates}}
        if strange := [word for word in words if word not in known]:
            raise f.fail(f"layer_types names {strange[0]!r:.40}, which DeepSeek V4 does not have")
        given = [known[word] for word in words]
    if given is None:
        given = [128 if i < 2 or i % 2 == 0 else 4 for i in range(count)]
    if len(given) < count:
        raise f.fail(f"compress_ratios names {len(given)} layers, but there are {count}")
    return given[:count]


def _compressed(d: Decoder, ratio: int) -> Mixer:
    """Count one layer: low-rank queries, one key that is its value, a grouped low-rank output, the compressor."""
    f, h, width = d.fields, d.hidden, d.head_dim
    rank, output, groups = f.number("q_lora_rank"), f.number("o_lora_rank"), f.number("o_groups", default=8)
    weights = rank * (h + d.heads * width) + h * width + output * d.heads * width + h * groups * output
    others, flop = d.heads + rank + width, 4 * d.heads * width
    reaches = [Reach(width, flop, d.window)]
    if ratio:
        double = 2 if f.number("index_n_heads") and ratio <= 16 else 1
        weights += 2 * h * double * width
        others += ratio * double * width + width
        top = f.number("index_topk") if double == 2 else 0
        reaches.append(Reach(width, flop, tokens_per_entry=ratio, looks_at_most=top))
        if double == 2:
            heads, index = f.number("index_n_heads"), f.number("index_head_dim", default=128)
            weights += 4 * h * index + rank * heads * index + h * heads
            others += ratio * 2 * index + index
            reaches.append(Reach(index, 2 * heads * index, tokens_per_entry=ratio))
    return Mixer(weights, others, tuple(reaches))


def axk_1(d: Decoder) -> list[Block]:
    """Read A.X K1: DeepSeek V3 with a norm after each mixture of experts."""
    mixer = latent(d)
    return [block_of(d, mixer, feed, norms=3 if feed.experts else 2) for feed in feeds(d)]


def longcat(d: Decoder) -> list[Block]:
    """Read LongCat: two latent attentions and two dense feed-forwards a layer, experts of which some do nothing."""
    f, mixer = d.fields, latent(d)
    real, empty = f.number("n_routed_experts"), f.number("zero_expert_num")
    mixture = experts(d)
    if mixture is None:
        raise f.fail("LongCat needs n_routed_experts and moe_topk")
    mixture = mixture._replace(
        per_token=mixture.per_token * real / (real + empty),
        router=(real + empty) * d.hidden,
        others=real + empty,
        dense=2 * 3 * d.hidden * f.number("ffn_hidden_size", "intermediate_size"),
    )
    twice = Mixer(2 * mixer.weights, 2 * mixer.others, mixer.reaches * 2)
    return [block_of(d, twice, mixture, norms=4)] * d.layers


def longcat_extra(d: Decoder) -> int:
    """Count the embeddings of token n-grams where the model has them (LongCat Flash Lite, arXiv:2601.21204).

    Every table of width h ÷ tables has ratio · vocabulary + 2·i + 1 rows and a projection to the stream.
    """
    f = d.fields
    ratio, tables = f.number("ngram_vocab_size_ratio"), f.number("emb_split_num") * (f.number("emb_neighbor_num") - 1)
    if not ratio:
        return 0
    if tables <= 0 or d.hidden % tables:
        raise f.fail("ngram_vocab_size_ratio needs emb_split_num and emb_neighbor_num, whose tables share the width")
    d.lookup += (ratio * d.vocab + tables) * d.hidden
    return d.hidden * d.hidden


def gemma_3n(d: Decoder) -> list[Block]:
    """Read Gemma 3n: alternating updates, low-rank residuals, layer embeddings; the last layers share caches."""
    f, h = d.fields, d.hidden
    inputs, rank, small = f.number("altup_num_inputs"), f.number("laurel_rank"), f.number("hidden_size_per_layer_input")
    beside = 2 * h + inputs * inputs + inputs**3 + inputs * h + 2 * rank * h + h + 2 * small * h + h
    widths = f.numbers("intermediate_size") or [d.ffn] * d.layers
    shared = f.number("num_kv_shared_layers")
    layers = []
    for i, kind in enumerate(kinds(d)):
        mixer = attention(d, kind, keeps=i < d.layers - shared)
        block = block_of(d, mixer, dense(d, widths[min(i, len(widths) - 1)]))
        layers.append(replace(block, others=block.others + beside))
    return layers


def gemma_3n_extra(d: Decoder) -> int:
    """Count the projections of the alternating updates and the embeddings that every layer looks up."""
    return 2 * (max(d.fields.number("altup_num_inputs"), 1) - 1) * d.hidden * d.hidden + layer_embeddings(d)


def layer_embeddings(d: Decoder) -> int:
    """Count the embeddings that every layer looks up."""
    small = d.fields.number("hidden_size_per_layer_input")
    joint = small * d.layers
    d.lookup += joint * (d.fields.number("vocab_size_per_layer_input") or d.vocab) if small else 0
    return joint * d.hidden + small


def gemma_4(d: Decoder) -> list[Block]:
    """Read Gemma 4: wider heads in its global layers, keys that are values there, shared caches, experts beside."""
    f, h, small = d.fields, d.hidden, d.fields.number("hidden_size_per_layer_input")
    listed, equal = kinds(d), f.flag("attention_k_eq_v") or d.kind.startswith("gemma4_unified")
    if listed:
        listed[-1] = FULL
    first_shared = d.layers - f.number("num_kv_shared_layers")
    mixture = experts(d) if f.flag("enable_moe_block") else None
    layers = []
    for i, kind in enumerate(listed):
        keeps = i < first_shared
        equal_here = equal and kind == FULL and f.flag("attention_k_eq_v")
        mixer = attention(d, kind, _gemma_4_heads(d, kind, equal), keeps=keeps, shared_values=equal_here)
        wide = 2 if f.flag("use_double_wide_mlp") and not keeps else 1
        block = block_of(d, mixer, dense(d, wide * d.ffn), norms=4 + (3 if mixture else 0) + (1 if small else 0))
        if mixture:
            block = mixture.into(block)
            block = replace(block, others=block.others + h + mixture.experts)
        layers.append(replace(block, others=block.others + 2 * small * h))
    return layers


def _gemma_4_heads(d: Decoder, kind: str, equal: bool) -> Heads:
    usual = heads_of(d)
    if kind == WINDOW:
        return usual
    width = d.fields.number("global_head_dim", default=512)
    keys = d.fields.number("num_global_key_value_heads") if equal else 0
    return Heads(usual.queries, keys or usual.keys, width, width)


def mimo_v2(d: Decoder) -> list[Block]:
    """Read MiMo V2: windowed layers with heads and sinks of their own."""
    f, usual = d.fields, heads_of(d)
    f.taken.update(("add_swa_attention_sink_bias", "add_full_attention_sink_bias"))
    windowed = Heads(
        f.number("swa_num_attention_heads", default=usual.queries),
        f.number("swa_num_key_value_heads", default=8),
        f.number("swa_head_dim", default=usual.key_dim),
        f.number("swa_v_head_dim", default=usual.value_dim),
    )
    made = {FULL: attention(d, FULL, usual), WINDOW: attention(d, WINDOW, windowed)}
    return [block_of(d, made[kind], feed) for kind, feed in zip(kinds(d, FULL, WINDOW), feeds(d), strict=True)]


def step_3_5(d: Decoder) -> list[Block]:
    """Read Step 3.5: windowed layers may have other query heads; the first layers are dense."""
    f, mixture, plain = d.fields, experts(d), dense(d, dense_width(d))
    usual, other = heads_of(d), f.part("attention_other_setting")
    queries = other.number("num_attention_heads") if other else f.number("num_sliding_attention_heads")
    windowed = usual._replace(queries=queries or usual.queries)
    if other and other.number("num_attention_groups"):
        windowed = windowed._replace(keys=other.number("num_attention_groups"))
    mixed = (
        expert_layers(d) if {"moe_layers_enum", "mlp_layer_types"} & set(f.values) else [i > 2 for i in range(d.layers)]
    )
    made = {FULL: attention(d, FULL, usual), WINDOW: attention(d, WINDOW, windowed)}
    layers = zip(kinds(d, FULL, WINDOW), mixed, strict=True)
    corrected = mixture._replace(others=mixture.experts) if mixture else None
    return [block_of(d, made[kind], corrected if sparse else plain) for kind, sparse in layers]
