"""Which GPU to take: the candidates of a workload, and several workloads together."""

from typing import Literal, TypedDict

from gpucost.answers.common import Answer


class Candidate(TypedDict):
    """A GPU for one workload: what it costs to rent for it and to buy, and whether the budget reaches."""

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
    option: str | None
    days: float | None
    rent_usd: float | None
    buy_usd: float | None
    breakeven_months: float | None
    within: str


class Assigned(TypedDict):
    """What one of several workloads gets."""

    workload: str
    gpu: str
    gpus: int
    provider: str
    cost_usd: float


class Choice(Answer):
    """Which GPU for a workload and a budget."""

    kind: Literal["choice"]
    budget_usd: float | None
    rows: list[Candidate]
    assigned: list[Assigned]
    total_usd: float | None
