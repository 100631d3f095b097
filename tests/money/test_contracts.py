"""Contracts, quotes and discounts end when they say; what follows is the expected price or the stated renewal."""

import numpy as np
import pytest

import gpucost
from gpucost.catalog import open_catalog
from gpucost.errors import DataError, NothingFitsError, PriceMissingError, UsageError
from tests.money.plans import REFERENCE, catalog, compare, flows

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
    assert "$2.35" in option(found, "acme")["terms"]


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
    monkeypatch.setattr("gpucost.market.exchange.usd_per_unit", lambda _, code: {"EUR": 1.25, "USD": 1.0}[code])
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
    return open_catalog("2026-11-10", book=path)


ASKED = {"gpu": "h100-sxm", "gpus": 64, "provider": "lambda", "years": 4, "draws": 0, "rent_path": "flat"}


@pytest.mark.slow
def test_a_discount_ends_within_a_comparison(tmp_path):
    """Half of the list until the end of June 2027, then what the list is expected to ask; the answer says so."""
    plain = gpucost.tco(**ASKED, catalog=open_catalog("2026-11-10")).payload
    expected = option(plain, "rent")["usd_per_gpu_hour"]
    found = gpucost.tco(**ASKED, catalog=booked(DISCOUNT, tmp_path)).payload
    price = option(found, "rent")["list_usd_per_gpu_hour"]
    months = np.round((233 / (365 / 12)), 3)  # 2026-11-10 to the end of 2027-06-30
    hours = next(row["value"] for row in found["model"]["derived"] if row["name"] == "rent_gpu_hours")
    assert option(found, "rent")["usd_per_gpu_hour"] == pytest.approx(price / 2)
    paid = sum(flows(found, "rent_compute_usd")) + sum(flows(found, "rent_after_usd"))
    assert paid == pytest.approx(hours * (price * months / 2 + expected * (48 - months)), rel=1e-9)
    assert "rent at $" in found["warnings"][0]
    assert "ends on 2027-06-30" in found["warnings"][0]
    assert "its list" in found["warnings"][0]


def test_a_contract_ends_within_a_comparison_and_cannot_win_by_it(tmp_path):
    listed = gpucost.tco(**ASKED, catalog=open_catalog("2026-11-10")).payload
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
    low, high = (found["monte_carlo"][f"rent_p{end}_usd"] for end in (10, 90))
    assert low < ends["rent P10"]["npv_rent_usd"] < found["npv_usd"]["rent"] < ends["rent P90"]["npv_rent_usd"] < high
    assert high < 1.7 * found["npv_usd"]["rent"]


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


def test_a_plan_of_a_regime_is_read_back_to_the_same_answer(tmp_path):
    first = gpucost.tco("h100-sxm", 64, rent=2.35, tax_regime="de", draws=0, catalog=catalog())
    (tmp_path / "plan.toml").write_text(first.to_plan())
    again = gpucost.tco(plan=str(tmp_path / "plan.toml"), catalog=catalog())
    assert again.payload["npv_usd"]["saving"] == pytest.approx(first.payload["npv_usd"]["saving"], rel=1e-9)


def test_by_year_needs_the_years():
    with pytest.raises(UsageError, match="needs depreciation_by_year"):
        compare(depreciation_method="by_year")


# --- Supplies of a mix: an end, what follows, an amount upfront, prices by the month and in euros.

BARE = {name: value for name, value in REFERENCE.items() if name not in ("gpus", "months")}
BARE |= {"rent_decline_fraction": 0, "start_on": "2026-12-01", "rent_usd_per_gpu_hour": 3.0, "rent_support_fraction": 0}
BARE |= {"rent_stretch_ratio": 1, "goodput_fraction": 1}
BARE |= {"storage_basis": "none", "egress_gb_per_gpu_month": 0, "licence_usd_per_gpu_year": 0}
BARE |= {"rent_control_plane_usd_per_month": 0, "rent_staff_ratio": 0}


def mixed(supply, months=12, **changes):
    plan = {**BARE, "supply": [supply], **changes}
    return gpucost.mix([8] * months, plan=plan, own=False, catalog=catalog()).payload


def rents(payload):
    return [row["rent_usd"] for row in payload["cash_by_month"]]


def test_a_supply_by_use_ends_and_rent_by_use_follows():
    """1.20 until the end of December, 1.019 months on, then 3.00 as asked for; a renewal goes before it."""
    ending = {"kind": "on_demand", "usd_per_gpu_hour": 1.20, "until": "2026-12-31"}
    found = mixed(ending)
    paid = rents(found)
    assert paid[1] == pytest.approx(8 * 730 * 1.20)
    assert paid[2] == pytest.approx(8 * 730 * (0.019 * 1.20 + 0.981 * 3.0))
    assert paid[3:] == pytest.approx([8 * 730 * 3.0] * 10)
    (end,) = found["contract_ends"]
    assert (end["ends_on"], end["then"], end["then_usd_per_gpu_hour"]) == ("2026-12-31", "rent by use", 3.0)
    assert "2026-12-31" in found["warnings"][0]
    assert rents(mixed({**ending, "renewal_usd_per_gpu_hour": 1.5}))[5] == pytest.approx(8 * 730 * 1.5)


