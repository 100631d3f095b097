"""Results of load tests as their writers write them: read by content, predicted, and laid over the calibration.

The files in results/ have the form that the writers' sources define (read on 2026-11-28): vLLM's
vllm/benchmarks/serve.py @009e6d4a, SGLang's python/sglang/bench_serving.py @0033168f, AIPerf 0.13.0
common/models/export_models.py, GenAI-Perf 0.0.16 export_data/json_exporter.py, guidellm 0.8.1
benchmark/schemas/report.py, inference-perf's reportgen/base.py @010d12fb. Their figures are made up.
"""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpucost.calibration import load
from gpucost.calibration.load_results import TestedServer, read_results, serving_row, writers
from gpucost.catalog import open_catalog
from gpucost.cli import cli
from gpucost.errors import DataError
from gpucost.schemas.dictionary import TABLES

FOLDER = Path(__file__).parent / "results"
H100 = TestedServer(model="llama-3.1-8b", gpu="h100-sxm")
READ = {  # by file and test: what a person reads in it
    ("vllm.json", 0): {
        "request_rate": 8,
        "max_concurrency": None,
        "requests": 498,
        "failed": 2,
        "mean_input_tokens": 1024,
        "mean_output_tokens": 256,
        "output_tokens_per_s": 1920,
        "ttft_p50_ms": 51.4,
        "ttft_p99_ms": 131.9,
        "tpot_mean_ms": 11.4,
        "tpot_p99_ms": 15.9,
        "peak_concurrency": 61,
        "as_of": "2026-11-04",
        "engine": "vllm",
        "arrival": "poisson",
    },
    ("vllm_appended.json", 1): {
        "request_rate": None,
        "max_concurrency": 32,
        "input_std_tokens": 24,
        "output_std_tokens": 56,
        "e2e_p50_s": 2.98,
        "e2e_p99_s": 3.544,
    },
    ("sglang.jsonl", 0): {
        "request_rate": None,
        "max_concurrency": 64,
        "mean_input_tokens": 768,
        "mean_output_tokens": 384,
        "input_std_tokens": pytest.approx(147.8, rel=1e-3),
        "total_tokens_per_s": None,
        "e2e_p50_s": 14.4,
        "ttft_p99_ms": 810,
        "engine": "sglang",
    },
    ("sglang.jsonl", 1): {"request_rate": 2, "max_concurrency": None, "arrival": "poisson"},
    ("profile_export_aiperf.json", 0): {
        "request_rate": 10,
        "arrival": "constant",
        "requests": 1000,
        "failed": 3,
        "mean_input_tokens": 1024,
        "output_std_tokens": 25.6,
        "ttft_mean_ms": 74,
        "ttft_p95_ms": pytest.approx(162.8),
        "tpot_p50_ms": 11.956,
        "e2e_p50_s": pytest.approx(3.1164),
        "as_of": "2026-10-20",
        "engine": "",
    },
    ("profile_export_genai_perf.json", 0): {"request_rate": None, "max_concurrency": 16, "tpot_mean_ms": 12.2},
    ("benchmarks.json", 0): {"request_rate": None, "max_concurrency": 1, "tpot_mean_ms": 8.1},
    ("benchmarks.json", 1): {"request_rate": None, "max_concurrency": 16, "requests": 300},
    ("benchmarks.json", 2): {
        "request_rate": 6,
        "max_concurrency": 512,
        "arrival": "poisson",
        "e2e_p50_s": 3.104,
        "ttft_p90_ms": 133,
        "output_std_tokens": 0,
        "as_of": "2026-10-14",
    },
    ("stage_0_lifecycle_metrics.json", 0): {
        "request_rate": 5,
        "requests": 597,
        "mean_output_tokens": 256,
        "ttft_p50_ms": pytest.approx(60.1),
        "tpot_p99_ms": pytest.approx(17.3),
        "e2e_mean_s": 2.9,
        "failed": 3,
    },
}
MODEL = "meta-llama/Llama-3.1-8B-Instruct"


def run(*words):
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)


@pytest.mark.parametrize(
    ("place", "figures"), READ.items(), ids=lambda one: str(one[:1] if isinstance(one, tuple) else "")
)
def test_a_result_says_what_stands_in_it(place, figures):
    name, number = place
    row = read_results(str(FOLDER / name), H100)[number]
    assert {figure: row[figure] for figure in figures} == figures
    assert (row["model"], row["gpu"], row["n_gpus"]) == ("llama-3.1-8b", "h100-sxm", 1)


def test_a_file_that_names_its_model_needs_only_the_accelerator():
    named = {
        path.name: read_results(str(path), TestedServer(model=None, gpu="h100-sxm"))[0]["model"]
        for path in FOLDER.iterdir()
        if path.name not in ("sglang.jsonl", "stage_0_lifecycle_metrics.json")
    }
    assert set(named.values()) == {MODEL}
    with pytest.raises(DataError, match=r"(--model|model=)"):
        read_results(str(FOLDER / "stage_0_lifecycle_metrics.json"), TestedServer(gpu="h100-sxm"))


