"""Does a model fit: the job, the layouts that a GPU count allows, the changes that help, and the answer."""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from math import gcd, prod
from os import fspath
from threading import Lock
from typing import Any, NamedTuple, cast

import numpy as np
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from gpucost.answers import training as answers
from gpucost.answers.common import CitedSource, cited, frame
from gpucost.answers.training import Component, Everywhere, Fit, FitFigures, FitLayout, FitRow, SizeRow, Tried
from gpucost.catalog import Catalog
from gpucost.errors import GpuCostError, NothingFitsError, UsageError
from gpucost.gate import beside
from gpucost.market.facts import market_of
from gpucost.market.filters import usual
from gpucost.market.hires import cheapest
from gpucost.market.supply import Providers
from gpucost.physics.columns import RECOMPUTES, Flags, Integers, LayoutColumns, layout_columns
from gpucost.physics.hardware import half_precision
from gpucost.physics.training.defaults import DEFAULT_SEQUENCE, default_batch, default_sequence
from gpucost.physics.training.grid import CONTEXT_TOKENS, FOR_INFERENCE
from gpucost.physics.training.memory import (
    CONTEXT_BYTES,
    FRAGMENTATION_RATIO,
    LOGIT_BYTES,
    MOMENTS,
    MemoryColumns,
    holdings,
    in_flight,
    training_memory,
    usable_bytes,
)
from gpucost.physics.training.memory_activations import layer_bytes
from gpucost.physics.training.memory_recipe import (
    LORA,
    OPTIMIZERS,
    QLORA,
    RANGE_RATIOS,
    TRAINER,
    USUAL_STYLES,
    MemoryRecipe,
    memory_recipe,
)
from gpucost.physics.transformer import stack, total_parameters
from gpucost.types import Accelerator, Architecture, Layout, System
from gpucost.units import GB, counted, format_count
from gpucost.workloads.speeds import key_of
from gpucost.workloads.training import DEFAULT_RANK, too_long

# --- What is to fit: a model, a chip and a recipe, read from words and checked.

_AUTO = "auto"
_DEGREES = ("tensor", "pipeline", "context", "expert", "sharding")


class MemoryJob(Struct, frozen=True):
    """A training job whose memory is asked for; degrees that are not given are searched."""

    architecture: Architecture
    accelerator: Accelerator
    system: System
    gpus: int | None = None  # None: the fewest that fit
    method: str = "full"
    optimizer: str = "adamw"
    sequence_tokens: int = DEFAULT_SEQUENCE
    micro_batch: int = 1
    recompute: str = _AUTO
    loss_chunk_tokens: int = 0
    offload: str = "none"
    lora_rank: int = DEFAULT_RANK
    software: str = "fused"
    flash: bool = True
    degrees: dict[str, int] = field(default_factory=dict)  # stated ones: the others are searched

    def recipe(self) -> MemoryRecipe:
        """Return what the job keeps in memory."""
        return memory_recipe(
            self.sequence_tokens,
            method=self.method,
            style=self.software,
            optimizer=self.optimizer,
            adapter_rank=self.lora_rank,
            loss_chunk_tokens=self.loss_chunk_tokens,
            offload=self.offload,
        )


def read_job(catalog: Catalog, model: Any, gpu: str, *, system: str | None = None, **arguments: Any) -> MemoryJob:
    """Resolve names, and hold what was read of the arguments against the model."""
    key = key_of(catalog, gpu, system)
    if not key.accelerator.trains:
        raise UsageError(f"{key.accelerator.id} {FOR_INFERENCE}")
    architecture = model if isinstance(model, Architecture) else catalog.architecture(model)
    settings = {name: value for name, value in arguments.items() if value is not None}
    settings["sequence_tokens"] = settings.pop("sequence", None) or default_sequence(architecture)
    settings["loss_chunk_tokens"] = settings.pop("loss_chunk", 0)
    settings.setdefault("software", USUAL_STYLES[settings.get("method", "full")])
    degrees = {name: settings.pop(name) for name in _DEGREES if name in settings}
    machine_gpus = catalog.gpus_in(gpu)
    if not degrees and "gpus" not in settings and machine_gpus:  # a machine's name is so many of its chip
        settings["gpus"] = machine_gpus
    # refuse degrees that no layout can have
    a, gpus = architecture, settings.get("gpus")
    tensor, pipeline, expert = (degrees.get(name, 1) for name in ("tensor", "pipeline", "expert"))
    if a.heads % tensor:
        options = ", ".join(str(d) for d in range(1, min(a.heads, 64) + 1) if a.heads % d == 0)
        raise UsageError(f"tensor {tensor} does not divide the {a.heads} heads of {a.name}. Try one of {options}.")
    if pipeline > a.layers:
        raise UsageError(f"pipeline {pipeline} exceeds the {a.layers} layers of {a.name}.")
    if expert > 1 and (not a.experts or a.experts % expert):
        have = f"must divide its {a.experts} experts" if a.experts else "needs a mixture of experts"
        raise UsageError(f"expert {expert}: {a.name} {have}.")
    parallel = tensor * pipeline * degrees.get("context", 1)
    if gpus is not None and gpus % parallel:
        raise UsageError(
            f"tensor × pipeline × context = {parallel} does not divide {gpus} GPUs. Use a multiple of {parallel}."
        )
    return MemoryJob(architecture, key.accelerator, key.system, degrees=degrees, **settings)


# --- The layouts that a GPU count allows, their memory, and the simplest one that fits.

