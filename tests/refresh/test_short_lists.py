"""A list that names far less than holds today withdraws nothing, in the first refresh of a store too."""

import json

from click.testing import CliRunner

from gpucost.catalog import open_catalog
from gpucost.cli import cli
from tests.refresh.server import Server


def test_a_short_answer_of_a_seller_withdraws_none_of_its_shipped_offers(tmp_path):
    """Azure's first page without the rest: what it lists of each region it names is a small part of what holds."""
    shipped = [row for row in open_catalog().rows("offers") if row["provider"] == "azure"]
    regions = {row["region"] for row in shipped if row["option"] == "on_demand" and row["region"]}
    item = {
        "currencyCode": "USD", "unitPrice": 6.98, "retailPrice": 6.98, "armRegionName": "", "type": "Consumption",
        "productName": "Virtual Machines NCadsH100 v5 Series", "skuName": "NC40ads H100 v5", "serviceName":
        "Virtual Machines", "armSkuName": "Standard_NC40ads_H100_v5", "meterName": "NC40ads H100 v5",
        "unitOfMeasure": "1 Hour", "effectiveStartDate": "2024-01-01T00:00:00Z", "tierMinimumUnits": 0,
        "isPrimaryMeterRegion": True, "location": "", "reservationTerm": None,
    }  # fmt: skip
    answer = {"Items": [{**item, "armRegionName": name} for name in regions], "NextPageLink": None}
    store = str(tmp_path / "store")
    with Server({"/prices.azure.com/api/retail/prices": answer}) as server:
        asked = ["prices", "refresh", "--from", "azure", "--mirror", server.url, "--store", store, "--format", "json"]
        result = CliRunner().invoke(cli, asked)
    found = json.loads(result.stdout[result.stdout.index("{") :])["rows"][0]
    assert found["state"] == "failed"
    assert "hold today" in found["reason"]
    assert result.exit_code == 5
