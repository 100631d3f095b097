"""Properties of the engine over a small market with a physics of round numbers."""

import json
import random

import numpy as np
import pytest
from msgspec.structs import replace

from gpucost.errors import NothingFitsError, OverBudgetError, PriceMissingError
from gpucost.training.cases import recompute
from tests.training.market import BUCKET, FAST, SLOW, answer, node, offer

pytestmark = pytest.mark.usefixtures("round_speeds")

# 100e9 tokens at 10,000 tokens/s on 8 accelerators.
STEP_HOURS = 100e9 / (10_000 * 8) / 3600


def cents(value):
    return round(value * 100)


def test_hours_and_days_follow_from_tokens_and_speed():
    best = answer([offer(2.0)], gpus=8)["options"][0]
    compute = best["lines"][0]
    assert compute["name"] == "compute"
    assert compute["quantity"] == pytest.approx(STEP_HOURS * 8)
    stretch = best["stretch_calendar_ratio"]
    assert best["days"] == pytest.approx((STEP_HOURS * 1.2 * stretch + 0.5) / 24)
    assert best["cost_low_usd"] <= best["cost_usd"] <= best["cost_high_usd"]
    assert best["days_low"] <= best["days"] <= best["days_high"]


def test_lines_add_up_to_the_cost_to_the_cent():
    offers = [
        offer(1.37),
        offer(2.41, "slow"),
        offer(0.8, option="spot"),
        offer(1.1, option="reserved", term_months=12, billing="take_or_pay"),
    ]
    for option in answer(offers, top=0)["options"]:
        assert sum(cents(line["cost_usd"]) for line in option["lines"]) == cents(option["cost_usd"])
        for line in option["lines"]:
            assert abs(line["quantity"] * line["unit_price_usd"] - line["cost_usd"]) <= 0.005 + 1e-6


def test_accelerator_hours_are_those_of_the_lines():
    option = answer([offer(2.0)])["options"][0]
    hours = [line["quantity"] for line in option["lines"] if line["unit"] == "GPU-hour"]
    assert option["gpu_hours"] == pytest.approx(sum(hours))


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_a_price_times_k_is_a_bill_times_k(factor):
    plain, scaled = (answer([offer(price)], gpus=8)["options"][0] for price in (2.0, 2.0 * factor))
    for before, after in zip(plain["lines"], scaled["lines"], strict=True):
        expected = before["cost_usd"] * (factor if before["unit"] == "GPU-hour" else 1)
        assert after["cost_usd"] == pytest.approx(expected, abs=0.02)
    assert plain["days"] == scaled["days"]


def test_the_order_of_offers_does_not_matter():
    offers = [offer(price, gpu) for price in (1.1, 1.9, 2.5, 3.0) for gpu in ("fast", "slow")]
    first = answer(offers, top=0)
    shuffled = offers.copy()
    random.Random(3).shuffle(shuffled)
    again = answer(shuffled, top=0)
    assert first["options"] == again["options"]


def test_an_offer_does_not_change_another_ones_figures():
    alone = answer([offer(2.0)])["options"][0]
    among = next(
        row
        for row in answer([offer(9.0, "slow"), offer(2.0), offer(3.0)], top=0)["options"]
        if row["offer_id"] == alone["offer_id"]
    )
    for key in ("cost_usd", "days", "tokens_per_s_per_gpu", "cost_low_usd", "kgco2e"):
        assert alone[key] == among[key]


def test_nodes_of_one_speed_keep_their_own_power():
    offers = [offer(2.0), offer(3.0, provider="other")]
    thirsty, frugal = node(FAST), replace(node(FAST), max_power_kw=6.5)
    both = answer(offers, systems=[thirsty, frugal], gpus=8, top=0)["options"]
    alone = answer(offers[1:], systems=[frugal], gpus=8)["options"][0]
    assert both[1]["factors"]["rated_power_w"] == 812.5  # 6.5 kW over 8
    assert both[1]["energy_kwh"] == alone["energy_kwh"] < both[0]["energy_kwh"]


def test_the_smallest_cluster_that_meets_the_deadline_is_taken():
    best = answer([offer(2.0)], deadline="7d")["options"][0]
    assert best["days"] <= 7
    assert best["gpus"] == 24
    smaller = answer([offer(2.0)], gpus=16)["options"][0]
    assert smaller["days"] > 7


def test_a_pinned_cluster_has_no_deadline_unless_one_is_asked_for():
    assert answer([offer(2.0)], gpus=8, tokens="1t")["options"][0]["days"] > 30
    with pytest.raises(NothingFitsError, match=r"(--deadline|deadline=)"):
        answer([offer(2.0)], gpus=8, tokens="1t", deadline="30d")


