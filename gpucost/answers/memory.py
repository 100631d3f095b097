"""The answer about the memory of training: does it fit, where it goes, and what would help."""

from typing import Literal, TypedDict

from gpucost.answers.common import Answer


class FitLayout(TypedDict):
    """How the job is spread."""

    tensor: int
    pipeline: int
    context: int
    expert: int
    data: int
    sharding: int
    micro_batch: int
    recompute: str


class Component(TypedDict):
    """A part of the footprint: its size, its formula with the numbers in it, and the reference."""

    component: str
    needed_gb: float
    share_fraction: float
    formula: str
    numbers: str
    reference: str


class Tried(TypedDict):
    """A change that was tried, what it costs, and whether it helps."""

    change: str
    cost: str
    fits: bool
    helps: bool
    gpus: int
    needed_gb: float
    usable_gb: float
    headroom_gb: float
    rank: int


class SizeRow(TypedDict):
    """The fewest accelerators for a model of a usual size; None where no count fits."""

    size: str
    model: str
    parameters: float
    weights_gb: float
    full_gpus: int | None
    full_gb: float | None
    lora_gpus: int | None
    lora_gb: float | None
    qlora_gpus: int | None
    qlora_gb: float | None


class Verdict(TypedDict):
    """The main figures, per accelerator."""

    model: str
    parameters: float
    gpu: str
    gpus: int
    method: str
    optimizer: str
    software: str
    sequence_tokens: int
    fits: bool
    needed_gb: float
    needed_low_gb: float
    needed_high_gb: float
    usable_gb: float
    headroom_gb: float
    device_memory_gib: float
    context_gb: float
    fragmentation_ratio: float
    layout: FitLayout
    peak: str
    stage: Literal["first", "last"]


class FitRow(TypedDict):
    """An accelerator that a job fits: the fewest, how far the job can grow on them, who hosts them at which price."""

    gpu: str
    memory_gib: float
    gpus: int
    needed_gb: float
    headroom_gb: float
    longest_tokens: int
    largest_batch: int
    sold: str  # the seller; where nobody hosts so many, how it is sold
    usd_per_gpu_hour: float | None
    usd_per_hour: float | None


class Everywhere(Answer):
    """Which accelerators a training job fits."""

    kind: Literal["fit_everywhere"]
    model: str
    parameters: float
    method: str
    sequence_tokens: int
    rows: list[FitRow]
    nowhere: list[str]


class Fit(Answer, Verdict):
    """Whether training fits."""

    kind: Literal["fit"]
    components: list[Component]
    changes: list[Tried]
    sizes: list[SizeRow]
