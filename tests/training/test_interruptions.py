"""Interruptions: formulas against brute force, simulation and figures from papers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost.formula.arrays import evaluate
from gpucost.formula.language import KERNELS, Line, expand
from gpucost.money import spot
from gpucost.money.training_bill import CONSTANTS, LINES


def one(value):
    return np.array([float(value)])


def in_the_bill(name, **given):
    """Return one line of a run's bill from what it reads."""
    text = next(line.text for line in LINES if line.name == name)
    return float(evaluate(text, {**CONSTANTS, **given}))


@given(st.floats(1e-6, 1.0), st.floats(1e-4, 0.5))
def test_the_interval_is_the_minimum_of_the_stretch(rate, save):
    best = spot.optimal_interval_hours(one(rate), one(save))
    stretch = [spot.stretch_ratio(one(rate), best * factor, one(save), one(0.2))[0] for factor in (0.99, 1.0, 1.01)]
    assert stretch[1] <= stretch[0] * (1 + 1e-12)
    assert stretch[1] <= stretch[2] * (1 + 1e-12)


@settings(deadline=None)  # the first example loads scipy
@given(st.floats(1e-5, 2.0), st.floats(1e-3, 1.0))
def test_the_interval_is_lamberts(rate, save):
    from scipy.special import lambertw

    expected = (1 + lambertw(-np.exp(-rate * save - 1)).real) / rate
    assert spot.optimal_interval_hours(one(rate), one(save))[0] == pytest.approx(expected, rel=1e-6)


def test_the_interval_tends_to_youngs_rule():
    rate, save = 1e-6, 1e-3
    assert spot.optimal_interval_hours(one(rate), one(save))[0] == pytest.approx((2 * save / rate) ** 0.5, rel=1e-3)


def simulate(rate, interval, save, restart, segments, rng):
    """Run segments of work under memoryless interruptions and return the hours that each took."""
    hours = np.zeros(segments)
    for number in range(segments):
        need = interval + save
        while True:
            stop = rng.exponential(1 / rate)
            if stop >= need:
                hours[number] += need
                break
            hours[number] += stop
            while (again := rng.exponential(1 / rate)) < restart:
                hours[number] += again
            hours[number] += restart
    return hours


def test_stretch_and_spread_agree_with_a_simulation():
    rate, interval, save, restart = 0.4, 1.0, 0.1, 0.3
    hours = simulate(rate, interval, save, restart, 40_000, np.random.default_rng(7))
    args = (one(rate), one(interval), one(save), one(restart))
    assert spot.stretch_ratio(*args)[0] == pytest.approx(hours.mean() / interval, rel=0.02)
    assert spot.stretch_spread_ratio(*args, one(interval))[0] == pytest.approx(hours.std() / interval, rel=0.03)


def test_chance_averages_out_over_long_runs():
    args = (one(0.1), one(1.0), one(0.05), one(0.25))
    short, long = spot.stretch_spread_ratio(*args, one(10)), spot.stretch_spread_ratio(*args, one(1000))
    assert short[0] == pytest.approx(10 * long[0])


def test_without_interruptions_only_the_checkpoints_cost():
    assert spot.stretch_ratio(one(0), one(9), one(1), one(5))[0] == pytest.approx(10 / 9)
    assert spot.stretch_ratio(one(0), one(np.inf), one(1), one(5))[0] == 1.0
    assert spot.optimal_interval_hours(one(0), one(0.1))[0] == np.inf


@given(st.floats(1e-5, 0.2), st.integers(1, 64))
def test_a_gang_stops_with_any_of_its_nodes(rate, nodes):
    given = {"preemptions_per_node_hour": rate, "nodes": nodes, "failures_per_gpu_year": 0.0, "gpus": 8 * nodes}
    assert in_the_bill("stops_per_hour", **given) == pytest.approx(rate * nodes)
    alone = spot.stretch_ratio(one(rate), one(1), one(0.02), one(0.2))
    gang = spot.stretch_ratio(one(rate * nodes), one(1), one(0.02), one(0.2))
    assert gang[0] >= alone[0]


def test_llama_3_was_interrupted_every_three_hours():
    # 419 unexpected interruptions in 54 days on 16,384 accelerators (arXiv:2407.21783, section 3.3.4).
    per_year = 419 / 16_384 * 365 / 54
    given = {"preemptions_per_node_hour": 0.0, "nodes": 2048, "failures_per_gpu_year": per_year, "gpus": 16_384}
    assert 1 / in_the_bill("stops_per_hour", **given) == pytest.approx(54 * 24 / 419)


def test_a_bucket_of_twenty_percent_is_an_exponential():
    rate = spot.rate_from_monthly_fraction(one(0.2))[0]
    assert np.exp(-rate * 730) == pytest.approx(0.8)


def test_waiting_takes_calendar_time_but_is_not_paid():
    # Up 4 hours at a time, available 80 % of the time: an hour of waiting per loss.
    assert spot.wait_hours_per_interruption(one(0.8), one(4))[0] == pytest.approx(1.0)
    given = {"stretch_paid_ratio": 1.1, "stops_per_hour": 0.25, "wait_hours": 1.0}
    assert in_the_bill("stretch_calendar_ratio", **given) == pytest.approx(1.1 * 1.25)


@settings(deadline=None)
@given(st.floats(1e-3, 0.5), st.floats(1e-3, 0.5), st.floats(0.01, 2.0), st.floats(2.0, 5_000.0))
def test_the_rows_of_a_spreadsheet_give_what_the_kernels_give(rate, save, restart, work):
    given = {"rate": rate, "save": save, "restart": restart, "work": work, "longest": work, **spot.CONSTANTS}
    given["interval"] = float(KERNELS["best_interval_hours"].compute(one(rate), one(save), one(work))[0])
    for name, kernel in KERNELS.items():
        values = {key: np.float64(value) for key, value in given.items()}
        for row in expand([Line("x_ratio", f"{name}({', '.join(kernel.parameters)})")]):
            values[row.name] = evaluate(row.text, values)
        expected = kernel.compute(*(one(given[parameter]) for parameter in kernel.parameters))[0]
        assert values["x_ratio"] == pytest.approx(expected, rel=1e-6), name


def test_a_rate_of_nothing_is_calm_in_the_rows_too():
    values = {"rate": 0.0, "save": 0.1, "longest": 9.0, "interval": 9.0, "restart": 1.0, "work": 9.0, **spot.CONSTANTS}
    found = {}
    for name, kernel in KERNELS.items():
        for row in expand([Line(name, f"{name}({', '.join(kernel.parameters)})")]):
            values[row.name] = evaluate(row.text, values)
        found[name] = float(values[name])
    assert found == {
        "best_interval_hours": 9.0,
        "stretch_ratio": pytest.approx(9.1 / 9),
        "stretch_spread_ratio": 0.0,
    }
