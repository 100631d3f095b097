"""What a lender asks of a purchase on credit: coverage, debt to value, covenants and sculpted repayment, by hand."""

import numpy as np
import pytest
import pyxirr

import gpucost
from gpucost.errors import UsageError
from gpucost.formula.arrays import evaluate_all
from gpucost.money import financing, lender
from tests.money.plans import catalog, compare, flows

LOAN = {"financing": "loan", "loan_fraction": 0.75, "loan_rate_fraction": 0.12, "loan_term_months": 36}
RENT = ("compute", "storage", "support", "control_plane", "egress", "staff", "licence")
PAID_FOR = ("servers", "network", "storage", "spares", "control_plane", "installation", "purchase_tax", "facility")
OTHER = ("own_loan", "own_lease", "resale", "disposal", "total", "own_tax", "own_financing", "in_cash")


def coverage(cash, service, months_per_year=12.0):
    """Return the lender's lines for a loan whose cash available and payments are given by month, month 0 first."""
    values = {
        "cash_available_usd": np.array(cash, float),
        "own_loan_payment_usd": np.array(service, float),
        "own_lease_payment_usd": 0.0,
        "months_per_year": months_per_year,
        "financing": "loan",
        "min_dscr_ratio": 1.25,
        "m": np.arange(len(cash), dtype=float),
    }
    lines = tuple(
        line for line in lender.MONTHLY if "dscr" in line.name or "serviced" in line.name or "service" in line.name
    )
    evaluate_all(lines, values)
    return values


def test_coverage_of_a_published_example():
    """An income of 450,000 USD against a debt service of 300,000 covers it 1.5 times (Refuge Investments' glossary)."""
    values = coverage([0] + [450_000 / 12] * 12, [0] + [300_000 / 12] * 12)
    assert values["dscr_ratio"][12] == pytest.approx(1.5)
    assert values["dscr_ratio"][0] == 0
    assert not values["dscr_breach"].any()


def test_coverage_looks_back_twelve_months_and_no_further():
    """After a good year at 200 a month follow months at 50: after six, 6 × 200 + 6 × 50 stand against 12 × 100."""
    values = coverage([0] + [200] * 12 + [50] * 12, [0] + [100] * 24)
    assert values["dscr_ratio"][[1, 12, 18, 24]] == pytest.approx([2.0, 2.0, 1.25, 0.5])
    assert int(np.argmax(values["dscr_breach"])) == 19


def sculpted(cash, target, most, rate=0.10):
    """Return the lines of a sculpted loan drawn at month 0, in periods whose rate is 10 %."""
    months = len(cash) - 1
    values = {
        "cash_available_usd": np.array(cash, float),
        "financing": "loan",
        "loan_repayment": "sculpted",
        "target_dscr_ratio": target,
        "loan_usd": most,
        "loan_rate_fraction": rate * 12,
        "months_per_year": 12.0,
        "loan_term_months": float(months),
        "loan_payment_usd": 0.0,
        "arrival_month": 0.0,
        "end_month": float(months),
        "m": np.arange(months + 1, dtype=float),
        "arrives": np.array([1.0] + [0.0] * months),
        "until_sold": np.array([0.0] + [1.0] * months),
        "ends": np.array([0.0] * months + [1.0]),
    }
    evaluate_all(tuple(line for line in financing.MONTHLY if "lease" not in line.name), values)
    return values


def test_a_loan_is_sized_to_the_cash_that_repays_it():
    """110, 121 and 133.1 are worth 100 each at 10 %: at a coverage of 1.25 they repay 300 ÷ 1.25 = 240.

    DSCR = Σ C_i Π R_j ÷ (O_0 Π R_i), the explicit solution of Yuanta Securities Cambodia (2025-08-04), with no fees.
    """
    values = sculpted([0, 110, 121, 133.1], 1.25, 1000.0)
    assert values["own_loan_drawn_usd"][0] == pytest.approx(-240)
    assert values["own_loan_payment_usd"] == pytest.approx([0, 88, 96.8, 106.48])
    # 240 × 1.1 − 88 = 176; 176 × 1.1 − 96.8 = 96.8; 96.8 × 1.1 − 106.48 = 0
    assert values["loan_balance_usd"] == pytest.approx([240, 176, 96.8, 0], abs=1e-9)


def test_the_share_that_may_be_borrowed_limits_a_sculpted_loan():
    """Only 150 may be borrowed: all payments shrink in one proportion, and coverage is 300 ÷ 150 = 2."""
    values = sculpted([0, 110, 121, 133.1], 1.25, 150.0)
    assert values["sculpted_dscr_ratio"].max() == pytest.approx(2.0)
    assert values["own_loan_payment_usd"] == pytest.approx([0, 55, 60.5, 66.55])


