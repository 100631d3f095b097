"""What one can count on leads; a quote that is probably gone sinks to what one would order instead."""

import numpy as np
import pytest
from msgspec.structs import replace

from gpucost.market.budget import LARGEST_SPOT_GPUS, USUAL_GPUS, Quote
from gpucost.market.facts import make_market
from gpucost.training import run
from tests.training.market import CALIBRATION, FAST, MODEL, answer, ask, facts, node, offer

pytestmark = pytest.mark.usefixtures("round_speeds")


def first(found):
    return found["options"][0]


def kinds(found):
    return {row["kind"]: row for row in found["highlights"]}


def likely(*chances):
    """Return a market of so many offers, the first at 2 USD, the others at a quarter, with their chances."""
    offers = [offer(2.0), *(offer(0.5, provider=f"cheap{place}") for place in range(1, len(chances)))]
    return replace(facts(offers), quotes=tuple(Quote(chance=chance) for chance in chances))


def answer_of(known, **wanted):
    mask = np.ones(len(known.offers), bool)
    return run.answer_request(ask(**wanted), MODEL, make_market(known), mask, CALIBRATION)


def test_a_quote_that_is_probably_gone_does_not_lead_and_is_named():
    found = answer_of(likely(1.0, 0.4))
    assert first(found)["provider"] == "acme"
    assert kinds(found)["if still there"]["provider"] == "cheap1"
    assert found["options"][1]["budget_usd"] == first(found)["budget_usd"] == first(found)["fallback_usd"]
    assert first(answer_of(likely(1.0, 1.0)))["provider"] == "cheap1"


@pytest.mark.parametrize("rank_by", ["expected", "quoted"])
def test_by_other_orders_the_cheap_quote_leads(rank_by):
    found = answer_of(likely(1.0, 0.4), rank_by=rank_by)
    assert first(found)["provider"] == "cheap1"
    column = {"expected": "expected_usd", "quoted": "cost_usd"}[rank_by]
    assert [row[column] for row in found["options"]] == sorted(row[column] for row in found["options"])


def test_by_time_what_is_probably_gone_stands_behind():
    found = answer_of(likely(1.0, 0.4), rank_by="time", gpus=16)
    assert [row["provider"] for row in found["options"]] == ["acme", "cheap1"]


def test_an_interruptible_job_beyond_what_was_ever_measured_is_left_out():
    quotes = (Quote(), Quote(most_gpus=LARGEST_SPOT_GPUS))
    known = replace(facts([offer(2.0), offer(0.2, option="spot", provider="unmeasured")]), quotes=quotes)
    refused = answer_of(known, gpus=2 * LARGEST_SPOT_GPUS)
    assert [row["option"] for row in refused["options"]] == ["on_demand"]
    assert any("512 accelerators" in row["reason"] for row in refused["offers"])


def test_a_large_order_of_which_none_is_known_is_said():
    quotes = (Quote(known_gpus=USUAL_GPUS),)
    known = replace(facts([offer(2.0)]), quotes=quotes, size_shares={"cloud": [0.25] * 11})
    found = answer_of(known, gpus=2 * USUAL_GPUS)
    assert first(found)["chance_available_fraction"] == 0.25
    assert any("No order of 128" in text for text in found["warnings"])
    assert not any("No order of" in text for text in answer_of(known, gpus=USUAL_GPUS)["warnings"])


def test_commitments_far_longer_than_the_run_are_hidden_unless_asked_for():
    year = offer(0.5, option="reserved", term_months=12, billing="take_or_pay", payment="no_upfront")
    found = answer([offer(2.0), year])
    assert [row["option"] for row in found["options"]] == ["on_demand"]
    assert any("owes 12 months" in row["reason"] for row in found["offers"])
    assert len(answer([offer(2.0), year], option="reserved,on_demand")["options"]) == 2
    assert len(answer([offer(2.0), year], commitment="used")["options"]) == 2


def test_single_instances_are_no_node():
    """Eight single instances have no link between them; the seller's node has a price of its own."""
    found = answer([offer(0.5, gpus=1, provider="pods"), offer(2.0, provider="pods")], gpus=8)
    assert [row["usd_per_gpu_hour"] for row in found["options"]] == [2.0]
    assert any("single instances" in row["reason"] for row in found["offers"])


def test_a_slice_of_a_machine_that_is_sold_whole_is_no_order():
    whole = replace(node(FAST), instance_type="big-8")
    part = replace(offer(1.0, gpus=1), instance_type="big-8 (1 GPU slice)")
    assert make_market(facts([part, offer(1.0)], [whole, node(FAST)])).supply.is_part.tolist() == [True, False]


def test_the_headline_says_instances_hours_price_and_its_day():
    found = answer([replace(offer(2.0), instance_type="big.8")], gpus=16)
    words = found["headline"]
    assert "on 2 × big.8 (16 × fast) at acme" in words
    assert f"{first(found)['gpu_hours']:,.0f} GPU-hours at 2.00 USD (seen 2026-06-01), 40% MFU" in words


def test_ranking_by_time_does_not_change_what_needs_least():
    market = [offer(2.0), offer(3.0, provider="dear")]
    by_cost, by_time = (kinds(answer(market, optimize=goal))["lowest budget"] for goal in ("cost", "time"))
    assert by_time["budget_usd"] <= by_cost["budget_usd"] * 1.01
