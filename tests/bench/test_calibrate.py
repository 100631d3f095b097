"""`calibrate` and `validate --calibration`: runs of one's own correct what is near them, by machine, and back again."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from gpucost.calibration import training
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.cli import cli
from gpucost.errors import UsageError
from gpucost.physics.training.calibration import SCHEME
from gpucost.physics.training.own_runs import OwnRuns, correction, runs_of

from .records import bench_on_record, fit_own

ROW = {
    "model": "llama-3-8b", "gpu": "h100-sxm", "n_gpus": 8, "framework": "torchtitan", "precision": "bf16", "tp": 1,
    "pp": 1, "zero_stage": "3", "micro_batch": 2, "seq_len": 8192, "activation_recompute": "none",
}  # fmt: skip
HEAD = "id,model,gpu,n_gpus,framework,precision,zero_stage,micro_batch,seq_len,measured_tokens_per_s_per_gpu\n"


LINE = "{},llama-3-8b,h200-sxm,{},torchtitan,bf16,{},1,8192,{}\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command with a book of its own."""
    (tmp_path / "book").mkdir()
    monkeypatch.setenv("GPUCOST_BOOK", str(tmp_path / "book"))

    def asked(*words, code=0):
        done = CliRunner().invoke(cli, [str(word) for word in words])
        assert done.exit_code == code, done.output + str(done.exception)
        return done

    return asked


def predicted(calibration, **changed):
    row = {**ROW, **changed, "id": "x", "measured_tokens_per_s_per_gpu": 1.0}
    found = training.gather([row], open_catalog(), as_written=True)
    return training.predict(found, calibration)[0].predicted


def test_a_run_teaches_most_about_its_like():
    catalog = open_catalog()
    base = training_calibration(catalog)
    slow = predicted(base) * 0.7
    own, _ = fit_own(catalog, "training", [{**ROW, "id": "a", "measured_tokens_per_s_per_gpu": slow}])
    same = predicted(own) / predicted(base)
    far = {"model": "llama-3-70b", "gpu": "a100-80gb-sxm", "n_gpus": 512, "tp": 8, "pp": 4, "zero_stage": 1,
           "activation_recompute": "full", "framework": "megatron"}  # fmt: skip
    other = predicted(own, **far) / predicted(base, **far)
    near = predicted(own, n_gpus=16) / predicted(base, n_gpus=16)
    assert 0.7 < same < 0.78 < near < other < 1.0


def test_noise_of_one_run_moves_little_and_many_that_agree_move_much():
    here = np.zeros((10, 14))
    here[:, 0] = np.arange(10)  # runs of models a factor e apart
    there = np.array([[4.5] + [0.0] * 13])
    one = correction(OwnRuns(here[:1], np.array([0.08])), there)[0]
    many = correction(OwnRuns(here, np.full(10, 0.08)), there)[0]
    assert 0 < one < 0.02
    assert max(0.03, 3 * one) < many < 0.08


def test_many_runs_keep_answers_fast_and_the_newest_count():
    catalog = open_catalog()
    rows = [{**ROW, "id": str(k), "seq_len": 4096 + k, "measured_tokens_per_s_per_gpu": 5000.0} for k in range(300)]
    own, table = fit_own(catalog, "training", rows)
    assert [run.name for run in own.runs] == [str(k) for k in range(100, 300)]
    assert sum(row["kind"] == "run" for row in table) == 200
    read_back = SCHEME.load(table)
    assert read_back.runs == own.runs
    cases = np.repeat(runs_of(own.runs).features[:1], 10_000, axis=0)
    assert np.ptp(correction(runs_of(own.runs), cases)) < 1e-9  # equal cases, in several chunks


