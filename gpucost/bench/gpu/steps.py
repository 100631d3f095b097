"""A decoder in the style of Llama with random weights, and the training and serving steps that are timed on it."""

import contextlib
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from msgspec import Struct
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gpucost.bench.cases import SHAPES, ModelShape
from gpucost.bench.gpu.clock import CUDA, DEVICE, FP8, WORLD, host_timed, peak_gb, replayed, synchronize, timed

# --- A decoder in the style of Llama: grouped-query attention, RMS norm, rotary positions, feed-forward or experts.


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn the halves of each head by its position."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class _Float8Product(torch.autograd.Function):
    """y = x·Wᵀ in fp8 with one scale per tensor, forward and both products of the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        """Quantise both and multiply."""
        ctx.save_for_backward(x, weight)
        return _scaled_product(x, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Multiply the gradient with the weights and with the inputs."""
        x, weight = ctx.saved_tensors
        return _scaled_product(grad, weight.t()), _scaled_product(grad.t(), x.t()).to(weight.dtype)


def _scaled_product(x: Tensor, weight: Tensor) -> Tensor:
    """Return x·weightᵀ, both cast to fp8 by their largest values."""
    parts = []
    for value in (x, weight):
        # at least 1e-12, or a tensor of zeros would be divided by its largest value
        scale = value.abs().amax().float().clamp(min=1e-12) / torch.finfo(FP8).max
        parts.append(((value * scale.reciprocal()).to(FP8).contiguous(), scale))
    (a, scale_a), (b, scale_b) = parts
    return torch._scaled_mm(a, b.t(), scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16, use_fast_accum=True)


class _Linear8(nn.Linear):
    """A linear layer whose products run in fp8."""

    def forward(self, x: Tensor) -> Tensor:
        """Multiply in fp8."""
        flat = x.reshape(-1, x.shape[-1]).bfloat16()
        return _Float8Product.apply(flat, self.weight).view(*x.shape[:-1], -1)


class Experts(nn.Module):
    """Routed feed-forward: tokens sorted by expert, grouped products, weighted sum."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.count, self.chosen = shape.experts, shape.experts_per_token
        self.router = nn.Linear(shape.hidden, shape.experts, bias=False)
        self.gate_up = nn.Parameter(torch.empty(shape.experts, shape.hidden, 2 * shape.ffn))
        self.down = nn.Parameter(torch.empty(shape.experts, shape.ffn, shape.hidden))

    def forward(self, x: Tensor) -> Tensor:
        """Route, multiply by groups, and put the tokens back."""
        flat = x.reshape(-1, x.shape[-1]).bfloat16()
        weight, index = self.router(flat).float().softmax(-1).topk(self.chosen, -1)
        # sorted by expert, the rows of each stand together: one grouped product serves all experts
        order = index.flatten().argsort(stable=True)
        ends = F.one_hot(index.flatten(), self.count).sum(0).cumsum(0).int()  # counted without waiting for the device
        rows = order // self.chosen
        gate, up = self.products(flat[rows], self.gate_up.bfloat16(), ends).chunk(2, -1)
        out = self.products(F.silu(gate) * up, self.down.bfloat16(), ends)
        out = out * weight.flatten()[order].to(out.dtype)[:, None]
        return torch.zeros_like(flat).index_add(0, rows, out).view_as(x)

    @staticmethod
    def products(x: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
        """Multiply each group of rows by its expert's matrix."""
        if x.is_cuda:
            return torch._grouped_mm(x, weights, offs=ends)
        bounds = [0, *ends.tolist()]  # a processor has no grouped product
        parts = [x[a:b] @ weights[i] for i, (a, b) in enumerate(pairwise(bounds))]
        return torch.cat(parts)


