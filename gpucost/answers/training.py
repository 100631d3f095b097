"""Answers about training a model: what a run costs, whether it fits, how fast it is, what bounds it."""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from gpucost.answers.combined import Change
from gpucost.answers.common import (
    AnswerFrame,
    AssumedValue,
    BillLine,
    Budgeted,
    LayoutRow,
    OfferRow,
    Seen,
    Seller,
    StatedFact,
)

# --- Answers about speed: a timed layout, and a roofline.

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


class StepPart(TypedDict):
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
    stall_fraction: float  # of the time in which the run waits for data
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
    mfu_fraction: float  # model FLOP per second ÷ dense peak
    hfu_fraction: float  # the same with what is computed twice
    model_tflops: float
    peak_tflops: float
    model_flop_per_token_flop: float  # FLOP of a token, recomputation not counted
    hardware_flop_per_token_flop: float
    parts: list[StepPart]
    loading: NotRequired[Feeding]
    # where the layout was searched
    layouts_timed: NotRequired[int]
    alternatives: NotRequired[list[RankedLayout]]


class Throughput(AnswerFrame, Timed):
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


class Roofline(AnswerFrame, UnderRoofs):
    """What bounds an operation, or each part of a step."""

    kind: Literal["roofline"]


# --- Answers about a training run: the estimate, and a rerun of one.

Factors = dict[str, float | None]  # every number from which a bill follows (`gpucost.training.cases`)


class Speed(TypedDict):
    """How fast an option trains, on which layout."""

    layout: LayoutRow
    memory_gb: float
    tokens_per_s_per_gpu: float
    tokens_per_s_per_gpu_low: float
    tokens_per_s_per_gpu_high: float
    mfu_fraction: float
    mfu_paid_fraction: NotRequired[float]  # over all hours that the run pays for
    speed_confidence: str


class RunOutcome(TypedDict):
    """How long the run takes and what it costs."""

    days: float
    days_low: float
    days_high: float
    gpu_hours: float
    cost_usd: float
    cost_low_usd: float
    cost_high_usd: float
    usd_per_mtok: float
    energy_kwh: float | None
    kgco2e: float | None


class Contract(TypedDict):
    """The four views of a purchase."""

    cash_usd: float  # paid by the end of the run
    amortised_usd: float  # hours used × effective price
    exposure_usd: float  # all that the contract obliges to pay
    unused_usd: float  # exposure that the run leaves idle


class Interruptions(TypedDict):
    """How interruptions lengthen the run: hours paid and calendar days apart."""

    interruptions: float
    interruption_rate_measured: bool
    checkpoint_interval_hours: float | None
    stretch_paid_ratio: float  # hours paid ÷ hours of work
    stretch_paid_low_ratio: float
    stretch_paid_high_ratio: float
    stretch_calendar_ratio: float  # with the waits for new machines
    stretch_spread_ratio: float  # by chance alone, one standard deviation
    goodput_fraction: float  # 1 ÷ stretch_paid_ratio


class Elsewhere(TypedDict):
    """Another region in which an option is sold."""

    region: str | None
    offer_id: str
    usd_per_gpu_hour: float
    cost_usd: float
    age_days: int


class TrainingOption(Seller, Speed, RunOutcome, Budgeted, Seen, Contract, Interruptions):
    """One way to buy the run, with its bill; `components` are the seconds of a step by part."""

    rank: int
    gpus: int
    nodes: int
    instances: NotRequired[int]
    usd_per_gpu_hour: float
    components: dict[str, float]
    source_ids: list[str]
    lines: list[BillLine]
    notes: list[str]
    factors: Factors


class RankedOption(TrainingOption):
    """An option, and where else it is sold."""

    also_in: list[Elsewhere]


class WorkloadRow(TypedDict):
    """What is trained, in numbers."""

    model: str
    model_status: str
    parameters: float
    active_parameters: float
    trained_parameters: float
    trained_tokens: float
    sequence_tokens: int
    global_batch: int
    precision: str
    method: str
    model_flop_per_token: float  # forward and backward, nothing computed twice
    model_flop: float


class Size(TypedDict):
    """The first offer at another size of cluster."""

    gpus: int
    nodes: int
    days: float | None
    cost_usd: float | None
    cost_low_usd: float | None
    cost_high_usd: float | None
    mfu_fraction: float | None
    tokens_per_s_per_gpu: float | None
    chosen: bool


