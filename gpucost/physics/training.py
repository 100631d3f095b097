"""Step time of training: what each part of a step costs, what hides behind what, and the tokens per second.

One micro-batch on one pipeline stage is timed first (`micro_step`), layer by layer: matrix products, attention,
element-wise traffic, exchanges of the tensor, context and expert groups, and the host. `step` then adds the
schedule: micro-batches, bubble, data-parallel traffic, optimizer and what the scale loses. All per accelerator.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from gpucost.physics import collectives as net
from gpucost.physics import transformer as tf
from gpucost.physics.columns import METHODS, PRECISIONS, Columns, Flags, Floats, Integers, LayoutColumns
from gpucost.physics.efficiency import Efficiencies
from gpucost.physics.hardware import HardwareColumns, peak_tflops
from gpucost.physics.transformer import Shape

Part = TypeVar("Part", bound=Columns)

TERA = 1e12
HALF_BYTES = 2.0
LORA, QLORA = METHODS.index("lora"), METHODS.index("qlora")
FP8, FP4, INT8 = PRECISIONS.index("fp8"), PRECISIONS.index("fp4"), PRECISIONS.index("int8")
FULL = 2  # recompute code
FLASH_HEAD_DIM = 48.0  # head dimension at which fused attention reaches half of its long-head speed
ACTIVATION_SHARE = 0.15  # traffic of one feed-forward value against that of one residual value


@dataclass(frozen=True, slots=True)
class Recipe(Columns):
    """What is trained and how, beyond the layout."""

    sequence_tokens: Floats
    method: Integers  # code into METHODS
    causal: Flags
    optimizer_bytes: Floats  # moved per parameter in an update: 30 for AdamW with fp32 states and 16-bit weights
    gradient_bytes: Floats  # per parameter in the data-parallel exchange
    cast_bytes: Floats  # per parameter and micro-batch: 6 where fp32 weights are cast to 16 bits each time
    adapter_rank: Floats
    adapter_share: Floats  # share of the layers' matrices that carry adapters


@dataclass(frozen=True, slots=True)
class Case:
    """All that a step depends on: structs of arrays of one length; one that all cases share may have length one."""

    shape: Shape
    hardware: HardwareColumns
    layout: LayoutColumns
    recipe: Recipe
    efficiency: Efficiencies

    def __len__(self) -> int:
        return len(self.layout)

    def take(self, indices: Any) -> "Case":
        """Return the cases that `indices` names."""

        def of(part: Part) -> Part:
            return part if len(part) == 1 else part.take(indices)

        return Case(of(self.shape), of(self.hardware), of(self.layout), of(self.recipe), of(self.efficiency))


@dataclass(frozen=True, slots=True)
class MicroStep(Columns):
    """Seconds of one micro-batch on the slowest pipeline stage, by part."""

    matrix_s: Floats
    attention_s: Floats
    elementwise_s: Floats
    logits_s: Floats
    adapter_s: Floats
    tensor_s: Floats
    context_s: Floats
    expert_s: Floats
    host_s: Floats  # what the host adds beyond the accelerator's own time

    @property
    def total_s(self) -> Floats:
        """Sum of the parts."""
        return sum((getattr(self, name) for name in self.names()), np.zeros(len(self)))


@dataclass(frozen=True, slots=True)
class Step(Columns):
    """Seconds of one optimizer step by part, and what follows from their sum."""

    matrix_s: Floats
    attention_s: Floats
    elementwise_s: Floats
    logits_s: Floats
    adapter_s: Floats
    tensor_s: Floats
    context_s: Floats
    expert_s: Floats
    pipeline_s: Floats
    host_s: Floats
    bubble_s: Floats
    data_s: Floats
    optimizer_s: Floats
    straggler_s: Floats
    overhead_s: Floats
    total_s: Floats
    tokens_per_s_per_gpu: Floats
    model_tflops: Floats
    mfu_fraction: Floats


PARTS = tuple(name for name in Step.names() if name.endswith("_s") and name != "total_s")


# Products ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rates(Columns):
    """Reachable rates: FLOP/s of products at the layout's precision and at 16 bits, bytes/s of the memory."""

    matrix_flop_per_s: Floats
    half_flop_per_s: Floats
    flash_flop_per_s: Floats
    bytes_per_s: Floats
    value_bytes: Floats  # bytes per value that products read


