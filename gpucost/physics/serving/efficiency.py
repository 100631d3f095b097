"""What serving engines reach of the hardware: the parameters, what is believed of them before any fit, their look-up.

Like the efficiencies of training, each has a prior and a spread (standard deviation of its logarithm). Engines are
grouped: a modern engine overlaps its host work with the device and replays graphs; an early one does neither; a local
one serves a single user. A value of an engine is the value of its group times a deviation, so that an engine without
measurements falls back to its group.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np

from gpucost.physics.calibration import Parameter
from gpucost.physics.columns import Columns, Flags, Floats, Integers
from gpucost.physics.hardware import FAMILIES as TRAINING_FAMILIES

FAMILIES = (*TRAINING_FAMILIES[:-1], "apple", "xe", "other")

# engine -> group
ENGINES: dict[str, str] = {
    "vllm": "modern",
    "sglang": "modern",
    "trtllm": "modern",
    "tuned": "modern",  # benchmark submissions, everything set by hand for one model on one chip
    "wide": "modern",  # disaggregated pools with experts over many nodes
    "plain": "modern",  # a decode step replayed as one graph, no scheduler
    "eager": "modern",  # the same step, launched kernel by kernel
    "vllm-tpu": "modern",
    "vllm-xpu": "modern",
    "unknown": "modern",
    "vllm-2025": "early",  # 0.6 and 0.7: asynchronous output, several steps per schedule
    "vllm-2024": "early",  # 0.3 to 0.5
    "vllm-2023": "early",
    "vllm-rocm": "early",  # AMD builds before 2025
    "transformers": "early",
    "llama.cpp": "local",
    "mlc": "local",
    "exllama": "local",
}
ENGINE_NAMES = tuple(ENGINES)
GROUPS = ("modern", "early", "local")
MEMORIES = ("hbm", "gddr", "lpddr")
FORMAT_CLASSES = ("half", "eight", "nvfp4", "mxfp4", "mxfp4_emulated", "int4", "gguf")
LINKS = ("scaleup", "pcie", "network")

_MATRIX = {"cdna3": 0.72, "cdna4": 0.85, "apple": 1.4, "xe": 0.7, "gaudi": 0.9, "trainium": 0.8, "other": 0.8}
_ENGINE = {"tuned": 0.80, "wide": 0.9, "vllm-rocm": 1.4, "transformers": 1.2, "mlc": 0.85}
_SPREAD = {"vllm-rocm": 0.2, "vllm-xpu": 0.2, "vllm-tpu": 0.2, "unknown": 0.2, "transformers": 0.3}
_HOST = {"vllm-2025": 0.5, "vllm-rocm": 0.7, "transformers": 1.0, "plain": 0.02, "eager": 0.02}
_SEQUENCE = {"plain": 0.02, "eager": 0.02}
_MEASURED_FAMILIES = ("volta", "turing", "ampere", "ada", "hopper", "blackwell", "cdna3", "apple", "xe", "tpu")


_p = Parameter

PARAMETERS: tuple[Parameter, ...] = (
    _p("weights_fraction", 0.85, 0.08, "fraction", "memory bandwidth at which 16-bit weights are streamed"),
    _p("memory_ratio.gddr", 1.08, 0.06, "ratio", "the same for GDDR against HBM"),
    _p("memory_ratio.lpddr", 1.00, 0.08, "ratio", "the same for LPDDR against HBM"),
    _p("local_hbm_ratio", 0.60, 0.15, "ratio", "bandwidth of local engines on HBM, against the others"),
    *(_p(f"weights_ratio.{f}", 1.0, 0.08, "ratio", "bandwidth of a family against the common value") for f in FAMILIES),
    _p("format_ratio.eight", 0.85, 0.12, "ratio", "bandwidth of 8-bit weights against 16-bit ones"),
    _p("format_ratio.nvfp4", 0.80, 0.15, "ratio", "the same for 4-bit floats with block scales"),
    _p("format_ratio.mxfp4", 0.95, 0.15, "ratio", "the same for MXFP4 on chips that multiply 4-bit floats"),
    _p("format_ratio.mxfp4_emulated", 0.95, 0.10, "ratio", "the same for MXFP4 widened to 16 bits in the kernel"),
    _p("format_ratio.int4", 0.90, 0.15, "ratio", "the same for 4-bit integers widened in the kernel"),
    _p("format_ratio.gguf", 0.85, 0.15, "ratio", "the same for the mixed formats of llama.cpp"),
    _p("widen_flop", 13.0, 0.3, "flop", "arithmetic outside the matrix units to widen one 4-bit weight to 16 bits"),
    _p("experts_ratio", 0.85, 0.20, "ratio", "bandwidth of grouped expert products against plain ones"),
    _p("cache_ratio", 0.80, 0.15, "ratio", "bandwidth of reading the key-value cache against streaming weights"),
    _p("serial_key_ns", 11.0, 0.2, "ns", "time per cached token and layer of attention that does not split a sequence"),
    _p("matrix_fraction", 0.60, 0.12, "fraction", "16-bit peak that large products reach"),
    *(_p(f"matrix_ratio.{f}", _MATRIX.get(f, 1.0), 0.12, "ratio", "the same of a family") for f in FAMILIES),
    _p("matrix_eight_ratio", 0.75, 0.15, "ratio", "share of the 8-bit peak against the share at 16 bits"),
    _p("matrix_four_ratio", 0.65, 0.15, "ratio", "the same for the 4-bit peak"),
    _p("matrix_experts_ratio", 0.40, 0.25, "ratio", "peak of grouped expert products against plain ones"),
    _p("attention_ratio", 0.70, 0.20, "ratio", "peak of prefill attention against large products"),
    _p("layer_us", 33.0, 0.2, "us", "fixed time of a layer's kernels under graphs"),
    _p("local_layer_ratio", 1.6, 0.3, "ratio", "the same of local engines, against the others"),
    _p("expert_layer_us", 10.0, 0.4, "us", "what routing and grouping add to a layer with experts"),
    _p("latent_layer_us", 8.0, 0.4, "us", "what latent attention adds to a layer"),
    _p("linear_layer_us", 10.0, 0.5, "us", "what a linear mixer adds to a layer"),
    _p("allreduce_us.scaleup", 11.0, 0.25, "us", "all-reduce of two in the scale-up domain"),
    _p("custom_allreduce_ratio", 0.6, 0.25, "ratio", "the same of engines with their own all-reduce"),
    _p("host_layer_us", 220.0, 0.2, "us", "host time of launching a layer's kernels one by one"),
    _p("host_cast_ratio", 1.7, 0.2, "ratio", "the same where products are quantised: casts are kernels too"),
    _p("host_reduce_us", 250.0, 0.3, "us", "host time of launching one collective by itself"),
    _p("elementwise_fraction", 0.75, 0.15, "fraction", "memory bandwidth of element-wise work between products"),
    _p("allreduce_us.pcie", 40.0, 0.4, "us", "the same over PCI Express"),
    _p("allreduce_us.network", 40.0, 0.4, "us", "the same between nodes"),
    _p("allreduce_growth", 0.35, 0.3, "ratio", "what each further doubling of the ranks adds to that latency"),
    _p("link_fraction.scaleup", 0.55, 0.2, "fraction", "scale-up bandwidth reached"),
    _p("link_fraction.pcie", 0.60, 0.2, "fraction", "PCI Express bandwidth reached"),
    _p("link_fraction.network", 0.60, 0.2, "fraction", "network bandwidth reached"),
    _p("exchange_us", 12.0, 0.4, "us", "latency of an expert exchange"),
    _p("exchange_exposed", 0.6, 0.3, "fraction", "share of the exchanged bytes that compute does not hide"),
    _p("stage_us", 250.0, 0.5, "us", "hand-over between pipeline stages"),
    _p("host_ms.modern", 3.0, 0.4, "ms", "host time of a step, behind which the device hides"),
    _p("host_ms.early", 12.0, 0.4, "ms", "host time of a step, on top of the device"),
    _p("host_ms.local", 0.4, 0.4, "ms", "host time of a step, on top of the device"),
    _p("sequence_us.modern", 12.0, 0.4, "us", "host time per running sequence and step"),
    _p("sequence_us.early", 40.0, 0.4, "us", "host time per running sequence and step"),
    _p("sequence_us.local", 20.0, 0.4, "us", "host time per running sequence and step"),
    _p("prefill_ratio.modern", 0.70, 0.2, "ratio", "prefill time against the same products in a benchmark's loop"),
    _p("prefill_ratio.early", 1.1, 0.2, "ratio", "prefill time against the same products in a benchmark's loop"),
    _p("prefill_ratio.local", 1.2, 0.2, "ratio", "prefill time against the same products in a benchmark's loop"),
    *(_p(f"engine_ratio.{e}", _ENGINE.get(e, 1.0), _SPREAD.get(e, 0.07), "ratio", "device time") for e in ENGINES),
    *(_p(f"host_ratio.{e}", _HOST.get(e, 1.0), 0.3, "ratio", "host time against the group's") for e in ENGINES),
    *(_p(f"sequence_ratio.{e}", _SEQUENCE.get(e, 1.0), 0.25, "ratio", "host time per sequence") for e in ENGINES),
    *(_p(f"prefill_ratio.{e}", 1.0, 0.15, "ratio", "prefill time against the group's") for e in ENGINES),
    _p("saturation_ratio", 0.95, 0.12, "ratio", "throughput at saturation against full batches all the time"),
    *(_p(f"saturation_ratio.{e}", 1.0, 0.15, "ratio", "the same in this engine") for e in ENGINES),
    _p("batch_limit", 1500.0, 0.4, "count", "sequences that an engine runs at once where memory allows more"),
    _p("burst_ratio", 0.60, 0.2, "ratio", "mean running batch of a burst of requests against its size"),
    _p("routing_exponent", 0.92, 0.05, "ratio", "independent draws of experts by T tokens, as a power of T"),
    _p("data_imbalance", 1.10, 0.10, "ratio", "load of the fullest rank of attention data parallel against the mean"),
    _p("expert_imbalance", 1.10, 0.10, "ratio", "load of the busiest expert rank against the mean"),
)  # fmt: skip

DEFAULTS: dict[str, float] = {parameter.name: parameter.prior for parameter in PARAMETERS}


class Software(Columns):
    """Which engine serves, and which kinds of memory, link and weight format a case has, as codes."""

    engine: Integers  # into ENGINE_NAMES
    family: Integers  # into FAMILIES
    memory: Integers  # into MEMORIES
    link: Integers  # into LINKS
    format: Integers  # into FORMAT_CLASSES


class EngineRates(Columns):
    """The parameters, resolved for each case."""

    weights_half: Floats  # fractions of the memory bandwidth
    weights: Floats
    experts: Floats
    widen_flop: Floats  # per weight, where the chip cannot multiply the format
    cache: Floats
    serial_key_ns: Floats  # 0 where the kernel splits long sequences
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
    prompt_layer_us: Floats  # in prompts; 0 where an engine hides or fuses the launches
    host_reduce_us: Floats
    elementwise: Floats  # fraction of the memory bandwidth
    sequence_us: Floats
    prefill: Floats
    saturation: Floats
    batch_limit: Floats
    burst: Floats
    routing_exponent: Floats
    imbalance: Floats
    data_imbalance: Floats
    overlapped: Flags  # host work hides behind the device
    fused: Flags  # prompts join the decode step
    unfused: Flags  # each element-wise operation is a kernel of its own
    reserving: Flags  # memory is set aside for a sequence's whole output


CEILING = 0.97  # no kernel reaches more of a bandwidth or a peak


def below_ceiling(fraction: Floats) -> Floats:
    """Return a fraction that bends smoothly under CEILING: f ÷ (1 + (f/c)^6)^(1/6).

    >>> below_ceiling(np.array([0.5, 2.0])).round(3)
    array([0.498, 0.968])
    """
    return fraction / (1 + (fraction / CEILING) ** 6) ** (1 / 6)


def among(engine: Integers, *names: str) -> Flags:
    """Return which cases run one of the named engines."""
    found: Flags = np.isin(engine, [ENGINE_NAMES.index(name) for name in names])
    return found


def family_code(family: str) -> int:
    """Return the code of a family; an unknown one is "other"."""
    return FAMILIES.index(family) if family in FAMILIES else len(FAMILIES) - 1


def _looked_up(values: Mapping[str, float], prefix: str, names: tuple[str, ...], codes: Integers) -> Floats:
    """Return the parameter `prefix.name` of each code's name, 1 where there is none."""
    found: Floats = np.array([values.get(f"{prefix}.{name}", 1.0) for name in names])[codes]
    return found


