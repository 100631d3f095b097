"""The parameters that physics alone does not give: what they mean, what is believed of them before any fit.

Each has a prior (from microbenchmarks or from counting) and a spread, the standard deviation of its logarithm;
`calibration.py` fits them and `models/calibration.csv` holds the result. Efficiencies that differ by family or by
software class are a common value times a deviation, so that an unseen family or class falls back to the common one.
"""

from collections.abc import Mapping
from math import prod

import numpy as np

from gpucost.physics.calibration import Parameter
from gpucost.physics.columns import Columns, Floats, Integers
from gpucost.physics.hardware import FAMILIES, HardwareColumns
from gpucost.physics.software import CLASSES


def _each(prefix: str, priors: Mapping[str, float], spread: float, unit: str, meaning: str) -> list[Parameter]:
    return [Parameter(f"{prefix}.{name}", prior, spread, unit, meaning) for name, prior in priors.items()]


# Large matrix products at 16 bits: share of the dense peak that a long, hot benchmark reaches.
_MATRIX = {
    "volta": 0.62, "turing": 0.60, "pascal": 0.65, "ampere": 0.82, "ada": 0.72, "hopper": 0.74, "blackwell": 0.72,
    "rubin": 0.70, "cdna2": 0.60, "cdna3": 0.52, "cdna4": 0.60, "cdna5": 0.60, "rdna3": 0.60, "gaudi": 0.70,
    "tpu": 0.85, "trainium": 0.55, "other": 0.60,
}  # fmt: skip
_HOST_US = {
    "vendor": 250.0, "megatron": 500.0, "deepspeed": 900.0, "sharded": 500.0, "eager": 900.0,
    "compiler": 100.0, "native": 60.0, "neuron": 100.0,
}  # fmt: skip
_ELEMENTWISE = {
    "vendor": 1.0, "megatron": 1.2, "deepspeed": 1.3, "sharded": 1.2, "eager": 2.0,
    "compiler": 1.0, "native": 0.7, "neuron": 1.0,
}  # fmt: skip

_p = Parameter

