"""Prices against public facts, and what was kept, set apart or refused."""

from collections import defaultdict
from datetime import date

import pytest

from .tables import catalog as open_once
from .tables import number, original, original_rows, rows

OFFERS = rows("offers")
KNOWN = "2026-11-20"  # what was learned later cannot move what was known on this day
P5 = "aws/p5.48xlarge/8xh100-sxm5-80gb/us-east-1/on_demand"


def catalog(as_of=None, known_as_of=KNOWN):
    return open_once(as_of, known_as_of)


def price(offer_id, as_of, known_as_of=KNOWN):
    offers = catalog(as_of, known_as_of).offers(provider=offer_id.split("/")[0])
    return next(offer.usd_per_hour for offer in offers if offer.offer_id == offer_id)


@pytest.mark.parametrize(
    ("as_of", "known_as_of", "usd"),
    [
        ("2025-03-01", KNOWN, 98.32),
        ("2025-09-01", KNOWN, 55.04),
        ("2026-11-01", KNOWN, 55.04),
        ("2025-09-01", "2025-12-31", 55.04),  # a price table of June 2025 shows the cut
        ("2025-09-01", "2025-05-31", 98.32),  # nobody knew of it before
    ],
)
def test_the_cut_of_june_2025_as_it_was_known(as_of, known_as_of, usd):
    assert price(P5, as_of, known_as_of) == usd


@pytest.mark.parametrize(
    ("offer_id", "as_of", "usd"),
    [
        # list prices that Amazon and Google published on these days
        ("aws/p4d.24xlarge/8xa100-sxm4-40gb/us-east-1/on_demand", "2025-04-01", 32.7726),
        ("aws/p4d.24xlarge/8xa100-sxm4-40gb/us-east-1/on_demand", "2026-11-10", 21.957642),
        ("aws/p3.2xlarge/1xv100-sxm2-16gb/us-east-1/on_demand", "2019-06-01", 3.06),
        ("gcp/tpu-v4-pod-chip/1xtpu-v4/us-central2/on_demand", "2025-01-01", 3.22),
        ("azure/standard-nd96isr-h100-v5/8xh100-sxm5-80gb/eastus/on_demand", "2026-08-01", 98.32),
        ("lambda/gpu-8x-h100-sxm5/8xh100-sxm5-80gb/global/on_demand", "2026-10-01", 31.92),
        # its price page on the days on which the Internet Archive kept it
        ("lambda/gpu-8x-h100-sxm5/8xh100-sxm5-80gb/global/on_demand", "2023-11-30", 20.72),
        ("lambda/gpu-8x-h100-sxm5/8xh100-sxm5-80gb/global/on_demand", "2024-07-24", 27.92),
        ("lambda/gpu-8x-h100-sxm5/8xh100-sxm5-80gb/global/on_demand", "2024-10-01", 23.92),
        ("lambda/gpu-8x-b200-sxm6/8xb200-sxm/global/on_demand", "2026-01-20", 39.92),
    ],
)
def test_list_prices(offer_id, as_of, usd):
    assert price(offer_id, as_of) == pytest.approx(usd, abs=0.005)


def test_one_product_has_one_latest_price_whatever_its_sources_call_it():
    offers = catalog("2026-11-01").offers(provider="hyperstack", gpu="h100-sxm", option="on_demand")
    assert [(offer.usd_per_hour, offer.observed_on) for offer in offers] == [(3.2, date(2026, 10, 10))]
    assert (
        len({item["listed_as"] or item["instance_type"] for item in OFFERS if item["offer_id"] == offers[0].offer_id})
        > 1
    )


def test_only_offers_stand_among_the_offers():
    assert {item["offer_kind"] for item in OFFERS} == {"offer"}
    assert all(item["observed_on"] and item["source_id"] for item in OFFERS)


def test_price_per_gpu_is_the_price_divided_by_the_gpus():
    for item in OFFERS:
        assert float(item["usd_per_gpu_hour"]) == pytest.approx(
            float(item["usd_per_hour"]) / int(item["gpus"]), rel=1e-5
        )


def test_facts_were_learned_when_they_were_seen_or_later():
    assert all(item["recorded_on"] >= item["observed_on"] for item in OFFERS)
    assert all(item["recorded_on"] == item["observed_on"] for item in original_rows("offers"))
    assert all(not item["valid_from"] or item["valid_from"] <= item["observed_on"] for item in original_rows("offers"))


