"""The fit: what moves, what stays, and what the ranges promise."""

import numpy as np
import pytest
from msgspec.structs import replace

from gpucost.calibration import fits, training
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.physics import calibration as core
from gpucost.physics.training import calibration as cal
from gpucost.physics.training.efficiency import DEFAULTS, PARAMETERS
from tests.bench.records import fit_own
from tools.ranges import WIDEST_RATIO, fit_ranges, levelled, one_voice


@pytest.fixture(scope="module")
def seen():
    """The rows that the shipped fit is made from, and what was observed of them."""
    found = fits.training_shipped(open_catalog())
    keep = np.flatnonzero(training.fit_rows(found))
    return [found.rows[index] for index in keep], training.observe(found).take(keep)


@pytest.fixture(scope="module")
def values(seen):
    return cal.fit(seen[1])


def without(rows, observations, source):
    keep = np.flatnonzero([row.source != source for row in rows])
    return observations.take(keep)


@pytest.mark.slow
def test_a_fit_lowers_the_error_and_stays_near_its_priors(seen, values):
    _, observations = seen
    before, after = (np.abs(cal.log_predicted(observations, v) - observations.log_measured) for v in (DEFAULTS, values))
    assert np.median(after) < np.median(before)
    moved = [abs(np.log(values[p.name] / p.prior)) / p.spread for p in PARAMETERS]
    assert max(moved) <= 4.0


def test_what_no_row_touches_stays_at_its_prior(values):
    for name in ("matrix_fraction.rubin", "matrix_fraction.cdna5"):
        assert values[name] == pytest.approx(DEFAULTS[name], rel=1e-12)


@pytest.mark.slow
def test_removing_a_source_moves_what_it_spoke_of_and_little_else(seen, values):
    rows, observations = seen
    less = cal.fit(without(rows, observations, "llm.c run script"))  # the only rows of native code
    assert less["quality.native"] == pytest.approx(DEFAULTS["quality.native"], rel=1e-9)
    assert values["quality.native"] != pytest.approx(DEFAULTS["quality.native"], rel=1e-3)
    for name in ("matrix_fraction.tpu", "quality.vendor", "quality.deepspeed", "host_us.deepspeed", "fp8_ratio"):
        assert less[name] == pytest.approx(values[name], rel=0.03), name


@pytest.mark.slow
def test_the_order_of_the_rows_does_not_matter(seen):
    _, observations = seen
    some = observations.take(np.arange(0, len(observations), 5))
    back = some.take(np.arange(len(some))[::-1])
    forward, backward = cal.fit(some), cal.fit(back)
    for name, value in forward.items():
        assert backward[name] == pytest.approx(value, rel=1e-3), name


def test_a_fit_recovers_a_planted_parameter(seen):
    _, observations = seen
    truth = DEFAULTS | {"scaleup_fraction": 0.60, "elementwise_passes": 60.0}
    planted = replace(observations, log_measured=cal.log_predicted(observations, truth))
    values = cal.fit(planted)
    assert values["scaleup_fraction"] == pytest.approx(0.60, rel=0.08)
    assert values["elementwise_passes"] == pytest.approx(60.0, rel=0.08)


def test_a_constant_is_never_moved(values):
    held = [one.name for one in PARAMETERS if not one.fitted]
    assert held
    assert all(values[name] == pytest.approx(DEFAULTS[name], rel=1e-12) for name in held)


def test_whitening_by_hand():
    # One source of four rows, all off by 0.3: the mean's deviation √(0.12² + 0.10²/4), shared over √4 rows.
    out = cal.whitened(np.full(4, 0.3), np.zeros(4, dtype=np.int64))
    assert out == pytest.approx(np.full(4, 0.3 / np.sqrt(0.12**2 + 0.0025) / 2))
    # Deviations within the source count against 0.10.
    out = cal.whitened(np.array([0.1, -0.1]), np.zeros(2, dtype=np.int64))
    assert out == pytest.approx([1.0, -1.0])


def synthetic(seed, count=4000):
    """Return a trait that doubles the errors of half the rows, and the scale of each row."""
    rng = np.random.default_rng(seed)
    flag = rng.random(count) < 0.5
    off = np.zeros(count, dtype=bool)
    traits = {name: (flag if name == "mixture_of_experts" else off) for name in cal.SCHEME.traits}
    return rng, flag, traits, np.where(flag, 0.8, 0.4)


def test_sides_hold_what_they_promise_on_lopsided_residuals():
    rng, flag, traits, scale = synthetic(7)
    size = rng.exponential(scale)
    residual = np.where(rng.random(len(flag)) < 0.5, 2 * size, -size)  # predicted too fast by twice as much
    weight = one_voice(np.arange(len(flag)))
    ranges = fit_ranges(residual, traits, weight, cal.SCHEME.usual, cal.SCHEME.sides)
    slower, faster = (core.width_of(traits, ranges, side) for side in cal.SCHEME.sides)
    for mine in (flag, ~flag):
        assert np.mean(residual[mine] > slower[mine]) == pytest.approx(0.10, abs=0.03)
        assert np.mean(-residual[mine] > faster[mine]) == pytest.approx(0.10, abs=0.03)
    assert np.median(slower / faster) == pytest.approx(2.0, rel=0.2)


