"""What a training recipe keeps in memory per parameter and per value: optimizers, software styles, switches."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gpucost.gate import beside
from gpucost.physics.columns import METHODS, ColumnStruct, Flags, Floats, Integers, code_of, constant
from gpucost.words import OFFLOADS as OFFLOADS
from gpucost.words import STYLES as STYLES


class Optimizer(NamedTuple):
    """Bytes per trained parameter: weights, gradients, states (a separate master copy counts as a state)."""

    weight_bytes: float
    gradient_bytes: float
    state_bytes: float
    step_bytes: float  # working memory of the update, per parameter
    description: str


# Mixed precision with Adam keeps 2 + 2 + 12 bytes per parameter: 16-bit weights and gradients, fp32 weights and two
# fp32 moments (Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1). The other rows replace the 12.
OPTIMIZERS = {
    name: Optimizer(int(weight), int(gradient), int(state), int(step), description)
    for name, weight, gradient, state, step, description in beside(__file__, "optimizers")[1:]
}

# fused:             training frameworks with fused kernels (Megatron, Transformer Engine): each value kept once
# compiled:          torch.compile on each block, as its partitioner splits forward and backward
# eager:             plain PyTorch in 16 bits, fused RMS norm
# autocast:          plain PyTorch, fp32 weights under autocast
# compiled_model:    torch.compile on the whole model with its loss, whose logits then stay in 16 bits
# library:           Hugging Face transformers in 16 bits, eager
# library_autocast:  the same with fp32 weights under autocast
# trainer:           Hugging Face's Trainer, whose wrapper (accelerate, convert_outputs_to_fp32) copies the logits once
#                    more, and peft, which widens embeddings and head of a 4-bit base to fp32: how adapters are trained
#                    where nothing is said
FUSED, COMPILED, COMPILED_MODEL, EAGER, AUTOCAST, LIBRARY, LIBRARY_AUTOCAST, TRAINER = range(len(STYLES))
FUSED_STACKS = ("vendor", "megatron", "deepspeed", "native")  # classes of software with fused kernels
USUAL_STYLES = {"full": "fused", "lora": "trainer", "qlora": "trainer"}  # by method, where no style is stated

# A peak lies within a factor of the prediction, by style: about four of five measured rows of that style, at least 5 %;
# fused frameworks and whole compiled models, of which few or no peaks were measured, are given 20 %.
RANGE_RATIOS = {
    "fused": 1.20,
    "compiled": 1.08,
    "compiled_model": 1.20,
    "eager": 1.05,
    "autocast": 1.08,
    "library": 1.05,
    "library_autocast": 1.05,
    "trainer": 1.10,
}

# The peak of somebody else's run lies within this factor: what 22 first predictions of one trainer's peaks turned out
# to be (the ledger of memory), whose versions, kernels and batches nobody but its author knows.
OTHERS_RATIO = 1.45

_FLAGS = (
    "loss_chunk_kept",
    "vocabulary_split",
    "dropout",
    "gradient_views",
    "offload_states",
    "offload_weights",
    "full_precision",
)

LORA, QLORA = METHODS.index("lora"), METHODS.index("qlora")
FROZEN_BYTES = {"lora": 2.0, "qlora": 0.5 + 0.127 / 8}  # NF4 with double quantisation: 4.127 bits (arXiv:2305.14314)


class MemoryRecipe(ColumnStruct, frozen=True):
    """What is kept, as arrays; a struct of length one holds for all cases."""

    sequence_tokens: Floats
    method: Integers  # code into METHODS
    style: Integers  # code into STYLES
    weight_bytes: Floats  # per trained parameter
    gradient_bytes: Floats
    state_bytes: Floats  # per trained parameter; of an adapter the moments alone
    step_bytes: Floats
    cast_bytes: Floats  # per weight of a matrix: 16-bit copies that autocast keeps for backward (none under FSDP)
    frozen_bytes: Floats  # per weight of a frozen matrix
    adapter_rank: Floats
    adapter_share: Floats  # share of the layers' matrices that carry adapters
    adapter_bytes: Floats  # per value of an adapter: 4 copies the inputs to fp32, 2 shares them
    loss_chunk_tokens: Floats  # tokens whose logits exist at a time; 0: all of the micro-batch
    loss_chunk_kept: Flags  # chunks keep their softmax for the backward pass instead of being recomputed
    vocabulary_split: Flags  # embeddings and logits are divided over the tensor group
    dropout: Flags
    gradient_views: Flags  # gradients live in the all-reduce buckets instead of beside them
    offload_states: Flags  # optimizer states (and ZeRO's gradients) in host memory
    offload_weights: Flags  # parameters in host memory, fetched block by block
    full_precision: Flags  # a quantised base as Hugging Face prepares it: all that is computed is fp32


def optimizer_bytes(
    optimizer: str = "adamw", *, fp32_weights: bool = False, state_bytes_per_parameter: float | None = None
) -> Optimizer:
    """Return what an optimizer keeps per parameter.

    Where the weights themselves are fp32 (autocast, FSDP's shards) the master is the weight: 4 + 4 + 8 instead of
    2 + 2 + 12. A stated total of bytes per parameter overrules: 8 is everything in 16 bits, 16 is mixed precision;
    what is left after weights and gradients is states.

    >>> optimizer_bytes("adamw", fp32_weights=True)[:3]
    (4.0, 4.0, 8.0)
    >>> sum(optimizer_bytes("adamw")[:3]), optimizer_bytes("adamw", state_bytes_per_parameter=8)[:3]
    (16, (2, 2, 4))
    """
    base = OPTIMIZERS[tuple(OPTIMIZERS)[code_of(optimizer, tuple(OPTIMIZERS), "optimizer")]]
    total = state_bytes_per_parameter or base.weight_bytes + base.gradient_bytes + base.state_bytes
    # eight bytes at least: fp32 weights and gradients
    if fp32_weights and total >= 8 and (base.state_bytes >= 4 or state_bytes_per_parameter):
        return base._replace(weight_bytes=4.0, gradient_bytes=4.0, state_bytes=total - 8.0)
    return base._replace(state_bytes=max(total - base.weight_bytes - base.gradient_bytes, 0))


def state_bytes(parameters: float, trained: float, method: str = "full", optimizer: str = "adamw") -> float:
    """Return the bytes of weights, gradients and optimizer states of all accelerators together, before activations.

    Full training: parameters × (2 + 2 + 12) bytes in mixed precision with Adam (arXiv:1910.02054, section 3.1).
    Adapters: the frozen weights in their bytes, and the same states of what is trained.

    >>> state_bytes(7.5e9, 7.5e9) / 1e9
    120.0
    """
    weight, gradient, state, *_ = OPTIMIZERS[optimizer]
    frozen = 0.0 if method == "full" else parameters * FROZEN_BYTES[method]
    return frozen + trained * (weight + gradient + state)


def adapter_state_bytes(optimizer: str = "adamw", adapter_bytes: float = 4.0) -> float:
    """Return what an optimizer keeps per parameter of an adapter, which is its own master: the moments alone.

    >>> adapter_state_bytes("adamw"), adapter_state_bytes("adamw-8bit"), adapter_state_bytes("adamw", 2.0)
    (8.0, 2.0, 4.0)
    """
    base = OPTIMIZERS[optimizer]
    moments = base.state_bytes - (4 if "fp32 master" in base.description else 0)
    return min(moments, 2 * adapter_bytes) + 0.0  # adapters in 16 bits have moments in 16 bits


def memory_recipe(
    sequence_tokens: ArrayLike,
    *,
    method: str = "full",
    style: str = "fused",
    optimizer: str = "adamw",
    fp32_weights: bool | None = None,
    state_bytes_per_parameter: float | None = None,
    step_bytes: float | None = None,
    frozen_bytes: float | None = None,
    adapter_rank: ArrayLike = 16.0,
    adapter_share: ArrayLike = 1.0,
    adapter_bytes: float = 4.0,
    loss_chunk_tokens: ArrayLike = 0.0,
    loss_chunk_kept: bool = False,
    vocabulary_split: bool = True,
    dropout: bool = False,
    gradient_views: bool = False,
    offload: str = "none",
    full_precision: bool = False,
) -> MemoryRecipe:
    """Build a recipe of the length of `sequence_tokens` from words and numbers."""
    code_of(offload, OFFLOADS, "offload")
    master_weights = style.endswith("autocast") if fp32_weights is None else fp32_weights
    optimizer_sizes = optimizer_bytes(
        optimizer, fp32_weights=master_weights, state_bytes_per_parameter=state_bytes_per_parameter
    )
    sequence = np.atleast_1d(np.asarray(sequence_tokens, dtype=np.float64))
    values: dict[str, ArrayLike] = {
        "method": code_of(method, METHODS, "method"),
        "style": code_of(style, STYLES, "style"),
        "weight_bytes": optimizer_sizes.weight_bytes,
        "gradient_bytes": optimizer_sizes.gradient_bytes,
        "state_bytes": optimizer_sizes.state_bytes
        if method not in FROZEN_BYTES
        else adapter_state_bytes(optimizer, adapter_bytes),
        "step_bytes": optimizer_sizes.step_bytes if step_bytes is None else step_bytes,
        "cast_bytes": 2.0 if optimizer_sizes.weight_bytes == 4 else 0.0,
        "frozen_bytes": FROZEN_BYTES.get(method, 2.0) if frozen_bytes is None else frozen_bytes,
        "adapter_rank": adapter_rank,
        "adapter_share": adapter_share,
        "adapter_bytes": adapter_bytes,
        "loss_chunk_tokens": loss_chunk_tokens,
        "loss_chunk_kept": loss_chunk_kept,
        "vocabulary_split": vocabulary_split,
        "dropout": dropout,
        "gradient_views": gradient_views,
        "offload_states": offload in ("states", "all"),
        "offload_weights": offload == "all",
        "full_precision": full_precision,
    }
    kinds: Mapping[str, type] = {**dict.fromkeys(("method", "style"), np.int64), **dict.fromkeys(_FLAGS, np.bool_)}
    columns: dict[str, Any] = {
        name: constant(value, len(sequence), kinds.get(name, np.float64)) for name, value in values.items()
    }
    return MemoryRecipe(sequence_tokens=sequence, **columns)
