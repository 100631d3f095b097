"""Step time of training: what each part of a step costs, what hides behind what, and the tokens per second.

One micro-batch on one pipeline stage is timed first (`micro_step`), layer by layer (physics/layer.py): matrix
products, attention, element-wise traffic, exchanges of the tensor, context and expert groups, and the host. `step`
then adds the schedule: micro-batches, bubble, data-parallel traffic, optimizer and what the scale loses. All per
accelerator.
"""

import numpy as np
from msgspec.structs import replace

from gpucost.physics import collectives as net
from gpucost.physics import transformer as tf
from gpucost.physics.columns import Floats, LayoutColumns, constant
from gpucost.physics.hardware import peak_tflops
from gpucost.physics.training import layer
from gpucost.physics.training.cases import FULL, HALF_BYTES, LORA, SELECTIVE, MicroStep, Step, TrainingCase
from gpucost.physics.training.layer import case_links, exposed_s
from gpucost.physics.transformer import Shape
from gpucost.units import GB, MICRO, MILLI, TERA

_HOST_MEMORY_GB_PER_S = 40.0  # of a host's memory that the update of one accelerator's parameters gets: an assumption


def micro_step(case: TrainingCase) -> MicroStep:
    """Time one micro-batch on the slowest pipeline stage.

    Layers need not divide by the stages: an inner stage carries ⌈L/p⌉ of them, the last ⌊L/p⌋ and the logits.
    """
    layout, s, e = case.layout, case.shape, case.efficiency
    tokens = layout.micro_batch * case.recipe.sequence_tokens / layout.context
    rate, link = layer.rates(case), case_links(case)
    # products: forward, backward to inputs and to weights (adapters: to inputs alone), and what is repeated
    passes = np.where(case.recipe.method >= LORA, 2.0, 3.0) + (layout.recompute == FULL)
    passes = passes + (layout.recompute == SELECTIVE) * e.selective_repeat
    matrix = layer.layer_products_s(case, rate, tokens) * passes * e.kernel_ratio
    mixers = (layer.layer_attention_s, layer.layer_sinks_s, layer.layer_scan_s)
    attention = sum(mixer(case, rate, tokens) for mixer in mixers) * e.kernel_ratio
    elementwise = layer.layer_elementwise_s(case, rate, tokens) * e.kernel_ratio
    adapter = layer.layer_adapter_s(case, rate, tokens) * e.kernel_ratio
    tensor = layer.layer_tensor_s(case, link, tokens)
    context = layer.layer_context_s(case, link, tokens, attention)
    expert = layer.layer_expert_s(case, link, tokens)
    # What the host needs to launch a layer counts only where it exceeds what the accelerator does meanwhile.
    busy = matrix + attention + elementwise + adapter + tensor + context + expert
    grouped = np.maximum(np.maximum(layout.tensor, layout.context), layout.expert) > 1
    moe = s.moe_layers / s.layers
    again = np.where(layout.recompute == FULL, 4 / 3, 1.0) * np.where(grouped, e.host_group_ratio, 1.0)
    host = (
        (e.host_us + moe * e.expert_host_us * layer.dispatch_ratio(case) + layer.layer_adapter_host_us(case))
        * MICRO
        * again
    )
    idle = np.maximum(host - busy, 0.0)
    logits = layer.logits_s(case, rate, tokens) * e.kernel_ratio
    layers, ends = (count * e.own_ratio for count in stage_layers(s, layout, logits / (busy + idle)))
    return MicroStep(
        matrix_s=layers * matrix,
        attention_s=layers * attention,
        elementwise_s=layers * elementwise,
        logits_s=ends * logits,
        adapter_s=layers * adapter,
        tensor_s=layers * tensor,
        context_s=layers * context,
        expert_s=layers * expert,
        host_s=layers * idle,
    )


