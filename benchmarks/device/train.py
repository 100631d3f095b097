"""Training steps of a small decoder: tokens per second and the allocator's peak, by layout and recipe.

    python -m benchmarks.device.train --set single [--seconds 240]
    torchrun --nproc-per-node 8 -m benchmarks.device.train --set node [--seconds 280]

Recipes: `amp` = fp32 parameters under bf16 autocast; `bf16` = everything in bf16; under FSDP `amp` keeps fp32
shards and gathers bf16. Peaks are `torch.cuda.max_memory_allocated` on the fullest GPU over the timed steps.
"""

import argparse
import contextlib
import dataclasses
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist

from benchmarks.device.common import CUDA, DEVICE, WORLD, Table, TimeBox, clean, guarded, out, peak_gb, synchronize
from gpucost.bench.gpu.model import Decoder, parameters_of
from gpucost.bench.shapes import SHAPES

COLUMNS = [
    "model",
    "params_b",
    "n_layers",
    "hidden",
    "n_heads",
    "n_kv_heads",
    "ffn_hidden",
    "vocab",
    "seq_len",
    "n_gpus",
    "tp",
    "dp",
    "zero_stage",
    "micro_batch",
    "accumulate",
    "activation_recompute",
    "recipe",
    "compiled",
    "optimizer",
    "loss_chunk_tokens",
    "loss_chunk_recompute",
    "forward_backward_s",
    "optimizer_s",
    "measured_iter_time_s",
    "measured_tokens_per_s_per_gpu",
    "after_forward_gb",
    "before_step_gb",
    "peak_memory_gb",
    "peak_reserved_gb",
]


@dataclass(frozen=True)
class Case:
    model: str
    seq: int
    micro: int
    recompute: str = "none"
    recipe: str = "amp"
    compiled: int = 0
    chunk: int = 8192
    chunk_recompute: int = 1
    optimizer: str = "fused"
    zero: int = 0
    tensor: int = 1
    accumulate: int = 1


def build(case: Case) -> torch.nn.Module:
    dtype = torch.bfloat16 if case.recipe == "bf16" else torch.float32
    with torch.device("meta"):
        model = Decoder(SHAPES[case.model], case.recompute, case.chunk, bool(case.chunk_recompute)).to(dtype)
    if case.tensor > 1:
        split_tensors(model, case.tensor)
    if case.compiled:
        for block in model.blocks:
            block.compile()
    if case.zero >= 2:
        shard(model, case)
    model.to_empty(device=DEVICE)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(1.0) if parameter.ndim == 1 else parameter.normal_(0, 0.02)
    if case.zero == 0 and WORLD > 1 and case.tensor == 1:
        return torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    return model


def meshes(tensor: int):
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cuda" if CUDA else "cpu", (WORLD // tensor, tensor), mesh_dim_names=("data", "tensor"))


def split_tensors(model: Decoder, tensor: int) -> None:
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    column, row = ColwiseParallel(), RowwiseParallel()
    plan = {"q": column, "k": column, "v": column, "o": row, "gate": column, "up": column, "down": row}
    for block in model.blocks:
        parallelize_module(block, meshes(tensor)["tensor"], plan)


def shard(model: Decoder, case: Case) -> None:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16, reduce_dtype=torch.float32 if case.recipe == "amp" else None
    )
    options = {"mesh": meshes(case.tensor)["data"], "mp_policy": policy, "reshard_after_forward": case.zero == 3}
    for block in model.blocks:
        fully_shard(block, **options)
    fully_shard(model, **options)


def optimizer_of(model: torch.nn.Module, name: str) -> torch.optim.Optimizer:
    if name == "sgd":
        return torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, fused=True)
    return torch.optim.AdamW(model.parameters(), lr=1e-4, fused=name == "fused", foreach=name == "foreach")


def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, case: Case, data, marks: dict[str, float]) -> None:
    amp = case.recipe == "amp" and case.zero < 2
    begin = time.perf_counter()
    for _ in range(case.accumulate):
        with torch.autocast(DEVICE.type, torch.bfloat16) if amp else contextlib.nullcontext():
            loss = model(*data)
        if CUDA:
            marks["after_forward_gb"] = torch.cuda.memory_allocated() / 1e9
        loss.backward()
    if CUDA:
        marks["before_step_gb"] = torch.cuda.memory_allocated() / 1e9
    synchronize()
    middle = time.perf_counter()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    synchronize()
    marks["forward_backward_s"], marks["optimizer_s"] = middle - begin, time.perf_counter() - middle


