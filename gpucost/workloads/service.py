"""How a model can be spread over each kind of node, and how fast each way is: physics only, no prices.

For every distinct accelerator and node, the layouts of one replica are listed, each is tried at a ladder of batches,
and the best batch within memory and the latency targets is kept. What cannot be is kept too, with its reason.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple, replace

from gpucost.errors import UsageError
from gpucost.market.supply import Key
from gpucost.physics.calibration import width_of
from gpucost.physics.columns import ColumnStruct, Flags, Floats, Integers
from gpucost.physics.serving import steps as serving
from gpucost.physics.serving.calibration import HOST_BOUND_FRACTION, PREFIX_CACHING, doubts
from gpucost.physics.serving.cases import FORMATS, Options, ServedReplica, ServingCase, build, link, native_format
from gpucost.physics.serving.efficiency import ENGINES
from gpucost.physics.serving.roof import decode_roof
from gpucost.types import Accelerator, Architecture, ServedAs
from gpucost.units import MS_PER_S
from gpucost.workloads.training import one_chip

# Batches tried: 1, 1.41, 2 … 4,096, and what memory holds.
LADDER = np.unique(np.round(2.0 ** np.arange(0, 12.5, 0.5)))
_WIDE_RANKS = (16, 32, 64)
# Requests at once on one accelerator: the most that two sources measured; larger batches would rest on nothing.
_MEASURED_BATCH_PER_GPU = 256.0
_LOCAL_USERS = 1.0  # whom a local engine serves at once, as people run it
# assumed: half the logarithmic range of a replica's measured speed, from week to week and node to node
_OWN_WIDTH = 0.09
WIDEST = np.log(4.0)  # half a range, in logarithms: assumed, doubts that add up beyond it are one doubt
_NODES = (2, 3, 4)  # over which the stages of one replica follow each other
NODE_GPUS = 8  # a replica spreads over whole nodes of at least so many; smaller machines hold it whole
REASONS = ("", "memory", "ttft", "tpot", "level")


_JOINED_STEPS = 1.5  # that a prompt waits where others decode: half of the running one, and the one it is read in
_FULL_LOAD = 0.999  # share of capacity from which a queue grows without end

DEFAULT_PROMPT_TOKENS, DEFAULT_OUTPUT_TOKENS = 1024.0, 256.0  # of a request of which nobody says more
# assumed: what a reader of chat accepts, who reads some 5 words a second; the first token within a breath
USUAL_TTFT_MS, USUAL_TPOT_MS = 2000.0, 50.0


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
    prefix_hit_fraction: float | None = None  # nothing is taken as cached where nobody says
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

    def written_in(self, architecture: Architecture, chip: Accelerator) -> str:
        """Return the format of the weights: the one asked for, else as people serve it on such chips, or published."""
        if self.precision != "auto":
            return self.precision
        usual = architecture.served_as[0].precision if architecture.served_as else ""
        return usual if usual and _multiplies(chip, usual) else native_format(architecture)


class Plans(Struct, frozen=True):
    """Every layout of one replica on every key, at its best batch; one element per plan."""

    deployments: list[ServedReplica]
    case: ServingCase
    key: Integers  # index of the key in the supply
    gpus: Floats  # accelerators of one replica
    reason: Integers  # code into REASONS; 0 where it serves
    sequences: Floats
    capacity: Floats
    in_flight: Floats  # requests at once to which the times below belong: the full batch, unless a load is asked
    output_tokens_per_s: Floats  # of one replica, at saturation
    tpot_s: Floats
    ttft_s: Floats  # without a queue
    queue_s: Floats  # before the first token: nothing without a load, infinite beyond capacity
    prompt_time_fraction: Floats
    step: serving.StepParts
    ladder: "AtBatches"
    width: Floats  # half the logarithmic width of the 80 % range of the throughput
    tight: Flags  # fits only with a larger share of the memory than engines take by default, and short passes
    level: Any = None  # what was simulated of replicas that a service level sizes (gpucost.serving.load)

    def __len__(self) -> int:
        return len(self.deployments)

    @property
    def serves(self) -> Flags:
        """Whether the model fits and meets the targets."""
        served: Flags = self.reason == 0
        return served


def layouts(
    architecture: Architecture, key: Key, largest: int, stated: int | None = None
) -> list[tuple[int, int, int]]:
    """Return the layouts of one replica as tensor, attention-data and pipeline degrees; `stated` is how many it has.

    Tensor groups stay within the scale-up domain or the node; attention data parallel is for experts, which can be
    spread over any number that the links join; where the model needs several nodes, stages follow each other. A machine
    of fewer than eight holds a replica whole.
    """
    node = max(key.system.gpus, key.system.scaleup_gpus if key.system.scaleup_gb_per_s else 1)
    # Tensor groups of more than 16 are not usual, whatever the links: latencies of all-reduces eat what they save.
    degrees = [t for t in (1, 2, 4, 8, *_WIDE_RANKS) if t <= min(node, largest)]
    degrees_list = [(t, 1, 1) for t in degrees if architecture.heads % t == 0 and t <= 16]
    if architecture.experts:
        wide = _WIDE_RANKS if key.system.scaleout_gb_per_s and largest > node >= NODE_GPUS else ()
        linked = largest if key.system.scaleout_gb_per_s else min(node, largest)
        people = [served.data for served in architecture.served_as] if wide else []  # as it is known to be served
        spread = sorted({*degrees, *(w for w in (*wide, *people, stated or 0) if w <= linked)})
        degrees_list += [(1, d, 1) for d in spread if d > 1]
    if key.system.scaleout_gb_per_s and largest > node >= NODE_GPUS and architecture.heads % NODE_GPUS == 0:
        stages = [p for p in _NODES if NODE_GPUS * p <= largest and p <= architecture.layers]
        degrees_list += [(NODE_GPUS, 1, p) for p in stages]
    return degrees_list


def largest_replica(key: Key) -> int:
    """Return the most accelerators that one replica may have: its node, its scale-up domain, or nodes on a network."""
    domain = max(key.system.gpus, key.system.scaleup_gpus)
    return domain if key.system.scaleout_gb_per_s is None else max(domain, key.system.gpus * _NODES[-1])


def _options_of(request: Service, count: int) -> Options:
    """Return the deployment's options as arrays."""

    def every(value: float) -> Floats:
        return np.full(count, float(value))

    return Options(
        every(request.prefix_hit_fraction or 0.0),
        every(request.draft_tokens),
        every(request.acceptance_fraction),
        every(request.draft_cost_fraction),
        every(request.offload_fraction),
        every(request.longer_tokens),
    )


