"""Purchases and bills against hand calculations."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpucost
from gpucost.formula.arrays import Columns, evaluate_all, evaluate_columns, round_cents
from gpucost.formula.language import Line
from gpucost.money import bill
from gpucost.money.bill import BillItem
from gpucost.money.training_bill import CONSTANTS, PURCHASE

usd = st.floats(0.01, 1e6)


def one(value):
    return np.array([float(value)])


def bought(
    hours, *, term=0, bound=False, minimum=0, increment=0, upfront=0, recurring=0, prepaid=False, price=4.0, units=2
):
    """Return what the purchase of some units of one accelerator comes to, by the formulas of the bill."""
    given = {
        "paid_hours": hours, "gpus": units, "gpus_per_unit": 1, "usd_per_gpu_hour": price, "term_months": term,
        "take_or_pay": bound, "minimum_hours": minimum, "billing_increment_hours": increment, "upfront_usd": upfront,
        "recurring_usd_per_hour": recurring, "prepaid": prepaid, "charge_commitment": True,
    }  # fmt: skip
    columns = Columns({name: one(value) for name, value in given.items()})
    return evaluate_columns(PURCHASE, columns, CONSTANTS, tuple(line.name for line in PURCHASE))


def test_per_use_pays_for_the_hours_used():
    found = bought(100)
    assert found.exposure_usd[0] == found.amortised_usd[0] == found.cash_usd[0] == 100 * 2 * 4
    assert found.unused_usd[0] == 0


def test_a_capacity_block_is_bought_by_the_day():
    assert bought(25, minimum=24, increment=24).billed_hours[0] == 48
    assert bought(1, minimum=24, increment=24).billed_hours[0] == 24
    assert bought(24, minimum=24, increment=24).billed_hours[0] == 24


def test_a_commitment_owes_its_whole_term():
    found = bought(1000, term=12, bound=True, recurring=4)
    assert found.exposure_usd[0] == 2 * 8760 * 4
    assert found.amortised_usd[0] == 2 * 1000 * 4
    assert found.unused_usd[0] == 2 * 7760 * 4
    assert found.cash_usd[0] == 2 * 2 * 730 * 4  # two started months, in arrears


def test_a_run_longer_than_the_term_takes_another_contract():
    assert bought(8761, term=12, bound=True).terms[0] == 2


def test_payment_kinds_of_one_effective_price():
    # An instance at 2 USD an hour for a year: everything upfront is 17,520; half of it is 8,760 and 1 USD an hour.
    nan = one(np.nan)
    whole = bill.payment_split(one(2), one(12), nan, nan, one(1) > 0, one(0) > 0)
    half = bill.payment_split(one(2), one(12), nan, nan, one(0) > 0, one(1) > 0)
    none = bill.payment_split(one(2), one(12), nan, nan, one(0) > 0, one(0) > 0)
    assert [float(part[0]) for part in whole] == [17_520, 0]
    assert [float(part[0]) for part in half] == [8_760, 1]
    assert [float(part[0]) for part in none] == [0, 2]


@given(st.floats(0.1, 30_000), st.sampled_from([0, 1, 12, 36]), st.booleans(), st.sampled_from([0.0, 24.0]))
def test_nothing_is_owed_less_than_it_is_used(hours, term, bound, increment):
    found = bought(hours, term=term, bound=bound, increment=increment)
    assert found.exposure_usd[0] >= found.amortised_usd[0] * (1 - 1e-9)
    assert found.unused_usd[0] == pytest.approx(found.exposure_usd[0] - found.amortised_usd[0])


def test_cents_round_half_up_in_spite_of_binary():
    assert round_cents(np.array([1.005, 2.675, 0.125, 0.0049])).tolist() == [1.01, 2.68, 0.13, 0.0]


def billed(quantities, rates_usd):
    """Return the costs and the total of a bill of one line per quantity, by the formulas of a bill."""
    lines = [BillItem(f"line {i}", f"quantity_{i}", "piece", f"price_{i}") for i in range(len(quantities))]
    values = {f"quantity_{i}": one(quantity) for i, quantity in enumerate(quantities)}
    values |= {f"price_{i}": one(rate) for i, rate in enumerate(rates_usd)}
    evaluate_all((*bill.formulas(lines), Line("total_usd", bill.total(lines))), values)
    return [float(values[f"{line.key}_usd"][0]) for line in lines], float(values["total_usd"][0])


@given(st.lists(usd, min_size=1, max_size=30))
def test_a_total_is_the_sum_of_its_lines_to_the_cent(amounts):
    costs, total = billed([1.0] * len(amounts), amounts)
    cents = sum(round(cost * 100) for cost in costs)
    assert round(total * 100) == cents
    assert total == cents / 100


@given(st.integers(1, 16_384), st.floats(0.1, 5_000), st.floats(0.05, 99))
def test_accelerator_hours_times_rate_is_the_cost(gpus, hours, rate):
    (cost,), _ = billed([gpus * hours], [rate])
    assert abs(cost - gpus * hours * rate) <= 0.005 + 1e-6


def test_p5_on_demand_for_a_day_is_what_the_price_list_says():
    # p5.48xlarge at 55.04 USD an hour, 8 accelerators, 24 hours.
    assert billed([8 * 24.0], [55.04 / 8]) == ([1320.96], 1320.96)


BLOCK = """[[offer]]
provider = "acme"
gpu = "h100-sxm"
gpus = 8
option = "capacity_block"
usd_per_gpu_hour = 2.0
valid_from = 2026-11-01
"""


@pytest.mark.parametrize(("tokens", "said"), [("100m", "none"), ("30b", "speed")])
def test_a_block_is_paid_whole_at_either_end_of_the_range(tmp_path, tokens, said):
    """A day of 8 GPUs at 2 USD costs 384 USD: a run of an hour pays one whatever its speed."""
    (tmp_path / "book.toml").write_text(BLOCK)
    catalog = gpucost.open_catalog("2026-11-20", book=tmp_path / "book.toml")
    run = {"gpu": "h100-sxm", "gpus": 8, "provider": "acme", "deadline": "none", "catalog": catalog}
    result = gpucost.estimate("8b", tokens, **run)
    option = result.payload["options"][0]
    beside = sum(line["cost_usd"] for line in option["lines"] if line["unit"] != "GPU-hour")
    days = [math.ceil(option[end]) for end in ("days_low", "days_high")]
    assert days == [1, 1] if tokens == "100m" else 1 < days[0] < days[1]
    for end, whole in zip(("cost_low_usd", "cost_high_usd"), days, strict=True):
        assert option[end] == pytest.approx(whole * 384 + beside, abs=0.02)
    assert f"Range: {said}" in result.to_text(details=True)
