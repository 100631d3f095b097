"""A service level: percentiles under load size the replicas, for every accelerator, at a price."""

import numpy as np
import pytest

import gpucost
from gpucost.ask.inference import request_of
from gpucost.catalog import open_catalog
from gpucost.errors import DataError, NothingFitsError, UnknownNameError, UsageError
from gpucost.serving.load import traffic_of
from gpucost.workloads.arrivals import own_trace, trace_of, variation_by

CATALOG = open_catalog()
LEVEL = {"slo_ttft": "500ms", "slo_tpot": "40ms"}


def ask(**wanted):
    stated = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "prompt_tokens": 1000, "output_tokens": 250, **wanted}
    return gpucost.inference(**stated, catalog=CATALOG).payload


def test_the_percentile_of_every_time_keeps_its_target():
    answer = ask(requests_per_s=20, **LEVEL)
    row = answer["levels"][0]
    assert row["ttft_p95_ms"] <= 500
    assert row["tpot_p95_ms"] <= 40
    assert row["ttft_p50_ms"] <= row["ttft_p95_ms"] <= row["ttft_p99_ms"]
    assert row["goodput_fraction"] >= 0.9
    assert row["requests_per_s"] * row["replicas"] == pytest.approx(20)
    assert row["requests_per_s"] <= row["held_requests_per_s"]


def test_replicas_are_the_fewest_that_hold_the_load():
    row = ask(requests_per_s=60, **LEVEL)["options"][0]
    assert row["replicas"] == np.ceil(60 / row["level"]["held_requests_per_s"])


@pytest.mark.slow
def test_a_stricter_level_costs_more_and_holds_less():
    loose, strict = (ask(slo_tpot=f"{ms}ms")["options"][0] for ms in (60, 15))
    assert strict["level"]["held_requests_per_s"] < loose["level"]["held_requests_per_s"]
    assert strict["usd_per_mtok"] > loose["usd_per_mtok"]
    assert strict["usd_per_1000_requests"] == pytest.approx(strict["usd_per_mtok"] * 1250 / 1000)


def test_burstier_arrivals_hold_less_of_a_strict_first_token():
    level = {"slo_ttft": "1.5s"}
    poisson, bursty = (ask(arrivals=one, **level)["options"][0]["level"] for one in ("poisson", "4"))
    assert bursty["held_requests_per_s"] < poisson["held_requests_per_s"]


@pytest.mark.slow
def test_longer_tails_of_lengths_hold_less():
    even, spread = (ask(prompt_p95=p95, **LEVEL)["options"][0]["level"] for p95 in (1001, 3600))
    assert spread["held_requests_per_s"] < even["held_requests_per_s"]


def test_the_percentile_holds_over_the_day_with_replicas_for_it():
    """A quiet night lets the busiest hours be fuller, yet no fuller than their share of late requests allows."""
    level = {"requests_per_s": 40, "slo_ttft": "500ms", "slo_tpot": "25ms"}
    flat, day = (ask(profile=profile, **level) for profile in ("flat", "consumer"))
    row, hours = day["levels"][0], day["hours"]
    assert row["held_requests_per_s"] > flat["levels"][0]["held_requests_per_s"]
    assert "hours" not in flat
    assert row["tpot_p95_ms"] <= 25
    assert [hour["tpot_ms"] for hour in hours] == sorted((hour["tpot_ms"] for hour in hours), reverse=True)
    assert sum(hour["hours"] for hour in hours) == 24
    assert sum(hour["hours"] * hour["requests_per_s"] for hour in hours) == pytest.approx(24 * 40)
    shares = [hour["hours"] * hour["requests_per_s"] / 24 / 40 for hour in hours]
    within = np.dot(shares, [hour["goodput_fraction"] for hour in hours])
    assert within == pytest.approx(row["goodput_fraction"], abs=0.02)
    assert within >= 0.94


def test_replicas_that_follow_the_load_are_as_busy_in_every_hour():
    level = {"requests_per_s": 40, "profile": "consumer", **LEVEL}
    fixed, follows = (ask(autoscale=scales, **level) for scales in (False, True))
    assert follows["options"][0]["usd_per_month"] < 0.8 * fixed["options"][0]["usd_per_month"]
    assert follows["levels"][0]["tpot_p95_ms"] <= 40
    for hour in follows["hours"]:
        assert hour["replica_requests_per_s"] <= follows["levels"][0]["held_requests_per_s"]


def test_a_load_beyond_the_level_says_how_many_replicas_would_keep_it():
    answer = ask(requests_per_s=60, replicas=1, **LEVEL)
    needed = ask(requests_per_s=60, **LEVEL)["levels"][0]["replicas"]
    assert any(f" {needed} replicas" in text for text in answer["warnings"])


