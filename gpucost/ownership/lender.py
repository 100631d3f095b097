"""The lender's view of a purchase on credit: coverage and debt to value by year, covenants, and what strains them."""

from collections.abc import Mapping
from datetime import date
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpucost.answers import ownership as shape
from gpucost.formula.arrays import evaluate_all
from gpucost.money import lender, statements
from gpucost.money.comparison import evaluate_months
from gpucost.ownership.alternatives import monthly, scalar
from gpucost.ownership.assemble import OwnershipCase

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_INCOMES = {
    "rent_saved": "the rent that owning saves; owning has no income of its own",
    "per_gpu_hour": "what an allocated GPU-hour earns, as the plan states it",
    "per_mtok": "what a million tokens earns, as the plan states it",
}
_NOTHING_USD = 0.005  # less than a cent is what rounding leaves of a debt


def view(case: OwnershipCase, values: Mapping[str, Any], days: list[date]) -> shape.Lender | None:
    """Return what a lender asks of a purchase by loan or by a lease that ends in a purchase; `days` are the months'."""
    kind = str(case.assumptions["financing"].value)
    if kind not in ("loan", "lease"):
        return None
    lines = _lines(values)
    service, coverage, ltv = (monthly(lines, name) for name in ("debt_service_usd", "dscr_ratio", "ltv_fraction"))
    # Coverage counts in months with service, debt to value while more than rounding is owed.
    due, owed = service > 0, monthly(lines, "debt_owed_usd") > _NOTHING_USD
    lowest, highest = _worst_month(np.where(due, -coverage, -np.inf)), _worst_month(np.where(owed, ltv, -np.inf))
    # A loan that follows the cash available is lent by formula; what a lease pays for is the purchase.
    lent = monthly(lines, "loan_lent_usd")[0] if kind == "loan" else scalar(values, "lease_usd")
    arrival = int(scalar(values, "arrival_month"))
    cash, rate = monthly(lines, "serviced_cash_usd"), case.number(f"{kind}_rate_fraction") / 12
    # LLCR: the cash of the loan's life at its own rate, at the arrival, ÷ what is lent
    worth = float(np.sum(cash * (1 + rate) ** (arrival - np.arange(cash.size))))
    # The years in which debt is due or outstanding; coverage of a year is that of its months with service.
    interest, debt, value = (monthly(lines, name) for name in ("interest_usd", "debt_owed_usd", "pledged_value_usd"))
    year = np.ceil(np.arange(service.size) / 12).astype(int)
    years: list[shape.LenderYear] = []
    for number in range(1, int(year.max()) + 1):
        members = year == number
        last = int(np.flatnonzero(members)[-1])
        due_usd, paid = float(service[members].sum()), float(interest[members].sum())
        if due_usd <= 0 and debt[last] <= _NOTHING_USD:
            continue
        available = float(cash[members].sum())
        years.append(
            {
                "year": number,
                "cash_available_usd": available,
                "debt_service_usd": due_usd,
                "interest_usd": paid,
                "principal_usd": due_usd - paid,
                "dscr_ratio": available / due_usd if due_usd > 0 else None,
                "debt_owed_usd": float(debt[last]),
                "resale_value_usd": float(value[last]),
                "ltv_fraction": float(debt[last] / value[last]) if value[last] > 1 else None,  # a dollar is worthless
            }
        )
    return {
        "financing": kind,
        "lent_usd": float(lent),
        "lent_of_purchase_fraction": float(lent) / scalar(values, "capex_usd"),
        "rate_fraction": rate * 12,
        "term_months": int(np.count_nonzero(due)),
        "repayment": str(case.assumptions["loan_repayment"].value) if kind == "loan" else "level",
        "income": _INCOMES[str(case.assumptions["income_basis"].value)],
        "lowest_dscr_ratio": None if lowest is None else float(coverage[lowest]),
        "lowest_dscr_month": lowest,
        "llcr_ratio": worth / float(lent) if lent > _NOTHING_USD else None,
        "highest_ltv_fraction": None if highest is None else float(ltv[highest]),
        "highest_ltv_month": highest,
        "settled_by_sale_usd": float(monthly(lines, f"own_{kind}_settled_usd").sum()),
        "years": years,
        "covenants": _covenants(case, coverage, ltv, due, owed, days),
        "strains": _strains(case, lines),
    }


def _lines(values: Mapping[str, Any]) -> dict[str, Any]:
    lines = dict(values)
    evaluate_all((*statements.MONTHLY, *lender.MONTHLY), lines)
    return lines


def _worst_month(values: Array) -> int | None:
    """Return the first month of the largest value, but for rounding; None where there is none."""
    return int(np.argmax(np.round(values, 9))) if np.isfinite(values).any() else None


