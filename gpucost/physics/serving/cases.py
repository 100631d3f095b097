"""Cases of serving as structs of arrays: weight formats, their peaks, links of a replica, kinds of memory."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from gpucost.errors import UsageError
from gpucost.gate import beside
from gpucost.physics import transformer
from gpucost.physics.blocks import sums_of
from gpucost.physics.columns import ColumnStruct, Floats, Gathered
from gpucost.physics.hardware import PCIE_DEFAULT_GB_PER_S, SCALEOUT_DEFAULT_GB_PER_S, family_code, half_precision, peak
from gpucost.physics.serving import efficiency
from gpucost.physics.serving.efficiency import ENGINES, EngineRates, Software
from gpucost.physics.transformer import Attending, stack, total_parameters
from gpucost.types import Accelerator, Architecture, System
from gpucost.units import GB, GIB

# --- The structs of serving: what a model asks for, what a chip offers, how a replica is spread and what it adds.


class ModelWork(Attending, frozen=True):
    """What a model asks for: parameters by part, cached values, FLOP of attention."""

    layers: Floats
    hidden: Floats
    attention: Floats  # parameters of the projections, all layers
    dense: Floats  # feed-forward parameters that every token meets: dense, shared, router, others
    expert: Floats  # parameters of one routed expert
    moe_layers: Floats
    expert_count: Floats
    experts_per_token: Floats
    head: Floats  # output projection
    beside: Floats  # tables that are looked up, and encoders of images and sound
    latent: Floats  # 1 for multi-head latent attention
    cache_heads: Floats  # ranks over which the cache can be divided


class Chip(ColumnStruct, frozen=True):
    """What an accelerator offers to a replica in its system."""

    hbm_gb_per_s: Floats
    half_tflops: Floats
    matrix_tflops: Floats  # peak at which quantised products run
    fp32_tflops: Floats  # peak outside the matrix units
    memory_gb: Floats
    link_gb_per_s: Floats  # per accelerator and direction, over the slowest link of the tensor group
    host_gb_per_s: Floats


class Bytes(ColumnStruct, frozen=True):
    """Bytes per value of each kind."""

    weights: Floats
    attention: Floats
    head: Floats
    cache: Floats


class Placement(ColumnStruct, frozen=True):
    """How a replica is spread: tensor × data × pipeline accelerators; experts over tensor × data of them."""

    tensor: Floats
    data: Floats  # attention data parallel: each rank holds whole attention weights and its own sequences
    pipeline: Floats
    expert: Floats  # 1 where experts are split by tensor, more where ranks hold whole experts

    @property
    def gpus(self) -> Floats:
        """Accelerators of a replica."""
        return self.tensor * self.data * self.pipeline


class Options(ColumnStruct, frozen=True):
    """What a deployment adds: cached prefixes, drafted tokens, weights left in host memory."""

    prefix_hit: Floats  # share of prompt tokens found in the prefix cache
    draft_tokens: Floats  # tokens proposed per step; 0 without speculation
    acceptance: Floats  # probability that a proposed token is kept
    draft_cost: Floats  # time of proposing one token, as a share of a step
    offloaded: Floats  # share of the weights read from host memory at each step
    longer_tokens: Floats  # that a running sequence holds beyond mean prompt and half the mean output: long ones stay


class ServingCase(Gathered, frozen=True):
    """Models on chips, their placement, formats, options and the efficiencies that hold there."""

    work: ModelWork
    chip: Chip
    bytes: Bytes
    placement: Placement
    options: Options
    rates: EngineRates


def plain_options(count: int) -> Options:
    """Return options without caching, speculation or offload."""
    zero = np.zeros(count)
    return Options(zero, zero, zero, zero, zero, zero)


# --- From records to serving cases: weight formats, the peaks at which they run, links of a replica, kinds of memory.


class Format(NamedTuple):
    """How weights are stored: bytes each, what they multiply at, and the class of their kernels."""

    weight_bytes: float  # with the scales of their blocks
    multiply: str  # half | fp8 | int8 | fp4
    kernels: str  # into FORMAT_CLASSES


# A scale for each block of values is stored beside them: 16 of NVFP4 share one of 8 bits, (4 + 8/16) ÷ 8 = 0.5625
# bytes.
FORMATS = {name: Format(float(each), *words) for name, each, *words, _ in beside(__file__, "formats")[1:]}
_SERVED_AS = {"fp32": "bf16", "fp64": "bf16", "int2": "int4"}  # native formats that engines widen or round up
CACHE_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "nvfp4": 0.5625, "fp4": 0.5625, "int4": 0.5625}
_EIGHT_BIT_CACHE_ENGINES = ("trtllm", "tuned", "wide")  # whose quantised checkpoints come with an 8-bit cache
_LOCAL_BYTES = 1.0625  # what llama.cpp keeps at 16 bits elsewhere: 8 bits and a 16-bit scale per 32 values


class ServedReplica(Struct, frozen=True):
    """One model on one kind of accelerator by one engine, and how a replica is spread."""

    architecture: Architecture
    accelerator: Accelerator
    system: System
    engine: str = "vllm"
    format: str = "bf16"
    cache: str = "auto"  # precision of the key-value cache
    tensor: int = 1
    data: int = 1
    pipeline: int = 1
    expert: int = 1
    server: str = "tuned"

    @property
    def gpus(self) -> int:
        """Accelerators of a replica."""
        return self.tensor * self.data * self.pipeline


def format_of(name: str) -> Format:
    """Return a weight format by name, or say which names there are."""
    if name not in FORMATS:
        raise UsageError(f"unknown precision {name!r}. Choose one of {', '.join(FORMATS)}.")
    return FORMATS[name]


def native_format(architecture: Architecture) -> str:
    """Return the format in which a model's weights were published, as one that an engine serves.

    >>> native_format(Architecture("own", "own", 36, 2880, 64, 8, 64, 0, True, 201088, False, native_precision="int2"))
    'int4'
    """
    return _SERVED_AS.get(architecture.native_precision, architecture.native_precision) or "bf16"


def published_bytes(a: Architecture) -> float:
    """Return the bytes of the language model's weights as published: as stored, else counted in that format."""
    if a.stored_bytes or not a.native_precision:
        return a.stored_bytes or 2.0 * _parameters(a)
    form, sums = native_format(a), sums_of(a)
    weight_bytes = FORMATS[form].weight_bytes
    # parameters that stay at 16 bits whatever the format
    wide = _outside(a) + (sums.attention_weights if _keeps_attention_wide(a, form) else 0.0)
    return weight_bytes * (_parameters(a) - wide) + 2.0 * wide


