"""A training workload in physical terms: what is trained, in which batches, what feeds it, a speed of one's own."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, exp, floor, inf, isfinite, isnan, log10
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpucost.answers.training import Feeding
from gpucost.arguments import flag_of
from gpucost.arguments.kinds import dataset_of, decode_of
from gpucost.errors import UsageError, nearest
from gpucost.gate import shown
from gpucost.market import interruptions as assume
from gpucost.physics import transformer
from gpucost.physics.columns import Floats
from gpucost.physics.hardware import half_precision, peak, peak_share
from gpucost.physics.software import CLASSES
from gpucost.physics.training.defaults import default_batch, default_sequence
from gpucost.types import Accelerator, Architecture
from gpucost.units import GB, TERA

# --- What feeds a run: the bytes that its steps read against what storage and the workers of the data loader deliver.

_MB = 1e6


class DataFlow(NamedTuple):
    """What was said of the data that feed a run; None where nothing was."""

    dataset: str | None = None
    loader_workers: int | None = None
    decode_rate: str | None = None
    storage_gb_per_s: float | None = None

    @property
    def whole(self) -> bool:
        """Whether the dataset is stated as a whole, so that its tokens say what each of them weighs."""
        return self.dataset is not None and not dataset_of(self.dataset)[1]


class Loading(NamedTuple):
    """The data of a run: bytes of a token, and what delivers them; infinite where nobody said."""

    bytes_per_token: float
    storage_gb_per_s: float = inf  # to the whole run
    loader_workers: int = 0  # on each accelerator
    worker_gb_per_s: float = inf
    assumed: bool = False  # token ids, since no dataset was stated

    def workers_gb_per_s(self, gpus: Any) -> Any:
        """Return what all workers deliver: accelerators × workers on each × rate."""
        return gpus * (self.loader_workers * self.worker_gb_per_s if self.loader_workers else inf)

    def tokens_per_s(self, gpus: Any) -> Any:
        """Return the most tokens per second that the data allow: the lesser flow ÷ bytes of a token.

        Workers add up over accelerators; storage is one for all of them. 2 workers of 50 MB/s on each of 8
        accelerators deliver 0.8 GB/s, storage 0.5 GB/s: at 1,000 bytes 500,000 tokens per second.

        >>> Loading(1000.0, 0.5, 2, 0.05).tokens_per_s(np.array([2, 8]))
        array([200000., 500000.])
        """
        return np.minimum(self.workers_gb_per_s(gpus), self.storage_gb_per_s) * GB / self.bytes_per_token

    def feeding(self, tokens_per_s: float, gpus: int) -> Feeding:
        """Say what a run of so many tokens per second waits for: stall = max(0, 1 − delivered ÷ needed).

        Loading runs beside the steps, so that a step waits only for what comes later than it ends; a run then takes
        needed ÷ delivered times as long.

        >>> Loading(1000.0, 0.5, 2, 0.05).feeding(1e6, 8)["said"].rpartition(": ")[2]
        'storage makes it wait 50% of the time; 1 GB/s of storage and 3 workers on each GPU would end it.'
        """
        needed = tokens_per_s * self.bytes_per_token / GB
        flows = {"storage": self.storage_gb_per_s, "workers": float(self.workers_gb_per_s(gpus))}
        bottleneck, delivered = min(flows.items(), key=lambda flow: flow[1])
        stall = max(0.0, 1 - delivered / needed)
        # less the noise of a division, which must not ask for one more
        gb_per_s_per_worker = self.worker_gb_per_s * gpus
        enough = ceil(needed / gb_per_s_per_worker * (1 - 1e-12)) if self.loader_workers else None

        # In a sentence: what is needed, what is delivered, who is short, what would end it.
        weight = f"{self.bytes_per_token:,.0f}" if self.bytes_per_token >= 1e4 else f"{self.bytes_per_token:,.4g}"
        of = f"token ids of {weight} bytes, as no --dataset is given" if self.assumed else f"{weight} bytes per token"
        sentence = f"Loading: {_rate(needed)} are needed ({of})"
        delivering = [
            f"{name} {'delivers' if name == 'storage' else 'deliver'} {_rate(flow)}"
            for name, flow in flows.items()
            if isfinite(flow)
        ]
        if not delivering:
            sentence += "; --storage-bandwidth, --loader-workers and --decode-rate say what is delivered."
        elif not stall:
            sentence += f", {' and '.join(delivering)}: no stall."
        else:
            unit = 10.0 ** (floor(log10(needed)) - 2)  # rounded up: what is written must be enough
            enough_storage = ceil(needed / unit * (1 - 1e-12)) * unit
            cures = [f"{_rate(enough_storage)} of storage"] if flows["storage"] < needed else []
            if enough and enough > self.loader_workers:
                cures.append(f"{enough:,} workers on each GPU")
            makes = "makes" if bottleneck == "storage" else "make"
            sentence += (
                f", {' and '.join(delivering)}: {bottleneck} {makes} it wait {stall:.0%} of the time;"
                f" {' and '.join(cures)} would end it."
            )
        return {
            "dataset_bytes_per_token": self.bytes_per_token,
            "needed_gb_per_s": needed,
            "storage_gb_per_s": flows["storage"] if isfinite(flows["storage"]) else None,
            "workers_gb_per_s": flows["workers"] if isfinite(flows["workers"]) else None,
            "stall_fraction": stall,
            "bottleneck": bottleneck if stall else None,
            "needed_loader_workers": enough,
            "said": sentence,
        }


def _rate(gb_per_s: float) -> str:
    """Write a flow."""
    return f"{gb_per_s:,.3g} GB/s" if gb_per_s >= 1 else f"{gb_per_s * GB / _MB:,.3g} MB/s"


def make_loading(
    data_flow: DataFlow, sequence_tokens: int, id_bytes: float, tokens: float | None = None
) -> Loading | None:
    """Read what was said of the data; a dataset that nobody states holds token ids."""
    if data_flow == DataFlow():
        return None
    if (data_flow.loader_workers is None) != (data_flow.decode_rate is None):
        raise UsageError(
            "--loader-workers and --decode-rate go together: the number of workers, and what each prepares per second"
            " (`gpucost bench` measures a loader)."
        )
    size, of = dataset_of(data_flow.dataset) if data_flow.dataset is not None else (id_bytes, "token")
    if not of and tokens is None:
        raise UsageError(f"--dataset: {data_flow.dataset} does not say how many tokens. Write 4/token or 150kb/sample.")
    bytes_per_token = size / {"token": 1.0, "sample": float(sequence_tokens), "": tokens or 1.0}[of]
    rate, samples = decode_of(data_flow.decode_rate) if data_flow.decode_rate is not None else (inf, False)
    return Loading(
        bytes_per_token,
        data_flow.storage_gb_per_s if data_flow.storage_gb_per_s is not None else inf,
        data_flow.loader_workers or 0,
        rate * (bytes_per_token * sequence_tokens if samples else 1.0) / GB,
        data_flow.dataset is None,
    )


# --- A speed of one's own in place of the predicted one: read, held against the peak, and laid over what physics
# finds.

# How far the same run at another size lies from its measured speed, as half the logarithmic width of an 80 % range: of
# pairs of published runs that differ in accelerators and batch alone, each source one voice (docs/accuracy.md).
WIDTH = 0.065
SLOWEST = 1e-9  # share of the peak below which a speed is a slip
BEYOND_PEAK = "Nothing can exceed the peak."


class StepWork(NamedTuple):
    """What turns one form of a speed into another."""

    precision: str | None  # None: the 16-bit format that each chip trains in
    step_tokens: float
    flop_per_token: float  # model FLOP of the method: frozen weights need no gradients of their own


class OwnSpeed(Struct, frozen=True):
    """What was measured, in one of three forms; counted over training steps, without what a run loses beside them."""

    mfu_fraction: float | None = None
    tokens_per_s_per_gpu: float | None = None
    step_s: float | None = None  # on the accelerators that are asked for, at the batch that is asked for

    @property
    def flag(self) -> str:
        """The option that it was given by."""
        forms = {"mfu": self.mfu_fraction, "tokens_per_s_per_gpu": self.tokens_per_s_per_gpu}
        return flag_of(next((name for name, value in forms.items() if value is not None), "step_time"))

    def tokens_per_s(self, accelerator: Accelerator, gpus: float, work: StepWork) -> float:
        """Return tokens per second and accelerator: MFU × peak ÷ FLOP per token, or step tokens ÷ time ÷ accelerators.

        >>> OwnSpeed(step_s=2.0).tokens_per_s(None, 8, StepWork("bf16", 1.6e6, 5e10))
        100000.0
        """
        if self.tokens_per_s_per_gpu is not None:
            return self.tokens_per_s_per_gpu
        if self.step_s is not None:
            return work.step_tokens / self.step_s / gpus
        assert self.mfu_fraction is not None
        dense = peak(accelerator, work.precision or half_precision(accelerator)).tflops
        return self.mfu_fraction * dense * TERA / work.flop_per_token


def own_speed(mfu: float | None, tokens_per_s_per_gpu: float | None, step_s: float | None) -> OwnSpeed | None:
    """Return the speed that was given; None where nothing was."""
    speed = OwnSpeed(mfu, tokens_per_s_per_gpu, step_s)
    return None if speed == OwnSpeed() else speed


def needs_gpus(speed: OwnSpeed | None, gpus: float | None) -> None:
    """Refuse a step time that nobody says the accelerators of."""
    if speed is not None and speed.step_s is not None and not gpus:
        raise UsageError("--step-time needs --gpus: the number of accelerators it was measured on.")


def one_chip(flag: str, accelerators: Iterable[Accelerator], instead: str = "") -> Accelerator:
    """Return the accelerator that a speed was measured on; it holds for no other."""
    chips = {chip.id: chip for chip in accelerators}
    if len(chips) > 1:
        names = sorted(chips)
        some = ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
        raise UsageError(
            f"{flag} applies only to the accelerator it was measured on; these offers have {some}. Name one by --gpu"
            f"{instead}."
        )
    return next(iter(chips.values()))


def check(measured_speed: OwnSpeed, accelerators: Sequence[Accelerator], gpus: float, work: StepWork) -> None:
    """Refuse a speed that no accelerator can have: what it needs of the dense peak is more than all of it."""
    if measured_speed.mfu_fraction is None:
        accelerators = [one_chip(measured_speed.flag, accelerators, ", or give --mfu")]
    for chip in accelerators:
        speed, precision = measured_speed.tokens_per_s(chip, gpus, work), work.precision or half_precision(chip)
        share = peak_share(chip, precision, speed * work.flop_per_token)
        if isnan(share) or share <= 1:
            return
        if measured_speed.mfu_fraction is not None:
            raise UsageError(f"--mfu: {share:.0%} of the dense {precision} peak. {BEYOND_PEAK} Write 35% or 0.35.")
        raise UsageError(
            f"{measured_speed.flag}: {speed:,.0f} tokens/s on each {chip.id} need {share:.0%} of the dense"
            f" {precision} peak. {BEYOND_PEAK}"
        )


def most_tokens_per_s(accelerator: Accelerator, work: StepWork) -> float:
    """Return the speed that takes all of the dense peak."""
    dense = peak(accelerator, work.precision or half_precision(accelerator)).tflops
    return dense * TERA / work.flop_per_token


def ends(speed: Floats, most: Floats | float) -> tuple[Floats, Floats]:
    """Return the 80 % range of a measured speed; it ends at the most that the peak allows.

    >>> [round(float(end), 3) for end in ends(np.array(1.0), 1.05)]
    [0.937, 1.05]
    """
    return speed * exp(-WIDTH), np.maximum(speed, np.fmin(speed * exp(WIDTH), most))


# --- A training workload in physical terms: what is trained, in which batches, and how large its states are.

TYPICAL = "unknown"  # the physics' class of a stack that nobody names: the middle of the others, and a wider range
SOFTWARE = {"typical": TYPICAL, **{name: name for name in CLASSES}}
DEFAULT_RANK = 16  # of adapters: assumed, as most published recipes have 8 to 64
_SHORT_TOKEN_VOCAB = 65_536  # token ids that two bytes hold


_PROMPTS_PER_STEP = 512  # of reinforcement learning without a stated batch: assumed, verl's published runs take as many


class Rollouts(Struct, frozen=True):
    """What is written in a step."""

    answers: int  # to each prompt
    prompt_tokens: float
    output_tokens: float  # of an answer, on average
    reference: bool = False  # a frozen model scores the answers too
    critic: bool = False  # a model of the same size values every token, and is trained beside the policy (PPO)

    @property
    def sequence_tokens(self) -> int:
        """Tokens of a prompt with its answer, which is what training reads."""
        return max(1, round(self.prompt_tokens + self.output_tokens))


class Workload(Struct, frozen=True):
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
    rollouts: Rollouts | None = None  # what the model writes to be trained on
    flash: bool | None = None  # fused attention; None: usual, and some do without
    dispatcher: str | None = None  # how tokens reach their experts; None: all-to-all, and some fuse it

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
    classes = {**SOFTWARE, **stacks}
    if software not in classes:
        near = nearest(software, classes)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        own_classes = f", or a class of your own: {', '.join(stacks)}" if stacks else ""
        shipped = ", ".join(name for name in SOFTWARE if name != "unknown")
        raise UsageError(f"--software: unknown {shown(software)}.{hint} Choose one of {shipped}{own_classes}.")
    return classes[software]


class Sizes(Struct, frozen=True):
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
    rollouts: Rollouts | None = None,
    flash: bool | None = None,
    dispatcher: str | None = None,
) -> Workload:
    """Fill in what a question leaves open: the sequence and the batch, of which one step takes at most all tokens."""
    if rollouts is not None:
        sequence_tokens = rollouts.sequence_tokens
        global_batch = global_batch or min(_PROMPTS_PER_STEP * rollouts.answers, max(1, int(tokens / sequence_tokens)))
    sequence = sequence_tokens or default_sequence(architecture)
    batch = global_batch or default_batch(architecture, sequence, method)
    most = max(1, int(min(tokens / sequence, 1e15)))  # sequences that all tokens make; tokens may be without end
    if tokens < sequence:
        raise UsageError(
            f"--tokens: {tokens:,.4g} are less than one step, which takes a sequence of {sequence:,} tokens at least."
            f" Did you mean {tokens:.4g}b? For short texts give --sequence."
        )
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
        rollouts=rollouts,
        flash=flash,
        dispatcher=dispatcher,
    )


def step_work(workload: Workload) -> StepWork:
    """Return what turns one form of a workload's speed into another."""
    tokens = float(workload.global_batch) * workload.sequence_tokens
    return StepWork(workload.precision, tokens, _model_flop_per_token(workload))


