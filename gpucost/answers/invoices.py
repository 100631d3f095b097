"""Answers about invoices: what was billed against what was planned, and how much to commit."""

from typing import Literal, NotRequired, TypedDict

from gpucost.answers.common import AnswerFrame


class DifferencePart(TypedDict):
    """A part of the difference between an invoice and a plan, as billed and as used."""

    part: str
    billed_usd: float
    effective_usd: float
    note: str


class Matched(TypedDict):
    """A product that was planned and charged."""

    product: str
    unit: str
    planned_quantity: float
    charged_quantity: float
    planned_effective_usd: float
    charged_effective_usd: float
    planned_billed_usd: float
    charged_billed_usd: float
    difference_usd: float


class Unmatched(TypedDict):
    """Charges that have nothing to be compared with, and why; planned ones that nobody charged are negative."""

    charged_for: str
    why: str
    rows: int
    billed_usd: float
    effective_usd: float


class Showback(TypedDict):
    """What the charges under one value of a tag cost, with their share of what nobody used."""

    tag_value: str
    rows: int
    quantity: float
    unit: NotRequired[str]  # of the quantity; other units are left out of it
    direct_usd: float
    idle_usd: float
    total_usd: float
    share_fraction: float


class Totals(TypedDict):
    """What was planned for the period, and what all charges come to; `unit_usd` amounts are effective unless named."""

    planned_billed_usd: float
    planned_effective_usd: float
    charged_billed_usd: float
    charged_effective_usd: float
    list_usd: float | None
    contracted_usd: float | None  # None where the invoice does not say it
    billed_difference_usd: float
    effective_difference_usd: float


class Rates(TypedDict):
    """The exchange rates of an invoice's currency in a month."""

    currency: str
    month: NotRequired[str]
    budget_usd_per_unit: float
    paid_usd_per_unit: float
    paid_rate_on: NotRequired[str]  # the day of the rate; none where it was given


class Forecast(TypedDict):
    """What use costs until the end of the year, or of the plan, at the pace of the last weeks."""

    from_day: str
    until_day: str
    days_left: int
    so_far_usd: float
    rest_usd: float
    total_usd: float
    total_low_usd: float
    total_high_usd: float
    planned_usd: float | None
    sentence: str


class Anomaly(TypedDict):
    """Days in a row on which a product is far from its plan."""

    product: str
    from_day: str
    until_day: str
    charged_usd: float
    planned_usd: float
    difference_usd: float
    sentence: str


class Reconciliation(AnswerFrame):
    """An invoice against a plan, or shown back by a tag."""

    kind: Literal["reconciliation"]
    headline: str
    rows_read: int
    period_from: str
    period_until: str
    totals: Totals
    parts: list[DifferencePart]
    products: list[Matched]
    unmatched: list[Unmatched]
    anomalies: NotRequired[list[Anomaly]]
    forecast: NotRequired[Forecast | None]
    currencies: list[Rates]
    showback: list[Showback]
    idle_by: str


class CommitLevel(TypedDict):
    """A commitment of so many GPUs: its cost at the demand of the history, and its regret at a low and a high one."""

    level: str
    gpus: float
    usd_per_month: float
    covered_fraction: float
    unused_fraction: float
    regret_low_usd_per_month: float
    regret_high_usd_per_month: float


class StackLine(TypedDict):
    """A line of the bill of the history under the agreements that hold."""

    line: str
    cost_usd: float


class Rung(TypedDict):
    """A commitment, held or to be bought, and when it ends."""

    name: str
    held: bool
    gpus: float
    from_day: str
    until_day: str
    usd_per_month: float


class CommittedMonth(TypedDict):
    """The GPUs that are committed in a month, and those whose commitment ends in it."""

    month: str
    held_gpus: float
    committed_gpus: float
    ending_gpus: float
    ending_usd_per_month: float


class Demand(TypedDict):
    """The history of use, by the hour."""

    hours: float
    mean_gpus: float
    p10_gpus: float
    p50_gpus: float
    p90_gpus: float
    peak_gpus: float


class Commitment(AnswerFrame):
    """How much to commit for a demand, and what the agreements that hold make of it."""

    kind: Literal["commitment"]
    headline: str
    usage: Demand
    usd_per_gpu_hour: float
    committed_usd_per_gpu_hour: float
    critical_fraction: float
    term_months: int
    advised_gpus: float
    held_gpus: float
    saving_usd_per_month: float
    levels: list[CommitLevel]
    bill: list[StackLine]
    rungs: list[Rung]
    by_month: list[CommittedMonth]
    prices: list[str]