def test_without_a_deadline_the_cheapest_size_wins():
    found = answer([offer(2.0)], deadline="none")
    assert found["options"][0]["cost_usd"] == pytest.approx(min(row["cost_usd"] for row in found["scaling"]), rel=1e-3)


def test_for_time_the_largest_cluster_within_the_budget_wins():
    everything = answer([offer(2.0)], optimize="time", deadline="none")["options"][0]
    assert everything["days"] < answer([offer(2.0)])["options"][0]["days"]
    tight = answer([offer(2.0)], optimize="time", deadline="none", budget=9000)["options"][0]
    assert tight["budget_usd"] <= 9000
    assert tight["gpus"] < everything["gpus"]


def test_pareto_options_beat_each_other_in_one_thing():
    rows = answer([offer(1.0, "slow"), offer(4.0)], optimize="pareto", top=0)["options"]
    costs, days = [row["cost_usd"] for row in rows], [row["days"] for row in rows]
    assert costs == sorted(costs)
    assert days == sorted(days, reverse=True)


def test_carbon_ranks_by_carbon():
    rows = answer([offer(1.0, region="elsewhere"), offer(3.0)], optimize="carbon", top=0)["options"]
    assert [row["kgco2e"] for row in rows] == sorted(row["kgco2e"] for row in rows)
    assert rows[0]["region"] == "us-east-1"


# Capacity ----------------------------------------------------------------------------------------------------------


def reasons(found):
    return [row["reason"] for row in found["offers"] if row["standing"] == "left out"]


def test_singles_are_no_cluster():
    single = offer(0.5, gpus=1)
    found = answer([single, offer(2.0)], [node(FAST, 1, None), node(FAST)], deadline="7d", top=0)
    assert [row["offer_id"] for row in found["options"]] == [offer(2.0).offer_id]
    assert any("single instances" in reason for reason in reasons(found))


def test_a_single_listing_does_not_grow_to_the_node_that_its_provider_sells():
    systems = [node(FAST, 1, None), node(FAST)]
    best = answer([offer(0.5, gpus=1), offer(2.0)], systems, deadline="20d")["options"][0]
    assert best["offer_id"] == offer(2.0).offer_id


def test_a_single_listing_of_a_provider_without_nodes_stays_single():
    alone = offer(0.5, gpus=1, provider="pods")
    found = answer([alone, offer(2.0)], [node(FAST, 1, None), node(FAST)], top=0)
    assert all(row["provider"] == "acme" for row in found["options"])
    assert any("single listing" in reason for reason in reasons(found))


def test_nodes_without_a_named_network_stay_one_node():
    found = answer([offer(1.0), offer(2.0, provider="wired")], [node(FAST, 8, None), node(FAST)], deadline="7d", top=0)
    assert [row["provider"] for row in found["options"]] == ["wired"]
    assert any("scale-out network" in reason for reason in reasons(found))


def test_an_order_is_never_larger_than_the_provider_takes():
    found = answer([offer(1.0, maximum_units=2), offer(2.0, provider="large")], deadline="7d", top=0)
    assert [row["provider"] for row in found["options"]] == ["large"]
    assert any("largest order" in reason for reason in reasons(found))


def test_a_count_that_is_no_multiple_is_excluded():
    with pytest.raises(NothingFitsError, match="units of 8"):
        answer([offer(2.0)], gpus=12)


# Ways to buy -------------------------------------------------------------------------------------------------------


def test_spot_without_a_measured_rate_competes_by_its_prior():
    found = answer([offer(0.1, option="spot"), offer(5.0)])
    assert [row["option"] for row in found["options"]] == ["spot", "on_demand"]
    assert any("not measured" in note for note in found["options"][0]["notes"])
    assert any("interruption rate" in text for text in found["warnings"])
    measured = answer([offer(0.1, option="spot"), offer(5.0)], spot=[BUCKET])["options"][0]
    wide, narrow = (row["cost_high_usd"] / row["cost_usd"] for row in (found["options"][0], measured))
    assert wide > narrow


def test_ranks_follow_the_heading():
    listed = [offer(0.9, option="spot"), offer(1.0), offer(2.0, "slow"), offer(0.8, option="community", provider="c")]
    for goal, key in (("cost", "budget_usd"), ("time", "days"), ("carbon", "kgco2e"), ("pareto", "budget_usd")):
        rows = answer(listed, optimize=goal, top=0)["options"]
        assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
        assert [row[key] for row in rows] == sorted(row[key] for row in rows), goal


