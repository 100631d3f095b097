"""Serving steps of a decoder with random weights: decode under graphs, and prefill, by tensor-parallel degree.

Each rank holds its shard (heads, feed-forward columns, vocabulary rows); two all-reduces per layer and one all-gather
of the logits. Attention reads a dense KV cache of the stated context. All layers are alike, so that some of them are
run and the step of the whole model is its layers × `layer_s` + `rest_s`.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from gpucost.bench.gpu.clock import DEVICE, FP8, WORLD, replayed, timed
from gpucost.bench.gpu.model import Experts
from gpucost.bench.shapes import SHAPES, ModelShape

Step = Callable[[], Tensor]
HOST_BOUND_RATIO = 1.1  # by which launches from the host may lengthen what a graph takes by itself


class Shard:
    """One rank's part of a model; all layers share the shapes but not the weights."""

    def __init__(self, model: ModelShape, tensor: int, layers: int, precision: str) -> None:
        self.model, self.tensor, self.precision = model, tensor, precision
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
        self.one = torch.ones((), device=DEVICE)

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
            return torch._scaled_mm(x.to(FP8), weight.t(), scale_a=self.one, scale_b=self.one, out_dtype=torch.bfloat16)
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
            whole = torch.empty(self.tensor * part.shape[0], part.shape[1], device=DEVICE, dtype=part.dtype)
            dist.all_gather_into_tensor(whole, part)
            return whole
        return part


def decode_step(shard: Shard, batch: int, context: int) -> tuple[Step, Step]:
    """Return the layers and the head of one token per sequence, each with a cache of its context."""
    hd, kv, group = shard.model.width, shard.kv_heads, shard.q_heads // shard.kv_heads

    def cache_of() -> Tensor:
        whole = torch.randn(batch, context, kv, hd, device=DEVICE, dtype=torch.bfloat16)
        return whole.transpose(1, 2)

    caches = [(cache_of(), cache_of()) for _ in shard.layers]
    x = torch.randn(
        max(batch, 16) if shard.precision == "fp8" else batch, shard.model.hidden, device=DEVICE, dtype=torch.bfloat16
    )

    def attention(cache: tuple[Tensor, Tensor]) -> Callable[[Tensor], Tensor]:
        def attend(qkv: Tensor) -> Tensor:
            q, k, v = qkv[:batch].split((shard.q_heads * hd, kv * hd, kv * hd), -1)
            cache[0][:, :, -1], cache[1][:, :, -1] = k.view(batch, kv, hd), v.view(batch, kv, hd)
            mixed = F.scaled_dot_product_attention(q.reshape(batch, kv, group, hd), cache[0], cache[1]).reshape(
                batch, -1
            )
            return F.pad(mixed, (0, 0, 0, len(qkv) - batch)) if len(qkv) > batch else mixed

        return attend

    def layers() -> Tensor:
        y = x
        for number, cache in enumerate(caches):
            y = shard.layer(y, number, attention(cache))
        return y

    return layers, lambda: shard.logits(x[:batch])


def prefill_step(shard: Shard, batch: int, context: int) -> tuple[Step, Step]:
    """Return the layers and the head of whole prompts."""
    hd, kv = shard.model.width, shard.kv_heads
    x = torch.randn(batch * context, shard.model.hidden, device=DEVICE, dtype=torch.bfloat16)

    def attend(qkv: Tensor) -> Tensor:
        q, k, v = (
            t.view(batch, context, -1, hd).transpose(1, 2)
            for t in qkv.split((shard.q_heads * hd, kv * hd, kv * hd), -1)
        )
        return (
            F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            .transpose(1, 2)
            .reshape(batch * context, -1)
        )

    def layers() -> Tensor:
        y = x
        for number in range(len(shard.layers)):
            y = shard.layer(y, number, attend)
        return y

    return layers, lambda: shard.logits(x.view(batch, context, -1)[:, -1])


def measure(
    model: str, phase: str, batch: int, context: int, precision: str = "bf16", layers_run: int = 8
) -> dict[str, Any]:
    """Measure one decode step (a graph replayed) or one prefill, as launched and as the device takes by itself."""
    shape = SHAPES[model]
    run = min(layers_run, shape.layers)
    shard = Shard(shape, WORLD, run, precision)
    layers, logits = (decode_step if phase == "decode" else prefill_step)(shard, batch, context)
    with torch.no_grad():
        if phase == "decode":
            body, rest = replayed(layers, calls=2), replayed(logits, calls=4)
        else:
            body, rest = timed(layers, warmup=2, repeat=7), timed(logits, warmup=2, repeat=7)
            alone_s = replayed(layers, calls=1).time_s / run * shape.layers + replayed(logits, calls=4).time_s
    layer_s = body.time_s / run
    step_s = layer_s * shape.layers + rest.time_s
    tokens = batch if phase == "decode" else batch * context
    return {
        **body._replace(time_s=step_s)._asdict(),
        "ranks": WORLD,
        "layer_s": layer_s,
        "rest_s": rest.time_s,
        "layers_run": run,
        "tokens_per_s_per_gpu": tokens / step_s / WORLD,
        **({"device_s": alone_s} if phase == "prefill" else {}),
        **({"bound": "host"} if phase == "prefill" and step_s > HOST_BOUND_RATIO * alone_s else {}),
    }