def _stream(values: Mapping[str, float], s: Software, local: Flags) -> Floats:
    """Return the fraction of the memory bandwidth at which 16-bit weights stream, before its ceiling."""
    family = _looked_up(values, "weights_ratio", FAMILIES, s.family)
    stream = values["weights_fraction"] * family * _looked_up(values, "memory_ratio", MEMORIES, s.memory)
    return stream * np.where(local & (s.memory == MEMORIES.index("hbm")), values["local_hbm_ratio"], 1.0)


def _narrow(values: Mapping[str, float], s: Software) -> Floats:
    """Return what 8-bit and 4-bit matrix work reaches of its own peak, relative to 16-bit work of its peak."""
    eight = _stored(s, "eight", "mxfp4")
    four = s.format == FORMAT_CLASSES.index("nvfp4")
    return np.where(four, values["matrix_four_ratio"], np.where(eight, values["matrix_eight_ratio"], 1.0))


def _host_layer_us(values: Mapping[str, float], s: Software) -> Floats:
    """Return the host time of launching a layer's kernels one by one; casts to narrow formats are kernels too."""
    casting = _stored(s, "eight", "nvfp4", "mxfp4")
    return values["host_layer_us"] * np.where(casting, values["host_cast_ratio"], 1.0)


def _stored(s: Software, *formats: str) -> Flags:
    """Return which cases keep their weights in one of some formats."""
    found: Flags = np.isin(s.format, [FORMAT_CLASSES.index(name) for name in formats])
    return found


