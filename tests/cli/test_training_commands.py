"""The commands about step time: throughput, roofline, validate and calibrate, as a user meets them."""

import csv
import io
import json
from unittest.mock import ANY

import numpy as np
import pytest
from click.testing import CliRunner

import gpucost
from gpucost.cli import cli
from gpucost.errors import GpuCostError, NothingFitsError, UsageError


def run(*arguments):
    """Run the command line; an error of gpucost is returned, not raised."""
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    if result.exception and not isinstance(result.exception, SystemExit | GpuCostError):
        raise result.exception
    return result


EXPLICIT = ("throughput", "--model", "llama-3-8b", "--gpu", "h100-sxm", "--gpus", 8)


def test_a_layout_is_taken_as_given():
    result = run(*EXPLICIT, "--sharding", 3, "--micro-batch", 2, "--global-batch", 32, "--format", "json")
    answer = json.loads(result.stdout)
    assert answer["kind"] == "throughput"
    assert (answer["layout"]["data"], answer["layout"]["sharding"], answer["layout"]["micro_batch"]) == (8, 3, 2)
    assert sum(part["time_s"] for part in answer["parts"]) == pytest.approx(answer["step_s"])
    assert answer["tokens_per_s_per_gpu_low"] < answer["tokens_per_s_per_gpu"] < answer["tokens_per_s_per_gpu_high"]
    assert answer["mfu_fraction"] == pytest.approx(
        answer["tokens_per_s_per_gpu"] * answer["model_flop_per_token_flop"] / answer["peak_tflops"] / 1e12
    )


def test_without_degrees_the_fastest_layout_is_searched():
    answer = json.loads(run(*EXPLICIT, "--format", "json").stdout)
    speeds = [row["tokens_per_s_per_gpu"] for row in answer["alternatives"]]
    assert speeds == sorted(speeds, reverse=True)
    assert answer["tokens_per_s_per_gpu"] == pytest.approx(speeds[0])
    assert answer["layouts_timed"] >= len(speeds)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--tensor", 3), "Leave --data out"),
        (("--tensor", 8, "--gpus", 12), "is not the 12 GPUs given"),
        (("--tensor", 2, "--global-batch", 3), "global batch"),
        (("--pipeline", 4, "--virtual-stages", 64, "--global-batch", 64), "exceeds the 32 layers"),
        (("--expert", 8), "expert 8"),
        (("--tensor", 2, "--precision", "fp4"), "no known fp4 peak"),
        (("--tensor", 2, "--precision", "fp7"), "Choose one of bf16"),
        (("--tensor", "-2"), "tensor"),
        (("--tensor", 0), "tensor"),
        (("--sequence", "nan", "--tensor", 2), "sequence"),
        (("--software", "magic", "--tensor", 2), "vendor"),
    ],
)
def test_a_layout_that_cannot_exist_is_one_clear_sentence(options, words):
    result = run(*EXPLICIT, *options)
    text = str(result.exception) + result.output
    assert isinstance(result.exception, UsageError) or result.exit_code == 2
    assert words in text


def test_a_model_that_fits_nowhere_says_what_to_try():
    result = run("throughput", "--model", "llama-3.1-405b", "--gpu", "h100-sxm", "--gpus", 8)
    assert isinstance(result.exception, NothingFitsError)
    assert result.exception.exit_code == 6
    assert "gpucost fit" in str(result.exception)


