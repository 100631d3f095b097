"""Answers about serving a model: cost per token on every offer, and which accelerators serve it at all."""

from typing import Literal, NotRequired, TypedDict

from gpucost.answers.common import AnswerFrame, BillLine, FormulaLine, OfferRow, Seen, Seller, StatedFact

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
    requests_in_flight: NotRequired[float]  # in a replica: those of the load, without one the full batch
    ttft_ms: float | None  # at the load; None where it is beyond capacity
    ttft_unloaded_ms: NotRequired[float]  # of an idle replica
    ttft_loaded_ms: float | None  # at the load, None without one
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


class PoolFigures(TypedDict):
    """Replicas that read prompts and those that write tokens, where each phase has its own."""

    prompt_replicas: float  # whole where a load is asked, else the share of all
    token_replicas: float
    prompt_replica_requests_per_s: float  # that one holds
    token_replica_requests_per_s: float
    transfer_mean_ms: float  # of a prompt's cache, from one to the other


class LevelFigures(TypedDict):
    """A replica under its share of the load, simulated: percentiles with their ranges, and what it holds."""

    requests_per_s: float  # in the busiest hour; the percentiles are those of the whole day
    held_requests_per_s: float  # the highest such rate within the level
    goodput_fraction: float  # of requests that keep every target
    preempted_fraction: float
    prompt_time_fraction: NotRequired[float]  # of the busy time, or of the replicas where prompts have their own
    cached_time_fraction: NotRequired[float]  # that attention to cached tokens takes
    pools: NotRequired[PoolFigures | None]
    figures: dict[str, float | None]  # such as ttft_p95_ms, ttft_p95_ms_low and ttft_p95_ms_high


class KneePoint(TypedDict):
    """The percentiles of a replica of the first offer at one rate."""

    requests_per_s: float
    ttft_ms: float | None
    tpot_ms: float | None


class LevelHours(TypedDict):
    """A replica of the first offer in the hours of a profile in which it is sent about the same."""

    hours: float  # of the profile's
    requests_per_s: float  # of the whole load
    replicas: float  # that serve
    replica_requests_per_s: float
    ttft_ms: float | None  # the percentile that is asked
    tpot_ms: float | None
    goodput_fraction: float


class LevelRow(TypedDict):
    """The cheapest way to keep the service level on one accelerator."""

    gpu: str
    gpus: int
    provider: str
    layout: str
    replicas: int
    prompt_replicas: NotRequired[float | None]  # that read prompts, where phases have replicas of their own
    held_requests_per_s: float  # by one replica
    requests_per_s: float
    ttft_p50_ms: float | None
    ttft_p95_ms: float | None
    ttft_p99_ms: float | None
    tpot_p50_ms: float | None
    tpot_p95_ms: float | None
    tpot_p99_ms: float | None
    e2e_p50_s: float | None
    e2e_p95_s: float | None
    e2e_p99_s: float | None
    goodput_fraction: float
    usd_per_mtok: float
    usd_per_mtok_fresh: NotRequired[float | None]  # of prompt tokens that are read
    usd_per_mtok_cached: NotRequired[float | None]  # of those that the prefix cache holds
    usd_per_mtok_output: NotRequired[float]
    usd_per_1000_requests: float
    usd_per_month: float


class ServedBudget(TypedDict, total=False):
    """What one must have for a service so that nine of ten end below it, and the parts of it."""

    budget_usd: float  # of a month
    budget_usd_per_mtok: float
    expected_usd_per_mtok: float  # with the chance the cost, else that of the fallback
    chance_available_fraction: float  # that it can be had at about its quote
    fallback_usd_per_mtok: float | None  # the high end of what one would order instead


class ServingOption(SoldFleet, EngineSide, ServedBudget):
    """One way to serve the model, with the bill of a month."""

    rank: int
    level: NotRequired[LevelFigures]  # where a service level is asked
    usd_per_1000_requests: NotRequired[float]
    usd_per_mtok_fresh: NotRequired[float | None]  # of prompt tokens that are read, within a service level
    usd_per_mtok_cached: NotRequired[float | None]
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
    always_tokens_per_month: NotRequired[float | None]  # from which own replicas never cost more
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


