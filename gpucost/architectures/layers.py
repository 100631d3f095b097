"""The layers of a language model: shared dimensions, attention, feed-forwards, other mixers, and their usual blocks."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from gpucost.architectures.config import KEYS, MOST_LAYERS, Fields, layer_of
from gpucost.types import Block, Reach

# --- A language model as its family's rule reads it: the dimensions that layers share, the traits of the family.

_VECTORS = {"rms": 1, "ln": 2, "ln_w": 1, "ln_np": 0}  # of the hidden width in one norm


class Family(Struct, frozen=True):
    """What a family of models implies without writing it down. The plain one is Llama."""

    gated: bool = True  # three matrices in a feed-forward, not two
    norm: str = "rms"
    norms: int = 2  # of the hidden width in a layer
    qk_norm: str = ""  # norms of queries and keys: "head" (of each head) | "wide" (of all heads together)
    qk_norm_key: str = ""  # the key that switches them on, where one does
    bias: str = ""  # always on "qkv", or on "qkvo"
    key_bias: str = "qkvo"  # what attention_bias means here
    mlp_bias: bool = False
    head_bias: bool = False
    tied: bool = False  # where neither the file nor its class says
    final_norm: bool = True
    embedding_norms: int = 0
    positions: int | None = None  # learned positions, with so many rows beside the longest sequence
    correction: bool = False  # a correction bias for each expert
    shared_gate: bool = False
    gate: str = ""  # of the attention's output: "full" | "head"
    sinks: str = ""  # "all" | "window"
    rhythm: int = 0  # one layer in so many attends to everything; the others within the window
    linear: str = ""  # the mixer of layers that do not attend
    blocks: "Callable[[Decoder], list[Block]] | None" = None  # the rule of a family unlike others
    extra: "Callable[[Decoder], int] | None" = None  # parameters beside the layers
    per_layer: "Callable[[Decoder], int] | None" = None  # small further parameters of each layer
    understood: bool = True


class Decoder(Struct, dict=True):
    """The fields of a language model with the family that reads them, and what the rules found on the way."""

    fields: Fields
    family: Family
    kind: str
    warnings: list[str] = field(default_factory=list)
    lookup: int = 0  # parameters that are looked up, not multiplied by: per-layer embeddings

    def required(self, *names: str) -> int:
        """Return a dimension that every transformer has."""
        value = self.fields.maybe(*names)
        if not value:
            raise self.fields.fail(
                f"has no {' or '.join(names[:3])}; it does not look like a transformer's configuration"
            )
        return value

    @cached_property
    def layers(self) -> int:
        """How many layers there are; listed kinds may say it where no number does."""
        count = self.required(*KEYS["layers"])
        if count > MOST_LAYERS:
            raise self.fields.fail(f"{count} layers makes no sense; no model has as many")
        return count

    @cached_property
    def hidden(self) -> int:
        """Width of the residual stream."""
        return self.required(*KEYS["hidden"])

    @cached_property
    def heads(self) -> int:
        """Query heads of most layers; those of JetMoE are its key-value heads, once for each expert visited."""
        if self.kind == "jetmoe" and not self.fields.number(*KEYS["heads"]):
            return self.fields.number("num_key_value_heads") * max(1, self.fields.number("num_experts_per_tok"))
        return self.required(*KEYS["heads"])

    @cached_property
    def head_dim(self) -> int:
        """Dimension of a head."""
        stated = self.fields.number(*KEYS["head_dim"])
        if not stated and self.hidden % self.heads:
            raise self.fields.fail(
                f"hidden size {self.hidden} is not a multiple of {self.heads} heads, and head_dim is not given"
            )
        return stated or self.hidden // self.heads

    @cached_property
    def kv_heads(self) -> int:
        """Key-value heads of most layers."""
        f = self.fields
        if self.kind in ("falcon", "refinedweb", "refinedwebmodel") and not f.flag("new_decoder_architecture"):
            return 1 if f.flag("multi_query", default=self.kind != "refinedweb") else self.heads
        if self.kind == "gpt_bigcode":
            f.taken.add("num_key_value_heads")  # multi_query says it
            return 1 if f.flag("multi_query", default=True) else self.heads
        if f.word("attn_type") == "multi_query":
            return 1
        if f.values.get("multi_query_attention") is False:
            return self.heads
        heads = f.number(*KEYS["kv_heads"]) or self.heads
        if not heads:
            raise f.fail("it has no attention heads")
        if self.heads % heads:
            raise f.fail(f"{self.heads} query heads cannot share {heads} key-value heads evenly")
        return heads

    @cached_property
    def vocab(self) -> int:
        """Rows of the embedding."""
        return self.required(*KEYS["vocab"])

    @cached_property
    def ffn(self) -> int:
        """Width of a dense feed-forward."""
        width = (
            self.fields.number(*KEYS["ffn"])
            or self.fields.number("intermediate_multiple_size", default=4) * self.hidden
        )
        return width // 2 if self.kind == "qwen" else width  # which states both halves of its gate together

    @cached_property
    def norm(self) -> int:
        """Parameters of one norm of the hidden width."""
        return _VECTORS[self.family.norm] * self.hidden

    @cached_property
    def window(self) -> int:
        """Tokens of the sliding window or chunk; 0 where there is none."""
        return self.fields.number(*KEYS["window"])

    @cached_property
    def tied(self) -> bool:
        """Whether input and output embeddings share their weights."""
        return self.fields.flag("tie_word_embeddings", "share_input_output_layers", default=self.family.tied)


# --- Attention of one layer: its projections, biases and norms, and what it keeps of every token.
#
# A cache law is a tuple of `Reach`: all tokens or a window of them, a latent instead of keys and values, the keys of
# an indexer beside it, entries that stand for several tokens. Layers that read another layer's cache keep nothing.

FULL, WINDOW, CHUNK, LINEAR, NONE = "full", "window", "chunk", "linear", "none"


class Mixer(NamedTuple):
    """What mixes the tokens of one layer."""

    weights: int
    others: int = 0
    reaches: tuple[Reach, ...] = ()
    state_values: int = 0
    linear: bool = False


class Heads(NamedTuple):
    """The heads of one kind of layer."""

    queries: int
    keys: int
    key_dim: int
    value_dim: int


def heads_of(d: Decoder) -> Heads:
    """Return the heads of most layers."""
    return Heads(d.heads, d.kv_heads, d.head_dim, d.fields.number("v_head_dim") or d.head_dim)


def attention(
    d: Decoder,
    kind: str,
    heads: Heads | None = None,
    window: int = 0,
    *,
    keeps: bool = True,
    shared_values: bool = False,
) -> Mixer:
    """Count plain, grouped or multi-query attention: h·(q + k + v) + o·h, 2·kv·d values a token.

    `keeps` is false for a layer that reads another layer's keys and values; `shared_values` for one whose values are
    its keys before rotation, which it caches all the same.
    """
    q, kv, key_dim, value_dim = heads or heads_of(d)
    h, query, value = d.hidden, q * key_dim, q * value_dim
    key_value = kv * (key_dim if shared_values else key_dim + value_dim) if keeps else 0
    weights = h * (query + key_value) + value * h

    # Biases: as the family has them, else where the file says so; those of the output may be said apart.
    f, family = d.fields, d.family
    stated = f.flag(*KEYS["bias"])
    bias = family.bias or (family.key_bias if stated else "")
    output = "o" in bias if "attention_out_bias" not in f else f.flag("attention_out_bias")
    others = (query + key_value if "qkv" in bias else 0) + (h if output else 0)

    # Norms of queries and keys: over all heads together, or one vector that all heads share.
    rule = "" if family.qk_norm_key and not f.flag(family.qk_norm_key) else family.qk_norm
    if rule == "wide":
        others += query + (kv * key_dim if keeps else 0)
    elif rule == "head":
        others += (2 if keeps and kv * key_dim else 1) * key_dim * (2 if family.norm == "ln" else 1)

    # A gate multiplies the output, each value or each head; a sink is one logit of each query head (gpt-oss).
    gate, sinks = family.gate or ("full" if f.flag("attn_output_gate") else ""), family.sinks
    weights += h * (value if gate == "full" else q if gate == "head" else 0)
    others += q if sinks == "all" or (sinks == "window" and kind == WINDOW) else 0
    cached = kv * (key_dim + value_dim) if keeps else 0
    reach = Reach(cached, 2 * q * (key_dim + value_dim), (window or d.window) if kind in (WINDOW, CHUNK) else 0)
    return Mixer(weights, others, (reach,))


class Latent(NamedTuple):
    """The ranks and heads of multi-head latent attention."""

    heads: int
    query_rank: int
    rank: int
    nope: int
    rope: int
    value: int


def latent_of(d: Decoder) -> Latent:
    """Read the ranks of multi-head latent attention; all of them must be there."""
    f = d.fields
    f.taken.update(("head_dim", "num_key_value_heads", "qk_head_dim"))  # which latent attention has no use for
    names = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    nope, rope, value = sizes = [f.number(name) for name in names]
    for name, size in zip(names, sizes, strict=True):
        if name not in f or not (size or name != "v_head_dim"):  # some layers turn no part of a head, or all of it
            raise f.fail(f"multi-head latent attention needs {name}, found {f.raw(name)!r}")
    if not nope + rope:
        raise f.fail("multi-head latent attention needs qk_nope_head_dim or qk_rope_head_dim above zero")
    return Latent(d.heads, f.number("q_lora_rank"), f.number("kv_lora_rank"), nope, rope, value)


def latent(d: Decoder, ranks: Latent | None = None, kind: str = FULL, *, indexer: bool | None = None) -> Mixer:
    """Count multi-head latent attention (arXiv:2405.04434, eq. 9-19): a latent and a rotary key are cached.

    With an indexer (DeepSeek-V3.2) every token also keeps an indexer key, and a query attends to `index_topk` tokens.
    """
    n, h = ranks or latent_of(d), d.hidden
    query = n.heads * (n.nope + n.rope)
    queries = n.query_rank * (h + query) if n.query_rank else h * query
    weights = queries + h * (n.rank + n.rope) + n.rank * n.heads * (n.nope + n.value) + n.heads * n.value * h
    # norms of the two latents; biases of what leads down to them and of the output
    biased = d.fields.flag("attention_bias")
    others = n.query_rank + n.rank + ((n.query_rank or 0) + n.rank + n.rope + h if biased else 0)
    gate = d.family.gate
    weights += h * (n.heads * n.value if gate == "full" else n.heads if gate == "head" else 0)
    others += n.heads if d.family.sinks == "all" else 0
    top = d.fields.number("index_topk") if d.fields.number("index_n_heads") and kind == FULL else 0
    latent_reach = Reach(
        n.rank + n.rope,
        2 * n.heads * (n.nope + n.rope + n.value),
        d.window if kind == WINDOW else 0,
        looks_at_most=top,
        latent_flop=2 * n.heads * (2 * n.rank + n.rope),
    )
    if not (top if indexer is None else indexer and top):
        return Mixer(weights, others, (latent_reach,))
    # The indexer: its queries from the latent of the queries, one key with a layer norm, a weight for each head. It
    # looks at all tokens, at far less than attention would take.
    heads, width = d.fields.number("index_n_heads"), d.fields.number("index_head_dim")
    weights += (n.query_rank or h) * heads * width + h * (width + heads)
    return Mixer(weights, others + 2 * width, (latent_reach, Reach(width, 2 * heads * width)))


# --- Feed-forwards of one layer: dense, or routed experts with shared ones beside them, and which layer has which.


class FeedForward(NamedTuple):
    """What a layer does to each token by itself."""

    dense: int = 0
    experts: int = 0
    per_token: float = 0.0
    expert: int = 0
    shared: int = 0
    router: int = 0
    others: int = 0

    def into(self, block: Block) -> Block:
        """Return a block with this feed-forward added."""
        block = replace(block, dense=block.dense + self.dense, others=block.others + self.others)
        if not self.experts:
            return block
        return replace(
            block,
            experts=self.experts,
            experts_per_token=self.per_token,
            expert=self.expert,
            shared=self.shared,
            router=self.router,
        )


def _matrices(d: Decoder) -> int:
    """Return the matrices of one feed-forward: three where it is gated, else two."""
    return 3 if d.family.gated else 2


def dense(d: Decoder, width: int) -> FeedForward:
    """Count a dense feed-forward: h·width a matrix, and biases where the family has them."""
    biased = d.fields.flag("mlp_bias") or d.family.mlp_bias
    return FeedForward(
        dense=_matrices(d) * d.hidden * width, others=(_matrices(d) - 1) * width + d.hidden if biased else 0
    )


def experts(d: Decoder) -> FeedForward | None:
    """Count a mixture of experts, or return None where the model has none."""
    f, h, count = d.fields, d.hidden, d.fields.number(*KEYS["experts"])
    width = f.number(*KEYS["expert_ffn"])
    if count <= 1:
        return None
    per_token = f.number(*KEYS["per_token"])
    if not 1 <= per_token <= count:
        raise f.fail(f"{per_token} experts per token of {count} experts makes no sense")
    width = width or d.ffn
    # shared experts: how many of the routed ones' width, or a width of their own, of all together or of each
    joint = f.number(*KEYS["shared_ffn"])
    number = f.number(*KEYS["shared"])
    shared = max(joint, 0) if joint else number * width
    if joint and number > 1 and set(KEYS["each_shared_ffn"]) & set(f.values):
        shared = joint * number
    # a bias of each expert that only chooses, against uneven load (DeepSeek-V3, arXiv:2412.19437, eq. 16)
    corrected = (
        d.family.correction
        or f.word("topk_method") == "noaux_tc"
        or f.flag("use_routing_bias")
        or f.flag("moe_router_enable_expert_bias", "use_expert_bias")
    )
    return FeedForward(
        experts=count,
        per_token=per_token,
        expert=_matrices(d) * h * width,
        shared=_matrices(d) * h * shared,
        router=count * h + (h if d.family.shared_gate and shared else 0),
        others=count if corrected else 0,
    )


def dense_width(d: Decoder) -> int:
    """Return the width of the dense layers of a mixture; of every layer where it is none."""
    return d.fields.number(*KEYS["dense_ffn"]) or d.ffn


def feeds(d: Decoder) -> list[FeedForward]:
    """Return the feed-forward of every layer: a mixture of experts, or a dense one."""
    mixture, plain = experts(d), dense(d, dense_width(d))
    return [mixture if mixture and mixed else plain for mixed in expert_layers(d)]


def expert_layers(d: Decoder) -> list[bool]:
    """Return for every layer whether it is a mixture of experts."""
    f, count = d.fields, d.layers

    # A word for each layer.
    listed = f.words("mlp_layer_types")
    if listed is not None:
        if len(listed) < count:
            raise f.fail(f"mlp_layer_types names the kinds of {len(listed)} layers, but there are {count}")
        return [kind != "dense" for kind in listed[:count]]

    # The numbers of the mixtures, or 0 and 1 for each layer; Step writes the numbers as a text.
    for name in ("moe_layer_freq", "moe_layers", "moe_layers_enum"):
        if name == "moe_layers_enum" and isinstance(f.raw(name), str):
            numbered = {layer_of(item.strip()) for item in f.word(name).split(",")}
            return [i in numbered for i in range(count)]
        numbers = f.numbers(name) if isinstance(f.raw(name), list) else None
        if numbers is None:
            continue
        if set(numbers) <= {0, 1} and len(numbers) >= count:
            return [bool(item) for item in numbers[:count]]
        return [i in set(numbers) for i in range(count)]

    # A rhythm: every so many layers from an offset (Jamba), or after the first dense ones, up to a last one (ERNIE).
    dense_only = set(f.numbers("mlp_only_layers") or ())
    period, offset = f.number("expert_layer_period"), f.number("expert_layer_offset")
    if period:
        return [i % period == offset for i in range(count)]
    step, first = max(1, f.number(*KEYS["step"], default=1)), f.number(*KEYS["first_dense"])
    last = (
        count - 1 if f.values.get("moe_layer_end_index") == -1 else f.number("moe_layer_end_index", default=count - 1)
    )
    if first > count:
        raise f.fail(f"{first} leading dense layers of {count} layers makes no sense")
    # Qwen's decoder_sparse_step counts layers from one, DeepSeek's moe_layer_freq from zero
    phase = 0 if first or "moe_layer_freq" in f else 1
    return [first <= i <= last and i not in dense_only and (i + phase) % step == 0 for i in range(count)]


# --- Mixers that stand in for attention: gated delta nets, Mamba, lightning attention, short convolutions; their
# state.
#
# A convolution of width k over c channels has c·k weights and keeps the last k − 1 inputs of each channel.


def gated_delta(d: Decoder) -> Mixer:
    """Count a gated delta net: queries, keys, values, gate, two scalars a head, a short convolution, output."""
    f, h = d.fields, d.hidden
    heads, width = f.number("linear_num_value_heads"), f.number("linear_value_head_dim")
    key_heads, key_dim = f.number("linear_num_key_heads"), f.number("linear_key_head_dim")
    keys, values, kernel = key_heads * key_dim, heads * width, f.number("linear_conv_kernel_dim", default=4)
    # queries, keys, values and the gate; a decay and a learning rate for each head; the output
    weights = h * (2 * keys + 2 * values + 2 * heads) + values * h
    # each value head keeps a matrix of keys × values (arXiv:2412.06464, eq. 10)
    state = heads * width * key_dim + (2 * keys + values) * (kernel - 1)
    return Mixer(weights, (2 * keys + values) * kernel + 2 * heads + width, (), state, True)


def kimi_delta(d: Decoder) -> Mixer:
    """Count Kimi delta attention: queries, keys, values, output, low-rank decay and gate, short convolutions."""
    f, h = d.fields.part("linear_attn_config") or d.fields, d.hidden
    heads = f.number("linear_num_heads", "num_heads")
    width = f.number("linear_head_dim") or f.number("head_dim")
    joint, kernel = heads * width, f.number("short_conv_kernel_size", "linear_conv_kernel_dim", default=4)
    # the decay of each channel and the gate of the output come through a bottleneck of one head's width
    gate = h * joint if f.flag("use_full_rank_gate") else h * width + width * joint
    weights = 4 * h * joint + h * width + width * joint + gate + h * heads
    return Mixer(
        weights, 3 * joint * kernel + joint + heads + width, (), joint * width + 3 * joint * (kernel - 1), True
    )


def mamba2(d: Decoder) -> Mixer:
    """Count a Mamba-2 mixer: gate, values, states and step sizes, a short convolution, output (arXiv:2405.21060)."""
    f, h = d.fields, d.hidden
    heads = f.number("mamba_n_heads", "mamba_num_heads", "n_mamba_heads")
    inner = heads * (f.number("mamba_d_head", "mamba_head_dim", "mamba_headdim") or -(-_inner(d) // max(heads, 1)))
    if d.kind == "falcon_h1":
        inner = f.number("mamba_d_ssm") or inner
    states = f.number("mamba_n_groups", "n_groups", "mamba_ngroups", default=1) * f.number(
        "mamba_d_state", "ssm_state_size", default=128
    )
    kernel = f.number("mamba_d_conv", "conv_kernel", default=4)
    channels = inner + 2 * states  # of the convolution: values, and the states' inputs and outputs
    weights = h * (2 * inner + 2 * states + heads) + inner * h
    biases = (2 * inner + 2 * states + heads + h) if f.flag("mamba_proj_bias", "add_bias_linear") else 0
    normed = inner if f.flag("mamba_rms_norm", default=d.kind != "falcon_h1") else 0
    bias = channels if f.flag("use_conv_bias", "mamba_conv_bias", default=True) else 0
    # each channel keeps one state per dimension of its group
    per_group = states // max(1, f.number("mamba_n_groups", "n_groups", "mamba_ngroups", default=1))
    return Mixer(
        weights,
        # three scalars of each head: its decay, its skip and the bias of its step
        channels * kernel + bias + 3 * heads + normed + biases,
        (),
        inner * per_group + channels * (kernel - 1),
        True,
    )


def _inner(d: Decoder) -> int:
    return int(d.fields.ratio("mamba_expand", d.fields.ratio("expand", 2.0)) * d.hidden)


def _mamba1(d: Decoder) -> Mixer:
    """Count a Mamba mixer: gate and values, a short convolution, selective states and step sizes, output."""
    f, h, inner = d.fields, d.hidden, _inner(d)
    states, kernel = f.number("mamba_d_state", default=16), f.number("mamba_d_conv", default=4)
    stated_rank = f.raw("mamba_dt_rank")
    # of the step sizes: a sixteenth of the width, rounded up (arXiv:2312.00752, section 3.6 and its code)
    rank = -(-h // 16) if stated_rank in (None, "auto") else f.whole("mamba_dt_rank", stated_rank)
    weights = 2 * h * inner + inner * (rank + 2 * states) + rank * inner + inner * h
    biased = f.flag("mamba_conv_bias", default=True)
    others = inner * (kernel + biased) + inner + inner * states + inner + rank + 2 * states
    return Mixer(weights, others, (), inner * (states + kernel - 1), True)


def _lightning(d: Decoder) -> Mixer:
    """Count lightning attention: queries, keys, values, gate and output over all heads, and a norm."""
    joint = d.heads * d.head_dim
    return Mixer(5 * d.hidden * joint, joint, (), joint * d.head_dim, True)


def _short_convolution(d: Decoder) -> Mixer:
    """Count a gated short convolution: three projections in, the kernel, one out (LFM2)."""
    h, kernel = d.hidden, d.fields.number("conv_L_cache", default=3)
    bias = 5 * h if d.fields.flag("conv_bias") else 0
    return Mixer(4 * h * h, kernel * h + bias, (), h * kernel, True)


def recurrent_unit(d: Decoder) -> Mixer:
    """Count Griffin's recurrent block: two branches, a convolution, a gated linear recurrence by heads, output."""
    f, h = d.fields, d.hidden
    width, kernel = f.number("lru_width") or h, f.number("conv1d_width", default=4)
    # two gates, each a block for every head; their biases, the recurrence's decay and the convolution
    # (arXiv:2402.19427)
    gates = 2 * d.heads * (width // d.heads) ** 2
    others = 2 * width + h + width * (kernel + 1) + width + 2 * width
    return Mixer(3 * h * width + gates, others, (), width * kernel, True)


_NAMED: dict[str, Callable[[Decoder], Mixer]] = {
    "gated_delta": gated_delta,
    "kimi_delta": kimi_delta,
    "mamba2": mamba2,
    "mamba1": _mamba1,
    "lightning": _lightning,
    "short_convolution": _short_convolution,
    "recurrent_unit": recurrent_unit,
}
# The first key that is there decides; Mamba-2 states heads, which Mamba has none of.
_SIGNS = (
    ("linear_num_value_heads", gated_delta),
    ("linear_attn_config", kimi_delta),
    ("linear_num_heads", kimi_delta),
    ("mamba_n_heads", mamba2),
    ("mamba_num_heads", mamba2),
    ("n_mamba_heads", mamba2),
    ("mamba_d_state", _mamba1),
    ("conv_L_cache", _short_convolution),
    ("lru_width", recurrent_unit),
)


# --- Which layers attend to everything, within a window or a chunk, or not at all; and the usual assembly of blocks.

_MOST_KINDS = 64  # of layers with keys of their own
_PATTERNS = ("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers", "window_pattern")
# the parts of words that name each kind, the first that is met; any other word means full attention
_KIND_SIGNS = (
    (WINDOW, ("sliding", "local", "swa", "window")),
    (CHUNK, ("chunked",)),
    (NONE, ("skip", "no_op", "identity")),
)


def _kind_of(word: str) -> str:
    """Translate one word of a list of layers.

    >>> _kind_of("sliding_attention"), _kind_of("linear_attention"), _kind_of("attention")
    ('window', 'linear', 'full')
    """
    for kind, signs in _KIND_SIGNS:
        if any(sign in word for sign in signs):
            return kind
    linear = word == "m" or any(sign in word for sign in KEYS["linear"])
    return LINEAR if linear else FULL


def kinds(d: Decoder, *accepted: str) -> list[str]:
    """Return the kind of every layer; where a family knows certain kinds only, another is refused."""
    types = _layer_types(d)
    if types is not None:
        d.fields.taken.update(KEYS["rhythms"])
    else:
        linear = _linear_layers(d)
        types = [LINEAR if i in linear else kind for i, kind in enumerate(_window_kinds(d))]
    if accepted and (strange := sorted(set(types) - set(accepted))):
        reason = f"makes some layers of the kind {strange[0]}; {d.kind} is known with {' and '.join(accepted)} layers"
        raise d.fields.fail(f"{reason}. Check the keys that say which layers attend to what")
    return types


def _layer_types(d: Decoder) -> list[str] | None:
    f, count = d.fields, d.layers
    for key in KEYS["kinds"]:
        names = f.words(key)
        if names is None:
            continue
        if len(names) < count and key != "block_types":  # which names a pattern that is repeated
            raise f.fail(f"{key} names the kinds of {len(names)} layers, but there are {count}")
        types = [_kind_of(names[i % len(names)]) for i in range(count)]
        return [FULL if kind == WINDOW and not d.window else kind for kind in types]
    # numbers for kinds: MiniMax writes 0 for lightning attention, MiMo 0 for full attention and 1 for a window
    for key, linear, full in (("attn_type_list", 0, 1), ("hybrid_layer_pattern", -1, 0)):
        numbers = f.numbers(key)
        if numbers is not None and len(numbers) >= count:
            return [LINEAR if n == linear else FULL if n == full else WINDOW for n in numbers[:count]]
    nested = f.raw("attention_types")
    if not (isinstance(nested, list) and nested and d.kind == "gpt_neo"):
        return None
    words: list[str] = []  # GPT-Neo writes [[["global", "local"], 12]]: the words, and how often they come
    for item in nested:
        if isinstance(item, list) and len(item) == 2 and isinstance(item[0], list) and isinstance(item[1], int):
            words += [str(word) for word in item[0]] * min(max(item[1], 0), count)
    return [_kind_of(words[i % len(words)]) if words else FULL for i in range(count)]


def _linear_layers(d: Decoder) -> set[int]:
    f, count = d.fields, d.layers
    every = set(range(count))
    # every so many layers attends: the last of each group, and with Ling all that the groups leave over
    for key in ("full_attention_interval", "layer_group_size"):
        if step := f.number(key):
            return {
                i for i in every if (i + 1) % step and not (key == "layer_group_size" and i >= count // step * step)
            }
    if period := f.number("attn_layer_period"):
        return every - set(range(f.number("attn_layer_offset"), count, period))
    for key in ("attn_layer_indices", "attention_layers_idx", "full_attn_idxs"):
        attending = f.numbers(key)
        if attending is not None:
            return every - set(attending)
    inner = f.part("linear_attn_config")
    listed = inner.numbers("kda_layers") if inner else None
    if listed:
        return {i - 1 for i in listed}  # counted from one
    return {i for i in every if not i or i % 4} if d.kind == "kimi_linear" else set()


def _window_kinds(d: Decoder) -> list[str]:
    f, count = d.fields, d.layers
    if not d.window or f.values.get("use_sliding_window") is False:
        return [FULL] * count
    kind = CHUNK if "attention_chunk_size" in f else WINDOW
    no_rope = f.numbers("no_rope_layers") if kind == CHUNK else None
    if no_rope and len(no_rope) >= count:
        return [CHUNK if item else FULL for item in no_rope[:count]]
    pattern = f.raw(*_PATTERNS)
    if isinstance(pattern, str) and pattern:  # such as LLLG
        return [WINDOW if pattern[i % len(pattern)].upper() == "L" else FULL for i in range(count)]
    stated = f.number(*_PATTERNS) if isinstance(pattern, (int, float)) and pattern > 0 else 0
    rhythm = stated or d.family.rhythm
    if rhythm < 0:  # the first of so many is full, or of two windowed
        return [kind if i % -rhythm == 0 else FULL for i in range(count)]
    if rhythm == 1:
        return [FULL] * count
    if rhythm > 1:
        return [kind if (i + 1) % rhythm else FULL for i in range(count)]
    if "use_sliding_window" in f:  # Qwen 2: the layers below max_window_layers see everything
        first = f.number("max_window_layers")
        return [kind if f.flag("use_sliding_window") and i >= first else FULL for i in range(count)]
    return [kind] * count


def mixers(d: Decoder, listed: Sequence[str]) -> dict[str, Mixer]:
    """Return the mixer of every kind of layer that occurs."""
    mixers_by_kind: dict[str, Mixer] = {}
    for kind in dict.fromkeys(listed):
        if kind == LINEAR:  # the mixer of the family, else the one whose keys are there
            make_mixer = _NAMED.get(d.family.linear) or next((make for key, make in _SIGNS if key in d.fields), None)
            if make_mixer is None:
                raise d.fields.fail("has layers that do not attend, but no key says what they do instead")
            mixers_by_kind[kind] = make_mixer(d)
        elif kind == NONE:
            mixers_by_kind[kind] = Mixer(0)
        elif d.fields.number("kv_lora_rank"):
            mixers_by_kind[kind] = latent(d, latent_of(d), kind)
        else:
            mixers_by_kind[kind] = attention(d, kind, heads_for(d, kind))
    return mixers_by_kind


def heads_for(d: Decoder, kind: str) -> Heads:
    """Return the heads of a kind of layer; windowed layers may have their own (MiMo, Step)."""
    usual = heads_of(d)
    if kind != WINDOW:
        return usual
    f = d.fields
    queries = f.number("swa_num_attention_heads", default=usual.queries)
    keys = f.number("swa_num_key_value_heads", default=usual.keys)
    key_dim = f.number("swa_head_dim", default=usual.key_dim)
    default_value = usual.value_dim if "swa_head_dim" not in f or "v_head_dim" in f else key_dim
    return Heads(queries, keys, key_dim, f.number("swa_v_head_dim", default=default_value))


def block_of(d: Decoder, mixer: Mixer, *feed_forwards: FeedForward | None, norms: int | None = None) -> Block:
    """Return one layer: a mixer, its feed-forwards, and the norms around them."""
    count = d.family.norms if norms is None else norms
    per_layer = d.family.per_layer(d) if d.family.per_layer else 0
    block = Block(
        1,
        mixer.weights,
        count * d.norm,
        mixer.reaches,
        mixer.state_values,
        others=mixer.others + per_layer,
        linear=mixer.linear,
    )
    for feed_forward in feed_forwards:
        block = feed_forward.into(block) if feed_forward else block
    return block


def usual(d: Decoder) -> list[Block]:
    """Return the layers of a plain decoder: each a mixer and a feed-forward or a mixture of experts."""
    listed = kinds(d)
    mixers_by_kind = mixers(d, listed)
    mixture = experts(d)
    f, width = d.fields, dense_width(d) if mixture else d.ffn
    if not mixture and f.flag("block_auto_adjust_ff_dim"):  # LFM2 states more than it builds
        step = f.number("block_multiple_of", default=256) or 256
        shrunk = int(int(2 * width / 3) * f.ratio("block_ffn_dim_multiplier", 1.0))
        width = -(-shrunk // step) * step
    elif not mixture:
        width = f.number("shared_intermediate_size") or width  # Granite hybrids call theirs shared
    plain = dense(d, width)
    sparse = expert_layers(d) if mixture else [False] * d.layers
    return [
        block_of(d, mixers_by_kind[kind], mixture if mixed else plain)
        for kind, mixed in zip(listed, sparse, strict=True)
    ]


def overridden(d: Decoder, rule: Callable[[Decoder], list[Block]]) -> list[Block]:
    """Return the layers by the family's rule; a layer with keys of its own in per_layer_config is read with those."""
    blocks, parts = rule(d), d.fields.raw("per_layer_config")
    if not isinstance(parts, Mapping) or not parts:
        return blocks
    read: dict[str, list[Block]] = {}
    for layer_name, settings in parts.items():
        if not (isinstance(settings, Mapping) and 0 <= layer_of(str(layer_name)) < len(blocks)):
            raise d.fields.fail(f"per_layer_config says {str(settings)!r:.40} of layer {str(layer_name)!r:.20}")
        # Layers with the same keys are read once, by the rule for a whole model with these keys, and their own taken of
        # it.
        key = repr(sorted(settings.items()))
        if key not in read:
            if len(read) >= _MOST_KINDS:
                raise d.fields.fail(f"per_layer_config describes more than {_MOST_KINDS} kinds of layers")
            fields = Fields({**d.fields.values, **settings}, d.fields.file, d.fields.defaults)
            read[key] = rule(Decoder(fields, d.family, d.kind))
            d.fields.taken |= fields.taken
        block, skipped = read[key][int(layer_name)], settings.get("skip")
        halves = [str(word) for word in skipped] if isinstance(skipped, list) else []  # of the layer, left out
        if any("attention" in word or "mixer" in word for word in halves):
            block = replace(block, mixer=0, reaches=(), state_values=0)
        if any("mlp" in word or "moe" in word or "feed" in word for word in halves):
            block = replace(block, dense=0, experts=0, experts_per_token=0.0, expert=0, shared=0, router=0)
        blocks[int(layer_name)] = replace(block, norms=block.norms - min(len(halves), 2) * d.norm)
    return blocks


def merged(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Put layers that are alike into one block with their count."""
    counts: dict[Block, int] = {}
    for block in blocks:
        counts[replace(block, count=1)] = counts.get(replace(block, count=1), 0) + block.count
    return tuple(replace(block, count=count) for block, count in counts.items())