def _parameters(a: Architecture) -> float:
    return float(total_parameters(stack([a]))[0])


def _outside(a: Architecture) -> float:
    """Return the parameters of embeddings, head and positions, which stay at 16 bits."""
    embedding = a.vocab * (a.embedding_width or a.hidden)
    return embedding * (1 if a.tied_embeddings else 2) + a.position_parameters


def _keeps_attention_wide(a: Architecture, form: str) -> bool:
    return (form == "mxfp4" and a.experts > 0) or (form == "nvfp4" and a.attention == "mla")


def half_tflops(accelerator: Accelerator, engine: str) -> float:
    """Return the 16-bit peak; local engines accumulate in 16 bits, at which consumer cards are twice as fast.

    Their 8-bit peak is four times the 32-bit-accumulate one (NVIDIA Ada GPU architecture, appendix A), so half of it.
    """
    # a chip that states no 16-bit peak multiplies such values as fast as wide ones
    peaks = (peak(accelerator, name).tflops for name in (half_precision(accelerator), "fp32"))
    half = next((value for value in peaks if not np.isnan(value)), 1.0)
    return max(half, (accelerator.int8_tflops or 0.0) / 2) if ENGINES[engine] == "local" else half


def matrix_peak(accelerator: Accelerator, engine: str, form: Format) -> tuple[float, str]:
    """Return the peak at which a format multiplies on a chip, and the class of its kernels there.

    A chip without the precision widens the weights and multiplies at 16 bits.
    """
    half, fp4 = half_tflops(accelerator, engine), accelerator.fp4_tflops or 0.0
    if ENGINES[engine] == "local" and form.multiply in ("mxfp4", "fp4"):
        return half, "gguf"
    if form.multiply == "mxfp4":
        # chips with 4-bit units multiply MXFP4 weights by 8-bit activations, at that peak
        return (accelerator.fp8_tflops or half, "mxfp4") if fp4 > 0 else (half, "mxfp4_emulated")
    if form.multiply == "fp4":
        return (fp4, "nvfp4") if fp4 > 0 else (half, "int4")
    if form.multiply in ("fp8", "int8"):
        # kernels of 8 bits run without such units too, at the 16-bit peak: what is read is halved all the same
        stated = accelerator.fp8_tflops if form.multiply == "fp8" else accelerator.int8_tflops
        return (stated, "eight") if stated and stated > half else (half, "eight")
    return half, form.kernels


