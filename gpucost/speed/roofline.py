"""The roofline of one operation or of a whole step, and what would make it faster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from msgspec.structs import replace

from gpucost.answers.training import BOUND_WORDS, Advice, Bound, Point, Roof, UnderRoofs
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.errors import GpuCostError, UsageError
from gpucost.physics import collectives as net
from gpucost.physics import roofline
from gpucost.physics.columns import PRECISIONS, VALUE_BYTES, code_of
from gpucost.physics.hardware import (
    HardwareColumns,
    half_peak_tflops,
    half_precision,
    hardware_columns,
    peak,
    peak_tflops,
)
from gpucost.physics.training.cases import Step, software_codes
from gpucost.physics.training.efficiency import resolve
from gpucost.physics.training.layer import links_of
from gpucost.physics.training.layouts import latest_year, usual_year
from gpucost.speed import throughput
from gpucost.speed import throughput as speed
from gpucost.speed.throughput import case_of, single
from gpucost.types import Accelerator
from gpucost.units import GB, TERA, parse_bytes, parse_count
from gpucost.workloads.speeds import key_of
from gpucost.workloads.training import TYPICAL

# --- The operations of a roofline by name: their work, and the usual ones of a transformer beside each other.
#
# Counted per value: a root-mean-square norm 4 FLOP, GELU by its tanh formula 8, a softmax 5; each reads and writes
# every value once. Naive attention writes and reads scores and probabilities, a fused kernel keeps them on the chip
# (Dao et al. 2022, arXiv:2205.14135, theorem 2).

NORM_FLOP, GELU_FLOP, SOFTMAX_FLOP = 4, 8, 5  # per value
NAMES = ("matmul", "attention", "norm", "gelu", "copy", "all_reduce")
# a layer of an 8B model over one sequence of 8,192 tokens; a decode step is one row
USUAL: Mapping[str, Mapping[str, str | bool]] = {
    "projection, 8,192 tokens": {"matmul": "8192x4096x4096"},
    "projection, 64 tokens": {"matmul": "64x4096x4096"},
    "projection, one token": {"matmul": "1x4096x4096"},
    "attention, fused": {"attention": "8192x32x128"},
    "attention, naive": {"attention": "8192x32x128", "flash": False},
    "norm": {"norm": "8192x4096"},
    "GELU": {"gelu": "8192x14336"},
    "residual, copy": {"copy": "64MiB"},
}


class Named(NamedTuple):
    """An operation: what it is called, its kind, and its work."""

    label: str
    kind: str  # one of NAMES
    work: roofline.Operation


def sizes(text: str, names: Sequence[str], label: str) -> list[float]:
    """Read sizes such as 8192x8192x8192.

    >>> sizes("8kx4096x1M", ("m", "n", "k"), "--matmul")
    [8000.0, 4096.0, 1000000.0]
    """
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) != len(names):
        raise UsageError(
            f"{label}: {text!r} has {len(parts)} sizes. Write {'x'.join(names)}, "
            f"such as {'x'.join(['8192'] * len(names))}."
        )
    return [parse_count(part, label) for part in parts]


def operation(arguments: Mapping[str, object], gpus: float, value_bytes: float) -> Named:
    """Return the operation asked for: its name and its work."""
    kind = next((name for name in NAMES if arguments.get(name)), None)
    if kind is None:
        raise UsageError("name an operation (--matmul, --attention, --norm …) or a whole step (--model).")
    text, flag = str(arguments[kind]), f"--{kind.replace('_', '-')}"
    if kind == "matmul":
        m, n, k = (np.full(1, size) for size in sizes(text, ("m", "n", "k"), flag))
        return Named(f"product {text}", kind, roofline.product(m, n, k, np.full(1, value_bytes)))
    if kind == "attention":
        tokens, heads, dim = sizes(text, ("tokens", "heads", "dimension"), flag)
        fused = arguments.get("flash") is not False
        label = f"causal attention {text}, {'fused' if fused else 'naive'}"
        return Named(label, kind, attention(tokens, heads, dim, value_bytes, fused=fused))
    if kind in ("norm", "gelu"):
        tokens, width = sizes(text, ("tokens", "width"), flag)
        flop = {"norm": NORM_FLOP, "gelu": GELU_FLOP}[kind] * tokens * width
        label = f"{'norm' if kind == 'norm' else 'GELU'} {text}"
        return Named(label, kind, work(flop, 2 * tokens * width * value_bytes))
    size = parse_bytes(text, flag)
    if kind == "copy":
        return Named(f"element-wise pass over {text}", kind, work(0.0, 2 * size))
    moved = 2 * (gpus - 1) / gpus * size
    return Named(f"all-reduce of {text} over {gpus:.0f} GPUs", kind, work(0.0, 2 * moved, moved))


def work(flop: float, memory_bytes: float, link_bytes: float = 0.0) -> roofline.Operation:
    """Return the work of one operation."""
    return roofline.Operation(np.full(1, flop), np.full(1, memory_bytes), np.full(1, link_bytes))


def attention(tokens: float, heads: float, dim: float, value_bytes: float, *, fused: bool) -> roofline.Operation:
    """Return the work of causal attention: two products over half of the scores, and a softmax where it is naive.

    Naive kernels write and read the scores and the probabilities in full: 4·t² values to a head, beside the 4·t·d of
    queries, keys, values and output. At d = 128 that is 32 FLOP per byte, whatever the length.

    >>> naive, fused = (attention(8192, 1, 128, 2, fused=fused) for fused in (False, True))
    >>> round(float((naive.flop / naive.memory_bytes)[0])), round(float((fused.flop / fused.memory_bytes)[0]))
    (32, 2048)
    """
    products = 4 * tokens**2 / 2 * heads * dim
    moved = 4 * tokens * heads * dim
    if fused:
        return work(products, moved * value_bytes)
    scores = tokens**2 * heads
    return work(products + SOFTMAX_FLOP * scores / 2, (moved + 4 * scores) * value_bytes)


# --- What would make an operation or a step faster, each change computed: a larger batch, fusing, another precision.

WORTH = 1.01  # a smaller gain is no advice
_LARGEST_ROWS = 65_536
_LOWER = {"tf32": ("bf16",), "fp32": ("bf16",), "bf16": ("fp8", "fp4"), "fp16": ("fp8", "int8"), "fp8": ("fp4",)}

Timed = Callable[[Named, str], float]  # seconds of an operation at a precision


def _lower_precisions(chip: Accelerator, precision: str) -> list[str]:
    """Return the precisions of fewer bits for which a chip has faster units."""
    own_tflops = peak(chip, precision).tflops
    return [name for name in _LOWER.get(precision, ()) if peak(chip, name).tflops > own_tflops]


def _of_operation(
    arguments: Mapping[str, Any], chip: Accelerator, precision: str, gpus: float, bound: str, timed: Timed
) -> list[Advice]:
    """Return the changes that make an operation faster, the greatest gain first."""
    now = operation(arguments, gpus, VALUE_BYTES[precision])
    now_s = timed(now, precision)
    changes = [*_larger(arguments, now, precision, bound, timed), *_fused(arguments, now, precision, gpus, timed)]
    for name in _lower_precisions(chip, precision):
        if now.kind in ("matmul", "attention"):
            alternative = operation(arguments, gpus, VALUE_BYTES[name])
            changes.append(advice(f"precision {name}", now_s, timed(alternative, name)))
    if now.kind == "all_reduce":
        half = work(0.0, float(now.work.memory_bytes[0]) / 2, float(now.work.link_bytes[0]) / 2)
        changes.append(
            advice("half the bytes: send 16 bits for 32, or 8 for 16", now_s, timed(now._replace(work=half), precision))
        )
    return ranked(changes)


def _larger(arguments: Mapping[str, Any], now: Named, precision: str, bound: str, timed: Timed) -> Iterator[Advice]:
    """Raise the rows of a product that reads its weights for too few of them, up to the ridge."""
    if now.kind != "matmul" or bound == "compute":
        return
    m, n, k = sizes(str(arguments["matmul"]), ("m", "n", "k"), "--matmul")
    now_s, rows, per_row = timed(now, precision), m, timed(now, precision) / m
    while rows < _LARGEST_ROWS:
        more = operation({"matmul": f"{2 * rows:.0f}x{n:.0f}x{k:.0f}"}, 1, VALUE_BYTES[precision])
        if timed(more, precision) / (2 * rows) > per_row / 1.1:  # another doubling brings less than a tenth
            break
        rows, per_row = 2 * rows, timed(more, precision) / (2 * rows)
    yield advice(f"batch of {rows:,.0f} rows, not {m:,.0f}", now_s / m, per_row, "time to a row")


def _fused(arguments: Mapping[str, Any], now: Named, precision: str, gpus: float, timed: Timed) -> Iterator[Advice]:
    """Leave out what a kernel of its own reads and writes."""
    if now.kind == "attention" and arguments.get("flash") is False:
        fused = operation({**arguments, "flash": True}, gpus, VALUE_BYTES[precision])
        yield advice("a fused kernel (flash attention)", timed(now, precision), timed(fused, precision))
    if now.kind in ("norm", "gelu", "copy"):
        flop, moved = float(now.work.flop[0]), float(now.work.memory_bytes[0])
        pair = now._replace(work=work(2 * flop, 2 * moved))
        both = now._replace(work=work(2 * flop, moved))
        description = "fuse it with the pass before it: one read and one write for two"
        yield advice(description, timed(pair, precision), timed(both, precision), "both passes")


def _of_step(catalog: Catalog, exact: throughput.Wanted, chip: Accelerator, step_s: float) -> list[Advice]:
    """Return the changes of a layout that make its step faster, each timed; what does not fit is left out."""
    tried: list[tuple[str, dict[str, str | bool]]] = [
        (f"precision {name}", {"precision": name}) for name in _lower_precisions(chip, str(exact.precision))
    ]
    micro, batch, data = (int(str(getattr(exact, name) or 1)) for name in ("micro_batch", "global_batch", "data"))
    if batch % (2 * micro * data) == 0:
        tried.append((f"micro-batch {2 * micro}, not {micro}", {"micro_batch": str(2 * micro)}))
    if batch % (micro * data) == 0:
        tried.append((f"global batch {2 * batch:,}, not {batch:,}", {"global_batch": str(2 * batch)}))
    if exact.recompute != "none":
        tried.append(("recompute nothing", {"recompute": "none"}))
    if not exact.flash:
        tried.append(("fused attention", {"flash": True}))
    found = []
    for words, change in tried:
        given: dict[str, Any] = {key: int(value) if str(value).isdigit() else value for key, value in change.items()}
        try:
            other = single(catalog, replace(exact, **given))
        except GpuCostError:
            continue
        if other["fits"]:
            scale = given.get("global_batch", batch) / batch  # a step of twice the batch does twice the work
            found.append(advice(words, step_s, other["step_s"] / scale))
    return ranked(found)


def advice(change: str, before_s: float, after_s: float, of_what: str = "") -> Advice:
    """Return a change and what it gains."""
    return {
        "change": change,
        "before_s": before_s,
        "after_s": after_s,
        "gain_ratio": before_s / after_s if after_s > 0 else 1.0,
        "note": of_what,
    }


def ranked(found: list[Advice]) -> list[Advice]:
    """Return what is worth it, the greatest gain first."""
    return sorted((row for row in found if row["gain_ratio"] >= WORTH), key=lambda row: -row["gain_ratio"])


def worded(answer: UnderRoofs) -> str:
    """Return the best advice in one sentence, or that nothing tried helps."""
    if not answer["advice"]:
        return "No change that was tried makes it faster."
    first = answer["advice"][0]
    return f"What helps most: {first['change']}, {first['gain_ratio']:.2g} × as fast."


# --- The roofline of one operation or of a whole step: the engine behind `gpucost roofline`.

_LAUNCH_S = 5e-6  # one kernel launch from the host, as measured on recent servers
_SMALLEST_SHARE = 0.005  # shares that are said
CURVE = np.logspace(0, 4.5, 55)


def one_operation(
    catalog: Catalog, gpu: str, system: str | None, gpus: float, precision: str | None, **wanted: Any
) -> UnderRoofs:
    """Answer for one operation, its intensity against the ridge and what bounds it; for the usual ones without one."""
    key = key_of(catalog, gpu, system)
    name = precision or half_precision(key.accelerator)
    hardware = hardware_columns([key.accelerator], [key.system])
    peak = _chip_peak(hardware, name, key.accelerator.id)
    if wanted["all_reduce"] and gpus < 2:
        raise UsageError("--all-reduce needs --gpus of at least 2, such as --gpus 8: one GPU has no communication.")
    given = any(wanted[kind] for kind in NAMES)
    asked: dict[str, Mapping[str, Any]] = {"": wanted} if given else dict(USUAL)

    def timed(found: Named, at: str) -> float:
        attention = found.kind == "attention"
        return max(_expected_s(catalog, hardware, at, found.work, gpus, attention), _LAUNCH_S)

    points = []
    for words, one in asked.items():
        found = operation(one, gpus, VALUE_BYTES[name])
        link = _group_gb_per_s(hardware, gpus)
        verdict = roofline.judge(found.work, peak, hardware.hbm_gb_per_s, link, np.full(1, _LAUNCH_S))
        points.append(point(words or found.label, found.work, verdict, timed(found, name), 1.0))
    roofs = roof(key.accelerator.id, key.system.id, name, hardware, float(peak[0]))
    answer: UnderRoofs = {
        "lead": _one_lead(points[0], roofs["ridge_flop_per_byte"]) if given else _usual_lead(points, roofs),
        "subject": points[0]["operation"] if given else f"the usual operations on {key.accelerator.id}",
        **roofs,  # type: ignore[typeddict-item] # holds nothing more than its type says
        "points": points,
        "advice": _of_operation(wanted, key.accelerator, name, gpus, points[0]["bound"], timed) if given else [],
    }
    if given:
        answer["lead"] = f"{answer['lead']} {worded(answer)}"
    return answer


def _usual_lead(points: Sequence[Point], roofs: Roof) -> str:
    """Say which of several operations lie above the ridge."""
    above = [row["operation"] for row in points if row["bound"] == "compute"]
    return (
        f"The ridge of {roofs['gpu']} in {roofs['precision']} is {roofs['ridge_flop_per_byte']:,.0f} FLOP per byte:"
        f" {len(above)} of {len(points)} usual operations lie above it."
    )


def _expected_s(
    catalog: Catalog, hardware: HardwareColumns, precision: str, work: roofline.Operation, gpus: float, attention: bool
) -> float:
    """Return the time expected with the calibrated efficiencies of a tuned stack: the slowest roof that they allow."""
    values, year = training_calibration(catalog).values, usual_year(hardware, latest_year(catalog.as_of))
    e = resolve(values, hardware, software_codes([TYPICAL]), year)
    ratio = {"fp8": e.fp8_ratio, "int8": e.int8_ratio, "fp4": e.fp4_ratio}.get(precision, np.ones(1))
    share = e.flash if attention else e.matrix * ratio
    group = net.tier(links_of(hardware, e), np.full(1, max(gpus, 1.0)), np.ones(1))
    peak = peak_tflops(hardware, np.array([code_of(precision, PRECISIONS, "precision")]))
    compute = work.flop / (peak * TERA * share)
    memory = work.memory_bytes / (hardware.hbm_gb_per_s * GB * e.copy)
    # the calibrated share of a link is that of a step, which hides some of its traffic; an exchange alone hides none
    rate = np.minimum(group.gb_per_s, net.RING_FRACTION * _group_gb_per_s(hardware, gpus)) * GB
    wire = np.where(work.link_bytes > 0, work.link_bytes / rate + 2 * group.latency_s, 0.0)
    return float(np.maximum(np.hypot(compute, memory), wire)[0])


def _group_gb_per_s(hardware: HardwareColumns, gpus: float) -> Any:
    """Return the nominal bandwidth that a group of the first so many GPUs sees."""
    link = net.links(hardware, np.ones(1), np.ones(1), np.zeros(1), np.zeros(1))
    return net.tier(link, np.full(1, max(gpus, 1.0)), np.ones(1)).gb_per_s


def _chip_peak(hardware: HardwareColumns, precision: str, chip: str) -> Any:
    """Return the dense peak at a precision, or say that the chip lacks it."""
    peak = peak_tflops(hardware, np.array([code_of(precision, PRECISIONS, "precision")]))
    if np.isnan(peak[0]):
        raise UsageError(f"{chip} has no known {precision} peak. `gpucost gpus` lists what it has.")
    return peak


def roof(chip: str, system: str, precision: str, hardware: HardwareColumns, peak: float) -> Roof:
    """Return the roof of a chip: its peak, bandwidth, ridge, and the curve to draw."""
    bandwidth = float(hardware.hbm_gb_per_s[0])
    attainable = np.minimum(peak, CURVE * bandwidth * GB / TERA)
    return {
        "gpu": chip,
        "system": system,
        "precision": precision,
        "peak_tflops": peak,
        "hbm_gb_per_s": bandwidth,
        "scaleup_gb_per_s": float(hardware.scaleup_gb_per_s[0]),
        "scaleout_gb_per_s": float(hardware.scaleout_gb_per_s[0]),
        "ridge_flop_per_byte": peak * TERA / (bandwidth * GB),
        "roof": [
            {"intensity_flop_per_byte": float(x), "attainable_tflops": float(y)}
            for x, y in zip(CURVE, attainable, strict=True)
        ],
    }


def point(name: str, work: roofline.Operation, verdict: roofline.Verdict, time_s: float, share: float) -> Point:
    """Return one operation as a row: where it stands and what bounds it."""
    intensity = float(verdict.intensity_flop_per_byte[0])
    flop = float(work.flop[0])
    return {
        "operation": name,
        "flop": flop,
        "memory_bytes": float(work.memory_bytes[0]),
        "link_bytes": float(work.link_bytes[0]),
        "intensity_flop_per_byte": intensity if np.isfinite(intensity) and flop > 0 else None,
        "ridge_flop_per_byte": float(verdict.ridge_flop_per_byte[0]),
        "compute_s": float(verdict.compute_s[0]),
        "bandwidth_s": float(verdict.bandwidth_s[0]),
        "network_s": float(verdict.network_s[0]),
        "host_s": float(verdict.host_s[0]),
        "time_s": time_s,
        "share_fraction": share,
        "reached_tflops": flop / time_s / TERA if time_s > 0 and flop > 0 else None,
        "bound": roofline.BOUNDS[int(verdict.bound[0])],
    }


def whole_step(catalog: Catalog, wanted: speed.Wanted) -> UnderRoofs:
    """Answer for a step of training: each part under its roofs, with the time that the model predicts for it."""
    answer = single(catalog, wanted)
    layout = answer["layout"]
    given: dict[str, Any] = {name: value for name, value in layout.items() if name in (*speed.DEGREES, "recompute")}
    exact = replace(wanted, **given, global_batch=layout["global_batch"], precision=layout["precision"])
    layouts = speed.explicit_layouts(catalog, exact)
    accelerator, node = layouts.keys[0].accelerator, layouts.keys[0].system
    calibration = training_calibration(catalog)
    case = case_of(layouts, calibration)
    hardware, step = case.hardware, speed.step_of(layouts, calibration, case)
    low = _chip_peak(hardware, layout["precision"], accelerator.id)
    points = []
    for name, work in roofline.step_work(case, step).items():
        time = float(getattr(step, name)[0])
        if time <= 0:
            continue
        peak = low if name == "matrix_s" else half_peak_tflops(hardware, case.layout.precision)
        verdict = roofline.judge(work, peak, hardware.hbm_gb_per_s, hardware.scaleup_gb_per_s, np.zeros(1))
        points.append(point(name.removesuffix("_s"), work, verdict, time, time / float(step.total_s[0])))
    points = sorted(points + _host_points(step), key=lambda row: -row["time_s"])
    found: UnderRoofs = {
        "lead": _step_lead(points),
        "subject": f"a step of {answer['model']} on {layout['gpus']} × {accelerator.id}",
        **roof(accelerator.id, node.id, layout["precision"], hardware, float(low[0])),
        "points": points,
        "advice": _of_step(catalog, exact, accelerator, answer["step_s"]),
        "layout": layout,
        "step_s": answer["step_s"],
        "mfu_fraction": answer["mfu_fraction"],
    }
    return {**found, "lead": f"{found['lead']} {worded(found)}"}


def _host_points(step: Step) -> list[Point]:
    """Return the parts that no roof of the chip explains: the host, fixed overheads, the schedule."""
    rows: list[Point] = []
    host, schedule = ("host_s", "overhead_s", "offload_s"), ("bubble_s", "straggler_s")
    bounds = dict.fromkeys(host, "host") | dict.fromkeys(schedule, "schedule")
    for name, bound in bounds.items():
        time = float(getattr(step, name)[0])
        if time > 0:
            share = time / float(step.total_s[0])
            row = {"operation": name.removesuffix("_s"), "time_s": time, "share_fraction": share, "bound": bound}
            rows.append(cast(Point, dict.fromkeys(Point.__annotations__) | row))
    return rows


def _one_lead(row: Point, ridge: float) -> str:
    """Return the verdict on one operation in one sentence."""
    words, intensity = BOUND_WORDS[row["bound"]], row["intensity_flop_per_byte"]
    if intensity is None:
        return f"Bound by {words}: it multiplies nothing."
    side = "above" if intensity > ridge else "below"
    return f"Bound by {words}: {intensity:,.0f} FLOP per byte, {side} the ridge of {ridge:,.0f}."


def _step_lead(rows: Sequence[Point]) -> str:
    """Return the verdict on a step in one sentence."""
    shares: dict[Bound, float] = {}
    for row in rows:
        shares[row["bound"]] = shares.get(row["bound"], 0.0) + row["share_fraction"]
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    parts = [f"{share:.0%} is bound by {BOUND_WORDS[name]}" for name, share in ranked if share >= _SMALLEST_SHARE]
    return f"Of the step's time, {', '.join(parts)}."
