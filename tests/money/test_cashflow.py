"""Discounting and depreciation against pyxirr, independent formulas and published tables."""

import numpy as np
import pytest
import pyxirr
from hypothesis import given
from hypothesis import strategies as st

from gpucost.formula.arrays import payment
from gpucost.money import cashflow, tax

FLOWS = np.array([-2_400_000.0, *[61_234.56 + 37.0 * month for month in range(47)], 812_345.67])
MACRS = np.array([0.2, 0.32, 0.192, 0.1152, 0.1152, 0.0576])  # IRS Publication 946, table A-1
rates = st.floats(0.0, 0.05)
amounts = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=61)


def worth(rate, flows):
    return float(cashflow.discount(np.array([rate]), flows.size - 1)[0] @ flows)


@given(rates, amounts)
def test_npv_equals_pyxirr_and_the_definition(rate, flows):
    definition = sum(flow / (1 + rate) ** m for m, flow in enumerate(flows))
    scale = sum(map(abs, flows)) + 1
    assert abs(pyxirr.npv(rate, flows, start_from_zero=True) - definition) < 1e-9 * scale
    assert abs(worth(rate, np.array(flows)) - definition) < 1e-9 * scale


@given(st.floats(1e-6, 0.05), st.integers(1, 120), st.floats(1, 1e7), st.floats(0, 1e6))
def test_payment_equals_pyxirr(rate, periods, present, future):
    ours = float(payment(np.array(rate), np.array(float(periods)), np.array(present), np.array(future)))
    assert ours == pytest.approx(-pyxirr.pmt(rate, periods, present, -future), rel=1e-9)


def test_payment_without_interest_is_the_plain_share():
    assert float(payment(np.array(0.0), np.array(36.0), np.array(3600.0), np.array(0.0))) == 100.0


def test_irr_is_the_rate_of_zero_value():
    annual = cashflow.irr(FLOWS)
    monthly = (1 + annual) ** (1 / 12) - 1
    assert monthly == pytest.approx(pyxirr.irr(FLOWS.tolist()), rel=1e-9)
    assert abs(worth(monthly, FLOWS)) < 1e-9 * np.abs(FLOWS).sum()


def test_flows_of_one_sign_have_no_irr():
    assert cashflow.irr(np.array([1.0, 2.0])) is None
    assert cashflow.irr(np.zeros(3)) is None


def test_flows_with_several_rates_have_no_irr():
    """-100 + 230 x - 132 x² is nothing at 10 % and at 20 % (x = 1 / 1.1 and 1 / 1.2)."""
    assert cashflow.irr(np.array([-100.0, 230.0, -132.0])) is None
    assert cashflow.irr(np.array([-100.0, 230.0, -100.0])) is not None  # the other rate, -39 %, is nobody's return


def test_several_changes_of_sign_are_noticed():
    assert cashflow.several_rates(np.array([-1.0, 5.0, -6.0]))
    assert not cashflow.several_rates(FLOWS)


def test_every_schedule_deducts_the_whole_and_no_more():
    for shares in (tax.straight_line(4), MACRS, tax.bonus(0.4, MACRS), tax.bonus(1.0, MACRS)):
        assert shares.sum() == pytest.approx(1.0, abs=1e-12)
        assert (np.diff(tax.depreciated_by_year(shares)) >= 0).all()