def test_machines_stand_side_by_side_and_go_one_by_one(run, tmp_path):
    slow, fast = tmp_path / "slow.csv", tmp_path / "fast.csv"
    slow.write_text(HEAD + "a,llama-3-8b,h100-sxm,8,torchtitan,bf16,3,1,8192,5000\n")
    fast.write_text(HEAD + "a,llama-3-8b,a100-80gb-sxm,8,torchtitan,bf16,3,1,8192,4000\n")
    run("calibrate", slow, "--save", "--machine", "node7")
    run("calibrate", fast, "--save", "--machine", "old")
    runs = training_calibration(open_catalog()).runs
    assert [one.name for one in runs] == ["node7: a", "old: a"]
    run("calibrate", "--undo", "--machine", "node7")
    left = training_calibration(open_catalog())
    assert [one.name for one in left.runs] == ["old: a"]
    assert left.ranges["base" if "base" in left.ranges else "base.slower"] > 0
    assert "old" in str(run("calibrate", "--undo", "--machine", "node8", code=1).exception)
    run("calibrate", "--undo")  # the book before the last change


@pytest.mark.parametrize(
    ("gpus", "stage", "speed", "said"),
    [
        (8, 3, 50_000, "tokens_per_s_per_gpu of 50,000 needs 260% of the peak"),  # 50,000 x 5.15e10 / 989.4e12
        (8, 3, 1e-9, "tokens_per_s_per_gpu of 1e-09"),
        (-8, 3, 5000, "n_gpus is '-8', not a whole number of 0 or more"),
        (8.5, 3, 5000, "n_gpus is '8.5', not a whole number"),
        (8, 9, 5000, "zero_stage is '9', none of 0, 1, 2 and 3"),
    ],
)
def test_a_run_that_cannot_be_teaches_nothing_and_is_named(run, tmp_path, gpus, stage, speed, said):
    runs = tmp_path / "runs.csv"
    runs.write_text(HEAD + LINE.format("a", gpus, stage, speed))
    assert said in str(run("calibrate", runs, "--save", code=1).exception)
    runs.write_text(HEAD + LINE.format("a", gpus, stage, speed) + LINE.format("b", 8, 3, 5000) + ",,,,,,,,,\n")
    told = run("calibrate", runs, "--save").output
    assert f"left out: 'a': {said}" in told
    assert "What your run changes" in told
    assert [one.name for one in training_calibration(open_catalog()).runs] == ["b"]


def test_a_word_that_is_not_understood_is_said_with_what_it_is_taken_as(run, tmp_path):
    runs = tmp_path / "runs.csv"
    runs.write_text(HEAD + "a,llama-3-8b,h100-sxm,8,torchtitan,bfloaty,3,1,8192,5000\n")
    assert "'a': precision 'bfloaty' is not known: taken as bf16." in run("calibrate", runs).output


def test_a_serving_run_that_cannot_be_is_left_out():
    row = {"model": "llama-3.1-70b", "gpu": "h100-sxm", "tp": 4, "isl": 1000, "osl": 250, "engine": "vllm"}
    with pytest.raises(UsageError, match=r"output_tokens_per_s of 1e\+12 .*peak"):
        fit_own(open_catalog(), "serving", [row | {"measured_output_tokens_per_s": 1e12}])


def test_what_adapters_train_may_need_more_than_all_weights_would():
    # 6 x 8e9 FLOP a token would be 124 % of an H100's 989 TFLOP/s; the frozen weights' gradients, a third, are not done
    row = {**ROW, "id": "a", "task": "lora", "measured_tokens_per_s_per_gpu": 23_900.0}
    own, _ = fit_own(open_catalog(), "training", [row])
    assert len(own.runs) == 1
    with pytest.raises(UsageError, match="the peak"):
        fit_own(open_catalog(), "training", [row | {"task": "pretrain"}])


def test_each_run_has_a_name_of_its_own(run, tmp_path):
    runs = tmp_path / "runs.csv"
    runs.write_text(HEAD + LINE.format("a", 8, 3, 5000) + LINE.format("a", 8, 3, 9000))
    assert "two runs are called 'a'" in str(run("calibrate", runs, code=1).exception)
    runs.write_text(HEAD + LINE.format("", 8, 3, 5000) + LINE.format("", 8, 3, 9000))
    assert "What 2 " in run("calibrate", runs, "--save").output
    assert [one.name for one in training_calibration(open_catalog()).runs] == ["row 1", "row 2"]


