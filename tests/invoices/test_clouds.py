# ruff: noqa: E501 - rows of files stand as they are
"""Exports of clouds in their own columns, row by row by hand: billed, effective, category, what commitments cover."""

import json

import pytest

import gpucost
from gpucost.errors import DataError
from gpucost.invoices.reading import read_charges

AWS = """line_item_line_item_type,line_item_unblended_cost,line_item_usage_start_date,line_item_usage_end_date,line_item_usage_amount,line_item_currency_code,line_item_product_code,line_item_usage_type,product_instance_type,pricing_unit,pricing_public_on_demand_cost,savings_plan_savings_plan_a_r_n,savings_plan_savings_plan_effective_cost,savings_plan_total_commitment_to_date,savings_plan_used_commitment,reservation_reservation_a_r_n,reservation_effective_cost,resource_tags
Usage,98.32,2026-11-01T00:00:00.000Z,2026-11-01T01:00:00.000Z,1,USD,AmazonEC2,BoxUsage:p5.48xlarge,p5.48xlarge,Hrs,98.32,,,,,,,"{""user_team"": ""red""}"
SavingsPlanCoveredUsage,98.32,2026-11-01T01:00:00.000Z,2026-11-01T02:00:00.000Z,1,USD,AmazonEC2,BoxUsage:p5.48xlarge,p5.48xlarge,Hrs,98.32,arn:sp,55.1,,,,,
SavingsPlanNegation,-98.32,2026-11-01T01:00:00.000Z,2026-11-01T02:00:00.000Z,0,USD,AmazonEC2,BoxUsage:p5.48xlarge,p5.48xlarge,,0,arn:sp,,,,,,
SavingsPlanRecurringFee,60,2026-11-01T01:00:00.000Z,2026-11-01T02:00:00.000Z,1,USD,ComputeSavingsPlans,ComputeSP:1yr,,,,arn:sp,,60,55.1,,,
DiscountedUsage,0,2026-11-01T02:00:00.000Z,2026-11-01T03:00:00.000Z,1,USD,AmazonEC2,BoxUsage:p5.48xlarge,p5.48xlarge,Hrs,98.32,,,,,arn:ri,43.16,
Tax,7.5,2026-11-01T00:00:00.000Z,2026-12-01T00:00:00.000Z,1,USD,AmazonEC2,,,,,,,,,,,
Credit,-10,2026-11-01T00:00:00.000Z,2026-11-02T00:00:00.000Z,0,USD,AmazonEC2,BoxUsage:p5.48xlarge,p5.48xlarge,Hrs,0,,,,,,,
"""


def totals(charges):
    found = {}
    for row in charges:
        key = (row.category, row.status)
        old = found.get(key, (0.0, 0.0, 0.0))
        found[key] = tuple(round(a + b, 6) for a, b in zip(old, (row.billed, row.effective, row.quantity), strict=True))
    return found


def test_a_cost_and_usage_report_of_aws_is_read(tmp_path):
    """The plan's fee is billed once; its covered use bears 55.10 of 60 and 4.90 nobody used."""
    (tmp_path / "cur.csv").write_text(AWS)
    charges = read_charges(str(tmp_path / "cur.csv"), "user_team")
    assert totals(charges) == {
        ("Usage", ""): (98.32, 98.32, 1.0),
        ("Usage", "Used"): (0.0, 98.26, 2.0),
        ("Adjustment", ""): (0.0, 0.0, 0.0),
        ("Purchase", ""): (60.0, 4.9, 1.0),
        ("Tax", ""): (7.5, 7.5, 1.0),
        ("Credit", ""): (-10.0, -10.0, 0.0),
    }
    assert {row.tag for row in charges} == {"red", ""}
    assert any("p5.48xlarge" in row.names for row in charges)
    assert sum(row.billed for row in charges) == pytest.approx(98.32 + 60 + 7.5 - 10)


GCP = [
    {
        "billing_account_id": "01", "service": {"id": "6F81", "description": "Compute Engine"},
        "sku": {"id": "ABCD-1", "description": "A3 Mega GPU in Americas"},
        "usage_start_time": "2026-11-01 08:00:00 UTC", "usage_end_time": "2026-11-01 09:00:00 UTC",
        "labels": [{"key": "team", "value": "blue"}], "cost": 80.0, "currency": "USD", "cost_type": "regular",
        "usage": {"amount": 28800.0, "unit": "seconds", "amount_in_pricing_units": 8.0, "pricing_unit": "hour"},
        "credits": [{"name": "CUD", "amount": -24.0, "type": "COMMITTED_USAGE_DISCOUNT"}, {"name": "SUD", "amount": -1.0}],
        "location": {"region": "us-central1"},
    },
    {
        "service": {"id": "6F81", "description": "Compute Engine"}, "sku": {"id": "TAX", "description": "Tax"},
        "usage_start_time": "2026-11-01 00:00:00 UTC", "usage_end_time": "2026-11-02 00:00:00 UTC", "labels": [],
        "cost": 4.4, "currency": "USD", "cost_type": "tax", "usage": {"amount": 0.0, "unit": ""}, "credits": [],
    },
]  # fmt: skip


