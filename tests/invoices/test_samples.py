# ruff: noqa: E501 - rows of files stand as they are
"""Rows of real exports, as public repositories hold them, trimmed to columns that matter; their sums by hand.

AWS's older report (Cost and Usage Report, columns with a slash): finopsfoundation/focus_converters,
focus_converter_base/tests/provider_config_tests/aws/sample-anonymous-aws-export-dataset.csv, commit 5c5f8de3 of
2023-11-26. Azure's actual cost of an Enterprise Agreement: microsoft/finops-toolkit,
src/powershell/Tests/Unit/assets/EA_ActualCost_Small.csv, commit 4224d4cd, charges of September 2023; and of another
form: focus_converters, .../azure/sample-anonymous-ea-export-dataset.csv, commit 13f1839f. Google Cloud's detailed
billing export: one record of 2024-05-12 that Voormedia publishes in its methodology. Contract commitments of FOCUS
1.3: made-up rows of an example company in a public copy of the FOCUS sample data, guymano/FOCUS-Sample-Data,
FOCUS-1.3/focus_sample_contractcommitment_aws.csv, commit 15c6ce4c, 2026: no bill of anybody.
"""

import json
from datetime import datetime

import pytest

from gpucost.errors import DataError
from gpucost.invoices.commitment import OpenTerms, read_agreements
from gpucost.invoices.reading import read_charges
from gpucost.money.commitments import of_kind

AWS = """identity/LineItemId,bill/PayerAccountId,lineItem/LineItemType,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/ProductCode,lineItem/UsageType,lineItem/UsageAmount,lineItem/CurrencyCode,lineItem/UnblendedRate,lineItem/UnblendedCost,lineItem/LineItemDescription,product/ProductName,product/regionCode,product/servicename,product/sku,pricing/publicOnDemandCost,pricing/unit,reservation/EffectiveCost,savingsPlan/SavingsPlanARN,savingsPlan/SavingsPlanEffectiveCost
s247ldig2jabcdabcdabcdabcdabcdabcdabcdabcf5ce7fpyqq,123412340534,Tax,2023-11-01T00:00:00.000Z,2023-12-01T00:00:00.000Z,awskms,,1.0,USD,,0.01,Tax for product code awskms,AWS Key Management Service,,,,0.0,,,,
6k4rjn4fvoabcdabcdabcdabcdabcdabcdabcdabccyz6f6hz4q,123412340534,Tax,2023-11-01T00:00:00.000Z,2023-12-01T00:00:00.000Z,AmazonS3,,1.0,USD,,0.07,Tax for product code AmazonS3,Amazon Simple Storage Service,,,,0.0,,,,
meqafuswyjabcdabcdabcdabcdabcdabcdabcdabcugwbzdeveq,123412340534,Usage,2023-11-07T05:00:00.000Z,2023-11-08T00:00:00.000Z,awskms,ca-central-1-KMS-Keys,0.0263888891,USD,1.0,0.0263888891,$1 per customer managed KMS key version in Canada (Central),AWS Key Management Service,ca-central-1,AWS Key Management Service,4ZXH7xxxxxxPNVS7,0.0263888891,Keys,,,
"""

AZURE = '''Date,Product,PartNumber,MeterId,ServiceFamily,MeterCategory,MeterSubCategory,MeterRegion,MeterName,Quantity,EffectivePrice,Cost,UnitPrice,BillingCurrency,ResourceLocation,ConsumedService,ResourceId,AdditionalInfo,Tags,UnitOfMeasure,ReservationId,Term,ChargeType,Frequency,PayGPrice,PricingModel,benefitId,benefitName
09/21/2023,Virtual Machines BS Series - B1s - UK South,AAA-88134,f31064a2-ed95-4e11-8b69-270f2fc4fbdd,Compute,Virtual Machines,BS Series,UK South,B1s,1,3.25,3.25,3.25,USD,uksouth,Microsoft.Capacity,/providers/Microsoft.Capacity/reservationOrders/49ed0e4d-8e0c-4f1f-af2c-67c865056615/reservations/,,,1 Hour,49ed0e4d-8e0c-4f1f-af2c-67c865056615,36,Purchase,Recurring,0,Reservation,/providers/Microsoft.Capacity/reservationOrders/49ed0e4d-8e0c-4f1f-af2c-67c865056615/reservations/,VM_RI_06-21-2023_18-56
09/04/2023,Virtual Machines Dv3/DSv3 Series - D2 v3/D2s v3 - US South Central,AAA-44981,ec8c7b49-9790-4261-b46f-293dabb53fd9,Compute,Virtual Machines,Dv3/DSv3 Series,Texas,D2 v3/D2s v3,24,0.11,2.64,0.11,USD,SouthCentralUS,Microsoft.Compute,/subscriptions/1caaa5a3-2b66-438e-8ab4-bce37d518c5d/resourceGroups/CapRes_Test,"{""ServiceType"":""Standard_D2s_v3"",""UsageType"":""ComputeCR""}",,1 Hour,,,Usage,UsageBased,0.11,OnDemand,,
09/04/2023,Tiered Block Blob - GRS - List and Create Container Operations - US East 2,AAD-37090,aaaef613-418a-4a5f-af72-d224d7dee2c6,Compute,Storage,Tiered Block Blob,Virginia,GRS List and Create Container Operations,0.0004,0.1,0.00004,0.1,USD,EastUS2,Microsoft.Storage,/subscriptions/ed570627-0265-4620-bb42-bae06bcfa914/resourceGroups/databricks-rg,,"""CostCenter"": ""1234"",""env"": ""prod"",""org"": ""trey""",10K,,,Usage,UsageBased,0.1,OnDemand,,
'''

