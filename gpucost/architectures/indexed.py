"""Families whose layers select by an indexer in ways of their own: A.X K2, Hy 4, dots 3, Mistral Large 4, MiniMax M3.

GLM 5 Next and Qwen 4 Exp mix such layers with recurrent ones. Each keeps the indexer's keys beside its cache.
"""

from dataclasses import replace

from gpucost.architectures.attention import FULL, LINEAR, WINDOW, Latent, Mixer, attention, latent, latent_of
from gpucost.architectures.decoder import Decoder
from gpucost.architectures.feedforward import experts, feeds
from gpucost.architectures.fields import Fields
from gpucost.architectures.layers import block_of, kinds
from gpucost.architectures.mixers import gated_delta, kimi_delta
from gpucost.architectures.sparse import indexed_layers
from gpucost.types import Block, Reach


def _mixed(d: Decoder, block: Block, mixing: int, scales: int) -> Block:
    """Add the mixing of the residual streams before the attention and before the feed-forward of a layer."""
    streams = d.fields.number("hc_mult", default=4)
    return replace(block, others=block.others + 2 * (mixing * streams * d.hidden + mixing + scales))


def axk_2(d: Decoder) -> list[Block]:
    """Read A.X K2: gates beside the queries from twice their rank, and norms with a low-rank gate."""
    n, h = latent_of(d), d.hidden
    d.fields.taken.add("layer_types")
    queries = n.heads * (n.nope + n.rope)
    own = latent(d, n)
    mixer = own._replace(weights=own.weights + n.query_rank * (queries + 2 * n.heads * n.value))
    gate = 2 * h * d.fields.number("gated_norm_rank", default=16)
    made = [(block_of(d, mixer, feed), 2 if feed.experts else 1) for feed in feeds(d)]
    return [replace(block, others=block.others + gates * gate) for block, gates in made]


def hy_4(d: Decoder) -> list[Block]:
    """Read Hy 4: gated latent attention with sinks, selections shared between layers, four residual streams."""
    d.fields.taken.add("layer_types")
    own, shared = latent(d, latent_of(d)), latent(d, latent_of(d), indexer=False)
    mixing = 2 * d.fields.number("hc_mult", default=4)
    layers = zip(indexed_layers(d), feeds(d), strict=True)
    return [_mixed(d, block_of(d, own if indexed else shared, feed), mixing, 2) for indexed, feed in layers]


def dots_3(d: Decoder) -> list[Block]:
    """Read dots 3: gated latent attention, with an indexer or, of other ranks, within a window."""
    f, n, near = d.fields, latent_of(d), latent_of(d)
    if "per_layer_config" not in f:  # which gives windowed layers ranks of their own
        width, nope = f.number("swa_head_dim", default=256), f.number("swa_qk_nope_head_dim", default=192)
        near = n._replace(
            heads=f.number("swa_num_attention_heads", default=64),
            nope=nope,
            query_rank=f.number("swa_q_lora_rank", default=1024),
            rank=f.number("swa_kv_lora_rank", default=1024),
            rope=f.number("swa_qk_rope_head_dim", default=width - nope),
            value=f.number("swa_v_head_dim", default=128),
        )
    made = {FULL: latent(d, n), WINDOW: latent(d, near, WINDOW, indexer=False)}
    normed = {kind: mixer._replace(others=mixer.others + n.rope) for kind, mixer in made.items()}
    usual = [FULL if i < 2 or i % 4 == 1 else WINDOW for i in range(d.layers)]
    listed = kinds(d, FULL, WINDOW) if f.words("layer_types") else usual
    return [block_of(d, normed[kind], feed) for kind, feed in zip(listed, feeds(d), strict=True)]


def mistral_large_4(d: Decoder) -> list[Block]:
    """Read Mistral Large 4: latents without rotary keys in some layers, read again by others, and selections shared."""
    f, n = d.fields, latent_of(d)
    f.taken.add("layer_types")
    step = f.number("no_rope_layer_interval", default=4)
    turning = f.numbers("no_rope_layers") or [(i + 1) % step if step else 1 for i in range(d.layers)]
    sources = f.numbers("kv_source_layers") or list(range(d.layers))
    if min(len(turning), len(sources)) < d.layers:
        raise f.fail(f"no_rope_layers and kv_source_layers must name all {d.layers} layers")
    kinds_of = zip(
        map(bool, turning), indexed_layers(d), (source == i for i, source in enumerate(sources)), strict=False
    )
    listed = list(kinds_of)
    made = {kind: _unranked(d, n, *kind) for kind in set(listed)}
    return [block_of(d, made[kind], feed) for kind, feed in zip(listed, feeds(d), strict=True)]


def _unranked(d: Decoder, ranks: Latent, turning: bool, indexed: bool, own: bool) -> Mixer:
    """Count one kind of layer of Mistral Large 4: queries of full rank, scales by length, and whose latent it reads."""
    heads = d.fields.number("index_n_heads")
    ranks = ranks if turning else ranks._replace(nope=ranks.nope + ranks.rope, rope=0)
    mixer = latent(d, ranks, indexer=indexed)
    mixer = mixer._replace(others=mixer.others + 2 * ranks.heads + (2 * d.hidden + 2 * heads if indexed else 0))
    return mixer if own else _reading(mixer, d.hidden, ranks.rank, ranks.rope)


