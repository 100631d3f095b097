"""What sellers asked in October and November 2026, read by hand from the public files that `sources.csv` names."""

from collections import Counter
from datetime import date

import pytest

from gpucost.catalog.models import model_rows
from gpucost.physics.transformer import active_parameters, stack, total_parameters
from gpucost.schemas import HISTORY

from .tables import CHECKOUT, ROOT, catalog, lines, rows

DAY = "2026-11-20"


def priced(offer_id, day=DAY):
    """Return the row of an offer on a day, what has ended included."""
    return next(row for row in catalog(day).price_rows if row["offer_id"] == offer_id)


@pytest.mark.parametrize(
    ("offer_id", "usd", "seen"),
    [
        # Nebius: the column "GPU-hour (Effective October 1, 2026)" of its page
        ("nebius/1x-h100-sxm/1xh100-sxm5-80gb/global/on_demand", 4.50, date(2026, 10, 24)),
        ("nebius/1x-h200-sxm/1xh200-sxm-141gb/global/on_demand", 5.40, date(2026, 10, 24)),
        ("nebius/1x-b200/1xb200-sxm/global/on_demand", 8.50, date(2026, 10, 10)),
        ("nebius/1x-b300/1xb300-sxm/global/on_demand", 9.50, date(2026, 10, 10)),
        # Verda, whose prices rose day by day: its interface on 2026-10-04, the A6000 on 2026-10-29
        ("verda/1x-h100-sxm/1xh100-sxm5-80gb/global/on_demand", 3.737, date(2026, 10, 4)),
        ("verda/1x-b200/1xb200-sxm/global/on_demand", 7.09, date(2026, 10, 4)),
        ("verda/1x-rtx-a6000/1xrtx-a6000/global/on_demand", 0.82, date(2026, 10, 29)),
        # JarvisLabs: the one price that a screener averaged
        ("jarvislabs/1x-h100-sxm/1xh100-sxm5-80gb/global/on_demand", 3.49, date(2026, 10, 24)),
        ("jarvislabs/1x-h200-sxm/1xh200-sxm-141gb/global/on_demand", 4.59, date(2026, 10, 24)),
        ("gcp/a3-megagpu-8g/8xh100-sxm5-80gb/us-central1/on_demand", 93.4007, date(2026, 10, 10)),
    ],
)
def test_prices_of_autumn(offer_id, usd, seen):
    row = priced(offer_id)
    assert (row["usd_per_hour"], row["observed_on"], row["ended"]) == (usd, seen, None)


@pytest.mark.parametrize(("day", "usd"), [("2026-09-30", 3.85), ("2026-10-01", 4.50), ("2026-10-08", 4.50)])
def test_a_price_announced_for_october_holds_from_october(day, usd):
    """A page read on 2026-10-08 was read in its first column, which had ended a week before."""
    assert priced("nebius/1x-h100-sxm/1xh100-sxm5-80gb/global/on_demand", day)["usd_per_hour"] == usd


def test_an_announced_change_ends_the_old_price_on_its_day_known_or_not():
    """Lambda's page of 2026-11-09 gives rates from 2026-11-16 on; of the A100 SXM 40 GB alone one is public: 1.99."""
    b200, a100 = (
        "lambda/gpu-8x-b200-sxm6/8xb200-sxm/global/on_demand",
        "lambda/gpu-1x-a100-sxm4/1xa100-sxm4-40gb/global",
    )
    before, after = priced(b200, "2026-11-15"), priced(b200, "2026-11-16")
    assert (before["usd_per_hour"], before["ended"]) == (53.52, None)
    assert (after["usd_per_hour"], after["ended"]) == (53.52, "stated")
    known = priced(f"{a100}/on_demand")
    assert (known["usd_per_hour"], known["price_on"], known["observed_on"]) == (
        1.99,
        date(2026, 11, 16),
        date(2026, 11, 9),
    )
    assert known["ended"] is None
    assert priced(f"{a100}/on_demand", "2026-11-15")["observed_on"] == date(2026, 10, 10)


def test_machines_with_two_and_four_a100_at_lambda_are_pcie():
    for day in ("2023-06-01", "2026-11-10"):
        offers = catalog(day).offers(provider="lambda", gpu="a100-pcie-40gb")
        assert {2, 4} <= {offer.gpus for offer in offers}
    assert {offer.gpus for offer in catalog("2026-11-10").offers(provider="lambda", gpu="a100-sxm4-40gb")} == {1, 8}


@pytest.mark.parametrize(
    ("offer_id", "why"),
    [
        ("coreweave/nvidia-hgx-h100-sxm-classic/1xh100-sxm5-80gb/global/on_demand", "withdrawn"),
        ("coreweave/tesla-v100-nvlink-classic/1xv100-sxm2-16gb/global/on_demand", "withdrawn"),
        ("digitalocean/8x-h100-sxm/8xh100-sxm5-80gb/global/on_demand", "replaced"),
    ],
)
def test_what_its_seller_lists_no_more_has_ended(offer_id, why):
    assert priced(offer_id)["ended"] == why


