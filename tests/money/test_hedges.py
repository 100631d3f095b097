"""A price of tomorrow: hedges for rent, useful lives and impairment, resale from a curve, all by hand."""

import pytest

import gpucost
from gpucost.errors import UsageError
from tests.money.plans import catalog, compare, flows

HOURS = 64 * 0.7 * 730  # of the reference plan, by use
FALLING = {"rent_decline_fraction": 0.36, "rent_support_fraction": 0.0}


def cash(payload, name):
    return next(row["cash_usd"] for row in payload["options"] if row["name"] == name)


def market(month):
    """Return the price of a month: 2.35, falling by 36 % a year, 0.8 after half a year."""
    return 2.35 * 0.64 ** ((month - 1) / 12)


def test_a_fixed_share_at_a_fixed_price():
    """Half of the hours at 2.10 whatever happens, the other half at the market's falling price."""
    found = compare(**FALLING, quote={"desk": "2.10/h, fixed, 50% of the hours"})
    beside = cash(found, "rent") - sum(flows(found, "rent_compute_usd"))
    paid = sum(HOURS * (0.5 * 2.10 + 0.5 * market(month)) for month in range(1, 49))
    assert cash(found, "desk") == pytest.approx(paid + beside, abs=0.01)
    row = next(row for row in found["options"] if row["name"] == "desk")
    assert row["terms"] == "50% at $2.10, fixed + 50% as asked"


def test_a_contract_that_follows_the_market_between_a_floor_and_a_cap():
    found = compare(**FALLING, quote={"index": "2.35/h, floor 1.80/h, cap 2.20/h"})
    beside = cash(found, "rent") - sum(flows(found, "rent_compute_usd"))
    paid = sum(HOURS * min(max(market(month), 1.80), 2.20) for month in range(1, 49))
    assert cash(found, "index") == pytest.approx(paid + beside, abs=0.01)
    row = next(row for row in found["options"] if row["name"] == "index")
    assert "at least $1.80 and at most $2.20" in row["terms"]


def test_the_break_even_of_a_bounded_price_is_where_both_cost_the_same():
    """Floor and cap are shares of the price, so that the break-even price stays on one line with it."""
    bounded = {**FALLING, "rent_floor_ratio": 0.8, "rent_cap_ratio": 1.1}
    price = compare(**bounded)["breakeven"]["usd_per_gpu_hour"]
    again = compare(**{**bounded, "rent_usd_per_gpu_hour": price})
    assert again["npv_usd"]["saving"] == pytest.approx(0, abs=1.0)


def test_quotes_in_a_file_hedge_too(tmp_path):
    (tmp_path / "q.csv").write_text(
        "name,usd_per_gpu_hour,price_basis,share_fraction,floor_usd_per_gpu_hour,cap_usd_per_gpu_hour\n"
        "desk,2.10,fixed,0.5,,\nindex,2.35,market,,1.80,2.20\n"
    )
    filed = compare(**FALLING, quote=str(tmp_path / "q.csv"))
    said = compare(
        **FALLING,
        quote={"desk": "2.10/h, fixed, 50% of the hours", "index": "2.35/h, floor 1.80/h, cap 2.20/h"},
    )
    for name in ("desk", "index"):
        assert cash(filed, name) == pytest.approx(cash(said, name))


@pytest.mark.parametrize(
    "text",
    [
        "2/h, floor 3/h, cap 2/h",
        "2/h, fixed, floor 1/h",
        "2/h, 0% of the hours",
        "2/h, 50% of the hours, until 2027-01-01",
    ],
)
def test_hedges_that_cannot_be_are_refused(text):
    with pytest.raises(UsageError, match="desk"):
        compare(quote={"desk": text})


def test_a_longer_life_costs_less_an_hour_and_leaves_more_to_impair():
    """Straight line to nothing over 4 and 6 years; after a year the books hold 3/4 and 5/6 of the purchase."""
    found = compare()
    four, six = found["lives"]
    capex = next(row["value"] for row in found["model"]["derived"] if row["name"] == "capex_usd")
    residual = next(row["value"] for row in found["assumptions"] if row["name"] == "book_residual_fraction")
    assert (four["life_years"], six["life_years"]) == (4, 6)
    assert four["book_depreciation_usd_per_year"] == pytest.approx(capex * (1 - residual) / 4, rel=1e-6)
    assert six["book_depreciation_usd_per_year"] == pytest.approx(capex * (1 - residual) / 6, rel=1e-6)
    assert four["npv_own_usd"] == pytest.approx(found["npv_usd"]["own"])
    assert six["levelised_usd_per_gpu_hour"] < four["levelised_usd_per_gpu_hour"]
    assert six["impairment_usd"] > four["impairment_usd"] > 0
    months = {row["name"]: row["values"] for row in found["model"]["monthly"]}
    gaps = [capex * (1 - (1 - residual) * year / 4) - months["pledged_value_usd"][12 * year] for year in (1, 2, 3)]
    assert four["impairment_usd"] == pytest.approx(max(gaps), rel=1e-9)
    assert four["impairment_year"] == gaps.index(max(gaps)) + 1
    life = next(row for row in found["scenarios"] if row["name"] == "life of 6 years")
    assert life["npv_own_usd"] == pytest.approx(six["npv_own_usd"])


def test_a_bought_curve_has_rents_and_resale_in_one_file(tmp_path):
    """A price of 2.00 that falls to 1.00 after a year, and a resale of 60 % after one year, 40 % after two."""
    rows = [f"{month},{2.0 if month <= 12 else 1.0},{0.6 if month <= 12 else 0.4}" for month in range(1, 25)]
    (tmp_path / "curve.csv").write_text("month,usd_per_gpu_hour,resale_fraction\n" + "\n".join(rows) + "\n")
    plan = {"rent_curve": str(tmp_path / "curve.csv"), "residual_fraction": None, "residual_at_years": None}
    bought = compare(**plan, months=24, rent_decline_fraction=0, residual_basis="curve", rent_usd_per_gpu_hour=None)
    assert flows(bought, "rent_compute_usd")[1] == pytest.approx(HOURS * 2.0)
    assert flows(bought, "rent_compute_usd")[24] == pytest.approx(HOURS * 1.0)
    months = {row["name"]: row["values"] for row in bought["model"]["monthly"]}
    assert months["value_fraction"][12] == pytest.approx(0.6 * 0.94)
    assert months["value_fraction"][24] == pytest.approx(0.4 * 0.94)


def test_resale_follows_the_forward_curve_of_cards_where_it_is_asked_for():
    asked = {"gpu": "h100-sxm", "gpus": 64, "rent": 2.35, "years": 2, "draws": 0, "catalog": catalog()}
    found = gpucost.tco(**asked, plan={"resale_path": "forward"}).payload
    shipped = gpucost.tco(**asked).payload
    months = {entry["name"]: entry["values"] for entry in found["model"]["monthly"]}
    from gpucost.market.forward import used_rows

    (card,) = used_rows(catalog(), ["h100-sxm5-80gb"])
    fee = next(entry["value"] for entry in found["assumptions"] if entry["name"] == "resale_fee_fraction")
    assert months["value_fraction"][24] == pytest.approx(card["p50_usd_in_24_months"] / card["street_usd"] * (1 - fee))
    assert found["npv_usd"]["own"] != shipped["npv_usd"]["own"]
    with pytest.raises(Exception, match="resale_path = forward"):
        gpucost.tco(**{**asked, "gpu": "b200"}, plan={"resale_path": "forward"})