def stage_layers(shape: Shape, layout: LayoutColumns, logits_layers: Floats) -> tuple[Floats, Floats]:
    """Return the layers and the logits of the slowest stage; the logits' time is given in layers.

    Layers that divide by the stages are spread evenly, and the last stage carries the logits on top. Layers that do
    not are placed so that the last stage, with the logits and any prediction modules, is no slower than the others.
    126 layers on 16 stages, logits of one layer: fourteen stages have 8, and the last has 7 and the logits.

    >>> from gpucost.physics.columns import layout_columns
    >>> from gpucost.physics.transformer import stack
    >>> from gpucost.types import Architecture, Layout
    >>> llama = stack([Architecture("llama-3.1-405b", "", 126, 16384, 128, 8, 128, 53248, True, 128256, False)])
    >>> stage_layers(llama, layout_columns([Layout(gpus=16, pipeline=16)]), np.array([0.9]))
    (array([8.]), array([0.]))
    """
    # each prediction module is a layer and computes logits of its own
    p, heads = layout.pipeline, 1.0 + shape.mtp_layers
    ends = heads * logits_layers + shape.mtp_layers
    even = shape.layers / p
    # level, every stage has (layers + ends) ÷ p, of which the last gives its ends their part
    spare = np.maximum(np.floor(even - ends * (p - 1) / p), 0.0)
    last = np.where(shape.layers % p == 0, even, spare)
    inner = np.ceil((shape.layers - last) / np.maximum(p - 1, 1))
    # which of the two sets the pace: the last stage with its ends, or the fullest before it
    slow_end = (last + ends >= inner) | (p == 1)
    return np.where(slow_end, last + shape.mtp_layers, inner), np.where(slow_end, heads, 0.0)


def gpu_parameters(case: TrainingCase) -> tuple[Floats, Floats]:
    """Return the parameters that one accelerator holds before sharding: (dense, expert).

    Dense parts divide by tensor × pipeline; routed experts by expert × pipeline, or by tensor without expert
    parallelism.
    """
    s, layout = case.shape, case.layout
    routed = tf.parameter_parts(s).routed_experts
    dense = (tf.total_parameters(s) + tf.mtp_parameters(s) - routed) / (layout.tensor * layout.pipeline)
    spread = np.where(layout.expert > 1, layout.expert, layout.tensor)  # ranks that divide the experts among them
    return dense, routed / (spread * layout.pipeline)


def data_s(case: TrainingCase, compute: Floats, dense: Floats, expert: Floats) -> Floats:
    """Return the exposed time per step of the data-parallel exchange.

    Plain and ZeRO 1-2: once per step, gradients reduced (and, sharded, weights gathered), behind the backward pass of
    the last micro-batch. ZeRO 3 and FSDP: weights gathered twice and gradients reduced in every micro-batch, layer by
    layer, behind its compute (arXiv:1910.02054, section 7), and copied between flat buffers and the layer's own; under
    a pipeline stacks that run eagerly keep what they gathered and reduce once, compiled graphs do not. Of experts
    only those that a rank holds are gathered, under compute like the rest.

    Hybrid sharding (HSDP) gathers and reduces inside a group of ranks, while the groups sum the shards of gradients
    that each rank is left with, on a stream of its own over another link: the longer of the two counts, behind the same
    compute (PyTorch FSDP, arXiv:2304.11277, section 3.2.2). Its gradients travel in 16 bits, PyTorch's default.
    """
    layout, e, link = case.layout, case.efficiency, case_links(case)
    # the group that shares a parameter: of dense ones all shards, of an expert only the ranks that hold it
    ranks, shards = layout.data * layout.context, layout.shards
    spread = layout.expert > 1
    group = few = net.tier(link, shards, layout.tensor)
    if np.any(spread):
        sharing_ranks = np.where(spread, np.maximum(shards * layout.tensor / layout.expert, 1.0), shards)
        few = net.tier(link, sharing_ranks, np.where(spread, layout.expert, layout.tensor))
    tuned = case.recipe.method >= LORA
    gradient = np.where(tuned, 0.0, case.recipe.gradient_bytes)
    sharded = layout.sharding >= 3
    hybrid = sharded & (shards < ranks) & ~tuned
    gradient = np.where(hybrid, HALF_BYTES, gradient)
    # bytes per parameter of one exchange
    gathered_once = sharded & (layout.pipeline > 1) & (e.whole_graph == 0)
    moved = (
        np.where(sharded & ~gathered_once, 2 * HALF_BYTES, np.where(layout.sharding > 0, HALF_BYTES, gradient))
        + gradient
    )
    moved = np.where(tuned & ~sharded, 0.0, moved)
    exchange = net.ring_s(group, moved * dense) + net.ring_s(few, moved * expert)
    if np.any(hybrid):
        copies = net.tier(link, ranks / shards, layout.tensor * shards)
        summed = net.all_reduce_s(copies, gradient * (dense + expert) / shards)
        exchange = np.where(hybrid, np.maximum(exchange, summed), exchange)
    chunks = 1 + (layout.pipeline - 1) * (1 - 1 / layout.virtual_stages)  # interleaving ends its chunks one by one
    # a backward pass is two thirds of the compute
    once = exposed_s(exchange, e.data_hidden * compute * chunks * 2 / 3, e.interference)
    copied = (dense + expert) * e.sharding_bytes / (case.hardware.hbm_gb_per_s * GB * e.copy)
    per_exchange = exposed_s(exchange, e.data_hidden * compute, e.interference) + copied
    once = once + np.where(gathered_once, copied, 0.0)
    per_exchange = np.where(gathered_once, once, per_exchange * layout.micro_batches)
    ends = exchange / np.maximum(case.shape.layers, 1.0)  # the first gather and the last reduction hide behind nothing
    return np.where(ranks > 1, np.where(sharded, per_exchange, once) + ends, 0.0)


