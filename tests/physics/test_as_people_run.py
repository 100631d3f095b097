"""How people run: quantised bases in fp32, adapters, blocking pipelines, whole tiles, experts in a loop."""

from math import log
from statistics import median

import numpy as np
import pytest
from msgspec.structs import replace

import gpucost
from gpucost.calibration import importer, reinforcement, serving, training
from gpucost.calibration.serving_rows import read_row
from gpucost.catalog.calibrations import serving_calibration
from gpucost.physics.columns import layout_columns
from gpucost.physics.hardware import hardware_columns
from gpucost.physics.serving import steps
from gpucost.physics.serving.cases import ServedReplica, build, plain_options
from gpucost.physics.serving.efficiency import ENGINE_NAMES, LAUNCHING
from gpucost.physics.training import calibration as cal
from gpucost.physics.training import layer
from gpucost.physics.training.memory import training_memory
from gpucost.physics.training.memory_recipe import memory_recipe
from gpucost.physics.training.own_runs import Alike
from gpucost.physics.transformer import stack
from gpucost.types import Layout
from tests.physics.cases import H100, LLAMA_8B, NODE, make_case, time_of

FP32_H100 = replace(H100, fp32_tflops=66.9)
ONE = Layout(gpus=1, micro_batch=2, global_batch=2, recompute="full")
TUNED = {"chip": FP32_H100, "software": "eager", "sequence": 8192.0}


def seconds(**case):
    return float(time_of(ONE, **TUNED, **case).total_s[0])


def test_a_quantised_base_prepared_for_fp32_is_several_times_slower():
    """Outside the matrix units an H100 has a fifteenth of its 16-bit peak: products and attention take them."""
    half = seconds(method="qlora")
    assert 3 < seconds(method="qlora", full_precision=True) / half < 12
    assert half > seconds(method="lora")


def test_what_is_computed_in_fp32_is_kept_in_fp32():
    shape, layout = stack([LLAMA_8B]), layout_columns([ONE])
    peaks = [
        training_memory(shape, layout, memory_recipe(8192, method="qlora", style="library", full_precision=whole))
        for whole in (False, True)
    ]
    activations = [float(one.activations_bytes[0]) for one in peaks]
    assert activations[1] > 1.5 * activations[0]
    # an 8B base in 4 bits has 0.13 GB per million of embeddings and head more where they are widened to fp32
    widened = float(peaks[1].weights_bytes[0] - peaks[0].weights_bytes[0])
    assert widened == pytest.approx(2 * 2 * 128256 * 4096, rel=0.01)


def test_scores_in_memory_cost_time_and_more_so_the_longer_the_sequence():
    def ratio(sequence):
        case = make_case(ONE, **(TUNED | {"sequence": sequence}))
        apart = replace(case, layout=replace(case.layout, flash=np.array([False])))
        return float(cal.training.step(apart).total_s[0] / cal.training.step(case).total_s[0])

    assert 1 < ratio(2048.0) < ratio(8192.0)


def test_scores_cost_more_as_a_library_writes_them_than_in_one_plain_loop():
    """Twice the sequence at as many tokens: on an H200 258 and 363 ms, 1.40 times; fused it is hardly longer."""

    def grown(**case):
        steps = []
        for sequence, batch in ((1024.0, 8), (2048.0, 4)):
            made = make_case(Layout(gpus=1, micro_batch=batch, global_batch=batch), **(TUNED | {"sequence": sequence}))
            apart = replace(made.layout, flash=np.array([False]))
            recipe = replace(made.recipe, library_scores=np.array([case["library"]]))
            steps.append(float(cal.training.step(replace(made, layout=apart, recipe=recipe)).total_s[0]))
        return steps[1] / steps[0]

    assert 1.0 < grown(library=False) < grown(library=True) < 1.5


def test_experts_of_few_tokens_each_lose_more_rows_to_ragged_tiles():
    """Grouped against plain products on an H200: 0.57 at 256 tokens an expert, 0.83 at 1,024, 0.94 at 4,096."""

    def share(tokens, groups):
        made = make_case(ONE, **TUNED)
        rate, e = layer.rates(made), made.efficiency
        grouped = rate.matrix_flop_per_s * e.grouped_ratio
        sizes = (np.array([float(tokens)]), 1536.0, 2048.0)
        plain_s = layer.product_s(*sizes, rate.matrix_flop_per_s, rate, e)
        return float((plain_s / layer.product_s(*sizes, grouped, rate, e, groups, e.expert_tokens))[0])

    assert share(32_768, 128) == pytest.approx(0.57, abs=0.1)
    assert share(131_072, 128) == pytest.approx(0.83, abs=0.08)
    assert share(131_072, 32) == pytest.approx(0.94, abs=0.05)


