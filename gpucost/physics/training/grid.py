"""The grid of degrees that a search lays over a model: what each degree may be, and which combinations are legal."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from gpucost.physics.columns import Columns, Flags, Floats, Integers
from gpucost.types import Architecture

CONTEXT_TOKENS = 4096  # fewer to a rank of a context group than any published recipe leaves
LONG_RANK_TOKENS = 131_072  # so long sequences that eight ranks leave more are split over up to 64
USUAL_EXPERT = 8  # fewest expert ranks in common use
SMALL_HIDDEN = 2048  # width up to which micro-batches beyond a few sequences are usual


class Grid(Columns, frozen=True):
    """Combinations of degrees, without data parallelism."""

    tensor: Floats
    pipeline: Floats
    context: Floats
    expert: Floats
    micro_batch: Floats
    virtual_stages: Floats
    sharding: Integers
    few_expert: Flags  # fewer expert ranks than usual: only on as many accelerators as these do not divide

    @property
    def model_parallel(self) -> Floats:
        """Accelerators that hold one copy of the model."""
        return self.tensor * self.pipeline * self.context


def powers(limit: float) -> list[int]:
    """Return the powers of two up to a limit, at least 1."""
    return [2**k for k in range(int(np.log2(max(limit, 1))) + 1)]


def axis_values(architecture: Architecture, sequence_tokens: float, global_batch: int, *, wide: bool) -> dict[str, Any]:
    """Return the values that each degree may take.

    Tensor degrees divide the heads; stages are at most the layers; expert degrees divide the experts; context
    degrees leave 4,096 tokens to a rank. The wide grid takes every value, the narrow one those in common use: small
    models take larger micro-batches, sequences of millions of tokens larger context groups.
    """
    a = architecture
    divisors = [p for p in range(1, 65) if a.layers % p == 0]
    stages = sorted({*powers(64 if wide else 16), *(divisors if wide else [])})
    expert = [e for e in powers(256 if wide else 64) if e == 1 or (a.experts and a.experts % e == 0)]
    small = a.hidden <= SMALL_HIDDEN
    most_context = 64 if wide else min(max(8, sequence_tokens / LONG_RANK_TOKENS), 64)
    return {
        "tensor": [t for t in powers(64 if wide else 2 if small else 8) if a.heads % t == 0],
        "pipeline": [p for p in stages if p <= a.layers],
        "context": [c for c in powers(most_context) if c == 1 or sequence_tokens / c >= CONTEXT_TOKENS],
        "expert": expert,
        "micro_batch": [b for b in powers(64 if small else 16 if wide else 4) if b <= global_batch],
        "sharding": [1, 3],
    }


def make_grid(
    architecture: Architecture,
    sequence_tokens: float,
    global_batch: int,
    *,
    wide: bool,
    fixed: Mapping[str, Sequence[int]] | None = None,
) -> Grid:
    """Return the combinations of degrees that an architecture allows; `fixed` replaces the values of some."""
    chosen = tuple((name, tuple(values)) for name, values in (fixed or {}).items())
    return _grid(architecture, sequence_tokens, global_batch, wide, chosen)


@lru_cache(maxsize=32)  # each round of a search lays the same one
def _grid(
    a: Architecture, sequence_tokens: float, global_batch: int, wide: bool, fixed: tuple[tuple[str, Any], ...]
) -> Grid:
    axis = axis_values(a, sequence_tokens, global_batch, wide=wide) | dict(fixed)
    order = [axis[name] for name in ("tensor", "pipeline", "context", "expert", "micro_batch")]
    axes = np.meshgrid(*order, [0, 1], axis["sharding"], indexing="ij")
    t, p, c, e, b, interleaved, sharding = (axis.ravel() for axis in axes)
    virtual = np.where(interleaved == 1, np.clip(a.layers // p, 1, 4), 1)
    legal = ((interleaved == 0) | ((p > 1) & (virtual > 1))) & ((sharding < 3) | (p == 1))
    if not wide:  # interleaving costs little and shortens the bubble: where it is possible, nothing else is tried
        legal &= (interleaved == 1) | (p == 1) | (a.layers // p < 2)
    names = ("tensor", "pipeline", "context", "expert", "micro_batch", "virtual_stages")
    columns: dict[str, Any] = {n: x.astype(np.float64) for n, x in zip(names, (t, p, c, e, b, virtual), strict=True)}
    few = (e < USUAL_EXPERT) & (not wide and a.experts >= USUAL_EXPERT and "expert" not in dict(fixed))
    return Grid(**columns, sharding=sharding.astype(np.int64), few_expert=few).take(legal)
