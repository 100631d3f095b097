"""The state of AMD GPUs as the driver's files under /sys say it, or `amd-smi`, or `rocm-smi`; nothing is set.

The driver's files: docs.kernel.org/gpu/amdgpu/thermal.html. They cost no process, so that a bench reads them first.
"""

import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gpucost.bench.samples import POWER_CAP, SLOWDOWN, THERMAL, Sample, number
from gpucost.units import MICRO, MILLI

CARDS = Path("/sys/class/drm")
VENDOR = "0x1002"
BYTES_PER_MIB = 2.0**20
AT_LIMIT_FRACTION = 0.98  # of its power limit: a GPU that draws so much is held back by it
ROCM_SMI = (
    "rocm-smi",
    "--showpower",
    "--showmaxpower",
    "--showclocks",
    "--showtemp",
    "--showuse",
    "--showmeminfo",
    "vram",
    "--showproductname",
    "--showdriverversion",
    "--json",
)
VIOLATIONS = {
    "ppt": POWER_CAP,
    "prochot": SLOWDOWN,
    "socket_thermal": THERMAL,
    "vr_thermal": THERMAL,
    "hbm_thermal": THERMAL,
}


def look() -> list[Sample]:
    """Return the state of every AMD GPU now, by the first way that tells."""
    return from_files(CARDS) or _asked(("amd-smi", "metric", "--json"), from_amd_smi) or _asked(ROCM_SMI, from_rocm_smi)


def _asked(command: tuple[str, ...], read: Any) -> list[Sample]:
    if shutil.which(command[0]) is None:
        return []
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout
        found: list[Sample] = read(json.loads(text))
    except (OSError, ValueError, TypeError, AttributeError, subprocess.TimeoutExpired):
        return []
    return found


def held_back(power_w: float | None, limit_w: float | None) -> int:
    """Return the power cap's bit where a GPU draws all that it may.

    >>> held_back(748.0, 750.0), held_back(300.0, 750.0), held_back(None, 750.0)
    (4, 0, 0)
    """
    return POWER_CAP if power_w and limit_w and power_w >= AT_LIMIT_FRACTION * limit_w else 0


def from_files(cards: Path) -> list[Sample]:
    """Read the driver's files of every card of AMD's."""
    found: list[Sample] = []
    for device in sorted(cards.glob("card[0-9]*/device"), key=lambda path: number(path.parent.name[4:]) or 0.0):
        if "-" in device.parent.name or _said(device / "vendor") != VENDOR:
            continue
        sensors = next(iter(sorted(device.glob("hwmon/hwmon*"))), device)

        def first(names: Iterable[str], scale: float, place: Path = sensors) -> float | None:
            values = (number(_said(place / name)) for name in names)
            return next((value * scale for value in values if value is not None), None)

        power, limit = first(("power1_average", "power1_input"), MICRO), first(("power1_cap",), MICRO)
        found.append(
            Sample(
                len(found),
                _said(device / "product_name"),
                _said(Path("/sys/module/amdgpu/version")),
                limit,
                None,
                first(("mem_info_vram_used",), 1 / BYTES_PER_MIB, device),
                first(("gpu_busy_percent",), 1.0, device),
                first(("freq1_input",), MICRO),
                power,
                first(("temp2_input", "temp1_input"), MILLI),
                held_back(power, limit),
            )
        )
    return found


def _said(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def from_amd_smi(answer: Any) -> list[Sample]:
    """Read `amd-smi metric --json`: a list, or one under gpu_data since ROCm 7."""
    rows = answer.get("gpu_data", []) if isinstance(answer, Mapping) else answer
    return [_of_metric(place, row) for place, row in enumerate(rows) if isinstance(row, Mapping)]


def _of_metric(place: int, row: Mapping[str, Any]) -> Sample:
    def value(*path: str) -> float | None:
        at: Any = row
        for key in path:
            at = at.get(key) if isinstance(at, Mapping) else None
        return number(at.get("value") if isinstance(at, Mapping) else at)

    held = row.get("throttle")
    throttle: Mapping[str, Any] = held if isinstance(held, Mapping) else {}
    said = {name: str(throttle.get(f"{name}_violation_status", "")).upper() for name in VIOLATIONS}
    reasons = 0
    for name, bit in VIOLATIONS.items():
        reasons |= bit if said[name] == "ACTIVE" else 0
    gpu = row.get("gpu")
    return Sample(
        gpu if isinstance(gpu, int) else place,
        "",
        "",
        None,
        value("clock", "gfx_0", "max_clk"),
        value("mem_usage", "used_vram"),
        value("usage", "gfx_activity"),
        value("clock", "gfx_0", "clk"),
        value("power", "socket_power"),
        value("temperature", "hotspot"),
        reasons,
    )


def from_rocm_smi(answer: Any) -> list[Sample]:
    """Read `rocm-smi … --json`, whose names differ between chips and versions."""
    found: list[Sample] = []
    for name, row in answer.items():
        if not name.startswith("card"):
            continue

        def said(*words: str, of: Mapping[str, Any] = row) -> Any:
            return next((v for key, v in of.items() if all(word in key.lower() for word in words)), None)

        limit = number(said("max graphics package power"))
        power = number(said("average graphics package power") or said("current socket graphics package power"))
        used = number(said("vram", "used memory"))
        system = answer.get("system")
        driver = str(system.get("Driver version", "")) if isinstance(system, Mapping) else ""
        found.append(
            Sample(
                len(found),
                str(said("card series") or ""),
                driver,
                limit,
                None,
                None if used is None else used / BYTES_PER_MIB,
                number(said("gpu use")),
                number(said("sclk clock speed")),
                power,
                number(said("temperature", "junction") or said("temperature", "edge")),
                held_back(power, limit),
            )
        )
    return found
