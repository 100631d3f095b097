"""Answers about owning: rent or buy, the statements by fiscal period, the cheapest mix of capacity."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from gpucost.answers.common import AnswerFrame, AssumedValue, FormulaLine, LayeredPrice, StatedFact
from gpucost.options import OPTIONS

# --- Statements of owning: cash, profit and loss, and the balance sheet, by fiscal period.


class StatementPeriod(TypedDict):
    """Cash, profit and loss of a fiscal period, and the balance sheet at its end; costs are positive."""

    period: str
    cash_purchase_usd: float
    cash_proceeds_usd: float
    cash_running_usd: float
    cash_financing_usd: float
    cash_tax_usd: float
    cash_own_usd: float
    cash_rent_usd: float
    book_running_usd: float
    book_depreciation_usd: float
    book_lease_usd: float
    book_interest_usd: float
    book_disposal_usd: float
    book_tax_usd: float
    book_own_usd: float
    book_rent_usd: float
    tax_depreciation_usd: float
    end_prepaid_usd: NotRequired[float]
    end_hardware_usd: float
    end_facility_usd: float
    end_right_of_use_usd: float  # of what is leased
    end_assets_usd: float
    end_payable_usd: NotRequired[float]
    end_loan_usd: float
    end_finance_lease_usd: float
    end_lease_liability_usd: float
    end_deferred_tax_usd: float
    end_debts_usd: float
    end_equity_usd: float


class Statements(TypedDict):
    """Statements of owning by fiscal year, quarter and month."""

    fiscal_year_end_month: int
    lease_standard: str
    years: list[StatementPeriod]
    quarters: list[StatementPeriod]
    months: list[StatementPeriod]


# --- The answer about owning: rent or buy.


class Worth(TypedDict):
    """Present values: of owning, of renting, of the difference, and of each further option by its name."""

    own: float
    rent: float
    saving: float


class Levels(TypedDict):
    """Levelised prices: the constant price whose discounted payments equal the present value of the costs."""

    levelised_usd_per_gpu_hour: float | None  # of hours that jobs hold
    levelised_usd_per_gpu_hour_owned: float | None  # of hours that exist
    levelised_usd_per_gpu_hour_productive: float | None  # of hours not lost to failures and restarts
    levelised_usd_per_mtok: float | None
    levelised_rent_usd_per_gpu_hour: float | None
    levelised_rent_usd_per_gpu_hour_owned: float | None
    levelised_rent_usd_per_gpu_hour_productive: float | None
    levelised_rent_usd_per_mtok: float | None


class BreakEven(TypedDict):
    """Where owning and renting cost the same; a figure that does not exist has its reason."""

    utilisation_fraction: float | None
    hours_per_gpu_month: float | None
    usd_per_gpu_hour: float | None
    months: int | None  # after so many owning has cost no more than renting
    gpus: int | None
    utilisation_fraction_reason: NotRequired[str]
    usd_per_gpu_hour_reason: NotRequired[str]
    months_reason: NotRequired[str]
    gpus_reason: NotRequired[str]


class MonteCarlo(TypedDict):
    """The spread of both sides over draws of every uncertain input."""

    draws: int
    seed: int
    inputs: int
    saving_p10_usd: NotRequired[float]
    saving_p50_usd: float
    saving_p90_usd: NotRequired[float]
    own_p10_usd: NotRequired[float]
    own_p50_usd: float
    own_p90_usd: NotRequired[float]
    rent_p10_usd: NotRequired[float]
    rent_p50_usd: float
    rent_p90_usd: NotRequired[float]
    levelised_p10_usd_per_gpu_hour: NotRequired[float]
    levelised_p50_usd_per_gpu_hour: float
    levelised_p90_usd_per_gpu_hour: NotRequired[float]
    probability_buy_wins_fraction: float


class Rival(TypedDict):
    """An option against the cheapest of the others: what it saves, where the two cost the same, how often it wins."""

    name: str
    saving_usd: float
    breakeven_usd_per_gpu_hour: float | None
    breakeven_utilisation_fraction: float | None
    saving_p10_usd: NotRequired[float]
    saving_p50_usd: NotRequired[float]
    saving_p90_usd: NotRequired[float]
    probability_wins_fraction: NotRequired[float]


class RentLeg(TypedDict):
    """A part of a way to rent: the inputs that it changes, and how often it counts."""

    weight: float
    changes: dict[str, Any]


class Confidence(TypedDict):
    """How sure the answer is: whether it is a tie, how often it holds, what it hangs on, and what delivery is taken."""

    toss_up: bool
    wins_of_ten: int | None  # futures in which the cheapest way stays ahead of the next; None without draws
    hangs_on: list[str]  # inputs that turn the answer alone, within their ranges
    wait_weeks: float | None  # usual from order to use, where none was given
    saving_after_wait_usd: float | None  # of the cheapest way against the next, then
    sentence: str
    delivery: NotRequired[str]  # the end of the sentence: what is taken of delivery
    too_late: NotRequired[bool]  # the usual wait is longer than what is compared


class OwnershipOption(LayeredPrice):
    """A way to get the hours: own, rent as asked, other terms, a blend of the plan, a hosted API."""

    name: str
    npv_usd: float
    levelised_usd_per_gpu_hour: float | None
    cash_usd: float
    peak_month_usd: float
    contract_exposure_usd: float
    terms: str
    option: NotRequired[str]
    usd_per_gpu_hour: NotRequired[float]
    provider: NotRequired[str]
    seller: NotRequired[str]  # the name under which people know it
    offer_id: NotRequired[str]
    price_observed_on: NotRequired[str]
    age_days: NotRequired[int]
    source_id: NotRequired[str]
    note: NotRequired[str]
    usd_per_mtok: NotRequired[float]
    legs: NotRequired[list[RentLeg]]
    rival: NotRequired[Rival]


TIE = "Toss-up: {} and {} cost the same within what is known"  # of the two cheapest options, in every medium


def promised(rows: Iterable[OwnershipOption]) -> list[OwnershipOption]:
    """Return the options whose capacity is promised, the cheapest first; a purchase counts as it is financed."""
    # a purchase that is financed stands there twice, once as if it were paid in cash
    options = [row for row in rows if row["name"] != "own_in_cash" and not interruptible(row)]
    return sorted(options, key=lambda row: row["npv_usd"])


def leading(rows: Iterable[OwnershipOption]) -> list[OwnershipOption]:
    """Return the two cheapest options that are promised; where one alone is, the two cheapest of all."""
    options = list(rows)
    if len(best := promised(options)[:2]) == 2:
        return best
    counted = (row for row in options if row["name"] != "own_in_cash")
    return sorted(counted, key=lambda row: row["npv_usd"])[:2]


def interruptible(row: Mapping[str, Any]) -> bool:
    """Tell whether the capacity of an option is not promised, by how it is bought: what it is called says nothing."""
    return row.get("option") in OPTIONS and OPTIONS[row["option"]].interruptible


class CostLine(TypedDict):
    """One line of a side, over the whole comparison."""

    side: Literal["own", "rent"]
    name: str
    description: str
    total_usd: float
    npv_usd: float
    levelised_usd_per_gpu_hour: float | None


class Flows(TypedDict):
    """Cash of a period; the lines of both sides stand beside these by their names."""

    own_total_usd: float
    rent_total_usd: float
    saving_usd: float


class CashMonth(Flows):
    """Cash of a month; month 0 is the start."""

    month: int
    on: str
    saving_cumulative_usd: float


class CashYear(Flows):
    """Cash of a year; year 0 is the start."""

    year: int


class PeakCash(TypedDict):
    """The most that is paid in one month, and the most that is out before owning has paid back."""

    own: float
    rent: float
    funding_until_payback: float


class Financing(TypedDict):
    """The purchase paid in cash, and what its loan or lease adds, valued at the cost of debt after tax."""

    kind: str
    own_in_cash_usd: float
    saving_in_cash_usd: float
    adds_usd: float  # what the financing adds to the worth of buying
    debt_rate_fraction: float
    equity_irr_fraction: float | None


class LifeCase(TypedDict):
    """Owning over a useful life: its cost, its depreciation in the books, and what the books hold above resale."""

    life_years: int
    npv_own_usd: float
    npv_rent_usd: float
    saving_usd: float
    levelised_usd_per_gpu_hour: float | None
    own_usd_per_owned_gpu_hour: float | None
    book_depreciation_usd_per_year: float
    impairment_usd: float  # the most by which book value exceeds resale value at a year's end
    impairment_year: int | None
    impairment_at_low_resale_usd: float


class LenderYear(TypedDict):
    """A year of debt: the cash available in the months with debt service, and what stands at the year's end."""

    year: int
    cash_available_usd: float
    debt_service_usd: float
    interest_usd: float
    principal_usd: float
    dscr_ratio: float | None  # cash available ÷ debt service
    debt_owed_usd: float
    resale_value_usd: float
    ltv_fraction: float | None  # debt owed ÷ resale value


