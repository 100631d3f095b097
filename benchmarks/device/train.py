"""Training steps of a small decoder: tokens per second and the allocator's peak, by layout and recipe.

    python -m benchmarks.device.train --set single [--seconds 240]
    torchrun --nproc-per-node 8 -m benchmarks.device.train --set node [--seconds 280]

The steps are those of `gpucost bench` (gpucost/bench/gpu/steps.py), over more layouts and recipes.
"""

from msgspec.structs import replace

from benchmarks.device.common import WORLD, Table, TimeBox, clean, options, out, ranks, run_cases
from benchmarks.device.steps import COLUMNS, dimensions
from gpucost.bench.cases import SHAPES
from gpucost.bench.gpu.steps import TrainStep, measure_training


def run(table: Table, case: TrainStep) -> None:
    measured = measure_training(case, warmup=2, repeat=3)
    table.add(
        **dimensions(case.model, SHAPES[case.model], measured["parameters"]),
        seq_len=case.sequence,
        n_gpus=WORLD,
        tp=case.tensor,
        dp=WORLD // case.tensor,  # all ranks that do not share a matrix hold other sequences
        zero_stage=case.sharding,
        micro_batch=case.micro_batch,
        accumulate=case.accumulate,
        activation_recompute=case.recompute,
        recipe=case.recipe,
        compiled=int(case.compiled),
        optimizer=case.optimizer,
        loss_chunk_tokens=case.loss_chunk,
        loss_chunk_recompute=int(case.chunk_recompute),
        measured_iter_time_s=measured["time_s"],
        measured_tokens_per_s_per_gpu=measured["tokens_per_s_per_gpu"],
        peak_memory_gb=measured["peak_gb"],
        **{name: measured[name] for name in COLUMNS if name in measured},
    )


# in order of worth: a run that is cut short has measured what matters most
SINGLE = [
    TrainStep("gpt2-124m", 1024, 64, compiled=True, chunk_recompute=False),
    TrainStep("llama3.2-3b", 4096, 3, compiled=True, chunk_recompute=False),
    TrainStep("llama3.2-3b", 4096, 8, "full", compiled=True, chunk_recompute=False),
    TrainStep("gpt2-124m", 1024, 64, chunk_recompute=False),
    TrainStep("gpt2-124m", 1024, 64, "full"),
    TrainStep("llama3.2-3b", 4096, 8, "full", chunk_recompute=False),
    TrainStep("llama3.2-1b", 2048, 4, loss_chunk=0),
    TrainStep("llama3.2-1b", 2048, 4, loss_chunk=0, recipe="bf16"),
    TrainStep("llama3.2-1b", 2048, 4, loss_chunk=0, recipe="bf16", compiled=True),
    TrainStep("llama3.2-1b", 2048, 4, loss_chunk=0, compiled=True),
    TrainStep("llama3.2-1b", 8192, 2, "selective"),
    TrainStep("llama3.2-1b", 16384, 2, "full", optimizer="foreach", chunk_recompute=False),
    TrainStep("llama3.2-1b", 4096, 4, optimizer="sgd", accumulate=4, chunk_recompute=False),
    TrainStep("tinyllama-1.1b", 2048, 8, loss_chunk=0),
    TrainStep("0.5b", 1024, 1, loss_chunk=0),
    TrainStep("0.5b", 1024, 1, loss_chunk=0, compiled=True),
    TrainStep("0.5b", 1024, 16, loss_chunk=0, optimizer="foreach"),
    TrainStep("qwen2.5-1.5b", 4096, 4, "full", loss_chunk=0, recipe="bf16"),
    TrainStep("llama3-8b", 4096, 1, recipe="bf16", chunk_recompute=False),
    TrainStep("llama3-8b", 8192, 4, "full", recipe="bf16"),
    TrainStep("llama2-7b", 4096, 2, recipe="bf16", loss_chunk=0),
    TrainStep("llama2-13b", 4096, 1, "full", recipe="bf16", loss_chunk=0),
]
NODE = [
    TrainStep("llama3-8b", 8192, 4, "full", sharding=3),
    TrainStep("llama3-8b", 8192, 2, sharding=3, compiled=True),
    TrainStep("llama2-13b", 4096, 4, "full", sharding=3),
    TrainStep("llama3-8b", 8192, 1, sharding=3),
    TrainStep("llama3.2-1b", 2048, 8, compiled=True),
    TrainStep("llama3.2-3b", 4096, 2),
    TrainStep("llama3-8b", 8192, 2, sharding=3, tensor=2),
    TrainStep("llama3-8b", 8192, 4, "full", sharding=3, tensor=8),
    TrainStep("llama2-13b", 4096, 2, sharding=3, compiled=True),
    TrainStep("llama3-8b", 2048, 4, "full", sharding=2, loss_chunk=0),
    TrainStep("34b", 4096, 2, "full", sharding=3),
    TrainStep("llama3.2-3b", 4096, 4, sharding=3, compiled=True, recipe="bf16"),
    TrainStep("llama3-8b", 4096, 2, sharding=3, accumulate=4),
    TrainStep("llama3-70b", 4096, 1, "full", sharding=3, recipe="bf16"),
    TrainStep("llama3-8b", 4096, 4, sharding=3, tensor=4, compiled=True),
    TrainStep("llama3-8b", 16384, 1, "full", sharding=3, compiled=True),
    TrainStep("llama2-7b", 2048, 8, "full", sharding=3),
    TrainStep("llama3.2-1b", 2048, 8, sharding=3),
]


def main() -> None:
    arguments = options(__doc__, 240, set=("single", "node", "tiny"))
    cases = {"single": SINGLE, "node": NODE, "tiny": SINGLE + NODE}[arguments.set]
    if arguments.set == "tiny":  # each kind of case once that these ranks can try without a GPU
        kinds = set()
        for case in cases:
            alone = WORLD == 1 and (case.sharding > 0 or case.tensor > 1)
            if not case.compiled and case.tensor <= WORLD and not alone:
                chunk = 16 * bool(case.loss_chunk)
                kinds.add(replace(case, model="tiny", sequence=32, micro_batch=1, loss_chunk=chunk))
        cases = sorted(kinds, key=str)  # a set has no order, and every rank must run the same case
    with ranks():
        box, table = TimeBox(arguments.seconds), Table(out(f"train-{arguments.set}.csv"), COLUMNS)
        clean()
        run_cases(run, table, cases, box)


if __name__ == "__main__":
    main()
