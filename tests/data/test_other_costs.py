"""Interruptions, storage, hosted tokens, tax tables and energy against public facts."""

import math

import pytest

from gpucost.market.supply import grid_items, grid_of
from gpucost.schemas import TABLES
from tests.rules import for_each

from .tables import number, original_rows, row, rows


def test_bucket_rates_follow_from_the_monthly_share():
    """5 % in a month: -ln(0.95) / 730 h = 7.0265e-5 per hour."""
    top = {
        float(item["interruptions_per_instance_hour_high"])
        for item in rows("spot")
        if item["monthly_interruption_high_fraction"] == "0.05"
    }
    assert list(top) == [pytest.approx(7.0265e-5, rel=1e-4)]
    for item in rows("spot"):
        if item["kind"] == "bucket":
            low = float(item["monthly_interruption_low_fraction"])
            assert float(item["interruptions_per_instance_hour_low"]) == pytest.approx(
                -math.log(1 - low) / 730, abs=1e-9
            )


def test_an_open_bucket_has_no_upper_rate():
    open_ended = [
        item for item in rows("spot") if item["kind"] == "bucket" and item["monthly_interruption_low_fraction"] == "0.2"
    ]
    assert open_ended
    assert all(item["interruptions_per_instance_hour_high"] == "" for item in open_ended)


def test_traces_lose_an_instance_every_few_hours():
    """SkyPilot's traces of V100s in us-east-1a: 0.72 available hours per loss."""
    worst = max(rows("spot"), key=lambda item: number(item["interruptions_per_instance_hour"]) or 0)
    assert worst["kind"] in ("probe", "trace")
    zone = next(item for item in rows("spot") if item["zone"] == "us-east-1a")
    assert float(zone["interruptions_per_instance_hour"]) == pytest.approx(1 / 0.72, rel=1e-4)


def test_macrs_spreads_the_whole_basis():
    """IRS Publication 946, Table A-1, five-year property: 20, 32, 19.2, 11.52, 11.52, 5.76 %."""
    shares = [float(item["typical"]) for item in rows("ownership") if item["item"].startswith("macrs5_halfyear")]
    assert shares == [0.2, 0.32, 0.192, 0.1152, 0.1152, 0.0576]
    assert sum(shares) == pytest.approx(1.0)


@for_each("source_id", sorted({item["source_id"] for item in rows("ownership")}))
def test_figures_of_ownership_can_be_looked_up(source_id):
    """Ours are estimates; others have an address and the day they were read, or a title that says what is missing."""
    source = row("price_sources", source_id)
    read = source["locator"].startswith(("https://", "http://")) and source["accessed_on"]
    assert source["publisher"] == "gpucost" or read or source["title"].endswith(("found again)", "read again)"))


def test_residual_value_falls_with_age():
    curve = [float(item["typical"]) for item in rows("ownership") if item["item"].startswith("residual_value.")]
    assert curve == sorted(curve, reverse=True)
    assert len(curve) >= 6


def test_alternatives_stand_in_groups():
    groups = {item["exclusive_group"] for item in rows("ownership")}
    assert {"network_capex", "spares", "facility", "server_price"} <= groups
    assert all(
        len([item for item in rows("ownership") if item["exclusive_group"] == group]) > 1 for group in groups - {""}
    )


def test_every_region_of_the_offers_has_a_grid():
    mapped = {(item["provider"], item["region"]) for item in rows("cloud_regions")}
    missing = {(item["provider"], item["region"]) for item in rows("offers") if item["region"]} - mapped
    assert not {pair for pair in missing if ("any", pair[1]) not in mapped}


