"""Serving steps of a decoder with random weights: decode under CUDA graphs, and prefill, by tensor-parallel degree.

    python -m benchmarks.device.decode [--seconds 120]
    torchrun --nproc-per-node 8 -m benchmarks.device.decode [--seconds 200]

Each rank holds its shard (heads, feed-forward columns, vocabulary rows); two all-reduces per layer and one
all-gather of the logits. Attention reads a dense KV cache of the stated context. `layers_run` says how many layers
were run: all are alike, so that the step of the whole model is its layers × `layer_s` + `rest_s`.
"""

import argparse
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from benchmarks.device.common import CUDA, DEVICE, RANK, WORLD, Table, TimeBox, graph_seconds, guarded, out, seconds

FP8 = torch.float8_e4m3fn


@dataclass(frozen=True)
class Model:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    head_dim: int = 128


MODELS = {
    "llama3.2-1b": Model(16, 2048, 32, 8, 8192, 128256, 64),
    "llama3-8b": Model(32, 4096, 32, 8, 14336, 128256),
    "llama3-70b": Model(80, 8192, 64, 8, 28672, 128256),
    "tiny": Model(2, 64, 8, 8, 128, 256, 16),
}
COLUMNS = [
    "model",
    "phase",
    "tp",
    "weight_precision",
    "mode",
    "batch",
    "context",
    "layers_run",
    "layer_s",
    "rest_s",
    "step_s",
    "tokens_per_s_per_gpu",
]