@pytest.mark.parametrize("form", ["json", "jsonl", "parquet"])
def test_a_billing_export_of_google_cloud_is_read_with_its_credits(form, tmp_path):
    path = tmp_path / f"gcp.{form}"
    if form == "json":
        path.write_text(json.dumps(GCP))
    else:
        lines = tmp_path / "gcp.jsonl"
        lines.write_text("\n".join(map(json.dumps, GCP)))
        if form == "parquet":
            import duckdb

            duckdb.sql(f"COPY (SELECT * FROM read_json('{lines}')) TO '{path}' (FORMAT parquet)")
    charges = read_charges(str(path), "team")
    assert totals(charges) == {("Usage", "Used"): (55.0, 55.0, 8.0), ("Tax", ""): (4.4, 4.4, 0.0)}
    used = next(row for row in charges if row.category == "Usage")
    assert (used.tag, used.unit, used.committed) == ("blue", "hour", True)
    assert "A3 Mega GPU in Americas" in used.names


AZURE = (
    """Date,ChargeType,CostInBillingCurrency,BillingCurrency,Quantity,UnitOfMeasure,MeterId,MeterName,MeterCategory,PayGPrice,ReservationId,Tags,ResourceId
11/01/2026,Usage,98.32,USD,1,1 Hour,m1,ND96isr H100 v5,Virtual Machines,98.32,,"""
    ""
    + """"{""team"": ""green""}",/vm/1
11/01/2026,Usage,60,USD,1,1 Hour,m1,ND96isr H100 v5,Virtual Machines,98.32,r1,,/vm/2
11/01/2026,UnusedReservation,12,USD,0.2,1 Hour,m1,ND96isr H100 v5,Virtual Machines,98.32,r1,,
2026-11-02,Refund,-5,USD,0,1 Hour,m1,ND96isr H100 v5,Virtual Machines,,,,
2026-11-02,Purchase,500,USD,1,1 Month,m9,Reserved VM,Virtual Machines,,r1,,
"""
)


def test_a_cost_export_of_azure_is_read(tmp_path):
    (tmp_path / "azure.csv").write_text(AZURE)
    charges = read_charges(str(tmp_path / "azure.csv"), "team")
    assert totals(charges) == {
        ("Usage", ""): (98.32, 98.32, 1.0),
        ("Usage", "Used"): (60.0, 60.0, 1.0),
        ("Usage", "Unused"): (12.0, 12.0, 0.2),
        ("Credit", ""): (-5.0, -5.0, 0.0),
        ("Purchase", ""): (500.0, 0.0, 1.0),
    }
    assert {row.tag for row in charges} == {"green", ""}
    assert {str(row.day) for row in charges} == {"2026-11-01", "2026-11-02"}


def test_a_small_cloud_is_date_gpu_hours_and_amount(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text("date,gpu,hours,amount\n2026-11-01,h100-sxm,16,38.40\n2026-11-02,h100-sxm,8,19.20\n")
    charges = read_charges(str(path))
    assert totals(charges) == {("Usage", ""): (57.6, 57.6, 24.0)}
    assert {row.unit for row in charges} == {"GPU-hour"}
    path.write_text("date,gpu,hours,amount\n2026-11-01,h100-sxm,16,many\n")
    with pytest.raises(DataError, match="BilledCost"):
        read_charges(str(path))
    path.write_text("date,gpu,hours,amount\nsoon,h100-sxm,16,3\n")
    with pytest.raises(DataError, match="ChargePeriodStart"):
        read_charges(str(path))


def test_what_is_no_export_is_told_which_are_known(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="nor an export of AWS, Google Cloud, Azure"):
        read_charges(str(tmp_path / "x.csv"))


def test_an_upfront_purchase_does_not_stretch_what_an_invoice_covers(tmp_path):
    """A year bought on the first day says nothing of the 18 days that the invoice has."""
    from tests.invoices.charges import charge, write

    days = [
        charge(ChargePeriodStart=f"2026-11-{day:02d}T00:00:00Z", ChargePeriodEnd=f"2026-11-{day + 1:02d}T00:00:00Z")
        for day in range(1, 19)
    ]
    plan = [charge(ChargePeriodStart="2026-11-01T00:00:00Z", ChargePeriodEnd="2027-11-01T00:00:00Z", cost=3650,
                   PricingQuantity=1825)]  # fmt: skip
    bought = charge(ChargeCategory="Purchase", CommitmentDiscountId="c", ChargePeriodEnd="2027-11-01T00:00:00Z",
                    BilledCost=500, EffectiveCost=0, ListCost=0, ContractedCost=0)  # fmt: skip
    planned = write(tmp_path / "p.csv", *plan)
    found = [
        gpucost.reconcile(write(tmp_path / f"{len(more)}.csv", *days, *more), estimate=planned).payload
        for more in ([], [bought])
    ]
    assert [one["period_until"] for one in found] == ["2026-11-19 00:00"] * 2
    assert [one["totals"]["effective_difference_usd"] for one in found] == [0.0, 0.0]


def test_a_showback_adds_up_one_unit_only(tmp_path):
    from tests.invoices.charges import charge, write

    rows = [
        charge(Tags='{"team": "red"}', PricingQuantity=5),
        charge(Tags='{"team": "red"}', PricingQuantity=700, PricingUnit="GB-Mo", SkuId="disk", cost=1),
    ]
    (row,) = gpucost.reconcile(write(tmp_path / "i.csv", *rows), showback="team").payload["showback"]
    assert (row["quantity"], row["unit"], row["total_usd"]) == (5.0, "hour", 11.0)