def test_the_table_names_the_bounds(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    text = run(*EXPLICIT).stdout
    assert "tokens/s per GPU" in text
    assert "memory bandwidth" in text
    assert "\x1b[" not in text


def test_columns_of_cases_answer_with_reasons():
    table = gpucost.throughput("llama-3-8b", "h100-sxm", [8, 8, 16], tensor=[1, 3, 2], global_batch=64, micro_batch=1)
    assert len(table) == 3
    assert [table.reasons[code] for code in table["reason"]] == [
        "ok", "tensor x pipeline x context x data is not the number of accelerators", "ok",
    ]  # fmt: skip
    assert np.isnan(table["tokens_per_s_per_gpu"][1])
    alone = gpucost.throughput("llama-3-8b", "h100-sxm", 16, tensor=2, global_batch=64, micro_batch=1)
    assert table["tokens_per_s_per_gpu"][2] == alone.tokens_per_s_per_gpu
    assert table.to_frame()["reason"].tolist()[0] == "ok"


def test_a_column_has_the_bounds_of_a_single_value():
    table = gpucost.throughput("llama-3-8b", "h100-sxm", [1e12, 8, 8], sequence=[8192, 8192, 1e9])
    beyond = "more accelerators or tokens in a sequence than any question may name"
    assert [table.reasons[code] for code in table["reason"]] == [beyond, "ok", beyond]


@pytest.mark.parametrize("gpus", [[True, 8], np.array([True]), np.array([True, 8], object)])
def test_a_truth_value_in_a_column_is_no_number(gpus):
    with pytest.raises(UsageError, match="as a number"):
        gpucost.throughput("llama-3-8b", "h100-sxm", gpus)


def test_columns_may_mix_models_and_chips():
    table = gpucost.throughput(["llama-3-8b", "llama-2-7b"], ["h100-sxm", "a100-80gb-sxm"], 8, sharding=1)
    for row, (model, gpu) in enumerate((("llama-3-8b", "h100-sxm"), ("llama-2-7b", "a100-80gb-sxm"))):
        batch = int(table["global_batch"][row])
        sequence = float(table["sequence_tokens"][row])
        alone = gpucost.throughput(model, gpu, 8, sharding=1, global_batch=batch, sequence=sequence)
        assert table["tokens_per_s_per_gpu"][row] == alone.tokens_per_s_per_gpu


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(UsageError, match="different lengths"):
        gpucost.throughput("llama-3-8b", "h100-sxm", [8, 16], tensor=[1, 2, 4])


def test_the_roofline_of_a_product_by_hand():
    # 1024 × 8192 × 8192 in bf16: 2mnk FLOP over 2(mk + kn + mn) bytes
    answer = json.loads(run("roofline", "--gpu", "h100-sxm", "--matmul", "1024x8192x8192", "--format", "json").stdout)
    point = answer["points"][0]
    flop, moved = 2 * 1024 * 8192**2, 2 * (2 * 1024 * 8192 + 8192**2)
    assert (point["flop"], point["memory_bytes"]) == (flop, moved)
    assert point["intensity_flop_per_byte"] == pytest.approx(flop / moved)
    assert answer["ridge_flop_per_byte"] == pytest.approx(989.4e12 / 3350e9, rel=0.01)
    assert point["bound"] == "compute"


@pytest.mark.parametrize(
    ("options", "bound"),
    [
        (("--matmul", "16x8192x8192"), "bandwidth"),
        (("--copy", "1e9"), "bandwidth"),
        (("--all-reduce", "1e9", "--gpus", "16"), "network"),
        (("--matmul", "8x8x8"), "host"),
        (("--attention", "8192x32x128"), "compute"),
    ],
)
def test_each_roof_bounds_something(options, bound):
    answer = json.loads(run("roofline", "--gpu", "h100-sxm", *options, "--format", "json").stdout)
    assert answer["points"][0]["bound"] == bound


@pytest.mark.slow
def test_the_roofline_of_a_step_has_a_plot_and_a_page(tmp_path):
    options = ("roofline", "--gpu", "h100-sxm", "--model", "llama-3-8b", "--gpus", 8)
    text = run(*options, "--details").stdout
    assert "intensity" in text
    assert "ridge" in text.lower()
    page = tmp_path / "roof.html"
    run(*options, "-o", page)
    assert "<svg" in page.read_text() or "vega" in page.read_text()


def test_without_an_operation_the_usual_ones_stand_side_by_side():
    answer = json.loads(run("roofline", "--gpu", "h100-sxm", "--format", "json").stdout)
    bounds = {row["operation"]: row["bound"] for row in answer["points"]}
    assert bounds["projection, 8,192 tokens"] == bounds["attention, fused"] == "compute"
    assert {bounds[name] for name in ("projection, one token", "attention, naive", "norm", "GELU")} == {"bandwidth"}


def test_intensities_by_hand():
    """A norm: 4 FLOP per value over 2 + 2 bytes; GELU: 8; naive attention at d = 128: (2·128 + 2.5) ÷ 8 per byte."""
    for option, size, expected in (("--norm", "4096x8192", 1.0), ("--gelu", "4096x8192", 2.0)):
        answer = json.loads(run("roofline", "--gpu", "h100-sxm", option, size, "--format", "json").stdout)
        assert answer["points"][0]["intensity_flop_per_byte"] == pytest.approx(expected)
    naive = run("roofline", "--gpu", "h100-sxm", "--attention", "65536x1x128", "--no-flash", "--format", "json")
    assert json.loads(naive.stdout)["points"][0]["intensity_flop_per_byte"] == pytest.approx(258.5 / 8, rel=0.01)


@pytest.mark.parametrize(("text", "size"), [("2GiB", 2 * 2**30), ("16gb", 16e9), ("512MB", 512e6), ("1e9", 1e9)])
def test_bytes_are_read_as_people_write_them(text, size):
    answer = json.loads(run("roofline", "--gpu", "h100-sxm", "--copy", text, "--format", "json").stdout)
    assert answer["points"][0]["memory_bytes"] == 2 * size


def test_advice_comes_with_its_gain():
    def advised(*options):
        answer = json.loads(run("roofline", "--gpu", "h100-sxm", *options, "--format", "json").stdout)
        assert all(row["gain_ratio"] == pytest.approx(row["before_s"] / row["after_s"]) for row in answer["advice"])
        return answer, {row["change"]: row["gain_ratio"] for row in answer["advice"]}

    answer, changes = advised("--matmul", "16x8192x8192")
    batch = next(gain for change, gain in changes.items() if change.startswith("batch of"))
    assert batch > 8  # 16 rows read as many weights as 256 would
    assert "helps most" in answer["lead"]
    assert changes["precision fp8"] == pytest.approx(2, rel=0.05)
    _, changes = advised("--attention", "8192x32x128", "--no-flash")
    assert max(changes, key=changes.get).startswith("a fused")
    _, changes = advised("--model", "8b", "--gpus", "8")
    assert 1 < changes["precision fp8"] < 2


def test_a_roofline_needs_something_to_draw():
    assert "--gpus" in str(run("roofline", "--gpu", "h100-sxm", "--all-reduce", "1e9").exception)
    assert "has 2 sizes" in str(run("roofline", "--gpu", "h100-sxm", "--matmul", "8x8").exception)


def test_validate_reports_by_source_and_fails_above_a_limit(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(
        "id,model,gpu,n_gpus,seq_len,tp,pp,micro_batch,global_batch,measured_tokens_per_s_per_gpu\n"
        "a,llama-3-8b,h100-sxm,8,8192,1,1,1,64,10000\n"
        "b,llama-3-8b,h100-sxm,8,8192,1,1,1,64,\n"
    )
    report = json.loads(run("validate", "--measurements", path, "--format", "json").stdout)
    assert (report["rows"], report["predicted"]) == (2, 1)
    assert report["skipped"] == [{"id": "b", "reason": ANY}]
    failed = run("validate", "--measurements", path, "--max-error", "0.000001")
    assert failed.exception.exit_code == 5
    assert "macro-median" in str(failed.exception)
    table = list(csv.DictReader(io.StringIO(run("validate", "--measurements", path, "--format", "csv").stdout)))
    assert table[0]["id"] == "a"


def test_calibrate_writes_a_table_that_the_catalog_reads(tmp_path):
    path = tmp_path / "runs.csv"
    head = "id,model,gpu,n_gpus,seq_len,tp,pp,zero_stage,micro_batch,global_batch,measured_tokens_per_s_per_gpu\n"
    path.write_text(head + "".join(f"{k},llama-3-8b,h100-sxm,8,8192,1,1,3,{k},{8 * k},9000\n" for k in (1, 2, 4)))
    out = tmp_path / "calibration.csv"
    run("calibrate", "--measurements", path, "--format", "csv", "-o", out)
    rows = list(csv.DictReader(out.open()))
    assert {row["source_id"] for row in rows} == {"own-runs"}
    assert all(float(row["value"]) > 0 for row in rows)
    one = tmp_path / "one.csv"
    one.write_text(head + "1,llama-3-8b,h100-sxm,8,8192,1,1,3,1,8,9000\n")
    moved = json.loads(run("calibrate", one, "--format", "json").stdout)["rows"]
    ratio = next(row for row in moved if row["name"] == "1")  # one run helps already
    assert abs(ratio["after"] - 1) < 0.3 * abs(ratio["before"] - 1)
    none = tmp_path / "none.csv"
    none.write_text(head + "1,llama-3-8b,h100-sxm,8,8192,1,1,3,1,8,\n")
    assert "no usable runs" in str(run("calibrate", none).exception)


@pytest.mark.parametrize("value", [float("nan"), -4, 0, float("inf")])
def test_numbers_that_are_none_are_refused_alone_and_marked_in_columns(value):
    with pytest.raises(UsageError, match="positive, finite"):
        gpucost.throughput("llama-3-8b", "h100-sxm", 8, tensor=2, micro_batch=value, global_batch=8)
    table = gpucost.throughput("llama-3-8b", "h100-sxm", 8, tensor=2, micro_batch=[1, value], global_batch=8)
    assert table["reason"].tolist() == [0, 1]
