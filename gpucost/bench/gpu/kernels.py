"""Kernels of one GPU, collectives over the GPUs of a node, and the way from files to the device."""

import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from gpucost.bench.gpu.clock import (
    CUDA,
    DEVICE,
    FP8,
    RANK,
    WORLD,
    Timing,
    burst,
    free_bytes,
    replayed,
    summary,
    synchronize,
    timed,
)

# --- Kernels of one GPU: copies, matrix products, attention, the optimizer, and the way to the host.
#
# Each function measures one case and returns its figures: seconds with their spread, and the rate that the seconds
# mean. Bytes are the least that must move, FLOP those of the mathematics (2·m·k·n; causal attention half of
# 4·b·h·s²·d).

# tf32 is how fp32 operands are multiplied
_DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_CACHE_BYTES = 400e6  # operands in rotation together exceed any last-level cache
_LARGE_BYTES = 2**26  # beyond what lies in a last-level cache
_LAUNCH_TRIES = 60

Figures = dict[str, Any]


def _figures(timing: Timing, **rates: float) -> Figures:
    return {**timing._asdict(), **rates}


def _room(needed_bytes: float) -> None:
    if needed_bytes > free_bytes():
        raise MemoryError(f"needs {needed_bytes / 1e9:.1f} GB, {free_bytes() / 1e9:.1f} GB are free")


