"""The books: the balance sheet balances whatever the plan, and the lines are those of the standards, by hand."""

from datetime import date

import numpy as np
import pytest
import pyxirr

from gpucost.formula.arrays import evaluate_all
from gpucost.money.comparison import evaluate_months
from gpucost.money.statements import MONTHLY
from gpucost.ownership.assemble import assemble
from gpucost.ownership.plan import PlanFile
from gpucost.ownership.statements import fiscal
from tests.money.plans import REFERENCE, catalog, compare, flows

PLANS = 125  # of each of 16 kinds
MONTHS = 72


def books(**changes):
    """Evaluate the books of a plan, or of many: one row per plan, one column per month."""
    asked = {**REFERENCE, **changes}
    flags = {key: float(value[0]) if np.ndim(value) else value for key, value in asked.items() if value is not None}
    case = assemble(catalog(), PlanFile(), flags, {})
    given = {key: value for key, value in changes.items() if np.ndim(value)}
    longest = int(np.max(given.get("months", case.months)))
    values = evaluate_months(
        {**case.columns(), **{k: v.reshape(-1, 1) for k, v in given.items()}}, case.tables, longest
    )
    evaluate_all(MONTHLY, values)
    shape = np.broadcast_shapes(*(np.shape(values[line.name]) for line in MONTHLY), values["m"].shape)
    return {name: np.broadcast_to(value, shape) for name, value in values.items()
            if isinstance(value, np.ndarray) and value.ndim == 2}  # fmt: skip


def unbalanced(found):
    """What assets differ by from debts and equity: what was paid in less what was spent, deferred tax included."""
    paid_in, spent = (np.cumsum(found[name], axis=1) for name in ("own_total_usd", "own_expense_usd"))
    equity = paid_in - spent - found["deferred_tax_usd"]
    return np.abs(found["assets_usd"] - found["debts_usd"] - equity) / np.abs(paid_in).max(axis=1, keepdims=True)


@pytest.mark.parametrize("financing", ["cash", "loan", "lease", "operating_lease"])
@pytest.mark.parametrize("basis", ["before", "after"])
def test_the_balance_sheet_balances_in_two_thousand_random_plans(financing, basis):
    """Balances are closed formulas, not sums of what was booked: a line that is missing or twice would show."""
    seed = np.random.default_rng(len(financing) + len(basis))
    for standard in ("us_gaap", "ifrs"):
        months = seed.integers(6, MONTHS, PLANS).astype(float)
        refreshed = np.zeros(PLANS) if financing == "operating_lease" else seed.integers(0, MONTHS, PLANS).astype(float)
        random = {
            "months": months, "refresh_month": refreshed, "refresh_price_ratio": seed.uniform(0.3, 1.5, PLANS),
            "lead_time_months": np.array([0.0, *seed.choice([0.0, 2.0, 2.5, 7.0, 80.0], PLANS - 1)]),
            "tax_rate_fraction": seed.uniform(0, 0.5, PLANS), "book_life_years": seed.uniform(1, 12, PLANS),
            "book_residual_fraction": seed.uniform(0, 0.4, PLANS), "server_usd": seed.uniform(1e4, 1e6, PLANS),
            "loan_fraction": seed.uniform(0, 1, PLANS), "loan_rate_fraction": seed.uniform(0, 0.3, PLANS),
            "loan_term_months": seed.integers(1, 90, PLANS).astype(float),
            "lease_rate_fraction": seed.uniform(0.001, 0.3, PLANS),
            "lease_term_months": seed.integers(1, 90, PLANS).astype(float),
            "lease_buyout_fraction": seed.uniform(0, 0.6, PLANS), "facility_usd_per_mw": seed.uniform(5e6, 2e7, PLANS),
            "facility_life_years": seed.uniform(1, 30, PLANS), "other_residual_fraction": seed.uniform(0, 0.5, PLANS),
            "utilisation_fraction": seed.uniform(0.1, 1, PLANS), "deposit_fraction": seed.uniform(0, 0.5, PLANS),
            "retention_fraction": seed.uniform(0, 0.5, PLANS), "refresh_speed_ratio": seed.uniform(0.5, 4, PLANS),
            "retention_months": seed.integers(0, 80, PLANS).astype(float),
            "other_income_usd_per_year": seed.uniform(0, 3e6, PLANS), "loss_limit_fraction": seed.uniform(0, 1, PLANS),
            "loss_allowance_usd": seed.uniform(0, 1e6, PLANS),
        }  # fmt: skip
        fixed = {
            "facility_basis": "own",
            "colocation_usd_per_kw_month": None,
            "lease_standard": standard,
            "loss_basis": "at_once" if standard == "ifrs" else "carried_forward",
        }
        found = books(financing=financing, tax_basis=basis, **fixed, **random)
        assert found["assets_usd"].shape == (PLANS, int(months.max()) + 1)
        assert unbalanced(found).max() < 1e-9
        last = months.astype(int)
        rows = np.arange(PLANS)
        for name in ("assets_usd", "debts_usd"):
            assert np.abs(found[name][rows, last]).max() < 1e-6, name


