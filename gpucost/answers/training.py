"""Answers about a training run: the estimate, and a rerun of one."""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from gpucost.answers.common import Answer, Assumed, BillLine, Excluded, LayoutRow, Seen, Seller
from gpucost.answers.comparison import Change
from gpucost.answers.speed import Feeding, Roofline

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


class Outcome(TypedDict):
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

    cash_usd: float
    amortised_usd: float
    exposure_usd: float
    unused_usd: float


class Interruptions(TypedDict):
    """How interruptions lengthen the run: hours paid and calendar days apart."""

    interruptions: float
    interruption_rate_measured: bool
    checkpoint_interval_hours: float | None
    stretch_paid_ratio: float
    stretch_paid_low_ratio: float
    stretch_paid_high_ratio: float
    stretch_calendar_ratio: float
    stretch_spread_ratio: float
    goodput_fraction: float


class Elsewhere(TypedDict):
    """Another region in which an option is sold."""

    region: str | None
    offer_id: str
    usd_per_gpu_hour: float
    cost_usd: float
    age_days: int


class TrainingOption(Seller, Speed, Outcome, Seen, Contract, Interruptions):
    """One way to buy the run, with its bill; `components` are the seconds of a step by part."""

    rank: int
    gpus: int
    nodes: int
    usd_per_gpu_hour: float
    components: dict[str, float]
    source_ids: list[str]
    lines: list[BillLine]
    notes: list[str]
    factors: Factors


class RankedOption(TrainingOption):
    """An option, and where else it is sold."""

    also_in: list[Elsewhere]


class Workload(TypedDict):
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
    model_flop_per_token: float
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
    """The cheapest option of another way to buy."""

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


class Highlight(TypedDict):
    """The best offer of one kind, such as the cheapest on demand or the fastest."""

    kind: str
    provider: str
    region: str | None
    option: str
    term_months: int
    gpu: str
    gpus: int
    days: float
    cost_usd: float
    cost_low_usd: float
    cost_high_usd: float
    age_days: int


class PriceMonth(TypedDict):
    """On-demand prices of one accelerator in a month."""

    month: str
    usd_per_gpu_hour: float
    low_usd_per_gpu_hour: float
    high_usd_per_gpu_hour: float
    prices: int


class Estimate(Answer):
    """What a training run costs, on every offer; `facts` hold what a rerun needs."""

    kind: Literal["estimate"]
    gpucost_version: str
    calibration: str
    workload: Workload
    headline: NotRequired[str]
    highlights: NotRequired[list[Highlight]]
    options: list[RankedOption]
    options_found: int
    offers_found: int
    scaling: list[Size]
    alternatives: list[Alternative]
    drivers: list[Driver]
    excluded: list[Excluded]
    remarks: NotRequired[list[str]]  # what only a full view says, not one screen
    assumptions: list[Assumed]
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


class Rerun(Answer):
    """Whether a saved estimate comes out the same again."""

    kind: Literal["rerun"]
    gpucost_version: str
    equal: bool
    reasons: list[str]
    differences_found: int
    differences: list[Difference]
    changes: list[Change]
