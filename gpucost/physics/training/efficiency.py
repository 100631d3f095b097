"""The parameters that physics alone does not give: what they mean, what is believed of them before any fit.

Each has a prior (from microbenchmarks or from counting) and a spread, the standard deviation of its logarithm;
`calibration.py` fits them and `models/calibration.csv` holds the result. Efficiencies that differ by family or by
software class are a common value times a deviation, so that an unseen family or class falls back to the common one.
"""

from collections.abc import Mapping
from math import prod

import numpy as np

from gpucost.physics.calibration import declared
from gpucost.physics.columns import ColumnStruct, Floats, Integers, code_of
from gpucost.physics.hardware import FAMILIES, HardwareColumns
from gpucost.physics.software import CLASSES
from gpucost.words import DISPATCHERS

PARAMETERS, TRAITS = declared(__file__)
DEFAULTS: dict[str, float] = {parameter.name: parameter.prior for parameter in PARAMETERS}


class Efficiencies(ColumnStruct, frozen=True):
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
    library_scores_ratio: Floats
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
    expert_tokens: Floats
    expert_host_us: Floats
    dispatch_ratio: Floats  # time of all that brings tokens to their experts against that of a fused dispatcher
    sinks_apart: Floats  # share of windowed layers with learned sinks that no fused kernel computes
    selective_repeat: Floats
    host_us: Floats
    host_group_ratio: Floats
    step_overhead_ms: Floats
    sharding_bytes: Floats
    whole_graph: Floats  # 1 where a compiler sees the whole step, and gathers again under a pipeline
    optimizer_ratio: Floats
    straggler: Floats
    own_ratio: Floats
    kernel_ratio: Floats  # kernel time against the physics: quality and immaturity of the software
    adapter_passes: Floats
    adapter_host_us: Floats
    blocking_share: Floats  # of the stages before it that a blocking stage waits for
    full_precision_ratio: Floats


# parameters that are the same for every case, here under their own names
_SAME = (
    *("fp8_ratio", "fp4_ratio", "int8_ratio", "matrix_tokens", "matrix_width", "grouped_ratio", "expert_tokens"),
    *("flash_tokens", "softmax_passes", "library_scores_ratio", "scan_fraction", "full_precision_ratio"),
    *("scaleup_latency_us", "scaleout_latency_us", "data_hidden", "interference", "expert_imbalance"),
    *("alltoall_exposed", "alltoall_pipelined", "expert_traffic", "host_group_ratio", "optimizer_ratio"),
    *("straggler", "own_ratio", "blocking_share"),
)
_PLAIN = {name: name for name in _SAME} | {
    "copy": "copy_fraction",
    "scaleup": "scaleup_fraction",
    "pcie": "pcie_fraction",
    "scaleout": "scaleout_fraction",
}


# Families whose matrix units outran the fused attention kernels of the generation before.
_RECENT = ("hopper", "blackwell", "rubin", "cdna3", "cdna4", "cdna5")
_IS_RECENT = np.array([name in _RECENT for name in FAMILIES])
# From when on general frameworks have attention kernels written for a family. PyTorch's own were those of Ampere on
# Hopper at least until mid-2025: torchtitan's 262,144 tokens on eight H100s run at two fifths of today's rate. On other
# families a year and three quarters after the launch, on AMD half a year later: assumed.
_CAUGHT_UP = {
    "hopper": 2025.75,
    "cdna3": 2026.2,
    "blackwell": 2026.6,
    "cdna4": 2027.7,
    "rubin": 2028.4,
    "cdna5": 2028.9,
}
_KERNELS_CAUGHT_UP_YEAR = np.array([_CAUGHT_UP.get(name, 0.0) for name in FAMILIES])
# From when on those who know a chip have them: at its launch, but on Hopper, the first whose products run beside the
# threads that ask for them, with cuDNN 9 and the releases that prefer it, of spring 2024.
_KERNELS_TUNED_YEAR = np.array([{"hopper": 2024.4}.get(name, 0.0) for name in FAMILIES])
_ELSEWHERE = np.array([name.startswith(("cdna", "rdna", "gaudi", "ascend", "other")) for name in FAMILIES])


_SHARDED, _COMPILER = CLASSES.index("sharded"), CLASSES.index("compiler")
TYPICAL = ("vendor", "sharded", "eager")  # what an unknown stack of today is taken as: the mean of these
_EARLY = ("megatron", "deepspeed")  # and one of the years before FUSED_YEAR
FUSED_YEAR = 2023.0  # from when on fused attention is usual
# From when on stacks have all of FlashAttention-2 (arXiv:2307.08691): position biases came in January 2024.
_SECOND_FLASH_YEAR = 2024.05
SPLIT_NORMS_YEAR = 2022.5  # from when on stacks split norms over the tensor group and repeat attention alone
_UNKNOWN = CLASSES.index("unknown")
_KINDS = (*CLASSES, "early")  # the classes, and unknown stacks of early years
# Share of each class that is tuned: kernels and overlap written by those who know the chip.
_TUNED = {**dict.fromkeys(("vendor", "compiler", "native", "neuron"), 1.0), "unknown": 1 / len(TYPICAL)}
_TUNED_SHARE = np.array([_TUNED.get(name, 0.0) for name in _KINDS])
# Share of each class whose 8-bit casts are fused: Megatron's and DeepSpeed's are those of Transformer Engine.
_CASTS = dict.fromkeys((*CLASSES, "early"), 1.0) | {"eager": 0.0, "unknown": 1 - 1 / len(TYPICAL)}
_CASTS_FUSED_SHARE = np.array([_CASTS[name] for name in _KINDS])