def run(table: Table, case: Case) -> None:
    torch.manual_seed(0)
    model = build(case)
    optimizer = optimizer_of(model, case.optimizer)
    shape = SHAPES[case.model]
    tokens = torch.randint(shape.vocab, (case.micro, case.seq), device=DEVICE)
    data, marks, times = (tokens, tokens), {}, []
    for index in range(5):
        if index == 2 and CUDA:
            torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        step(model, optimizer, case, data, marks)
        times.append(time.perf_counter() - begin)
    time_s, (peak, reserved) = sorted(times[2:])[1], peak_gb()
    data_parallel = WORLD // case.tensor
    spread = {"n_gpus": WORLD, "tp": case.tensor, "dp": data_parallel, "zero_stage": case.zero}
    table.add(
        model=case.model,
        params_b=parameters_of(model) / 1e9,
        n_layers=shape.layers,
        hidden=shape.hidden,
        n_heads=shape.heads,
        n_kv_heads=shape.kv_heads,
        ffn_hidden=shape.ffn,
        vocab=shape.vocab,
        seq_len=case.seq,
        **spread,
        micro_batch=case.micro,
        accumulate=case.accumulate,
        activation_recompute=case.recompute,
        recipe=case.recipe,
        compiled=case.compiled,
        optimizer=case.optimizer,
        loss_chunk_tokens=case.chunk,
        loss_chunk_recompute=case.chunk_recompute,
        measured_iter_time_s=time_s,
        peak_memory_gb=peak,
        peak_reserved_gb=reserved,
        **marks,
        measured_tokens_per_s_per_gpu=case.micro * case.accumulate * case.seq / case.tensor / time_s,
    )


SINGLE = [
    Case("gpt2-124m", 1024, 64, compiled=1, chunk_recompute=0),
    Case("llama3.2-3b", 4096, 3, compiled=1, chunk_recompute=0),
    Case("llama3.2-3b", 4096, 8, "full", compiled=1, chunk_recompute=0),
    Case("gpt2-124m", 1024, 64, chunk_recompute=0),
    Case("gpt2-124m", 1024, 64, "full"),
    Case("llama3.2-3b", 4096, 8, "full", chunk_recompute=0),
    Case("llama3.2-1b", 2048, 4, chunk=0),
    Case("llama3.2-1b", 2048, 4, chunk=0, recipe="bf16"),
    Case("llama3.2-1b", 2048, 4, chunk=0, recipe="bf16", compiled=1),
    Case("llama3.2-1b", 2048, 4, chunk=0, compiled=1),
    Case("llama3.2-1b", 8192, 2, "selective"),
    Case("llama3.2-1b", 16384, 2, "full", optimizer="foreach", chunk_recompute=0),
    Case("llama3.2-1b", 4096, 4, optimizer="sgd", accumulate=4, chunk_recompute=0),
    Case("tinyllama-1.1b", 2048, 8, chunk=0),
    Case("0.5b", 1024, 1, chunk=0),
    Case("0.5b", 1024, 1, chunk=0, compiled=1),
    Case("0.5b", 1024, 16, chunk=0, optimizer="foreach"),
    Case("qwen2.5-1.5b", 4096, 4, "full", chunk=0, recipe="bf16"),
    Case("llama3-8b", 4096, 1, recipe="bf16", chunk_recompute=0),
    Case("llama3-8b", 8192, 4, "full", recipe="bf16"),
    Case("llama2-7b", 4096, 2, recipe="bf16", chunk=0),
    Case("llama2-13b", 4096, 1, "full", recipe="bf16", chunk=0),
]
NODE = [
    Case("llama3-8b", 8192, 4, "full", zero=3),
    Case("llama3-8b", 8192, 2, zero=3, compiled=1),
    Case("llama2-13b", 4096, 4, "full", zero=3),
    Case("llama3-8b", 8192, 1, zero=3),
    Case("llama3.2-1b", 2048, 8, compiled=1),
    Case("llama3.2-3b", 4096, 2),
    Case("llama3-8b", 8192, 2, zero=3, tensor=2),
    Case("llama3-8b", 8192, 4, "full", zero=3, tensor=8),
    Case("llama2-13b", 4096, 2, zero=3, compiled=1),
    Case("llama3-8b", 2048, 4, "full", zero=2, chunk=0),
    Case("34b", 4096, 2, "full", zero=3),
    Case("llama3.2-3b", 4096, 4, zero=3, compiled=1, recipe="bf16"),
    Case("llama3-8b", 4096, 2, zero=3, accumulate=4),
    Case("llama3-70b", 4096, 1, "full", zero=3, recipe="bf16"),
    Case("llama3-8b", 4096, 4, zero=3, tensor=4, compiled=1),
    Case("llama3-8b", 16384, 1, "full", zero=3, compiled=1),
    Case("llama2-7b", 2048, 8, "full", zero=3),
    Case("llama3.2-1b", 2048, 8, zero=3),
]


def tiny_cases() -> list[Case]:
    """The kinds of case that a machine without a GPU can try, on a tiny model."""
    found = set()
    for case in SINGLE + NODE:
        alone = WORLD == 1 and (case.zero > 0 or case.tensor > 1)
        if not case.compiled and case.tensor <= WORLD and not alone:
            found.add(dataclasses.replace(case, model="tiny", seq=32, micro=1, chunk=16 * bool(case.chunk)))
    return sorted(found, key=str)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=("single", "node", "tiny"), required=True)
    parser.add_argument("--seconds", type=float, default=240)
    options = parser.parse_args()
    if WORLD > 1:
        if CUDA:
            torch.cuda.set_device(DEVICE)
        dist.init_process_group("nccl" if CUDA else "gloo", device_id=DEVICE if CUDA else None)
    cases = {"single": SINGLE, "node": NODE, "tiny": tiny_cases()}[options.set]
    box, table = TimeBox(options.seconds), Table(out(f"train-{options.set}.csv"), COLUMNS)
    clean()
    for case in cases:
        if box.over():
            break
        guarded(lambda c=case: run(table, c), str(case))
        torch._dynamo.reset()
    if WORLD > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
