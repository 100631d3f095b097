"""From a published serving row to a deployment and its load.

Nothing here looks at a measured column, an id or a source's name. What a row does not state is assumed and noted.
"""

import math
import re

from msgspec.structs import replace

from gpucost.calibration import training_rows, wording
from gpucost.calibration.record import MeasuredRow, Row
from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.gate import shown
from gpucost.physics import transformer
from gpucost.physics.serving.calibration import MOST_CACHED
from gpucost.physics.serving.cases import ServedReplica, format_of
from gpucost.physics.serving.efficiency import ENGINES, SERVERS
from gpucost.types import Architecture
from gpucost.units import GIB

_ALONE = ("single", "batch", "prompt", "pool")  # loads that need no server
_SUFFIXES = re.compile(
    r"[-_](instruct|chat|it|fp8|nvfp4|fp4|mxfp4|awq|gptq|int4|int8|bf16|hf|base|\d{4})\b", re.IGNORECASE
)


class ServingRow(MeasuredRow, frozen=True, kw_only=True):
    """A row of serving."""

    deployment: ServedReplica
    scenario: str
    prompt_tokens: float
    output_tokens: float
    batch: float | None
    rate: float | None
    requests: float | None  # that the benchmark sends in all
    replicas: int
    prompt_workers: int
    decode_workers: int
    drafted: int  # tokens per step, where speculation is stated
    prefix_hit: float  # share of prompt tokens found in a cache
    stated_prefix: bool  # whether that share is stated, none included
    varied_lengths: bool  # outputs differ from request to request, so that a burst drains slowly
    decode_only: bool  # stated throughput is that of decode steps alone
    stated_lengths: bool

    @property
    def group(self) -> str:
        """`stated` where the batch is known, else `saturation`."""
        return "stated" if self.batch is not None else "saturation"