def optimizer_s(case: TrainingCase, dense: Floats, expert: Floats) -> Floats:
    """Return the time of an update on the accelerator: bytes per parameter · parameters of this rank ÷ bandwidth.

    Where fp32 weights are kept whole on every rank, casting them in each micro-batch comes on top.
    """
    layout, e, recipe = case.layout, case.efficiency, case.recipe
    # each rank updates what it holds the states of: all of it, or its shard
    ranks = np.where(layout.sharding > 0, layout.shards, 1.0)
    spread = np.where(layout.expert > 1, np.maximum(ranks * layout.tensor / layout.expert, 1.0), ranks)
    spread = np.where(layout.sharding > 0, spread, 1.0)
    updated = (dense / ranks + expert / spread) * recipe.optimizer_bytes * e.optimizer_ratio
    cast = np.where(layout.sharding < 3, dense + expert, 0.0) * recipe.cast_bytes * layout.micro_batches
    # adapters are too few to count; offloaded states are updated on the host
    moved = np.where(recipe.method >= LORA, 0.0, np.where(recipe.offload > 0, 0.0, updated) + cast)
    return moved / (case.hardware.hbm_gb_per_s * GB * e.copy)


def hand_over_s(case: TrainingCase) -> Floats:
    """Return the exposed time in which a stage passes one micro-batch on and takes its gradient back.

    Each tensor rank sends its share, gathered again over the scale-up link (arXiv:2104.04473, section 4.1).
    """
    layout = case.layout
    tokens = layout.micro_batch * case.recipe.sequence_tokens / layout.context
    hop = net.tier(case_links(case), layout.pipeline, layout.gpus / layout.pipeline)
    message = tokens * case.shape.hidden * HALF_BYTES / layout.tensor
    # forward and backward, once for each piece of a stage
    return 2 * layout.virtual_stages * net.point_to_point_s(hop, message) * case.efficiency.tensor_exposed


def step(case: TrainingCase) -> Step:
    """Time one optimizer step by part.

    T = (m + (p − 1)/v) · t_stage + exposed data traffic + optimizer + fixed overhead, times the stragglers' share;
    the bubble is that of 1F1B and its interleaved form (arXiv:2104.04473, section 2.2). Where a stage waits while it
    hands over (nanotron sends shapes ahead of values and awaits both), each micro-batch also waits for a share of every
    stage before it.
    """
    return assemble(case, micro_step(case))


