"""Answers about one layout or the fastest one, as payloads: what `gpucost throughput` shows."""

from dataclasses import asdict, replace
from typing import cast

import numpy as np

from gpucost.answers import speed as shape
from gpucost.answers.common import LayoutRow
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.errors import NothingFitsError, UsageError
from gpucost.physics import roofline, transformer
from gpucost.physics.calibration import Calibration
from gpucost.physics.columns import PRECISIONS, Floats, LayoutColumns
from gpucost.physics.training import layouts as search
from gpucost.physics.training import legality
from gpucost.physics.training.memory import training_memory, usable_bytes
from gpucost.physics.training.own_runs import Alike, corrected
from gpucost.physics.training.structs import PARTS, Step, TrainingCase
from gpucost.speed.workload import Layouts, Wanted, explicit_layouts, interval_of, make_case, step_of, texts
from gpucost.types import Accelerator, Architecture, Layout
from gpucost.units import GB, GIB, TERA
from gpucost.workloads.loading import DataFlow, make_loading
from gpucost.workloads.own_speed import OwnSpeed, StepWork, check, ends, most_tokens_per_s
from gpucost.workloads.speeds import job_of, memory_gb, timed_layouts
from gpucost.workloads.training import Workload, make_workload, token_bytes

SHOWN = 20  # layouts behind the best in an answer


def single(catalog: Catalog, wanted: Wanted) -> shape.Timed:
    """Answer one question: the layout given, else the fastest found, with the step by part and what bounds each."""
    timed = explicit_answer(catalog, wanted) if wanted.explicit else searched_answer(catalog, wanted)
    if (own := wanted.own_speed) is not None:
        timed = with_own(timed, own, catalog.accelerator(timed["gpu"]), wanted.method != "full")
    return (
        timed
        if wanted.data_flow == DataFlow()
        else with_data(timed, wanted, catalog.architecture(texts(wanted.model, 1)[0]))
    )


def with_data(timed: shape.Timed, wanted: Wanted, architecture: Architecture) -> shape.Timed:
    """Return a timed layout that is fed by a loader: it waits for what comes later than a step ends."""
    loading = make_loading(wanted.data_flow, int(timed["sequence_tokens"]), token_bytes(architecture))
    assert loading is not None
    gpus = timed["layout"]["gpus"]
    found = loading.feeding(timed["tokens_per_s"], gpus)
    if stall := found["stall_fraction"]:
        share, most = 1 - stall, float(loading.tokens_per_s(gpus)) / gpus
        step_s = timed["step_s"] / share
        steps = [
            cast(shape.Part, {**part, "share_fraction": part["share_fraction"] * share}) for part in timed["parts"]
        ]
        wait: shape.Part = {"part": "loading", "time_s": step_s * stall, "share_fraction": stall, "bound": "loader"}
        timed = {
            **timed,
            "tokens_per_s_per_gpu": timed["tokens_per_s_per_gpu"] * share,
            "tokens_per_s_per_gpu_low": min(timed["tokens_per_s_per_gpu_low"], most),
            "tokens_per_s_per_gpu_high": min(timed["tokens_per_s_per_gpu_high"], most),
            "tokens_per_s": timed["tokens_per_s"] * share,
            "step_s": step_s,
            "mfu_fraction": timed["mfu_fraction"] * share,
            "hfu_fraction": timed["hfu_fraction"] * share,
            "model_tflops": timed["model_tflops"] * share,
            "parts": [*steps, wait],
        }
        timed.pop("alternatives", None)  # their speeds are those without waiting
        timed["lead"] = lead(timed, "as fast as its data come")
    return {**timed, "lead": f"{timed['lead']} {found['said']}", "loading": found}


