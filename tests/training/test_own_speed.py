"""One's own speed in place of the predicted one: every form, every question, the range, and what is impossible."""

import pytest

import gpucost
from gpucost.ask.estimate import rerun
from gpucost.errors import NothingFitsError, UsageError

H100_TFLOPS = 989.4
CLUSTER = {"gpu": "h100-sxm", "gpus": 64}


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog()


@pytest.fixture(scope="module")
def predicted(catalog):
    return gpucost.estimate("8b", 1e11, **CLUSTER, catalog=catalog).payload


def best(catalog, **own):
    return gpucost.estimate("8b", 1e11, **CLUSTER, **own, catalog=catalog, with_facts=False).payload["options"][0]


def test_three_forms_of_one_speed_give_one_answer(catalog, predicted):
    flop, batch = predicted["workload"]["model_flop_per_token"], predicted["workload"]["global_batch"]
    speed = 0.35 * H100_TFLOPS * 1e12 / flop
    seconds = batch * 8192 / (speed * 64)
    forms = ({"mfu": "35%"}, {"tokens_per_s_per_gpu": speed}, {"step_time": f"{seconds * 1000}ms"})
    for option in (best(catalog, **own) for own in forms):
        assert option["tokens_per_s_per_gpu"] == pytest.approx(speed)
        assert option["mfu_fraction"] == pytest.approx(0.35)
        assert sum(option["components"].values()) == pytest.approx(seconds)
        assert option["factors"]["mfu_fraction"] == pytest.approx(0.35)


def test_the_range_of_an_own_speed_is_narrow(catalog, predicted):
    option = best(catalog, mfu=0.35)
    assert 1.0 < option["tokens_per_s_per_gpu_high"] / option["tokens_per_s_per_gpu_low"] <= 1.25
    guessed = predicted["options"][0]
    assert option["days_high"] / option["days_low"] < guessed["days_high"] / guessed["days_low"]


@pytest.mark.parametrize(("method", "mfu"), [("full", 0.97), ("full", 1.0), ("lora", 0.97)])
def test_the_range_of_an_own_speed_ends_at_the_peak(catalog, method, mfu):
    option = best(catalog, mfu=mfu, method=method)
    timed = gpucost.throughput("8b", "h100-sxm", 64, mfu=mfu, method=method, catalog=catalog).payload
    for found in (option, timed):
        ratio = found["tokens_per_s_per_gpu_high"] / found["tokens_per_s_per_gpu"]
        assert ratio * found["mfu_fraction"] == pytest.approx(1.0)


def test_mfu_is_said_with_and_without_the_hours_outside_training_steps(catalog):
    found = gpucost.estimate("8b", 1e11, **CLUSTER, mfu="35%", catalog=catalog).payload
    option = found["options"][0]
    work = found["workload"]["model_flop"]
    paid = work / (option["gpu_hours"] * 3600 * H100_TFLOPS * 1e12)
    assert option["mfu_paid_fraction"] == pytest.approx(paid)
    assert paid < 0.35 / 1.2  # 20 % outside training steps, interruptions and start-up
    assert f"35.0% MFU in training steps, {paid:.1%}" in found["lead"]


def test_half_the_speed_takes_twice_the_hours(catalog):
    fast, slow = (best(catalog, mfu=mfu, option="on_demand", provider="crusoe") for mfu in (0.4, 0.2))
    assert slow["factors"]["tokens_per_s_per_gpu"] == pytest.approx(fast["factors"]["tokens_per_s_per_gpu"] / 2)
    compute = [next(line["cost_usd"] for line in o["lines"] if line["name"] == "compute") for o in (fast, slow)]
    assert compute[1] == pytest.approx(2 * compute[0], rel=1e-6)


def test_estimate_throughput_and_tco_take_an_own_speed_alike(catalog):
    option = best(catalog, tokens_per_s_per_gpu=8000)
    timed = gpucost.throughput("8b", "h100-sxm", 64, tokens_per_s_per_gpu=8000, catalog=catalog).payload
    assert timed["mfu_fraction"] == pytest.approx(option["mfu_fraction"])
    assert timed["step_s"] == pytest.approx(sum(part["time_s"] for part in timed["parts"]))
    for key in ("tokens_per_s_per_gpu_low", "tokens_per_s_per_gpu_high", "layout"):
        assert timed[key] == option[key]
    owned = gpucost.tco("h100-sxm", 64, model="8b", tokens=1e12, tokens_per_s_per_gpu=8000, catalog=catalog)
    row = next(row for row in owned.assumptions if row["name"] == "tokens_per_s_per_gpu")
    assert (row["value"], row["low"]) == (8000, pytest.approx(option["tokens_per_s_per_gpu_low"]))
    by_mfu = gpucost.tco("h100-sxm", 64, model="8b", tokens=1e12, mfu=option["mfu_fraction"], catalog=catalog)
    row = next(row for row in by_mfu.assumptions if row["name"] == "tokens_per_s_per_gpu")
    assert row["value"] == pytest.approx(8000)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"mfu": 1.2}, "120% of the dense bf16 peak. Nothing can exceed the peak"),
        ({"mfu": "0%"}, "mfu"),
        ({"tokens_per_s_per_gpu": 90_000}, "90,000 tokens/s on each h100-sxm5-80gb need 468% of the dense bf16 peak"),
        ({"step_time": 1e-3}, "the peak"),
        ({"step_time": "-3s"}, "not a positive time"),
        ({"step_time": "soon"}, "Write seconds"),
        ({"mfu": 0.3, "step_time": 3}, "given twice"),
        ({"step_time": 3, "gpus": None}, "step_time= needs gpus="),
        ({"tokens_per_s_per_gpu": 9000, "gpu": "h100"}, "Name one by gpu=, or give mfu="),
    ],
)
def test_an_impossible_or_unclear_speed_is_refused_with_the_reason(catalog, own, words):
    with pytest.raises(UsageError, match=words.replace("(", r"\(")):
        gpucost.estimate("8b", 1e11, **{**CLUSTER, **own}, catalog=catalog)


