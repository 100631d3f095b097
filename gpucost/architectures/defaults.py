"""What a wrapped text configuration leaves unsaid.

A multi-modal config.json nests the configuration of its language model, and the library that writes it leaves out of
the nested part every value that equals the default of its class (Gemma 3 27B states neither vocabulary nor window
rhythm; LLaVA 1.5 states little more than its vocabulary). The defaults below are those of the configuration classes in
Hugging Face's transformers. A plain config.json states its dimensions itself: there a missing one stays an error.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_KEYS = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
    "max_position_embeddings",
)  # fmt: skip


def _sizes(*values: int, **further: int) -> Mapping[str, int]:
    return MappingProxyType({**dict(zip(_KEYS, values, strict=True)), **further})


_GEMMA_3 = _sizes(262_208, 2304, 9216, 26, 8, 4, 131_072, head_dim=256, sliding_window=4096)
_LLAMA_4 = _sizes(
    202_048, 5120, 8192, 48, 40, 8, 131_072, head_dim=128, intermediate_size_mlp=16_384, num_local_experts=16,
    num_experts_per_tok=1, attention_chunk_size=8192,
)  # fmt: skip
DEFAULTS: Mapping[str, Mapping[str, int]] = MappingProxyType({
    "llama": _sizes(32_000, 4096, 11_008, 32, 32, 32, 2048),
    "mistral": _sizes(32_000, 4096, 14_336, 32, 32, 8, 131_072, sliding_window=4096),
    "mixtral": _sizes(32_000, 4096, 14_336, 32, 32, 8, 131_072, num_local_experts=8, num_experts_per_tok=2),
    "qwen2": _sizes(151_936, 4096, 22_016, 32, 32, 32, 32_768),
    "qwen3": _sizes(151_936, 4096, 22_016, 32, 32, 32, 32_768, head_dim=128),
    "gemma": _sizes(256_000, 3072, 24_576, 28, 16, 16, 8192, head_dim=256),
    "gemma2": _sizes(256_000, 2304, 9216, 26, 8, 4, 8192, head_dim=256, sliding_window=4096),
    "gemma3_text": _GEMMA_3,
    "llama4_text": _LLAMA_4,
})  # fmt: skip


def with_defaults(text: Mapping[str, Any]) -> dict[str, Any]:
    """Fill what a nested text configuration leaves unsaid with the defaults of its class, where that is known.

    >>> with_defaults({"model_type": "llama", "hidden_size": 5120})["num_hidden_layers"]
    32
    """
    kind = str(text.get("model_type") or "").lower()
    defaults = dict(DEFAULTS.get(kind, {}))
    if kind == "llama":  # its key-value heads follow the query heads
        defaults.pop("num_key_value_heads", None)
    return {**defaults, **text}
