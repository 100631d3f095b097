"""What became of quotes until they were looked at again, and the price that is expected of one today."""

from datetime import date

import numpy as np
import pytest

from gpucost.catalog import open_catalog
from gpucost.catalog.price_moves import (
    AGES_DAYS,
    PEER_RATIOS,
    MoveRule,
    SightingPairs,
    family_of,
    price_moves,
    price_moves_by_end,
    sighted_pairs,
)
from gpucost.market.expected_price import HELD_DAYS, expected_prices, peer_ratios
from tests.training.market import offer

KNOWN = date(2026, 6, 1)
NUMBER = KNOWN.toordinal() - date(1970, 1, 1).toordinal()


def pairs(*rows):
    """Rows: kind, family, provider, gap, ratio, days before the day of knowledge, distance as a ratio."""
    kind, family, provider, gap, ratio, before, distance = zip(*rows, strict=True)
    count = len(rows)
    return SightingPairs(
        np.array(kind, object),
        np.array(family, object),
        np.array(provider, object),
        np.array(gap, float),
        np.log(ratio),
        NUMBER - np.array(before, float),
        np.log(distance),
        np.zeros(count, bool),
        np.ones(count),
        np.ones(count),
    )


def cell(rows, age, ratio=0.9, kind="cloud", family="on demand"):
    (found,) = (
        row
        for row in rows
        if (row["seller_kind"], row["option_family"], row["age_days"], row["peers_ratio"]) == (kind, family, age, ratio)
    )
    return found


def test_many_quotes_that_rose_by_a_quarter_are_expected_to():
    found = cell(price_moves(pairs(*[("cloud", "on demand", "a", 90, 1.25, 10, 0.9)] * 400), KNOWN), 90)
    assert found["expected_ratio"] == pytest.approx(1.25, rel=0.01)
    assert (found["pairs"], found["sellers"]) == (400, 1)


def test_few_quotes_are_drawn_towards_no_move_and_leave_the_range_open():
    one, many = (
        cell(price_moves(pairs(*[("cloud", "on demand", "a", 90, 1.5, 10, 0.9)] * count), KNOWN), 90)
        for count in (1, 100)
    )
    assert one["expected_ratio"] == pytest.approx(1.5**0.5)  # one effective pair against a prior of one
    assert one["expected_ratio"] < many["expected_ratio"] < 1.5
    assert one["high_ratio"] / one["low_ratio"] > many["high_ratio"] / many["low_ratio"]


def test_later_pairs_are_not_known_yet():
    late = ("cloud", "on demand", "a", 90, 3.0, -5, 0.9)
    rows = price_moves(pairs(late, *[("cloud", "on demand", "a", 90, 1.0, 10, 0.9)] * 9), KNOWN)
    assert cell(rows, 90)["expected_ratio"] == pytest.approx(1.0)


def test_recent_pairs_count_more():
    old, new = ("cloud", "on demand", "a", 90, 0.8, 270, 0.9), ("cloud", "on demand", "a", 90, 1.25, 0, 0.9)
    assert cell(price_moves(pairs(*[old, new] * 50), KNOWN), 90)["expected_ratio"] > 1.1


def test_a_quote_far_below_its_peers_moves_as_such_quotes_did():
    low, level = ("cloud", "on demand", "a", 90, 1.6, 5, 0.35), ("cloud", "on demand", "a", 90, 1.0, 5, 1.1)
    rows = price_moves(pairs(*[low, level] * 50), KNOWN)
    assert cell(rows, 90, 0.35)["expected_ratio"] > 1.4
    assert cell(rows, 90, 1.1)["expected_ratio"] < 1.1


def test_sellers_of_other_kinds_speak_faintly_and_lists_of_hyperscalers_not_at_all():
    rows = price_moves(
        pairs(
            ("marketplace", "on demand", "m", 300, 1.0, 5, 0.9),
            *[("cloud", "on demand", "c", 90, 1.3, 5, 0.9)] * 40,
            *[("hyperscaler", "on demand", "h", 90, 0.2, 5, 0.9)] * 40,
        ),
        KNOWN,
    )
    assert 1.1 < cell(rows, 90, kind="marketplace")["expected_ratio"] < 1.3


def test_ends_hold_four_of_five_moves():
    moves = [("cloud", "on demand", "a", 90, float(np.exp(step / 100)), 10, 0.9) for step in range(-50, 51)]
    found = cell(price_moves(pairs(*moves), KNOWN, MoveRule()), 90)
    assert np.log(found["low_ratio"]) == pytest.approx(-0.40, abs=0.02)
    assert np.log(found["high_ratio"]) == pytest.approx(0.40, abs=0.02)


