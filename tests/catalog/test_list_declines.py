"""How list prices fell: hand-made series whose falls one can compute on paper."""

import pytest

from gpucost.catalog import open_catalog
from gpucost.catalog.prices import list_declines, overall
from tests.catalog.world import offer, world
from tools.derived import generation_declines

ALL = dict.fromkeys(("gpu", "provider", "region", "option"))


@pytest.mark.slow
def test_a_chip_falls_as_its_sellers_do_over_the_years_that_they_were_watched(tmp_path):
    """In 3.5 years seller a halves its price three times and b holds it; c has one price alone, too few."""
    offers = [offer("a/x", 8 * 0.5**year, f"{2022 + year}-01-01", provider="acme") for year in range(4)]
    offers += [offer("b/x", 3.0, f"{2022 + year}-01-01", provider="other") for year in range(4)]
    offers += [offer("c/x", 5.0, "2025-06-01", provider="third")]
    catalog = open_catalog("2025-06-30", root=world(tmp_path, offers), checked=False)
    (row,) = list_declines(catalog, ALL)
    assert (row["sellers"], row["decline_low_fraction"]) == (2, 0.0)
    assert row["decline_high_fraction"] == pytest.approx(0.5, abs=0.01)
    assert row["decline_fraction"] == pytest.approx(1 - 0.5**0.5, abs=0.01)  # three halvings in twice three years
    assert overall([row])["decline_fraction"] == row["decline_fraction"]
    (alone,) = list_declines(catalog, {**ALL, "provider": {"other"}, "region": {"r1"}})
    assert (alone["sellers"], alone["machines"], alone["decline_fraction"]) == (1, 1, 0.0)
    assert list_declines(catalog, {**ALL, "region": {"r2"}}) == []
    assert list_declines(catalog, {**ALL, "option": {"secure"}}) == []
    hopper, everything = generation_declines(catalog)
    assert (hopper["chips"], hopper["sellers"], everything["generation"]) == (1, 2, None)
    assert (hopper["low_ratio"], hopper["high_ratio"]) == (pytest.approx(0.5, abs=0.01), 1.0)
    assert hopper["typical_ratio"] == pytest.approx(0.5**0.5, abs=0.01)


def test_a_cut_of_one_seller_shows_though_most_hold_their_price(tmp_path):
    """Of three sellers in two years one cuts its price to a fourth: a factor of four in six years watched."""
    offers = [
        offer(f"{name}/x", 4.0 if name != "acme" or day < "2024" else 1.0, day, provider=name)
        for name in ("acme", "other", "third")
        for day in ("2023-01-01", "2024-01-01", "2025-01-01")
    ]
    catalog = open_catalog("2025-01-01", root=world(tmp_path, offers), checked=False)
    (row,) = list_declines(catalog, ALL)
    assert row["decline_fraction"] == pytest.approx(1 - 0.5 ** (1 / 3), abs=0.002)


def test_a_price_that_nobody_looked_up_again_did_not_hold(tmp_path):
    """Seller b was seen within a single week: its list stands for years, yet says nothing of how prices move."""
    offers = [offer("a/x", 8 * 0.5**year, f"{2022 + year}-01-01", provider="acme") for year in range(4)]
    offers += [offer("b/x", 3.0, f"2022-01-0{day}", provider="other") for day in (1, 7)]
    (row,) = list_declines(open_catalog("2025-06-30", root=world(tmp_path, offers), checked=False), ALL)
    assert (row["sellers"], row["decline_fraction"]) == (1, pytest.approx(0.5, abs=0.01))
