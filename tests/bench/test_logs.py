"""Speeds are read from what training and serving stacks print, in the words that they use."""

import re
import time
from contextlib import suppress
from time import process_time

import pytest

from gpucost.bench.logs import FORMATS, Log, Reading, lines_of, own_format, read_log, training_speed
from gpucost.errors import UsageError

MEGATRON = (
    " [2025-04-13 23:41:12] iteration {:8d}/    1000 | consumed samples:     160 | elapsed time per iteration (ms):"
    " {} | learning rate: 0.0E+00 | global batch size:    16 | loss scale: 8388608.0 |"
)


@pytest.mark.parametrize(
    ("lines", "form", "speed", "given"),
    [
        (
            ["completed step: 9, seconds: 24.706, TFLOP/s/device: 332.463, Tokens/s/device: 1326.307, loss: 0.045"],
            "maxtext",
            1326.307,
            {},
        ),
        (
            [MEGATRON.format(10, "9000.0"), *(MEGATRON.format(10 * k, "1000.0") for k in range(2, 9))],
            "megatron-lm",
            16 * 4096 / 1.0 / 8,
            {"gpus": 8, "sequence_tokens": 4096},
        ),
        (
            [
                "Training epoch 0, iteration 1/249 | lr: 3.9e-06 | global_batch_size: 8 | global_step: 1 |"
                " reduced_train_loss: 1.653 | train_step_timing in s: 2.505 | consumed_samples: 16"
            ],
            "nemo",
            8 * 2048 / 2.505 / 2,
            {"gpus": 2, "sequence_tokens": 2048},
        ),
        (
            [
                "\x1b[36m[titan] 2025-01-01 step: 10  loss:  4.2  memory: 40.03GiB(50%)  tps: 7,123  tflops: 412.4"
                "  mfu: 41.7%\x1b[39m"
            ],
            "torchtitan",
            7123,
            {},
        ),
        (
            ["iter 100: loss 3.5014, time 512.00ms, mfu 40.10%"],
            "nanogpt",
            480 * 1024 / 0.512 / 8,
            {"gpus": 8, "sequence_tokens": 1024, "global_batch": 480},
        ),
        (["[batch=20/4800]: Train throughput/device/tokens_per_sec: 3502.5"], "llm-foundry", 3502.5, {}),
        (
            ["steps: 200 loss: 5.5508 iter time (s): 0.936 samples/sec: 136.706"],
            "deepspeed",
            136.706 * 2048 / 64,
            {"gpus": 64, "sequence_tokens": 2048},
        ),
        (
            [
                f"step {k:05d}/21400 (0.{k}%) | loss: 9.1 | lrm: 1.00 | dt: {dt:.2f}ms | tok/sec: {524288000 // dt:,} |"
                " mfu: 47.10 | total time: 0.50m"
                for k, dt in enumerate([30_000, 9_000, *[1_000] * 6])
            ],
            "nanochat",
            524288 / 8,
            {"gpus": 8},
        ),
        (
            [
                f"step {k:4d}/18865 | loss 10.9 (+nanz)| norm 15.3 (+nanz)| lr 8.57e-07 | 3056.36 ms | 42.6% bf16 MFU |"
                " 171536 tok/s"
                for k in range(1, 7)
            ],
            "llm.c",
            171536 / 8,
            {"gpus": 8},
        ),
        (
            [
                f"12/02/2024 10:00:00 [INFO|DP=0|PP=0|TP=0|n1]: iteration: {k} / 1000 | consumed_tokens: {k * 1.05}M"
                " | elapsed_time_per_iteration_ms: 8.21K | tokens_per_sec: 128K | tokens_per_sec_per_gpu: 15.9K |"
                " global_batch_size: 1.02K | lm_loss: 10.4 | lr: 3e-06 | model_tflops_per_gpu: 338 | grad_norm: 1.2"
                for k in range(1, 7)
            ],
            "nanotron",
            15_900,
            {},
        ),
        (
            ["Step 7 | loss:1.2 lr:2e-05 tokens_per_second_per_gpu:3127.5 peak_memory_active:18.9"],
            "torchtune",
            3127.5,
            {},
        ),
        (
            [
                line
                for k in range(10, 70, 10)
                for line in (
                    f"2025-02-01 10:00:00.1\thost:0\tolmo_core.train.callbacks.console_logger:1\tINFO\t[step={k}/1000,"
                    "epoch=1,eta=2:11:00]",
                    "    train/CE loss=7.021",
                    f"    throughput/device/TPS={900 if k < 30 else 23_456:,}",
                    f"    throughput/total tokens={k * 4_194_304:,}",
                )
            ],
            "olmo-core",
            23_456,
            {},
        ),
        (
            [
                f"Epoch 1 | iter {k} step {k // 4} | loss train: 10.1, val: n/a | iter time: {900 if k < 9 else 250}.00"
                f" ms{' (step)' if k % 4 == 0 else ''} remaining time: 1:02:03"
                for k in range(1, 41)
            ],
            "litgpt",
            32 * 2048 / 1.0 / 4,
            {"gpus": 4, "sequence_tokens": 2048, "global_batch": 32},
        ),
        (
            [
                f"step:{k}/1750 train_time:{90_000 if k < 2 else 90_000 + 100 * (k - 1)}ms step_avg:{90_000 / k:.2f}ms"
                for k in range(1, 9)
            ],
            "modded-nanogpt",
            384 * 1024 / 0.1 / 8,
            {"gpus": 8, "sequence_tokens": 1024, "global_batch": 384},
        ),
        (
            [
                'DLLL {"timestamp": "1700000000.1", "datetime": "2023-11-14 22:13:20.1", "elapsedtime": "12.3", "type":'
                f' "LOG", "step": [1, {k}], "data": {{"train_loss": 6.1, "train_throughput": 81234.5}}}}'
                for k in range(1, 7)
            ],
            "dllogger",
            81234.5 / 8,
            {"gpus": 8},
        ),
        (
            [
                line
                for k in range(10, 70, 10)
                for line in (
                    f"  1%|          | {k}/1000 [00:30<49:30,  2.00s/it]",
                    f"{{'loss': 1.2, 'learning_rate': 2e-05, 'num_tokens': {k * 12_000}.0, 'epoch': 0.01}}",
                )
            ],
            "huggingface",
            12_000 / 2.0 / 4,
            {"gpus": 4, "sequence_tokens": 8192, "global_batch": 64},
        ),
        (
            ["{'train_runtime': 100.0, 'train_samples_per_second': 2.5, 'train_tokens_per_second': 5120.0}"],
            "huggingface",
            5120.0 / 4,
            {"gpus": 4},
        ),
    ],
)
def test_a_training_log_gives_tokens_per_second_and_gpu(lines, form, speed, given):
    log = read_log(["some other line", *lines])
    assert log.format.name == form
    assert training_speed(log, **given) == pytest.approx(speed)


