"""`bench --show`, `calibrate` and `watch` as a user runs them."""

import json
import math

import pytest
from click.testing import CliRunner

from gpucost.answers.saved import read_estimate
from gpucost.bench.file import read_bench
from gpucost.bench.logs import lines_of, read_log
from gpucost.bench.progress import forecast
from gpucost.cli import cli
from gpucost.errors import UsageError
from tests.bench.records import bench_on_record
from tests.commands import in_process


@pytest.fixture(scope="module")
def bench_file(tmp_path_factory):
    """What one machine on record measured, as its bench file."""
    path = tmp_path_factory.mktemp("bench") / "node.json"
    path.write_text(bench_on_record())
    return path


def gpucost(*words, book=None, code=0):
    done = in_process(*map(str, words), **({"GPUCOST_BOOK": str(book)} if book else {}))
    assert done.returncode == code, done.stderr
    return done


def test_a_bench_is_of_its_own_chip(bench_file):
    assert "not of h100" in gpucost("calibrate", bench_file, "--gpu", "h100-sxm", code=2).stderr


def test_a_bench_is_shown_against_the_datasheet(bench_file):
    found = json.loads(gpucost("bench", bench_file, "--show", "--format", "json").stdout)
    rows = {row["what"]: row for row in found["rows"]}
    assert rows["memory bandwidth"]["peak"] == 4800
    assert 0.8 < rows["memory bandwidth"]["share_fraction"] < 0.95
    [told] = found["warnings"]  # an early bench in one round: what swung between clocks is a range
    assert "swing" in told
    assert "copy 1073741824" not in told
    steps = rows["training steps"]  # the best dense step's model FLOP, beside what others published of H200s
    assert 0.35 < steps["share_fraction"] < 0.6
    assert 0.3 < steps["usual_fraction"] < 0.6
    assert int(steps["place"].split(" of ")[1]) > 2


STEP = {"id": "t1", "op": "train", "model": "0.5b", "ranks": 1, "micro_batch": 1, "sequence": 2048, "time_s": 0.5,
        "tokens_per_s_per_gpu": 4096}  # fmt: skip
LEAST = {"kind": "bench", "schema_version": 1, "started": "2026-11-20T10:00:00", "figures": [STEP],
         "machine": {"device": "NVIDIA H100 80GB HBM3", "gpus": 1}}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"started": None}, "started"),
        ({"figures": [STEP | {"recipe": "fp4"}]}, "recipe is one of amp, fp8, bf16"),
        ({"figures": [STEP | {"recipe": 5}]}, "recipe"),
        ({"figures": [STEP | {"ranks": 0.5}]}, "ranks"),
        ({"figures": [STEP | {"ranks": 2, "tensor": 4}]}, "multiple of tensor"),
        ({"figures": [{"id": "c", "op": "copy", "rounds_s": [0.1]}]}, "copy needs time_s"),
        ({"started": "0000-00-00T10:00:00"}, "YYYY-MM-DD"),
        ({"figures": [STEP | {"recompute": "weird"}]}, "recompute is one of none, selective, full"),
        ({"figures": [STEP | {"tokens_per_s_per_gpu": 1}]}, "tokens_per_s_per_gpu is 1, and 4096 follows"),
        ({"figures": [STEP | {"rounds_s": [0.6, 0.7]}]}, "time_s is 0.5"),
        ({"figures": [STEP | {"spread_fraction": 1e9}]}, "spread_fraction"),
        ({"each_gpu": [{}]}, "each_gpu[0].id"),
        ({"each_gpu": [{"id": "c", "gpu_index": 0}]}, "time_s"),
    ],
)
def test_a_bench_without_what_its_readers_need_is_refused(tmp_path, changed, said):
    path = tmp_path / "bench.json"
    whole = {name: value for name, value in (LEAST | changed).items() if value is not None}
    path.write_text(json.dumps(whole))
    assert said in gpucost("bench", path, "--show", code=2).stderr
    assert said in gpucost("calibrate", path, code=2).stderr