class ReplicaLayouts(Struct, frozen=True):
    """Every layout of one replica on every key, whatever the lengths of requests and the targets."""

    deployments: list[ServedReplica]
    case: ServingCase
    key: Integers  # index of the key in the supply
    traits: dict[str, Flags]  # what makes the speed of each less certain
    timed: ServingCase  # each once of those that nothing but a name tells apart
    same: Integers  # which of them each layout is

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


_Layouts = tuple[ReplicaLayouts, tuple[Any, ...]]  # with what the names below stand for, so that ids stay taken
_LAYOUTS_KEPT = 64
_layouts: OrderedDict[tuple[Any, ...], _Layouts] = OrderedDict()
_layouts_lock = Lock()


def replica_layouts(
    architecture: Architecture,
    keys: Sequence[Key],
    largest: Mapping[int, int],
    request: Service,
    values: Mapping[str, float],
) -> ReplicaLayouts:
    """Return the layouts of every key. `largest` maps the keys in use to the largest job that an offer can host.

    Requests differ in lengths and targets more often than in what layouts hang on: those of late are kept.
    """
    choices = (request.precision, request.cache, request.engine, request.server, request.replica_gpus)
    shares = [float(column[0]) for column in astuple(_options_of(request, 1))]
    name = (id(architecture), id(keys), id(values), tuple(largest.items()), *choices, *shares)
    with _layouts_lock:
        if name in _layouts:
            _layouts.move_to_end(name)
            return _layouts[name][0]
    layouts = _replica_layouts(architecture, keys, largest, request, values)
    with _layouts_lock:
        _layouts[name] = layouts, (architecture, keys, values)
        while len(_layouts) > _LAYOUTS_KEPT:
            _layouts.popitem(last=False)
    return layouts


