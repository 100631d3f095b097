"""Reading a Hugging Face config.json into an architecture.

The format has no schema: each family of models names its dimensions in its own way, so every dimension here is the
first of several names that is present. What a family implies without writing it down (biases, norms, tied
embeddings) stands in the tables of traits below. Vision-language wrappers are read through to their text part.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpucost.architectures.attention import layer_kinds
from gpucost.architectures.defaults import with_defaults
from gpucost.architectures.extras import extra_parameters
from gpucost.errors import DataError
from gpucost.types import Architecture

Config = Mapping[str, Any]

_NAMES = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "dim"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": (
        "num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "multi_query_group_num", "kv_n_heads",
        "num_query_groups",
    ),
    "head_dim": ("head_dim", "kv_channels", "attention_head_dim", "d_kv"),
    "ffn": (
        "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "block_ff_dim", "inner_hidden_size", "d_ff",
        "decoder_ffn_dim",
    ),
    "vocab": ("vocab_size", "padded_vocab_size", "n_vocab"),
    "sequence": (
        "max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len", "max_sequence_length",
        "model_max_length", "max_seq_length",
    ),
    "experts": (
        "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts", "n_experts",
    ),
    "experts_per_token": (
        "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_top_k", "moe_topk", "moe_k",
        "top_k_experts",
    ),
    "expert_ffn": (
        "moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_hidden_size",
    ),
    "shared_experts": ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
    "shared_ffn": (
        "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size",
    ),
    "first_dense": ("first_k_dense_replace", "moe_layer_start_index", "first_dense_layers", "num_dense_layers"),
    "moe_step": (
        "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval", "moe_every_n_layers",
        "expert_layer_period", "moe_layer_freq",
    ),
    "mtp": ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "mtp_num_layers", "num_mtp_layers"),
}  # fmt: skip
_NESTED = ("attn_config", "ffn_config", "attention_config", "moe_config")
_TEXT_PARTS = ("text_config", "llm_config", "language_config", "language_model", "thinker_config", "decoder")

_UNGATED = frozenset((
    "gpt2", "gpt_neo", "gpt_neox", "gptj", "gpt_bigcode", "opt", "bloom", "falcon", "refinedweb", "refinedwebmodel",
    "mpt", "phi",
    "starcoder2", "nemotron", "apertus", "codegen", "bert", "roberta", "xglm", "persimmon", "galactica", "nemotron_h",
    "gpt_neox_japanese", "biogpt",
))  # fmt: skip
_LAYER_NORM = frozenset((
    "gpt2", "gpt_neo", "gpt_neox", "gptj", "gpt_bigcode", "opt", "bloom", "falcon", "refinedweb", "refinedwebmodel",
    "phi", "phimoe", "starcoder2",
    "nemotron", "codegen", "bert", "roberta", "xglm", "persimmon", "stablelm", "gpt_neox_japanese", "biogpt",
))  # fmt: skip
_WEIGHT_NORM = frozenset(("mpt", "dbrx", "cohere", "cohere2"))  # layer norm without a bias
_BIASED = frozenset((
    "gpt2", "gpt_neox", "gpt_bigcode", "opt", "bloom", "phi", "phimoe", "starcoder2", "codegen_bias", "bert",
    "roberta", "xglm",
    "persimmon", "qwen2", "qwen2_moe", "qwen", "qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text", "chatglm",
    "biogpt",
))  # fmt: skip
_TIED = frozenset((
    "gpt2", "gpt_neo", "gpt_bigcode", "opt", "bloom", "falcon", "mpt", "gemma", "gemma2", "gemma3", "gemma3_text",
    "gemma3n", "gemma3n_text",
    "cohere", "cohere2", "bert", "roberta", "xglm", "starcoder2", "refinedweb", "refinedwebmodel", "biogpt",
))  # fmt: skip
_LEARNED_POSITIONS = {
    "gpt2": 0,
    "gpt_neo": 0,
    "gpt_bigcode": 0,
    "opt": 2,
    "bert": 0,
    "roberta": 0,
    "biogpt": 2,
}  # type -> further rows
_NO_ATTENTION = frozenset(("mamba", "mamba2", "falcon_mamba", "rwkv", "rwkv5", "rwkv6", "rwkv7", "xlstm", "retnet"))
_NOT_DECODERS = frozenset(
    (
        "t5",
        "mt5",
        "umt5",
        "bart",
        "mbart",
        "whisper",
        "vit",
        "clip",
        "siglip",
        "wav2vec2",
        "pegasus",
        "m2m_100",
        "resnet",
    )
)


def read_config(path: str | Path) -> Architecture:
    """Read an architecture from a config.json, or from the config.json of a folder."""
    file = Path(path)
    file = file / "config.json" if file.is_dir() else file
    try:
        config = json.loads(file.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=str(file)) from None
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text. Name a model's config.json.", file=str(file)) from None
    except ValueError as error:
        raise DataError(f"is not valid JSON: {error}", file=str(file)) from None
    if not isinstance(config, dict):
        raise DataError("is not a JSON object. Name a model's config.json.", file=str(file))
    return architecture_of(config, _name_of(file, config), str(file))


def _name_of(file: Path, config: Config) -> str:
    """Name a model after its file, its folder, or the name that it gives itself."""
    stem = file.name.removesuffix(".json").removesuffix(".config").removesuffix("config")
    own = str(config.get("_name_or_path") or "").rstrip("/").rsplit("/", 1)[-1]
    return stem.split("--")[-1] or own or file.resolve().parent.name


def text_part(config: Config) -> dict[str, Any]:
    """Return the part of a configuration that describes the language model; tied embeddings may stand outside of it."""
    part = dict(config)
    for _ in range(3):
        inner = next((part[key] for key in _TEXT_PARTS if isinstance(part.get(key), dict) and part[key]), None)
        if inner is None:
            break
        outer: dict[str, Any] = {
            key: part[key] for key in ("tie_word_embeddings", "vocab_size", "model_type") if key in part
        }
        part = with_defaults({**outer, **inner})
    for key in _NESTED:
        if isinstance(part.get(key), dict):
            part = {**part[key], **part}
    return part


def architecture_of(config: Config, name: str, file: str = "config.json") -> Architecture:
    """Turn a configuration into an architecture; what is missing or does not fit together is an error."""
    text = text_part(config)
    kind = str(text.get("model_type") or config.get("model_type") or "").lower()
    _refuse_strangers(kind, config, file)
    text = _blocks_as_layers(text)
    layers, hidden, heads = (_required(text, dimension, file) for dimension in ("layers", "hidden", "heads"))
    vocab = _required(text, "vocab", file)
    made = Architecture(
        name=name,
        family=kind,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=_kv_heads(text, kind, heads, file),
        head_dim=_number(text, "head_dim", file) or _divided(hidden, heads, file),
        ffn_hidden=_feed_forward(text, hidden, file),
        gated=_is_gated(text, kind),
        vocab=vocab,
        tied_embeddings=bool(_first_set(text.get("tie_word_embeddings"), kind in _TIED)),
        max_sequence_tokens=_number(text, "sequence", file) or 0,
        norm=_norm(text, kind),
        qkv_bias=_has_bias(text, kind),
        mtp_layers=_mtp_layers(text, file),
        position_parameters=_positions(text, kind, hidden, file),
        status="given",
        notes=f"read from {file}",
    )
    made = _with_latent(made, text, file)
    made = _with_experts(made, text, kind, file)
    kinds = layer_kinds(text, kind, made.layers, file)
    made = replace(
        made, window_tokens=kinds.window_tokens, window_layers=kinds.window_layers, linear_layers=kinds.linear_layers
    )
    return replace(made, extra_parameters=extra_parameters(made, text, kind))


def _blocks_as_layers(text: dict[str, Any]) -> dict[str, Any]:
    """Count layers by their mixers where every block is a mixer or a feed-forward, not both (Nemotron-H)."""
    pattern = text.get("hybrid_override_pattern")
    return {**text, "num_hidden_layers": sum(sign in "M*" for sign in pattern)} if isinstance(pattern, str) else text


def _feed_forward(text: Config, hidden: int, file: str) -> int:
    """Return the width of the feed-forward; LFM2 shrinks the stated one, Granite hybrids call theirs shared."""
    width = _number(text, "ffn", file) or 4 * hidden
    if text.get("block_auto_adjust_ff_dim"):
        step = int(text.get("block_multiple_of") or 256)
        shrunk = int(2 * width / 3 * float(text.get("block_ffn_dim_multiplier") or 1))
        return -(-shrunk // step) * step
    if not _number(text, "experts", file) and text.get("shared_intermediate_size"):
        return int(text["shared_intermediate_size"])
    return width


def _refuse_strangers(kind: str, config: Config, file: str) -> None:
    if kind in _NO_ATTENTION:
        raise DataError(
            f"model type {kind!r} has no attention; only transformers and their hybrids are understood", file=file
        )
    if text_part(config).get("block_configs"):
        raise DataError(
            "has layers of different shapes (block_configs); one set of dimensions cannot hold them", file=file
        )
    if kind in _NOT_DECODERS or config.get("is_encoder_decoder") is True:
        raise DataError(f"model type {kind!r} is no decoder-only language model", file=file)


def _number(text: Config, dimension: str, file: str) -> int | None:
    """Return the first name of a dimension that is present, as a whole number."""
    for key in _NAMES[dimension]:
        value = text.get(key)
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            value = value[0]
        if value is None or isinstance(value, list):
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value) or value < 0:
            raise DataError(f"{key} must be a whole number of zero or more, found {value!r}", file=file)
        return int(value)
    return None


def _required(text: Config, dimension: str, file: str) -> int:
    value = _number(text, dimension, file)
    if not value:
        names = " or ".join(_NAMES[dimension][:3])
        raise DataError(f"has no {names}; it does not look like a transformer's configuration", file=file)
    return value


def _first_set(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _divided(hidden: int, heads: int, file: str) -> int:
    if hidden % heads:
        raise DataError(
            f"hidden size {hidden} is not a multiple of {heads} heads, and head_dim is not given", file=file
        )
    return hidden // heads


def _kv_heads(text: Config, kind: str, heads: int, file: str) -> int:
    if kind in ("falcon", "refinedweb", "refinedwebmodel") and not text.get("new_decoder_architecture"):
        return 1 if text.get("multi_query", kind == "refinedwebmodel") else heads
    if text.get("multi_query") is True and kind in ("gpt_bigcode",):
        return 1
    if text.get("multi_query_attention") is False:
        return heads
    kv_heads = _number(text, "kv_heads", file) or heads
    if heads % kv_heads:
        raise DataError(f"{heads} query heads cannot share {kv_heads} key-value heads evenly", file=file)
    return kv_heads


def _is_gated(text: Config, kind: str) -> bool:
    if kind in ("mpt", "dbrx"):
        return kind == "dbrx"
    if kind in _UNGATED:
        return False
    act = str(
        _first_set(text.get("hidden_act"), text.get("hidden_activation"), text.get("activation_function"), "silu")
    )
    return not act.startswith("relu")


def _norm(text: Config, kind: str) -> str:
    if kind == "olmo":
        return "ln_np"
    if kind in _WEIGHT_NORM:
        return "ln_w"
    return "ln" if kind in _LAYER_NORM and "rms_norm_eps" not in text else "rms"


def _has_bias(text: Config, kind: str) -> bool:
    said = _first_set(
        *(text.get(key) for key in ("attention_bias", "qkv_bias", "use_qkv_bias", "add_qkv_bias", "use_bias"))
    )
    if said is None and kind in ("falcon", "refinedweb", "refinedwebmodel"):
        said = text.get("bias", False)
    return bool(kind in _BIASED if said is None else said)


def _mtp_layers(text: Config, file: str) -> int:
    modules = _number(text, "mtp", file) or 0
    return modules if text.get("use_mtp", True) else 0


def _positions(text: Config, kind: str, hidden: int, file: str) -> int:
    if kind not in _LEARNED_POSITIONS:
        return 0
    further_types = int(text.get("type_vocab_size") or 0) if kind in ("bert", "roberta") else 0
    return ((_number(text, "sequence", file) or 0) + _LEARNED_POSITIONS[kind] + further_types) * hidden


def _with_latent(made: Architecture, text: Config, file: str) -> Architecture:
    """Set the kind of attention, and the ranks of multi-head latent attention where it is used."""
    if not text.get("kv_lora_rank"):
        shared = made.heads // made.kv_heads
        return replace(made, attention="mha" if shared == 1 else "mqa" if made.kv_heads == 1 else "gqa")
    ranks: dict[str, Any] = {}
    for ours, theirs in (
        ("kv_lora_rank", "kv_lora_rank"),
        ("qk_nope_dim", "qk_nope_head_dim"),
        ("qk_rope_dim", "qk_rope_head_dim"),
        ("v_head_dim", "v_head_dim"),
    ):
        value = text.get(theirs)
        if not isinstance(value, int) or value <= 0:
            raise DataError(f"multi-head latent attention needs {theirs}, found {value!r}", file=file)
        ranks[ours] = value
    head_dim = ranks["qk_nope_dim"] + ranks["qk_rope_dim"]
    return replace(
        made, attention="mla", q_lora_rank=text.get("q_lora_rank") or 0, kv_heads=made.heads, head_dim=head_dim, **ranks
    )


def _with_experts(made: Architecture, text: Config, kind: str, file: str) -> Architecture:
    """Set the mixture of experts; the dense width is zero where no layer is dense."""
    experts = _number(text, "experts", file) or 0
    if experts <= 1 or (kind == "hunyuan_v1_dense"):
        return made
    per_token = _number(text, "experts_per_token", file) or 0
    if not 1 <= per_token <= experts:
        raise DataError(f"{per_token} experts per token of {experts} experts makes no sense", file=file)
    width = _number(text, "expert_ffn", file) or made.ffn_hidden
    shared, shared_width = _shared_experts(text, kind, width, file)
    first, step, moe_layers = _expert_layers(text, made.layers, file)
    dense_width = int(
        _first_set(
            text.get("intermediate_size_mlp"),
            text.get("prefix_dense_intermediate_size"),
            text.get("dense_intermediate_size"),
            made.ffn_hidden,
        )
    )
    return replace(
        made, experts=experts, experts_per_token=per_token, expert_ffn_hidden=width, shared_experts=shared,
        shared_ffn_hidden=shared_width,
        first_dense_layers=first, moe_layer_step=step, ffn_hidden=dense_width if moe_layers < made.layers else 0,
    )  # fmt: skip


def _shared_experts(text: Config, kind: str, width: int, file: str) -> tuple[int, int]:
    """Return the shared experts and the width of one; a joint width is that of one wide expert."""
    if kind.startswith("llama4"):
        return 1, width
    joint = _number(text, "shared_ffn", file)
    count = _number(text, "shared_experts", file) or 0
    if joint:
        return max(count, 1), joint
    return (count, width) if count else (0, 0)


def _expert_layers(text: Config, layers: int, file: str) -> tuple[int, int, int]:
    """Return the leading dense layers, the step between mixtures of experts, and how many layers are one."""
    dense = text.get("mlp_only_layers") or []
    listed = next((text[key] for key in ("moe_layer_freq", "moe_layers") if isinstance(text.get(key), list)), None)
    if listed is not None:
        places = {i for i, item in enumerate(listed) if item} if set(listed) <= {0, 1} else set(listed)
        return layers - len(places), 1, len(places)
    if text.get("mlp_layer_types"):
        count = sum(item == "sparse" for item in text["mlp_layer_types"])
        return layers - count, 1, count
    step = max(1, _number(text, "moe_step", file) or 1)
    first = _number(text, "first_dense", file) or len(dense)
    if first > layers:
        raise DataError(f"{first} leading dense layers of {layers} layers makes no sense", file=file)
    return first, step, (layers - first) // step
