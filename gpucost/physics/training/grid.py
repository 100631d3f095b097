"""The grid of degrees that a search lays over a model, which layouts can exist, and why one cannot."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from gpucost.physics.columns import PRECISIONS, ColumnStruct, Flags, Floats, Integers, LayoutColumns
from gpucost.physics.hardware import HardwareColumns, peak_tflops
from gpucost.physics.transformer import Shape
from gpucost.types import Architecture

# --- Can a layout exist at all: a reason code per case, and the sentence for a single one.

# Reason codes of explicit layouts: what each means for a row of an array.
REASONS = (
    "ok",
    "a number is missing, not finite or not positive",
    "tensor x pipeline x context x data is not the number of accelerators",
    "the tensor degree does not divide the heads",
    "more pipeline x virtual stages than layers",
    "data x micro-batch is more than the global batch",
    "the expert degree does not divide the experts, or tensor x context x data",
    "the context degree leaves less than one token",
    "the chip lacks the precision",
    "more accelerators or tokens in a sequence than any question may name",
    "the chip is made for inference alone",
)
OK = 0
FOR_INFERENCE = "is made for inference alone: its software does not train. `gpucost gpus` lists others."
_MOST_GPUS, _MOST_TOKENS = 1_000_000, 16_777_216  # of a question about one layout


def reason_codes(shape: Shape, hardware: HardwareColumns, layout: LayoutColumns, sequence_tokens: Floats) -> Integers:
    """Return the first reason that forbids each layout, as a code into REASONS; 0 where it can exist.

    Layers need not divide by the stages, nor the batch by what is taken at once: the slowest stage and a last
    micro-batch that is not full count whole.
    """
    degrees = (
        layout.gpus,
        layout.tensor,
        layout.pipeline,
        layout.context,
        layout.expert,
        layout.data,
        layout.micro_batch,
        layout.global_batch,
        layout.virtual_stages,
        sequence_tokens,
        shape.layers,
        shape.hidden,
        shape.heads,
    )
    # The tests that follow divide by these: what is not sound has the first reason, whatever they come to.
    sound = np.ones(len(layout), dtype=np.bool_)
    for value in degrees:
        sound = sound & np.isfinite(value) & (value > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        product = layout.tensor * layout.pipeline * layout.context * layout.data
        few = (layout.gpus > 0) & (layout.gpus < layout.tensor * layout.pipeline * layout.context)  # for one replica
        ranks = layout.tensor * layout.context * layout.data
        spread = layout.expert > 1
        tests = (  # in the order of REASONS, from the second on
            ~sound & ~few,
            few | (product != layout.gpus),
            shape.heads % layout.tensor != 0,
            layout.pipeline * layout.virtual_stages > shape.layers,
            layout.data * layout.micro_batch > layout.global_batch,
            spread & ((shape.experts % layout.expert != 0) | (shape.experts == 0) | (ranks % layout.expert != 0)),
            sequence_tokens < layout.context,
            np.isnan(peak_tflops(hardware, layout.precision)),
            (layout.gpus > _MOST_GPUS) | (sequence_tokens > _MOST_TOKENS),
            ~np.broadcast_to(hardware.trains, sound.shape),
        )
    return np.select(tests, range(1, len(tests) + 1), default=OK).astype(np.int64)


def sentence(code: int, shape: Shape, layout: LayoutColumns, chip: str, row: int = 0) -> str:
    """Say what forbids one layout, with its numbers and what to try."""
    if code == 1:
        return "every degree, batch and size must be a positive, finite number."

    def v(name: str) -> int:
        return int(getattr(layout, name)[row])

    # what forbids it is said by its code; only what that sentence names need be sound
    heads, layers, experts = int(shape.heads[0]), int(shape.layers[0]), int(shape.experts[0])
    of_heads = ", ".join(str(degree) for degree in range(1, min(heads, 64) + 1) if heads % degree == 0)
    parallel = v("tensor") * v("pipeline") * v("context")
    if v("gpus") < parallel:
        return (
            f"tensor {v('tensor')} × pipeline {v('pipeline')} × context {v('context')} need {parallel} GPUs, --gpus is"
            f" {v('gpus')}. Use a multiple of {parallel} GPUs, or smaller degrees."
        )
    return {
        2: (
            f"tensor {v('tensor')} × pipeline {v('pipeline')} × context {v('context')} × data {v('data')} is not the "
            f"{v('gpus')} GPUs given. Leave --data out, or use a multiple of {parallel} GPUs."
        ),
        3: f"tensor {v('tensor')} does not divide the {heads} heads. Try one of {of_heads}.",
        4: (
            f"pipeline {v('pipeline')} × {v('virtual_stages')} virtual stages exceeds the {layers} layers. "
            "Use fewer stages."
        ),
        5: (
            f"data {v('data')} × micro-batch {v('micro_batch')} is {v('data') * v('micro_batch')} sequences at once, "
            f"more than the global batch of {v('global_batch')}. Use smaller degrees or a larger batch."
        ),
        6: (
            f"expert {v('expert')} must divide the {experts} experts and tensor × context × data = "
            f"{v('tensor') * v('context') * v('data')}."
            if experts
            else f"expert {v('expert')}: the model is not a mixture of experts. Use 1."
        ),
        7: f"context {v('context')} leaves less than one token to a GPU.",
        8: f"{chip} has no known {PRECISIONS[v('precision')]} peak. `gpucost gpus` lists what it has.",
        9: f"at most {_MOST_GPUS:,} accelerators and {_MOST_TOKENS:,} tokens in a sequence can be asked about.",
        10: f"{chip} {FOR_INFERENCE}",
    }[code]


# --- The grid of degrees that a search lays over a model: what each degree may be, and which combinations are legal.

CONTEXT_TOKENS = 4096  # fewer to a rank of a context group than any published recipe leaves
_LONG_RANK_TOKENS = 131_072  # so long sequences that eight ranks leave more are split over up to 64
USUAL_EXPERT = 8  # fewest expert ranks in common use
_SMALL_HIDDEN = 2048  # width up to which micro-batches beyond a few sequences are usual


class Grid(ColumnStruct, frozen=True):
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


def _powers(limit: float) -> list[int]:
    """Return the powers of two up to a limit, at least 1."""
    return [2**k for k in range(int(np.log2(max(limit, 1))) + 1)]


def make_grid(
    architecture: Architecture,
    sequence_tokens: float,
    global_batch: int,
    *,
    wide: bool,
    fixed: Mapping[str, Sequence[int]] | None = None,
) -> Grid:
    """Return the combinations of degrees that an architecture allows; `fixed` replaces the values of some.

    Tensor degrees divide the heads; stages are at most the layers; expert degrees divide the experts; context
    degrees leave 4,096 tokens to a rank. The wide grid takes every value, the narrow one those in common use: small
    models take larger micro-batches, sequences of millions of tokens larger context groups.
    """
    chosen = tuple((name, tuple(values)) for name, values in (fixed or {}).items())
    return _grid(architecture, sequence_tokens, global_batch, wide, chosen)


@lru_cache(maxsize=32)  # each round of a search lays the same one
def _grid(
    a: Architecture, sequence_tokens: float, global_batch: int, wide: bool, fixed: tuple[tuple[str, Any], ...]
) -> Grid:
    # What each degree may be.
    stages = {*_powers(64 if wide else 16), *(p for p in range(1, 65) if wide and a.layers % p == 0)}
    small = a.hidden <= _SMALL_HIDDEN
    light = small and not a.experts  # experts make narrow layers heavy: 30B at a width of 2,048
    most_context = 64 if wide else min(max(8, sequence_tokens / _LONG_RANK_TOKENS), 64)
    axis: dict[str, Any] = {
        "tensor": [t for t in _powers(64 if wide else 2 if light else 8) if a.heads % t == 0],
        "pipeline": [p for p in sorted(stages) if p <= a.layers],
        "context": [c for c in _powers(most_context) if c == 1 or sequence_tokens / c >= CONTEXT_TOKENS],
        "expert": [e for e in _powers(256 if wide else 64) if e == 1 or (a.experts and a.experts % e == 0)],
        "micro_batch": [b for b in _powers(64 if small else 16 if wide else 4) if b <= global_batch],
        "sharding": [1, 3],
    } | dict(fixed)

    # All combinations of them, each once without interleaved stages and once with, less those that cannot be.
    order = [axis[name] for name in ("tensor", "pipeline", "context", "expert", "micro_batch")]
    axes = np.meshgrid(*order, [0, 1], axis["sharding"], indexing="ij")
    t, p, c, e, b, interleaved, sharding = (column.ravel() for column in axes)
    virtual = np.where(interleaved == 1, np.clip(a.layers // p, 1, 4), 1)
    # weights that every micro-batch gathers anew (FSDP) are not combined with a pipeline
    legal = ((interleaved == 0) | ((p > 1) & (virtual > 1))) & ((sharding < 3) | (p == 1))
    if not wide:  # interleaving costs little and shortens the bubble: where it is possible, nothing else is tried
        legal &= (interleaved == 1) | (p == 1) | (a.layers // p < 2)
    names = ("tensor", "pipeline", "context", "expert", "micro_batch", "virtual_stages")
    columns: dict[str, Any] = {n: x.astype(np.float64) for n, x in zip(names, (t, p, c, e, b, virtual), strict=True)}
    few = (e < USUAL_EXPERT) & (not wide and a.experts >= USUAL_EXPERT and "expert" not in dict(fixed))
    return Grid(**columns, sharding=sharding.astype(np.int64), few_expert=few).take(legal)