def with_own(timed: shape.Timed, own: OwnSpeed, chip: Accelerator, frozen: bool) -> shape.Timed:
    """Return a timed layout at a measured speed; the parts of the step keep their shares."""
    layout, sequence = timed["layout"], timed["sequence_tokens"]
    flop = timed["model_flop_per_token_flop"]
    work = StepWork(layout["precision"], layout["global_batch"] * sequence, flop, frozen)
    check(own, [chip], layout["gpus"], work)
    speed = own.tokens_per_s(chip, layout["gpus"], work)
    low, high = (float(end) for end in ends(np.array(speed), most_tokens_per_s(chip, work)))
    ratio = speed / timed["tokens_per_s_per_gpu"]
    found: shape.Timed = {
        **timed,
        "tokens_per_s_per_gpu": speed,
        "tokens_per_s_per_gpu_low": low,
        "tokens_per_s_per_gpu_high": high,
        "tokens_per_s": speed * layout["gpus"],
        "step_s": timed["step_s"] / ratio,
        "mfu_fraction": timed["mfu_fraction"] * ratio,
        "hfu_fraction": timed["hfu_fraction"] * ratio,
        "model_tflops": timed["model_tflops"] * ratio,
        "parts": [{**part, "time_s": part["time_s"] / ratio} for part in timed["parts"]],
    }
    found.pop("alternatives", None)  # speeds of other layouts would be predictions still
    expected = f"{timed['tokens_per_s_per_gpu_low']:,.0f} to {timed['tokens_per_s_per_gpu_high']:,.0f}"
    found["lead"] = lead(found, f"your own speed ({own.flag}); {ratio:.2f} of the predicted one ({expected})")
    return found


def case_of(layouts: Layouts, calibration: Calibration) -> TrainingCase:
    """Return the case of one layout, as the kernels take it."""
    stacked = transformer.stack(layouts.architectures)
    return make_case(layouts, calibration, stacked, layouts.hardware, layouts.layout, layouts.sequence_tokens)


def explicit_answer(catalog: Catalog, wanted: Wanted) -> shape.Timed:
    """Answer for the layout as given, or raise with the reason why it cannot exist."""
    layouts, calibration = explicit_layouts(catalog, wanted), training_calibration(catalog)
    case = case_of(layouts, calibration)
    code = int(legality.reason_codes(case.shape, case.hardware, layouts.layout, layouts.sequence_tokens)[0])
    if code != legality.OK:
        raise UsageError(legality.sentence(code, case.shape, layouts.layout, layouts.keys[0].accelerator.id))
    return described(layouts, case, calibration)


def workload_of(layouts: Layouts) -> Workload:
    """Return what is trained, for a search: the batch is the one given, else usual for the model."""
    wanted = layouts.wanted
    return make_workload(
        layouts.architectures[0],
        sequence_tokens=int(layouts.sequence_tokens[0]),
        global_batch=None if wanted.global_batch is None else int(layouts.layout.global_batch[0]),
        precision=PRECISIONS[int(layouts.layout.precision[0])],
        method=wanted.method,
        lora_rank=int(wanted.lora_rank),
        software=wanted.software,
        software_year=wanted.software_year,
        latest_year=layouts.latest_year,
        document_tokens=wanted.document_tokens,
        offload=wanted.offload,
    )


def searched_answer(catalog: Catalog, wanted: Wanted) -> shape.Timed:
    """Answer with the fastest layout in common use, and the candidates behind it."""
    asked, calibration = explicit_layouts(catalog, wanted), training_calibration(catalog)
    workload = workload_of(asked)
    job = job_of(workload, calibration)
    found, keys = timed_layouts(workload, job, asked.keys, asked.layout.gpus)
    if len(found.key) == 0:
        raise NothingFitsError(no_layout(int(search.reduce_best(found, job, keys).reason[0]), asked, job.global_batch))
    shown = found.take(np.argsort(-found.tokens_per_s_per_gpu, kind="stable")[:SHOWN])
    chips = keys.hardware.take(keys.pair[shown.key])
    steps, memory = search.steps_of(shown, keys), memory_gb(job, shown.layout)
    steps = corrected(
        steps, calibration.runs_of(wanted.software), Alike(job.shape, chips, shown.layout, job.recipe, job.software)
    )
    chosen = replace(asked, layout=shown.layout.take(slice(0, 1)))
    answer = described(chosen, case_of(chosen, calibration), calibration)
    answer["layouts_timed"] = len(found.key)
    answer["lead"] = lead(answer, f"the fastest of {len(found.key):,} layouts that fit")
    answer["alternatives"] = [candidate(shown.layout, steps, memory, row) for row in range(len(shown.key))]
    return answer