@pytest.mark.parametrize(
    ("lines", "form", "numbers"),
    [
        (
            ["Output token throughput (tok/s):          777.04", "Mean TPOT (ms):                          36.13"],
            "vllm-or-sglang-benchmark",
            {"output_tokens_per_s": 777.04, "tpot_s": 0.03613},
        ),
        (
            [
                "INFO 07-24 [loggers.py:273] Engine 000: Avg prompt throughput: 3539.1 tokens/s, Avg generation"
                " throughput: 3562.1 tokens/s, Running: 126 reqs, Waiting: 0 reqs, GPU KV cache usage: 36.4%"
            ],
            "vllm",
            {"output_tokens_per_s": 3562.1, "concurrency": 126},
        ),
        (
            ["Decode batch. #running-req: 32, #token: 9000, gen throughput (token/s): 1234.5, #queue-req: 0"],
            "sglang",
            {"output_tokens_per_s": 1234.5, "concurrency": 32},
        ),
        (
            ["│ Inter token latency (ms) │ 17.20 │ 15.1 │", "│ Output token throughput (per sec) │ 1,893.20 │ N/A │"],
            "genai-perf",
            {"output_tokens_per_s": 1893.2, "tpot_s": 0.0172},
        ),
        (["Tokens per second (inferred) : 11264.40"], "mlperf", {"output_tokens_per_s": 11264.4}),
    ],
)
def test_a_serving_log_gives_its_throughput(lines, form, numbers):
    log = read_log(lines)
    assert log.format.name == form
    assert {name: log.last(name) for name in numbers} == pytest.approx(numbers)


