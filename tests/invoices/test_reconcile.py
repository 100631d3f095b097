"""An invoice against a plan: parts that add up to the cent, charges that are never dropped, files as they come."""

import gzip
import json
from datetime import datetime, timedelta
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpucost
from gpucost.answers.common import frame
from gpucost.ask.invoices import plan_of
from gpucost.ask.result import Result
from gpucost.errors import DataError, PriceMissingError, UsageError
from gpucost.invoices.reading import Charges, charges_of, read_charges
from gpucost.invoices.reconciliation import (
    CREDIT,
    OUTSIDE,
    SIGN,
    TAX,
    UNBILLED,
    UNPLANNED,
    InvoiceQuestion,
    read_map,
    reconciled,
    showback,
)
from gpucost.invoices.rows import NAMES, focus_rows
from gpucost.money.variance import Amount, in_cents, split
from tests.commands import in_process
from tests.invoices.charges import charge, write
from tests.render import answers

START = datetime(2026, 11, 1)


def parts(result, basis="effective_usd"):
    return {row["part"]: row[basis] for row in result.payload["parts"]}


def test_the_split_of_a_hand_calculated_example():
    # planned 100 h of a at 2 and 100 h of b at 4, 600 in all; charged 180 h of a at 2.5 and 60 h of b at 4
    plan = {"a": {False: Amount(100, 200.0)}, "b": {False: Amount(100, 400.0)}}
    actual = {"a": {False: Amount(180, 450.0)}, "b": {False: Amount(60, 240.0)}}
    found = split(plan, actual, work_ratio=1.1)
    assert found["quantity"] == pytest.approx(60)  # 10 % more work
    assert found["efficiency"] == pytest.approx(60)  # 20 % more hours for it
    assert found["mix"] == pytest.approx((180 - 120) * 2 + (60 - 120) * 4)
    assert found["price"] == pytest.approx(180 * 0.5)
    assert found["commitment use"] == 0
    assert sum(found.values()) == pytest.approx(690 - 600)


def test_hours_that_a_commitment_did_not_cover_are_its_part():
    # planned 80 h covered at 1 and 20 h at 3; charged 50 h covered at 1 and 50 h at 3: 30 h cost 2 more each
    plan = {"a": {True: Amount(80, 80.0), False: Amount(20, 60.0)}}
    actual = {"a": {True: Amount(50, 50.0), False: Amount(50, 150.0)}}
    found = split(plan, actual)
    assert found["commitment use"] == pytest.approx(60)
    assert sum(abs(value) for name, value in found.items() if name != "commitment use") == pytest.approx(0)


@pytest.mark.parametrize(("before", "after"), [(False, True), (True, False)])
def test_a_commitment_that_nobody_planned_or_that_lapsed_is_use_and_no_price(before, after):
    # 50 h planned at 3 cost 1.5 under a new commitment, or the other way round; b keeps its kind and costs 1 more
    cost = {True: 75.0, False: 150.0}
    plan = {"a": {before: Amount(50, cost[before])}, "b": {False: Amount(50, 100.0)}}
    actual = {"a": {after: Amount(50, cost[after])}, "b": {False: Amount(50, 150.0)}}
    found = split(plan, actual)
    assert found["commitment use"] == pytest.approx(cost[after] - cost[before])
    assert found["price"] == pytest.approx(50)
    assert (found["mix"], found["quantity"], found["efficiency"]) == (0, 0, 0)


@pytest.mark.parametrize("hours", [0.0, 5e-324, 2.2250738585072014e-308, 1e-9])
def test_a_cost_for_next_to_no_hours_is_a_matter_of_price(hours):
    found = split({"a": {False: Amount(1.0, 0.0)}}, {"a": {True: Amount(hours, 4.0)}})
    assert found["price"] == pytest.approx(4)
    assert sum(found.values()) == pytest.approx(4)


amounts = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=12))
def test_cents_add_up_to_the_rounded_total(values):
    total = sum(values)
    assert round(sum(round(value * 100) for value in in_cents(values, total))) == round(total * 100)


