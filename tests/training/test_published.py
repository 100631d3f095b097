"""Estimates of published runs, from model and tokens alone, and the page that shows them."""

import pytest

import gpucost
from benchmarks.published_runs import PAGE, page
from gpucost.ask.published import compare_runs, validate_runs

# Shown as findings: 14 to 16 % of the peak, which no physics explains; hand-written kernels.
OUTLIERS = {"llama-3-8b", "llama-3.1-8b", "gpt-2-124m-llm.c"}
# What this is off by is not explained.
UNEXPLAINED = {"llama-4-scout"}
NAMED = {
    "opt-175b", "bloom-176b", "gpt-neox-20b", "llama-1-65b", "falcon-180b", "phi-4", "llama-2-70b", "olmo-3-7b",
    "palm-540b", "mpt-7b",
}  # fmt: skip
STEADY = {"deepseek-v3", "tinyllama-300b", "opt-175b", "pythia-12b"}  # hours of steps alone


@pytest.fixture(scope="module")
def runs():
    return {row["id"]: row for row in compare_runs(gpucost.open_catalog())}


def test_published_runs_lie_inside_their_ranges(runs):
    outside = {name for name, row in runs.items() if not row["inside"]}
    assert outside == OUTLIERS | UNEXPLAINED
    assert len(runs) == 31, "27 of 31 lie inside"
    assert set(runs) >= NAMED
    for name in NAMED:
        assert 0.7 < runs[name]["estimated_ratio"] < 1.4, name
    assert {
        "llama-2-7b",
        "llama-2-70b",
        "llama-3-70b",
        "llama-3.1-405b",
        "deepseek-v3",
        "olmo-3-7b",
        "tinyllama-3t",
        "gpt-2-124m",
    } <= set(runs)


def test_runs_of_a_file_are_held_against_estimates_as_other_kinds_are(tmp_path):
    header = (
        "id,model,params_b,tokens,sequence_tokens,gpu,gpus,precision,software,software_year,published_gpu_hours,counts"
    )
    rows = ["a,Falcon-7B,7,1500e9,2048,A100-40GB,384,bf16,in-house,2023.2,300000,run", "b,llama-2-7b,,,,A100,,,,,1,run"]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join([header, *rows]) + "\n", "utf-8")
    report = validate_runs(gpucost.open_catalog(), str(path))
    assert [item["id"] for item in report["items"]] == ["a"]
    assert report["items"][0]["low"] < report["items"][0]["predicted"] < report["items"][0]["high"]
    assert [row["id"] for row in report["skipped"]] == ["b"]
    assert "tokens" in report["skipped"][0]["reason"]


def test_the_published_layout_of_pythia_explains_a_third_of_what_it_is_off():
    asked = {"model": "pythia-12b", "gpu": "a100-sxm4-40gb", "gpus": 256, "software": "deepspeed", "precision": "fp16"}
    found = gpucost.throughput(
        **asked, software_year=2022.8, tensor=4, sharding=1, micro_batch=8, global_batch=1024, sequence=2048,
        recompute="full",
    )  # fmt: skip
    published = 299.9e9 / 72_300 / 3600  # tokens per second on each
    assert 1.3 < found.tokens_per_s_per_gpu / published < 1.5


def test_the_overhead_over_the_steps_is_stated_and_moderate(runs):
    for name, row in runs.items():
        assert (0.20 <= row["overhead_fraction"] < 0.45) == (name not in STEADY), name


def test_an_8b_run_on_8_a100_takes_45_to_75_days():
    best = gpucost.estimate(model="llama-3-8b", tokens="100b", gpu="a100-80gb-sxm", gpus=8).best
    assert 45 <= best["days"] <= 75


def test_the_page_is_current(runs):
    assert PAGE.read_text("utf-8") == page(list(runs.values())), "run python -m benchmarks.published_runs"
