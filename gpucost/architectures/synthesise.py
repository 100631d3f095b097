"""A plausible dense architecture of any size, by the regularities of the presets.

Width and the ratio of the feed-forward to it follow the presets' own trend with size; depth and the feed-forward are
then chosen so that the parameters come out as asked. The result is an assumption and its status says so.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from gpucost.errors import UsageError
from gpucost.types import Architecture

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([mbt])(?:illion)?(?:[-_ ]?params?)?", re.IGNORECASE | re.ASCII)
_UNITS = {"m": 1e6, "b": 1e9, "t": 1e12}
_SMALLEST, _LARGEST = 5e6, 2e13
_FFN_STEP = 256
_NEIGHBOURS = 12  # presets nearest in size that the trend is taken from


def size_of(name: str) -> float | None:
    """Read a bare size, or return None for any other name.

    >>> size_of("11b"), size_of("1.5T"), size_of("llama-3-8b")
    (11000000000.0, 1500000000000.0, None)
    """
    match = _SIZE.fullmatch(name.strip())
    return float(match[1]) * _UNITS[match[2].lower()] if match else None


def synthesise(name: str, parameters: float, presets: Sequence[Architecture]) -> Architecture:
    """Return a dense, gated architecture with grouped-query attention of about `parameters` parameters."""
    if not _SMALLEST <= parameters <= _LARGEST:
        raise UsageError(f"--model {name}: a size between 5m and 20t can be synthesised.")
    peers = _peers(parameters, presets)
    ratio = median(peer.ffn_hidden / peer.hidden for peer in peers)
    width = _trend_width(parameters, peers)
    made = min(_candidates(parameters, width, ratio), key=lambda item: _penalty(item, parameters, width, ratio))
    notes = f"synthesised from the trend of {len(peers)} dense presets; counts {count(made) / 1e9:.4g} B parameters"
    return replace(made, name=f"dense-{name.strip().lower()}", notes=notes)


def count(made: Architecture) -> float:
    """Return the parameters of a gated dense architecture with RMS norms, by hand.

    Llama 3 8B: 2·128256·4096 + 32·(2·4096² + 2·4096·1024 + 3·4096·14336 + 2·4096) + 4096 = 8,030,261,248.

    >>> count(Architecture("", "", 32, 4096, 32, 8, 128, 14336, True, 128256, False))
    8030261248
    """
    h, kv = made.hidden, made.kv_heads * made.head_dim
    layer = 2 * h * made.heads * made.head_dim + 2 * h * kv + 3 * h * made.ffn_hidden + 2 * h
    return made.layers * layer + (1 if made.tied_embeddings else 2) * made.vocab * h + h


def _peers(parameters: float, presets: Sequence[Architecture]) -> list[Architecture]:
    """Return the modern dense presets nearest in size: gated, RMS norm."""
    dense = [
        item
        for item in presets
        if not item.experts and not item.blocks and item.gated and item.norm == "rms" and item.status == "sourced"
    ]
    if not dense:
        raise UsageError("no dense presets to take a plausible architecture from; name a model or a config.json.")
    return sorted(dense, key=lambda item: abs(math.log(count(item) / parameters)))[:_NEIGHBOURS]


def _trend_width(parameters: float, peers: Sequence[Architecture]) -> float:
    """Return the usual width: hidden ∝ N^(1/3), since depth grows with width at a slowly changing ratio."""
    return math.exp(
        median(math.log(item.hidden) + (math.log(parameters) - math.log(count(item))) / 3 for item in peers)
    )


def _candidates(parameters: float, width: float, ratio: float) -> Iterator[Architecture]:
    """Yield architectures near the trend: widths in whole heads, depths around the trend, the feed-forward to fit."""
    tied = parameters < 4e9
    vocab = 128256 if parameters >= 1e9 else 49152 if parameters >= 1e8 else 32000
    head_dim = 128 if width >= 2048 else 64
    step = head_dim * (8 if width >= 3072 else 4 if width >= 1024 else 1)
    for hidden in range(max(step, int(0.75 * width) // step * step), int(1.3 * width) + step, step):
        embeddings = (1 if tied else 2) * vocab * hidden + hidden
        heads = hidden // head_dim
        kv_heads = 8 if heads % 8 == 0 else math.gcd(heads, 4)
        fixed = 2 * hidden * hidden + 2 * hidden * kv_heads * head_dim + 2 * hidden
        usual = (parameters - embeddings) / (fixed + 3 * ratio * hidden * hidden)
        for layers in range(max(2, round(0.7 * usual)), max(3, round(1.4 * usual)) + 1):
            ffn = round(((parameters - embeddings) / layers - fixed) / (3 * hidden) / _FFN_STEP) * _FFN_STEP
            if ffn >= _FFN_STEP:
                yield Architecture(
                    "", "dense", layers, hidden, heads, kv_heads, head_dim, ffn, True, vocab, tied,
                    max_sequence_tokens=131072, status="synthesised",
                )  # fmt: skip


def _penalty(made: Architecture, parameters: float, width: float, ratio: float) -> float:
    """Weigh an architecture: a miss in parameters most, then a feed-forward, a width or an odd depth off the trend."""
    miss = abs(count(made) / parameters - 1)
    off_ratio = abs(math.log(made.ffn_hidden / made.hidden / ratio))
    off_width = abs(math.log(made.hidden / width))
    return 50 * max(0.0, miss - 0.002) + 2 * off_ratio + off_width + (0.05 if made.layers % 4 else 0)