class Shard:
    """One rank's part of the model; all layers share the shapes but not the weights."""

    def __init__(self, model: Model, tensor: int, layers: int, precision: str, group) -> None:
        self.model, self.tensor, self.precision, self.group = model, tensor, precision, group
        d, hd = model.hidden, model.head_dim
        self.q_heads, self.kv_heads = model.heads // tensor, max(1, model.kv_heads // tensor)
        qkv, ffn = (self.q_heads + 2 * self.kv_heads) * hd, model.ffn // tensor
        shapes = [(qkv, d), (d, self.q_heads * hd), (2 * ffn, d), (d, ffn)]
        self.layers = [[self.weight(*shape) for shape in shapes] for _ in range(layers)]
        self.norms = torch.ones(d, device=DEVICE, dtype=torch.bfloat16)
        self.head = torch.randn(model.vocab // tensor, d, device=DEVICE, dtype=torch.bfloat16) * 0.02
        self.one = torch.ones((), device=DEVICE)

    def weight(self, outputs: int, inputs: int) -> Tensor:
        value = torch.randn(outputs, inputs, device=DEVICE, dtype=torch.bfloat16) * 0.02
        return value.to(FP8) if self.precision == "fp8" else value

    def linear(self, x: Tensor, weight: Tensor) -> Tensor:
        if self.precision == "fp8":
            return torch._scaled_mm(x.to(FP8), weight.t(), scale_a=self.one, scale_b=self.one, out_dtype=torch.bfloat16)
        return F.linear(x, weight)

    def reduce(self, x: Tensor) -> Tensor:
        if self.tensor > 1:
            dist.all_reduce(x, group=self.group)
        return x

    def norm(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.norms, 1e-5)

    def layer(self, x: Tensor, weights: list[Tensor], attend) -> Tensor:
        qkv, o, gate_up, down = weights
        x = x + self.reduce(self.linear(attend(self.linear(self.norm(x), qkv)), o))
        gate, up = self.linear(self.norm(x), gate_up).chunk(2, -1)
        return x + self.reduce(self.linear(F.silu(gate) * up, down))

    def logits(self, x: Tensor) -> Tensor:
        part = F.linear(self.norm(x), self.head)
        if self.tensor > 1:
            whole = torch.empty(self.tensor * part.shape[0], part.shape[1], device=DEVICE, dtype=part.dtype)
            dist.all_gather_into_tensor(whole, part, group=self.group)
            return whole
        return part


def decode_step(shard: Shard, batch: int, context: int):
    hd, kv, group = shard.model.head_dim, shard.kv_heads, shard.q_heads // shard.kv_heads

    def cache_of() -> Tensor:
        whole = torch.randn(batch, context, kv, hd, device=DEVICE, dtype=torch.bfloat16)
        return whole.transpose(1, 2)

    caches = [(cache_of(), cache_of()) for _ in shard.layers]
    x = torch.randn(
        max(batch, 16) if shard.precision == "fp8" else batch, shard.model.hidden, device=DEVICE, dtype=torch.bfloat16
    )

    def attention(cache):
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
        for weights, cache in zip(shard.layers, caches, strict=True):
            y = shard.layer(y, weights, attention(cache))
        return y

    return layers, lambda: shard.logits(x[:batch])


def prefill_step(shard: Shard, batch: int, context: int):
    hd, kv = shard.model.head_dim, shard.kv_heads
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
        for weights in shard.layers:
            y = shard.layer(y, weights, attend)
        return y

    return layers, lambda: shard.logits(x.view(batch, context, -1)[:, -1])


def measure(table: Table, name: str, shard: Shard, phase: str, batch: int, context: int, eager: bool) -> None:
    model, run = MODELS[name], len(shard.layers)
    layers, logits = (decode_step if phase == "decode" else prefill_step)(shard, batch, context)
    with torch.no_grad():
        for mode in ("graph", "eager") if eager else ("graph",):
            if phase == "prefill" or mode == "eager":
                time_s, rest_s, mode = seconds(layers, warmup=2, repeat=5), seconds(logits, warmup=2, repeat=5), "eager"
            else:
                time_s, rest_s = graph_seconds(layers, calls=2), graph_seconds(logits, calls=4)
            step_s = time_s / run * model.layers + rest_s
            tokens = batch if phase == "decode" else batch * context
            table.add(
                model=name,
                phase=phase,
                tp=shard.tensor,
                weight_precision=shard.precision,
                mode=mode,
                batch=batch,
                context=context,
                layers_run=run,
                layer_s=time_s / run,
                rest_s=rest_s,
                step_s=step_s,
                tokens_per_s_per_gpu=tokens / step_s / shard.tensor,
            )


def grid(tiny: bool) -> list[tuple[str, int, int, bool]]:
    if tiny:
        return [("decode", 2, 32, True), ("prefill", 1, 32, False)]
    decode = [
        ("decode", b, c, b in (1, 64) and c == 1024)
        for b, c in (
            (1, 1024),
            (8, 1024),
            (32, 1024),
            (64, 1024),
            (128, 1024),
            (256, 1024),
            (1, 16384),
            (8, 8192),
            (32, 4096),
            (64, 4096),
            (16, 16384),
        )
    ]
    return [
        *decode,
        ("prefill", 1, 512, False),
        ("prefill", 1, 2048, False),
        ("prefill", 1, 8192, False),
        ("prefill", 4, 4096, False),
    ]


def plan(tiny: bool) -> list[tuple[str, int, str, int]]:
    """(model, tensor-parallel degree, weights, layers to run) in order of importance."""
    if tiny:
        return [("tiny", WORLD, "bf16", 2)]
    if WORLD == 1:
        return [
            ("llama3-8b", 1, "bf16", 16),
            ("llama3.2-1b", 1, "bf16", 16),
            ("llama3-8b", 1, "fp8", 16),
            ("llama3-70b", 1, "fp8", 12),
        ]
    return [
        ("llama3-70b", 8, "bf16", 20),
        ("llama3-8b", 8, "bf16", 16),
        ("llama3-70b", 4, "bf16", 20),
        ("llama3-8b", 2, "bf16", 16),
        ("llama3-70b", 2, "bf16", 20),
        ("llama3-8b", 4, "bf16", 16),
        ("llama3-70b", 8, "fp8", 20),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    if WORLD > 1:
        if CUDA:
            torch.cuda.set_device(DEVICE)
        dist.init_process_group("nccl" if CUDA else "gloo", device_id=DEVICE if CUDA else None)
    box, table = TimeBox(options.seconds), Table(out(f"decode-{WORLD}.csv"), COLUMNS)
    groups = {t: dist.new_group(list(range(t))) for t in (8, 4, 2) if t <= WORLD}
    for name, tensor, precision, layers in plan(options.tiny):
        shard = Shard(MODELS[name], tensor, layers, precision, groups.get(tensor)) if tensor > RANK else None
        for phase, batch, context, eager in grid(options.tiny):
            if box.over():
                break
            if shard is not None:
                guarded(
                    lambda s=shard, n=name, c=(phase, batch, context, eager): measure(table, n, s, *c),
                    f"{name} {phase} {batch} {context}",
                )
        del shard
    if WORLD > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