AZURE_CAD = '''Date,ProductName,MeterCategory,MeterId,MeterName,UnitOfMeasure,Quantity,EffectivePrice,CostInBillingCurrency,Tags,ChargeType,BillingCurrencyCode,PayGPrice
9/2/2023,Virtual Network Peering - Intra-Region Ingress,Virtual Network,59bc01e3-9d3e-4b9f-baef-35e696aad6c4,Intra-Region Ingress,1 GB,0.027265128,0.011199923,0.000305367,"""tagA"": ""valueA"",""tagB"": ""valueB"",""tagC"": ""valueC""",Usage,CAD,0.40000
'''

GCP = {
    "billing_account_id": "003576-4CB9A5-BC33DB",
    "service": {"id": "6F81-5844-456A", "description": "Compute Engine"},
    "sku": {"id": "315D-05CC-A75E", "description": "SSD backed PD Capacity in Netherlands"},
    "usage_start_time": "2024-05-12 22:00:00 UTC",
    "usage_end_time": "2024-05-12 23:00:00 UTC",
    "project": {"id": "voormedia-187708", "labels": [{"key": "firebase", "value": "enabled"}]},
    "labels": [],
    "system_labels": [],
    "location": {"location": "europe-west4", "country": "NL", "region": "europe-west4"},
    "price": {"effective_price": "0.174592", "tier_start_amount": 0, "unit": "gibibyte month", "pricing_unit_quantity": 1},
    "transaction_type": "GOOGLE",
    "export_time": "2024-05-13 01:49:02.981774 UTC",
    "cost": 0.012434,
    "currency": "EUR",
    "currency_conversion_rate": 0.93364999999987552,
    "usage": {
        "amount": 204816252928000, "unit": "byte-seconds",
        "amount_in_pricing_units": 0.071217891, "pricing_unit": "gibibyte month",
    },
    "credits": [],
    "invoice": {"month": "202405"},
    "cost_type": "regular",
    "adjustment_info": {},
    "cost_at_list": 0.012434,
}  # fmt: skip

FOCUS = """ContractCommitmentId,ContractCommitmentType,ContractCommitmentCategory,ContractCommitmentCost,ContractCommitmentQuantity,ContractCommitmentUnit,ContractCommitmentDescription,ContractCommitmentPeriodStart,ContractCommitmentPeriodEnd,ContractId,ContractPeriodStart,ContractPeriodEnd,BillingCurrency
CC-EA-SPEND-0001,Enterprise Agreement Minimum Spend,Spend,250000,,,Annual minimum spend committed under the enterprise agreement,2026-01-31T00:00:00Z,2027-01-31T00:00:00Z,CONTRACT-EA-2026-0001,2026-01-31T00:00:00Z,2027-01-31T00:00:00Z,USD
CC-EA-STORAGE-0002,Negotiated Storage Rate Card,Spend,48000,,,Negotiated S3 storage rate card,2026-01-31T00:00:00Z,2027-01-31T00:00:00Z,CONTRACT-EA-2026-0001,2026-01-31T00:00:00Z,2027-01-31T00:00:00Z,USD
arn:aws:ec2:us-east-1::reservation/1473bd0ea6ea2540,Reserved Instance,Usage,280460.16,4380000.0,Hours,EC2ReservedInstance-1yr-NoUpfront,2026-05-01T00:00:00Z,2027-05-01T00:00:00Z,CONTRACT-CD-0001,2026-03-02T00:00:00Z,2027-05-01T00:00:00Z,USD
arn:aws:savingsplans:us-west-2::savingsplan/5bfb6525ebaa5a25,Savings Plan,Spend,280460.16,,,ComputeSavingsPlan-1yr-NoUpfront,2026-04-01T00:00:00Z,2027-04-01T00:00:00Z,CONTRACT-CD-0001,2026-03-02T00:00:00Z,2027-05-01T00:00:00Z,USD
"""


