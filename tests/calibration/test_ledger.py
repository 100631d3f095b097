"""The ledger of first predictions: written once, before the model sees a source, and never again."""

import csv
import shutil
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from gpucost.catalog import open_catalog
from gpucost.errors import UsageError
from tools import ledger

CATALOG = open_catalog()
DAY = date(2026, 11, 24)
FILES = ("models/ledger.csv", "models/measurements/first_predictions.csv", "models/measurements/training.csv")


@pytest.fixture
def checkout(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, tmp_path / name)
    return tmp_path


def row(name, **more):
    return {
        "id": name,
        "source_name": "A laboratory",
        "source_locator": "here",
        "source_id": "pytorch-torchtitan-benchmarks",
        "as_of": "2026-01",
        "model": "llama-3-8b",
        "gpu": "h100-sxm",
        "n_gpus": 8,
        "tp": 1,
        "pp": 1,
        "precision": "bf16",
        "framework": "torchtitan",
        "task": "pretrain",
        "value_basis": "tokens/s",
        "seq_len": 8192,
        "core": 1,
        "measured_tokens_per_s_per_gpu": 6000,
        **more,
    }


def test_entering_adds_below_and_leaves_every_line_that_stands(checkout):
    before = {name: (checkout / name).read_bytes() for name in FILES}
    lines = ledger.enter("training", [row("lab-1"), row("lab-2", n_gpus=64)], CATALOG, checkout, "abc1234", DAY)
    assert [line["rows"] for line in lines] == [2]
    for name, text in before.items():
        after = (checkout / name).read_bytes()
        assert after.startswith(text)
        assert after != text
    last = list(csv.DictReader((checkout / FILES[0]).open()))[-1]
    assert (last["source"], last["commit"], last["entered_on"]) == ("A laboratory", "abc1234", "2026-11-24")


def test_the_line_is_what_the_model_of_the_day_predicts(checkout):
    items, _ = ledger.predicted("training", [row("lab-1")], CATALOG)
    line = ledger.enter("training", [row("lab-1")], CATALOG, checkout, "abc1234", DAY)[0]
    assert line["median_abs_error_ratio"] == pytest.approx(abs(items[0].predicted / 6000 - 1))
    assert line["coverage_fraction"] == float(items[0].low <= 6000 <= items[0].high)


def test_a_source_that_the_model_has_seen_is_refused(checkout):
    before = (checkout / FILES[0]).read_bytes()
    for seen in ("torchtitan benchmarks", "MLPerf Training v4.0 results"):
        rows = [row("new-1", source_name=seen)]
        with pytest.raises(UsageError, match="has seen"):
            ledger.enter("training", rows, CATALOG, checkout, "abc1234", DAY)
    assert (checkout / FILES[0]).read_bytes() == before


def test_an_id_that_stands_and_a_source_without_a_line_are_refused(checkout):
    with pytest.raises(UsageError, match="already used"):
        ledger.enter("training", [row("titan-001")], CATALOG, checkout, "abc1234", DAY)
    with pytest.raises(UsageError, match=r"sources\.csv"):
        ledger.enter("training", [row("lab-1", source_id="nobody")], CATALOG, checkout, "abc1234", DAY)


def test_the_lines_agree_with_the_first_predictions_one_by_one():
    singles = CATALOG.rows("first_predictions")
    for line in CATALOG.rows("ledger"):
        mine = [one for one in singles if (one["kind"], one["source"]) == (line["kind"], line["source"])]
        error = np.array([abs(one["predicted"] / one["measured"] - 1) for one in mine])
        inside = np.mean([one["low"] <= one["measured"] <= one["high"] for one in mine])
        assert len(mine) == line["figures"]
        assert np.median(error) == pytest.approx(line["median_abs_error_ratio"], rel=1e-4)
        assert inside == pytest.approx(line["coverage_fraction"], abs=1e-5)


def test_the_measured_side_of_a_first_prediction_is_the_measurements_own():
    rows = {one["id"]: one for one in CATALOG.rows("training_measurements")}
    for one in CATALOG.rows("first_predictions"):
        if one["kind"] == "training":
            stated = rows[one["id"].split(" ")[0]]["measured_tokens_per_s_per_gpu"]
            if stated is None:  # the source states a utilisation alone
                continue
            assert one["measured"] == pytest.approx(stated, rel=1e-5)


def test_figures_are_written_at_six_digits_and_the_unknown_as_nothing(tmp_path):
    path = Path(tmp_path / "t.csv")
    ledger.append(path, ("a", "b"), [{"a": 1 / 3, "b": None}])
    ledger.append(path, ("a", "b"), [{"a": "x", "b": float("nan")}])
    assert path.read_text() == "a,b\n0.333333,\nx,\n"
