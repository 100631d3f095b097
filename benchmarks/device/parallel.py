"""Peak memory of layouts that share a model among two GPUs: pipeline, context and expert parallel, and offload.

    torchrun --nproc-per-node 2 -m benchmarks.device.parallel [--seconds 300]

Plain PyTorch: a pipeline of two stages under 1F1B, attention over keys and values gathered from the other half of the
sequence, experts reached by all-to-all, FSDP's own offload, and optimizer states kept by the host.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from msgspec import Struct
from msgspec.structs import replace
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from benchmarks.device.common import CUDA, DEVICE, RANK, WORLD, Table, TimeBox, options, out, peak_gb, ranks, run_cases
from benchmarks.device.common import synchronize as wait
from benchmarks.device.steps import COLUMNS, allocated_gb, dimensions
from gpucost.bench.cases import SHAPES
from gpucost.bench.gpu.steps import BenchBlock, BenchDecoder, Experts, meshes, parameters_of

_SHARED = ["pp", "cp", "ep", "offload", "n_experts", "moe_topk", "moe_ffn_hidden", "gradient_views"]


class Split(Struct, frozen=True):
    """A step of a model that two GPUs share in one way."""

    way: str  # pipeline | context | expert | offload-all | offload-states
    model: str
    sequence: int
    micro: int
    recompute: str = "none"
    accumulate: int = 1
    recipe: str = "bf16"


CASES = [
    Split("pipeline", "llama3.2-3b", 4096, 1, "none", 4),
    Split("pipeline", "llama3-8b", 4096, 1, "full", 4),
    Split("pipeline", "llama3.2-1b", 4096, 4, "none", 4),
    Split("context", "llama3.2-3b", 16384, 1),
    Split("context", "llama3-8b", 32768, 1, "full"),
    Split("context", "llama3.2-1b", 32768, 1),
    Split("expert", "moe-1b-7b", 4096, 2, "full"),
    Split("expert", "moe-8x1b", 4096, 2),
    Split("expert", "moe-3b-a0.6b", 4096, 4),
    Split("offload-all", "llama3.2-1b", 4096, 2),
    Split("offload-all", "llama3.2-3b", 4096, 2, "full"),
    Split("offload-states", "llama3.2-1b", 4096, 2),
    Split("offload-states", "llama3.2-3b", 4096, 2, "full"),
]


def exchange(send: Tensor | None, receive: Tensor | None) -> None:
    """Send to the other rank and receive from it at once."""
    # both at once: two ranks that first send to each other would wait for ever
    pair = [dist.P2POp(dist.isend, send, 1 - RANK)] if send is not None else []
    pair += [dist.P2POp(dist.irecv, receive, 1 - RANK)] if receive is not None else []
    for request in dist.batch_isend_irecv(pair) if pair else []:
        request.wait()


class Stage(nn.Module):
    """Half of a decoder: the embedding and the first blocks, or the last blocks, the head and the loss."""

    def __init__(self, whole: BenchDecoder, last: bool) -> None:
        super().__init__()
        # the first half also embeds, the last half also has the head and the loss
        half = len(whole.blocks) // 2
        self.blocks = whole.blocks[half:] if last else whole.blocks[:half]
        self.ends = nn.ModuleList([whole.norm, whole.head] if last else [whole.embed])
        self.last, self.full, self.positions = last, whole.recompute == "full", whole.positions

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        x = x if self.last else self.ends[0](tokens)
        rotation = self.positions(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, *rotation, use_reentrant=False) if self.full else block(x, *rotation)
        if not self.last:
            return x
        return F.cross_entropy(self.ends[1](self.ends[0](x)).flatten(0, 1).float(), tokens.flatten())


def _pipeline_step(stage: Stage, tokens: Tensor, count: int, width: int, marks: dict[str, float]) -> None:
    """1F1B over two stages: the first holds two micro-batches, the last one."""
    shape = (*tokens.shape, width)

    def room() -> Tensor:
        return torch.empty(shape, device=DEVICE, dtype=torch.bfloat16)

    if stage.last:
        exchange(None, x := room())  # the first activations; the first stage has run ahead by one
        for number in range(count):
            loss = stage(x.requires_grad_(), tokens) / count
            marks["after_forward_gb"] = allocated_gb()
            loss.backward()
            grad, x = x.grad, room() if number + 1 < count else None
            exchange(grad, x)
        return
    ahead = [stage(tokens, tokens)]  # micro-batches whose gradient has not come back
    exchange(ahead[0].detach(), None)
    for number in range(count):
        if number + 1 < count:
            ahead.append(stage(tokens, tokens))
        marks["after_forward_gb"] = allocated_gb()
        exchange(ahead[-1].detach() if number + 1 < count else None, grad := room())
        ahead.pop(0).backward(grad)


class _Gathered(torch.autograd.Function):
    """The parts of all ranks side by side, along the sequence."""

    @staticmethod
    def forward(ctx: Any, part: Tensor) -> Tensor:
        parts = [torch.empty_like(part) for _ in range(WORLD)]
        dist.all_gather(parts, part.contiguous())
        return torch.cat(parts, 2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        # every rank attended to this part: their gradients add up
        parts = [part.contiguous() for part in grad.chunk(WORLD, 2)]
        dist.reduce_scatter(mine := torch.empty_like(parts[0]), parts)
        return mine


def _attend_over_all(self: BenchBlock, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Attend from this rank's part of the sequence to the parts before it and its own."""
    from torch.nn.attention.bias import causal_lower_right

    b, s, _ = x.shape
    q, k, v = (f(x).view(b, s, -1, self.head_dim).transpose(1, 2) for f in (self.q, self.k, self.v))
    k, v = (_Gathered.apply(part)[:, :, : (RANK + 1) * s] for part in (k, v))
    # the last key is this rank's last token: the mask's corner is at the lower right, not at the upper left
    mask = causal_lower_right(s, k.shape[2])
    return self.o(
        F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=self.grouped).transpose(1, 2).reshape(b, s, -1)
    )