def test_what_a_bench_leaves_null_it_leaves_out(tmp_path):
    path = tmp_path / "bench.json"
    probes = [{"id": "copy", "gpu_index": 0, "failed": "no memory"}, {"id": "copy", "gpu_index": 1, "time_s": 1.0}]
    step = STEP | {"spread_fraction": None, "took_s": None, "tensor": None}
    copy = {"id": "c", "op": "copy", "size_bytes": 1e9, "time_s": 0.0007}
    figures = [step, copy, {"id": "l", "op": "loader", "time_s": None}]
    path.write_text(json.dumps(LEAST | {"figures": figures, "each_gpu": probes}))
    assert "GPU 0 failed copy" in gpucost("bench", path, "--show").stdout
    read = [STEP | {"rounds_s": [0.5]}, copy | {"rounds_s": [0.0007]}, {"id": "l", "op": "loader", "rounds_s": []}]
    assert read_bench(path)["figures"] == read


@pytest.mark.slow
def test_a_calibration_is_kept_used_and_taken_back(bench_file, tmp_path):
    book = tmp_path / "book"
    book.mkdir()
    question = ("throughput", "--model", "llama-3-8b", "--gpu", "h200-sxm", "--gpus", "8", "--software", "sharded",
                "--format", "json")  # fmt: skip
    runs = tmp_path / "runs.csv"
    runs.write_text(
        "id,model,gpu,n_gpus,framework,precision,zero_stage,micro_batch,seq_len,measured_tokens_per_s_per_gpu\n"
        "a,llama-3-8b,h200-sxm,8,torchtitan,bf16,3,1,8192,5000\n"
    )
    before = json.loads(gpucost(*question, book=book).stdout)
    shown = gpucost("calibrate", runs, book=book)
    assert "--save" in shown.stderr
    assert not (book / "calibration.csv").exists()
    gpucost("calibrate", runs, "--save", book=book)  # a run that is slower than predicted
    slower = json.loads(gpucost(*question, book=book).stdout)
    assert slower["tokens_per_s_per_gpu"] < before["tokens_per_s_per_gpu"]
    gpucost("calibrate", "--undo", book=book)
    gpucost("calibrate", runs, bench_file, "--save", book=book)  # and steps of a bench, most of them faster
    after = json.loads(gpucost(*question, book=book).stdout)
    low, high = "tokens_per_s_per_gpu_low", "tokens_per_s_per_gpu_high"
    assert after["tokens_per_s_per_gpu"] > slower["tokens_per_s_per_gpu"]
    assert after[high] / after[low] < before[high] / before[low]
    gpucost("calibrate", "--undo", book=book)
    assert json.loads(gpucost(*question, book=book).stdout) == before


def test_a_log_is_followed_against_its_estimate(tmp_path):
    saved = tmp_path / "saved.json"
    gpucost("estimate", "--model", "8b", "--tokens", "10b", "--gpu", "h100-sxm", "--gpus", 64, "--top", 1, "--format",
            "json", "-o", saved)  # fmt: skip
    option = json.loads(saved.read_text())["options"][0]
    speed = option["tokens_per_s_per_gpu"] * 0.8  # a quarter longer than was estimated
    batch, sequence = option["layout"]["global_batch"], 8192
    step = int(10e9 / (batch * sequence) / 2)  # half-way
    log = tmp_path / "train.log"
    line = f"step: {{}}  loss: 4.2  memory: 40.03GiB(50%)  tps: {speed:.1f}  tflops: 412.4  mfu: 41.7%\n"
    log.write_text("".join(line.format(number) for number in range(step - 9, step + 1)))
    rows = {row["what"]: row for row in json.loads(
        gpucost("watch", log, "--estimate", saved, "--format", "json").stdout)["rows"]}  # fmt: skip
    assert rows["progress"]["now"] == pytest.approx(0.5, abs=0.01)
    assert rows["tok/s/GPU"]["against_ratio"] == pytest.approx(0.8, rel=1e-4)
    assert rows["days in all"]["now"] == pytest.approx(option["days"] / 0.8, rel=0.01)
    assert rows["days in all"]["low"] < rows["days in all"]["now"] < rows["days in all"]["high"]
    assert rows["cost so far"]["now"] == pytest.approx(rows["cost in all"]["now"] / 2, rel=0.01)
    assert max(map(len, rows)) <= 11, "a longer name pushes an end of the range off a screen of 80 columns"