def test_the_older_report_of_aws_is_read(tmp_path):
    (tmp_path / "cur.csv").write_text(AWS)
    charges = read_charges(str(tmp_path / "cur.csv"))
    assert sum(row.billed for row in charges) == pytest.approx(0.01 + 0.07 + 0.0263888891)
    assert {row.category for row in charges} == {"Tax", "Usage"}
    (used,) = [row for row in charges if row.category == "Usage"]
    assert (str(used.day), used.unit, used.quantity) == ("2023-11-07", "Keys", 0.0263888891)
    assert "AWS Key Management Service" in used.names


def test_an_enterprise_agreement_of_azure_is_read(tmp_path):
    """3.25 for a reservation is billed and spread over its use; a reserved machine at 0.11 for 24 hours is 2.64."""
    (tmp_path / "ea.csv").write_text(AZURE)
    charges = read_charges(str(tmp_path / "ea.csv"), "env")
    assert sum(row.billed for row in charges) == pytest.approx(3.25 + 2.64 + 0.00004)
    assert sum(row.effective for row in charges) == pytest.approx(2.64 + 0.00004)
    (machine,) = [row for row in charges if row.unit == "Hours" and row.category == "Usage"]
    assert (machine.quantity, str(machine.day)) == (24.0, "2023-09-04")
    assert {row.tag for row in charges} == {"prod", ""}


def test_azure_in_another_currency_and_form(tmp_path):
    (tmp_path / "cad.csv").write_text(AZURE_CAD)
    (charge,) = read_charges(str(tmp_path / "cad.csv"), "tagB")
    assert (charge.billed, charge.currency, charge.tag, str(charge.day)) == (0.000305367, "CAD", "valueB", "2023-09-02")
    assert charge.listed == pytest.approx(0.4 * 0.027265128)


def test_a_record_of_google_cloud_is_read(tmp_path):
    (tmp_path / "gcp.json").write_text(json.dumps([GCP]))
    (charge,) = read_charges(str(tmp_path / "gcp.json"))
    assert (charge.billed, charge.currency, charge.unit) == (0.012434, "EUR", "gibibyte month")
    assert charge.quantity == pytest.approx(0.071217891)
    assert "SSD backed PD Capacity in Netherlands" in charge.names
    assert str(charge.day) == "2024-05-12"


FACTS = OpenTerms(2.10, lambda code: {"EUR": 1.25}[code], lambda text: 8 if "p5.48xlarge" in text else 0)


def test_contract_commitments_of_focus_are_agreements(tmp_path):
    """280,460.16 over 8,760 hours are 32.016 an hour; 4,380,000 hours of a year are 500 machines at 0.06403."""
    (tmp_path / "focus.csv").write_text(FOCUS)
    agreements, notes = read_agreements(str(tmp_path / "focus.csv"), FACTS)
    (plan,) = of_kind(agreements, "savings_plan")
    assert plan.usd_per_hour == pytest.approx(280_460.16 / 8_760)
    assert plan.covered_gpus == pytest.approx(280_460.16 / 8_760 / 2.10)
    (reserved,) = of_kind(agreements, "reservation")
    assert reserved.gpus == pytest.approx(500)
    assert reserved.usd_per_gpu_hour == pytest.approx(280_460.16 / 4_380_000)
    assert (reserved.start, reserved.end) == (datetime(2026, 5, 1), datetime(2027, 5, 1))
    (annual,) = of_kind(agreements, "annual")
    assert annual.usd == pytest.approx(250_000)
    assert any("1 commitments" in text for text in notes)
    assert any("CC-EA-STORAGE-0002" in text for text in notes)


def test_a_commitment_counts_the_gpus_of_its_machine_and_its_currency(tmp_path):
    text = FOCUS.replace("EC2ReservedInstance-1yr-NoUpfront", "p5.48xlarge 1yr NoUpfront").replace(",USD", ",EUR")
    (tmp_path / "focus.csv").write_text(text)
    agreements, notes = read_agreements(str(tmp_path / "focus.csv"), FACTS)
    (reserved,) = of_kind(agreements, "reservation")
    assert reserved.gpus == pytest.approx(8 * 500)
    assert reserved.usd_per_gpu_hour == pytest.approx(1.25 * 280_460.16 / (8 * 4_380_000))
    assert not any("no instance" in text for text in notes)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (",Usage,", ",Other,", "Spend nor"),
        ("Hours", "GB", "in hours"),
        ("2027-05-01T00:00:00Z,CONTRACT-CD-0001,2026-03-02", "2026-04-01T00:00:00Z,CONTRACT-CD-0001,2026-03-02", "ends before"),
        ("280460.16,4380000.0", "many,4380000.0", "number above 0"),
    ],
)  # fmt: skip
def test_commitments_that_cannot_be_are_named(old, new, said, tmp_path):
    (tmp_path / "focus.csv").write_text(FOCUS.replace(old, new))
    with pytest.raises(DataError, match=said):
        read_agreements(str(tmp_path / "focus.csv"), FACTS)