class _Exchanged(torch.autograd.Function):
    """Rows sent to the ranks of their experts; the gradient takes the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mine: list[int], theirs: list[int]) -> Tensor:
        ctx.sizes = mine, theirs
        received = x.new_empty(sum(theirs), x.shape[1])
        dist.all_to_all_single(received, x.contiguous(), theirs, mine)
        return received

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        mine, theirs = ctx.sizes
        back = grad.new_empty(sum(mine), grad.shape[1])
        dist.all_to_all_single(back, grad.contiguous(), mine, theirs)
        return back, None, None


class _SpreadExperts(Experts):
    """Experts of which each rank holds its share."""

    def __init__(self, whole: Experts) -> None:
        nn.Module.__init__(self)
        self.count, self.chosen, self.router = whole.count, whole.chosen, whole.router
        self.gate_up = nn.Parameter(whole.gate_up[: whole.count // WORLD])
        self.down = nn.Parameter(whole.down[: whole.count // WORLD])

    def forward(self, x: Tensor) -> Tensor:
        """Route, send, multiply by groups, send back and put the tokens in place."""
        flat = x.reshape(-1, x.shape[-1])
        # rows by expert, and so by rank: experts of a rank stand side by side
        weight, index = self.router(flat).float().softmax(-1).topk(self.chosen, -1)
        order = index.flatten().argsort(stable=True)
        counts = F.one_hot(index.flatten(), self.count).sum(0)
        # how many rows each rank sends to each expert comes first: the sizes of the exchange of rows
        dist.all_to_all_single(arriving := torch.empty_like(counts), counts)
        mine, theirs = (part.view(WORLD, -1).sum(1).tolist() for part in (counts, arriving))
        received = _Exchanged.apply(flat[order // self.chosen], mine, theirs)
        # rows arrive by rank and within it by expert; grouped products want them by expert alone
        expert = torch.arange(self.count // WORLD, device=x.device).repeat(WORLD).repeat_interleave(arriving)
        local = expert.argsort(stable=True)
        ends = arriving.view(WORLD, -1).sum(0).cumsum(0).int()
        gate, up = self.products(received[local], self.gate_up, ends).chunk(2, -1)
        done = self.products(F.silu(gate) * up, self.down, ends)
        back = _Exchanged.apply(torch.empty_like(done).index_copy(0, local, done), theirs, mine)
        back = back * weight.flatten()[order].to(back.dtype)[:, None]
        return torch.zeros_like(flat).index_add(0, order // self.chosen, back).view_as(x)


def build(case: Split) -> nn.Module:
    """Make this rank's part of the model."""
    with torch.device("meta"):  # no rank ever holds the whole model
        whole = BenchDecoder(SHAPES[case.model], case.recompute, 0, False).to(torch.bfloat16)
        if case.way == "expert":
            for block in whole.blocks:
                block.experts = _SpreadExperts(block.experts)
        model = Stage(whole, RANK == 1) if case.way == "pipeline" else whole
    if case.way in ("context", "offload-all"):  # by FSDP; in the other ways each rank keeps its part whole
        from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

        more = {"offload_policy": CPUOffloadPolicy()} if case.way == "offload-all" else {}
        for block in model.blocks:
            if case.way == "context":
                block.attend = _attend_over_all.__get__(block)
            fully_shard(block, mesh=meshes(1)["data"], **more)
        fully_shard(model, mesh=meshes(1)["data"], **more)
    model.to_empty(device="cpu" if case.way == "offload-all" else DEVICE)
    with torch.no_grad():
        for parameter in model.parameters():
            # norms are one, matrices small: a loss that overflows would change what is computed
            parameter.fill_(1.0) if parameter.ndim == 1 else parameter.normal_(0, 0.02)
    return model


