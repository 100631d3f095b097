"""Predictions of shipped measurements: honest (nothing measured leaks in) and as accurate as the documentation says."""

import json
import random

import numpy as np
import pytest
from click.testing import CliRunner

from gpucost.calibration import serving
from gpucost.calibration.serving import met_sequences
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import serving_calibration
from gpucost.cli.validate import validate as command
from gpucost.physics.serving.calibration import MEASURED_ON
from gpucost.physics.serving.efficiency import DEFAULTS

CATALOG = open_catalog()
ROWS = CATALOG.rows("serving_measurements")
CALIBRATION = serving_calibration(CATALOG)
MEASURED = (
    "measured_output_tokens_per_s",
    "measured_total_tokens_per_s",
    "measured_output_tok_s_per_gpu",
    "ttft_ms",
    "tpot_ms",
)


@pytest.fixture(scope="module")
def payload():
    return serving.in_sample_payload(serving.gather(ROWS, CATALOG, as_written=True), CALIBRATION)


def points(rows):
    items, _ = serving.predict(serving.gather(rows, CATALOG, as_written=True), CALIBRATION)
    return [(item.metric, item.predicted, item.low, item.high) for item in items]


def test_no_engine_is_called_unmeasured_on_chips_of_a_maker_that_rows_measure_it_on():
    pairs = {(row["gpu"], row["engine_class"]) for row in ROWS if row["engine_class"]}
    assert {(CATALOG.accelerator(gpu).vendor, engine) for gpu, engine in pairs} <= MEASURED_ON


def test_measured_columns_never_influence_predictions():
    """Every stated figure is scaled by a random number: not one bit of a prediction changes."""
    dice = random.Random(7)
    sample = [dict(row) for row in ROWS[::9]]
    shaken = [
        {k: v * dice.uniform(0.2, 5) if k in MEASURED and v is not None else v for k, v in row.items()}
        for row in sample
    ]
    assert points(sample) == points(shaken)


def test_names_of_sources_ids_and_verdicts_never_influence_predictions():
    sample = [dict(row) for row in ROWS[::9]]
    renamed = [
        {**row, "id": f"r{i}", "source_name": "z", "source_locator": "", "source_id": "", "sanity": "", "core": 1}
        for i, row in enumerate(sample)
    ]
    assert points(sample) == points(renamed)


def test_the_order_of_rows_does_not_matter():
    sample = [dict(row) for row in ROWS[::31]]
    assert sorted(points(sample)) == sorted(points(sample[::-1]))


@pytest.mark.slow
def test_every_range_contains_its_point(payload):
    assert all(item["low"] < item["predicted"] < item["high"] for item in payload["items"])


def test_hardly_any_row_is_skipped_and_every_item_says_its_group(payload):
    assert len(payload["skipped"]) <= 0.05 * payload["rows"]
    assert {item["group"] for item in payload["items"]} == {"stated", "saturation"}
    assert {item["metric"] for item in payload["items"]} <= set(serving.METRICS)


def test_time_to_first_token_under_load_stands_apart(payload):
    assert payload["loaded_ttft"]
    assert "no accuracy" in payload["caveat"]


def test_core_rows_are_predicted_as_well_as_documented(payload):
    """In-sample bounds, a little above what docs/accuracy.md states; held-out figures stand there."""
    core = {row["id"] for row in ROWS if row["core"]}
    for group, median, p90 in (("stated", 0.15, 0.50), ("saturation", 0.25, 0.70)):
        error = [
            abs(i["predicted"] / i["measured"] - 1) for i in payload["items"] if i["group"] == group and i["id"] in core
        ]
        assert np.median(error) <= median
        assert np.percentile(error, 90) <= p90


def test_removing_a_source_moves_only_what_it_speaks_of():
    """Without llama.cpp's rows the parameters of MLC and of TPUs stay at their priors' pull, untouched ones exactly."""
    found = serving.gather(
        [row for row in ROWS if row["engine"] and "llama" in str(row["engine"]).lower()][:60], CATALOG
    )
    seen = serving.observe(found)
    values = serving.fit(seen, rounds=3)
    untouched = [name for name in values if name.endswith((".tpu", ".sglang", ".trtllm", ".cdna3"))]
    assert untouched
    assert all(values[name] == pytest.approx(DEFAULTS[name], rel=1e-12) for name in untouched)


def test_a_batch_larger_than_memory_runs_in_waves():
    """Whole outputs must fit: 8B on 24 GB holds ten, and two more make a second wave.

    0.9 × 25.8 GB − 16.1 of weights − 1.1 of workspace = 6.0 GB; 4,224 tokens of 131 kB are 0.55 GB.
    """
    base = {"id": "x", "source_name": "s", "model": "llama-3.1-8b", "gpu": "rtx-4090", "n_gpus": 1, "engine": "vllm",
            "scenario": "fixed-batch", "isl": 128, "osl": 4096, "measured_output_tokens_per_s": 100.0}  # fmt: skip
    batches = (4, 5, 6, 7, 8, 9, 10, 12)
    rows = [{**base, "id": str(n), "batch_or_concurrency": n} for n in batches]
    speed = [point for _, point, _, _ in points(rows)]
    assert max(speed) == speed[-2] > speed[-1]


def test_the_last_wave_of_few_requests_is_half_empty():
    base = {"id": "x", "source_name": "s", "model": "llama-3.1-8b", "gpu": "h100-sxm5-80gb", "n_gpus": 1, "isl": 1000,
            "osl": 1000, "engine": "vllm", "scenario": "offline", "measured_output_tokens_per_s": 100.0}  # fmt: skip
    notes = ("", "1000000 requests", "1000 requests")
    unsaid, many, few = (point for _, point, _, _ in points([{**base, "notes": text} for text in notes]))
    assert few < many == pytest.approx(unsaid, rel=1e-2)


def test_tokens_of_few_requests_run_among_fewer_than_the_places():
    """Three waves: full for 2.5, falling to none over one: ∫n² ÷ ∫n = (2.5 + 1/3) ÷ 3 of the places."""
    base = {"id": "x", "source_name": "s", "model": "llama-3.1-8b", "gpu": "h100-sxm5-80gb", "n_gpus": 1, "isl": 1000,
            "osl": 1000, "engine": "vllm", "scenario": "offline", "measured_output_tokens_per_s": 100.0}  # fmt: skip
    found = serving.gather(
        [{**base, "notes": text} for text in ("", "300 requests", "50 requests")], CATALOG, as_written=True
    )
    met = met_sequences(serving.observe(found).loads, np.full(3, 100.0))
    assert met == pytest.approx([100, 100 * (2.5 + 1 / 3) / 3, 100])


def test_the_command_prints_the_agreed_keys(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        "id,model,gpu,n_gpus,tpot_ms,tp,batch_or_concurrency,isl,osl\na,llama-3.1-70b,H200,8,14,8,32,1024,1024\n"
    )
    answer = CliRunner().invoke(command, ["--kind", "serving", "--measurements", str(path), "--format", "json"])
    assert answer.exit_code == 0, answer.output
    report = json.loads(answer.stdout)
    wanted = {
        "rows",
        "predicted",
        "skipped",
        "median_abs_error_fraction",
        "p90_abs_error_fraction",
        "macro_median_abs_error_fraction",
        "interval_coverage_fraction",
        "by_source",
        "items",
        "loaded_ttft",
        "stated",
        "saturation",
    }
    assert wanted <= set(report)
    assert {"id", "metric", "measured", "predicted", "low", "high", "group"} <= set(report["items"][0])
