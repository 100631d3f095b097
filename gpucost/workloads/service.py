"""How a model can be spread over each kind of node, and how fast each way is: physics only, no prices.

For every distinct accelerator and node, the layouts of one replica are listed, each is tried at a ladder of batches,
and the best batch within memory and the latency targets is kept. What cannot be is kept too, with its reason.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpucost.errors import UsageError
from gpucost.market.supply import Key
from gpucost.physics.calibration import width_of
from gpucost.physics.columns import ColumnStruct, Flags, Floats, Integers
from gpucost.physics.serving import steps as serving
from gpucost.physics.serving.calibration import HOST_BOUND_FRACTION, doubts
from gpucost.physics.serving.cases import FORMATS, Options, ServedReplica, ServingCase, build, native_format
from gpucost.physics.serving.efficiency import ENGINES
from gpucost.physics.serving.roof import decode_roof
from gpucost.types import Architecture
from gpucost.units import MS_PER_S
from gpucost.workloads.training import one_chip

# Batches tried: 1, 1.41, 2 … 4,096, and what memory holds.
LADDER = np.unique(np.round(2.0 ** np.arange(0, 12.5, 0.5)))
WIDE_RANKS = (16, 32, 64)
# Requests at once on one accelerator: the most that two sources measured; larger batches would rest on nothing.
MEASURED_BATCH_PER_GPU = 256.0
LOCAL_USERS = 1.0  # whom a local engine serves at once, as people run it
OWN_WIDTH = (
    0.09  # assumed: half the logarithmic range of a replica's measured speed, from week to week and node to node
)
WIDEST = np.log(4.0)  # half a range, in logarithms: assumed, doubts that add up beyond it are one doubt
NODES = (2, 3, 4)  # over which the stages of one replica follow each other
NODE_GPUS = 8  # experts spread over nodes of at least so many
REASONS = ("", "memory", "ttft", "tpot")


class Service(Struct, frozen=True, kw_only=True):
    """What physics must know of a service: how long requests are, how fast, in what, by which engine."""

    prompt_tokens: float
    output_tokens: float
    longer_tokens: float = 0.0  # that a running request holds beyond mean prompt and half the mean output
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    precision: str = "auto"
    cache: str = "auto"
    engine: str = "vllm"
    server: str | None = None  # default, tuned or offline; a server as it comes where nobody says
    prefix_hit_fraction: float = 0.0
    draft_tokens: int = 0
    acceptance_fraction: float = 0.0
    draft_cost_fraction: float = 0.0
    offload_fraction: float = 0.0
    own_output_tokens_per_s: float | None = None  # of one replica, measured at saturation
    own_tpot_ms: float | None = None  # of one replica that runs own_concurrency requests
    own_concurrency: int | None = None
    replica_gpus: int | None = None

    @property
    def own_speed(self) -> float | None:
        """Output tokens per second of one replica as measured: stated, or requests at once ÷ time per token."""
        if self.own_tpot_ms is not None and self.own_concurrency is not None:
            return self.own_concurrency / self.own_tpot_ms * MS_PER_S
        return self.own_output_tokens_per_s

    @property
    def own_flag(self) -> str:
        """The option that a measured speed was given by."""
        return "--own-tpot" if self.own_tpot_ms is not None else "--own-output-tokens-per-s"

    @property
    def tokens_per_request(self) -> float:
        """Prompt and output of one request."""
        return self.prompt_tokens + self.output_tokens

    def written_in(self, architecture: Architecture) -> str:
        """Return the format of the weights: the one asked for, else as published."""
        return native_format(architecture) if self.precision == "auto" else self.precision


class Plans(Struct, frozen=True):
    """Every layout of one replica on every key, at its best batch; one element per plan."""

    deployments: list[ServedReplica]
    case: ServingCase
    key: Integers  # index of the key in the supply
    gpus: Floats  # accelerators of one replica
    reason: Integers  # code into REASONS; 0 where it serves
    sequences: Floats
    capacity: Floats
    output_tokens_per_s: Floats  # of one replica, at saturation
    tpot_s: Floats
    ttft_s: Floats
    prompt_time_fraction: Floats
    step: serving.StepParts
    width: Floats  # half the logarithmic width of the 80 % range of the throughput
    tight: Flags  # fits only with a larger share of the memory than engines take by default, and short passes

    def __len__(self) -> int:
        return len(self.deployments)

    @property
    def serves(self) -> Flags:
        """Whether the model fits and meets the targets."""
        served: Flags = self.reason == 0
        return served


def layouts(architecture: Architecture, key: Key, largest: int) -> list[tuple[int, int, int]]:
    """Return the layouts of one replica as tensor, attention-data and pipeline degrees.

    Tensor groups stay within the scale-up domain or the node; attention data parallel is for experts; where the model
    needs several nodes, stages follow each other over the network.
    """
    node = max(key.system.gpus, key.system.scaleup_gpus if key.system.scaleup_gb_per_s else 1)
    degrees = [t for t in (1, 2, 4, 8, *WIDE_RANKS) if t <= min(node, largest)]
    degrees_list = [(t, 1, 1) for t in degrees if architecture.heads % t == 0 and t <= 16]
    if architecture.experts:
        wide = WIDE_RANKS if key.system.scaleout_gb_per_s and largest > node >= NODE_GPUS else ()
        degrees_list += [(1, d, 1) for d in sorted({*degrees, *(w for w in wide if w <= largest)}) if d > 1]
    if key.system.scaleout_gb_per_s and largest > node:
        widest = max((t for t in degrees if architecture.heads % t == 0 and t <= 8), default=1)
        stages = [p for p in NODES if widest * p <= largest and p <= architecture.layers]
        degrees_list += [(widest, 1, p) for p in stages if widest >= min(node, 8)]
    return degrees_list


def largest_replica(key: Key) -> int:
    """Return the most accelerators that one replica may have: its node, its scale-up domain, or nodes on a network."""
    domain = max(key.system.gpus, key.system.scaleup_gpus)
    return domain if key.system.scaleout_gb_per_s is None else max(domain, key.system.gpus * NODES[-1])


def options_of(request: Service, count: int) -> Options:
    """Return the deployment's options as arrays."""

    def every(value: float) -> Floats:
        return np.full(count, float(value))

    return Options(
        every(request.prefix_hit_fraction),
        every(request.draft_tokens),
        every(request.acceptance_fraction),
        every(request.draft_cost_fraction),
        every(request.offload_fraction),
        every(request.longer_tokens),
    )