def charges(side):
    """Draw charges of one side, of every category, status and currency that there is."""
    return st.lists(
        st.builds(
            Charges,
            day=st.integers(0, 40).map(lambda day: (START + timedelta(days=day)).date()),
            category=st.sampled_from(["Usage"] * 6 + ["Purchase", "Tax", "Credit", "Adjustment"]),
            corrected=st.booleans(), committed=st.booleans(), status=st.sampled_from(["", "Used", "Unused"]),
            currency=st.sampled_from(["USD", "EUR"] if side == "invoice" else ["USD"]),
            unit=st.sampled_from(["Hours", "GPU-hour", "GB", ""]), gpus_per_unit=st.sampled_from([0.0, 8.0]),
            negative=st.booleans(), tag=st.sampled_from(["", "a", "b"]),
            names=st.sampled_from(["p5", "p4", "storage", "other"]).map(lambda x: ("", x, *[""] * (len(NAMES) - 2))),
            rows=st.integers(1, 9), billed=amounts, effective=amounts, listed=amounts, contracted=amounts,
            quantity=st.floats(-1e4, 1e4), end=st.just(START + timedelta(days=41)), zoneless=st.just(0),
        ),
        min_size=1, max_size=12,
    )  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(charges("plan"), charges("invoice"), st.sampled_from([None, 0.0, 0.9, 2.0]))
def test_the_parts_add_up_to_the_difference_to_the_cent(plan, invoice, work):
    """Whatever the charges: billed and effective, each part and each left charge is counted once."""
    rates = {"USD": 1.0, "EUR": 1.1}, {"USD": 1.0, "EUR": 1.2}
    answer = reconciled(frame({}, START.date(), "x"), invoice, plan, InvoiceQuestion("team", "cost", work, {}, *rates))
    for basis in ("billed", "effective"):
        cents = sum(round(part[f"{basis}_usd"] * 100) for part in answer["parts"])
        assert cents == round(answer["totals"][f"{basis}_difference_usd"] * 100)
    charged = round(answer["totals"]["charged_effective_usd"] * 100)
    assert sum(round(row["total_usd"] * 100) for row in answer["showback"]) == charged or not answer["showback"]
    compared = sum(
        row["rows"] for row in answer["unmatched"] if "planned" not in row["why"] and "not on" not in row["why"]
    )
    assert compared <= answer["rows_read"]


@cache
def committed():
    return gpucost.estimate("8b", "100b", gpus=64, gpu="h100", option="reserved", top=1, as_of=answers.DAY).payload


SAVED = {
    "estimate": answers.training, "reserved": committed, "tco": answers.ownership, "mix": answers.mix,
    "inference": answers.serving,
}  # fmt: skip


@pytest.mark.parametrize("kind", SAVED)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_is_exported_reconciles_to_zero_in_every_part(kind, form, tmp_path):
    path = str(tmp_path / f"plan.{form}")
    assert gpucost.export(SAVED[kind](), path, start="2026-12-01") == len(
        focus_rows(SAVED[kind](), datetime(2026, 12, 1))
    )
    result = gpucost.reconcile(path, SAVED[kind](), start="2026-12-01")
    for row in result.parts:
        assert (row["billed_usd"], row["effective_usd"]) == (0, 0), row
    assert result.payload["unmatched"] == [] or kind in ("tco", "mix")  # what is sold is a credit
    assert result.payload["totals"]["effective_difference_usd"] == 0


def test_an_export_adds_up_to_the_answer_as_billed_and_as_used(tmp_path):
    for made in (answers.training(), committed()):
        rows = focus_rows(made, START)
        for basis in ("BilledCost", "EffectiveCost"):
            assert round(sum(row[basis] for row in rows), 2) == made["options"][0]["cost_usd"]
    unused = [row for row in focus_rows(committed(), START) if row["CommitmentDiscountStatus"] == "Unused"]
    assert unused
    assert all(row["BilledCost"] == 0 for row in unused)


def test_an_answer_is_exported_as_the_payload_that_it_holds(tmp_path):
    saved = answers.training()
    for name, made in (("a.csv", Result(saved)), ("b.csv", saved)):
        gpucost.export(made, str(tmp_path / name))
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_a_mix_is_exported_in_cash_and_its_servers_are_used_up_as_they_work():
    answer = answers.mix()
    rows = focus_rows(answer, START)
    for name in ("servers", "energy", "people", "services"):
        paid = sum(row[f"{name}_usd"] for row in answer["cash_by_month"])
        mine = [row for row in rows if row["x_Line"] == name]
        for basis in ("BilledCost", "EffectiveCost"):
            assert sum(row[basis] for row in mine) == pytest.approx(paid, abs=0.02), (name, basis)
    purchases = [row for row in rows if row["x_Line"] == "servers" and row["ChargeCategory"] == "Purchase"]
    assert purchases[0]["BilledCost"] == pytest.approx(answer["cash_by_month"][0]["servers_usd"], abs=0.01)
    assert purchases[-1]["BilledCost"] < 0  # sold at the end
    assert all(row["EffectiveCost"] == 0 for row in purchases)


