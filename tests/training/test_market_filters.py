"""Filters of the market, prices of one's own, and what starts an offer, over the shipped offers."""

import pytest

from gpucost import choose, estimate, inference, tco
from gpucost.errors import PriceMissingError, UsageError
from gpucost.market.terms import unlisted
from gpucost.options import OPTIONS

ASKED = {"model": "8b", "tokens": "100b"}


@pytest.fixture(scope="module")
def catalog():
    from gpucost.catalog import open_catalog

    return open_catalog("2026-11-20")


def options(catalog, **wanted):
    return estimate(**{**ASKED, **wanted}, top=0, all_regions=True, catalog=catalog).payload["options"]


def test_a_seller_and_a_kind_of_seller_are_left_out(catalog):
    sellers = {row["provider"] for row in options(catalog)}
    assert {"crusoe", "aws"} <= sellers
    assert "crusoe" not in {row["provider"] for row in options(catalog, exclude_provider="crusoe")}
    assert {row["provider"] for row in options(catalog, provider_class="hyperscaler")} <= {
        "aws", "gcp", "azure", "oci", "aws-sagemaker",
    }  # fmt: skip


def test_a_network_is_that_of_the_machine(catalog):
    assert {row["provider"] for row in options(catalog, fabric="efa")} <= {"aws", "aws-sagemaker"}
    with pytest.raises(UsageError, match=r"(--fabric|fabric=)"):
        options(catalog, fabric="carrier-pigeon")


def test_no_order_is_larger_than_asked_for(catalog):
    assert max(row["gpus"] for row in options(catalog, max_gpus=32)) <= 32
    with pytest.raises(UsageError, match="contradicts"):
        options(catalog, gpus=64, max_gpus=32)


def test_prices_of_low_confidence_are_left_out(catalog):
    assert "low" not in {row["price_confidence"] for row in options(catalog, min_confidence="medium")}


def test_a_price_of_ones_own_for_a_chip_that_nobody_sells(catalog):
    (found,) = options(catalog, gpu="h800", usd_per_gpu_hour=2.0, gpus=64)
    assert found["cost_usd"] == pytest.approx(found["gpu_hours"] * 2.0, rel=0.01)
    with pytest.raises(PriceMissingError, match=r"no seller is known for h800.* GPU-hours"):
        options(catalog, gpu="h800", gpus=64)


def test_serving_keeps_within_so_many(catalog):
    found = inference("70b", precision="fp8", requests_per_s=5, max_gpus=4, catalog=catalog).payload["options"]
    assert max(row["gpus"] for row in found) <= 4


def test_a_tiny_load_is_sent_to_an_api(catalog):
    lead = inference("8b", requests_per_s=0.01, catalog=catalog).payload["lead"]
    assert lead.startswith("Use an API: 0.8")  # 33.6M tokens at 0.024 USD a million


def test_batches_end_where_measurements_do(catalog):
    best = inference("gpt-oss-120b", gpu="b200", catalog=catalog).payload["options"][0]
    assert best["batch"] <= 256 * best["layout"]["gpus"]
    assert best["output_tokens_per_s_per_gpu"] < 1.25 * 14_700  # the best ever published, at 256


def family(row):
    return OPTIONS[row["option"]].family


def test_a_service_leads_with_what_binds_nobody_and_names_the_commitment_beside_it(catalog):
    found = inference("70b", precision="fp8", gpu="h100-sxm", provider="aws", top=0, catalog=catalog)
    assert family(found.best) == "on demand"
    bound = [row for row in found.options if family(row) == "committed"]
    least = min(bound, key=lambda row: row["usd_per_mtok"])
    assert least["usd_per_mtok"] < found.best["usd_per_mtok"]
    assert f"With a {least['term_months']}-month commitment: {least['usd_per_mtok']:.3g} USD" in found.headline


def test_a_commitment_that_is_asked_for_leads(catalog):
    assert family(inference("8b", option="reserved", catalog=catalog).best) == "committed"
    assert "-month commitment" not in inference("8b", option="reserved", catalog=catalog).headline


def test_a_booked_window_leads_no_service(catalog):
    found = inference("llama-3.1-405b", precision="bf16", gpu="h100-sxm", provider="aws", top=0, catalog=catalog)
    assert family(found.best) == "on demand"
    assert "scheduled" in {family(row) for row in found.options}


def test_every_kind_of_first_answer_says_that_no_list_had_its_offer_lately(catalog):
    """Hot Aisle's MI300X was seen 62 days before, within the age of its kind."""
    place = {"gpu": "mi300x", "provider": "hotaisle", "catalog": catalog}
    heads = [
        estimate(**ASKED, **place).headline,
        inference("8b", **place).headline,
        tco(**place).payload["lead"],
        choose("8b", purpose="training", **place).headline,
        choose("8b", purpose="research", **place).headline,
    ]
    late = unlisted(62, "shipped")
    assert late
    for head in heads:
        assert late in head
    assert late not in estimate(**ASKED, gpu="h100-sxm", catalog=catalog).headline