def test_latency_rises_to_the_knee_and_breaks_beyond_it():
    knee = ask(requests_per_s=10, **LEVEL)["knee"]
    rates = [point["requests_per_s"] for point in knee]
    assert rates == sorted(rates)
    assert knee[-1]["tpot_ms"] > knee[0]["tpot_ms"]
    held = [point for point in knee if point["requests_per_s"] <= knee[-2]["requests_per_s"]]
    assert all(point["ttft_ms"] <= 500 and point["tpot_ms"] <= 40 for point in held)
    assert knee[-1]["ttft_ms"] > 500 or knee[-1]["tpot_ms"] > 40


def test_users_ask_at_the_rate_of_their_thinking():
    """The interactive response time law: at most 400 ÷ (30 s + the fastest answer) a second."""
    answer = ask(users=400, think_time="30s", **LEVEL)
    option = answer["options"][0]
    rate = option["tokens_per_month"] / 1250 / (730 * 3600)
    assert 400 / 40 < rate < 400 / 30
    assert answer["request"]["requests_per_s"] is None  # what was asked stays what was asked
    assert answer["request"]["users"] == 400


def test_ranges_hold_their_point():
    figures = ask(requests_per_s=10, **LEVEL)["options"][0]["level"]["figures"]
    for name in ("ttft_p95_ms", "tpot_p50_ms", "e2e_p99_s"):
        assert figures[f"{name}_low"] <= figures[name] <= figures[f"{name}_high"]


@pytest.mark.slow
def test_a_trace_brings_its_gaps_and_lengths():
    trace = trace_of("azure-conversation", CATALOG)
    gaps = np.diff(trace.arrived_s)
    assert gaps.std() / gaps.mean() > 1.05  # burstier than Poisson
    answer = ask(arrivals="azure-conversation", prompt_tokens=None, output_tokens=None, **LEVEL)
    assert answer["options"][0]["level"]["held_requests_per_s"] > 0
    means = (answer["request"]["prompt_tokens"], answer["request"]["output_tokens"])
    assert means == pytest.approx((trace.prompt_tokens.mean(), trace.output_tokens.mean()), rel=0.25)  # of a whole hour


def test_a_trace_brings_what_its_prompts_share():
    """Mooncake's prompts repeat; its mean is that of the hour, and each prompt keeps what it had of others."""
    trace = trace_of("mooncake-conversation", CATALOG)
    assert (trace.cached_tokens <= trace.prompt_tokens).all()
    assert (np.diff(trace.arrived_s) >= 0).all()
    request = request_of(CATALOG, model="8b", arrivals="mooncake-conversation", slo_ttft="10s")
    traffic = traffic_of(request, CATALOG)
    assert request.prefix_hit_fraction == pytest.approx(0.374)
    assert traffic.cached_tokens.sum() / traffic.prompt_tokens.sum() == pytest.approx(0.374, abs=0.01)
    assert np.corrcoef(traffic.cached_tokens, trace.cached_tokens[: len(traffic.gaps)])[0, 1] > 0.95
    level = {"arrivals": "mooncake-conversation", "slo_ttft": "10s", "prompt_tokens": None, "output_tokens": None}
    shared, cold = (ask(prefix_hit=hit, **level)["options"][0]["level"] for hit in (None, 0))
    assert shared["held_requests_per_s"] > 1.2 * cold["held_requests_per_s"]