TRL = [
    line
    for k in range(10, 70, 10)
    for line in (
        f"  1%|          | {k}/1000 [00:30<49:30,  2.00s/it]",
        f"{{'loss': 1.2, 'learning_rate': 2e-05, 'num_tokens': {k * 12_000}.0, 'epoch': 0.01}}",
    )
]


def test_tokens_that_a_program_counts_are_those_that_are_done():
    assert read_log(TRL).last("tokens") == 60 * 12_000


def test_a_log_of_ones_own_is_read_by_its_patterns():
    form = own_format([r"step=it (\d+)", r"step_ms=took ([0-9.]+) ms", r"global_batch=batch (\d+)"])
    log = read_log([f"it {k} took {9000 if k < 3 else 500} ms, batch 64" for k in range(1, 9)], form=form)
    assert training_speed(log, gpus=4, sequence_tokens=1024) == pytest.approx(64 * 1024 / 0.5 / 4)


@pytest.mark.parametrize("pattern", ["step=it (", "step=it", "pace=it (\\d+)", "step=(a)(b)", "step"])
def test_a_pattern_that_reads_no_number_is_refused(pattern):
    with pytest.raises(UsageError, match="NAME=PATTERN"):
        own_format([pattern])


@pytest.mark.parametrize("kind", ["megatron-lm", "torchtitan", "nanotron"])
def test_the_first_lines_count_for_nothing_in_any_format(kind):
    line = {
        "megatron-lm": lambda k, s: MEGATRON.format(k, 1000 * s),
        "torchtitan": lambda k, s: f"step: {k}  loss: 4.2  tps: {round(8000 / s):,}  tflops: 412.4",
        "nanotron": lambda k, s: f"iteration: {k} / 99 | tokens_per_sec_per_gpu: {8 / s:.2f}K | global_batch_size: 16",
    }[kind]
    speeds = [
        training_speed(read_log([line(k, first if k < 3 else 1.0) for k in range(1, 8)]), gpus=8, sequence_tokens=4096)
        for first in (1.0, 60.0)
    ]
    assert speeds[0] == pytest.approx(speeds[1])


def test_a_long_log_takes_time_in_proportion_to_its_lines():
    lines = [MEGATRON.format(k, 1000.0) for k in range(1, 30_001)]
    began = process_time()
    assert read_log(lines).usual("step_s") == 1.0
    assert process_time() - began < 10


def test_the_warm_up_does_not_count():
    log = read_log([MEGATRON.format(k, 9000.0 if k < 3 else 1000.0) for k in range(1, 11)])
    assert log.usual("step_s") == 1.0


def test_the_warm_up_of_a_short_log_does_not_count_in_what_only_grows():
    readings = [Reading(k, {"step": float(k), "elapsed_s": second}) for k, second in enumerate((60.0, 90.0, 100.0), 1)]
    assert Log(read_log([MEGATRON.format(1, 1.0)]).format, tuple(readings)).per_step("elapsed_s") == 10.0


def test_what_a_log_leaves_unsaid_is_asked_for():
    with pytest.raises(UsageError, match=r"(--global-batch|global_batch=)"):
        training_speed(read_log(["iter 1: loss 3, time 512.00ms, mfu 40%"]), gpus=8, sequence_tokens=1024)


@pytest.mark.parametrize(
    ("figure", "read"),
    [
        ("7,123", 7123.0),
        ("1,234,567.5", 1234567.5),
        ("7123,", 7123.0),
        ("7,12", None),
        ("7.123,5", None),
        ("0,500", None),
    ],
)
def test_a_decimal_comma_in_a_log_is_no_figure(figure, read):
    assert read_log([f"step: 10  loss: 4.2  tps: {figure}  tflops: 412.4"]).last("tokens_per_s_per_gpu") == read