def _model_flop_per_token(workload: Workload) -> float:
    """Return the model FLOP of a workload's token, by what it trains."""
    shape, frozen = transformer.stack([workload.architecture]), workload.method != "full"
    return float(transformer.model_flop(shape, workload.attended_tokens, frozen=frozen)[0])


def sizes(workload: Workload) -> Sizes:
    """Return counts and sizes of a workload; adapters train few parameters and save little."""
    shape = transformer.stack([workload.architecture])
    parameters = float(transformer.total_parameters(shape)[0])
    trained = parameters
    if workload.method != "full":
        # Adapters hold rank × (in + out) of each adapted matrix. For a square one of n² that is 2 r n, so that a
        # layer's share is about 2 r ÷ width.
        share = min(1.0, 2 * workload.lora_rank / workload.architecture.hidden)
        trained = float(transformer.compute_parameters(shape)[0]) * share * adapted_share(workload)
    return Sizes(
        parameters=parameters,
        active_parameters=float(transformer.active_parameters(shape)[0]),
        trained_parameters=trained,
        model_flop_per_token=_model_flop_per_token(workload),
        checkpoint_gb=trained * assume.STATE_BYTES_PER_PARAMETER.value / GB,
        weights_gb=trained * assume.WEIGHT_BYTES_PER_PARAMETER.value / GB,
        dataset_bytes_per_token=workload.loading.bytes_per_token
        if workload.loading
        else token_bytes(workload.architecture),
    )


def token_bytes(architecture: Architecture) -> float:
    """Return the bytes of a token's id: two where the vocabulary lets them, else four."""
    return 2.0 if architecture.vocab <= _SHORT_TOKEN_VOCAB else 4.0


def with_loading(workload: Workload, data_flow: DataFlow, tokens: float | None = None) -> Workload:
    """Return a workload with what feeds it, where any of it was said; `tokens` are those of the dataset."""
    loading = make_loading(data_flow, workload.sequence_tokens, token_bytes(workload.architecture), tokens)
    return replace(workload, loading=loading) if loading else workload


def adapted_share(workload: Workload) -> float:
    """Return the share of the layers' matrices that carry adapters, by parameters."""
    if workload.lora_targets == "all":
        return 1.0
    shape = transformer.stack([workload.architecture])
    attention = float(transformer.attention_matrix_parameters(shape)[0]) * workload.architecture.layers
    share = min(1.0, attention / float(transformer.compute_parameters(shape)[0]))
    return share if workload.lora_targets == "attention" else 1 - share
