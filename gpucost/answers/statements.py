"""Statements of owning: cash, profit and loss, and the balance sheet, by fiscal period."""

from typing import NotRequired, TypedDict


class Period(TypedDict):
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
    end_right_of_use_usd: float
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
    years: list[Period]
    quarters: list[Period]
    months: list[Period]