@pytest.mark.parametrize("lines", [[], ["nothing"], ["x" * 1_000_000], ["tps: nan"]])
def test_a_log_without_speeds_is_refused_with_what_is_known(lines):
    with pytest.raises(UsageError, match="megatron-lm"):
        read_log(lines)


@pytest.mark.parametrize("said", ["step: -3  tps: 9000", "step: 1e305  tps: 9000", "step: 3  tps: 1e-300"])
def test_a_number_that_no_run_has_is_refused_with_its_line(said):
    with pytest.raises(UsageError, match=r"line 2 of train.log"):
        read_log(["[titan] step: 1  tps: 9000", f"[titan] {said}"], "train.log")


def test_a_log_of_no_speed_is_refused_and_nothing_asked_for():
    with pytest.raises(UsageError, match="no speed"):
        training_speed(read_log(["step: 3  tps: 0"] * 8), gpus=8, sequence_tokens=4096)


# Lines as users of each stack posted them.
NEOX = (
    " samples/sec: 7.799 | iteration       34/   10000 | elapsed time per iteration (ms): 4103.1 | learning rate:"
    " 2.111E-06 | approx flops per GPU: 112.9TFLOPS | lm_loss: 1.118665E+01 | number of skipped iterations:   0 |"
)
DEEPSPEED = (
    "[2023-07-25 21:03:17,269] [INFO] [timer.py:215:stop] epoch=0/micro_step=68/global_step=34,"
    " RunningAvgSamplesPerSec=7.864669709950182, CurrSamplesPerSec=8.00912418308922, MemAllocated=59.65GB"
)
NEMO_BAR = (
    "Epoch 0: :   3%|x         | 9000/301500 [1:42:42<55:37:46, v_num=0-56, reduced_train_loss=nan.0,"
    " global_step=9e+3, consumed_samples=6.3e+5, train_step_timing in s=0.615, val_loss=7.040]"
)
LIGHTNING = "Epoch 0:   1%|          | 795/77225 [9:07:58<878:01:48, 41.36s/it, loss=3.1, v_num=, global_step=794.0]"
COMPOSER = ["[batch=20/4800]:", "\t Train time/batch: 19", "\t Train loss/train/total: 9.6",
            "\t Train throughput/device/tokens_per_sec: 3502.5000"]  # fmt: skip
MLLOG = [
    ':::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": "global_batch_size", "value": 8}',
    ':::MLLOG {"namespace": "", "time_ms": 2, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value":'
    ' {"throughput": 5.25, "train_step_time": 1.52, "reduced_train_loss": 1.3}, "metadata": {"step": 384}}',
]


@pytest.mark.parametrize(
    ("lines", "form", "speed", "given", "step"),
    [
        ([NEOX], "megatron-lm", 7.799 * 2048 / 8, {"gpus": 8, "sequence_tokens": 2048}, 34),
        ([DEEPSPEED], "deepspeed", 8.00912418308922 * 2048 / 8, {"gpus": 8, "sequence_tokens": 2048}, 34),
        (["[INFO] [timer.py:189:stop] 0/40, SamplesPerSec=83.5, MemAllocated=0.26GB"], "deepspeed", 83.5 * 512,
         {"gpus": 1, "sequence_tokens": 512}, 40),
        ([NEMO_BAR], "nemo", 70 * 2048 / 0.615 / 8, {"gpus": 8, "sequence_tokens": 2048, "global_batch": 70}, 9000),
        ([LIGHTNING], "huggingface", 256 * 2048 / 41.36 / 8,
         {"gpus": 8, "sequence_tokens": 2048, "global_batch": 256}, 795),
        (COMPOSER, "llm-foundry", 3502.5, {}, 19),
        (MLLOG, "mlperf-training", 5.25 * 8192 / 8, {"gpus": 8, "sequence_tokens": 8192}, None),
        (["  train_runtime            = 0:36:58.55", "  train_samples_per_second =      1.474"], "huggingface",
         1.474 * 1024 / 2, {"gpus": 2, "sequence_tokens": 1024}, None),
        (["[titan] 2026-02-24 19:46:17,508 - root - INFO - step:  4  loss:  7.62585  grad_norm: 26.6250  memory:"
          " 66.91GiB(37.51%)  tps: 10,050  tflops: 314.71  mfu: 13.99%"] * 8, "torchtitan", 10050, {}, 4),
    ],
)  # fmt: skip
def test_a_posted_log_is_read(lines, form, speed, given, step):
    log = read_log(lines)
    assert log.format.name == form
    assert training_speed(log, **given) == pytest.approx(speed)
    assert log.last("step") == step