@pytest.mark.parametrize(
    ("provider", "region", "grid"),
    [
        ("azure", "northcentralus", "us_illinois"),
        ("azure", "usgovvirginia", "us_virginia"),
        ("azure", "usdodeast", "us"),
        ("azure", "belgiumcentral", "belgium"),
        ("any", "finland", "finland"),
        ("azure", "eastus2", "us_virginia"),
        ("azure", "northeurope", "ireland"),
        ("azure", "indonesiacentral", "indonesia"),
        ("azure", "australiasoutheast", "australia"),
        ("azure", "germanywestcentral", "germany"),
        ("azure", "norwayeast", "norway"),
        ("gcp", "northamerica-northeast2", "canada_ontario"),
        ("gcp", "europe-west9", "france"),
        ("gcp", "australia-southeast1", "australia"),
        ("fluidstack", "norway_4_eu", "norway"),
        ("e2e", "India (Delhi/Mumbai)", "india"),
        ("aws", "us (list)", "us"),
        ("runpod", "secure", "world"),
        ("ovh", "FRA", "germany"),
    ],
)
def test_a_region_is_fed_by_the_grid_of_its_place_not_of_a_country_whose_code_it_begins_with(provider, region, grid):
    assert grid_of(grid_items(rows("cloud_regions")), provider, region) == f"grid_carbon.{grid}"


def test_grids_differ_as_the_world_does():
    carbon = {item["grid_region"]: float(item["typical"]) for item in rows("energy") if item["kind"] == "grid_carbon"}
    assert carbon["norway"] < carbon["france"] < carbon["us"] < carbon["india"]


def test_storage_and_traffic_list_prices():
    """S3 standard 0.023 USD per GB-month, internet egress of AWS 0.09 USD per GB; Google bills per GiB."""
    typical = {(item["provider"], item["service"]): item for item in rows("services") if item["typical"] == "1"}
    assert float(typical["aws", "object_storage"]["usd_per_gb_month"]) == 0.023
    assert float(typical["aws", "egress_internet"]["usd_per_gb"]) == 0.09
    assert float(typical["gcp", "object_storage"]["usd_per_gb_month"]) == pytest.approx(0.02 / 1.073741824, rel=1e-4)
    assert float(typical["coreweave", "egress_internet"]["usd_per_gb"]) == 0.0


def test_one_typical_row_per_provider_and_service():
    chosen = [(item["provider"], item["service"]) for item in rows("services") if item["typical"] == "1"]
    assert len(chosen) == len(set(chosen))


def test_deepseeks_own_prices():
    """0.55 and 2.19 USD per million tokens for R1 in February 2025; V3 rose from 0.14 / 0.28 to 0.27 / 1.10."""
    own = [
        item
        for item in original_rows("hosted_tokens")
        if item["provider"] == "deepseek" and item["observed_on"].startswith("2025-02")
    ]
    prices = {(float(item["input_usd_per_mtok"]), float(item["output_usd_per_mtok"])) for item in own}
    assert prices == {(0.55, 2.19), (0.14, 0.28), (0.27, 1.1)}


def test_every_hosted_model_is_an_architecture_and_doubts_are_marked():
    assert all(item["model_id"] for item in rows("hosted_tokens"))
    assert {item["provider"] for item in original_rows("hosted_tokens") if item["suspect"] == "1"} == {"hyperbolic"}


@pytest.mark.parametrize(
    "model",
    ["gpt-oss-120b", "qwen3-235b-a22b", "kimi-k2.6", "glm-4.6", "glm-5.2", "llama-4-maverick-17b-128e", "gemma-3-27b"],
)
def test_open_models_that_many_sell_have_prices_of_two_hosts_at_least(model):
    hosts = {item["provider"] for item in rows("hosted_tokens") if item["model_id"] == model and item["suspect"] == "0"}
    assert len(hosts) >= 2


def test_hosted_prices_as_their_sources_state_them():
    """Groq's gpt-oss-120b: 0.15 in, 0.075 cached, 0.60 out, half of it in batches; Fireworks caches at a tenth."""
    found = {(item["provider"], item["listing"]): item for item in rows("hosted_tokens")}
    groq, fireworks = found["groq", "gpt-oss-120b"], found["fireworks", "gpt-oss-120b"]
    names = ("input_usd_per_mtok", "cached_input_usd_per_mtok", "output_usd_per_mtok", "batch_discount_fraction")
    assert [float(groq[name]) for name in names] == [0.15, 0.075, 0.6, 0.5]
    assert float(fireworks["cached_input_usd_per_mtok"]) == 0.015


