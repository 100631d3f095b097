"""Validation of peak memory: rows that carry `peak_memory_gb`, the allocator's peak on the fullest GPU in 1e9 bytes.

A prediction looks at the layout, the recipe and the software's name, never at a measured column, an id or a source.
"""

import re
from collections.abc import Sequence

import numpy as np

from gpucost.answers.checks import Skipped, ValidationReport
from gpucost.calibration import measurements, wording
from gpucost.calibration.measurements import refuse_slips
from gpucost.calibration.record import Row
from gpucost.calibration.training_rows import TrainingRow, as_stated, read_row
from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.physics.columns import Floats, layout_columns
from gpucost.physics.training.memory import training_memory
from gpucost.physics.training.memory_recipe import OTHERS_RATIO, RANGE_RATIOS, STYLES, MemoryRecipe, memory_recipe
from gpucost.physics.transformer import stack
from gpucost.units import GB

_METRIC = "peak_memory_gb"
OWN_SOURCES = "gpucost-"  # keys of this project's own runs, of which the range knows all that was set
_LIBRARIES = re.compile(r"transformers|hugging ?face|\bhf\b|peft|\btrl\b|axolotl|llama-?factory|unsloth|accelerate")
_PER_BLOCK = re.compile(r"block|layer|fsdp|titan")
_FUSED_KERNELS = re.compile(
    r"megatron|nemo|llm-?foundry|composer|transformer ?engine|maxtext|pax|\bjax\b|xla|llm\.c|primus|neox"
)


def style_of(row: Row, sharding: int, state_bytes: float | None, method: str) -> str:
    """Return the software style that a row's framework, compilation and optimizer states stand for.

    >>> style_of({"framework": "Hugging Face transformers + peft, eager"}, 0, 8.0, "full")
    'library'
    >>> style_of({"framework": "plain PyTorch, torch.compile per block", "compiled": 1}, 3, 16.0, "full")
    'compiled'
    """
    framework = str(row.get("framework") or "").lower()
    # 12 bytes per parameter or more hold fp32 weights, which autocast then casts for every product
    # the styles differ in what autograd keeps, and in which copies of the weights stand beside each other
    whole = (state_bytes is None or state_bytes >= 12) and method == "full" and sharding < 2
    compiled = wording.flag(row.get("compiled"))
    if compiled is None:
        compiled = "compile" in framework
    if _FUSED_KERNELS.search(framework):
        return "fused"
    if compiled and method == "full":
        # compiled whole, a model makes all logits at once; compiled by block, the loss is the caller's
        chunked = wording.number(row.get("loss_chunk_tokens")) or _PER_BLOCK.search(framework)
        return "compiled" if chunked else "compiled_model"
    if _LIBRARIES.search(framework):
        return "library_autocast" if whole else "library"
    return "autocast" if whole else "eager"