def link(accelerator: Accelerator, system: System, ranks: int) -> tuple[float, str]:
    """Return the slowest link that a group of ranks crosses, in GB/s one direction, and its kind."""
    if system.scaleup_gb_per_s > 0 and ranks <= system.scaleup_gpus:
        return system.scaleup_gb_per_s, "scaleup"
    if ranks <= max(system.gpus, 1):
        return accelerator.pcie_gb_per_s or PCIE_DEFAULT_GB_PER_S, "pcie"
    return system.scaleout_gb_per_s or SCALEOUT_DEFAULT_GB_PER_S, "network"


def _value_bytes(d: ServedReplica) -> tuple[float, float, float, float]:
    """Return the bytes of weights, attention, head and cache.

    MXFP4 checkpoints keep attention at 16 bits (gpt-oss model card, arXiv:2508.10925), as do 4-bit floats on latent
    attention; local formats store these at 8 bits. The head stays at 16 bits.
    """
    form = format_of(d.format)
    local, quantised = ENGINES[d.engine] == "local", form.weight_bytes < 2
    wide = _LOCAL_BYTES if local and quantised else 2.0
    a = d.architecture
    if a.stored_bytes and d.format == a.native_precision and quantised:  # served as published: as its own file has it
        weights, attention = _stored_sizes(a)
    else:
        weights, attention = form.weight_bytes, wide if _keeps_attention_wide(a, d.format) else form.weight_bytes
    if d.cache == "auto":
        narrow = d.engine in _EIGHT_BIT_CACHE_ENGINES and d.format in ("fp8", "nvfp4", "int8")
        cache = 1.0 if narrow else 2.0
    elif d.cache in CACHE_BYTES:
        cache = CACHE_BYTES[d.cache]
    else:
        raise UsageError(f"unknown precision of the cache {d.cache!r}. Choose one of auto, {', '.join(CACHE_BYTES)}.")
    return weights, attention, wide, cache


@cache
def _stored_sizes(a: Architecture) -> tuple[float, float]:
    """Return the bytes each of feed-forward and of attention weights that together make up the stored bytes."""
    sums = sums_of(a)
    feed_forward = sums.dense_weights + sums.routed_weights + sums.shared_weights + sums.router_weights
    feed_forward += max(sums.other_weights + a.extra_parameters, 0.0)
    # the file's bytes less what is at 16 bits and less attention; a file that says less than that is not believed
    left = a.stored_bytes - 2.0 * _outside(a) - a.mixer_bytes_each * sums.attention_weights
    return max(left / max(feed_forward, 1.0), 0.1), a.mixer_bytes_each


_FEW_SEATS, _MANY_SEATS, _LARGE_MEMORY_GIB = 256.0, 1024.0, 70.0


def seats(d: ServedReplica) -> float:
    """Return the sequences that vLLM's server runs at once by default: 1,024 on large chips since Hopper, else 256.

    vllm/engine/arg_utils.py, default_max_num_seqs: device memory of 70 GiB and more, and no A100.
    """
    if not d.engine.startswith("vllm"):
        return np.inf
    large = d.accelerator.memory_gib >= _LARGE_MEMORY_GIB and d.accelerator.family not in ("ampere", "volta")
    return (_MANY_SEATS if large and d.engine == "vllm" else _FEW_SEATS) * d.data


def _memory_kind(accelerator: Accelerator) -> str:
    """Return the kind of device memory: hbm, gddr or lpddr."""
    name = accelerator.memory_type.lower()
    if name.startswith("hbm") or not name:  # where nobody says: nearly all that serve have it
        return "hbm"
    return "lpddr" if name.startswith("lp") else "gddr"


def _column(numbers: Sequence[float]) -> Floats:
    return np.array(numbers, dtype=np.float64)


