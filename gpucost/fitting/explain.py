"""The components of a footprint with their formulas, the numbers in them, and the references."""

import numpy as np

from gpucost.answers.memory import Component
from gpucost.fitting.job import MemoryJob
from gpucost.fitting.search import Plan
from gpucost.gate import beside
from gpucost.physics.columns import layout_columns
from gpucost.physics.training.memory import LOGIT_BYTES, holdings, in_flight
from gpucost.physics.training.memory_activations import layer_bytes
from gpucost.physics.training.memory_recipe import LORA, MemoryRecipe
from gpucost.physics.transformer import Shape, stack
from gpucost.units import GB, format_count

_COMPONENTS = beside(__file__, "components")[1:]  # largest term first in the order of the formula


def components(job: MemoryJob, plan: Plan) -> list[Component]:
    """Return one row per component, largest term first in the order of the formula."""
    recipe = job.recipe()
    texts, adapters = numbers_of(job, plan, recipe), int(recipe.method[0]) >= LORA
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


def numbers_of(job: MemoryJob, plan: Plan, recipe: MemoryRecipe) -> dict[str, str]:
    """Return the numbers in the formula of each component."""
    shape = stack([job.architecture])
    layout = layout_columns([plan.layout], flash=job.flash)
    first = np.array([bool(plan.memory.first_stage[0])])
    single = plan.layout.pipeline == 1
    held = holdings(shape, layout, recipe, first | single, ~first | single)
    ranks = plan.layout.data * plan.layout.context
    counts = {name: float(getattr(held, name)[0]) for name in held.names()}
    return {
        **states(recipe, plan, counts, ranks),
        **flowing(job, shape, recipe, plan),
        "buffers": f"a layer holds {format_count(counts['block'])} parameters, the ends {format_count(counts['ends'])}",
        "temporary": f"recompute {plan.layout.recompute}",
    }


def states(recipe: MemoryRecipe, plan: Plan, counts: dict[str, float], ranks: int) -> dict[str, str]:
    """Return the numbers of weights, gradients and optimizer states."""
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
    return {
        "weights": weights,
        "gradients": f"{gradient:g} B × {trained}{shared(2)}",
        "optimizer": f"{state:g} B × {trained}{shared(1)}",
    }


def flowing(job: MemoryJob, shape: Shape, recipe: MemoryRecipe, plan: Plan) -> dict[str, str]:
    """Return the numbers of activations and logits."""
    layout = layout_columns([plan.layout], flash=job.flash)
    layer = layer_bytes(shape, layout, recipe)
    tokens = plan.layout.micro_batch * job.sequence_tokens / plan.layout.context
    layers = -(-job.architecture.layers // plan.layout.pipeline)
    first = np.array([bool(plan.memory.first_stage[0])])
    flight = float(in_flight(layout, first)[0])
    rows = min(tokens, job.loss_chunk_tokens or tokens)
    each = float(LOGIT_BYTES[recipe.style[0]])
    return {
        "activations": f"{tokens:,.0f} × {float(layer.saved[0]):,.0f} B × {layers} × {flight:g} (+ last norm)",
        "logits": f"{rows:,.0f} × {job.architecture.vocab:,} ÷ {plan.layout.tensor} × {each:g} B",
    }
