"""Prices read again before an order: from their sellers' interfaces, each alone, and nothing is kept."""

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from gpucost.catalog import open_catalog
from gpucost.refresh.check import checked
from tests.refresh.server import Server, send

SAMPLES = Path(__file__).parent / "samples"
MACHINE = "Standard_ND96isr_H100_v5"


@pytest.fixture(scope="module")
def catalog():
    return open_catalog("2026-11-28")


def offers(catalog, provider, **of):
    rows = catalog.price_rows
    return [row for row in rows if row["provider"] == provider and all(row[name] == of[name] for name in of)]


def test_azure_is_asked_for_the_machine_alone(catalog):
    meters = json.loads((SAMPLES / "azure_retail_eastus_nd.json").read_bytes())
    (offer,) = offers(catalog, "azure", instance_type=MACHINE, region="eastus", option="on_demand")
    with Server({"/prices.azure.com/api/retail/prices": meters}) as server:
        (price,) = checked(catalog, [offer], server.url)
        (query,) = (parse_qs(urlsplit(request.path).query) for request in server.asked)
    assert query["$filter"] == [f"serviceName eq 'Virtual Machines' and (armSkuName eq '{MACHINE}')"]
    assert price.usd_per_hour == 98.32, "the figure of the sample, read by hand"
    assert "98.32" in price.sentence


def test_what_moved_and_what_is_listed_no_more_is_said(catalog):
    meters = json.loads((SAMPLES / "azure_retail_eastus_nd.json").read_bytes())
    (offer,) = offers(catalog, "azure", instance_type=MACHINE, region="eastus", option="on_demand")
    gone = {**offer, "offer_id": "azure/gone"}
    with Server({"/prices.azure.com/api/retail/prices": meters}) as server:
        prices = checked(catalog, [{**offer, "usd_per_hour": 90.0}, gone], server.url)
    assert [price.usd_per_hour for price in prices] == [98.32, None]
    assert "+9%" in prices[0].sentence


def test_one_seller_that_cannot_be_read_costs_the_others_nothing(catalog, monkeypatch):
    monkeypatch.delenv("LAMBDA_API_KEY", raising=False)
    meters = json.loads((SAMPLES / "azure_retail_eastus_nd.json").read_bytes())
    (azure,) = offers(catalog, "azure", instance_type=MACHINE, region="eastus", option="on_demand")
    others = [{**azure, "provider": name, "offer_id": f"{name}/x"} for name in ("lambda", "oci", "crusoe")]

    def broken(request):
        send(request, "<html>", status=404)

    routes = {
        "/prices.azure.com/api/retail/prices": meters,
        "/apexapps.oracle.com/pls/apex/cetools/api/v1/products/": broken,
    }
    with Server(routes) as server:
        prices = {price.offer["provider"]: price for price in checked(catalog, [azure, *others], server.url)}
    assert prices["azure"].failure == ""
    assert all(prices[name].failure for name in ("lambda", "oci", "crusoe"))
    assert "LAMBDA_API_KEY" in prices["lambda"].failure
