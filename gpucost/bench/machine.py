"""The state of the GPUs while they are measured: power, clocks and heat, as each maker's tools say. Nothing is set."""

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from gpucost.units import MICRO, MILLI

# --- One GPU at one moment, as the tools of its maker say.

POWER_CAP, SLOWDOWN, THERMAL = 0x4, 0x8, 0x40
# Bits of NVIDIA's clock event reasons that slow a GPU down (NVML API reference, nvmlClocksEventReasons).
_REASONS: Mapping[int, str] = {
    POWER_CAP: "power cap",
    SLOWDOWN: "hardware slowdown",
    0x20: "software thermal limit",
    THERMAL: "hardware thermal limit",
    0x80: "power brake",
}


class Sample(NamedTuple):
    """One GPU at one moment; None where the tool does not say."""

    gpu: int
    name: str
    driver: str
    power_limit_w: float | None
    clock_max_mhz: float | None
    memory_used_mib: float | None
    utilisation_percent: float | None
    clock_mhz: float | None
    power_w: float | None
    temperature_c: float | None
    reasons: int


def _number(text: object) -> float | None:
    """Return the first number of a cell; None where it says none.

    >>> _number("(1090Mhz)"), _number("N/A"), _number(71.2), _number(True)
    (1090.0, None, 71.2, None)
    """
    if isinstance(text, bool):
        return None
    parts = "".join(c if c in "0123456789.-" else " " for c in str(text)).split()
    try:
        return float(parts[0]) if parts else None
    except ValueError:
        return None


# --- The state of AMD GPUs as the driver's files under /sys say it; nothing is set.
#
# The driver's files: docs.kernel.org/gpu/amdgpu/thermal.html. They need no tool.

CARDS = Path("/sys/class/drm")
_VENDOR = "0x1002"  # AMD's id on the PCI bus
_BYTES_PER_MIB = 2.0**20
_AT_LIMIT_FRACTION = 0.98  # of its power limit: a GPU that draws so much is held back by it


def _held_back(power_w: float | None, limit_w: float | None) -> int:
    """Return the power cap's bit where a GPU draws all that it may.

    >>> _held_back(748.0, 750.0), _held_back(300.0, 750.0), _held_back(None, 750.0)
    (4, 0, 0)
    """
    return POWER_CAP if power_w and limit_w and power_w >= _AT_LIMIT_FRACTION * limit_w else 0


def from_files(cards: Path) -> list[Sample]:
    """Read the driver's files of every card of AMD's."""
    samples: list[Sample] = []
    for device in sorted(cards.glob("card[0-9]*/device"), key=lambda path: _number(path.parent.name[4:]) or 0.0):
        # card0-DP-1 is a socket for a screen
        if "-" in device.parent.name or _text_of(device / "vendor") != _VENDOR:
            continue
        hwmon_folders = sorted(device.glob("hwmon/hwmon*"))
        sensors = hwmon_folders[0] if hwmon_folders else device

        def first(names: Iterable[str], scale: float, folder: Path = sensors) -> float | None:
            values = (_number(_text_of(folder / name)) for name in names)
            return next((value * scale for value in values if value is not None), None)

        # in µW, Hz and m°C: the average power, else that of the moment; the hottest spot, else the edge
        power, limit = first(("power1_average", "power1_input"), MICRO), first(("power1_cap",), MICRO)
        samples.append(
            Sample(
                len(samples),
                _text_of(device / "product_name"),
                _text_of(Path("/sys/module/amdgpu/version")),
                limit,
                None,  # the driver does not say the highest clock
                first(("mem_info_vram_used",), 1 / _BYTES_PER_MIB, device),
                first(("gpu_busy_percent",), 1.0, device),
                first(("freq1_input",), MICRO),
                power,
                first(("temp2_input", "temp1_input"), MILLI),
                _held_back(power, limit),
            )
        )
    return samples


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


# --- The state of the GPUs while they are measured: power, clocks, heat and what holds them back. Nothing is ever
# set.