def rates(case: Case) -> Rates:
    """Return the reachable rates: dense peak × the fitted share, for the layout's precision and for 16 bits."""
    e, precision = case.efficiency, case.layout.precision
    eight = (precision == FP8) | (precision == INT8)
    ratio = np.ones(len(case))
    for code, share in ((FP8, e.fp8_ratio), (INT8, e.int8_ratio), (FP4, e.fp4_ratio)):
        ratio = np.where(precision == code, share, ratio)
    half = case.hardware.half_tflops * TERA
    return Rates(
        matrix_flop_per_s=peak_tflops(case.hardware, precision) * TERA * e.matrix * ratio,
        half_flop_per_s=half * e.matrix,
        flash_flop_per_s=half * e.flash,
        bytes_per_s=case.hardware.hbm_gb_per_s * net.GB * e.copy,
        value_bytes=np.where(eight, 1.0, np.where(precision == FP4, 0.5, HALF_BYTES)),
    )


def product_s(
    rows: Floats,
    columns: Floats,
    depth: Floats,
    flop_per_s: Floats,
    rate: Rates,
    e: Efficiencies,
    groups: Floats | float = 1.0,
) -> Floats:
    """Return the time of a product rows × depth × columns, in `groups` with weights of their own.

    Compute, 2·(m + g·m0)·(n + w0)·(k + w0) ÷ rate, and memory traffic, combined as √(a² + b²): tiles and waves round
    each dimension up (m0 per group, w0), and a narrow product is bound by its bytes.
    """
    compute = 2 * (rows + groups * e.matrix_tokens) * (columns + e.matrix_width) * (depth + e.matrix_width) / flop_per_s
    values = rows * (depth + columns) + groups * depth * columns
    moved = values * HALF_BYTES / rate.bytes_per_s
    both: Floats = np.hypot(compute, moved)
    return both


def layer_products_s(case: Case, rate: Rates, tokens: Floats) -> Floats:
    """Return the time of one mean layer's products in one pass over a micro-batch."""
    s, e, t = case.shape, case.efficiency, case.layout.tensor
    h, peak = s.hidden, rate.matrix_flop_per_s
    wide = np.where(s.gated, 2.0, 1.0)
    attention = 2 * product_s(tokens, tf.attention_matrix_parameters(s) / (2 * h * t), h, peak, rate, e)
    width = s.ffn_hidden / t
    dense = np.where(
        s.ffn_hidden > 0,
        product_s(tokens, wide * width, h, peak, rate, e) + product_s(tokens, h, width, peak, rate, e),
        0.0,
    )
    moe = tf.moe_layers(s) / s.layers
    if not np.any(moe > 0):
        return attention + dense
    return attention + (1 - moe) * dense + moe * expert_products_s(case, rate, tokens)


def expert_products_s(case: Case, rate: Rates, tokens: Floats) -> Floats:
    """Return the time of one mixture of experts' products in one pass: routed on the busiest rank, and shared.

    With expert parallelism a rank keeps experts ÷ expert of them whole and receives its share of the tokens; without
    it, every rank keeps a tensor slice of all experts.
    """
    s, e, layout = case.shape, case.efficiency, case.layout
    h, peak, wide = s.hidden, rate.matrix_flop_per_s, np.where(s.gated, 2.0, 1.0)
    spread = layout.expert > 1
    rows = tokens * s.experts_per_token / np.where(spread, layout.tensor, 1.0)
    width = s.expert_ffn_hidden / np.where(spread, 1.0, layout.tensor)
    local = np.maximum(s.experts / layout.expert, 1.0)
    routed = product_s(rows, wide * width, h, peak, rate, e, local) + product_s(rows, h, width, peak, rate, e, local)
    shared_width = s.shared_experts * s.shared_ffn_hidden / layout.tensor
    shared = product_s(tokens, wide * shared_width, h, peak, rate, e) + product_s(
        tokens, h, shared_width, peak, rate, e
    )
    return routed * np.where(spread, e.expert_imbalance, 1.0) + np.where(s.shared_experts > 0, shared, 0.0)