PARAMETERS: tuple[Parameter, ...] = (
    *_each("matrix_fraction", _MATRIX, 0.10, "fraction", "16-bit matrix peak reached by large products"),
    _p("fp8_ratio", 0.85, 0.10, "ratio", "share of the 8-bit peak that products reach ÷ the share at 16 bits"),
    _p("int8_ratio", 0.65, 0.15, "ratio", "the same for quantised 8-bit integers, scales and sums included"),
    _p("fp4_ratio", 0.60, 0.20, "ratio", "share of the 4-bit peak that products reach ÷ the share at 16 bits"),
    _p("ultra_ratio", 1.10, 0.1, "ratio", "rate of products of a second issue of a chip against its peak and power"),
    _p("power_exponent", 0.65, 0.15, "ratio", "growth of the rate of products with the power per peak FLOP/s"),
    _p("matrix_tokens", 64.0, 0.4, "count", "rows by which a product's tokens are rounded up (tiles and waves)"),
    _p("matrix_width", 100.0, 0.3, "count", "columns by which a product's widths are rounded up"),
    _p("flash_fraction.old", 0.56, 0.12, "fraction", "16-bit peak that fused attention reaches on chips before Hopper"),
    _p("flash_fraction.plain", 0.38, 0.12, "fraction", "the same since Hopper, kernels written for older chips"),
    _p("flash_fraction.modern", 0.84, 0.05, "fraction", "the same since Hopper, kernels written for the chip"),
    _p("flash_tokens", 750.0, 0.15, "count", "sequence at which fused attention reaches half of that"),
    _p("scan_fraction", 0.20, 0.4, "fraction", "rate of 16-bit products that scans of state-space layers reach"),
    _p("softmax_passes", 12.0, 0.4, "count", "times that unfused attention moves its scores, forward and backward"),
    _p("loss_bytes.fused", 12.0, 0.3, "bytes", "moved per logit by the loss, forward and backward, fused kernels"),
    _p("loss_bytes.plain", 30.0, 0.3, "bytes", "the same, a kernel per operation in fp32"),
    _p("copy_fraction", 0.80, 0.08, "fraction", "memory bandwidth reached by element-wise kernels"),
    _p("elementwise_passes", 40.0, 0.3, "count", "times that a layer moves its residual stream, forward and backward"),
    *_each("elementwise_ratio", _ELEMENTWISE, 0.25, "ratio", "element-wise traffic against fused kernels"),
    _p("scaleup_fraction", 0.75, 0.10, "fraction", "scale-up bandwidth reached by collectives"),
    _p("pcie_fraction", 0.60, 0.25, "fraction", "PCIe bandwidth reached by collectives, partly through the host"),
    _p("scaleout_fraction", 0.75, 0.15, "fraction", "scale-out bandwidth reached by collectives"),
    _p("scaleup_latency_us", 20.0, 0.4, "us", "latency of a collective in the scale-up domain, per doubling of ranks"),
    _p("scaleout_latency_us", 35.0, 0.4, "us", "latency of a collective across domains, per doubling of hops"),
    _p("tensor_exposed.modern", 0.60, 0.25, "fraction", "tensor-parallel traffic that tuned stacks do not hide"),
    _p("tensor_exposed.plain", 0.95, 0.10, "fraction", "the same, other stacks"),
    _p("data_hidden", 0.75, 0.15, "fraction", "share of the backward pass that can hide data-parallel traffic"),
    _p("interference", 0.12, 0.4, "fraction", "share of hidden traffic by which compute slows down"),
    _p("alltoall_pipelined", 0.75, 0.3, "fraction", "the same where another micro-batch's work stands beside it"),
    _p("alltoall_exposed", 0.90, 0.2, "fraction", "share of the expert exchange that compute does not hide"),
    _p("expert_imbalance", 1.15, 0.10, "ratio", "load of the busiest expert rank ÷ the mean"),
    _p("grouped_ratio", 0.90, 0.10, "ratio", "peak that grouped expert products reach ÷ that of plain ones"),
    _p("expert_host_us", 3500.0, 0.4, "us", "host time that experts add to a layer where its shapes are not static"),
    _p("expert_aging", 0.3, 0.4, "ratio", "host time and traffic of experts before mid-2026, in logarithms"),
    _p("expert_traffic", 0.20, 0.4, "ratio", "traffic of a routed token's permutation against that of its residual"),
    _p("cast_bytes.fused", 3.0, 0.3, "bytes", "moved per operand of an 8-bit or 4-bit product to cast it"),
    _p("cast_bytes.plain", 70.0, 0.3, "bytes", "the same, a kernel per operation"),
    _p("selective_repeat", 0.33, 0.15, "fraction", "forward products that per-operation policies repeat"),
    _p("host_ratio", 1.0, 0.5, "ratio", "host time of all stacks against what counting launches gives"),
    *_each("host_us", _HOST_US, 0.3, "us", "host time per layer and micro-batch, forward and backward"),
    _p("host_group_ratio", 1.5, 0.3, "ratio", "host time with tensor, context or expert groups against without"),
    _p("step_overhead_ms.modern", 5.0, 0.7, "ms", "fixed time per step: data, norms, logging; tuned stacks"),
    _p("step_overhead_ms.plain", 20.0, 0.7, "ms", "the same, other stacks"),
    _p("sharding_bytes", 20.0, 0.3, "bytes", "copied per parameter and micro-batch around gathers and reductions"),
    _p("optimizer_ratio", 1.3, 0.3, "ratio", "optimizer traffic against one fused pass"),
    _p("straggler", 0.006, 0.5, "fraction", "time lost per doubling of the nodes"),
    *_each("quality", dict.fromkeys(_HOST_US, 1.0), 0.12, "ratio", "kernel time against the physics, by software"),
    _p("immaturity", 0.30, 0.3, "fraction", "extra kernel time of software as old as the chip"),
    _p("maturity_years", 1.5, 0.3, "years", "time in which that falls by e"),
    _p("elsewhere_ratio", 1.3, 0.15, "ratio", "kernel time of general stacks on chips that few of them are tuned for"),
    _p("adapter_passes.modern", 6.0, 0.4, "count", "times that adapters move their inputs and outputs; fused stacks"),
    _p("adapter_passes.plain", 24.0, 0.3, "count", "the same, with the casts and copies of eager stacks"),
    _p("own_ratio", 1.0, 0.25, "ratio", "time of a user's own stack against what stacks of its class take"),
    _p("production_ratio", 1.10, 0.05, "ratio", "whole runs against their steps: restarts, evaluation, idle time"),
)  # fmt: skip

DEFAULTS: dict[str, float] = {parameter.name: parameter.prior for parameter in PARAMETERS}


