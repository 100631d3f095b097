"""The decoders that a bench runs, by their dimensions."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelShape:
    """Dimensions of a decoder."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    head_dim: int = 0
    experts: int = 0  # 0 is a dense feed-forward; `ffn` is then the width of one expert
    experts_per_token: int = 0

    @property
    def width(self) -> int:
        """Width of one head."""
        return self.head_dim or self.hidden // self.heads


SHAPES = {
    "tiny": ModelShape(2, 64, 4, 2, 128, 256),
    "gpt2-124m": ModelShape(12, 768, 12, 12, 2048, 50304),
    "0.5b": ModelShape(24, 1024, 16, 8, 4096, 32000),
    "llama3.2-1b": ModelShape(16, 2048, 32, 8, 8192, 128256),
    "tinyllama-1.1b": ModelShape(22, 2048, 32, 4, 5632, 32000),
    "qwen2.5-1.5b": ModelShape(28, 1536, 12, 2, 8960, 151936),
    "llama3.2-3b": ModelShape(28, 3072, 24, 8, 8192, 128256),
    "llama2-7b": ModelShape(32, 4096, 32, 32, 11008, 32000),
    "llama3-8b": ModelShape(32, 4096, 32, 8, 14336, 128256),
    "llama2-13b": ModelShape(40, 5120, 40, 40, 13824, 32000),
    "llama3-70b": ModelShape(80, 8192, 64, 8, 28672, 128256),
    "34b": ModelShape(48, 8192, 64, 8, 22016, 32000),
    "moe-1b-7b": ModelShape(16, 2048, 16, 16, 1024, 50304, experts=64, experts_per_token=8),
    "moe-3b-a0.6b": ModelShape(12, 1536, 12, 4, 768, 50304, experts=64, experts_per_token=8),
    "moe-8x1b": ModelShape(16, 2048, 32, 8, 4096, 32000, experts=8, experts_per_token=2),
    "moe-4l-128x8": ModelShape(4, 2048, 32, 4, 768, 151936, head_dim=128, experts=128, experts_per_token=8),
    "tiny-moe": ModelShape(2, 64, 4, 2, 64, 256, experts=4, experts_per_token=2),
}