# https://focus.finops.org/focus-specification/v1-2: its columns, and which of them stand or fall together
FOCUS_1_2 = """AvailabilityZone BilledCost BillingAccountId BillingAccountName BillingAccountType BillingCurrency
    BillingPeriodEnd BillingPeriodStart CapacityReservationId CapacityReservationStatus ChargeCategory ChargeClass
    ChargeDescription ChargeFrequency ChargePeriodEnd ChargePeriodStart CommitmentDiscountCategory CommitmentDiscountId
    CommitmentDiscountName CommitmentDiscountQuantity CommitmentDiscountStatus CommitmentDiscountType
    CommitmentDiscountUnit ConsumedQuantity ConsumedUnit ContractedCost ContractedUnitPrice EffectiveCost InvoiceId
    InvoiceIssuerName ListCost ListUnitPrice PricingCategory PricingCurrency PricingCurrencyContractedUnitPrice
    PricingCurrencyEffectiveCost PricingCurrencyListUnitPrice PricingQuantity PricingUnit ProviderName PublisherName
    RegionId RegionName ResourceId ResourceName ResourceType ServiceCategory ServiceName ServiceSubcategory SkuId
    SkuMeter SkuPriceDetails SkuPriceId SubAccountId SubAccountName SubAccountType Tags"""
NEVER_NULL = """BilledCost BillingAccountId BillingAccountType BillingCurrency ChargeCategory ContractedCost
    EffectiveCost InvoiceIssuerName ListCost PricingQuantity PricingUnit ProviderName PublisherName ServiceCategory
    ServiceName ServiceSubcategory SkuId SkuPriceId"""


@pytest.mark.parametrize("kind", SAVED)
def test_the_columns_are_those_of_focus_1_2_and_hold_what_it_demands(kind):
    rows = focus_rows(SAVED[kind](), START)
    assert [name for name in rows[0] if not name.startswith("x_")] == FOCUS_1_2.split()
    for row in rows:
        assert [name for name in NEVER_NULL.split() if row[name] is None] == []
        assert row["ServiceSubcategory"] in ("Virtual Machines", f"Other ({row['ServiceCategory']})")
        unknown = ("InvoiceId", "ResourceId", "ResourceType", "SubAccountId", "SubAccountType", "CapacityReservationId")
        assert [row[name] for name in unknown] == [None] * 6  # nobody has issued, provisioned or reserved them
        bound = row["CommitmentDiscountId"] is not None
        for name in ("Category", "Name", "Quantity", "Type", "Unit"):
            assert (row[f"CommitmentDiscount{name}"] is not None) == bound, name
        used = row["ChargeCategory"] == "Usage" and row["CommitmentDiscountStatus"] != "Unused"
        assert (row["ConsumedQuantity"] is not None) == (row["ConsumedUnit"] is not None) == used


def test_what_a_commitment_covers_or_leaves_is_what_was_bought():
    made = committed()
    quantity = {"Purchase": 0.0, "Usage": 0.0}
    for row in focus_rows(made, START):
        quantity[row["ChargeCategory"]] += row["CommitmentDiscountQuantity"] or 0.0
    option = made["options"][0]
    assert quantity["Purchase"] == pytest.approx(option["gpus"] * option["term_months"] * 730)
    assert quantity["Usage"] == pytest.approx(quantity["Purchase"])


def test_prices_stand_in_the_currency_of_pricing_too():
    for row in focus_rows(answers.training(), START):
        assert row["PricingCurrencyEffectiveCost"] == row["EffectiveCost"]
        assert row["PricingCurrencyListUnitPrice"] == row["ListUnitPrice"]
        assert row["PricingCurrencyContractedUnitPrice"] == row["ContractedUnitPrice"]


def test_a_price_that_rose_and_hours_that_grew_are_told_apart(tmp_path):
    plan = write(tmp_path / "plan.csv", charge(cost=10, PricingQuantity=5))
    invoice = write(tmp_path / "invoice.csv", charge(cost=18, PricingQuantity=6))  # 3 an hour, not 2; one hour more
    found = parts(gpucost.reconcile(invoice, plan))
    assert (found["price"], found["quantity"], found["efficiency"]) == (6, 2, 0)
    found = parts(gpucost.reconcile(invoice, write(tmp_path / "p.csv", charge(PricingUnit="GPU-Hours")), map=None))
    assert found[UNPLANNED] == 18  # hours of machines are not hours of GPUs, and no line is dropped
    assert found[UNBILLED] == -10