def test_hardware_is_depreciated_over_its_book_life_and_the_rest_leaves_with_it():
    found = books(book_life_years=6.0)
    capex = found["book_hardware_usd"][0, 0]
    assert found["book_depreciation_usd"][0, 1:] == pytest.approx([capex / 72] * 48)
    assert found["book_written_off_usd"][0, 48] == pytest.approx(capex * 24 / 72)
    assert found["book_hardware_usd"][0, 24] == pytest.approx(capex * 48 / 72)


def test_deferred_tax_is_the_rate_times_what_the_tax_return_is_ahead():
    found = books(tax_basis="after", tax_rate_fraction=0.25, book_life_years=6.0, depreciation_years=5)
    capex = found["book_hardware_usd"][0, 0]
    assert found["deferred_tax_usd"][0, 24] == pytest.approx(0.25 * capex * (24 / 60 - 24 / 72))


@pytest.mark.parametrize("standard", ["us_gaap", "ifrs"])
def test_an_operating_lease_is_level_under_us_gaap_and_front_loaded_under_ifrs(standard):
    terms = {"lease_rate_fraction": 0.12, "lease_term_months": 36.0, "lease_buyout_fraction": 0.2}
    found = books(financing="operating_lease", lease_standard=standard, **terms)
    price = -found["own_lease_drawn_usd"][0, 0]
    level = -pyxirr.pmt(0.01, 36, price, -0.2 * price)
    right = level * (1 - 1.01**-36) / 0.01
    assert found["lease_liability_usd"][0, 0] == pytest.approx(right, rel=1e-9)
    assert found["lease_liability_usd"][0, 12] == pytest.approx(level * (1 - 1.01**-24) / 0.01, rel=1e-9)
    cost = found["lease_cost_usd"][0]
    first, second = (
        (level, level)
        if standard == "us_gaap"
        else (right / 36 + 0.01 * right, right / 36 + 0.01 * (right * 1.01 - level))
    )
    assert cost[1:3] == pytest.approx([first, second], rel=1e-9)
    assert cost.sum() == pytest.approx(48 * level, rel=1e-9)
    assert found["book_hardware_usd"].max() == 0


@pytest.mark.parametrize("changes", [{}, {"financing": "loan", "tax_basis": "after"},
                                     {"financing": "operating_lease", "lease_standard": "ifrs"}])  # fmt: skip
def test_statements_by_fiscal_year_quarter_and_month_agree_with_each_other_and_with_the_cash(changes):
    payload = compare(start_on="2026-11-22", fiscal_year_end_month=6, refresh_month=0, **changes)
    said = payload["statements"]
    assert [row["period"] for row in said["years"]] == ["FY2027", "FY2028", "FY2029", "FY2030", "FY2031"]
    assert [row["period"] for row in said["quarters"]][:3] == ["FY2027 Q2", "FY2027 Q3", "FY2027 Q4"]
    assert len(said["months"]) == 49
    for side in ("own", "rent"):
        for length in ("years", "quarters", "months"):
            total = sum(row[f"cash_{side}_usd"] for row in said[length])
            assert total == pytest.approx(sum(flows(payload, f"{side}_total_usd")), rel=1e-12)
    for length in ("years", "quarters", "months"):
        for row in said[length]:
            assert row["end_assets_usd"] == pytest.approx(row["end_debts_usd"] + row["end_equity_usd"], abs=1e-3)
            parts = ("purchase", "proceeds", "running", "financing", "tax")
            assert row["cash_own_usd"] == pytest.approx(sum(row[f"cash_{part}_usd"] for part in parts), abs=1e-6)
            spent = ("running", "depreciation", "lease", "interest", "disposal", "tax")
            assert row["book_own_usd"] == pytest.approx(sum(row[f"book_{part}_usd"] for part in spent), abs=1e-6)
    assert sum(row["book_own_usd"] for row in said["years"]) == pytest.approx(sum(flows(payload, "own_total_usd")))


def test_a_fiscal_year_is_called_after_the_year_in_which_it_ends():
    assert fiscal(date(2026, 12, 31), 12) == ("FY2026", "FY2026 Q4", "2026-12")
    assert fiscal(date(2026, 2, 1), 1) == ("FY2027", "FY2027 Q1", "2026-02")
    assert fiscal(date(2026, 9, 30), 9) == ("FY2026", "FY2026 Q4", "2026-09")
