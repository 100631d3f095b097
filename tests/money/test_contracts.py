"""Contracts, quotes and discounts end when they say; what follows is the expected price or the stated renewal."""

from pathlib import Path

import numpy as np
import pytest

import gpucost
from gpucost.catalog import open_catalog
from gpucost.errors import UsageError
from tests.money.plans import catalog, compare, flows

HOURS = 64 * 0.7 * 730  # of the reference plan, by use
FLAT = {"rent_decline_fraction": 0.0, "rent_support_fraction": 0.0, "start_on": "2026-12-01"}
YEAR_END = 31 / (365 / 12)  # months from 2026-12-01 to the end of 2026-12-31, 1.019


def option(payload, name):
    return next(row for row in payload["options"] if row["name"] == name)


def test_a_quote_ends_on_its_last_day_and_rent_by_use_follows():
    """1.20 until the end of December, then 2.35: December and 0.019 of January at 1.20, by hand."""
    plain = compare(**FLAT)
    found = compare(**FLAT, quote={"acme": "1.20/h, until 2026-12-31"})
    saved = HOURS * (2.35 - 1.20) * round(YEAR_END, 3)
    assert option(plain, "rent")["cash_usd"] - option(found, "acme")["cash_usd"] == pytest.approx(saved, abs=0.01)
    (end,) = found["contract_ends"]
    assert (end["option"], end["ends_on"], end["then_usd_per_gpu_hour"]) == ("acme", "2026-12-31", 2.35)
    assert "acme at $1.20 ends on 2026-12-31" in found["warnings"][0]
    assert "ends in month 1.019, then by use at $2.35" in option(found, "acme")["terms"]


def test_a_stated_renewal_follows_a_term_with_the_same_billing():
    found = compare(**FLAT, quote={"acme": "2.00/h, 12 months, take-or-pay, then 1.80/h"})
    plain = compare(**FLAT)
    beside = option(plain, "rent")["cash_usd"] - sum(flows(plain, "rent_compute_usd"))
    paid = 64 * 730 * (12 * 2.00 + 36 * 1.80)
    assert option(found, "acme")["cash_usd"] == pytest.approx(paid + beside, abs=0.01)
    assert found["contract_ends"][0]["then"] == "renewed"


@pytest.mark.parametrize(
    ("text", "usd"),
    [("1460/month", 2.0), ("EUR 2.00/h", 2.0 * 1.25), ("2.00 EUR/h", 2.5), ("€1460/month", 2.5), ("$2.46/h", 2.46)],
)
def test_quotes_come_by_the_month_and_in_other_currencies(text, usd, monkeypatch):
    monkeypatch.setattr("gpucost.ownership.plan.usd_per_unit", lambda _, code: {"EUR": 1.25, "USD": 1.0}[code])
    assert option(compare(quote={"acme": text}), "acme")["usd_per_gpu_hour"] == pytest.approx(usd)


def test_an_amount_upfront_is_a_part_of_the_price():
    """876 USD a GPU at the start of a year of 8,760 hours is a tenth of a dollar an hour."""
    found = compare(**FLAT, quote={"acme": "1.90/h, 12 months, take-or-pay, 876 upfront"}, months=12)
    assert option(found, "acme")["usd_per_gpu_hour"] == pytest.approx(2.0)
    assert option(found, "acme")["cash_usd"] == pytest.approx(
        64 * 8760 * 2.0 + option(compare(**FLAT, months=12), "rent")["cash_usd"] - HOURS * 12 * 2.35, abs=0.01
    )


def test_a_file_of_quotes_has_ends_renewals_currencies_and_months(tmp_path):
    (tmp_path / "q.csv").write_text(
        "name,price_per_gpu_month,currency,term_months,billing,valid_until,renewal_usd_per_gpu_hour\n"
        "acme,1460,USD,12,take-or-pay,2027-06-30,1.75\n"
    )
    found = compare(**FLAT, quote=str(tmp_path / "q.csv"))
    row = next(row for row in found["contract_ends"] if row["option"] == "acme")
    assert (row["ends_on"], row["usd_per_gpu_hour"], row["then_usd_per_gpu_hour"]) == ("2027-06-30", 2.0, 1.75)


