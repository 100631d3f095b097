"""Vision and audio encoders beside a language model: counted where their dimensions say enough, else named as left out.

Parameters of the language model never include them; a server keeps their weights beside it.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from gpucost.architectures.config import Fields
from gpucost.errors import DataError
from gpucost.types import Architecture

Config = Mapping[str, Any]

_TOWERS = ("vision_config", "vision_tower_config", "visual", "audio_config", "speech_config", "encoder_config")
# what turns text back into speech
_SPEAKERS = ("talker_config", "token2wav_config", "code2wav_config", "code_predictor_config", "depth_decoder_config")
# model types whose feed-forward has three matrices
_GATED = ("qwen2_5_vl", "glm4v", "glm_ocr", "pixtral", "mlcd", "qwen2_5_omni", "aimv2")
_IMAGE_TOKENS = ("mm_tokens_per_image", "image_seq_length", "vision_soft_tokens_per_image", "num_image_token")


def with_towers(architecture: Architecture, config: Config, text: Config) -> Architecture:
    """Add the parameters of encoders and the tokens that one image becomes; what cannot be counted is named."""
    counted, warnings, tokens = 0, [], 0
    for part in (config, config.get("thinker_config")):  # omni models keep what they see and hear by in the second
        for key in _TOWERS:
            tower = part.get(key) if isinstance(part, Mapping) else None
            if not isinstance(tower, Mapping) or not tower:
                continue
            try:
                parameters = _parameters(Fields(tower, key), str(tower.get("model_type") or ""))
                tokens = tokens or _tokens(part or {}, tower)
            except DataError:  # no reason to refuse the language model
                parameters = 0
            counted += parameters
            if not parameters:
                warnings.append(
                    f"{key}: an encoder whose parameters are not counted; the figures are the language model's"
                )
    for key in _SPEAKERS:
        if isinstance(config.get(key), Mapping) and config[key]:
            warnings.append(f"{key}: a model of its own beside the language model, not counted")
    notes = architecture.notes + (f"; encoders of about {counted / 1e9:.3g} B parameters beside it" if counted else "")
    return replace(
        architecture,
        tower_parameters=counted,
        image_tokens=tokens,
        notes=notes,
        warnings=(*architecture.warnings, *warnings),
    )


def _parameters(f: Fields, kind: str) -> int:
    """Count the layers and the patch embedding of a vision transformer: 4·h² + m·h·f a layer, 3·patch²·h pixels."""
    layers = f.number("num_hidden_layers", "depth", "layers", "num_layers", "encoder_layers", "vt_num_hidden_layers")
    width = f.number("embed_dim", "hidden_size", "width", "d_model", "vt_hidden_size")
    if not (layers and width) or layers > 512:  # no encoder has as many
        return 0
    ratio = f.ratio("mlp_ratio", 4.0)
    inner = f.number("intermediate_size", "encoder_ffn_dim", "vt_intermediate_size") or int(ratio * width)
    if kind.startswith(("glm4v", "glm46v", "glm4_5v")):  # whose stated width is that of the merger
        inner = f.number("out_hidden_size") or inner
    gated = any(kind.startswith(sign) for sign in _GATED) and "omni_audio" not in kind
    patch, frames = f.number("patch_size"), max(1, f.number("temporal_patch_size", default=1))
    return layers * (4 * width**2 + (3 if gated else 2) * width * inner) + 3 * frames * patch**2 * width


def _tokens(config: Config, tower: Config) -> int:
    """Return the tokens of one image at the encoder's own size, where that is fixed."""
    f = Fields(config, "config.json")
    stated = f.number(*_IMAGE_TOKENS)
    if stated or "image_size" not in tower:
        return stated
    inner = Fields(tower, "vision_config")
    side, patch = inner.number("image_size"), inner.number("patch_size")
    if not side or not patch:
        return 0
    # neighbouring patches are merged into one token
    shrink = max(1, f.number("scale_factor", default=1), inner.number("spatial_merge_size", default=1))
    return (side // patch) ** 2 // shrink**2