def predict_with_range(rows: Sequence[Row], facts: Catalog) -> tuple[Floats, Floats, list[Skipped]]:
    """Return the predicted peaks, the factor within which each is expected, and why rows were skipped."""
    peaks, ratios = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    readable: list[tuple[int, TrainingRow, Row]] = []
    skipped: list[Skipped] = []
    for place, row in enumerate(rows):
        try:
            refuse_slips(row, "memory_measurements")
            readable.append((place, read_row(row, facts), row))
        except UsageError as error:
            skipped.append({"id": str(row.get("id") or place), "reason": str(error)})
    if readable:
        shape = stack([as_stated(row, read.architecture) for _, read, row in readable])
        # Attention keeps its scores where it is not fused, but for PyTorch's deterministic mode: that takes the
        # memory-efficient kernel, which is slow beside flash attention and keeps no scores either.
        keeps_scores = [
            not read.flash and "deterministic" not in str(row.get("framework") or "").lower()
            for _, read, row in readable
        ]
        layout = layout_columns(
            [read.layout for _, read, _ in readable],
            flash=~np.array(keeps_scores),
            sequence_parallel=np.array(
                [wording.flag(row.get("sequence_parallel")) is not False for _, _, row in readable]
            ),
            shard_ranks=np.array([read.shard_ranks for _, read, _ in readable], dtype=np.float64),
        )
        recipes = []
        for _, read, row in readable:
            # fused stacks compute with 16-bit weights beside their fp32 copy; others cast the fp32 weights themselves
            stated = wording.number(row.get("state_bytes_per_param"))
            style = style_of(row, read.layout.sharding, stated, read.method)
            whole = (stated is None or stated >= 12) and style != "fused" and read.method == "full"
            # the update's working memory is a copy of all weights where it runs over lists of tensors: PyTorch's
            # default AdamW is the foreach one, which makes its intermediates for all tensors at once
            listed = re.search(r"foreach|default", str(row.get("optimizer") or "").lower())
            recipes.append(
                memory_recipe(
                    read.sequence_tokens,
                    method=read.method,
                    style=style,
                    fp32_weights=whole,
                    state_bytes_per_parameter=stated,
                    step_bytes=(4.0 if whole else 2.0) if listed else None,
                    adapter_rank=read.adapter_rank,
                    adapter_share=read.adapter_share,
                    loss_chunk_tokens=read.loss_chunk_tokens,
                    loss_chunk_kept=wording.flag(row.get("loss_chunk_recompute")) is False,
                    vocabulary_split=read.vocabulary_split,
                    gradient_views=bool(wording.flag(row.get("gradient_views"))),
                    offload=str(row.get("offload") or "none"),
                    full_precision=read.full_precision,
                )
            )
        recipe = MemoryRecipe.concatenate(recipes)
        places = [place for place, _, _ in readable]
        peaks[places] = training_memory(shape, layout, recipe).total_bytes / GB
        # of rows from elsewhere nobody knows every setting: their range is at least OTHERS_RATIO wide
        owns = [str(row.get("source_id") or "").startswith(OWN_SOURCES) for _, _, row in readable]
        of_style = (RANGE_RATIOS[STYLES[code]] for code in recipe.style.tolist())
        ratios[places] = [
            ratio if mine else max(ratio, OTHERS_RATIO) for ratio, mine in zip(of_style, owns, strict=True)
        ]
    return peaks, ratios, skipped


def predicted_peaks(rows: Sequence[Row], facts: Catalog) -> list[measurements.Item]:
    """Return the predicted peaks of the rows that carry a measured one."""
    return _compared(rows, facts)[0]


def _compared(rows: Sequence[Row], facts: Catalog) -> tuple[list[measurements.Item], list[Skipped]]:
    """Return predictions beside the peaks that rows carry, and why rows were skipped."""
    measured = [(row, value) for row in rows if (value := wording.positive(row.get(_METRIC))) is not None]
    peaks, ratios, skipped = predict_with_range([row for row, _ in measured], facts)
    items = []
    for (row, value), peak, ratio in zip(measured, peaks.tolist(), ratios.tolist(), strict=True):
        if np.isfinite(peak):
            # told apart in the report: recomputation hides what activations take
            again = wording.recompute(row.get("activation_recompute")) in ("full", "selective")
            name, source = str(row.get("id") or ""), str(row.get("source_name") or "")
            ends, notes = (peak / ratio, peak * ratio), tuple(wording.unknown(row))
            group = "recompute" if again else "none"
            items.append(measurements.Item(name, source, _METRIC, value, peak, *ends, group, notes))
    return items, skipped


def validate(rows: Sequence[Row], facts: Catalog, *, core: bool = False) -> ValidationReport:
    """Return the report over the rows that carry a measured peak."""
    # a row of the timing table may state no peak
    carrying = [row for row in rows if wording.positive(row.get(_METRIC)) is not None]
    chosen = [row for row in carrying if not core or wording.flag(row.get("core")) is not False]
    items, skipped = _compared(chosen, facts)
    sources = {str(row.get("id") or ""): str(row.get("source_name") or "") for row in chosen}
    return measurements.payload(
        len(chosen),
        items,
        skipped,
        sources,
        kind="validation",
        validated="memory",
        method="counted from what a step keeps alive; nothing is fitted",
        by_recompute={
            name: measurements.statistics([i for i in items if i.group == name]) for name in ("none", "recompute")
        },
    )
