"""From a plan to a bill and back: what a seller's form of bill makes of a plan is the plan, and one deviation is named.

Each plan is exported, written day by day as AWS's two reports, Google's, Azure's, FOCUS and the small CSV have it,
under the names that the seller gives its machines, and read again.
"""

import csv
import json
from datetime import date, datetime, timedelta
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpucost
from gpucost.invoices.reading import write_rows
from gpucost.invoices.rows import focus_rows
from gpucost.money.variance import spread
from tests.render import answers

START = datetime(2026, 12, 1)
OTHER = {"aws": "p5en.48xlarge", "aws older": "p5en.48xlarge", "google": "Nvidia H200 141GB GPU attached to VMs",
         "azure": "ND96isr H200 v5", "focus": "p5en.48xlarge", "small": "h200-sxm"}  # fmt: skip
H100 = {"aws": "p5.48xlarge", "aws older": "p5.48xlarge", "google": "Nvidia H100 80GB GPU attached to VMs",
        "azure": "ND96isr H100 v5", "focus": "p5.48xlarge", "small": "H100 SXM5 80GB"}  # fmt: skip
A_MACHINE = ("aws", "aws older", "azure", "focus")  # that bill hours of a machine with eight GPUs


@cache
def plan(kind):
    if kind == "tco":
        return gpucost.tco(gpu="h100-sxm", gpus=64, years=1, draws=0, as_of=answers.DAY).to_dict()
    if kind == "mix":
        return gpucost.mix(constant=16, growth="50%", months=5, own=False, gpu="h100-sxm", as_of=answers.DAY).to_dict()
    if kind == "inference":
        return gpucost.inference(**{**answers.SERVING, "top": 1}, as_of=answers.DAY).to_dict()
    return gpucost.estimate("8b", "100b", gpus=64, gpu="h100-sxm", option="on_demand", top=1,
                            as_of=answers.DAY).to_dict()  # fmt: skip


def days_of(rows):
    """Spread charges over the days that they last: day, name, whether GPU-hours, unit, quantity, cents exact."""
    days = []
    for row in rows:
        begin, end = row["ChargePeriodStart"], row["ChargePeriodEnd"]
        count = max((end.date() - begin.date()).days + (end.time() > begin.min.time()), 1)
        for number, cost in enumerate(spread(row["EffectiveCost"], [1 / count] * count)):
            days.append({"day": begin.date() + timedelta(days=number), "name": row["SkuId"], "unit": row["PricingUnit"],
                         "gpu": row["PricingUnit"] == "GPU-hour",
                         "spot": "spot" in (row["SkuMeter"] or ""), "quantity": row["PricingQuantity"] / count,
                         "cost": cost})  # fmt: skip
    return days


def cells(form, row):
    """Return a row of a bill in a seller's form."""
    name = row.get("chip", H100)[form] if row["gpu"] else row["name"]
    usage_type = f"{'SpotUsage' if row['spot'] else 'BoxUsage'}:{name}" if row["gpu"] else name
    name = f"{name} Spot" if row["spot"] and form not in ("aws", "aws older") else name
    hours = row["quantity"] / (8 if row["gpu"] and form in A_MACHINE else 1)
    day, cost, next_day = row["day"], row["cost"], row["day"] + timedelta(days=1)
    if form == "small":
        return {"date": day, "gpu": name, "hours": hours, "amount": cost}
    if form == "azure":
        unit = "1 Hour" if row["gpu"] else row["unit"]
        return {"Date": f"{day:%m/%d/%Y}", "ChargeType": "Usage", "CostInBillingCurrency": cost, "Quantity": hours,
                "BillingCurrency": "USD", "UnitOfMeasure": unit, "MeterId": "m", "MeterName": name}  # fmt: skip
    if form == "google":
        unit = "hour" if row["gpu"] else row["unit"]
        usage = {"amount_in_pricing_units": hours, "pricing_unit": unit}
        return {"sku": {"id": f"SKU-{name}" if row["gpu"] else name, "description": name}, "cost": cost, "labels": [],
                "usage_start_time": f"{day} 00:00:00 UTC", "usage_end_time": f"{next_day} 00:00:00 UTC",
                "usage": usage, "currency": "USD", "cost_type": "regular", "credits": []}  # fmt: skip
    begin, end = f"{day}T00:00:00Z", f"{next_day}T00:00:00Z"
    if form == "focus":
        costs = dict.fromkeys(("BilledCost", "EffectiveCost", "ListCost", "ContractedCost"), cost)
        return {**costs, "BillingCurrency": "USD", "ChargeCategory": "Usage", "ChargePeriodStart": begin,
                "ChargePeriodEnd": end, "SkuId": "JRTCKXETXF" if row["gpu"] else name, "SkuMeter": name,
                "PricingQuantity": hours, "PricingUnit": "Hours" if row["gpu"] else row["unit"]}  # fmt: skip
    machine = name if row["gpu"] else ""
    unit = "Hrs" if row["gpu"] else row["unit"]
    values = ("Usage", cost, begin, end, hours, "USD", usage_type, machine, unit, "red")
    new = ("line_item_line_item_type", "line_item_unblended_cost", "line_item_usage_start_date",
           "line_item_usage_end_date", "line_item_usage_amount", "line_item_currency_code", "line_item_usage_type",
           "product_instance_type", "pricing_unit", "tag")  # fmt: skip
    old = ("lineItem/LineItemType", "lineItem/UnblendedCost", "lineItem/UsageStartDate", "lineItem/UsageEndDate",
           "lineItem/UsageAmount", "lineItem/CurrencyCode", "lineItem/UsageType", "product/instanceType",
           "pricing/unit", "resourceTags/user:team")  # fmt: skip
    row = dict(zip(old if form == "aws older" else new, values, strict=True))
    return row if form == "aws older" else {**row, "resource_tags": json.dumps({"user_team": row.pop("tag")})}


