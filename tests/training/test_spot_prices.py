"""The range of a spot price: what moved within a quarter moves by its root within a month, whatever the list did."""

import re
from math import sqrt

import pytest
from msgspec.structs import replace

from gpucost.catalog import open_catalog
from gpucost.market.facts import make_market
from tests.training import market as small

MOVES = (
    {
        "provider": "acme",
        "gpu": "fast",
        "region": "us-east-1",
        "low_ratio": 0.5,
        "high_ratio": 2.0,
        "above_fraction": 0,
    },
    {"provider": None, "gpu": None, "region": None, "low_ratio": 0.8, "high_ratio": 1.1, "above_fraction": 0.2},
)


def ends(*offers, moves=MOVES):
    terms = make_market(replace(small.facts(offers), spot_moves=moves)).terms
    return list(zip(terms.price_low_ratio, terms.price_high_ratio, strict=True))


def spot(**more):
    return small.offer(1.0, **{"provider": "acme", "region": "us-east-1", "option": "spot", **more})


def test_a_spot_price_moves_by_the_root_of_its_age():
    (fresh,), (quarter,), (year,) = (ends(spot(age_days=days)) for days in (0, 90, 360))
    assert fresh == pytest.approx((0.5 ** sqrt(1 / 3), 2 ** sqrt(1 / 3)))  # a month at least: it moves while it is held
    assert quarter == pytest.approx((0.5, 2.0))
    assert year == pytest.approx((0.25, 4.0))


def test_where_nothing_is_known_of_a_region_the_wider_group_speaks():
    assert ends(spot(age_days=90, region="nowhere")) == [pytest.approx((0.8, 1.1))]


def test_many_days_above_half_of_on_demand_lift_the_high_end_to_it():
    cheap = spot(age_days=90, region="nowhere", usd_per_gpu_hour=1.0)
    plain = replace(cheap, offer_id="plain", option="on_demand", usd_per_gpu_hour=4.0, usd_per_hour=32.0)
    assert ends(cheap, plain)[0] == pytest.approx((0.8, 2.0))
    assert ends(replace(plain, age_days=0))[0] == (1.0, 1.0)


def test_a_contract_and_a_list_price_do_not_move_with_spot():
    assert ends(spot(age_days=90, price_kind="contracted"))[0] == pytest.approx((1.0, 1.0))
    assert ends(small.offer(1.0, age_days=10))[0] == (1.0, 1.0)


def test_moves_on_record_hold_their_ends_and_sellers():
    rows = open_catalog("2026-11-22").rows("spot_moves")
    assert {"aws", "azure", "gcp", None} <= {row["provider"] for row in rows}
    assert all(row["low_ratio"] <= 1 <= row["high_ratio"] and row["moves"] >= 12 for row in rows)


def test_the_answer_says_which_part_of_the_range_the_price_makes():
    from gpucost import estimate

    found = estimate(model="8b", tokens="100b", option="spot", top=1)
    assert re.search("^spot price ", found.explain(), re.MULTILINE)
    listed = estimate(model="8b", tokens="100b", option="on_demand", top=1).explain()
    assert not re.search("^spot price ", listed, re.MULTILINE)
    assert re.search("^price age ", listed, re.MULTILINE)