def resolve(values: Mapping[str, float], software: Software) -> EngineRates:
    """Look the parameters up for each case by engine, family, memory, link and weight format."""
    s, by = software, partial(_looked_up, values)
    engine = partial(by, names=ENGINE_NAMES, codes=s.engine)
    group = np.array([GROUPS.index(ENGINES[name]) for name in ENGINE_NAMES])[s.engine]
    local, modern = group == GROUPS.index("local"), group == GROUPS.index("modern")
    stream = _stream(values, s, local)
    quantised = stream * by("format_ratio", FORMAT_CLASSES, s.format)
    matrix, narrow = values["matrix_fraction"] * by("matrix_ratio", FAMILIES, s.family), _narrow(values, s)
    bare, launched = among(s.engine, "plain", "eager", "transformers"), among(s.engine, "eager", "transformers")
    host_layer = _host_layer_us(values, s)
    custom = modern & ~among(s.engine, "plain", "eager") & (s.link == LINKS.index("scaleup"))
    return EngineRates(
        weights_half=below_ceiling(stream),
        weights=below_ceiling(quantised),
        experts=below_ceiling(quantised * values["experts_ratio"]),
        widen_flop=np.where(_stored(s, "mxfp4_emulated", "int4"), values["widen_flop"], 0.0),
        cache=below_ceiling(stream * values["cache_ratio"]),
        serial_key_ns=np.where(bare, values["serial_key_ns"], 0.0),
        matrix_half=below_ceiling(matrix),
        matrix=below_ceiling(matrix * narrow),
        matrix_experts=below_ceiling(matrix * narrow * values["matrix_experts_ratio"]),
        attention=below_ceiling(matrix * values["attention_ratio"]),
        layer_us=values["layer_us"] * np.where(local, values["local_layer_ratio"], 1.0),
        allreduce_us=by("allreduce_us", LINKS, s.link) * np.where(custom, values["custom_allreduce_ratio"], 1.0),
        link=below_ceiling(by("link_fraction", LINKS, s.link)),
        engine=engine("engine_ratio"),
        host_ms=by("host_ms", GROUPS, group) * engine("host_ratio"),
        host_layer_us=np.where(launched, host_layer, 0.0),
        prompt_layer_us=np.where(bare, host_layer, 0.0),
        elementwise=below_ceiling(stream / values["weights_fraction"] * values["elementwise_fraction"]),
        sequence_us=by("sequence_us", GROUPS, group) * engine("sequence_ratio"),
        prefill=by("prefill_ratio", GROUPS, group) * engine("prefill_ratio"),
        saturation=values["saturation_ratio"] * engine("saturation_ratio"),
        overlapped=modern,
        fused=modern & ~among(s.engine, "sglang"),
        unfused=bare,
        reserving=among(s.engine, "trtllm", "tuned"),
        **{field: np.full(len(software), values[name]) for field, name in _PLAIN.items()},
    )


_PLAIN = {name: name for name in (
    "expert_layer_us", "latent_layer_us", "linear_layer_us", "allreduce_growth", "exchange_us",
    "exchange_exposed", "stage_us", "host_reduce_us", "data_imbalance", "batch_limit", "routing_exponent",
)} | {"imbalance": "expert_imbalance", "burst": "burst_ratio"}  # fmt: skip
