"""The roofline of one operation or of a whole step, and what would make it faster."""

from collections.abc import Callable, Mapping, Sequence
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
from gpucost.physics.training.cases import software_codes
from gpucost.physics.training.efficiency import resolve
from gpucost.physics.training.layer import links_of
from gpucost.physics.training.layouts import latest_year, usual_year
from gpucost.speed import throughput
from gpucost.types import Accelerator
from gpucost.units import GB, TERA, parse_bytes, parse_count
from gpucost.workloads.speeds import key_of
from gpucost.workloads.training import TYPICAL

# --- The operations of a roofline by name: their work, and the usual ones of a transformer beside each other.
#
# Counted per value: a root-mean-square norm 4 FLOP, GELU by its tanh formula 8, a softmax 5; each reads and writes
# every value once. Naive attention writes and reads scores and probabilities, a fused kernel keeps them on the chip
# (Dao et al. 2022, arXiv:2205.14135, theorem 2).

_NORM_FLOP, _GELU_FLOP, _SOFTMAX_FLOP = 4, 8, 5  # per value
_NAMES = ("matmul", "attention", "norm", "gelu", "copy", "all_reduce")
# a layer of an 8B model over one sequence of 8,192 tokens; a decode step is one row
_USUAL: Mapping[str, Mapping[str, str | bool]] = {
    "projection, 8,192 tokens": {"matmul": "8192x4096x4096"},
    "projection, 64 tokens": {"matmul": "64x4096x4096"},
    "projection, one token": {"matmul": "1x4096x4096"},
    "attention, fused": {"attention": "8192x32x128"},
    "attention, naive": {"attention": "8192x32x128", "flash": False},
    "norm": {"norm": "8192x4096"},
    "GELU": {"gelu": "8192x14336"},
    "residual, copy": {"copy": "64MiB"},
}


class NamedOperation(NamedTuple):
    """An operation: what it is called, its kind, and its work."""

    label: str
    kind: str  # one of _NAMES
    work: roofline.Operation


def _sizes(text: str, names: Sequence[str], label: str) -> list[float]:
    """Read sizes such as 8192x8192x8192.

    >>> _sizes("8kx4096x1M", ("m", "n", "k"), "--matmul")
    [8000.0, 4096.0, 1000000.0]
    """
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) != len(names):
        raise UsageError(
            f"{label}: {text!r} has {len(parts)} sizes. Write {'x'.join(names)}, "
            f"such as {'x'.join(['8192'] * len(names))}."
        )
    return [parse_count(part, label) for part in parts]


def _operation(arguments: Mapping[str, object], gpus: float, value_bytes: float) -> NamedOperation:
    """Return the operation asked for: its name and its work."""
    kind = next((name for name in _NAMES if arguments.get(name)), None)
    if kind is None:
        raise UsageError("name an operation (--matmul, --attention, --norm …) or a whole step (--model).")
    # An error about the sizes names the option that they stand at.
    text, flag = str(arguments[kind]), f"--{kind.replace('_', '-')}"
    if kind == "matmul":
        m, n, k = (np.full(1, size) for size in _sizes(text, ("m", "n", "k"), flag))
        return NamedOperation(f"product {text}", kind, roofline.product(m, n, k, np.full(1, value_bytes)))
    if kind == "attention":
        tokens, heads, dim = _sizes(text, ("tokens", "heads", "dimension"), flag)
        fused = arguments.get("flash") is not False
        label = f"causal attention {text}, {'fused' if fused else 'naive'}"
        return NamedOperation(label, kind, _attention(tokens, heads, dim, value_bytes, fused=fused))
    if kind in ("norm", "gelu"):
        tokens, width = _sizes(text, ("tokens", "width"), flag)
        flop = {"norm": _NORM_FLOP, "gelu": _GELU_FLOP}[kind] * tokens * width
        label = f"{'norm' if kind == 'norm' else 'GELU'} {text}"
        return NamedOperation(label, kind, _work(flop, 2 * tokens * width * value_bytes))
    size = parse_bytes(text, flag)
    if kind == "copy":
        return NamedOperation(f"element-wise pass over {text}", kind, _work(0.0, 2 * size))
    moved = 2 * (gpus - 1) / gpus * size
    return NamedOperation(f"all-reduce of {text} over {gpus:.0f} GPUs", kind, _work(0.0, 2 * moved, moved))


