"""Data that feed a run: what is needed, who delivers it, what the run waits for and what would end it."""

import pytest

import gpucost
from gpucost.ask.estimate import rerun
from gpucost.errors import NothingFitsError, UsageError

CLUSTER = {"gpu": "h100-sxm", "gpus": 64, "top": 1}


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog()


def run(catalog, **data):
    return gpucost.estimate("8b", 1e11, **CLUSTER, **data, catalog=catalog, with_facts=False).payload


def timed(catalog, **data):
    return gpucost.throughput("8b", "h100-sxm", 8, tokens_per_s_per_gpu=10_000, **data, catalog=catalog).payload


def test_storage_that_delivers_half_doubles_the_step(catalog):
    # 8 × 10,000 tokens/s × 1,000 bytes = 0.08 GB/s; storage gives 0.04
    free, fed = timed(catalog), timed(catalog, dataset="1000/token", storage_bandwidth="40MB/s")
    loading = fed["loading"]
    assert loading["needed_gb_per_s"] == pytest.approx(0.08)
    assert (loading["stall_fraction"], loading["bottleneck"]) == (pytest.approx(0.5), "storage")
    assert fed["step_s"] == pytest.approx(2 * free["step_s"])
    assert fed["tokens_per_s_per_gpu"] == pytest.approx(5_000)
    assert fed["tokens_per_s_per_gpu_low"] < 5_000 < fed["tokens_per_s_per_gpu_high"] < 5_000 * 1.2
    assert sum(part["time_s"] for part in fed["parts"]) == pytest.approx(fed["step_s"])
    assert sum(part["share_fraction"] for part in fed["parts"]) == pytest.approx(1)
    assert "80 MB/s" in fed["lead"]


def test_workers_are_counted_on_every_accelerator_and_by_samples(catalog):
    # a sample of 8,192 tokens: 80,000 ÷ 8,192 = 9.77 samples/s; 8 GPUs × 2 workers × 0.5 give 8; 3 on each give 12
    fed = timed(catalog, dataset="1mb/sample", loader_workers=2, decode_rate="0.5 samples/s", sequence=8192)["loading"]
    assert fed["stall_fraction"] == pytest.approx(1 - 8 / 9.765625)
    assert (fed["bottleneck"], fed["needed_loader_workers"]) == ("workers", 3)
    assert "3 workers" in fed["said"]
    large = timed(catalog, dataset="150mb/sample", storage_bandwidth=9, sequence=8192)["loading"]
    assert "18,311 bytes" in large["said"]
    more = timed(catalog, dataset="1mb/sample", loader_workers=3, decode_rate="0.5 samples/s", sequence=8192)["loading"]
    assert (more["stall_fraction"], more["bottleneck"]) == (0, None)


def test_what_is_said_to_end_the_stall_ends_it(catalog):
    asked = {"dataset": "3333/token", "loader_workers": 1, "decode_rate": 7}
    fed = timed(catalog, **asked, storage_bandwidth=0.05)["loading"]
    assert "267 MB/s of storage and 5 workers" in fed["said"]  # 266.64; 266.64 ÷ 56 = 4.8
    cured = timed(catalog, **{**asked, "loader_workers": 5}, storage_bandwidth="267MB/s")["loading"]
    assert cured["stall_fraction"] == 0


def test_text_hardly_stalls_and_it_is_said(catalog):
    fed = timed(catalog, storage_bandwidth="1GB/s")
    assert fed["loading"]["needed_gb_per_s"] == pytest.approx(8 * 10_000 * 4 / 1e9)  # a vocabulary beyond 65,536
    assert fed["step_s"] == timed(catalog)["step_s"]
    assert "token ids of 4 bytes, as no --dataset is given" in fed["lead"]
    assert "no stall" in fed["lead"]