class Efficiencies(Columns):
    """The parameters, resolved for each case."""

    matrix: Floats
    fp8_ratio: Floats
    int8_ratio: Floats
    fp4_ratio: Floats
    matrix_tokens: Floats
    matrix_width: Floats
    flash: Floats
    flash_tokens: Floats
    scan_fraction: Floats
    softmax_passes: Floats
    loss_bytes: Floats
    copy: Floats
    elementwise_passes: Floats
    scaleup: Floats
    scaleout: Floats
    pcie: Floats
    scaleup_latency_us: Floats
    scaleout_latency_us: Floats
    tensor_exposed: Floats
    data_hidden: Floats
    interference: Floats
    alltoall_exposed: Floats
    alltoall_pipelined: Floats
    expert_imbalance: Floats
    expert_traffic: Floats
    cast_bytes: Floats
    grouped_ratio: Floats
    expert_host_us: Floats
    expert_aging: Floats  # time of experts against that of a current stack
    selective_repeat: Floats
    host_us: Floats
    host_group_ratio: Floats
    step_overhead_ms: Floats
    sharding_bytes: Floats
    in_time: Floats  # share of an expert layer's gathers that its stack asks for ahead of time
    optimizer_ratio: Floats
    straggler: Floats
    own_ratio: Floats
    kernel_ratio: Floats  # kernel time against the physics: quality and immaturity of the software
    adapter_passes: Floats


_SAME = (
    "fp8_ratio", "fp4_ratio", "int8_ratio", "matrix_tokens", "matrix_width", "flash_tokens", "softmax_passes",
    "scan_fraction", "scaleup_latency_us", "scaleout_latency_us", "data_hidden", "interference", "alltoall_exposed",
    "alltoall_pipelined", "expert_imbalance", "expert_traffic", "grouped_ratio", "host_group_ratio", "optimizer_ratio",
    "straggler", "own_ratio",
)  # fmt: skip
_PLAIN = {name: name for name in _SAME} | {
    "copy": "copy_fraction", "scaleup": "scaleup_fraction", "pcie": "pcie_fraction", "scaleout": "scaleout_fraction",
}  # fmt: skip


# Families whose matrix units outran the fused attention kernels of the generation before.
RECENT = ("hopper", "blackwell", "rubin", "cdna3", "cdna4", "cdna5")
# From when on general frameworks have attention kernels written for a family: a year and three quarters after its
# launch, as FlashAttention-3 of July 2024 followed Hopper (arXiv:2407.08608); on AMD half a year later, as assumed.
_CAUGHT_UP = {"hopper": 2024.5, "cdna3": 2026.2, "blackwell": 2026.6, "cdna4": 2027.7, "rubin": 2028.4, "cdna5": 2028.9}
KERNELS_CAUGHT_UP_YEAR = np.array([_CAUGHT_UP.get(name, 0.0) for name in FAMILIES])
ELSEWHERE = np.array([name.startswith(("cdna", "rdna", "gaudi", "other")) for name in FAMILIES])


SHARDED, COMPILER = CLASSES.index("sharded"), CLASSES.index("compiler")
TYPICAL = ("vendor", "sharded", "eager")  # what an unknown stack of today is taken as: the mean of these
EARLY = ("megatron", "deepspeed")  # and one of the years before FUSED_YEAR
FUSED_YEAR = 2023.0  # from when on fused attention is usual
SPLIT_NORMS_YEAR = 2022.5  # from when on stacks split norms over the tensor group and repeat attention alone
UNKNOWN = CLASSES.index("unknown")
KINDS = (*CLASSES, "early")  # the classes, and unknown stacks of early years
# Share of each class that is tuned: kernels and overlap written by those who know the chip.
_TUNED = {**dict.fromkeys(("vendor", "compiler", "native", "neuron"), 1.0), "unknown": 1 / len(TYPICAL)}
TUNED_SHARE = np.array([_TUNED.get(name, 0.0) for name in KINDS])


def class_value(values: Mapping[str, float], prefix: str, name: str) -> float:
    """Return a parameter of a family or class; an unknown class takes the geometric mean of the typical ones."""
    alike = {"unknown": TYPICAL, "early": EARLY}.get(name, (name,))
    return prod(values[f"{prefix}.{typical}"] for typical in alike) ** (1 / len(alike))


# Share of each class whose "selective" recomputation repeats every second product, not only attention.
PER_OPERATION = np.array([{"sharded": 1.0, "eager": 1.0, "unknown": 2 / len(TYPICAL)}.get(name, 0.0) for name in KINDS])
WHOLE_GRAPH = np.array([name in ("compiler", "neuron") for name in KINDS])  # the compiler sees all experts at once
EXPERTS_MATURE_YEAR = 2026.44  # releases from June 2026 on run experts without asking the host for their sizes
MOST_OF_PEAK = 0.95  # no kernel reaches more of a peak