def _work(flop: float, memory_bytes: float, link_bytes: float = 0.0) -> roofline.Operation:
    """Return the work of one operation."""
    return roofline.Operation(np.full(1, flop), np.full(1, memory_bytes), np.full(1, link_bytes))


def _attention(tokens: float, heads: float, dim: float, value_bytes: float, *, fused: bool) -> roofline.Operation:
    """Return the work of causal attention: two products over half of the scores, and a softmax where it is naive.

    Naive kernels write and read the scores and the probabilities in full: 4·t² values to a head, beside the 4·t·d of
    queries, keys, values and output. At d = 128 that is 32 FLOP per byte, whatever the length.

    >>> naive, fused = (_attention(8192, 1, 128, 2, fused=fused) for fused in (False, True))
    >>> round(float((naive.flop / naive.memory_bytes)[0])), round(float((fused.flop / fused.memory_bytes)[0]))
    (32, 2048)
    """
    products = 4 * tokens**2 / 2 * heads * dim
    moved = 4 * tokens * heads * dim
    if fused:
        return _work(products, moved * value_bytes)
    scores = tokens**2 * heads
    return _work(products + _SOFTMAX_FLOP * scores / 2, (moved + 4 * scores) * value_bytes)


# --- What would make an operation or a step faster, each change computed: a larger batch, fusing, another precision.

_WORTH = 1.01  # a smaller gain is no advice
_LARGEST_ROWS = 65_536
_LOWER = {"tf32": ("bf16",), "fp32": ("bf16",), "bf16": ("fp8", "fp4"), "fp16": ("fp8", "int8"), "fp8": ("fp4",)}

Timing = Callable[[NamedOperation, str], float]  # seconds of an operation at a precision


def _lower_precisions(chip: Accelerator, precision: str) -> list[str]:
    """Return the precisions of fewer bits for which a chip has faster units."""
    own_tflops = peak(chip, precision).tflops
    return [name for name in _LOWER.get(precision, ()) if peak(chip, name).tflops > own_tflops]


def _of_operation(
    arguments: Mapping[str, Any], chip: Accelerator, precision: str, gpus: float, bound: str, seconds: Timing
) -> list[Advice]:
    """Return the changes that make an operation faster, the greatest gain first."""
    now = _operation(arguments, gpus, VALUE_BYTES[precision])
    now_s = seconds(now, precision)
    flop, memory_bytes = float(now.work.flop[0]), float(now.work.memory_bytes[0])
    changes: list[Advice] = []
    # A product that reads its weights for too few rows gets more of them, until another doubling gains under a tenth.
    if now.kind == "matmul" and bound != "compute":
        m, n, k = _sizes(str(arguments["matmul"]), ("m", "n", "k"), "--matmul")
        rows, row_s = m, now_s / m
        while rows < _LARGEST_ROWS:
            more = _operation({"matmul": f"{2 * rows:.0f}x{n:.0f}x{k:.0f}"}, 1, VALUE_BYTES[precision])
            more_row_s = seconds(more, precision) / (2 * rows)
            if more_row_s > row_s / 1.1:
                break
            rows, row_s = 2 * rows, more_row_s
        changes.append(_advice(f"batch of {rows:,.0f} rows, not {m:,.0f}", now_s / m, row_s, "time to a row"))
    # What a kernel of its own reads and writes is left out.
    if now.kind == "attention" and arguments.get("flash") is False:
        fused = _operation({**arguments, "flash": True}, gpus, VALUE_BYTES[precision])
        changes.append(_advice("a fused kernel (flash attention)", now_s, seconds(fused, precision)))
    if now.kind in ("norm", "gelu", "copy"):
        pair_s = seconds(now._replace(work=_work(2 * flop, 2 * memory_bytes)), precision)
        fused_s = seconds(now._replace(work=_work(2 * flop, memory_bytes)), precision)
        change = "fuse it with the pass before it: one read and one write for two"
        changes.append(_advice(change, pair_s, fused_s, "both passes"))
    if now.kind in ("matmul", "attention"):
        for name in _lower_precisions(chip, precision):
            lower_s = seconds(_operation(arguments, gpus, VALUE_BYTES[name]), name)
            changes.append(_advice(f"precision {name}", now_s, lower_s))
    if now.kind == "all_reduce":
        half = now._replace(work=_work(0.0, memory_bytes / 2, float(now.work.link_bytes[0]) / 2))
        change = "half the bytes: send 16 bits for 32, or 8 for 16"
        changes.append(_advice(change, now_s, seconds(half, precision)))
    return _ranked(changes)