@pytest.fixture(scope="module")
def saved_estimate(tmp_path_factory):
    """An estimate of eight H100s, saved: each step is `batch` sequences of 4,096 tokens."""
    path = tmp_path_factory.mktemp("watch") / "saved.json"
    asked = ["estimate", "--model", "1b", "--tokens", "10b", "--gpu", "h100-sxm", "--gpus", "8", "--sequence", "4096",
             "--top", "1", "--format", "json", "-o", str(path)]  # fmt: skip
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 0, done.output
    return path, json.loads(path.read_text())["options"][0]["layout"]["global_batch"]


WATCHED = {  # a line of step 40 of each stack, its seconds a step (or None) or its tokens a second and GPU
    "megatron-lm": (" iteration       40/    1000 | elapsed time per iteration (ms): 9000.0 | learning rate: 0.0E+00 |",
                    9.0, None),
    "nemo": ("Epoch 0: :   3%|x  | 40/1000 [1:42:42<55:37:46, v_num=0, global_step=40.0, train_step_timing in s=9.0]",
             9.0, None),
    "torchtitan": ("[titan] step: 40  loss:  4.2  memory: 40.03GiB(50%)  tps: 7,123  tflops: 412.4  mfu: 41.7%", None,
                   7123),
    "huggingface": ("  4%|x  | 40/1000 [06:00<2:24:00,  9.00s/it]", 9.0, None),
    "nanogpt": ("iter 40: loss 3.5014, time 9000.00ms, mfu 40.10%", 9.0, None),
    "llm-foundry": ("[batch=40/1000]: Train throughput/device/tokens_per_sec: 3502.5", None, 3502.5),
    "deepspeed": ("steps: 40 loss: 5.5508 iter time (s): 9.0", 9.0, None),
    "mlperf-training": (':::MLLOG {"namespace": "", "time_ms": 1716000000000, "event_type": "POINT_IN_TIME", "key": '
                        '"tracked_stats", "value": {"train_step_time": 9.0}, "metadata": {"samples_count": SAMPLES}}',
                        9.0, None),
    "maxtext": ("completed step: 40, seconds: 9.0, TFLOP/s/device: 332.4, Tokens/s/device: 1326.307, loss: 0.045", None,
                1326.307),
}  # fmt: skip