def expert_aging(values: Mapping[str, float], software: Integers, software_year: Floats) -> Floats:
    """Return the time of experts against that of a stack that runs them without asking the host for their sizes."""
    early = (software_year < EXPERTS_MATURE_YEAR) & ~WHOLE_GRAPH[software]
    return np.where(early, np.exp(values["expert_aging"]), 1.0)


def written_for_chip(family: Integers, tuned: Floats, software_year: Floats) -> Floats:
    """Return how far attention kernels are written for the chip: by those who know it at once, else once caught up."""
    return np.where(software_year >= KERNELS_CAUGHT_UP_YEAR[family], 1.0, tuned)


def lag(values: Mapping[str, float], hardware: HardwareColumns, software: Integers, software_year: Floats) -> Floats:
    """Return the time of kernels on a chip that their stack is young on, or that few of its kind are tuned for.

    1 + immaturity · e^(−age ÷ maturity); an age below zero counts as zero, and TPUs have their compiler at launch.
    """
    youth = np.exp(-np.maximum(software_year - hardware.year, 0.0) / values["maturity_years"])
    young = 1 + values["immaturity"] * np.where(software == COMPILER, 0.0, youth)
    abroad = ELSEWHERE[hardware.family] & (TUNED_SHARE[software] == 0)
    return np.where(abroad, young * values["elsewhere_ratio"], young)


def resolve(
    values: Mapping[str, float], hardware: HardwareColumns, software: Integers, software_year: Floats
) -> Efficiencies:
    """Look the parameters up for each case by chip, software class and age of the software against the chip.

    The kernels' ratio is quality · lag. Products and attention slow down with the power limit: rate ∝ (watts per peak
    FLOP/s)^α within a family.
    """
    family = hardware.family
    software = np.where((software == UNKNOWN) & (software_year < FUSED_YEAR), KINDS.index("early"), software)
    aging = expert_aging(values, software, software_year)
    clocks = hardware.power_ratio ** values["power_exponent"]
    second_issue = np.where(hardware.refreshed, values["ultra_ratio"], 1.0)

    def by(prefix: str, names: tuple[str, ...], codes: Integers) -> Floats:
        looked_up: Floats = np.array([class_value(values, prefix, name) for name in names])[codes]
        return looked_up

    def between(prefix: str, low: str, high: str, share: Floats) -> Floats:
        mixed: Floats = values[f"{prefix}.{low}"] ** (1 - share) * values[f"{prefix}.{high}"] ** share
        return mixed

    count = len(family)
    tuned = TUNED_SHARE[software]
    newer = between("flash_fraction", "plain", "modern", written_for_chip(family, tuned, software_year))
    return Efficiencies(
        **{field: np.full(count, values[name]) for field, name in _PLAIN.items()},
        matrix=np.minimum(by("matrix_fraction", FAMILIES, family) * clocks * second_issue, MOST_OF_PEAK),
        selective_repeat=values["selective_repeat"] * PER_OPERATION[software],
        elementwise_passes=values["elementwise_passes"] * by("elementwise_ratio", KINDS, software),
        flash=clocks
        * np.where(np.array([name in RECENT for name in FAMILIES])[family], newer, values["flash_fraction.old"]),
        loss_bytes=between("loss_bytes", "plain", "fused", np.where(software == SHARDED, 1.0, tuned)),
        cast_bytes=between("cast_bytes", "plain", "fused", np.where(software == SHARDED, 1.0, tuned)),
        adapter_passes=between("adapter_passes", "plain", "modern", tuned),
        tensor_exposed=between("tensor_exposed", "plain", "modern", tuned),
        step_overhead_ms=between("step_overhead_ms", "plain", "modern", tuned),
        host_us=by("host_us", KINDS, software) * values["host_ratio"],
        expert_host_us=np.where(WHOLE_GRAPH[software], 0.0, values["expert_host_us"]),
        expert_aging=aging,
        sharding_bytes=np.where(WHOLE_GRAPH[software], 0.0, values["sharding_bytes"]),
        in_time=WHOLE_GRAPH[software].astype(np.float64),
        kernel_ratio=by("quality", KINDS, software) * lag(values, hardware, software, software_year),
    )
