"""Answers that set others beside each other: what two differ in and why, and models on accelerators."""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from gpucost.answers.common import Answer

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


class RequestChange(TypedDict):
    """An argument that differs."""

    name: str
    before: Any
    after: Any


class Comparison(Answer):
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


class SideBySide(Answer):
    """Models on accelerators, each pair with its cheapest run and its cheapest tokens."""

    kind: Literal["side_by_side"]
    rows: list[Pair]
