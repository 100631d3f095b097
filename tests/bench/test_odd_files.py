"""Bench files and logs that are strange are refused by their key, or read."""

import json
import os
from pathlib import Path

import pytest

import gpucost
from benchmarks.fuzz.good import (
    answers,
    bench,
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("notes",), 3),
        (("figures", 0), 3),
        (("figures", 0, "op"), [1]),
        (("figures", 0, "time_s"), "x"),
        (("machine", "gpus"), None),
        (("machine", "power_limit_w"), "much"),
        (("failed",), [3]),
    ],
)
def test_a_bench_of_other_types_is_refused_by_its_key(refused, path, value):
    found = json.loads(bench())
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    Path("bench.json").write_text(json.dumps(found))
    assert str(path[-1]) in refused(["bench", "bench.json", "--show"])


@pytest.mark.slow
def test_a_log_that_is_no_file_is_refused(refused):
    os.mkfifo("train.log")
    Path("answer.json").write_bytes(answers()[0])
    assert "pipe" in refused(["watch", "train.log", "--estimate", "answer.json"])
    assert "pipe" in refused(["calibrate", "--from-log", "/dev/zero", "--model", "8b", "--gpu", "l4", "--gpus", "8"])


def test_a_bench_whose_spread_is_no_number_is_refused(refused):
    saved = json.loads(bench())
    saved["figures"][0]["spread_fraction"] = "=1+1"
    Path("bench.json").write_text(json.dumps(saved))
    assert "spread_fraction" in refused(["bench", "bench.json", "--show"])


def test_a_bench_whose_figures_have_no_time_is_read(tmp_path):
    from gpucost.bench.file import SCHEMA_VERSION, read_bench

    path = tmp_path / "bench.json"
    head = {
        "kind": "bench",
        "schema_version": SCHEMA_VERSION,
        "machine": {"device": "NVIDIA H100 80GB HBM3", "gpus": 1},
    }
    path.write_text(json.dumps({**head, "figures": [{"id": "copy 1", "op": "copy"}]}))
    assert read_bench(path)["figures"][0]["rounds_s"] == []


def test_a_bench_whose_products_name_no_precision_has_no_roofline():
    from gpucost.bench.verdict import roofline

    saved = json.loads(bench())
    for row in saved["figures"]:
        row.pop("precision", None)
    chip = gpucost.open_catalog().accelerator("h200")
    assert not roofline(saved, chip), "nothing says what was measured"