def bill(form, days, path):
    rows = [cells(form, row) for row in days]
    if form == "google":
        path = path.with_suffix(".json")
        path.write_text(json.dumps(rows))
        return str(path)
    with open(path, "w", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, rows[0], lineterminator="\n")
        lines.writeheader()
        lines.writerows(rows)
    return str(path)


def deviate(what, days):
    """Change one charge of GPU-hours in the middle; return the days and the parts of the difference that follow."""
    at = [number for number, row in enumerate(days) if row["gpu"] and not row["spot"]]
    at = at[len(at) // 2]
    row = days[at]
    if what == "price":
        more = round(row["cost"] * 0.5, 2)
        return [*days[:at], {**row, "cost": round(row["cost"] + more, 2)}, *days[at + 1 :]], {"price": more}
    if what == "hours":
        twice = {**row, "quantity": 2 * row["quantity"], "cost": 2 * row["cost"]}
        return [*days[:at], twice, *days[at + 1 :]], {"quantity": row["cost"]}
    if what == "GPU":
        moved = {"quantity": -row["cost"], "not in the plan": row["cost"]}
        return [*days[:at], {**row, "chip": OTHER}, *days[at + 1 :]], moved
    if what == "extra":
        extra = {**row, "chip": OTHER, "cost": 123.45}
        return [*days, extra], {"not in the plan": 123.45}
    return [*days[:at], *days[at + 1 :]], {"quantity": -row["cost"]}


def planned(answer, form, path):
    """Return the plan, and its charges as a seller that bills capacity alone would have them."""
    rows = focus_rows(answer, START, side="rent" if answer["kind"] == "tco" else None)
    if form != "small":
        side = {"side": "rent"} if answer["kind"] == "tco" else {}
        return rows, {"estimate": answer, "start": str(START.date()), **side}
    hours = [row for row in rows if row["PricingUnit"] == "GPU-hour"]
    write_rows(hours, str(path), "csv")
    return hours, {"estimate": str(path)}


def check(answer, form, what, folder):
    rows, question = planned(answer, form, folder / "plan.csv")
    days, expected = days_of(rows), {}
    if what:
        days, expected = deviate(what, days)
    answer = gpucost.reconcile(bill(form, days, folder / "bill.csv"), **question).payload
    parts = {row["part"]: row["effective_usd"] for row in answer["parts"] if row["effective_usd"]}
    parts["quantity"] = round(parts.get("quantity", 0) + parts.pop("mix", 0), 2)  # both are of the hours
    # the cents of a charge are not quite its rate times its hours: a cent may stand as price beside a quantity
    assert parts.keys() - expected.keys() <= {"price", "quantity"}, (parts, expected)
    for part in parts.keys() | expected.keys():
        assert parts.get(part, 0) == pytest.approx(expected.get(part, 0), abs=0.02), (part, parts, expected)
    assert answer["totals"]["effective_difference_usd"] == pytest.approx(sum(expected.values()), abs=0.005)
    assert {row["why"] for row in answer["unmatched"]} <= ({"not in the plan"} if what in ("GPU", "extra") else set())
    return answer


@pytest.mark.parametrize("kind", ["estimate", "inference", "tco", "mix"])
@pytest.mark.parametrize("form", H100)
def test_a_bill_of_the_plan_is_the_plan(kind, form, tmp_path):
    answer = check(plan(kind), form, None, tmp_path)
    assert answer["anomalies"] == []
    assert any(row["unit"] == "GPU-hour" and row["charged_quantity"] for row in answer["products"])


@pytest.mark.parametrize("what", ["price", "hours", "GPU", "extra", "missing"])
@pytest.mark.parametrize("form", H100)
@pytest.mark.parametrize("kind", ["estimate", "tco", "mix"])
def test_one_deviation_is_named_and_nothing_else(kind, form, what, tmp_path):
    check(plan(kind), form, what, tmp_path)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    plan=st.fixed_dictionaries(
        {"gpus": st.integers(1, 64).map(lambda nodes: 8 * nodes), "years": st.sampled_from([1, 1.5, 2]),
         "utilisation": st.integers(5, 100).map("{}%".format), "rent": st.floats(0.5, 12).map(lambda x: round(x, 3))}
    ),
    form=st.sampled_from(sorted(H100)),
    what=st.sampled_from([None, "price", "hours", "GPU", "extra", "missing"]),
)  # fmt: skip
def test_whatever_the_plan_its_bill_is_read_again(plan, form, what, tmp_path):
    check(gpucost.tco(gpu="h100-sxm", draws=0, as_of=answers.DAY, **plan).to_dict(), form, what, tmp_path)


