"""A decoder in the style of Llama: grouped-query attention, RMS norm, rotary positions, feed-forward or experts."""

from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gpucost.bench.gpu.clock import FP8
from gpucost.bench.shapes import ModelShape


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn the halves of each head by its position."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Float8Product(torch.autograd.Function):
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
        scale = value.abs().amax().float().clamp(min=1e-12) / torch.finfo(FP8).max
        parts.append(((value * scale.reciprocal()).to(FP8).contiguous(), scale))
    (a, scale_a), (b, scale_b) = parts
    return torch._scaled_mm(a, b.t(), scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16, use_fast_accum=True)


class Linear8(nn.Linear):
    """A linear layer whose products run in fp8."""

    def forward(self, x: Tensor) -> Tensor:
        """Multiply in fp8."""
        flat = x.reshape(-1, x.shape[-1]).bfloat16()
        return Float8Product.apply(flat, self.weight).view(*x.shape[:-1], -1)


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
        bounds = [0, *ends.tolist()]
        parts = [x[a:b] @ weights[i] for i, (a, b) in enumerate(pairwise(bounds))]
        return torch.cat(parts)


class Block(nn.Module):
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
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.grouped)
        return self.o(out.transpose(1, 2).reshape(b, s, -1))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Add attention, then the feed-forward."""
        x = x + self.attend(self.norm1(x), cos, sin)
        h = self.norm2(x)
        if hasattr(self, "experts"):
            return x + self.experts(h)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    """Embedding, blocks, norm, head; `recompute` is none, full or selective (every second block)."""

    def __init__(
        self, shape: ModelShape, recompute: str, loss_chunk: int, chunk_recompute: bool, fp8: bool = False
    ) -> None:
        super().__init__()
        self.shape, self.recompute, self.chunk_recompute = shape, recompute, chunk_recompute
        self.loss_chunk = loss_chunk
        self.embed = nn.Embedding(shape.vocab, shape.hidden)
        self.blocks = nn.ModuleList(Block(shape, Linear8 if fp8 else nn.Linear) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, 1e-5)
        self.head = nn.Linear(shape.hidden, shape.vocab, bias=False)

    def positions(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines of the rotary positions."""
        width = self.shape.width
        frequency = 5e5 ** (-torch.arange(0, width, 2, device=tokens.device) / width)
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
            x = x.bfloat16()
        cos, sin = self.positions(tokens)
        for index, block in enumerate(self.blocks):
            if self.recompute == "full" or (self.recompute == "selective" and index % 2 == 0):
                x = checkpoint(block, x, cos, sin, use_reentrant=False)
            else:
                x = block(x, cos, sin)
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
