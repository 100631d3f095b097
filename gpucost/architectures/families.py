"""The families of models: what each implies, and the rules for layers unlike a plain decoder's.

`FAMILIES`, at the end, has the traits of each family that differ from Llama's; `model_types.csv` says which family a
`model_type` belongs to. A type that is not listed is read by its keys as a plain decoder, and a warning says so.
"""

from functools import cache

from msgspec.structs import replace

from gpucost.architectures.config import MOST_LAYERS, Fields
from gpucost.architectures.layers import (
    CHUNK,
    FULL,
    LINEAR,
    WINDOW,
    Decoder,
    Family,
    FeedForward,
    Heads,
    Mixer,
    attention,
    block_of,
    dense,
    dense_width,
    expert_layers,
    experts,
    feeds,
    gated_delta,
    heads_for,
    heads_of,
    kimi_delta,
    kinds,
    latent,
    latent_of,
    mamba2,
    mixers,
    recurrent_unit,
    usual,
)
from gpucost.gate import beside
from gpucost.types import Block, Reach

# --- Families unlike the plain decoder in a few things: older ones, and those whose layers have shapes of their own.


def _llama_4(d: Decoder) -> list[Block]:
    """Read Llama 4: every n-th layer a mixture with one shared expert, chunked attention but for every fourth layer."""
    f, width = d.fields, d.fields.number("intermediate_size")
    listed = f.words("layer_types")
    # layers that turn positions (1) attend within a chunk, those that do not (0) to everything
    no_rope, step = f.numbers("no_rope_layers"), f.number("no_rope_layer_interval", default=4) or 4
    chunked = no_rope if no_rope and len(no_rope) >= d.layers else [(i + 1) % step for i in range(d.layers)]
    places = kinds(d) if listed else [CHUNK if item and d.window else FULL for item in chunked[: d.layers]]
    mixers_by_kind = mixers(d, places)
    count, per_token = f.number("num_local_experts"), f.number("num_experts_per_tok", default=1)
    matrix = 3 * d.hidden * width  # of a routed expert, and of the shared one
    mixture = FeedForward(experts=count, per_token=per_token, expert=matrix, shared=matrix, router=count * d.hidden)
    plain = dense(d, f.number("intermediate_size_mlp") or width)
    listed_mixtures, pace = f.numbers("moe_layers"), max(1, f.number("interleave_moe_layer_step", default=1))
    sparse = set(listed_mixtures) if listed_mixtures else {i for i in range(d.layers) if (i + 1) % pace == 0}
    return [block_of(d, mixers_by_kind[kind], mixture if i in sparse else plain) for i, kind in enumerate(places)]


def _ernie(d: Decoder) -> list[Block]:
    """Read ERNIE 4.5: one bias switch for everything, routed experts for images beside those for text."""
    f = d.fields
    biased = f.flag("use_bias")
    # dense feed-forwards have them as well; a list has an entry for text and one for images
    bare = replace(d, family=replace(d.family, mlp_bias=biased))
    counts, widths = f.numbers("moe_num_experts"), f.numbers("moe_intermediate_size")
    if not (f.number("moe_num_experts") or counts):
        return [block_of(bare, attention(bare, FULL), dense(bare, d.ffn))] * d.layers
    counts, widths = counts or [f.number("moe_num_experts")], widths or [f.number("moe_intermediate_size")]
    if not (sum(counts) and sum(widths)):
        raise f.fail("has moe_num_experts, but no moe_intermediate_size")
    if len(widths) > 1 and len(counts) == 1:  # as many of either width
        counts = counts * len(widths)
    mixture = _ernie_experts(d, counts, widths)
    plain, mixer = dense(bare, d.ffn), attention(d, FULL)
    if f.words("mlp_layer_types"):
        sparse = expert_layers(d)
    else:  # from the first start to the last end of either modality
        starts, ends = f.numbers("moe_layer_start_index"), f.numbers("moe_layer_end_index")
        start = min(starts) if starts else f.number("moe_layer_start_index", default=1)
        to_last = f.values.get("moe_layer_end_index") in (None, -1)
        end = d.layers - 1 if to_last else max(ends or [f.number("moe_layer_end_index")])
        step = max(1, f.number("moe_layer_interval", default=1))
        sparse = [start <= i <= end and (i + 1) % step == 0 for i in range(d.layers)]
    return [block_of(d, mixer, mixture if mixed else plain) for mixed in sparse]


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
    # Counts that do not come out even: experts of the mean size, of which a text token visits less than it names.
    share = per_token * weights[0] / (total / sum(counts))
    return FeedForward(
        experts=sum(counts),
        per_token=share,
        expert=total // sum(counts),
        shared=shared,
        router=sum(counts) * d.hidden,
        others=sum(counts),
    )


def _hunyuan(d: Decoder) -> list[Block]:
    """Read Hunyuan Large: pairs of layers share one cache where cross-layer attention is on."""
    share = d.fields.number("cla_share_factor", default=2) if d.fields.flag("use_cla") else 1
    # the first layer of each group makes keys and values, the others have queries alone (arXiv:2411.02265)
    owner, reader = attention(d, FULL), attention(d, FULL, keeps=False)
    mixture, plain = experts(d), dense(d, d.ffn)
    return [block_of(d, reader if i % max(share, 1) else owner, mixture or plain) for i in range(d.layers)]


def _falcon(d: Decoder) -> list[Block]:
    """Read Falcon: one norm where attention and feed-forward stand side by side, two in the larger ones."""
    f = d.fields
    new = f.flag("new_decoder_architecture")
    parallel = f.flag("parallel_attn", default=True)
    # one for both in 7B, two in 40B, of the new architecture, and one again in 11B, whose file says so
    two = f.number("num_ln_in_parallel_attn", default=2) == 2 if new else not parallel
    biased = f.flag("bias")
    bare = replace(d, family=replace(d.family, mlp_bias=biased))
    return [block_of(d, attention(d, FULL), dense(bare, d.ffn), norms=2 if two else 1)] * d.layers


def _gpt_oss(d: Decoder) -> list[Block]:
    """Read gpt-oss: biases in every expert and in the router, every second layer within a window."""
    mixture = experts(d)
    if mixture is None:
        raise d.fields.fail("gpt-oss needs num_local_experts")
    # biases of gate, up and down belong to an expert: a token meets those of the experts that it visits
    width = d.fields.number("intermediate_size")
    mixture = mixture._replace(expert=mixture.expert + 2 * width + d.hidden, router=mixture.router + mixture.experts)
    listed = kinds(d)
    mixers_by_kind = mixers(d, listed)
    return [block_of(d, mixers_by_kind[kind], mixture) for kind in listed]


def _internlm_3(d: Decoder) -> list[Block]:
    """Read InternLM 3: qkv_bias for queries, keys and values, bias for the rest."""
    f = d.fields
    # "-" is a bias of nothing: an empty one would leave it to attention_bias
    parts = ("qkv" if f.flag("qkv_bias") else "") + ("o" if f.flag("bias") else "")
    bare = replace(d, family=replace(d.family, bias=parts or "-", mlp_bias=f.flag("bias")))
    return [block_of(bare, attention(bare, FULL), dense(bare, d.ffn))] * d.layers


def _hyperclovax(d: Decoder) -> list[Block]:
    """Read HyperCLOVA X: two more norms a layer where use_post_norm says so."""
    norms = 4 if d.fields.flag("use_post_norm") else 2
    return [block_of(d, attention(d, FULL), dense(d, d.ffn), norms=norms)] * d.layers


def _stablelm(d: Decoder) -> list[Block]:
    """Read StableLM: one norm where attention and feed-forward stand side by side, norms of each head by switch."""
    f = d.fields
    mixer = attention(d, FULL)
    if f.flag("qk_layernorm"):  # a vector for each head, where others share one
        mixer = mixer._replace(others=mixer.others + (d.heads + d.kv_heads) * d.head_dim)
    return [block_of(d, mixer, dense(d, d.ffn), norms=1 if f.flag("use_parallel_residual") else 2)] * d.layers


