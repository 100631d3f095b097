"""Training steps of a decoder with random weights: seconds, tokens per second and the allocator's peak.

Recipes: `amp` keeps fp32 parameters under bf16 autocast (with sharding: fp32 shards, bf16 gathers); `bf16` keeps all
in bf16; `fp8` is `amp` with the linear layers' products in fp8. Sharding 0 is plain (data-parallel on several GPUs),
2 and 3 are FSDP with and without keeping what a forward pass gathered.
"""

import contextlib
import time
from dataclasses import dataclass
from typing import Any

import torch

from gpucost.bench.gpu.clock import CUDA, DEVICE, WORLD, host_timed, peak_gb, synchronize
from gpucost.bench.gpu.model import Decoder, parameters_of
from gpucost.bench.shapes import SHAPES


@dataclass(frozen=True)
class TrainStep:
    """One training step: model, sizes and recipe."""

    model: str
    sequence: int
    micro_batch: int
    recompute: str = "none"  # none | selective (every second block) | full
    recipe: str = "amp"
    compiled: bool = False
    loss_chunk: int = 8192
    chunk_recompute: bool = True
    optimizer: str = "fused"
    sharding: int = 0
    tensor: int = 1
    accumulate: int = 1


def build(case: TrainStep) -> torch.nn.Module:
    """Make the model on the device, sharded and compiled as the case says, with random weights."""
    dtype = torch.bfloat16 if case.recipe == "bf16" else torch.float32
    with torch.device("meta"):
        model = Decoder(
            SHAPES[case.model], case.recompute, case.loss_chunk, case.chunk_recompute, case.recipe == "fp8"
        ).to(dtype)
    if case.tensor > 1:
        split_tensors(model, case.tensor)
    if case.compiled:
        for block in model.blocks:
            block.compile()
    if case.sharding >= 2:
        shard(model, case)
    model.to_empty(device=DEVICE)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(1.0) if parameter.ndim == 1 else parameter.normal_(0, 0.02)
    if case.sharding == 0 and WORLD > 1 and case.tensor == 1:
        return torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    return model


def meshes(tensor: int) -> Any:
    """Return the mesh of data × tensor ranks."""
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cuda" if CUDA else "cpu", (WORLD // tensor, tensor), mesh_dim_names=("data", "tensor"))


def split_tensors(model: Decoder, tensor: int) -> None:
    """Spread each block's products over tensor-parallel ranks."""
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    column, row = ColwiseParallel(), RowwiseParallel()
    plan = {"q": column, "k": column, "v": column, "o": row, "gate": column, "up": column, "down": row}
    for block in model.blocks:
        parallelize_module(block, meshes(tensor)["tensor"], plan)


def shard(model: Decoder, case: TrainStep) -> None:
    """Shard each block, then the rest, over the data-parallel ranks."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    reduce = None if case.recipe == "bf16" else torch.float32
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce)
    options = {"mesh": meshes(case.tensor)["data"], "mp_policy": policy, "reshard_after_forward": case.sharding == 3}
    for block in model.blocks:
        fully_shard(block, **options)
    fully_shard(model, **options)


def optimizer_of(model: torch.nn.Module, name: str) -> torch.optim.Optimizer:
    """Make the optimizer: `fused` and `foreach` are AdamW, `sgd` has momentum."""
    if name == "sgd":
        return torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, fused=CUDA)
    fused = name == "fused"
    return torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused and CUDA, foreach=not fused and CUDA)


def step(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, case: TrainStep, data: Any, marks: dict[str, Any]
) -> None:
    """Run one whole step; `marks` receives the seconds of its two parts and the memory between them."""
    autocast = case.recipe != "bf16" and case.sharding < 2
    begin = time.perf_counter()
    for _ in range(case.accumulate):
        with torch.autocast(DEVICE.type, torch.bfloat16) if autocast else contextlib.nullcontext():
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


def measure(case: TrainStep, *, warmup: int = 2, repeat: int = 9) -> dict[str, Any]:
    """Measure a training step: some after a warm-up."""
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    model = build(case)
    optimizer = optimizer_of(model, case.optimizer)
    shape = SHAPES[case.model]
    tokens = torch.randint(shape.vocab, (case.micro_batch, case.sequence), device=DEVICE)
    marks: dict[str, Any] = {}
    timing, rounds = host_timed(
        lambda: step(model, optimizer, case, (tokens, tokens), marks), warmup=warmup, repeat=repeat
    )
    rate = case.micro_batch * case.accumulate * case.sequence / case.tensor / timing.time_s
    total = parameters_of(model)
    if CUDA:
        torch._dynamo.reset()
    return {
        **timing._asdict(),
        "rounds_s": rounds,
        **marks,
        "tokens_per_s_per_gpu": rate,
        "parameters": total,
        "ranks": WORLD,
        "peak_gb": peak_gb(),
        "peak_reserved_gb": torch.cuda.max_memory_reserved() / 1e9 if CUDA else None,
    }