@pytest.mark.parametrize("form", WATCHED)
def test_a_log_of_each_stack_is_followed(form, saved_estimate, tmp_path):
    saved, batch = saved_estimate
    line, step_s, speed = WATCHED[form]
    line = line.replace("SAMPLES", str(40 * batch))
    log = tmp_path / "train.log"
    log.write_text("a line of something else\n" + line + "\n" + line[:20])
    assert read_log(lines_of(str(log))).format.name == form
    done = CliRunner().invoke(cli, ["watch", str(log), "--estimate", str(saved), "--format", "json"])
    assert done.exit_code == 0, done.output
    rows = {row["what"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["tokens"]["now"] == 40 * batch * 4096
    assert rows["tok/s/GPU"]["now"] == pytest.approx(speed or batch * 4096 / step_s / 8)
    assert rows["cost in all"]["low"] < rows["cost in all"]["now"] < rows["cost in all"]["high"]


def test_a_log_of_a_speed_beyond_the_peak_is_refused(saved_estimate, tmp_path):
    log = tmp_path / "train.log"
    log.write_text("[titan] step: 40  loss:  4.2  memory: 40.03GiB(50%)  tps: 1e12  tflops: 412.4  mfu: 41.7%\n")
    assert "the peak" in gpucost("watch", log, "--estimate", saved_estimate[0], code=2).stderr
    asked = ("calibrate", "--from-log", log, "--model", "8b", "--gpu", "h100-sxm", "--gpus", 8)
    assert "the peak" in gpucost(*asked, code=2).stderr


TERMS = {  # of one option, and the hours that a run of so many hours is billed
    "a year that is owed": ({"term_months": 12, "take_or_pay": 1}, lambda hours: 12 * 730),
    "a shortest purchase": ({"minimum_hours": 8000}, lambda hours: 8000),
    "whole weeks": ({"billing_increment_hours": 168}, lambda hours: math.ceil(hours / 168) * 168),
    "by the second": ({}, lambda hours: hours),
}


@pytest.mark.parametrize("terms", TERMS)
def test_what_is_owed_does_not_grow_with_time(terms, saved_estimate, tmp_path):
    given, billed = TERMS[terms]
    saved = read_estimate(saved_estimate[0])
    option = saved["options"][0]
    option["factors"] |= {"term_months": 0, "take_or_pay": 0, "minimum_hours": 0, "billing_increment_hours": 0, **given}
    step = int(10e9 / saved_estimate[1] / 4096 / 2)  # half-way, at half the speed
    line = f"[titan] step: {step}  loss: 4.2  tps: {option['tokens_per_s_per_gpu'] / 2:.1f}"
    rows = {row["what"]: row for row in forecast(read_log([line] * 8), saved)}
    for cost, days in (("cost so far", "days so far"), ("cost in all", "days in all")):
        for end in ("low", "now", "high") if cost == "cost in all" else ("now",):
            expected = 8 * billed(rows[days][end] * 24) * option["usd_per_gpu_hour"]
            assert rows[cost][end] == pytest.approx(expected, rel=0.01)


def test_a_log_of_another_number_of_gpus_is_of_another_run(saved_estimate, tmp_path):
    log = tmp_path / "train.log"
    log.write_text(f"  world_size ...... 64\n{WATCHED['megatron-lm'][0]}\n")
    refused = gpucost("watch", log, "--estimate", saved_estimate[0], code=2).stderr
    assert "64 GPUs" in refused
    assert "--gpus 64" in refused


def test_the_batch_of_a_log_counts_before_that_of_the_estimate(saved_estimate, tmp_path):
    log = tmp_path / "train.log"
    log.write_text(
        " iteration 40/ 1000 | elapsed time per iteration (ms): 9000.0 | global batch size:   128 | loss: 2 |\n"
    )
    done = CliRunner().invoke(cli, ["watch", str(log), "--estimate", str(saved_estimate[0]), "--format", "json"])
    rows = {row["what"]: row["now"] for row in json.loads(done.stdout)["rows"]}
    assert rows["tokens"] == 40 * 128 * 4096
    assert rows["tok/s/GPU"] == pytest.approx(128 * 4096 / 9.0 / 8)


@pytest.mark.parametrize(
    "line",
    [
        "Engine 000: Avg prompt throughput: 3539.1 tokens/s, Avg generation throughput: 3562.1 tokens/s, Running: 126",
        "Output token throughput (tok/s):          777.04",
        "Decode batch. #running-req: 32, #token: 9000, gen throughput (token/s): 1234.5, #queue-req: 0",
        "│ Output token throughput (per sec) │ 1,893.20 │ N/A │",
        "Tokens per second (inferred) : 11264.40",
    ],
)
def test_a_log_of_serving_is_not_followed_and_the_refusal_says_so(line, saved_estimate, tmp_path):
    log = tmp_path / "serve.log"
    log.write_text(line)
    done = CliRunner().invoke(cli, ["watch", str(log), "--estimate", str(saved_estimate[0])])
    assert isinstance(done.exception, UsageError | SystemExit)
    assert "training run" in done.output + str(done.exception)


def test_what_a_log_needs_is_asked_for(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("iter 1: loss 3, time 512.00ms, mfu 40%\n")
    empty = tmp_path / "empty.log"
    empty.write_text("nothing of a speed\n")
    assert "--model" in gpucost("calibrate", "--from-log", log, code=2).stderr
    asked = ("calibrate", "--from-log", log, "--model", "8b", "--gpu", "l4", "--gpus", 8, "--tensor", 3)
    assert "tensor 3 × pipeline 1 × context 1 is 3" in gpucost(*asked, code=2).stderr
    assert "megatron-lm" in gpucost("calibrate", "--from-log", empty, "--model", "8b", "--gpu", "l4", "--gpus", 1,
                                    code=2).stderr  # fmt: skip
