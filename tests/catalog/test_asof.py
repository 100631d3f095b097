"""Prices on a day as known on a day, held against an independent reference written in plain Python."""

import tempfile
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpucost.catalog import open_catalog
from tests.catalog.world import offer, world

START = date(2025, 1, 1)
REGIONS = {"a": "r1", "b": "", "c": "r2"}  # three offers of one product; "b" names no region
DAYS = st.integers(0, 40).map(lambda n: START + timedelta(days=n))


@st.composite
def prices(draw):
    """One row: seen on a day, recorded then or later, perhaps valid from another day; sometimes not an offer."""
    observed = draw(DAYS)
    return {
        "offer_id": draw(st.sampled_from(["a", "b", "c"])),
        "usd": draw(st.sampled_from([1.0, 2.0, 3.0, 5.0])),
        "observed": observed,
        "recorded": observed + timedelta(days=draw(st.integers(0, 20))),
        "valid": draw(st.none() | DAYS),
        "kind": draw(st.sampled_from(["offer", "offer", "offer", "average"])),
        "confidence": draw(st.sampled_from(["low", "high"])),
    }


def reference(rows, on_day, known_day):
    """What an accountant would do: sort what was known, take the last entry, say so when two entries disagree.

    An entry without a region is replaced where a later one of the product names its region.
    """
    answer = {}
    for offer_id in {row["offer_id"] for row in rows}:
        known = [
            row for row in rows
            if row["offer_id"] == offer_id and row["kind"] == "offer"
            and row["recorded"] <= known_day and (row["valid"] or row["observed"]) <= on_day
        ]  # fmt: skip
        if not known:
            continue

        def order(row):
            return (row["recorded"], row["observed"], row["valid"] or row["observed"], row["confidence"] == "high")

        last = max(map(order, known))
        answers = {row["usd"] for row in known if order(row) == last}
        answer[offer_id] = (min(answers), len(answers) > 1, last[1])
    placed = [observed for offer_id, (_, _, observed) in answer.items() if REGIONS[offer_id]]
    return {
        offer_id: (usd, conflict, not REGIONS[offer_id] and any(day > observed for day in placed))
        for offer_id, (usd, conflict, observed) in answer.items()
    }


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(prices(), max_size=14), DAYS, st.integers(0, 60).map(lambda n: START + timedelta(days=n)))
def test_the_view_agrees_with_the_reference(rows, on_day, known_day):
    offers = [
        offer(
            row["offer_id"], row["usd"], row["observed"].isoformat(), region=REGIONS[row["offer_id"]],
            recorded_on=row["recorded"].isoformat(), offer_kind=row["kind"],
            valid_from=row["valid"].isoformat() if row["valid"] else "", confidence=row["confidence"],
        )
        for row in rows
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        catalog = open_catalog(on_day, known_day, root=world(Path(folder), offers), checked=False)
        found = {
            row["offer_id"]: (row["usd_per_hour"], row["conflict"], row["ended"] == "replaced")
            for row in catalog.price_rows
        }
        ranked = {item.offer_id for item in catalog.offers()}
    expected = reference(rows, on_day, known_day)
    assert found == expected
    assert ranked == {
        offer_id for offer_id, (_, conflict, replaced) in expected.items() if not conflict and not replaced
    }


def on(root, day, known=None):
    return {
        row["offer_id"]: row["usd_per_hour"] for row in open_catalog(day, known, root=root, checked=False).price_rows
    }


def test_a_correction_is_a_new_row_and_an_earlier_knowledge_does_not_see_it(tmp_path):
    root = world(tmp_path, [offer("a", 10, "2025-01-01"), offer("a", 8, "2025-01-01", recorded_on="2025-03-01")])
    assert on(root, "2025-02-01") == {"a": 8}
    assert on(root, "2025-02-01", "2025-02-28") == {"a": 10}


def test_a_price_holds_over_a_gap_and_not_before_it_was_first_seen(tmp_path):
    root = world(tmp_path, [offer("a", 10, "2025-01-10"), offer("a", 9, "2025-06-01")])
    assert on(root, "2025-01-09") == {}
    assert on(root, "2025-05-31") == {"a": 10}
    assert on(root, "2025-06-01") == {"a": 9}


def test_a_stated_start_reaches_back_before_the_observation(tmp_path):
    root = world(tmp_path, [offer("a", 10, "2025-01-01"), offer("a", 5, "2025-12-01", valid_from="2025-06-01")])
    assert on(root, "2025-05-31") == {"a": 10}
    assert on(root, "2025-06-01") == {"a": 5}
    assert on(root, "2025-06-01", "2025-11-30") == {"a": 10}


def test_an_ambiguous_gpu_is_shown_with_its_candidates_and_never_ranked(tmp_path):
    catalog = open_catalog(
        "2025-02-01",
        root=world(
            tmp_path, [offer("a", 1, "2025-01-01", gpu="h100-pcie-80gb|h100-sxm5-80gb"), offer("b", 2, "2025-01-01")]
        ),
        checked=False,
    )
    assert [row["gpu_ambiguous"] for row in catalog.price_rows] == [True, False]
    assert [item.offer_id for item in catalog.offers()] == ["b"]


def test_two_prices_of_one_day_are_a_conflict_and_never_the_smaller_one(tmp_path):
    root = world(
        tmp_path, [offer("a", 2, "2025-01-01"), offer("a", 3, "2025-01-01", source_id="t"), offer("b", 9, "2025-01-01")]
    )
    assert [item.offer_id for item in open_catalog("2025-02-01", root=root, checked=False).offers()] == ["b"]


def test_the_better_checked_of_two_sources_of_one_day_wins(tmp_path):
    root = world(tmp_path, [offer("a", 2, "2025-01-01", confidence="low"), offer("a", 3, "2025-01-01", source_id="t")])
    assert [item.usd_per_hour for item in open_catalog("2025-02-01", root=root, checked=False).offers()] == [3]


def p5(as_of, known=None):
    catalog = open_catalog(as_of, known)
    found = catalog.offers(provider="aws", gpu="h100-sxm", region="us-east-1", option="on_demand")
    return [item.usd_per_hour for item in found if item.instance_type == "p5.48xlarge"]


@pytest.mark.slow
def test_aws_p5_before_and_after_the_cut_of_june_2025():
    assert p5("2025-03-01") == [98.32]
    assert p5("2025-09-01") == [55.04]
    assert p5("2026-11-01") == [55.04]
    assert p5("2025-09-01", "2025-12-31") == [55.04]  # a price table of June 2025 shows the cut
    assert p5("2025-09-01", "2025-05-31") == [98.32]


def test_hyperstack_has_one_latest_on_demand_price_of_its_h100_sxm():
    found = open_catalog("2026-11-20").offers(provider="hyperstack", gpu="h100-sxm", option="on_demand")
    assert len({(item.instance_type, item.region) for item in found}) == len(found) == 1


def test_every_shipped_offer_has_one_gpu_or_names_its_candidates():
    catalog = open_catalog()
    known = {item.id for item in catalog.accelerators()}
    for row in catalog.price_rows:
        candidates = row["gpu"].split("|")
        assert set(candidates) <= known
        assert (len(candidates) > 1) == row["gpu_ambiguous"]
    assert all("|" not in item.gpu for item in catalog.offers())