def _replica_layouts(
    architecture: Architecture,
    keys: Sequence[Key],
    largest: Mapping[int, int],
    request: Service,
    values: Mapping[str, float],
) -> ReplicaLayouts:
    deployments: list[ServedReplica] = []
    key_of_each = []
    for index, limit in largest.items():
        key = keys[index]
        form = request.written_in(architecture, key.accelerator)
        for tensor, data, pipeline in layouts(architecture, key, limit, request.replica_gpus):
            if request.replica_gpus not in (None, tensor * data * pipeline):
                continue
            # attention data parallel spreads whole experts over its ranks, tensor parallelism slices of each
            expert = tensor * data if architecture.experts and data > 1 else 1
            chip, system, cache = key.accelerator, key.system, request.cache
            server = request.server or "default"  # what nobody says is a server as it comes
            replica = (request.engine, form, cache, tensor, data, pipeline, expert, server)
            deployments.append(ServedReplica(architecture, chip, system, *replica))
            key_of_each.append(index)
    case, _ = build(deployments, values, _options_of(request, len(deployments)))
    doubted = [doubts(d) for d in deployments]
    names = doubted[0] if doubted else ()
    traits = {name: np.array([doubt[name] for doubt in doubted], dtype=np.bool_) for name in names}

    # What tells the speeds of one model's replicas apart; of a node only what links its accelerators. Many sellers have
    # the same machine, which is timed once.
    numbers: dict[Any, int] = {}
    same = []
    for d in deployments:
        linked = link(d.accelerator, d.system, d.tensor * d.data)
        timed_by = (d.accelerator.id, d.tensor, d.data, d.pipeline, d.expert, linked)
        same.append(numbers.setdefault(timed_by, len(numbers)))
    same_row = np.array(same, dtype=np.int64)
    timed = case.take(np.unique(same_row, return_index=True)[1])
    return ReplicaLayouts(deployments, case, np.array(key_of_each, dtype=np.int64), traits, timed, same_row)


def evaluate(
    architecture: Architecture,
    keys: Sequence[Key],
    largest: Mapping[int, int],
    request: Service,
    values: Mapping[str, float],
    ranges: Mapping[str, float],
) -> Plans:
    """Return every plan at its best batch. `largest` maps the keys in use to the largest job that an offer can host."""
    replicas = replica_layouts(architecture, keys, largest, request, values)
    case, timed, same, count = replicas.case, replicas.timed, replicas.same, len(replicas)
    prompt, output = np.full(len(timed), request.prompt_tokens), np.full(len(timed), request.output_tokens)

    # The step of the ladder with the most throughput in time; the first where none is in time.
    climbed = climb(timed, prompt, output)
    in_time = climbed.tpot_s * MS_PER_S <= (request.tpot_ms or np.inf)
    best = np.argmax(np.where(in_time, climbed.output_tokens_per_s, -1.0), axis=-1)
    sequences = climbed.sequences[np.arange(len(timed)), best]
    at = serving.steady(timed, sequences, prompt, output)
    at = replace(at, **{name: getattr(at, name).take(same) for name in at.__struct_fields__})
    usual = serving.usual_sequences(timed, prompt, output)[same]
    ladder, sequences, meets = climbed.take(same), sequences[same], np.any(in_time, axis=-1)[same]

    # Why a replica does not serve, in the order of REASONS: what does not fit has no time to be late.
    first_ok = ladder.ttft_s * MS_PER_S <= (request.ttft_ms or np.inf)
    reason = np.where(ladder.capacity < 1, 1, np.where(~first_ok, 2, np.where(~meets, 3, 0)))

    # Half the logarithmic width of the range, by the traits that validation found to matter.
    unstated_prefix = request.prefix_hit_fraction is None and request.engine in PREFIX_CACHING
    traits = {
        "saturation": np.full(count, True),
        "host_bound": _host_bound(at.step),
        "unstated_server": np.full(count, request.server is None),
        "unstated_prefix": np.full(count, unstated_prefix),
        **replicas.traits,
    }
    plans = Plans(
        replicas.deployments,
        case,
        replicas.key,
        case.placement.gpus,
        reason,
        sequences,
        ladder.capacity,
        sequences,
        at.output_tokens_per_s * case.rates.saturation,
        at.tpot_s,
        at.ttft_s,
        np.zeros(count),
        at.prompt_time_fraction,
        at.step,
        ladder,
        np.minimum(width_of(traits, ranges), WIDEST),
        (ladder.capacity >= 1) & (usual < 1),
    )
    return plans if request.own_speed is None else _with_own(plans, request, request.own_speed)


