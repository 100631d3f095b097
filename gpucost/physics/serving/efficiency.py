"""What serving engines reach of the hardware: the parameters, what is believed of them before any fit, their look-up.

Like the efficiencies of training, each has a prior and a spread (standard deviation of its logarithm). Engines are
grouped: a modern engine overlaps its host work with the device and replays graphs; an early one does neither; a local
one serves a single user. A value of an engine is the value of its group times a deviation, so that an engine without
measurements falls back to its group.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np

from gpucost.gate import beside
from gpucost.physics.calibration import declared
from gpucost.physics.columns import ColumnStruct, Flags, Floats, Integers
from gpucost.physics.hardware import FAMILIES as TRAINING_FAMILIES

FAMILIES = (*TRAINING_FAMILIES[:-1], "apple", "xe", "other")

ENGINES = {engine: group for engine, group, _ in beside(__file__, "engines")[1:]}
ENGINE_NAMES = tuple(ENGINES)
_GROUPS = ("modern", "early", "local")
MEMORIES = ("hbm", "gddr", "lpddr")
FORMAT_CLASSES = ("half", "eight", "nvfp4", "mxfp4", "mxfp4_emulated", "int4", "gguf")
LINKS = ("scaleup", "pcie", "network")
SERVERS = ("offline", "tuned", "default")  # a batch without a server, one set up for its model, one as it comes

PARAMETERS, TRAITS = declared(__file__)
DEFAULTS: dict[str, float] = {parameter.name: parameter.prior for parameter in PARAMETERS}


class Software(ColumnStruct, frozen=True):
    """Which engine serves, and which kinds of memory, link and weight format a case has, as codes."""

    engine: Integers  # into ENGINE_NAMES
    family: Integers  # into FAMILIES
    memory: Integers  # into MEMORIES
    link: Integers  # into LINKS
    format: Integers  # into FORMAT_CLASSES
    long: Flags  # the model's longest sequence exceeds LONG_TOKENS
    server: Integers  # into SERVERS
    seats: Floats  # sequences that a server as it comes runs at once; infinite where it has no such limit


class EngineRates(ColumnStruct, frozen=True):
    """The parameters, resolved for each case."""

    weights_half: Floats  # fractions of the memory bandwidth
    weights: Floats
    experts: Floats
    widen_flop: Floats  # per weight, where the chip cannot multiply the format
    cache: Floats
    cache_copies: Floats  # of what attention reads, made each step for each query head; 0 where kernels read in place
    serial_key_ns: Floats  # 0 where the kernel splits long sequences
    tile_rows: Floats  # tokens that a product takes at least: those of one tile of the matrix units
    matrix_half: Floats  # fractions of a dense peak
    matrix: Floats
    matrix_experts: Floats
    attention: Floats
    layer_us: Floats
    expert_layer_us: Floats
    latent_layer_us: Floats
    linear_layer_us: Floats
    allreduce_us: Floats
    allreduce_growth: Floats
    link: Floats
    exchange_us: Floats
    exchange_exposed: Floats
    stage_us: Floats
    engine: Floats
    host_ms: Floats
    host_layer_us: Floats  # in decode; 0 where graphs are replayed
    expert_loop_us: Floats  # host time of one expert of a layer; 0 where one kernel computes all
    prompt_layer_us: Floats  # in prompts; 0 where an engine hides or fuses the launches
    host_reduce_us: Floats
    elementwise: Floats  # fraction of the memory bandwidth
    sequence_us: Floats
    served_ms: Floats  # host time of a step that a server as it comes adds to the device's
    served_sequence_us: Floats  # the same per running sequence
    first_ms: Floats  # from the request to the engine and back, in Python; more of SGLang's server as it comes
    arrival_ms: Floats  # that the arrival of a request takes from all that run
    prefill: Floats
    saturation: Floats
    batch_limit: Floats
    seats: Floats
    burst: Floats
    routing_exponent: Floats
    imbalance: Floats
    data_imbalance: Floats
    overlapped: Flags  # host work hides behind the device
    ahead: Flags  # a step is planned while one runs: what arrives meanwhile joins the one after it
    fused: Flags  # prompts join the decode step
    unfused: Flags  # each element-wise operation is a kernel of its own
    reserving: Flags  # memory is set aside for a sequence's whole output
    frugal: Flags  # takes the memory that it needs, not a share of the card: local engines


# Engines that replay graphs in decode alone: their hosts, which run Python, launch a prompt's kernels one by one.
LAUNCHING = ("vllm", "sglang", "vllm-2025", "vllm-2024", "vllm-2023", "vllm-rocm")
# Engines that plan a step while the one before it runs: vLLM (the default since 0.14 of January 2026), SGLang (since
# 0.4), TensorRT-LLM (since 1.0), and what is tuned on them.
_AHEAD = ("vllm", "sglang", "trtllm", "tuned", "wide")
LONG_TOKENS = 32_768  # longest sequence above which vLLM before 0.8 reads prompts in chunks by default
_CEILING = 0.97  # no kernel reaches more of a bandwidth or a peak


def _below_ceiling(fraction: Floats) -> Floats:
    """Return a fraction that bends smoothly under _CEILING: f ÷ (1 + (f/c)^6)^(1/6).

    >>> _below_ceiling(np.array([0.5, 2.0])).round(3)
    array([0.498, 0.968])
    """
    return fraction / (1 + (fraction / _CEILING) ** 6) ** (1 / 6)


def _among(engine: Integers, *names: str) -> Flags:
    """Return which cases run one of the named engines."""
    runs_named_engine: Flags = np.isin(engine, [ENGINE_NAMES.index(name) for name in names])
    return runs_named_engine


def _looked_up(values: Mapping[str, float], prefix: str, names: tuple[str, ...], codes: Integers) -> Floats:
    """Return the parameter `prefix.name` of each code's name, 1 where there is none."""
    of_codes: Floats = np.array([values.get(f"{prefix}.{name}", 1.0) for name in names])[codes]
    return of_codes


