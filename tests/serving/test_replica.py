"""The simulated replica against closed forms of queueing, conservation, and the steady state of the kernels."""

import math

import numpy as np
import pytest

from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import serving_calibration
from gpucost.physics.serving import steps
from gpucost.physics.serving.cases import ServedReplica, build
from gpucost.physics.serving.replica import ReplicaEngine, Requests, StepTimes, engine_of, sampled, simulate
from gpucost.serving.costing import PROFILES, MonthlyLoad
from gpucost.serving.load import Replica, Traffic, hours_of

COUNT = 60_000
ENDLESS = 1e12


def times_of(seats, *, step_s=lambda running: 0.0, prompt_s=lambda tokens: 0.0):
    prompts = [prompt_s(2.0**power) for power in range(22)]
    decode = [[step_s(running)] * 3 for running in range(seats + 1)]
    return StepTimes(
        decode=decode, length_step=1e9, alone=prompts, joined=[[0.0] * 22 for _ in range(seats.bit_length() + 1)]
    )


def poisson(rate, prompt, output, seed=7):
    count = len(prompt)
    arrived = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count))
    return Requests(arrived, prompt, output, np.zeros(count))


def exponential(mean, seed=3):
    return np.ceil(np.random.default_rng(seed).exponential(mean, COUNT)) + 1


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_prompts_of_one_length_one_at_a_time_wait_as_m_d_1(load):
    """W = D + ρ·D ÷ 2(1 − ρ)."""
    engine = ReplicaEngine(times_of(1, prompt_s=lambda tokens: 1.0), 1, ENDLESS, 1.0)
    served = simulate(engine, poisson(load, np.ones(COUNT), np.ones(COUNT)))
    assert served.ttft_s.mean() == pytest.approx(1 + load / (2 * (1 - load)), rel=0.04)


def test_prompts_that_differ_wait_as_pollaczek_and_khinchine_say():
    """W = E[S] + λ·E[S²] ÷ 2(1 − ρ)."""
    load, prompt = 0.6, exponential(1000)
    each_s = prompt / prompt.mean()
    engine = ReplicaEngine(times_of(1, prompt_s=lambda tokens: tokens / prompt.mean()), 1, ENDLESS, 1e9)
    served = simulate(engine, poisson(load, prompt, np.ones(COUNT)))
    expected = each_s.mean() + load * (each_s**2).mean() / (2 * (1 - load))
    assert served.ttft_s.mean() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("seats", [1, 4, 16])
def test_sequences_wait_for_a_place_as_m_m_k(seats):
    """W = S + C(k, λS)·S ÷ k(1 − ρ): Erlang's second formula."""
    load, output = 0.75, exponential(1000)
    service_s = (output - 1).mean() * 1e-3
    engine = ReplicaEngine(times_of(seats, step_s=lambda running: 1e-3), seats, ENDLESS, 1e9)
    served = simulate(engine, poisson(load * seats / service_s, np.ones(COUNT), output))
    offered = load * seats
    full = offered**seats / math.factorial(seats) / (1 - load)
    waits = full / (sum(offered**places / math.factorial(places) for places in range(seats)) + full)
    assert served.e2e_s.mean() == pytest.approx(service_s * (1 + waits / (seats * (1 - load))), rel=0.06)


def test_steps_that_grow_with_the_batch_share_the_processor():
    """M/G/1 with processor sharing: E[S] ÷ (1 − ρ), and a long request's time in proportion to its length."""
    load, output = 0.6, exponential(1000)
    alone_s = (output - 1) * 1e-3
    engine = ReplicaEngine(times_of(500, step_s=lambda running: 1e-3 * running), 500, ENDLESS, 1e9)
    served = simulate(engine, poisson(load / alone_s.mean(), np.ones(COUNT), output))
    assert served.e2e_s.mean() == pytest.approx(alone_s.mean() / (1 - load), rel=0.05)
    long = alone_s > 2 * alone_s.mean()
    assert (served.e2e_s / alone_s)[long].mean() == pytest.approx(1 / (1 - load), rel=0.05)