def test_no_row_of_a_pareto_list_is_dominated():
    rows = answer([offer(0.9, option="spot"), offer(1.0), offer(2.0, "slow")], optimize="pareto", top=0)["options"]
    assert len(rows) > 1
    for row in rows:
        beaten = [
            other["rank"] for other in rows
            if other is not row and other["days"] <= row["days"] and other["budget_usd"] <= row["budget_usd"]
        ]  # fmt: skip
        assert not beaten, (row["rank"], beaten)


def test_of_equal_rows_the_newest_observation_is_shown():
    old = offer(2.0, offer_id="a-global", region="", age_days=261)
    new = offer(2.0, offer_id="b-east", age_days=13)
    best = answer([old, new])["options"][0]
    assert (best["age_days"], best["price_stale"]) == (13, False)
    assert [row["age_days"] for row in best["also_in"]] == [261]


def test_spot_with_a_measured_rate_may_be_first():
    best = answer([offer(0.1, option="spot"), offer(5.0)], spot=[BUCKET])["options"][0]
    assert best["option"] == "spot"
    assert best["interruption_rate_measured"]


def test_spot_over_more_nodes_is_interrupted_more_often():
    small, large = (answer([offer(1.0, option="spot")], gpus=count)["options"][0] for count in (8, 64))
    assert large["stretch_paid_ratio"] > small["stretch_paid_ratio"]
    assert small["goodput_fraction"] == pytest.approx(1 / small["stretch_paid_ratio"])
    assert large["stretch_calendar_ratio"] > large["stretch_paid_ratio"]


def committed(price, **more):
    return offer(price, option="reserved", term_months=12, billing="take_or_pay", payment="no_upfront", **more)


def test_a_short_run_pays_for_its_whole_commitment():
    full = answer([committed(1.0)], option="reserved")["options"][0]
    assert full["exposure_usd"] == 8 * 8760 * 1.0
    assert full["cost_usd"] >= full["exposure_usd"]
    assert full["unused_usd"] == pytest.approx(full["exposure_usd"] - full["amortised_usd"])
    used = answer([committed(1.0)], commitment="used", gpus=8)["options"][0]
    assert used["cost_usd"] == pytest.approx(full["cost_usd"] - full["unused_usd"], abs=0.02)


def test_a_capacity_block_is_rounded_up_to_days():
    option = answer([offer(2.0, option="capacity_block")])["options"][0]
    hours = option["gpu_hours"] / 8
    assert hours == pytest.approx(np.ceil(hours / 24) * 24)


def test_a_run_longer_than_the_longest_purchase_is_excluded():
    found = answer([offer(1.0, option="calendar", billing="take_or_pay"), offer(2.0)], gpus=8, tokens="2t", top=0)
    assert [row["option"] for row in found["options"]] == ["on_demand"]
    assert any("longest purchase" in reason for reason in reasons(found))


# Age ---------------------------------------------------------------------------------------------------------------


def test_an_old_price_is_marked():
    fresh, old = (answer([offer(2.0, age_days=days)])["options"][0] for days in (10, 545))
    assert not fresh["price_stale"]
    assert old["price_stale"]
    assert fresh["cost_usd"] == old["cost_usd"]


def test_strict_prices_and_max_age_leave_old_prices_out():
    offers = [offer(1.0, age_days=400), offer(2.0, age_days=20)]
    for wanted in ({"strict_prices": True}, {"max_age": "30d"}):
        found = answer(offers, top=0, **wanted)
        assert [row["usd_per_gpu_hour"] for row in found["options"]] == [2.0]
        assert any("days old" in reason for reason in reasons(found))
    with pytest.raises(PriceMissingError, match=r"(--max-age|max_age=)"):
        answer(offers[:1], strict_prices=True)


def test_over_the_budget_has_its_own_error():
    with pytest.raises(OverBudgetError, match=r"10\.00 USD"):
        answer([offer(2.0)], budget=10)


def test_what_fits_nowhere_says_so():
    with pytest.raises(NothingFitsError, match="fit"):
        answer([offer(2.0, gpus=1)], [node(FAST, 1, None)])


# What follows ------------------------------------------------------------------------------------------------------


def test_more_tokens_never_cost_less():
    costs = [
        answer([offer(2.0)], tokens=tokens, gpus=8)["options"][0]["cost_usd"] for tokens in ("1b", "10b", "50b", "100b")
    ]
    assert costs == sorted(costs)


