"""The answer about the cheapest mix of capacity for a demand."""

from typing import Annotated, Literal, TypedDict

from gpucost.answers.common import Answer, Layered
from gpucost.answers.ownership import Assumption


class PlanRow(TypedDict):
    """What to sign or use, and when."""

    option: str
    gpus: float | None
    from_month: int | None
    signed_in_month: int | None
    months: int | None
    cost_usd: float
    capital_usd: float


class Pure(TypedDict):
    """One option alone; None where it cannot carry the demand, `note` says why."""

    option: str
    cost_usd: float | None
    note: str


class MixMonth(TypedDict):
    """A month's demand and idle commitments; the GPUs of each supply stand beside these as `<supply>_gpus`."""

    month: int
    demand_gpus: float
    idle_gpus: float
    marginal_usd_per_gpu_month: float


class MixCash(TypedDict):
    """What is paid beside rent, in cash: at the start (month 0) and at the end of each month."""

    month: int
    servers_usd: float  # bought, kept and sold
    energy_usd: float
    people_usd: float
    services_usd: float  # storage, data leaving, licences and people of what is rented


class Marginal(TypedDict):
    """A constraint that binds."""

    constraint: str
    usd_per_gpu_month: float
    months_binding: int
    note: str


class Supply(Layered):
    """A way to rent, as the program saw it."""

    name: str
    kind: str
    usd_per_gpu_hour: float
    term_months: int
    max_gpus: float | None
    max_share_fraction: float
    unit_gpus: float
    lead_time_months: int
    upfront_fraction: float
    stretch_ratio: float
    note: str
    source_id: str


class Mix(Answer):
    """The cheapest mix of owned, reserved, on-demand and spot capacity."""

    kind: Literal["mix"]
    said: list[str]
    cost_usd: float
    plan: list[PlanRow]
    pure: list[Pure]
    best_pure_usd: float | None
    saving_usd: float | None
    months: list[Annotated[MixMonth, float]]
    cash_by_month: list[MixCash]
    marginal_values: list[Marginal]
    gap_fraction: float
    supplies: list[Supply]
    assumptions: list[Assumption]