@pytest.mark.parametrize(
    ("offer_id", "usd"),
    [
        # a day's file of eleven sellers, 2026-10-10
        ("azure/standard-nd96isr-h200-v5/8xh200-sxm-141gb/polandcentral/on_demand", 130.592),
        ("azure/standard-nc80adis-h100-v5/2xh100-nvl-94gb/westeurope/spot", 6.6938),
        ("azure/standard-nd96isr-mi300x-v5/8xmi300x/koreasouth/on_demand", 60.0),
        ("azure/standard-nd96amsr-a100-v4/8xa100-sxm4-80gb/westus/spot", 10.974),
        ("aws/p6-b300.48xlarge/8xb300-sxm/sa-east-1/on_demand", 281.13),
        ("gcp/a4-highgpu-8g/8xb200-sxm/us-central1/spot", 39.6336),
        ("coreweave/8x-l40s/8xl40s/global/spot", 7.88),
        # eight sellers on 2026-10-04; AWS spot of 2026-08-06; OpenRelay's page of 2026-09-20
        ("scaleway/1x-h100-sxm/1xh100-sxm5-80gb/global/on_demand", 3.5839),
        ("aws/p5en.48xlarge/8xh200-sxm-141gb/us-west-2/spot", 26.9369),
        ("openrelay/1x-rtx-4090/1xrtx-4090/global/on_demand", 0.29),
    ],
)
def test_prices_that_no_table_held_before(offer_id, usd):
    row = priced(offer_id)
    assert (row["usd_per_hour"], row["ended"]) == (usd, None)


@pytest.mark.parametrize(
    ("provider", "region", "kg"),
    [
        # Our World in Data, carbon intensity of electricity, 2023 (Sweden, Switzerland, Poland, Japan, Korea, …)
        ("aws", "eu-north-1", 0.041),
        ("gcp", "europe-west6", 0.035),
        ("ovh", "WAW", 0.662),
        ("aws", "ap-northeast-1", 0.485),
        ("aws", "ap-northeast-2", 0.431),
        ("aws", "ap-southeast-1", 0.471),
        ("azure", "southafricanorth", 0.708),
        # eGRID2023: Virginia 539.599 lb, Iowa 634.156 lb, Texas 771.179 lb a MWh; Google's page: Montreal 2 g a kWh
        ("aws", "us-east-1", 539.599 * 0.45359237 / 1000),
        ("gcp", "us-central1", 634.156 * 0.45359237 / 1000),
        ("azure", "southcentralus", 771.179 * 0.45359237 / 1000),
        ("aws", "ca-central-1", 0.002),
    ],
)
def test_the_grid_of_a_region_is_that_of_its_country_or_zone(provider, region, kg):
    energy = {row["item"]: row["typical"] for row in catalog(DAY).rows("energy")}
    item = next(
        row["carbon_item"]
        for row in catalog(DAY).rows("cloud_regions")
        if (row["provider"], row["region"]) == (provider, region)
    )
    assert float(energy[item]) == pytest.approx(kg, abs=0.001)


def test_no_region_with_a_country_takes_the_mean_of_a_continent_or_of_the_world():
    regions = catalog(DAY).rows("cloud_regions")
    assert not [row for row in regions if row["country"] and row["mapping"] in ("continent", "world")]


@pytest.mark.parametrize(
    ("name", "total_b", "active_b"),
    [
        # parameters as their reports state them
        ("step-3", 316, 38),
        ("dots.llm1", 142, 14),
        ("pangu-pro-moe", 71.99, 16.5),
        ("arctic", 479, 17),
        ("skywork-moe", 146, 22),
        ("gopher", 280, 280),
        ("chinchilla", 70, 70),
        ("stablelm-2-12b", 12.1436, 12.1436),
        ("minicpm4-8b", 8.19, 8.19),
        ("jamba-1.7-large", 398, 94),
        ("cogito-671b", 671, 37),
    ],
)
def test_names_of_models_resolve_to_the_size_that_their_reports_state(name, total_b, active_b):
    found = catalog(DAY).architecture(name)
    shape = stack([found])
    assert float(total_parameters(shape)[0]) / 1e9 == pytest.approx(total_b, rel=0.025)
    assert float(active_parameters(shape)[0]) / 1e9 == pytest.approx(active_b, rel=0.06)


@pytest.mark.parametrize(("name", "active"), [("gpt-oss-120b", 5.13e9), ("minimax-m2", 10e9), ("deepseek-v3", 37e9)])
def test_the_list_of_models_shows_the_active_parameters_that_publishers_state(name, active):
    row = model_rows(catalog(DAY), [catalog(DAY).architecture(name)])[0]
    assert row["active_parameters"] == active


def test_bulk_data_say_their_licence_and_the_notice_names_those_that_ask_for_it():
    """Bulk are the catalogues of the history and every source of a hundred rows and more."""
    counts = Counter(row["source_id"] for name in ("offers", "hosted_tokens") for row in rows(name))
    sources = {row["source_id"]: row for row in rows("price_sources")}
    dense = {row["source_id"] for file in ROOT.glob(HISTORY.files) for row in lines(file)}
    bulk = dense | {key for key, count in counts.items() if count >= 100}
    assert not [key for key in bulk if not sources[key]["licence"]]
    notice = (CHECKOUT / "NOTICE").read_text("utf-8")
    for row in (*rows("price_sources"), *rows("model_sources")):
        if row["licence"].startswith(("CC-BY", "Apache")):
            assert row["publisher"].split("/")[-1].split(" ")[0] in notice, row["source_id"]


@pytest.mark.parametrize(("gpus", "usd"), [(1, 3.29), (2, 6.38), (4, 12.36), (8, 23.92)])
def test_what_lambda_asked_in_november_2025(gpus, usd):
    """Four offers of 2.99, 3.09, 3.19 and 3.29 a GPU, mean 3.14, at Prime Intellect on 2025-11-16."""
    day = catalog("2025-11-20")
    shown = [row for row in day.price_rows if row["provider"] == "lambda" and row["gpu"] == "h100-sxm5-80gb"]
    assert [row["usd_per_hour"] for row in shown if row["gpus"] == gpus and row["option"] == "on_demand"] == [usd]