def test_epochs_multiply_the_work_but_not_the_dataset():
    once, thrice = (answer([offer(2.0)], epochs=epochs, gpus=8)["options"][0] for epochs in (1, 3))
    quantity = {row["offer_id"] + line["name"]: line["quantity"] for row in (once,) for line in row["lines"]}
    again = {row["offer_id"] + line["name"]: line["quantity"] for row in (thrice,) for line in row["lines"]}
    key = once["offer_id"]
    assert again[key + "compute"] == pytest.approx(3 * quantity[key + "compute"])
    months = thrice["days"] / once["days"]
    assert again[key + "dataset storage"] == pytest.approx(months * quantity[key + "dataset storage"])


def test_factors_recompute_the_option():
    for option in answer([offer(2.0), committed(1.0), offer(1.5, option="spot")], top=0)["options"]:
        again = recompute(option["factors"])
        for key in (
            "cost_usd",
            "cost_low_usd",
            "cost_high_usd",
            "days",
            "gpu_hours",
            "energy_kwh",
            "kgco2e",
            "exposure_usd",
            "cash_usd",
        ):
            assert again[key] == pytest.approx(option[key], rel=1e-12), key
        assert [line["cost_usd"] for line in again["lines"]] == [line["cost_usd"] for line in option["lines"]]


def test_twice_the_speed_is_half_the_hours():
    option = answer([offer(2.0)], gpus=8)["options"][0]
    faster = recompute(option["factors"], tokens_per_s_per_gpu=20_000.0)
    assert faster["lines"][0]["quantity"] == pytest.approx(option["lines"][0]["quantity"] / 2)


def test_experiments_are_off_unless_asked_for():
    plain = answer([offer(2.0)], gpus=8)["options"][0]
    assert "experiments" not in [line["name"] for line in plain["lines"]]
    tried = answer([offer(2.0)], gpus=8, experiments="50%")["options"][0]
    line = next(line for line in tried["lines"] if line["name"] == "experiments")
    assert line["quantity"] == pytest.approx(plain["lines"][0]["quantity"] / 2)


def test_the_answer_names_what_people_ask_next():
    found = answer([offer(2.0), offer(1.0, option="spot"), committed(1.0)])
    assert [row["gpus"] for row in found["scaling"]] == sorted(row["gpus"] for row in found["scaling"])
    assert sum(row["gpus"] == found["options"][0]["gpus"] for row in found["scaling"]) == 1
    assert {row["option"] for row in found["alternatives"]} == {"on_demand", "spot"}  # a year for two weeks is hidden
    assert sum(row["share_fraction"] for row in found["drivers"]) == pytest.approx(1, abs=0.05)
    assert found["not_included"]
    assert "30 days (assumed" in found["lead"]


def test_energy_and_carbon_by_hand():
    option = answer([offer(2.0)], gpus=8)["options"][0]
    paid = option["gpu_hours"]
    # 1.25 kW rated per accelerator, 0.75 drawn, PUE 1.3, 0.4 kgCO2e per kWh in the United States.
    assert option["energy_kwh"] == pytest.approx(paid * 1.25 * 0.75 * 1.3, rel=1e-6)
    assert option["kgco2e"] == pytest.approx(option["energy_kwh"] * 0.4)


def test_keys_of_the_answer():
    found = json.loads(
        json.dumps(answer([offer(2.0), offer(1.0, gpus=1, provider="pods")], [node(FAST), node(FAST, 1, None)]))
    )
    assert {"schema_version", "request", "as_of", "catalog_version", "options", "offers", "warnings"} <= set(found)
    wanted = {
        "rank",
        "provider",
        "instance_type",
        "region",
        "option",
        "gpu",
        "gpus",
        "nodes",
        "layout",
        "tokens_per_s_per_gpu",
        "mfu_fraction",
        "days",
        "gpu_hours",
        "cost_usd",
        "cost_low_usd",
        "cost_high_usd",
        "usd_per_mtok",
        "energy_kwh",
        "kgco2e",
        "price_observed_on",
        "source_ids",
        "lines",
        "notes",
    }
    assert wanted <= set(found["options"][0])
    assert {"name", "quantity", "unit", "unit_price_usd", "cost_usd"} <= set(found["options"][0]["lines"][0])
    assert {"provider", "instance_type", "reason"} <= set(found["offers"][-1])


def test_slow_and_fast_meet_at_the_price_of_their_work():
    # At 2.5 times the speed, the fast one is worth 2.5 times the price of the slow one.
    rows = answer([offer(2.0, "slow"), offer(4.9)], [node(SLOW), node(FAST)], top=0)["options"]
    assert rows[0]["gpu"] == "fast"
    rows = answer([offer(2.0, "slow"), offer(5.3)], [node(SLOW), node(FAST)], top=0)["options"]
    assert rows[0]["gpu"] == "slow"
