"""Can a layout exist at all: a reason code per case, and the sentence for a single one."""

import numpy as np

from gpucost.physics.columns import PRECISIONS, Floats, Integers, LayoutColumns
from gpucost.physics.hardware import HardwareColumns, peak_tflops
from gpucost.physics.transformer import Shape

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
)
OK = 0
MOST_GPUS, MOST_TOKENS = 1_000_000, 16_777_216  # of a question about one layout


def reason_codes(shape: Shape, hardware: HardwareColumns, layout: LayoutColumns, sequence_tokens: Floats) -> Integers:
    """Return the first reason that forbids each layout, as a code into REASONS; 0 where it can exist.

    Layers need not divide by the stages, nor the batch by what is taken at once: the slowest stage and a last
    micro-batch that is not full count whole.
    """
    degrees = (
        layout.gpus, layout.tensor, layout.pipeline, layout.context, layout.expert, layout.data, layout.micro_batch,
        layout.global_batch, layout.virtual_stages, sequence_tokens, shape.layers, shape.hidden, shape.heads,
    )  # fmt: skip
    sound = np.ones(len(layout), dtype=np.bool_)
    for value in degrees:
        sound = sound & np.isfinite(value) & (value > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        product = layout.tensor * layout.pipeline * layout.context * layout.data
        few = (layout.gpus > 0) & (layout.gpus < layout.tensor * layout.pipeline * layout.context)  # for one replica
        ranks = layout.tensor * layout.context * layout.data
        spread = layout.expert > 1
        tests = (
            ~sound & ~few,
            few | (product != layout.gpus),
            shape.heads % layout.tensor != 0,
            layout.pipeline * layout.virtual_stages > shape.layers,
            layout.data * layout.micro_batch > layout.global_batch,
            spread & ((shape.experts % layout.expert != 0) | (shape.experts == 0) | (ranks % layout.expert != 0)),
            sequence_tokens < layout.context,
            np.isnan(peak_tflops(hardware, layout.precision)),
            (layout.gpus > MOST_GPUS) | (sequence_tokens > MOST_TOKENS),
        )
    return np.select(tests, range(1, len(tests) + 1), default=OK).astype(np.int64)


def sentence(code: int, shape: Shape, layout: LayoutColumns, chip: str, row: int = 0) -> str:
    """Say what forbids one layout, with its numbers and what to try."""
    if code == 1:
        return "every degree, batch and size must be a positive, finite number."

    def v(name: str) -> int:
        return int(getattr(layout, name)[row])

    heads, layers, experts = int(shape.heads[0]), int(shape.layers[0]), int(shape.experts[0])
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
        3: f"tensor {v('tensor')} does not divide the {heads} heads. Try one of {divisors(heads)}.",
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
            else f"expert {v('expert')}: the model is no mixture of experts. Use 1."
        ),
        7: f"context {v('context')} leaves less than one token to a GPU.",
        8: f"{chip} has no known {PRECISIONS[v('precision')]} peak. `gpucost gpus` lists what it has.",
        9: f"at most {MOST_GPUS:,} accelerators and {MOST_TOKENS:,} tokens in a sequence can be asked about.",
    }[code]


def divisors(number: int) -> str:
    """Return the divisors of a count up to 64, in words.

    >>> divisors(12)
    '1, 2, 3, 4, 6, 12'
    """
    return ", ".join(str(d) for d in range(1, min(number, 64) + 1) if number % d == 0)