@pytest.mark.parametrize("form", ["aws", "aws older"])
def test_what_a_savings_plan_covers_is_read_as_planned(form, tmp_path):
    """Covered hours bear the plan's share; what its fees leave over nobody used; together they are what was bought."""
    answer = gpucost.estimate("8b", "100b", gpus=64, gpu="h100-sxm", option="reserved", top=1, as_of=answers.DAY)
    names = ("line_item_line_item_type", "line_item_unblended_cost", "line_item_usage_start_date",
             "line_item_usage_end_date", "line_item_usage_amount", "line_item_currency_code", "line_item_usage_type",
             "product_instance_type", "pricing_unit", "savings_plan_savings_plan_a_r_n",
             "savings_plan_savings_plan_effective_cost", "savings_plan_total_commitment_to_date",
             "savings_plan_used_commitment")  # fmt: skip
    older = ("lineItem/LineItemType", "lineItem/UnblendedCost", "lineItem/UsageStartDate", "lineItem/UsageEndDate",
             "lineItem/UsageAmount", "lineItem/CurrencyCode", "lineItem/UsageType", "product/instanceType",
             "pricing/unit", "savingsPlan/SavingsPlanARN", "savingsPlan/SavingsPlanEffectiveCost",
             "savingsPlan/TotalCommitmentToDate", "savingsPlan/UsedCommitment")  # fmt: skip
    lines = []
    for row in focus_rows(answer.payload, START):
        times = (f"{row['ChargePeriodStart']:%Y-%m-%dT%H:%M:%SZ}", f"{row['ChargePeriodEnd']:%Y-%m-%dT%H:%M:%SZ}")
        fee = ("SavingsPlanRecurringFee", row["BilledCost"], *times, 1, "USD", "ComputeSP:1yr", "", "", "arn:sp", "")
        if row["ChargeCategory"] == "Purchase":
            lines.append((*fee, 0, 0))
        elif row["CommitmentDiscountStatus"] == "Unused":
            lines.append((*fee, row["EffectiveCost"], 0))
        elif row["CommitmentDiscountStatus"] == "Used":
            machine = ("USD", "BoxUsage:p5.48xlarge", "p5.48xlarge", "Hrs", "arn:sp", row["EffectiveCost"], "", "")
            lines.append(("SavingsPlanCoveredUsage", 99, *times, row["PricingQuantity"] / 8, *machine))
        else:
            lines.append(("Usage", row["BilledCost"], *times, row["PricingQuantity"], "USD", row["SkuId"], "",
                          row["PricingUnit"], "", "", "", ""))  # fmt: skip
    with open(tmp_path / "bill.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([older if form == "aws older" else names, *lines])
    found = gpucost.reconcile(str(tmp_path / "bill.csv"), answer.payload, start=str(START.date())).payload
    assert {part: row for row in found["parts"] if (part := row["part"]) and row["effective_usd"]} == {}
    assert found["totals"]["billed_difference_usd"] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("form", ["aws", "aws older"])
@pytest.mark.parametrize("tag", ["team", "user:team", "user_team"])
def test_a_tag_is_read_in_either_report_of_aws(form, tag, tmp_path):
    days = [{"day": date(2026, 11, 1), "name": "x", "gpu": True, "spot": False, "unit": "GPU-hour", "quantity": 8,
             "cost": 20.0}]  # fmt: skip
    (row,) = gpucost.reconcile(bill(form, days, tmp_path / "b.csv"), showback=tag).payload["showback"]
    assert (row["tag_value"], row["total_usd"]) == ("red", 20.0)


def test_a_bill_in_euros_is_converted_at_the_rate_of_its_month(tmp_path):
    """53,760 EUR of October 2026 are 60,061 USD at 1.1172 of the 30th, September's at 1.1355; both are said."""
    (tmp_path / "b.csv").write_text(
        "date,gpu,hours,amount,currency,tags\n2026-09-15,h100-sxm,10,1000,EUR,{}\n2026-10-15,h100-sxm,10,53760,EUR,{}\n"
    )
    found = gpucost.reconcile(str(tmp_path / "b.csv"), showback="team", as_of="2026-11-28").payload
    assert found["totals"]["charged_effective_usd"] == pytest.approx(53760 * 1.1172 + 1000 * 1.1355, abs=0.01)
    assert [(row["month"], row["paid_usd_per_unit"], row["paid_rate_on"]) for row in found["currencies"]] == [
        ("2026-09", 1.1355, "2026-09-30"),
        ("2026-10", 1.1172, "2026-10-30"),
    ]
    assert any("2026-10-30" in text for text in found["warnings"])
    stated = gpucost.reconcile(str(tmp_path / "b.csv"), showback="team", rate={"EUR": 1.2}).payload
    assert stated["totals"]["charged_effective_usd"] == pytest.approx(54760 * 1.2)
    assert "paid_rate_on" not in stated["currencies"][0]
