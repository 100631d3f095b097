"""Measured against theoretical: what share of each datasheet peak a machine attains, and what that says of it.

The yardstick is twofold: the peak of the datasheet, and the shares that the same kind of work reached on machines on
record (models/measurements/bench.csv). A machine far below the record is told so, with what would explain it.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from gpucost.errors import AmbiguousNameError, UnknownNameError
from gpucost.types import Accelerator
from gpucost.units import GB, MS_PER_S, TERA

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

_AGREE_FRACTION = 0.03  # rounds, and two runs of one machine, agree within this, or a range is told
SWING_FRACTION = 0.04  # width of the middle half of repetitions beyond which rounds that agree do so by chance
LOW_RATIO, SICK_RATIO = 0.85, 0.6  # measured ÷ what machines on record attain: below is worth a word, below is a fault
_GPU_DIFFERENCE_RATIO = 0.9  # a GPU this much slower than its neighbours is named: sound ones differ by 8 % under a cap
_PINNED_FRACTION = 0.85  # of the slot's one-way rate, what pinned copies reach
_LARGE_PRODUCT_FLOP = 2.0 * 4096**3  # smaller ones are bound by memory or by their launch
_LARGE_COPY_BYTES = 2**26  # smaller ones lie in caches
_LARGE_MESSAGE_BYTES = 2**27  # smaller ones are bound by latency


class Yardstick(NamedTuple):
    """One kind of work: its datasheet peak, and the share of it that machines on record reach."""

    key: str
    label: str
    peak: float | None
    unit: str
    measured: float | None
    usual_fraction: float | None
    low: float | None = None  # where rounds differ: a range, not a figure
    high: float | None = None


def accelerator_of(catalog: "Catalog", device: str) -> Accelerator | None:
    """Return the accelerator that a driver's name means; None where the catalog knows none."""
    try:
        return catalog.accelerator(device)
    except (AmbiguousNameError, UnknownNameError):
        return None


class _BenchWork(NamedTuple):
    """A kind of work: which figures show it, and which peak of the datasheet bounds it."""

    label: str
    key: str  # in the shares on record
    cells: Mapping[str, Any]  # what a figure must say
    rate: str
    peak: str  # field of the accelerator
    unit: str
    usual_fraction: float | None = None  # where no machine is on record


def _works() -> Iterable[_BenchWork]:
    match: dict[str, Any]
    yield _BenchWork("memory bandwidth", "copy", {"op": "copy"}, "gb_per_s", "hbm_gb_per_s", "GB/s")
    for precision in ("bf16", "fp16", "fp8", "tf32", "fp32"):
        match = {"op": "matmul", "precision": precision}
        yield _BenchWork(
            f"{precision} products", f"matmul.{precision}", match, "tflops", f"{precision}_tflops", "TFLOP/s"
        )
    for way in ("forward", "backward"):
        match = {"op": "attention", "direction": way}
        yield _BenchWork(f"attention, {way}", f"attention_{way}", match, "tflops", "bf16_tflops", "TFLOP/s")
    for way, label in (("to_device", "host to device"), ("to_host", "device to host")):
        match = {"op": "host", "direction": way}
        yield _BenchWork(label, way, match, "gb_per_s", "pcie_gb_per_s", "GB/s", _PINNED_FRACTION)
    for operation in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"):
        match = {"op": "collective", "operation": operation}
        label = operation.replace("_", "-")
        yield _BenchWork(label, operation, match, "bus_gb_per_s", "scaleup_gb_per_s", "GB/s")


_WORKS = tuple(_works())