# Share of each class whose "selective" recomputation repeats every second product, not only attention.
_PER_OPERATION = np.array(
    [{"sharded": 1.0, "eager": 1.0, "unknown": 2 / len(TYPICAL)}.get(name, 0.0) for name in _KINDS]
)
_WHOLE_GRAPH = np.array([name in ("compiler", "neuron") for name in _KINDS])  # the compiler sees all experts at once
MOST_OF_PEAK = 0.95  # no kernel reaches more of a peak


UNSAID, ALLTOALL, FUSED = -1, 0, 1  # how tokens are sent to their experts: by plain all-to-all or a fused kernel


def dispatcher_code(word: str | None) -> int:
    """Return the code of a dispatcher, unsaid where there is no word.

    >>> dispatcher_code("fused"), dispatcher_code(None)
    (1, -1)
    """
    return code_of(word, DISPATCHERS, "dispatcher") if word else UNSAID


def resolve(
    values: Mapping[str, float],
    hardware: HardwareColumns,
    software: Integers,
    software_year: Floats,
    dispatcher: Integers | int = UNSAID,
    sinks: Integers | int = UNSAID,
) -> Efficiencies:
    """Look the parameters up for each case by chip, software class and age of the software against the chip.

    The kernels' ratio is quality · lag. Products and attention run at what the power sustains of the peak. `dispatcher`
    and `sinks` are codes: UNSAID, apart (0) or FUSED; what nobody names is apart.
    """
    family = hardware.family
    count = len(family)

    # What a class of software was in its year: before fused kernels a vendor's stack was Megatron's.
    older = np.where(software == CLASSES.index("vendor"), CLASSES.index("megatron"), software)
    older = np.where(software == _UNKNOWN, _KINDS.index("early"), older)
    software = np.where(software_year < FUSED_YEAR, older, software)
    tuned, whole_graph = _TUNED_SHARE[software], _WHOLE_GRAPH[software]

    def by(prefix: str, names: tuple[str, ...], codes: Integers) -> Floats:
        """Return a parameter for the family or class of each code; an unknown class is the mean of the typical ones."""
        table = np.zeros(len(names))
        for code in np.flatnonzero(np.bincount(codes)):  # only those that occur
            alike = {"unknown": TYPICAL, "early": _EARLY}.get(names[int(code)], (names[int(code)],))
            table[code] = prod(values[f"{prefix}.{name}"] for name in alike) ** (1 / len(alike))  # geometric
        return table.take(codes)

    def between(prefix: str, low: str, high: str, share: Floats) -> Floats:
        mixed: Floats = values[f"{prefix}.{low}"] ** (1 - share) * values[f"{prefix}.{high}"] ** share
        return mixed

    # How far attention kernels are written for the chip: by those who know it first, else once caught up.
    written = np.where(software_year >= _KERNELS_TUNED_YEAR[family], tuned, tuned / 2)
    written = np.where(software_year >= _KERNELS_CAUGHT_UP_YEAR[family], 1.0, written)
    newer_flash = between("flash_fraction", "plain", "modern", written)
    second = software_year >= _SECOND_FLASH_YEAR
    older_flash = np.where(second, values["flash_fraction.second"], values["flash_fraction.old"])

    # The time of kernels on a chip that their stack is young on, or that few of its kind are tuned for:
    # 1 + immaturity · e^(−age ÷ maturity); an age below zero counts as zero, and TPUs have their compiler at launch.
    youth = np.exp(-np.maximum(software_year - hardware.year, 0.0) / values["maturity_years"])
    lag = 1 + values["immaturity"] * np.where(software == _COMPILER, 0.0, youth)
    lag = np.where(_ELSEWHERE[family] & (tuned == 0), lag * values["elsewhere_ratio"], lag)

    # The time of what brings tokens to their experts (exchanges, permutations, the host's part of them) against that of
    # a fused dispatcher (DeepEP, HybridEP). One that nobody names is plain all-to-all, the default of Megatron-Core and
    # torchtitan. Compilers that see the whole graph have neither.
    all_to_all = np.not_equal(dispatcher, FUSED) & ~whole_graph

    clocks = hardware.sustained_ratio
    second_issue = np.where(hardware.refreshed, values["ultra_ratio"], 1.0)
    return Efficiencies(
        **{field: np.full(count, values[name]) for field, name in _PLAIN.items()},
        matrix=np.minimum(by("matrix_fraction", FAMILIES, family) * clocks * second_issue, MOST_OF_PEAK),
        selective_repeat=values["selective_repeat"] * _PER_OPERATION[software],
        elementwise_passes=values["elementwise_passes"] * by("elementwise_ratio", _KINDS, software),
        flash=np.minimum(clocks * np.where(_IS_RECENT[family], newer_flash, older_flash), MOST_OF_PEAK),
        loss_bytes=between("loss_bytes", "plain", "fused", np.where(software == _SHARDED, 1.0, tuned)),
        cast_bytes=between("cast_bytes", "plain", "fused", _CASTS_FUSED_SHARE[software]),
        adapter_passes=between("adapter_passes", "plain", "modern", tuned),
        adapter_host_us=between("adapter_host_us", "plain", "modern", tuned),
        tensor_exposed=between("tensor_exposed", "plain", "modern", tuned),
        step_overhead_ms=between("step_overhead_ms", "plain", "modern", tuned),
        host_us=by("host_us", _KINDS, software) * values["host_ratio"],
        expert_host_us=np.where(whole_graph, 0.0, values["expert_host_us"]),
        dispatch_ratio=np.where(all_to_all, values["alltoall_ratio"], 1.0),
        sinks_apart=np.not_equal(np.broadcast_to(sinks, count), FUSED) * 1.0,
        sharding_bytes=np.where(whole_graph, 0.0, values["sharding_bytes"]),
        whole_graph=whole_graph.astype(np.float64),
        kernel_ratio=by("quality", _KINDS, software) * lag,
    )