def test_a_file_of_runs_without_rows_or_with_a_slip_in_its_header_is_refused(run, tmp_path):
    runs = tmp_path / "runs.csv"
    runs.write_text(HEAD)
    assert "no rows" in str(run("calibrate", runs, code=1).exception)
    runs.write_text(HEAD.replace("seq_len", "seqlen") + LINE.format("a", 8, 3, 5000))
    assert "seqlen: is not a column of measurements; did you mean seq_len?" in str(
        run("calibrate", runs, code=1).exception
    )
    runs.write_text(HEAD.replace("id,", "host,x_seqlen,", 1) + "n1,3," + LINE.format("", 8, 3, 5000)[1:])
    run("calibrate", runs)


def test_the_effect_on_a_saved_estimate_is_shown(run, tmp_path):
    saved, runs = tmp_path / "saved.json", tmp_path / "runs.csv"
    run("estimate", "--model", "8b", "--tokens", "10b", "--gpu", "h100-sxm", "--gpus", 8, "--top", 1, "-o", saved,
        "--format", "json")  # fmt: skip
    runs.write_text(HEAD + "a,llama-3-8b,h100-sxm,8,torchtitan,bf16,3,1,8192,5000\n")
    rows = json.loads(run("calibrate", runs, "--estimate", saved, "--format", "json").stdout)["rows"]
    moved = {row["name"]: row for row in rows}
    option = json.loads(saved.read_text())["options"][0]
    assert moved["cost_usd"]["before"] == pytest.approx(option["cost_usd"])
    assert moved["days"]["after"] > moved["days"]["before"]
    spread = [np.log(moved["cost_high_usd"][side] / moved["cost_low_usd"][side]) for side in ("before", "after")]
    assert moved["cost_usd"]["narrower_fraction"] == pytest.approx(1 - spread[1] / spread[0])
    assert moved["a"]["narrower_fraction"] > 0.3 > moved["cost_usd"]["narrower_fraction"]
    shown = run("calibrate", runs, "--estimate", saved).stdout  # at 80 columns
    assert "range narrower" in shown
    assert f"{moved['a']['narrower_fraction']:.1%}" in shown
    assert "--estimate" in run("calibrate", runs, "--kind", "serving", "--estimate", saved, code=2).output


def test_validate_takes_a_calibration_of_ones_own(run, tmp_path):
    runs, table = tmp_path / "runs.csv", tmp_path / "own.csv"
    runs.write_text(HEAD + "a,llama-3-8b,h100-sxm,8,torchtitan,bf16,3,1,8192,5000\n")
    run("calibrate", runs, "--format", "csv", "-o", table)
    asked = ("validate", "--measurements", runs, "--format", "json")
    before, after = (
        json.loads(run(*words).stdout)["macro_median_abs_error_fraction"]
        for words in (asked, (*asked, "--calibration", table))
    )
    assert after < 0.3 * before
    broken = tmp_path / "broken.csv"
    broken.write_text("name,kind,value\nmatrix_fraction.hopper,parameter,fast\n")
    assert "a number" in str(run(*asked, "--calibration", broken, code=1).exception)
    broken.write_text("name,kind,value\nno_such_thing,parameter,1\n")
    assert "not a parameter of training" in str(run(*asked, "--calibration", broken, code=1).exception)


SERVED = (
    "INFO 11-20 10:00:0{}.000 metrics.py:1] Avg prompt throughput: 900.0 tokens/s, Avg generation throughput: {}"
    " tokens/s, Running: 64 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 30%\n"
)


@pytest.mark.slow
def test_a_log_of_today_is_of_todays_software(run, tmp_path):
    log = tmp_path / "vllm.log"
    log.write_text("".join(SERVED.format(second, 500.0) for second in range(9)))
    told = run("calibrate", "--kind", "serving", "--from-log", log, "--model", "llama-3.1-70b", "--gpu", "h100-sxm",
               "--gpus", 4, "--prompt-tokens", 1000, "--output-tokens", 250).output  # fmt: skip
    assert "vllm" in told
    assert "vllm-2025" not in told