def copy(size_bytes: int) -> Figures:
    """Copy within the device's memory; small sizes stay in its caches. Bytes read and written both count."""
    _room(2.0 * size_bytes)
    source = torch.randn(size_bytes // 4, device=DEVICE)
    target = torch.empty_like(source)
    if size_bytes >= _LARGE_BYTES:  # a copy inside a graph takes a slower path of the driver
        calls = max(1, 2**30 // size_bytes)  # between two events: they count in steps of half a microsecond
        all_calls = timed(lambda: [target.copy_(source) for _ in range(calls)])
        timing = all_calls._replace(time_s=all_calls.time_s / calls)
    else:
        timing = replayed(lambda: torch.neg(source, out=target), calls=100)
    return _figures(timing, gb_per_s=2.0 * size_bytes / timing.time_s / 1e9)


def matmul(precision: str, m: int, k: int, n: int) -> Figures:
    """Multiply m × k by k × n; several sets of operands take turns, so that no cache holds them.

    `tflops` is what lasts under the power limit; `burst_tflops` that of the first moments, as a short loop sees it.
    """
    width = {"fp8": 1, "fp32": 4, "tf32": 4}.get(precision, 2)  # bytes of an operand's element
    copies = max(1, min(16, math.ceil(_CACHE_BYTES / (width * (k * n + m * k)))))
    _room(1.5 * (copies * width * (k * n + m * k) + 4 * m * n))
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    if precision == "fp8":
        pairs = [
            (torch.randn(m, k, device=DEVICE).to(FP8), torch.randn(n, k, device=DEVICE).to(FP8)) for _ in range(copies)
        ]
        unit_scale = torch.ones((), device=DEVICE)

        def step() -> None:
            for x, w in pairs:
                torch._scaled_mm(
                    x, w.t(), scale_a=unit_scale, scale_b=unit_scale, out_dtype=torch.bfloat16, use_fast_accum=True
                )

    else:
        kind = _DTYPES[precision]
        pairs = [
            (torch.randn(m, k, device=DEVICE, dtype=kind), torch.randn(n, k, device=DEVICE, dtype=kind))
            for _ in range(copies)
        ]

        def step() -> None:
            for x, w in pairs:
                F.linear(x, w)

    flop = 2.0 * m * k * n
    # so many calls in a graph that it lasts some 2 ms on a chip of 600 TFLOP/s and 4 TB/s: its own launch is nothing
    calls = int(max(1, min(20, 2e-3 / max(flop / 6e14, width * k * n / 4e12) / copies)))
    first_s = burst(step) / copies  # before the long measurement heats the chip
    timing = replayed(step, calls=calls)
    time_s = timing.time_s / copies
    # bytes of both operands and of the product, which is fp32 only of fp32 operands
    moved = width * (m * k + k * n) + (4 if width == 4 else 2) * m * n
    rates = {"tflops": flop / time_s / 1e12, "gb_per_s": moved / time_s / 1e9}
    return _figures(timing._replace(time_s=time_s), **rates, burst_tflops=flop / first_s / 1e12)


def attention(direction: str, batch: int, sequence: int, heads: int, kv_heads: int, head_dim: int) -> Figures:
    """Causal attention, forward or backward (two and a half times the forward's FLOP)."""
    kind = torch.bfloat16

    def heads_of(count: int) -> torch.Tensor:
        return torch.randn(batch, count, sequence, head_dim, device=DEVICE, dtype=kind, requires_grad=True)

    q, k, v = heads_of(heads), heads_of(kv_heads), heads_of(kv_heads)

    def forward() -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != kv_heads)

    # q·kᵀ and p·v are 4·b·h·s²·d FLOP, of which a causal mask leaves half
    flop = 2.0 * batch * heads * sequence * sequence * head_dim
    if direction == "forward":
        with torch.no_grad():
            timing = timed(forward, warmup=5, repeat=11)
        return _figures(timing, tflops=flop / timing.time_s / 1e12)
    output = forward()
    grad = torch.randn_like(output)
    timing = timed(lambda: torch.autograd.grad(output, (q, k, v), grad, retain_graph=True), warmup=5, repeat=11)
    return _figures(timing, tflops=2.5 * flop / timing.time_s / 1e12)


def norm(tokens: int, hidden: int) -> Figures:
    """Root-mean-square norm, compiled where a compiler is: what fused element-wise work attains."""
    x = torch.randn(tokens, hidden, device=DEVICE, dtype=torch.bfloat16)
    weight = torch.ones(hidden, device=DEVICE, dtype=torch.bfloat16)

    def plain(value: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(value, (hidden,), weight, 1e-5)

    step = torch.compile(plain) if CUDA else plain
    timing = replayed(lambda: step(x))
    return _figures(timing, gb_per_s=4.0 * x.numel() / timing.time_s / 1e9)


def adamw(parameters: int) -> Figures:
    """Update fp32 parameters by a fused AdamW: 28 bytes each (read p, g, m, v; write p, m, v)."""
    _room(20.0 * parameters)  # p, g, m, v in fp32, and a quarter for the allocator
    # sixteen tensors, as a model has many: the fused kernel takes a list
    weights = [torch.randn(parameters // 16, device=DEVICE, requires_grad=True) for _ in range(16)]
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    optimizer = torch.optim.AdamW(weights, lr=1e-4, fused=CUDA)
    timing = timed(optimizer.step, warmup=2, repeat=7)
    return _figures(timing, gb_per_s=28.0 * parameters / timing.time_s / 1e9)


def host(direction: str, size_bytes: int, pinned: bool) -> Figures:
    """Copy from the host's memory to the device or back."""
    outside = torch.empty(size_bytes, dtype=torch.uint8, pin_memory=pinned and CUDA)
    inside = torch.empty(size_bytes, dtype=torch.uint8, device=DEVICE)
    source, target = (outside, inside) if direction == "to_device" else (inside, outside)
    timing = timed(lambda: target.copy_(source, non_blocking=True), warmup=2, repeat=7)
    return _figures(timing, gb_per_s=size_bytes / timing.time_s / 1e9)


def launch() -> Figures:
    """Time a kernel of almost no work, the host's floor under eager steps: the fastest of many tries, and the usual."""
    x = torch.zeros(8, device=DEVICE)

    times = []
    for _ in range(_LAUNCH_TRIES):
        synchronize()
        begin = time.perf_counter()
        for _ in range(200):  # so many that waiting for the last one is nothing beside them
            x.add_(1.0)
        synchronize()
        times.append((time.perf_counter() - begin) / 200)
    usual = summary(times)
    return _figures(usual._replace(time_s=min(times))) | {"bound": "host", "slowest_s": usual.time_s}


# --- Collectives over the GPUs of a node: seconds by operation and size of the full (unsharded) tensor.
#
# The bus bandwidth is what each GPU sends over its links: all-reduce 2(n−1)/n of the size, the others (n−1)/n, point
# to point the size itself, as NVIDIA's nccl-tests define it.


def _bus_share(operation: str, ranks: int) -> float:
    """Return the bytes that a GPU sends ÷ the bytes of the tensor.

    >>> _bus_share("all_reduce", 8), _bus_share("all_gather", 2), _bus_share("send", 8)
    (1.75, 0.5, 1.0)
    """
    if operation == "send":
        return 1.0
    return (2.0 if operation == "all_reduce" else 1.0) * (ranks - 1) / ranks


def collective(operation: str, size_bytes: int) -> dict[str, Any]:
    """Time one operation over all ranks."""
    full = torch.ones(size_bytes // 2, device=DEVICE, dtype=torch.bfloat16)
    # point to point in pairs: 0 with 1, 2 with 3, both ways at once
    part, received, peer = full.chunk(WORLD)[RANK].clone(), torch.empty_like(full), RANK ^ 1

    def send() -> None:
        if peer < WORLD:
            pair = [dist.P2POp(dist.isend, full, peer), dist.P2POp(dist.irecv, received, peer)]
            for request in dist.batch_isend_irecv(pair):
                request.wait()

    steps: dict[str, Callable[[], Any]] = {
        "all_reduce": lambda: dist.all_reduce(full),
        "all_gather": lambda: dist.all_gather_into_tensor(received, part),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part.clone(), full),
        "all_to_all": lambda: dist.all_to_all_single(received, full),
        "send": send,
    }
    timing = timed(steps[operation], warmup=5, repeat=20 if size_bytes < 2**24 else 9)
    rate = _bus_share(operation, WORLD) * size_bytes / timing.time_s / 1e9
    return {**timing._asdict(), "ranks": WORLD, "bus_gb_per_s": rate}


# --- From files to the device: how fast a data loader with some workers feeds a step.


class _Shards(Dataset[torch.Tensor]):
    """Files of raw tokens, read in pieces of one sample."""

    def __init__(self, paths: list[str], sample_bytes: int) -> None:
        self.paths, self.sample_bytes = paths, sample_bytes
        self.per_file = os.path.getsize(paths[0]) // sample_bytes

    def __len__(self) -> int:
        """Count the samples."""
        return len(self.paths) * self.per_file

    def __getitem__(self, index: int) -> torch.Tensor:
        """Read one sample."""
        number, offset = divmod(index, self.per_file)
        with open(self.paths[number], "rb") as file:
            file.seek(offset * self.sample_bytes)
            return torch.frombuffer(bytearray(file.read(self.sample_bytes)), dtype=torch.uint8)


def loader(workers: int, size_bytes: int, folder: str | None) -> dict[str, Any]:
    """Write files, forget them from the cache where the system lets us, and read them to the device."""
    sample_bytes, files = 2**16, 8
    with tempfile.TemporaryDirectory(prefix="gpucost-bench-", dir=folder) as folder_path:
        paths = []
        for number in range(files):
            path = Path(folder_path, f"{number}.bin")
            # random, or a file system that compresses would read next to nothing
            path.write_bytes(os.urandom(2**20) * max(1, size_bytes // files // 2**20))
            paths.append(str(path))
            # written out and dropped from the page cache, where the system offers that: else memory would be measured
            if hasattr(os, "posix_fadvise"):
                with open(path, "rb") as file:
                    os.fsync(file.fileno())
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        data = DataLoader(
            _Shards(paths, sample_bytes),
            batch_size=64,
            shuffle=True,
            num_workers=workers,
            pin_memory=DEVICE.type == "cuda",
        )
        begin = time.perf_counter()
        moved = sum(batch.to(DEVICE, non_blocking=True).numel() for batch in data)
        synchronize()
        elapsed_s = time.perf_counter() - begin
    return {
        "time_s": elapsed_s,
        "bound": "host",
        "gb_per_s": moved / elapsed_s / 1e9,
        "samples_per_s": moved / sample_bytes / elapsed_s,
    }
