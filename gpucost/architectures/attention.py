"""Attention of one layer: its projections, biases and norms, and what it keeps of every token.

A cache law is a tuple of `Reach`: all tokens or a window of them, a latent instead of keys and values, the keys of an
indexer beside it, entries that stand for several tokens. Layers that read another layer's cache keep nothing.
"""

from typing import NamedTuple

from gpucost.architectures.decoder import Decoder
from gpucost.architectures.fields import KEYS
from gpucost.types import Reach

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
    others = _biases(d, query, key_value) + _norms(d, query, kv * key_dim if keeps else 0, key_dim)
    gate, sinks = d.family.gate or ("full" if d.fields.flag("attn_output_gate") else ""), d.family.sinks
    weights += h * (value if gate == "full" else q if gate == "head" else 0)
    others += q if sinks == "all" or (sinks == "window" and kind == WINDOW) else 0
    kept = kv * (key_dim + value_dim) if keeps else 0
    reach = Reach(kept, 2 * q * (key_dim + value_dim), (window or d.window) if kind in (WINDOW, CHUNK) else 0)
    return Mixer(weights, others, (reach,))


def _biases(d: Decoder, query: int, key_value: int) -> int:
    said = d.fields.flag(*KEYS["bias"])
    bias = d.family.bias or (d.family.key_bias if said else "")
    output = "o" in bias if "attention_out_bias" not in d.fields else d.fields.flag("attention_out_bias")
    return (query + key_value if "qkv" in bias else 0) + (d.hidden if output else 0)


def _norms(d: Decoder, query: int, keys: int, key_dim: int) -> int:
    rule = d.family.qk_norm
    if rule not in ("", "head", "wide"):
        key, _, rule = rule.partition(":")
        rule = (rule or "head") if d.fields.flag(key) else ""
    vectors = 2 if d.family.norm == "ln" else 1
    if rule == "wide":
        return query + keys
    return (2 if keys else 1) * key_dim * vectors if rule == "head" else 0


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
    needed = {"qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0}
    for name in needed:
        needed[name] = f.number(name)
        if name not in f or not (needed[name] or name != "v_head_dim"):
            raise f.fail(f"multi-head latent attention needs {name}, found {f.raw(name)!r}")
    if not needed["qk_nope_head_dim"] + needed["qk_rope_head_dim"]:
        raise f.fail("multi-head latent attention needs qk_nope_head_dim or qk_rope_head_dim above zero")
    return Latent(d.heads, f.number("q_lora_rank"), f.number("kv_lora_rank"), *needed.values())


def latent(d: Decoder, ranks: Latent | None = None, kind: str = FULL, *, indexer: bool | None = None) -> Mixer:
    """Count multi-head latent attention (arXiv:2405.04434, eq. 9-19): a latent and a rotary key are cached.

    With an indexer (DeepSeek-V3.2) every token also keeps an indexer key, and a query attends to `index_topk` tokens.
    """
    n, h = ranks or latent_of(d), d.hidden
    query = n.heads * (n.nope + n.rope)
    queries = n.query_rank * (h + query) if n.query_rank else h * query
    weights = queries + h * (n.rank + n.rope) + n.rank * n.heads * (n.nope + n.value) + n.heads * n.value * h
    biased = d.fields.flag("attention_bias")
    others = n.query_rank + n.rank + ((n.query_rank or 0) + n.rank + n.rope + h if biased else 0)
    gate = d.family.gate
    weights += h * (n.heads * n.value if gate == "full" else n.heads if gate == "head" else 0)
    others += n.heads if d.family.sinks == "all" else 0
    top = d.fields.number("index_topk") if d.fields.number("index_n_heads") and kind == FULL else 0
    own = Reach(
        n.rank + n.rope,
        2 * n.heads * (n.nope + n.rope + n.value),
        d.window if kind == WINDOW else 0,
        looks_at_most=top,
        latent_flop=2 * n.heads * (2 * n.rank + n.rope),
    )
    if not (top if indexer is None else indexer and top):
        return Mixer(weights, others, (own,))
    extra_weights, extra_others, reach = _indexer(d, n.query_rank or h)
    return Mixer(weights + extra_weights, others + extra_others, (own, reach))


def _indexer(d: Decoder, query_input: int) -> tuple[int, int, Reach]:
    """Count the indexer of sparse attention: its queries, one key with a norm, a weight for each head."""
    heads, width = d.fields.number("index_n_heads"), d.fields.number("index_head_dim")
    return query_input * heads * width + d.hidden * (width + heads), 2 * width, Reach(width, 2 * heads * width)