def layer_attention_s(case: Case, rate: Rates, tokens: Floats) -> Floats:
    """Return the time of one mean layer's attention core, forward and backward, with what is repeated.

    Fused: half the square under the causal mask, 1 forward and 2.5 backward (arXiv:2307.08691, section 3.1.2), at a
    rate that grows with sequence and head dimension. Unfused: the whole square, three passes, and the score matrix
    moved through memory again and again.
    """
    s, e, layout, recipe = case.shape, case.efficiency, case.layout, case.recipe
    sequence, head = recipe.sequence_tokens, np.maximum(tf.query_width(s) / s.heads, 1.0)
    full, some = layout.recompute == FULL, layout.recompute > 0
    share = tokens / layout.tensor / s.layers
    reach = sequence / (sequence + e.flash_tokens) * head / (head + FLASH_HEAD_DIM)
    fused = tf.attention_flop(s, sequence, recipe.causal) * share * np.where(full, 4.5, 3.5)
    fused_s = fused / (rate.flash_flop_per_s * reach)
    if np.all(layout.flash):
        return fused_s
    square = tf.attention_flop(s, sequence, False) * share * np.where(some, 4.0, 3.0)
    scores = s.heads / layout.tensor * tokens * sequence * HALF_BYTES * e.softmax_passes * np.where(some, 4 / 3, 1.0)
    unfused_s = square * (1 + e.matrix_width / head) / rate.half_flop_per_s + scores / rate.bytes_per_s
    return np.where(layout.flash, fused_s, unfused_s)


def layer_elementwise_s(case: Case, rate: Rates, tokens: Floats) -> Floats:
    """Return the time of one mean layer's norms, activations, rotations and residuals, forward and backward.

    Traffic: passes · 2 bytes · (residual width + 0.15 · feed-forward values). Without sequence parallelism half of
    the residual's traffic (norms, dropout) is repeated on every tensor rank (arXiv:2205.05198, section 4.2).
    """
    s, e, layout = case.shape, case.efficiency, case.layout
    moe = tf.moe_layers(s) / s.layers
    active = s.experts_per_token * s.expert_ffn_hidden + s.shared_experts * s.shared_ffn_hidden
    ffn = ((1 - moe) * s.ffn_hidden + moe * active) * np.where(s.gated, 1.5, 1.0) / layout.tensor
    residual = s.hidden * np.where(layout.sequence_parallel, 1 / layout.tensor, 0.5 + 0.5 / layout.tensor)
    values = e.elementwise_passes * (residual + ACTIVATION_SHARE * ffn)
    routed = moe * e.expert_passes * s.experts_per_token * s.hidden / layout.tensor
    again = np.where(layout.recompute == FULL, 4 / 3, 1.0)
    return tokens * HALF_BYTES * (values + routed) * again / rate.bytes_per_s


def logits_s(case: Case, rate: Rates, tokens: Floats) -> Floats:
    """Return the time of the output projection and the loss of one micro-batch, forward and backward, at 16 bits."""
    s, e, layout = case.shape, case.efficiency, case.layout
    share = s.vocab / layout.tensor
    passes = np.where(case.recipe.method >= LORA, 2.0, 3.0)
    product = product_s(tokens, share, s.hidden, rate.half_flop_per_s, rate, e) * passes
    return product + tokens * share * e.loss_bytes / rate.bytes_per_s


