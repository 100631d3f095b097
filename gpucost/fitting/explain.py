"""The components of a footprint with their formulas, the numbers in them, and the references."""

import numpy as np

from gpucost.answers.memory import Component
from gpucost.fitting.job import MemoryJob
from gpucost.fitting.search import Plan
from gpucost.physics.columns import layout_columns
from gpucost.physics.training.memory import LOGIT_BYTES, holdings, in_flight
from gpucost.physics.training.memory_activations import layer_bytes
from gpucost.physics.training.memory_recipe import LORA, MemoryRecipe
from gpucost.physics.transformer import Shape, stack
from gpucost.units import GB, format_count

ZERO = "ZeRO, arXiv:1910.02054, section 3.1 and figure 1"
KORTHIKANTI = "Korthikanti et al. 2022, arXiv:2205.05198, eq. 2-6"
LORA_PAPER = "LoRA, arXiv:2106.09685, section 4.1; QLoRA, arXiv:2305.14314, section 3"
FSDP = "PyTorch FSDP, arXiv:2304.11277, section 4"
COUNTED = "counted from the tensors that are alive; held against the measured rows of models/measurements/memory.csv"


def components(job: MemoryJob, plan: Plan) -> list[Component]:
    """Return one row per component, largest term first in the order of the formula."""
    memory, total = plan.memory, plan.needed_bytes
    texts = formulas(job, plan)
    rows: list[Component] = []
    for name in ("weights", "gradients", "optimizer", "activations", "logits", "buffers", "temporary"):
        value = float(getattr(memory, f"{name}_bytes")[0])
        formula, numbers, reference = texts[name]
        rows.append(
            {
                "component": name,
                "needed_gb": value / GB,
                "share_fraction": value / total,
                "formula": formula,
                "numbers": numbers if value else "nothing at the moment of the peak",
                "reference": reference,
            }
        )
    return rows


def formulas(job: MemoryJob, plan: Plan) -> dict[str, tuple[str, str, str]]:
    """Return (formula, its numbers, reference) of each component."""
    shape, recipe = stack([job.architecture]), job.recipe()
    layout = layout_columns([plan.layout], flash=job.flash)
    first = np.array([bool(plan.memory.first_stage[0])])
    single = plan.layout.pipeline == 1
    held = holdings(shape, layout, recipe, first | single, ~first | single)
    ranks = plan.layout.data * plan.layout.context
    counts = {name: float(getattr(held, name)[0]) for name in held.names()}
    return {
        **states(recipe, plan, counts, ranks),
        **flowing(job, shape, recipe, plan),
        "buffers": (
            "gathered shards of the ends and one or two layers, gradients on their way, 16-bit copies, workspaces",
            f"a layer holds {format_count(counts['block'])} parameters, the ends {format_count(counts['ends'])}",
            FSDP,
        ),
        "temporary": (
            "tokens × (all of one layer − what is saved of it + backward temporaries), or the update's",
            f"recompute {plan.layout.recompute}",
            COUNTED,
        ),
    }


def states(recipe: MemoryRecipe, plan: Plan, counts: dict[str, float], ranks: int) -> dict[str, tuple[str, str, str]]:
    """Return the formulas of weights, gradients and optimizer states."""
    tuned = int(recipe.method[0]) >= LORA
    stage = plan.layout.sharding if ranks > 1 else 0

    def shared(least: int) -> str:
        return f" ÷ {ranks} ranks" if stage >= least else ""

    trained = format_count(counts["trained"])
    each = float(recipe.adapter_bytes[0]) if tuned else float(recipe.weight_bytes[0])
    gradient = each if tuned else float(recipe.gradient_bytes[0])
    state = float(recipe.state_bytes[0])
    weights = f"{each:g} B × {trained}{shared(3)}"
    if tuned:
        frozen, ends = format_count(counts["frozen"]), format_count(counts["frozen_dense"])
        base = f"{float(recipe.frozen_bytes[0]):.3g} B × {frozen} frozen{shared(3)}"
        weights = f"{base} + 2 B × {ends} ends + {weights} adapters"
    reference = LORA_PAPER if tuned else ZERO
    return {
        "weights": ("bytes × parameters on the GPU ÷ ranks that shard them", weights, reference),
        "gradients": (
            "bytes × trained parameters ÷ ranks that shard them",
            f"{gradient:g} B × {trained}{shared(2)}",
            reference,
        ),
        "optimizer": (
            "bytes of states × trained parameters ÷ ranks that shard them",
            f"{state:g} B × {trained}{shared(1)}",
            reference,
        ),
    }


def flowing(job: MemoryJob, shape: Shape, recipe: MemoryRecipe, plan: Plan) -> dict[str, tuple[str, str, str]]:
    """Return the formulas of activations and logits."""
    layout = layout_columns([plan.layout], flash=job.flash)
    layer = layer_bytes(shape, layout, recipe)
    tokens = plan.layout.micro_batch * job.sequence_tokens / plan.layout.context
    layers = -(-job.architecture.layers // plan.layout.pipeline)
    first = np.array([bool(plan.memory.first_stage[0])])
    flight = float(in_flight(layout, first)[0])
    rows = min(tokens, job.loss_chunk_tokens or tokens)
    each = float(LOGIT_BYTES[recipe.style[0]])
    return {
        "activations": (
            "tokens × bytes that a layer saves × layers × micro-batches in flight",
            f"{tokens:,.0f} × {float(layer.saved[0]):,.0f} B × {layers} × {flight:g} (+ last norm)",
            KORTHIKANTI,
        ),
        "logits": (
            "tokens whose logits exist × vocabulary ÷ tensor × bytes (softmax, its gradient, a copy)",
            f"{rows:,.0f} × {job.architecture.vocab:,} ÷ {plan.layout.tensor} × {each:g} B",
            COUNTED,
        ),
    }
