"""The dense history: what was known of a price on a day, what has ended, and what a ranking may hold today."""

import csv
from collections import Counter
from datetime import date
from operator import itemgetter

import pytest

from gpucost.catalog import open_catalog
from gpucost.catalog.asof import current_rows
from gpucost.catalog.availability import UNSOLD
from gpucost.options import MARKETS, OPTIONS
from gpucost.schemas import HISTORY, TABLES

from .tables import ROOT, catalog, files, rows

SEEN = date(2026, 11, 22)  # prices of this day: later ones are older
TODAY = max(SEEN, *(date.fromisoformat(item["recorded_on"]) for item in rows("offers")))


def prices(day, instance_type, region, option="on_demand"):
    return [
        offer.usd_per_hour
        for offer in catalog(day).offers(option=option)
        if (offer.instance_type, offer.region) == (instance_type, region)
    ]


@pytest.mark.parametrize(
    ("day", "instance_type", "region", "option", "usd"),
    [
        ("2024-12-01", "a3-highgpu-8g", "us-central1", "spot", 35.59),
        ("2025-04-01", "a3-highgpu-8g", "us-central1", "spot", 20.42),
        ("2025-11-15", "a3-highgpu-8g", "us-central1", "spot", 20.39),
        ("2026-03-01", "a3-highgpu-8g", "us-central1", "spot", 27.02),
        ("2025-06-10", "p5.48xlarge", "us-west-2", "on_demand", 55.04),
        ("2025-08-15", "p6-b200.48xlarge", "us-east-1", "on_demand", 113.93),
        ("2025-04-15", "p5en.48xlarge", "us-east-1", "on_demand", 84.80),
        ("2025-06-01", "Standard_ND96isr_H200_v5", "westus3", "on_demand", 84.80),
        ("2024-03-01", "gpu_8x_a100", "", "on_demand", 10.32),
        ("2024-03-01", "gpu_8x_h100_sxm5", "", "on_demand", 27.92),
        (TODAY, "p5.48xlarge", "us-west-2", "on_demand", 55.04),
        (TODAY, "g6e.xlarge", "us-east-1", "on_demand", 1.861),
    ],
)
def test_a_price_as_its_provider_listed_it_on_that_day(day, instance_type, region, option, usd):
    assert prices(day, instance_type, region, option) == [pytest.approx(usd, abs=0.005)]


def test_prices_of_capacity_blocks_that_state_their_end_are_no_offers():
    """The page of December 2024 says that its prices are to be updated on 2025-01-01."""
    before = [offer for offer in catalog("2024-12-31").offers(option="capacity_block") if offer.provider == "aws"]
    after = [offer for offer in catalog("2025-01-01").offers(option="capacity_block") if offer.provider == "aws"]
    assert before
    assert not after
    assert catalog("2025-01-01").ended["stated"] == len(before)


def test_a_spot_price_of_last_year_is_history():
    limit = OPTIONS["spot"].expires_days
    spot = catalog(TODAY).offers(option="spot")
    assert spot
    assert all(offer.age_days <= limit for offer in spot)


def test_the_price_of_a_larger_sister_is_not_that_of_the_smallest():
    assert not {2.24, 3.0} & {
        o.usd_per_hour for o in catalog(TODAY).offers(provider="aws") if o.instance_type == "g6e.xlarge"
    }


def test_a_price_does_not_step_back_between_two_newer_sights():
    assert prices("2026-04-10", "gpu_8x_b200_sxm6", "") == [53.52]


def test_no_superseded_price_is_among_the_offers():
    """Over every product of today: nobody has seen another price of it later, and its end has not come."""
    newest = {}
    for item in rows("offers"):
        if not any(ended(end, item) for end in rows("price_ends")):
            newest[item["offer_id"]] = max(newest.get(item["offer_id"], ""), item["recorded_on"])
    for offer in catalog(TODAY).offers():
        assert offer.recorded_on.isoformat() == newest[offer.offer_id], offer.offer_id
        market = offer.tier in MARKETS
        assert offer.age_days <= (180 if market else OPTIONS[offer.option].expires_days), offer.offer_id


