"""What every device script shares: an incremental CSV, a time box, and clean-up between cases."""

import csv
import os
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch

from gpucost.bench.gpu.clock import CUDA, DEVICE, RANK, WORLD, clean, synchronize

__all__ = ["CUDA", "DEVICE", "WORLD", "Table", "TimeBox", "clean", "guarded", "out", "peak_gb", "synchronize"]


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