class Covenant(TypedDict):
    """A limit that the plan states, its worst month, and the first month that breaks it."""

    name: Literal["min_dscr_ratio", "max_ltv_fraction"]
    limit: float
    worst: float
    worst_month: int
    headroom_fraction: float | None  # by which the cash available, or the resale value, may fall in that month
    breached_month: int | None
    breached_on: str | None
    breached_months: int


class LenderStrain(TypedDict):
    """Coverage and debt to value under worse news, with the debt as signed."""

    name: str
    lowest_dscr_ratio: float | None
    highest_ltv_fraction: float


class Lender(TypedDict):
    """What a lender asks: coverage over the last twelve months, debt to value, covenants."""

    financing: str
    lent_usd: float
    lent_of_purchase_fraction: float
    rate_fraction: float
    term_months: int  # with debt service
    repayment: str
    income: str  # what pays the debt
    lowest_dscr_ratio: float | None
    lowest_dscr_month: int | None
    llcr_ratio: float | None  # cash available over the loan's life, at its rate ÷ the loan
    highest_ltv_fraction: float | None
    highest_ltv_month: int | None
    settled_by_sale_usd: float
    years: list[LenderYear]
    covenants: list[Covenant]
    strains: list[LenderStrain]


class TaxYear(TypedDict):
    """Income tax (negative: saved) and depreciation of a year."""

    year: int
    own_tax_usd: float
    rent_tax_usd: float
    depreciation_usd: float