def server_of(request: Service) -> str:
    """Return how a model is served: a measured speed is one's own, and what nobody says is a server as it comes."""
    return request.server or "default"


def list_deployments(
    architecture: Architecture, keys: Sequence[Key], largest: Mapping[int, int], request: Service
) -> tuple[list[ServedReplica], Integers]:
    """Return the deployments of every key that an offer uses, and the key of each."""
    form = request.written_in(architecture)
    deployments, of = [], []
    for index, limit in largest.items():
        key = keys[index]
        for tensor, data, pipeline in layouts(architecture, key, limit):
            if request.replica_gpus not in (None, tensor * data * pipeline):
                continue
            expert = tensor * data if architecture.experts and data > 1 else 1
            deployments.append(
                ServedReplica(
                    architecture,
                    key.accelerator,
                    key.system,
                    request.engine,
                    form,
                    request.cache,
                    tensor,
                    data,
                    pipeline,
                    expert,
                    server_of(request),
                )
            )
            of.append(index)
    return deployments, np.array(of, dtype=np.int64)


class ReplicaLayouts(Struct, frozen=True):
    """Every layout of one replica on every key, whatever the lengths of requests and the targets."""

    deployments: list[ServedReplica]
    case: ServingCase
    key: Integers  # index of the key in the supply
    traits: dict[str, Flags]  # what makes the speed of each less certain

    def __len__(self) -> int:
        return len(self.deployments)


class AtBatches(ColumnStruct, frozen=True):
    """Replicas at every batch of the ladder, which is the last axis; memory and first tokens do not hang on it."""

    sequences: Floats
    tpot_s: Floats
    output_tokens_per_s: Floats  # of one replica, at saturation
    prompt_time_fraction: Floats
    host_bound: Flags
    capacity: Floats
    ttft_s: Floats


