"""Sweeps and tables of cases that are strange are refused with a sentence, or answered."""

import json
from pathlib import Path

import numpy as np

import gpucost
from tests.commands import in_process


def test_a_sweep_leaves_the_connection_that_a_process_shares_to_its_owner(monkeypatch, tmp_path):
    """One that a fork inherits never answers."""
    import duckdb

    monkeypatch.delattr(duckdb, "read_parquet")
    asked = {"model": "8b", "gpu": "h100-sxm", "gpus": [8, 16], "tokens": "1b"}
    for into in (None, str(tmp_path / "out")):
        assert len(gpucost.sweep("estimate", into=into, **asked).to_frame()) == 2


def test_a_table_of_cases_without_end_to_the_right_is_refused(refused):
    Path("cases.csv").write_text(",".join(f"x{n}" for n in range(1001)) + "\n" + ",".join(["1"] * 1001))
    assert "1,001 columns" in refused(["sweep", "--cases", "cases.csv"])


def test_a_joined_sweep_sends_no_control_character_and_begins_no_formula(tmp_path):
    from gpucost.sweeping.chunks import join
    from gpucost.sweeping.work import parquet_of

    words = ["=1+1", "@SUM(A1)", "a\x1b[2J", "b\u202e", "fine, as it is"]
    (tmp_path / "a.parquet").write_bytes(parquet_of({"gpu": (np.arange(5), words), "gpus": np.arange(5) - 1.0}))
    join([tmp_path / "a.parquet"], str(tmp_path / "out.csv"), ".csv")
    lines = (tmp_path / "out.csv").read_text("utf-8").splitlines()
    assert lines[1:] == ["'=1+1,-1.0", "'@SUM(A1),0.0", r"a\x1b[2J,1.0", r"b\u202e,2.0", '"fine, as it is",3.0']


def test_a_sweep_of_nothing_says_what_its_question_lacks():
    assert "give --rent" in in_process("sweep", "--question", "tco").stdout


def test_a_refused_sweep_leaves_no_folder(refused, tmp_path):
    Path("cases.csv").write_text("gpu,gpus,tokens\nh100-sxm,8,1b\n")
    assert "--model is missing" in refused(["sweep", "--cases", "cases.csv", "-o", "out.csv"])
    assert [one.name for one in tmp_path.iterdir()] == ["cases.csv"]


def test_a_sweep_is_kept_in_a_folder_whose_name_begins_like_a_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = {"model": "8b", "gpu": "h100-sxm", "gpus": [8, 16], "tokens": "1b"}
    assert len(gpucost.sweep("estimate", into="~nobody", **asked).to_frame()) == 2


def test_a_sweep_of_many_sizes_keeps_few_clusters(monkeypatch):
    from gpucost.ask.estimate import request_of
    from gpucost.catalog import open_catalog
    from gpucost.training import sweep

    asked = {"model": ["8b"], "tokens": [1e10], "gpu": ["l40s"], "gpus": [8, 16, 24, 32, 40]}
    codes = {name: np.zeros(5, np.int64) for name in asked} | {"gpus": np.array([4, 0, 2, 1, 3])}
    whole = sweep.Sweeper(open_catalog(), request_of).rows(asked, codes)
    monkeypatch.setattr(sweep, "_CLUSTERS_AT_ONCE", 2)
    monkeypatch.setattr(sweep, "_LINES_KEPT", 0)
    few = sweep.Sweeper(open_catalog(), request_of)
    assert json.dumps(few.rows(asked, codes), default=np.ndarray.tolist) == json.dumps(whole, default=np.ndarray.tolist)
    assert len(few._clusters) <= 2


def test_a_sweep_whose_rows_hold_little_or_are_unlike_each_other_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved = gpucost.sweep(model="8b", gpu="h100-sxm,h200", gpus=8, tokens="1b").payload
    bare = json.loads(json.dumps(saved | {"rows": [{}], "front": [{}]}))
    Path("bare.json").write_text(json.dumps(bare))
    assert gpucost.report("bare.json").to_text(details=True)
    unlike = json.loads(json.dumps(bare | {"rows": [{}, {"a": 1}]}))
    Path("unlike.json").write_text(json.dumps(unlike))
    assert gpucost.report("unlike.json").to_text(details=True)
