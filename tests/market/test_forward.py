"""Forecasts of prices: from analogues as they are documented, on nothing that was not known, and held to what came."""

from datetime import date
from math import exp, log, sqrt

import pytest

from gpucost.catalog import open_catalog
from gpucost.market import forward
from gpucost.market.forward import ChipTraits, Move

CHIPS = {"old": ChipTraits(2017, True), "new": ChipTraits(2022, True), "plain": ChipTraits(2022, False)}


def move(gpu, ratio, kind="cloud", option="on_demand", age=3.0):
    return Move((gpu, kind, option), 12, date(2024, 3, 31), date(2025, 3, 31), age, log(ratio))


def test_a_range_is_that_of_the_analogues_widened_for_their_number():
    """Ten chips of equal weight: the first and ninth of ten, widened by the root of 1 + 10 / 10."""
    chips = {f"c{n}": ChipTraits(2020, True) for n in range(10)} | {"asked": ChipTraits(2020, True)}
    moves = [move(f"c{n}", 0.5 + 0.1 * n) for n in range(10)]
    found = forward.outlook(moves, chips, ("asked", "cloud", "on_demand"), 3.0)
    assert found.analogues == pytest.approx(10)
    assert found.low_ratio == pytest.approx(exp(log(0.5) * sqrt(2)))
    assert found.high_ratio == pytest.approx(exp(log(1.3) * sqrt(2)))


def test_what_is_alike_counts_more():
    """Twenty spot prices halved and five list prices stood: a list price is said to stand, a spot price to fall."""
    chips = {f"c{n}": ChipTraits(2020, True) for n in range(25)} | {"asked": ChipTraits(2020, True)}
    moves = [move(f"c{n}", 0.5, option="spot") for n in range(20)] + [move(f"c{n}", 1.0) for n in range(20, 25)]
    listed = forward.outlook(moves, chips, ("asked", "cloud", "on_demand"), 3.0)
    spot = forward.outlook(moves, chips, ("asked", "cloud", "spot"), 3.0)
    assert spot.low_ratio < 0.5 < listed.high_ratio
    weights = [0.1] * 20 + [1.0] * 5
    assert listed.analogues == pytest.approx(sum(weights) ** 2 / sum(weight**2 for weight in weights))


def test_a_cell_with_many_months_counts_as_one():
    moves = [move("old", 0.3) for _ in range(50)] + [move("new", 1.0)]
    found = forward.outlook(moves, CHIPS, ("new", "cloud", "on_demand"), 3.0)
    assert found.analogues == pytest.approx(2)


def test_one_analogue_says_nothing():
    assert forward.outlook([move("old", 0.5)], CHIPS, ("new", "cloud", "on_demand"), 3.0) is None


def test_moves_are_those_that_had_ended_on_the_day():
    cells = {("new", "cloud", "on_demand"): {date(2024, 3, 31): 4.0, date(2025, 3, 31): 3.0, date(2026, 3, 31): 1.0}}
    (first,) = forward.moves_of(cells, CHIPS, 12, date(2025, 12, 31))
    assert (first.since, first.until) == (date(2024, 3, 31), date(2025, 3, 31))
    assert exp(first.log_ratio) == pytest.approx(0.75)
    assert first.age_years == pytest.approx(1.75)
    assert len(forward.moves_of(cells, CHIPS, 12, date(2026, 3, 31))) == 2


@pytest.fixture(scope="module")
def catalog():
    return open_catalog("2026-11-09")


def test_a_forecast_of_the_past_leans_on_nothing_that_came_later(catalog):
    """The same question of a day in 2025, whatever is known today: months after it count for nothing."""
    asked = {"h100-sxm5-80gb"}
    then = forward.forward_prices(open_catalog("2025-06-30"), asked)
    assert then
    assert all(row["price_on"] <= date(2025, 6, 30) for row in then)
    cells, chips = forward._known(catalog)
    cut = {
        cell: {day: usd for day, usd in prices.items() if day <= date(2025, 6, 30)} for cell, prices in cells.items()
    }
    moves = forward.moves_of(cut, chips, 12, date(2025, 6, 30))
    for row in then:
        found = forward.outlook(moves, chips, (row["gpu"], row["seller_kind"], row["option"]), row["chip_age_years"])
        assert row["p10_in_12_months_usd_per_gpu_hour"] == pytest.approx(row["usd_per_gpu_hour"] * found.low_ratio)


def test_a_range_holds_its_middle_and_never_narrows(catalog):
    for row in forward.forward_prices(catalog):
        ends = [
            (row[f"p10_in_{m}_months_usd_per_gpu_hour"], row[f"p90_in_{m}_months_usd_per_gpu_hour"])
            for m in (12, 24, 36)
        ]
        for low, high in ends:
            assert low <= row["usd_per_gpu_hour"] <= high
        assert ends[0][0] >= ends[1][0] >= ends[2][0]
        assert ends[0][1] <= ends[1][1] <= ends[2][1]


def test_over_twelve_months_four_of_five_prices_came_out_inside(catalog):
    """The documented backtest: 80 % are promised, and list prices of hyperscalers keep it."""
    rows = {(row["months"], row["group"]): row for row in forward.backtest_rows(catalog)}
    assert rows[12, "all"]["forecasts"] > 200
    assert rows[12, "all"]["inside_fraction"] > 0.75
    assert rows[12, "hyperscaler"]["inside_fraction"] > 0.75
    assert {"Pascal", "Volta", "Turing", "Ampere", "Hopper"} <= {group for months, group in rows if months == 12}


def test_cards_fall_from_their_own_price_by_the_pace_of_the_others():
    """Two others that lost half in one and in two years: k = 0.693 and 0.347, the middle 0.520."""
    cards = [
        forward.Card("a", 1000, 500, "2024", 1.0),
        forward.Card("b", 1000, 500, "2024", 2.0),
        forward.Card("asked", 1000, 800, "2024", 3.0),
    ]
    low, typical, high = forward.resale(cards, cards[2], 12)
    assert typical == pytest.approx(800 * exp(-(log(2) + log(2) / 2) / 2))
    assert low < typical < high < 800


def test_an_estimate_is_no_street_price(catalog):
    rows = [dict(row) for row in catalog.rows("accelerators")]
    named = {card.gpu for card in forward.cards_of(rows)}
    assert "v100-sxm2-16gb" in named
    estimated = {row["id"] for row in rows if str(row["street_source"] or "").startswith("estimate")}
    assert estimated
    assert not named & estimated


def test_the_yearly_fall_leads_to_the_ends_of_the_last_horizon(catalog):
    for row in forward.forward_prices(catalog, {"h100-sxm5-80gb"}):
        for end in ("p10", "p90"):
            after = row["usd_per_gpu_hour"] * (1 - row[f"{end}_yearly_fall_fraction"]) ** 3
            assert after == pytest.approx(row[f"{end}_in_36_months_usd_per_gpu_hour"])