def _reading(mixer: Mixer, hidden: int, rank: int, rope: int) -> Mixer:
    """Return a layer that attends to the latent of an earlier one: it makes none of its own."""
    first, *others = mixer.reaches
    return mixer._replace(
        weights=mixer.weights - hidden * (rank + rope),
        others=mixer.others - rank,
        reaches=(replace(first, cached_values=0), *others),
    )


def minimax_m3(d: Decoder) -> list[Block]:
    """Read MiniMax M3: grouped attention to blocks of keys that an indexer selects, in the layers named sparse."""
    f, own = d.fields, attention(d, FULL)
    part = f.part("sparse_attention_config") or Fields({}, f.file)
    heads = part.number("sparse_num_index_heads") or f.number("index_n_heads", default=4)
    width = part.number("sparse_index_dim") or f.number("index_head_dim", default=128)
    block = part.number("sparse_block_size") or f.number("index_block_size", default=128)
    most = part.number("sparse_topk_blocks") or f.number("index_topk_blocks", default=16)
    most += part.number("sparse_local_block") or f.number("index_local_blocks", default=1)
    words, often = f.words("layer_types"), part.numbers("sparse_attention_freq")
    sparse = ["sparse" in word for word in words] if words else [bool(item) for item in often or [0] * d.layers]
    if len(sparse) < d.layers:
        raise f.fail(f"names the kinds of {len(sparse)} layers, but there are {d.layers}")
    selected = Mixer(
        own.weights + d.hidden * (heads + 1) * width,
        own.others + 2 * width,
        (replace(own.reaches[0], looks_at_most=most * block), Reach(width, 2 * heads * width)),
    )
    return [block_of(d, selected if named else own, feed) for named, feed in zip(sparse, feeds(d), strict=False)]


def glm_5_next(d: Decoder) -> list[Block]:
    """Read GLM 5 Next: Kimi delta attention, and latents without rotary keys whose indexer pools its keys."""
    f, h = d.fields, d.hidden
    streams, pool = f.number("hc_mult", default=4), f.number("index_kpool", default=16)
    width = f.number("index_head_dim")
    own, shared = latent(d, latent_of(d)), latent(d, latent_of(d), indexer=False)
    first, *keys = own.reaches
    kept = tuple(replace(key, cached_values=2 * width + 1) for key in keys)  # keys, gates and whether they count
    pooled = own._replace(weights=own.weights + h * width, others=own.others + pool * width, reaches=(first, *kept))
    made = {LINEAR: kimi_delta(d), True: pooled, False: shared}
    layers = zip(kinds(d), indexed_layers(d), feeds(d), strict=True)
    mixing = (2 + streams) * streams
    return [_mixed(d, block_of(d, made[LINEAR if k == LINEAR else own_], feed), mixing, 3) for k, own_, feed in layers]


def qwen_4(d: Decoder) -> list[Block]:
    """Read Qwen 4 Exp: gated delta nets, attention with an indexer, gated residual streams, n-grams looked up."""
    f, h = d.fields, d.hidden
    streams, rank = f.number("hc_count", default=4), f.number("hc_lowrank", default=320)
    residual = 2 * streams * h * (1 + 2 * rank + streams)
    full = attention(d, FULL)
    heads, width = f.number("indexer_n_heads"), f.number("indexer_head_dim")
    if heads:
        budget = f.number("indexer_budget")
        full = full._replace(
            weights=full.weights + h * (heads + 1) * width,
            others=full.others + 2 * width,
            reaches=(replace(full.reaches[0], looks_at_most=budget), Reach(width, 2 * heads * width)),
        )
    f.raw("indexer_kv_heads", "indexer_compress_ratio", "number_of_conv_states")
    made, mixture = {LINEAR: gated_delta(d), FULL: full}, experts(d)
    looked_up = set(f.numbers("ple_layer_ids") or ())
    blocks = [block_of(d, made[kind], mixture, norms=0) for kind in kinds(d, LINEAR, FULL)]
    beside = [residual + (_looked_up(d, streams) if i + 1 in looked_up else 0) for i in range(d.layers)]
    return [replace(block, others=block.others + more) for block, more in zip(blocks, beside, strict=True)]


def _looked_up(d: Decoder, streams: int) -> int:
    """Count what turns looked-up n-grams into the streams of a layer; the tables are looked up, not multiplied by.

    Each table has as many rows as the next prime above `ngram_vocab_size_base`: that many, to a millionth.
    """
    f, h = d.fields, d.hidden
    width = f.number("ple_embed_dim") or h
    d.lookup += f.number("ngram_vocab_size_base", default=20_000_000) * width
    f.raw("ngram_size", "heads_per_ngram", "split_ngram_parts", "make_ngram_vocab_size_divisible_by")
    return width * (streams + 1) * h + streams * h * (3 + f.number("ple_conv_kernel_size", default=4))


def qwen_4_extra(d: Decoder) -> int:
    """Count the mixer that joins the residual streams at the end; there is no other norm."""
    streams, rank = d.fields.number("hc_count", default=4), d.fields.number("hc_lowrank", default=320)
    return streams * d.hidden * (1 + 2 * rank)