def _on_host(model: nn.Module) -> Callable[[], None]:
    """Keep weights' copies, gradients and states on the host; return the update."""
    copies = {p: nn.Parameter(p.detach().float().cpu().pin_memory()) for p in model.parameters()}
    optimizer = torch.optim.AdamW(copies.values(), lr=1e-5, fused=True)

    def take(p: Tensor) -> None:
        copies[p].grad = p.grad.float().cpu()
        p.grad = None  # on the device a gradient lives only until it is copied

    for p in copies:
        p.register_post_accumulate_grad_hook(take)

    def update() -> None:
        optimizer.step()
        with torch.no_grad():
            for p, copy in copies.items():
                p.copy_(copy)

    return update


def _on_device(model: nn.Module, case: Split) -> Callable[[], None]:
    """Return the update of parameters where they lie; gradients of what ranks share are summed in place."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    shared = [p for name, p in model.named_parameters() if not name.endswith((".gate_up", ".down"))]

    def update() -> None:
        for p in shared if case.way == "expert" else ():
            dist.all_reduce(p.grad)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return update


def run(table: Table, case: Split) -> None:
    """Measure three steps after one."""
    model, shape = build(case), SHAPES[case.model]
    update = _on_host(model) if case.way == "offload-states" else _on_device(model, case)
    length = case.sequence // (WORLD if case.way == "context" else 1)
    tokens = torch.randint(shape.vocab, (case.micro, length), device=DEVICE)
    times, marks = [], {}
    for number in range(4):  # the first warms up
        if number == 1 and CUDA:
            torch.cuda.reset_peak_memory_stats()
        wait()
        begin = time.perf_counter()
        if case.way == "pipeline":
            _pipeline_step(model, tokens, case.accumulate, shape.hidden, marks)
        else:
            loss = model(tokens, tokens)
            marks["after_forward_gb"] = allocated_gb()
            loss.backward()
            del loss
        marks["before_step_gb"] = allocated_gb()
        update()
        wait()
        times.append(time.perf_counter() - begin)
    time_s = sorted(times[1:])[1]
    peak, reserved = peak_gb()
    with torch.device("meta"):
        parameters = parameters_of(BenchDecoder(shape, "none", 0, False))
    ways = {"pipeline": "pp", "context": "cp", "expert": "ep"}
    degrees = {name: WORLD if ways.get(case.way) == name else 1 for name in ("pp", "cp", "ep")}
    # states on the host concern each GPU alone: the row is that of one
    gpus = 1 if case.way == "offload-states" else WORLD
    data = gpus // degrees["pp"] // degrees["cp"]
    moe = {"n_experts": shape.experts, "moe_topk": shape.experts_per_token, "moe_ffn_hidden": shape.ffn}
    step_tokens = case.micro * case.sequence * case.accumulate * data
    table.add(
        **dimensions(case.model, shape, parameters), **degrees, **(moe if shape.experts else {}),
        seq_len=case.sequence, n_gpus=gpus, tp=1, dp=data, micro_batch=case.micro, accumulate=case.accumulate,
        zero_stage=3 if case.way in ("context", "offload-all") else 0, recipe=case.recipe, compiled=0,
        activation_recompute=case.recompute, optimizer="fused", loss_chunk_tokens=0, gradient_views=1,
        offload={"offload-all": "all", "offload-states": "states"}.get(case.way, "none"),
        measured_iter_time_s=time_s, measured_tokens_per_s_per_gpu=step_tokens / gpus / time_s,
        peak_memory_gb=peak, peak_reserved_gb=reserved, **marks,
    )  # fmt: skip


def main() -> None:
    arguments = options(__doc__, 300)
    if WORLD == 1:
        raise SystemExit("start it by torchrun --nproc-per-node 2: the layouts are those of two ranks")
    cases = CASES
    if arguments.tiny:
        cases = [
            replace(case, model="tiny-moe" if case.way == "expert" else "tiny", sequence=64, micro=1) for case in CASES
        ]
    with ranks():
        run_cases(run, Table(out("parallel.csv"), [*COLUMNS, *_SHARED]), cases, TimeBox(arguments.seconds))


if __name__ == "__main__":
    main()