def test_a_family_has_the_ends_that_were_chosen_for_it():
    moves = [("cloud", "on demand", "a", 90, float(np.exp(step / 100)), 10, 0.9) for step in range(-50, 51)]
    spread = {
        end: np.log(found["high_ratio"] / found["low_ratio"])
        for end in (0.05, 0.15)
        for found in [cell(price_moves(pairs(*moves), KNOWN, MoveRule(ends=(("on demand", end),))), 90)]
    }
    assert spread[0.05] == pytest.approx(0.90, abs=0.04)
    assert spread[0.15] == pytest.approx(0.70, abs=0.04)
    by_end = price_moves_by_end(pairs(*moves), KNOWN, MoveRule(), (0.05, 0.15))
    assert {
        end: np.log(cell(rows, 90)["high_ratio"] / cell(rows, 90)["low_ratio"]) for end, rows in by_end.items()
    } == (pytest.approx(spread))


def table(ratio=1.2, family="on demand", kind="cloud"):
    return [
        {
            "seller_kind": kind,
            "option_family": family,
            "age_days": age,
            "peers_ratio": peers,
            "low_ratio": 1.0,
            "expected_ratio": ratio if age else 1.0,
            "high_ratio": ratio**2 if age else 1.0,
        }
        for age in AGES_DAYS
        for peers in PEER_RATIOS
    ]


def expected(offers, ages, moves):
    return expected_prices(offers, np.array(ages, float), ["cloud"] * len(offers), moves)


def test_the_expected_price_follows_age_between_the_rows_of_the_table():
    found = expected([offer(1.0)] * 3, [0, 90, 3.75], table())
    assert found.ratio == pytest.approx([1.0, 1.2, 1.2**0.5])  # half way in the root of the age between 0 and 15


def test_contracts_own_prices_and_groups_without_moves_hold():
    offers = [
        offer(1.0, price_kind="contracted"),
        offer(1.0, book="user"),
        offer(1.0, option="reserved", term_months=12),
        offer(1.0, provider="other"),
    ]
    assert expected(offers, [90] * 4, table()).ratio == pytest.approx([1, 1, 1, 1.2])


def test_a_spot_price_moves_while_it_is_held():
    found = expected([offer(1.0, option="spot")], [0.0], table(family="preemptible"))
    assert found.ratio == pytest.approx([1.0])
    assert found.high_ratio[0] == pytest.approx(1.2**2)
    assert AGES_DAYS[1] < HELD_DAYS


def test_peers_are_sellers_and_regions_of_the_same_chip_and_family():
    offers = [offer(price, provider=name) for name, price in (("a", 1.0), ("b", 2.0), ("c", 4.0))]
    assert peer_ratios([*offers, offer(9.0, option="spot")])[:3] == pytest.approx([0.5, 1.0, 2.0])
    assert np.isnan(peer_ratios(offers[:2])).all()  # too few


def test_community_capacity_is_a_family_of_its_own():
    assert family_of("community") == "community"
    assert family_of("interruptible") == "preemptible"


def test_a_price_carried_forward_is_no_sighting():
    """FluidStack's and RunPod's rows of the old catalogue never moved in it: their pairs would say that prices hold."""
    catalog = open_catalog("2026-11-09")
    found = sighted_pairs(catalog)
    store = catalog.store
    moved = store.fetch("""
        SELECT DISTINCT provider FROM history_offers WHERE source_id LIKE 'romilbhardwaj%' AND NOT gone
        AND offer_id IN (SELECT offer_id FROM history_offers WHERE NOT gone AND source_id LIKE 'romilbhardwaj%'
            GROUP BY offer_id HAVING count(DISTINCT round(usd_per_hour, 6)) > 1)""")
    before = found.later < date(2024, 7, 1).toordinal() - date(1970, 1, 1).toordinal()
    sellers = set(found.provider[before & (found.kind == "cloud")])
    listed = {
        row["provider"]
        for row in store.fetch("SELECT provider FROM offers WHERE observed_on < '2024-07-01' GROUP BY provider")
    }
    assert sellers <= {row["provider"] for row in moved} | listed


def test_what_hyperscalers_list_holds_and_what_clouds_list_rose_in_2026():
    """Lambda went from 2.99 to 3.99 between February and May 2026, Nebius from 2.95 to 3.85."""
    rows = open_catalog("2026-11-20").rows("price_moves")
    assert cell(rows, 180, kind="hyperscaler")["expected_ratio"] == pytest.approx(1.0, abs=0.01)
    assert 1.05 < cell(rows, 180)["expected_ratio"] < 1.35


def test_a_quote_at_a_quarter_of_all_others_is_expected_half_of_the_way_to_them():
    offers = [offer(price, provider=name) for name, price in (("a", 1.0), ("b", 4.0), ("c", 4.0), ("d", 4.0))]
    found = expected(offers, [0] * 4, [])
    assert found.ratio == pytest.approx([2.0, 1.0, 1.0, 1.0])  # the geometric middle of 1 and 4
    assert found.high_ratio[0] == pytest.approx(4.0)