class TaxView(TypedDict):
    """The comparison on the other side of income tax."""

    view: str
    tax_rate_fraction: float
    depreciation: str
    own_usd: float
    rent_usd: float
    saving_usd: float
    by_year: list[TaxYear]


class ScopeRow(TypedDict):
    """What each side includes."""

    item: str
    own: bool | float
    rent: bool | float
    unequal: bool
    note: str


class Sunk(TypedDict):
    """What an allocated hour of capacity costs that is owned already."""

    age_months: float
    sale_today_usd: float
    loaded_usd_per_gpu_hour: float | None
    avoidable_usd_per_gpu_hour: float | None
    incremental_usd_per_gpu_hour: float


class ScenarioRow(TypedDict):
    """The comparison with some inputs changed."""

    name: str
    description: str
    npv_own_usd: float
    npv_rent_usd: float
    saving_usd: float
    levelised_usd_per_gpu_hour: float
    buy_wins: bool
    changes: dict[str, Any]


class Sensitivity(TypedDict):
    """One input moved to its ends, alone."""

    name: str
    unit: str
    low: float
    value: float
    high: float
    saving_at_low_usd: float
    saving_at_high_usd: float
    swing_usd: float
    own_at_low_usd_per_gpu_hour: float
    own_at_high_usd_per_gpu_hour: float
    flips: bool  # the other side is cheaper at one of the ends
    flip_value: float | None  # where both cost the same


class TwoWay(TypedDict):
    """What owning saves over a grid of two inputs."""

    x: str
    y: str
    x_values: list[float]
    y_values: list[float]
    saving_usd: list[list[float]]


class UtilisationPoint(TypedDict):
    """What a GPU-month costs on one side at a utilisation, and what it gains by a dollar of rental price."""

    side: str
    utilisation_fraction: float
    usd_per_gpu_month: float
    more_per_rent_usd: float


class Carbon(TypedDict):
    """The carbon of owning over the comparison."""

    energy_kwh: float
    operational_location_kgco2e: float
    operational_market_kgco2e: float
    embodied_kgco2e: float
    total_location_kgco2e: float
    rented_energy_kwh: float


class MoneyYear(TypedDict):
    """Cash of a year in another currency; year 0 is the start."""

    year: int
    own: float
    rent: float
    saving: float


class Currency(TypedDict):
    """Cash and present values in another currency."""

    currency: str
    usd_per_unit: float
    usd_per_unit_on: str
    forward: str
    npv_own: float
    npv_rent: float
    cash_own: list[float]
    cash_rent: list[float]
    wacc_fraction: NotRequired[float]
    discounting: NotRequired[str]
    by_year: NotRequired[list[MoneyYear]]
    rates: NotRequired[list[float]]