def test_the_loops_of_evaluations_do_not_count():
    trains = [f" {n}%|x| {n}/1000 [00:10<10:00, 2.00s/it]" for n in range(1, 21)]
    evaluates = [f"{n}%|x| {n}/15 [00:01<00:03, 8.00it/s]" for n in range(1, 15)]
    log = read_log([*trains, *evaluates])
    assert log.usual("step_s") == 2.0
    assert log.usual("steps_per_s") is None
    assert log.last("step") == 20


SERVED = [
    "============ Serving Benchmark Result ============", "Backend:                                 sglang    ",
    "Max request concurrency:                 48", "Successful requests:                     480",
    "Total input tokens:                      1920000", "Total generated tokens:                  720000",
    "Total generated tokens (retokenized):    658869", "Output token throughput (tok/s):         858.31",
    "Peak output token throughput (tok/s):    1102.00", "Mean TPOT (ms):                          50.40",
]  # fmt: skip


def test_a_serving_benchmark_says_its_requests():
    log = read_log(SERVED)
    assert [log.last(name) for name in ("output_tokens_per_s", "concurrency", "tpot_s")] == [858.31, 48, 0.0504]
    assert log.last("prompt_tokens") / log.last("requests") == 4000
    assert log.last("output_tokens") / log.last("requests") == 1500


