"""Answers about speed: a timed layout, and a roofline."""

from typing import Literal, NotRequired, TypedDict

from gpucost.answers.common import Answer, LayoutRow

Bound = Literal["compute", "bandwidth", "network", "host", "schedule", "loader"]
# what bounds a part of a step, as it is written
BOUND_WORDS: dict[Bound, str] = {
    "compute": "compute",
    "bandwidth": "memory bandwidth",
    "network": "network",
    "host": "host",
    "schedule": "schedule",
    "loader": "data loader",
}


class Part(TypedDict):
    """A part of a training step and what bounds it."""

    part: str
    time_s: float
    share_fraction: float
    bound: Bound


class RankedLayout(LayoutRow):
    """A layout and how fast it is."""

    step_s: float
    tokens_per_s_per_gpu: float
    mfu_fraction: float
    memory_gib: float


class Memory(TypedDict):
    """The peak memory of a layout against what the accelerator can use."""

    memory_gib: float
    usable_memory_gib: float
    fits: bool


class Feeding(TypedDict):
    """What a run reads against what storage and the workers of its loader deliver; None where nobody said."""

    dataset_bytes_per_token: float
    needed_gb_per_s: float
    storage_gb_per_s: float | None
    workers_gb_per_s: float | None
    stall_fraction: float
    bottleneck: str | None
    needed_loader_workers: int | None  # on each accelerator, so that the run never waits
    said: str


class Timed(Memory):
    """One layout, timed."""

    lead: str
    model: str
    gpu: str
    system: str
    layout: LayoutRow
    sequence_tokens: float
    software: str
    tokens_per_s_per_gpu: float
    tokens_per_s_per_gpu_low: float
    tokens_per_s_per_gpu_high: float
    tokens_per_s: float
    step_s: float
    mfu_fraction: float
    hfu_fraction: float
    model_tflops: float
    peak_tflops: float
    model_flop_per_token_flop: float
    hardware_flop_per_token_flop: float
    parts: list[Part]
    loading: NotRequired[Feeding]
    # where the layout was searched
    layouts_timed: NotRequired[int]
    alternatives: NotRequired[list[RankedLayout]]


class Throughput(Answer, Timed):
    """How fast a model trains on one layout, or on the fastest."""

    kind: Literal["throughput"]


class RoofPoint(TypedDict):
    """The roof at one intensity."""

    intensity_flop_per_byte: float
    attainable_tflops: float


class Point(TypedDict):
    """An operation under its roofs; None where no roof of the chip explains it."""

    operation: str
    flop: float | None
    memory_bytes: float | None
    link_bytes: float | None
    intensity_flop_per_byte: float | None
    ridge_flop_per_byte: float | None
    compute_s: float | None
    bandwidth_s: float | None
    network_s: float | None
    host_s: float | None
    time_s: float
    share_fraction: float
    reached_tflops: float | None
    bound: Bound


class Roof(TypedDict):
    """The roofs of a chip in its system."""

    gpu: str
    system: str
    precision: str
    peak_tflops: float
    hbm_gb_per_s: float
    scaleup_gb_per_s: float
    scaleout_gb_per_s: float | None
    ridge_flop_per_byte: float
    roof: list[RoofPoint]


class Advice(TypedDict):
    """A change that makes it faster, and by how much: time before ÷ time after."""

    change: str
    before_s: float
    after_s: float
    gain_ratio: float
    note: str


class UnderRoofs(Roof):
    """What stands under the roofs."""

    lead: str
    subject: str
    points: list[Point]
    advice: list[Advice]
    # of a whole step
    layout: NotRequired[LayoutRow]
    step_s: NotRequired[float]
    mfu_fraction: NotRequired[float]


class Roofline(Answer, UnderRoofs):
    """What bounds an operation, or each part of a step."""

    kind: Literal["roofline"]
