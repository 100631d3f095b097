"""What one can order leads; quotes that nobody verified stand apart, with what is missing."""

import pytest
from msgspec.structs import replace

from gpucost.errors import NothingFitsError
from gpucost.market.facts import make_market
from gpucost.market.terms import ORDER_GPUS
from gpucost.market.tiers import LARGE_GPUS, LARGEST_SPOT_GPUS, MEASURED_SPOT_GPUS, said
from tests.training.market import BUCKET, FAST, answer, facts, node, offer

pytestmark = pytest.mark.usefixtures("round_speeds")


def first(found):
    return found["options"][0]


def kinds(found):
    return {row["kind"]: row for row in found["highlights"]}


def test_an_old_price_does_not_lead_however_cheap():
    found = answer([offer(2.0), offer(0.5, provider="cheap", age_days=400)])
    assert first(found)["provider"] == "acme"
    assert found["options"][1]["missing"] == ["price of 400 days (limit 180)"]
    assert kinds(found)["unverified"]["provider"] == "cheap"
    assert "unverified" not in found["headline"]


def test_where_nothing_can_be_ordered_the_headline_says_what_is_missing():
    found = answer([offer(0.5, age_days=400)])
    assert found["headline"].startswith("Lowest quoted, unverified: about")
    assert "Missing: price of 400 days (limit 180). No list had this offer within 60 days" in found["headline"]


def test_asked_for_together_the_cheapest_leads():
    found = answer([offer(2.0), offer(0.5, provider="cheap", age_days=400)], include_unverified=True)
    assert first(found)["provider"] == "cheap"


def test_a_chip_that_nobody_trained_on_does_not_lead():
    known = facts([offer(2.0), offer(0.1, "slow")])
    rows = ({"kind": "training", "accelerator_id": "fast"}, {"kind": "serving", "accelerator_id": "slow"})
    market = make_market(replace(known, measured_chips=rows))
    assert market.measured["training"].tolist() == [True, False]
    assert market.measured["serving"].tolist() == [False, True]


def test_spot_of_an_unmeasured_rate_leads_up_to_so_many_and_is_refused_beyond():
    market = [offer(2.0), offer(0.2, option="spot", provider="unmeasured")]
    small, large = (answer(market, gpus=gpus) for gpus in (MEASURED_SPOT_GPUS, 2 * MEASURED_SPOT_GPUS))
    assert first(small)["option"] == "spot"
    assert first(large)["option"] == "on_demand"
    assert f"interruptions never measured beyond {MEASURED_SPOT_GPUS}" in large["options"][1]["missing"]
    refused = answer(market, gpus=2 * LARGEST_SPOT_GPUS)
    assert [row["option"] for row in refused["options"]] == ["on_demand"]
    assert any("interruptions were measured on at most" in row["reason"] for row in refused["excluded"])
    with pytest.raises(NothingFitsError, match="interruptions were measured"):
        answer(market[1:], gpus=2 * LARGEST_SPOT_GPUS)


def test_a_measured_rate_may_be_larger():
    found = answer([offer(0.2, option="spot")], spot=[BUCKET], gpus=2 * MEASURED_SPOT_GPUS)
    assert not first(found)["missing"]


def test_no_range_of_a_large_run_has_a_tail_of_years():
    found = answer([offer(2.0), offer(0.2, option="spot", provider="unmeasured")], gpus=LARGEST_SPOT_GPUS)
    assert all(row["cost_high_usd"] < 100 * row["cost_usd"] for row in found["options"])


def test_a_large_order_needs_its_capacity_confirmed():
    found = answer([offer(2.0)], gpus=2 * ORDER_GPUS["cloud"])
    assert first(found)["missing"] == [f"capacity to confirm (assumed to sell {ORDER_GPUS['cloud']} at once)"]
    assert not first(answer([offer(2.0, maximum_units=1000)], gpus=2 * ORDER_GPUS["cloud"]))["missing"]


