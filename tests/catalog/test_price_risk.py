"""Risk from the history: hand-made series whose volatility, shares and falls one can compute on paper."""

from datetime import date, timedelta
from math import log, sqrt

import pytest

from gpucost.catalog import open_catalog
from gpucost.catalog.prices import list_declines, overall, spot_risk
from tests.catalog.world import offer, world, write
from tools.derived import generation_declines

ALL = dict.fromkeys(("gpu", "provider", "region", "option"))


@pytest.fixture
def catalog(tmp_path):
    """Two series of spot: 100 days at 1 USD, 100 at 2, 100 at 1; beside on demand at 4."""
    return _seen(tmp_path, [])


def _seen(tmp_path, more, offers=()):
    """Return the catalog of that series, of offers, and of rows that differ from its first in what `more` says."""
    root = world(tmp_path, [offer("acme/one", 4.0, "2025-01-01"), *offers])
    write(
        root,
        "price_sources",
        [{"source_id": "s", "accessed_on": "2025-10-27"}, {"source_id": "later", "accessed_on": "2025-11-06"}],
    )
    start = date(2025, 1, 1)
    rows = [
        {"provider": "acme", "instance_type": "one", "gpu": "h100-sxm5-80gb", "gpus": 1, "region": "r1",
         "option": "spot", "term_months": 0, "usd_per_hour": usd, "event": "change", "source_id": "s",
         "observed_on": (start + timedelta(days=100 * number)).isoformat()}
        for number, usd in enumerate((1.0, 2.0, 1.0))
    ]  # fmt: skip
    rows += [{**rows[0], **different} for different in more]
    from gpucost.schemas import HISTORY

    path = root / HISTORY.files.replace("*", "test")
    path.parent.mkdir(parents=True, exist_ok=True)
    names = HISTORY.names
    lines = [",".join(names), *(",".join(str(row.get(name, "")) for name in names) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return open_catalog("2025-12-31", root=root, checked=False)


def test_volatility_and_shares_are_those_of_the_days(catalog):
    (row,) = spot_risk(catalog, ALL, 0.4)
    assert row["days"] == 300
    assert row["changes"] == 2
    assert row["volatility_ratio"] == pytest.approx(sqrt(2 * log(2) ** 2 / (300 / 365)))
    assert row["on_demand_fraction"] == pytest.approx((200 * 0.25 + 100 * 0.5) / 300)
    assert row["above_fraction"] == pytest.approx(1 / 3)


def test_days_after_the_day_asked_about_do_not_count(catalog):
    early = open_catalog("2025-04-30", root=catalog.store.root, checked=False)
    (row,) = spot_risk(early, ALL, 0.4)
    assert (row["days"], row["above_fraction"]) == (120, pytest.approx(20 / 120))


def test_a_day_that_two_sources_saw_counts_once(tmp_path):
    """Another source saw 3 USD from day 200 on and 4 from day 250, ten days longer than the first."""
    days = ("2025-07-19", 3.0), ("2025-09-07", 4.0)
    more = [{"source_id": "later", "observed_on": day, "usd_per_hour": usd} for day, usd in days]
    (row,) = spot_risk(_seen(tmp_path, more), ALL, 0.4)
    assert (row["days"], row["changes"], row["high_usd_per_hour"]) == (310, 2, 4.0)
    assert row["mean_usd_per_hour"] == pytest.approx((200 * 1 + 100 * 2 + 10 * 4) / 310)


def test_a_price_on_demand_after_the_day_asked_about_does_not_count(tmp_path):
    later = _seen(tmp_path, [], [offer("acme/one", 1.0, "2025-11-01")])
    early = open_catalog("2025-10-27", root=later.store.root, checked=False)
    found = [spot_risk(one, ALL, 0.4)[0]["on_demand_fraction"] for one in (early, later)]
    assert found == pytest.approx([400 / 300 / 4, 400 / 300 / 2.5])


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