def test_a_list_without_regions_gives_way_to_a_newer_one_with_them():
    """Over every product of today: what names no region was seen no earlier than what names one."""
    product = itemgetter("provider", "instance_type", "gpu", "gpus", "option", "tier", "term_months", "payment")
    placed = {}
    offered = [row for row in catalog(TODAY).price_rows if not row["ended"]]
    for row in offered:
        if row["region"]:
            placed[product(row)] = max(row["observed_on"], placed.get(product(row), date.min))
    for row in offered:
        if not row["region"]:
            assert row["observed_on"] >= placed.get(product(row), date.min), row["offer_id"]
    ids = {offer.offer_id for offer in catalog(TODAY).offers()}
    assert "aws/p4d.24xlarge/8xa100-sxm4-40gb/us-east-1/on_demand" in ids
    assert "aws/p4d.24xlarge/8xa100-sxm4-40gb/global/on_demand" not in ids  # 21.92 of March against 21.957642


def test_what_a_question_ranks_is_the_newest_of_its_product():
    from gpucost import estimate

    newest = {}
    for row in catalog(TODAY).price_rows:
        if not row["ended"]:
            key = row["provider"], row["instance_type"], row["region"], row["option"], row["term_months"], row["tier"]
            newest[key] = max(row["observed_on"].isoformat(), newest.get(key, ""))
    names = "provider", "instance_type", "region", "option", "term_months", "tier"
    options = estimate(model="8b", tokens="100b", top=2000, catalog=catalog(TODAY)).payload["options"]
    assert len(options) > 100
    for option in options:
        key = tuple(option[name] for name in names)
        assert option["price_observed_on"] == newest[key], key
    offers = catalog().offers()  # what every ranking draws from, of every accelerator
    assert len({offer.gpu for offer in offers}) > 50
    for offer in offers:
        key = tuple(None if (value := getattr(offer, name)) == "" else value for name in names)
        assert offer.observed_on.isoformat() == newest[key], key


def test_facts_and_providers_are_counted_by_a_command():
    from gpucost.catalog.prices import coverage, machines

    everything = dict.fromkeys(("gpu", "provider", "region", "option"))
    rows = coverage(catalog(SEEN), everything)
    assert sum(row["facts"] for row in rows) >= 40_000
    assert len(rows) >= 40
    found = {(row["provider"], row["instance_type"]): row for row in machines(catalog(SEEN), everything)}
    assert found["gcp", "a3-ultragpu-8g"]["usd_per_hour"]
    priced = [
        row for row in found.values() if row["provider"] in ("aws", "azure", "gcp") and row["age_days"] is not None
    ]
    assert {"p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge", "p6-b300.48xlarge", "Standard_ND96isr_H100_v5",
            "a3-highgpu-8g", "a3-megagpu-8g", "a3-ultragpu-8g"} <= {
        row["instance_type"] for row in priced if row["age_days"] <= 120
    }  # fmt: skip


def test_a_machine_without_a_young_price_was_sought_and_no_other():
    """Of the large clouds, on the day of the search; the price of a part counts for as many as the machine has."""
    from gpucost.catalog.prices import LARGE_CLOUDS, YOUNG_DAYS, machines, unseen

    gaps = {(row["provider"], row["instance_type"]): row["sought_on"] for row in rows("price_gaps")}
    seen = catalog(date.fromisoformat(max(gaps.values())))
    wanted = {**dict.fromkeys(("gpu", "region", "option")), "provider": set(LARGE_CLOUDS)}
    found = machines(seen, wanted)
    old = {
        (row["provider"], row["instance_type"]) for row in found
        if row["age_days"] is None or row["age_days"] > YOUNG_DAYS
    }  # fmt: skip
    assert old == set(gaps)
    assert all(name in "".join(unseen(found)) for _, name in gaps)
    slices = {row["instance_type"]: row for row in found}["a4-highgpu-8g"]
    assert slices["usd_per_hour"] / 8 > 4, "the price of one accelerator is not that of the machine"


def ended(end, item):
    same = all(not end[name] or end[name] == item[name] for name in ("instance_type", "region", "option"))
    price = not end["usd_per_hour"] or float(end["usd_per_hour"]) == float(item["usd_per_hour"])
    seen = max(item["observed_on"], item["valid_from"])  # one announced for the day of the end outlives it
    earlier = seen < end["ended_on"] or (end["reason"] == "wrong" and seen == end["ended_on"])
    return end["provider"] == item["provider"] and same and price and earlier


def test_what_is_left_out_is_counted_by_reason():
    seen = catalog(TODAY)
    offered = {offer.offer_id for offer in seen.offers()}
    left = Counter(row["ended"] for row in seen.price_rows if row["ended"])
    assert seen.ended == left
    assert set(left) == {"stated", "replaced", "wrong", "too old", "withdrawn", UNSOLD}
    assert not offered & {row["offer_id"] for row in seen.price_rows if row["ended"]}