def _host_layer_us(values: Mapping[str, float], s: Software) -> Floats:
    """Return the host time of launching a layer's kernels one by one; casts to narrow formats are kernels too."""
    casting = _stored(s, "eight", "nvfp4", "mxfp4")
    return values["host_layer_us"] * np.where(casting, values["host_cast_ratio"], 1.0)


def _stored(s: Software, *formats: str) -> Flags:
    """Return which cases keep their weights in one of some formats."""
    in_format: Flags = np.isin(s.format, [FORMAT_CLASSES.index(name) for name in formats])
    return in_format


def resolve(values: Mapping[str, float], software: Software) -> EngineRates:
    """Look the parameters up for each case by engine, family, memory, link and weight format."""
    # `by` looks a parameter up by the name that each case's code stands for; what has no value of its own counts as 1
    s, by = software, partial(_looked_up, values)
    engine = partial(by, names=ENGINE_NAMES, codes=s.engine)
    group = np.array([_GROUPS.index(ENGINES[name]) for name in ENGINE_NAMES])[s.engine]
    local, modern = group == _GROUPS.index("local"), group == _GROUPS.index("modern")

    # The fraction of the memory bandwidth at which 16-bit weights stream, before its ceiling; quantised ones are
    # unpacked on the way.
    stream = values["weights_fraction"] * by("weights_ratio", FAMILIES, s.family)
    stream = stream * by("memory_ratio", MEMORIES, s.memory)
    stream = stream * np.where(local & (s.memory == MEMORIES.index("hbm")), values["local_hbm_ratio"], 1.0)
    quantised = stream * by("format_ratio", FORMAT_CLASSES, s.format)

    # 8-bit and 4-bit products reach less of their own peak than 16-bit products of theirs. Hopper multiplies by tiles
    # of 64 rows (PTX ISA, wgmma: m64), kernels of 4 bits apart.
    matrix = values["matrix_fraction"] * by("matrix_ratio", FAMILIES, s.family)
    four, eight = s.format == FORMAT_CLASSES.index("nvfp4"), _stored(s, "eight", "mxfp4")
    narrow = np.where(four, values["matrix_four_ratio"], np.where(eight, values["matrix_eight_ratio"], 1.0))
    tiled = (s.family == FAMILIES.index("hopper")) & _stored(s, "half", "eight")

    # Which software does what: plain PyTorch without an engine, a server as it comes, a batch without a server.
    bare, launched = _among(s.engine, "plain", "eager", "transformers"), _among(s.engine, "eager", "transformers")
    served = (s.server == SERVERS.index("default")) & ~bare & ~local
    launching = _among(s.engine, *LAUNCHING)
    alone = (s.server == SERVERS.index("offline")) & _among(s.engine, "vllm-2024", "vllm-2025")
    offline = np.where(alone, values["offline_host_ratio"], 1.0)
    copying = _among(s.engine, "transformers")
    casting = np.where(_stored(s, "eight"), values["expert_loop_cast_ratio"], 1.0)
    # vLLM, SGLang and TensorRT-LLM bring an all-reduce of their own, for ranks that see each other's memory
    custom = modern & ~_among(s.engine, "plain", "eager") & (s.link == LINKS.index("scaleup"))
    return EngineRates(
        weights_half=_below_ceiling(stream),
        weights=_below_ceiling(quantised),
        experts=_below_ceiling(quantised * values["experts_ratio"]),
        widen_flop=np.where(_stored(s, "mxfp4_emulated", "int4"), values["widen_flop"], 0.0),
        cache=_below_ceiling(stream * values["cache_ratio"]),
        cache_copies=np.where(copying, values["cache_copies"], 0.0),
        serial_key_ns=np.where(bare & ~copying, values["serial_key_ns"], 0.0),
        tile_rows=np.where(tiled, values["tile_rows"], 1.0),
        matrix_half=_below_ceiling(matrix),
        matrix=_below_ceiling(matrix * narrow),
        matrix_experts=_below_ceiling(matrix * narrow * values["matrix_experts_ratio"]),
        attention=_below_ceiling(matrix * values["attention_ratio"]),
        layer_us=values["layer_us"]
        * np.where(local, values["local_layer_ratio"], 1.0)
        * by("layer_ratio", FAMILIES, s.family),
        allreduce_us=by("allreduce_us", LINKS, s.link) * np.where(custom, values["custom_allreduce_ratio"], 1.0),
        allreduce_growth=np.where(custom, 0.0, values["allreduce_growth"]),  # theirs sends to all ranks at once
        link=_below_ceiling(by("link_fraction", LINKS, s.link)),
        engine=engine("engine_ratio"),
        host_ms=by("host_ms", _GROUPS, group) * engine("host_ratio") * offline,
        host_layer_us=np.where(launched, _host_layer_us(values, s), 0.0),
        expert_loop_us=np.where(copying, values["expert_loop_us"] * casting, 0.0),
        prompt_layer_us=np.where(bare, _host_layer_us(values, s), np.where(launching, values["host_layer_us"], 0.0)),
        elementwise=_below_ceiling(stream / values["weights_fraction"] * values["elementwise_fraction"]),
        sequence_us=by("sequence_us", _GROUPS, group) * engine("sequence_ratio") * offline,
        served_ms=np.where(served, values["served_step_ms"], 0.0),
        served_sequence_us=np.where(served, values["served_sequence_us"], 0.0),
        first_ms=np.where(launching, values["first_ms"], 0.0)
        + np.where(served & _among(s.engine, "sglang"), values["served_first_ms"], 0.0),
        arrival_ms=np.where(served, values["served_arrival_ms"], 0.0),
        seats=np.where(served, s.seats, np.inf),
        prefill=np.where(bare, 1.0, by("prefill_ratio", _GROUPS, group))
        * engine("prefill_ratio")
        * np.where(served, values["served_prefill_ratio"], 1.0),
        saturation=values["saturation_ratio"] * engine("saturation_ratio"),
        overlapped=modern,
        ahead=_among(s.engine, *_AHEAD),
        # who reads prompts beside the decode step: vLLM 0.6 and 0.7 only where sequences may be long
        fused=(modern & ~_among(s.engine, "sglang")) | (_among(s.engine, "vllm-2025", "vllm-rocm") & s.long),
        unfused=bare,
        reserving=_among(s.engine, "trtllm", "tuned"),
        frugal=local,
        **{field: np.full(len(software), values[name]) for field, name in _PLAIN.items()},
    )


# parameters that are the same for every case
_PLAIN = {
    **{name: name for name in ("expert_layer_us", "latent_layer_us", "linear_layer_us", "stage_us", "host_reduce_us")},
    **{name: name for name in ("exchange_us", "exchange_exposed", "data_imbalance", "batch_limit", "routing_exponent")},
    "imbalance": "expert_imbalance",
    "burst": "burst_ratio",
}
