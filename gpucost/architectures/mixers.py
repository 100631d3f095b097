"""Parameters of mixers that stand in for attention: gated delta nets, Mamba, lightning attention, short convolutions.

An architecture's count gives every layer the attention of its full layers. What a linear layer has instead, less that
attention, is what this module adds; a family that is not known here keeps the attention's count.
"""

from collections.abc import Mapping
from typing import Any

from gpucost.types import Architecture

Config = Mapping[str, Any]


def mixer_parameters(made: Architecture, text: Config, kind: str) -> int:
    """Return what linear layers have beyond the attention that is counted for them; it may be negative."""
    blocks = _missing_feed_forwards(made, text)
    if kind == "falcon_h1":  # Mamba beside the attention of every layer
        return made.layers * _mamba2(made, text)
    if not made.linear_layers:
        return blocks
    mixers = (_gated_delta, _kimi_delta, _mamba2, _mamba1, _lightning, _short_convolution)
    mixer = next((found for count in mixers if (found := count(made, text))), 0)
    return blocks + (made.linear_layers * (mixer - attention_parameters(made)) if mixer else 0)


def attention_parameters(made: Architecture) -> int:
    """Return the weights and biases of one attention layer as the architecture's count has them."""
    h, q = made.hidden, made.heads * made.head_dim
    if made.attention != "mla":
        bias = made.head_dim * (made.heads + 2 * made.kv_heads) if made.qkv_bias else 0
        return h * 2 * (q + made.kv_heads * made.head_dim) + bias
    queries = made.q_lora_rank * (h + q) + made.q_lora_rank if made.q_lora_rank else h * q
    keys = h * (made.kv_lora_rank + made.qk_rope_dim) + made.kv_lora_rank
    expanded = made.kv_lora_rank * made.heads * (made.qk_nope_dim + made.v_head_dim)
    return queries + keys + expanded + made.heads * made.v_head_dim * h


def _missing_feed_forwards(made: Architecture, text: Config) -> int:
    """Take back feed-forwards where blocks are mixers or feed-forwards, not both (Nemotron-H)."""
    pattern = text.get("hybrid_override_pattern")
    if not isinstance(pattern, str):
        return 0
    matrices = 3 if made.gated else 2
    feed_forward = matrices * made.hidden * made.ffn_hidden + made.hidden  # and its norm
    return (sum(sign in "-E" for sign in pattern) - made.layers) * feed_forward if not made.experts else 0


def _number(text: Config, *names: str, default: int = 0) -> int:
    return next((int(text[name]) for name in names if isinstance(text.get(name), (int, float)) and text[name]), default)


def _gated_delta(made: Architecture, text: Config) -> int:
    """Count a gated delta net: queries, keys, values, gate, two scalars a head, a short convolution, output."""
    heads = _number(text, "linear_num_value_heads")
    if not heads:
        return 0
    width = _number(text, "linear_value_head_dim")
    keys = _number(text, "linear_num_key_heads") * _number(text, "linear_key_head_dim")
    values = heads * width
    convolution = (2 * keys + values) * _number(text, "linear_conv_kernel_dim", default=4)
    return made.hidden * (2 * keys + 2 * values + 2 * heads) + values * made.hidden + convolution + 2 * heads + width


def _kimi_delta(made: Architecture, text: Config) -> int:
    """Count Kimi delta attention: queries, keys, values, output, low-rank decay and gate, short convolutions."""
    inner = text.get("linear_attn_config")
    if not isinstance(inner, Mapping) or not inner.get("num_heads"):
        return 0
    heads, width = int(inner["num_heads"]), int(inner["head_dim"])
    joint = heads * width
    low_rank = 2 * (made.hidden * width + width * joint)  # decay and output gate
    kernel = int(inner.get("short_conv_kernel_size") or 4)
    return 4 * made.hidden * joint + low_rank + made.hidden * heads + 3 * joint * kernel + joint + heads + width


def _mamba2(made: Architecture, text: Config) -> int:
    """Count a Mamba-2 mixer: gate, values, states and step sizes, a short convolution, output."""
    heads = _number(text, "mamba_n_heads", "mamba_num_heads")
    if not heads:
        return 0
    inner = heads * _number(text, "mamba_d_head", "mamba_head_dim", default=64)
    groups = _number(text, "mamba_n_groups", "n_groups", default=1)
    states = groups * _number(text, "mamba_d_state", "ssm_state_size", default=128)
    kernel = _number(text, "mamba_d_conv", "conv_kernel", default=4)
    projections = made.hidden * (2 * inner + 2 * states + heads) + inner * made.hidden
    return projections + (inner + 2 * states) * (kernel + 1) + 3 * heads + inner


def _mamba1(made: Architecture, text: Config) -> int:
    """Count a Mamba mixer: gate and values, a short convolution, selective states and step sizes, output."""
    states = _number(text, "mamba_d_state")
    if not states:
        return 0
    inner = _number(text, "mamba_expand", default=2) * made.hidden
    rank = _number(text, "mamba_dt_rank", default=-(-made.hidden // 16))
    kernel = _number(text, "mamba_d_conv", default=4)
    selection = inner * (rank + 2 * states) + rank * inner + inner + inner * states + inner
    return 2 * made.hidden * inner + inner * (kernel + 1) + selection + inner * made.hidden + rank + 2 * states


def _lightning(made: Architecture, text: Config) -> int:
    """Count lightning attention: queries, keys, values, gate and output over all heads, and a norm."""
    if not isinstance(text.get("attn_type_list"), list):
        return 0
    joint = made.heads * made.head_dim
    return 5 * made.hidden * joint + joint


def _short_convolution(made: Architecture, text: Config) -> int:
    """Count a gated short convolution: three projections in, the kernel, one out (LFM2)."""
    kernel = _number(text, "conv_L_cache")
    return 4 * made.hidden * made.hidden + kernel * made.hidden if kernel else 0