@pytest.fixture(scope="module")
def case():
    catalog = open_catalog()
    chip = catalog.accelerator("h100-sxm")
    replica = ServedReplica(catalog.architecture("llama-3.1-8b"), chip, catalog.default_system(chip.id))
    return build([replica], serving_calibration(catalog).values)[0]


def drawn(rate, seconds, seed=5, prompt=1000.0, output=250.0):
    draw, count = np.random.default_rng(seed), int(rate * seconds)
    lengths = [np.ceil(mean * draw.lognormal(-0.18, 0.6, count)) for mean in (prompt, output)]
    return poisson(rate, *lengths, seed=seed + 1)


def test_requests_in_the_system_are_rate_times_their_time(case):
    """Little's law, which holds for any queue: L = λ·W, counted at moments drawn apart from the loop."""
    served = simulate(engine_of(case, 1000, 250, 16_384), drawn(8.0, 1200))
    moments = np.random.default_rng(0).uniform(0, served.ended_s, 20_000)
    inside = np.searchsorted(np.sort(served.sent_s), moments) - np.searchsorted(np.sort(served.done_s), moments)
    rate = len(served.done_s) / served.ended_s
    assert inside.mean() == pytest.approx(rate * served.e2e_s.mean(), rel=0.02)


@pytest.mark.parametrize("rate", [0.5, 4.0, 10.0])
def test_time_per_token_is_the_steady_state_of_the_kernels(case, rate):
    served = simulate(engine_of(case, 1000, 250, 16_384), drawn(rate, 900))
    running, one = 1.0, np.ones(1)
    for _ in range(60):
        at = steps.steady(case, np.array([max(running, 1.0)]), 1000 * one, 250 * one)
        running = rate * 250 * float(at.tpot_s[0])
    assert served.tpot_s.mean() == pytest.approx(float(at.tpot_s[0]), rel=0.2)


def test_a_load_that_vanishes_leaves_the_unloaded_figures(case):
    served = simulate(engine_of(case, 1000, 250, 16_384), Requests(*np.array([[0.0], [1000.0], [250.0], [0.0]])))
    at = steps.steady(case, np.ones(1), np.array([1000.0]), np.array([250.0]), mixed=False)
    assert served.ttft_s[0] == pytest.approx(float(at.ttft_s[0]), rel=0.1)
    assert served.tpot_s[0] == pytest.approx(float(at.tpot_s[0]), rel=0.02)


def test_the_cache_is_never_overfull_and_empties(case):
    """Twice the cache is asked for: sequences give up their places, all end, and what was held never exceeds it."""
    engine = engine_of(case, 1000, 1000, 16_384)
    small = ReplicaEngine(engine.times, engine.seats, 40_000.0, engine.budget_tokens)
    served = simulate(small, drawn(6.0, 200, output=1000))
    assert served.preempted > 0
    assert served.peak_cache_tokens <= 40_000 + small.seats  # a step's tokens at most
    assert served.served.all()
    assert (served.first_s >= served.sent_s).all()
    assert (served.done_s >= served.first_s).all()


def test_a_request_larger_than_the_cache_is_refused_and_others_run(case):
    engine = engine_of(case, 1000, 100, 200_000)
    small = ReplicaEngine(engine.times, engine.seats, 5_000.0, engine.budget_tokens)
    served = simulate(small, Requests(np.zeros(3), np.array([1000.0, 90_000.0, 1000.0]), np.full(3, 50.0), np.zeros(3)))
    assert served.refused == 1
    assert served.served.tolist() == [True, False, True]


def test_a_rerun_is_equal_and_a_bound_keeps_what_was_served(case):
    engine, requests = engine_of(case, 1000, 250, 16_384), drawn(8.0, 60)
    first, second = simulate(engine, requests), simulate(engine, requests)
    assert np.array_equal(first.done_s, second.done_s)
    part = simulate(engine, requests, most_steps=300)
    assert part.stopped
    assert 0 < part.served.sum() < len(requests)
    assert np.array_equal(part.done_s[part.served], first.done_s[part.served])


