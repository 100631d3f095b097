"""The budget of an order, held to draws of the mixture that it is a percentile of; chances held to their table."""

from statistics import NormalDist

import numpy as np
import pytest
from msgspec.structs import replace

from gpucost.catalog import open_catalog
from gpucost.errors import DataError
from gpucost.market.budget import (
    CERTAIN,
    LIKELY,
    NOTICES,
    USUAL_GPUS,
    budgets,
    chances,
    falling,
    quotes_of,
    shares_by_kind,
)
from gpucost.market.facts import make_market, market_of
from gpucost.market.terms import large_order
from tests.training.market import FAST, SLOW, facts, offer

Z90 = NormalDist().inv_cdf(0.9)
CHIPS = {"fast": FAST, "slow": SLOW}
FATES = [
    {
        "seller_kind": "cloud",
        "option_family": "on demand",
        "from_days": low,
        "to_days": high,
        "pairs": 100,
        "still_sold_fraction": sold,
        "p10_ratio": 0.9,
        "p90_ratio": 1.2,
    }
    for low, high, sold in ((10, 30, 0.95), (40, 60, 0.7))
]


def drawn(cost, high, chance, otherwise, count=400_000):
    """Return the 90th percentile of what so many orders cost: logs are normal, what is gone costs the fallback."""
    draws = np.random.default_rng(7)
    usd = cost * (high / cost) ** (draws.standard_normal(count) / Z90)
    return float(np.quantile(np.where(draws.random(count) < chance, usd, otherwise), 0.9))


@pytest.mark.parametrize("chance", [1.0, 0.97, 0.92, 0.6, 0.1])
def test_the_budget_is_the_ninth_tenth_of_the_mixture(chance):
    cost, high = np.array([50.0, 100.0]), np.array([65.0, 130.0])
    found = budgets(cost, high, np.array([chance, 1.0]), np.ones(2, bool), np.array([False, True]), np.arange(2))
    assert found.fallback == 130.0
    assert found.budget[1] == pytest.approx(130.0)  # the fallback needs what its range says
    assert found.budget[0] == pytest.approx(drawn(50.0, 65.0, chance, 130.0), rel=0.02)
    assert found.expected[0] == pytest.approx(chance * 50 + (1 - chance) * 100)


def test_a_quote_that_is_probably_gone_sinks_to_the_fallback_however_low_it_is():
    cost, high = np.array([1.0, 100.0, 110.0]), np.array([1.1, 130.0, 131.0])
    found = budgets(
        cost, high, np.array([0.5, 1.0, 1.0]), np.ones(3, bool), np.array([False, True, True]), np.arange(3)
    )
    assert found.budget.tolist() == pytest.approx([130.0, 130.0, 131.0])


def test_without_anything_fresh_one_falls_back_on_the_likeliest():
    cost, high = np.array([1.0, 2.0]), np.array([1.5, 3.0])
    found = budgets(cost, high, np.array([0.2, 0.4]), np.ones(2, bool), np.zeros(2, bool), np.arange(2))
    assert found.fallback == 3.0
    nothing = budgets(cost, high, np.array([0.2, 0.4]), np.zeros(2, bool), np.zeros(2, bool), np.arange(2))
    assert nothing.budget.tolist() == high.tolist()
    assert np.isnan(nothing.fallback)


def test_without_anything_fresh_sellers_are_asked_in_turn_until_one_probably_has_it():
    """Of two of 0.79 one has it with 0.956; a second size of the first is no second chance."""
    cost, high = np.array([1.0, 1.1, 2.0, 3.0]), np.array([1.5, 1.6, 3.0, 4.0])
    every, none = np.ones(4, bool), np.zeros(4, bool)
    found = budgets(cost, high, np.full(4, 0.79), every, none, np.array([7, 7, 8, 9]))
    assert found.fallback == 3.0
    surer = budgets(cost, high, np.array([0.79, 0.99, 0.79, 0.79]), every, none, np.array([7, 7, 8, 9]))
    assert surer.fallback == 1.6


def test_an_older_quote_is_never_likelier_to_be_had():
    assert falling([0.8, 0.9, 0.4], [1, 1, 1]) == [pytest.approx(0.85), pytest.approx(0.85), 0.4]
    for row in (quote.chance for quote in _quotes(*(offer(2.0, age_days=days) for days in (0, 20, 35, 50, 400)))):
        assert 0 <= row <= 1
    ages = [quote.chance for quote in _quotes(*(offer(2.0, age_days=days) for days in (0, 20, 35, 50, 400)))]
    assert ages == sorted(ages, reverse=True)
    assert ages[0] == 1
    assert ages[1] == pytest.approx(0.95)
    assert ages[-1] == pytest.approx(0.7)