BROKEN = {
    "cut in the middle of a line": MEGATRON.format(10, "1000.0") + "\n" + MEGATRON.format(20, "1000.0")[:70],
    "two ranks in one line": MEGATRON.format(10, "1000.0") * 2,
    "carriage returns": "\r".join(MEGATRON.format(k, "1000.0") for k in range(10, 70, 10)),
    "a step of no time": MEGATRON.format(10, "0.0") + "\n" + MEGATRON.format(20, "1000.0"),
    "not a number": MEGATRON.format(10, "nan") + "\n" + MEGATRON.format(20, "1000.0"),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
def test_a_broken_log_says_what_it_still_says(text, coding, tmp_path):
    path = tmp_path / "train.log"
    path.write_bytes(text.encode(coding) + (b"\xff\x00" if coding == "utf-8" else b""))
    log = read_log(lines_of(str(path)))
    assert training_speed(log, gpus=8, sequence_tokens=4096) == pytest.approx(16 * 4096 / 8)


ARGUMENTS = [
    "using world size: 64, data-parallel size: 8, tensor-model-parallel size: 4, pipeline-model-parallel size: 2",
    "  encoder_tensor_model_parallel_size .............. 0", "  micro_batch_size ................................ 2",
    "  pipeline_model_parallel_size .................... 2", "  recompute_granularity ........................... full",
    "  retriever_seq_length ............................ 256", "  seq_length ............................... 4096",
    "  tensor_model_parallel_size ...................... 4", "  use_distributed_optimizer ....................... True",
]  # fmt: skip


def test_the_layout_is_read_where_a_program_says_its_arguments():
    log = read_log([*ARGUMENTS, *(MEGATRON.format(k, "1000.0") for k in range(1, 9))])
    assert log.layout == {
        "gpus": 64, "micro_batch": 2, "pipeline": 2, "recompute": "full", "sequence": 4096, "tensor": 4, "sharding": 1,
    }  # fmt: skip
    assert training_speed(log) == pytest.approx(16 * 4096 / 64)
    assert log.last("samples") == 160


@pytest.mark.parametrize(
    ("said", "layout"),
    [
        ("  Total train batch size (w. parallel, distributed & accumulation) = 1,024", {"global_batch": 1024}),
        ("  Instantaneous batch size per device = 4", {"micro_batch": 4}),
        ('"training": {"local_batch_size": 1, "seq_len": 8192}', {"micro_batch": 1, "sequence": 8192}),
        ("Config param max_target_length: 8192", {"sequence": 8192}),
        ("config: max_seq_len=131072, tensor_parallel_size=4,", {"sequence": 131072, "tensor": 4}),
        ("[config.py:957:print]   zero_optimization_stage ...... 3", {"sharding": 3}),
        ("recompute_granularity ...... None, world_size ..... unknown", {}),
        (f"world_size ..... {'9' * 400}, seq_length ..... ²", {}),
    ],
)
def test_a_layout_is_read_in_the_words_of_each_stack(said, layout):
    assert read_log([said, "[titan] step:  4  tps: 10,050"]).layout == layout


def test_a_log_of_tokens_per_iteration_needs_no_batch():
    lines = [f"iter {k}: loss nan, time {9000 if k < 2 else 500}.00ms, mfu 40%" for k in range(9)]
    log = read_log(["tokens per iteration will be: 491,520", *lines])
    assert training_speed(log, gpus=8) == pytest.approx(491_520 / 0.5 / 8)


def test_the_warm_up_is_counted_in_steps_where_every_rank_writes():
    line = "[rank{}]:[titan] step: {:2}  loss:  4.2  tps: {}"
    log = read_log(
        [line.format(rank, step, 50 if step < 30 else 7000) for step in range(10, 70, 10) for rank in "0123"]
    )
    assert log.usual("tokens_per_s_per_gpu") == 7000
    assert min(reading.values["step"] for reading in log.readings) == 10


@pytest.mark.parametrize(
    "line", [MEGATRON.format(5, "1000.0"), "Avg generation throughput: 3562.1 tokens/s, Running: 9"]
)
def test_progress_bars_of_other_things_do_not_speak_for_a_log(line):
    bars = [f"Capturing CUDA graphs: {k}%|x| {k}/67 [00:01<00:10, 3.2it/s]" for k in range(67)]
    assert read_log([*bars, line]).format.name in ("megatron-lm", "vllm")


def test_the_time_per_output_token_is_not_that_between_chunks():
    log = read_log([*SERVED, "Mean ITL (ms):                            120.0"])
    assert (log.last("tpot_s"), log.last("itl_s")) == (0.0504, 0.12)


DIGITS = "1" * 19_900


def seconds_of(read, *arguments, **named):
    """Return how long a reading took, whatever came of it."""
    begin = time.process_time()
    with suppress(UsageError):
        read(*arguments, **named)
    return time.process_time() - begin


HOSTILE = {  # what repeats the beginnings of a pattern and never its end
    "digits before a bar": f"{DIGITS} 5/100 [00:10<00:20, 1.50it/s]",
    "digits": DIGITS,
    "digits and commas": "1," * 9_900,
    "spaces": f"Tokens per second{' ' * 19_000}x",
    "a word of letters": "Max" * 6_000,
    **{
        f"the beginning of {form.name}": (re.sub(r"\\[a-z].?|[^A-Za-z :/]", "1", form.line)[:30] + " ") * 600
        for form in FORMATS
    },
    "layouts": "Total train batch size (" * 800,
}


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE)
def test_a_log_of_half_a_megabyte_is_read_in_seconds_whatever_its_lines_repeat(line):
    assert seconds_of(read_log, [line] * 30) < 3


def test_what_follows_in_a_long_line_does_not_hide_its_beginning():
    log = read_log([f" {k}/100 [00:10<00:20, 1.50it/s] {DIGITS}" for k in range(1, 9)])
    assert log.last("step") == 8
    assert log.usual("steps_per_s") == 1.5


def test_a_pattern_that_never_ends_is_stopped(monkeypatch):
    monkeypatch.setenv("GPUCOST_LIMIT_PATTERN_SECONDS", "1")
    begin = time.monotonic()
    with pytest.raises(UsageError, match="limit_pattern_seconds"):
        read_log(["a" * 64] * 3, form=own_format([r"step_ms=(?:a+)+b(\d+)"]))
    assert time.monotonic() - begin < 20
