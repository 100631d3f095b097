"""Families unlike the plain decoder in a few things: older ones, and those whose layers have shapes of their own."""

from dataclasses import replace

from gpucost.architectures.attention import CHUNK, FULL, Heads, Mixer, attention
from gpucost.architectures.decoder import Decoder
from gpucost.architectures.feedforward import FeedForward, dense, expert_layers, experts
from gpucost.architectures.fields import Fields
from gpucost.architectures.layers import block_of, kinds, mixers, usual
from gpucost.types import Block


def llama_4(d: Decoder) -> list[Block]:
    """Read Llama 4: every n-th layer a mixture with one shared expert, chunked attention but for every fourth layer."""
    f, width = d.fields, d.fields.number("intermediate_size")
    listed = f.words("layer_types")
    no_rope, step = f.numbers("no_rope_layers"), f.number("no_rope_layer_interval", default=4) or 4
    chunked = no_rope if no_rope and len(no_rope) >= d.layers else [(i + 1) % step for i in range(d.layers)]
    places = kinds(d) if listed else [CHUNK if item and d.window else FULL for item in chunked[: d.layers]]
    made = mixers(d, places)
    count, per_token = f.number("num_local_experts"), f.number("num_experts_per_tok", default=1)
    matrix = 3 * d.hidden * width
    mixture = FeedForward(experts=count, per_token=per_token, expert=matrix, shared=matrix, router=count * d.hidden)
    plain = dense(d, f.number("intermediate_size_mlp") or width)
    named, pace = f.numbers("moe_layers"), max(1, f.number("interleave_moe_layer_step", default=1))
    sparse = set(named) if named else {i for i in range(d.layers) if (i + 1) % pace == 0}
    return [block_of(d, made[kind], mixture if i in sparse else plain) for i, kind in enumerate(places)]


def ernie(d: Decoder) -> list[Block]:
    """Read ERNIE 4.5: one bias switch for everything, routed experts for images beside those for text."""
    f = d.fields
    biased = f.flag("use_bias")
    bare = replace(d, family=replace(d.family, mlp_bias=biased))
    counts, widths = f.numbers("moe_num_experts"), f.numbers("moe_intermediate_size")
    if not (f.number("moe_num_experts") or counts):
        return [block_of(bare, attention(bare, FULL), dense(bare, d.ffn))] * d.layers
    counts, widths = counts or [f.number("moe_num_experts")], widths or [f.number("moe_intermediate_size")]
    if not (sum(counts) and sum(widths)):
        raise f.fail("has moe_num_experts, but no moe_intermediate_size")
    if len(widths) > 1 and len(counts) == 1:
        counts = counts * len(widths)
    mixture = _ernie_experts(d, counts, widths)
    plain, mixer = dense(bare, d.ffn), attention(d, FULL)
    return [block_of(d, mixer, mixture if mixed else plain) for mixed in _ernie_layers(d)]


def _ernie_experts(d: Decoder, counts: list[int], widths: list[int]) -> FeedForward:
    """Count the experts of every modality; a token visits those of its own."""
    per_token = d.fields.number("moe_k", default=2)
    weights = [3 * d.hidden * width for width in widths]
    total = sum(count * weight for count, weight in zip(counts, weights, strict=False))
    shared = d.fields.number("moe_num_shared_experts") * weights[0]
    # the experts of images, as so many more of the text experts' size, none of which a text token visits
    number = total / weights[0]
    whole = int(number) if number == int(number) else 0
    if whole:
        return FeedForward(
            experts=whole,
            per_token=per_token,
            expert=weights[0],
            shared=shared,
            router=sum(counts) * d.hidden,
            others=sum(counts),
        )
    share = per_token * weights[0] / (total / sum(counts))
    return FeedForward(
        experts=sum(counts),
        per_token=share,
        expert=total // sum(counts),
        shared=shared,
        router=sum(counts) * d.hidden,
        others=sum(counts),
    )