class Alternative(TypedDict):
    """The first offer of another way to buy."""

    option: str
    term_months: int
    payment: str
    provider: str
    instance_type: str
    region: str | None
    gpu: str
    gpus: int
    days: float
    cost_usd: float
    cost_low_usd: float
    cost_high_usd: float
    saving_usd: float | None
    saving_fraction: float | None
    amortised_usd: float
    exposure_usd: float
    note: str


class Driver(TypedDict):
    """A part of the cost and its share."""

    name: str
    share_fraction: float
    note: str


class Highlight(Budgeted):
    """The best offer of one kind, such as that of the lowest budget or the fastest."""

    kind: str
    provider: str
    seller: NotRequired[str]  # the provider's name
    region: str | None
    instance_type: NotRequired[str]
    option: str
    term_months: int
    gpu: str
    gpus: int
    instances: NotRequired[int]
    days: float
    gpu_hours: NotRequired[float]
    usd_per_gpu_hour: NotRequired[float]
    mfu_fraction: NotRequired[float]
    price_observed_on: NotRequired[str]
    cost_usd: float
    cost_low_usd: float
    cost_high_usd: float
    age_days: int


class RunOffer(OfferRow):
    """A row of the table of offers of a run: what it costs and how long it takes; None where it cannot run."""

    days: float | None
    cost_usd: float | None
    cost_low_usd: float | None
    cost_high_usd: float | None
    budget_usd: NotRequired[float | None]
    expected_usd: NotRequired[float | None]
    chance_available_fraction: NotRequired[float | None]
    fallback_usd: NotRequired[float | None]


class RegionBest(RunOffer):
    """The first offer of a region, and how many there are."""

    offers: int


class PriceMonth(TypedDict):
    """On-demand prices of one accelerator in a month."""

    month: str
    usd_per_gpu_hour: float
    low_usd_per_gpu_hour: float
    high_usd_per_gpu_hour: float
    prices: int


class Estimate(AnswerFrame):
    """What a training run costs, on every offer; `facts` hold what a rerun needs."""

    kind: Literal["estimate"]
    gpucost_version: str
    calibration: str
    workload: WorkloadRow
    headline: NotRequired[str]
    highlights: NotRequired[list[Highlight]]
    stated: NotRequired[list[StatedFact]]
    options: list[RankedOption]
    options_found: int
    offers_found: int
    offers: NotRequired[list[RunOffer]]  # every offer, ranked ones first
    regions: NotRequired[list[RegionBest]]
    scaling: list[Size]
    alternatives: list[Alternative]
    drivers: list[Driver]
    remarks: NotRequired[list[str]]  # what only a full view says, not one screen
    assumptions: list[AssumedValue]
    not_included: list[str]
    facts: NotRequired[Mapping[str, Any]]
    loading: NotRequired[Feeding]  # of the first option
    # in reports
    price_history: NotRequired[list[PriceMonth]]
    roofline: NotRequired[Roofline]


class Difference(TypedDict):
    """A figure that a rerun gives otherwise than the file."""

    where: str
    saved: Any
    now: Any


class Rerun(AnswerFrame):
    """Whether a saved estimate comes out the same again."""

    kind: Literal["rerun"]
    gpucost_version: str
    equal: bool
    reasons: list[str]
    differences_found: int
    differences: list[Difference]
    changes: list[Change]


# --- The answer about the memory of training: does it fit, where it goes, and what would help.


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
    full_gpus: int | None  # training every weight; the others tune adapters
    full_gb: float | None
    lora_gpus: int | None
    lora_gb: float | None
    qlora_gpus: int | None
    qlora_gb: float | None


class FitFigures(TypedDict):
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
    seller: NotRequired[str]  # the same, a seller by the name under which people know it
    usd_per_gpu_hour: float | None
    usd_per_hour: float | None


class Everywhere(AnswerFrame):
    """Which accelerators a training job fits."""

    kind: Literal["fit_everywhere"]
    model: str
    parameters: float
    method: str
    sequence_tokens: int
    rows: list[FitRow]
    nowhere: list[str]


class Saver(TypedDict):
    """One change of a run alone, on the same accelerators and layout, at equal recomputation: what it needs."""

    change: str
    needed_gb: float
    needed_low_gb: float
    needed_high_gb: float
    saved_fraction: float
    fits: bool
    cost: str


class Fit(AnswerFrame, FitFigures):
    """Whether training fits."""

    kind: Literal["fit"]
    components: list[Component]
    changes: list[Tried]
    savers: NotRequired[list[Saver]]
    sizes: list[SizeRow]