def test_efficiency_needs_the_work_done(tmp_path):
    row = charge(cost=10, PricingQuantity=5, PricingUnit="GPU-Hours")
    plan = write(tmp_path / "plan.csv", row)
    invoice = write(tmp_path / "invoice.csv", {**row, **charge(cost=12, PricingQuantity=6, PricingUnit="GPU-Hours")})
    assert parts(gpucost.reconcile(invoice, plan))["quantity"] == 2
    found = parts(gpucost.reconcile(invoice, plan, done="90%"))
    assert (found["quantity"], found["efficiency"]) == (-1, 3)
    nothing = gpucost.reconcile(plan, plan, done=0)
    said = "The invoice comes to the plan of 10.00 USD for 2026-11-01 to 2026-11-01; the largest part is quantity, -10"
    assert nothing.payload["headline"].startswith(said)
    assert "10.00 USD from 2026-11-01 to 2026-11-01, by tag" in gpucost.reconcile(plan, showback="team").headline


def test_unused_commitments_and_purchases_are_the_use_of_commitments(tmp_path):
    held = {"CommitmentDiscountId": "ri-1"}
    plan = write(tmp_path / "plan.csv", charge(**held, CommitmentDiscountStatus="Used"))
    invoice = write(
        tmp_path / "invoice.csv",
        charge(**held, CommitmentDiscountStatus="Used", BilledCost=0),
        charge(**held, CommitmentDiscountStatus="Unused", BilledCost=0, EffectiveCost=4, PricingQuantity=2),
        charge(**held, ChargeCategory="Purchase", BilledCost=14, EffectiveCost=0),
    )
    result = gpucost.reconcile(invoice, plan)
    assert parts(result)["commitment use"] == 4
    assert parts(result, "billed_usd")["commitment use"] == 14


def test_charges_of_machines_are_found_by_words_and_by_a_map(tmp_path):
    hours = {"PricingUnit": "Hrs", "PricingQuantity": 5 / 8}
    planned = charge(SkuId="p5.48xlarge", PricingUnit="GPU-hour", x_GpusPerUnit=8)
    plan = write(tmp_path / "plan.csv", planned)
    found = gpucost.reconcile(
        write(tmp_path / "a.csv", charge(SkuId="ABC", SkuMeter="BoxUsage:p5.48xlarge", **hours)), plan
    )
    assert set(parts(found).values()) == {0}
    invoice = write(tmp_path / "b.csv", charge(SkuId="XYZ", **hours))
    (row,) = [row for row in gpucost.reconcile(invoice, plan).payload["unmatched"] if row["billed_usd"] > 0]
    assert (row["charged_for"], row["why"], row["rows"], row["billed_usd"]) == ("XYZ", UNPLANNED, 1, 10)
    (tmp_path / "map.csv").write_text("invoice,estimate\nXYZ,p5.48xlarge\n", "utf-8")
    found = gpucost.reconcile(invoice, plan, map=str(tmp_path / "map.csv"))
    assert set(parts(found).values()) == {0}
    (tmp_path / "map.csv").write_text("invoice,estimate\nXYZ,p6\n", "utf-8")
    with pytest.raises(DataError, match=r"'p6', which is not planned; planned are p5.48xlarge"):
        gpucost.reconcile(invoice, plan, map=str(tmp_path / "map.csv"))


def test_credits_and_taxes_have_lines_of_their_own_and_a_bare_negative_is_named(tmp_path):
    plan = write(tmp_path / "plan.csv", charge())
    invoice = write(
        tmp_path / "invoice.csv", charge(), charge(ChargeCategory="Credit", cost=-3),
        charge(ChargeCategory="Tax", cost=1), charge(cost=-2),
        charge(cost=-4, PricingQuantity=-2, ChargeClass="Correction"),
    )  # fmt: skip
    result = gpucost.reconcile(invoice, plan)
    found = parts(result)
    assert found[CREDIT] == -3
    assert found[TAX] == 1
    assert found[SIGN] == -2
    assert found["quantity"] == -4  # a correction takes back two of the five hours
    assert "1 charges" in " ".join(result.payload["warnings"])


