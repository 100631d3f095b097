"""The rest of the year from actuals, and days that stand out against the plan, by hand."""

import re

import pytest

import gpucost
from tests.invoices.charges import charge, write

HEAD = "ChargeCategory,BilledCost,EffectiveCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,PricingQuantity,"
HEAD += "PricingUnit,SkuId,ServiceName,ProviderName\n"


def day_row(day, cost, hours, sku="p5.48xlarge", days=1, month=11):
    return (
        f"Usage,{cost},{cost},USD,2026-{month:02d}-{day:02d}T00:00:00Z,2026-{month:02d}-{day + days:02d}T00:00:00Z,"
        f"{hours},Hours,{sku},Amazon EC2,AWS\n"
    )


@pytest.fixture
def files(tmp_path):
    """A plan of 240 USD a day for 24 hours of a machine until the end of the year, and four weeks of an invoice."""
    plan = "".join(day_row(day, 240, 24) for day in range(1, 30)) + "".join(
        day_row(day, 240, 24, month=12) for day in range(1, 31)
    )
    (tmp_path / "plan.csv").write_text(HEAD + plan)

    def invoice(costs, hours=None, more=""):
        rows = "".join(day_row(day, cost, 24 if hours is None else hours[day - 1]) for day, cost in enumerate(costs, 1))
        (tmp_path / "invoice.csv").write_text(HEAD + rows + more)
        return gpucost.reconcile(
            str(tmp_path / "invoice.csv"), estimate=str(tmp_path / "plan.csv"), as_of="2026-11-20"
        ).payload

    return invoice


def test_an_invoice_on_plan_has_nothing_that_stands_out(files):
    found = files([240] * 28)
    assert found["anomalies"] == []
    outlook = found["forecast"]
    # 28 November to 30 December: 32 days at 240
    assert (outlook["days_left"], outlook["rest_usd"]) == (32, pytest.approx(32 * 240))
    assert outlook["total_usd"] == outlook["total_low_usd"] == pytest.approx(60 * 240)
    assert outlook["planned_usd"] == pytest.approx(59 * 240)


def test_the_rest_of_the_year_follows_the_pace_of_the_last_four_weeks(files):
    """Weeks at 200, 240, 280 and 320 a day: 260 on average, and 200 to 320 at the ends."""
    found = files([200] * 7 + [240] * 7 + [280] * 7 + [320] * 7)["forecast"]
    so_far = 7 * (200 + 240 + 280 + 320)
    assert found["so_far_usd"] == pytest.approx(so_far)
    assert found["total_usd"] == pytest.approx(so_far + 32 * 260)
    assert (found["total_low_usd"], found["total_high_usd"]) == pytest.approx((so_far + 32 * 200, so_far + 32 * 320))
    assert "over the 14,160 planned" in found["sentence"]


def test_days_in_a_row_that_stand_out_are_one_sentence_with_its_cause(files):
    """Three days of two machines instead of one: 720 USD more, as 144 hours were used where 72 were planned."""
    costs, hours = [240] * 28, [24] * 28
    for day in (9, 10, 11):
        costs[day], hours[day] = 480, 48
    costs[20] = 360  # the same hours at half as much again
    rows = files(costs, hours)["anomalies"]
    assert [(row["from_day"], row["until_day"], row["difference_usd"]) for row in rows] == [
        ("2026-11-10", "2026-11-12", 720.0),
        ("2026-11-21", "2026-11-21", 120.0),
    ]
    assert "144 " in rows[0]["sentence"]
    assert "each cost 15.0000 USD where 10.0000 was planned" in rows[1]["sentence"]


def test_a_day_without_a_charge_and_a_product_without_a_plan_stand_out(files):
    found = files([240] * 13 + [0] + [240] * 14, [24] * 13 + [0] + [24] * 14, day_row(5, 999, 10, sku="g6.xlarge"))
    texts = [row["sentence"] for row in found["anomalies"]]
    assert re.search(r"^g6\.xlarge .*999\.00 USD.*2026-11-05", texts[0])
    assert re.search(r"^p5\.48xlarge.*2026-11-14.*240\.00 USD", texts[1])


def test_the_usual_spread_of_days_does_not_stand_out(files):
    """Days between 170 and 310 around a plan of 240: none is three standard deviations away."""
    costs = [240 + 10 * ((day * 37) % 15 - 7) for day in range(28)]
    assert files(costs)["anomalies"] == []


def test_recurring_discounts_and_unused_commitments_are_in_the_forecast(tmp_path):
    """10 USD of use, 2 taken off and 3 unused a day are 11 a day, for 28 days and for each day that is left."""
    rows = []
    for day in range(1, 29):
        at = {"ChargePeriodStart": f"2026-11-{day:02}T00:00:00Z", "ChargePeriodEnd": f"2026-11-{day + 1:02}T00:00:00Z"}
        rows += [charge(**at), charge(**at, ChargeCategory="Credit", cost=-2, SkuId="discount", PricingQuantity=0)]
        rows += [charge(**at, ChargeCategory="Purchase", CommitmentDiscountId="sp", SkuId="plan", BilledCost=3,
                        EffectiveCost=3, PricingQuantity=1)]  # fmt: skip
    once = charge(ChargeCategory="Credit", cost=-500, SkuId="goodwill", PricingQuantity=0)
    found = gpucost.reconcile(write(tmp_path / "b.csv", *rows, once), showback="team").payload["forecast"]
    assert found["so_far_usd"] == pytest.approx(28 * 11)
    assert found["rest_usd"] == pytest.approx(33 * 11)  # to the end of December


def test_a_fee_for_a_year_does_not_stretch_what_is_shown_back(tmp_path):
    fee = charge(ChargeCategory="Purchase", ChargePeriodEnd="2027-11-01T00:00:00Z", cost=5, SkuId="support")
    found = gpucost.reconcile(write(tmp_path / "b.csv", charge(), fee), showback="team").payload
    assert found["period_until"] == "2026-11-02 00:00"