class ServedOffer(OfferRow):
    """A row of the table of offers of a service: what tokens cost and how long one takes; None where it serves none."""

    tpot_ms: float | None
    usd_per_mtok: float | None
    usd_per_mtok_low: float | None
    usd_per_mtok_high: float | None
    usd_per_month: float | None
    budget_usd: NotRequired[float | None]
    budget_usd_per_mtok: NotRequired[float | None]
    expected_usd_per_mtok: NotRequired[float | None]
    chance_available_fraction: NotRequired[float | None]
    fallback_usd_per_mtok: NotRequired[float | None]


class ServedHighlight(ServedBudget):
    """The best offer of one kind, such as that of the lowest budget or the fastest."""

    kind: str
    provider: str
    seller: str  # the provider's name
    region: str | None
    instance_type: str
    option: str
    term_months: int
    gpu: str
    gpus: int
    instances: int
    replicas: int
    precision: str
    tpot_ms: float
    ttft_ms: float | None
    usd_per_gpu_hour: float
    usd_per_mtok: float
    usd_per_mtok_low: float
    usd_per_mtok_high: float
    usd_per_month: float
    price_observed_on: str
    age_days: int


class ServedRegion(ServedOffer):
    """The first offer of a region, and how many there are."""

    offers: int


class Inference(AnswerFrame, HostedBeside):
    """What serving a model costs, on every offer."""

    kind: Literal["inference"]
    said: list[str]
    stated: NotRequired[list[StatedFact]]  # what one screen says of the first offer and of what is taken as given
    repository: NotRequired[str | None]  # that an engine loads the model from
    longest_tokens: NotRequired[int]  # of a request, that a server is set up for
    options: list[ServingOption]
    offers_ranked: int
    offers: NotRequired[list[ServedOffer]]  # every offer, ranked ones first
    regions: NotRequired[list[ServedRegion]]
    highlights: NotRequired[list[ServedHighlight]]
    split_rule: str
    tradeoff: list[Batch]
    levels: NotRequired[list[LevelRow]]  # of each accelerator the cheapest, where a service level is asked
    knee: NotRequired[list[KneePoint]]
    hours: NotRequired[list[LevelHours]]  # where the load changes over the day
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


class SpeedAtBatch(TypedDict):
    """So many accelerators that serve so many sequences at once: output tokens per second; None where it is too much.

    The price is that of the cheapest hire of them on demand; a million tokens count prompts and outputs.
    """

    gpu: str
    gpus: int
    batch: int  # sequences at once, over all replicas
    precision: str
    replicas: int | None
    layout: ReplicaLayout | None
    output_tokens_per_s: float | None
    output_tokens_per_s_low: float | None
    output_tokens_per_s_high: float | None
    output_tokens_per_s_each: float | None  # that one sequence gets
    usd_per_mtok: float | None
    provider: str | None
    option: str | None
    usd_per_gpu_hour: float | None
    price_observed_on: str | None


class ServingSpeeds(AnswerFrame):
    """How fast accelerators serve a model at batches."""

    kind: Literal["serving_speed"]
    model: str
    prompt_tokens: float
    output_tokens: float
    said: list[str]
    rows: list[SpeedAtBatch]


class ProcessingOption(Seller, Seen):
    """One offer for a model that gives no tokens out: what a unit costs and how long it takes, slow to fast."""

    rank: int
    gpus: int
    instances: int
    precision: str
    usd_per_unit: float
    usd_per_unit_low: float
    usd_per_unit_high: float
    budget_usd_per_unit: NotRequired[float]  # what nine of ten such orders need
    chance_available_fraction: NotRequired[float]
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


class ProcessedOffer(OfferRow):
    """A row of the table of offers of such a model: what a unit costs and how long it takes; None where it cannot."""

    usd_per_unit: float | None
    usd_per_unit_low: float | None
    usd_per_unit_high: float | None
    unit_s: float | None
    usd_per_month: float | None


class Processing(AnswerFrame):
    """What an embedding, a reranker, a speech or an image model costs per unit of its own, on every offer."""

    kind: Literal["processing"]
    said: list[str]
    unit: str
    options: list[ProcessingOption]
    offers_ranked: int
    offers: NotRequired[list[ProcessedOffer]]  # every offer, ranked ones first