def test_other_currencies_are_planned_at_the_budget_rate(tmp_path):
    plan = write(tmp_path / "plan.csv", charge(cost=11))
    invoice = write(
        tmp_path / "invoice.csv", charge(cost=10, BillingCurrency="EUR"), charge(cost=1, ChargeCategory="Tax")
    )
    result = gpucost.reconcile(invoice, plan, rate={"EUR": 1.2}, budget_rate={"EUR": 1.1})
    assert parts(result)["exchange rate"] == 1
    assert parts(result)["price"] == 0
    assert parts(result)[TAX] == 1
    bare = gpucost.reconcile(invoice, plan)  # the catalog's rates, said
    assert bare.payload["currencies"][0]["paid_usd_per_unit"] > 1
    strange = write(tmp_path / "x.csv", charge(BillingCurrency="XXX"))
    with pytest.raises(PriceMissingError, match=r'no exchange rate for XXX: give budget_rate=\{"XXX": USD\}'):
        gpucost.reconcile(strange, plan)


def test_a_rate_of_no_currency_is_refused(tmp_path):
    paid = write(tmp_path / "plan.csv", charge(cost=11))
    assert gpucost.reconcile(paid, paid, rate={"eur": 1.1}).payload["kind"] == "reconciliation"
    with pytest.raises(UsageError, match=r"(--rate|rate=): 'BANANA' is not a currency"):
        gpucost.reconcile(paid, paid, rate={"banana": 1.1})
    with pytest.raises(
        UsageError, match=r"(--budget-rate|budget_rate=): a rate is the USD price of one unit of another currency"
    ):
        gpucost.reconcile(paid, paid, budget_rate={"USD": 2})
    with pytest.raises(UsageError, match=r"(--rate|rate=): 'EUR' is given twice"):
        gpucost.reconcile(paid, paid, rate=["EUR=1", "eur=5"])


def test_a_rate_that_no_charge_needs_is_said(tmp_path):
    paid = write(tmp_path / "plan.csv", charge(cost=11))
    said = "No charge is in XXX: its rate changes nothing."
    assert said in gpucost.reconcile(paid, paid, rate={"XXX": 5}).payload["warnings"]
    euros = write(tmp_path / "euros.csv", charge(cost=11, BillingCurrency="XXX"))
    both = {"rate": {"XXX": 5}, "budget_rate": {"XXX": 5}}
    assert said not in gpucost.reconcile(euros, paid, **both).payload["warnings"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rank": 3}, "rank= is of a saved answer"),
        ({"side": "own"}, "side= is of a saved answer"),
        ({"start": "2026-11-02", "rank": 2}, "start= and rank= are of a saved answer"),
    ],
)
def test_what_chooses_within_a_saved_answer_is_refused_beside_charges(given, said, tmp_path):
    plan = write(tmp_path / "plan.csv", charge(cost=11))
    with pytest.raises(UsageError, match=said):
        gpucost.reconcile(plan, plan, **given)


@pytest.mark.parametrize("kind", ["tco", "mix"])
def test_a_rank_where_nothing_is_ranked_is_refused(kind):
    with pytest.raises(UsageError, match=rf"(--rank|rank=) chooses .* a saved {kind}"):
        focus_rows({"kind": kind}, START, rank=2)


def test_times_are_read_in_their_zone(tmp_path):
    invoice = write(
        tmp_path / "i.csv",
        charge(ChargePeriodStart="2026-11-02T01:00:00+02:00"),
        charge(ChargePeriodStart="2026-11-03 00:00:00", ChargePeriodEnd="2026-11-04 00:00:00"),
    )
    found = read_charges(invoice)
    assert sorted(str(row.day) for row in found) == ["2026-11-01", "2026-11-03"]  # 23:00 of the day before in UTC
    assert sum(row.zoneless for row in found) == 1


def test_a_plan_is_compared_for_the_time_that_the_invoice_covers(tmp_path):
    month = charge(cost=300, PricingQuantity=150, ChargePeriodEnd="2026-12-01T00:00:00Z")
    plan = write(tmp_path / "plan.csv", month)
    days = [
        charge(ChargePeriodStart=f"2026-11-{day:02}T00:00:00Z", ChargePeriodEnd=f"2026-11-{day + 1:02}T00:00:00Z")
        for day in range(1, 11)
    ]
    early = charge(cost=7, ChargePeriodStart="2026-10-31T00:00:00Z", ChargePeriodEnd="2026-11-01T00:00:00Z")
    result = gpucost.reconcile(write(tmp_path / "i.csv", *days, early), plan)
    assert result.payload["totals"]["planned_effective_usd"] == 100  # ten of thirty days
    assert parts(result)[OUTSIDE] == 7
    assert parts(result)["quantity"] == 0
    assert "covers 33% of the plan's time" in result.payload["warnings"][0]
    with pytest.raises(UsageError, match=r"(--start|start=)"):
        gpucost.reconcile(write(tmp_path / "i.csv", early), plan)