def _opt(d: Decoder) -> list[Block]:
    """Read OPT: biases unless switched off."""
    if d.fields.flag("enable_bias", default=True):
        return usual(d)
    return usual(replace(d, family=replace(d.family, bias="-", mlp_bias=False)))


def _opt_extra(d: Decoder) -> int:
    """Count the projections around narrow embeddings, and take back the final norm of the post-norm model (350m)."""
    width = d.fields.number("word_embed_proj_dim") or d.hidden
    # the projections from the table's width to the stream's and back
    no_final = not d.fields.flag("do_layer_norm_before", default=True) or d.fields.flag("_remove_final_layer_norm")
    return (2 * width * d.hidden if width != d.hidden else 0) - (d.norm if no_final else 0)


def _xglm(d: Decoder) -> list[Block]:
    """Read XGLM, whose positions are computed."""
    return [block_of(d, attention(d, FULL), dense(d, d.fields.number("ffn_dim")))] * d.layers


def _mpt(d: Decoder) -> list[Block]:
    """Read MPT: the key-value heads and the feed-forward's width stand in nested parts."""
    f = d.fields
    nested = f.part("attn_config") or Fields({}, f.file)  # a file without it means its class's: as many as heads
    keys = nested.number("kv_n_heads") or (1 if nested.word("attn_type") == "multiquery_attention" else d.heads)
    width = int(f.ratio("expansion_ratio", 4.0) * d.hidden)
    return [block_of(d, attention(d, FULL, Heads(d.heads, keys, d.head_dim, d.head_dim)), dense(d, width))] * d.layers


def _mpt_extra(d: Decoder) -> int:
    """Count learned positions where ALiBi is off."""
    nested = d.fields.part("attn_config")
    learned = d.fields.flag("learned_pos_emb", default=True) and nested and nested.values.get("alibi") is False
    d.lookup += d.fields.number("max_seq_len") * d.hidden if learned else 0
    return 0


def _dbrx(d: Decoder) -> list[Block]:
    """Read DBRX: key-value heads and experts stand in nested parts."""
    f = d.fields
    heads, ffn = f.part("attn_config") or f, f.part("ffn_config") or f
    # what the file leaves out is its class's default
    count, per_token = ffn.number("moe_num_experts", default=4), ffn.number("moe_top_k", default=1)
    mixture = FeedForward(
        experts=count,
        per_token=per_token,
        expert=3 * d.hidden * ffn.number("ffn_hidden_size", default=3584),
        router=count * d.hidden,
    )
    keys = heads.number("kv_n_heads") or 1
    return [block_of(d, attention(d, FULL, Heads(d.heads, keys, d.head_dim, d.head_dim)), mixture)] * d.layers


def _mllama(d: Decoder) -> list[Block]:
    """Read Llama 3.2 Vision: some layers attend to the image and keep nothing of the text; 8 further input rows."""
    crossing = set(d.fields.numbers("cross_attention_layers") or (3, 8, 13, 18, 23, 28, 33, 38))
    d.lookup += 8 * d.hidden  # the rows of the image token and of some that are reserved
    text_mixer = attention(d, FULL)
    # norms of queries and keys, and a scalar gate for either half; the image's keys are no part of a text's cache
    cross = Mixer(text_mixer.weights, 2 * d.head_dim + 2, ())
    return [block_of(d, cross if i in crossing else text_mixer, dense(d, d.ffn)) for i in range(d.layers)]