def test_a_stalled_run_takes_as_long_as_its_data(catalog):
    # 100b tokens of 400 TB: 4,000 bytes each; 1 GB/s feeds 250,000 tokens/s over 64 accelerators
    free, fed = run(catalog), run(catalog, dataset="0.4PB", storage_bandwidth=1)
    best, loading = fed["options"][0], fed["loading"]
    assert best["tokens_per_s_per_gpu"] == pytest.approx(250_000 / 64)
    assert best["days"] > free["options"][0]["days"]
    assert best["mfu_fraction"] < free["options"][0]["mfu_fraction"]
    assert 1 - loading["stall_fraction"] == pytest.approx(1 / loading["needed_gb_per_s"])
    assert loading["said"] in fed["lead"]
    assert {row["name"] for row in fed["drivers"]} >= {"steps: loading"}
    assert best["factors"]["dataset_gb"] == pytest.approx(400_000)


def test_enough_data_change_nothing(catalog):
    free, fed = run(catalog), run(catalog, storage_bandwidth="10GB/s", loader_workers=4, decode_rate="50MB/s")
    assert fed["options"] == free["options"]
    assert fed["loading"]["stall_fraction"] == 0
    assert "loading" not in free


@pytest.mark.parametrize("days", [5.8, 6.0])
def test_more_accelerators_do_not_make_storage_faster(catalog, days):
    # 1 GB/s at 4,000 bytes: 4.63 days of steps at any size, so that a deadline below them is met by none
    where = {"gpu": "h100-sxm", "provider": "crusoe", "option": "on_demand", "dataset": "4000/token",
             "storage_bandwidth": 1, "catalog": catalog, "with_facts": False}  # fmt: skip
    with pytest.raises(NothingFitsError, match="4 days"):
        gpucost.estimate("8b", 1e11, deadline="4d", **where)
    chosen = gpucost.estimate("8b", 1e11, deadline=f"{days}d", **where).best
    assert chosen["days"] <= days
    for gpus in range(8, chosen["gpus"], 8):
        assert gpucost.estimate("8b", 1e11, gpus=gpus, **where).best["days"] > days, gpus


def test_a_sweep_over_a_whole_dataset_answers_as_an_estimate(catalog):
    asked = {"gpu": "h100-sxm", "gpus": 64, "dataset": "400TB", "storage_bandwidth": 1}
    found = gpucost.sweep("estimate", model="8b", tokens=[1e11, 2e11], **asked).to_frame()
    assert found["days"][0] == pytest.approx(run(catalog, dataset="400TB", storage_bandwidth=1)["options"][0]["days"])


def test_a_saved_answer_reruns_to_the_same(catalog):
    from gpucost.catalog.calibrations import training_calibration

    data = {"dataset": "400TB", "storage_bandwidth": 1}
    saved = gpucost.estimate("8b", 1e11, **CLUSTER, **data, catalog=catalog).payload
    again = rerun(saved, training_calibration(catalog))
    assert again["options"][0]["days"] == saved["options"][0]["days"]
    assert (again["loading"], again["lead"]) == (saved["loading"], saved["lead"])


def test_a_scenario_takes_them():
    from gpucost.library.scenario import make_scenario

    part = {"name": "run", "model": "8b", "tokens": "100b", "dataset": "2TB", "storage_bandwidth": "2GB/s"}
    assert make_scenario({"training": [part]}).parts[0].arguments["storage_bandwidth"] == "2GB/s"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"loader_workers": 4}, "go together"),
        ({"decode_rate": "50MB/s"}, "go together"),
        ({"dataset": "2TB"}, "tokens"),
        ({"dataset": "2TB/epoch"}, "Write 2TB, 4/token or 150kb/sample"),
        ({"dataset": "0/token"}, "dataset"),
        ({"dataset": "1XB"}, "'1XB'.*GiB"),
        ({"storage_bandwidth": "-1GB/s"}, "Write bytes per second, such as 5GB/s"),
        ({"storage_bandwidth": "fast"}, "Write bytes per second, such as 5GB/s"),
        ({"storage_bandwidth": "5 Gbit/s"}, "'5 Gbit'.* 8 bits"),
        ({"loader_workers": 0, "decode_rate": 50}, "loader"),
    ],
)
def test_unclear_data_are_refused_with_the_reason(catalog, data, words):
    with pytest.raises(UsageError, match=words):
        timed(catalog, **data)


def test_columns_of_layouts_take_no_data(catalog):
    with pytest.raises(UsageError, match="single layout"):
        gpucost.throughput("8b", "h100-sxm", [8, 16], storage_bandwidth=1, catalog=catalog)