class BenchBlock(nn.Module):
    """Attention, then a feed-forward or experts, each behind a norm."""

    def __init__(self, shape: ModelShape, linear: type[nn.Linear] = nn.Linear) -> None:
        super().__init__()
        d, hd = shape.hidden, shape.width
        self.head_dim, self.grouped = hd, shape.heads != shape.kv_heads
        self.norm1, self.norm2 = nn.RMSNorm(d, 1e-5), nn.RMSNorm(d, 1e-5)
        self.q = linear(d, shape.heads * hd, bias=False)
        self.k = linear(d, shape.kv_heads * hd, bias=False)
        self.v = linear(d, shape.kv_heads * hd, bias=False)
        self.o = linear(shape.heads * hd, d, bias=False)
        if shape.experts:
            self.experts = Experts(shape)
        else:
            self.gate, self.up = linear(d, shape.ffn, bias=False), linear(d, shape.ffn, bias=False)
            self.down = linear(shape.ffn, d, bias=False)

    def attend(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Causal attention with rotary positions."""
        b, s, _ = x.shape
        q, k, v = (f(x).view(b, s, -1, self.head_dim).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.grouped)
        return self.o(out.transpose(1, 2).reshape(b, s, -1))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Add attention, then the feed-forward."""
        x = x + self.attend(self.norm1(x), cos, sin)
        h = self.norm2(x)
        if hasattr(self, "experts"):
            return x + self.experts(h)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class BenchDecoder(nn.Module):
    """Embedding, blocks, norm, head; `recompute` is none, full or selective (every second block)."""

    def __init__(
        self, shape: ModelShape, recompute: str, loss_chunk: int, chunk_recompute: bool, fp8: bool = False
    ) -> None:
        super().__init__()
        self.shape, self.recompute, self.chunk_recompute = shape, recompute, chunk_recompute
        self.loss_chunk = loss_chunk
        self.embed = nn.Embedding(shape.vocab, shape.hidden)
        self.blocks = nn.ModuleList(BenchBlock(shape, _Linear8 if fp8 else nn.Linear) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, 1e-5)
        self.head = nn.Linear(shape.hidden, shape.vocab, bias=False)

    def positions(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines of the rotary positions."""
        width = self.shape.width
        frequency = 5e5 ** (-torch.arange(0, width, 2, device=tokens.device) / width)  # the base of Llama 3
        angle = torch.arange(tokens.shape[1], device=tokens.device)[:, None] * frequency
        angle = torch.cat((angle, angle), -1)
        return angle.cos().bfloat16(), angle.sin().bfloat16()

    def loss_of(self, h: Tensor, labels: Tensor) -> Tensor:
        """Sum of the cross-entropy over some tokens."""
        return F.cross_entropy(self.head(h).float(), labels, reduction="sum")

    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
        """Mean loss of a batch."""
        x = self.embed(tokens)
        if torch.is_autocast_enabled():
            x = x.bfloat16()  # autocast leaves embeddings in fp32, and every residual would follow them
        cos, sin = self.positions(tokens)
        for index, block in enumerate(self.blocks):
            if self.recompute == "full" or (self.recompute == "selective" and index % 2 == 0):
                x = checkpoint(block, x, cos, sin, use_reentrant=False)
            else:
                x = block(x, cos, sin)
        # logits of a whole batch may exceed all else in memory: a chunk of tokens at a time has its loss
        h, labels = self.norm(x).flatten(0, 1), labels.flatten()
        if not self.loss_chunk:
            return self.loss_of(h, labels) / labels.numel()
        total = torch.zeros((), device=h.device)
        for part, target in zip(h.split(self.loss_chunk), labels.split(self.loss_chunk), strict=True):
            total = total + (
                checkpoint(self.loss_of, part, target, use_reentrant=False)
                if self.chunk_recompute
                else self.loss_of(part, target)
            )
        return total / labels.numel()


def parameters_of(model: nn.Module) -> int:
    """Count the parameters."""
    return sum(p.numel() for p in model.parameters())


# --- Training steps of a decoder with random weights: seconds, tokens per second and the allocator's peak.
#
# Recipes: `amp` keeps fp32 parameters under bf16 autocast (with sharding: fp32 shards, bf16 gathers); `bf16` keeps
# all in bf16; `fp8` is `amp` with the linear layers' products in fp8. Sharding 0 is plain (data-parallel on several
# GPUs), 2 and 3 are FSDP with and without keeping what a forward pass gathered.


class TrainStep(Struct, frozen=True):
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
    with torch.device("meta"):  # shapes alone: what is sharded is never whole on a device
        model = BenchDecoder(
            SHAPES[case.model], case.recompute, case.loss_chunk, case.chunk_recompute, case.recipe == "fp8"
        ).to(dtype)
    # the order matters: FSDP shards what tensor parallelism left, and wraps blocks that are compiled already
    if case.tensor > 1:
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        column, row = ColwiseParallel(), RowwiseParallel()
        plan = {"q": column, "k": column, "v": column, "o": row, "gate": column, "up": column, "down": row}
        for block in model.blocks:
            parallelize_module(block, meshes(case.tensor)["tensor"], plan)
    if case.compiled:
        for block in model.blocks:
            block.compile()  # by block, not whole: equal layers are compiled once
    if case.sharding >= 2:
        _shard(model, case)
    model.to_empty(device=DEVICE)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:  # a norm's
                parameter.fill_(1.0)
            else:
                parameter.normal_(0, 0.02)
    if case.sharding == 0 and WORLD > 1 and case.tensor == 1:
        return torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    return model


def meshes(tensor: int) -> Any:
    """Return the mesh of data × tensor ranks."""
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cuda" if CUDA else "cpu", (WORLD // tensor, tensor), mesh_dim_names=("data", "tensor"))


def _shard(model: BenchDecoder, case: TrainStep) -> None:
    """Shard each block, then the rest, over the data-parallel ranks."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    reduce = None if case.recipe == "bf16" else torch.float32  # gradients are summed as they are accumulated
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
    autocast = case.recipe != "bf16" and case.sharding < 2  # FSDP casts by its own policy
    begin = time.perf_counter()
    for _ in range(case.accumulate):
        with torch.autocast(DEVICE.type, torch.bfloat16) if autocast else contextlib.nullcontext():
            loss = model(*data)
        if CUDA:
            marks["after_forward_gb"] = torch.cuda.memory_allocated() / 1e9
        loss.backward()
    if CUDA:
        marks["before_step_gb"] = torch.cuda.memory_allocated() / 1e9
    synchronize()  # so that the two parts are told apart; what the host would have launched ahead is one gap a step
    middle = time.perf_counter()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    synchronize()
    marks["forward_backward_s"], marks["optimizer_s"] = middle - begin, time.perf_counter() - middle


def measure_training(case: TrainStep, *, warmup: int = 2, repeat: int = 9) -> dict[str, Any]:
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
        torch._dynamo.reset()  # compiled code holds the model's memory
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


# --- Serving steps of a decoder with random weights: decode under graphs, and prefill, by tensor-parallel degree.
#
# Each rank holds its shard (heads, feed-forward columns, vocabulary rows); two all-reduces per layer and one all-
# gather of the logits. Attention reads a dense KV cache of the stated context. All layers are alike, so that some of
# them are run and the step of the whole model is its layers × `layer_s` + `rest_s`.

Step = Callable[[], Tensor]
_HOST_BOUND_RATIO = 1.1  # by which launches from the host may lengthen what a graph takes by itself


class Shard:
    """One rank's part of a model; all layers share the shapes but not the weights."""

    def __init__(self, model: ModelShape, tensor: int, layers: int, precision: str) -> None:
        self.model, self.tensor, self.precision = model, tensor, precision
        # fewer KV heads than ranks are copied; gate and up are one product, as q, k and v are
        d, hd = model.hidden, model.width
        self.q_heads, self.kv_heads = model.heads // tensor, max(1, model.kv_heads // tensor)
        qkv, ffn = (self.q_heads + 2 * self.kv_heads) * hd, model.ffn // tensor
        shapes = [(qkv, d), (d, self.q_heads * hd)]
        if not model.experts:
            shapes += [(2 * ffn, d), (d, ffn)]
        self.layers = [[self.weight(*shape) for shape in shapes] for _ in range(layers)]
        self.experts = [self.routed(ffn) for _ in range(layers)] if model.experts else []
        self.norms = torch.ones(d, device=DEVICE, dtype=torch.bfloat16)
        self.head = torch.randn(model.vocab // tensor, d, device=DEVICE, dtype=torch.bfloat16) * 0.02
        self.unit_scale = torch.ones((), device=DEVICE)

    def routed(self, ffn: int) -> tuple[Tensor, Tensor, Tensor]:
        """Make a router and its experts' weights."""
        count, d = self.model.experts, self.model.hidden
        kind = {"device": DEVICE, "dtype": torch.bfloat16}
        return (
            torch.randn(count, d, **kind),
            torch.randn(count, d, 2 * ffn, **kind) * 0.02,
            torch.randn(count, ffn, d, **kind) * 0.02,
        )

    def mixture(self, x: Tensor, experts: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Route tokens to experts and multiply by groups; nothing here waits for the host."""
        router, gate_up, down = experts
        chosen = self.model.experts_per_token
        weight, index = F.linear(x, router).float().softmax(-1).topk(chosen, -1)
        order = index.flatten().argsort(stable=True)
        ends = F.one_hot(index.flatten(), self.model.experts).sum(0).cumsum(0).int()
        rows = order // chosen
        gate, up = Experts.products(x[rows], gate_up, ends).chunk(2, -1)
        out = Experts.products(F.silu(gate) * up, down, ends) * weight.flatten()[order].to(x.dtype)[:, None]
        return torch.zeros_like(x).index_add(0, rows, out)

    def weight(self, outputs: int, inputs: int) -> Tensor:
        """Make one weight in the precision of the shard."""
        value = torch.randn(outputs, inputs, device=DEVICE, dtype=torch.bfloat16) * 0.02
        return value.to(FP8) if self.precision == "fp8" else value

    def linear(self, x: Tensor, weight: Tensor) -> Tensor:
        """Multiply in the precision of the weights."""
        if self.precision == "fp8":
            scale = self.unit_scale
            return torch._scaled_mm(x.to(FP8), weight.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)
        return F.linear(x, weight)

    def reduce(self, x: Tensor) -> Tensor:
        """Sum over the tensor-parallel ranks."""
        if self.tensor > 1:
            dist.all_reduce(x)
        return x

    def norm(self, x: Tensor) -> Tensor:
        """Root-mean-square norm."""
        return F.rms_norm(x, (x.shape[-1],), self.norms, 1e-5)

    def layer(self, x: Tensor, number: int, attend: Callable[[Tensor], Tensor]) -> Tensor:
        """Run one layer."""
        qkv, o, *feed = self.layers[number]
        x = x + self.reduce(self.linear(attend(self.linear(self.norm(x), qkv)), o))
        if self.experts:
            return x + self.reduce(self.mixture(self.norm(x), self.experts[number]))
        gate, up = self.linear(self.norm(x), feed[0]).chunk(2, -1)
        return x + self.reduce(self.linear(F.silu(gate) * up, feed[1]))

    def logits(self, x: Tensor) -> Tensor:
        """Return the logits of the last tokens, whole on every rank."""
        part = F.linear(self.norm(x), self.head)
        if self.tensor > 1:
            gathered = torch.empty(self.tensor * part.shape[0], part.shape[1], device=DEVICE, dtype=part.dtype)
            dist.all_gather_into_tensor(gathered, part)
            return gathered
        return part


def _decode_step(_shard: Shard, batch: int, context: int) -> tuple[Step, Step]:
    """Return the layers and the head of one token per sequence, each with a cache of its context."""
    hd, kv, group = _shard.model.width, _shard.kv_heads, _shard.q_heads // _shard.kv_heads

    def cache_of() -> Tensor:
        entries = torch.randn(batch, context, kv, hd, device=DEVICE, dtype=torch.bfloat16)
        return entries.transpose(1, 2)

    caches = [(cache_of(), cache_of()) for _ in _shard.layers]
    # fp8 products take rows by sixteen: a smaller batch is padded, and its cache is not
    x = torch.randn(
        max(batch, 16) if _shard.precision == "fp8" else batch, _shard.model.hidden, device=DEVICE, dtype=torch.bfloat16
    )

    def attention(cache: tuple[Tensor, Tensor]) -> Callable[[Tensor], Tensor]:
        def attend(qkv: Tensor) -> Tensor:
            q, k, v = qkv[:batch].split((_shard.q_heads * hd, kv * hd, kv * hd), -1)
            # the new token is the last of the context; the heads of a group read one key and value
            cache[0][:, :, -1], cache[1][:, :, -1] = k.view(batch, kv, hd), v.view(batch, kv, hd)
            mixed = F.scaled_dot_product_attention(q.reshape(batch, kv, group, hd), cache[0], cache[1]).reshape(
                batch, -1
            )
            return F.pad(mixed, (0, 0, 0, len(qkv) - batch)) if len(qkv) > batch else mixed

        return attend

    def layers() -> Tensor:
        y = x
        for number, cache in enumerate(caches):
            y = _shard.layer(y, number, attention(cache))
        return y

    return layers, lambda: _shard.logits(x[:batch])


def _prefill_step(_shard: Shard, batch: int, context: int) -> tuple[Step, Step]:
    """Return the layers and the head of whole prompts."""
    hd, kv = _shard.model.width, _shard.kv_heads
    x = torch.randn(batch * context, _shard.model.hidden, device=DEVICE, dtype=torch.bfloat16)

    def attend(qkv: Tensor) -> Tensor:
        q, k, v = (
            t.view(batch, context, -1, hd).transpose(1, 2)
            for t in qkv.split((_shard.q_heads * hd, kv * hd, kv * hd), -1)
        )
        return (
            F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            .transpose(1, 2)
            .reshape(batch * context, -1)
        )

    def layers() -> Tensor:
        y = x
        for number in range(len(_shard.layers)):
            y = _shard.layer(y, number, attend)
        return y

    return layers, lambda: _shard.logits(x.view(batch, context, -1)[:, -1])


def measure_serving(
    model: str, phase: str, batch: int, context: int, precision: str = "bf16", layers_run: int = 8
) -> dict[str, Any]:
    """Measure one decode step (a graph replayed) or one prefill, as launched and as the device takes by itself."""
    shape = SHAPES[model]
    run = min(layers_run, shape.layers)
    _shard = Shard(shape, WORLD, run, precision)
    layers, logits = (_decode_step if phase == "decode" else _prefill_step)(_shard, batch, context)
    with torch.no_grad():
        if phase == "decode":
            body, head = replayed(layers, calls=2), replayed(logits, calls=4)
        else:
            body, head = timed(layers, warmup=2, repeat=7), timed(logits, warmup=2, repeat=7)
            # replayed as graphs, a prefill shows what its launches from the host add
            alone_s = replayed(layers, calls=1).time_s / run * shape.layers + replayed(logits, calls=4).time_s
    layer_s = body.time_s / run
    step_s = layer_s * shape.layers + head.time_s
    tokens = batch if phase == "decode" else batch * context
    return {
        **body._replace(time_s=step_s)._asdict(),
        "ranks": WORLD,
        "layer_s": layer_s,
        "rest_s": head.time_s,
        "layers_run": run,
        "tokens_per_s_per_gpu": tokens / step_s / WORLD,
        **({"device_s": alone_s} if phase == "prefill" else {}),
        **({"bound": "host"} if phase == "prefill" and step_s > _HOST_BOUND_RATIO * alone_s else {}),
    }
