"""Served as people run it: a server as it comes costs host time, stalls with every arrival, and holds fewer at once."""

import numpy as np
import pytest

from gpucost.calibration import importer
from gpucost.calibration import serving as validation
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import serving_calibration
from gpucost.physics.serving import steps as serving
from gpucost.physics.serving.bursts import varied_burst
from gpucost.physics.serving.cases import ServedReplica, build, seats
from gpucost.physics.serving.efficiency import DEFAULTS

CATALOG = open_catalog()


def deployment(gpu="h100-sxm5-80gb", model="llama-3.1-8b", engine="vllm", server="tuned"):
    chip = CATALOG.accelerator(gpu)
    system = CATALOG.default_system(chip.id)
    return ServedReplica(CATALOG.architecture(model), chip, system, engine, "bf16", server=server)


def steady(server, sequences=64.0, prompt=600.0, output=200.0, **more):
    case, _ = build([deployment(server=server, **more)], DEFAULTS)
    one = np.ones(1)
    return serving.steady(case, sequences * one, prompt * one, output * one)


def test_a_server_as_it_comes_is_slower_in_steps_and_prompts():
    tuned, default = steady("tuned"), steady("default")
    assert default.tpot_s[0] > 1.2 * tuned.tpot_s[0]
    assert default.ttft_s[0] > tuned.ttft_s[0]
    assert default.output_tokens_per_s[0] < tuned.output_tokens_per_s[0]


def test_its_host_time_grows_with_the_sequences_that_run():
    extra = [
        steady("default", n, output=1e6).tpot_s[0] - steady("tuned", n, output=1e6).tpot_s[0]
        for n in (1.0, 64.0, 256.0)
    ]
    each = DEFAULTS["served_sequence_us"] * 1e-6
    assert extra[1] - extra[0] == pytest.approx(63 * each, rel=0.05)
    assert extra[2] - extra[1] == pytest.approx(192 * each, rel=0.05)


def test_every_arrival_stalls_those_that_run():
    """By hand: 64 sequences of 200 tokens start 0.32 requests a step; each takes 10 ms from all, but not its own."""
    case, _ = build([deployment(server="default")], DEFAULTS)
    free, _ = build([deployment(server="default")], DEFAULTS | {"served_arrival_ms": 1e-9})
    one = np.ones(1)
    shares = [serving.prompts_share_s(c, 64 * one, 700 * one, 600 * one, 200 * one)[0] for c in (case, free)]
    assert shares[0] - shares[1] == pytest.approx(0.32 * DEFAULTS["served_arrival_ms"] * 1e-3, rel=0.02)


def test_local_engines_and_bare_steps_have_no_server():
    for engine in ("llama.cpp", "plain"):
        assert steady("default", 1.0, engine=engine).tpot_s[0] == steady("tuned", 1.0, engine=engine).tpot_s[0]


def test_vllm_seats_256_on_an_a100_and_1024_on_larger_chips_since():
    assert seats(deployment("a100-sxm4-80gb")) == 256
    assert seats(deployment("h100-sxm5-80gb")) == 1024
    assert seats(deployment("rtx-4090")) == 256
    assert seats(deployment("h100-sxm5-80gb", engine="sglang")) == np.inf


def test_a_burst_of_varied_lengths_drains_slower_than_one_of_equal_lengths():
    """Equal lengths run at full places to the end; varied ones leave n·e^(−x/μ), so that the longest run alone."""
    case, _ = build([deployment(server="default")], DEFAULTS)
    one = np.ones(1)
    varied = varied_burst(case, 500 * one, 500 * one, 200 * one, 200 * one)[0]
    step = serving.decode_step(case, 500 * one, 300 * one).total_s[0]
    equal = 500 * 200 / (serving.prompt_s(case, 200 * one, 500 * one)[0] + 200 * step)
    assert 0.2 * equal < varied < 0.9 * equal
    waves = varied_burst(case, 100 * one, 500 * one, 200 * one, 200 * one)[0]
    assert waves < varied  # fewer places, and the same queue


def test_a_burst_of_one_request_is_that_request():
    case, _ = build([deployment()], DEFAULTS)
    one = np.ones(1)
    alone = varied_burst(case, one, one, 100 * one, 200 * one)[0]
    step = serving.decode_step(case, one, 200 * one).total_s[0]
    assert alone == pytest.approx(200 / (serving.prompt_s(case, 100 * one, one)[0] + 200 * step), rel=1e-3)


def test_prompts_of_a_batch_are_read_at_once():
    """TensorRT-LLM's 896 prompts of 128 tokens take one compute-bound pass, not 896 passes that read all weights."""
    row = {"id": "x", "source_name": "s", "model": "mistral-7b", "gpu": "h200-sxm-141gb", "n_gpus": 1, "tp": 1,
           "engine": "TensorRT-LLM", "weight_precision": "fp8", "scenario": "fixed-batch", "isl": 128, "osl": 128,
           "batch_or_concurrency": 896, "measured_output_tokens_per_s": 20460.0}  # fmt: skip
    found = validation.gather([row], CATALOG, as_written=True)
    speed = float(np.exp(validation.log_predicted(validation.observe(found), DEFAULTS))[0])
    case, _ = build([found.rows[0].deployment], DEFAULTS)
    one = np.ones(1)
    apart = (
        896
        * 128
        / (
            896 * serving.prompt_s(case, 128 * one, one)[0]
            + 128 * serving.decode_step(case, 896 * one, 192 * one).total_s[0]
        )
    )
    assert speed > 1.2 * apart


@pytest.mark.parametrize(
    ("stated", "words", "kind", "server"),
    [
        ("", "offline-max-throughput 1000 requests all at once (vllm bench serve, rate inf)", "burst", "default"),
        ("", "fixed-batch one batch, offline, no server", "batch", "offline"),
        ("", "server MLPerf submission over HTTP", "saturated", "tuned"),
        ("tuned", "vllm bench serve", "burst", "tuned"),
        ("", "fixed-concurrency", "steady", "tuned"),
    ],
)
def test_how_a_row_was_served_is_read_from_its_words(stated, words, kind, server):
    assert importer.server(stated, words, kind) == server


def test_the_range_of_a_server_as_it_comes_is_more_than_twofold_and_a_tuned_ones_is_narrower():
    """Servers of two laboratories, each left out, are predicted within 2.2 in four of five figures."""
    ranges = serving_calibration(CATALOG).ranges
    default, tuned = (np.exp(2 * ranges["base"] * ratio) for ratio in (ranges["served"], 1.0))
    assert 2.0 < default < 3.0
    assert tuned < 0.9 * default