def test_a_contract_of_a_mix_ends_with_its_price_or_goes_on_at_the_renewal():
    """A year's contract at 2.00 whose price ends with June 2027: seven months, and no eighth without a renewal."""
    ending = {"kind": "reserved", "usd_per_gpu_hour": 2.0, "term_months": 12, "unit_gpus": 8, "until": "2027-07-02"}
    with pytest.raises(NothingFitsError, match="month 8"):
        mixed(ending)
    assert sum(rents(mixed(ending, months=7))) == pytest.approx(8 * 730 * 2.0 * 7.036, rel=1e-3)
    renewed = mixed({**ending, "renewal_usd_per_gpu_hour": 1.5})
    months = renewed["contract_ends"][0]["month"]
    assert 7 < months < 7.1
    assert sum(rents(renewed)) == pytest.approx(8 * 730 * (2.0 * months + 1.5 * (12 - months)))


def test_a_supply_has_an_amount_upfront_months_and_euros(monkeypatch):
    """1,168 euros a month are 1.60 an hour, 2.00 USD at 1.25; 3,504 euros upfront are 0.50 USD an hour of a year."""
    monkeypatch.setattr("gpucost.market.exchange.usd_per_unit", lambda _, code: {"EUR": 1.25, "USD": 1.0}[code])
    monkeypatch.setattr("gpucost.ownership.assemble.exchange.usd_per_unit", lambda _, code: {"EUR": 1.25}[code])
    supply = {"kind": "reserved", "price_per_gpu_month": 1168, "currency": "EUR", "term_months": 12, "unit_gpus": 8}
    found = mixed({**supply, "upfront_per_gpu": 3504})
    assert rents(found)[0] == pytest.approx(8 * 3504 * 1.25)
    assert rents(found)[1:] == pytest.approx([8 * 730 * 2.0] * 12)
    assert found["supplies"][0]["upfront_fraction"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"until": "2020-01-01"},
        {"renewal_usd_per_gpu_hour": 2.0},
        {"usd_per_gpu_month": 1500},
        {"until": "soon"},
        {"until": "2027-01-01", "valid_until": "2027-01-01"},
        {"upfront_per_gpu": 100},
        {"currency": "XXX"},
    ],
)
def test_a_supply_that_cannot_be_is_refused(wrong):
    with pytest.raises((UsageError, DataError, PriceMissingError), match=r"supply|until|XXX|usd_per_gpu"):
        mixed({"kind": "on_demand", "usd_per_gpu_hour": 1.2, **wrong})


POOL = """
[[pool]]
name = "ours"
gpu = "h100-sxm"
gpus = 8
available_gpus = 64
incremental_price_per_gpu_month = 584
currency = "EUR"
until = 2026-12-01

[[pool]]
name = "theirs"
gpu = "h100-sxm"
gpus = 8
available_gpus = 64
loaded_usd_per_gpu_month = 730
upfront_per_gpu = 8760
term_months = 24
"""


def test_a_pool_has_months_euros_an_amount_upfront_and_an_end(tmp_path, monkeypatch):
    """584 euros a month are 0.80 an hour, 1.00 USD at 1.25; 8,760 upfront for two years add half a dollar an hour."""
    monkeypatch.setattr("gpucost.market.pools.usd_per_unit", lambda _, code: {"EUR": 1.25, "USD": 1.0}[code])
    (tmp_path / "pool.toml").write_text(POOL)
    asked = {"model": "8b", "tokens": "1t", "gpu": "h100-sxm", "gpus": 64, "pool_view": "both", "top": 100}
    found = gpucost.estimate(**asked, pool=str(tmp_path / "pool.toml"), catalog=catalog()).payload
    own = {row["offer_id"]: row for row in found["options"] if row["provider"] == "own"}
    assert own["own/ours/incremental"]["usd_per_gpu_hour"] == pytest.approx(1.0)
    assert own["own/theirs/loaded"]["usd_per_gpu_hour"] == pytest.approx(1.5)
    (text,) = [text for text in found["warnings"] if "ends on 2026-12-01" in text]
    days, hours = own["own/ours/incremental"]["days"], own["own/ours/incremental"]["gpu_hours"]
    assert days > 20
    assert f"after 12 of the {days:,.0f} days" in text
    assert f"the {hours * (1 - 12 / days):,.0f} GPU-hours left" in text
    assert "instead of" in text
    (tmp_path / "pool.toml").write_text(POOL.replace("2026-12-01", "2026-11-01"))
    with pytest.raises(DataError, match="it ended on 2026-11-01"):
        gpucost.estimate(**asked, pool=str(tmp_path / "pool.toml"), catalog=catalog())