def _ernie_layers(d: Decoder) -> list[bool]:
    f = d.fields
    if f.words("mlp_layer_types"):
        return expert_layers(d)
    starts, ends = f.numbers("moe_layer_start_index"), f.numbers("moe_layer_end_index")
    start = min(starts) if starts else f.number("moe_layer_start_index", default=1)
    end = (
        d.layers - 1
        if f.values.get("moe_layer_end_index") in (None, -1)
        else max(ends or [f.number("moe_layer_end_index")])
    )
    step = max(1, f.number("moe_layer_interval", default=1))
    return [start <= i <= end and (i + 1) % step == 0 for i in range(d.layers)]


def hunyuan_v1(d: Decoder) -> list[Block]:
    """Read Hunyuan's small models: norms of queries and keys always."""
    return usual(replace(d, family=replace(d.family, qk_norm="head")))


def hunyuan(d: Decoder) -> list[Block]:
    """Read Hunyuan Large: pairs of layers share one cache where cross-layer attention is on."""
    share = d.fields.number("cla_share_factor", default=2) if d.fields.flag("use_cla") else 1
    owner, reader = attention(d, FULL), attention(d, FULL, keeps=False)
    mixture, plain = experts(d), dense(d, d.ffn)
    return [block_of(d, reader if i % max(share, 1) else owner, mixture or plain) for i in range(d.layers)]


def falcon(d: Decoder) -> list[Block]:
    """Read Falcon: one norm where attention and feed-forward stand side by side, two in the larger ones."""
    f = d.fields
    new = f.flag("new_decoder_architecture")
    parallel = f.flag("parallel_attn", default=True)
    two = f.number("num_ln_in_parallel_attn", default=2) == 2 if new else not parallel
    biased = f.flag("bias")
    bare = replace(d, family=replace(d.family, mlp_bias=biased))
    return [block_of(d, attention(d, FULL), dense(bare, d.ffn), norms=2 if two else 1)] * d.layers


def gpt_oss(d: Decoder) -> list[Block]:
    """Read gpt-oss: biases in every expert and in the router, every second layer within a window."""
    mixture = experts(d)
    if mixture is None:
        raise d.fields.fail("gpt-oss needs num_local_experts")
    width = d.fields.number("intermediate_size")
    mixture = mixture._replace(expert=mixture.expert + 2 * width + d.hidden, router=mixture.router + mixture.experts)
    listed = kinds(d)
    made = mixers(d, listed)
    return [block_of(d, made[kind], mixture) for kind in listed]


def internlm_3(d: Decoder) -> list[Block]:
    """Read InternLM 3: qkv_bias for queries, keys and values, bias for the rest."""
    f = d.fields
    parts = ("qkv" if f.flag("qkv_bias") else "") + ("o" if f.flag("bias") else "")
    bare = replace(d, family=replace(d.family, bias=parts or "-", mlp_bias=f.flag("bias")))
    return [block_of(bare, attention(bare, FULL), dense(bare, d.ffn))] * d.layers


def hyperclovax(d: Decoder) -> list[Block]:
    """Read HyperCLOVA X: two more norms a layer where use_post_norm says so."""
    norms = 4 if d.fields.flag("use_post_norm") else 2
    return [block_of(d, attention(d, FULL), dense(d, d.ffn), norms=norms)] * d.layers


def stablelm(d: Decoder) -> list[Block]:
    """Read StableLM: one norm where attention and feed-forward stand side by side, norms of each head by switch."""
    f = d.fields
    mixer = attention(d, FULL)
    if f.flag("qk_layernorm"):
        mixer = mixer._replace(others=mixer.others + (d.heads + d.kv_heads) * d.head_dim)
    return [block_of(d, mixer, dense(d, d.ffn), norms=1 if f.flag("use_parallel_residual") else 2)] * d.layers


def opt(d: Decoder) -> list[Block]:
    """Read OPT: biases unless switched off."""
    if d.fields.flag("enable_bias", default=True):
        return usual(d)
    return usual(replace(d, family=replace(d.family, bias="-", mlp_bias=False)))