def _advice(change: str, before_s: float, after_s: float, of_what: str = "") -> Advice:
    """Return a change and what it gains."""
    return {
        "change": change,
        "before_s": before_s,
        "after_s": after_s,
        "gain_ratio": before_s / after_s if after_s > 0 else 1.0,
        "note": of_what,
    }


def _ranked(advice: list[Advice]) -> list[Advice]:
    """Return what is worth it, the greatest gain first."""
    return sorted((row for row in advice if row["gain_ratio"] >= _WORTH), key=lambda row: -row["gain_ratio"])


def _best_advice(answer: UnderRoofs) -> str:
    """Return the best advice in one sentence, or that nothing tried helps."""
    if not answer["advice"]:
        return "No change that was tried makes it faster."
    first = answer["advice"][0]
    return f"What helps most: {first['change']}, {first['gain_ratio']:.2g} × as fast."


# --- The roofline of one operation or of a whole step: the engine behind `gpucost roofline`.

_LAUNCH_S = 5e-6  # one kernel launch from the host, as measured on recent servers
_SMALLEST_SHARE = 0.005  # smaller ones are not named
_CURVE = np.logspace(0, 4.5, 55)  # of the drawn roof: 1 to 31,600 FLOP per byte, around the ridge of every chip


def one_operation(
    catalog: Catalog, gpu: str, system: str | None, gpus: float, precision: str | None, **arguments: Any
) -> UnderRoofs:
    """Answer for one operation, its intensity against the ridge and what bounds it; for the usual ones without one."""
    key = key_of(catalog, gpu, system)
    name = precision or half_precision(key.accelerator)
    hardware = hardware_columns([key.accelerator], [key.system])
    peak = _chip_peak(hardware, name, key.accelerator.id)
    if arguments["all_reduce"] and gpus < 2:
        raise UsageError("--all-reduce needs --gpus of at least 2, such as --gpus 8: one GPU has no communication.")
    values, year = training_calibration(catalog).values, usual_year(hardware, latest_year(catalog.as_of))
    efficiency = resolve(values, hardware, software_codes([TYPICAL]), year)
    group = net.tier(links_of(hardware, efficiency), np.full(1, max(gpus, 1.0)), np.ones(1))
    nominal_links = net.links(hardware, np.ones(1), np.ones(1), np.zeros(1), np.zeros(1))
    nominal_gb_per_s = net.tier(nominal_links, np.full(1, max(gpus, 1.0)), np.ones(1)).gb_per_s

    def seconds(operation: NamedOperation, at: str) -> float:
        """Return the time expected with the calibrated efficiencies of a tuned stack: the slowest roof they allow."""
        ratios = {"fp8": efficiency.fp8_ratio, "int8": efficiency.int8_ratio, "fp4": efficiency.fp4_ratio}
        share = efficiency.matrix * ratios.get(at, np.ones(1))
        if operation.kind == "attention":
            share = efficiency.flash
        work, peak = operation.work, peak_tflops(hardware, np.array([code_of(at, PRECISIONS, "precision")]))
        compute = work.flop / (peak * TERA * share)
        memory = work.memory_bytes / (hardware.hbm_gb_per_s * GB * efficiency.copy)
        # the calibrated share of a link is that of a step, which hides some of its traffic; an exchange alone hides
        # none
        rate = np.minimum(group.gb_per_s, net.RING_FRACTION * nominal_gb_per_s) * GB
        wire = np.where(work.link_bytes > 0, work.link_bytes / rate + 2 * group.latency_s, 0.0)
        return max(float(np.maximum(np.hypot(compute, memory), wire)[0]), _LAUNCH_S)

    is_one = any(arguments[kind] for kind in _NAMES)
    questions: Mapping[str, Mapping[str, Any]] = {"": arguments} if is_one else _USUAL
    points = []
    for label, question in questions.items():
        operation = _operation(question, gpus, VALUE_BYTES[name])
        verdict = roofline.judge(operation.work, peak, hardware.hbm_gb_per_s, nominal_gb_per_s, np.full(1, _LAUNCH_S))
        points.append(_point(label or operation.label, operation.work, verdict, seconds(operation, name), 1.0))
    roofs = _roof(key.accelerator.id, key.system.id, name, hardware, float(peak[0]))
    ridge = roofs["ridge_flop_per_byte"]
    if is_one:
        bound, intensity = BOUND_WORDS[points[0]["bound"]], points[0]["intensity_flop_per_byte"]
        if intensity is None:
            lead = f"Bound by {bound}: it multiplies nothing."
        else:
            side = "above" if intensity > ridge else "below"
            lead = f"Bound by {bound}: {intensity:,.0f} FLOP per byte, {side} the ridge of {ridge:,.0f}."
    else:
        above = [row["operation"] for row in points if row["bound"] == "compute"]
        lead = (
            f"The ridge of {roofs['gpu']} in {roofs['precision']} is {ridge:,.0f} FLOP per byte:"
            f" {len(above)} of {len(points)} usual operations lie above it."
        )
    answer: UnderRoofs = {
        "lead": lead,
        "subject": points[0]["operation"] if is_one else f"the usual operations on {key.accelerator.id}",
        **roofs,  # type: ignore[typeddict-item] # holds nothing more than its type says
        "points": points,
        "advice": [],
    }
    if is_one:
        bound_kind = points[0]["bound"]
        answer["advice"] = _of_operation(arguments, key.accelerator, name, gpus, bound_kind, seconds)
        answer["lead"] = f"{lead} {_best_advice(answer)}"
    return answer