_LARGEST_GPUS = 16_384  # beyond any run that was published
_STEPS = (1, 2, 3, 4, 6)  # nodes, then these times powers of two
_MOST_STAGES = 16  # tried where none are given, as the search of speeds does


class Plan(Struct, frozen=True):
    """One layout with its memory, and whether it fits."""

    layout: Layout
    memory: MemoryColumns  # of length one
    usable_bytes: float

    @property
    def needed_bytes(self) -> float:
        """The allocator's peak on the fullest GPU."""
        return float(self.memory.total_bytes[0])

    @property
    def fits(self) -> bool:
        """Whether the peak stays within what is usable."""
        return self.needed_bytes <= self.usable_bytes


def _powers(limit: float) -> list[int]:
    """Return the powers of two up to a limit.

    >>> _powers(9)
    [1, 2, 4, 8]
    """
    return [1 << k for k in range(int(limit).bit_length()) if 1 << k <= limit]


def _combinations(job: MemoryJob, gpus: int) -> list[dict[str, int]]:
    """Return the combinations of degrees that multiply out on a count: those given, else powers of two."""
    a, fixed = job.architecture, job.degrees
    domain = max(job.system.scaleup_gpus, job.system.gpus)
    tensors = [t for t in _powers(min(domain, gpus, a.heads)) if a.heads % t == 0]
    pipelines = _powers(min(gpus, a.layers, _MOST_STAGES))
    experts = [e for e in _powers(min(gpus, a.experts)) if a.experts % e == 0] if a.experts else [1]
    long = job.sequence_tokens // CONTEXT_TOKENS  # a sequence shorter than this is not worth splitting
    contexts = _powers(min(gpus, long)) if long > 1 else [1]
    layouts = []
    for tensor, pipeline, expert, context in product(
        [fixed["tensor"]] if "tensor" in fixed else tensors,
        [fixed["pipeline"]] if "pipeline" in fixed else pipelines,
        [fixed["expert"]] if "expert" in fixed else experts,
        [fixed["context"]] if "context" in fixed else contexts,
    ):
        if gpus % (tensor * pipeline * context) or (gpus // pipeline) % expert:
            continue
        data = gpus // (tensor * pipeline * context)
        alone = data * context == 1
        # under a pipeline weights stay whole: each micro-batch would gather them again
        stages = [0] if alone else [1] if pipeline > 1 else [1, 3]
        stages = [fixed["sharding"]] if "sharding" in fixed else stages
        layouts += [
            {"tensor": tensor, "pipeline": pipeline, "context": context, "expert": expert, "data": data, "sharding": s}
            for s in stages
        ]
    return layouts


def best_plan(job: MemoryJob) -> Plan | None:
    """Return the simplest layout that fits on the fewest GPUs; where none fits, the one that needs least.

    Simplest: fewest pipeline stages and context ranks, then least recomputation, then fewest tensor and expert ranks,
    then least sharding. None where no combination multiplies out. Beyond a node, the whole nodes between the last
    count that is too small and the first that is not are halved until one node fewer does not fit.
    """
    node = max(job.system.gpus, 1)
    if job.gpus is not None:
        counts = [job.gpus]
    else:
        # every count within a node and growing numbers of nodes; stated degrees take multiples of their product, and
        # without a named network between nodes one scale-up domain is the end
        domain = max(job.system.scaleup_gpus, node)
        limit = _LARGEST_GPUS if job.system.scaleout_gb_per_s else domain
        nodes = {step << k for step in _STEPS for k in range(12)}
        group = prod(job.degrees.get(name, 1) for name in ("tensor", "pipeline", "context"))
        every = [*range(1, node + 1), *(group * times for times in _powers(node // group))]
        every += [node * n * least for n in nodes for least in {1, group // gcd(group, node)}]
        counts = sorted({count for count in every if count % group == 0 and count <= limit})
    plan = _plan_on(job, counts)
    if plan is None or not plan.fits or job.gpus is not None or plan.layout.gpus <= 2 * node or job.degrees:
        return plan
    # counts grow by nodes that were skipped: the fewest may stand between the last too small and the first that fits
    low, high = max(count for count in counts if count < plan.layout.gpus) // node, plan.layout.gpus // node
    while high - low > 1:
        middle = (low + high) // 2
        fewer = _plan_on(job, [middle * node])
        if fewer is not None and fewer.fits:
            plan, high = fewer, middle
        else:
            low = middle
    return plan


class _LaidOut(NamedTuple):
    """The layouts of some counts with their memory, and their order, the simplest first; the same on many chips."""

    layout: LayoutColumns
    memory: MemoryColumns
    order: Integers


_MOST_LAYOUTS = 1 << 18  # that stay for the next question, at some 200 bytes
_layouts_by_question: OrderedDict[tuple[Any, ...], _LaidOut | None] = OrderedDict()
_lock = Lock()


def _laid_out(job: MemoryJob, counts: Sequence[int]) -> _LaidOut | None:
    """Return the layouts of some counts and their memory, whatever the memory of the chip; None without any."""
    # the memory of the chip is no part of the question, so that chips of one kind of node share an answer
    of_job = {name: value for name, value in asdict(job).items() if name not in ("accelerator", "system", "gpus")}
    of_job["degrees"] = tuple(sorted(job.degrees.items()))
    key = (*of_job.values(), max(job.system.scaleup_gpus, job.system.gpus), *counts)
    with _lock:
        if key in _layouts_by_question:
            _layouts_by_question.move_to_end(key)
            return _layouts_by_question[key]
    # every layout of every count, with every recomputation that is allowed, as arrays
    codes = range(len(RECOMPUTES)) if job.recompute == _AUTO else [RECOMPUTES.index(job.recompute)]
    rows = [
        {"gpus": gpus, **degrees, "recompute": code}
        for gpus in counts
        for degrees in _combinations(job, gpus)
        for code in codes
    ]
    laid_out = None
    if rows:
        columns: dict[str, Any] = {
            name: np.array([row[name] for row in rows], dtype=np.float64)
            for name in ("gpus", "tensor", "pipeline", "context", "expert", "data")
        }
        micro = np.full(len(rows), float(job.micro_batch))
        usual = default_batch(job.architecture, job.sequence_tokens, job.method)
        layout = LayoutColumns(
            **columns,
            sharding=np.array([row["sharding"] for row in rows], dtype=np.int64),
            recompute=np.array([row["recompute"] for row in rows], dtype=np.int64),
            micro_batch=micro,
            global_batch=np.maximum(usual, micro * columns["data"] * columns["pipeline"]),  # a full pipeline
            virtual_stages=np.ones(len(rows)),
            precision=np.zeros(len(rows), dtype=np.int64),  # bf16
            flash=np.full(len(rows), job.flash),
            sequence_parallel=np.ones(len(rows), dtype=np.bool_),
            shard_ranks=np.zeros(len(rows)),  # all of them
        )
        keys = ("sharding", "expert", "tensor", "recompute", "context", "pipeline", "gpus")  # the last one rules
        order = np.lexsort([getattr(layout, name) for name in keys])
        laid_out = _LaidOut(layout, training_memory(stack([job.architecture]), layout, job.recipe()), order)
    with _lock:
        _layouts_by_question[key] = laid_out
        sizes = [len(item.order) if item else 0 for item in _layouts_by_question.values()]
        while len(sizes) > 1 and sum(sizes) > _MOST_LAYOUTS:  # what was not asked for longest goes first
            _layouts_by_question.popitem(last=False)
            sizes.pop(0)
    return laid_out


def _plan_on(job: MemoryJob, counts: Sequence[int]) -> Plan | None:
    """Return the simplest layout that fits on the fewest of some counts, as `best_plan`."""
    laid_out = _laid_out(job, counts)
    if laid_out is None:
        return None
    usable = float(usable_bytes(job.accelerator.memory_gib))
    layout, memory, order = laid_out
    fits: Flags = memory.total_bytes <= usable
    row = int(order[np.argmax(fits[order])]) if fits.any() else int(np.argmin(memory.total_bytes))
    return Plan(layout.layout(row), memory.take(slice(row, row + 1)), usable)


# --- What would make a job fit, or fit on fewer GPUs: each change is tried, and the smallest that works comes first.

# From the least to the greatest intrusion.
COSTS = (
    "same result, similar speed",
    "same result, slower",
    "more or larger GPUs",
    "different optimizer numerics",
    "another training",
)
_LARGER = COSTS[2]
_CHUNK_TOKENS = 1024
_SHORTEST_TOKENS = 512  # no shorter sequence is proposed
_HOST_GB = 2000.0  # host memory that a node is taken to have: usual for 8-GPU nodes since 2023 (DGX H100: 2 TB)
_LARGER_CHIPS = 4  # more GPUs or larger chips that are shown


class JobChange(Struct, frozen=True):
    """A change of a job, what it costs, and the job that it makes."""

    name: str
    cost: int  # index into COSTS
    job: MemoryJob


def _single_changes(job: MemoryJob) -> Iterator[JobChange]:
    """Yield the changes of the recipe that are not made already."""
    if not job.loss_chunk_tokens and job.sequence_tokens * job.micro_batch > _CHUNK_TOKENS:
        yield JobChange(f"loss in chunks of {_CHUNK_TOKENS} tokens", 0, replace(job, loss_chunk_tokens=_CHUNK_TOKENS))
    if job.software == "trainer":
        yield JobChange("without the Trainer's fp32 copies (a loop of your own)", 0, replace(job, software="library"))
    if not job.flash:
        yield JobChange("fused attention", 0, replace(job, flash=True))
    if "sharding" in job.degrees and job.degrees["sharding"] < 3 and (job.gpus or 2) > 1:  # where it is not searched
        yield JobChange("shard weights too (FSDP)", 0, replace(job, degrees=job.degrees | {"sharding": 3}))
    if any(name in job.degrees for name in ("tensor", "pipeline", "expert")):
        free = {name: value for name, value in job.degrees.items() if name == "context"}
        yield JobChange("search the layout", 0, replace(job, degrees=free))
    if job.micro_batch > 1:
        yield JobChange("micro-batch 1", 1, replace(job, micro_batch=1))
    if job.recompute not in (_AUTO, "full"):
        yield JobChange("recompute activations in full", 1, replace(job, recompute="full"))
    if job.method == "full":  # adapters have hardly any states
        yield from _offload_changes(job)
    yield from _optimizer_changes(job)
    if job.sequence_tokens >= 2 * _SHORTEST_TOKENS:
        half = job.sequence_tokens // 2
        yield JobChange(f"sequence {half}", 4, replace(job, sequence_tokens=half))
    if job.method == "full":
        yield JobChange(f"LoRA, rank {job.lora_rank}", 4, replace(job, method="lora", software=USUAL_STYLES["lora"]))
    if job.method != "qlora":
        yield JobChange(f"QLoRA, rank {job.lora_rank}", 4, replace(job, method="qlora", software=USUAL_STYLES["qlora"]))


def _host_gb(job: MemoryJob) -> float:
    """Return the host memory that all nodes together need for what a job moves there."""
    optimizer, total = OPTIMIZERS[job.optimizer], float(total_parameters(stack([job.architecture]))[0])
    states = optimizer.gradient_bytes + optimizer.state_bytes
    bytes_per_parameter = {"none": 0.0, "states": states, "all": optimizer.weight_bytes + states}[job.offload]
    return bytes_per_parameter * total / GB


def _offload_changes(job: MemoryJob) -> Iterator[JobChange]:
    """Yield what host memory can take, with how much of it all nodes together need."""
    for name, moved_states in (("states", "optimizer states"), ("all", "weights and states")):
        if job.offload not in (name, "all"):
            moved = replace(job, offload=name)
            yield JobChange(f"{moved_states} in host memory ({_host_gb(moved):,.0f} GB of it)", 1, moved)


def _optimizer_changes(job: MemoryJob) -> Iterator[JobChange]:
    """Yield the optimizers with smaller states."""
    for name, description in (
        ("adamw-8bit", "8-bit AdamW moments"),
        ("adamw-bf16", "bf16 states without a master copy"),
        ("adafactor", "Adafactor"),
    ):
        if job.optimizer != name and (job.method == "full" or name == "adamw-8bit"):
            yield JobChange(description, 3, replace(job, optimizer=name))


def _pairs(job: MemoryJob) -> Iterator[JobChange]:
    """Yield pairs of changes that leave what is trained alone."""
    mild = [change for change in _single_changes(job) if change.cost in (0, 1, 3)]
    fields = [name for name in MemoryJob.__struct_fields__ if name not in ("architecture", "accelerator", "system")]

    def changed(change: JobChange) -> dict[str, Any]:
        values = {name: getattr(change.job, name) for name in fields}
        return {name: value for name, value in values.items() if value != getattr(job, name)}

    for first, second in combinations(mild, 2):
        one_sided, other_sided = changed(first), changed(second)
        if not set(one_sided) & set(other_sided):  # else both change the same thing
            both = replace(job, **one_sided, **other_sided)
            yield JobChange(f"{first.name} + {second.name}", max(first.cost, second.cost), both)


def _hardware_changes(job: MemoryJob, catalog: Catalog) -> Iterator[JobChange]:
    """Yield more GPUs of the same kind, and larger chips of the same vendor."""
    if job.gpus is not None:
        free = {name: value for name, value in job.degrees.items() if name in ("tensor", "context")}
        yield JobChange("more GPUs", 2, replace(job, gpus=None, degrees=free))
    sold, accelerator = {offer.gpu for offer in catalog.offers()}, job.accelerator
    alike = (chip for chip in catalog.accelerators() if chip.vendor == accelerator.vendor and chip.id in sold)
    # a tenth more memory at least, and chips that people still buy for training
    least_gib = accelerator.memory_gib * 1.1
    larger = (chip for chip in alike if chip.trains and chip.memory_gib > least_gib and chip.year >= 2020)
    sizes: dict[int, Accelerator] = {}  # one of each size of memory
    for chip in sorted(larger, key=lambda chip: (chip.memory_gib, chip.id)):
        if half_precision(chip) == "bf16":
            sizes.setdefault(round(chip.memory_gib), chip)
    for chip in sizes.values():
        yield JobChange(chip.id, 2, replace(job, accelerator=chip, system=catalog.default_system(chip.id)))


def _tried(change: JobChange, before: Plan | None) -> answers.Tried | None:
    """Try a change; return its row, or None where it brings nothing."""
    plan = best_plan(change.job)
    if plan is None or _host_gb(change.job) > _HOST_GB * math.ceil(plan.layout.gpus / change.job.system.gpus):
        return None  # no layout, or more host memory than the nodes have
    worth = plan.fits and (before is None or not before.fits or plan.layout.gpus < before.layout.gpus)
    return {
        "change": change.name,
        "cost": COSTS[change.cost],
        "fits": plan.fits,
        "helps": worth,
        "gpus": plan.layout.gpus,
        "needed_gb": plan.needed_bytes / GB,
        "usable_gb": plan.usable_bytes / GB,
        "headroom_gb": (plan.usable_bytes - plan.needed_bytes) / GB,
        "rank": change.cost,
    }


# --- Savers of memory side by side: one change each, on the same accelerators and layout, at equal recomputation.


def _saver_jobs(base: MemoryJob) -> Iterator[JobChange]:
    """Yield the job itself, which recomputes nothing, and each change of it alone; two of them are recomputation."""
    yield JobChange("as it is, nothing recomputed", 0, base)
    yield JobChange("selective recomputation", 1, replace(base, recompute="selective"))
    yield JobChange("full recomputation", 1, replace(base, recompute="full"))
    if base.flash:
        yield JobChange("without fused attention", 0, replace(base, flash=False))
    if not base.loss_chunk_tokens and base.sequence_tokens * base.micro_batch > _CHUNK_TOKENS:
        yield JobChange(f"loss in chunks of {_CHUNK_TOKENS} tokens", 0, replace(base, loss_chunk_tokens=_CHUNK_TOKENS))
    if (base.gpus or 1) > 1 and base.degrees.get("pipeline", 1) == 1 and base.method == "full":
        for stage, name in ((0, "nothing sharded"), (1, "ZeRO-1"), (2, "ZeRO-2"), (3, "ZeRO-3 (FSDP)")):
            yield JobChange(name, 1, replace(base, degrees=base.degrees | {"sharding": stage}))
    if base.method == "full":
        yield from _offload_changes(base)
    yield from _optimizer_changes(base)
    if base.sequence_tokens >= 2 * _SHORTEST_TOKENS:
        half = base.sequence_tokens // 2
        yield JobChange(f"sequence {half:,}", 4, replace(base, sequence_tokens=half))
    for method in ("lora", "qlora"):
        if base.method not in (method, "qlora"):
            label = {"lora": "LoRA", "qlora": "QLoRA"}[method]
            adapted = replace(base, method=method, optimizer="adamw")  # in the same software, for like with like
            yield JobChange(f"{label}, rank {base.lora_rank}", 4, adapted)


def savers(job: MemoryJob, plan: Plan) -> list[answers.Saver]:
    """Return what each change alone needs on the fullest GPU, all on one layout and without recomputation.

    FP8 products keep their inputs in 8 bits and may keep 8-bit copies of the weights; master weights, moments and
    gradients stay as they are, so that its row is a range, and far from half.
    """
    degrees = {name: int(getattr(plan.layout, name)) for name in _DEGREES}
    base = replace(job, gpus=plan.layout.gpus, degrees=degrees, recompute="none")
    rows: list[answers.Saver] = []
    first = 0.0
    for change in _saver_jobs(base):
        changed_plan = _plan_on(change.job, [plan.layout.gpus])
        if changed_plan is None:
            continue
        needed = changed_plan.needed_bytes / GB
        first = first or needed  # the job itself, against which each change saves
        rows.append(_saver(change.name, COSTS[change.cost], needed, needed, first, changed_plan.usable_bytes / GB))
    if rows and job.accelerator.fp8_tflops and job.method == "full":
        # Saved at most: one byte of each input of a matrix that the backward pass needs, 3 · hidden + feed-forward
        # a token and layer. Added at most: a copy of the weights in one byte each.
        a, layout = job.architecture, plan.layout
        wide = (a.ffn_hidden or a.expert_ffn_hidden * max(a.experts_per_token, 1)) + 3 * a.hidden
        tokens = job.sequence_tokens * job.micro_batch / max(layout.context, 1)
        less = tokens * a.layers / layout.pipeline * wide / layout.tensor / GB
        shards = layout.tensor * layout.pipeline * (layout.data if layout.sharding == 3 else 1)
        more = float(total_parameters(stack([a]))[0]) / shards / GB
        usable = plan.usable_bytes / GB
        rows.append(_saver("fp8 products", COSTS[3], first - less, first + more, first, usable))
    return rows


def _saver(name: str, cost: str, low: float, high: float, first: float, usable_gb: float) -> answers.Saver:
    middle = (low + high) / 2
    return {
        "change": name,
        "needed_gb": middle,
        "needed_low_gb": low,
        "needed_high_gb": high,
        "saved_fraction": 1 - middle / first,
        "fits": middle <= usable_gb,
        "cost": cost,
    }


# --- The components of a footprint with their formulas, the numbers in them, and the references.

_COMPONENTS = beside(__file__, "components")[1:]  # largest term first in the order of the formula


def components(job: MemoryJob, plan: Plan) -> list[Component]:
    """Return one row per component, largest term first in the order of the formula."""
    recipe = job.recipe()
    texts, adapters = _numbers_of(job, plan, recipe), int(recipe.method[0]) >= LORA
    rows: list[Component] = []
    for name, formula, reference, of_adapters in _COMPONENTS:
        value = float(getattr(plan.memory, f"{name}_bytes")[0])
        rows.append(
            {
                "component": name,
                "needed_gb": value / GB,
                "share_fraction": value / plan.needed_bytes,
                "formula": formula,
                "numbers": texts[name] if value else "nothing at the moment of the peak",
                "reference": of_adapters if adapters and of_adapters else reference,
            }
        )
    return rows


def _numbers_of(job: MemoryJob, plan: Plan, recipe: MemoryRecipe) -> dict[str, str]:
    """Return the numbers in the formula of each component."""
    shape = stack([job.architecture])
    layout = layout_columns([plan.layout], flash=job.flash)
    first = np.array([bool(plan.memory.first_stage[0])])
    single = plan.layout.pipeline == 1
    parameters = holdings(shape, layout, recipe, first | single, ~first | single)  # on the fullest GPU
    ranks = plan.layout.data * plan.layout.context
    counts = {name: float(getattr(parameters, name)[0]) for name in parameters.names()}
    # weights, gradients and optimizer states
    tuned = int(recipe.method[0]) >= LORA
    stage = plan.layout.sharding if ranks > 1 else 0

    def shared(least: int) -> str:
        return f" ÷ {ranks} ranks" if stage >= least else ""

    trained = format_count(counts["trained"])
    weight_bytes = float(recipe.adapter_bytes[0]) if tuned else float(recipe.weight_bytes[0])
    gradient = weight_bytes if tuned else float(recipe.gradient_bytes[0])
    state = float(recipe.state_bytes[0])
    weights = f"{weight_bytes:g} B × {trained}{shared(3)}"
    end_bytes = 4 if recipe.style[0] == TRAINER and recipe.method[0] == QLORA else 2
    if tuned:
        frozen, ends = format_count(counts["frozen"]), format_count(counts["frozen_dense"])
        base = f"{float(recipe.frozen_bytes[0]):.3g} B × {frozen} frozen{shared(3)}"
        weights = f"{base} + {end_bytes} B × {ends} ends + {weights} adapters"
    # activations and logits
    layer = layer_bytes(shape, layout, recipe)
    tokens = plan.layout.micro_batch * job.sequence_tokens / plan.layout.context
    layers = -(-job.architecture.layers // plan.layout.pipeline)  # of the fullest stage
    flight = float(in_flight(layout, first)[0])
    rows = min(tokens, job.loss_chunk_tokens or tokens)
    logit_bytes = float(LOGIT_BYTES[recipe.style[0]])
    return {
        "weights": weights,
        "gradients": f"{gradient:g} B × {trained}{shared(2)}",
        "optimizer": f"{state:g} B × {trained}{shared(1)}",
        "activations": f"{tokens:,.0f} × {float(layer.saved[0]):,.0f} B × {layers} × {flight:g} (+ last norm)",
        "logits": f"{rows:,.0f} × {job.architecture.vocab:,} ÷ {plan.layout.tensor} × {logit_bytes:g} B",
        "buffers": f"a layer holds {format_count(counts['block'])} parameters, the ends {format_count(counts['ends'])}",
        "temporary": f"recompute {plan.layout.recompute}",
    }


# --- The answer of `gpucost fit`: verdict, layout, components with their formulas, changes, the table by model size.

_SIZES = ("7b", "13b", "34b", "70b", "180b", "405b", "671b", "1t")
_MOMENT_WORDS = {
    "loss": "when the loss flows back into the logits",
    "backward": "when the backward pass of the layers begins",
    "end": "when the backward pass ends",
    "update": "during the optimizer's update",
    "forward": "when the forward pass ends",
}


def answer(catalog: Catalog, model: Any, gpu: str, *, sizes: bool = True, **arguments: Any) -> Fit:
    """Return the payload: does it fit, on how many, where the memory goes, and what would help."""
    job = read_job(catalog, model, gpu, **arguments)
    plan = best_plan(job)
    # The changes that may help: singles, and pairs where no single mild one does.
    rows = [_tried(change, plan) for change in (*_single_changes(job), *_hardware_changes(job, catalog))]
    changes = [row for row in rows if row is not None]
    # of more or larger GPUs the first few that help are enough
    larger = [row for row in changes if row["cost"] == _LARGER and row["helps"]][:_LARGER_CHIPS]
    shown = [id(row) for row in larger]
    changes = [row for row in changes if row["cost"] != _LARGER or id(row) in shown]
    if not any(row["helps"] and row["rank"] in (0, 1, 3) for row in changes):
        doubled = [_tried(change, plan) for change in _pairs(job)]
        changes += [row for row in doubled if row is not None and row["helps"]]
    if not any(row["helps"] and row["cost"] != _LARGER for row in changes):
        # the longest sequence that helps with a chunked loss, in the coarsest chunks and widest moments
        lengths = [job.sequence_tokens >> k for k in range(12) if job.sequence_tokens >> k >= _SHORTEST_TOKENS]
        moments = [(job.optimizer, "")]
        if job.optimizer == "adamw":
            moments.append(("adamw-8bit", " + 8-bit AdamW moments"))
        for tokens, chunk, (optimizer, optimizer_text) in product(
            lengths, (_CHUNK_TOKENS, _CHUNK_TOKENS // 4), moments
        ):
            if chunk >= tokens or job.loss_chunk_tokens:
                continue
            description = f"loss in chunks of {chunk} tokens" + (f" + sequence {tokens}" if tokens < lengths[0] else "")
            changed_job = replace(job, loss_chunk_tokens=chunk, sequence_tokens=tokens, optimizer=optimizer)
            cost = 3 if optimizer_text else 0
            cost = 4 if tokens < lengths[0] else cost  # shorter texts are another training
            shorter = _tried(JobChange(description + optimizer_text, cost, changed_job), plan)
            if shorter is not None and shorter["helps"]:
                changes.append(shorter)
                break
    # what helps most gently comes first; of equals, as they were proposed
    changes.sort(key=lambda row: (not row["helps"], row["rank"]))
    for index, row in enumerate(changes, 1):
        row["rank"] = index
    if plan is None:
        raise NothingFitsError(
            f"{job.architecture.name} on {f'{job.gpus} × ' if job.gpus else ''}{job.accelerator.id}: the degrees given"
            f" do not multiply to {'the' if job.gpus else 'any'} GPU count. Leave them out to have the layout"
            " searched."
        )
    if job.gpus is None and not plan.fits:
        limit = _LARGEST_GPUS if job.system.scaleout_gb_per_s else plan.layout.gpus
        helps = next((row for row in changes if row["helps"]), None)
        hint = f" Try: {helps['change']} ({helps['gpus']} GPUs)." if helps else ""
        raise NothingFitsError(
            f"{job.architecture.name} ({job.method}, {job.optimizer}, sequence {job.sequence_tokens}, micro-batch "
            f"{job.micro_batch}) fits on no count up to {limit} × {job.accelerator.id}: the least is "
            f"{plan.needed_bytes / GB:.1f} GB of {plan.usable_bytes / GB:.1f} GB usable.{hint}"
        )
    request = {"model": model.name if isinstance(model, Architecture) else fspath(model), "gpu": gpu} | {
        name: value for name, value in arguments.items() if value is not None
    }
    figures = verdict(job, plan)
    return {
        "kind": "fit",
        **frame(request, catalog.as_of, catalog.version),
        "lead": lead(figures, changes),
        **figures,
        "components": components(job, plan),
        "changes": changes,
        "savers": savers(job, plan),
        "sizes": _by_size(job, catalog) if sizes else [],
        "warnings": [*catalog.taken(gpu), *warnings(job)],
        "sources": sources(catalog, job),
    }


def lead(figures: FitFigures, changes: list[Tried]) -> str:
    """Return the answer in one sentence."""
    gpus, gpu, spare = figures["gpus"], figures["gpu"], figures["headroom_gb"]
    place = f"on each of {gpus:,} {gpu}" if gpus > 1 else f"on one {gpu}"
    need = f"{figures['needed_gb']:.1f} GB needed of {figures['usable_gb']:.1f} GB usable {place}"
    if figures["fits"]:
        return f"Fits: {need}, {spare:.1f} GB to spare."
    helps = next((row for row in changes if row["helps"]), None)
    if helps is None:
        return f"Does not fit: {need}, {-spare:.1f} GB too much. None of the changes tried helps."
    more = f", {helps['gpus']:,}" if helps["gpus"] > gpus else ""
    change_texts = (row["change"] for row in changes if row["helps"] and row["gpus"] <= gpus and row["cost"] != _LARGER)
    same = next(change_texts, None)
    here_text = f"; on {gpus:,}: {same}" if more and same else ""  # whoever has so many wants to stay on them
    hint = f"The smallest change that makes it fit: {helps['change']}{more}{here_text}."
    return f"Does not fit: {need}, {-spare:.1f} GB too much. {hint}"


def verdict(job: MemoryJob, plan: Plan) -> FitFigures:
    """Return the main figures."""
    layout = plan.layout
    return {
        "model": job.architecture.name,
        "parameters": float(total_parameters(stack([job.architecture]))[0]),
        "gpu": job.accelerator.id,
        "gpus": layout.gpus,
        "method": job.method,
        "optimizer": job.optimizer,
        "software": job.software,
        "sequence_tokens": job.sequence_tokens,
        "fits": plan.fits,
        "needed_gb": plan.needed_bytes / GB,
        # by how far the software's measured peaks lie from the model
        "needed_low_gb": plan.needed_bytes / GB / RANGE_RATIOS[job.software],
        "needed_high_gb": plan.needed_bytes / GB * RANGE_RATIOS[job.software],
        "usable_gb": plan.usable_bytes / GB,
        "headroom_gb": (plan.usable_bytes - plan.needed_bytes) / GB,
        "device_memory_gib": job.accelerator.memory_gib,
        "context_gb": CONTEXT_BYTES / GB,
        "fragmentation_ratio": FRAGMENTATION_RATIO,
        "layout": cast(FitLayout, {name: getattr(layout, name) for name in FitLayout.__annotations__}),
        "peak": _MOMENT_WORDS[MOMENTS[int(plan.memory.moment[0])]],
        "stage": "first" if bool(plan.memory.first_stage[0]) else "last",
    }


def _by_size(job: MemoryJob, catalog: Catalog) -> list[SizeRow]:
    """Return the fewest GPUs of this kind for models of the usual sizes: full training, LoRA and QLoRA."""
    rows: list[SizeRow] = []
    for size in _SIZES:
        try:
            architecture = catalog.architecture(size)
        except GpuCostError:  # a catalog of one's own may lack a size
            continue
        sequence = min(job.sequence_tokens, architecture.max_sequence_tokens or job.sequence_tokens)
        base = replace(
            job,
            architecture=architecture,
            gpus=None,
            degrees={},
            micro_batch=1,
            sequence_tokens=sequence,
            recompute="auto",
        )
        total = float(total_parameters(stack([architecture]))[0])
        row: dict[str, Any] = {"size": size, "model": architecture.name, "parameters": total}
        row["weights_gb"] = 2 * total / GB  # in 16 bits
        for method in ("full", "lora", "qlora"):
            software = base.software if method == "full" else USUAL_STYLES[method]
            method_job = replace(base, method=method, software=software)
            plan = best_plan(method_job)
            row[f"{method}_gpus"] = row[f"{method}_gb"] = None
            if plan is not None and plan.fits:
                # Side by side, all methods recompute in full: the least recomputation that fits would show QLoRA, which
                # has room for its activations, above LoRA, which has not.
                alike = best_plan(replace(method_job, gpus=plan.layout.gpus, recompute="full"))
                row[f"{method}_gpus"] = plan.layout.gpus
                row[f"{method}_gb"] = (plan if alike is None else alike).needed_bytes / GB
        rows.append(cast(SizeRow, row))
    return rows


def warnings(job: MemoryJob) -> list[str]:
    """Return what a reader must know about the answer."""
    messages = [*job.architecture.warnings, *too_long(job.architecture, job.sequence_tokens)]
    if job.architecture.status == "synthesised":
        messages.append(f"{job.architecture.name} is synthesised from its size; a real model of that size may differ.")
    if job.accelerator.vendor != "NVIDIA":
        messages.append(
            f"The memory model was checked against runs on NVIDIA H200 only; {job.accelerator.id} is an extrapolation."
        )
    if half_precision(job.accelerator) != "bf16":
        messages.append(f"{job.accelerator.id} has no bf16 peak: 16-bit training there means fp16.")
    return messages


def sources(catalog: Catalog, job: MemoryJob) -> dict[str, CitedSource]:
    """Return the rows of sources.csv that the answer leans on."""
    ids = {job.architecture.source_id, job.accelerator.source_id, job.system.source_id} - {""}
    return cited({key: catalog.source(key) for key in ids}, sorted(ids))


# --- Which accelerators a training job fits: the fewest of each, the longest sequence, the largest batch, the price.

_LARGEST_BATCH = 64  # micro-batch: no larger one is looked for
SHORTEST_SEQUENCE_TOKENS, LONGEST_TOKENS = 512, 1_048_576


def everywhere(catalog: Catalog, model: Any, **arguments: Any) -> Everywhere:
    """Return the payload: a row per accelerator that a training job fits, the cheapest per hour first."""
    market = market_of(catalog)
    allowed = usual(market)
    rows_by_chip: dict[tuple[Any, ...], FitRow | None] = {}
    rows: list[FitRow] = []
    nowhere: list[str] = []
    job = None
    for chip in (chip_row for chip_row in catalog.accelerators() if half_precision(chip_row) and chip_row.trains):
        try:
            job = read_job(catalog, model, chip.id, **arguments)
        except GpuCostError:
            if _model_is_unknown(catalog, model):
                raise
            continue
        system = job.system
        # chips of the same memory in nodes of the same size hold the same: one search serves them all
        same = (round(chip.memory_gib, 2), system.gpus, system.scaleup_gpus, system.scaleout_gb_per_s is None)
        if same not in rows_by_chip:
            rows_by_chip[same] = _row_of(job)
        row_of_first = rows_by_chip[same]
        if row_of_first is None:
            nowhere.append(chip.id)
            continue
        hire = cheapest(market, chip.id, row_of_first["gpus"], allowed)
        if hire is None:
            # how it is sold of which nobody hosts so many; empty where nobody sells it at a new price
            sizes = [row_of_first["gpus"] >> halving for halving in range(1, row_of_first["gpus"].bit_length())]
            largest = next((size for size in sizes if cheapest(market, chip.id, size, allowed) is not None), 0)
            sold = f"up to {largest}" if largest else ""
            prices: dict[str, Any] = {"sold": "as singles" if largest == 1 else sold}
        else:
            prices = {"sold": hire.offer.provider, "usd_per_gpu_hour": hire.usd_per_gpu_hour}
            prices["usd_per_hour"] = hire.usd_per_hour
        rows.append(cast(FitRow, {**row_of_first, "gpu": chip.id, "memory_gib": chip.memory_gib, **prices}))
    if job is None or not rows:
        raise NothingFitsError(
            f"{getattr(model, 'name', model)} fits on no accelerator on record. Try --method qlora."
        ).offering(method="qlora")
    rows.sort(key=lambda row: (row["usd_per_hour"] or float("inf"), not row["sold"], row["gpus"], row["gpu"]))
    sellers = Providers(catalog.rows("providers"))
    for row in rows:
        row["seller"] = sellers.name(row["sold"])
    settings = {"model": job.architecture.name} | {
        name: value for name, value in arguments.items() if value is not None
    }
    # what fits with the least money, and what fits on one
    first, singles = rows[0], sum(row["gpus"] == 1 for row in rows)
    price = "" if first["usd_per_hour"] is None else f" at {first['usd_per_hour']:,.2f} USD an hour"
    lead_text = (
        f"{job.architecture.name} ({job.method}, sequences of {job.sequence_tokens:,}) fits on"
        f" {counted(len(rows), 'accelerator type')}, {singles or 'none'} of them with a single accelerator. Cheapest:"
        f" {first['gpus']} × {first['gpu']}{price}."
    )
    return {
        "kind": "fit_everywhere",
        **frame(settings, catalog.as_of, catalog.version),
        "lead": lead_text,
        "model": job.architecture.name,
        "parameters": float(total_parameters(stack([job.architecture]))[0]),
        "method": job.method,
        "sequence_tokens": job.sequence_tokens,
        "rows": rows,
        "nowhere": nowhere,
        "warnings": [text for text in warnings(job) if job.accelerator.id not in text],  # the last chip's are its own
        "sources": sources(catalog, job),
    }


def _model_is_unknown(catalog: Catalog, model: Any) -> bool:
    """Tell whether it is the model that nobody knows, not the chip that cannot take it."""
    try:
        _ = model if hasattr(model, "layers") else catalog.architecture(model)
    except GpuCostError:
        return True
    return False


def _row_of(job: MemoryJob) -> FitRow | None:
    """Return the fewest accelerators that fit, and how far sequence and batch can grow on them; None where none do."""
    plan = best_plan(job)
    if plan is None or not plan.fits:
        return None
    fixed = replace(job, gpus=plan.layout.gpus)
    # doublings, and the length asked for; the longest that the model takes closes the list
    longest = min(job.architecture.max_sequence_tokens or LONGEST_TOKENS, LONGEST_TOKENS)
    doublings = [SHORTEST_SEQUENCE_TOKENS << k for k in range(12) if SHORTEST_SEQUENCE_TOKENS << k < longest]
    lengths = sorted({job.sequence_tokens, longest, *doublings})
    batches = [job.micro_batch << k for k in range(7) if job.micro_batch << k <= _LARGEST_BATCH]
    return {
        "gpu": job.accelerator.id,
        "memory_gib": job.accelerator.memory_gib,
        "gpus": plan.layout.gpus,
        "needed_gb": plan.needed_bytes / GB,
        "headroom_gb": (plan.usable_bytes - plan.needed_bytes) / GB,
        "longest_tokens": _most(lengths, lambda size: best_plan(replace(fixed, sequence_tokens=size))),
        "largest_batch": _most(batches, lambda size: best_plan(replace(fixed, micro_batch=size))),
        "sold": "",
        "usd_per_gpu_hour": None,
        "usd_per_hour": None,
    }


def _most(sizes: list[int], plan_of: Callable[[int], Plan | None]) -> int:
    """Return the largest of growing sizes that fits; the first is known to."""
    low, high = 0, len(sizes) - 1
    while low < high:
        middle = (low + high + 1) // 2
        plan = plan_of(sizes[middle])
        if plan is not None and plan.fits:
            low = middle
        else:
            high = middle - 1
    return sizes[low]
