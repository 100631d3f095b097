"""A plausible dense architecture of any size, by the regularities of the presets.

The ratios of depth and feed-forward to width are those usual among the presets, and the width follows from the
parameters. Width and depth are rounded to what splits evenly, and grow with the size, so that a larger model is never
the cheaper one for an odd shape; the feed-forward takes the rest. The result is an assumption and its status says so.
"""

import math
import re
from collections.abc import Sequence
from statistics import median

from msgspec.structs import replace

from gpucost.errors import UsageError
from gpucost.types import Architecture

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([mbt])(?:illion)?(?:[-_ ]?params?)?", re.IGNORECASE | re.ASCII)
_UNITS = {"m": 1e6, "b": 1e9, "t": 1e12}
_SMALLEST, _LARGEST = 5e6, 2e13  # beyond which the ratios of the presets say nothing
_TIED_BELOW = 4e9  # smaller models share the table of tokens with the output
_STEPS = ((4096, 1024), (2048, 512), (1024, 256), (0, 64))  # of the width, from this width on
_DEPTHS = ((16, 8), (12, 4), (0, 1))  # of the layers, from this many on
_VOCABULARIES = ((1e9, 128256), (1e8, 49152), (0, 32000))  # from this many parameters


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
    # The modern dense presets: gated, RMS norms, all layers alike.
    peers = [
        item
        for item in presets
        if not item.experts and not item.blocks and item.gated and item.norm == "rms" and item.status == "sourced"
    ]
    if not peers:
        raise UsageError("there is no dense preset to derive an architecture from; name a model or a config.json.")
    ratio, slim = median(p.ffn_hidden / p.hidden for p in peers), median(p.hidden / p.layers for p in peers)
    tied = parameters < _TIED_BELOW
    vocab = next(vocabulary for least, vocabulary in _VOCABULARIES if parameters >= least)
    tables = (1 if tied else 2) * vocab + 1

    def width_beside(tables: int) -> float:
        """Return the width of layers of the usual shape that leave so many rows of the width to tables.

        A layer has 2.5 squares of attention (two of queries and output, a half of keys and values) and 3 × ratio of the
        feed-forward, and there are width ÷ slim of them: parameters = tables · w + (2.5 + 3 ratio) ÷ slim · w³.
        """
        layers = (2.5 + 3 * ratio) / slim
        low, high = 0.0, parameters / tables
        for _ in range(60):  # halving: to the last digit of a float
            middle = (low + high) / 2
            left = parameters - tables * middle - layers * middle**3
            low, high = (middle, high) if left > 0 else (low, middle)
        return low

    width = width_beside(tables)
    step = next(step for least, step in _STEPS if width >= least)
    hidden = max(1, round(width / step)) * step
    head_dim = 128 if hidden >= 2048 else 64  # of what is built: two models of one width have the same heads
    layers = _round_depth(width_beside(vocab * 3 // 2) / slim)  # the same with a table and with two: it only grows
    heads = hidden // head_dim
    kv_heads = 8 if heads % 8 == 0 else math.gcd(heads, 4)
    fixed = 2 * hidden * hidden + 2 * hidden * kv_heads * head_dim + 2 * hidden
    wide = 256 if width >= 4096 else 64
    # what is left of a layer's parameters, by its three matrices, in tiles that kernels like
    ffn = max(1, round(((parameters - tables * hidden) / layers - fixed) / (3 * hidden) / wide)) * wide
    architecture = Architecture(
        f"dense-{name.strip().lower()}",
        "dense",
        layers,
        hidden,
        heads,
        kv_heads,
        head_dim,
        ffn,
        True,
        vocab,
        tied,
        max_sequence_tokens=131072,
        status="synthesised",
    )
    billions = _count(architecture) / 1e9
    notes = f"synthesised from the usual shape of {len(peers)} dense presets; counts {billions:.4g} B parameters"
    return replace(architecture, notes=notes)


def _round_depth(layers: float) -> int:
    """Round a number of layers to what divides by the usual stages of a pipeline: 8 from 16 layers on.

    Layers that divide carry the output's product on top of the last stage, others are placed around it: of two sizes,
    one of each kind, the larger could be the cheaper one by up to 8 %.

    >>> [_round_depth(layers) for layers in (0.3, 11.2, 13.0, 17.9, 21.0, 29.0)]
    [1, 11, 12, 16, 24, 32]
    """
    step = next(step for least, step in _DEPTHS if layers >= least)
    return max(1, round(layers / step)) * step


def _count(architecture: Architecture) -> float:
    """Return the parameters of a gated dense architecture with RMS norms, by hand.

    Llama 3 8B: 2·128256·4096 + 32·(2·4096² + 2·4096·1024 + 3·4096·14336 + 2·4096) + 4096 = 8,030,261,248.

    >>> _count(Architecture("", "", 32, 4096, 32, 8, 128, 14336, True, 128256, False))
    8030261248
    """
    h, kv = architecture.hidden, architecture.kv_heads * architecture.head_dim
    layer = 2 * h * architecture.heads * architecture.head_dim + 2 * h * kv + 3 * h * architecture.ffn_hidden + 2 * h
    return architecture.layers * layer + (1 if architecture.tied_embeddings else 2) * architecture.vocab * h + h