def test_adapters_on_few_tokens_wait_for_the_host():
    """Seven adapters a layer, each several launches: a step of 512 tokens waits, one of 16,384 does not."""
    short = time_of(replace(ONE, micro_batch=1, global_batch=1), **(TUNED | {"sequence": 512.0}), method="lora")
    long = time_of(ONE, **TUNED, method="lora")
    assert float(short.host_s[0]) > float(short.matrix_s[0])
    assert float(long.host_s[0]) == 0.0


def test_stages_that_block_wait_for_those_before_them():
    def slower(stages):
        layout = Layout(gpus=16, pipeline=stages, data=16 // stages, micro_batch=2, global_batch=1024)
        free, blocked = (time_of(layout, sequence=4096.0, software="sharded", blocking=one) for one in (False, True))
        return float(blocked.total_s[0] / free.total_s[0])

    assert 1.1 < slower(2) < 1.4
    assert slower(2) < slower(4) < slower(16)


def test_few_tokens_take_the_time_of_a_whole_tile():
    """H20 has nearly the memory of H200 and a fifth of its matrix units: at batch 1 they bind, not the bandwidth."""
    rows = [serving_row(gpu, "Qwen3-14B", "sglang") for gpu in ("H20-96GB", "H200-141GB-SXM")]
    few, enough = times_per_token(rows)
    assert few > 1.5 * enough


def test_a_loop_over_experts_costs_the_host_each_of_them():
    dense, mixture = times_per_token(
        [serving_row("H100-80GB-SXM", name, "transformers") for name in ("Qwen3-4B", "Qwen3-30B-A3B")]
    )
    assert mixture > 5 * dense
    assert times_per_token([serving_row("H100-80GB-SXM", "Qwen3-30B-A3B", "vllm")])[0] < dense


def test_a_long_cache_is_copied_by_hugging_face_and_read_in_place_by_engines():
    def growth(engine):
        short, long = times_per_token(
            [serving_row("A100-80GB-SXM", "Qwen2.5-32B", engine, isl=isl) for isl in (1, 30720)]
        )
        return long - short

    assert growth("transformers") > 3 * growth("vllm")


def first_token_ms(facts, engine, prompt, hit=0.0, model="qwen2.5-0.5b"):
    replica = ServedReplica(facts.architecture(model), H100, NODE, engine, server="offline")
    options = replace(plain_options(1), prefix_hit=np.array([hit]))
    case, _ = build([replica], serving_calibration(facts).values, options)
    return float(steps.first_token_s(case, np.array([float(prompt)]))[0]) * 1e3


def test_the_first_token_of_a_short_or_cached_prompt_waits_for_the_host_that_launches_its_kernels():
    """24 layers of a dozen kernels each: 11 to 40 ms were measured for 95 tokens of a 0.5B, whatever the chip."""
    facts = gpucost.open_catalog()
    short, double = (first_token_ms(facts, "vllm-2025", prompt) for prompt in (48, 96))
    assert short == pytest.approx(double, rel=0.02)
    assert 8 < double < 40
    assert first_token_ms(facts, "trtllm", 96) < 0.7 * double  # whose host is no interpreter
    cached, whole = (first_token_ms(facts, "vllm", 8192, hit, "llama-3-8b") for hit in (0.99, 0.0))
    assert first_token_ms(facts, "vllm", 82, model="llama-3-8b") == pytest.approx(cached, rel=0.05)
    assert 8 < cached < 0.2 * whole


def test_first_tokens_alone_are_within_half_whether_the_prompt_is_short_or_long():
    """Engines in Python read 95 and 28,650 tokens by the same law: 59 and 52 % off in the median before."""
    facts = gpucost.open_catalog()
    found = serving.gather(facts.rows("serving_measurements"), facts)
    items, _ = serving.predict(found, serving_calibration(facts))
    launching = {row.id for row in found.rows if row.deployment.engine in LAUNCHING}
    gaps = [log(i.predicted / i.measured) for i in items if i.metric == "ttft_ms" and i.id in launching]
    short = [log(i.predicted / i.measured) for i in items if i.id.startswith("accel") and i.metric == "ttft_ms"]
    assert median(abs(gap) for gap in gaps) < 0.35
    assert abs(median(short)) < 0.3


def test_what_a_cache_held_is_known_unknown_or_nothing():
    facts = gpucost.open_catalog()
    row = next(row for row in facts.rows("serving_measurements") if row["id"] == "vul-0001")
    row = row | {"prefix_hit_fraction": None}
    words = ("", "random lengths", "the same prompt 50 times", "40% cache hits")
    read = [read_row(importer.entered(row | {"notes": note}, "serving", facts), facts) for note in words]
    assert [(one.prefix_hit, one.stated_prefix) for one in read] == [(0, False), (0, True), (0.99, True), (0.4, True)]
    assert [serving.unstated_prefix(one) for one in read] == [True, False, False, False]
    found = serving.gather(
        [row, row | {"id": "random", "prefix_hit_fraction": 0}, row | {"id": "hit", "prefix_hit_fraction": 0.9}], facts
    )
    items, _ = serving.predict(found, serving_calibration(facts))
    unknown, nothing, hit = (i for i in items if i.metric == "ttft_ms")
    assert unknown.predicted == nothing.predicted > hit.predicted
    assert unknown.high / unknown.low > nothing.high / nothing.low


def test_one_stream_runs_on_one_replica():
    """Eight replicas of one GPU serve one stream no faster than one."""
    one, eight = (
        speeds([serving_row("H100-80GB-SXM", "Qwen3-4B", "vllm", n_gpus=gpus, tp="1", dp=dp)])[0]
        for gpus, dp in ((1, ""), (8, "8"))
    )
    assert eight < 2 * one


def serving_row(gpu, model, engine, *, isl=1024, n_gpus=1, **more):
    return {
        "id": f"{gpu} {model} {engine} {isl}", "source_name": "a source", "model": model, "gpu": gpu,
        "n_gpus": str(n_gpus), "engine": engine, "engine_class": engine if engine in ENGINE_NAMES else "", "tp": "1",
        "weight_precision": "bf16", "scenario": "single-stream", "batch_or_concurrency": "1", "isl": str(isl),
        "osl": "256", "tpot_ms": "10", "measured_output_tokens_per_s": "100", "as_of": "2026-01",
    } | more  # fmt: skip


def printed(rows):
    facts = gpucost.open_catalog()
    found = serving.gather(rows, facts, as_written=True)
    assert not found.skipped
    return serving.printed(serving.loads_of(found.rows, serving.DEFAULTS), serving.DEFAULTS)


def times_per_token(rows):
    return printed(rows).tpot_s.tolist()


def speeds(rows):
    return printed(rows).output_tokens_per_s.tolist()


def test_a_chip_that_nobody_measured_has_the_wider_range():
    ranges = cal.SCHEME.default_ranges

    def width(sources, largest, gpus):
        chip = replace(H100, training_sources=sources, training_largest_gpus=largest)
        case = make_case(Layout(gpus=gpus, data=gpus, sharding=3, micro_batch=1, global_batch=4 * gpus), chip=chip)
        alike = Alike(case.shape, hardware_columns([chip], [NODE]), case.layout, case.recipe, np.array([0]))
        doubts = cal.traits(alike, cal.training.step(case), stated_layout=True)
        return float(cal.core.width_of(doubts, ranges, ".slower")[0])

    assert width(0, 0, 8) > width(30, 1024, 8)
    assert width(1, 64, 64) > width(30, 1024, 64)
    assert width(30, 64, 1024) > width(30, 64, 128) > width(30, 64, 64)


def test_what_is_known_of_a_chip_before_a_source_is_entered_is_what_others_measured():
    facts = gpucost.open_catalog()
    row = {
        "model": "llama-3-8b",
        "measured_tokens_per_s_per_gpu": "10000",
        "framework": "torchtitan",
        "tp": "1",
        "pp": "1",
    }
    rows = [
        row | {"id": name, "source_name": name, "gpu": gpu, "n_gpus": gpus}
        for name, gpu, gpus in (("a", "H100-80GB-SXM", "64"), ("b", "H100-80GB-SXM", "512"), ("c", "MI355X", "8"))
    ]
    alone = training.as_unseen(training.gather(rows, facts, as_written=True)).rows
    assert [one.accelerator.training_sources for one in alone] == [1, 1, 0]
    assert [one.accelerator.training_largest_gpus for one in alone] == [512, 64, 0]


def test_words_of_a_row_say_how_it_attends_and_interleaves():
    facts = gpucost.open_catalog()
    row = {"gpu": "A100-80GB-SXM", "framework": "transformers, deterministic algorithms", "notes": "no interleaving"}
    told = importer.training_columns(row, facts)
    assert (told["flash_attention"], told["vp"]) == ("n", 1)


@pytest.mark.slow
def test_a_step_of_reinforcement_learning_takes_the_mean_answer_that_its_source_states():
    row = {
        "id": "a", "source_name": "a source", "as_of": "2026-07", "algorithm": "GRPO", "model": "LLAMA3.1_8B",
        "gpu": "H100-80GB-SXM", "n_gpus": "16", "responses_per_step": "2048", "max_sequence_tokens": "4096",
        "train_backend": "Megatron-Core", "step_time_s": "97.7",
    }  # fmt: skip
    facts = gpucost.open_catalog()

    def step(**more):
        items, skipped = reinforcement.predict([reinforcement.typed(row | more)], facts)
        assert not skipped
        return items[0]

    short, long, open_ = step(mean_sequence_tokens="1060"), step(mean_sequence_tokens="2120"), step()
    assert long.predicted > 1.5 * short.predicted
    assert short.high / short.low < open_.high / open_.low
    assert step(mean_sequence_tokens="1060", algorithm="PPO").predicted > short.predicted
