"""Interruptions: formulas against brute force, simulation and figures from papers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost.money import spot


def one(value):
    return np.array([float(value)])


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
    assert spot.gang_rate_per_hour(one(rate), one(nodes))[0] == pytest.approx(rate * nodes)
    alone = spot.stretch_ratio(one(rate), one(1), one(0.02), one(0.2))
    gang = spot.stretch_ratio(one(rate * nodes), one(1), one(0.02), one(0.2))
    assert gang[0] >= alone[0]


def test_llama_3_was_interrupted_every_three_hours():
    # 419 unexpected interruptions in 54 days on 16,384 accelerators (arXiv:2407.21783, section 3.3.4).
    per_year = 419 / 16_384 * 365 / 54
    assert 1 / spot.rate_from_gpu_years(one(per_year), one(16_384))[0] == pytest.approx(54 * 24 / 419)


def test_a_bucket_of_twenty_percent_is_an_exponential():
    rate = spot.rate_from_monthly_fraction(one(0.2))[0]
    assert np.exp(-rate * 730) == pytest.approx(0.8)


def test_waiting_takes_calendar_time_but_is_not_paid():
    # Up 4 hours at a time, available 80 % of the time: an hour of waiting per loss.
    assert spot.wait_hours_per_interruption(one(0.8), one(4))[0] == pytest.approx(1.0)
    assert spot.calendar_ratio(one(1.1), one(0.25), one(1.0))[0] == pytest.approx(1.1 * 1.25)