def replica_layouts(
    architecture: Architecture,
    keys: Sequence[Key],
    largest: Mapping[int, int],
    request: Service,
    values: Mapping[str, float],
) -> ReplicaLayouts:
    """Return the layouts of every key. `largest` maps the keys in use to the largest job that an offer can host."""
    deployments, of = list_deployments(architecture, keys, largest, request)
    case, _ = build(deployments, values, options_of(request, len(deployments)))
    doubted = [doubts(d) for d in deployments]
    names = doubted[0] if doubted else ()
    traits = {name: np.array([one[name] for one in doubted], dtype=np.bool_) for name in names}
    return ReplicaLayouts(deployments, case, of, traits)


def evaluate(
    architecture: Architecture,
    keys: Sequence[Key],
    largest: Mapping[int, int],
    request: Service,
    values: Mapping[str, float],
    ranges: Mapping[str, float],
) -> Plans:
    """Return every plan at its best batch. `largest` maps the keys in use to the largest job that an offer can host."""
    found = replica_layouts(architecture, keys, largest, request, values)
    case, count = found.case, len(found)
    prompt, output = np.full(count, request.prompt_tokens), np.full(count, request.output_tokens)
    ladder = climb(case, prompt, output)
    best, meets = fastest(ladder.tpot_s, ladder.output_tokens_per_s, np.full(count, request.tpot_ms or np.inf))
    sequences = ladder.sequences[np.arange(count), best]
    at = serving.steady(case, sequences, prompt, output)
    plans = Plans(
        found.deployments,
        case,
        found.key,
        case.placement.gpus,
        reasons(ladder.capacity, ladder.ttft_s, meets, np.full(count, request.ttft_ms or np.inf)),
        sequences,
        ladder.capacity,
        at.output_tokens_per_s * case.rates.saturation,
        at.tpot_s,
        at.ttft_s,
        at.prompt_time_fraction,
        at.step,
        widths(found.traits, host_bound(at.step), ranges, stated_server=request.server is not None),
        (ladder.capacity >= 1) & (serving.usual_sequences(case, prompt, output) < 1),
    )
    return plans if request.own_speed is None else with_own(plans, request, request.own_speed)


def with_own(plans: Plans, request: Service, speed: float) -> Plans:
    """Return plans at a measured speed of one replica: memory and first tokens stay, steps keep their shares."""
    if not len(plans):
        return plans
    refuse_own(plans.deployments, request, speed)
    ratio = plans.output_tokens_per_s / speed
    step = type(plans.step)(**{part: getattr(plans.step, part) * ratio for part in plans.step.names()})
    tpot = own_tpot_s(request, plans.tpot_s, ratio)
    return replace(
        plans,
        output_tokens_per_s=np.full(len(plans), speed),
        tpot_s=tpot,
        sequences=np.full(len(plans), float(request.own_concurrency)) if request.own_concurrency else plans.sequences,
        step=step,
        width=np.full(len(plans), OWN_WIDTH),
        reason=late(plans.reason, tpot, request.tpot_ms or np.inf),
    )


def refuse_own(deployments: Sequence[ServedReplica], request: Service, speed: float) -> None:
    """Refuse a measured speed that is not of one chip, or that no software can reach on it."""
    name = request.own_flag
    one_chip(name, [d.accelerator for d in deployments])
    d = deployments[0]
    at_once = (request.own_concurrency or np.inf) * (1 + request.draft_tokens)
    roof, roof_name = decode_roof(d.architecture, d.accelerator, d.format, d.gpus, d.engine).at(at_once)
    if speed > roof:
        raise UsageError(
            f"{name}: {d.gpus} × {d.accelerator.id} can decode at most {roof:,.0f} tokens/s ({roof_name} roof), not"
            f" {speed:,.0f}. No software can exceed the roof."
        )


def own_tpot_s(request: Service, tpot_s: Floats, ratio: Floats) -> Floats:
    """Return the time per token at a measured speed: as measured, else the predicted one × predicted ÷ measured."""
    return np.full(tpot_s.shape, request.own_tpot_ms / MS_PER_S) if request.own_tpot_ms else tpot_s * ratio


def late(reason: Integers, tpot_s: Floats, tpot_ms: Floats | float) -> Integers:
    """Return the reasons of plans, of which those that serve may be too slow at their measured speed."""
    return np.where((reason == 0) & (tpot_s * MS_PER_S > tpot_ms), REASONS.index("tpot"), reason)