def _covenants(
    case: OwnershipCase, coverage: Array, ltv: Array, due: Flags, owed: Flags, days: list[date]
) -> list[shape.Covenant]:
    """Return the covenants that the plan states: the worst month, how far it is from the limit, and the first breach.

    Headroom is the share by which the cash available, or the resale value, may fall in that month.
    """
    # A coverage must not fall below its limit, debt to value not rise above: the sign turns one into the other.
    tests: tuple[tuple[Literal["min_dscr_ratio", "max_ltv_fraction"], Array, Flags, int], ...] = (
        ("min_dscr_ratio", coverage, due, 1),
        ("max_ltv_fraction", ltv, owed, -1),
    )
    rows: list[shape.Covenant] = []
    for name, series, tested, sign in tests:
        limit = case.assumptions[name].value
        if limit is None or not tested.any():
            continue
        bound = float(limit)
        # rounded, the first of equal months is the worst; a limit is broken by more than rounding
        worst = int(np.argmin(np.round(np.where(tested, sign * series, np.inf), 9)))
        broken = np.flatnonzero(tested & (sign * series < sign * bound - 1e-9))
        level = float(series[worst])
        headroom = 1 - (bound / level if sign > 0 else level / bound) if level > 0 and bound > 0 else None
        rows.append(
            {
                "name": name,
                "limit": bound,
                "worst": level,
                "worst_month": worst,
                "headroom_fraction": headroom,
                "breached_month": int(broken[0]) if broken.size else None,
                "breached_on": str(days[int(broken[0])]) if broken.size else None,
                "breached_months": int(broken.size),
            }
        )
    return rows


def _strains(case: OwnershipCase, lines: Mapping[str, Any]) -> list[shape.LenderStrain]:
    """Return coverage and debt to value under worse news, the debt as it was signed."""
    # Income first: where owning saves a rent, the rent falls; a price that is stated is halved.
    worse: list[tuple[str, dict[str, Any]]] = []
    if case.assumptions["income_basis"].value == "rent_saved":
        outlook = case.assumptions["rent_outlook_ratio"]
        if outlook.counts and outlook.low is not None:
            worse.append(("rent at its 10th percentile", {outlook.name: outlook.low}))
        rent = case.assumptions["rent_usd_per_gpu_hour"]
        halves: dict[str, Any] = {rent.name: case.number(rent.name) / 2}
        if after := case.assumptions["rent_after_usd_per_gpu_hour"].value:
            halves["rent_after_usd_per_gpu_hour"] = float(after) / 2
        worse.append(("rent at half its price", halves))
    else:
        per_token = case.assumptions["income_basis"].value == "per_mtok"
        earned = case.assumptions["token_income_usd_per_mtok" if per_token else "income_usd_per_gpu_hour"]
        worse.append(("income halved", {earned.name: case.number(earned.name) / 2}))
    scale = case.assumptions["residual_scale_ratio"]
    if scale.counts and scale.low is not None:
        worse.append(("resale at the low end of its range", {scale.name: scale.low}))
    # The debt stays as it was signed: what is due and owed are those of the plan, whatever the news.
    service, owed = monthly(lines, "debt_service_usd"), monthly(lines, "debt_owed_usd")
    due, rows = service > 0, []
    for name, changes in worse:
        strained = _lines(evaluate_months({**case.columns(), **changes}, case.tables, case.months))
        cash = np.where(due, monthly(strained, "cash_available_usd"), 0.0)
        value = monthly(strained, "pledged_value_usd")
        # coverage looks back over twelve months, as contracts do: one weak month breaks nothing
        last_year = []
        for series in (cash, service):
            sums = np.cumsum(series)
            last_year.append(sums - np.concatenate((np.zeros(12), sums))[: sums.size])
        coverage = np.where(due, last_year[0] / np.where(due, last_year[1], 1.0), np.inf)
        # Hardware that is worth a dollar or less has no ratio that says anything.
        ltv = np.where((owed > _NOTHING_USD) & (value > 1), owed / np.maximum(value, 1.0), 0.0)
        row: shape.LenderStrain = {
            "name": name,
            "lowest_dscr_ratio": float(coverage.min()) if due.any() else None,
            "highest_ltv_fraction": float(ltv.max()),
        }
        rows.append(row)
    return rows


def broken_covenants(lent: shape.Lender | None) -> list[str]:
    """Return a sentence for each covenant that is broken: from which month on, and how badly."""
    if lent is None:
        return []
    names = {"min_dscr_ratio": "debt service coverage", "max_ltv_fraction": "debt to resale value"}
    messages = []
    for row in lent["covenants"]:
        ratio = row["name"] == "min_dscr_ratio"
        limit, worst = (f"{x:.2f}" if ratio else f"{x:.0%}" for x in (row["limit"], row["worst"]))
        bound = f"{names[row['name']]} of {'at least' if ratio else 'at most'} {limit}"
        if row["breached_month"] is not None:
            messages.append(
                f"Covenant broken: {bound} fails from month {row['breached_month']} ({row['breached_on']}) in"
                f" {row['breached_months']} months; the worst is {worst} in month {row['worst_month']}"
            )
    return messages
