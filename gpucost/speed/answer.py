"""Answers about one layout or the fastest one, as payloads: what `gpucost throughput` shows."""

from dataclasses import asdict
from typing import cast

import numpy as np

from gpucost.answers import speed as shape
from gpucost.answers.common import LayoutRow
from gpucost.catalog import Catalog
from gpucost.errors import NothingFitsError, UsageError
from gpucost.physics import roofline, transformer
from gpucost.physics.columns import PRECISIONS
from gpucost.physics.hardware import hardware_columns
from gpucost.physics.training import calibration as cal
from gpucost.physics.training import layouts as search
from gpucost.physics.training import legality
from gpucost.physics.training import steps as training
from gpucost.physics.training.grid import make_grid
from gpucost.physics.training.memory import training_memory, usable_bytes
from gpucost.speed.workload import Cases, Wanted, explicit_cases, make_case, software_of
from gpucost.types import Layout
from gpucost.units import GIB, TERA
from gpucost.validation.fitted import current

SHOWN = 20  # layouts behind the best in an answer


def single(catalog: Catalog, wanted: Wanted) -> shape.Timed:
    """Answer one question: the layout given, else the fastest found, with the step by part and what bounds each."""
    return explicit_answer(catalog, wanted) if wanted.explicit else searched_answer(catalog, wanted)


def explicit_answer(catalog: Catalog, wanted: Wanted) -> shape.Timed:
    """Answer for the layout as given, or raise with the reason why it cannot exist."""
    cases = explicit_cases(catalog, wanted)
    calibration = current(catalog)
    shape = transformer.stack(cases.architectures)
    hardware = hardware_columns([a for a, _ in cases.pairs], [s for _, s in cases.pairs])
    code = int(legality.reason_codes(shape, hardware, cases.layout, cases.sequence_tokens)[0])
    if code != legality.OK:
        raise UsageError(legality.sentence(code, shape, cases.layout, cases.pairs[0][0].id))
    case = make_case(cases, calibration, shape, hardware, cases.layout, cases.sequence_tokens)
    return described(cases, case, calibration)


def searched_answer(catalog: Catalog, wanted: Wanted) -> shape.Timed:
    """Answer with the fastest layout, and the candidates behind it."""
    cases = explicit_cases(catalog, wanted)
    calibration = current(catalog)
    architecture, (accelerator, system) = cases.architectures[0], cases.pairs[0]
    job = search.make_job(
        architecture, sequence_tokens=float(cases.sequence_tokens[0]),
        global_batch=None if wanted.global_batch is None else int(cases.layout.global_batch[0]),
        precision=PRECISIONS[int(cases.layout.precision[0])], method=cases.method, lora_rank=int(cases.lora_rank),
        software=cases.software, software_year=cases.software_year, values=calibration.values,
    )  # fmt: skip
    keys = search.make_keys([accelerator], [system], [float(cases.layout.gpus[0])])
    grid = make_grid(architecture, float(cases.sequence_tokens[0]), job.global_batch, wide=True)
    found = search.search(grid, job, keys)
    if len(found.key) == 0:
        best = search.reduce_best(found, job, keys)
        raise NothingFitsError(no_layout(int(best.reason[0]), cases))
    order = np.argsort(-found.tokens_per_s_per_gpu, kind="stable")
    shown = found.take(order[:SHOWN])
    steps = search.steps_of(shown, keys)
    chosen = Cases(
        cases.architectures, cases.pairs, cases.model[:1], cases.pair[:1], found.layout.take(order[:1]),
        cases.sequence_tokens[:1], cases.method, cases.lora_rank, cases.software, cases.software_year,
    )  # fmt: skip
    hardware = hardware_columns([accelerator], [system])
    case = make_case(
        chosen, calibration, transformer.stack([architecture]), hardware, chosen.layout, chosen.sequence_tokens
    )
    answer = described(chosen, case, calibration)
    answer["layouts_timed"] = len(found.key)
    answer["lead"] = lead(answer, f"the fastest of {len(found.key):,} layouts that fit")
    answer["alternatives"] = [candidate(shown, steps, row) for row in range(len(shown.key))]
    return answer


def no_layout(reason: int, cases: Cases) -> str:
    """Say why a search found nothing, and what to try."""
    architecture, (accelerator, _) = cases.architectures[0], cases.pairs[0]
    gpus, precision = int(cases.layout.gpus[0]), PRECISIONS[int(cases.layout.precision[0])]
    if reason == search.NO_PRECISION:
        return f"{accelerator.id} has no known {precision} peak. Try --precision bf16 or fp16."
    if reason == search.NO_BATCH:
        batch = int(cases.layout.global_batch[0])
        return f"{gpus} GPUs are more than a batch of {batch} sequences can use. Raise --global-batch."
    return (
        f"no layout of {architecture.name} fits the memory of {gpus} × {accelerator.id}. "
        f"Use more GPUs; `gpucost fit --model {architecture.name} --gpu {accelerator.id}` says how many."
    )


def candidate(found: search.Candidates, step: training.Step, row: int) -> shape.Candidate:
    """Return one candidate as a flat row."""
    return {
        **layout_row(found.layout.layout(row)),
        "step_s": float(step.total_s[row]),
        "tokens_per_s_per_gpu": float(step.tokens_per_s_per_gpu[row]),
        "mfu_fraction": float(step.mfu_fraction[row]),
        "memory_gib": float(found.memory_bytes[row]) / GIB,
    }


def layout_row(layout: Layout) -> LayoutRow:
    """Return a layout as a mapping."""
    return cast(LayoutRow, asdict(layout))


def part_rows(case: training.Case, step: training.Step) -> list[shape.Part]:
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
        for name in training.PARTS
    ]


def memory_of(case: training.Case) -> shape.Memory:
    """Return the peak memory of one case against what the accelerator can use."""
    need = float(training_memory(case.shape, case.layout, case.recipe).total_bytes[0])
    usable = float(usable_bytes(case.hardware.memory_gib)[0])
    return {"memory_gib": need / GIB, "usable_memory_gib": usable / GIB, "fits": need <= usable}


def described(cases: Cases, case: training.Case, calibration: cal.Calibration) -> shape.Timed:
    """Describe one timed case: speed with its range, MFU and HFU, the parts of the step and their bounds."""
    step = training.step(case)
    traits = cal.traits(case, software_of(cases, 1), step, stated_layout=True)
    low, high = cal.interval(step.tokens_per_s_per_gpu, traits, calibration.ranges)
    architecture, (accelerator, system) = cases.architectures[0], cases.pairs[0]
    sequence, layout = case.recipe.sequence_tokens, case.layout
    hardware_flop = float(transformer.hardware_flop(case.shape, sequence, layout.recompute, layout.flash)[0])
    speed, peak = float(step.tokens_per_s_per_gpu[0]), float(step.model_tflops[0] / step.mfu_fraction[0])
    answer: shape.Timed = {
        "lead": "",
        "model": architecture.name,
        "gpu": accelerator.id,
        "system": system.id,
        "layout": layout_row(layout.layout(0)),
        "sequence_tokens": float(sequence[0]),
        "software": cases.software,
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
        **memory_of(case),
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