@pytest.mark.parametrize(
    "text", ["2/h, until 2020-01-01", "2/h, then 3/h", "2/h, 500 upfront", "XXX 2/h", "2/h, until soon"]
)
def test_ends_that_cannot_be_are_refused(text):
    with pytest.raises(Exception, match=r"acme|XXX"):
        compare(**FLAT, quote={"acme": text})


BOOK = """
[[offer]]
provider = "lambda"
gpu = "h100-sxm"
gpus = 8
option = "on_demand"
usd_per_gpu_hour = 1.20
observed_on = 2026-11-01
valid_from = 2026-11-01
valid_until = 2026-12-31
"""
DISCOUNT = """
[[discount]]
provider = "lambda"
fraction = 0.5
valid_until = 2027-06-30
"""


def booked(text, tmp_path):
    path = tmp_path / "book.toml"
    path.write_text(text)
    return open_catalog("2026-11-20", book=path)


ASKED = {"gpu": "h100-sxm", "gpus": 64, "provider": "lambda", "years": 4, "draws": 0, "rent_path": "flat"}


def test_a_discount_ends_within_a_comparison(tmp_path):
    """Half of the list until the end of June 2027, then the list; the answer says so."""
    found = gpucost.tco(**ASKED, catalog=booked(DISCOUNT, tmp_path)).payload
    price = option(found, "rent")["list_usd_per_gpu_hour"]
    months = np.round((223 / (365 / 12)), 3)  # 2026-11-20 to the end of 2027-06-30
    hours = next(row["value"] for row in found["model"]["derived"] if row["name"] == "rent_gpu_hours")
    assert option(found, "rent")["usd_per_gpu_hour"] == pytest.approx(price / 2)
    paid = sum(flows(found, "rent_compute_usd")) + sum(flows(found, "rent_after_usd"))
    assert paid == pytest.approx(hours * price * (months / 2 + 48 - months), rel=1e-9)
    assert "rent at $" in found["warnings"][0]
    assert "ends on 2027-06-30" in found["warnings"][0]
    assert "its list price" in found["warnings"][0]


def test_a_contract_ends_within_a_comparison_and_cannot_win_by_it(tmp_path):
    listed = gpucost.tco(**ASKED, catalog=open_catalog("2026-11-20")).payload
    found = gpucost.tco(**ASKED, catalog=booked(BOOK, tmp_path)).payload
    assert option(found, "rent")["usd_per_gpu_hour"] == pytest.approx(1.20)
    end = found["contract_ends"][0]
    assert (end["option"], end["ends_on"]) == ("rent", "2026-12-31")
    assert end["then_usd_per_gpu_hour"] > 1.20
    # six weeks of 48 months cannot move the rent by more than their share
    assert (
        found["npv_usd"]["rent"]
        > 0.93 * listed["npv_usd"]["rent"] * end["then_usd_per_gpu_hour"] / option(listed, "rent")["usd_per_gpu_hour"]
    )


def test_a_mix_uses_a_contract_no_longer_than_it_holds(tmp_path):
    book = booked(BOOK, tmp_path)
    found = gpucost.mix(
        [64] * 12, gpu="h100-sxm", provider="lambda", own=False, plan={"rent_path": "flat"}, catalog=book
    )
    rents = [row["rent_usd"] for row in found.payload["cash_by_month"][1:]]
    assert rents[0] == pytest.approx(64 * 730 * 1.20)
    assert rents[6] > 64 * 730 * 1.25


def test_the_break_even_price_is_that_of_the_contract():
    """At the break-even price of a contract that ends, owning and renting cost the same."""
    ending = {"rent_until_months": 9.5, "rent_after_usd_per_gpu_hour": 2.6, "rent_usd_per_gpu_hour": 1.9}
    found = compare(**ending)
    even = next(row for row in found["model"]["answers"] if row["name"] == "breakeven_usd_per_gpu_hour")["value"]
    again = compare(**{**ending, "rent_usd_per_gpu_hour": even})
    assert again["npv_usd"]["saving"] == pytest.approx(0, abs=0.01)
    used = next(row for row in found["model"]["answers"] if row["name"] == "breakeven_utilisation_fraction")["value"]
    if 0 < used < 1:
        again = compare(**{**ending, "utilisation_fraction": used})
        assert again["npv_usd"]["saving"] == pytest.approx(0, abs=0.01)