def _quotes(*offers, fates=FATES, probes=(), capacity=()):
    return quotes_of(offers, ["cloud"] * len(offers), fates, probes, capacity, CHIPS)


def test_what_one_owns_or_signed_is_certain():
    own, signed = offer(2.0, age_days=50, book="user"), offer(2.0, age_days=50, price_kind="contracted")
    assert _quotes(own, signed) == [CERTAIN, CERTAIN]


def test_spot_capacity_is_there_as_often_as_probes_found_it():
    probes = [{"availability_fraction": share} for share in (0.2, 0.6, 0.7)]
    (spot,) = _quotes(offer(2.0, age_days=20, option="spot"), fates=(), probes=probes)
    assert spot.chance == pytest.approx(0.6)


def _row(largest, basis, **more):
    return {"provider": "acme", "gpu": "fast", "option": None, "largest_gpus": largest, "basis": basis, **more}


def test_only_self_service_is_a_limit_and_one_of_ones_own_overrides_all():
    rows = [_row(512, "self-service")]
    (limited,) = _quotes(offer(2.0), capacity=rows)
    assert (limited.known_gpus, limited.most_gpus) == (512, 512)
    (floor,) = _quotes(offer(2.0), capacity=[*rows, _row(8000, "runs")])
    assert (floor.known_gpus, floor.most_gpus) == (8000, np.inf)
    (own,) = _quotes(offer(2.0), capacity=[*rows, _row(8000, "runs"), _row(128, "own")])
    assert (own.known_gpus, own.most_gpus) == (128, 128)
    assert NOTICES[int(_quotes(offer(2.0), capacity=[*rows, _row(8000, "sales")])[0].notice)] == "sales"
    (other,) = _quotes(offer(2.0, "slow"), capacity=rows)
    assert (other.known_gpus, other.most_gpus) == (USUAL_GPUS, np.inf)


def test_an_unknown_size_lowers_the_chance_and_bans_nothing():
    offers, kinds = [offer(2.0), offer(2.0, provider="other")], ["cloud", "cloud"]
    capacity = [_row(4096, "runs")]
    quotes = quotes_of(offers, kinds, (), (), capacity, CHIPS)
    known = replace(facts(offers), quotes=tuple(quotes), size_shares=shares_by_kind(offers, kinds, capacity))
    market = make_market(known)
    ordered, both = np.array([4096, 4096]), np.array([0, 1])
    assert chances(market.terms, both, ordered).tolist() == [1.0, 0.5]  # one of two sellers is known to have so many
    assert chances(market.terms, both, np.array([64, 64])).tolist() == [1.0, 1.0]
    assert market.supply.largest_gpus[1] > 4096


def test_of_todays_offers_list_prices_are_likely_and_no_spot_price_is():
    market = market_of(open_catalog("2026-11-28"))
    options = np.array([row.option for row in market.facts.offers])
    assert (market.terms.quote_chance[options == "spot"] < LIKELY).all()
    clouds = {row["provider"] for row in market.facts.providers if row["kind"] in ("cloud", "hyperscaler")}
    listed = [place for place in np.flatnonzero(market.terms.fresh) if market.facts.offers[place].provider in clouds]
    assert (market.terms.quote_chance[listed] >= LIKELY).all()
    assert market.terms.usd_per_gpu_hour.tolist() == [row.usd_per_gpu_hour for row in market.facts.offers]


def test_a_book_of_ones_own_states_capacity(tmp_path):
    book = tmp_path / "book.toml"
    book.write_text('[[capacity]]\nprovider = "crusoe"\ngpu = "h200-sxm"\ngpus = 96\n', "utf-8")
    market = market_of(open_catalog("2026-11-28", book=book))
    rows = [
        place
        for place, row in enumerate(market.facts.offers)
        if (row.provider, row.gpu, row.option) == ("crusoe", "h200-sxm-141gb", "on_demand")
    ]
    assert rows
    assert (market.supply.largest_gpus[rows] == 96).all()
    book.write_text('[[capacity]]\nprovider = "crusoe"\ngpus = -3\n', "utf-8")
    with pytest.raises(DataError):
        open_catalog("2026-11-28", book=book).rows("capacity")


def test_a_large_order_says_how_it_is_asked_for():
    market = market_of(open_catalog("2026-11-28"))
    numbers = [
        number
        for number, one in enumerate(market.facts.offers)
        if (one.provider, one.gpu, one.option) == ("crusoe", "h200-sxm-141gb", "on_demand")
    ]
    one = market.facts.offers[numbers[0]]
    assert "sales" in large_order(one, market.terms, numbers[0], 864)[0]
    assert large_order(one, market.terms, numbers[0], 64) == []
    assert "No order of" in large_order(one, market.terms, numbers[0], 4000)[0]
