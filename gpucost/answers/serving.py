"""Answers about serving a model: cost per token on every offer, and which accelerators serve it at all."""

from typing import Literal, NotRequired, TypedDict

from gpucost.answers.common import AnswerFrame, BillLine, Excluded, FormulaLine, OfferPoint, Seen, Seller

Factors = dict[str, float | None]  # every number from which replicas, hours, cost and carbon follow


class ReplicaLayout(TypedDict):
    """How one replica is spread."""

    tensor: int
    data: int
    pipeline: int


class ServingLayout(ReplicaLayout):
    """How one replica is spread, with its size."""

    expert: int
    gpus: int


class MemoryParts(TypedDict):
    """What fills an accelerator's memory."""

    weights_gb: float
    cache_gb: float
    workspace_gb: float
    memory_gb: float
    free_gb: float


class SoldFleet(Seller, Seen):
    """Who sells it, on which terms, and how many are needed."""

    gpus: int
    units: int
    instances: NotRequired[int]
    replicas: int


class EngineSide(TypedDict):
    """What physics says of a replica: layout, latency, speed, memory, bottleneck."""

    layout: ServingLayout
    precision: str
    engine: str
    batch: int
    batch_that_fits: float | None
    ttft_ms: float
    ttft_loaded_ms: float | None
    tpot_ms: float
    tpot_ms_low: float
    tpot_ms_high: float
    output_tokens_per_s: float
    tokens_per_s_per_gpu: float
    output_tokens_per_s_per_gpu: float
    prompt_time_fraction: float
    bottleneck: str
    components: dict[str, float]
    memory: MemoryParts


class ServingOption(SoldFleet, EngineSide):
    """One way to serve the model, with the bill of a month."""

    rank: int
    usd_per_gpu_hour: float
    usd_per_mtok: float
    usd_per_mtok_low: float
    usd_per_mtok_high: float
    usd_per_mtok_input: float
    usd_per_mtok_output: float
    usd_per_month: float
    usd_per_month_low: float
    usd_per_month_high: float
    tokens_per_month: float
    gpu_hours: float
    utilisation_fraction: float
    energy_kwh: float | None
    kgco2e: float | None
    source_ids: list[str]
    lines: list[BillLine]
    notes: list[str]
    factors: Factors


class Hosted(TypedDict):
    """A price of a hosted API, blended at the request's mix."""

    provider: str
    listing: str
    model: str
    same_model: bool
    usd_per_mtok_input: float
    usd_per_mtok_output: float
    usd_per_mtok_cached_input: float | None
    usd_per_mtok: float
    usd_per_mtok_batch: NotRequired[float | None]  # of a batch that may wait a day, where the host sells one
    observed_on: str
    age_days: int
    stale: bool
    source_id: str
    note: str


class Crossing(TypedDict):
    """The volume at which own replicas cost what an API does; None where there is none, `note` says why."""

    tokens_per_month: float | None
    utilisation_fraction: float | None
    groups: int | None
    note: str


class ApiBreakEven(Crossing):
    """The crossing, and the API it is against."""

    against_provider: str
    against_model: str
    against_usd_per_mtok: float


class Volume(TypedDict):
    """What a month costs on both sides at one volume."""

    tokens_per_month: float
    self_host_usd: float
    api_usd: float


class HostedBeside(TypedDict):
    """Hosted prices and the break-even against them, or a note that there are none."""

    api: list[Hosted]
    api_note: NotRequired[str]
    breakeven: NotRequired[ApiBreakEven]
    breakeven_curve: NotRequired[list[Volume]]


class Batch(TypedDict):
    """The first offer at another batch."""

    batch: int
    tpot_ms: float
    tokens_per_s_per_gpu: float
    usd_per_mtok: float


class BillInput(TypedDict):
    """A number that enters the bill."""

    name: str
    value: float | None
    unit: str
    low: float | None
    high: float | None
    group: str
    source_id: str
    status: str
    description: str


class BillModel(TypedDict):
    """The bill of one option as inputs and formulas."""

    option_rank: int
    inputs: list[BillInput]
    tables: dict[str, list[float]]
    derived: list[FormulaLine]
    monthly: list[FormulaLine]
    answers: list[FormulaLine]


class ServingPoint(OfferPoint):
    """An offer in the picture of cost against the time of a token."""

    tpot_ms: float
    usd_per_mtok: float
    usd_per_mtok_low: float
    usd_per_mtok_high: float
    usd_per_month: float


class Inference(AnswerFrame, HostedBeside):
    """What serving a model costs, on every offer."""

    kind: Literal["inference"]
    said: list[str]
    options: list[ServingOption]
    offers_ranked: int
    points: NotRequired[list[ServingPoint]]  # every offer, whether one can order it, and the front
    split_rule: str
    tradeoff: list[Batch]
    excluded: list[Excluded]
    remarks: NotRequired[list[str]]  # what only a full view says, not one screen
    not_included: list[str]
    model: BillModel


class Serves(TypedDict):
    """The smallest replica of an accelerator that serves the model."""

    gpu: str
    memory_gb: float
    fits: bool
    gpus: int
    replicas: NotRequired[int]  # that these accelerators hold: one, unless their number was given
    tight: NotRequired[bool]  # needs more of the memory than engines take by default
    layout: ReplicaLayout
    precision: str
    batch: int
    batch_that_fits: int
    ttft_ms: float
    tpot_ms: float
    output_tokens_per_s: float
    output_tokens_per_s_low: float
    output_tokens_per_s_high: float
    bottleneck: str
    memory: MemoryParts
    usd_per_hour: float | None
    offer: str


class ServesNot(TypedDict):
    """An accelerator that does not serve the model, and why."""

    gpu: str
    reason: str


class ServingFit(AnswerFrame):
    """Which accelerators serve a model within the targets."""

    kind: Literal["serving_fit"]
    fits: bool
    said: list[str]
    smallest: Serves | None
    cheapest: Serves | None
    options: list[Serves]
    excluded: list[ServesNot]


class ProcessingOption(Seller, Seen):
    """One offer for a model that gives no tokens out: what a unit costs and how long it takes, slow to fast."""

    rank: int
    gpus: int
    instances: int
    precision: str
    usd_per_unit: float
    usd_per_unit_low: float
    usd_per_unit_high: float
    unit_s: float
    unit_low_s: float
    unit_high_s: float
    usd_per_gpu_hour: float
    usd_per_month: float | None
    memory_gb: float
    batch: int
    bottleneck: str
    unit_kwh: float | None
    source_ids: list[str]
    notes: list[str]


class Processing(AnswerFrame):
    """What an embedding, a reranker, a speech or an image model costs per unit of its own, on every offer."""

    kind: Literal["processing"]
    said: list[str]
    unit: str
    options: list[ProcessingOption]
    offers_ranked: int
    excluded: list[Excluded]
