"""Collectives over the GPUs of a node: seconds by operation and size of the full (unsharded) tensor.

The bus bandwidth is what each GPU sends over its links: all-reduce 2(n−1)/n of the size, the others (n−1)/n, point to
point the size itself, as NVIDIA's nccl-tests define it.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from gpucost.bench.gpu.clock import DEVICE, RANK, WORLD, timed


def bus_share(operation: str, ranks: int) -> float:
    """Return the bytes that a GPU sends ÷ the bytes of the tensor.

    >>> bus_share("all_reduce", 8), bus_share("all_gather", 2), bus_share("send", 8)
    (1.75, 0.5, 1.0)
    """
    if operation == "send":
        return 1.0
    return (2.0 if operation == "all_reduce" else 1.0) * (ranks - 1) / ranks


def _step(operation: str, full: torch.Tensor) -> Callable[[], Any]:
    part, other, peer = full.chunk(WORLD)[RANK].clone(), torch.empty_like(full), RANK ^ 1

    def send() -> None:
        if peer < WORLD:
            pair = [dist.P2POp(dist.isend, full, peer), dist.P2POp(dist.irecv, other, peer)]
            for request in dist.batch_isend_irecv(pair):
                request.wait()

    steps: dict[str, Callable[[], Any]] = {
        "all_reduce": lambda: dist.all_reduce(full),
        "all_gather": lambda: dist.all_gather_into_tensor(other, part),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part.clone(), full),
        "all_to_all": lambda: dist.all_to_all_single(other, full),
        "send": send,
    }
    return steps[operation]


def collective(operation: str, size_bytes: int) -> dict[str, Any]:
    """Time one operation over all ranks."""
    full = torch.ones(size_bytes // 2, device=DEVICE, dtype=torch.bfloat16)
    timing = timed(_step(operation, full), warmup=5, repeat=20 if size_bytes < 2**24 else 9)
    rate = bus_share(operation, WORLD) * size_bytes / timing.time_s / 1e9
    return {**timing._asdict(), "ranks": WORLD, "bus_gb_per_s": rate}