def test_a_trait_that_no_row_speaks_of_widens_as_believed():
    rng = np.random.default_rng(8)
    residual, off = rng.normal(0, 0.4, 500), np.zeros(500, dtype=bool)
    ranges = fit_ranges(residual, {"seen": ~off, "unseen": off}, np.ones(500), 0.2)
    assert ranges["unseen"] == pytest.approx(np.exp(0.2), rel=0.02)


def test_ranges_hold_what_they_promise_on_synthetic_residuals():
    rng, flag, traits, scale = synthetic(7)
    residual = rng.laplace(0, scale)
    ranges = fit_ranges(residual, traits, one_voice(np.arange(len(flag))), cal.SCHEME.usual)
    inside = np.abs(residual) <= core.width_of(traits, ranges)
    assert np.mean(inside) == pytest.approx(0.80, abs=0.02)
    assert np.mean(inside[flag]) == pytest.approx(0.80, abs=0.04)
    assert ranges["mixture_of_experts"] == pytest.approx(2.0, rel=0.15)


def test_no_range_of_somebody_elses_is_narrower_than_a_source_differs_from_another():
    """80 % of a normal spread of 0.138 lie within 1.2816 of them: 0.177, whatever the rows say."""
    residual, off = np.full(100, 0.01), np.zeros(100, dtype=bool)
    ranges = fit_ranges(residual, {"odd": off}, np.ones(100), 0.2, cal.SCHEME.sides)
    assert ranges["base.slower"] == ranges["base.faster"] == pytest.approx(1.2816 * 0.138)


def test_a_class_of_ten_rows_holds_three_quarters_of_them():
    rng = np.random.default_rng(9)
    few = np.arange(2000) < 12
    residual = np.where(few, 0.9, rng.normal(0, 0.15, 2000))
    ranges = fit_ranges(residual, {"few": few}, np.ones(2000), 0.2)
    assert np.mean(np.abs(residual[few]) <= core.width_of({"few": few}, ranges)[few] + 1e-9) >= 0.75 or (
        ranges["few"] == WIDEST_RATIO
    )


def test_a_level_widens_until_the_least_share_lies_within_and_never_narrows():
    residual = np.linspace(0.1, 1.0, 10)
    traits = {"odd": np.zeros(10, dtype=bool)}
    narrow = levelled({"base": 0.2, "odd": 1.5}, residual, traits, np.ones(10))
    assert narrow == {"base": pytest.approx(0.7), "odd": 1.5}  # the seventh of ten is the first beyond 68 %
    wide = {"base": 3.0, "odd": 1.5}
    assert levelled(wide, residual, traits, np.ones(10)) == wide


def test_the_shipped_table_is_the_fit_of_the_shipped_measurements(values):
    for name, value in training_calibration(open_catalog()).values.items():
        assert values[name] == pytest.approx(value, rel=0.01), name


def test_own_runs_move_the_calibration_towards_them(tmp_path):
    catalog = open_catalog()
    row = {
        "model": "llama-3-8b",
        "gpu": "h100-sxm",
        "n_gpus": 8,
        "framework": "torchtitan",
        "precision": "bf16",
        "tp": 1,
        "pp": 1,
        "zero_stage": "3",
        "micro_batch": 2,
        "global_batch": 16,
        "seq_len": 8192,
        "activation_recompute": "none",
    }
    found = training.gather([row | {"id": "x", "measured_tokens_per_s_per_gpu": 1.0}], catalog)
    usual = training.predict(found, training_calibration(catalog))[0].predicted
    runs = [row | {"id": str(k), "measured_tokens_per_s_per_gpu": usual * 0.7, "seq_len": 8192 - k} for k in range(4)]
    own, table = fit_own(catalog, "training", runs)
    closer = training.predict(found, own)[0].predicted
    assert usual * 0.7 < closer < usual * 0.9
    assert {entry["source_id"] for entry in table} == {"own-runs"}


def test_one_run_of_ones_own_helps_the_next_and_narrows_its_range():
    catalog = open_catalog()
    base = training_calibration(catalog)
    row = {
        "model": "llama-3-8b", "gpu": "h100-sxm", "n_gpus": 8, "framework": "torchtitan", "precision": "bf16", "tp": 1,
        "pp": 1, "zero_stage": "3", "micro_batch": 2, "seq_len": 8192, "activation_recompute": "none",
    }  # fmt: skip
    next_run = training.gather(
        [row | {"id": "next", "n_gpus": 16, "measured_tokens_per_s_per_gpu": 1.0}], catalog, as_written=True
    )
    usual = training.predict(next_run, base)[0]
    first = training.gather([row | {"id": "first", "measured_tokens_per_s_per_gpu": 1.0}], catalog, as_written=True)
    slow = training.predict(first, base)[0].predicted * 0.75  # this stack takes a third longer than its class
    own, _ = fit_own(catalog, "training", [row | {"id": "first", "measured_tokens_per_s_per_gpu": slow}])
    told = training.predict(next_run, own)[0]
    assert 0.75 * usual.predicted < told.predicted < 0.99 * usual.predicted  # at twice the GPUs
    seen = training.predict(first, base)[0], training.predict(first, own)[0]
    narrower = [np.log(after.high / after.low) / np.log(before.high / before.low)
                for before, after in ((usual, told), seen)]  # fmt: skip
    assert narrower[1] < narrower[0] < 0.97  # most at the run itself, less at twice its GPUs
    assert own.runs[0].ratio == pytest.approx(1 / 0.75)