def test_clients_that_wait_keep_so_many_requests_open(case):
    engine, requests = engine_of(case, 1000, 250, 16_384), drawn(8.0, 60)
    together = Requests(np.zeros(len(requests)), requests.prompt_tokens, requests.output_tokens, requests.cached_tokens)
    served = simulate(engine, together, at_most=16)
    assert served.peak_running <= 16
    sent, done = np.sort(served.sent_s), np.sort(served.done_s)
    assert np.allclose(sent[16:], done[:-16])  # each is sent when another is done


def test_users_think_between_requests(case):
    """The interactive response time law: users ÷ rate = think time + response time."""
    engine, requests = engine_of(case, 1000, 250, 16_384), drawn(8.0, 1200)
    think = np.random.default_rng(2).exponential(30.0, len(requests))
    served = simulate(engine, requests, at_most=200, think_s=think.tolist())
    sent = np.sort(served.sent_s)
    rate = len(sent) // 2 / (sent[3 * len(sent) // 4] - sent[len(sent) // 4])  # without those who come and go
    assert 200 / rate == pytest.approx(30.0 + served.e2e_s.mean(), rel=0.05)


def test_drafted_tokens_and_a_warm_cache_make_requests_shorter(case):
    engine, requests = engine_of(case, 1000, 250, 16_384), drawn(4.0, 300)
    plain = simulate(engine, requests)
    drafted = simulate(
        ReplicaEngine(engine.times, engine.seats, engine.cache_tokens, 8192, tokens_per_step=2.0), requests
    )
    assert drafted.tpot_s.mean() < 0.6 * plain.tpot_s.mean()
    warm = Requests(requests.arrived_s, requests.prompt_tokens, requests.output_tokens, 0.9 * requests.prompt_tokens)
    assert simulate(engine, warm).ttft_s.mean() < 0.7 * plain.ttft_s.mean()


@pytest.mark.parametrize(("ahead", "first_s"), [(False, 2.0), (True, 3.0)])
def test_what_arrives_while_a_step_runs_joins_the_next_or_the_one_after(ahead, first_s):
    """Steps of a second; a request at 3.5 s joins the step from 4 to 5 s, or where that is planned, from 5 to 6 s."""
    engine = ReplicaEngine(times_of(4, step_s=lambda running: 1.0), 4, ENDLESS, 64.0, ahead=ahead)
    arrived, ones = np.array([0.0, 3.5]), np.ones(2)
    served = simulate(engine, Requests(arrived, ones, np.array([20.0, 5.0]), 0 * ones))
    assert served.first_s[1] == pytest.approx(3.0 + first_s)
    alone = simulate(engine, Requests(arrived + np.array([0.0, 96.5]), ones, np.array([20.0, 5.0]), 0 * ones))
    assert alone.ttft_s[1] == pytest.approx(0.0)  # nothing runs: it starts at once


