"""What `nvidia-smi --format=csv` writes over a job: how busy the GPUs were, what they drew, held and cost."""

import re
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from gpucost.answers.training import Estimate
from gpucost.errors import DataError, UsageError
from gpucost.gate import read_parts, read_table
from gpucost.units import GB, GIB, SECONDS_PER_HOUR

_COLUMNS = {  # as --query-gpu names them -> what is read of them
    "timestamp": "at",
    "index": "gpu",
    "uuid": "gpu",
    "pci.bus_id": "gpu",
    "utilization.gpu": "busy",
    "power.draw": "power_w",
    "power.draw.average": "power_w",
    "memory.used": "memory_mib",
    "temperature.gpu": "celsius",
}
# a heading names its unit behind the name: `power.draw [W]`
_UNIT = re.compile(r"(?<!\s)\s*\[[^\[\]]*\]$")
_FEWEST = 2  # moments that make a span
_IDLE_PERCENT = 5.0  # busy no more than this, a GPU waits
_GAP_RATIO = 10.0  # of the usual step between two moments: longer, and nothing was seen in between
_GB_PER_MIB = GIB / 1024 / GB


class _SmiSample(NamedTuple):
    """One GPU at one moment; None is not known."""

    at: datetime
    gpu: str
    busy: float | None
    power_w: float | None
    memory_mib: float | None
    celsius: float | None


def is_smi(path: str) -> bool:
    """Tell whether a file begins with the heading that nvidia-smi writes."""
    first = next(read_parts(path), b"")[:2000].split(b"\n", 1)[0].decode("utf-8", "replace").lower()
    names = [_UNIT.sub("", cell.strip()) for cell in first.split(",")]
    return "timestamp" in names and any(name in names for name in ("utilization.gpu", "power.draw"))


def _number(text: str | None) -> float | None:
    """Read a cell with or without its unit; [N/A] and the like are not known.

    >>> _number("98 %"), _number("683.12 W"), _number("[N/A]")
    (98.0, 683.12, None)
    """
    match = re.match(r"-?\d+(?:\.\d+)?", (text or "").strip())
    return float(match.group()) if match else None


def summed(path: str, estimate: Estimate | None = None, rank: int = 1) -> list[dict[str, Any]]:
    """Return what the GPUs did: hours, how busy, watts, kWh, memory; with an estimate what the hours cost so far.

    Energy is watts × the time to the next moment, added up over GPUs; where the file falls silent for long, nothing is
    counted.
    """
    header, lines = read_table(path)
    field_by_column = {name: _COLUMNS.get(_UNIT.sub("", name.strip().lower())) for name in header}
    samples = []
    for line, cell_by_name in lines:
        cells = {
            field: cell_by_name[name].strip()
            for name, field in field_by_column.items()
            if field and cell_by_name.get(name)
        }
        if "at" not in cells:
            continue  # the last line may be half written
        try:
            at = datetime.fromisoformat(cells["at"].replace("/", "-"))
        except ValueError:
            raise DataError(f"{cells['at']!r} is not a time", file=path, row=line, column="timestamp") from None
        number = {name: _number(cells.get(name)) for name in ("busy", "power_w", "memory_mib", "celsius")}
        samples.append(_SmiSample(at, cells.get("gpu", "0"), **number))
    moments = sorted({sample.at for sample in samples})
    gpus = sorted({sample.gpu for sample in samples})
    if len(moments) < _FEWEST:
        raise UsageError(f"{path} holds {len(moments)} moment: let nvidia-smi repeat with -l 10, and look again.")
    steps = [(after - before).total_seconds() for before, after in pairwise(moments)]
    usual = median(steps)
    # how long each moment stands for: until the next, or the usual step where the file falls silent, and at its end
    span = dict(zip(moments, (step if step <= _GAP_RATIO * usual else usual for step in [*steps, usual]), strict=True))
    hours = sum(span.values()) / SECONDS_PER_HOUR
    busy = [sample.busy for sample in samples if sample.busy is not None]
    watts = [sample.power_w for sample in samples if sample.power_w is not None]
    memory = [sample.memory_mib for sample in samples if sample.memory_mib is not None]
    option = None
    if estimate is not None:
        option = next((row for row in estimate["options"] if row["rank"] == rank), None)
        if option is None:
            raise UsageError(f"the estimate has no option of rank {rank}: it shows {len(estimate['options'])}.")
    planned_w = None
    if option is not None and option["energy_kwh"]:
        planned_w = 1000 * option["energy_kwh"] / option["gpu_hours"]
    rows = [
        _row("GPUs", float(len(gpus)), option and float(option["gpus"]), "accelerators"),
        _row("hours", hours, option and option["days"] * 24, "hours"),
        _row("busy", sum(busy) / len(busy) / 100 if busy else None, None, "fraction of one"),
        _row(
            "idle",
            sum(percent <= _IDLE_PERCENT for percent in busy) / len(busy) if busy else None,
            None,
            "fraction of one",
        ),
        _row("power of a GPU", sum(watts) / len(watts) if watts else None, planned_w, "W"),
        _row("memory of a GPU", max(memory) * _GB_PER_MIB if memory else None, option and option["memory_gb"], "GB"),
    ]
    if watts:
        joules = sum(sample.power_w * span[sample.at] for sample in samples if sample.power_w is not None)
        kwh = joules / SECONDS_PER_HOUR / 1000
        rows.append(_row("energy of the GPUs", kwh, option and option["energy_kwh"], "kWh"))
    if option is not None:
        spent = hours * option["gpus"] * option["usd_per_gpu_hour"]
        rows.append(_row("cost so far", spent, option["cost_usd"], "USD"))
    # a column that the file lacks is no row
    return [row for row in rows if row["now"] is not None]


def _row(label: str, now: float | None, estimated: float | None, unit: str) -> dict[str, Any]:
    # the columns of `forecast` in progress.py: one table shows both
    return {
        "what": label,
        "now": now,
        "low": None,
        "high": None,
        "estimated": estimated,
        "against_ratio": None,
        "unit": unit,
    }