def climb(case: ServingCase, prompt: Floats, output: Floats) -> AtBatches:
    """Return replicas at every batch of the ladder.

    The ladder is the same for all cases, cut at what memory holds, so that a tighter target only removes steps.
    """
    capacity = serving.capacity_sequences(case, prompt, output)
    limit = np.minimum(capacity, np.minimum(case.rates.batch_limit * case.placement.data, case.rates.seats))
    limit = np.minimum(limit, MEASURED_BATCH_PER_GPU * case.placement.gpus)
    limit = np.where(case.rates.frugal, np.minimum(limit, LOCAL_USERS), limit)
    ttft_s = serving.prompt_s(case, prompt)
    # of the steps that memory cuts to one batch the first is timed
    steps = 1 + np.searchsorted(LADDER[:-1], np.maximum(limit, 1.0), side="left")
    first = np.cumsum(steps) - steps
    rows = np.repeat(np.arange(len(limit)), steps)
    step = np.arange(len(rows)) - first[rows]
    sequences = np.minimum(LADDER[step], np.maximum(limit, 1.0)[rows])
    at = serving.steady(case.take(rows), sequences, prompt[rows], output[rows], ttft_s=ttft_s[rows])
    timed = first[:, None] + np.minimum(np.arange(len(LADDER)), steps[:, None] - 1)
    return AtBatches(
        sequences[timed],
        at.tpot_s[timed],
        at.output_tokens_per_s[timed],
        at.prompt_time_fraction[timed],
        host_bound(at.step)[timed],
        capacity,
        ttft_s,
    )


def fastest(tpot_s: Floats, output_tokens_per_s: Floats, tpot_ms: Floats) -> tuple[Integers, Flags]:
    """Return the step of a ladder with the most throughput in time, and whether any is: the first where none is."""
    meets = tpot_s * MS_PER_S <= tpot_ms[..., None]
    best = np.argmax(np.where(meets, output_tokens_per_s, -1.0), axis=-1)
    return best, np.any(meets, axis=-1)


def reasons(capacity: Floats, ttft_s: Floats, meets: Flags, ttft_ms: Floats) -> Integers:
    """Return why replicas do not serve, as codes into REASONS; `meets` tells whether any batch is in time."""
    first_ok = ttft_s * MS_PER_S <= ttft_ms
    reason: Integers = np.where(capacity < 1, 1, np.where(~first_ok, 2, np.where(~meets, 3, 0)))
    return reason


def host_bound(step: serving.StepParts) -> Flags:
    """Tell which steps the host takes much of."""
    bound: Flags = np.maximum(step.host_s, 0.0) / step.total_s > HOST_BOUND_FRACTION
    return bound


def widths(traits: Mapping[str, Flags], by_host: Flags, ranges: Mapping[str, float], *, stated_server: bool) -> Floats:
    """Return half the logarithmic width of each plan's 80 % range, by the traits that validation found to matter."""
    count = len(by_host)
    named = {
        "saturation": np.full(count, True),
        "host_bound": by_host,
        "unstated_server": np.full(count, not stated_server),
        **traits,
    }
    return np.minimum(width_of(named, ranges), WIDEST)


def format_note(architecture: Architecture, request: Service) -> str:
    """Say in which format the weights are, by whose choice, and what encoders stand beside them."""
    encoders = _beside_note(architecture)
    if request.precision != "auto":
        return f"weights in {request.precision}, as requested{encoders}"
    form = native_format(architecture)
    usual = "; fp8 is usual in production" if form == "bf16" else ""
    return f"weights in {form}, as published{usual}{encoders}"


def _beside_note(architecture: Architecture) -> str:
    if not architecture.tower_parameters:
        return ""
    image = f", for which an image is {architecture.image_tokens:,} tokens" if architecture.image_tokens else ""
    return f"; plus encoders of {architecture.tower_parameters / 1e9:.2g} B in 16 bits{image}"


def emulated(deployment: ServedReplica) -> bool:
    """Tell whether a chip lacks the arithmetic of the format, so that weights are widened in the kernel."""
    multiply = FORMATS[deployment.format].multiply
    a = deployment.accelerator
    if multiply == "fp8":
        return not a.fp8_tflops
    if multiply in ("fp4", "mxfp4"):
        return not a.fp4_tflops
    return multiply == "int8" and not a.int8_tflops and ENGINES[deployment.engine] != "local"