@pytest.mark.slow
def test_a_serving_log_teaches_serving(run, tmp_path):
    log = tmp_path / "vllm.log"
    log.write_text("".join(SERVED.format(second, 500.0) for second in range(9)))
    what = ("calibrate", "--from-log", log, "--model", "llama-3.1-70b", "--gpu", "h100-sxm", "--gpus", 4)
    assert "--kind serving" in run(*what, code=2).output
    assert "--prompt-tokens" in run(*what, "--kind", "serving", code=2).output
    asked = ("inference", "--model", "llama-3.1-70b", "--gpu", "h100-sxm", "--replica-gpus", 4, "--format", "json")
    lengths = ("--prompt-tokens", 1000, "--output-tokens", 250)
    before = json.loads(run(*asked, *lengths).stdout)["options"][0]["output_tokens_per_s"]
    run(*what, *lengths, "--kind", "serving", "--save")
    after = json.loads(run(*asked, *lengths).stdout)["options"][0]["output_tokens_per_s"]
    assert 0.8 * before < after < 0.99 * before  # far fewer tokens than predicted: one run moves a little


def speed_of(run, *more):
    asked = ("throughput", "--model", "llama-3-8b", "--gpu", "h100-sxm", "--gpus", 8, "--format", "json")
    return json.loads(run(*asked, *more).stdout)["tokens_per_s_per_gpu"]


@pytest.mark.slow
def test_a_class_of_ones_own_is_kept_used_listed_and_undone(run, tmp_path):
    import gpucost

    runs = tmp_path / "runs.csv"
    runs.write_text(HEAD + "a,llama-3-8b,h100-sxm,8,torchtitan,bf16,3,1,8192,5000\n")
    shipped, typical = speed_of(run, "--software", "sharded"), speed_of(run)
    assert "unknown 'my-stack'" in str(run("estimate", "--model", "8b", "--tokens", "1b", "--software", "my-stack",
                                           code=1).exception)  # fmt: skip
    run("calibrate", runs, "--software", "my-stack", "--save")
    own = speed_of(run, "--software", "my-stack")
    assert own < 0.95 * shipped
    assert (speed_of(run, "--software", "sharded"), speed_of(run)) == (shipped, typical)  # no other stack moves
    found = gpucost.throughput(model="llama-3-8b", gpu="h100-sxm", gpus=8, software="my-stack")
    assert np.ravel(found.tokens_per_s_per_gpu)[0] == pytest.approx(own)
    costs = [json.loads(run("estimate", "--model", "8b", "--tokens", "10b", "--gpu", "h100-sxm", "--gpus", 8,
                            "--software", name, "--format", "json").stdout)["options"][0]["cost_usd"]
             for name in ("my-stack", "sharded")]  # fmt: skip
    assert costs[0] > 1.02 * costs[1]
    asked = {}
    for name in ("my-stack", "sharded"):
        scenario = tmp_path / f"{name}.toml"
        scenario.write_text('[[training]]\nname = "run"\nmodel = "8b"\ntokens = "10b"\ngpu = "h100-sxm"\ngpus = 8\n'
                            f'software = "{name}"\n')  # fmt: skip
        asked[name] = gpucost.report(scenario).payload["parts"][0]["payload"]["options"][0]["cost_usd"]
    assert list(asked.values()) == pytest.approx(costs)  # a scenario file reads the class as the command does
    listed = json.loads(run("calibrate", "--list", "--format", "json").stdout)["rows"]
    assert [(row["name"], row["like"], row["runs"]) for row in listed] == [("my-stack", "sharded", 1)]
    assert "my-stack" in str(run("throughput", "--model", "8b", "--gpu", "h100", "--gpus", 8, "--software", "my-stock",
                                 code=1).exception)  # fmt: skip
    run("calibrate", "--undo", "--software", "my-stack")
    assert training_calibration(open_catalog()).stacks == {}
    assert "my-stack" in str(run("calibrate", "--undo", "--software", "my-stack", code=1).exception)


@pytest.mark.parametrize(
    "words",
    [["--list", "--save"], ["--list", "--kind", "serving"], ["--list", "--model", "8b"], ["--undo"]],
)
def test_what_fits_nothing_takes_no_runs_and_no_more(run, tmp_path, words):
    runs = tmp_path / "runs.csv"
    runs.write_text(HEAD)
    more = [] if "--list" in words else [runs]
    assert f"{words[0]} fits nothing" in run("calibrate", *words, *more, code=2).output
    run("calibrate", words[0])