def _with_own(plans: Plans, request: Service, speed: float) -> Plans:
    """Return plans at a measured speed of one replica: memory and first tokens stay, steps keep their shares.

    A speed that is not of one chip, or that no software can reach on it, is refused.
    """
    if not len(plans):
        return plans
    one_chip(request.own_flag, [d.accelerator for d in plans.deployments])
    d = plans.deployments[0]
    at_once = (request.own_concurrency or np.inf) * (1 + request.draft_tokens)  # drafted tokens are scored like others
    roof, roof_name = decode_roof(d.architecture, d.accelerator, d.format, d.gpus, d.engine).at(at_once)
    if speed > roof:
        raise UsageError(
            f"{request.own_flag}: {d.gpus} × {d.accelerator.id} can decode at most {roof:,.0f} tokens/s ({roof_name}"
            f" roof), not {speed:,.0f}. No software can exceed the roof."
        )
    ratio = plans.output_tokens_per_s / speed
    step = type(plans.step)(**{part: getattr(plans.step, part) * ratio for part in plans.step.names()})
    # the time per token as measured, else the predicted one × predicted ÷ measured
    measured_s = request.own_tpot_ms / MS_PER_S if request.own_tpot_ms else None
    tpot_s = plans.tpot_s * ratio if measured_s is None else np.full(len(plans), measured_s)
    too_slow = tpot_s * MS_PER_S > (request.tpot_ms or np.inf)
    in_flight = np.full(len(plans), float(request.own_concurrency)) if request.own_concurrency else plans.sequences
    return replace(
        plans,
        output_tokens_per_s=np.full(len(plans), speed),
        tpot_s=tpot_s,
        sequences=in_flight,
        in_flight=in_flight,
        step=step,
        width=np.full(len(plans), _OWN_WIDTH),
        reason=np.where((plans.reason == 0) & too_slow, REASONS.index("tpot"), plans.reason),
    )


class AtLoad(ColumnStruct, frozen=True):
    """Replicas at the requests that a load keeps in flight."""

    in_flight: Floats
    tpot_s: Floats
    queue_s: Floats
    prompt_time_fraction: Floats  # of the time that a replica is busy
    step: serving.StepParts


def requests_in_flight(sequences: Floats, tpot_s: Floats, tokens_per_s: Floats, most: Floats) -> Floats:
    """Return the requests that a load keeps in flight on one replica: Little's law, n = tokens/s · TPOT(n).

    TPOT is read on the batch curve, whose batches are the last axis; below one request it is that of one. A load that
    no batch up to `most` carries fills them all. 100 tokens a second at 10 ms + 1 ms a request: n = 1 + n/10.

    >>> batches = np.array([[1.0, 4.0, 16.0]])
    >>> requests_in_flight(batches, 0.01 + 0.001 * batches, np.array([100.0]), np.array([16.0])).round(3)
    array([1.111])
    """
    beyond = tokens_per_s[..., None] * tpot_s - sequences  # what would be in flight beyond each batch
    carried = beyond <= 0
    after = np.argmax(carried, axis=-1)[..., None]
    before = np.maximum(after - 1, 0)

    def at(values: Floats, place: Integers) -> Floats:
        return np.take_along_axis(values, place, axis=-1)[..., 0]

    low, high = at(beyond, before), at(beyond, after)
    share = low / np.where(low == high, 1.0, low - high)
    between = at(sequences, before) + share * (at(sequences, after) - at(sequences, before))
    in_flight = np.where(after[..., 0] == 0, tokens_per_s * tpot_s[..., 0], between)
    return np.where(carried.any(axis=-1), np.minimum(in_flight, most), most)


def at_load(
    case: ServingCase,
    prompt: Floats,
    output: Floats,
    ttft_s: Floats,
    in_flight: Floats,
    load: Floats,
    most: Floats,
    slower: Floats,
) -> AtLoad:
    """Return replicas with so many requests in flight, at a load that is a share of what they carry.

    A prompt waits for one of `most` places, behind other prompts, for the end of the running step, half of one on
    average, and is read in a step with the tokens of the others. Beyond capacity the queue grows without end. `slower`
    is the ratio of a measured time per token to the predicted one.
    """
    running = np.maximum(in_flight, 1.0)  # whoever runs is one of them
    at = serving.steady(case, running, prompt, output, ttft_s=ttft_s)
    busy = np.minimum(in_flight, 1.0)
    tpot = at.tpot_s * slower
    step = type(at.step)(**{part: getattr(at.step, part) * slower for part in at.step.names()})
    place = serving.waiting_s(load, most, tpot * output)
    of_prompts_s = ttft_s - case.rates.first_ms / MS_PER_S  # what a server adds before the engine keeps nobody waiting
    behind = serving.prompt_wait_s(busy, at.prompt_time_fraction, of_prompts_s)
    queue = place + behind + busy * _JOINED_STEPS * step.total_s
    return AtLoad(in_flight, tpot, np.where(load < _FULL_LOAD, queue, np.inf), at.prompt_time_fraction, step)