def range_of(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the seconds between which a case lies where it is no figure: rounds differ, it swings, or the host rules.

    Of a case that swings between clocks, as under a power limit, two rounds may agree where the next does not. What is
    told is where some 80 % of its repetitions lie: as far to each side as the middle half of them is wide.

    >>> range_of({"rounds_s": [1.0, 1.01, 1.02]}), range_of({"rounds_s": [1.0, 1.04]})
    (None, (1.0, 1.04))
    >>> range_of({"rounds_s": [1.0, 1.01], "bound": "host", "slowest_s": 1.2})
    (1.0, 1.2)
    >>> range_of({"rounds_s": [1.0, 1.0], "spread_fraction": 0.5})
    (0.6666666666666666, 1.5)
    """
    rounds = row.get("rounds_s") or ([row["time_s"]] if row.get("time_s") else [])
    if not rounds:
        return None
    ends = min(rounds), max(*rounds, row.get("slowest_s") or 0.0)
    if row.get("bound") == "host":
        return ends
    spread = row.get("spread_fraction") or 0.0
    if spread > SWING_FRACTION:
        usual, side = median(rounds), 1 + spread
        return min(ends[0], usual / side), max(ends[1], usual * side)
    return ends if ends[1] > (1 + _AGREE_FRACTION) * ends[0] else None


def ranges_of(bench: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the cases of a bench that are no figures, and between which times each lies."""
    return [
        {"case": row["id"], "low_ms": MS_PER_S * ends[0], "high_ms": MS_PER_S * ends[1]}
        for row in bench["figures"]
        if (ends := range_of(row))
    ]


def _large(row: Mapping[str, Any]) -> bool:
    """Tell whether a figure is of a size at which the peak is what bounds it."""
    if row["op"] == "matmul":
        return 2.0 * float(row["m"]) * float(row["k"]) * float(row["n"]) >= _LARGE_PRODUCT_FLOP
    if row["op"] == "host":
        return bool(row.get("pinned", True))
    limit = {"copy": _LARGE_COPY_BYTES, "collective": _LARGE_MESSAGE_BYTES}.get(row["op"], 0)
    return int(row.get("size_bytes") or limit) >= limit


def yardsticks(bench: Mapping[str, Any], chip: Accelerator | None, on_record: Mapping[str, float]) -> list[Yardstick]:
    """Return each kind of work that was measured, the best figure of its large sizes beside a known chip's peak."""
    measured = []
    for work in _WORKS:
        rates = [
            (row[work.rate], row)
            for row in bench["figures"]
            if all(row.get(name) == value for name, value in work.cells.items()) and _large(row) and row.get(work.rate)
        ]
        if rates:
            best = max(rates, key=lambda pair: pair[0])
            ends = range_of(best[1])
            # a rate falls as its time grows: the longest time is the low end
            sides = [best[0] * best[1]["time_s"] / end for end in reversed(ends)] if ends else [None, None]
            peak = getattr(chip, work.peak, None)
            if chip and not peak and work.peak == "scaleup_gb_per_s":  # GPUs without links of their own meet over PCIe
                peak = chip.pcie_gb_per_s
            usual = on_record.get(work.key, work.usual_fraction) if chip else None
            measured.append(Yardstick(work.key, work.label, peak, work.unit, best[0], usual, *sides))
    return measured


def shares_by_machine(measurements: Sequence[Mapping[str, Any]], catalog: "Catalog") -> dict[str, list[float]]:
    """Return the shares of the datasheet's peak that machines on record reach, by kind of work."""
    machines: dict[str, list[Mapping[str, Any]]] = {}
    for row in measurements:
        machines.setdefault(str(row["machine"]), []).append(row)
    shares: dict[str, list[float]] = {}
    for figures in machines.values():
        for stick in yardsticks({"figures": figures}, catalog.accelerator(str(figures[0]["gpu"])), {}):
            if stick.peak and stick.measured:
                shares.setdefault(stick.key, []).append(stick.measured / stick.peak)
    return shares


def place(share: float | None, recorded: Sequence[float]) -> str:
    """Say where a machine stands among those on record, the best first.

    >>> place(0.7, [0.72, 0.6]), place(0.7, []), place(None, [0.7])
    ('2 of 3', '', '')
    """
    if share is None or not recorded:
        return ""
    return f"{1 + sum(value > share for value in recorded)} of {len(recorded) + 1}"


def rows_of(sticks: Sequence[Yardstick], on_record: Mapping[str, Sequence[float]] = {}) -> list[dict[str, Any]]:
    """Return a row for each kind of work: measured, peak, share, the usual share, its place, and a word on it."""
    rows = []
    for stick in sticks:
        share = stick.measured / stick.peak if stick.measured and stick.peak else None
        ratio = share / stick.usual_fraction if share and stick.usual_fraction else None
        rows.append(
            {
                "what": stick.label,
                "measured": stick.measured,
                "peak": stick.peak,
                "unit": stick.unit,
                "low": stick.low,
                "high": stick.high,
                "share_fraction": share,
                "usual_fraction": stick.usual_fraction,
                "against_usual_ratio": ratio,
                "place": place(share, on_record.get(stick.key, ())),
                "verdict": _word(ratio, share),
            }
        )
    return rows


def _word(ratio: float | None, share: float | None) -> str:
    """Say how a share stands against the usual one.

    >>> _word(0.97, 0.7), _word(0.5, 0.35), _word(None, 1.3), _word(None, 0.7)
    ('as usual', 'far below usual', 'above the datasheet: check the peak', '')
    """
    if share and share > 1.02:  # 2 % may be the datasheet's rounding
        return "above the datasheet: check the peak"
    if ratio is None:
        return ""
    if ratio < SICK_RATIO:
        return "far below usual"
    if ratio < LOW_RATIO:
        return "below usual"
    return "better than usual" if ratio > 1 / LOW_RATIO else "as usual"


def findings(bench: Mapping[str, Any], chip: Accelerator | None, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what a user should know of this machine, the gravest first."""
    remarks = []
    by_case: dict[str, list[Mapping[str, Any]]] = {}
    for probe in bench.get("each_gpu", ()):
        by_case.setdefault(str(probe["id"]), []).append(probe)
    for name, probes in by_case.items():
        for probe in probes:
            other_times = [peer["time_s"] for peer in probes if peer is not probe and peer.get("time_s")]
            usual_s = median(other_times) if other_times else 0.0
            if probe.get("failed"):
                remarks.append(f"GPU {probe['gpu_index']} failed {name}: {probe['failed']}")
            elif other_times and usual_s / probe["time_s"] < _GPU_DIFFERENCE_RATIO:
                reached = f"{usual_s / probe['time_s']:.0%} of its neighbours"
                remarks.append(f"GPU {probe['gpu_index']} reaches {reached} in {name}")
    for row in rows:
        if row["verdict"] in ("far below usual", "below usual"):
            reached = (
                f"{row['measured']:,.4g} of {row['peak']:,.4g} {row['unit']} is {row['share_fraction']:.0%} of the"
            )
            record = f"peak, where machines on record reach {row['usual_fraction']:.0%}"
            remarks.append(f"{row['what']}: {reached} {record}{_CAUSES.get(row['what'], '')}")
    limit, usual = bench["machine"].get("power_limit_w"), chip.tdp_w if chip else None
    if limit and usual and limit < 0.98 * usual:  # a limit within 2 % is the datasheet's, rounded
        remarks.append(f"power-capped: the limit is {limit:,.0f} W, the datasheet's {usual:,.0f} W")
    slowed = sorted({name for row in bench["figures"] for name in row.get("slowed_by", ()) if name != "power cap"})
    if slowed:
        remarks.append(f"slowed down while measuring: {', '.join(slowed)}")
    # a driver and ECC keep a few percent of the memory for themselves; a tenth, they never do
    if chip and bench["machine"].get("memory_gib") and bench["machine"]["memory_gib"] < 0.9 * chip.memory_gib:
        remarks.append("less memory than the whole accelerator has: a slice (MIG), or the name means another board")
    if moved := len(ranges_of(bench)):
        why = (
            f"rounds differ by more than {_AGREE_FRACTION:.0%}, repetitions swing by more than {SWING_FRACTION:.0%} or"
        )
        remarks.append(f"{moved} of {len(bench['figures'])} cases are ranges, no figures: {why} the host rules")
    remarks += [f"not measured: {entry['id']}: {entry['reason']}" for entry in bench["failed"]]
    return [*bench.get("notes", ()), *remarks]


_CAUSES = {  # what explains a low rate most often, by the work that shows it
    **dict.fromkeys(
        ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send"),
        ": look at `nvidia-smi topo -m` and at NCCL_DEBUG=INFO for a link that fell back to PCIe",
    ),
    **dict.fromkeys(
        ("host to device", "device to host"), ": look for a slot with fewer lanes or a virtual machine's own copy"
    ),
}


_ROOF_PRECISION = "bf16"
SLOPE_POINTS, FLAT_RATIO = 8, 20  # of a roof that is drawn by points; how far it goes on beyond the ridge, at least


def roofline(bench: Mapping[str, Any], chip: Accelerator) -> list[dict[str, Any]]:
    """Return the datasheet's roof, the measured one if large products were, and the fastest of each number of rows."""
    copies = (row for row in bench["figures"] if row["op"] == "copy" and _large(row))
    bandwidths = [row["gb_per_s"] for row in copies if row.get("gb_per_s")]
    products = [
        row
        for row in bench["figures"]
        if (row["op"], row.get("precision")) == ("matmul", _ROOF_PRECISION)
        and row.get("tflops")
        and row.get("gb_per_s")
    ]
    peak = chip.bf16_tflops
    if not (products and bandwidths and peak):
        return []
    # of each number of rows the fastest product: in order of speed, the last of a key stays
    fastest = {row["m"]: row for row in sorted(products, key=lambda row: float(row["tflops"]))}
    points = [
        {
            "intensity_flop_per_byte": row["tflops"] * TERA / (row["gb_per_s"] * GB),
            "reached_tflops": row["tflops"],
            "operation": f"{row['m']:,}",
            "curve": "reached",
        }
        for row in fastest.values()
    ]
    best = max((float(row["tflops"]) for row in products if _large(row)), default=None)
    roofs: list[dict[str, Any]] = []
    # the roofs run from 1 FLOP/byte, or the leftmost point, to far beyond the ridge, or to the rightmost
    first, *_, last = sorted(
        (
            1.0,
            FLAT_RATIO * peak * TERA / (chip.hbm_gb_per_s * GB),
            *(float(row["intensity_flop_per_byte"]) for row in points),
        )
    )
    for curve, flat, bandwidth in (("datasheet", peak, chip.hbm_gb_per_s), ("measured", best, max(bandwidths))):
        if flat is None:
            continue
        ridge = flat * TERA / (bandwidth * GB)
        # even steps on a logarithmic axis up to the ridge, then the flat part at its start, middle and end
        slope = [first * (ridge / first) ** (step / SLOPE_POINTS) for step in range(SLOPE_POINTS)]
        roofs += [
            {
                "intensity_flop_per_byte": x,
                "reached_tflops": min(flat, x * bandwidth * GB / TERA),
                "operation": "",
                "curve": curve,
            }
            for x in (*slope, ridge, (ridge * last) ** 0.5, last)
        ]
    return roofs + sorted(points, key=lambda row: float(row["intensity_flop_per_byte"]))