def test_of_the_sizes_of_an_offer_one_that_can_be_ordered_is_taken():
    """The fastest size of a seller is one that nobody sells; what leads is its fastest that can be ordered."""
    found = answer([offer(2.0)], optimize="time", gpus=None)
    assert first(found)["gpus"] == ORDER_GPUS["cloud"]
    assert not first(found)["missing"]
    assert answer([offer(2.0)], optimize="time", gpus=None, include_unverified=True)["options"][0]["gpus"] > 128


def test_a_large_order_that_may_be_had_is_to_be_confirmed_on_the_first_screen():
    large = kinds(answer([offer(2.0)], gpus=ORDER_GPUS["cloud"]))["cheapest"]
    assert large["confirm"].startswith(f"Confirm the capacity of {ORDER_GPUS['cloud']} × fast at acme")
    assert kinds(answer([offer(2.0)], gpus=LARGE_GPUS))["cheapest"]["confirm"] == ""
    assert kinds(answer([offer(2.0, maximum_units=1000)], gpus=ORDER_GPUS["cloud"]))["cheapest"]["confirm"] == ""


def test_commitments_far_longer_than_the_run_are_hidden_unless_asked_for():
    year = offer(0.5, option="reserved", term_months=12, billing="take_or_pay", payment="no_upfront")
    found = answer([offer(2.0), year])
    assert [row["option"] for row in found["options"]] == ["on_demand"]
    assert any("owes 12 months for a run of" in row["reason"] for row in found["excluded"])
    assert len(answer([offer(2.0), year], option="reserved,on_demand")["options"]) == 2
    assert len(answer([offer(2.0), year], commitment="used")["options"]) == 2


def test_single_instances_are_no_node():
    """Eight single instances have no link between them; the seller's node has a price of its own."""
    found = answer([offer(0.5, gpus=1, provider="pods"), offer(2.0, provider="pods")], gpus=8)
    assert [row["usd_per_gpu_hour"] for row in found["options"]] == [2.0]
    assert any("no link joins single instances" in row["reason"] for row in found["excluded"])


def test_a_slice_of_a_machine_that_is_sold_whole_is_no_order():
    whole = replace(node(FAST), instance_type="big-8")
    part = replace(offer(1.0, gpus=1), instance_type="big-8 (1 GPU slice)")
    assert make_market(facts([part, offer(1.0)], [whole, node(FAST)])).supply.is_part.tolist() == [True, False]


def test_the_headline_says_instances_hours_price_and_its_day():
    found = answer([replace(offer(2.0), instance_type="big.8")], gpus=16)
    words = found["headline"]
    assert "on 2 × big.8 (16 × fast) at acme" in words
    assert f"{first(found)['gpu_hours']:,.0f} GPU-hours at 2.00 USD (seen 2026-06-01), 40% MFU" in words


def test_the_bill_is_at_the_expected_price_and_the_quote_stands_beside_it():
    known = replace(facts([offer(2.0)]), expected=((1.0, 1.25, 1.5, 1.0),))
    terms = make_market(known).terms
    assert terms.usd_per_gpu_hour == pytest.approx([2.5])
    assert terms.quoted_usd_per_gpu_hour == pytest.approx([2.0])
    assert (terms.price_low_ratio[0], terms.price_high_ratio[0]) == pytest.approx((0.8, 1.2))


def test_ranking_by_time_does_not_change_what_is_cheapest():
    market = [offer(2.0), offer(3.0, provider="dear")]
    by_cost, by_time = (kinds(answer(market, optimize=goal))["cheapest"] for goal in ("cost", "time"))
    assert by_time["cost_usd"] <= by_cost["cost_usd"] * 1.01


def test_a_quote_far_below_all_others_does_not_lead():
    known = replace(facts([offer(2.0), offer(0.5)]), expected=((1.0, 1.0, 1.0, 1.0), (1.0, 2.0, 4.0, 0.25)))
    market = make_market(known)
    told = said(market.supply, market.terms, 1, 8, market.measured["training"], "training")
    assert told == ["price at 25% of what others ask"]
