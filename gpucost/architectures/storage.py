"""How the published weights are stored: the format of every part, what stays wide, and the bytes of scales.

Read from `quantization_config` (also `compression_config`, `expert_dtype`, and ModelOpt's `hf_quant_config.json` beside
the file). Embeddings, norms, biases and routers stay in the wide format of `torch_dtype`; so does what the file lists.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from gpucost.architectures.config import KEYS, load
from gpucost.gate import shown
from gpucost.types import Architecture

Config = Mapping[str, Any]

# bytes of a weight by the names that PyTorch gives its types, and what these are called here
_WIDE = {"float32": 4.0, "float": 4.0, "float64": 8.0, "bfloat16": 2.0, "float16": 2.0, "half": 2.0}
_WIDE |= {"float8_e4m3fn": 1.0, "float8_e5m2": 1.0}
_NAMES = {"float32": "fp32", "float": "fp32", "float16": "fp16", "half": "fp16", "float64": "fp64"}
_NAMES |= {"float8_e4m3fn": "fp8", "float8_e5m2": "fp8"}
_SCALE_BYTES, _BLOCK = 4.0, 128 * 128  # an fp32 scale for each of DeepSeek's blocks (arXiv:2412.19437, section 3.3.2)
_MXFP4_BYTES = 0.5 + 1 / 32  # 4 bits, and a scale of 8 bits for 32 of them (OCP Microscaling Formats, section 5.2)
_NVFP4_BYTES = 0.5 + 1 / 16  # and for 16 of them
# methods that store whole numbers with a scale, and but for Marlin a zero point, for every group
_INTEGER_METHODS = (
    *("awq", "gptq", "gptqmodel", "auto_round", "intel/auto_round", "marlin", "auto_awq", "autoround", "inc"),
    *("metal", "sinq", "moe_wna16"),
)
_PARTS = ("attention", "linear", "dense", "experts", "shared", "head")
# the words of module names that mean each part
_SIGNS = (
    ("experts", re.compile(r"(?<!shared_)(?<!shared)experts?(?!_gate)\b|\bexperts?\.")),
    ("shared", re.compile(r"shared_?experts?(?!_gate)|shared_mlp")),
    ("attention", re.compile(r"self_attn|attention|\battn\b|cross_attn")),
    ("linear", re.compile(r"linear_attn|mamba|mixer|\bconv\b|ssm")),
    ("head", re.compile(r"lm_head|output_layer|embed_out")),
    ("dense", re.compile(r"mlp|feed_forward|ffn")),
)
_LAYER = re.compile(r"layers?\.(\d{1,6})\b")
_PROJECTION = re.compile(r"(?<![a-z_])[a-z_]+_proj\b|\bw[123]\b")
_ROUTER = re.compile(r"(gate|router)(\.weight)?\$?$|shared_expert_gate")
_ELSEWHERE = re.compile(r"vision|visual|audio|multi_modal|mtp|norm|embed_tokens|projector|\bvit\b|mm_")


class StoredFormat(NamedTuple):
    """A way to store weights: its name, and bytes a weight with the scales."""

    name: str
    weight_bytes: float


class _Group(NamedTuple):
    """A group of layers in compressed-tensors: whether it is for any linear layer, or for experts alone."""

    general: bool
    experts: bool
    form: StoredFormat


class Stored(NamedTuple):
    """The formats of the parts of a model: the usual one, another for the experts, and the share kept wide."""

    usual: StoredFormat
    experts: StoredFormat
    wide: dict[str, float]  # part -> share of its layers that stays in the wide format


def stored(architecture: Architecture, config: Config, text: Config) -> Architecture:
    """Set the native precision and the bytes of the weights as stored."""
    dtype = str(_first(config, text, "torch_dtype", "dtype") or "bfloat16").rsplit(".", 1)[-1].lower()
    plain = StoredFormat(_NAMES.get(dtype, "bf16"), _WIDE.get(dtype, 2.0))
    method = _first(config, text, "quantization_config", "compression_config", "quantization")
    if not method or method == "none":
        return _filled(architecture, Stored(plain, plain, {}), plain)
    if not isinstance(method, Mapping):
        method = {"quant_method": method if isinstance(method, str) else shown(method)}
    return _quantised(architecture, method, str(_first(config, text, "expert_dtype") or ""), plain)


def _quantised(architecture: Architecture, method: Config, expert_dtype: str, plain: StoredFormat) -> Architecture:
    half = plain if plain.weight_bytes == 2.0 else StoredFormat("bf16", 2.0)  # what stays wide beside narrow weights
    usual = format_of(method)
    if usual is None:
        method_name = str(method.get("quant_method") or method.get("quant_algo") or "unnamed")[:40]
        warning = f"quantization method {method_name!r} is not known: weights are taken as {half.name}"
        return replace(_filled(architecture, Stored(half, half, {}), half), warnings=(*architecture.warnings, warning))
    word = str(method.get("expert_dtype") or method.get("store_dtype") or expert_dtype).lower()
    if "fp4" in word:
        experts = StoredFormat("mxfp4", _MXFP4_BYTES)
    elif "fp8" in word:
        experts = StoredFormat("fp8", 1.0 + _SCALE_BYTES / _BLOCK)
    elif "int4" in word:
        experts = StoredFormat("int4", _integer(4, 32, zeros=False).weight_bytes)
    else:  # no word of their own: the widest of the groups of layers that hold them
        theirs = [group.form for group in _groups(method) if group.experts]
        experts = max(theirs, key=lambda form: (form.weight_bytes, form.name), default=usual)
    listed = (
        item
        for key in KEYS["kept_wide"]
        if isinstance(method.get(key), list)
        for item in method[key][:20_000]  # nobody names more, and a hostile file may
        if isinstance(item, str) and len(item) < 400
    )
    wide = dict.fromkeys(_PARTS, 0.0) | {"head": 1.0} | kept_wide(listed, architecture.layers)
    if usual.name == "mxfp4" and str(method.get("quant_method")).lower() == "mxfp4":
        wide = dict.fromkeys(_PARTS, 1.0) | {"experts": 0.0}  # the method packs experts only
    if architecture.family.startswith(("kimi", "bailing", "minimax")):  # whose linear mixers are named self_attn too
        wide["linear"] = max(wide["linear"], wide["attention"])
    if method.get("lm_head") is True:
        wide["head"] = 0.0
    architecture = _filled(architecture, Stored(usual, experts, wide), half)
    # groups of layers may be stored in more formats than are told apart here
    further = sorted({group.form.name for group in _groups(method) if not group.experts and group.form != usual})
    if not further:
        return architecture
    warning = f"config_groups stores some layers as {', '.join(further)}: all but the experts are taken as {usual.name}"
    return replace(architecture, warnings=(*architecture.warnings, warning))


def _first(config: Config, text: Config, *names: str) -> Any:
    return next((part[name] for name in names for part in (config, text) if part.get(name) is not None), None)


def _filled(architecture: Architecture, storage: Stored, plain: StoredFormat) -> Architecture:
    """Add up the parts, each in its format."""
    embedding = architecture.vocab * (architecture.embedding_width or architecture.hidden)
    wide = plain.weight_bytes
    total = (embedding + architecture.position_parameters + architecture.extra_parameters) * wide

    def part(name: str, weights: float) -> float:
        share = storage.wide.get(name, 0.0)
        narrow = storage.experts if name == "experts" else storage.usual
        return weights * (share * wide + (1 - share) * narrow.weight_bytes)

    total += part("head", 0.0 if architecture.tied_embeddings else embedding)
    for b in architecture.blocks:
        each = part("linear" if b.linear and not b.reaches else "attention", b.mixer)
        each += part("dense", b.dense) + part("experts", b.experts * b.expert) + part("shared", b.shared)
        total += b.count * (each + (b.router + b.norms + b.others) * wide)
    # a model goes by the format of the larger part: experts at 4 bits make it a 4-bit model, whatever attention has
    routed = sum(b.count * b.experts * b.expert for b in architecture.blocks)
    dense = sum(b.count * (b.mixer + b.dense + b.shared) for b in architecture.blocks)
    most = storage.experts if routed > dense and storage.wide.get("experts", 0.0) < 0.5 else storage.usual
    return replace(
        architecture, native_precision=most.name, stored_bytes=round(total), mixer_bytes_each=part("attention", 1.0)
    )


# --- formats


def format_of(method: Config) -> StoredFormat | None:
    """Return the format that a quantization method stores weights in, or None for one that is not known.

    >>> format_of({"quant_method": "awq", "bits": 4, "group_size": 128})
    StoredFormat(name='int4', weight_bytes=0.51953125)
    """
    name = str(method.get("quant_method") or method.get("quant_algo") or method.get("qformat_weight") or "").lower()
    name = name.replace("-", "_")
    bits, group = _whole(method, "bits", "w_bit", "nbits"), _whole(method, "group_size", "q_group_size")
    if "config_groups" in method:
        # the group for any linear layer, else the widest of those that are not for experts alone
        groups = list(_groups(method))
        groups = [item for item in groups if not item.experts] or groups
        if not groups:
            return _from_algorithm(method)
        return min(groups, key=lambda item: (not item.general, -item.form.weight_bytes, item.form.name)).form
    if name in ("fp8", "fbgemm_fp8", "finegrained_fp8", "float8", "deepspeedfp"):
        block = method.get("weight_block_size")
        return StoredFormat("fp8", 1.0 + (_SCALE_BYTES / _BLOCK if block else 0.0))
    if name in _INTEGER_METHODS:
        return _integer(bits or 4, group, zeros=name != "marlin")
    if name.startswith(("bitsandbytes", "bnb")):
        if name.endswith("8bit") or method.get("load_in_8bit") or method.get("_load_in_8bit"):
            return StoredFormat("int8", 1.0)
        # NF4: an fp32 scale for 64 weights, or one of 8 bits and an fp32 scale for 256 of these (arXiv:2305.14314,
        # section 3)
        return StoredFormat("int4", 0.5 + (1 / 64 + 4 / 16384 if method.get("bnb_4bit_use_double_quant") else 4 / 64))
    if name in ("bitnet", "bitnet_quant"):
        return StoredFormat("int2", 0.25)  # three values a weight, four weights a byte
    if name in ("mxfp4", "mxfp4_quant", "gpt_oss_mxfp4"):
        return StoredFormat("mxfp4", _MXFP4_BYTES)
    if name == "eetq":
        return StoredFormat("w8a16", 1.0)
    if name in ("hqq", "quanto", "higgs", "torchao", "spqr"):
        # numbers in a place of their own, or a word such as int4_weight_only with its group behind it
        inner = method.get("quant_config")
        weights = inner.get("weight_quant_params") if isinstance(inner, Mapping) else None
        part = weights if isinstance(weights, Mapping) else method
        bits, group = _whole(part, "nbits", "bits"), _whole(part, "group_size") or 64
        text = json.dumps(method.get("weights") or method.get("quant_type") or "", default=str)[:4000].lower()
        if match := re.search(r"mxfp4|nvfp4|float8|fp8", text):
            return _from_algorithm({"quant_algo": "FP8" if "8" in match[0] else match[0]})
        if not bits and (match := re.search(r"int([248])", text)):
            bits, stated = int(match[1]), re.search(r"group_size\W+(\d{1,5})\b", text)
            group = int(stated[1]) if stated else 0 if bits == 8 else 128  # a scale for each row of int8
        return _integer(bits, group, zeros=bits < 8) if bits else None
    if name in ("exl2", "exl3", "aqlm"):
        # the average bits of a weight, scales included, or the codes of a group of weights
        mean: Any = method.get("bits")
        if name == "aqlm":
            codes = _whole(method, "nbits_per_codebook") or 16, _whole(method, "num_codebooks") or 1
            mean = codes[0] * codes[1] / (_whole(method, "in_group_size") or 8)
        if isinstance(mean, bool) or not isinstance(mean, (int, float)) or not 0 < mean <= 16:
            return None
        return StoredFormat("int4" if mean <= 5 else "w8a16", mean / 8)
    if name in ("fp_quant", "four_over_six", "fouroversix"):
        return _from_algorithm({"quant_algo": str(method.get("forward_dtype") or "nvfp4")})
    return _from_algorithm(method)


def _integer(bits: int, group: int, zeros: bool) -> StoredFormat:
    """Store whole numbers of so many bits with a 16-bit scale, and a zero point, for every group."""
    scales = (2.0 + (bits / 8 if zeros else 0.0)) / group if group > 0 else 0.0
    return StoredFormat("int4" if bits <= 4 else "w8a16", bits / 8 + scales)


def _groups(method: Config) -> Iterator[_Group]:
    """Yield the groups of compressed-tensors that store weights."""
    groups = method.get("config_groups")
    listed = [group for group in groups.values() if isinstance(group, Mapping)] if isinstance(groups, Mapping) else []
    # where activations are quantised too, 8 bits multiply at 8 bits; else they are widened
    acts = any(group.get("input_activations") for group in listed)
    for group in listed:
        if isinstance(weights := group.get("weights"), Mapping):
            targets = group.get("targets")
            names = [str(word).lower()[:400] for word in targets[:1000]] if isinstance(targets, list) else ["linear"]
            experts = bool(names) and all(_parts_named(word, whole_layer=False) == ("experts",) for word in names)
            bits, size = _whole(weights, "num_bits"), _whole(weights, "group_size")
            is_float = str(weights.get("type") or "int") == "float"
            if is_float and bits == 4:
                form = StoredFormat("mxfp4", _MXFP4_BYTES) if size == 32 else StoredFormat("nvfp4", _NVFP4_BYTES)
            elif is_float:
                block = weights.get("block_structure") or str(weights.get("strategy")) == "block"
                form = StoredFormat("fp8", 1.0 + (_SCALE_BYTES / _BLOCK if block else 0.0))
            elif bits >= 8 and acts:
                form = StoredFormat("int8", 1.0)
            else:
                form = _integer(bits or 4, size, zeros=weights.get("symmetric") is False)
            yield _Group("linear" in names, experts, form)


def _from_algorithm(method: Config) -> StoredFormat | None:
    """Read ModelOpt's names and Quark's."""
    text = " ".join(
        str(method.get(key) or "") for key in ("quant_algo", "quant_method", "qformat_weight", "format")
    ).upper()
    if "global_quant_config" in method:
        text += " " + json.dumps(method["global_quant_config"], default=str)[:4000].upper()
    if "W4A8" in text or "W4A16" in text or "INT4" in text:
        return _integer(4, _whole(method, "group_size") or 128, zeros=False)
    if "MXFP4" in text or ("FP4" in text and '"GROUP_SIZE": 32' in text):
        return StoredFormat("mxfp4", _MXFP4_BYTES)
    if "NVFP4" in text or "FP4" in text:
        return StoredFormat("nvfp4", _NVFP4_BYTES)
    if "FP8" in text or "MIXED" in text:
        return StoredFormat("fp8", 1.0)
    return StoredFormat("int8", 1.0) if "INT8" in text or "W8A8" in text else None


def _whole(method: Config, *names: str) -> int:
    return next((number for name in names if (number := _number(method.get(name)))), 0)


def _number(value: object) -> int:
    """Return a number of bits or weights, also one written as a decimal or a text; 0 where it is none.

    >>> _number(8), _number(8.0), _number("8"), _number(True), _number(3.5)
    (8, 8, 8, 0, 0)
    """
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdecimal() and len(value) < 9 else 0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 65536:
        return 0
    return int(value) if value == int(value) else 0


# --- what stays wide


def kept_wide(modules: Iterable[str], layers: int) -> dict[str, float]:
    """Return the share of every part's layers that a list of module names keeps wide.

    >>> kept_wide(["lm_head", "model.layers.0.mlp.down_proj", "re:.*self_attn.*"], 4)
    {'dense': 0.08333333333333333, 'attention': 1.0}
    """
    places: dict[str, dict[int, set[str]]] = {}
    for name in modules:
        # patterns are read as the names in them; routers and what is no layer of the language model stay wide anyhow
        text = name.removeprefix("re:").replace("\\", "").replace("[.]", ".").lower()
        if _ELSEWHERE.search(text) or _ROUTER.search(text.rstrip(".*$")):
            continue
        layer = _LAYER.search(text)
        numbers = [int(layer[1])] if layer else range(layers)
        for part in _parts_named(text, layer is not None):
            for place in numbers:
                places.setdefault(part, {}).setdefault(place, set()).update(_PROJECTION.findall(text) or ("all",))
    shares: dict[str, float] = {}
    for part, projections_of in places.items():
        if part == "head":
            continue
        # whole layers, or some of the projections that a layer has: four of attention, three of a feed-forward
        usual = 4 if part in ("attention", "linear") else 3
        wide_layers = [names for layer, names in projections_of.items() if layer < layers]
        share = sum(1.0 if "all" in names else min(1.0, len(names) / usual) for names in wide_layers)
        shares[part] = share / max(layers, 1)
    return shares


def _parts_named(text: str, whole_layer: bool) -> tuple[str, ...]:
    part = next((part for part, sign in _SIGNS if sign.search(text)), None)
    if part:
        return (part,)
    return ("attention", "linear", "dense", "experts", "shared") if whole_layer else ()


# --- files beside the configuration

_ENDS_BYTES = 65_536


def beside(architecture: Architecture, file: Path) -> Architecture:
    """Add what files in the same folder say: ModelOpt's quantization, and the size of the weight files as a check.

    Weight files more than 1 % apart from what was counted are worth a warning.
    """
    modelopt = file.with_name("hf_quant_config.json")
    if modelopt != file and modelopt.is_file() and architecture.native_precision in ("bf16", "fp16", "fp32"):
        method = load(modelopt).get("quantization")
        if isinstance(method, Mapping) and method.get("quant_algo"):
            architecture = _quantised(architecture, method, "", StoredFormat("bf16", 2.0))
    index = file.with_name("model.safetensors.index.json")
    if index == file or not index.is_file():
        return architecture
    # The index names every tensor and may have hundreds of megabytes: its total stands at the beginning or the end.
    with index.open("rb") as opened:
        ends = opened.read(_ENDS_BYTES)
        opened.seek(max(0, index.stat().st_size - _ENDS_BYTES))
        ends += opened.read(_ENDS_BYTES)
    size = re.search(rb'"total_size"\s*:\s*(\d{1,18})\b', ends)
    if not size:
        return architecture
    stated_bytes, counted = int(size[1]), architecture.stored_bytes + 2 * architecture.tower_parameters
    if abs(stated_bytes / max(counted, 1) - 1) <= 0.01:
        return architecture
    warning = (
        f"{index.name} says {stated_bytes / 1e9:.4g} GB of weights, counted are {counted / 1e9:.4g} GB"
        f" ({counted / stated_bytes - 1:+.1%}); prediction modules and encoders may be the difference"
    )
    return replace(architecture, warnings=(*architecture.warnings, warning))
