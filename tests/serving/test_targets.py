"""Latency that users accept, machines that hold a replica, and the format that people serve a model in, unless said."""

import math

import pytest

import gpucost
from gpucost.arguments.kinds import LATENCY
from gpucost.ask.inference import request_of
from gpucost.catalog import open_catalog
from gpucost.library.report import asked_anew
from gpucost.market.supply import Key
from gpucost.serving.run import offers_of
from gpucost.workloads.service import NODE_GPUS, Service, layouts

CATALOG = open_catalog()
CHAT = {"prompt_tokens": 1000, "output_tokens": 300, "requests_per_s": 5}


def ask(model, **wanted):
    return gpucost.inference(model, catalog=CATALOG, **wanted)


def targets(**stated):
    request = request_of(CATALOG, model="8b", **stated)
    return request.ttft_ms, request.tpot_ms


def test_where_nobody_says_it_tokens_are_as_fast_as_users_accept():
    assert targets() == (2000.0, 50.0)
    assert targets(tpot="30ms") == (2000.0, 30.0)
    assert targets(tpot="none") == (2000.0, None)
    assert targets(tpot="none", ttft=math.inf) == (None, None)
    assert LATENCY.read("None", "--tpot") == math.inf


@pytest.mark.parametrize(
    "own",
    [
        {"server": "offline"},
        {"slo_tpot": "40ms"},
        {"own_output_tokens_per_s": 900, "replica_gpus": 1, "gpu": "h100-sxm"},
    ],
)
def test_batches_levels_and_measured_speeds_have_no_assumed_target(own):
    assert targets(**own) == (None, None)


@pytest.mark.parametrize("model", ["70b", "kimi-k2"])
def test_no_answer_leads_with_tokens_that_nobody_waits_for(model):
    """Of 5 requests a second of 1,000 and 300 tokens both once led with 118 and 199 ms a token."""
    found = ask(model, **CHAT)
    assert found.best["tpot_ms"] <= 50
    assert found.best["ttft_unloaded_ms"] <= 2000
    assert not found.payload["request"]["tpot_given"]
    assert "--tpot" in found.payload["lead"]


def test_an_assumed_target_that_nothing_keeps_is_lifted_and_a_stated_one_is_kept():
    found = ask("70b", gpu="t4", **CHAT)
    assert found.best["tpot_ms"] > 50
    assert found.payload["request"]["tpot_ms"] is None
    assert found.payload["request"]["ttft_ms"] == 2000
    assert "Nothing keeps 50 ms" in found.payload["lead"]
    with pytest.raises(gpucost.errors.NothingFitsError, match=r"(--tpot|tpot=)"):
        ask("70b", gpu="t4", tpot="50ms", **CHAT)
    with pytest.raises(gpucost.errors.NothingFitsError, match="too slow"):
        gpucost.fit("70b", gpu="t4", serving=True, tpot="50ms", catalog=CATALOG)
    assert gpucost.fit("70b", gpu="t4", serving=True, catalog=CATALOG).payload["options"]


def test_asked_anew_a_service_without_limits_has_none():
    free = ask("8b", tpot="none").payload
    assert asked_anew(free)["serving"][0]["tpot"] == "none"
    assumed = asked_anew(ask("8b").payload)["serving"][0]
    assert not {"tpot", "ttft"} & set(assumed)
    before = {**free, "request": {key: value for key, value in free["request"].items() if not key.endswith("_given")}}
    assert asked_anew(before)["serving"][0]["tpot"] == "none"


def test_a_machine_below_eight_accelerators_holds_a_replica_whole():
    priced = offers_of(request_of(CATALOG, model="405b", tpot="none", ttft="none"), CATALOG).priced
    for plan in set(priced.pairs.plan.tolist()):
        node = priced.plans.deployments[plan]
        domain = max(node.system.gpus, node.system.scaleup_gpus)
        assert node.gpus <= domain or domain >= NODE_GPUS, node


def test_a_model_is_served_in_the_format_that_people_run_on_chips_that_compute_in_it():
    model = CATALOG.architecture("llama-3.3-70b")
    service = Service(prompt_tokens=1000, output_tokens=300)
    assert service.written_in(model, CATALOG.accelerator("h100-sxm")) == "fp8"
    assert service.written_in(model, CATALOG.accelerator("a100-sxm")) == "bf16"
    assert service.written_in(CATALOG.architecture("gpt-oss-120b"), CATALOG.accelerator("h100-sxm")) == "mxfp4"
    assert service.written_in(CATALOG.architecture("8b"), CATALOG.accelerator("h100-sxm")) == "bf16"
    found = ask("llama-3.3-70b", gpu="h100-sxm").payload
    assert found["options"][0]["precision"] == "fp8"
    told = next(one.source_id for one in model.served_as)
    assert told in found["said"][0]
    assert told in found["sources"]


def test_wide_expert_parallelism_is_tried_as_it_is_run():
    key = Key(CATALOG.accelerator("h100-sxm"), CATALOG.default_system("h100-sxm5-80gb"))
    tried = layouts(CATALOG.architecture("deepseek-v3"), key, 1024)
    assert (1, 72, 1) in tried
    assert (1, 144, 1) in tried


def test_every_configuration_is_one_that_the_layouts_hold():
    for row in CATALOG.rows("serving_configurations"):
        key = Key(CATALOG.accelerator(row["accelerator_id"]), CATALOG.default_system(row["accelerator_id"]))
        degrees = row["tensor"], row["data"], row["pipeline"]
        assert degrees in layouts(CATALOG.architecture(row["model_id"]), key, 1024), row


def test_picks_name_the_best_of_each_kind_over_all_layouts():
    found = ask("70b", top=0, **CHAT).payload
    picks = {row["kind"]: row for row in found["highlights"]}
    assert picks["lowest budget"]["budget_usd"] == found["options"][0]["budget_usd"]
    least = picks["lowest budget"]["budget_usd_per_mtok"]
    fastest = picks.get("fastest") or picks["lowest budget"]
    assert fastest["budget_usd_per_mtok"] <= 2 * least
    soon = [row for row in found["options"] if row["budget_usd_per_mtok"] <= 2 * least]
    sure = [row["tpot_ms"] for row in soon if row["chance_available_fraction"] >= 0.8]
    assert fastest["tpot_ms"] <= min(sure) * (1 + 1e-9)


def test_a_budget_limits_what_is_ranked():
    found = ask("8b", requests_per_s=20, top=0).payload["options"]
    middle = sorted(row["budget_usd"] for row in found)[len(found) // 2]
    kept = ask("8b", requests_per_s=20, top=0, budget=middle).payload["options"]
    assert max(row["budget_usd"] for row in kept) <= middle
    assert kept[0]["fallback_usd_per_mtok"] == found[0]["fallback_usd_per_mtok"]
    assert any(row["usd_per_month"] <= middle < row["budget_usd"] for row in found)