def layer_adapter_s(case: Case, rate: Rates, tokens: Floats) -> Floats:
    """Return the time of one layer's adapters: two skinny products per target and pass, bound by their traffic.

    QLoRA unpacks the frozen weights in every pass: half a byte read, two written and read again.
    """
    s, e, layout, recipe = case.shape, case.efficiency, case.layout, case.recipe
    tuned = recipe.method >= LORA
    if not np.any(tuned):
        return np.zeros(len(case))
    weights = tf.layers_linear_flop(s) / 2 / s.layers / layout.tensor
    ends = recipe.adapter_share * 2 * weights / s.hidden  # inputs and outputs of the adapted matrices
    traffic = tokens * HALF_BYTES * e.adapter_passes * ends
    flop = 6 * tokens * ends * recipe.adapter_rank
    passes = np.where(layout.recompute == FULL, 3.0, 2.0)
    unpacked = np.where(recipe.method == QLORA, weights * 4.5 * passes, 0.0)
    time = (traffic + unpacked) / rate.bytes_per_s + flop / (0.25 * rate.half_flop_per_s)
    return np.where(tuned, time, 0.0)


# Exchanges ---------------------------------------------------------------------------------------------------------


def case_links(case: Case) -> net.Links:
    """Return the links at the fractions that collectives reach."""
    e = case.efficiency
    return net.links(case.hardware, e.scaleup, e.scaleout, e.scaleup_latency_us, e.scaleout_latency_us)


def layer_tensor_s(case: Case, link: net.Links, tokens: Floats) -> Floats:
    """Return the exposed time of one layer's tensor-parallel exchanges: two all-reduces each way, two more repeated.

    With sequence parallelism each is an all-gather and a reduce-scatter of the same volume (arXiv:2205.05198).
    """
    group = net.tier(link, case.layout.tensor, np.ones(len(case)))
    count = np.where(case.layout.recompute == FULL, 6.0, 4.0)
    return case.efficiency.tensor_exposed * count * net.all_reduce_s(group, tokens * case.shape.hidden * HALF_BYTES)


def layer_context_s(case: Case, link: net.Links, tokens: Floats, attention_s: Floats) -> Floats:
    """Return the exposed time of one layer's context-parallel ring: keys and values forward, twice that backward.

    The ring hides behind the attention that it feeds (arXiv:2310.01889, section 3); what is longer is exposed.
    """
    layout, s = case.layout, case.shape
    group = net.tier(link, layout.context, layout.tensor)
    message = layout.context * tokens * tf.kv_values_per_token(s) * HALF_BYTES / np.minimum(layout.tensor, s.kv_heads)
    return exposed_s(3 * net.ring_s(group, message), attention_s, case.efficiency.interference)


def layer_expert_s(case: Case, link: net.Links, tokens: Floats) -> Floats:
    """Return the exposed time of one mean layer's expert exchange: dispatch and combine, forward and backward."""
    layout, s = case.layout, case.shape
    group = net.tier(link, layout.expert, np.ones(len(case)))
    row = tokens / layout.tensor * s.hidden * HALF_BYTES
    count = np.where(layout.recompute == FULL, 6.0, 4.0) * tf.moe_layers(s) / s.layers
    return case.efficiency.alltoall_exposed * count * net.expert_exchange_s(group, row, s.experts_per_token, link)


def exposed_s(exchange: Floats, compute: Floats, interference: Floats) -> Floats:
    """Return what an exchange adds to the compute it overlaps: the excess, and a slow-down while both run."""
    return np.maximum(exchange - compute, 0.0) + interference * np.minimum(exchange, compute)


# Schedule ----------------------------------------------------------------------------------------------------------


