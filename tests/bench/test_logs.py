"""Speeds are read from what training and serving stacks print, in the words that they use."""

import pytest

from gpucost.bench.logs import read_log, training_speed
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


def test_the_warm_up_does_not_count():
    log = read_log([MEGATRON.format(k, 9000.0 if k < 3 else 1000.0) for k in range(1, 11)])
    assert log.usual("step_s") == 1.0


def test_what_a_log_leaves_unsaid_is_asked_for():
    with pytest.raises(UsageError, match="--global-batch"):
        training_speed(read_log(["iter 1: loss 3, time 512.00ms, mfu 40%"]), gpus=8, sequence_tokens=1024)


@pytest.mark.parametrize("lines", [[], ["nothing"], ["x" * 1_000_000], ["tps: nan"]])
def test_a_log_without_speeds_is_refused_with_what_is_known(lines):
    with pytest.raises(UsageError, match="megatron-lm"):
        read_log(lines)
