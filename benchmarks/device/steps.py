"""Training steps of library models: what a row says of them, and how they are timed."""

import time
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.device.common import CUDA, DEVICE, WORLD, Table, peak_gb, synchronize
from gpucost.bench.cases import SHAPES

COLUMNS = [
    "model",
    "params_b",
    "n_layers",
    "hidden",
    "n_heads",
    "n_kv_heads",
    "ffn_hidden",
    "vocab",
    "seq_len",
    "n_gpus",
    "tp",
    "dp",
    "zero_stage",
    "micro_batch",
    "accumulate",
    "activation_recompute",
    "recipe",
    "compiled",
    "optimizer",
    "loss_chunk_tokens",
    "loss_chunk_recompute",
    "forward_backward_s",
    "optimizer_s",
    "measured_iter_time_s",
    "measured_tokens_per_s_per_gpu",
    "after_forward_gb",
    "before_step_gb",
    "peak_memory_gb",
    "peak_reserved_gb",
]


def dimensions(model: str, parameters: int) -> dict[str, Any]:
    """What a row says of a model."""
    shape = SHAPES[model]
    return {
        "model": model,
        "params_b": parameters / 1e9,
        "n_layers": shape.layers,
        "hidden": shape.hidden,
        "n_heads": shape.heads,
        "n_kv_heads": shape.kv_heads,
        "ffn_hidden": shape.ffn,
        "vocab": shape.vocab,
    }


def allocated_gb() -> float:
    return torch.cuda.memory_allocated() / 1e9 if CUDA else float("nan")


def timed_steps(
    model: nn.Module, optimizer: torch.optim.Optimizer, tokens: Tensor, *, amp: bool, warmup: int
) -> tuple[float, dict[str, float]]:
    """Return the median time of three steps of a library model after a warm-up, and what was allocated within."""
    times, marks = [], {}
    for index in range(warmup + 3):
        if index == warmup and CUDA:
            torch.cuda.reset_peak_memory_stats()
        synchronize()
        begin = time.perf_counter()
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=amp):
            loss = model(input_ids=tokens, labels=tokens)
            loss = loss if isinstance(loss, Tensor) else loss.loss
        marks["after_forward_gb"] = allocated_gb()
        loss.backward()
        marks["before_step_gb"] = allocated_gb()
        del loss
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        synchronize()
        times.append(time.perf_counter() - begin)
    return sorted(times[warmup:])[1], marks


def add_steps(
    table: Table, model: nn.Module, optimizer: torch.optim.Optimizer, case: Any, *, amp: bool, warmup: int, **row: Any
) -> None:
    """Time steps of a library model and write a row; `row` adds to what a case says."""
    tokens = torch.randint(SHAPES[case.model].vocab, (case.micro, case.seq), device=DEVICE)
    time_s, marks = timed_steps(model, optimizer, tokens, amp=amp, warmup=warmup)
    peak, reserved = peak_gb()
    table.add(
        **dimensions(case.model, sum(p.numel() for p in model.parameters())), **marks, **row,
        seq_len=case.seq, micro_batch=case.micro, accumulate=1, activation_recompute=case.recompute,
        recipe=case.recipe, family=case.family, lora_rank=case.rank, loss_chunk_tokens=0, n_gpus=WORLD, tp=1, dp=WORLD,
        zero_stage=getattr(case, "zero", 0), compiled=getattr(case, "compiled", 0),
        optimizer=getattr(case, "optimizer", "fused"), measured_iter_time_s=time_s,
        measured_tokens_per_s_per_gpu=case.micro * case.seq / time_s, peak_memory_gb=peak, peak_reserved_gb=reserved,
    )  # fmt: skip