def test_cash_available_and_debt_are_those_of_a_loop_over_the_months():
    payload = compare(**LOAN)
    lent, months = payload["lender"], payload["cash_flows"]
    saved = np.sum([flows(payload, f"rent_{name}_usd") for name in RENT if f"rent_{name}_usd" in months[0]], axis=0)
    capital = {f"own_{name}_usd" for name in PAID_FOR}
    running = [
        name
        for name in months[0]
        if name.startswith("own_") and name not in capital and not any(part in name for part in OTHER)
    ]
    cash = saved - np.sum([flows(payload, name) for name in running], axis=0)
    borrowed = 0.75 * sum(flows(payload, name)[0] for name in capital if name in months[0])
    level = -pyxirr.pmt(0.01, 36, borrowed)
    owed = borrowed
    for year in (1, 2, 3):
        interest = 0.0
        for _ in range(12):
            interest += owed * 0.01
            owed = owed * 1.01 - level
        row = lent["years"][year - 1]
        assert row["cash_available_usd"] == pytest.approx(cash[12 * year - 11 : 12 * year + 1].sum(), rel=1e-9)
        assert row["dscr_ratio"] == pytest.approx(row["cash_available_usd"] / (12 * level), rel=1e-9)
        assert row["interest_usd"] == pytest.approx(interest, rel=1e-9)
        assert row["debt_owed_usd"] == pytest.approx(owed, abs=1e-3)
    # after four years: 30 % of servers for 280,000 and spares, less 6 % for the broker, and 10 % of the rest
    months = {entry["name"]: entry["values"] for entry in payload["model"]["monthly"]}
    left = 64 / 8 * 280_000 * 1.025 * 0.3 * 0.94 + 0.1 * (64 * (2_000 + 700) + 0.015 * 64 / 8 * 280_000)
    assert -flows(payload, "own_resale_usd")[48] == pytest.approx(left, rel=1e-9)
    assert months["pledged_value_usd"][47] == pytest.approx(left, rel=0.05)
    assert len(lent["years"]) == 3


def test_a_covenant_names_its_headroom_and_the_month_that_breaks_it():
    base = compare(**LOAN)["lender"]
    limit = base["lowest_dscr_ratio"] / 1.2
    kept = compare(**LOAN, min_dscr_ratio=limit)
    (row,) = kept["lender"]["covenants"]
    assert row["breached_month"] is None
    assert row["headroom_fraction"] == pytest.approx(1 - 1 / 1.2)
    broken = compare(**LOAN, max_ltv_fraction=base["years"][0]["ltv_fraction"] * 1.0001)
    (row,) = broken["lender"]["covenants"]
    months = {entry["name"]: entry["values"] for entry in broken["model"]["monthly"]}
    first = next(month for month, share in enumerate(months["ltv_fraction"]) if share > row["limit"])
    assert row["breached_month"] == first
    assert row["breached_on"] == broken["cash_flows"][first]["on"]
    assert any("Covenant broken" in text and f"month {first} " in text for text in broken["warnings"])


@pytest.mark.parametrize("tax", [{}, {"tax_basis": "after", "tax_rate_fraction": 0.25}])
def test_a_sculpted_loan_covers_each_year_alike_and_is_repaid(tax):
    payload = compare(**{**LOAN, "loan_fraction": 1.0}, loan_repayment="sculpted", target_dscr_ratio=1.4, **tax)
    lent = payload["lender"]
    assert [row["dscr_ratio"] for row in lent["years"]] == pytest.approx([1.4] * 3)
    assert lent["llcr_ratio"] == pytest.approx(1.4)
    assert lent["years"][-1]["debt_owed_usd"] == pytest.approx(0, abs=1e-6)
    repaid = sum(row["principal_usd"] for row in lent["years"])
    assert repaid == pytest.approx(lent["lent_usd"])
    assert flows(payload, "own_loan_drawn_usd")[0] == pytest.approx(-lent["lent_usd"])


def test_a_sculpted_loan_at_the_cost_of_debt_is_worth_nothing():
    cash, loan = compare(), compare(**LOAN, loan_repayment="sculpted")
    assert loan["npv_usd"]["own"] == pytest.approx(cash["npv_usd"]["own"], rel=1e-10)


def test_what_a_sold_hour_earns_pays_the_debt_where_it_is_stated():
    payload = compare(**LOAN, income_basis="per_gpu_hour", income_usd_per_gpu_hour=3.0)
    saved, sold = compare(**LOAN)["lender"]["years"][0], payload["lender"]["years"][0]
    earned = 3.0 * 64 * 730 * 0.7 * 12
    rents = sum(flows(payload, "rent_total_usd")[1:13])
    assert sold["cash_available_usd"] - saved["cash_available_usd"] == pytest.approx(earned - rents, rel=1e-9)
    assert "earns" in payload["lender"]["income"]


def test_without_credit_there_is_no_lender_and_a_mix_refuses_to_sculpt():
    assert compare()["lender"] is None
    with pytest.raises(UsageError, match="sculpted"):
        gpucost.mix(
            [16] * 12,
            gpu="h100-sxm",
            rent=4.0,
            set={"financing": "loan", "loan_repayment": "sculpted"},
            catalog=catalog(),
        )