def test_one_offer_has_one_price_a_day_until_it_is_corrected():
    prices = defaultdict(set)
    for item in OFFERS:
        prices[item["offer_id"], item["observed_on"], item["recorded_on"]].add(item["usd_per_hour"])
    assert not [key for key, seen in prices.items() if len(seen) > 1]


def test_every_offer_names_one_accelerator_or_its_candidates():
    known = {item["id"] for item in rows("accelerators")}
    assert all(set(item["gpu"].split("|")) <= known for item in OFFERS)
    ranked = catalog().offers()
    assert not [offer for offer in ranked if "|" in offer.gpu]


def test_a_node_holds_the_accelerator_of_its_offer():
    nodes = {item["id"]: item for item in rows("systems")}
    for item in OFFERS:
        if item["system_id"]:
            assert nodes[item["system_id"]]["accelerator_id"] == item["gpu"]
            assert int(item["gpus"]) <= int(nodes[item["system_id"]]["gpus"])


def test_regions_are_regions():
    scopes = {"global", "any", "all", "secure", "us (list)", "Global (lowest)"}
    assert not scopes & {item["region"] for item in OFFERS}
    assert all(bool(item["region"]) == (item["region_scope"] in ("region", "country", "continent")) for item in OFFERS)


def test_commitments_say_their_term_and_payment():
    for item in OFFERS:
        committed = item["option"] in ("reserved", "commitment", "savings_plan")
        assert (int(item["term_months"]) > 0) == committed
        if committed:
            assert item["billing"] == "take_or_pay"
            assert item["payment"] != "none"
        if item["payment"] == "all_upfront" and committed:
            hours = 730 * int(item["term_months"])
            assert float(item["upfront_usd"]) == pytest.approx(float(item["usd_per_hour"]) * hours, abs=0.01)
        if item["payment"] in ("no_upfront", "monthly"):
            assert number(item["recurring_usd_per_hour"]) == number(item["usd_per_hour"])
        if item["payment"] == "partial_upfront":
            assert item["upfront_usd"] == ""  # unknown, not zero


def test_an_azure_reservation_of_a_year():
    """551,221 USD for 8,760 hours of ND96isr H100 v5 (Azure Retail Prices, July 2026)."""
    found = [
        item
        for item in OFFERS
        if item["offer_id"].startswith("azure/standard-nd96isr-h100-v5") and item["term_months"] == "12"
    ]
    assert any(float(item["usd_per_hour"]) == pytest.approx(551221 / 8760, abs=1e-4) for item in found)


def test_spot_is_never_dearer_than_on_demand_at_one_source_and_day():
    prices = defaultdict(dict)
    for item in OFFERS:
        place = tuple(
            item[key] for key in ("provider", "instance_type", "gpu", "gpus", "region", "observed_on", "source_id")
        )
        prices[place][item["option"], item["tier"]] = float(item["usd_per_hour"])
    for place, seen in prices.items():
        if ("spot", "") in seen and ("on_demand", "") in seen:
            assert seen["spot", ""] < seen["on_demand", ""], place


def test_a_decision_has_its_reason():
    assert all(item["reason"] and item["decision"] for item in rows("decisions"))


def test_every_price_that_was_first_collected_stands_in_exactly_one_table():
    """2,218 prices were collected; 15 of them said the same as another of their source (per GPU and per node)."""
    kept = sum(len(original()[name]) for name in ("offers", "market_statistics", "undated", "components", "quarantine"))
    merged = [item for item in original_rows("decisions") if item["decision"] == "merged"]
    assert (kept, len(merged)) == (2218 - 15, 15)


def test_statistics_and_parts_cannot_be_ordered():
    assert {item["statistic"] for item in rows("market_statistics")} == {
        "median",
        "mean over sizes",
        "minimum",
        "average",
    }
    assert all("(min over sizes)" not in item["listed_as"] and "median" not in item["listed_as"] for item in OFFERS)
    assert all(item["provider"] == "gcp" and "SKU" in item["listed_as"] for item in rows("components"))
    assert not [item for item in OFFERS if "market average" in (item["listed_as"] or item["instance_type"])]


def test_unresolved_part_numbers_are_refused():
    """Oracle lists L40S parts at 0.60 and 2.90 beside the 3.50 of the shape: their meaning is not known."""
    assert (
        min(float(item["usd_per_gpu_hour"]) for item in OFFERS if item["provider"] == "oci" and item["gpu"] == "l40s")
        == 3.5
    )