def _chip_peak(hardware: HardwareColumns, precision: str, chip: str) -> Any:
    """Return the dense peak at a precision, or say that the chip lacks it."""
    peak = peak_tflops(hardware, np.array([code_of(precision, PRECISIONS, "precision")]))
    if np.isnan(peak[0]):
        raise UsageError(f"{chip} has no known {precision} peak. `gpucost gpus` lists what it has.")
    return peak


def _roof(chip: str, system: str, precision: str, hardware: HardwareColumns, peak: float) -> Roof:
    """Return the roof of a chip: its peak, bandwidth, ridge, and the curve to draw."""
    bandwidth = float(hardware.hbm_gb_per_s[0])
    attainable = np.minimum(peak, _CURVE * bandwidth * GB / TERA)
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
            for x, y in zip(_CURVE, attainable, strict=True)
        ],
    }


def _point(name: str, work: roofline.Operation, verdict: roofline.Verdict, time_s: float, share: float) -> Point:
    """Return one operation as a row: where it stands and what bounds it."""
    # A copy multiplies nothing: its intensity is no number that a chart could show.
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


def whole_step(catalog: Catalog, question: throughput.LayoutQuestion) -> UnderRoofs:
    """Answer for a step of training: each part under its roofs, with the time that the model predicts for it."""
    answer = throughput.single(catalog, question)
    layout = answer["layout"]
    degrees: dict[str, Any] = {
        name: value for name, value in layout.items() if name in (*throughput.DEGREES, "recompute")
    }
    exact = replace(question, **degrees, global_batch=layout["global_batch"], precision=layout["precision"])
    layouts = throughput.explicit_layouts(catalog, exact)
    accelerator, node = layouts.keys[0].accelerator, layouts.keys[0].system
    calibration = training_calibration(catalog)
    case = throughput.case_of(layouts, calibration)
    hardware, step = case.hardware, throughput.step_of(layouts, calibration, case)
    # Matrix units compute at the precision asked for, all else in 16 bits.
    matrix_peak = _chip_peak(hardware, layout["precision"], accelerator.id)
    points, total_s = list[Point](), float(step.total_s[0])
    for name, work in roofline.step_work(case, step).items():
        time = float(getattr(step, name)[0])
        if time <= 0:
            continue
        peak = matrix_peak if name == "matrix_s" else half_peak_tflops(hardware, case.layout.precision)
        verdict = roofline.judge(work, peak, hardware.hbm_gb_per_s, hardware.scaleup_gb_per_s, np.zeros(1))
        points.append(_point(name.removesuffix("_s"), work, verdict, time, time / total_s))
    # No roof of the chip explains the host, fixed overheads and the schedule.
    host, schedule = ("host_s", "overhead_s", "offload_s"), ("bubble_s", "straggler_s")
    for name, bound in (dict.fromkeys(host, "host") | dict.fromkeys(schedule, "schedule")).items():
        time = float(getattr(step, name)[0])
        if time > 0:
            row = {
                "operation": name.removesuffix("_s"),
                "time_s": time,
                "share_fraction": time / total_s,
                "bound": bound,
            }
            points.append(cast(Point, dict.fromkeys(Point.__annotations__) | row))
    points.sort(key=lambda point: -point["time_s"])
    shares: dict[Bound, float] = {}
    for point in points:
        shares[point["bound"]] = shares.get(point["bound"], 0.0) + point["share_fraction"]
    largest = sorted(shares.items(), key=lambda item: -item[1])
    parts = [f"{share:.0%} is bound by {BOUND_WORDS[name]}" for name, share in largest if share >= _SMALLEST_SHARE]
    lead = f"Of the step's time, {', '.join(parts)}."
    # The changes of the layout that make its step faster, each timed; what does not fit is left out.
    changes: list[tuple[str, dict[str, Any]]] = [
        (f"precision {name}", {"precision": name}) for name in _lower_precisions(accelerator, str(exact.precision))
    ]
    micro, batch, data = (int(str(getattr(exact, name) or 1)) for name in ("micro_batch", "global_batch", "data"))
    # Batches divide into whole micro-batches of each replica, also when one of them doubles.
    if batch % (2 * micro * data) == 0:
        changes.append((f"micro-batch {2 * micro}, not {micro}", {"micro_batch": 2 * micro}))
    if batch % (micro * data) == 0:
        changes.append((f"global batch {2 * batch:,}, not {batch:,}", {"global_batch": 2 * batch}))
    if exact.recompute != "none":
        changes.append(("recompute nothing", {"recompute": "none"}))
    if not exact.flash:
        changes.append(("fused attention", {"flash": True}))
    advice: list[Advice] = []
    for description, change in changes:
        try:
            other = throughput.single(catalog, replace(exact, **change))
        except GpuCostError:  # a layout that cannot be is no advice
            continue
        if other["fits"]:
            scale = change.get("global_batch", batch) / batch  # a step of twice the batch does twice the work
            advice.append(_advice(description, answer["step_s"], other["step_s"] / scale))
    described: UnderRoofs = {
        "lead": lead,
        "subject": f"a step of {answer['model']} on {layout['gpus']} × {accelerator.id}",
        **_roof(accelerator.id, node.id, layout["precision"], hardware, float(matrix_peak[0])),
        "points": points,
        "advice": _ranked(advice),
        "layout": layout,
        "step_s": answer["step_s"],
        "mfu_fraction": answer["mfu_fraction"],
    }
    return {**described, "lead": f"{lead} {_best_advice(described)}"}