def test_a_showback_takes_rates_of_exchange(tmp_path):
    invoice = write(tmp_path / "i.csv", charge(cost=30, BillingCurrency="ISK", Tags='{"team": "a"}'))
    rates = {"rate": {"ISK": 0.01}, "budget_rate": {"ISK": 0.01}}
    assert gpucost.reconcile(invoice, showback="team", **rates).payload["showback"][0]["total_usd"] == 0.3


def test_idle_cost_is_shared_by_the_stated_key(tmp_path):
    rows = [
        charge(cost=30, PricingQuantity=1, Tags='{"team": "a"}'),
        charge(cost=10, PricingQuantity=3, Tags='{"team": "b"}'),
        charge(cost=5, Tags="no json"),
        charge(cost=8, CommitmentDiscountId="c", CommitmentDiscountStatus="Unused"),
    ]  # fmt: skip
    invoice = write(tmp_path / "i.csv", *rows)
    for key, shares in {"cost": (6, 2), "quantity": (2, 6), "even": (4, 4)}.items():
        found = gpucost.reconcile(invoice, showback="team", idle_by=key).payload["showback"]
        assert [(row["tag_value"], row["idle_usd"]) for row in found] == [
            ("a", shares[0]),
            ("b", shares[1]),
            ("(untagged)", 0),
        ]
        assert sum(row["total_usd"] for row in found) == 53
    assert showback(read_charges(invoice), "cost", {"USD": 1.0})[0]["tag_value"] == "(untagged)"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"BilledCost": 1}], "missing columns: EffectiveCost, BillingCurrency, ChargeCategory, ChargePeriodStart"),
        ([charge(), charge(BilledCost="ten")], "csv:3:BilledCost: is not an amount: found 'ten'"),
        ([charge(ChargeCategory="Foo")], "ChargeCategory: is none of Usage, Purchase, Tax, Credit, Adjustment: found"),
        ([charge(ChargePeriodEnd="2026-10-31T00:00:00Z")], "ChargePeriodEnd: is not a time after ChargePeriodStart"),
        ([charge(ChargePeriodEnd="2026-11-01T00:00:00Z")], "ChargePeriodEnd: is not a time after ChargePeriodStart"),
        ([charge(EffectiveCost="nan")], "csv:2:EffectiveCost: is not an amount"),
        ([charge(EffectiveCost="1e308")], "csv:2:EffectiveCost: is not an amount"),
        ([charge(ChargePeriodStart="soon")], "csv:2:ChargePeriodStart: is not a time"),
        ([charge(BillingCurrency="")], "csv:2:BillingCurrency: is not a code"),
    ],
)
def test_what_cannot_be_read_is_named(rows, said, tmp_path):
    with pytest.raises(DataError) as caught:
        gpucost.reconcile(write(tmp_path / "i.csv", *rows), showback=None, estimate=answers.training())
    assert said in str(caught.value)