def test_the_history_is_well_formed_and_large():
    store = catalog(TODAY).store
    store.ensure("price_history", "price_sources", "providers", "accelerators")
    found = store.fetch("""SELECT count(*) AS facts, count(DISTINCT provider) AS providers,
        count(*) FILTER (event <> 'gone' AND coalesce(usd_per_hour, 0) <= 0) AS priceless,
        count(*) FILTER (provider NOT IN (SELECT provider FROM providers)) AS homeless,
        count(*) FILTER (source_id NOT IN (SELECT source_id FROM price_sources)) AS unsourced,
        count(*) FILTER (usd_per_hour_high < usd_per_hour) AS upside_down FROM price_history""")[0]
    assert found["facts"] >= 40_000
    assert (found["priceless"], found["homeless"], found["unsourced"], found["upside_down"]) == (0, 0, 0, 0)
    key = ", ".join(HISTORY.key)
    assert not store.fetch(f"SELECT {key} FROM price_history GROUP BY ALL HAVING count(*) > 1 LIMIT 1")
    gpus = store.fetch("SELECT DISTINCT unnest(string_split(gpu, '|')) AS gpu FROM price_history")
    assert {row["gpu"] for row in gpus} <= {row["id"] for row in store.rows("accelerators")}
    for file in files(HISTORY):
        with file.open(encoding="utf-8") as stream:
            assert next(csv.reader(stream)) == list(HISTORY.names), file.name


@pytest.mark.parametrize(
    "fault",
    [
        "provider = 'aws' AND source_id LIKE 'karpenter%' AND observed_on BETWEEN '2023-02-01' AND '2023-09-17'",
        "instance_type LIKE 'a2-ultra%' AND term_months > 0 AND observed_on >= '2022-10-06' AND event <> 'gone'",
        "instance_type = 'a3-megagpu-8g' AND usd_per_hour < 12",
        "provider = 'gcp' AND source_id LIKE '%skypilot%'",
    ],
)
def test_known_faults_of_the_sources_are_left_out(fault):
    store = catalog(TODAY).store
    store.ensure("price_history")
    assert store.fetch(f"SELECT count(*) AS rows FROM price_history WHERE {fault}") == [{"rows": 0}]


def test_the_rows_for_today_follow_from_the_history():
    """`python -m docs.generate from-history.csv` writes them."""
    fresh = open_catalog(root=ROOT)
    made = {(row["offer_id"], row["usd_per_hour"]) for row in current_rows(fresh.store, fresh.dated)}
    with (ROOT / "pricing/offers/from-history.csv").open(newline="", encoding="utf-8") as file:
        kept = {(item["offer_id"], float(item["usd_per_hour"])) for item in csv.DictReader(file)}
    assert {name for name, _ in made} == {name for name, _ in kept}
    assert dict(made) == pytest.approx(dict(kept), rel=1e-6)


def test_a_list_of_every_machine_in_every_region_sells_none_where_others_do_not():
    """Cyclenerd prices an A100 of Google's in Hamina, where none is sold."""
    named = {
        (row["instance_type"], row["region"])
        for row in rows("offers")
        if row["provider"] == "gcp" and not row["source_id"].startswith("cyclenerd")
    }
    known = {machine for machine, _ in named}
    with (ROOT / "pricing/offers/from-history.csv").open(newline="", encoding="utf-8") as file:
        kept = {(item["instance_type"], item["region"]) for item in csv.DictReader(file) if item["provider"] == "gcp"}
    assert len(kept) > 20
    assert {place for place in kept if place[0] in known} <= named


def test_the_answer_of_today_reads_no_history():
    fresh = open_catalog(TODAY, root=ROOT)
    fresh.offers()
    assert not fresh.store.fetch(
        "SELECT 1 FROM duckdb_tables() WHERE table_name IN ('price_history', 'history_offers')"
    )
    assert "price_history" not in TABLES


def test_an_estimate_counts_what_it_leaves_out():
    from gpucost import estimate

    left = catalog(TODAY).ended
    said = estimate(model="8b", tokens="100b", gpu="h100-sxm", catalog=catalog(TODAY)).payload["remarks"]
    assert any(f"{sum(left.values())} prices" in one and f"{left['too old']} expired" in one for one in said), said


def test_hosted_models_that_ended_have_their_end():
    for item in rows("hosted_tokens"):
        if item["provider"] == "lambda":
            assert item["valid_until"] == "2025-09-25"
        if item["listing"] == "cerebras/llama3.1-8b":
            assert item["valid_until"] == "2026-05-27"