def _jetmoe(d: Decoder) -> list[Block]:
    """Read JetMoE: attention heads are experts too; keys and values are shared by them."""
    f = d.fields
    keys, count = f.number("num_key_value_heads"), f.number("num_local_experts")
    per_token = f.number("num_experts_per_tok")
    joint = keys * d.fields.number("kv_channels", "head_dim")
    visited = 2 * d.hidden * joint  # queries and output of one attention expert, counted with the feed-forward's
    # every expert visited has queries for all keys, which it shares with the others: so many heads look at them
    mixer = attention(d, FULL, Heads(keys * per_token, keys, joint // max(keys, 1), joint // max(keys, 1)))
    mixer = Mixer(2 * d.hidden * joint, d.hidden, mixer.reaches)
    expert = visited + 3 * d.hidden * f.number("intermediate_size")
    mixture = FeedForward(
        experts=count, per_token=per_token, expert=expert, router=2 * count * d.hidden, others=d.hidden
    )
    return [block_of(d, mixer, mixture)] * d.layers


def _openelm(d: Decoder) -> list[Block]:
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
        # to the nearest multiple, but never more than a tenth below what was meant (MobileNet's make_divisible)
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
    layers, h = [], d.hidden
    for item in listed:
        # either half has a norm, unless the search took it out
        mixer, feed, norms, layer = Mixer(0), FeedForward(), 0, Fields(item, f.file)
        attending, wide = layer.part("attention"), layer.part("ffn")
        if attending and attending.flag("replace_with_linear"):
            mixer, norms = Mixer(h * h), 1
        elif attending and not attending.flag("no_op"):
            group = attending.number("n_heads_in_group", default=1) or 1  # query heads that share a key
            mixer, norms = attention(d, FULL, Heads(d.heads, max(1, d.heads // group), d.head_dim, d.head_dim)), 1
        if wide and wide.flag("replace_with_linear"):
            feed, norms = FeedForward(dense=h * h), norms + 1
        elif wide and not wide.flag("no_op"):
            factor = wide.ratio("ffn_mult", 0.0)  # of two thirds of twice the width, rounded up to 256
            width = wide.number("intermediate_size") or -(-int(2 * factor * h / 3) // 256) * 256
            feed, norms = dense(d, width), norms + 1
        layers.append(block_of(d, mixer, feed, norms=norms))
    return layers


def _grok(d: Decoder) -> list[Block]:
    """Read Grok: four norms a layer, and in Grok 2 a dense feed-forward beside the experts."""
    listed = kinds(d)
    mixers_by_kind, mixture = mixers(d, listed), experts(d)
    dense_beside = dense(d, d.ffn) if d.fields.flag("residual_moe") else None
    return [
        block_of(d, mixers_by_kind[kind], mixture or dense(d, d.ffn), dense_beside if mixture else None)
        for kind in listed
    ]


def _arctic(d: Decoder) -> list[Block]:
    """Read Arctic: a dense residual feed-forward as wide as the stream beside the experts of every n-th layer."""
    f, mixture, mixer = d.fields, experts(d), attention(d, FULL)
    step = max(1, f.number("moe_layer_frequency", default=2))
    residual_feed = dense(d, d.hidden) if f.flag("use_residual", "parallel_attn_mlp_res") else None
    plain = dense(d, d.ffn)
    mixed = block_of(d, mixer, mixture, residual_feed, norms=3 if residual_feed else 2)
    return [mixed if (i + 1) % step == 0 else block_of(d, mixer, plain) for i in range(d.layers)]


def _chameleon(d: Decoder) -> list[Block]:
    """Read Chameleon: norms with biases over each head of queries and keys."""
    mixer = attention(d, FULL)
    mixer = mixer._replace(others=mixer.others + 2 * (d.heads + d.kv_heads) * d.head_dim)
    return [block_of(d, mixer, dense(d, d.ffn))] * d.layers


# --- Families whose layers are not all attention: Nemotron-H, Zamba, Falcon-H1, RecurrentGemma, Ling's hybrids, OLMo.

# signs of its pattern, in lower case as all words are read
_NEMOTRON = {"m": "mamba", "*": "attention", "-": "mlp", "e": "moe"}


def _nemotron_h(d: Decoder) -> list[Block]:
    """Read Nemotron-H: every block is a Mamba-2 mixer, an attention, a feed-forward or a mixture, with one norm."""
    f = d.fields
    types = f.words("layers_block_type", "layer_types")
    pattern = f.word("hybrid_override_pattern")
    if types is None and pattern:
        if strange := set(pattern) - set(_NEMOTRON):
            raise f.fail(f"hybrid_override_pattern has {sorted(strange)[0]!r}, which is none of M, *, -, E")
        types = [_NEMOTRON[sign] for sign in pattern]
    f.taken.add("num_hidden_layers")  # the pattern says it
    if not types or len(types) > 4096:
        raise f.fail("needs hybrid_override_pattern or layers_block_type, which say what its blocks are")
    blocks_by_type: dict[str, Block] = {}
    for word in dict.fromkeys(types):
        if word == "moe":
            mixture = experts(d)
            if mixture is None:
                raise f.fail("has mixtures of experts in its pattern, but no n_routed_experts")
            narrow, width = f.number("moe_latent_size"), f.number("moe_intermediate_size")
            count, shared_width = f.number("n_shared_experts"), f.number("moe_shared_expert_intermediate_size")
            mixture = mixture._replace(shared=2 * d.hidden * shared_width * max(1, count), others=mixture.experts)
            if (
                narrow
            ):  # experts work in a narrower space, between two projections that every token meets (Nemotron 3 Super)
                mixture = mixture._replace(expert=2 * narrow * width, dense=2 * d.hidden * narrow)
            blocks_by_type[word] = block_of(d, Mixer(0), mixture)
        elif word in ("mlp", "dense"):
            blocks_by_type[word] = block_of(d, Mixer(0), dense(d, d.ffn))
        elif "mamba" in word or "linear" in word:
            blocks_by_type[word] = block_of(d, mamba2(d))
        else:
            blocks_by_type[word] = block_of(d, attention(d, FULL))
    return [blocks_by_type[word] for word in types]


def _falcon_h1(d: Decoder) -> list[Block]:
    """Read Falcon-H1: a Mamba-2 mixer beside the attention of every layer."""
    full, linear = attention(d, FULL), mamba2(d)
    both = Mixer(full.weights + linear.weights, full.others + linear.others, full.reaches, linear.state_values, True)
    return [block_of(d, both, dense(d, d.ffn))] * d.layers


def _kimi_linear(d: Decoder) -> list[Block]:
    """Read Kimi Linear and Kimi K3: delta and latent attention; K3's experts are narrower, its residuals attended."""
    f, h = d.fields, d.hidden
    gated = f.flag("mla_use_output_gate")
    mixers_by_kind = mixers(replace(d, family=replace(d.family, gate="full" if gated else "")), listed := kinds(d))
    mixture, plain, narrow = experts(d), dense(d, dense_width(d)), f.number("routed_expert_hidden_size")
    if mixture and narrow:
        mixture = mixture._replace(
            expert=mixture.expert // h * narrow,
            dense=2 * h * narrow,
            others=mixture.others + (narrow if f.flag("latent_moe_use_norm") else 0),
        )
    # the first layer is dense where nothing says otherwise
    sparse = expert_layers(d) if mixture else [False] * d.layers
    if mixture and not {"first_k_dense_replace", "mlp_layer_types"} & set(f.values):
        sparse = [i > 0 for i in range(d.layers)]
    norms = (
        6 if f.number("attn_res_block_size") else 2
    )  # attended residuals: a projection and a norm before either half
    layers = zip(listed, sparse, strict=True)
    return [block_of(d, mixers_by_kind[kind], mixture if mixed else plain, norms=norms) for kind, mixed in layers]


def _kimi_extra(d: Decoder) -> int:
    """Count the projection and norm that join the residuals at the end (Kimi K3)."""
    return 2 * d.hidden if d.fields.number("attn_res_block_size") else 0


def _recurrent_gemma(d: Decoder) -> list[Block]:
    """Read RecurrentGemma: recurrent blocks and windowed attention, half the stated feed-forward width, biases."""
    q, f = d.heads * d.head_dim, d.fields
    cached = d.kv_heads * d.head_dim
    attending = Mixer(
        2 * d.hidden * (q + cached),
        d.hidden,
        (Reach(2 * cached, 4 * q, f.number("attention_window_size", default=2048)),),
    )
    width = d.ffn // 2  # stated is that of gate and up together
    feed = dense(d, width)._replace(others=2 * width + d.hidden)
    mixer_of = {True: recurrent_unit(d), False: attending}
    return [block_of(d, mixer_of[kind == LINEAR], feed) for kind in kinds(d)]


def _bailing_hybrid(d: Decoder) -> list[Block]:
    """Read Ling 2.5 and its kin: delta attention with full-rank gates, and latent attention every few layers."""
    f, h = d.fields, d.hidden
    heads, width = f.number("linear_num_heads") or d.heads, f.number("linear_head_dim", "head_dim") or d.head_dim
    joint, kernel = heads * width, f.number("short_conv_kernel_size", "linear_conv_kernel_dim", default=4)
    linear = Mixer(
        6 * h * joint + h * heads,  # queries, keys, values, decay, gate, output; a learning rate of each head
        3 * joint * kernel + heads + joint + width,
        (),
        joint * width + 3 * joint * (kernel - 1),
        True,
    )
    full = latent(d)
    gated = full._replace(weights=full.weights + h * d.heads)
    mixture, plain = experts(d), dense(d, dense_width(d))
    layers = zip(kinds(d), expert_layers(d), strict=True)
    return [block_of(d, linear if kind == LINEAR else gated, mixture if mixed else plain) for kind, mixed in layers]


def _olmo_hybrid(d: Decoder) -> list[Block]:
    """Read OLMo hybrid: gated delta nets with a projection for every part."""
    linear, full = gated_delta(d), attention(d, FULL)
    return [block_of(d, linear if kind == LINEAR else full, dense(d, d.ffn)) for kind in kinds(d)]


def _shared_heads(d: Decoder) -> Mixer:
    """Count the attention of a shared Zamba block: its input is the stream and the embedding side by side."""
    h = d.hidden
    wide = d.fields.number("attention_hidden_size") or 2 * h
    keys = d.fields.number("num_key_value_heads") or d.heads
    width = d.fields.number("attention_head_dim") or wide // d.heads
    heads = Heads(d.heads, keys, width, width)
    weights = wide * (heads.queries + 2 * keys) * width + heads.queries * width * h
    return Mixer(weights, 0, (Reach(2 * keys * width, 4 * heads.queries * width),))


def _zamba_2(d: Decoder) -> list[Block]:
    """Read Zamba2: Mamba-2 layers, some of which first apply a shared transformer block with adapters of their own."""
    f, h = d.fields, d.hidden

    types = f.words("layers_block_type", "layer_types")
    if not types:  # those of the 2.7B, its class's default
        types = ["mamba"] + (["mamba"] * 5 + ["hybrid"]) * 7 + ["mamba"] * 4 + ["hybrid"] + ["mamba"] * 3 + ["hybrid"]
        types = (types + ["mamba"] * d.layers)[: d.layers]
    ids = f.numbers("hybrid_layer_ids")
    hybrid = set(ids) if ids else {i for i, word in enumerate(types) if word == "hybrid"}
    width, rank, memory = d.ffn, f.number("adapter_rank", default=128), max(1, f.number("num_mem_blocks", default=1))
    mixer, shared = mamba2(d), _shared_heads(d)
    # Each use of a shared block has low-rank adapters of its own on gate and up, some also on queries, keys and values,
    # which read the stream and the embedding side by side.
    adapters = rank * (h + 2 * width)
    if f.flag("use_shared_attention_adapter"):
        adapters += 3 * 2 * rank * 2 * h
    # The first so many uses hold the weights of the blocks, later ones multiply by them again.
    transformer = 3 * h * width
    layers, count = [], 0
    for i in range(d.layers):
        block = block_of(d, mixer, norms=1)
        if i in hybrid:
            first = count < memory
            count += 1
            block = replace(
                block,
                mixer=block.mixer + (shared.weights if first else 0),
                reaches=shared.reaches,
                dense=(transformer if first else 0) + h * h + adapters,  # and a projection back into the stream
                norms=block.norms + (3 * h if first else 0),
                reused=0 if first else shared.weights + transformer,
            )
        layers.append(block)
    return layers


def _zamba(d: Decoder) -> list[Block]:
    """Read Zamba: Mamba layers of several heads, one shared transformer block."""
    f, h = d.fields, d.hidden
    inner = 2 * h
    f.raw("n_mamba_heads", "mamba_conv_bias", "attention_hidden_size")  # shapes of weights that are counted jointly
    states, kernel = f.number("mamba_d_state", default=16), f.number("mamba_d_conv", default=4)
    rank = f.number("mamba_dt_rank") if isinstance(f.raw("mamba_dt_rank"), int) else -(-h // 16)
    weights = 2 * h * inner + inner * (rank + 2 * states) + rank * inner + inner * h
    mixer = Mixer(weights, inner * (kernel + 1) + 2 * inner + inner * states, (), inner * (states + kernel - 1), True)
    shared, types = _shared_heads(d), f.words("layers_block_type", "layer_types")
    period, offset = f.number("attn_layer_period", default=6), f.number("attn_layer_offset", default=4)
    if not period:
        raise f.fail("attn_layer_period must be 1 or more, found 0")
    hybrid = [word == "hybrid" for word in types] if types else [i % period == offset for i in range(d.layers)]
    layers, met = [], False  # the one block's weights are held where it is first used
    for is_hybrid in hybrid[: d.layers]:
        block = block_of(d, mixer, norms=1)
        if is_hybrid:
            transformer = 3 * h * d.ffn
            block = replace(
                block,
                mixer=block.mixer + (0 if met else shared.weights),
                reaches=shared.reaches,
                dense=h * h + (0 if met else transformer),
                norms=block.norms + (0 if met else 3 * h),
                reused=shared.weights + transformer if met else 0,
            )
            met = True
        layers.append(block)
    return layers


# --- Families of latent, compressed, indexed or shared caches: DeepSeek 3.2 and 4, GLM 5, LongCat, Gemma 3n, 4, MiMo.

_COMPRESSED = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128, "sliding_attention": 0}


def _deepseek_v32(d: Decoder) -> list[Block]:
    """Read DeepSeek sparse attention; layers that share an earlier layer's selection have no indexer (GLM 5.2)."""
    d.fields.taken.add("layer_types")  # all alike
    with_indexer, shared = latent(d, latent_of(d)), latent(d, latent_of(d), indexer=False)
    layers = zip(_indexed_layers(d), feeds(d), strict=True)
    return [block_of(d, with_indexer if indexed else shared, feed) for indexed, feed in layers]


def _indexed_layers(d: Decoder) -> list[bool]:
    """Return for every layer whether it runs an indexer of its own, or shares the selection of an earlier one."""
    f = d.fields
    types = f.words("indexer_types")
    pattern = f.word("index_topk_pattern")
    if types is None and pattern:
        types = ["full" if sign == "f" else "shared" for sign in pattern]
    if types is not None:
        if len(types) < d.layers:
            raise f.fail(f"indexer_types names {len(types)} layers, but there are {d.layers}")
        return [word == "full" for word in types[: d.layers]]
    step, offset = max(1, f.number("index_topk_freq", default=1)), f.number("index_skip_topk_offset", default=2)
    return [max(i - offset + 1, 0) % step == 0 for i in range(d.layers)]


def _deepseek_v4(d: Decoder) -> list[Block]:
    """Read DeepSeek V4: one shared key-value head, a window everywhere, compressed entries beside it."""
    d.fields.taken.add("mlp_layer_types")  # mixtures all; some choose their experts by a hash
    mixture = experts(d)
    streams = d.fields.number("hc_mult", default=4)
    # Hyper-connections: before either half all streams decide how they are read, written and mixed with one another, by
    # a matrix over their joint width, a bias and three scales (arXiv:2409.19606).
    mixing = (2 + streams) * streams
    hyper = 2 * (mixing * streams * d.hidden + mixing + 3)

    # How many tokens an entry of each layer's compressed cache stands for: numbers, or words for kinds; without either
    # as its class does it: 128 in the first two layers, then 4 and 128 in turn.
    f, types = d.fields, d.fields.words("layer_types")
    ratios = f.numbers("compress_ratios")
    if ratios is None and types is not None:
        rates = f.part("compress_rates")
        ratio_of_type = {**_COMPRESSED, **{word: rates.number(word) for word in _COMPRESSED if rates and word in rates}}
        if strange := [word for word in types if word not in ratio_of_type]:
            raise f.fail(f"layer_types names {strange[0]!r:.40}, which DeepSeek V4 does not have")
        ratios = [ratio_of_type[word] for word in types]
    if ratios is None:
        ratios = [128 if i < 2 or i % 2 == 0 else 4 for i in range(d.layers)]
    if len(ratios) < d.layers:
        raise f.fail(f"compress_ratios names {len(ratios)} layers, but there are {d.layers}")
    h, width = d.hidden, d.head_dim
    rank, output, groups = f.number("q_lora_rank"), f.number("o_lora_rank"), f.number("o_groups", default=8)
    layers = []
    for ratio in ratios[: d.layers]:
        # queries down to a rank and up to all heads; one key that is its value; the heads in groups down to a rank
        # each, and from there out
        weights = rank * (h + d.heads * width) + h * width + output * d.heads * width + h * groups * output
        others, flop = d.heads + rank + width, 4 * d.heads * width
        reaches = [Reach(width, flop, d.window)]
        if ratio:
            # Entries for few tokens overlap, which takes two sets of weights, and are chosen among by an indexer whose
            # own keys are compressed likewise; entries for many are all looked at.
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
        block = block_of(d, Mixer(weights, others, tuple(reaches)), mixture)
        layers.append(replace(block, others=block.others + hyper))
    return layers


def _streams_extra(d: Decoder) -> int:
    """Count the head that joins the hyper-connected streams."""
    streams = d.fields.number("hc_mult", default=4)
    return streams * streams * d.hidden + streams + 1


def _axk_1(d: Decoder) -> list[Block]:
    """Read A.X K1: DeepSeek V3 with a norm after each mixture of experts."""
    mixer = latent(d)
    return [block_of(d, mixer, feed, norms=3 if feed.experts else 2) for feed in feeds(d)]


def _longcat(d: Decoder) -> list[Block]:
    """Read LongCat: two latent attentions and two dense feed-forwards a layer, experts of which some do nothing."""
    f, mixer = d.fields, latent(d)
    real, empty = f.number("n_routed_experts"), f.number("zero_expert_num")
    mixture = experts(d)
    if mixture is None:
        raise f.fail("LongCat needs n_routed_experts and moe_topk")
    mixture = mixture._replace(
        per_token=mixture.per_token * real / (real + empty),  # visits to an empty expert multiply by nothing
        router=(real + empty) * d.hidden,
        others=real + empty,
        dense=2 * 3 * d.hidden * f.number("ffn_hidden_size", "intermediate_size"),
    )
    twice = Mixer(2 * mixer.weights, 2 * mixer.others, mixer.reaches * 2)
    return [block_of(d, twice, mixture, norms=4)] * d.layers


def _longcat_extra(d: Decoder) -> int:
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


def _gemma_3n(d: Decoder) -> list[Block]:
    """Read Gemma 3n: alternating updates, low-rank residuals, layer embeddings; the last layers share caches."""
    f, h = d.fields, d.hidden
    inputs, rank, small = f.number("altup_num_inputs"), f.number("laurel_rank"), f.number("hidden_size_per_layer_input")
    # Alternating updates (arXiv:2301.13310): a scale and a norm of the width, coefficients that predict all inputs from
    # all and correct each, and a router to them; the low-rank residual (LAuReL, arXiv:2411.07501) with its norm; the
    # gate and projection of the layer's embeddings with theirs.
    extra_weights = 2 * h + inputs * inputs + inputs**3 + inputs * h + 2 * rank * h + h + 2 * small * h + h
    widths = f.numbers("intermediate_size") or [d.ffn] * d.layers
    shared = f.number("num_kv_shared_layers")
    layers = []
    for i, kind in enumerate(kinds(d)):
        mixer = attention(d, kind, keeps=i < d.layers - shared)  # the last ones read the cache of an earlier layer
        block = block_of(d, mixer, dense(d, widths[min(i, len(widths) - 1)]))
        layers.append(replace(block, others=block.others + extra_weights))
    return layers


def _gemma_3n_extra(d: Decoder) -> int:
    """Count the projections of the alternating updates and the embeddings that every layer looks up."""
    # from the stream to each further input before the first layer, and back after the last
    return 2 * (max(d.fields.number("altup_num_inputs"), 1) - 1) * d.hidden * d.hidden + _layer_embeddings(d)


def _layer_embeddings(d: Decoder) -> int:
    """Count the embeddings that every layer looks up."""
    small = d.fields.number("hidden_size_per_layer_input")
    joint = small * d.layers
    # a table as wide as all layers' inputs; beside it a projection of the stream to the same width, with a norm
    d.lookup += joint * (d.fields.number("vocab_size_per_layer_input") or d.vocab) if small else 0
    return joint * d.hidden + small


def _gemma_4(d: Decoder) -> list[Block]:
    """Read Gemma 4: wider heads in its global layers, keys that are values there, shared caches, experts beside."""
    f, h, small = d.fields, d.hidden, d.fields.number("hidden_size_per_layer_input")
    listed, equal = kinds(d), f.flag("attention_k_eq_v") or d.kind.startswith("gemma4_unified")
    if listed:
        listed[-1] = FULL  # whatever the rhythm, as its class has it
    first_shared = d.layers - f.number("num_kv_shared_layers")
    mixture = experts(d) if f.flag("enable_moe_block") else None
    layers = []
    for i, kind in enumerate(listed):
        keeps = i < first_shared
        equal_here = equal and kind == FULL and f.flag("attention_k_eq_v")
        heads = heads_of(d)
        if kind != WINDOW:
            width = f.number("global_head_dim", default=512)
            keys = f.number("num_global_key_value_heads") if equal else 0
            heads = Heads(heads.queries, keys or heads.keys, width, width)
        mixer = attention(d, kind, heads, keeps=keeps, shared_values=equal_here)
        wide = 2 if f.flag("use_double_wide_mlp") and not keeps else 1
        # norms before and after both halves, three more where experts stand beside the feed-forward, one for embeddings
        block = block_of(d, mixer, dense(d, wide * d.ffn), norms=4 + (3 if mixture else 0) + (1 if small else 0))
        if mixture:
            block = mixture.into(block)
            block = replace(block, others=block.others + h + mixture.experts)  # scales of the router and of each expert
        layers.append(replace(block, others=block.others + 2 * small * h))
    return layers


def _mimo_v2(d: Decoder) -> list[Block]:
    """Read MiMo V2: windowed layers with heads and sinks of their own."""
    f, usual = d.fields, heads_of(d)
    f.taken.update(("add_swa_attention_sink_bias", "add_full_attention_sink_bias"))
    windowed = Heads(
        f.number("swa_num_attention_heads", default=usual.queries),
        f.number("swa_num_key_value_heads", default=8),
        f.number("swa_head_dim", default=usual.key_dim),
        f.number("swa_v_head_dim", default=usual.value_dim),
    )
    mixers_by_kind = {FULL: attention(d, FULL, usual), WINDOW: attention(d, WINDOW, windowed)}
    return [
        block_of(d, mixers_by_kind[kind], feed) for kind, feed in zip(kinds(d, FULL, WINDOW), feeds(d), strict=True)
    ]


def _step_3_5(d: Decoder) -> list[Block]:
    """Read Step 3.5: windowed layers may have other query heads; the first layers are dense."""
    f, mixture, plain = d.fields, experts(d), dense(d, dense_width(d))
    usual, window_setting = heads_of(d), f.part("attention_other_setting")
    queries = (
        window_setting.number("num_attention_heads") if window_setting else f.number("num_sliding_attention_heads")
    )
    windowed = usual._replace(queries=queries or usual.queries)
    if window_setting and window_setting.number("num_attention_groups"):
        windowed = windowed._replace(keys=window_setting.number("num_attention_groups"))
    mixed = (
        expert_layers(d) if {"moe_layers_enum", "mlp_layer_types"} & set(f.values) else [i > 2 for i in range(d.layers)]
    )
    mixers_by_kind = {FULL: attention(d, FULL, usual), WINDOW: attention(d, WINDOW, windowed)}
    layers = zip(kinds(d, FULL, WINDOW), mixed, strict=True)
    corrected = mixture._replace(others=mixture.experts) if mixture else None  # by a bias for each expert
    return [block_of(d, mixers_by_kind[kind], corrected if sparse else plain) for kind, sparse in layers]


# --- Families whose layers select by an indexer in ways of their own: A.X K2, Hy 4, dots 3, Mistral Large 4, MiniMax
# M3.
#
# GLM 5 Next and Qwen 4 Exp mix such layers with recurrent ones. Each keeps the indexer's keys beside its cache.


def _mixed(d: Decoder, block: Block, mixing: int, scales: int) -> Block:
    """Add the mixing of the residual streams before the attention and before the feed-forward of a layer."""
    streams = d.fields.number("hc_mult", default=4)
    return replace(block, others=block.others + 2 * (mixing * streams * d.hidden + mixing + scales))


def _axk_2(d: Decoder) -> list[Block]:
    """Read A.X K2: gates beside the queries from twice their rank, and norms with a low-rank gate."""
    n, h = latent_of(d), d.hidden
    d.fields.taken.add("layer_types")
    queries = n.heads * (n.nope + n.rope)
    latent_mixer = latent(d, n)
    mixer = latent_mixer._replace(weights=latent_mixer.weights + n.query_rank * (queries + 2 * n.heads * n.value))
    gate = 2 * h * d.fields.number("gated_norm_rank", default=16)  # of a norm: down to the rank and up again
    blocks_and_gates = [(block_of(d, mixer, feed), 2 if feed.experts else 1) for feed in feeds(d)]
    return [replace(block, others=block.others + gates * gate) for block, gates in blocks_and_gates]


def _hy_4(d: Decoder) -> list[Block]:
    """Read Hy 4: gated latent attention with sinks, selections shared between layers, four residual streams."""
    d.fields.taken.add("layer_types")
    with_indexer, shared = latent(d, latent_of(d)), latent(d, latent_of(d), indexer=False)
    mixing = 2 * d.fields.number("hc_mult", default=4)
    layers = zip(_indexed_layers(d), feeds(d), strict=True)
    return [_mixed(d, block_of(d, with_indexer if indexed else shared, feed), mixing, 2) for indexed, feed in layers]


def _dots_3(d: Decoder) -> list[Block]:
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
    mixers_by_kind = {FULL: latent(d, n), WINDOW: latent(d, near, WINDOW, indexer=False)}
    # the rotary key has a norm of its own
    normed = {kind: mixer._replace(others=mixer.others + n.rope) for kind, mixer in mixers_by_kind.items()}
    usual = [FULL if i < 2 or i % 4 == 1 else WINDOW for i in range(d.layers)]  # its class's default
    listed = kinds(d, FULL, WINDOW) if f.words("layer_types") else usual
    return [block_of(d, normed[kind], feed) for kind, feed in zip(listed, feeds(d), strict=True)]


def _mistral_large_4(d: Decoder) -> list[Block]:
    """Read Mistral Large 4: latents without rotary keys in some layers, read again by others, and selections shared."""
    f, n = d.fields, latent_of(d)
    f.taken.add("layer_types")
    step = f.number("no_rope_layer_interval", default=4)
    turning = f.numbers("no_rope_layers") or [(i + 1) % step if step else 1 for i in range(d.layers)]
    sources = f.numbers("kv_source_layers") or list(range(d.layers))
    if min(len(turning), len(sources)) < d.layers:
        raise f.fail(f"no_rope_layers and kv_source_layers must name all {d.layers} layers")
    # whether a layer turns positions, runs an indexer, and makes a latent of its own: eight kinds, each counted once
    own_latents = [source == i for i, source in enumerate(sources)]
    listed = list(zip(map(bool, turning), _indexed_layers(d), own_latents, strict=False))
    mixers_by_kind = {}
    for kind in set(listed):
        turns, indexed, makes_latent = kind
        heads = f.number("index_n_heads")
        # without rotation the whole head is compressed
        ranks = n if turns else n._replace(nope=n.nope + n.rope, rope=0)
        mixer = latent(d, ranks, indexer=indexed)
        # queries of full rank, and scales by length
        mixer = mixer._replace(others=mixer.others + 2 * ranks.heads + (2 * d.hidden + 2 * heads if indexed else 0))
        if not makes_latent:  # it attends to the latent of an earlier layer, and keeps none
            first, *others = mixer.reaches
            mixer = mixer._replace(
                weights=mixer.weights - d.hidden * (ranks.rank + ranks.rope),
                others=mixer.others - ranks.rank,
                reaches=(replace(first, cached_values=0), *others),
            )
        mixers_by_kind[kind] = mixer
    return [block_of(d, mixers_by_kind[kind], feed) for kind, feed in zip(listed, feeds(d), strict=True)]


def _minimax_m3(d: Decoder) -> list[Block]:
    """Read MiniMax M3: grouped attention to blocks of keys that an indexer selects, in the layers named sparse."""
    f, attending = d.fields, attention(d, FULL)
    part = f.part("sparse_attention_config") or Fields({}, f.file)
    heads = part.number("sparse_num_index_heads") or f.number("index_n_heads", default=4)
    width = part.number("sparse_index_dim") or f.number("index_head_dim", default=128)
    block = part.number("sparse_block_size") or f.number("index_block_size", default=128)
    most = part.number("sparse_topk_blocks") or f.number("index_topk_blocks", default=16)
    # selected blocks, and those next to the query, which are always looked at
    most += part.number("sparse_local_block") or f.number("index_local_blocks", default=1)
    types, often = f.words("layer_types"), part.numbers("sparse_attention_freq")
    sparse = ["sparse" in word for word in types] if types else [bool(item) for item in often or [0] * d.layers]
    if len(sparse) < d.layers:
        raise f.fail(f"names the kinds of {len(sparse)} layers, but there are {d.layers}")
    selected = Mixer(
        attending.weights + d.hidden * (heads + 1) * width,
        attending.others + 2 * width,
        (replace(attending.reaches[0], looks_at_most=most * block), Reach(width, 2 * heads * width)),
    )
    layers = zip(sparse, feeds(d), strict=False)
    return [block_of(d, selected if is_sparse else attending, feed) for is_sparse, feed in layers]


def _glm_5_next(d: Decoder) -> list[Block]:
    """Read GLM 5 Next: Kimi delta attention, and latents without rotary keys whose indexer pools its keys."""
    f, h = d.fields, d.hidden
    streams, pool = f.number("hc_mult", default=4), f.number("index_kpool", default=16)
    width = f.number("index_head_dim")
    with_indexer, shared = latent(d, latent_of(d)), latent(d, latent_of(d), indexer=False)
    first, *keys = with_indexer.reaches
    pooled_reaches = tuple(
        replace(key, cached_values=2 * width + 1) for key in keys
    )  # keys, gates and whether they count
    pooled = with_indexer._replace(
        weights=with_indexer.weights + h * width,
        others=with_indexer.others + pool * width,
        reaches=(first, *pooled_reaches),
    )
    mixers_by_kind = {LINEAR: kimi_delta(d), True: pooled, False: shared}
    layers = zip(kinds(d), _indexed_layers(d), feeds(d), strict=True)
    mixing = (2 + streams) * streams
    return [
        _mixed(d, block_of(d, mixers_by_kind[LINEAR if k == LINEAR else has_indexer], feed), mixing, 3)
        for k, has_indexer, feed in layers
    ]


def _qwen_4(d: Decoder) -> list[Block]:
    """Read Qwen 4 Exp: gated delta nets, attention with an indexer, gated residual streams, n-grams looked up."""
    f, h = d.fields, d.hidden
    streams, rank = f.number("hc_count", default=4), f.number("hc_lowrank", default=320)
    residual = 2 * streams * h * (1 + 2 * rank + streams)  # before either half: a norm, low-rank gates, mixing
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
    mixers_by_kind, mixture = {LINEAR: gated_delta(d), FULL: full}, experts(d)
    looked_up = set(f.numbers("ple_layer_ids") or ())
    blocks = [block_of(d, mixers_by_kind[kind], mixture, norms=0) for kind in kinds(d, LINEAR, FULL)]
    extra_weights = [residual] * d.layers
    for i in range(d.layers):
        if i + 1 in looked_up:
            # The tables of n-grams are looked up, not multiplied by: what turns them into the streams is. Each has as
            # many rows as the next prime above `ngram_vocab_size_base`: that many, to a millionth.
            table_width = f.number("ple_embed_dim") or h
            d.lookup += f.number("ngram_vocab_size_base", default=20_000_000) * table_width
            f.raw("ngram_size", "heads_per_ngram", "split_ngram_parts", "make_ngram_vocab_size_divisible_by")
            convolution = f.number("ple_conv_kernel_size", default=4)
            extra_weights[i] += table_width * (streams + 1) * h + streams * h * (3 + convolution)
    return [replace(block, others=block.others + more) for block, more in zip(blocks, extra_weights, strict=True)]


def _qwen_4_extra(d: Decoder) -> int:
    """Count the mixer that joins the residual streams at the end; there is no other norm."""
    streams, rank = d.fields.number("hc_count", default=4), d.fields.number("hc_lowrank", default=320)
    return streams * d.hidden * (1 + 2 * rank)


# --- Families with parts that no other has: Zaya, Doge, HRM, Inkling, Muse Spark, Laguna, ModernBERT's decoder,
# Bamba.


def _zaya(d: Decoder) -> list[Block]:
    """Read Zaya: attention in a compressed space with convolutions, and a router that is a small network."""
    f, h, r = d.fields, d.hidden, d.fields.number("router_hidden_size", default=256)
    query, cached = d.heads * d.head_dim, d.kv_heads * d.head_dim
    first, second = f.number("cca_time0", default=2), f.number("cca_time1", default=2)
    convolved = query + cached  # channels: queries and keys of the compressed space
    mixture = experts(d)
    if mixture is None:
        raise f.fail("Zaya needs num_experts and moe_intermediate_size")
    routing = h * r + 2 * r * r + (mixture.experts + 1) * r  # down, two layers, and scores of all experts and of none
    mixture = mixture._replace(router=routing, others=5 * r)
    layers = []
    for i, kind in enumerate(kinds(d)):
        attending = attention(d, kind)
        # a convolution of each channel and one over the channels of a head, with their biases; a temperature of each
        # key
        others = convolved * (first + 2 + d.head_dim * second) + d.kv_heads
        states = convolved * (first + second - 2) + cached // 2  # half of the values are those of the token before
        mixer = Mixer(attending.weights, others, attending.reaches, states)
        block = block_of(d, mixer, mixture)
        layers.append(replace(block, others=block.others + 8 * h - (0 if i else r)))
    return layers


def _doge(d: Decoder) -> list[Block]:
    """Read Doge: a dynamic mask from the values, scaled residuals, and in its mixtures experts of one vector each."""
    f, h, cached = d.fields, d.hidden, d.kv_heads * d.head_dim
    attending = attention(d, FULL)
    mixer = attending._replace(weights=attending.weights + cached * d.kv_heads, others=attending.others + d.kv_heads)
    feed = dense(d, d.ffn)
    if f.flag("is_moe"):
        count, visited = f.number("num_experts", default=16384), f.number("num_experts_per_tok", default=64)
        # an expert is a row in and a row out, found by two sets of √n keys (product keys, arXiv:2407.04153)
        feed = feed._replace(experts=count, per_token=visited, expert=2 * h, router=2 * h * int(count**0.5))
    else:
        f.raw("num_experts", "num_experts_per_tok")
    block = block_of(d, mixer, feed)
    return [replace(block, others=block.others + 2 * h)] * d.layers


def _hrm(d: Decoder) -> list[Block]:
    """Read HRM: two stacks of layers gone through in cycles; every passage keeps a cache of its own."""
    f = d.fields
    f.taken.add("num_hidden_layers")
    high, low = f.number("H_cycles", default=2), f.number("L_cycles", default=3)
    stack = f.number("num_layers_per_stack")
    # Every high cycle goes so often through the low stack and once through the high one. Each stack's weights are held
    # once and multiplied by at every passage.
    passages, stack_layers = high * (low + 1), stack or d.layers
    if stack_layers * passages > MOST_LAYERS:
        raise f.fail(f"{stack_layers} layers gone through {passages} times make more than {MOST_LAYERS} layers")
    layer = block_of(d, attention(d, FULL), dense(d, d.ffn), norms=0)
    again = replace(layer, mixer=0, dense=0, others=0, reused=layer.mixer + layer.dense)
    return [layer] * (2 * stack_layers) + [again] * (stack_layers * (passages - 2))


def _inkling(d: Decoder) -> list[Block]:
    """Read Inkling: relative positions from a projection, short convolutions after keys, values and each half."""
    f, h = d.fields, d.hidden
    kernel, second = f.number("conv_kernel_size", default=4), d.kind == "inkling2_text"
    f.raw("unpadded_vocab_size", "number_of_conv_states", "n_layers_per_attn_res_block", "shared_expert_sink")
    mixture = experts(d)
    if mixture and not second:
        shared = f.number("n_shared_experts", default=2)
        mixture = mixture._replace(router=mixture.router + shared * h, others=mixture.others + 1)
    plain = dense(d, dense_width(d))
    mixers_by_kind = {}
    for kind in (FULL, WINDOW):
        heads = heads_for(d, kind)
        # relative positions: a small query of each head against a table of distances, as far as the layer looks
        wide = f.number("d_rel", default=16)
        extent = d.window if kind == WINDOW else f.number("rel_extent", default=1024)
        attending = attention(d, kind, heads)
        cached = heads.keys * (heads.key_dim + heads.value_dim)
        weights = attending.weights + h * heads.queries * wide
        others = attending.others + wide * extent + kernel * cached
        if second:  # which also has gates, sinks and convolutions that move
            weights += h * heads.queries
            others += heads.queries * (heads.key_dim + wide)
            weights += 2 * h * kernel * heads.keys if kind == FULL else 0
        mixers_by_kind[kind] = Mixer(weights, others, attending.reaches, (kernel - 1) * (cached + 2 * h))
    layers = []
    mixed = expert_layers(d) if "mlp_layer_types" in f else [mixture is not None] * d.layers
    local = f.numbers("local_layer_ids")
    if f.words("layer_types"):
        listed = kinds(d, FULL, WINDOW)
    elif local is not None:
        listed = [WINDOW if i in set(local) else FULL for i in range(d.layers)]
    else:  # every sixth sees everything, its class's default
        listed = [WINDOW if (i + 1) % 6 else FULL for i in range(d.layers)]
    for i, (kind, sparse) in enumerate(zip(listed, mixed, strict=True)):
        block = block_of(d, mixers_by_kind[kind], mixture if sparse else plain)
        queries = (4 if kind == FULL else 2) + (2 if kind == FULL else 0) if second else 0
        if second and i == 0:
            queries -= 1
        layers.append(replace(block, others=block.others + (2 * kernel + queries) * h))
    return layers


def _muse_spark(d: Decoder) -> list[Block]:
    """Read Muse Spark: gated attention, experts in a narrower space between two projections, gated residuals."""
    f, h = d.fields, d.hidden
    narrow, width = f.number("moe_hidden_size") or h, f.number("moe_intermediate_size")
    mixture = experts(d)
    if mixture:
        mixture = mixture._replace(
            expert=3 * narrow * width, dense=2 * h * narrow, others=mixture.others + 2 * narrow, shared=0
        )
    # counted from the last, every fourth layer sees everything
    usual_kinds = [FULL if (d.layers - 1 - i) % 4 == 0 else WINDOW for i in range(d.layers)]
    listed = kinds(d) if f.words("layer_types") else usual_kinds
    mixers_by_kind, plain = mixers(d, listed), dense(d, d.ffn)
    mixed = expert_layers(d) if "mlp_layer_types" in f else [True] * d.layers
    layers = zip(listed, mixed, strict=True)
    return [block_of(d, mixers_by_kind[kind], mixture if mixture and sparse else plain) for kind, sparse in layers]


def _laguna(d: Decoder) -> list[Block]:
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


def _modernbert_decoder(d: Decoder) -> list[Block]:
    """Read ModernBERT's decoder: windows of half the stated width, no norm before the first attention."""
    f = d.fields
    step = f.number("global_attn_every_n_layers", default=3) or 3
    listed = (
        kinds(d, FULL, WINDOW) if f.words("layer_types") else [WINDOW if i % step else FULL for i in range(d.layers)]
    )
    window = f.number("local_attention", default=128) // 2  # stated for both sides; a decoder looks back alone
    mixers_by_kind = {kind: attention(d, kind, window=window) for kind in (FULL, WINDOW)}
    feed = dense(d, d.ffn)
    return [block_of(d, mixers_by_kind[kind], feed, norms=2 if i else 1) for i, kind in enumerate(listed)]


def _modernbert_extra(d: Decoder) -> int:
    """Count the dense head with its norm, and the bias of the output."""
    f = d.fields
    return d.hidden * d.hidden + d.norm + (d.vocab if f.flag("decoder_bias", default=True) else 0)


def _bamba(d: Decoder) -> list[Block]:
    """Read Bamba: Mamba-2 everywhere but in the layers that attn_layer_indices names."""
    if d.fields.raw("attn_layer_indices") or d.fields.words("layer_types"):
        return usual(d)  # which takes a missing list for attention everywhere
    mixer = mixers(d, [LINEAR])[LINEAR]
    return [block_of(d, mixer, dense(d, d.ffn))] * d.layers


def _molmo_2_extra(d: Decoder) -> int:
    """Count the further rows of the input embedding."""
    d.lookup += d.fields.number("additional_vocab_size") * d.hidden
    return 0


# --- Which family is what.

FAMILIES: dict[str, Family] = {
    # Llama's kin: RMS norms, gated feed-forwards, no biases, rotated positions
    "llama": Family(),
    "minicpm": Family(tied=True),
    "arcee": Family(gated=False),
    "exaone": Family(key_bias=""),
    "seed_oss": Family(key_bias="qkv"),
    "internlm3": Family(blocks=_internlm_3),
    "glm4": Family(norms=4, key_bias="qkv"),
    "glm4v_text": Family(norms=4, bias="qkv"),
    "glm4_moe": Family(qk_norm="head", qk_norm_key="use_qk_norm", key_bias="qkv", correction=True),
    "glm4_moe_lite": Family(correction=True),
    "qwen2": Family(bias="qkv"),
    "qwen2_moe": Family(bias="qkv", shared_gate=True),
    "qwen3": Family(qk_norm="head"),
    "minimax_m3_vl_text": Family(qk_norm="head", correction=True, blocks=_minimax_m3),
    "qwen3_next": Family(qk_norm="head", shared_gate=True, gate="full", linear="gated_delta"),
    # windows in a rhythm, norms behind either half
    "gemma2": Family(norms=4, rhythm=2),
    "gemma3": Family(norms=4, qk_norm="head", rhythm=6),
    "gemma3n": Family(norms=4, qk_norm="head", rhythm=5, blocks=_gemma_3n, extra=_gemma_3n_extra),
    "gemma4": Family(norms=4, qk_norm="head", rhythm=6, blocks=_gemma_4, extra=_layer_embeddings),
    "recurrent_gemma": Family(linear="recurrent_unit", blocks=_recurrent_gemma),
    "cohere": Family(norm="ln_w", norms=1, qk_norm="wide", qk_norm_key="use_qk_norm"),
    "cohere2": Family(norm="ln_w", norms=1, rhythm=4),
    # latent attention, experts balanced by a bias
    "axk1": Family(correction=True, blocks=_axk_1),
    "deepseek_v32": Family(correction=True, blocks=_deepseek_v32),
    "deepseek_v4": Family(correction=True, blocks=_deepseek_v4, extra=_streams_extra),
    "kimi_linear": Family(correction=True, linear="kimi_delta", blocks=_kimi_linear, extra=_kimi_extra),
    "longcat_flash": Family(correction=True, blocks=_longcat, extra=_longcat_extra),
    "dots1": Family(qk_norm="head", correction=True),
    "minimax": Family(linear="lightning"),
    "minimax_m2": Family(qk_norm="wide", correction=True),
    "mimo_v2_flash": Family(correction=True, sinks="window", blocks=_mimo_v2),
    "step3p5": Family(qk_norm="head", gate="head", blocks=_step_3_5),
    "afmoe": Family(norms=4, qk_norm="head", correction=True, gate="full", rhythm=4),
    "laguna": Family(qk_norm="head", correction=True, blocks=_laguna),
    "flint": Family(qk_norm="head", sinks="all"),
    "kolibri1": Family(norms=4, qk_norm="head", correction=True),
    "beam": Family(norms=4, qk_norm="head", correction=True, gate="full", per_layer=lambda d: d.heads),
    "gpt_oss": Family(bias="qkvo", sinks="all", rhythm=-2, blocks=_gpt_oss),
    "granite_swa": Family(sinks="all"),
    "hyperclovax": Family(blocks=_hyperclovax),
    "olmo": Family(norm="ln_np"),
    "olmo2": Family(qk_norm="wide"),
    "olmo3": Family(qk_norm="wide", rhythm=4),
    "olmo_hybrid": Family(qk_norm="wide", linear="gated_delta", blocks=_olmo_hybrid),
    "apertus": Family(gated=False, qk_norm="head", per_layer=lambda _: 2),
    "bitnet": Family(per_layer=lambda d: d.hidden + d.ffn),
    "nanochat": Family(gated=False, norms=0, final_norm=False),
    "diffllama": Family(per_layer=lambda d: 4 * d.head_dim),
    "modernbert-decoder": Family(
        norm="ln_w", tied=True, embedding_norms=1, blocks=_modernbert_decoder, extra=_modernbert_extra
    ),
    # layer norms and plain feed-forwards: most of 2019 to 2023
    "nemotron": Family(gated=False, norm="ln"),
    "jais2": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True),
    "phimoe": Family(norm="ln"),
    "phi": Family(
        gated=False,
        norm="ln",
        norms=1,
        qk_norm="head",
        qk_norm_key="qk_layernorm",
        bias="qkvo",
        mlp_bias=True,
        head_bias=True,
    ),
    "phi-msft": Family(gated=False, norm="ln", norms=1, bias="qkvo", mlp_bias=True, head_bias=True),
    "stablelm": Family(norm="ln", key_bias="qkv", blocks=_stablelm),
    "gpt2": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, tied=True, positions=0),
    "openai-gpt": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, tied=True, final_norm=False, positions=0),
    "biogpt": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, positions=2),
    "opt": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, positions=2, blocks=_opt, extra=_opt_extra),
    "xglm": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, blocks=_xglm),
    "bloom": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, tied=True, embedding_norms=1),
    "gpt_neox_japanese": Family(gated=False, norm="ln", extra=lambda d: d.hidden),
    "gpt_neo": Family(gated=False, norm="ln", bias="o", mlp_bias=True, positions=0),
    "gptj": Family(gated=False, norm="ln", norms=1, mlp_bias=True, head_bias=True),
    "persimmon": Family(gated=False, norm="ln", qk_norm="head", qk_norm_key="qk_layernorm", bias="qkvo", mlp_bias=True),
    "mpt": Family(gated=False, norm="ln_w", tied=True, blocks=_mpt, extra=_mpt_extra),
    "jais": Family(norm="ln", bias="qkvo", mlp_bias=True, tied=True),
    "dbrx": Family(norm="ln_w", blocks=_dbrx),
    "falcon": Family(gated=False, norm="ln", blocks=_falcon),
    "falcon_h1": Family(blocks=_falcon_h1),
    # recurrent mixers among attention, or in its place
    "jamba": Family(linear="mamba1"),
    "zamba": Family(blocks=_zamba),
    "zamba2": Family(blocks=_zamba_2),
    "nemotron_h": Family(gated=False, norms=1, blocks=_nemotron_h),
    "nemotron-nas": Family(blocks=block_configs),
    "lfm2": Family(qk_norm="head", linear="short_convolution"),
    "lfm3": Family(norms=4, qk_norm="head", gate="head", linear="short_convolution"),
    "ernie4_5": Family(tied=True, correction=True, blocks=_ernie),
    "hunyuan_v1_dense": Family(qk_norm="head", tied=True),
    "hunyuan": Family(qk_norm="head", qk_norm_key="use_qk_norm", blocks=_hunyuan),
    "llama4": Family(blocks=_llama_4),
    "mllama_text_model": Family(blocks=_mllama),
    "jetmoe": Family(blocks=_jetmoe),
    "openelm": Family(blocks=_openelm),
    "bailing_hybrid": Family(correction=True, blocks=_bailing_hybrid),
    "grok": Family(norms=4, blocks=_grok),
    "arctic": Family(blocks=_arctic),
    "chameleon": Family(blocks=_chameleon),
    "axk2": Family(correction=True, blocks=_axk_2),
    "hy_v4": Family(correction=True, gate="full", sinks="all", blocks=_hy_4, extra=_streams_extra),
    "dots3_note_text": Family(correction=True, gate="head", blocks=_dots_3),
    "mistral_large4_text": Family(blocks=_mistral_large_4),
    "glm5_next_text": Family(correction=True, blocks=_glm_5_next),
    "qwen4_exp_text": Family(
        qk_norm="head",
        final_norm=False,
        shared_gate=True,
        gate="full",
        linear="gated_delta",
        blocks=_qwen_4,
        extra=_qwen_4_extra,
    ),
    "zaya": Family(tied=True, blocks=_zaya, extra=lambda d: 2 * d.hidden),
    "doge": Family(qk_norm="head", blocks=_doge),
    "hrm_text": Family(final_norm=False, gate="full", blocks=_hrm, extra=lambda d: d.hidden),
    "inkling_text": Family(qk_norm="head", embedding_norms=1, correction=True, blocks=_inkling),
    "inkling2_text": Family(embedding_norms=1, correction=True, gate="full", blocks=_inkling, extra=lambda d: d.hidden),
    "muse_glimmer_text": Family(norms=4, gate="full", rhythm=4),
    "muse_spark_text": Family(norms=5, correction=True, gate="full", blocks=_muse_spark),
    "molmo2_text": Family(qk_norm="head", qk_norm_key="use_qk_norm", extra=_molmo_2_extra),
    "cohere_compass_text": Family(norm="ln_w", norms=1, tied=True, rhythm=4),
    "bamba": Family(blocks=_bamba),
    "ctrl": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, tied=True, extra=lambda d: d.vocab),
}


@cache
def families() -> dict[str, Family]:
    """Return the family of every known model type."""
    return {model_type: FAMILIES[family] for model_type, family in beside(__file__, "model_types")[1:]}


def family_of(kind: str, architectures: list[str]) -> Family | None:
    """Return the rule of a model type, or None where it is not known; Grok gives itself away by its class alone."""
    if any("grok" in name.lower() for name in architectures):  # its file names no model type
        kind = "grok"
    return families().get(kind) or families().get(kind.removesuffix("_text"))
