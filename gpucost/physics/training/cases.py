"""Building cases: records and words on one side, structs of arrays on the other."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from gpucost.physics.columns import METHODS, Floats, Integers, LayoutColumns, code_of, constant
from gpucost.physics.hardware import HardwareColumns
from gpucost.physics.software import CLASSES
from gpucost.physics.training.efficiency import resolve
from gpucost.physics.training.structs import Recipe, TrainingCase
from gpucost.physics.transformer import Shape
from gpucost.words import OFFLOADS


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
) -> Recipe:
    """Return the recipe of `count` cases; what is a single value holds for all.

    An AdamW update with `state_bytes` per parameter reads and writes about twice those (fp32 states: gradient,
    master, two moments read, three written, weights written, norm and reset: 34 bytes). Documents that share a
    sequence attend to themselves alone: `document_tokens` is their length, Σd² ÷ Σd where it varies.
    """

    def floats(value: ArrayLike) -> Floats:
        return constant(value, count)

    def codes(names: str | Sequence[str], known: tuple[str, ...], what: str) -> Integers:
        listed = [names] if isinstance(names, str) else names
        return constant(np.array([code_of(name, known, what) for name in listed], dtype=np.int64), count, np.int64)

    return Recipe(
        sequence_tokens=floats(sequence_tokens),
        attended_tokens=np.minimum(floats(sequence_tokens), floats(document_tokens)),
        method=codes(method, METHODS, "method"),
        offload=codes(offload, OFFLOADS, "offload"),
        causal=constant(causal, count, np.bool_),
        loss_repeated=constant(loss_repeated, count, np.bool_),
        vocabulary_split=constant(vocabulary_split, count, np.bool_),
        optimizer_bytes=2 * floats(state_bytes) + 2,
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
) -> TrainingCase:
    """Join the parts of a case and look its efficiencies up in the calibration's values."""
    efficiency = resolve(values, hardware, software, software_year)
    return TrainingCase(shape, hardware, layout, recipe, efficiency)
