"""Sweeps and tables of cases that are strange are refused with a sentence, or answered."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpucost
from gpucost.catalog import open_catalog
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


def test_equal_cases_are_asked_once(monkeypatch):
    from gpucost.sweeping.work import Trained

    asked, answers = [], Trained.answers
    monkeypatch.setattr(Trained, "answers", lambda self, stated: (asked.extend(stated), answers(self, stated))[1])
    columns = Trained("estimate", open_catalog()).rows(
        {"model": ["8b"], "gpu": ["h100-sxm"], "gpus": [8, 16], "tokens": ["1b"]},
        {name: np.zeros(40, int) for name in ("model", "gpu", "tokens")} | {"gpus": np.arange(40) % 2},
    )
    assert len(asked) == 2
    assert columns["gpus"].tolist() == [8, 16] * 20


def test_a_sweep_whose_rows_hold_little_or_are_unlike_each_other_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved = gpucost.sweep(model="8b", gpu="h100-sxm,h200", gpus=8, tokens="1b").payload
    bare = json.loads(json.dumps(saved | {"rows": [{}], "front": [{}]}))
    Path("bare.json").write_text(json.dumps(bare))
    assert gpucost.report("bare.json").to_text(details=True)
    unlike = json.loads(json.dumps(bare | {"rows": [{}, {"a": 1}]}))
    Path("unlike.json").write_text(json.dumps(unlike))
    assert gpucost.report("unlike.json").to_text(details=True)


NOTEBOOK = """
import sys
sys.modules["ipywidgets"] = None
from traitlets.config import Config
from IPython.core.interactiveshell import InteractiveShell
config = Config()
config.IPKernelApp.parent_appname = "notebook"
InteractiveShell.instance(config=config)  # what DuckDB takes for a notebook
import gpucost
frame = gpucost.sweep("estimate", model=["8b", "70b"], tokens="1b", gpu="h100-sxm").to_frame()
print(len(frame))
"""


@pytest.mark.slow
def test_a_notebook_without_widgets_sweeps():
    pytest.importorskip("IPython", reason="needs ipykernel, of the extra test")
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "2"