def test_cached_input_is_never_dearer_than_input():
    for item in rows("hosted_tokens"):
        if item["cached_input_usd_per_mtok"]:
            assert float(item["cached_input_usd_per_mtok"]) <= float(item["input_usd_per_mtok"]) * 1.001, item


@pytest.mark.parametrize(
    ("provider", "listing", "usd", "seen"),
    [
        ("coreweave", "gpt-oss-120b", (0.03, 0.17), "2026-11-20"),  # W&B Inference, as litellm 1.110.2 lists it
        ("gmicloud", "minimax-m3", (0.24, 0.96), "2026-11-20"),
        ("stepfun", "step-3.7-flash", (0.2, 1.15), "2026-10-07"),  # its own page
        ("chutes", "kimi-k2.6", (0.5, 2.85), "2026-09-28"),  # its interface, as models.dev reads it
    ],
)
def test_hosted_prices_of_autumn(provider, listing, usd, seen):
    newest = max(
        (item for item in rows("hosted_tokens") if (item["provider"], item["listing"]) == (provider, listing)),
        key=lambda item: item["observed_on"],
    )
    assert (float(newest["input_usd_per_mtok"]), float(newest["output_usd_per_mtok"])) == usd
    assert newest["observed_on"] == seen


@for_each("item", rows("hosted_tokens"), called=lambda item: f"{item['provider']} {item['listing']}")
def test_no_hosted_price_is_younger_than_its_source(item):
    published = row("price_sources", item["source_id"])["published_on"]
    if not published:
        pytest.skip("the source bears no day")
    assert item["observed_on"] <= published


# One euro in USD, GBP, JPY, CHF, SEK, INR and SGD, as the European Central Bank's own file eurofxref-hist prints it.
REFERENCE_RATES = {
    "2025-12-31": (1.175, 0.8726, 184.09, 0.9314, 10.8215, 105.5965, 1.5105),
    "2026-03-31": (1.1498, 0.86833, 183.39, 0.9194, 10.943, 107.8788, 1.4811),
    "2026-06-30": (1.1394, 0.86178, 185.08, 0.9224, 11.0935, 107.8565, 1.4754),
    "2026-09-30": (1.1355, 0.85463, 178.27, 0.9478, 11.331, 108.8205, 1.4503),
    "2026-10-30": (1.1172, 0.8338, 175.68, 0.9194, 10.978, 106.084, 1.4282),
}


@for_each("on, per_euro", REFERENCE_RATES.items())
def test_rates_of_exchange_are_those_of_the_european_central_bank(on, per_euro):
    """It quotes against the euro: a pound in dollars is 1.1172 / 0.8338 = 1.33989 on 2026-10-30."""
    usd, *others = per_euro
    shipped = {item["currency"]: float(item["usd_per_unit"]) for item in rows("exchange_rates") if item["on"] == on}
    expected = {"EUR": usd} | dict(
        zip(("GBP", "JPY", "CHF", "SEK", "INR", "SGD"), (usd / rate for rate in others), strict=True)
    )
    assert {name: shipped[name] for name in expected if name in shipped} == pytest.approx(
        {name: rate for name, rate in expected.items() if name in shipped}, rel=1e-5
    )
    assert "EUR" in shipped
    assert len(shipped) == 9 or on < "2026"


@for_each("regime", sorted({item["regime"] for item in rows("tax_regimes")}))
def test_a_tax_regime_has_every_rule_and_deducts_the_whole_purchase(regime):
    """A rule that a regime lacks would be the usual one, without a word."""
    rules = {item["name"] for item in rows("tax_regimes") if item["regime"] == regime}
    assert rules == {*TABLES["tax_regimes"].column("name").choices}
    shares = [float(item["value_fraction"]) for item in rows("tax_depreciation") if item["regime"] == regime]
    assert sum(shares) == pytest.approx(1)