class AssumptionRow(AssumedValue):
    """An input of the comparison; `counts` is False where an alternative of the same group counts instead."""

    group: str
    description: str
    counts: bool
    observed: NotRequired[str]


class ModelInput(AssumptionRow):
    """An input and what it may be."""

    choices: list[str]
    minimum: float | None
    maximum: float | None


class DescribedLine(FormulaLine):
    """A derived number in words."""

    description: str


class MonthlyLine(TypedDict):
    """A line by month."""

    name: str
    unit: str
    formula: str
    description: str
    side: str
    values: list[float]


class CashModel(TypedDict):
    """The comparison as inputs and formulas; `formulas` is the version of ours that it was computed by."""

    formulas: str
    months: int
    inputs: list[ModelInput]
    tables: dict[str, list[float]]
    derived: list[DescribedLine]
    monthly: list[MonthlyLine]
    answers: list[DescribedLine]


class ContractEnd(TypedDict):
    """A contract, term or discount that ends within a comparison, and what follows it."""

    option: str
    ends_on: str  # the last day
    month: float  # from the start
    usd_per_gpu_hour: float
    then: str
    then_usd_per_gpu_hour: float | None  # None where nothing follows


class RentedHours(TypedDict):
    """The GPU-hours that a line pays for in a month."""

    month: int
    line: str
    gpu_hours: float


class RentedCapacity(TypedDict):
    """The hours that are rented, by the accelerator that a bill names."""

    gpu: str
    months: list[RentedHours]


class Tco(AnswerFrame, Levels):
    """Own or rent."""

    kind: Literal["tco"]
    headline: NotRequired[str]
    stated: NotRequired[list[StatedFact]]
    remarks: NotRequired[list[str]]  # what only a full view says, not one screen
    settings: Mapping[str, Any]
    conventions: str
    npv_usd: Annotated[Worth, float]
    financing: NotRequired[Financing | None]
    irr_fraction: float | None
    payback_months: float | None
    discounted_payback_months: float | None
    breakeven: BreakEven
    by_utilisation: list[UtilisationPoint]
    probability_buy_wins_fraction: float | None
    monte_carlo: MonteCarlo | None
    confidence: NotRequired[Confidence]
    options: list[OwnershipOption]
    contract_ends: NotRequired[list[ContractEnd]]
    lines: list[CostLine]
    cash_flows: list[Annotated[CashMonth, float]]
    rented: NotRequired[RentedCapacity | None]
    by_year: list[Annotated[CashYear, float]]
    statements: NotRequired[Statements]
    peak_cash_usd: PeakCash
    lender: NotRequired[Lender | None]
    lives: NotRequired[list[LifeCase]]
    tax: TaxView
    scope: list[ScopeRow]
    sunk: Sunk
    scenarios: list[ScenarioRow]
    sensitivity: list[Sensitivity]
    two_way: TwoWay
    carbon: Carbon
    currency: Currency | None
    assumptions: list[AssumptionRow]
    model: CashModel


# --- The answer about the cheapest mix of capacity for a demand.


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
    """What is paid, in cash: at the start (month 0) and at the end of each month."""

    month: int
    servers_usd: float  # bought, kept and sold
    energy_usd: float
    people_usd: float
    services_usd: float  # storage, data leaving, licences and people of what is rented
    rent_usd: NotRequired[float]
    financing_usd: NotRequired[float]  # loans and leases, less what they pay
    tax_usd: NotRequired[float]
    total_usd: NotRequired[float]


class MixCurrency(TypedDict):
    """The cost of a mix in another currency."""

    currency: str
    usd_per_unit: float
    usd_per_unit_on: str
    cost: float
    wacc_fraction: float
    discounting: str


class Marginal(TypedDict):
    """A constraint that binds."""

    constraint: str
    usd_per_gpu_month: float
    months_binding: int
    note: str


class SupplyRow(LayeredPrice):
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
    until_months: NotRequired[float | None]
    after_usd_per_gpu_hour: NotRequired[float | None]
    note: str
    seller: NotRequired[str]  # the name under which people know who rents it out, where the catalog does
    source_id: str


class Mix(AnswerFrame):
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
    supplies: list[SupplyRow]
    contract_ends: NotRequired[list[ContractEnd]]
    currency: NotRequired[MixCurrency | None]
    assumptions: list[AssumptionRow]
