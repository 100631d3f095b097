"""Families whose layers are not all attention: Nemotron-H, Zamba, Falcon-H1, RecurrentGemma, Ling's hybrids, OLMo."""

from dataclasses import replace

from gpucost.architectures.attention import FULL, LINEAR, Heads, Mixer, attention, latent
from gpucost.architectures.decoder import Decoder
from gpucost.architectures.feedforward import FeedForward, dense, dense_width, expert_layers, experts
from gpucost.architectures.layers import block_of, kinds, mixers
from gpucost.architectures.mixers import gated_delta, mamba2, recurrent_unit
from gpucost.types import Block, Reach

_NEMOTRON = {"m": "mamba", "*": "attention", "-": "mlp", "e": "moe"}


def nemotron_h(d: Decoder) -> list[Block]:
    """Read Nemotron-H: every block is a Mamba-2 mixer, an attention, a feed-forward or a mixture, with one norm."""
    f = d.fields
    words = f.words("layers_block_type", "layer_types")
    pattern = f.word("hybrid_override_pattern")
    if words is None and pattern:
        if strange := set(pattern) - set(_NEMOTRON):
            raise f.fail(f"hybrid_override_pattern has {sorted(strange)[0]!r}, which is none of M, *, -, E")
        words = [_NEMOTRON[sign] for sign in pattern]
    f.taken.add("num_hidden_layers")  # the pattern says it
    if not words or len(words) > 4096:
        raise f.fail("needs hybrid_override_pattern or layers_block_type, which say what its blocks are")
    made: dict[str, Block] = {}
    for word in dict.fromkeys(words):
        if word == "moe":
            made[word] = block_of(d, Mixer(0), _latent_experts(d))
        elif word in ("mlp", "dense"):
            made[word] = block_of(d, Mixer(0), dense(d, d.ffn))
        elif "mamba" in word or "linear" in word:
            made[word] = block_of(d, mamba2(d))
        else:
            made[word] = block_of(d, attention(d, FULL))
    return [made[word] for word in words]


def _latent_experts(d: Decoder) -> FeedForward:
    """Count a mixture whose experts work in a narrower space, between two projections (Nemotron 3 Super)."""
    f, mixture = d.fields, experts(d)
    if mixture is None:
        raise f.fail("has mixtures of experts in its pattern, but no n_routed_experts")
    narrow, width = f.number("moe_latent_size"), f.number("moe_intermediate_size")
    shared = 2 * d.hidden * f.number("moe_shared_expert_intermediate_size") * max(1, f.number("n_shared_experts"))
    mixture = mixture._replace(shared=shared, others=mixture.experts)
    return mixture._replace(expert=2 * narrow * width, dense=2 * d.hidden * narrow) if narrow else mixture


def falcon_h1(d: Decoder) -> list[Block]:
    """Read Falcon-H1: a Mamba-2 mixer beside the attention of every layer."""
    ours, theirs = attention(d, FULL), mamba2(d)
    both = Mixer(ours.weights + theirs.weights, ours.others + theirs.others, ours.reaches, theirs.state_values, True)
    return [block_of(d, both, dense(d, d.ffn))] * d.layers


def kimi_linear(d: Decoder) -> list[Block]:
    """Read Kimi Linear and Kimi K3: delta and latent attention; K3's experts are narrower, its residuals attended."""
    f, h = d.fields, d.hidden
    gated = f.flag("mla_use_output_gate")
    made = mixers(replace(d, family=replace(d.family, gate="full" if gated else "")), listed := kinds(d))
    mixture, plain, narrow = experts(d), dense(d, dense_width(d)), f.number("routed_expert_hidden_size")
    if mixture and narrow:
        mixture = mixture._replace(
            expert=mixture.expert // h * narrow,
            dense=2 * h * narrow,
            others=mixture.others + (narrow if f.flag("latent_moe_use_norm") else 0),
        )
    sparse = expert_layers(d) if mixture else [False] * d.layers
    if mixture and not {"first_k_dense_replace", "mlp_layer_types"} & set(f.values):
        sparse = [i > 0 for i in range(d.layers)]
    norms = 6 if f.number("attn_res_block_size") else 2
    layers = zip(listed, sparse, strict=True)
    return [block_of(d, made[kind], mixture if mixed else plain, norms=norms) for kind, mixed in layers]


def kimi_extra(d: Decoder) -> int:
    """Count the projection and norm that join the residuals at the end (Kimi K3)."""
    return 2 * d.hidden if d.fields.number("attn_res_block_size") else 0


