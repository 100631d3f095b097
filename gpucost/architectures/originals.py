"""The publishers' own formats: params.json of Llama and of Mistral, in the words of config.json."""

from collections.abc import Mapping
from typing import Any

from gpucost.architectures.fields import Fields
from gpucost.errors import DataError
from gpucost.gate import beside


def translated(config: Mapping[str, Any], file: str) -> Mapping[str, Any]:
    """Return a configuration in the words of config.json; any other is returned as it is.

    >>> llama = {"dim": 4096, "n_layers": 32, "n_heads": 32, "multiple_of": 256, "vocab_size": 32000}
    >>> translated(llama, "params.json")["intermediate_size"]
    11008
    """
    if "dim" not in config or "n_layers" not in config or "n_heads" not in config or "model_type" in config:
        return config
    return _mistral(config) if "hidden_dim" in config else _llama(config, file)


def _renamed(config: Mapping[str, Any], part: str = "") -> dict[str, Any]:
    names = [(theirs, ours) for of, theirs, ours in beside(__file__, "originals")[1:] if of == part]
    return {ours: config[theirs] for theirs, ours in names if config.get(theirs) is not None}


def _mistral(config: Mapping[str, Any]) -> dict[str, Any]:
    made, moe = _renamed(config), config.get("moe")
    if isinstance(moe, Mapping):
        made |= _renamed(moe, "moe")
        made["model_type"] = "deepseek_v3" if "kv_lora_rank" in made else "mixtral"
    else:
        made["model_type"] = "mistral"
    for key in ("quantization", "vision_encoder"):
        if config.get(key) is not None:
            made[{"quantization": "quantization_config", "vision_encoder": "vision_config"}[key]] = config[key]
    return {"tie_word_embeddings": False, "torch_dtype": "bfloat16", **made}


def _llama(config: Mapping[str, Any], file: str) -> dict[str, Any]:
    f = Fields(config, file)
    width, step = f.number("dim"), f.number("multiple_of", default=256) or 256
    inner = int(2 * 4 * width / 3)
    inner = int(f.ratio("ffn_dim_multiplier", 1.0) * inner)
    vocab = config.get("vocab_size")
    if vocab in (None, -1):
        raise DataError("leaves its vocab_size to the tokenizer (-1); set it, such as 32000 for Llama 2", file=file)
    longest = {"max_position_embeddings": config["max_seq_len"]} if "max_seq_len" in config else {}
    return {
        "model_type": "llama",
        "hidden_size": width,
        "num_hidden_layers": config["n_layers"],
        "num_attention_heads": config["n_heads"],
        "num_key_value_heads": config.get("n_kv_heads") or config["n_heads"],
        "intermediate_size": -(-inner // step) * step,
        "vocab_size": vocab,
        "tie_word_embeddings": width < 3500,
        "torch_dtype": "bfloat16",
        **longest,
    }
