"""A training workload in physical terms: what is trained, in which batches, and how large its states are."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gpucost.errors import UsageError, nearest
from gpucost.frozen import Frozen
from gpucost.gate import shown
from gpucost.market import assumptions as assume
from gpucost.physics import transformer
from gpucost.physics.hardware import half_precision
from gpucost.physics.software import CLASSES
from gpucost.physics.training.defaults import default_batch, default_sequence
from gpucost.types import Accelerator, Architecture
from gpucost.units import GB
from gpucost.workloads.loading import DataFlow, Loading, make_loading
from gpucost.workloads.own_speed import OwnSpeed, StepWork

TYPICAL = "unknown"  # the physics' class of a stack that nobody names: the middle of the others, and a wider range
SOFTWARE = {"typical": TYPICAL, **{name: name for name in CLASSES}}
DEFAULT_RANK = 16
_SHORT_TOKEN_VOCAB = 65_536


class Workload(Frozen):
    """What physics must know of a training run; equal workloads are computed once."""

    architecture: Architecture
    sequence_tokens: int
    global_batch: int
    precision: str | None  # None: the 16-bit format that each chip trains in
    method: str
    lora_rank: int
    lora_targets: str
    software: str  # class of the training stack; TYPICAL where it is not stated
    own_speed: OwnSpeed | None = None  # a measured speed in place of the predicted one
    software_year: float | None = None  # None: as old as software usually is
    latest_year: float = np.inf  # of the question's day: no software is newer
    loading: Loading | None = None  # what feeds it, where it was asked about
    offload: str = "none"
    document_tokens: float = np.inf  # over which tokens attend, where documents are shorter than the sequence

    @property
    def attended_tokens(self) -> float:
        """Tokens over which attention reaches."""
        return min(float(self.sequence_tokens), self.document_tokens)

    def precision_on(self, accelerator: Accelerator) -> str:
        """Return the precision of the products on a chip."""
        return self.precision or half_precision(accelerator)


def too_long(architecture: Architecture, sequence_tokens: float) -> list[str]:
    """Say where sequences are longer than a model takes."""
    longest = architecture.max_sequence_tokens
    if not longest or sequence_tokens <= longest:
        return []
    return [f"Sequences are longer than the {longest:,} tokens that the model is published for."]


def class_of(software: str, stacks: Mapping[str, str]) -> str:
    """Return the class whose physics a stack has; one of the user's own has that of the class that it is like."""
    known = {**SOFTWARE, **stacks}
    if software not in known:
        near = nearest(software, known)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        own = f", or a class of your own: {', '.join(stacks)}" if stacks else ""
        shipped = ", ".join(name for name in SOFTWARE if name != "unknown")
        raise UsageError(f"--software: unknown {shown(software)}.{hint} Choose one of {shipped}{own}.")
    return known[software]


class Sizes(Frozen):
    """Counts and sizes that follow from a workload."""

    parameters: float
    active_parameters: float
    trained_parameters: float
    model_flop_per_token: float
    checkpoint_gb: float
    weights_gb: float
    dataset_bytes_per_token: float


def make_workload(
    architecture: Architecture,
    *,
    tokens: float = np.inf,
    sequence_tokens: int | None = None,
    global_batch: int | None = None,
    precision: str | None = None,
    method: str = "full",
    lora_rank: int = DEFAULT_RANK,
    lora_targets: str = "all",
    software: str = "typical",
    own_speed: OwnSpeed | None = None,
    software_year: float | None = None,
    latest_year: float = np.inf,
    document_tokens: float | None = None,
    offload: str = "none",
) -> Workload:
    """Fill in what a question leaves open: the sequence and the batch, of which one step takes at most all tokens."""
    sequence = sequence_tokens or default_sequence(architecture)
    batch = global_batch or default_batch(architecture, sequence, method)
    most = max(1, int(min(tokens / sequence, 1e15)))
    if global_batch is not None and batch > tokens / sequence:
        raise UsageError(
            f"--global-batch: one step of {batch:,} sequences × {sequence:,} tokens is more than all {tokens:,.0f}"
            f" tokens. Take at most {most:,}."
        )
    return Workload(
        architecture,
        sequence,
        min(batch, most),
        precision,
        method,
        lora_rank,
        lora_targets,
        SOFTWARE.get(software, software),
        own_speed,
        software_year,
        latest_year,
        document_tokens=document_tokens or np.inf,
        offload=offload,
    )


def step_work(workload: Workload) -> StepWork:
    """Return what turns one form of a workload's speed into another."""
    tokens = float(workload.global_batch) * workload.sequence_tokens
    flop = float(transformer.model_flop(transformer.stack([workload.architecture]), workload.attended_tokens)[0])
    return StepWork(workload.precision, tokens, flop, workload.method != "full")


def sizes(workload: Workload) -> Sizes:
    """Return counts and sizes of a workload; adapters train few parameters and save little."""
    shape = transformer.stack([workload.architecture])
    parameters = float(transformer.total_parameters(shape)[0])
    trained = parameters if workload.method == "full" else adapter_parameters(workload)
    return Sizes(
        parameters=parameters,
        active_parameters=float(transformer.active_parameters(shape)[0]),
        trained_parameters=trained,
        model_flop_per_token=float(transformer.model_flop(shape, workload.attended_tokens)[0]),
        checkpoint_gb=trained * assume.STATE_BYTES_PER_PARAMETER.value / GB,
        weights_gb=trained * assume.WEIGHT_BYTES_PER_PARAMETER.value / GB,
        dataset_bytes_per_token=workload.loading.bytes_per_token
        if workload.loading
        else token_bytes(workload.architecture),
    )


def token_bytes(architecture: Architecture) -> float:
    """Return the bytes of a token's id: two where the vocabulary lets them, else four."""
    return 2.0 if architecture.vocab <= _SHORT_TOKEN_VOCAB else 4.0


def with_loading(workload: Workload, given: DataFlow, tokens: float | None = None) -> Workload:
    """Return a workload with what feeds it, where any of it was said; `tokens` are those of the dataset."""
    found = make_loading(given, workload.sequence_tokens, token_bytes(workload.architecture), tokens)
    return replace(workload, loading=found) if found else workload


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
