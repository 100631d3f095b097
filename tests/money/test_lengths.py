"""What owning saves by the length of the comparison: one evaluation for all lengths equals one for each."""

import numpy as np
import pytest

from gpucost.ask.tco import case_of
from gpucost.catalog import open_catalog
from gpucost.money.comparison import evaluate_months, has_lengths, outcome, savings_by_length

CHANGES = (
    {},
    {"financing": "loan", "tax": 0.25},
    {"financing": "lease", "lead_time": 30},
    {"financing": "operating_lease", "set": {"lease_term_months": 24}},
    {"lead_time": 17, "set": {"retention_fraction": 0.1, "deposit_fraction": 0.3, "retention_months": 20}},
    {"set": {"refresh_month": 24, "service_limit_months": 40}, "tax": 0.3},
    {"set": {"refresh_month": 30}, "tax": 0.3, "financing": "loan", "profile": "own"},
    {"provider": "aws", "option": "reserved", "rent": None},
    {"set": {"rent_billing": "take_or_pay", "rent_term_months": 12, "rent_upfront_fraction": 0.3}},
    {"set": {"rent_billing": "take_or_pay", "rent_term_months": 36, "rent_until_months": 20.5}},
    {"tax_regime": "de", "set": {"other_income_usd_per_year": 200_000}},
    {"tax_regime": "us", "financing": "loan", "lead_time": 20, "set": {"other_income_usd_per_year": 900_000}},
    {"tax_regime": "uk", "financing": "operating_lease", "set": {"loss_limit_fraction": 0.3}},
    {"set": {"rent_until_months": 9.3, "rent_after_usd_per_gpu_hour": 3.1, "bridge_basis": "none"}, "lead_time": 9},
    {"set": {"loan_term_months": 60, "wacc_convention": "nominal"}, "financing": "loan", "rent_path": "observed_v"},
    {"use_path": "ramp 20% over 18 months", "gpus": 20_000, "tax": 0.2, "set": {"loss_basis": "at_once"}},
)


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_one_evaluation_gives_every_length(changes):
    asked = {"gpu": "h100-sxm", "gpus": 64, "utilisation": 0.7, "years": 5, "rent": 2.35, **changes}
    case = case_of({name: value for name, value in asked.items() if value is not None}, open_catalog())
    assert has_lengths(case.values())
    lengths = np.arange(np.floor(case.number("lead_time_months")) + 1, case.months + 1)
    alone = outcome({**case.columns(), "months": lengths}, case.tables).saving_usd
    values = evaluate_months(case.columns(), case.tables, case.months)
    together = savings_by_length(values)[0, lengths.astype(int)]
    assert np.allclose(together, alone, rtol=1e-9, atol=1e-9 * np.abs(alone).max())
    assert np.ptp(alone) > 1000


@pytest.mark.parametrize("inputs", [{"order_month": 3}, {"financing": "loan", "loan_repayment": "sculpted"}])
def test_what_looks_back_over_months_is_evaluated_for_each_length(inputs):
    asked = {"gpu": "h100-sxm", "gpus": 64, "utilisation": 0.7, "rent": 2.35}
    assert not has_lengths(case_of({**asked, "set": inputs}, open_catalog()).values())