def read_row(row: Row, facts: Catalog) -> ServingRow:
    """Read one row; raise UsageError with the reason where it cannot be computed."""
    notes = wording.unknown(row)
    accelerator = training_rows.find_accelerator(str(row.get("gpu") or ""), facts, notes)
    architecture = _find_architecture(row, facts, notes)
    wording.year(row.get("as_of"), 0.0, notes)  # a day that no calendar has is refused
    engine = str(row.get("engine_class") or "unknown")
    if engine not in ENGINES:
        raise UsageError(f"engine_class is {shown(engine)}. Choose one of {', '.join(ENGINES)}.")
    if engine == "unknown":
        notes.append(f"engine {row.get('engine')!r} is not known: taken as a modern one, with the widest range")
    # how requests arrive, where the row does not say: so many at once, so many a second, or as many as are served
    batch, rate = wording.number(row.get("batch_or_concurrency")), wording.number(row.get("request_rate"))
    batch = batch if batch is not None and batch > 0 else None
    usual = "steady" if batch else "rated" if rate else "saturated"
    kind = str(row.get("load") or usual)
    if kind not in wording.SCENARIOS:
        raise UsageError(f"load is {shown(kind)}. Choose one of {', '.join(wording.SCENARIOS)}.")
    stated_lengths = wording.number(row.get("isl")), wording.number(row.get("osl"))
    prompt, output, stated = wording.lengths(*stated_lengths, kind, str(row.get("request_set") or ""))
    if not stated:
        notes.append(f"lengths assumed: {prompt:g} in, {output:g} out")
    form = wording.weight_format(row.get("weight_precision"))
    if engine == "tuned" and form in ("bf16", "fp16") and accelerator.fp8_tflops:
        # submissions name the reference's 16 bits where they ran the 8 bits of the chip
        notes.append(f"{form} is the reference's precision: taken as fp8, which tuned submissions run")
        form = "fp8"
    # the layout, repaired where it names accelerators twice, chosen where none is stated
    gpus = wording.count(row.get("n_gpus")) or wording.count(row.get("tp")) or 1
    spread = wording.spread(row, gpus, architecture.heads, architecture.experts > 0)
    if not spread.stated and gpus > 1:
        if batch is None:
            # whoever maximises a throughput runs as many replicas as fit: 1.5 for the cache beside the weights
            total = float(transformer.total_parameters(transformer.stack([architecture]))[0])
            needed = 1.5 * total * format_of(form).weight_bytes / (accelerator.memory_gib * GIB)
            degrees = [t for t in (1, 2, 4, 8) if gpus % t == 0 and t >= needed and architecture.heads % t == 0]
            if degrees:
                spread = replace(spread, tensor=degrees[0], data=1, expert=1, replicas=gpus // degrees[0])
        notes.append(f"tensor parallel assumed {spread.tensor}, replicas {spread.replicas}")
    ranks = spread.tensor * spread.data
    if ranks * spread.pipeline * spread.replicas != gpus and not spread.decode_workers:
        notes.append("stated degrees name the same accelerators twice: read as one group")
    # a group of up to eight stands in one node, also where the usual node is smaller
    system, cache = facts.default_system(accelerator.id), wording.cache_format(row.get("kv_precision"))
    if ranks <= 8:
        system = replace(system, gpus=max(system.gpus, 8))
    split = (spread.tensor, spread.data, spread.pipeline, spread.expert)
    hit = wording.number(row.get("prefix_hit_fraction"))
    server = str(row.get("served_by") or ("offline" if kind in _ALONE else "tuned"))
    if server not in SERVERS:
        raise UsageError(f"served_by is {shown(server)}. Choose one of {', '.join(SERVERS)}.")
    deployment = ServedReplica(architecture, accelerator, system, engine, form, cache, *split, server)
    return ServingRow(
        id=str(row.get("id") or ""),
        source=str(row.get("source_name") or ""),
        deployment=deployment,
        scenario=kind,
        prompt_tokens=max(prompt, 0.0),
        output_tokens=max(output, 1.0),
        batch=batch,
        rate=rate,
        requests=wording.positive(row.get("requests")),
        replicas=spread.replicas,
        prompt_workers=spread.prompt_workers,
        decode_workers=spread.decode_workers,
        drafted=wording.count(row.get("draft_tokens")) or 0,
        prefix_hit=min(max(hit or 0.0, 0.0), MOST_CACHED),
        stated_prefix=hit is not None,
        varied_lengths=wording.flag(row.get("varied_lengths")) is True,
        decode_only=wording.flag(row.get("decode_only")) is True,
        stated_lengths=stated,
        stated_layout=spread.stated,
        core=wording.flag(row.get("core")) is not False,
        notes=tuple(notes),
    )


def _find_architecture(row: Row, facts: Catalog, notes: list[str]) -> Architecture:
    """Return the architecture: a known one, else from the row's dimensions, else the nearest known one of its size."""
    name = str(row.get("model") or "").strip()
    if not name or name == "nan":
        raise UsageError("no model is named")
    # as named, without its owner, and without what names a format or a tuning of the same dimensions
    for candidate in (name, name.rsplit("/", 1)[-1], _SUFFIXES.sub("", name.rsplit("/", 1)[-1])):
        try:
            known = facts.architecture(candidate)
        except UsageError:
            continue
        layers, hidden = wording.count(row.get("n_layers")), wording.count(row.get("hidden"))
        if known.status != "synthesised" and layers in (None, known.layers) and hidden in (None, known.hidden):
            return known
    total = wording.number(row.get("params_b")) or training_rows.size_in_name(name)
    active = wording.number(row.get("active_params_b")) or _active_in_name(name)
    if wording.count(row.get("hidden")) and wording.count(row.get("n_layers")):
        notes.append(f"model {name!r} built from its stated dimensions")
        dense = training_rows.from_columns(
            {**row, "gated_mlp": "y"},
            name,
            wording.count(row.get("n_layers")),
            wording.count(row.get("hidden")) or 1,
            total,
        )
        dense = replace(dense, head_dim=wording.count(row.get("head_dim")) or dense.head_dim, tied_embeddings=False)
        if not total or not active or active > 0.85 * total:  # embeddings may stand outside the active ones
            return dense
        # With f the width of an expert, one expert in every layer has 3·h·f·layers parameters; what the total holds
        # beyond attention and embeddings ÷ that is the number of experts, and the same of the active parameters those
        # per token.
        width = dense.ffn_hidden
        expert_parameters = 3 * dense.hidden * width * dense.layers
        projections = 2 * dense.hidden * (dense.heads + dense.kv_heads) * dense.head_dim * dense.layers
        beside = projections + 2 * dense.vocab * dense.hidden
        experts = max(2, round((total * 1e9 - beside) / expert_parameters))
        per_token = min(experts, max(1, round((active * 1e9 - beside) / expert_parameters)))
        return replace(dense, ffn_hidden=0, experts=experts, experts_per_token=per_token, expert_ffn_hidden=width)
    if total is None:
        raise UsageError(f"model {name!r} is not known and states neither dimensions nor a parameter count")
    # nearest in total and active parameters, on a logarithmic scale; of equals the first by name
    architectures = facts.architectures()
    shape = transformer.stack(architectures)
    totals, actives = transformer.total_parameters(shape), transformer.active_parameters(shape)

    def distance(index: int) -> tuple[float, str]:
        off_total = abs(math.log(totals[index] / (total * 1e9)))
        return off_total + abs(math.log(actives[index] / ((active or total) * 1e9))), architectures[index].name

    nearest = architectures[min(range(len(architectures)), key=distance)]
    notes.append(f"model {name!r} taken as {nearest.name}, the nearest in size")
    return nearest


def _active_in_name(name: str) -> float | None:
    """Read billions of active parameters from a name such as Qwen3-30B-A3B.

    >>> _active_in_name("Qwen3-30B-A3B"), _active_in_name("Llama-3-8B")
    (3.0, None)
    """
    match = re.search(r"[-_]A(\d+(?:\.\d+)?)B", name, re.IGNORECASE)
    return float(match[1]) if match else None
