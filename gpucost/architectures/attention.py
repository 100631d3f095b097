"""Which layers of a configuration attend to everything, within a window, or not at all (linear, state space)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpucost.errors import DataError

Config = Mapping[str, Any]

_WINDOWED = ("sliding", "local", "chunked")
_LINEAR = ("linear", "mamba", "recurrent", "conv", "ssm", "kda", "gated_delta", "delta", "rwkv", "lightning")
_WINDOW_SIZES = (
    "sliding_window",
    "sliding_window_size",
    "attention_chunk_size",
    "window_size",
    "local_attention",
    "attention_window_size",
)
# families whose rhythm of windowed layers is not written down: one full layer in so many
_RHYTHM = {
    "gemma2": 2,
    "gemma3": 6,
    "gemma3_text": 6,
    "cohere2": 4,
    "llama4": 4,
    "llama4_text": 4,
    "gemma3n": 5,
    "gemma3n_text": 5,
}


class Kinds(NamedTuple):
    """How many layers attend within a window of how many tokens, and how many do not attend."""

    window_tokens: int = 0
    window_layers: int = 0
    linear_layers: int = 0


def layer_kinds(text: Config, kind: str, layers: int, file: str) -> Kinds:
    """Count the layers of each kind; the rest attend to everything."""
    window = next((int(text[key]) for key in _WINDOW_SIZES if isinstance(text.get(key), int) and text[key]), 0)
    listed = _listed(text)
    if listed is not None:
        if len(listed) < layers:
            raise DataError(f"names the kinds of {len(listed)} layers, but has {layers}", file=file)
        linear, windowed = _count(listed[:layers], _LINEAR), _count(listed[:layers], _WINDOWED)
        return Kinds(window if windowed else 0, windowed if window else 0, linear)
    linear = _linear_layers(text, layers)
    windowed = _window_layers(text, kind, layers) if window else 0
    return Kinds(window if windowed else 0, min(windowed, layers - linear), linear)


def _listed(text: Config) -> list[str] | None:
    """Return the kind of every layer where the configuration lists them, in words."""
    for key in ("layer_types", "layers_block_type", "block_types", "attention_types_list"):
        value = text.get(key)
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            layers = int(text.get("num_hidden_layers") or len(value))
            return value if len(value) >= layers else (value * layers)[:layers] if key == "block_types" else value
    if isinstance(text.get("attn_type_list"), list):  # MiniMax: 0 is lightning attention, 1 full
        return ["full" if item else "linear" for item in text["attn_type_list"]]
    if isinstance(text.get("hybrid_override_pattern"), str):  # Nemotron-H: M is Mamba, * attention, - a feed-forward
        return ["linear" if sign == "M" else "full" for sign in text["hybrid_override_pattern"] if sign in "M*"]
    return None


def _count(kinds: Sequence[str], words: tuple[str, ...]) -> int:
    return sum(any(word in item.lower() for word in words) for item in kinds)


def _linear_layers(text: Config, layers: int) -> int:
    if text.get("full_attention_interval"):
        return layers - layers // int(text["full_attention_interval"])
    if text.get("attn_layer_period"):
        offset, period = int(text.get("attn_layer_offset") or 0), int(text["attn_layer_period"])
        return layers - len(range(offset, layers, period))
    for key in ("attn_layer_indices", "attention_layers_idx", "full_attn_idxs"):
        if isinstance(text.get(key), list):
            return layers - len(text[key])
    inner = text.get("linear_attn_config")
    if isinstance(inner, Mapping) and isinstance(inner.get("kda_layers"), list):
        return len(inner["kda_layers"])
    return 0


def _window_layers(text: Config, kind: str, layers: int) -> int:
    if text.get("use_sliding_window") is False:
        return 0
    pattern = text.get("sliding_window_pattern") or text.get("_sliding_window_pattern")
    if isinstance(pattern, str) and pattern:  # such as LLLG
        return sum(pattern[i % len(pattern)].upper() == "L" for i in range(layers))
    rhythm = int(pattern or _RHYTHM.get(kind, 0))
    if kind.startswith("llama4") and text.get("no_rope_layers"):
        return sum(bool(item) for item in text["no_rope_layers"])
    if rhythm > 1:
        return layers - layers // rhythm
    if text.get("use_sliding_window") is True and isinstance(text.get("max_window_layers"), int):
        return max(0, layers - int(text["max_window_layers"]))
    if kind == "gpt_neo":
        return layers // 2
    return layers