def test_the_work_of_adapters_counts_no_gradients_of_frozen_weights(catalog):
    """4 of 6 FLOP per parameter and token, and all of attention's: of an 8B model at 8,192 tokens about 0.7 of all."""
    all_weights, adapters = (
        gpucost.throughput("8b", "h100-sxm", 8, method=method, mfu=0.5, catalog=catalog).payload
        for method in ("full", "lora")
    )
    work = [found["model_flop_per_token_flop"] for found in (all_weights, adapters)]
    assert 0.66 < work[1] / work[0] < 0.75
    speed = [found["tokens_per_s_per_gpu"] for found in (all_weights, adapters)]
    assert speed[1] / speed[0] == pytest.approx(work[0] / work[1])
    with pytest.raises(UsageError, match="exceed"):
        gpucost.throughput("8b", "h100-sxm", 8, method="lora", mfu=1.01, catalog=catalog)


def test_columns_of_layouts_take_no_own_speed(catalog):
    with pytest.raises(UsageError, match="single layout"):
        gpucost.throughput("8b", "h100-sxm", [8, 16], mfu=0.3, catalog=catalog)


def test_a_saved_answer_with_an_own_speed_reruns_to_the_same(catalog):
    from gpucost.catalog.calibrations import training_calibration

    saved = gpucost.estimate("8b", 1e11, **CLUSTER, step_time=9, catalog=catalog).payload
    again = rerun(saved, training_calibration(catalog))
    assert again["options"][0]["cost_usd"] == saved["options"][0]["cost_usd"]
    assert again["lead"] == saved["lead"]


def test_a_scenario_takes_an_own_speed(catalog):
    from gpucost.library.scenario import make_scenario

    part = {"name": "run", "model": "8b", "tokens": "100b", "mfu": "35%"}
    assert make_scenario({"training": [part]}).parts[0].arguments["mfu"] == "35%"
    with pytest.raises(UsageError, match="given twice"):
        make_scenario({"training": [{**part, "step_time": 3}]})


def test_speeds_of_training_mean_nothing_where_nothing_is_trained(catalog):
    with pytest.raises(UsageError, match=r"(--model|model=)"):
        gpucost.tco("h100-sxm", 64, mfu=0.3, catalog=catalog)
    with pytest.raises(UsageError, match=r"(--mfu|mfu=): only without (--tokens-per-month|tokens_per_month=)"):
        gpucost.tco("h100-sxm", 64, model="8b", tokens_per_month="5b", mfu=0.3, catalog=catalog)


# Serving -------------------------------------------------------------------------------------------------------------

REPLICA = {"gpu": "h100-sxm", "replica_gpus": 4}


def served(catalog, **own):
    return gpucost.inference("70b", **{**REPLICA, **own}, catalog=catalog).payload


def test_a_measured_replica_sets_the_price_of_tokens(catalog):
    found = served(catalog, own_output_tokens_per_s=2400)
    option = found["options"][0]
    assert option["layout"]["gpus"] == 4
    assert option["output_tokens_per_s"] == 2400
    hourly = option["usd_per_gpu_hour"] * 4
    assert option["usd_per_mtok"] == pytest.approx(hourly / (2400 * 3600 * 5) * 1e6, rel=1e-6)  # 1,024 and 256 tokens
    assert option["factors"]["speed_high_ratio"] / option["factors"]["speed_low_ratio"] <= 1.25
    assert found["tradeoff"] == []
    assert "own speed" in found["said"][0]


def test_time_per_token_and_requests_at_once_are_a_speed(catalog):
    option = served(catalog, own_tpot="25ms", own_concurrency=64)["options"][0]
    assert option["output_tokens_per_s"] == pytest.approx(64 / 0.025)
    assert (option["tpot_ms"], option["batch"]) == (pytest.approx(25), 64)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"own_output_tokens_per_s": 1e6}, "compute roof.*exceed"),
        ({"own_tpot": "1ms", "own_concurrency": 8}, "bandwidth roof.*exceed"),
        ({"own_tpot": "25ms"}, "go together"),
        ({"own_output_tokens_per_s": 2400, "replica_gpus": None}, "needs replica_gpus="),
        ({"own_output_tokens_per_s": 2400, "gpu": None}, "Name one by gpu="),
        ({"own_output_tokens_per_s": 2400, "own_tpot": "25ms", "own_concurrency": 8}, "given twice"),
    ],
)
def test_an_impossible_or_unclear_serving_speed_is_refused(catalog, own, words):
    with pytest.raises(UsageError, match=words):
        served(catalog, **own)


def test_a_replica_that_no_layout_has_is_named(catalog):
    with pytest.raises(NothingFitsError, match="has 5 "):
        served(catalog, replica_gpus=5)


def test_a_limit_of_time_per_token_holds_for_an_own_speed_too(catalog):
    with pytest.raises(NothingFitsError, match=r"(--tpot|tpot=)"):
        served(catalog, own_tpot="25ms", own_concurrency=64, tpot="20ms")
