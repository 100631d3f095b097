"""Answers that two commands give about one deployment, and answers that people outside have for common questions."""

import pytest

import gpucost


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog()


def checks_of(**claim):
    answer = gpucost.audit(**claim)
    return answer, {row["name"]: row for row in answer.payload["checks"]}


@pytest.mark.parametrize(("model", "gpus"), [("llama-2-13b", 3), ("llama-3.1-405b", 96), ("llama-3.1-8b", 3)])
def test_what_fit_fits_on_a_count_that_is_no_power_of_two_can_be_timed_and_claimed(catalog, model, gpus):
    fits = gpucost.fit(model, "h100-sxm", gpus=gpus, catalog=catalog).payload["fits"]
    timed = gpucost.throughput(model, "h100-sxm", gpus, catalog=catalog).payload
    _, checks = checks_of(model=model, gpu="h100-sxm", gpus=gpus, fits="training", catalog=catalog)
    assert fits
    assert timed["tokens_per_s_per_gpu"] > 0
    assert checks["fits"]["verdict"] == "possible"


def test_a_family_is_judged_by_the_variant_that_trains_fastest_not_by_its_name(catalog):
    # the A100 of 40 GB has one peak and one memory as PCIe and as SXM; the modules have the faster links
    days = gpucost.throughput("8b", "a100-sxm4-40gb", 8, catalog=catalog).payload["tokens_per_s"]
    answer, checks = checks_of(model="8b", tokens="100b", gpu="a100-40gb", gpus=8, days=60, catalog=catalog)
    assert "judged as a100-sxm4-40gb" in " ".join(answer.payload["notes"])
    end_to_end = checks["duration"]["typical"] * 86_400 * days / 100e9
    assert 1.1 < end_to_end < 1.3  # the steps, and the usual evaluation beside them


def test_a_speed_without_a_batch_is_judged_by_the_best_one_and_the_answer_says_which_it_needs(catalog):
    # 16.06 GB of weights at 3,350 GB/s: about 209 tokens a second for one sequence
    answer, checks = checks_of(model="8b", gpu="h100-sxm", gpus=1, tokens_per_s=5000, catalog=catalog)
    assert answer.verdict == "possible"
    assert "at most 209" in checks["decode speed"]["explanation"]
    alone, _ = checks_of(model="8b", gpu="h100-sxm", gpus=1, tokens_per_s=5000, batch=1, catalog=catalog)
    assert alone.verdict == "impossible"
    beyond, _ = checks_of(model="8b", gpu="h100-sxm", gpus=1, tokens_per_s=70_000, catalog=catalog)
    assert beyond.verdict == "impossible"  # 989 TFLOP/s ÷ 16.06 GFLOP a token: about 61,600


@pytest.mark.parametrize(
    ("model", "gpu"), [("llama-2-13b", "h100-sxm"), ("llama-3.1-70b", "h100-sxm"), ("llama-3.1-405b", "h200-sxm")]
)
def test_the_fewest_that_fit_fit_and_one_unit_less_does_not(catalog, model, gpu):
    fewest = gpucost.fit(model, gpu, catalog=catalog).payload["gpus"]
    unit = 1 if fewest <= 8 else 8  # beyond a node whole nodes are counted
    assert gpucost.fit(model, gpu, gpus=fewest, catalog=catalog).payload["fits"]
    assert not gpucost.fit(model, gpu, gpus=fewest - unit, catalog=catalog).payload["fits"]


def test_methods_side_by_side_recompute_alike_so_that_smaller_weights_need_less(catalog):
    sizes = gpucost.fit("llama-2-13b", "h100-sxm", catalog=catalog).payload["sizes"]
    rows = [row for row in sizes if row["qlora_gpus"] == row["lora_gpus"]]
    assert len(rows) > 2
    assert all(row["qlora_gb"] < row["lora_gb"] for row in rows)


def test_a_choice_for_serving_counts_what_inference_counts(catalog):
    rows = gpucost.choose("8b", purpose="serving", tokens="50b", catalog=catalog).payload["rows"]
    row = next(row for row in rows if row["gpu"] == "rtx-4090")
    served = gpucost.inference("8b", tokens_per_month="50b", gpu="rtx-4090", catalog=catalog).payload["options"][0]
    assert row["gpus"] == served["gpus"] < 20
    assert row["rent_usd"] == pytest.approx(12 * served["usd_per_month"])
    pooled = gpucost.choose("8b", purpose="serving", tokens="50b", pool={"rtx-4090": 20}, catalog=catalog).payload
    assert pooled["assigned"][0]["provider"] == "own"


def test_what_is_for_rent_alone_has_no_price_to_buy_and_modules_come_in_whole_servers(catalog):
    rows = gpucost.choose("70b", purpose="training", catalog=catalog).payload["rows"]
    bought = {row["gpu"]: row["buy_usd"] for row in rows}
    assert all(price is None for gpu, price in bought.items() if gpu.startswith(("tpu", "trainium", "inferentia")))
    modules = [row for row in rows if "-sxm" in row["gpu"] and row["buy_usd"]]
    assert modules
    assert all(row["breakeven_months"] > 1 for row in modules)  # a module of 100 USD is no server
