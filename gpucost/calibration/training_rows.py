"""From a published row of training to a case: its architecture, accelerator, system, layout, recipe and software.

What a row leaves open is filled with what was usual, and a note says so. `wording` reads single cells.
"""

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec.structs import replace

from gpucost.calibration import wording
from gpucost.calibration.record import MeasuredRow, Row
from gpucost.catalog import Catalog
from gpucost.errors import AmbiguousNameError, UnknownNameError, UsageError, nearest
from gpucost.gate import shown
from gpucost.market import interruptions
from gpucost.market.interruptions import failures_per_gpu_year, make_book
from gpucost.physics.columns import PRECISIONS, RECOMPUTES
from gpucost.physics.hardware import peaks
from gpucost.physics.software import software_class
from gpucost.physics.training import layouts as search
from gpucost.physics.training.defaults import default_batch
from gpucost.physics.training.efficiency import ALLTOALL, DEFAULTS, FUSED, FUSED_YEAR, UNSAID
from gpucost.physics.training.grid import make_grid
from gpucost.physics.transformer import stack, total_parameters
from gpucost.types import Accelerator, Architecture, Layout, System
from gpucost.words import OFFLOADS

# --- The architecture that a published row means: a known one, its own dimensions, or one of its size.


def find_architecture(row: Row, facts: Catalog, notes: list[str]) -> Architecture:
    """Return the architecture: a known one of that name and depth, else the row's dimensions, else one of its size."""
    name = str(row.get("model") or "model")
    layers, hidden = wording.count(row.get("n_layers")), wording.count(row.get("hidden"))
    try:
        known = facts.architecture(name)
        # a hybrid's blocks hold one mixer each, which some count apart and others together
        hybrid = known.linear_layers > 0
        if (layers is None or known.layers == layers or hybrid) and (hidden is None or known.hidden == hidden):
            return as_stated(row, known)
    except UsageError:
        pass  # no known model of that name: its dimensions may be stated
    total = wording.positive(row.get("params_b")) or size_in_name(name)
    if hidden is None and total is None:
        raise UsageError(f"model {name!r}: neither dimensions nor a parameter count")
    if hidden is None or (layers is None and total is None):
        notes.append(f"model {name!r} synthesised from its size")
        # a dense transformer of its parameter count: 128 wide per layer, 12·h² per layer (arXiv:2001.08361)
        parameters = (total or 1.0) * 1e9
        if active_b := wording.positive(row.get("active_params_b")):
            parameters = min(parameters, active_b * 1e9)
        layers = max(2, round((parameters / (12 * 128**2)) ** (1 / 3)))
        hidden = max(128, 128 * round(math.sqrt(parameters / (12 * layers)) / 128))
        stated = {"n_layers": layers, "hidden": hidden, "n_heads": max(1, hidden // 128), "gated_mlp": "n"}
        return replace(from_columns(stated, name, layers, hidden, None), status="synthesised")
    return from_columns(row, name, layers, hidden, total)


_STATED = {
    "layers": "n_layers",
    "hidden": "hidden",
    "heads": "n_heads",
    "kv_heads": "n_kv_heads",
    "ffn_hidden": "ffn_hidden",
    "vocab": "vocab",
}


def as_stated(row: Row, known: Architecture) -> Architecture:
    """Return a known dense architecture with the dimensions that the row states, tied as its parameters say.

    A mixture keeps its own dimensions: no column states its dense layers or its shared experts.
    """
    counts = {name: wording.count(row.get(column)) for name, column in _STATED.items()}
    gated = wording.flag(row.get("gated_mlp"))
    agrees = gated in (None, known.gated) and all(
        value is None or value == getattr(known, name) for name, value in counts.items()
    )
    layers, hidden = counts["layers"], counts["hidden"]
    parameters_b = wording.positive(row.get("params_b"))
    if not agrees and not known.experts and layers and hidden:
        known = from_columns(row, known.name, layers, hidden, parameters_b)
    return known if parameters_b is None else _tied_as_counted(known, parameters_b * 1e9)


@lru_cache(maxsize=512)  # many rows are of one model
def _tied_as_counted(known: Architecture, parameters: float) -> Architecture:
    """Return an architecture with its embeddings tied or not, whichever comes nearer to a count of parameters."""
    choices = [replace(known, tied_embeddings=tied) for tied in (known.tied_embeddings, not known.tied_embeddings)]
    distance = [abs(math.log(counted / parameters)) for counted in total_parameters(stack(choices)).tolist()]
    return choices[distance.index(min(distance))]


def from_columns(row: Row, name: str, layers: int | None, hidden: int, total: float | None) -> Architecture:
    """Build an architecture from the dimensions that a row states."""
    stated_gated = wording.flag(row.get("gated_mlp"))
    # the usual proportions: 4·h, or 3.5·h gated as Llama 3 has; heads of 128; GPT-2's vocabulary, padded
    ffn = wording.count(row.get("ffn_hidden")) or (round(hidden * 3.5) if stated_gated else 4 * hidden)
    heads = wording.count(row.get("n_heads")) or max(1, round(hidden / 128))
    kv_heads = wording.count(row.get("n_kv_heads")) or heads
    vocab = wording.count(row.get("vocab")) or 51_200
    # 4·h is the width of the two matrices of GPT; three gated ones are given another, to weigh as much
    gated = (ffn != 4 * hidden) if stated_gated is None else stated_gated
    if layers is None:  # what the stated parameters leave beside the embeddings ÷ those of a layer
        per_layer = hidden * (2 * hidden + 2 * hidden * kv_heads / heads + (3 if gated else 2) * ffn)
        layers = max(1, round(((total or 1.0) * 1e9 - vocab * hidden) / per_layer))
    experts = wording.count(row.get("n_experts")) or 0
    return Architecture(
        name=name,
        family="",
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=max(1, round(hidden / heads)),
        ffn_hidden=0 if experts else ffn,  # of the dense layers
        gated=gated,
        vocab=vocab,
        tied_embeddings=not gated,
        experts=experts,
        experts_per_token=wording.count(row.get("moe_topk")) or min(2, experts),
        expert_ffn_hidden=(wording.count(row.get("moe_ffn_hidden")) or ffn) if experts else 0,
        attention="mha" if kv_heads == heads else "gqa",
        norm="rms" if gated else "ln",
        status="given",
    )


def size_in_name(name: str) -> float | None:
    """Read billions of parameters from a name.

    >>> size_in_name("Qwen3-30B-A3B"), size_in_name("GPT2-124M"), size_in_name("Falcon")
    (30.0, 0.124, None)
    """
    match = re.search(r"(?<!\d)(\d+(?:\.\d+)?)\s*([bBmMtT])(?![a-zA-Z0-9])", name)
    return float(match[1]) * {"b": 1.0, "m": 1e-3, "t": 1e3}[match[2].lower()] if match else None


# --- Rows that state no layout: what they do state is held, and the rest is searched over the legal layouts that fit.
#
# People run good layouts, not the very best of a model of them: the one taken is the median of those within a tenth
# of the fastest.

_GOOD_SHARE = 0.90  # of the fastest layout's speed
_SHARDED_BY_HABIT = ("compiler", "sharded")


def _searched(
    row: Mapping[str, Any],
    architecture: Architecture,
    accelerator: Accelerator,
    system: System,
    default: Layout,
    notes: list[str],
    *,
    sequence_tokens: float,
    method: str,
    software: str,
    software_year: float,
) -> Layout:
    """Return a good layout that agrees with a row that leaves it open, else the default; a note says which."""
    degrees = any(wording.count(row.get(name)) for name in ("tp", "pp", "dp"))
    if degrees or software in _SHARDED_BY_HABIT or wording.sharding(row.get("zero_stage")) == 3:
        return default  # stated, or the one that fully sharded stacks have by habit
    batch = wording.count(row.get("global_batch")) or default_batch(architecture, sequence_tokens, method)
    job = search.make_job(
        architecture,
        sequence_tokens=sequence_tokens,
        global_batch=batch,
        method=method,
        lora_rank=16,
        software=software,
        software_year=software_year,
        values=DEFAULTS,
    )
    stated = {"context": "cp", "expert": "ep", "micro_batch": "micro_batch"}
    fixed = {name: [value] for name, column in stated.items() if (value := wording.count(row.get(column)))}
    stage = wording.sharding(row.get("zero_stage"))
    if stage is not None:
        fixed["sharding"] = [stage]
    grid = make_grid(architecture, sequence_tokens, batch, wide=True, fixed=fixed)
    keys = search.make_keys([accelerator], [system], [float(default.gpus)], lambda _: default.precision)
    layouts = search.search(grid, job, keys)
    recompute = wording.recompute(row.get("activation_recompute"))
    if recompute:
        layouts = layouts.take(layouts.layout.recompute == RECOMPUTES.index(recompute))
    if not len(layouts.key):
        notes.append("no layout fits: data parallelism assumed")
        return default
    notes.append("layout searched")
    speed = layouts.tokens_per_s_per_gpu
    good = np.flatnonzero(speed >= _GOOD_SHARE * np.max(speed))
    ranked = good[np.argsort(speed[good], kind="stable")]
    return layouts.layout.layout(int(ranked[len(ranked) // 2]))


# --- From a published row to a case: its architecture, accelerator, system, layout, recipe and software.

_EIGHT_BITS = ("fp8", "fp4", "int8")  # precisions that stacks train in by kernels written for them
_LARGE_RUN_GPUS = 256  # a run of this size is somebody's whole business, and its software is tuned


class TrainingRow(MeasuredRow, frozen=True, kw_only=True):
    """A row of training."""

    architecture: Architecture
    accelerator: Accelerator
    system: System
    layout: Layout
    shard_ranks: int  # that hold one copy of what is sharded, under hybrid sharding; 0: all of them
    flash: bool
    sequence_tokens: float
    method: str
    software: str
    software_named: bool  # by the row; else inferred from what it runs
    software_year: float
    dispatcher: int  # how tokens reach their experts: unsaid (-1), all-to-all (0), fused (1)
    sinks: int  # attention with learned sinks: unsaid (-1), apart (0), fused (1)
    adapter_rank: float
    adapter_share: float
    state_bytes: float
    loss_chunk_tokens: float
    loss_repeated: bool
    vocabulary_split: bool
    tuning: bool  # of a model that was trained before
    offload: str
    full_precision: bool  # a quantised base as Hugging Face prepares it: all but its stored bytes is fp32
    blocking: bool  # pipeline stages wait while they hand over
    library_scores: bool  # unfused attention as Hugging Face writes it
    document_tokens: float  # infinite where each fills its sequence
    stated_recompute: bool
    stated_attention: bool  # by the row, or by a stack that has one kernel
    end_to_end: bool  # the figure covers a whole run with its evaluations and restarts
    long_run_ratio: float  # hours of a published run ÷ those of its steps; 1 where the figure is of no such run


def adapter_share(row: Row) -> float:
    """Return the share of the layers' products that carry adapters: all, attention's, or its first alone."""
    targets = str(row.get("lora_targets") or "").lower()
    # of a layer's parameters q, k and v are about an eighth, all of attention a third
    if "qkv" in targets.split():
        return 0.12
    return 1.0 if any(word in targets for word in ("all", "mlp", "gate")) else 0.35


def _prepares_whole(framework: object) -> bool:
    """Tell whether a stack may compute beside a 4-bit base in fp32: Hugging Face's own, without a trainer's autocast.

    Where attention is fused it does not, for those kernels take 16-bit values alone.

    >>> _prepares_whole("transformers 4.49"), _prepares_whole("TRL on transformers"), _prepares_whole("torchtune")
    (True, False, False)
    """
    name = str(framework or "").lower()
    library = re.search(r"transformers|hugging ?face|\bhf\b|\bpeft\b", name)
    trainer = re.search(r"\btrl\b|axolotl|factory|unsloth|swift|autocast|amp\b|trainer", name)
    return library is not None and trainer is None


def read_row(row: Row, facts: Catalog) -> TrainingRow:
    """Read one row; raise UsageError with the reason where it cannot be computed."""
    notes = wording.unknown(row)
    # the chip, at the power limit that the row states
    chip_id = str(row.get("accelerator") or "")
    if chip_id:
        accelerator = facts.accelerator(chip_id)
        notes.append(f"accelerator taken as {accelerator.id}")
    else:
        accelerator = find_accelerator(str(row.get("gpu") or ""), facts, notes)
    limit_w = wording.positive(row.get("power_limit_w"))
    accelerator = replace(accelerator, tdp_w=limit_w) if limit_w else accelerator
    architecture = find_architecture(row, facts, notes)
    sequence = wording.positive(row.get("seq_len"))
    if sequence is None:  # the one that a model of its age is trained with
        sequence = float(min(architecture.max_sequence_tokens or 2048, 8192))
        notes.append(f"sequence assumed {sequence:.0f}")
    # so many accelerators: stated, else the product of the degrees, else a cluster such as published runs of that size
    # used, about 1 GPU per 30 M parameters in powers of two
    gpus, copies = wording.count(row.get("n_gpus")), wording.count(row.get("dp"))
    if not gpus and copies:
        gpus = copies * math.prod(wording.count(row.get(name)) or 1 for name in ("tp", "pp", "cp"))
        notes.append(f"accelerators taken as {gpus}, the degrees' product")
    elif not gpus:
        weights = architecture.layers * 12 * architecture.hidden**2
        gpus = 1 << round(math.log2(min(max(weights / 3e7, 64), 16_384)))
        notes.append(f"accelerators assumed {gpus}")
    # its usual system, with the network and the node that the row states
    system = facts.default_system(accelerator.id)
    node_gpus = wording.count(row.get("node_gpus"))
    if node_gpus:
        system = replace(system, gpus=node_gpus, scaleup_gpus=min(system.scaleup_gpus, node_gpus))
    rate = wording.positive(row.get("scaleout_gb_per_s"))
    if rate is not None:
        system = replace(system, scaleout_gb_per_s=rate, fabric=str(row.get("interconnect") or ""))
    year = wording.year(row.get("as_of"), accelerator.year + 1.5, notes)
    flash = wording.flag(row.get("flash_attention"))
    method = wording.method(row.get("task"), row.get("base_precision"))
    precision = _supported(wording.precision(row.get("precision")), accelerator, notes)
    # the class of its software; where it names none the likely one: XLA on TPUs, tuned if large or in 8 bits since 2023
    framework = str(row.get("framework") or "").strip()
    framework = "" if framework == "nan" else framework
    software = software_class(framework, wording.flag(row.get("compiled")))
    software_named = software != "unknown"
    if not framework or (not software_named and precision in _EIGHT_BITS):
        if accelerator.family == "tpu":
            software = "compiler"
        elif year >= FUSED_YEAR and (gpus >= _LARGE_RUN_GPUS or precision in _EIGHT_BITS):
            software = "vendor"
        else:
            software = "unknown"
    if not software_named:
        cause = f"software {framework!r} is not known" if framework else "no software is named"
        notes.append(f"{cause}: predicted as the mean of the usual stacks, with the widest range")
    stated = replace(_read_layout(row, architecture, gpus, sequence, software, notes), precision=precision)
    layout = _searched(
        row,
        architecture,
        accelerator,
        system,
        stated,
        notes,
        sequence_tokens=sequence,
        method=method,
        software=software,
        software_year=year,
    )
    fused = flash
    if fused is None:  # usual since 2023, and in some stacks earlier; chips before Turing have no kernel for it
        usual = software in ("compiler", "sharded", "native") or year >= FUSED_YEAR
        fused = usual and accelerator.family not in ("volta", "pascal")
    # hybrid sharding (HSDP): the ranks of a node among which the row shards; 0 stands for all
    node_ranks, ranks = max(system.gpus // layout.tensor, 1), layout.data * layout.context
    divides = node_ranks < ranks and ranks % node_ranks == 0
    hybrid = layout.sharding >= 3 and wording.hybrid(row.get("zero_stage")) and divides
    basis, long_run_ratio = str(row.get("value_basis") or "").strip(), 1.0
    if basis == "gpu_hours":  # such a figure holds what failures cost the run; others are of steps alone
        _, failures, _ = failures_per_gpu_year(make_book(facts.rows("ownership")))
        parameters = float(total_parameters(stack([architecture]))[0])
        long_run_ratio = interruptions.long_run_ratio(layout.gpus, system.gpus, parameters, failures)
    offload = "none" if wording.missing(row.get("offload")) else str(row["offload"])
    if offload not in OFFLOADS:
        raise UsageError(f"offload is {shown(offload)}. Choose one of {', '.join(OFFLOADS)}.")
    return TrainingRow(
        id=str(row.get("id") or ""),
        source=str(row.get("source_name") or ""),
        architecture=architecture,
        accelerator=accelerator,
        system=system,
        layout=layout,
        shard_ranks=node_ranks if hybrid else 0,
        flash=fused,
        sequence_tokens=sequence,
        method=method,
        software=software,
        software_named=software_named,
        software_year=year,
        dispatcher={"alltoall": ALLTOALL, "fused": FUSED}.get(str(row.get("dispatcher") or ""), UNSAID),
        sinks={"apart": ALLTOALL, "fused": FUSED}.get(str(row.get("sinks") or ""), UNSAID),
        adapter_rank=wording.positive(row.get("lora_rank")) or 16.0,
        adapter_share=adapter_share(row),
        state_bytes=wording.positive(row.get("state_bytes_per_param")) or 16.0,  # mixed precision with Adam
        loss_chunk_tokens=wording.positive(row.get("loss_chunk_tokens")) or 0.0,
        loss_repeated=wording.flag(row.get("loss_chunk_recompute")) is True,
        vocabulary_split=wording.flag(row.get("vocabulary_split")) is not False,
        document_tokens=wording.positive(row.get("document_tokens")) or math.inf,
        tuning=str(row.get("task") or "") in ("sft", "lora", "qlora"),
        offload=offload,
        full_precision=method == "qlora" and not fused and _prepares_whole(row.get("framework")),
        library_scores=not fused and wording.attends_as_library(str(row.get("framework") or "")),
        blocking="nanotron" in str(row.get("framework") or "").lower(),
        stated_layout=all(wording.count(row.get(name)) for name in ("tp", "pp")),
        stated_attention=flash is not None or software not in ("eager", "unknown"),
        stated_recompute=wording.recompute(row.get("activation_recompute")) is not None,
        end_to_end=basis in ("gpu_hours", "time-to-train"),
        long_run_ratio=long_run_ratio,
        core=wording.flag(row.get("core")) is not False,
        notes=tuple(notes),
    )


# --- The accelerator that a name means.


def find_accelerator(name: str, facts: Catalog, notes: list[str]) -> Accelerator:
    """Return the accelerator that a name means, else the nearest of its family, with a note."""
    if not name.strip() or name == "nan":
        raise UsageError("no accelerator is named")
    bare = re.sub(r"^(nvidia|amd|intel|google|aws)[\s_-]+", "", name.strip(), flags=re.IGNORECASE)
    try:
        chosen = facts.accelerator(bare)
        if not facts.taken(bare):
            return chosen
    except AmbiguousNameError as error:
        candidates = [facts.accelerator(candidate) for candidate in error.candidates]
        # of several forms the module with most memory: the one that training runs on
        chosen = sorted(
            candidates, key=lambda a: (not a.form_factor.upper().startswith(("SXM", "OAM")), -a.memory_gib, a.id)
        )[0]
    except UnknownNameError:
        chosen = _nearest_accelerator(name, facts)
    notes.append(f"accelerator {name!r} taken as {chosen.id}")
    return chosen


def _name_parts(name: str) -> set[str]:
    """Split a name into comparable words: letters and digits apart from the memory size.

    >>> sorted(_name_parts("NVIDIA H100-80GB-SXM"))
    ['80gb', 'h100', 'nvidia', 'sxm']
    """
    text = re.sub(r"(?<!\d)(\d+)\s*g(?:i)?b", r"\1gb", name.lower())
    text = re.sub(r"sxm\d", "sxm", text)
    return {word for word in re.split(r"[^a-z0-9]+", text) if word}


def _nearest_accelerator(name: str, facts: Catalog) -> Accelerator:
    """Return the accelerator that shares most with a name, or raise where nothing does."""
    asked_parts = _name_parts(name)
    joined = _squeezed(name)

    def score(a: Accelerator) -> tuple[float, bool, float, str]:
        chip_parts = _name_parts(f"{a.id} {a.name} {a.form_factor} {a.vendor} {round(a.memory_gib)}gb")
        model = a.id.split("-")[0]
        points: float = len(asked_parts & chip_parts)
        if _names_chip(name, model):
            # the chip's own model weighs most, a longer one more, and most where the whole id stands in the name
            points += 3 + len(model) + 3 * (_squeezed(a.id) in joined)
        points -= 0.2 * len(_name_parts(a.id) - asked_parts)  # what the name does not ask for
        return points, a.form_factor.upper().startswith(("SXM", "OAM")), a.memory_gib, a.id

    # a name without a digit names no chip; a slip in its model may still be told
    known = facts.accelerators()
    ranked = sorted(known, key=score, reverse=True)
    if ranked and score(ranked[0])[0] >= 1 and re.search(r"\d", name):
        return ranked[0]
    heads = {a.id.split("-")[0]: a for a in sorted(known, key=lambda a: (a.year, a.memory_gib))}
    alike = [head for word in asked_parts for head in nearest(word, heads, cutoff=0.75)]
    if not alike:
        raise UsageError(f"accelerator {name!r} is not known, and no known one resembles it")
    return heads[alike[0]]


def _names_chip(name: str, model: str) -> bool:
    """Whether a name holds a chip's model as a word of its own, not as a part of another's.

    >>> _names_chip("NVIDIA GH200 480GB", "gh200"), _names_chip("NVIDIA GH200 480GB", "h20")
    (True, False)
    """
    end = r"(?!\d)" if model[-1:].isdigit() else ""
    return re.search(rf"(?<![a-z]){re.escape(model)}{end}", name.lower()) is not None


def _squeezed(name: str) -> str:
    """Return a name's letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


# --- What rows leave open: the precision that the chip has, and the degrees of a layout.


def _supported(precision: str, accelerator: Accelerator, notes: list[str]) -> str:
    """Return a precision that the chip has: the one asked for, else the next wider."""
    peak_tflops: dict[str, float] = dict(zip(PRECISIONS, peaks(accelerator), strict=True))
    # the two kinds of 8 bits stand for each other, which Ampere has as int8 only
    wider: dict[str, tuple[str, ...]] = {"fp4": ("fp8",), "fp8": ("int8",), "int8": ("fp8",)}
    for name in (precision, *wider.get(precision, ()), "bf16", "fp16", "fp32"):
        if not math.isnan(peak_tflops.get(name, math.nan)):
            if name != precision:
                notes.append(f"{precision} is not on {accelerator.id}: {name} taken")
            return name
    raise UsageError(f"no known peak of {accelerator.id} at {precision}")


def _read_layout(row: Row, a: Architecture, gpus: int, sequence: float, software: str, notes: list[str]) -> Layout:
    """Read the layout; degrees that a row leaves out are one, and data parallelism takes the rest."""
    tensor, pipeline = wording.count(row.get("tp")) or 1, wording.count(row.get("pp")) or 1
    context, expert = wording.count(row.get("cp")) or 1, wording.count(row.get("ep")) or 1
    stage = wording.sharding(row.get("zero_stage"))
    if stage is None:
        # by habit of the stack: FSDP and XLA shard all, a distributed optimizer its states, the others nothing
        stage = {"compiler": 3, "sharded": 3, "vendor": 1, "deepspeed": 0, "megatron": 0}.get(software, 1)
    model_gpus = tensor * pipeline * context  # that hold one copy of the model
    if gpus % model_gpus:
        taken_gpus = model_gpus * (wording.count(row.get("dp")) or max(1, round(gpus / model_gpus)))
        notes.append(f"{gpus} accelerators do not divide by {model_gpus}, the degrees' product: {taken_gpus} taken")
        gpus = taken_gpus
    data = gpus // model_gpus
    micro = wording.count(row.get("micro_batch"))
    batch, local = wording.count(row.get("global_batch")), wording.count(row.get("local_batch"))
    if batch is None:
        # of a whole run, which states its tokens, the batch of the model's own run at this sequence
        published = (a.trained_sequence_tokens or 0) * (a.trained_batch_sequences or 0)
        if local:
            batch = local * data
        elif published and row.get("total_tokens"):
            batch = max(1, round(published / sequence))
    if batch is not None and data > batch:  # ranks without a sequence of their own share one
        context *= data // math.gcd(data, batch)
        data = math.gcd(data, batch)
    if micro is None:
        if local and pipeline == 1:  # under a pipeline a local batch is cut into micro-batches
            usual = local
        elif pipeline * tensor == 1:  # a model that fits whole takes some 8,192 tokens at a time
            usual = max(1, int(8192 // sequence))
        else:  # one that is split is large, and takes one sequence
            usual = 1
        micro = max(1, min(usual, (batch or data * usual) // data))
        notes.append(f"micro-batch assumed {micro}")
    if batch is None:
        batch = data * micro * (1 if pipeline == 1 else 4 * pipeline)  # so that a fifth of a pipeline is idle at most
        notes.append(f"global batch assumed {batch} sequences")
    micro = max(1, min(micro, batch // data))
    virtual = wording.count(row.get("vp"))
    if not virtual:  # Megatron and its heirs interleave stages, two layers each
        interleaves = pipeline > 1 and software in ("vendor", "megatron")
        virtual = max(1, min(8, round(a.layers / pipeline / 2))) if interleaves else 1
    return Layout(
        gpus=gpus,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        expert=min(expert, max(1, a.experts)) if a.experts else 1,
        data=data,
        sharding=stage,
        micro_batch=micro,
        global_batch=batch,
        virtual_stages=virtual,
        recompute=wording.recompute(row.get("activation_recompute")) or "none",
    )