@pytest.mark.parametrize(
    "words",
    [["--model", "8b"], ["--gpu", "h100-sxm"], ["--gpus", 8, "--tensor", 4], ["--sharding", 0], ["--precision", "bf16"],
     ["--kind", "serving", "--prompt-tokens", 9]],
)  # fmt: skip
def test_what_describes_a_log_needs_one(run, tmp_path, words):
    runs = tmp_path / "runs.csv"
    runs.write_text(HEAD)
    typed = ", ".join(str(word) for word in words[::2] if word != "--kind")
    assert f"{typed}: only with --from-log" in run("calibrate", runs, *words, code=2).output


@pytest.mark.parametrize("words", [[], ["--machine", "node7"], ["--estimate", __file__]])
def test_what_is_of_ones_own_runs_needs_some(run, words):
    assert "--from-log" in run("calibrate", *words, code=2).output


@pytest.mark.parametrize("name", ["sharded", "typical", "unknown", "Megatron-LM", "my stack", "1st", "x" * 41, "a[b]"])
def test_a_bad_name_of_a_class_is_refused(run, tmp_path, name):
    runs = tmp_path / "runs.csv"
    runs.write_text(HEAD + "a,llama-3-8b,h100-sxm,8,torchtitan,bf16,3,1,8192,5000\n")
    assert "--software" in run("calibrate", runs, "--software", name, "--save", code=2).output
    assert training_calibration(open_catalog()).runs == ()


def test_two_classes_and_a_machine_stand_side_by_side(run, tmp_path):
    runs = tmp_path / "runs.csv"
    runs.write_text(HEAD + "a,llama-3-8b,h100-sxm,8,torchtitan,bf16,3,1,8192,5000\n")
    run("calibrate", runs, "--software", "first", "--save", "--machine", "node7")
    run("calibrate", runs, "--software", "second", "--save")
    kept = training_calibration(open_catalog())
    assert [one.name for one in kept.runs] == ["node7: a [first]", "a [second]"]
    assert [len(kept.runs_of(name)) for name in ("first", "second", "sharded")] == [1, 1, 0]
    run("calibrate", "--undo", "--machine", "node7")
    assert dict(training_calibration(open_catalog()).stacks) == {"first": "sharded", "second": "sharded"}


def test_the_layout_of_a_log_is_read_or_given(run, tmp_path):
    log, asked = tmp_path / "train.log", ("--model", "llama-3-8b", "--gpu", "h100-sxm", "--save")
    lines = [f"iteration {k:8d}/ 100 | elapsed time per iteration (ms): 4200.0 | global batch size:   512 |"
             for k in range(1, 9)]  # fmt: skip
    log.write_text(
        "\n".join(["world_size ..... 64", "seq_length ..... 4096", "tensor_model_parallel_size ... 4", *lines])
    )
    told = run("calibrate", "--from-log", log, *asked).output
    assert "gpus 64" in told
    assert "7,801.9 tokens" in told  # 512 x 4096 / 4.2 / 64
    read = training_calibration(open_catalog()).runs[-1].configuration
    run("calibrate", "--undo")
    run("calibrate", "--from-log", log, *asked, "--tensor", 1, "--recompute", "full", "--sharding", 3)
    given = training_calibration(open_catalog()).runs[-1].configuration
    assert f"tensor {np.log(4):.9g}" in read
    assert "tensor 0;" in given
    assert "recompute 2;" in given


@pytest.mark.slow
def test_a_bench_fits_training_and_serving_at_once_and_one_undo_takes_both_back(run, tmp_path):
    bench, runs = tmp_path / "bench.json", tmp_path / "runs.csv"
    bench.write_text(bench_on_record())
    runs.write_text(HEAD + "a,llama-3-8b,h200-sxm,8,torchtitan,bf16,3,1,8192,5000\n")
    book = tmp_path / "book"
    for files in ([bench], [runs, bench]):
        run("calibrate", *files, "--save")
        assert sorted(path.name for path in book.glob("*.csv")) == ["calibration.csv", "serving_calibration.csv"]
        run("calibrate", "--undo")
        assert not list(book.glob("*.csv"))
    run("calibrate", bench, "--kind", "serving", "--save")
    assert [path.name for path in book.glob("*.csv")] == ["serving_calibration.csv"]