def climb(case: ServingCase, prompt: Floats, output: Floats) -> AtBatches:
    """Return replicas at every batch of the ladder.

    The ladder is the same for all cases, cut at what memory holds, so that a tighter target only removes steps.
    """
    capacity = serving.capacity_sequences(case, prompt, output)
    limit = np.minimum(capacity, np.minimum(case.rates.batch_limit * case.placement.data, case.rates.seats))
    limit = np.minimum(limit, _MEASURED_BATCH_PER_GPU * case.placement.gpus)
    limit = np.where(case.rates.frugal, np.minimum(limit, _LOCAL_USERS), limit)
    ttft_s = serving.first_token_s(case, prompt)
    # of the steps that memory cuts to one batch the first is timed
    steps = 1 + np.searchsorted(LADDER[:-1], np.maximum(limit, 1.0), side="left")
    first = np.cumsum(steps) - steps
    rows = np.repeat(np.arange(len(limit)), steps)
    step = np.arange(len(rows)) - first[rows]  # of the ladder, counted within each case
    sequences = np.minimum(LADDER[step], np.maximum(limit, 1.0)[rows])
    at = serving.steady(case.take(rows), sequences, prompt[rows], output[rows], ttft_s=ttft_s[rows])
    # back to a table of cases and steps, the last one timed standing for all beyond it
    timed = first[:, None] + np.minimum(np.arange(len(LADDER)), steps[:, None] - 1)
    return AtBatches(
        sequences[timed],
        at.tpot_s[timed],
        at.output_tokens_per_s[timed],
        at.prompt_time_fraction[timed],
        _host_bound(at.step)[timed],
        capacity,
        ttft_s,
    )


def _host_bound(step: serving.StepParts) -> Flags:
    """Tell which steps the host takes much of."""
    bound: Flags = np.maximum(step.host_s, 0.0) / step.total_s > HOST_BOUND_FRACTION
    return bound


def format_note(architecture: Architecture, request: Service) -> str:
    """Say in which format the weights are, by whose choice, and what encoders stand beside them."""
    encoders = ""
    if architecture.tower_parameters:
        image = f", for which an image is {architecture.image_tokens:,} tokens" if architecture.image_tokens else ""
        encoders = f"; plus encoders of {architecture.tower_parameters / 1e9:.2g} B in 16 bits{image}"
    if request.precision != "auto":
        return f"weights in {request.precision}, as requested{encoders}"
    form = native_format(architecture)
    if not architecture.served_as:
        usual = "; fp8 is usual in production" if form == "bf16" else ""
        return f"weights in {form}, as published{usual}{encoders}"
    first = architecture.served_as[0]
    published = "as published" if first.precision == form else f"{form} on chips without it, as published"
    ways = " or ".join(
        f"{way.gpus} × {way.accelerator_id} ({_degrees(way)}; {way.source_id})" for way in architecture.served_as
    )
    return f"weights in {first.precision}, {published}{encoders}. People run it on {ways}"


def _degrees(way: ServedAs) -> str:
    """Write the degrees of a replica.

    >>> _degrees(ServedAs("h200", "fp8", 8, 1, 2, "guide")), _degrees(ServedAs("h100", "mxfp4", 1, 1, 1, "guide"))
    ('tensor 8, pipeline 2', 'one GPU')
    """
    degrees = {"tensor": way.tensor, "experts over": way.data, "pipeline": way.pipeline}
    return ", ".join(f"{name} {degree}" for name, degree in degrees.items() if degree > 1) or "one GPU"


def emulated(deployment: ServedReplica) -> bool:
    """Tell whether a chip lacks the arithmetic of the format, so that weights are widened in the kernel."""
    by_local = FORMATS[deployment.format].multiply == "int8" and ENGINES[deployment.engine] == "local"
    return not _multiplies(deployment.accelerator, deployment.format) and not by_local


def _multiplies(chip: Accelerator, form: str) -> bool:
    """Tell whether a chip has arithmetic for a format of weights."""
    peaks = {"fp8": chip.fp8_tflops, "fp4": chip.fp4_tflops, "mxfp4": chip.fp4_tflops, "int8": chip.int8_tflops}
    return bool(peaks.get(FORMATS[form].multiply, 1.0))