def test_rows_are_those_of_load_tests():
    known = {*TABLES["load_measurements"].names, *load.METRICS, "input_std_tokens", "output_std_tokens", "failed"}
    for path in FOLDER.iterdir():
        for row in read_results(str(path), H100):
            assert set(row) <= known
            assert load.read_test(row, open_catalog()).row.prompt_tokens == row["mean_input_tokens"]
    assert len(writers()) == 5


def test_lengths_are_spread_as_the_result_says():
    test = load.read_test(read_results(str(FOLDER / "vllm_appended.json"), H100)[1], open_catalog())
    assert (test.prompt_variation, test.output_variation) == pytest.approx((24 / 1024, 56 / 256))


def changed(tmp_path, name, change):
    path = tmp_path / name
    value = json.loads((FOLDER / name).read_text())
    change(value)
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize(
    ("name", "change", "column"),
    [
        ("vllm.json", lambda v: v.update(completed=0), "completed"),
        ("vllm.json", lambda v: v.update(mean_ttft_ms="fast"), "mean_ttft_ms"),
        ("vllm.json", lambda v: v.update(mean_tpot_ms=-1), "mean_tpot_ms"),
        ("vllm.json", lambda v: v.update(p99_ttft_ms=20.0), "p99_ttft_ms"),
        ("vllm.json", lambda v: v.update(total_input_tokens=0), "mean_input_tokens"),
        (
            "profile_export_aiperf.json",
            lambda v: v["time_to_first_token"].update(unit="days"),
            "time_to_first_token.unit",
        ),
        (
            "stage_0_lifecycle_metrics.json",
            lambda v: v["load_summary"].pop("requested_rate"),
            "load_summary.requested_rate",
        ),
        ("vllm.json", lambda v: v.pop("model_id"), None),
    ],
)
def test_what_is_wrong_is_refused_by_its_place(tmp_path, name, change, column):
    path = changed(tmp_path, name, change)
    with pytest.raises(DataError) as fault:
        read_results(str(path), H100)
    assert (fault.value.file, fault.value.column) == (str(path), column)


def test_a_broken_line_is_refused_by_its_number(tmp_path):
    path = tmp_path / "sglang.jsonl"
    path.write_text((FOLDER / "sglang.jsonl").read_text() + '{"completed": }\n')
    with pytest.raises(DataError) as fault:
        read_results(str(path), H100)
    assert fault.value.row == 3


def test_percentiles_of_a_result_stand_beside_those_predicted():
    asked = ("validate", "--kind", "load", "--measurements", FOLDER / "vllm.json", "--gpu", "h100-sxm")
    answer = run(*asked, "--format", "json")
    assert answer.exit_code == 0, answer.output
    items = {item["metric"]: item for item in json.loads(answer.stdout)["items"]}
    assert {name: item["measured"] for name, item in items.items()} == {
        "ttft_mean_ms": 58.2,
        "ttft_p50_ms": 51.4,
        "ttft_p99_ms": 131.9,
        "tpot_mean_ms": 11.4,
        "tpot_p50_ms": 11.1,
        "tpot_p99_ms": 15.9,
    }
    assert all(item["low"] <= item["predicted"] <= item["high"] for item in items.values())
    assert "131.9" in run(*asked).stdout
    assert run("validate", "--gpu", "h100-sxm").exit_code == 2


@pytest.mark.slow
def test_a_load_test_teaches_serving_and_its_percentiles_follow(tmp_path, monkeypatch):
    """A server twice as slow as predicted: after its test is saved, predictions and answers lie nearer to it."""
    monkeypatch.setenv("GPUCOST_BOOK", str(tmp_path))
    one = ("--kind", "load", "--measurements", FOLDER / "sglang.jsonl", "--model", "llama-3.1-8b", "--gpu", "h100-sxm")
    asked = (
        "inference",
        "--model",
        "llama-3.1-8b",
        "--gpu",
        "h100-sxm",
        "--replica-gpus",
        1,
        "--engine",
        "sglang",
        "--prompt-tokens",
        768,
        "--output-tokens",
        384,
        "--format",
        "json",
    )

    def tpot():
        items = json.loads(run("validate", *one, "--format", "json").stdout)["items"]
        return next(item["predicted"] for item in items if item["metric"] == "tpot_mean_ms")

    def speed():
        return json.loads(run(*asked).stdout)["options"][0]["output_tokens_per_s"]

    before = tpot(), speed()
    saved = run("calibrate", "--kind", "serving", "--from-log", FOLDER / "sglang.jsonl", *one[4:], "--save")
    assert saved.exit_code == 0, saved.output
    assert before[0] * 1.03 < tpot() < 37.9
    assert speed() < 0.97 * before[1]


def test_what_a_result_says_itself_is_not_said_again():
    asked = ("calibrate", "--kind", "serving", "--from-log", FOLDER / "vllm.json", "--gpu", "h100-sxm")
    assert run(*asked, "--concurrency", 4).exit_code == 2
    row = serving_row(read_results(str(FOLDER / "vllm.json"), H100)[0])
    assert (row["request_rate"], row["load"], row["tpot_ms"]) == (8, "rated", 11.4)