def no_layout(reason: int, layouts: Layouts, batch: int) -> str:
    """Say why a search found nothing, and what to try."""
    architecture, accelerator = layouts.architectures[0], layouts.keys[0].accelerator
    gpus, precision = int(layouts.layout.gpus[0]), PRECISIONS[int(layouts.layout.precision[0])]
    if reason == search.NO_PRECISION:
        return f"{accelerator.id} has no known {precision} peak. Try --precision bf16 or fp16."
    if reason == search.NO_BATCH:
        return f"{gpus} GPUs are more than a batch of {batch} sequences can use. Raise --global-batch."
    return (
        f"no layout of {architecture.name} fits the memory of {gpus} × {accelerator.id}. "
        f"Use more GPUs, or name a layout: `gpucost fit --model {architecture.name} --gpu {accelerator.id}` has both."
    )


def candidate(layout: LayoutColumns, step: Step, memory: Floats, row: int) -> shape.RankedLayout:
    """Return one candidate as a flat row."""
    return {
        **layout_row(layout.layout(row)),
        "step_s": float(step.total_s[row]),
        "tokens_per_s_per_gpu": float(step.tokens_per_s_per_gpu[row]),
        "mfu_fraction": float(step.mfu_fraction[row]),
        "memory_gib": float(memory[row]) * GB / GIB,
    }


def layout_row(layout: Layout) -> LayoutRow:
    """Return a layout as a mapping."""
    return cast(LayoutRow, asdict(layout))


def part_rows(case: TrainingCase, step: Step) -> list[shape.Part]:
    """Return the parts of one step: seconds, share, and what bounds each."""
    bounds = roofline.part_bounds(case, step)
    total = float(step.total_s[0])
    return [
        {
            "part": name.removesuffix("_s"),
            "time_s": float(getattr(step, name)[0]),
            "share_fraction": float(getattr(step, name)[0]) / total,
            "bound": roofline.BOUNDS[int(bounds[name][0])] if name in bounds else "schedule",
        }
        for name in PARTS
    ]


def memory_of(case: TrainingCase) -> shape.Memory:
    """Return the peak memory of one case against what the accelerator can use."""
    need = float(training_memory(case.shape, case.layout, case.recipe).total_bytes[0])
    usable = float(usable_bytes(case.hardware.memory_gib)[0])
    return {"memory_gib": need / GIB, "usable_memory_gib": usable / GIB, "fits": need <= usable}


def described(layouts: Layouts, case: TrainingCase, calibration: Calibration) -> shape.Timed:
    """Describe one timed case: speed with its range, MFU and HFU, the parts of the step and their bounds."""
    step = step_of(layouts, calibration, case)
    low, high = interval_of(layouts, calibration, case, step)
    architecture, key = layouts.architectures[0], layouts.keys[0]
    sequence, layout = case.recipe.sequence_tokens, case.layout
    hardware_flop = float(transformer.hardware_flop(case.shape, sequence, layout.recompute, layout.flash)[0])
    speed, peak = float(step.tokens_per_s_per_gpu[0]), float(step.model_tflops[0] / step.mfu_fraction[0])
    answer: shape.Timed = {
        "lead": "",
        "model": architecture.name,
        "gpu": key.accelerator.id,
        "system": key.system.id,
        "layout": layout_row(layout.layout(0)),
        "sequence_tokens": float(sequence[0]),
        "software": layouts.wanted.software,
        "tokens_per_s_per_gpu": speed,
        "tokens_per_s_per_gpu_low": float(low[0]),
        "tokens_per_s_per_gpu_high": float(high[0]),
        "tokens_per_s": speed * float(layout.gpus[0]),
        "step_s": float(step.total_s[0]),
        "mfu_fraction": float(step.mfu_fraction[0]),
        "hfu_fraction": hardware_flop * speed / TERA / peak,
        "model_tflops": float(step.model_tflops[0]),
        "peak_tflops": peak,
        "model_flop_per_token_flop": float(transformer.model_flop(case.shape, sequence)[0]),
        "hardware_flop_per_token_flop": hardware_flop,
        **memory_of(case),  # type: ignore[typeddict-item] # holds nothing more than its type says
        "parts": part_rows(case, step),
    }
    answer["lead"] = lead(answer, "the layout as given")
    return answer


def lead(answer: shape.Timed, how: str) -> str:
    """Return the answer in one sentence."""
    return (
        f"{answer['tokens_per_s_per_gpu']:,.0f} tokens/s per GPU (80 % range "
        f"{answer['tokens_per_s_per_gpu_low']:,.0f} to {answer['tokens_per_s_per_gpu_high']:,.0f}), "
        f"{answer['mfu_fraction']:.1%} MFU: {how}."
    )