def opt_extra(d: Decoder) -> int:
    """Count the projections around narrow embeddings, and take back the final norm of the post-norm model (350m)."""
    width = d.fields.number("word_embed_proj_dim") or d.hidden
    no_final = not d.fields.flag("do_layer_norm_before", default=True) or d.fields.flag("_remove_final_layer_norm")
    return (2 * width * d.hidden if width != d.hidden else 0) - (d.norm if no_final else 0)


def xglm(d: Decoder) -> list[Block]:
    """Read XGLM, whose positions are computed."""
    return [block_of(d, attention(d, FULL), dense(d, d.fields.number("ffn_dim")))] * d.layers


def mpt(d: Decoder) -> list[Block]:
    """Read MPT: the key-value heads and the feed-forward's width stand in nested parts."""
    f = d.fields
    nested = f.part("attn_config") or Fields({}, f.file)
    keys = nested.number("kv_n_heads") or (1 if nested.word("attn_type") == "multiquery_attention" else d.heads)
    width = int(f.ratio("expansion_ratio", 4.0) * d.hidden)
    return [block_of(d, attention(d, FULL, Heads(d.heads, keys, d.head_dim, d.head_dim)), dense(d, width))] * d.layers


def mpt_extra(d: Decoder) -> int:
    """Count learned positions where ALiBi is off."""
    nested = d.fields.part("attn_config")
    learned = d.fields.flag("learned_pos_emb", default=True) and nested and nested.values.get("alibi") is False
    d.lookup += d.fields.number("max_seq_len") * d.hidden if learned else 0
    return 0


def dbrx(d: Decoder) -> list[Block]:
    """Read DBRX: key-value heads and experts stand in nested parts."""
    f = d.fields
    heads, ffn = f.part("attn_config") or f, f.part("ffn_config") or f
    count, per_token = ffn.number("moe_num_experts", default=4), ffn.number("moe_top_k", default=1)
    mixture = FeedForward(
        experts=count,
        per_token=per_token,
        expert=3 * d.hidden * ffn.number("ffn_hidden_size", default=3584),
        router=count * d.hidden,
    )
    keys = heads.number("kv_n_heads") or 1
    return [block_of(d, attention(d, FULL, Heads(d.heads, keys, d.head_dim, d.head_dim)), mixture)] * d.layers


def mllama(d: Decoder) -> list[Block]:
    """Read Llama 3.2 Vision: some layers attend to the image and keep nothing of the text; 8 further input rows."""
    crossing = set(d.fields.numbers("cross_attention_layers") or (3, 8, 13, 18, 23, 28, 33, 38))
    d.lookup += 8 * d.hidden
    own = attention(d, FULL)
    cross = Mixer(own.weights, 2 * d.head_dim + 2, ())
    return [block_of(d, cross if i in crossing else own, dense(d, d.ffn)) for i in range(d.layers)]


