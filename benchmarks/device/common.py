"""What every device script shares: an incremental CSV, a clock, a time box, and clean-up between cases."""

import csv
import gc
import os
import time
import traceback
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if CUDA else torch.device("cpu")
RANK = int(os.environ.get("RANK", "0"))
WORLD = int(os.environ.get("WORLD_SIZE", "1"))


class Table:
    """A CSV that grows row by row, so that a run cut short keeps what it measured. Only rank 0 writes."""

    def __init__(self, path: str, columns: list[str]) -> None:
        self.path, self.columns = path, columns
        if RANK == 0:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path, "w", newline="") as file:
                csv.writer(file).writerow(columns)

    def add(self, **row: Any) -> None:
        if RANK == 0:
            with open(self.path, "a", newline="") as file:
                csv.writer(file).writerow([_short(row.get(name, "")) for name in self.columns])
            print(" ".join(f"{key}={_short(value)}" for key, value in row.items()), flush=True)


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


class TimeBox:
    """Says when a part's time is over; all ranks hear rank 0's clock."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s, self.start_s = limit_s, time.monotonic()

    def over(self) -> bool:
        spent = time.monotonic() - self.start_s > self.limit_s
        if WORLD > 1:
            flag = torch.tensor([float(spent)], device=DEVICE)
            torch.distributed.broadcast(flag, 0)
            spent = bool(flag.item())
        return spent


def synchronize() -> None:
    if CUDA:
        torch.cuda.synchronize()


def seconds(step: Callable[[], Any], *, warmup: int = 3, repeat: int = 10) -> float:
    """Median seconds of a step, by CUDA events around each repetition (a host clock on a CPU)."""
    for _ in range(warmup):
        step()
    synchronize()
    times = []
    if CUDA:
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeat + 1)]
        marks[0].record()
        for mark in marks[1:]:
            step()
            mark.record()
        synchronize()
        times = [a.elapsed_time(b) / 1e3 for a, b in pairwise(marks)]
    else:
        for _ in range(repeat):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2]


def graph_seconds(step: Callable[[], Any], *, calls: int = 10, repeat: int = 5) -> float:
    """Median seconds of one call when `calls` of them are replayed from one CUDA graph: no launch gaps."""
    if not CUDA:
        return seconds(step, warmup=1, repeat=2)
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
    return seconds(graph.replay, warmup=2, repeat=repeat) / calls


def clean() -> None:
    gc.collect()
    if CUDA:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak_gb() -> tuple[float, float]:
    """Peak allocated and reserved memory in units of 1e9 bytes, the largest over all ranks."""
    if not CUDA:
        return float("nan"), float("nan")
    peaks = torch.tensor(
        [torch.cuda.max_memory_allocated() / 1e9, torch.cuda.max_memory_reserved() / 1e9], device=DEVICE
    )
    if WORLD > 1:
        torch.distributed.all_reduce(peaks, op=torch.distributed.ReduceOp.MAX)
    return float(peaks[0]), float(peaks[1])


def guarded(case: Callable[[], None], label: str) -> None:
    """Run one case; a failure is reported and the rest goes on."""
    try:
        case()
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}"
        print(f"FAILED {label}: {reason}", flush=True)
        if os.environ.get("VERBOSE"):
            traceback.print_exc()
        error.__traceback__ = None
    clean()


def out(name: str) -> str:
    return os.path.join(os.environ.get("OUT", "device-results"), name)
