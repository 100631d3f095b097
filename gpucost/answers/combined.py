"""Answers that bring several together: comparisons, choices among GPUs, scenarios, sweeps."""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from gpucost.answers.common import AnswerFrame, StatedFact

# --- Answers that set others beside each other: what two differ in and why, and models on accelerators.

Side = Mapping[str, str | float | None]  # what leads one of two answers: who, where, how fast, for how much


class Change(TypedDict):
    """A cause of a difference and its effect, in the unit of the comparison; effects add up to the difference."""

    factor: str
    name: str
    before: str | float | None
    after: str | float | None
    effect: float
    note: str
    own_effect_usd: NotRequired[float]  # of owning against renting: on either side
    rent_effect_usd: NotRequired[float]


class Differs(TypedDict):
    """Something that two answers do not share; `unit` is that of both values."""

    name: str
    before: str | float | None
    after: str | float | None
    unit: str


class AtBatch(TypedDict):
    """The speeds of two answers at one number of sequences a step, and whose number it is."""

    global_batch: int
    first_tokens_per_s_per_gpu: float
    second_tokens_per_s_per_gpu: float
    longer_fraction: float  # that the second takes for the same tokens
    used_for: str


class RequestChange(TypedDict):
    """An argument that differs."""

    name: str
    before: Any
    after: Any


class Comparison(AnswerFrame):
    """Why two answers differ: `figure` is compared, `what_changed` comes before its effects."""

    kind: Literal["comparison"]
    subject: str
    figure: str
    unit: str
    first: str  # what the two are called
    second: str
    before: Side
    after: Side
    before_value: float
    after_value: float
    difference: float
    what_changed: list[Differs]
    batches: NotRequired[list[AtBatch]]  # of two speeds, where they hang on the sequences of a step
    changes: list[Change]
    request_changes: list[RequestChange]


class Pair(TypedDict):
    """A model on an accelerator: the cheapest run, and the cheapest tokens; None where there is no way."""

    model: str
    gpu: str
    gpus: int | None
    days: float | None
    cost_usd: float | None
    tokens_per_s_per_gpu: float | None
    provider: str | None
    option: str | None
    usd_per_gpu_hour: float | None
    times_first: float | None
    serving_gpus: int | None
    usd_per_mtok: float | None
    tpot_ms: float | None
    serving_provider: str | None
    note: str
    cost_low_usd: NotRequired[float | None]
    cost_high_usd: NotRequired[float | None]
    price_observed_on: NotRequired[str | None]
    usd_per_mtok_low: NotRequired[float | None]
    usd_per_mtok_high: NotRequired[float | None]
    serving_option: NotRequired[str | None]
    serving_usd_per_gpu_hour: NotRequired[float | None]
    serving_price_observed_on: NotRequired[str | None]
    source_ids: NotRequired[list[str]]
    last_price_on: NotRequired[str | None]  # where nobody sells it: the day of the newest price on record
    tokens_per_kwh: NotRequired[float | None]  # of training, servers and building among it
    tokens_per_s_per_w: NotRequired[float | None]
    serving_tokens_per_kwh: NotRequired[float | None]


class SideBySide(AnswerFrame):
    """Models on accelerators, each pair with its cheapest run and its cheapest tokens."""

    kind: Literal["side_by_side"]
    rows: list[Pair]


# --- Which GPU to take: the candidates of a workload, and several workloads together.


class Candidate(TypedDict):
    """A GPU for one workload: what it costs to rent for it and to buy, and whether the budget reaches."""

    rank: NotRequired[int]  # in the order of the question that it answers, whatever the budget reaches
    workload: str
    purpose: str
    model: str
    gpu: str
    card: str
    memory_gib: float
    ecc: bool | None
    link: str
    warranty: str
    gpus: int
    provider: str
    seller: NotRequired[str]  # the name under which people know the provider
    option: str | None
    term_months: NotRequired[int]
    chance_available_fraction: NotRequired[float | None]
    days: float | None
    rent_usd: float | None
    budget_usd: NotRequired[float | None]  # what nine of ten such rents need
    usd_per_gpu_hour: NotRequired[float | None]
    price_observed_on: NotRequired[str | None]
    age_days: NotRequired[int | None]
    price_book: NotRequired[str | None]
    rent_low_usd: NotRequired[float | None]
    rent_high_usd: NotRequired[float | None]
    source_ids: NotRequired[list[str]]
    buy_usd: float | None
    buy_seen: NotRequired[str | None]  # year, month or day of the price to buy
    answer_tokens_per_s: NotRequired[float | None]  # of one answer in int4, at a desk
    breakeven_months: float | None
    tokens_per_s: NotRequired[float | None]  # of cards together, in fine-tuning with QLoRA
    within: str


class Assigned(TypedDict):
    """What one of several workloads gets."""

    workload: str
    gpu: str
    gpus: int
    provider: str
    seller: NotRequired[str]
    cost_usd: float
    days: NotRequired[float | None]  # of a run


class SameJob(TypedDict):
    """The same job on an accelerator that many sell, on demand: what it costs and takes beyond the recommended one."""

    gpu: str
    gpus: int
    provider: str
    seller: NotRequired[str]
    days: float | None
    rent_usd: float
    more_usd: float  # of budget
    more_days: float | None
    price_observed_on: str | None
    sellers: int


class Choice(AnswerFrame):
    """Which GPU for a workload and a budget."""

    kind: Literal["choice"]
    budget_usd: float | None
    rows: list[Candidate]
    assigned: list[Assigned]
    total_usd: float | None
    rivals: NotRequired[list[SameJob]]  # the recommended one first
    stated: NotRequired[list[StatedFact]]  # what it takes as given


# --- The answers of a scenario file, one after the other.


class ScenarioPart(TypedDict):
    """One part and its answer, which says by its `kind` what it is."""

    name: str
    part: str  # training, serving, ownership or mix
    payload: Mapping[str, Any]


class ScenarioAnswer(AnswerFrame):
    """The answers of a scenario."""

    kind: Literal["scenario"]
    name: str
    description: str
    parts: list[ScenarioPart]


# --- The answer of a sweep: many cases of one question, a row each.

Row = Mapping[str, Any]  # what was asked, by the names of the arguments, and the figures of the question's answer


class Reason(TypedDict):
    """Why cases have no answer, and how many."""

    reason: str
    cases: int


class HeatCell(TypedDict):
    """The least value among the cases that share two arguments."""

    x: str | float
    y: str | float
    value: float | None
    cases: int


class Heat(TypedDict):
    """What the best case comes to over two of the arguments."""

    x: str
    y: str
    value: str
    cells: list[HeatCell]


class Sweep(AnswerFrame):
    """Many cases: the first rows, the best ones, and where all rows are; `axes` counts the values of each argument.

    `best` is the first of all where all cases do the same work; `best_of_each` holds the first of each kind of work.
    """

    kind: Literal["sweep"]
    gpucost_version: str
    question: str
    axes: dict[str, int]
    cases: int
    answered: int
    best: Row | None
    best_of_each: NotRequired[list[Row]]
    front: list[Row]
    heat: Heat | None
    reasons: list[Reason]
    rows: list[Row]
    file: str | None