def jetmoe(d: Decoder) -> list[Block]:
    """Read JetMoE: attention heads are experts too; keys and values are shared by them."""
    f = d.fields
    keys, count = f.number("num_key_value_heads"), f.number("num_local_experts")
    per_token = f.number("num_experts_per_tok")
    joint = keys * d.fields.number("kv_channels", "head_dim")
    visited = 2 * d.hidden * joint
    mixer = attention(d, FULL, Heads(keys * per_token, keys, joint // max(keys, 1), joint // max(keys, 1)))
    mixer = Mixer(2 * d.hidden * joint, d.hidden, mixer.reaches)
    expert = visited + 3 * d.hidden * f.number("intermediate_size")
    mixture = FeedForward(
        experts=count, per_token=per_token, expert=expert, router=2 * count * d.hidden, others=d.hidden
    )
    return [block_of(d, mixer, mixture)] * d.layers


def openelm(d: Decoder) -> list[Block]:
    """Read OpenELM: heads and feed-forward widths of each layer."""
    f = d.fields
    queries, keys = f.numbers("num_query_heads") or [], f.numbers("num_kv_heads") or []
    factors, step = f.raw("ffn_multipliers"), f.number("ffn_dim_divisor", default=256) or 256
    if not (len(queries) == len(keys) == d.layers and isinstance(factors, list) and len(factors) == d.layers):
        raise f.fail("needs num_query_heads, num_kv_heads and ffn_multipliers, one for each layer")
    if not all(isinstance(item, (int, float)) and 0 < item < 100 for item in factors):
        raise f.fail("ffn_multipliers must be positive numbers")
    normed = replace(d, family=replace(d.family, qk_norm="head" if f.flag("normalize_qk_projections") else ""))
    layers = []
    for q, kv, factor in zip(queries, keys, factors, strict=True):
        width = max(step, int(factor * d.hidden + step / 2) // step * step)
        width += step if width < 0.9 * factor * d.hidden else 0
        layers.append(block_of(d, attention(normed, FULL, Heads(q, kv, d.head_dim, d.head_dim)), dense(d, width)))
    return layers


def block_configs(d: Decoder) -> list[Block]:
    """Read Nemotron-NAS: every layer has heads, or a linear map, or nothing, and a feed-forward of its own width."""
    f = d.fields
    listed = f.raw("block_configs")
    if not isinstance(listed, list) or not listed or len(listed) > 4096:
        raise f.fail("needs block_configs, a list with one entry for each layer")
    if len(listed) != d.layers or not all(isinstance(item, dict) and item for item in listed):
        raise f.fail(f"block_configs names {len(listed)} layers, but there are {d.layers}")
    return [_searched(d, Fields(item, f.file)) for item in listed]


def _searched(d: Decoder, item: Fields) -> Block:
    mixer, feed, norms, h = Mixer(0), FeedForward(), 0, d.hidden
    own, wide = item.part("attention"), item.part("ffn")
    if own and own.flag("replace_with_linear"):
        mixer, norms = Mixer(h * h), 1
    elif own and not own.flag("no_op"):
        group = own.number("n_heads_in_group", default=1) or 1
        mixer, norms = attention(d, FULL, Heads(d.heads, max(1, d.heads // group), d.head_dim, d.head_dim)), 1
    if wide and wide.flag("replace_with_linear"):
        feed, norms = FeedForward(dense=h * h), norms + 1
    elif wide and not wide.flag("no_op"):
        factor = wide.ratio("ffn_mult", 0.0)
        width = wide.number("intermediate_size") or -(-int(2 * factor * h / 3) // 256) * 256
        feed, norms = dense(d, width), norms + 1
    return block_of(d, mixer, feed, norms=norms)


def grok(d: Decoder) -> list[Block]:
    """Read Grok: four norms a layer, and in Grok 2 a dense feed-forward beside the experts."""
    listed = kinds(d)
    made, mixture = mixers(d, listed), experts(d)
    beside = dense(d, d.ffn) if d.fields.flag("residual_moe") else None
    return [block_of(d, made[kind], mixture or dense(d, d.ffn), beside if mixture else None) for kind in listed]


def arctic(d: Decoder) -> list[Block]:
    """Read Arctic: a dense residual feed-forward as wide as the stream beside the experts of every n-th layer."""
    f, mixture, mixer = d.fields, experts(d), attention(d, FULL)
    step = max(1, f.number("moe_layer_frequency", default=2))
    beside = dense(d, d.hidden) if f.flag("use_residual", "parallel_attn_mlp_res") else None
    plain = dense(d, d.ffn)
    mixed = block_of(d, mixer, mixture, beside, norms=3 if beside else 2)
    return [mixed if (i + 1) % step == 0 else block_of(d, mixer, plain) for i in range(d.layers)]


def chameleon(d: Decoder) -> list[Block]:
    """Read Chameleon: norms with biases over each head of queries and keys."""
    mixer = attention(d, FULL)
    mixer = mixer._replace(others=mixer.others + 2 * (d.heads + d.kv_heads) * d.head_dim)
    return [block_of(d, mixer, dense(d, d.ffn))] * d.layers