def recurrent_gemma(d: Decoder) -> list[Block]:
    """Read RecurrentGemma: recurrent blocks and windowed attention, half the stated feed-forward width, biases."""
    q, f = d.heads * d.head_dim, d.fields
    kept = d.kv_heads * d.head_dim
    attending = Mixer(
        2 * d.hidden * (q + kept),
        d.hidden,
        (Reach(2 * kept, 4 * q, f.number("attention_window_size", default=2048)),),
    )
    width = d.ffn // 2
    feed = dense(d, width)._replace(others=2 * width + d.hidden)
    made = {True: recurrent_unit(d), False: attending}
    return [block_of(d, made[kind == LINEAR], feed) for kind in kinds(d)]


def bailing_hybrid(d: Decoder) -> list[Block]:
    """Read Ling 2.5 and its kin: delta attention with full-rank gates, and latent attention every few layers."""
    f, h = d.fields, d.hidden
    heads, width = f.number("linear_num_heads") or d.heads, f.number("linear_head_dim", "head_dim") or d.head_dim
    joint, kernel = heads * width, f.number("short_conv_kernel_size", "linear_conv_kernel_dim", default=4)
    linear = Mixer(
        6 * h * joint + h * heads,
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


def olmo_hybrid(d: Decoder) -> list[Block]:
    """Read OLMo hybrid: gated delta nets with a projection for every part."""
    f = d.fields
    kernel = f.number("linear_conv_kernel_dim", default=4)
    linear, full = gated_delta(d), attention(d, FULL)
    return [block_of(d, linear if kind == LINEAR else full, dense(d, d.ffn)) for kind in kinds(d) if kernel]


def _shared_heads(d: Decoder) -> Mixer:
    """Count the attention of a shared Zamba block: its input is the stream and the embedding side by side."""
    h = d.hidden
    wide = d.fields.number("attention_hidden_size") or 2 * h
    keys = d.fields.number("num_key_value_heads") or d.heads
    width = d.fields.number("attention_head_dim") or wide // d.heads
    heads = Heads(d.heads, keys, width, width)
    weights = wide * (heads.queries + 2 * keys) * width + heads.queries * width * h
    return Mixer(weights, 0, (Reach(2 * keys * width, 4 * heads.queries * width),))


def zamba_2(d: Decoder) -> list[Block]:
    """Read Zamba2: Mamba-2 layers, some of which first apply a shared transformer block with adapters of their own."""
    f, h = d.fields, d.hidden

    words = f.words("layers_block_type", "layer_types") or _zamba_2_words(d)
    ids = f.numbers("hybrid_layer_ids")
    hybrid = set(ids) if ids else {i for i, word in enumerate(words) if word == "hybrid"}
    width, rank, memory = d.ffn, f.number("adapter_rank", default=128), max(1, f.number("num_mem_blocks", default=1))
    mixer, shared = mamba2(d), _shared_heads(d)
    adapters = rank * (h + 2 * width)
    if f.flag("use_shared_attention_adapter"):
        adapters += 3 * 2 * rank * 2 * h
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
                dense=(transformer if first else 0) + h * h + adapters,
                norms=block.norms + (3 * h if first else 0),
                reused=0 if first else shared.weights + transformer,
            )
        layers.append(block)
    return layers


def _zamba_2_words(d: Decoder) -> list[str]:
    words = ["mamba"] + (["mamba"] * 5 + ["hybrid"]) * 7 + ["mamba"] * 4 + ["hybrid"] + ["mamba"] * 3 + ["hybrid"]
    return (words + ["mamba"] * d.layers)[: d.layers]


def zamba(d: Decoder) -> list[Block]:
    """Read Zamba: Mamba layers of several heads, one shared transformer block."""
    f, h = d.fields, d.hidden
    inner = 2 * h
    f.raw("n_mamba_heads", "mamba_conv_bias", "attention_hidden_size")  # shapes of weights that are counted jointly
    states, kernel = f.number("mamba_d_state", default=16), f.number("mamba_d_conv", default=4)
    rank = f.number("mamba_dt_rank") if isinstance(f.raw("mamba_dt_rank"), int) else -(-h // 16)
    weights = 2 * h * inner + inner * (rank + 2 * states) + rank * inner + inner * h
    mixer = Mixer(weights, inner * (kernel + 1) + 2 * inner + inner * states, (), inner * (states + kernel - 1), True)
    shared, words = _shared_heads(d), f.words("layers_block_type", "layer_types")
    period, offset = f.number("attn_layer_period", default=6), f.number("attn_layer_offset", default=4)
    if not period:
        raise f.fail("attn_layer_period must be 1 or more, found 0")
    hybrid = [word == "hybrid" for word in words] if words else [i % period == offset for i in range(d.layers)]
    layers, met = [], False
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