def micro_step(case: Case) -> MicroStep:
    """Time one micro-batch on the slowest pipeline stage.

    Layers need not divide by the stages: an inner stage carries ⌈L/p⌉ of them, the last ⌊L/p⌋ and the logits.
    """
    layout, s, e = case.layout, case.shape, case.efficiency
    tokens = layout.micro_batch * case.recipe.sequence_tokens / layout.context
    rate, link = rates(case), case_links(case)
    passes = np.where(case.recipe.method >= LORA, 2.0, 3.0) + (layout.recompute == FULL)
    matrix = layer_products_s(case, rate, tokens) * passes * e.kernel_ratio
    attention = layer_attention_s(case, rate, tokens) * e.kernel_ratio
    elementwise = layer_elementwise_s(case, rate, tokens) * e.kernel_ratio
    adapter = layer_adapter_s(case, rate, tokens) * e.kernel_ratio
    tensor = layer_tensor_s(case, link, tokens)
    context = layer_context_s(case, link, tokens, attention)
    expert = layer_expert_s(case, link, tokens)
    busy = matrix + attention + elementwise + adapter + tensor + context + expert
    grouped = np.maximum(np.maximum(layout.tensor, layout.context), layout.expert) > 1
    host = (
        e.host_us * net.US * np.where(layout.recompute == FULL, 4 / 3, 1.0) * np.where(grouped, e.host_group_ratio, 1.0)
    )
    idle = np.maximum(host - busy, 0.0)
    logits = logits_s(case, rate, tokens) * e.kernel_ratio
    layers, ends = stage_layers(s, layout, logits / (busy + idle))
    return MicroStep(
        matrix_s=layers * matrix, attention_s=layers * attention, elementwise_s=layers * elementwise,
        logits_s=ends * logits, adapter_s=layers * adapter, tensor_s=layers * tensor, context_s=layers * context,
        expert_s=layers * expert, host_s=layers * idle,
    )  # fmt: skip


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
    p, heads = layout.pipeline, 1.0 + shape.mtp_layers
    ends = heads * logits_layers + shape.mtp_layers
    even = shape.layers / p
    spare = np.maximum(np.floor(even - ends * (p - 1) / p), 0.0)
    last = np.where(shape.layers % p == 0, even, spare)
    inner = np.ceil((shape.layers - last) / np.maximum(p - 1, 1))
    slow_end = (last + ends >= inner) | (p == 1)
    return np.where(slow_end, last + shape.mtp_layers, inner), np.where(slow_end, heads, 0.0)


def gpu_parameters(case: Case) -> tuple[Floats, Floats]:
    """Return the parameters that one accelerator holds before sharding: (dense, expert).

    Dense parts divide by tensor × pipeline; routed experts by expert × pipeline, or by tensor without expert
    parallelism.
    """
    s, layout = case.shape, case.layout
    routed = tf.parameter_parts(s).routed_experts
    dense = (tf.total_parameters(s) + tf.mtp_parameters(s) - routed) / (layout.tensor * layout.pipeline)
    spread = np.where(layout.expert > 1, layout.expert, layout.tensor)
    return dense, routed / (spread * layout.pipeline)


def data_s(case: Case, compute: Floats, dense: Floats, expert: Floats) -> Floats:
    """Return the exposed time per step of the data-parallel exchange.

    Plain and ZeRO 1-2: once per step, gradients reduced (and, sharded, weights gathered), behind the backward pass of
    the last micro-batch. ZeRO 3 and FSDP: weights gathered twice and gradients reduced in every micro-batch, layer by
    layer, behind its compute (arXiv:1910.02054, section 7).
    """
    layout, e, link = case.layout, case.efficiency, case_links(case)
    ranks = layout.data * layout.context
    group = net.tier(link, ranks, layout.tensor)
    few = net.tier(link, np.maximum(ranks * layout.tensor / layout.expert, 1.0), layout.expert)
    expert_group = net.Tier(*(np.where(layout.expert > 1, getattr(few, n), getattr(group, n)) for n in few.names()))
    tuned = case.recipe.method >= LORA
    gradient = np.where(tuned, 0.0, case.recipe.gradient_bytes)
    sharded = layout.sharding >= 3
    moved = np.where(sharded, 2 * HALF_BYTES, np.where(layout.sharding > 0, HALF_BYTES, gradient)) + gradient
    moved = np.where(tuned & ~sharded, 0.0, moved)
    exchange = net.ring_s(group, moved * dense) + net.ring_s(expert_group, moved * expert)
    chunks = 1 + (layout.pipeline - 1) * (1 - 1 / layout.virtual_stages)  # interleaving ends its chunks one by one
    once = exposed_s(exchange, e.data_hidden * compute * chunks * 2 / 3, e.interference)
    each = exposed_s(exchange, e.data_hidden * compute, e.interference) * layout.micro_batches
    ends = exchange / np.maximum(case.shape.layers, 1.0)  # the first gather and the last reduction hide behind nothing
    return np.where(ranks > 1, np.where(sharded, each, once) + ends, 0.0)


