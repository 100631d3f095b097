"""Mixers that stand in for attention: gated delta nets, Mamba, lightning attention, short convolutions; their state."""

from collections.abc import Callable

from gpucost.architectures.attention import Mixer
from gpucost.architectures.decoder import Decoder


def gated_delta(d: Decoder) -> Mixer:
    """Count a gated delta net: queries, keys, values, gate, two scalars a head, a short convolution, output."""
    f, h = d.fields, d.hidden
    heads, width = f.number("linear_num_value_heads"), f.number("linear_value_head_dim")
    key_heads, key_dim = f.number("linear_num_key_heads"), f.number("linear_key_head_dim")
    keys, values, kernel = key_heads * key_dim, heads * width, f.number("linear_conv_kernel_dim", default=4)
    weights = h * (2 * keys + 2 * values + 2 * heads) + values * h
    state = heads * width * key_dim + (2 * keys + values) * (kernel - 1)
    return Mixer(weights, (2 * keys + values) * kernel + 2 * heads + width, (), state, True)


def kimi_delta(d: Decoder) -> Mixer:
    """Count Kimi delta attention: queries, keys, values, output, low-rank decay and gate, short convolutions."""
    f, h = d.fields.part("linear_attn_config") or d.fields, d.hidden
    heads = f.number("linear_num_heads", "num_heads")
    width = f.number("linear_head_dim") or f.number("head_dim")
    joint, kernel = heads * width, f.number("short_conv_kernel_size", "linear_conv_kernel_dim", default=4)
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
    channels = inner + 2 * states
    weights = h * (2 * inner + 2 * states + heads) + inner * h
    biases = (2 * inner + 2 * states + heads + h) if f.flag("mamba_proj_bias", "add_bias_linear") else 0
    normed = inner if f.flag("mamba_rms_norm", default=d.kind != "falcon_h1") else 0
    bias = channels if f.flag("use_conv_bias", "mamba_conv_bias", default=True) else 0
    per_group = states // max(1, f.number("mamba_n_groups", "n_groups", "mamba_ngroups", default=1))
    return Mixer(
        weights,
        channels * kernel + bias + 3 * heads + normed + biases,
        (),
        inner * per_group + channels * (kernel - 1),
        True,
    )


def _inner(d: Decoder) -> int:
    return int(d.fields.ratio("mamba_expand", d.fields.ratio("expand", 2.0)) * d.hidden)


def mamba1(d: Decoder) -> Mixer:
    """Count a Mamba mixer: gate and values, a short convolution, selective states and step sizes, output."""
    f, h, inner = d.fields, d.hidden, _inner(d)
    states, kernel = f.number("mamba_d_state", default=16), f.number("mamba_d_conv", default=4)
    given = f.raw("mamba_dt_rank")
    rank = -(-h // 16) if given in (None, "auto") else f.whole("mamba_dt_rank", given)
    weights = 2 * h * inner + inner * (rank + 2 * states) + rank * inner + inner * h
    biased = f.flag("mamba_conv_bias", default=True)
    others = inner * (kernel + biased) + inner + inner * states + inner + rank + 2 * states
    return Mixer(weights, others, (), inner * (states + kernel - 1), True)


def lightning(d: Decoder) -> Mixer:
    """Count lightning attention: queries, keys, values, gate and output over all heads, and a norm."""
    joint = d.heads * d.head_dim
    return Mixer(5 * d.hidden * joint, joint, (), joint * d.head_dim, True)


def short_convolution(d: Decoder) -> Mixer:
    """Count a gated short convolution: three projections in, the kernel, one out (LFM2)."""
    h, kernel = d.hidden, d.fields.number("conv_L_cache", default=3)
    bias = 5 * h if d.fields.flag("conv_bias") else 0
    return Mixer(4 * h * h, kernel * h + bias, (), h * kernel, True)


def recurrent_unit(d: Decoder) -> Mixer:
    """Count Griffin's recurrent block: two branches, a convolution, a gated linear recurrence by heads, output."""
    f, h = d.fields, d.hidden
    width, kernel = f.number("lru_width") or h, f.number("conv1d_width", default=4)
    gates = 2 * d.heads * (width // d.heads) ** 2
    others = 2 * width + h + width * (kernel + 1) + width + 2 * width
    return Mixer(3 * h * width + gates, others, (), width * kernel, True)


NAMED: dict[str, Callable[[Decoder], Mixer]] = {
    "gated_delta": gated_delta,
    "kimi_delta": kimi_delta,
    "mamba2": mamba2,
    "mamba1": mamba1,
    "lightning": lightning,
    "short_convolution": short_convolution,
    "recurrent_unit": recurrent_unit,
}
_SIGNS = (
    ("linear_num_value_heads", gated_delta),
    ("linear_attn_config", kimi_delta),
    ("linear_num_heads", kimi_delta),
    ("mamba_n_heads", mamba2),
    ("mamba_num_heads", mamba2),
    ("n_mamba_heads", mamba2),
    ("mamba_d_state", mamba1),
    ("conv_L_cache", short_convolution),
    ("lru_width", recurrent_unit),
)


def linear_mixer(d: Decoder) -> Mixer:
    """Return the mixer of the layers that do not attend: the family's, else the one whose keys are there."""
    if d.family.linear:
        return NAMED[d.family.linear](d)
    found = next((mixer for key, mixer in _SIGNS if key in d.fields), None)
    if found is None:
        raise d.fields.fail("has layers that do not attend, but no key says what they do instead")
    return found(d)