def test_words_of_closed_lists_are_read_without_regard_to_case(tmp_path):
    rows = [
        charge(ChargeCategory="TAX", ChargeClass="correction"), charge(ChargeCategory=" credit "),
        charge(ChargeCategory="purchase", ChargePeriodEnd="2026-11-01T00:00:00Z"),  # at a moment
        charge(ChargeCategory="usage", CommitmentDiscountId="a", CommitmentDiscountStatus="UNUSED"),
    ]  # fmt: skip
    names = ("ChargeClass", "CommitmentDiscountId", "CommitmentDiscountStatus")
    found = read_charges(write(tmp_path / "i.csv", *({**dict.fromkeys(names, ""), **row} for row in rows)))
    assert {(row.category, row.corrected, row.status) for row in found} == {
        ("Tax", True, ""), ("Credit", False, ""), ("Purchase", False, ""), ("Usage", False, "Unused"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda text: text.replace(",", ";").encode(), "csv:1: has ';' between its cells"),
        (lambda text: text.encode("utf-16"), "UTF-16"),
        (lambda text: text.replace("p5", "p\u00e9").encode("latin-1"), "csv: holds a byte that is no UTF-8 (0xe9)"),
        (lambda text: (text + "10,10\n").encode(), "csv:3: "),
        (lambda text: text.replace("p5", '"p5').encode(), "csv:2: is not readable as CSV"),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_that_is_no_csv_of_ours_is_told_so(spoil, said, pack, tmp_path):
    path = tmp_path / ("i.csv" if pack is bytes else "i.csv.gz")
    write(tmp_path / "i", {name: value for name, value in charge().items() if name != "Tags"})
    path.write_bytes(pack(spoil((tmp_path / "i").read_text("utf-8"))))
    with pytest.raises(DataError) as caught:
        read_charges(str(path))
    assert said in str(caught.value).replace(".csv.gz:", ".csv:")


@pytest.mark.parametrize("name", ["missing.csv", "folder.csv", "glob[1].csv", "notes.txt"])
def test_a_name_that_is_no_file_of_charges_is_refused(name, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    write(tmp_path / "glob[1].csv", charge())
    with pytest.raises(UsageError):
        gpucost.reconcile(str(tmp_path / name), answers.training())


def test_packed_files_and_lines_of_json_read_like_csv(tmp_path):
    rows = [charge(Tags={"team": "a"}), charge(Tags={"team": "b"}, cost=4)]
    with gzip.open(tmp_path / "i.json.gz", "wt", encoding="utf-8") as file:
        json.dump(rows, file)
    plain = write(tmp_path / "i.csv", *({**row, "Tags": json.dumps(row["Tags"])} for row in rows))
    (tmp_path / "i.csv.gz").write_bytes(gzip.compress((tmp_path / "i.csv").read_bytes()))
    found = [sorted(read_charges(str(tmp_path / name), "team")) for name in ("i.csv", "i.csv.gz", "i.json.gz")]
    assert found[0] == found[1] == found[2]
    assert [row.tag for row in found[0]] == ["a", "b"]
    assert plain


def both_forms(folder, *rows):
    """Write charges as CSV and as JSON and return the two files."""
    (folder / "i.json").write_text(json.dumps(rows), "utf-8")
    texts = ({**row, "Tags": json.dumps(row["Tags"])} for row in rows)
    return [write(folder / "i.csv", *texts), str(folder / "i.json")]


@pytest.mark.parametrize("text", ["2026-1-1", "10:00", "00ABCDEF-0000-0000-0000-00000000ABCD", "1e3", "true", 'é"x'])
def test_texts_of_json_are_read_as_they_stand(text, tmp_path):
    rows = [charge(SkuId=text, Tags={"team": text}), charge(SkuId=text, Tags={"team": text, "Team": "b", "TEAM": "c"})]
    found = [read_charges(path, "team") for path in both_forms(tmp_path, *rows)]
    assert found[0] == found[1]
    assert [(charge.tag, charge.names[1], charge.rows) for charge in found[1]] == [(text, text, 2)]


def test_what_json_leaves_out_or_states_late_is_what_csv_leaves_empty(tmp_path):
    plain, late = (
        charge(CommitmentDiscountId="", PricingUnit=None, ConsumedUnit="Hours"),
        charge(ChargeClass="Correction"),
    )
    found = [sorted(read_charges(path)) for path in both_forms(tmp_path, *[plain] * 30_000, late)]
    assert found[0] == found[1]
    assert [(row.committed, row.unit, row.corrected, row.rows) for row in found[1]] == [
        (False, "Hours", False, 30_000), (False, "Hours", True, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "BilledCost,EffectiveCost,BilledCost\n1,1,2\n", "BilledCost,EffectiveCost,billedcost\n1,1,2\n",
        '[{"BilledCost": 1, "billedcost": 2}]', '{"billedcost": 1}\n{"BilledCost": 2}\n',
    ],
)  # fmt: skip
def test_a_column_that_is_there_twice_is_refused(text, tmp_path):
    path = tmp_path / ("i.csv" if text.startswith("B") else "i.json")
    path.write_text(text, "utf-8")
    with pytest.raises(DataError, match="BilledCost: the column is there twice"):
        read_charges(str(path))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'\xef\xbb\xbf[{"BilledCost": 1}]', "order mark"), (b"[ ]", "no charges"),
        (b"", "no charges"), (b'{"rows": [{"BilledCost": 1}]}', "under 'rows'"),
        ('[{"BilledCost": 1}]'.encode("utf-16"), "order mark"), (b'[{"a": 1}]', "BilledCost"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_json_that_holds_no_charges_is_told_why(raw, said, pack, tmp_path):
    path = tmp_path / ("i.json" if pack is bytes else "i.json.gz")
    path.write_bytes(pack(raw))
    with pytest.raises(DataError, match=said):
        read_charges(str(path))


@pytest.mark.parametrize(
    ("text", "zoneless"),
    [
        ("2026-11-01T01:00:00Z", 0), ("2026-11-01T01:00:00z", 0), ("2026-11-01T01:00:00Z ", 0),
        ("2026-11-01 01:00:00 UTC", 0), ("2026-11-01 02:00:00 Europe/Berlin", 0), ("2026-11-01 02:00:00.5+0100", 0),
        ("2026-11-01T01:00:00", 1), ("2026-11-01", 1),
    ],
)  # fmt: skip
def test_a_time_that_names_its_zone_is_not_said_to_lack_one(text, zoneless, tmp_path):
    (found,) = read_charges(write(tmp_path / "i.csv", charge(ChargePeriodStart=text)))
    assert (found.day.isoformat(), found.zoneless) == ("2026-11-01", zoneless)


@pytest.mark.parametrize(
    ("column", "text", "form"),
    [("ChargePeriodStart", "11/01/2026", "2026-11-01T00:00:00Z"), ("BilledCost", "$0.17", "1234.5")],
)
def test_a_time_or_amount_that_cannot_be_read_is_told_its_form(column, text, form, tmp_path):
    with pytest.raises(DataError, match=f"{text[1:]}'. Write .*{form}"):
        read_charges(write(tmp_path / "i.csv", charge(**{column: text})))


def test_a_map_that_sends_one_name_to_two_is_refused(tmp_path):
    path = tmp_path / "map.csv"
    path.write_text("invoice,estimate\nBox,a\nbox,b\n", "utf-8")
    with pytest.raises(DataError, match=r"map\.csv:3:invoice: maps 'box' to 'b', and a row above to 'a'"):
        read_map(str(path))
    path.write_text("invoice,estimate\nBox,a\nbox,A\n", "utf-8")
    assert read_map(str(path)) == {"box": "a"}


def test_rows_made_here_read_as_they_do_from_a_file(tmp_path):
    path = str(tmp_path / "plan.parquet")
    gpucost.export(committed(), path, start="2026-11-01", tag={"team": "x"})
    assert sorted(read_charges(path)) == sorted(charges_of(focus_rows(plan_of(committed()), START)))
    assert {row.tag for row in read_charges(path, "team")} == {"x"}


def test_the_commands_write_what_the_library_gives(tmp_path):
    saved, plan = tmp_path / "saved.json", tmp_path / "plan.csv"
    saved.write_text(json.dumps(answers.by_hand() | {"options": answers.training()["options"]}), "utf-8")

    def run(*words):
        done = in_process(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("saved", "export", "--focus", str(saved), "-o", str(plan), "--tag", "team=x")
    assert "planned" in run("reconcile", str(plan), "--estimate", str(saved), "--quiet")
    assert run("reconcile", str(plan), "--showback", "team", "--format", "csv").startswith("tag_value,rows")


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("ChargePeriodStart", "infinity"),
        ("ChargePeriodStart", "290000-01-01T00:00:00Z"),
        ("ChargePeriodStart", "1000-01-01 (BC)"),
        ("ChargePeriodStart", "9999-12-31T00:00:00Z"),
        ("ChargePeriodEnd", "infinity"),
        ("ChargePeriodEnd", "290000-01-01T00:00:00Z"),
        ("ListCost", "inf"),
        ("ContractedCost", "-1e308"),
        ("PricingQuantity", "nan"),
        ("x_GpusPerUnit", "1e308"),
    ],
)
def test_times_and_amounts_that_no_invoice_holds_are_named(column, text, tmp_path):
    path = write(tmp_path / "i.csv", charge(), charge(**{column: text}))
    with pytest.raises(DataError, match=rf":3:{column}: is no"):
        read_charges(path)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("days", 1e9, "at most 36,525"), ("gpus", 0, "Save"), ("option", "no such option", "Save"),
     ("gpu_hours", 1e30, "at most 36,525")],
)  # fmt: skip
def test_a_saved_answer_that_gives_no_charges_is_refused(name, value, said):
    saved = json.loads(json.dumps(committed()))
    saved["options"][0][name] = value
    with pytest.raises(UsageError, match=said):
        focus_rows(saved, START)


def test_a_plan_that_starts_after_all_calendars_is_refused():
    with pytest.raises(UsageError, match="--start 9999-12-31"):
        focus_rows(answers.training(), datetime(9999, 12, 31))


def test_a_cost_that_the_invoice_does_not_state_is_missing_and_not_zero(tmp_path):
    bare = {name: value for name, value in charge().items() if name not in ("ListCost", "ContractedCost")}
    found = gpucost.reconcile(write(tmp_path / "i.csv", bare), showback="team")
    assert (found.payload["totals"]["list_usd"], found.payload["totals"]["contracted_usd"]) == (None, None)
    assert found.payload["lead"].endswith("10.00 USD.")
    assert "contracted" not in found.to_markdown()
