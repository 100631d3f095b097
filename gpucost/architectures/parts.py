"""Which part of a configuration describes the language model, and what is no language model at all."""

from collections.abc import Mapping
from typing import Any

from gpucost.architectures.defaults import class_defaults
from gpucost.errors import DataError

Config = Mapping[str, Any]

TEXT_PARTS = (
    "text_config", "llm_config", "language_config", "language_model", "thinker_config", "decoder", "text_model",
    "text_model_config", "llm", "lm_config",
)  # fmt: skip
NESTED = ("attention_config", "moe_config", "moe")
_NO_ATTENTION = frozenset((
    "mamba", "mamba2", "falcon_mamba", "rwkv", "rwkv5", "rwkv6", "rwkv7", "xlstm", "retnet", "hyena", "ssm",
))  # fmt: skip
_ENCODERS = frozenset((
    "bert", "roberta", "xlm-roberta", "xlm-roberta-xl", "deberta", "deberta-v2", "distilbert", "electra", "albert",
    "modernbert", "mpnet", "camembert", "ernie", "nomic_bert", "eurobert", "gte", "new", "jina_embeddings_v3",
    "esm", "longformer", "big_bird", "funnel", "layoutlm", "layoutlmv2", "layoutlmv3", "flaubert", "xlm", "xlnet",
    "mobilebert", "squeezebert", "convbert", "nystromformer", "rembert", "roformer", "roc_bert", "megatron-bert",
    "ibert", "data2vec-text", "xmod", "luke", "splinter", "canine", "tapas", "markuplm", "fnet", "mra",
    "yoso", "roberta-prelayernorm", "modernvbert", "embedding_gemma2", "embedding_gemma2_text", "bert-generation",
    "neobert", "bge", "nllb-moe", "openai_privacy_filter",
))  # fmt: skip
_SEQUENCE_TO_SEQUENCE = frozenset((
    "t5", "mt5", "umt5", "bart", "mbart", "whisper", "pegasus", "m2m_100", "marian", "led", "longt5", "blenderbot",
    "blenderbot-small", "prophetnet", "fsmt", "switch_transformers", "t5gemma", "t5gemma2", "udop", "mvp", "plbart",
    "bigbird_pegasus", "seamless_m4t", "seamless_m4t_v2", "speech_to_text", "pop2piano", "encoder-decoder",
    "pix2struct", "nllb", "byt5", "florence2",
))  # fmt: skip
_OTHERS = frozenset((
    "vit", "clip", "siglip", "siglip2", "wav2vec2", "hubert", "resnet", "dinov2", "dinov3_vit", "swin", "beit",
    "convnext", "detr", "sam", "sam2", "sam3", "segformer", "blip", "align", "altclip", "chinese_clip", "clipseg",
    "clap", "owlvit", "owlv2", "groupvit", "bark", "encodec", "dac", "vits", "speecht5", "musicgen",
    "audio-spectrogram-transformer", "timesfm", "patchtst", "informer", "autoformer", "chronos", "wavlm", "mimi",
    "depth_anything", "grounding-dino", "videomae", "clip_vision_model", "siglip_vision_model",
    "clip_text_model", "siglip_text_model", "metaclip_2", "colpali", "colqwen2", "diffusion_gemma", "vjepa2",
    "xclip", "flava", "deit", "hiera", "imagegpt", "decision_transformer", "musicgen_melody", "pix2struct",
))  # fmt: skip
# decoders whose layers are unlike any that are counted here
_UNCOUNTED = frozenset((
    "blt", "cpmant", "evolla", "git", "idefics", "kosmos-2", "kosmos-2.5", "kyutai_speech_to_text", "moshi", "pi0",
    "reformer", "trocr", "transfo-xl", "pi05", "dia", "csm", "vision-encoder-decoder",
))  # fmt: skip
_WRONG_CLASSES = ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")


def is_language_model(config: Config, file: str) -> None:
    """Refuse what is no decoder-only language model, by what it is."""
    kind = str(config.get("model_type") or "").lower()
    if "_class_name" in config or "_diffusers_version" in config:
        said = str(config.get("_class_name") or "a part of a diffusion pipeline")
        raise DataError(f"describes {said[:60]}, a diffusion model's part, not a language model", file=file)
    if kind in _NO_ATTENTION:
        raise DataError(
            f"model type {kind!r} has no attention; only transformers and their hybrids are understood", file=file
        )
    if kind in _ENCODERS:
        raise DataError(f"model type {kind!r} is an encoder, no decoder-only language model", file=file)
    if kind in _SEQUENCE_TO_SEQUENCE or config.get("is_encoder_decoder") is True:
        raise DataError(f"model type {kind!r} is an encoder with a decoder, no decoder-only language model", file=file)
    if kind in _OTHERS:
        raise DataError(f"model type {kind!r} is no language model", file=file)
    if kind in _UNCOUNTED:
        raise DataError(f"model type {kind!r} has layers that gpucost does not count", file=file)
    names = config.get("architectures")
    classes = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    masked = next((name for name in classes if name.endswith(_WRONG_CLASSES[0])), None)
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
        inner = next((part[key] for key in TEXT_PARTS if isinstance(part.get(key), dict) and part[key]), None)
        if inner is None:
            break
        outer = {key: part[key] for key in ("vocab_size", "quantization_config") if part.get(key) is not None}
        wrapper, nested = str(part.get("model_type") or "").lower(), True
        kind = class_defaults().get(wrapper, {}).get("_text") or wrapper
        part = {**outer, "model_type": kind, **inner}
        tied = tied if tied is not None else inner.get("tie_word_embeddings")
    if tied is not None:
        part["tie_word_embeddings"] = tied
    for key in NESTED:
        if isinstance(part.get(key), dict):
            part = {**part[key], **part}
    return part, nested
