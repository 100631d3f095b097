"""Which part of a configuration describes the language model, and what is no language model at all."""

from collections.abc import Mapping
from typing import Any

from gpucost.architectures.defaults import class_defaults
from gpucost.architectures.fields import KEYS
from gpucost.errors import DataError
from gpucost.gate import beside

Config = Mapping[str, Any]


def is_language_model(config: Config, file: str) -> None:
    """Refuse what is no decoder-only language model, by what it is."""
    kind = str(config.get("model_type") or "").lower()
    if "_class_name" in config or "_diffusers_version" in config:
        said = str(config.get("_class_name") or "a part of a diffusion pipeline")
        raise DataError(f"describes {said[:60]}, a diffusion model's part, not a language model", file=file)
    for kinds, reason in beside(__file__, "refused")[1:]:
        two_stacks = config.get("is_encoder_decoder") is True and "with a decoder" in reason
        if kind in kinds.split() or two_stacks:
            raise DataError(f"model type {kind!r} {reason}", file=file)
    names = config.get("architectures")
    classes = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    masked = next((name for name in classes if name.endswith("ForMaskedLM")), None)
    if masked and not kind.startswith(("llada", "dream")):
        raise DataError(f"is a {masked[:60]}: an encoder, no decoder-only language model", file=file)
    adapted = config.get("peft_type")
    if adapted:
        raise DataError(f"is an adapter ({str(adapted)[:20]}); name the config.json of its base model", file=file)


def text_part(config: Config) -> tuple[dict[str, Any], bool]:
    """Return the part that describes the language model, and whether it was nested in another.

    Tied embeddings stated outside win over those inside, as in the library that wrote the file.
    """
    part, nested, tied = dict(config), False, config.get("tie_word_embeddings")
    for _ in range(3):
        inner = next((part[key] for key in KEYS["text"] if isinstance(part.get(key), dict) and part[key]), None)
        if inner is None:
            break
        outer = {key: part[key] for key in ("vocab_size", "quantization_config") if part.get(key) is not None}
        wrapper, nested = str(part.get("model_type") or "").lower(), True
        kind = class_defaults().get(wrapper, {}).get("_text") or wrapper
        part = {**outer, "model_type": kind, **inner}
        tied = tied if tied is not None else inner.get("tie_word_embeddings")
    if tied is not None:
        part["tie_word_embeddings"] = tied
    for key in KEYS["nested"]:
        if isinstance(part.get(key), dict):
            part = {**part[key], **part}
    return part, nested