def scheduled(case: TrainingCase, busy: Floats) -> dict[str, Floats]:
    """Return what the schedule adds to micro-batches of `busy` seconds, and the total with what the scale loses."""
    layout, e, recipe, m = case.layout, case.efficiency, case.recipe, case.layout.micro_batches
    dense, expert = gpu_parameters(case)
    # `own_ratio`, of one's own runs, slows every part alike: what hides behind computing is measured without it
    own_ratio, hand_over = e.own_ratio, hand_over_s(case) * e.own_ratio
    waits = np.where(recipe.blocking, m * e.blocking_share, 0.0)

    # What host memory adds. States there: gradients go down and weights come back over PCIe once per step, 2 bytes each
    # way, and the host's memory carries the update (ZeRO-Offload, arXiv:2101.06840, section 4). Weights there too:
    # every pass fetches them behind the compute of its micro-batch.
    host_s = np.zeros(len(case))
    if np.any(recipe.offload):
        ranks = np.where(layout.sharding > 0, layout.shards, 1.0)
        owned = (dense + expert) / ranks
        bus = case.hardware.pcie_gb_per_s * GB * e.pcie
        trained = np.where(recipe.method >= LORA, 0.0, owned)  # states of adapters are too small to count
        update = trained * (2 * HALF_BYTES / bus + recipe.optimizer_bytes / (_HOST_MEMORY_GB_PER_S * GB))
        passes = np.where(layout.recompute == FULL, 3.0, 2.0)  # that read a weight: forward, backward, repeated
        fetch = exposed_s(passes * HALF_BYTES * owned / bus, busy / own_ratio, e.interference) * m
        host_s = np.where(recipe.offload > 0, update, 0.0) + np.where(recipe.offload > 1, fetch, 0.0)

    parts = {
        "pipeline_s": hand_over * m,
        "bubble_s": (busy + hand_over) * (layout.pipeline - 1) * (1 / layout.virtual_stages + waits),
        "data_s": data_s(case, busy / own_ratio, dense, expert) * own_ratio,
        "optimizer_s": optimizer_s(case, dense, expert) * own_ratio,
        "offload_s": host_s * own_ratio,
        "overhead_s": constant(e.step_overhead_ms * MILLI * own_ratio, len(case)),
    }
    subtotal = sum(parts.values(), busy * m)
    nodes = np.maximum(layout.gpus / case.hardware.node_gpus, 1.0)
    lost = subtotal * e.straggler * np.log2(nodes)  # the slowest of n nodes is later with every doubling of them
    return parts | {"straggler_s": lost, "total_s": subtotal + lost}


def speed_of(case: TrainingCase, step_s: Floats) -> Floats:
    """Return the tokens per second and accelerator of a step of that time."""
    return case.layout.global_batch * case.recipe.sequence_tokens / step_s / case.layout.gpus


def apart_ratio(case: TrainingCase, step: Step) -> Floats:
    """Return the speed of a step without fused attention against its own: what attention takes longer is added.

    The host's waiting hides a part of it, and the bubble holds it once more for each stage that waits.
    """
    layout, tokens = case.layout, case.layout.micro_batch * case.recipe.sequence_tokens / case.layout.context
    apart = replace(case, layout=replace(layout, flash=np.zeros(len(case), dtype=np.bool_)))
    fused_s, apart_s = (layer.layer_attention_s(kind, layer.rates(kind), tokens) for kind in (case, apart))
    longer_s = np.maximum(step.attention_s * (apart_s / fused_s - 1) - step.host_s, 0.0)
    return step.total_s / (step.total_s + longer_s * (1 + step.bubble_s / (step.total_s - step.bubble_s)))


def assemble(case: TrainingCase, micro: MicroStep) -> Step:
    """Add the schedule to the time of one micro-batch."""
    m, recipe = case.layout.micro_batches, case.recipe
    schedule = scheduled(case, micro.total_s)
    speed = speed_of(case, schedule["total_s"])
    tflops = speed * tf.model_flop(case.shape, recipe.attended_tokens, recipe.causal, recipe.method >= LORA) / TERA
    return Step(
        **{name: getattr(micro, name) * m for name in micro.names()},
        **schedule,
        tokens_per_s_per_gpu=speed,
        model_tflops=tflops,
        mfu_fraction=tflops / peak_tflops(case.hardware, case.layout.precision),
    )
