"""A small decoder in the style of Llama: grouped-query attention, RMS norm, rotary positions, gated feed-forward."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    head_dim: int = 0

    @property
    def width(self) -> int:
        return self.head_dim or self.hidden // self.heads


SHAPES = {
    "tiny": Shape(2, 64, 4, 2, 128, 256),
    "gpt2-124m": Shape(12, 768, 12, 12, 2048, 50304),
    "0.5b": Shape(24, 1024, 16, 8, 4096, 32000),
    "llama3.2-1b": Shape(16, 2048, 32, 8, 8192, 128256),
    "tinyllama-1.1b": Shape(22, 2048, 32, 4, 5632, 32000),
    "qwen2.5-1.5b": Shape(28, 1536, 12, 2, 8960, 151936),
    "llama3.2-3b": Shape(28, 3072, 24, 8, 8192, 128256),
    "llama2-7b": Shape(32, 4096, 32, 32, 11008, 32000),
    "llama3-8b": Shape(32, 4096, 32, 8, 14336, 128256),
    "llama2-13b": Shape(40, 5120, 40, 40, 13824, 32000),
    "llama3-70b": Shape(80, 8192, 64, 8, 28672, 128256),
    "34b": Shape(48, 8192, 64, 8, 22016, 32000),
}


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Block(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        d, hd = shape.hidden, shape.width
        self.head_dim, self.grouped = hd, shape.heads != shape.kv_heads
        self.norm1, self.norm2 = nn.RMSNorm(d, 1e-5), nn.RMSNorm(d, 1e-5)
        self.q = nn.Linear(d, shape.heads * hd, bias=False)
        self.k = nn.Linear(d, shape.kv_heads * hd, bias=False)
        self.v = nn.Linear(d, shape.kv_heads * hd, bias=False)
        self.o = nn.Linear(shape.heads * hd, d, bias=False)
        self.gate, self.up = nn.Linear(d, shape.ffn, bias=False), nn.Linear(d, shape.ffn, bias=False)
        self.down = nn.Linear(shape.ffn, d, bias=False)

    def attend(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        b, s, _ = x.shape
        q, k, v = (f(x).view(b, s, -1, self.head_dim).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.grouped)
        return self.o(out.transpose(1, 2).reshape(b, s, -1))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attend(self.norm1(x), cos, sin)
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    """Embedding, blocks, norm, head; `recompute` is none, full or selective (every second block)."""

    def __init__(self, shape: Shape, recompute: str, loss_chunk: int, chunk_recompute: bool) -> None:
        super().__init__()
        self.shape, self.recompute, self.loss_chunk, self.chunk_recompute = (
            shape,
            recompute,
            loss_chunk,
            chunk_recompute,
        )
        self.embed = nn.Embedding(shape.vocab, shape.hidden)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, 1e-5)
        self.head = nn.Linear(shape.hidden, shape.vocab, bias=False)

    def positions(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        width = self.shape.width
        frequency = 5e5 ** (-torch.arange(0, width, 2, device=tokens.device) / width)
        angle = torch.arange(tokens.shape[1], device=tokens.device)[:, None] * frequency
        angle = torch.cat((angle, angle), -1)
        return angle.cos().bfloat16(), angle.sin().bfloat16()

    def loss_of(self, h: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(self.head(h).float(), labels, reduction="sum")

    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
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
    return sum(p.numel() for p in model.parameters())
