"""Load tests: read as they were sent, predicted without what was measured, and shown by `gpucost validate`."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from gpucost.calibration import load
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import serving_calibration
from gpucost.cli.validate import validate

CATALOG = open_catalog()
ROWS = {row["id"]: row for row in CATALOG.rows("load_measurements")}
SPARK = "load-133"  # random lengths, burstiness 0.7, 0.3 requests a second


def predicted(row):
    items, _ = load.predict([row], CATALOG, serving_calibration(CATALOG))
    return {item.metric: item for item in items}


def test_a_test_is_sent_as_it_says():
    rated, closed = (load.read_test(ROWS[name], CATALOG) for name in (SPARK, "load-102"))
    assert rated.rate == 0.3
    assert rated.variation == pytest.approx(0.7**-0.5)
    assert rated.even
    assert closed.rate is None
    assert (closed.clients, closed.requests, closed.row.replicas) == (256, 1024, 2)  # of one of its two replicas
    assert load.read_test(ROWS["load-113"], CATALOG).seats == 8
    assert load.read_test(ROWS["load-110"], CATALOG).row.deployment.pipeline == 8


def test_requests_have_the_rate_the_gaps_and_the_lengths_of_the_test():
    test = load.read_test(ROWS[SPARK] | {"requests": 4000}, CATALOG)
    requests = load.sent(test)
    gaps = np.diff(requests.arrived_s)
    assert 1 / gaps.mean() == pytest.approx(0.3, rel=0.06)
    assert gaps.std() / gaps.mean() == pytest.approx(0.7**-0.5, rel=0.06)
    assert requests.prompt_tokens.mean() == pytest.approx(4074.1, rel=0.01)
    assert requests.output_tokens.min() >= 0.09 * 485.5
    assert requests.output_tokens.max() <= 1.95 * 485.5


def test_predictions_do_not_see_what_was_measured():
    row = ROWS[SPARK]
    other = {name: value * 3 if name.endswith(("_ms", "_s")) and value else value for name, value in row.items()}
    ours, theirs = ({name: item.predicted for name, item in predicted(one).items()} for one in (row, other))
    assert ours == theirs


def test_ranges_hold_their_point_and_percentiles_rise():
    figures = predicted(ROWS[SPARK])
    for item in figures.values():
        assert item.low <= item.predicted <= item.high
    for time, unit in (("ttft", "ms"), ("tpot", "ms"), ("e2e", "s")):
        names = [f"{time}_{name}_{unit}" for name in ("p50", "p90", "p95", "p99")]
        rising = [figures[name].predicted for name in names if name in figures]
        assert rising == sorted(rising)


def test_times_of_bundled_tokens_are_not_compared():
    assert not any(metric.startswith("tpot") for metric in predicted(ROWS["load-001"]))


def test_tests_that_state_what_they_ran_are_as_near_as_their_first_predictions():
    """By the ledger: a median error of 20 %, and 92 % inside the range."""
    spark = [row for row in ROWS.values() if row["source_name"].startswith("djangodevreng")]
    items, found = load.predict(spark, CATALOG, serving_calibration(CATALOG))
    assert not found.skipped
    assert np.median([abs(item.error_fraction) for item in items]) < 0.3
    assert np.mean([item.low <= item.measured <= item.high for item in items]) > 0.75


def test_a_file_of_ones_own_is_validated(tmp_path):
    path = tmp_path / "tests.csv"
    row = {name: "" if value is None else value for name, value in ROWS["load-134"].items() if name != "source_id"}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row)
        writer.writerow(row | {"id": "empty", **{name: "" for name in row if name in load.METRICS}})
    answer = CliRunner().invoke(validate, ["--kind", "load", "--measurements", str(path), "--format", "json"])
    assert answer.exit_code == 0, answer.output
    report = json.loads(answer.stdout)
    assert {item["metric"] for item in report["items"]} == {name for name in load.METRICS if row.get(name)}
    assert [entry["id"] for entry in report["skipped"]] == ["empty"]
    assert set(report["by_metric"]) <= set(load.METRICS)
