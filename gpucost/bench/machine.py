"""The state of the GPUs while they are measured: power, clocks, heat and what holds them back. Nothing is ever set."""

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from gpucost.bench import amd
from gpucost.bench.samples import REASONS, Sample, number

FIELDS = (
    "index,name,driver_version,power.limit,clocks.max.sm,memory.used,utilization.gpu,"
    "clocks.sm,power.draw,temperature.gpu,clocks_throttle_reasons.active"
)
LOOK_S = 0.5
BUSY_MIB, BUSY_PERCENT = 2_000.0, 10.0


def parse(line: str) -> Sample | None:
    """Read a line of `nvidia-smi --format=csv,noheader,nounits`; None where it is none.

    >>> parse("0, NVIDIA H100 80GB HBM3, 580.1, 700.00, 1980, 1, 0, 345, 71.2, 30, 0x0000000000000001").power_w
    71.2
    >>> parse("No devices were found") is None
    True
    """
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != 11 or not cells[0].isdigit():
        return None
    numbers = dict(zip(Sample._fields[3:10], map(number, cells[3:10]), strict=True))
    reasons = int(cells[10], 16) if cells[10].startswith("0x") else 0
    return Sample(gpu=int(cells[0]), name=cells[1], driver=cells[2], reasons=reasons, **numbers)


def slowed_by(reasons: int) -> list[str]:
    """Name what slows a GPU down.

    >>> slowed_by(0x24)
    ['power cap', 'software thermal limit']
    """
    return [name for bit, name in REASONS.items() if reasons & bit]


def _query(*more: str) -> list[str]:
    """Ask of the GPUs that this process may use: what others do on the rest says nothing of them."""
    mine = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    chosen = [f"--id={mine}"] if mine and "MIG" not in mine else []
    return ["nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits", *chosen, *more]


def look() -> list[Sample]:
    """Return the state of every GPU now; nothing where no tool tells."""
    if shutil.which("nvidia-smi") is None:
        return amd.look()
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return []
    try:
        text = subprocess.run(_query(), capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [sample for line in text.splitlines() if (sample := parse(line))]


def busy(samples: list[Sample]) -> list[str]:
    """Say which GPUs others use already."""
    found = []
    for sample in samples:
        used, load = sample.memory_used_mib or 0.0, sample.utilisation_percent or 0.0
        if used > BUSY_MIB or load > BUSY_PERCENT:
            found.append(f"GPU {sample.gpu} is in use: {used:,.0f} MiB taken, {load:.0f} % busy")
    return found


class Watch:
    """Samples taken twice a second while cases run."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, Sample]] = []

    def between(self, begin: float, end: float) -> dict[str, Any]:
        """Sum up the GPUs that worked between two moments: median power and clock, heat, and what slowed them."""
        seen = [sample for moment, sample in self.samples if begin <= moment <= end]
        working = [sample for sample in seen if (sample.utilisation_percent or 0) >= 50] or seen
        if not working:
            return {}
        reasons = [name for sample in working for name in slowed_by(sample.reasons)]
        often = sorted({name for name in reasons if reasons.count(name) > len(working) / 4})
        return {
            "power_w": _median([sample.power_w for sample in working]),
            "clock_mhz": _median([sample.clock_mhz for sample in working]),
            "temperature_c": max((sample.temperature_c or 0.0 for sample in working), default=0.0) or None,
            **({"slowed_by": often} if often else {}),
        }


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


@contextmanager
def watching() -> Iterator[Watch]:
    """Sample the GPUs in the background; a machine without a tool is simply not watched."""
    watch, ended = Watch(), threading.Event()
    process = None
    if shutil.which("nvidia-smi") is not None:
        process = subprocess.Popen(_query("-lms", "500"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def collect() -> None:
        for line in (process.stdout if process else None) or ():
            if sample := parse(line):
                watch.samples.append((time.monotonic(), sample))
        while process is None and (found := amd.look()):
            watch.samples += [(time.monotonic(), sample) for sample in found]
            if ended.wait(LOOK_S):
                return

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        ended.set()
        if process:
            process.kill()
            process.wait()
