"""Timing on a device: events around each repetition, medians, spread, and memory given back between cases."""

import gc
import os
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import torch

CUDA = torch.cuda.is_available() and os.environ.get("GPUCOST_BENCH_DEVICE") != "cpu"
RANK = int(os.environ.get("RANK", "0"))
WORLD = int(os.environ.get("WORLD_SIZE", "1"))
SETTLE_S = 0.5  # work of this length goes ahead of the repetitions, so that clocks settle under the power limit
DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if CUDA else torch.device("cpu")

FNUZ = bool(torch.version.hip) and "gfx94" in torch.cuda.get_device_properties(DEVICE).gcnArchName if CUDA else False
FP8 = torch.float8_e4m3fnuz if FNUZ else torch.float8_e4m3fn  # CDNA 3 multiplies a format without infinities


class Timing(NamedTuple):
    """Seconds of one call: the median of its repetitions, and how far the middle half of them spreads."""

    time_s: float
    spread_fraction: float
    repetitions: int


def summary(times: list[float]) -> Timing:
    """Return the median and (third − first quartile) ÷ median.

    >>> summary([1.0, 2.0, 2.0, 3.0, 2.0])
    Timing(time_s=2.0, spread_fraction=0.0, repetitions=5)
    """
    ordered = sorted(times)
    middle = ordered[len(ordered) // 2]
    first, third = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
    return Timing(middle, (third - first) / middle if middle > 0 else 0.0, len(ordered))


def synchronize() -> None:
    """Wait for the device."""
    if CUDA:
        torch.cuda.synchronize()


def _settle(step: Callable[[], Any]) -> int:
    """Repeat a step for a while; return how many repetitions that took, the same on every rank."""
    begin = time.perf_counter()
    step()
    synchronize()
    count = torch.tensor([SETTLE_S / max(time.perf_counter() - begin, 1e-6)], device=DEVICE)
    if WORLD > 1:
        torch.distributed.broadcast(count, 0)
    repetitions = max(1, min(5000, int(count.item())))
    for _ in range(repetitions):
        step()
    synchronize()
    return repetitions


def timed(step: Callable[[], Any], *, warmup: int = 3, repeat: int = 10) -> Timing:
    """Time a step, each repetition between two events of the device (a host clock on a CPU)."""
    for _ in range(warmup):
        step()
    synchronize()
    if CUDA:
        repeat = max(repeat, min(400, _settle(step)))
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeat + 1)]
        marks[0].record()
        for mark in marks[1:]:
            step()
            mark.record()
        synchronize()
        return summary([a.elapsed_time(b) / 1e3 for a, b in pairwise(marks)])
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return summary(times)


def replayed(step: Callable[[], Any], *, calls: int = 10, repeat: int = 7) -> Timing:
    """Time a step as `calls` of them replayed from one graph: what the device does without launch gaps."""
    if not CUDA:
        return timed(step, warmup=1, repeat=3)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            step()
    whole = timed(graph.replay, warmup=2, repeat=repeat)
    return whole._replace(time_s=whole.time_s / calls)


def host_timed(step: Callable[[], Any], *, warmup: int, repeat: int) -> Timing:
    """Time whole steps by the host's clock, the device awaited on both sides."""
    for _ in range(warmup):
        step()
    synchronize()
    if CUDA:
        _settle(step)
    times = []
    for _ in range(repeat):
        synchronize()
        begin = time.perf_counter()
        step()
        synchronize()
        times.append(time.perf_counter() - begin)
    return summary(times)


def clean() -> None:
    """Give memory back and start the peak anew."""
    gc.collect()
    if CUDA:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak_gb() -> float | None:
    """Return the allocator's peak in units of 1e9 bytes, the largest over all ranks; None on a CPU."""
    if not CUDA:
        return None
    peak = torch.tensor([torch.cuda.max_memory_allocated() / 1e9], device=DEVICE)
    if WORLD > 1:
        torch.distributed.all_reduce(peak, op=torch.distributed.ReduceOp.MAX)
    return float(peak[0])


def free_bytes() -> float:
    """Return the bytes that a case may take: nine tenths of what the device has free (2 GB on a CPU)."""
    return 0.9 * torch.cuda.mem_get_info()[0] if CUDA else 2e9
