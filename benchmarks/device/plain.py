"""Plain loops beside the figures of a bench, and steps that no profile of it measures, on one GPU.

    python -m benchmarks.device.plain [--seconds 200] [--tiny]

Each loop works for a second and a half, so that clocks settle, then repeats for a second by the host's clock. The
steps go into `plain.json` in the form of a bench's figures: predictions of a calibration on a bench can be held
against what it did not see.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.device.common import CUDA, DEVICE, TimeBox, clean, guarded, options, out, synchronize
from gpucost import clock
from gpucost.bench.cases import SHAPES, BenchCase
from gpucost.bench.gpu.clock import FP8
from gpucost.bench.gpu.steps import TrainStep, build, optimizer_of, step
from gpucost.bench.gpu.worker import MEASURES

WARM_S, LOOP_S = (1.5, 1.0) if CUDA else (0.01, 0.01)
Step = Callable[[], Any]

# steps that no profile of the bench measures
_TRAIN: list[dict[str, Any]] = [
    {"model": "gpt2-124m", "sequence": 2048, "micro_batch": 8},
    {"model": "tinyllama-1.1b", "sequence": 4096, "micro_batch": 2},
    {"model": "llama3.2-1b", "sequence": 1024, "micro_batch": 12},
    {"model": "moe-8x1b", "sequence": 2048, "micro_batch": 6, "recompute": "full"},
    {"model": "qwen2.5-1.5b", "sequence": 32768, "micro_batch": 1, "recompute": "full"},
    {"model": "qwen2.5-1.5b", "sequence": 2048, "micro_batch": 4, "compiled": True},
    {"model": "0.5b", "sequence": 8192, "micro_batch": 1, "compiled": True},
    {"model": "llama2-7b", "sequence": 2048, "micro_batch": 2, "recipe": "bf16", "recompute": "full"},
    {"model": "moe-1b-7b", "sequence": 2048, "micro_batch": 4, "recompute": "full", "recipe": "bf16"},
    {"model": "llama3.2-3b", "sequence": 2048, "micro_batch": 2, "recipe": "bf16", "compiled": True},
    {"model": "tinyllama-1.1b", "sequence": 2048, "micro_batch": 8, "compiled": True, "recompute": "full"},
]
_SERVE = [
    ("llama3.2-3b", "decode", 1, 2048), ("qwen2.5-1.5b", "decode", 16, 1024), ("llama3.2-3b", "decode", 128, 512),
    ("llama3-8b", "decode", 16, 4096), ("llama2-7b", "prefill", 1, 1024), ("llama3.2-3b", "prefill", 1, 8192),
    ("llama3-8b", "prefill", 1, 4096), ("qwen2.5-1.5b", "prefill", 2, 4096),
]  # fmt: skip
AGAIN = [  # steps of the short profile, timed here by a loop of whole steps
    {"model": "llama3.2-1b", "sequence": 4096, "micro_batch": 2},
    {"model": "llama3-8b", "sequence": 4096, "micro_batch": 1, "recipe": "bf16", "recompute": "full"},
]


def loop(action: Step) -> float:
    """Return the seconds of a call."""
    batch = 1  # of calls that the host awaits, grown to a tenth of a second
    for limit_s in (WARM_S, LOOP_S):
        calls, begin = 0, time.perf_counter()
        while (spent_s := time.perf_counter() - begin) < limit_s:
            for _ in range(batch):
                action()
            synchronize()
            calls += batch
            batch = max(batch, int(0.1 * calls / (time.perf_counter() - begin)))
    return spent_s / calls


def _graphed(action: Step) -> Step:
    """Return an action as a graph replays it: without the gaps of launches."""
    if not CUDA:
        return action
    action()  # once before: what is allocated or compiled on a first call cannot be captured
    synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        action()
    return graph.replay


def kernels(size: int) -> dict[str, tuple[Step, float]]:
    """Return plain kernels by the id of the bench's case, with what divides their seconds: bytes or FLOP, in 1e9."""
    half = {"device": DEVICE, "dtype": torch.bfloat16}
    x = torch.randn(size * size // 8, 32, device=DEVICE)
    y, a, b = torch.empty_like(x), torch.randn(size, size, **half), torch.randn(size, size, **half)
    q, k = torch.randn(4, 32, size // 2, 128, **half), torch.randn(4, 8, size // 2, 128, **half)
    # eight matrices in turn, more than the caches hold: each read comes from memory, as in decoding
    w, thin = [torch.randn(14336, size // 2, **half) for _ in range(8)], torch.randn(16, size // 2, **half)
    host = torch.empty(2**28 if CUDA else 2**20, dtype=torch.uint8, pin_memory=CUDA)
    inside = torch.empty_like(host, device=DEVICE)
    wide, other = torch.randn(size, size, device=DEVICE), torch.randn(size, size, device=DEVICE)
    product = 2e-9 * size**3  # two FLOP for each product and sum
    torch.backends.cuda.matmul.allow_tf32 = True  # else products of fp32 run on the plain units
    actions: dict[str, tuple[Step, float]] = {
        "copy 1073741824": (lambda: y.copy_(x), 8e-9 * x.numel()),
        "matmul bf16 8192 8192 8192": (lambda: a @ b.t(), product),
        "matmul tf32 8192 8192 8192": (lambda: wide @ other.t(), product),
        "attention forward 4 4096 32 8 128": (
            lambda: F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True),
            2e-9 * 4 * 32 * (size // 2) ** 2 * 128,
        ),
        "matmul bf16 16 4096 14336": (_graphed(lambda: [F.linear(thin, matrix) for matrix in w]), 8e-9 * 14336 * size),
        "host to_device 268435456 True": (lambda: inside.copy_(host, non_blocking=True), 1e-9 * host.numel()),
    }
    if CUDA:
        a8, b8, scale = a.to(FP8), b.to(FP8), torch.ones((), device=DEVICE)
        actions["matmul fp8 8192 8192 8192"] = (
            lambda: torch._scaled_mm(a8, b8.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16,
                                     use_fast_accum=True), product)  # fmt: skip
    return actions


def whole_step(**sizes: Any) -> float:
    """Return the seconds of a training step in a plain loop."""
    case = TrainStep(**sizes)
    model = build(case)
    optimizer = optimizer_of(model, case.optimizer)
    tokens = torch.randint(SHAPES[case.model].vocab, (case.micro_batch, case.sequence), device=DEVICE)
    return loop(lambda: step(model, optimizer, case, (tokens, tokens), {}))


def figure(op: str, **sizes: Any) -> dict[str, Any]:
    """Measure one step as the bench does; the row of its file."""
    # the id as the bench writes it, so that both can be set side by side
    values = [str(value) for value in sizes.values() if value is not False]
    case = BenchCase(" ".join([op, *values]), op, op, sizes)
    return {"id": case.id, "group": op, "op": op, **sizes, **MEASURES[op](**sizes)}


def main() -> None:
    arguments = options(__doc__, 200)
    box = TimeBox(arguments.seconds)
    bench: dict[str, Any] = {"plain": {}, "figures": [], "started": clock.today().isoformat()}

    def measure(name: str, action: Step, into: str) -> None:
        if box.over():
            return
        value = action()
        if into == "figures":
            bench["figures"].append(value)
        else:
            bench["plain"][name] = value
        print(name, value if into == "plain" else value["time_s"], flush=True)
        with open(out("plain.json"), "w") as file:  # after each: a run that is cut short keeps what it measured
            json.dump(bench, file, indent=1)

    def measure_kernels() -> None:
        for name, (action, amount) in kernels(256 if arguments.tiny else 8192).items():
            measure(name, lambda action=action, amount=amount: amount / loop(action), "plain")

    guarded(measure_kernels, "kernels")
    small = {"model": "tiny", "sequence": 32, "micro_batch": 1}
    for sizes in [small] if arguments.tiny else _TRAIN:
        guarded(lambda s=sizes: measure(str(s), lambda: figure("train", **s), "figures"), str(sizes))
    for model, phase, batch, context in [("tiny", "decode", 2, 32)] if arguments.tiny else _SERVE:
        sizes = {"model": model, "phase": phase, "batch": batch, "context": context}
        guarded(lambda s=sizes: measure(str(s), lambda: figure("serve", **s), "figures"), str(sizes))
    for sizes in [small] if arguments.tiny else AGAIN:
        guarded(lambda s=sizes: measure("train " + str(s), lambda: whole_step(**s), "plain"), str(sizes))
    clean()


if __name__ == "__main__":
    main()
