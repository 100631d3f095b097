"""Where memory really ends: the micro-batch is raised until the allocator gives up.

    python -m benchmarks.device.limits [--seconds 150]

Each case starts well below the end. The last micro-batch that ran and the first that failed bracket what a peak may
reach, with what the allocator had reserved and what the process took besides.
"""

import argparse
from dataclasses import dataclass

import torch

from benchmarks.device.common import CUDA, DEVICE, Table, TimeBox, clean, out
from gpucost.bench.cases import SHAPES
from gpucost.bench.gpu.steps import TrainStep, build, optimizer_of, step


@dataclass(frozen=True)
class Climb:
    case: TrainStep
    stride: int


CLIMBS = [
    Climb(TrainStep("llama3-8b", 2048, 4, recipe="bf16", loss_chunk=0), 1),
    Climb(TrainStep("tinyllama-1.1b", 2048, 16, loss_chunk=0), 1),
    Climb(TrainStep("llama3.2-1b", 2048, 12, compiled=True), 2),
    Climb(TrainStep("0.5b", 1024, 60, loss_chunk=0), 4),
    Climb(TrainStep("llama2-13b", 2048, 1, recipe="bf16", loss_chunk=0), 1),
]


def one(case: TrainStep, micro: int) -> dict[str, float] | None:
    """Run three steps at a micro-batch; None where memory ran out."""
    shape = SHAPES[case.model]
    try:
        model = build(case)
        optimizer = optimizer_of(model, case.optimizer)
        tokens = torch.randint(shape.vocab, (micro, case.sequence), device=DEVICE)
        for _ in range(3):
            step(model, optimizer, case, (tokens, tokens), {})
    except torch.OutOfMemoryError:
        return None
    free, total = torch.cuda.mem_get_info()
    return {
        "peak_memory_gb": torch.cuda.max_memory_allocated() / 1e9,
        "peak_reserved_gb": torch.cuda.max_memory_reserved() / 1e9,
        "process_gb": (total - free) / 1e9,
        "device_gb": total / 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=150)
    box = TimeBox(parser.parse_args().seconds)
    columns = ["model", "seq_len", "recipe", "compiled", "micro_batch", "ran"]
    table = Table(out("limits.csv"), [*columns, "peak_memory_gb", "peak_reserved_gb", "process_gb", "device_gb"])
    for climb in CLIMBS if CUDA else []:
        case, micro, found = climb.case, climb.case.micro_batch, {}
        while found is not None and not box.over():
            clean()
            found = one(case, micro)
            names = {
                "model": case.model,
                "seq_len": case.sequence,
                "recipe": case.recipe,
                "compiled": int(case.compiled),
            }
            table.add(**names, micro_batch=micro, ran=int(found is not None), **(found or {}))
            micro += climb.stride
        torch._dynamo.reset()


if __name__ == "__main__":
    main()
