"""The roofline of one operation or of a whole step: the engine behind `gpucost roofline`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from gpucost.answers.speed import BOUND_WORDS, Bound, Point, Roof, UnderRoofs
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.errors import UsageError
from gpucost.physics import collectives as net
from gpucost.physics import roofline
from gpucost.physics.columns import PRECISIONS, VALUE_BYTES, code_of
from gpucost.physics.hardware import HardwareColumns, half_peak_tflops, half_precision, hardware_columns, peak_tflops
from gpucost.physics.training.cases import software_codes
from gpucost.physics.training.efficiency import resolve
from gpucost.physics.training.layer import links_of
from gpucost.physics.training.layouts import latest_year, usual_year
from gpucost.physics.training.structs import Step
from gpucost.speed import advice, operations
from gpucost.speed import workload as speed
from gpucost.speed.answer import case_of, single
from gpucost.units import GB, TERA
from gpucost.workloads.speeds import key_of
from gpucost.workloads.training import TYPICAL

LAUNCH_S = 5e-6  # one kernel launch from the host, as measured on recent servers
_SAID = 0.005  # shares that are said
CURVE = np.logspace(0, 4.5, 55)


def one_operation(
    catalog: Catalog, gpu: str, system: str | None, gpus: float, precision: str | None, **wanted: Any
) -> UnderRoofs:
    """Answer for one operation, its intensity against the ridge and what bounds it; for the usual ones without one."""
    key = key_of(catalog, gpu, system)
    name = precision or half_precision(key.accelerator)
    hardware = hardware_columns([key.accelerator], [key.system])
    peak = chip_peak(hardware, name, key.accelerator.id)
    if wanted["all_reduce"] and gpus < 2:
        raise UsageError("--all-reduce needs --gpus of at least 2, such as --gpus 8: one GPU has no communication.")
    given = any(wanted[kind] for kind in operations.NAMES)
    asked: dict[str, Mapping[str, Any]] = {"": wanted} if given else dict(operations.USUAL)

    def timed(found: operations.Named, at: str) -> float:
        attention = found.kind == "attention"
        return max(expected_s(catalog, hardware, at, found.work, gpus, attention), LAUNCH_S)

    points = []
    for words, one in asked.items():
        found = operations.operation(one, gpus, VALUE_BYTES[name])
        link = group_gb_per_s(hardware, gpus)
        verdict = roofline.judge(found.work, peak, hardware.hbm_gb_per_s, link, np.full(1, LAUNCH_S))
        points.append(point(words or found.label, found.work, verdict, timed(found, name), 1.0))
    roofs = roof(key.accelerator.id, key.system.id, name, hardware, float(peak[0]))
    answer: UnderRoofs = {
        "lead": one_lead(points[0], roofs["ridge_flop_per_byte"]) if given else usual_lead(points, roofs),
        "subject": points[0]["operation"] if given else f"the usual operations on {key.accelerator.id}",
        **roofs,  # type: ignore[typeddict-item] # holds nothing more than its type says
        "points": points,
        "advice": advice.of_operation(wanted, key.accelerator, name, gpus, points[0]["bound"], timed) if given else [],
    }
    if given:
        answer["lead"] = f"{answer['lead']} {advice.worded(answer)}"
    return answer


def usual_lead(points: Sequence[Point], roofs: Roof) -> str:
    """Say which of several operations lie above the ridge."""
    above = [row["operation"] for row in points if row["bound"] == "compute"]
    return (
        f"The ridge of {roofs['gpu']} in {roofs['precision']} is {roofs['ridge_flop_per_byte']:,.0f} FLOP per byte:"
        f" {len(above)} of {len(points)} usual operations lie above it."
    )


def expected_s(
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
    wire = np.where(work.link_bytes > 0, work.link_bytes / (group.gb_per_s * GB) + 2 * group.latency_s, 0.0)
    return float(np.maximum(np.hypot(compute, memory), wire)[0])


def group_gb_per_s(hardware: HardwareColumns, gpus: float) -> Any:
    """Return the nominal bandwidth that a group of the first so many GPUs sees."""
    link = net.links(hardware, np.ones(1), np.ones(1), np.zeros(1), np.zeros(1))
    return net.tier(link, np.full(1, max(gpus, 1.0)), np.ones(1)).gb_per_s


def chip_peak(hardware: HardwareColumns, precision: str, chip: str) -> Any:
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
    low = chip_peak(hardware, layout["precision"], accelerator.id)
    points = []
    for name, work in roofline.step_work(case, step).items():
        time = float(getattr(step, name)[0])
        if time <= 0:
            continue
        peak = low if name == "matrix_s" else half_peak_tflops(hardware, case.layout.precision)
        verdict = roofline.judge(work, peak, hardware.hbm_gb_per_s, hardware.scaleup_gb_per_s, np.zeros(1))
        points.append(point(name.removesuffix("_s"), work, verdict, time, time / float(step.total_s[0])))
    points = sorted(points + host_points(step), key=lambda row: -row["time_s"])
    found: UnderRoofs = {
        "lead": step_lead(points),
        "subject": f"a step of {answer['model']} on {layout['gpus']} × {accelerator.id}",
        **roof(accelerator.id, node.id, layout["precision"], hardware, float(low[0])),
        "points": points,
        "advice": advice.of_step(catalog, exact, accelerator, answer["step_s"]),
        "layout": layout,
        "step_s": answer["step_s"],
        "mfu_fraction": answer["mfu_fraction"],
    }
    return {**found, "lead": f"{found['lead']} {advice.worded(found)}"}


def host_points(step: Step) -> list[Point]:
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


def one_lead(row: Point, ridge: float) -> str:
    """Return the verdict on one operation in one sentence."""
    words, intensity = BOUND_WORDS[row["bound"]], row["intensity_flop_per_byte"]
    if intensity is None:
        return f"Bound by {words}: it multiplies nothing."
    side = "above" if intensity > ridge else "below"
    return f"Bound by {words}: {intensity:,.0f} FLOP per byte, {side} the ridge of {ridge:,.0f}."


def step_lead(rows: Sequence[Point]) -> str:
    """Return the verdict on a step in one sentence."""
    shares: dict[Bound, float] = {}
    for row in rows:
        shares[row["bound"]] = shares.get(row["bound"], 0.0) + row["share_fraction"]
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    parts = [f"{share:.0%} is bound by {BOUND_WORDS[name]}" for name, share in ranked if share >= _SAID]
    return f"Of the step's time, {', '.join(parts)}."