def test_an_own_trace_may_say_what_was_seen(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("arrived_s,prompt_tokens,output_tokens,prompt_tokens_seen_before\n0,100,10,0\n5,300,10,200\n")
    request = request_of(CATALOG, model="8b", arrivals=str(path), slo_ttft="10s")
    assert request.prefix_hit_fraction == pytest.approx(0.5)
    assert traffic_of(request, CATALOG).cached_tokens.tolist() == [0, 200]


def test_cost_follows_the_phases_and_cached_tokens_stand_apart():
    """What prompts, cached tokens and outputs cost adds up to the bill of a request."""
    cold, warm = (ask(requests_per_s=60, prefix_hit=hit, **LEVEL)["options"][0] for hit in (0, "50%"))
    assert cold["usd_per_mtok_cached"] is None
    assert warm["usd_per_mtok_cached"] < 0.2 * warm["usd_per_mtok_fresh"]
    for row, hit in ((cold, 0.0), (warm, 0.5)):
        prompts = 1000 * ((1 - hit) * row["usd_per_mtok_fresh"] + hit * (row["usd_per_mtok_cached"] or 0.0))
        whole = prompts + 250 * row["usd_per_mtok_output"]
        assert whole / 1000 == pytest.approx(row["usd_per_1000_requests"], rel=1e-6)
        share = row["level"]["prompt_time_fraction"]
        assert prompts / whole == pytest.approx(share, rel=1e-6)


def test_phases_apart_have_replicas_of_their_own():
    """Each pool carries the load within what one of its replicas holds; they pay as many GPUs as both have."""
    row = ask(requests_per_s=60, disaggregated=True, **LEVEL)["options"][0]
    pools = row["level"]["pools"]
    for phase in ("prompt", "token"):
        assert pools[f"{phase}_replicas"] == np.ceil(60 / pools[f"{phase}_replica_requests_per_s"])
    assert row["replicas"] == pools["prompt_replicas"] + pools["token_replicas"]
    share = pools["prompt_replicas"] / row["replicas"]
    assert row["usd_per_mtok_input"] * 1000 / (row["usd_per_1000_requests"] * 1000) == pytest.approx(share, rel=1e-6)
    figures = row["level"]["figures"]
    assert figures["ttft_p95_ms"] <= 500
    assert figures["tpot_p95_ms"] <= 40
    both = ask(requests_per_s=60, **LEVEL)["options"][0]["level"]["figures"]
    assert figures["tpot_p99_ms"] / figures["tpot_p50_ms"] < both["tpot_p99_ms"] / both["tpot_p50_ms"]
    assert pools["transfer_mean_ms"] > 0


def test_the_cache_goes_over_the_link():
    """A Llama 3.1 8B token keeps 2 · 8 heads · 128 · 32 layers in 16 bits: 131 kB, a thousand of them 131 MB."""
    pools = ask(gpu="h100-sxm", disaggregated=True, **LEVEL)["options"][0]["level"]["pools"]
    gb_per_s = 0.131072 / pools["transfer_mean_ms"] * 1000
    assert 10 < gb_per_s < 900  # from a network card to NVLink
    assert pools["prompt_replicas"] + pools["token_replicas"] == pytest.approx(1)


def test_ranges_know_the_sampling():
    figures = ask(requests_per_s=10, own_output_tokens_per_s=2500, replica_gpus=1, **LEVEL)["options"][0]["level"]
    for name in ("ttft_p99_ms", "e2e_p95_s"):
        figure = figures["figures"]
        assert figure[f"{name}_low"] < 0.97 * figure[name]
        assert figure[f"{name}_high"] > 1.03 * figure[name]


def test_a_rerun_is_equal():
    assert ask(requests_per_s=10, **LEVEL) == ask(requests_per_s=10, **LEVEL)


def test_a_level_that_nothing_keeps_says_what_is_reached():
    with pytest.raises(NothingFitsError) as refusal:
        ask(slo_tpot="1ms")
    assert 1 < float(refusal.value.change["slo_tpot"].removesuffix("ms")) < 100


def test_a_time_that_no_replica_reaches_alone_is_refused_as_without_a_level():
    with pytest.raises(NothingFitsError) as refusal:
        ask(tpot="1ms", **LEVEL)
    assert float(refusal.value.change["tpot"].removesuffix("ms")) > 1


def test_a_trace_out_of_order_is_refused_by_its_row(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("arrived_s,prompt_tokens,output_tokens\n0,10,10\n5,10,10\n4,10,10\n")
    with pytest.raises(DataError) as fault:
        own_trace(str(path))
    assert (fault.value.row, fault.value.column) == (4, "arrived_s")
    path.write_text("arrived_s,prompt_tokens,output_tokens\n-1,10,10\n5,10,10\n")
    with pytest.raises(DataError) as fault:
        own_trace(str(path))
    assert fault.value.row == 2


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"arrivals": "poison", **LEVEL}, UnknownNameError),
        ({"arrivals": "99", **LEVEL}, UsageError),
        ({"output_p95": 100, **LEVEL}, UsageError),
        ({"percentile": 99}, UsageError),
        ({"think_time": "5s"}, UsageError),
        ({"users": 10, "requests_per_s": 1}, UsageError),
    ],
)
def test_what_means_nothing_is_refused(wanted, error):
    with pytest.raises(error):
        ask(**wanted)


def test_a_lognormal_has_the_percentile_that_was_said():
    variation = variation_by(250, 700)
    sigma = np.sqrt(np.log1p(variation**2))
    assert 250 * np.exp(1.6449 * sigma - sigma**2 / 2) == pytest.approx(700, rel=1e-6)


@pytest.mark.slow
def test_agents_and_the_workbook_show_the_table(tmp_path):
    from click.testing import CliRunner
    from openpyxl import load_workbook

    from gpucost.agents.compact import short
    from gpucost.cli import cli

    answer = ask(requests_per_s=20, **LEVEL)
    assert short(answer)["levels"][0]["ttft_p95_ms"] == pytest.approx(answer["levels"][0]["ttft_p95_ms"], rel=1e-3)
    words = ["inference", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--prompt-tokens", "1000"]
    words += ["--output-tokens", "250", "--requests-per-s", "20", "--slo-ttft", "500ms", "--slo-tpot", "40ms"]
    done = CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "level.xlsx")])
    assert done.exit_code == 0, done.output
    rows = list(load_workbook(tmp_path / "level.xlsx")["Service level"].iter_rows(values_only=True))
    assert any(row[0] == answer["levels"][0]["gpu"] for row in rows)
    knee = [row[0] for row in rows[-len(answer["knee"]) :]]
    assert knee == pytest.approx([point["requests_per_s"] for point in answer["knee"]])
