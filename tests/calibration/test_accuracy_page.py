"""The published accuracy table: it can only be changed knowingly."""

import csv
from pathlib import Path

import numpy as np
import pytest

from benchmarks import accuracy, accuracy_page, calculon, load_peers
from gpucost.calibration import fits, measurements, training
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.physics.training import calibration as cal
from tools import choice, outside, training_fit

HELD_OUT = "Korthikanti et al. 2022 Table 5"


@pytest.fixture(scope="module")
def table():
    return {(row["part"], row["held_out"]): row for row in csv.DictReader(accuracy.TABLE.open())}


@pytest.fixture(scope="module")
def measured():
    catalog = open_catalog()
    return fits.training_shipped(catalog), training_calibration(catalog)


@pytest.mark.slow
def test_a_held_out_source_errs_as_the_page_says(table, measured):
    """The page leaves sources out in parts; so does this, of which one part is fitted."""
    found, calibration = measured
    of, source = training_fit.observed(found), found.row_sources
    part = next(part for part in choice.folds(source.tolist(), outside.PARTS) if HELD_OUT in part)
    values = of.fitted(~np.isin(source, list(part)), calibration.values)  # as the page's fits begin
    seen, mine = training.observe(found), source == HELD_OUT
    predicted = np.exp(cal.log_predicted(seen.take(np.flatnonzero(mine)), values))
    actual = np.exp(seen.log_measured[mine])
    stated = float(table[f"training source: {HELD_OUT}", "source"]["median_abs_error_fraction"])
    assert np.median(np.abs(predicted / actual - 1)) == pytest.approx(stated, abs=0.005)


def test_the_in_sample_figures_are_those_of_the_shipped_calibration(table, measured):
    found, calibration = measured
    items = [item for item in training.predict(found, calibration) if item.group not in training.FLOP_BASES]
    stated = table["training: all rows", "nothing (in-sample)"]
    figures = measurements.statistics(items)
    assert int(stated["rows"]) == figures["predicted"], (
        "rows joined: python -m docs.generate accuracy.csv, and the rest"
    )
    for name in ("median_abs_error_fraction", "p90_abs_error_fraction", "macro_median_abs_error_fraction"):
        assert figures[name] == pytest.approx(float(stated[name]), abs=0.003), name


def test_the_model_beats_both_rules(table):
    held = table["training: core rows with a stated layout", "source"]
    for rule in ("6·N·D at 40 %", "constant MFU"):
        other = table["training: core rows with a stated layout", rule]
        for name in ("macro_median_abs_error_fraction", "p90_abs_error_fraction"):
            assert float(held[name]) < 0.7 * float(other[name]), (rule, name)


def test_the_page_shows_the_table(table):
    text = Path(accuracy.PAGE).read_text("utf-8")
    assert text == accuracy_page.page(Path(accuracy.TABLE).read_text("utf-8"))


def test_peers_are_asked_the_load_tests_that_they_can_say():
    """Plain layers have the parameters of their model; what they say belongs to figures that the rows state."""
    catalog = open_catalog()
    rows = {row["id"]: row for row in catalog.rows("load_measurements")}
    said = accuracy_page.load_peers()
    assert {peer for peer, _, _ in said} == {"aiconfigurator", "blis"}
    for (_, name, metric), value in said.items():
        assert value > 0
        assert rows[name][metric], "generate benchmarks/load_peers.csv again"
    for name, matrices in (("llama-3.1-70b", 3 * 28672), ("qwen3-coder-30b-a3b", 128 * 3 * 768)):
        model = catalog.architecture(name)
        made = load_peers.config(model, "int4")
        assert load_peers.plain(model)
        held = made.get("num_experts", 1) * 3 * made.get("moe_intermediate_size", made["intermediate_size"])
        assert held == matrices
        assert made["quantization_config"]["bits"] == 4
    assert not load_peers.plain(catalog.architecture("deepseek-v3"))


def test_calculon_is_asked_the_runs_that_it_can_express():
    """Its degrees make the accelerators of the row; two matrices of its feed-forward hold what three gated ones do."""
    rows = {row.id: row for row in fits.training_shipped(open_catalog()).rows if calculon.expresses(row)}
    ran = accuracy_page.calculon()
    assert len(ran) > 300
    assert not ran.keys() - rows.keys(), "generate benchmarks/calculon.csv again"
    for name in ran:
        row, run, model = rows[name], calculon.execution(rows[name]), calculon.application(rows[name])
        assert run["tensor_par"] * run["pipeline_par"] * run["data_par"] == run["num_procs"] == row.layout.gpus
        matrices = 3 if row.architecture.gated else 2
        assert 2 * model["feedforward"] == pytest.approx(matrices * row.architecture.ffn_hidden, abs=1)
        assert ran[name] > 0
