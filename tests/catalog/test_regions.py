"""Regions as people mean them: continents, countries and places resolve, and never to prices of years ago."""

import csv
import json

import pytest

import gpucost
from gpucost.ask.estimate import rerun
from gpucost.catalog.calibrations import training_calibration
from gpucost.catalog.loader import shipped_root
from gpucost.errors import PriceMissingError, UnknownNameError

EU = set("AT BE BG HR CY CZ DK EE FI FR DE GR HU IE IT LV LT LU MT NL PL PT RO SK SI ES SE".split())  # noqa: SIM905


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog()


def table(name):
    with (shipped_root() / "pricing" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_union_has_its_27_members_and_europe_holds_it():
    members = {}
    for row in table("region_groups.csv"):
        members.setdefault(row["name"], set()).add((row["kind"], row["member"]))
    assert {member for kind, member in members["eu"] if kind == "country"} == EU
    assert members["eu"] < members["europe"] < members["emea"]
    assert ("country", "GB") in members["europe"] - members["eu"]


def test_every_country_with_offers_lies_in_a_group_and_by_its_code():
    countries = {row["country"] for row in table("cloud_regions.csv") if row["country"]}
    grouped = {row["member"] for row in table("region_groups.csv") if row["kind"] == "country"}
    assert countries <= grouped


@pytest.mark.parametrize(
    ("name", "holds", "lacks"),
    [
        ("EU", {"europe-west4", "swedencentral", "fi", "eu-west-1", "eu"}, {"uksouth", "no", "us-east-1"}),
        ("Europe", {"europe-west4", "uksouth", "no"}, {"us-east-1"}),
        ("us", {"us-east-1", "eastus", "us-central1", "us-texas"}, {"ca-central-1"}),
        ("apac", {"asia-southeast1", "japaneast", "ap-south-1", "au"}, {"ae"}),
        ("uk", {"uksouth", "eu-west-2", "gb"}, {"eu-west-1"}),
        ("de", {"eu-central-1", "de"}, {"europe-west4"}),
        ("Germany", {"eu-central-1", "de"}, {"europe-west4"}),
        ("Frankfurt", {"eu-central-1", "europe-west3"}, {"de"}),
        ("north-america", {"us-east-1", "ca-central-1", "mx"}, {"eu"}),
    ],
)
def test_a_group_means_its_regions(catalog, name, holds, lacks):
    found = catalog.offer_filter(None, None, name, None)["region"]
    assert holds <= found
    assert not lacks & found


def test_a_region_by_its_own_name_stays_itself(catalog):
    assert catalog.offer_filter(None, None, "us-east-1", None)["region"] == {"us-east-1"}
    assert catalog.offer_filter(None, None, "us-east-1, uk", None)["region"] >= {"us-east-1", "uksouth"}


@pytest.mark.parametrize("name", ["eu", "us", "apac", "uk", "europe"])
def test_a_group_never_answers_with_prices_of_years_ago(catalog, name):
    from gpucost.catalog.prices import current

    offers = catalog.offers(region=name)
    assert offers
    assert min(offer.observed_on.year for offer in offers) >= catalog.as_of.year - 2
    rows, _ = current(catalog, catalog.offer_filter(None, None, name, None), None, ended=False)
    assert min(row["observed_on"].year for row in rows) >= catalog.as_of.year - 2


def test_a_place_without_offers_names_the_group_around_it(catalog):
    assert not catalog.offers(region="austria")
    with pytest.raises(PriceMissingError, match=r'region="Austria" .* region="dach", with'):
        gpucost.estimate("8b", "100b", region="Austria", catalog=catalog)
    with pytest.raises(UnknownNameError, match="frankfurt"):
        catalog.offers(region="frankfrut")


@pytest.mark.parametrize("ask", [gpucost.estimate, gpucost.inference])
def test_every_question_takes_a_group(catalog, ask):
    inside = catalog.offer_filter(None, None, "eu", None)["region"]
    more = {"tokens": "10b"} if ask is gpucost.estimate else {}
    found = ask("8b", region="eu", top=0, catalog=catalog, **more)
    assert {option["region"] for option in found.options} <= inside


def test_a_region_says_how_many_offers_name_none_and_a_saved_estimate_holds_it(catalog):
    count = sum(not offer.region for offer in catalog.offers(gpu="h100"))
    asked = {"gpu": "h100", "region": "us", "catalog": catalog, "top": 1}
    run = gpucost.estimate("8b", "10b", **asked).payload
    (words,) = (text for text in run["warnings"] if text.startswith(f"{count} offers"))
    assert count > 1
    assert words in gpucost.inference("8b", **asked).payload["warnings"]
    assert words in rerun(json.loads(json.dumps(run, default=str)), training_calibration(catalog))["warnings"]
    elsewhere = gpucost.estimate("8b", "10b", **{**asked, "region": None}).payload["warnings"]
    assert not any("no region" in text for text in elsewhere)
