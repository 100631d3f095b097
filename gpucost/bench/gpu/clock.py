"""Timing on a device: work until clocks are steady, events around each repetition, and memory given back after."""

import gc
import math
import os
import time
from collections.abc import Callable
from itertools import pairwise
from statistics import fmean, median
from typing import Any, NamedTuple

import torch

CUDA = torch.cuda.is_available() and os.environ.get("GPUCOST_BENCH_DEVICE") != "cpu"  # also ROCm's name for itself
RANK = int(os.environ.get("RANK", "0"))
WORLD = int(os.environ.get("WORLD_SIZE", "1"))
_WINDOW_S = 0.2  # of work ahead of the repetitions, again until two windows in a row agree: clocks have settled
_WINDOWS = 4  # at most, where clocks never settle
_STEADY_RATIO = 1.01  # between two windows
_MOST_REPETITIONS = 1000
_LONG_S = 0.3  # of a step that is repeated less often
DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if CUDA else torch.device("cpu")

_FNUZ = bool(torch.version.hip) and "gfx94" in torch.cuda.get_device_properties(DEVICE).gcnArchName if CUDA else False
FP8 = torch.float8_e4m3fnuz if _FNUZ else torch.float8_e4m3fn  # CDNA 3 multiplies a format without infinities


class Timing(NamedTuple):
    """Seconds of one call: the mean of the middle of its repetitions, and how far the middle half of them spreads."""

    time_s: float
    spread_fraction: float
    repetitions: int


def summary(times: list[float]) -> Timing:
    """Return the mean without the outer tenths, and (third − first quartile) ÷ it.

    A mean, since clocks that swing under a power limit have two usual speeds and no middle one.

    >>> summary([1.0, 2.0, 2.0, 9.0, 2.0])
    Timing(time_s=2.0, spread_fraction=0.0, repetitions=5)
    """
    ordered = sorted(times)
    outer = max(len(ordered) // 10, 1) if len(ordered) > 2 else 0
    usual = fmean(ordered[outer : len(ordered) - outer])
    first, third = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
    return Timing(usual, (third - first) / usual if usual > 0 else 0.0, len(ordered))


def synchronize() -> None:
    """Wait for the device."""
    if CUDA:
        torch.cuda.synchronize()


def _settle(step: Callable[[], Any]) -> float:
    """Repeat a step until its time is steady; return its seconds, the same on every rank."""

    def window(repetitions: int) -> float:
        begin = time.perf_counter()
        for _ in range(repetitions):
            step()
        synchronize()
        elapsed_s = time.perf_counter() - begin
        if WORLD == 1:
            return elapsed_s
        # the first rank's time on every rank: all must repeat alike, or a collective would wait for a call never made
        shared = torch.tensor([elapsed_s], device=DEVICE, dtype=torch.float64)
        torch.distributed.broadcast(shared, 0)
        return float(shared.item())

    repetitions = max(1, min(5000, int(_WINDOW_S / max(window(1), 1e-6))))
    now = math.inf
    for _ in range(_WINDOWS):
        before, now = now, window(repetitions)
        if max(now, before) < _STEADY_RATIO * min(now, before):
            break
    return now / repetitions


def timed(step: Callable[[], Any], *, warmup: int = 3, repeat: int = 10) -> Timing:
    """Time a step, each repetition between two events of the device (a host clock on a CPU)."""
    for _ in range(warmup):
        step()
    synchronize()
    if CUDA:
        repeat = max(repeat, min(_MOST_REPETITIONS, int(2 * _WINDOW_S / _settle(step))))
        # n + 1 events bound n repetitions: the host never waits between them, so that its launches stay ahead
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


def burst(step: Callable[[], Any], *, length_s: float = 0.03) -> float:
    """Return the seconds of a call within the first moments of work, before clocks fall under the power limit."""
    step()  # the first call of a shape picks and loads its kernel
    synchronize()
    begin = time.perf_counter()
    step()
    synchronize()
    calls = max(1, min(100, int(length_s / max(time.perf_counter() - begin, 1e-6))))
    begin = time.perf_counter()
    for _ in range(calls):
        step()
    synchronize()
    return (time.perf_counter() - begin) / calls


def replayed(step: Callable[[], Any], *, calls: int = 10, repeat: int = 7) -> Timing:
    """Time a step as `calls` of them replayed from one graph: what the device does without launch gaps."""
    if not CUDA:
        return timed(step, warmup=1, repeat=3)
    # a capture wants work that ran before, on a stream other than the default one
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
    timing = timed(graph.replay, warmup=2, repeat=repeat)
    return timing._replace(time_s=timing.time_s / calls)


def host_timed(step: Callable[[], Any], *, warmup: int, repeat: int) -> tuple[Timing, list[float]]:
    """Time whole steps by the host's clock, the device awaited on both sides; also the median of each third of them.

    Long steps are repeated a third less often.
    """
    for _ in range(warmup):
        step()
    synchronize()
    if CUDA and _settle(step) > _LONG_S:
        repeat -= repeat // 3
    # each step is awaited, as a trainer does that logs its loss
    times = []
    for _ in range(repeat):
        synchronize()
        begin = time.perf_counter()
        step()
        synchronize()
        times.append(time.perf_counter() - begin)
    third = max(1, repeat // 3)
    return summary(times), [median(times[start : start + third]) for start in range(0, repeat - third + 1, third)]


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


def memory() -> str:
    """Say who holds the device's memory, in units of 1e9 bytes."""
    if not CUDA:
        return ""
    free, total = torch.cuda.mem_get_info()
    mine = torch.cuda.memory_reserved()
    return f"{mine / 1e9:.1f} GB held, {(total - free - mine) / 1e9:.1f} by others, of {total / 1e9:.1f}"
