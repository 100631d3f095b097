"""What became of quotes: the table against a second count of the same rows, and against what its words say."""

from collections import defaultdict
from datetime import date
from statistics import median

import pytest

from gpucost.catalog import open_catalog
from gpucost.options import quote_family
from tools.derived import REACH_DAYS, SPANS_DAYS, quote_fates


@pytest.fixture(scope="module")
def catalog():
    return open_catalog(open_catalog().dated)


@pytest.fixture(scope="module")
def fates(catalog):
    return {(row["seller_kind"], row["option_family"], row["from_days"]): row for row in quote_fates(catalog)}


def fate_of_marketplaces(catalog, span):
    """Follow quotes of marketplaces, which no catalogue of the history holds, without a line of SQL."""
    low, high = span
    kinds = {row["provider"]: row["kind"] for row in catalog.rows("providers")}
    publishers = {row["source_id"]: row["publisher"] or row["source_id"] for row in catalog.rows("price_sources")}
    prices, days_of = defaultdict(list), defaultdict(set)
    for row in catalog.rows("offers"):
        age_days = (catalog.as_of - row["observed_on"]).days
        sold = kinds[row["provider"]], quote_family(row["option"])
        if sold == ("marketplace", "on demand") and 0 <= age_days < REACH_DAYS:
            book = publishers[row["source_id"]], row["provider"]
            prices[row["offer_id"], book, row["observed_on"]].append(row["usd_per_hour"])
            days_of[book, row["observed_on"]].add(row["offer_id"])
    sights = defaultdict(dict)
    for (offer, _, day), seen in prices.items():
        sights[offer].setdefault(day, []).append(median(seen))
    ratios = []
    for (offer, book, day), seen in prices.items():
        enough = len(days_of[book, day])
        looks = sorted(
            then
            for other, then in days_of
            if other == book and low <= (then - day).days <= high and 2 * len(days_of[other, then]) >= enough
        )
        if looks:
            then = min(looks, key=lambda one: abs((one - day).days - (low + high) // 2))
            later = min((one for one in sights[offer] if one >= then), default=None)
            ratios.append(median(sights[offer][later]) / median(seen) if later else None)
    return ratios


@pytest.mark.slow
@pytest.mark.parametrize("span", SPANS_DAYS)
def test_quotes_of_marketplaces_fare_as_a_second_count_says(catalog, fates, span):
    ratios = fate_of_marketplaces(catalog, span)
    row = fates.get(("marketplace", "on demand", span[0]))
    assert bool(ratios) == (row is not None)
    if row:
        sold = sorted(ratio for ratio in ratios if ratio is not None)
        assert row["pairs"] == len(ratios)
        if row["sellers"] == 1:  # several are weighed against each other
            assert row["still_sold_fraction"] == pytest.approx(len(sold) / len(ratios))
            assert row["p50_ratio"] == (pytest.approx(sold[(len(sold) - 1) // 2]) if sold else None)


def test_lists_stand_and_spot_moves(fates):
    """A list of a large cloud is the same after four months; every fifth spot price is a fifth away from its quote."""
    listed, spot = (fates["hyperscaler", family, 76] for family in ("on demand", "preemptible"))
    assert listed["p10_ratio"] == listed["p90_ratio"] == 1
    assert spot["p10_ratio"] < 0.8 < 1.15 < spot["p90_ratio"]
    for row in fates.values():
        ratios = [value for key, value in row.items() if key.endswith("_ratio") and value is not None]
        assert ratios == sorted(ratios)
        assert bool(ratios) == (row["still_sold_fraction"] > 0)


@pytest.mark.slow
def test_what_is_not_known_yet_is_not_counted():
    early = quote_fates(open_catalog(date(2025, 6, 1)))
    assert sum(row["pairs"] for row in early) > 0
    assert not [row for row in early if row["seller_kind"] == "marketplace" and row["from_days"] > 200]