def optimizer_s(case: Case, dense: Floats, expert: Floats) -> Floats:
    """Return the time of the update: bytes per parameter · parameters of this rank ÷ bandwidth.

    Where fp32 weights are kept whole on every rank, casting them in each micro-batch comes on top.
    """
    layout, e, recipe = case.layout, case.efficiency, case.recipe
    ranks = np.where(layout.sharding > 0, layout.data * layout.context, 1.0)
    spread = np.where(layout.expert > 1, np.maximum(ranks * layout.tensor / layout.expert, 1.0), ranks)
    spread = np.where(layout.sharding > 0, spread, 1.0)
    updated = (dense / ranks + expert / spread) * recipe.optimizer_bytes * e.optimizer_ratio
    cast = np.where(layout.sharding < 3, dense + expert, 0.0) * recipe.cast_bytes * layout.micro_batches
    moved = np.where(recipe.method >= LORA, 0.0, updated + cast)
    return moved / (case.hardware.hbm_gb_per_s * net.GB * e.copy)


def hand_over_s(case: Case) -> Floats:
    """Return the exposed time in which a stage passes one micro-batch on and takes its gradient back.

    Each tensor rank sends its share, gathered again over the scale-up link (arXiv:2104.04473, section 4.1).
    """
    layout = case.layout
    tokens = layout.micro_batch * case.recipe.sequence_tokens / layout.context
    hop = net.tier(case_links(case), layout.pipeline, layout.gpus / layout.pipeline)
    message = tokens * case.shape.hidden * HALF_BYTES / layout.tensor
    return 2 * layout.virtual_stages * net.point_to_point_s(hop, message) * case.efficiency.tensor_exposed


def step(case: Case) -> Step:
    """Time one optimizer step by part.

    T = (m + (p − 1)/v) · t_stage + exposed data traffic + optimizer + fixed overhead, times the stragglers' share;
    the bubble is that of 1F1B and its interleaved form (arXiv:2104.04473, section 2.2).
    """
    return assemble(case, micro_step(case))


def assemble(case: Case, micro: MicroStep) -> Step:
    """Add the schedule to the time of one micro-batch."""
    layout, e, recipe = case.layout, case.efficiency, case.recipe
    m = layout.micro_batches
    parts = {name: getattr(micro, name) * m for name in micro.names()}
    dense, expert = gpu_parameters(case)
    busy, hand_over = micro.total_s, hand_over_s(case)
    parts["pipeline_s"] = hand_over * m
    parts["bubble_s"] = (busy + hand_over) * (layout.pipeline - 1) / layout.virtual_stages
    parts["data_s"] = data_s(case, busy, dense, expert)
    parts["optimizer_s"] = optimizer_s(case, dense, expert)
    parts["overhead_s"] = np.broadcast_to(e.step_overhead_ms * 1e-3, (len(case),))
    subtotal = sum(parts.values(), np.zeros(len(case)))
    nodes = np.maximum(layout.gpus / case.hardware.node_gpus, 1.0)
    parts["straggler_s"] = subtotal * e.straggler * np.log2(nodes)
    total = subtotal + parts["straggler_s"]
    tokens = layout.global_batch * recipe.sequence_tokens
    speed = tokens / total / layout.gpus
    tflops = speed * tf.model_flop(case.shape, recipe.sequence_tokens, recipe.causal) / TERA
    return Step(
        **parts,
        total_s=total,
        tokens_per_s_per_gpu=speed,
        model_tflops=tflops,
        mfu_fraction=tflops / peak_tflops(case.hardware, layout.precision),
    )