# `clocks_throttle_reasons` is the older name of `clocks_event_reasons`; newer drivers still take it.
_FIELDS = (
    "index,name,driver_version,power.limit,clocks.max.sm,memory.used,utilization.gpu,"
    "clocks.sm,power.draw,temperature.gpu,clocks_throttle_reasons.active"
)
LOOK_S = 0.5
BUSY_MIB, BUSY_PERCENT = 2_000.0, 10.0  # beyond these another program is at work


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
    numbers = dict(zip(Sample._fields[3:10], map(_number, cells[3:10]), strict=True))
    reasons = int(cells[10], 16) if cells[10].startswith("0x") else 0
    return Sample(gpu=int(cells[0]), name=cells[1], driver=cells[2], reasons=reasons, **numbers)


def _slowed_by(reasons: int) -> list[str]:
    """Name what slows a GPU down.

    >>> _slowed_by(0x24)
    ['power cap', 'software thermal limit']
    """
    return [name for bit, name in _REASONS.items() if reasons & bit]


def _query(*more: str) -> list[str]:
    """Ask of the GPUs that this process may use: what others do on the rest says nothing of them."""
    mine = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    chosen = [f"--id={mine}"] if mine and "MIG" not in mine else []  # --id takes no slice
    return ["nvidia-smi", f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits", *chosen, *more]


def look() -> list[Sample]:
    """Return the state of every GPU now; nothing where no tool tells."""
    if shutil.which("nvidia-smi") is None:
        return from_files(CARDS)
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return []
    try:
        text = subprocess.run(_query(), capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [sample for line in text.splitlines() if (sample := parse(line))]


def busy(samples: list[Sample]) -> list[str]:
    """Say which GPUs others use already."""
    busy_gpus = []
    for sample in samples:
        used, load = sample.memory_used_mib or 0.0, sample.utilisation_percent or 0.0
        if used > BUSY_MIB or load > BUSY_PERCENT:
            busy_gpus.append(f"GPU {sample.gpu} is in use: {used:,.0f} MiB taken, {load:.0f} % busy")
    return busy_gpus


class Watch:
    """Samples taken twice a second while cases run."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, Sample]] = []

    def between(self, begin: float, end: float) -> dict[str, Any]:
        """Sum up the GPUs that worked between two moments: median power and clock, heat, and what slowed them."""
        seen = [sample for moment, sample in self.samples if begin <= moment <= end]
        # those that worked speak; of a case too short to be seen at work, all that was seen
        working = [sample for sample in seen if (sample.utilisation_percent or 0) >= 50] or seen
        if not working:
            return {}
        # a reason counts where it held in over a quarter of the samples: at the start of work each holds for a moment
        reasons = [name for sample in working for name in _slowed_by(sample.reasons)]
        often = sorted({name for name in reasons if reasons.count(name) > len(working) / 4})
        return {
            "power_w": _median([sample.power_w for sample in working]),
            "clock_mhz": _median([sample.clock_mhz for sample in working]),
            "temperature_c": max((sample.temperature_c or 0.0 for sample in working), default=0.0) or None,
            **({"slowed_by": often} if often else {}),
        }


def _median(values: list[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return median(numbers) if numbers else None


@contextmanager
def watching() -> Iterator[Watch]:
    """Sample the GPUs in the background; a machine without a tool is simply not watched."""
    watch, ended = Watch(), threading.Event()
    process = None
    if shutil.which("nvidia-smi") is not None:
        process = subprocess.Popen(_query("-lms", "500"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def collect() -> None:
        # nvidia-smi repeats by itself and its lines end with it; the files under /sys must be read again and again
        for line in (process.stdout if process else None) or ():
            if sample := parse(line):
                watch.samples.append((time.monotonic(), sample))
        while process is None and (samples := from_files(CARDS)):
            watch.samples += [(time.monotonic(), sample) for sample in samples]
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
