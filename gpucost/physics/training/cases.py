"""Cases of a training step as structs of arrays, and how records and words become them."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from gpucost.physics.columns import (
    METHODS,
    PRECISIONS,
    ColumnStruct,
    Flags,
    Floats,
    Integers,
    LayoutColumns,
    code_of,
    constant,
)
from gpucost.physics.hardware import HardwareColumns
from gpucost.physics.software import CLASSES
from gpucost.physics.training.efficiency import UNSAID, Efficiencies, resolve
from gpucost.physics.transformer import Shape
from gpucost.words import OFFLOADS

# --- The structs of a training step: what a case is, and the seconds of a micro-batch and of a step by part.

Part = TypeVar("Part", bound=ColumnStruct)

HALF_BYTES = 2.0  # of a value in 16 bits, as which all but narrow products and states travels
LORA, QLORA = METHODS.index("lora"), METHODS.index("qlora")
BF16, FP8, FP4, FP32, INT8 = (PRECISIONS.index(name) for name in ("bf16", "fp8", "fp4", "fp32", "int8"))
SELECTIVE, FULL = 1, 2  # recompute codes


class Recipe(ColumnStruct, frozen=True):
    """What is trained and how, beyond the layout."""

    sequence_tokens: Floats
    attended_tokens: Floats  # over which a token attends: of its document, where several share a sequence
    method: Integers  # code into METHODS
    causal: Flags
    optimizer_bytes: Floats  # moved per parameter in an update: 30 for AdamW with fp32 states and 16-bit weights
    gradient_bytes: Floats  # per parameter in the data-parallel exchange
    cast_bytes: Floats  # per parameter and micro-batch: 6 where fp32 weights are cast to 16 bits each time
    adapter_rank: Floats
    adapter_share: Floats  # share of the layers' matrices that carry adapters
    loss_repeated: Flags  # the logits of each chunk are computed again in the backward pass
    offload: Integers  # code into OFFLOADS: what host memory takes
    vocabulary_split: Flags  # embeddings and logits are divided over the tensor group
    full_precision: Flags  # all but the stored base is computed in fp32: a quantised base as Hugging Face prepares it
    blocking: Flags  # pipeline stages wait while they hand over
    library_scores: Flags  # unfused attention as Hugging Face writes it: mask, softmax in fp32 and dropout apart


class TrainingCase(Struct, frozen=True):
    """All that a step depends on: structs of arrays of one length; one that all cases share may have length one."""

    shape: Shape
    hardware: HardwareColumns
    layout: LayoutColumns
    recipe: Recipe
    efficiency: Efficiencies

    def __len__(self) -> int:
        return len(self.layout)

    def take(self, indices: Any) -> "TrainingCase":
        """Return the cases that `indices` names."""

        def of(part: Part) -> Part:
            return part if len(part) == 1 else part.take(indices)

        return TrainingCase(of(self.shape), of(self.hardware), of(self.layout), of(self.recipe), of(self.efficiency))


class MicroStep(ColumnStruct, frozen=True):
    """Seconds of one micro-batch on the slowest pipeline stage, by part."""

    matrix_s: Floats
    attention_s: Floats
    elementwise_s: Floats
    logits_s: Floats
    adapter_s: Floats
    tensor_s: Floats
    context_s: Floats
    expert_s: Floats
    host_s: Floats  # what the host adds beyond the accelerator's own time

    @property
    def total_s(self) -> Floats:
        """Sum of the parts."""
        return sum((getattr(self, name) for name in self.names()), np.zeros(len(self)))


class Step(ColumnStruct, frozen=True):
    """Seconds of one optimizer step by part, and what follows from their sum."""

    matrix_s: Floats
    attention_s: Floats
    elementwise_s: Floats
    logits_s: Floats
    adapter_s: Floats
    tensor_s: Floats
    context_s: Floats
    expert_s: Floats
    pipeline_s: Floats
    host_s: Floats
    bubble_s: Floats
    data_s: Floats
    optimizer_s: Floats
    offload_s: Floats
    straggler_s: Floats
    overhead_s: Floats
    total_s: Floats
    tokens_per_s_per_gpu: Floats
    model_tflops: Floats
    mfu_fraction: Floats


PARTS = tuple(name for name in Step.names() if name.endswith("_s") and name != "total_s")


# --- Building cases: records and words on one side, structs of arrays on the other.


def recipe_columns(
    count: int,
    sequence_tokens: ArrayLike,
    *,
    method: str | Sequence[str] = "full",
    adapter_rank: ArrayLike = 16.0,
    adapter_share: ArrayLike = 1.0,
    state_bytes: ArrayLike = 16.0,
    gradient_bytes: ArrayLike = 4.0,
    cast_bytes: ArrayLike = 0.0,
    causal: ArrayLike = True,
    loss_repeated: ArrayLike = False,
    vocabulary_split: ArrayLike = True,
    document_tokens: ArrayLike = np.inf,
    offload: str | Sequence[str] = "none",
    full_precision: ArrayLike = False,
    blocking: ArrayLike = False,
    library_scores: ArrayLike = False,
) -> Recipe:
    """Return the recipe of `count` cases; what is a single value holds for all.

    An AdamW update with `state_bytes` per parameter reads and writes about twice those (fp32 states: gradient,
    master, two moments read, three written, weights written, norm and reset: 34 bytes). Documents that share a
    sequence attend to themselves alone: `document_tokens` is their length, Σd² ÷ Σd where it varies.
    """

    def floats(value: ArrayLike) -> Floats:
        return constant(value, count)

    def codes(names: str | Sequence[str], choices: tuple[str, ...], kind: str) -> Integers:
        rows = [names] if isinstance(names, str) else names
        return constant(np.array([code_of(name, choices, kind) for name in rows], dtype=np.int64), count, np.int64)

    return Recipe(
        sequence_tokens=floats(sequence_tokens),
        attended_tokens=np.minimum(floats(sequence_tokens), floats(document_tokens)),
        method=codes(method, METHODS, "method"),
        offload=codes(offload, OFFLOADS, "offload"),
        causal=constant(causal, count, np.bool_),
        loss_repeated=constant(loss_repeated, count, np.bool_),
        vocabulary_split=constant(vocabulary_split, count, np.bool_),
        full_precision=constant(full_precision, count, np.bool_),
        blocking=constant(blocking, count, np.bool_),
        library_scores=constant(library_scores, count, np.bool_),
        optimizer_bytes=2 * floats(state_bytes) + 2,  # read and written, and the 16-bit weights
        gradient_bytes=floats(gradient_bytes),
        cast_bytes=floats(cast_bytes),
        adapter_rank=floats(adapter_rank),
        adapter_share=floats(adapter_share),
    )


def software_codes(names: Sequence[str]) -> Integers:
    """Return the codes of software classes."""
    return np.array([code_of(name, CLASSES, "software class") for name in names], dtype=np.int64)


def build_case(
    shape: Shape,
    hardware: HardwareColumns,
    layout: LayoutColumns,
    recipe: Recipe,
    values: Mapping[str, float],
    *,
    software: Integers,
    software_year: Floats,
    dispatcher: int = UNSAID,
) -> TrainingCase:
    """Join the parts of a case and look its efficiencies up in the calibration's values."""
    efficiency = resolve(values, hardware, software, software_year, dispatcher)
    return TrainingCase(shape, hardware, layout, recipe, efficiency)