def _codes(names: Sequence[str], table: tuple[str, ...]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array([table.index(name) for name in names], dtype=np.int64)


def build(
    deployments: Sequence[ServedReplica], values: Mapping[str, float], options: Options | None = None
) -> tuple[ServingCase, Software]:
    """Turn deployments into arrays: the cases, and the codes by which their efficiencies were looked up."""
    peaks = [matrix_peak(d.accelerator, d.engine, format_of(d.format)) for d in deployments]
    links = [link(d.accelerator, d.system, d.tensor * d.data) for d in deployments]
    sizes = np.array([_value_bytes(d) for d in deployments], dtype=np.float64).reshape(len(deployments), 4)
    software = Software(
        engine=_codes([d.engine for d in deployments], efficiency.ENGINE_NAMES),
        family=np.array([family_code(d.accelerator.family, efficiency.FAMILIES) for d in deployments], dtype=np.int64),
        memory=_codes([_memory_kind(d.accelerator) for d in deployments], efficiency.MEMORIES),
        link=_codes([kind for _, kind in links], efficiency.LINKS),
        format=_codes([kernels for _, kernels in peaks], efficiency.FORMAT_CLASSES),
        server=_codes([d.server for d in deployments], efficiency.SERVERS),
        seats=_column([seats(d) for d in deployments]),
        long=np.array(
            [d.architecture.max_sequence_tokens > efficiency.LONG_TOKENS for d in deployments], dtype=np.bool_
        ),
    )
    chips, halves = [d.accelerator for d in deployments], [half_tflops(d.accelerator, d.engine) for d in deployments]
    chip = Chip(
        hbm_gb_per_s=_column([chip.hbm_gb_per_s for chip in chips]),
        half_tflops=_column(halves),
        matrix_tflops=_column([tflops for tflops, _ in peaks]),
        # the peak outside the matrix units is about an eighth of theirs where nobody states it
        fp32_tflops=_column([chip.fp32_tflops or half / 8 for chip, half in zip(chips, halves, strict=True)]),
        memory_gb=_column([chip.memory_gib * GIB / GB for chip in chips]),
        link_gb_per_s=_column([rate for rate, _ in links]),
        host_gb_per_s=_column([chip.pcie_gb_per_s or PCIE_DEFAULT_GB_PER_S for chip in chips]),
    )
    placement = Placement(*(_column([getattr(d, name) for d in deployments]) for name in Placement.names()))
    # each model is counted once, by its name, and its row taken for every deployment of it
    unique = {d.architecture.name: d.architecture for d in deployments}
    order = {name: index for index, name in enumerate(unique)}
    # Latent attention decodes in the compressed space: per key 2·heads·(2·rank + rope) FLOP (DeepSeek-V2,
    # arXiv:2405.04434, section 2.1.2); its cache is one latent per token, which no rank can divide.
    shape = stack(list(unique.values()))
    parts, moe = transformer.parameter_parts(shape), shape.moe_layers
    # weights of one expert, averaged over the mixtures
    routed = np.where(moe > 0, parts.routed_experts / np.maximum(moe * shape.experts, 1), 0.0)
    work = ModelWork(
        layers=shape.layers,
        hidden=shape.hidden,
        attention=parts.attention,
        dense=parts.dense_ffn + parts.shared_experts + parts.router + np.maximum(parts.extra, 0.0),
        expert=routed,
        moe_layers=moe,
        expert_count=shape.experts,
        experts_per_token=np.where(moe > 0, shape.visited_weights / np.maximum(moe * routed, 1), 0.0),
        head=shape.embedding_weights,  # a tied table is multiplied by as well
        beside=shape.position_parameters + shape.tower_parameters,
        latent=shape.mla.astype(np.float64),
        cache_heads=np.where(shape.mla, 1.0, np.maximum(shape.kv_heads, 1)),
        **{name: getattr(shape, name) for name in Attending.names()},
    ).take([order[d.architecture.name] for d in deployments])
    case = ServingCase(
        work,
        chip,
        Bytes(sizes[:, 0], sizes[:, 1], sizes[:, 2], sizes[:, 3]),
        placement,
        options or plain_options(len(deployments)),
        efficiency.resolve(values, software),
    )
    return case, software