# --- The price of tomorrow


def test_rent_moves_within_the_forward_curve_and_its_changes_fade():
    """After the last horizon nothing moves on: what 36 months may bring is what five years may."""
    found = gpucost.tco("h100-sxm", 64, rent=2.35, years=5, draws=2000, catalog=catalog()).payload
    table = found["model"]["tables"]
    assert table["rent_high_by_month"][36] == table["rent_high_by_month"][59] < 3
    assert 0.3 < table["rent_low_by_month"][36] == table["rent_low_by_month"][59] < 1
    ends = {row["name"]: row for row in found["scenarios"]}
    low, high = (found["monte_carlo"][f"rent_p{end}_usd"] for end in (5, 95))
    assert low < ends["rent P10"]["npv_rent_usd"] < found["npv_usd"]["rent"] < ends["rent P90"]["npv_rent_usd"] < high
    assert high < 2.2 * found["npv_usd"]["rent"]


def test_the_ends_of_the_forward_curve_are_those_of_its_table():
    from gpucost.market.forward import forward_prices

    rows = forward_prices(catalog(), ["h100-sxm5-80gb"])
    (row,) = [row for row in rows if (row["seller_kind"], row["option"]) == ("cloud", "on_demand")]
    table = gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, catalog=catalog()).payload["model"]["tables"]
    for months in (12, 24, 36):
        for end, name in (("p10", "low"), ("p90", "high")):
            expected = row[f"{end}_in_{months}_months_usd_per_gpu_hour"] / row["usd_per_gpu_hour"]
            assert table[f"rent_{name}_by_month"][months] == pytest.approx(expected, rel=0.1)  # its age moved by days


def test_the_cost_of_capital_is_no_chance():
    """It moves the tornado, and no draw."""
    ranged = {"wacc_fraction": {"value": 0.1, "low": 0.06, "high": 0.2}}
    found = compare(**ranged, draws=500)
    assert "wacc_fraction" in {row["name"] for row in found["sensitivity"]}
    drawn, certain = (entry["monte_carlo"] for entry in (found, compare(wacc_fraction=0.1, draws=500)))
    assert drawn == certain


@pytest.mark.parametrize(
    ("regime", "said"),
    [
        ("us", "100% in year 1"),
        ("uk", "100% in year 1"),
        ("sg", "100% in year 1"),
        ("ie", "12.5%, 12.5%"),
        ("de", "30%, 21%"),
    ],
)
def test_the_answer_names_the_depreciation_that_is_applied(regime, said):
    found = gpucost.tco("h100-sxm", 64, rent=2.35, tax_regime=regime, draws=0, catalog=catalog()).payload
    inputs = {row["name"]: row for row in found["assumptions"]}
    assert inputs["depreciation_method"]["value"] == "by_year"
    assert said in inputs["depreciation_method"]["note"]
    assert not inputs["depreciation_years"]["counts"]
    assert said in found["tax"]["depreciation"]
    shares = np.diff([0, *(row["depreciation_usd"] for row in found["tax"]["by_year"])])
    assert shares[1] == pytest.approx(found["tax"]["by_year"][1]["depreciation_usd"])


def test_a_plan_of_a_regime_is_read_back_to_the_same_answer():
    first = gpucost.tco("h100-sxm", 64, rent=2.35, tax_regime="de", draws=0, catalog=catalog())
    Path("plan.toml").write_text(first.to_plan())
    again = gpucost.tco(plan="plan.toml", catalog=catalog())
    assert again.payload["npv_usd"]["saving"] == pytest.approx(first.payload["npv_usd"]["saving"], rel=1e-9)


def test_by_year_needs_the_years():
    with pytest.raises(UsageError, match="needs depreciation_by_year"):
        compare(depreciation_method="by_year")
