"""The operations of a roofline by name: their work, and the usual ones of a transformer beside each other.

Counted per value: a root-mean-square norm 4 FLOP, GELU by its tanh formula 8, a softmax 5; each reads and writes every
value once. Naive attention writes and reads scores and probabilities, a fused kernel keeps them on the chip (Dao et
al. 2022, arXiv:2205.14135, theorem 2).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gpucost.errors import UsageError
from gpucost.physics import roofline
from gpucost.units import parse_bytes, parse_count

NORM_FLOP, GELU_FLOP, SOFTMAX_FLOP = 4, 8, 5  # per value
NAMES = ("matmul", "attention", "norm", "gelu", "copy", "all_reduce")
# a layer of an 8B model over one sequence of 8,192 tokens; a decode step is one row
USUAL: Mapping[str, Mapping[str, str | bool]] = {
    "projection, 8,192 tokens": {"matmul": "8192x4096x4096"},
    "projection, 64 tokens": {"matmul": "64x4096x4096"},
    "projection, one token": {"matmul": "1x4096x4096"},
    "attention, fused": {"attention": "8192x32x128"},
    "attention, naive": {"attention": "8192x32x128", "flash": False},
    "norm": {"norm": "8192x4096"},
    "GELU": {"gelu": "8192x14336"},
    "residual, copy": {"copy": "64MiB"},
}


class Named(NamedTuple):
    """An operation: what it is called, its kind, and its work."""

    label: str
    kind: str  # one of NAMES
    work: roofline.Operation


def sizes(text: str, names: Sequence[str], what: str) -> list[float]:
    """Read sizes such as 8192x8192x8192.

    >>> sizes("8kx4096x1M", ("m", "n", "k"), "--matmul")
    [8000.0, 4096.0, 1000000.0]
    """
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) != len(names):
        raise UsageError(
            f"{what}: {text!r} has {len(parts)} sizes. Write {'x'.join(names)}, "
            f"such as {'x'.join(['8192'] * len(names))}."
        )
    return [parse_count(part, what) for part in parts]


def operation(wanted: Mapping[str, object], gpus: float, value_bytes: float) -> Named:
    """Return the operation asked for: its name and its work."""
    kind = next((name for name in NAMES if wanted.get(name)), None)
    if kind is None:
        raise UsageError("name an operation (--matmul, --attention, --norm …) or a whole step (--model).")
    text, flag = str(wanted[kind]), f"--{kind.replace('_', '-')}"
    if kind == "matmul":
        m, n, k = (np.full(1, size) for size in sizes(text, ("m", "n", "k"), flag))
        return Named(f"product {text}", kind, roofline.product(m, n, k, np.full(1, value_bytes)))
    if kind == "attention":
        tokens, heads, dim = sizes(text, ("tokens", "heads", "dimension"), flag)
        fused = wanted.get("flash") is not False
        label = f"causal attention {text}, {'fused' if fused else 'naive'}"
        return Named(label, kind, attention(tokens, heads, dim, value_bytes, fused=fused))
    if kind in ("norm", "gelu"):
        tokens, width = sizes(text, ("tokens", "width"), flag)
        flop = {"norm": NORM_FLOP, "gelu": GELU_FLOP}[kind] * tokens * width
        label = f"{'norm' if kind == 'norm' else 'GELU'} {text}"
        return Named(label, kind, work(flop, 2 * tokens * width * value_bytes))
    size = parse_bytes(text, flag)
    if kind == "copy":
        return Named(f"element-wise pass over {text}", kind, work(0.0, 2 * size))
    moved = 2 * (gpus - 1) / gpus * size
    return Named(f"all-reduce of {text} over {gpus:.0f} GPUs", kind, work(0.0, 2 * moved, moved))


def work(flop: float, memory_bytes: float, link_bytes: float = 0.0) -> roofline.Operation:
    """Return the work of one operation."""
    return roofline.Operation(np.full(1, flop), np.full(1, memory_bytes), np.full(1, link_bytes))


def attention(tokens: float, heads: float, dim: float, value_bytes: float, *, fused: bool) -> roofline.Operation:
    """Return the work of causal attention: two products over half of the scores, and a softmax where it is naive.

    Naive kernels write and read the scores and the probabilities in full: 4·t² values to a head, beside the 4·t·d of
    queries, keys, values and output. At d = 128 that is 32 FLOP per byte, whatever the length.

    >>> naive, fused = (attention(8192, 1, 128, 2, fused=fused) for fused in (False, True))
    >>> round(float((naive.flop / naive.memory_bytes)[0])), round(float((fused.flop / fused.memory_bytes)[0]))
    (32, 2048)
    """
    products = 4 * tokens**2 / 2 * heads * dim
    moved = 4 * tokens * heads * dim
    if fused:
        return work(products, moved * value_bytes)
    scores = tokens**2 * heads
    return work(products + SOFTMAX_FLOP * scores / 2, (moved + 4 * scores) * value_bytes)
