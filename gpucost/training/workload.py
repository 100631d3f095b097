"""The physical side of a request: what is trained, in which batches, and how large its states are."""

from dataclasses import dataclass

import numpy as np

from gpucost.errors import UsageError
from gpucost.market import assumptions as assume
from gpucost.physics import transformer
from gpucost.physics.software import CLASSES
from gpucost.training.request import TrainingRequest
from gpucost.types import Architecture
from gpucost.units import GB

TYPICAL = "unknown"  # the physics' class of a stack that nobody names: the middle of the others, and a wider range
SOFTWARE = {"typical": TYPICAL, **{name: name for name in CLASSES if name != TYPICAL}}
DEFAULT_SEQUENCE = 8192
FINE_TUNING_SEQUENCES = 128
_TOKENS_PER_BATCH_AT_7B = 4e6
_SMALLEST_BATCH_TOKENS, _LARGEST_BATCH_TOKENS = 0.5e6, 16e6
_SHORT_TOKEN_VOCAB = 65_536


@dataclass(frozen=True, slots=True)
class Workload:
    """What physics must know of a request; equal workloads are computed once."""

    architecture: Architecture
    sequence_tokens: int
    global_batch: int
    precision: str
    method: str
    lora_rank: int
    lora_targets: str
    software: str  # class of the training stack; TYPICAL where it is not stated


@dataclass(frozen=True, slots=True)
class Sizes:
    """Counts and sizes that follow from a workload."""

    parameters: float
    active_parameters: float
    trained_parameters: float
    model_flop_per_token: float
    checkpoint_gb: float
    weights_gb: float
    dataset_bytes_per_token: float


def make_workload(request: TrainingRequest, architecture: Architecture) -> Workload:
    """Fill in what the request leaves open: sequence length and global batch."""
    longest = architecture.max_sequence_tokens
    sequence = request.sequence_tokens or min(longest or DEFAULT_SEQUENCE, DEFAULT_SEQUENCE)
    if request.global_batch is not None:
        batch = request.global_batch
    elif request.method == "full":
        batch = default_batch(active_parameters(architecture), sequence)
    else:
        batch = FINE_TUNING_SEQUENCES
    if batch * sequence > request.trained_tokens:
        if request.global_batch is not None and batch > request.trained_tokens / sequence:
            raise UsageError(
                f"--global-batch: one step of {batch:,} sequences × {sequence:,} tokens is more than all"
                f" {request.trained_tokens:,.0f} tokens. Take at most"
                f" {max(1, int(request.trained_tokens // sequence)):,}."
            )
        batch = max(1, int(request.trained_tokens // sequence))
    return Workload(
        architecture,
        sequence,
        batch,
        request.precision,
        request.method,
        request.lora_rank,
        request.lora_targets,
        SOFTWARE[request.software],
    )


def default_batch(parameters: float, sequence_tokens: int) -> int:
    """Return sequences per step: 4M tokens at 7B active parameters, growing with their square root, 0.5M to 16M.

    In line with published runs: GPT-2 124M 0.5M, Llama 2 4M, Llama 3.1 405B 16M tokens; rounded to a power of two,
    so that it divides over clusters.
    """
    tokens = _TOKENS_PER_BATCH_AT_7B * (parameters / 7e9) ** 0.5
    tokens = min(max(tokens, _SMALLEST_BATCH_TOKENS), _LARGEST_BATCH_TOKENS)
    return int(2 ** max(0, round(float(np.log2(tokens / sequence_tokens)))))


def active_parameters(architecture: Architecture) -> float:
    """Return the parameters that a token visits."""
    return float(transformer.active_parameters(transformer.stack([architecture]))[0])


def sizes(workload: Workload) -> Sizes:
    """Return counts and sizes of a workload; adapters train few parameters and save little."""
    shape = transformer.stack([workload.architecture])
    parameters = float(transformer.total_parameters(shape)[0])
    trained = parameters if workload.method == "full" else adapter_parameters(workload)
    vocab = workload.architecture.vocab
    return Sizes(
        parameters=parameters,
        active_parameters=float(transformer.active_parameters(shape)[0]),
        trained_parameters=trained,
        model_flop_per_token=float(transformer.model_flop(shape, float(workload.sequence_tokens))[0]),
        checkpoint_gb=trained * assume.STATE_BYTES_PER_PARAMETER.value / GB,
        weights_gb=trained * assume.WEIGHT_BYTES_PER_PARAMETER.value / GB,
        dataset_bytes_per_token=2.0 if vocab <= _SHORT_TOKEN_VOCAB else 4.0,
    )


def adapter_parameters(workload: Workload) -> float:
    """Return about how many parameters adapters train: rank × (in + out) over the adapted matrices of the layers.

    For a square matrix of n² parameters the two adapters hold 2 r n, so that a layer's share is about 2 r ÷ width.
    """
    shape = transformer.stack([workload.architecture])
    share = min(1.0, 2 * workload.lora_rank / workload.architecture.hidden)
    return float(transformer.compute_parameters(shape)[0]) * share * adapted_share(workload)


def adapted_share(workload: Workload) -> float:
    """Return the share of the layers' matrices that carry adapters, by parameters."""
    if workload.lora_targets == "all":
        return 1.0
    shape = transformer.stack([workload.architecture])
    attention = float(transformer.attention_matrix_parameters(shape)[0]) * workload.architecture.layers
    share = min(1.0, attention / float(transformer.compute_parameters(shape)[0]))
    return share if workload.lora_targets == "attention" else 1 - share