def test_a_day_is_its_hours_side_by_side():
    """A day simulated from end to end, its arrivals thinned from a Poisson process, against its kinds of hours apart.

    Percentiles of the day, and those of requests that are answered within two times.
    """
    weights, hour_s, most = np.array(PROFILES["consumer"]), 300.0, 9.0
    engine = ReplicaEngine(
        times_of(32, step_s=lambda running: 0.01 + 5e-4 * running, prompt_s=lambda tokens: 2e-5 * tokens),
        32,
        ENDLESS,
        2048.0,
        fused=False,
    )
    draw = np.random.default_rng(5)
    arrived = np.cumsum(draw.exponential(1 / most, int(24 * hour_s * most)))
    hour = (arrived // hour_s).astype(int) % 24
    arrived = arrived[draw.random(len(arrived)) < weights[hour] / weights.max()]
    prompt, output = (draw.exponential(mean, len(arrived)).round() + 1 for mean in (1000, 100))
    whole = simulate(engine, Requests(arrived, prompt, output, np.zeros(len(arrived))))

    one = np.ones(1)
    values, hours = np.unique(weights / weights.mean(), return_counts=True)
    load = MonthlyLoad(one, one, 5 * one, one, 0 * one, 1, None, False, 1, values, hours.astype(float))
    rate, day = hours_of(load, 1.0)
    assert rate == pytest.approx(5 * weights.max() / weights.mean())
    assert sum(kind.share for kind in day) == pytest.approx(1)
    assert sum(kind.hours for kind in day) == 24
    assert sum(kind.hours * kind.rate for kind in day) * rate == pytest.approx(24 * 5)
    count = 3000
    traffic = Traffic(draw.exponential(1.0, count), prompt[:count], output[:count], np.zeros(count), day)
    apart = Replica(engine).answers(traffic, most)
    for name in ("ttft_s", "e2e_s"):
        for percentile, near in ((50, 0.06), (95, 0.12)):
            day_long = np.percentile(getattr(whole, name), percentile)
            assert np.percentile(apart.counted(name), percentile) == pytest.approx(day_long, rel=near), (
                name,
                percentile,
            )
    for at in (0.1, 1.0):
        assert np.mean(apart.counted("ttft_s") <= at) == pytest.approx(np.mean(whole.ttft_s <= at), abs=0.03)


@pytest.mark.parametrize("variation", [1.0, 2.0])
def test_uneven_gaps_wait_as_kingman_says(variation):
    """W = S·ρ ÷ (1 − ρ)·(c_a² + c_s²) ÷ 2 in heavy traffic, with the variation of the gaps that are sent."""
    load = 0.9
    gaps = np.random.default_rng(5).gamma(1 / variation**2, variation**2 / load, COUNT)
    requests = Requests(np.cumsum(gaps), np.ones(COUNT), np.ones(COUNT), np.zeros(COUNT))
    served = simulate(ReplicaEngine(times_of(1, prompt_s=lambda tokens: 1.0), 1, ENDLESS, 1.0), requests)
    arrival_scv = gaps.var() / gaps.mean() ** 2
    assert served.ttft_s.mean() - 1 == pytest.approx(load / (1 - load) * arrival_scv / 2, rel=0.2)


@pytest.mark.parametrize("percentile", [None, 50, 95])
def test_the_noise_of_a_sample_holds_the_truth_four_times_of_five(percentile):
    """Waits of M/D/1 hang together: a range of independent times would hold the truth far less often."""
    engine = ReplicaEngine(times_of(1, prompt_s=lambda tokens: 1.0), 1, ENDLESS, 1.0)

    def waits(count, seed):
        return simulate(engine, poisson(0.7, np.ones(count), np.ones(count), seed)).ttft_s

    truth = sampled(waits(COUNT, 99), percentile)[0]
    ranges = [sampled(waits(3000, seed), percentile)[1] for seed in range(60)]
    assert 0.65 <= np.mean([low <= truth <= high for low, high in ranges]) <= 0.95


def test_attention_to_cached_tokens_is_counted_apart(case):
    engine = engine_of(case, 4000, 100, 5000)
    prompt, output = np.full(200, 4000.0), np.full(200, 100.0)
    cold = Requests(np.arange(200.0), prompt, output, np.zeros(200))
    warm = Requests(np.arange(200.0), prompt, output, 0.75 * prompt)
    assert simulate(engine, cold).cached_s == 0
    served = simulate(engine, warm)
    pairs = 200 * 1000 * 3000 * (engine.times.pair_s + 0.0)  # a thousand tokens of each meet three thousand
    assert served.cached_s == pytest.approx(pairs, rel=0.01)
    assert served.cached_s < served.prompt_s < simulate(engine, cold).prompt_s


def test_a_hopeless_run_ends_before_all_are_served(case):
    engine = engine_of(case, 1000, 250, 5000)
    crowd = Requests(np.zeros(2000), np.full(2000, 1000.0), np.full(2000, 250.0), np.zeros(2000))
    assert simulate(engine, crowd).served.all()
    ended = simulate(engine, crowd, late_s=0.5, most_late=50)
    assert ended.stopped
    assert not ended.served.all()
