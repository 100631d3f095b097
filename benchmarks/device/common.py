"""What device scripts share: an incremental CSV, a time box, options, ranks, and clean-up between cases."""

import argparse
import csv
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from gpucost.bench.gpu.clock import CUDA, DEVICE, RANK, WORLD, clean, synchronize

__all__ = ["CUDA", "DEVICE", "RANK", "WORLD", "Table", "TimeBox", "clean", "guarded", "out", "peak_gb", "synchronize"]


class Table:
    """A CSV that grows row by row, so that a run cut short keeps what it measured. Only rank 0 writes."""

    def __init__(self, path: str, columns: list[str]) -> None:
        self.path, self.columns = path, columns
        if RANK == 0:  # with its header at once: a file without rows is one whose cases all failed
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path, "w", newline="") as file:
                csv.writer(file).writerow(columns)

    def add(self, **row: Any) -> None:
        if RANK == 0:
            cells = {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
            with open(self.path, "a", newline="") as file:
                csv.writer(file).writerow([cells.get(name, "") for name in self.columns])
            print(" ".join(f"{key}={value}" for key, value in cells.items()), flush=True)


class TimeBox:
    """Says when a part's time is over; all ranks hear rank 0's clock."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s, self.start_s = limit_s, time.monotonic()

    def over(self) -> bool:
        spent = time.monotonic() - self.start_s > self.limit_s
        if WORLD > 1:  # one rank that stops alone would leave the others waiting in a collective
            flag = torch.tensor([float(spent)], device=DEVICE)
            torch.distributed.broadcast(flag, 0)
            spent = bool(flag.item())
        return spent


def peak_gb() -> tuple[float, float]:
    """Peak allocated and reserved memory in units of 1e9 bytes, the largest over all ranks."""
    if not CUDA:  # nothing counts what a host allocates
        return float("nan"), float("nan")
    peaks = torch.tensor(
        [torch.cuda.max_memory_allocated() / 1e9, torch.cuda.max_memory_reserved() / 1e9], device=DEVICE
    )
    if WORLD > 1:
        torch.distributed.all_reduce(peaks, op=torch.distributed.ReduceOp.MAX)
    return float(peaks[0]), float(peaks[1])


def guarded(case: Callable[[], None], label: str) -> None:
    """Run one case; a failure is reported and the others go on."""
    try:
        case()
    except Exception as error:
        # the first line: an allocator's message goes on for a page
        reason = f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}"
        print(f"FAILED {label}: {reason}", flush=True)
        if os.environ.get("VERBOSE"):
            traceback.print_exc()
        error.__traceback__ = None  # its frames hold the tensors of the case
    clean()


def run_cases(run: Callable[[Table, Any], None], table: Table, cases: Iterable[Any], box: TimeBox) -> None:
    """Run cases one after the other while there is time."""
    for case in cases:
        if box.over():
            break
        guarded(lambda case=case: run(table, case), str(case))


def out(name: str) -> str:
    """Return where a file of results goes."""
    return os.path.join(os.environ.get("OUT", "device-results"), name)


def options(description: str | None, seconds: float, **choices: Any) -> argparse.Namespace:
    """Read what every script takes, and its `--set` where it has several."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=seconds, help="after which no further case begins")
    parser.add_argument("--tiny", action="store_true", help="try the script without a GPU")
    for name, values in choices.items():
        parser.add_argument(f"--{name}", choices=values, required=True)
    return parser.parse_args()


@contextmanager
def ranks() -> Iterator[None]:
    """Join the ranks that torchrun started, and leave them together; nothing where there is one."""
    if WORLD == 1:
        yield
        return
    if CUDA:
        torch.cuda.set_device(DEVICE)
    torch.distributed.init_process_group("nccl" if CUDA else "gloo", device_id=DEVICE if CUDA else None)
    yield
    torch.distributed.barrier()  # a rank that leaves first would break the last collective of another
    torch.distributed.destroy_process_group()
